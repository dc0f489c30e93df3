//! The models of a system, opened by name, and the linkers built from them on a knowledge base.

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rayon::prelude::*;

use crate::bundle::cross_encoder::{self, CrossBundle};
use crate::bundle::dual_encoder::DualBundle;
use crate::bundle::{self, AnyBundle, Bundle};
use crate::index::FlatIndex;
use crate::index::cache::{VectorCache, cache_folder};
use crate::models::mention_prior::KbMentionPrior;
use crate::models::rescnn::names::NameEncoder;
use crate::system::concept_rows::ConceptRows;
use crate::system::dual_encoder::{DualConfig, DualLinker};
use crate::system::hybrid::{HybridLinker, explain_prior};
use crate::system::name_scorer::{NameEvidence, NameScorer};
use crate::system::pipeline::{Pipeline, PipelineConfig};
use crate::tensor::matrix::Matrix;
use canonym_core::error::Context;
use canonym_core::eval::learned::Learned;
use canonym_core::index::bm25::Bm25Config;
use canonym_core::index::grams::GramScratch;
use canonym_core::kb::KnowledgeBase;
use canonym_core::kb::subset::Subset;
use canonym_core::link::bm25::Bm25Linker;
use canonym_core::link::explain::Explanation;
use canonym_core::link::lexical::{LexicalLinker, LinkConfig, may_name, where_named};
use canonym_core::link::model::{self, LexicalModel};
use canonym_core::link::recognise::accept::{self, AcceptModel};
use canonym_core::link::recognise::senses::SenseInventory;
use canonym_core::link::recognise::{DictionaryAnnotator, RecogniseConfig};
use canonym_core::link::{Link, LinkInput, Linker};

use super::encoding;
use super::linked::MentionSource;

/// The default model; `canonym-default/assets/README.md` describes how it was trained.
pub const DEFAULT_MODEL: &[u8] = canonym_default::MODEL;

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
    /// Weights of the lexical linker.
    pub ranking: LexicalModel,
    /// Accepts or rejects dictionary matches.
    pub recognition: AcceptModel,
    /// Name encoder for hybrid linking.
    pub dense: Option<Arc<Bundle>>,
    /// Dual encoder, which reads mentions in context.
    pub dual: Option<Arc<DualBundle>>,
    /// BM25 over names, in place of all other linkers.
    pub bm25: Option<Bm25Config>,
    /// Reranks the candidates of given mentions.
    pub rerank: Option<Arc<CrossBundle>>,
    /// Abbreviations and senses of the user, in addition to the built-in ones.
    pub senses: Option<Arc<SenseInventory>>,
    /// Mention detector for a model that detects none; the embedded model if `None`.
    pub finder: Option<Box<Models>>,
    /// The JSON that `ranking` was read from; it also records the training documents.
    pub ranking_json: Cow<'static, str>,
    /// The JSON that `recognition` was read from.
    pub recognition_json: Cow<'static, str>,
}

/// The name of the embedded model.
pub const DEFAULT: &str = "default";

/// Name of the lexical weights in the record of training documents.
pub const LEXICAL_PART: &str = "lexical weights";

/// Name of the recognition weights in the record of training documents.
pub const RECOGNITION_PART: &str = "recognition weights";

/// Training documents of the embedded lexical weights.
pub fn lexical_learned() -> canonym_core::Result<Option<Learned>> {
    Learned::of_json(model::EMBEDDED)
}

impl Models {
    /// The built-in lexical models.
    pub fn built_in() -> Models {
        Models {
            ranking: LexicalModel::embedded(),
            recognition: AcceptModel::embedded(),
            dense: None,
            dual: None,
            bm25: None,
            rerank: None,
            senses: None,
            finder: None,
            ranking_json: Cow::Borrowed(model::EMBEDDED),
            recognition_json: Cow::Borrowed(accept::EMBEDDED),
        }
    }

    /// Training documents of all parts that are used when mentions come from `mentions`.
    pub fn learned(&self, mentions: MentionSource) -> canonym_core::Result<Learned> {
        let mut all = Learned::default();
        let detect = mentions == MentionSource::Detect;
        if let Some(bundle) = &self.rerank {
            all.join(cross_encoder::SYSTEM, bundle.learned.as_ref());
        }
        if let Some(bundle) = &self.dual {
            all.join_whole(bundle::dual_encoder::SYSTEM, bundle.learned.as_ref());
            if detect && bundle.manifest.model.search.is_none() {
                all.join("mentions", Some(&self.finder()?.learned(mentions)?));
            }
            return Ok(all);
        }
        match &self.dense {
            Some(bundle) => all.join_whole("bundle", bundle.learned.as_ref()),
            None if self.bm25.is_none() => all.join(LEXICAL_PART, Learned::of_json(&self.ranking_json)?.as_ref()),
            None => {}
        }
        if detect {
            all.join(RECOGNITION_PART, Learned::of_json(&self.recognition_json)?.as_ref());
        }
        Ok(all)
    }

    /// The models of the mention detector.
    pub fn finder(&self) -> canonym_core::Result<Models> {
        match &self.finder {
            Some(finder) => Ok(Models::clone(finder)),
            None => models(DEFAULT),
        }
    }

    /// The built-in models with the name encoder of a bundle.
    pub fn of_bundle(bundle: Arc<Bundle>) -> canonym_core::Result<Models> {
        Ok(Models { ranking: bundle.lexical()?, dense: Some(bundle), ..Models::built_in() })
    }

    /// The dictionary annotator.
    pub fn dictionary(&self, kb: &Arc<KnowledgeBase>, config: RecogniseConfig) -> DictionaryAnnotator {
        let dictionary = DictionaryAnnotator::new(kb.clone(), self.recognition.clone(), config);
        match &self.senses {
            Some(senses) => dictionary.with_senses(senses.clone()),
            None => dictionary,
        }
    }

    /// The built-in models with a dual encoder.
    pub fn of_dual(bundle: Arc<DualBundle>) -> canonym_core::Result<Models> {
        Ok(Models { ranking: bundle.lexical()?, dual: Some(bundle), ..Models::built_in() })
    }
}

/// Opens the models of a name or path; models that a run folder lacks are the built-in ones.
pub fn models(model: &str) -> canonym_core::Result<Models> {
    Models::open(&Model::named(model))
}

impl Models {
    /// Opens the models of a system.
    ///
    /// # Errors
    /// If the path does not contain a readable model.
    pub fn open(model: &Model) -> canonym_core::Result<Models> {
        match model {
            Model::Default => Models::of_bundle(Arc::new(Bundle::from_bytes(DEFAULT_MODEL, Path::new(DEFAULT))?)),
            Model::Lexical => Ok(Models::built_in()),
            Model::Bm25 => Ok(Models { bm25: Some(Bm25Config::default()), ..Models::built_in() }),
            Model::Path(path) => of_path(path),
        }
    }
}

/// The models of a bundle or of a run folder of `canonym train`.
fn of_path(folder: &Path) -> canonym_core::Result<Models> {
    let model = folder.display();
    let mut models = Models::built_in();
    if folder.is_file() || folder.join(bundle::FILE).exists() {
        return of_file(folder).with_context(|| format!("cannot open the model {model}"));
    }
    if !folder.is_dir() {
        let error = canonym_core::Error::invalid(format!("no such model: `{model}`"));
        return Err(error.with_hint("use `default`, `lexical`, `bm25`, or a model trained with `canonym train`"));
    }
    if !folder.join("config.toml").exists() {
        let error = canonym_core::Error::invalid(format!("{model} does not contain a complete model"));
        return Err(error.with_hint("training has not finished; run `canonym train` again to resume"));
    }
    let read = |name: &str| {
        let path = folder.join(name);
        std::fs::read_to_string(&path).map_err(|error| canonym_core::Error::io("read", &path, error))
    };
    let context = || format!("cannot open the model {model}");
    let config: toml::Table = toml::from_str(&read("config.toml")?).with_context(context)?;
    let json = read("model.json")?;
    match config.get("system").and_then(toml::Value::as_str) {
        Some("lexical") => {
            models.ranking = LexicalModel::from_json(&json).with_context(context)?;
            models.ranking_json = Cow::Owned(json);
        }
        Some("recognition") => {
            models.recognition = AcceptModel::from_json(&json).with_context(context)?;
            models.recognition_json = Cow::Owned(json);
        }
        other => {
            let message = format!("{model} contains a model of an unknown system `{}`", other.unwrap_or_default());
            return Err(canonym_core::Error::invalid(message).with_hint("it may require a newer version of canonym"));
        }
    }
    Ok(models)
}

/// The models of a bundle of any kind.
fn of_file(path: &Path) -> canonym_core::Result<Models> {
    let (file, bytes) = bundle::read_file(path)?;
    match AnyBundle::from_bytes(&bytes, &file)? {
        AnyBundle::DualEncoder(bundle) => Models::of_dual(Arc::new(*bundle)),
        AnyBundle::Names(bundle) => Models::of_bundle(Arc::new(*bundle)),
        AnyBundle::CrossEncoder(_) => {
            let error =
                canonym_core::Error::artifact(&file, "it is a model of the system `cross-encoder`, which only reranks");
            Err(error.with_hint("use it with `--rerank`, and a model that links with `--model`"))
        }
    }
}

/// Links names and given mentions.
#[derive(Debug)]
pub enum NameLinker {
    /// Lexical similarity.
    Lexical(LexicalLinker),
    /// Lexical and dense similarity; for mentions in text also the mention prior, if the model has one.
    Hybrid(Box<HybridLinker>, KbMentionPrior, LinkConfig),
    /// Mentions in context, by a dual encoder.
    Dual(Box<DualLinker>),
    /// BM25.
    Bm25(Box<Bm25Linker>),
}

impl NameLinker {
    /// Builds the linker of `models` on `kb`.
    pub fn new(
        kb: &Arc<KnowledgeBase>,
        models: &Models,
        config: LinkConfig,
        subset: Option<Arc<Subset>>,
    ) -> canonym_core::Result<NameLinker> {
        if let Some(bundle) = &models.dual {
            let config = DualConfig { link: config, min_span: None, nested: false };
            return Ok(NameLinker::Dual(Box::new(dual_linker(kb, bundle, config, subset)?)));
        }
        if let Some(ranking) = &models.bm25 {
            return Ok(NameLinker::Bm25(Box::new(Bm25Linker::new(kb.clone(), ranking, config).within(subset))));
        }
        let Some(bundle) = &models.dense else {
            let linker = LexicalLinker::new(kb.clone(), models.ranking.clone(), config);
            return Ok(NameLinker::Lexical(linker.within(subset)));
        };
        let usages = bundle.typed_tagger()?.map(|tagger| tagger.usages.on(kb)).unwrap_or_default();
        let usages = usages.within(subset.as_deref());
        Ok(NameLinker::Hybrid(Box::new(hybrid(kb, models, bundle, config, subset)?), usages, config))
    }

    /// Links names without context, in order.
    pub fn link_names<T: AsRef<str> + Sync>(&self, names: &[T]) -> canonym_core::Result<Vec<Link>> {
        where_named(self.kb(), names, |names| match self {
            NameLinker::Lexical(linker) => Ok(linker.link_names(names)),
            NameLinker::Hybrid(linker, ..) => Ok(linker.link_names(names)),
            NameLinker::Bm25(linker) => Ok(linker.link_names(names)),
            NameLinker::Dual(linker) => linker.link_names(names),
        })
    }

    fn kb(&self) -> &KnowledgeBase {
        match self {
            NameLinker::Lexical(linker) => linker.kb(),
            NameLinker::Hybrid(linker, ..) => linker.kb(),
            NameLinker::Bm25(linker) => linker.kb(),
            NameLinker::Dual(linker) => linker.kb(),
        }
    }

    /// Links one mention by its name, as [`Linker::link`] does, and explains the result. A model that uses context sees only the name.
    pub fn explain_mention(&self, name: &str, scratch: &mut GramScratch) -> canonym_core::Result<(Link, Explanation)> {
        let (mut link, mut explanation) = self.explain_text(name, scratch)?;
        if let NameLinker::Hybrid(linker, usages, _) = self {
            usages.weigh(name, &mut link.candidates);
            explain_prior(linker.kb(), name, &link, &mut explanation);
        }
        Ok((link, explanation))
    }

    /// Links one name as [`NameLinker::link_names`] does, and explains the result.
    pub fn explain_name(&self, name: &str, scratch: &mut GramScratch) -> canonym_core::Result<(Link, Explanation)> {
        if !may_name(self.kb(), name) {
            let link = Link { candidates: Vec::new(), nil: true };
            return Ok((link, Explanation { compared: name.to_owned(), ..Explanation::default() }));
        }
        self.explain_text(name, scratch)
    }

    fn explain_text(&self, name: &str, scratch: &mut GramScratch) -> canonym_core::Result<(Link, Explanation)> {
        Ok(match self {
            NameLinker::Lexical(linker) => linker.explain_name(name, scratch),
            NameLinker::Hybrid(linker, ..) => linker.explain_name(name),
            NameLinker::Dual(linker) => linker.explain_name(name)?,
            NameLinker::Bm25(linker) => linker.explain_name(name),
        })
    }
}

/// The hybrid linker of `bundle` on `kb`.
fn hybrid(
    kb: &Arc<KnowledgeBase>,
    models: &Models,
    bundle: &Bundle,
    config: LinkConfig,
    subset: Option<Arc<Subset>>,
) -> canonym_core::Result<HybridLinker> {
    let names = Arc::new(bundle.name_encoder()?);
    let index = name_vectors(kb, bundle, &names);
    let weights = (models.ranking.clone(), bundle.manifest.fusion);
    Ok(HybridLinker::new(kb.clone(), (names, Arc::new(index)), weights, config).within(subset))
}

/// The linker of a dual encoder on `kb`.
pub fn dual_linker(
    kb: &Arc<KnowledgeBase>,
    bundle: &DualBundle,
    config: DualConfig,
    subset: Option<Arc<Subset>>,
) -> canonym_core::Result<DualLinker> {
    let voices = name_evidence(kb, bundle, subset.as_deref())?;
    Ok(DualLinker::new(kb.clone(), bundle, dual_vectors(kb, bundle)?, config, subset)?.with_name_evidence(voices))
}

/// Name scorer and mention prior of a dual encoder on `kb`; name embeddings are cached.
pub fn name_evidence(
    kb: &KnowledgeBase,
    bundle: &DualBundle,
    subset: Option<&Subset>,
) -> canonym_core::Result<Arc<NameEvidence>> {
    let of_names = |voice: Bundle| -> canonym_core::Result<NameScorer> {
        let names = voice.name_encoder()?;
        let index = name_vectors(kb, &voice, &names);
        Ok(NameScorer::new(names, index))
    };
    let names = bundle.voice()?.map(of_names).transpose()?;
    Ok(Arc::new(NameEvidence { names, usages: bundle.usages()?.on(kb).within(subset) }))
}

/// Index over the embeddings of the forms of `kb`, which are cached.
fn name_vectors(kb: &KnowledgeBase, bundle: &Bundle, names: &NameEncoder) -> FlatIndex {
    let cache = VectorCache { folder: cache_folder(), model: bundle.fingerprint };
    let sample = |n_names: usize| {
        let forms: Vec<&str> = (0..n_names).map(|form| kb.forms().get(form)).collect();
        names.encode(&forms);
    };
    let _told = encoding::tell(kb, &cache, kb.n_forms(), sample);
    cache.index(kb, names, &mut |error| tracing::warn!("cannot cache the name embeddings: {error}"))
}

/// Concept embeddings of `kb` by a dual encoder, cached for all models with the same name encoder.
pub fn dual_vectors(kb: &KnowledgeBase, bundle: &DualBundle) -> canonym_core::Result<Matrix> {
    let cache = VectorCache { folder: cache_folder(), model: bundle.names_fingerprint() };
    let kind = bundle.manifest.concepts;
    let rows = ConceptRows::of(kb, kind);
    let (encoder, windower) = (bundle.encoder()?, bundle.windower()?);
    let texts = || rows.texts(kb, kind, &windower);
    let encode = || encoder.encode_names(&texts());
    let sample = |n_names: usize| drop(encoder.encode_names(&texts()[..n_names]));
    let _told = encoding::tell(kb, &cache, rows.concepts.len(), sample);
    let size = (rows.concepts.len(), encoder.dim());
    cache.vectors(kb, size, encode, &mut |error| tracing::warn!("cannot cache the name embeddings: {error}"))
}

/// The pipeline of tagger, dictionary and linker; `None` if the models have no tagger.
pub fn pipeline(
    kb: &Arc<KnowledgeBase>,
    models: &Models,
    config: PipelineConfig,
    subset: Option<Arc<Subset>>,
) -> canonym_core::Result<Option<Pipeline>> {
    let Some(bundle) = &models.dense else { return Ok(None) };
    let (Some(tagger), Some(manifest)) = (bundle.typed_tagger()?, &bundle.manifest.tagger) else { return Ok(None) };
    let linker = hybrid(kb, models, bundle, LinkConfig { top_k: config.top_k, min_score: 0.0 }, subset.clone())?;
    let recognise = RecogniseConfig { top_k: config.top_k, min_score: Some(MIN_PROPOSED), nested: config.nested };
    let dictionary = models.dictionary(kb, recognise).within(subset).correcting_spelling();
    let decide = (manifest.decision, config);
    Ok(Some(Pipeline::new(kb.clone(), Arc::new(tagger), dictionary, linker, decide)))
}

/// Dictionary matches below this probability are not proposed to the pipeline.
const MIN_PROPOSED: f32 = 0.05;

impl Linker for NameLinker {
    fn kb(&self) -> &KnowledgeBase {
        NameLinker::kb(self)
    }

    fn link(&self, inputs: &[LinkInput<'_>]) -> canonym_core::Result<Vec<Vec<Link>>> {
        match self {
            NameLinker::Lexical(linker) => linker.link(inputs),
            NameLinker::Dual(linker) => linker.link(inputs),
            NameLinker::Bm25(linker) => linker.link(inputs),
            NameLinker::Hybrid(linker, usages, config) => {
                let weigh = |marked: &LinkInput<'_>| {
                    let names = marked.names();
                    let mut links = linker.link_names(&names);
                    for (name, link) in names.iter().zip(&mut links) {
                        usages.weigh(name, &mut link.candidates);
                        link.candidates.truncate(config.top_k.max(1));
                        link.nil = link.candidates.first().is_none_or(|best| best.p_link < config.min_score);
                    }
                    links
                };
                Ok(inputs.iter().map(weigh).collect())
            }
        }
    }

    fn explain(&self, inputs: &[LinkInput<'_>]) -> canonym_core::Result<Vec<Vec<(Link, Explanation)>>> {
        if let NameLinker::Dual(linker) = self {
            return Linker::explain(linker.as_ref(), inputs);
        }
        let explain = |scratch: &mut GramScratch, (marked, links): (&LinkInput<'_>, Vec<Link>)| {
            let reasons = |(name, link): (String, Link)| Ok((link, self.explain_mention(&name, scratch)?.1));
            marked.names().into_iter().zip(links).map(reasons).collect()
        };
        inputs.par_iter().zip(self.link(inputs)?).map_init(GramScratch::default, explain).collect()
    }
}
