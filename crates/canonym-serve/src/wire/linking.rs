//! Linking, names and the terminology.

use std::collections::BTreeMap;

use canonym_core::corpus::contexts::is_context;
use canonym_core::corpus::{AnnotatedDocument, Annotation, CandidateRecord};
use canonym_core::link::explain::Explanation;
use canonym_core::numbers::rounded;
use canonym_core::text::offsets::OffsetMap;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::engine::Nil;
use crate::marks::{CandidateRow, Named};
use crate::spans::{Pairs, to_pairs};

/// A text to link.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize, ToSchema)]
pub struct TextIn {
    /// The ID; defaults to the position in the list.
    #[serde(default)]
    pub id: Option<String>,
    /// The text.
    pub text: String,
    /// Mentions to link, in place of those that the model detects. All texts of a request have them, or none.
    #[serde(default)]
    pub mentions: Option<Vec<MentionIn>>,
}

/// A given mention.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct MentionIn {
    /// Spans in code points, ends exclusive.
    #[schema(value_type = Vec<Vec<usize>>)]
    pub spans: Pairs,
    /// The semantic type.
    #[serde(default, rename = "type")]
    pub kind: String,
}

/// Concept filters, as on the command line. A concept must pass all of them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Filters {
    /// Only concepts from these source vocabularies.
    pub only_sources: Vec<String>,
    /// Only concepts, and unlinked mentions, with one of these semantic types.
    pub only_types: Vec<String>,
    /// Only these concepts and their descendants.
    pub only_under: Vec<String>,
    /// No concepts from these source vocabularies.
    pub not_sources: Vec<String>,
    /// No concepts, and no unlinked mentions, with any of these semantic types.
    pub not_types: Vec<String>,
    /// None of these concepts and none of their descendants.
    pub not_under: Vec<String>,
}

/// One or several texts, and options.
#[derive(Debug, Clone, Default, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct LinkRequest {
    /// One text.
    #[serde(default)]
    pub text: Option<String>,
    /// Mentions of this text to link, in place of those that the model detects.
    #[serde(default)]
    pub mentions: Option<Vec<MentionIn>>,
    /// Several texts.
    #[serde(default)]
    pub documents: Option<Vec<TextIn>>,
    /// Candidates per mention, 1 to 100 (default 5).
    #[serde(default)]
    pub top_k: Option<usize>,
    /// Leave mentions below this probability unlinked.
    #[serde(default)]
    pub min_score: Option<f32>,
    /// Report all mentions inside longer ones, or none (default: those of another semantic type and those inside unlinked
    /// mentions).
    #[serde(default)]
    pub nested: Option<bool>,
    /// Whether unlinked mentions are kept (default) or dropped.
    #[serde(default)]
    pub nil: Nil,
    /// Include the evidence for each mention.
    #[serde(default)]
    pub explain: bool,
    /// Mark negated, possible, historical, hypothetical and family mentions in `attributes`.
    #[serde(default)]
    pub context: bool,
    /// Drop mentions with any of these contexts, such as `negated`.
    #[serde(default)]
    pub drop_context: Vec<String>,
    /// Concept filters.
    #[serde(default)]
    pub filters: Option<Filters>,
    /// The name of the model: that of the server, or `lexical`.
    #[serde(default)]
    pub model: Option<String>,
    /// Use the model of this project; defaults to the server's model.
    #[serde(default)]
    pub project: Option<i64>,
}

/// A linked mention.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct AnnotationOut {
    /// Spans in code points, ends exclusive.
    #[schema(value_type = Vec<Vec<usize>>)]
    pub spans: Pairs,
    /// The text of the spans.
    pub text: String,
    /// The semantic type.
    #[serde(rename = "type")]
    pub kind: String,
    /// Probability that span and concept are correct; that the span is a mention if `nil` is true.
    pub score: f64,
    /// Probability that the span is a mention; missing for a given mention.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p_mention: Option<f64>,
    /// Probability that the best candidate is correct, given that the span is a mention; missing without candidates.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p_link: Option<f64>,
    /// Whether it is unlinked.
    pub nil: bool,
    /// Candidate concepts, best first.
    pub candidates: Vec<CandidateRow>,
    /// The context, if requested: `negation`, `temporality` and `experiencer`; missing for a plain statement.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub attributes: BTreeMap<String, String>,
    /// The evidence.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub explanation: Option<Explanation>,
}

/// A linked text.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct LinkedOut {
    /// The ID.
    pub id: String,
    /// The text.
    pub text: String,
    /// The mentions found.
    pub annotations: Vec<AnnotationOut>,
}

impl LinkedOut {
    /// Converts a linked document, with the evidence if there is any.
    pub fn new(linked: AnnotatedDocument, reasons: Vec<Explanation>) -> LinkedOut {
        let map = OffsetMap::new(&linked.document.text);
        let mut reasons = reasons.into_iter();
        // As in the lines of `canonym link`, where p(link) of the other candidates follows from their scores.
        let candidate = |record: &CandidateRecord| CandidateRow { p_link: None, ..CandidateRow::new(record) };
        let annotation = |annotation: &Annotation| AnnotationOut {
            spans: to_pairs(&map, &annotation.spans),
            text: annotation.text.clone(),
            kind: annotation.semantic_type.clone(),
            score: rounded(annotation.score.unwrap_or_default()),
            p_mention: annotation.p_mention.map(rounded),
            p_link: annotation.p_link.map(rounded),
            nil: annotation.nil,
            candidates: annotation.candidates.iter().map(candidate).collect(),
            attributes: attributes(annotation),
            explanation: reasons.next(),
        };
        let annotations = linked.annotations.iter().map(annotation).collect();
        LinkedOut { id: linked.document.id, text: linked.document.text, annotations }
    }
}

fn attributes(annotation: &Annotation) -> BTreeMap<String, String> {
    let contexts = annotation.attributes.iter().filter(|attribute| is_context(attribute));
    contexts.map(|attribute| (attribute.name.clone(), attribute.value.clone())).collect()
}

/// Several linked texts.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct LinkedList {
    /// In request order.
    pub documents: Vec<LinkedOut>,
}

/// The response to a linking request.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(untagged)]
pub enum Linked {
    /// For a request with `text`.
    One(LinkedOut),
    /// For a request with `documents`.
    Several(LinkedList),
}

/// Names to link without context.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct MapRequest {
    /// The names.
    pub names: Vec<String>,
    /// Candidates per name, 1 to 100 (default 5).
    #[serde(default)]
    pub top_k: Option<usize>,
    /// Leave names below this probability unlinked.
    #[serde(default)]
    pub min_score: Option<f32>,
    /// Include the evidence for each name.
    #[serde(default)]
    pub explain: bool,
    /// Concept filters.
    #[serde(default)]
    pub filters: Option<Filters>,
    /// Add the codes of each concept in another code system, such as `ICD10CM` or the URI of a system.
    #[serde(default)]
    pub to_system: Option<String>,
    /// The name of the model: that of the server, or `lexical`.
    #[serde(default)]
    pub model: Option<String>,
    /// Use the model of this project; defaults to the server's model.
    #[serde(default)]
    pub project: Option<i64>,
}

/// The candidates of a name.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct Mapped {
    /// The name.
    pub query: String,
    /// Whether it is unlinked.
    pub nil: bool,
    /// Candidate concepts, best first.
    pub candidates: Vec<MappedCandidate>,
    /// The evidence, if requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub explanation: Option<Explanation>,
}

/// A candidate concept of a name.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct MappedCandidate {
    /// The concept.
    #[serde(flatten)]
    pub candidate: CandidateRow,
    /// Its codes in the code system of `to_system`; missing without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub codes: Option<Vec<MappedCode>>,
}

/// A code of a concept in another code system.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct MappedCode {
    /// The code with its prefix.
    pub id: String,
    /// How the concept relates to it, such as `skos:exactMatch`.
    pub predicate: &'static str,
}

/// The candidates of several names.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct MappedList {
    /// In request order.
    pub results: Vec<Mapped>,
}

/// A concept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct Concept {
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
}

/// A search result.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct Hit {
    /// The concept.
    #[serde(flatten)]
    pub concept: Concept,
    /// The name that matched.
    pub matched: String,
    /// How it matched: `id`, `exact`, `prefix` or `fuzzy`.
    pub how: &'static str,
    /// Similarity of name and query, 0 to 1.
    pub score: f64,
}

/// Search results.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct Hits {
    /// Best first.
    pub results: Vec<Hit>,
}

/// A concept with its place in the hierarchy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct ConceptPage {
    /// The concept.
    #[serde(flatten)]
    pub concept: Concept,
    /// Broader concepts.
    pub parents: Vec<Named>,
    /// Narrower concepts.
    pub children: Vec<Named>,
    /// A path from the root to the concept itself.
    pub path: Vec<Named>,
}

/// A concept in the hierarchy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct TreeNode {
    /// The ID.
    pub id: String,
    /// The preferred name.
    pub name: String,
    /// Number of narrower concepts.
    pub n_children: usize,
}

/// A level of the hierarchy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct TreeLevel {
    /// A path from the root to the concept above this level; empty for the concepts without broader ones.
    pub path: Vec<Named>,
    /// Up to 1,000 concepts, by name.
    pub concepts: Vec<TreeNode>,
    /// Number of concepts on this level.
    pub n_concepts: usize,
}

/// The semantic types of the terminology.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct SemanticTypes {
    /// Their names.
    pub types: Vec<String>,
}

/// Similar concepts.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct Near {
    /// Most similar first.
    pub concepts: Vec<CandidateRow>,
}

/// An example of an issue.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct LintExample {
    /// A few of the concepts.
    pub ids: Vec<String>,
    /// The name concerned.
    pub name: String,
    /// Details.
    pub note: String,
}

/// A quality check and its result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct LintCheck {
    /// The name on the command line.
    pub check: &'static str,
    /// What it looks for.
    pub what: &'static str,
    /// Number of issues; null if not available.
    pub n_found: Option<u64>,
    /// Whether it only reports what the source does not provide.
    pub is_note: bool,
    /// The first issues.
    pub examples: Vec<LintExample>,
}

/// The quality checks of the terminology.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct LintOut {
    /// Whether the checks are done; retry otherwise.
    pub is_ready: bool,
    /// How long they took.
    pub seconds: Option<f64>,
    /// The checks.
    pub checks: Vec<LintCheck>,
}

/// A candidate concept for a mention.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct Choice {
    /// The ID.
    pub id: String,
    /// The preferred name.
    pub name: String,
    /// Semantic types.
    pub types: Vec<String>,
    /// The definition.
    pub definition: Option<String>,
    /// Up to five synonyms.
    pub synonyms: Vec<ScopedName>,
    /// Names of a path from the root to the concept itself.
    pub path: Vec<String>,
    /// The model's probability, or the similarity of the name.
    pub score: Option<f64>,
    /// Where it comes from: `model`, `exact`, `prefix`, `fuzzy`, `recent`, `linked` or `proposal`.
    pub how: &'static str,
    /// The name that matches the mention or the typed text; null if none does.
    pub matched: Option<MatchedName>,
    /// How often people chose it in this project.
    pub n_chosen: usize,
    /// How often people linked other mentions of this text to it in this project.
    pub n_linked: usize,
}

/// A name with its scope.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct ScopedName {
    /// The name.
    pub name: String,
    /// Its scope: `preferred`, `exact`, `narrow`, `broad` or `related`.
    pub scope: &'static str,
}

/// The name of a candidate that matches a text.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct MatchedName {
    /// The name.
    pub name: String,
    /// Its scope: `preferred`, `exact`, `narrow`, `broad` or `related`.
    pub scope: &'static str,
    /// How it matches: `id`, `exact`, `prefix` or `fuzzy`.
    pub how: &'static str,
    /// Similarity of name and text, 0 to 1.
    pub similarity: f64,
}

/// Candidate concepts for a mention.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct Choices {
    /// Best first.
    pub candidates: Vec<Choice>,
}
