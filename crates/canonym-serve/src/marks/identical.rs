//! Identical mentions: where they occur, and how a decision is applied to them.

use std::collections::BTreeMap;

use canonym_core::text::Span;
use canonym_core::text::offsets::OffsetMap;
use canonym_core::text::taught::{can_begin, can_end};

use super::decide::Decision;
use super::{MarkState, State};
use crate::spans::{overlap, to_pairs};

/// Characters of context on either side.
const CONTEXT: usize = 40;

/// An occurrence of an identical mention.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Occurrence {
    /// The span.
    pub span: Span,
    /// The unreviewed prediction with exactly this span.
    pub mark: Option<i64>,
}

/// The unreviewed occurrences of the text of a mark in `text`. Case matters only if the mark is all upper case. For a rejected mark only those with
/// the same prediction.
pub fn occurrences(text: &str, marks: &BTreeMap<i64, MarkState>, mark: &MarkState, id: i64) -> Vec<Occurrence> {
    let [_] = mark.spans.as_slice() else { return Vec::new() };
    let is_decided = |span: Span| {
        marks.values().any(|other| {
            let has_same_span = other.spans == [(span.start, span.end)];
            (other.is_human() && overlap(&other.spans(), &[span]))
                || (other.state == State::Rejected && !other.is_deleted && has_same_span)
        })
    };
    let open_at = |span: Span| {
        let open = marks.iter().filter(|(_, other)| other.is_open() && other.spans == [(span.start, span.end)]);
        open.map(|(id, _)| *id).find(|other| *other != id)
    };
    let found = find_words(text, &mark.text).into_iter().filter(|span| !is_decided(*span));
    found
        .map(|span| Occurrence { span, mark: open_at(span) })
        .filter(|one| mark.state != State::Rejected || one.mark.is_some())
        .collect()
}

/// Occurrences of `words` in `text` as whole words. What begins or ends with a sign, such as `+/- pain`, may touch a word there.
pub fn find_words(text: &str, words: &str) -> Vec<Span> {
    let Some((begin, end)) = words.chars().next().zip(words.chars().next_back()) else { return Vec::new() };
    let all_upper = words.chars().any(char::is_uppercase) && !words.chars().any(char::is_lowercase);
    let same = |a: char, b: char| match (all_upper, a.is_ascii() && b.is_ascii()) {
        (true, _) => a == b,
        (false, true) => a.eq_ignore_ascii_case(&b),
        (false, false) => a == b || a.to_lowercase().eq(b.to_lowercase()),
    };
    let mut found = Vec::new();
    let (mut before, mut free_from) = (None::<char>, 0);
    for (start, first) in text.char_indices() {
        let begins = can_begin(before, begin);
        before = Some(first);
        if !begins || start < free_from {
            continue;
        }
        let mut rest = text[start..].chars();
        let mut n_bytes = 0;
        let equal = words.chars().all(|wanted| {
            rest.next().is_some_and(|letter| {
                n_bytes += letter.len_utf8();
                same(letter, wanted)
            })
        });
        if equal && can_end(end, rest.next()) {
            found.push(Span::new(start, start + n_bytes));
            free_from = start + n_bytes;
        }
    }
    found
}

/// The decisions that make an occurrence equal to `mark`.
pub fn decisions(text: &str, mark: &MarkState, occurrence: &Occurrence) -> Vec<Decision> {
    if mark.state == State::Rejected {
        return occurrence.mark.map(|mark| Decision::Reject { mark }).into_iter().collect();
    }
    let concept = mark.concept_id().map(str::to_owned);
    match occurrence.mark {
        None => vec![Decision::Add {
            spans: to_pairs(&OffsetMap::new(text), &[occurrence.span]),
            kind: Some(mark.kind.clone()),
            is_nil: concept.is_none() && mark.is_nil,
            concept,
        }],
        Some(id) => match concept {
            Some(concept) => vec![Decision::Concept { mark: id, concept }],
            None if mark.is_nil => vec![Decision::Nil { mark: id }],
            None => vec![Decision::Accept { mark: id }],
        },
    }
}

/// The text around a span.
pub fn context(text: &str, span: Span) -> String {
    let (before, rest) = text.split_at(span.start as usize);
    let start = before.char_indices().rev().nth(CONTEXT - 1).map_or(0, |(at, _)| at);
    let after = &rest[span.len()..];
    let end = after.char_indices().nth(CONTEXT).map_or(after.len(), |(at, _)| at);
    let whole = &text[start..span.end as usize + end];
    whole.split_whitespace().collect::<Vec<&str>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, words: &str, expected: &[&str]) {
        let found: Vec<String> =
            find_words(text, words).iter().map(|span| format!("{}:{}", span.start, span.of(text))).collect();
        assert_eq!(found, expected, "{words} in {text}");
    }

    #[test]
    fn whole_word_occurrences_are_found() {
        check("Fever, fevers, hay fever: FEVER", "fever", &["0:Fever", "19:fever", "26:FEVER"]);
        check("A CT of the ct-guided kind", "CT", &["2:CT"]);
        check("🧪 Öl, öl", "öl", &["5:Öl", "10:öl"]);
        check("aa aa aa", "aa aa", &["0:aa aa"]);
        check("x", "", &[]);
    }

    #[test]
    fn names_that_begin_or_end_with_a_sign_are_found() {
        check("Had +/- symptom, 5+/- symptom; ++/- symptom", "+/- symptom", &["4:+/- symptom", "18:+/- symptom"]);
        check("p-log10 x and -Log10 x, --log10 x", "-log10 x", &["1:-log10 x", "14:-Log10 x"]);
        check("S-(R)-warfarin (R)-Warfarin", "(R)-warfarin", &["2:(R)-warfarin", "15:(R)-Warfarin"]);
        check("A Β-blocker, not ββ-blocker", "β-blocker", &["2:Β-blocker"]);
        check("V+ and V+ve, V++ (V+)", "V+", &["0:V+", "18:V+"]);
    }

    #[test]
    fn context_is_cut_at_character_boundaries() {
        let text = format!("{}fever{}", "é".repeat(50), "🧪".repeat(50));
        let start = text.find("fever").unwrap();
        let shown = context(&text, Span::new(start, start + 5));
        assert_eq!(shown, format!("{}fever{}", "é".repeat(40), "🧪".repeat(40)));
    }
}
