//! Decompression with protection against decompression bombs.

use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::archive::{Checked, Entry};
use super::tail::Shared;
use super::{BUFFER, Limits};

const GZIP: &[u8] = &[0x1f, 0x8b];
const ZSTD: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];
const ZIP: &[u8] = b"PK\x03\x04";
const ZIP_EMPTY: &[u8] = b"PK\x05\x06";
const MARK: &[u8] = &[0xef, 0xbb, 0xbf];

/// Number of bytes provided for format detection.
const HEAD: usize = 8 << 10;

/// Payload of an `io::Error` for an exceeded limit.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct LimitPassed(pub String);

/// A decompressed stream without byte order mark, and whether it was compressed.
pub(super) struct Opened {
    pub peeked: Peeked,
    pub packed: bool,
    /// What is decompressed behind `peeked`.
    pub shared: Option<Shared>,
}

/// A reader whose first bytes can be inspected.
pub(super) struct Peeked {
    head: Vec<u8>,
    /// Start of the head after the byte order mark.
    first: usize,
    /// Next byte of `head` to return.
    at: usize,
    /// An error while filling the head, returned after the head has been read.
    pending: Option<io::Error>,
    rest: Box<dyn Read + Send>,
}

impl Peeked {
    /// Reads only enough for the magic number, without waiting for a slow pipe.
    pub fn magic(rest: Box<dyn Read + Send>) -> io::Result<Peeked> {
        let mut peeked = Peeked { head: Vec::new(), first: 0, at: 0, pending: None, rest };
        while peeked.read_more()? > 0 && peeked.undecided() {}
        Ok(peeked)
    }

    /// Fills the head as far as data is available.
    fn filled(rest: Box<dyn Read + Send>) -> Peeked {
        let mut peeked = Peeked { head: Vec::new(), first: 0, at: 0, pending: None, rest };
        while peeked.head.len() < HEAD {
            match peeked.read_more() {
                Ok(0) => break,
                Ok(_) => {}
                Err(error) => {
                    peeked.pending = Some(error);
                    break;
                }
            }
        }
        peeked
    }

    /// The first bytes, without byte order mark.
    pub fn head(&self) -> &[u8] {
        &self.head[self.first..]
    }

    fn undecided(&self) -> bool {
        [GZIP, ZSTD, ZIP, ZIP_EMPTY, MARK]
            .iter()
            .any(|magic| self.head.len() < magic.len() && magic.starts_with(&self.head))
    }

    fn read_more(&mut self) -> io::Result<usize> {
        let length = self.head.len();
        self.head.resize(HEAD.max(length + 1), 0);
        loop {
            match self.rest.read(&mut self.head[length..]) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                result => {
                    self.head.truncate(length + *result.as_ref().unwrap_or(&0));
                    return result;
                }
            }
        }
    }

    fn without_mark(mut self) -> Peeked {
        if self.head.starts_with(MARK) {
            self.first = MARK.len();
            self.at = MARK.len();
        }
        self
    }
}

impl Read for Peeked {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.at < self.head.len() {
            let n_bytes = buffer.len().min(self.head.len() - self.at);
            buffer[..n_bytes].copy_from_slice(&self.head[self.at..self.at + n_bytes]);
            self.at += n_bytes;
            return Ok(n_bytes);
        }
        match self.pending.take() {
            Some(error) => Err(error),
            None => self.rest.read(buffer),
        }
    }
}

/// Counts the bytes read.
struct Counted {
    rest: Box<dyn Read + Send>,
    n_bytes: Arc<AtomicU64>,
}

impl Read for Counted {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n_bytes = self.rest.read(buffer)?;
        self.n_bytes.fetch_add(n_bytes as u64, Ordering::Relaxed);
        Ok(n_bytes)
    }
}

/// Fails when the expansion exceeds the limit.
struct Guarded {
    rest: Box<dyn Read + Send>,
    n_in: Arc<AtomicU64>,
    n_out: u64,
    limits: Limits,
}

impl Read for Guarded {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n_bytes = self.rest.read(buffer)?;
        self.n_out += n_bytes as u64;
        if self.n_out > self.limits.unpacked {
            let message = format!("it expands to more than {} bytes", self.limits.unpacked);
            return Err(io::Error::other(LimitPassed(message)));
        }
        if self.n_out > self.limits.expansion_free {
            let allowed = self.n_in.load(Ordering::Relaxed).saturating_mul(self.limits.expansion);
            if self.n_out > allowed {
                let message = format!(
                    "{} compressed bytes expand to {} (more than {}-fold)",
                    self.n_in.load(Ordering::Relaxed),
                    self.n_out,
                    self.limits.expansion
                );
                return Err(io::Error::other(LimitPassed(message)));
            }
        }
        Ok(n_bytes)
    }
}

/// Whether the bytes are the start of a zip archive.
pub(super) fn starts_zip(bytes: &[u8]) -> bool {
    bytes.starts_with(ZIP) || bytes.starts_with(ZIP_EMPTY)
}

/// Whether a file is a zip archive; rewinds it. Unseekable files such as pipes are not examined.
pub(super) fn is_zip(file: &mut std::fs::File) -> io::Result<bool> {
    if !file.metadata()?.is_file() {
        return Ok(false);
    }
    let mut magic = [0; 4];
    let mut n_read = 0;
    while n_read < magic.len() {
        match file.read(&mut magic[n_read..])? {
            0 => break,
            n_bytes => n_read += n_bytes,
        }
    }
    file.seek(SeekFrom::Start(0))?;
    Ok(starts_zip(&magic[..n_read]))
}

/// Opens a plain, gzip or zstd stream.
pub(super) fn open(raw: Box<dyn Read + Send>, limits: &Limits) -> io::Result<Opened> {
    let n_in = Arc::new(AtomicU64::new(0));
    let counted = Box::new(Counted { rest: raw, n_bytes: n_in.clone() });
    decode(counted, n_in, limits, false)
}

/// Opens a member of a zip archive, which may itself be gzip or zstd.
pub(super) fn open_member(raw: Box<dyn Read + Send>, entry: &Entry, limits: &Limits) -> io::Result<Opened> {
    let n_in = Arc::new(AtomicU64::new(0));
    let counted = BufReader::with_capacity(BUFFER, Counted { rest: raw, n_bytes: n_in.clone() });
    let inflated: Box<dyn Read + Send> =
        if entry.deflated { Box::new(flate2::bufread::DeflateDecoder::new(counted)) } else { Box::new(counted) };
    decode(Box::new(Checked::new(inflated, entry)), n_in, limits, true)
}

fn decode(raw: Box<dyn Read + Send>, n_in: Arc<AtomicU64>, limits: &Limits, packed: bool) -> io::Result<Opened> {
    let peeked = Peeked::magic(raw)?;
    let decoded: Box<dyn Read + Send> = if peeked.head().starts_with(GZIP) {
        Box::new(flate2::bufread::MultiGzDecoder::new(BufReader::with_capacity(BUFFER, peeked)))
    } else if peeked.head().starts_with(ZSTD) {
        Box::new(zstd::stream::read::Decoder::new(peeked)?)
    } else if packed {
        Box::new(peeked)
    } else {
        return Ok(Opened { peeked: peeked.without_mark(), packed: false, shared: None });
    };
    let shared = Shared::new(Box::new(Guarded { rest: decoded, n_in, n_out: 0, limits: *limits }));
    Ok(Opened { peeked: Peeked::filled(Box::new(shared.clone())).without_mark(), packed: true, shared: Some(shared) })
}
