//! The weights of the lexical linker, and the calibration of its scores.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::features::{FEATURE_NAMES, FEATURE_SENTENCES, N_FEATURES};
use crate::{Error, Result};

/// How many features a name has beside those of its form.
pub const N_NAME_FEATURES: usize = 10;

/// What each feature of a name is.
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

/// The same for people.
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

/// How many features a candidate has.
pub const N: usize = N_FEATURES + N_NAME_FEATURES;

/// All features of a candidate, form first.
pub type Features = [f32; N];

/// The embedded weights, and how they were made: `experiments/lexical.toml`.
pub const EMBEDDED: &str = include_str!("../../assets/lexical.json");

/// Platt scaling of a score and its lead over the next concept.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Calibration {
    /// The weight of the score.
    pub score: f32,
    /// The weight of the lead over the best other concept, negative for those behind.
    pub lead: f32,
    /// The offset.
    pub offset: f32,
}

impl Calibration {
    /// The probability that a candidate with this score and lead is right.
    pub fn probability(&self, score: f32, lead: f32) -> f32 {
        let logit = self.score * score + self.lead * lead.clamp(-10.0, 10.0) + self.offset;
        1.0 / (1.0 + (-logit).exp())
    }
}

/// The weights of the lexical linker.
#[derive(Debug, Clone, PartialEq)]
pub struct LexicalModel {
    /// One weight a feature.
    pub weights: Features,
    /// From scores to probabilities.
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

/// What the feature at `row` is.
pub fn feature_name(row: usize) -> &'static str {
    all_names().nth(row).unwrap_or("none")
}

/// The feature at `row` in words for people.
pub fn feature_sentence(row: usize) -> &'static str {
    FEATURE_SENTENCES.into_iter().chain(NAME_FEATURE_SENTENCES).nth(row).unwrap_or("none")
}

impl LexicalModel {
    /// A model that weighs nothing.
    pub fn zero() -> LexicalModel {
        LexicalModel { weights: [0.0; N], calibration: Calibration { score: 0.0, lead: 0.0, offset: 0.0 } }
    }

    /// The model inside the program.
    pub fn embedded() -> LexicalModel {
        LexicalModel::from_json(EMBEDDED).expect("a test reads the embedded model")
    }

    /// Reads a model; every feature must have a weight.
    pub fn from_json(json: &str) -> Result<LexicalModel> {
        let stored: Stored =
            serde_json::from_str(json).map_err(|error| Error::invalid(format!("invalid lexical model: {error}")))?;
        let mut weights = [0.0; N];
        for (weight, name) in weights.iter_mut().zip(all_names()) {
            *weight = *stored
                .weights
                .get(name)
                .ok_or_else(|| Error::invalid(format!("the lexical model has no weight for `{name}`")))?;
        }
        Ok(LexicalModel { weights, calibration: stored.calibration })
    }

    /// The model as JSON, names in order.
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(&self.stored()).expect("numbers and names are plain data") + "\n"
    }

    /// The same as a value, to stand in other JSON.
    pub fn to_value(&self) -> serde_json::Value {
        serde_json::to_value(self.stored()).expect("numbers and names are plain data")
    }

    fn stored(&self) -> Stored {
        let rounded = |value: f32| (value * 1e4).round() / 1e4;
        let weights = all_names().map(str::to_owned).zip(self.weights.map(rounded)).collect();
        let Calibration { score, lead, offset } = self.calibration;
        let calibration = Calibration { score: rounded(score), lead: rounded(lead), offset: rounded(offset) };
        Stored { weights, calibration }
    }

    /// The weighted sum of features.
    pub fn score(&self, features: &Features) -> f32 {
        self.weights.iter().zip(features).map(|(weight, value)| weight * value).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_embedded_model_comes_back_from_its_own_text() {
        let model = LexicalModel::embedded();
        assert_eq!(LexicalModel::from_json(&model.to_json()).unwrap(), model);
    }
}
