//! The default system: mentions from a tagger and a dictionary, linked by lexical and dense similarity.
//!
//! The tagger proposes spans by entity type from context; the dictionary proposes names of the knowledge base. Each proposal is linked as a
//! name, with abbreviations expanded, and two logistic models score its features: one gives the probability that the span is a mention, the
//! other that span and concept are both correct.
//!
//! The tagger covers only some entity types, and the knowledge base may hold others. The tagger is therefore also run on the name of each
//! candidate concept. Where it tags that name, its probabilities count for mentions of the concept; otherwise the dictionary decides.

mod explain;
mod features;
pub mod fit;
mod nesting;
mod propose;

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

use canonym_core::Result;
use canonym_core::kb::subset::KbView;
use canonym_core::kb::{ConceptId, KnowledgeBase};
use canonym_core::link::explain::Explanation;
use canonym_core::link::lookalike::{is_word_not_acronym, only_looks_alike};
use canonym_core::link::recognise::accept::is_acronym;
use canonym_core::link::recognise::scan::ScanScratch;
use canonym_core::link::recognise::{
    DictionaryAnnotator, DictionaryMatch, Nested, Overlapping, RecogniseConfig, drop_inside_pieces, is_all_but_letters,
    is_other_type, is_preferred, keep_disjoint, nested_in,
};
use canonym_core::link::{Annotator, Candidate, Link, LinkedMention};
use canonym_core::text::analysis::Analysis;
use canonym_core::text::normalise::{canonical, fold};
use canonym_core::text::proper_names::is_given_name_or_country;
use canonym_core::text::words::{WordKind, kind_of};
use canonym_core::text::{Mention, Span};
use rayon::prelude::*;

use self::features::factors;
use crate::models::decision::{DESCRIBED, Decision, Factors, probability};
use crate::models::mention_prior::KbMentionPrior;
use crate::models::tagger::typed::{LabelSet, TaggerScratch, TypedTagger};
use crate::system::bridge::bridge;
use crate::system::hybrid::HybridLinker;

/// Buffers reused by a thread.
#[derive(Debug, Default)]
struct Scratch {
    tagger: TaggerScratch,
    scan: ScanScratch,
}

/// A span that may be a mention.
#[derive(Debug, Clone)]
pub struct SpanProposal {
    /// Hull of its spans.
    pub span: Span,
    /// Its spans; several if it is discontinuous.
    pub spans: Vec<Span>,
    /// The label set with the highest probability, and that probability.
    pub tagged: (usize, f32),
    /// Mention probability by label set.
    pub by_label_set: Vec<f32>,
    /// Probability of a mention of any type.
    pub any: f32,
    /// Highest probability of a longer tagger mention that contains it.
    pub inside: f32,
    /// The same for longer mentions with a dictionary match.
    pub inside_name: f32,
    /// Whether it follows `and`, `or` or a comma.
    pub is_conjunct: bool,
    /// Whether the sense inventory gives another sense, or one that the knowledge base lacks.
    pub is_other_sense: bool,
    /// The most probable sense that the knowledge base lacks under the names of the sense inventory, and its probability.
    pub absent_sense: Option<(String, f32)>,
    /// Sense probability of its first concept from the user's abbreviation file; zero without one.
    pub stated: f32,
    /// How much the text reads like a research article, from 0 to 1.
    pub research: f32,
    /// Whether the dictionary alone links it.
    pub is_dictionary_link: bool,
    /// The dictionary match of the span.
    pub dictionary_match: Option<DictionaryMatch>,
    /// The name it is linked by, with abbreviations expanded.
    pub name: String,
    /// Candidate concepts.
    pub link: Link,
    /// Features of the span and its first candidate.
    pub factors: Factors,
}

/// Detects and links mentions.
#[derive(Debug)]
pub struct Pipeline {
    kb: Arc<KnowledgeBase>,
    recognizer: Arc<TypedTagger>,
    dictionary: DictionaryAnnotator,
    linker: HybridLinker,
    prior: KbMentionPrior,
    decision: Decision,
    config: RecogniseConfig,
    /// By label set: whether the knowledge base covers its entity type.
    covered: Vec<bool>,
    scratches: Mutex<Vec<Scratch>>,
    /// Tagger probabilities on the names of concepts, by label set; filled on demand.
    marks: Mutex<HashMap<ConceptId, Arc<[f32]>>>,
}

/// From this score on, a text counts as a research article, and the mention prior applies to every name.
const MIN_RESEARCH: f32 = 0.5;

/// From this number of concepts on, a terminology has most of what everyday text mentions.
const MANY_CONCEPTS: usize = 10_000;

/// Pseudo-count of the exact name match against the mention prior.
const EXACT_PRIOR: f32 = 8.0;

/// Number of concepts sampled to determine the entity types that a knowledge base covers.
const N_ASKED: usize = 400;

impl Pipeline {
    /// A pipeline on one knowledge base. The dictionary should also propose unlikely matches.
    pub fn new(
        kb: Arc<KnowledgeBase>,
        recognizer: Arc<TypedTagger>,
        dictionary: DictionaryAnnotator,
        linker: HybridLinker,
        decision: Decision,
        config: RecogniseConfig,
    ) -> Pipeline {
        let prior = recognizer.prior.on(&kb).within(linker.subset());
        let mut pipeline = Pipeline {
            kb,
            recognizer,
            dictionary,
            linker,
            prior,
            decision,
            config,
            covered: Vec::new(),
            scratches: Mutex::default(),
            marks: Mutex::default(),
        };
        pipeline.covered = pipeline.coverage();
        pipeline
    }

    /// Entity types that the knowledge base covers.
    pub fn types(&self) -> Vec<&str> {
        let label_sets = self.recognizer.label_sets.iter().zip(&self.covered).filter(|(_, covered)| **covered);
        label_sets.filter_map(|(label_set, _)| label_set.name.as_deref()).collect()
    }

    /// By label set: whether the knowledge base covers its entity type.
    fn coverage(&self) -> Vec<bool> {
        let n = self.kb.n_concepts();
        let asked: Vec<usize> = (0..n.min(N_ASKED)).map(|row| row * n / n.min(N_ASKED)).collect();
        let each: Vec<Vec<f32>> = asked
            .par_iter()
            .map(|concept| {
                let name = self.kb.preferred_name(ConceptId(*concept as u32));
                self.with_scratch(|scratch| self.recognizer.marks_name(name, &mut scratch.tagger))
            })
            .collect();
        let n = each.len().max(1) as f32;
        let covered = |(label_set, label_set_type): (usize, &LabelSet)| {
            let coverage = each.iter().map(|of_name| of_name[label_set]).sum::<f32>() / n;
            label_set_type.name.is_some() && coverage >= label_set_type.covers
        };
        self.recognizer.label_sets.iter().enumerate().map(covered).collect()
    }

    fn with_scratch<T>(&self, work: impl FnOnce(&mut Scratch) -> T) -> T {
        let lock = || self.scratches.lock().unwrap_or_else(PoisonError::into_inner);
        let mut scratch = lock().pop().unwrap_or_default();
        let done = work(&mut scratch);
        lock().push(scratch);
        done
    }

    /// All span proposals with their candidates and features, in text order.
    pub fn proposals(&self, documents: &[Analysis<'_>]) -> Vec<Vec<SpanProposal>> {
        let proposed: Vec<Vec<SpanProposal>> =
            documents.par_iter().map(|document| self.with_scratch(|scratch| self.propose(document, scratch))).collect();
        // Proposals resolved by the sense inventory are not linked by name.
        let is_read = |proposal: &SpanProposal| {
            proposal.is_other_sense
                || proposal.dictionary_match.as_ref().is_some_and(|matched| matched.best().0.sense.is_some())
        };
        let unread = proposed.iter().flatten().filter(|proposal| !is_read(proposal));
        let names: Vec<&str> = unread.map(|proposal| proposal.name.as_str()).collect();
        let mut links = self.linker.link_names(&names).into_iter();
        let mut proposals = proposed;
        for proposal in proposals.iter_mut().flatten() {
            if !is_read(proposal) {
                proposal.link = links.next().unwrap_or_default();
            }
            self.choose(proposal);
            self.drop_lookalikes(proposal);
            self.bridge(proposal, is_read(proposal));
            // How corpora link a name counts little against an unambiguous name, and not at all outside of research articles, for names of
            // several words, undefined short forms, and forms whose sense the context tells.
            let is_name = proposal.dictionary_match.as_ref().is_some_and(DictionaryMatch::is_unambiguous);
            let is_research = proposal.research >= MIN_RESEARCH;
            if is_name && is_research && proposal.n_words() < MIN_WHOLE {
                self.prior.weigh_against(EXACT_PRIOR, &proposal.name, &mut proposal.link.candidates);
            } else if !is_name && !is_read(proposal) && (is_research || !is_acronym(&proposal.name)) {
                self.prior.weigh(&proposal.name, &mut proposal.link.candidates);
            }
        }
        self.ask_marks(proposals.iter().flatten());
        let marks = self.marks.lock().unwrap_or_else(PoisonError::into_inner);
        for proposal in proposals.iter_mut().flatten() {
            let of_concept = proposal.link.candidates.first().and_then(|best| marks.get(&best.concept));
            proposal.factors = factors(proposal, of_concept.map_or(&[], |marks| marks), &self.recognizer.label_sets);
        }
        proposals
    }

    /// Adds the concept that other names of the starter lead to, for a short form those of its sense.
    fn bridge(&self, proposal: &mut SpanProposal, is_read: bool) {
        let view = KbView { kb: &self.kb, subset: self.linker.subset() };
        let search = |name: &str| self.linker.link_names(&[name]).into_iter().next().unwrap_or_default();
        let top_k = proposal.link.candidates.len() + 1;
        if proposal.dictionary_match.is_some() {
            return;
        }
        match &proposal.absent_sense {
            Some((long, p_sense)) if proposal.is_other_sense => {
                // The links of other senses were dropped.
                bridge(view, long, top_k, &mut proposal.link, search);
                proposal.link.candidates.iter_mut().for_each(|candidate| candidate.p_link *= p_sense);
            }
            _ if !is_read => bridge(view, &proposal.name, top_k, &mut proposal.link, search),
            _ => {}
        }
    }

    /// Drops candidates whose name only looks like that of a proposal without a dictionary match.
    fn drop_lookalikes(&self, proposal: &mut SpanProposal) {
        if proposal.dictionary_match.is_some() {
            return;
        }
        let name = proposal.name.as_str();
        proposal.link.candidates.retain(|candidate| {
            let of_kb = candidate.name.map(|of_kb| self.kb.name(of_kb));
            of_kb.is_none_or(|of_kb| {
                !only_looks_alike(&self.kb, name, of_kb, Some(candidate.concept)) && !is_word_not_acronym(name, of_kb)
            })
        });
    }

    /// Adds the concepts of the dictionary match to the candidates. They come first unless both sides agree on the best one, or the match
    /// is ambiguous and unlikely.
    fn choose(&self, proposal: &mut SpanProposal) {
        if proposal.is_other_sense {
            proposal.link = Link { candidates: Vec::new(), nil: true };
            return;
        }
        let Some(matched) = &proposal.dictionary_match else { return };
        let read = |(reading, p_link): &(canonym_core::link::recognise::accept::SenseCandidate, f32)| Candidate {
            concept: reading.concept,
            name: Some(reading.name),
            p_link: *p_link,
        };
        // The dictionary puts the sense that fits the document first; for unambiguous names both sides agree.
        let best = matched.senses[0].0.concept;
        let is_sense = matched.best().0.sense.is_some();
        let agrees = proposal.link.candidates.first().is_some_and(|first| first.concept == best);
        let tagger_alone = matched.senses[0].1 < MIN_CHOOSING && !matched.is_unambiguous();
        if !is_sense && (agrees || tagger_alone) {
            return;
        }
        let mut candidates: Vec<Candidate> = matched.senses.iter().map(read).collect();
        if is_sense {
            proposal.link = Link { candidates, nil: false };
            return;
        }
        let p_link = proposal.link.candidates.first().map_or(0.0, |first| first.p_link);
        candidates[0].p_link = p_link.max(candidates[0].p_link);
        let others =
            proposal.link.candidates.iter().filter(|one| candidates.iter().all(|known| known.concept != one.concept));
        let others: Vec<Candidate> = others.copied().collect();
        candidates.extend(others);
        proposal.link.candidates = candidates;
    }

    /// Runs the tagger on the names of concepts not seen before.
    fn ask_marks<'a>(&self, proposals: impl Iterator<Item = &'a SpanProposal>) {
        let known = self.marks.lock().unwrap_or_else(PoisonError::into_inner);
        let firsts = proposals.filter_map(|proposal| proposal.link.candidates.first()).map(|best| best.concept);
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

    /// The output mentions of one document.
    pub fn decide(&self, text: &str, proposals: Vec<SpanProposal>) -> Vec<LinkedMention> {
        self.decide_with(text, &proposals).into_iter().map(|(_, linked)| linked).collect()
    }

    /// Like [`Pipeline::decide`], each output mention with the proposal that it was made of.
    pub fn decide_with<'a>(&self, text: &str, proposals: &'a [SpanProposal]) -> Vec<(&'a SpanProposal, LinkedMention)> {
        self.given(text, proposals).into_iter().map(|proposal| (proposal, self.linked(proposal))).collect()
    }

    /// The linker of proposals.
    pub fn linker(&self) -> &HybridLinker {
        &self.linker
    }

    /// Probability that the span of a proposal is a mention.
    pub fn p_mention(&self, proposal: &SpanProposal) -> f32 {
        probability(&self.decision.mention, &proposal.factors.features())
    }

    /// Link threshold of a proposal.
    fn min_link(&self, proposal: &SpanProposal) -> f32 {
        self.config.min_score.unwrap_or_else(|| self.decision.link_threshold(proposal))
    }

    /// The proposals that are output, after overlap suppression, in text order.
    fn given<'a>(&self, text: &str, proposals: &'a [SpanProposal]) -> Vec<&'a SpanProposal> {
        let decision = &self.decision;
        // A user's threshold below that of the model keeps less certain links.
        let is_asked = |proposal: &SpanProposal| {
            self.config.min_score.is_some_and(|threshold| decision.link(proposal) >= threshold)
        };
        let mut given: Vec<&SpanProposal> =
            proposals.iter().filter(|proposal| decision.gives(proposal) || is_asked(proposal)).collect();
        given.retain(|proposal| is_asked(proposal) || self.is_believable(proposal));
        given.retain(|proposal| !self.is_nil(proposal) || !is_given_name_or_country(proposal.span.of(text)));
        if self.config.nested != Nested::All {
            let all = given.clone();
            given.retain(|proposal| !proposal.is_nested());
            nesting::drop_inside_names(&mut given);
            given = suppress_overlaps(given, |proposal| proposal, decision);
            drop_inside_pieces(&mut given, |proposal| !self.is_nil(proposal), |proposal| proposal.is_conjunct);
            // In a terminology of one type, nested names are mostly parts of longer names that it lacks.
            if self.config.nested == Nested::OtherTypes && self.types().len() > 1 {
                let nested = self.nested_of_other_types(text, &given, all);
                given.extend(suppress_overlaps(nested, |proposal| proposal, decision));
            }
        }
        given.sort_by_key(|proposal| (proposal.span.start, Reverse(proposal.span.end)));
        given
    }

    /// The linked names nested in proposals that do not overlap: inside unlinked ones, and inside ones linked to another concept of another
    /// semantic type whose name is neither a preferred one nor that of a disorder of three words or more.
    fn nested_of_other_types<'a>(
        &self,
        text: &str,
        given: &[&'a SpanProposal],
        all: Vec<&'a SpanProposal>,
    ) -> Vec<&'a SpanProposal> {
        let known: HashSet<Span> = given.iter().map(|proposal| proposal.span).collect();
        let mut names = all;
        names.retain(|proposal| {
            let is_name = proposal.dictionary_match.is_some() && !proposal.is_discontinuous();
            is_name && !known.contains(&proposal.span) && !self.is_nil(proposal)
        });
        let is_whole = |proposal: &SpanProposal| {
            let best = proposal.link.candidates.first();
            best.is_some_and(|best| best.name.is_some_and(|name| is_preferred(&self.kb, best.concept, name)))
                || proposal.is_name_of_words() && proposal.n_words() >= MIN_WHOLE && proposal.is_headed_by_disorder()
        };
        nested_in(given, names, |proposal, outer| {
            let types = (self.semantic_type(proposal), self.semantic_type(outer));
            let concept = |of: &SpanProposal| of.link.candidates.first().map(|best| best.concept);
            let is_other =
                || is_other_type(types.0.as_deref(), types.1.as_deref()) && concept(proposal) != concept(outer);
            self.is_nil(outer) || !is_whole(outer) && is_other() && !is_all_but_letters(text, proposal.span, outer.span)
        })
    }

    /// Whether a proposal is linked, or may be output unlinked: what a large terminology lacks is rarely a mention unless it is a name, such as
    /// that of a rare disorder.
    fn is_believable(&self, proposal: &SpanProposal) -> bool {
        let of_tagger = self.recognizer.label_sets[proposal.tagged.0].name.as_deref();
        !self.decision.unlinked_names_only
            || proposal.research >= MIN_RESEARCH
            || self.kb.n_concepts() < MANY_CONCEPTS
            || proposal.name.contains(' ') && proposal.is_headed_by_disorder()
            || !of_tagger.is_some_and(|of| DESCRIBED.contains(&of))
            // Whatever threshold the user asks for.
            || self.decision.link(proposal) >= self.decision.link_threshold(proposal) && !proposal.link.candidates.is_empty()
    }

    /// Whether a proposal is not linked.
    fn is_nil(&self, proposal: &SpanProposal) -> bool {
        self.decision.link(proposal) < self.min_link(proposal) || proposal.link.candidates.is_empty()
    }

    /// The semantic type of a proposal: from the knowledge base if it is linked, else from the tagger.
    fn semantic_type(&self, proposal: &SpanProposal) -> Option<String> {
        let of_kb =
            || proposal.link.candidates.first().and_then(|best| self.kb.types(best.concept).next()).map(str::to_owned);
        let (label_set, tagged) = proposal.tagged;
        let of_tagger = || (tagged >= MIN_TYPED).then(|| self.recognizer.label_sets[label_set].name.clone()).flatten();
        if self.is_nil(proposal) { of_tagger().or_else(of_kb) } else { of_kb().or_else(of_tagger) }
    }

    fn linked(&self, proposal: &SpanProposal) -> LinkedMention {
        let p_both = self.decision.link(proposal);
        // Two models give the two probabilities; a mention with its concept is no more likely than the mention.
        let p_mention = probability(&self.decision.mention, &proposal.factors.features()).max(p_both);
        let mut link = proposal.link.clone();
        // The link has what is left, and the other candidates are scaled along.
        let first = link.candidates.first().map_or(1.0, |best| best.p_link).max(1e-6);
        let p_link = (p_both / p_mention.max(1e-6)).clamp(1e-6, 1.0);
        for candidate in &mut link.candidates {
            candidate.p_link = candidate.p_link.min(first) / first * p_link;
        }
        link.nil = self.is_nil(proposal);
        link.candidates.truncate(self.config.top_k.max(1));
        let mention = Mention { spans: proposal.spans.clone(), semantic_type: self.semantic_type(proposal), p_mention };
        LinkedMention { mention, link, p_both }
    }
}

/// Greedy non-maximum suppression by p(mention) + p(link); abbreviations of the user come first, then exact names of several words, the
/// longest before the others. `proposal` gives the proposal of an entry.
fn suppress_overlaps<T>(entries: Vec<T>, proposal: impl Fn(&T) -> &SpanProposal, decision: &Decision) -> Vec<T> {
    let weight = |proposal: &SpanProposal| {
        probability(&decision.mention, &proposal.factors.features()) + decision.link(proposal)
    };
    let mut weighed: Vec<(f32, T)> = entries.into_iter().map(|entry| (weight(proposal(&entry)), entry)).collect();
    let rank = |(weight, entry): &(f32, T)| ((proposal(entry).stated > 0.0, proposal(entry).n_exact_words()), *weight);
    weighed.sort_by(|left, right| {
        let ((left, of_left), (right, of_right)) = (rank(left), rank(right));
        right.cmp(&left).then(of_right.total_cmp(&of_left))
    });
    keep_disjoint(weighed, |(_, entry)| proposal(entry)).0.into_iter().map(|(_, entry)| entry).collect()
}

/// Dictionary matches below this probability do not choose the concept.
const MIN_CHOOSING: f32 = 0.2;

/// Highest tagger probability of a longer mention around a name that is linked for the dictionary alone.
const MAX_AROUND: f32 = 0.3;

/// Minimum number of words of an exact name that corpora do not overrule, and of the name of a disorder that stays whole, such as `chronic
/// kidney disease`.
const MIN_WHOLE: usize = 3;

/// Minimum tagger probability for using the tagger's entity type.
const MIN_TYPED: f32 = 0.3;

impl SpanProposal {
    /// Confidence of the recogniser alone, whatever the linker finds: the higher of the tagger's marginal probability of the span and the
    /// dictionary's probability of the match.
    pub fn recognition(&self) -> f32 {
        self.tagged.1.max(self.dictionary_match.as_ref().map_or(0.0, |matched| matched.best().1))
    }

    /// Whether it is an exact name of several words, ambiguous or not. Expanded abbreviations do not count.
    fn is_phrase(&self) -> bool {
        self.dictionary_match
            .as_ref()
            .is_some_and(|matched| matched.n_words > 1 && matched.is_exact() && !matched.expanded)
    }

    /// Probability that the dictionary gives the sense of a form of the sense inventory.
    fn sense_score(&self) -> Option<f32> {
        let (best, score) = self.dictionary_match.as_ref()?.best();
        best.sense.is_some().then_some(score)
    }

    /// Number of words of an exact name of several words, else 0.
    fn n_exact_words(&self) -> usize {
        if self.is_phrase() { self.dictionary_match.as_ref().map_or(0, |matched| matched.n_words) } else { 0 }
    }

    /// Whether it is an exact name of several words with one concept.
    fn is_name_of_words(&self) -> bool {
        self.is_phrase() && self.dictionary_match.as_ref().is_some_and(DictionaryMatch::is_unambiguous)
    }

    /// Whether the dictionary alone links it by a name that one concept has, and either gives it beside a longer name or no longer mention is
    /// likely around it.
    pub(super) fn is_dictionary_name(&self) -> bool {
        let is_inside = !self.is_nested() && self.inside.max(self.inside_name) > MAX_AROUND;
        self.is_dictionary_link
            && !is_inside
            && self.dictionary_match.as_ref().is_some_and(DictionaryMatch::is_unambiguous)
    }

    /// Number of words of the dictionary match, function words aside.
    fn n_words(&self) -> usize {
        self.dictionary_match.as_ref().map_or(0, |matched| matched.n_words)
    }

    /// Whether its last word is a general word for disorders: disease, failure, injury.
    fn is_headed_by_disorder(&self) -> bool {
        let last = self.name.split_whitespace().next_back().unwrap_or_default();
        kind_of(&canonical(&fold(last))) == WordKind::Disorder
    }

    /// Whether the dictionary gives it only beside a longer match.
    fn is_nested(&self) -> bool {
        self.dictionary_match.as_ref().is_some_and(|matched| matched.is_nested)
    }
}

impl Overlapping for SpanProposal {
    fn spans(&self) -> &[Span] {
        &self.spans
    }

    fn is_cause(&self) -> bool {
        self.dictionary_match.as_ref().is_some_and(|matched| matched.is_cause)
    }
}

impl Annotator for Pipeline {
    fn kb(&self) -> &KnowledgeBase {
        &self.kb
    }

    fn annotate(&self, documents: &[Analysis<'_>]) -> Result<Vec<Vec<LinkedMention>>> {
        let proposals = self.proposals(documents);
        let of_document = |(document, proposals): (&Analysis<'_>, _)| self.decide(document.text, proposals);
        let linked = documents.par_iter().zip(proposals).map(of_document).collect();
        self.linker.check_unchanged()?;
        Ok(linked)
    }

    fn explain(&self, documents: &[Analysis<'_>]) -> Result<Vec<Vec<(LinkedMention, Explanation)>>> {
        let explained = self.explain_all(documents);
        self.linker.check_unchanged()?;
        Ok(explained)
    }
}
