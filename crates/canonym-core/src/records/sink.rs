//! Writes documents to a stream, or to a file or folder that is renamed into place when complete.

use std::io::Write;
use std::path::{Path, PathBuf};

use super::encode::{Encoded, Records};
use super::format::ResultFormat;
use crate::artifact::{AtomicFolder, PackedFile, check_ending, is_packed};
use crate::corpus::AnnotatedDocument;
use crate::corpus::folder::FolderWriter;
use crate::corpus::format::{CorpusFormat, Frame};
use crate::corpus::losses::Losses;
#[cfg(feature = "parquet")]
use crate::corpus::parquet::ParquetWriter;
use crate::error::Context;
use crate::numbers::counted;
use crate::{Error, Result};

/// Rejects unsupported file extensions, and an output that would overwrite an input.
///
/// # Errors
/// [`Error::Usage`] with the extension or the input.
pub fn check_output(output: Option<&Path>, inputs: &[PathBuf]) -> Result<()> {
    if let Some(path) = output {
        check_ending(path)?;
    }
    let real = |path: &Path| std::fs::canonicalize(path).ok();
    let Some(written) = output.and_then(real) else { return Ok(()) };
    match inputs.iter().find(|input| real(input).as_ref() == Some(&written)) {
        None => Ok(()),
        Some(input) => Err(Error::usage(
            format!("output would overwrite the input {}", input.display()),
            "choose another output name",
        )),
    }
}

/// Where documents are written.
pub enum Target<'a> {
    /// A new file, compressed if its name ends in `.gz` or `.zst`, or a new folder.
    Path(&'a Path),
    /// A stream such as standard output.
    Stream {
        /// The stream.
        out: Box<dyn Write + Send>,
        /// How to specify a folder instead, for the error about formats that need one.
        folder: &'a str,
    },
}

/// Writes documents in order.
pub struct Sink {
    out: Out,
    to: ResultFormat,
    frame: Frame,
    is_first: bool,
    losses: Losses,
    /// Number of documents and of numbered records so far.
    n_documents: u64,
    n_records: u64,
    /// Message of an error while writing.
    failure: String,
}

enum Out {
    Stream(Box<dyn Write + Send>),
    File(PackedFile),
    Folder(AtomicFolder, FolderWriter),
    #[cfg(feature = "parquet")]
    Parquet(Box<ParquetWriter<PackedFile>>),
}

impl Sink {
    /// Writes to `target` in the format `to`.
    ///
    /// # Errors
    /// If the file or folder cannot be created; [`Error::Usage`] if the format needs another target.
    pub fn create(target: Target<'_>, to: ResultFormat) -> Result<Sink> {
        let failure = match &target {
            Target::Path(path) => format!("cannot write {}", path.display()),
            Target::Stream { .. } => "cannot write the result".to_owned(),
        };
        let out = match (target, to) {
            #[cfg(feature = "parquet")]
            (Target::Path(path), ResultFormat::Parquet) if !is_packed(path) => {
                let writer = ParquetWriter::new(PackedFile::create(path)?, path)?;
                Out::Parquet(Box::new(writer))
            }
            (_, ResultFormat::Parquet) => {
                let message = "Parquet is written to a file and has its own compression";
                return Err(Error::usage(message, "name a file with `--output`, such as links.parquet"));
            }
            (Target::Path(path), ResultFormat::Corpus(CorpusFormat::Brat)) => {
                if is_packed(path) {
                    let message = format!("{} is an output folder and cannot be compressed", path.display());
                    return Err(Error::usage(message, "remove the file extension, and compress the folder yourself"));
                }
                let atomic = AtomicFolder::create(path)?;
                let writer = FolderWriter::new(atomic.temporary());
                Out::Folder(atomic, writer)
            }
            (Target::Stream { folder, .. }, ResultFormat::Corpus(CorpusFormat::Brat)) => {
                let message = "cannot write brat to standard output: each document has two files";
                return Err(Error::usage(message, format!("specify {folder}")));
            }
            (Target::Path(path), _) => Out::File(PackedFile::create(path)?),
            (Target::Stream { out, .. }, _) => Out::Stream(out),
        };
        let (frame, losses) = (Frame::default(), Losses::default());
        Ok(Sink { out, to, frame, is_first: true, losses, n_documents: 0, n_records: 0, failure })
    }

    /// Writes the header, which may depend on the first document.
    ///
    /// # Errors
    /// If the output cannot be written.
    pub fn start(&mut self, first: Option<&AnnotatedDocument>) -> Result<()> {
        self.start_with(self.to.frame(first))
    }

    /// Writes the header of `frame`, which is written around the documents.
    ///
    /// # Errors
    /// If the output cannot be written.
    pub fn start_with(&mut self, frame: Frame) -> Result<()> {
        self.frame = frame;
        let before = std::mem::take(&mut self.frame.before);
        self.write_bytes(&before)
    }

    /// Writes one document.
    ///
    /// # Errors
    /// If the output cannot be written.
    pub fn write(&mut self, document: Encoded) -> Result<()> {
        self.losses.add(document.losses);
        if let (Out::Folder(_, writer), Some((id, text))) = (&mut self.out, &document.text) {
            return writer.write_encoded(id, text, &document.bytes).context(self.failure.clone());
        }
        self.n_documents += 1;
        #[cfg(feature = "parquet")]
        if let (Out::Parquet(writer), Some(document)) = (&mut self.out, &document.document) {
            return writer.write(document).context(self.failure.clone());
        }
        if let Some(records) = &document.records {
            let lines = self.numbered(records);
            return self.write_bytes(lines.as_bytes());
        }
        if std::mem::replace(&mut self.is_first, false) {
            return self.write_bytes(&document.bytes);
        }
        self.write_bytes(self.frame.between)?;
        self.write_bytes(&document.start)?;
        self.write_bytes(&document.bytes)
    }

    /// Records as lines with their numbers.
    fn numbered(&mut self, records: &Records) -> String {
        let (Records::OfDocument(all) | Records::Numbered(all)) = records;
        let mut lines = String::new();
        for record in all {
            let number = match records {
                Records::OfDocument(_) => self.n_documents - 1,
                Records::Numbered(_) => {
                    self.n_records += 1;
                    self.n_records
                }
            };
            lines.push_str(&format!("{number},{record}\n"));
        }
        lines
    }

    /// Completes the output; returns messages about losses and renamed documents.
    ///
    /// # Errors
    /// If the output cannot be written, or renamed into place.
    pub fn finish(self) -> Result<Vec<String>> {
        let (losses, renamed) = self.complete()?;
        Ok(losses.lines().chain(renamed).collect())
    }

    /// Completes the output; returns the losses, and a message about renamed documents.
    ///
    /// # Errors
    /// Those of [`Sink::finish`].
    pub fn complete(mut self) -> Result<(Losses, Option<String>)> {
        self.write_bytes(self.frame.after)?;
        let mut renamed = None;
        match self.out {
            Out::Stream(mut out) => out.flush().context(self.failure)?,
            Out::File(file) => file.commit()?,
            #[cfg(feature = "parquet")]
            Out::Parquet(writer) => writer.finish()?.commit()?,
            Out::Folder(folder, writer) => {
                folder.commit()?;
                renamed = Some(writer);
            }
        }
        let message = renamed.and_then(|writer| {
            let (id, name) = writer.renamed().first()?;
            let n = counted(writer.n_renamed(), "document");
            Some(format!("{n} written under a name other than the id (first: `{id}` as `{name}`)"))
        });
        Ok((self.losses, message))
    }

    fn write_bytes(&mut self, bytes: &[u8]) -> Result<()> {
        let out: &mut dyn Write = match &mut self.out {
            Out::Stream(out) => out.as_mut(),
            Out::File(file) => file,
            Out::Folder(..) => return Ok(()),
            #[cfg(feature = "parquet")]
            Out::Parquet(_) => return Ok(()),
        };
        out.write_all(bytes).with_context(|| self.failure.clone())
    }
}
