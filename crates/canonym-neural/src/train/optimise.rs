//! Adam, and the schedule of its steps.

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::matrix::Matrix;
use crate::parameters::Parameters;
use crate::tape::Gradients;

/// Values that one thread changes at a time.
const PIECE: usize = 1 << 14;

/// How weights follow their gradients: Adam (Kingma and Ba 2015) with decoupled decay (Loshchilov and Hutter 2019).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AdamConfig {
    /// The size of a step at its greatest.
    pub learning_rate: f32,
    /// The memory of gradients.
    pub beta_1: f32,
    /// The memory of their squares.
    pub beta_2: f32,
    /// Added to roots before they divide.
    pub epsilon: f32,
    /// What weights of more than one row lose a step, as a share, times the size of the step.
    pub weight_decay: f32,
    /// Gradients are scaled so that they are together no longer than this.
    pub clip: f32,
    /// The share of steps in which the size grows from 0.
    pub warm_up: f32,
    /// How the size falls after.
    pub schedule: Schedule,
}

impl Default for AdamConfig {
    fn default() -> AdamConfig {
        AdamConfig {
            learning_rate: 1e-3,
            beta_1: 0.9,
            beta_2: 0.999,
            epsilon: 1e-8,
            weight_decay: 0.0,
            clip: 1.0,
            warm_up: 0.0,
            schedule: Schedule::Linear,
        }
    }
}

/// How the size of steps falls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Schedule {
    /// It does not.
    Constant,
    /// In a straight line to 0 at the last step.
    Linear,
    /// Along half a cosine to 0 at the last step.
    Cosine,
}

impl AdamConfig {
    /// The size of a step, counted from 0, of a run of `n_steps`.
    pub fn rate_at(&self, step: u64, n_steps: u64) -> f32 {
        let warm = (self.warm_up * n_steps as f32).floor();
        let step = step as f32;
        if step < warm {
            return self.learning_rate * (step + 1.0) / warm;
        }
        let left = (n_steps as f32 - step) / (n_steps as f32 - warm).max(1.0);
        self.learning_rate
            * match self.schedule {
                Schedule::Constant => 1.0,
                Schedule::Linear => left.max(0.0),
                Schedule::Cosine => 0.5 * (1.0 - (std::f32::consts::PI * left.clamp(0.0, 1.0)).cos()),
            }
    }
}

/// The optimiser: two memories a weight.
#[derive(Debug, Clone, PartialEq)]
pub struct Adam {
    /// Its settings.
    pub config: AdamConfig,
    /// Steps that were made.
    pub n_made: u64,
    /// Means of gradients, by the row of their weight; empty where it has not moved yet.
    pub first: Vec<Matrix>,
    /// Means of their squares.
    pub second: Vec<Matrix>,
}

impl Adam {
    /// An optimiser of that many weights.
    pub fn new(config: AdamConfig, n_parameters: usize) -> Adam {
        Adam {
            config,
            n_made: 0,
            first: vec![Matrix::default(); n_parameters],
            second: vec![Matrix::default(); n_parameters],
        }
    }

    /// Makes one step of the given size.
    pub fn step(&mut self, parameters: &mut Parameters, gradients: &Gradients, rate: f32) {
        self.n_made += 1;
        let AdamConfig { beta_1, beta_2, epsilon, weight_decay, .. } = self.config;
        let correct_1 = 1.0 - beta_1.powi(self.n_made as i32);
        let correct_2 = 1.0 - beta_2.powi(self.n_made as i32);
        for row in 0..parameters.len() {
            let Some(gradient) = gradients.of(row) else { continue };
            let rate = rate * parameters.pace_of(row);
            let weight = parameters.at_mut(row);
            let (first, second) = (&mut self.first[row], &mut self.second[row]);
            if first.values.is_empty() {
                *first = Matrix::zeros(weight.n_rows, weight.n_cols);
                *second = Matrix::zeros(weight.n_rows, weight.n_cols);
            }
            let decay = if weight.n_rows > 1 { 1.0 - rate * weight_decay } else { 1.0 };
            let values = weight.values.par_chunks_mut(PIECE).zip(gradient.values.par_chunks(PIECE));
            let memories = first.values.par_chunks_mut(PIECE).zip(second.values.par_chunks_mut(PIECE));
            values.zip(memories).for_each(|((values, gradients), (firsts, seconds))| {
                let memories = firsts.iter_mut().zip(seconds);
                for ((value, gradient), (first, second)) in values.iter_mut().zip(gradients).zip(memories) {
                    *first = beta_1 * *first + (1.0 - beta_1) * gradient;
                    *second = beta_2 * *second + (1.0 - beta_2) * gradient * gradient;
                    let change = (*first / correct_1) / ((*second / correct_2).sqrt() + epsilon);
                    *value = *value * decay - rate * change;
                }
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_size_of_steps_grows_and_falls_as_the_schedule_says() {
        let config = AdamConfig { learning_rate: 1.0, warm_up: 0.2, ..Default::default() };
        let rates =
            |config: &AdamConfig| [0, 1, 2, 6, 9].map(|step| (config.rate_at(step, 10) * 1000.0).round() / 1000.0);
        assert_eq!(rates(&config), [0.5, 1.0, 1.0, 0.5, 0.125]);
        assert_eq!(rates(&AdamConfig { schedule: Schedule::Cosine, ..config }), [0.5, 1.0, 1.0, 0.5, 0.038]);
        assert_eq!(rates(&AdamConfig { schedule: Schedule::Constant, ..config }), [0.5, 1.0, 1.0, 1.0, 1.0]);
        // As the published code has it: no warm-up, and the first step is the greatest.
        let published = AdamConfig { learning_rate: 1.0, ..Default::default() };
        assert_eq!(rates(&published), [1.0, 0.9, 0.8, 0.4, 0.1]);
    }
}
