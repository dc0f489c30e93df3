//! On-disk cache of the name embeddings of a knowledge base.
//!
//! The file is named after the fingerprints of knowledge base and model, so embeddings are never mixed up. Values are rounded to f16 both
//! on disk and in memory, so cached and new embeddings link alike.

use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use canonym_core::artifact::{ArtifactKind, AtomicFile, Container, ContainerWriter};
use canonym_core::kb::KnowledgeBase;
use canonym_core::numbers::counted;
use canonym_core::{Error, Result};
use half::f16;
use half::slice::HalfFloatSliceExt;
use rayon::prelude::*;

use crate::index::FlatIndex;
use crate::index::rows::SharedRows;
use crate::models::rescnn::names::NameEncoder;
use crate::status::Stage;
use crate::tensor::matrix::Matrix;

const KIND: ArtifactKind =
    ArtifactKind { tag: *b"VECT", name: "table of vectors", format: 1, oldest: 1, command: "canonym link" };

/// Values per thread in conversions.
const PIECE: usize = 1 << 16;

/// Location of the cache, and the model that computes the embeddings.
#[derive(Debug, Clone)]
pub struct VectorCache {
    /// Cache folder, created on first use; `None` disables the cache.
    pub folder: Option<PathBuf>,
    /// Fingerprint of the model.
    pub model: u128,
}

impl VectorCache {
    /// Cache file of a knowledge base.
    pub fn file(&self, kb: &KnowledgeBase) -> Option<PathBuf> {
        let name = format!("{:032x}-{:032x}.vectors", kb.container().fingerprint(), self.model);
        self.folder.as_ref().map(|folder| folder.join(name))
    }

    /// Index over the forms of a knowledge base, from the cache if possible. `made` receives errors of reading or writing the cache; these
    /// are not fatal. If the knowledge base is shared, so is its file in the cache.
    pub fn index(&self, kb: &KnowledgeBase, names: &NameEncoder, made: &mut dyn FnMut(Error)) -> FlatIndex {
        let encode = || {
            let mut vectors = names.encode_forms(kb);
            vectors.normalise_rows();
            Ok(vectors)
        };
        let shape = (kb.n_forms(), names.encoder.dim());
        let shared = || self.file(kb).filter(|file| kb.is_shared() && file.exists()).map(|file| shared(&file, shape));
        let stage = Stage::start();
        if let Some(Ok(rows)) = shared() {
            stage.done(format_args!("cache hit: mapped {}", counted(shape.0 as u64, "embedding")));
            return FlatIndex::of_shared(rows);
        }
        let vectors = self.vectors(kb, shape, encode, made).expect("names of any length are encoded");
        match shared() {
            // The file has just been written.
            Some(Ok(rows)) => FlatIndex::of_shared(rows),
            _ => FlatIndex::of_normalised(vectors),
        }
    }

    /// Embeddings of a knowledge base with the given shape, from the cache if possible, otherwise from `encode`.
    pub fn vectors(
        &self,
        kb: &KnowledgeBase,
        (n_rows, n_cols): (usize, usize),
        encode: impl FnOnce() -> Result<Matrix>,
        made: &mut dyn FnMut(Error),
    ) -> Result<Matrix> {
        let file = self.file(kb);
        let stage = Stage::start();
        let counted = counted(n_rows as u64, "embedding");
        if let Some(file) = file.as_deref().filter(|file| file.exists()) {
            match read(file, n_rows, n_cols) {
                Ok(vectors) => {
                    stage.done(format_args!("cache hit: read {counted} from {}", file.display()));
                    return Ok(vectors);
                }
                Err(error) => made(error),
            }
        }
        let vectors = encode()?;
        stage.done(format_args!("cache miss: encoded {counted}"));
        let halves: Vec<f16> = vectors.values.par_iter().map(|value| f16::from_f32(*value)).collect();
        if let Some(file) = file
            && let Err(error) = write(&file, &halves)
        {
            made(error);
        }
        Ok(Matrix { values: singles(&halves), ..vectors })
    }
}

/// The embeddings in a file, which is mapped, and verified once.
fn shared(path: &Path, (n_rows, n_cols): (usize, usize)) -> Result<SharedRows> {
    let container = Container::open_verified_once(0, path, KIND, path.parent())?;
    let section = container.range("vectors")?;
    SharedRows::new(container, section, (n_rows, n_cols))
        .ok_or_else(|| Error::artifact(path, "it has other embeddings").with_hint("delete it; it will be rebuilt"))
}

fn singles(halves: &[f16]) -> Vec<f32> {
    let mut values = vec![0.0; halves.len()];
    values.par_chunks_mut(PIECE).zip(halves.par_chunks(PIECE)).for_each(|(to, from)| from.convert_to_f32_slice(to));
    values
}

fn write(path: &Path, halves: &[f16]) -> Result<()> {
    let failed = |error| Error::io("write", path, error);
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).map_err(|error| Error::io("create", folder, error))?;
    }
    let mut file = AtomicFile::create(path)?;
    let mut writer = ContainerWriter::new(KIND, BufWriter::new(&mut file)).map_err(failed)?;
    let bytes: Vec<Vec<u8>> =
        halves.par_chunks(PIECE).map(|piece| piece.iter().flat_map(|half| half.to_le_bytes()).collect()).collect();
    writer.section("vectors", bytes.iter().map(Vec::as_slice)).map_err(failed)?;
    let mut out = writer.finish().map_err(failed)?;
    out.flush().map_err(failed)?;
    drop(out);
    file.commit()
}

fn read(path: &Path, n_rows: usize, n_cols: usize) -> Result<Matrix> {
    let container = Container::open(path, KIND)?;
    let bytes = &container.bytes()[container.range("vectors")?];
    if bytes.len() != 2 * n_rows * n_cols {
        let message = format!("it has {} bytes of vectors, expected {}", bytes.len(), 2 * n_rows * n_cols);
        return Err(Error::artifact(path, message).with_hint("delete it; it will be rebuilt"));
    }
    let halves: Vec<f16> = bytes.as_chunks::<2>().0.iter().map(|bytes| f16::from_le_bytes(*bytes)).collect();
    if halves.iter().any(|half| !half.is_finite()) {
        return Err(
            Error::artifact(path, "it contains values that are not numbers").with_hint("delete it; it will be rebuilt")
        );
    }
    Ok(Matrix::new(n_rows, n_cols, singles(&halves)))
}

/// Environment variable with the cache folder.
const CACHE: &str = "CANONYM_CACHE";

/// The cache folder: `CANONYM_CACHE`, otherwise the user's cache directory.
pub fn cache_folder() -> Option<PathBuf> {
    let named = |variable: &str| std::env::var_os(variable).filter(|value| !value.is_empty()).map(PathBuf::from);
    let of_system = || named("XDG_CACHE_HOME").or_else(|| named("HOME").map(|home| home.join(".cache")));
    named(CACHE).or_else(|| of_system().map(|folder| folder.join("canonym")))
}
