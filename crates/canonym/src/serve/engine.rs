//! The linking systems as the engine of the server.

use canonym_neural::system::parts;
use canonym_neural::system::terminology;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use canonym_core::corpus::AnnotatedDocument;
use canonym_core::eval::learned::Learned;
use canonym_core::kb::KnowledgeBase;
use canonym_core::link::explain::Explanation;
use canonym_core::link::lexical::LinkConfig;
use canonym_core::link::{Link, LinkInput, Linker};
use canonym_core::text::Mention;
use canonym_serve::{Engine, LinkOptions, Nil};

use super::trainer::ContextModel;
use canonym_neural::system::linked::{MentionSource, System, SystemConfig, drop_unlinked, records};
use canonym_neural::system::parts::{Models, NameLinker};

/// Maximum number of cached systems, one per set of options, built on first use.
const MAX_SYSTEMS: usize = 4;

/// Minimum number of candidates per name, so one linker serves most requests.
const MIN_TOP_K: usize = 10;

/// A knowledge base and a model, ready to link.
pub struct ServeEngine {
    kb: Arc<KnowledgeBase>,
    models: Models,
    name: String,
    systems: Mutex<Vec<(LinkOptions, Arc<System>)>>,
    linkers: Mutex<Vec<(usize, Arc<NameLinker>)>>,
}

/// Opens a knowledge base and a model, and builds the default system and linker.
pub fn open(kb: Option<&Path>, model: &str) -> canonym_core::Result<ServeEngine> {
    let models = parts::models(model)?;
    let kb = terminology::open_for(kb, model)?;
    let name = Path::new(model).file_name().map_or(model.to_owned(), |name| name.to_string_lossy().into_owned());
    let engine = ServeEngine { kb, models, name, systems: Mutex::default(), linkers: Mutex::default() };
    engine.system(&LinkOptions::default())?;
    engine.linker(MIN_TOP_K)?;
    Ok(engine)
}

impl ServeEngine {
    /// The facts about the model that training needs; `None` unless it is a dual encoder.
    pub fn context_model(&self) -> canonym_core::Result<Option<ContextModel>> {
        let Some(bundle) = &self.models.dual else { return Ok(None) };
        Ok(Some(ContextModel { finds: bundle.manifest.model.search.is_some(), learned: self.learned()? }))
    }

    /// A cached system, which becomes the most recently used one.
    fn cached(&self, options: &LinkOptions) -> Option<Arc<System>> {
        let mut systems = self.systems.lock().unwrap_or_else(PoisonError::into_inner);
        let at = systems.iter().position(|(other, _)| other == options)?;
        let found = systems.remove(at);
        let system = found.1.clone();
        systems.push(found);
        Some(system)
    }

    /// The system for `options`; `nil` is ignored, as unlinked mentions are dropped afterwards.
    fn system(&self, options: &LinkOptions) -> canonym_core::Result<Arc<System>> {
        let options = LinkOptions { nil: Nil::Keep, ..*options };
        if let Some(system) = self.cached(&options) {
            return Ok(system);
        }
        let config = SystemConfig {
            mentions: MentionSource::Detect,
            top_k: options.top_k,
            min_score: options.min_score,
            nested: options.nested,
            raw_ids: false,
            subset: None,
            leaky_tokenisation: false,
        };
        // Built without the lock, so that other requests go on.
        let system = Arc::new(System::new(&self.kb, self.models.clone(), &config)?);
        if let Some(system) = self.cached(&options) {
            return Ok(system);
        }
        let mut systems = self.systems.lock().unwrap_or_else(PoisonError::into_inner);
        if systems.len() >= MAX_SYSTEMS {
            systems.remove(0);
        }
        systems.push((options, system.clone()));
        Ok(system)
    }

    fn linker(&self, top_k: usize) -> canonym_core::Result<Arc<NameLinker>> {
        let top_k = if top_k <= MIN_TOP_K { MIN_TOP_K } else { 100 };
        let mut linkers = self.linkers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, linker)) = linkers.iter().find(|(other, _)| *other == top_k) {
            return Ok(linker.clone());
        }
        let config = LinkConfig { top_k, min_score: 0.0 };
        let linker = Arc::new(NameLinker::new(&self.kb, &self.models, config, None)?);
        linkers.push((top_k, linker.clone()));
        Ok(linker)
    }
}

impl Engine for ServeEngine {
    fn kb(&self) -> &KnowledgeBase {
        &self.kb
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn learned(&self) -> canonym_core::Result<Learned> {
        self.models.learned(MentionSource::Detect)
    }

    fn link(
        &self,
        documents: Vec<AnnotatedDocument>,
        options: &LinkOptions,
    ) -> canonym_core::Result<Vec<AnnotatedDocument>> {
        let mut linked = self.system(options)?.link(documents)?;
        if options.nil == Nil::Drop {
            linked.iter_mut().for_each(|document| _ = drop_unlinked(document, &mut Vec::<()>::new()));
        }
        Ok(linked)
    }

    fn explain(
        &self,
        documents: Vec<AnnotatedDocument>,
        options: &LinkOptions,
    ) -> canonym_core::Result<Vec<(AnnotatedDocument, Vec<Explanation>)>> {
        let mut explained = self.system(options)?.explain(documents)?;
        if options.nil == Nil::Drop {
            explained.iter_mut().for_each(|(document, reasons)| _ = drop_unlinked(document, reasons));
        }
        Ok(explained)
    }

    fn link_mentions(
        &self,
        mut documents: Vec<AnnotatedDocument>,
        top_k: usize,
    ) -> canonym_core::Result<Vec<AnnotatedDocument>> {
        let mention =
            |spans: &[canonym_core::text::Span]| Mention { spans: spans.to_vec(), semantic_type: None, p_mention: 1.0 };
        let mentions: Vec<Vec<Mention>> = documents
            .iter()
            .map(|document| document.annotations.iter().map(|one| mention(&one.spans)).collect())
            .collect();
        let marked = |(document, mentions)| {
            let document: &AnnotatedDocument = document;
            let mentions: &Vec<Mention> = mentions;
            LinkInput { document: &document.document, mentions }
        };
        let inputs: Vec<LinkInput<'_>> = documents.iter().zip(&mentions).map(marked).collect();
        let links = self.linker(top_k)?.link(&inputs)?;
        for (document, links) in documents.iter_mut().zip(links) {
            for (annotation, mut link) in document.annotations.iter_mut().zip(links) {
                link.candidates.truncate(top_k);
                annotation.score = Some(link.candidates.first().map_or(0.0, |best| best.p_link));
                annotation.nil = link.nil;
                annotation.candidates = records(&self.kb, &link, false);
            }
        }
        Ok(documents)
    }

    fn map(&self, names: &[String], top_k: usize) -> canonym_core::Result<Vec<Link>> {
        let mut links = self.linker(top_k)?.link_names(names)?;
        for link in &mut links {
            link.candidates.truncate(top_k);
        }
        Ok(links)
    }
}
