//! The cell of an LSTM, forward and backward, over rows of fused gates.

use crate::tensor::elementwise::{sigmoid, tanh};
use crate::tensor::matrix::{Vectorised, vectorised};

/// One step of several sequences. All slices have a row for each; gates have the parts input, forget, candidate and output.
pub struct CellStep<'a> {
    /// Gates before their activation, `[rows, 4 * width]`; replaced by the activated ones.
    pub gates: &'a mut [f32],
    /// Cell states, `[rows, width]`; those before the step are replaced by those after it.
    pub cells: &'a mut [f32],
    /// Outputs, `[rows, width]`.
    pub outputs: &'a mut [f32],
    /// Number of units.
    pub width: usize,
}

/// The backward pass of a step.
pub struct CellStepBack<'a> {
    /// Activated gates, `[rows, 4 * width]`; replaced by the gradients of the gates before their activation.
    pub gates: &'a mut [f32],
    /// Cell states before the step, `[rows, width]`.
    pub before: &'a [f32],
    /// Cell states after the step, `[rows, width]`.
    pub after: &'a [f32],
    /// Gradients of the outputs, `[rows, width]`.
    pub of_outputs: &'a [f32],
    /// Gradients of the cell states, `[rows, width]`; those after the step are replaced by those before it.
    pub of_cells: &'a mut [f32],
    /// Number of units.
    pub width: usize,
}

impl CellStep<'_> {
    /// Makes the step.
    pub fn run(self) {
        vectorised(self);
    }
}

impl CellStepBack<'_> {
    /// Makes the step back.
    pub fn run(self) {
        vectorised(self);
    }
}

impl Vectorised for CellStep<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let width = self.width;
        let rows = self.gates.chunks_exact_mut(4 * width).zip(self.cells.chunks_exact_mut(width));
        for ((gates, cells), outputs) in rows.zip(self.outputs.chunks_exact_mut(width)) {
            let (input, rest) = gates.split_at_mut(width);
            let (forget, rest) = rest.split_at_mut(width);
            let (candidate, output) = rest.split_at_mut(width);
            for unit in 0..width {
                input[unit] = sigmoid(input[unit]);
                forget[unit] = sigmoid(forget[unit]);
                candidate[unit] = tanh(candidate[unit]);
                output[unit] = sigmoid(output[unit]);
                cells[unit] = forget[unit] * cells[unit] + input[unit] * candidate[unit];
                outputs[unit] = output[unit] * tanh(cells[unit]);
            }
        }
    }
}

impl Vectorised for CellStepBack<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let width = self.width;
        let states = self.before.chunks_exact(width).zip(self.after.chunks_exact(width));
        let gradients = self.of_outputs.chunks_exact(width).zip(self.of_cells.chunks_exact_mut(width));
        for ((gates, (before, after)), (of_output, of_cell)) in
            self.gates.chunks_exact_mut(4 * width).zip(states).zip(gradients)
        {
            let (input, rest) = gates.split_at_mut(width);
            let (forget, rest) = rest.split_at_mut(width);
            let (candidate, output) = rest.split_at_mut(width);
            for unit in 0..width {
                let (i, f, g, o) = (input[unit], forget[unit], candidate[unit], output[unit]);
                let squashed = tanh(after[unit]);
                let cell = of_cell[unit] + of_output[unit] * o * (1.0 - squashed * squashed);
                input[unit] = cell * g * i * (1.0 - i);
                forget[unit] = cell * before[unit] * f * (1.0 - f);
                candidate[unit] = cell * i * (1.0 - g * g);
                output[unit] = of_output[unit] * squashed * o * (1.0 - o);
                of_cell[unit] = cell * f;
            }
        }
    }
}
