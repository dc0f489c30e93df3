//! Reads documents in batches, from standard input, files and folders.

use std::collections::VecDeque;
use std::path::PathBuf;

use super::{BatchFile, Checksum, Ended, Skipped, checksum};
use crate::corpus::AnnotatedDocument;
use crate::corpus::documents::{Documents, Notice, ReadConfig};
use crate::corpus::format::{CorpusFormat, Frame};
use crate::records::format::ResultFormat;
use crate::text::Document;
use crate::{Error, Result};

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

/// How documents are read in batches.
#[derive(Debug, Clone)]
pub struct BatchConfig {
    /// Format of the input; `None` to detect it.
    pub format: Option<CorpusFormat>,
    /// Format of the output.
    pub to: ResultFormat,
    /// How documents are read.
    pub reading: ReadConfig,
    /// Whether documents and files that cannot be read are skipped and listed. Otherwise an error of a document ends the
    /// run, or in a folder skips the rest of its file.
    pub skips: bool,
}

/// Reads documents in batches.
pub struct Batches {
    text: Option<String>,
    waiting: VecDeque<Waiting>,
    config: BatchConfig,
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
    fn new(waiting: VecDeque<Waiting>, config: BatchConfig) -> Batches {
        Batches { text: None, waiting, config, current: None, n_given: 0, n_left_out: 0 }
    }

    /// Reads one text.
    pub fn of_text(text: &str, config: BatchConfig) -> Batches {
        Batches { text: Some(text.to_owned()), ..Batches::new(VecDeque::new(), config) }
    }

    /// Reads files, folders and standard input (`-`) as one file with the number 0.
    pub fn of_paths(paths: &[PathBuf], config: BatchConfig) -> Batches {
        Batches::new(paths.iter().cloned().map(Waiting::Path).collect(), config)
    }

    /// Reads files of a run folder, with their numbers.
    pub fn of_files(files: impl Iterator<Item = (usize, BatchFile)>, config: BatchConfig) -> Batches {
        Batches::new(files.map(|(number, file)| Waiting::File(number, Box::new(file))).collect(), config)
    }

    /// The next documents, until a limit is reached; empty at the end.
    ///
    /// # Errors
    /// If a path cannot be opened, a document cannot be read and is not skipped, or a compressed stream that could not be
    /// verified before its documents is damaged.
    pub fn next_batch(&mut self) -> Result<Batch> {
        let mut batch = Batch::default();
        if let Some(text) = self.text.take() {
            let document = Document { id: "text".to_owned(), text, sections: Vec::new() };
            let document = AnnotatedDocument { document, ..AnnotatedDocument::default() };
            batch.frames.push((0, self.config.to.frame(Some(&document))));
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
                        batch.frames.push((current.file, self.config.to.frame(Some(&document))));
                    }
                    n_bytes += document.document.text.len();
                    self.n_given += document.annotations.len();
                    batch.files.push(current.file);
                    batch.documents.push(document);
                }
                Some(Err(error)) if self.config.skips && !current.documents.is_spoiled() => {
                    let (path, id) = current.documents.failed();
                    batch.skipped.push((current.file, Skipped::new(&error, path, id)));
                }
                Some(Err(error)) => return Err(error),
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

    fn open(&mut self, waiting: Waiting, batch: &mut Batch) -> Result<()> {
        let BatchConfig { format, reading, skips, .. } = &self.config;
        let (file, documents, is_single) = match waiting {
            Waiting::Path(path) => {
                let documents = reading.open(&path, *format)?;
                (0, if *skips { documents.strict() } else { documents.going_on() }, false)
            }
            Waiting::File(number, file) => {
                match checksum(&file.input.parts()) {
                    Ok(checksum) => batch.checksums.push((number, checksum)),
                    Err(error) => {
                        self.leave_out(number, &file, error, batch);
                        return Ok(());
                    }
                }
                let documents = reading.open_file(&file.input, *format);
                (number, if *skips { documents.strict() } else { documents.skipping_files() }, true)
            }
        };
        self.current = Some(Current { file, documents, is_single, has_documents: false });
        Ok(())
    }

    /// A file that cannot be opened.
    fn leave_out(&mut self, number: usize, file: &BatchFile, error: Error, batch: &mut Batch) {
        if self.config.skips {
            batch.skipped.push((number, Skipped::new(&error, file.input.path(), None)));
        } else {
            (self.config.reading.on_notice)(Notice::Skipped(error));
            self.n_left_out += 1;
        }
        batch.ended.push(Ended { file: number, n_before: batch.documents.len(), is_whole: false });
    }
}
