//! Layer norm (Ba et al. 2016) of rows, with the weights `NAME.gain` and `NAME.bias`, both `[1, dim]`.

use canonym_core::Result;
use rayon::prelude::*;

use crate::autograd::{Tape, Var};
use crate::tensor::elementwise::{Norm, add_and_layer_norm_rows, layer_norm_rows};
use crate::tensor::matrix::{Matrix, Threads};
use crate::tensor::parameters::Parameters;

/// Rows per thread.
const ROWS: usize = 32;

/// The layer in the training graph; `epsilon` is added to the variance.
///
/// # Errors
/// If a weight is missing.
pub fn layer_norm(tape: &mut Tape<'_>, name: &str, input: Var, epsilon: f32) -> Result<Var> {
    let gain = tape.parameter(&format!("{name}.gain"))?;
    let bias = tape.parameter(&format!("{name}.bias"))?;
    Ok(tape.layer_norm(input, gain, bias, epsilon))
}

/// The layer for inference.
#[derive(Debug, Clone)]
pub struct LayerNorm {
    gain: Vec<f32>,
    bias: Vec<f32>,
    epsilon: f32,
}

impl LayerNorm {
    /// The layer `name`; `epsilon` is added to the variance.
    ///
    /// # Errors
    /// If a weight is missing.
    pub fn of(parameters: &Parameters, name: &str, epsilon: f32) -> Result<LayerNorm> {
        let values = |part: &str| Ok(parameters.get(&format!("{name}.{part}"))?.values.clone());
        Ok(LayerNorm { gain: values("gain")?, bias: values("bias")?, epsilon })
    }

    fn settings(&self) -> Norm<'_> {
        Norm { gain: &self.gain, bias: &self.bias, epsilon: self.epsilon }
    }

    /// Normalises rows in place.
    pub fn apply_to(&self, rows: &mut [f32]) {
        layer_norm_rows(rows, self.settings());
    }

    /// Normalised rows.
    pub fn apply(&self, input: &Matrix) -> Matrix {
        let mut output = input.clone();
        self.apply_to(&mut output.values);
        output
    }

    /// Residual connection and layer norm: normalises `rows + added + offset`.
    pub fn add(&self, rows: &mut [f32], added: &[f32], offset: &[f32], threads: Threads) {
        let size = ROWS * offset.len();
        match threads {
            Threads::One => add_and_layer_norm_rows(rows, added, offset, self.settings()),
            Threads::All => {
                let parts = rows.par_chunks_mut(size).zip(added.par_chunks(size));
                parts.for_each(|(rows, added)| add_and_layer_norm_rows(rows, added, offset, self.settings()));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::autograd::differences::drawn;
    use crate::tensor::random::SplitMix64;

    #[test]
    fn inference_gives_what_the_training_graph_gives() {
        let mut rng = SplitMix64::new(4);
        let mut parameters = Parameters::default();
        for part in ["gain", "bias"] {
            parameters.add(format!("norm.{part}"), drawn(1, 6, &mut rng));
        }
        let (input, added, offset) = (drawn(70, 6, &mut rng), drawn(70, 6, &mut rng), [0.5; 6]);
        let summed = input.values.iter().zip(&added.values).map(|(x, added)| x + added + 0.5).collect();
        let layer = LayerNorm::of(&parameters, "norm", 1e-5).unwrap();
        let mut tape = Tape::new(&parameters);
        let mut expect = |input: &Matrix, made: &[f32]| {
            let rows = tape.input(input.clone());
            let output = layer_norm(&mut tape, "norm", rows, 1e-5).unwrap();
            let expected = &tape.value(output).values;
            assert!(made.iter().zip(expected).all(|(made, expected)| (made - expected).abs() < 1e-5));
        };
        expect(&input, &layer.apply(&input).values);
        for threads in [Threads::One, Threads::All] {
            let mut rows = input.values.clone();
            layer.add(&mut rows, &added.values, &offset, threads);
            expect(&Matrix::new(70, 6, Vec::clone(&summed)), &rows);
        }
        assert!(LayerNorm::of(&parameters, "other", 1e-5).is_err());
    }
}
