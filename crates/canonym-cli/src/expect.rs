//! `canonym expect`: release tests for linking.

use std::path::{Path, PathBuf};

use canonym_core::eval::expect::{Expectations, Failure};
use canonym_neural::system::expect::{check, error_of, parse, read};
use canonym_neural::system::{Models, terminology};
use serde::Serialize;

use crate::output::{self, counted};
use crate::{options, progress};

/// Arguments of `canonym expect`.
#[derive(Debug, clap::Args)]
pub struct ExpectArguments {
    /// Files of expectations (TOML).
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Compiled knowledge base [default: the embedded `starter`].
    #[arg(long, value_name = "FILE.kb")]
    kb: Option<PathBuf>,
    /// Model: `default`, `lexical`, or a bundle.
    #[arg(long, value_name = "BUNDLE", default_value = "default")]
    model: String,
    /// Leave mentions below this probability unlinked.
    #[arg(long, value_name = "P", value_parser = options::parse_probability)]
    min_score: Option<f32>,
    /// Print as JSON.
    #[arg(long)]
    json: bool,
    /// Number of threads [default: all cores].
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
}

/// The result as JSON.
#[derive(Serialize)]
struct Report<'a> {
    terminology: &'a str,
    kb: String,
    model: String,
    version: &'static str,
    n_expectations: usize,
    n_failed: usize,
    n_for_other_terminologies: usize,
    failures: Vec<InFile<'a>>,
}

#[derive(Serialize)]
struct InFile<'a> {
    file: String,
    #[serde(flatten)]
    failure: &'a Failure,
    message: String,
}

/// Runs the command; fails if an expectation does not hold.
pub fn run(arguments: &ExpectArguments) -> anyhow::Result<()> {
    let texts = arguments.files.iter().map(|file| read(file)).collect::<canonym_core::Result<Vec<String>>>()?;
    let files = arguments.files.iter().zip(&texts);
    let mut all =
        files.clone().map(|(file, text)| parse(file, text)).collect::<canonym_core::Result<Vec<Expectations>>>()?;
    options::use_threads(arguments.threads)?;
    let models = Models::named(&arguments.model)?;
    let model = models.fingerprint();
    let kb = terminology::open_for(arguments.kb.as_deref(), &arguments.model)?;
    let name = kb.meta().name.clone();
    let written = |id: &str| kb.find(id).map(|concept| terminology::shown_id(&kb, concept, false));
    for ((file, text), expectations) in files.zip(&all) {
        if let Some(fault) = expectations.unknown(&name, written) {
            return Err(error_of(file, text, fault).into());
        }
    }
    let n_for_others: usize = all.iter().map(|expectations| expectations.n_for_others(&name)).sum();
    all.iter_mut().for_each(|expectations| expectations.retain(&name));
    let n: usize = all.iter().map(Expectations::n).sum();
    if n == 0 {
        let error = canonym_core::Error::not_found(format!("no expectations for the terminology `{name}`"));
        let hint = "add texts or names, or correct their `terminology`; `canonym kb info` prints the name";
        return Err(error.with_hint(hint).into());
    }
    let mut failures: Vec<(&Path, Failure)> = Vec::new();
    for (file, expectations) in arguments.files.iter().zip(&all) {
        let found = check(expectations, &models, &kb, arguments.min_score)?;
        failures.extend(found.into_iter().map(|failure| (file.as_path(), failure)));
    }
    if arguments.json {
        let in_file = |(file, failure): &'_ (&Path, Failure)| (file.display().to_string(), failure.to_string());
        let rows = failures.iter().map(|row| {
            let (file, message) = in_file(row);
            InFile { file, failure: &row.1, message }
        });
        output::print_json(&Report {
            terminology: &name,
            kb: format!("{:032x}", kb.container().fingerprint()),
            model,
            version: env!("CARGO_PKG_VERSION"),
            n_expectations: n,
            n_failed: failures.len(),
            n_for_other_terminologies: n_for_others,
            failures: rows.collect(),
        })?;
    } else {
        let lines = failures.iter().map(|(file, failure)| format!("{}: {failure}\n", file.display()));
        output::print(&lines.collect::<String>())?;
    }
    if n_for_others > 0 {
        let what = counted(n_for_others as u64, "text or list");
        progress::say(&format!("skipped {what} for other terminologies than {name}"));
    }
    if failures.is_empty() {
        progress::say(&format!("{} passed on {name}", counted(n as u64, "expectation")));
        return Ok(());
    }
    let failed = counted(failures.len() as u64, "failure");
    let message = format!("{failed} in {} on {name}", counted(n as u64, "expectation"));
    let hint = "see what came close with `canonym link --explain`, or correct the expectations";
    Err(canonym_core::Error::invalid(message).with_hint(hint).into())
}
