//! Reads documents, with messages about repairs and skipped input.

use std::path::{Path, PathBuf};

use super::conll::Tags;
use super::csv::CsvColumns;
use super::files::InputFile;
use super::{AnnotatedDocument, Anomaly, CorpusFormat, OnMismatch, Reader};
use crate::numbers::counted;
use crate::{Error, Result};

/// Maximum number of repairs listed; the rest is only counted.
const MAX_SHOWN: u64 = 20;

/// A message while documents are read.
#[derive(Debug)]
pub enum Notice {
    /// A repair, or what was skipped.
    Line(String),
    /// Why a file, or its rest, is skipped.
    Skipped(Error),
}

/// Receives messages while documents are read.
pub type OnNotice = fn(Notice);

/// How documents are read.
#[derive(Debug, Clone)]
pub struct ReadConfig {
    /// Whether offsets of annotations that do not match the text are repaired, if the repair is unambiguous.
    pub fix_offsets: bool,
    /// Whether annotations whose offsets do not match the text are skipped; otherwise they are errors.
    pub skip_bad_offsets: bool,
    /// How token tags are read.
    pub tags: Tags,
    /// Columns of CSV files.
    pub columns: CsvColumns,
    /// Which part of the input is used.
    pub purpose: Purpose,
    /// Receives messages about repairs and skipped input.
    pub on_notice: OnNotice,
}

impl ReadConfig {
    /// Opens the documents of a file, folder or standard input, or detects the format if none is given.
    ///
    /// # Errors
    /// If the path cannot be opened or listed.
    pub fn open(&self, path: &Path, format: Option<CorpusFormat>) -> Result<Documents> {
        Ok(self.documents(Reader::open(path, format)?, path))
    }

    /// Opens one file of a listing.
    pub fn open_file(&self, file: &InputFile, format: Option<CorpusFormat>) -> Documents {
        self.documents(Reader::open_file(file, format), file.path())
    }

    fn documents(&self, reader: Reader, path: &Path) -> Documents {
        let drops = self.skip_bad_offsets || self.purpose == Purpose::Texts;
        let reader = reader
            .with_on_mismatch(if drops { OnMismatch::Drop } else { OnMismatch::Error })
            .with_repairs(self.fix_offsets)
            .with_tags(self.tags)
            .with_columns(self.columns.clone());
        let (path, purpose, on_notice) = (path.to_path_buf(), self.purpose, self.on_notice);
        Documents {
            reader,
            path,
            purpose,
            on_notice,
            skips_files: false,
            is_strict: false,
            n_left_out: 0,
            is_empty: true,
            n_shown: 0,
            is_reported: false,
        }
    }
}

/// The name of an input in messages.
pub fn named(path: &Path) -> String {
    if path == Path::new("-") { "standard input".to_owned() } else { path.display().to_string() }
}

/// Which part of a corpus is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// Texts and annotations.
    Annotations,
    /// Texts alone; annotations with wrong offsets are no errors.
    Texts,
}

/// Iterates over documents.
pub struct Documents {
    reader: Reader,
    path: PathBuf,
    purpose: Purpose,
    on_notice: OnNotice,
    skips_files: bool,
    is_strict: bool,
    n_left_out: u64,
    /// Whether nothing was read and nothing was wrong so far.
    is_empty: bool,
    n_shown: u64,
    is_reported: bool,
}

impl Iterator for Documents {
    type Item = Result<AnnotatedDocument>;

    fn next(&mut self) -> Option<Result<AnnotatedDocument>> {
        let next = loop {
            match self.reader.next() {
                Some(Err(error)) if self.skips_files => {
                    (self.on_notice)(Notice::Skipped(self.reader.cause_of(error)));
                    self.n_left_out += 1;
                }
                Some(Err(error)) if !self.is_strict => break Some(Err(self.reader.cause_of(error))),
                next => break next,
            }
        };
        for fix in self.reader.fixes() {
            if self.n_shown < MAX_SHOWN {
                (self.on_notice)(Notice::Line(fix.to_string()));
            }
            self.n_shown += 1;
        }
        self.is_empty &= next.is_none() && self.n_left_out == 0;
        if next.is_none() && !std::mem::replace(&mut self.is_reported, true) {
            self.report_counts();
        }
        next
    }
}

impl Documents {
    /// In a folder, reports a file that cannot be read and skips the rest of it instead of failing; a damaged compressed
    /// file is skipped as a whole.
    #[must_use]
    pub fn going_on(self) -> Documents {
        if self.path.is_dir() { self.skipping_files() } else { self }
    }

    /// Refuses documents with the id of an earlier one and damaged compressed files as a whole, and leaves all errors to
    /// the caller, who may continue after them unless the input [is spoiled](Documents::is_spoiled).
    #[must_use]
    pub fn strict(mut self) -> Documents {
        self.reader = self.reader.with_repeated_ids_refused(true).with_verification(true);
        self.is_strict = true;
        self
    }

    /// Reports a file that cannot be read and skips the rest of it instead of failing; a damaged compressed file is
    /// skipped as a whole.
    #[must_use]
    pub fn skipping_files(mut self) -> Documents {
        self.reader = self.reader.with_verification(true);
        self.skips_files = true;
        self
    }

    /// Whether the last error is that a compressed stream, which could not be verified before, is damaged. Documents that
    /// were read from it may be wrong.
    pub fn is_spoiled(&self) -> bool {
        self.reader.is_spoiled()
    }

    /// Path of the file, and id of the document, that the last error is about, as far as known.
    pub fn failed(&self) -> (&Path, Option<&str>) {
        (self.reader.path(), self.reader.failed_id())
    }

    /// Number of files skipped or partly read so far.
    pub fn n_left_out(&self) -> u64 {
        self.n_left_out
    }

    fn report_counts(&self) {
        let on_notice = |line| (self.on_notice)(Notice::Line(line));
        let counts = self.reader.counts();
        if self.is_empty {
            on_notice(format!("no documents in {}", named(&self.path)));
        }
        let path = self.path.display();
        let strict = "with invalid tag sequences (repaired, or skipped with `-strict`)";
        let annotations = |n: u64| counted(n, "annotation");
        let bad = annotations(counts.n_bad_offsets);
        let bad_offsets = match self.purpose {
            Purpose::Annotations => format!("skipped {bad} with wrong offsets in {path}"),
            Purpose::Texts => {
                format!(
                    "ignored {bad} with wrong offsets in {path} (`--mentions detect` does not use input annotations)"
                )
            }
        };
        let rows = [
            (counts.n_fixed, format!("repaired {} with wrong offsets in {path}", annotations(counts.n_fixed))),
            (counts.n_bad_offsets, bad_offsets),
            (counts.n_broken_tags, format!("{} in {path} {strict}", counted(counts.n_broken_tags, "mention"))),
            (
                counts.n_deleted,
                format!("skipped {} marked as deleted in {path}", counted(counts.n_deleted, "citation")),
            ),
            (counts.n_other_files, format!("skipped {} without text in {path}", counted(counts.n_other_files, "file"))),
        ];
        for (n, line) in rows {
            if n > 0 {
                on_notice(line);
            }
        }
        for (anomaly, occurrences) in self.reader.anomalies() {
            let what = match anomaly {
                Anomaly::RepeatedId => "a repeated id; each is read as a separate document",
                Anomaly::NoTitle => "no title",
            };
            let place = occurrences.location.as_ref().map(|place| format!(" at {place}")).unwrap_or_default();
            let have = if occurrences.n == 1 { "has" } else { "have" };
            let n = counted(occurrences.n, "document");
            on_notice(format!("warning: {n} in {path} {have} {what} (first: `{}`{place})", occurrences.document));
        }
    }
}
