//! Nearest-neighbour search by cosine or inner product: exact in memory, and in files that are mapped.

mod best;
pub mod build;
pub mod cache;
mod coarse;
mod codes;
pub mod forms;
mod partial;
pub mod rows;
pub mod stored;
pub mod vectors;

use std::borrow::Cow;
use std::fmt::Debug;
use std::ops::Range;
use std::sync::OnceLock;

use best::Best;
pub use best::RowFilter;
use coarse::Coarse;
use rayon::prelude::*;
use rows::{Rows, SharedRows};

use crate::tensor::matrix::{Matrix, Threads, View, ViewMut, WriteMode, dot, multiply};

/// Rows compared with a block of queries at a time; their scores fit the cache.
const ROWS: usize = 2048;

/// Queries per thread.
const QUERIES: usize = 128;

/// Up to this many queries, threads share the rows instead of the queries.
const FEW: usize = 32;

/// Up to this many queries, the 8-bit first pass is used.
const VERY_FEW: usize = 8;

/// Minimum number of rows for the first pass; smaller indexes fit the cache anyway.
const MANY: usize = 8192;

/// A search result.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Hit {
    /// Row in the index.
    pub row: u32,
    /// Cosine or inner product with the normalised query.
    pub score: f32,
}

/// Vectors that are searched, and compared one by one.
pub trait Index: Debug + Send + Sync {
    /// Number of rows.
    fn n_rows(&self) -> usize;

    /// The nearest `k` rows of each query among those that pass the filter, best first; ties in row order. Queries are normalised.
    fn search(&self, queries: &Matrix, k: usize, filter: Option<&RowFilter>) -> Vec<Vec<Hit>>;

    /// Inner product of a vector with a row.
    fn score(&self, vector: &[f32], row: u32) -> f32;

    /// A row in single precision.
    fn vector(&self, row: u32) -> Vec<f32>;
}

/// Flat index: every row is compared.
#[derive(Debug, Clone)]
pub struct FlatIndex {
    // Private: rows are L2-normalised or zero, except for an inner-product index.
    rows: Rows,
    // Private: the quantised rows, computed on first use.
    coarse: OnceLock<Coarse>,
}

impl FlatIndex {
    /// Index by cosine; normalises the rows.
    pub fn new(mut rows: Matrix) -> FlatIndex {
        rows.normalise_rows();
        FlatIndex::of(Rows::Owned(rows))
    }

    /// Index by cosine over rows that are already normalised, up to rounding.
    pub fn of_normalised(rows: Matrix) -> FlatIndex {
        FlatIndex::of(Rows::Owned(rows))
    }

    /// Index over rows in a file, which all processes share. Rows by cosine are already normalised, up to rounding.
    pub fn of_shared(rows: SharedRows) -> FlatIndex {
        FlatIndex::of(Rows::Shared(rows))
    }

    /// Index by inner product: rows are not normalised.
    pub fn by_inner_product(rows: Matrix) -> FlatIndex {
        FlatIndex::of(Rows::Owned(rows))
    }

    fn of(rows: Rows) -> FlatIndex {
        FlatIndex { rows, coarse: OnceLock::new() }
    }

    /// The number of indexed vectors.
    pub fn n_rows(&self) -> usize {
        self.rows.n_rows()
    }

    /// Fails if the rows are in a file that has changed since it was opened.
    ///
    /// # Errors
    /// That of [`canonym_core::artifact::Container::check_unchanged`].
    pub fn check_unchanged(&self) -> canonym_core::Result<()> {
        self.rows.check_unchanged()
    }

    /// An indexed vector.
    pub fn row(&self, row: usize) -> Cow<'_, [f32]> {
        self.rows.row(row)
    }

    /// The nearest `k` rows of each query, best first; ties in row order. Queries are normalised.
    pub fn search(&self, queries: &Matrix, k: usize) -> Vec<Vec<Hit>> {
        let mut queries = queries.clone();
        queries.normalise_rows();
        let n_cols = queries.n_cols.max(1);
        if queries.n_rows > FEW {
            let blocks = queries.values.par_chunks(QUERIES * n_cols);
            let all = 0..self.rows.n_rows();
            return blocks
                .flat_map_iter(|block| self.search_block(View::of(block, block.len() / n_cols, n_cols), all.clone(), k))
                .collect();
        }
        if (1..=VERY_FEW).contains(&queries.n_rows) && self.rows.n_rows() > MANY {
            let coarse = self.coarse();
            return (0..queries.n_rows).map(|query| coarse.search(&self.rows, queries.row(query), k)).collect();
        }
        // Too few queries for all threads: each takes a range of rows.
        let n_blocks = self.rows.n_rows().div_ceil(8 * ROWS);
        let block = |block: usize| {
            let rows = block * 8 * ROWS..((block + 1) * 8 * ROWS).min(self.rows.n_rows());
            self.search_block(queries.view(), rows, k)
        };
        let blocks: Vec<Vec<Vec<Hit>>> = (0..n_blocks).into_par_iter().map(block).collect();
        let merge = |query: usize| {
            let mut hits: Vec<Hit> = blocks.iter().flat_map(|block| block[query].iter().copied()).collect();
            // Stable sort; blocks are in row order.
            hits.sort_by(|left, right| right.score.total_cmp(&left.score));
            hits.truncate(k);
            hits
        };
        (0..queries.n_rows).map(merge).collect()
    }

    fn coarse(&self) -> &Coarse {
        match self.coarse.get() {
            Some(coarse) => coarse,
            None => {
                // Computed before taking the lock: its threads may re-enter this function while they wait for each other.
                let made = Coarse::of(&self.rows);
                self.coarse.get_or_init(|| made)
            }
        }
    }

    fn search_block(&self, queries: View<'_>, all: Range<usize>, k: usize) -> Vec<Vec<Hit>> {
        let mut best: Vec<Vec<Hit>> = vec![Vec::with_capacity(k + 1); queries.n_rows];
        let mut scores = vec![0.0; queries.n_rows * ROWS];
        let mut expanded = Vec::new();
        for first in all.clone().step_by(ROWS) {
            let n = ROWS.min(all.end - first);
            let rows = self.rows.block(first..first + n, &mut expanded).transposed();
            multiply(ViewMut::of(&mut scores, queries.n_rows, n), queries, rows, WriteMode::Replace, Threads::One);
            for (best, scores) in best.iter_mut().zip(scores.chunks_exact(n)) {
                let mut limit = limit_of(best, k);
                for (row, score) in scores.iter().enumerate() {
                    if *score > limit {
                        insert(best, Hit { row: (first + row) as u32, score: *score }, k);
                        limit = limit_of(best, k);
                    }
                }
            }
        }
        best
    }
}

impl Index for FlatIndex {
    fn n_rows(&self) -> usize {
        self.rows.n_rows()
    }

    fn search(&self, queries: &Matrix, k: usize, filter: Option<&RowFilter>) -> Vec<Vec<Hit>> {
        let Some(filter) = filter else { return FlatIndex::search(self, queries, k) };
        let mut queries = queries.clone();
        queries.normalise_rows();
        let one = |query: usize| {
            let mut best = Best::new(k);
            for row in filter.rows() {
                best.add(row, dot(queries.row(query), &self.rows.row(row as usize)));
            }
            best.into_hits()
        };
        (0..queries.n_rows).into_par_iter().map(one).collect()
    }

    fn score(&self, vector: &[f32], row: u32) -> f32 {
        dot(vector, &self.rows.row(row as usize))
    }

    fn vector(&self, row: u32) -> Vec<f32> {
        self.rows.row(row as usize).into_owned()
    }
}

/// The score that a hit must exceed to enter the top `k`.
fn limit_of(best: &[Hit], k: usize) -> f32 {
    if best.len() < k { f32::NEG_INFINITY } else { best.last().map_or(f32::INFINITY, |hit| hit.score) }
}

fn insert(best: &mut Vec<Hit>, hit: Hit, k: usize) {
    let place = best.partition_point(|other| other.score >= hit.score);
    best.insert(place, hit);
    best.truncate(k);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tensor::random::{self, SplitMix64};

    #[test]
    fn search_gives_the_nearest_in_order_and_ties_by_row() {
        let mut rng = SplitMix64::new(5);
        let rows = Matrix::new(5000, 8, (0..40_000).map(|_| random::normal(&mut rng)).collect());
        let queries = Matrix::new(300, 8, (0..2400).map(|_| random::normal(&mut rng)).collect());
        let index = FlatIndex::new(rows);
        let found = index.search(&queries, 7);
        let few = Matrix::new(3, 8, queries.values[..24].to_vec());
        for (alone, together) in index.search(&few, 7).iter().flatten().zip(found.iter().flatten()) {
            assert!(alone.row == together.row && (alone.score - together.score).abs() < 1e-6);
        }
        for (query, hits) in found.iter().enumerate() {
            let mut unit = Matrix::new(1, 8, queries.row(query).to_vec());
            unit.normalise_rows();
            let mut all: Vec<(u32, f32)> =
                (0..5000).map(|row| (row as u32, crate::tensor::matrix::dot(unit.row(0), &index.row(row)))).collect();
            all.sort_by(|left, right| right.1.total_cmp(&left.1).then(left.0.cmp(&right.0)));
            for (hit, (row, score)) in hits.iter().zip(&all) {
                assert!(hit.row == *row || (hit.score - score).abs() < 1e-6, "{hit:?} {row} {score}");
            }
            assert_eq!(hits.len(), 7);
        }
        let same = FlatIndex::new(Matrix::new(3, 1, vec![1.0, 1.0, 1.0]));
        let rows: Vec<u32> = same.search(&Matrix::new(1, 1, vec![2.0]), 2)[0].iter().map(|hit| hit.row).collect();
        assert_eq!(rows, [0, 1]);
        assert!(same.search(&Matrix::new(1, 1, vec![2.0]), 0)[0].is_empty());
    }
}
