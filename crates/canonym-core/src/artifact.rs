//! Write-once files: a container of sections with checksums, and atomic replacement.
//!
//! A container has a header with kind, format number and fingerprint, followed by named sections. It is written to a
//! temporary file and renamed into place, so readers see either the old or the new file, complete. Opening does not
//! parse: small files are read, large ones mapped, and every section is verified against its checksum. The content of
//! sections is up to the caller.

mod atomic;
mod mapped;
mod packed;

use std::collections::BTreeMap;
use std::fs::{File, Metadata};
use std::io::{Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};

use rayon::prelude::*;
use xxhash_rust::xxh3::{Xxh3, xxh3_64, xxh3_128};

pub use atomic::{AtomicFile, AtomicFolder, is_temporary, remove_temporaries_of, remove_unfinished};
pub use mapped::{MAX_MAPPED_PATH, mapped_file};
pub use packed::{PackedFile, check_ending, is_packed};

use crate::{Error, Result};

const MAGIC: [u8; 8] = *b"CANONYM\n";
const HEADER_LEN: usize = 64;
const ENTRY_LEN: usize = 40;
const ALIGNMENT: u64 = 64;
const MAX_SECTIONS: u32 = 256;

/// Files up to this size are read into memory, so that later changes to them have no effect; larger files are mapped.
pub const IN_MEMORY: u64 = 256 << 20;

/// Number of bytes read at a time when computing a checksum.
const PIECE: usize = 1 << 20;

/// Type of a container.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ArtifactKind {
    /// Four-letter tag, such as `KNOW`.
    pub tag: [u8; 4],
    /// Name in messages, such as `knowledge base`.
    pub name: &'static str,
    /// Format number of this kind, which is written; readers reject higher numbers.
    pub format: u32,
    /// The lowest format number that is read.
    pub oldest: u32,
    /// The command that writes it, for hints, such as `canonym kb build`.
    pub command: &'static str,
}

struct Entry {
    name: [u8; 16],
    offset: u64,
    len: u64,
    checksum: u64,
}

/// Writes the sections of a container.
pub struct ContainerWriter<W: Write + Seek> {
    kind: ArtifactKind,
    out: W,
    position: u64,
    entries: Vec<Entry>,
}

impl<W: Write + Seek> ContainerWriter<W> {
    /// Starts a container of `kind` on `out`, which must be at position 0.
    pub fn new(kind: ArtifactKind, mut out: W) -> std::io::Result<ContainerWriter<W>> {
        out.write_all(&[0; HEADER_LEN])?;
        Ok(ContainerWriter { kind, out, position: HEADER_LEN as u64, entries: Vec::new() })
    }

    /// Writes a section from chunks of bytes; `name` has at most 16 bytes and must be unique.
    pub fn section<'a>(&mut self, name: &str, chunks: impl IntoIterator<Item = &'a [u8]>) -> std::io::Result<()> {
        self.section_from(name, |put| chunks.into_iter().try_for_each(put))
    }

    /// Writes a section that `write` hands over in chunks of bytes.
    pub fn section_from(
        &mut self,
        name: &str,
        write: impl FnOnce(&mut dyn FnMut(&[u8]) -> std::io::Result<()>) -> std::io::Result<()>,
    ) -> std::io::Result<()> {
        self.align()?;
        let (offset, mut hasher) = (self.position, Xxh3::new());
        let (out, position) = (&mut self.out, &mut self.position);
        write(&mut |chunk: &[u8]| {
            hasher.update(chunk);
            out.write_all(chunk)?;
            *position += chunk.len() as u64;
            Ok(())
        })?;
        let entry = Entry { name: section_name(name), offset, len: self.position - offset, checksum: hasher.digest() };
        self.entries.push(entry);
        Ok(())
    }

    /// Writes a section of 32-bit numbers.
    pub fn section_u32(&mut self, name: &str, values: &[u32]) -> std::io::Result<()> {
        self.section_from(name, |put| {
            let mut bytes = Vec::with_capacity(4 << 14);
            for chunk in values.chunks(1 << 14) {
                bytes.clear();
                bytes.extend(chunk.iter().flat_map(|value| value.to_le_bytes()));
                put(&bytes)?;
            }
            Ok(())
        })
    }

    /// Writes the section table and the header, and returns the writer.
    pub fn finish(mut self) -> std::io::Result<W> {
        self.align()?;
        let table_offset = self.position;
        let mut table = Vec::with_capacity(self.entries.len() * ENTRY_LEN);
        for entry in &self.entries {
            table.extend(entry.name);
            table.extend(entry.offset.to_le_bytes());
            table.extend(entry.len.to_le_bytes());
            table.extend(entry.checksum.to_le_bytes());
        }
        self.out.write_all(&table)?;
        let mut header = Vec::with_capacity(HEADER_LEN);
        header.extend(MAGIC);
        header.extend(self.kind.tag);
        header.extend(self.kind.format.to_le_bytes());
        header.extend((self.entries.len() as u32).to_le_bytes());
        header.extend([0; 4]);
        header.extend(table_offset.to_le_bytes());
        header.extend((table_offset + table.len() as u64).to_le_bytes());
        header.extend(xxh3_128(&table).to_le_bytes());
        header.extend(xxh3_64(&header).to_le_bytes());
        debug_assert_eq!(header.len(), HEADER_LEN);
        self.out.seek(SeekFrom::Start(0))?;
        self.out.write_all(&header)?;
        self.out.flush()?;
        Ok(self.out)
    }

    fn align(&mut self) -> std::io::Result<()> {
        let padding = self.position.next_multiple_of(ALIGNMENT) - self.position;
        self.out.write_all(&[0; ALIGNMENT as usize][..padding as usize])?;
        self.position += padding;
        Ok(())
    }
}

#[cfg(unix)]
fn read_exact_at(file: &File, buffer: &mut [u8], at: u64) -> std::io::Result<()> {
    std::os::unix::fs::FileExt::read_exact_at(file, buffer, at)
}

#[cfg(windows)]
fn read_exact_at(file: &File, mut buffer: &mut [u8], mut at: u64) -> std::io::Result<()> {
    while !buffer.is_empty() {
        match std::os::windows::fs::FileExt::seek_read(file, buffer, at)? {
            0 => return Err(std::io::ErrorKind::UnexpectedEof.into()),
            n => {
                buffer = &mut buffer[n..];
                at += n as u64;
            }
        }
    }
    Ok(())
}

fn section_name(name: &str) -> [u8; 16] {
    let mut padded = [0; 16];
    padded[..name.len()].copy_from_slice(name.as_bytes());
    padded
}

/// The bytes of a container: a mapped file, or memory.
#[derive(Debug)]
enum Bytes {
    // In this order they are dropped: an address names no file that is no longer mapped there.
    Mapped(MappedFile, memmap2::Mmap),
    Owned(Vec<u8>),
}

impl std::ops::Deref for Bytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Bytes::Mapped(_, map) => map,
            Bytes::Owned(bytes) => bytes,
        }
    }
}

/// A mapped file with its state when it was opened.
#[derive(Debug)]
struct MappedFile {
    file: File,
    opened: Metadata,
    /// Tells which file an address belongs to.
    _registered: mapped::Registered,
}

/// An opened container.
#[derive(Debug)]
pub struct Container {
    bytes: Bytes,
    path: PathBuf,
    kind: ArtifactKind,
    sections: BTreeMap<[u8; 16], (Range<usize>, u64)>,
    fingerprint: u128,
    format: u32,
}

impl Container {
    /// Opens the file at `path`, which must be a container of `kind`, and verifies all checksums.
    pub fn open(path: &Path, kind: ArtifactKind) -> Result<Container> {
        Container::open_up_to(IN_MEMORY, path, kind)
    }

    /// Like [`Container::open`]; only files larger than `in_memory` bytes are mapped.
    pub fn open_up_to(in_memory: u64, path: &Path, kind: ArtifactKind) -> Result<Container> {
        Container::from_bytes(read_or_map(in_memory, path, kind)?, path, kind)
    }

    /// Like [`Container::open_up_to`], but a mapped file is verified once: a note in `notes`, a folder of this user, says
    /// which file was verified, with its size, time of modification and inode. Without a folder it is verified each time.
    pub fn open_verified_once(
        in_memory: u64,
        path: &Path,
        kind: ArtifactKind,
        notes: Option<&Path>,
    ) -> Result<Container> {
        let container = Container::unverified(read_or_map(in_memory, path, kind)?, path, kind)?;
        let note = notes.map(|folder| folder.join(format!("verified-{:032x}", container.fingerprint)));
        let state = container.file_state();
        let noted = || note.as_ref().and_then(|note| std::fs::read_to_string(note).ok());
        if state.is_some() && noted() == state {
            return Ok(container);
        }
        container.verify()?;
        if let Some((note, state)) = note.zip(state) {
            write_note(&note, &state);
        }
        Ok(container)
    }

    /// What changes when a mapped file is written to or replaced.
    fn file_state(&self) -> Option<String> {
        let Bytes::Mapped(MappedFile { opened, .. }, _) = &self.bytes else { return None };
        let modified = opened.modified().ok()?;
        #[cfg(unix)]
        let inode = std::os::unix::fs::MetadataExt::ino(opened);
        #[cfg(not(unix))]
        let inode = 0;
        Some(format!("{} bytes, {modified:?}, inode {inode}\n", opened.len()))
    }

    /// Reads a container of `kind` from memory; `label` replaces its path in messages.
    pub fn from_vec(bytes: Vec<u8>, label: &Path, kind: ArtifactKind) -> Result<Container> {
        Container::from_bytes(Bytes::Owned(bytes), label, kind)
    }

    fn from_bytes(bytes: Bytes, path: &Path, kind: ArtifactKind) -> Result<Container> {
        let container = Container::unverified(bytes, path, kind)?;
        container.verify()?;
        Ok(container)
    }

    fn unverified(bytes: Bytes, path: &Path, kind: ArtifactKind) -> Result<Container> {
        let (sections, fingerprint, format) = read_table(&bytes, kind).map_err(|fault| Error::Artifact {
            path: path.to_path_buf(),
            message: fault.message,
            hint: Some(fault.hint),
        })?;
        Ok(Container { bytes, path: path.to_path_buf(), kind, sections, fingerprint, format })
    }

    /// Verifies the checksums of all sections.
    pub fn verify(&self) -> Result<()> {
        let sections: Vec<_> = self.sections.iter().collect();
        sections.into_par_iter().try_for_each(|(name, (range, checksum))| {
            let digest = self.digest(range).map_err(|source| Error::io("read", &self.path, source))?;
            if digest == *checksum {
                return Ok(());
            }
            let name = String::from_utf8_lossy(name);
            let message = format!("its section `{}` is damaged", name.trim_end_matches('\0'));
            Err(Error::artifact(&self.path, message).with_hint(self.kind.rebuild()))
        })
    }

    /// Checksum of a part. For a mapped file it is read through the file, which avoids page faults and reports
    /// truncation as an error.
    fn digest(&self, range: &Range<usize>) -> std::io::Result<u64> {
        let Bytes::Mapped(mapped, _) = &self.bytes else { return Ok(xxh3_64(&self.bytes[range.clone()])) };
        let (mut hasher, mut piece) = (Xxh3::new(), vec![0; PIECE.min(range.len())]);
        for start in range.clone().step_by(PIECE) {
            let piece = &mut piece[..PIECE.min(range.end - start)];
            read_exact_at(&mapped.file, piece, start as u64)?;
            hasher.update(piece);
        }
        Ok(hasher.digest())
    }

    /// Fails if a mapped file was modified or truncated since it was opened. Call it before and after use to ensure
    /// that the data read in between is valid. A file replaced by renaming counts as unchanged.
    pub fn check_unchanged(&self) -> Result<()> {
        let Bytes::Mapped(mapped, _) = &self.bytes else { return Ok(()) };
        let now = mapped.file.metadata().map_err(|source| Error::io("read", &self.path, source))?;
        match now.len() == mapped.opened.len() && now.modified().ok() == mapped.opened.modified().ok() {
            true => Ok(()),
            false => Err(Error::artifact(&self.path, "it was modified while in use")
                .with_hint(format!("{}, which replaces it atomically, and restart", self.kind.rebuild()))),
        }
    }

    /// Byte range of the section `name`.
    pub fn range(&self, name: &str) -> Result<Range<usize>> {
        match self.sections.get(&section_name(name)) {
            Some((range, _)) => Ok(range.clone()),
            None => Err(Error::artifact(&self.path, format!("it has no section `{name}`"))),
        }
    }

    /// The whole file.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Path from which it was opened.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Content fingerprint: differs for different content.
    pub fn fingerprint(&self) -> u128 {
        self.fingerprint
    }

    /// The format number of the file.
    pub fn format(&self) -> u32 {
        self.format
    }

    /// Names and lengths of the sections, by name.
    pub fn sections(&self) -> Vec<(String, usize)> {
        let trimmed = |name: &[u8; 16]| String::from_utf8_lossy(name).trim_end_matches('\0').to_owned();
        self.sections.iter().map(|(name, (range, _))| (trimmed(name), range.len())).collect()
    }
}

/// The bytes of a file: read if it has up to `in_memory` bytes, else mapped.
fn read_or_map(in_memory: u64, path: &Path, kind: ArtifactKind) -> Result<Bytes> {
    let mut file = File::open(path).map_err(|source| Error::io("open", path, source))?;
    let metadata = file.metadata().map_err(|source| Error::io("open", path, source))?;
    if !metadata.is_file() {
        return Err(Error::artifact(path, "it is not a regular file"));
    }
    if metadata.len() < HEADER_LEN as u64 {
        return Err(Error::artifact(path, format!("it has {} bytes, too few for a header", metadata.len()))
            .with_hint(format!("build it with `{}`", kind.command)));
    }
    Ok(if metadata.len() <= in_memory {
        let mut bytes = Vec::with_capacity(metadata.len() as usize);
        file.read_to_end(&mut bytes).map_err(|source| Error::io("read", path, source))?;
        Bytes::Owned(bytes)
    } else {
        // SAFETY: The map is read-only and private to this process. Compiled files are never modified in place,
        // only replaced by renaming, so the mapped pages do not change; `check_unchanged` detects violations.
        let map = unsafe { memmap2::Mmap::map(&file) }.map_err(|source| Error::io("read", path, source))?;
        let registered = mapped::Registered::new(&map, path);
        Bytes::Mapped(MappedFile { file, opened: metadata, _registered: registered }, map)
    })
}

/// Writes a note; errors are ignored, because the file is then verified again.
fn write_note(note: &Path, text: &str) {
    if let Some(folder) = note.parent() {
        std::fs::create_dir_all(folder).ok();
    }
    if let Ok(mut file) = AtomicFile::create(note)
        && file.write_all(text.as_bytes()).is_ok()
    {
        file.commit().ok();
    }
}

struct Fault {
    message: String,
    hint: String,
}

impl ArtifactKind {
    /// The hint for a damaged file.
    pub fn rebuild(self) -> String {
        format!("rebuild it with `{}`", self.command)
    }
}

fn fault<T>(message: impl Into<String>, hint: impl Into<String>) -> std::result::Result<T, Fault> {
    Err(Fault { message: message.into(), hint: hint.into() })
}

type Table = (BTreeMap<[u8; 16], (Range<usize>, u64)>, u128, u32);

fn read_table(bytes: &[u8], kind: ArtifactKind) -> std::result::Result<Table, Fault> {
    if bytes.len() < HEADER_LEN || bytes[..8] != MAGIC || bytes[8..12] != kind.tag {
        let message = format!("it is not a compiled {}", kind.name);
        return fault(message, format!("build one with `{}`", kind.command));
    }
    let u32_at = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"));
    let u64_at = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
    if u64_at(56) != xxh3_64(&bytes[..56]) {
        return fault("its header is damaged", kind.rebuild());
    }
    let format = u32_at(12);
    if format > kind.format {
        let message = format!("it has format {format}; this version reads up to {}", kind.format);
        return fault(message, "use the newer version of canonym that built it, or rebuild it with this version");
    }
    if format < kind.oldest {
        let message = format!("it has format {format}; this version reads from {} on", kind.oldest);
        return fault(message, kind.rebuild());
    }
    let (n_sections, table, file_len) = (u32_at(16), u64_at(24), u64_at(32));
    if file_len != bytes.len() as u64 {
        return fault(format!("it is truncated: {} of {file_len} bytes", bytes.len()), kind.rebuild());
    }
    let table_len = u64::from(n_sections) * ENTRY_LEN as u64;
    if n_sections > MAX_SECTIONS || table.checked_add(table_len) != Some(file_len) {
        return fault("its section table is damaged", kind.rebuild());
    }
    let entries = &bytes[table as usize..];
    let fingerprint = xxh3_128(entries);
    if fingerprint.to_le_bytes() != bytes[40..56] {
        return fault("its section table is damaged", kind.rebuild());
    }
    let mut sections = BTreeMap::new();
    for start in (table as usize..file_len as usize).step_by(ENTRY_LEN) {
        let name: [u8; 16] = bytes[start..start + 16].try_into().expect("sixteen bytes");
        let (offset, len) = (u64_at(start + 16), u64_at(start + 24));
        match offset.checked_add(len) {
            Some(end) if end <= table => {
                sections.insert(name, (offset as usize..end as usize, u64_at(start + 32)));
            }
            _ => return fault("a section extends beyond its end", kind.rebuild()),
        }
    }
    Ok((sections, fingerprint, format))
}

#[cfg(test)]
mod tests;
