//! Fits the weights and the calibration of the lexical linker to labelled queries.
//!
//! The weights minimise the negative log marginal likelihood of the correct candidates under a softmax over all
//! candidates of a query, with an L2 penalty. The optimiser is full-batch Adam, so the result is deterministic. The
//! calibration is Platt scaling on held-out queries.

use std::collections::BTreeSet;

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::lexical::{Scored, best_of_each_concept, score_name};
use super::model::{Calibration, Features, LexicalModel, N};
use crate::index::grams::GramScratch;
use crate::kb::KnowledgeBase;

/// A query with the ids of the correct concepts, without prefixes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Labelled {
    /// The name.
    pub query: String,
    /// The correct ids; any one of them counts as correct.
    pub ids: BTreeSet<String>,
}

/// Settings of the fit.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FitConfig {
    /// Number of full-batch steps.
    pub n_steps: usize,
    /// Learning rate of Adam.
    pub learning_rate: f32,
    /// Coefficient of the L2 penalty.
    pub penalty: f32,
}

impl Default for FitConfig {
    fn default() -> Self {
        FitConfig { n_steps: 600, learning_rate: 0.05, penalty: 1e-3 }
    }
}

/// The candidates of one query, with labels.
#[derive(Debug, Clone)]
pub struct Example {
    /// Each candidate and whether it is correct.
    pub candidates: Vec<(Scored, bool)>,
    /// Weight of the query in the loss.
    pub weight: f32,
}

/// Retrieves the candidates of each query.
pub fn examples(kb: &KnowledgeBase, model: &LexicalModel, queries: &[Labelled]) -> Vec<Example> {
    let is_right = |scored: &Scored, labelled: &Labelled| {
        kb.id(scored.concept).split('|').any(|id| labelled.ids.contains(id.rsplit(':').next().unwrap_or(id)))
    };
    queries
        .par_iter()
        .map_init(GramScratch::default, |scratch, labelled| {
            let scored = score_name(kb, model, &labelled.query, scratch);
            Example { candidates: scored.into_iter().map(|one| (one, is_right(&one, labelled))).collect(), weight: 1.0 }
        })
        .collect()
}

/// Fits the weights, starting from zero.
pub fn fit_weights(examples: &[Example], config: &FitConfig) -> Features {
    fit_weights_without(examples, config, &[])
}

/// Like [`fit_weights`], with the features `off` fixed at zero.
pub fn fit_weights_without(examples: &[Example], config: &FitConfig, off: &[usize]) -> Features {
    let useful: Vec<&Example> =
        examples.iter().filter(|example| example.candidates.iter().any(|(_, right)| *right)).collect();
    let total: f32 = useful.iter().map(|example| example.weight).sum::<f32>().max(1e-6);
    let mut weights = [0.0f32; N];
    let (mut first_moment, mut second_moment) = ([0.0f32; N], [0.0f32; N]);
    for step in 1..=config.n_steps {
        // Chunks have a fixed size and are added in order, so the sum does not depend on the number of threads.
        let parts: Vec<[f64; N]> = useful.par_chunks(64).map(|chunk| gradient(chunk, &weights)).collect();
        let rate = config.learning_rate * (1.0 - (step - 1) as f32 / config.n_steps as f32);
        for row in (0..N).filter(|row| !off.contains(row)) {
            let sum: f64 = parts.iter().map(|part| part[row]).sum();
            let derivative = sum as f32 / total + 2.0 * config.penalty * weights[row];
            first_moment[row] = 0.9 * first_moment[row] + 0.1 * derivative;
            second_moment[row] = 0.999 * second_moment[row] + 0.001 * derivative * derivative;
            let m_hat = first_moment[row] / (1.0 - 0.9f32.powi(step as i32));
            let v_hat = second_moment[row] / (1.0 - 0.999f32.powi(step as i32));
            weights[row] -= rate * m_hat / (v_hat.sqrt() + 1e-8);
        }
    }
    weights
}

fn dot(weights: &Features, features: &Features) -> f32 {
    weights.iter().zip(features).map(|(weight, value)| weight * value).sum()
}

fn gradient(chunk: &[&Example], weights: &Features) -> [f64; N] {
    let mut sum = [0.0f64; N];
    for example in chunk {
        let scores: Vec<f32> = example.candidates.iter().map(|(one, _)| dot(weights, &one.features)).collect();
        let top = scores.iter().copied().fold(f32::MIN, f32::max);
        let exps: Vec<f32> = scores.iter().map(|score| (score - top).exp()).collect();
        let all: f32 = exps.iter().sum();
        let right: f32 =
            exps.iter().zip(&example.candidates).filter(|(_, (_, right))| *right).map(|(exp, _)| exp).sum();
        for (exp, (one, is_right)) in exps.iter().zip(&example.candidates) {
            let mut residual = exp / all;
            if *is_right {
                residual -= exp / right.max(1e-30);
            }
            for (slot, value) in sum.iter_mut().zip(&one.features) {
                *slot += f64::from(example.weight * residual * value);
            }
        }
    }
    sum
}

/// A candidate with the inputs of the calibration.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point {
    /// Index of its example.
    pub example: usize,
    /// Its rank, from 0.
    pub rank: usize,
    /// Its uncalibrated score.
    pub score: f32,
    /// Its margin over the best other concept.
    pub margin: f32,
    /// Its uncalibrated probability: softmax over all concepts of the query.
    pub probability: f32,
    /// Whether it is correct.
    pub right: bool,
}

/// Ranks and calibration points of evaluated examples.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Evaluation {
    /// Rank of the first correct concept of each query, from 1; `None` if it is not among the candidates.
    pub ranks: Vec<Option<usize>>,
    /// The three best concepts of each query.
    pub points: Vec<Point>,
}

/// Ranks the candidates of each example with `weights`.
pub fn evaluate(examples: &[Example], weights: &Features) -> Evaluation {
    let evaluate_one = |(row, example): (usize, &Example)| {
        let mut scored: Vec<Scored> = example.candidates.iter().map(|(one, _)| *one).collect();
        scored.iter_mut().for_each(|one| one.score = dot(weights, &one.features));
        best_of_each_concept(&mut scored);
        let right: BTreeSet<_> =
            example.candidates.iter().filter(|(_, right)| *right).map(|(one, _)| one.concept).collect();
        let rank = scored.iter().position(|one| right.contains(&one.concept)).map(|index| index + 1);
        let top = scored.first().map_or(0.0, |one| one.score);
        let next = scored.get(1).map_or(top - 10.0, |one| one.score);
        let all: f32 = scored.iter().map(|one| (one.score - top).exp()).sum();
        let point = |(rank, one): (usize, &Scored)| Point {
            example: row,
            rank,
            score: one.score,
            margin: if rank == 0 { top - next } else { one.score - top },
            probability: (one.score - top).exp() / all,
            right: right.contains(&one.concept),
        };
        (rank, scored.iter().take(3).enumerate().map(point).collect::<Vec<_>>())
    };
    let (ranks, points): (Vec<_>, Vec<_>) = examples.par_iter().enumerate().map(evaluate_one).unzip();
    Evaluation { ranks, points: points.concat() }
}

/// Expected calibration error, ten bins of equal width.
pub fn calibration_error(points: impl Iterator<Item = (f32, bool)>) -> f64 {
    let mut bins = [(0.0f64, 0.0f64); 10];
    let mut n = 0usize;
    for (probability, right) in points {
        let bin = ((probability * 10.0) as usize).min(9);
        bins[bin].0 += f64::from(probability);
        bins[bin].1 += f64::from(u8::from(right));
        n += 1;
    }
    bins.iter().map(|(confidence, right)| (confidence - right).abs()).sum::<f64>() / n.max(1) as f64
}

/// Platt scaling (Platt 1999) of score and margin, fitted by Newton's method.
pub fn fit_calibration<'a>(points: impl Iterator<Item = &'a Point> + Clone) -> Calibration {
    let row = |point: &Point| ([point.score, point.margin.clamp(-10.0, 10.0), 1.0], point.right, 1.0);
    let [score, margin, offset] = newton(points.map(row), [0.0; 3], 1e-3, 50, 1e-9);
    Calibration { score, margin, offset }
}

/// L2-regularised logistic regression by Newton's method on rows of features and labels. Every corpus has the same
/// total weight, whatever its size.
pub fn logistic<const N: usize>(corpora: &[&[([f32; N], bool)]], penalty: f64) -> [f32; N] {
    let rows = corpora.iter().flat_map(|corpus| {
        let row_weight = 1.0 / corpus.len().max(1) as f64;
        corpus.iter().map(move |(features, right)| (*features, *right, row_weight))
    });
    newton(rows, [0.0; N], penalty, 30, 1e-7)
}

/// Like [`logistic`] on one corpus, but the penalty is on the difference from the weights `start`, which few rows thus hardly change.
pub fn logistic_from<const N: usize>(start: &[f32; N], rows: &[([f32; N], bool)], penalty: f64) -> [f32; N] {
    let row_weight = 1.0 / rows.len().max(1) as f64;
    newton(
        rows.iter().map(|(features, right)| (*features, *right, row_weight)),
        start.map(f64::from),
        penalty,
        30,
        1e-7,
    )
}

/// Logistic regression on weighted rows with an L2 penalty on the difference from `start`, until every step is below `tolerance`.
fn newton<const N: usize>(
    rows: impl Iterator<Item = ([f32; N], bool, f64)> + Clone,
    start: [f64; N],
    penalty: f64,
    max_steps: usize,
    tolerance: f64,
) -> [f32; N] {
    let mut weights = start;
    for _ in 0..max_steps {
        let mut gradient = [0.0f64; N];
        let mut hessian = [[0.0f64; N]; N];
        for (features, right, row_weight) in rows.clone() {
            let logit: f64 = weights.iter().zip(features).map(|(weight, value)| weight * f64::from(value)).sum();
            let probability = 1.0 / (1.0 + (-logit).exp());
            let error = row_weight * (probability - f64::from(u8::from(right)));
            let weight = row_weight * probability * (1.0 - probability);
            for (row, value) in features.into_iter().enumerate().filter(|(_, value)| *value != 0.0) {
                gradient[row] += error * f64::from(value);
                for (column, other) in features.into_iter().enumerate() {
                    hessian[row][column] += weight * f64::from(value) * f64::from(other);
                }
            }
        }
        for row in 0..N {
            gradient[row] += penalty * (weights[row] - start[row]);
            hessian[row][row] += penalty;
        }
        let step = solve(hessian, gradient);
        weights.iter_mut().zip(&step).for_each(|(weight, step)| *weight -= step);
        if step.iter().all(|step| step.abs() < tolerance) {
            break;
        }
    }
    weights.map(|weight| weight as f32)
}

/// Solves a positive definite linear system by Gaussian elimination.
fn solve<const N: usize>(mut matrix: [[f64; N]; N], mut right: [f64; N]) -> [f64; N] {
    for pivot in 0..N {
        for row in pivot + 1..N {
            let factor = matrix[row][pivot] / matrix[pivot][pivot];
            let above = matrix[pivot];
            for (value, above) in matrix[row].iter_mut().zip(above).skip(pivot) {
                *value -= factor * above;
            }
            right[row] -= factor * right[pivot];
        }
    }
    for pivot in (0..N).rev() {
        for column in pivot + 1..N {
            right[pivot] -= matrix[pivot][column] * right[column];
        }
        right[pivot] /= matrix[pivot][pivot];
    }
    right
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kb::{ConceptId, NameId};

    #[test]
    fn a_planted_weight_is_found() {
        // The second feature is noise; the correct candidate wins by the first one with the odds of a weight of 2.
        let candidate = |row: u32, one: f32, other: f32| {
            let mut features = [0.0; N];
            (features[0], features[1]) = (one, other);
            Scored { concept: ConceptId(row), name: NameId(row), features, score: 0.0 }
        };
        let n_right = (2000.0 / (1.0 + (-2.0f64).exp())).round() as usize;
        let example = |n: usize| {
            let noise = (n % 2) as f32;
            let (right, wrong) = (n < n_right, n >= n_right);
            let candidates = vec![(candidate(0, 1.0, noise), right), (candidate(1, 0.0, 0.5), wrong)];
            Example { candidates, weight: 1.0 }
        };
        let examples: Vec<Example> = (0..2000).map(example).collect();
        let weights = fit_weights(&examples, &FitConfig { penalty: 0.0, ..FitConfig::default() });
        assert!((weights[0] - 2.0).abs() < 0.1 && weights[1].abs() < 0.1, "{:?}", &weights[..2]);
        assert!(evaluate(&examples, &weights).ranks.iter().all(Option::is_some));
    }

    #[test]
    fn calibration_finds_the_logit_it_was_drawn_from() {
        // Each score occurs with the rate of correct answers given by the logit 2 * score - 1.
        let mut points = Vec::new();
        for step in -20..=20 {
            let score = step as f32 / 10.0;
            let probability = 1.0 / (1.0 + (-(2.0 * score - 1.0)).exp());
            let n_right = (probability * 200.0).round() as usize;
            let point = |right| Point { example: 0, rank: 0, score, margin: 0.0, probability: 0.0, right };
            points.extend((0..200).map(|n| point(n < n_right)));
        }
        let calibration = fit_calibration(points.iter());
        assert!((calibration.score - 2.0).abs() < 0.05 && (calibration.offset + 1.0).abs() < 0.05, "{calibration:?}");
    }
}
