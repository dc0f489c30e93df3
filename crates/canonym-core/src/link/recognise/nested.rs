//! Mentions that overlap: which are kept, and which nested ones are reported. Everything is linear in their number, apart from sorting.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

use super::DictionaryMatch;
use super::scan::Tier;
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

/// Whether the semantic type of a nested mention differs from that of the longer one. A disease inside a symptom does not count: `hart burn`
/// holds no burn, but `barky cough`, a sign of croup, holds a cough.
pub fn is_other_type(nested: Option<&str>, outer: Option<&str>) -> bool {
    nested != outer && (nested, outer) != (Some("Disease"), Some("Symptom"))
}

/// Whether a name of a concept is its preferred one.
pub fn is_preferred(kb: &KnowledgeBase, concept: ConceptId, name: NameId) -> bool {
    kb.name(name) == kb.preferred_name(concept)
}

/// A mention that may overlap others.
pub trait Overlapping {
    /// Its spans in text order; several if it is discontinuous.
    fn spans(&self) -> &[Span];

    /// Whether it names a cause, such as the drug in `lithium-induced tremor`.
    fn is_cause(&self) -> bool;

    /// From its first to its last byte.
    fn hull(&self) -> Span {
        let spans = self.spans();
        Span { start: spans[0].start, end: spans[spans.len() - 1].end }
    }

    /// Whether it has several spans.
    fn is_discontinuous(&self) -> bool {
        self.spans().len() > 1
    }
}

impl Overlapping for DictionaryMatch {
    fn spans(&self) -> &[Span] {
        &self.spans
    }

    fn is_cause(&self) -> bool {
        self.is_cause
    }
}

impl<T: Overlapping> Overlapping for &T {
    fn spans(&self) -> &[Span] {
        (**self).spans()
    }

    fn is_cause(&self) -> bool {
        (**self).is_cause()
    }
}

/// Splits entries, the best first, into those kept and those that overlap a kept one. Discontinuous mentions never conflict, nor do causes at
/// the start of a kept mention. `mention` gives the mention of an entry.
pub fn keep_disjoint<T, M: Overlapping>(entries: Vec<T>, mention: impl Fn(&T) -> &M) -> (Vec<T>, Vec<T>) {
    let mut taken: BTreeMap<u32, u32> = BTreeMap::new();
    entries.into_iter().partition(|entry| {
        let mention = mention(entry);
        let span = mention.hull();
        let before = taken.range(..span.end).next_back().filter(|(_, end)| **end > span.start);
        match before {
            _ if mention.is_discontinuous() => true,
            Some((start, _)) => mention.is_cause() && *start == span.start,
            None => {
                taken.insert(span.start, span.end);
                true
            }
        }
    })
}

/// The entries inside a longer one of `outer`, whose mentions do not overlap, that are reported beside it.
pub fn nested_in<T: Overlapping>(outer: &[T], entries: Vec<T>, is_reported: impl Fn(&T, &T) -> bool) -> Vec<T> {
    let outer = outer.iter().filter(|outer| !outer.is_discontinuous() && !outer.is_cause());
    let outer: BTreeMap<u32, &T> = outer.map(|outer| (outer.hull().start, outer)).collect();
    let reported = |entry: &T| {
        let span = entry.hull();
        let before = outer.range(..=span.start).next_back().map(|(_, outer)| *outer);
        let around = before.filter(|outer| span.end <= outer.hull().end && span != outer.hull());
        around.is_some_and(|outer| is_reported(entry, outer))
    };
    entries.into_iter().filter(reported).collect()
}

/// Whether a span lacks only letters, digits and signs of a longer one, as `Hep` of `Hep C`.
pub fn is_all_but_letters(text: &str, nested: Span, outer: Span) -> bool {
    let part = |start: u32, end: u32| text.get(start as usize..end as usize).unwrap_or_default();
    let rest = [part(outer.start, nested.start), part(nested.end, outer.end)];
    let mut words = rest.into_iter().flat_map(|rest| rest.split(|letter: char| !letter.is_alphanumeric()));
    words.all(|word| word.len() < 2 || word.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Drops mentions inside one piece of a discontinuous mention that is `certain`, as `diabetes` in `type 1 and 2 diabetes`, unless they are
/// `kept`.
pub fn drop_inside_pieces<T: Overlapping>(
    entries: &mut Vec<T>,
    certain: impl Fn(&T) -> bool,
    kept: impl Fn(&T) -> bool,
) {
    let apart = entries.iter().filter(|entry| entry.is_discontinuous() && certain(entry));
    let pieces = SpanSet::new(apart.flat_map(|entry| entry.spans().iter().copied()).collect());
    entries.retain(|entry| entry.is_discontinuous() || kept(entry) || !pieces.contains(entry.hull()));
}

/// Spans, looked up by what they contain: sorted, each with the maximum end so far.
#[derive(Debug, Clone, Default)]
pub struct SpanSet(Vec<(Span, u32)>);

impl SpanSet {
    /// A set of spans.
    pub fn new(spans: Vec<Span>) -> SpanSet {
        let mut spans: Vec<(Span, u32)> = spans.into_iter().map(|span| (span, 0)).collect();
        spans.sort_unstable();
        let mut furthest = 0;
        for (span, end) in &mut spans {
            furthest = furthest.max(span.end);
            *end = furthest;
        }
        SpanSet(spans)
    }

    /// Whether one of them contains `span`.
    pub fn contains(&self, span: Span) -> bool {
        let n = self.0.partition_point(|(other, _)| other.start <= span.start);
        n > 0 && self.0[n - 1].1 >= span.end
    }

    /// Whether one that starts before `span` contains it.
    pub fn contains_behind_start(&self, span: Span) -> bool {
        let n = self.0.partition_point(|(other, _)| other.start < span.start);
        n > 0 && self.0[n - 1].1 >= span.end
    }

    /// Whether a longer one contains `span`.
    pub fn contains_inside(&self, span: Span) -> bool {
        let n_before = self.0.partition_point(|(other, _)| other.start < span.start);
        let n = self.0.partition_point(|(other, _)| other.start <= span.start);
        n_before > 0 && self.0[n_before - 1].1 >= span.end || n > n_before && self.0[n - 1].0.end > span.end
    }
}

/// Where concepts are mentioned, by the blocks of text that the mentions touch, so that a lookup takes the same time in texts of any length.
#[derive(Debug, Default)]
pub(super) struct ConceptSpans(HashMap<(ConceptId, u32), Vec<Span>>);

impl ConceptSpans {
    /// Bytes of a block.
    const BLOCK: u32 = 64;

    fn blocks(span: Span) -> std::ops::RangeInclusive<u32> {
        span.start / Self::BLOCK..=span.end.saturating_sub(1).max(span.start) / Self::BLOCK
    }

    pub fn insert(&mut self, concept: ConceptId, span: Span) {
        Self::blocks(span).for_each(|block| self.0.entry((concept, block)).or_default().push(span));
    }

    /// Whether a mention of the concept overlaps `span`.
    pub fn overlap(&self, concept: ConceptId, span: Span) -> bool {
        let mut near = Self::blocks(span).filter_map(|block| self.0.get(&(concept, block))).flatten();
        near.any(|other| other.overlaps(span))
    }
}

/// Splits matches into those kept and those overlapping a kept one: more words win, then exact names, then more bytes,
/// then the earlier match.
pub(super) fn longest(mut matches: Vec<DictionaryMatch>) -> (Vec<DictionaryMatch>, Vec<DictionaryMatch>) {
    matches.sort_by_key(|entry| {
        (Reverse(entry.n_words), Reverse(entry.is_exact()), Reverse(entry.span.len()), entry.span.start)
    });
    keep_disjoint(matches, |entry| entry)
}

/// Drops names of several words in another order, or with a comma, that cross an exact name of several words: `cells, Vero` in
/// `RD cells, Vero cells`.
pub(super) fn drop_crossing(text: &str, matched: &mut Vec<DictionaryMatch>) {
    let loose = |entry: &DictionaryMatch| {
        let (best, _) = entry.best();
        best.sense.is_none() && (best.tier < Tier::Ordered || entry.span.of(text).contains(','))
    };
    let firm = |entry: &&DictionaryMatch| entry.n_words > 1 && !entry.is_corrected && !entry.expanded && !loose(entry);
    let mut firm: Vec<Span> = matched.iter().filter(firm).map(|entry| entry.span).collect();
    if firm.is_empty() {
        return;
    }
    firm.sort_unstable();
    let crosses = |span: Span| {
        let near = firm[..firm.partition_point(|other| other.start < span.end)].iter().rev().take(MAX_NEAR);
        let mut overlapping = near.filter(|other| other.end > span.start);
        overlapping.any(|other| {
            !(other.start <= span.start && other.end >= span.end || other.start >= span.start && other.end <= span.end)
        })
    };
    matched.retain(|entry| entry.n_words < 2 || !loose(entry) || !crosses(entry.span));
}

/// Maximum number of exact names before the end of a match that are compared with it.
const MAX_NEAR: usize = 32;

/// Adds to matches that do not overlap those nested in them of another concept whose semantic type differs or is unknown.
pub(super) fn add_other_types(
    kb: &KnowledgeBase,
    text: &str,
    kept: &mut Vec<DictionaryMatch>,
    nested: Vec<DictionaryMatch>,
) {
    let type_of = |entry: &DictionaryMatch| kb.types(entry.best().0.concept).next();
    let is_whole = |entry: &DictionaryMatch| is_preferred(kb, entry.best().0.concept, entry.best().0.name);
    let is_reported = |entry: &DictionaryMatch, outer: &DictionaryMatch| {
        !is_whole(outer)
            && entry.best().0.concept != outer.best().0.concept
            && !is_all_but_letters(text, entry.span, outer.span)
            && type_of(entry).is_none_or(|of_entry| is_other_type(Some(of_entry), type_of(outer)))
    };
    let nested = longest(nested_in(kept, nested, is_reported)).0;
    kept.extend(nested.into_iter().map(|entry| DictionaryMatch { is_nested: true, ..entry }));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_of_spans_knows_what_they_contain() {
        let set = SpanSet::new([(10, 20), (12, 15), (30, 40), (30, 35)].map(|(from, to)| Span::new(from, to)).to_vec());
        assert!(set.contains(Span::new(10, 20)) && set.contains(Span::new(14, 18)) && !set.contains(Span::new(18, 22)));
        assert!(!set.contains_inside(Span::new(10, 20)) && set.contains_inside(Span::new(12, 15)));
        assert!(set.contains_inside(Span::new(30, 35)) && !set.contains_inside(Span::new(30, 40)));
        assert!(set.contains_behind_start(Span::new(12, 15)) && set.contains_behind_start(Span::new(11, 20)));
        assert!(!set.contains_behind_start(Span::new(10, 15)) && !set.contains_behind_start(Span::new(15, 21)));
        assert!(!SpanSet::default().contains(Span::new(0, 1)));
    }

    #[test]
    fn mentions_of_a_concept_are_found_where_they_overlap() {
        let mut spans = ConceptSpans::default();
        let [one, other] = [ConceptId(1), ConceptId(2)];
        for (from, to) in [(60, 70), (128, 192), (1000, 1300)] {
            spans.insert(one, Span::new(from, to));
        }
        for (from, to, overlaps) in
            [(0, 60, false), (69, 71, true), (70, 128, false), (192, 200, false), (1150, 1151, true)]
        {
            assert_eq!(spans.overlap(one, Span::new(from, to)), overlaps, "{from}..{to}");
            assert!(!spans.overlap(other, Span::new(from, to)));
        }
    }

    struct Mentioned(Vec<Span>, bool);

    impl Overlapping for Mentioned {
        fn spans(&self) -> &[Span] {
            &self.0
        }

        fn is_cause(&self) -> bool {
            self.1
        }
    }

    fn hulls(mentions: &[Mentioned]) -> Vec<(u32, u32)> {
        mentions.iter().map(|mention| (mention.hull().start, mention.hull().end)).collect()
    }

    #[test]
    fn the_best_of_overlapping_mentions_is_kept_with_causes_and_discontinuous_ones() {
        let mention = |spans: &[(usize, usize)], is_cause| {
            Mentioned(spans.iter().map(|(from, to)| Span::new(*from, *to)).collect(), is_cause)
        };
        let entries = vec![
            mention(&[(0, 20)], false),
            mention(&[(5, 8)], false),
            mention(&[(0, 7)], true),
            mention(&[(8, 20)], true),
            mention(&[(0, 3), (30, 34)], false),
            mention(&[(30, 34)], false),
        ];
        let (mut kept, rest) = keep_disjoint(entries, |mention| mention);
        assert_eq!((hulls(&kept), hulls(&rest)), (vec![(0, 20), (0, 7), (0, 34), (30, 34)], vec![(5, 8), (8, 20)]));
        drop_inside_pieces(&mut kept, |_| true, |mention| mention.hull().start == 0);
        assert_eq!(hulls(&kept), [(0, 20), (0, 7), (0, 34)]);
        let nested = nested_in(&kept, rest, |entry, outer| entry.hull().start == 5 && outer.hull().end == 20);
        assert_eq!(hulls(&nested), [(5, 8)]);
    }
}
