//! Splits a large JSON file into documents.
//!
//! The input is an object with a list of documents, a list of documents, or a sequence of documents. Documents are
//! delimited by brackets, so memory is bounded by the largest document, and a malformed one can be skipped. The members
//! of the object before the list are its header; those after it are skipped. The JSON of a document is parsed by the
//! caller.

use std::io::BufRead;

use crate::corpus::MAX_DOCUMENT_BYTES;
use crate::input::Input;
use crate::{Error, Result};

/// A JSON value and the line on which it starts.
pub(super) struct JsonValue {
    pub line: u64,
    pub text: String,
}

/// Splits an input into JSON values.
pub(super) struct JsonStream {
    input: Input,
    /// Names of the lists of documents.
    lists: &'static [&'static str],
    /// The member that marks an object as a document.
    mark: &'static str,
    state: State,
    /// Number of line ends and bytes read.
    n_lines: u64,
    n_bytes: u64,
    /// The members of the outer object before its list, as an object.
    pub head: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Before an outer value.
    Outside,
    /// In a list of documents; whether the list is a member of an object.
    List {
        in_object: bool,
    },
    Done,
}

impl JsonStream {
    pub fn new(input: Input, lists: &'static [&'static str], mark: &'static str) -> JsonStream {
        JsonStream { input, lists, mark, state: State::Outside, n_lines: 0, n_bytes: 0, head: String::new() }
    }

    /// Number of bytes read.
    pub fn n_bytes(&self) -> u64 {
        self.n_bytes
    }

    /// The input.
    pub fn input(&self) -> &Input {
        &self.input
    }

    /// The next document; `None` at the end or after an error.
    pub fn next_value(&mut self) -> Result<Option<JsonValue>> {
        let value = self.find_value();
        if value.is_err() {
            self.state = State::Done;
        }
        value
    }

    fn find_value(&mut self) -> Result<Option<JsonValue>> {
        loop {
            match (self.state, self.peek()?) {
                (State::Outside, None) if self.n_bytes == 0 => return Err(self.error("the file is empty")),
                (State::Done, _) | (State::Outside, None) => return Ok(None),
                (State::List { .. }, None) => {
                    return Err(self.error("the JSON is truncated inside a list of documents"));
                }
                (State::Outside, Some(b'[')) => {
                    self.consume();
                    self.state = State::List { in_object: false };
                }
                (State::Outside, Some(b'{')) => {
                    if let Some(value) = self.object()? {
                        return Ok(Some(value));
                    }
                }
                (State::List { .. }, Some(b',')) => self.consume(),
                (State::List { in_object }, Some(b']')) => {
                    self.consume();
                    self.state = State::Outside;
                    if in_object {
                        self.rest_of_object()?;
                    }
                }
                (State::List { .. }, Some(b'{')) => return self.value().map(Some),
                (_, Some(other)) => {
                    return Err(
                        self.error(format!("expected a document, found `{}`", char::from(other).escape_default()))
                    );
                }
            }
        }
    }

    /// Enters an outer object up to its list; an object without a list is a document.
    fn object(&mut self) -> Result<Option<JsonValue>> {
        let line = self.line();
        self.consume();
        let mut members = String::from("{");
        let mut is_document = false;
        loop {
            match self.peek()? {
                Some(b',') => self.consume(),
                Some(b'}') => {
                    self.consume();
                    members.push('}');
                    if is_document {
                        return Ok(Some(JsonValue { line, text: members }));
                    }
                    let (mark, list) = (self.mark, self.lists.first().copied().unwrap_or_default());
                    let message = format!("the object has neither `{list}` nor `{mark}`");
                    return Err(
                        Error::parse(self.input.path(), line, message).with_hint("specify the format of the file")
                    );
                }
                Some(b'"') => {
                    let key = self.key()?;
                    let name: String = serde_json::from_str(&key).map_err(|_| self.error("invalid JSON key"))?;
                    if self.lists.contains(&name.as_str()) && self.peek()? == Some(b'[') {
                        self.consume();
                        self.state = State::List { in_object: true };
                        members.push('}');
                        self.head = members;
                        return Ok(None);
                    }
                    is_document |= name == self.mark;
                    if members.len() > 1 {
                        members.push(',');
                    }
                    members.push_str(&key);
                    members.push(':');
                    members.push_str(&self.value()?.text);
                    self.check_size(members.len())?;
                }
                Some(_) => return Err(self.error("expected a quoted key")),
                None => return Err(self.error("the JSON is truncated inside an object")),
            }
        }
    }

    /// Skips the members after the list.
    fn rest_of_object(&mut self) -> Result<()> {
        loop {
            match self.peek()? {
                Some(b',') => self.consume(),
                Some(b'}') => {
                    self.consume();
                    return Ok(());
                }
                Some(b'"') => {
                    self.key()?;
                    self.value()?;
                }
                _ => return Err(self.error("the object around the documents is not closed")),
            }
        }
    }

    /// A member name with quotation marks; the colon is consumed.
    fn key(&mut self) -> Result<String> {
        let key = self.value()?.text;
        if self.peek()? != Some(b':') {
            return Err(self.error("expected `:` after a key"));
        }
        self.consume();
        Ok(key)
    }

    /// The bytes of the next value.
    fn value(&mut self) -> Result<JsonValue> {
        self.peek()?;
        let line = self.line();
        let mut bytes = Vec::new();
        let (mut depth, mut in_string, mut escaped) = (0_usize, false, false);
        loop {
            let available = match self.input.fill_buf() {
                Ok(available) => available,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(self.input.read_error(error)),
            };
            if available.is_empty() {
                let message = "the JSON value that starts here is truncated";
                return Err(
                    Error::parse(self.input.path(), line, message).with_hint("download or export the file again")
                );
            }
            let mut end = None;
            for (at, &byte) in available.iter().enumerate() {
                if in_string {
                    match byte {
                        _ if escaped => escaped = false,
                        b'\\' => escaped = true,
                        b'"' => in_string = false,
                        _ => {}
                    }
                    if !in_string && depth == 0 {
                        end = Some(at + 1);
                        break;
                    }
                    continue;
                }
                match byte {
                    b'"' => in_string = true,
                    b'{' | b'[' => depth += 1,
                    // End of the value that contains a number or literal.
                    b'}' | b']' | b',' | b' ' | b'\n' | b'\r' | b'\t' | b':' if depth == 0 => {
                        end = Some(at);
                        break;
                    }
                    b'}' | b']' => {
                        depth -= 1;
                        if depth == 0 {
                            end = Some(at + 1);
                            break;
                        }
                    }
                    _ => {}
                }
            }
            let n_bytes = end.unwrap_or(available.len());
            bytes.extend_from_slice(&available[..n_bytes]);
            self.pass(n_bytes);
            self.check_size(bytes.len())?;
            if end.is_some() {
                let text = String::from_utf8(bytes).map_err(|_| {
                    Error::parse(self.input.path(), line, "invalid UTF-8 in the JSON value that starts here")
                        .with_hint("convert the file to UTF-8")
                })?;
                return Ok(JsonValue { line, text });
            }
        }
    }

    fn check_size(&self, n_bytes: usize) -> Result<()> {
        if n_bytes <= MAX_DOCUMENT_BYTES {
            return Ok(());
        }
        let message = format!("the document at line {} is longer than {MAX_DOCUMENT_BYTES} bytes", self.line());
        Err(Error::limit(self.input.path(), message))
    }

    /// The next byte that is not white space.
    fn peek(&mut self) -> Result<Option<u8>> {
        loop {
            let available = match self.input.fill_buf() {
                Ok(available) => available,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(self.input.read_error(error)),
            };
            let n_space = available.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
            let found = available.get(n_space).copied();
            let ended = available.is_empty();
            self.pass(n_space);
            if found.is_some() || ended {
                return Ok(found);
            }
        }
    }

    fn consume(&mut self) {
        self.pass(1);
    }

    /// Consumes buffered bytes and counts lines.
    fn pass(&mut self, n_bytes: usize) {
        let buffered = self.input.fill_buf().unwrap_or_default();
        let n_bytes = n_bytes.min(buffered.len());
        self.n_lines += buffered[..n_bytes].iter().filter(|&&byte| byte == b'\n').count() as u64;
        self.n_bytes += n_bytes as u64;
        self.input.consume(n_bytes);
    }

    fn line(&self) -> u64 {
        self.n_lines + 1
    }

    fn error(&self, message: impl Into<String>) -> Error {
        Error::parse(self.input.path(), self.line(), message)
    }
}

impl JsonValue {
    /// Converts an error of `serde_json` on this value to an error at its line in the file.
    pub fn json_error(&self, input: &Input, error: &serde_json::Error) -> Error {
        let text = error.to_string();
        let what = text.rsplit_once(" at line ").map_or(text.as_str(), |(what, _)| what);
        let line = self.line + (error.line() as u64).saturating_sub(1);
        Error::parse(input.path(), line, format!("invalid document at column {}: {what}", error.column()))
    }
}
