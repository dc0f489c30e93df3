//! Which format a file has, and one reader and one writer over all of them.
//!
//! A [`Reader`] streams the documents of a file, of standard input, of the members of an archive or of a folder, and
//! holds one document at a time. After a malformed record it goes on with the next one, so that a caller may count
//! errors or stop at the first. What a format can carry stands in its own module.
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

use crate::corpus::check::Checker;
use crate::corpus::conll::{Scheme, Tags};
use crate::corpus::files::{self, Listing, Waiting};
use crate::corpus::repair::Fix;
use crate::corpus::{
    AnnotatedDocument, Met, Oddity, OnMismatch, ReadCounts, bioc_json, bioc_xml, biosyn, brat, conll, jsonl, plain,
    pubmed, pubtator, texoo,
};
use crate::input::{Input, Source};
use crate::{Error, Result};

pub use crate::corpus::kinds::CorpusFormat;

/// The longest document id by which PubTator is recognised, in bytes.
const MAX_ID: usize = 100;

/// Outermost elements of files of citations.
const CITATIONS: [&[u8]; 7] = [
    b"PubmedArticleSet",
    b"PubmedArticle",
    b"PubmedBookArticleSet",
    b"PubmedBookArticle",
    b"MedlineCitationSet",
    b"MedlineCitation",
    b"BookDocument",
];

/// The format of a file by its name and its first bytes, uncompressed. What is nothing else is plain text.
pub fn detect(path: &Path, head: &[u8]) -> Result<CorpusFormat> {
    let mut name = path.file_name().map(|name| name.to_string_lossy().to_lowercase()).unwrap_or_default();
    for packed in [".gz", ".zst"] {
        name.truncate(name.strip_suffix(packed).map_or(name.len(), str::len));
    }
    if name.ends_with(".jsonl") || name.ends_with(".ndjson") {
        return Ok(CorpusFormat::Jsonl);
    }
    if name.ends_with(".pubtator") || name.ends_with(".pubtator.txt") {
        return Ok(CorpusFormat::Pubtator);
    }
    if name.ends_with(".concept") {
        return Ok(CorpusFormat::Biosyn);
    }
    if [".conll", ".bio", ".iob", ".iob2", ".bioes", ".bilou"].iter().any(|ending| name.ends_with(ending)) {
        return Ok(CorpusFormat::Conll);
    }
    let head = head.trim_ascii_start();
    if name.ends_with(".bioc.xml") {
        return Ok(CorpusFormat::BiocXml);
    }
    if name.ends_with(".bioc.json") {
        return Ok(CorpusFormat::BiocJson);
    }
    match xml_root(head) {
        Some(b"collection") => return Ok(CorpusFormat::BiocXml),
        Some(root) if CITATIONS.contains(&root) => return Ok(CorpusFormat::PubmedXml),
        _ => {}
    }
    if head.starts_with(b"{") || head.starts_with(b"[") {
        if has_member(head, "passages") || has_member(head, "PubTator3") {
            return Ok(CorpusFormat::BiocJson);
        }
        if has_member(head, "documents") {
            return Ok(if has_member(head, "begin") { CorpusFormat::Texoo } else { CorpusFormat::BiocJson });
        }
    }
    if let Some(kind) = foreign_kind(head) {
        return Err(Error::invalid(format!("{}: unsupported {kind}", path.display()))
            .with_hint("specify the format; `text` reads any text file"));
    }
    if starts_with_both(head, b"{", b"\"") {
        return Ok(CorpusFormat::Jsonl);
    }
    if starts_pubtator(head) {
        return Ok(CorpusFormat::Pubtator);
    }
    if biosyn::starts_query(head) {
        return Ok(CorpusFormat::Biosyn);
    }
    Ok(if conll::starts_tokens(head) { CorpusFormat::Conll } else { CorpusFormat::Text })
}

/// The name of the outermost element, which the document type tells, too.
fn xml_root(mut head: &[u8]) -> Option<&[u8]> {
    loop {
        head = head.trim_ascii_start();
        let closing: &[u8] = match head {
            [b'<', b'?', ..] => b"?>",
            [b'<', b'!', b'-', ..] => b"-->",
            _ => break,
        };
        let end = head.windows(closing.len()).position(|window| window == closing)?;
        head = &head[end + closing.len()..];
    }
    let name = match head.strip_prefix(b"<!DOCTYPE") {
        Some(rest) => rest.trim_ascii_start(),
        None => head.strip_prefix(b"<")?,
    };
    let end = name.iter().position(|&byte| byte.is_ascii_whitespace() || matches!(byte, b'>' | b'/' | b'['))?;
    Some(&name[..end])
}

/// Whether an object of the JSON in `head` has a member of that name.
fn has_member(head: &[u8], name: &str) -> bool {
    let quoted = format!("\"{name}\"");
    let is_name = |at: usize| head[at + quoted.len()..].trim_ascii_start().starts_with(b":");
    head.windows(quoted.len()).enumerate().any(|(at, window)| window == quoted.as_bytes() && is_name(at))
}

/// What `head` is, where taking it for plain text would be wrong.
fn foreign_kind(head: &[u8]) -> Option<&'static str> {
    if head.starts_with(b"<?xml") || head.starts_with(b"<!DOCTYPE") {
        return Some("XML (not BioC or PubMed)");
    }
    if starts_with_both(head, b"[", b"{") {
        return Some("JSON list");
    }
    head.contains(&0).then_some("binary file")
}

/// Whether `head` starts with `first` and, after white space, `second`.
fn starts_with_both(head: &[u8], first: &[u8], second: &[u8]) -> bool {
    head.strip_prefix(first).is_some_and(|rest| rest.trim_ascii_start().starts_with(second))
}

/// Whether `head` starts with an id and `|t|` or `|a|`.
fn starts_pubtator(head: &[u8]) -> bool {
    let Some(end) = head.iter().take(MAX_ID).position(|&byte| byte == b'|') else { return false };
    let id = &head[..end];
    !id.is_empty()
        && !id.iter().any(u8::is_ascii_whitespace)
        && (head[end..].starts_with(b"|t|") || head[end..].starts_with(b"|a|"))
}

/// The documents of a file, standard input or a folder, one after the other.
pub struct Reader {
    /// What is still to be opened, next first.
    waiting: VecDeque<Waiting>,
    format: Option<CorpusFormat>,
    checker: Checker,
    current: Option<Records>,
}

/// An open input with what its format has to remember between two documents.
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
}

impl Reader {
    /// Opens a file, a folder, or standard input where the path is `-`.
    ///
    /// A folder is read file by file in the order of the paths, folders in it included; names that start with a dot and
    /// links to folders are left out. Where no format is given, each file shows its own. A folder in which an `.ann` file
    /// lies is one of brat: its `.txt` files are the documents.
    pub fn open(path: &Path, format: Option<CorpusFormat>) -> Result<Reader> {
        if path == Path::new("-") {
            if format == Some(CorpusFormat::Brat) {
                return Err(Error::invalid("cannot read brat from standard input: each document has two files")
                    .with_hint("specify the folder, or a `.txt` file next to its `.ann` file"));
            }
            return Reader::from_input(Input::open(path)?, format);
        }
        let Listing { waiting, n_other } = files::list(path, format)?;
        let mut checker = Checker::default();
        checker.counts.n_other_files = n_other;
        Ok(Reader { waiting, format, checker, current: None })
    }

    /// Reads from an open input, in the format it shows where none is given.
    pub fn from_input(input: Input, format: Option<CorpusFormat>) -> Result<Reader> {
        let current = Some(Records::new(input, format)?);
        Ok(Reader { waiting: VecDeque::new(), format, checker: Checker::default(), current })
    }

    /// Reads a source: its members where it is an archive, of which those of brat that belong together are one document.
    ///
    /// What is no archive and cannot be opened fails here, and so does an archive that cannot be listed; a member that cannot be read is an error in its place.
    pub fn from_source(source: &Source, format: Option<CorpusFormat>) -> Result<Reader> {
        let Listing { mut waiting, n_other } = files::open(source, format)?;
        if let [Waiting::Source(single)] = waiting.make_contiguous()
            && single.path() == source.path()
        {
            return Reader::from_input(single.open()?, format);
        }
        let mut checker = Checker::default();
        checker.counts.n_other_files = n_other;
        Ok(Reader { waiting, format, checker, current: None })
    }

    /// The same reader with another way to treat an annotation whose text is not under its span.
    #[must_use]
    pub fn with_on_mismatch(mut self, on_mismatch: OnMismatch) -> Reader {
        self.checker.on_mismatch = on_mismatch;
        self
    }

    /// The same reader, repairing offsets where there is no doubt what they should be.
    #[must_use]
    pub fn with_repairs(mut self, repairs: bool) -> Reader {
        self.checker.repairs = repairs;
        self
    }

    /// The same reader with another way to read tags of tokens.
    #[must_use]
    pub fn with_tags(mut self, tags: Tags) -> Reader {
        self.checker.tags = tags;
        self
    }

    /// Leaves the rest of the file that is being read, and goes on with the next one.
    pub fn leave_file(&mut self) {
        self.current = None;
    }

    /// What was read so far.
    pub fn counts(&self) -> ReadCounts {
        self.checker.counts
    }

    /// What was taken as it stands so far, though it may be a mistake.
    pub fn oddities(&self) -> &BTreeMap<Oddity, Met> {
        &self.checker.oddities
    }

    /// What was repaired in the document that was read last.
    pub fn fixes(&self) -> &[Fix] {
        &self.checker.fixes
    }

    /// What was left out of the document that was read last ([`OnMismatch::Drop`]): the first thousand annotations, with what is wrong.
    pub fn dropped(&self) -> &[Error] {
        &self.checker.dropped
    }

    /// Opens what waits next.
    fn advance(&mut self, waiting: Waiting) -> Result<()> {
        self.current = Some(match waiting {
            Waiting::Source(source) => Records::new(source.open()?, self.format)?,
            Waiting::Brat(text, annotations) => {
                let annotations = annotations.map(|source| source.open()).transpose()?;
                Records::Brat(brat::Documents::new(text.open()?, annotations))
            }
            Waiting::Lonely(path) => return Err(files::lonely(&path)),
            Waiting::File(path) => {
                let Listing { waiting, n_other } = files::open(&Source::from_path(&path), self.format)?;
                self.checker.counts.n_other_files += n_other;
                for waiting in waiting.into_iter().rev() {
                    self.waiting.push_front(waiting);
                }
                return Ok(());
            }
        });
        Ok(())
    }
}

impl Iterator for Reader {
    type Item = Result<AnnotatedDocument>;

    fn next(&mut self) -> Option<Result<AnnotatedDocument>> {
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
                    self.checker.meet_id(&read.document.id, || records.place());
                    self.checker.counts.n_documents += 1;
                    self.checker.counts.n_annotations += read.annotations.len() as u64;
                    !matches!(records, Records::Text(_) | Records::Brat(_))
                }
                // An input that fails where it stands fails there for ever, and one that passed a limit is left.
                Some(Err(Error::Parse { .. })) => records.n_passed() > n_passed,
                Some(Err(_)) | None => false,
            };
            if !goes_on {
                self.current = None;
            }
            if item.is_some() {
                return item;
            }
        }
    }
}

impl Records {
    fn new(input: Input, format: Option<CorpusFormat>) -> Result<Records> {
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
        })
    }

    /// A number that grows while the input is read, such as that of lines; plain text is read at once.
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
        }
    }

    /// Where the document that was read last stands, where its format has lines of documents.
    fn place(&self) -> Option<String> {
        let (path, line) = match self {
            Records::Jsonl(input) => (input.path(), input.n_lines()),
            Records::Pubtator(blocks) => blocks.place(),
            _ => return None,
        };
        Some(format!("{}:{line}", path.display()))
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
        }
    }
}

/// Appends one document as `format` writes it; nothing where the format cannot carry it. Of brat it is the `.ann` file.
pub fn encode(document: &AnnotatedDocument, format: CorpusFormat, buffer: &mut Vec<u8>) -> Result<()> {
    encode_with(document, format, Scheme::default(), buffer)
}

/// [`encode`] with the tags of tokens in `scheme`, where the format has any.
pub fn encode_with(
    document: &AnnotatedDocument,
    format: CorpusFormat,
    scheme: Scheme,
    buffer: &mut Vec<u8>,
) -> Result<()> {
    match format {
        CorpusFormat::Text => Err(Error::invalid("`text` is an input format only").with_hint("use jsonl or pubtator")),
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

/// What stands around documents that follow each other in one stream.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Frame {
    /// Before the first document.
    pub before: Vec<u8>,
    /// Between two documents.
    pub between: &'static [u8],
    /// After the last document.
    pub after: &'static [u8],
}

/// What `format` puts around documents; `first` is the first of them, which may carry the head of its collection.
pub fn frame(format: CorpusFormat, first: Option<&AnnotatedDocument>) -> Frame {
    match format {
        CorpusFormat::BiocXml => bioc_xml::frame(first),
        CorpusFormat::BiocJson => bioc_json::frame(first),
        CorpusFormat::PubmedXml => pubmed::frame(first),
        CorpusFormat::Texoo => texoo::frame(first),
        _ => Frame::default(),
    }
}

/// What has to stand before `bytes`, which [`encode`] made of `document`, behind another document and
/// [`Frame::between`]: tokens from a file of one document do not say where it starts.
pub fn start(document: &AnnotatedDocument, format: CorpusFormat, bytes: &[u8]) -> Vec<u8> {
    if format == CorpusFormat::Conll { conll::start(&document.document, bytes) } else { Vec::new() }
}

/// Writes documents one after the other.
///
/// [`Writer::finish`] must be called: without it a failure to write the last documents is not seen.
#[derive(Debug)]
pub struct Writer<W: Write> {
    out: BufWriter<W>,
    path: PathBuf,
    format: CorpusFormat,
    /// One document, made ready before anything of it is written.
    buffer: Vec<u8>,
    /// What stands around documents; `None` before the first one.
    frame: Option<Frame>,
}

impl<W: Write> Writer<W> {
    /// A writer into `out`, which messages call `path`. Plain text cannot be written: it holds no annotations; brat is
    /// written by [`crate::corpus::folder`].
    pub fn new(out: W, path: &Path, format: CorpusFormat) -> Result<Writer<W>> {
        if format == CorpusFormat::Text {
            return Err(Error::invalid("`text` is an input format only").with_hint("use jsonl or pubtator"));
        }
        if format == CorpusFormat::Brat {
            return Err(Error::invalid("cannot write brat to a stream: each document has two files")
                .with_hint("write to a folder, or use jsonl"));
        }
        Ok(Writer { out: BufWriter::new(out), path: path.to_path_buf(), format, buffer: Vec::new(), frame: None })
    }

    /// Writes one document, all of it or, where its format cannot carry it, nothing.
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

    /// Writes what is buffered and gives `out` back.
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

    fn check(name: &str, head: &str, expected: CorpusFormat) {
        assert_eq!(detect(Path::new(name), head.as_bytes()).unwrap(), expected, "{name}");
    }

    #[test]
    fn names_come_before_content() {
        check("a.jsonl.gz", "", CorpusFormat::Jsonl);
        check("a.NDJSON", "1|t|x", CorpusFormat::Jsonl);
        check("train.PubTator", "", CorpusFormat::Pubtator);
        check("train.pubtator.txt.zst", "{\"", CorpusFormat::Pubtator);
    }

    #[test]
    fn content_decides_where_the_name_does_not() {
        check("a.txt", "\n\n10192393|t|A title", CorpusFormat::Pubtator);
        check("-", "8|a|", CorpusFormat::Pubtator);
        check("-", " { \"id\": 1", CorpusFormat::Jsonl);
        check("a.txt", "{as in sets}", CorpusFormat::Text);
        check("a.txt", "either a|t|b", CorpusFormat::Text);
        check("a", "", CorpusFormat::Text);
    }

    #[test]
    fn structured_files_show_what_they_are() {
        check("a.bioc.xml.gz", "", CorpusFormat::BiocXml);
        check("a.bioc.json", "", CorpusFormat::BiocJson);
        check("a.xml", "<?xml version='1.0'?>\n<!-- x -->\n<collection>", CorpusFormat::BiocXml);
        check("a.xml", "<?xml version='1.0'?><!DOCTYPE collection SYSTEM 'BioC.dtd'>", CorpusFormat::BiocXml);
        check("a.xml", "<!DOCTYPE PubmedArticleSet PUBLIC '' ''>\n", CorpusFormat::PubmedXml);
        check("-", "<MedlineCitation Owner='NLM'>", CorpusFormat::PubmedXml);
        check("a.json", r#"{"source": "", "documents": [{"id": "1"#, CorpusFormat::BiocJson);
        check("a.json", r#"{"PubTator3": [{"#, CorpusFormat::BiocJson);
        check("a.json", r#"[{"id": "1", "passages": ["#, CorpusFormat::BiocJson);
        check("a.json", r#"{"name": "", "documents": [{"begin": 0"#, CorpusFormat::Texoo);
        check("a.json", r#"{"text": "a \"passages\": b"}"#, CorpusFormat::Jsonl);
    }

    #[test]
    fn foreign_files_are_not_taken_for_text() {
        let message = |head: &[u8]| detect(Path::new("a"), head).unwrap_err().to_string();
        assert_eq!(message(b"<?xml version='1.0'?><pmc-articleset>"), "a: unsupported XML (not BioC or PubMed)");
        assert_eq!(message(b"<?xml version='1.0'?>"), "a: unsupported XML (not BioC or PubMed)");
        assert_eq!(message(b"[\n {\"id\": 1}"), "a: unsupported JSON list");
        assert_eq!(message(b"ab\0"), "a: unsupported binary file");
    }

    #[test]
    fn text_is_no_output_format() {
        assert!(Writer::new(Vec::new(), Path::new("-"), CorpusFormat::Text).is_err());
    }
}
