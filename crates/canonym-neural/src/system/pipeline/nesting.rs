//! Nested span proposals. Every function is linear in the length of the text, apart from sorting.

use std::collections::{BTreeMap, HashSet};

use canonym_core::link::recognise::senses::SenseMatch;
use canonym_core::text::Span;
use canonym_core::text::tokens::Token;

use super::SpanProposal;
use crate::layers::crf::bilou::{MAX_TOKENS, Marked};

/// Marks tagger-only spans that contain a word used in another sense, as in `rash decision`. `sensed` is in text order.
pub(super) fn find_other_senses(proposals: &mut [SpanProposal], sensed: &[SenseMatch]) {
    let means_other = |sensed: &&SenseMatch| sensed.concepts.iter().map(|one| one.2).sum::<f32>() < 0.5;
    let others: Vec<Span> = sensed.iter().filter(means_other).map(|sensed| sensed.span).collect();
    for proposal in proposals.iter_mut().filter(|proposal| proposal.dictionary_match.is_none()) {
        let first = others.partition_point(|other| other.start < proposal.span.start);
        proposal.is_other_sense |= others.get(first).is_some_and(|other| other.end <= proposal.span.end);
    }
}

/// For each proposal, finds the highest probability of a longer tagger mention that contains it, and the highest among those with a
/// dictionary match.
pub(super) fn find_longer(proposals: &mut [SpanProposal], tokens: &[Token], mut marked: Vec<Marked>) {
    marked.sort_unstable_by_key(|mark| mark.first);
    let named = proposals.iter().filter(|proposal| proposal.dictionary_match.is_some() && !proposal.is_nested());
    let names: HashSet<Span> = named.map(|proposal| proposal.span).collect();
    // What is reported beside a longer name is judged as if that were not there.
    for proposal in proposals.iter_mut().filter(|proposal| !proposal.is_nested()) {
        let token = tokens.partition_point(|token| token.span.end <= proposal.span.start);
        // Mentions have at most `MAX_TOKENS` tokens, so those that contain the proposal start shortly before it.
        let from = marked.partition_point(|mark| mark.first + MAX_TOKENS < token);
        for mark in marked[from..].iter().take_while(|mark| mark.first <= token) {
            let span = Span { start: tokens[mark.first].span.start, end: tokens[mark.last].span.end };
            if span.start > proposal.span.start || span.end < proposal.span.end || span.len() == proposal.span.len() {
                continue;
            }
            proposal.inside = proposal.inside.max(mark.probability);
            if names.contains(&span) {
                proposal.inside_name = proposal.inside_name.max(mark.probability);
            }
        }
    }
}

/// Drops tagger-only proposals inside an exact name of several words, and those that contain a coordination split by the dictionary.
pub(super) fn drop_pieces(proposals: &mut Vec<SpanProposal>) {
    let spans = |wanted: &dyn Fn(&SpanProposal) -> bool| {
        let mut spans: Vec<Span> =
            proposals.iter().filter(|proposal| wanted(proposal)).map(|proposal| proposal.span).collect();
        spans.sort_unstable();
        spans
    };
    let phrases = Phrases::of(proposals.iter(), |proposal| proposal.is_phrase() && !proposal.is_nested());
    let mut hulls = spans(&|proposal| proposal.spans.len() > 1);
    // The end of each hull becomes the minimum of all following ends.
    for at in (1..hulls.len()).rev() {
        hulls[at - 1].end = hulls[at - 1].end.min(hulls[at].end);
    }
    proposals.retain(|proposal| {
        let span = proposal.span;
        let is_inside = phrases.hold(span);
        let next = hulls.partition_point(|hull| hull.start < span.start);
        let holds = hulls.get(next).is_some_and(|hull| hull.end <= span.end);
        proposal.dictionary_match.is_some() || !is_inside && !holds
    });
}

/// Drops proposals inside an unambiguous exact name of several words, except for a cause at its start.
pub(super) fn drop_inside_names(proposals: &mut Vec<&SpanProposal>) {
    let names = Phrases::of(proposals.iter().copied(), SpanProposal::is_name_of_words);
    proposals.retain(|proposal| proposal.spans.len() > 1 || proposal.is_cause() || !names.hold_inside(proposal.span));
}

/// Drops proposals inside one piece of a linked discontinuous name, as `diabetes` in `type 1 and 2 diabetes`, but not whole conjuncts.
pub(super) fn drop_inside_pieces(given: &mut Vec<&SpanProposal>, is_linked: impl Fn(&SpanProposal) -> bool) {
    let apart = given.iter().filter(|proposal| proposal.spans.len() > 1 && is_linked(proposal));
    let pieces = Phrases::new(apart.flat_map(|proposal| proposal.spans.iter().copied()).collect());
    given.retain(|proposal| proposal.spans.len() > 1 || proposal.is_conjunct || !pieces.hold(proposal.span));
}

/// Adds to proposals that do not overlap the linked ones of `all` nested in them: inside unlinked ones, and inside linked
/// ones of another semantic type whose name is not a preferred one. `kind` gives the semantic type of a linked proposal,
/// `suppress` drops overlapping ones.
pub(super) fn add_other_types<'a, T: PartialEq>(
    given: &mut Vec<&'a SpanProposal>,
    all: Vec<&'a SpanProposal>,
    is_linked: impl Fn(&SpanProposal) -> bool,
    is_preferred: impl Fn(&SpanProposal) -> bool,
    kind: impl Fn(&SpanProposal) -> Option<T>,
    suppress: impl FnOnce(Vec<&'a SpanProposal>) -> Vec<&'a SpanProposal>,
) {
    let is_outer = |proposal: &&&SpanProposal| proposal.spans.len() == 1 && !proposal.is_cause();
    let outer: BTreeMap<u32, &SpanProposal> =
        given.iter().filter(is_outer).map(|proposal| (proposal.span.start, *proposal)).collect();
    let known: HashSet<Span> = given.iter().map(|proposal| proposal.span).collect();
    let is_inside = |proposal: &SpanProposal| {
        let before = outer.range(..=proposal.span.start).next_back();
        let around = before.filter(|(_, outer)| proposal.span.end <= outer.span.end && proposal.span != outer.span);
        around.is_some_and(|(_, outer)| !is_linked(outer) || !is_preferred(outer) && kind(proposal) != kind(outer))
    };
    let nested = all.into_iter().filter(|proposal| {
        let is_name = proposal.dictionary_match.is_some() && proposal.spans.len() == 1;
        is_name && !known.contains(&proposal.span) && is_linked(proposal) && is_inside(proposal)
    });
    given.extend(suppress(nested.collect()));
}

/// Sorted spans, each with the maximum end so far.
struct Phrases(Vec<(Span, u32)>);

impl Phrases {
    fn of<'a>(proposals: impl Iterator<Item = &'a SpanProposal>, wanted: impl Fn(&SpanProposal) -> bool) -> Phrases {
        let is_one = |proposal: &&SpanProposal| proposal.spans.len() == 1 && wanted(proposal);
        Phrases::new(proposals.filter(is_one).map(|proposal| proposal.span).collect())
    }

    fn new(spans: Vec<Span>) -> Phrases {
        let mut spans: Vec<(Span, u32)> = spans.into_iter().map(|span| (span, 0)).collect();
        spans.sort_unstable();
        let mut furthest = 0;
        for (span, end) in &mut spans {
            furthest = furthest.max(span.end);
            *end = furthest;
        }
        Phrases(spans)
    }

    /// Whether one of them contains `span`.
    fn hold(&self, span: Span) -> bool {
        let n = self.0.partition_point(|(phrase, _)| phrase.start <= span.start);
        n > 0 && self.0[n - 1].1 >= span.end
    }

    /// Whether a longer one contains `span`.
    fn hold_inside(&self, span: Span) -> bool {
        let n_before = self.0.partition_point(|(phrase, _)| phrase.start < span.start);
        let n = self.0.partition_point(|(phrase, _)| phrase.start <= span.start);
        n_before > 0 && self.0[n_before - 1].1 >= span.end || n > n_before && self.0[n - 1].0.end > span.end
    }
}

#[cfg(test)]
mod tests {
    use canonym_core::text::tokens::tokenize;

    use super::*;

    fn proposal(start: usize, end: usize) -> SpanProposal {
        SpanProposal::new(&"x".repeat(100), vec![Span::new(start, end)], &[])
    }

    #[test]
    fn the_likeliest_longer_mention_is_found() {
        let text = "severe chronic kidney disease today";
        let tokens = tokenize(text);
        let mark = |first, last, probability| Marked { first, last, probability };
        let mut proposals = vec![
            SpanProposal::new(text, vec![Span::new(15, 29)], &[]),
            SpanProposal::new(text, vec![Span::new(30, 35)], &[]),
        ];
        let marked = vec![mark(1, 3, 0.4), mark(0, 3, 0.6), mark(2, 3, 0.9), mark(3, 4, 0.8)];
        find_longer(&mut proposals, &tokens, marked);
        assert_eq!((proposals[0].inside, proposals[1].inside), (0.6, 0.8));
        assert_eq!(proposals[0].inside_name, 0.0);
    }

    #[test]
    fn phrases_hold_what_stands_inside_them() {
        let all = [proposal(10, 20), proposal(12, 15), proposal(30, 40), proposal(30, 35)];
        let phrases = Phrases::of(all.iter(), |_| true);
        assert!(phrases.hold(Span::new(10, 20)) && phrases.hold(Span::new(14, 18)) && !phrases.hold(Span::new(18, 22)));
        assert!(!phrases.hold_inside(Span::new(10, 20)) && phrases.hold_inside(Span::new(12, 15)));
        assert!(phrases.hold_inside(Span::new(30, 35)) && !phrases.hold_inside(Span::new(30, 40)));
        assert!(!Phrases::of([].iter(), |_| true).hold(Span::new(0, 1)));
    }
}
