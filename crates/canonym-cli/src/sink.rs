//! Where documents are written: standard output, a file that appears when it is complete, or a folder that does.

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

/// One document as its format writes it.
#[derive(Debug, Default)]
pub struct Encoded {
    /// The document, or its annotations where they have a file of their own.
    pub bytes: Vec<u8>,
    /// What has to stand before them, unless they come first.
    pub start: Vec<u8>,
    /// The id and the text, where they have a file of their own.
    pub beside: Option<(String, String)>,
    /// What the format cannot hold.
    pub losses: Losses,
}

impl Encoded {
    /// Writes a document into memory.
    pub fn new(document: &AnnotatedDocument, format: CorpusFormat, scheme: Scheme) -> canonym_core::Result<Encoded> {
        let mut bytes = Vec::new();
        encode_with(document, format, scheme, &mut bytes)?;
        let texts = || (document.document.id.clone(), document.document.text.clone());
        let beside = (format == CorpusFormat::Brat).then(texts);
        Ok(Encoded { start: start(document, format, &bytes), bytes, beside, losses: losses(document, format) })
    }
}

/// Refuses a name that promises an archive, and to write over a file that is read: a corpus that people annotated would
/// be gone.
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

/// Takes documents in their order.
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
    /// Opens `path`, or standard output; `folder` tells how a folder is given where the format needs one. A format is
    /// not needed where documents come with all that stands around them.
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

    /// Writes what stands before the first document, which may decide what that is.
    pub fn start(&mut self, first: Option<&AnnotatedDocument>) -> anyhow::Result<()> {
        if let Some(format) = self.format {
            self.frame = frame(format, first);
        }
        let before = std::mem::take(&mut self.frame.before);
        self.write_bytes(&before)
    }

    /// Writes one document.
    pub fn write(&mut self, document: Encoded) -> anyhow::Result<()> {
        self.losses.add(document.losses);
        if let (Out::Folder(_, writer), Some((id, text))) = (&mut self.out, &document.beside) {
            return writer.write_encoded(id, text, &document.bytes).context("cannot write the result");
        }
        if std::mem::replace(&mut self.is_first, false) {
            return self.write_bytes(&document.bytes);
        }
        self.write_bytes(self.frame.between)?;
        self.write_bytes(&document.start)?;
        self.write_bytes(&document.bytes)
    }

    /// Completes the output and tells what was lost.
    pub fn finish(mut self) -> anyhow::Result<()> {
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
        for line in self.losses.lines() {
            progress::say(&line);
        }
        if let Some((id, name)) = renamed.as_ref().and_then(|writer| writer.renamed().first()) {
            let n = renamed.as_ref().map_or(0, FolderWriter::n_renamed);
            progress::say(&format!(
                "{} written under a name other than the id (first: `{id}` as `{name}`)",
                counted(n, "document")
            ));
        }
        Ok(())
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
