//! Systems that detect and link mentions, built from a model, the dictionary and a knowledge base.
//!
//! A kind of model is a type that implements [`LinkingModel`], with a row in `KINDS` if it is stored in bundles.

mod bridge;
pub mod concept_rows;
pub mod consistency;
pub mod detect_then_link;
pub mod dual_encoder;
mod encoding;
pub mod expect;
pub mod generative;
pub mod hybrid;
pub mod info;
pub mod lexical;
pub mod linked;
pub mod multitask;
pub mod name_scorer;
pub mod names;
pub mod pipeline;
pub mod rerank;
pub mod terminology;

use std::any::Any;
use std::fmt::Debug;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use canonym_core::error::Context;
use canonym_core::eval::learned::Learned;
use canonym_core::index::bm25::Bm25Config;
use canonym_core::kb::KnowledgeBase;
use canonym_core::kb::subset::{KbView, Subset};
use canonym_core::link::explain::Explanation;
use canonym_core::link::lexical::{LinkConfig, may_name, where_named};
use canonym_core::link::recognise::RecogniseConfig;
use canonym_core::link::recognise::senses::SenseInventory;
use canonym_core::link::short_list::ShortList;
use canonym_core::link::system::no_leaky_tokenisation;
use canonym_core::link::{Annotator, Candidate, LeakyAnnotator, Link, LinkInput, Linker};
use canonym_core::{Error, Result};

use crate::bundle::cross_encoder::{self, CrossBundle};
use crate::bundle::dual_encoder::DualBundle;
use crate::bundle::generative::GenerativeBundle;
use crate::bundle::{self, MultitaskBundle, NameEncoderBundle};
use crate::index::cache::cache_folder;
use crate::index::stored::NameIndex;
use crate::status::Stage;
use bridge::bridge;
use dual_encoder::model::DualModel;
use generative::GenerativeModel;
use info::ModelInfo;
use lexical::Lexical;
use linked::MentionSource;
use multitask::MultitaskModel;
use names::PipelineModel;

/// The default model; `canonym-default/assets/README.md` describes how it was trained.
pub const DEFAULT_MODEL: &[u8] = canonym_default::MODEL;

/// The name of the embedded model.
pub const DEFAULT: &str = "default";

/// A kind of model that a [`linked::System`] can be built from.
pub trait LinkingModel: Any + Debug + Send + Sync {
    /// Kind, size, weights and model card.
    fn info(&self) -> ModelInfo;

    /// Hash of its weights and settings; `None` if it has none of its own.
    fn fingerprint(&self) -> Option<u128> {
        self.info().fingerprint
    }

    /// Training documents of all parts that are used when mentions come from `mentions`.
    fn learned(&self, mentions: MentionSource) -> Result<Learned>;

    /// A linker of names and given mentions.
    fn linker(&self, on: &Target, config: LinkConfig) -> Result<Box<dyn Linker>>;

    /// Detects mentions and links them.
    ///
    /// # Errors
    /// [`Error::Usage`] if the model links only given mentions.
    fn annotator(&self, on: &Target, config: RecogniseConfig) -> Result<Box<dyn Annotator>>;

    /// An annotator whose tokenisation sees gold mention boundaries.
    ///
    /// # Errors
    /// [`Error::Usage`] unless the model was published with that evaluation.
    fn leaky_annotator(&self, _on: &Target, _config: RecogniseConfig) -> Result<Box<dyn LeakyAnnotator>> {
        Err(no_leaky_tokenisation())
    }

    /// The files in the cache folder with the embeddings of names of `kb` that the model reads, whether they exist or not.
    fn embedding_files(&self, _kb: &KnowledgeBase) -> Vec<PathBuf> {
        Vec::new()
    }

    /// Whether the dictionary, and with it the abbreviations of the user, takes part in the detection of mentions.
    fn uses_dictionary(&self) -> bool {
        true
    }

    /// Whether given mentions are linked by their context, not only by their names.
    fn reads_context(&self) -> bool {
        false
    }
}

/// The concepts that a model links to, with additions of the user.
#[derive(Debug, Clone)]
pub struct Target {
    /// The knowledge base.
    pub kb: Arc<KnowledgeBase>,
    /// Concept filter; `None` for all concepts.
    pub subset: Option<Arc<Subset>>,
    /// Abbreviations and senses of the user, in addition to the built-in ones.
    pub senses: Option<Arc<SenseInventory>>,
    /// Index of the names.
    pub index: IndexChoice,
}

/// Where the index of the names of a knowledge base comes from.
#[derive(Debug, Clone, Default)]
pub enum IndexChoice {
    /// The file beside that of the knowledge base, if there is one.
    #[default]
    Beside,
    /// This one.
    Opened(Arc<NameIndex>),
    /// There is none.
    Without,
}

impl Target {
    /// All concepts of a knowledge base, or those of a filter.
    pub fn new(kb: &Arc<KnowledgeBase>, subset: Option<Arc<Subset>>) -> Target {
        Target { kb: kb.clone(), subset, senses: None, index: IndexChoice::default() }
    }
}

/// Which model links.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Model {
    /// The embedded model: tagger, dictionary and hybrid linker.
    #[default]
    Default,
    /// Dictionary and lexical linker, without a neural model.
    Lexical,
    /// BM25 over names, for given mentions.
    Bm25,
    /// A bundle, or the run folder of a training.
    Path(PathBuf),
}

impl Model {
    /// Parses a model name of the command line: `default`, `lexical`, `bm25`, or a path.
    pub fn named(name: &str) -> Model {
        match name {
            DEFAULT => Model::Default,
            "lexical" => Model::Lexical,
            "bm25" => Model::Bm25,
            path => Model::Path(PathBuf::from(path)),
        }
    }
}

/// The models that a system is built from.
#[derive(Debug, Clone)]
pub struct Models {
    /// Links, and detects mentions if it can.
    pub linking: Arc<dyn LinkingModel>,
    /// Reranks the candidates of given mentions.
    pub rerank: Option<Arc<CrossBundle>>,
    /// Abbreviations and senses of the user, in addition to the built-in ones.
    pub senses: Option<Arc<SenseInventory>>,
    /// Index of the names of the knowledge base.
    pub index: IndexChoice,
}

impl Models {
    /// One model alone.
    pub fn of(linking: impl LinkingModel) -> Models {
        Models { linking: Arc::new(linking), rerank: None, senses: None, index: IndexChoice::default() }
    }

    /// Opens the models of a system.
    ///
    /// # Errors
    /// If the path does not contain a readable model.
    pub fn open(model: &Model) -> Result<Models> {
        let stage = Stage::start();
        let models = match model {
            Model::Default => Models::of(PipelineModel::embedded()?),
            Model::Lexical => Models::of(Lexical::embedded()),
            Model::Bm25 => Models::of(Bm25Config::default()),
            Model::Path(path) if is_bundle(path) => of_bundle(path)?,
            Model::Path(path) => Models::of(Lexical::open(path)?),
        };
        stage.done(format_args!("opened the model {}", models.linking.info().kind));
        Ok(models)
    }

    /// Opens the models of a name or path.
    ///
    /// # Errors
    /// Those of [`Models::open`].
    pub fn named(name: &str) -> Result<Models> {
        Models::open(&Model::named(name))
    }

    /// The model, if it is one of name encoder and tagger.
    pub fn names(&self) -> Option<&PipelineModel> {
        let model: &dyn Any = &*self.linking;
        model.downcast_ref()
    }

    /// Opens the index at `path`, or the one beside the file of `kb`, if there is one.
    ///
    /// # Errors
    /// If the index that is given cannot be opened or belongs to another knowledge base or model, or the model uses none.
    pub fn use_index(&mut self, path: Option<&Path>, kb: &KnowledgeBase) -> Result<()> {
        let stage = Stage::start();
        let opened = match (self.names(), path) {
            (Some(model), None) => model.found_index(kb),
            (Some(model), Some(path)) => {
                let index = NameIndex::open(path, cache_folder().as_deref()).context("cannot open the index")?;
                model.check_index(&index, kb)?;
                Some(Arc::new(index))
            }
            (None, None) => None,
            (None, Some(_)) => {
                let hint = "omit `--index`, or use `--model default`";
                return Err(Error::usage("this model does not search names by embedding", hint));
            }
        };
        if let Some(index) = &opened {
            stage.done(format_args!("opened the index {}", index.container().path().display()));
        }
        self.index = opened.map_or(IndexChoice::Without, IndexChoice::Opened);
        Ok(())
    }

    /// Kind and hash of all models and of the index, such as `pipeline 6f…`.
    pub fn fingerprint(&self) -> String {
        let shown = |fingerprint: u128| format!(" {fingerprint:032x}");
        let linking = self.linking.fingerprint().map(shown).unwrap_or_default();
        let rerank =
            self.rerank.as_ref().map(|bundle| format!(" + {}{}", cross_encoder::SYSTEM, shown(bundle.fingerprint)));
        let index = match &self.index {
            IndexChoice::Opened(index) => format!(" + index{}", shown(index.container().fingerprint())),
            IndexChoice::Beside | IndexChoice::Without => String::new(),
        };
        format!("{}{linking}{}{index}", self.linking.info().kind, rerank.unwrap_or_default())
    }

    /// Training documents of all parts that are used when mentions come from `mentions`.
    pub fn learned(&self, mentions: MentionSource) -> Result<Learned> {
        let mut all = Learned::default();
        if let Some(bundle) = &self.rerank {
            all.join(cross_encoder::SYSTEM, bundle.learned.as_ref());
        }
        all.join("", Some(&self.linking.learned(mentions)?));
        Ok(all)
    }
}

/// A model of any kind that is stored in bundles.
enum AnyModel {
    Linking(Arc<dyn LinkingModel>),
    Reranking(Box<CrossBundle>),
}

type Open = fn(&[u8], &Path) -> Result<AnyModel>;

/// The kinds of models in bundles, by the field `system` of their settings.
const KINDS: &[(&str, Open)] = &[
    (bundle::dual_encoder::SYSTEM, |bytes, path| {
        let model = DualModel::new(Arc::new(DualBundle::from_bytes(bytes, path)?));
        Ok(AnyModel::Linking(Arc::new(model)))
    }),
    (bundle::generative::SYSTEM, |bytes, path| {
        let model = GenerativeModel(Arc::new(GenerativeBundle::from_bytes(bytes, path)?));
        Ok(AnyModel::Linking(Arc::new(model)))
    }),
    (bundle::multitask::SYSTEM, |bytes, path| {
        let model = MultitaskModel(Arc::new(MultitaskBundle::from_bytes(bytes, path)?));
        Ok(AnyModel::Linking(Arc::new(model)))
    }),
    (cross_encoder::SYSTEM, |bytes, path| Ok(AnyModel::Reranking(Box::new(CrossBundle::from_bytes(bytes, path)?)))),
];

impl AnyModel {
    /// Deserialises a bundle; `path` is used in error messages.
    fn from_bytes(bytes: &[u8], path: &Path) -> Result<AnyModel> {
        let Some(system) = bundle::system_in(bytes, path)? else {
            // Name encoders have no such field.
            return Ok(AnyModel::Linking(Arc::new(PipelineModel::new(Arc::new(NameEncoderBundle::from_bytes(
                bytes, path,
            )?))?)));
        };
        let Some((_, open)) = KINDS.iter().find(|(name, _)| *name == system) else {
            let path = path.display();
            let message = format!("{path} is a model of the system `{system}`, which this version does not know");
            return Err(Error::unsupported(message).with_hint("use a newer version of canonym"));
        };
        open(bytes, path)
    }
}

fn is_bundle(path: &Path) -> bool {
    path.is_file() || path.join(bundle::FILE).exists()
}

fn of_bundle(path: &Path) -> Result<Models> {
    let open = || {
        let (file, bytes) = bundle::read_file(path)?;
        match AnyModel::from_bytes(&bytes, &file)? {
            AnyModel::Linking(linking) => {
                Ok(Models { linking, rerank: None, senses: None, index: IndexChoice::default() })
            }
            AnyModel::Reranking(_) => {
                let error = Error::artifact(&file, "it is a model of the system `cross-encoder`, which only reranks");
                Err(error.with_hint("use it as reranker (option `--rerank`) of a model that links (option `--model`)"))
            }
        }
    };
    open().with_context(|| format!("cannot open the model {}", path.display()))
}

/// Factor from the prior of the most common sense of a short form to its probability in a list of names.
const USUAL_TRUST: f32 = 0.9;

/// Links names and given mentions. Names that cannot name a concept, such as `n/a`, and names that only look like one stay unlinked. Short
/// forms that the terminology lacks are linked to what they usually mean.
pub struct NameLinker {
    linker: Box<dyn Linker>,
    subset: Option<Arc<Subset>>,
    config: LinkConfig,
    short_list: Option<ShortList>,
}

impl NameLinker {
    /// Builds the linker of `models` on `kb`, without reranking.
    ///
    /// # Errors
    /// If the model does not fit the knowledge base.
    pub fn new(
        kb: &Arc<KnowledgeBase>,
        models: &Models,
        config: LinkConfig,
        subset: Option<Arc<Subset>>,
    ) -> Result<NameLinker> {
        let on = Target { index: models.index.clone(), ..Target::new(kb, subset.clone()) };
        let stage = Stage::start();
        let linker = models.linking.linker(&on, config)?;
        stage.done("built the linker");
        let short_list = ShortList::of(KbView { kb, subset: subset.as_deref() });
        Ok(NameLinker { linker, subset, config, short_list })
    }

    /// Links names without context, in order.
    ///
    /// # Errors
    /// If the model fails on one of the names.
    pub fn link_names<T: AsRef<str>>(&self, names: &[T]) -> Result<Vec<Link>> {
        Ok(self.worded(names)?.into_iter().map(|(_, link)| link).collect())
    }

    /// Links names; each link comes with the name as it was looked up.
    fn worded<T: AsRef<str>>(&self, names: &[T]) -> Result<Vec<(String, Link)>> {
        let mut links = where_named(self.kb(), names, |names| self.linker.link_names(names))?;
        let view = KbView { kb: self.kb(), subset: self.subset.as_deref() };
        let named = names.iter().zip(&mut links).filter(|(name, _)| may_name(view.kb, name.as_ref()));
        for (name, (wording, link)) in named {
            if let Some(list) = &self.short_list {
                list.correct(view.kb, wording, self.config.top_k, link);
            }
            let search = |name: &str| self.linker.link_names(&[name]).into_iter().flatten().next().unwrap_or_default();
            bridge(view, wording, self.config.top_k, link, search);
            link.nil |= link.candidates.first().is_none_or(|first| first.p_link < self.config.min_score);
            let sure = link.candidates.first().map_or(0.0, |first| first.p_link);
            let usual = SenseInventory::embedded().usual(view, name.as_ref());
            if let Some((concept, name, share)) = usual.filter(|(.., share)| USUAL_TRUST * share > sure) {
                link.candidates.retain(|candidate| candidate.concept != concept);
                link.candidates.iter_mut().for_each(|candidate| candidate.p_link *= 1.0 - share);
                link.candidates.insert(0, Candidate { concept, name: Some(name), p_link: USUAL_TRUST * share });
                link.candidates.truncate(self.config.top_k.max(1));
                link.nil = USUAL_TRUST * share < self.config.min_score;
            }
        }
        Ok(links)
    }

    /// Like [`NameLinker::link_names`], with explanations. Slower.
    ///
    /// # Errors
    /// If the model fails on one of the names.
    pub fn explain_names<T: AsRef<str>>(&self, names: &[T]) -> Result<Vec<(Link, Explanation)>> {
        let (wordings, links): (Vec<String>, Vec<Link>) = self.worded(names)?.into_iter().unzip();
        let wordings: Vec<&str> = wordings.iter().map(String::as_str).collect();
        let kb = self.kb();
        // What was found in another way than by the model has no features.
        let explain = |(link, (name, (_, explanation))): (Link, (&&str, (Link, Explanation)))| {
            let id = |candidate: &Candidate| kb.id(candidate.concept);
            let same = |candidate: &Candidate| explanation.candidates.iter().find(|one| one.id == id(candidate));
            let is_in_order =
                link.candidates.iter().zip(&explanation.candidates).all(|(one, other)| id(one) == other.id);
            let candidates = link.candidates.iter().filter_map(same).cloned().collect();
            let explanation = match is_in_order && !link.candidates.is_empty() {
                true => explanation,
                false => Explanation { compared: (*name).to_owned(), candidates, ..Explanation::default() },
            };
            (link, explanation)
        };
        let explained = wordings.iter().zip(self.linker.explain_names(&wordings)?);
        Ok(links.into_iter().zip(explained).map(explain).collect())
    }
}

impl Linker for NameLinker {
    fn kb(&self) -> &KnowledgeBase {
        self.linker.kb()
    }

    fn link(&self, inputs: &[LinkInput<'_>]) -> Result<Vec<Vec<Link>>> {
        self.linker.link(inputs)
    }

    fn explain(&self, inputs: &[LinkInput<'_>]) -> Result<Vec<Vec<(Link, Explanation)>>> {
        self.linker.explain(inputs)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::bundle::names::tests as names;
    use crate::tensor::parameters::{Parameters, Precision};

    #[test]
    fn model_of_an_unknown_kind_asks_for_a_newer_version() {
        let settings = |settings: &str| BTreeMap::from([("settings".to_owned(), settings.to_owned())]);
        let newer = settings(r#"{"format": 9, "system": "oracle"}"#);
        let newer = Parameters::default().to_bytes(Precision::Single, &newer).unwrap();
        let error = AnyModel::from_bytes(&newer, Path::new("new.safetensors")).err().unwrap();
        assert!(matches!(error, Error::Unsupported { .. }), "{error:?}");
        let message = "new.safetensors is a model of the system `oracle`, which this version does not know";
        assert_eq!(error.to_string(), message);
        assert_eq!(error.hint(), Some("use a newer version of canonym"));
        // Name encoders are those without the field.
        let bytes = names::bundle().to_bytes(Precision::Single).unwrap();
        assert!(matches!(AnyModel::from_bytes(&bytes, Path::new("names")), Ok(AnyModel::Linking(_))));
    }
}
