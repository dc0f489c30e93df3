//! Trains the hierarchical multi-task tagger (Wiatrak and Iso-Sipila 2020), its single-task and multi-task variants, and the BiLSTM-CRF
//! baseline.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::time::Instant;

use canonym_core::corpus::{AnnotatedDocument, Annotation};
use canonym_core::error::Context;
use canonym_core::eval::learned::{Learned, Role::Trained, Role::Tuned, Seen};
use canonym_core::eval::matching::Score;
use canonym_core::text::Span;
use serde::{Deserialize, Serialize};

use super::checkpoints::{checkpoint_folder, existing};
use super::dual_encoder::data::{DataConfig as Corpora, Parts, hull, ids_of, read_corpora};
use super::learned::{check_judged, of_documents, read, source};
use super::log::Log;
use super::run_folder::{identity, provenance, write_bytes, write_run};
use super::stage::{Stage, open_log, remove_kept};
use super::{TrainOptions, settings};
use crate::bundle::{FILE, FORMAT};
use crate::checkpoint::read_bert;
use crate::layers::crf::bilou::labels_of;
use crate::layers::lstm::BiLstmConfig;
use crate::models::multitask::decode::tag_of;
use crate::models::multitask::reading::{Reading, Splitter};
use crate::models::multitask::{ENCODER, Framing, MultitaskConfig, Task};
use crate::objectives::multitask::{Example, GoldSpan, HeldOut, Multitask, MultitaskBatchConfig, TextLabels, count};
use crate::status;
use crate::system::multitask::{IDS, MultitaskBundle, MultitaskManifest, SYSTEM};
use crate::tensor::matrix::Compute;
use crate::tensor::parameters::{Parameters, Precision};
use crate::tensor::random::for_step;
use crate::tokenizer::BertRules;
use crate::train::RunConfig;

const STAGE: &str = "multitask";

/// An experiment.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Experiment {
    system: String,
    seed: u64,
    data: DataConfig,
    encoder: EncoderConfig,
    model: ModelConfig,
    #[serde(default)]
    batch: MultitaskBatchConfig,
    #[serde(default)]
    run: RunConfig,
}

/// Input files; paths are relative to the data root.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct DataConfig {
    /// Training corpora.
    train: Vec<PathBuf>,
    /// Held-out corpora.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    dev: Vec<PathBuf>,
    /// Corpora for selecting the checkpoint.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    tune: Vec<PathBuf>,
    /// Instead of `tune`: about one in this many training documents is split off for selection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tune_share: Option<usize>,
}

/// The encoder.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct EncoderConfig {
    /// BERT checkpoint: a folder relative to the data root or to `CANONYM_MODELS`.
    bert: PathBuf,
    /// Number of its layers that are used; with 0, wordpiece embeddings are the encoder, as in the BiLSTM-CRF baseline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    layers: Option<usize>,
    /// Whether wordpiece embeddings are trained.
    #[serde(default = "yes")]
    train_embeddings: bool,
    /// Dropout; if missing, that of the checkpoint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    dropout: Option<f32>,
    /// Learning-rate multiplier of task encoders and heads.
    #[serde(default = "one")]
    head_lr_multiplier: f32,
    /// Precision of matrix products.
    #[serde(default)]
    compute: Compute,
}

/// The tasks and what they read.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ModelConfig {
    /// The tasks, lowest first.
    tasks: Vec<Task>,
    /// What types and concepts are assigned to.
    #[serde(default)]
    framing: Framing,
    /// Task encoders of the hierarchy; without them, heads read the encoder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    lstm: Option<BiLstmConfig>,
    /// Whether labels of mentions and types form a linear-chain CRF.
    #[serde(default)]
    crf: bool,
    /// Whether types per token are BILOU labels of each type.
    #[serde(default)]
    type_tags: bool,
    /// Maximum number of wordpieces of a sentence with its context.
    #[serde(default = "length")]
    max_pieces: usize,
    /// A trained model of this kind that detects mentions, for a model of spans that detects none; relative to the current folder or the
    /// data root. It becomes part of the bundle.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    detector: Option<PathBuf>,
}

fn yes() -> bool {
    true
}

fn one() -> f32 {
    1.0
}

fn length() -> usize {
    128
}

/// The report of a run.
#[derive(Debug, Serialize)]
struct Report {
    seed: u64,
    n_weights: usize,
    n_types: usize,
    n_concepts: usize,
    train: CorpusReport,
    dev: CorpusReport,
    /// Strict scores of each task on the held-out documents, with the mentions that the model finds.
    held_out: BTreeMap<&'static str, Score>,
    /// Strict scores with the mentions of the detector, if there is one.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    with_detector: BTreeMap<&'static str, Score>,
    /// Fraction of linked held-out mentions whose concept occurs in the training documents: the highest recall that the model can reach.
    recall_ceiling: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    seen: Option<Seen>,
    seconds: BTreeMap<&'static str, f64>,
}

#[derive(Debug, Default, Serialize)]
struct CorpusReport {
    n_documents: usize,
    n_sentences: usize,
    n_mentions: usize,
    /// Mentions that lie within words, which cannot be found.
    n_inside_words: usize,
    /// Mentions that overlap a longer one, which are not learned from.
    n_overlapping: usize,
    /// Mentions of several parts, whose hull is learned.
    n_discontinuous: usize,
    /// Sentences that were cut because they are longer than a window.
    n_cut: usize,
}

/// Classes of types and concepts from 1, by name.
#[derive(Debug, Default)]
struct Classes {
    types: Vec<String>,
    concepts: Vec<String>,
    type_of: HashMap<String, u32>,
    concept_of: HashMap<String, u32>,
}

impl Classes {
    fn of(documents: &[AnnotatedDocument]) -> Classes {
        let annotations = || documents.iter().flat_map(|document| &document.annotations);
        let types: BTreeSet<&str> =
            annotations().map(|one| one.semantic_type.as_str()).filter(|one| !one.is_empty()).collect();
        let concepts: BTreeSet<&str> = annotations().filter_map(concept_id).collect();
        let numbered = |names: &BTreeSet<&str>| names.iter().map(|name| (*name).to_owned()).zip(1..).collect();
        Classes {
            type_of: numbered(&types),
            concept_of: numbered(&concepts),
            types: types.into_iter().map(str::to_owned).collect(),
            concepts: concepts.into_iter().map(str::to_owned).collect(),
        }
    }

    /// The mentions of a document that have whole words, and the number of the others. A concept that no class has is `other`.
    fn spans(&self, document: &AnnotatedDocument, reading: &Reading, other: Option<u32>) -> (Vec<GoldSpan>, usize) {
        let mut n_inside = 0;
        let mut spans = Vec::new();
        for annotation in &document.annotations {
            let Some((first, last)) = reading.words_of(hull(annotation)) else {
                n_inside += 1;
                continue;
            };
            let concept = concept_id(annotation).map(|id| self.concept_of.get(id).copied().or(other));
            let class = self.type_of.get(&annotation.semantic_type).copied();
            let class = if annotation.semantic_type.is_empty() { None } else { class.or(other) };
            spans.push(GoldSpan { first, last, class, concept: concept.flatten() });
        }
        (spans, n_inside)
    }
}

/// The first id of an annotation, without its prefix; `None` if it is unlinked.
fn concept_id(annotation: &Annotation) -> Option<&str> {
    let id = ids_of(annotation).first().copied()?;
    Some(id.rsplit_once(':').map_or(id, |(_, bare)| bare))
}

/// Runs an experiment.
pub fn run(arguments: &TrainOptions, table: toml::Table) -> canonym_core::Result<()> {
    let path = arguments.config.display();
    let experiment: Experiment =
        settings(&arguments.config, table).with_context(|| format!("{path} is not a valid multitask experiment"))?;
    let (root, out) = (arguments.root(), arguments.out.as_path());
    std::fs::create_dir_all(out).map_err(|error| canonym_core::Error::io("create", out, error))?;
    let started = Instant::now();
    let Parts { train, tune, dev } = read_corpora(&experiment.data.corpora(), experiment.seed, root)?;
    if train.iter().all(|document| document.annotations.is_empty()) {
        let error = canonym_core::Error::invalid("the training corpora have no mentions");
        return Err(error.with_hint("check `data.train`"));
    }
    let detector = experiment.detector(root)?;
    let record = learned(&experiment, root)?;
    let mut of_judging = record.clone();
    if let Some((detector, _)) = &detector {
        of_judging.join("mentions", detector.learned.as_ref());
    }
    let seen = check_judged(&of_judging, &dev, ("held-out documents", arguments.allow_seen))?;
    let classes = Classes::of(&train);
    let (manifest, parameters, splitter) = begin(&experiment, arguments, &classes)?;
    let model = manifest.model.clone();
    let (examples, of_train) = examples(&train, &splitter, &classes, &model);
    let (tune, _) = held_out(&tune, &splitter, &classes);
    let (held, of_dev) = held_out(&dev, &splitter, &classes);
    let n_weights = parameters.counts().0;
    let n_concepts = classes.concepts.len();
    status::say(&format!(
        "{n_weights} weights; {n_concepts} concepts and {} types; {} sentences with {} mentions",
        classes.types.len(),
        of_train.n_sentences,
        of_train.n_mentions
    ));
    let mut seconds = BTreeMap::from([("prepare", started.elapsed().as_secs_f64())]);

    let watched = if tune.is_empty() { &held } else { &tune };
    let mut objective =
        Multitask::new(&model, experiment.batch, &splitter, &examples, n_concepts).with_held_out(watched);
    let provenance = provenance(experiment.data.paths().collect(), root)?;
    let of = identity(&experiment, &provenance)?;
    let stage = Stage { name: STAGE, config: experiment.run, seed: experiment.seed, out, of: &of };
    let mut log: Log = open_log(out, &[STAGE])?;
    let train_started = Instant::now();
    let n_windows = objective.n_windows();
    let parameters = stage.train(parameters, &mut objective, n_windows, &mut log)?;
    seconds.insert("train", train_started.elapsed().as_secs_f64());

    let mut bundle = MultitaskBundle {
        manifest,
        parameters,
        pieces: splitter.pieces().clone(),
        fingerprint: 0,
        learned: Some(record),
    };
    bundle
        .parameters
        .add_table(IDS, classes.concepts.iter().flat_map(|id| [id, "\n"]).collect::<String>().into_bytes());
    // Evaluates the model as written, with f16 weights.
    bundle = MultitaskBundle::from_bytes(&bundle.to_bytes(Precision::Half)?, &out.join(FILE))?;
    let judge_started = Instant::now();
    let mut report = Report {
        seed: experiment.seed,
        n_weights,
        n_types: classes.types.len(),
        n_concepts,
        train: of_train,
        dev: of_dev,
        held_out: BTreeMap::new(),
        with_detector: BTreeMap::new(),
        recall_ceiling: recall_ceiling(&dev, &classes),
        seen,
        seconds,
    };
    if !held.is_empty() {
        status::say("held-out documents …");
        let tagger = bundle.tagger()?;
        report.held_out = scores(&count(&tagger, &held)?);
        if let Some((detector, _)) = &detector {
            let found = spans_of_detector(detector, &held)?;
            report.with_detector = scores(&crate::objectives::multitask::count_on(&tagger, &held, &found)?);
        }
    }
    report.seconds.insert("judge", judge_started.elapsed().as_secs_f64());
    if let Some((_, bytes)) = detector {
        bundle = bundle.with_detector(bytes);
    }
    write_run(out, &experiment, &report, &provenance)?;
    write_bytes(out, FILE, &bundle.to_bytes(Precision::Half)?)?;
    remove_kept(out, &[STAGE])
}

fn scores(counts: &BTreeMap<Task, canonym_core::eval::matching::Counts>) -> BTreeMap<&'static str, Score> {
    counts.iter().map(|(task, counts)| (task.name(), counts.score())).collect()
}

/// The mentions that another model finds in texts, as words of their readings.
fn spans_of_detector(
    detector: &MultitaskBundle,
    held_out: &[HeldOut],
) -> canonym_core::Result<Vec<Vec<(usize, usize)>>> {
    let tagger = detector.tagger()?;
    let readings: Vec<Reading> = held_out.iter().map(|text| text.reading.clone()).collect();
    let found = tagger.label(&readings, None)?;
    Ok(found.iter().map(|text| text.mention_spans.iter().map(|span| (span.first, span.last)).collect()).collect())
}

/// Fraction of linked mentions whose concept has a class.
fn recall_ceiling(documents: &[AnnotatedDocument], classes: &Classes) -> f64 {
    let firsts = documents.iter().flat_map(|document| &document.annotations).filter_map(concept_id);
    let (mut n, mut n_known) = (0_usize, 0_usize);
    for id in firsts {
        n += 1;
        n_known += usize::from(classes.concept_of.contains_key(id));
    }
    n_known as f64 / n.max(1) as f64
}

impl DataConfig {
    fn corpora(&self) -> Corpora {
        let DataConfig { train, dev, tune, tune_share } = self;
        Corpora {
            train: train.clone(),
            dev: dev.clone(),
            tune: tune.clone(),
            tune_share: *tune_share,
            ..Corpora::default()
        }
    }

    fn paths(&self) -> impl Iterator<Item = &PathBuf> {
        self.train.iter().chain(&self.tune).chain(&self.dev)
    }
}

impl Experiment {
    /// The model that detects mentions, and its file.
    fn detector(&self, root: &Path) -> canonym_core::Result<Option<(MultitaskBundle, Vec<u8>)>> {
        let Some(path) = &self.model.detector else { return Ok(None) };
        let (file, bytes) = crate::bundle::read_file(&existing(path, root))?;
        let bundle =
            MultitaskBundle::from_bytes(&bytes, &file).context("`model.detector` must be a multitask bundle")?;
        if !bundle.manifest.model.has(Task::Mentions) {
            let error = canonym_core::Error::invalid("`model.detector` does not detect mentions");
            return Err(error.with_hint("use a model with the task `mentions`"));
        }
        Ok(Some((bundle, bytes)))
    }
}

/// Record of the training documents, and of those that the checkpoint is selected on.
pub fn learned(experiment: &Experiment, root: &Path) -> canonym_core::Result<Learned> {
    let Parts { train, tune, dev } = read_corpora(&experiment.data.corpora(), experiment.seed, root)?;
    let chosen_on = if tune.is_empty() { &dev } else { &tune };
    let of = |documents: &[AnnotatedDocument]| of_documents(documents).into_iter().flatten().collect::<HashSet<u64>>();
    let (trained, tuned) = (of(&train), of(chosen_on));
    let mut all = Learned::default();
    for file in experiment.data.paths() {
        let prints = of_documents(&read(file, root)?);
        for (role, among) in [(Trained, &trained), (Tuned, &tuned)] {
            let prints = prints.iter().copied().filter(|print| print.is_some_and(|print| among.contains(&print)));
            all.add(source(SYSTEM, role, file, prints));
        }
    }
    Ok(all)
}

/// Initial settings, weights and splitter.
fn begin(
    experiment: &Experiment,
    arguments: &TrainOptions,
    classes: &Classes,
) -> canonym_core::Result<(MultitaskManifest, Parameters, Splitter)> {
    let EncoderConfig { bert, layers, train_embeddings, dropout, head_lr_multiplier, compute } = &experiment.encoder;
    let mut rng = for_step(experiment.seed, u64::MAX);
    let mut parameters = Parameters::default();
    let (mut config, pieces) = read_bert(&checkpoint_folder(bert, arguments)?, ENCODER, &mut parameters)?;
    if let Some(layers) = layers {
        for layer in *layers..config.num_hidden_layers {
            let names: Vec<String> = parameters.iter().map(|(name, _)| name.to_owned()).collect();
            let scope = format!("{ENCODER}layer.{layer}.");
            for name in names.iter().filter(|name| name.starts_with(&scope)) {
                parameters = parameters.without(name);
            }
        }
        config.num_hidden_layers = (*layers).min(config.num_hidden_layers);
    }
    config.compute = *compute;
    if let Some(dropout) = dropout {
        (config.hidden_dropout_prob, config.attention_probs_dropout_prob) = (*dropout, *dropout);
    }
    let ModelConfig { tasks, framing, lstm, crf, type_tags, max_pieces, .. } = &experiment.model;
    let model = MultitaskConfig {
        bert: config,
        tasks: tasks.clone(),
        framing: *framing,
        lstm: *lstm,
        crf: *crf,
        type_tags: *type_tags,
        max_pieces: *max_pieces,
        types: classes.types.clone(),
    };
    if model.has(Task::Types) && classes.types.is_empty() {
        let error = canonym_core::Error::invalid("the training corpora have no semantic types");
        return Err(error.with_hint("omit `types` in `model.tasks`"));
    }
    model.init(&mut parameters, classes.concepts.len(), &mut rng);
    model.check(&parameters, classes.concepts.len())?;
    let names: Vec<String> = parameters.iter().map(|(name, _)| name.to_owned()).collect();
    for name in names {
        if !name.starts_with(ENCODER) {
            parameters.lr_multiplier(&name, *head_lr_multiplier)?;
        } else if !train_embeddings && name.starts_with(&format!("{ENCODER}embedding.")) {
            parameters.freeze(&name)?;
        }
    }
    let BertRules { normalizer, longest_word } = pieces.rules().unwrap_or(BertRules::UNCASED);
    let manifest = MultitaskManifest {
        system: SYSTEM.to_owned(),
        format: FORMAT,
        model,
        normalizer,
        longest_word,
        min_score: 0.0,
        card: String::new(),
    };
    let splitter = Splitter::new(pieces, *max_pieces)?;
    Ok((manifest, parameters, splitter))
}

/// Training texts with labels.
fn examples(
    documents: &[AnnotatedDocument],
    splitter: &Splitter,
    classes: &Classes,
    model: &MultitaskConfig,
) -> (Vec<Example>, CorpusReport) {
    let mut report = CorpusReport { n_documents: documents.len(), ..CorpusReport::default() };
    let mut examples = Vec::with_capacity(documents.len());
    for document in documents {
        let hulls: Vec<Span> = document.annotations.iter().map(hull).collect();
        let reading = splitter.read(&document.document.text, &hulls);
        let (mut spans, n_inside) = classes.spans(document, &reading, None);
        report.n_mentions += document.annotations.len();
        report.n_inside_words += n_inside;
        report.n_discontinuous += document.annotations.iter().filter(|one| one.spans.len() > 1).count();
        report.n_sentences += reading.windows.len();
        report.n_cut += n_cut(&reading, model.max_pieces);
        // Of overlapping mentions the longest is kept.
        spans.sort_by_key(|span| (std::cmp::Reverse(span.last - span.first), span.first));
        let mut kept: Vec<GoldSpan> = Vec::with_capacity(spans.len());
        for span in spans {
            if kept.iter().all(|other| span.last < other.first || other.last < span.first) {
                kept.push(span);
            } else {
                report.n_overlapping += 1;
            }
        }
        examples.push(Example { labels: labels(&reading, kept, model), reading });
    }
    (examples, report)
}

/// Number of windows that are full, most of them because their sentence is longer than a window.
fn n_cut(reading: &Reading, max_pieces: usize) -> usize {
    reading.windows.iter().filter(|window| window.target.len() + 2 >= max_pieces).count()
}

fn labels(reading: &Reading, spans: Vec<GoldSpan>, model: &MultitaskConfig) -> TextLabels {
    let n = reading.words.len();
    let words: Vec<(usize, usize)> = spans.iter().map(|span| (span.first, span.last)).collect();
    let mentions = labels_of(n, &words);
    let (mut types, mut concepts) = (vec![Some(0); n], vec![Some(0); n]);
    for span in &spans {
        for word in span.first..=span.last {
            let tag = |class: u32| match model.has_type_tags() {
                true => tag_of(usize::from(mentions[word]), class as usize) as u32,
                false => class,
            };
            types[word] = span.class.map(tag);
            concepts[word] = span.concept;
        }
    }
    TextLabels { mentions, types, concepts, spans }
}

/// Held-out texts; types and concepts that the training documents lack count as misses.
fn held_out(documents: &[AnnotatedDocument], splitter: &Splitter, classes: &Classes) -> (Vec<HeldOut>, CorpusReport) {
    let mut report = CorpusReport { n_documents: documents.len(), ..CorpusReport::default() };
    let text = |document: &AnnotatedDocument| {
        let reading = splitter.read(&document.document.text, &[]);
        let (spans, n_unreachable) = classes.spans(document, &reading, Some(u32::MAX));
        report.n_mentions += document.annotations.len();
        report.n_inside_words += n_unreachable;
        report.n_sentences += reading.windows.len();
        HeldOut { reading, spans, n_unreachable }
    };
    (documents.iter().map(text).collect(), report)
}
