//! Builds and updates index files.
//!
//! Vectors of names that an older index of the same model has are taken from it, so that an update encodes only names that are new. New
//! vectors are kept in a [`Partial`] file until the index is complete.

use std::io::{BufWriter, Write};
use std::path::Path;

use canonym_core::artifact::{AtomicFile, ContainerWriter};
use canonym_core::kb::{FormId, KnowledgeBase};
use canonym_core::{Error, Result};
use rayon::prelude::*;
use xxhash_rust::xxh3::xxh3_64;

use super::cells::{self, Cells};
use super::partial::{Encoded, Partial};
use super::rows::{Precision, Rows};
use super::stored::{IndexMeta, KIND, Layout, NameIndex, hex};
use crate::models::rescnn::names::NameEncoder;
use crate::tensor::matrix::{Matrix, dot};

/// Names that are encoded and written to disk at a time.
const CHUNK: usize = 1 << 15;

/// Rows that are expanded at a time.
const BLOCK: usize = 1 << 14;

/// Up to this many names, all are compared.
const FEW: usize = 50_000;

/// No row.
const NONE: u32 = u32::MAX;

/// Settings of an index.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct IndexConfig {
    /// Arrangement of the rows; `None` for flat up to 50,000 names, else ivf.
    pub layout: Option<Layout>,
    /// Precision of the vectors; `None` for f16 in a flat index, else int8.
    pub precision: Option<Precision>,
}

/// What a build did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexReport {
    /// What was built.
    pub meta: IndexMeta,
    /// Names taken from the index that was there.
    pub n_reused: usize,
    /// Names that an interrupted build had encoded.
    pub n_resumed: usize,
    /// Names encoded now.
    pub n_encoded: usize,
    /// Names of the index that was there and are gone.
    pub n_removed: usize,
    /// Number of cells of an ivf index.
    pub n_cells: usize,
}

/// What an index is built of.
#[derive(Debug)]
pub struct IndexBuilder<'a> {
    /// The knowledge base.
    pub kb: &'a KnowledgeBase,
    /// The encoder of names.
    pub names: &'a NameEncoder,
    /// Fingerprint of the model.
    pub model: u128,
    /// Settings.
    pub config: IndexConfig,
}

/// An older index, and where its vectors go.
struct Older {
    index: NameIndex,
    /// Its row for each form; [`NONE`] for a form that is new.
    row_of: Vec<u32>,
    n_reused: usize,
}

/// Rows in the order of the file.
struct Arranged {
    cells: Cells,
    /// Start of each cell.
    at: Vec<u32>,
    /// Row at each position.
    rows: Vec<u32>,
    /// Smallest inner product of centroid and member.
    reach: Vec<u32>,
}

impl IndexBuilder<'_> {
    /// Builds or updates the index at `out`. `progress` is called with the numbers of names that have a vector, and of all; its error ends the
    /// build, which can go on later.
    ///
    /// # Errors
    /// If another process builds the index, or the folder cannot be written.
    pub fn build(&self, out: &Path, progress: &mut dyn FnMut(usize, usize) -> Result<()>) -> Result<IndexReport> {
        let mut partial = Partial::open(out)?;
        let n_rows = self.kb.n_forms();
        let layout = self.config.layout.unwrap_or(if n_rows <= FEW { Layout::Flat } else { Layout::Ivf });
        let usual = if layout == Layout::Flat { Precision::F16 } else { Precision::Int8 };
        let meta = IndexMeta {
            layout,
            precision: self.config.precision.unwrap_or(usual),
            n_rows,
            n_cols: self.names.encoder.dim(),
            kb_name: self.kb.meta().name.clone(),
            kb: hex(self.kb.container().fingerprint()),
            model: hex(self.model),
        };
        let hashes = self.hashes();
        let older = self.older(out, &meta, &hashes);
        let is_new = |form: &u32| older.as_ref().is_none_or(|older| older.row_of[*form as usize] == NONE);
        let new: Vec<u32> = (0..n_rows as u32).filter(is_new).collect();
        let n_reused = n_rows - new.len();
        let base = older.as_ref().map(|older| hex(older.index.container().fingerprint()));
        let header = serde_json::json!({ "index": meta, "base": base }).to_string();
        let width = meta.n_cols * meta.precision.n_bytes();
        let mut encoded = partial.resume(&header, width)?;
        let n_resumed = encoded.scales.len();
        progress(n_reused + n_resumed, n_rows)?;
        encoded.values.reserve_exact((new.len() - n_resumed.min(new.len())) * width);
        for chunk in new.get(n_resumed..).unwrap_or_default().chunks(CHUNK) {
            let rows = self.encode(chunk, meta.precision);
            partial.append(&rows)?;
            encoded.values.extend(rows.values);
            encoded.scales.extend(rows.scales);
            progress(n_reused + encoded.scales.len(), n_rows)?;
        }
        let all = older.as_ref().map_or_else(|| Ok(None), |older| merged(older, &new, &encoded, width).map(Some))?;
        let all = all.unwrap_or(encoded);
        let arranged = (layout == Layout::Ivf).then(|| arrange(&all, &meta, older.as_ref()));
        let n_cells = arranged.as_ref().map_or(0, |arranged| arranged.cells.len());
        let n_removed = older.as_ref().map_or(0, |older| older.index.meta().n_rows.saturating_sub(older.n_reused));
        drop(older);
        write(out, &meta, (&all, &hashes), arranged.as_ref())?;
        partial.remove()?;
        Ok(IndexReport { meta, n_reused, n_resumed, n_encoded: new.len() - n_resumed, n_removed, n_cells })
    }

    /// Hash of each form.
    fn hashes(&self) -> Vec<u64> {
        let forms = self.kb.forms();
        (0..self.kb.n_forms()).into_par_iter().map(|form| xxh3_64(forms.bytes(form))).collect()
    }

    /// The index at `out`, if its vectors can be used. One that cannot be read is replaced.
    fn older(&self, out: &Path, meta: &IndexMeta, hashes: &[u64]) -> Option<Older> {
        if !out.exists() {
            return None;
        }
        let index = match NameIndex::open(out, None) {
            Ok(index) => index,
            Err(error) => {
                tracing::warn!("the index is built anew: {error}");
                return None;
            }
        };
        let old = index.meta();
        if (&old.model, old.precision, old.n_cols) != (&meta.model, meta.precision, meta.n_cols) {
            return None;
        }
        let mut rows: Vec<(u64, u32)> =
            index.hashes().as_chunks::<8>().0.iter().map(|bytes| u64::from_le_bytes(*bytes)).zip(0..).collect();
        rows.par_sort_unstable();
        let row_of = |hash: &u64| {
            let place = rows.partition_point(|(other, _)| other < hash);
            rows.get(place).filter(|(other, _)| other == hash).map_or(NONE, |(_, row)| *row)
        };
        let row_of: Vec<u32> = hashes.par_iter().map(row_of).collect();
        let n_reused = row_of.iter().filter(|row| **row != NONE).count();
        Some(Older { row_of, n_reused, index })
    }

    fn encode(&self, forms: &[u32], precision: Precision) -> Encoded {
        let forms: Vec<FormId> = forms.iter().map(|form| FormId(*form)).collect();
        let mut vectors = self.names.encode_some(self.kb, &forms);
        vectors.normalise_rows();
        let store = |rows: &[f32]| {
            let mut encoded = Encoded::default();
            for row in rows.chunks_exact(vectors.n_cols) {
                encoded.scales.push(precision.push(row, &mut encoded.values));
            }
            encoded
        };
        let parts: Vec<Encoded> = vectors.values.par_chunks(1024 * vectors.n_cols.max(1)).map(store).collect();
        let mut all = Encoded::default();
        for part in parts {
            all.values.extend(part.values);
            all.scales.extend(part.scales);
        }
        all
    }
}

/// All rows in the order of the forms: those of an older index, and new ones.
fn merged(older: &Older, new: &[u32], encoded: &Encoded, width: usize) -> Result<Encoded> {
    let n_rows = older.row_of.len();
    let mut all = Encoded { values: Vec::with_capacity(n_rows * width), scales: Vec::with_capacity(n_rows) };
    let mut next = 0;
    for (form, row) in older.row_of.iter().enumerate() {
        if new.get(next) == Some(&(form as u32)) {
            all.values.extend_from_slice(&encoded.values[next * width..(next + 1) * width]);
            all.scales.push(encoded.scales[next]);
            next += 1;
            continue;
        }
        let (bytes, scale) = older.index.stored(*row);
        all.values.extend_from_slice(bytes);
        all.scales.push(scale);
    }
    older.index.container().check_unchanged()?;
    Ok(all)
}

/// Distributes rows over cells: those of an older index, if most rows come from it.
fn arrange(all: &Encoded, meta: &IndexMeta, older: Option<&Older>) -> Arranged {
    let scales: Vec<u8> = all.scales.iter().flat_map(|scale| scale.to_le_bytes()).collect();
    let (precision, n_cols, n_rows) = (meta.precision, meta.n_cols, meta.n_rows);
    let rows =
        Rows { precision, n_cols, values: &all.values, scales: canonym_core::index::packed::U32s(&scales) };
    let is_similar = |older: &&Older| older.n_reused * 5 >= n_rows.max(older.index.meta().n_rows) * 4;
    let kept = older.filter(is_similar).and_then(|older| Some((older, older.index.cells()?.clone())));
    let (cells, mut cell_of) = match kept {
        Some((older, cells)) => {
            let of_old = older.index.cell_of_rows();
            let cell = |row: &u32| of_old.get(*row as usize).copied().unwrap_or(NONE);
            (cells, older.row_of.iter().map(cell).collect())
        }
        None => (trained(&rows, n_rows), vec![NONE; n_rows]),
    };
    let place = |(block, cell_of): (usize, &mut [u32])| {
        let wanted: Vec<usize> = (0..cell_of.len()).filter(|row| cell_of[*row] == NONE).collect();
        let mut expanded = Matrix::zeros(wanted.len(), n_cols);
        for (to, row) in wanted.iter().enumerate() {
            let row = block * BLOCK + row;
            rows.expand(row..row + 1, expanded.row_mut(to));
        }
        wanted.into_iter().zip(cells.place(&expanded)).for_each(|(row, cell)| cell_of[row] = cell);
    };
    cell_of.par_chunks_mut(BLOCK).enumerate().for_each(place);
    let mut at = vec![0u32; cells.len() + 1];
    cell_of.iter().for_each(|cell| at[*cell as usize + 1] += 1);
    for cell in 0..cells.len() {
        at[cell + 1] += at[cell];
    }
    let (mut next, mut order) = (at.clone(), vec![0; n_rows]);
    for (row, cell) in cell_of.iter().enumerate() {
        order[next[*cell as usize] as usize] = row as u32;
        next[*cell as usize] += 1;
    }
    let reach = |cell: usize| {
        let mut vector = vec![0.0; n_cols];
        let members = &order[at[cell] as usize..at[cell + 1] as usize];
        let product = |row: &u32| {
            rows.expand(*row as usize..*row as usize + 1, &mut vector);
            dot(cells.centroids.row(cell), &vector)
        };
        members.iter().map(product).fold(1.0f32, f32::min).clamp(-1.0, 1.0).to_bits()
    };
    let reach = (0..cells.len()).into_par_iter().map(reach).collect();
    Arranged { cells, at, rows: order, reach }
}

/// Centroids computed from rows that lie equally far apart.
fn trained(rows: &Rows<'_>, n_rows: usize) -> Cells {
    let n_cells = cells::n_cells(n_rows);
    let n_sampled = (n_cells * cells::SAMPLE).min(n_rows);
    let mut sample = Matrix::zeros(n_sampled, rows.n_cols);
    for to in 0..n_sampled {
        let row = to * n_rows / n_sampled;
        rows.expand(row..row + 1, sample.row_mut(to));
    }
    Cells::train(&sample, n_cells)
}

fn write(
    out: &Path,
    meta: &IndexMeta,
    (all, hashes): (&Encoded, &[u64]),
    arranged: Option<&Arranged>,
) -> Result<()> {
    let failed = |source| Error::io("write", out, source);
    let mut file = AtomicFile::create(out)?;
    let mut writer = ContainerWriter::new(KIND, BufWriter::new(&mut file)).map_err(failed)?;
    let json = serde_json::to_vec(meta).expect("metadata is plain data");
    let width = meta.n_cols * meta.precision.n_bytes();
    let bits = |values: &[f32]| -> Vec<u32> { values.iter().map(|value| value.to_bits()).collect() };
    let mut sections = || -> std::io::Result<()> {
        writer.section("meta", [&json[..]])?;
        let bytes: Vec<u8> = hashes.iter().flat_map(|hash| hash.to_le_bytes()).collect();
        writer.section("hashes", [&bytes[..]])?;
        let Some(arranged) = arranged else {
            writer.section_u32("scales", &bits(&all.scales))?;
            return writer.section("values", [&all.values[..]]);
        };
        let Arranged { cells, at, rows, reach } = arranged;
        writer.section_u32("tops", &bits(&cells.tops.values))?;
        writer.section_u32("tops.at", &cells.at)?;
        writer.section_u32("centroids", &bits(&cells.centroids.values))?;
        writer.section_u32("cell.at", at)?;
        writer.section_u32("cell.row", rows)?;
        writer.section_u32("cell.reach", reach)?;
        let mut places = vec![0; rows.len()];
        rows.iter().zip(0..).for_each(|(row, place)| places[*row as usize] = place);
        writer.section_u32("row.place", &places)?;
        let scales: Vec<u32> = rows.iter().map(|row| all.scales[*row as usize].to_bits()).collect();
        writer.section_u32("scales", &scales)?;
        let row = |row: &u32| &all.values[*row as usize * width..][..width];
        writer.section("values", rows.iter().map(row))
    };
    sections().map_err(failed)?;
    let mut written = writer.finish().map_err(failed)?;
    written.flush().map_err(failed)?;
    drop(written);
    file.commit()
}
