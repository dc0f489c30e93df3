//! Trains a complete pipeline, such as the default bundle: tagger, name encoder and feature weights.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::bundle::{DECISION_PART, FILE, NameEncoderBundle, TaggerManifest};
use crate::models::decision::Decision;
use crate::models::tagger::typed::LabelSet;
use crate::system::pipeline::fit::{Figures, LabelledCorpus, figures_by_halves, fit_decision};
use crate::system::pipeline::{Pipeline, SpanProposal};
use crate::tensor::parameters::Precision;
use canonym_core::corpus::{AnnotatedDocument, OnMismatch, Reader};
use canonym_core::error::Context;
use canonym_core::eval::ids::IdSet;
use canonym_core::eval::learned::{Learned, Role::Trained, Role::Tuned, Seen, TrainingSource};
use canonym_core::kb::KnowledgeBase;
use canonym_core::link::recognise::{Nested, RecogniseConfig};
use canonym_core::text::Span;
use canonym_core::text::analysis::Analysis;
use serde::{Deserialize, Serialize};

use super::checkpoints::data_file;
use super::data::{Trees, compile_trees};
use super::learned::{check_unseen, of_corpus};
use super::run_folder::{REPORT, data_unchanged, is_complete, provenance, to_json, write_run};
use super::settings::experiment_of;
use super::{TrainOptions, rescnn, settings, tagger};
use crate::status;
use crate::system::lexical::Lexical;
use crate::system::linked::MentionSource;
use crate::system::names::PipelineModel;
use crate::system::{LinkingModel, Target};

/// An experiment.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Experiment {
    system: String,
    /// Experiment file of the tagger, relative to this one.
    tagger: PathBuf,
    /// Names of corpora to omit from that experiment; label sets that no other corpus trains are omitted as well.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    leave_out: Vec<String>,
    /// Label sets by name that override those of that experiment.
    #[serde(alias = "layers", default, skip_serializing_if = "BTreeMap::is_empty")]
    label_sets: BTreeMap<String, LabelSet>,
    /// Experiment file of the name encoder (ResCNN), relative to this one.
    names: PathBuf,
    /// Beta of the F-measure that the link threshold maximises.
    #[serde(default = "even")]
    beta: f64,
    /// Corpora for fitting the feature weights, held out from both trainings.
    held_out: Vec<HeldOutConfig>,
    /// Whether unlinked mentions of types that ordinary words describe are output in research articles only.
    #[serde(default)]
    unlinked_names_only: bool,
    /// Whether the tagger is finally retrained on all corpora, including its held-out ones.
    #[serde(default)]
    refit: bool,
    /// Model card: data, limits, licence.
    card: String,
}

/// A corpus and the terminology of its annotations.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct HeldOutConfig {
    name: String,
    documents: PathBuf,
    terminology: PathBuf,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    prefix: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    trees: Option<Trees>,
    /// Whether unlinked gold mentions count in the evaluation of mention detection.
    #[serde(default)]
    count_unlinked: bool,
    /// Weight in the fit, relative to the other corpora.
    #[serde(default = "one")]
    weight: usize,
    /// Name of the corpus, if not that of the folder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    of: Option<String>,
}

fn even() -> f64 {
    1.0
}

fn one() -> usize {
    1
}

/// Report of a run; tagger and name encoder have separate reports.
#[derive(Debug, Serialize)]
struct Report {
    decision: Decision,
    /// Scores on the corpora that the weights were fitted to.
    scores: BTreeMap<String, Figures>,
    /// Scores from two-fold cross-fitting of weights and thresholds over documents: the ones to report.
    by_halves: BTreeMap<String, Figures>,
    /// Documents of these corpora that a part was trained on, if any.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    seen: BTreeMap<String, Seen>,
    bytes: usize,
}

/// Runs an experiment.
pub fn run(arguments: &TrainOptions, table: toml::Table) -> canonym_core::Result<()> {
    let experiment: Experiment = experiment_of(arguments, table, "pipeline")?;
    let (root, out) = (arguments.root(), arguments.out.as_path());
    let beside = arguments.config.parent().unwrap_or(Path::new("."));

    let of_tagger = tagger_of(&experiment, beside)?;
    let before = learned_by(arguments, &experiment, &of_tagger)?;
    let mut known = before.only(Trained);
    // Built-in parts of the pipeline.
    known.join("", Some(&Lexical::embedded().learned(MentionSource::Detect)?.only(Trained)));
    let (mut corpora, mut seen) = (Vec::new(), BTreeMap::new());
    for config in &experiment.held_out {
        let documents = documents_of(config, root)?;
        let found = check_unseen(&known, &documents, (&config.name, arguments.allow_seen))?;
        seen.extend(found.map(|found| (config.name.clone(), found)));
        corpora.push((config, documents));
    }

    let names_out = out.join("names");
    if !is_complete(&names_out) || !names_out.join(FILE).exists() || !data_unchanged(&names_out, root)? {
        let names = TrainOptions {
            config: beside.join(&experiment.names),
            data_root: Some(root.to_path_buf()),
            out: names_out.clone(),
            overrides: Vec::new(),
            record_onto: None,
            allow_seen: arguments.allow_seen,
            fetch: arguments.fetch,
        };
        rescnn::run(&names, super::read_table(&names.config, &[])?)?;
    }
    let names = NameEncoderBundle::open(&names_out)?;

    let trained = tagger::train(&of_tagger, root, arguments.allow_seen, &mkdir(out, "tagger")?)?;
    let with_tagger = |trained: &tagger::Trained, decision| {
        let manifest = TaggerManifest {
            config: of_tagger.model.clone(),
            label_sets: of_tagger.label_sets(&experiment.label_sets),
            decision,
        };
        names.clone().with_tagger(&trained.extractor, &trained.prior, &trained.parameters, manifest)
    };
    let bundle = with_tagger(&trained, Decision::BEGIN);
    let mut labelled = Vec::new();
    for (config, documents) in &corpora {
        status::say(&format!("{} …", config.name));
        labelled.push(evaluate(config, documents, root, &bundle)?);
    }
    let (mut decision, figures) = fit_decision(&labelled, experiment.beta);
    decision.unlinked_names_only = experiment.unlinked_names_only;
    let by_halves = figures_by_halves(&labelled, experiment.beta);
    status::say(&format!("{decision:?}"));
    let mut held_out = with_tagger(&trained, decision);
    held_out.manifest.card.clone_from(&experiment.card);
    held_out.learned = Some(before);
    let trained = match experiment.refit {
        true => tagger::train(&of_tagger.on_everything(), root, arguments.allow_seen, &mkdir(out, "tagger-refit")?)?,
        false => trained,
    };
    let mut bundle = with_tagger(&trained, decision);
    bundle.manifest.card.clone_from(&experiment.card);
    bundle.learned = Some(learned(arguments, &experiment)?);
    let bytes = bundle.to_bytes(Precision::RoundedHalf)?;
    let report = Report {
        decision,
        scores: experiment.held_out.iter().map(|config| config.name.clone()).zip(figures).collect(),
        by_halves: experiment.held_out.iter().map(|config| config.name.clone()).zip(by_halves).collect(),
        seen,
        bytes: bytes.len(),
    };
    let paths: BTreeSet<&PathBuf> =
        experiment.held_out.iter().flat_map(|config| [&config.documents, &config.terminology]).collect();
    let report = to_json(&report)?;
    let held_out = experiment.refit.then(|| held_out.to_bytes(Precision::RoundedHalf)).transpose()?;
    let files = [(FILE, bytes.as_slice()), (REPORT, report.as_bytes())];
    let files: Vec<_> = held_out.iter().map(|bytes| (HELD_OUT, bytes.as_slice())).chain(files).collect();
    write_run(out, &experiment, &provenance(paths, root)?, &files)
}

/// The bundle before retraining on all corpora. Its tagger has not seen the held-out corpora, so it can be evaluated on them.
pub const HELD_OUT: &str = "model-held-out.safetensors";

fn tagger_of(experiment: &Experiment, beside: &Path) -> canonym_core::Result<tagger::Experiment> {
    let tagger = beside.join(&experiment.tagger);
    let of_tagger: tagger::Experiment = settings(&tagger, super::read_table(&tagger, &[])?)
        .with_context(|| format!("{} is not a valid tagger experiment", experiment.tagger.display()))?;
    of_tagger.without(&experiment.leave_out)
}

/// The training record of the final bundle.
pub fn learned(arguments: &TrainOptions, experiment: &Experiment) -> canonym_core::Result<Learned> {
    let beside = arguments.config.parent().unwrap_or(Path::new("."));
    let of_tagger = tagger_of(experiment, beside)?;
    match experiment.refit {
        true => learned_by(arguments, experiment, &of_tagger.on_everything()),
        false => learned_by(arguments, experiment, &of_tagger),
    }
}

/// The training record of a bundle with a tagger of this experiment.
fn learned_by(
    arguments: &TrainOptions,
    experiment: &Experiment,
    of_tagger: &tagger::Experiment,
) -> canonym_core::Result<Learned> {
    let (root, beside) = (arguments.root(), arguments.config.parent().unwrap_or(Path::new(".")));
    let mut all = tagger::learned(of_tagger, root)?;
    for config in &experiment.held_out {
        let source = of_corpus(DECISION_PART, Tuned, &config.documents, root)?;
        let corpus = config.of.clone().unwrap_or_else(|| source.corpus.clone());
        all.add(TrainingSource { corpus, ..source });
    }
    let path = beside.join(&experiment.names);
    let names = settings(&path, super::read_table(&path, &[])?)
        .with_context(|| format!("{} is not a valid ResCNN experiment", path.display()))?;
    all.join("", Some(&rescnn::learned(&names, root)?));
    Ok(all)
}

fn mkdir(out: &Path, name: &str) -> canonym_core::Result<PathBuf> {
    let folder = out.join(name);
    std::fs::create_dir_all(&folder).map_err(|error| canonym_core::Error::io("create", &folder, error))?;
    Ok(folder)
}

/// Reads the documents of a corpus; annotations with wrong offsets are dropped.
fn documents_of(config: &HeldOutConfig, root: &Path) -> canonym_core::Result<Vec<AnnotatedDocument>> {
    Reader::open(&data_file(&config.documents, root), None)?.with_on_mismatch(OnMismatch::Drop).collect()
}

/// The span proposals of the bundle in a corpus, each with whether its span and its link are correct.
fn evaluate(
    config: &HeldOutConfig,
    documents: &[AnnotatedDocument],
    root: &Path,
    bundle: &NameEncoderBundle,
) -> canonym_core::Result<LabelledCorpus> {
    let kb = compile_trees(
        &config.name,
        &data_file(&config.terminology, root),
        config.prefix.as_deref(),
        config.trees.as_ref(),
        root,
    )?;
    let kb = Arc::new(kb);
    let labelled = labelled_proposals(&pipeline_on(&kb, bundle)?, &kb, documents);
    Ok(LabelledCorpus { count_unlinked: config.count_unlinked, weight: config.weight, ..labelled })
}

/// The span proposals in documents, each with whether its span and its link are correct; a corpus of weight one.
pub fn labelled_proposals(pipeline: &Pipeline, kb: &KnowledgeBase, documents: &[AnnotatedDocument]) -> LabelledCorpus {
    let proposals = pipeline.proposals(&Analysis::all(documents.iter().map(|document| &document.document)));
    let mut labelled = LabelledCorpus { weight: 1, ..LabelledCorpus::default() };
    for (document, proposals) in documents.iter().zip(proposals) {
        let mut gold: BTreeMap<Vec<Span>, Vec<IdSet>> = BTreeMap::new();
        labelled.counts.push((document.annotations.len(), 0));
        for annotation in &document.annotations {
            let ids = IdSet::parse(&annotation.ids);
            if let Some((_, n_links)) = labelled.counts.last_mut() {
                *n_links += usize::from(!ids.is_nil());
            }
            gold.entry(annotation.spans.clone()).or_default().push(ids);
        }
        let right = |one: &SpanProposal| {
            let Some(golds) = gold.get(&one.spans) else { return (false, false) };
            let linked = one.link.candidates.first().is_some_and(|best| {
                let ids = IdSet::parse_one(kb.id(best.concept));
                golds.iter().any(|gold| gold.intersects(&ids))
            });
            (true, linked)
        };
        labelled
            .documents
            .push(proposals.into_iter().map(|one| (right(&one), one)).map(|(right, one)| (one, right)).collect());
    }
    labelled
}

/// The pipeline of a bundle; fails if the bundle has no tagger.
pub fn pipeline_on(kb: &Arc<KnowledgeBase>, bundle: &NameEncoderBundle) -> canonym_core::Result<Pipeline> {
    let model = PipelineModel::new(Arc::new(bundle.clone()))?;
    let pipeline = model
        .pipeline(&Target::new(kb, None), RecogniseConfig { nested: Nested::None, ..RecogniseConfig::default() })?;
    pipeline.ok_or_else(|| canonym_core::Error::unsupported("the bundle has no tagger"))
}
