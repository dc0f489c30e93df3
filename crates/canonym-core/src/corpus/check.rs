//! Converts spans of a source to bytes and checks the annotated text.
//!
//! Source spans are in code points. A mismatch means that offsets or text were changed after annotation, so an
//! evaluation would use the wrong words. Searching for the correct span is done only on request, by [`repair`].

use std::collections::{BTreeMap, HashSet};
use std::path::Path;

use xxhash_rust::xxh3::xxh3_64;

use crate::corpus::AnnotatedDocument;
use crate::corpus::conll::Tags;
use crate::corpus::repair::{self, Fix};
use crate::text::offsets::OffsetMap;
use crate::text::{Document, Span};
use crate::{Error, Result};

/// Maximum length of a quotation in a message, in code points.
const MAX_QUOTE: usize = 80;

/// Maximum number of dropped annotations reported per document.
const MAX_DROPPED: usize = 1000;

/// Number of document ids above which those of earlier files are forgotten, so that memory does not grow with the number
/// of files.
const MAX_IDS: usize = 4 << 20;

/// Separators between the parts of a discontinuous mention in its annotated text.
const JOINTS: [&str; 7] = [" ", " ... ", "...", " … ", "…", "|", ""];

/// What a reader does with an annotation whose text differs from the text at its span.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum OnMismatch {
    /// Return an error for the document.
    #[default]
    Error,
    /// Drop and count the annotation.
    Drop,
}

/// Counters of a reader.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ReadCounts {
    /// Number of documents returned.
    pub n_documents: u64,
    /// Number of annotations returned.
    pub n_annotations: u64,
    /// Number of annotations dropped because their text differs from the text at their span.
    pub n_bad_offsets: u64,
    /// Number of annotations returned with repaired offsets.
    pub n_fixed: u64,
    /// Number of mentions with invalid tag sequences: repaired, or dropped if tags are read strictly.
    pub n_broken_tags: u64,
    /// Number of files in a folder that belong to no document, such as notes in a brat corpus.
    pub n_other_files: u64,
    /// Number of citations marked as deleted in the source.
    pub n_deleted: u64,
}

/// Input that a reader accepts although it may be an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Anomaly {
    /// A document with the id of an earlier one.
    RepeatedId,
    /// A PubTator document without a title line.
    NoTitle,
}

/// Occurrences of an anomaly.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Occurrences {
    /// Number of occurrences.
    pub n: u64,
    /// Id of the first document.
    pub document: String,
    /// Location of the first document, path and line, if the format has lines.
    pub location: Option<String>,
}

/// An annotation as located in its source.
#[derive(Debug, Clone, Copy)]
pub(super) struct Located<'a> {
    /// Its line, from 1.
    pub line: u64,
    /// Half-open pairs of code point offsets.
    pub spans: &'a [(u64, u64)],
    /// Its text; `None` if the source has none.
    pub text: Option<&'a str>,
}

/// Checks the annotations of a reader and counts problems.
#[derive(Debug, Default)]
pub(super) struct Checker {
    pub on_mismatch: OnMismatch,
    /// Whether to repair unambiguous wrong offsets.
    pub repairs: bool,
    /// How token tags are read.
    pub tags: Tags,
    pub counts: ReadCounts,
    /// Repairs in the current document.
    pub fixes: Vec<Fix>,
    /// Errors of the annotations dropped from the current document.
    pub dropped: Vec<Error>,
    /// Oddities accepted so far.
    pub anomalies: BTreeMap<Anomaly, Occurrences>,
    /// Whether a repeated id is an error.
    pub refuses_repeated_ids: bool,
    /// Id of the document of the last error, if it was read.
    pub failed_id: Option<String>,
    /// Hashes of the document ids, see [`MAX_IDS`].
    ids: HashSet<u64>,
}

impl Checker {
    /// Counts an anomaly.
    pub fn count_anomaly(&mut self, anomaly: Anomaly, document: &str, location: Option<String>) {
        let first = || Occurrences { n: 0, document: document.to_owned(), location };
        self.anomalies.entry(anomaly).or_insert_with(first).n += 1;
    }

    /// Registers a document id. Returns whether the document is refused because its id is repeated; otherwise a
    /// repeated id is counted.
    pub fn register_id(&mut self, document: &str, location: impl FnOnce() -> Option<String>) -> bool {
        if document.is_empty() || self.ids.insert(xxh3_64(document.as_bytes())) {
            return false;
        }
        if !self.refuses_repeated_ids {
            self.count_anomaly(Anomaly::RepeatedId, document, location());
        }
        self.refuses_repeated_ids
    }

    /// At the start of a file, forgets document ids if there are too many.
    pub fn start_file(&mut self) {
        if self.ids.len() > MAX_IDS {
            self.ids = HashSet::new();
        }
    }

    /// The spans in bytes, or `None` if the annotation is to be dropped.
    ///
    /// A reader with all annotations of a document uses [`Checker::locate_all`], which can repair more.
    pub fn locate(
        &mut self,
        path: &Path,
        document: &Document,
        map: &OffsetMap<'_>,
        located: &Located<'_>,
    ) -> Result<Option<Vec<Span>>> {
        Ok(self.locate_all(path, document, map, std::slice::from_ref(located))?.pop().flatten())
    }

    /// For each annotation of a document the spans in bytes, or `None` if it is to be dropped.
    pub fn locate_all(
        &mut self,
        path: &Path,
        document: &Document,
        map: &OffsetMap<'_>,
        located: &[Located<'_>],
    ) -> Result<Vec<Option<Vec<Span>>>> {
        let text = document.text.as_str();
        let mut found: Vec<_> = located.iter().map(|located| find_spans(text, map, located)).collect();
        if self.repairs {
            let fits: Vec<bool> = found.iter().map(std::result::Result::is_ok).collect();
            let repaired = repair::repair(document, map, located, &fits);
            for ((found, located), repaired) in found.iter_mut().zip(located).zip(repaired) {
                let Some((spans, repair)) = repaired else { continue };
                // A different spelling is accepted already; only the span remains to be converted.
                let text = located.text.filter(|_| repair != repair::FixKind::Spelling);
                *found = find_spans(&document.text, map, &Located { spans: &spans, text, ..*located });
                self.counts.n_fixed += 1;
                self.fixes.push(Fix {
                    path: path.to_path_buf(),
                    line: located.line,
                    document: document.id.clone(),
                    text: located.text.unwrap_or_default().to_owned(),
                    before: repair::hull(located.spans),
                    after: repair::hull(&spans),
                    kind: repair,
                });
            }
        }
        let mut all = Vec::with_capacity(located.len());
        for (found, located) in found.into_iter().zip(located) {
            let to_error =
                |message| Error::parse(path, located.line, format!("document {}: {message}", quote(&document.id)));
            match (found, self.on_mismatch) {
                (Ok(spans), _) => all.push(Some(spans)),
                (Err(message), OnMismatch::Drop) => {
                    self.counts.n_bad_offsets += 1;
                    if self.dropped.len() < MAX_DROPPED {
                        self.dropped.push(to_error(message));
                    }
                    all.push(None);
                }
                (Err(message), OnMismatch::Error) => {
                    self.failed_id = Some(document.id.clone());
                    return Err(to_error(message).with_hint(self.hint()));
                }
            }
        }
        Ok(all)
    }

    /// Sets the text of each annotation of a repaired document to the text of its spans if the spelling differs, so
    /// that the written document can be read without repairs.
    pub fn respell(&self, read: &mut AnnotatedDocument) {
        let text = &read.document.text;
        for annotation in read.annotations.iter_mut().filter(|_| !self.fixes.is_empty()) {
            let parts: Vec<&str> = annotation.spans.iter().map(|span| span.of(text)).collect();
            if !text_matches(&annotation.text, &parts) {
                annotation.text = parts.join(" ");
            }
        }
    }

    fn hint(&self) -> &'static str {
        if self.repairs {
            "this repair is ambiguous; skip and count such annotations (option `--skip-bad-offsets`)"
        } else {
            "repair unambiguous offsets (option `--fix-offsets`), or skip and count such annotations (option `--skip-bad-offsets`)"
        }
    }
}

/// The spans of `located` in bytes of `text`, or an error message.
pub(super) fn find_spans(
    text: &str,
    map: &OffsetMap<'_>,
    located: &Located<'_>,
) -> std::result::Result<Vec<Span>, String> {
    let mut spans: Vec<Span> = Vec::with_capacity(located.spans.len());
    for &(start, end) in located.spans {
        if start >= end {
            return Err(format!("the span {start}..{end} of {} is empty or reversed", wanted(located)));
        }
        let (Some(first), Some(last)) = (byte_of(map, start), byte_of(map, end)) else {
            return Err(format!(
                "the span {start}..{end} of {} is outside the text of {} code points",
                wanted(located),
                map.n_chars()
            ));
        };
        let span = Span::new(first, last);
        if spans.last().is_some_and(|before| before.end > span.start) {
            return Err(format!("the spans of {} overlap or are not in text order", wanted(located)));
        }
        spans.push(span);
    }
    if spans.is_empty() {
        return Err(format!("{} has no span", wanted(located)));
    }
    let parts: Vec<&str> = spans.iter().map(|span| span.of(text)).collect();
    match located.text {
        Some(wanted) if !text_matches(wanted, &parts) => {
            let (start, end) = (located.spans[0].0, located.spans[located.spans.len() - 1].1);
            let found = parts.join(" ");
            Err(format!(
                "the annotation is {} at {start}..{end}, but the text there is {}",
                quote(wanted),
                quote(&found)
            ))
        }
        _ => Ok(spans),
    }
}

fn byte_of(map: &OffsetMap<'_>, offset: u64) -> Option<usize> {
    map.char_to_byte(usize::try_from(offset).ok()?)
}

/// Whether `wanted` is the text of `parts`, with all white space treated as equal and ignored at the ends: sources pad
/// annotation texts and cannot contain tabs in them.
fn text_matches(wanted: &str, parts: &[&str]) -> bool {
    let same = |found: &str| {
        let plain = |text: &str| text.trim().replace(|c: char| c.is_whitespace(), " ");
        wanted == found || plain(wanted) == plain(found)
    };
    match parts {
        [part] => same(part),
        _ => JOINTS.iter().any(|joint| same(&parts.join(joint))),
    }
}

fn wanted(located: &Located<'_>) -> String {
    located.text.map_or_else(|| "an annotation".to_owned(), quote)
}

/// `text` in quotation marks, with control characters escaped, truncated if long.
pub(super) fn quote(text: &str) -> String {
    let mut quoted: String = text.chars().take(MAX_QUOTE).flat_map(escape).collect();
    if text.chars().nth(MAX_QUOTE).is_some() {
        quoted.push('…');
    }
    format!("`{quoted}`")
}

/// Returns `value`, or an error if it contains a tab or line break, which `format` cannot hold.
pub(super) fn column<'a>(format: &str, document: &Document, what: &str, value: &'a str) -> Result<&'a str> {
    if !value.contains(['\n', '\r', '\t']) {
        return Ok(value);
    }
    let message = format!("{format} cannot hold {} as {what} in document {}", quote(value), quote(&document.id));
    Err(Error::unsupported(message).with_hint("remove tabs and line breaks from it, or use jsonl"))
}

fn escape(c: char) -> impl Iterator<Item = char> {
    let escaped = if c.is_control() { c.escape_default().to_string() } else { c.to_string() };
    escaped.chars().collect::<Vec<char>>().into_iter()
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    fn check(text: &str, spans: &[(u64, u64)], wanted: &str, expect: Expect) {
        let located = Located { line: 1, spans, text: Some(wanted) };
        let shown = match find_spans(text, &OffsetMap::new(text), &located) {
            Ok(spans) => format!("{:?}", spans.iter().map(|span| (span.start, span.end)).collect::<Vec<_>>()),
            Err(message) => message,
        };
        expect.assert_eq(&shown);
    }

    #[test]
    fn code_points_become_bytes() {
        check("β😀 cells", &[(3, 8)], "cells", expect!["[(7, 12)]"]);
    }

    #[test]
    fn padding_and_the_kind_of_white_space_do_not_count() {
        check("old\u{a0}age here", &[(0, 7)], "old age  ", expect!["[(0, 8)]"]);
        check("old\tage here", &[(0, 7)], "old age", expect!["[(0, 7)]"]);
    }

    #[test]
    fn parts_of_a_discontinuous_mention_may_be_joined_in_any_way() {
        check("rod and cone cells", &[(0, 3), (13, 18)], "rod cells", expect!["[(0, 3), (13, 18)]"]);
        check("rod and cone cells", &[(0, 3), (13, 18)], "rod ... cells", expect!["[(0, 3), (13, 18)]"]);
        check(
            "rod and cone cells",
            &[(0, 3), (13, 18)],
            "cone cells",
            expect!["the annotation is `cone cells` at 0..18, but the text there is `rod cells`"],
        );
    }

    #[test]
    fn impossible_spans_are_named() {
        check("pain", &[(2, 2)], "", expect!["the span 2..2 of `` is empty or reversed"]);
        check("pain", &[(4, 2)], "pain", expect!["the span 4..2 of `pain` is empty or reversed"]);
        check("pain", &[(0, 5)], "pain", expect!["the span 0..5 of `pain` is outside the text of 4 code points"]);
        check(
            "pain",
            &[(0, u64::MAX)],
            "pain",
            expect!["the span 0..18446744073709551615 of `pain` is outside the text of 4 code points"],
        );
        check("pain", &[(2, 4), (0, 2)], "pain", expect!["the spans of `pain` overlap or are not in text order"]);
        check("pain", &[], "pain", expect!["`pain` has no span"]);
    }

    #[test]
    fn long_and_unprintable_text_is_quoted_short() {
        assert_eq!(quote("a\nb"), "`a\\nb`");
        assert_eq!(quote(&"x".repeat(100)).chars().count(), MAX_QUOTE + 3);
    }
}
