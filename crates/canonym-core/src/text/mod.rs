//! Documents, spans and mentions, and text processing before linking.
//!
//! Offsets are bytes of [`Document::text`], half-open, on character boundaries. Code points occur only in readers and
//! writers; [`offsets`] converts.

pub mod abbreviations;
pub mod analysis;
pub mod biosyn;
pub mod composite;
pub mod context;
pub mod normalise;
pub mod notes;
pub mod offsets;
pub mod proper_names;
pub mod register;
pub mod sentences;
pub mod tags;
pub mod taught;
pub mod tokens;
pub mod variants;
mod variants_plurals;
pub mod words;

/// A half-open range of bytes of [`Document::text`], both ends on character boundaries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span {
    /// The first byte.
    pub start: u32,
    /// The end, exclusive.
    pub end: u32,
}

impl Span {
    /// The span from `start` to `end` (exclusive), in bytes.
    pub fn new(start: usize, end: usize) -> Span {
        debug_assert!(start <= end && end <= u32::MAX as usize);
        Span { start: start as u32, end: end as u32 }
    }

    /// Length in bytes.
    pub fn len(self) -> usize {
        (self.end - self.start) as usize
    }

    /// Whether the span is empty.
    pub fn is_empty(self) -> bool {
        self.start == self.end
    }

    /// The text under the span.
    pub fn of(self, text: &str) -> &str {
        &text[self.start as usize..self.end as usize]
    }

    /// Whether both have at least one byte in common.
    pub fn overlaps(self, other: Span) -> bool {
        self.start < other.end && other.start < self.end
    }
}

/// A section of a document: title, abstract, or a section of an article.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Section {
    /// Its name in the source: `title`, `abstract`, …
    pub kind: String,
    /// Its span.
    pub span: Span,
}

/// A text with an id.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Document {
    /// Id in the source, such as a PubMed id.
    pub id: String,
    /// The full text, to which all offsets refer.
    pub text: String,
    /// The sections in order; may be empty.
    pub sections: Vec<Section>,
}

/// A mention, before it is linked.
#[derive(Debug, Clone, PartialEq)]
pub struct Mention {
    /// One span, or several in text order for a discontinuous mention; never empty.
    pub spans: Vec<Span>,
    /// The semantic type given by a recogniser or a corpus.
    pub semantic_type: Option<String>,
    /// Probability that the span is a mention, 0 to 1; 1 for given mentions.
    pub p_mention: f32,
}

impl Mention {
    /// A mention with one span, no type and probability 1.
    pub fn contiguous(span: Span) -> Mention {
        Mention { spans: vec![span], semantic_type: None, p_mention: 1.0 }
    }

    /// The range from the first to the last byte, including gaps.
    pub fn hull(&self) -> Span {
        let first = self.spans.first().expect("a mention has a span");
        let last = self.spans.last().expect("a mention has a span");
        Span { start: first.start, end: last.end }
    }

    /// The text of the mention; pieces of a discontinuous mention are joined by a space.
    pub fn surface(&self, text: &str) -> String {
        let parts: Vec<&str> = self.spans.iter().map(|span| span.of(text)).collect();
        parts.join(" ")
    }
}
