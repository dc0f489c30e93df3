//! Vectors of an index that is being built, beside its file, so that a build that was killed goes on where it stopped.
//!
//! The hidden file starts with a line that says what is built, followed by records: number of rows, checksum, and the rows with their scales.
//! It is locked as long as it is open. A record that was not written completely is cut off.

use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use canonym_core::artifact::remove_temporaries_of;
use canonym_core::{Error, Result};
use xxhash_rust::xxh3::xxh3_64;

/// Longest first line.
const MAX_HEADER: usize = 1 << 16;

/// Bytes before the rows of a record: number of rows and checksum.
const RECORD: usize = 12;

/// The locked file.
#[derive(Debug)]
pub struct Partial {
    file: File,
    path: PathBuf,
}

/// Rows with their scales.
#[derive(Debug, Default, PartialEq)]
pub struct Encoded {
    /// The rows, back to back.
    pub values: Vec<u8>,
    /// Scale of each row.
    pub scales: Vec<f32>,
}

impl Partial {
    /// Opens the file for the index at `out`, creates it if there is none, and removes what killed builds left behind.
    ///
    /// # Errors
    /// If another process builds the index, or the folder cannot be written.
    pub fn open(out: &Path) -> Result<Partial> {
        let name = out.file_name().ok_or_else(|| Error::invalid(format!("{} does not name a file", out.display())))?;
        let path = out.with_file_name(format!(".{}.partial", name.to_string_lossy()));
        loop {
            let opened = File::options().read(true).write(true).create(true).truncate(false).open(&path);
            let file = opened.map_err(|source| Error::io("create", &path, source))?;
            match file.try_lock() {
                Ok(()) => {}
                Err(std::fs::TryLockError::WouldBlock) => {
                    return Err(Error::busy(format!("another process is building {}", out.display()))
                        .with_hint("wait until it is finished"));
                }
                Err(std::fs::TryLockError::Error(source)) => return Err(Error::io("lock", &path, source)),
            }
            if is_at(&file, &path) {
                remove_temporaries_of(out)?;
                return Ok(Partial { file, path });
            }
        }
    }

    /// Reads the rows of `width` bytes that were written for `header`; those of another build are discarded.
    ///
    /// # Errors
    /// If the file cannot be read or written.
    pub fn resume(&mut self, header: &str, width: usize) -> Result<Encoded> {
        let failed = |source| Error::io("read", &self.path, source);
        let mut input = BufReader::with_capacity(1 << 20, &self.file);
        input.seek(SeekFrom::Start(0)).map_err(failed)?;
        let mut line = vec![0; header.len() + 1];
        let is_same = header.len() < MAX_HEADER
            && input.read_exact(&mut line).is_ok()
            && line[..header.len()] == *header.as_bytes()
            && line[header.len()] == b'\n';
        let mut encoded = Encoded::default();
        if !is_same {
            let failed = |source| Error::io("write", &self.path, source);
            self.file.set_len(0).map_err(failed)?;
            self.file.seek(SeekFrom::Start(0)).map_err(failed)?;
            self.file.write_all(header.as_bytes()).map_err(failed)?;
            self.file.write_all(b"\n").map_err(failed)?;
            self.file.sync_data().map_err(failed)?;
            return Ok(encoded);
        }
        let mut end = line.len() as u64;
        while let Some((values, scales)) = read_record(&mut input, width) {
            end += (RECORD + values.len() + scales.len()) as u64;
            encoded.values.extend(values);
            encoded.scales.extend(scales.as_chunks::<4>().0.iter().map(|bytes| f32::from_le_bytes(*bytes)));
        }
        self.file.set_len(end).map_err(failed)?;
        self.file.seek(SeekFrom::Start(end)).map_err(failed)?;
        Ok(encoded)
    }

    /// Appends rows; they are on disk when this returns.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn append(&mut self, encoded: &Encoded) -> Result<()> {
        let scales: Vec<u8> = encoded.scales.iter().flat_map(|scale| scale.to_le_bytes()).collect();
        let mut record = Vec::with_capacity(RECORD + encoded.values.len() + scales.len());
        record.extend((encoded.scales.len() as u32).to_le_bytes());
        record.extend([0; 8]);
        record.extend_from_slice(&encoded.values);
        record.extend(scales);
        let checksum = xxh3_64(&record[RECORD..]).to_le_bytes();
        record[4..RECORD].copy_from_slice(&checksum);
        let write = self.file.write_all(&record).and_then(|()| self.file.sync_data());
        write.map_err(|source| Error::io("write", &self.path, source))
    }

    /// Removes the file.
    ///
    /// # Errors
    /// If it cannot be removed.
    pub fn remove(self) -> Result<()> {
        std::fs::remove_file(&self.path).map_err(|source| Error::io("remove", &self.path, source))
    }
}

/// Whether an open file is the one at `path`: another build may have finished and removed its file after it was opened and before it was locked.
#[cfg(unix)]
fn is_at(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let opened = file.metadata().map(|metadata| (metadata.dev(), metadata.ino()));
    let there = std::fs::metadata(path).map(|metadata| (metadata.dev(), metadata.ino()));
    matches!((opened, there), (Ok(opened), Ok(there)) if opened == there)
}

/// An open file keeps its name on other systems.
#[cfg(not(unix))]
fn is_at(_: &File, _: &Path) -> bool {
    true
}

/// Values and scales of the next record; `None` at the end, and if it is not complete.
fn read_record(input: &mut impl Read, width: usize) -> Option<(Vec<u8>, Vec<u8>)> {
    let mut start = [0; RECORD];
    input.read_exact(&mut start).ok()?;
    let n_rows = u32::from_le_bytes(*start.first_chunk()?) as usize;
    let checksum = u64::from_le_bytes(*start.last_chunk()?);
    let mut bytes = Vec::new();
    // Not allocated at once: the number may be damaged.
    let n_bytes = (n_rows * (width + 4)) as u64;
    input.take(n_bytes).read_to_end(&mut bytes).ok()?;
    if bytes.len() as u64 != n_bytes || n_rows == 0 || xxh3_64(&bytes) != checksum {
        return None;
    }
    let scales = bytes.split_off(n_rows * width);
    Some((bytes, scales))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(first: u8, n: usize) -> Encoded {
        Encoded { values: (0..3 * n).map(|at| first + at as u8).collect(), scales: vec![f32::from(first); n] }
    }

    #[cfg(unix)]
    #[test]
    fn a_file_that_was_removed_is_not_the_one_at_its_path() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.partial");
        let first = File::create(&path).unwrap();
        assert!(is_at(&first, &path));
        std::fs::remove_file(&path).unwrap();
        assert!(!is_at(&first, &path));
        let second = File::create(&path).unwrap();
        assert!(is_at(&second, &path) && !is_at(&first, &path));
    }

    #[test]
    fn complete_records_are_read_again_and_the_rest_is_cut_off() {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().join("a.index");
        let temporary = folder.path().join(".a.index.77-0123456789abcdef.tmp");
        std::fs::write(&temporary, "half").unwrap();
        let mut partial = Partial::open(&out).unwrap();
        assert!(!temporary.exists());
        assert!(Partial::open(&out).unwrap_err().to_string().starts_with("another process is building"));
        assert_eq!(partial.resume("one", 3).unwrap(), Encoded::default());
        partial.append(&rows(1, 2)).unwrap();
        partial.append(&rows(9, 1)).unwrap();
        drop(partial);
        let file = folder.path().join(".a.index.partial");
        let whole = std::fs::read(&file).unwrap();
        // Cut anywhere in the second record, or damaged there: the first remains.
        let first = whole.len() - (RECORD + 3 + 4);
        for len in first..whole.len() {
            std::fs::write(&file, &whole[..len]).unwrap();
            assert_eq!(Partial::open(&out).unwrap().resume("one", 3).unwrap(), rows(1, 2), "{len}");
            assert_eq!(std::fs::metadata(&file).unwrap().len(), first as u64);
        }
        let mut damaged = whole.clone();
        damaged[first + 13] ^= 1;
        std::fs::write(&file, damaged).unwrap();
        let mut partial = Partial::open(&out).unwrap();
        assert_eq!(partial.resume("one", 3).unwrap(), rows(1, 2));
        partial.append(&rows(9, 1)).unwrap();
        drop(partial);
        assert_eq!(std::fs::read(&file).unwrap(), whole);
        let mut partial = Partial::open(&out).unwrap();
        assert_eq!(partial.resume("two", 3).unwrap(), Encoded::default());
        partial.remove().unwrap();
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
