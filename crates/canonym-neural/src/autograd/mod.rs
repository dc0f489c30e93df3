//! Reverse-mode automatic differentiation: operations are recorded on a tape and traversed backwards once.
//!
//! Each value is a [`Matrix`]; sequences are packed (see [`crate::tensor::segments`]). A model records its forward pass, an objective
//! computes the loss and its gradient with respect to the output, and [`Tape::backward`] propagates it to the parameters.
//!
//! ```
//! use canonym_neural::tensor::matrix::Matrix;
//! use canonym_neural::tensor::parameters::Parameters;
//! use canonym_neural::autograd::Tape;
//!
//! let mut parameters = Parameters::default();
//! parameters.add("weight", Matrix::new(2, 1, vec![3.0, 4.0]));
//! let mut tape = Tape::new(&parameters);
//! let input = tape.input(Matrix::new(1, 2, vec![10.0, 20.0]));
//! let weight = tape.parameter("weight").unwrap();
//! let output = tape.linear(input, weight, None);
//! assert_eq!(tape.value(output).values, [110.0]);
//! let gradients = tape.backward([(output, Matrix::new(1, 1, vec![1.0]))]);
//! assert_eq!(gradients.of(0).unwrap().matrix().values, [10.0, 20.0]);
//! ```

mod attention;
mod backward;
#[cfg(test)]
pub(crate) mod differences;
mod gradients;
mod lstm;
pub(crate) mod ops;
mod packs;

use std::sync::Arc;

use crate::tensor::elementwise::{self, Activation, Norm};
use crate::tensor::matrix::{Compute, Matrix, Threads, View, ViewMut, WriteMode, multiply_in};
use crate::tensor::parameters::Parameters;
use crate::tensor::random::{self, SplitMix64};
use crate::tensor::segments::Segments;
use crate::tensor::tiles;
use ops::cpu;
use packs::Side;

pub use crate::tensor::elementwise::softmax;
pub use attention::AttentionConfig;
pub use gradients::{Gradient, Gradients};
pub use lstm::{Direction, LstmWeights};
pub use packs::Packs;

/// Default epsilon of layer norms, as in BERT.
pub const NORM_EPSILON: f32 = 1e-12;

/// A value on a tape.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Var(usize);

/// The operations of one forward pass.
#[derive(Debug)]
pub struct Tape<'a> {
    parameters: &'a Parameters,
    nodes: Vec<Node>,
    threads: Threads,
    compute: Compute,
    packs: Arc<Packs>,
    /// Whether parameters get gradients.
    learns: bool,
}

#[derive(Debug)]
struct Node {
    value: Matrix,
    operation: Operation,
    /// Whether a gradient is needed for this node or any of its inputs.
    tracked: bool,
}

#[derive(Debug)]
enum Operation {
    Input,
    Parameter(usize),
    Linear(Linear),
    Relu(Var),
    Activate(Var, Activation),
    Attention(Box<attention::Attention>),
    Lstm(Box<lstm::Lstm>),
    Scale { input: Var, factors: Vec<f32> },
    Add(Var, Var),
    Concat(Vec<Var>),
    Stack(Var, Var),
    Unfold { input: Var, offsets: Vec<isize>, segments: Arc<Segments> },
    Gather { table: Var, rows: Vec<u32> },
    LayerNorm { input: Var, gain: Var, bias: Var, inverse: Vec<f32> },
    Normalise { input: Var, norms: Vec<f32> },
    SegmentMax { input: Var, rows: Vec<u32> },
    SegmentMean { input: Var, segments: Arc<Segments> },
    SegmentSoftmax { input: Var, segments: Arc<Segments> },
    SegmentSum { input: Var, weights: Var, segments: Arc<Segments> },
}

/// A linear layer.
#[derive(Debug, Clone, Copy)]
struct Linear {
    input: Var,
    first_column: usize,
    weight: Var,
    /// Whether the weight is stored as `[out, in]`.
    transposed: bool,
    bias: Option<Var>,
    compute: Compute,
}

/// A product with a weight.
#[derive(Debug, Clone, Copy)]
struct Times {
    weight: Var,
    side: Side,
    compute: Compute,
    mode: WriteMode,
    threads: Threads,
}

impl<'a> Tape<'a> {
    /// An empty tape over `parameters` that uses all threads.
    pub fn new(parameters: &'a Parameters) -> Tape<'a> {
        let packs = Arc::new(Packs::new(parameters.len()));
        Tape { parameters, nodes: Vec::new(), threads: Threads::All, compute: Compute::F32, packs, learns: true }
    }

    /// Computes values alone: no parameter gets a gradient, and nothing is kept for one.
    #[must_use]
    pub fn without_gradients(self) -> Tape<'a> {
        Tape { learns: false, ..self }
    }

    /// An empty tape that uses only the calling thread. Tapes of the same parameters on other threads share the packed weights.
    pub fn of_one_thread(parameters: &'a Parameters, packs: &Arc<Packs>) -> Tape<'a> {
        Tape { threads: Threads::One, packs: packs.clone(), ..Tape::new(parameters) }
    }

    /// Sets the precision of matrix products in linear layers and attention, forward and backward; returns the previous one.
    pub fn compute_in(&mut self, compute: Compute) -> Compute {
        std::mem::replace(&mut self.compute, compute)
    }

    /// The value of a variable.
    pub fn value(&self, var: Var) -> &Matrix {
        match self.nodes[var.0].operation {
            Operation::Parameter(row) => self.parameters.at(row),
            _ => &self.nodes[var.0].value,
        }
    }

    fn push(&mut self, value: Matrix, operation: Operation, sources: &[Var]) -> Var {
        let tracked = sources.iter().any(|source| self.nodes[source.0].tracked);
        self.nodes.push(Node { value, operation, tracked });
        Var(self.nodes.len() - 1)
    }

    /// Records an input, for which no gradient is computed.
    pub fn input(&mut self, value: Matrix) -> Var {
        self.push(value, Operation::Input, &[])
    }

    /// Records a parameter by name; frozen parameters get no gradient.
    pub fn parameter(&mut self, name: &str) -> canonym_core::Result<Var> {
        let row = self.parameters.find(name)?;
        let tracked = self.learns && !self.parameters.is_frozen(row);
        self.nodes.push(Node { value: Matrix::default(), operation: Operation::Parameter(row), tracked });
        Ok(Var(self.nodes.len() - 1))
    }

    /// `input · weight + bias`: `[rows, in]`, `[in, out]`, `[1, out]` to `[rows, out]`.
    pub fn linear(&mut self, input: Var, weight: Var, bias: Option<Var>) -> Var {
        self.linear_of_columns(input, 0, weight, bias)
    }

    /// As [`Tape::linear`], on the columns of the input from `first_column`, as many as the weight has rows.
    pub fn linear_of_columns(&mut self, input: Var, first_column: usize, weight: Var, bias: Option<Var>) -> Var {
        self.record_linear(Linear { input, first_column, weight, transposed: false, bias, compute: self.compute })
    }

    /// `input · tableᵀ + bias`, for output weights that are tied to an embedding table: `[rows, width]`, `[n, width]`, `[1, n]` to
    /// `[rows, n]`.
    pub fn linear_tied(&mut self, input: Var, table: Var, bias: Option<Var>) -> Var {
        let linear = Linear { input, first_column: 0, weight: table, transposed: true, bias, compute: self.compute };
        self.record_linear(linear)
    }

    fn record_linear(&mut self, linear: Linear) -> Var {
        let Linear { input, first_column, weight, transposed, bias, compute } = linear;
        let (x, w) = (self.value(input), self.value(weight));
        let (n_in, n_out) = if transposed { (w.n_cols, w.n_rows) } else { (w.n_rows, w.n_cols) };
        let (mut value, mode) = match bias {
            Some(bias) => (Matrix::new(x.n_rows, n_out, self.value(bias).values.repeat(x.n_rows)), WriteMode::Add),
            None => (Matrix::zeros(x.n_rows, n_out), WriteMode::Replace),
        };
        let side = if transposed { Side::Backward } else { Side::Forward };
        let times = Times { weight, side, compute, mode, threads: self.threads };
        self.times_weight(value.view_mut(), x.view().columns(first_column, n_in), times);
        let sources: Vec<Var> = [input, weight].into_iter().chain(bias).collect();
        self.push(value, Operation::Linear(linear), &sources)
    }

    /// The parameter row of a variable, if it is a parameter.
    fn parameter_of(&self, var: Var) -> Option<usize> {
        match self.nodes[var.0].operation {
            Operation::Parameter(row) => Some(row),
            _ => None,
        }
    }

    /// `out = left · weight` or `out += left · weight`, optionally with the weight transposed.
    fn times_weight(&self, out: ViewMut<'_>, left: View<'_>, times: Times) {
        let Times { weight, side, compute, mode, threads } = times;
        let value = self.value(weight).view();
        let right = match side {
            Side::Forward => value,
            Side::Backward => value.transposed(),
        };
        match self.parameter_of(weight) {
            Some(row) if compute == Compute::Bf16 && tiles::worth(out.n_rows, out.n_cols, left.n_cols) => {
                self.packs.of(row, side, right).multiply(out, left, mode, threads);
            }
            _ => multiply_in(compute, out, left, right, mode, threads),
        }
    }

    /// ReLU.
    pub fn relu(&mut self, input: Var) -> Var {
        let value = cpu::relu(self.value(input), self.threads);
        self.push(value, Operation::Relu(input), &[input])
    }

    /// Applies an activation to each value.
    pub fn activate(&mut self, input: Var, activation: Activation) -> Var {
        let value = cpu::activate(self.value(input), activation, self.threads);
        self.push(value, Operation::Activate(input, activation), &[input])
    }

    /// Elementwise product with constant factors.
    pub fn scale(&mut self, input: Var, factors: Vec<f32>) -> Var {
        let mut value = self.value(input).clone();
        cpu::scale(&mut value, &factors);
        self.push(value, Operation::Scale { input, factors }, &[input])
    }

    /// Dropout with probability `rate`; the identity without a generator, as in inference.
    pub fn dropout(&mut self, input: Var, rate: f32, rng: Option<&mut SplitMix64>) -> Var {
        match rng {
            Some(rng) if rate > 0.0 => {
                let factors = random::dropout_mask(self.value(input).values.len(), rate, rng);
                self.scale(input, factors)
            }
            _ => input,
        }
    }

    /// Sum of two values of the same shape.
    pub fn add(&mut self, left: Var, right: Var) -> Var {
        let mut value = self.value(left).clone();
        cpu::add_to(&mut value.values, &self.value(right).values);
        self.push(value, Operation::Add(left, right), &[left, right])
    }

    /// Concatenates columns.
    pub fn concat(&mut self, parts: &[Var]) -> Var {
        let value = cpu::concat(&parts.iter().map(|part| self.value(*part)).collect::<Vec<_>>());
        self.push(value, Operation::Concat(parts.to_vec()), parts)
    }

    /// Concatenates rows.
    pub fn stack(&mut self, upper: Var, lower: Var) -> Var {
        let value = cpu::stack(self.value(upper), self.value(lower));
        self.push(value, Operation::Stack(upper, lower), &[upper, lower])
    }

    /// Unfold (im2col): concatenates for each row the rows at `offsets` in the same sequence, zeros beyond its ends; `[rows, cols]` to
    /// `[rows, offsets * cols]`. A [`Tape::linear`] of it is a convolution.
    pub fn unfold(&mut self, input: Var, offsets: &[isize], segments: &Arc<Segments>) -> Var {
        let mut value = Matrix::zeros(self.value(input).n_rows, self.value(input).n_cols * offsets.len());
        let all = vec![true; offsets.len()];
        let x = self.value(input);
        cpu::unfold(&x.values, &mut value.values, cpu::Offsets { all: offsets, seen: &all }, segments);
        let operation = Operation::Unfold { input, offsets: offsets.to_vec(), segments: segments.clone() };
        self.push(value, operation, &[input])
    }

    /// Gathers rows of a table: `[n, cols]` to `[rows.len(), cols]`.
    pub fn gather(&mut self, table: Var, rows: Vec<u32>) -> Var {
        let value = cpu::gather(self.value(table), &rows);
        self.push(value, Operation::Gather { table, rows }, &[table])
    }

    /// Layer norm (Ba et al. 2016) of each row, with `gain` and `bias`; `epsilon` is added to the variance, for example [`NORM_EPSILON`].
    pub fn layer_norm(&mut self, input: Var, gain: Var, bias: Var, epsilon: f32) -> Var {
        let mut value = self.value(input).clone();
        let norm = Norm { gain: &self.value(gain).values, bias: &self.value(bias).values, epsilon };
        let inverse = elementwise::layer_norm_rows(&mut value.values, norm);
        self.push(value, Operation::LayerNorm { input, gain, bias, inverse }, &[input, gain, bias])
    }

    /// L2-normalises each row; zero rows stay zero.
    pub fn l2_normalised(&mut self, input: Var) -> Var {
        let (value, norms) = cpu::normalise(self.value(input));
        self.push(value, Operation::Normalise { input, norms }, &[input])
    }

    /// Max pooling over each sequence: `[rows, cols]` to `[sequences, cols]`.
    pub fn segment_max(&mut self, input: Var, segments: &Segments) -> Var {
        let (value, rows) = cpu::segment_max(self.value(input), segments);
        self.push(value, Operation::SegmentMax { input, rows }, &[input])
    }

    /// Mean pooling over each sequence: `[rows, cols]` to `[sequences, cols]`.
    pub fn segment_mean(&mut self, input: Var, segments: &Arc<Segments>) -> Var {
        let value = cpu::segment_mean(self.value(input), segments);
        self.push(value, Operation::SegmentMean { input, segments: segments.clone() }, &[input])
    }

    /// Softmax within each sequence: `[rows, 1]` to `[rows, 1]`.
    pub fn segment_softmax(&mut self, input: Var, segments: &Arc<Segments>) -> Var {
        let value = cpu::segment_softmax(self.value(input), segments);
        self.push(value, Operation::SegmentSoftmax { input, segments: segments.clone() }, &[input])
    }

    /// Weighted sum over each sequence: `[rows, cols]` and `[rows, 1]` to `[sequences, cols]`.
    pub fn segment_sum(&mut self, input: Var, weights: Var, segments: &Arc<Segments>) -> Var {
        let value = cpu::segment_sum(self.value(input), self.value(weights), segments);
        self.push(value, Operation::SegmentSum { input, weights, segments: segments.clone() }, &[input, weights])
    }
}
