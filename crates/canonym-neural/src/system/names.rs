//! The model of name encoder and tagger: the default system, and hybrid linking of given mentions.

use std::path::Path;
use std::sync::Arc;

use canonym_core::Result;
use canonym_core::eval::learned::Learned;
use canonym_core::kb::KnowledgeBase;
use canonym_core::link::lexical::LinkConfig;
use canonym_core::link::model::LexicalModel;
use canonym_core::link::recognise::RecogniseConfig;
use canonym_core::link::recognise::accept::AcceptModel;
use canonym_core::link::{Annotator, Linker};

use super::hybrid::HybridLinker;
use super::info::ModelInfo;
use super::lexical::{dictionary, join_recognition};
use super::linked::MentionSource;
use super::pipeline::Pipeline;
use super::{DEFAULT, DEFAULT_MODEL, LinkingModel, Target, encoding};
use crate::bundle::Bundle;
use crate::index::FlatIndex;
use crate::index::cache::{VectorCache, cache_folder};
use crate::models::rescnn::names::NameEncoder;
use crate::status;

/// Dictionary matches below this probability are not proposed to the pipeline.
const MIN_PROPOSED: f32 = 0.05;

/// A name encoder, optionally with a tagger.
#[derive(Debug, Clone)]
pub struct NameModel {
    /// Weights and settings.
    pub bundle: Arc<Bundle>,
    ranking: LexicalModel,
}

impl NameModel {
    /// A model of a bundle.
    ///
    /// # Errors
    /// If the lexical weights in the bundle are damaged.
    pub fn new(bundle: Arc<Bundle>) -> Result<NameModel> {
        Ok(NameModel { ranking: bundle.lexical()?, bundle })
    }

    /// The default model.
    ///
    /// # Errors
    /// Never, unless the package is damaged.
    pub fn embedded() -> Result<NameModel> {
        NameModel::new(Arc::new(Bundle::from_bytes(DEFAULT_MODEL, Path::new(DEFAULT))?))
    }

    fn hybrid(&self, on: &Target, config: LinkConfig) -> Result<HybridLinker> {
        let names = Arc::new(self.bundle.name_encoder()?);
        let index = name_vectors(&on.kb, &self.bundle, &names);
        Ok(HybridLinker::new(
            on.kb.clone(),
            names,
            Arc::new(index),
            self.ranking.clone(),
            self.bundle.manifest.fusion,
            config,
        )
        .within(on.subset.clone()))
    }

    /// The pipeline of tagger, dictionary and linker; `None` if the model has no tagger.
    ///
    /// # Errors
    /// If the bundle is damaged.
    pub fn pipeline(&self, on: &Target, config: RecogniseConfig) -> Result<Option<Pipeline>> {
        let (Some(tagger), Some(manifest)) = (self.bundle.typed_tagger()?, &self.bundle.manifest.tagger) else {
            return Ok(None);
        };
        let linker = self.hybrid(on, LinkConfig { top_k: config.top_k, min_score: 0.0 })?;
        let proposed = RecogniseConfig { min_score: Some(MIN_PROPOSED), ..config };
        let dictionary = dictionary(on, AcceptModel::embedded(), proposed).correcting_spelling();
        Ok(Some(Pipeline::new(on.kb.clone(), Arc::new(tagger), dictionary, linker, manifest.decision, config)))
    }
}

impl LinkingModel for NameModel {
    fn info(&self) -> ModelInfo {
        ModelInfo::of_file(&*self.bundle)
    }

    fn learned(&self, mentions: MentionSource) -> Result<Learned> {
        let mut all = Learned::default();
        all.join_whole("bundle", self.bundle.learned.as_ref());
        if mentions == MentionSource::Detect {
            join_recognition(&mut all)?;
        }
        Ok(all)
    }

    /// Links by lexical and dense similarity; mentions in text also by the mention prior, if the model has one.
    fn linker(&self, on: &Target, config: LinkConfig) -> Result<Box<dyn Linker>> {
        let prior = self.bundle.typed_tagger()?.map(|tagger| tagger.prior.on(&on.kb)).unwrap_or_default();
        Ok(Box::new(self.hybrid(on, config)?.with_prior(prior.within(on.subset.as_deref()))))
    }

    /// The pipeline. Without a tagger, or if the knowledge base has none of its entity types, the dictionary detects mentions alone.
    fn annotator(&self, on: &Target, config: RecogniseConfig) -> Result<Box<dyn Annotator>> {
        match self.pipeline(on, config)? {
            Some(pipeline) if !pipeline.types().is_empty() => return Ok(Box::new(pipeline)),
            Some(_) => {}
            None => status::say(
                "mentions are detected and linked by string similarity: this model has no tagger, and its embeddings rank only given mentions",
            ),
        }
        Ok(Box::new(dictionary(on, AcceptModel::embedded(), config)))
    }
}

/// Index over the embeddings of the forms of `kb`, which are cached.
pub(super) fn name_vectors(kb: &KnowledgeBase, bundle: &Bundle, names: &NameEncoder) -> FlatIndex {
    let cache = VectorCache { folder: cache_folder(), model: bundle.fingerprint };
    let sample = |n_names: usize| {
        let forms: Vec<&str> = (0..n_names).map(|form| kb.forms().get(form)).collect();
        names.encode(&forms);
    };
    let _told = encoding::tell(kb, &cache, kb.n_forms(), sample);
    cache.index(kb, names, &mut |error| tracing::warn!("cannot cache the name embeddings: {error}"))
}
