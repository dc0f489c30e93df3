//! Discontinuous names in coordinations: `breast and ovarian cancer` also contains breast cancer.

use std::collections::HashSet;

use super::scan::{Tier, WindowMatch, Word, lookup};
use crate::kb::lexicon::{bag_key, hash_token};
use crate::kb::subset::KbView;
use crate::text::Span;
use crate::text::analysis::Analysis;
use crate::text::composite::{Part, coordinations, split_composite_where};
use crate::text::normalise::fold_token_into;
use crate::text::words::is_prefix;

/// A discontinuous name in a text.
pub struct Coordinated {
    /// The pieces, in text order.
    pub spans: Vec<Span>,
    /// The words of the pieces, concatenated.
    pub words: Vec<Word>,
    /// The dictionary match; it indexes `words`.
    pub found: WindowMatch,
}

/// The discontinuous names of a text, from expansions of coordinations in which every conjunct is a name.
pub fn coordinated(view: KbView<'_>, analysis: &Analysis<'_>, words: &[Word]) -> Vec<Coordinated> {
    let text = analysis.text;
    let mut all: Vec<Coordinated> = Vec::new();
    let mut seen: HashSet<Vec<Span>> = HashSet::new();
    let sentences = analysis.sentences().iter();
    for part in sentences.flat_map(|sentence| around_conjunctions(text, words, *sentence)) {
        let begin = words.partition_point(|word| word.token.span.start < part.start);
        let end = words.partition_point(|word| word.token.span.start < part.end);
        let words = &words[begin..end];
        for window in coordinations(text, part) {
            if !all_known(text, words, window) || is_name(view, text, words, window) {
                continue;
            }
            // Expansions are ordered best first, so the first one that consists of names is taken.
            let to_names = |expansion: Vec<Part>| -> Option<Vec<Coordinated>> {
                expansion.into_iter().map(|part| name_of(view, text, words, part.spans)).collect()
            };
            let may_be_name = |spans: &[Span]| has_bag(view, words, spans);
            let readings = split_composite_where(text, window, may_be_name);
            let Some(parts) = readings.into_iter().find_map(to_names) else { continue };
            for part in parts {
                if part.spans.len() > 1 && seen.insert(part.spans.clone()) {
                    all.push(part);
                }
            }
        }
    }
    all
}

/// The parts of a sentence that may be coordinations of names: words of names around each conjunction, and one more
/// word on either side.
fn around_conjunctions(text: &str, words: &[Word], sentence: Span) -> Vec<Span> {
    let begin = words.partition_point(|word| word.token.span.start < sentence.start);
    let end = words.partition_point(|word| word.token.span.end <= sentence.end).max(begin);
    let words = &words[begin..end];
    let mut parts: Vec<Span> = Vec::new();
    // The words that begin and end the part: nearest ones that are in no name. Each is searched for once, so long lists
    // take linear time.
    let is_kept = |word: &Word| may_be_inside(text, word);
    let (mut first, mut known_last) = (0, None);
    for (at, word) in words.iter().enumerate() {
        if at > 0 && !is_kept(&words[at - 1]) {
            first = at - 1;
        }
        let is_conjunction = CONJUNCTIONS.iter().any(|one| word.token.span.of(text).eq_ignore_ascii_case(one))
            || at > 0
                && text[words[at - 1].token.span.end as usize..word.token.span.start as usize].contains(['/', '&']);
        if !is_conjunction {
            continue;
        }
        let last = match known_last {
            Some(last) if last >= at => last,
            _ => words[at..].iter().position(|word| !is_kept(word)).map_or(words.len() - 1, |n| at + n),
        };
        known_last = Some(last);
        let part = Span { start: words[first].token.span.start, end: words[last].token.span.end };
        match parts.last_mut() {
            Some(previous) if part.start < previous.end => previous.end = previous.end.max(part.end),
            _ => parts.push(part),
        }
    }
    parts
}

/// Conjunctions between conjuncts.
pub const CONJUNCTIONS: [&str; 3] = ["and", "or", "nor"];

/// Whether a word can be part of a coordination of names.
fn may_be_inside(text: &str, word: &Word) -> bool {
    let written = word.token.span.of(text);
    word.known
        || word.hashes.linking
        || JOINING.iter().any(|joining| written.eq_ignore_ascii_case(joining))
        || text.as_bytes().get(word.token.span.end as usize) == Some(&b'-') && is_prefix(written)
}

/// Whether every word of a window occurs in some name; otherwise no expansion can consist of names.
fn all_known(text: &str, words: &[Word], window: Span) -> bool {
    let first = words.partition_point(|word| word.token.span.start < window.start);
    let mut inside = words[first..].iter().take_while(|word| word.token.span.end <= window.end);
    inside.all(|word| may_be_inside(text, word))
}

/// Whether a coordination is an exact name itself: foot and mouth disease is no disease of the foot.
fn is_name(view: KbView<'_>, text: &str, words: &[Word], window: Span) -> bool {
    let words: Vec<Word> = inside(words, window).copied().collect();
    let found = lookup(view, text, &words);
    found.is_some_and(|found| found.forms.iter().any(|(_, tier)| *tier == Tier::Folded))
}

/// Words that join conjuncts.
const JOINING: [&str; 6] = ["and", "or", "both", "either", "neither", "nor"];

/// The words inside a span.
fn inside(words: &[Word], span: Span) -> impl Iterator<Item = &Word> {
    let first = words.partition_point(|word| word.token.span.start < span.start);
    words[first..].iter().take_while(move |word| word.token.span.end <= span.end)
}

/// The words of the spans of a part. A prefix and the rest of a word that share it, `hypo` and `thyroidism` in `hypo- and
/// hyperthyroidism`, are one word; `None` if a span cuts a word otherwise.
fn own_words(text: &str, words: &[Word], spans: &[Span]) -> Option<Vec<Word>> {
    let mut own: Vec<Word> = Vec::with_capacity(spans.len() + 2);
    for span in spans {
        let before = own.len();
        own.extend(inside(words, *span).copied());
        let covered = own.get(before).is_some_and(|word| word.token.span.start == span.start)
            && own.last().is_some_and(|word| word.token.span.end == span.end);
        if covered {
            continue;
        }
        let cut = words.partition_point(|word| word.token.span.end <= span.start);
        let cut = words.get(cut).filter(|word| word.token.span.start < span.start)?;
        let prefix = own[..before].last_mut().filter(|prefix| is_prefix(prefix.token.span.of(text)))?;
        let mut folded = String::new();
        fold_token_into(prefix.token.span.of(text), &mut folded);
        fold_token_into(&text[span.start as usize..cut.token.span.end as usize], &mut folded);
        prefix.hashes = hash_token(&folded);
        prefix.frequency = super::common::frequency(&folded);
        prefix.token.span.end = cut.token.span.end;
        let is_whole = own[before..].last().map_or(cut.token.span.end, |word| word.token.span.end) == span.end;
        if !is_whole {
            return None;
        }
    }
    Some(own)
}

/// Whether some name has just the words of these spans, in any order; those of most parts are no name.
fn has_bag(view: KbView<'_>, words: &[Word], spans: &[Span]) -> bool {
    has_bag_of(view, spans.iter().flat_map(|span| inside(words, *span)))
}

fn has_bag_of<'a>(view: KbView<'_>, words: impl Iterator<Item = &'a Word>) -> bool {
    let counted = words.filter(|word| !word.hashes.linking);
    !view.kb.roots().get(bag_key(counted.map(|word| word.hashes.root))).is_empty()
}

fn name_of(view: KbView<'_>, text: &str, words: &[Word], spans: Vec<Span>) -> Option<Coordinated> {
    let own = own_words(text, words, &spans)?;
    if !has_bag_of(view, own.iter()) {
        return None;
    }
    let found = lookup(view, text, &own)?;
    let sure = found.n_counted > 1 || found.forms.iter().any(|(_, tier)| *tier >= Tier::Permuted);
    sure.then_some(Coordinated { spans, words: own, found })
}
