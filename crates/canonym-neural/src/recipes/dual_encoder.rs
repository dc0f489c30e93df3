//! Recipe of the dual encoder on a BERT checkpoint.

pub(super) mod data;
mod evaluate;
mod joint;

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

pub use crate::bundle::dual_encoder::SYSTEM;
use crate::bundle::dual_encoder::{ConceptNames, DualBundle, DualManifest};
use crate::bundle::{FILE, FORMAT, NameEncoderBundle};
use crate::checkpoint::read_bert;
use crate::models::cross_encoder::context::{BEGIN, END, ENTITY, add_tokens};
use crate::models::dual_encoder::windows::{WindowConfig, Windower};
use crate::models::dual_encoder::{DualEncoderConfig, ENDS, MentionVector, NAME, NameVector, SPANS, SpanSearch, TEXT};
use crate::models::fusion::Fusion;
use crate::objectives::Names;
use crate::objectives::linking::{Linking, LinkingConfig, Target, TrainingText};
use crate::objectives::ranks::{RankMetrics, ranks};
use crate::system::concept_rows::ConceptRows;
use crate::tensor::matrix::Compute;
use crate::tensor::parameters::{Parameters, Precision};
use crate::tensor::random::{SplitMix64, for_step};
use crate::tokenizer::BertRules;
use crate::train::RunConfig;
use canonym_core::error::Context;
use canonym_core::eval::ids::{IdSet, known_ids};
use canonym_core::eval::learned::{Learned, Role::Trained, Role::Tuned, Seen};
use canonym_core::kb::KnowledgeBase;
use canonym_core::link::model::LexicalModel;
use serde::{Deserialize, Serialize};

use self::data::{Corpus, CorpusReport, DataConfig, Parts, ids_of, labels_of, prepare, read_corpora, with_synonyms};
use self::evaluate::{Measured, SearchReport, Tuning, evaluate, measure};
use self::joint::JointReport;
use super::TrainOptions;
use super::adapt::mention_prior_of;
use super::checkpoints::{checkpoint_folder, existing};
use super::learned::{self, check_unseen};
use super::run_folder::{REPORT, identity, provenance, to_json, write_run};
use super::settings::experiment_of;
use super::stage::{Stage, open_log, remove_kept};
use crate::status;
use crate::system::LinkingModel;
use crate::system::dual_encoder::model::dual_vectors;
use crate::system::lexical::{LEXICAL_PART, lexical_learned};
use crate::system::linked::MentionSource;
use crate::system::names::PipelineModel;
use crate::system::terminology::TERMINOLOGY;
use canonym_core::eval::unknown::unknown;

/// An experiment.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Experiment {
    system: String,
    seed: u64,
    data: DataConfig,
    encoder: EncoderConfig,
    /// If missing, that of the bundle that is fine-tuned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    model: Option<ModelConfig>,
    /// If missing, those of the bundle that is fine-tuned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    windows: Option<WindowConfig>,
    #[serde(default)]
    batch: LinkingConfig,
    #[serde(default)]
    run: RunConfig,
    #[serde(default, rename = "held_out", skip_serializing_if = "EvaluationConfig::is_default")]
    evaluation: EvaluationConfig,
}

/// How held-out documents are evaluated.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct EvaluationConfig {
    /// Mention detector for a model that detects none: a bundle, relative to the current folder or the data root, that was not trained on
    /// the held-out documents; `none` evaluates given mentions only. If missing, the embedded model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    mentions: Option<String>,
}

impl EvaluationConfig {
    fn is_default(&self) -> bool {
        *self == EvaluationConfig::default()
    }
}

/// Initialisation of both encoders.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct EncoderConfig {
    /// BERT checkpoint: a folder relative to the data root or to `CANONYM_MODELS`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    bert: Option<PathBuf>,
    /// Instead of a checkpoint, the run folder of a dual encoder to fine-tune; relative to the current folder or the data root.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    from: Option<PathBuf>,
    /// Whether wordpiece embeddings are trained.
    #[serde(default = "super::settings::yes")]
    train_embeddings: bool,
    /// Whether the name encoder is trained. If it is frozen, `batch.all_names` costs little.
    #[serde(default = "super::settings::yes")]
    train_names: bool,
    /// Dropout; if missing, that of the checkpoint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    dropout: Option<f32>,
    /// Run folder of a name encoder, such as ResCNN, to use as name scorer; relative to the current folder or the data root. If missing,
    /// the name scorer of `from` is kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    name_encoder: Option<PathBuf>,
    /// Learning-rate multiplier of layers that are not in the checkpoint.
    #[serde(alias = "head_pace", default = "super::settings::one")]
    head_lr_multiplier: f32,
    /// Layer-wise learning-rate decay: the multiplier of a layer relative to the layer above it.
    #[serde(default = "super::settings::one")]
    layer_decay: f32,
    /// Precision of matrix products; if missing, that of the model that is fine-tuned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    compute: Option<Compute>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct ModelConfig {
    mention: MentionVector,
    name: NameVector,
    #[serde(skip_serializing_if = "Option::is_none")]
    search: Option<SpanSearch>,
}

/// Report of a run.
#[derive(Debug, Serialize)]
struct Report {
    seed: u64,
    n_weights: usize,
    n_concepts: usize,
    n_names: usize,
    train: CorpusReport,
    dev: CorpusReport,
    /// Linking of given held-out mentions among all concepts, by embeddings alone.
    linking: Option<RankMetrics>,
    /// The same for mentions whose concept occurs in the training set, and for the others.
    linking_seen: Option<RankMetrics>,
    linking_unseen: Option<RankMetrics>,
    /// Accuracy@1 of lexical and of hybrid linking.
    fused: BTreeMap<&'static str, f64>,
    /// Accuracy by weight of the dense score.
    by_weight: Vec<(f32, f64)>,
    /// Accuracy by weight of the name scorer, if there is one, at the selected dense weight.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    by_name_weight: Vec<(f32, f64)>,
    /// Accuracy by one-sense-per-discourse weight, with lexical fusion if the model has it.
    by_one_sense_weight: Vec<(f32, f64)>,
    /// Detection and linking of held-out mentions.
    search: Option<SearchReport>,
    /// Linking of mentions detected by another model, if this one detects none.
    search_by_default_model: Option<JointReport>,
    /// The set that settings were selected on and that the scores above refer to: `dev`, or `tune` if there is such a split.
    chosen_on: &'static str,
    /// Scores on held-out documents that nothing was selected on, if there is a `tune` split.
    #[serde(skip_serializing_if = "Option::is_none")]
    held_out: Option<Measured>,
    /// Held-out documents that a part of the system was trained or tuned on.
    #[serde(skip_serializing_if = "Option::is_none")]
    seen: Option<Seen>,
    seconds: BTreeMap<&'static str, f64>,
}

/// Reports how many mentions have a concept that the terminology lacks; if none is known, training is not possible.
fn check_known(part: &str, corpus: &Corpus, kb: &KnowledgeBase, is_needed: bool) -> canonym_core::Result<()> {
    let CorpusReport { n_mentions, n_nil, n_unknown, .. } = corpus.report;
    let n_linked = n_mentions - n_nil;
    let annotations = corpus.documents.iter().flat_map(|document| &document.annotations);
    let sets: Vec<IdSet> = annotations.map(|annotation| IdSet::parse(&annotation.ids)).collect();
    let ids = kb.concepts().flat_map(|concept| {
        let own = [kb.id(concept).to_owned(), kb.raw_id(concept)];
        own.into_iter().chain(kb.alternative_ids(concept).map(str::to_owned))
    });
    let ids: Vec<String> = ids.collect();
    let known = known_ids(ids.iter().map(String::as_str));
    let what = format!("{part} mentions");
    if let Some(unknown) = unknown(&what, sets.iter(), &known) {
        unknown.lines("the terminology").iter().for_each(|line| status::say(line));
    }
    if n_unknown < n_linked || !is_needed {
        return Ok(());
    }
    let of_corpus = corpus.documents.iter().flat_map(|document| &document.annotations).flat_map(ids_of).next();
    let of_kb = kb.concepts().next().map(|concept| kb.id(concept));
    let shown = format!("such as `{}`, the terminology such as `{}`", of_corpus.unwrap_or("-1"), of_kb.unwrap_or(""));
    let error = canonym_core::Error::no_data("no mention has a concept of the terminology");
    Err(error.with_hint(format!("use the same kind of ids: the corpora have ids {shown}")))
}

/// File of the terminology until the model is complete.
const NEW_TERMINOLOGY: &str = "terminology.new.kb";

/// Name of its single training stage.
const STAGE: &str = "train";

/// Runs an experiment.
pub fn run(arguments: &TrainOptions, table: toml::Table) -> canonym_core::Result<()> {
    let experiment: Experiment = experiment_of(arguments, table, "dual-encoder")?;
    let (root, out) = (arguments.root(), arguments.out.as_path());
    let started = Instant::now();
    let mut seconds = BTreeMap::new();
    status::say("reading checkpoint, terminology and corpora …");
    let Parts { train, tune, dev } = read_corpora(&experiment.data, experiment.seed, root)
        .with_context(|| format!("cannot read `data.train` or `data.dev` below the data root {}", root.display()))?;
    if experiment.run.n_steps == 0 && dev.is_empty() && tune.is_empty() {
        let error = canonym_core::Error::config("nothing to do: no training steps and no held-out documents");
        return Err(error.with_hint("set `data.dev`, or increase `run.n_steps`"));
    }
    let record = learned(&experiment, root)?;
    let detector = detector(&experiment.evaluation, root)?;
    let Beginning { manifest, windower, parameters } = begin(&experiment, arguments)?;
    let mut of_judging = record.clone();
    if let Some(detector) = detector.as_ref().filter(|_| manifest.model.search.is_none()) {
        of_judging.join("mentions", Some(&detector.learned(MentionSource::Detect)?));
    }
    let seen = check_unseen(&of_judging, &dev, ("held-out documents", arguments.allow_seen))?;
    // The terminology of an existing model is kept until the new one is complete.
    let new_terminology = out.join(NEW_TERMINOLOGY);
    let kb = experiment.data.compile(root, &new_terminology, &train)?;
    let (model, concepts) = (manifest.model.clone(), manifest.concepts);
    let rows = ConceptRows::of(&kb, concepts);
    let labels = labels_of(&kb);
    let names = Names {
        input_ids: rows.texts(&kb, concepts, &windower),
        concepts: rows.concepts.iter().map(|concept| vec![concept.0]).collect(),
    };
    let name_replay = with_synonyms(names.clone(), &experiment.data.synonyms, root, out, &windower, &labels)?;
    let longest = match model.search {
        Some(SpanSearch::Exhaustive { longest }) => longest,
        Some(SpanSearch::Tags) | None => usize::MAX,
    };
    let train = prepare(train, &windower, &labels, longest)?;
    let tune = prepare(tune, &windower, &labels, longest)?;
    let dev = prepare(dev, &windower, &labels, longest)?;
    if experiment.run.n_steps > 0 && train.report.n_mentions == 0 {
        let error = canonym_core::Error::no_data("the training corpora have no mentions");
        return Err(error.with_hint("check `data.train`"));
    }
    check_known("training", &train, &kb, experiment.run.n_steps > 0)?;
    check_known("held-out", &dev, &kb, false)?;
    seconds.insert("prepare", started.elapsed().as_secs_f64());
    status::say(&format!(
        "{} weights; {} names; {} windows with {} mentions",
        parameters.counts().0,
        names.input_ids.len(),
        train.training_texts.len(),
        train.report.n_mentions
    ));

    let provenance = provenance(experiment.data.paths().collect(), root)?;
    let watched = match tune.documents.is_empty() {
        true => dev.of_first(experiment.data.n_dev_in_training),
        false => &tune.training_texts,
    };
    let n_weights = parameters.counts().0;
    let mut bundle = DualBundle {
        manifest,
        parameters,
        tokenizer: windower.tokenizer.clone(),
        fingerprint: 0,
        learned: Some(record),
    };
    if let Some(path) = &experiment.encoder.name_encoder {
        bundle = bundle.with_name_encoder(&NameEncoderBundle::open(&existing(path, root))?)?;
    }
    if experiment.data.mention_prior {
        bundle = bundle.with_mention_prior(&mention_prior_of(&train.documents));
    }
    let mut objective = Linking::new(&model, experiment.batch, &train.training_texts, &names, experiment.seed)
        .with_held_out(watched)
        .with_name_replay(&name_replay);
    if !experiment.encoder.train_names {
        objective = objective.with_encoded(&bundle.parameters, dual_vectors(&kb, &bundle)?);
    }
    let of = identity(&experiment, &provenance)?;
    let stage = Stage { name: STAGE, config: experiment.run, seed: experiment.seed, out, of: &of };
    let mut log = open_log(out, &[STAGE])?;
    let train_started = Instant::now();
    bundle.parameters = stage.train(bundle.parameters, &mut objective, train.training_texts.len(), &mut log)?;
    seconds.insert("train", train_started.elapsed().as_secs_f64());

    // Evaluates the model as written, with f16 weights.
    bundle = DualBundle::from_bytes(&bundle.to_bytes(Precision::Half)?, &out.join(FILE))?;
    let evaluation_started = Instant::now();
    let mut report = Report {
        seed: experiment.seed,
        n_weights,
        n_concepts: kb.n_concepts(),
        n_names: names.input_ids.len(),
        linking: None,
        linking_seen: None,
        linking_unseen: None,
        fused: BTreeMap::new(),
        by_weight: Vec::new(),
        by_name_weight: Vec::new(),
        by_one_sense_weight: Vec::new(),
        search: None,
        search_by_default_model: None,
        chosen_on: if tune.documents.is_empty() { "dev" } else { "tune" },
        held_out: None,
        seen,
        train: train.report,
        dev: dev.report,
        seconds,
    };
    if !dev.training_texts.is_empty() {
        status::say("held-out documents …");
        let encoder = bundle.encoder()?;
        let vectors = dual_vectors(&kb, &bundle)?;
        let all = ranks(&encoder, &vectors, &dev.training_texts, &names)?;
        let (seen, unseen) = apart(&all, &dev.training_texts, &train.training_texts);
        report.linking = Some(RankMetrics::of(&all));
        (report.linking_seen, report.linking_unseen) = (Some(RankMetrics::of(&seen)), Some(RankMetrics::of(&unseen)));
    }
    let chosen_on = if tune.documents.is_empty() { &dev.documents } else { &tune.documents };
    if !chosen_on.is_empty() {
        let lexical_fusion = experiment.data.lexical_fusion.unwrap_or(bundle.manifest.fusion.lexical != 0.0);
        let vectors = dual_vectors(&kb, &bundle)?;
        let tuning = Tuning { documents: chosen_on, labels: &labels, lexical_fusion, detector: detector.as_deref() };
        evaluate(&mut bundle, &kb, &vectors, &tuning, &mut report)?;
    }
    if !tune.documents.is_empty() && !dev.documents.is_empty() {
        report.held_out = Some(measure(&bundle, &kb, &dev.documents, detector)?);
    }
    report.seconds.insert("evaluate", evaluation_started.elapsed().as_secs_f64());
    if new_terminology.exists() {
        std::fs::rename(&new_terminology, out.join(TERMINOLOGY))
            .map_err(|error| canonym_core::Error::io("rename", &new_terminology, error))?;
    }
    let (model, report) = (bundle.to_bytes(Precision::Half)?, to_json(&report)?);
    write_run(out, &experiment, &provenance, &[(FILE, &model), (REPORT, report.as_bytes())])?;
    remove_kept(out, &[STAGE])
}

/// The mention detector for a model that detects none; `None` if detection is not evaluated.
fn detector(config: &EvaluationConfig, root: &Path) -> canonym_core::Result<Option<Arc<dyn LinkingModel>>> {
    let model = match config.mentions.as_deref() {
        None => PipelineModel::embedded()?,
        Some("none") => return Ok(None),
        Some(path) => {
            let bundle = NameEncoderBundle::open(&existing(Path::new(path), root))
                .context("`held_out.mentions` must be a bundle that detects mentions, or `none`")?;
            PipelineModel::new(Arc::new(bundle))?
        }
    };
    Ok(Some(Arc::new(model)))
}

/// Record of the training documents, and of those that checkpoint, weights and thresholds are selected on.
pub fn learned(experiment: &Experiment, root: &Path) -> canonym_core::Result<Learned> {
    let Experiment { data, encoder, .. } = experiment;
    let Parts { train, tune, dev } = read_corpora(data, experiment.seed, root)?;
    let chosen_on = if tune.is_empty() { &dev } else { &tune };
    let mut all = Learned::default();
    match &encoder.from {
        Some(from) => {
            all.join_whole(SYSTEM, DualBundle::open(&existing(from, root))?.learned.as_ref());
            if !chosen_on.is_empty() {
                // Selections of the earlier model are replaced.
                all.sources.retain(|source| source.part != SYSTEM || source.role == Trained);
            }
        }
        None => all.join(LEXICAL_PART, lexical_learned()?.as_ref()),
    }
    for file in data.train.iter().chain(&data.tune).chain(&data.dev) {
        for (role, documents) in [(Trained, &train), (Tuned, chosen_on)] {
            all.add(learned::source(SYSTEM, role, file, learned::of_file(file, root, documents)?));
        }
    }
    if let Some(path) = &encoder.name_encoder {
        let name_encoder = NameEncoderBundle::open(&existing(path, root))?.without_tagger();
        all.join("name encoder", name_encoder.learned.as_ref());
    }
    Ok(all)
}

/// Splits the ranks of mentions by whether one of their concepts occurs in `known`.
fn apart(
    ranks: &[Option<usize>],
    training_texts: &[TrainingText],
    known: &[TrainingText],
) -> (Vec<Option<usize>>, Vec<Option<usize>>) {
    let concepts = known.iter().flat_map(|window| &window.mentions).flat_map(|target| &target.concepts);
    let known: HashSet<u32> = concepts.copied().collect();
    let targets = training_texts.iter().flat_map(|window| &window.mentions).filter(|target| target.is_linked);
    let is_known = |target: &Target| target.concepts.iter().any(|concept| known.contains(concept));
    let (mut seen, mut unseen) = (Vec::new(), Vec::new());
    for (target, rank) in targets.zip(ranks) {
        if is_known(target) { &mut seen } else { &mut unseen }.push(*rank);
    }
    (seen, unseen)
}

/// Initial model and windower: both encoders from a checkpoint, or everything from a bundle.
fn begin(experiment: &Experiment, arguments: &TrainOptions) -> canonym_core::Result<Beginning> {
    let EncoderConfig {
        bert,
        from,
        train_embeddings,
        train_names,
        dropout,
        head_lr_multiplier,
        layer_decay,
        compute,
        ..
    } = &experiment.encoder;
    let mut rng = for_step(experiment.seed, u64::MAX);
    let Beginning { mut manifest, windower, mut parameters } = match (bert, from) {
        (Some(bert), None) => of_checkpoint(experiment, &checkpoint_folder(bert, arguments)?, &mut rng)?,
        (None, Some(from)) => of_bundle(experiment, &existing(from, arguments.root()))?,
        _ => {
            let error = canonym_core::Error::config("`encoder` must name exactly one initial model");
            let hint = "set `encoder.bert`, a BERT checkpoint, or `encoder.from`, a trained dual encoder";
            return Err(error.with_hint(hint));
        }
    };
    manifest.concepts = experiment.data.concepts.unwrap_or(manifest.concepts);
    manifest.one_sense_weight = experiment.data.one_sense_weight.unwrap_or(manifest.one_sense_weight);
    let model = &mut manifest.model;
    model.bert.compute = compute.unwrap_or(model.bert.compute);
    if let Some(dropout) = dropout {
        (model.bert.hidden_dropout_prob, model.bert.attention_probs_dropout_prob) = (*dropout, *dropout);
    }
    model.init(&mut parameters, &mut rng);
    model.check(&parameters)?;
    let n_layers = model.bert.num_hidden_layers;
    let all: Vec<String> = parameters.iter().map(|(name, _)| name.to_owned()).collect();
    for name in all {
        let inner = name.strip_prefix(TEXT).or_else(|| name.strip_prefix(NAME));
        let below = match inner.map(|inner| (inner, inner.strip_prefix("layer."))) {
            Some((_, Some(rest))) => {
                let layer: usize = rest.split('.').next().and_then(|layer| layer.parse().ok()).unwrap_or(0);
                n_layers - 1 - layer
            }
            Some((inner, None)) if inner.starts_with("embedding.") => n_layers,
            _ => 0,
        };
        let is_head = [ENDS, SPANS].iter().any(|head| name.starts_with(&format!("{head}.")));
        let lr_multiplier = if is_head { *head_lr_multiplier } else { layer_decay.powi(below as i32) };
        parameters.lr_multiplier(&name, lr_multiplier)?;
        let is_embedding = inner.is_some_and(|inner| inner.starts_with("embedding."));
        if (!train_embeddings && is_embedding) || (!train_names && name.starts_with(NAME)) {
            parameters.freeze(&name)?;
            // Frozen weights are stored as f16, and so are the name embeddings that models share.
            parameters.round(&name)?;
        }
    }
    Ok(Beginning { manifest, windower, parameters })
}

/// Initial state of a training.
struct Beginning {
    /// Settings; evaluation on held-out documents fills in some of them.
    manifest: DualManifest,
    /// The windower.
    windower: Windower,
    parameters: Parameters,
}

fn of_checkpoint(experiment: &Experiment, folder: &Path, rng: &mut SplitMix64) -> canonym_core::Result<Beginning> {
    let mut parameters = Parameters::default();
    let (mut config, mut tokenizer) = read_bert(folder, TEXT, &mut parameters)?;
    read_bert(folder, NAME, &mut parameters)?;
    let windows = experiment.windows.unwrap_or_default();
    if windows.marked {
        let (mut of_names, mut same) = (config.clone(), tokenizer.clone());
        let described = experiment.data.concepts == Some(ConceptNames::Described);
        let tokens: &[&str] = if described { &[BEGIN, END, ENTITY] } else { &[BEGIN, END] };
        add_tokens(tokens, &mut of_names, &mut same, NAME, &mut parameters, rng)?;
        add_tokens(tokens, &mut config, &mut tokenizer, TEXT, &mut parameters, rng)?;
    }
    if windows.wordpieces > config.max_position_embeddings {
        let message = format!(
            "windows of {} wordpieces exceed the {} positions of the checkpoint",
            windows.wordpieces, config.max_position_embeddings
        );
        return Err(canonym_core::Error::too_many(message).with_hint("set `windows.wordpieces`"));
    }
    let ModelConfig { mention, name, search } = experiment.model.unwrap_or_default();
    let of_window = matches!(mention, MentionVector::First | MentionVector::Pooler);
    if windows.marked != of_window || (windows.marked && search.is_some()) {
        let error = canonym_core::Error::config("`windows.marked` and `model.mention` do not match");
        let hint = "`windows.marked` requires `model.mention = \"first\"` or `\"pooler\"` without `model.search`, and vice versa";
        return Err(error.with_hint(hint));
    }
    let BertRules { normalizer, longest_word } = tokenizer.rules().unwrap_or(BertRules::UNCASED);
    let manifest = DualManifest {
        system: SYSTEM.to_owned(),
        format: FORMAT,
        model: DualEncoderConfig { bert: config, mention, name, search },
        windows,
        concepts: ConceptNames::default(),
        normalizer,
        longest_word,
        fusion: Fusion::DENSE,
        lexical: LexicalModel::embedded().to_value(),
        min_span: 0.5,
        joint: None,
        one_sense_weight: 0.0,
        card: String::new(),
    };
    Ok(Beginning { manifest, windower: Windower::new(tokenizer, windows)?, parameters })
}

fn of_bundle(experiment: &Experiment, folder: &Path) -> canonym_core::Result<Beginning> {
    let bundle = DualBundle::open(folder)?;
    let DualEncoderConfig { mention, name, search, .. } = bundle.manifest.model;
    let differs = experiment.model.is_some_and(|wanted| wanted != ModelConfig { mention, name, search })
        || experiment.windows.is_some_and(|wanted| wanted != bundle.manifest.windows);
    if differs {
        let message = format!("{} has a different `model` or `windows` than the experiment", folder.display());
        return Err(canonym_core::Error::mismatch(message).with_hint("omit both tables"));
    }
    Ok(Beginning { windower: bundle.windower()?, manifest: bundle.manifest, parameters: bundle.parameters })
}

/// Experiment for fine-tuning a model on documents, as the server runs it. Paths are relative to the data root.
pub fn fine_tuning(
    from: &Path,
    kb: &Path,
    train: Vec<PathBuf>,
    dev: Vec<PathBuf>,
    seed: u64,
    run: RunConfig,
) -> canonym_core::Result<String> {
    let experiment = Experiment {
        system: SYSTEM.to_owned(),
        seed,
        data: DataConfig { kb: Some(kb.to_path_buf()), train, dev, ..DataConfig::default() },
        encoder: EncoderConfig {
            bert: None,
            from: Some(from.to_path_buf()),
            train_embeddings: false,
            train_names: false,
            dropout: Some(0.1),
            name_encoder: None,
            head_lr_multiplier: 1.0,
            layer_decay: 1.0,
            compute: None,
        },
        model: None,
        windows: None,
        evaluation: EvaluationConfig::default(),
        batch: LinkingConfig {
            batch: 2,
            n_random: 0,
            n_hard: 0,
            all_names: true,
            name_replay: 16,
            search_weight: 100.0,
            ..LinkingConfig::default()
        },
        run,
    };
    toml::to_string(&experiment).map_err(|error| canonym_core::Error::config(error.to_string()))
}
