//! Labels of tokens: from tags to mentions, and accuracy a token.
//!
//! Ranges are half-open and count tokens.

use std::ops::Range;

use serde::{Deserialize, Serialize};

pub use crate::text::tags::{Bilou, Repair, decode_bilou};

/// The longest runs of equal labels, in order; `None` is no mention.
///
/// Two neighbouring mentions of one concept come out as one: labels alone cannot tell them apart.
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

/// How many tokens have the right label.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenCounts {
    /// All tokens.
    pub n_tokens: u64,
    /// Those with the right label.
    pub n_right: u64,
    /// Tokens with a label in gold.
    pub n_labelled: u64,
    /// Those of them with the right label.
    pub n_labelled_right: u64,
}

impl TokenCounts {
    /// The share of right tokens, tokens without a label included.
    pub fn accuracy(&self) -> f64 {
        super::matching::ratio(self.n_right as f64, self.n_tokens as f64)
    }

    /// The share of right tokens among those with a label in gold.
    pub fn labelled_accuracy(&self) -> f64 {
        super::matching::ratio(self.n_labelled_right as f64, self.n_labelled as f64)
    }
}

/// Counts the tokens with the right label: words of the judged text only, one label a word, `None` for no mention.
///
/// An error where both sides have different lengths.
pub fn count_tokens(gold: &[Option<&str>], predicted: &[Option<&str>]) -> crate::Result<TokenCounts> {
    if gold.len() != predicted.len() {
        let message = format!("different numbers of labels: {} gold, {} predicted", gold.len(), predicted.len());
        return Err(crate::Error::invalid(message));
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
