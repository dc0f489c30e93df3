//! Marks: the annotations of a document, who made them, and how they change.
//!
//! A mark only changes by an event, which holds its state before and after ([`Change`]). Undo is an event with the inverse changes.

pub mod collect;
pub mod context;
pub mod convert;
pub mod decide;
pub mod disagree;
pub mod identical;
pub mod predict;
pub mod review;
pub mod scope;
pub mod spread;

use canonym_core::active::margin;
use canonym_core::corpus::CandidateRecord;
use canonym_core::numbers::rounded;
use canonym_core::text::Span;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use self::context::MentionContext;
use crate::times::Millis;

/// Where an annotation comes from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "UPPERCASE")]
pub enum Source {
    /// Imported with the document.
    #[default]
    Gold,
    /// Added, corrected or accepted by a person.
    User,
    /// Predicted by a model.
    Pred,
}

impl Source {
    /// The name in files and in the API.
    pub fn name(self) -> &'static str {
        match self {
            Source::Gold => "GOLD",
            Source::User => "USER",
            Source::Pred => "PRED",
        }
    }
}

/// Whether a person has reviewed an annotation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// Not reviewed.
    Open,
    /// Accepted.
    Accepted,
    /// Rejected: hidden, and never trained on.
    Rejected,
}

impl State {
    /// The name in files and in the API.
    pub fn name(self) -> &'static str {
        match self {
            State::Open => "open",
            State::Accepted => "accepted",
            State::Rejected => "rejected",
        }
    }
}

/// A concept with its name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Named {
    /// The ID, such as `MESH:D003693`.
    pub id: String,
    /// The preferred name.
    pub name: String,
}

/// A candidate concept.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct CandidateRow {
    /// The ID.
    pub id: String,
    /// The preferred name.
    pub name: String,
    /// The probability that mention and concept are correct, 0 to 1.
    pub score: f64,
    /// The probability that the concept is correct, given the mention; missing in older events.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p_link: Option<f64>,
}

impl CandidateRow {
    /// A candidate with its score rounded as in files.
    pub fn new(record: &CandidateRecord) -> CandidateRow {
        CandidateRow {
            id: record.id.clone(),
            name: record.name.clone(),
            score: rounded(record.score()),
            p_link: Some(rounded(record.p_link)),
        }
    }
}

/// Fields of an imported annotation that the API does not show, kept for export.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Original {
    /// The concept read from `ids`; while the mark still has it, the IDs are written unchanged.
    pub concept: Option<String>,
    /// The IDs as written.
    pub ids: Vec<String>,
    /// The text as written.
    pub text: String,
    /// The key in the source.
    pub key: String,
    /// Names of the parts of a composite mention.
    pub parts: Vec<String>,
    /// Attributes, as names and values.
    pub attributes: Vec<(String, String)>,
    /// The source that it was imported with; files of gold annotations are taken to be complete.
    #[serde(default)]
    pub source: Source,
}

/// The state of a mark.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MarkState {
    /// Spans in bytes.
    pub spans: Vec<(u32, u32)>,
    /// The text of the spans.
    pub text: String,
    /// The semantic type; empty if unknown.
    pub kind: String,
    /// Where it comes from.
    pub source: Source,
    /// Whether a person has reviewed an annotation.
    pub state: State,
    /// The concept, if any.
    pub concept: Option<Named>,
    /// Whether a person decided that no concept matches.
    pub is_nil: bool,
    /// Whether it is marked as unsure.
    pub is_unsure: bool,
    /// Its contexts, sorted; missing in older events.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub contexts: Vec<MentionContext>,
    /// The model's score: p(mention and concept), or p(mention) if unlinked.
    pub score: Option<f64>,
    /// The model's probability that the span is a mention; missing in older events.
    #[serde(default)]
    pub p_mention: Option<f64>,
    /// The model's probability that the concept is correct, given the mention; missing in older events.
    #[serde(default)]
    pub p_link: Option<f64>,
    /// The model's candidates, best first.
    pub candidates: Vec<CandidateRow>,
    /// Who decided last.
    pub by: Option<i64>,
    /// When it was last changed.
    pub at: Millis,
    /// The model that predicted it.
    pub model: Option<String>,
    /// The reviewed mark whose concept was spread to this prediction.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spread_from: Option<i64>,
    /// Whether the person who added it deleted it.
    pub is_deleted: bool,
    /// What its file said, for export.
    pub original: Option<Original>,
}

impl MarkState {
    /// The spans.
    pub fn spans(&self) -> Vec<Span> {
        self.spans.iter().map(|&(start, end)| Span { start, end }).collect()
    }

    /// The ID of its concept.
    pub fn concept_id(&self) -> Option<&str> {
        self.concept.as_ref().map(|concept| concept.id.as_str())
    }

    /// Whether it is shown: neither rejected nor deleted.
    pub fn is_listed(&self) -> bool {
        !self.is_deleted && self.state != State::Rejected
    }

    /// Whether it is hidden because a person rejected it.
    pub fn is_rejected(&self) -> bool {
        !self.is_deleted && self.state == State::Rejected
    }

    /// Whether it is an unreviewed prediction.
    pub fn is_open(&self) -> bool {
        self.source == Source::Pred && self.state == State::Open && !self.is_deleted
    }

    /// Whether it is gold, or was added or confirmed by a person.
    pub fn is_human(&self) -> bool {
        self.source != Source::Pred && self.is_listed()
    }

    /// Whether a model predicted it, or it was imported.
    pub fn was_read(&self) -> bool {
        self.model.is_some() || self.original.is_some()
    }

    /// The model's p(link) of each candidate. Where older events have only its score, p(link) is proportional to that.
    pub fn candidate_p_links(&self) -> Vec<f64> {
        let best = self.candidates.first().map_or(0.0, |best| best.score);
        let scale = self.p_link.filter(|_| best > 0.0).map_or(1.0, |p_link| p_link / best);
        self.candidates.iter().map(|one| one.p_link.unwrap_or(one.score * scale)).collect()
    }

    /// The margin of p(link) between the first two candidates; p(link) of the first if there is only one.
    pub fn margin(&self) -> Option<f64> {
        self.candidates.first()?;
        Some(margin(&self.candidate_p_links()))
    }
}

/// Spans as stored.
pub fn span_pairs(spans: &[Span]) -> Vec<(u32, u32)> {
    spans.iter().map(|span| (span.start, span.end)).collect()
}

/// A mark before and after a change; `None` where it does not exist.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Change {
    /// The mark.
    pub id: i64,
    /// The state before.
    pub before: Option<MarkState>,
    /// The state after.
    pub after: Option<MarkState>,
}

impl Change {
    /// Whether a reviewed mark becomes an unreviewed prediction again.
    pub fn is_open_again(&self) -> bool {
        let was_decided = self.before.as_ref().is_some_and(|before| !before.is_open());
        was_decided && self.after.as_ref().is_some_and(MarkState::is_open)
    }
}

/// The changes of one event.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Changes {
    /// Marks.
    pub marks: Vec<Change>,
    /// Whether the document was finished before and after.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished: Option<(bool, bool)>,
}

impl Changes {
    /// Whether nothing changes.
    pub fn is_empty(&self) -> bool {
        self.marks.is_empty() && self.finished.is_none()
    }

    /// The inverse changes.
    pub fn reversed(&self) -> Changes {
        let turn =
            |change: &Change| Change { id: change.id, before: change.after.clone(), after: change.before.clone() };
        Changes {
            marks: self.marks.iter().rev().map(turn).collect(),
            finished: self.finished.map(|(before, after)| (after, before)),
        }
    }
}

/// A stored event.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    /// The number.
    pub id: i64,
    /// The first event of its batch.
    pub batch: i64,
    /// The person, or `None` for a model.
    pub person: Option<i64>,
    /// When.
    pub at: Millis,
    /// The kind.
    pub kind: String,
    /// The model involved.
    pub model: Option<String>,
    /// The batch that it undoes or redoes.
    pub undoes: Option<i64>,
    /// The changes.
    pub changes: Changes,
}
