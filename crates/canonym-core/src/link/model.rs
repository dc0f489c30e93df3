//! Weights of the lexical linker, and calibration of its scores.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::features::{FEATURE_NAMES, FEATURE_SENTENCES, N_FEATURES};
use crate::{Error, Result};

/// Number of features of a name in addition to those of its form.
pub const N_NAME_FEATURES: usize = 10;

/// Names of the features of a name.
pub const NAME_FEATURE_NAMES: [&str; N_NAME_FEATURES] = [
    "preferred name",
    "narrow name",
    "broad name",
    "related name",
    "same letters and case",
    "names of the concept",
    "forms of the concept met",
    "second best cosine of the concept",
    "name of several concepts",
    "lead of the best cosine of the concept",
];

/// Descriptions for people.
pub const NAME_FEATURE_SENTENCES: [&str; N_NAME_FEATURES] = [
    "preferred name",
    "narrow synonym",
    "broad synonym",
    "related synonym",
    "exact match, including case",
    "number of names",
    "number of matching names",
    "similarity of the second-best name",
    "ambiguous name",
    "margin of the best name to that of the top concept",
];

/// Number of features of a candidate.
pub const N: usize = N_FEATURES + N_NAME_FEATURES;

/// All features of a candidate, those of the form first.
pub type Features = [f32; N];

/// The embedded weights, made by `experiments/lexical.toml`.
pub const EMBEDDED: &str = include_str!("../../assets/lexical.json");

/// Platt scaling: logistic function of a linear combination of the score and its margin, clipped to ±10.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Calibration {
    /// Weight of the score.
    pub score: f32,
    /// Weight of the margin over the best other concept, which is negative for all but the first.
    #[serde(alias = "lead")]
    pub margin: f32,
    /// Intercept.
    pub offset: f32,
}

impl Calibration {
    /// Probability that a candidate with this score and margin is correct.
    pub fn probability(&self, score: f32, margin: f32) -> f32 {
        let logit = self.score * score + self.margin * margin.clamp(-10.0, 10.0) + self.offset;
        1.0 / (1.0 + (-logit).exp())
    }
}

/// The weights of the lexical linker.
#[derive(Debug, Clone, PartialEq)]
pub struct LexicalModel {
    /// One weight per feature.
    pub weights: Features,
    /// Maps scores to probabilities.
    pub calibration: Calibration,
}

#[derive(Serialize, Deserialize)]
struct Stored {
    weights: BTreeMap<String, f32>,
    calibration: Calibration,
}

fn all_names() -> impl Iterator<Item = &'static str> {
    FEATURE_NAMES.into_iter().chain(NAME_FEATURE_NAMES)
}

/// Name of the feature at `row`.
pub fn feature_name(row: usize) -> &'static str {
    all_names().nth(row).unwrap_or("none")
}

/// Description of the feature at `row` for people.
pub fn feature_sentence(row: usize) -> &'static str {
    FEATURE_SENTENCES.into_iter().chain(NAME_FEATURE_SENTENCES).nth(row).unwrap_or("none")
}

/// The stored weights in the order of `names`; each must be there.
pub(super) fn read_weights<'a, const N: usize>(
    model: &str,
    stored: &BTreeMap<String, f32>,
    names: impl Iterator<Item = &'a str>,
) -> Result<[f32; N]> {
    let mut weights = [0.0; N];
    for (weight, name) in weights.iter_mut().zip(names) {
        let missing = || Error::damaged(format!("the {model} model has no weight for `{name}`"));
        *weight = *stored.get(name).ok_or_else(missing)?;
    }
    Ok(weights)
}

impl LexicalModel {
    /// A model with all weights zero.
    pub fn zero() -> LexicalModel {
        LexicalModel { weights: [0.0; N], calibration: Calibration { score: 0.0, margin: 0.0, offset: 0.0 } }
    }

    /// The embedded model.
    pub fn embedded() -> LexicalModel {
        LexicalModel::from_json(EMBEDDED).expect("a test reads the embedded model")
    }

    /// Reads a model; every feature must have a weight.
    pub fn from_json(json: &str) -> Result<LexicalModel> {
        let stored: Stored =
            serde_json::from_str(json).map_err(|error| Error::damaged(format!("invalid lexical model: {error}")))?;
        let weights = read_weights("lexical", &stored.weights, all_names())?;
        Ok(LexicalModel { weights, calibration: stored.calibration })
    }

    /// The model as JSON, features in order.
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(&self.stored()).expect("numbers and names are plain data") + "\n"
    }

    /// The model as a JSON value.
    pub fn to_value(&self) -> serde_json::Value {
        serde_json::to_value(self.stored()).expect("numbers and names are plain data")
    }

    fn stored(&self) -> Stored {
        let rounded = |value: f32| (value * 1e4).round() / 1e4;
        let weights = all_names().map(str::to_owned).zip(self.weights.map(rounded)).collect();
        let Calibration { score, margin, offset } = self.calibration;
        let calibration = Calibration { score: rounded(score), margin: rounded(margin), offset: rounded(offset) };
        Stored { weights, calibration }
    }

    /// Weighted sum of the features.
    pub fn score(&self, features: &Features) -> f32 {
        self.weights.iter().zip(features).map(|(weight, value)| weight * value).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_embedded_model_round_trips() {
        let model = LexicalModel::embedded();
        assert_eq!(LexicalModel::from_json(&model.to_json()).unwrap(), model);
    }
}
