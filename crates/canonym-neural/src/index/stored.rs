//! The embeddings of the names of a knowledge base as a file, which is mapped and searched where it lies.
//!
//! Row i of the index is the embedding of form i. A *flat* index holds the rows in order and compares all of them. An *ivf* index groups them
//! in [`Cells`] and compares those in the cells nearest to the query.

use std::ops::Range;
use std::path::Path;

use canonym_core::artifact::{ArtifactKind, Container, IN_MEMORY};
use canonym_core::index::packed::U32s;
use canonym_core::kb::KnowledgeBase;
use canonym_core::{Error, Result};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::cells::Cells;
use super::rows::{Precision, Query, Rows};
use super::{Best, Hit, Index, RowFilter};
use crate::tensor::matrix::{Matrix, Threads, View, ViewMut, WriteMode, multiply};

/// The kind of file.
pub const KIND: ArtifactKind =
    ArtifactKind { tag: *b"NIDX", name: "name index", format: 1, command: "canonym index build" };

/// Rows of a block that is expanded to single precision.
const ROWS: usize = 2048;

/// Up to this many queries, an index in 8 bits is not expanded.
const FEW: usize = 8;

/// Cells that a search reads unless set otherwise.
pub const N_PROBES: usize = 32;

/// How the rows of an index are arranged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Layout {
    /// In order; all are compared.
    Flat,
    /// In cells (inverted file).
    Ivf,
}

impl Layout {
    /// Name in options and messages.
    pub fn name(self) -> &'static str {
        match self {
            Layout::Flat => "flat",
            Layout::Ivf => "ivf",
        }
    }
}

/// Metadata of an index.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IndexMeta {
    /// Arrangement of the rows.
    pub layout: Layout,
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

impl IndexMeta {
    /// Whether the vectors are those of a model.
    pub fn is_of_model(&self, model: u128) -> bool {
        self.model == hex(model)
    }
}

/// A fingerprint as it is written.
pub(super) fn hex(fingerprint: u128) -> String {
    format!("{fingerprint:032x}")
}

/// Which cells a search reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Probes {
    /// This many cells; with a filter as many as hold equally many rows that pass it.
    Nearest(usize),
    /// Every cell that can hold one of the nearest rows.
    All,
}

/// Sections of an ivf index.
#[derive(Debug)]
struct CellTable {
    cells: Cells,
    /// Start of each cell.
    at: Range<usize>,
    /// Row at each position.
    rows: Range<usize>,
    /// Position of each row.
    places: Range<usize>,
    /// Smallest inner product of centroid and member of each cell.
    reach: Range<usize>,
}

/// An opened index.
#[derive(Debug)]
pub struct NameIndex {
    container: Container,
    meta: IndexMeta,
    values: Range<usize>,
    scales: Range<usize>,
    hashes: Range<usize>,
    table: Option<CellTable>,
    probes: Probes,
}

impl NameIndex {
    /// Opens the file at `path`; a large file is verified once, see [`Container::open_verified_once`].
    ///
    /// # Errors
    /// If it cannot be read, is not an index, or is damaged.
    pub fn open(path: &Path, notes: Option<&Path>) -> Result<NameIndex> {
        NameIndex::of(Container::open_verified_once(IN_MEMORY, path, KIND, notes)?)
    }

    fn of(container: Container) -> Result<NameIndex> {
        let path = container.path().to_path_buf();
        let damaged = |message: &str| Error::artifact(&path, message).with_hint(KIND.rebuild());
        let meta: IndexMeta = serde_json::from_slice(&container.bytes()[container.range("meta")?])
            .map_err(|error| damaged(&format!("invalid metadata: {error}")))?;
        let table = match meta.layout {
            Layout::Flat => None,
            Layout::Ivf => Some(CellTable::of(&container, meta.n_cols)?),
        };
        let (values, scales, hashes) =
            (container.range("values")?, container.range("scales")?, container.range("hashes")?);
        let n_rows = meta.n_rows;
        let is_consistent = values.len() == n_rows * meta.n_cols * meta.precision.n_bytes()
            && scales.len() == 4 * n_rows
            && hashes.len() == 8 * n_rows
            && table.as_ref().is_none_or(|table| table.is_consistent(n_rows));
        if !is_consistent {
            return Err(damaged("its sections are inconsistent"));
        }
        Ok(NameIndex { container, meta, values, scales, hashes, table, probes: Probes::Nearest(N_PROBES) })
    }

    /// Sets which cells are read.
    #[must_use]
    pub fn with_probes(self, probes: Probes) -> NameIndex {
        NameIndex { probes, ..self }
    }

    /// Its metadata.
    pub fn meta(&self) -> &IndexMeta {
        &self.meta
    }

    /// The underlying file.
    pub fn container(&self) -> &Container {
        &self.container
    }

    /// The cells of an ivf index.
    pub fn cells(&self) -> Option<&Cells> {
        self.table.as_ref().map(|table| &table.cells)
    }

    /// Fails unless the index was built of `kb` with the model that has this fingerprint.
    ///
    /// # Errors
    /// [`Error::Mismatch`], with the command that builds it again.
    pub fn check(&self, kb: &KnowledgeBase, model: u128) -> Result<()> {
        let path = self.container.path().display();
        let (what, name) = if !self.meta.is_of_model(model) {
            ("model", String::new())
        } else if self.meta.kb != hex(kb.container().fingerprint()) || self.meta.n_rows != kb.n_forms() {
            ("knowledge base", format!(" ({})", self.meta.kb_name))
        } else {
            return Ok(());
        };
        Err(Error::mismatch(format!("the index {path} was built with another {what}{name}"))
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

    fn u32s(&self, range: &Range<usize>) -> U32s<'_> {
        U32s(&self.container.bytes()[range.clone()])
    }

    /// Position of a row in the file.
    fn place(&self, row: u32) -> usize {
        match &self.table {
            Some(table) => self.u32s(&table.places).get(row as usize) as usize,
            None => row as usize,
        }
    }

    /// Bytes and scale of a row.
    pub(super) fn stored(&self, row: u32) -> (&[u8], f32) {
        let (rows, place) = (self.rows(), self.place(row));
        let width = self.meta.n_cols * self.meta.precision.n_bytes();
        let bytes = rows.values.get(place * width..(place + 1) * width).unwrap_or_default();
        (bytes, f32::from_bits(rows.scales.get(place)))
    }

    /// The cell of each row.
    pub(super) fn cell_of_rows(&self) -> Vec<u32> {
        let Some(table) = &self.table else { return Vec::new() };
        let (at, rows) = (self.u32s(&table.at), self.u32s(&table.rows));
        let mut cells = vec![0; self.meta.n_rows];
        for cell in 0..table.cells.len() {
            for row in rows.slice(at.range(cell)).iter() {
                if let Some(to) = cells.get_mut(row as usize) {
                    *to = cell as u32;
                }
            }
        }
        cells
    }

    /// Compares a query with rows at consecutive positions.
    fn scan(&self, query: &Query<'_>, positions: Range<usize>, scores: &mut Vec<f32>, best: &mut Best) {
        scores.clear();
        scores.resize(positions.len(), 0.0);
        self.rows().scores(query, positions.clone(), scores);
        for (position, score) in positions.zip(scores.iter()) {
            best.add(position as u32, *score);
        }
    }

    /// Compares a query with the rows of a cell that pass a filter.
    fn scan_cell(
        &self,
        query: &Query<'_>,
        (cell, positions): (usize, Range<usize>),
        filter: Option<&RowFilter>,
        (scores, best): (&mut Vec<f32>, &mut Best),
    ) {
        match filter.map(|filter| filter.of_part(cell)) {
            None => self.scan(query, positions, scores, best),
            Some(wanted) if wanted.len() * 2 > positions.len() => {
                scores.clear();
                scores.resize(positions.len(), 0.0);
                self.rows().scores(query, positions.clone(), scores);
                for position in wanted {
                    best.add(*position, scores.get(*position as usize - positions.start).copied().unwrap_or(0.0));
                }
            }
            Some(wanted) => {
                let mut one = [0.0];
                for position in wanted {
                    self.rows().scores(query, *position as usize..*position as usize + 1, &mut one);
                    best.add(*position, one[0]);
                }
            }
        }
    }

    /// The hits of the best positions, compared again with the query in single precision.
    fn finish(&self, query: &Query<'_>, best: Best, k: usize) -> Vec<Hit> {
        let rows = self.rows();
        let row_at = |position: u32| match &self.table {
            Some(table) => self.u32s(&table.rows).get(position as usize),
            None => position,
        };
        let hit = |(_, position): (f32, u32)| {
            let score = rows.score(query.vector, position as usize);
            Hit { row: row_at(position), score }
        };
        let mut hits: Vec<Hit> = best.into_vec().into_iter().map(hit).collect();
        hits.sort_by(|left, right| right.score.total_cmp(&left.score).then(left.row.cmp(&right.row)));
        hits.truncate(k);
        hits
    }

    /// Hits of a query in an ivf index.
    fn search_cells(&self, table: &CellTable, vector: &[f32], k: usize, filter: Option<&RowFilter>) -> Vec<Hit> {
        let query = Query::new(vector);
        let at = self.u32s(&table.at);
        let (mut scores, mut best) = (Vec::new(), Best::new(kept_for(k)));
        match (self.probes, filter) {
            (Probes::Nearest(n), None) => {
                for cell in table.cells.nearest(vector, n) {
                    let cell = cell as usize;
                    self.scan_cell(&query, (cell, at.range(cell)), None, (&mut scores, &mut best));
                }
            }
            (Probes::Nearest(n), Some(filter)) => {
                // As many rows as a search without a filter reads.
                let wanted = n * self.meta.n_rows / table.cells.len().max(1);
                let mut n_read = 0;
                for (_, cell) in table.cells.ranked_all(vector) {
                    if n_read >= wanted {
                        break;
                    }
                    let cell = cell as usize;
                    n_read += filter.of_part(cell).len();
                    self.scan_cell(&query, (cell, at.range(cell)), Some(filter), (&mut scores, &mut best));
                }
            }
            (Probes::All, _) => return self.search_all_cells(table, &query, k, filter),
        }
        self.finish(&query, best, k)
    }

    /// Hits among all cells. A cell is not read if the angle between query and centroid, less the largest angle of a member, leaves no room
    /// for a better row.
    fn search_all_cells(
        &self,
        table: &CellTable,
        query: &Query<'_>,
        k: usize,
        filter: Option<&RowFilter>,
    ) -> Vec<Hit> {
        let (at, reach) = (self.u32s(&table.at), self.u32s(&table.reach));
        let bound = |(score, cell): (f32, u32)| {
            let (to_centroid, radius) = (score.clamp(-1.0, 1.0).acos(), f32::from_bits(reach.get(cell as usize)).acos());
            // Rounding of the vectors to 8 bits.
            ((to_centroid - radius).max(0.0).cos() + 0.01, cell)
        };
        let mut ranked: Vec<(f32, u32)> = table.cells.ranked_all(query.vector).into_iter().map(bound).collect();
        ranked.sort_unstable_by(|left, right| right.0.total_cmp(&left.0).then(left.1.cmp(&right.1)));
        let (first, rest) = ranked.split_at(ranked.len().min(N_PROBES));
        let scan = |cells: &[(f32, u32)], mut best: Best| {
            let mut scores = Vec::new();
            for (bound, cell) in cells {
                if *bound < best.limit() {
                    break;
                }
                let cell = *cell as usize;
                self.scan_cell(query, (cell, at.range(cell)), filter, (&mut scores, &mut best));
            }
            best
        };
        let best = scan(first, Best::new(kept_for(k)));
        let n_parts = rayon::current_num_threads().max(1);
        // Every n-th cell is a part, so that all parts begin with the best ones.
        let parts: Vec<Vec<(f32, u32)>> =
            (0..n_parts).map(|part| rest.iter().skip(part).step_by(n_parts).copied().collect()).collect();
        let parts: Vec<Best> = parts.par_iter().map(|cells| scan(cells, best.clone())).collect();
        let mut all = best;
        parts.into_iter().for_each(|part| all.join(part));
        self.finish(query, all, k)
    }

    /// Hits of a few queries in a flat index of 8 bits.
    fn search_flat(&self, vector: &[f32], k: usize, filter: Option<&RowFilter>) -> Vec<Hit> {
        let query = Query::new(vector);
        let n_blocks = self.meta.n_rows.div_ceil(8 * ROWS);
        let scan = |block: usize| {
            let (mut scores, mut best) = (Vec::new(), Best::new(kept_for(k)));
            let all = block * 8 * ROWS..((block + 1) * 8 * ROWS).min(self.meta.n_rows);
            match filter {
                None => self.scan(&query, all, &mut scores, &mut best),
                Some(filter) => {
                    let mut one = [0.0];
                    for position in filter.between(&all) {
                        self.rows().scores(&query, *position as usize..*position as usize + 1, &mut one);
                        best.add(*position, one[0]);
                    }
                }
            }
            best
        };
        let blocks: Vec<Best> = (0..n_blocks).into_par_iter().map(scan).collect();
        let mut all = Best::new(kept_for(k));
        blocks.into_iter().for_each(|best| all.join(best));
        self.finish(&query, all, k)
    }

    /// Hits of many queries in a flat index: blocks of rows are expanded and multiplied with all queries.
    fn search_expanded(&self, queries: View<'_>, k: usize, filter: Option<&RowFilter>) -> Vec<Vec<Hit>> {
        let n_cols = self.meta.n_cols;
        let n_blocks = self.meta.n_rows.div_ceil(8 * ROWS);
        let block = |block: usize| {
            let mut best = vec![Best::new(k); queries.n_rows];
            let mut expanded = vec![0.0; ROWS * n_cols];
            let mut scores = vec![0.0; queries.n_rows * ROWS];
            let all = block * 8 * ROWS..((block + 1) * 8 * ROWS).min(self.meta.n_rows);
            for first in all.clone().step_by(ROWS) {
                let n = ROWS.min(all.end - first);
                self.rows().expand(first..first + n, &mut expanded[..n * n_cols]);
                let rows = View::of(&expanded, n, n_cols).transposed();
                multiply(ViewMut::of(&mut scores, queries.n_rows, n), queries, rows, WriteMode::Replace, Threads::One);
                for (best, scores) in best.iter_mut().zip(scores.chunks_exact(n)) {
                    match filter {
                        None => scores.iter().zip(first as u32..).for_each(|(score, row)| best.add(row, *score)),
                        Some(filter) => {
                            for row in filter.between(&(first..first + n)) {
                                best.add(*row, scores[*row as usize - first]);
                            }
                        }
                    }
                }
            }
            best
        };
        let blocks: Vec<Vec<Best>> = (0..n_blocks).into_par_iter().map(block).collect();
        let mut all = vec![Best::new(k); queries.n_rows];
        for block in blocks {
            all.iter_mut().zip(block).for_each(|(all, best)| all.join(best));
        }
        all.into_iter().map(Best::into_hits).collect()
    }
}

impl Index for NameIndex {
    fn n_rows(&self) -> usize {
        self.meta.n_rows
    }

    fn filter(&self, is_wanted: &(dyn Fn(u32) -> bool + Sync)) -> RowFilter {
        let Some(table) = &self.table else { return RowFilter::of_rows(self.meta.n_rows, is_wanted) };
        let (at, rows) = (self.u32s(&table.at), self.u32s(&table.rows));
        let parts = (0..table.cells.len()).map(|cell| at.range(cell));
        RowFilter::of_parts(parts, |position| is_wanted(rows.get(position as usize)))
    }

    fn search(&self, queries: &Matrix, k: usize, filter: Option<&RowFilter>) -> Vec<Vec<Hit>> {
        if k == 0 || self.meta.n_rows == 0 {
            return vec![Vec::new(); queries.n_rows];
        }
        let mut queries = queries.clone();
        queries.normalise_rows();
        if let Some(table) = &self.table {
            let one = |query: usize| self.search_cells(table, queries.row(query), k, filter);
            return match queries.n_rows {
                1 => vec![one(0)],
                n => (0..n).into_par_iter().map(one).collect(),
            };
        }
        if queries.n_rows <= FEW && self.meta.precision == Precision::Int8 {
            return (0..queries.n_rows).map(|query| self.search_flat(queries.row(query), k, filter)).collect();
        }
        let n_cols = queries.n_cols.max(1);
        let blocks = queries.values.chunks(256 * n_cols);
        blocks.flat_map(|block| self.search_expanded(View::of(block, block.len() / n_cols, n_cols), k, filter)).collect()
    }

    fn score(&self, query: &[f32], row: u32) -> f32 {
        self.rows().score(query, self.place(row))
    }

    fn vector(&self, row: u32) -> Vec<f32> {
        let (rows, place) = (self.rows(), self.place(row));
        let mut vector = vec![0.0; self.meta.n_cols];
        rows.expand(place..place + 1, &mut vector);
        vector
    }
}

/// Positions that are compared again for `k` hits.
fn kept_for(k: usize) -> usize {
    2 * k + 12
}

impl CellTable {
    fn of(container: &Container, n_cols: usize) -> Result<CellTable> {
        let numbers = |name: &str| -> Result<Vec<u32>> {
            Ok(U32s(&container.bytes()[container.range(name)?]).iter().collect())
        };
        let matrix = |name: &str| -> Result<Matrix> {
            let values: Vec<f32> = numbers(name)?.into_iter().map(f32::from_bits).collect();
            let n_rows = values.len() / n_cols.max(1);
            match values.len() == n_rows * n_cols {
                true => Ok(Matrix::new(n_rows, n_cols, values)),
                false => Err(Error::artifact(container.path(), format!("its section `{name}` has the wrong length"))
                    .with_hint(KIND.rebuild())),
            }
        };
        let cells = Cells { tops: matrix("tops")?, at: numbers("tops.at")?, centroids: matrix("centroids")? };
        let range = |name: &str| container.range(name);
        Ok(CellTable {
            cells,
            at: range("cell.at")?,
            rows: range("cell.row")?,
            places: range("row.place")?,
            reach: range("cell.reach")?,
        })
    }

    fn is_consistent(&self, n_rows: usize) -> bool {
        let n_cells = self.cells.len();
        let is_ascending = self.cells.at.is_sorted() && self.cells.at.first() == Some(&0);
        is_ascending
            && self.cells.at.len() == self.cells.tops.n_rows + 1
            && self.cells.at.last() == Some(&(n_cells as u32))
            && self.at.len() == 4 * (n_cells + 1)
            && self.reach.len() == 4 * n_cells
            && self.rows.len() == 4 * n_rows
            && self.places.len() == 4 * n_rows
    }
}
