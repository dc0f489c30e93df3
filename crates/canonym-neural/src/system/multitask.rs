//! The multi-task tagger as a model of a system: its linker and its annotator.

use std::collections::HashMap;
use std::sync::Arc;

use canonym_core::eval::learned::Learned;
use canonym_core::kb::{ConceptId, KnowledgeBase};
use canonym_core::link::explain::{Explanation, contribution, explained};
use canonym_core::link::lexical::LinkConfig;
use canonym_core::link::recognise::RecogniseConfig;
use canonym_core::link::{Annotator, Candidate, Link, LinkInput, LinkedMention, Linker};
use canonym_core::text::{Document, Mention, Span};
use canonym_core::{Error, Result};
use rayon::prelude::*;

use super::detect_then_link::{DetectThenLink, explain_mention};
use super::info::ModelInfo;
use super::linked::MentionSource;
use super::names::NameModel;
use super::{LinkingModel, Target};
use crate::bundle::MultitaskBundle;
use crate::bundle::multitask::SYSTEM;
use crate::models::joint::log_odds;
use crate::models::multitask::Task;
use crate::models::multitask::infer::{FoundSpan, Labelled, LinkedSpan, MultitaskTagger};
use crate::models::multitask::tokenized::TokenizedText;

/// Documents that are labelled together.
const DOCUMENTS: usize = 64;

/// The model of a bundle.
#[derive(Debug)]
pub struct MultitaskModel(pub Arc<MultitaskBundle>);

impl MultitaskModel {
    fn built(&self, on: &Target, config: RecogniseConfig) -> Result<MultitaskLinker> {
        let tagger = self.0.tagger()?;
        let mut concept_of: HashMap<&str, ConceptId> = HashMap::new();
        let is_kept = |concept: &ConceptId| on.subset.as_deref().is_none_or(|subset| subset.has(*concept));
        // A primary id takes precedence over the alternative ids of other concepts.
        for concept in on.kb.concepts().filter(is_kept) {
            on.kb.id(concept).split('|').for_each(|id| _ = concept_of.entry(bare(id)).or_insert(concept));
        }
        for concept in on.kb.concepts().filter(is_kept) {
            on.kb.alternative_ids(concept).for_each(|id| _ = concept_of.entry(bare(id)).or_insert(concept));
        }
        let concepts = self.0.ids()?.into_iter().map(|id| concept_of.get(bare(id)).copied()).collect();
        let min_score = config.min_score.unwrap_or(self.0.manifest.min_score);
        Ok(MultitaskLinker { kb: on.kb.clone(), tagger, concepts, min_score, top_k: config.top_k.max(1) })
    }
}

/// An id without its prefix.
fn bare(id: &str) -> &str {
    id.rsplit_once(':').map_or(id, |(_, bare)| bare)
}

impl LinkingModel for MultitaskModel {
    fn info(&self) -> ModelInfo {
        ModelInfo::of_file(&*self.0)
    }

    fn learned(&self, mentions: MentionSource) -> Result<Learned> {
        let mut all = Learned::default();
        all.join_whole(SYSTEM, self.0.learned.as_ref());
        if mentions == MentionSource::Detect && !self.0.manifest.model.detects() {
            match self.0.detector()? {
                Some(detector) => all.join("mentions", detector.learned.as_ref()),
                None => all.join("mentions", Some(&NameModel::embedded()?.learned(mentions)?)),
            }
        }
        Ok(all)
    }

    fn linker(&self, on: &Target, LinkConfig { top_k, min_score }: LinkConfig) -> Result<Box<dyn Linker>> {
        if !self.0.manifest.model.has(Task::Concepts) {
            let error = Error::invalid("this model was trained without the task `concepts` and cannot link");
            return Err(error.with_hint("choose another model, or train one with the task `concepts`"));
        }
        let config = RecogniseConfig { top_k, min_score: Some(min_score), nested: false };
        Ok(Box::new(self.built(on, config)?))
    }

    fn annotator(&self, on: &Target, config: RecogniseConfig) -> Result<Box<dyn Annotator>> {
        let linker = self.built(on, config)?;
        if self.0.manifest.model.detects() {
            return Ok(Box::new(linker));
        }
        let detector: Box<dyn LinkingModel> = match self.0.detector()? {
            Some(detector) => Box::new(MultitaskModel(Arc::new(detector))),
            None => Box::new(NameModel::embedded()?),
        };
        let min_score = Some(config.min_score.unwrap_or(self.0.manifest.min_score));
        let config = RecogniseConfig { min_score, ..config };
        Ok(Box::new(DetectThenLink::new(on, &*detector, Box::new(linker), None, config)?))
    }

    fn uses_dictionary(&self) -> bool {
        !self.0.manifest.model.detects() && !self.0.has_detector()
    }
}

/// Labels documents, and links what it finds to the concepts of a knowledge base.
#[derive(Debug)]
pub struct MultitaskLinker {
    kb: Arc<KnowledgeBase>,
    tagger: MultitaskTagger,
    /// The concept of each class from 1; `None` if the knowledge base lacks it.
    concepts: Vec<Option<ConceptId>>,
    min_score: f32,
    top_k: usize,
}

impl MultitaskLinker {
    fn link_of(&self, span: &LinkedSpan) -> Link {
        let candidate = |(class, p_link): &(usize, f32)| {
            let concept = self.concepts[class - 1]?;
            Some(Candidate { concept, name: None, p_link: *p_link })
        };
        let candidates: Vec<Candidate> = span.classes.iter().filter_map(candidate).take(self.top_k).collect();
        let p_link = candidates.first().map_or(0.0, |best| best.p_link);
        // If the knowledge base lacks the best class, the next one is no substitute.
        let has_best = span.classes.first().is_some_and(|(class, _)| self.concepts[class - 1].is_some());
        Link { nil: !has_best || span.p_mention * p_link < self.min_score, candidates }
    }

    /// Mentions of a text: those of the concept task, else those of the highest task that finds any.
    fn linked(&self, text: &TokenizedText, labelled: &Labelled) -> Vec<LinkedMention> {
        let config = &self.tagger.config;
        let type_of = |first: usize, last: usize| {
            let mut spans = labelled.type_spans.iter().map(|found| found.span);
            let inside = spans.find(|span| span.first <= last && first <= span.last)?;
            config.types.get(inside.class - 1).cloned()
        };
        let plain = |found: &FoundSpan| {
            let FoundSpan { span, p_mention } = *found;
            LinkedSpan { first: span.first, last: span.last, p_mention, classes: Vec::new() }
        };
        let spans: Vec<LinkedSpan> = match config.tasks.last() {
            Some(Task::Concepts) => labelled.concept_spans.clone(),
            Some(Task::Types) => labelled.type_spans.iter().map(plain).collect(),
            _ => labelled.mention_spans.iter().map(plain).collect(),
        };
        let one = |span: LinkedSpan| {
            let link = self.link_of(&span);
            let best = link.candidates.first().filter(|_| !link.nil);
            let of_kb = best.and_then(|best| self.kb.types(best.concept).next()).map(str::to_owned);
            let semantic_type = of_kb.or_else(|| type_of(span.first, span.last));
            let p_link = link.candidates.first().map_or(0.0, |best| best.p_link);
            let mention =
                Mention { spans: vec![text.span(span.first, span.last)], semantic_type, p_mention: span.p_mention };
            LinkedMention { p_both: span.p_mention * p_link, mention, link }
        };
        spans.into_iter().map(one).collect()
    }

    fn read(&self, documents: &[Document], boundaries: &[Vec<Span>]) -> Vec<TokenizedText> {
        let read = |(at, document): (usize, &Document)| {
            self.tagger.splitter().read(&document.text, boundaries.get(at).map_or(&[], Vec::as_slice))
        };
        documents.par_iter().enumerate().map(read).collect()
    }

    fn explanation(&self, compared: String, link: &Link) -> Explanation {
        let explain = |candidate: &Candidate| {
            let name = self.kb.names(candidate.concept).next()?;
            let odds = f64::from(log_odds(candidate.p_link));
            let part =
                contribution("concept", "probability of the class in this context", f64::from(candidate.p_link), odds);
            Some(explained(&self.kb, &compared, name, candidate.concept, candidate.p_link, vec![part]))
        };
        let candidates = link.candidates.iter().filter_map(explain).collect();
        Explanation { compared, candidates, ..Explanation::default() }
    }
}

/// The range of each given mention; an empty one for a mention without text.
fn hulls(marked: &LinkInput<'_>) -> Result<Vec<Span>> {
    let document = marked.document;
    let is_in_text = |span: &Span| document.text.get(span.start as usize..span.end as usize).is_some();
    let hull = |mention: &Mention| {
        if let Some(Span { start, end }) = mention.spans.iter().find(|span| !is_in_text(span)) {
            let message = format!("the mention at {start}..{end} is not within the text of document `{}`", document.id);
            return Err(Error::invalid(message).with_hint("offsets are bytes of the text, on character boundaries"));
        }
        let hull = if mention.spans.is_empty() { Span::new(0, 0) } else { mention.hull() };
        Ok(if hull.start < hull.end { hull } else { Span { end: hull.start, ..hull } })
    };
    marked.mentions.iter().map(hull).collect()
}

impl Linker for MultitaskLinker {
    fn kb(&self) -> &KnowledgeBase {
        &self.kb
    }

    fn link(&self, inputs: &[LinkInput<'_>]) -> Result<Vec<Vec<Link>>> {
        let mut all = Vec::with_capacity(inputs.len());
        for inputs in inputs.chunks(DOCUMENTS) {
            let documents: Vec<Document> = inputs.iter().map(|marked| marked.document.clone()).collect();
            let hulls: Vec<Vec<Span>> = inputs.iter().map(hulls).collect::<Result<_>>()?;
            // An empty span is no boundary of other mentions.
            let some = |hulls: &Vec<Span>| hulls.iter().copied().filter(|hull| hull.start < hull.end).collect();
            let texts = self.read(&documents, &hulls.iter().map(some).collect::<Vec<Vec<Span>>>());
            // The words of a mention are whole, because its boundaries are word boundaries.
            let words = |(text, hulls): (&TokenizedText, &Vec<Span>)| {
                hulls.iter().map(|hull| text.words_in(*hull)).collect::<Vec<Option<(usize, usize)>>>()
            };
            let words: Vec<Vec<Option<(usize, usize)>>> = texts.iter().zip(&hulls).map(words).collect();
            let known: Vec<Vec<(usize, usize)>> =
                words.iter().map(|words| words.iter().flatten().copied().collect()).collect();
            for (labelled, words) in self.tagger.label(&texts, Some(&known))?.iter().zip(words) {
                let mut spans = labelled.concept_spans.iter();
                let none = || Link { candidates: Vec::new(), nil: true };
                let link = |words: Option<(usize, usize)>| {
                    words
                        .and_then(|_| spans.next())
                        .map_or_else(none, |span| self.link_of(&LinkedSpan { p_mention: 1.0, ..span.clone() }))
                };
                all.push(words.into_iter().map(link).collect());
            }
        }
        Ok(all)
    }

    fn explain(&self, inputs: &[LinkInput<'_>]) -> Result<Vec<Vec<(Link, Explanation)>>> {
        let explain = |(marked, links): (&LinkInput<'_>, Vec<Link>)| {
            let one = |(mention, link): (&Mention, Link)| {
                let explanation = self.explanation(mention.surface(&marked.document.text), &link);
                (link, explanation)
            };
            marked.mentions.iter().zip(links).map(one).collect()
        };
        Ok(inputs.iter().zip(self.link(inputs)?).map(explain).collect())
    }
}

impl Annotator for MultitaskLinker {
    fn kb(&self) -> &KnowledgeBase {
        &self.kb
    }

    fn annotate(&self, documents: &[Document]) -> Result<Vec<Vec<LinkedMention>>> {
        let mut all = Vec::with_capacity(documents.len());
        for documents in documents.chunks(DOCUMENTS) {
            let texts = self.read(documents, &[]);
            let labelled = self.tagger.label(&texts, None)?;
            all.extend(texts.iter().zip(&labelled).map(|(text, labelled)| self.linked(text, labelled)));
        }
        Ok(all)
    }

    fn explain(&self, documents: &[Document]) -> Result<Vec<Vec<(LinkedMention, Explanation)>>> {
        let explain = |(document, linked): (&Document, Vec<LinkedMention>)| {
            let one = |linked: LinkedMention| {
                let mut explanation = self.explanation(linked.mention.surface(&document.text), &linked.link);
                explain_mention(&self.kb, &mut explanation, &linked);
                (linked, explanation)
            };
            linked.into_iter().map(one).collect()
        };
        Ok(documents.iter().zip(self.annotate(documents)?).map(explain).collect())
    }
}

#[cfg(test)]
mod tests;
