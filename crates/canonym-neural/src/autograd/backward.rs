//! Backward pass of each operation.

use super::gradients::{Gradient, Gradients};
use super::ops::cpu;
use super::ops::cpu::lstm::RecurrenceGradients;
use super::packs::Side;
use super::{Linear, Operation, Tape, Times, Var};
use crate::tensor::matrix::{Matrix, WriteMode, multiply_in};

/// Gradients of the values of a tape during the backward pass.
struct Walk {
    of_node: Vec<Option<Matrix>>,
}

impl Walk {
    /// Accumulates `gradient` into that of `var`.
    fn add(&mut self, var: Var, gradient: Matrix) {
        match &mut self.of_node[var.0] {
            Some(known) => cpu::add_to(&mut known.values, &gradient.values),
            empty => *empty = Some(gradient),
        }
    }

    /// The gradient of `var` so far, initialised with zeros.
    fn entry(&mut self, var: Var, n_rows: usize, n_cols: usize) -> &mut Matrix {
        self.of_node[var.0].get_or_insert_with(|| Matrix::zeros(n_rows, n_cols))
    }
}

/// Operands of a layer norm, with the inverse standard deviation of each row.
#[derive(Clone, Copy)]
struct LayerNorm<'a> {
    input: Var,
    gain: Var,
    bias: Var,
    inverse: &'a [f32],
}

impl Tape<'_> {
    /// Gradients of the parameters, given those of outputs.
    pub fn backward(mut self, outputs: impl IntoIterator<Item = (Var, Matrix)>) -> Gradients {
        let mut walk = Walk { of_node: (0..self.nodes.len()).map(|_| None).collect() };
        outputs.into_iter().for_each(|(output, gradient)| walk.add(output, gradient));
        let mut gradients = Gradients::none(self.parameters.len());
        for at in (0..self.nodes.len()).rev() {
            let Some(gradient) = walk.of_node[at].take() else { continue };
            if !self.nodes[at].tracked {
                continue;
            }
            match &self.nodes[at].operation {
                Operation::Parameter(row) => {
                    gradients.add_to(*row, Gradient::of_all(gradient));
                    continue;
                }
                Operation::Gather { table, rows } if let Some(parameter) = self.parameter_of(*table) => {
                    gradients.add_to(parameter, Gradient::of_rows(rows, &gradient));
                }
                _ => self.step_back(at, gradient, &mut walk),
            }
            // All later nodes are done, so the value is no longer needed.
            self.nodes[at].value = Matrix::default();
        }
        gradients
    }

    pub(super) fn wants(&self, var: Var) -> bool {
        self.nodes[var.0].tracked
    }

    fn step_back(&self, at: usize, mut gradient: Matrix, walk: &mut Walk) {
        let output = &self.nodes[at].value;
        match &self.nodes[at].operation {
            Operation::Input | Operation::Parameter(_) => {}
            Operation::Linear(linear) => self.linear_back(linear, &gradient, walk),
            Operation::Relu(input) => {
                cpu::relu_back(output, &mut gradient);
                walk.add(*input, gradient);
            }
            Operation::Activate(input, activation) => {
                activation.apply_slope(&mut gradient.values, &self.value(*input).values);
                walk.add(*input, gradient);
            }
            Operation::Attention(attention) => {
                let (x, seen) = (self.value(attention.queries), self.value(attention.context));
                let gradients = attention.computed.backward(x, seen, &gradient, self.threads);
                if self.wants(attention.queries) {
                    attention.computed.add_queries(&gradients, walk.entry(attention.queries, x.n_rows, x.n_cols));
                }
                if self.wants(attention.context) {
                    attention.computed.add_context(&gradients, walk.entry(attention.context, seen.n_rows, seen.n_cols));
                }
            }
            Operation::Lstm(lstm) => {
                let (of_input, each) = self.lstm_back(lstm, &gradient);
                if let Some(of_input) = of_input {
                    walk.add(lstm.input, of_input);
                }
                for (weights, RecurrenceGradients { of_weights, of_recurrent, of_bias, .. }) in each {
                    walk.add(weights.input, of_weights);
                    walk.add(weights.recurrent, of_recurrent);
                    walk.add(weights.bias, of_bias);
                }
            }
            Operation::Scale { input, factors } => {
                cpu::scale(&mut gradient, factors);
                walk.add(*input, gradient);
            }
            Operation::Add(left, right) => {
                if self.wants(*left) {
                    walk.add(*left, gradient.clone());
                }
                walk.add(*right, gradient);
            }
            Operation::Concat(parts) => {
                let mut first = 0;
                for part in parts {
                    let n_cols = self.value(*part).n_cols;
                    if self.wants(*part) {
                        cpu::concat_back(&gradient, first, walk.entry(*part, gradient.n_rows, n_cols));
                    }
                    first += n_cols;
                }
            }
            Operation::Stack(upper, lower) => {
                let (above, below) = cpu::stack_back(gradient, self.value(*upper));
                if self.wants(*lower) {
                    walk.add(*lower, below);
                }
                if self.wants(*upper) {
                    walk.add(*upper, above);
                }
            }
            Operation::Unfold { input, offsets, segments } => {
                let n_cols = self.value(*input).n_cols;
                cpu::unfold_back(&gradient, offsets, segments, walk.entry(*input, gradient.n_rows, n_cols));
            }
            Operation::Gather { table, rows } => {
                let (n_rows, n_cols) = (self.value(*table).n_rows, self.value(*table).n_cols);
                cpu::gather_back(&gradient, rows, walk.entry(*table, n_rows, n_cols));
            }
            Operation::LayerNorm { input, gain, bias, inverse } => {
                let layer_norm = LayerNorm { input: *input, gain: *gain, bias: *bias, inverse };
                self.layer_norm_back(output, gradient, layer_norm, walk);
            }
            Operation::Normalise { input, norms } => {
                cpu::normalise_back(output, &gradient, norms, walk.entry(*input, output.n_rows, output.n_cols));
            }
            Operation::SegmentMax { input, rows } => {
                let x = self.value(*input);
                cpu::segment_max_back(&gradient, rows, walk.entry(*input, x.n_rows, x.n_cols));
            }
            Operation::SegmentMean { input, segments } => {
                let x = self.value(*input);
                cpu::segment_mean_back(&gradient, segments, walk.entry(*input, x.n_rows, x.n_cols));
            }
            Operation::SegmentSoftmax { input, segments } => {
                cpu::segment_softmax_back(output, segments, &mut gradient);
                walk.add(*input, gradient);
            }
            Operation::SegmentSum { input, weights, segments } => {
                let (x, w) = (self.value(*input), self.value(*weights));
                if self.wants(*weights) {
                    cpu::segment_sum_weights_back(&gradient, x, segments, walk.entry(*weights, w.n_rows, 1));
                }
                if self.wants(*input) {
                    cpu::segment_sum_back(&gradient, w, segments, walk.entry(*input, x.n_rows, x.n_cols));
                }
            }
        }
    }

    fn linear_back(&self, linear: &Linear, gradient: &Matrix, walk: &mut Walk) {
        let Linear { input, first_column, weight, transposed, bias, compute } = *linear;
        let (x, w) = (self.value(input), self.value(weight));
        let (n_in, side) = if transposed { (w.n_cols, Side::Forward) } else { (w.n_rows, Side::Backward) };
        if let Some(bias) = bias.filter(|bias| self.wants(*bias)) {
            walk.add(bias, cpu::column_sums(gradient));
        }
        if self.wants(weight) {
            let seen = x.view().columns(first_column, n_in);
            let to = walk.entry(weight, w.n_rows, w.n_cols);
            let (left, right) = match transposed {
                true => (gradient.view().transposed(), seen),
                false => (seen.transposed(), gradient.view()),
            };
            multiply_in(compute, to.view_mut(), left, right, WriteMode::Add, self.threads);
        }
        if self.wants(input) {
            let to = walk.entry(input, x.n_rows, x.n_cols).view_mut().columns(first_column, n_in);
            let times = Times { weight, side, compute, mode: WriteMode::Add, threads: self.threads };
            self.times_weight(to, gradient.view(), times);
        }
    }

    fn layer_norm_back(&self, output: &Matrix, mut gradient: Matrix, layer_norm: LayerNorm<'_>, walk: &mut Walk) {
        let LayerNorm { input, gain, bias, inverse } = layer_norm;
        let n_cols = output.n_cols;
        let normal = cpu::standardised(self.value(input), inverse);
        if self.wants(gain) {
            cpu::layer_norm_gain_back(&gradient, &normal, walk.entry(gain, 1, n_cols));
        }
        if self.wants(bias) {
            cpu::add_column_sums(&gradient, walk.entry(bias, 1, n_cols));
        }
        if self.wants(input) {
            cpu::layer_norm_back(&mut gradient, &normal, inverse, &self.value(gain).values);
            walk.add(input, gradient);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::autograd::NORM_EPSILON;
    use crate::autograd::differences::{check, drawn};
    use crate::models::rescnn::{Pooling, ResCnnConfig, Tokens};
    use crate::tensor::elementwise::Activation;
    use crate::tensor::parameters::Parameters;
    use crate::tensor::random::{self, SplitMix64};
    use crate::tensor::segments::Segments;

    #[test]
    fn every_operation_has_the_gradient_of_its_differences() {
        let mut rng = SplitMix64::new(1);
        let mut parameters = Parameters::default();
        for (name, n_rows, n_cols) in
            [("table", 7, 4), ("gain", 1, 4), ("bias", 1, 4), ("mix", 8, 3), ("score", 4, 1), ("row", 1, 4)]
        {
            parameters.add(name, drawn(n_rows, n_cols, &mut rng));
        }
        let segments = Arc::new(Segments::of_lengths([3, 1, 2]));
        let factors: Vec<f32> = (0..24).map(|_| random::unit(&mut rng)).collect();
        check(&parameters, |tape| {
            let [table, gain, bias, mix, score, row] =
                ["table", "gain", "bias", "mix", "score", "row"].map(|name| tape.parameter(name).unwrap());
            let rows = tape.gather(table, vec![0, 3, 3, 6, 1, 0]);
            let normal = tape.layer_norm(rows, gain, bias, NORM_EPSILON);
            let smooth = tape.activate(normal, Activation::Gelu);
            let smooth = tape.activate(smooth, Activation::GeluTanh);
            let smooth = tape.activate(smooth, Activation::Tanh);
            let scaled = tape.scale(smooth, factors.clone());
            let sum = tape.add(scaled, rows);
            let near = tape.unfold(sum, &[-1, 0, 1], &segments);
            let filtered = tape.linear_of_columns(near, 4, mix, None);
            let scores = tape.linear(sum, score, None);
            let probabilities = tape.segment_softmax(scores, &segments);
            let attended = tape.segment_sum(sum, probabilities, &segments);
            let mean = tape.segment_mean(filtered, &segments);
            let max = tape.segment_max(filtered, &segments);
            let stacked = tape.stack(attended, row);
            let again = tape.gather(stacked, vec![0, 3, 2]);
            let unit = tape.l2_normalised(again);
            tape.concat(&[mean, max, again, unit])
        });
    }

    #[test]
    fn tied_output_weights_add_their_gradient_to_that_of_the_embeddings() {
        let mut rng = SplitMix64::new(2);
        let mut parameters = Parameters::default();
        for (name, n_rows, n_cols) in [("table", 7, 4), ("mix", 4, 4), ("bias", 1, 7)] {
            parameters.add(name, drawn(n_rows, n_cols, &mut rng));
        }
        check(&parameters, |tape| {
            let [table, mix, bias] = ["table", "mix", "bias"].map(|name| tape.parameter(name).unwrap());
            let rows = tape.gather(table, vec![0, 3, 3, 6]);
            let rows = tape.linear(rows, mix, None);
            tape.linear_tied(rows, table, Some(bias))
        });
    }

    #[test]
    fn the_model_has_the_gradient_of_its_differences() {
        for (pooling, pads) in
            [(Pooling::Mean, false), (Pooling::Attention, false), (Pooling::Mean, true), (Pooling::Attention, true)]
        {
            let config =
                ResCnnConfig { width: 8, n_filters: 5, hidden: 6, n_blocks: 2, pooling, pads, ..Default::default() };
            let mut parameters = Parameters::default();
            config.init(&mut parameters, 9, 4, &mut SplitMix64::new(2));
            let names: [&[u32]; 3] = [&[1, 2, 3], &[4], &[5, 6, 7, 8, 0]];
            let tokens = Tokens::pack(names, config.max_length, 0);
            check(&parameters, |tape| config.forward(tape, &tokens, None).unwrap());
        }
    }

    #[test]
    fn a_frozen_weight_has_no_gradient_and_the_others_have() {
        let mut parameters = Parameters::default();
        parameters.add("left", Matrix::new(1, 1, vec![2.0]));
        parameters.add("right", Matrix::new(1, 1, vec![3.0]));
        parameters.freeze("left").unwrap();
        let mut tape = Tape::new(&parameters);
        let (left, right) = (tape.parameter("left").unwrap(), tape.parameter("right").unwrap());
        let product = tape.linear(left, right, None);
        let gradients = tape.backward([(product, Matrix::new(1, 1, vec![10.0]))]);
        assert!(gradients.of(0).is_none());
        assert_eq!(gradients.of(1).unwrap().matrix().values, [20.0]);
    }
}
