//! Bundle of a cross-encoder: a safetensors file of weights with the settings and vocabulary in its metadata.

use canonym_core::Result;
use canonym_core::index::bm25::Bm25Config;
use serde::{Deserialize, Serialize};

use super::{FORMAT, Manifest, ModelFile, check_vocabulary};
use crate::models::cross_encoder::CrossEncoderConfig;
use crate::models::cross_encoder::infer::PairScorer;
use crate::tensor::parameters::Parameters;
use crate::tokenizer::{BertNormalizer, BertRules, Tokenizer};

/// Value of `system` in the settings.
pub const SYSTEM: &str = "cross-encoder";

/// A trained cross-encoder.
pub type CrossBundle = ModelFile<CrossManifest>;

/// Settings of a cross-encoder.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CrossManifest {
    /// Format number.
    pub format: u32,
    /// [`SYSTEM`].
    pub system: String,
    /// Model configuration.
    pub model: CrossEncoderConfig,
    /// Retriever whose candidates it was trained to rerank.
    pub retrieval: Retrieval,
    /// Normalisation of the tokenizer.
    pub normalizer: BertNormalizer,
    /// Maximum word length in characters; longer words are unknown.
    pub longest_word: usize,
    /// Model card in free text: data, scores, limitations, licence.
    #[serde(default)]
    pub card: String,
}

/// How candidates are retrieved.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Retrieval {
    /// The linker that retrieves candidates.
    pub linker: FirstLinker,
    /// Maximum number of candidates per mention.
    pub n_candidates: usize,
    /// Parameters of BM25, if that is the linker.
    pub bm25: Bm25Config,
}

impl Default for Retrieval {
    fn default() -> Retrieval {
        Retrieval { linker: FirstLinker::Bm25, n_candidates: 10, bm25: Bm25Config::default() }
    }
}

/// A linker that retrieves candidates for reranking.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FirstLinker {
    /// BM25 over names.
    Bm25,
    /// The lexical linker.
    Lexical,
    /// A dual encoder: retrieve and rerank as in BLINK (Wu et al. 2020).
    #[serde(rename = "dual-encoder")]
    DualEncoder,
}

impl Manifest for CrossManifest {
    const SYSTEM: Option<&'static str> = Some(SYSTEM);
    const KIND: &'static str = "a cross-encoder";

    fn description(&self) -> String {
        SYSTEM.to_owned()
    }

    fn restore(&self, parameters: &mut Parameters, tokenizer: &Tokenizer) -> Result<()> {
        check_vocabulary(self.model.bert.vocab_size, tokenizer)?;
        PairScorer::new(&self.model, parameters, tokenizer).map(drop)
    }
}

impl CrossBundle {
    /// Creates a bundle of a trained model.
    pub fn of_model(
        model: &CrossEncoderConfig,
        retrieval: Retrieval,
        parameters: Parameters,
        tokenizer: Tokenizer,
    ) -> CrossBundle {
        let BertRules { normalizer, longest_word } = tokenizer.rules().unwrap_or(BertRules::UNCASED);
        let manifest = CrossManifest {
            format: FORMAT,
            system: SYSTEM.to_owned(),
            model: model.clone(),
            retrieval,
            normalizer,
            longest_word,
            card: String::new(),
        };
        ModelFile::new(manifest, parameters, tokenizer)
    }

    /// The scorer for inference.
    pub fn scorer(&self) -> Result<PairScorer> {
        PairScorer::new(&self.manifest.model, &self.parameters, &self.tokenizer)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::bundle::tests::refusals;
    use crate::models::cross_encoder::tests::drawn_cross_encoder;
    use crate::tensor::matrix::Matrix;

    /// A small, randomly initialised cross-encoder.
    pub fn bundle() -> CrossBundle {
        let (config, parameters, tokenizer) = drawn_cross_encoder();
        let tokenizer =
            tokenizer.with_rules(BertRules { normalizer: BertNormalizer::CASED, longest_word: 50 }).unwrap();
        CrossBundle::of_model(&config, Retrieval::default(), parameters, tokenizer)
    }

    #[test]
    fn damaged_bundles_are_refused_with_the_reason() {
        let without = |name: &'static str| {
            move |bundle: &mut CrossBundle| bundle.parameters = bundle.parameters.clone().without(name)
        };
        let without_head = Tokenizer::from_lines("[UNK]\n[CLS]\n[SEP]").unwrap();
        refusals(
            bundle,
            &[
                (&|bundle| bundle.manifest.format = 9, "it has format 9"),
                (&|bundle| bundle.manifest.model.bert.intermediate_size = 9, "not 12 x 9"),
                (&|bundle| bundle.manifest.model.n_wordpieces = 400, "exceed the maximum length 40"),
                (&|bundle| bundle.manifest.model.bert.vocab_size = 10, "10 embeddings for 11 wordpieces"),
                (&|bundle| bundle.parameters.add("head.weight", Matrix::zeros(3, 1)), "`head.weight` is 3 x 1"),
                (&|bundle| bundle.parameters.at_mut(1).values[0] = f32::NAN, "contains the value NaN"),
                (&without("head.bias"), "no weight `head.bias`"),
                (&without("bert.pooler.bias"), "no weight `bert.pooler.bias`"),
                (&|bundle| bundle.tokenizer = without_head.clone(), "[Ms]"),
            ],
        );
    }
}
