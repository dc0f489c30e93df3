//! brat standoff: a `.txt` and an `.ann` file per document, offsets in code points.
//!
//! | line | becomes |
//! | --- | --- |
//! | `T1⇥Disease 0 4;9 12⇥text` | an annotation with key `T1` |
//! | `N1⇥Reference T1 MESH:D003920⇥name` | an id of the annotation |
//! | `A1⇥Category T1 Modifier`, `M1⇥Negation T1` | an attribute of the annotation, relation or event; without value it is empty |
//! | `#1⇥AnnotatorNotes T1⇥text` | an attribute as well |
//! | `R1⇥Cause Arg1:T1 Arg2:T2`, `E1⇥Bind:T1 Theme:T2` | a relation with key and roles; the trigger is the first argument |
//! | `*⇥Equiv T1 T2` | a relation with key `*` |
//!
//! The lines are kept with the document. If nothing changed they are written as read; otherwise all lines are
//! generated: annotations with their ids and attributes, then relations. A mention across a line break is written in
//! fragments, as brat does. Attribute values with white space become notes. Not representable: scores, candidates,
//! names of parts, sections, document attributes, and relations between anything but annotations. `annotation.conf` is
//! neither read nor written.

mod write;

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::corpus::check::{Checker, Located, quote};
use crate::corpus::{
    AnnotatedDocument, Annotation, Argument, Attribute, CorpusFormat, MAX_DOCUMENT_BYTES, Relation, Residue, plain,
};
use crate::input::Input;
use crate::text::offsets::OffsetMap;
use crate::{Error, Result};

pub(super) use write::{is_split, supported_relations, supports_type, write};

/// Reader of one text file with its annotations.
pub(super) struct Documents {
    text: Input,
    annotations: Option<Input>,
    is_read: bool,
}

impl Documents {
    pub fn new(text: Input, annotations: Option<Input>) -> Documents {
        Documents { text, annotations, is_read: false }
    }

    /// The document; `None` after it.
    pub fn read_next(&mut self, checker: &mut Checker) -> Result<Option<AnnotatedDocument>> {
        if std::mem::replace(&mut self.is_read, true) {
            return Ok(None);
        }
        let mut read = plain::read(&mut self.text)?;
        let Some(input) = &mut self.annotations else { return Ok(Some(read)) };
        let path = input.path().to_path_buf();
        let lines = read_lines(input)?;
        let parsed = parse(&path, &lines)?;
        let map = OffsetMap::new(&read.document.text);
        let found = checker.locate_all(&path, &read.document, &map, &parsed.located())?;
        for (mut annotation, spans) in parsed.annotations.into_iter().zip(found) {
            if let Some(spans) = spans {
                annotation.spans = spans;
                read.annotations.push(annotation);
            }
        }
        read.relations = parsed.relations;
        let content = Value::from(lines);
        read.residue = Some(Box::new(Residue { format: CorpusFormat::Brat, content }));
        Ok(Some(read))
    }
}

fn read_lines(input: &mut Input) -> Result<Vec<String>> {
    let mut lines = Vec::new();
    let mut n_bytes = 0;
    let path = input.path().to_path_buf();
    while let Some((_, line)) = input.next_line()? {
        n_bytes += line.len() + 1;
        if n_bytes > MAX_DOCUMENT_BYTES {
            return Err(Error::limit(&path, format!("annotations are limited to {MAX_DOCUMENT_BYTES} bytes")));
        }
        lines.push(line.to_owned());
    }
    Ok(lines)
}

/// Parsed lines, with the spans of each annotation as written and its line number.
#[derive(Default)]
struct Parsed {
    annotations: Vec<Annotation>,
    spans: Vec<(u64, Vec<(u64, u64)>)>,
    relations: Vec<Relation>,
    /// Index of the annotation or relation by key.
    targets: HashMap<String, Target>,
}

#[derive(Clone, Copy)]
enum Target {
    Annotation(usize),
    Relation(usize),
}

impl Parsed {
    fn located(&self) -> Vec<Located<'_>> {
        let rows = self.annotations.iter().zip(&self.spans);
        rows.map(|(annotation, (line, spans))| Located { line: *line, spans, text: Some(&annotation.text) }).collect()
    }
}

/// A line about an annotation or relation, which may come before it.
struct Remark<'a> {
    number: u64,
    target: &'a str,
    content: RemarkContent<'a>,
}

enum RemarkContent<'a> {
    Id(&'a str),
    Attribute(&'a str, &'a str),
}

fn parse(path: &Path, lines: &[String]) -> Result<Parsed> {
    let mut parser = Parser { path: path.to_path_buf(), parsed: Parsed::default() };
    let mut remarks = Vec::new();
    for (line, number) in lines.iter().zip(1..) {
        if !line.trim().is_empty() {
            remarks.extend(parser.line(number, line)?);
        }
    }
    for remark in remarks {
        parser.remark(&remark)?;
    }
    Ok(parser.parsed)
}

struct Parser {
    path: PathBuf,
    parsed: Parsed,
}

impl Parser {
    fn error(&self, number: u64, message: String) -> Error {
        Error::parse(&self.path, number, message)
    }

    fn line<'a>(&mut self, number: u64, line: &'a str) -> Result<Option<Remark<'a>>> {
        let (key, rest) = line
            .split_once('\t')
            .ok_or_else(|| self.error(number, format!("expected tab-separated columns, found {}", quote(line))))?;
        let (head, tail) = rest.split_once('\t').unwrap_or((rest, ""));
        let (kind, after) = head.split_once(' ').unwrap_or((head, ""));
        let (target, value) = after.split_once(' ').unwrap_or((after, ""));
        let remark = |content| Ok(Some(Remark { number, target, content }));
        match key.as_bytes().first() {
            Some(b'T') => {
                let spans = self.spans(number, after)?;
                let annotation = Annotation {
                    key: key.to_owned(),
                    text: tail.to_owned(),
                    semantic_type: kind.to_owned(),
                    ..Annotation::default()
                };
                self.keep(number, key, Target::Annotation(self.parsed.annotations.len()))?;
                self.parsed.annotations.push(annotation);
                self.parsed.spans.push((number, spans));
                Ok(None)
            }
            Some(b'N') => remark(RemarkContent::Id(value)),
            Some(b'A' | b'M') => remark(RemarkContent::Attribute(kind, value)),
            Some(b'#') => remark(RemarkContent::Attribute(kind, tail)),
            Some(b'R' | b'E' | b'*') => {
                let relation = relation(key, head);
                if key != "*" {
                    self.keep(number, key, Target::Relation(self.parsed.relations.len()))?;
                }
                self.parsed.relations.push(relation);
                Ok(None)
            }
            _ => {
                let message = format!("unknown brat annotation {}", quote(key));
                Err(self.error(number, message).with_hint("lines start with T, N, A, M, R, E, * or #, and a number"))
            }
        }
    }

    /// Registers the annotation or relation `key`.
    fn keep(&mut self, number: u64, key: &str, target: Target) -> Result<()> {
        match self.parsed.targets.insert(key.to_owned(), target) {
            None => Ok(()),
            Some(_) => Err(self.error(number, format!("duplicate key {}", quote(key)))),
        }
    }

    /// Parses `0 4;9 12`.
    fn spans(&self, number: u64, text: &str) -> Result<Vec<(u64, u64)>> {
        let pair = |pair: &str| {
            let (start, end) = pair.split_once(' ')?;
            let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
            (digits(start) && digits(end)).then_some((start.parse().ok()?, end.parse().ok()?))
        };
        let spans: Option<Vec<(u64, u64)>> = text.split(';').map(pair).collect();
        spans.ok_or_else(|| {
            self.error(number, format!("invalid offsets {}", quote(text)))
                .with_hint("an annotation is `T1`, its type with start and end, and its text, separated by tabs")
        })
    }

    fn remark(&mut self, remark: &Remark<'_>) -> Result<()> {
        let Some(&target) = self.parsed.targets.get(remark.target) else {
            let message = format!("{} refers to {}, which does not exist", remark.kind(), quote(remark.target));
            return Err(self.error(remark.number, message).with_hint("remove the line, or refer to another key"));
        };
        let attribute = |name: &str, value: &str| Attribute { name: name.to_owned(), value: value.to_owned() };
        match (target, &remark.content) {
            (Target::Annotation(row), RemarkContent::Id(id)) => self.parsed.annotations[row].ids.push((*id).to_owned()),
            (Target::Annotation(row), RemarkContent::Attribute(name, value)) => {
                self.parsed.annotations[row].attributes.push(attribute(name, value));
            }
            // Events are referred to by their triggers; an id of an event is kept as an attribute.
            (Target::Relation(row), RemarkContent::Id(id)) => {
                self.parsed.relations[row].attributes.push(attribute("Reference", id))
            }
            (Target::Relation(row), RemarkContent::Attribute(name, value)) => {
                self.parsed.relations[row].attributes.push(attribute(name, value));
            }
        }
        Ok(())
    }
}

impl Remark<'_> {
    fn kind(&self) -> &'static str {
        match self.content {
            RemarkContent::Id(_) => "an id",
            RemarkContent::Attribute(..) => "an attribute or note",
        }
    }
}

/// Parses `Cause Arg1:T1 Arg2:T2`, `Bind:T1 Theme:T2` or `Equiv T1 T2`.
fn relation(key: &str, head: &str) -> Relation {
    let mut words = head.split(' ').filter(|word| !word.is_empty());
    let argument = |word: &str| {
        let (role, target) = word.split_once(':').unwrap_or(("", word));
        Argument { role: role.to_owned(), target: target.to_owned() }
    };
    let mut arguments = Vec::new();
    let mut kind = words.next().unwrap_or_default();
    if key.starts_with('E') {
        let trigger = argument(kind);
        kind = kind.split_once(':').map_or(kind, |(kind, _)| kind);
        arguments.push(trigger);
    }
    arguments.extend(words.map(argument));
    Relation { key: key.to_owned(), kind: kind.to_owned(), arguments, attributes: Vec::new() }
}

#[cfg(test)]
mod tests;
