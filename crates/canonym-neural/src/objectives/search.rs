//! Loss of mention detection: binary cross entropy over spans, or cross entropy over tags.

use std::ops::Range;

use crate::autograd::softmax;
use crate::models::dual_encoder::SpanSearch;
use crate::models::dual_encoder::spans::{BEGIN_TAG, INSIDE_TAG, OUTSIDE_TAG, each_span, each_span_back, n_spans};
use crate::models::joint::logistic;
use crate::objectives::linking::BatchWindow;
use crate::tensor::matrix::Matrix;

/// Mean loss over all spans or words, times `weight`; accumulates the gradient. `scores` has three columns; each window has its own rows.
pub(super) fn search_loss(
    search: SpanSearch,
    windows: &[BatchWindow],
    rows: &[Range<usize>],
    scores: &Matrix,
    weight: f32,
    gradient: &mut Matrix,
) -> f64 {
    let n = windows.iter().map(|window| match search {
        SpanSearch::Exhaustive { longest } => n_spans(window.n_wordpieces, longest),
        SpanSearch::Tags => window.begins_word.iter().filter(|begins| **begins).count(),
    });
    let mean = weight / n.sum::<usize>().max(1) as f32;
    let mut sum = 0.0;
    for (window, rows) in windows.iter().zip(rows) {
        let scores = &scores.values[3 * rows.start..3 * rows.end];
        let mut gradients = vec![0.0; scores.len()];
        sum += match search {
            SpanSearch::Exhaustive { longest } => of_spans(window, longest, scores, &mut gradients),
            SpanSearch::Tags => of_tags(window, scores, &mut gradients),
        };
        for (row, gradients) in rows.clone().zip(gradients.chunks_exact(3)) {
            gradient.row_mut(row).iter_mut().zip(gradients).for_each(|(to, slope)| *to += mean * slope);
        }
    }
    sum * f64::from(mean)
}

/// Sum of the binary cross entropies of all spans; writes the gradient.
fn of_spans(window: &BatchWindow, longest: usize, scores: &[f32], gradients: &mut [f32]) -> f64 {
    let mut sum = 0.0;
    let mut of_logits = Vec::with_capacity(n_spans(window.n_wordpieces, longest));
    each_span(scores, longest, |first, last, logit| {
        let is_mention = window.mentions.contains(&(first, last));
        // Numerically stable ln(1 + exp(x)).
        let above = logit.max(0.0) + (-logit.abs()).exp().ln_1p();
        sum += f64::from(if is_mention { above - logit } else { above });
        of_logits.push(logistic(logit) - f32::from(u8::from(is_mention)));
    });
    each_span_back(&of_logits, longest, gradients);
    sum
}

/// Sum of the cross entropies of the word tags; writes the gradient.
fn of_tags(window: &BatchWindow, scores: &[f32], gradients: &mut [f32]) -> f64 {
    let mut tags = vec![OUTSIDE_TAG; window.n_wordpieces];
    for (first, last) in &window.mentions {
        // A mention may start inside a word; the tag belongs to the word.
        let begin = (0..=*first).rev().find(|piece| window.begins_word[*piece]).unwrap_or(*first);
        tags[begin..=*last].fill(INSIDE_TAG);
        tags[begin] = BEGIN_TAG;
    }
    let mut sum = 0.0;
    for (piece, tag) in tags.into_iter().enumerate().filter(|(piece, _)| window.begins_word[*piece]) {
        let to = &mut gradients[3 * piece..][..3];
        to.copy_from_slice(&scores[3 * piece..][..3]);
        softmax(to);
        sum -= f64::from(to[tag].max(f32::MIN_POSITIVE)).ln();
        to[tag] -= 1.0;
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tensor::random::{self, SplitMix64};

    #[test]
    fn the_gradient_of_the_search_is_that_of_differences() {
        let window = |mentions: &[(usize, usize)], begins: &[bool]| BatchWindow {
            n_wordpieces: begins.len(),
            mentions: mentions.to_vec(),
            begins_word: begins.to_vec(),
        };
        let windows =
            [window(&[(0, 1), (3, 3)], &[true, true, false, true, true]), window(&[(1, 2)], &[true, true, true])];
        let rows = [1..6, 8..11];
        let mut rng = SplitMix64::new(5);
        let values = Matrix::new(12, 3, (0..36).map(|_| random::normal(&mut rng)).collect());
        for search in [SpanSearch::Exhaustive { longest: 3 }, SpanSearch::Tags] {
            let loss =
                |values: &Matrix, gradient: &mut Matrix| search_loss(search, &windows, &rows, values, 0.7, gradient);
            let mut gradient = Matrix::zeros(12, 3);
            assert!(loss(&values, &mut gradient) > 0.0);
            for at in 0..36 {
                let moved = |by: f32| {
                    let mut moved = values.clone();
                    moved.values[at] += by;
                    loss(&moved, &mut Matrix::zeros(12, 3))
                };
                let slope = (moved(1e-2) - moved(-1e-2)) / 2e-2;
                let own = f64::from(gradient.values[at]);
                assert!((slope - own).abs() < 1e-4, "{search:?} {at}: {slope} {own}");
            }
        }
    }
}
