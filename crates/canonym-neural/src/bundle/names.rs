//! Bundle of a name encoder (ResCNN), optionally with the tagger and the decision weights of the default pipeline.

use canonym_core::link::model::LexicalModel;
use canonym_core::{Error, Result};
use serde::{Deserialize, Serialize};

use super::{Manifest, ModelFile, check_vocabulary};
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
use crate::models::tagger::typed::{LabelSet, TypedTagger};
use crate::models::taught::Taught;
use crate::tensor::parameters::Parameters;
use crate::tokenizer::Tokenizer;

/// A trained name encoder, optionally with a tagger.
pub type NameEncoderBundle = ModelFile<NameManifest>;

/// Settings of a bundle.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NameManifest {
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

/// Settings of a tagger.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TaggerManifest {
    /// Model configuration.
    pub config: TaggerConfig,
    /// Label sets, in order.
    #[serde(rename = "layers")]
    pub label_sets: Vec<LabelSet>,
    /// Weights of the pipeline's decisions.
    pub decision: Decision,
}

impl Manifest for NameManifest {
    const SYSTEM: Option<&'static str> = None;
    const KIND: &'static str = "a name encoder";

    fn description(&self) -> String {
        let kind = if self.tagger.is_some() { "pipeline: tagger, dictionary and name encoder" } else { "name encoder" };
        kind.to_owned()
    }

    fn restore(&self, parameters: &mut Parameters, tokenizer: &Tokenizer) -> Result<()> {
        self.rescnn.check(parameters)?;
        check_vocabulary(parameters.get("embedding.word")?.n_rows, tokenizer)?;
        self.typed_tagger(parameters).map(drop)
    }
}

/// Name of the tagger in the record of training documents.
pub const TAGGER_PART: &str = "tagger";

/// Name of the decision weights in the record of training documents.
pub const DECISION_PART: &str = "evidence weights";

/// Scope of the tagger's weights.
const TAGGER: &str = "tagger.";

/// Key of the tagger's vocabulary, one word per line.
const WORDS: &str = "tagger.words";

/// Key of the mention prior, one name per line.
const PRIOR: &str = "tagger.usages";

/// Key of the names that documents of a project taught, one a line; optional.
const TAUGHT: &str = "tagger.taught";

/// Key of the gazetteer.
const GAZETTEER: &str = "tagger.gazetteer";

impl NameManifest {
    /// The tagger, if there is one.
    fn typed_tagger(&self, parameters: &Parameters) -> Result<Option<TypedTagger>> {
        let Some(TaggerManifest { config, label_sets, .. }) = &self.tagger else { return Ok(None) };
        let damaged = |what: &str| Error::damaged(format!("cannot read {what} of the tagger"));
        let lines = |table: &str| std::str::from_utf8(parameters.table(table)?).map_err(|_| damaged("a table"));
        let vocabulary = Vocabulary::from_lines(lines(WORDS)?);
        let prior = MentionPrior::from_lines(lines(PRIOR)?).ok_or_else(|| damaged("the mention prior"))?;
        let gazetteer = Gazetteer::from_bytes(parameters.table(GAZETTEER)?).ok_or_else(|| damaged("the names"))?;
        let weights = parameters.under(TAGGER);
        config.check(&weights, vocabulary.n_rows(), label_sets.len())?;
        let tagger = Tagger::new(config, &weights, label_sets.len())?;
        let extractor = FeatureExtractor { vocabulary, gazetteer, n_grams: config.n_grams };
        Ok(Some(TypedTagger { extractor, tagger, label_sets: label_sets.clone(), prior }))
    }
}

impl NameEncoderBundle {
    /// Adds a tagger.
    #[must_use]
    pub fn with_tagger(
        mut self,
        extractor: &FeatureExtractor,
        prior: &MentionPrior,
        parameters: &Parameters,
        manifest: TaggerManifest,
    ) -> NameEncoderBundle {
        for (name, value) in parameters.iter() {
            self.parameters.add(format!("{TAGGER}{name}"), value.clone());
        }
        self.parameters.add_table(WORDS, extractor.vocabulary.to_lines().into_bytes());
        self.parameters.add_table(GAZETTEER, extractor.gazetteer.to_bytes());
        self.parameters.add_table(PRIOR, prior.to_lines().into_bytes());
        self.manifest.tagger = Some(manifest);
        self
    }

    /// The names that documents taught; none in models of earlier versions.
    ///
    /// # Errors
    /// If the table is damaged.
    pub fn taught(&self) -> Result<Taught> {
        let Ok(bytes) = self.parameters.table(TAUGHT) else { return Ok(Taught::default()) };
        let lines = std::str::from_utf8(bytes).ok();
        lines.and_then(Taught::from_lines).ok_or_else(|| Error::damaged("cannot read the taught names of the tagger"))
    }

    /// Replaces the names that documents taught.
    #[must_use]
    pub fn with_taught(mut self, taught: &Taught) -> NameEncoderBundle {
        self.parameters.add_table(TAUGHT, taught.to_lines().into_bytes());
        self
    }

    /// Removes the tagger, which leaves the name encoder.
    #[must_use]
    pub fn without_tagger(&self) -> NameEncoderBundle {
        let mut parameters = Parameters::default();
        let of_names = self.parameters.iter().filter(|(name, _)| !name.starts_with(TAGGER));
        of_names.for_each(|(name, value)| parameters.add(name, value.clone()));
        let mut learned = self.learned.clone();
        if let Some(learned) = &mut learned {
            learned.sources.retain(|source| source.part != TAGGER_PART && source.part != DECISION_PART);
        }
        NameEncoderBundle {
            manifest: NameManifest { tagger: None, ..self.manifest.clone() },
            parameters,
            learned,
            ..self.clone()
        }
    }

    /// The tagger, if there is one.
    pub fn typed_tagger(&self) -> Result<Option<TypedTagger>> {
        self.manifest.typed_tagger(&self.parameters)
    }

    /// Weights of the tagger; empty without a tagger.
    pub fn tagger_weights(&self) -> Parameters {
        self.parameters.under(TAGGER)
    }

    /// The name encoder.
    pub fn name_encoder(&self) -> Result<NameEncoder> {
        let encoder = ResCnnEncoder::new(&self.manifest.rescnn, &self.parameters, self.tokenizer.unknown)?;
        Ok(NameEncoder { tokenizer: self.tokenizer.clone(), encoder })
    }

    /// Hash of everything that name embeddings depend on; adapting the tagger or the decisions does not change it.
    pub fn names_fingerprint(&self) -> u128 {
        self.part_fingerprint(&format!("{:?}", self.manifest.rescnn), |name| !name.starts_with(TAGGER))
    }

    /// Weights of the lexical linker.
    pub fn lexical(&self) -> Result<LexicalModel> {
        LexicalModel::from_json(&self.manifest.lexical.to_string())
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::path::Path;

    use super::*;
    use crate::bundle::FORMAT;
    use crate::bundle::tests::refusals;
    use crate::tensor::matrix::Matrix;
    use crate::tensor::parameters::Precision;
    use crate::tensor::random::SplitMix64;

    /// A small, randomly initialised name encoder.
    pub fn bundle() -> NameEncoderBundle {
        let rescnn = ResCnnConfig { width: 8, n_filters: 3, hidden: 4, n_blocks: 1, ..Default::default() };
        let tokenizer = Tokenizer::learn(["liver disease", "liver cell"].into_iter().cycle().take(20), 40);
        let mut parameters = Parameters::default();
        rescnn.init(&mut parameters, tokenizer.len(), 4, &mut SplitMix64::new(1));
        let lexical = serde_json::from_str(&LexicalModel::embedded().to_json()).unwrap();
        let manifest = NameManifest {
            format: FORMAT,
            rescnn,
            fusion: Fusion::DENSE,
            lexical,
            tagger: None,
            card: "made up".to_owned(),
        };
        NameEncoderBundle::new(manifest, parameters, tokenizer)
    }

    #[test]
    fn damaged_bundles_are_refused_with_the_reason() {
        refusals(
            bundle,
            &[
                (&|bundle| bundle.manifest.format = 9, "it has format 9"),
                (&|bundle| bundle.manifest.rescnn.hidden = 5, "is 9 x 4, not 9 x 5"),
                (&|bundle| bundle.manifest.rescnn.n_blocks = 2, "no weight `block.1"),
                (&|bundle| bundle.parameters.add("embedding.word", Matrix::zeros(2, 4)), "2 embeddings for"),
                (&|bundle| bundle.parameters.at_mut(1).values[0] = f32::NAN, "contains the value NaN"),
            ],
        );
    }

    #[test]
    fn a_tokenizer_of_another_kind_travels_with_the_bundle() {
        let json = r#"{"version":"1.0","normalizer":{"type":"Lowercase"},
            "model":{"type":"Unigram","unk_id":0,"vocab":[["<unk>",0.0],["liver",-1.0]]}}"#;
        let bundle = NameEncoderBundle { tokenizer: Tokenizer::from_json(json).unwrap(), ..bundle() };
        let bytes = bundle.to_bytes(Precision::Single).unwrap();
        let back = NameEncoderBundle::from_bytes(&bytes, Path::new("x")).unwrap();
        assert_eq!((&back.tokenizer, back.tokenizer.input_ids("Liverliver")), (&bundle.tokenizer, vec![1, 1]));
        assert_eq!(bytes, back.to_bytes(Precision::Single).unwrap());
    }

    #[test]
    fn a_tagger_travels_with_the_bundle_and_is_checked() {
        let config = TaggerConfig { n_grams: 8, width: 6, distances: vec![1], share_after: 1, ..Default::default() };
        let vocabulary = Vocabulary::count(["liver disease"], 1, 9);
        let extractor = FeatureExtractor { vocabulary, gazetteer: Gazetteer::build([("liver", 1)]), n_grams: 8 };
        let mut weights = Parameters::default();
        config.init(&mut weights, extractor.vocabulary.n_rows(), 1, &mut SplitMix64::new(2));
        let label_sets = vec![LabelSet { name: Some("Disease".to_owned()), covers: 0.1, any_type: false }];
        let manifest = TaggerManifest { config, label_sets, decision: Decision::BEGIN };
        let whole = bundle().with_tagger(&extractor, &MentionPrior::default(), &weights, manifest);
        let back = NameEncoderBundle::from_bytes(&whole.to_bytes(Precision::Single).unwrap(), Path::new("x")).unwrap();
        assert_eq!(back.manifest.tagger, whole.manifest.tagger);
        assert_eq!(back.typed_tagger().unwrap().unwrap().extractor, extractor);
        // Vectors of names stay valid with another tagger and in a file, but not with another encoder.
        assert_eq!(back.names_fingerprint(), bundle().names_fingerprint());
        let half = NameEncoderBundle::from_bytes(&whole.to_bytes(Precision::Half).unwrap(), Path::new("x")).unwrap();
        assert_eq!(half.names_fingerprint(), back.names_fingerprint());
        let mut other = whole.clone();
        other.parameters.add("embedding.word", Matrix::zeros(other.tokenizer.len(), 4));
        assert_ne!(other.names_fingerprint(), back.names_fingerprint());
        refusals::<NameManifest>(
            || whole.clone(),
            &[
                (&|bundle| bundle.parameters.add_table(GAZETTEER, vec![1, 2]), "the names of"),
                (&|bundle| bundle.parameters.add_table(WORDS, vec![255]), "a table of"),
                (&|bundle| bundle.parameters.add_table(WORDS, b"liver".to_vec()), "embedding.word"),
                (&|bundle| bundle.parameters.add("tagger.norm.gain", Matrix::zeros(1, 5)), "norm.gain"),
                (&|bundle| bundle.manifest.tagger.as_mut().unwrap().config.width = 0, "a size is 0"),
            ],
        );
    }
}
