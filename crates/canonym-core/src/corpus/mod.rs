//! Corpus formats: one file per format, all converted to and from [`AnnotatedDocument`].
//!
//! Readers convert the offsets of a format to bytes and check them against the text; writers convert them back.
//! Concepts are identified by ids such as `MESH:D003924`, never by indices of a knowledge base.

mod bioc;
pub mod bioc_json;
pub mod bioc_xml;
pub mod biosyn;
pub mod brat;
mod check;
mod citation_marks;
pub mod conll;
pub mod contexts;
pub mod csv;
mod detect;
pub mod documents;
pub mod files;
pub mod folder;
pub mod format;
mod jats;
mod json_stream;
pub mod jsonl;
mod kinds;
pub mod losses;
#[cfg(feature = "parquet")]
pub mod parquet;
pub mod plain;
pub mod pubmed;
pub mod pubtator;
pub mod repair;
pub mod table;
pub mod texoo;
pub mod uima;

pub use check::{Anomaly, Occurrences, OnMismatch, ReadCounts};
pub use format::{CorpusFormat, Reader, Writer};

use crate::text::{Document, Mention, Section, Span};

/// Maximum size of a document and of a line: 64 MiB.
pub const MAX_DOCUMENT_BYTES: usize = 64 << 20;

/// A candidate concept in a file.
#[derive(Debug, Clone, PartialEq)]
pub struct CandidateRecord {
    /// The concept id; several ids of one concept are joined by `|`.
    pub id: String,
    /// The preferred name.
    pub name: String,
    /// Calibrated probability that the concept is correct, given that the span is a mention.
    pub p_link: f32,
    /// Calibrated probability that the span is a mention and the concept is correct; `None` for a given mention.
    pub p_both: Option<f32>,
}

impl CandidateRecord {
    /// The score of the output: p(mention and concept) of a detected mention, p(link) of a given one.
    pub fn score(&self) -> f32 {
        self.p_both.unwrap_or(self.p_link)
    }
}

/// A name and a value: a BioC infon, a brat attribute, or the context of a mention.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Attribute {
    /// Name in the source.
    pub name: String,
    /// Its value.
    pub value: String,
}

/// A code of the linked concept in another code system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CodeRecord {
    /// The code with its prefix, such as `ICD10CM:E11.9`.
    pub id: String,
    /// How the concept relates to it, such as `skos:exactMatch`.
    pub predicate: String,
}

/// A mention with concept ids, from a corpus or a linker.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Annotation {
    /// Key of the annotation in the source, such as `T1`; may be empty.
    pub key: String,
    /// One span, or several in text order for a discontinuous mention; never empty.
    pub spans: Vec<Span>,
    /// The annotated text as given by the source (not extracted from the text).
    pub text: String,
    /// The semantic type, such as `Disease`; may be empty.
    pub semantic_type: String,
    /// The ids as in the source, such as `D003924`, `D001260|208900`, `-1`, or several for a composite mention.
    pub ids: Vec<String>,
    /// Confidence of the system; `None` in gold. For a detected mention p(mention and concept), or p(mention) if it is not linked; for a
    /// given mention p(link).
    pub score: Option<f32>,
    /// Probability that the span is a mention; `None` in gold and for given mentions.
    pub p_mention: Option<f32>,
    /// Probability that the best candidate is correct, given that the span is a mention; `None` in gold and without candidates.
    pub p_link: Option<f32>,
    /// Whether the system did not link the mention (NIL).
    pub nil: bool,
    /// The candidates of the system, best first; empty in gold.
    pub candidates: Vec<CandidateRecord>,
    /// Codes of the linked concept in another code system, if they were asked for.
    pub codes: Vec<CodeRecord>,
    /// Names of the parts of a composite mention, if the source splits it; else empty.
    pub parts: Vec<String>,
    /// Further attributes in source order.
    pub attributes: Vec<Attribute>,
}

impl Annotation {
    /// Its spans as a given mention, without type.
    pub fn mention(&self) -> Mention {
        Mention { spans: self.spans.clone(), semantic_type: None, p_mention: 1.0 }
    }

    /// The range from the first to the last byte, including gaps.
    pub fn hull(&self) -> Span {
        let first = self.spans.first().expect("an annotation has a span");
        let last = self.spans.last().expect("an annotation has a span");
        Span { start: first.start, end: last.end }
    }

    /// Id of the linked concept; `None` if not linked.
    pub fn concept_id(&self) -> Option<&str> {
        self.candidates.first().filter(|_| !self.nil).map(|best| best.id.as_str())
    }

    /// Calibrated probability of a prediction; 1 in gold.
    pub fn probability(&self) -> f32 {
        self.score.unwrap_or(1.0)
    }
}

/// An argument of a relation.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Argument {
    /// Its role, such as `Arg1`; may be empty.
    pub role: String,
    /// Key of an annotation or relation, or id of a concept, as in the source.
    pub target: String,
}

/// A relation as in the source, kept without interpretation.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Relation {
    /// Key of the relation in the source, such as `R1`; may be empty.
    pub key: String,
    /// The kind, such as `CID`.
    pub kind: String,
    /// The related annotations or concepts.
    pub arguments: Vec<Argument>,
    /// Further attributes in source order.
    pub attributes: Vec<Attribute>,
}

impl Relation {
    /// A relation without key, roles and attributes.
    pub fn plain(kind: &str, targets: &[&str]) -> Relation {
        let argument = |target: &&str| Argument { role: String::new(), target: (*target).to_owned() };
        Relation { kind: kind.to_owned(), arguments: targets.iter().map(argument).collect(), ..Relation::default() }
    }

    /// Whether it has only a kind and targets.
    pub fn is_plain(&self) -> bool {
        self.key.is_empty() && self.attributes.is_empty() && self.arguments.iter().all(|one| one.role.is_empty())
    }
}

/// Content that only the source format can represent. Kept by the reader, used by the writer of the same format,
/// dropped by all other writers.
#[derive(Debug, Clone, PartialEq)]
pub struct Residue {
    /// The format that can represent it.
    pub format: CorpusFormat,
    /// The content, in a form that reader and writer agree on.
    pub content: serde_json::Value,
}

impl Annotation {
    /// Whether it was predicted by a system: it has a score or candidates, or is NIL.
    pub fn is_linked(&self) -> bool {
        self.score.is_some() || self.nil || !self.candidates.is_empty()
    }
}

/// A document with its annotations, in source order.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct AnnotatedDocument {
    /// The text and its id.
    pub document: Document,
    /// The mentions.
    pub annotations: Vec<Annotation>,
    /// The relations.
    pub relations: Vec<Relation>,
    /// Attributes of the document in source order.
    pub attributes: Vec<Attribute>,
    /// Content that only the source format can represent, if any.
    pub residue: Option<Box<Residue>>,
}

/// A document of title and abstract with PubTator offsets: both are joined by one space.
///
/// The space is present even if the title is empty; there is none before an empty abstract.
pub(crate) fn join_passages(id: String, title: Option<&str>, summary: Option<&str>) -> Document {
    let mut text = String::new();
    let mut sections = Vec::new();
    if let Some(title) = title {
        text.push_str(title);
        sections.push(Section { kind: "title".to_owned(), span: Span::new(0, text.len()) });
    }
    if let Some(summary) = summary {
        if title.is_some() && !summary.is_empty() {
            text.push(' ');
        }
        let start = text.len();
        text.push_str(summary);
        sections.push(Section { kind: "abstract".to_owned(), span: Span::new(start, text.len()) });
    }
    Document { id, text, sections }
}
