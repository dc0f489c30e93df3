//! Corpus formats: one file a format, all to and from [`AnnotatedDocument`].
//!
//! Readers turn the offsets of a format into bytes and check each against its text; writers turn them
//! back. Concepts are written as ids such as `MESH:D003924`, never as numbers of one knowledge base.

mod bioc;
pub mod bioc_json;
pub mod bioc_xml;
pub mod biosyn;
pub mod brat;
mod check;
pub mod conll;
mod files;
pub mod folder;
pub mod format;
mod json_stream;
pub mod jsonl;
mod kinds;
pub mod losses;
pub mod plain;
pub mod pubmed;
pub mod pubtator;
pub mod repair;
pub mod texoo;

pub use check::{Met, Oddity, OnMismatch, ReadCounts};
pub use format::{CorpusFormat, Reader, Writer};

use crate::text::{Document, Section, Span};

/// The largest document that is read, and the longest line: 64 MiB.
pub const MAX_DOCUMENT_BYTES: usize = 64 << 20;

/// A candidate concept as files carry it.
#[derive(Debug, Clone, PartialEq)]
pub struct CandidateRecord {
    /// The concept id, several joined by `|` where the source has several for one concept.
    pub id: String,
    /// The preferred name.
    pub name: String,
    /// The calibrated probability that this is the concept meant.
    pub score: f32,
}

/// A name and a value that a source attaches to something: a BioC infon, a brat attribute, a context of a mention.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Attribute {
    /// What the source calls it.
    pub name: String,
    /// What it says.
    pub value: String,
}

/// A mention with its concept ids, as a corpus or a linker gives it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Annotation {
    /// What the source calls the annotation itself, such as `T1`; empty where it has no name.
    pub key: String,
    /// One span, or several in text order for a discontinuous mention. Never empty.
    pub spans: Vec<Span>,
    /// The annotated text as the source gives it (its own words, not cut out again).
    pub text: String,
    /// The type, such as `Disease`; empty where the source has none.
    pub semantic_type: String,
    /// The ids as the source wrote them, such as `D003924`, `D001260|208900`, `-1`, or several for a composite mention.
    pub ids: Vec<String>,
    /// How sure the system is; `None` in gold data.
    pub score: Option<f32>,
    /// Whether the system abstains: no concept of the knowledge base is meant.
    pub nil: bool,
    /// What the system considered, best first; empty in gold data.
    pub candidates: Vec<CandidateRecord>,
    /// The names of the parts of a composite mention, where the source splits them; else empty.
    pub parts: Vec<String>,
    /// What else is said of the mention, in the order of the source.
    pub attributes: Vec<Attribute>,
}

impl Annotation {
    /// The id of the concept that it is linked to; `None` where it is not linked.
    pub fn concept_id(&self) -> Option<&str> {
        self.candidates.first().filter(|_| !self.nil).map(|best| best.id.as_str())
    }

    /// The calibrated probability of a prediction; 1 in gold data.
    pub fn probability(&self) -> f32 {
        self.score.unwrap_or(1.0)
    }
}

/// One end of a relation.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Argument {
    /// The role, such as `Arg1`; empty where the source has none.
    pub role: String,
    /// The key of an annotation or relation, or the id of a concept, as the source writes it.
    pub target: String,
}

/// A relation as the source writes it: carried along, never interpreted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Relation {
    /// What the source calls the relation itself, such as `R1`; empty where it has no name.
    pub key: String,
    /// The kind, such as `CID`.
    pub kind: String,
    /// What it relates.
    pub arguments: Vec<Argument>,
    /// What else is said of it, in the order of the source.
    pub attributes: Vec<Attribute>,
}

impl Relation {
    /// A relation without key and roles.
    pub fn plain(kind: &str, targets: &[&str]) -> Relation {
        let argument = |target: &&str| Argument { role: String::new(), target: (*target).to_owned() };
        Relation { kind: kind.to_owned(), arguments: targets.iter().map(argument).collect(), ..Relation::default() }
    }

    /// Whether there is no more than a kind and targets.
    pub fn is_plain(&self) -> bool {
        self.key.is_empty() && self.attributes.is_empty() && self.arguments.iter().all(|one| one.role.is_empty())
    }
}

/// What of a document only its own format can hold: the reader keeps it, the writer of the same format uses it, every
/// other writer leaves it out.
#[derive(Debug, Clone, PartialEq)]
pub struct Residue {
    /// The format that can hold it.
    pub format: CorpusFormat,
    /// The content, in whatever shape reader and writer agree on.
    pub content: serde_json::Value,
}

impl Annotation {
    /// Whether a system made this, rather than a person: it has a score, candidates or an abstention.
    pub fn is_linked(&self) -> bool {
        self.score.is_some() || self.nil || !self.candidates.is_empty()
    }
}

/// A document with its annotations, in the order of the source.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct AnnotatedDocument {
    /// The text and its identifier.
    pub document: Document,
    /// The mentions.
    pub annotations: Vec<Annotation>,
    /// The relations.
    pub relations: Vec<Relation>,
    /// What is said of the document as a whole, in the order of the source.
    pub attributes: Vec<Attribute>,
    /// What only the format of the source can hold; `None` where nothing is left.
    pub residue: Option<Box<Residue>>,
}

/// A document of a title and an abstract, as PubTator counts offsets: both joined by one space.
///
/// The space is there even where one of the two is empty, except that nothing follows the title of an empty abstract.
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
