//! Where linked documents go: one output for all, or a run folder with one for each input file.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use super::{BatchFile, Checksum, FinishedFile, RunFolder, Skipped};
use crate::artifact::{AtomicFile, PackedFile};
use crate::corpus::format::Frame;
use crate::corpus::losses::Losses;
use crate::error::Context;
use crate::numbers::counted;
use crate::records::encode::Encoded;
use crate::records::format::ResultFormat;
use crate::records::sink::{Sink, Target};
use crate::{Error, Result};

/// The end of an input file.
#[derive(Debug, Clone, Copy)]
pub struct Ended {
    /// Number of the file.
    pub file: usize,
    /// Number of documents in the batch before its end.
    pub n_before: usize,
    /// Whether it was read to its end.
    pub is_whole: bool,
}

/// The outputs of linking.
pub enum Outputs {
    /// All documents in one output.
    Single {
        /// The output.
        sink: Box<Sink>,
        /// Whether its header is written.
        is_started: bool,
        /// The first input, for messages.
        input: PathBuf,
    },
    /// A run folder.
    Run(Box<RunOutputs>),
}

impl Outputs {
    /// Remembers what is written around the documents of a file; the first call for a file counts.
    ///
    /// # Errors
    /// If the header cannot be written.
    pub fn start(&mut self, file: usize, frame: Frame) -> Result<()> {
        match self {
            Outputs::Single { is_started: true, .. } => Ok(()),
            Outputs::Single { sink, is_started, .. } => {
                *is_started = true;
                sink.start_with(frame)
            }
            Outputs::Run(run) => {
                run.frames.entry(file).or_insert(frame);
                Ok(())
            }
        }
    }

    /// Writes a document with `n_mentions` mentions.
    ///
    /// # Errors
    /// If the output cannot be created or written.
    pub fn write(&mut self, file: usize, document: Encoded, n_mentions: u64) -> Result<()> {
        match self {
            Outputs::Single { sink, .. } => sink.write(document),
            Outputs::Run(run) => run.write(file, document, n_mentions),
        }
    }

    /// Notes the checksum of an input file.
    pub fn set_checksum(&mut self, file: usize, checksum: Checksum) {
        if let Outputs::Run(run) = self {
            run.checksums.insert(file, checksum);
        }
    }

    /// Lists a skipped document.
    ///
    /// # Errors
    /// If the list cannot be written.
    pub fn skip(&mut self, file: usize, skipped: Skipped, list: &mut Option<SkipList>) -> Result<()> {
        match (self, list) {
            (Outputs::Run(run), _) => run.skipped.entry(file).or_default().push(skipped),
            (Outputs::Single { .. }, Some(list)) => list.add(&skipped)?,
            (Outputs::Single { .. }, None) => {}
        }
        Ok(())
    }

    /// The path of an input file, for messages.
    pub fn input_path(&self, file: usize) -> &Path {
        match self {
            Outputs::Run(run) => run.files[&file].input.path(),
            Outputs::Single { input, .. } => input,
        }
    }

    /// Completes the output of a file.
    ///
    /// # Errors
    /// If the output or the journal cannot be written.
    pub fn end(&mut self, ended: &Ended) -> Result<()> {
        match self {
            Outputs::Run(run) => run.end(ended),
            Outputs::Single { .. } => Ok(()),
        }
    }

    /// Completes all outputs; returns messages about them.
    ///
    /// # Errors
    /// If the output cannot be written, or renamed into place.
    pub fn finish(self) -> Result<Vec<String>> {
        match self {
            Outputs::Single { mut sink, is_started, .. } => {
                if !is_started {
                    sink.start(None)?;
                }
                sink.finish()
            }
            Outputs::Run(run) => {
                let (n_files, n_documents) = (counted(run.n_files, "file"), counted(run.n_documents, "document"));
                let summary = format!("linked {n_files} with {n_documents} into {}", run.path.display());
                Ok(run.losses.lines().chain([summary]).collect())
            }
        }
    }
}

/// The outputs of a run folder. Files are written one after the other.
pub struct RunOutputs {
    path: PathBuf,
    folder: RunFolder,
    files: BTreeMap<usize, BatchFile>,
    to: ResultFormat,
    current: Option<Current>,
    frames: BTreeMap<usize, Frame>,
    checksums: BTreeMap<usize, Checksum>,
    skipped: BTreeMap<usize, Vec<Skipped>>,
    /// What was skipped in files that could not be opened.
    unread: BTreeMap<usize, Vec<Skipped>>,
    losses: Losses,
    n_files: u64,
    n_documents: u64,
}

struct Current {
    file: usize,
    sink: Sink,
    n_documents: u64,
    n_mentions: u64,
}

impl RunOutputs {
    /// The outputs of `files` in `folder`.
    pub fn new(path: &Path, folder: RunFolder, files: BTreeMap<usize, BatchFile>, to: ResultFormat) -> RunOutputs {
        RunOutputs {
            path: path.to_path_buf(),
            folder,
            files,
            to,
            current: None,
            frames: BTreeMap::new(),
            checksums: BTreeMap::new(),
            skipped: BTreeMap::new(),
            unread: BTreeMap::new(),
            losses: Losses::default(),
            n_files: 0,
            n_documents: 0,
        }
    }

    fn open(&mut self, file: usize) -> Result<&mut Current> {
        if self.current.as_ref().is_none_or(|current| current.file != file) {
            let path = self.folder.output_path(&self.files[&file].output)?;
            let mut sink = Sink::create(Target::Path(&path), self.to)?;
            sink.start_with(self.frames.remove(&file).unwrap_or_else(|| self.to.frame(None)))?;
            self.current = Some(Current { file, sink, n_documents: 0, n_mentions: 0 });
        }
        Ok(self.current.as_mut().expect("it was opened above"))
    }

    fn write(&mut self, file: usize, document: Encoded, n_mentions: u64) -> Result<()> {
        let current = self.open(file)?;
        current.n_documents += 1;
        current.n_mentions += n_mentions;
        current.sink.write(document)
    }

    /// Completes the output of a file and enters it in the journal, or discards it if the file was not read to its end.
    fn end(&mut self, ended: &Ended) -> Result<()> {
        let file = ended.file;
        let skipped = self.skipped.remove(&file).unwrap_or_default();
        let checksum = self.checksums.remove(&file);
        let Some(input_checksum) = checksum.filter(|_| ended.is_whole) else {
            self.current = None;
            self.frames.remove(&file);
            self.unread.insert(file, skipped);
            return Ok(());
        };
        self.open(file)?;
        let Some(current) = self.current.take() else { return Ok(()) };
        let (losses, _) = current.sink.complete()?;
        self.losses.add(losses);
        let BatchFile { input, output } = &self.files[&file];
        let beside = self.folder.output_path(&skipped_name(output))?;
        if skipped.is_empty() {
            fs::remove_file(&beside).ok();
        } else {
            let mut list = AtomicFile::create(&beside)?;
            for one in &skipped {
                writeln!(list, "{}", one.to_line()).with_context(|| format!("cannot write {}", beside.display()))?;
            }
            list.commit()?;
        }
        let record = FinishedFile {
            output: output.clone(),
            input: input.path().display().to_string(),
            input_checksum,
            documents: current.n_documents,
            mentions: current.n_mentions,
            skipped: skipped.len() as u64,
            ..FinishedFile::default()
        };
        self.folder.finish(record)?;
        self.n_files += 1;
        self.n_documents += current.n_documents;
        Ok(())
    }

    /// Copies what was skipped in `outputs`, in this and in earlier runs, into one list. Returns the number of documents
    /// that were written.
    ///
    /// # Errors
    /// If a list of this run cannot be read, or `list` not written.
    pub fn collect_skipped(&self, outputs: &[String], list: &mut SkipList) -> Result<u64> {
        let mut n_written = 0;
        for (number, output) in outputs.iter().enumerate() {
            self.unread.get(&number).into_iter().flatten().try_for_each(|skipped| list.add(skipped))?;
            let Some(record) = self.folder.finished(output) else { continue };
            n_written += record.documents;
            if record.skipped > 0 {
                let path = self.folder.output_path(&skipped_name(output))?;
                let lines = fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
                list.add_lines(&lines, record.skipped)?;
            }
        }
        Ok(n_written)
    }
}

/// Name of the list of skipped documents of an output.
fn skipped_name(output: &str) -> String {
    format!("{output}.skipped")
}

/// A list of skipped documents as JSON Lines. It appears when it is complete.
pub struct SkipList {
    file: PackedFile,
    path: PathBuf,
    n: u64,
}

impl SkipList {
    /// A list that will appear at `path`.
    ///
    /// # Errors
    /// If the file cannot be created.
    pub fn create(path: &Path) -> Result<SkipList> {
        Ok(SkipList { file: PackedFile::create(path)?, path: path.to_path_buf(), n: 0 })
    }

    /// Adds a skipped document.
    ///
    /// # Errors
    /// If the list cannot be written.
    pub fn add(&mut self, skipped: &Skipped) -> Result<()> {
        self.n += 1;
        writeln!(self.file, "{}", skipped.to_line()).with_context(|| format!("cannot write {}", self.path.display()))
    }

    /// Adds `n` lines of another list.
    fn add_lines(&mut self, lines: &[u8], n: u64) -> Result<()> {
        self.n += n;
        self.file.write_all(lines).with_context(|| format!("cannot write {}", self.path.display()))
    }

    /// Completes the list; returns a message about it if documents were skipped.
    ///
    /// # Errors
    /// If the list cannot be written, or documents were skipped and none were linked.
    pub fn finish(self, n_linked: u64) -> Result<Option<String>> {
        self.file.commit()?;
        if self.n == 0 {
            return Ok(None);
        }
        let path = self.path.display();
        let what = counted(self.n, "bad document");
        if n_linked == 0 {
            let message = format!("no document could be linked: {what} skipped");
            return Err(Error::no_data(message).with_hint(format!("see {path} for the reasons")));
        }
        Ok(Some(format!("skipped {what}, listed in {path}")))
    }
}
