//! Corpus formats: one file a format, all to and from [`AnnotatedDocument`].
//!
//! Readers turn the offsets of a format into bytes and check each against its text; writers turn them
//! back. Concepts are written as ids such as `MESH:D003924`, never as numbers of one knowledge base.

mod check;
pub mod format;
pub mod jsonl;
pub mod plain;
pub mod pubtator;

pub use check::{OnMismatch, ReadCounts};
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

/// A mention with its concept ids, as a corpus or a linker gives it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Annotation {
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
    /// Relations as columns of the source, such as `["CID", "D003042", "D012640"]`: carried along, never interpreted.
    pub relations: Vec<Vec<String>>,
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
