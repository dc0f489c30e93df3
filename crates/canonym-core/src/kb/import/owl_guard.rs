//! Limits and line numbers for the RDF readers.
//!
//! The RDF readers process one element at a time, but limit neither its size nor its depth, expand nested entities
//! without bound, and accept truncated XML.

use std::cell::RefCell;
use std::io::{self, BufRead, Read};
use std::rc::Rc;

use crate::input::Input;

/// Maximum number of bytes between two triples: the longest element, literal or statement.
const MOST_BYTES: usize = 1 << 20;

/// Maximum depth of RDF/XML elements.
const MOST_DEPTH: usize = 512;

/// Maximum size of the document type declaration.
const MOST_DOCTYPE: usize = 64 << 10;

/// Maximum size of an entity value after expansion.
const MOST_ENTITY: usize = 256;

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
    place: Place,
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
        self.depth == 0 && self.place == Place::Text
    }

    /// Resets the byte limit after a triple.
    pub fn forget_bytes(&mut self) {
        self.n_bytes = 0;
    }
}

/// State of the XML scanner after the last byte.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Place {
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
        if state.n_bytes > MOST_BYTES {
            state.refusal = Some(format!("a statement or an element is longer than {MOST_BYTES} bytes"));
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
            if matches!(self.place, Place::Declarations { .. }) {
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
                if !matches!(self.place, Place::Declarations { list: true }) {
                    self.refusal = Some("an entity is declared outside the document type declaration".to_owned());
                }
            }
            self.place = self.next(*byte);
        }
        if self.depth > MOST_DEPTH {
            self.refusal = Some(format!("elements are nested deeper than {MOST_DEPTH}"));
        }
        if self.doctype.len() > MOST_DOCTYPE {
            self.refusal = Some(format!("the document type declaration is longer than {MOST_DOCTYPE} bytes"));
        }
    }

    fn next(&mut self, byte: u8) -> Place {
        match (self.place, byte) {
            (Place::Text, b'<') => Place::Open,
            (Place::Text, _) => Place::Text,
            (Place::Open, b'/') => Place::End,
            (Place::Open, b'!') => Place::Bang(0),
            (Place::Open, b'?') => Place::Instruction { question: false },
            (Place::Open, _) => {
                self.depth += 1;
                Place::Start { slash: false }
            }
            (Place::Start { slash }, b'>') => {
                self.depth -= usize::from(slash);
                Place::Text
            }
            (Place::Start { .. }, b'"' | b'\'') => Place::Value(byte),
            (Place::Start { .. }, _) => Place::Start { slash: byte == b'/' },
            (Place::Value(quote), _) if byte == quote => Place::Start { slash: false },
            (Place::Value(quote), _) => Place::Value(quote),
            (Place::End, b'>') => {
                self.depth = self.depth.saturating_sub(1);
                Place::Text
            }
            (Place::End, _) => Place::End,
            (Place::Bang(0), b'-') => Place::Bang(1),
            (Place::Bang(1), b'-') => Place::Comment(0),
            (Place::Bang(0), b'[') => Place::Literal(0),
            // Other declarations occur only inside the document type declaration.
            (Place::Bang(_), _) => {
                self.doctype.push(byte);
                Place::Declarations { list: false }
            }
            (Place::Comment(2), b'>') => Place::Text,
            (Place::Comment(n), b'-') => Place::Comment((n + 1).min(2)),
            (Place::Comment(_), _) => Place::Comment(0),
            (Place::Literal(2), b'>') => Place::Text,
            (Place::Literal(n), b']') => Place::Literal((n + 1).min(2)),
            (Place::Literal(_), _) => Place::Literal(0),
            (Place::Declarations { list: false }, b'>') => {
                self.check_entities();
                Place::Text
            }
            (Place::Declarations { list }, _) => Place::Declarations { list: (list || byte == b'[') && byte != b']' },
            (Place::Instruction { question: true }, b'>') => Place::Text,
            (Place::Instruction { .. }, _) => Place::Instruction { question: byte == b'?' },
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
            if length > MOST_ENTITY {
                self.refusal = Some(format!("entity `{name}` expands to more than {MOST_ENTITY} bytes"));
                return;
            }
            lengths.insert(name, length);
        }
    }
}
