//! Bundle of a generative linker: weights, vocabulary, and settings of text, beam search and calibration.

use canonym_core::Result;
use serde::{Deserialize, Serialize};

use super::{Manifest, ModelFile, check_vocabulary};
use crate::models::generative::GenerativeConfig;
use crate::models::generative::beam::BeamConfig;
use crate::models::generative::text::{Coder, TextConfig};
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
    /// Generation among the candidates of the lexical linker, which are reranked; all names if missing, as published.
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

    fn restore(&self, parameters: &mut Parameters, pieces: &Tokenizer) -> Result<()> {
        self.model.check(parameters)?;
        check_vocabulary(self.model.encoder.vocab_size, pieces)?;
        self.coder(pieces.clone()).map(drop)
    }
}

impl GenerativeManifest {
    fn coder(&self, pieces: Tokenizer) -> Result<Coder> {
        let GenerativeConfig { encoder, decoder_positions, .. } = &self.model;
        Coder::new(pieces, self.text, encoder.max_position_embeddings, *decoder_positions)
    }
}

impl GenerativeBundle {
    /// Writes mentions and names as tokens of this model.
    ///
    /// # Errors
    /// If the vocabulary lacks tokens that begin and end a sequence.
    pub fn coder(&self) -> Result<Coder> {
        self.manifest.coder(self.pieces.clone())
    }
}
