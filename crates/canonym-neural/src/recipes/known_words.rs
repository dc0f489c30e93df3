//! Builds the filter of words known to terminologies: `system = "known-words"` in an experiment.

use std::collections::BTreeMap;
use std::path::PathBuf;

use canonym_core::input::Input;
use canonym_core::kb::import::{ImportConfig, Report as ImportReport, SourceFormat, import};
use canonym_core::link::lookalike::WordFilter;
use canonym_core::text::normalise::fold;
use serde::{Deserialize, Serialize};

use super::TrainOptions;
use super::checkpoints::data_file;
use super::run_folder::{REPORT, provenance, to_json, write_run};
use super::settings::experiment_of;
use crate::status;

/// Output file.
const FILE: &str = "known-words.bin";

/// An experiment.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Experiment {
    system: String,
    /// Size of the filter.
    bytes: usize,
    /// Minimum length of a word, in bytes.
    shortest: usize,
    source: Vec<Source>,
}

/// A terminology.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Source {
    /// Relative to the data root or the current folder.
    path: PathBuf,
    /// Minimum number of names that contain a word.
    #[serde(rename = "least", default = "one")]
    min_names: usize,
    /// Whether the file is a plain list of words instead of a terminology.
    #[serde(default)]
    is_text: bool,
}

#[derive(Serialize)]
struct Report {
    n_words: usize,
    /// Size of the filter.
    bytes: usize,
}

fn one() -> usize {
    1
}

/// Runs an experiment.
pub fn run(arguments: &TrainOptions, table: toml::Table) -> canonym_core::Result<()> {
    let experiment: Experiment = experiment_of(arguments, table, "known-words")?;
    let mut words: BTreeMap<String, ()> = BTreeMap::new();
    for source in &experiment.source {
        status::say(&format!("{} …", source.path.display()));
        let path = data_file(&source.path, arguments.root());
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        let mut count = |name: &str| {
            for word in fold(name).split(' ') {
                if word.len() >= experiment.shortest && word.chars().all(char::is_alphabetic) {
                    *counts.entry(word.to_owned()).or_default() += 1;
                }
            }
        };
        if source.is_text {
            let mut input = Input::open(&path)?;
            while let Some((_, line)) = input.next_line()? {
                count(line);
            }
        } else {
            let format = SourceFormat::detect(&path)?;
            let mut report = ImportReport::default();
            import(format, std::slice::from_ref(&path), &ImportConfig::default(), &mut report, &mut |record| {
                record.names.iter().for_each(|name| count(&name.text));
                Ok(())
            })?;
        }
        words.extend(counts.into_iter().filter(|(_, n)| *n >= source.min_names).map(|(word, _)| (word, ())));
    }
    status::say(&format!("{} words", words.len()));
    let bytes = WordFilter::build(words.keys().map(String::as_str), experiment.bytes);
    let report = to_json(&Report { n_words: words.len(), bytes: bytes.len() })?;
    let paths = experiment.source.iter().map(|source| &source.path).collect();
    let files = [(FILE, bytes.as_slice()), (REPORT, report.as_bytes())];
    write_run(&arguments.out, &experiment, &provenance(paths, arguments.root())?, &files)
}
