//! Input from files, standard input and memory, compressed or not, by line or as a whole.
//!
//! Reads `.gz` (including several members), `.zst`, and members of `.zip` and (compressed) `.tar` in place; the type is
//! detected by content, not by name. Nothing is extracted to disk. A byte order mark and the `\r` of `\r\n` are
//! removed. Text that is not UTF-8, overlong lines and decompression bombs are errors. This module knows no formats;
//! importers and corpus readers do.
//!
//! ```
//! use canonym_core::input::Input;
//!
//! let mut input = Input::from_bytes("names.txt", b"colour\r\nshape\n".to_vec())?;
//! assert_eq!(input.next_line()?, Some((1, "colour")));
//! assert_eq!(input.next_line()?, Some((2, "shape")));
//! assert_eq!(input.next_line()?, None);
//! # Ok::<(), canonym_core::Error>(())
//! ```

mod archive;
mod stream;
mod tail;
mod tar;
pub mod xml;

use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use archive::Entry;
use stream::{LimitPassed, Opened, Peeked};
use tail::Shared;
pub use tail::Tail;
use tar::TarEntry;

use crate::{Error, Result, numbers};

/// Size of the read buffer in bytes.
const BUFFER: usize = 128 << 10;

/// Limits of an input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Maximum length of a line in bytes.
    pub line: usize,
    /// Maximum ratio of uncompressed to compressed size.
    pub expansion: u64,
    /// Uncompressed size up to which `expansion` is not checked, in bytes.
    pub expansion_free: u64,
    /// Maximum uncompressed size of a stream, and of all members of a zip archive together, in bytes.
    pub unpacked: u64,
    /// Maximum number of members of an archive.
    pub members: usize,
    /// Maximum size of an archive that must be held in memory because it is read from standard input, in bytes.
    pub buffered: u64,
}

impl Limits {
    /// The default limits.
    pub const DEFAULT: Limits = Limits {
        line: 64 << 20,
        expansion: 1000,
        expansion_free: 64 << 20,
        unpacked: u64::MAX,
        members: 100_000,
        buffered: 1 << 30,
    };
}

impl Default for Limits {
    fn default() -> Limits {
        Limits::DEFAULT
    }
}

/// Text encoding of lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Encoding {
    /// UTF-8; anything else is an error.
    #[default]
    Utf8,
    /// ISO-8859-1: every byte is the code point with the same number.
    Latin1,
}

/// A file or bytes that can be opened as an [`Input`], repeatedly except for standard input.
#[derive(Debug, Clone)]
pub struct Source {
    label: PathBuf,
    origin: Origin,
    limits: Limits,
}

#[derive(Debug, Clone)]
enum Origin {
    Stdin,
    Path(PathBuf),
    Bytes(Arc<[u8]>),
    Member { archive: Box<Origin>, entry: Entry },
    TarMember { archive: Box<Origin>, entry: TarEntry },
}

/// A stream of lines, or of bytes through [`Read`] and [`BufRead`].
///
/// Lines and bytes share a position, so use only one of them.
pub struct Input {
    path: PathBuf,
    reader: BufReader<Peeked>,
    line: Vec<u8>,
    decoded: String,
    n_lines: u64,
    limits: Limits,
    encoding: Encoding,
    packed: bool,
    /// The stream that is decompressed, if it is one.
    shared: Option<Shared>,
}

impl Source {
    /// A file, or standard input if the path is `-`. Not opened yet.
    pub fn from_path(path: &Path) -> Source {
        let origin = if path == Path::new("-") { Origin::Stdin } else { Origin::Path(path.to_path_buf()) };
        Source { label: path.to_path_buf(), origin, limits: Limits::DEFAULT }
    }

    /// Bytes in memory; `label` replaces the path in messages.
    pub fn from_bytes(label: &str, bytes: Vec<u8>) -> Source {
        Source { label: PathBuf::from(label), origin: Origin::Bytes(bytes.into()), limits: Limits::DEFAULT }
    }

    /// Sets the limits.
    #[must_use]
    pub fn with_limits(mut self, limits: Limits) -> Source {
        self.limits = limits;
        self
    }

    /// Path for messages: the file, `-`, or `archive.zip/member`.
    pub fn path(&self) -> &Path {
        &self.label
    }

    /// The last component of the path without `.gz` and `.zst`.
    pub fn file_name(&self) -> &str {
        plain_name(&self.label)
    }

    /// The data members of a zip or tar archive in order, or the source itself if it is not an archive.
    ///
    /// Folders and macOS metadata are skipped. Standard input, pipes and folders are not examined and remain one
    /// source.
    pub fn members(self) -> Result<Vec<Source>> {
        let entries = match &self.origin {
            Origin::Stdin | Origin::Member { .. } | Origin::TarMember { .. } => None,
            // Opening and closing a named pipe would break it.
            Origin::Path(path) if !is_regular(path)? => None,
            Origin::Path(path) => {
                let mut file = open_file(path)?;
                let packed = stream::is_zip(&mut file).map_err(|error| Error::io("read", path, error))?;
                if packed { Some(archive::entries(&self.label, BufReader::new(file), &self.limits)?) } else { None }
            }
            Origin::Bytes(bytes) if stream::starts_zip(bytes) => {
                Some(archive::entries(&self.label, Cursor::new(bytes.clone()), &self.limits)?)
            }
            Origin::Bytes(_) => None,
        };
        let Some(entries) = entries else { return self.tar_members() };
        let member = |entry: Entry| Source {
            label: self.label.join(entry.name.trim_start_matches('/')),
            origin: Origin::Member { archive: Box::new(self.origin.clone()), entry },
            limits: self.limits,
        };
        Ok(entries.into_iter().map(member).collect())
    }

    /// The members if the source is not a zip archive.
    fn tar_members(self) -> Result<Vec<Source>> {
        let mut input = match &self.origin {
            Origin::Path(path) if is_regular(path)? => self.input(Box::new(open_file(path)?))?,
            Origin::Bytes(bytes) => self.input(Box::new(Cursor::new(bytes.clone())))?,
            _ => return Ok(vec![self]),
        };
        if !tar::starts_tar(input.head()) {
            return Ok(vec![self]);
        }
        let entries = tar::entries(&self.label, &mut input, &self.limits)?;
        input.tail().check(1)?;
        let member = |entry: TarEntry| Source {
            label: self.label.join(entry.name.trim_start_matches('/')),
            origin: Origin::TarMember { archive: Box::new(self.origin.clone()), entry },
            limits: self.limits,
        };
        Ok(entries.into_iter().map(member).collect())
    }

    /// Opens the source at its start. An archive must have exactly one data member.
    pub fn open(&self) -> Result<Input> {
        match &self.origin {
            Origin::Stdin => self.open_stdin(),
            Origin::Path(path) => {
                let mut file = open_file(path)?;
                if stream::is_zip(&mut file).map_err(|error| Error::io("read", path, error))? {
                    return self.open_single();
                }
                self.unless_tar(self.input(Box::new(file))?)
            }
            Origin::Bytes(bytes) if stream::starts_zip(bytes) => self.open_single(),
            Origin::Bytes(bytes) => self.unless_tar(self.input(Box::new(Cursor::new(bytes.clone())))?),
            Origin::Member { archive, entry } => self.open_member(archive, entry),
            Origin::TarMember { archive, entry } => self.open_tar_member(archive, entry),
        }
    }

    /// Reads a compressed file to its end and compares its checksums. Files that are not compressed have none; standard
    /// input and pipes are not examined, because they cannot be read twice.
    ///
    /// # Errors
    /// If the source cannot be opened, or the compressed data is damaged or truncated, or exceeds a limit.
    pub fn verify(&self) -> Result<()> {
        match &self.origin {
            Origin::Stdin => Ok(()),
            Origin::Path(path) if !is_regular(path)? => Ok(()),
            // The archive was read to its end for the list of its members; most members are not compressed themselves.
            Origin::TarMember { .. } if !has_packed_name(self.path()) => Ok(()),
            _ => self.open()?.verify(),
        }
    }

    fn unless_tar(&self, input: Input) -> Result<Input> {
        if tar::starts_tar(input.head()) { self.open_single() } else { Ok(input) }
    }

    fn open_single(&self) -> Result<Input> {
        let mut members = self.clone().members()?;
        match members.len() {
            1 => members.remove(0).open(),
            0 => Err(Error::artifact(&self.label, "the archive contains no data file")),
            n => {
                let names: Vec<&str> = members.iter().take(3).map(Source::file_name).collect();
                let message = format!("the archive contains {n} files ({}, …); expected one", names.join(", "));
                Err(Error::artifact(&self.label, message).with_hint("extract the file that you need"))
            }
        }
    }

    fn open_stdin(&self) -> Result<Input> {
        let broken = |error| Error::io("read", &self.label, error);
        let mut peeked = Peeked::magic(Box::new(io::stdin())).map_err(broken)?;
        if !stream::starts_zip(peeked.head()) {
            let input = self.input(Box::new(peeked))?;
            if tar::starts_tar(input.head()) {
                let error = Error::artifact(&self.label, "cannot read a tar archive from standard input");
                return Err(error.with_hint("specify the file"));
            }
            return Ok(input);
        }
        let mut bytes = Vec::new();
        peeked.by_ref().take(self.limits.buffered + 1).read_to_end(&mut bytes).map_err(broken)?;
        if bytes.len() as u64 > self.limits.buffered {
            let message = format!("an archive on standard input is limited to {} bytes", self.limits.buffered);
            return Err(Error::limit(&self.label, message));
        }
        Source { label: self.label.clone(), origin: Origin::Bytes(bytes.into()), limits: self.limits }.open()
    }

    fn open_member(&self, archive: &Origin, entry: &Entry) -> Result<Input> {
        let raw: Box<dyn Read + Send> = match archive {
            Origin::Path(path) => {
                let mut file = open_file(path)?;
                file.seek(SeekFrom::Start(entry.start)).map_err(|error| Error::io("read", path, error))?;
                Box::new(file.take(entry.n_packed))
            }
            Origin::Bytes(bytes) => {
                let mut cursor = Cursor::new(bytes.clone());
                cursor.set_position(entry.start);
                Box::new(cursor.take(entry.n_packed))
            }
            Origin::Stdin | Origin::Member { .. } | Origin::TarMember { .. } => {
                return Err(Error::artifact(&self.label, "archives can only be read from files or memory"));
            }
        };
        let opened = stream::open_member(raw, entry, &self.limits);
        self.wrap(opened.map_err(|error| self.opening_error(error))?)
    }

    fn open_tar_member(&self, archive: &Origin, entry: &TarEntry) -> Result<Input> {
        let raw: Box<dyn Read + Send> = match archive {
            Origin::Path(path) => Box::new(open_file(path)?),
            Origin::Bytes(bytes) => Box::new(Cursor::new(bytes.clone())),
            Origin::Stdin | Origin::Member { .. } | Origin::TarMember { .. } => {
                return Err(Error::artifact(&self.label, "archives can only be read from files or memory"));
            }
        };
        let mut whole = self.input(raw)?;
        tar::skip(&mut whole, entry.start).map_err(|error| self.opening_error(error))?;
        let opened = stream::open(Box::new(tar::Whole::new(whole, entry.n_bytes)), &self.limits);
        let opened = opened.map_err(|error| self.opening_error(error))?;
        // `packed`, because truncated or damaged data means that the archive is.
        self.wrap(Opened { packed: true, ..opened })
    }

    fn input(&self, raw: Box<dyn Read + Send>) -> Result<Input> {
        let opened = stream::open(raw, &self.limits);
        self.wrap(opened.map_err(|error| self.opening_error(error))?)
    }

    fn wrap(&self, opened: Opened) -> Result<Input> {
        if opened.peeked.head().starts_with(&[0xff, 0xfe]) || opened.peeked.head().starts_with(&[0xfe, 0xff]) {
            return Err(Error::parse(&self.label, 1, "the text is UTF-16").with_hint("convert the file to UTF-8"));
        }
        Ok(Input {
            path: self.label.clone(),
            reader: BufReader::with_capacity(BUFFER, opened.peeked),
            line: Vec::new(),
            decoded: String::new(),
            n_lines: 0,
            limits: self.limits,
            encoding: Encoding::Utf8,
            packed: opened.packed,
            shared: opened.shared,
        })
    }

    fn opening_error(&self, error: io::Error) -> Error {
        translate(&self.label, 1, true, error)
    }
}

impl Input {
    /// Opens a file, or standard input if the path is `-`. An archive must have exactly one data member.
    pub fn open(path: &Path) -> Result<Input> {
        Source::from_path(path).open()
    }

    /// Reads bytes in memory; `label` replaces the path in messages.
    pub fn from_bytes(label: &str, bytes: Vec<u8>) -> Result<Input> {
        Source::from_bytes(label, bytes).open()
    }

    /// The data members of a zip or tar archive, or the file itself if it is not an archive.
    pub fn members(path: &Path) -> Result<Vec<Source>> {
        Source::from_path(path).members()
    }

    /// Sets the encoding of the lines.
    #[must_use]
    pub fn with_encoding(mut self, encoding: Encoding) -> Input {
        self.encoding = encoding;
        self
    }

    /// Path for messages: the file, `-`, or `archive.zip/member`.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The last component of the path without `.gz` and `.zst`.
    pub fn file_name(&self) -> &str {
        plain_name(&self.path)
    }

    /// What is not read yet, to find out whether compressed data is damaged after its content turned out malformed.
    pub fn tail(&self) -> Tail {
        Tail { stream: self.shared.clone(), path: self.path.clone() }
    }

    fn verify(mut self) -> Result<()> {
        if self.shared.is_none() {
            return Ok(());
        }
        let mut line = 1;
        loop {
            let piece = self.reader.fill_buf().map_err(|error| translate(&self.path, line, true, error))?;
            if piece.is_empty() {
                return Ok(());
            }
            line += piece.iter().filter(|byte| **byte == b'\n').count() as u64;
            let n_bytes = piece.len();
            self.reader.consume(n_bytes);
        }
    }

    /// The first bytes, uncompressed, at most a few thousand, for format detection. They are not consumed.
    pub fn head(&self) -> &[u8] {
        self.reader.get_ref().head()
    }

    /// Number of lines read.
    pub fn n_lines(&self) -> u64 {
        self.n_lines
    }

    /// The next line without line end, with its number from 1; `None` at the end.
    pub fn next_line(&mut self) -> Result<Option<(u64, &str)>> {
        self.line.clear();
        let max = self.limits.line as u64 + 2;
        let n_read = self.reader.by_ref().take(max).read_until(b'\n', &mut self.line);
        let number = self.n_lines + 1;
        let n_read = n_read.map_err(|error| translate(&self.path, number, self.packed, error))?;
        if n_read == 0 {
            return Ok(None);
        }
        self.n_lines = number;
        if self.line.last() == Some(&b'\n') {
            self.line.pop();
        }
        if self.line.last() == Some(&b'\r') {
            self.line.pop();
        }
        if self.line.len() > self.limits.line {
            let message = format!("line {number} is longer than {}", numbers::bytes(self.limits.line as u64));
            return Err(Error::limit(&self.path, message));
        }
        if self.encoding == Encoding::Latin1 {
            self.decoded.clear();
            self.decoded.extend(self.line.iter().map(|&byte| char::from(byte)));
            return Ok(Some((number, &self.decoded)));
        }
        match std::str::from_utf8(&self.line) {
            Ok(text) => Ok(Some((number, text))),
            Err(error) => {
                let at = error.valid_up_to();
                let message = format!("invalid UTF-8: byte {} of the line (0x{:02x})", at + 1, self.line[at]);
                let hint = "convert the file to UTF-8, for example with `iconv -f ISO-8859-1 -t UTF-8`";
                Err(Error::parse(&self.path, number, message).with_hint(hint))
            }
        }
    }

    /// An [`Error::Parse`] at the last line.
    pub fn error(&self, message: impl Into<String>) -> Error {
        Error::parse(&self.path, self.n_lines.max(1), message)
    }

    /// Converts an error of [`Read`] on this input: exceeded limit, damaged stream, or I/O error.
    pub fn read_error(&self, error: io::Error) -> Error {
        translate(&self.path, self.n_lines + 1, self.packed, error)
    }

    /// Converts an error of `serde_json` on the whole input, with its line.
    pub fn json_error(&self, error: serde_json::Error) -> Error {
        if error.is_io() {
            return self.read_error(error.into());
        }
        let line = (error.line() as u64).max(1);
        let text = error.to_string();
        let what = text.rsplit_once(" at line ").map_or(text.as_str(), |(what, _)| what);
        Error::parse(&self.path, line, format!("invalid JSON at column {}: {what}", error.column()))
    }
}

impl Read for Input {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.reader.read(buffer)
    }
}

impl BufRead for Input {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.reader.fill_buf()
    }

    fn consume(&mut self, n_bytes: usize) {
        self.reader.consume(n_bytes);
    }
}

/// Whether the name of a file says that it is compressed.
fn has_packed_name(path: &Path) -> bool {
    path.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.len() > plain_name(path).len())
}

fn plain_name(path: &Path) -> &str {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let cut = name.len().saturating_sub(3);
    if name.get(cut..).is_some_and(|end| end.eq_ignore_ascii_case(".gz")) {
        return &name[..cut];
    }
    let cut = name.len().saturating_sub(4);
    if name.get(cut..).is_some_and(|end| end.eq_ignore_ascii_case(".zst")) {
        return &name[..cut];
    }
    name
}

fn is_regular(path: &Path) -> Result<bool> {
    let metadata = std::fs::metadata(path).map_err(|error| Error::io("open", path, error))?;
    Ok(metadata.is_file())
}

fn open_file(path: &Path) -> Result<File> {
    let file = File::open(path).map_err(|error| Error::io("open", path, error))?;
    if file.metadata().is_ok_and(|data| data.is_dir()) {
        return Err(Error::io("read", path, io::ErrorKind::IsADirectory.into()));
    }
    Ok(file)
}

fn translate(path: &Path, line: u64, packed: bool, error: io::Error) -> Error {
    if let Some(passed) = error.get_ref().and_then(|inner| inner.downcast_ref::<LimitPassed>()) {
        return Error::limit(path, passed.0.clone());
    }
    if packed && error.raw_os_error().is_none() {
        let message = format!("the compressed data is damaged or truncated ({error})");
        return Error::parse(path, line, message).with_hint("download or compress the file again");
    }
    Error::io("read", path, error)
}

#[cfg(test)]
mod tests;
