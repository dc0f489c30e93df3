//! Adapts a model to annotated documents: fine-tunes its tagger, updates the mention-entity prior, and adapts the linker.
//!
//! Training starts from the weights of a bundle that detects mentions, so ten documents are already useful. Completely annotated documents
//! train the tagger; others only update the prior. Held-out documents are chosen by a hash of their ids, so they stay held out as more
//! documents are added. Others, chosen likewise, tune what decides: nothing is trained on them, and no figure is of them.

pub mod linker;
mod split;

use crate::system::terminology;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use crate::bundle::{DECISION_PART, FILE, NameEncoderBundle, TAGGER_PART, TaggerManifest};
use crate::layers::crf::bilou::labels_of;
use crate::models::decision::Decision;
use crate::models::mention_prior::MentionPrior;
use crate::models::tagger::TaggerConfig;
use crate::models::tagger::features::Words;
use crate::models::tagger::typed::LabelSet;
use crate::models::tagger::typed::TypedTagger;
use crate::models::taught::Taught;
use crate::objectives::tags::{Corpus, Example, HeldOut, Tags, TagsConfig, count};
use crate::tensor::parameters::{Parameters, Precision};
use crate::train::{RunConfig, Select};
use canonym_core::corpus::{AnnotatedDocument, Annotation, Reader};
use canonym_core::eval::bootstrap::{BootstrapConfig, SplitMix64};
use canonym_core::eval::ids::IdSet;
use canonym_core::eval::learned::{Role::Trained, Role::Tuned, Seen, left_out};
use canonym_core::eval::matching::Measure;
use canonym_core::eval::report::{self, EvalConfig, Report as EvalReport};
use canonym_core::kb::KnowledgeBase;
use canonym_core::link::recognise::expanded;
use canonym_core::text::analysis::Analysis;
use canonym_core::text::tokens::Token;
use serde::{Deserialize, Serialize};

pub use self::split::{hash_of, held_out, is_held_out};

use self::linker::{Decisions, LinkerReport, NamesConfig, refine};
use self::split::{Split, Use, split, uses};
use super::TrainOptions;
use super::learned::{check_unseen, of_documents, source, unseen};
use super::run_folder::{REPORT, provenance, to_json, to_toml, write_run};
use super::settings::experiment_of;
use super::stage::{Stage, open_log, remove_kept};
use crate::status;
use crate::system::Models;
use crate::system::linked::{MentionSource, System, SystemConfig};
use crate::system::names::PipelineModel;

/// Value of `system` in an experiment.
pub const SYSTEM: &str = "adaptation";

/// Type of mentions if no document has types.
const UNTYPED: &str = "Concept";

/// The only training stage of this system.
pub const STAGE: &str = "adapt";

/// An experiment.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Experiment {
    /// [`SYSTEM`].
    pub system: String,
    /// Random seed.
    pub seed: u64,
    /// Base model: `default`, or a bundle that detects mentions.
    #[serde(default = "default_model")]
    pub from: String,
    /// Model whose mention-entity prior is extended, if not `from`: the counts of a model that learned from these documents contain them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prior_of: Option<String>,
    /// Completely annotated corpora, relative to the data root.
    #[serde(default)]
    pub documents: Vec<PathBuf>,
    /// Partly annotated corpora.
    #[serde(default)]
    pub incomplete: Vec<PathBuf>,
    /// Completely annotated corpora that are held out as a whole.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub held_out: Vec<PathBuf>,
    /// About one in this many of `documents` is held out; none if 0 or 1.
    #[serde(default = "one_of_five")]
    pub hold_out: usize,
    /// About one in this many of the other `documents` tunes the linker: fusion, calibration and evidence weights are fitted to it, and it
    /// decides whether a new name encoder is used. Only documents that the base model has not learned from; none if 0 or 1, or if they have
    /// too few mentions. Requires `kb`.
    #[serde(default)]
    pub tune: usize,
    /// Compiled knowledge base for tuning, and for the evaluation on held-out documents; `starter` for the embedded one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kb: Option<PathBuf>,
    /// Count added to the mention-entity prior for each use of a name.
    #[serde(default = "three")]
    pub use_counts: u32,
    /// Fine-tuning of the name encoder; requires `tune`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub names: Option<NamesConfig>,
    /// Batch settings of the tagger.
    #[serde(default)]
    pub batch: TagsConfig,
    /// Steps, learning rate and checkpoints.
    #[serde(default)]
    pub run: RunConfig,
}

fn default_model() -> String {
    "default".to_owned()
}

fn one_of_five() -> usize {
    5
}

fn three() -> u32 {
    3
}

/// Report of a run.
#[derive(Debug, Serialize, Deserialize)]
pub struct Report {
    /// Random seed.
    pub seed: u64,
    /// Number of complete training documents.
    pub n_documents: usize,
    /// Number of partly annotated training documents.
    pub n_incomplete: usize,
    /// Number of held-out documents.
    pub n_held_out: usize,
    /// Number of training mentions.
    pub n_mentions: usize,
    /// Types of these mentions.
    pub types: BTreeSet<String>,
    /// Those unknown to the base model.
    pub new_types: Vec<String>,
    /// What was done to the linker, if documents tune it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub linker: Option<LinkerReport>,
    /// Scores of the base model on the held-out documents that no part was trained on.
    pub before: Option<Figures>,
    /// Scores of the adapted model on the same documents.
    pub after: Option<Figures>,
    /// Held-out documents that a part was trained or tuned on, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seen: Option<Seen>,
    /// Note on held-out documents that were seen in training and are therefore excluded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left_out: Option<String>,
    /// Run time by stage, in seconds.
    pub seconds: BTreeMap<String, f64>,
}

/// Scores on held-out documents, from 0 to 1, counted as by `canonym eval`.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Figures {
    /// Strict F1 of linked mentions.
    pub strict_f1: f64,
    /// Strict F1 of mentions.
    pub spans_f1: f64,
    /// Accuracy of linking given mentions.
    pub accuracy: f64,
}

/// Runs an experiment.
pub fn run(arguments: &TrainOptions, table: toml::Table) -> canonym_core::Result<()> {
    let experiment: Experiment = experiment_of(arguments, table, "adaptation")?;
    let (root, out) = (arguments.root(), arguments.out.as_path());
    let models = Models::named(&experiment.from)?;
    let bundle = &*models.names().ok_or_else(|| no_tagger(&experiment.from))?.bundle;
    let incomplete = read(&experiment.incomplete, root)?;
    let Split { held_out, tune, documents } = split(&experiment, bundle, root)?;
    let kb = experiment.kb.as_deref().map(|path| terminology::open(Some(path))).transpose()?;
    let record = learned(&experiment, root)?;
    let mut known = models.learned(MentionSource::Detect)?;
    known.join("", Some(&record));
    let seen = check_unseen(&known, &held_out, ("held-out documents", arguments.allow_seen))?;
    let n_held_out = held_out.len();
    let unseen = unseen(&known, held_out);
    let started = Instant::now();
    let split = TrainingSplit { complete: &documents, incomplete: &incomplete, held_out: &unseen };
    let Adapted { bundle: mut adapted, types, new_types, n_mentions } = learn(&experiment, bundle, split, out)?;
    let mut linker = None;
    if let Some(kb) = kb.as_ref().filter(|_| !tune.is_empty()) {
        status::say("the linker …");
        let train: Vec<AnnotatedDocument> = documents.iter().chain(&incomplete).cloned().collect();
        let decisions = Decisions { train: &train, tune: &tune };
        let report;
        (adapted, report) = refine(experiment.names.as_ref(), experiment.seed, kb, adapted, decisions, out)?;
        linker = Some(report);
    }
    let mut report = Report {
        seed: experiment.seed,
        n_documents: documents.len(),
        n_incomplete: incomplete.len(),
        n_held_out,
        n_mentions,
        types,
        new_types,
        linker,
        before: None,
        after: None,
        seen,
        left_out: left_out(n_held_out - unseen.len(), n_held_out),
        seconds: BTreeMap::from([("train".to_owned(), started.elapsed().as_secs_f64())]),
    };
    if let Some(kb) = kb.filter(|_| !unseen.is_empty()) {
        status::say("held-out documents …");
        report.before = Some(evaluate(&kb, bundle, &unseen)?);
        report.after = Some(evaluate(&kb, &adapted, &unseen)?);
    }
    adapted.manifest.card = card(&bundle.manifest.card, &report);
    adapted.learned = Some(record);
    let paths = experiment.documents.iter().chain(&experiment.held_out).chain(&experiment.incomplete).collect();
    let (model, report) = (adapted.to_bytes(Precision::Half)?, to_json(&report)?);
    write_run(out, &experiment, &provenance(paths, root)?, &[(FILE, &model), (REPORT, report.as_bytes())])?;
    remove_kept(out, &[STAGE])
}

/// The training record of the adapted model, including that of the base model. Held-out documents are recorded as tuning data only if a
/// checkpoint is selected on them.
pub fn learned(experiment: &Experiment, root: &Path) -> canonym_core::Result<canonym_core::eval::learned::Learned> {
    let models = Models::named(&experiment.from)?;
    let bundle = &*models.names().ok_or_else(|| no_tagger(&experiment.from))?.bundle;
    let mut all = canonym_core::eval::learned::Learned::default();
    all.join_whole("bundle", bundle.learned.as_ref());
    let selects_checkpoint = experiment.run.select == Select::Best || experiment.run.patience > 0;
    let mut uses = uses(experiment, bundle, &read(&experiment.documents, root)?).into_iter();
    let mut dev_of_file = Vec::new();
    for file in &experiment.documents {
        let (mut complete, mut tune, mut dev) = (Vec::new(), Vec::new(), Vec::new());
        for document in read(std::slice::from_ref(file), root)? {
            match uses.next() {
                Some(Use::HeldOut) => dev.push(document),
                Some(Use::Tune) => tune.push(document),
                Some(Use::Train) | None => complete.push(document),
            }
        }
        all.add(source(TAGGER_PART, Trained, file, of_documents(&complete)));
        all.add(source(DECISION_PART, Tuned, file, of_documents(&tune)));
        dev_of_file.push((file, dev));
    }
    for file in &experiment.held_out {
        dev_of_file.push((file, read(std::slice::from_ref(file), root)?));
    }
    for file in &experiment.incomplete {
        let documents = read(std::slice::from_ref(file), root)?;
        all.add(source(TAGGER_PART, Trained, file, of_documents(&documents)));
    }
    let mut known = models.learned(MentionSource::Detect)?;
    known.join("", Some(&all));
    for (file, dev) in dev_of_file.into_iter().filter(|_| selects_checkpoint) {
        all.add(source(TAGGER_PART, Tuned, file, of_documents(&unseen(&known, dev))));
    }
    Ok(all)
}

/// The error for a base model without a tagger.
pub fn no_tagger(model: &str) -> canonym_core::Error {
    let error = canonym_core::Error::unsupported(format!("the model `{model}` does not detect mentions"));
    error.with_hint("start from `default`, or from a bundle of the system `pipeline` or `adaptation`")
}

/// Documents of an adaptation.
#[derive(Debug, Clone, Copy)]
pub struct TrainingSplit<'a> {
    /// Completely annotated documents.
    pub complete: &'a [AnnotatedDocument],
    /// Partly annotated documents.
    pub incomplete: &'a [AnnotatedDocument],
    /// Documents evaluated after each mining interval.
    pub held_out: &'a [AnnotatedDocument],
}

/// Result of an adaptation.
pub struct Adapted {
    /// The adapted model.
    pub bundle: NameEncoderBundle,
    /// Types of the training mentions.
    pub types: BTreeSet<String>,
    /// Those unknown to the base model.
    pub new_types: Vec<String>,
    /// Number of training mentions.
    pub n_mentions: usize,
}

/// Adapts a bundle to documents; writes log and checkpoints to `out`. Fails if the bundle has no tagger or no mention is annotated.
pub fn learn(
    experiment: &Experiment,
    bundle: &NameEncoderBundle,
    split: TrainingSplit<'_>,
    out: &Path,
) -> canonym_core::Result<Adapted> {
    let TrainingSplit { complete, incomplete, held_out } = split;
    let (Some(tagger), Some(manifest)) = (bundle.typed_tagger()?, &bundle.manifest.tagger) else {
        return Err(no_tagger(&experiment.from));
    };
    let default_type = most_frequent_type(complete.iter().chain(incomplete));
    let typed = |annotation: &Annotation| match annotation.semantic_type.as_str() {
        "" => default_type.clone(),
        known => known.to_owned(),
    };
    let types: BTreeSet<String> = annotations(complete).map(typed).collect();
    let n_mentions = annotations(complete).chain(annotations(incomplete)).count();
    if n_mentions == 0 {
        let error = canonym_core::Error::no_data("the documents have no annotated mentions");
        return Err(error.with_hint("annotate some mentions, and list complete documents under `documents`"));
    }
    let label_sets = LabelSets::of(&tagger.label_sets, &types);
    let texts = Texts { tagger: &tagger, label_sets: &label_sets, typed: &typed };
    let weights = bundle.tagger_weights();
    let weights = match complete.is_empty() {
        true => weights,
        false => texts.train(experiment, &manifest.config, weights, complete, held_out, out)?,
    };
    // What the documents of an earlier training taught is counted anew.
    let (mut prior, mut taught) = match &experiment.prior_of {
        Some(model) => {
            let models = Models::named(model)?;
            let base = &models.names().ok_or_else(|| no_tagger(model))?.bundle;
            (base.typed_tagger()?.ok_or_else(|| no_tagger(model))?.prior, base.taught()?)
        }
        None => (tagger.prior.clone(), bundle.taught()?),
    };
    for document in complete.iter().chain(incomplete) {
        count_uses(document, &mut |name, id| (0..experiment.use_counts).for_each(|_| prior.add(name, id)));
    }
    // The tagger has learned from texts of this kind.
    let decision = Decision { unlinked_names_only: false, ..manifest.decision };
    let manifest = TaggerManifest { label_sets: label_sets.all.clone(), decision, ..manifest.clone() };
    taught.join(Taught::of(complete, incomplete));
    let bundle = bundle.clone().with_tagger(&tagger.extractor, &prior, &weights, manifest).with_taught(&taught);
    Ok(Adapted { bundle, types, new_types: label_sets.added, n_mentions })
}

fn annotations(documents: &[AnnotatedDocument]) -> impl Iterator<Item = &Annotation> {
    documents.iter().flat_map(|document| &document.annotations)
}

/// Reads the documents of several corpora, given relative to `root`.
pub fn read(paths: &[PathBuf], root: &Path) -> canonym_core::Result<Vec<AnnotatedDocument>> {
    let mut documents = Vec::new();
    for path in paths {
        for document in Reader::open(&root.join(path), None)? {
            documents.push(document?);
        }
    }
    Ok(documents)
}

/// The most frequent type, used for mentions without one.
fn most_frequent_type<'a>(documents: impl Iterator<Item = &'a AnnotatedDocument>) -> String {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for annotation in documents.flat_map(|document| &document.annotations) {
        if !annotation.semantic_type.is_empty() {
            *counts.entry(&annotation.semantic_type).or_default() += 1;
        }
    }
    let most = counts.into_iter().rev().max_by_key(|(_, n)| *n);
    most.map_or(UNTYPED, |(name, _)| name).to_owned()
}

/// The label sets of a tagger, with new ones for types that it does not know.
struct LabelSets {
    all: Vec<LabelSet>,
    added: Vec<String>,
    /// Index of the label set of each type in the documents.
    of_type: BTreeMap<String, usize>,
}

impl LabelSets {
    fn of(known: &[LabelSet], types: &BTreeSet<String>) -> LabelSets {
        let mut label_sets = LabelSets { all: known.to_vec(), added: Vec::new(), of_type: BTreeMap::new() };
        for name in types {
            let place = label_sets
                .all
                .iter()
                .position(|label_set| label_set.name.as_deref().is_some_and(|own| own.eq_ignore_ascii_case(name)));
            let place = place.unwrap_or_else(|| {
                label_sets.all.push(LabelSet { name: Some(name.clone()), covers: 0.0, any_type: false });
                label_sets.added.push(name.clone());
                label_sets.all.len() - 1
            });
            label_sets.of_type.insert(name.clone(), place);
        }
        label_sets
    }
}

/// Builds training data and trains the tagger.
struct Texts<'a> {
    tagger: &'a TypedTagger,
    label_sets: &'a LabelSets,
    typed: &'a dyn Fn(&Annotation) -> String,
}

impl Texts<'_> {
    fn train(
        &self,
        experiment: &Experiment,
        config: &TaggerConfig,
        mut weights: Parameters,
        documents: &[AnnotatedDocument],
        held_out: &[AnnotatedDocument],
        out: &Path,
    ) -> canonym_core::Result<Parameters> {
        let mut words = Words::default();
        let mut seen = |documents: &[AnnotatedDocument]| {
            let mut texts = Vec::new();
            for document in documents {
                let features = self.tagger.extractor.extract(&Analysis::new(&document.document), &mut words);
                if !features.tokens.is_empty() {
                    texts.push(HeldOut { mentions: self.mentions(document, &features.tokens), features });
                }
            }
            texts
        };
        let (to_fit, dev) = (seen(documents), seen(held_out));
        let like = self.most_similar(config, &weights, &words, &to_fit)?;
        config.widen(&mut weights, &like);
        let example = |text: HeldOut| {
            let n = text.features.tokens.len();
            let labels = text.mentions.iter().map(|mentions| mentions.as_ref().map(|mentions| labels_of(n, mentions)));
            Example { labels: labels.collect(), features: text.features }
        };
        let examples: Vec<Example> = to_fit.into_iter().map(example).collect();
        let n_examples = examples.len();
        let corpora = [Corpus { weight: 1.0, examples }];
        let n_label_sets = self.label_sets.all.len();
        let mut objective = Tags::new(config, experiment.batch, &words, &corpora, n_label_sets, &dev);
        let of = format!("{}{n_examples}", to_toml(experiment)?);
        let stage = Stage { name: STAGE, config: experiment.run, seed: experiment.seed, out, of: &of };
        let mut log = open_log(out, &[STAGE])?;
        stage.train(weights, &mut objective, n_examples, &mut log)
    }

    /// For each new label set, the existing one whose predictions match its mentions best by F1; `None` if none matches any.
    fn most_similar(
        &self,
        config: &TaggerConfig,
        weights: &Parameters,
        words: &Words,
        texts: &[HeldOut],
    ) -> canonym_core::Result<Vec<Option<usize>>> {
        let n_known = self.tagger.label_sets.len();
        let mut like = Vec::new();
        for label_set in n_known..self.label_sets.all.len() {
            let of_label_set = |text: &HeldOut| HeldOut {
                features: text.features.clone(),
                mentions: vec![text.mentions[label_set].clone(); n_known],
            };
            let probes: Vec<HeldOut> = texts.iter().map(of_label_set).collect();
            let scores = count(config, weights, n_known, words, &probes)?;
            let best = scores.iter().enumerate().max_by(|left, right| left.1.score().f1.total_cmp(&right.1.score().f1));
            like.push(best.filter(|(_, score)| score.tp_pred > 0.0).map(|(known, _)| known));
        }
        Ok(like)
    }

    /// First and last tokens of the mentions of each label set, sorted; `None` for label sets of types not in the documents.
    fn mentions(&self, document: &AnnotatedDocument, tokens: &[Token]) -> Vec<Option<Vec<(usize, usize)>>> {
        let mut mentions = vec![None; self.label_sets.all.len()];
        self.label_sets.of_type.values().for_each(|label_set| mentions[*label_set] = Some(Vec::new()));
        for annotation in &document.annotations {
            let [span] = annotation.spans.as_slice() else { continue };
            let Some(label_set) = self.label_sets.of_type.get(&(self.typed)(annotation)) else { continue };
            let first = tokens.partition_point(|token| token.span.end <= span.start);
            let end = tokens.partition_point(|token| token.span.start < span.end);
            if first < end {
                mentions[*label_set].get_or_insert_default().push((first, end - 1));
            }
        }
        for mentions in mentions.iter_mut().flatten() {
            mentions.sort_unstable();
            mentions.dedup();
        }
        mentions
    }
}

/// The mention-entity prior of annotated documents.
pub fn mention_prior_of(documents: &[AnnotatedDocument]) -> MentionPrior {
    let mut prior = MentionPrior::default();
    documents.iter().for_each(|document| count_uses(document, &mut |name, id| prior.add(name, id)));
    prior
}

/// Calls `count` with each annotated name, abbreviations expanded, and its concept id, if any.
fn count_uses(document: &AnnotatedDocument, count: &mut dyn FnMut(&str, Option<&str>)) {
    let text = document.document.text.as_str();
    let analysis = Analysis::of_text(text);
    let uses = analysis.short_forms();
    for annotation in &document.annotations {
        let name = expanded(text, &annotation.spans, uses);
        match annotation.ids.as_slice() {
            [] => count(&name, None),
            [id] if IdSet::parse_one(id).is_nil() => count(&name, None),
            // In a composite mention, it is unknown which part has which id.
            [id] if !id.contains(['|', '+']) => count(&name, Some(id)),
            _ => {}
        }
    }
}

/// Evaluates a bundle on completely annotated documents.
pub fn evaluate(
    kb: &Arc<KnowledgeBase>,
    bundle: &NameEncoderBundle,
    documents: &[AnnotatedDocument],
) -> canonym_core::Result<Figures> {
    let models = Models::of(PipelineModel::new(Arc::new(bundle.clone()))?);
    let report = |mentions: MentionSource| -> canonym_core::Result<EvalReport> {
        let config = SystemConfig { mentions, top_k: 1, ..SystemConfig::default() };
        let linked = System::new(kb, models.clone(), &config)?.link(documents.to_vec())?;
        let bootstrap = BootstrapConfig { n_resamples: 0, ..BootstrapConfig::default() };
        let config = EvalConfig { bootstrap, ..EvalConfig::default() };
        report::evaluate(documents, &linked, &config, &mut SplitMix64::new(0))
    };
    let (detected, given) = (report(MentionSource::Detect)?, report(MentionSource::Given)?);
    let f1 = |measure: Measure| detected.metrics.get(&measure).map_or(0.0, |score| score.f1);
    Ok(Figures {
        strict_f1: f1(Measure::Strict),
        spans_f1: f1(Measure::MentionRecognition),
        accuracy: given.ranking.and_then(|ranking| ranking.all.accuracy.get(&1).copied()).unwrap_or_default(),
    })
}

fn card(of_parent: &str, report: &Report) -> String {
    let Report { n_documents, n_incomplete, n_mentions, n_held_out, .. } = report;
    let mut card = format!(
        "Adapted to {n_documents} complete and {n_incomplete} other documents with {n_mentions} mentions; {n_held_out} documents were held out.\n"
    );
    if let Some(linker) = &report.linker {
        card += &format!("{} more documents tuned the linker.\n", linker.n_documents);
    }
    card.extend(report.left_out.iter().map(|left_out| format!("{left_out}.\n")));
    if let (Some(before), Some(after)) = (report.before, report.after) {
        let line = |name: &str, before: f64, after: f64| {
            format!("{name} on held-out documents: {:.1} before, {:.1} after.\n", 100.0 * before, 100.0 * after)
        };
        card += &line("Linking F1 (span + concept)", before.strict_f1, after.strict_f1);
        card += &line("F1 of mentions", before.spans_f1, after.spans_f1);
        card += &line("Accuracy of given mentions", before.accuracy, after.accuracy);
    }
    card + "\nBase model:\n" + of_parent
}
