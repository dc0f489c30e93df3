//! Unreviewed predictions, grouped by text and concept.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::marks::Named;
use crate::spans::Pairs;

/// Unreviewed predictions with one text and one concept.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct PredictionGroup {
    /// The text. Case matters only if it is all upper case.
    pub text: String,
    /// The concept; null if unlinked.
    pub concept: Option<Named>,
    /// The semantic type.
    #[serde(rename = "type")]
    pub kind: String,
    /// Number of predictions.
    pub n_mentions: usize,
    /// Number of documents.
    pub n_documents: usize,
    /// How many of the mentions were spread from decisions on identical ones.
    pub n_spread: usize,
    /// The lowest score.
    pub min_score: Option<f64>,
    /// The highest score.
    pub max_score: Option<f64>,
}

/// A page of groups.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct PredictionGroups {
    /// Largest first.
    pub groups: Vec<PredictionGroup>,
    /// Number of groups.
    pub n_groups: usize,
    /// Number of predictions in them.
    pub n_mentions: usize,
    /// How many predictions were spread from decisions on identical mentions, in all groups that match the query.
    pub n_spread: usize,
    /// Cursor of the next page; null on the last one.
    pub next_cursor: Option<String>,
}

/// A prediction of a group.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct GroupMention {
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
    /// The model's score.
    pub score: Option<f64>,
    /// Whether it was spread from a decision on an identical mention.
    pub is_spread: bool,
}

/// A page of the predictions of a group.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct GroupMentions {
    /// In document order.
    pub mentions: Vec<GroupMention>,
    /// Cursor of the next page; null on the last one.
    pub next_cursor: Option<String>,
}

/// What becomes of predictions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum GroupAction {
    /// They are accepted.
    Accept,
    /// They are rejected.
    Reject,
    /// They are linked to another concept.
    Relink,
}

/// A decision on predictions of a group.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct GroupDecision {
    /// The text of the group.
    pub text: String,
    /// The ID of its concept; null if unlinked.
    #[serde(default)]
    pub concept: Option<String>,
    /// What becomes of them.
    pub action: GroupAction,
    /// The ID of the other concept, to relink.
    #[serde(default)]
    pub to: Option<String>,
    /// Only these annotations; all of the group if null.
    #[serde(default)]
    pub marks: Option<Vec<i64>>,
    /// Only predictions with at least this score.
    #[serde(default)]
    pub min_score: Option<f64>,
}

/// The result of a decision on a group.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, ToSchema)]
pub struct GroupDecided {
    /// The number that undoes it; null if nothing changed.
    pub batch: Option<i64>,
    /// Number of annotations that changed.
    pub n_mentions: usize,
    /// Number of documents that changed.
    pub n_documents: usize,
    /// Requested annotations or, for undo, documents that were changed in the meantime and left as they are.
    pub n_skipped: usize,
}

/// A request to undo a decision on a group.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct GroupUndo {
    /// The `batch` of the decision.
    pub batch: i64,
}
