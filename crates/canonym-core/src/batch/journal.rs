//! The journal of a run folder: one line per finished file.

use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::Checksum;
use crate::{Error, Result};

/// A finished file: where its content came from and what was written.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FinishedFile {
    /// Name of the output in the run folder.
    pub output: String,
    /// Path of the input, as given.
    pub input: String,
    /// Checksum of the input.
    pub input_checksum: Checksum,
    /// Checksum of the output.
    pub output_checksum: Checksum,
    /// Number of documents written.
    pub documents: u64,
    /// Number of mentions written.
    pub mentions: u64,
    /// Number of documents skipped.
    pub skipped: u64,
    /// Fingerprint of the knowledge base.
    pub kb: String,
    /// Fingerprint of the model.
    pub model: String,
    /// Version of canonym.
    pub version: String,
}

/// An open journal. Lines are appended and synced, never changed.
#[derive(Debug)]
pub(super) struct Journal {
    file: File,
    path: PathBuf,
}

impl Journal {
    /// Opens or creates a journal and returns its records, oldest first. An incomplete last line, which a killed run
    /// leaves behind, is removed.
    pub fn open(path: &Path) -> Result<(Journal, Vec<FinishedFile>)> {
        let options = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path);
        let mut file = options.map_err(|source| Error::io("open", path, source))?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(|source| Error::io("read", path, source))?;
        let complete = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let mut records = Vec::new();
        for (line, number) in bytes[..complete].split_inclusive(|byte| *byte == b'\n').zip(1..) {
            records.push(serde_json::from_slice(line).map_err(|error| {
                Error::parse(path, number, format!("invalid line in the run journal: {error}"))
                    .with_hint("remove this line; its file will be linked again")
            })?);
        }
        let cut = file.set_len(complete as u64).and_then(|()| file.seek(SeekFrom::End(0)));
        cut.map_err(|source| Error::io("write", path, source))?;
        Ok((Journal { file, path: path.to_path_buf() }, records))
    }

    /// Appends a record.
    pub fn append(&mut self, record: &FinishedFile) -> Result<()> {
        let mut line = serde_json::to_vec(record).expect("strings and numbers can be written as JSON");
        line.push(b'\n');
        let written = self.file.write_all(&line).and_then(|()| self.file.sync_data());
        written.map_err(|source| Error::io("write", &self.path, source))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_torn_last_line_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run.journal");
        let record = |name: &str| FinishedFile { output: name.to_owned(), ..FinishedFile::default() };
        let (mut journal, records) = Journal::open(&path).unwrap();
        assert_eq!(records, []);
        journal.append(&record("a")).unwrap();
        journal.append(&record("b")).unwrap();
        drop(journal);
        let whole = std::fs::read(&path).unwrap();
        std::fs::write(&path, &whole[..whole.len() - 1]).unwrap();
        let (mut journal, records) = Journal::open(&path).unwrap();
        assert_eq!(records, [record("a")]);
        journal.append(&record("b")).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), whole);
    }

    #[test]
    fn a_damaged_line_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run.journal");
        std::fs::write(&path, "{\"output\":7}\n").unwrap();
        let error = Journal::open(&path).unwrap_err();
        assert!(error.to_string().contains("run.journal:1: invalid line in the run journal"), "{error}");
    }
}
