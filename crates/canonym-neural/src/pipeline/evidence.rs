//! Features of span proposals, and the logistic models that weigh them.

use canonym_core::link::recognise::Spotted;
use serde::{Deserialize, Serialize};

use super::{LayerType, Place};

/// Features of a span proposal: a block for each of `BLOCKS`, with all of [`FEATURES`] and then with all of them once more, as far as the text reads
/// like a research article ([`canonym_core::text::register`]): the tagger was trained on such texts.
pub type Evidence = [f32; N_FEATURES];

/// The number of features.
pub const N_FEATURES: usize = BLOCKS.len() * WIDTH;

/// The number of features of a block.
const WIDTH: usize = 2 * N_SPOKEN;

/// The number of features that are told apart.
pub const N_SPOKEN: usize = 11;

/// Kinds of concepts, each with weights of its own. A concept is of the types in which the tagger marks its name; what is left counts as
/// `untyped`. Where the sense inventory has read the place, `sense` counts alone.
pub const BLOCKS: [&str; 9] =
    ["Disease", "Chemical", "Gene", "Species", "Anatomy", "Process", "other", "untyped", "sense"];

/// The block of a type of the tagger.
fn block_of(layer_type: &str) -> usize {
    let name = match layer_type {
        "Procedure" => "Process",
        "CellLine" => "Species",
        other => other,
    };
    BLOCKS[..OTHER].iter().position(|block| *block == name).unwrap_or(OTHER)
}

/// Mentions of the tagger that are no names of the knowledge base are linked from this probability on, by their type. Each costs a search;
/// what people write of diseases and chemicals is often no name, while organs, organisms and genes are mostly called by their names.
pub(super) fn least_proposed(layer_type: &str) -> f32 {
    match block_of(layer_type) {
        0 | 1 | OTHER => 0.3,
        _ => 0.7,
    }
}

const OTHER: usize = 6;
const UNTYPED: usize = 7;
const SENSE: usize = 8;

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
    ("inside", "mention detector: how likely a longer mention holds it"),
    ("longer", "mention detector: how likely a longer mention holds it that is a name, too"),
];

/// The weights of the features, and the thresholds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Decision {
    /// Weights for a place to be a mention.
    #[serde(with = "weights")]
    pub mention: Evidence,
    /// Weights for place and concept to be right.
    #[serde(with = "weights")]
    pub link: Evidence,
    /// Minimum probability of an unlinked mention.
    pub least_mention: f32,
    /// Minimum probability of a link.
    pub least_link: f32,
    /// The same in texts that read like research articles, where it is another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub least_research: Option<f32>,
}

impl Decision {
    /// What fitting begins with: the tagger for mentions, tagger and linker for links.
    pub const BEGIN: Decision = {
        let mut mention = [0.0; N_FEATURES];
        let mut link = [0.0; N_FEATURES];
        let mut block = 0;
        while block < UNTYPED {
            mention[WIDTH * block + 1] = 1.0;
            (link[WIDTH * block + 1], link[WIDTH * block + 3]) = (0.7, 0.7);
            block += 1;
        }
        while block < BLOCKS.len() {
            (mention[WIDTH * block + 5], link[WIDTH * block + 5]) = (1.0, 1.0);
            block += 1;
        }
        Decision { mention, link, least_mention: 0.5, least_link: 0.4, least_research: None }
    };

    /// Whether a place is given, with a concept or without.
    pub(super) fn gives(&self, place: &Place) -> bool {
        let typed = place.tagged.1 >= LEAST_NAMELESS;
        self.link(place) >= self.least(place)
            || (typed && !place.is_other_sense && probability(&self.mention, &place.evidence) >= self.least_mention)
    }

    /// The minimum probability of a link at a place. Exact names of several words that one concept has are never below it.
    pub fn least(&self, place: &Place) -> f32 {
        let in_research = self.least_research.unwrap_or(self.least_link);
        let least = self.least_link + place.research * (in_research - self.least_link);
        if place.is_name_of_words() { least.min(LEAST_PHRASE) } else { least }
    }

    /// The probability that place and concept are right.
    pub fn link(&self, place: &Place) -> f32 {
        if place.link.candidates.is_empty() {
            return 0.0;
        }
        let weighed = probability(&self.link, &place.evidence).max(place.stated);
        // No reading of the context speaks against an exact name of several words.
        if place.is_phrase() { weighed.max(LEAST_PHRASE) } else { weighed }
    }
}

/// Weights as a list of numbers.
mod weights {
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::{Evidence, N_FEATURES, N_SPOKEN};

    pub fn serialize<S: Serializer>(weights: &Evidence, to: S) -> Result<S::Ok, S::Error> {
        weights.as_slice().serialize(to)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Evidence, D::Error> {
        let mut weights = Vec::<f32>::deserialize(from)?;
        // Models of before weigh all texts alike.
        if weights.len() == N_FEATURES / 2 {
            weights = weights.chunks(N_SPOKEN).flat_map(|block| [block, &[0.0; N_SPOKEN]].concat()).collect();
        }
        let n = weights.len();
        weights.try_into().map_err(|_| D::Error::custom(format!("{n} weights of evidence, expected {N_FEATURES}")))
    }
}

/// Exact names of several words are at least as probable.
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

/// The features of a place whose concept has a name that the tagger marks by `marks` in each of its layers.
pub(super) fn evidence(place: &Place, marks: &[f32], layers: &[LayerType]) -> Evidence {
    let linked = place.link.candidates.first().map_or(0.0, |best| best.score);
    let read = place.spotted.as_ref().map(Spotted::best);
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
