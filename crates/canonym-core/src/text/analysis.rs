//! A text with its tokens, sentences and defined short forms, each computed once, on first use, and shared by all readers of the text:
//! tagger, dictionary and linkers.

use std::sync::OnceLock;

use super::Span;
use super::abbreviations::{find_abbreviations, occurrences};
use super::sentences::sentences;
use super::tokens::{Token, tokenize};

/// An analysed text.
///
/// ```
/// use canonym_core::text::analysis::Analysis;
///
/// let analysis = Analysis::new("Liver disease (LD). LD is common.");
/// assert_eq!((analysis.tokens().len(), analysis.sentences().len(), analysis.short_forms().len()), (6, 2, 2));
/// ```
#[derive(Debug)]
pub struct Analysis<'a> {
    /// The text.
    pub text: &'a str,
    tokens: OnceLock<Vec<Token>>,
    sentences: OnceLock<Vec<Span>>,
    short_forms: OnceLock<Vec<(Span, Span)>>,
}

impl<'a> Analysis<'a> {
    /// A text that is not analysed yet.
    pub fn new(text: &'a str) -> Analysis<'a> {
        Analysis { text, tokens: OnceLock::new(), sentences: OnceLock::new(), short_forms: OnceLock::new() }
    }

    /// Its tokens.
    pub fn tokens(&self) -> &[Token] {
        self.tokens.get_or_init(|| tokenize(self.text))
    }

    /// Its sentences.
    pub fn sentences(&self) -> &[Span] {
        self.sentences.get_or_init(|| sentences(self.text))
    }

    /// Every use of a short form that the text defines, with the span of its long form, in text order.
    pub fn short_forms(&self) -> &[(Span, Span)] {
        self.short_forms.get_or_init(|| {
            let abbreviations = find_abbreviations(self.text);
            if abbreviations.is_empty() {
                return Vec::new();
            }
            let mut uses = occurrences(self.text, &abbreviations);
            uses.extend(abbreviations.iter().enumerate().map(|(row, abbreviation)| (abbreviation.short, row)));
            uses.sort_unstable();
            uses.dedup_by_key(|(span, _)| *span);
            uses.into_iter().map(|(span, row)| (span, abbreviations[row].long)).collect()
        })
    }
}
