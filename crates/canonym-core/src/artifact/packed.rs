//! Output files, compressed if the name ends in `.gz` or `.zst`.
//!
//! A file gets its name when it is complete. Archives are not supported.

use std::io::Write;
use std::path::Path;

use flate2::write::GzEncoder;

use super::AtomicFile;
use crate::error::Context;
use crate::{Error, Result};

/// Extensions of unsupported compressions and archives.
const UNSUPPORTED: [&str; 7] = ["zip", "bz2", "xz", "lz4", "7z", "tar", "tgz"];

/// A new file with the compression that its extension asks for.
pub enum PackedFile {
    /// Uncompressed.
    Plain(AtomicFile),
    /// gzip.
    Gzip(GzEncoder<AtomicFile>),
    /// Zstandard.
    Zstandard(zstd::Encoder<'static, AtomicFile>),
}

impl PackedFile {
    /// Creates a temporary file that [`PackedFile::commit`] renames to `path`.
    ///
    /// # Errors
    /// If the file cannot be created, or [`Error::Usage`] if its extension is that of an unsupported compression or archive.
    pub fn create(path: &Path) -> Result<PackedFile> {
        check_ending(path)?;
        let file = AtomicFile::create(path)?;
        Ok(match ending(path).as_str() {
            "gz" => PackedFile::Gzip(GzEncoder::new(file, flate2::Compression::default())),
            "zst" => {
                let mut encoder = zstd::Encoder::new(file, 0).context("cannot start to compress")?;
                encoder.include_checksum(true).context("cannot start to compress")?;
                PackedFile::Zstandard(encoder)
            }
            _ => PackedFile::Plain(file),
        })
    }

    /// Flushes the encoder and renames the file.
    ///
    /// # Errors
    /// If the rest of the file cannot be written, or the file cannot be renamed.
    pub fn commit(self) -> Result<()> {
        let file = match self {
            PackedFile::Plain(file) => file,
            PackedFile::Gzip(encoder) => encoder.finish().context("cannot write the result")?,
            PackedFile::Zstandard(encoder) => encoder.finish().context("cannot write the result")?,
        };
        file.commit()
    }
}

impl Write for PackedFile {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        match self {
            PackedFile::Plain(file) => file.write(bytes),
            PackedFile::Gzip(encoder) => encoder.write(bytes),
            PackedFile::Zstandard(encoder) => encoder.write(bytes),
        }
    }

    fn flush(&mut self) -> std::io::Result<()> {
        match self {
            PackedFile::Plain(file) => file.flush(),
            PackedFile::Gzip(encoder) => encoder.flush(),
            PackedFile::Zstandard(encoder) => encoder.flush(),
        }
    }
}

/// Whether a file of this name will be compressed.
pub fn is_packed(path: &Path) -> bool {
    matches!(ending(path).as_str(), "gz" | "zst")
}

/// Rejects extensions of unsupported compressions and archives.
///
/// # Errors
/// [`Error::Usage`] that names the extension.
pub fn check_ending(path: &Path) -> Result<()> {
    let ending = ending(path);
    if !UNSUPPORTED.contains(&ending.as_str()) {
        return Ok(());
    }
    let message = format!("cannot write {}: unsupported compression `.{ending}`", path.display());
    Err(Error::usage(message, "use `.gz` or `.zst`, or compress the file yourself"))
}

fn ending(path: &Path) -> String {
    path.extension().map(|ending| ending.to_string_lossy().to_lowercase()).unwrap_or_default()
}
