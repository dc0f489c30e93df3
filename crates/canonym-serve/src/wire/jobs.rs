//! People, jobs, models and statistics.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::engine::{CurvePoint, DevFigures};
use crate::store::people::{Person, Role, TokenRow};

/// A name and a password.
#[derive(Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Login {
    /// The name.
    pub name: String,
    /// The password.
    pub password: String,
}

/// Who is logged in.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct LoggedIn {
    /// The person.
    pub user: Person,
}

/// Somebody who is to be added.
#[derive(Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewPerson {
    /// The name.
    pub name: String,
    /// The password.
    pub password: String,
    /// What they may do.
    pub role: Role,
}

/// Somebody who is to become a member of a project.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewMember {
    /// The number of the person.
    pub id: i64,
}

/// People.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct People {
    /// In the order in which they came.
    pub people: Vec<Person>,
}

/// What is to be changed of somebody.
#[derive(Clone, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PersonPatch {
    /// What they may do.
    #[serde(default)]
    pub role: Option<Role>,
    /// A new password; it ends their logins and tokens.
    #[serde(default)]
    pub password: Option<String>,
    /// Whether they may log in.
    #[serde(default)]
    pub is_active: Option<bool>,
}

/// A new password of one's own.
#[derive(Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewPassword {
    /// The one until now.
    pub old: String,
    /// The one from now on.
    pub new: String,
}

/// One's own tokens.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct Tokens {
    /// Oldest first.
    pub tokens: Vec<TokenRow>,
}

/// A token that is to be made.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewToken {
    /// What it is for.
    pub name: String,
    /// Days after which it ends; it does not where none are given.
    #[serde(default)]
    pub days: Option<usize>,
}

/// A token; it is shown this once.
#[derive(Clone, Serialize, ToSchema)]
pub struct Token {
    /// What it is for.
    pub name: String,
    /// What to send as `Authorization: Bearer …`.
    pub token: String,
}

/// What the server is.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct About {
    /// The version of the program.
    pub version: &'static str,
    /// The terminology.
    pub kb: AboutKb,
    /// The model.
    pub model: AboutModel,
    /// Who is logged in.
    pub user: Option<Person>,
    /// Whether nothing can be done without a login.
    pub needs_login: bool,
    /// Whether models can be trained here.
    pub can_train: bool,
}

/// The terminology.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct AboutKb {
    /// Its name.
    pub name: String,
    /// Its concepts.
    pub n_concepts: usize,
    /// Their names.
    pub n_names: usize,
    /// What tells it from others.
    pub fingerprint: String,
}

/// The model.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct AboutModel {
    /// Its name.
    pub name: String,
}

/// What a job does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum JobKind {
    /// Predicts marks in all documents of the project.
    Predict,
    /// Trains a model on what people decided.
    Train,
}

/// A job that is to be made.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewJob {
    /// What it does.
    pub kind: JobKind,
    /// How.
    #[serde(default)]
    #[schema(value_type = Option<Object>)]
    pub settings: Option<serde_json::Value>,
}

/// Where a job stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize, ToSchema)]
#[serde(rename_all = "UPPERCASE")]
pub enum JobState {
    /// It was made.
    New,
    /// It waits.
    Queued,
    /// It runs.
    Running,
    /// It did what it was to do.
    Succeeded,
    /// It could not; `error` says why.
    Failed,
    /// Somebody ended it.
    Cancelled,
}

impl JobState {
    /// The state that a word names.
    pub fn of(word: &str) -> JobState {
        match word {
            "QUEUED" => JobState::Queued,
            "RUNNING" => JobState::Running,
            "SUCCEEDED" => JobState::Succeeded,
            "FAILED" => JobState::Failed,
            "CANCELLED" => JobState::Cancelled,
            _ => JobState::New,
        }
    }

    /// Whether it will not change any more.
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
    /// Where it stands.
    pub state: JobState,
    /// The share that is done.
    pub progress: f64,
    /// What it does.
    pub message: String,
    /// Why it failed.
    pub error: Option<String>,
    /// When it started.
    pub started_at: Option<String>,
    /// When it ended.
    pub ended_at: Option<String>,
    /// Seconds that it will still take, if it goes on as it did.
    pub eta_seconds: Option<f64>,
    /// Its learning curve.
    pub curve: Vec<CurvePoint>,
    /// The model that it made.
    pub model: Option<i64>,
    /// What was set when it was made.
    #[schema(value_type = Option<Object>)]
    pub settings: serde_json::Value,
}

/// Jobs of a project.
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
    /// The project that trained it.
    pub project_id: Option<i64>,
    /// Whether the project uses it.
    pub is_current: bool,
    /// When it was made.
    pub made_at: String,
    /// The model that it was trained from.
    pub parent: Option<i64>,
    /// What people should know of it.
    pub card: String,
    /// Its figures.
    pub dev: Option<DevFigures>,
    /// The model whose held-out documents they are of: figures of one number can be compared.
    pub dev_on: Option<i64>,
}

/// What is to be changed of a model.
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
    /// Its id in its source.
    pub external_id: String,
    /// New predictions.
    pub added: usize,
    /// Predictions that are gone.
    pub removed: usize,
    /// Predictions with another concept than before.
    pub changed: usize,
}

/// What a prediction changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct ChangedDocuments {
    /// The documents in which anything changed.
    pub documents: Vec<ChangedDocument>,
}

/// The decisions of a day.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct DayCount {
    /// The day, in UTC.
    pub day: String,
    /// How many.
    pub n: usize,
}

/// How long people work on a document.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, ToSchema)]
pub struct Seconds {
    /// The one in the middle.
    pub median: f64,
    /// On the average.
    pub mean: f64,
}

/// How far people agree.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, ToSchema)]
pub struct Agreement {
    /// Of the two who decided most in common.
    pub cohen_kappa: Option<f64>,
    /// Of all.
    pub krippendorff_alpha: Option<f64>,
    /// F1 of the places that the two kept.
    pub span_f1: Option<f64>,
    /// Marks on which the two decided.
    pub n_both: usize,
    /// Marks on which two or more of all decided.
    pub n_several: usize,
    /// Those who decided.
    pub n_people: usize,
}

/// The figures of a model.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct ModelFigures {
    /// The model.
    pub id: i64,
    /// Its name.
    pub name: String,
    /// When it was made.
    pub at: String,
    /// Its figures.
    pub dev: Option<DevFigures>,
}

/// What was done in a project.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct Stats {
    /// Its documents.
    pub n_documents: usize,
    /// Those that are finished.
    pub n_finished: usize,
    /// Marks that are shown by where they come from.
    pub by_source: BTreeMap<String, usize>,
    /// Marks that are shown by type.
    pub by_type: BTreeMap<String, usize>,
    /// Decisions by kind.
    pub by_decision: BTreeMap<String, usize>,
    /// Decisions by day.
    pub decisions_per_day: Vec<DayCount>,
    /// How long people work on a document.
    pub seconds_per_document: Option<Seconds>,
    /// How far people agree.
    pub agreement: Option<Agreement>,
    /// The models.
    pub models: Vec<ModelFigures>,
}
