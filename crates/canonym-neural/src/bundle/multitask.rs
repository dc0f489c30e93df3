//! Bundle of a multi-task tagger: weights, vocabulary, settings, the ids of its classes, and optionally the model that detects mentions.

use std::path::Path;

use canonym_core::{Error, Result};
use serde::{Deserialize, Serialize};

use super::{Manifest, ModelFile, check_vocabulary};
use crate::models::multitask::infer::MultitaskTagger;
use crate::models::multitask::tokenized::Splitter;
use crate::models::multitask::{CONCEPTS, Framing, MultitaskConfig, Task};
use crate::tensor::parameters::Parameters;
use crate::tokenizer::{BertNormalizer, Tokenizer};

/// Value of `system` in the settings.
pub const SYSTEM: &str = "multitask";

/// Table of the concept ids, one per line, in the order of their classes.
pub const IDS: &str = "concepts.ids";

/// Table of a nested bundle that detects mentions, for a model of spans that detects none.
const DETECTOR: &str = "detector";

/// A trained multi-task tagger.
pub type MultitaskBundle = ModelFile<MultitaskManifest>;

/// Table of the weights of the linker of names, if they are not the embedded ones.
const NAMES: &str = "names";

/// The kind of a linker of names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NameLinker {
    /// The linker of the lexical system.
    Lexical,
    /// The hybrid linker of the default model.
    Default,
}

/// Settings of a multi-task tagger.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MultitaskManifest {
    /// [`SYSTEM`].
    pub system: String,
    /// Format number.
    pub format: u32,
    /// Model configuration.
    pub model: MultitaskConfig,
    /// Normalisation of the tokenizer.
    pub normalizer: BertNormalizer,
    /// Maximum word length in characters; longer words are unknown.
    pub longest_word: usize,
    /// Threshold below which a mention stays unlinked; the paper has none.
    #[serde(default)]
    pub min_score: f32,
    /// Linker of names that is joined with the class probabilities; the paper has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name_linker: Option<NameLinker>,
    /// Model card in free text: data, scores, limitations, licence.
    #[serde(default)]
    pub card: String,
}

impl Manifest for MultitaskManifest {
    const SYSTEM: Option<&'static str> = Some(SYSTEM);
    const KIND: &'static str = "a multi-task tagger";

    fn description(&self) -> String {
        let tasks: Vec<&str> = self.model.tasks.iter().map(|task| task.name()).collect();
        let framing = if self.model.framing == Framing::Token { "token" } else { "entity" };
        format!("multi-task tagger per {framing}: {}", tasks.join(", "))
    }

    fn restore(&self, parameters: &mut Parameters, tokenizer: &Tokenizer) -> Result<()> {
        self.model.check(parameters, ids(parameters)?.len())?;
        check_vocabulary(self.model.bert.vocab_size, tokenizer)?;
        tokenizer.ends()?;
        detector(parameters).map(drop)
    }
}

/// The nested model that detects mentions, if there is one.
fn detector(parameters: &Parameters) -> Result<Option<MultitaskBundle>> {
    let Ok(bytes) = parameters.table(DETECTOR) else { return Ok(None) };
    let path = Path::new("nested detector");
    // Looked up before the detector is opened, which limits the depth.
    if Parameters::has_tensor(bytes, path, DETECTOR)? {
        return Err(Error::mismatch("the nested detector contains another detector"));
    }
    let detector = MultitaskBundle::from_bytes(bytes, path)?;
    if !detector.manifest.model.has(Task::Mentions) {
        return Err(Error::mismatch("the nested detector does not detect mentions"));
    }
    Ok(Some(detector))
}

/// The ids of the classes of a model.
fn ids(parameters: &Parameters) -> Result<Vec<&str>> {
    if parameters.find(CONCEPTS).is_err() {
        return Ok(Vec::new());
    }
    let lines = std::str::from_utf8(parameters.table(IDS)?);
    Ok(lines.map_err(|_| Error::damaged("invalid concept ids"))?.lines().collect())
}

impl MultitaskBundle {
    /// The model for inference.
    ///
    /// # Errors
    /// If weights are missing.
    pub fn tagger(&self) -> Result<MultitaskTagger> {
        let splitter = Splitter::new(self.tokenizer.clone(), self.manifest.model.max_wordpieces)?;
        MultitaskTagger::new(&self.manifest.model, &self.parameters, self.ids()?.len(), splitter)
    }

    /// Adds a model that detects mentions.
    #[must_use]
    pub fn with_detector(mut self, bytes: Vec<u8>) -> MultitaskBundle {
        self.parameters.add_table(DETECTOR, bytes);
        self
    }

    /// The nested model that detects mentions, if there is one.
    ///
    /// # Errors
    /// If it is damaged, detects nothing, or contains another detector.
    pub fn detector(&self) -> Result<Option<MultitaskBundle>> {
        detector(&self.parameters)
    }

    /// Adds the linker of names: the JSON of lexical weights, or the bundle of a name encoder.
    #[must_use]
    pub fn with_name_linker(mut self, bytes: Vec<u8>) -> MultitaskBundle {
        self.parameters.add_table(NAMES, bytes);
        self
    }

    /// The bytes of the linker of names, unless it is an embedded one.
    pub fn name_linker(&self) -> Option<&[u8]> {
        self.parameters.table(NAMES).ok()
    }

    /// Whether there is a nested model that detects mentions.
    pub fn has_detector(&self) -> bool {
        self.parameters.table(DETECTOR).is_ok()
    }

    /// The ids of the classes from 1.
    ///
    /// # Errors
    /// If they are damaged.
    pub fn ids(&self) -> Result<Vec<&str>> {
        ids(&self.parameters)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::bundle::FORMAT;
    use crate::bundle::tests::refusals;
    use crate::models::multitask::tests::{Drawn, drawn_tagger_with};
    use crate::tensor::matrix::Matrix;
    use crate::tensor::parameters::Precision;
    use crate::tokenizer::BertRules;

    /// A small, randomly initialised tagger with three concepts.
    pub fn bundle() -> MultitaskBundle {
        bundle_of(Framing::Token, &Task::ALL)
    }

    /// A small tagger with these tasks.
    pub fn bundle_of(framing: Framing, tasks: &[Task]) -> MultitaskBundle {
        let Drawn { model, mut parameters, splitter } =
            drawn_tagger_with(framing, false, |model| model.tasks = tasks.to_vec());
        parameters.add_table(IDS, b"D1\nD2\nD3\n".to_vec());
        let manifest = MultitaskManifest {
            system: SYSTEM.to_owned(),
            format: FORMAT,
            model,
            normalizer: BertNormalizer::UNCASED,
            longest_word: BertRules::UNCASED.longest_word,
            min_score: 0.0,
            name_linker: None,
            card: "made up".to_owned(),
        };
        MultitaskBundle::new(manifest, parameters, splitter.tokenizer().clone())
    }

    #[test]
    fn damaged_bundles_are_refused_with_the_reason() {
        let twenty = (0..20).map(|n| if n == 0 { "[UNK]".to_owned() } else { n.to_string() }).collect();
        let twenty = Tokenizer::of(twenty).unwrap();
        let without_ends = Tokenizer::from_lines("[UNK]\nfever").unwrap();
        refusals(
            bundle,
            &[
                (&|bundle| bundle.manifest.format = 9, "format 9"),
                (&|bundle| bundle.manifest.model.tasks.clear(), "`tasks` must be"),
                (&|bundle| bundle.manifest.model.tasks.reverse(), "`tasks` must be"),
                (&|bundle| bundle.manifest.model.max_wordpieces = 4, "`max_wordpieces` must be at least 16"),
                (&|bundle| bundle.manifest.model.max_wordpieces = 4000, "`max_wordpieces` must be at least 16"),
                (&|bundle| bundle.manifest.model.types.push("C".to_owned()), "`types.weight` is 8 x 3, not 8 x 4"),
                (&|bundle| bundle.manifest.model.crf = true, "no weight `mentions.transitions`"),
                (&|bundle| bundle.manifest.model.hidden_layer = true, "no weight `mentions.hidden.weight`"),
                (&|bundle| bundle.manifest.model.lstm = None, "not 12 x 5"),
                (&|bundle| bundle.manifest.model.lstm.as_mut().unwrap().n_layers = usize::MAX, "no weight"),
                (&|bundle| bundle.manifest.model.lstm.as_mut().unwrap().hidden = usize::MAX, "mentions.lstm.0"),
                (
                    &|bundle| bundle.parameters.add(CONCEPTS, Matrix::zeros(3, 9)),
                    "`concepts.table` is 3 x 9, not 4 x 9",
                ),
                (&|bundle| bundle.parameters.add_table(IDS, b"D1\n".to_vec()), "not 2 x 9"),
                (&|bundle| bundle.parameters.add_table(IDS, vec![200, 10]), "invalid concept ids"),
                (&|bundle| bundle.parameters.add_table(DETECTOR, vec![1, 2, 3]), "incomplete safetensors file"),
                (&|bundle| bundle.tokenizer = twenty.clone(), "11 embeddings for 20"),
                (&|bundle| bundle.tokenizer = without_ends.clone(), "[CLS]"),
            ],
        );
    }

    #[test]
    fn a_truncated_or_changed_file_is_an_error_or_the_same_model() {
        let bytes = bundle().to_bytes(Precision::Half).unwrap();
        let path = Path::new("model.safetensors");
        let whole = MultitaskBundle::from_bytes(&bytes, path).unwrap();
        for length in (0..bytes.len()).step_by(97) {
            assert!(MultitaskBundle::from_bytes(&bytes[..length], path).is_err(), "{length}");
        }
        for at in (0..bytes.len()).step_by(13) {
            let mut changed = bytes.clone();
            changed[at] ^= 1 << (at % 8);
            // Only the name of the checksum may change unnoticed.
            if let Ok(opened) = MultitaskBundle::from_bytes(&changed, path) {
                assert_eq!((&opened.parameters, &opened.manifest), (&whole.parameters, &whole.manifest), "{at}");
            }
        }
    }

    #[test]
    fn a_detector_detects_mentions_and_contains_no_other() {
        let mentions = bundle_of(Framing::Token, &[Task::Mentions]);
        let spans = || bundle_of(Framing::Entity, &[Task::Concepts]);
        let opened = |detector: &MultitaskBundle| {
            let whole = spans().with_detector(detector.to_bytes(Precision::Half).unwrap());
            MultitaskBundle::from_bytes(&whole.to_bytes(Precision::Half).unwrap(), Path::new("x"))
        };
        let whole = opened(&mentions).unwrap();
        assert_eq!(whole.detector().unwrap().unwrap().manifest, mentions.manifest);
        assert!(whole.has_detector() && !spans().has_detector() && spans().detector().unwrap().is_none());
        let error = opened(&spans()).unwrap_err();
        assert!(error.to_string().contains("the nested detector does not detect mentions"), "{error}");
        let nested = mentions.clone().with_detector(mentions.to_bytes(Precision::Half).unwrap());
        let error = opened(&nested).unwrap_err();
        assert!(error.to_string().contains("contains another detector") && error.hint().is_some(), "{error}");
    }
}
