//! Trains the generative linker (Yuan et al. 2022): pre-training on terminologies, fine-tuning on mentions, or both.

mod evaluate;
mod mentions;
mod start;
mod terms;

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use canonym_core::corpus::{AnnotatedDocument, Annotation};
use canonym_core::error::Context;
use canonym_core::eval::learned::{Fingerprints, Learned, Role::Trained, Role::Tuned, Seen};
use canonym_core::kb::KnowledgeBase;
use canonym_core::text::{Document, Span};
use canonym_core::{Error, Result};
use serde::{Deserialize, Serialize};

use super::TrainOptions;
use super::dual_encoder::data::{DataConfig as Corpora, Parts, labels_of, read_corpora};
use super::learned::{check_prints, of_documents, of_file, of_queries, source};
use super::log::Log;
use super::queries::{MentionQuery, read_mentions};
use super::run_folder::{REPORT, identity, provenance, to_json, write_run};
use super::settings::{experiment_of, one};
use super::sources::{TerminologyConfig, compile_terminology};
use super::stage::{Stage, open_log, remove_kept};
use crate::bundle::generative::{Calibration, Candidates, GenerativeBundle, GenerativeManifest, Ranking, SYSTEM};
use crate::bundle::{FILE, FORMAT};
use crate::models::generative::GenerativeConfig;
use crate::models::generative::beam::BeamConfig;
use crate::models::generative::text::TextConfig;
use crate::objectives::generative::{Examples, Generative, GenerativeBatchConfig};
use crate::status;
use crate::system::Target;
use crate::system::generative::NameTrie;
use crate::system::lexical::lexical_learned;
use crate::tensor::matrix::Compute;
use crate::tensor::parameters::{Parameters, Precision};
use crate::tokenizer::{BertRules, Tokenizer};
use crate::train::RunConfig;
use evaluate::{Known, LinkingReport, answer, fit_candidates};
use mentions::{MentionExamples, MentionReport, TargetName};
use start::begin;
use terms::{TermExamples, Terms};

/// Greatest number of beams and of candidates.
const MOST: usize = 1000;

/// Least number of source and of decoder tokens.
const MIN_POSITIONS: usize = 8;

/// The stages, in order.
const STAGES: [&str; 2] = ["pretrain", "train"];

/// An experiment.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Experiment {
    system: String,
    seed: u64,
    /// Value of `{fold}` in paths.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    fold: Option<u64>,
    data: DataConfig,
    model: ModelConfig,
    #[serde(default)]
    text: TextConfig,
    #[serde(default)]
    beams: BeamConfig,
    #[serde(default)]
    ranking: Ranking,
    /// Number of candidates of the lexical linker that the finished model reranks; it writes any name if missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    n_candidates: Option<usize>,
    /// Whether it writes any name as well, and ranks those concepts beside the candidates.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    any_name: bool,
    /// Pre-training on `data.pretrain`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pretrain: Option<StageConfig>,
    /// Fine-tuning on `data.train`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    train: Option<StageConfig>,
}

/// Input files; paths are relative to the data root.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct DataConfig {
    /// Terminologies for pre-training.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pretrain: Vec<TerminologyConfig>,
    /// The target terminology; optional if nothing is fine-tuned or evaluated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    terminology: Option<TerminologyConfig>,
    /// Training corpora, or queries without context.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    train: Vec<PathBuf>,
    /// Held-out corpora or queries.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    dev: Vec<PathBuf>,
    /// Terminology for the held-out data; the target terminology if missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    dev_terminology: Option<TerminologyConfig>,
    /// About one in this many training documents, sampled by the seed, is split off for selection and calibration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tune_share: Option<usize>,
    /// Whether `train` and `dev` are queries: names without context, in any format of the recipe `rescnn`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    queries: bool,
    /// Which name of its concept a mention becomes.
    #[serde(default)]
    target: TargetName,
    /// Number of held-out mentions that are linked before fine-tuning, for comparison.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    n_dev_before: Option<usize>,
}

/// The network: a trained bundle, a BERT encoder with a new decoder, or new altogether.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ModelConfig {
    /// A bundle of this kind that is trained further, relative to the current folder or the data root.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    start: Option<PathBuf>,
    /// BART checkpoint of encoder and decoder: a folder relative to the data root or to `CANONYM_MODELS`, or a name such as
    /// `facebook/bart-base`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    bart: Option<PathBuf>,
    /// BERT checkpoint of the encoder, which gives vocabulary and width.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    encoder: Option<PathBuf>,
    /// Maximum number of wordpieces of a vocabulary that is learned from the terminologies.
    #[serde(default = "vocabulary")]
    vocabulary: usize,
    #[serde(default = "width")]
    width: usize,
    #[serde(default = "layers")]
    encoder_layers: usize,
    #[serde(default = "layers")]
    decoder_layers: usize,
    #[serde(default = "heads")]
    heads: usize,
    /// Maximum number of source tokens.
    #[serde(default = "source_positions")]
    source_positions: usize,
    /// Maximum number of decoder tokens; prompt and name may take half of it each.
    #[serde(default = "positions")]
    positions: usize,
    #[serde(default = "dropout")]
    dropout: f32,
    /// Learning-rate multiplier of the decoder, for an encoder that is already trained.
    #[serde(default = "one")]
    decoder_lr_multiplier: f32,
    /// Precision of matrix products.
    #[serde(default)]
    compute: Compute,
}

fn vocabulary() -> usize {
    16_000
}

fn width() -> usize {
    256
}

fn layers() -> usize {
    6
}

fn heads() -> usize {
    4
}

fn source_positions() -> usize {
    160
}

fn positions() -> usize {
    64
}

fn dropout() -> f32 {
    0.1
}

/// Settings of a training stage.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StageConfig {
    #[serde(default)]
    batch: GenerativeBatchConfig,
    #[serde(default)]
    run: RunConfig,
}

/// The report of a run.
#[derive(Debug, Serialize)]
struct Report {
    seed: u64,
    n_weights: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    pretrain: Option<PretrainReport>,
    #[serde(skip_serializing_if = "Option::is_none")]
    train: Option<MentionReport>,
    #[serde(skip_serializing_if = "Option::is_none")]
    names: Option<NamesReport>,
    /// Held-out mentions before fine-tuning, or the first `n_dev_before` of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    before: Option<LinkingReport>,
    /// Held-out mentions, with any name.
    #[serde(skip_serializing_if = "Option::is_none")]
    dev: Option<LinkingReport>,
    /// Held-out mentions, with the names of candidates.
    #[serde(skip_serializing_if = "Option::is_none")]
    dev_candidates: Option<LinkingReport>,
    #[serde(skip_serializing_if = "Option::is_none")]
    candidates: Option<Candidates>,
    #[serde(skip_serializing_if = "Option::is_none")]
    seen: Option<Seen>,
    /// Tuning documents that the lexical linker of the candidates has learned from.
    #[serde(skip_serializing_if = "Option::is_none")]
    candidates_seen: Option<Seen>,
    seconds: BTreeMap<&'static str, f64>,
}

#[derive(Debug, Serialize)]
struct PretrainReport {
    n_concepts: usize,
    n_examples: usize,
}

/// The names that are written.
#[derive(Debug, Serialize)]
struct NamesReport {
    n_nodes: usize,
    n_bytes: usize,
    n_unwritten: usize,
}

/// Runs an experiment.
pub fn run(arguments: &TrainOptions, table: toml::Table) -> Result<()> {
    let path = arguments.config.display();
    let experiment: Experiment = experiment_of(arguments, table, "generative")?;
    experiment.check().with_context(|| format!("cannot train {path}"))?;
    let (root, out) = (arguments.root(), arguments.out.as_path());
    let started = Instant::now();
    let parts = experiment.documents(root)?;
    let terms = match &experiment.pretrain {
        Some(_) => Some(Terms::read(&experiment.data.pretrain, root, out)?),
        None => None,
    };
    let (mut bundle, start_learned) = begin(&experiment, arguments, terms.as_ref())?;
    let mut record = learned(&experiment, root)?;
    if experiment.model.start.is_some() {
        record.join("start", start_learned.as_ref());
    }
    let mut used = record.clone();
    let mut candidates_seen = None;
    if experiment.n_candidates.is_some() {
        let lexical = lexical_learned()?.unwrap_or_default();
        // The weights of candidates are then too favourable to the lexical linker.
        candidates_seen = check_prints(
            &lexical,
            &experiment.all_prints(&experiment.data.train, root, &parts.tune)?,
            ("tuning documents", true),
        )?;
        used.join("candidates", Some(&lexical));
    }
    let seen = check_prints(
        &used,
        &experiment.all_prints(&experiment.data.dev, root, &parts.dev)?,
        ("held-out documents", arguments.allow_seen),
    )?;
    let provenance = provenance(experiment.data.paths().collect(), root)?;
    let of = identity(&experiment, &provenance)?;
    let coder = bundle.coder()?;
    let model = bundle.manifest.model.clone();
    let n_weights = bundle.parameters.counts().0;
    let mut report = Report {
        seed: experiment.seed,
        n_weights,
        pretrain: None,
        train: None,
        names: None,
        before: None,
        dev: None,
        dev_candidates: None,
        candidates: None,
        seen,
        candidates_seen,
        seconds: BTreeMap::from([("prepare", started.elapsed().as_secs_f64())]),
    };
    status::say(&format!("{n_weights} weights, {} tokens", coder.tokenizer().len()));
    let mut log: Log = open_log(out, &STAGES)?;
    let mut trained = |name: &'static str,
                       config: &StageConfig,
                       parameters: Parameters,
                       objective: &mut Generative<'_>,
                       n_examples: usize|
     -> Result<(Parameters, f64)> {
        let started = Instant::now();
        let stage = Stage { name, config: config.run, seed: experiment.seed, out, of: &of };
        let parameters = stage.train(parameters, objective, n_examples, &mut log)?;
        Ok((parameters, started.elapsed().as_secs_f64()))
    };
    if let (Some(config), Some(terms)) = (&experiment.pretrain, &terms) {
        let examples = TermExamples::new(terms, &coder);
        let n = examples.n_examples();
        report.pretrain = Some(PretrainReport { n_concepts: terms.n_concepts(), n_examples: n });
        status::say(&format!("pre-training on {} concepts with {n} names", terms.n_concepts()));
        if n == 0 {
            let error = Error::no_data("no concept of `data.pretrain` has a definition or several names");
            return Err(error.with_hint("omit `[pretrain]`, or add terminologies with synonyms or definitions"));
        }
        let mut objective = Generative::new(&model, config.batch, &examples, experiment.seed);
        let start = std::mem::take(&mut bundle.parameters);
        let (parameters, seconds) = trained(STAGES[0], config, start, &mut objective, n)?;
        bundle.parameters = parameters;
        report.seconds.insert("pretrain", seconds);
    }
    let kb = experiment.terminology(root, out)?;
    if let Some(kb) = &kb {
        let dev_kb = match &experiment.data.dev_terminology {
            Some(config) => compile_terminology(config, root, &out.join("dev.kb"))?,
            None => kb.clone(),
        };
        let (names, dev_names) =
            (Arc::new(NameTrie::new(kb, None, &coder)), Arc::new(NameTrie::new(&dev_kb, None, &coder)));
        report.names = Some(NamesReport {
            n_nodes: dev_names.trie().len(),
            n_bytes: dev_names.n_bytes(),
            n_unwritten: dev_names.n_unwritten(),
        });
        let known = Known::of(&parts.train);
        if let Some(n) = experiment.data.n_dev_before {
            status::say("held-out mentions before fine-tuning …");
            let linker = bundle.linker_of(&Target::new(&dev_kb, None), dev_names.clone())?;
            report.before = Some(answer(&linker, &dev_kb, &first(&parts.dev, n))?.report(&dev_kb, &known));
        }
        if let Some(config) = &experiment.train {
            let labels = labels_of(kb);
            let (examples, of_train) =
                MentionExamples::new(&parts.train, kb, &labels, (&coder, experiment.data.target));
            if of_train.n_examples == 0 {
                let error = Error::no_data("no training mention has a concept of the terminology");
                return Err(error.with_hint("corpora and terminology must use the same kind of ids"));
            }
            status::say(&format!("fine-tuning on {} of {} mentions", of_train.n_examples, of_train.n_mentions));
            report.train = Some(of_train);
            let watched = bundle.clone();
            let accuracy = |parameters: &Parameters| {
                let bundle = GenerativeBundle { parameters: parameters.clone(), ..watched.clone() };
                let linker = bundle.linker_of(&Target::new(kb, None), names.clone())?;
                Ok(answer(&linker, kb, &parts.tune)?.accuracy())
            };
            let mut objective = Generative::new(&model, config.batch, &examples, experiment.seed);
            if !parts.tune.is_empty() {
                objective = objective.with_held_out(Box::new(accuracy));
            }
            let n = examples.n_examples();
            let start = std::mem::take(&mut bundle.parameters);
            let (parameters, seconds) = trained(STAGES[1], config, start, &mut objective, n)?;
            bundle.parameters = parameters;
            report.seconds.insert("train", seconds);
        }
        // Evaluates the model as written, with f16 weights.
        bundle = GenerativeBundle::from_bytes(&bundle.to_bytes(Precision::Half)?, &out.join(FILE))?;
        let evaluation_started = Instant::now();
        if !parts.tune.is_empty() {
            let linker = bundle.linker_of(&Target::new(kb, None), names.clone())?;
            bundle.manifest.calibration = answer(&linker, kb, &parts.tune)?.calibration();
        }
        let mut candidates = experiment.n_candidates.map(|n| Candidates::unfitted(n, experiment.any_name));
        if let Some(candidates) = candidates.as_mut().filter(|_| !parts.tune.is_empty()) {
            let mut bundle = bundle.clone();
            bundle.manifest.candidates = Some(*candidates);
            let linker = bundle.linker_of(&Target::new(kb, None), names)?;
            *candidates = fit_candidates(&linker, kb, &parts.tune, *candidates)?;
        }
        if !parts.dev.is_empty() {
            status::say("held-out mentions …");
            let linker = bundle.linker_of(&Target::new(&dev_kb, None), dev_names.clone())?;
            let scores = answer(&linker, &dev_kb, &parts.dev)?.report(&dev_kb, &known);
            status::say(&format!(
                "dev accuracy@1 {:.1} of {} mentions",
                100.0 * scores.all.accuracy[&1],
                scores.all.n_mentions
            ));
            report.dev = Some(scores);
            if candidates.is_some() {
                bundle.manifest.candidates = candidates;
                let linker = bundle.linker_of(&Target::new(&dev_kb, None), dev_names)?;
                report.dev_candidates = Some(answer(&linker, &dev_kb, &parts.dev)?.report(&dev_kb, &known));
            }
        }
        (bundle.manifest.candidates, report.candidates) = (candidates, candidates);
        report.seconds.insert("evaluate", evaluation_started.elapsed().as_secs_f64());
    }
    bundle.learned = Some(record);
    let (model, report) = (bundle.to_bytes(Precision::Half)?, to_json(&report)?);
    write_run(out, &experiment, &provenance, &[(FILE, &model), (REPORT, report.as_bytes())])?;
    remove_kept(out, &STAGES)
}

/// The first documents with at least `n` mentions in all.
fn first(documents: &[AnnotatedDocument], n: usize) -> Vec<AnnotatedDocument> {
    let mut n_mentions = 0;
    let some = documents.iter().take_while(|document| {
        let is_wanted = n_mentions < n;
        n_mentions += document.annotations.len();
        is_wanted
    });
    some.cloned().collect()
}

impl DataConfig {
    fn corpora(&self) -> Corpora {
        let DataConfig { train, dev, tune_share, .. } = self;
        Corpora { train: train.clone(), dev: dev.clone(), tune_share: *tune_share, ..Corpora::default() }
    }

    fn paths(&self) -> impl Iterator<Item = &PathBuf> {
        let terminologies = self.pretrain.iter().chain(&self.terminology).chain(&self.dev_terminology);
        self.train.iter().chain(&self.dev).chain(terminologies.map(|one| &one.path))
    }
}

impl Experiment {
    fn check(&self) -> Result<()> {
        let refused = |message: &str, hint: &str| Err(Error::config(message).with_hint(hint));
        if self.pretrain.is_some() && self.data.pretrain.is_empty() {
            return refused("there is nothing to pre-train on", "set `data.pretrain`, or omit `[pretrain]`");
        }
        if self.train.is_some() && (self.data.train.is_empty() || self.data.terminology.is_none()) {
            return refused(
                "there is nothing to fine-tune on",
                "set `data.train` and `data.terminology`, or omit `[train]`",
            );
        }
        if !self.data.dev.is_empty() && self.data.terminology.is_none() {
            return refused("no terminology to link to", "set `data.terminology`");
        }
        let stages = || self.pretrain.iter().chain(&self.train);
        if stages().any(|stage| stage.batch.batch == 0 || !(0.0..1.0).contains(&stage.batch.label_smoothing)) {
            return refused(
                "invalid `batch`",
                "`batch.batch` must be at least 1, `batch.label_smoothing` at least 0 and below 1",
            );
        }
        if !(1..=MOST).contains(&self.beams.n_beams) || !self.beams.length_penalty.is_finite() {
            return refused(
                "invalid `beams`",
                "`n_beams` must be from 1 to 1000 (the default is 5), `length_penalty` a number",
            );
        }
        if self.n_candidates.is_some_and(|n| !(1..=MOST).contains(&n)) {
            return refused("invalid `n_candidates`", "it must be from 1 to 1000, such as 20");
        }
        if self.any_name && self.n_candidates.is_none() {
            return refused("`any_name` has no effect without `n_candidates`", "any name is written then; omit it");
        }
        if self.model.positions < MIN_POSITIONS || self.model.source_positions < MIN_POSITIONS {
            return refused("too few positions", "`model.positions` and `model.source_positions` must be at least 8");
        }
        let ModelConfig { start, bart, encoder, .. } = &self.model;
        if [start, bart, encoder].into_iter().flatten().count() > 1 {
            return refused("`model` has several checkpoints", "set one of `start`, `bart` and `encoder`");
        }
        Ok(())
    }

    fn manifest(&self, model: GenerativeConfig, tokenizer: &Tokenizer) -> GenerativeManifest {
        let BertRules { normalizer, longest_word } = tokenizer.rules().unwrap_or(BertRules::UNCASED);
        GenerativeManifest {
            system: SYSTEM.to_owned(),
            format: FORMAT,
            model,
            text: self.text,
            beams: self.beams,
            ranking: self.ranking,
            calibration: Calibration::default(),
            candidates: None,
            normalizer,
            longest_word,
            card: String::new(),
        }
    }

    /// Fingerprints of the documents of a file that are among `documents`; those of its queries if the experiment has them.
    fn prints(&self, file: &Path, root: &Path, documents: &[AnnotatedDocument]) -> Result<Vec<Fingerprints>> {
        if self.data.queries {
            let known: HashSet<&str> = documents.iter().map(|document| document.document.id.as_str()).collect();
            let mut rows = queries(file, root)?;
            rows.retain(|(id, _)| known.contains(id.as_str()));
            let rows: Vec<MentionQuery> = rows.into_iter().map(|(_, row)| row).collect();
            return of_queries(file, root, &rows);
        }
        of_file(file, root, documents)
    }

    /// The same for several files.
    fn all_prints(&self, files: &[PathBuf], root: &Path, documents: &[AnnotatedDocument]) -> Result<Vec<Fingerprints>> {
        if !self.data.queries {
            return Ok(of_documents(documents));
        }
        let of_file = |file: &PathBuf| self.prints(file, root, documents);
        Ok(files.iter().map(of_file).collect::<Result<Vec<_>>>()?.concat())
    }

    fn terminology(&self, root: &Path, out: &Path) -> Result<Option<Arc<KnowledgeBase>>> {
        let compiled = |config| compile_terminology(config, root, &out.join("terminology.kb"));
        self.data.terminology.as_ref().map(compiled).transpose()
    }

    fn documents(&self, root: &Path) -> Result<Parts> {
        if !self.data.queries {
            return read_corpora(&self.data.corpora(), self.seed, root);
        }
        let read = |paths: &[PathBuf]| -> Result<Vec<AnnotatedDocument>> {
            let mut all = Vec::new();
            for path in paths {
                for (id, mention) in queries(path, root)? {
                    all.extend(mention.parts.iter().map(|part| of_query(&id, &part.query, &part.ids)));
                }
            }
            Ok(all)
        };
        let (train, tune) = super::data::held_apart(read(&self.data.train)?, self.data.tune_share, self.seed)?;
        Ok(Parts { train, tune, dev: read(&self.data.dev)? })
    }
}

/// The queries of a file with the ids of their documents; a query without document is one of its own.
fn queries(path: &Path, root: &Path) -> Result<Vec<(String, MentionQuery)>> {
    let rows = read_mentions(&root.join(path))?.rows.into_iter().enumerate();
    let own = |at: usize| format!("{}:{at}", path.display());
    Ok(rows.map(|(at, row)| (if row.document.is_empty() { own(at) } else { row.document.clone() }, row)).collect())
}

/// A query as a document that is one mention.
fn of_query(id: &str, query: &str, ids: &std::collections::BTreeSet<String>) -> AnnotatedDocument {
    let span = Span { start: 0, end: query.len() as u32 };
    let annotation = Annotation {
        spans: vec![span],
        text: query.to_owned(),
        ids: ids.iter().cloned().collect(),
        ..Annotation::default()
    };
    let document = Document { id: id.to_owned(), text: query.to_owned(), ..Document::default() };
    AnnotatedDocument { document, annotations: vec![annotation], ..AnnotatedDocument::default() }
}

/// Record of the training documents, and of those that checkpoint and calibration are selected on.
pub fn learned(experiment: &Experiment, root: &Path) -> Result<Learned> {
    let mut all = Learned::default();
    if experiment.train.is_none() {
        return Ok(all);
    }
    let Parts { train, tune, .. } = experiment.documents(root)?;
    for (role, documents) in [(Trained, &train), (Tuned, &tune)] {
        for file in &experiment.data.train {
            all.add(source(SYSTEM, role, file, experiment.prints(file, root, documents)?));
        }
    }
    Ok(all)
}
