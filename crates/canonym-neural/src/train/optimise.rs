//! Adam, and the schedule of its steps.

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::autograd::Gradients;
use crate::tensor::matrix::{Matrix, Vectorised, vectorised};
use crate::tensor::parameters::Parameters;

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

    /// Makes one step of the given size, and gives the length of the gradient before it was clipped. A row of a table whose gradient is zero
    /// still follows its memories, as in the published optimiser.
    pub fn step(&mut self, parameters: &mut Parameters, gradients: &Gradients, rate: f32) -> f32 {
        self.n_made += 1;
        let norm = gradients.norm();
        let factor = if norm > self.config.clip { self.config.clip / norm } else { 1.0 };
        for row in 0..parameters.len() {
            let Some(gradient) = gradients.of(row) else { continue };
            let rate = rate * parameters.pace_of(row);
            let weight = parameters.at_mut(row);
            let change = Change { factor, ..Change::new(&self.config, self.n_made, rate, weight.n_rows > 1) };
            let (first, second) = (&mut self.first[row], &mut self.second[row]);
            if first.values.is_empty() {
                *first = Matrix::zeros(weight.n_rows, weight.n_cols);
                *second = Matrix::zeros(weight.n_rows, weight.n_cols);
            }
            let gradients = &gradient.matrix().values;
            let Some(rows) = gradient.rows() else {
                let values = weight.values.par_chunks_mut(PIECE).zip(gradients.par_chunks(PIECE));
                let memories = first.values.par_chunks_mut(PIECE).zip(second.values.par_chunks_mut(PIECE));
                values
                    .zip(memories)
                    .for_each(|((values, gradients), memories)| change.make(values, gradients, memories));
                continue;
            };
            let (n_cols, still) = (weight.n_cols, vec![0.0; weight.n_cols]);
            let values = weight.values.par_chunks_mut(n_cols).with_min_len(PIECE.div_ceil(n_cols)).enumerate();
            let memories = first.values.par_chunks_mut(n_cols).zip(second.values.par_chunks_mut(n_cols));
            values.zip(memories).for_each(|((row, values), (first, second))| {
                match rows.binary_search(&(row as u32)) {
                    Ok(at) => change.make(values, &gradients[at * n_cols..][..n_cols], (first, second)),
                    // What never moved stays where it is.
                    Err(_) if change.decay == 1.0 && is_zero(first) && is_zero(second) => {}
                    Err(_) => change.make(values, &still, (first, second)),
                }
            });
        }
        norm
    }
}

/// Whether each value is 0 (and not -0); all are read, which is faster than to stop early.
fn is_zero(values: &[f32]) -> bool {
    values.iter().fold(0, |bits, value| bits | value.to_bits()) == 0
}

/// What a step does to each value.
struct Change {
    beta_1: f32,
    beta_2: f32,
    correct_1: f32,
    correct_2: f32,
    epsilon: f32,
    decay: f32,
    rate: f32,
    /// What gradients are multiplied with.
    factor: f32,
}

impl Change {
    fn new(config: &AdamConfig, n_made: u64, rate: f32, decays: bool) -> Change {
        let AdamConfig { beta_1, beta_2, epsilon, weight_decay, .. } = *config;
        let correct_1 = 1.0 - beta_1.powi(n_made as i32);
        let correct_2 = 1.0 - beta_2.powi(n_made as i32);
        let decay = if decays { 1.0 - rate * weight_decay } else { 1.0 };
        Change { beta_1, beta_2, correct_1, correct_2, epsilon, decay, rate, factor: 1.0 }
    }

    /// Changes values and both memories by their gradients.
    fn make(&self, values: &mut [f32], gradients: &[f32], (firsts, seconds): (&mut [f32], &mut [f32])) {
        vectorised(Moved { change: self, values, gradients, firsts, seconds });
    }
}

struct Moved<'a> {
    change: &'a Change,
    values: &'a mut [f32],
    gradients: &'a [f32],
    firsts: &'a mut [f32],
    seconds: &'a mut [f32],
}

impl Vectorised for Moved<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Change { beta_1, beta_2, correct_1, correct_2, epsilon, decay, rate, factor } = *self.change;
        let memories = self.firsts.iter_mut().zip(self.seconds);
        for ((value, slope), (first, second)) in self.values.iter_mut().zip(self.gradients).zip(memories) {
            let slope = slope * factor;
            *first = beta_1 * *first + (1.0 - beta_1) * slope;
            *second = beta_2 * *second + (1.0 - beta_2) * slope * slope;
            let change = (*first / correct_1) / ((*second / correct_2).sqrt() + epsilon);
            *value = *value * decay - rate * change;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::autograd::Tape;

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

    #[test]
    fn a_table_moves_as_if_the_gradients_of_all_rows_were_there() {
        let table = Matrix::new(4, 2, (1..9).map(|value| value as f32).collect());
        let read: [&[u32]; 3] = [&[1, 3, 1], &[3], &[0]];
        for config in [AdamConfig::default(), AdamConfig { weight_decay: 0.1, clip: 0.5, ..AdamConfig::default() }] {
            let mut parameters = Parameters::default();
            parameters.add("table", table.clone());
            let (mut rows, mut all) = (parameters.clone(), parameters);
            let (mut of_rows, mut of_all) = (Adam::new(config, 1), Adam::new(config, 1));
            for read in read {
                let mut tape = Tape::new(&rows);
                let weight = tape.parameter("table").unwrap();
                let output = tape.gather(weight, read.to_vec());
                let gradients = tape.backward(output, Matrix::new(read.len(), 2, vec![0.25; 2 * read.len()]));
                assert!(gradients.of(0).unwrap().rows().is_some());
                // The same from a product with the table, which gives all rows.
                let mut tape = Tape::new(&all);
                let weight = tape.parameter("table").unwrap();
                let chosen = read.iter().flat_map(|row| (0..4).map(move |at| f32::from(at == *row))).collect();
                let input = tape.input(Matrix::new(read.len(), 4, chosen));
                let output = tape.linear(input, weight, None);
                let whole = tape.backward(output, Matrix::new(read.len(), 2, vec![0.25; 2 * read.len()]));
                assert!(whole.of(0).unwrap().rows().is_none());
                let norms = (of_rows.step(&mut rows, &gradients, 0.1), of_all.step(&mut all, &whole, 0.1));
                assert!((norms.0 - norms.1).abs() < 1e-6, "{norms:?}");
            }
            assert_eq!(rows, all);
            // The row that was never read stays, but for the decay.
            assert_eq!(rows.at(0).row(2) == table.row(2), config.weight_decay == 0.0);
        }
    }
}
