//! What the server needs from models: an [`Engine`], and a [`Trainer`] if training is enabled. The program that starts the server provides both.
//!
//! All methods block, and are called on threads for blocking work.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use canonym_core::corpus::AnnotatedDocument;
use canonym_core::eval::learned::Learned;
use canonym_core::kb::KnowledgeBase;
use canonym_core::kb::subset::SubsetConfig;
use canonym_core::link::Link;
use canonym_core::link::explain::Explanation;
use canonym_core::link::recognise::Nested;
use serde::de::{self, Deserializer};
use serde::{Deserialize, Serialize};

use crate::error::{ApiError, ApiResult};

/// Where mentions come from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Mentions {
    /// They are detected.
    #[default]
    Detected,
    /// They are those of the documents.
    Given,
}

/// Options of linking.
#[derive(Debug, Clone, PartialEq)]
pub struct LinkOptions {
    /// Candidates per mention.
    pub top_k: usize,
    /// Leave mentions below this probability unlinked; the model's default if `None`.
    pub min_score: Option<f32>,
    /// Which mentions nested in longer ones are reported.
    pub nested: Nested,
    /// Whether unlinked mentions are kept.
    pub nil: Nil,
    /// Where mentions come from.
    pub mentions: Mentions,
    /// Concept filters; `None` for all concepts.
    pub filters: Option<Arc<SubsetConfig>>,
}

/// Whether unlinked mentions are kept.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Nil {
    /// Drop them.
    Drop,
    /// Keep them, with `nil`.
    #[default]
    Keep,
}

/// By hand, because the message of the derived code for a value of another type, such as `true`, names no values.
impl<'de> Deserialize<'de> for Nil {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Nil, D::Error> {
        struct Visitor;
        impl de::Visitor<'_> for Visitor {
            type Value = Nil;

            fn expecting(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                out.write_str("\"drop\" or \"keep\" for `nil`")
            }

            fn visit_str<E: de::Error>(self, value: &str) -> Result<Nil, E> {
                match value {
                    "drop" => Ok(Nil::Drop),
                    "keep" => Ok(Nil::Keep),
                    _ => Err(E::invalid_value(de::Unexpected::Str(value), &self)),
                }
            }
        }
        deserializer.deserialize_str(Visitor)
    }
}

impl LinkOptions {
    /// The default options with another number of candidates.
    pub fn top(top_k: usize) -> LinkOptions {
        LinkOptions { top_k, ..LinkOptions::default() }
    }
}

impl Default for LinkOptions {
    fn default() -> LinkOptions {
        LinkOptions {
            top_k: 5,
            min_score: None,
            nested: Nested::default(),
            nil: Nil::Keep,
            mentions: Mentions::Detected,
            filters: None,
        }
    }
}

/// A linking system with its knowledge base.
pub trait Engine: Send + Sync {
    /// The knowledge base.
    fn kb(&self) -> &KnowledgeBase;

    /// The name of the model.
    fn name(&self) -> &str;

    /// The record of the documents that the model learned from; empty if unknown.
    fn learned(&self) -> canonym_core::Result<Learned> {
        Ok(Learned::default())
    }

    /// Fails if a file that is read while linking was modified after it was opened.
    fn check_unchanged(&self) -> canonym_core::Result<()> {
        self.kb().container().check_unchanged()
    }

    /// The engine of another model of the program on the same knowledge base; `None` if no model of this name may be requested.
    fn with_model(&self, _name: &str) -> canonym_core::Result<Option<Arc<dyn Engine>>> {
        Ok(None)
    }

    /// Finds and links mentions, or links those given; replaces the annotations of the documents.
    fn link(
        &self,
        documents: Vec<AnnotatedDocument>,
        options: &LinkOptions,
    ) -> canonym_core::Result<Vec<AnnotatedDocument>>;

    /// Like [`Engine::link`], with the evidence for each annotation.
    fn explain(
        &self,
        documents: Vec<AnnotatedDocument>,
        options: &LinkOptions,
    ) -> canonym_core::Result<Vec<(AnnotatedDocument, Vec<Explanation>)>>;

    /// Links given mentions.
    fn link_mentions(
        &self,
        documents: Vec<AnnotatedDocument>,
        top_k: usize,
    ) -> canonym_core::Result<Vec<AnnotatedDocument>>;

    /// Links names without context. Of the options, `top_k`, `min_score` and `filters` count.
    fn map(&self, names: &[String], options: &LinkOptions) -> canonym_core::Result<Vec<Link>>;

    /// Like [`Engine::map`], with the evidence for each name.
    fn explain_names(&self, names: &[String], options: &LinkOptions) -> canonym_core::Result<Vec<(Link, Explanation)>>;
}

/// Fails if the file of the knowledge base, or that of its index, was modified after it was opened.
pub fn check_kb(engine: &dyn Engine) -> ApiResult<()> {
    engine.check_unchanged().map_err(|error| {
        tracing::error!("{error}");
        ApiError::unavailable("the file of the knowledge base or of its index was modified while the server was running").hint(
            "rebuild it with `canonym kb build` or `canonym index build`, which replaces the file, and restart the server; nothing was changed",
        )
    })
}

/// What earlier trainings used a document for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Split {
    /// A model was trained on it.
    Train,
    /// It was held out.
    Test,
}

impl Split {
    /// The name in the database.
    pub fn name(self) -> &'static str {
        match self {
            Split::Train => "train",
            Split::Test => "test",
        }
    }

    /// The split with this name.
    pub fn parse(name: &str) -> Option<Split> {
        [Split::Train, Split::Test].into_iter().find(|one| one.name() == name)
    }
}

/// A document of a project, as training data.
#[derive(Debug, Clone, PartialEq)]
pub struct TrainingDocument {
    /// The number.
    pub number: i64,
    /// The text with gold and reviewed annotations, without rejected ones and unreviewed predictions.
    pub document: AnnotatedDocument,
    /// Whether all its mentions are annotated: it is finished, or was imported with gold annotations.
    pub is_finished: bool,
    /// What earlier trainings used it for; `None` if it is new to them.
    pub split: Option<Split>,
}

/// The input of a training.
#[derive(Debug, Clone)]
pub struct Training {
    /// The documents, in project order.
    pub documents: Vec<TrainingDocument>,
    /// The folder of the model to start from; the server's model if `None`.
    pub parent: Option<PathBuf>,
    /// The folder to create and write the model to.
    pub output: PathBuf,
    /// Settings from the API request.
    pub settings: serde_json::Value,
    /// The random seed.
    pub seed: u64,
}

/// A preview of a training.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct TrainingPlan {
    /// Complete documents: finished, or imported with gold annotations.
    pub n_complete: usize,
    /// Complete documents in the test set.
    pub n_held_out: usize,
    /// Partly reviewed documents: they train linking only, not mention detection.
    pub n_incomplete: usize,
    /// Unreviewed documents, which are not used.
    pub n_unreviewed: usize,
    /// Mentions in the training set.
    pub n_mentions: usize,
    /// Training steps.
    pub steps: u64,
    /// The minimum number of steps.
    pub min_steps: u64,
    /// The maximum number of steps.
    pub max_steps: u64,
    /// One of this many complete documents is held out; 0 for none.
    pub hold_out: usize,
}

/// A point of a learning curve.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct CurvePoint {
    /// The step.
    pub step: u64,
    /// The training loss.
    pub loss: f64,
    /// The score on held-out documents.
    pub dev: Option<f64>,
}

/// Progress of a job.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Progress {
    /// The fraction that is done, 0 to 1.
    pub done: f64,
    /// What it is doing.
    pub message: String,
    /// A new point of the learning curve.
    pub point: Option<CurvePoint>,
}

/// The bounds of a confidence interval.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct FigureRange {
    /// The lower bound.
    pub low: f64,
    /// The upper bound.
    pub high: f64,
}

/// Scores of a model on held-out documents.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct DevFigures {
    /// Linking F1: span and concept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strict_f1: Option<f64>,
    /// Span F1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spans_f1: Option<f64>,
    /// Linking accuracy on given mentions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accuracy: Option<f64>,
    /// 95 % confidence interval of `strict_f1`, over documents.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strict_f1_ci: Option<FigureRange>,
    /// 95 % confidence interval of `spans_f1`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spans_f1_ci: Option<FigureRange>,
    /// 95 % confidence interval of `accuracy`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accuracy_ci: Option<FigureRange>,
    /// How much better its linking F1 is than that of the model that was in use before, on the same documents.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gain: Option<f64>,
    /// 95 % confidence interval of `gain`, of the same resamples for both models.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gain_ci: Option<FigureRange>,
    /// Number of documents evaluated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub n_documents: Option<usize>,
    /// Fingerprint of the documents evaluated, with their texts and annotations: scores with the same one are comparable.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub test_set: Option<String>,
    /// The last model scored on another state of the test set, whose documents were added or corrected since; absent if it is the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changed_since: Option<String>,
    /// Held-out documents seen in training by any of the models; excluded from the scores of all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub n_seen: Option<usize>,
}

/// The result of a training.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Trained {
    /// The name of the model.
    pub name: String,
    /// The model card, as Markdown.
    pub card: String,
    /// Scores, if documents were held out.
    pub dev: Option<DevFigures>,
}

/// Trains models and opens trained ones.
pub trait Trainer: Send + Sync {
    /// Trains a model into [`Training::output`]. `on_progress` is called with progress; if it breaks, training is cancelled with an error and leaves no
    /// model.
    fn train(
        &self,
        training: &Training,
        on_progress: &mut dyn FnMut(Progress) -> ControlFlow<()>,
    ) -> canonym_core::Result<Trained>;

    /// A preview of [`Trainer::train`]; fails if the settings are invalid.
    fn plan(&self, documents: &[TrainingDocument], settings: &serde_json::Value) -> canonym_core::Result<TrainingPlan>;

    /// Which documents [`Trainer::train`] holds out; models are compared on them.
    fn held_out(
        &self,
        documents: &[TrainingDocument],
        _settings: &serde_json::Value,
    ) -> canonym_core::Result<Vec<bool>> {
        Ok(vec![false; documents.len()])
    }

    /// The file of a trained model, for download.
    fn file(&self, folder: &Path) -> PathBuf;

    /// Opens a trained model.
    fn open(&self, folder: &Path) -> canonym_core::Result<Arc<dyn Engine>>;
}
