//! XML as a stream of events, on an [`Input`].
//!
//! Buffers are used again, so memory follows the largest single tag or text. The five predefined entities and numeric
//! references become characters; any other entity is an error, because declarations of a DTD are not read. `\r\n` and
//! `\r` become `\n`, as XML asks. Comments and processing instructions are passed over. Nesting and the size of one tag
//! or text have limits, and what is not well-formed is an error with its line. Prefixes stay a part of names; neither
//! name spaces nor DTDs are applied.
//!
//! ```
//! use canonym_core::input::Input;
//! use canonym_core::input::xml::{Event, XmlReader};
//!
//! let input = Input::from_bytes("a.xml", b"<a><b id='7'>salt &amp; pepper</b></a>".to_vec())?;
//! let mut xml = XmlReader::new(input)?;
//! while let Event::Start(element) = xml.next_event()? {
//!     if element.name() == "b" {
//!         assert_eq!(element.attribute("id")?.as_deref(), Some("7"));
//!         assert_eq!(xml.read_text()?, "salt & pepper");
//!     }
//! }
//! # Ok::<(), canonym_core::Error>(())
//! ```

use std::io::{self, BufRead, Read};
use std::path::Path;

use quick_xml::XmlVersion;
use quick_xml::events::{BytesDecl, BytesRef, BytesStart};

use super::Input;
use crate::{Error, Result};

/// How deep elements may be nested.
const MAX_DEPTH: usize = 64;

/// The largest tag, text or comment, and the largest text of one element, in bytes.
const MAX_TEXT: usize = 64 << 20;

/// Names of encodings of which every text is UTF-8.
const ENCODINGS: [&str; 4] = ["utf-8", "utf8", "us-ascii", "ascii"];

/// The longest quotation of the source in a message, in code points.
const MAX_QUOTE: usize = 80;

/// What comes next in the stream.
#[derive(Debug)]
pub enum Event<'a> {
    /// An element begins. An empty element such as `<br/>` gives this and then [`Event::End`].
    Start(Element<'a>),
    /// The element that began last ends.
    End,
    /// Text. That of one element may come in several pieces.
    Text(&'a str),
    /// The XML declaration, as it stands between `<?` and `?>`.
    Declaration(&'a str),
    /// The document type, as it stands between `<!DOCTYPE` and `>`.
    Doctype(&'a str),
    /// The document is complete.
    Eof,
}

/// The tag with which an element begins.
#[derive(Debug, Clone, Copy)]
pub struct Element<'a> {
    content: &'a str,
    name_len: usize,
    path: &'a Path,
    line: u64,
}

/// Reads the events of one XML document.
pub struct XmlReader {
    parser: quick_xml::Reader<Metered>,
    buffer: Vec<u8>,
    /// The content of the last event, decoded.
    content: String,
    depth: usize,
    /// The line on which the last event starts.
    line: u64,
    root: Root,
    broken: bool,
    escapes_quotes: bool,
}

/// What was seen of the outermost element.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Root {
    Before,
    Inside,
    After,
}

/// An event without its content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Start { name_len: usize },
    End,
    Text,
    Declaration,
    Doctype,
    Passed,
    Eof,
}

impl<'a> Element<'a> {
    /// The name, with its prefix.
    pub fn name(&self) -> &'a str {
        &self.content[..self.name_len]
    }

    /// The tag as the source writes it, without angle brackets and the slash of an empty element.
    pub fn raw(&self) -> &'a str {
        self.content
    }

    /// The value of an attribute; `None` where the element has no such attribute.
    pub fn attribute(&self, name: &str) -> Result<Option<String>> {
        let mut found = None;
        self.each_attribute(|key, value| {
            if key == name {
                found = Some(value.to_owned());
            }
        })?;
        Ok(found)
    }

    /// Names and values in the order of the source.
    pub fn attributes(&self) -> Result<Vec<(String, String)>> {
        let mut all = Vec::new();
        self.each_attribute(|key, value| all.push((key.to_owned(), value.to_owned())))?;
        Ok(all)
    }

    fn each_attribute(&self, mut take: impl FnMut(&str, &str)) -> Result<()> {
        let wrong = |error: &dyn std::fmt::Display| {
            let message = format!("the element {} has a malformed attribute: {error}", quote(self.name()));
            Error::parse(self.path, self.line, message)
        };
        for attribute in BytesStart::from_content(self.content, self.name_len).attributes() {
            let attribute = attribute.map_err(|error| wrong(&error))?;
            let value = attribute.normalized_value(XmlVersion::Implicit1_0).map_err(|error| wrong(&error))?;
            take(attribute.key.as_ref(), &value);
        }
        Ok(())
    }
}

impl XmlReader {
    /// A reader at the start of `input`.
    pub fn new(input: Input) -> Result<XmlReader> {
        let head = input.head();
        if head.starts_with(b"<\0") || head.starts_with(b"\0<") {
            return Err(Error::parse(input.path(), 1, "the text is UTF-16").with_hint("convert the file to UTF-8"));
        }
        let mut parser = quick_xml::Reader::from_reader(Metered { input, n_event: 0, failure: None });
        parser.config_mut().expand_empty_elements = true;
        Ok(XmlReader {
            parser,
            buffer: Vec::new(),
            content: String::new(),
            depth: 0,
            line: 1,
            root: Root::Before,
            broken: false,
            escapes_quotes: false,
        })
    }

    /// What messages call the input.
    pub fn path(&self) -> &Path {
        self.parser.get_ref().input.path()
    }

    /// The line on which the last event starts, from 1.
    pub fn line(&self) -> u64 {
        self.line
    }

    /// How many bytes were read.
    pub fn n_bytes(&self) -> u64 {
        self.parser.buffer_position()
    }

    /// How many elements are open.
    pub fn depth(&self) -> usize {
        self.depth
    }

    /// Whether an error was met after which nothing more can be read.
    pub fn is_broken(&self) -> bool {
        self.broken
    }

    /// Whether a quotation mark in a text was written as a reference, which tells how the file is written.
    pub fn escapes_quotes(&self) -> bool {
        self.escapes_quotes
    }

    /// An [`Error::Parse`] at the last event.
    pub fn error(&self, message: impl Into<String>) -> Error {
        Error::parse(self.path(), self.line, message)
    }

    /// The next event.
    pub fn next_event(&mut self) -> Result<Event<'_>> {
        let kind = loop {
            match self.step()? {
                Kind::Passed => {}
                kind => break kind,
            }
        };
        let content = self.content.as_str();
        Ok(match kind {
            Kind::Start { name_len } => {
                Event::Start(Element { content, name_len, path: self.parser.get_ref().input.path(), line: self.line })
            }
            Kind::End => Event::End,
            Kind::Text => Event::Text(content),
            Kind::Declaration => Event::Declaration(content),
            Kind::Doctype => Event::Doctype(content),
            Kind::Passed | Kind::Eof => Event::Eof,
        })
    }

    /// Passes over the rest of the element that began last, its end included.
    pub fn skip_element(&mut self) -> Result<()> {
        self.skip_to(self.depth.saturating_sub(1))
    }

    /// Goes on until only `depth` elements are open.
    pub fn skip_to(&mut self, depth: usize) -> Result<()> {
        while self.depth > depth {
            self.step()?;
        }
        Ok(())
    }

    /// The text of the element that began last, that of elements in it included, up to its end.
    pub fn read_text(&mut self) -> Result<String> {
        let mut text = String::new();
        self.append_text(&mut text)?;
        Ok(text)
    }

    /// Like [`XmlReader::read_text`], behind what stands in `text`.
    pub fn append_text(&mut self, text: &mut String) -> Result<()> {
        let (outside, start) = (self.depth.saturating_sub(1), text.len());
        while self.depth > outside {
            if self.step()? == Kind::Text {
                text.push_str(&self.content);
            }
            if text.len() - start > MAX_TEXT {
                self.broken = true;
                return Err(too_long(self.path()));
            }
        }
        Ok(())
    }

    /// Reads one event into `self.content`.
    fn step(&mut self) -> Result<Kind> {
        let metered = self.parser.get_mut();
        metered.n_event = 0;
        self.line = metered.input.n_lines + 1;
        self.buffer.clear();
        self.content.clear();
        let kind = self.parse();
        self.broken |= kind.is_err();
        kind
    }

    fn parse(&mut self) -> Result<Kind> {
        use quick_xml::events::Event as Parsed;
        let (kind, message) = match self.parser.read_event_into(&mut self.buffer) {
            Ok(Parsed::Start(start)) => {
                self.content.push_str(&start);
                let name_len = start.name().as_ref().len();
                self.depth += 1;
                if self.root == Root::Before {
                    self.root = Root::Inside;
                }
                let passed = (self.depth > MAX_DEPTH).then(|| format!("elements are nested deeper than {MAX_DEPTH}"));
                if let Some(message) = passed {
                    let message = format!("line {}: {message}", self.line);
                    return Err(Error::limit(self.path(), message));
                }
                let second = (self.root == Root::After).then(|| "more than one root element".to_owned());
                (Kind::Start { name_len }, second)
            }
            Ok(Parsed::End(_)) => {
                self.depth -= 1;
                if self.depth == 0 {
                    self.root = Root::After;
                }
                (Kind::End, None)
            }
            Ok(Parsed::Text(text)) => {
                self.content.push_str(&text.xml10_content());
                let outside = self.depth == 0;
                let stray = outside && !self.content.trim_ascii().is_empty();
                let message = stray.then(|| format!("text outside the root element: {}", quote(self.content.trim())));
                (if outside { Kind::Passed } else { Kind::Text }, message)
            }
            Ok(Parsed::CData(data)) => {
                self.content.push_str(&data.xml10_content());
                (Kind::Text, (self.depth == 0).then(|| "text outside the root element".to_owned()))
            }
            Ok(Parsed::GeneralRef(reference)) => match resolve(&reference) {
                Some(c) => {
                    self.content.push(c);
                    self.escapes_quotes |= matches!(&*reference, "quot" | "apos");
                    (Kind::Text, (self.depth == 0).then(|| "text outside the root element".to_owned()))
                }
                None => {
                    let message = format!("unknown entity {}", quote(&format!("&{};", &*reference)));
                    let hint = "use the character itself, or a numeric reference such as `&#945;`";
                    return Err(self.error(message).with_hint(hint));
                }
            },
            Ok(Parsed::Decl(declaration)) => {
                self.content.push_str(&declaration);
                match foreign_encoding(&declaration) {
                    None => (Kind::Declaration, None),
                    Some(name) => {
                        let message = format!("the declared encoding is {}, not UTF-8", quote(&name));
                        let hint = "convert the file to UTF-8 and change its declaration";
                        return Err(self.error(message).with_hint(hint));
                    }
                }
            }
            Ok(Parsed::DocType(doctype)) => {
                self.content.push_str(&doctype);
                (Kind::Doctype, None)
            }
            Ok(Parsed::Comment(_) | Parsed::PI(_) | Parsed::Empty(_)) => (Kind::Passed, None),
            Ok(Parsed::Eof) => {
                let message = match self.root {
                    Root::Before => Some("no XML element found".to_owned()),
                    Root::Inside => Some(format!("the file is truncated: {} elements are not closed", self.depth)),
                    Root::After => None,
                };
                (Kind::Eof, message)
            }
            Err(error) => return Err(self.explain(error)),
        };
        match message {
            Some(message) => Err(self.error(message)),
            None => Ok(kind),
        }
    }

    /// What an error of the parser means.
    fn explain(&mut self, error: quick_xml::Error) -> Error {
        if let Some(failure) = self.parser.get_mut().failure.take() {
            return failure;
        }
        match error {
            quick_xml::Error::Encoding(error) => {
                self.error(format!("invalid UTF-8 in the XML: {error}")).with_hint("convert the file to UTF-8")
            }
            quick_xml::Error::Syntax(error) => self
                .error(format!("the file is truncated inside XML markup: {error}"))
                .with_hint("download or export the file again"),
            error => self.error(format!("malformed XML: {error}")),
        }
    }
}

/// The character that a reference means.
fn resolve(reference: &BytesRef<'_>) -> Option<char> {
    match &**reference {
        "amp" => Some('&'),
        "lt" => Some('<'),
        "gt" => Some('>'),
        "quot" => Some('"'),
        "apos" => Some('\''),
        _ => reference.resolve_char_ref().ok().flatten(),
    }
}

/// The declared encoding, where it is another than UTF-8.
fn foreign_encoding(declaration: &BytesDecl<'_>) -> Option<String> {
    let name = match declaration.encoding()? {
        Ok(name) => name.into_owned(),
        Err(error) => error.to_string(),
    };
    (!ENCODINGS.contains(&name.to_ascii_lowercase().as_str())).then_some(name)
}

fn too_long(path: &Path) -> Error {
    Error::limit(path, format!("an XML tag or text is longer than {MAX_TEXT} bytes"))
}

/// `text` between quotation marks, cut where it is long.
fn quote(text: &str) -> String {
    let short: String = text.chars().take(MAX_QUOTE).flat_map(char::escape_debug).collect();
    let more = if text.chars().nth(MAX_QUOTE).is_some() { "…" } else { "" };
    format!("`{short}{more}`")
}

/// Counts lines, and bytes of one event.
struct Metered {
    input: Input,
    n_event: usize,
    /// What went wrong below the parser, which cannot carry it.
    failure: Option<Error>,
}

impl Read for Metered {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n_bytes = self.fill_buf()?.read(buffer)?;
        self.consume(n_bytes);
        Ok(n_bytes)
    }
}

impl BufRead for Metered {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.n_event > MAX_TEXT {
            self.failure = Some(too_long(self.input.path()));
            return Err(io::ErrorKind::Other.into());
        }
        if let Err(error) = self.input.reader.fill_buf() {
            if error.kind() != io::ErrorKind::Interrupted {
                self.failure = Some(self.input.read_error(error));
                return Err(io::ErrorKind::Other.into());
            }
            return Err(error);
        }
        Ok(self.input.reader.buffer())
    }

    fn consume(&mut self, n_bytes: usize) {
        let consumed = &self.input.reader.buffer()[..n_bytes];
        self.input.n_lines += consumed.iter().filter(|&&byte| byte == b'\n').count() as u64;
        self.n_event += n_bytes;
        self.input.reader.consume(n_bytes);
    }
}

#[cfg(test)]
mod tests;
