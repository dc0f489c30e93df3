//! Blind annotation: assignments and the progress of annotators.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Documents to assign to annotators, each of whom gets a copy that the others do not see.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewAssignments {
    /// The account numbers of the annotators.
    pub people: Vec<i64>,
    /// How many annotators each document gets; all of them if null.
    #[serde(default)]
    pub n_annotators: Option<usize>,
    /// Whether the copies have the unreviewed predictions (default).
    #[serde(default)]
    pub predictions: Option<bool>,
    /// The maximum number of documents that are assigned; all unfinished ones without annotators if null.
    #[serde(default)]
    pub n_documents: Option<usize>,
}

/// The progress of an annotator.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct AnnotatorProgress {
    /// The account number.
    pub id: i64,
    /// The name.
    pub name: String,
    /// The project with the copies of this annotator.
    pub project: i64,
    /// Number of assigned documents.
    pub n_documents: usize,
    /// Number of finished ones.
    pub n_finished: usize,
    /// Number of decisions.
    pub n_decisions: usize,
    /// Median seconds per finished document; null if none was measured.
    pub seconds: Option<f64>,
}

/// An annotator of a document.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct DocumentAnnotator {
    /// The name.
    pub name: String,
    /// Whether the annotator finished the document.
    pub is_finished: bool,
}

/// An assigned document.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct AssignedDocument {
    /// The document.
    pub document: i64,
    /// The ID in the source file.
    pub external_id: String,
    /// Its annotators.
    pub annotators: Vec<DocumentAnnotator>,
    /// Whether all annotators finished it, so that their answers are in the document.
    pub is_collected: bool,
    /// Number of unresolved conflicts between their answers.
    pub n_conflicts: usize,
    /// Whether the document is finished: all conflicts are resolved.
    pub is_finished: bool,
}

/// The assignments of a project.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct Assignments {
    /// The annotators.
    pub people: Vec<AnnotatorProgress>,
    /// A page of the assigned documents, in import order.
    pub documents: Vec<AssignedDocument>,
    /// Cursor of the next page; null on the last one.
    pub next_cursor: Option<String>,
    /// Number of assigned documents.
    pub n_assigned: usize,
    /// Number of unfinished documents without annotators.
    pub n_unassigned: usize,
}
