//! Writes the `.ann` file of a document.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use crate::Result;
use crate::corpus::check::{Located, column, find_spans};
use crate::corpus::{AnnotatedDocument, Annotation, Attribute, CorpusFormat, Relation};
use crate::text::Span;
use crate::text::offsets::OffsetMap;

/// Written for a missing type of an annotation or kind of a relation, which brat requires.
const NO_TYPE: &str = "Entity";

/// Written for a mention that a system did not link.
const NO_CONCEPT: &str = "-1";

/// Appends the annotations of one document to `out`.
pub(in crate::corpus) fn write(annotated: &AnnotatedDocument, out: &mut Vec<u8>) -> Result<()> {
    if let Some(lines) = unchanged_lines(annotated) {
        for line in lines {
            out.extend_from_slice(line.as_bytes());
            out.push(b'\n');
        }
        return Ok(());
    }
    let mut writer = LineWriter::new(annotated);
    let keys = writer.keys(annotated);
    for (annotation, key) in annotated.annotations.iter().zip(&keys) {
        writer.annotation(annotation, key)?;
    }
    for relation in supported_relations(annotated) {
        writer.relation(relation)?;
    }
    for line in writer.lines {
        out.extend_from_slice(line.as_bytes());
        out.push(b'\n');
    }
    Ok(())
}

/// The lines of the source, if they still represent the document.
fn unchanged_lines(annotated: &AnnotatedDocument) -> Option<Vec<String>> {
    let residue = annotated.residue.as_ref().filter(|residue| residue.format == CorpusFormat::Brat)?;
    let line = |value: &serde_json::Value| value.as_str().map(str::to_owned);
    let lines: Vec<String> = residue.content.as_array()?.iter().map(line).collect::<Option<_>>()?;
    let mut parsed = super::parse(Path::new(""), &lines).ok()?;
    let text = &annotated.document.text;
    let map = OffsetMap::new(text);
    // If texts differ only in spelling, the text of the span is ignored.
    let located = parsed.located();
    let spans = located.iter().map(|located| find_spans(text, &map, &Located { text: None, ..*located }));
    let spans: Vec<Vec<Span>> = spans.collect::<std::result::Result<_, _>>().ok()?;
    for (annotation, spans) in parsed.annotations.iter_mut().zip(spans) {
        annotation.spans = spans;
    }
    (parsed.annotations == annotated.annotations && parsed.relations == annotated.relations).then_some(lines)
}

/// The relations that brat can represent: each argument is the key of an annotation or of another relation.
pub(in crate::corpus) fn supported_relations(annotated: &AnnotatedDocument) -> Vec<&Relation> {
    let keys = annotated.annotations.iter().map(|one| one.key.as_str());
    let keys: HashSet<&str> = keys.chain(annotated.relations.iter().map(|one| one.key.as_str())).collect();
    let is_key = |target: &str| !target.is_empty() && keys.contains(target);
    let is_supported = |relation: &&Relation| {
        let has_ends = relation.arguments.len() > 1 || relation.key.starts_with('E');
        has_ends && relation.arguments.iter().all(|argument| is_key(&argument.target))
    };
    annotated.relations.iter().filter(is_supported).collect()
}

/// Whether a mention must be written in fragments because it contains a line break.
pub(in crate::corpus) fn is_split(annotation: &Annotation, text: &str) -> bool {
    annotation.spans.iter().any(|span| span.of(text).contains(['\n', '\r']))
}

/// Whether brat can represent a type unchanged.
pub(in crate::corpus) fn supports_type(semantic_type: &str) -> bool {
    !semantic_type.is_empty() && !semantic_type.contains(char::is_whitespace)
}

struct LineWriter<'a> {
    annotated: &'a AnnotatedDocument,
    map: OffsetMap<'a>,
    lines: Vec<String>,
    /// The last number used for each letter.
    numbers: HashMap<char, usize>,
    taken: HashSet<&'a str>,
}

impl<'a> LineWriter<'a> {
    fn new(annotated: &'a AnnotatedDocument) -> LineWriter<'a> {
        let keys = annotated.annotations.iter().map(|one| one.key.as_str());
        let taken = keys.chain(annotated.relations.iter().map(|one| one.key.as_str())).collect();
        let map = OffsetMap::new(&annotated.document.text);
        LineWriter { annotated, map, lines: Vec::new(), numbers: HashMap::new(), taken }
    }

    /// The next unused key with this letter.
    fn next_key(&mut self, letter: char) -> String {
        loop {
            let number = self.numbers.entry(letter).or_insert(0);
            *number += 1;
            let key = format!("{letter}{number}");
            if !self.taken.contains(key.as_str()) {
                return key;
            }
        }
    }

    /// Keys of the annotations: their own if valid in brat and unique.
    fn keys(&mut self, annotated: &AnnotatedDocument) -> Vec<String> {
        let mut used = HashSet::new();
        let mut keys = Vec::with_capacity(annotated.annotations.len());
        for annotation in &annotated.annotations {
            let is_own = is_key('T', &annotation.key) && used.insert(annotation.key.as_str());
            keys.push(if is_own { annotation.key.clone() } else { self.next_key('T') });
        }
        keys
    }

    fn annotation(&mut self, annotation: &Annotation, key: &str) -> Result<()> {
        let text = &self.annotated.document.text;
        let parts: Vec<Span> = annotation.spans.iter().flat_map(|&span| lines_of(text, span)).collect();
        let code_point =
            |byte: u32| self.map.byte_to_char(byte as usize).expect("spans lie on character boundaries of the text");
        let pair = |span: &Span| format!("{} {}", code_point(span.start), code_point(span.end));
        let spans: Vec<String> = parts.iter().map(pair).collect();
        let covered = if is_split(annotation, text) || annotation.text.is_empty() {
            parts.iter().map(|span| span.of(text)).collect::<Vec<&str>>().join(" ")
        } else {
            annotation.text.clone()
        };
        let covered = covered.replace(['\n', '\r', '\t'], " ");
        let kind = word(&annotation.semantic_type);
        self.lines.push(format!("{key}\t{kind} {}\t{covered}", spans.join(";")));
        for (id, name) in ids_of(annotation) {
            let id = column("brat", &self.annotated.document, "id", id)?.to_owned();
            let number = self.next_key('N');
            self.lines.push(format!("{number}\tReference {key} {id}\t{}", name.replace(['\n', '\r', '\t'], " ")));
        }
        self.attributes(&annotation.attributes, key)
    }

    fn attributes(&mut self, attributes: &[Attribute], key: &str) -> Result<()> {
        for attribute in attributes {
            let name = word(&attribute.name);
            let value = column("brat", &self.annotated.document, "attribute", &attribute.value)?;
            let is_note = name == "AnnotatorNotes" || value.contains(char::is_whitespace);
            let line = if is_note {
                format!("{}\t{name} {key}\t{value}", self.next_key('#'))
            } else {
                let separator = if value.is_empty() { "" } else { " " };
                format!("{}\t{name} {key}{separator}{value}", self.next_key('A'))
            };
            self.lines.push(line);
        }
        Ok(())
    }

    fn relation(&mut self, relation: &Relation) -> Result<()> {
        let kind = word(&relation.kind);
        let is_event = is_key('E', &relation.key);
        let key = match relation.key.as_str() {
            "*" => "*".to_owned(),
            key if is_event || is_key('R', key) => key.to_owned(),
            _ => self.next_key('R'),
        };
        let arguments = relation.arguments.iter().zip(1..).map(|(argument, number)| match argument.role.as_str() {
            "" if key == "*" => argument.target.clone(),
            "" => format!("Arg{number}:{}", argument.target),
            role => format!("{}:{}", word(role), argument.target),
        });
        let arguments = arguments.collect::<Vec<String>>().join(" ");
        self.lines.push(if is_event { format!("{key}\t{arguments}") } else { format!("{key}\t{kind} {arguments}") });
        self.attributes(&relation.attributes, &key)
    }
}

/// The ids of an annotation with their names, if known.
fn ids_of(annotation: &Annotation) -> Vec<(&str, &str)> {
    if annotation.nil {
        return vec![(NO_CONCEPT, "")];
    }
    match annotation.candidates.first() {
        Some(best) => vec![(&best.id, &best.name)],
        None => annotation.ids.iter().map(|id| (id.as_str(), "")).collect(),
    }
}

fn is_key(letter: char, key: &str) -> bool {
    let digits = key.strip_prefix(letter).unwrap_or_default();
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}

/// The non-empty fragments of `span` between line breaks.
fn lines_of(text: &str, span: Span) -> Vec<Span> {
    let covered = span.of(text);
    let mut start = span.start as usize;
    let mut parts = Vec::new();
    for line in covered.split_inclusive(['\n', '\r']) {
        let content = line.trim_end_matches(['\n', '\r']);
        if !content.is_empty() {
            parts.push(Span::new(start, start + content.len()));
        }
        start += line.len();
    }
    if parts.is_empty() { vec![span] } else { parts }
}

/// A name as a single word, because brat separates fields by spaces.
fn word(name: &str) -> String {
    if name.is_empty() { NO_TYPE.to_owned() } else { name.replace(char::is_whitespace, "_") }
}
