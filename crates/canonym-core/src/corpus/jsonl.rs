//! JSON lines: one document per line, with gold annotations or the output of `canonym link`.
//!
//! `{"id": …, "text": …, "annotations": [{"spans": [[start, end], …], "text": …, "type": …, …}]}` with spans in code
//! points. `title` and `abstract`, joined by one space, can replace `text`; a missing id defaults to `pmid`, else to
//! the line number. A manual annotation has `ids` (or `id`). A predicted one has `score`, `nil` and `candidates`, and,
//! unless its span was given, `p_mention` and `p_link`; its id is that of the first candidate unless `nil` is true.
//! `codes`, `parts`, `key`, `attributes`, `relations` and `sections` are written only if not empty, and so is the `type` of a
//! manual annotation. Unknown fields are ignored.
//!
//! `review` holds what an annotation project knows beyond annotations: whether the document is finished, rejected mentions, and threads of
//! comments. It is kept as the residue of the document and means nothing here, so that nobody takes a rejected mention for an annotation.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::corpus::check::{Checker, Located, quote};
use crate::corpus::{
    AnnotatedDocument, Annotation, Argument, Attribute, CandidateRecord, CodeRecord, CorpusFormat, Relation, Residue,
    join_passages,
};
use crate::input::Input;
use crate::numbers::rounded;
use crate::text::offsets::OffsetMap;
use crate::text::{Document, Section, Span};
use crate::{Error, Result};

/// Hint on the shape of a line.
const SHAPE: &str = "each line is one JSON object with `id`, `text` and `annotations`";

/// A document as written by other programs.
#[derive(Deserialize)]
struct DocumentLine {
    #[serde(default)]
    id: Option<Id>,
    #[serde(default)]
    pmid: Option<Id>,
    #[serde(default)]
    text: Option<String>,
    #[serde(default)]
    title: Option<String>,
    #[serde(default, rename = "abstract")]
    summary: Option<String>,
    #[serde(default)]
    annotations: Option<Vec<AnnotationLine>>,
    #[serde(default)]
    relations: Option<Vec<RelationLine>>,
    #[serde(default)]
    attributes: Option<Attributes>,
    #[serde(default)]
    sections: Option<Vec<SectionLine>>,
    #[serde(default)]
    review: Option<serde_json::Value>,
}

/// A section, in code points.
#[derive(Deserialize, Serialize)]
struct SectionLine {
    #[serde(rename = "type")]
    kind: String,
    span: (u64, u64),
}

/// `["CID", "D003042", "D012640"]`, or an object if the relation has a key, roles or attributes.
#[derive(Deserialize)]
#[serde(
    untagged,
    expecting = "a relation must be a list of its kind and targets, or an object with `kind` and `arguments`"
)]
enum RelationLine {
    Columns(Vec<String>),
    Full {
        #[serde(default)]
        key: String,
        kind: String,
        arguments: Vec<(String, String)>,
        #[serde(default)]
        attributes: Option<Attributes>,
    },
}

/// Names and values: an object, or pairs if a name repeats.
#[derive(Deserialize)]
#[serde(untagged, expecting = "attributes must be an object with string values, or pairs of name and string")]
enum Attributes {
    Pairs(Vec<(String, String)>),
    Object(serde_json::Map<String, serde_json::Value>),
}

#[derive(Deserialize)]
struct AnnotationLine {
    spans: Vec<(u64, u64)>,
    #[serde(default)]
    text: Option<String>,
    #[serde(default, rename = "type")]
    semantic_type: Option<String>,
    #[serde(default)]
    ids: Option<Ids>,
    #[serde(default)]
    id: Option<Ids>,
    #[serde(default)]
    score: Option<f32>,
    #[serde(default)]
    p_mention: Option<f32>,
    #[serde(default)]
    p_link: Option<f32>,
    #[serde(default)]
    nil: Option<bool>,
    #[serde(default)]
    candidates: Option<Vec<CandidateLine>>,
    #[serde(default)]
    codes: Option<Vec<CodeLine>>,
    #[serde(default)]
    parts: Option<Vec<String>>,
    #[serde(default)]
    key: Option<String>,
    #[serde(default)]
    attributes: Option<Attributes>,
}

#[derive(Deserialize)]
struct CandidateLine {
    id: Id,
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    score: Option<f32>,
}

#[derive(Deserialize)]
struct CodeLine {
    id: String,
    predicate: String,
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "an id must be a string or an integer")]
enum Id {
    Text(String),
    Positive(u64),
    Negative(i64),
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "ids must be a string, an integer, or a list of them")]
enum Ids {
    One(Id),
    Several(Vec<Id>),
}

impl Attributes {
    fn into_attributes(self) -> Vec<Attribute> {
        let text = |value| match value {
            serde_json::Value::String(text) => text,
            other => other.to_string(),
        };
        match self {
            Attributes::Pairs(pairs) => pairs.into_iter().map(|(name, value)| Attribute { name, value }).collect(),
            Attributes::Object(object) => {
                object.into_iter().map(|(name, value)| Attribute { name, value: text(value) }).collect()
            }
        }
    }
}

impl RelationLine {
    /// The relation, `None` for an empty list.
    fn into_relation(self) -> Option<Relation> {
        match self {
            RelationLine::Columns(columns) => {
                let columns: Vec<&str> = columns.iter().map(String::as_str).collect();
                let (kind, targets) = columns.split_first()?;
                Some(Relation::plain(kind, targets))
            }
            RelationLine::Full { key, kind, arguments, attributes } => {
                let arguments = arguments.into_iter().map(|(role, target)| Argument { role, target }).collect();
                let attributes = attributes.map(Attributes::into_attributes).unwrap_or_default();
                Some(Relation { key, kind, arguments, attributes })
            }
        }
    }
}

impl Id {
    fn into_text(self) -> String {
        match self {
            Id::Text(text) => text,
            Id::Positive(number) => number.to_string(),
            Id::Negative(number) => number.to_string(),
        }
    }
}

impl Ids {
    fn into_texts(self) -> Vec<String> {
        match self {
            Ids::One(id) => vec![id.into_text()],
            Ids::Several(ids) => ids.into_iter().map(Id::into_text).collect(),
        }
    }
}

/// The document on the next non-blank line; `None` at the end.
pub(super) fn read_next(input: &mut Input, checker: &mut Checker) -> Result<Option<AnnotatedDocument>> {
    let path = input.path().to_path_buf();
    while let Some((number, line)) = input.next_line()? {
        if !line.trim().is_empty() {
            return parse_line(&path, number, line, checker).map(Some);
        }
    }
    Ok(None)
}

fn parse_line(path: &Path, number: u64, line: &str, checker: &mut Checker) -> Result<AnnotatedDocument> {
    if !line.trim_start().starts_with('{') {
        return Err(
            Error::parse(path, number, format!("expected a JSON object, found {}", quote(line))).with_hint(SHAPE)
        );
    }
    let parsed: DocumentLine = serde_json::from_str(line).map_err(|error| json_error(path, number, &error))?;
    let id = parsed.id.or(parsed.pmid).map_or_else(|| number.to_string(), Id::into_text);
    let mut document = match parsed.text {
        Some(text) => Document { id, text, sections: Vec::new() },
        None if parsed.title.is_none() && parsed.summary.is_none() => {
            checker.failed_id = Some(id.clone());
            return Err(Error::parse(path, number, format!("document {} has no text", quote(&id)))
                .with_hint("add a field `text`, or `title` and `abstract`"));
        }
        None => join_passages(id, parsed.title.as_deref(), parsed.summary.as_deref()),
    };
    let map = OffsetMap::new(&document.text);
    let section = |line: SectionLine| section(&map, line).map_err(|message| Error::parse(path, number, message));
    let sections = parsed.sections.map(|lines| lines.into_iter().map(section).collect::<Result<Vec<Section>>>());
    let sections = sections.transpose()?;
    let lines = parsed.annotations.unwrap_or_default();
    let located: Vec<Located<'_>> =
        lines.iter().map(|line| Located { line: number, spans: &line.spans, text: line.text.as_deref() }).collect();
    let found = checker.locate_all(path, &document, &map, &located)?;
    let annotations =
        lines.into_iter().zip(found).filter_map(|(line, spans)| Some(line.with_spans(spans?, &document.text)));
    let annotations = annotations.collect();
    let relations = parsed.relations.unwrap_or_default().into_iter().filter_map(RelationLine::into_relation).collect();
    let attributes = parsed.attributes.map(Attributes::into_attributes).unwrap_or_default();
    if let Some(sections) = sections {
        document.sections = sections;
    }
    // Other programs may use the name for something else.
    let review = parsed.review.filter(serde_json::Value::is_object);
    let residue = review.map(|content| Box::new(Residue { format: CorpusFormat::Jsonl, content }));
    Ok(AnnotatedDocument { document, annotations, relations, attributes, residue })
}

fn section(map: &OffsetMap<'_>, line: SectionLine) -> std::result::Result<Section, String> {
    let byte = |offset: u64| map.char_to_byte(usize::try_from(offset).ok()?);
    let (start, end) = line.span;
    match (byte(start), byte(end)) {
        (Some(first), Some(last)) if first <= last => Ok(Section { kind: line.kind, span: Span::new(first, last) }),
        _ => Err(format!("the section {} at {start}..{end} is outside the text", quote(&line.kind))),
    }
}

impl AnnotationLine {
    fn with_spans(self, spans: Vec<Span>, text: &str) -> Annotation {
        let covered = || spans.iter().map(|span| span.of(text)).collect::<Vec<&str>>().join(" ");
        let candidates = records(self.candidates.unwrap_or_default(), self.p_mention, self.p_link);
        let nil = self.nil.unwrap_or(false);
        let ids = match candidates.first() {
            _ if nil => Vec::new(),
            Some(best) => vec![best.id.clone()],
            None => self.ids.or(self.id).map(Ids::into_texts).unwrap_or_default(),
        };
        Annotation {
            text: self.text.unwrap_or_else(covered),
            spans,
            semantic_type: self.semantic_type.unwrap_or_default(),
            ids,
            score: self.score,
            p_mention: self.p_mention,
            p_link: self.p_link,
            nil,
            candidates,
            codes: self
                .codes
                .unwrap_or_default()
                .into_iter()
                .map(|CodeLine { id, predicate }| CodeRecord { id, predicate })
                .collect(),
            parts: self.parts.unwrap_or_default(),
            key: self.key.unwrap_or_default(),
            attributes: self.attributes.map(Attributes::into_attributes).unwrap_or_default(),
        }
    }
}

/// The candidates of a mention. Their scores include p(mention) if the mention was detected; p(link) is proportional to the score.
fn records(lines: Vec<CandidateLine>, p_mention: Option<f32>, p_link: Option<f32>) -> Vec<CandidateRecord> {
    let best = lines.first().and_then(|best| best.score).filter(|score| *score > 0.0);
    let scale = match (p_mention, p_link, best) {
        (Some(_), Some(p_link), Some(best)) => p_link / best,
        (Some(p_mention), _, _) if p_mention > 0.0 => 1.0 / p_mention,
        _ => 1.0,
    };
    let record = |line: CandidateLine| {
        let score = line.score.unwrap_or_default();
        CandidateRecord {
            id: line.id.into_text(),
            name: line.name.unwrap_or_default(),
            p_link: (score * scale).min(1.0),
            p_both: p_mention.map(|_| score),
        }
    };
    lines.into_iter().map(record).collect()
}

fn json_error(path: &Path, number: u64, error: &serde_json::Error) -> Error {
    let text = error.to_string();
    let what = text.rsplit_once(" at line ").map_or(text.as_str(), |(what, _)| what);
    Error::parse(path, number, format!("invalid document at column {}: {what}", error.column())).with_hint(SHAPE)
}

/// A document as written; the order of the fields is part of the contract.
#[derive(Serialize)]
struct DocumentOut<'a, E> {
    id: &'a str,
    text: &'a str,
    annotations: Vec<AnnotationOut<'a, E>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    relations: Vec<RelationOut<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    attributes: Option<AttributesOut<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    sections: Vec<SectionLine>,
    #[serde(skip_serializing_if = "Option::is_none")]
    review: Option<&'a serde_json::Value>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum RelationOut<'a> {
    Columns(Vec<&'a str>),
    Full {
        #[serde(skip_serializing_if = "str::is_empty")]
        key: &'a str,
        kind: &'a str,
        arguments: Vec<(&'a str, &'a str)>,
        #[serde(skip_serializing_if = "Option::is_none")]
        attributes: Option<AttributesOut<'a>>,
    },
}

#[derive(Serialize)]
#[serde(untagged)]
enum AttributesOut<'a> {
    Object(serde_json::Map<String, serde_json::Value>),
    Pairs(Vec<(&'a str, &'a str)>),
}

/// An object if that preserves all attributes and their order, else pairs.
fn attributes_out(attributes: &[Attribute]) -> Option<AttributesOut<'_>> {
    if attributes.is_empty() {
        return None;
    }
    if attributes.is_sorted_by(|one, next| one.name < next.name) {
        let entry = |one: &Attribute| (one.name.clone(), serde_json::Value::from(one.value.as_str()));
        return Some(AttributesOut::Object(attributes.iter().map(entry).collect()));
    }
    Some(AttributesOut::Pairs(attributes.iter().map(|one| (one.name.as_str(), one.value.as_str())).collect()))
}

fn relation_out(relation: &Relation) -> RelationOut<'_> {
    if relation.is_plain() {
        let targets = relation.arguments.iter().map(|one| one.target.as_str());
        return RelationOut::Columns([relation.kind.as_str()].into_iter().chain(targets).collect());
    }
    RelationOut::Full {
        key: &relation.key,
        kind: &relation.kind,
        arguments: relation.arguments.iter().map(|one| (one.role.as_str(), one.target.as_str())).collect(),
        attributes: attributes_out(&relation.attributes),
    }
}

#[derive(Serialize)]
struct AnnotationOut<'a, E> {
    spans: Vec<(usize, usize)>,
    text: &'a str,
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    semantic_type: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    score: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    p_mention: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    p_link: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    nil: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    candidates: Option<Vec<CandidateOut<'a>>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    codes: Vec<CodeOut<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ids: Option<&'a [String]>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    parts: &'a [String],
    #[serde(skip_serializing_if = "str::is_empty")]
    key: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    attributes: Option<AttributesOut<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    explanation: Option<&'a E>,
}

#[derive(Serialize)]
struct CandidateOut<'a> {
    id: &'a str,
    name: &'a str,
    score: f64,
}

#[derive(Serialize)]
struct CodeOut<'a> {
    id: &'a str,
    predicate: &'a str,
}

/// Appends a document as a line to `out`.
pub(super) fn write(annotated: &AnnotatedDocument, out: &mut Vec<u8>) -> Result<()> {
    write_line::<()>(annotated, &[], out)
}

/// Like `write`, with an explanation in the last field `explanation` of each annotation.
///
/// `explanations` has one item per annotation. Readers ignore the field.
pub fn write_explained<E: Serialize>(
    annotated: &AnnotatedDocument,
    explanations: &[E],
    out: &mut Vec<u8>,
) -> Result<()> {
    write_line(annotated, explanations, out)
}

fn write_line<E: Serialize>(annotated: &AnnotatedDocument, explanations: &[E], out: &mut Vec<u8>) -> Result<()> {
    let document = &annotated.document;
    let map = OffsetMap::new(&document.text);
    let explained = |(row, annotation)| annotation_out(annotation, &map, explanations.get(row));
    let annotations = annotated.annotations.iter().enumerate().map(explained).collect();
    let relations = annotated.relations.iter().map(relation_out).collect();
    let attributes = attributes_out(&annotated.attributes);
    let section = |section: &Section| {
        let code_point =
            |byte: u32| map.byte_to_char(byte as usize).expect("sections lie on character boundaries") as u64;
        SectionLine { kind: section.kind.clone(), span: (code_point(section.span.start), code_point(section.span.end)) }
    };
    let sections = document.sections.iter().map(section).collect();
    let own = annotated.residue.as_ref().filter(|residue| residue.format == CorpusFormat::Jsonl);
    let review = own.map(|residue| &residue.content);
    let (id, text) = (document.id.as_str(), document.text.as_str());
    let line = DocumentOut { id, text, annotations, relations, attributes, sections, review };
    serde_json::to_writer(&mut *out, &line).expect("strings and numbers in memory are always JSON");
    out.push(b'\n');
    Ok(())
}

fn annotation_out<'a, E>(
    annotation: &'a Annotation,
    map: &OffsetMap<'_>,
    explanation: Option<&'a E>,
) -> AnnotationOut<'a, E> {
    let code_point =
        |byte: u32| map.byte_to_char(byte as usize).expect("spans lie on character boundaries of the text");
    let linked = annotation.is_linked();
    let candidates = annotation.candidates.iter().map(|candidate| CandidateOut {
        id: &candidate.id,
        name: &candidate.name,
        score: rounded(candidate.score()),
    });
    // The ids follow from the candidates, or from `nil`.
    let ids_are_said = annotation.nil || !annotation.candidates.is_empty() || (linked && annotation.ids.is_empty());
    AnnotationOut {
        spans: annotation.spans.iter().map(|span| (code_point(span.start), code_point(span.end))).collect(),
        text: &annotation.text,
        semantic_type: (linked || !annotation.semantic_type.is_empty()).then_some(&annotation.semantic_type),
        score: annotation.score.map(rounded),
        p_mention: annotation.p_mention.map(rounded),
        p_link: annotation.p_link.map(rounded),
        nil: linked.then_some(annotation.nil),
        candidates: linked.then(|| candidates.collect()),
        codes: annotation.codes.iter().map(|code| CodeOut { id: &code.id, predicate: &code.predicate }).collect(),
        ids: (!ids_are_said).then_some(annotation.ids.as_slice()),
        parts: &annotation.parts,
        key: &annotation.key,
        attributes: attributes_out(&annotation.attributes),
        explanation,
    }
}

#[cfg(test)]
mod tests;
