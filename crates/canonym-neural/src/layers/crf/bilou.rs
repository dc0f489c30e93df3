//! Linear-chain CRF over BILOU labels, and marginal probabilities of whole mentions.
//!
//! A token is outside of mentions (O), the first (B), inside (I), the last (L), or the only token (U) of a mention. Label sequences are
//! valid if every mention that begins also ends. The score of a sequence is the sum of its token scores, normalised over all valid
//! sequences: a conditional random field (Lafferty et al. 2001) whose transitions are allowed or forbidden and have no weights. The forward
//! and backward sums are scaled at each token.

/// Number of labels.
pub const N_LABELS: usize = 5;
/// Outside of mentions.
pub const OUTSIDE: usize = 0;
/// First of several tokens.
pub const BEGIN: usize = 1;
/// Neither first nor last of several tokens.
pub const INSIDE: usize = 2;
/// Last of several tokens.
pub const LAST: usize = 3;
/// The only token.
pub const UNIT: usize = 4;

/// Mentions with a lower probability, of their start or in total, are ignored.
const MIN_PROBABILITY: f32 = 1e-3;

/// Maximum number of tokens of a mention.
pub const MAX_TOKENS: usize = 40;

/// A mention as a range of tokens.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TaggedSpan {
    /// First token.
    pub first: usize,
    /// Last token.
    pub last: usize,
    /// Marginal probability of exactly this mention.
    pub probability: f32,
}

/// Forward and backward sums of one text for one label set.
#[derive(Debug, Clone, Default)]
pub struct BilouCrf {
    /// Exponentiated scores of each token, divided by the scale of the token.
    emitted: Vec<[f32; N_LABELS]>,
    /// Forward sums with no open mention, before each token and at the end.
    free_before: Vec<f32>,
    /// The same with an open mention.
    open_before: Vec<f32>,
    /// Backward sums with no open mention, after each token.
    free_after: Vec<f32>,
    /// The same with an open mention.
    open_after: Vec<f32>,
    /// Log partition function.
    log_sum: f64,
}

impl BilouCrf {
    /// Runs forward-backward on the label scores of each token.
    pub fn new(scores: impl ExactSizeIterator<Item = [f32; N_LABELS]>) -> BilouCrf {
        let n = scores.len();
        let mut crf = BilouCrf {
            emitted: Vec::with_capacity(n),
            free_before: Vec::with_capacity(n + 1),
            open_before: Vec::with_capacity(n + 1),
            free_after: vec![1.0; n],
            open_after: vec![0.0; n],
            log_sum: 0.0,
        };
        let (mut free, mut open) = (1.0f32, 0.0f32);
        crf.free_before.push(free);
        crf.open_before.push(open);
        let mut left = n;
        for scores in scores {
            left -= 1;
            let max = scores.iter().copied().fold(f32::NEG_INFINITY, f32::max);
            // Bounded below, so that sums stay positive.
            let mut emitted = scores.map(|score| (score - max).max(-40.0).exp());
            let next_free = free * (emitted[OUTSIDE] + emitted[UNIT]) + open * emitted[LAST];
            // No mention may be open at the end.
            let next_open = if left == 0 { 0.0 } else { free * emitted[BEGIN] + open * emitted[INSIDE] };
            let scale = next_free + next_open;
            crf.log_sum += f64::from(max) + f64::from(scale.ln());
            (free, open) = (next_free / scale, next_open / scale);
            emitted.iter_mut().for_each(|share| *share /= scale);
            crf.emitted.push(emitted);
            crf.free_before.push(free);
            crf.open_before.push(open);
        }
        for at in (1..n).rev() {
            let emitted = &crf.emitted[at];
            let (free, open) = (crf.free_after[at], crf.open_after[at]);
            crf.free_after[at - 1] = (emitted[OUTSIDE] + emitted[UNIT]) * free + emitted[BEGIN] * open;
            crf.open_after[at - 1] = emitted[LAST] * free + emitted[INSIDE] * open;
        }
        crf
    }

    /// Number of tokens.
    pub fn len(&self) -> usize {
        self.emitted.len()
    }

    /// Whether there are no tokens.
    pub fn is_empty(&self) -> bool {
        self.emitted.is_empty()
    }

    /// Log partition function.
    pub fn log_sum(&self) -> f64 {
        self.log_sum
    }

    /// Marginal probabilities of the labels at a token.
    pub fn labels(&self, at: usize) -> [f32; N_LABELS] {
        let emitted = &self.emitted[at];
        let (free, open) = (self.free_before[at], self.open_before[at]);
        let (free_after, open_after) = (self.free_after[at], self.open_after[at]);
        [
            free * emitted[OUTSIDE] * free_after,
            free * emitted[BEGIN] * open_after,
            open * emitted[INSIDE] * open_after,
            open * emitted[LAST] * free_after,
            free * emitted[UNIT] * free_after,
        ]
    }

    /// Marginal probability of the mention from `first` to `last`.
    pub fn mention(&self, first: usize, last: usize) -> f32 {
        if first > last || last >= self.len() {
            return 0.0;
        }
        let free = self.free_before[first];
        if first == last {
            return free * self.emitted[first][UNIT] * self.free_after[first];
        }
        let inside: f32 = self.emitted[first + 1..last].iter().map(|emitted| emitted[INSIDE]).product();
        free * self.emitted[first][BEGIN] * inside * self.emitted[last][LAST] * self.free_after[last]
    }

    /// Adds every mention with a marginal probability of at least `min_probability`, ordered by first, then last token.
    pub fn mentions(&self, min_probability: f32, found: &mut Vec<TaggedSpan>) {
        let min_probability = min_probability.max(MIN_PROBABILITY);
        for first in 0..self.len() {
            let free = self.free_before[first];
            let alone = free * self.emitted[first][UNIT] * self.free_after[first];
            if alone >= min_probability {
                found.push(TaggedSpan { first, last: first, probability: alone });
            }
            let mut begun = free * self.emitted[first][BEGIN];
            if begun * self.open_after[first] < min_probability {
                continue;
            }
            for last in first + 1..self.len().min(first + MAX_TOKENS) {
                let probability = begun * self.emitted[last][LAST] * self.free_after[last];
                if probability >= min_probability {
                    found.push(TaggedSpan { first, last, probability });
                }
                begun *= self.emitted[last][INSIDE];
                if begun * self.open_after[last] < min_probability {
                    break;
                }
            }
        }
    }
}

/// Gold labels of a text of `n` tokens, from the first and last token of each mention. Of overlapping mentions the longest is kept.
pub fn labels_of(n: usize, mentions: &[(usize, usize)]) -> Vec<u8> {
    let mut labels = vec![OUTSIDE as u8; n];
    let mut longest_first = mentions.to_vec();
    longest_first.sort_by_key(|(first, last)| (std::cmp::Reverse(last - first), *first));
    for (first, last) in longest_first {
        if labels[first..=last].iter().any(|label| *label != OUTSIDE as u8) {
            continue;
        }
        labels[first..=last].fill(INSIDE as u8);
        labels[first] = if first == last { UNIT } else { BEGIN } as u8;
        if first < last {
            labels[last] = LAST as u8;
        }
    }
    labels
}

/// Greedy non-maximum suppression by probability; the result is in text order.
pub fn likeliest(mut mentions: Vec<TaggedSpan>) -> Vec<TaggedSpan> {
    mentions.sort_by(|left, right| right.probability.total_cmp(&left.probability).then(left.first.cmp(&right.first)));
    let mut kept: Vec<TaggedSpan> = Vec::new();
    for mention in mentions {
        if kept.iter().all(|other| mention.last < other.first || mention.first > other.last) {
            kept.push(mention);
        }
    }
    kept.sort_by_key(|mention| mention.first);
    kept
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tensor::random::{self, SplitMix64};

    fn drawn(n: usize) -> Vec<[f32; N_LABELS]> {
        let mut rng = SplitMix64::new(5);
        (0..n).map(|_| std::array::from_fn(|_| random::normal(&mut rng))).collect()
    }

    /// All valid label sequences, each with the exponential of its score.
    fn sequences(scores: &[[f32; N_LABELS]]) -> Vec<(Vec<usize>, f64)> {
        let mut found = vec![(Vec::new(), 1.0f64)];
        for row in scores {
            let mut longer = Vec::new();
            for (labels, share) in &found {
                let open = matches!(labels.last(), Some(&BEGIN | &INSIDE));
                let next: &[usize] = if open { &[INSIDE, LAST] } else { &[OUTSIDE, BEGIN, UNIT] };
                for label in next {
                    let labels: Vec<usize> = labels.iter().copied().chain([*label]).collect();
                    longer.push((labels, share * f64::from(row[*label]).exp()));
                }
            }
            found = longer;
        }
        found.retain(|(labels, _)| !matches!(labels.last(), Some(&BEGIN | &INSIDE)));
        found
    }

    #[test]
    fn sums_are_those_over_every_possible_sequence() {
        for n in [1, 2, 5] {
            let scores = drawn(n);
            let all = sequences(&scores);
            let sum: f64 = all.iter().map(|(_, share)| share).sum();
            let crf = BilouCrf::new(scores.iter().copied());
            assert!((crf.log_sum() - sum.ln()).abs() < 1e-5);
            let share = |wanted: &dyn Fn(&[usize]) -> bool| {
                all.iter().filter(|(labels, _)| wanted(labels)).map(|(_, share)| share).sum::<f64>() / sum
            };
            for at in 0..n {
                for (label, probability) in crf.labels(at).into_iter().enumerate() {
                    assert!((f64::from(probability) - share(&|labels| labels[at] == label)).abs() < 1e-5);
                }
            }
            let mut found = Vec::new();
            crf.mentions(0.0, &mut found);
            for mention in &found {
                let expected = share(&|labels| {
                    let inside = &labels[mention.first..=mention.last];
                    match inside {
                        [UNIT] => true,
                        [BEGIN, inside @ .., LAST] => inside.iter().all(|label| *label == INSIDE),
                        _ => false,
                    }
                });
                assert!((f64::from(mention.probability) - expected).abs() < 1e-5);
                assert!((mention.probability - crf.mention(mention.first, mention.last)).abs() < 1e-6);
            }
            let pairs = (0..n).flat_map(|first| (first..n).map(move |last| (first, last)));
            let likely = pairs.filter(|(first, last)| crf.mention(*first, *last) >= MIN_PROBABILITY);
            assert_eq!(found.len(), likely.count());
        }
    }

    #[test]
    fn of_mentions_that_overlap_labels_tell_of_the_longest_and_the_likeliest_is_kept() {
        assert_eq!(labels_of(5, &[(0, 0), (0, 2), (4, 4)]), [1, 2, 3, 0, 4]);
        let mark = |first, last, probability| TaggedSpan { first, last, probability };
        let kept = likeliest(vec![mark(0, 2, 0.3), mark(0, 0, 0.6), mark(2, 3, 0.5)]);
        assert_eq!(kept, [mark(0, 0, 0.6), mark(2, 3, 0.5)]);
    }
}
