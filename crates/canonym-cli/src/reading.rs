//! Reading corpora: shared options, and reports of repairs and skipped input.

use std::path::{Path, PathBuf};

use canonym_core::batch::Skipped;
use canonym_core::corpus::conll::Tags;
use canonym_core::corpus::csv::CsvColumns;
use canonym_core::corpus::files::InputFile;
use canonym_core::corpus::{AnnotatedDocument, CorpusFormat, Oddity, OnMismatch, Reader};

use crate::output::counted;
use crate::{errors, progress};

/// Maximum number of repairs listed; the rest is only counted.
const MAX_SHOWN: u64 = 20;

/// Options for faulty corpora.
#[derive(Debug, Clone, Copy, clap::Args)]
pub struct ReadArguments {
    /// Repair annotation offsets that do not match the text, if the repair is unambiguous, and list the repairs.
    #[arg(long)]
    pub fix_offsets: bool,
    /// Skip and count annotations whose offsets do not match the text.
    #[arg(long)]
    pub skip_bad_offsets: bool,
    /// CoNLL tagging scheme: auto, bio, bioes or bilou. Append `-strict` to skip mentions with invalid tag sequences.
    #[arg(long, value_name = "TAGS", default_value = "auto", value_parser = errors::parse::<Tags>)]
    pub tags: Tags,
}

/// Columns of CSV files.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct ColumnArguments {
    /// Column of a CSV file with the text [default: text].
    #[arg(long, value_name = "NAME")]
    pub text_column: Option<String>,
    /// Column of a CSV file with the document id [default: id, or the number of the record].
    #[arg(long, value_name = "NAME")]
    pub id_column: Option<String>,
}

impl ReadArguments {
    /// Opens the documents of a file, folder or standard input; wrong offsets are errors unless repaired or skipped.
    pub fn open(&self, path: &Path, format: Option<CorpusFormat>) -> canonym_core::Result<Documents> {
        let on_mismatch = if self.skip_bad_offsets { OnMismatch::Drop } else { OnMismatch::Error };
        self.open_with(path, format, on_mismatch, Purpose::Annotations)
    }

    /// As [`ReadArguments::open`], for callers that ignore annotations: those with wrong offsets are dropped.
    pub fn open_texts(&self, path: &Path, format: Option<CorpusFormat>) -> canonym_core::Result<Documents> {
        self.open_with(path, format, OnMismatch::Drop, Purpose::Texts)
    }

    /// Opens one file of a listing. Annotations are used, or ignored as in [`ReadArguments::open_texts`].
    pub fn open_file(&self, file: &InputFile, format: Option<CorpusFormat>, uses_annotations: bool) -> Documents {
        let on_mismatch = if self.skip_bad_offsets || !uses_annotations { OnMismatch::Drop } else { OnMismatch::Error };
        let purpose = if uses_annotations { Purpose::Annotations } else { Purpose::Texts };
        self.documents(Reader::open_file(file, format), file.path(), on_mismatch, purpose)
    }

    fn open_with(
        &self,
        path: &Path,
        format: Option<CorpusFormat>,
        on_mismatch: OnMismatch,
        purpose: Purpose,
    ) -> canonym_core::Result<Documents> {
        Ok(self.documents(Reader::open(path, format)?, path, on_mismatch, purpose))
    }

    fn documents(&self, reader: Reader, path: &Path, on_mismatch: OnMismatch, purpose: Purpose) -> Documents {
        let reader = reader.with_on_mismatch(on_mismatch).with_repairs(self.fix_offsets).with_tags(self.tags);
        let path = path.to_path_buf();
        Documents { reader, path, purpose, on_fault: OnFault::Stop, n_left_out: 0, n_shown: 0, is_reported: false }
    }
}

/// Which part of a corpus is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Purpose {
    Annotations,
    Texts,
}

/// What to do if a file cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OnFault {
    Stop,
    /// Skip the rest of the file and continue with the next one.
    SkipFile,
}

/// Iterates over documents; reports repairs and skipped input on standard error.
pub struct Documents {
    reader: Reader,
    path: PathBuf,
    purpose: Purpose,
    on_fault: OnFault,
    n_left_out: u64,
    n_shown: u64,
    is_reported: bool,
}

impl Iterator for Documents {
    type Item = canonym_core::Result<AnnotatedDocument>;

    fn next(&mut self) -> Option<canonym_core::Result<AnnotatedDocument>> {
        let next = loop {
            match self.reader.next() {
                Some(Err(error)) if self.on_fault == OnFault::SkipFile => {
                    errors::tell(&error.into());
                    self.n_left_out += 1;
                    self.reader.leave_file();
                }
                next => break next,
            }
        };
        for fix in self.reader.fixes() {
            if self.n_shown < MAX_SHOWN {
                progress::say(&fix.to_string());
            }
            self.n_shown += 1;
        }
        if next.is_none() && !std::mem::replace(&mut self.is_reported, true) {
            self.report_counts();
        }
        next
    }
}

impl Documents {
    /// In a folder, reports a file that cannot be read and skips the rest of it instead of failing.
    #[must_use]
    pub fn going_on(mut self) -> Documents {
        if self.path.is_dir() {
            self.on_fault = OnFault::SkipFile;
        }
        self
    }

    /// Sets the columns of CSV files.
    #[must_use]
    pub fn with_columns(mut self, columns: &ColumnArguments) -> Documents {
        let columns = CsvColumns { id: columns.id_column.clone(), text: columns.text_column.clone() };
        self.reader = self.reader.with_columns(columns);
        self
    }

    /// Refuses documents with the id of an earlier one, and leaves all errors to the caller, who may continue after them.
    #[must_use]
    pub fn strict(mut self) -> Documents {
        self.reader = self.reader.with_repeated_ids_refused(true);
        self
    }

    /// Reports a file that cannot be read and skips the rest of it instead of failing.
    #[must_use]
    pub fn skipping_files(mut self) -> Documents {
        self.on_fault = OnFault::SkipFile;
        self
    }

    /// What is skipped because of the last error.
    pub fn skipped(&self, error: &canonym_core::Error) -> Skipped {
        Skipped::new(error, self.reader.path(), self.reader.failed_id())
    }

    /// Number of files skipped or partly read so far.
    pub fn n_left_out(&self) -> u64 {
        self.n_left_out
    }

    fn report_counts(&self) {
        let counts = self.reader.counts();
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
                progress::say(&line);
            }
        }
        for (oddity, occurrences) in self.reader.oddities() {
            let what = match oddity {
                Oddity::RepeatedId => "a repeated id; each is read as a separate document",
                Oddity::NoTitle => "no title",
            };
            let place = occurrences.location.as_ref().map(|place| format!(" at {place}")).unwrap_or_default();
            let have = if occurrences.n == 1 { "has" } else { "have" };
            let n = counted(occurrences.n, "document");
            progress::say(&format!("warning: {n} in {path} {have} {what} (first: `{}`{place})", occurrences.document));
        }
    }
}
