//! The logistic models that weigh the evidence for span proposals and their concepts.

use serde::{Deserialize, Serialize};

/// Features of a span proposal: a block for each of `BLOCKS`, with all of [`FEATURES`] and then with all of them once more, as far as the text reads
/// like a research article ([`canonym_core::text::register`]): the tagger was trained on such texts.
pub type Evidence = [f32; N_FEATURES];

/// The number of features.
pub const N_FEATURES: usize = BLOCKS.len() * WIDTH;

/// The number of features of a block.
pub(crate) const WIDTH: usize = 2 * N_SPOKEN;

/// The number of features that are told apart.
pub const N_SPOKEN: usize = 11;

/// Kinds of concepts, each with weights of its own. A concept is of the types in which the tagger marks its name; what is left counts as
/// `untyped`. Where the sense inventory has read the place, `sense` counts alone.
pub const BLOCKS: [&str; 9] =
    ["Disease", "Chemical", "Gene", "Species", "Anatomy", "Process", "other", "untyped", "sense"];

/// The block of a type of the tagger.
pub(crate) fn block_of(layer_type: &str) -> usize {
    let name = match layer_type {
        "Procedure" => "Process",
        "CellLine" => "Species",
        other => other,
    };
    BLOCKS[..OTHER].iter().position(|block| *block == name).unwrap_or(OTHER)
}

pub(crate) const OTHER: usize = 6;
pub(crate) const UNTYPED: usize = 7;
pub(crate) const SENSE: usize = 8;

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
    #[serde(alias = "least_mention")]
    pub min_mention: f32,
    /// Minimum probability of a link.
    #[serde(alias = "least_link")]
    pub min_link: f32,
    /// The same in texts that read like research articles, where it is another one.
    #[serde(alias = "least_research", default, skip_serializing_if = "Option::is_none")]
    pub min_link_research: Option<f32>,
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
        Decision { mention, link, min_mention: 0.5, min_link: 0.4, min_link_research: None }
    };
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

/// The probability of a logistic model.
pub fn probability(weights: &Evidence, evidence: &Evidence) -> f32 {
    let logit: f32 = weights.iter().zip(evidence).map(|(weight, value)| weight * value).sum();
    1.0 / (1.0 + (-logit).exp())
}
