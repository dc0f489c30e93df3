//! Marks: what is said of places in a document, by whom, and how that changes.
//!
//! A mark is never changed but by an event, which holds it before and after ([`Change`]). Undoing is an event that turns the change round.

pub mod alike;
pub mod convert;
pub mod decide;
pub mod disagree;
pub mod predict;

use canonym_core::corpus::CandidateRecord;
use canonym_core::text::Span;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::times::Millis;

/// Where a mark comes from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "UPPERCASE")]
pub enum Source {
    /// It came with the documents.
    #[default]
    Gold,
    /// A person made, corrected or confirmed it.
    User,
    /// A model made it.
    Pred,
}

impl Source {
    /// The word that files and people see.
    pub fn word(self) -> &'static str {
        match self {
            Source::Gold => "GOLD",
            Source::User => "USER",
            Source::Pred => "PRED",
        }
    }
}

/// Whether a person has decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// Nobody has.
    Open,
    /// It is right.
    Accepted,
    /// It is wrong, and is never trained on.
    Rejected,
}

impl State {
    /// The word that files and people see.
    pub fn word(self) -> &'static str {
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
    /// The id, such as `MESH:D003693`.
    pub id: String,
    /// The preferred name.
    pub name: String,
}

/// A concept that a model considered.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct CandidateRow {
    /// The id.
    pub id: String,
    /// The preferred name.
    pub name: String,
    /// How likely it is meant, 0 to 1.
    pub score: f64,
}

impl CandidateRow {
    /// A candidate with its score rounded as files have it.
    pub fn of(record: &CandidateRecord) -> CandidateRow {
        CandidateRow { id: record.id.clone(), name: record.name.clone(), score: rounded(record.score) }
    }
}

/// A score without the last bits of a sum.
pub fn rounded(score: f32) -> f64 {
    (f64::from(score) * 1e4).round() / 1e4
}

/// What the file of a GOLD mark said of it and the interface does not show; kept so that it can be written again.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Original {
    /// The concept that was read out of `ids`; while it is that of the mark, the ids are written again.
    pub concept: Option<String>,
    /// The ids as they were written.
    pub ids: Vec<String>,
    /// The text as it was written.
    pub text: String,
    /// What the source called it.
    pub key: String,
    /// Names of parts.
    pub parts: Vec<String>,
    /// Names and values.
    pub attributes: Vec<(String, String)>,
    /// What it came as; files of GOLD are taken to have every mention.
    #[serde(default)]
    pub source: Source,
}

/// A mark at one time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MarkState {
    /// Its spans, in bytes.
    pub spans: Vec<(u32, u32)>,
    /// The text under them.
    pub text: String,
    /// The type; empty where none is known.
    pub kind: String,
    /// Where it comes from.
    pub source: Source,
    /// Whether a person has decided.
    pub state: State,
    /// The concept, where there is one.
    pub concept: Option<Named>,
    /// Whether it is decided that there is none.
    pub is_nil: bool,
    /// Whether somebody is not sure.
    pub is_unsure: bool,
    /// How sure the model is.
    pub score: Option<f64>,
    /// What the model considered, best first.
    pub candidates: Vec<CandidateRow>,
    /// Who decided last.
    pub by: Option<i64>,
    /// When it was changed.
    pub at: Millis,
    /// The model that made it.
    pub model: Option<String>,
    /// Whether it was taken away by the one who made it.
    pub is_deleted: bool,
    /// What its file said.
    pub original: Option<Original>,
}

impl MarkState {
    /// Its spans.
    pub fn spans(&self) -> Vec<Span> {
        self.spans.iter().map(|&(start, end)| Span { start, end }).collect()
    }

    /// The id of its concept.
    pub fn concept_id(&self) -> Option<&str> {
        self.concept.as_ref().map(|concept| concept.id.as_str())
    }

    /// Whether it is shown.
    pub fn is_listed(&self) -> bool {
        !self.is_deleted && self.state != State::Rejected
    }

    /// Whether a model made it and nobody has decided.
    pub fn is_open(&self) -> bool {
        self.source == Source::Pred && self.state == State::Open && !self.is_deleted
    }

    /// Whether it stands for what people say: they made or confirmed it, or it came with the documents.
    pub fn is_human(&self) -> bool {
        self.source != Source::Pred && self.is_listed()
    }

    /// Whether a model made it, or it came with its document.
    pub fn was_read(&self) -> bool {
        self.model.is_some() || self.original.is_some()
    }

    /// How far the first candidate is before the second; its own score where there is no second.
    pub fn margin(&self) -> Option<f64> {
        let first = self.candidates.first()?;
        let second = self.candidates.get(1).map_or(0.0, |second| second.score);
        Some((first.score - second).max(0.0))
    }
}

/// Spans as they are stored.
pub fn stored(spans: &[Span]) -> Vec<(u32, u32)> {
    spans.iter().map(|span| (span.start, span.end)).collect()
}

/// A mark before and after; `None` where it is not there.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Change {
    /// The mark.
    pub id: i64,
    /// As it was.
    pub before: Option<MarkState>,
    /// As it is.
    pub after: Option<MarkState>,
}

impl Change {
    /// Whether a decision becomes an open prediction again.
    pub fn is_open_again(&self) -> bool {
        let was_decided = self.before.as_ref().is_some_and(|before| !before.is_open());
        was_decided && self.after.as_ref().is_some_and(MarkState::is_open)
    }
}

/// What one event changes.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Changes {
    /// Marks.
    pub marks: Vec<Change>,
    /// Whether the document was finished, and is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished: Option<(bool, bool)>,
}

impl Changes {
    /// Nothing is changed.
    pub fn is_empty(&self) -> bool {
        self.marks.is_empty() && self.finished.is_none()
    }

    /// The change that takes this one back.
    pub fn reversed(&self) -> Changes {
        let turn =
            |change: &Change| Change { id: change.id, before: change.after.clone(), after: change.before.clone() };
        Changes {
            marks: self.marks.iter().rev().map(turn).collect(),
            finished: self.finished.map(|(before, after)| (after, before)),
        }
    }
}
