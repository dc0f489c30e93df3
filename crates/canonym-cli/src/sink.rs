//! Document output: standard output, or a file or folder that is renamed into place when complete.

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::Context;
use canonym_core::artifact::AtomicFolder;
use canonym_core::corpus::AnnotatedDocument;
use canonym_core::corpus::conll::Scheme;
use canonym_core::corpus::folder::FolderWriter;
use canonym_core::corpus::format::{CorpusFormat, Frame, encode_with, start};
use canonym_core::corpus::losses::{Losses, losses};

use crate::output::{Lines, counted};
use crate::packed::{PackedFile, check_ending, is_packed};
use crate::result_format::ResultFormat;
use crate::{errors, progress};

/// One encoded document.
#[derive(Debug, Default)]
pub struct Encoded {
    /// The document, or its annotations if they are in a separate file.
    pub bytes: Vec<u8>,
    /// Bytes that precede it unless it is the first document.
    pub start: Vec<u8>,
    /// Id and text, if the text is in a separate file.
    pub text: Option<(String, String)>,
    /// Records that get a number before them, in place of bytes.
    pub records: Option<Records>,
    /// The document, if the output encodes it.
    pub document: Option<Box<AnnotatedDocument>>,
    /// Information that the format cannot hold.
    pub losses: Losses,
}

/// Records of a document, without their number and the comma behind it.
#[derive(Debug)]
pub enum Records {
    /// Each has the number of its document, from 0.
    OfDocument(Vec<String>),
    /// Each has a number of its own, from 1.
    Numbered(Vec<String>),
}

impl Encoded {
    /// Encodes a document.
    pub fn new(document: &AnnotatedDocument, format: CorpusFormat, scheme: Scheme) -> canonym_core::Result<Encoded> {
        let mut bytes = Vec::new();
        encode_with(document, format, scheme, &mut bytes)?;
        let texts = || (document.document.id.clone(), document.document.text.clone());
        let text = (format == CorpusFormat::Brat).then(texts);
        let losses = losses(document, format);
        Ok(Encoded { start: start(document, format, &bytes), bytes, text, losses, ..Encoded::default() })
    }
}

/// Rejects unsupported file extensions, and an output that would overwrite an input.
pub fn check_output(output: Option<&Path>, inputs: &[PathBuf]) -> anyhow::Result<()> {
    if let Some(path) = output {
        check_ending(path)?;
    }
    let real = |path: &Path| std::fs::canonicalize(path).ok();
    let Some(written) = output.and_then(real) else { return Ok(()) };
    match inputs.iter().find(|input| real(input).as_ref() == Some(&written)) {
        None => Ok(()),
        Some(input) => Err(errors::usage(
            format!("output would overwrite the input {}", input.display()),
            "choose another output name",
        )),
    }
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
}

enum Out {
    Stdout(Lines),
    File(PackedFile),
    Folder(AtomicFolder, FolderWriter),
    #[cfg(feature = "parquet")]
    Parquet(Box<canonym_core::corpus::parquet::ParquetWriter<PackedFile>>),
}

impl Sink {
    /// Opens `path`, or standard output if `None`. `folder` says, for the error message, how to specify an output folder.
    pub fn create(path: Option<&Path>, to: ResultFormat, folder: &str) -> anyhow::Result<Sink> {
        let out = match (path, to) {
            #[cfg(feature = "parquet")]
            (Some(path), ResultFormat::Parquet) if !is_packed(path) => {
                let writer = canonym_core::corpus::parquet::ParquetWriter::new(PackedFile::create(path)?, path)?;
                Out::Parquet(Box::new(writer))
            }
            (_, ResultFormat::Parquet) => {
                let message = "Parquet is written to a file and has its own compression";
                return Err(errors::usage(message, "name a file with `--output`, such as links.parquet"));
            }
            (Some(path), ResultFormat::Corpus(CorpusFormat::Brat)) => {
                if is_packed(path) {
                    let message = format!("{} is an output folder and cannot be compressed", path.display());
                    return Err(errors::usage(message, "remove the file extension, and compress the folder yourself"));
                }
                let atomic = AtomicFolder::create(path)?;
                let writer = FolderWriter::new(atomic.temporary());
                Out::Folder(atomic, writer)
            }
            (None, ResultFormat::Corpus(CorpusFormat::Brat)) => {
                let message = "cannot write brat to standard output: each document has two files";
                return Err(errors::usage(message, &format!("specify {folder}")));
            }
            (Some(path), _) => Out::File(PackedFile::create(path)?),
            (None, _) => Out::Stdout(Lines::default()),
        };
        let (frame, losses) = (Frame::default(), Losses::default());
        Ok(Sink { out, to, frame, is_first: true, losses, n_documents: 0, n_records: 0 })
    }

    /// Writes the header, which may depend on the first document.
    pub fn start(&mut self, first: Option<&AnnotatedDocument>) -> anyhow::Result<()> {
        self.start_with(self.to.frame(first))
    }

    /// Writes the header of `frame`, which is written around the documents.
    pub fn start_with(&mut self, frame: Frame) -> anyhow::Result<()> {
        self.frame = frame;
        let before = std::mem::take(&mut self.frame.before);
        self.write_bytes(&before)
    }

    /// Writes one document.
    pub fn write(&mut self, document: Encoded) -> anyhow::Result<()> {
        self.losses.add(document.losses);
        if let (Out::Folder(_, writer), Some((id, text))) = (&mut self.out, &document.text) {
            return writer.write_encoded(id, text, &document.bytes).context("cannot write the result");
        }
        self.n_documents += 1;
        #[cfg(feature = "parquet")]
        if let (Out::Parquet(writer), Some(document)) = (&mut self.out, &document.document) {
            return writer.write(document).context("cannot write the result");
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

    /// Completes the output and reports losses and renamed documents.
    pub fn finish(self) -> anyhow::Result<()> {
        let (losses, renamed) = self.complete()?;
        losses.lines().chain(renamed).for_each(|line| progress::say(&line));
        Ok(())
    }

    /// Completes the output; returns the losses, and a message about renamed documents.
    pub fn complete(mut self) -> anyhow::Result<(Losses, Option<String>)> {
        self.write_bytes(self.frame.after)?;
        let mut renamed = None;
        match self.out {
            Out::Stdout(mut out) => out.flush().context("cannot write the result")?,
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

    fn write_bytes(&mut self, bytes: &[u8]) -> anyhow::Result<()> {
        let out: &mut dyn Write = match &mut self.out {
            Out::Stdout(out) => out,
            Out::File(file) => file,
            Out::Folder(..) => return Ok(()),
            #[cfg(feature = "parquet")]
            Out::Parquet(_) => return Ok(()),
        };
        out.write_all(bytes).context("cannot write the result")
    }
}
