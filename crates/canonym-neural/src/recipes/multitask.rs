//! Trains the hierarchical multi-task tagger (Wiatrak and Iso-Sipila 2020), its single-task and multi-task variants, and the BiLSTM-CRF
//! baseline.

mod data;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Instant;

use canonym_core::corpus::AnnotatedDocument;
use canonym_core::error::Context;
use canonym_core::eval::learned::{Learned, Role::Trained, Role::Tuned, Seen};
use canonym_core::eval::matching::Score;
use canonym_core::text::Span;
use canonym_core::text::analysis::Analysis;
use serde::{Deserialize, Serialize};

use self::data::{Classes, CorpusReport, Labeller, gold_boundaries, recall_ceiling};
use super::TrainOptions;
use super::checkpoints::{checkpoint_folder, existing};
use super::dual_encoder::data::{DataConfig as Corpora, Parts, read_corpora};
use super::learned::{check_unseen, of_file, source};
use super::log::Log;
use super::run_folder::{REPORT, identity, provenance, to_json, write_run};
use super::settings::experiment_of;
use super::stage::{Stage, open_log, remove_kept};
use crate::bundle::multitask::{IDS, MultitaskBundle, MultitaskManifest, NameLinker, SYSTEM};
use crate::bundle::{FILE, FORMAT, NameEncoderBundle};
use crate::checkpoint::read_bert;
use crate::layers::lstm::BiLstmConfig;
use crate::models::multitask::infer::Labelled;
use crate::models::multitask::infer::MultitaskTagger;
use crate::models::multitask::tokenized::{Splitter, TokenizedText};
use crate::models::multitask::{CONCEPTS, ENCODER, Framing, LinkedSpans, MultitaskConfig, Task};
use crate::objectives::multitask::evaluate::{
    Evaluation, HeldOut, best_threshold, evaluation, gold_spans, label, linked_above,
};
use crate::objectives::multitask::{Multitask, MultitaskBatchConfig};
use crate::status;
use crate::system::lexical::Lexical;
use crate::tensor::matrix::Compute;
use crate::tensor::parameters::{Parameters, Precision};
use crate::tensor::random::for_step;
use crate::tokenizer::BertRules;
use crate::train::{RunConfig, Select};

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
    /// BERT checkpoint: a folder relative to the data root or to `CANONYM_MODELS`. Missing if `model.start` is set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    bert: Option<PathBuf>,
    /// Number of its layers that are used; with 0, wordpiece embeddings are the encoder, as in the BiLSTM-CRF baseline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    layers: Option<usize>,
    /// Whether wordpiece embeddings are trained.
    #[serde(default = "super::settings::yes")]
    train_embeddings: bool,
    /// Dropout; if missing, that of the checkpoint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    dropout: Option<f32>,
    /// Learning-rate multiplier of task encoders and heads.
    #[serde(default = "super::settings::one")]
    head_lr_multiplier: f32,
    /// Precision of matrix products.
    #[serde(default)]
    compute: Compute,
}

/// The tasks and what they read.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ModelConfig {
    /// A trained model of this kind that is trained further, relative to the current folder or the data root. Concepts that it lacks are
    /// added; tasks, layers and types are the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    start: Option<PathBuf>,
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
    /// Whether incomplete BILOU sequences are decoded as mentions.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    lenient: bool,
    /// Whether heads have a hidden layer.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    hidden_layer: bool,
    /// The mentions that are linked, per token.
    #[serde(default, skip_serializing_if = "LinkedSpans::is_default")]
    linked_spans: LinkedSpans,
    /// Whether links below a threshold are left out: the one with the highest strict F1 on the documents for selection. The paper has none.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    abstain: bool,
    /// Linker of names that is joined with the class probabilities when documents are linked: `lexical`, `default`, or a trained model of
    /// either kind, relative to the current folder or the data root, which becomes part of the bundle. The report is of the classes alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    name_linker: Option<String>,
    /// Maximum number of wordpieces of a sentence with its context.
    #[serde(alias = "max_pieces", default = "length")]
    max_wordpieces: usize,
    /// A trained model of this kind that detects mentions, for a model of spans that detects none; relative to the current folder or the
    /// data root. It becomes part of the bundle.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    detector: Option<PathBuf>,
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
    #[serde(skip_serializing_if = "Option::is_none")]
    dev: Option<CorpusReport>,
    /// The documents that the checkpoint is selected on: `tune`, or `dev`, whose scores are then optimistic; missing if nothing is selected.
    #[serde(skip_serializing_if = "Option::is_none")]
    selected_on: Option<&'static str>,
    /// Strict scores of each task on the held-out documents, with the mentions that the model finds.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    held_out: BTreeMap<&'static str, Score>,
    /// The same for a model that does not detect mentions, on the gold spans of the held-out documents.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    on_gold_spans: BTreeMap<&'static str, Score>,
    /// The same with the mentions of the detector, if there is one.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    with_detector: BTreeMap<&'static str, Score>,
    /// Threshold of links that was chosen on the documents for selection, for `model.abstain`.
    #[serde(skip_serializing_if = "Option::is_none")]
    threshold: Option<f32>,
    /// Strict score of concepts on the held-out documents without links below the threshold, with the mentions of the detector if there is
    /// one, and otherwise as above.
    #[serde(skip_serializing_if = "Option::is_none")]
    above_threshold: Option<Score>,
    /// Fraction of held-out words with the correct label, for tasks that label words.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    token_accuracy: BTreeMap<&'static str, f64>,
    /// Fraction of linked held-out mentions that have whole words and a concept that occurs in the training documents: the highest recall
    /// that the model can reach.
    #[serde(skip_serializing_if = "Option::is_none")]
    recall_ceiling: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    seen: Option<Seen>,
    seconds: BTreeMap<&'static str, f64>,
}

/// Runs an experiment.
pub fn run(arguments: &TrainOptions, table: toml::Table) -> canonym_core::Result<()> {
    let experiment: Experiment = experiment_of(arguments, table, "multitask")?;
    experiment.batch.check()?;
    let (root, out) = (arguments.root(), arguments.out.as_path());
    let started = Instant::now();
    let Parts { train, tune, dev } = read_corpora(&experiment.data.corpora(), experiment.seed, root)?;
    if train.iter().all(|document| document.annotations.is_empty()) {
        let error = canonym_core::Error::no_data("the training corpora have no mentions");
        return Err(error.with_hint("check `data.train`"));
    }
    experiment.check_abstention(&tune)?;
    let detector = experiment.detector(root)?;
    let start = experiment.start(root)?;
    let name_linker = experiment.name_linker(root)?;
    let mut record = learned(&experiment, root)?;
    if let Some(start) = &start {
        record.join("start", start.learned.as_ref());
    }
    let mut evaluated = record.clone();
    if let Some((detector, _)) = &detector {
        evaluated.join("mentions", detector.learned.as_ref());
    }
    let seen = check_unseen(&evaluated, &dev, ("held-out documents", arguments.allow_seen))?;
    let classes = match &start {
        Some(start) => Classes::beyond(&start.manifest.model.types, &start.ids()?, &train),
        None => Classes::beyond(&[], &[], &train),
    };
    let (manifest, parameters, splitter) = begin(&experiment, arguments, start.as_ref(), &classes)?;
    let model = manifest.model.clone();
    let labeller = Labeller { splitter: &splitter, classes: &classes, model: &model };
    let (examples, of_train) = (labeller.examples(&train), labeller.report(&train));
    // A model that does not detect mentions is evaluated on gold spans, whose boundaries are known.
    let boundaries =
        |documents: &[AnnotatedDocument]| if model.detects() { Vec::new() } else { gold_boundaries(documents) };
    let selected_on = match (tune.is_empty(), dev.is_empty()) {
        (true, true) => None,
        (is_dev, _) => experiment.selects().then_some(if is_dev { "dev" } else { "tune" }),
    };
    let tuned_on = labeller.held_out(&tune, &boundaries(&tune));
    let held = labeller.held_out(&dev, &boundaries(&dev));
    let n_weights = parameters.counts().0;
    let n_concepts = classes.concepts.len();
    status::say(&format!(
        "{n_weights} weights; {n_concepts} concepts and {} types; {} sentences with {} mentions",
        classes.types.len(),
        of_train.n_sentences,
        of_train.n_mentions
    ));
    match selected_on {
        Some("dev") => {
            status::say(
                "warning: the checkpoint is selected on `data.dev`, so its scores are optimistic; set `data.tune_share`",
            );
        }
        Some(part) => status::say(&format!("the checkpoint is selected on `data.{part}`")),
        None => {}
    }
    let mut seconds = BTreeMap::from([("prepare", started.elapsed().as_secs_f64())]);

    let watched = if tuned_on.is_empty() { &held } else { &tuned_on };
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
        manifest: MultitaskManifest { name_linker: name_linker.as_ref().map(|(kind, _)| *kind), ..manifest },
        parameters,
        tokenizer: splitter.tokenizer().clone(),
        fingerprint: 0,
        learned: Some(record),
    };
    bundle
        .parameters
        .add_table(IDS, classes.concepts.iter().flat_map(|id| [id, "\n"]).collect::<String>().into_bytes());
    // Evaluates the model as written, with f16 weights.
    bundle = MultitaskBundle::from_bytes(&bundle.to_bytes(Precision::Half)?, &out.join(FILE))?;
    let evaluation_started = Instant::now();
    let mut report = Report {
        seed: experiment.seed,
        n_weights,
        n_types: classes.types.len(),
        n_concepts,
        train: of_train,
        dev: (!dev.is_empty()).then(|| labeller.report(&dev)),
        selected_on,
        held_out: BTreeMap::new(),
        on_gold_spans: BTreeMap::new(),
        with_detector: BTreeMap::new(),
        threshold: None,
        above_threshold: None,
        token_accuracy: BTreeMap::new(),
        recall_ceiling: model.has(Task::Concepts).then(|| recall_ceiling(&labeller.held_out(&dev, &[]))).flatten(),
        seen,
        seconds,
    };
    let tagger = bundle.tagger()?;
    let labelled = |held: &[HeldOut]| {
        let given = (!model.detects()).then(|| gold_spans(held));
        label(&tagger, held, given.as_deref())
    };
    let detector_of = |documents| match &detector {
        Some((detector, _)) => label_detected(detector, &tagger, &labeller, documents).map(Some),
        None => Ok(None),
    };
    if experiment.model.abstain {
        let threshold = match detector_of(&tune)? {
            Some((held_out, found)) => best_threshold(&held_out, &found),
            None => best_threshold(&tuned_on, &labelled(&tuned_on)?),
        };
        (report.threshold, bundle.manifest.min_score) = (Some(threshold), threshold);
    }
    if !held.is_empty() {
        status::say("held-out documents …");
        let found = labelled(&held)?;
        let evaluated = evaluation(&model.tasks, &held, &found, !model.detects());
        let by_task = if model.detects() { &mut report.held_out } else { &mut report.on_gold_spans };
        *by_task = scores(&evaluated);
        if let Some(ceiling) = report.recall_ceiling {
            let percent = 100.0 * ceiling;
            status::say(&format!(
                "{percent:.1} % of the linked held-out mentions have a concept that occurs in training"
            ));
        }
        report.token_accuracy = evaluated.token_accuracy.iter().map(|(task, share)| (task.name(), *share)).collect();
        let mut linked = (held, found);
        if let Some((held_out, found)) = detector_of(&dev)? {
            report.with_detector = scores(&evaluation(&model.tasks, &held_out, &found, true));
            linked = (held_out, found);
        }
        report.above_threshold =
            report.threshold.map(|threshold| linked_above(&linked.0, &linked.1, threshold).score());
    }
    report.seconds.insert("evaluate", evaluation_started.elapsed().as_secs_f64());
    if let Some((_, bytes)) = detector {
        bundle = bundle.with_detector(bytes);
    }
    if let Some((_, Some(bytes))) = name_linker {
        bundle = bundle.with_name_linker(bytes);
    }
    let (model, report) = (bundle.to_bytes(Precision::Half)?, to_json(&report)?);
    write_run(out, &experiment, &provenance, &[(FILE, &model), (REPORT, report.as_bytes())])?;
    remove_kept(out, &[STAGE])
}

fn scores(evaluation: &Evaluation) -> BTreeMap<&'static str, Score> {
    evaluation.counts.iter().map(|(task, counts)| (task.name(), counts.score())).collect()
}

/// Documents with the labels of the mentions that another model finds, which reads the texts with its own tokenizer.
fn label_detected(
    detector: &MultitaskBundle,
    tagger: &MultitaskTagger,
    labeller: &Labeller<'_>,
    documents: &[AnnotatedDocument],
) -> canonym_core::Result<(Vec<HeldOut>, Vec<Labelled>)> {
    let detector = detector.tagger()?;
    let texts: Vec<TokenizedText> =
        documents.iter().map(|document| detector.splitter().read(&Analysis::new(&document.document), &[])).collect();
    let detected = detector.label(&texts, None)?;
    let spans = texts.iter().zip(&detected).map(|(text, found)| {
        found.mention_spans.iter().map(|found| text.span(found.span.first, found.span.last)).collect()
    });
    let spans: Vec<Vec<Span>> = spans.collect();
    // As when documents are linked, detected boundaries are word boundaries.
    let held_out = labeller.held_out(documents, &spans);
    let (mut words, mut p_mentions) = (Vec::new(), Vec::new());
    for ((held_out, spans), detected) in held_out.iter().zip(&spans).zip(&detected) {
        let each = spans.iter().zip(&detected.mention_spans);
        let inside = each.filter_map(|(span, found)| Some((held_out.text.words_in(*span)?, found.p_mention)));
        let (of_words, of_mentions): (Vec<(usize, usize)>, Vec<f32>) = inside.unzip();
        words.push(of_words);
        p_mentions.push(of_mentions);
    }
    let mut found = label(tagger, &held_out, Some(&words))?;
    for (found, p_mentions) in found.iter_mut().zip(p_mentions) {
        found.concept_spans.iter_mut().zip(p_mentions).for_each(|(span, p_mention)| span.p_mention = p_mention);
    }
    Ok((held_out, found))
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
    /// Whether evaluations select a checkpoint or end the run.
    fn selects(&self) -> bool {
        let RunConfig { evaluate_every, patience, select, .. } = self.run;
        evaluate_every > 0 && (select == Select::Best || patience > 0)
    }

    /// Refuses a threshold without concepts, or without documents that it can be chosen on.
    fn check_abstention(&self, tune: &[AnnotatedDocument]) -> canonym_core::Result<()> {
        if !self.model.abstain {
            return Ok(());
        }
        if !self.model.tasks.contains(&Task::Concepts) {
            let error = canonym_core::Error::config("`model.abstain` needs the task `concepts`");
            return Err(error.with_hint("omit `model.abstain`, or add the task"));
        }
        if tune.is_empty() {
            let error = canonym_core::Error::config("`model.abstain` needs documents that the threshold is chosen on");
            return Err(error.with_hint("set `data.tune_share = 10`, or name corpora in `data.tune`"));
        }
        Ok(())
    }

    /// The model that is trained further.
    fn start(&self, root: &Path) -> canonym_core::Result<Option<MultitaskBundle>> {
        if self.model.start.is_some() == self.encoder.bert.is_some() {
            let error = canonym_core::Error::config("set exactly one of `encoder.bert` and `model.start`");
            return Err(
                error.with_hint("`encoder.bert` is for a new model, `model.start` continues the training of another")
            );
        }
        let opened = |path| MultitaskBundle::open(&existing(path, root));
        self.model.start.as_deref().map(opened).transpose().context("cannot open `model.start`")
    }

    /// The linker of names, and its weights unless they are embedded.
    fn name_linker(&self, root: &Path) -> canonym_core::Result<Option<(NameLinker, Option<Vec<u8>>)>> {
        let Some(name) = self.model.name_linker.as_deref() else { return Ok(None) };
        if !self.model.tasks.contains(&Task::Concepts) {
            let error = canonym_core::Error::config("`model.name_linker` needs the task `concepts`");
            return Err(error.with_hint("omit `model.name_linker`, or add the task"));
        }
        let path = match name {
            "lexical" => return Ok(Some((NameLinker::Lexical, None))),
            "default" => return Ok(Some((NameLinker::Default, None))),
            path => existing(Path::new(path), root),
        };
        let context = "cannot open `model.name_linker`";
        if path.is_file() || path.join(FILE).exists() {
            let (file, bytes) = crate::bundle::read_file(&path).context(context)?;
            NameEncoderBundle::from_bytes(&bytes, &file).context(context)?;
            return Ok(Some((NameLinker::Default, Some(bytes))));
        }
        let json = Lexical::open_ranking(&path).context(context)?;
        Ok(Some((NameLinker::Lexical, Some(json.into_bytes()))))
    }

    /// The model that detects mentions, and its file.
    fn detector(&self, root: &Path) -> canonym_core::Result<Option<(MultitaskBundle, Vec<u8>)>> {
        let Some(path) = &self.model.detector else { return Ok(None) };
        if self.model.framing == Framing::Token || self.model.tasks.contains(&Task::Mentions) {
            let error =
                canonym_core::Error::config("`model.detector` has no effect: the model detects mentions itself");
            return Err(error
                .with_hint("omit `model.detector`, or set `model.framing = \"entity\"` and omit the task `mentions`"));
        }
        let (file, bytes) = crate::bundle::read_file(&existing(path, root))?;
        let bundle =
            MultitaskBundle::from_bytes(&bytes, &file).context("`model.detector` must be a multitask bundle")?;
        if !bundle.manifest.model.has(Task::Mentions) {
            let error = canonym_core::Error::config("`model.detector` does not detect mentions");
            return Err(error.with_hint("use a model with the task `mentions`"));
        }
        if bundle.has_detector() {
            let error = canonym_core::Error::config("`model.detector` contains another detector");
            return Err(error.with_hint("train the detector without `model.detector`"));
        }
        Ok(Some((bundle, bytes)))
    }
}

/// Record of the training documents, and of those that the checkpoint is selected on.
pub fn learned(experiment: &Experiment, root: &Path) -> canonym_core::Result<Learned> {
    let Parts { train, tune, dev } = read_corpora(&experiment.data.corpora(), experiment.seed, root)?;
    let chosen_on = if tune.is_empty() { &dev } else { &tune };
    let chooses = experiment.selects() || experiment.model.abstain;
    let tuned = if chooses { chosen_on.as_slice() } else { &[] };
    let mut all = Learned::default();
    for file in experiment.data.paths() {
        for (role, documents) in [(Trained, train.as_slice()), (Tuned, tuned)] {
            all.add(source(SYSTEM, role, file, of_file(file, root, documents)?));
        }
    }
    Ok(all)
}

/// Initial settings, weights and splitter.
fn begin(
    experiment: &Experiment,
    arguments: &TrainOptions,
    start: Option<&MultitaskBundle>,
    classes: &Classes,
) -> canonym_core::Result<(MultitaskManifest, Parameters, Splitter)> {
    let EncoderConfig { bert, layers, train_embeddings, dropout, head_lr_multiplier, compute } = &experiment.encoder;
    let mut rng = for_step(experiment.seed, u64::MAX);
    let mut parameters = Parameters::default();
    let (mut config, tokenizer) = match start {
        Some(start) => {
            // The concept head gets more rows.
            let known = start.parameters.iter().filter(|(name, _)| *name != CONCEPTS);
            known.for_each(|(name, value)| parameters.add(name, value.clone()));
            (start.manifest.model.bert.clone(), start.tokenizer.clone())
        }
        None => {
            let bert = bert.as_deref().expect("set if there is no `model.start`, as `Experiment::start` checks");
            read_bert(&checkpoint_folder(bert, arguments)?, ENCODER, &mut parameters)?
        }
    };
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
    let ModelConfig {
        tasks, framing, lstm, crf, type_tags, lenient, hidden_layer, linked_spans, max_wordpieces, ..
    } = &experiment.model;
    let model = MultitaskConfig {
        bert: config,
        tasks: tasks.clone(),
        framing: *framing,
        lstm: *lstm,
        crf: *crf,
        type_tags: *type_tags,
        lenient: *lenient,
        hidden_layer: *hidden_layer,
        linked_spans: *linked_spans,
        max_wordpieces: *max_wordpieces,
        types: classes.types.clone(),
    };
    if model.has(Task::Types) && classes.types.is_empty() {
        let error = canonym_core::Error::no_data("the training corpora have no semantic types");
        return Err(error.with_hint("omit `types` in `model.tasks`"));
    }
    if let Some(start) = start {
        let MultitaskConfig { bert, lenient, linked_spans, max_wordpieces, .. } = model.clone();
        let same = MultitaskConfig { bert, lenient, linked_spans, max_wordpieces, ..start.manifest.model.clone() };
        if model != same {
            let error = canonym_core::Error::config("`model` differs from the model in `model.start`");
            return Err(
                error.with_hint("tasks, framing, layers and semantic types must be the same; only concepts are added")
            );
        }
    }
    model.init(&mut parameters, classes.concepts.len(), &mut rng);
    if let Some(known) = start.and_then(|start| start.parameters.get(CONCEPTS).ok()) {
        let row = parameters.find(CONCEPTS)?;
        parameters.at_mut(row).values[..known.values.len()].copy_from_slice(&known.values);
    }
    model.check(&parameters, classes.concepts.len())?;
    let names: Vec<String> = parameters.iter().map(|(name, _)| name.to_owned()).collect();
    for name in names {
        if !name.starts_with(ENCODER) {
            parameters.lr_multiplier(&name, *head_lr_multiplier)?;
        } else if !train_embeddings && name.starts_with(&format!("{ENCODER}embedding.")) {
            parameters.freeze(&name)?;
        }
    }
    let BertRules { normalizer, longest_word } = tokenizer.rules().unwrap_or(BertRules::UNCASED);
    let manifest = MultitaskManifest {
        system: SYSTEM.to_owned(),
        format: FORMAT,
        model,
        normalizer,
        longest_word,
        min_score: 0.0,
        name_linker: None,
        card: String::new(),
    };
    let splitter = Splitter::new(tokenizer, *max_wordpieces)?;
    Ok((manifest, parameters, splitter))
}
