//! How long people work on documents, and what a training would do.

use serde::Serialize;
use utoipa::ToSchema;

use super::Seconds;

/// How long somebody works on a document.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct PaceOf {
    /// The person, or the model whose predictions the documents had; none where they had none.
    pub name: Option<String>,
    /// Documents.
    pub n: usize,
    /// Seconds a document.
    pub seconds: Seconds,
    /// Seconds for a thousand characters, in the middle.
    pub per_thousand: f64,
}

/// A document on which somebody worked.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct PacePoint {
    /// The document.
    pub document: i64,
    /// Its id in its source.
    pub external_id: String,
    /// Who.
    pub by: String,
    /// When they ended.
    pub at: String,
    /// How long.
    pub seconds: f64,
    /// The same for a thousand characters.
    pub per_thousand: f64,
    /// The model whose predictions it had.
    pub model: Option<String>,
    /// Whether the browser measured it; else it follows from the times of decisions.
    pub is_measured: bool,
}

/// How long people work on the documents of a project.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct Pace {
    /// Over all.
    pub all: Option<Seconds>,
    /// Measured by the browser.
    pub n_measured: usize,
    /// Estimated from the times of decisions, long pauses left out.
    pub n_estimated: usize,
    /// By person.
    pub people: Vec<PaceOf>,
    /// By the model whose predictions the documents had, in the order in which they came up; measured documents alone.
    pub models: Vec<PaceOf>,
    /// Measured documents in the order in which they were finished; the last five hundred.
    pub points: Vec<PacePoint>,
}
