//! Format detection, and a reader and a writer for all formats.
//!
//! A [`Reader`] streams the documents of a file, standard input, an archive or a folder, and holds one document at a
//! time. After a malformed record it continues with the next one, so that callers can count errors or stop at the
//! first. What a format can represent is described in its module.
//!
//! ```
//! use std::path::Path;
//! use canonym_core::corpus::{CorpusFormat, Reader};
//! use canonym_core::input::Input;
//!
//! let input = Input::from_bytes("wards.jsonl", br#"{"id":"7","text":"No pain."}"#.to_vec())?;
//! let documents: Vec<_> = Reader::from_input(input, None)?.collect::<canonym_core::Result<_>>()?;
//! assert_eq!(documents[0].document.text, "No pain.");
//! assert_eq!("pubtator".parse::<CorpusFormat>()?, CorpusFormat::Pubtator);
//! # Ok::<(), canonym_core::Error>(())
//! ```

use std::collections::{BTreeMap, VecDeque};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use crate::corpus::check::{Checker, quote};
use crate::corpus::conll::{Scheme, Tags};
use crate::corpus::csv::CsvColumns;
use crate::corpus::files::{self, InputFile, Listing, Pending};
use crate::corpus::repair::Fix;
use crate::corpus::{
    AnnotatedDocument, Anomaly, Occurrences, OnMismatch, ReadCounts, bioc_json, bioc_xml, biosyn, brat, conll, csv,
    jats, jsonl, plain, pubmed, pubtator, texoo,
};
use crate::input::{Input, Source, Tail};
use crate::{Error, Result};

pub use crate::corpus::detect::detect;
pub use crate::corpus::kinds::CorpusFormat;

/// Reads the documents of a file, standard input or a folder.
pub struct Reader {
    /// Items to open, next first.
    waiting: VecDeque<Pending>,
    format: Option<CorpusFormat>,
    checker: Checker,
    current: Option<Records>,
    /// The unread parts of the current files that may be damaged.
    tails: Vec<Tail>,
    /// Whether compressed files are read to their end before their documents.
    verifies: bool,
    /// Whether the last error is that compressed data is damaged from which documents were read.
    is_spoiled: bool,
    /// The file of the last document or error.
    path: PathBuf,
    /// Columns of CSV files.
    columns: CsvColumns,
}

/// An open input with the state of its format.
enum Records {
    Text(Input),
    Jsonl(Input),
    Pubtator(pubtator::Blocks),
    BiocXml(bioc_xml::Documents),
    BiocJson(bioc_json::Documents),
    Brat(brat::Documents),
    Conll(conll::Documents),
    PubmedXml(pubmed::Documents),
    Texoo(texoo::Documents),
    Biosyn(biosyn::Documents),
    Jats(jats::Documents),
    Csv(csv::Documents),
}

impl Reader {
    /// Opens a file, a folder, or standard input if the path is `-`.
    ///
    /// The files of a folder and its subfolders are read in path order; hidden files and links to folders are skipped.
    /// Without a format, each file is detected. In a folder with an `.ann` file, the `.txt` files are brat documents.
    pub fn open(path: &Path, format: Option<CorpusFormat>) -> Result<Reader> {
        if path == Path::new("-") {
            if format == Some(CorpusFormat::Brat) {
                return Err(Error::unsupported("cannot read brat from standard input: each document has two files")
                    .with_hint("specify the folder, or a `.txt` file next to its `.ann` file"));
            }
            return Reader::from_input(Input::open(path)?, format);
        }
        let Listing { waiting, n_other } = files::list(path, format)?;
        let mut checker = Checker::default();
        checker.counts.n_other_files = n_other;
        Ok(Reader { checker, ..Reader::of(waiting, format, path) })
    }

    fn of(waiting: VecDeque<Pending>, format: Option<CorpusFormat>, path: &Path) -> Reader {
        Reader {
            waiting,
            format,
            checker: Checker::default(),
            current: None,
            tails: Vec::new(),
            verifies: false,
            is_spoiled: false,
            path: path.to_path_buf(),
            columns: CsvColumns::default(),
        }
    }

    /// Opens one file of a listing.
    pub fn open_file(file: &InputFile, format: Option<CorpusFormat>) -> Reader {
        Reader::of(VecDeque::from([file.pending.clone()]), format, file.path())
    }

    /// Reads from an open input, detecting the format if none is given.
    pub fn from_input(input: Input, format: Option<CorpusFormat>) -> Result<Reader> {
        let mut reader = Reader::of(VecDeque::new(), format, input.path());
        reader.open_input(input)?;
        Ok(reader)
    }

    /// Reads a source. The members of an archive are read one by one; brat files that belong together form one
    /// document.
    ///
    /// Fails if the source cannot be opened or the archive cannot be listed; an unreadable member is an error when its
    /// turn comes.
    pub fn from_source(source: &Source, format: Option<CorpusFormat>) -> Result<Reader> {
        let Listing { mut waiting, n_other } = files::open(source, format)?;
        if let [Pending::Source(single)] = waiting.make_contiguous()
            && single.path() == source.path()
        {
            return Reader::from_input(single.open()?, format);
        }
        let mut checker = Checker::default();
        checker.counts.n_other_files = n_other;
        Ok(Reader { checker, ..Reader::of(waiting, format, source.path()) })
    }

    /// Sets whether a document with the id of an earlier one is an error. Otherwise it is read and counted.
    #[must_use]
    pub fn with_repeated_ids_refused(mut self, refuses: bool) -> Reader {
        self.checker.refuses_repeated_ids = refuses;
        self
    }

    /// Sets whether compressed files are read to their end before their documents, so that no document comes from a
    /// damaged file. Standard input and pipes cannot be read twice: [`Reader::is_spoiled`].
    #[must_use]
    pub fn with_verification(mut self, verifies: bool) -> Reader {
        self.verifies = verifies;
        self
    }

    /// Sets what happens to annotations whose text differs from the text at their span.
    #[must_use]
    pub fn with_on_mismatch(mut self, on_mismatch: OnMismatch) -> Reader {
        self.checker.on_mismatch = on_mismatch;
        self
    }

    /// Sets whether to repair unambiguous wrong offsets.
    #[must_use]
    pub fn with_repairs(mut self, repairs: bool) -> Reader {
        self.checker.repairs = repairs;
        self
    }

    /// Sets which columns of CSV files are read.
    #[must_use]
    pub fn with_columns(mut self, columns: CsvColumns) -> Reader {
        if let Some(Records::Csv(documents)) = &mut self.current {
            documents.set_columns(columns.clone());
        }
        self.columns = columns;
        self
    }

    /// Sets how token tags are read.
    #[must_use]
    pub fn with_tags(mut self, tags: Tags) -> Reader {
        self.checker.tags = tags;
        self
    }

    /// The file of the last document or error: a path, `-`, or `archive.zip/member`.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Id of the document that the last error is about, if it could be read.
    pub fn failed_id(&self) -> Option<&str> {
        self.checker.failed_id.as_deref()
    }

    /// Whether the last error is that compressed data is damaged from which documents may have been read.
    pub fn is_spoiled(&self) -> bool {
        self.is_spoiled
    }

    /// Skips the rest of the current file.
    pub fn leave_file(&mut self) {
        self.current = None;
        self.tails.clear();
    }

    /// The cause of an error after which the current file is left: damage of compressed data if there is any, for which
    /// the file is read to its end.
    pub fn cause_of(&mut self, error: Error) -> Error {
        self.current = None;
        self.tails.drain(..).fold(error, |error, mut tail| tail.cause_of(error))
    }

    /// Counters so far.
    pub fn counts(&self) -> ReadCounts {
        self.checker.counts
    }

    /// Accepted anomalies so far.
    pub fn anomalies(&self) -> &BTreeMap<Anomaly, Occurrences> {
        &self.checker.anomalies
    }

    /// Repairs in the last document.
    pub fn fixes(&self) -> &[Fix] {
        &self.checker.fixes
    }

    /// Errors of the annotations dropped from the last document ([`OnMismatch::Drop`]), at most a thousand.
    pub fn dropped(&self) -> &[Error] {
        &self.checker.dropped
    }

    /// Opens the next item.
    fn advance(&mut self, waiting: Pending) -> Result<()> {
        self.checker.start_file();
        match &waiting {
            Pending::Source(source) | Pending::Brat(source, _) => source.path().clone_into(&mut self.path),
            Pending::File(path) | Pending::Unpaired(path) => path.clone_into(&mut self.path),
        }
        if self.verifies {
            match &waiting {
                Pending::Source(source) => source.verify()?,
                Pending::Brat(text, annotations) => {
                    std::iter::once(text).chain(annotations).try_for_each(Source::verify)?
                }
                Pending::File(_) | Pending::Unpaired(_) => {}
            }
        }
        match waiting {
            Pending::Source(source) => self.open_input(source.open()?)?,
            Pending::Brat(text, annotations) => {
                let (text, annotations) = (text.open()?, annotations.map(|source| source.open()).transpose()?);
                self.tails = std::iter::once(&text).chain(&annotations).map(Input::tail).collect();
                self.current = Some(Records::Brat(brat::Documents::new(text, annotations)));
            }
            Pending::Unpaired(path) => return Err(files::unpaired(&path)),
            Pending::File(path) => {
                let Listing { waiting, n_other } = files::open(&Source::from_path(&path), self.format)?;
                self.checker.counts.n_other_files += n_other;
                for waiting in waiting.into_iter().rev() {
                    self.waiting.push_front(waiting);
                }
            }
        }
        Ok(())
    }

    fn open_input(&mut self, input: Input) -> Result<()> {
        let mut tail = input.tail();
        let records = Records::new(input, self.format, &self.columns).map_err(|error| tail.cause_of(error))?;
        (self.current, self.tails) = (Some(records), vec![tail]);
        Ok(())
    }

    /// The current file is at its end, or cannot be read on because of `error`. Reads what is left of compressed data.
    fn finish_file(&mut self, error: Option<Error>) -> Option<Error> {
        self.current = None;
        let line = error.as_ref().and_then(Error::line).unwrap_or(1);
        let damage = self.tails.drain(..).find_map(|mut tail| tail.check(line).err());
        self.is_spoiled = damage.is_some();
        damage.or(error)
    }
}

impl Iterator for Reader {
    type Item = Result<AnnotatedDocument>;

    fn next(&mut self) -> Option<Result<AnnotatedDocument>> {
        self.checker.failed_id = None;
        self.is_spoiled = false;
        loop {
            let Some(records) = &mut self.current else {
                let waiting = self.waiting.pop_front()?;
                if let Err(error) = self.advance(waiting) {
                    return Some(Err(error));
                }
                continue;
            };
            let n_passed = records.n_passed();
            self.checker.fixes.clear();
            self.checker.dropped.clear();
            let mut item = records.next(&mut self.checker);
            let goes_on = match &mut item {
                Some(Ok(read)) => {
                    self.checker.respell(read);
                    let is_single = matches!(records, Records::Text(_) | Records::Brat(_));
                    if self.checker.register_id(&read.document.id, || records.location()) {
                        let error = repeated_id(&self.path, records.line(), &read.document.id);
                        self.checker.failed_id = Some(std::mem::take(&mut read.document.id));
                        item = Some(Err(error));
                    } else {
                        self.checker.counts.n_documents += 1;
                        self.checker.counts.n_annotations += read.annotations.len() as u64;
                    }
                    !is_single
                }
                // Without progress the same error would repeat; after an exceeded limit the file is abandoned.
                Some(Err(Error::Parse { .. })) => records.n_passed() > n_passed,
                Some(Err(_)) | None => false,
            };
            if goes_on {
                return item;
            }
            match item {
                Some(Err(error @ Error::Parse { .. })) => return self.finish_file(Some(error)).map(Err),
                None => {
                    if let Some(damage) = self.finish_file(None) {
                        return Some(Err(damage));
                    }
                }
                item => {
                    self.leave_file();
                    return item;
                }
            }
        }
    }
}

impl Records {
    fn new(input: Input, format: Option<CorpusFormat>, columns: &CsvColumns) -> Result<Records> {
        let format = match format {
            Some(format) => format,
            None => detect(input.path(), input.head())?,
        };
        Ok(match format {
            CorpusFormat::Text => Records::Text(input),
            CorpusFormat::Jsonl => Records::Jsonl(input),
            CorpusFormat::Pubtator => Records::Pubtator(pubtator::Blocks::new(input)),
            CorpusFormat::BiocXml => Records::BiocXml(bioc_xml::Documents::new(input)?),
            CorpusFormat::BiocJson => Records::BiocJson(bioc_json::Documents::new(input)?),
            CorpusFormat::Brat => Records::Brat(brat::Documents::new(input, None)),
            CorpusFormat::Conll => Records::Conll(conll::Documents::new(input)),
            CorpusFormat::PubmedXml => Records::PubmedXml(pubmed::Documents::new(input)?),
            CorpusFormat::Texoo => Records::Texoo(texoo::Documents::new(input)?),
            CorpusFormat::Biosyn => Records::Biosyn(biosyn::Documents::new(input)),
            CorpusFormat::Jats => Records::Jats(jats::Documents::new(input)?),
            CorpusFormat::Csv => Records::Csv(csv::Documents::new(input, columns.clone())),
        })
    }

    /// A measure of progress, such as the number of lines; plain text is read at once.
    fn n_passed(&self) -> u64 {
        match self {
            Records::Text(_) => 0,
            Records::Jsonl(input) => input.n_lines(),
            Records::Pubtator(blocks) => blocks.n_lines(),
            Records::BiocXml(documents) => documents.n_passed(),
            Records::BiocJson(documents) => documents.n_passed(),
            Records::Brat(_) => 0,
            Records::Conll(documents) => documents.n_passed(),
            Records::PubmedXml(documents) => documents.n_passed(),
            Records::Texoo(documents) => documents.n_passed(),
            Records::Biosyn(documents) => documents.n_passed(),
            Records::Jats(documents) => documents.n_passed(),
            Records::Csv(documents) => documents.n_lines(),
        }
    }

    /// Location of the last document, if the format has lines.
    fn location(&self) -> Option<String> {
        let (path, line) = match self {
            Records::Jsonl(input) => (input.path(), input.n_lines()),
            Records::Pubtator(blocks) => blocks.location(),
            _ => return None,
        };
        Some(format!("{}:{line}", path.display()))
    }

    /// Line of the last document, if known.
    fn line(&self) -> Option<u64> {
        match self {
            Records::Jsonl(input) => Some(input.n_lines()),
            Records::Pubtator(blocks) => Some(blocks.location().1),
            Records::PubmedXml(documents) => Some(documents.line()),
            Records::Jats(documents) => Some(documents.line()),
            Records::Csv(documents) => Some(documents.line()),
            _ => None,
        }
    }

    fn next(&mut self, checker: &mut Checker) -> Option<Result<AnnotatedDocument>> {
        match self {
            Records::Text(input) => Some(plain::read(input)),
            Records::Jsonl(input) => jsonl::read_next(input, checker).transpose(),
            Records::Pubtator(blocks) => blocks.read_next(checker).transpose(),
            Records::BiocXml(documents) => documents.read_next(checker).transpose(),
            Records::BiocJson(documents) => documents.read_next(checker).transpose(),
            Records::Brat(documents) => documents.read_next(checker).transpose(),
            Records::Conll(documents) => documents.read_next(checker).transpose(),
            Records::PubmedXml(documents) => documents.read_next(checker).transpose(),
            Records::Texoo(documents) => documents.read_next(checker).transpose(),
            Records::Biosyn(documents) => documents.read_next().transpose(),
            Records::Jats(documents) => documents.read_next().transpose(),
            Records::Csv(documents) => documents.read_next(checker).transpose(),
        }
    }
}

fn input_only(format: CorpusFormat) -> Error {
    Error::unsupported(format!("`{format}` is an input format only")).with_hint("use jsonl or pubtator")
}

fn repeated_id(path: &Path, line: Option<u64>, id: &str) -> Error {
    let message = format!("document {} has the id of an earlier document", quote(id));
    let error = match line {
        Some(line) => Error::parse(path, line, message),
        None => Error::mismatch(format!("{}: {message}", path.display())),
    };
    error.with_hint("give each document an id of its own")
}

/// Appends a document in `format`, or nothing on error. For brat, the content of the `.ann` file.
pub fn encode(document: &AnnotatedDocument, format: CorpusFormat, buffer: &mut Vec<u8>) -> Result<()> {
    encode_with(document, format, Scheme::default(), buffer)
}

/// Like [`encode`], with the tagging scheme `scheme`.
pub fn encode_with(
    document: &AnnotatedDocument,
    format: CorpusFormat,
    scheme: Scheme,
    buffer: &mut Vec<u8>,
) -> Result<()> {
    match format {
        CorpusFormat::Text | CorpusFormat::Jats | CorpusFormat::Csv => Err(input_only(format)),
        CorpusFormat::Jsonl => jsonl::write(document, buffer),
        CorpusFormat::Pubtator => pubtator::write(document, buffer),
        CorpusFormat::BiocXml => bioc_xml::write(document, buffer),
        CorpusFormat::BiocJson => bioc_json::write(document, buffer),
        CorpusFormat::Brat => brat::write(document, buffer),
        CorpusFormat::Conll => conll::write(document, scheme, buffer),
        CorpusFormat::PubmedXml => pubmed::write(document, buffer),
        CorpusFormat::Texoo => texoo::write(document, buffer),
        CorpusFormat::Biosyn => biosyn::write(document, buffer),
    }
}

/// Text before, between and after the documents of a stream.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Frame {
    /// Before the first document.
    pub before: Vec<u8>,
    /// Between two documents.
    pub between: &'static [u8],
    /// After the last document.
    pub after: &'static [u8],
}

/// The frame of `format`; the `first` document may contain the collection header.
pub fn frame(format: CorpusFormat, first: Option<&AnnotatedDocument>) -> Frame {
    match format {
        CorpusFormat::BiocXml => bioc_xml::frame(first),
        CorpusFormat::BiocJson => bioc_json::frame(first),
        CorpusFormat::PubmedXml => pubmed::frame(first),
        CorpusFormat::Texoo => texoo::frame(first),
        _ => Frame::default(),
    }
}

/// Text to insert before `bytes`, the result of [`encode`] for `document`, after another document and
/// [`Frame::between`]. Needed for CoNLL, where a file with one document does not mark its start.
pub fn start(document: &AnnotatedDocument, format: CorpusFormat, bytes: &[u8]) -> Vec<u8> {
    if format == CorpusFormat::Conll { conll::start(&document.document, bytes) } else { Vec::new() }
}

/// Writes documents to a stream.
///
/// [`Writer::finish`] must be called; otherwise a failure to write the last documents is not reported.
#[derive(Debug)]
pub struct Writer<W: Write> {
    out: BufWriter<W>,
    path: PathBuf,
    format: CorpusFormat,
    /// A document, encoded completely before it is written.
    buffer: Vec<u8>,
    /// The frame; `None` before the first document.
    frame: Option<Frame>,
}

impl<W: Write> Writer<W> {
    /// A writer to `out`; `path` is used in messages. Plain text cannot be written because it has no annotations; for
    /// brat see [`crate::corpus::folder`].
    pub fn new(out: W, path: &Path, format: CorpusFormat) -> Result<Writer<W>> {
        if !format.is_written() {
            return Err(input_only(format));
        }
        if format == CorpusFormat::Brat {
            return Err(Error::unsupported("cannot write brat to a stream: each document has two files")
                .with_hint("write to a folder, or use jsonl"));
        }
        Ok(Writer { out: BufWriter::new(out), path: path.to_path_buf(), format, buffer: Vec::new(), frame: None })
    }

    /// Writes a document, or nothing if the format cannot represent it.
    pub fn write(&mut self, document: &AnnotatedDocument) -> Result<()> {
        self.buffer.clear();
        encode(document, self.format, &mut self.buffer)?;
        let border = match &self.frame {
            Some(frame) => [frame.between, &start(document, self.format, &self.buffer)].concat(),
            None => self.frame.insert(frame(self.format, Some(document))).before.clone(),
        };
        let written = self.out.write_all(&border).and_then(|()| self.out.write_all(&self.buffer));
        written.map_err(|source| Error::io("write", &self.path, source))
    }

    /// Flushes and returns `out`.
    pub fn finish(mut self) -> Result<W> {
        let (before, after) = match self.frame.take() {
            Some(frame) => (Vec::new(), frame.after),
            None => {
                let frame = frame(self.format, None);
                (frame.before, frame.after)
            }
        };
        let written = self.out.write_all(&before).and_then(|()| self.out.write_all(after));
        written.map_err(|source| Error::io("write", &self.path, source))?;
        self.out.into_inner().map_err(|error| Error::io("write", &self.path, error.into_error()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_no_output_format() {
        assert!(Writer::new(Vec::new(), Path::new("-"), CorpusFormat::Text).is_err());
    }
}
