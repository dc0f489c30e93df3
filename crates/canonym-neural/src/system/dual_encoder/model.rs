//! The dual encoder as a model of a system.

use std::path::PathBuf;
use std::sync::Arc;

use canonym_core::Result;
use canonym_core::eval::learned::Learned;
use canonym_core::kb::KnowledgeBase;
use canonym_core::kb::subset::Subset;
use canonym_core::link::lexical::LinkConfig;
use canonym_core::link::recognise::{Nested, RecogniseConfig};
use canonym_core::link::system::no_leaky_tokenisation;
use canonym_core::link::{Annotator, LeakyAnnotator, Linker};

use super::{DualConfig, DualLinker};
use crate::bundle::NameEncoderBundle;
use crate::bundle::dual_encoder::{DualBundle, SYSTEM};
use crate::index::cache::{VectorCache, cache_folder};
use crate::system::concept_rows::ConceptRows;
use crate::system::detect_then_link::DetectThenLink;
use crate::system::info::ModelInfo;
use crate::system::linked::MentionSource;
use crate::system::name_scorer::{NameEvidence, NameScorer};
use crate::system::names::{PipelineModel, name_vectors};
use crate::system::{LinkingModel, Target, encoding};
use crate::tensor::matrix::Matrix;

/// A dual encoder, with a mention detector if it detects none itself.
#[derive(Debug, Clone)]
pub struct DualModel {
    bundle: Arc<DualBundle>,
    /// The default model if `None`.
    detector: Option<Arc<dyn LinkingModel>>,
}

impl DualModel {
    /// A model of a bundle; the default model detects mentions if the bundle cannot.
    pub fn new(bundle: Arc<DualBundle>) -> DualModel {
        DualModel { bundle, detector: None }
    }

    /// Sets the mention detector, which a model that detects mentions itself does not use.
    #[must_use]
    pub fn with_detector(self, detector: Option<Arc<dyn LinkingModel>>) -> DualModel {
        DualModel { detector, ..self }
    }

    fn detector(&self) -> Result<Arc<dyn LinkingModel>> {
        match &self.detector {
            Some(detector) => Ok(detector.clone()),
            None => Ok(Arc::new(PipelineModel::embedded()?)),
        }
    }

    fn dual_linker(&self, on: &Target, config: RecogniseConfig) -> Result<DualLinker> {
        let link = LinkConfig { top_k: config.top_k, min_score: config.min_score.unwrap_or(0.0) };
        let config = DualConfig { link, min_span: None, nested: config.nested == Nested::All };
        dual_linker(&on.kb, &self.bundle, config, on.subset.clone())
    }
}

impl LinkingModel for DualModel {
    fn info(&self) -> ModelInfo {
        ModelInfo::of_file(&*self.bundle)
    }

    fn learned(&self, mentions: MentionSource) -> Result<Learned> {
        let mut all = Learned::default();
        all.join_whole(SYSTEM, self.bundle.learned.as_ref());
        if mentions == MentionSource::Detect && self.uses_dictionary() {
            all.join("mentions", Some(&self.detector()?.learned(mentions)?));
        }
        Ok(all)
    }

    fn linker(&self, on: &Target, LinkConfig { top_k, min_score }: LinkConfig) -> Result<Box<dyn Linker>> {
        let config = RecogniseConfig { top_k, min_score: Some(min_score), nested: Nested::None };
        Ok(Box::new(self.dual_linker(on, config)?))
    }

    fn annotator(&self, on: &Target, config: RecogniseConfig) -> Result<Box<dyn Annotator>> {
        let linker = self.dual_linker(on, config)?;
        if !self.uses_dictionary() {
            return Ok(Box::new(linker));
        }
        let joint = self.bundle.manifest.joint;
        Ok(Box::new(DetectThenLink::new(on, &*self.detector()?, Box::new(linker), joint, config)?))
    }

    fn leaky_annotator(&self, on: &Target, config: RecogniseConfig) -> Result<Box<dyn LeakyAnnotator>> {
        if self.uses_dictionary() {
            return Err(no_leaky_tokenisation());
        }
        Ok(Box::new(self.dual_linker(on, config)?))
    }

    fn embedding_files(&self, kb: &KnowledgeBase) -> Vec<PathBuf> {
        let nested = self.bundle.name_encoder().ok().flatten().map(|nested| nested.fingerprint);
        let models = [self.bundle.names_fingerprint()].into_iter().chain(nested);
        let files = models.filter_map(|model| VectorCache { folder: cache_folder(), model }.file(kb));
        let detector = self.uses_dictionary().then(|| self.detector().ok()).flatten();
        files.chain(detector.iter().flat_map(|detector| detector.embedding_files(kb))).collect()
    }

    fn uses_dictionary(&self) -> bool {
        self.bundle.manifest.model.search.is_none()
    }

    fn reads_context(&self) -> bool {
        true
    }
}

/// The linker of a dual encoder on `kb`.
///
/// # Errors
/// If the bundle is damaged or its knowledge base cannot be encoded.
pub fn dual_linker(
    kb: &Arc<KnowledgeBase>,
    bundle: &DualBundle,
    config: DualConfig,
    subset: Option<Arc<Subset>>,
) -> Result<DualLinker> {
    let evidence = name_evidence(kb, bundle, subset.as_deref())?;
    Ok(DualLinker::new(kb.clone(), bundle, dual_vectors(kb, bundle)?, config, subset)?.with_name_evidence(evidence))
}

/// Name scorer and mention prior of a dual encoder on `kb`; name embeddings are cached.
///
/// # Errors
/// If the bundle is damaged.
pub fn name_evidence(kb: &KnowledgeBase, bundle: &DualBundle, subset: Option<&Subset>) -> Result<Arc<NameEvidence>> {
    let of_names = |nested: NameEncoderBundle| -> Result<NameScorer> {
        let names = nested.name_encoder()?;
        let index = name_vectors(kb, &nested, &names);
        Ok(NameScorer::new(names, index))
    };
    let names = bundle.name_encoder()?.map(of_names).transpose()?;
    Ok(Arc::new(NameEvidence { names, prior: bundle.mention_prior()?.on(kb).within(subset) }))
}

/// Concept embeddings of `kb` by a dual encoder, cached for all models with the same name encoder.
///
/// # Errors
/// If the bundle is damaged.
pub fn dual_vectors(kb: &KnowledgeBase, bundle: &DualBundle) -> Result<Matrix> {
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
