//! Gradients of weights: dense, or sparse over the rows of a table that were read.

use rayon::prelude::*;

use super::ops::cpu::add_to;
use crate::tensor::matrix::{Matrix, dot};

/// Chunk size when squares are summed.
const PIECE: usize = 4096;

/// The gradient of a weight.
#[derive(Debug, Clone, PartialEq)]
pub struct Gradient {
    /// Sorted rows with a gradient; `None` for all rows. The gradient of other rows is zero.
    rows: Option<Vec<u32>>,
    /// One row of values for each of `rows`.
    matrix: Matrix,
}

impl Gradient {
    pub(super) fn of_all(matrix: Matrix) -> Gradient {
        Gradient { rows: None, matrix }
    }

    /// Sparse gradient of a table from the gradient of each row that was read; rows may repeat.
    pub(super) fn of_rows(read: &[u32], each: &Matrix) -> Gradient {
        let mut rows = read.to_vec();
        rows.sort_unstable();
        rows.dedup();
        let mut values = Matrix::zeros(rows.len(), each.n_cols);
        add_rows(&mut values, &rows, read.iter().copied().zip(each.values.chunks_exact(each.n_cols.max(1))));
        Gradient { rows: Some(rows), matrix: values }
    }

    /// Sorted rows with a gradient; `None` for all rows.
    pub fn rows(&self) -> Option<&[u32]> {
        self.rows.as_deref()
    }

    /// Gradient values, one row for each of [`Gradient::rows`].
    pub fn matrix(&self) -> &Matrix {
        &self.matrix
    }

    /// Dense gradient of a weight with `n_rows` rows.
    pub fn to_matrix(&self, n_rows: usize) -> Matrix {
        let Some(rows) = &self.rows else { return self.matrix.clone() };
        let mut all = Matrix::zeros(n_rows, self.matrix.n_cols);
        self.each(rows).for_each(|(row, values)| all.row_mut(row as usize).copy_from_slice(values));
        all
    }

    fn each<'a>(&'a self, rows: &'a [u32]) -> impl Iterator<Item = (u32, &'a [f32])> {
        rows.iter().copied().zip(self.matrix.values.chunks_exact(self.matrix.n_cols.max(1)))
    }

    fn add(&mut self, other: Gradient) {
        match (&self.rows, &other.rows) {
            (None, None) => add_to(&mut self.matrix.values, &other.matrix.values),
            (None, Some(rows)) => {
                other.each(rows).for_each(|(row, values)| add_to(self.matrix.row_mut(row as usize), values));
            }
            (Some(_), None) => {
                let own = std::mem::replace(self, other);
                self.add(own);
            }
            (Some(own), Some(others)) => {
                let mut rows = [own.as_slice(), others].concat();
                rows.sort_unstable();
                rows.dedup();
                let mut values = Matrix::zeros(rows.len(), self.matrix.n_cols);
                add_rows(&mut values, &rows, self.each(own).chain(other.each(others)));
                *self = Gradient { rows: Some(rows), matrix: values };
            }
        }
    }
}

/// Scatter-add of each row into the corresponding row of `to`; `rows` is sorted.
fn add_rows<'a>(to: &mut Matrix, rows: &[u32], each: impl Iterator<Item = (u32, &'a [f32])>) {
    for (row, values) in each {
        if let Ok(at) = rows.binary_search(&row) {
            add_to(to.row_mut(at), values);
        }
    }
}

/// The gradients of all parameters, by parameter row.
#[derive(Debug, Clone, Default)]
pub struct Gradients {
    by_row: Vec<Option<Gradient>>,
}

impl Gradients {
    pub(super) fn none(n_parameters: usize) -> Gradients {
        Gradients { by_row: vec![None; n_parameters] }
    }

    /// The gradient of a parameter; `None` if it was not used or is frozen.
    pub fn of(&self, row: usize) -> Option<&Gradient> {
        self.by_row.get(row)?.as_ref()
    }

    pub(super) fn add_to(&mut self, row: usize, gradient: Gradient) {
        match &mut self.by_row[row] {
            Some(known) => known.add(gradient),
            empty => *empty = Some(gradient),
        }
    }

    /// Accumulates the gradients of another part of the batch.
    pub fn add(&mut self, other: Gradients) {
        if self.by_row.is_empty() {
            *self = other;
            return;
        }
        self.by_row.par_iter_mut().zip(other.by_row).for_each(|(known, new)| match (known.as_mut(), new) {
            (Some(known), Some(new)) => known.add(new),
            (None, new) => *known = new,
            (Some(_), None) => {}
        });
    }

    /// Global L2 norm.
    pub fn norm(&self) -> f32 {
        let squares = |gradient: &Gradient| {
            gradient.matrix.values.chunks(PIECE).map(|piece| f64::from(dot(piece, piece))).sum::<f64>()
        };
        // Summed in order, so that the result does not depend on the number of threads.
        let each: Vec<f64> = self.by_row.par_iter().map(|gradient| gradient.as_ref().map_or(0.0, squares)).collect();
        each.into_iter().sum::<f64>().sqrt() as f32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gradients_of_rows_are_sums_of_what_was_read() {
        let each = Matrix::new(3, 2, vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
        let first = Gradient::of_rows(&[4, 1, 4], &each);
        assert_eq!(
            (first.rows(), first.matrix().values.as_slice()),
            (Some([1, 4].as_slice()), [3.0, 4.0, 6.0, 8.0].as_slice())
        );
        let second = Gradient::of_rows(&[0, 1], &Matrix::new(2, 2, vec![7.0; 4]));
        let whole = |gradient: &Gradient| gradient.to_matrix(5).values;
        let expected = [7.0, 7.0, 10.0, 11.0, 0.0, 0.0, 0.0, 0.0, 6.0, 8.0];
        let mut sum = first.clone();
        sum.add(second.clone());
        assert_eq!((sum.rows(), whole(&sum).as_slice()), (Some([0, 1, 4].as_slice()), expected.as_slice()));
        // Sparse plus dense, in either order.
        let all = Gradient::of_all(second.to_matrix(5));
        for (mut sum, other) in [(first.clone(), all.clone()), (all, first)] {
            sum.add(other);
            assert_eq!((sum.rows(), whole(&sum).as_slice()), (None, expected.as_slice()));
        }
    }

    #[test]
    fn the_length_is_of_all_gradients_together() {
        let mut gradients = Gradients::none(3);
        gradients.add_to(0, Gradient::of_all(Matrix::new(1, 1, vec![3.0])));
        gradients.add_to(2, Gradient::of_rows(&[8], &Matrix::new(1, 1, vec![4.0])));
        assert_eq!(gradients.norm(), 5.0);
        assert!(gradients.of(1).is_none());
    }
}
