//! What the server asks of models. It knows none by name: whoever starts it brings an [`Engine`], and a [`Trainer`] where models can be made.
//!
//! All methods block and are called on threads that may.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use canonym_core::corpus::AnnotatedDocument;
use canonym_core::eval::learned::Learned;
use canonym_core::kb::KnowledgeBase;
use canonym_core::link::Link;
use canonym_core::link::explain::Explanation;
use serde::{Deserialize, Serialize};

/// How documents are linked.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LinkOptions {
    /// Candidates a mention.
    pub top_k: usize,
    /// Abstain below this probability; as the model has it where `None`.
    pub min_score: Option<f32>,
    /// Whether mentions inside longer ones are given, too.
    pub nested: bool,
    /// What becomes of mentions without a concept.
    pub nil: Nil,
}

/// What becomes of mentions without a concept.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Nil {
    /// They are left out.
    Drop,
    /// They are given, with `nil`.
    #[default]
    Keep,
}

impl Default for LinkOptions {
    fn default() -> LinkOptions {
        LinkOptions { top_k: 5, min_score: None, nested: false, nil: Nil::Keep }
    }
}

/// A model on a knowledge base.
pub trait Engine: Send + Sync {
    /// The knowledge base.
    fn kb(&self) -> &KnowledgeBase;

    /// What the model is called.
    fn name(&self) -> &str;

    /// What the model learned from; nothing where that is not known.
    fn learned(&self) -> canonym_core::Result<Learned> {
        Ok(Learned::default())
    }

    /// Finds and links mentions, in the place of the annotations that the documents have.
    fn link(
        &self,
        documents: Vec<AnnotatedDocument>,
        options: &LinkOptions,
    ) -> canonym_core::Result<Vec<AnnotatedDocument>>;

    /// As [`Engine::link`], each annotation with its reasons.
    fn explain(
        &self,
        documents: Vec<AnnotatedDocument>,
        options: &LinkOptions,
    ) -> canonym_core::Result<Vec<(AnnotatedDocument, Vec<Explanation>)>>;

    /// Links the mentions that the documents have.
    fn link_mentions(
        &self,
        documents: Vec<AnnotatedDocument>,
        top_k: usize,
    ) -> canonym_core::Result<Vec<AnnotatedDocument>>;

    /// Links names without context.
    fn map(&self, names: &[String], top_k: usize) -> canonym_core::Result<Vec<Link>>;
}

/// What a document is to a training: what to learn from, or what to leave alone.
#[derive(Debug, Clone, PartialEq)]
pub struct TrainingDocument {
    /// The text with the marks that people made or confirmed. Rejected marks and open predictions are not there.
    pub document: AnnotatedDocument,
    /// Whether somebody finished it, or it came with marks: then what is not marked is no mention.
    pub is_finished: bool,
}

/// What a training is asked to do.
#[derive(Debug, Clone)]
pub struct Training {
    /// The documents, in the order of the project.
    pub documents: Vec<TrainingDocument>,
    /// The folder of the model to start from; the model of the server where `None`.
    pub parent: Option<PathBuf>,
    /// The folder to write the model into; it does not exist yet.
    pub output: PathBuf,
    /// What the caller of the interface set.
    pub settings: serde_json::Value,
    /// Where random choices start.
    pub seed: u64,
}

/// What a training would do, told before it starts.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct TrainingPlan {
    /// Documents of which every mention is known: they teach what a mention is, and what it means.
    pub n_complete: usize,
    /// Complete documents that are held out, to measure on.
    pub n_held_out: usize,
    /// Documents that are not finished: they teach what a name means.
    pub n_incomplete: usize,
    /// Documents that teach nothing, since nobody decided anything there.
    pub n_silent: usize,
    /// Mentions in what is learned from.
    pub n_mentions: usize,
    /// The steps that it would take.
    pub steps: u64,
    /// The fewest steps.
    pub least_steps: u64,
    /// The most steps.
    pub most_steps: u64,
    /// One complete document of this number is held out; none where it is 0.
    pub hold_out: usize,
}

/// A point of a learning curve.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct CurvePoint {
    /// The step.
    pub step: u64,
    /// The loss on what is trained on.
    pub loss: f64,
    /// The measure on what was held out.
    pub dev: Option<f64>,
}

/// How far something is.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Progress {
    /// The share that is done, 0 to 1.
    pub done: f64,
    /// What is being done.
    pub message: String,
    /// A new point of the curve.
    pub point: Option<CurvePoint>,
}

/// Figures of a model on documents that it was not trained on.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct DevFigures {
    /// F1 of places with their concepts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strict_f1: Option<f64>,
    /// F1 of places.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spans_f1: Option<f64>,
    /// The share of right concepts where the places are given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accuracy: Option<f64>,
    /// The documents that it was measured on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub n_documents: Option<usize>,
    /// Held-out documents that a model had been trained on, which are left out of the figures of all models.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub n_seen: Option<usize>,
}

/// What a training made.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Trained {
    /// What the model is called.
    pub name: String,
    /// What people should know of it, as Markdown.
    pub card: String,
    /// Its figures, where documents were held out.
    pub dev: Option<DevFigures>,
}

/// Makes models, and opens those that it made.
pub trait Trainer: Send + Sync {
    /// Trains a model into [`Training::output`]. `told` hears of progress; where it breaks the training ends soon, with an error, and leaves no
    /// model. A training that runs in a process of its own ends it then.
    fn train(
        &self,
        training: &Training,
        told: &mut dyn FnMut(Progress) -> ControlFlow<()>,
    ) -> canonym_core::Result<Trained>;

    /// What [`Trainer::train`] would do with documents and settings; an error where it knows no such settings.
    fn plan(&self, documents: &[TrainingDocument], settings: &serde_json::Value) -> canonym_core::Result<TrainingPlan>;

    /// Which of the documents [`Trainer::train`] holds out: models are compared on them. None where it holds nothing out.
    fn held_out(
        &self,
        documents: &[TrainingDocument],
        _settings: &serde_json::Value,
    ) -> canonym_core::Result<Vec<bool>> {
        Ok(vec![false; documents.len()])
    }

    /// The file that is a model that was trained, for use elsewhere.
    fn file(&self, folder: &Path) -> PathBuf;

    /// Opens a model that was trained.
    fn open(&self, folder: &Path) -> canonym_core::Result<Arc<dyn Engine>>;
}
