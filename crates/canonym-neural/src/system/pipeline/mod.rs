//! Mentions by the tagger and by the names of a knowledge base, linked by words and vectors: what `canonym link` does by default.
//!
//! Two recognisers propose: the tagger, which knows types from context, and the dictionary, which knows names of the knowledge base at hand. Each
//! proposal is linked as a name, its short forms written out, and two logistic models weigh what speaks for it: one says how likely the
//! place is a mention, one how likely place and concept are both right.
//!
//! The tagger was trained on some types only, and a knowledge base may hold others. So each concept is asked of the tagger, too: where the
//! tagger would mark the name of the concept, it has a say on its mentions; of other concepts the dictionary decides.

mod evidence;
mod explain;
pub mod fit;
mod nesting;

use self::evidence::{evidence, min_proposed};

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use canonym_core::Result;
use canonym_core::kb::{ConceptId, KnowledgeBase};
use canonym_core::link::explain::Explanation;
use canonym_core::link::lookalike::only_looks_alike;
use canonym_core::link::recognise::accept::is_acronym;
use canonym_core::link::recognise::scan::ScanScratch;
use canonym_core::link::recognise::{DictionaryAnnotator, DictionaryMatch, drop_non_mentions, expanded, short_forms};
use canonym_core::link::{Annotator, Candidate, Link, LinkedMention};
use canonym_core::text::register::research;
use canonym_core::text::tokens::{Gap, Token};
use canonym_core::text::words::is_prefix;
use canonym_core::text::{Document, Mention, Span};
use rayon::prelude::*;

use crate::models::decision::{Decision, Evidence, probability};
use crate::models::mention_prior::KbMentionPrior;
use crate::models::tagger::crf::Marked;
use crate::models::tagger::typed::{LabelSet, TaggerScratch, TypedTagger};
use crate::system::hybrid::HybridLinker;

/// Mentions of the tagger that are less likely are not looked at.
const LEAST_TAGGED: f32 = 0.1;

/// What a thread remembers of words.
#[derive(Debug, Default)]
struct Scratch {
    tagger: TaggerScratch,
    scan: ScanScratch,
}

/// A place that may be a mention.
#[derive(Debug, Clone)]
pub struct SpanProposal {
    /// From the first to the last byte.
    pub span: Span,
    /// Where its pieces stand.
    pub spans: Vec<Span>,
    /// The layer with the highest probability for it, and the probability.
    pub tagged: (usize, f32),
    /// The probability of each layer.
    pub of_layers: Vec<f32>,
    /// The probability of a mention of any type.
    pub any: f32,
    /// The probability of the likeliest longer mention that holds it.
    pub inside: f32,
    /// The same of those that the dictionary knows.
    pub inside_name: f32,
    /// Whether the sense inventory has it and gives another sense, or none that the knowledge base has.
    pub is_other_sense: bool,
    /// Sense probability of its first concept from a user's abbreviation file; zero where the file has none.
    pub stated: f32,
    /// How much its text reads like a research article.
    pub research: f32,
    /// What the dictionary reads there.
    pub spotted: Option<DictionaryMatch>,
    /// What it is linked as.
    pub name: String,
    /// The concepts that it may mean.
    pub link: Link,
    /// What speaks for it and for its first concept.
    pub evidence: Evidence,
}

/// Finds and links mentions.
#[derive(Debug)]
pub struct Pipeline {
    kb: Arc<KnowledgeBase>,
    recognizer: Arc<TypedTagger>,
    dictionary: DictionaryAnnotator,
    linker: HybridLinker,
    usages: KbMentionPrior,
    decision: Decision,
    config: PipelineConfig,
    /// Whether mentions of each layer are looked for in this knowledge base.
    covered: Vec<bool>,
    scratches: Mutex<Vec<Scratch>>,
    /// How far the tagger marks the names of concepts, by layer.
    marks: Mutex<HashMap<ConceptId, Arc<[f32]>>>,
}

/// What is given.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PipelineConfig {
    /// Candidates a mention.
    pub top_k: usize,
    /// Links less likely than this are not made; the threshold of the model where `None`.
    pub min_score: Option<f32>,
    /// Whether mentions inside longer ones are given, too.
    pub nested: bool,
}

/// How much a text reads like a research article where counts of corpora hold for every name.
const LEAST_RESEARCH: f32 = 0.5;

/// How many uses it is worth that one concept has a name.
const EXACT_PRIOR: f32 = 4.0;

/// Concepts whose names tell what types a knowledge base covers.
const N_ASKED: usize = 400;

impl Pipeline {
    /// A pipeline over one knowledge base. The dictionary should give unlikely proposals, too.
    pub fn new(
        kb: Arc<KnowledgeBase>,
        recognizer: Arc<TypedTagger>,
        dictionary: DictionaryAnnotator,
        linker: HybridLinker,
        (decision, config): (Decision, PipelineConfig),
    ) -> Pipeline {
        let usages = recognizer.usages.on(&kb).within(linker.subset());
        let mut pipeline = Pipeline {
            kb,
            recognizer,
            dictionary,
            linker,
            usages,
            decision,
            config,
            covered: Vec::new(),
            scratches: Mutex::default(),
            marks: Mutex::default(),
        };
        pipeline.covered = pipeline.coverage();
        pipeline
    }

    /// The types that the knowledge base covers.
    pub fn types(&self) -> Vec<&str> {
        let layers = self.recognizer.layers.iter().zip(&self.covered).filter(|(_, covered)| **covered);
        layers.filter_map(|(layer, _)| layer.name.as_deref()).collect()
    }

    /// The layers whose types the knowledge base covers.
    fn coverage(&self) -> Vec<bool> {
        let n = self.kb.n_concepts();
        let asked: Vec<usize> = (0..n.min(N_ASKED)).map(|place| place * n / n.min(N_ASKED)).collect();
        let each: Vec<Vec<f32>> = asked
            .par_iter()
            .map(|concept| {
                let name = self.kb.preferred_name(ConceptId(*concept as u32));
                self.with_scratch(|scratch| self.recognizer.marks_name(name, &mut scratch.tagger))
            })
            .collect();
        let n = each.len().max(1) as f32;
        let covered = |(layer, layer_type): (usize, &LabelSet)| {
            let share = each.iter().map(|of_name| of_name[layer]).sum::<f32>() / n;
            layer_type.name.is_some() && share >= layer_type.covers
        };
        self.recognizer.layers.iter().enumerate().map(covered).collect()
    }

    fn with_scratch<T>(&self, work: impl FnOnce(&mut Scratch) -> T) -> T {
        let lock = || self.scratches.lock().unwrap_or_else(PoisonError::into_inner);
        let mut scratch = lock().pop().unwrap_or_default();
        let done = work(&mut scratch);
        lock().push(scratch);
        done
    }

    /// Every place that is proposed, with what speaks for it, in text order.
    pub fn proposals(&self, documents: &[Document]) -> Vec<Vec<SpanProposal>> {
        let proposed: Vec<Vec<SpanProposal>> =
            documents.par_iter().map(|document| self.with_scratch(|scratch| self.propose(document, scratch))).collect();
        // What the inventory of senses has read is not looked for by its name.
        let is_read = |place: &SpanProposal| {
            place.is_other_sense || place.spotted.as_ref().is_some_and(|spotted| spotted.best().0.sense.is_some())
        };
        let unread = proposed.iter().flatten().filter(|place| !is_read(place));
        let names: Vec<&str> = unread.map(|place| place.name.as_str()).collect();
        let mut links = self.linker.link_names(&names).into_iter();
        let mut proposals = proposed;
        for place in proposals.iter_mut().flatten() {
            if !is_read(place) {
                place.link = links.next().unwrap_or_default();
            }
            self.choose(place);
            self.drop_lookalikes(place);
            // In other texts than the corpora have, a name of one concept means that concept, and what they used an undefined short form for says little.
            let is_name = place.spotted.as_ref().is_some_and(DictionaryMatch::is_unambiguous);
            let is_research = place.research >= LEAST_RESEARCH;
            if is_name && is_research {
                self.usages.weigh_against(EXACT_PRIOR, &place.name, &mut place.link.candidates);
            } else if is_research || !is_name && !is_acronym(&place.name) && !is_read(place) {
                self.usages.weigh(&place.name, &mut place.link.candidates);
            }
        }
        self.ask_marks(proposals.iter().flatten());
        let marks = self.marks.lock().unwrap_or_else(PoisonError::into_inner);
        for place in proposals.iter_mut().flatten() {
            let of_concept = place.link.candidates.first().and_then(|best| marks.get(&best.concept));
            place.evidence = evidence(place, of_concept.map_or(&[], |marks| marks), &self.recognizer.layers);
        }
        proposals
    }

    fn propose(&self, document: &Document, scratch: &mut Scratch) -> Vec<SpanProposal> {
        let text = document.text.as_str();
        let layers = &self.recognizer.layers;
        let (view, tagged) = self
            .recognizer
            .read(text, &mut scratch.tagger, |layer| layers[layer].any_type || layers[layer].name.is_some());
        let uses = short_forms(text);
        let mut proposals: Vec<SpanProposal> = Vec::new();
        let mut place_of: HashMap<Vec<Span>, usize> = HashMap::new();
        let mut found = Vec::new();
        let mut marked: Vec<Marked> = Vec::new();
        for layer in (0..layers.len()).filter(|layer| layers[*layer].any_type || layers[*layer].name.is_some()) {
            found.clear();
            tagged.mentions(layer, LEAST_TAGGED, &mut found);
            marked.extend_from_slice(&found);
            if !self.covered[layer] {
                continue;
            }
            let least = min_proposed(layers[layer].name.as_deref().unwrap_or_default());
            let likely = found.iter().filter(|mark| mark.probability >= least);
            for mark in likely.filter(|mark| is_whole(text, &view.tokens, (mark.first, mark.last))) {
                let span = Span { start: view.tokens[mark.first].span.start, end: view.tokens[mark.last].span.end };
                let span = closed(text, span);
                place_of.entry(vec![span]).or_insert_with(|| {
                    proposals.push(SpanProposal::new(text, vec![span], &uses));
                    proposals.len() - 1
                });
            }
        }
        let (spotted, sensed) = self.dictionary.spot_and_sense(document, &mut scratch.scan);
        for spotted in spotted {
            let at = *place_of.entry(spotted.spans.clone()).or_insert_with(|| {
                proposals.push(SpanProposal::new(text, spotted.spans.clone(), &uses));
                proposals.len() - 1
            });
            proposals[at].spotted = Some(spotted);
        }
        for sensed in &sensed {
            if let Some(at) = place_of.get([sensed.span].as_slice()) {
                let place = &mut proposals[*at];
                place.is_other_sense = place.spotted.is_none();
                if let (true, Some(first)) = (sensed.is_own, sensed.concepts.first()) {
                    place.stated = first.2;
                }
            }
        }
        nesting::find_other_senses(&mut proposals, &sensed);
        nesting::find_longer(&mut proposals, &view.tokens, marked);
        drop_non_mentions(text, &mut proposals, |place| place.span);
        nesting::drop_pieces(&mut proposals);
        let any = layers.iter().position(|layer| layer.any_type);
        let research = research(text);
        for place in &mut proposals {
            place.research = research;
            let within = |span: Span| {
                let first = view.tokens.partition_point(|token| token.span.end <= span.start);
                let end = view.tokens.partition_point(|token| token.span.start < span.end);
                (first < end).then(|| (first, end - 1))
            };
            // Many corpora mark the whole of a coordination, so the pieces of a name and all of it speak for it.
            let mut windows: Vec<(usize, usize)> = Vec::new();
            windows.extend(within(place.span));
            if place.spans.len() > 1 {
                windows.extend(place.spans.iter().filter_map(|span| within(*span)));
            }
            let of = |layer: usize| {
                windows.iter().map(|(first, last)| tagged.mention(layer, *first, *last)).fold(0.0, f32::max)
            };
            place.of_layers =
                (0..layers.len()).map(|layer| if layers[layer].name.is_some() { of(layer) } else { 0.0 }).collect();
            place.any = any.map_or(0.0, of);
            for layer in (0..layers.len()).filter(|layer| self.covered[*layer]) {
                if place.of_layers[layer] > place.tagged.1 {
                    place.tagged = (layer, place.of_layers[layer]);
                }
            }
        }
        proposals.sort_by_key(|place| (place.span.start, Reverse(place.span.end)));
        proposals
    }

    /// Drops candidates that only look like the name of a place that is no name of the knowledge base.
    fn drop_lookalikes(&self, place: &mut SpanProposal) {
        if place.spotted.is_some() {
            return;
        }
        let name = place.name.as_str();
        place.link.candidates.retain(|candidate| {
            candidate.name.is_none_or(|of_kb| !only_looks_alike(&self.kb, name, self.kb.name(of_kb)))
        });
    }

    /// Names that the dictionary knows take its concepts along, the better one of both sides first.
    fn choose(&self, place: &mut SpanProposal) {
        if place.is_other_sense {
            place.link = Link { candidates: Vec::new(), nil: true };
            return;
        }
        let Some(spotted) = &place.spotted else { return };
        let read = |(reading, score): &(canonym_core::link::recognise::accept::SenseCandidate, f32)| Candidate {
            concept: reading.concept,
            name: Some(reading.name),
            score: *score,
        };
        // Of homonyms the one that the document speaks of is first in the dictionary; names that are no homonyms agree in both.
        let best = spotted.readings[0].0.concept;
        let is_sense = spotted.best().0.sense.is_some();
        let agrees = place.link.candidates.first().is_some_and(|first| first.concept == best);
        let tagger_alone = spotted.readings[0].1 < LEAST_READ && !spotted.is_unambiguous();
        if !is_sense && (agrees || tagger_alone) {
            return;
        }
        let mut candidates: Vec<Candidate> = spotted.readings.iter().map(read).collect();
        if is_sense {
            place.link = Link { candidates, nil: false };
            return;
        }
        let score = place.link.candidates.first().map_or(0.0, |first| first.score);
        candidates[0].score = score.max(candidates[0].score);
        let others =
            place.link.candidates.iter().filter(|one| candidates.iter().all(|known| known.concept != one.concept));
        let others: Vec<Candidate> = others.copied().collect();
        candidates.extend(others);
        place.link.candidates = candidates;
    }

    /// Finds out how far the tagger marks the names of concepts that were not met before.
    fn ask_marks<'a>(&self, proposals: impl Iterator<Item = &'a SpanProposal>) {
        let known = self.marks.lock().unwrap_or_else(PoisonError::into_inner);
        let firsts = proposals.filter_map(|place| place.link.candidates.first()).map(|best| best.concept);
        let mut new: Vec<ConceptId> = firsts.filter(|concept| !known.contains_key(concept)).collect();
        drop(known);
        new.sort_unstable();
        new.dedup();
        let marks = |concept: &ConceptId| {
            let name = self.kb.preferred_name(*concept);
            let marks = self.with_scratch(|scratch| self.recognizer.marks_name(name, &mut scratch.tagger));
            (*concept, Arc::from(marks))
        };
        let found: Vec<(ConceptId, Arc<[f32]>)> = new.par_iter().map(marks).collect();
        self.marks.lock().unwrap_or_else(PoisonError::into_inner).extend(found);
    }

    /// The mentions that are given of the proposals of one document.
    pub fn decide(&self, proposals: Vec<SpanProposal>) -> Vec<LinkedMention> {
        self.given(proposals).iter().map(|place| self.linked(place)).collect()
    }

    /// The mentions of each document without their links; their scores are the probabilities that they are mentions.
    pub fn mentions(&self, documents: &[Document]) -> Vec<Vec<Mention>> {
        let mention = |place: SpanProposal| {
            let semantic_type = self.linked(&place).mention.semantic_type;
            Mention { semantic_type, score: probability(&self.decision.mention, &place.evidence), spans: place.spans }
        };
        self.proposals(documents)
            .into_par_iter()
            .map(|proposals| self.given(proposals).into_iter().map(mention).collect())
            .collect()
    }

    /// Links of a place less likely than this are not made.
    fn min_link(&self, place: &SpanProposal) -> f32 {
        self.config.min_score.unwrap_or_else(|| self.decision.least(place))
    }

    /// The proposals that are given, overlaps resolved, in text order.
    fn given(&self, proposals: Vec<SpanProposal>) -> Vec<SpanProposal> {
        let decision = &self.decision;
        // Links that are less sure than usual are given where they are asked for.
        let is_asked = |place: &SpanProposal| self.config.min_score.is_some_and(|least| decision.link(place) >= least);
        let mut given: Vec<SpanProposal> =
            proposals.into_iter().filter(|place| decision.gives(place) || is_asked(place)).collect();
        if !self.config.nested {
            nesting::drop_inside_names(&mut given);
            given = suppress_overlaps(given, |place| place, decision);
        }
        given.sort_by_key(|place| (place.span.start, Reverse(place.span.end)));
        given
    }

    fn linked(&self, place: &SpanProposal) -> LinkedMention {
        let probability = self.decision.link(place);
        let mut link = place.link.clone();
        let of_kb = link.candidates.first().and_then(|best| self.kb.types(best.concept).next()).map(str::to_owned);
        let (layer, tagged) = place.tagged;
        let of_tagger = (tagged >= LEAST_TYPED).then(|| self.recognizer.layers[layer].name.clone()).flatten();
        // The first concept is as likely as the link; others stay behind it.
        let first = link.candidates.first().map_or(1.0, |best| best.score).max(1e-6);
        for candidate in &mut link.candidates {
            candidate.score = candidate.score.min(first) / first * probability;
        }
        link.nil = probability < self.min_link(place) || link.candidates.is_empty();
        link.candidates.truncate(self.config.top_k.max(1));
        // A concept has the type that its knowledge base says, a mention without one that of the tagger.
        let semantic_type = if link.nil { of_tagger.or(of_kb) } else { of_kb.or(of_tagger) };
        // A link is as likely as place and concept are right, a mention without one as its place is.
        let score = if link.nil {
            crate::models::decision::probability(&self.decision.mention, &place.evidence)
        } else {
            probability
        };
        let mention = Mention { spans: place.spans.clone(), semantic_type, score };
        LinkedMention { mention, link }
    }
}

/// Of proposals that share text the ones that most speaks for, exact names of several words and one concept before all others; those in pieces clash with none, nor does the cause that a longer name begins with.
/// `place` tells of which place an entry is.
fn suppress_overlaps<T>(entries: Vec<T>, place: impl Fn(&T) -> &SpanProposal, decision: &Decision) -> Vec<T> {
    let weight = |place: &SpanProposal| probability(&decision.mention, &place.evidence) + decision.link(place);
    let mut weighed: Vec<(f32, T)> = entries.into_iter().map(|entry| (weight(place(&entry)), entry)).collect();
    let rank = |(weight, entry): &(f32, T)| (place(entry).is_name_of_words(), *weight);
    weighed.sort_by(|left, right| {
        let ((left, of_left), (right, of_right)) = (rank(left), rank(right));
        right.cmp(&left).then(of_right.total_cmp(&of_left))
    });
    let mut taken: BTreeMap<u32, u32> = BTreeMap::new();
    weighed.retain(|(_, entry)| {
        let place = place(entry);
        let span = place.span;
        let Some((start, _)) = taken.range(..span.end).next_back().filter(|(_, end)| **end > span.start) else {
            if place.spans.len() == 1 {
                taken.insert(span.start, span.end);
            }
            return true;
        };
        place.spans.len() > 1 || place.is_cause() && *start == span.start
    });
    weighed.into_iter().map(|(_, entry)| entry).collect()
}

/// Readings of the dictionary less likely than this do not choose the concept.
const LEAST_READ: f32 = 0.2;

/// From here on the type of the tagger is given.
const LEAST_TYPED: f32 = 0.3;

impl SpanProposal {
    /// Whether it is an exact name of several words, of one concept or more. A short form is none, whatever it stands for.
    fn is_phrase(&self) -> bool {
        self.spotted.as_ref().is_some_and(|spotted| spotted.n_words > 1 && spotted.is_exact() && !spotted.expanded)
    }

    /// Whether it is an exact name of several words that one concept has.
    fn is_name_of_words(&self) -> bool {
        self.is_phrase() && self.spotted.as_ref().is_some_and(DictionaryMatch::is_unambiguous)
    }

    /// Whether it is named as a cause, as the drug in `lithium-induced tremor`.
    fn is_cause(&self) -> bool {
        self.spotted.as_ref().is_some_and(|spotted| spotted.is_cause)
    }

    fn new(text: &str, spans: Vec<Span>, uses: &[(Span, Span)]) -> SpanProposal {
        let hull = Span { start: spans[0].start, end: spans[spans.len() - 1].end };
        let name = expanded(text, &spans, uses);
        SpanProposal {
            span: hull,
            spans,
            tagged: (0, 0.0),
            of_layers: Vec::new(),
            any: 0.0,
            inside: 0.0,
            inside_name: 0.0,
            is_other_sense: false,
            stated: 0.0,
            research: 0.0,
            spotted: None,
            name,
            link: Link::default(),
            evidence: [0.0; crate::models::decision::N_FEATURES],
        }
    }
}

/// Whether a window of tokens begins and ends where words do: a prefix such as `pre-` belongs to the word behind it.
fn is_whole(text: &str, tokens: &[Token], (first, last): (usize, usize)) -> bool {
    let is_joined = |at: usize| tokens.get(at).is_some_and(|token| token.before == Gap::Glued);
    let follows_prefix = tokens[first].before == Gap::Hyphen && first > 0 && is_prefix(tokens[first - 1].span.of(text));
    let within = &text[tokens[first].span.start as usize..tokens[last].span.end as usize];
    let begins_inside = first > 0 && is_joined(first);
    !(begins_inside || is_joined(last + 1) || follows_prefix || within.contains('\n'))
}

/// Takes along the bracket that a span opened or closed and left out: `poly(ADP-ribose` gets its `)`.
fn closed(text: &str, span: Span) -> Span {
    let inside = span.of(text);
    let before = text[..span.start as usize].chars().next_back();
    let behind = text[span.end as usize..].chars().next();
    for (open, close) in [('(', ')'), ('[', ']')] {
        let (n_open, n_close) = (inside.matches(open).count(), inside.matches(close).count());
        if n_open > n_close && behind == Some(close) {
            return Span { start: span.start, end: span.end + 1 };
        }
        if n_close > n_open && before == Some(open) {
            return Span { start: span.start - 1, end: span.end };
        }
    }
    span
}

impl Annotator for Pipeline {
    fn kb(&self) -> &KnowledgeBase {
        &self.kb
    }

    fn annotate(&self, documents: &[Document]) -> Result<Vec<Vec<LinkedMention>>> {
        let proposals = self.proposals(documents);
        Ok(proposals.into_par_iter().map(|proposals| self.decide(proposals)).collect())
    }

    fn explain(&self, documents: &[Document]) -> Result<Vec<Vec<(LinkedMention, Explanation)>>> {
        Ok(self.explain_all(documents))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_forms_are_written_out_and_brackets_closed() {
        let text = "Liver disease (LD) and LD cirrhosis of poly(ADP-ribose) polymerase";
        let uses = short_forms(text);
        let span = |of: &str, from: usize| {
            let start = from + text[from..].find(of).unwrap();
            Span::new(start, start + of.len())
        };
        assert_eq!(expanded(text, &[span("LD cirrhosis", 0)], &uses), "Liver disease cirrhosis");
        assert_eq!(expanded(text, &[span("LD", 0)], &uses), "Liver disease");
        assert_eq!(expanded(text, &[span("Liver disease (LD)", 0)], &uses), "Liver disease (LD)");
        assert_eq!(closed(text, span("poly(ADP-ribose", 0)).of(text), "poly(ADP-ribose)");
        assert_eq!(closed(text, span("Liver", 0)).of(text), "Liver");
    }
}
