//! Documents, spans and mentions, and what is done to plain text before linking.
//!
//! Offsets in here are bytes of [`Document::text`], half-open, on character boundaries. Code points exist
//! only in readers and writers; [`offsets`] converts.

pub mod abbreviations;
pub mod biosyn;
pub mod composite;
pub mod context;
pub mod normalise;
pub mod notes;
pub mod offsets;
pub mod register;
pub mod sentences;
pub mod tags;
pub mod tokens;
pub mod variants;
mod variants_plurals;
pub mod words;

/// A half-open range of bytes of [`Document::text`], both ends on character boundaries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span {
    /// The first byte.
    pub start: u32,
    /// The byte after the last one.
    pub end: u32,
}

impl Span {
    /// The span from `start` to `end` (exclusive), in bytes.
    pub fn new(start: usize, end: usize) -> Span {
        debug_assert!(start <= end && end <= u32::MAX as usize);
        Span { start: start as u32, end: end as u32 }
    }

    /// The bytes covered.
    pub fn len(self) -> usize {
        (self.end - self.start) as usize
    }

    /// Whether nothing is covered.
    pub fn is_empty(self) -> bool {
        self.start == self.end
    }

    /// The text under the span.
    pub fn of(self, text: &str) -> &str {
        &text[self.start as usize..self.end as usize]
    }

    /// Whether both cover at least one common byte.
    pub fn overlaps(self, other: Span) -> bool {
        self.start < other.end && other.start < self.end
    }
}

/// A part of a document: its title, its abstract, a section of an article.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Section {
    /// What the source calls it: `title`, `abstract`, …
    pub kind: String,
    /// Where it stands.
    pub span: Span,
}

/// A text with an identifier.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Document {
    /// The identifier in its source, such as a PubMed id.
    pub id: String,
    /// The whole text; every offset refers to it.
    pub text: String,
    /// Parts of the text, in order; may be empty.
    pub sections: Vec<Section>,
}

/// A place in a document that speaks of something, before it is linked.
#[derive(Debug, Clone, PartialEq)]
pub struct Mention {
    /// One span, or several in text order for a discontinuous mention. Never empty.
    pub spans: Vec<Span>,
    /// The type a recogniser or a corpus gave it.
    pub semantic_type: Option<String>,
    /// How sure the recogniser is, 0 to 1.
    pub score: f32,
}

impl Mention {
    /// A mention of one span, without type and with score 1.
    pub fn contiguous(span: Span) -> Mention {
        Mention { spans: vec![span], semantic_type: None, score: 1.0 }
    }

    /// From the first to the last byte, gaps included.
    pub fn hull(&self) -> Span {
        let first = self.spans.first().expect("a mention has a span");
        let last = self.spans.last().expect("a mention has a span");
        Span { start: first.start, end: last.end }
    }

    /// The covered text; the parts of a discontinuous mention are joined by one space.
    pub fn surface(&self, text: &str) -> String {
        let parts: Vec<&str> = self.spans.iter().map(|span| span.of(text)).collect();
        parts.join(" ")
    }
}
