//! A system: a knowledge base and a model that turn documents into linked documents.
//!
//! ```
//! use std::sync::Arc;
//!
//! use canonym_core::kb::format::Meta;
//! use canonym_core::kb::record::{ConceptRecord, NameRecord, Scope};
//! use canonym_core::kb::{KnowledgeBase, KnowledgeBaseBuilder};
//! use canonym_core::link::system::{BuiltIn, System};
//!
//! let mut builder = KnowledgeBaseBuilder::new();
//! let name = NameRecord { text: "tennis elbow".to_owned(), scope: Scope::Preferred };
//! builder.add(ConceptRecord { id: "CLINIC:1".to_owned(), names: vec![name], ..ConceptRecord::default() })?;
//! let kb = KnowledgeBase::from_vec(builder.to_bytes(Meta::default())?, "clinic")?;
//! let system = System::open(BuiltIn::Lexical, kb)?;
//! let found = system.annotate_text("Tennis elbow since March.")?;
//! assert_eq!(found[0].concept_id(), Some("CLINIC:1"));
//! # Ok::<(), canonym_core::Error>(())
//! ```

use std::sync::Arc;

use rayon::prelude::*;

use super::bm25::Bm25Linker;
use super::explain::Explanation;
use super::lexical::{LexicalLinker, LinkConfig};
use super::model::LexicalModel;
use super::recognise::accept::AcceptModel;
use super::recognise::{DictionaryAnnotator, Nested, RecogniseConfig};
use super::{Annotator, Candidate, LeakyAnnotator, Link, LinkInput, LinkedMention, Linker};
use crate::corpus::{AnnotatedDocument, Annotation, CandidateRecord};
use crate::index::bm25::Bm25Config;
use crate::kb::subset::Subset;
use crate::kb::{ConceptId, KnowledgeBase};
use crate::text::analysis::Analysis;
use crate::text::{Document, Mention, Span};
use crate::{Error, Result};

/// Where mentions come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MentionSource {
    /// Detected by the model.
    Detect,
    /// Taken from the input.
    Given,
}

/// Removes unlinked annotations and the corresponding entries of `beside`, which may be empty. Returns how many were removed.
pub fn drop_unlinked<T>(document: &mut AnnotatedDocument, beside: &mut Vec<T>) -> u64 {
    let kept: Vec<bool> = document.annotations.iter().map(|annotation| !annotation.nil).collect();
    retain(document, beside, &kept)
}

/// Keeps annotations where `kept` is true, and the corresponding entries of `beside`. Returns how many were removed.
pub fn retain<T>(document: &mut AnnotatedDocument, beside: &mut Vec<T>, kept: &[bool]) -> u64 {
    let mut rows = kept.iter();
    document.annotations.retain(|_| rows.next().copied().unwrap_or(true));
    let mut rows = kept.iter();
    beside.retain(|_| rows.next().copied().unwrap_or(true));
    kept.iter().filter(|is_kept| !**is_kept).count() as u64
}

/// Settings of a system.
#[derive(Debug, Clone, PartialEq)]
pub struct SystemConfig {
    /// Where mentions come from.
    pub mentions: MentionSource,
    /// Maximum number of candidates per mention.
    pub top_k: usize,
    /// Threshold below which detected mentions are dropped and given mentions stay unlinked; the threshold of the model if `None`.
    pub min_score: Option<f32>,
    /// Which mentions nested in longer ones are reported.
    pub nested: Nested,
    /// Whether concept ids are written as in the source.
    pub raw_ids: bool,
    /// Concept filter; `None` for all concepts.
    pub subset: Option<Arc<Subset>>,
    /// Whether gold mention boundaries of the input leak into the tokenisation, as in the published evaluation of the dual encoder.
    pub leaky_tokenisation: bool,
}

impl SystemConfig {
    /// How mentions are detected.
    pub fn detection(&self) -> RecogniseConfig {
        RecogniseConfig { top_k: self.top_k, min_score: self.min_score, nested: self.nested }
    }

    /// How given mentions are linked.
    pub fn linking(&self) -> LinkConfig {
        LinkConfig { top_k: self.top_k, min_score: self.min_score.unwrap_or(0.0) }
    }
}

impl Default for SystemConfig {
    /// Detects mentions, with up to five candidates each, at the threshold of the model.
    fn default() -> SystemConfig {
        SystemConfig {
            mentions: MentionSource::Detect,
            top_k: 5,
            min_score: None,
            nested: Nested::default(),
            raw_ids: false,
            subset: None,
            leaky_tokenisation: false,
        }
    }
}

/// Links documents to the concepts of one knowledge base.
pub struct System {
    kb: Arc<KnowledgeBase>,
    raw_ids: bool,
    subset: Option<Arc<Subset>>,
    runner: Runner,
}

/// A model on a knowledge base, by where mentions come from.
pub enum Runner {
    /// Detects mentions and links them.
    Detect(Box<dyn Annotator>),
    /// Links given mentions.
    Given(Box<dyn Linker>),
    /// Detects mentions with a tokenisation that sees gold mention boundaries.
    Leaky(Box<dyn LeakyAnnotator>),
}

/// A model that a [`System`] can be built from.
pub trait SystemModel {
    /// The model on a knowledge base.
    ///
    /// # Errors
    /// If the model cannot be read or does not fit the knowledge base; [`Error::Usage`] if it does not support the settings.
    fn runner(self, kb: &Arc<KnowledgeBase>, config: &SystemConfig) -> Result<Runner>;
}

/// A model without a neural network, with the embedded weights.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum BuiltIn {
    /// Dictionary and lexical linker.
    #[default]
    Lexical,
    /// BM25 over names, for given mentions.
    Bm25,
}

impl SystemModel for BuiltIn {
    fn runner(self, kb: &Arc<KnowledgeBase>, config: &SystemConfig) -> Result<Runner> {
        let (kb, subset) = (kb.clone(), config.subset.clone());
        if config.leaky_tokenisation {
            return Err(no_leaky_tokenisation());
        }
        Ok(match (config.mentions, self) {
            (MentionSource::Detect, BuiltIn::Lexical) => {
                let annotator = DictionaryAnnotator::new(kb, AcceptModel::embedded(), config.detection());
                Runner::Detect(Box::new(annotator.within(subset)))
            }
            (MentionSource::Detect, BuiltIn::Bm25) => return Err(bm25_detects_nothing()),
            (MentionSource::Given, BuiltIn::Lexical) => {
                let linker = LexicalLinker::new(kb, LexicalModel::embedded(), config.linking());
                Runner::Given(Box::new(linker.within(subset)))
            }
            (MentionSource::Given, BuiltIn::Bm25) => {
                let linker = Bm25Linker::new(kb, &Bm25Config::default(), config.linking());
                Runner::Given(Box::new(linker.within(subset)))
            }
        })
    }
}

/// The error of a model whose tokenisation cannot see gold mention boundaries.
pub fn no_leaky_tokenisation() -> Error {
    let hint = "omit leaky tokenisation (option `--leaky-tokenisation`), or use a dual encoder that detects mentions";
    Error::usage("leaky tokenisation does not apply to this model", hint)
}

/// The error of BM25 without given mentions.
pub fn bm25_detects_nothing() -> Error {
    let hint = "link given mentions (option `--mentions gold`), or use another model";
    Error::usage("`bm25` requires given mentions; it cannot detect mentions", hint)
}

impl System {
    /// Opens a model on a knowledge base with default settings.
    ///
    /// # Errors
    /// If the model cannot be read or does not fit the knowledge base.
    pub fn open(model: impl SystemModel, kb: impl Into<Arc<KnowledgeBase>>) -> Result<System> {
        System::open_with(model, kb, &SystemConfig::default())
    }

    /// Like [`System::open`], with other settings.
    ///
    /// # Errors
    /// Those of [`System::open`], and [`Error::Usage`] if the model does not support the settings.
    pub fn open_with(
        model: impl SystemModel,
        kb: impl Into<Arc<KnowledgeBase>>,
        config: &SystemConfig,
    ) -> Result<System> {
        System::new(&kb.into(), model, config)
    }

    /// The knowledge base that mentions are linked to.
    pub fn kb(&self) -> &Arc<KnowledgeBase> {
        &self.kb
    }

    /// Finds and links the mentions of a text.
    ///
    /// # Errors
    /// If the model fails on the text.
    pub fn annotate_text(&self, text: &str) -> Result<Vec<Annotation>> {
        let document = Document { text: text.to_owned(), ..Document::default() };
        Ok(self.annotate(vec![document])?.remove(0).annotations)
    }

    /// Finds and links the mentions of documents, in order.
    ///
    /// # Errors
    /// If the model fails on one of the documents.
    pub fn annotate(&self, documents: Vec<Document>) -> Result<Vec<AnnotatedDocument>> {
        let bare = |document| AnnotatedDocument { document, ..AnnotatedDocument::default() };
        self.link(documents.into_iter().map(bare).collect())
    }

    /// Fails if the file of the knowledge base has changed since it was opened: results since then may be wrong.
    pub fn check_kb(&self) -> Result<()> {
        self.kb.container().check_unchanged()
    }

    /// Builds the system of a model on `kb`.
    ///
    /// # Errors
    /// Those of [`System::open_with`].
    pub fn new(kb: &Arc<KnowledgeBase>, model: impl SystemModel, config: &SystemConfig) -> Result<System> {
        let runner = model.runner(kb, config)?;
        Ok(System { kb: kb.clone(), raw_ids: config.raw_ids, subset: config.subset.clone(), runner })
    }

    /// Replaces the annotations of documents with linked mentions.
    ///
    /// # Errors
    /// If the model fails on one of the documents.
    pub fn link(&self, mut batch: Vec<AnnotatedDocument>) -> Result<Vec<AnnotatedDocument>> {
        let (texts, linked) = match &self.runner {
            Runner::Given(linker) => return link_given(linker.as_ref(), batch, self.raw_ids),
            Runner::Detect(annotator) => {
                let texts = take_texts(&mut batch);
                let linked = annotator.annotate(&Analysis::all(&texts))?;
                (texts, linked)
            }
            Runner::Leaky(linker) => {
                let hulls = |document: &AnnotatedDocument| mentions_of(document).iter().map(Mention::hull).collect();
                let borders: Vec<Vec<Span>> = batch.iter().map(hulls).collect();
                let texts = take_texts(&mut batch);
                let linked = linker.annotate_leaky(&Analysis::all(&texts), &borders)?;
                (texts, linked)
            }
        };
        // Other content of the source document is kept, so that its format can be written again.
        let detected = |((annotated, text), linked): ((AnnotatedDocument, Document), Vec<LinkedMention>)| {
            let annotations = linked.iter().map(|linked| annotation(&self.kb, &text, linked, self.raw_ids));
            let annotations = annotations.filter(|annotation| self.is_given(annotation)).collect();
            AnnotatedDocument { annotations, document: text, relations: Vec::new(), ..annotated }
        };
        Ok(batch.into_par_iter().zip(texts).zip(linked).map(detected).collect())
    }

    /// Like [`System::link`], with the evidence for each annotation. Slower.
    ///
    /// # Errors
    /// If the model fails on one of the documents; [`Error::Usage`] if it has no explanations.
    pub fn explain(&self, mut batch: Vec<AnnotatedDocument>) -> Result<Vec<(AnnotatedDocument, Vec<Explanation>)>> {
        let annotator: &dyn Annotator = match &self.runner {
            Runner::Given(linker) => return self.explain_given(linker.as_ref(), batch),
            Runner::Detect(annotator) => annotator.as_ref(),
            Runner::Leaky(linker) => linker.as_ref(),
        };
        let texts = take_texts(&mut batch);
        let explained = annotator.explain(&Analysis::all(&texts))?;
        Ok(texts.into_par_iter().zip(explained).map(|(text, explained)| self.explained(text, explained)).collect())
    }

    fn explain_given(
        &self,
        linker: &dyn Linker,
        batch: Vec<AnnotatedDocument>,
    ) -> Result<Vec<(AnnotatedDocument, Vec<Explanation>)>> {
        let mentions: Vec<Vec<Mention>> = batch.iter().map(mentions_of).collect();
        let analysed = Analysis::all(batch.iter().map(|document| &document.document));
        let explained = linker.explain(&LinkInput::all(&analysed, &mentions))?;
        let (links, reasons): (Vec<Vec<Link>>, Vec<Vec<Explanation>>) =
            explained.into_iter().map(|of_document| of_document.into_iter().unzip()).unzip();
        let named = |(mut document, reasons): (AnnotatedDocument, Vec<Explanation>)| {
            let annotations = std::mem::take(&mut document.annotations).into_iter().zip(reasons);
            let reasons;
            (document.annotations, reasons) =
                annotations.map(|(annotation, reason)| self.named(annotation, reason)).unzip();
            (document, reasons)
        };
        Ok(with_links(batch, links, &self.kb, self.raw_ids).into_iter().zip(reasons).map(named).collect())
    }

    /// Type filters also apply to unlinked mentions.
    fn is_given(&self, annotation: &Annotation) -> bool {
        !annotation.nil || self.subset.as_ref().is_none_or(|subset| subset.has_type(&annotation.semantic_type))
    }

    /// A document with its annotations and their explanations.
    fn explained(
        &self,
        text: Document,
        explained: Vec<(LinkedMention, Explanation)>,
    ) -> (AnnotatedDocument, Vec<Explanation>) {
        let name = |(linked, explanation)| self.named(annotation(&self.kb, &text, &linked, self.raw_ids), explanation);
        let is_given = |(annotation, _): &(Annotation, Explanation)| self.is_given(annotation);
        let (annotations, explanations) = explained.into_iter().map(name).filter(is_given).unzip();
        (AnnotatedDocument { annotations, document: text, ..Default::default() }, explanations)
    }

    /// Copies the written concept ids into the explanation.
    fn named(&self, annotation: Annotation, mut explanation: Explanation) -> (Annotation, Explanation) {
        for (explained, record) in explanation.candidates.iter_mut().zip(&annotation.candidates) {
            explained.id.clone_from(&record.id);
        }
        (annotation, explanation)
    }
}

fn take_texts(batch: &mut [AnnotatedDocument]) -> Vec<Document> {
    batch.iter_mut().map(|document| std::mem::take(&mut document.document)).collect()
}

fn mentions_of(document: &AnnotatedDocument) -> Vec<Mention> {
    document.annotations.iter().map(Annotation::mention).collect()
}

/// Links the given mentions of documents; their spans and types stay.
///
/// # Errors
/// If the linker fails on one of the documents.
pub fn link_given(linker: &dyn Linker, batch: Vec<AnnotatedDocument>, raw_ids: bool) -> Result<Vec<AnnotatedDocument>> {
    let mentions: Vec<Vec<Mention>> = batch.iter().map(mentions_of).collect();
    let analysed = Analysis::all(batch.iter().map(|document| &document.document));
    let links = linker.link(&LinkInput::all(&analysed, &mentions))?;
    drop(analysed);
    Ok(with_links(batch, links, linker.kb(), raw_ids))
}

/// Replaces the links of given mentions.
fn with_links(
    mut batch: Vec<AnnotatedDocument>,
    links: Vec<Vec<Link>>,
    kb: &KnowledgeBase,
    raw_ids: bool,
) -> Vec<AnnotatedDocument> {
    for (document, links) in batch.iter_mut().zip(links) {
        document.relations.clear();
        for (annotation, link) in document.annotations.iter_mut().zip(links) {
            annotation.ids.clear();
            annotation.parts.clear();
            annotation.score = Some(link.candidates.first().map_or(0.0, |best| best.p_link));
            annotation.p_mention = None;
            annotation.p_link = link.candidates.first().map(|best| best.p_link);
            annotation.nil = link.nil;
            annotation.candidates = records(kb, &link, raw_ids);
        }
    }
    batch
}

/// A detected mention with its link as an annotation.
pub fn annotation(kb: &KnowledgeBase, document: &Document, linked: &LinkedMention, raw: bool) -> Annotation {
    Annotation {
        spans: linked.mention.spans.clone(),
        text: linked.mention.surface(&document.text),
        semantic_type: linked.mention.semantic_type.clone().unwrap_or_default(),
        score: Some(linked.score()),
        p_mention: Some(linked.mention.p_mention),
        p_link: linked.link.candidates.first().map(|best| best.p_link),
        nil: linked.link.nil,
        candidates: linked
            .link
            .candidates
            .iter()
            .map(|one| record(kb, one, Some(linked.p_both_of(one)), raw))
            .collect(),
        ..Annotation::default()
    }
}

fn records(kb: &KnowledgeBase, link: &Link, raw: bool) -> Vec<CandidateRecord> {
    link.candidates.iter().map(|one| record(kb, one, None, raw)).collect()
}

fn record(kb: &KnowledgeBase, candidate: &Candidate, p_both: Option<f32>, raw: bool) -> CandidateRecord {
    let Candidate { concept, p_link, .. } = *candidate;
    CandidateRecord { id: shown_id(kb, concept, raw), name: kb.preferred_name(concept).to_owned(), p_link, p_both }
}

/// The concept id for display: as stored, or as in the source if `raw`.
pub fn shown_id(kb: &KnowledgeBase, concept: ConceptId, raw: bool) -> String {
    if raw { kb.raw_id(concept) } else { kb.id(concept).to_owned() }
}
