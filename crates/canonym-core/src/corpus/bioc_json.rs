//! BioC JSON, read as a stream of documents.
//!
//! Accepts a collection with `documents`, the output of PubTator (`{"PubTator3": […]}`), a list of documents, or a
//! sequence of documents, such as one per line. Unknown fields and infons, such as `authors`, are kept and written
//! again; fields after the list of documents are dropped. Writes a collection with one document per line. See
//! `corpus::bioc` for the conversion of passages to text.

use crate::Result;
use crate::corpus::bioc::{BiocDocument, Collection, Kept, kept_of, to_annotated, to_bioc};
use crate::corpus::check::Checker;
use crate::corpus::format::Frame;
use crate::corpus::json_stream::JsonStream;
use crate::corpus::{AnnotatedDocument, CorpusFormat};
use crate::input::Input;

/// Names of document lists.
const LISTS: [&str; 2] = ["documents", "PubTator3"];

/// Reader of documents.
pub(super) struct Documents {
    pieces: JsonStream,
    is_first: bool,
}

impl Documents {
    pub fn new(input: Input) -> Result<Documents> {
        Ok(Documents { pieces: JsonStream::new(input, &LISTS, "passages"), is_first: true })
    }

    /// A measure of progress that increases while reading.
    pub fn n_passed(&self) -> u64 {
        self.pieces.n_bytes()
    }

    /// The next document, `None` at the end. After a malformed document, the next call returns the one after it.
    pub fn read_next(&mut self, checker: &mut Checker) -> Result<Option<AnnotatedDocument>> {
        let Some(value) = self.pieces.next_value()? else { return Ok(None) };
        let input = self.pieces.input();
        let document: BiocDocument =
            serde_json::from_str(&value.text).map_err(|error| value.json_error(input, &error))?;
        let is_first = std::mem::take(&mut self.is_first);
        let collection = if is_first { serde_json::from_str::<Collection>(&self.pieces.head).ok() } else { None };
        let kept = Kept { collection, layout: None, document };
        to_annotated(kept, input.path(), value.line, CorpusFormat::BiocJson, checker).map(Some)
    }
}

/// Appends one document to `out`.
pub(super) fn write(annotated: &AnnotatedDocument, out: &mut Vec<u8>) -> Result<()> {
    let bioc = to_bioc(annotated, kept_of(annotated).map(|kept| kept.document));
    serde_json::to_writer(out, &bioc).expect("strings and numbers in memory are always JSON");
    Ok(())
}

/// Text before, between and after documents.
pub(super) fn frame(first: Option<&AnnotatedDocument>) -> Frame {
    let mut head = first.and_then(kept_of).and_then(|kept| kept.collection).unwrap_or_default();
    head.prolog.clear();
    let mut before = serde_json::to_vec(&head).expect("strings in memory are always JSON");
    before.pop();
    before.extend_from_slice(b",\"documents\":[\n");
    Frame { before, between: b",\n", after: b"\n]}\n" }
}
