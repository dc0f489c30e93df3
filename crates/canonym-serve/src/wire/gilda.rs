//! Requests and responses in the form of Gilda's web service.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A name to ground. Unknown fields are ignored, as Gilda does.
#[derive(Debug, Clone, Default, Deserialize, Serialize, ToSchema)]
pub struct GroundRequest {
    /// The name.
    pub text: String,
    /// A text with the name, which a model that reads context uses.
    #[serde(default)]
    pub context: Option<String>,
    /// Accepted and not used: terminologies here have no organisms.
    #[serde(default)]
    pub organisms: Option<Vec<String>>,
    /// Only concepts whose ID has one of these prefixes.
    #[serde(default)]
    pub namespaces: Option<Vec<String>>,
}

/// Names to ground.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
#[serde(transparent)]
pub struct GroundRequests(pub Vec<GroundRequest>);

/// A text to annotate. Unknown fields are ignored, as Gilda does.
#[derive(Debug, Clone, Default, Deserialize, Serialize, ToSchema)]
pub struct AnnotateRequest {
    /// The text.
    pub text: String,
    /// Accepted and not used.
    #[serde(default)]
    pub organisms: Option<Vec<String>>,
    /// Only concepts whose ID has one of these prefixes.
    #[serde(default)]
    pub namespaces: Option<Vec<String>>,
}

/// A name of a concept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct GildaTerm {
    /// The name, normalised.
    pub norm_text: String,
    /// The name.
    pub text: String,
    /// The prefix of the ID; empty if it has none.
    pub db: String,
    /// The ID without its prefix, except for CHEBI, GO, DOID, HP and BTO, as in Gilda.
    pub id: String,
    /// The preferred name.
    pub entry_name: String,
    /// `name` for the preferred name, else `synonym`.
    pub status: &'static str,
    /// The source vocabulary, or the name of the terminology.
    pub source: String,
}

/// How a name matched.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct GildaMatch {
    /// The name of the request.
    pub query: String,
    /// The name of the concept.
    #[serde(rename = "ref")]
    pub reference: String,
    /// Whether they are equal.
    pub exact: bool,
    /// Whether they differ in blanks alone.
    pub space_mismatch: bool,
    /// Always empty.
    pub dash_mismatches: Vec<String>,
    /// Always empty.
    pub cap_combos: Vec<String>,
}

/// A concept that a name may mean.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct ScoredMatch {
    /// The name that matched, and its concept.
    pub term: GildaTerm,
    /// The address of the concept at bioregistry.io; null for an ID without prefix.
    pub url: Option<String>,
    /// Probability that the concept is meant.
    pub score: f64,
    /// How the name matched.
    #[serde(rename = "match")]
    pub how: GildaMatch,
}

/// The concepts that a name may mean, best first.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[serde(transparent)]
pub struct ScoredMatches(pub Vec<ScoredMatch>);

/// The concepts of several names, in request order.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[serde(transparent)]
pub struct ScoredMatchLists(pub Vec<ScoredMatches>);

/// A mention in a text.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct GildaAnnotation {
    /// The text of the mention.
    pub text: String,
    /// The concepts, best first.
    pub matches: Vec<ScoredMatch>,
    /// The start, in code points.
    pub start: usize,
    /// The end, exclusive.
    pub end: usize,
}

/// The mentions of a text.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[serde(transparent)]
pub struct GildaAnnotations(pub Vec<GildaAnnotation>);
