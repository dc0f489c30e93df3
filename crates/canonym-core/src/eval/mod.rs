//! Evaluation of predictions against gold annotations.
//!
//! This module gets gold and predictions regardless of their origin: it opens no files, runs no models and prints
//! nothing. [`pairing`] pairs documents, [`matching`] counts matches, [`ranking`] evaluates ranked candidates,
//! [`bootstrap`] computes confidence intervals, and [`report`] combines the results.
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
//! Conventions: 0/0 is 0; F1 is 0 if precision and recall are 0; corpus scores are micro averages, computed from counts
//! summed over documents; nothing is rounded before printing.

pub mod agreement;
pub mod assignment;
pub mod bootstrap;
pub mod chart;
pub mod compare;
pub mod compare_table;
pub mod curves;
pub mod errors;
pub mod expect;
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
pub mod unknown;
pub mod warnings;

pub use crate::numbers::thousands;
use crate::text::Span;
use ids::IdSet;

/// An annotation for evaluation.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Entry {
    /// Sorted, disjoint spans in code points or another unit of the caller.
    pub spans: Vec<Span>,
    /// The concepts; empty means NIL.
    pub ids: IdSet,
    /// The semantic types; may be empty.
    pub types: IdSet,
    /// Confidence of the system; 1 if not given.
    pub score: f32,
    /// The candidates of the system, best first; empty in gold.
    pub candidates: Vec<IdSet>,
    /// The text of the spans; empty if the source has none.
    pub text: String,
    /// Name of the best candidate; empty in gold.
    pub name: String,
}

/// Properties of a gold mention other than position and concepts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Surface {
    /// Its text.
    pub text: String,
    /// Its semantic types.
    pub types: IdSet,
    /// Whether it has several spans.
    pub discontinuous: bool,
    /// Whether it has several concepts or several parts.
    pub composite: bool,
}

impl Entry {
    /// An entry with sorted spans; overlapping spans are merged.
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

    /// The properties of the mention.
    pub fn surface(&self) -> Surface {
        Surface {
            text: self.text.clone(),
            types: self.types.clone(),
            discontinuous: self.spans.len() > 1,
            composite: self.ids.len() > 1,
        }
    }
}

/// Gold and predicted annotations of a document.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct DocumentPair {
    /// Id of the document.
    pub id: String,
    /// Gold annotations.
    pub gold: Vec<Entry>,
    /// Predicted annotations.
    pub predicted: Vec<Entry>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overlapping_spans_are_merged() {
        let entry = Entry::new(vec![Span::new(4, 9), Span::new(0, 5), Span::new(9, 11)], IdSet::default());
        assert_eq!(entry.spans, [Span::new(0, 9), Span::new(9, 11)]);
    }
}
