//! Annotation speed.

use serde::Serialize;
use utoipa::ToSchema;

use super::Seconds;

/// Annotation speed of one group of documents.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct SpeedRow {
    /// The annotator, or the model used for pre-annotation; null if none was used.
    pub name: Option<String>,
    /// Number of documents.
    pub n: usize,
    /// Seconds per document.
    pub seconds: Seconds,
    /// Median seconds per 1,000 characters.
    pub per_thousand: f64,
}

/// The time spent on a document.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct DocumentTime {
    /// The document.
    pub document: i64,
    /// The document's ID in the source file.
    pub external_id: String,
    /// Who.
    pub by: String,
    /// When it was finished.
    pub at: String,
    /// Seconds.
    pub seconds: f64,
    /// Seconds per 1,000 characters.
    pub per_thousand: f64,
    /// The model used for pre-annotation.
    pub model: Option<String>,
    /// Whether the time was measured in the browser; otherwise it is estimated from the times of decisions.
    pub is_measured: bool,
}

/// Annotation speed in a project.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct AnnotationSpeed {
    /// Over all documents.
    pub all: Option<Seconds>,
    /// Documents measured in the browser.
    pub n_measured: usize,
    /// Documents estimated from the times of decisions, without long pauses.
    pub n_estimated: usize,
    /// By annotator.
    pub people: Vec<SpeedRow>,
    /// By model used for pre-annotation, in order of first use; measured documents only.
    pub models: Vec<SpeedRow>,
    /// The last five hundred measured documents, in order of completion.
    pub points: Vec<DocumentTime>,
}
