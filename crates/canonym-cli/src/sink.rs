//! Document output: standard output, or a file or folder that is renamed into place when complete.

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::Context;
use canonym_core::artifact::AtomicFolder;
use canonym_core::corpus::AnnotatedDocument;
use canonym_core::corpus::conll::Scheme;
use canonym_core::corpus::folder::FolderWriter;
use canonym_core::corpus::format::{CorpusFormat, Frame, encode_with, frame, start};
use canonym_core::corpus::losses::{Losses, losses};

use crate::output::{Lines, counted};
use crate::packed::{PackedFile, check_ending, is_packed};
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
    /// Information that the format cannot hold.
    pub losses: Losses,
}

impl Encoded {
    /// Encodes a document.
    pub fn new(document: &AnnotatedDocument, format: CorpusFormat, scheme: Scheme) -> canonym_core::Result<Encoded> {
        let mut bytes = Vec::new();
        encode_with(document, format, scheme, &mut bytes)?;
        let texts = || (document.document.id.clone(), document.document.text.clone());
        let text = (format == CorpusFormat::Brat).then(texts);
        Ok(Encoded { start: start(document, format, &bytes), bytes, text, losses: losses(document, format) })
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
    format: Option<CorpusFormat>,
    frame: Frame,
    is_first: bool,
    losses: Losses,
}

enum Out {
    Stdout(Lines),
    File(PackedFile),
    Folder(AtomicFolder, FolderWriter),
}

impl Sink {
    /// Opens `path`, or standard output if `None`. `folder` says, for the error message, how to specify an output folder.
    /// Without a format, nothing is written around the documents.
    pub fn create(path: Option<&Path>, format: Option<CorpusFormat>, folder: &str) -> anyhow::Result<Sink> {
        let out = match (path, format) {
            (Some(path), Some(CorpusFormat::Brat)) => {
                if is_packed(path) {
                    let message = format!("{} is an output folder and cannot be compressed", path.display());
                    return Err(errors::usage(message, "remove the file extension, and compress the folder yourself"));
                }
                let atomic = AtomicFolder::create(path)?;
                let writer = FolderWriter::new(atomic.temporary());
                Out::Folder(atomic, writer)
            }
            (None, Some(CorpusFormat::Brat)) => {
                let message = "cannot write brat to standard output: each document has two files";
                return Err(errors::usage(message, &format!("specify {folder}")));
            }
            (Some(path), _) => Out::File(PackedFile::create(path)?),
            (None, _) => Out::Stdout(Lines::default()),
        };
        Ok(Sink { out, format, frame: Frame::default(), is_first: true, losses: Losses::default() })
    }

    /// Writes the header, which may depend on the first document.
    pub fn start(&mut self, first: Option<&AnnotatedDocument>) -> anyhow::Result<()> {
        self.start_with(self.format.map(|format| frame(format, first)).unwrap_or_default())
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
        if std::mem::replace(&mut self.is_first, false) {
            return self.write_bytes(&document.bytes);
        }
        self.write_bytes(self.frame.between)?;
        self.write_bytes(&document.start)?;
        self.write_bytes(&document.bytes)
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
        };
        out.write_all(bytes).context("cannot write the result")
    }
}
