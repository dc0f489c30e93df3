//! A document with its tokens, sentences and abbreviations, each computed once, on first use, and shared by all readers of the text:
//! tagger, dictionary, linkers and context rules.

use std::sync::OnceLock;

use super::abbreviations::{Abbreviation, find_abbreviations, occurrences};
use super::sentences::sentences;
use super::tokens::{Token, tokenize};
use super::{Document, Section, Span};

/// An analysed document.
///
/// ```
/// use canonym_core::text::analysis::Analysis;
///
/// let analysis = Analysis::of_text("Liver disease (LD). LD is common.");
/// assert_eq!((analysis.tokens().len(), analysis.sentences().len(), analysis.short_forms().len()), (6, 2, 2));
/// ```
#[derive(Debug)]
pub struct Analysis<'a> {
    /// Id of the document.
    pub id: &'a str,
    /// The text.
    pub text: &'a str,
    /// The sections of the text.
    pub sections: &'a [Section],
    tokens: OnceLock<Vec<Token>>,
    sentences: OnceLock<Vec<Span>>,
    abbreviations: OnceLock<Vec<Abbreviation>>,
    short_forms: OnceLock<Vec<(Span, Span)>>,
}

impl<'a> Analysis<'a> {
    /// A document that is not analysed yet.
    pub fn new(document: &'a Document) -> Analysis<'a> {
        Analysis { id: &document.id, sections: &document.sections, ..Analysis::of_text(&document.text) }
    }

    /// A text without id and sections that is not analysed yet.
    pub fn of_text(text: &'a str) -> Analysis<'a> {
        Analysis {
            id: "",
            text,
            sections: &[],
            tokens: OnceLock::new(),
            sentences: OnceLock::new(),
            abbreviations: OnceLock::new(),
            short_forms: OnceLock::new(),
        }
    }

    /// Each of a batch of documents.
    pub fn all(documents: impl IntoIterator<Item = &'a Document>) -> Vec<Analysis<'a>> {
        documents.into_iter().map(Analysis::new).collect()
    }

    /// Its tokens.
    pub fn tokens(&self) -> &[Token] {
        self.tokens.get_or_init(|| tokenize(self.text))
    }

    /// Its sentences.
    pub fn sentences(&self) -> &[Span] {
        self.sentences.get_or_init(|| sentences(self.text))
    }

    /// The abbreviations that it defines.
    pub fn abbreviations(&self) -> &[Abbreviation] {
        self.abbreviations.get_or_init(|| find_abbreviations(self.text))
    }

    /// Every use of a short form that the text defines, with the span of its long form, in text order.
    pub fn short_forms(&self) -> &[(Span, Span)] {
        self.short_forms.get_or_init(|| {
            let abbreviations = self.abbreviations();
            if abbreviations.is_empty() {
                return Vec::new();
            }
            let mut uses = occurrences(self.text, abbreviations);
            uses.extend(abbreviations.iter().enumerate().map(|(row, abbreviation)| (abbreviation.short, row)));
            uses.sort_unstable();
            uses.dedup_by_key(|(span, _)| *span);
            uses.into_iter().map(|(span, row)| (span, abbreviations[row].long)).collect()
        })
    }
}
