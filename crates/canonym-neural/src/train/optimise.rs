//! Adam and learning-rate schedules.

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::autograd::Gradients;
use crate::tensor::matrix::{Matrix, Vectorised, vectorised};
use crate::tensor::parameters::Parameters;

/// Values per thread in an update.
const PIECE: usize = 1 << 14;

/// Adam (Kingma and Ba 2015), by default with decoupled weight decay (Loshchilov and Hutter 2019).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AdamConfig {
    /// Peak learning rate.
    pub learning_rate: f32,
    /// Decay rate of the first moment.
    pub beta_1: f32,
    /// Decay rate of the second moment.
    pub beta_2: f32,
    /// Added to the denominator.
    pub epsilon: f32,
    /// Weight decay; not applied to weights of a single row.
    pub weight_decay: f32,
    /// How weight decay is applied.
    #[serde(skip_serializing_if = "Decay::is_decoupled")]
    pub decay: Decay,
    /// Maximum global norm of the gradients.
    pub clip: f32,
    /// Fraction of steps with linear warm-up.
    pub warm_up: f32,
    /// Decay of the learning rate after the warm-up.
    pub schedule: Schedule,
    /// Lazy updates: rows of tables that a step does not read stay as they are, with their moments. Otherwise they follow their moments.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub lazy: bool,
}

impl Default for AdamConfig {
    fn default() -> AdamConfig {
        AdamConfig {
            learning_rate: 1e-3,
            beta_1: 0.9,
            beta_2: 0.999,
            epsilon: 1e-8,
            weight_decay: 0.0,
            decay: Decay::Decoupled,
            clip: 1.0,
            warm_up: 0.0,
            schedule: Schedule::Linear,
            lazy: false,
        }
    }
}

/// How weight decay is applied.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Decay {
    /// Multiplied by the learning rate and subtracted from the weight (AdamW).
    #[default]
    Decoupled,
    /// Added to the gradient after clipping, as an L2 penalty (Adam).
    L2,
}

impl Decay {
    #[allow(clippy::trivially_copy_pass_by_ref, reason = "serde hands references")]
    fn is_decoupled(&self) -> bool {
        *self == Decay::Decoupled
    }
}

/// Decay of the learning rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Schedule {
    /// No decay.
    Constant,
    /// Linear to 0 at the last step.
    Linear,
    /// Half a cosine, to 0 at the last step.
    Cosine,
}

impl AdamConfig {
    /// Learning rate of a step, counted from 0, of `n_steps`.
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

/// The optimiser with its moment estimates.
#[derive(Debug, Clone, PartialEq)]
pub struct Adam {
    /// Settings.
    pub config: AdamConfig,
    /// Number of steps made.
    pub n_made: u64,
    /// First moments by weight row; empty before its first update.
    pub first: Vec<Matrix>,
    /// Second moments.
    pub second: Vec<Matrix>,
}

impl Adam {
    /// An optimiser of `n_parameters` weights.
    pub fn new(config: AdamConfig, n_parameters: usize) -> Adam {
        Adam {
            config,
            n_made: 0,
            first: vec![Matrix::default(); n_parameters],
            second: vec![Matrix::default(); n_parameters],
        }
    }

    /// Makes one step with learning rate `rate`, and returns the gradient norm before clipping. Table rows with a zero gradient still
    /// follow their moments, as in the published optimiser.
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
                    .for_each(|((values, gradients), (first, second))| change.make(values, gradients, first, second));
                continue;
            };
            let n_cols = weight.n_cols;
            if self.config.lazy {
                for (row, gradients) in rows.iter().zip(gradients.chunks_exact(n_cols)) {
                    let row = *row as usize;
                    change.make(weight.row_mut(row), gradients, first.row_mut(row), second.row_mut(row));
                }
                continue;
            }
            let still = vec![0.0; n_cols];
            let values = weight.values.par_chunks_mut(n_cols).with_min_len(PIECE.div_ceil(n_cols)).enumerate();
            let memories = first.values.par_chunks_mut(n_cols).zip(second.values.par_chunks_mut(n_cols));
            values.zip(memories).for_each(|((row, values), (first, second))| {
                match rows.binary_search(&(row as u32)) {
                    Ok(at) => change.make(values, &gradients[at * n_cols..][..n_cols], first, second),
                    // Rows that never had a gradient do not change.
                    Err(_) if change.decay == 1.0 && change.penalty == 0.0 && is_zero(first) && is_zero(second) => {}
                    Err(_) => change.make(values, &still, first, second),
                }
            });
        }
        norm
    }
}

/// Whether every value is +0. Reads all values, which is faster than stopping early.
fn is_zero(values: &[f32]) -> bool {
    values.iter().fold(0, |bits, value| bits | value.to_bits()) == 0
}

/// Coefficients of one update.
struct Change {
    beta_1: f32,
    beta_2: f32,
    correct_1: f32,
    correct_2: f32,
    epsilon: f32,
    /// Factor of the weight, by decoupled decay.
    decay: f32,
    /// Factor of the weight in the gradient, by an L2 penalty.
    penalty: f32,
    rate: f32,
    /// Clipping factor of the gradients.
    factor: f32,
}

impl Change {
    fn new(config: &AdamConfig, n_made: u64, rate: f32, decays: bool) -> Change {
        let AdamConfig { beta_1, beta_2, epsilon, weight_decay, .. } = *config;
        let correct_1 = 1.0 - beta_1.powi(n_made as i32);
        let correct_2 = 1.0 - beta_2.powi(n_made as i32);
        let (decay, penalty) = match config.decay {
            _ if !decays => (1.0, 0.0),
            Decay::Decoupled => (1.0 - rate * weight_decay, 0.0),
            Decay::L2 => (1.0, weight_decay),
        };
        Change { beta_1, beta_2, correct_1, correct_2, epsilon, decay, penalty, rate, factor: 1.0 }
    }

    /// Updates values and both moments.
    fn make(&self, values: &mut [f32], gradients: &[f32], firsts: &mut [f32], seconds: &mut [f32]) {
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
        let Change { beta_1, beta_2, correct_1, correct_2, epsilon, decay, penalty, rate, factor } = *self.change;
        let memories = self.firsts.iter_mut().zip(self.seconds);
        for ((value, slope), (first, second)) in self.values.iter_mut().zip(self.gradients).zip(memories) {
            let slope = slope * factor + penalty * *value;
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
        // As in the published code: no warm-up, and the first step is the largest.
        let published = AdamConfig { learning_rate: 1.0, ..Default::default() };
        assert_eq!(rates(&published), [1.0, 0.9, 0.8, 0.4, 0.1]);
    }

    #[test]
    fn an_l2_penalty_is_part_of_the_gradient() {
        let step = |config: AdamConfig, gradient: f32| {
            let mut parameters = Parameters::default();
            parameters.add("table", Matrix::new(2, 1, vec![2.0, -1.0]));
            let mut tape = Tape::new(&parameters);
            let weight = tape.parameter("table").unwrap();
            let output = tape.relu(weight);
            let gradients = tape.backward([(output, Matrix::new(2, 1, vec![gradient; 2]))]);
            let mut adam = Adam::new(config, 1);
            adam.step(&mut parameters, &gradients, 0.1);
            (parameters.at(0).values.clone(), adam.first[0].values.clone())
        };
        let config = AdamConfig { weight_decay: 0.5, ..AdamConfig::default() };
        let (decoupled, first) = step(config, 0.0);
        // The gradient is 0, so only the weights change.
        assert_eq!((decoupled, first), (vec![2.0 * 0.95, -0.95], vec![0.0; 2]));
        let (penalised, first) = step(AdamConfig { decay: Decay::L2, ..config }, 0.0);
        // The first step has the size of the learning rate, whatever the penalty.
        assert!((penalised[0] - 1.9).abs() < 1e-6 && (penalised[1] + 0.9).abs() < 1e-6, "{penalised:?}");
        assert!((first[0] - 0.1).abs() < 1e-6 && (first[1] + 0.05).abs() < 1e-6, "{first:?}");
        let decay = |toml: &str| toml::from_str::<AdamConfig>(toml).unwrap().decay;
        assert_eq!((decay(""), decay("decay = \"l2\"")), (Decay::Decoupled, Decay::L2));
        assert!(!toml::to_string(&AdamConfig::default()).unwrap().contains("\ndecay ="));
    }

    #[test]
    fn a_table_moves_as_if_the_gradients_of_all_rows_were_there() {
        let table = Matrix::new(4, 2, (1..9).map(|value| value as f32).collect());
        let read: [&[u32]; 3] = [&[1, 3, 1], &[3], &[0]];
        let l2 = AdamConfig { weight_decay: 0.1, decay: Decay::L2, ..AdamConfig::default() };
        for config in [AdamConfig::default(), AdamConfig { weight_decay: 0.1, clip: 0.5, ..AdamConfig::default() }, l2]
        {
            let mut parameters = Parameters::default();
            parameters.add("table", table.clone());
            let (mut rows, mut all) = (parameters.clone(), parameters);
            let (mut of_rows, mut of_all) = (Adam::new(config, 1), Adam::new(config, 1));
            for read in read {
                let mut tape = Tape::new(&rows);
                let weight = tape.parameter("table").unwrap();
                let output = tape.gather(weight, read.to_vec());
                let gradients = tape.backward([(output, Matrix::new(read.len(), 2, vec![0.25; 2 * read.len()]))]);
                assert!(gradients.of(0).unwrap().rows().is_some());
                // The same via a product with the table, which gives a dense gradient.
                let mut tape = Tape::new(&all);
                let weight = tape.parameter("table").unwrap();
                let chosen = read.iter().flat_map(|row| (0..4).map(move |at| f32::from(at == *row))).collect();
                let input = tape.input(Matrix::new(read.len(), 4, chosen));
                let output = tape.linear(input, weight, None);
                let whole = tape.backward([(output, Matrix::new(read.len(), 2, vec![0.25; 2 * read.len()]))]);
                assert!(whole.of(0).unwrap().rows().is_none());
                let norms = (of_rows.step(&mut rows, &gradients, 0.1), of_all.step(&mut all, &whole, 0.1));
                assert!((norms.0 - norms.1).abs() < 1e-6, "{norms:?}");
            }
            assert_eq!(rows, all);
            // The row that was never read changes only by weight decay.
            assert_eq!(rows.at(0).row(2) == table.row(2), config.weight_decay == 0.0);
        }
    }
}
