//! Repairs wrong offsets when the repair is unambiguous, and reports what was changed.
//!
//! Four kinds of errors are recognised: offsets in another unit, offsets shifted by added or removed text, a boundary
//! inside a word, and a different spelling of the annotated text. Anything else, or a text that fits at several
//! positions, is left unrepaired.

use std::fmt;
use std::path::PathBuf;

use crate::corpus::check::{Located, find_spans, quote};
use crate::text::Document;
use crate::text::normalise::fold;
use crate::text::offsets::OffsetMap;

/// Maximum shift of a mention, in code points.
const NEAR: i64 = 16;

/// Mentions with fewer code points are repaired only if a longer mention has about the same shift, because short
/// strings occur everywhere.
const SHORT: usize = 3;

/// The kind of a repair.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FixKind {
    /// The text is this many code points further on.
    Shifted(i64),
    /// Offsets were in UTF-16 units.
    Utf16,
    /// Offsets were in UTF-8 bytes.
    Utf8,
    /// One boundary was inside a word; the text determined the correct one.
    Cut,
    /// The text at the span has another spelling; the span is unchanged.
    Spelling,
}

impl fmt::Display for FixKind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FixKind::Shifted(by) => {
                let by = match by.unsigned_abs() {
                    1 => "one".to_owned(),
                    by => by.to_string(),
                };
                write!(formatter, "shifted by {by}")
            }
            FixKind::Utf16 => formatter.write_str("counted in UTF-16 units"),
            FixKind::Utf8 => formatter.write_str("counted in bytes"),
            FixKind::Cut => formatter.write_str("boundary inside a word"),
            FixKind::Spelling => formatter.write_str("spelling differs"),
        }
    }
}

/// A repaired annotation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fix {
    /// Its file.
    pub path: PathBuf,
    /// Its line, from 1.
    pub line: u64,
    /// Id of the document.
    pub document: String,
    /// Its text in the source.
    pub text: String,
    /// Start and end in code points before the repair.
    pub before: (u64, u64),
    /// Start and end in code points after the repair.
    pub after: (u64, u64),
    /// The kind of the repair.
    pub kind: FixKind,
}

impl fmt::Display for Fix {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ((start, end), (new_start, new_end)) = (self.before, self.after);
        let (path, line, text) = (self.path.display(), self.line, quote(&self.text));
        let text = text.trim_matches('`');
        write!(formatter, "{path}:{line} document {}: \"{text}\" {start}..{end}", self.document)?;
        if self.before != self.after {
            write!(formatter, " -> {new_start}..{new_end}")?;
        }
        write!(formatter, " ({})", self.kind)
    }
}

/// Repaired spans in code points, with the kind of the repair.
pub(super) type Repaired = (Vec<(u64, u64)>, FixKind);

/// Repaired spans of each annotation of a document, `None` if it is correct or no repair is certain.
///
/// `fits` states for each annotation whether its offsets are correct.
pub(super) fn repair(
    document: &Document,
    map: &OffsetMap<'_>,
    located: &[Located<'_>],
    fits: &[bool],
) -> Vec<Option<Repaired>> {
    if fits.iter().all(|&fits| fits) {
        return vec![None; located.len()];
    }
    if let Some(repaired) = other_unit(&document.text, map, located) {
        return repaired;
    }
    let text = document.text.as_str();
    let mut repaired: Vec<Option<Repaired>> = Vec::with_capacity(located.len());
    for (one, &fits) in located.iter().zip(fits) {
        repaired.push(if fits { None } else { repair_one(text, map, one) });
    }
    let is_certain: Vec<bool> = (0..located.len()).map(|row| is_certain(located, fits, &repaired, row)).collect();
    for (repaired, is_certain) in repaired.iter_mut().zip(is_certain) {
        repaired.take_if(|_| !is_certain);
    }
    repaired
}

/// The spans of all annotations, if every one fits with offsets in another unit.
fn other_unit(text: &str, map: &OffsetMap<'_>, located: &[Located<'_>]) -> Option<Vec<Option<Repaired>>> {
    if text.is_ascii() {
        return None;
    }
    [FixKind::Utf16, FixKind::Utf8].into_iter().find_map(|unit| {
        let code_point = |offset: u64| {
            let offset = usize::try_from(offset).ok()?;
            let byte = if unit == FixKind::Utf16 { map.utf16_to_byte(offset)? } else { offset };
            Some(map.byte_to_char(byte)? as u64)
        };
        let converted = |one: &Located<'_>| -> Option<Vec<(u64, u64)>> {
            one.spans.iter().map(|&(start, end)| Some((code_point(start)?, code_point(end)?))).collect()
        };
        let repaired = located.iter().map(|one| {
            let spans = converted(one)?;
            find_spans(text, map, &Located { spans: &spans, ..*one }).ok()?;
            Some((spans != one.spans).then_some((spans, unit)))
        });
        repaired.collect::<Option<Vec<Option<Repaired>>>>()
    })
}

fn repair_one(text: &str, map: &OffsetMap<'_>, located: &Located<'_>) -> Option<Repaired> {
    let wanted = located.text?;
    if is_spelled_otherwise(text, map, located, wanted) {
        return Some((located.spans.to_vec(), FixKind::Spelling));
    }
    let mut shifts = (-NEAR..=NEAR).filter(|&by| by != 0).filter_map(|by| {
        let spans: Option<Vec<(u64, u64)>> = located.spans.iter().map(|&span| shifted(span, by)).collect();
        let spans = spans?;
        text_is_at(text, map, &spans, wanted).then_some((spans, FixKind::Shifted(by)))
    });
    match (shifts.next(), shifts.next()) {
        (Some(only), None) => Some(only),
        (None, _) => cut(text, map, located, wanted),
        _ => None,
    }
}

fn shifted((start, end): (u64, u64), by: i64) -> Option<(u64, u64)> {
    Some((start.checked_add_signed(by)?, end.checked_add_signed(by)?))
}

fn is_spelled_otherwise(text: &str, map: &OffsetMap<'_>, located: &Located<'_>, wanted: &str) -> bool {
    let Ok(spans) = find_spans(text, map, &Located { text: None, ..*located }) else { return false };
    let covered: Vec<&str> = spans.iter().map(|span| span.of(text)).collect();
    let wanted = fold(wanted);
    !wanted.is_empty() && fold(&covered.join(" ")) == wanted
}

/// Whether `wanted` is exactly the text at `spans`, with a word boundary on at least one side.
fn text_is_at(text: &str, map: &OffsetMap<'_>, spans: &[(u64, u64)], wanted: &str) -> bool {
    let Ok(found) = find_spans(text, map, &Located { line: 0, spans, text: Some(wanted) }) else { return false };
    // With white space ignored at the ends, two neighbouring shifts could fit.
    let n_chars: u64 = spans.iter().map(|(start, end)| end - start).sum();
    let is_exact = spans.len() > 1 || n_chars == wanted.chars().count() as u64;
    let (start, end) = (found[0].start as usize, found[found.len() - 1].end as usize);
    is_exact && !(is_inside_word(text, start) && is_inside_word(text, end))
}

/// Whether a byte of `text` is between two letters or digits.
fn is_inside_word(text: &str, byte: usize) -> bool {
    let before = text[..byte].chars().next_back().is_some_and(char::is_alphanumeric);
    before && text[byte..].chars().next().is_some_and(char::is_alphanumeric)
}

/// The span if one boundary is correct and the other is inside a word, past the text, or on the wrong side.
///
/// A span that ends at a word boundary may be correct with a wrong text, so it is not changed.
fn cut(text: &str, map: &OffsetMap<'_>, located: &Located<'_>, wanted: &str) -> Option<Repaired> {
    let &[(start, end)] = located.spans else { return None };
    let wanted = wanted.trim();
    let n_chars = wanted.chars().count() as u64;
    let byte = |offset: u64| map.char_to_byte(usize::try_from(offset).ok()?);
    let is_wrong = |offset: u64| start >= end || byte(offset).is_none_or(|byte| is_inside_word(text, byte));
    let is_right = |offset: u64| byte(offset).is_some_and(|byte| !is_inside_word(text, byte));
    let fits = |span: (u64, u64)| is_right(span.0) && is_right(span.1) && text_is_at(text, map, &[span], wanted);
    let from_start = start.checked_add(n_chars).map(|end| (start, end)).filter(|&span| is_wrong(end) && fits(span));
    let from_end = end.checked_sub(n_chars).map(|start| (start, end)).filter(|&span| is_wrong(start) && fits(span));
    match (from_start, from_end) {
        (Some(span), None) | (None, Some(span)) => Some((vec![span], FixKind::Cut)),
        _ => None,
    }
}

/// Whether a repair is certain: no annotation of the same text has its span, and a shift of a short mention is
/// confirmed by another.
fn is_certain(located: &[Located<'_>], fits: &[bool], repaired: &[Option<Repaired>], row: usize) -> bool {
    let Some((spans, repair)) = &repaired[row] else { return false };
    let FixKind::Shifted(by) = repair else { return true };
    let is_taken = (0..located.len()).any(|other| {
        let same_text = other != row && located[other].text == located[row].text;
        let there =
            if fits[other] { Some(located[other].spans) } else { repaired[other].as_ref().map(|one| &one.0[..]) };
        same_text && there == Some(&spans[..]) && located[other].spans != located[row].spans
    });
    let has_company = || {
        (0..located.len()).any(|other| {
            let near = matches!(&repaired[other], Some((_, FixKind::Shifted(near))) if near.abs_diff(*by) <= 1);
            other != row && near && n_chars(&located[other]) >= SHORT
        })
    };
    !is_taken && (n_chars(&located[row]) >= SHORT || has_company())
}

fn n_chars(located: &Located<'_>) -> usize {
    located.text.map_or(0, |text| text.trim().chars().count())
}

/// Hull of spans in code points; (0, 0) if empty.
pub(super) fn hull(spans: &[(u64, u64)]) -> (u64, u64) {
    (spans.first().map_or(0, |span| span.0), spans.last().map_or(0, |span| span.1))
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use proptest::prelude::*;

    use super::*;

    /// The repairs of annotations `(start, end, text)`.
    fn check(text: &str, annotations: &[(u64, u64, &str)], expect: Expect) {
        let document = Document { id: "7".to_owned(), text: text.to_owned(), sections: Vec::new() };
        let map = OffsetMap::new(text);
        let spans: Vec<[(u64, u64); 1]> = annotations.iter().map(|&(start, end, _)| [(start, end)]).collect();
        let located: Vec<Located<'_>> = annotations
            .iter()
            .zip(&spans)
            .map(|(&(_, _, wanted), spans)| Located { line: 1, spans, text: Some(wanted) })
            .collect();
        let fits: Vec<bool> = located.iter().map(|located| find_spans(text, &map, located).is_ok()).collect();
        let mut shown = String::new();
        for ((located, fits), repaired) in located.iter().zip(&fits).zip(repair(&document, &map, &located, &fits)) {
            let outcome = match (fits, repaired) {
                (true, None) => "right".to_owned(),
                (false, None) => "left as it is".to_owned(),
                (_, Some((spans, repair))) => format!("{}..{} {repair}", spans[0].0, spans[0].1),
            };
            shown.push_str(&format!("{}: {outcome}\n", located.text.unwrap_or_default()));
        }
        expect.assert_eq(&shown);
    }

    #[test]
    fn text_at_one_nearby_offset_is_shifted() {
        check(
            "A title. Fever and cough, later fever.",
            &[(10, 15, "Fever"), (18, 23, "cough")],
            expect![[r#"
                Fever: 9..14 shifted by one
                cough: 19..24 shifted by one
            "#]],
        );
    }

    #[test]
    fn text_at_two_nearby_offsets_is_unchanged() {
        check("pain or pain?", &[(4, 8, "pain")], expect![["pain: left as it is\n"]]);
    }

    #[test]
    fn span_of_another_annotation_is_not_used() {
        check(
            "No pain.",
            &[(3, 7, "pain"), (2, 6, "pain")],
            expect![[r#"
                pain: right
                pain: left as it is
            "#]],
        );
    }

    #[test]
    fn short_mentions_need_company() {
        check("the MS of man", &[(3, 5, "MS")], expect![["MS: left as it is\n"]]);
        check(
            "the MS of gout",
            &[(3, 5, "MS"), (9, 13, "gout")],
            expect![[r#"
                MS: 4..6 shifted by one
                gout: 10..14 shifted by one
            "#]],
        );
    }

    #[test]
    fn units_are_those_of_the_whole_document() {
        check(
            "😀 pain and gout",
            &[(3, 7, "pain"), (12, 16, "gout")],
            expect![[r#"
                pain: 2..6 counted in UTF-16 units
                gout: 11..15 counted in UTF-16 units
            "#]],
        );
        check(
            "α and β pain",
            &[(0, 2, "α"), (10, 14, "pain")],
            expect![[r#"
                α: 0..1 counted in bytes
                pain: 8..12 counted in bytes
            "#]],
        );
    }

    #[test]
    fn other_spelling_keeps_the_span() {
        check(
            "ERK, \"DEAD\" box, IL‐2 and TNF-α",
            &[(0, 3, "Erk"), (5, 15, " DEAD box"), (17, 21, "IL-2"), (26, 31, "TNF-alpha")],
            expect![[r#"
                Erk: 0..3 spelling differs
                 DEAD box: 5..15 spelling differs
                IL-2: 17..21 spelling differs
                TNF-alpha: 26..31 spelling differs
            "#]],
        );
    }

    #[test]
    fn only_ends_inside_a_word_are_moved() {
        check("renal failure", &[(0, 9, "renal failure")], expect![["renal failure: 0..13 boundary inside a word\n"]]);
        check("renal failure", &[(3, 13, "renal failure")], expect![["renal failure: 0..13 boundary inside a word\n"]]);
        check("renal failure", &[(0, 99, "renal failure")], expect![["renal failure: 0..13 boundary inside a word\n"]]);
        check("renal failure", &[(0, 5, "renal failure")], expect![["renal failure: left as it is\n"]]);
    }

    #[test]
    fn missing_text_is_unchanged() {
        check(
            "No pain.",
            &[(3, 7, "gout"), (u64::MAX, u64::MAX, "pain"), (0, u64::MAX, "gain")],
            expect![[r#"
                gout: left as it is
                pain: left as it is
                gain: left as it is
            "#]],
        );
    }

    proptest! {
        #[test]
        fn offsets_in_another_unit_are_converted(text in "([a-z ]|α|😀|é){1,40}", choice in any::<[prop::sample::Index; 2]>(), utf16 in any::<bool>()) {
            let letters: Vec<char> = text.chars().collect();
            let (one, two) = (choice[0].index(letters.len()), choice[1].index(letters.len()));
            let (start, end) = (one.min(two), one.max(two) + 1);
            let before: String = letters[..start].iter().collect();
            let covered: String = letters[start..end].iter().collect();
            prop_assume!(!covered.trim().is_empty() && covered.trim() == covered);
            let count = |text: &str| if utf16 { text.encode_utf16().count() } else { text.len() } as u64;
            let spans = [(count(&before), count(&before) + count(&covered))];
            let document = Document { id: String::new(), text: text.clone(), sections: Vec::new() };
            let map = OffsetMap::new(&text);
            let located = [Located { line: 1, spans: &spans, text: Some(&covered) }];
            let fits = [find_spans(&text, &map, &located[0]).is_ok()];
            let repaired = repair(&document, &map, &located, &fits);
            if let Some((spans, _)) = &repaired[0] {
                let found = find_spans(&text, &map, &Located { spans, ..located[0] });
                prop_assert!(found.is_ok(), "{:?}", found);
            }
        }
    }
}
