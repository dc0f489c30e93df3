//! A whole system: the tagger, the model of names, and how what they say is weighed. The default bundle is made of it.

use crate::system::parts;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::bundle::{Bundle, EVIDENCE_PART, FILE, TaggerManifest};
use crate::models::decision::Decision;
use crate::models::tagger::typed::LabelSet;
use crate::system::pipeline::fit::{Figures, Judged, figures_by_halves, fit_decision};
use crate::system::pipeline::{Pipeline, PipelineConfig, SpanProposal};
use crate::tensor::parameters::Precision;
use canonym_core::corpus::{AnnotatedDocument, OnMismatch, Reader};
use canonym_core::error::Context;
use canonym_core::eval::ids::IdSet;
use canonym_core::eval::learned::{Learned, Role::Trained, Role::Tuned, Seen, Source};
use canonym_core::kb::KnowledgeBase;
use canonym_core::text::{Document, Span};
use serde::{Deserialize, Serialize};

use super::checkpoints::data_file;
use super::data::{Trees, compile_trees};
use super::learned::{check_judged, of_corpus};
use super::run_folder::{provenance, write_bytes, write_run};
use super::{TrainOptions, rescnn, settings, tagger};
use crate::status;
use crate::system::linked::MentionSource;
use crate::system::parts::Models;

/// An experiment.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Experiment {
    system: String,
    /// An experiment of the tagger, beside this one.
    tagger: PathBuf,
    /// Corpora of that experiment, by name, from which nothing is learned; layers that no other corpus teaches are left out with them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    leave_out: Vec<String>,
    /// What layers are for, by name, where that experiment says otherwise.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    layers: BTreeMap<String, LabelSet>,
    /// An experiment of ResCNN, beside this one.
    names: PathBuf,
    /// How much recall counts against precision where the threshold of links is chosen.
    #[serde(default = "even")]
    beta: f64,
    /// What the weights of evidence are fitted to: held out from both.
    judge: Vec<JudgeConfig>,
    /// Whether the tagger is trained again with its held-out corpora, after they have set what is set on them.
    #[serde(default)]
    refit: bool,
    /// For people: data, limits, licence.
    card: String,
}

/// A corpus with the terminology that its annotators used.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct JudgeConfig {
    name: String,
    documents: PathBuf,
    terminology: PathBuf,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    prefix: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    trees: Option<Trees>,
    /// Whether its mentions without a concept count where mentions are judged.
    #[serde(default)]
    judges_mentions: bool,
    /// How often it counts in the fit, against the others.
    #[serde(default = "one")]
    weight: usize,
    /// Which corpus the documents are of, where that is not the name of their folder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    of: Option<String>,
}

fn even() -> f64 {
    1.0
}

fn one() -> usize {
    1
}

/// The figures of a run; the tagger and the model of names have their own beside it.
#[derive(Debug, Serialize)]
struct Report {
    decision: Decision,
    /// Of the corpora that the weights were fitted to.
    judged: BTreeMap<String, Figures>,
    /// Of the same, with weights and thresholds that were fitted to the other half of the documents: the figures to quote.
    by_halves: BTreeMap<String, Figures>,
    /// Which documents of these corpora a part was trained on, where one was.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    seen: BTreeMap<String, Seen>,
    bytes: usize,
}

/// Runs an experiment.
pub fn run(arguments: &TrainOptions, table: toml::Table) -> canonym_core::Result<()> {
    let path = arguments.config.display();
    let experiment: Experiment =
        settings(&arguments.config, table).with_context(|| format!("{path} is no experiment of a pipeline"))?;
    let (root, out) = (arguments.root(), arguments.out.as_path());
    std::fs::create_dir_all(out).map_err(|error| canonym_core::Error::io("create", out, error))?;
    let beside = arguments.config.parent().unwrap_or(Path::new("."));

    let of_tagger = tagger_of(&experiment, beside)?;
    let before = learned_by(arguments, &experiment, &of_tagger)?;
    let mut known = before.only(Trained);
    // Parts of the pipeline that come with the program.
    known.join("", Some(&Models::built_in().learned(MentionSource::Detect)?.only(Trained)));
    let (mut corpora, mut seen) = (Vec::new(), BTreeMap::new());
    for config in &experiment.judge {
        let documents = documents_of(config, root)?;
        let found = check_judged(&known, &documents, (&config.name, arguments.allow_seen))?;
        seen.extend(found.map(|found| (config.name.clone(), found)));
        corpora.push((config, documents));
    }

    let names_out = out.join("names");
    if !names_out.join(FILE).exists() {
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
    let names = Bundle::open(&names_out)?;

    let trained = tagger::train(&of_tagger, (root, arguments.allow_seen), &made(out, "tagger")?)?;
    let with_tagger = |trained: &tagger::Trained, decision| {
        let manifest =
            TaggerManifest { config: of_tagger.model.clone(), layers: of_tagger.layers(&experiment.layers), decision };
        names.clone().with_tagger((&trained.viewer, &trained.usages), &trained.parameters, manifest)
    };
    let bundle = with_tagger(&trained, Decision::BEGIN);
    let mut judged = Vec::new();
    for (config, documents) in &corpora {
        status::say(&format!("{} …", config.name));
        judged.push(judge(config, documents, root, &bundle)?);
    }
    let (decision, figures) = fit_decision(&judged, experiment.beta);
    let by_halves = figures_by_halves(&judged, experiment.beta);
    status::say(&format!("{decision:?}"));
    let mut held_out = with_tagger(&trained, decision);
    held_out.manifest.card.clone_from(&experiment.card);
    held_out.learned = Some(before);
    let trained = match experiment.refit {
        true => tagger::train(&of_tagger.on_everything(), (root, arguments.allow_seen), &made(out, "tagger-refit")?)?,
        false => trained,
    };
    let mut bundle = with_tagger(&trained, decision);
    bundle.manifest.card.clone_from(&experiment.card);
    bundle.learned = Some(learned(arguments, &experiment)?);
    let bytes = bundle.to_bytes(Precision::Half)?;
    let report = Report {
        decision,
        judged: experiment.judge.iter().map(|config| config.name.clone()).zip(figures).collect(),
        by_halves: experiment.judge.iter().map(|config| config.name.clone()).zip(by_halves).collect(),
        seen,
        bytes: bytes.len(),
    };
    let paths: BTreeSet<&PathBuf> =
        experiment.judge.iter().flat_map(|config| [&config.documents, &config.terminology]).collect();
    write_run(out, &experiment, &report, &provenance(paths, root)?)?;
    if experiment.refit {
        write_bytes(out, HELD_OUT, &held_out.to_bytes(Precision::Half)?)?;
    }
    write_bytes(out, FILE, &bytes)
}

/// The bundle from before the last training, whose tagger has not seen the held-out corpora: what they can be judged with.
pub const HELD_OUT: &str = "model-held-out.safetensors";

fn tagger_of(experiment: &Experiment, beside: &Path) -> canonym_core::Result<tagger::Experiment> {
    let tagger = beside.join(&experiment.tagger);
    let of_tagger: tagger::Experiment = settings(&tagger, super::read_table(&tagger, &[])?)
        .with_context(|| format!("{} is no experiment of the tagger", experiment.tagger.display()))?;
    of_tagger.without(&experiment.leave_out)
}

/// What the whole learns from, its last training included.
pub fn learned(arguments: &TrainOptions, experiment: &Experiment) -> canonym_core::Result<Learned> {
    let beside = arguments.config.parent().unwrap_or(Path::new("."));
    let of_tagger = tagger_of(experiment, beside)?;
    match experiment.refit {
        true => learned_by(arguments, experiment, &of_tagger.on_everything()),
        false => learned_by(arguments, experiment, &of_tagger),
    }
}

/// What the whole learns from with a tagger of this experiment.
fn learned_by(
    arguments: &TrainOptions,
    experiment: &Experiment,
    of_tagger: &tagger::Experiment,
) -> canonym_core::Result<Learned> {
    let (root, beside) = (arguments.root(), arguments.config.parent().unwrap_or(Path::new(".")));
    let mut all = tagger::learned(of_tagger, root)?;
    for config in &experiment.judge {
        let source = of_corpus(EVIDENCE_PART, Tuned, &config.documents, root)?;
        let corpus = config.of.clone().unwrap_or_else(|| source.corpus.clone());
        all.add(Source { corpus, ..source });
    }
    let path = beside.join(&experiment.names);
    let names = settings(&path, super::read_table(&path, &[])?)
        .with_context(|| format!("{} is no experiment of ResCNN", path.display()))?;
    all.join("", Some(&rescnn::learned(&names, root)?));
    Ok(all)
}

fn made(out: &Path, name: &str) -> canonym_core::Result<PathBuf> {
    let folder = out.join(name);
    std::fs::create_dir_all(&folder).map_err(|error| canonym_core::Error::io("create", &folder, error))?;
    Ok(folder)
}

/// The documents of a corpus that the weights of evidence are fitted to.
fn documents_of(config: &JudgeConfig, root: &Path) -> canonym_core::Result<Vec<AnnotatedDocument>> {
    Reader::open(&data_file(&config.documents, root), None)?.with_on_mismatch(OnMismatch::Drop).collect()
}

/// What the bundle proposes in a corpus, right or wrong.
fn judge(
    config: &JudgeConfig,
    documents: &[AnnotatedDocument],
    root: &Path,
    bundle: &Bundle,
) -> canonym_core::Result<Judged> {
    let kb = compile_trees(
        &config.name,
        &data_file(&config.terminology, root),
        config.prefix.as_deref(),
        (config.trees.as_ref(), root),
    )?;
    let kb = Arc::new(kb);
    let pipeline = pipeline_on(&kb, bundle)?;
    let texts: Vec<Document> = documents.iter().map(|document| document.document.clone()).collect();
    let places = pipeline.proposals(&texts);
    let mut judged = Judged { judges_mentions: config.judges_mentions, weight: config.weight, ..Judged::default() };
    for (document, places) in documents.iter().zip(places) {
        let mut gold: BTreeMap<Vec<Span>, Vec<IdSet>> = BTreeMap::new();
        judged.counts.push((document.annotations.len(), 0));
        for annotation in &document.annotations {
            let ids = IdSet::parse(&annotation.ids);
            if let Some((_, n_links)) = judged.counts.last_mut() {
                *n_links += usize::from(!ids.is_nil());
            }
            gold.entry(annotation.spans.clone()).or_default().push(ids);
        }
        let right = |place: &SpanProposal| {
            let Some(golds) = gold.get(&place.spans) else { return (false, false) };
            let linked = place.link.candidates.first().is_some_and(|best| {
                let ids = IdSet::parse_one(kb.id(best.concept));
                golds.iter().any(|gold| gold.intersects(&ids))
            });
            (true, linked)
        };
        judged.documents.push(
            places.into_iter().map(|place| (right(&place), place)).map(|(right, place)| (place, right)).collect(),
        );
    }
    Ok(judged)
}

/// The pipeline of a bundle that has a tagger.
pub fn pipeline_on(kb: &Arc<KnowledgeBase>, bundle: &Bundle) -> canonym_core::Result<Pipeline> {
    let models = Models::of_bundle(Arc::new(bundle.clone()))?;
    parts::pipeline(kb, &models, PipelineConfig { top_k: 5, min_score: None, nested: false }, None)?
        .ok_or_else(|| canonym_core::Error::invalid("the bundle has no tagger"))
}
