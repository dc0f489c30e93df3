//! Cells: vectors grouped around centroids, so that a search reads only the cells nearest to the query.
//!
//! This is the inverted file of Jégou et al. (2011) with the vectors themselves in the lists. The centroids form a tree of two levels, made by
//! spherical k-means: a query is compared with all centroids of the first level, and with those below the best of them.

use rayon::prelude::*;

use super::rows::Dots;
use crate::tensor::matrix::{Matrix, Threads, View, ViewMut, WriteMode, multiply, vectorised};

/// Rows of a block: a task of a thread. Results do not depend on the number of threads.
const BLOCK: usize = 4096;

/// Iterations of k-means.
const N_ITERATIONS: usize = 8;

/// Share of the centroids of the first level below which a search looks: one of this many.
const BRANCHES: usize = 4;

/// Centroids of the first level below which a vector is placed.
const N_PLACED: usize = 6;

/// Vectors per cell from which centroids are computed.
pub const SAMPLE: usize = 32;

/// Number of cells for `n` vectors.
pub fn n_cells(n_rows: usize) -> usize {
    ((4.0 * (n_rows as f64).sqrt()) as usize).clamp(1, (n_rows / 8).max(1))
}

/// Centroids of cells, in two levels.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Cells {
    /// Centroids of the first level.
    pub tops: Matrix,
    /// First cell below each of them, `[tops + 1]`.
    pub at: Vec<u32>,
    /// Centroids of the cells.
    pub centroids: Matrix,
}

impl Cells {
    /// Computes about `n_cells` centroids from a sample of normalised vectors.
    pub fn train(sample: &Matrix, n_cells: usize) -> Cells {
        let n_cells = n_cells.min(sample.n_rows);
        let tops = k_means(sample, (n_cells as f64).sqrt().ceil() as usize, Threads::All);
        let nearest = nearest_of(sample, &tops);
        let mut members: Vec<Vec<u32>> = vec![Vec::new(); tops.n_rows];
        nearest.iter().enumerate().for_each(|(row, top)| members[*top as usize].push(row as u32));
        let below = |rows: &Vec<u32>| {
            let mut part = Matrix::zeros(rows.len(), sample.n_cols);
            rows.iter().enumerate().for_each(|(to, row)| part.row_mut(to).copy_from_slice(sample.row(*row as usize)));
            let share = (n_cells * rows.len()).div_ceil(sample.n_rows.max(1));
            k_means(&part, share, Threads::One)
        };
        let below: Vec<Matrix> = members.par_iter().map(below).collect();
        let mut cells = Cells { tops, at: vec![0], centroids: Matrix::zeros(0, sample.n_cols) };
        for part in below {
            cells.centroids.n_rows += part.n_rows;
            cells.centroids.values.extend(part.values);
            cells.at.push(cells.centroids.n_rows as u32);
        }
        cells
    }

    /// Number of cells.
    pub fn len(&self) -> usize {
        self.centroids.n_rows
    }

    /// Whether there are no cells.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The cell of each row.
    pub fn place(&self, rows: &Matrix) -> Vec<u32> {
        let n_cols = rows.n_cols.max(1);
        let place = |block: &[f32]| -> Vec<u32> {
            let one = |row: &[f32]| self.ranked(row, N_PLACED).first().map_or(0, |cell| cell.1);
            block.chunks_exact(n_cols).map(one).collect()
        };
        rows.values.par_chunks(BLOCK.min(256) * n_cols).flat_map_iter(place).collect()
    }

    /// The nearest cells of a vector, best first; ties in the order of cells. Only cells below the best centroids of the first level are ranked.
    pub fn nearest(&self, vector: &[f32], n: usize) -> Vec<u32> {
        let n_tops = (self.tops.n_rows / BRANCHES).max(16);
        let mut ranked = self.ranked(vector, n_tops);
        ranked.truncate(n);
        ranked.into_iter().map(|(_, cell)| cell).collect()
    }

    /// All cells with their inner products, best first.
    pub fn ranked_all(&self, vector: &[f32]) -> Vec<(f32, u32)> {
        self.ranked(vector, self.tops.n_rows)
    }

    /// All cells below the `n_tops` nearest centroids of the first level, best first.
    fn ranked(&self, vector: &[f32], n_tops: usize) -> Vec<(f32, u32)> {
        let mut scores = vec![0.0; self.tops.n_rows];
        vectorised(Dots { query: vector, rows: &self.tops.values, to: &mut scores });
        let mut tops: Vec<(f32, u32)> = scores.into_iter().zip(0..).collect();
        let order = |left: &(f32, u32), right: &(f32, u32)| right.0.total_cmp(&left.0).then(left.1.cmp(&right.1));
        if n_tops < tops.len() {
            tops.select_nth_unstable_by(n_tops, order);
            tops.truncate(n_tops);
        }
        let mut ranked = Vec::new();
        let mut scores = Vec::new();
        for (_, top) in tops {
            let (first, last) = (self.at[top as usize], self.at[top as usize + 1]);
            scores.clear();
            scores.resize((last - first) as usize, 0.0);
            let rows = &self.centroids.values[first as usize * vector.len()..last as usize * vector.len()];
            vectorised(Dots { query: vector, rows, to: &mut scores });
            ranked.extend(scores.iter().copied().zip(first..last));
        }
        ranked.sort_unstable_by(order);
        ranked
    }
}

/// Index of the nearest centroid of each row.
fn nearest_of(rows: &Matrix, centroids: &Matrix) -> Vec<u32> {
    let n_cols = rows.n_cols.max(1);
    let nearest = |block: &[f32]| nearest_in_block(block, centroids);
    rows.values.par_chunks(BLOCK * n_cols).flat_map_iter(nearest).collect()
}

fn nearest_in_block(block: &[f32], centroids: &Matrix) -> Vec<u32> {
    let n = block.len() / centroids.n_cols.max(1);
    let mut scores = vec![0.0; n * centroids.n_rows];
    let out = ViewMut::of(&mut scores, n, centroids.n_rows);
    let rows = View::of(block, n, centroids.n_cols);
    multiply(out, rows, centroids.view().transposed(), WriteMode::Replace, Threads::One);
    let best = |scores: &[f32]| {
        let mut best = (f32::NEG_INFINITY, 0);
        for (score, centroid) in scores.iter().zip(0..) {
            if *score > best.0 {
                best = (*score, centroid);
            }
        }
        best.1
    };
    scores.chunks_exact(centroids.n_rows.max(1)).map(best).collect()
}

/// Spherical k-means: `k` unit centroids, started from rows that lie equally far apart in `rows`.
fn k_means(rows: &Matrix, k: usize, threads: Threads) -> Matrix {
    let k = k.min(rows.n_rows);
    let mut centroids = Matrix::zeros(k, rows.n_cols);
    for centroid in 0..k {
        centroids.row_mut(centroid).copy_from_slice(rows.row(centroid * rows.n_rows / k));
    }
    for _ in 0..N_ITERATIONS {
        let n_cols = rows.n_cols.max(1);
        let part = |block: &[f32]| {
            let mut sums = Matrix::zeros(k, rows.n_cols);
            for (row, nearest) in block.chunks_exact(n_cols).zip(nearest_in_block(block, &centroids)) {
                sums.row_mut(nearest as usize).iter_mut().zip(row).for_each(|(sum, value)| *sum += value);
            }
            sums
        };
        let mut sums = Matrix::zeros(k, rows.n_cols);
        let mut add = |part: Matrix| sums.values.iter_mut().zip(part.values).for_each(|(sum, value)| *sum += value);
        // Added in the order of the blocks, so that the number of threads does not matter; some at a time, to save memory.
        for blocks in rows.values.chunks(16 * BLOCK * n_cols) {
            match threads {
                Threads::All => {
                    blocks.par_chunks(BLOCK * n_cols).map(part).collect::<Vec<_>>().into_iter().for_each(&mut add);
                }
                Threads::One => blocks.chunks(BLOCK * n_cols).map(part).for_each(&mut add),
            }
        }
        sums.normalise_rows();
        for centroid in 0..k {
            // A centroid without rows stays where it was.
            if sums.row(centroid).iter().any(|value| *value != 0.0) {
                centroids.row_mut(centroid).copy_from_slice(sums.row(centroid));
            }
        }
    }
    centroids
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tensor::random::{self, SplitMix64};

    #[test]
    fn the_cell_of_a_vector_is_that_of_the_nearest_centroid() {
        let mut rng = SplitMix64::new(9);
        let mut rows = Matrix::new(3000, 16, (0..48_000).map(|_| random::normal(&mut rng)).collect());
        rows.normalise_rows();
        let cells = Cells::train(&rows, 60);
        assert!((55..=75).contains(&cells.len()), "{}", cells.len());
        assert_eq!(cells.at.last().copied(), Some(cells.len() as u32));
        let placed = cells.place(&rows);
        let exact = nearest_of(&rows, &cells.centroids);
        let n_same = placed.iter().zip(&exact).filter(|(one, other)| one == other).count();
        assert!(n_same > 2850, "{n_same}");
        for row in 0..50 {
            assert_eq!(cells.nearest(rows.row(row), 3)[0], exact[row]);
        }
        // The same on one thread.
        let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
        assert_eq!(pool.install(|| Cells::train(&rows, 60)), cells);
        assert!(Cells::train(&Matrix::zeros(0, 4), 3).is_empty());
    }
}
