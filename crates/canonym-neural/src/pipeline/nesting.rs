//! Span proposals inside longer ones. Every function takes time that is linear in the length of the text, sorting apart.

use std::collections::HashSet;

use canonym::text::Span;
use canonym::text::tokens::Token;

use super::Place;
use crate::tagging::lattice::{MAX_TOKENS, Marked};

/// Finds for each place the most probable mention of the tagger that is longer and holds it, and the most probable of those that are dictionary
/// matches, too.
pub(super) fn find_longer(places: &mut [Place], tokens: &[Token], mut marked: Vec<Marked>) {
    marked.sort_unstable_by_key(|mark| mark.first);
    let names: HashSet<Span> = places.iter().filter(|place| place.spotted.is_some()).map(|place| place.span).collect();
    for place in places {
        let token = tokens.partition_point(|token| token.span.end <= place.span.start);
        // A mention has a limited number of tokens, so those that hold the place begin shortly before it.
        let from = marked.partition_point(|mark| mark.first + MAX_TOKENS < token);
        for mark in marked[from..].iter().take_while(|mark| mark.first <= token) {
            let span = Span { start: tokens[mark.first].span.start, end: tokens[mark.last].span.end };
            if span.start > place.span.start || span.end < place.span.end || span.len() == place.span.len() {
                continue;
            }
            place.inside = place.inside.max(mark.probability);
            if names.contains(&span) {
                place.inside_name = place.inside_name.max(mark.probability);
            }
        }
    }
}

/// Drops proposals of the tagger alone that stand inside an exact name of several words, or that hold a coordination which the dictionary takes
/// apart.
pub(super) fn drop_pieces(places: &mut Vec<Place>) {
    let spans = |wanted: &dyn Fn(&Place) -> bool| {
        let mut spans: Vec<Span> = places.iter().filter(|place| wanted(place)).map(|place| place.span).collect();
        spans.sort_unstable();
        spans
    };
    let mut phrases = spans(&|place| place.is_phrase() && place.spans.len() == 1);
    let mut hulls = spans(&|place| place.spans.len() > 1);
    // The end of a phrase becomes the furthest so far, that of a hull the nearest from there on.
    for at in 1..phrases.len() {
        phrases[at].end = phrases[at].end.max(phrases[at - 1].end);
    }
    for at in (1..hulls.len()).rev() {
        hulls[at - 1].end = hulls[at - 1].end.min(hulls[at].end);
    }
    places.retain(|place| {
        let span = place.span;
        let before = phrases.partition_point(|phrase| phrase.start <= span.start);
        let is_inside = before > 0 && phrases[before - 1].end >= span.end;
        let next = hulls.partition_point(|hull| hull.start < span.start);
        let holds = hulls.get(next).is_some_and(|hull| hull.end <= span.end);
        place.spotted.is_some() || !is_inside && !holds
    });
}
