//! What a prediction changed in a document, and mentions of a concept.

use serde::Serialize;
use utoipa::ToSchema;

use super::SectionOut;
use crate::marks::{Named, Source, State};
use crate::spans::Pairs;

/// How a prediction changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum ChangeKind {
    /// New.
    Added,
    /// Removed.
    Removed,
    /// Linked to another concept.
    Relinked,
}

/// A prediction of a model.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct Prediction {
    /// The concept; null if unlinked.
    pub concept: Option<Named>,
    /// The score.
    pub score: Option<f64>,
}

/// A prediction that changed.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct ChangedMark {
    /// The annotation.
    pub mark: i64,
    /// How it changed.
    pub change: ChangeKind,
    /// Spans in code points, ends exclusive.
    #[schema(value_type = Vec<Vec<usize>>)]
    pub spans: Pairs,
    /// The text of the spans.
    pub text: String,
    /// The semantic type.
    #[serde(rename = "type")]
    pub kind: String,
    /// The prediction before.
    pub before: Option<Prediction>,
    /// The prediction after.
    pub after: Option<Prediction>,
}

/// What a prediction changed in a document.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct DocumentChanges {
    /// The document.
    pub document: i64,
    /// The document's ID in the source file.
    pub external_id: String,
    /// The text.
    pub text: String,
    /// The sections.
    pub sections: Vec<SectionOut>,
    /// The model of the previous predictions; null if there were none.
    pub model_before: Option<String>,
    /// The model of the new predictions.
    pub model_after: Option<String>,
    /// Predictions that changed, in text order.
    pub marks: Vec<ChangedMark>,
    /// Predictions whose concept is unchanged.
    pub n_same: usize,
}

/// A mention of a concept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct MentionRow {
    /// The document.
    pub document: i64,
    /// The document's ID in the source file.
    pub external_id: String,
    /// The annotation.
    pub mark: i64,
    /// Spans in code points, ends exclusive.
    #[schema(value_type = Vec<Vec<usize>>)]
    pub spans: Pairs,
    /// The text of the spans.
    pub text: String,
    /// Text before it.
    pub before: String,
    /// Text after it.
    pub behind: String,
    /// Where the annotation comes from.
    pub source: Source,
    /// Whether a person has reviewed it.
    pub state: State,
}

/// A page of mentions of a concept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct MentionPage {
    /// In document order.
    pub mentions: Vec<MentionRow>,
    /// Cursor of the next page; null on the last one.
    pub next_cursor: Option<String>,
    /// Mentions in the whole project.
    pub n_mentions: usize,
    /// Documents that mention it.
    pub n_documents: usize,
}
