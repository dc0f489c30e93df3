//! Builds and updates index files.
//!
//! Vectors of names that an older index of the same model has are taken from it, so that an update encodes only names that are new. New
//! vectors are kept in a `Partial` file until the index is complete.

use std::io::{BufWriter, Write};
use std::path::Path;

use canonym_core::artifact::{AtomicFile, ContainerWriter};
use canonym_core::index::packed::U32s;
use canonym_core::kb::{FormId, KnowledgeBase};
use canonym_core::{Error, Result};
use rayon::prelude::*;
use xxhash_rust::xxh3::xxh3_64;

use super::best::BLOCK;
use super::codes::push_block;
use super::partial::{Encoded, Partial};
use super::stored::{IndexMeta, KIND, NameIndex, hex};
use super::vectors::{Precision, Rows};
use crate::models::rescnn::names::NameEncoder;
use crate::tensor::matrix::Matrix;

/// Names that are encoded and written to disk at a time.
const CHUNK: usize = 1 << 13;

/// Blocks of rows whose codes are computed at a time.
const BLOCKS: usize = 1 << 10;

/// No row.
const NONE: u32 = u32::MAX;

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
    /// Precision of the vectors.
    pub precision: Precision,
}

/// An older index, and where its vectors go.
struct Older {
    index: NameIndex,
    /// Its row for each form; [`NONE`] for a form that is new.
    row_of: Vec<u32>,
    n_reused: usize,
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
        let meta = IndexMeta {
            precision: self.precision,
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
        let n_removed = older.as_ref().map_or(0, |older| older.index.meta().n_rows.saturating_sub(older.n_reused));
        drop(older);
        write(out, &meta, &all, &hashes)?;
        partial.remove()?;
        Ok(IndexReport { meta, n_reused, n_resumed, n_encoded: new.len() - n_resumed, n_removed })
    }

    /// Hash of each form.
    fn hashes(&self) -> Vec<u64> {
        let forms = self.kb.forms();
        (0..self.kb.n_forms())
            .into_par_iter()
            .map_init(Vec::new, |buffer, form| xxh3_64(forms.bytes(form, buffer)))
            .collect()
    }

    /// The index at `out`, if its vectors can be used. One that cannot be read is replaced.
    fn older(&self, out: &Path, meta: &IndexMeta, hashes: &[u64]) -> Option<Older> {
        if !out.exists() {
            return None;
        }
        let index = match NameIndex::open(out, None) {
            Ok(index) => index,
            Err(error) => {
                tracing::warn!("rebuilding the index: {error}");
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
        stored(&vectors, precision)
    }
}

/// Writes an index of vectors that were computed elsewhere, one for each of `names`. `meta` says what they are of; its counts are set here.
///
/// # Errors
/// If there are not as many names as vectors, or the file cannot be written.
pub fn write_vectors(out: &Path, meta: &IndexMeta, names: &[&str], mut vectors: Matrix) -> Result<()> {
    if names.len() != vectors.n_rows {
        return Err(Error::invalid(format!("{} names, but {} vectors", names.len(), vectors.n_rows)));
    }
    vectors.normalise_rows();
    let meta = IndexMeta { n_rows: vectors.n_rows, n_cols: vectors.n_cols, ..meta.clone() };
    let hashes: Vec<u64> = names.iter().map(|name| xxh3_64(name.as_bytes())).collect();
    write(out, &meta, &stored(&vectors, meta.precision), &hashes)
}

/// Rows as they are stored.
fn stored(vectors: &Matrix, precision: Precision) -> Encoded {
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

/// Mean of all rows, and their codes.
fn codes(all: &Encoded, meta: &IndexMeta) -> (Vec<f32>, Vec<Vec<u8>>) {
    let scales: Vec<u8> = all.scales.iter().flat_map(|scale| scale.to_le_bytes()).collect();
    let (n_cols, n_rows) = (meta.n_cols, meta.n_rows);
    let rows = Rows { precision: meta.precision, n_cols, values: &all.values, scales: U32s(&scales) };
    let expanded = |part: usize| {
        let part = part * BLOCKS * BLOCK..((part + 1) * BLOCKS * BLOCK).min(n_rows);
        let mut expanded = vec![0.0; part.len() * n_cols];
        rows.expand(part, &mut expanded);
        expanded
    };
    let sum = |part: usize| {
        let mut sums = vec![0.0f64; n_cols];
        for row in expanded(part).chunks_exact(n_cols) {
            sums.iter_mut().zip(row).for_each(|(sum, value)| *sum += f64::from(*value));
        }
        sums
    };
    let parts = 0..n_rows.div_ceil(BLOCKS * BLOCK);
    let sums: Vec<Vec<f64>> = parts.clone().into_par_iter().map(sum).collect();
    let of_col = |col: usize| (sums.iter().map(|part| part[col]).sum::<f64>() / n_rows.max(1) as f64) as f32;
    let mean: Vec<f32> = (0..n_cols).map(of_col).collect();
    let code = |part: usize| {
        let mut bytes = Vec::new();
        expanded(part).chunks(BLOCK * n_cols).for_each(|block| push_block(block, &mean, &mut bytes));
        bytes
    };
    let codes = parts.into_par_iter().map(code).collect();
    (mean, codes)
}

fn write(out: &Path, meta: &IndexMeta, all: &Encoded, hashes: &[u64]) -> Result<()> {
    let (mean, codes) = codes(all, meta);
    let failed = |source| Error::io("write", out, source);
    let mut file = AtomicFile::create(out)?;
    let mut writer = ContainerWriter::new(KIND, BufWriter::new(&mut file)).map_err(failed)?;
    let json = serde_json::to_vec(meta).expect("metadata is plain data");
    let bits = |values: &[f32]| -> Vec<u32> { values.iter().map(|value| value.to_bits()).collect() };
    let mut sections = || -> std::io::Result<()> {
        writer.section("meta", [&json[..]])?;
        let bytes: Vec<u8> = hashes.iter().flat_map(|hash| hash.to_le_bytes()).collect();
        writer.section("hashes", [&bytes[..]])?;
        writer.section_u32("mean", &bits(&mean))?;
        writer.section("codes", codes.iter().map(Vec::as_slice))?;
        writer.section_u32("scales", &bits(&all.scales))?;
        writer.section("values", [&all.values[..]])
    };
    sections().map_err(failed)?;
    let mut written = writer.finish().map_err(failed)?;
    written.flush().map_err(failed)?;
    drop(written);
    file.commit()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::stored::Compared;
    use crate::index::{FlatIndex, Hit, Index, RowFilter};
    use crate::tensor::random::{self, SplitMix64};

    /// Normalised vectors that lie near 50 directions.
    fn drawn(n: usize, rng: &mut SplitMix64) -> Matrix {
        let mut centres = SplitMix64::new(1);
        let centres: Vec<f32> = (0..50 * 40).map(|_| random::normal(&mut centres)).collect();
        let row = |row: usize| (0..40).map(move |col| (row % 50) * 40 + col);
        let values = (0..n).flat_map(row).map(|at| centres[at] + random::normal(rng)).collect();
        let mut matrix = Matrix::new(n, 40, values);
        matrix.normalise_rows();
        matrix
    }

    fn rows_of(hits: &[Hit]) -> Vec<u32> {
        hits.iter().map(|hit| hit.row).collect()
    }

    #[test]
    fn a_file_finds_what_an_index_in_memory_finds() {
        let mut rng = SplitMix64::new(8);
        let (rows, queries) = (drawn(5000, &mut rng), drawn(60, &mut rng));
        let folder = tempfile::tempdir().unwrap();
        let names: Vec<String> = (0..5000).map(|row| format!("name {row}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let filter = RowFilter::new(5000, |row| row % 3 == 1);
        for precision in [Precision::F16, Precision::Int8] {
            let meta =
                IndexMeta { precision, n_rows: 0, n_cols: 0, kb_name: "k".to_owned(), kb: hex(1), model: hex(2) };
            let path = folder.path().join(precision.name());
            write_vectors(&path, &meta, &names, rows.clone()).unwrap();
            assert!(write_vectors(&path, &meta, &names[1..], rows.clone()).is_err());
            let open = |compared| NameIndex::open(&path, None).unwrap().comparing(compared);
            let (exact, coded) = (open(Compared::All), open(Compared::Nearest(800)));
            let mut stored = Matrix::zeros(5000, 40);
            (0..5000).for_each(|row| stored.row_mut(row).copy_from_slice(&exact.vector(row as u32)));
            let memory = FlatIndex::of_normalised(stored);
            for filter in [None, Some(&filter)] {
                let truth = Index::search(&memory, &queries, 10, filter);
                let (found, near) = (exact.search(&queries, 10, filter), coded.search(&queries, 10, filter));
                let mut n_found = 0;
                for query in 0..queries.n_rows {
                    for (hit, wanted) in found[query].iter().zip(&truth[query]) {
                        assert!((hit.score - wanted.score).abs() < 1e-5);
                    }
                    n_found += rows_of(&near[query]).iter().filter(|row| rows_of(&truth[query]).contains(row)).count();
                    // Alone as in a batch, on one thread as on several.
                    let alone = Matrix::new(1, 40, queries.row(query).to_vec());
                    assert_eq!(coded.search(&alone, 10, filter)[0], near[query]);
                    let one = exact.search(&alone, 10, filter).remove(0);
                    assert!((one[9].score - truth[query][9].score).abs() < 1e-5 && one.len() == 10);
                }
                assert!(n_found > 590, "{n_found} of 600");
                let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
                assert_eq!(pool.install(|| coded.search(&queries, 10, filter)), near);
            }
            // Fewer rows pass than are compared: the result is exact.
            let few = RowFilter::new(5000, |row| row % 100 == 7);
            let truth = Index::search(&memory, &queries, 10, Some(&few));
            let found = coded.search(&queries, 10, Some(&few));
            found.iter().zip(&truth).for_each(|(one, other)| assert_eq!(rows_of(one), rows_of(other)));
            let alone = Matrix::new(1, 40, queries.row(0).to_vec());
            assert_eq!(rows_of(&exact.search(&alone, 10, Some(&few))[0]), rows_of(&truth[0]));
            assert_eq!(exact.search(&alone, usize::MAX, Some(&few))[0].len(), few.len());
            assert!((coded.score(queries.row(0), found[0][0].row) - found[0][0].score).abs() < 1e-6);
        }
    }
}
