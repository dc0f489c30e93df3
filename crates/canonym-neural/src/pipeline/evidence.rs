//! Features of span proposals, and the logistic models that weigh them.

use canonym::link::recognise::Spotted;
use serde::{Deserialize, Serialize};

use super::Place;

/// Features of a span proposal, in the order of [`FEATURES`].
pub type Evidence = [f32; N_FEATURES];

/// The number of features: each three times, in blocks. The first block counts by the gate g (how far the tagger knows the type of the
/// concept), the second by 1 - g, and the third alone where the sense inventory has read the place.
pub const N_FEATURES: usize = 3 * N_SPOKEN;

/// The number of features before the gate.
pub const N_SPOKEN: usize = 9;

/// Name and sentence of each feature.
pub const FEATURES: [(&str, &str); N_SPOKEN] = [
    ("bias", "baseline"),
    ("tagger", "mention detector: how likely the context makes it a mention of the type of the concept"),
    ("any", "mention detector: how likely the context makes it a mention of any type"),
    ("linker", "name similarity (words and embeddings)"),
    ("name", "known name in the terminology"),
    ("dictionary", "dictionary prior"),
    ("phrase", "unambiguous exact name of two or more words"),
    ("word", "unambiguous exact name of one word"),
    ("sense", "sense inventory: how likely the short form or word has this sense here"),
];

/// The weights of the features, and the thresholds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Decision {
    /// Weights for a place to be a mention.
    pub mention: Evidence,
    /// Weights for place and concept to be right.
    pub link: Evidence,
    /// Minimum probability of an unlinked mention.
    pub least_mention: f32,
    /// Minimum probability of a link.
    pub least_link: f32,
}

impl Decision {
    /// What fitting begins with: the tagger for mentions, tagger and linker for links.
    pub const BEGIN: Decision = {
        let mut mention = [0.0; N_FEATURES];
        let mut link = [0.0; N_FEATURES];
        (mention[1], mention[N_SPOKEN + 5]) = (1.0, 1.0);
        (link[1], link[3], link[N_SPOKEN + 5]) = (0.7, 0.7, 1.0);
        Decision { mention, link, least_mention: 0.5, least_link: 0.4 }
    };

    /// Whether a place is given, with a concept or without.
    pub(super) fn gives(&self, place: &Place) -> bool {
        let typed = place.tagged.1 >= LEAST_NAMELESS;
        self.link(place) >= self.least_link
            || (typed && !place.is_other_sense && probability(&self.mention, &place.evidence) >= self.least_mention)
    }

    /// The probability that place and concept are right.
    pub fn link(&self, place: &Place) -> f32 {
        if place.link.candidates.is_empty() {
            return 0.0;
        }
        let weighed = probability(&self.link, &place.evidence);
        // No reading of the context speaks against an unambiguous exact name of several words.
        if place.evidence[PHRASE] + place.evidence[PHRASE + N_SPOKEN] > 0.5 { weighed.max(LEAST_PHRASE) } else { weighed }
    }
}

/// The place of the feature `phrase`.
const PHRASE: usize = 6;

/// Unambiguous exact names of several words are at least as probable.
const LEAST_PHRASE: f32 = 0.5;

/// A mention without a concept has to be at least as likely to the tagger.
const LEAST_NAMELESS: f32 = 0.3;

/// The probability of a logistic model.
pub fn probability(weights: &Evidence, evidence: &Evidence) -> f32 {
    let logit: f32 = weights.iter().zip(evidence).map(|(weight, value)| weight * value).sum();
    1.0 / (1.0 + (-logit).exp())
}

pub(super) fn logit(probability: f32) -> f32 {
    let kept = probability.clamp(1e-4, 1.0 - 1e-4);
    (kept / (1.0 - kept)).ln()
}

/// What the tagger says of a place, given how far it marks the name of a concept in each layer: the mean over layers, and the gate g.
pub(super) fn of_type(marks: &[f32], of_layers: &[f32]) -> (f32, f32) {
    let total: f32 = marks.iter().sum();
    let gate = marks.iter().copied().fold(0.0, f32::max);
    let sum: f32 = marks.iter().zip(of_layers).map(|(mark, of_layer)| mark * of_layer).sum();
    (if total > 0.0 { sum / total } else { 0.0 }, gate)
}

pub(super) fn evidence(place: &Place, marks: &[f32]) -> Evidence {
    let linked = place.link.candidates.first().map_or(0.0, |best| best.score);
    let read = place.spotted.as_ref().map(Spotted::best);
    let exact = place.spotted.as_ref().filter(|spotted| spotted.is_unambiguous());
    let sense = read.and_then(|(reading, _)| reading.sense);
    let (of_type, gate) = of_type(marks, &place.of_layers);
    let flag = |yes: bool| f32::from(u8::from(yes));
    let features: [f32; N_SPOKEN] = [
        1.0,
        logit(of_type),
        logit(place.any),
        logit(linked),
        flag(read.is_some()),
        read.map_or(0.0, |(_, score)| logit(score)),
        flag(exact.is_some_and(|spotted| spotted.n_words > 1)),
        flag(exact.is_some_and(|spotted| spotted.n_words == 1)),
        sense.map_or(0.0, logit),
    ];
    let blocks = if sense.is_some() { [0.0, 0.0, 1.0] } else { [gate, 1.0 - gate, 0.0] };
    std::array::from_fn(|at| blocks[at / N_SPOKEN] * features[at % N_SPOKEN])
}
