//! Vectors as they lie in a file: rows of half precision, or of 8 bits with a scale each.

use canonym_core::index::packed::U32s;
use half::f16;
use serde::{Deserialize, Serialize};

use super::coarse::Rounded;
use crate::tensor::matrix::{Vectorised, vectorised};

/// Precision of stored vectors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Precision {
    /// Half precision, two bytes a value.
    F16,
    /// One byte a value, and a scale for each row.
    Int8,
}

impl Precision {
    /// Bytes of a value.
    pub fn n_bytes(self) -> usize {
        match self {
            Precision::F16 => 2,
            Precision::Int8 => 1,
        }
    }

    /// Name in options and messages.
    pub fn name(self) -> &'static str {
        match self {
            Precision::F16 => "f16",
            Precision::Int8 => "int8",
        }
    }

    /// Appends a row to `values` and returns its scale, which is 1 in half precision.
    pub fn push(self, row: &[f32], values: &mut Vec<u8>) -> f32 {
        match self {
            Precision::F16 => {
                values.extend(row.iter().flat_map(|value| f16::from_f32(*value).to_le_bytes()));
                1.0
            }
            Precision::Int8 => {
                let mut rounded = vec![0i8; row.len()];
                let (scale, _) = vectorised(Rounded { row, to: &mut rounded });
                values.extend(rounded.iter().map(|value| *value as u8));
                scale
            }
        }
    }
}

/// A query in the forms in which it is compared.
#[derive(Debug, Clone)]
pub struct Query<'a> {
    /// L2-normalised.
    pub vector: &'a [f32],
    rounded: Vec<i16>,
    scale: f32,
}

impl<'a> Query<'a> {
    /// A query of norm 1.
    pub fn new(vector: &'a [f32]) -> Query<'a> {
        let mut rounded = vec![0i8; vector.len()];
        let (scale, _) = vectorised(Rounded { row: vector, to: &mut rounded });
        Query { vector, rounded: rounded.into_iter().map(i16::from).collect(), scale }
    }
}

/// A view of stored rows.
#[derive(Debug, Clone, Copy)]
pub struct Rows<'a> {
    /// Precision of the values.
    pub precision: Precision,
    /// Number of columns.
    pub n_cols: usize,
    /// The rows, back to back.
    pub values: &'a [u8],
    /// Scale of each row, as bits of an `f32`; unused in half precision.
    pub scales: U32s<'a>,
}

impl<'a> Rows<'a> {
    /// Bytes of a row.
    fn width(&self) -> usize {
        self.precision.n_bytes() * self.n_cols
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.values.len() / self.width().max(1)
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn bytes(&self, rows: std::ops::Range<usize>) -> &'a [u8] {
        let width = self.width();
        self.values.get(rows.start * width..rows.end * width).unwrap_or_default()
    }

    /// Expands rows to single precision.
    pub fn expand(&self, rows: std::ops::Range<usize>, to: &mut [f32]) {
        let bytes = self.bytes(rows.clone());
        match self.precision {
            Precision::F16 => vectorised(Halves { bytes, to }),
            Precision::Int8 => {
                let n_cols = self.n_cols.max(1);
                for ((to, bytes), row) in to.chunks_mut(n_cols).zip(bytes.chunks(n_cols)).zip(rows) {
                    vectorised(Scaled { bytes, scale: f32::from_bits(self.scales.get(row)), to });
                }
            }
        }
    }

    /// Inner products of a query with consecutive rows; approximate for rows of 8 bits, which are compared with the query rounded to 8 bits.
    pub fn scores(&self, query: &Query<'_>, rows: std::ops::Range<usize>, to: &mut [f32]) {
        match self.precision {
            Precision::Int8 => {
                let values = self.bytes(rows.clone());
                let scales = self.scales.slice(rows);
                vectorised(ByteDots { query: &query.rounded, scale: query.scale, values, scales, to });
            }
            Precision::F16 => vectorised(HalfDots { query: query.vector, values: self.bytes(rows), to }),
        }
    }

    /// Inner products of a vector in single precision with some rows, which are first brought together: the processor waits for many of them
    /// at a time.
    pub fn scores_of(&self, vector: &[f32], rows: &[u32], buffers: &mut Buffers) {
        let Buffers { bytes, expanded, scores } = buffers;
        scores.clear();
        scores.resize(rows.len(), 0.0);
        let row = |row: &u32| *row as usize..*row as usize + 1;
        match self.precision {
            Precision::F16 => {
                bytes.clear();
                rows.iter().for_each(|at| bytes.extend_from_slice(self.bytes(row(at))));
                vectorised(HalfDots { query: vector, values: bytes, to: scores });
            }
            Precision::Int8 => {
                expanded.resize(rows.len() * self.n_cols, 0.0);
                let places = expanded.chunks_exact_mut(self.n_cols.max(1));
                rows.iter().zip(places).for_each(|(at, to)| self.expand(row(at), to));
                vectorised(Dots { query: vector, rows: expanded, to: scores });
            }
        }
    }

    /// Inner product of a vector in single precision with a row.
    pub fn score(&self, vector: &[f32], row: u32) -> f32 {
        let mut buffers = Buffers::default();
        self.scores_of(vector, &[row], &mut buffers);
        buffers.scores[0]
    }
}

/// Work buffers of [`Rows::scores_of`].
#[derive(Debug, Default)]
pub struct Buffers {
    bytes: Vec<u8>,
    expanded: Vec<f32>,
    /// The inner products.
    pub scores: Vec<f32>,
}

/// A value in half precision. Finite values are exact; there are no others in a file that was not tampered with.
#[inline(always)]
fn single(bytes: [u8; 2]) -> f32 {
    let bits = u32::from(u16::from_le_bytes(bytes));
    // The exponent of half precision has a bias of 15, that of single precision one of 127.
    let magnitude = f32::from_bits((bits & 0x7fff) << 13) * f32::from_bits((127 + 112) << 23);
    f32::from_bits(magnitude.to_bits() | (bits & 0x8000) << 16)
}

/// Expands values in half precision.
struct Halves<'a> {
    bytes: &'a [u8],
    to: &'a mut [f32],
}

impl Vectorised for Halves<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        for (to, bytes) in self.to.iter_mut().zip(self.bytes.as_chunks::<2>().0) {
            *to = single(*bytes);
        }
    }
}

/// Expands values of 8 bits.
struct Scaled<'a> {
    bytes: &'a [u8],
    scale: f32,
    to: &'a mut [f32],
}

impl Vectorised for Scaled<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        self.to.iter_mut().zip(self.bytes).for_each(|(to, byte)| *to = f32::from(*byte as i8) * self.scale);
    }
}

/// Inner products of a vector with rows in half precision, summed as those of [`Dots`].
struct HalfDots<'a> {
    query: &'a [f32],
    values: &'a [u8],
    to: &'a mut [f32],
}

impl Vectorised for HalfDots<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let (queries, rest) = self.query.as_chunks::<16>();
        for (to, row) in self.to.iter_mut().zip(self.values.chunks_exact(2 * self.query.len().max(1))) {
            let (rows, row_rest) = row.as_chunks::<2>().0.as_chunks::<16>();
            let mut lanes = [0.0f32; 16];
            for (left, right) in queries.iter().zip(rows) {
                for lane in 0..16 {
                    lanes[lane] += left[lane] * single(right[lane]);
                }
            }
            let more: f32 = rest.iter().zip(row_rest).map(|(left, right)| left * single(*right)).sum();
            *to = lanes.iter().sum::<f32>() + more;
        }
    }
}

/// Inner products of a vector with rows.
pub(super) struct Dots<'a> {
    pub query: &'a [f32],
    pub rows: &'a [f32],
    pub to: &'a mut [f32],
}

impl Vectorised for Dots<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let (queries, rest) = self.query.as_chunks::<16>();
        for (to, row) in self.to.iter_mut().zip(self.rows.chunks_exact(self.query.len())) {
            let (rows, row_rest) = row.as_chunks::<16>();
            let mut lanes = [0.0f32; 16];
            for (left, right) in queries.iter().zip(rows) {
                for lane in 0..16 {
                    lanes[lane] += left[lane] * right[lane];
                }
            }
            let more: f32 = rest.iter().zip(row_rest).map(|(left, right)| left * right).sum();
            *to = lanes.iter().sum::<f32>() + more;
        }
    }
}

/// Inner products of a query of 8 bits with rows of 8 bits.
struct ByteDots<'a> {
    query: &'a [i16],
    scale: f32,
    values: &'a [u8],
    scales: U32s<'a>,
    to: &'a mut [f32],
}

impl Vectorised for ByteDots<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let rows = self.values.chunks_exact(self.query.len().max(1));
        for ((to, row), scale) in self.to.iter_mut().zip(rows).zip(self.scales.0.as_chunks::<4>().0) {
            let product = |(left, right): (&i16, &u8)| i32::from(*left) * i32::from(i16::from(*right as i8));
            let sum: i32 = self.query.iter().zip(row).map(product).sum();
            *to = sum as f32 * self.scale * f32::from_le_bytes(*scale);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tensor::matrix::{Matrix, dot};
    use crate::tensor::random::{self, SplitMix64};

    #[test]
    fn half_precision_is_read_exactly() {
        for bits in 0..=u16::MAX {
            let half = f16::from_bits(bits);
            if half.is_finite() {
                assert_eq!(single(bits.to_le_bytes()).to_bits(), half.to_f32().to_bits(), "{bits:x}");
            }
        }
    }

    #[test]
    fn stored_rows_score_as_the_vectors_that_they_were_made_from() {
        let mut rng = SplitMix64::new(3);
        let mut drawn = |n: usize| Matrix::new(n, 37, (0..n * 37).map(|_| random::normal(&mut rng)).collect());
        let (mut rows, mut queries) = (drawn(150), drawn(4));
        rows.normalise_rows();
        queries.normalise_rows();
        for (precision, error) in [(Precision::F16, 1e-3), (Precision::Int8, 2e-2)] {
            let (mut values, mut scales) = (Vec::new(), Vec::new());
            for row in 0..rows.n_rows {
                scales.extend(precision.push(rows.row(row), &mut values).to_bits().to_le_bytes());
            }
            let stored = Rows { precision, n_cols: 37, values: &values, scales: U32s(&scales) };
            assert_eq!(stored.len(), 150);
            for query in 0..queries.n_rows {
                let vector = queries.row(query);
                let mut scores = vec![0.0; 100];
                stored.scores(&Query::new(vector), 20..120, &mut scores);
                for (row, score) in (20..120).zip(scores) {
                    let exact = dot(vector, rows.row(row));
                    assert!((score - exact).abs() < error, "{precision:?} {score} {exact}");
                    let again = stored.score(vector, row as u32);
                    assert!((again - exact).abs() < error);
                }
            }
        }
    }
}
