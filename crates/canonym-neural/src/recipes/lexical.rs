//! Fits the weights of the lexical linker to queries with known concepts.

mod report;

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::ops::Range;
use std::path::{Path, PathBuf};

use canonym_core::error::Context;
use canonym_core::eval::bootstrap::SplitMix64;
use canonym_core::eval::learned::{Learned, Role as LearnedRole, Seen};
use canonym_core::kb::KnowledgeBase;
use canonym_core::link::fit::{Example, FitConfig, Labelled, examples, fit_weights};
use canonym_core::link::model::LexicalModel;
use serde::{Deserialize, Serialize};

use super::data::{Role, SetConfig};
use super::learned::{check_prints, of_documents, of_queries, read, source};
use super::queries::read_mentions;
use super::run_folder::{REPORT, provenance, to_json, write_run};
use super::{TrainOptions, settings, tell_unknown};
use crate::status;
use crate::system::lexical::LEXICAL_PART;

/// An experiment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Experiment {
    /// Always `lexical`.
    system: String,
    /// Random seed.
    seed: u64,
    /// Whether to report an ablation, which fits once for each feature group.
    ablation: bool,
    /// Settings of the fit.
    fit: FitConfig,
    /// Training and dev sets.
    set: Vec<SetConfig>,
}

/// A set with its examples, one for each part of a mention.
#[derive(Debug)]
struct Prepared {
    config: SetConfig,
    examples: Vec<Example>,
    /// The query of each example.
    names: Vec<Labelled>,
    /// Index of each example's document, in order of appearance.
    document_of: Vec<usize>,
    /// Document of each mention, and the examples of its parts.
    mentions: Vec<(String, Range<usize>)>,
    /// Knowledge bases, each with the end of its examples.
    kbs: Vec<(usize, KnowledgeBase)>,
}

impl Prepared {
    /// One value per mention, from the worst rank of its parts; `usize::MAX` if a part has no correct candidate.
    fn per_mention(&self, ranks: &[Option<usize>], value: impl Fn(usize) -> f64) -> Vec<f64> {
        let worst = |parts: &Range<usize>| ranks[parts.clone()].iter().map(|rank| rank.unwrap_or(usize::MAX)).max();
        self.mentions.iter().map(|(_, parts)| value(worst(parts).unwrap_or(usize::MAX))).collect()
    }

    /// The knowledge base of an example.
    fn kb_of(&self, example: usize) -> &KnowledgeBase {
        let found = self.kbs.iter().find(|(end, _)| example < *end);
        &found.expect("every example came with a knowledge base").1
    }
}

/// Fits the weights of the lexical linker.
pub fn run(arguments: &TrainOptions, table: toml::Table) -> canonym_core::Result<()> {
    let path = arguments.config.display();
    let experiment: Experiment =
        settings(&arguments.config, table).with_context(|| format!("{path} is not a valid lexical experiment"))?;
    let record = learned(&experiment, arguments.root())?;
    let seen = seen_sets(&experiment, &record, arguments.root(), arguments.allow_seen)?;
    let work = arguments.out.join("work");
    std::fs::create_dir_all(&work).with_context(|| format!("cannot create {}", work.display()))?;
    let mut sets = Vec::new();
    for set in &experiment.set {
        status::say(&format!("{} …", set.name));
        sets.push(prepare(set, arguments.root(), &work, experiment.seed)?);
    }
    std::fs::remove_dir_all(&work).with_context(|| format!("cannot remove {}", work.display()))?;
    let fit: Vec<Example> = sets.iter().filter(|set| set.config.role == Role::Fit).flat_map(to_fit).collect();
    let weights = fit_weights(&fit, &experiment.fit);
    let model = report::calibrated(&sets, weights);
    let mut report = report::report(&sets, &weights, experiment.seed);
    report.seen = seen;
    if experiment.ablation {
        report.ablation = report::ablation(&sets, &fit, &experiment.fit, &weights);
    }
    let paths: BTreeSet<&PathBuf> =
        experiment.set.iter().flat_map(|set| std::iter::once(&set.dictionary).chain(&set.queries)).collect();
    let provenance = provenance(paths, arguments.root())?;
    let json = record.into_json(&model.to_json())?;
    let (errors, report) = (report::errors(&sets, &model), to_json(&report)?);
    let files = [("model.json", json.as_bytes()), ("errors.tsv", errors.as_bytes()), (REPORT, report.as_bytes())];
    write_run(&arguments.out, &experiment, &provenance, &files)
}

/// Record of the training and calibration documents of the lexical weights.
pub fn learned(experiment: &Experiment, root: &Path) -> canonym_core::Result<Learned> {
    let mut all = Learned::default();
    for set in &experiment.set {
        let Some(queries) = &set.queries else { continue };
        let role = match set.role {
            Role::Fit => LearnedRole::Trained,
            Role::Dev => LearnedRole::Calibrated,
        };
        let rows = read_mentions(&root.join(queries))?.rows;
        all.add(source(LEXICAL_PART, role, queries, of_queries(queries, root, &rows)?));
        if let Some(texts) = &set.texts {
            let known: HashSet<&str> = rows.iter().map(|row| row.document.as_str()).collect();
            let mut documents = read(texts, root)?;
            documents.retain(|document| known.contains(document.document.id.as_str()));
            all.add(source(LEXICAL_PART, role, texts, of_documents(&documents)));
        }
    }
    Ok(all)
}

/// Refuses dev sets with documents that weights are fitted to, unless they are allowed; which sets have some.
fn seen_sets(
    experiment: &Experiment,
    record: &Learned,
    root: &Path,
    allow_seen: bool,
) -> canonym_core::Result<BTreeMap<String, Seen>> {
    let trained = record.only(LearnedRole::Trained);
    let mut seen = BTreeMap::new();
    for set in experiment.set.iter().filter(|set| set.role == Role::Dev) {
        let Some(queries) = &set.queries else { continue };
        let rows = read_mentions(&root.join(queries))?.rows;
        let known = check_prints(&trained, &of_queries(queries, root, &rows)?, (&set.name, allow_seen))?;
        seen.extend(known.map(|known| (set.name.clone(), known)));
    }
    Ok(seen)
}

/// Training examples of a set: repeated queries are merged and weighted by their count.
fn to_fit(set: &Prepared) -> Vec<Example> {
    let mut place_of: BTreeMap<(usize, &Labelled), usize> = BTreeMap::new();
    let mut distinct: Vec<Example> = Vec::new();
    for (row, (example, name)) in set.examples.iter().zip(&set.names).enumerate() {
        let fold = set.kbs.iter().filter(|(end, _)| *end <= row).count();
        let place = *place_of.entry((fold, name)).or_insert(distinct.len());
        match distinct.get_mut(place) {
            Some(known) => known.weight += set.config.weight,
            None => distinct.push(Example { weight: set.config.weight, ..example.clone() }),
        }
    }
    distinct
}

/// Reads a set and computes the features of the candidates of each query.
fn prepare(config: &SetConfig, root: &Path, work: &Path, seed: u64) -> canonym_core::Result<Prepared> {
    let mut set = Prepared {
        config: config.clone(),
        examples: Vec::new(),
        names: Vec::new(),
        document_of: Vec::new(),
        mentions: Vec::new(),
        kbs: Vec::new(),
    };
    let mut documents: BTreeMap<String, usize> = BTreeMap::new();
    for fold in super::data::read(config, root, work, &mut SplitMix64::new(seed))? {
        let parts: Vec<Labelled> = fold.asked.iter().flat_map(|asked| asked.parts.clone()).collect();
        tell_unknown(&format!("queries of {}", config.name), &parts, &fold.kb);
        let mut at = set.examples.len();
        set.examples.extend(examples(&fold.kb, &LexicalModel::zero(), &parts));
        set.names.extend(parts);
        for asked in fold.asked {
            let next = documents.len();
            let document = *documents.entry(asked.document.clone()).or_insert(next);
            set.document_of.extend(asked.parts.iter().map(|_| document));
            set.mentions.push((asked.document, at..at + asked.parts.len()));
            at += asked.parts.len();
        }
        set.kbs.push((at, fold.kb));
    }
    Ok(set)
}
