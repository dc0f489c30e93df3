//! Bundles: a trained model as one safetensors file.
//!
//! Settings and vocabulary are in the metadata of the file, so a model is self-contained and any safetensors reader can inspect it.
//! All kinds of models share one reader and one writer; a kind is defined by its [`Manifest`].

pub mod cross_encoder;
pub mod dual_encoder;
pub mod generative;
pub mod multitask;
pub mod names;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use canonym_core::eval::learned::Learned;
use canonym_core::{Error, Result};
use half::f16;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::{Xxh3, xxh3_128};

use crate::tensor::matrix::Matrix;
use crate::tensor::parameters::{Parameters, Precision};
use crate::tokenizer::{BertNormalizer, BertRules, Tokenizer};

pub use cross_encoder::CrossBundle;
pub use dual_encoder::DualBundle;
pub use multitask::MultitaskBundle;
pub use names::{DECISION_PART, NameEncoderBundle, NameManifest, TAGGER_PART, TaggerManifest};

/// Name of the bundle in a run folder.
pub const FILE: &str = "model.safetensors";

/// The format that is written, and the newest that can be read.
pub const FORMAT: u32 = 1;

/// Metadata keys: the manifest as JSON, the vocabulary of a BERT with a wordpiece per line or another tokenizer as `tokenizer.json`, and the
/// record of training documents as JSON.
const MANIFEST: &str = "settings";
const VOCABULARY: &str = "vocabulary";
const TOKENIZER: &str = "tokenizer";
const LEARNED: &str = "learned";

/// The settings of a kind of model, which are in its file as JSON.
pub trait Manifest: Serialize + DeserializeOwned {
    /// Value of the field `system`; `None` for name encoders, which have no such field.
    const SYSTEM: Option<&'static str>;

    /// The kind with its article, for error messages.
    const KIND: &'static str;

    /// The kind of model and what it does, for people.
    fn description(&self) -> String;

    /// The weights as they are written.
    fn stored(parameters: &Parameters) -> Cow<'_, Parameters> {
        Cow::Borrowed(parameters)
    }

    /// Completes weights after reading, and checks that they belong to the vocabulary.
    fn restore(&self, parameters: &mut Parameters, tokenizer: &Tokenizer) -> Result<()>;
}

/// A trained model of the kind `M`.
#[derive(Debug, Clone)]
pub struct ModelFile<M> {
    /// Settings.
    pub manifest: M,
    /// Weights.
    pub parameters: Parameters,
    /// Vocabulary.
    pub tokenizer: Tokenizer,
    /// Hash of the content; 0 unless read from a file.
    pub fingerprint: u128,
    /// Record of the training documents; `None` if the bundle has none.
    pub learned: Option<Learned>,
}

impl<M: Manifest> ModelFile<M> {
    /// A model that was not read from a file.
    pub fn new(manifest: M, parameters: Parameters, tokenizer: Tokenizer) -> ModelFile<M> {
        ModelFile { manifest, parameters, tokenizer, fingerprint: 0, learned: None }
    }

    /// Serialises the bundle.
    pub fn to_bytes(&self, precision: Precision) -> Result<Vec<u8>> {
        let refused = |error| Error::damaged(format!("cannot write the model settings: {error}"));
        let manifest = serde_json::to_string(&self.manifest).map_err(refused)?;
        let key = if self.tokenizer.rules().is_some() { VOCABULARY } else { TOKENIZER };
        let mut metadata =
            BTreeMap::from([(MANIFEST.to_owned(), manifest), (key.to_owned(), self.tokenizer.to_text())]);
        if let Some(learned) = &self.learned {
            metadata.insert(LEARNED.to_owned(), serde_json::to_string(learned).map_err(refused)?);
        }
        M::stored(&self.parameters).to_bytes(precision, &metadata)
    }

    /// Opens a bundle file, or the one in a run folder of `canonym train`.
    pub fn open(path: &Path) -> Result<ModelFile<M>> {
        let (file, bytes) = read_file(path)?;
        ModelFile::from_bytes(&bytes, &file)
    }

    /// Hash of settings, vocabulary and the weights whose names are wanted, sorted by name and rounded as in files: the order in a file
    /// differs from that of a newly trained model.
    fn part_fingerprint(&self, settings: &str, is_wanted: impl Fn(&str) -> bool) -> u128 {
        let mut hash = Xxh3::new();
        hash.update(settings.as_bytes());
        hash.update(self.tokenizer.to_text().as_bytes());
        let weights: BTreeMap<&str, &Matrix> = self.parameters.iter().filter(|(name, _)| is_wanted(name)).collect();
        for (name, value) in weights {
            hash.update(name.as_bytes());
            value.values.iter().for_each(|value| hash.update(&f16::from_f32(*value).to_le_bytes()));
        }
        hash.digest128()
    }

    /// Deserialises a bundle; `path` is used in error messages.
    pub fn from_bytes(bytes: &[u8], path: &Path) -> Result<ModelFile<M>> {
        let (mut parameters, metadata) = Parameters::from_bytes(bytes, path)?;
        let refused = |message: String| {
            Error::artifact(path, message).with_hint("use a model trained with this version of canonym")
        };
        let entry = |key: &str| {
            metadata.get(key).ok_or_else(|| refused(format!("its metadata has no entry `{key}` that names the model")))
        };
        let settings = entry(MANIFEST)?;
        let unreadable = |error| refused(format!("invalid settings: {error}"));
        let header: Header = serde_json::from_str(settings).map_err(unreadable)?;
        if header.system.as_deref() != M::SYSTEM {
            let system = header.system.as_deref().unwrap_or("rescnn");
            let error = Error::artifact(path, format!("it is a model of the system `{system}`, not {}", M::KIND));
            return Err(error.with_hint(format!("use {}", M::KIND)));
        }
        if header.format > FORMAT {
            return Err(refused(format!("it has format {}; this version reads up to {FORMAT}", header.format)));
        }
        let manifest: M = serde_json::from_str(settings).map_err(unreadable)?;
        let tokenizer = match metadata.get(TOKENIZER) {
            Some(json) => Tokenizer::from_json(json),
            None => Tokenizer::bert(entry(VOCABULARY)?.lines().map(str::to_owned).collect(), header.rules()),
        };
        let tokenizer = tokenizer.map_err(|error| refused(error.to_string()))?;
        manifest.restore(&mut parameters, &tokenizer).map_err(|error| refused(error.to_string()))?;
        let learned = learned_in(&metadata, path)?;
        Ok(ModelFile { manifest, parameters, tokenizer, fingerprint: xxh3_128(bytes), learned })
    }
}

/// The settings that all kinds have in common.
#[derive(Debug, Clone, Deserialize)]
pub struct Header {
    /// Format number.
    pub format: u32,
    /// The kind of model; `None` for name encoders.
    #[serde(default)]
    pub system: Option<String>,
    /// Model card in free text.
    #[serde(default)]
    pub card: String,
    /// The settings that complete the vocabulary of a BERT; `None` for those of an uncased one.
    #[serde(default)]
    normalizer: Option<BertNormalizer>,
    #[serde(default)]
    longest_word: Option<usize>,
}

impl Header {
    /// The header of a manifest.
    ///
    /// # Errors
    /// If the settings cannot be written.
    pub fn of(manifest: &impl Manifest) -> Result<Header> {
        let refused = |error| Error::damaged(format!("cannot read the model settings: {error}"));
        serde_json::from_value(serde_json::to_value(manifest).map_err(refused)?).map_err(refused)
    }

    fn rules(&self) -> BertRules {
        let BertRules { normalizer, longest_word } = BertRules::UNCASED;
        BertRules {
            normalizer: self.normalizer.unwrap_or(normalizer),
            longest_word: self.longest_word.unwrap_or(longest_word),
        }
    }
}

/// The record of training documents; `None` if the bundle has none.
fn learned_in(metadata: &BTreeMap<String, String>, path: &Path) -> Result<Option<Learned>> {
    let refused = |error| {
        Error::artifact(path, format!("invalid training record: {error}"))
            .with_hint("download the bundle again, or retrain it")
    };
    metadata.get(LEARNED).map(|json| serde_json::from_str(json).map_err(refused)).transpose()
}

/// Replaces or adds the record of training documents of a bundle; weights and settings stay identical to the byte.
pub fn with_record(bytes: &[u8], path: &Path, learned: &Learned) -> Result<Vec<u8>> {
    let mut metadata = Parameters::metadata(bytes, path)?;
    let refused = |error| Error::damaged(format!("cannot write the training record: {error}"));
    metadata.insert(LEARNED.to_owned(), serde_json::to_string(learned).map_err(refused)?);
    Parameters::with_metadata(bytes, path, &metadata)
}

/// Reads a bundle file, or the one in a run folder of `canonym train`; also returns its path.
pub fn read_file(path: &Path) -> Result<(PathBuf, Vec<u8>)> {
    let file = if path.is_dir() { path.join(FILE) } else { PathBuf::from(path) };
    let bytes = std::fs::read(&file).map_err(|error| Error::io("read", &file, error))?;
    Ok((file, bytes))
}

/// The `system` of a bundle; `None` for bundles of name encoders and taggers.
pub fn system_in(bytes: &[u8], path: &Path) -> Result<Option<String>> {
    let metadata = Parameters::metadata(bytes, path)?;
    let header = metadata.get(MANIFEST).and_then(|manifest| serde_json::from_str::<Header>(manifest).ok());
    Ok(header.and_then(|header| header.system))
}

/// Checks that every wordpiece has an embedding.
fn check_vocabulary(n_embedded: usize, tokenizer: &Tokenizer) -> Result<()> {
    if n_embedded < tokenizer.len() {
        return Err(Error::mismatch(format!("it has {n_embedded} embeddings for {} wordpieces", tokenizer.len())));
    }
    Ok(())
}

#[cfg(test)]
pub(crate) mod tests;
