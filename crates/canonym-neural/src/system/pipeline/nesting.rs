//! Nested span proposals. Every function is linear in the length of the text, apart from sorting.

use std::collections::HashSet;

use canonym_core::link::recognise::senses::SenseMatch;
use canonym_core::link::recognise::{Overlapping, SpanSet};
use canonym_core::text::Span;
use canonym_core::text::tokens::Token;

use super::SpanProposal;
use crate::layers::crf::bilou::{MAX_TOKENS, TaggedSpan};

/// Marks tagger-only spans that contain a word used in another sense, as in `rash decision`. `sensed` is in text order.
pub(super) fn find_other_senses(proposals: &mut [SpanProposal], sensed: &[SenseMatch]) {
    let means_other = |sensed: &&SenseMatch| sensed.p_concept() < 0.5;
    let others: Vec<Span> = sensed.iter().filter(means_other).map(|sensed| sensed.span).collect();
    for proposal in proposals.iter_mut().filter(|proposal| proposal.dictionary_match.is_none()) {
        let first = others.partition_point(|other| other.start < proposal.span.start);
        proposal.is_other_sense |= others.get(first).is_some_and(|other| other.end <= proposal.span.end);
    }
}

/// For each proposal, finds the highest probability of a longer tagger mention that contains it, and the highest among those with a
/// dictionary match.
pub(super) fn find_longer(proposals: &mut [SpanProposal], tokens: &[Token], mut marked: Vec<TaggedSpan>) {
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
    let phrases = spans_of(proposals.iter(), |proposal| proposal.is_phrase() && !proposal.is_nested());
    let mut hulls = spans(&|proposal| proposal.spans.len() > 1);
    // The end of each hull becomes the minimum of all following ends.
    for at in (1..hulls.len()).rev() {
        hulls[at - 1].end = hulls[at - 1].end.min(hulls[at].end);
    }
    proposals.retain(|proposal| {
        let span = proposal.span;
        let is_inside = phrases.contains(span);
        let next = hulls.partition_point(|hull| hull.start < span.start);
        let holds = hulls.get(next).is_some_and(|hull| hull.end <= span.end);
        proposal.dictionary_match.is_some() || !is_inside && !holds
    });
}

/// Drops proposals inside an unambiguous exact name of several words, except for a cause at its start.
pub(super) fn drop_inside_names(proposals: &mut Vec<&SpanProposal>) {
    let names = spans_of(proposals.iter().copied(), SpanProposal::is_name_of_words);
    proposals
        .retain(|proposal| proposal.is_discontinuous() || proposal.is_cause() || !names.contains_inside(proposal.span));
}

/// Sorted contiguous spans of proposals.
fn spans_of<'a>(proposals: impl Iterator<Item = &'a SpanProposal>, wanted: impl Fn(&SpanProposal) -> bool) -> SpanSet {
    let is_one = |proposal: &&SpanProposal| !proposal.is_discontinuous() && wanted(proposal);
    SpanSet::new(proposals.filter(is_one).map(|proposal| proposal.span).collect())
}

#[cfg(test)]
mod tests {
    use canonym_core::text::tokens::tokenize;

    use super::*;

    #[test]
    fn the_likeliest_longer_mention_is_found() {
        let text = "severe chronic kidney disease today";
        let tokens = tokenize(text);
        let mark = |first, last, probability| TaggedSpan { first, last, probability };
        let mut proposals = vec![
            SpanProposal::new(text, vec![Span::new(15, 29)], &[]),
            SpanProposal::new(text, vec![Span::new(30, 35)], &[]),
        ];
        let marked = vec![mark(1, 3, 0.4), mark(0, 3, 0.6), mark(2, 3, 0.9), mark(3, 4, 0.8)];
        find_longer(&mut proposals, &tokens, marked);
        assert_eq!((proposals[0].inside, proposals[1].inside), (0.6, 0.8));
        assert_eq!(proposals[0].inside_name, 0.0);
    }
}
