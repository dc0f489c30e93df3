//! Bidirectional LSTM layers (Hochreiter and Schmidhuber 1997, Graves and Schmidhuber 2005).
//!
//! ```text
//! layer 0     [rows, inputs] -> [rows, 2 * hidden]    outputs of both directions side by side
//! layer n     [rows, 2 * hidden] -> [rows, 2 * hidden], with dropout in between
//! ```
//!
//! Weights of a direction: `input` `[inputs, 4 * hidden]`, `recurrent` `[hidden, 4 * hidden]` and `bias` `[1, 4 * hidden]`, with the
//! columns of input gate, forget gate, candidate and output gate. PyTorch has two biases, whose sum is this one.

use std::sync::Arc;

use canonym_core::{Error, Result};
use serde::{Deserialize, Serialize};

use crate::autograd::{Direction, LstmWeights, Tape, Var};
use crate::tensor::matrix::Matrix;
use crate::tensor::parameters::Parameters;
use crate::tensor::random::{self, SplitMix64};
use crate::tensor::segments::Segments;

const DIRECTIONS: [(&str, Direction); 2] = [("forward", Direction::Forward), ("backward", Direction::Backward)];

/// Sizes of a stack of bidirectional layers.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct BiLstmConfig {
    /// Number of layers.
    pub n_layers: usize,
    /// Units of each direction.
    pub hidden: usize,
    /// Dropout between layers.
    pub dropout: f32,
}

impl Default for BiLstmConfig {
    fn default() -> BiLstmConfig {
        BiLstmConfig { n_layers: 2, hidden: 256, dropout: 0.2 }
    }
}

impl BiLstmConfig {
    /// Number of output columns.
    pub fn n_outputs(&self) -> usize {
        self.hidden.saturating_mul(2)
    }

    /// Names and shapes of the weights.
    fn weights(&self, scope: &str, n_inputs: usize) -> impl Iterator<Item = (String, usize, usize)> {
        let (n_outputs, hidden) = (self.n_outputs(), self.hidden);
        let directions = (0..self.n_layers).flat_map(|layer| DIRECTIONS.map(|(direction, _)| (layer, direction)));
        directions.flat_map(move |(layer, direction)| {
            let n_inputs = if layer == 0 { n_inputs } else { n_outputs };
            let parts = [("input", n_inputs), ("recurrent", hidden), ("bias", 1)];
            parts.map(|(part, n_rows)| (format!("{scope}{layer}.{direction}.{part}"), n_rows, hidden.saturating_mul(4)))
        })
    }

    /// Initialises the weights that `parameters` lacks, uniformly within `1 / sqrt(hidden)`, as in PyTorch.
    pub fn init(&self, parameters: &mut Parameters, scope: &str, n_inputs: usize, rng: &mut SplitMix64) {
        let bound = 1.0 / (self.hidden as f32).sqrt();
        for (name, n_rows, n_cols) in self.weights(scope, n_inputs) {
            if parameters.find(&name).is_err() {
                let values = (0..n_rows * n_cols).map(|_| bound * (2.0 * random::unit(rng) - 1.0)).collect();
                parameters.add(name, Matrix::new(n_rows, n_cols, values));
            }
        }
    }

    /// Checks the shapes of the weights.
    ///
    /// # Errors
    /// If a weight is missing or has another shape.
    pub fn check(&self, parameters: &Parameters, scope: &str, n_inputs: usize) -> Result<()> {
        if self.hidden == 0 || self.n_layers == 0 || !(0.0..1.0).contains(&self.dropout) {
            let error = Error::config("an LSTM needs a layer, a unit, and a dropout of at least 0 and below 1");
            return Err(error.with_hint("the defaults are `n_layers = 2`, `hidden = 256` and `dropout = 0.2`"));
        }
        let mut weights = self.weights(scope, n_inputs);
        weights.try_for_each(|(name, n_rows, n_cols)| parameters.shaped(&name, n_rows, n_cols).map(drop))
    }

    /// Outputs of the last layer, `[rows, 2 * hidden]`; dropout only with a generator.
    ///
    /// # Errors
    /// If a weight is missing.
    pub fn forward(
        &self,
        tape: &mut Tape<'_>,
        scope: &str,
        input: Var,
        segments: &Arc<Segments>,
        mut rng: Option<&mut SplitMix64>,
    ) -> Result<Var> {
        let mut output = input;
        for layer in 0..self.n_layers {
            if layer > 0 {
                output = tape.dropout(output, self.dropout, rng.as_deref_mut());
            }
            let mut both = Vec::with_capacity(2);
            for (name, direction) in DIRECTIONS {
                let mut weight = |part: &str| tape.parameter(&format!("{scope}{layer}.{name}.{part}"));
                let (input, recurrent, bias) = (weight("input")?, weight("recurrent")?, weight("bias")?);
                both.push((direction, LstmWeights { input, recurrent, bias }));
            }
            output = tape.lstm(output, &both, segments);
        }
        Ok(output)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::autograd::differences::{check, drawn};

    #[test]
    fn the_layers_have_the_gradient_of_their_differences() {
        let config = BiLstmConfig { n_layers: 2, hidden: 3, dropout: 0.2 };
        let mut rng = SplitMix64::new(9);
        let mut parameters = Parameters::default();
        parameters.add("rows", drawn(7, 4, &mut rng));
        config.init(&mut parameters, "task.", 4, &mut rng);
        config.check(&parameters, "task.", 4).unwrap();
        assert!(config.check(&parameters, "task.", 5).is_err());
        assert!(BiLstmConfig { hidden: 0, ..config }.check(&parameters, "task.", 4).is_err());
        assert!(BiLstmConfig { n_layers: 0, ..config }.check(&parameters, "task.", 4).is_err());
        let segments = Arc::new(Segments::of_lengths([3, 4]));
        check(&parameters, |tape| {
            let rows = tape.parameter("rows").unwrap();
            config.forward(tape, "task.", rows, &segments, Some(&mut SplitMix64::new(1))).unwrap()
        });
    }
}
