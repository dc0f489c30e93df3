//! Linking, names and the terminology.

use canonym_core::corpus::{AnnotatedDocument, Annotation};
use canonym_core::link::explain::Explanation;
use canonym_core::text::offsets::OffsetMap;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::engine::Nil;
use crate::marks::{CandidateRow, Named, rounded};
use crate::spans::{Pairs, to_pairs};

/// A text to link.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize, ToSchema)]
pub struct TextIn {
    /// The id; the place in the list where none is given.
    #[serde(default)]
    pub id: Option<String>,
    /// The text.
    pub text: String,
}

/// One text or several, and how to link them.
#[derive(Debug, Clone, Default, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct LinkRequest {
    /// One text.
    #[serde(default)]
    pub text: Option<String>,
    /// Several.
    #[serde(default)]
    pub documents: Option<Vec<TextIn>>,
    /// Candidates a mention, 1 to 100; 5 where not given.
    #[serde(default)]
    pub top_k: Option<usize>,
    /// Abstain below this probability.
    #[serde(default)]
    pub min_score: Option<f32>,
    /// Whether mentions inside longer ones are given, too.
    #[serde(default)]
    pub nested: bool,
    /// `drop` leaves out mentions without a concept; they are given where it is `keep` or not given.
    #[serde(default)]
    pub nil: Nil,
    /// Whether to say why.
    #[serde(default)]
    pub explain: bool,
    /// The project whose model links; that of the server where none is given.
    #[serde(default)]
    pub project: Option<i64>,
}

/// A mention with its concepts.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct AnnotationOut {
    /// Where, in code points.
    #[schema(value_type = Vec<Vec<usize>>)]
    pub spans: Pairs,
    /// The text there.
    pub text: String,
    /// The type.
    #[serde(rename = "type")]
    pub kind: String,
    /// How likely place and concept are right.
    pub score: f64,
    /// Whether no concept is said to be meant.
    pub nil: bool,
    /// The concepts, best first.
    pub candidates: Vec<CandidateRow>,
    /// Why.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub explanation: Option<Explanation>,
}

/// A text with what was found in it.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct LinkedOut {
    /// The id.
    pub id: String,
    /// The text.
    pub text: String,
    /// What was found.
    pub annotations: Vec<AnnotationOut>,
}

impl LinkedOut {
    /// A linked document with reasons, or without where there are none.
    pub fn of(linked: AnnotatedDocument, reasons: Vec<Explanation>) -> LinkedOut {
        let map = OffsetMap::new(&linked.document.text);
        let mut reasons = reasons.into_iter();
        let annotation = |annotation: &Annotation| AnnotationOut {
            spans: to_pairs(&map, &annotation.spans),
            text: annotation.text.clone(),
            kind: annotation.semantic_type.clone(),
            score: rounded(annotation.score.unwrap_or_default()),
            nil: annotation.nil,
            candidates: annotation.candidates.iter().map(CandidateRow::of).collect(),
            explanation: reasons.next(),
        };
        let annotations = linked.annotations.iter().map(annotation).collect();
        LinkedOut { id: linked.document.id, text: linked.document.text, annotations }
    }
}

/// Several texts with what was found in them.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct LinkedList {
    /// In the order of the request.
    pub documents: Vec<LinkedOut>,
}

/// What a request that links is answered with.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(untagged)]
pub enum Linked {
    /// Where it had `text`.
    One(LinkedOut),
    /// Where it had `documents`.
    Several(LinkedList),
}

/// Names to link without context.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct MapRequest {
    /// The names.
    pub names: Vec<String>,
    /// Candidates a name, 1 to 100; 5 where not given.
    #[serde(default)]
    pub top_k: Option<usize>,
    /// The project whose model links; that of the server where none is given.
    #[serde(default)]
    pub project: Option<i64>,
}

/// What one name may mean.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct Mapped {
    /// The name.
    pub query: String,
    /// Whether no concept is said to be meant.
    pub nil: bool,
    /// The concepts, best first.
    pub candidates: Vec<CandidateRow>,
}

/// What names may mean.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct MappedList {
    /// In the order of the request.
    pub results: Vec<Mapped>,
}

/// A concept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct Concept {
    /// The id.
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

/// A concept that a search found.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct Hit {
    /// The concept.
    #[serde(flatten)]
    pub concept: Concept,
    /// The name that matched.
    pub matched: String,
    /// `id`, `exact`, `prefix` or `fuzzy`.
    pub how: &'static str,
    /// How alike name and query are, 0 to 1.
    pub score: f64,
}

/// What a search found.
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
    /// One way from the root to it; it is the last.
    pub path: Vec<Named>,
}

/// Concepts near another.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct Near {
    /// The nearest first.
    pub concepts: Vec<CandidateRow>,
}

/// An example of what may be wrong with the terminology.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct LintExample {
    /// The concepts, not more than a few.
    pub ids: Vec<String>,
    /// The name that it is about.
    pub name: String,
    /// What else there is to say.
    pub note: String,
}

/// Something that was looked for in the terminology.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct LintCheck {
    /// The word on the command line.
    pub check: &'static str,
    /// What is looked for.
    pub what: &'static str,
    /// How many were found; none where the file does not tell.
    pub n_found: Option<u64>,
    /// Whether it only tells what the source does not offer.
    pub is_note: bool,
    /// The first of them.
    pub examples: Vec<LintExample>,
}

/// What may be wrong with the terminology.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct LintOut {
    /// Whether it was looked through; ask again in a moment where not.
    pub is_ready: bool,
    /// How long that took.
    pub seconds: Option<f64>,
    /// What was looked for.
    pub checks: Vec<LintCheck>,
}

/// A concept that a mark may get.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct Choice {
    /// The id.
    pub id: String,
    /// The preferred name.
    pub name: String,
    /// Semantic types.
    pub types: Vec<String>,
    /// The definition.
    pub definition: Option<String>,
    /// Up to five other names.
    pub synonyms: Vec<String>,
    /// Names from the root to it; its own is the last.
    pub path: Vec<String>,
    /// How likely the model takes it, or how alike its name is.
    pub score: Option<f64>,
    /// `model`, `exact`, `prefix`, `fuzzy` or `recent`.
    pub how: &'static str,
}

/// The concepts that a mark may get.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct Choices {
    /// Best first.
    pub candidates: Vec<Choice>,
}
