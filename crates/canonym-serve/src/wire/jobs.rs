//! The server, jobs, models and statistics.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::Person;
use crate::engine::{CurvePoint, DevFigures};

/// The server.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct About {
    /// The version of canonym.
    pub version: &'static str,
    /// The terminology.
    pub kb: AboutKb,
    /// The model.
    pub model: AboutModel,
    /// The signed-in user.
    pub user: Option<Person>,
    /// Whether signing in is required.
    pub needs_login: bool,
    /// Whether training is enabled.
    pub can_train: bool,
}

/// The terminology.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct AboutKb {
    /// The name.
    pub name: String,
    /// Number of concepts.
    pub n_concepts: usize,
    /// Number of names.
    pub n_names: usize,
    /// The fingerprint.
    pub fingerprint: String,
}

/// The model.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct AboutModel {
    /// The name.
    pub name: String,
}

/// The kind of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum JobKind {
    /// Predicts annotations in all documents of the project.
    Predict,
    /// Trains a model on reviewed annotations.
    Train,
}

/// A new job.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewJob {
    /// The kind.
    pub kind: JobKind,
    /// Settings of a training.
    #[serde(default)]
    #[schema(value_type = Option<Object>)]
    pub settings: Option<serde_json::Value>,
}

/// The state of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize, ToSchema)]
#[serde(rename_all = "UPPERCASE")]
pub enum JobState {
    /// Created.
    New,
    /// Waiting for its turn.
    Queued,
    /// Running.
    Running,
    /// Done.
    Succeeded,
    /// Failed; `error` says why.
    Failed,
    /// Cancelled.
    Cancelled,
}

impl JobState {
    /// The state with this name.
    pub fn parse(name: &str) -> Option<JobState> {
        Some(match name {
            "NEW" => JobState::New,
            "QUEUED" => JobState::Queued,
            "RUNNING" => JobState::Running,
            "SUCCEEDED" => JobState::Succeeded,
            "FAILED" => JobState::Failed,
            "CANCELLED" => JobState::Cancelled,
            _ => return None,
        })
    }

    /// Whether it has finished.
    pub fn is_over(self) -> bool {
        matches!(self, JobState::Succeeded | JobState::Failed | JobState::Cancelled)
    }
}

/// A job.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct Job {
    /// The number.
    pub id: i64,
    /// The project.
    pub project_id: i64,
    /// `predict` or `train`.
    pub kind: String,
    /// The state.
    pub state: JobState,
    /// The fraction that is done.
    pub progress: f64,
    /// What it is doing.
    pub message: String,
    /// Why it failed.
    pub error: Option<String>,
    /// When it started.
    pub started_at: Option<String>,
    /// When it ended.
    pub ended_at: Option<String>,
    /// Estimated seconds left.
    pub eta_seconds: Option<f64>,
    /// The learning curve.
    pub curve: Vec<CurvePoint>,
    /// The trained model.
    pub model: Option<i64>,
    /// The settings that it was created with.
    #[schema(value_type = Option<Object>)]
    pub settings: serde_json::Value,
}

/// Jobs.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct Jobs {
    /// Newest first.
    pub jobs: Vec<Job>,
}

/// A model.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct Model {
    /// The number.
    pub id: i64,
    /// The name.
    pub name: String,
    /// The project that trained it; null for the server's model.
    pub project_id: Option<i64>,
    /// Whether the project uses it.
    pub is_current: bool,
    /// When it was created.
    pub made_at: String,
    /// The model that training started from.
    pub parent: Option<i64>,
    /// The model card.
    pub card: String,
    /// The scores.
    pub dev: Option<DevFigures>,
}

/// Changes to a model.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ModelPatch {
    /// The name.
    pub name: String,
}

/// Models.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct Models {
    /// Oldest first.
    pub models: Vec<Model>,
}

/// What a prediction changed in a document.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct ChangedDocument {
    /// The document.
    pub id: i64,
    /// The document's ID in the source file.
    pub external_id: String,
    /// Predictions added.
    pub added: usize,
    /// Predictions removed.
    pub removed: usize,
    /// Predictions linked to another concept.
    pub changed: usize,
}

/// What a prediction changed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, ToSchema)]
pub struct ChangedDocuments {
    /// The model of most of the previous predictions; null if there were none.
    pub model_before: Option<String>,
    /// The model of the new predictions; null if nothing was predicted or changed.
    pub model_after: Option<String>,
    /// Documents with changes.
    pub documents: Vec<ChangedDocument>,
}

/// Decisions on one day.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct DayCount {
    /// The day, in UTC.
    pub day: String,
    /// The number.
    pub n: usize,
}

/// Time per document.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, ToSchema)]
pub struct Seconds {
    /// The median, in seconds.
    pub median: f64,
    /// The mean, in seconds.
    pub mean: f64,
}

/// Inter-annotator agreement.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, ToSchema)]
pub struct Agreement {
    /// Cohen's kappa of the two annotators with the most mentions in common.
    pub cohen_kappa: Option<f64>,
    /// Krippendorff's alpha of all annotators.
    pub krippendorff_alpha: Option<f64>,
    /// Span F1 between the two annotators.
    pub span_f1: Option<f64>,
    /// Mentions that both reviewed.
    pub n_both: usize,
    /// Mentions that two or more annotators reviewed.
    pub n_several: usize,
    /// Number of annotators.
    pub n_people: usize,
}

/// The scores of a model.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct ModelFigures {
    /// The model.
    pub id: i64,
    /// The name.
    pub name: String,
    /// When it was created.
    pub at: String,
    /// The scores.
    pub dev: Option<DevFigures>,
}

/// Project statistics.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct Stats {
    /// Number of documents.
    pub n_documents: usize,
    /// Number of finished documents.
    pub n_finished: usize,
    /// Annotations by source.
    pub by_source: BTreeMap<String, usize>,
    /// Annotations by semantic type.
    pub by_type: BTreeMap<String, usize>,
    /// Decisions by kind.
    pub by_decision: BTreeMap<String, usize>,
    /// Decisions per day.
    pub decisions_per_day: Vec<DayCount>,
    /// Time per document.
    pub seconds_per_document: Option<Seconds>,
    /// Inter-annotator agreement.
    pub agreement: Option<Agreement>,
    /// The models with their scores.
    pub models: Vec<ModelFigures>,
}
