//! The multi-task tagger as a model of a system: its linker and its annotator.

mod trim;

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use canonym_core::error::Context;
use canonym_core::eval::learned::Learned;
use canonym_core::kb::{ConceptId, KnowledgeBase};
use canonym_core::link::explain::{Explanation, contribution, explained};
use canonym_core::link::lexical::LinkConfig;
use canonym_core::link::recognise::{Nested, RecogniseConfig};
use canonym_core::link::{Annotator, Candidate, Link, LinkInput, LinkedMention, Linker};
use canonym_core::text::analysis::Analysis;
use canonym_core::text::{Mention, Span};
use canonym_core::{Error, Result};
use rayon::prelude::*;

use self::trim::trimmed;
use super::detect_then_link::explain_mention;
use super::info::ModelInfo;
use super::lexical::Lexical;
use super::linked::MentionSource;
use super::names::PipelineModel;
use super::terminology::bare;
use super::{LinkingModel, Target};
use crate::bundle::multitask::{NameLinker, SYSTEM};
use crate::bundle::{MultitaskBundle, NameEncoderBundle};
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
        let tagger = self.0.tagger()?.keeping(config.top_k);
        let by_id = ConceptsById::new(on);
        let concepts = self.0.ids()?.into_iter().map(|id| by_id.find(id)).collect();
        let min_score = config.min_score.unwrap_or(self.0.manifest.min_score);
        Ok(MultitaskLinker {
            kb: on.kb.clone(),
            tagger,
            concepts,
            min_score,
            top_k: config.top_k.max(1),
            detector: None,
            name_linker: match self.name_model()? {
                Some(model) => Some(model.linker(on, LinkConfig { top_k: config.top_k, min_score: 0.0 })?),
                None => None,
            },
        })
    }

    /// The model whose linker of names is joined.
    fn name_model(&self) -> Result<Option<Box<dyn LinkingModel>>> {
        let Some(name_linker) = self.0.manifest.name_linker else { return Ok(None) };
        let context = "cannot open the linker of names in the bundle";
        Ok(Some(match (name_linker, self.0.name_linker()) {
            (NameLinker::Lexical, None) => Box::new(Lexical::embedded()),
            (NameLinker::Lexical, Some(json)) => Box::new(Lexical::with_ranking(json).context(context)?),
            (NameLinker::Default, None) => Box::new(PipelineModel::embedded()?),
            (NameLinker::Default, Some(bytes)) => {
                let bundle = NameEncoderBundle::from_bytes(bytes, Path::new("names")).context(context)?;
                Box::new(PipelineModel::new(Arc::new(bundle))?)
            }
        }))
    }
}

/// The concepts of a target by their ids.
struct ConceptsById<'a> {
    by_id: HashMap<&'a str, ConceptId>,
    /// By the part of an id after its prefix, for corpora whose ids have none.
    by_local_id: HashMap<&'a str, ConceptId>,
}

impl<'a> ConceptsById<'a> {
    fn new(on: &'a Target) -> ConceptsById<'a> {
        let (mut by_id, mut by_local_id) = (HashMap::new(), HashMap::new());
        let mut add = |id: &'a str, concept: ConceptId| {
            by_id.entry(bare(id)).or_insert(concept);
            if let Some((_, local_id)) = bare(id).rsplit_once(':') {
                by_local_id.entry(local_id).or_insert(concept);
            }
        };
        let is_kept = |concept: &ConceptId| on.subset.as_deref().is_none_or(|subset| subset.has(*concept));
        // A primary id takes precedence over the alternative ids of other concepts.
        for concept in on.kb.concepts().filter(is_kept) {
            on.kb.id(concept).split('|').for_each(|id| add(id, concept));
        }
        for concept in on.kb.concepts().filter(is_kept) {
            on.kb.alternative_ids(concept).for_each(|id| add(id, concept));
        }
        ConceptsById { by_id, by_local_id }
    }

    fn find(&self, id: &str) -> Option<ConceptId> {
        let id = bare(id);
        // An id with a prefix is none of another ontology.
        self.by_id.get(id).or_else(|| self.by_local_id.get(id)).copied()
    }
}

impl LinkingModel for MultitaskModel {
    fn info(&self) -> ModelInfo {
        ModelInfo::of_file(&*self.0)
    }

    fn learned(&self, mentions: MentionSource) -> Result<Learned> {
        let mut all = Learned::default();
        all.join_whole(SYSTEM, self.0.learned.as_ref());
        if let Some(model) = self.name_model()? {
            all.join("name linker", Some(&model.learned(MentionSource::Given)?));
        }
        if mentions == MentionSource::Detect && !self.0.manifest.model.detects() {
            match self.0.detector()? {
                Some(detector) => all.join("mentions", detector.learned.as_ref()),
                None => all.join("mentions", Some(&PipelineModel::embedded()?.learned(mentions)?)),
            }
        }
        Ok(all)
    }

    fn linker(&self, on: &Target, LinkConfig { top_k, min_score }: LinkConfig) -> Result<Box<dyn Linker>> {
        if !self.0.manifest.model.has(Task::Concepts) {
            let error = Error::unsupported("this model was trained without the task `concepts` and cannot link");
            return Err(error.with_hint("choose another model, or train one with the task `concepts`"));
        }
        let config = RecogniseConfig { top_k, min_score: Some(min_score), nested: Nested::None };
        Ok(Box::new(self.built(on, config)?))
    }

    fn annotator(&self, on: &Target, config: RecogniseConfig) -> Result<Box<dyn Annotator>> {
        let linker = self.built(on, config)?;
        if self.0.manifest.model.detects() {
            return Ok(Box::new(linker));
        }
        let config = RecogniseConfig { top_k: 1, min_score: Some(linker.min_score), ..config };
        let detector = match self.0.detector()? {
            Some(detector) => MultitaskModel(Arc::new(detector)).annotator(on, config)?,
            None => PipelineModel::embedded()?.annotator(on, config)?,
        };
        Ok(Box::new(MultitaskLinker { detector: Some(detector), ..linker }))
    }

    fn uses_dictionary(&self) -> bool {
        !self.0.manifest.model.detects() && !self.0.has_detector()
    }
}

/// Labels documents, and links what it finds to the concepts of a knowledge base.
pub struct MultitaskLinker {
    kb: Arc<KnowledgeBase>,
    tagger: MultitaskTagger,
    /// The concept of each class from 1; `None` if the knowledge base lacks it.
    concepts: Vec<Option<ConceptId>>,
    min_score: f32,
    top_k: usize,
    /// Detects the mentions of documents, for a model of spans that detects none.
    detector: Option<Box<dyn Annotator>>,
    /// Links the names of mentions, also to concepts that are no classes.
    name_linker: Option<Box<dyn Linker>>,
}

/// A document with labels of its given mentions.
struct GivenMentions {
    labelled: Labelled,
    /// For each mention its row among the labelled spans; `None` for a mention without words.
    rows: Vec<Option<usize>>,
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
        Link { nil: !self.has_best(span) || span.p_mention * p_link < self.min_score, candidates }
    }

    /// Whether the knowledge base has the best class.
    fn has_best(&self, span: &LinkedSpan) -> bool {
        span.classes.first().is_some_and(|(class, _)| self.concepts[class - 1].is_some())
    }

    /// Mentions of a text: those of the concept task, else those of the highest task that finds any, without symbols at their ends.
    fn linked(&self, text: &str, words: &TokenizedText, labelled: &Labelled) -> Vec<LinkedMention> {
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
            let mention = Mention {
                spans: vec![trimmed(text, words.span(span.first, span.last))?],
                semantic_type: type_of(span.first, span.last),
                p_mention: span.p_mention,
            };
            Some(self.linked_mention(mention, &span))
        };
        spans.into_iter().filter_map(one).collect()
    }

    /// A mention with its link. The type of the best class in the knowledge base takes precedence over that of the mention, also below the
    /// threshold, so linked and unlinked mentions have the same types.
    fn linked_mention(&self, mention: Mention, span: &LinkedSpan) -> LinkedMention {
        let link = self.link_of(span);
        let best = link.candidates.first().filter(|_| self.has_best(span));
        let of_kb = best.and_then(|best| self.kb.types(best.concept).next()).map(str::to_owned);
        let p_link = link.candidates.first().map_or(0.0, |best| best.p_link);
        let p_both = span.p_mention * p_link;
        LinkedMention { mention: Mention { semantic_type: of_kb.or(mention.semantic_type), ..mention }, p_both, link }
    }

    /// Labels of given mentions, whose boundaries become word boundaries.
    fn label_given(&self, inputs: &[LinkInput<'_>]) -> Result<Vec<GivenMentions>> {
        let hulls: Vec<Vec<Span>> = inputs.iter().map(hulls).collect::<Result<_>>()?;
        // An empty span is no boundary of other mentions.
        let some = |hulls: &Vec<Span>| hulls.iter().copied().filter(|hull| hull.start < hull.end).collect();
        let documents = inputs.iter().map(|marked| marked.document);
        let texts = self.read(&documents.collect::<Vec<_>>(), &hulls.iter().map(some).collect::<Vec<Vec<Span>>>());
        let mut all = Vec::with_capacity(inputs.len());
        let mut words: Vec<Vec<(usize, usize)>> = Vec::with_capacity(inputs.len());
        for (text, hulls) in texts.iter().zip(&hulls) {
            let mut known = Vec::with_capacity(hulls.len());
            let mut row = |hull: &Span| {
                known.push(text.words_in(*hull)?);
                Some(known.len() - 1)
            };
            all.push(hulls.iter().map(&mut row).collect::<Vec<Option<usize>>>());
            words.push(known);
        }
        let labelled = self.tagger.label(&texts, Some(&words))?;
        Ok(labelled.into_iter().zip(all).map(|(labelled, rows)| GivenMentions { labelled, rows }).collect())
    }

    /// Joins the links of classes with those of names: the probability that one of two independent sources is correct.
    fn join(&self, link: &mut Link, of_names: &Link, p_mention: f32) {
        for other in &of_names.candidates {
            match link.candidates.iter_mut().find(|candidate| candidate.concept == other.concept) {
                Some(candidate) => {
                    candidate.p_link = 1.0 - (1.0 - candidate.p_link) * (1.0 - other.p_link);
                    candidate.name = other.name;
                }
                None => link.candidates.push(*other),
            }
        }
        link.candidates.sort_by(|left, right| right.p_link.total_cmp(&left.p_link));
        link.candidates.truncate(self.top_k);
        link.nil = link.candidates.first().is_none_or(|best| p_mention * best.p_link < self.min_score);
    }

    /// Joins the links of found mentions with those of their names.
    fn join_all(
        &self,
        documents: &[Analysis<'_>],
        mut all: Vec<Vec<LinkedMention>>,
    ) -> Result<Vec<Vec<LinkedMention>>> {
        let Some(name_linker) = &self.name_linker else { return Ok(all) };
        let mentions: Vec<Vec<Mention>> =
            all.iter().map(|linked| linked.iter().map(|one| one.mention.clone()).collect()).collect();
        let of_names = name_linker.link(&LinkInput::all(documents, &mentions))?;
        for (one, of_names) in all.iter_mut().flatten().zip(of_names.iter().flatten()) {
            self.join(&mut one.link, of_names, one.mention.p_mention);
            let Some(best) = one.link.candidates.first() else { continue };
            one.p_both = one.mention.p_mention * best.p_link;
            if let Some(of_kb) = self.kb.types(best.concept).next().filter(|_| !one.link.nil) {
                one.mention.semantic_type = Some(of_kb.to_owned());
            }
        }
        Ok(all)
    }

    /// Types and links of detected mentions.
    fn annotate_detected(
        &self,
        detector: &dyn Annotator,
        documents: &[Analysis<'_>],
    ) -> Result<Vec<Vec<LinkedMention>>> {
        let found: Vec<Vec<Mention>> = detector
            .annotate(documents)?
            .into_iter()
            .map(|found| found.into_iter().map(|one| one.mention).collect())
            .collect();
        let labelled = self.label_given(&LinkInput::all(documents, &found))?;
        let one = |(mention, row, labelled): (Mention, Option<usize>, &Labelled)| {
            let class = row.and_then(|row| Some(labelled.type_spans.get(row)?.span.class));
            let own = class.and_then(|class| self.tagger.config.types.get(class - 1).cloned());
            let classes =
                row.and_then(|row| Some(labelled.concept_spans.get(row)?.classes.clone())).unwrap_or_default();
            let span = LinkedSpan { first: 0, last: 0, p_mention: mention.p_mention, classes };
            self.linked_mention(Mention { semantic_type: own.or(mention.semantic_type), ..mention }, &span)
        };
        let all = found.into_iter().zip(&labelled).map(|(found, GivenMentions { labelled, rows })| {
            found.into_iter().zip(rows).map(|(mention, row)| one((mention, *row, labelled))).collect()
        });
        Ok(all.collect())
    }

    fn read(&self, documents: &[&Analysis<'_>], boundaries: &[Vec<Span>]) -> Vec<TokenizedText> {
        let read = |(at, document): (usize, &&Analysis<'_>)| {
            self.tagger.splitter().read(document, boundaries.get(at).map_or(&[], Vec::as_slice))
        };
        documents.par_iter().enumerate().map(read).collect()
    }

    fn explanation(&self, compared: String, link: &Link) -> Explanation {
        let explain = |candidate: &Candidate| {
            let name = self.kb.names(candidate.concept).next()?;
            let odds = f64::from(log_odds(candidate.p_link));
            let meaning = match self.name_linker {
                Some(_) => "probability of the class in this context, joined with that of its names",
                None => "probability of the class in this context",
            };
            let part = contribution("concept", meaning, f64::from(candidate.p_link), odds);
            Some(explained(&self.kb, &compared, name, candidate, vec![part]))
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
            for GivenMentions { labelled, rows } in self.label_given(inputs)? {
                let none = || Link { candidates: Vec::new(), nil: true };
                let link = |row: Option<usize>| {
                    let span = row.and_then(|row| labelled.concept_spans.get(row));
                    span.map_or_else(none, |span| self.link_of(&LinkedSpan { p_mention: 1.0, ..span.clone() }))
                };
                all.push(rows.into_iter().map(link).collect::<Vec<Link>>());
            }
        }
        if let Some(name_linker) = &self.name_linker {
            let of_names = name_linker.link(inputs)?;
            let each = all.iter_mut().flatten().zip(of_names.iter().flatten());
            each.for_each(|(link, of_names)| self.join(link, of_names, 1.0));
        }
        Ok(all)
    }

    fn explain(&self, inputs: &[LinkInput<'_>]) -> Result<Vec<Vec<(Link, Explanation)>>> {
        let explain = |(marked, links): (&LinkInput<'_>, Vec<Link>)| {
            let one = |(mention, link): (&Mention, Link)| {
                let explanation = self.explanation(mention.surface(marked.document.text), &link);
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

    fn annotate(&self, documents: &[Analysis<'_>]) -> Result<Vec<Vec<LinkedMention>>> {
        let mut all = Vec::with_capacity(documents.len());
        for documents in documents.chunks(DOCUMENTS) {
            if let Some(detector) = &self.detector {
                all.extend(self.join_all(documents, self.annotate_detected(&**detector, documents)?)?);
                continue;
            }
            let texts = self.read(&documents.iter().collect::<Vec<_>>(), &[]);
            let labelled = self.tagger.label(&texts, None)?;
            let each = documents.iter().zip(&texts).zip(&labelled);
            let found = each.map(|((document, words), labelled)| self.linked(document.text, words, labelled));
            all.extend(self.join_all(documents, found.collect())?);
        }
        Ok(all)
    }

    fn explain(&self, documents: &[Analysis<'_>]) -> Result<Vec<Vec<(LinkedMention, Explanation)>>> {
        let explain = |(document, linked): (&Analysis<'_>, Vec<LinkedMention>)| {
            let one = |linked: LinkedMention| {
                let mut explanation = self.explanation(linked.mention.surface(document.text), &linked.link);
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
