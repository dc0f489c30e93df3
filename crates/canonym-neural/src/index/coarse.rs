//! First pass over rows quantised to 8 bits, which preselects rows for an exact search.
//!
//! The search for a single query is limited by memory bandwidth; reading a quarter of the bytes takes a quarter of the time.

use rayon::prelude::*;

use super::Hit;
use super::rows::Rows;
use crate::tensor::matrix::{Vectorised, dot, vectorised};

/// Rows per thread.
const ROWS: usize = 4096;

/// Bound of the rounding error of single-precision sums, per unit of norm.
const ROUNDING: f32 = 1e-5;

/// Rows quantised to 8 bits, each with its own scale.
#[derive(Debug, Clone)]
pub struct Coarse {
    values: Vec<i8>,
    scales: Vec<f32>,
    /// Maximum L2 norm of the quantisation error of a row.
    lost: f32,
    /// Maximum norm of a row.
    length: f32,
}

impl Coarse {
    /// Quantises rows.
    pub fn of(rows: &Rows) -> Coarse {
        let n_cols = rows.n_cols().max(1);
        let mut values = vec![0i8; rows.n_rows() * rows.n_cols()];
        let (sizes, scales): (Vec<(f32, f32)>, Vec<f32>) = values
            .par_chunks_exact_mut(n_cols)
            .enumerate()
            .map(|(at, to)| {
                let row = &*rows.row(at);
                let (scale, lost) = vectorised(Rounded { row, to });
                ((lost, dot(row, row).sqrt()), scale)
            })
            .unzip();
        let greatest = |of: fn(&(f32, f32)) -> f32| sizes.iter().map(of).fold(0.0, f32::max);
        Coarse { values, scales, lost: greatest(|size| size.0), length: greatest(|size| size.1) }
    }

    /// The `k` rows with the highest inner product with a query of norm 1, best first; ties in row order.
    pub fn search(&self, rows: &Rows, query: &[f32], k: usize) -> Vec<Hit> {
        if k == 0 || rows.n_rows() == 0 || query.is_empty() {
            return Vec::new();
        }
        let mut rounded = vec![0i8; query.len()];
        let (scale, lost) = vectorised(Rounded { row: query, to: &mut rounded });
        let rounded: Vec<i16> = rounded.into_iter().map(i16::from).collect();
        let mut scores = vec![0.0; rows.n_rows()];
        scores
            .par_chunks_mut(ROWS)
            .zip(self.values.par_chunks(ROWS * query.len()))
            .zip(self.scales.par_chunks(ROWS))
            .for_each(|((to, values), scales)| vectorised(Products { query: &rounded, scale, values, scales, to }));
        // Bound of the error of a quantised score: rows farther below the k-th score cannot be among the top k.
        let bound = self.lost + (lost + ROUNDING) * (self.length + self.lost);
        let limit = kth(&scores, k) - 2.0 * bound;
        let near = scores.iter().enumerate().filter(|(_, score)| **score >= limit);
        let mut hits: Vec<Hit> =
            near.map(|(row, _)| Hit { row: row as u32, score: dot(query, &rows.row(row)) }).collect();
        // Stable sort; hits are in row order before.
        hits.sort_by(|left, right| right.score.total_cmp(&left.score));
        hits.truncate(k);
        hits
    }
}

/// The k-th largest value; negative infinity if there are fewer values.
fn kth(values: &[f32], k: usize) -> f32 {
    // The k largest values so far, in descending order.
    let mut best: Vec<f32> = Vec::with_capacity(k.min(values.len()) + 1);
    let mut limit = f32::NEG_INFINITY;
    for value in values {
        if *value > limit {
            let place = best.partition_point(|other| other >= value);
            best.insert(place, *value);
            best.truncate(k);
            if best.len() == k {
                limit = best[k - 1];
            }
        }
    }
    limit
}

/// Quantises a row; returns its scale and the norm of the quantisation error.
pub(super) struct Rounded<'a> {
    pub row: &'a [f32],
    pub to: &'a mut [i8],
}

impl Vectorised for Rounded<'_> {
    type Output = (f32, f32);

    #[inline(always)]
    fn run(self) -> (f32, f32) {
        let mut greatest = [0.0f32; 16];
        for values in self.row.chunks(16) {
            greatest.iter_mut().zip(values).for_each(|(greatest, value)| *greatest = greatest.max(value.abs()));
        }
        let scale = greatest.into_iter().fold(0.0, f32::max) / 127.0;
        let factor = if scale > 0.0 { 1.0 / scale } else { 0.0 };
        let mut lost = [0.0f32; 16];
        for (to, values) in self.to.chunks_mut(16).zip(self.row.chunks(16)) {
            for ((to, value), lost) in to.iter_mut().zip(values).zip(&mut lost) {
                *to = (value * factor).round_ties_even() as i8;
                let taken = value - scale * f32::from(*to);
                *lost += taken * taken;
            }
        }
        (scale, lost.iter().sum::<f32>().sqrt())
    }
}

/// Inner products of a quantised query with quantised rows.
struct Products<'a> {
    query: &'a [i16],
    scale: f32,
    values: &'a [i8],
    scales: &'a [f32],
    to: &'a mut [f32],
}

impl Vectorised for Products<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let rows = self.values.chunks_exact(self.query.len());
        for ((to, row), scale) in self.to.iter_mut().zip(rows).zip(self.scales) {
            let product = |(left, right): (&i16, &i8)| i32::from(*left) * i32::from(i16::from(*right));
            let sum: i32 = self.query.iter().zip(row).map(product).sum();
            *to = sum as f32 * self.scale * scale;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tensor::matrix::Matrix;
    use crate::tensor::random::{self, SplitMix64};

    #[test]
    fn the_choice_is_that_of_an_exact_search() {
        let mut rng = SplitMix64::new(7);
        for (n_rows, n_cols, k) in [(9000, 40, 20), (30, 256, 50), (5, 1, 2)] {
            let mut drawn =
                |n: usize| Matrix::new(n, n_cols, (0..n * n_cols).map(|_| random::normal(&mut rng)).collect());
            let (mut rows, mut queries) = (drawn(n_rows), drawn(10));
            // Includes duplicate rows, a zero row and rows of different norms.
            rows.values.copy_within(..2 * n_cols, 2 * n_cols);
            rows.row_mut(4).fill(0.0);
            queries.normalise_rows();
            let rows = Rows::Owned(rows);
            let coarse = Coarse::of(&rows);
            for query in 0..queries.n_rows {
                let query = queries.row(query);
                let mut all: Vec<Hit> =
                    (0..n_rows).map(|row| Hit { row: row as u32, score: dot(query, &rows.row(row)) }).collect();
                all.sort_by(|left, right| right.score.total_cmp(&left.score));
                all.truncate(k);
                assert_eq!(coarse.search(&rows, query, k), all);
            }
        }
        let empty = Rows::Owned(Matrix::zeros(0, 3));
        assert!(Coarse::of(&empty).search(&empty, &[1.0, 0.0, 0.0], 3).is_empty());
    }
}
