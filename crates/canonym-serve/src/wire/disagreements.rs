//! Places of which people said different things.

use serde::Serialize;
use utoipa::ToSchema;

use crate::marks::Named;
use crate::spans::Pairs;

/// A mention that somebody says stands in a place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct ClaimOut {
    /// The mark.
    pub mark: i64,
    /// Where, in code points.
    #[schema(value_type = Vec<Vec<usize>>)]
    pub spans: Pairs,
    /// The text there.
    pub text: String,
    /// The concept; none where no concept fits.
    pub concept: Option<Named>,
}

/// Somebody who said something.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct Speaker {
    /// The name.
    pub name: String,
    /// When they last said it.
    pub at: String,
}

/// What some people say stands in a place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct AnswerOut {
    /// Who.
    pub people: Vec<Speaker>,
    /// What; nothing where they say that it is no mention.
    pub claims: Vec<ClaimOut>,
}

/// A place of which people said different things.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct Disagreement {
    /// The document.
    pub document: i64,
    /// Its id in its source.
    pub external_id: String,
    /// Its last event.
    pub version: i64,
    /// The marks there: a decision of the kind `settle` names all.
    pub marks: Vec<i64>,
    /// The first code point of the place.
    pub start: usize,
    /// The code point behind it.
    pub end: usize,
    /// The text there.
    pub text: String,
    /// What stands before it.
    pub before: String,
    /// What stands behind it.
    pub behind: String,
    /// The answers, the one of most people first.
    pub answers: Vec<AnswerOut>,
    /// Whether it was settled and somebody said otherwise since.
    pub is_reopened: bool,
}

/// A part of the places of a project of which people said different things.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct Disagreements {
    /// By document and place.
    pub disagreements: Vec<Disagreement>,
    /// Where to go on; none at the end.
    pub next_cursor: Option<String>,
    /// How many there are in the whole project.
    pub n_open: usize,
}
