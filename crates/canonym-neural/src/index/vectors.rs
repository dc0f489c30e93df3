//! Vectors as they lie in a file: rows of half precision, or of 8 bits with a scale each.

use canonym_core::index::packed::U32s;
use half::f16;
use half::slice::HalfFloatSliceExt;
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
            Precision::F16 => {
                let mut halves = [f16::ZERO; 256];
                for (to, bytes) in to.chunks_mut(256).zip(bytes.chunks(512)) {
                    let halves = &mut halves[..to.len()];
                    halves.iter_mut().zip(bytes.as_chunks::<2>().0).for_each(|(half, bytes)| {
                        *half = f16::from_le_bytes(*bytes);
                    });
                    halves.convert_to_f32_slice(to);
                }
            }
            Precision::Int8 => {
                let n_cols = self.n_cols.max(1);
                for ((to, bytes), row) in to.chunks_mut(n_cols).zip(bytes.chunks(n_cols)).zip(rows) {
                    let scale = f32::from_bits(self.scales.get(row));
                    to.iter_mut().zip(bytes).for_each(|(to, byte)| *to = f32::from(*byte as i8) * scale);
                }
            }
        }
    }

    /// Approximate inner products of a query with consecutive rows: rows of 8 bits are compared with the query rounded to 8 bits.
    pub fn scores(&self, query: &Query<'_>, rows: std::ops::Range<usize>, to: &mut [f32]) {
        match self.precision {
            Precision::Int8 => {
                let values = self.bytes(rows.clone());
                let scales = self.scales.slice(rows);
                vectorised(ByteDots { query: &query.rounded, scale: query.scale, values, scales, to });
            }
            Precision::F16 => {
                let mut expanded = vec![0.0; self.n_cols];
                for (to, row) in to.iter_mut().zip(rows) {
                    *to = self.score_in(query.vector, row, &mut expanded);
                }
            }
        }
    }

    /// Inner product of a vector in single precision with a row, which is expanded into a buffer.
    pub fn score_in(&self, vector: &[f32], row: usize, expanded: &mut [f32]) -> f32 {
        self.expand(row..row + 1, expanded);
        let mut score = [0.0];
        vectorised(Dots { query: vector, rows: expanded, to: &mut score });
        score[0]
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
                    let again = stored.score_in(vector, row, &mut [0.0; 37]);
                    assert!((again - exact).abs() < error);
                }
            }
        }
    }
}
