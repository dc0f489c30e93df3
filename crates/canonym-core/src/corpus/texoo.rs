//! TeXoo documents: one JSON object with a list of documents.
//!
//! Offsets are UTF-16 units, as in Java. An unchanged document is written as read, including unknown fields; members
//! after the list of documents are dropped. For a linked mention the best concept is written as `refId`, with source
//! `PRED`; a discontinuous mention is written as its hull.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::Result;
use crate::corpus::bioc::Infons;
use crate::corpus::check::{Checker, Located};
use crate::corpus::format::Frame;
use crate::corpus::json_stream::JsonStream;
use crate::corpus::{AnnotatedDocument, Annotation, Attribute, CorpusFormat, Residue};
use crate::input::Input;
use crate::numbers::rounded;
use crate::text::offsets::OffsetMap;
use crate::text::{Document, Section, Span};

/// Source of manual annotations.
const GOLD: &str = "GOLD";

/// Source of predicted annotations.
const PREDICTED: &str = "PRED";

/// Class of mentions.
const CLASS: &str = "NamedEntityAnnotation";

/// A document; field order as in TeXoo.
#[derive(Clone, Default, Serialize, Deserialize)]
#[serde(default)]
struct TexooDocument {
    begin: u64,
    length: u64,
    text: String,
    id: Option<String>,
    title: Option<String>,
    language: Option<String>,
    #[serde(rename = "type")]
    kind: Option<String>,
    annotations: Vec<TexooAnnotation>,
    #[serde(skip_serializing_if = "Option::is_none")]
    class: Option<String>,
    #[serde(flatten)]
    extra: Map<String, Value>,
}

#[derive(Clone, Default, Serialize, Deserialize)]
#[serde(default)]
struct TexooAnnotation {
    begin: u64,
    length: u64,
    text: Option<String>,
    source: Option<String>,
    confidence: f64,
    #[serde(rename = "refId")]
    concept: Option<String>,
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    kind: Option<String>,
    class: Option<String>,
    candidates: Vec<Value>,
    #[serde(flatten)]
    extra: Map<String, Value>,
}

/// Residue of a document.
#[derive(Default, Serialize, Deserialize)]
struct Kept {
    /// The members of the corpus before its documents; only with the first document.
    head: Option<Infons>,
    /// The document as in its file.
    source: String,
}

/// Reader of documents.
pub(super) struct Documents {
    pieces: JsonStream,
    n_documents: u64,
}

impl Documents {
    pub fn new(input: Input) -> Result<Documents> {
        Ok(Documents { pieces: JsonStream::new(input, &["documents"], "text"), n_documents: 0 })
    }

    /// A measure of progress that increases while reading.
    pub fn n_passed(&self) -> u64 {
        self.pieces.n_bytes()
    }

    /// The next document, `None` at the end. After a malformed document, the next call returns the one after it.
    pub fn read_next(&mut self, checker: &mut Checker) -> Result<Option<AnnotatedDocument>> {
        let Some(value) = self.pieces.next_value()? else { return Ok(None) };
        self.n_documents += 1;
        let input = self.pieces.input();
        let mut parsed: TexooDocument =
            serde_json::from_str(&value.text).map_err(|error| value.json_error(input, &error))?;
        let mut read = skeleton(&parsed);
        if read.document.id.is_empty() {
            read.document.id = self.n_documents.to_string();
        }
        let n_annotations = parsed.annotations.len();
        let map = OffsetMap::new(&read.document.text);
        let mut annotations = Vec::new();
        let mut failure = None;
        parsed.annotations.retain(|annotation| {
            let span = code_points(&map, annotation.begin, annotation.length);
            let located = Located { line: value.line, spans: &[span], text: annotation.text.as_deref() };
            match checker.locate(input.path(), &read.document, &map, &located) {
                Ok(Some(spans)) => annotations.push(interpret(annotation, spans, &read.document.text)),
                Ok(None) => return false,
                Err(error) => failure = failure.take().or(Some(error)),
            }
            true
        });
        if let Some(error) = failure {
            return Err(error);
        }
        read.annotations = annotations;
        let left_out = parsed.annotations.len() < n_annotations;
        let source = if left_out { pretty(&parsed) } else { value.text };
        let head = if self.n_documents == 1 { serde_json::from_str(&self.pieces.head).ok() } else { None };
        let content = serde_json::to_string(&Kept { head, source }).expect("texts in memory are always JSON");
        read.residue = Some(Box::new(Residue { format: CorpusFormat::Texoo, content: Value::String(content) }));
        Ok(Some(read))
    }
}

/// The document without annotations.
fn skeleton(parsed: &TexooDocument) -> AnnotatedDocument {
    let text = parsed.text.clone();
    let sections: Vec<Section> = Vec::new();
    let document = Document { id: parsed.id.clone().unwrap_or_default(), text, sections };
    let named = [("title", &parsed.title), ("language", &parsed.language), ("type", &parsed.kind)];
    let given = named.into_iter().filter_map(|(name, value)| Some((name, value.clone()?)));
    let attributes = given.map(|(name, value)| Attribute { name: name.to_owned(), value }).collect();
    AnnotatedDocument { document, attributes, ..AnnotatedDocument::default() }
}

/// Converts a range of UTF-16 units to code points; an invalid range is located past the end of the text.
fn code_points(map: &OffsetMap<'_>, begin: u64, length: u64) -> (u64, u64) {
    let code_point = |unit: u64| map.byte_to_char(map.utf16_to_byte(usize::try_from(unit).ok()?)?);
    let found = code_point(begin).zip(begin.checked_add(length).and_then(code_point));
    let beyond = begin.saturating_add(map.n_utf16() as u64);
    found.map_or((beyond, beyond.saturating_add(length.max(1))), |(start, end)| (start as u64, end as u64))
}

fn interpret(annotation: &TexooAnnotation, spans: Vec<Span>, text: &str) -> Annotation {
    let predicted = annotation.source.as_deref().is_some_and(|source| source == PREDICTED);
    let attribute = |name: &str, value: &String| Attribute { name: name.to_owned(), value: value.clone() };
    // A score implies a predicted annotation.
    let source = annotation.source.as_ref().filter(|_| !predicted).map(|source| attribute("source", source));
    let class = annotation.class.as_ref().filter(|class| *class != CLASS).map(|class| attribute("class", class));
    let attributes = [source, class];
    Annotation {
        text: annotation.text.clone().unwrap_or_else(|| spans[0].of(text).to_owned()),
        spans,
        semantic_type: annotation.kind.clone().unwrap_or_default(),
        ids: annotation.concept.iter().cloned().collect(),
        score: predicted.then_some(annotation.confidence as f32),
        nil: predicted && annotation.concept.is_none(),
        attributes: attributes.into_iter().flatten().collect(),
        ..Annotation::default()
    }
}

fn kept_of(annotated: &AnnotatedDocument) -> Option<Kept> {
    let residue = annotated.residue.as_ref().filter(|residue| residue.format == CorpusFormat::Texoo)?;
    serde_json::from_str(residue.content.as_str()?).ok()
}

/// Appends one document to `out`.
pub(super) fn write(annotated: &AnnotatedDocument, out: &mut Vec<u8>) -> Result<()> {
    let kept = kept_of(annotated).unwrap_or_default();
    let source: Option<TexooDocument> = serde_json::from_str(&kept.source).ok();
    let source = source.filter(|source| source.text == annotated.document.text);
    let map = OffsetMap::new(&annotated.document.text);
    let originals: Vec<Option<Annotation>> = source
        .iter()
        .flat_map(|source| &source.annotations)
        .map(|one| original(one, &map, &annotated.document.text))
        .collect();
    let is_same = originals.len() == annotated.annotations.len()
        && originals.iter().zip(&annotated.annotations).all(|(one, other)| one.as_ref() == Some(other));
    if source.is_some() && is_same {
        out.extend_from_slice(kept.source.as_bytes());
        return Ok(());
    }
    let is_new = source.is_none();
    let mut written = source.unwrap_or_default();
    if is_new {
        written.length = map.n_utf16() as u64;
        written.text.clone_from(&annotated.document.text);
        written.id = Some(annotated.document.id.clone());
        written.class = Some("Document".to_owned());
        for one in &annotated.attributes {
            match one.name.as_str() {
                "title" => written.title = Some(one.value.clone()),
                "language" => written.language = Some(one.value.clone()),
                "type" => written.kind = Some(one.value.clone()),
                _ => {}
            }
        }
    }
    let sources = std::mem::take(&mut written.annotations);
    let unchanged = |one: &Annotation| originals.iter().position(|original| original.as_ref() == Some(one));
    let text = &annotated.document.text;
    let annotation = |one| unchanged(one).map_or_else(|| fresh(one, &map, text), |at| sources[at].clone());
    written.annotations = annotated.annotations.iter().map(annotation).collect();
    out.extend_from_slice(pretty(&written).as_bytes());
    Ok(())
}

fn original(annotation: &TexooAnnotation, map: &OffsetMap<'_>, text: &str) -> Option<Annotation> {
    let byte = |unit: u64| map.utf16_to_byte(usize::try_from(unit).ok()?);
    let span = Span::new(byte(annotation.begin)?, byte(annotation.begin.checked_add(annotation.length)?)?);
    Some(interpret(annotation, vec![span], text))
}

fn fresh(annotation: &Annotation, map: &OffsetMap<'_>, text: &str) -> TexooAnnotation {
    let hull = annotation.hull();
    let unit = |byte: u32| map.byte_to_utf16(byte as usize).expect("spans lie on character boundaries") as u64;
    let linked = annotation.is_linked();
    let best = annotation.candidates.first().map(|best| best.id.clone());
    let ids = || (!annotation.ids.is_empty()).then(|| annotation.ids.join("|"));
    let named = |name: &str, usual: &str| {
        let found = annotation.attributes.iter().find(|one| one.name == name);
        Some(found.map_or(usual, |one| &one.value).to_owned())
    };
    TexooAnnotation {
        begin: unit(hull.start),
        length: unit(hull.end) - unit(hull.start),
        text: Some(hull.of(text).to_owned()),
        source: named("source", if linked { PREDICTED } else { GOLD }),
        confidence: annotation.score.map_or(1.0, rounded),
        concept: best.or_else(ids).filter(|_| !annotation.nil),
        kind: (!annotation.semantic_type.is_empty()).then(|| annotation.semantic_type.clone()),
        class: named("class", CLASS),
        ..TexooAnnotation::default()
    }
}

/// A document, formatted as an item of the corpus list.
fn pretty(document: &TexooDocument) -> String {
    let text = serde_json::to_string_pretty(document).expect("texts and numbers in memory are always JSON");
    text.replace('\n', "\n    ")
}

/// Text before, between and after documents.
pub(super) fn frame(first: Option<&AnnotatedDocument>) -> Frame {
    let kept = first.and_then(kept_of).unwrap_or_default();
    let is_compact = !kept.source.is_empty() && !kept.source.contains('\n');
    let mut head = kept.head.unwrap_or_default();
    if head.0.is_empty() {
        head.push("name", "canonym");
    }
    let (line, colon) = if is_compact { ("", ":") } else { ("\n  ", ": ") };
    let mut before = String::from("{");
    for (name, value) in &head.0 {
        let name = Value::from(name.as_str());
        before.push_str(&format!("{line}{name}{colon}{value},"));
    }
    before.push_str(&format!("{line}\"documents\"{colon}["));
    if is_compact {
        return Frame { before: before.into_bytes(), between: b",", after: b"],\"queries\":[]}" };
    }
    before.push_str("\n    ");
    Frame { before: before.into_bytes(), between: b",\n    ", after: b"\n  ],\n  \"queries\": []\n}" }
}
