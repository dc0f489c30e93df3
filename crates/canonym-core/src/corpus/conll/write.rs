//! Writes documents as tokens with tags.

use std::collections::BTreeMap;
use std::path::Path;

use super::{NO_IDS, Scheme, TYPE, Tags, looks_like_id};
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
    let kept = written(annotated);
    let spans: Vec<Span> = kept.iter().map(|&(_, span)| span).collect();
    let words = type_words(kept.iter().map(|&(row, _)| annotated.annotations[row].semantic_type.as_str()));
    let map = OffsetMap::new(&document.text);
    let mut text = format!("# id = {}\n", column("CoNLL", document, "id", &document.id)?);
    for (kind, word) in words.iter().filter(|(kind, word)| *kind != word && is_line(kind)) {
        text.push_str(&format!("{TYPE}{word} = {kind}\n"));
    }
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
                (tag(letter, &words[annotation.semantic_type.as_str()]), ids_of(annotation))
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

/// Rows and trimmed spans of the mentions that are written, in text order.
fn written(annotated: &AnnotatedDocument) -> Vec<(usize, Span)> {
    let spans = kept(&annotated.annotations)
        .into_iter()
        .map(|row| (row, trimmed(&annotated.document.text, annotated.annotations[row].spans[0])));
    spans.filter(|(_, span)| !span.is_empty()).collect()
}

/// Number of line breaks that a reader of the written document finds where the text has spaces: the ends of sentences.
pub(in crate::corpus) fn n_added_line_breaks(annotated: &AnnotatedDocument) -> usize {
    let spans: Vec<Span> = written(annotated).into_iter().map(|(_, span)| span).collect();
    let is_added = |start: &u32| {
        let before = &annotated.document.text[..*start as usize];
        let gap = &before[before.trim_end().len()..];
        !gap.is_empty() && !gap.contains(['\n', '\r'])
    };
    sentence_ends(&annotated.document, &spans).iter().filter(|start| is_added(start)).count()
}

/// Whether the lines of the source are written.
pub(in crate::corpus) fn is_unchanged(annotated: &AnnotatedDocument) -> bool {
    unchanged_lines(annotated).is_some()
}

/// Whether a type is written so that it is read back.
pub(in crate::corpus) fn supports_type(semantic_type: &str) -> bool {
    is_line(semantic_type)
}

/// Whether a text fits into a line of its own.
fn is_line(text: &str) -> bool {
    text.trim() == text && !text.contains(char::is_control)
}

/// The word that stands for each type in the tags, different ones for different types.
fn type_words<'a>(types: impl Iterator<Item = &'a str> + Clone) -> BTreeMap<&'a str, String> {
    let is_word = |kind: &str| !kind.contains(char::is_whitespace) && !looks_like_id(kind);
    let mut words: BTreeMap<&str, String> =
        types.clone().filter(|kind| is_word(kind)).map(|kind| (kind, kind.to_owned())).collect();
    for kind in types {
        if words.contains_key(kind) {
            continue;
        }
        let word = kind.replace(|letter: char| letter.is_whitespace() || letter == ':', "_");
        let mut free = word.clone();
        let mut number = 2;
        while words.values().any(|word| *word == free) {
            free = format!("{word}_{number}");
            number += 1;
        }
        words.insert(kind, free);
    }
    words
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

fn tag(letter: char, word: &str) -> String {
    if word.is_empty() { letter.to_string() } else { format!("{letter}-{word}") }
}

fn ids_of(annotation: &Annotation) -> String {
    let ids = match annotation.candidates.first() {
        _ if annotation.nil => "-1".to_owned(),
        Some(best) => best.id.clone(),
        None => annotation.ids.join("|"),
    };
    if ids.is_empty() { NO_IDS.to_owned() } else { ids }
}
