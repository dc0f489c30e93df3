//! Fits the acceptance of dictionary matches: `system = "recognition"` in an experiment.
//!
//! Every corpus comes with the terminology that its annotators used. The run folder contains `model.json`, `config.toml` (the resolved
//! experiment), `report.json` and `provenance.json`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use canonym_core::corpus::AnnotatedDocument;
use canonym_core::corpus::format::Reader;
use canonym_core::error::Context;
use canonym_core::eval::learned::{Learned, Role::Trained, Seen, TrainingSource};
use canonym_core::kb::KnowledgeBase;
use canonym_core::link::recognise::accept::AcceptModel;
use canonym_core::link::recognise::fit::{Examples, best_threshold, calibration_error, examples, fit, score};
use canonym_core::link::recognise::{DictionaryAnnotator, Nested, RecogniseConfig};
use serde::{Deserialize, Serialize};

use super::TrainOptions;
use super::checkpoints::data_file;
use super::data::{Role, Trees, compile_trees};
use super::learned::{check_unseen, of_corpus};
use super::run_folder::{REPORT, provenance, to_json, write_run};
use super::settings;
use crate::status;
use crate::system::lexical::RECOGNITION_PART;

/// An experiment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Experiment {
    /// Always `recognition`.
    system: String,
    /// L2 regularisation strength.
    penalty: f64,
    /// Number of fitting iterations over all matches, and then over those that survive overlap suppression.
    rounds: [usize; 2],
    /// Training and dev corpora.
    corpus: Vec<CorpusConfig>,
}

/// A corpus and its terminology.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct CorpusConfig {
    /// Name in the report.
    name: String,
    /// Whether weights are fitted or evaluated on it.
    role: Role,
    /// The documents, relative to the data root.
    documents: PathBuf,
    /// The terminology, relative to the data root.
    terminology: PathBuf,
    /// Prefix for ids that have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    prefix: Option<String>,
    /// Table of tree numbers (id, name, number), relative to the data root, and the trees to keep.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    trees: Option<Trees>,
    /// Weight in the fit relative to the other corpora.
    #[serde(default = "one")]
    weight: usize,
    /// Which corpus the documents are of, where that is not the name of their folder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    of: Option<String>,
}

fn one() -> usize {
    1
}

struct Prepared {
    config: CorpusConfig,
    kb: Arc<KnowledgeBase>,
    documents: Vec<AnnotatedDocument>,
}

#[derive(Serialize)]
struct CorpusReport {
    name: String,
    role: Role,
    n_documents: usize,
    n_gold: usize,
    /// Strict scores over contiguous mentions, at the threshold of the model.
    precision: f64,
    recall: f64,
    f1: f64,
    /// The threshold with the best F1 on this corpus, and that F1.
    own_threshold: f32,
    own_f1: f64,
    /// Expected calibration error of the matches' scores, in ten bins.
    calibration_error: f64,
}

#[derive(Serialize)]
struct RecognitionReport {
    threshold: f32,
    /// Which documents of corpora that are only evaluated on were trained on, where some were.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    seen: BTreeMap<String, Seen>,
    corpora: Vec<CorpusReport>,
}

/// Runs the experiment in `table`.
pub fn run(arguments: &TrainOptions, table: toml::Table) -> canonym_core::Result<()> {
    let path = arguments.config.display();
    let experiment: Experiment =
        settings(&arguments.config, table).with_context(|| format!("{path} is not a valid recognition experiment"))?;
    let mut sets = Vec::new();
    for config in &experiment.corpus {
        status::say(&format!("{} …", config.name));
        sets.push(prepare(config, arguments.root())?);
    }
    let record = learned(&experiment, arguments.root())?;
    let mut seen = BTreeMap::new();
    for Prepared { config, documents, .. } in sets.iter().filter(|set| set.config.role == Role::Dev) {
        let known = check_unseen(&record, documents, (&config.name, arguments.allow_seen))?;
        seen.extend(known.map(|known| (config.name.clone(), known)));
    }
    let model = fit_model(&experiment, &sets);
    let corpora =
        sets.iter().zip(examples_of(&sets, &model, false)).map(|(set, examples)| evaluate(set, &examples, &model));
    let report = RecognitionReport { threshold: model.threshold, seen, corpora: corpora.collect() };
    let paths: BTreeSet<&PathBuf> = experiment
        .corpus
        .iter()
        .flat_map(|corpus| {
            [&corpus.documents, &corpus.terminology].into_iter().chain(corpus.trees.as_ref().map(|trees| &trees.table))
        })
        .collect();
    let (model, report) = (record.into_json(&model.to_json())?, to_json(&report)?);
    let files = [("model.json", model.as_bytes()), (REPORT, report.as_bytes())];
    write_run(&arguments.out, &experiment, &provenance(paths, arguments.root())?, &files)
}

/// Record of the training documents; corpora with role `dev` are only evaluated.
pub fn learned(experiment: &Experiment, root: &Path) -> canonym_core::Result<Learned> {
    let mut all = Learned::default();
    for corpus in experiment.corpus.iter().filter(|corpus| corpus.role == Role::Fit) {
        let source = of_corpus(RECOGNITION_PART, Trained, &corpus.documents, root)?;
        let of = corpus.of.clone().unwrap_or_else(|| source.corpus.clone());
        all.add(TrainingSource { corpus: of, ..source });
    }
    Ok(all)
}

fn fit_model(experiment: &Experiment, sets: &[Prepared]) -> AcceptModel {
    let to_fit: Vec<&Prepared> = sets.iter().filter(|set| set.config.role == Role::Fit).collect();
    let mut model = AcceptModel::zero();
    for _ in 0..experiment.rounds[0] {
        model.weights = fit(&examples_of(to_fit.iter().copied(), &model, true), experiment.penalty);
    }
    // Matches below half of this threshold do not take part in overlap suppression.
    model.threshold = 0.1;
    for _ in 0..experiment.rounds[1] {
        model.weights = fit(&examples_of(to_fit.iter().copied(), &model, false), experiment.penalty);
    }
    model.threshold = 0.3;
    model.threshold = best_threshold(&examples_of(to_fit.iter().copied(), &model, false), &model);
    model
}

/// The matches in each corpus: all, or those that survive overlap suppression.
fn examples_of<'a>(sets: impl IntoIterator<Item = &'a Prepared>, model: &AcceptModel, all: bool) -> Vec<Examples> {
    let config = RecogniseConfig {
        nested: if all { Nested::All } else { Nested::None },
        min_score: all.then_some(0.0),
        ..RecogniseConfig::default()
    };
    sets.into_iter()
        .map(|set| {
            let annotator = DictionaryAnnotator::new(set.kb.clone(), model.clone(), config);
            Examples { weight: set.config.weight, ..examples(&set.kb, &annotator, &set.documents) }
        })
        .collect()
}

fn evaluate(set: &Prepared, examples: &Examples, model: &AcceptModel) -> CorpusReport {
    let (precision, recall, f1) = score(examples, model, model.threshold);
    let own_threshold = best_threshold(std::slice::from_ref(examples), model);
    CorpusReport {
        name: set.config.name.clone(),
        role: set.config.role,
        n_documents: set.documents.len(),
        n_gold: examples.n_gold,
        precision,
        recall,
        f1,
        own_threshold,
        own_f1: score(examples, model, own_threshold).2,
        calibration_error: calibration_error(examples, model),
    }
}

fn prepare(config: &CorpusConfig, root: &Path) -> canonym_core::Result<Prepared> {
    let documents = Reader::open(&data_file(&config.documents, root), None)?.collect::<Result<Vec<_>, _>>()?;
    let kb = compile_trees(
        &config.name,
        &data_file(&config.terminology, root),
        config.prefix.as_deref(),
        config.trees.as_ref(),
        root,
    )?;
    let kb = Arc::new(kb);
    Ok(Prepared { config: config.clone(), kb, documents })
}
