//! Features of span proposals.

use canonym_core::link::recognise::DictionaryMatch;

use super::SpanProposal;
use crate::models::decision::{
    BLOCKS, Decision, Evidence, N_SPOKEN, OTHER, SENSE, UNTYPED, WIDTH, block_of, probability,
};
use crate::models::tagger::typed::LabelSet;

/// Minimum tagger probability, by entity type, for linking a mention without a dictionary match. Each costs a search. Diseases and
/// chemicals are often written in words that are not names in the terminology; organs, organisms and genes mostly appear under their names.
pub(super) fn min_proposed(layer_type: &str) -> f32 {
    match block_of(layer_type) {
        0 | 1 | OTHER => 0.3,
        _ => 0.7,
    }
}

impl Decision {
    /// Whether a proposal is output, linked or not.
    pub(super) fn gives(&self, place: &SpanProposal) -> bool {
        let typed = place.tagged.1 >= LEAST_NAMELESS;
        self.link(place) >= self.least(place)
            || (typed && !place.is_other_sense && probability(&self.mention, &place.evidence) >= self.min_mention)
    }

    /// Link threshold of a proposal; lower for unambiguous exact names of several words, which always reach it.
    pub fn least(&self, place: &SpanProposal) -> f32 {
        let in_research = self.min_link_research.unwrap_or(self.min_link);
        let least = self.min_link + place.research * (in_research - self.min_link);
        if place.is_name_of_words() { least.min(LEAST_PHRASE) } else { least }
    }

    /// Probability that span and concept are both correct.
    pub fn link(&self, place: &SpanProposal) -> f32 {
        if place.link.candidates.is_empty() {
            return 0.0;
        }
        let weighed = probability(&self.link, &place.evidence).max(place.stated);
        // The context does not outweigh an exact match of several words.
        if place.is_phrase() { weighed.max(LEAST_PHRASE) } else { weighed }
    }
}

/// Minimum link probability of exact names of several words.
const LEAST_PHRASE: f32 = 0.5;

/// Minimum tagger probability of an unlinked mention.
const LEAST_NAMELESS: f32 = 0.3;

pub(super) fn logit(probability: f32) -> f32 {
    let kept = probability.clamp(1e-4, 1.0 - 1e-4);
    (kept / (1.0 - kept)).ln()
}

/// Feature vector of a proposal; `marks` are the tagger's probabilities for the concept's own name, by label set.
pub(super) fn evidence(place: &SpanProposal, marks: &[f32], layers: &[LabelSet]) -> Evidence {
    let linked = place.link.candidates.first().map_or(0.0, |best| best.p_link);
    let read = place.spotted.as_ref().map(DictionaryMatch::best);
    let exact = place.spotted.as_ref().filter(|spotted| spotted.is_unambiguous());
    let sense = read.and_then(|(reading, _)| reading.sense);
    let total: f32 = marks.iter().sum();
    let gate = marks.iter().copied().fold(0.0, f32::max);
    let of_type: f32 = marks.iter().zip(&place.of_layers).map(|(mark, of_layer)| mark * of_layer).sum();
    let flag = |yes: bool| f32::from(u8::from(yes));
    let features: [f32; N_SPOKEN] = [
        1.0,
        logit(of_type / total.max(1e-6)),
        logit(place.any),
        logit(linked),
        flag(read.is_some()),
        read.map_or(0.0, |(_, score)| logit(score)),
        flag(exact.is_some_and(|spotted| spotted.n_words > 1)),
        flag(exact.is_some_and(|spotted| spotted.n_words == 1)),
        sense.map_or(0.0, logit),
        place.inside,
        place.inside_name,
    ];
    let mut blocks = [0.0; BLOCKS.len()];
    match sense {
        Some(_) => blocks[SENSE] = 1.0,
        None => {
            blocks[UNTYPED] = 1.0 - gate;
            for (mark, layer) in marks.iter().zip(layers) {
                if let Some(name) = &layer.name {
                    blocks[block_of(name)] += gate * mark / total.max(1e-6);
                }
            }
        }
    }
    std::array::from_fn(|at| {
        let register = if at % WIDTH < N_SPOKEN { 1.0 } else { place.research };
        blocks[at / WIDTH] * register * features[at % N_SPOKEN]
    })
}
