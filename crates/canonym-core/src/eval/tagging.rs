//! Token labels: decoding into mentions, and token accuracy.
//!
//! Ranges are half-open token ranges.

use std::ops::Range;

use serde::{Deserialize, Serialize};

/// Maximal runs of equal labels, in order; `None` means no mention.
///
/// Adjacent mentions of the same concept are merged, because labels cannot separate them.
pub fn decode_runs<'a>(labels: &[Option<&'a str>]) -> Vec<(Range<usize>, &'a str)> {
    let mut start = 0;
    let mut mentions = Vec::new();
    for run in labels.chunk_by(|a, b| a == b) {
        if let Some(label) = run[0] {
            mentions.push((start..start + run.len(), label));
        }
        start += run.len();
    }
    mentions
}

/// Counts of correctly labelled tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenCounts {
    /// Number of tokens.
    pub n_tokens: u64,
    /// Number of tokens with the correct label.
    pub n_right: u64,
    /// Number of tokens with a gold label.
    pub n_labelled: u64,
    /// Number of correct tokens among those with a gold label.
    pub n_labelled_right: u64,
}

impl TokenCounts {
    /// Accuracy over all tokens, including those without a label.
    pub fn accuracy(&self) -> f64 {
        super::matching::ratio(self.n_right as f64, self.n_tokens as f64)
    }

    /// Accuracy over tokens with a gold label.
    pub fn labelled_accuracy(&self) -> f64 {
        super::matching::ratio(self.n_labelled_right as f64, self.n_labelled as f64)
    }
}

/// Counts the tokens with the correct label; one label per word of the evaluated text, `None` for no mention.
///
/// It is an error if the lengths differ.
pub fn count_tokens(gold: &[Option<&str>], predicted: &[Option<&str>]) -> crate::Result<TokenCounts> {
    if gold.len() != predicted.len() {
        let message = format!("different numbers of labels: {} gold, {} predicted", gold.len(), predicted.len());
        return Err(crate::Error::mismatch(message));
    }
    let mut counts = TokenCounts::default();
    for (gold, predicted) in gold.iter().zip(predicted) {
        let (labelled, right) = (u64::from(gold.is_some()), u64::from(gold == predicted));
        counts.n_tokens += 1;
        counts.n_right += right;
        counts.n_labelled += labelled;
        counts.n_labelled_right += labelled * right;
    }
    Ok(counts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::eval::ids::IdSet;
    use crate::eval::matching::{Counts, MatchConfig, Measure, count};
    use crate::eval::{DocumentPair, Entry};
    use crate::text::Span;

    fn entries(mentions: &[(Range<usize>, &str)]) -> Vec<Entry> {
        let entry = |(range, label): &(Range<usize>, &str)| {
            Entry::new(vec![Span::new(range.start, range.end)], IdSet::parse_one(label))
        };
        mentions.iter().map(entry).collect()
    }

    fn strict(gold: &[(Range<usize>, &str)], predicted: &[(Range<usize>, &str)]) -> Counts {
        let pair = DocumentPair { id: "d".into(), gold: entries(gold), predicted: entries(predicted) };
        count(Measure::Strict, &pair, MatchConfig::default())
    }

    #[test]
    fn v4_one_wrong_neighbour_ruins_the_mention() -> crate::Result<()> {
        // severe renal failure .
        let gold = [None, Some("C1"), Some("C1"), None];
        let predicted = [Some("C1"), Some("C1"), Some("C1"), None];
        let tokens = count_tokens(&gold, &predicted)?;
        assert_eq!(tokens.accuracy(), 0.75);
        assert_eq!(tokens.labelled_accuracy(), 1.0);
        let counts = strict(&decode_runs(&gold), &decode_runs(&predicted));
        assert_eq!(counts, Counts { n_gold: 1, n_pred: 1, tp_gold: 0.0, tp_pred: 0.0 });
        assert_eq!(counts.score().f1, 0.0);
        Ok(())
    }

    #[test]
    fn v5_neighbours_of_one_concept_merge() {
        let gold = [(1..2, "C1"), (2..3, "C1")];
        let counts = strict(&gold, &decode_runs(&[None, Some("C1"), Some("C1")]));
        assert_eq!(counts, Counts { n_gold: 2, n_pred: 1, tp_gold: 0.0, tp_pred: 0.0 });
    }

    #[test]
    fn labels_of_different_lengths_are_an_error() {
        assert!(count_tokens(&[None], &[]).is_err());
    }
}
