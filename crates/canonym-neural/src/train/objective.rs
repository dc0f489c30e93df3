//! What is trained: a forward pass with named outputs, and losses on them.

use std::collections::BTreeMap;

use canonym_core::Result;

use crate::autograd::{Tape, Var};
use crate::tensor::matrix::Matrix;
use crate::tensor::parameters::Parameters;
use crate::tensor::random::SplitMix64;
use crate::train::losses::Loss;

/// A training objective.
pub trait Objective: Sync {
    /// Inputs and targets of a step.
    type Batch: Send + Sync;

    /// Called at the start of each mining interval with the current weights, for example to mine hard negatives.
    fn begin_interval(&mut self, parameters: &Parameters, interval: u64) -> Result<()>;

    /// The batch of a step. It depends only on the arguments and the last [`Objective::begin_interval`], and is prepared in the background.
    fn batch(&self, step: u64, rng: &mut SplitMix64) -> Self::Batch;

    /// Number of parts of a batch with independent forward passes, which run in parallel. It must not depend on the machine, because
    /// gradients are summed part by part.
    fn n_parts(&self, batch: &Self::Batch) -> usize;

    /// Records the forward pass of a part and returns its outputs. Parts may have different outputs.
    fn forward(&self, tape: &mut Tape<'_>, batch: &Self::Batch, part: usize, rng: &mut SplitMix64) -> Result<Outputs>;

    /// Losses of a batch, with the gradients of the outputs.
    fn losses(&self, batch: &Self::Batch, values: &Values) -> Losses;

    /// Number of optimisers; each has moments of its own.
    fn n_optimisers(&self) -> usize {
        1
    }

    /// The optimiser that makes the step of a batch, such as one for each task.
    fn optimiser(&self, _batch: &Self::Batch) -> usize {
        0
    }

    /// Score on held-out data, higher is better; `None` without held-out data.
    fn evaluate(&self, parameters: &Parameters) -> Result<Option<f64>>;

    /// State gathered by [`Objective::begin_interval`] that cannot be recomputed from the weights; saved in checkpoints.
    fn save_state(&self) -> Vec<u8> {
        Vec::new()
    }

    /// Restores the state of an objective over the same data.
    fn load_state(&mut self, _state: &[u8]) -> Result<()> {
        Ok(())
    }
}

/// Named outputs of a forward pass.
#[derive(Debug, Clone, Default)]
pub struct Outputs(Vec<(&'static str, Var)>);

impl Outputs {
    /// One output.
    pub fn of(name: &'static str, output: Var) -> Outputs {
        Outputs(vec![(name, output)])
    }

    /// Adds an output.
    #[must_use]
    pub fn with(mut self, name: &'static str, output: Var) -> Outputs {
        self.0.push((name, output));
        self
    }

    /// Names and outputs, in the order in which they were added.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, Var)> {
        self.0.iter().copied()
    }
}

/// The values of the outputs of a batch: under each name the rows of all parts that have it, in order.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Values(BTreeMap<&'static str, Matrix>);

/// Returned for an unknown output name.
static EMPTY: Matrix = Matrix { n_rows: 0, n_cols: 0, values: Vec::new() };

impl Values {
    /// Appends the rows of a part.
    pub fn push(&mut self, name: &'static str, part: &Matrix) {
        let all = self.0.entry(name).or_insert_with(|| Matrix::zeros(0, part.n_cols));
        all.n_rows += part.n_rows;
        all.values.extend_from_slice(&part.values);
    }

    /// The rows of an output; an empty matrix if no part has it.
    pub fn get(&self, name: &str) -> &Matrix {
        self.0.get(name).unwrap_or(&EMPTY)
    }
}

/// Named losses of a batch, each with its weight applied, and the gradients of the outputs.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Losses {
    /// Names and values.
    pub terms: Vec<(&'static str, f64)>,
    gradients: BTreeMap<&'static str, Matrix>,
}

impl Losses {
    /// The only loss, of one output.
    pub fn of(name: &'static str, output: &'static str, loss: Loss) -> Losses {
        Losses { terms: vec![(name, loss.value)], gradients: BTreeMap::from([(output, loss.gradient)]) }
    }

    /// Adds the value of a loss.
    pub fn add(&mut self, name: &'static str, value: f64) {
        self.terms.push((name, value));
    }

    /// The gradient of an output, to be added to; zeros in the shape of its values at first.
    pub fn gradient_of(&mut self, output: &'static str, values: &Values) -> &mut Matrix {
        let values = values.get(output);
        self.gradients.entry(output).or_insert_with(|| Matrix::zeros(values.n_rows, values.n_cols))
    }

    /// The gradient of an output, if a loss depends on it.
    pub fn gradient(&self, output: &str) -> Option<&Matrix> {
        self.gradients.get(output)
    }

    /// The sum of the losses.
    pub fn total(&self) -> f64 {
        self.terms.iter().map(|(_, value)| value).sum()
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    impl Values {
        /// Values of these outputs.
        pub(crate) fn of<const N: usize>(outputs: [(&'static str, Matrix); N]) -> Values {
            Values(outputs.into())
        }
    }

    /// Compares the gradients of losses with differences, for one in `every` values of each output.
    pub(crate) fn check_gradients(
        losses: impl Fn(&Values) -> Losses,
        values: &Values,
        every: usize,
        (step, tolerance): (f32, f64),
    ) {
        let analytic = losses(values);
        for (name, of_output) in &values.0 {
            for at in (0..of_output.values.len()).step_by(every) {
                let moved = |by: f32| {
                    let mut moved = values.clone();
                    moved.0.get_mut(name).unwrap().values[at] += by;
                    losses(&moved).total()
                };
                let difference = (moved(step) - moved(-step)) / (2.0 * f64::from(step));
                let own = analytic.gradient(name).map_or(0.0, |gradient| f64::from(gradient.values[at]));
                assert!((difference - own).abs() < tolerance, "{name} {at}: {difference} {own}");
            }
        }
    }

    #[test]
    fn rows_of_parts_are_stacked_by_name_and_losses_add_up() {
        let mut values = Values::default();
        values.push("mentions", &Matrix::new(1, 2, vec![1.0, 2.0]));
        values.push("names", &Matrix::new(1, 1, vec![9.0]));
        values.push("mentions", &Matrix::new(2, 2, vec![3.0, 4.0, 5.0, 6.0]));
        assert_eq!(values.get("mentions"), &Matrix::new(3, 2, vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0]));
        assert_eq!((values.get("names").n_rows, values.get("spans").n_rows), (1, 0));
        let mut losses = Losses::default();
        losses.add("linking", 1.5);
        losses.add("spans", 0.25);
        losses.gradient_of("mentions", &values).values[3] += 1.0;
        assert_eq!((losses.total(), losses.gradient("names")), (1.75, None));
        assert_eq!(losses.gradient("mentions").unwrap().row(1), [0.0, 1.0]);
    }
}
