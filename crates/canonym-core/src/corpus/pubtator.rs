//! PubTator: `id|t|title`, `id|a|abstract`, tab-separated annotation lines, a blank line between documents.
//!
//! An annotation line has the tab-separated columns `id start end text type ids parts`. `ids` may be absent; it is kept
//! as one string, whatever its separator (`D003110|D009369`, `D004829+D003294`, `7037,7036`). The optional `parts`
//! contains the names of a composite mention, separated by `|`. Any other tab-separated line, such as
//! `id CID D003042 D012640`, is a relation, kept as is.
//!
//! Offsets are code points of title, one separator and abstract. A document with the id of an earlier one, and one
//! without a title, are counted as anomalies. When writing, discontinuous mentions become their hull, only the first
//! candidate is written (`-1` if not linked), and scores are dropped. Line breaks in a text become spaces, which
//! preserves offsets.

use std::path::Path;

use crate::corpus::check::{Checker, Located, column, quote};
use crate::corpus::{AnnotatedDocument, Annotation, Anomaly, MAX_DOCUMENT_BYTES, Relation, join_passages};
use crate::input::Input;
use crate::numbers::counted;
use crate::text::offsets::OffsetMap;
use crate::text::{Document, Span};
use crate::{Error, Result};

/// Written for a mention that a system did not link.
const NO_CONCEPT: &str = "-1";

/// Number (from 1) and text of a non-blank line.
type Row = (u64, String);

/// Reader of documents: blocks of lines separated by blank lines.
pub(super) struct Blocks {
    input: Input,
    /// The title line of the next document, if no blank line came before it.
    lookahead: Option<Row>,
    /// First line of the last document.
    first_line: u64,
}

impl Blocks {
    pub fn new(input: Input) -> Blocks {
        Blocks { input, lookahead: None, first_line: 0 }
    }

    /// Number of lines read.
    pub fn n_lines(&self) -> u64 {
        self.input.n_lines()
    }

    /// The file, and the first line of the last document.
    pub fn location(&self) -> (&Path, u64) {
        (self.input.path(), self.first_line)
    }

    /// The next document, `None` at the end. After a malformed document, the next call returns the one after it.
    pub fn read_next(&mut self, checker: &mut Checker) -> Result<Option<AnnotatedDocument>> {
        let rows = match self.next_block() {
            Ok(rows) => rows,
            Err(error @ Error::Parse { .. }) => {
                self.skip_block();
                return Err(error);
            }
            Err(error) => return Err(error),
        };
        let Some((first_line, _)) = rows.first() else { return Ok(None) };
        self.first_line = *first_line;
        parse_block(self.input.path(), &rows, checker).map(Some)
    }

    fn next_block(&mut self) -> Result<Vec<Row>> {
        let mut rows: Vec<Row> = self.lookahead.take().into_iter().collect();
        let mut n_bytes = 0;
        while let Some((number, line)) = self.input.next_line()? {
            if line.trim().is_empty() {
                if rows.is_empty() {
                    continue;
                }
                break;
            }
            let row = (number, line.to_owned());
            if !rows.is_empty() && starts_document(line) {
                self.lookahead = Some(row);
                break;
            }
            n_bytes += line.len();
            if n_bytes > MAX_DOCUMENT_BYTES {
                let message = format!("the document at line {number} has more than {MAX_DOCUMENT_BYTES} bytes");
                return Err(Error::limit(self.input.path(), message));
            }
            rows.push(row);
        }
        Ok(rows)
    }

    /// Skips the rest of a block with an unreadable line.
    fn skip_block(&mut self) {
        loop {
            let n_lines = self.input.n_lines();
            let row = self.input.next_line().map(|row| row.map(|(number, line)| (number, line.to_owned())));
            match row {
                Ok(Some((_, line))) if line.trim().is_empty() => return,
                Ok(Some(row)) if starts_document(&row.1) => {
                    self.lookahead = Some(row);
                    return;
                }
                Ok(Some(_)) => {}
                // A line that is not UTF-8 was skipped; without progress the same error would repeat.
                Err(Error::Parse { .. }) if self.input.n_lines() > n_lines => {}
                Ok(None) | Err(_) => return,
            }
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Passage {
    Title,
    Abstract,
}

/// Id, kind and text of a title or abstract line.
fn passage(line: &str) -> Option<(&str, Passage, &str)> {
    let (id, rest) = line.split_once('|')?;
    if id.contains('\t') {
        return None;
    }
    let title = rest.strip_prefix("t|").map(|text| (id, Passage::Title, text));
    title.or_else(|| rest.strip_prefix("a|").map(|text| (id, Passage::Abstract, text)))
}

fn starts_document(line: &str) -> bool {
    matches!(passage(line), Some((_, Passage::Title, _)))
}

/// Whether the second column is the kind of a relation rather than an offset.
fn is_relation(column: &str) -> bool {
    column.starts_with(|c: char| c.is_alphabetic())
}

/// The columns of an annotation line.
struct AnnotationLine<'a> {
    number: u64,
    spans: [(u64, u64); 1],
    columns: Vec<&'a str>,
}

fn parse_block(path: &Path, rows: &[Row], checker: &mut Checker) -> Result<AnnotatedDocument> {
    let (document, n_passages) = read_text(path, rows)?;
    if !rows.iter().any(|(_, line)| starts_document(line)) {
        checker.count_anomaly(Anomaly::NoTitle, &document.id, Some(format!("{}:{}", path.display(), rows[0].0)));
    }
    let mut lines: Vec<AnnotationLine<'_>> = Vec::new();
    let mut relations = Vec::new();
    for (number, line) in &rows[n_passages..] {
        let columns = read_columns(path, *number, line, &document.id)?;
        if is_relation(columns[1]) {
            relations.push(Relation::plain(columns[1], &columns[2..]));
            continue;
        }
        let span = (offset(path, *number, columns[1])?, offset(path, *number, columns[2])?);
        lines.push(AnnotationLine { number: *number, spans: [span], columns });
    }
    let located: Vec<Located<'_>> = lines
        .iter()
        .map(|line| Located { line: line.number, spans: &line.spans, text: Some(line.columns[3]) })
        .collect();
    let found = checker.locate_all(path, &document, &OffsetMap::new(&document.text), &located)?;
    let annotation = |(spans, line): (Option<Vec<Span>>, &AnnotationLine<'_>)| {
        let columns = &line.columns;
        Some(Annotation {
            spans: spans?,
            text: columns[3].to_owned(),
            semantic_type: columns[4].to_owned(),
            ids: columns.get(5).map(|&ids| ids.to_owned()).into_iter().collect(),
            parts: columns.get(6).map(|parts| parts.split('|').map(str::to_owned).collect()).unwrap_or_default(),
            ..Annotation::default()
        })
    };
    let annotations = found.into_iter().zip(&lines).filter_map(annotation).collect();
    Ok(AnnotatedDocument { document, annotations, relations, ..AnnotatedDocument::default() })
}

/// The text of a block, and the number of rows that it takes.
fn read_text(path: &Path, rows: &[Row]) -> Result<(Document, usize)> {
    let mut title = None;
    let mut summary = None;
    let mut document_id = "";
    let mut n_passages = 0;
    for (number, line) in rows {
        let Some((id, kind, text)) = passage(line) else { break };
        let slot = match kind {
            Passage::Title => &mut title,
            Passage::Abstract => &mut summary,
        };
        if id.is_empty() {
            return Err(Error::parse(path, *number, "the document has no id before the first `|`"));
        }
        if n_passages > 0 && id != document_id {
            return Err(foreign_id(path, *number, id, document_id));
        }
        if slot.replace(text).is_some() {
            return Err(Error::parse(path, *number, format!("document {} has a second abstract", quote(id)))
                .with_hint("separate documents by a blank line"));
        }
        document_id = id;
        n_passages += 1;
    }
    if n_passages == 0 {
        let (number, line) = &rows[0];
        return Err(Error::parse(path, *number, format!("expected `id|t|title`, found {}", quote(line)))
            .with_hint("a document starts with its title; if this is not a PubTator file, specify the format"));
    }
    Ok((join_passages(document_id.to_owned(), title, summary), n_passages))
}

/// Splits an annotation or relation line into columns.
fn read_columns<'a>(path: &Path, number: u64, line: &'a str, document_id: &str) -> Result<Vec<&'a str>> {
    let columns: Vec<&str> = line.split('\t').collect();
    if columns.len() < 2 {
        let message = format!("not a title, abstract, annotation or relation: {}", quote(line));
        return Err(Error::parse(path, number, message).with_hint("columns are separated by tabs"));
    }
    if columns[0] != document_id {
        return Err(foreign_id(path, number, columns[0], document_id));
    }
    if !is_relation(columns[1]) && !(5..=7).contains(&columns.len()) {
        let message = format!("{}, expected 5 to 7", counted(columns.len() as u64, "column"));
        return Err(Error::parse(path, number, message).with_hint(
            "the columns of an annotation are id, start, end, text, type, ids and part names, separated by tabs",
        ));
    }
    Ok(columns)
}

fn foreign_id(path: &Path, number: u64, id: &str, document_id: &str) -> Error {
    Error::parse(path, number, format!("line of document {} inside document {}", quote(id), quote(document_id)))
        .with_hint("separate documents by a blank line")
}

fn offset(path: &Path, number: u64, column: &str) -> Result<u64> {
    let digits = !column.is_empty() && column.bytes().all(|byte| byte.is_ascii_digit());
    let value = if digits { column.parse().ok() } else { None };
    value.ok_or_else(|| Error::parse(path, number, format!("the offset {} is not an integer", quote(column))))
}

/// Appends a document and a blank line to `out`.
///
/// The title is the `title` section if it is at the start and followed by one white-space character; else the text
/// before the first line break; else the whole text.
pub(super) fn write(annotated: &AnnotatedDocument, out: &mut Vec<u8>) -> Result<()> {
    let document = &annotated.document;
    let id = column("PubTator", document, "id", &document.id)?;
    // At the start of a file a byte order mark would not be read as part of the id.
    if id.is_empty() || id.contains('|') || id.starts_with('\u{feff}') {
        return Err(Error::unsupported(format!("PubTator cannot hold the document id {}", quote(id)))
            .with_hint("use an id without `|` that does not start with a byte order mark"));
    }
    let (title, summary) = split_text(document);
    let mut lines = vec![format!("{id}|t|{}", one_line(title)), format!("{id}|a|{}", one_line(summary))];
    let map = OffsetMap::new(&document.text);
    for annotation in &annotated.annotations {
        lines.push(annotation_line(document, &map, annotation)?);
    }
    for relation in &annotated.relations {
        if !is_relation(&relation.kind) {
            let message = format!("a relation of document {} does not start with its kind", quote(&document.id));
            return Err(Error::unsupported(message).with_hint("the kind is a word such as `CID`"));
        }
        let mut line = id.to_owned();
        let targets = relation.arguments.iter().map(|argument| &argument.target);
        for value in [&relation.kind].into_iter().chain(targets) {
            line.push('\t');
            line.push_str(column("PubTator", document, "relation", value)?);
        }
        lines.push(line);
    }
    for line in lines {
        out.extend_from_slice(line.as_bytes());
        out.push(b'\n');
    }
    out.push(b'\n');
    Ok(())
}

fn annotation_line(document: &Document, map: &OffsetMap<'_>, annotation: &Annotation) -> Result<String> {
    let hull = annotation.hull();
    let covered = hull.of(&document.text);
    let text = if annotation.spans.len() > 1 || annotation.text.is_empty() { covered } else { &annotation.text };
    let (start, end) = (code_point(map, hull.start), code_point(map, hull.end));
    let kind = column("PubTator", document, "type", &annotation.semantic_type)?;
    let mut line = format!("{}\t{start}\t{end}\t{}\t{kind}", document.id, one_column(text));
    if let Some(ids) = written_ids(annotation) {
        line.push('\t');
        line.push_str(column("PubTator", document, "ids", &ids)?);
    }
    if !annotation.parts.is_empty() {
        line.push('\t');
        line.push_str(column("PubTator", document, "parts", &annotation.parts.join("|"))?);
    }
    Ok(line)
}

/// The column of ids; `None` if the annotation has none.
fn written_ids(annotation: &Annotation) -> Option<String> {
    if annotation.nil {
        return Some(NO_CONCEPT.to_owned());
    }
    if let Some(best) = annotation.candidates.first() {
        return Some(best.id.clone());
    }
    if annotation.ids.is_empty() {
        let needed = annotation.score.is_some() || !annotation.parts.is_empty();
        return needed.then(|| NO_CONCEPT.to_owned());
    }
    Some(annotation.ids.join("|"))
}

fn code_point(map: &OffsetMap<'_>, byte: u32) -> usize {
    map.byte_to_char(byte as usize).expect("spans lie on character boundaries of the text")
}

/// Title and abstract, without the character between them, for which readers insert the separator.
fn split_text(document: &Document) -> (&str, &str) {
    let text = document.text.as_str();
    let title = document.sections.iter().find(|section| section.kind == "title");
    let border = title.filter(|title| title.span.start == 0).and_then(|title| split_at_space(text, title.span));
    border.or_else(|| split_at_space(text, Span::new(0, text.find(['\n', '\r'])?))).unwrap_or((text, ""))
}

/// `text` split after `title` and the white-space character that follows; `None` if there is none or nothing follows.
fn split_at_space(text: &str, title: Span) -> Option<(&str, &str)> {
    let rest = &text[title.end as usize..];
    let separator = rest.chars().next().filter(|c| c.is_whitespace())?;
    let summary = &rest[separator.len_utf8()..];
    (!summary.is_empty()).then(|| (title.of(text), summary))
}

/// Replaces each line break of `text` by a space.
fn one_line(text: &str) -> String {
    text.replace(['\n', '\r'], " ")
}

/// Replaces each line break and tab of `text` by a space.
fn one_column(text: &str) -> String {
    text.replace(['\n', '\r', '\t'], " ")
}

#[cfg(test)]
mod tests;
