//! The model of name encoder and tagger: the default system, and hybrid linking of given mentions.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use canonym_core::eval::learned::Learned;
use canonym_core::kb::subset::KbView;
use canonym_core::kb::{FormId, KnowledgeBase};
use canonym_core::link::lexical::LinkConfig;
use canonym_core::link::model::LexicalModel;
use canonym_core::link::recognise::RecogniseConfig;
use canonym_core::link::recognise::accept::AcceptModel;
use canonym_core::link::recognise::senses::SenseInventory;
use canonym_core::link::{Annotator, Linker};
use canonym_core::{Error, Result};

use super::bridge::other_names;
use super::hybrid::HybridLinker;
use super::info::ModelInfo;
use super::lexical::{dictionary, join_recognition};
use super::linked::MentionSource;
use super::pipeline::Pipeline;
use super::{DEFAULT, DEFAULT_MODEL, IndexChoice, LinkingModel, Target, encoding};
use crate::bundle::NameEncoderBundle;
use crate::index::FlatIndex;
use crate::index::build::{IndexBuilder, IndexReport};
use crate::index::cache::{VectorCache, cache_folder};
use crate::index::forms::{FormVectors, KeptVectors, MANY_FORMS};
use crate::index::stored::NameIndex;
use crate::index::vectors::Precision;
use crate::models::rescnn::names::NameEncoder;
use crate::status;

/// Dictionary matches below this probability are not proposed to the pipeline.
const MIN_PROPOSED: f32 = 0.05;

/// A name encoder, optionally with a tagger.
#[derive(Debug, Clone)]
pub struct PipelineModel {
    /// Weights and settings.
    pub bundle: Arc<NameEncoderBundle>,
    ranking: LexicalModel,
}

impl PipelineModel {
    /// A model of a bundle.
    ///
    /// # Errors
    /// If the lexical weights in the bundle are damaged.
    pub fn new(bundle: Arc<NameEncoderBundle>) -> Result<PipelineModel> {
        Ok(PipelineModel { ranking: bundle.lexical()?, bundle })
    }

    /// The default model.
    ///
    /// # Errors
    /// Never, unless the package is damaged.
    pub fn embedded() -> Result<PipelineModel> {
        PipelineModel::new(Arc::new(NameEncoderBundle::from_bytes(DEFAULT_MODEL, Path::new(DEFAULT))?))
    }

    /// Builds or updates the index of the names of `kb` at `out`.
    ///
    /// # Errors
    /// If the bundle is damaged, another process builds the index, or the file cannot be written.
    pub fn build_index(
        &self,
        kb: &KnowledgeBase,
        out: &Path,
        precision: Precision,
        progress: &mut dyn FnMut(usize, usize) -> Result<()>,
    ) -> Result<IndexReport> {
        let (names, model) = (self.bundle.name_encoder()?, self.bundle.names_fingerprint());
        IndexBuilder { kb, names: &names, model, precision }.build(out, progress)
    }

    /// The vectors of the names: those of the index given or found, cached ones, or computed on demand if the names are many.
    ///
    /// # Errors
    /// If the index that was given does not belong to knowledge base and model.
    fn form_vectors(&self, on: &Target, names: &NameEncoder) -> Result<FormVectors> {
        let index = match &on.index {
            IndexChoice::Beside => self.found_index(&on.kb),
            IndexChoice::Opened(index) => {
                self.check_index(index, &on.kb)?;
                Some(index.clone())
            }
            IndexChoice::Without => None,
        };
        if let Some(index) = index {
            return Ok(FormVectors::Stored(index));
        }
        let cache = VectorCache { folder: cache_folder(), model: self.bundle.names_fingerprint() };
        if on.kb.n_forms() <= MANY_FORMS || cache.file(&on.kb).is_some_and(|file| file.exists()) {
            return Ok(FormVectors::Indexed(name_vectors(&on.kb, &self.bundle, names)));
        }
        tracing::info!("names are embedded when first compared; `canonym index build` embeds all of them once");
        Ok(FormVectors::OnDemand(KeptVectors::default()))
    }

    /// Fails unless an index was built of `kb` with the name encoder of this model.
    ///
    /// # Errors
    /// If the index has no vectors of these names by this encoder.
    pub fn check_index(&self, index: &NameIndex, kb: &KnowledgeBase) -> Result<()> {
        // Earlier versions wrote the fingerprint of the whole model.
        match index.check(kb, self.bundle.fingerprint) {
            Ok(()) => Ok(()),
            Err(_) => index.check(kb, self.bundle.names_fingerprint()),
        }
    }

    /// The index beside the file of a knowledge base. Logs a warning and ignores an index that does not match.
    pub fn found_index(&self, kb: &KnowledgeBase) -> Option<Arc<NameIndex>> {
        let path = index_path(kb.container().path());
        if !path.is_file() {
            return None;
        }
        let open = || -> Result<Arc<NameIndex>> {
            let index = NameIndex::open(&path, cache_folder().as_deref())?;
            self.check_index(&index, kb)?;
            Ok(Arc::new(index))
        };
        let ignored = |error: Error| {
            let hint = error.hint().map(|hint| format!("; {hint}")).unwrap_or_default();
            status::say(&format!("warning: {} is not used: {error}{hint}", path.display()));
        };
        open().map_err(ignored).ok()
    }

    fn hybrid(&self, on: &Target, config: LinkConfig) -> Result<HybridLinker> {
        let names = Arc::new(self.bundle.name_encoder()?);
        let vectors = self.form_vectors(on, &names)?;
        Ok(HybridLinker::new(
            on.kb.clone(),
            names,
            Arc::new(vectors),
            self.ranking.clone(),
            self.bundle.manifest.fusion,
            config,
        )
        .within(on.subset.clone()))
    }

    /// The user's sense inventory, or the embedded one, with the names that documents taught; `None` if they taught none.
    fn senses(&self, on: &Target) -> Result<Option<Arc<SenseInventory>>> {
        let taught = self.bundle.taught()?;
        let mut names = taught.on(KbView { kb: &on.kb, subset: on.subset.as_deref() }).peekable();
        if names.peek().is_none() {
            return Ok(None);
        }
        let mut senses = SenseInventory::clone(&on.senses.clone().unwrap_or_else(SenseInventory::embedded));
        names.for_each(|one| senses.teach(one.name, one.concept, one.preferred, one.share));
        Ok(Some(Arc::new(senses)))
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
        let dictionary = dictionary.with_other_names(other_names(&on.kb, on.subset.clone()));
        let dictionary = match self.senses(on)? {
            Some(senses) => dictionary.with_senses(senses),
            None => dictionary,
        };
        Ok(Some(Pipeline::new(on.kb.clone(), Arc::new(tagger), dictionary, linker, manifest.decision, config)))
    }
}

impl LinkingModel for PipelineModel {
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

    fn embedding_files(&self, kb: &KnowledgeBase) -> Vec<PathBuf> {
        let cache = VectorCache { folder: cache_folder(), model: self.bundle.names_fingerprint() };
        cache.file(kb).into_iter().collect()
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

/// The file beside that of a knowledge base in which its index is looked for: `K.index` beside `K.kb`.
pub fn index_path(kb: &Path) -> PathBuf {
    kb.with_extension("index")
}

/// Index over the embeddings of the forms of `kb`, which are cached.
pub(super) fn name_vectors(kb: &KnowledgeBase, bundle: &NameEncoderBundle, names: &NameEncoder) -> FlatIndex {
    let cache = VectorCache { folder: cache_folder(), model: bundle.names_fingerprint() };
    let sample = |n_names: usize| {
        let forms: Vec<FormId> = (0..n_names as u32).map(FormId).collect();
        names.encode_some(kb, &forms);
    };
    let _told = encoding::tell(kb, &cache, kb.n_forms(), sample);
    cache.index(kb, names, &mut |error| tracing::warn!("cannot cache the name embeddings: {error}"))
}

#[cfg(test)]
mod tests {
    use canonym_core::artifact::Container;
    use canonym_core::kb::format::Meta;
    use canonym_core::kb::record::{ConceptRecord, NameRecord};
    use canonym_core::kb::{KnowledgeBaseBuilder, Scope};
    use canonym_core::text::Document;
    use canonym_core::text::analysis::Analysis;

    use super::*;
    use crate::index::stored;

    #[test]
    fn embeddings_on_demand_give_the_scores_of_an_index() {
        let mut builder = KnowledgeBaseBuilder::new();
        let concepts = [
            ("A:1", ["gout", "acute gout"]),
            ("A:2", ["liver pain", "liver ache"]),
            ("A:3", ["kidney pain", "renal pain"]),
            ("A:4", ["hypertension", "high blood pressure"]),
        ];
        for (id, names) in concepts {
            let name = |text: &&str| NameRecord { text: (*text).to_owned(), scope: Scope::Exact };
            let record =
                ConceptRecord { id: id.to_owned(), names: names.iter().map(name).collect(), ..Default::default() };
            builder.add(record).unwrap();
        }
        let kb = Arc::new(KnowledgeBase::from_vec(builder.to_bytes(Meta::default()).unwrap(), "test").unwrap());
        let model = PipelineModel::embedded().unwrap();
        let names = Arc::new(model.bundle.name_encoder().unwrap());
        let linker = |vectors: FormVectors| {
            let (ranking, fusion) = (model.ranking.clone(), model.bundle.manifest.fusion);
            HybridLinker::new(kb.clone(), names.clone(), Arc::new(vectors), ranking, fusion, LinkConfig::default())
        };
        let indexed = linker(FormVectors::Indexed(FlatIndex::new(names.encode_forms(&kb))));
        let on_demand = linker(FormVectors::OnDemand(KeptVectors::default()));
        let queries = ["gouts", "pain of the liver", "hypertention", "renal pain", "acute gout"];
        // The second round reads the embeddings that the first has kept.
        for _ in 0..2 {
            for (one, other) in indexed.evidence(&queries).iter().zip(on_demand.evidence(&queries)) {
                assert!(!other.is_empty());
                for found in &other {
                    let same = one.iter().find(|one| one.scored.concept == found.scored.concept).unwrap();
                    assert!((same.dense_score - found.dense_score).abs() < 2e-3);
                }
            }
        }
        let best = |linker: &HybridLinker| -> Vec<String> {
            let links = linker.link_names(&queries);
            links.iter().map(|link| kb.id(link.candidates[0].concept).to_owned()).collect()
        };
        assert_eq!(best(&indexed), best(&on_demand));
        assert_eq!(best(&on_demand), ["A:1", "A:2", "A:4", "A:3", "A:1"]);
    }

    #[test]
    fn a_mapped_index_that_is_modified_gives_no_links() {
        let mut builder = KnowledgeBaseBuilder::new();
        let name = NameRecord { text: "gout".to_owned(), scope: Scope::Exact };
        builder.add(ConceptRecord { id: "A:1".to_owned(), names: vec![name], ..Default::default() }).unwrap();
        let kb = Arc::new(KnowledgeBase::from_vec(builder.to_bytes(Meta::default()).unwrap(), "test").unwrap());
        let model = PipelineModel::embedded().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.index");
        model.build_index(&kb, &path, Precision::F16, &mut |_, _| Ok(())).unwrap();
        let mapped = Container::open_up_to(0, &path, stored::KIND).unwrap();
        let index = IndexChoice::Opened(Arc::new(NameIndex::of(mapped).unwrap()));
        let on = Target { index, ..Target::new(&kb, None) };
        let linker = model.linker(&on, LinkConfig::default()).unwrap();
        let pipeline = model.pipeline(&on, RecogniseConfig::default()).unwrap().unwrap();
        let text = Document { text: "He has gout.".to_owned(), ..Document::default() };
        assert_eq!(linker.link_names(&["gouts"]).unwrap().len(), 1);
        assert_eq!(pipeline.annotate(&[Analysis::new(&text)]).unwrap().len(), 1);
        // Earlier than the file was written, so that it is another time on file systems with coarse times.
        let file = std::fs::File::options().write(true).open(&path).unwrap();
        file.set_modified(std::time::SystemTime::UNIX_EPOCH).unwrap();
        let errors = [
            linker.link_names(&["gouts"]).unwrap_err(),
            linker.explain_names(&["gouts"]).unwrap_err(),
            linker.link(&[]).unwrap_err(),
            pipeline.annotate(&[Analysis::new(&text)]).unwrap_err(),
            pipeline.explain(&[Analysis::new(&text)]).unwrap_err(),
        ];
        for error in errors {
            assert!(error.to_string().ends_with("a.index: it was modified while in use"), "{error}");
            assert!(error.hint().is_some_and(|hint| hint.contains("canonym index build")));
        }
    }
}
