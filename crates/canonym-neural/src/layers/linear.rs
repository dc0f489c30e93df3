//! Linear layers, `input · weight + bias`, with the weights `NAME.weight` `[n_in, n_out]` and `NAME.bias` `[1, n_out]`.
//!
//! Inference has the weight as it is stored ([`Linear`]), or in panels for inputs with few rows ([`PanelLinear`]).

use canonym_core::Result;

use crate::autograd::{Tape, Var};
use crate::tensor::matrix::{Compute, Matrix, Threads, View, ViewMut, WriteMode, multiply};
use crate::tensor::panels::Panels;
use crate::tensor::parameters::Parameters;

/// The layer in the training graph.
///
/// # Errors
/// If a weight is missing.
pub fn linear(tape: &mut Tape<'_>, name: &str, input: Var) -> Result<Var> {
    let weight = tape.parameter(&format!("{name}.weight"))?;
    let bias = tape.parameter(&format!("{name}.bias"))?;
    Ok(tape.linear(input, weight, Some(bias)))
}

/// The layer for inference.
#[derive(Debug, Clone)]
pub struct Linear {
    /// `[n_in, n_out]`.
    pub weight: Matrix,
    /// `[n_out]`.
    pub bias: Vec<f32>,
}

impl Linear {
    /// The layer `name`.
    ///
    /// # Errors
    /// If a weight is missing.
    pub fn of(parameters: &Parameters, name: &str) -> Result<Linear> {
        let weight = parameters.get(&format!("{name}.weight"))?.clone();
        Ok(Linear { weight, bias: bias(parameters, name)? })
    }

    /// Outputs, `[rows, n_out]`.
    pub fn apply(&self, input: &Matrix, threads: Threads) -> Matrix {
        let mut output = Matrix::zeros(input.n_rows, self.weight.n_cols);
        self.fill(&mut output.values, 0, self.weight.n_cols);
        multiply(output.view_mut(), input.view(), self.weight.view(), WriteMode::Add, threads);
        output
    }

    /// Writes the outputs to the columns of `to` from `first` on, on one thread; `to` has `n_cols` columns.
    pub fn apply_to_columns(&self, input: View<'_>, to: &mut [f32], first: usize, n_cols: usize) {
        self.fill(&mut to[..input.n_rows * n_cols], first, n_cols);
        let out = ViewMut::of(to, input.n_rows, n_cols).columns(first, self.weight.n_cols);
        multiply(out, input, self.weight.view(), WriteMode::Add, Threads::One);
    }

    fn fill(&self, to: &mut [f32], first: usize, n_cols: usize) {
        to.chunks_exact_mut(n_cols).for_each(|row| row[first..][..self.bias.len()].copy_from_slice(&self.bias));
    }
}

/// The layer for inference, with its weight in panels.
#[derive(Debug)]
pub struct PanelLinear {
    weight: Panels,
    /// `[n_out]`.
    pub bias: Vec<f32>,
}

impl PanelLinear {
    /// The layer `name`, whose products are computed in `compute`.
    ///
    /// # Errors
    /// If a weight is missing.
    pub fn of(parameters: &Parameters, name: &str, compute: Compute) -> Result<PanelLinear> {
        let weight = Panels::of(parameters.get(&format!("{name}.weight"))?, compute);
        Ok(PanelLinear { weight, bias: bias(parameters, name)? })
    }

    /// `input · weight`, without the bias.
    pub fn multiply(&self, input: &[f32], n_rows: usize, to: &mut Vec<f32>, threads: Threads) {
        to.resize(n_rows * self.weight.n_out(), 0.0);
        self.weight.multiply(View::of(input, n_rows, self.weight.n_in()), to, threads);
    }

    /// `input · weight + bias`.
    pub fn apply(&self, input: &[f32], n_rows: usize, to: &mut Vec<f32>, threads: Threads) {
        self.multiply(input, n_rows, to, threads);
        for row in to.chunks_exact_mut(self.bias.len()) {
            row.iter_mut().zip(&self.bias).for_each(|(x, bias)| *x += bias);
        }
    }
}

fn bias(parameters: &Parameters, name: &str) -> Result<Vec<f32>> {
    Ok(parameters.get(&format!("{name}.bias"))?.values.clone())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::autograd::differences::drawn;
    use crate::tensor::random::SplitMix64;

    #[test]
    fn inference_gives_what_the_training_graph_gives() {
        let mut rng = SplitMix64::new(3);
        let mut parameters = Parameters::default();
        parameters.add_linear("layer", 5, 60, &mut rng);
        let input = drawn(7, 5, &mut rng);
        let mut tape = Tape::new(&parameters);
        let rows = tape.input(input.clone());
        let output = linear(&mut tape, "layer", rows).unwrap();
        let expected = &tape.value(output).values;
        let near = |made: &[f32]| made.iter().zip(expected).all(|(made, expected)| (made - expected).abs() < 1e-5);
        let layer = Linear::of(&parameters, "layer").unwrap();
        assert!(near(&layer.apply(&input, Threads::One).values) && near(&layer.apply(&input, Threads::All).values));
        let mut columns = Matrix::zeros(7, 62);
        layer.apply_to_columns(input.view(), &mut columns.values, 1, 62);
        assert!(near(&columns.values.chunks_exact(62).flat_map(|row| &row[1..61]).copied().collect::<Vec<f32>>()));
        assert!(columns.values.chunks_exact(62).all(|row| row[0] == 0.0 && row[61] == 0.0));
        let mut made = Vec::new();
        let panels = PanelLinear::of(&parameters, "layer", Compute::default()).unwrap();
        panels.apply(&input.values, 7, &mut made, Threads::One);
        assert!(near(&made));
        assert!(Linear::of(&parameters, "other").is_err() && linear(&mut tape, "other", rows).is_err());
    }
}
