//! What went wrong, mention by mention: every gold annotation and every prediction gets a class.
//!
//! [`analyse`] pairs the annotations of each document, classifies the pairs and whatever is left alone, and counts
//! confusions and surfaces. It does not know the knowledge base: a [`Terminology`] answers what it asks of one.
//! Annotations on which gold gives no concept are no cases; repeats of one annotation are one case.
//!
//! The result is plain data: it is written as JSON, and [`html`](super::html) makes a page of it.

mod classify;
mod context;
mod counting;

use std::str::FromStr;

use serde::{Deserialize, Serialize};

pub use context::Context;

use super::ids::{IdPolicy, IdSet};
use super::pairing::{Paired, texts};
use crate::corpus::AnnotatedDocument;
use classify::{GoldSurfaces, Judge};

/// Candidates that a case keeps, which bounds its size.
const MAX_CANDIDATES: usize = 5;

/// The reason of predictions that are out of the scope of the corpus: no gold annotation anywhere has their concept.
pub const NOWHERE_IN_GOLD: &str = "concept not in gold";

/// What became of a gold annotation, of a prediction, or of both.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ErrorClass {
    /// Span, concept and type are right.
    Correct,
    /// The right concept on a span that only overlaps the right one.
    Boundary,
    /// The right concept on the right span, with another type.
    Type,
    /// Another concept on the right span, where the text is a name of the gold concept or it was a candidate.
    WrongSense,
    /// Another concept than that of the gold annotation it lies on.
    WrongConcept,
    /// The terminology has the gold concept, but no name of it reads like the text.
    MissingName,
    /// The terminology does not have the gold concept.
    NotInTerminology,
    /// Gold that the terminology names like the text, and that was not found.
    Missed,
    /// A prediction for which there is no gold annotation.
    Spurious,
    /// Gold itself speaks against the verdict: it gives the same text the predicted concept elsewhere.
    GoldDoubtful,
}

impl ErrorClass {
    /// Every class, in the order of reports.
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

    /// The name in files.
    pub fn name(self) -> &'static str {
        self.words().0
    }

    /// The name for people.
    pub fn title(self) -> &'static str {
        self.words().1
    }

    /// One sentence for people.
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
            crate::Error::invalid(format!("unknown error class `{text}`")).with_hint(format!("use one of {names}"))
        })
    }
}

/// What an analysis asks of a terminology.
pub struct Terminology<'a> {
    /// The preferred name of the concept with an id, as [`IdSet`] writes it; `None` where there is no such concept.
    pub name: &'a dyn Fn(&str) -> Option<String>,
    /// The concepts with a name that [`fold`](crate::text::normalise::fold)s to the given form, each with all its ids.
    pub concepts_of_form: &'a dyn Fn(&str) -> Vec<IdSet>,
}

/// The choices of an analysis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ErrorConfig {
    /// When ids agree.
    pub ids: IdPolicy,
    /// Examples in context for each class; cases that are alike share one.
    pub n_examples: usize,
    /// Rows of each list of confusions and surfaces.
    pub n_rows: usize,
}

impl Default for ErrorConfig {
    fn default() -> ErrorConfig {
        ErrorConfig { ids: IdPolicy::Any, n_examples: 50, n_rows: 100 }
    }
}

/// What went wrong, and what did not.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ErrorAnalysis {
    /// Whether a terminology was at hand; without one no class tells what it lacks.
    pub has_terminology: bool,
    /// Gold annotations with a concept, each once.
    pub n_gold: u64,
    /// Predictions with a concept, each once.
    pub n_pred: u64,
    /// How often each class occurs, in the order of [`ErrorClass::ALL`], those that do not occur included.
    pub classes: Vec<ClassCount>,
    /// Which concepts were taken for which, the most frequent first.
    pub confusions: Vec<Confusion>,
    /// Texts of gold annotations without a prediction, the most frequent first.
    pub missed_surfaces: Vec<Surface>,
    /// Texts of predictions without a gold annotation, the most frequent first.
    pub spurious_surfaces: Vec<Surface>,
    /// Cases in context: one for all that are alike, the most frequent first within each class.
    pub examples: Vec<Example>,
    /// Every gold annotation and every prediction, in the order of gold documents and of their texts.
    pub cases: Vec<Case>,
}

/// How often a class occurs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClassCount {
    /// The class.
    pub class: ErrorClass,
    /// Its gold annotations.
    pub n_gold: u64,
    /// Its predictions.
    pub n_pred: u64,
    /// Its cases: pairs count once.
    pub n_cases: u64,
    /// The reasons that cases give, the most frequent first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reasons: Vec<ReasonCount>,
}

/// How often a reason occurs in a class.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReasonCount {
    /// The reason, as cases give it.
    pub reason: String,
    /// Its cases.
    pub n: u64,
}

/// A concept that was taken for another.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Confusion {
    /// How often.
    pub n: u64,
    /// The gold ids.
    pub gold_ids: Vec<String>,
    /// Their names, where known.
    pub gold_names: Vec<String>,
    /// The predicted ids.
    pub predicted_ids: Vec<String>,
    /// Their names, where known.
    pub predicted_names: Vec<String>,
    /// The most frequent text.
    pub text: String,
}

/// A text that was missed or predicted in vain.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Surface {
    /// How often it was.
    pub n: u64,
    /// How often the text is annotated at all, on the same side.
    pub n_all: u64,
    /// The text as it stands at the first place, case and punctuation aside the same everywhere.
    pub text: String,
    /// The ids there.
    pub ids: Vec<String>,
    /// Their names, where known.
    pub names: Vec<String>,
    /// The class there.
    pub class: Option<ErrorClass>,
}

/// A gold annotation, a prediction, or a pair of both.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Case {
    /// The id of the document.
    pub document: String,
    /// What became of it.
    pub class: ErrorClass,
    /// Why this class, where the class alone does not say it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// The gold annotation.
    pub gold: Option<Side>,
    /// The prediction; one without ids is an abstention.
    pub predicted: Option<Side>,
    /// What the system considered, best first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub candidates: Vec<Considered>,
    /// The rank of the gold concept among all candidates, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gold_rank: Option<u64>,
}

impl Case {
    /// The types of the gold annotation, else of the prediction.
    pub fn types(&self) -> &[String] {
        let typed = |side: &'_ &Side| !side.types.is_empty();
        let side = self.gold.as_ref().filter(typed).or(self.predicted.as_ref());
        side.map_or(&[], |side| &side.types)
    }

    /// The prediction, where it names a concept.
    pub fn linked(&self) -> Option<&Side> {
        self.predicted.as_ref().filter(|side| !side.ids.is_empty())
    }
}

/// One annotation of a case.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Side {
    /// Where it stands: start and end in code points.
    pub spans: Vec<(u32, u32)>,
    /// The text there; parts of a discontinuous mention are joined by one space.
    pub text: String,
    /// The concepts; none for an abstention.
    pub ids: Vec<String>,
    /// Their preferred names, where known; empty texts hold the place of unknown ones.
    pub names: Vec<String>,
    /// The semantic types.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub types: Vec<String>,
    /// How sure the system is; none in gold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub score: Option<f32>,
}

/// A concept that the system considered.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Considered {
    /// Its id, as the system writes it.
    pub id: String,
    /// Its preferred name.
    pub name: String,
    /// The probability that it is meant.
    pub score: f32,
    /// Whether gold means it.
    pub is_gold: bool,
}

/// A case that stands for all that are alike: the same class, text and concepts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Example {
    /// The row of the case in [`ErrorAnalysis::cases`].
    pub case: usize,
    /// How many cases are alike, this one included.
    pub n_alike: u64,
    /// The text around it.
    pub context: Context,
}

/// Classifies every annotation of `paired`, which [`pair`](super::pairing::pair) made of `gold` and `predicted`.
pub fn analyse(
    gold: &[AnnotatedDocument],
    predicted: &[AnnotatedDocument],
    paired: &Paired,
    terminology: Option<&Terminology<'_>>,
    config: &ErrorConfig,
) -> ErrorAnalysis {
    let texts = texts(gold);
    let surfaces = GoldSurfaces::of(&paired.documents, &texts);
    let judge = Judge::new(terminology, predicted, surfaces, config.ids);
    let mut cases = Vec::new();
    for (row, document) in paired.documents.iter().enumerate() {
        let text = texts.get(row).map_or("", String::as_str);
        cases.extend(judge.cases(document, text));
    }
    let mut analysis = ErrorAnalysis { has_terminology: terminology.is_some(), ..ErrorAnalysis::default() };
    counting::count(&mut analysis, &cases, config);
    let rows = paired.documents.iter().enumerate().map(|(row, document)| (document.id.as_str(), row)).collect();
    analysis.examples = context::examples(&cases, &texts, &rows, config.n_examples);
    analysis.cases = cases;
    analysis
}
