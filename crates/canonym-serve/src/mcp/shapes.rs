//! Arguments and results of the tools. Their JSON schemas are made from these types.

use rmcp::schemars;
use rmcp::schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Arguments of `annotate_text`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AnnotateArgs {
    /// The text, at most 2 MiB.
    pub text: String,
    /// Candidates per mention (default 3).
    #[serde(default)]
    #[schemars(range(min = 1, max = 50))]
    pub top_k: Option<usize>,
    /// Leave mentions below this probability without a match; the threshold of the model by default.
    #[serde(default)]
    #[schemars(range(min = 0.0, max = 1.0))]
    pub min_score: Option<f32>,
}

/// Result of `annotate_text`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct AnnotatedOut {
    /// The mentions in text order.
    pub mentions: Vec<MentionOut>,
}

/// Whether a concept was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// `concept` is the match.
    Match,
    /// The terminology has no concept that is likely enough. Report no ID for it.
    NoMatch,
}

/// A mention in a text.
#[derive(Debug, Serialize, JsonSchema)]
pub struct MentionOut {
    /// The mentioned words.
    pub text: String,
    /// Start and end of each part of the mention, in Unicode code points; ends are exclusive.
    pub spans: Vec<[usize; 2]>,
    /// The semantic type.
    #[serde(rename = "type")]
    pub kind: String,
    /// Whether a concept was found.
    pub status: Status,
    /// The concept; null without a match.
    pub concept: Option<ConceptRef>,
    /// Probability that mention and concept are correct.
    pub score: f64,
    /// What the text says of the mention: `negated`, `possible`, `historical`, `hypothetical`, `family`. Empty for a plain
    /// statement about the patient at present.
    pub context: Vec<String>,
    /// The nearest concepts, best first.
    pub candidates: Vec<Scored>,
}

/// A concept of the terminology.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ConceptRef {
    /// The ID.
    pub id: String,
    /// The preferred name.
    pub name: String,
}

/// A candidate.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Scored {
    /// The ID.
    pub id: String,
    /// The preferred name.
    pub name: String,
    /// Probability that it is correct, 0 to 1.
    pub score: f64,
    /// The same, given that the span is a mention.
    pub p_link: f64,
}

/// Arguments of `ground_terms`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GroundArgs {
    /// The terms, at most 1,000 of at most 500 bytes.
    #[schemars(length(min = 1, max = 1000))]
    pub terms: Vec<String>,
    /// Candidates per term (default 3).
    #[serde(default)]
    #[schemars(range(min = 1, max = 50))]
    pub top_k: Option<usize>,
    /// Probability below which a term has no match (default 0.5).
    #[serde(default)]
    #[schemars(range(min = 0.0, max = 1.0))]
    pub min_score: Option<f32>,
}

/// Result of `ground_terms`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct GroundedOut {
    /// One for each term, in order.
    pub results: Vec<GroundedTerm>,
}

/// The match of a term.
#[derive(Debug, Serialize, JsonSchema)]
pub struct GroundedTerm {
    /// The term as given.
    pub term: String,
    /// Whether a concept was found.
    pub status: Status,
    /// The concept; null without a match.
    pub concept: Option<ConceptRef>,
    /// The nearest concepts, best first.
    pub candidates: Vec<Scored>,
}

/// Arguments of `search_concepts`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SearchArgs {
    /// A name, the start of one, or an ID; at most 500 bytes.
    pub query: String,
    /// The number of results (default 10).
    #[serde(default)]
    #[schemars(range(min = 1, max = 50))]
    pub top_k: Option<usize>,
}

/// Result of `search_concepts`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct SearchOut {
    /// Whether anything was found.
    pub status: Status,
    /// The concepts, best first.
    pub results: Vec<SearchRow>,
}

/// A concept that was found.
#[derive(Debug, Serialize, JsonSchema)]
pub struct SearchRow {
    /// The ID.
    pub id: String,
    /// The preferred name.
    pub name: String,
    /// The name that matched.
    pub matched: String,
    /// How it matched: `id`, `exact`, `prefix` or `fuzzy`.
    pub how: String,
    /// Semantic types.
    pub types: Vec<String>,
}

/// Arguments of `get_concept`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ConceptArgs {
    /// The ID, such as `MESH:D003693`.
    pub id: String,
}

/// Result of `get_concept`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ConceptOut {
    /// Whether the terminology has the ID.
    pub status: Status,
    /// The concept; null without a match.
    pub concept: Option<ConceptDetails>,
    /// Concepts with similar IDs, if the ID is unknown.
    pub did_you_mean: Vec<ConceptRef>,
}

/// A concept in full.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ConceptDetails {
    /// The ID.
    pub id: String,
    /// The preferred name.
    pub name: String,
    /// Other names.
    pub synonyms: Vec<String>,
    /// The definition.
    pub definition: Option<String>,
    /// Semantic types.
    pub types: Vec<String>,
    /// Broader concepts.
    pub parents: Vec<ConceptRef>,
    /// Narrower concepts.
    pub children: Vec<ConceptRef>,
}

/// Arguments of `validate_ids`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ValidateArgs {
    /// The IDs, at most 1,000 of at most 500 bytes.
    #[schemars(length(min = 1, max = 1000))]
    pub ids: Vec<String>,
}

/// Result of `validate_ids`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ValidatedOut {
    /// Whether the terminology has all IDs.
    pub all_valid: bool,
    /// One for each ID, in order.
    pub results: Vec<ValidatedId>,
}

/// Whether the terminology has an ID.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ValidatedId {
    /// The ID as given.
    pub given: String,
    /// Whether the terminology has it.
    pub valid: bool,
    /// The concept with its current ID; null if there is none.
    pub concept: Option<ConceptRef>,
    /// Concepts with similar IDs, if the ID is unknown.
    pub did_you_mean: Vec<ConceptRef>,
}
