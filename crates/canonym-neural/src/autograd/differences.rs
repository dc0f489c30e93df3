//! Gradient checks by finite differences, for tests of anything recorded on a tape.

use super::{Tape, Var};
use crate::tensor::matrix::Matrix;
use crate::tensor::parameters::Parameters;
use crate::tensor::random::{self, SplitMix64};

/// Compares the gradients of `build` with finite differences. Its result is reduced to a scalar by fixed random weights.
pub fn check(parameters: &Parameters, build: impl Fn(&mut Tape<'_>) -> Var) {
    let weigh = |value: &Matrix| {
        let mut rng = SplitMix64::new(77);
        Matrix::new(value.n_rows, value.n_cols, value.values.iter().map(|_| random::normal(&mut rng)).collect())
    };
    let value_of = |parameters: &Parameters| {
        let mut tape = Tape::new(parameters);
        let output = build(&mut tape);
        let value = tape.value(output);
        value.values.iter().zip(&weigh(value).values).map(|(value, weight)| f64::from(value * weight)).sum::<f64>()
    };
    let mut tape = Tape::new(parameters);
    let output = build(&mut tape);
    let weights = weigh(tape.value(output));
    let gradients = tape.backward([(output, weights)]);
    for row in 0..parameters.len() {
        let name = parameters.iter().nth(row).unwrap().0.to_owned();
        let Some(gradient) = gradients.of(row) else {
            assert!(parameters.is_frozen(row), "{name} has no gradient");
            continue;
        };
        let gradient = gradient.to_matrix(parameters.at(row).n_rows);
        let largest = gradient.values.iter().fold(0.0f32, |max, value| max.max(value.abs()));
        for at in (0..gradient.values.len()).step_by(1 + gradient.values.len() / 40) {
            let moved = |by: f32| {
                let mut moved = parameters.clone();
                moved.at_mut(row).values[at] += by;
                value_of(&moved)
            };
            let slope = (moved(4e-3) - moved(-4e-3)) / 8e-3;
            let error = (slope - f64::from(gradient.values[at])).abs();
            assert!(error < 0.02 * f64::from(largest.max(1.0)), "{name}[{at}]: {slope} {}", gradient.values[at]);
        }
    }
}

/// A matrix of standard normal random numbers.
pub fn drawn(n_rows: usize, n_cols: usize, rng: &mut SplitMix64) -> Matrix {
    Matrix::new(n_rows, n_cols, (0..n_rows * n_cols).map(|_| random::normal(rng)).collect())
}
