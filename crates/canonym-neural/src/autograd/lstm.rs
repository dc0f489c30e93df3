//! LSTMs (Hochreiter and Schmidhuber 1997) over packed sequences.
//!
//! A step adds the product of the last outputs of all sequences with the recurrent weights to the projected inputs; sequences are in order
//! of decreasing length, so those that go on are the first rows. The inputs of several steps are projected in one product, while the gates
//! are still in the cache. Directions run in parallel.

use std::ops::Range;
use std::sync::Arc;

use rayon::prelude::*;

use super::ops::cpu::add_to;
use super::packs::Side;
use super::{Operation, Tape, Times, Var};
use crate::tensor::lstm_cell::{CellStep, CellStepBack};
use crate::tensor::matrix::{Compute, Matrix, Threads, View, ViewMut, WriteMode, multiply_in};
use crate::tensor::segments::Segments;

/// Number of rows whose inputs are projected in one product.
const BLOCK: usize = 256;

/// Direction in which sequences are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// From first to last.
    Forward,
    /// From last to first.
    Backward,
}

/// The weights of a direction: `input` `[inputs, 4 * width]`, `recurrent` `[width, 4 * width]`, `bias` `[1, 4 * width]`, whose parts are
/// the input gate, the forget gate, the candidate and the output gate.
#[derive(Debug, Clone, Copy)]
pub struct LstmWeights {
    /// Weights of the inputs.
    pub input: Var,
    /// Weights of the last outputs.
    pub recurrent: Var,
    /// Bias of the gates.
    pub bias: Var,
}

/// A recorded LSTM.
#[derive(Debug)]
pub(super) struct Lstm {
    pub input: Var,
    recurrences: Vec<Recurrence>,
    compute: Compute,
}

/// One direction.
#[derive(Debug)]
struct Recurrence {
    weights: LstmWeights,
    steps: Steps,
    /// In the order of the steps: outputs `[rows, width]` and, where gradients are needed, activated gates `[rows, 4 * width]` and cell
    /// states `[rows, width]`.
    outputs: Matrix,
    activated: Vec<f32>,
    cells: Vec<f32>,
}

/// Gradients of one direction: those of the inputs are in the order of the steps.
pub(super) struct LstmGradients {
    pub weights: LstmWeights,
    pub of_weights: Matrix,
    pub of_recurrent: Matrix,
    pub of_bias: Matrix,
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
        let mut sequences: Vec<Range<usize>> = segments.iter().collect();
        sequences.sort_by_key(|rows| std::cmp::Reverse(rows.len()));
        let mut steps = Steps { rows: Vec::with_capacity(segments.n_rows()), starts: vec![0] };
        for at in 0..sequences.first().map_or(0, ExactSizeIterator::len) {
            let row = |rows: &Range<usize>| match direction {
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

    /// Steps whose rows are projected together, and their rows.
    fn blocks(&self) -> Vec<(Range<usize>, Range<usize>)> {
        let mut blocks = Vec::new();
        let mut first = 0;
        while first < self.len() {
            let start = self.starts[first];
            let n = self.starts[first + 1..].iter().take_while(|end| **end - start <= BLOCK).count().max(1);
            blocks.push((first..first + n, start..self.starts[first + n]));
            first += n;
        }
        blocks
    }

    /// Rows of `from` in the order of the steps, `n_cols` columns from `first` on.
    fn gather(&self, from: &Matrix, rows: Range<usize>, (first, n_cols): (usize, usize), to: &mut Vec<f32>) {
        to.clear();
        self.rows[rows].iter().for_each(|row| to.extend_from_slice(&from.row(*row)[first..][..n_cols]));
    }

    /// Adds rows that are in the order of the steps to those of the batch, from the column `first` on.
    fn scatter(&self, from: &Matrix, to: &mut Matrix, first: usize) {
        for (at, row) in self.rows.iter().enumerate() {
            let to = &mut to.row_mut(*row)[first..][..from.n_cols];
            to.iter_mut().zip(from.row(at)).for_each(|(to, from)| *to += from);
        }
    }
}

fn transposed(from: &Matrix) -> Matrix {
    let mut to = Matrix::zeros(from.n_cols, from.n_rows);
    for (row, values) in from.values.chunks_exact(from.n_cols.max(1)).enumerate() {
        values.iter().enumerate().for_each(|(col, value)| to.values[col * from.n_rows + row] = *value);
    }
    to
}

fn rows(values: &[f32], (start, n): (usize, usize), n_cols: usize) -> &[f32] {
    &values[start * n_cols..(start + n) * n_cols]
}

fn rows_mut(values: &mut [f32], (start, n): (usize, usize), n_cols: usize) -> &mut [f32] {
    &mut values[start * n_cols..(start + n) * n_cols]
}

impl Tape<'_> {
    /// The outputs of LSTMs in one or both directions side by side, `[rows, directions * width]`, for inputs `[rows, inputs]`. States are
    /// zero at first.
    pub fn lstm(&mut self, input: Var, directions: &[(Direction, LstmWeights)], segments: &Arc<Segments>) -> Var {
        let forward = |(direction, weights): &(Direction, LstmWeights)| {
            self.recur(input, *weights, Steps::new(segments, *direction))
        };
        let recurrences: Vec<Recurrence> = match self.threads {
            Threads::One => directions.iter().map(forward).collect(),
            Threads::All => directions.par_iter().map(forward).collect(),
        };
        let width = recurrences[0].outputs.n_cols;
        let mut value = Matrix::zeros(self.value(input).n_rows, width * recurrences.len());
        for (at, recurrence) in recurrences.iter().enumerate() {
            recurrence.steps.scatter(&recurrence.outputs, &mut value, at * width);
        }
        let weights = directions.iter().flat_map(|(_, weights)| [weights.input, weights.recurrent, weights.bias]);
        let sources: Vec<Var> = [input].into_iter().chain(weights).collect();
        self.push(value, Operation::Lstm(Box::new(Lstm { input, recurrences, compute: self.compute })), &sources)
    }

    /// Threads of a product within a direction: directions alone occupy two.
    fn threads_within(&self) -> Threads {
        if rayon::current_num_threads() > 2 { self.threads } else { Threads::One }
    }

    fn recur(&self, input: Var, weights: LstmWeights, steps: Steps) -> Recurrence {
        let (x, bias) = (self.value(input), &self.value(weights.bias).values);
        let (n_rows, width) = (x.n_rows, self.value(weights.recurrent).n_rows);
        let threads = self.threads_within();
        let times =
            |weight: Var| Times { weight, side: Side::Forward, compute: self.compute, mode: WriteMode::Add, threads };
        let is_kept = [input, weights.input, weights.recurrent, weights.bias].into_iter().any(|var| self.wants(var));
        let mut outputs = Matrix::zeros(n_rows, width);
        let (mut activated, mut cells) = (Vec::new(), Vec::new());
        if is_kept {
            (activated, cells) = (Vec::with_capacity(n_rows * 4 * width), Vec::with_capacity(n_rows * width));
        }
        let (mut gathered, mut gates, mut states) = (Vec::new(), Vec::new(), Vec::new());
        for (block, rows_of_block) in steps.blocks() {
            steps.gather(x, rows_of_block.clone(), (0, x.n_cols), &mut gathered);
            gates.clear();
            rows_of_block.clone().for_each(|_| gates.extend_from_slice(bias));
            let n = rows_of_block.len();
            let (to, from) = (ViewMut::of(&mut gates, n, 4 * width), View::of(&gathered, n, x.n_cols));
            self.times_weight(to, from, times(weights.input));
            for step in block {
                let (start, n) = steps.at(step);
                let of_step = rows_mut(&mut gates, (start - rows_of_block.start, n), 4 * width);
                if step == 0 {
                    states = vec![0.0; n * width];
                } else {
                    let before = View::of(rows(&outputs.values, (steps.at(step - 1).0, n), width), n, width);
                    let to = ViewMut::of(of_step, n, 4 * width);
                    self.times_weight(to, before, times(weights.recurrent));
                }
                states.truncate(n * width);
                let outputs = rows_mut(&mut outputs.values, (start, n), width);
                CellStep { gates: of_step, cells: &mut states, outputs, width }.run();
                if is_kept {
                    cells.extend_from_slice(&states);
                }
            }
            if is_kept {
                activated.extend_from_slice(&gates);
            }
        }
        Recurrence { weights, steps, outputs, activated, cells }
    }

    /// Gradients of the inputs and of the weights of each direction.
    pub(super) fn lstm_back(&self, lstm: &Lstm, gradient: &Matrix) -> (Option<Matrix>, Vec<LstmGradients>) {
        let x = self.value(lstm.input);
        let back = |(at, recurrence)| self.recur_back(lstm, recurrence, gradient, at);
        let numbered: Vec<(usize, &Recurrence)> = lstm.recurrences.iter().enumerate().collect();
        let each: Vec<(Matrix, LstmGradients)> = match self.threads {
            Threads::One => numbered.into_iter().map(back).collect(),
            Threads::All => numbered.into_par_iter().map(back).collect(),
        };
        let mut of_input = self.wants(lstm.input).then(|| Matrix::zeros(x.n_rows, x.n_cols));
        if let Some(to) = &mut of_input {
            for ((ordered, _), recurrence) in each.iter().zip(&lstm.recurrences) {
                recurrence.steps.scatter(ordered, to, 0);
            }
        }
        (of_input, each.into_iter().map(|(_, gradients)| gradients).collect())
    }

    /// Gradients of one direction, which is `at` among the outputs: those of the inputs in the order of the steps, and those of the weights.
    fn recur_back(
        &self,
        lstm: &Lstm,
        recurrence: &Recurrence,
        gradient: &Matrix,
        at: usize,
    ) -> (Matrix, LstmGradients) {
        let (x, compute) = (self.value(lstm.input), lstm.compute);
        let Recurrence { weights, steps, outputs, activated, cells } = recurrence;
        let (n_inputs, width, threads) = (x.n_cols, outputs.n_cols, self.threads_within());
        let mut of_weights = Matrix::zeros(n_inputs, 4 * width);
        let mut of_recurrent = Matrix::zeros(width, 4 * width);
        let mut of_bias = Matrix::zeros(1, 4 * width);
        let mut of_input = if self.wants(lstm.input) { Matrix::zeros(x.n_rows, n_inputs) } else { Matrix::default() };
        let mut of_outputs = Vec::with_capacity(outputs.values.len());
        steps.gather(gradient, 0..gradient.n_rows, (at * width, width), &mut of_outputs);
        // Transposed once, not in each step.
        let [input, recurrent] = [weights.input, weights.recurrent].map(|weight| transposed(self.value(weight)));
        let (mut of_cells, zeros): (Vec<f32>, _) = (Vec::new(), vec![0.0; steps.at(0).1 * width]);
        let (mut gathered, mut of_gates) = (Vec::new(), Vec::new());
        for (block, rows_of_block) in steps.blocks().into_iter().rev() {
            of_gates.clear();
            of_gates.extend_from_slice(rows(activated, (rows_of_block.start, rows_of_block.len()), 4 * width));
            for step in block.clone().rev() {
                let (start, n) = steps.at(step);
                // Sequences that end here join with a gradient of zero.
                of_cells.resize(n * width, 0.0);
                let before = match step {
                    0 => &zeros[..],
                    _ => rows(cells, (steps.at(step - 1).0, n), width),
                };
                let of_step = rows_mut(&mut of_gates, (start - rows_of_block.start, n), 4 * width);
                CellStepBack {
                    gates: of_step,
                    before,
                    after: rows(cells, (start, n), width),
                    of_outputs: rows(&of_outputs, (start, n), width),
                    of_cells: &mut of_cells,
                    width,
                }
                .run();
                if step > 0 {
                    let to = rows_mut(&mut of_outputs, (steps.at(step - 1).0, n), width);
                    let (to, from) = (ViewMut::of(to, n, width), View::of(of_step, n, 4 * width));
                    multiply_in(compute, to, from, recurrent.view(), WriteMode::Add, threads);
                }
            }
            let n = rows_of_block.len();
            let gates = View::of(&of_gates, n, 4 * width);
            of_gates.chunks_exact(4 * width).for_each(|row| add_to(&mut of_bias.values, row));
            steps.gather(x, rows_of_block.clone(), (0, n_inputs), &mut gathered);
            let seen = View::of(&gathered, n, n_inputs).transposed();
            multiply_in(compute, of_weights.view_mut(), seen, gates, WriteMode::Add, threads);
            if !of_input.values.is_empty() {
                let to = rows_mut(&mut of_input.values, (rows_of_block.start, n), n_inputs);
                let to = ViewMut::of(to, n, n_inputs);
                multiply_in(compute, to, gates, input.view(), WriteMode::Replace, threads);
            }
            // Each row beside the output of the step before; the first step has none.
            gathered.clear();
            for step in block.filter(|step| *step > 0) {
                gathered.extend_from_slice(rows(&outputs.values, (steps.at(step - 1).0, steps.at(step).1), width));
            }
            let n_later = gathered.len() / width;
            if n_later > 0 {
                let later = gates.rows(n - n_later, n_later);
                let seen = View::of(&gathered, n_later, width).transposed();
                multiply_in(compute, of_recurrent.view_mut(), seen, later, WriteMode::Add, threads);
            }
        }
        (of_input, LstmGradients { weights: *weights, of_weights, of_recurrent, of_bias })
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
        tape.lstm(input, &[(direction, LstmWeights { input: weight, recurrent, bias })], &segments)
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
