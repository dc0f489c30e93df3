//! Streaming XML reader on an [`Input`].
//!
//! Buffers are reused, so memory is bounded by the largest tag or text. The five predefined entities and character
//! references are resolved; any other entity is an error, because DTD declarations are not read. `\r\n` and `\r` become
//! `\n`, as XML requires. Comments and processing instructions are skipped. Depth and the size of a tag or text are
//! limited, and input that is not well-formed is an error with its line. Prefixes are part of names; namespaces and
//! DTDs are not processed.
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

/// Maximum depth of elements.
const MAX_DEPTH: usize = 64;

/// Maximum size of a tag, text or comment, and of the text of an element, in bytes.
const MAX_TEXT: usize = 64 << 20;

/// Names of encodings that are subsets of UTF-8.
const ENCODINGS: [&str; 4] = ["utf-8", "utf8", "us-ascii", "ascii"];

/// Maximum length of a quotation in a message, in code points.
const MAX_QUOTE: usize = 80;

/// An event of the stream.
#[derive(Debug)]
pub enum Event<'a> {
    /// Start of an element. An empty element such as `<br/>` is followed by [`Event::End`].
    Start(Element<'a>),
    /// End of the current element.
    End,
    /// Text. The text of an element may come in several events.
    Text(&'a str),
    /// The XML declaration, the content between `<?` and `?>`.
    Declaration(&'a str),
    /// The document type, the content between `<!DOCTYPE` and `>`.
    Doctype(&'a str),
    /// End of the document.
    Eof,
}

/// The start tag of an element.
#[derive(Debug, Clone, Copy)]
pub struct Element<'a> {
    content: &'a str,
    name_len: usize,
    path: &'a Path,
    line: u64,
}

/// Reads the events of an XML document.
pub struct XmlReader {
    parser: quick_xml::Reader<Metered>,
    buffer: Vec<u8>,
    /// Decoded content of the last event.
    content: String,
    depth: usize,
    /// Line on which the last event starts.
    line: u64,
    root: Root,
    broken: bool,
    escapes_quotes: bool,
}

/// State of the root element.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Root {
    Before,
    Inside,
    After,
}

/// The type of an event.
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
    /// The name, including its prefix.
    pub fn name(&self) -> &'a str {
        &self.content[..self.name_len]
    }

    /// The tag as in the source, without angle brackets and the slash of an empty element.
    pub fn raw(&self) -> &'a str {
        self.content
    }

    /// The value of an attribute; `None` if absent.
    pub fn attribute(&self, name: &str) -> Result<Option<String>> {
        let mut found = None;
        self.each_attribute(|key, value| {
            if key == name {
                found = Some(value.to_owned());
            }
        })?;
        Ok(found)
    }

    /// Names and values in source order.
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

    /// Path of the input, for messages.
    pub fn path(&self) -> &Path {
        self.parser.get_ref().input.path()
    }

    /// Line on which the last event starts, from 1.
    pub fn line(&self) -> u64 {
        self.line
    }

    /// Number of bytes read.
    pub fn n_bytes(&self) -> u64 {
        self.parser.buffer_position()
    }

    /// Number of open elements.
    pub fn depth(&self) -> usize {
        self.depth
    }

    /// Whether an error occurred after which nothing can be read.
    pub fn is_broken(&self) -> bool {
        self.broken
    }

    /// Whether a quotation mark in a text was escaped, for reproducing the layout.
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

    /// Skips the rest of the current element, including its end.
    pub fn skip_element(&mut self) -> Result<()> {
        self.skip_to(self.depth.saturating_sub(1))
    }

    /// Skips until only `depth` elements are open.
    pub fn skip_to(&mut self, depth: usize) -> Result<()> {
        while self.depth > depth {
            self.step()?;
        }
        Ok(())
    }

    /// The text of the current element and its descendants, up to its end.
    pub fn read_text(&mut self) -> Result<String> {
        let mut text = String::new();
        self.append_text(&mut text)?;
        Ok(text)
    }

    /// Like [`XmlReader::read_text`], appended to `text`.
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

    /// Converts an error of the parser.
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

/// The character of an entity or character reference.
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

/// The declared encoding, if it is not UTF-8.
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

/// `text` in quotation marks, truncated if long.
fn quote(text: &str) -> String {
    let short: String = text.chars().take(MAX_QUOTE).flat_map(char::escape_debug).collect();
    let more = if text.chars().nth(MAX_QUOTE).is_some() { "…" } else { "" };
    format!("`{short}{more}`")
}

/// Counts lines, and the bytes of an event.
struct Metered {
    input: Input,
    n_event: usize,
    /// An error of the input, which cannot pass through the parser.
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
