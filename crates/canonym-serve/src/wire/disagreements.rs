//! Conflicts between annotators.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::marks::Named;
use crate::spans::Pairs;

/// A mention in an answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct ClaimOut {
    /// The annotation.
    pub mark: i64,
    /// Spans in code points, ends exclusive.
    #[schema(value_type = Vec<Vec<usize>>)]
    pub spans: Pairs,
    /// The text of the spans.
    pub text: String,
    /// The concept; null if none matches.
    pub concept: Option<Named>,
}

/// An annotator.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct AnnotatorOut {
    /// The name.
    pub name: String,
    /// When they last decided.
    pub at: String,
}

/// An answer and the annotators who gave it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct AnswerOut {
    /// Who.
    pub people: Vec<AnnotatorOut>,
    /// Its mentions; empty for "not a mention".
    pub claims: Vec<ClaimOut>,
}

/// A conflict between annotators.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct Disagreement {
    /// The document.
    pub document: i64,
    /// The document's ID in the source file.
    pub external_id: String,
    /// The document's version: the number of its last event.
    pub version: i64,
    /// The annotations involved; a `settle` decision has to name all of them.
    pub marks: Vec<i64>,
    /// The first code point.
    pub start: usize,
    /// The code point after the last one.
    pub end: usize,
    /// The text of the spans.
    pub text: String,
    /// Text before it.
    pub before: String,
    /// Text after it.
    pub behind: String,
    /// The answers, most frequent first.
    pub answers: Vec<AnswerOut>,
    /// Whether it was resolved and reopened by a later decision.
    pub is_reopened: bool,
}

/// A page of conflicts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct Disagreements {
    /// In document and text order.
    pub disagreements: Vec<Disagreement>,
    /// Cursor of the next page; null on the last one.
    pub next_cursor: Option<String>,
    /// Open conflicts in the project.
    pub n_open: usize,
}

/// An answer in a group of conflicts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct ConflictAnswer {
    /// What names it in a decision.
    pub key: String,
    /// The concepts of its mentions, null for no matching concept; empty for "not a mention".
    pub concepts: Vec<Option<Named>>,
    /// Who gave it.
    pub people: Vec<String>,
    /// How often it was given.
    pub n_answers: usize,
}

/// Conflicts with the same text and the same answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct ConflictGroup {
    /// What names it in requests.
    pub key: String,
    /// The text of the first of them.
    pub text: String,
    /// Number of conflicts.
    pub n_conflicts: usize,
    /// Number of documents.
    pub n_documents: usize,
    /// The answers, most frequent first.
    pub answers: Vec<ConflictAnswer>,
}

/// The conflicts of a project in groups.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct ConflictGroups {
    /// Largest first.
    pub groups: Vec<ConflictGroup>,
}

/// Resolves the conflicts of a group. Undo it with the `batch` of the response.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ConflictDecision {
    /// The `key` of the group.
    pub group: String,
    /// The `key` of one of its answers.
    #[serde(default)]
    pub answer: Option<String>,
    /// The ID of another concept.
    #[serde(default)]
    pub concept: Option<String>,
    /// Only these conflicts: document and first mark of each; all of the group if null.
    #[serde(default)]
    #[schema(value_type = Option<Vec<Vec<i64>>>)]
    pub only: Option<Vec<(i64, i64)>>,
}
