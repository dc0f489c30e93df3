//! LSTMs (Hochreiter and Schmidhuber 1997) over packed sequences, forward and backward, one direction at a time.
//!
//! A step adds the product of the last outputs of all sequences with the recurrent weights to the projected inputs; sequences are in order
//! of decreasing length, so those that go on are the first rows. The inputs of several steps are projected in one product, while the gates
//! are still in the cache.

use std::ops::Range;

use super::add_to;
use crate::autograd::Direction;
use crate::tensor::lstm_cell::{CellStep, CellStepBack};
use crate::tensor::matrix::{Compute, Matrix, Threads, View, ViewMut, WriteMode, multiply_in};
use crate::tensor::segments::Segments;

/// Number of rows whose inputs are projected in one product.
const BLOCK: usize = 256;

/// One direction of an LSTM that was computed.
#[derive(Debug)]
pub(crate) struct Recurrence {
    pub steps: Steps,
    /// In the order of the steps: outputs `[rows, width]` and, where gradients are needed, activated gates `[rows, 4 * width]` and cell
    /// states `[rows, width]`.
    pub outputs: Matrix,
    activated: Vec<f32>,
    cells: Vec<f32>,
}

/// Gradients of one direction: those of the inputs are in the order of the steps, and empty where they are not wanted.
pub(crate) struct RecurrenceGradients {
    pub of_input: Matrix,
    pub of_weights: Matrix,
    pub of_recurrent: Matrix,
    pub of_bias: Matrix,
}

/// The rows of a packed batch in the order in which a recurrence reads them.
#[derive(Debug)]
pub(crate) struct Steps {
    /// Rows of the batch, step by step.
    rows: Vec<usize>,
    /// Start of each step in `rows`, and the end.
    starts: Vec<usize>,
}

impl Steps {
    pub(crate) fn new(segments: &Segments, direction: Direction) -> Steps {
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
    pub(crate) fn scatter(&self, from: &Matrix, to: &mut Matrix, first: usize) {
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

/// The weight of a product.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    /// Of the inputs, `[inputs, 4 * width]`.
    Input,
    /// Of the last outputs, `[width, 4 * width]`.
    Recurrent,
}

/// The forward pass of one direction.
pub(crate) struct Forward<'a, F> {
    pub steps: Steps,
    /// `[4 * width]`.
    pub bias: &'a [f32],
    /// Adds the product of rows with a weight to gates.
    pub add_product: F,
    /// Whether gates and cell states are kept for the backward pass.
    pub keeps: bool,
}

impl<F: Fn(Part, ViewMut<'_>, View<'_>)> Forward<'_, F> {
    pub(crate) fn run(self, x: &Matrix) -> Recurrence {
        let Forward { steps, bias, add_product, keeps } = self;
        let (n_rows, width) = (x.n_rows, bias.len() / 4);
        let mut outputs = Matrix::zeros(n_rows, width);
        let (mut activated, mut cells) = (Vec::new(), Vec::new());
        if keeps {
            (activated, cells) = (Vec::with_capacity(n_rows * 4 * width), Vec::with_capacity(n_rows * width));
        }
        let (mut gathered, mut gates, mut states) = (Vec::new(), Vec::new(), Vec::new());
        for (block, rows_of_block) in steps.blocks() {
            steps.gather(x, rows_of_block.clone(), (0, x.n_cols), &mut gathered);
            gates.clear();
            rows_of_block.clone().for_each(|_| gates.extend_from_slice(bias));
            let n = rows_of_block.len();
            let (to, from) = (ViewMut::of(&mut gates, n, 4 * width), View::of(&gathered, n, x.n_cols));
            add_product(Part::Input, to, from);
            for step in block {
                let (start, n) = steps.at(step);
                let of_step = rows_mut(&mut gates, (start - rows_of_block.start, n), 4 * width);
                if step == 0 {
                    states = vec![0.0; n * width];
                } else {
                    let before = View::of(rows(&outputs.values, (steps.at(step - 1).0, n), width), n, width);
                    let to = ViewMut::of(of_step, n, 4 * width);
                    add_product(Part::Recurrent, to, before);
                }
                states.truncate(n * width);
                let outputs = rows_mut(&mut outputs.values, (start, n), width);
                CellStep { gates: of_step, cells: &mut states, outputs, width }.run();
                if keeps {
                    cells.extend_from_slice(&states);
                }
            }
            if keeps {
                activated.extend_from_slice(&gates);
            }
        }
        Recurrence { steps, outputs, activated, cells }
    }
}

/// The backward pass of one direction.
pub(crate) struct Backward<'a> {
    pub x: &'a Matrix,
    pub input: &'a Matrix,
    pub recurrent: &'a Matrix,
    /// First column of its outputs among those of all directions.
    pub first: usize,
    pub wants_input: bool,
    pub compute: Compute,
    pub threads: Threads,
}

impl Backward<'_> {
    /// The gradients, given that of the outputs of all directions.
    pub(crate) fn run(self, recurrence: &Recurrence, gradient: &Matrix) -> RecurrenceGradients {
        let Backward { x, input, recurrent, first, wants_input, compute, threads } = self;
        let Recurrence { steps, outputs, activated, cells } = recurrence;
        let (n_inputs, width) = (x.n_cols, outputs.n_cols);
        let mut of_weights = Matrix::zeros(n_inputs, 4 * width);
        let mut of_recurrent = Matrix::zeros(width, 4 * width);
        let mut of_bias = Matrix::zeros(1, 4 * width);
        let mut of_input = if wants_input { Matrix::zeros(x.n_rows, n_inputs) } else { Matrix::default() };
        let mut of_outputs = Vec::with_capacity(outputs.values.len());
        steps.gather(gradient, 0..gradient.n_rows, (first, width), &mut of_outputs);
        // Transposed once, not in each step.
        let [input, recurrent] = [input, recurrent].map(transposed);
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
        RecurrenceGradients { of_input, of_weights, of_recurrent, of_bias }
    }
}
