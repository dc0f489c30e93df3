//! Bundles: a trained model as one safetensors file.
//!
//! Settings and vocabulary are in the metadata of the file, so a model is self-contained and any safetensors reader can inspect it.

pub mod cross_encoder;
pub mod dual_encoder;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use canonym_core::eval::learned::Learned;
use canonym_core::link::model::LexicalModel;
use canonym_core::{Error, Result};
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_128;

use crate::models::decision::Decision;
use crate::models::fusion::Fusion;
use crate::models::mention_prior::MentionPrior;
use crate::models::rescnn::ResCnnConfig;
use crate::models::rescnn::infer::ResCnnEncoder;
use crate::models::rescnn::names::NameEncoder;
use crate::models::tagger::TaggerConfig;
use crate::models::tagger::features::{FeatureExtractor, Vocabulary};
use crate::models::tagger::gazetteer::Gazetteer;
use crate::models::tagger::infer::Tagger;
use crate::models::tagger::typed::LabelSet;
use crate::models::tagger::typed::TypedTagger;
use crate::tensor::parameters::{Parameters, Precision};
use crate::tokenizer::{BertRules, Pieces};

/// Name of the bundle in a run folder.
pub const FILE: &str = "model.safetensors";

/// The format that is written, and the newest that can be read.
pub const FORMAT: u32 = 1;

pub(crate) const MANIFEST: &str = "settings";
const VOCABULARY: &str = "vocabulary";

/// Metadata key of a tokenizer that is not that of a BERT, as `tokenizer.json`.
const TOKENIZER: &str = "tokenizer";

/// Metadata key of the record of training documents, as JSON.
const LEARNED: &str = "learned";

/// Builds the metadata of a bundle.
pub(crate) fn metadata_of(
    manifest: &impl Serialize,
    pieces: &Pieces,
    learned: Option<&Learned>,
) -> Result<BTreeMap<String, String>> {
    let refused = |error| Error::invalid(format!("cannot write the model settings: {error}"));
    let manifest = serde_json::to_string(manifest).map_err(refused)?;
    let key = if pieces.rules().is_some() { VOCABULARY } else { TOKENIZER };
    let mut metadata = BTreeMap::from([(MANIFEST.to_owned(), manifest), (key.to_owned(), pieces.to_text())]);
    if let Some(learned) = learned {
        metadata.insert(LEARNED.to_owned(), serde_json::to_string(learned).map_err(refused)?);
    }
    Ok(metadata)
}

/// The tokenizer of a bundle; that of a BERT has these settings.
pub(crate) fn pieces_in(metadata: &BTreeMap<String, String>, rules: BertRules) -> Result<Pieces> {
    if let Some(json) = metadata.get(TOKENIZER) {
        return Pieces::from_json(json);
    }
    let missing = || Error::invalid(format!("its metadata has no entry `{VOCABULARY}` that names the model"));
    let vocabulary = metadata.get(VOCABULARY).ok_or_else(missing)?;
    Pieces::bert(vocabulary.lines().map(str::to_owned).collect(), rules)
}

/// The record of training documents; `None` if the bundle has none.
pub(crate) fn learned_in(metadata: &BTreeMap<String, String>, path: &Path) -> Result<Option<Learned>> {
    let refused = |error| {
        Error::artifact(path, format!("invalid training record: {error}"))
            .with_hint("download the bundle again, or retrain it")
    };
    metadata.get(LEARNED).map(|json| serde_json::from_str(json).map_err(refused)).transpose()
}

/// Replaces or adds the record of training documents of a bundle; weights and settings stay identical to the byte.
pub fn with_record(bytes: &[u8], path: &Path, learned: &Learned) -> Result<Vec<u8>> {
    let mut metadata = Parameters::metadata(bytes, path)?;
    let refused = |error| Error::invalid(format!("cannot write the training record: {error}"));
    metadata.insert(LEARNED.to_owned(), serde_json::to_string(learned).map_err(refused)?);
    Parameters::with_metadata(bytes, path, &metadata)
}

/// Settings of a bundle.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// Format number.
    pub format: u32,
    /// Configuration of the name encoder.
    pub rescnn: ResCnnConfig,
    /// Fusion of lexical and dense scores, and calibration.
    pub fusion: Fusion,
    /// Weights of the lexical linker, as written by `canonym train`.
    pub lexical: serde_json::Value,
    /// The tagger, if the bundle has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tagger: Option<TaggerManifest>,
    /// Model card in free text: data, scores, limitations, licence.
    #[serde(default)]
    pub card: String,
}

/// Reads a bundle file, or the one in a run folder of `canonym train`; also returns its path.
pub fn read_file(path: &Path) -> Result<(PathBuf, Vec<u8>)> {
    let file = if path.is_dir() { path.join(FILE) } else { PathBuf::from(path) };
    let bytes = std::fs::read(&file).map_err(|error| Error::io("read", &file, error))?;
    Ok((file, bytes))
}

/// The `system` of a bundle; `None` for bundles of name encoders and taggers, which have no such field.
pub fn system_in(bytes: &[u8], path: &Path) -> Result<Option<String>> {
    #[derive(Deserialize)]
    struct System {
        system: Option<String>,
    }
    let metadata = Parameters::metadata(bytes, path)?;
    let system = metadata.get(MANIFEST).and_then(|manifest| serde_json::from_str::<System>(manifest).ok());
    Ok(system.and_then(|system| system.system))
}

/// Settings of a tagger.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TaggerManifest {
    /// Model configuration.
    pub config: TaggerConfig,
    /// Label sets, in order.
    pub layers: Vec<LabelSet>,
    /// Weights of the pipeline's decisions.
    pub decision: Decision,
}

/// Name of the tagger in the record of training documents.
pub const TAGGER_PART: &str = "tagger";

/// Name of the decision weights in the record of training documents.
pub const EVIDENCE_PART: &str = "evidence weights";

/// Scope of the tagger's weights.
const TAGGER: &str = "tagger.";

/// Key of the tagger's vocabulary, one word per line.
const WORDS: &str = "tagger.words";

/// Key of the mention prior, one name per line.
const USAGES: &str = "tagger.usages";

/// Key of the gazetteer.
const GAZETTEER: &str = "tagger.gazetteer";

/// A trained name encoder, optionally with a tagger.
#[derive(Debug, Clone)]
pub struct Bundle {
    /// Settings.
    pub manifest: Manifest,
    /// Weights.
    pub parameters: Parameters,
    /// Vocabulary.
    pub pieces: Pieces,
    /// Hash of the content; 0 unless read from a file.
    pub fingerprint: u128,
    /// Record of the training documents; `None` if the bundle has none.
    pub learned: Option<Learned>,
}

impl Bundle {
    /// Serialises the bundle.
    pub fn to_bytes(&self, precision: Precision) -> Result<Vec<u8>> {
        self.parameters.to_bytes(precision, &metadata_of(&self.manifest, &self.pieces, self.learned.as_ref())?)
    }

    /// Opens a bundle file, or the one in a run folder of `canonym train`.
    pub fn open(path: &Path) -> Result<Bundle> {
        let (file, bytes) = read_file(path)?;
        Bundle::from_bytes(&bytes, &file)
    }

    /// Deserialises a bundle; `path` is used in error messages.
    pub fn from_bytes(bytes: &[u8], path: &Path) -> Result<Bundle> {
        let (parameters, metadata) = Parameters::from_bytes(bytes, path)?;
        let refused = |message: String| {
            Error::artifact(path, message).with_hint("use a model trained with this version of canonym")
        };
        let entry = |key: &str| {
            metadata.get(key).ok_or_else(|| refused(format!("its metadata has no entry `{key}` that names the model")))
        };
        let manifest = entry(MANIFEST)?;
        let number: Format =
            serde_json::from_str(manifest).map_err(|error| refused(format!("invalid settings: {error}")))?;
        if let Some(system) = &number.system {
            return Err(refused(format!("it is a model of the system `{system}`")));
        }
        if number.format > FORMAT {
            return Err(refused(format!("it has format {}; this version reads up to {FORMAT}", number.format)));
        }
        let manifest: Manifest =
            serde_json::from_str(manifest).map_err(|error| refused(format!("invalid settings: {error}")))?;
        let pieces = pieces_in(&metadata, BertRules::UNCASED).map_err(|error| refused(error.to_string()))?;
        manifest.rescnn.check(&parameters).map_err(|error| refused(error.to_string()))?;
        let n_embedded = parameters.get("embedding.word")?.n_rows;
        if n_embedded < pieces.len() {
            return Err(refused(format!("it has {n_embedded} embeddings for {} wordpieces", pieces.len())));
        }
        let learned = learned_in(&metadata, path)?;
        let bundle = Bundle { manifest, parameters, pieces, fingerprint: xxh3_128(bytes), learned };
        if bundle.manifest.tagger.is_some() {
            bundle.typed_tagger().map_err(|error| refused(error.to_string()))?;
        }
        Ok(bundle)
    }

    /// Adds a tagger.
    #[must_use]
    pub fn with_tagger(
        mut self,
        (viewer, usages): (&FeatureExtractor, &MentionPrior),
        parameters: &Parameters,
        manifest: TaggerManifest,
    ) -> Bundle {
        for (name, value) in parameters.iter() {
            self.parameters.add(format!("{TAGGER}{name}"), value.clone());
        }
        self.parameters.add_table(WORDS, viewer.vocabulary.to_lines().into_bytes());
        self.parameters.add_table(GAZETTEER, viewer.gazetteer.to_bytes());
        self.parameters.add_table(USAGES, usages.to_lines().into_bytes());
        self.manifest.tagger = Some(manifest);
        self
    }

    /// Removes the tagger, which leaves the name encoder.
    #[must_use]
    pub fn without_tagger(&self) -> Bundle {
        let mut parameters = Parameters::default();
        let of_names = self.parameters.iter().filter(|(name, _)| !name.starts_with(TAGGER));
        of_names.for_each(|(name, value)| parameters.add(name, value.clone()));
        let mut learned = self.learned.clone();
        if let Some(learned) = &mut learned {
            learned.sources.retain(|source| source.part != TAGGER_PART && source.part != EVIDENCE_PART);
        }
        Bundle { manifest: Manifest { tagger: None, ..self.manifest.clone() }, parameters, learned, ..self.clone() }
    }

    /// The tagger, if there is one.
    pub fn typed_tagger(&self) -> Result<Option<TypedTagger>> {
        let Some(TaggerManifest { config, layers, .. }) = &self.manifest.tagger else { return Ok(None) };
        let damaged = |what: &str| Error::invalid(format!("cannot read {what} of the tagger"));
        let lines = |table: &str| std::str::from_utf8(self.parameters.table(table)?).map_err(|_| damaged("a table"));
        let vocabulary = Vocabulary::from_lines(lines(WORDS)?);
        let usages = MentionPrior::from_lines(lines(USAGES)?).ok_or_else(|| damaged("the usages"))?;
        let gazetteer = Gazetteer::from_bytes(self.parameters.table(GAZETTEER)?).ok_or_else(|| damaged("the names"))?;
        let weights = self.parameters.under(TAGGER);
        config.check(&weights, vocabulary.n_rows(), layers.len())?;
        let tagger = Tagger::new(config, &weights, layers.len())?;
        let viewer = FeatureExtractor { vocabulary, gazetteer, n_grams: config.n_grams };
        Ok(Some(TypedTagger { viewer, tagger, layers: layers.clone(), usages }))
    }

    /// Weights of the tagger; empty without a tagger.
    pub fn tagger_weights(&self) -> Parameters {
        self.parameters.under(TAGGER)
    }

    /// The name encoder.
    pub fn name_encoder(&self) -> Result<NameEncoder> {
        let encoder = ResCnnEncoder::new(&self.manifest.rescnn, &self.parameters, self.pieces.unknown)?;
        Ok(NameEncoder { pieces: self.pieces.clone(), encoder })
    }

    /// Weights of the lexical linker.
    pub fn lexical(&self) -> Result<LexicalModel> {
        LexicalModel::from_json(&self.manifest.lexical.to_string())
    }
}

#[derive(Deserialize)]
struct Format {
    format: u32,
    /// Only bundles of other models have this field.
    #[serde(default)]
    system: Option<String>,
}

#[cfg(test)]
pub(crate) mod tests {
    use canonym_core::eval::learned::{Role, Source};

    use super::*;
    use crate::tensor::matrix::Matrix;
    use crate::tensor::random::SplitMix64;

    /// A small, randomly initialised name encoder.
    pub fn bundle() -> Bundle {
        let rescnn = ResCnnConfig { width: 8, n_filters: 3, hidden: 4, n_blocks: 1, ..Default::default() };
        let pieces = Pieces::learn(["liver disease", "liver cell"].into_iter().cycle().take(20), 40);
        let mut parameters = Parameters::default();
        rescnn.init(&mut parameters, pieces.len(), 4, &mut SplitMix64::new(1));
        let lexical = serde_json::from_str(&LexicalModel::embedded().to_json()).unwrap();
        let manifest = Manifest {
            format: FORMAT,
            rescnn,
            fusion: Fusion::DENSE,
            lexical,
            tagger: None,
            card: "made up".to_owned(),
        };
        Bundle { manifest, parameters, pieces, fingerprint: 0, learned: None }
    }

    fn opened(bytes: &[u8]) -> Result<Bundle> {
        Bundle::from_bytes(bytes, Path::new("model.safetensors"))
    }

    #[test]
    fn a_bundle_comes_back_from_its_bytes_and_equal_bundles_have_equal_bytes() {
        let bytes = bundle().to_bytes(Precision::Single).unwrap();
        let back = opened(&bytes).unwrap();
        assert_eq!(
            (&back.manifest, back.pieces.rows("liver cell")),
            (&bundle().manifest, bundle().pieces.rows("liver cell"))
        );
        for (name, value) in bundle().parameters.iter() {
            assert_eq!(back.parameters.get(name).unwrap(), value);
        }
        assert_eq!(bytes, bundle().to_bytes(Precision::Single).unwrap());
        let half = opened(&bundle().to_bytes(Precision::Half).unwrap()).unwrap();
        assert_ne!(half.fingerprint, back.fingerprint);
    }

    #[test]
    fn a_tokenizer_of_another_kind_travels_with_the_bundle() {
        let json = r#"{"version":"1.0","normalizer":{"type":"Lowercase"},
            "model":{"type":"Unigram","unk_id":0,"vocab":[["<unk>",0.0],["liver",-1.0]]}}"#;
        let bundle = Bundle { pieces: Pieces::from_json(json).unwrap(), ..bundle() };
        let bytes = bundle.to_bytes(Precision::Single).unwrap();
        let back = opened(&bytes).unwrap();
        assert_eq!((&back.pieces, back.pieces.rows("Liverliver")), (&bundle.pieces, vec![1, 1]));
        assert_eq!(bytes, back.to_bytes(Precision::Single).unwrap());
    }

    #[test]
    fn a_record_of_documents_is_added_to_a_bundle_without_moving_a_weight() {
        let path = Path::new("model.safetensors");
        let old = bundle().to_bytes(Precision::Half).unwrap();
        assert_eq!(opened(&old).unwrap().learned, None);
        let mut learned = Learned::default();
        learned.add(Source::new("names", Role::Trained, "shapes/train.jsonl", [7, 3]));
        let new = with_record(&old, path, &learned).unwrap();
        let back = opened(&new).unwrap();
        assert_eq!(back.learned.as_ref(), Some(&learned));
        assert_eq!(
            (&back.parameters, &back.manifest),
            (&opened(&old).unwrap().parameters, &opened(&old).unwrap().manifest)
        );
        let trained = Bundle { learned: Some(learned.clone()), ..bundle() };
        assert_eq!(trained.to_bytes(Precision::Half).unwrap(), new);
        // Writing the same record again changes nothing.
        assert_eq!(with_record(&new, path, &learned).unwrap(), new);
        let mut metadata = Parameters::metadata(&old, path).unwrap();
        metadata.insert(LEARNED.to_owned(), "{\"sources\": 7}".to_owned());
        let damaged = Parameters::with_metadata(&old, path, &metadata).unwrap();
        assert!(opened(&damaged).unwrap_err().to_string().contains("invalid training record"));
    }

    #[test]
    fn what_is_no_bundle_is_refused_with_its_reason() {
        let whole = bundle().to_bytes(Precision::Single).unwrap();
        let changed = |change: &dyn Fn(&mut Bundle)| {
            let mut bundle = bundle();
            change(&mut bundle);
            bundle.to_bytes(Precision::Single).unwrap()
        };
        let cases = [
            (whole[..whole.len() - 10].to_vec(), "incomplete safetensors file"),
            (Vec::new(), "incomplete safetensors file"),
            (b"\x80\x02}q\x00.".repeat(100), "incomplete safetensors file"),
            (Parameters::default().to_bytes(Precision::Single, &BTreeMap::new()).unwrap(), "no entry `settings`"),
            (changed(&|bundle| bundle.manifest.format = 9), "it has format 9"),
            (changed(&|bundle| bundle.manifest.rescnn.hidden = 5), "is 9 x 4, not 9 x 5"),
            (changed(&|bundle| bundle.manifest.rescnn.n_blocks = 2), "no weight `block.1"),
            (changed(&|bundle| bundle.parameters.add("embedding.word", Matrix::zeros(2, 4))), "2 embeddings for"),
            (changed(&|bundle| bundle.parameters.at_mut(1).values[0] = f32::NAN), "contains the value NaN"),
        ];
        for (bytes, expected) in cases {
            let message = opened(&bytes).unwrap_err().to_string();
            assert!(message.contains(expected), "{message}");
        }
    }

    #[test]
    fn a_tagger_travels_with_the_bundle_and_is_checked() {
        let config = TaggerConfig { n_grams: 8, width: 6, distances: vec![1], share_after: 1, ..Default::default() };
        let vocabulary = Vocabulary::count(["liver disease"], 1, 9);
        let viewer = FeatureExtractor { vocabulary, gazetteer: Gazetteer::build([("liver", 1)]), n_grams: 8 };
        let mut weights = Parameters::default();
        config.init(&mut weights, viewer.vocabulary.n_rows(), 1, &mut SplitMix64::new(2));
        let layers = vec![LabelSet { name: Some("Disease".to_owned()), covers: 0.1, any_type: false }];
        let manifest = TaggerManifest { config, layers, decision: Decision::BEGIN };
        let whole = bundle().with_tagger((&viewer, &MentionPrior::default()), &weights, manifest);
        let back = opened(&whole.to_bytes(Precision::Single).unwrap()).unwrap();
        assert_eq!(back.manifest.tagger, whole.manifest.tagger);
        assert_eq!(back.typed_tagger().unwrap().unwrap().viewer, viewer);
        let damaged = |change: &dyn Fn(&mut Bundle)| {
            let mut bundle = whole.clone();
            change(&mut bundle);
            opened(&bundle.to_bytes(Precision::Single).unwrap()).unwrap_err().to_string()
        };
        let cases = [
            damaged(&|bundle| bundle.parameters.add_table(GAZETTEER, vec![1, 2])),
            damaged(&|bundle| bundle.parameters.add_table(WORDS, vec![255])),
            damaged(&|bundle| bundle.parameters.add_table(WORDS, b"liver".to_vec())),
            damaged(&|bundle| bundle.parameters.add("tagger.norm.gain", Matrix::zeros(1, 5))),
            damaged(&|bundle| {
                if let Some(tagger) = &mut bundle.manifest.tagger {
                    tagger.config.width = 0;
                }
            }),
        ];
        for (message, expected) in
            cases.iter().zip(["the names of", "a table of", "embedding.word", "norm.gain", "a size is 0"])
        {
            assert!(message.contains(expected), "{message}");
        }
    }
}
