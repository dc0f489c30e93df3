//! Members of a zip archive: listing, and verification of size and checksum.

use std::io::{self, Read, Seek};
use std::path::Path;

use super::Limits;
use crate::{Error, Result};

/// Location of a member in its archive.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    pub name: String,
    /// Offset of the first compressed byte in the archive.
    pub start: u64,
    pub n_packed: u64,
    pub n_bytes: u64,
    pub crc: u32,
    pub deflated: bool,
}

/// Lists the data members of an archive, without folders and macOS metadata.
pub(super) fn entries<R: Read + Seek>(path: &Path, reader: R, limits: &Limits) -> Result<Vec<Entry>> {
    let damaged = |error: zip::result::ZipError| Error::artifact(path, format!("the archive is damaged ({error})"));
    let mut archive = zip::ZipArchive::new(reader).map_err(damaged)?;
    if archive.len() > limits.members {
        let message = format!("the archive has {} members; the limit is {}", archive.len(), limits.members);
        return Err(Error::limit(path, message));
    }
    let mut entries = Vec::new();
    for row in 0..archive.len() {
        let member = archive.by_index_raw(row).map_err(damaged)?;
        let name = match member.name() {
            Ok(name) => name.into_owned(),
            Err(_) => String::from_utf8_lossy(member.name_raw()).into_owned(),
        };
        if member.is_dir() || is_clutter(&name) {
            continue;
        }
        if member.encrypted() {
            let error = Error::artifact(path, format!("member {name} is encrypted"));
            return Err(error.with_hint("extract the archive with its password first"));
        }
        let deflated = match member.compression() {
            zip::CompressionMethod::Stored => false,
            zip::CompressionMethod::Deflated => true,
            other => {
                let error = Error::artifact(path, format!("member {name} uses unsupported compression {other}"));
                return Err(error.with_hint("extract the archive, or compress it with deflate"));
            }
        };
        let Some(start) = member.data_start() else {
            return Err(Error::artifact(path, format!("member {name} has no data")));
        };
        entries.push(Entry {
            start,
            n_packed: member.compressed_size(),
            n_bytes: member.size(),
            crc: member.crc32(),
            deflated,
            name,
        });
    }
    check_overlap(path, &entries)?;
    let n_bytes = entries.iter().fold(0u64, |sum, entry| sum.saturating_add(entry.n_bytes));
    if n_bytes > limits.unpacked {
        let message = format!("the archive expands to {n_bytes} bytes; the limit is {}", limits.unpacked);
        return Err(Error::limit(path, message));
    }
    Ok(entries)
}

/// Whether a member is macOS metadata, or has no name.
pub(super) fn is_clutter(name: &str) -> bool {
    let mut parts = name.split(['/', '\\']);
    let last = name.rsplit(['/', '\\']).next().unwrap_or_default();
    parts.any(|part| part == "__MACOSX") || last.starts_with("._") || last == ".DS_Store" || last.is_empty()
}

/// Overlapping members make a small archive expand to a huge size (zip bomb).
fn check_overlap(path: &Path, entries: &[Entry]) -> Result<()> {
    let mut ranges: Vec<(u64, u64)> = entries.iter().map(|entry| (entry.start, entry.n_packed)).collect();
    ranges.sort_unstable();
    let shared = ranges.windows(2).any(|pair| pair[0].0.saturating_add(pair[0].1) > pair[1].0);
    if shared {
        return Err(Error::artifact(path, "two members of the archive overlap"));
    }
    Ok(())
}

/// A reader that verifies size and checksum of a member.
pub(super) struct Checked {
    rest: Box<dyn Read + Send>,
    crc: flate2::Crc,
    expected: u32,
    n_left: u64,
}

impl Checked {
    pub fn new(rest: Box<dyn Read + Send>, entry: &Entry) -> Checked {
        Checked { rest, crc: flate2::Crc::new(), expected: entry.crc, n_left: entry.n_bytes }
    }
}

impl Read for Checked {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n_bytes = self.rest.read(buffer)?;
        let damaged = |what| Err(io::Error::new(io::ErrorKind::InvalidData, what));
        if n_bytes as u64 > self.n_left {
            return damaged("a member is longer than its header states");
        }
        self.n_left -= n_bytes as u64;
        self.crc.update(&buffer[..n_bytes]);
        if n_bytes == 0 && !buffer.is_empty() {
            if self.n_left > 0 {
                return damaged("a member is shorter than its header states");
            }
            if self.crc.sum() != self.expected {
                return damaged("a member has a wrong checksum");
            }
        }
        Ok(n_bytes)
    }
}
