//! Fits the weights and the calibration of the lexical linker to queries with known concepts.
//!
//! The weights maximise the probability that a softmax over all candidates of a query gives to the right ones
//! (marginal likelihood), with a quadratic penalty; the optimiser is Adam over all queries at once, so the
//! result depends on nothing but the data. The calibration is Platt scaling on queries that the weights did
//! not see.

use std::collections::BTreeSet;

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::lexical::{Scored, best_of_each_concept, score_name};
use super::model::{Calibration, Features, LexicalModel, N};
use crate::index::grams::GramScratch;
use crate::kb::KnowledgeBase;

/// A name and the ids of the concepts it means, without prefixes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Labelled {
    /// The name.
    pub query: String,
    /// The ids, one of which suffices.
    pub ids: BTreeSet<String>,
}

/// How to fit.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FitConfig {
    /// Passes over the queries.
    pub n_steps: usize,
    /// The step length of Adam.
    pub learning_rate: f32,
    /// The weight of the squared norm of the weights in the loss.
    pub penalty: f32,
}

impl Default for FitConfig {
    fn default() -> Self {
        FitConfig { n_steps: 600, learning_rate: 0.05, penalty: 1e-3 }
    }
}

/// The candidates of one query, right or wrong.
#[derive(Debug, Clone)]
pub struct Example {
    /// Every candidate and whether it is right.
    pub candidates: Vec<(Scored, bool)>,
    /// How much it counts in the fit.
    pub weight: f32,
}

/// The candidates of each query.
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

/// Fits weights from zero.
pub fn fit_weights(examples: &[Example], config: &FitConfig) -> Features {
    fit_weights_without(examples, config, &[])
}

/// [`fit_weights`] with some features kept at zero.
pub fn fit_weights_without(examples: &[Example], config: &FitConfig, off: &[usize]) -> Features {
    let useful: Vec<&Example> =
        examples.iter().filter(|example| example.candidates.iter().any(|(_, right)| *right)).collect();
    let total: f32 = useful.iter().map(|example| example.weight).sum::<f32>().max(1e-6);
    let mut weights = [0.0f32; N];
    let (mut first, mut second) = ([0.0f32; N], [0.0f32; N]);
    for step in 1..=config.n_steps {
        // Chunks of a fixed size, added up in order: the sum does not depend on the number of threads.
        let parts: Vec<[f64; N]> = useful.par_chunks(64).map(|chunk| gradient(chunk, &weights)).collect();
        let rate = config.learning_rate * (1.0 - (step - 1) as f32 / config.n_steps as f32);
        for row in (0..N).filter(|row| !off.contains(row)) {
            let sum: f64 = parts.iter().map(|part| part[row]).sum();
            let slope = sum as f32 / total + 2.0 * config.penalty * weights[row];
            first[row] = 0.9 * first[row] + 0.1 * slope;
            second[row] = 0.999 * second[row] + 0.001 * slope * slope;
            let mean = first[row] / (1.0 - 0.9f32.powi(step as i32));
            let spread = second[row] / (1.0 - 0.999f32.powi(step as i32));
            weights[row] -= rate * mean / (spread.sqrt() + 1e-8);
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
        let shares: Vec<f32> = scores.iter().map(|score| (score - top).exp()).collect();
        let all: f32 = shares.iter().sum();
        let right: f32 =
            shares.iter().zip(&example.candidates).filter(|(_, (_, right))| *right).map(|(share, _)| share).sum();
        for (share, (one, is_right)) in shares.iter().zip(&example.candidates) {
            let mut pull = share / all;
            if *is_right {
                pull -= share / right.max(1e-30);
            }
            for (slot, value) in sum.iter_mut().zip(&one.features) {
                *slot += f64::from(example.weight * pull * value);
            }
        }
    }
    sum
}

/// What a model makes of examples: the rank-one accuracy, and score, lead and rightness of the first candidates.
#[derive(Debug, Clone, Default)]
pub struct Judged {
    /// The share of queries whose first concept is right.
    pub accuracy: f64,
    /// Score, lead and rightness of the first three concepts of each query.
    pub points: Vec<(f32, f32, bool)>,
    /// Whether the first concept of each query is right.
    pub right: Vec<bool>,
}

/// Ranks the candidates of each example with `weights`.
pub fn judge(examples: &[Example], weights: &Features) -> Judged {
    let mut judged = Judged::default();
    for example in examples {
        let mut scored: Vec<Scored> = Vec::with_capacity(example.candidates.len());
        for (one, _) in &example.candidates {
            scored.push(Scored { score: dot(weights, &one.features), ..*one });
        }
        best_of_each_concept(&mut scored);
        let is_right = |wanted: &Scored| {
            example.candidates.iter().any(|(one, right)| *right && one.concept == wanted.concept)
        };
        judged.right.push(scored.first().is_some_and(is_right));
        let top = scored.first().map_or(0.0, |one| one.score);
        let next = scored.get(1).map_or(top - 10.0, |one| one.score);
        for (rank, one) in scored.iter().take(3).enumerate() {
            let lead = if rank == 0 { top - next } else { one.score - top };
            judged.points.push((one.score, lead, is_right(one)));
        }
    }
    judged.accuracy = judged.right.iter().filter(|right| **right).count() as f64 / examples.len().max(1) as f64;
    judged
}

/// Platt scaling of score and lead, by Newton's method.
pub fn fit_calibration(points: &[(f32, f32, bool)]) -> Calibration {
    let mut weights = [0.0f64; 3];
    for _ in 0..50 {
        let mut slope = [0.0f64; 3];
        let mut curve = [[0.0f64; 3]; 3];
        for (score, lead, right) in points {
            let inputs = [f64::from(*score), f64::from(lead.clamp(-10.0, 10.0)), 1.0];
            let logit: f64 = weights.iter().zip(inputs).map(|(weight, input)| weight * input).sum();
            let probability = 1.0 / (1.0 + (-logit).exp());
            let wrong_by = probability - f64::from(u8::from(*right));
            let weight = probability * (1.0 - probability);
            for row in 0..3 {
                slope[row] += wrong_by * inputs[row];
                for column in 0..3 {
                    curve[row][column] += weight * inputs[row] * inputs[column];
                }
            }
        }
        for (row, curve) in curve.iter_mut().enumerate() {
            curve[row] += 1e-3;
            slope[row] += 1e-3 * weights[row];
        }
        let step = solve(curve, slope);
        for (weight, step) in weights.iter_mut().zip(step) {
            *weight -= step;
        }
        if step.iter().all(|step| step.abs() < 1e-9) {
            break;
        }
    }
    Calibration { score: weights[0] as f32, lead: weights[1] as f32, offset: weights[2] as f32 }
}

/// Solves a positive definite system of three equations by elimination.
fn solve(mut matrix: [[f64; 3]; 3], mut right: [f64; 3]) -> [f64; 3] {
    for pivot in 0..3 {
        for row in pivot + 1..3 {
            let factor = matrix[row][pivot] / matrix[pivot][pivot];
            for column in pivot..3 {
                matrix[row][column] -= factor * matrix[pivot][column];
            }
            right[row] -= factor * right[pivot];
        }
    }
    for pivot in (0..3).rev() {
        for column in pivot + 1..3 {
            right[pivot] -= matrix[pivot][column] * right[column];
        }
        right[pivot] /= matrix[pivot][pivot];
    }
    right
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calibration_finds_the_logit_it_was_drawn_from() {
        // Each score appears with the share of right answers that a logit of 2 * score - 1 gives.
        let mut points = Vec::new();
        for step in -20..=20 {
            let score = step as f32 / 10.0;
            let probability = 1.0 / (1.0 + (-(2.0 * score - 1.0)).exp());
            let n_right = (probability * 200.0).round() as usize;
            points.extend((0..200).map(|n| (score, 0.0, n < n_right)));
        }
        let calibration = fit_calibration(&points);
        assert!((calibration.score - 2.0).abs() < 0.05 && (calibration.offset + 1.0).abs() < 0.05, "{calibration:?}");
    }
}
