//! Losses over batches of embeddings, each with its gradient.

use std::collections::BTreeMap;

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::tensor::matrix::{Matrix, Threads, WriteMode, dot, multiply};

/// A loss, and its gradient with respect to the input.
#[derive(Debug, Clone, PartialEq)]
pub struct Loss {
    /// Mean over the batch.
    pub value: f64,
    /// Same shape as the input.
    pub gradient: Matrix,
}

/// Multi-similarity loss and its miner (Wang et al. 2019), as used for ResCNN (Lai et al. 2021, published code).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct MultiSimilarityConfig {
    /// Scale of positive pairs.
    pub alpha: f32,
    /// Scale of negative pairs.
    pub beta: f32,
    /// Similarity threshold λ.
    pub base: f32,
    /// Margin of the miner: how close a pair has to be to the hardest pair of the other kind.
    pub epsilon: f32,
}

impl Default for MultiSimilarityConfig {
    fn default() -> MultiSimilarityConfig {
        MultiSimilarityConfig { alpha: 2.0, beta: 50.0, base: 0.5, epsilon: 0.2 }
    }
}

/// For each row the other rows that share a label with it, in order.
pub fn positives(labels: &[Vec<u32>]) -> Vec<Vec<u32>> {
    let mut rows_of: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for (row, labels) in labels.iter().enumerate() {
        labels.iter().for_each(|label| rows_of.entry(*label).or_default().push(row as u32));
    }
    let same = |(row, labels): (usize, &Vec<u32>)| {
        let mut same: Vec<u32> = labels.iter().flat_map(|label| rows_of[label].iter().copied()).collect();
        same.sort_unstable();
        same.dedup();
        same.retain(|other| *other as usize != row);
        same
    };
    labels.iter().enumerate().map(same).collect()
}

/// Multi-similarity loss of embeddings, `[rows, dim]`, which need not be normalised. Rows with intersecting labels are positives. The mean
/// is over all rows, including those without a mined pair.
pub fn multi_similarity(rows: &Matrix, labels: &[Vec<u32>], config: &MultiSimilarityConfig) -> Loss {
    let mut normal = rows.clone();
    normal.normalise_rows();
    let n = rows.n_rows;
    let mut similarity = Matrix::zeros(n, n);
    multiply(similarity.view_mut(), normal.view(), normal.view().transposed(), WriteMode::Replace, Threads::All);
    let positives = positives(labels);
    // Similarities are overwritten with their gradients.
    let losses: Vec<f64> = (similarity.values.par_chunks_mut(n.max(1)), &positives)
        .into_par_iter()
        .enumerate()
        .map(|(row, (similarity, positives))| anchor(row, similarity, positives, config))
        .collect();
    let scale = 1.0 / n.max(1) as f32;
    let mut gradient = Matrix::zeros(n, rows.n_cols);
    multiply(gradient.view_mut(), similarity.view(), normal.view(), WriteMode::Replace, Threads::All);
    multiply(gradient.view_mut(), similarity.view().transposed(), normal.view(), WriteMode::Add, Threads::All);
    through_normalisation(&mut gradient, rows, &normal, scale);
    Loss { value: losses.iter().sum::<f64>() / n.max(1) as f64, gradient }
}

/// Loss of one anchor; overwrites its similarities with their gradients.
fn anchor(row: usize, similarity: &mut [f32], positives: &[u32], config: &MultiSimilarityConfig) -> f64 {
    let MultiSimilarityConfig { alpha, beta, base, epsilon } = *config;
    let mut is_negative = vec![true; similarity.len()];
    is_negative[row] = false;
    positives.iter().for_each(|other| is_negative[*other as usize] = false);
    let negatives = similarity.iter().zip(&is_negative).filter(|(_, negative)| **negative).map(|(s, _)| *s);
    let hardest_negative = negatives.fold(f32::NEG_INFINITY, f32::max);
    let hardest_positive = positives.iter().map(|other| similarity[*other as usize]).fold(f32::INFINITY, f32::min);
    if hardest_negative == f32::NEG_INFINITY || hardest_positive == f32::INFINITY {
        similarity.fill(0.0);
        return 0.0;
    }
    let mut kept = vec![0.0f32; similarity.len()];
    let (mut sum_positive, mut sum_negative) = (1.0f64, 1.0f64);
    for other in
        positives.iter().map(|other| *other as usize).filter(|other| similarity[*other] - epsilon < hardest_negative)
    {
        kept[other] = (-alpha * (similarity[other] - base)).exp();
        sum_positive += f64::from(kept[other]);
    }
    for (other, negative) in is_negative.iter().enumerate() {
        if *negative && similarity[other] + epsilon > hardest_positive {
            // Cosines are at most 1, so the exponent is at most beta / 2.
            kept[other] = (beta * (similarity[other] - base)).exp();
            sum_negative += f64::from(kept[other]);
        }
    }
    for (other, to) in similarity.iter_mut().enumerate() {
        let (sign, sum) = if is_negative[other] { (1.0, sum_negative) } else { (-1.0, sum_positive) };
        *to = sign * (f64::from(kept[other]) / sum) as f32;
    }
    sum_positive.ln() / f64::from(alpha) + sum_negative.ln() / f64::from(beta)
}

/// Backward pass of L2 normalisation: converts the gradient of normalised rows, times `share`, to that of the rows.
pub fn through_normalisation(gradient: &mut Matrix, rows: &Matrix, normal: &Matrix, scale: f32) {
    for row in 0..rows.n_rows {
        let length = dot(rows.row(row), rows.row(row)).sqrt();
        let normal = normal.row(row);
        let to = gradient.row_mut(row);
        let along = dot(to, normal);
        let factor = if length > 0.0 { scale / length } else { 0.0 };
        to.iter_mut().zip(normal).for_each(|(to, normal)| *to = (*to - normal * along) * factor);
    }
}

/// Marginal likelihood of BioSyn (Sung et al. 2020): `−ln Σ P` over the correct candidates, `[queries, candidates]`. Queries without a
/// correct candidate are skipped; the mean is over the others.
pub fn marginal_likelihood(scores: &Matrix, right: &[Vec<bool>]) -> Loss {
    let mut gradient = Matrix::zeros(scores.n_rows, scores.n_cols);
    let mut value = 0.0;
    let n = right.iter().filter(|right| right.contains(&true)).count().max(1);
    for (row, right) in right.iter().enumerate().filter(|(_, right)| right.contains(&true)) {
        let mut probabilities = scores.row(row).to_vec();
        crate::autograd::softmax(&mut probabilities);
        let sum: f32 = probabilities.iter().zip(right).filter(|(_, right)| **right).map(|(p, _)| p).sum();
        let sum = sum.clamp(1e-9, 1.0);
        value -= f64::from(sum).ln();
        for ((to, p), right) in gradient.row_mut(row).iter_mut().zip(&probabilities).zip(right) {
            *to = (p - if *right { p / sum } else { 0.0 }) / n as f32;
        }
    }
    Loss { value: value / n as f64, gradient }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tensor::random::{self, SplitMix64};

    fn one_anchor(negative: f32) -> f64 {
        let mut similarity = [1.0, 0.8, negative];
        anchor(0, &mut similarity, &[1], &MultiSimilarityConfig::default())
    }

    #[test]
    fn miner_and_loss_give_the_figures_of_the_specification() {
        // Neither pair is mined: both comparisons are strict.
        assert_eq!(one_anchor(0.599_99), 0.0);
        let expected = 0.5 * (1.0f64 + (-2.0f64 * 0.3).exp()).ln() + (1.0f64 + (50.0f64 * 0.15).exp()).ln() / 50.0;
        assert!((one_anchor(0.65) - expected).abs() < 1e-5, "{}", one_anchor(0.65));
        assert!((expected - 0.368_75).abs() < 1e-5);
    }

    #[test]
    fn rows_without_a_positive_or_a_negative_count_in_the_mean_with_nothing() {
        let rows = Matrix::new(2, 2, vec![1.0, 0.0, 0.6, 0.8]);
        for labels in [[vec![1], vec![2]], [vec![1], vec![1, 2]]] {
            let loss = multi_similarity(&rows, &labels, &MultiSimilarityConfig::default());
            assert_eq!((loss.value, loss.gradient.values.iter().any(|x| *x != 0.0)), (0.0, false));
        }
    }

    #[test]
    fn the_gradient_of_the_multi_similarity_loss_is_that_of_differences() {
        let mut rng = SplitMix64::new(3);
        let rows = Matrix::new(8, 5, (0..40).map(|_| random::normal(&mut rng)).collect());
        let labels: Vec<Vec<u32>> = [0, 0, 1, 1, 2, 2, 0, 1].into_iter().map(|label| vec![label]).collect();
        // A wide margin keeps every pair, so the set of pairs is constant under the differences; the small beta keeps these accurate.
        let config = MultiSimilarityConfig { epsilon: 4.0, beta: 5.0, ..Default::default() };
        let loss = multi_similarity(&rows, &labels, &config);
        for at in 0..40 {
            let moved = |by: f32| {
                let mut moved = rows.clone();
                moved.values[at] += by;
                multi_similarity(&moved, &labels, &config).value
            };
            let slope = (moved(1e-2) - moved(-1e-2)) / 2e-2;
            assert!(
                (slope - f64::from(loss.gradient.values[at])).abs() < 2e-4,
                "{at}: {slope} {}",
                loss.gradient.values[at]
            );
        }
    }

    #[test]
    fn marginal_likelihood_gives_the_figures_of_the_specification() {
        let scores = Matrix::new(2, 4, vec![2.0, 1.0, 0.0, 0.0, 5.0, 1.0, 0.0, 0.0]);
        let right = [vec![false, true, true, false], vec![false; 4]];
        let loss = marginal_likelihood(&scores, &right);
        assert!((loss.value - 1.1806).abs() < 1e-4, "{}", loss.value);
        assert_eq!(loss.gradient.row(1), [0.0; 4]);
        for at in 0..4 {
            let moved = |by: f32| {
                let mut moved = scores.clone();
                moved.values[at] += by;
                marginal_likelihood(&moved, &right).value
            };
            let slope = (moved(1e-2) - moved(-1e-2)) / 2e-2;
            assert!((slope - f64::from(loss.gradient.values[at])).abs() < 1e-3);
        }
    }
}
