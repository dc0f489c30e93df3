//! `canonym index`: embeddings of all names of a knowledge base, as a file.

use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::Context;
use canonym_core::Error;
use canonym_neural::index::build::IndexReport;
use canonym_neural::index::cache::cache_folder;
use canonym_neural::index::stored::{IndexMeta, NameIndex};
use canonym_neural::index::vectors::Precision;
use canonym_neural::system::names::index_path;
use canonym_neural::system::{Models, terminology};
use serde::Serialize;

use crate::output::{self, Sheet, bytes, thousands};
use crate::{errors, options, progress};

/// The subcommands of `canonym index`.
#[derive(Debug, clap::Subcommand)]
pub enum IndexCommand {
    /// Embed all names of a knowledge base and write them to a file, or update the file that is there.
    ///
    /// `link`, `map` and other commands use the file `K.index` beside `K.kb`. An update embeds only names that are new.
    /// An interrupted build resumes where it stopped.
    Build(BuildArguments),
    /// Show how an index was built.
    Info(InfoArguments),
}

/// Arguments of `canonym index build`.
#[derive(Debug, clap::Args)]
pub struct BuildArguments {
    /// Knowledge base.
    #[arg(long, value_name = "FILE.kb")]
    kb: PathBuf,
    /// Bundle or training folder of a name encoder, or `default`.
    #[arg(long, value_name = "BUNDLE", default_value = "default")]
    model: String,
    /// File to write or update [default: `K.index` beside `K.kb`].
    #[arg(long, value_name = "FILE.index")]
    out: Option<PathBuf>,
    /// Precision of the vectors: `f16`, or `int8` in half the space; the order of nearly equally similar names may
    /// change.
    #[arg(long, value_enum, value_name = "f16|int8", default_value = "f16", hide_possible_values = true)]
    precision: PrecisionValue,
    /// Number of threads [default: all cores].
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
}

/// Arguments of `canonym index info`.
#[derive(Debug, clap::Args)]
pub struct InfoArguments {
    /// Index.
    #[arg(value_name = "FILE.index")]
    file: PathBuf,
    /// Print as JSON.
    #[arg(long)]
    json: bool,
}

/// The values of `--precision`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum PrecisionValue {
    /// Two bytes per value.
    F16,
    /// One byte per value.
    Int8,
}

/// Runs the command.
pub fn run(command: &IndexCommand) -> anyhow::Result<()> {
    match command {
        IndexCommand::Build(arguments) => build(arguments),
        IndexCommand::Info(arguments) => info(arguments),
    }
}

fn build(arguments: &BuildArguments) -> anyhow::Result<()> {
    let started = Instant::now();
    let models = Models::named(&arguments.model)?;
    let Some(names) = models.names() else {
        let error = Error::unsupported(format!("the model `{}` has no name encoder", arguments.model));
        return Err(error.with_hint("use `default` or a ResCNN bundle").into());
    };
    options::use_threads(arguments.threads)?;
    let kb = terminology::open(Some(&arguments.kb))?;
    let out = match &arguments.out {
        Some(out) => out.clone(),
        None if arguments.kb == Path::new(terminology::STARTER) => {
            return Err(errors::usage(
                "the embedded starter has no file beside which its index could be",
                "add `--out`",
            ));
        }
        None => index_path(&arguments.kb),
    };
    let bar = progress::counter("names", Some(kb.n_forms() as u64));
    let mut progress = |n_done: usize, _| {
        bar.set_position(n_done as u64);
        Ok(())
    };
    let report =
        names.build_index(&kb, &out, arguments.precision.into(), &mut progress).context("cannot build the index")?;
    progress::finish(&bar, "names");
    progress::say(summary(&out, &report, started.elapsed().as_secs_f64()).trim_end());
    Ok(())
}

fn summary(out: &Path, report: &IndexReport, seconds: f64) -> String {
    let n_bytes = std::fs::metadata(out).map_or(0, |metadata| metadata.len());
    let mut sheet = Sheet::default();
    sheet.line("built", format!("{} ({}) in {seconds:.1} s", out.display(), bytes(n_bytes)));
    sheet.line("vectors", vectors(&report.meta));
    let counts = [
        (report.n_encoded, "embedded"),
        (report.n_resumed, "embedded by the interrupted build"),
        (report.n_reused, "taken from the index that was there"),
        (report.n_removed, "removed"),
    ];
    let rows = counts.iter().filter(|(n, _)| *n > 0).map(|(n, what)| (*n as u64, (*what).to_owned()));
    sheet.counts("names", &rows.collect::<Vec<_>>());
    sheet.text()
}

fn vectors(meta: &IndexMeta) -> String {
    format!("{}, {} dimensions", meta.precision.name(), meta.n_cols)
}

#[derive(Serialize)]
struct Info<'a> {
    #[serde(flatten)]
    meta: &'a IndexMeta,
    n_bytes: u64,
    fingerprint: String,
}

fn info(arguments: &InfoArguments) -> anyhow::Result<()> {
    let index = NameIndex::open(&arguments.file, cache_folder().as_deref()).context("cannot open the index")?;
    let (meta, container) = (index.meta(), index.container());
    let n_bytes = container.bytes().len() as u64;
    let fingerprint = format!("{:032x}", container.fingerprint());
    if arguments.json {
        return output::print_json(&Info { meta, n_bytes, fingerprint });
    }
    let mut sheet = Sheet::default();
    sheet.line("knowledge base", format!("{} {}", meta.kb_name, meta.kb));
    sheet.line("model", meta.model.clone());
    sheet.line("vectors", vectors(meta));
    sheet.line("names", thousands(meta.n_rows as u64));
    sheet.line("file", bytes(n_bytes));
    sheet.line("fingerprint", fingerprint);
    output::print(&sheet.text())
}

impl From<PrecisionValue> for Precision {
    fn from(precision: PrecisionValue) -> Precision {
        match precision {
            PrecisionValue::F16 => Precision::F16,
            PrecisionValue::Int8 => Precision::Int8,
        }
    }
}
