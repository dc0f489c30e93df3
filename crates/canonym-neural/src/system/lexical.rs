//! The lexical system: dictionary and lexical linker, without a neural model; and BM25.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::Path;

use canonym_core::error::Context;
use canonym_core::eval::learned::Learned;
use canonym_core::index::bm25::Bm25Config;
use canonym_core::link::bm25::Bm25Linker;
use canonym_core::link::lexical::{LexicalLinker, LinkConfig};
use canonym_core::link::model::{self, LexicalModel};
use canonym_core::link::recognise::accept::{self, AcceptModel};
use canonym_core::link::recognise::{DictionaryAnnotator, RecogniseConfig};
use canonym_core::link::system::bm25_detects_nothing;
use canonym_core::link::{Annotator, Linker};
use canonym_core::{Error, Result};
use xxhash_rust::xxh3::xxh3_128;

use super::info::ModelInfo;
use super::linked::MentionSource;
use super::{LinkingModel, Target};

/// Name of the lexical weights in the record of training documents.
pub const LEXICAL_PART: &str = "lexical weights";

/// Name of the recognition weights in the record of training documents.
pub const RECOGNITION_PART: &str = "recognition weights";

/// The weights of the lexical system.
#[derive(Debug, Clone)]
pub struct Lexical {
    ranking: LexicalModel,
    recognition: AcceptModel,
    /// The JSON that each was read from; it also records the training documents.
    ranking_json: Cow<'static, str>,
    recognition_json: Cow<'static, str>,
}

/// Training documents of the embedded lexical weights.
pub fn lexical_learned() -> Result<Option<Learned>> {
    Learned::of_json(model::EMBEDDED)
}

/// The annotator that detects mentions by the dictionary alone.
pub fn dictionary(on: &Target, recognition: AcceptModel, config: RecogniseConfig) -> DictionaryAnnotator {
    let dictionary = DictionaryAnnotator::new(on.kb.clone(), recognition, config).within(on.subset.clone());
    match &on.senses {
        Some(senses) => dictionary.with_senses(senses.clone()),
        None => dictionary,
    }
}

/// Adds the training documents of the embedded recognition weights.
pub fn join_recognition(all: &mut Learned) -> Result<()> {
    all.join(RECOGNITION_PART, Learned::of_json(accept::EMBEDDED)?.as_ref());
    Ok(())
}

const USABLE: &str = "use `default`, `lexical`, `bm25`, or a model trained with `canonym train`";

/// The name of a built-in model that differs in at most two letters.
fn near_name(name: &str) -> Option<&'static str> {
    let distance = |known: &str| rapidfuzz::distance::osa::distance(known.chars(), name.to_lowercase().chars());
    ["default", "lexical", "bm25"].into_iter().find(|known| distance(known) <= 2)
}

impl Lexical {
    /// The embedded weights.
    pub fn embedded() -> Lexical {
        Lexical {
            ranking: LexicalModel::embedded(),
            recognition: AcceptModel::embedded(),
            ranking_json: Cow::Borrowed(model::EMBEDDED),
            recognition_json: Cow::Borrowed(accept::EMBEDDED),
        }
    }

    /// The embedded weights, with lexical weights from JSON.
    ///
    /// # Errors
    /// If the JSON is no lexical model.
    pub fn with_ranking(json: &[u8]) -> Result<Lexical> {
        let json = std::str::from_utf8(json).map_err(|_| Error::damaged("the lexical weights are not UTF-8"))?;
        let ranking = LexicalModel::from_json(json)?;
        Ok(Lexical { ranking, ranking_json: Cow::Owned(json.to_owned()), ..Lexical::embedded() })
    }

    /// The JSON of the lexical weights in a run folder of `canonym train`.
    ///
    /// # Errors
    /// If the folder contains no complete lexical model, such as one of recognition weights alone, which do not link names.
    pub fn open_ranking(folder: &Path) -> Result<String> {
        match Lexical::open(folder)?.ranking_json {
            Cow::Owned(json) => Ok(json),
            Cow::Borrowed(_) => {
                let message = format!("{} contains recognition weights, which do not link names", folder.display());
                let hint = "use `lexical`, or a model trained with `system = \"lexical\"`";
                Err(Error::unsupported(message).with_hint(hint))
            }
        }
    }

    /// The embedded weights, of which those in a run folder of `canonym train` replace one part.
    ///
    /// # Errors
    /// If the folder contains no complete lexical or recognition model.
    pub fn open(folder: &Path) -> Result<Lexical> {
        let name = folder.display();
        if !folder.is_dir() {
            let error = Error::not_found(format!("no such model: `{name}`"));
            return Err(error.with_hint(match near_name(&name.to_string()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => USABLE.to_owned(),
            }));
        }
        if std::fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_none()) {
            let message = format!("{name} does not contain a complete model: the folder is empty");
            return Err(Error::unsupported(message).with_hint(USABLE));
        }
        if !folder.join("config.toml").exists() {
            let error = Error::unsupported(format!("{name} does not contain a complete model"));
            return Err(error.with_hint("training has not finished; run `canonym train` again to resume"));
        }
        let read = |file: &str| {
            let path = folder.join(file);
            std::fs::read_to_string(&path).map_err(|error| Error::io("read", &path, error))
        };
        let context = || format!("cannot open the model {name}");
        let config: toml::Table = toml::from_str(&read("config.toml")?).with_context(context)?;
        let json = read("model.json")?;
        let embedded = Lexical::embedded();
        match config.get("system").and_then(toml::Value::as_str) {
            Some("lexical") => {
                let ranking = LexicalModel::from_json(&json).with_context(context)?;
                Ok(Lexical { ranking, ranking_json: Cow::Owned(json), ..embedded })
            }
            Some("recognition") => {
                let recognition = AcceptModel::from_json(&json).with_context(context)?;
                Ok(Lexical { recognition, recognition_json: Cow::Owned(json), ..embedded })
            }
            other => {
                let system = other.unwrap_or_default();
                let error = Error::unsupported(format!("{name} contains a model of an unknown system `{system}`"));
                Err(error.with_hint("it may require a newer version of canonym"))
            }
        }
    }
}

impl LinkingModel for Lexical {
    fn info(&self) -> ModelInfo {
        let parts = [(LEXICAL_PART, model::N), (RECOGNITION_PART, accept::N)].map(|(part, n)| (part.to_owned(), n));
        ModelInfo {
            kind: "lexical".to_owned(),
            n_bytes: self.ranking_json.len() + self.recognition_json.len(),
            parts: BTreeMap::from(parts),
            ..ModelInfo::default()
        }
    }

    fn fingerprint(&self) -> Option<u128> {
        Some(xxh3_128(&[self.ranking_json.as_bytes(), self.recognition_json.as_bytes()].join(&0)))
    }

    fn learned(&self, mentions: MentionSource) -> Result<Learned> {
        let mut all = Learned::default();
        all.join(LEXICAL_PART, Learned::of_json(&self.ranking_json)?.as_ref());
        if mentions == MentionSource::Detect {
            all.join(RECOGNITION_PART, Learned::of_json(&self.recognition_json)?.as_ref());
        }
        Ok(all)
    }

    fn linker(&self, on: &Target, config: LinkConfig) -> Result<Box<dyn Linker>> {
        let linker = LexicalLinker::new(on.kb.clone(), self.ranking.clone(), config);
        Ok(Box::new(linker.within(on.subset.clone())))
    }

    fn annotator(&self, on: &Target, config: RecogniseConfig) -> Result<Box<dyn Annotator>> {
        Ok(Box::new(dictionary(on, self.recognition.clone(), config)))
    }
}

/// BM25 over names.
impl LinkingModel for Bm25Config {
    fn info(&self) -> ModelInfo {
        ModelInfo { kind: "bm25".to_owned(), ..ModelInfo::default() }
    }

    /// It has no weights.
    fn learned(&self, _: MentionSource) -> Result<Learned> {
        Ok(Learned::default())
    }

    fn linker(&self, on: &Target, config: LinkConfig) -> Result<Box<dyn Linker>> {
        Ok(Box::new(Bm25Linker::new(on.kb.clone(), self, config).within(on.subset.clone())))
    }

    fn annotator(&self, _: &Target, _: RecogniseConfig) -> Result<Box<dyn Annotator>> {
        Err(bm25_detects_nothing())
    }

    fn uses_dictionary(&self) -> bool {
        false
    }
}
