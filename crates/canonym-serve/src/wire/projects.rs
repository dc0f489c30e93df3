//! Projects, documents, marks and decisions.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::marks::decide::Decision;
use crate::marks::{CandidateRow, Named, Source, State};
use crate::spans::Pairs;

/// A project that is to be made.
#[derive(Debug, Clone, Default, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewProject {
    /// The name.
    pub name: String,
    /// What it is for.
    #[serde(default)]
    pub description: Option<String>,
    /// What annotators are to follow.
    #[serde(default)]
    pub guideline: Option<String>,
}

/// What is to be changed of a project.
#[derive(Debug, Clone, Default, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ProjectPatch {
    /// The name.
    #[serde(default)]
    pub name: Option<String>,
    /// What it is for.
    #[serde(default)]
    pub description: Option<String>,
    /// What annotators are to follow.
    #[serde(default)]
    pub guideline: Option<String>,
    /// In which order documents are offered.
    #[serde(default)]
    pub strategy: Option<String>,
}

/// A project.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct Project {
    /// The number.
    pub id: i64,
    /// The name.
    pub name: String,
    /// What it is for.
    pub description: String,
    /// What annotators are to follow.
    pub guideline: String,
    /// In which order documents are offered.
    pub strategy: String,
    /// Its documents.
    pub n_documents: i64,
    /// Those that are finished.
    pub n_finished: i64,
    /// What people decided so far.
    pub n_decisions: i64,
    /// The terminology that it was made with.
    pub kb_fingerprint: String,
    /// When it was made.
    pub created_at: String,
}

/// Every project.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct Projects {
    /// Oldest first.
    pub projects: Vec<Project>,
}

/// What was wrong with a part of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct Problem {
    /// The line, from 1.
    pub line: Option<u64>,
    /// The document.
    pub document: Option<String>,
    /// What is wrong.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
}

/// What an import took.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, ToSchema)]
pub struct ImportReport {
    /// Documents that were added.
    pub n_documents: usize,
    /// Their annotations.
    pub n_annotations: usize,
    /// Documents that were left out.
    pub n_skipped_documents: usize,
    /// Annotations that became open predictions, for people to look at.
    pub n_predictions: usize,
    /// Annotations that did not say who made them.
    pub n_unmarked: usize,
    /// Annotations that were left out because other text stands at their offsets.
    pub n_skipped_annotations: usize,
    /// Annotations of which the offsets were repaired.
    pub n_fixed: usize,
    /// Relations: kept for exports, not shown.
    pub n_relations: usize,
    /// What was wrong; the first hundred.
    pub problems: Vec<Problem>,
}

/// What an export would lose.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct ExportLosses {
    /// One line for each kind of thing; none where nothing is lost.
    pub lines: Vec<String>,
}

/// What is to be changed of a document.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct DocumentPatch {
    /// The id in its source.
    pub external_id: String,
}

/// A document in a list.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct DocumentRow {
    /// The number.
    pub id: i64,
    /// The id in its source.
    pub external_id: String,
    /// How it begins.
    pub title: String,
    /// Marks that are shown.
    pub n_marks: usize,
    /// Predictions on which nobody decided.
    pub n_open: usize,
    /// Whether it is finished.
    pub is_finished: bool,
    /// Who else works on it.
    pub locked_by: Option<String>,
}

/// A part of the documents of a project.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct DocumentPage {
    /// In the order in which they came.
    pub documents: Vec<DocumentRow>,
    /// Where to go on; none at the end.
    pub next_cursor: Option<String>,
}

/// A document of the queue.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct QueueRow {
    /// The document.
    #[serde(flatten)]
    pub document: DocumentRow,
    /// How sure the model is of its least certain mark.
    pub confidence: Option<f64>,
    /// Why it stands here.
    pub reason: String,
}

/// Which documents to look at next.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct Queue {
    /// How they are ordered.
    pub strategy: String,
    /// The next first.
    pub documents: Vec<QueueRow>,
}

/// A part of a text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct SectionOut {
    /// What it is.
    pub kind: String,
    /// Its first code point.
    pub start: usize,
    /// The code point behind it.
    pub end: usize,
}

/// A mark as it is shown.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct Mark {
    /// The number.
    pub id: i64,
    /// Where, in code points.
    #[schema(value_type = Vec<Vec<usize>>)]
    pub spans: Pairs,
    /// The text there.
    pub text: String,
    /// The type.
    #[serde(rename = "type")]
    pub kind: String,
    /// Where it comes from.
    pub source: Source,
    /// Whether a person has decided.
    pub state: State,
    /// The concept.
    pub concept: Option<Named>,
    /// Whether it is decided that there is none.
    pub is_nil: bool,
    /// Whether somebody is not sure.
    pub is_unsure: bool,
    /// How sure the model is.
    pub score: Option<f64>,
    /// What the model considered.
    pub candidates: Vec<CandidateRow>,
    /// Marks across it that say otherwise.
    pub disagrees: Vec<i64>,
    /// Who decided.
    pub by: Option<String>,
    /// When it was changed.
    pub at: String,
    /// The model that made it.
    pub model: Option<String>,
}

/// A remark.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct Comment {
    /// The number.
    pub id: i64,
    /// The mark that it is about.
    pub mark: Option<i64>,
    /// What it says.
    pub text: String,
    /// Who wrote it.
    pub by: String,
    /// When.
    pub at: String,
}

/// A remark that is to be made.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewComment {
    /// The mark that it is about.
    #[serde(default)]
    pub mark: Option<i64>,
    /// What it says.
    pub text: String,
}

/// A document with its marks.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct DocumentOut {
    /// The number.
    pub id: i64,
    /// The project.
    pub project_id: i64,
    /// The id in its source.
    pub external_id: String,
    /// The text.
    pub text: String,
    /// Its parts.
    pub sections: Vec<SectionOut>,
    /// Its last event.
    pub version: i64,
    /// Whether it is finished.
    pub is_finished: bool,
    /// Why it is offered.
    pub reason: Option<String>,
    /// Its marks, in text order.
    pub marks: Vec<Mark>,
    /// Remarks, oldest first.
    pub comments: Vec<Comment>,
}

/// Decisions that are made together.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Decisions {
    /// The version of the document that the client saw; needed where a mark that is there is decided on, or the document is finished.
    #[serde(default)]
    pub version: Option<i64>,
    /// What the client calls the request; the same twice is one.
    #[serde(default)]
    pub client_id: Option<String>,
    /// The decisions, in order.
    pub decisions: Vec<Decision>,
}

/// A request to undo or redo.
#[derive(Debug, Clone, Default, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct UndoRequest {
    /// What the client calls the request; the same twice is one.
    #[serde(default)]
    pub client_id: Option<String>,
}

/// What decisions changed.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct Decided {
    /// The last event of the document.
    pub version: i64,
    /// Marks that changed and are shown.
    pub marks: Vec<Mark>,
    /// Marks that are shown no more.
    pub removed: Vec<i64>,
    /// The events that were written.
    pub events: Vec<i64>,
    /// Whether the document is finished.
    pub is_finished: bool,
}

/// An event of a document.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct HistoryRow {
    /// The number.
    pub id: i64,
    /// What it is.
    pub kind: String,
    /// Who made it.
    pub by: Option<String>,
    /// When.
    pub at: String,
    /// What happened, in words.
    pub what: String,
}

/// The events of a document.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct History {
    /// Oldest first.
    pub events: Vec<HistoryRow>,
}

/// Whether to look for the same mention, or to decide it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    /// In the document of the mark.
    Document,
    /// In the whole project.
    Project,
}

/// A question for mentions like one that is decided.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AlikeRequest {
    /// The mark.
    pub mark: i64,
    /// Where to look.
    pub scope: Scope,
    /// Whether to give them the decision of the mark.
    #[serde(default)]
    pub apply: bool,
    /// The version of the document of the mark that the client saw; needed to apply its decision.
    #[serde(default)]
    pub version: Option<i64>,
}

/// A mention like another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct AlikeRow {
    /// The document.
    pub document: i64,
    /// Its id in its source.
    pub external_id: String,
    /// Where, in code points.
    #[schema(value_type = Vec<Vec<usize>>)]
    pub spans: Pairs,
    /// The text there.
    pub text: String,
    /// What stands around it.
    pub context: String,
    /// The open prediction there.
    pub mark: Option<i64>,
}

/// Mentions like one that is decided.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct Alike {
    /// In the order of the documents.
    pub matches: Vec<AlikeRow>,
    /// How many got the decision.
    pub applied: usize,
}
