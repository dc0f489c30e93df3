//! Logistic regression over the features of span proposals: is the span a mention, and is its concept correct.

use serde::{Deserialize, Serialize};

use super::joint::logistic;

/// Features of a span proposal. Each block of [`BLOCKS`] holds the values of [`FEATURES`] twice, the second time multiplied by the degree
/// to which the text reads like a research article ([`canonym_core::text::register`]), since the tagger was trained on such texts.
pub type Features = [f32; N_FEATURES];

/// The factors of the features, a tenth of their size: a long text has many proposals.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Factors {
    /// The value of each of [`FEATURES`].
    pub values: [f32; N_DISTINCT],
    /// How far the proposal belongs to each of [`BLOCKS`].
    pub blocks: [f32; BLOCKS.len()],
    /// The degree to which the text reads like a research article.
    pub research: f32,
}

impl Factors {
    /// Each value in each block, without and with the register of the text.
    pub fn features(&self) -> Features {
        std::array::from_fn(|at| {
            let register = if at % WIDTH < N_DISTINCT { 1.0 } else { self.research };
            self.blocks[at / WIDTH] * register * self.values[at % N_DISTINCT]
        })
    }
}

/// Total number of features.
pub const N_FEATURES: usize = BLOCKS.len() * WIDTH;

/// Number of features per block.
pub(crate) const WIDTH: usize = 2 * N_DISTINCT;

/// Number of distinct features, without the interaction with the register of the text.
pub const N_DISTINCT: usize = 11;

/// Feature blocks by entity type, each with its own weights. A concept is assigned to types by the tagger probabilities on its name; the
/// rest goes to `untyped`. If the sense inventory resolved the span, only `sense` is used. The last two blocks add to the others:
/// `unnamed` if the span is not a name in the terminology, `misspelt` if it is one with a misspelling.
pub const BLOCKS: [&str; 11] = [
    "Disease", "Chemical", "Gene", "Species", "Anatomy", "Process", "other", "untyped", "sense", "unnamed", "misspelt",
];

/// The block of a tagger type.
pub(crate) fn block_of(entity_type: &str) -> usize {
    let name = match entity_type {
        "Procedure" => "Process",
        "CellLine" => "Species",
        other => other,
    };
    BLOCKS[..OTHER].iter().position(|block| *block == name).unwrap_or(OTHER)
}

pub(crate) const SPECIES: usize = 3;
pub(crate) const PROCESS: usize = 5;
pub(crate) const OTHER: usize = 6;
pub(crate) const UNTYPED: usize = 7;
pub(crate) const SENSE: usize = 8;
pub(crate) const UNNAMED: usize = 9;
pub(crate) const MISSPELT: usize = 10;

/// Name and description of each feature.
pub const FEATURES: [(&str, &str); N_DISTINCT] = [
    ("bias", "baseline"),
    ("tagger", "mention detector (context), type of the concept"),
    ("any", "mention detector (context), any type"),
    ("linker", "name similarity (words and embeddings)"),
    ("name", "known name in the terminology"),
    ("dictionary", "dictionary prior"),
    ("phrase", "unambiguous exact name of two or more words"),
    ("word", "unambiguous exact name of one word"),
    ("sense", "sense inventory: probability of this sense in context"),
    ("inside", "longer mention around it"),
    ("longer", "longer mention around it that is a known name"),
];

/// Feature weights and decision thresholds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Decision {
    /// Weights of p(mention): the span is a mention.
    #[serde(with = "weights")]
    pub mention: Features,
    /// Weights of p(link): span and concept are correct.
    #[serde(with = "weights")]
    pub link: Features,
    /// Minimum probability of an unlinked mention.
    #[serde(alias = "least_mention")]
    pub min_mention: f32,
    /// Minimum probability of a link.
    #[serde(alias = "least_link")]
    pub min_link: f32,
    /// The same for research articles, if it differs; texts in between are interpolated.
    #[serde(alias = "least_research", default, skip_serializing_if = "Option::is_none")]
    pub min_link_research: Option<f32>,
    /// Whether unlinked mentions of [`DESCRIBED`] types are left out outside of research articles, because the weights were fitted on such articles:
    /// elsewhere half of those that a large terminology lacks are ordinary words.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unlinked_names_only: bool,
}

/// Types whose mentions are often described in ordinary words, unlike names of substances, genes and organisms.
pub const DESCRIBED: [&str; 4] = ["Anatomy", "Disease", "Procedure", "Process"];

impl Decision {
    /// Initial weights of the fit: tagger score for mentions, tagger and linker score for links.
    pub const BEGIN: Decision = {
        let mut mention = [0.0; N_FEATURES];
        let mut link = [0.0; N_FEATURES];
        let mut block = 0;
        while block < UNTYPED {
            mention[WIDTH * block + 1] = 1.0;
            (link[WIDTH * block + 1], link[WIDTH * block + 3]) = (0.7, 0.7);
            block += 1;
        }
        while block < UNNAMED {
            (mention[WIDTH * block + 5], link[WIDTH * block + 5]) = (1.0, 1.0);
            block += 1;
        }
        Decision { mention, link, min_mention: 0.5, min_link: 0.4, min_link_research: None, unlinked_names_only: false }
    };
}

/// Serialises weights as a list of numbers.
mod weights {
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::{Features, N_DISTINCT, N_FEATURES, UNNAMED, WIDTH};

    pub fn serialize<S: Serializer>(weights: &Features, to: S) -> Result<S::Ok, S::Error> {
        weights.as_slice().serialize(to)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Features, D::Error> {
        let mut weights = Vec::<f32>::deserialize(from)?;
        // Older models have no features for the register of the text.
        if weights.len() == UNNAMED * N_DISTINCT {
            weights = weights.chunks(N_DISTINCT).flat_map(|block| [block, &[0.0; N_DISTINCT]].concat()).collect();
        }
        // Others have no blocks for spans that are not names, or misspelt ones.
        if weights.len() == UNNAMED * WIDTH {
            weights.resize(N_FEATURES, 0.0);
        }
        let n = weights.len();
        weights.try_into().map_err(|_| D::Error::custom(format!("{n} feature weights, expected {N_FEATURES}")))
    }
}

/// Logistic function of the dot product of weights and features.
pub fn probability(weights: &Features, features: &Features) -> f32 {
    let logit: f32 = weights.iter().zip(features).map(|(weight, value)| weight * value).sum();
    logistic(logit)
}
