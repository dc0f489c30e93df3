//! bfloat16 matrix products on tile units (Intel AMX), if the processor has them and the operating system permits their use, or else on
//! vector units that multiply pairs of bfloat16 values (AVX512-BF16).
//!
//! A tile holds 16 rows of 64 bytes: 16 x 32 bfloat16 values of the left factor, as many of the right factor with adjacent depth values
//! interleaved, or 16 x 16 single-precision sums. One instruction multiplies two tiles and accumulates into a third. Both factors are
//! rounded to nearest and packed into strips of two tiles, in the order in which they are read; sums are in single precision. Results
//! depend neither on the number of threads nor on the position of a row.

use std::cell::Cell;

use crate::tensor::matrix::{Threads, View, ViewMut, WriteMode};

/// Rows or columns of a strip: two tiles.
const STRIP: usize = 32;

/// Depth of a tile.
const DEPTH: usize = 32;

/// Rows of a tile.
const LINES: usize = 16;

/// Products with fewer multiplications are not worth packing.
const WORTH: usize = 1 << 15;

/// Whether tile units or vector units for bfloat16 are available.
pub fn available() -> bool {
    machine::available()
}

/// Whether a product of this shape is faster with bfloat16 units, including packing.
pub fn worth(n_rows: usize, n_cols: usize, depth: usize) -> bool {
    n_rows * n_cols * depth >= WORTH && depth >= LINES && n_cols >= LINES && available()
}

/// 64 bytes: one row of a tile.
#[derive(Debug, Clone, Copy, PartialEq)]
#[repr(C, align(64))]
struct Line([u16; 32]);

/// Reusable memory of a packed matrix.
#[derive(Debug, Default)]
pub struct Workspace(Vec<Line>);

/// A packed right factor.
#[derive(Debug, Clone, PartialEq)]
pub struct Packed {
    // Private: strips of columns, tiles along the depth, two tiles side by side.
    lines: Vec<Line>,
    depth: usize,
    n_cols: usize,
}

impl Packed {
    /// Packs a matrix, `[depth, columns]`.
    ///
    /// # Panics
    /// If there are no bfloat16 units; check [`available`] first.
    pub fn of(right: View<'_>) -> Packed {
        Packed::in_workspace(right, Workspace::default())
    }

    /// As [`Packed::of`], into the memory of an earlier matrix of the same shape.
    pub fn in_workspace(right: View<'_>, workspace: Workspace) -> Packed {
        let Workspace(mut lines) = workspace;
        let n_lines = machine::pack(right.transposed(), machine::Side::Right, &mut lines).len();
        lines.truncate(n_lines);
        Packed { lines, depth: right.n_rows, n_cols: right.n_cols }
    }

    /// Releases its memory for another matrix.
    pub fn into_workspace(self) -> Workspace {
        Workspace(self.lines)
    }

    fn right(&self) -> Right<'_> {
        Right { lines: &self.lines, depth: self.depth, n_cols: self.n_cols }
    }

    /// Number of rows of the matrix.
    pub fn depth(&self) -> usize {
        self.depth
    }

    /// Number of columns of the matrix.
    pub fn n_cols(&self) -> usize {
        self.n_cols
    }

    /// `out = left · self`, or `out += left · self`.
    ///
    /// # Panics
    /// If the shapes do not match.
    pub fn multiply(&self, out: ViewMut<'_>, left: View<'_>, mode: WriteMode, threads: Threads) {
        self.right().multiply(out, left, mode, threads);
    }
}

/// A borrowed packed right factor.
#[derive(Clone, Copy)]
struct Right<'a> {
    lines: &'a [Line],
    depth: usize,
    n_cols: usize,
}

impl Right<'_> {
    fn multiply(self, out: ViewMut<'_>, left: View<'_>, mode: WriteMode, threads: Threads) {
        let shape = (left.n_rows, left.n_cols, self.n_cols);
        assert_eq!(shape, (out.n_rows, self.depth, out.n_cols), "rows, depth and columns of a product");
        if out.n_rows > 0 && out.n_cols > 0 {
            machine::multiply(out, left, self, mode, threads);
        }
    }
}

thread_local! {
    /// Buffer of a right factor that is used once. It is taken while in use, since a waiting thread may start another product.
    static ONCE: Cell<Vec<Line>> = const { Cell::new(Vec::new()) };
}

/// `out = left · right`, or `out += left · right`, with factors rounded to bfloat16.
///
/// # Panics
/// If the shapes do not match, or there are no bfloat16 units.
pub fn multiply(out: ViewMut<'_>, left: View<'_>, right: View<'_>, mode: WriteMode, threads: Threads) {
    let mut workspace = ONCE.take();
    let lines = machine::pack(right.transposed(), machine::Side::Right, &mut workspace);
    Right { lines, depth: right.n_rows, n_cols: right.n_cols }.multiply(out, left, mode, threads);
    ONCE.set(workspace);
}

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod machine;

#[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
mod machine {
    use super::{Line, Right};
    use crate::tensor::matrix::{Threads, View, ViewMut, WriteMode};

    pub enum Side {
        Right,
    }

    pub fn available() -> bool {
        false
    }

    pub fn pack(_: View<'_>, _: Side, _: &mut Vec<Line>) -> &[Line] {
        unreachable!("this machine has no bfloat16 units")
    }

    pub fn multiply(_: ViewMut<'_>, _: View<'_>, _: Right<'_>, _: WriteMode, _: Threads) {
        unreachable!("this machine has no bfloat16 units")
    }
}

#[cfg(test)]
mod tests {
    use half::bf16;

    use super::*;
    use crate::autograd::differences::drawn;
    use crate::tensor::matrix::Matrix;
    use crate::tensor::random::SplitMix64;

    fn rounded(matrix: &Matrix) -> Matrix {
        let values = matrix.values.iter().map(|value| bf16::from_f32(*value).to_f32()).collect();
        Matrix::new(matrix.n_rows, matrix.n_cols, values)
    }

    /// The product of the rounded factors, in double precision.
    fn expected(left: &Matrix, right: &Matrix) -> Vec<f64> {
        let (left, right) = (rounded(left), rounded(right));
        let cell = |row: usize, col: usize| {
            (0..left.n_cols).map(|k| f64::from(left.row(row)[k]) * f64::from(right.row(k)[col])).sum()
        };
        (0..left.n_rows).flat_map(|row| (0..right.n_cols).map(move |col| (row, col))).map(|(r, c)| cell(r, c)).collect()
    }

    fn flipped(matrix: &Matrix) -> Matrix {
        let cells = (0..matrix.n_cols).flat_map(|col| (0..matrix.n_rows).map(move |row| matrix.row(row)[col]));
        Matrix::new(matrix.n_cols, matrix.n_rows, cells.collect())
    }

    #[test]
    fn products_are_those_of_rounded_values_for_all_shapes_and_layouts() {
        if !available() {
            return eprintln!("skipped: this machine has no bfloat16 units");
        }
        let mut rng = SplitMix64::new(4);
        let shapes =
            [(1, 1, 1), (16, 32, 16), (17, 33, 31), (5, 384, 40), (33, 7, 100), (300, 70, 65), (140, 1536, 500)];
        for (n_rows, depth, n_cols) in shapes {
            let (left, right) = (drawn(n_rows, depth, &mut rng), drawn(depth, n_cols, &mut rng));
            let expected = expected(&left, &right);
            let (left_flipped, right_flipped) = (flipped(&left), flipped(&right));
            let lefts = [left.view(), left_flipped.view().transposed()];
            let rights = [right.view(), right_flipped.view().transposed()];
            for (left, right) in lefts.into_iter().flat_map(|left| rights.map(|right| (left, right))) {
                for threads in [Threads::One, Threads::All] {
                    // Columns outside of the product do not change.
                    let mut out = Matrix::new(n_rows, n_cols + 3, vec![0.5; n_rows * (n_cols + 3)]);
                    multiply(out.view_mut().columns(2, n_cols), left, right, WriteMode::Add, threads);
                    let near = |(made, expected): (&f32, &f64)| (f64::from(*made) - 0.5 - expected).abs() < 1e-3;
                    for (row, expected) in expected.chunks(n_cols).enumerate() {
                        let (before, rest) = out.row(row).split_at(2);
                        assert!(rest.iter().zip(expected).all(near), "{n_rows} x {depth} x {n_cols}, row {row}");
                        assert_eq!((before, rest[n_cols]), ([0.5, 0.5].as_slice(), 0.5));
                    }
                    let mut again = Matrix::zeros(n_rows, n_cols + 3);
                    multiply(again.view_mut().columns(2, n_cols), left, right, WriteMode::Replace, threads);
                    let same = out.values.iter().zip(&again.values).all(|(sum, made)| (sum - 0.5 - made).abs() < 1e-3);
                    assert!(same, "what stood there is replaced");
                }
            }
        }
    }

    #[test]
    fn what_is_no_number_stays_none() {
        if !available() {
            return eprintln!("skipped: this machine has no bfloat16 units");
        }
        let left = Matrix::new(2, 2, vec![f32::NAN, 1.0, f32::INFINITY, 1.0]);
        let right = Matrix::new(2, 1, vec![1.0, 1.0]);
        let mut out = Matrix::zeros(2, 1);
        multiply(out.view_mut(), left.view(), right.view(), WriteMode::Replace, Threads::One);
        assert!(out.values[0].is_nan() && out.values[1] == f32::INFINITY, "{:?}", out.values);
    }
}
