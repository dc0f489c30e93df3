//! Judging predictions against gold annotations.
//!
//! This module sees gold and predictions and never where they came from: it opens no file, runs no model and
//! prints nothing. [`pairing`] brings two lists of documents together, [`matching`] counts what agrees, [`ranking`]
//! judges ranked candidates, [`bootstrap`] says how sure the numbers are, and [`report`] puts them in one place.
//!
//! ```
//! use canonym_core::corpus::{AnnotatedDocument, Annotation};
//! use canonym_core::eval::bootstrap::SplitMix64;
//! use canonym_core::eval::matching::Measure;
//! use canonym_core::eval::report::{EvalConfig, evaluate};
//! use canonym_core::text::{Document, Span};
//!
//! let document = Document { id: "1".into(), text: "Fever.".into(), sections: Vec::new() };
//! let fever = Annotation { spans: vec![Span::new(0, 5)], ids: vec!["MESH:D005334".into()], ..Default::default() };
//! let gold = [AnnotatedDocument { document, annotations: vec![fever], ..Default::default() }];
//! let report = evaluate(&gold, &gold, &EvalConfig::default(), &mut SplitMix64::new(13))?;
//! assert_eq!(report.metrics[&Measure::Strict].f1, 1.0);
//! # Ok::<(), canonym_core::Error>(())
//! ```
//!
//! Conventions: a ratio of nothing is 0; F1 is 0 where precision and recall are; corpus scores are micro scores, sums
//! of counts over documents; nothing is rounded before it is printed.

pub mod agreement;
pub mod assignment;
pub mod bootstrap;
pub mod compare;
pub mod curves;
pub mod errors;
pub mod folds;
pub mod html;
pub mod ids;
pub mod learned;
pub mod matching;
pub mod overlap;
pub mod pairing;
pub mod protocol;
pub mod queries;
pub mod ranking;
pub mod report;
mod sections;
pub mod significance;
pub mod slices;
pub mod strata;
pub mod table;
pub mod tagging;
pub mod unknown;

use crate::text::Span;
use ids::IdSet;

/// One annotation as the measures see it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Entry {
    /// Where it stands, in code points or in another unit of the caller; in order and without common places.
    pub spans: Vec<Span>,
    /// The concepts meant; empty for NIL.
    pub ids: IdSet,
    /// The semantic types; empty where none is given.
    pub types: IdSet,
    /// How sure the system is; 1 where it does not say.
    pub score: f32,
    /// What the system considered, best first; empty in gold data.
    pub candidates: Vec<IdSet>,
    /// The words under the spans, as the source gives them; empty where it gives none.
    pub text: String,
    /// The name of the best candidate; empty in gold data.
    pub name: String,
}

/// What is known of a gold mention beside its place and its concepts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Surface {
    /// Its words.
    pub text: String,
    /// Its semantic types.
    pub types: IdSet,
    /// Whether it has several spans.
    pub discontinuous: bool,
    /// Whether it means several concepts, or has several parts.
    pub composite: bool,
}

impl Entry {
    /// An entry on `spans` with `ids`; spans are sorted, and those with a common place become one.
    pub fn new(mut spans: Vec<Span>, ids: IdSet) -> Entry {
        spans.sort_unstable();
        let mut merged: Vec<Span> = Vec::with_capacity(spans.len());
        for span in spans {
            match merged.last_mut() {
                Some(last) if last.overlaps(span) || *last == span => last.end = last.end.max(span.end),
                _ => merged.push(span),
            }
        }
        Entry { spans: merged, ids, score: 1.0, ..Entry::default() }
    }

    /// What it shows of itself.
    pub fn surface(&self) -> Surface {
        Surface {
            text: self.text.clone(),
            types: self.types.clone(),
            discontinuous: self.spans.len() > 1,
            composite: self.ids.len() > 1,
        }
    }
}

/// The gold and the predicted annotations of one document.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct DocumentPair {
    /// The identifier of the document.
    pub id: String,
    /// What is right.
    pub gold: Vec<Entry>,
    /// What the system says.
    pub predicted: Vec<Entry>,
}

impl DocumentPair {
    /// The same annotations in units of `tokens`, which are in order, without overlap, and in the unit of the entries.
    ///
    /// A span becomes the range of the tokens that it touches, so that `partial-maxmax` can count word pieces.
    pub fn in_tokens(&self, tokens: &[Span]) -> DocumentPair {
        let convert = |entry: &Entry| {
            let spans = entry.spans.iter().map(|span| {
                let first = tokens.partition_point(|token| token.end <= span.start);
                let end = tokens.partition_point(|token| token.start < span.end);
                Span::new(first, end.max(first))
            });
            let converted = Entry::new(spans.collect(), IdSet::default());
            Entry { spans: converted.spans, ..entry.clone() }
        };
        DocumentPair {
            id: self.id.clone(),
            gold: self.gold.iter().map(convert).collect(),
            predicted: self.predicted.iter().map(convert).collect(),
        }
    }
}

/// A number with a comma between thousands.
pub fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_become_the_tokens_they_touch() {
        let tokens = [Span::new(0, 4), Span::new(5, 9), Span::new(10, 12)];
        let entry = Entry::new(vec![Span::new(2, 6), Span::new(11, 12)], IdSet::parse_one("D1"));
        let pair = DocumentPair { id: "d".into(), gold: vec![entry], predicted: Vec::new() };
        let gold = &pair.in_tokens(&tokens).gold[0];
        assert_eq!(gold.spans, [Span::new(0, 2), Span::new(2, 3)]);
        assert_eq!(gold.ids, IdSet::parse_one("D1"));
    }

    #[test]
    fn spans_with_a_common_place_become_one() {
        let entry = Entry::new(vec![Span::new(4, 9), Span::new(0, 5), Span::new(9, 11)], IdSet::default());
        assert_eq!(entry.spans, [Span::new(0, 9), Span::new(9, 11)]);
    }
}
