//! Projects, documents, annotations and decisions.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::marks::context::MentionContext;
use crate::marks::decide::Decision;
use crate::marks::{CandidateRow, Named, Source, State};
use crate::spans::Pairs;

/// What a project annotates: concepts with one of the types and below one of the branches. Empty lists do not restrict it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, Serialize, ToSchema)]
pub struct ProjectScope {
    /// Semantic types.
    pub types: Vec<String>,
    /// Concepts that stand for themselves and everything below them.
    pub branches: Vec<Named>,
}

impl ProjectScope {
    /// Whether the whole terminology is annotated.
    pub fn is_all(&self) -> bool {
        self.types.is_empty() && self.branches.is_empty()
    }
}

/// A new scope of a project.
#[derive(Debug, Clone, Default, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewScope {
    /// Semantic types.
    #[serde(default)]
    pub types: Vec<String>,
    /// IDs of concepts that stand for themselves and everything below them.
    #[serde(default)]
    pub branches: Vec<String>,
}

/// A new project.
#[derive(Debug, Clone, Default, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewProject {
    /// The name.
    pub name: String,
    /// The description.
    #[serde(default)]
    pub description: Option<String>,
    /// The annotation guideline.
    #[serde(default)]
    pub guideline: Option<String>,
    /// What it annotates; the whole terminology if null.
    #[serde(default)]
    pub scope: Option<NewScope>,
}

/// Changes to a project.
#[derive(Debug, Clone, Default, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ProjectPatch {
    /// The name.
    #[serde(default)]
    pub name: Option<String>,
    /// The description.
    #[serde(default)]
    pub description: Option<String>,
    /// The annotation guideline.
    #[serde(default)]
    pub guideline: Option<String>,
    /// The sampling strategy of the queue.
    #[serde(default)]
    pub strategy: Option<String>,
    /// What it annotates. Unreviewed predictions outside of it are removed.
    #[serde(default)]
    pub scope: Option<NewScope>,
    /// Whether it is archived.
    #[serde(default)]
    pub is_archived: Option<bool>,
}

/// What a copy of a project takes over besides description, guideline, scope, queue order and members.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum CopyContent {
    /// Nothing else: the project is a template.
    #[default]
    Settings,
    /// The documents without annotations.
    Documents,
    /// The documents with their current annotations.
    Annotations,
}

/// A copy of a project.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ProjectCopy {
    /// The name of the copy.
    pub name: String,
    /// What it takes over.
    #[serde(default)]
    pub content: CopyContent,
}

/// A project.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct Project {
    /// The number.
    pub id: i64,
    /// The name.
    pub name: String,
    /// The description.
    pub description: String,
    /// The annotation guideline.
    pub guideline: String,
    /// The sampling strategy of the queue.
    pub strategy: String,
    /// What it annotates.
    pub scope: ProjectScope,
    /// Whether it is archived: kept, but not listed with the others.
    pub is_archived: bool,
    /// The project whose documents it holds copies of, for blind annotation.
    pub parent: Option<i64>,
    /// The annotator of these copies.
    pub annotator: Option<String>,
    /// Number of documents.
    pub n_documents: i64,
    /// Number of finished documents.
    pub n_finished: i64,
    /// Number of decisions.
    pub n_decisions: i64,
    /// Fingerprint of the terminology that it was created with.
    pub kb_fingerprint: String,
    /// When it was created.
    pub created_at: String,
}

/// Projects.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct Projects {
    /// Oldest first.
    pub projects: Vec<Project>,
}

/// A problem in an imported file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct Problem {
    /// The line, from 1.
    pub line: Option<u64>,
    /// The document.
    pub document: Option<String>,
    /// The problem.
    pub message: String,
    /// How to fix it.
    pub hint: Option<String>,
}

/// The report of an import.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, ToSchema)]
pub struct ImportReport {
    /// Documents added.
    pub n_documents: usize,
    /// Annotations added.
    pub n_annotations: usize,
    /// Documents skipped.
    pub n_skipped_documents: usize,
    /// Annotations imported as unreviewed predictions.
    pub n_predictions: usize,
    /// Annotations without a recorded source.
    pub n_unmarked: usize,
    /// Annotations skipped because the text at their offsets differs.
    pub n_skipped_annotations: usize,
    /// Annotations whose offsets were repaired.
    pub n_fixed: usize,
    /// Relations: kept for export, not shown.
    pub n_relations: usize,
    /// The first hundred problems.
    pub problems: Vec<Problem>,
}

/// What an export would lose.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct ExportLosses {
    /// One line for each kind of loss; empty if nothing is lost.
    pub lines: Vec<String>,
}

/// Changes to a document.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct DocumentPatch {
    /// The ID in the source file.
    #[serde(default)]
    pub external_id: Option<String>,
    /// All its metadata.
    #[serde(default)]
    pub metadata: Option<Vec<MetadataEntry>>,
}

/// An entry of the metadata of a document, such as its year.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct MetadataEntry {
    /// The name.
    pub name: String,
    /// The value.
    pub value: String,
}

/// A document in a list.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct DocumentRow {
    /// The number.
    pub id: i64,
    /// The ID in the source file.
    pub external_id: String,
    /// The start of the text.
    pub title: String,
    /// Its metadata: what the file says of it, and what was added.
    pub metadata: Vec<MetadataEntry>,
    /// The names of MeSH headings of the metadata, by their IDs, as far as the terminology has them.
    pub headings: BTreeMap<String, String>,
    /// Number of annotations, without rejected and deleted ones.
    pub n_marks: usize,
    /// Number of unreviewed predictions.
    pub n_open: usize,
    /// Number of unresolved threads of comments.
    pub n_threads: usize,
    /// Whether it is finished.
    pub is_finished: bool,
    /// Whether trainings hold it out: models are scored on it, and not trained on it.
    pub is_held_out: bool,
    /// Who else is looking at it.
    pub locked_by: Option<String>,
}

/// A page of documents.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct DocumentPage {
    /// In the requested order; by default in import order.
    pub documents: Vec<DocumentRow>,
    /// Cursor of the next page; null on the last one.
    pub next_cursor: Option<String>,
}

/// A document of the queue.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct QueueRow {
    /// The document.
    #[serde(flatten)]
    pub document: DocumentRow,
    /// The model's confidence in its least certain prediction.
    pub confidence: Option<f64>,
    /// Why it comes next.
    pub reason: String,
}

/// The annotation queue.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct Queue {
    /// The sampling strategy.
    pub strategy: String,
    /// The next document first.
    pub documents: Vec<QueueRow>,
}

/// A section of a document.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct SectionOut {
    /// The kind.
    pub kind: String,
    /// The first code point.
    pub start: usize,
    /// The code point after the last one.
    pub end: usize,
}

/// An annotation.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct Mark {
    /// The number.
    pub id: i64,
    /// Spans in code points, ends exclusive.
    #[schema(value_type = Vec<Vec<usize>>)]
    pub spans: Pairs,
    /// The text of the spans.
    pub text: String,
    /// The semantic type.
    #[serde(rename = "type")]
    pub kind: String,
    /// Where it comes from.
    pub source: Source,
    /// Whether a person has reviewed it.
    pub state: State,
    /// The concept.
    pub concept: Option<Named>,
    /// Whether a person decided that no concept matches.
    pub is_nil: bool,
    /// Whether it is marked as unsure.
    pub is_unsure: bool,
    /// Its contexts; none for a plain statement.
    pub contexts: Vec<MentionContext>,
    /// The model's score: probability that span and concept are correct; that the span is a mention if unlinked.
    pub score: Option<f64>,
    /// The model's probability that the span is a mention.
    pub p_mention: Option<f64>,
    /// The model's probability that the concept is correct, given that the span is a mention.
    pub p_link: Option<f64>,
    /// The model's candidates, best first.
    pub candidates: Vec<CandidateRow>,
    /// Overlapping annotations that conflict with it.
    pub disagrees: Vec<i64>,
    /// Who reviewed it.
    pub by: Option<String>,
    /// When it was last changed.
    pub at: String,
    /// The model that predicted it.
    pub model: Option<String>,
    /// Whether its concept was spread from a decision on an identical mention.
    pub is_spread: bool,
}

/// A comment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct Comment {
    /// The number.
    pub id: i64,
    /// The annotation that it is about; null for the document.
    pub mark: Option<i64>,
    /// The text.
    pub text: String,
    /// The author.
    pub by: String,
    /// When.
    pub at: String,
    /// The first comment of its thread; null if it is the first.
    pub parent: Option<i64>,
    /// Who resolved the thread; null if it is open, and for replies.
    pub resolved_by: Option<String>,
}

/// Changes to a thread of comments.
#[derive(Debug, Clone, Copy, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CommentPatch {
    /// Whether it is resolved.
    pub is_resolved: bool,
}

/// A new comment.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewComment {
    /// The annotation that it is about; null for the document.
    #[serde(default)]
    pub mark: Option<i64>,
    /// The first comment of the thread that it replies to; it is then about the same. Null starts a thread.
    #[serde(default)]
    pub parent: Option<i64>,
    /// The text.
    pub text: String,
}

/// A document with its annotations.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct DocumentOut {
    /// The annotators whose answer is the annotation as it stands, by its number; for annotations that two or more people answered.
    pub agreed: BTreeMap<String, Vec<String>>,
    /// The number.
    pub id: i64,
    /// The project.
    pub project_id: i64,
    /// The ID in the source file.
    pub external_id: String,
    /// The text.
    pub text: String,
    /// The sections.
    pub sections: Vec<SectionOut>,
    /// The document's version: the number of its last event.
    pub version: i64,
    /// Whether it is finished.
    pub is_finished: bool,
    /// Why it is in the queue; null if it is finished.
    pub reason: Option<String>,
    /// The annotations, in text order.
    pub marks: Vec<Mark>,
    /// The comments, oldest first.
    pub comments: Vec<Comment>,
}

/// Decisions that are stored together.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Decisions {
    /// The version of the document that the client saw; required to change existing annotations or finish the document.
    #[serde(default)]
    pub version: Option<i64>,
    /// An ID chosen by the client: a request with the same ID is handled once.
    #[serde(default)]
    pub client_id: Option<String>,
    /// The decisions, in order.
    pub decisions: Vec<Decision>,
}

/// A request to undo or redo.
#[derive(Debug, Clone, Default, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct UndoRequest {
    /// An ID chosen by the client: a request with the same ID is handled once.
    #[serde(default)]
    pub client_id: Option<String>,
}

/// The result of decisions.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct Decided {
    /// The document's new version.
    pub version: i64,
    /// Annotations that were added or changed.
    pub marks: Vec<Mark>,
    /// Annotations that were rejected, deleted or removed.
    pub removed: Vec<i64>,
    /// The numbers of the events.
    pub events: Vec<i64>,
    /// Whether the document is finished.
    pub is_finished: bool,
}

/// An event in the history of a document.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct HistoryRow {
    /// The number.
    pub id: i64,
    /// The kind.
    pub kind: String,
    /// The person or model.
    pub by: Option<String>,
    /// When.
    pub at: String,
    /// What happened, in words.
    pub what: String,
}

/// The history of a document.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct History {
    /// Oldest first.
    pub events: Vec<HistoryRow>,
}

/// Where to look for identical mentions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    /// In the same document.
    Document,
    /// In the whole project.
    Project,
}

/// A request for mentions identical to a reviewed one.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct IdenticalRequest {
    /// The reviewed annotation.
    pub mark: i64,
    /// Where to look.
    pub scope: Scope,
    /// Whether to apply its decision to them.
    #[serde(default)]
    pub apply: bool,
    /// The version of its document that the client saw; required with `apply`.
    #[serde(default)]
    pub version: Option<i64>,
}

/// An identical mention.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct IdenticalMention {
    /// The document.
    pub document: i64,
    /// The document's ID in the source file.
    pub external_id: String,
    /// Spans in code points, ends exclusive.
    #[schema(value_type = Vec<Vec<usize>>)]
    pub spans: Pairs,
    /// The text of the spans.
    pub text: String,
    /// The text around it.
    pub context: String,
    /// The unreviewed prediction there, if any.
    pub mark: Option<i64>,
}

/// Identical mentions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct IdenticalMentions {
    /// In document order.
    pub matches: Vec<IdenticalMention>,
    /// How many the decision was applied to.
    pub applied: usize,
}
