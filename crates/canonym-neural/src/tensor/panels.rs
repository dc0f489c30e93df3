//! Weights in a layout for repeated multiplication, read sequentially.
//!
//! A weight is split into panels of adjacent columns, each stored row by row. This is fast for inputs with few rows, where reading the
//! weight row by row would jump in memory. With several threads the panels are distributed, so results do not depend on the number of
//! threads.

use rayon::prelude::*;

use crate::tensor::matrix::{Compute, Matrix, Threads, View, ViewMut, WriteMode, multiply};
use crate::tensor::tiles::{self, Packed};

/// Columns per panel: a few registers.
const PANEL: usize = 48;

/// Products with fewer multiplications run on the calling thread.
const WORTH_THREADS: usize = 1 << 20;

/// A weight in panels.
#[derive(Debug, Clone, PartialEq)]
pub struct Panels {
    // Private: the length of `values` follows from the other fields.
    values: Values,
    n_in: usize,
    n_out: usize,
}

#[derive(Debug, Clone, PartialEq)]
enum Values {
    /// Concatenated panels of `PANEL` columns; the last may be narrower.
    Single(Vec<f32>),
    /// bfloat16, for the bfloat16 units of the processor.
    Tiles(Packed),
}

impl Panels {
    /// Packs a weight, `[in, out]`, for products of the given precision.
    pub fn of(weight: &Matrix, compute: Compute) -> Panels {
        let values = match compute {
            Compute::Bf16 if tiles::available() => Values::Tiles(Packed::of(weight.view())),
            Compute::Bf16 | Compute::F32 => Values::Single(Panels::single(weight)),
        };
        Panels { values, n_in: weight.n_rows, n_out: weight.n_cols }
    }

    fn single(weight: &Matrix) -> Vec<f32> {
        let mut values = Vec::with_capacity(weight.values.len());
        for first in (0..weight.n_cols).step_by(PANEL) {
            let last = weight.n_cols.min(first + PANEL);
            (0..weight.n_rows).for_each(|row| values.extend_from_slice(&weight.row(row)[first..last]));
        }
        values
    }

    /// Number of rows of the weight.
    pub fn n_in(&self) -> usize {
        self.n_in
    }

    /// Number of columns of the weight.
    pub fn n_out(&self) -> usize {
        self.n_out
    }

    /// `to = input · weight`: `[rows, in]` to `[rows, out]`.
    ///
    /// # Panics
    /// If the shapes do not match.
    pub fn multiply(&self, input: View<'_>, to: &mut [f32], threads: Threads) {
        let n_rows = input.n_rows;
        assert_eq!((input.n_cols, to.len()), (self.n_in, n_rows * self.n_out), "depth and values of a product");
        let values = match &self.values {
            Values::Single(values) => values,
            Values::Tiles(packed) => {
                return packed.multiply(ViewMut::of(to, n_rows, self.n_out), input, WriteMode::Replace, threads);
            }
        };
        if threads == Threads::One || n_rows * values.len() < WORTH_THREADS {
            for (first, panel) in self.panels(values) {
                let out = ViewMut::of(to, n_rows, self.n_out).columns(first, panel.n_cols);
                multiply(out, input, panel, WriteMode::Replace, Threads::One);
            }
            return;
        }
        let panels: Vec<(usize, View<'_>)> = self.panels(values).collect();
        let product = |(_, panel): &(usize, View<'_>)| {
            let mut made = Matrix::zeros(n_rows, panel.n_cols);
            multiply(made.view_mut(), input, *panel, WriteMode::Replace, Threads::One);
            made
        };
        let made: Vec<Matrix> = panels.par_iter().map(product).collect();
        for ((first, _), made) in panels.iter().zip(&made) {
            for (row, to) in to.chunks_exact_mut(self.n_out).enumerate() {
                to[*first..][..made.n_cols].copy_from_slice(made.row(row));
            }
        }
    }

    /// First column and values of each panel.
    fn panels<'a>(&self, values: &'a [f32]) -> impl Iterator<Item = (usize, View<'a>)> {
        let Panels { n_in, n_out, .. } = *self;
        (0..n_out).step_by(PANEL).map(move |first| {
            let n_cols = PANEL.min(n_out - first);
            (first, View::of(&values[first * n_in..], n_in, n_cols))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::autograd::differences::drawn;
    use crate::tensor::random::SplitMix64;

    #[test]
    fn products_are_those_of_the_whole_weight_on_any_number_of_threads() {
        let mut rng = SplitMix64::new(2);
        for (n_rows, n_in, n_out) in [(1, 5, 3), (7, 96, 48), (40, 200, 250), (0, 4, 60)] {
            let (input, weight) = (drawn(n_rows, n_in, &mut rng), drawn(n_in, n_out, &mut rng));
            let mut expected = Matrix::zeros(n_rows, n_out);
            multiply(expected.view_mut(), input.view(), weight.view(), WriteMode::Replace, Threads::One);
            let made = [Threads::One, Threads::All].map(|threads| {
                let mut made = vec![f32::NAN; n_rows * n_out];
                Panels::of(&weight, Compute::F32).multiply(input.view(), &mut made, threads);
                made
            });
            assert_eq!(made[0], made[1]);
            assert!(made[0].iter().zip(&expected.values).all(|(left, right)| (left - right).abs() < 1e-3));
        }
    }
}
