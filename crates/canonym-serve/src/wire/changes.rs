//! What a prediction changed in one document, and where a concept is mentioned.

use serde::Serialize;
use utoipa::ToSchema;

use super::SectionOut;
use crate::marks::{Named, Source, State};
use crate::spans::Pairs;

/// How a prediction changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum ChangeKind {
    /// It is new.
    Added,
    /// It is gone.
    Removed,
    /// It has another concept than before.
    Relinked,
}

/// What a model said of a place.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct Verdict {
    /// The concept; none where the model found none.
    pub concept: Option<Named>,
    /// How sure it was.
    pub score: Option<f64>,
}

/// A prediction that changed.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct ChangedMark {
    /// The mark.
    pub mark: i64,
    /// How it changed.
    pub change: ChangeKind,
    /// Where, in code points.
    #[schema(value_type = Vec<Vec<usize>>)]
    pub spans: Pairs,
    /// The text there.
    pub text: String,
    /// The type.
    #[serde(rename = "type")]
    pub kind: String,
    /// What the model before said.
    pub before: Option<Verdict>,
    /// What the model after it says.
    pub after: Option<Verdict>,
}

/// What a prediction changed in a document.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct DocumentChanges {
    /// The document.
    pub document: i64,
    /// Its id in its source.
    pub external_id: String,
    /// Its text.
    pub text: String,
    /// Its parts.
    pub sections: Vec<SectionOut>,
    /// The model before; none where nothing had been predicted.
    pub model_before: Option<String>,
    /// The model after it.
    pub model_after: Option<String>,
    /// Predictions that changed, in text order.
    pub marks: Vec<ChangedMark>,
    /// Predictions that have the same concept as before.
    pub n_same: usize,
}

/// A mention of a concept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct MentionRow {
    /// The document.
    pub document: i64,
    /// Its id in its source.
    pub external_id: String,
    /// The mark.
    pub mark: i64,
    /// Where, in code points.
    #[schema(value_type = Vec<Vec<usize>>)]
    pub spans: Pairs,
    /// The text there.
    pub text: String,
    /// What stands before it.
    pub before: String,
    /// What stands behind it.
    pub behind: String,
    /// Where the mark comes from.
    pub source: Source,
    /// Whether a person has decided.
    pub state: State,
}

/// A part of the mentions of a concept in a project.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct MentionPage {
    /// By document.
    pub mentions: Vec<MentionRow>,
    /// Where to go on; none at the end.
    pub next_cursor: Option<String>,
    /// Mentions in the whole project.
    pub n_mentions: usize,
    /// Documents that have any.
    pub n_documents: usize,
}
