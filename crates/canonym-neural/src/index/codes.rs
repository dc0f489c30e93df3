//! Codes of one bit a dimension, which a search reads instead of the vectors to find out which rows to compare.
//!
//! As in RaBitQ (Gao and Long 2024), without its rotation: a code holds the signs of the row less the mean of all rows. The inner product of
//! query and row is estimated as ⟨mean, row⟩ + f·⟨query - mean, signs⟩, where f, stored with the code, makes the estimate exact for a query that
//! lies in the direction of the row. The query is rounded to four bits, so that the sum is one of population counts, or of lookups where these
//! are faster.
//!
//! Sixteen rows form a block: for each 32 dimensions a word of every row, then the factor and the inner product with the mean of every row, as
//! the upper halves of an `f32`.

use std::ops::Range;

use super::best::{BLOCK, Best, RowFilter};
use crate::tensor::lookups::{self, Line, MAX_COLS, Table};
use crate::tensor::matrix::{Vectorised, vectorised_counts};

/// Bits of a rounded query, in two's complement.
const PLANES: usize = 4;

/// Greatest value of a rounded query.
const GREATEST: f32 = 7.0;

/// Blocks that are read for several queries while they are in the cache.
const TILE: usize = 256;

/// Number of words of a row.
fn n_words(n_cols: usize) -> usize {
    n_cols.div_ceil(32)
}

/// Bytes of a block.
pub(super) fn block_bytes(n_cols: usize) -> usize {
    BLOCK * (4 * n_words(n_cols) + 4)
}

/// The upper half of a number, rounded.
fn upper_half(value: f32) -> [u8; 2] {
    (((value.to_bits() + 0x8000) >> 16) as u16).to_le_bytes()
}

/// Appends the block of up to sixteen rows; rows that are missing score lowest.
pub(super) fn push_block(rows: &[f32], mean: &[f32], to: &mut Vec<u8>) {
    let n_cols = mean.len();
    let mut words = vec![[0u32; BLOCK]; n_words(n_cols)];
    let (mut factors, mut products) = ([0.0f32; BLOCK], [-2.0f32; BLOCK]);
    for (at, row) in rows.chunks_exact(n_cols.max(1)).enumerate().take(BLOCK) {
        let (mut square, mut sum, mut product) = (0.0f32, 0.0f32, 0.0f32);
        for (col, (value, mean)) in row.iter().zip(mean).enumerate() {
            let centred = value - mean;
            words[col / 32][at] |= u32::from(centred > 0.0) << (col % 32);
            square += centred * centred;
            sum += centred.abs();
            product += value * mean;
        }
        factors[at] = if sum > 0.0 { square / sum } else { 0.0 };
        products[at] = product;
    }
    to.extend(words.iter().flatten().flat_map(|word| word.to_le_bytes()));
    to.extend(factors.iter().flat_map(|factor| upper_half(*factor)));
    to.extend(products.iter().flat_map(|product| upper_half(*product)));
}

/// A query in the form in which it is compared with codes.
#[derive(Debug, Clone)]
pub(super) struct CodeQuery {
    /// For each word its bits, lowest plane first.
    planes: Vec<[u32; PLANES]>,
    /// For each word the sums of its rounded values, if lookups are faster.
    tables: Vec<Table>,
    /// Scale of the rounded values.
    step: f32,
    /// Sum of the rounded values.
    sum: f32,
}

impl CodeQuery {
    /// Rounds a query of norm 1.
    pub fn new(query: &[f32], mean: &[f32]) -> CodeQuery {
        let centred: Vec<f32> = query.iter().zip(mean).map(|(query, mean)| query - mean).collect();
        let step = centred.iter().fold(0.0f32, |greatest, value| greatest.max(value.abs())) / GREATEST;
        let mut made =
            CodeQuery { planes: vec![[0; PLANES]; n_words(query.len())], tables: Vec::new(), step, sum: 0.0 };
        let mut values = vec![[0i8; 32]; made.planes.len()];
        for (col, value) in centred.iter().enumerate() {
            let rounded = if step > 0.0 { (value / step).round() as i8 } else { 0 };
            made.sum += f32::from(rounded) * step;
            values[col / 32][col % 32] = rounded;
            for (plane, word) in made.planes[col / 32].iter_mut().enumerate() {
                *word |= (u32::from(rounded.cast_unsigned()) >> plane & 1) << (col % 32);
            }
        }
        if lookups::are_faster() && query.len() <= MAX_COLS {
            made.tables = values.iter().map(lookups::table).collect();
        }
        made
    }
}

/// A view of the codes of an index.
#[derive(Debug, Clone, Copy)]
pub(super) struct Codes<'a> {
    pub n_rows: usize,
    pub n_cols: usize,
    pub bytes: &'a [u8],
}

impl Codes<'_> {
    /// Number of blocks.
    pub fn n_blocks(&self) -> usize {
        self.n_rows.div_ceil(BLOCK)
    }

    /// Adds the rows of some blocks to the best ones of each query, by estimated inner products.
    pub fn scan(&self, queries: &[CodeQuery], blocks: Range<usize>, filter: Option<&RowFilter>, best: &mut [Best]) {
        let width = block_bytes(self.n_cols);
        let mut scores = vec![[0.0; BLOCK]; TILE.min(blocks.len())];
        for first in blocks.clone().step_by(TILE) {
            let n = TILE.min(blocks.end - first);
            let bytes = self.bytes.get(first * width..(first + n) * width).unwrap_or_default();
            for (query, best) in queries.iter().zip(best.iter_mut()) {
                let scores = &mut scores[..n];
                let estimates = Estimates { query, bytes, width, to: scores };
                if query.tables.is_empty() {
                    vectorised_counts(estimates)
                } else {
                    estimates.by_lookups()
                }
                for (at, scores) in scores.iter().enumerate() {
                    self.take(first + at, scores, filter, best);
                }
            }
        }
    }

    #[inline]
    fn take(&self, block: usize, scores: &[f32; BLOCK], filter: Option<&RowFilter>, best: &mut Best) {
        let limit = best.limit();
        if !scores.iter().fold(false, |any, score| any | (*score >= limit)) {
            return;
        }
        let wanted = filter.map_or(u16::MAX, |filter| filter.block(block));
        for (at, score) in scores.iter().enumerate() {
            let row = block * BLOCK + at;
            if wanted >> at & 1 == 1 && row < self.n_rows {
                best.add(row as u32, *score);
            }
        }
    }
}

/// Estimated inner products of a query with the rows of blocks.
struct Estimates<'a> {
    query: &'a CodeQuery,
    bytes: &'a [u8],
    width: usize,
    to: &'a mut [[f32; BLOCK]],
}

impl Estimates<'_> {
    fn by_lookups(self) {
        let Estimates { query, bytes, width, to } = self;
        let mut to = to.iter_mut();
        let blocks = bytes.chunks_exact(width).map(|block| block.as_chunks().0);
        lookups::each_block(blocks, &query.tables, |block, sums| {
            if let (Some(to), Some(line)) = (to.next(), block.get(query.tables.len())) {
                query.estimate(line, sums, to);
            }
        });
    }
}

impl CodeQuery {
    /// Estimates from the sums of the rounded values of a block, and the line behind its words.
    #[inline(always)]
    fn estimate(&self, line: &Line, sums: &[f32; BLOCK], to: &mut [f32; BLOCK]) {
        let (scale, offset) = (2.0 * self.step, -self.sum);
        let (factors, products) = line.split_at(2 * BLOCK);
        let (factors, products) = (factors.as_chunks::<2>().0, products.as_chunks::<2>().0);
        for at in 0..BLOCK {
            let number = |half: [u8; 2]| f32::from_bits(u32::from(u16::from_le_bytes(half)) << 16);
            to[at] = number(products[at]) + number(factors[at]) * (scale * sums[at] + offset);
        }
    }
}

impl Vectorised for Estimates<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        for (to, block) in self.to.iter_mut().zip(self.bytes.chunks_exact(self.width)) {
            let lines = block.as_chunks::<{ 4 * BLOCK }>().0;
            let mut counts = [[0u32; BLOCK]; PLANES];
            for (planes, line) in self.query.planes.iter().zip(lines) {
                let words = line.as_chunks::<4>().0;
                for (counts, plane) in counts.iter_mut().zip(planes) {
                    for at in 0..BLOCK {
                        counts[at] += (u32::from_le_bytes(words[at]) & plane).count_ones();
                    }
                }
            }
            // Closures of array functions are not inlined here, which takes as long as the counts.
            let mut sums = [0.0f32; BLOCK];
            let [ones, twos, fours, eights] = &counts;
            for at in 0..BLOCK {
                let positive = ones[at] + 2 * twos[at] + 4 * fours[at];
                sums[at] = (positive as i32 - 8 * eights[at] as i32) as f32;
            }
            self.query.estimate(&lines[self.query.planes.len()], &sums, to);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tensor::matrix::{Matrix, dot};
    use crate::tensor::random::{self, SplitMix64};

    #[test]
    fn estimates_are_near_the_inner_products() {
        let mut rng = SplitMix64::new(11);
        for n_cols in [160, 40] {
            let mut rows =
                Matrix::new(100, n_cols, (0..100 * n_cols).map(|_| 0.3 + random::normal(&mut rng)).collect());
            rows.normalise_rows();
            let mut mean = vec![0.0; n_cols];
            (0..100)
                .for_each(|row| mean.iter_mut().zip(rows.row(row)).for_each(|(mean, value)| *mean += value / 100.0));
            let mut bytes = Vec::new();
            rows.values.chunks(BLOCK * n_cols).for_each(|block| push_block(block, &mean, &mut bytes));
            let codes = Codes { n_rows: 100, n_cols, bytes: &bytes };
            assert_eq!(bytes.len(), codes.n_blocks() * block_bytes(n_cols));
            let queries: Vec<CodeQuery> = (0..20).map(|row| CodeQuery::new(rows.row(row), &mean)).collect();
            let mut best = vec![Best::new(100); 20];
            codes.scan(&queries, 0..codes.n_blocks(), None, &mut best);
            for (query, best) in best.into_iter().enumerate() {
                let hits = best.into_hits();
                assert_eq!(hits.len(), 100);
                assert_eq!(hits[0].row as usize, query, "a row is its own nearest");
                for hit in hits {
                    let exact = dot(rows.row(query), rows.row(hit.row as usize));
                    let bound = 4.5 / (n_cols as f32).sqrt();
                    assert!((hit.score - exact).abs() < bound, "{n_cols} {} {exact}", hit.score);
                }
            }
            let filter = RowFilter::new(100, |row| row % 3 == 0);
            let mut best = [Best::new(100)];
            codes.scan(&queries[..1], 0..codes.n_blocks(), Some(&filter), &mut best);
            let mut found = best[0].clone().rows();
            found.sort_unstable();
            assert_eq!(found, filter.rows().collect::<Vec<_>>());
        }
    }
}
