//! The embeddings of the names of a knowledge base as a file, which is mapped and searched where it lies.
//!
//! Row i is the embedding of form i. A search reads the `Codes` of all rows, a bit for each dimension, and compares the best rows by
//! their vectors. An exact search compares all vectors.

use std::ops::Range;
use std::path::Path;

use canonym_core::artifact::{ArtifactKind, Container, IN_MEMORY};
use canonym_core::index::packed::U32s;
use canonym_core::kb::KnowledgeBase;
use canonym_core::{Error, Result};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::best::{BLOCK, Best, RowFilter};
use super::codes::{self, CodeQuery, Codes};
use super::vectors::{Buffers, Precision, Query, Rows};
use super::{Hit, Index};
use crate::tensor::matrix::{Matrix, Threads, View, ViewMut, WriteMode, multiply};

/// The kind of file.
pub const KIND: ArtifactKind =
    ArtifactKind { tag: *b"NIDX", name: "name index", format: 1, oldest: 1, command: "canonym index build" };

/// Rows that are expanded to single precision at a time.
const ROWS: usize = 2048;

/// Rows of a task of an exact search.
const TASK: usize = 8 * ROWS;

/// Rows that are brought together to be compared.
const TOGETHER: usize = 64;

/// Queries that are compared with a tile of codes.
const QUERIES: usize = 8;

/// Up to this many queries, an exact search takes one after the other and expands no rows.
const FEW: usize = 8;

/// Metadata of an index.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IndexMeta {
    /// Precision of the vectors.
    pub precision: Precision,
    /// Number of rows, the forms of the knowledge base.
    pub n_rows: usize,
    /// Dimension of the vectors.
    pub n_cols: usize,
    /// Name of the knowledge base.
    pub kb_name: String,
    /// Fingerprint of the knowledge base, in hexadecimal.
    pub kb: String,
    /// Fingerprint of the model, in hexadecimal.
    pub model: String,
}

/// A fingerprint as it is written.
pub(super) fn hex(fingerprint: u128) -> String {
    format!("{fingerprint:032x}")
}

/// Which rows are compared with a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compared {
    /// This many, those whose codes are nearest to it.
    Nearest(usize),
    /// All.
    All,
}

/// Number of rows that a search compares among `n_rows`.
///
/// On a million names, of the nearest of all rows 99.5 % are among these, and 98 % of the nearest twenty (`benches/scale`).
pub fn n_compared(n_rows: usize) -> usize {
    (n_rows / 512).clamp(1024, 1 << 14)
}

/// An opened index.
#[derive(Debug)]
pub struct NameIndex {
    container: Container,
    meta: IndexMeta,
    values: Range<usize>,
    scales: Range<usize>,
    hashes: Range<usize>,
    codes: Range<usize>,
    mean: Vec<f32>,
    compared: Compared,
}

impl NameIndex {
    /// Opens the file at `path`; a large file is verified once, see [`Container::open_verified_once`].
    ///
    /// # Errors
    /// If it cannot be read, is not an index, or is damaged.
    pub fn open(path: &Path, notes: Option<&Path>) -> Result<NameIndex> {
        NameIndex::of(Container::open_verified_once(IN_MEMORY, path, KIND, notes)?)
    }

    /// The index in an opened file.
    pub(crate) fn of(container: Container) -> Result<NameIndex> {
        let path = container.path().to_path_buf();
        let damaged = |message: &str| Error::artifact(&path, message).with_hint(KIND.rebuild());
        let meta: IndexMeta = serde_json::from_slice(&container.bytes()[container.range("meta")?])
            .map_err(|error| damaged(&format!("invalid metadata: {error}")))?;
        let range = |name: &str| container.range(name);
        let (values, scales, hashes, codes) = (range("values")?, range("scales")?, range("hashes")?, range("codes")?);
        let mean: Vec<f32> = U32s(&container.bytes()[range("mean")?]).iter().map(f32::from_bits).collect();
        let n_rows = meta.n_rows;
        let is_consistent = meta.n_cols > 0
            && Some(values.len()) == n_rows.checked_mul(meta.n_cols * meta.precision.n_bytes())
            && scales.len() == 4 * n_rows
            && hashes.len() == 8 * n_rows
            && codes.len() == n_rows.div_ceil(BLOCK) * codes::block_bytes(meta.n_cols)
            && mean.len() == meta.n_cols;
        if !is_consistent {
            return Err(damaged("its sections are inconsistent"));
        }
        let compared = Compared::Nearest(n_compared(n_rows));
        Ok(NameIndex { container, meta, values, scales, hashes, codes, mean, compared })
    }

    /// Sets how many rows are compared.
    #[must_use]
    pub fn comparing(self, compared: Compared) -> NameIndex {
        NameIndex { compared, ..self }
    }

    /// Its metadata.
    pub fn meta(&self) -> &IndexMeta {
        &self.meta
    }

    /// The underlying file.
    pub fn container(&self) -> &Container {
        &self.container
    }

    /// Fails unless the index was built of `kb` with the model that has this fingerprint.
    ///
    /// # Errors
    /// [`Error::Mismatch`], with the command that updates it.
    pub fn check(&self, kb: &KnowledgeBase, model: u128) -> Result<()> {
        let other = if self.meta.model != hex(model) {
            "model".to_owned()
        } else if self.meta.kb != hex(kb.container().fingerprint()) || self.meta.n_rows != kb.n_forms() {
            format!("knowledge base ({})", self.meta.kb_name)
        } else {
            return Ok(());
        };
        let path = self.container.path().display();
        Err(Error::mismatch(format!("the index {path} was built with another {other}"))
            .with_hint("update it with `canonym index build`, which embeds only names that are new"))
    }

    /// Hash of the form of each row.
    pub(super) fn hashes(&self) -> &[u8] {
        &self.container.bytes()[self.hashes.clone()]
    }

    fn rows(&self) -> Rows<'_> {
        let bytes = self.container.bytes();
        Rows {
            precision: self.meta.precision,
            n_cols: self.meta.n_cols,
            values: &bytes[self.values.clone()],
            scales: U32s(&bytes[self.scales.clone()]),
        }
    }

    fn codes(&self) -> Codes<'_> {
        let (n_rows, n_cols) = (self.meta.n_rows, self.meta.n_cols);
        Codes { n_rows, n_cols, bytes: &self.container.bytes()[self.codes.clone()] }
    }

    /// Bytes and scale of a row.
    pub(super) fn stored(&self, row: u32) -> (&[u8], f32) {
        let rows = self.rows();
        let (row, width) = (row as usize, self.meta.n_cols * self.meta.precision.n_bytes());
        (rows.values.get(row * width..(row + 1) * width).unwrap_or_default(), f32::from_bits(rows.scales.get(row)))
    }

    /// The best of some rows, compared in single precision.
    fn best_of(&self, query: &[f32], rows: impl Iterator<Item = u32>, k: usize) -> Best {
        let (stored, mut rows, mut best) = (self.rows(), rows, Best::new(k));
        let (mut together, mut buffers) = (Vec::with_capacity(TOGETHER), Buffers::default());
        loop {
            together.clear();
            together.extend(rows.by_ref().take(TOGETHER));
            if together.is_empty() {
                return best;
            }
            stored.scores_of(query, &together, &mut buffers);
            together.iter().zip(&buffers.scores).for_each(|(row, score)| best.add(*row, *score));
        }
    }

    /// Hits among the rows with the nearest codes.
    fn search_codes(&self, queries: &Matrix, k: usize, filter: Option<&RowFilter>, n: usize) -> Vec<Vec<Hit>> {
        let n = n.max(k);
        if let Some(filter) = filter.filter(|filter| filter.len() <= n) {
            let one = |query: usize| self.best_of(queries.row(query), filter.rows(), k).into_hits();
            return (0..queries.n_rows).into_par_iter().map(one).collect();
        }
        let codes = self.codes();
        let prepared: Vec<CodeQuery> =
            (0..queries.n_rows).map(|query| CodeQuery::new(queries.row(query), &self.mean)).collect();
        // Threads share the queries, or the rows if there are too few queries.
        let n_threads = rayon::current_num_threads();
        let n_parts = if queries.n_rows < n_threads * QUERIES { n_threads.div_ceil(queries.n_rows.max(1)) } else { 1 };
        let part_len = codes.n_blocks().div_ceil(n_parts).max(1);
        let group = |(first, group): (usize, &[CodeQuery])| -> Vec<Vec<Hit>> {
            let scan = |start: usize| {
                let mut best = vec![Best::new(n); group.len()];
                codes.scan(group, start..(start + part_len).min(codes.n_blocks()), filter, &mut best);
                best
            };
            let starts: Vec<usize> = (0..codes.n_blocks()).step_by(part_len).collect();
            let parts: Vec<Vec<Best>> = match starts.len() {
                1 => vec![scan(0)],
                _ => starts.into_par_iter().map(scan).collect(),
            };
            let of_query = |at: usize| {
                let mut best = Best::new(n);
                parts.iter().for_each(|part| best.join(&part[at]));
                self.best_of(queries.row(first + at), best.rows().into_iter(), k).into_hits()
            };
            (0..group.len()).map(of_query).collect()
        };
        let groups: Vec<(usize, &[CodeQuery])> = (0..).step_by(QUERIES).zip(prepared.chunks(QUERIES)).collect();
        groups.into_par_iter().flat_map_iter(group).collect()
    }

    /// Hits of one query among all rows.
    fn search_one(&self, vector: &[f32], k: usize, filter: Option<&RowFilter>) -> Vec<Hit> {
        let (query, rows, n_rows) = (Query::new(vector), self.rows(), self.meta.n_rows);
        // If a filter leaves few rows, only these are read. A row of 8 bits takes longer alone, because it is expanded.
        let few = if self.meta.precision == Precision::F16 { n_rows / 2 } else { n_rows / 16 };
        let sparse = filter.filter(|filter| filter.len() < few);
        let is_exact = sparse.is_some() || self.meta.precision == Precision::F16;
        // Otherwise compared again below, because the query was rounded.
        let kept = if is_exact { k } else { 2 * k + 32 };
        let scan = |task: usize| {
            let all = task * TASK..((task + 1) * TASK).min(n_rows);
            if let Some(filter) = sparse {
                return self.best_of(vector, filter.rows_in(all), k);
            }
            let (mut best, mut scores) = (Best::new(kept), vec![0.0; all.len()]);
            rows.scores(&query, all.clone(), &mut scores);
            for (row, score) in (all.start as u32..).zip(scores) {
                if filter.is_none_or(|filter| filter.has(row)) {
                    best.add(row, score);
                }
            }
            best
        };
        let tasks: Vec<Best> = (0..n_rows.div_ceil(TASK)).into_par_iter().map(scan).collect();
        let mut best = Best::new(kept);
        tasks.iter().for_each(|task| best.join(task));
        if is_exact { best.into_hits() } else { self.best_of(vector, best.rows().into_iter(), k).into_hits() }
    }

    /// Hits of queries among all rows, which are expanded in blocks and multiplied with all queries.
    fn search_all(&self, queries: View<'_>, k: usize, filter: Option<&RowFilter>) -> Vec<Vec<Hit>> {
        let (rows, n_cols) = (self.rows(), self.meta.n_cols);
        let task = |task: usize| {
            let mut best = vec![Best::new(k); queries.n_rows];
            let (mut expanded, mut scores) = (vec![0.0; ROWS * n_cols], vec![0.0; queries.n_rows * ROWS]);
            let end = ((task + 1) * TASK).min(self.meta.n_rows);
            for first in (task * TASK..end).step_by(ROWS) {
                let n = ROWS.min(end - first);
                rows.expand(first..first + n, &mut expanded[..n * n_cols]);
                let right = View::of(&expanded, n, n_cols).transposed();
                let out = ViewMut::of(&mut scores, queries.n_rows, n);
                multiply(out, queries, right, WriteMode::Replace, Threads::One);
                for (best, scores) in best.iter_mut().zip(scores.chunks_exact(n)) {
                    for (row, score) in (first as u32..).zip(scores) {
                        if filter.is_none_or(|filter| filter.has(row)) {
                            best.add(row, *score);
                        }
                    }
                }
            }
            best
        };
        let tasks: Vec<Vec<Best>> = (0..self.meta.n_rows.div_ceil(TASK)).into_par_iter().map(task).collect();
        let of_query = |query: usize| {
            let mut best = Best::new(k);
            tasks.iter().for_each(|task| best.join(&task[query]));
            best.into_hits()
        };
        (0..queries.n_rows).map(of_query).collect()
    }
}

impl Index for NameIndex {
    fn n_rows(&self) -> usize {
        self.meta.n_rows
    }

    fn search(&self, queries: &Matrix, k: usize, filter: Option<&RowFilter>) -> Vec<Vec<Hit>> {
        if k == 0 || self.meta.n_rows == 0 {
            return vec![Vec::new(); queries.n_rows];
        }
        let k = k.min(self.meta.n_rows);
        let mut queries = queries.clone();
        queries.normalise_rows();
        match self.compared {
            Compared::Nearest(n) => self.search_codes(&queries, k, filter, n),
            Compared::All if queries.n_rows <= FEW => {
                (0..queries.n_rows).map(|query| self.search_one(queries.row(query), k, filter)).collect()
            }
            Compared::All => {
                let n_cols = queries.n_cols.max(1);
                let blocks = queries.values.chunks(256 * n_cols);
                blocks
                    .flat_map(|block| self.search_all(View::of(block, block.len() / n_cols, n_cols), k, filter))
                    .collect()
            }
        }
    }

    fn score(&self, vector: &[f32], row: u32) -> f32 {
        self.rows().score(vector, row)
    }

    fn vector(&self, row: u32) -> Vec<f32> {
        let mut vector = vec![0.0; self.meta.n_cols];
        self.rows().expand(row as usize..row as usize + 1, &mut vector);
        vector
    }
}
