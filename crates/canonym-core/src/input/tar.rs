//! Members of a tar archive, compressed or not: positions in the uncompressed stream.
//!
//! Nothing is extracted to disk, so member names are never paths. Reads ustar headers, GNU long names, and pax `path`
//! and `size`; folders and links are skipped.

use std::io::{self, Read};
use std::path::Path;

use super::archive::is_clutter;
use super::{Limits, translate};
use crate::{Error, Result};

const BLOCK: usize = 512;

/// Maximum size of a GNU long-name or pax header.
const MAX_EXTENSION_BYTES: u64 = 64 << 10;

/// Location of a member in the uncompressed archive.
#[derive(Debug, Clone)]
pub(super) struct TarEntry {
    pub name: String,
    pub start: u64,
    pub n_bytes: u64,
}

/// Whether the bytes are the start of a tar archive.
pub(super) fn starts_tar(head: &[u8]) -> bool {
    head.get(..BLOCK).is_some_and(|header| &header[257..262] == b"ustar" && sum_is_right(header))
}

/// Verifies the checksum of a header: the sum of its bytes, with spaces in the checksum field.
fn sum_is_right(header: &[u8]) -> bool {
    let bytes = header.iter().enumerate();
    let sum: u64 = bytes.map(|(at, byte)| u64::from(if (148..156).contains(&at) { b' ' } else { *byte })).sum();
    number(&header[148..156]) == Some(sum)
}

/// A number in octal digits, or in base 256 if the first bit is set.
fn number(field: &[u8]) -> Option<u64> {
    if field[0] & 0x80 != 0 {
        let mut bytes = field[1..].iter();
        return bytes
            .try_fold(u64::from(field[0] & 0x7f), |sum, byte| sum.checked_mul(256).map(|sum| sum | u64::from(*byte)));
    }
    let text = std::str::from_utf8(field).ok()?;
    let digits = text.trim_matches(|letter: char| letter == ' ' || letter == '\0');
    if digits.is_empty() { Some(0) } else { u64::from_str_radix(digits, 8).ok() }
}

fn text(field: &[u8]) -> String {
    let end = field.iter().position(|byte| *byte == 0).unwrap_or(field.len());
    String::from_utf8_lossy(&field[..end]).into_owned()
}

/// The name in a header, including its prefix.
fn name(header: &[u8]) -> String {
    let (name, prefix) = (text(&header[..100]), text(&header[345..500]));
    // GNU tar uses the prefix field for times.
    let posix = &header[257..263] == b"ustar\0";
    if posix && !prefix.is_empty() { format!("{prefix}/{name}") } else { name }
}

/// Fields of extension headers for the next member.
#[derive(Default)]
struct Extension {
    name: Option<String>,
    n_bytes: Option<u64>,
}

impl Extension {
    /// Parses the pax records `length key=value\n`.
    fn read_pax(&mut self, mut bytes: &[u8]) -> Option<()> {
        while !bytes.is_empty() && bytes[0] != 0 {
            let blank = bytes.iter().position(|byte| *byte == b' ')?;
            let length: usize = std::str::from_utf8(&bytes[..blank]).ok()?.parse().ok()?;
            let record = bytes.get(blank + 1..length)?.strip_suffix(b"\n")?;
            let equals = record.iter().position(|byte| *byte == b'=')?;
            let value = String::from_utf8_lossy(&record[equals + 1..]);
            match &record[..equals] {
                b"path" => self.name = Some(value.into_owned()),
                b"size" => self.n_bytes = Some(value.parse().ok()?),
                _ => {}
            }
            bytes = &bytes[length..];
        }
        Some(())
    }
}

/// Lists the data members of an archive by reading it to the end.
pub(super) fn entries(path: &Path, reader: &mut dyn Read, limits: &Limits) -> Result<Vec<TarEntry>> {
    let mut entries = Vec::new();
    let mut extension = Extension::default();
    let mut header = [0; BLOCK];
    let mut at = 0u64;
    let mut n_headers = 0;
    let broken = |error: io::Error| match error.kind() {
        io::ErrorKind::UnexpectedEof => Error::artifact(path, "the archive is truncated"),
        _ => translate(path, 1, true, error),
    };
    let damaged = |what: &str| Error::artifact(path, format!("the archive is damaged ({what})"));
    loop {
        reader.read_exact(&mut header).map_err(broken)?;
        at += BLOCK as u64;
        if header.iter().all(|byte| *byte == 0) {
            return Ok(entries);
        }
        n_headers += 1;
        if n_headers > limits.members {
            return Err(Error::limit(path, format!("the archive has more than {} members", limits.members)));
        }
        if !sum_is_right(&header) {
            return Err(damaged("a header has a wrong checksum"));
        }
        let stated = number(&header[124..136]).ok_or_else(|| damaged("the size of a member is not a number"))?;
        let kind = header[156];
        if matches!(kind, b'L' | b'K' | b'x' | b'g') {
            if stated > MAX_EXTENSION_BYTES {
                let message = format!("a header of the archive has {stated} bytes; the limit is {MAX_EXTENSION_BYTES}");
                return Err(Error::limit(path, message));
            }
            let mut bytes = vec![0; (stated as usize).next_multiple_of(BLOCK)];
            reader.read_exact(&mut bytes).map_err(broken)?;
            at += bytes.len() as u64;
            bytes.truncate(stated as usize);
            match kind {
                b'L' => extension.name = Some(text(&bytes)),
                b'x' => extension.read_pax(&bytes).ok_or_else(|| damaged("a pax header"))?,
                _ => {}
            }
            continue;
        }
        let Extension { name: long, n_bytes } = std::mem::take(&mut extension);
        let (name, n_bytes) = (long.unwrap_or_else(|| name(&header)), n_bytes.unwrap_or(stated));
        if matches!(kind, b'0' | b'7' | 0) && !name.ends_with('/') && !is_clutter(&name) {
            entries.push(TarEntry { name, start: at, n_bytes });
        } else if kind == b'S' {
            return Err(damaged("sparse files are not supported"));
        }
        let n_blocks = n_bytes.checked_next_multiple_of(BLOCK as u64).ok_or_else(|| damaged("the size of a member"))?;
        skip(reader, n_blocks).map_err(broken)?;
        at = at.checked_add(n_blocks).ok_or_else(|| damaged("the size of a member"))?;
    }
}

/// Skips `n_bytes`; it is an error if there are fewer.
pub(super) fn skip(reader: &mut dyn Read, n_bytes: u64) -> io::Result<()> {
    match io::copy(&mut reader.take(n_bytes), &mut io::sink())? {
        n_skipped if n_skipped == n_bytes => Ok(()),
        _ => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

/// A reader that verifies the size of a member.
pub(super) struct Whole<R> {
    rest: io::Take<R>,
}

impl<R: Read> Whole<R> {
    pub fn new(rest: R, n_bytes: u64) -> Whole<R> {
        Whole { rest: rest.take(n_bytes) }
    }
}

impl<R: Read> Read for Whole<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n_bytes = self.rest.read(buffer)?;
        if n_bytes == 0 && !buffer.is_empty() && self.rest.limit() > 0 {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "a member is shorter than its header states"));
        }
        Ok(n_bytes)
    }
}
