//! BioC XML, read as a stream of documents.
//!
//! Offsets are code points. Content that the document model lacks, such as sentences, order of infons and the
//! collection header, is kept and written again, and so is the layout: a file with each element on its own line, or all
//! on one line, is reproduced byte by byte. Comments are dropped. A character that is invalid in XML, such as a form
//! feed, is written as a space to preserve offsets. See `corpus::bioc` for the conversion of passages to text.

use serde_json::Value;

use crate::corpus::bioc::{
    BiocAnnotation, BiocDocument, BiocRelation, Collection, Infons, Kept, Layout, Location, Node, Passage, kept_of,
    to_annotated, to_bioc,
};
use crate::corpus::check::{Checker, quote};
use crate::corpus::format::Frame;
use crate::corpus::{AnnotatedDocument, CorpusFormat, MAX_DOCUMENT_BYTES};
use crate::input::Input;
use crate::input::xml::{Element, Event, XmlReader};
use crate::{Error, Result};

mod write;

pub(super) use write::escape;

/// All BioC elements.
const TAGS: [&str; 16] = [
    "collection",
    "source",
    "date",
    "key",
    "infon",
    "document",
    "id",
    "passage",
    "sentence",
    "offset",
    "text",
    "annotation",
    "relation",
    "location",
    "node",
    "version",
];

/// Prolog of a newly written collection.
const PROLOG: &str = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<!DOCTYPE collection SYSTEM \"BioC.dtd\">\n";

/// Reader of documents.
pub(super) struct Documents {
    xml: XmlReader,
    layout: Layout,
    /// The collection header, until the first document takes it.
    collection: Option<Collection>,
    prolog: Prolog,
    /// Start of the current document in bytes.
    start: u64,
}

/// XML declaration and document type with their lines.
#[derive(Default)]
struct Prolog {
    text: String,
    line: u64,
}

/// A child element.
struct Child {
    tag: &'static str,
    attributes: Vec<(String, String)>,
}

impl Child {
    fn attribute(&self, name: &str) -> &str {
        let found = self.attributes.iter().find(|(key, _)| key == name);
        found.map_or("", |(_, value)| value.as_str())
    }
}

impl Documents {
    pub fn new(input: Input) -> Result<Documents> {
        let layout = Layout { lines: false, indent: 0, ..Layout::default() };
        let (collection, prolog) = (Some(Collection::default()), Prolog::default());
        Ok(Documents { xml: XmlReader::new(input)?, layout, collection, prolog, start: 0 })
    }

    /// A measure of progress that increases while reading.
    pub fn n_passed(&self) -> u64 {
        self.xml.n_bytes()
    }

    /// The next document, `None` at the end. After a malformed document, the next call returns the one after it.
    pub fn read_next(&mut self, checker: &mut Checker) -> Result<Option<AnnotatedDocument>> {
        if self.xml.is_broken() {
            return Ok(None);
        }
        if self.xml.depth() == 0 && !self.enter()? {
            return Ok(None);
        }
        // Skip the rest of a malformed document.
        self.xml.skip_to(1)?;
        while let Some(child) = self.next_child("collection")? {
            let line = self.xml.line();
            if child.tag == "document" {
                self.start = self.xml.n_bytes();
                let document = self.document()?;
                self.layout.quotes |= self.xml.escapes_quotes();
                let kept = Kept { collection: self.collection.take(), layout: Some(self.layout), document };
                return to_annotated(kept, self.xml.path(), line, CorpusFormat::BiocXml, checker).map(Some);
            }
            let text = self.xml.read_text()?;
            // Collection fields after the first document cannot be kept.
            let Some(head) = &mut self.collection else { continue };
            match child.tag {
                "source" => head.source = text,
                "date" => head.date = text,
                "key" => head.key = text,
                "infon" => head.infons.push(child.attribute("key"), &text),
                tag => return Err(misplaced(&self.xml, tag, "collection")),
            }
        }
        // Read on, so that content after the end of the root element is an error.
        self.xml.next_event()?;
        Ok(None)
    }

    /// Enters the collection; `false` at the end of the input.
    fn enter(&mut self) -> Result<bool> {
        loop {
            match self.xml.next_event()? {
                Event::Declaration(text) => self.prolog.text.push_str(&format!("<?{text}?>")),
                Event::Doctype(text) => {
                    let text = format!("<!DOCTYPE {text}>");
                    self.end_prolog_line();
                    self.prolog.text.push_str(&text);
                }
                Event::Start(element) if element.name() == "collection" => break,
                Event::Start(element) => {
                    let name = quote(element.name());
                    return Err(self
                        .xml
                        .error(format!("expected the BioC element `collection`, found {name}"))
                        .with_hint("specify the format of the file"));
                }
                Event::Eof => return Ok(false),
                Event::Text(_) | Event::End => {}
            }
            self.prolog.line = self.xml.line();
        }
        self.end_prolog_line();
        if let Some(head) = &mut self.collection {
            head.prolog = std::mem::take(&mut self.prolog.text);
        }
        Ok(true)
    }

    /// Ends the line of the prolog if the next item is on another line.
    fn end_prolog_line(&mut self) {
        if !self.prolog.text.is_empty() && self.xml.line() > self.prolog.line {
            self.prolog.text.push('\n');
        }
    }

    /// The next child element of `parent`; `None` at its end.
    fn next_child(&mut self, parent: &str) -> Result<Option<Child>> {
        let depth = self.xml.depth();
        if self.xml.n_bytes() - self.start > MAX_DOCUMENT_BYTES as u64 && parent != "collection" {
            let message = format!("the document at line {} has more than {MAX_DOCUMENT_BYTES} bytes", self.xml.line());
            return Err(Error::limit(self.xml.path(), message));
        }
        loop {
            match self.xml.next_event()? {
                Event::Start(element) => {
                    let Some(tag) = TAGS.into_iter().find(|&tag| tag == element.name()) else {
                        let name = element.name().to_owned();
                        return Err(misplaced(&self.xml, &name, parent));
                    };
                    note_tag(&mut self.layout, tag, &element);
                    return Ok(Some(Child { tag, attributes: element.attributes()? }));
                }
                Event::Text(text) if text.trim().is_empty() => note_space(&mut self.layout, text, depth),
                Event::Text(text) => {
                    let message = format!("unexpected text in the element `{parent}`: {}", quote(text.trim()));
                    return Err(self.xml.error(message));
                }
                _ => return Ok(None),
            }
        }
    }

    fn document(&mut self) -> Result<BiocDocument> {
        let mut document = BiocDocument::default();
        while let Some(child) = self.next_child("document")? {
            match child.tag {
                "id" => document.id = self.xml.read_text()?,
                "infon" => self.infon(&child, &mut document.infons)?,
                "passage" => {
                    let mut passage = self.passage("passage")?;
                    passage.sentences.get_or_insert_default();
                    document.passages.push(passage);
                }
                "annotation" => document.annotations.push(self.annotation(&child)?),
                "relation" => document.relations.push(self.relation(&child)?),
                tag => return Err(misplaced(&self.xml, tag, "document")),
            }
        }
        Ok(document)
    }

    /// Reads a passage or a sentence.
    fn passage(&mut self, parent: &'static str) -> Result<Passage> {
        let mut passage = Passage::default();
        let line = self.xml.line();
        let mut offset = None;
        while let Some(child) = self.next_child(parent)? {
            match child.tag {
                "infon" => self.infon(&child, &mut passage.infons)?,
                "offset" => {
                    let text = self.xml.read_text()?;
                    offset = Some(number(&self.xml, text.trim())?);
                }
                "text" => passage.text.get_or_insert_default().push_str(&self.xml.read_text()?),
                "sentence" if parent == "passage" => {
                    let sentence = self.passage("sentence")?;
                    passage.sentences.get_or_insert_default().push(sentence);
                }
                "annotation" => passage.annotations.push(self.annotation(&child)?),
                "relation" => passage.relations.push(self.relation(&child)?),
                tag => return Err(misplaced(&self.xml, tag, parent)),
            }
        }
        let missing = || Error::parse(self.xml.path(), line, format!("the {parent} has no offset"));
        passage.offset = offset.ok_or_else(missing)?;
        Ok(passage)
    }

    fn annotation(&mut self, element: &Child) -> Result<BiocAnnotation> {
        let id = element.attribute("id").to_owned();
        let mut annotation = BiocAnnotation { id, line: self.xml.line(), ..BiocAnnotation::default() };
        while let Some(child) = self.next_child("annotation")? {
            match child.tag {
                "infon" => self.infon(&child, &mut annotation.infons)?,
                "location" => {
                    let offset = number(&self.xml, child.attribute("offset"))?;
                    let length = number(&self.xml, child.attribute("length"))?;
                    annotation.locations.push(Location { offset, length });
                    self.xml.skip_element()?;
                }
                "text" => annotation.text.get_or_insert_default().push_str(&self.xml.read_text()?),
                tag => return Err(misplaced(&self.xml, tag, "annotation")),
            }
        }
        Ok(annotation)
    }

    fn relation(&mut self, element: &Child) -> Result<BiocRelation> {
        let mut relation = BiocRelation { id: element.attribute("id").to_owned(), ..BiocRelation::default() };
        while let Some(child) = self.next_child("relation")? {
            match child.tag {
                "infon" => self.infon(&child, &mut relation.infons)?,
                "node" => {
                    let (refid, role) = (child.attribute("refid").to_owned(), child.attribute("role").to_owned());
                    relation.nodes.push(Node { refid, role });
                    self.xml.skip_element()?;
                }
                tag => return Err(misplaced(&self.xml, tag, "relation")),
            }
        }
        Ok(relation)
    }

    fn infon(&mut self, element: &Child, infons: &mut Infons) -> Result<()> {
        let text = self.xml.read_text()?;
        infons.0.push((element.attribute("key").to_owned(), Value::String(text)));
        Ok(())
    }
}

fn misplaced(xml: &XmlReader, tag: &str, parent: &str) -> Error {
    xml.error(format!("unexpected element {} in `{parent}`", quote(tag)))
}

fn number(xml: &XmlReader, text: &str) -> Result<u64> {
    text.parse().map_err(|_| {
        xml.error(format!("invalid offset or length {}", quote(text))).with_hint("offsets and lengths must be integers")
    })
}

/// Records how the file quotes attributes.
fn note_tag(layout: &mut Layout, tag: &str, element: &Element<'_>) {
    let single = || element.raw().find(['\'', '"']).is_some_and(|at| element.raw().as_bytes()[at] == b'\'');
    match tag {
        "infon" => layout.single_infon = single(),
        "annotation" | "relation" => layout.single_id = single(),
        "location" | "node" => {
            layout.single_place = single();
            layout.space = element.raw().ends_with(' ');
        }
        _ => {}
    }
}

/// Records line breaks and indentation from the white space before an element.
fn note_space(layout: &mut Layout, text: &str, depth: usize) {
    let Some((_, spaces)) = text.rsplit_once('\n') else { return };
    layout.lines = true;
    // Before an end tag, the indentation is that of the parent level.
    if depth == 1 && !spaces.is_empty() {
        layout.indent = spaces.len();
    }
}

/// Appends one document to `out`.
pub(super) fn write(annotated: &AnnotatedDocument, out: &mut Vec<u8>) -> Result<()> {
    let kept = kept_of(annotated);
    let layout = kept.as_ref().and_then(|kept| kept.layout).unwrap_or_default();
    let bioc = to_bioc(annotated, kept.map(|kept| kept.document));
    write::document(&bioc, layout, out);
    Ok(())
}

/// Text before, between and after documents.
pub(super) fn frame(first: Option<&AnnotatedDocument>) -> Frame {
    let kept = first.and_then(kept_of).unwrap_or_default();
    let layout = kept.layout.unwrap_or_default();
    let mut head = kept.collection.unwrap_or_default();
    if head.prolog.is_empty() {
        head.prolog = PROLOG.to_owned();
    }
    let mut before = Vec::new();
    write::head(&head, layout, &mut before);
    Frame { before, between: b"", after: b"</collection>\n" }
}
