//! Corpus formats: one file a format, all to and from [`AnnotatedDocument`].
//!
//! Readers turn the offsets of a format into bytes and check each against its text; writers turn them
//! back. Concepts are written as ids such as `MESH:D003924`, never as numbers of one knowledge base.

pub mod format;
pub mod jsonl;
pub mod plain;
pub mod pubtator;

use crate::text::{Document, Span};

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
}

/// A document with its annotations, in the order of the source.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct AnnotatedDocument {
    /// The text and its identifier.
    pub document: Document,
    /// The mentions.
    pub annotations: Vec<Annotation>,
}
