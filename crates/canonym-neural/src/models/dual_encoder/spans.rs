//! Mentions from three scores per wordpiece: exhaustive span scoring or BIO tags.
//!
//! The logit of a span from wordpiece `s` to wordpiece `e` is `begin(s) + end(e) + Σ inside(s..=e)` (Bhowmik et al. 2021, equation 4).

use crate::models::joint::logistic;
use crate::tensor::elementwise::softmax;

/// Score columns per wordpiece.
const BEGIN: usize = 0;
const END: usize = 1;
const INSIDE: usize = 2;

/// Tag indices, in score order: outside of mentions.
pub const OUTSIDE_TAG: usize = 0;
/// First word of a mention.
pub const BEGIN_TAG: usize = 1;
/// Later word of a mention.
pub const INSIDE_TAG: usize = 2;

/// A span of wordpieces, both ends included.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TokenSpan {
    /// First wordpiece.
    pub first: usize,
    /// Last wordpiece.
    pub last: usize,
    /// Probability that it is a mention.
    pub probability: f32,
}

/// Calls `tell` with first wordpiece, last wordpiece and logit of every span up to `longest` wordpieces, ordered by first, then last.
/// `scores` has three values per wordpiece of one window, without `[CLS]` and `[SEP]`.
pub fn each_span(scores: &[f32], longest: usize, mut tell: impl FnMut(usize, usize, f32)) {
    let n = scores.len() / 3;
    for first in 0..n {
        let mut inside = 0.0;
        for last in first..n.min(first + longest) {
            inside += scores[3 * last + INSIDE];
            tell(first, last, scores[3 * first + BEGIN] + scores[3 * last + END] + inside);
        }
    }
}

/// Number of spans that [`each_span`] visits.
pub fn n_spans(n_wordpieces: usize, longest: usize) -> usize {
    (0..n_wordpieces).map(|first| longest.min(n_wordpieces - first)).sum()
}

/// Backward pass of [`each_span`]: accumulates the gradients of span logits, in its order, into the gradient of the scores.
pub fn each_span_back(gradients: &[f32], longest: usize, gradient: &mut [f32]) {
    let n = gradient.len() / 3;
    let mut gradients = gradients.iter();
    // A span contributes to the inside scores of all its wordpieces, so differences are stored at its boundaries and summed up afterwards.
    let mut change = vec![0.0f32; n + 1];
    for first in 0..n {
        for (last, slope) in (first..n.min(first + longest)).zip(gradients.by_ref()) {
            gradient[3 * first + BEGIN] += slope;
            gradient[3 * last + END] += slope;
            change[first] += slope;
            change[last + 1] -= slope;
        }
    }
    let mut running = 0.0f64;
    for (piece, change) in change[..n].iter().enumerate() {
        running += f64::from(*change);
        gradient[3 * piece + INSIDE] += running as f32;
    }
}

/// Spans with probability of at least `min_probability`, in the order of [`each_span`].
pub fn likely_spans(scores: &[f32], longest: usize, min_probability: f32) -> Vec<TokenSpan> {
    let mut found = Vec::new();
    each_span(scores, longest, |first, last, logit| {
        let probability = logistic(logit);
        if probability >= min_probability {
            found.push(TokenSpan { first, last, probability });
        }
    });
    found
}

/// Mentions from the best tag of each word; the probability is the minimum over its tags. `begins_word` says whether each wordpiece
/// starts a word. An inside tag without a preceding begin starts a mention.
pub fn tagged_spans(scores: &[f32], begins_word: &[bool]) -> Vec<TokenSpan> {
    let mut found: Vec<TokenSpan> = Vec::new();
    let mut is_open = false;
    for (piece, begins) in begins_word.iter().enumerate() {
        if !begins {
            if let Some(open) = found.last_mut().filter(|_| is_open) {
                open.last = piece;
            }
            continue;
        }
        let mut probabilities = [0, 1, 2].map(|tag| scores[3 * piece + tag]);
        softmax(&mut probabilities);
        let tag = (0..3)
            .rev()
            .max_by(|left, right| probabilities[*left].total_cmp(&probabilities[*right]))
            .unwrap_or(OUTSIDE_TAG);
        match (tag, found.last_mut().filter(|_| is_open)) {
            (INSIDE_TAG, Some(open)) => {
                open.last = piece;
                open.probability = open.probability.min(probabilities[INSIDE_TAG]);
            }
            (OUTSIDE_TAG, _) => is_open = false,
            _ => {
                is_open = true;
                found.push(TokenSpan { first: piece, last: piece, probability: probabilities[tag] });
            }
        }
    }
    found
}

/// Greedy non-maximum suppression by probability; the first wins a tie. Returns rows of `found`, in order.
pub fn flat(found: &[TokenSpan]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..found.len()).collect();
    order.sort_by(|left, right| found[*right].probability.total_cmp(&found[*left].probability).then(left.cmp(right)));
    let n_wordpieces = found.iter().map(|one| one.last + 1).max().unwrap_or(0);
    let mut is_taken = vec![false; n_wordpieces];
    let mut kept = Vec::new();
    for row in order {
        let wordpieces = found[row].first..found[row].last + 1;
        if !is_taken[wordpieces.clone()].contains(&true) {
            is_taken[wordpieces].fill(true);
            kept.push(row);
        }
    }
    kept.sort_unstable();
    kept
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tensor::random::{self, SplitMix64};

    /// Begin, end and inside scores of three wordpieces.
    const SCORES: [f32; 9] = [0.1, 0.0, 1.0, 0.2, 0.5, -1.0, 0.3, -0.5, 2.0];

    #[test]
    fn the_logit_of_a_span_is_its_begin_its_end_and_its_insides() {
        let mut logits = Vec::new();
        each_span(&SCORES, 3, |first, last, logit| logits.push((first, last, (logit * 1e4).round() / 1e4)));
        assert_eq!(logits.len(), n_spans(3, 3));
        for expected in [(0, 0, 1.1), (0, 1, 0.6), (1, 2, 0.7), (0, 2, 1.6)] {
            assert!(logits.contains(&expected), "{expected:?} {logits:?}");
        }
        assert!((logistic(1.6) - 0.8320).abs() < 1e-4);
        assert_eq!(n_spans(5, 2), 9);
        assert_eq!(likely_spans(&SCORES, 3, 0.83).len(), 2);
        assert_eq!(likely_spans(&SCORES, 3, 0.0).len(), 6);
    }

    #[test]
    fn the_gradient_of_scores_is_that_of_differences() {
        let mut rng = SplitMix64::new(7);
        let scores: Vec<f32> = (0..21).map(|_| random::normal(&mut rng)).collect();
        let gradients: Vec<f32> = (0..n_spans(7, 3)).map(|_| random::normal(&mut rng)).collect();
        let value = |scores: &[f32]| {
            let (mut sum, mut row) = (0.0f64, 0);
            each_span(scores, 3, |_, _, logit| {
                sum += f64::from(logit) * f64::from(gradients[row]);
                row += 1;
            });
            sum
        };
        let mut gradient = vec![0.0; 21];
        each_span_back(&gradients, 3, &mut gradient);
        for (at, own) in gradient.iter().enumerate() {
            let moved = |by: f32| {
                let mut moved = scores.clone();
                moved[at] += by;
                value(&moved)
            };
            let slope = (moved(0.1) - moved(-0.1)) / 0.2;
            assert!((slope - f64::from(*own)).abs() < 1e-4, "{at}: {slope} {own}");
        }
    }

    #[test]
    fn tags_make_mentions_and_pieces_inside_words_follow() {
        // O, B, continuation wordpiece of B, I, O, I, B.
        let best = [0, 1, 0, 2, 0, 2, 1];
        let scores: Vec<f32> =
            best.iter().flat_map(|best| [0, 1, 2].map(|tag| if tag == *best { 2.0 } else { 0.0 })).collect();
        let words = [true, true, false, true, true, true, true];
        let found: Vec<(usize, usize)> =
            tagged_spans(&scores, &words).iter().map(|one| (one.first, one.last)).collect();
        assert_eq!(found, [(1, 3), (5, 5), (6, 6)]);
    }

    #[test]
    fn of_overlapping_spans_the_likeliest_stay() {
        let spans = [(0, 2, 0.6), (2, 3, 0.9), (4, 4, 0.5), (4, 5, 0.5)];
        let found = spans.map(|(first, last, probability)| TokenSpan { first, last, probability });
        assert_eq!(flat(&found), [1, 2]);
        assert!(flat(&[]).is_empty());
    }
}
