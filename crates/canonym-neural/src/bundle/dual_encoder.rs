//! Bundle of a dual encoder: weights, vocabulary and settings in a safetensors file, as in [`crate::bundle`].

use std::borrow::Cow;
use std::path::Path;

use canonym_core::link::model::LexicalModel;
use canonym_core::{Error, Result};
use serde::{Deserialize, Serialize};

use super::{Manifest, ModelFile, NameEncoderBundle, check_vocabulary};
use crate::models::dual_encoder::infer::DualEncoder;
use crate::models::dual_encoder::windows::{WindowConfig, Windower};
use crate::models::dual_encoder::{DualEncoderConfig, NAME, TEXT};
use crate::models::fusion::Fusion;
use crate::models::joint::Joint;
use crate::models::mention_prior::MentionPrior;
use crate::tensor::parameters::{Parameters, Precision};
use crate::tokenizer::{BertNormalizer, Tokenizer};

/// Key of the nested name-encoder bundle.
const NAME_ENCODER: &str = "voice";

/// Key of the mention prior, in the format of [`MentionPrior::to_lines`].
const PRIOR: &str = "usages";

/// Value of `system` in the settings.
pub const SYSTEM: &str = "dual-encoder";

/// A trained dual encoder.
pub type DualBundle = ModelFile<DualManifest>;

/// Settings of a dual encoder.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DualManifest {
    /// [`SYSTEM`].
    pub system: String,
    /// Format number.
    pub format: u32,
    /// Model configuration.
    pub model: DualEncoderConfig,
    /// How texts are split into windows.
    pub windows: WindowConfig,
    /// Which names represent a concept.
    pub concepts: ConceptNames,
    /// Normalisation of the tokenizer.
    pub normalizer: BertNormalizer,
    /// Maximum word length in characters; longer words are unknown.
    pub longest_word: usize,
    /// Fusion of lexical and dense scores, and calibration.
    pub fusion: Fusion,
    /// Weights of the lexical linker, as written by `canonym train`.
    pub lexical: serde_json::Value,
    /// Minimum span probability.
    #[serde(alias = "least_span")]
    pub min_span: f32,
    /// Joint model of span and link, if it was fitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub joint: Option<Joint>,
    /// One-sense-per-discourse weight; 0 turns it off.
    #[serde(alias = "same_sense", default, skip_serializing_if = "is_off")]
    pub one_sense_weight: f32,
    /// Model card in free text: data, scores, limitations, licence.
    #[serde(default)]
    pub card: String,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde hands references")]
fn is_off(weight: &f32) -> bool {
    *weight == 0.0
}

/// Which names represent a concept.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ConceptNames {
    /// The preferred name.
    #[default]
    Preferred,
    /// All names; the nearest one counts.
    All,
    /// The preferred name with the definition, if there is one.
    Definition,
    /// The preferred name with the semantic types, if there are any.
    Types,
    /// As published for TrainX: the longest name, the token `[ENT]` and the definition, at most as long as a window.
    Described,
}

impl Manifest for DualManifest {
    const SYSTEM: Option<&'static str> = Some(SYSTEM);
    const KIND: &'static str = "a dual encoder";

    fn description(&self) -> String {
        let search = if self.model.search.is_some() { "detects and links" } else { "links" };
        format!("{SYSTEM}, {search} mentions")
    }

    /// Weights shared by both encoders are written once.
    fn stored(parameters: &Parameters) -> Cow<'_, Parameters> {
        let mut once = Parameters::default();
        for (name, value) in parameters.iter() {
            let other = name.strip_prefix(NAME).and_then(|rest| parameters.get(&format!("{TEXT}{rest}")).ok());
            if other != Some(value) {
                once.add(name, value.clone());
            }
        }
        for table in [NAME_ENCODER, PRIOR] {
            if let Ok(content) = parameters.table(table) {
                once.add_table(table, content.to_vec());
            }
        }
        Cow::Owned(once)
    }

    fn restore(&self, parameters: &mut Parameters, tokenizer: &Tokenizer) -> Result<()> {
        let shared: Vec<String> =
            parameters.iter().filter_map(|(name, _)| name.strip_prefix(TEXT)).map(str::to_owned).collect();
        for name in shared {
            if parameters.find(&format!("{NAME}{name}")).is_err() {
                let value = parameters.get(&format!("{TEXT}{name}"))?.clone();
                parameters.add(format!("{NAME}{name}"), value);
            }
        }
        self.model.check(parameters)?;
        if let Ok(names) = parameters.table(NAME_ENCODER) {
            NameEncoderBundle::from_bytes(names, Path::new("nested name encoder"))?;
        }
        mention_prior(parameters)?;
        check_vocabulary(self.model.bert.vocab_size, tokenizer)
    }
}

/// The mention prior; empty if there is none.
fn mention_prior(parameters: &Parameters) -> Result<MentionPrior> {
    let Ok(bytes) = parameters.table(PRIOR) else { return Ok(MentionPrior::default()) };
    let lines = std::str::from_utf8(bytes).ok();
    lines.and_then(MentionPrior::from_lines).ok_or_else(|| Error::damaged("invalid mention-entity prior"))
}

impl DualBundle {
    /// The model for inference.
    pub fn encoder(&self) -> Result<DualEncoder> {
        DualEncoder::new(&self.manifest.model, &self.parameters)
    }

    /// Hash of everything that name embeddings depend on; fine-tuning only the text encoder does not change it.
    pub fn names_fingerprint(&self) -> u128 {
        let DualManifest { model, concepts, normalizer, longest_word, .. } = &self.manifest;
        let settings = format!("{:?} {:?} {concepts:?} {normalizer:?} {longest_word}", model.bert, model.name);
        self.part_fingerprint(&settings, |name| name.starts_with(NAME))
    }

    /// Adds a name encoder as name scorer.
    pub fn with_name_encoder(mut self, names: &NameEncoderBundle) -> Result<DualBundle> {
        self.parameters.add_table(NAME_ENCODER, names.without_tagger().to_bytes(Precision::Half)?);
        Ok(self)
    }

    /// The nested name encoder, if there is one.
    pub fn name_encoder(&self) -> Result<Option<NameEncoderBundle>> {
        let Ok(bytes) = self.parameters.table(NAME_ENCODER) else { return Ok(None) };
        NameEncoderBundle::from_bytes(bytes, Path::new(NAME_ENCODER)).map(Some)
    }

    /// Adds a mention prior.
    #[must_use]
    pub fn with_mention_prior(mut self, prior: &MentionPrior) -> DualBundle {
        self.parameters.add_table(PRIOR, prior.to_lines().into_bytes());
        self
    }

    /// The mention prior; empty if there is none.
    pub fn mention_prior(&self) -> Result<MentionPrior> {
        mention_prior(&self.parameters)
    }

    /// The windower of the model.
    pub fn windower(&self) -> Result<Windower> {
        Windower::new(self.tokenizer.clone(), self.manifest.windows)
    }

    /// Weights of the lexical linker.
    pub fn lexical(&self) -> Result<LexicalModel> {
        LexicalModel::from_json(&self.manifest.lexical.to_string())
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use canonym_core::eval::learned::{Fingerprints, Learned, Role, TrainingSource};

    use super::*;
    use crate::bundle::FORMAT;
    use crate::bundle::names::tests as names;
    use crate::bundle::tests::refusals;
    use crate::models::dual_encoder::tests::drawn;
    use crate::models::dual_encoder::{MentionVector, NameVector, SpanSearch};
    use crate::tensor::matrix::Matrix;
    use crate::tokenizer::BertRules;

    /// A randomly initialised model with eleven wordpieces.
    pub fn bundle() -> DualBundle {
        let search = Some(SpanSearch::Exhaustive { longest: 3 });
        let (model, mut parameters) = drawn(MentionVector::Mean, NameVector::Mean, search);
        let words = parameters.get("text.embedding.word").unwrap().clone();
        parameters.add("name.embedding.word", words);
        let names = ["[UNK]", "[CLS]", "[SEP]", "gout", "liver", "pain", "acute", ".", "ache", "##s", "kidney"];
        let tokenizer = Tokenizer::of(names.map(str::to_owned).to_vec()).unwrap();
        let manifest = DualManifest {
            system: SYSTEM.to_owned(),
            format: FORMAT,
            model,
            windows: WindowConfig { wordpieces: 16, overlap: 4, ..WindowConfig::default() },
            concepts: ConceptNames::All,
            normalizer: BertNormalizer::UNCASED,
            longest_word: BertRules::UNCASED.longest_word,
            fusion: Fusion::DENSE,
            lexical: serde_json::from_str(&LexicalModel::embedded().to_json()).unwrap(),
            min_span: 0.5,
            joint: None,
            one_sense_weight: 0.0,
            card: "made up".to_owned(),
        };
        DualBundle::new(manifest, parameters, tokenizer)
    }

    #[test]
    fn the_record_of_what_it_learned_from_is_stored_for_the_model_and_its_name_encoder() {
        let of = |part: &str, document: u64| {
            let mut learned = Learned::default();
            let prints = Fingerprints { whole: Some(document), sections: vec![document + 10] };
            learned.add(TrainingSource::new(part, Role::Trained, "shapes/train.jsonl", [prints]));
            Some(learned)
        };
        let mut record = of("names", 1);
        record.as_mut().unwrap().join("", of("tagger", 2).as_ref());
        let names = NameEncoderBundle { learned: record, ..names::bundle() };
        let bundle = DualBundle { learned: of("dual encoder", 3), ..bundle().with_name_encoder(&names).unwrap() };
        let back = DualBundle::from_bytes(&bundle.to_bytes(Precision::Half).unwrap(), Path::new("x")).unwrap();
        assert_eq!(back.learned, of("dual encoder", 3));
        assert_eq!(back.name_encoder().unwrap().unwrap().learned, of("names", 1));
    }

    #[test]
    fn a_nested_name_encoder_is_stored_in_the_file() {
        assert!(bundle().name_encoder().unwrap().is_none());
        let names = names::bundle();
        let with = bundle().with_name_encoder(&names).unwrap();
        let bytes = with.to_bytes(Precision::Half).unwrap();
        let back = DualBundle::from_bytes(&bytes, Path::new("x")).unwrap();
        let read = back.name_encoder().unwrap().unwrap();
        assert_eq!((read.manifest.rescnn, read.tokenizer), (names.manifest.rescnn, names.tokenizer));
        assert_eq!(read.fingerprint, with.name_encoder().unwrap().unwrap().fingerprint);
        assert_eq!(back.names_fingerprint(), bundle().names_fingerprint());
        let mut prior = MentionPrior::default();
        prior.add("gout", Some("A:1"));
        let counted = bundle().with_mention_prior(&prior);
        let counted = DualBundle::from_bytes(&counted.to_bytes(Precision::Half).unwrap(), Path::new("x")).unwrap();
        assert_eq!(
            (counted.mention_prior().unwrap(), bundle().mention_prior().unwrap()),
            (prior, MentionPrior::default())
        );
        let mut damaged = counted;
        damaged.parameters.add_table(PRIOR, vec![b'a', b'\t', 200]);
        let error = DualBundle::from_bytes(&damaged.to_bytes(Precision::Half).unwrap(), Path::new("x")).unwrap_err();
        assert!(error.to_string().contains("invalid mention-entity prior"), "{error}");
        let mut damaged = back;
        damaged.parameters.add_table(NAME_ENCODER, vec![1, 2, 3]);
        let error = DualBundle::from_bytes(&damaged.to_bytes(Precision::Half).unwrap(), Path::new("x")).unwrap_err();
        assert!(error.to_string().contains("incomplete safetensors file"), "{error}");
    }

    #[test]
    fn vectors_of_names_are_those_of_another_encoder_of_texts() {
        let changed = |change: &dyn Fn(&mut DualBundle)| {
            let mut bundle = bundle();
            change(&mut bundle);
            bundle.names_fingerprint()
        };
        let of = |bundle: &mut DualBundle, name: &str| {
            let row = bundle.parameters.find(name).unwrap();
            bundle.parameters.at_mut(row).values[0] += 1.0;
        };
        let whole = bundle().names_fingerprint();
        assert_eq!(changed(&|bundle| of(bundle, "text.embedding.position")), whole);
        assert_ne!(changed(&|bundle| of(bundle, "name.embedding.position")), whole);
        assert_ne!(changed(&|bundle| bundle.manifest.concepts = ConceptNames::Preferred), whole);
        // Unchanged by a round trip.
        let back = DualBundle::from_bytes(&bundle().to_bytes(Precision::Half).unwrap(), Path::new("x")).unwrap();
        assert_eq!(back.names_fingerprint(), whole);
    }

    #[test]
    fn damaged_bundles_are_refused_with_the_reason() {
        let twenty = (0..20).map(|n| if n == 0 { "[UNK]".to_owned() } else { n.to_string() }).collect();
        let twenty = Tokenizer::of(twenty).unwrap();
        refusals(
            bundle,
            &[
                (&|bundle| bundle.manifest.format = 9, "format 9"),
                (&|bundle| bundle.manifest.model.mention = MentionVector::BoundaryTokens, "no weight `mention.weight`"),
                (&|bundle| bundle.parameters.add("spans.weight", Matrix::zeros(2, 3)), "is 2 x 3, not 12 x 3"),
                (&|bundle| bundle.tokenizer = twenty.clone(), "11 embeddings for 20"),
            ],
        );
    }
}
