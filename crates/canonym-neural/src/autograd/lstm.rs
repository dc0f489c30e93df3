//! The recurrence of an LSTM (Hochreiter and Schmidhuber 1997) over packed sequences.
//!
//! Inputs are projected for all time steps in one product before ([`Tape::linear`]). A step then adds the product of the last outputs of
//! all sequences with the recurrent weights; sequences are in order of decreasing length, so those that go on are the first rows.

use std::sync::Arc;

use super::packs::Side;
use super::{Operation, Tape, Var};
use crate::tensor::lstm_cell::{CellStep, CellStepBack};
use crate::tensor::matrix::{Compute, Matrix, View, ViewMut, WriteMode, multiply_in};
use crate::tensor::segments::Segments;

/// Direction in which sequences are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// From first to last.
    Forward,
    /// From last to first.
    Backward,
}

/// A recorded recurrence.
#[derive(Debug)]
pub(super) struct Lstm {
    pub gates: Var,
    pub recurrent: Var,
    steps: Steps,
    compute: Compute,
    /// Activated gates in the order of the steps, `[rows, 4 * width]`.
    activated: Matrix,
    /// Cell states after each step, in the order of the steps, `[rows, width]`.
    cells: Matrix,
}

/// The rows of a packed batch in the order in which a recurrence reads them.
#[derive(Debug)]
struct Steps {
    /// Rows of the batch, step by step.
    rows: Vec<usize>,
    /// Start of each step in `rows`, and the end.
    starts: Vec<usize>,
}

impl Steps {
    fn new(segments: &Segments, direction: Direction) -> Steps {
        let mut sequences: Vec<std::ops::Range<usize>> = segments.iter().collect();
        sequences.sort_by_key(|rows| std::cmp::Reverse(rows.len()));
        let mut steps = Steps { rows: Vec::with_capacity(segments.n_rows()), starts: vec![0] };
        for at in 0..sequences.first().map_or(0, ExactSizeIterator::len) {
            let row = |rows: &std::ops::Range<usize>| match direction {
                Direction::Forward => rows.start + at,
                Direction::Backward => rows.end - 1 - at,
            };
            steps.rows.extend(sequences.iter().take_while(|rows| rows.len() > at).map(row));
            steps.starts.push(steps.rows.len());
        }
        steps
    }

    fn len(&self) -> usize {
        self.starts.len() - 1
    }

    /// Start and number of rows of a step.
    fn at(&self, step: usize) -> (usize, usize) {
        (self.starts[step], self.starts[step + 1] - self.starts[step])
    }

    /// The rows of `from` in the order of the steps.
    fn ordered(&self, from: &Matrix) -> Matrix {
        let mut values = Vec::with_capacity(from.values.len());
        self.rows.iter().for_each(|row| values.extend_from_slice(from.row(*row)));
        Matrix::new(from.n_rows, from.n_cols, values)
    }

    /// Rows that are in the order of the steps, back in that of the batch.
    fn restored(&self, from: &Matrix) -> Matrix {
        let mut to = Matrix::zeros(from.n_rows, from.n_cols);
        for (at, row) in self.rows.iter().enumerate() {
            to.row_mut(*row).copy_from_slice(from.row(at));
        }
        to
    }
}

fn rows(values: &[f32], (start, n): (usize, usize), n_cols: usize) -> &[f32] {
    &values[start * n_cols..(start + n) * n_cols]
}

fn rows_mut(values: &mut [f32], (start, n): (usize, usize), n_cols: usize) -> &mut [f32] {
    &mut values[start * n_cols..(start + n) * n_cols]
}

impl Tape<'_> {
    /// The outputs of an LSTM in one direction: `gates` are the projected inputs with bias, `[rows, 4 * width]`, whose parts are the input
    /// gate, the forget gate, the candidate and the output gate; `recurrent` is `[width, 4 * width]`. States are zero at first.
    pub fn lstm(&mut self, gates: Var, recurrent: Var, segments: &Arc<Segments>, direction: Direction) -> Var {
        let width = self.value(recurrent).n_rows;
        let steps = Steps::new(segments, direction);
        let mut activated = steps.ordered(self.value(gates));
        let mut outputs = Matrix::zeros(activated.n_rows, width);
        let mut cells = outputs.clone();
        let mut states = Vec::new();
        for step in 0..steps.len() {
            let (start, n) = steps.at(step);
            let of_step = rows_mut(&mut activated.values, (start, n), 4 * width);
            if step == 0 {
                states = vec![0.0; n * width];
            } else {
                let before = rows(&outputs.values, (steps.at(step - 1).0, n), width);
                let to = ViewMut::of(of_step, n, 4 * width);
                self.times_weight(
                    self.compute,
                    to,
                    View::of(before, n, width),
                    (recurrent, Side::Forward),
                    WriteMode::Add,
                );
            }
            states.truncate(n * width);
            let outputs = rows_mut(&mut outputs.values, (start, n), width);
            CellStep { gates: of_step, cells: &mut states, outputs, width }.run();
            rows_mut(&mut cells.values, (start, n), width).copy_from_slice(&states);
        }
        let value = steps.restored(&outputs);
        let lstm = Lstm { gates, recurrent, steps, compute: self.compute, activated, cells };
        self.push(value, Operation::Lstm(Box::new(lstm)), &[gates, recurrent])
    }

    /// Gradients of the projected inputs and of the recurrent weights.
    pub(super) fn lstm_back(&self, lstm: &Lstm, output: &Matrix, gradient: &Matrix) -> (Matrix, Option<Matrix>) {
        let Lstm { recurrent, steps, compute, activated, cells, .. } = lstm;
        let width = output.n_cols;
        let mut of_gates = activated.clone();
        let mut of_outputs = steps.ordered(gradient);
        let mut of_cells: Vec<f32> = Vec::new();
        let zeros = vec![0.0; steps.at(0).1 * width];
        for step in (0..steps.len()).rev() {
            let (start, n) = steps.at(step);
            // Sequences that end here join with a gradient of zero.
            of_cells.resize(n * width, 0.0);
            let before = match step {
                0 => &zeros[..],
                _ => rows(&cells.values, (steps.at(step - 1).0, n), width),
            };
            let of_step = rows_mut(&mut of_gates.values, (start, n), 4 * width);
            CellStepBack {
                gates: of_step,
                before,
                after: rows(&cells.values, (start, n), width),
                of_outputs: rows(&of_outputs.values, (start, n), width),
                of_cells: &mut of_cells,
                width,
            }
            .run();
            if step > 0 {
                let to = rows_mut(&mut of_outputs.values, (steps.at(step - 1).0, n), width);
                let from = View::of(of_step, n, 4 * width);
                self.times_weight(
                    *compute,
                    ViewMut::of(to, n, width),
                    from,
                    (*recurrent, Side::Backward),
                    WriteMode::Add,
                );
            }
        }
        let of_recurrent = self.nodes[recurrent.0].tracked.then(|| {
            // Each row beside the output of the step before; the first step has none.
            let ordered = steps.ordered(output);
            let mut to = Matrix::zeros(width, 4 * width);
            let n_first = steps.at(0).1;
            let mut before = Vec::with_capacity(ordered.values.len());
            for step in 1..steps.len() {
                before.extend_from_slice(rows(&ordered.values, (steps.at(step - 1).0, steps.at(step).1), width));
            }
            let n_rows = ordered.n_rows - n_first;
            if n_rows > 0 {
                let later = rows(&of_gates.values, (n_first, n_rows), 4 * width);
                let seen = View::of(&before, n_rows, width).transposed();
                let later = View::of(later, n_rows, 4 * width);
                multiply_in(*compute, to.view_mut(), seen, later, WriteMode::Replace, self.threads);
            }
            to
        });
        (steps.restored(&of_gates), of_recurrent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::autograd::differences::{check, drawn};
    use crate::tensor::parameters::Parameters;
    use crate::tensor::random::SplitMix64;

    fn parameters() -> Parameters {
        let mut rng = SplitMix64::new(3);
        let mut parameters = Parameters::default();
        for (name, n_rows, n_cols) in [("input", 9, 4), ("weight", 4, 12), ("bias", 1, 12), ("recurrent", 3, 12)] {
            parameters.add(name, drawn(n_rows, n_cols, &mut rng));
        }
        parameters
    }

    fn outputs(tape: &mut Tape<'_>, lengths: &[usize], direction: Direction) -> Var {
        let names = ["input", "weight", "bias", "recurrent"];
        let [input, weight, bias, recurrent] = names.map(|name| tape.parameter(name).unwrap());
        let segments = Arc::new(Segments::of_lengths(lengths.iter().copied()));
        let gates = tape.linear(input, weight, Some(bias));
        tape.lstm(gates, recurrent, &segments, direction)
    }

    #[test]
    fn an_lstm_has_the_gradient_of_its_differences() {
        for direction in [Direction::Forward, Direction::Backward] {
            check(&parameters(), |tape| outputs(tape, &[2, 4, 1, 2], direction));
            check(&parameters(), |tape| outputs(tape, &[9], direction));
        }
    }

    #[test]
    fn the_cell_follows_the_published_equations() {
        let parameters = parameters();
        let mut tape = Tape::new(&parameters);
        let found = outputs(&mut tape, &[4, 5], Direction::Forward);
        let get = |name: &str| parameters.get(name).unwrap();
        let sigmoid = |x: f32| 1.0 / (1.0 + (-x).exp());
        for sequence in [0..4, 4..9] {
            let (mut output, mut cell) = ([0.0_f32; 3], [0.0_f32; 3]);
            for row in sequence {
                let gate = |at: usize| -> f32 {
                    let of_input = (0..4).map(|col| get("input").row(row)[col] * get("weight").row(col)[at]);
                    let of_output = (0..3).map(|unit| output[unit] * get("recurrent").row(unit)[at]);
                    of_input.chain(of_output).sum::<f32>() + get("bias").values[at]
                };
                let next: Vec<(f32, f32)> = (0..3)
                    .map(|unit| {
                        let (input, forget) = (sigmoid(gate(unit)), sigmoid(gate(3 + unit)));
                        let cell = forget * cell[unit] + input * gate(6 + unit).tanh();
                        (sigmoid(gate(9 + unit)) * cell.tanh(), cell)
                    })
                    .collect();
                for (unit, (next_output, next_cell)) in next.into_iter().enumerate() {
                    (output[unit], cell[unit]) = (next_output, next_cell);
                    assert!((tape.value(found).row(row)[unit] - next_output).abs() < 1e-5);
                }
            }
        }
    }

    #[test]
    fn sequences_do_not_see_each_other_and_a_direction_reads_from_the_other_end() {
        let parameters = parameters();
        let values = |lengths: &[usize], direction| {
            let mut tape = Tape::new(&parameters);
            let found = outputs(&mut tape, lengths, direction);
            tape.value(found).clone()
        };
        let apart = values(&[3, 6], Direction::Forward);
        let joint = values(&[9], Direction::Forward);
        assert_eq!(apart.row(2), joint.row(2));
        assert_ne!(apart.row(3), joint.row(3));
        let (apart, joint) = (values(&[3, 6], Direction::Backward), values(&[9], Direction::Backward));
        assert_eq!(apart.row(3), joint.row(3));
        assert_ne!(apart.row(2), joint.row(2));
    }
}
