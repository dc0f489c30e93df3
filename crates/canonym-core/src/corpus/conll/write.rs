//! Writes documents as tokens with tags.

use std::path::Path;

use super::{NO_IDS, Scheme, Tags};
use crate::Result;
use crate::corpus::check::column;
use crate::corpus::{AnnotatedDocument, Annotation, CorpusFormat};
use crate::text::offsets::OffsetMap;
use crate::text::sentences::sentences;
use crate::text::tokens::tokenize;
use crate::text::{Document, Span};

/// Appends one document to `out`.
pub(in crate::corpus) fn write(annotated: &AnnotatedDocument, scheme: Scheme, out: &mut Vec<u8>) -> Result<()> {
    if let Some(lines) = unchanged_lines(annotated) {
        for line in lines {
            out.extend_from_slice(line.as_bytes());
            out.push(b'\n');
        }
        return Ok(());
    }
    let document = &annotated.document;
    let kept: Vec<(usize, Span)> = kept(&annotated.annotations)
        .into_iter()
        .map(|row| (row, trimmed(&document.text, annotated.annotations[row].spans[0])))
        .filter(|(_, span)| !span.is_empty())
        .collect();
    let spans: Vec<Span> = kept.iter().map(|&(_, span)| span).collect();
    let map = OffsetMap::new(&document.text);
    let mut text = format!("# id = {}\n", column("CoNLL", document, "id", &document.id)?);
    let mut borders = sentence_ends(document, &spans).into_iter().peekable();
    let mut mention = 0;
    for token in tokens(&document.text, &spans) {
        if borders.next_if(|&border| border <= token.start).is_some() {
            while borders.next_if(|&border| border <= token.start).is_some() {}
            text.push('\n');
        }
        while spans.get(mention).is_some_and(|span| span.end <= token.start) {
            mention += 1;
        }
        let inside = spans.get(mention).filter(|span| span.start <= token.start);
        let (tag, ids) = match inside {
            Some(span) => {
                let annotation = &annotated.annotations[kept[mention].0];
                let letter = letter(scheme, span.start == token.start, span.end == token.end);
                (tag(letter, &annotation.semantic_type), ids_of(annotation))
            }
            None => ("O".to_owned(), NO_IDS.to_owned()),
        };
        let code_point = |byte: u32| map.byte_to_char(byte as usize).expect("tokens lie on character boundaries");
        let (start, end) = (code_point(token.start), code_point(token.end));
        let ids = column("CoNLL", document, "ids", &ids)?;
        text.push_str(&format!("{}\t{start}\t{end}\t{tag}\t{ids}\n", token.of(&document.text)));
    }
    text.push('\n');
    out.extend_from_slice(text.as_bytes());
    Ok(())
}

/// Text to insert before `bytes`, a written document that follows another one; empty if its lines mark the start of a
/// document.
pub(in crate::corpus) fn start(document: &Document, bytes: &[u8]) -> Vec<u8> {
    let starts = |line: &[u8]| std::str::from_utf8(line).is_ok_and(super::starts_document);
    if bytes.split(|&byte| byte == b'\n').any(starts) {
        return Vec::new();
    }
    let id = column("CoNLL", document, "id", &document.id);
    id.map_or_else(|_| "-DOCSTART-\n\n".to_owned(), |id| format!("# id = {id}\n")).into_bytes()
}

/// The lines of the source, if they still represent the document.
fn unchanged_lines(annotated: &AnnotatedDocument) -> Option<Vec<String>> {
    let residue = annotated.residue.as_ref().filter(|residue| residue.format == CorpusFormat::Conll)?;
    let line = |value: &serde_json::Value| value.as_str().map(str::to_owned);
    let lines: Vec<String> = residue.content.as_array()?.iter().map(line).collect::<Option<_>>()?;
    let numbered: Vec<(u64, String)> = lines.iter().cloned().map(|line| (0, line)).collect();
    let read = super::parse(Path::new(""), annotated.document.id.clone(), &numbered, Tags::default());
    let (document, annotations, _) = read.ok()?;
    (document == annotated.document && annotations == annotated.annotations).then_some(lines)
}

/// Rows of the annotations that tags can represent, in text order: contiguous ones, and of overlapping ones the longest
/// (ties: the first).
pub(in crate::corpus) fn kept(annotations: &[Annotation]) -> Vec<usize> {
    let mut rows: Vec<usize> = (0..annotations.len()).filter(|&row| annotations[row].spans.len() == 1).collect();
    rows.sort_by_key(|&row| (std::cmp::Reverse(annotations[row].spans[0].len()), annotations[row].spans[0].start, row));
    let mut taken: std::collections::BTreeMap<u32, (u32, usize)> = std::collections::BTreeMap::new();
    for row in rows {
        let span = annotations[row].spans[0];
        let before = taken.range(..span.end).next_back();
        if before.is_none_or(|(_, &(end, _))| end <= span.start) {
            taken.insert(span.start, (span.end, row));
        }
    }
    taken.into_values().map(|(_, row)| row).collect()
}

/// `span` trimmed to tokens.
fn trimmed(text: &str, span: Span) -> Span {
    let is_blank = |letter: char| letter.is_whitespace() || letter.is_control();
    let covered = span.of(text).trim_end_matches(is_blank);
    let start = span.start as usize + covered.len() - covered.trim_start_matches(is_blank).len();
    Span::new(start, (span.start as usize + covered.len()).max(start))
}

/// Words, numbers and punctuation marks, split at mention boundaries.
fn tokens(text: &str, mentions: &[Span]) -> Vec<Span> {
    let mut spans = Vec::new();
    let mut at = 0;
    for token in tokenize(text) {
        marks(text, at, token.span.start as usize, &mut spans);
        spans.push(token.span);
        at = token.span.end as usize;
    }
    marks(text, at, text.len(), &mut spans);
    let mut cuts = mentions.iter().flat_map(|span| [span.start, span.end]).peekable();
    let mut cut = Vec::with_capacity(spans.len());
    for span in spans {
        let mut start = span.start;
        while let Some(at) = cuts.next_if(|&at| at < span.end) {
            if at > start {
                cut.push(Span { start, end: at });
                start = at;
            }
        }
        cut.push(Span { start, end: span.end });
    }
    cut
}

/// Tokens between two words: each punctuation mark is one, and letters such as those of a possessive are joined.
fn marks(text: &str, start: usize, end: usize, spans: &mut Vec<Span>) {
    let mut last_is_letter = false;
    for (at, letter) in text[start..end].char_indices() {
        let span = Span::new(start + at, start + at + letter.len_utf8());
        let is_letter = letter.is_alphanumeric();
        match spans.last_mut() {
            Some(last) if last_is_letter && is_letter => last.end = span.end,
            _ if letter.is_whitespace() || letter.is_control() => {}
            _ => spans.push(span),
        }
        last_is_letter = is_letter;
    }
}

/// Starts of all sentences but the first, excluding those inside a mention.
fn sentence_ends(document: &Document, mentions: &[Span]) -> Vec<u32> {
    let starts = sentences(&document.text).into_iter().skip(1).map(|sentence| sentence.start);
    let is_inside = |start: u32| {
        let next = mentions.partition_point(|span| span.end <= start);
        mentions.get(next).is_some_and(|span| span.start < start)
    };
    starts.filter(|&start| !is_inside(start)).collect()
}

fn letter(scheme: Scheme, is_first: bool, is_last: bool) -> char {
    match (scheme, is_first, is_last) {
        (Scheme::Bio, true, _) | (_, true, false) => 'B',
        (Scheme::Bio, false, _) | (_, false, false) => 'I',
        (Scheme::Bioes, true, true) => 'S',
        (Scheme::Bioes, false, true) => 'E',
        (Scheme::Bilou, true, true) => 'U',
        (Scheme::Bilou, false, true) => 'L',
    }
}

fn tag(letter: char, semantic_type: &str) -> String {
    if semantic_type.is_empty() {
        return letter.to_string();
    }
    format!("{letter}-{}", semantic_type.replace(char::is_whitespace, "_"))
}

fn ids_of(annotation: &Annotation) -> String {
    let ids = match annotation.candidates.first() {
        _ if annotation.nil => "-1".to_owned(),
        Some(best) => best.id.clone(),
        None => annotation.ids.join("|"),
    };
    if ids.is_empty() { NO_IDS.to_owned() } else { ids }
}
