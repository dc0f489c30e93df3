//! Reads the documents to link in batches, from standard input, files and folders.

use std::collections::VecDeque;
use std::path::PathBuf;

use canonym_core::batch::{BatchFile, Checksum, Ended, Skipped, checksum};
use canonym_core::corpus::AnnotatedDocument;
use canonym_core::corpus::format::{CorpusFormat, Frame};
use canonym_core::records::format::ResultFormat;
use canonym_core::text::Document;

use super::LinkArguments;
use crate::errors;
use crate::reading::{ColumnArguments, Documents, ReadArguments};
use crate::system::Mentions;

/// Limits of a batch, in documents and bytes.
const BATCH: usize = 256;
const BATCH_BYTES: usize = 4 << 20;

/// Limit of skipped documents in a batch.
const BATCH_SKIPPED: usize = 4096;

/// Documents of one file or several, in order.
#[derive(Default)]
pub struct Batch {
    /// The documents.
    pub documents: Vec<AnnotatedDocument>,
    /// Number of the file of each document.
    pub files: Vec<usize>,
    /// What is written around the documents of files that start in this batch; the first one of a number counts.
    pub frames: Vec<(usize, Frame)>,
    /// Checksums of the files that start in this batch.
    pub checksums: Vec<(usize, Checksum)>,
    /// Files that end in this batch, in order.
    pub ended: Vec<Ended>,
    /// Skipped documents, with the number of their file.
    pub skipped: Vec<(usize, Skipped)>,
}

impl Batch {
    /// Whether nothing was read.
    pub fn is_empty(&self) -> bool {
        self.documents.is_empty() && self.ended.is_empty() && self.skipped.is_empty()
    }
}

/// Something to read.
enum Waiting {
    /// A file, a folder, or standard input; part of file 0.
    Path(PathBuf),
    /// A file of a run folder, with its number.
    File(usize, Box<BatchFile>),
}

/// Reads documents in batches.
pub struct Batches {
    text: Option<String>,
    waiting: VecDeque<Waiting>,
    format: Option<CorpusFormat>,
    to: ResultFormat,
    reading: ReadArguments,
    columns: ColumnArguments,
    uses_annotations: bool,
    /// Whether bad documents are skipped.
    skips: bool,
    current: Option<Current>,
    /// Number of annotations in the input.
    pub n_given: usize,
    /// Number of files skipped or partly read because of an error.
    pub n_left_out: u64,
}

struct Current {
    file: usize,
    documents: Documents,
    is_single: bool,
    has_documents: bool,
}

impl Batches {
    /// Reads what the arguments name; `to` is the output format.
    pub fn new(arguments: &LinkArguments, to: ResultFormat) -> anyhow::Result<Batches> {
        Ok(Batches {
            text: arguments.text.clone(),
            waiting: arguments.files.iter().cloned().map(Waiting::Path).collect(),
            format: input_format(arguments)?,
            to,
            reading: arguments.reading,
            columns: arguments.columns.clone(),
            uses_annotations: arguments.mentions == Mentions::Gold || arguments.changed_only.is_some(),
            skips: arguments.skip_bad_documents.is_some(),
            current: None,
            n_given: 0,
            n_left_out: 0,
        })
    }

    /// Reads `files`, with their numbers.
    pub fn of_files(
        arguments: &LinkArguments,
        to: ResultFormat,
        files: impl Iterator<Item = (usize, BatchFile)>,
    ) -> anyhow::Result<Batches> {
        let waiting = files.map(|(number, file)| Waiting::File(number, Box::new(file))).collect();
        Ok(Batches { waiting, text: None, ..Batches::new(arguments, to)? })
    }

    /// The next documents, until a limit is reached; empty at the end.
    pub fn next_batch(&mut self) -> anyhow::Result<Batch> {
        let mut batch = Batch::default();
        if let Some(text) = self.text.take() {
            let document = Document { id: "text".to_owned(), text, sections: Vec::new() };
            let document = AnnotatedDocument { document, ..AnnotatedDocument::default() };
            batch.frames.push((0, self.to.frame(Some(&document))));
            batch.files.push(0);
            batch.documents.push(document);
            return Ok(batch);
        }
        let mut n_bytes = 0;
        let is_full = |batch: &Batch, n_bytes: usize| {
            batch.documents.len() >= BATCH
                || batch.ended.len() >= BATCH
                || batch.skipped.len() >= BATCH_SKIPPED
                || n_bytes >= BATCH_BYTES
        };
        while !is_full(&batch, n_bytes) {
            let Some(current) = &mut self.current else {
                match self.waiting.pop_front() {
                    Some(waiting) => self.open(waiting, &mut batch)?,
                    None => break,
                }
                continue;
            };
            match current.documents.next() {
                Some(Ok(document)) => {
                    if !std::mem::replace(&mut current.has_documents, true) {
                        batch.frames.push((current.file, self.to.frame(Some(&document))));
                    }
                    n_bytes += document.document.text.len();
                    self.n_given += document.annotations.len();
                    batch.files.push(current.file);
                    batch.documents.push(document);
                }
                Some(Err(error)) if self.skips => {
                    batch.skipped.push((current.file, current.documents.skipped(&error)));
                }
                Some(Err(error)) => return Err(error.into()),
                None => {
                    let n_left_out = current.documents.n_left_out();
                    self.n_left_out += n_left_out;
                    if current.is_single {
                        let (file, n_before) = (current.file, batch.documents.len());
                        batch.ended.push(Ended { file, n_before, is_whole: n_left_out == 0 });
                    }
                    self.current = None;
                }
            }
        }
        Ok(batch)
    }

    fn open(&mut self, waiting: Waiting, batch: &mut Batch) -> anyhow::Result<()> {
        let uses_annotations = self.uses_annotations;
        let (file, documents, is_single) = match waiting {
            Waiting::Path(path) => {
                let documents = match uses_annotations {
                    false => self.reading.open_texts(&path, self.format)?,
                    true => self.reading.open(&path, self.format)?,
                };
                (0, if self.skips { documents.strict() } else { documents.going_on() }, false)
            }
            Waiting::File(number, file) => {
                match checksum(&file.input.parts()) {
                    Ok(checksum) => batch.checksums.push((number, checksum)),
                    Err(error) => {
                        self.leave_out(number, &file, error, batch);
                        return Ok(());
                    }
                }
                let documents = self.reading.open_file(&file.input, self.format, uses_annotations);
                (number, if self.skips { documents.strict() } else { documents.skipping_files() }, true)
            }
        };
        let documents = documents.with_columns(&self.columns);
        self.current = Some(Current { file, documents, is_single, has_documents: false });
        Ok(())
    }

    /// A file that cannot be opened.
    fn leave_out(&mut self, number: usize, file: &BatchFile, error: canonym_core::Error, batch: &mut Batch) {
        if self.skips {
            batch.skipped.push((number, Skipped::new(&error, file.input.path(), None)));
        } else {
            errors::tell(&error.into());
            self.n_left_out += 1;
        }
        batch.ended.push(Ended { file: number, n_before: batch.documents.len(), is_whole: false });
    }
}

/// The format of the input; `None` if it is to be detected.
pub fn input_format(arguments: &LinkArguments) -> anyhow::Result<Option<CorpusFormat>> {
    match arguments.format.as_str() {
        "auto" => Ok(None),
        name => name.parse::<CorpusFormat>().map(Some).map_err(errors::wrong_usage),
    }
}
