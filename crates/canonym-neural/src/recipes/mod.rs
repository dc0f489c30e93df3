//! Recipes: one file per system, from an experiment file to a trained model.
//!
//! The run folder contains `model.json`, `config.toml` (the resolved experiment), `report.json`, `errors.tsv` (errors on the dev sets, with
//! explanations) and `provenance.json`.

pub mod adapt;
pub mod checkpoints;
mod cross_encoder;
mod curve;
mod data;
pub mod dual_encoder;
mod fold;
mod known_words;
mod learned;
mod log;
mod pipeline;
pub mod queries;
mod recognition;
mod report;
mod rescnn;
mod run_folder;
mod sampling;
mod settings;
mod sources;
mod stage;
mod tagger;

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::ops::Range;
use std::path::{Path, PathBuf};

use crate::bundle::{self, FILE};
use canonym_core::error::Context;
use canonym_core::eval;
use canonym_core::eval::bootstrap::SplitMix64;
use canonym_core::eval::ids::{IdSet, known_ids};
use canonym_core::eval::learned::{Learned, Seen};
use canonym_core::kb::KnowledgeBase;
use canonym_core::link::fit::{Example, FitConfig, Labelled, examples, fit_weights};
use canonym_core::link::model::LexicalModel;
use data::{Role, SetConfig};
use run_folder::{provenance, write_run, write_text};
use serde::{Deserialize, Serialize};
use settings::settings;

use crate::recipes::queries::read_mentions;
use crate::status;
use crate::system::parts::LEXICAL_PART;
use canonym_core::eval::unknown::unknown;

/// Arguments of a training.
#[derive(Debug, Clone, Default)]
pub struct TrainOptions {
    /// The experiment file.
    pub config: PathBuf,
    /// Folder of the data. If `None`, the folder of the experiment, or `../shared/data` if only that contains files of the experiment.
    pub data_root: Option<PathBuf>,
    /// Output folder.
    pub out: PathBuf,
    /// Instead of training, adds the record of training documents to a model that this experiment produced.
    pub record_onto: Option<PathBuf>,
    /// Also evaluate on documents that a part of the system was trained on; the report says so.
    pub allow_seen: bool,
    /// Overrides of entries, such as `fit.penalty=0.01`.
    pub overrides: Vec<String>,
    /// Downloads checkpoints; `None` disables downloads.
    pub fetch: Option<checkpoints::Fetch>,
}

impl TrainOptions {
    /// Folder of the data; [`train`] sets the default.
    fn root(&self) -> &Path {
        self.data_root.as_deref().unwrap_or(Path::new("."))
    }
}

/// Valid values of `system` in an experiment.
const SYSTEMS: [&str; 10] = [
    "pipeline",
    adapt::SYSTEM,
    "dual-encoder",
    bundle::cross_encoder::SYSTEM,
    "tagger",
    "rescnn",
    sampling::SYSTEM,
    "lexical",
    "recognition",
    "known-words",
];

/// Folder of shared data beside a checkout.
const SHARED: &str = "../shared/data";

/// An experiment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Experiment {
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

/// Trains the model of an experiment.
pub fn train(arguments: &TrainOptions) -> canonym_core::Result<()> {
    let mut table = read_table(&arguments.config, &arguments.overrides)?;
    fold::fill(&mut table).with_context(|| format!("incomplete experiment {}", arguments.config.display()))?;
    let given = arguments.data_root.clone();
    let data_root = Some(given.unwrap_or_else(|| usual_root(&arguments.config, &table, Path::new(SHARED))));
    let arguments = &TrainOptions { data_root, ..arguments.clone() };
    if let Some(model) = &arguments.record_onto {
        return learned::record(arguments, table, model);
    }
    if [FILE, "model.json"].iter().any(|file| arguments.out.join(file).exists()) {
        status::say(&format!(
            "{} already holds a model; it will be replaced when training finishes",
            arguments.out.display()
        ));
    }
    match table.get("system").and_then(toml::Value::as_str) {
        Some("lexical") => fit_lexical(arguments, table),
        Some("recognition") => recognition::run(arguments, table),
        Some("known-words") => known_words::run(arguments, table),
        Some("rescnn") => rescnn::run(arguments, table),
        Some("tagger") => tagger::run(arguments, table),
        Some("pipeline") => pipeline::run(arguments, table),
        Some("dual-encoder") => dual_encoder::run(arguments, table),
        Some(adapt::SYSTEM) => adapt::run(arguments, table),
        Some(sampling::SYSTEM) => sampling::run(arguments, table),
        Some(bundle::cross_encoder::SYSTEM) => cross_encoder::run(arguments, table),
        other => {
            let path = arguments.config.display();
            let message = match other {
                Some(system) => format!("unknown system `{system}` in {path}"),
                None => format!("{path} has no entry `system`"),
            };
            let meant = other.and_then(|other| settings::nearest(other, SYSTEMS));
            let meant = meant.map(|meant| format!("did you mean `{meant}`? ")).unwrap_or_default();
            let hint = format!("{meant}`system` must be one of {}", SYSTEMS.join(", "));
            Err(canonym_core::Error::invalid(message).with_hint(hint))
        }
    }
}

fn fit_lexical(arguments: &TrainOptions, table: toml::Table) -> canonym_core::Result<()> {
    let path = arguments.config.display();
    let experiment: Experiment =
        settings(&arguments.config, table).with_context(|| format!("{path} is not a valid lexical experiment"))?;
    let record = learned_of_lexical(&experiment, arguments.root())?;
    let seen = seen_of_lexical(&experiment, &record, (arguments.root(), arguments.allow_seen))?;
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
    write_text(&arguments.out, "errors.tsv", &report::errors(&sets, &model))?;
    // The config marks a complete run folder, so it comes last.
    write_text(&arguments.out, "model.json", &json)?;
    write_run(&arguments.out, &experiment, &report, &provenance)
}

/// Record of the training and calibration documents of the lexical weights.
fn learned_of_lexical(experiment: &Experiment, root: &Path) -> canonym_core::Result<Learned> {
    let mut all = Learned::default();
    for set in &experiment.set {
        let Some(queries) = &set.queries else { continue };
        let role = match set.role {
            Role::Fit => eval::learned::Role::Trained,
            Role::Dev => eval::learned::Role::Calibrated,
        };
        let rows = read_mentions(&root.join(queries))?.rows;
        all.add(learned::of_queries(LEXICAL_PART, role, (queries, root), &rows)?);
        if let Some(texts) = &set.texts {
            let known: HashSet<&str> = rows.iter().map(|row| row.document.as_str()).collect();
            let mut documents = learned::read(texts, root)?;
            documents.retain(|document| known.contains(document.document.id.as_str()));
            all.add(learned::source(LEXICAL_PART, role, texts, learned::of_documents(&documents)));
        }
    }
    Ok(all)
}

/// Refuses dev sets with documents that weights are fitted to, unless they are allowed; which sets have some.
fn seen_of_lexical(
    experiment: &Experiment,
    record: &Learned,
    (root, allow_seen): (&Path, bool),
) -> canonym_core::Result<BTreeMap<String, Seen>> {
    let trained = record.only(eval::learned::Role::Trained);
    let mut seen = BTreeMap::new();
    for set in experiment.set.iter().filter(|set| set.role == Role::Dev) {
        let Some(queries) = &set.queries else { continue };
        let rows = read_mentions(&root.join(queries))?.rows;
        let source = learned::of_queries(LEXICAL_PART, eval::learned::Role::Calibrated, (queries, root), &rows)?;
        let prints: Vec<Option<u64>> = source.documents.into_iter().map(Some).collect();
        let known = learned::check_prints(&trained, &prints, (&set.name, allow_seen))?;
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

/// Reads an experiment and applies overrides.
fn read_table(path: &Path, overrides: &[String]) -> canonym_core::Result<toml::Table> {
    let text = std::fs::read_to_string(path).map_err(|error| canonym_core::Error::io("read", path, error))?;
    let no_toml = |error: toml::de::Error| {
        let before = &text[..error.span().map_or(0, |span| span.start.min(text.len()))];
        let line = before.matches('\n').count() as u64 + 1;
        let hint = "experiments are TOML files; see `experiments/` for examples";
        canonym_core::Error::parse(path, line, format!("invalid TOML: {}", error.message())).with_hint(hint)
    };
    let table: toml::Table = toml::from_str(&text).map_err(no_toml)?;
    let (mut whole, mut old) = (toml::Value::Table(table), BTreeSet::new());
    settings::rename(&mut whole, &mut old);
    let toml::Value::Table(mut table) = whole else { unreachable!("a table stays one") };
    for one in overrides {
        old.extend(override_entry(&mut table, one)?);
    }
    settings::warn_about_old(&old);
    Ok(table)
}

/// Default data folder of an experiment: its own, unless only `shared` contains a file that the experiment names.
fn usual_root(experiment: &Path, table: &toml::Table, shared: &Path) -> PathBuf {
    fn names_any(value: &toml::Value, folder: &Path) -> bool {
        match value {
            // References to other experiments are not data.
            toml::Value::String(text) => !text.is_empty() && !text.ends_with(".toml") && folder.join(text).exists(),
            toml::Value::Array(values) => values.iter().any(|value| names_any(value, folder)),
            toml::Value::Table(table) => table.values().any(|value| names_any(value, folder)),
            _ => false,
        }
    }
    let names_any = |folder: &Path| table.values().any(|value| names_any(value, folder));
    let own = match experiment.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    if !names_any(own) && names_any(shared) { shared.to_path_buf() } else { own.to_path_buf() }
}

/// Applies an override `key=value`; dots in the key descend into tables, numbers into lists.
fn override_entry(table: &mut toml::Table, one: &str) -> canonym_core::Result<Option<String>> {
    let refused = |why: &str| {
        canonym_core::Error::usage(format!("cannot set `{one}`: {why}"), "the format is `fit.penalty=0.01`")
    };
    let (key, value) = one.split_once('=').ok_or_else(|| refused("missing `=`"))?;
    let value = match toml::from_str::<toml::Table>(&format!("value = {value}")) {
        Ok(mut parsed) => parsed.remove("value").expect("it was just written"),
        Err(_) => toml::Value::String(value.to_owned()),
    };
    let (path, last) = key.rsplit_once('.').map_or((None, key), |(path, last)| (Some(path), last));
    let mut place = table;
    let mut steps = path.into_iter().flat_map(|path| path.split('.')).peekable();
    while let Some(step) = steps.next() {
        let next = place.entry(step).or_insert_with(|| toml::Value::Table(toml::Table::new()));
        let next = match (next, steps.peek().and_then(|row| row.parse::<usize>().ok())) {
            (toml::Value::Array(rows), Some(row)) => {
                steps.next();
                rows.get_mut(row).ok_or_else(|| refused("the list is shorter"))?
            }
            (next, _) => next,
        };
        place = next.as_table_mut().ok_or_else(|| refused(&format!("`{step}` is not a table")))?;
    }
    let current = settings::current(last);
    place.insert(current.to_owned(), value);
    Ok((current != last).then(|| last.to_owned()))
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
    for fold in data::read(config, root, work, &mut SplitMix64::new(seed))? {
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

/// Reports how many queries have ids that the terminology lacks.
fn tell_unknown(what: &str, queries: &[Labelled], kb: &KnowledgeBase) {
    let sets: Vec<IdSet> =
        queries.iter().map(|query| IdSet::parse(&query.ids.iter().cloned().collect::<Vec<_>>())).collect();
    let known = known_ids(kb.concepts().map(|concept| kb.id(concept)));
    if let Some(unknown) = unknown(what, sets.iter(), &known) {
        unknown.lines("the terminology").iter().for_each(|line| status::say(line));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_lie_beside_the_experiment_unless_only_the_shared_folder_has_them() {
        let place = tempfile::tempdir().unwrap();
        let (own, shared) = (place.path().join("own"), place.path().join("shared"));
        std::fs::create_dir_all(&own).unwrap();
        std::fs::create_dir_all(&shared).unwrap();
        let experiment = own.join("shapes.toml");
        let table = toml::from_str("system = \"rescnn\"\n[data]\nqueries = [{ path = \"dev.tsv\" }]").unwrap();
        let root = || usual_root(&experiment, &table, &shared);
        assert_eq!(root(), own);
        std::fs::write(shared.join("dev.tsv"), "").unwrap();
        assert_eq!(root(), shared);
        std::fs::write(own.join("dev.tsv"), "").unwrap();
        assert_eq!(root(), own);
        assert_eq!(usual_root(Path::new("shapes.toml"), &table, &place.path().join("none")), Path::new("."));
    }

    #[test]
    fn overrides_reach_into_tables_and_lists() {
        let mut table: toml::Table = toml::from_str("seed = 1\n[fit]\npenalty = 1.0\n[[set]]\nname = \"a\"").unwrap();
        for one in ["fit.penalty=0.5", "seed=2", "set.0.name=b"] {
            override_entry(&mut table, one).unwrap();
        }
        // An old key replaces the value of the new one.
        let mut renamed: toml::Table = toml::from_str("[batch]\nname_replay = 16").unwrap();
        assert_eq!(override_entry(&mut renamed, "batch.rehearsed=0").unwrap().as_deref(), Some("rehearsed"));
        assert_eq!(toml::to_string(&renamed).unwrap(), "[batch]\nname_replay = 0\n");
        assert_eq!(toml::to_string(&table).unwrap(), "seed = 2\n\n[fit]\npenalty = 0.5\n\n[[set]]\nname = \"b\"\n");
        for refused in ["fit", "seed.x=1", "set.3.name=b"] {
            assert!(override_entry(&mut table, refused).is_err(), "{refused}");
        }
    }
}
