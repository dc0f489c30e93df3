//! Limits and line numbers for the RDF readers.
//!
//! The RDF readers process one element at a time, but limit neither its size nor its depth, expand nested entities
//! without bound, and accept truncated XML.

use std::cell::RefCell;
use std::io::{self, BufRead, Read};
use std::rc::Rc;

use crate::input::Input;

/// Maximum number of bytes between two triples: the longest element, literal or statement.
const MAX_BYTES: usize = 1 << 20;

/// Maximum depth of RDF/XML elements.
const MAX_DEPTH: usize = 512;

/// Maximum size of the document type declaration.
const MAX_DOCTYPE_BYTES: usize = 64 << 10;

/// Maximum size of an entity value after expansion.
const MAX_ENTITY_BYTES: usize = 256;

/// Start of an entity declaration.
const ENTITY: &[u8] = b"<!ENTITY";

/// State shared with the consumer of the triples.
#[derive(Debug, Default)]
pub(super) struct State {
    /// Number of line ends passed to the reader.
    pub n_lines: u64,
    /// Bytes since the last triple.
    n_bytes: usize,
    /// Message about the exceeded limit.
    pub refusal: Option<String>,
    position: Position,
    /// Number of open elements.
    depth: usize,
    /// The document type declaration so far.
    doctype: Vec<u8>,
    /// Number of trailing bytes that match [`ENTITY`].
    n_matched: usize,
}

impl State {
    /// Whether all elements are closed.
    pub fn is_whole(&self) -> bool {
        self.depth == 0 && self.position == Position::Text
    }

    /// Resets the byte limit after a triple.
    pub fn forget_bytes(&mut self) {
        self.n_bytes = 0;
    }
}

/// State of the XML scanner after the last byte.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Position {
    #[default]
    Text,
    /// After `<`.
    Open,
    /// In a start tag; whether the last byte was a slash.
    Start {
        slash: bool,
    },
    /// In an attribute value with this quote.
    Value(u8),
    End,
    /// After `<!` and this many further bytes.
    Bang(u8),
    /// In a comment, after this many hyphens.
    Comment(u8),
    /// In a CDATA section, after this many brackets.
    Literal(u8),
    /// In the document type declaration; whether in the internal subset (brackets).
    Declarations {
        list: bool,
    },
    Instruction {
        question: bool,
    },
}

/// Passes a file to the reader line by line, so that the line of each triple is known.
pub(super) struct Guard<'a> {
    input: &'a mut Input,
    state: Rc<RefCell<State>>,
    xml: bool,
}

impl<'a> Guard<'a> {
    /// A guard for RDF/XML if `xml`, else for Turtle.
    pub fn new(input: &'a mut Input, state: Rc<RefCell<State>>, xml: bool) -> Guard<'a> {
        Guard { input, state, xml }
    }
}

impl Read for Guard<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut state = self.state.borrow_mut();
        let there = self.input.fill_buf()?;
        let line = there.iter().position(|byte| *byte == b'\n').map_or(there.len(), |at| at + 1);
        let n_bytes = line.min(buffer.len());
        buffer[..n_bytes].copy_from_slice(&there[..n_bytes]);
        self.input.consume(n_bytes);
        state.n_bytes += n_bytes;
        if state.n_bytes > MAX_BYTES {
            state.refusal = Some(format!("a statement or an element is longer than {MAX_BYTES} bytes"));
        } else if self.xml {
            state.xml(&buffer[..n_bytes]);
        }
        if state.refusal.is_some() {
            return Err(io::Error::other("a limit was passed"));
        }
        state.n_lines += u64::from(buffer[..n_bytes].ends_with(b"\n"));
        Ok(n_bytes)
    }
}

impl State {
    /// Tracks elements through more bytes.
    fn xml(&mut self, bytes: &[u8]) {
        for byte in bytes {
            if matches!(self.position, Position::Declarations { .. }) {
                self.doctype.push(*byte);
            }
            // If the reader found the end of the declaration elsewhere, it could see entities after it, so they are
            // searched everywhere.
            self.n_matched = match *byte {
                byte if byte == ENTITY[self.n_matched] => self.n_matched + 1,
                byte => usize::from(byte == ENTITY[0]),
            };
            if self.n_matched == ENTITY.len() {
                self.n_matched = 0;
                if !matches!(self.position, Position::Declarations { list: true }) {
                    self.refusal = Some("an entity is declared outside the document type declaration".to_owned());
                }
            }
            self.position = self.next(*byte);
        }
        if self.depth > MAX_DEPTH {
            self.refusal = Some(format!("elements are nested deeper than {MAX_DEPTH}"));
        }
        if self.doctype.len() > MAX_DOCTYPE_BYTES {
            self.refusal = Some(format!("the document type declaration is longer than {MAX_DOCTYPE_BYTES} bytes"));
        }
    }

    fn next(&mut self, byte: u8) -> Position {
        match (self.position, byte) {
            (Position::Text, b'<') => Position::Open,
            (Position::Text, _) => Position::Text,
            (Position::Open, b'/') => Position::End,
            (Position::Open, b'!') => Position::Bang(0),
            (Position::Open, b'?') => Position::Instruction { question: false },
            (Position::Open, _) => {
                self.depth += 1;
                Position::Start { slash: false }
            }
            (Position::Start { slash }, b'>') => {
                self.depth -= usize::from(slash);
                Position::Text
            }
            (Position::Start { .. }, b'"' | b'\'') => Position::Value(byte),
            (Position::Start { .. }, _) => Position::Start { slash: byte == b'/' },
            (Position::Value(quote), _) if byte == quote => Position::Start { slash: false },
            (Position::Value(quote), _) => Position::Value(quote),
            (Position::End, b'>') => {
                self.depth = self.depth.saturating_sub(1);
                Position::Text
            }
            (Position::End, _) => Position::End,
            (Position::Bang(0), b'-') => Position::Bang(1),
            (Position::Bang(1), b'-') => Position::Comment(0),
            (Position::Bang(0), b'[') => Position::Literal(0),
            // Other declarations occur only inside the document type declaration.
            (Position::Bang(_), _) => {
                self.doctype.push(byte);
                Position::Declarations { list: false }
            }
            (Position::Comment(2), b'>') => Position::Text,
            (Position::Comment(n), b'-') => Position::Comment((n + 1).min(2)),
            (Position::Comment(_), _) => Position::Comment(0),
            (Position::Literal(2), b'>') => Position::Text,
            (Position::Literal(n), b']') => Position::Literal((n + 1).min(2)),
            (Position::Literal(_), _) => Position::Literal(0),
            (Position::Declarations { list: false }, b'>') => {
                self.check_entities();
                Position::Text
            }
            (Position::Declarations { list }, _) => {
                Position::Declarations { list: (list || byte == b'[') && byte != b']' }
            }
            (Position::Instruction { question: true }, b'>') => Position::Text,
            (Position::Instruction { .. }, _) => Position::Instruction { question: byte == b'?' },
        }
    }

    /// Rejects entities that would expand to long values, without expanding them.
    fn check_entities(&mut self) {
        let text = String::from_utf8_lossy(&self.doctype);
        let mut lengths: std::collections::HashMap<&str, usize> = std::collections::HashMap::new();
        for declaration in text.split("<!ENTITY").skip(1) {
            let declaration = declaration.trim_start().trim_start_matches('%').trim_start();
            let Some((name, rest)) = declaration.split_once(char::is_whitespace) else { continue };
            let quoted = rest.trim_start();
            let Some(quote) = quoted.chars().next().filter(|quote| matches!(quote, '"' | '\'')) else { continue };
            let value = quoted[1..].split(quote).next().unwrap_or_default();
            let references = value.split('&').skip(1).filter_map(|rest| rest.split(';').next());
            let expanded: usize = references.map(|name| lengths.get(name).copied().unwrap_or(1)).sum();
            let length = value.len().saturating_add(expanded);
            if length > MAX_ENTITY_BYTES {
                self.refusal = Some(format!("entity `{name}` expands to more than {MAX_ENTITY_BYTES} bytes"));
                return;
            }
            lengths.insert(name, length);
        }
    }
}
