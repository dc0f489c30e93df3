//! What operations compute, forward and backward, on the processor: all loops over values that are not matrix products, which are in
//! [`crate::tensor::matrix`]. The tape records operations and knows their shapes; a device would bring the same functions for its values.
//!
//! Functions that end in `_back` add to gradients of inputs, given that of the output.

pub(crate) mod attention;
pub(crate) mod lstm;

use rayon::prelude::*;

use crate::tensor::elementwise::{Activation, softmax};
use crate::tensor::matrix::{Matrix, Threads, dot, sum};
use crate::tensor::segments::Segments;

/// Values per thread in elementwise operations.
const PIECE: usize = 1 << 14;

/// Applies `apply` to pieces of the values, on one thread or all.
fn in_pieces(mut value: Matrix, threads: Threads, apply: impl Fn(&mut [f32]) + Sync + Send) -> Matrix {
    match threads {
        Threads::One => apply(&mut value.values),
        Threads::All => value.values.par_chunks_mut(PIECE).for_each(apply),
    }
    value
}

pub(crate) fn relu(input: &Matrix, threads: Threads) -> Matrix {
    in_pieces(input.clone(), threads, |piece| piece.iter_mut().for_each(|x| *x = x.max(0.0)))
}

/// Zeroes the gradient where the output is zero.
pub(crate) fn relu_back(output: &Matrix, gradient: &mut Matrix) {
    let mask = |(to, value): (&mut f32, &f32)| *to = if *value > 0.0 { *to } else { 0.0 };
    gradient.values.iter_mut().zip(&output.values).for_each(mask);
}

pub(crate) fn activate(input: &Matrix, activation: Activation, threads: Threads) -> Matrix {
    in_pieces(input.clone(), threads, |piece| activation.apply(piece))
}

/// Multiplies by one factor for each value; its own backward pass.
pub(crate) fn scale(value: &mut Matrix, factors: &[f32]) {
    assert_eq!(factors.len(), value.values.len(), "a factor for each value");
    value.values.iter_mut().zip(factors).for_each(|(value, factor)| *value *= factor);
}

pub(crate) fn add_to(to: &mut [f32], from: &[f32]) {
    assert_eq!(to.len(), from.len(), "values of one shape");
    to.iter_mut().zip(from).for_each(|(to, from)| *to += from);
}

fn add_scaled(to: &mut [f32], from: &[f32], factor: f32) {
    to.iter_mut().zip(from).for_each(|(to, from)| *to += from * factor);
}

/// Column sums, `[1, cols]`.
pub(crate) fn column_sums(input: &Matrix) -> Matrix {
    let mut sums = Matrix::zeros(1, input.n_cols);
    add_column_sums(input, &mut sums);
    sums
}

pub(crate) fn add_column_sums(input: &Matrix, to: &mut Matrix) {
    input.values.chunks_exact(input.n_cols).for_each(|row| add_to(&mut to.values, row));
}

/// Values beside each other.
pub(crate) fn concat(parts: &[&Matrix]) -> Matrix {
    let (n_rows, n_cols) = (parts[0].n_rows, parts.iter().map(|part| part.n_cols).sum());
    let mut value = Matrix::zeros(n_rows, n_cols);
    let mut first = 0;
    for part in parts {
        assert_eq!(part.n_rows, n_rows, "rows of values that stand beside each other");
        for (to, from) in value.values.chunks_exact_mut(n_cols).zip(part.values.chunks_exact(part.n_cols)) {
            to[first..][..part.n_cols].copy_from_slice(from);
        }
        first += part.n_cols;
    }
    value
}

/// The gradient of the part that begins with the column `first`.
pub(crate) fn concat_back(gradient: &Matrix, first: usize, to: &mut Matrix) {
    let n_cols = to.n_cols;
    for (to, from) in to.values.chunks_exact_mut(n_cols).zip(gradient.values.chunks_exact(gradient.n_cols)) {
        add_to(to, &from[first..][..n_cols]);
    }
}

/// Values below each other.
pub(crate) fn stack(upper: &Matrix, lower: &Matrix) -> Matrix {
    assert_eq!(upper.n_cols, lower.n_cols, "columns of values that stand below each other");
    Matrix::new(upper.n_rows + lower.n_rows, upper.n_cols, [upper.values.as_slice(), &lower.values].concat())
}

/// The gradients of the upper and the lower value.
pub(crate) fn stack_back(mut gradient: Matrix, upper: &Matrix) -> (Matrix, Matrix) {
    let below = gradient.values.split_off(upper.values.len());
    let n_cols = gradient.n_cols;
    let rows = |values: Vec<f32>| Matrix::new(values.len() / n_cols.max(1), n_cols, values);
    (rows(gradient.values), rows(below))
}

/// Offsets of an unfold.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Offsets<'a> {
    /// All of them.
    pub all: &'a [isize],
    /// Which of them are written.
    pub seen: &'a [bool],
}

/// Writes the unfold of the rows of `segments` in `from` to `to`, whose rows have as many times the columns as there are offsets, and are
/// zero before.
pub(crate) fn unfold(from: &[f32], to: &mut [f32], offsets: Offsets<'_>, segments: &Segments) {
    let n_cols = from.len() / segments.n_rows().max(1);
    let width = n_cols * offsets.all.len();
    each_neighbour(offsets.all, segments, |row, place, near| {
        if offsets.seen[place] {
            to[row * width + place * n_cols..][..n_cols].copy_from_slice(&from[near * n_cols..][..n_cols]);
        }
    });
}

pub(crate) fn unfold_back(gradient: &Matrix, offsets: &[isize], segments: &Segments, to: &mut Matrix) {
    let n_cols = to.n_cols;
    each_neighbour(offsets, segments, |row, place, near| {
        add_to(to.row_mut(near), &gradient.row(row)[place * n_cols..][..n_cols]);
    });
}

/// Calls `each` with every row, the place of every offset, and the row at that offset in the same sequence, if there is one.
fn each_neighbour(offsets: &[isize], segments: &Segments, mut each: impl FnMut(usize, usize, usize)) {
    for rows in segments.iter() {
        for row in rows.clone() {
            for (place, offset) in offsets.iter().enumerate() {
                let near = row as isize + offset;
                if near >= rows.start as isize && near < rows.end as isize {
                    each(row, place, near as usize);
                }
            }
        }
    }
}

/// Rows of a table.
pub(crate) fn gather(table: &Matrix, rows: &[u32]) -> Matrix {
    let mut values = Vec::with_capacity(rows.len() * table.n_cols);
    rows.iter().for_each(|row| values.extend_from_slice(table.row(*row as usize)));
    Matrix::new(rows.len(), table.n_cols, values)
}

pub(crate) fn gather_back(gradient: &Matrix, rows: &[u32], to: &mut Matrix) {
    for (row, from) in rows.iter().zip(gradient.values.chunks_exact(to.n_cols)) {
        add_to(to.row_mut(*row as usize), from);
    }
}

/// Rows with mean 0 and variance 1, from the inverse standard deviation of each. They are computed again in the backward pass, since they
/// cannot be recovered from the output where a gain is 0.
pub(crate) fn standardised(input: &Matrix, inverse: &[f32]) -> Matrix {
    let (mut normal, n_cols) = (input.clone(), input.n_cols);
    for (row, inverse) in normal.values.chunks_exact_mut(n_cols).zip(inverse) {
        let mean = sum(row) / n_cols as f32;
        row.iter_mut().for_each(|x| *x = (*x - mean) * inverse);
    }
    normal
}

/// The gradient of the gain of a layer norm.
pub(crate) fn layer_norm_gain_back(gradient: &Matrix, normal: &Matrix, to: &mut Matrix) {
    let n_cols = gradient.n_cols;
    for (normal, from) in normal.values.chunks_exact(n_cols).zip(gradient.values.chunks_exact(n_cols)) {
        for col in 0..n_cols {
            to.values[col] += normal[col] * from[col];
        }
    }
}

/// The gradient of the input of a layer norm, from that of its output.
pub(crate) fn layer_norm_back(gradient: &mut Matrix, normal: &Matrix, inverse: &[f32], gains: &[f32]) {
    let n_cols = gradient.n_cols;
    let rows = gradient.values.chunks_exact_mut(n_cols).zip(normal.values.chunks_exact(n_cols)).zip(inverse);
    for ((to, normal), inverse) in rows {
        to.iter_mut().zip(gains).for_each(|(to, gain)| *to *= gain);
        let (mean, along) = (sum(to) / n_cols as f32, dot(to, normal) / n_cols as f32);
        to.iter_mut().zip(normal).for_each(|(to, normal)| *to = inverse * (*to - mean - normal * along));
    }
}

/// L2-normalised rows and their norms; zero rows stay zero.
pub(crate) fn normalise(input: &Matrix) -> (Matrix, Vec<f32>) {
    let mut value = input.clone();
    let norms = (0..value.n_rows).map(|row| dot(value.row(row), value.row(row)).sqrt()).collect();
    value.normalise_rows();
    (value, norms)
}

pub(crate) fn normalise_back(output: &Matrix, gradient: &Matrix, norms: &[f32], to: &mut Matrix) {
    for (row, norm) in norms.iter().enumerate().filter(|(_, norm)| **norm > 0.0) {
        // The component parallel to the row changes only its norm.
        let (direction, from) = (output.row(row), gradient.row(row));
        let along = dot(direction, from);
        let gradients = direction.iter().zip(from).map(|(direction, from)| (from - along * direction) / norm);
        to.row_mut(row).iter_mut().zip(gradients).for_each(|(to, gradient)| *to += gradient);
    }
}

/// The greatest values of each sequence, and their rows.
pub(crate) fn segment_max(input: &Matrix, segments: &Segments) -> (Matrix, Vec<u32>) {
    let n_cols = input.n_cols;
    let mut value = Matrix::zeros(segments.len(), n_cols);
    let mut rows = vec![0u32; segments.len() * n_cols];
    for (segment, range) in segments.iter().enumerate() {
        let best = value.row_mut(segment);
        let best_row = &mut rows[segment * n_cols..][..n_cols];
        best.copy_from_slice(input.row(range.start));
        best_row.fill(range.start as u32);
        for row in range.skip(1) {
            for (col, candidate) in input.row(row).iter().enumerate() {
                if *candidate > best[col] {
                    best[col] = *candidate;
                    best_row[col] = row as u32;
                }
            }
        }
    }
    (value, rows)
}

pub(crate) fn segment_max_back(gradient: &Matrix, rows: &[u32], to: &mut Matrix) {
    let n_cols = to.n_cols;
    for (place, (row, from)) in rows.iter().zip(&gradient.values).enumerate() {
        to.values[*row as usize * n_cols + place % n_cols] += from;
    }
}

pub(crate) fn segment_mean(input: &Matrix, segments: &Segments) -> Matrix {
    let mut value = Matrix::zeros(segments.len(), input.n_cols);
    for (segment, range) in segments.iter().enumerate() {
        let weight = 1.0 / range.len() as f32;
        range.for_each(|row| add_scaled(value.row_mut(segment), input.row(row), weight));
    }
    value
}

pub(crate) fn segment_mean_back(gradient: &Matrix, segments: &Segments, to: &mut Matrix) {
    for (segment, rows) in segments.iter().enumerate() {
        let weight = 1.0 / rows.len() as f32;
        rows.for_each(|row| add_scaled(to.row_mut(row), gradient.row(segment), weight));
    }
}

pub(crate) fn segment_softmax(input: &Matrix, segments: &Segments) -> Matrix {
    let mut value = input.clone();
    segments.iter().for_each(|rows| softmax(&mut value.values[rows]));
    value
}

/// The gradient of the input of a softmax, from that of its output.
pub(crate) fn segment_softmax_back(output: &Matrix, segments: &Segments, gradient: &mut Matrix) {
    for rows in segments.iter() {
        let probabilities = &output.values[rows.clone()];
        let to = &mut gradient.values[rows];
        let mean: f32 = probabilities.iter().zip(to.iter()).map(|(p, to)| p * to).sum();
        to.iter_mut().zip(probabilities).for_each(|(to, p)| *to = p * (*to - mean));
    }
}

/// Sums of the rows of each sequence, each with its weight.
pub(crate) fn segment_sum(input: &Matrix, weights: &Matrix, segments: &Segments) -> Matrix {
    let mut value = Matrix::zeros(segments.len(), input.n_cols);
    for (segment, range) in segments.iter().enumerate() {
        range.for_each(|row| add_scaled(value.row_mut(segment), input.row(row), weights.values[row]));
    }
    value
}

/// The gradient of the weights of a sum.
pub(crate) fn segment_sum_weights_back(gradient: &Matrix, input: &Matrix, segments: &Segments, to: &mut Matrix) {
    for (segment, rows) in segments.iter().enumerate() {
        rows.for_each(|row| to.values[row] += dot(input.row(row), gradient.row(segment)));
    }
}

/// The gradient of the rows of a sum.
pub(crate) fn segment_sum_back(gradient: &Matrix, weights: &Matrix, segments: &Segments, to: &mut Matrix) {
    for (segment, rows) in segments.iter().enumerate() {
        rows.for_each(|row| add_scaled(to.row_mut(row), gradient.row(segment), weights.values[row]));
    }
}
