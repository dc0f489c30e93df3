//! Error analysis: every gold annotation and every prediction gets a class.
//!
//! [`analyse`] pairs the annotations of each document, classifies pairs and unpaired annotations, and counts confusions
//! and surfaces. The knowledge base is accessed only through [`Terminology`]. Gold annotations without a concept are
//! ignored; duplicates count once.
//!
//! The result is plain data, written as JSON or rendered as a page by [`html`](super::html).

mod classify;
mod context;
mod counting;

use std::str::FromStr;

use serde::{Deserialize, Serialize};

pub use context::Excerpt;

use super::ids::{IdPolicy, IdSet};
use super::pairing::{Paired, texts};
use crate::corpus::AnnotatedDocument;
use classify::{Classifier, GoldSurfaces};

/// Maximum number of candidates kept per case.
const MAX_CANDIDATES: usize = 5;

/// Reason for predictions outside the scope of the corpus: their concept does not occur in gold.
pub const NOWHERE_IN_GOLD: &str = "concept not in gold";

/// The class of a gold annotation, of a prediction, or of a pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ErrorClass {
    /// Span, concept and type are correct.
    Correct,
    /// Correct concept, but the span only overlaps the gold span.
    Boundary,
    /// Correct concept and span, but another type.
    Type,
    /// Wrong concept on the correct span, although the text is a name of the gold concept or the gold concept was a
    /// candidate.
    WrongSense,
    /// A concept other than that of the overlapping gold annotation.
    WrongConcept,
    /// The gold concept is in the terminology, but without a name like the text.
    MissingName,
    /// The gold concept is not in the terminology.
    NotInTerminology,
    /// A gold annotation that was not found, although the text is a name of its concept.
    Missed,
    /// A prediction without a gold annotation.
    Spurious,
    /// Possible gold error: gold annotates the same text with the predicted concept elsewhere.
    GoldDoubtful,
}

impl ErrorClass {
    /// All classes, in report order.
    pub const ALL: [ErrorClass; 10] = [
        ErrorClass::Correct,
        ErrorClass::Boundary,
        ErrorClass::Type,
        ErrorClass::WrongSense,
        ErrorClass::WrongConcept,
        ErrorClass::MissingName,
        ErrorClass::NotInTerminology,
        ErrorClass::Missed,
        ErrorClass::Spurious,
        ErrorClass::GoldDoubtful,
    ];

    /// Name in files.
    pub fn name(self) -> &'static str {
        self.words().0
    }

    /// Title for people.
    pub fn title(self) -> &'static str {
        self.words().1
    }

    /// Explanation in one sentence.
    pub fn meaning(self) -> &'static str {
        self.words().2
    }

    fn words(self) -> (&'static str, &'static str, &'static str) {
        match self {
            ErrorClass::Correct => ("correct", "Correct", "Span, concept and type match gold."),
            ErrorClass::Boundary => ("boundary", "Boundary", "Correct concept on a span that overlaps the gold span."),
            ErrorClass::Type => ("type", "Type", "Correct span and concept, wrong semantic type."),
            ErrorClass::WrongSense => (
                "wrong-sense",
                "Wrong sense",
                "Correct span and the gold concept was a candidate, but another sense was chosen.",
            ),
            ErrorClass::WrongConcept => {
                ("wrong-concept", "Wrong concept", "The prediction overlaps a gold mention of another concept.")
            }
            ErrorClass::MissingName => (
                "missing-name",
                "Missing name",
                "The terminology has the gold concept, but no name that matches the text.",
            ),
            ErrorClass::NotInTerminology => {
                ("not-in-terminology", "Not in the terminology", "The terminology lacks the gold concept.")
            }
            ErrorClass::Missed => {
                ("missed", "Missed", "The terminology has a matching name, but the mention was not linked.")
            }
            ErrorClass::Spurious => ("spurious", "Spurious", "The prediction matches no gold mention."),
            ErrorClass::GoldDoubtful => (
                "gold-doubtful",
                "Possible gold error",
                "Gold annotates the same text, or the same concept by its name, elsewhere as predicted here.",
            ),
        }
    }
}

impl FromStr for ErrorClass {
    type Err = crate::Error;

    fn from_str(text: &str) -> crate::Result<ErrorClass> {
        ErrorClass::ALL.into_iter().find(|class| class.name() == text).ok_or_else(|| {
            let names = ErrorClass::ALL.map(ErrorClass::name).join(", ");
            crate::Error::not_found(format!("unknown error class `{text}`")).with_hint(format!("use one of {names}"))
        })
    }
}

/// Lookups in a terminology.
pub struct Terminology<'a> {
    /// Preferred name of the concept with an id as in [`IdSet`]; `None` if there is no such concept.
    pub name: &'a dyn Fn(&str) -> Option<String>,
    /// Concepts with a name that [`fold`](crate::text::normalise::fold)s to the given form, each with all its ids.
    pub concepts_of_form: &'a dyn Fn(&str) -> Vec<IdSet>,
}

/// Settings of an error analysis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ErrorConfig {
    /// When ids match.
    pub ids: IdPolicy,
    /// Number of examples per class; equal cases share an example.
    pub n_examples: usize,
    /// Number of rows in each list of confusions and surfaces.
    pub n_rows: usize,
}

impl Default for ErrorConfig {
    fn default() -> ErrorConfig {
        ErrorConfig { ids: IdPolicy::Any, n_examples: 50, n_rows: 100 }
    }
}

/// The result of an error analysis.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ErrorAnalysis {
    /// Whether a terminology was given; without one, missing names and missing concepts are not detected.
    pub has_terminology: bool,
    /// Number of distinct gold annotations with a concept.
    pub n_gold: u64,
    /// Number of distinct predictions with a concept.
    pub n_pred: u64,
    /// Counts of all classes, in the order of [`ErrorClass::ALL`].
    pub classes: Vec<ClassCount>,
    /// Confusions of concepts, most frequent first.
    pub confusions: Vec<Confusion>,
    /// Texts of missed gold annotations, most frequent first.
    pub missed_surfaces: Vec<SurfaceCount>,
    /// Texts of spurious predictions, most frequent first.
    pub spurious_surfaces: Vec<SurfaceCount>,
    /// Examples in context, one for all equal cases, most frequent first within each class.
    pub examples: Vec<Example>,
    /// All cases, in the order of gold documents and of their texts.
    pub cases: Vec<Case>,
}

/// Count of a class.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClassCount {
    /// The class.
    pub class: ErrorClass,
    /// Number of gold annotations.
    pub n_gold: u64,
    /// Number of predictions.
    pub n_pred: u64,
    /// Number of cases; a pair is one case.
    pub n_cases: u64,
    /// Reasons, most frequent first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reasons: Vec<ReasonCount>,
}

/// Count of a reason within a class.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReasonCount {
    /// The reason, as in [`Case::reason`].
    pub reason: String,
    /// Number of cases.
    pub n: u64,
}

/// A predicted concept in place of the gold concept.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Confusion {
    /// Number of cases.
    pub n: u64,
    /// The gold ids.
    pub gold_ids: Vec<String>,
    /// Their names, if known.
    pub gold_names: Vec<String>,
    /// The predicted ids.
    pub predicted_ids: Vec<String>,
    /// Their names, if known.
    pub predicted_names: Vec<String>,
    /// The most frequent text.
    pub text: String,
}

/// A text that was missed, or predicted without a gold annotation.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SurfaceCount {
    /// Number of times that it was.
    pub n: u64,
    /// Number of annotations with this text on the same side.
    pub n_all: u64,
    /// The text of the first occurrence; the others are equal except for case and punctuation.
    pub text: String,
    /// The ids of the first occurrence.
    pub ids: Vec<String>,
    /// Their names, if known.
    pub names: Vec<String>,
    /// The class of the first occurrence.
    pub class: Option<ErrorClass>,
}

/// A gold annotation, a prediction, or a pair of both.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Case {
    /// Id of the document.
    pub document: String,
    /// Its class.
    pub class: ErrorClass,
    /// The reason for the class, if the class does not imply it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// The gold annotation.
    pub gold: Option<CaseSide>,
    /// The prediction; without ids if not linked.
    pub predicted: Option<CaseSide>,
    /// The candidates of the system, best first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub candidates: Vec<CaseCandidate>,
    /// Rank of the gold concept among all candidates, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gold_rank: Option<u64>,
}

impl Case {
    /// The types of the gold annotation, or else of the prediction.
    pub fn types(&self) -> &[String] {
        let typed = |side: &'_ &CaseSide| !side.types.is_empty();
        let side = self.gold.as_ref().filter(typed).or(self.predicted.as_ref());
        side.map_or(&[], |side| &side.types)
    }

    /// The prediction, if it is linked.
    pub fn linked(&self) -> Option<&CaseSide> {
        self.predicted.as_ref().filter(|side| !side.ids.is_empty())
    }
}

/// A gold or predicted annotation.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct CaseSide {
    /// Spans in code points.
    pub spans: Vec<(u32, u32)>,
    /// Text of the annotation; pieces of a discontinuous mention are joined by a space.
    pub text: String,
    /// The concepts; empty if not linked.
    pub ids: Vec<String>,
    /// Preferred names of `ids`; empty strings if unknown.
    pub names: Vec<String>,
    /// Semantic types.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub types: Vec<String>,
    /// Confidence of the system; `None` in gold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub score: Option<f32>,
}

/// A candidate of the system.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CaseCandidate {
    /// Its id, as written by the system.
    pub id: String,
    /// Its preferred name.
    pub name: String,
    /// Its probability.
    pub score: f32,
    /// Whether it is the gold concept.
    pub is_gold: bool,
}

/// An example for all cases with the same class, text and concepts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Example {
    /// Index of the case in [`ErrorAnalysis::cases`].
    pub case: usize,
    /// Number of equal cases, including this one.
    pub n_alike: u64,
    /// The surrounding text.
    pub context: Excerpt,
}

/// Classifies all annotations of `paired`, the result of [`pair`](super::pairing::pair) for `gold` and `predicted`.
pub fn analyse(
    gold: &[AnnotatedDocument],
    predicted: &[AnnotatedDocument],
    paired: &Paired,
    terminology: Option<&Terminology<'_>>,
    config: &ErrorConfig,
) -> ErrorAnalysis {
    let texts = texts(gold);
    let surfaces = GoldSurfaces::of(&paired.documents, &texts);
    let classifier = Classifier::new(terminology, predicted, surfaces, config.ids);
    let mut cases = Vec::new();
    for (row, document) in paired.documents.iter().enumerate() {
        let text = texts.get(row).map_or("", String::as_str);
        cases.extend(classifier.cases(document, text));
    }
    let mut analysis = ErrorAnalysis { has_terminology: terminology.is_some(), ..ErrorAnalysis::default() };
    counting::count(&mut analysis, &cases, config);
    let rows = paired.documents.iter().enumerate().map(|(row, document)| (document.id.as_str(), row)).collect();
    analysis.examples = context::examples(&cases, &texts, &rows, config.n_examples);
    analysis.cases = cases;
    analysis
}
