//! Bundle of a cross-encoder: a safetensors file of weights with the settings and vocabulary in its metadata.

use std::path::{Path, PathBuf};

use canonym_core::eval::learned::Learned;
use canonym_core::index::bm25::Bm25Config;
use canonym_core::{Error, Result};
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_128;

use super::{FILE, FORMAT, Format, MANIFEST, learned_in, metadata_of, pieces_in};
use crate::models::cross_encoder::CrossEncoderConfig;
use crate::models::cross_encoder::infer::PairScorer;
use crate::tensor::parameters::{Parameters, Precision};
use crate::tokenizer::{BertNormalizer, BertRules, Pieces};

/// Value of `system` in the settings.
pub const SYSTEM: &str = "cross-encoder";

/// Settings of a bundle.
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

/// A trained cross-encoder.
#[derive(Debug, Clone)]
pub struct CrossBundle {
    /// Settings.
    pub manifest: CrossManifest,
    /// Weights.
    pub parameters: Parameters,
    /// Vocabulary.
    pub pieces: Pieces,
    /// Hash of the content; 0 unless read from a file.
    pub fingerprint: u128,
    /// Record of the training documents; `None` if the bundle has none.
    pub learned: Option<Learned>,
}

impl CrossBundle {
    /// Creates a bundle of a trained model.
    pub fn new(
        model: &CrossEncoderConfig,
        retrieval: Retrieval,
        (parameters, pieces): (Parameters, Pieces),
    ) -> CrossBundle {
        let BertRules { normalizer, longest_word } = pieces.rules().unwrap_or(BertRules::UNCASED);
        let manifest = CrossManifest {
            format: FORMAT,
            system: SYSTEM.to_owned(),
            model: model.clone(),
            retrieval,
            normalizer,
            longest_word,
            card: String::new(),
        };
        CrossBundle { manifest, parameters, pieces, fingerprint: 0, learned: None }
    }

    /// Serialises the bundle.
    pub fn to_bytes(&self, precision: Precision) -> Result<Vec<u8>> {
        self.parameters.to_bytes(precision, &metadata_of(&self.manifest, &self.pieces, self.learned.as_ref())?)
    }

    /// Opens a bundle file, or the one in a run folder of `canonym train`.
    pub fn open(path: &Path) -> Result<CrossBundle> {
        let file = if path.is_dir() { path.join(FILE) } else { PathBuf::from(path) };
        let bytes = std::fs::read(&file).map_err(|error| Error::io("read", &file, error))?;
        CrossBundle::from_bytes(&bytes, &file)
    }

    /// Deserialises a bundle; `path` is used in error messages.
    pub fn from_bytes(bytes: &[u8], path: &Path) -> Result<CrossBundle> {
        let (parameters, metadata) = Parameters::from_bytes(bytes, path)?;
        let refused = |message: String| {
            let hint = "use a model trained with `system = \"cross-encoder\"`";
            Error::artifact(path, message).with_hint(hint)
        };
        let entry = |key: &str| {
            let missing = || refused(format!("its metadata has no entry `{key}` that names the model"));
            metadata.get(key).ok_or_else(missing)
        };
        let settings = entry(MANIFEST)?;
        let unreadable = |error| refused(format!("invalid settings: {error}"));
        let Format { format, system } = serde_json::from_str(settings).map_err(unreadable)?;
        if system.as_deref() != Some(SYSTEM) {
            let of = system.map_or_else(String::new, |system| format!(", but of the system `{system}`"));
            return Err(refused(format!("it is not a model of a cross-encoder{of}")));
        }
        if format > FORMAT {
            return Err(refused(format!("it has format {format}; this version reads up to {FORMAT}")));
        }
        let manifest: CrossManifest = serde_json::from_str(settings).map_err(unreadable)?;
        let rules = BertRules { normalizer: manifest.normalizer, longest_word: manifest.longest_word };
        let pieces = pieces_in(&metadata, rules).map_err(|error| refused(error.to_string()))?;
        if manifest.model.bert.vocab_size < pieces.len() {
            let n_embedded = manifest.model.bert.vocab_size;
            return Err(refused(format!("it has {n_embedded} embeddings for {} wordpieces", pieces.len())));
        }
        let learned = learned_in(&metadata, path)?;
        let bundle = CrossBundle { manifest, parameters, pieces, fingerprint: xxh3_128(bytes), learned };
        bundle.scorer().map_err(|error| refused(error.to_string()))?;
        Ok(bundle)
    }

    /// The scorer for inference.
    pub fn scorer(&self) -> Result<PairScorer> {
        PairScorer::new(&self.manifest.model, &self.parameters, &self.pieces)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use canonym_core::eval::learned::{Role, Source};

    use super::*;
    use crate::bundle::Bundle;
    use crate::models::cross_encoder::tests::drawn_cross_encoder;
    use crate::tensor::matrix::Matrix;

    fn bundle() -> CrossBundle {
        let (config, parameters, pieces) = drawn_cross_encoder();
        let pieces = pieces.with_rules(BertRules { normalizer: BertNormalizer::CASED, longest_word: 50 }).unwrap();
        CrossBundle::new(&config, Retrieval::default(), (parameters, pieces))
    }

    fn opened(bytes: &[u8]) -> Result<CrossBundle> {
        CrossBundle::from_bytes(bytes, Path::new("model.safetensors"))
    }

    #[test]
    fn a_bundle_comes_back_from_its_bytes_with_its_vocabulary() {
        let bytes = bundle().to_bytes(Precision::Single).unwrap();
        let back = opened(&bytes).unwrap();
        assert_eq!((&back.manifest, &back.pieces), (&bundle().manifest, &bundle().pieces));
        for (name, value) in bundle().parameters.iter() {
            assert_eq!(back.parameters.get(name).unwrap(), value);
        }
        assert_eq!(bytes, bundle().to_bytes(Precision::Single).unwrap());
        assert_eq!(back.learned, None);
    }

    #[test]
    fn the_record_of_what_it_learned_from_travels_with_it() {
        let mut learned = Learned::default();
        learned.add(Source::new(SYSTEM, Role::Trained, "shapes/train.jsonl", [7]));
        let bundle = CrossBundle { learned: Some(learned.clone()), ..bundle() };
        assert_eq!(opened(&bundle.to_bytes(Precision::Single).unwrap()).unwrap().learned, Some(learned));
    }

    #[test]
    fn a_cross_encoder_is_not_taken_for_another_model_nor_another_for_it() {
        let bytes = bundle().to_bytes(Precision::Single).unwrap();
        let error = Bundle::from_bytes(&bytes, Path::new("model.safetensors")).unwrap_err();
        assert!(error.to_string().contains("of the system `cross-encoder`"), "{error}");
        let mut other = bundle();
        other.manifest.system = "dual-encoder".to_owned();
        let error = opened(&other.to_bytes(Precision::Single).unwrap()).unwrap_err();
        assert!(
            error.to_string().contains("not a model of a cross-encoder, but of the system `dual-encoder`"),
            "{error}"
        );
    }

    #[test]
    fn what_is_no_bundle_is_refused_with_its_reason() {
        let whole = bundle().to_bytes(Precision::Single).unwrap();
        let changed = |change: &dyn Fn(&mut CrossBundle)| {
            let mut bundle = bundle();
            change(&mut bundle);
            bundle.to_bytes(Precision::Single).unwrap()
        };
        let without = |name: &str| {
            let name = name.to_owned();
            changed(&move |bundle| bundle.parameters = bundle.parameters.clone().without(&name))
        };
        let cases = [
            (whole[..whole.len() - 10].to_vec(), "incomplete safetensors file"),
            (Vec::new(), "incomplete safetensors file"),
            (Parameters::default().to_bytes(Precision::Single, &BTreeMap::new()).unwrap(), "no entry `settings`"),
            (changed(&|bundle| bundle.manifest.format = 9), "it has format 9"),
            (changed(&|bundle| bundle.manifest.model.bert.intermediate_size = 9), "not 12 x 9"),
            (changed(&|bundle| bundle.manifest.model.n_pieces = 400), "exceed the maximum length 40"),
            (changed(&|bundle| bundle.manifest.model.bert.vocab_size = 10), "10 embeddings for 11 wordpieces"),
            (changed(&|bundle| bundle.parameters.add("head.weight", Matrix::zeros(3, 1))), "`head.weight` is 3 x 1"),
            (changed(&|bundle| bundle.parameters.at_mut(1).values[0] = f32::NAN), "contains the value NaN"),
            (without("head.bias"), "no weight `head.bias`"),
            (without("bert.pooler.bias"), "no weight `bert.pooler.bias`"),
            (changed(&|bundle| bundle.pieces = Pieces::from_lines("[UNK]\n[CLS]\n[SEP]").unwrap()), "[Ms]"),
        ];
        for (bytes, expected) in cases {
            let error = opened(&bytes).unwrap_err();
            assert!(error.to_string().contains(expected), "{expected}: {error}");
            assert!(error.hint().is_some());
        }
    }
}
