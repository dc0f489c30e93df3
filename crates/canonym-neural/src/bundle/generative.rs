//! Bundle of a generative linker: weights, vocabulary, and settings of text, beam search and calibration.

use canonym_core::Result;
use serde::{Deserialize, Serialize};

use super::{Manifest, ModelFile, check_vocabulary};
use crate::models::generative::GenerativeConfig;
use crate::models::generative::beam::BeamConfig;
use crate::models::generative::text::{Coder, TextConfig};
use crate::models::joint::log_odds;
use crate::tensor::parameters::Parameters;
use crate::tokenizer::{BertNormalizer, Tokenizer};

/// Value of `system` in the settings.
pub const SYSTEM: &str = "generative";

/// A trained generative linker.
pub type GenerativeBundle = ModelFile<GenerativeManifest>;

/// Settings of a generative linker.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GenerativeManifest {
    /// [`SYSTEM`].
    pub system: String,
    /// Format number.
    pub format: u32,
    /// Model configuration.
    pub model: GenerativeConfig,
    /// How mentions and names are written.
    #[serde(default)]
    pub text: TextConfig,
    /// Beam search.
    #[serde(default)]
    pub beams: BeamConfig,
    /// How concepts are ranked.
    #[serde(default)]
    pub ranking: Ranking,
    /// Calibration of the probabilities.
    #[serde(default)]
    pub calibration: Calibration,
    /// Reranking of the candidates of the lexical linker; without it, any name is written, as published.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub candidates: Option<Candidates>,
    /// Normalisation of the tokenizer.
    pub normalizer: BertNormalizer,
    /// Maximum word length in characters; longer words are unknown.
    pub longest_word: usize,
    /// Model card in free text: data, scores, limitations, licence.
    #[serde(default)]
    pub card: String,
}

/// How concepts are ranked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Ranking {
    /// By the score of their best name, as published.
    #[default]
    Best,
    /// By the sum of the probabilities of their names.
    Sum,
}

/// Logistic calibration of a concept's share of the probability of all names that were found.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Calibration {
    /// Weight of the log-odds of the share.
    pub share: f32,
    /// Weight of the mean log-probability of its best name.
    pub score: f32,
    /// Constant.
    pub bias: f32,
}

/// Reranking of the candidates of the lexical linker.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Candidates {
    /// Number of candidates.
    pub n: usize,
    /// Weight of the mean log-probability of the best name of a candidate.
    #[serde(default = "one")]
    pub score: f32,
    /// Weight of the log-odds of the lexical linker.
    #[serde(default)]
    pub lexical: f32,
    /// Constant.
    #[serde(default)]
    pub bias: f32,
    /// Whether any name is written as well, so that other concepts are ranked beside the candidates.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub any_name: bool,
    /// In place of the term of the lexical linker, for concepts that are none of its candidates.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub beyond: f32,
}

impl Candidates {
    /// Weights that were fitted on nothing: all that is known counts the same.
    pub fn unfitted(n: usize, any_name: bool) -> Candidates {
        // As unlikely as a candidate to which the lexical linker gives 1 %.
        let beyond = if any_name { log_odds(0.01) } else { 0.0 };
        Candidates { n, score: 1.0, lexical: 1.0, bias: 0.0, any_name, beyond }
    }
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde hands references")]
fn is_zero(value: &f32) -> bool {
    *value == 0.0
}

fn one() -> f32 {
    1.0
}

impl Default for Calibration {
    /// The share itself.
    fn default() -> Calibration {
        Calibration { share: 1.0, score: 0.0, bias: 0.0 }
    }
}

impl Manifest for GenerativeManifest {
    const SYSTEM: Option<&'static str> = Some(SYSTEM);
    const KIND: &'static str = "a generative linker";

    fn description(&self) -> String {
        let GenerativeConfig { encoder, decoder_layers, .. } = &self.model;
        let (layers, width) = (encoder.num_hidden_layers, encoder.hidden_size);
        format!("generative linker: {layers} + {decoder_layers} layers of {width}")
    }

    fn restore(&self, parameters: &mut Parameters, tokenizer: &Tokenizer) -> Result<()> {
        self.model.check(parameters)?;
        check_vocabulary(self.model.encoder.vocab_size, tokenizer)?;
        self.coder(tokenizer.clone()).map(drop)
    }
}

impl GenerativeManifest {
    fn coder(&self, tokenizer: Tokenizer) -> Result<Coder> {
        let GenerativeConfig { encoder, decoder_positions, .. } = &self.model;
        Coder::new(tokenizer, self.text, encoder.max_position_embeddings, *decoder_positions)
    }
}

impl GenerativeBundle {
    /// Writes mentions and names as tokens of this model.
    ///
    /// # Errors
    /// If the vocabulary lacks tokens that begin and end a sequence.
    pub fn coder(&self) -> Result<Coder> {
        self.manifest.coder(self.tokenizer.clone())
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::bundle::FORMAT;
    use crate::models::generative::decoder::tests::drawn_model;
    use crate::tokenizer::BertRules;

    /// Words of the vocabulary.
    const WORDS: &str = "[UNK] [CLS] [SEP] gout fever rash pain start end is of the a";

    /// A small linker with drawn weights.
    pub fn bundle() -> GenerativeBundle {
        let (model, parameters) = drawn_model();
        let manifest = GenerativeManifest {
            system: SYSTEM.to_owned(),
            format: FORMAT,
            model,
            text: TextConfig::default(),
            beams: BeamConfig::default(),
            ranking: Ranking::Best,
            calibration: Calibration::default(),
            candidates: None,
            normalizer: BertNormalizer::UNCASED,
            longest_word: BertRules::UNCASED.longest_word,
            card: "made up".to_owned(),
        };
        let tokenizer = Tokenizer::of(WORDS.split(' ').map(str::to_owned).collect()).unwrap();
        GenerativeBundle::new(manifest, parameters, tokenizer)
    }

    #[test]
    fn settings_at_their_defaults_are_written_as_before_and_read_from_older_bundles() {
        let mut manifest = bundle().manifest;
        manifest.candidates = Some(Candidates::unfitted(20, false));
        let json = serde_json::to_string(&manifest).unwrap();
        assert!(!json.contains("any_name") && !json.contains("beyond") && !json.contains("\"names\""), "{json}");
        assert_eq!(serde_json::from_str::<GenerativeManifest>(&json).unwrap(), manifest);
        manifest.candidates = Some(Candidates::unfitted(20, true));
        manifest.text.names = crate::models::generative::text::WrittenNames::Preferred;
        let json = serde_json::to_string(&manifest).unwrap();
        assert_eq!(serde_json::from_str::<GenerativeManifest>(&json).unwrap(), manifest);
    }
}
