//! The linking systems as the engine of the server.

use canonym_neural::system::terminology;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use canonym_core::corpus::AnnotatedDocument;
use canonym_core::eval::learned::Learned;
use canonym_core::kb::KnowledgeBase;
use canonym_core::kb::subset::{Subset, SubsetConfig};
use canonym_core::link::Link;
use canonym_core::link::explain::Explanation;
use canonym_core::link::lexical::LinkConfig;
use canonym_serve::{Engine, LinkOptions, Mentions, Nil};

use super::trainer::ContextModel;
use canonym_neural::system::linked::{MentionSource, System, SystemConfig, drop_unlinked, link_given};
use canonym_neural::system::{IndexChoice, Models, NameLinker};

/// Maximum number of cached systems, one per set of options, built on first use.
const MAX_SYSTEMS: usize = 4;

/// Minimum number of candidates per name, so one linker serves most requests.
const MIN_TOP_K: usize = 10;

/// The name of the model that every server has.
const LEXICAL: &str = "lexical";

/// Number of candidates and concept filters of a linker of names.
type LinkerKey = (usize, Option<Arc<SubsetConfig>>);

/// A knowledge base and a model, ready to link.
pub struct ServeEngine {
    kb: Arc<KnowledgeBase>,
    models: Models,
    name: String,
    systems: Mutex<Vec<(LinkOptions, Arc<System>)>>,
    linkers: Mutex<Vec<(LinkerKey, Arc<NameLinker>)>>,
    /// The engine of the lexical model, if that is another one; opened on first use.
    lexical: Mutex<Option<Arc<ServeEngine>>>,
}

/// Opens a knowledge base and a model, and builds the default system and linker.
pub fn open(kb: Option<&Path>, model: &str) -> canonym_core::Result<ServeEngine> {
    let mut models = Models::named(model)?;
    let kb = terminology::open_for(kb, model)?;
    models.use_index(None, &kb)?;
    let name = Path::new(model).file_name().map_or(model.to_owned(), |name| name.to_string_lossy().into_owned());
    let engine = ServeEngine::new(kb, models, name);
    engine.system(&LinkOptions::default())?;
    engine.linker(MIN_TOP_K, None)?;
    Ok(engine)
}

impl ServeEngine {
    fn new(kb: Arc<KnowledgeBase>, models: Models, name: String) -> ServeEngine {
        let (systems, linkers) = (Mutex::default(), Mutex::default());
        ServeEngine { kb, models, name, systems, linkers, lexical: Mutex::default() }
    }

    /// The facts about the model that training needs; `None` unless it is a dual encoder.
    pub fn context_model(&self) -> canonym_core::Result<Option<ContextModel>> {
        let model = &self.models.linking;
        if !model.reads_context() {
            return Ok(None);
        }
        Ok(Some(ContextModel { finds: !model.uses_dictionary(), learned: self.learned()? }))
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
        let options = LinkOptions { nil: Nil::Keep, ..options.clone() };
        if let Some(system) = self.cached(&options) {
            return Ok(system);
        }
        let subset = options.filters.as_ref().map(|filters| Subset::choose(&self.kb, filters)).transpose()?;
        let mentions = match options.mentions {
            Mentions::Detected => MentionSource::Detect,
            Mentions::Given => MentionSource::Given,
        };
        let config = SystemConfig {
            mentions,
            top_k: options.top_k,
            min_score: options.min_score,
            nested: options.nested,
            raw_ids: false,
            subset: subset.map(Arc::new),
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

    fn linker(&self, top_k: usize, filters: Option<&Arc<SubsetConfig>>) -> canonym_core::Result<Arc<NameLinker>> {
        let top_k = if top_k <= MIN_TOP_K { MIN_TOP_K } else { 100 };
        let key = (top_k, filters.cloned());
        let find = |linkers: &[(LinkerKey, Arc<NameLinker>)]| {
            linkers.iter().find(|(other, _)| *other == key).map(|(_, linker)| linker.clone())
        };
        if let Some(linker) = find(&self.linkers.lock().unwrap_or_else(PoisonError::into_inner)) {
            return Ok(linker);
        }
        let subset = filters.map(|filters| Subset::choose(&self.kb, filters)).transpose()?;
        let config = LinkConfig { top_k, min_score: 0.0 };
        // Built without the lock, so that other requests go on.
        let linker = Arc::new(NameLinker::new(&self.kb, &self.models, config, subset.map(Arc::new))?);
        let mut linkers = self.linkers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(linker) = find(&linkers) {
            return Ok(linker);
        }
        if linkers.len() >= MAX_SYSTEMS {
            linkers.remove(0);
        }
        linkers.push((key, linker.clone()));
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

    fn check_unchanged(&self) -> canonym_core::Result<()> {
        self.kb.container().check_unchanged()?;
        match &self.models.index {
            IndexChoice::Opened(index) => index.container().check_unchanged(),
            IndexChoice::Beside | IndexChoice::Without => Ok(()),
        }
    }

    /// The lexical model opens at once on any knowledge base, so requests may ask for it.
    fn with_model(&self, name: &str) -> canonym_core::Result<Option<Arc<dyn Engine>>> {
        if name != LEXICAL {
            return Ok(None);
        }
        let mut lexical = self.lexical.lock().unwrap_or_else(PoisonError::into_inner);
        if lexical.is_none() {
            let engine = ServeEngine::new(self.kb.clone(), Models::named(LEXICAL)?, LEXICAL.to_owned());
            *lexical = Some(Arc::new(engine));
        }
        Ok(lexical.clone().map(|engine| engine as Arc<dyn Engine>))
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
        documents: Vec<AnnotatedDocument>,
        top_k: usize,
    ) -> canonym_core::Result<Vec<AnnotatedDocument>> {
        let mut linked = link_given(&*self.linker(top_k, None)?, documents, false)?;
        let annotations = linked.iter_mut().flat_map(|document| &mut document.annotations);
        annotations.for_each(|annotation| annotation.candidates.truncate(top_k));
        Ok(linked)
    }

    fn map(&self, names: &[String], options: &LinkOptions) -> canonym_core::Result<Vec<Link>> {
        let mut links = self.linker(options.top_k, options.filters.as_ref())?.link_names(names)?;
        links.iter_mut().for_each(|link| limit(link, options));
        Ok(links)
    }

    fn explain_names(&self, names: &[String], options: &LinkOptions) -> canonym_core::Result<Vec<(Link, Explanation)>> {
        let mut explained = self.linker(options.top_k, options.filters.as_ref())?.explain_names(names)?;
        for (link, explanation) in &mut explained {
            limit(link, options);
            explanation.candidates.truncate(options.top_k);
        }
        Ok(explained)
    }
}

/// Applies `top_k` and `min_score`, which the cached linkers do not know.
fn limit(link: &mut Link, options: &LinkOptions) {
    link.candidates.truncate(options.top_k);
    let best = link.candidates.first().map_or(0.0, |best| best.p_link);
    link.nil |= options.min_score.is_some_and(|min_score| best < min_score);
}
