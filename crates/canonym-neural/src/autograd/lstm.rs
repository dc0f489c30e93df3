//! LSTMs (Hochreiter and Schmidhuber 1997) over packed sequences. [`super::ops::cpu::lstm`] computes a direction and its gradients;
//! directions run in parallel.

use std::sync::Arc;

use rayon::prelude::*;

use super::ops::cpu::lstm::{Backward, Forward, Part, Recurrence, RecurrenceGradients, Steps};
use super::packs::Side;
use super::{Operation, Tape, Times, Var};
use crate::tensor::matrix::{Compute, Matrix, Threads, View, ViewMut, WriteMode};
use crate::tensor::segments::Segments;

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
    /// Each direction with its weights.
    recurrences: Vec<(LstmWeights, Recurrence)>,
    compute: Compute,
}

impl Tape<'_> {
    /// The outputs of LSTMs in one or both directions side by side, `[rows, directions * width]`, for inputs `[rows, inputs]`. States are
    /// zero at first.
    pub fn lstm(&mut self, input: Var, directions: &[(Direction, LstmWeights)], segments: &Arc<Segments>) -> Var {
        let forward = |(direction, weights): &(Direction, LstmWeights)| {
            (*weights, self.recur(input, *weights, Steps::new(segments, *direction)))
        };
        let recurrences: Vec<(LstmWeights, Recurrence)> = match self.threads {
            Threads::One => directions.iter().map(forward).collect(),
            Threads::All => directions.par_iter().map(forward).collect(),
        };
        let width = recurrences[0].1.outputs.n_cols;
        let mut value = Matrix::zeros(self.value(input).n_rows, width * recurrences.len());
        for (at, (_, recurrence)) in recurrences.iter().enumerate() {
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
        let threads = self.threads_within();
        let times =
            |weight: Var| Times { weight, side: Side::Forward, compute: self.compute, mode: WriteMode::Add, threads };
        let add_product = |part: Part, to: ViewMut<'_>, from: View<'_>| match part {
            Part::Input => self.times_weight(to, from, times(weights.input)),
            Part::Recurrent => self.times_weight(to, from, times(weights.recurrent)),
        };
        let keeps = [input, weights.input, weights.recurrent, weights.bias].into_iter().any(|var| self.wants(var));
        Forward { steps, bias: &self.value(weights.bias).values, add_product, keeps }.run(self.value(input))
    }

    /// Gradients of the inputs and of the weights of each direction.
    pub(super) fn lstm_back(
        &self,
        lstm: &Lstm,
        gradient: &Matrix,
    ) -> (Option<Matrix>, Vec<(LstmWeights, RecurrenceGradients)>) {
        let (x, wants_input) = (self.value(lstm.input), self.wants(lstm.input));
        let back = |(at, (weights, recurrence)): (usize, &(LstmWeights, Recurrence))| {
            let backward = Backward {
                x,
                input: self.value(weights.input),
                recurrent: self.value(weights.recurrent),
                first: at * recurrence.outputs.n_cols,
                wants_input,
                compute: lstm.compute,
                threads: self.threads_within(),
            };
            (*weights, backward.run(recurrence, gradient))
        };
        let numbered: Vec<(usize, &(LstmWeights, Recurrence))> = lstm.recurrences.iter().enumerate().collect();
        let each: Vec<(LstmWeights, RecurrenceGradients)> = match self.threads {
            Threads::One => numbered.into_iter().map(back).collect(),
            Threads::All => numbered.into_par_iter().map(back).collect(),
        };
        let mut of_input = wants_input.then(|| Matrix::zeros(x.n_rows, x.n_cols));
        if let Some(to) = &mut of_input {
            for ((_, gradients), (_, recurrence)) in each.iter().zip(&lstm.recurrences) {
                recurrence.steps.scatter(&gradients.of_input, to, 0);
            }
        }
        (of_input, each)
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
