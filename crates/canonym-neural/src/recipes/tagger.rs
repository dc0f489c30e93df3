//! Recipe of the tagger, trained on corpora that each annotate some entity types.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Instant;

use crate::bundle::TAGGER_PART;
use crate::layers::crf::bilou::labels_of;
use crate::models::mention_prior::MentionPrior;
use crate::models::tagger::TaggerConfig;
use crate::models::tagger::features::{FeatureExtractor, TokenFeatures, Vocabulary, Words};
use crate::models::tagger::gazetteer::{Gazetteer, MAX_CLASSES};
use crate::models::tagger::typed::LabelSet;
use crate::objectives::tags::{Corpus, Example, HeldOut, Tags, TagsConfig, count};
use crate::tensor::parameters::Parameters;
use crate::tensor::random::for_step;
use crate::train::{RunConfig, Select};
use canonym_core::corpus::{AnnotatedDocument, OnMismatch, Reader};
use canonym_core::eval::learned::{self, Learned, Seen};
use canonym_core::eval::matching::Counts;
use canonym_core::input::Input;
use canonym_core::kb::import::{ImportConfig, Report as ImportReport, SourceFormat, import};
use canonym_core::link::recognise::expanded;
use canonym_core::text::analysis::Analysis;
use canonym_core::text::tokens::Token;
use serde::{Deserialize, Serialize};

use super::TrainOptions;
use super::checkpoints::data_file;
use super::data::{Role, Trees, ids_of_trees};
use super::learned::{check_unseen, of_documents, source};
use super::run_folder::{identity, provenance, to_json, write_run};
use super::settings::experiment_of;
use super::stage::{Stage, open_log};
use crate::status;

/// An experiment.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Experiment {
    system: String,
    seed: u64,
    vocabulary: VocabularyConfig,
    #[serde(default)]
    pub model: TaggerConfig,
    #[serde(default)]
    batch: TagsConfig,
    #[serde(default)]
    run: RunConfig,
    #[serde(rename = "label_set")]
    label_sets: Vec<LabelSetConfig>,
    corpus: Vec<CorpusConfig>,
    #[serde(default)]
    gazetteer: Vec<GazetteerConfig>,
}

impl Experiment {
    /// Label sets in order; `others` override some of them by name.
    pub fn label_sets(&self, others: &BTreeMap<String, LabelSet>) -> Vec<LabelSet> {
        self.label_sets.iter().map(|own| others.get(&own.name).unwrap_or(&own.of).clone()).collect()
    }

    /// Removes corpora, and label sets that no remaining corpus trains.
    pub fn without(mut self, names: &[String]) -> canonym_core::Result<Experiment> {
        if let Some(unknown) = names.iter().find(|name| self.corpus.iter().all(|corpus| corpus.name != **name)) {
            let error = canonym_core::Error::config(format!("unknown corpus `{unknown}` in `leave_out`"));
            return Err(error.with_hint("`leave_out` must name corpora of the tagger experiment"));
        }
        self.corpus.retain(|corpus| !names.contains(&corpus.name));
        let fitted = self.corpus.iter().filter(|corpus| corpus.role == Role::Fit);
        let taught: BTreeSet<String> = fitted.flat_map(|corpus| corpus.teaches.keys().cloned()).collect();
        self.label_sets.retain(|label_set| taught.contains(&label_set.name));
        self.corpus.iter_mut().for_each(|corpus| corpus.teaches.retain(|name, _| taught.contains(name)));
        Ok(self)
    }

    /// The same experiment, with held-out corpora in the training set.
    #[must_use]
    pub fn on_everything(&self) -> Experiment {
        let mut all = self.clone();
        all.corpus.iter_mut().for_each(|corpus| {
            corpus.role = Role::Fit;
            corpus.not_in.clear();
        });
        all
    }
}

/// Which words have an embedding.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct VocabularyConfig {
    /// Minimum count in the training set.
    #[serde(rename = "least")]
    min_count: usize,
    /// Maximum number of words.
    #[serde(rename = "most")]
    max_words: usize,
}

/// A label set: one entity type, as some corpora annotate it.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct LabelSetConfig {
    /// Name.
    name: String,
    /// Entity type, and the threshold above which a knowledge base covers it.
    of: LabelSet,
}

/// A corpus.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct CorpusConfig {
    name: String,
    role: Role,
    documents: PathBuf,
    #[serde(default = "one")]
    weight: f32,
    /// For each label set that it trains, the annotated types; `*` for any type.
    teaches: BTreeMap<String, Vec<String>>,
    /// Name of the corpus in the record of training documents, if it is not that of its folder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    of: Option<String>,
    /// Prefix of its concept ids, such as `MESH`, if it contributes to the mention prior.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ids: Option<String>,
    /// Documents that also occur in one of these files are left out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    not_in: Vec<PathBuf>,
    /// Only documents that also occur in one of these files are kept.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    only_in: Vec<PathBuf>,
}

fn one() -> f32 {
    1.0
}

/// Gazetteer names of one class.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct GazetteerConfig {
    class: String,
    /// A terminology, relative to the data root.
    terminology: PathBuf,
    /// Tree numbers, and the trees to keep.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    trees: Option<Trees>,
    /// Semantic types to keep; empty for all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    types: Vec<String>,
    /// Maximum length of a name in characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    longest: Option<usize>,
    /// Columns with names, from 1; if set, the terminology is read as a plain table.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    columns: Vec<usize>,
}

/// Report of a run.
#[derive(Debug, Serialize)]
struct Report {
    seed: u64,
    n_weights: usize,
    n_words: usize,
    n_names: usize,
    corpora: BTreeMap<String, CorpusReport>,
    /// Strict scores on held-out corpora, by label set.
    dev: BTreeMap<String, BTreeMap<String, LabelSetReport>>,
    /// Which of their documents were trained on, where some were.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    seen: BTreeMap<String, Seen>,
    seconds: BTreeMap<&'static str, f64>,
}

#[derive(Debug, Default, Serialize)]
struct CorpusReport {
    n_documents: usize,
    n_mentions: usize,
    /// Mentions whose boundaries are not token boundaries.
    n_between_tokens: usize,
}

#[derive(Debug, Serialize)]
struct LabelSetReport {
    n_gold: u64,
    precision: f64,
    recall: f64,
    f1: f64,
}

/// A trained tagger.
pub struct Trained {
    pub extractor: FeatureExtractor,
    pub prior: MentionPrior,
    pub parameters: Parameters,
}

/// Runs an experiment.
pub fn run(arguments: &TrainOptions, table: toml::Table) -> canonym_core::Result<()> {
    let experiment: Experiment = experiment_of(arguments, table, "tagger")?;
    train(&experiment, arguments.root(), arguments.allow_seen, &arguments.out)?;
    Ok(())
}

/// A corpus that has been read.
struct Read<'a> {
    config: &'a CorpusConfig,
    documents: Vec<AnnotatedDocument>,
}

impl Experiment {
    /// All files that it reads.
    fn paths(&self) -> BTreeSet<&PathBuf> {
        let corpora = self
            .corpus
            .iter()
            .flat_map(|corpus| std::iter::once(&corpus.documents).chain(&corpus.not_in).chain(&corpus.only_in));
        let names = self.gazetteer.iter().flat_map(|names| {
            std::iter::once(&names.terminology).chain(names.trees.as_ref().map(|trees| &trees.table))
        });
        corpora.chain(names).collect()
    }

    fn check(&self) -> canonym_core::Result<()> {
        let refused =
            |message: String, hint: &str| Err(canonym_core::Error::config(message).with_hint(hint.to_owned()));
        self.model.check_sizes()?;
        let names: BTreeSet<&String> = self.label_sets.iter().map(|label_set| &label_set.name).collect();
        let taught = self.corpus.iter().flat_map(|corpus| corpus.teaches.keys());
        if let Some(unknown) = taught.into_iter().find(|name| !names.contains(name)) {
            return refused(
                format!("unknown label set `{unknown}`"),
                "`teaches` must name label sets of the experiment",
            );
        }
        if !self.corpus.iter().any(|corpus| corpus.role == Role::Fit) {
            return refused("no training corpus".to_owned(), "add a `[[corpus]]` with `role = \"fit\"`");
        }
        Ok(())
    }
}

/// Trains a tagger; log, checkpoint and report are written to `out`.
pub fn train(experiment: &Experiment, root: &Path, allow_seen: bool, out: &Path) -> canonym_core::Result<Trained> {
    experiment.check()?;
    let started = Instant::now();
    let mut seconds = BTreeMap::new();
    let corpora: Vec<Read<'_>> =
        experiment.corpus.iter().map(|config| read(config, root)).collect::<canonym_core::Result<_>>()?;
    let seen = check(&corpora, allow_seen)?;
    let texts = corpora
        .iter()
        .filter(|corpus| corpus.config.role == Role::Fit)
        .flat_map(|corpus| corpus.documents.iter().map(|document| document.document.text.as_str()));
    let vocabulary = Vocabulary::count(texts, experiment.vocabulary.min_count, experiment.vocabulary.max_words);
    let gazetteer = gazetteer(&experiment.gazetteer, root)?;
    let extractor = FeatureExtractor { vocabulary, gazetteer, n_grams: experiment.model.n_grams };
    let mut words = Words::default();
    let (mut to_fit, mut held_out, mut reports) = (Vec::new(), Vec::new(), BTreeMap::new());
    for corpus in &corpora {
        let mut report = CorpusReport { n_documents: corpus.documents.len(), ..CorpusReport::default() };
        let mut texts = Vec::new();
        for document in &corpus.documents {
            let features = extractor.extract(&Analysis::new(&document.document), &mut words);
            let mentions = mentions(experiment, corpus.config, document, &features.tokens, &mut report);
            if !features.tokens.is_empty() {
                texts.push((features, mentions));
            }
        }
        match corpus.config.role {
            Role::Fit => {
                let examples = texts.into_iter().map(|(features, mentions)| example(features, &mentions)).collect();
                to_fit.push(Corpus { weight: corpus.config.weight, examples });
            }
            Role::Dev => {
                let held = |(features, mentions)| HeldOut { features, mentions };
                held_out.push((corpus.config.name.clone(), texts.into_iter().map(held).collect::<Vec<_>>()));
            }
        }
        reports.insert(corpus.config.name.clone(), report);
    }
    if to_fit.iter().all(|corpus| corpus.examples.is_empty()) {
        let error = canonym_core::Error::no_data("the training corpora have no text");
        return Err(error.with_hint("check `documents`, `not_in` and `only_in`"));
    }
    to_fit.retain(|corpus| !corpus.examples.is_empty());
    let n_label_sets = experiment.label_sets.len();
    let mut parameters = Parameters::default();
    let rng = &mut for_step(experiment.seed, u64::MAX);
    experiment.model.init(&mut parameters, extractor.vocabulary.n_rows(), n_label_sets, rng);
    seconds.insert("prepare", started.elapsed().as_secs_f64());
    status::say(&format!(
        "{} words, {} names, {} weights",
        extractor.vocabulary.n_rows(),
        extractor.gazetteer.len(),
        parameters.counts().0
    ));
    let first_held_out = held_out.first().map_or(&[][..], |(_, texts)| texts.as_slice());
    let n_examples = to_fit.iter().map(|corpus| corpus.examples.len()).sum();
    let mut objective = Tags::new(&experiment.model, experiment.batch, &words, &to_fit, n_label_sets, first_held_out);
    let started = Instant::now();
    let mut bare = experiment.clone();
    // The recorded name of a corpus does not affect training.
    bare.corpus.iter_mut().for_each(|corpus| corpus.of = None);
    let provenance = provenance(bare.paths(), root)?;
    let of = identity(&bare, &provenance)?;
    let stage = Stage { name: "tagger", config: experiment.run, seed: experiment.seed, out, of: &of };
    let mut log = open_log(out, &["tagger"])?;
    let parameters = stage.train(parameters, &mut objective, n_examples, &mut log)?;
    seconds.insert("train", started.elapsed().as_secs_f64());
    let mut dev = BTreeMap::new();
    for (name, texts) in &held_out {
        let scores = count(&experiment.model, &parameters, n_label_sets, &words, texts)?;
        let named = experiment.label_sets.iter().zip(scores).filter(|(_, score)| score.n_gold > 0);
        dev.insert(
            name.clone(),
            named.map(|(label_set, score)| (label_set.name.clone(), label_set_report(score))).collect(),
        );
    }
    let report = Report {
        seed: experiment.seed,
        n_weights: parameters.counts().0,
        n_words: extractor.vocabulary.n_rows(),
        n_names: extractor.gazetteer.len(),
        corpora: reports,
        dev,
        seen,
        seconds,
    };
    write_run(out, experiment, &provenance, &[("tagger-report.json", to_json(&report)?.as_bytes())])?;
    Ok(Trained { extractor, prior: prior(&corpora), parameters })
}

/// Refuses held-out corpora with documents that are trained on, unless they are allowed; which have some.
fn check(corpora: &[Read<'_>], allow_seen: bool) -> canonym_core::Result<BTreeMap<String, Seen>> {
    let mut trained = Learned::default();
    for Read { config, documents } in corpora.iter().filter(|corpus| corpus.config.role == Role::Fit) {
        trained.add(source(TAGGER_PART, learned::Role::Trained, &config.documents, of_documents(documents)));
    }
    let mut seen = BTreeMap::new();
    for Read { config, documents } in corpora.iter().filter(|corpus| corpus.config.role == Role::Dev) {
        let known = check_unseen(&trained, documents, (&config.name, allow_seen))?;
        seen.extend(known.map(|known| (config.name.clone(), known)));
    }
    Ok(seen)
}

/// Counts the mention prior on the training corpora.
fn prior(corpora: &[Read<'_>]) -> MentionPrior {
    let mut prior = MentionPrior::default();
    for Read { config, documents } in corpora.iter().filter(|corpus| corpus.config.role == Role::Fit) {
        let Some(source) = &config.ids else { continue };
        let taught: BTreeSet<&String> = config.teaches.values().flatten().collect();
        for document in documents {
            let text = document.document.text.as_str();
            let analysis = Analysis::of_text(text);
            let uses = analysis.short_forms();
            for annotation in &document.annotations {
                if !taught.contains(&annotation.semantic_type) && !taught.contains(&"*".to_owned()) {
                    continue;
                }
                let name = expanded(text, &annotation.spans, uses);
                match annotation.ids.as_slice() {
                    [] => prior.add(&name, None),
                    // In a composite mention it is unknown which part has which id.
                    [id] if id.contains(['|', '+']) => {}
                    [id] if id == "-1" || id == "-" => prior.add(&name, None),
                    [id] if id.contains(':') => prior.add(&name, Some(id)),
                    [id] if id.starts_with(['C', 'D']) => prior.add(&name, Some(&format!("{source}:{id}"))),
                    _ => {}
                }
            }
        }
    }
    prior
}

fn label_set_report(counts: Counts) -> LabelSetReport {
    let score = counts.score();
    LabelSetReport { n_gold: counts.n_gold, precision: score.precision, recall: score.recall, f1: score.f1 }
}

/// Record of the training documents, including held-out corpora if they select the checkpoint.
pub fn learned(experiment: &Experiment, root: &Path) -> canonym_core::Result<Learned> {
    let chooses = experiment.run.select == Select::Best || experiment.run.patience > 0;
    let mut all = Learned::default();
    for config in &experiment.corpus {
        let role = match config.role {
            Role::Fit => learned::Role::Trained,
            Role::Dev if chooses => learned::Role::Tuned,
            Role::Dev => continue,
        };
        let documents = of_documents(&read(config, root)?.documents);
        let source = source(TAGGER_PART, role, &config.documents, documents);
        let corpus = config.of.clone().unwrap_or_else(|| source.corpus.clone());
        all.add(learned::TrainingSource { corpus, ..source });
    }
    Ok(all)
}

fn read<'a>(config: &'a CorpusConfig, root: &Path) -> canonym_core::Result<Read<'a>> {
    status::say(&format!("{} …", config.name));
    let open = |path: &Path| -> canonym_core::Result<Vec<AnnotatedDocument>> {
        let reader = Reader::open(&data_file(path, root), None)?.with_on_mismatch(OnMismatch::Drop).with_repairs(true);
        reader.collect()
    };
    let mut documents = open(&config.documents)?;
    let ids = |paths: &[PathBuf]| -> canonym_core::Result<BTreeSet<String>> {
        let mut ids = BTreeSet::new();
        for path in paths {
            ids.extend(open(path)?.into_iter().map(|document| document.document.id));
        }
        Ok(ids)
    };
    let (not_in, only_in) = (ids(&config.not_in)?, ids(&config.only_in)?);
    documents.retain(|document| {
        let id = &document.document.id;
        !not_in.contains(id) && (config.only_in.is_empty() || only_in.contains(id))
    });
    Ok(Read { config, documents })
}

/// For each label set that the corpus trains, the first and last token of its mentions.
fn mentions(
    experiment: &Experiment,
    config: &CorpusConfig,
    document: &AnnotatedDocument,
    tokens: &[Token],
    report: &mut CorpusReport,
) -> Vec<Option<Vec<(usize, usize)>>> {
    let of_label_set = |label_set: &LabelSetConfig| {
        let types = config.teaches.get(&label_set.name)?;
        let wanted = |name: &String| types.iter().any(|known| known == "*" || known == name);
        let mut mentions = Vec::new();
        for annotation in document.annotations.iter().filter(|annotation| wanted(&annotation.semantic_type)) {
            let [span] = annotation.spans.as_slice() else { continue };
            report.n_mentions += 1;
            let first = tokens.partition_point(|token| token.span.end <= span.start);
            let end = tokens.partition_point(|token| token.span.start < span.end);
            if first >= end {
                report.n_between_tokens += 1;
                continue;
            }
            let exact = tokens[first].span.start == span.start && tokens[end - 1].span.end == span.end;
            report.n_between_tokens += usize::from(!exact);
            mentions.push((first, end - 1));
        }
        mentions.sort_unstable();
        mentions.dedup();
        Some(mentions)
    };
    experiment.label_sets.iter().map(of_label_set).collect()
}

fn example(features: TokenFeatures, mentions: &[Option<Vec<(usize, usize)>>]) -> Example {
    let n = features.tokens.len();
    let labels = mentions.iter().map(|mentions| mentions.as_ref().map(|mentions| labels_of(n, mentions))).collect();
    Example { features, labels }
}

fn gazetteer(configs: &[GazetteerConfig], root: &Path) -> canonym_core::Result<Gazetteer> {
    let mut classes: Vec<&str> = Vec::new();
    let mut names: Vec<(String, u8)> = Vec::new();
    for config in configs {
        let class = classes.iter().position(|class| *class == config.class).unwrap_or(classes.len());
        if class == classes.len() {
            classes.push(&config.class);
        }
        if class >= MAX_CLASSES {
            return Err(canonym_core::Error::too_many(format!("a gazetteer can have at most {MAX_CLASSES} classes")));
        }
        let path = data_file(&config.terminology, root);
        if !config.columns.is_empty() {
            let mut input = Input::open(&path)?;
            while let Some((_, line)) = input.next_line()? {
                let fields: Vec<&str> = line.split('\t').collect();
                let named = config.columns.iter().filter_map(|column| fields.get(column.checked_sub(1)?));
                names.extend(named.map(|name| ((*name).to_owned(), 1 << class)));
            }
            continue;
        }
        let wanted = config.trees.as_ref().map(|trees| ids_of_trees(root, trees)).transpose()?;
        let format = SourceFormat::detect(&path)?;
        let mut report = ImportReport::default();
        import(format, std::slice::from_ref(&path), &ImportConfig::default(), &mut report, &mut |record| {
            let id = record.id.rsplit(':').next().unwrap_or(&record.id);
            let typed = config.types.is_empty() || record.types.iter().any(|of| config.types.contains(of));
            if typed && wanted.as_ref().is_none_or(|wanted| wanted.contains(id)) {
                let longest = config.longest.unwrap_or(usize::MAX);
                let kept = record.names.into_iter().filter(|name| name.text.chars().count() <= longest);
                names.extend(kept.map(|name| (name.text, 1 << class)));
            }
            Ok(())
        })?;
    }
    Ok(Gazetteer::build(names.iter().map(|(name, class)| (name.as_str(), *class))))
}
