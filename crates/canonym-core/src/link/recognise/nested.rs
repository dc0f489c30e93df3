//! Mentions that overlap: which are kept, and which nested ones are reported.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::DictionaryMatch;
use crate::kb::{ConceptId, KnowledgeBase, NameId};
use crate::text::Span;

/// Which mentions inside longer ones are reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Nested {
    /// None.
    None,
    /// Those of another semantic type than the longer one, such as a body part in a symptom, and those inside an
    /// unlinked mention. Preferred names of concepts, such as `heart failure`, stay whole.
    #[default]
    OtherTypes,
    /// All.
    All,
}

/// Whether a name of a concept is its preferred one.
pub fn is_preferred(kb: &KnowledgeBase, concept: ConceptId, name: NameId) -> bool {
    kb.name(name) == kb.preferred_name(concept)
}

/// Splits matches into those kept and those overlapping a kept one: more words win, then exact names, then more bytes,
/// then the earlier match. Causes at the start of a kept match are kept too.
pub(super) fn longest(mut matches: Vec<DictionaryMatch>) -> (Vec<DictionaryMatch>, Vec<DictionaryMatch>) {
    matches.sort_by_key(|entry| {
        (Reverse(entry.n_words), Reverse(entry.is_exact()), Reverse(entry.span.len()), entry.span.start)
    });
    let mut taken: BTreeMap<u32, u32> = BTreeMap::new();
    matches.into_iter().partition(|entry| {
        let before = taken.range(..entry.span.end).next_back();
        let Some((start, _)) = before.filter(|(_, end)| **end > entry.span.start) else {
            taken.insert(entry.span.start, entry.span.end);
            return true;
        };
        entry.is_cause && *start == entry.span.start
    })
}

/// Adds to matches that do not overlap those nested in them whose semantic type differs or is unknown.
pub(super) fn add_other_types(kb: &KnowledgeBase, kept: &mut Vec<DictionaryMatch>, mut nested: Vec<DictionaryMatch>) {
    if nested.is_empty() {
        return;
    }
    let type_of = |entry: &DictionaryMatch| kb.types(entry.best().0.concept).next();
    let is_whole = |entry: &DictionaryMatch| is_preferred(kb, entry.best().0.concept, entry.best().0.name);
    let outer = kept.iter().filter(|entry| !entry.is_cause && !is_whole(entry));
    let outer: BTreeMap<u32, &DictionaryMatch> = outer.map(|entry| (entry.span.start, entry)).collect();
    nested.retain(|entry| {
        let before = outer.range(..=entry.span.start).next_back();
        before.is_some_and(|(_, outer)| {
            let is_inside = entry.span.end <= outer.span.end && entry.span != outer.span;
            is_inside && type_of(entry).is_none_or(|of_entry| Some(of_entry) != type_of(outer))
        })
    });
    let nested = longest(nested).0;
    kept.extend(nested.into_iter().map(|entry| DictionaryMatch { is_nested: true, ..entry }));
}

/// Drops matches inside one piece of a discontinuous name.
pub(super) fn drop_pieces(matches: &mut Vec<DictionaryMatch>, unlikely: f32) {
    let apart = |entry: &&DictionaryMatch| entry.spans.len() > 1 && entry.senses[0].1 >= unlikely;
    let pieces: Vec<Span> = matches.iter().filter(apart).flat_map(|entry| entry.spans.clone()).collect();
    let inside = |span: Span| pieces.iter().any(|piece| piece.start <= span.start && span.end <= piece.end);
    matches.retain(|entry| entry.spans.len() > 1 || !inside(entry.span));
}
