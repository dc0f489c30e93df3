//! Row-major `f32` matrices, their products, and vectorised loops.

use gemm::Parallelism;
use serde::{Deserialize, Serialize};

use crate::tensor::tiles;

/// Products with fewer multiplications run on the calling thread.
const WORTH_THREADS: usize = 1 << 21;

/// A row-major matrix.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Matrix {
    /// Number of rows.
    pub n_rows: usize,
    /// Number of columns.
    pub n_cols: usize,
    /// `n_rows * n_cols` values.
    pub values: Vec<f32>,
}

impl Matrix {
    /// A zero matrix.
    pub fn zeros(n_rows: usize, n_cols: usize) -> Matrix {
        Matrix { n_rows, n_cols, values: vec![0.0; n_rows * n_cols] }
    }

    /// A matrix of given values.
    ///
    /// # Panics
    /// If the number of values is not `n_rows * n_cols`.
    pub fn new(n_rows: usize, n_cols: usize, values: Vec<f32>) -> Matrix {
        assert_eq!(values.len(), n_rows * n_cols, "a matrix of {n_rows} x {n_cols}");
        Matrix { n_rows, n_cols, values }
    }

    /// A row.
    pub fn row(&self, row: usize) -> &[f32] {
        &self.values[row * self.n_cols..][..self.n_cols]
    }

    /// A mutable row.
    pub fn row_mut(&mut self, row: usize) -> &mut [f32] {
        &mut self.values[row * self.n_cols..][..self.n_cols]
    }

    /// L2-normalises each row; zero rows stay zero.
    pub fn normalise_rows(&mut self) {
        let n_cols = self.n_cols.max(1);
        for row in self.values.chunks_exact_mut(n_cols) {
            let length = dot(row, row).sqrt();
            if length > 0.0 {
                row.iter_mut().for_each(|value| *value /= length);
            }
        }
    }

    /// View of the whole matrix.
    pub fn view(&self) -> View<'_> {
        View { values: &self.values, n_rows: self.n_rows, n_cols: self.n_cols, row_step: self.n_cols, col_step: 1 }
    }

    /// Mutable view of the whole matrix.
    pub fn view_mut(&mut self) -> ViewMut<'_> {
        ViewMut { n_rows: self.n_rows, n_cols: self.n_cols, row_step: self.n_cols, values: &mut self.values }
    }
}

/// Inner product, with sixteen accumulators.
pub fn dot(left: &[f32], right: &[f32]) -> f32 {
    let mut lanes = [0.0f32; 16];
    let (lefts, left_rest) = left.as_chunks::<16>();
    let (rights, right_rest) = right.as_chunks::<16>();
    for (left, right) in lefts.iter().zip(rights) {
        for lane in 0..16 {
            lanes[lane] += left[lane] * right[lane];
        }
    }
    let rest: f32 = left_rest.iter().zip(right_rest).map(|(left, right)| left * right).sum();
    lanes.iter().sum::<f32>() + rest
}

/// Sum, with sixteen accumulators.
pub fn sum(values: &[f32]) -> f32 {
    let mut lanes = [0.0f32; 16];
    let (pieces, rest) = values.as_chunks::<16>();
    for piece in pieces {
        for lane in 0..16 {
            lanes[lane] += piece[lane];
        }
    }
    lanes.iter().sum::<f32>() + rest.iter().sum::<f32>()
}

/// A read-only view of a matrix, optionally transposed.
#[derive(Debug, Clone, Copy)]
pub struct View<'a> {
    pub(crate) values: &'a [f32],
    /// Number of rows.
    pub n_rows: usize,
    /// Number of columns.
    pub n_cols: usize,
    pub(crate) row_step: usize,
    pub(crate) col_step: usize,
}

impl<'a> View<'a> {
    /// View of the first `n_rows * n_cols` values of a buffer.
    pub fn of(values: &'a [f32], n_rows: usize, n_cols: usize) -> View<'a> {
        assert!(values.len() >= n_rows * n_cols, "a view of {n_rows} x {n_cols} on {} values", values.len());
        View { values, n_rows, n_cols, row_step: n_cols, col_step: 1 }
    }

    /// The transpose.
    pub fn transposed(self) -> View<'a> {
        let View { values, n_rows, n_cols, row_step, col_step } = self;
        View { values, n_rows: n_cols, n_cols: n_rows, row_step: col_step, col_step: row_step }
    }

    /// `n_cols` columns from `first`.
    pub fn columns(self, first: usize, n_cols: usize) -> View<'a> {
        assert!(first + n_cols <= self.n_cols, "columns {first}..{} of {}", first + n_cols, self.n_cols);
        View { values: self.values.get(first * self.col_step..).unwrap_or_default(), n_cols, ..self }
    }

    /// `n_rows` rows from `first`.
    pub fn rows(self, first: usize, n_rows: usize) -> View<'a> {
        assert!(first + n_rows <= self.n_rows, "rows {first}..{} of {}", first + n_rows, self.n_rows);
        View { values: self.values.get(first * self.row_step..).unwrap_or_default(), n_rows, ..self }
    }

    /// # Panics
    /// If the last element lies outside of the values.
    pub(crate) fn check(&self) {
        let last = |last_row: usize, last_col: usize| last_row * self.row_step + last_col * self.col_step;
        let last = self.n_rows.checked_sub(1).zip(self.n_cols.checked_sub(1)).map(|(row, col)| last(row, col));
        assert!(last.is_none_or(|last| last < self.values.len()), "a view inside its values");
    }
}

/// A mutable view of a matrix.
#[derive(Debug)]
pub struct ViewMut<'a> {
    pub(crate) values: &'a mut [f32],
    pub(crate) n_rows: usize,
    pub(crate) n_cols: usize,
    pub(crate) row_step: usize,
}

impl<'a> ViewMut<'a> {
    /// View of the first `n_rows * n_cols` values of a buffer.
    pub fn of(values: &'a mut [f32], n_rows: usize, n_cols: usize) -> ViewMut<'a> {
        assert!(values.len() >= n_rows * n_cols, "a view of {n_rows} x {n_cols} on {} values", values.len());
        ViewMut { values, n_rows, n_cols, row_step: n_cols }
    }

    /// `n_cols` columns from `first`.
    pub fn columns(self, first: usize, n_cols: usize) -> ViewMut<'a> {
        assert!(first + n_cols <= self.n_cols, "columns {first}..{} of {}", first + n_cols, self.n_cols);
        ViewMut { values: self.values.get_mut(first..).unwrap_or_default(), n_cols, ..self }
    }
}

/// Threading of a product.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Threads {
    /// Calling thread only, while others work on other batches.
    One,
    /// All threads, if the product is large enough.
    All,
}

/// Precision of the factors of matrix products. Weights, sums and everything else are `f32`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Compute {
    /// Single precision.
    #[default]
    F32,
    /// Factors rounded to bfloat16 on processors with bfloat16 units ([`tiles`]); otherwise like `F32`.
    Bf16,
}

impl Compute {
    /// Whether this is the default.
    #[allow(clippy::trivially_copy_pass_by_ref, reason = "serde hands references")]
    pub fn is_f32(&self) -> bool {
        *self == Compute::F32
    }
}

/// Whether a product overwrites its output or is added to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteMode {
    /// Overwrite.
    Replace,
    /// Add.
    Add,
}

/// `out = left · right`, or `out += left · right`.
///
/// # Panics
/// If the shapes do not match.
pub fn multiply(out: ViewMut<'_>, left: View<'_>, right: View<'_>, mode: WriteMode, threads: Threads) {
    assert_eq!(
        (left.n_rows, right.n_cols, left.n_cols),
        (out.n_rows, out.n_cols, right.n_rows),
        "rows, columns and depth of a product"
    );
    let (n_rows, n_cols, depth) = (out.n_rows, out.n_cols, left.n_cols);
    if n_rows == 0 || n_cols == 0 {
        return;
    }
    if depth == 0 {
        if mode == WriteMode::Replace {
            out.values.chunks_mut(out.row_step).take(n_rows).for_each(|row| row[..n_cols].fill(0.0));
        }
        return;
    }
    left.check();
    right.check();
    assert!((n_rows - 1) * out.row_step + n_cols <= out.values.len(), "a view inside its values");
    let worth = threads == Threads::All && n_rows * n_cols * depth >= WORTH_THREADS;
    let parallelism = if worth { Parallelism::Rayon(0) } else { Parallelism::None };
    // SAFETY: the asserts above keep the last element of each view inside its slice, strides are not negative, `out` is borrowed
    // exclusively, and its rows do not overlap because a row is no longer than its stride.
    unsafe {
        gemm::gemm(
            n_rows,
            n_cols,
            depth,
            out.values.as_mut_ptr(),
            1,
            out.row_step as isize,
            mode == WriteMode::Add,
            left.values.as_ptr(),
            left.col_step as isize,
            left.row_step as isize,
            right.values.as_ptr(),
            right.col_step as isize,
            right.row_step as isize,
            1.0,
            1.0,
            false,
            false,
            false,
            parallelism,
        );
    }
}

/// As [`multiply`], with the given precision.
///
/// # Panics
/// If the shapes do not match.
pub fn multiply_in(
    compute: Compute,
    out: ViewMut<'_>,
    left: View<'_>,
    right: View<'_>,
    mode: WriteMode,
    threads: Threads,
) {
    if compute == Compute::Bf16 && tiles::worth(out.n_rows, out.n_cols, left.n_cols) {
        tiles::multiply(out, left, right, mode, threads);
    } else {
        multiply(out, left, right, mode, threads);
    }
}

/// A loop for [`vectorised`]. `run` and everything it calls must be `#[inline(always)]`; other calls are compiled for the baseline.
pub trait Vectorised {
    /// Result type.
    type Output;

    /// Runs the loop.
    fn run(self) -> Self::Output;
}

/// Runs a loop compiled for the widest vector registers of the machine. There is no fused multiply-add, so results do not depend on the
/// width.
pub fn vectorised<W: Vectorised>(work: W) -> W::Output {
    #[cfg(target_arch = "x86_64")]
    {
        #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
        fn with_avx512<W: Vectorised>(work: W) -> W::Output {
            work.run()
        }

        #[target_feature(enable = "avx2")]
        fn with_avx2<W: Vectorised>(work: W) -> W::Output {
            work.run()
        }

        if is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512dq")
            && is_x86_feature_detected!("avx512vl")
        {
            // SAFETY: these features were detected above.
            return unsafe { with_avx512(work) };
        }
        if is_x86_feature_detected!("avx2") {
            // SAFETY: the feature was detected above.
            return unsafe { with_avx2(work) };
        }
    }
    work.run()
}

/// As [`vectorised`], for loops that count bits.
pub fn vectorised_counts<W: Vectorised>(work: W) -> W::Output {
    #[cfg(target_arch = "x86_64")]
    {
        #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vpopcntdq")]
        fn with_counts<W: Vectorised>(work: W) -> W::Output {
            work.run()
        }

        if is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512dq")
            && is_x86_feature_detected!("avx512vl")
            && is_x86_feature_detected!("avx512vpopcntdq")
        {
            // SAFETY: these features were detected above.
            return unsafe { with_counts(work) };
        }
    }
    vectorised(work)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(n_rows: usize, n_cols: usize) -> Matrix {
        Matrix::new(n_rows, n_cols, (0..n_rows * n_cols).map(|i| ((i * 37 + 11) % 17) as f32 - 8.0).collect())
    }

    fn plain(left: View<'_>, right: View<'_>) -> Vec<f32> {
        let at = |view: &View<'_>, row: usize, col: usize| view.values[row * view.row_step + col * view.col_step];
        let cell = |row, col| (0..left.n_cols).map(|k| at(&left, row, k) * at(&right, k, col)).sum();
        (0..left.n_rows).flat_map(|row| (0..right.n_cols).map(move |col| (row, col))).map(|(r, c)| cell(r, c)).collect()
    }

    #[test]
    fn products_of_views_are_those_of_the_definition() {
        let (left, right) = (filled(5, 9), filled(7, 4));
        for threads in [Threads::One, Threads::All] {
            let mut out = Matrix::zeros(5, 4);
            multiply(out.view_mut(), left.view().columns(1, 7), right.view(), WriteMode::Replace, threads);
            assert_eq!(out.values, plain(left.view().columns(1, 7), right.view()));
            multiply(out.view_mut(), left.view().columns(1, 7), right.view(), WriteMode::Add, threads);
            let twice: Vec<f32> =
                plain(left.view().columns(1, 7), right.view()).iter().map(|value| 2.0 * value).collect();
            assert_eq!(out.values, twice);
        }
        let mut wide = Matrix::zeros(9, 8);
        multiply(
            wide.view_mut().columns(2, 4),
            left.view().transposed(),
            right.view().rows(1, 5),
            WriteMode::Replace,
            Threads::One,
        );
        let expected = plain(left.view().transposed(), right.view().rows(1, 5));
        for row in 0..9 {
            assert_eq!(wide.row(row)[2..6], expected[row * 4..][..4]);
            assert_eq!((wide.row(row)[..2].iter().sum::<f32>(), wide.row(row)[6..].iter().sum::<f32>()), (0.0, 0.0));
        }
    }
}
