//! Labels of tokens: from tags to mentions, and accuracy a token.
//!
//! Ranges are half-open and count tokens.

use std::ops::Range;

use serde::{Deserialize, Serialize};

/// The place of a token in a mention.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bilou {
    /// The first of several.
    Begin,
    /// Neither the first nor the last.
    Inside,
    /// The last of several.
    Last,
    /// In no mention.
    Outside,
    /// The only one.
    Unit,
}

/// What becomes of tags that do not make a mention.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Repair {
    /// Only `U` and `B I* L` are mentions.
    #[default]
    Strict,
    /// A mention without its end closes where it breaks off, and one without its begin opens where it is seen.
    Lenient,
}

/// The mentions that `tags` say, in order.
pub fn decode_bilou(tags: &[Bilou], repair: Repair) -> Vec<Range<usize>> {
    let lenient = repair == Repair::Lenient;
    let mut mentions = Vec::new();
    let mut open: Option<usize> = None;
    for (row, tag) in tags.iter().enumerate() {
        if matches!(tag, Bilou::Begin | Bilou::Outside | Bilou::Unit)
            && let Some(start) = open.take()
            && lenient
        {
            mentions.push(start..row);
        }
        match tag {
            Bilou::Begin => open = Some(row),
            Bilou::Inside if lenient => open = open.or(Some(row)),
            Bilou::Inside | Bilou::Outside => {}
            Bilou::Last => mentions.extend(open.take().or(lenient.then_some(row)).map(|start| start..row + 1)),
            Bilou::Unit => mentions.push(row..row + 1),
        }
    }
    mentions.extend(open.filter(|_| lenient).map(|start| start..tags.len()));
    mentions
}

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
        let message = format!("{} gold labels cannot be compared with {} predicted ones", gold.len(), predicted.len());
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
    use proptest::prelude::*;

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

    fn tags(text: &str) -> Vec<Bilou> {
        let tag = |letter: char| match letter {
            'B' => Bilou::Begin,
            'I' => Bilou::Inside,
            'L' => Bilou::Last,
            'U' => Bilou::Unit,
            _ => Bilou::Outside,
        };
        text.split(' ').flat_map(|word| word.chars().map(tag)).collect()
    }

    #[test]
    fn v6_bilou() {
        let tags = tags("B L U O B I O I L");
        assert_eq!(decode_bilou(&tags, Repair::Strict), [0..2, 2..3]);
        assert_eq!(decode_bilou(&tags, Repair::Lenient), [0..2, 2..3, 4..6, 7..9]);
    }

    #[test]
    fn broken_tags() {
        assert_eq!(decode_bilou(&tags("B B L"), Repair::Strict), [Range { start: 1, end: 3 }]);
        assert_eq!(decode_bilou(&tags("B B L"), Repair::Lenient), [0..1, 1..3]);
        assert_eq!(decode_bilou(&tags("I I"), Repair::Lenient), [Range { start: 0, end: 2 }]);
        assert_eq!(decode_bilou(&tags("L L"), Repair::Lenient), [0..1, 1..2]);
        assert_eq!(decode_bilou(&tags("B I U"), Repair::Strict), [Range { start: 2, end: 3 }]);
    }

    #[test]
    fn labels_of_different_lengths_are_an_error() {
        assert!(count_tokens(&[None], &[]).is_err());
    }

    proptest! {
        #[test]
        fn lenient_mentions_cover_every_tagged_token(text in "[BILOU]{0,20}") {
            let tags = tags(&text);
            let covered: Vec<usize> = decode_bilou(&tags, Repair::Lenient).into_iter().flatten().collect();
            let tagged: Vec<usize> = (0..tags.len()).filter(|&row| tags[row] != Bilou::Outside).collect();
            prop_assert_eq!(covered, tagged);
        }

        #[test]
        fn strict_mentions_are_lenient_ones(text in "[BILOU]{0,20}") {
            let tags = tags(&text);
            let lenient = decode_bilou(&tags, Repair::Lenient);
            for mention in decode_bilou(&tags, Repair::Strict) {
                prop_assert!(lenient.contains(&mention));
            }
        }
    }
}
