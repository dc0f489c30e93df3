//! `canonym probe`: what a name encoder attends to.

use std::fmt::Write as _;
use std::path::PathBuf;

use canonym_core::Error;
use canonym_neural::recipes::probe::{self, ProbeRow};
use canonym_neural::recipes::queries::read_mentions;
use canonym_neural::system::{Models, terminology};

use crate::output;

/// Arguments of `canonym probe`.
#[derive(Debug, clap::Args)]
pub struct ProbeArguments {
    /// Queries: BioSyn queries, rows of id, name and phrase, a PubTator file, or a `.tsv` file with a name and its ids
    /// per line.
    queries: PathBuf,
    /// Trained ResCNN model: a folder or bundle.
    #[arg(long, value_name = "BUNDLE")]
    model: String,
    /// Compiled knowledge base [default: that of the model].
    #[arg(long, value_name = "FILE.kb")]
    kb: Option<PathBuf>,
    /// Seed of the shuffling.
    #[arg(long, value_name = "N", default_value_t = 13)]
    seed: u64,
    /// Print as JSON.
    #[arg(long)]
    json: bool,
    /// Write a bar chart of the accuracies.
    #[arg(long, value_name = "FILE.svg")]
    plot: Option<PathBuf>,
}

/// Runs the command.
pub fn run(arguments: &ProbeArguments) -> anyhow::Result<()> {
    let models = Models::named(&arguments.model)?;
    let Some(bundle) = models.names().map(|model| &*model.bundle) else {
        let error = Error::unsupported(format!("the model `{}` has no name encoder to probe", arguments.model));
        return Err(error.with_hint("use a model trained with `system = \"rescnn\"`").into());
    };
    let kb = terminology::open_for(arguments.kb.as_deref(), &arguments.model)?;
    let mentions = read_mentions(&arguments.queries)?.rows;
    let rows = probe::probe(bundle, &kb, &mentions, arguments.seed)?;
    if let Some(path) = &arguments.plot {
        std::fs::write(path, probe::chart(&rows)).map_err(|error| Error::io("write", path, error))?;
    }
    let text = match arguments.json {
        true => serde_json::to_string_pretty(&rows)? + "\n",
        false => table(&rows),
    };
    output::print(&text)
}

fn table(rows: &[ProbeRow]) -> String {
    let width = rows.iter().map(|row| row.probe.len()).max().unwrap_or(0);
    let mut text = format!("{:width$}  accuracy@1  change\n", "probe");
    for ProbeRow { probe, accuracy, change } in rows {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{probe:width$}  {:10.2}  {:+6.2}", 100.0 * accuracy, 100.0 * change);
    }
    text
}
