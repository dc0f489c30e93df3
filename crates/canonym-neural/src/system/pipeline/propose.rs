//! Span proposals of a document: what the tagger marks, and what the dictionary matches.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::ops::Range;

use canonym_core::link::Link;
use canonym_core::link::recognise::senses::drop_idioms;
use canonym_core::link::recognise::{DictionaryMatch, Overlapping, SpanSet, drop_non_mentions, expanded};
use canonym_core::text::Span;
use canonym_core::text::analysis::Analysis;
use canonym_core::text::register::research;
use canonym_core::text::tokens::{Gap, Token};
use canonym_core::text::words::is_prefix;

use super::features::min_proposed;
use super::{Pipeline, Scratch, SpanProposal, nesting};
use crate::layers::crf::bilou::TaggedSpan;
use crate::models::decision::Factors;
use crate::models::tagger::features::TokenFeatures;
use crate::models::tagger::infer::TaggedWindow;

/// Tagger mentions below this probability are ignored.
const MIN_TAGGED: f32 = 0.1;

/// The first and last token of a span.
type Tokens = (usize, usize);

/// What the tagger says of a text: its mentions, and the probabilities of all spans that are proposed.
#[derive(Debug, Default)]
struct TaggerMarks {
    /// By label set: mentions of at least [`MIN_TAGGED`], in text order.
    mentions: Vec<Vec<TaggedSpan>>,
    /// By label set: those that are proposed, in text order.
    likely: Vec<Vec<Tokens>>,
    /// Spans whose probabilities are kept, sorted.
    spans: Vec<Tokens>,
    /// Probabilities of each of these spans, by label set.
    probabilities: Vec<f32>,
    /// Number of label sets.
    n_label_sets: usize,
}

impl TaggerMarks {
    /// The probabilities of a kept span, by label set.
    fn of(&self, tokens: Tokens) -> &[f32] {
        let at = self.spans.binary_search(&tokens).expect("the spans of all proposals are kept");
        &self.probabilities[at * self.n_label_sets..][..self.n_label_sets]
    }
}

impl Pipeline {
    /// The spans of a document that may be mentions, in text order, not linked yet.
    pub(super) fn propose(&self, document: &Analysis<'_>, scratch: &mut Scratch) -> Vec<SpanProposal> {
        let text = document.text;
        let label_sets = &self.recognizer.label_sets;
        let uses = document.short_forms();
        let features = self.recognizer.features(document, &mut scratch.tagger);
        let (matches, sensed) = self.dictionary.matches_and_senses(document, &mut scratch.scan);
        let mut asked: Vec<Tokens> =
            matches.iter().flat_map(|matched| token_ranges(&features.tokens, &matched.spans)).collect();
        asked.sort_unstable();
        asked.dedup();
        let windows = self.recognizer.windows(&features, &scratch.tagger);
        let mut marks = self.marks(text, &features, &asked, windows);
        let mut proposals: Vec<SpanProposal> = Vec::new();
        let mut index_of: HashMap<Vec<Span>, usize> = HashMap::new();
        for (first, last) in marks.likely.iter().flatten() {
            let span = closed(text, span_of(&features.tokens, (*first, *last)));
            index_of.entry(vec![span]).or_insert_with(|| {
                proposals.push(SpanProposal::new(text, vec![span], uses));
                proposals.len() - 1
            });
        }
        // A name inside an unlikely longer one stands for itself: `liver` in `lesion in the liver`, if that is no name.
        let is_outer = |matched: &&DictionaryMatch| {
            !matched.is_nested && !matched.is_discontinuous() && self.dictionary.is_linked(matched)
        };
        let outer = SpanSet::new(matches.iter().filter(is_outer).map(|matched| matched.span).collect());
        for mut matched in matches {
            matched.is_nested &= outer.contains_inside(matched.span);
            if matched.is_nested {
                let proposal = SpanProposal::new(text, matched.spans.clone(), uses);
                proposals.push(SpanProposal { dictionary_match: Some(matched), ..proposal });
                continue;
            }
            let at = *index_of.entry(matched.spans.clone()).or_insert_with(|| {
                proposals.push(SpanProposal::new(text, matched.spans.clone(), uses));
                proposals.len() - 1
            });
            proposals[at].dictionary_match = Some(matched);
        }
        for sensed in &sensed {
            if let Some(at) = index_of.get([sensed.span].as_slice()) {
                let proposal = &mut proposals[*at];
                proposal.is_other_sense = proposal.dictionary_match.is_none();
                proposal.absent_sense.clone_from(&sensed.absent);
                if let (true, Some(first)) = (sensed.is_own, sensed.concepts.first()) {
                    proposal.stated = first.2;
                }
            }
        }
        nesting::find_other_senses(&mut proposals, &sensed);
        nesting::find_longer(&mut proposals, &features.tokens, std::mem::take(&mut marks.mentions).concat());
        drop_non_mentions(text, &mut proposals, |proposal| proposal.span);
        drop_idioms(&sensed, &mut proposals, |proposal| proposal.span);
        nesting::drop_pieces(&mut proposals);
        let any = label_sets.iter().position(|label_set| label_set.any_type);
        let research = research(text);
        for proposal in &mut proposals {
            proposal.research = research;
            proposal.is_dictionary_link =
                proposal.dictionary_match.as_ref().is_some_and(|matched| self.dictionary.is_linked(matched));
            let ranges: Vec<&[f32]> =
                token_ranges(&features.tokens, &proposal.spans).map(|tokens| marks.of(tokens)).collect();
            let of = |label_set: usize| ranges.iter().map(|range| range[label_set]).fold(0.0, f32::max);
            proposal.by_label_set = (0..label_sets.len())
                .map(|label_set| if label_sets[label_set].name.is_some() { of(label_set) } else { 0.0 })
                .collect();
            proposal.any = any.map_or(0.0, of);
            for label_set in (0..label_sets.len()).filter(|label_set| self.covered[*label_set]) {
                if proposal.by_label_set[label_set] > proposal.tagged.1 {
                    proposal.tagged = (label_set, proposal.by_label_set[label_set]);
                }
            }
        }
        proposals.sort_by_key(|proposal| (proposal.span.start, Reverse(proposal.span.end)));
        proposals
    }

    /// Reads the tagger output window by window: the mentions, and the probabilities of the `asked` spans, which are sorted, and of those
    /// that the tagger proposes.
    fn marks(
        &self,
        text: &str,
        features: &TokenFeatures,
        asked: &[Tokens],
        windows: impl Iterator<Item = TaggedWindow>,
    ) -> TaggerMarks {
        let label_sets = &self.recognizer.label_sets;
        let n = label_sets.len();
        let mut marks = TaggerMarks {
            mentions: vec![Vec::new(); n],
            likely: vec![Vec::new(); n],
            n_label_sets: n,
            ..TaggerMarks::default()
        };
        for window in windows {
            let from_window = |first: usize| asked.partition_point(|tokens| tokens.0 < first);
            let Range { start, end } = window.own;
            let mut spans = asked[from_window(start)..from_window(end)].to_vec();
            for label_set in (0..n).filter(|label_set| label_sets[*label_set].proposes()) {
                let mentions = &mut marks.mentions[label_set];
                let n_before = mentions.len();
                window.mentions(label_set, MIN_TAGGED, mentions);
                if !self.covered[label_set] {
                    continue;
                }
                let threshold = min_proposed(label_sets[label_set].name.as_deref().unwrap_or_default());
                let likely = mentions[n_before..].iter().filter(|mark| mark.probability >= threshold);
                let likely = likely.map(|mark| (mark.first, mark.last));
                let n_likely = marks.likely[label_set].len();
                marks.likely[label_set].extend(likely.filter(|tokens| is_whole(text, &features.tokens, *tokens)));
                spans.extend_from_slice(&marks.likely[label_set][n_likely..]);
            }
            spans.sort_unstable();
            spans.dedup();
            let probability = |(first, last): &Tokens| (0..n).map(|set| window.mention(set, *first, *last)).collect();
            marks.probabilities.extend(spans.iter().flat_map::<Vec<f32>, _>(probability));
            marks.spans.extend(spans);
        }
        marks
    }
}

/// The span of a range of tokens.
fn span_of(tokens: &[Token], (first, last): Tokens) -> Span {
    Span { start: tokens[first].span.start, end: tokens[last].span.end }
}

/// The tokens of the hull of `spans` and, if there are several, of each: many corpora annotate a whole coordination, so both count.
fn token_ranges<'a>(tokens: &'a [Token], spans: &'a [Span]) -> impl Iterator<Item = Tokens> + 'a {
    let hull = Span { start: spans[0].start, end: spans[spans.len() - 1].end };
    let pieces = if spans.len() > 1 { spans } else { &[] };
    std::iter::once(hull).chain(pieces.iter().copied()).filter_map(|span| {
        let first = tokens.partition_point(|token| token.span.end <= span.start);
        let end = tokens.partition_point(|token| token.span.start < span.end);
        (first < end).then(|| (first, end - 1))
    })
}

impl SpanProposal {
    pub(super) fn new(text: &str, spans: Vec<Span>, uses: &[(Span, Span)]) -> SpanProposal {
        let hull = Span { start: spans[0].start, end: spans[spans.len() - 1].end };
        let name = expanded(text, &spans, uses);
        SpanProposal {
            span: hull,
            spans,
            tagged: (0, 0.0),
            by_label_set: Vec::new(),
            any: 0.0,
            inside: 0.0,
            inside_name: 0.0,
            is_conjunct: follows_conjunction(text, hull.start),
            is_other_sense: false,
            absent_sense: None,
            stated: 0.0,
            research: 0.0,
            is_dictionary_link: false,
            dictionary_match: None,
            name,
            link: Link::default(),
            factors: Factors::default(),
        }
    }
}

/// Whether a token window starts and ends at word boundaries; a prefix such as `pre-` belongs to the following word.
fn is_whole(text: &str, tokens: &[Token], (first, last): (usize, usize)) -> bool {
    let is_joined = |at: usize| tokens.get(at).is_some_and(|token| token.before == Gap::Glued);
    let follows_prefix = tokens[first].before == Gap::Hyphen && first > 0 && is_prefix(tokens[first - 1].span.of(text));
    let within = &text[tokens[first].span.start as usize..tokens[last].span.end as usize];
    let begins_inside = first > 0 && is_joined(first);
    !(begins_inside || is_joined(last + 1) || follows_prefix || within.contains('\n'))
}

/// Whether the text before `start` ends with a conjunction or a comma.
fn follows_conjunction(text: &str, start: u32) -> bool {
    let before = text[..start as usize].trim_end_matches(' ');
    before.ends_with(',') || [" and", " or"].iter().any(|word| before.ends_with(word))
}

/// Extends a span by an unbalanced bracket next to it: `poly(ADP-ribose` gets its `)`.
fn closed(text: &str, span: Span) -> Span {
    let inside = span.of(text);
    let before = text[..span.start as usize].chars().next_back();
    let behind = text[span.end as usize..].chars().next();
    for (open, close) in [('(', ')'), ('[', ']')] {
        let (n_open, n_close) = (inside.matches(open).count(), inside.matches(close).count());
        if n_open > n_close && behind == Some(close) {
            return Span { start: span.start, end: span.end + 1 };
        }
        if n_close > n_open && before == Some(open) {
            return Span { start: span.start - 1, end: span.end };
        }
    }
    span
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_forms_are_written_out_and_brackets_closed() {
        let text = "Liver disease (LD) and LD cirrhosis of poly(ADP-ribose) polymerase";
        let analysis = Analysis::of_text(text);
        let uses = analysis.short_forms();
        let span = |of: &str, from: usize| {
            let start = from + text[from..].find(of).unwrap();
            Span::new(start, start + of.len())
        };
        assert_eq!(expanded(text, &[span("LD cirrhosis", 0)], uses), "Liver disease cirrhosis");
        assert_eq!(expanded(text, &[span("LD", 0)], uses), "Liver disease");
        assert_eq!(expanded(text, &[span("Liver disease (LD)", 0)], uses), "Liver disease (LD)");
        assert_eq!(closed(text, span("poly(ADP-ribose", 0)).of(text), "poly(ADP-ribose)");
        assert_eq!(closed(text, span("Liver", 0)).of(text), "Liver");
    }
}
