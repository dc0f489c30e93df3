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

use self::features::{features, min_proposed};

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use canonym_core::Result;
use canonym_core::kb::{ConceptId, KnowledgeBase};
use canonym_core::link::explain::Explanation;
use canonym_core::link::lookalike::only_looks_alike;
use canonym_core::link::recognise::accept::is_acronym;
use canonym_core::link::recognise::scan::ScanScratch;
use canonym_core::link::recognise::{
    DictionaryAnnotator, DictionaryMatch, Nested, RecogniseConfig, drop_non_mentions, expanded, is_preferred,
};
use canonym_core::link::{Annotator, Candidate, Link, LinkedMention};
use canonym_core::text::analysis::Analysis;
use canonym_core::text::register::research;
use canonym_core::text::tokens::{Gap, Token};
use canonym_core::text::words::is_prefix;
use canonym_core::text::{Document, Mention, Span};
use rayon::prelude::*;

use crate::layers::crf::bilou::Marked;
use crate::models::decision::{Decision, Features, probability};
use crate::models::mention_prior::KbMentionPrior;
use crate::models::tagger::typed::{LabelSet, TaggerScratch, TypedTagger};
use crate::system::hybrid::HybridLinker;

/// Tagger mentions below this probability are ignored.
const MIN_TAGGED: f32 = 0.1;

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
    /// Sense probability of its first concept from the user's abbreviation file; zero without one.
    pub stated: f32,
    /// How much the text reads like a research article, from 0 to 1.
    pub research: f32,
    /// The dictionary match of the span.
    pub dictionary_match: Option<DictionaryMatch>,
    /// The name it is linked by, with abbreviations expanded.
    pub name: String,
    /// Candidate concepts.
    pub link: Link,
    /// Features of the span and its first candidate.
    pub features: Features,
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

/// Pseudo-count of the exact name match against the mention prior.
const EXACT_PRIOR: f32 = 4.0;

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
    pub fn proposals(&self, documents: &[Document]) -> Vec<Vec<SpanProposal>> {
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
            // Outside research articles, an unambiguous name keeps its concept, and the prior of an undefined short form is not used.
            let is_name = proposal.dictionary_match.as_ref().is_some_and(DictionaryMatch::is_unambiguous);
            let is_research = proposal.research >= MIN_RESEARCH;
            if is_name && is_research {
                self.prior.weigh_against(EXACT_PRIOR, &proposal.name, &mut proposal.link.candidates);
            } else if is_research || !is_name && !is_acronym(&proposal.name) && !is_read(proposal) {
                self.prior.weigh(&proposal.name, &mut proposal.link.candidates);
            }
        }
        self.ask_marks(proposals.iter().flatten());
        let marks = self.marks.lock().unwrap_or_else(PoisonError::into_inner);
        for proposal in proposals.iter_mut().flatten() {
            let of_concept = proposal.link.candidates.first().and_then(|best| marks.get(&best.concept));
            proposal.features = features(proposal, of_concept.map_or(&[], |marks| marks), &self.recognizer.label_sets);
        }
        proposals
    }

    fn propose(&self, document: &Document, scratch: &mut Scratch) -> Vec<SpanProposal> {
        let (text, analysis) = (document.text.as_str(), Analysis::new(&document.text));
        let label_sets = &self.recognizer.label_sets;
        let (features, tagged) = self.recognizer.read(&analysis, &mut scratch.tagger, |label_set| {
            label_sets[label_set].any_type || label_sets[label_set].name.is_some()
        });
        let uses = analysis.short_forms();
        let mut proposals: Vec<SpanProposal> = Vec::new();
        let mut index_of: HashMap<Vec<Span>, usize> = HashMap::new();
        let mut found = Vec::new();
        let mut marked: Vec<Marked> = Vec::new();
        for label_set in (0..label_sets.len())
            .filter(|label_set| label_sets[*label_set].any_type || label_sets[*label_set].name.is_some())
        {
            found.clear();
            tagged.mentions(label_set, MIN_TAGGED, &mut found);
            marked.extend_from_slice(&found);
            if !self.covered[label_set] {
                continue;
            }
            let threshold = min_proposed(label_sets[label_set].name.as_deref().unwrap_or_default());
            let likely = found.iter().filter(|mark| mark.probability >= threshold);
            for mark in likely.filter(|mark| is_whole(text, &features.tokens, (mark.first, mark.last))) {
                let span =
                    Span { start: features.tokens[mark.first].span.start, end: features.tokens[mark.last].span.end };
                let span = closed(text, span);
                index_of.entry(vec![span]).or_insert_with(|| {
                    proposals.push(SpanProposal::new(text, vec![span], uses));
                    proposals.len() - 1
                });
            }
        }
        let (matched, sensed) = self.dictionary.spot_and_sense(&analysis, &mut scratch.scan);
        for matched in matched {
            if matched.is_nested {
                let proposal = SpanProposal::new(text, matched.spans.clone(), uses);
                proposals.push(SpanProposal { dictionary_match: Some(matched), ..proposal });
                continue;
            }
            let at = *index_of.entry(matched.spans.clone()).or_insert_with(|| {
                proposals.push(SpanProposal::new(text, matched.spans.clone(), uses));
                proposals.len() - 1
            });
            proposals[at].dictionary_match = Some(matched);
        }
        for sensed in &sensed {
            if let Some(at) = index_of.get([sensed.span].as_slice()) {
                let proposal = &mut proposals[*at];
                proposal.is_other_sense = proposal.dictionary_match.is_none();
                if let (true, Some(first)) = (sensed.is_own, sensed.concepts.first()) {
                    proposal.stated = first.2;
                }
            }
        }
        nesting::find_other_senses(&mut proposals, &sensed);
        nesting::find_longer(&mut proposals, &features.tokens, marked);
        drop_non_mentions(text, &mut proposals, |proposal| proposal.span);
        nesting::drop_pieces(&mut proposals);
        let any = label_sets.iter().position(|label_set| label_set.any_type);
        let research = research(text);
        for proposal in &mut proposals {
            proposal.research = research;
            let within = |span: Span| {
                let first = features.tokens.partition_point(|token| token.span.end <= span.start);
                let end = features.tokens.partition_point(|token| token.span.start < span.end);
                (first < end).then(|| (first, end - 1))
            };
            // Many corpora annotate a whole coordination, so both the parts of a discontinuous name and its hull count.
            let mut windows: Vec<(usize, usize)> = Vec::new();
            windows.extend(within(proposal.span));
            if proposal.spans.len() > 1 {
                windows.extend(proposal.spans.iter().filter_map(|span| within(*span)));
            }
            let of = |label_set: usize| {
                windows.iter().map(|(first, last)| tagged.mention(label_set, *first, *last)).fold(0.0, f32::max)
            };
            proposal.by_label_set = (0..label_sets.len())
                .map(|label_set| if label_sets[label_set].name.is_some() { of(label_set) } else { 0.0 })
                .collect();
            proposal.any = any.map_or(0.0, of);
            for label_set in (0..label_sets.len()).filter(|label_set| self.covered[*label_set]) {
                if proposal.by_label_set[label_set] > proposal.tagged.1 {
                    proposal.tagged = (label_set, proposal.by_label_set[label_set]);
                }
            }
        }
        proposals.sort_by_key(|proposal| (proposal.span.start, Reverse(proposal.span.end)));
        proposals
    }

    /// Drops candidates whose name only looks like that of a proposal without a dictionary match.
    fn drop_lookalikes(&self, proposal: &mut SpanProposal) {
        if proposal.dictionary_match.is_some() {
            return;
        }
        let name = proposal.name.as_str();
        proposal.link.candidates.retain(|candidate| {
            candidate.name.is_none_or(|of_kb| !only_looks_alike(&self.kb, name, self.kb.name(of_kb)))
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
    pub fn decide(&self, proposals: Vec<SpanProposal>) -> Vec<LinkedMention> {
        self.given(&proposals).into_iter().map(|proposal| self.linked(proposal)).collect()
    }

    /// Link threshold of a proposal.
    fn min_link(&self, proposal: &SpanProposal) -> f32 {
        self.config.min_score.unwrap_or_else(|| self.decision.link_threshold(proposal))
    }

    /// The proposals that are output, after overlap suppression, in text order.
    fn given<'a>(&self, proposals: &'a [SpanProposal]) -> Vec<&'a SpanProposal> {
        let decision = &self.decision;
        // A user's threshold below that of the model keeps less certain links.
        let is_asked = |proposal: &SpanProposal| {
            self.config.min_score.is_some_and(|threshold| decision.link(proposal) >= threshold)
        };
        let mut given: Vec<&SpanProposal> =
            proposals.iter().filter(|proposal| decision.gives(proposal) || is_asked(proposal)).collect();
        if self.config.nested != Nested::All {
            let all = given.clone();
            given.retain(|proposal| !proposal.is_nested());
            nesting::drop_inside_names(&mut given);
            given = suppress_overlaps(given, |proposal| proposal, decision);
            nesting::drop_inside_pieces(&mut given, |proposal| !self.is_nil(proposal));
            // In a terminology of one type, nested names are mostly parts of longer names that it lacks.
            if self.config.nested == Nested::OtherTypes && self.types().len() > 1 {
                let is_linked = |proposal: &SpanProposal| !self.is_nil(proposal);
                let is_whole = |proposal: &SpanProposal| {
                    let best = proposal.link.candidates.first();
                    best.is_some_and(|best| best.name.is_some_and(|name| is_preferred(&self.kb, best.concept, name)))
                };
                let kind = |proposal: &SpanProposal| self.semantic_type(proposal);
                let suppress = |nested| suppress_overlaps(nested, |proposal: &&SpanProposal| *proposal, decision);
                nesting::add_other_types(&mut given, all, is_linked, is_whole, kind, suppress);
            }
        }
        given.sort_by_key(|proposal| (proposal.span.start, Reverse(proposal.span.end)));
        given
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
        let p_mention = probability(&self.decision.mention, &proposal.features).max(p_both);
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
/// longest before the others.
/// Discontinuous spans never conflict, nor does a cause at the start of a longer name. `proposal` gives the proposal of an entry.
fn suppress_overlaps<T>(entries: Vec<T>, proposal: impl Fn(&T) -> &SpanProposal, decision: &Decision) -> Vec<T> {
    let weight = |proposal: &SpanProposal| probability(&decision.mention, &proposal.features) + decision.link(proposal);
    let mut weighed: Vec<(f32, T)> = entries.into_iter().map(|entry| (weight(proposal(&entry)), entry)).collect();
    let rank = |(weight, entry): &(f32, T)| ((proposal(entry).stated > 0.0, proposal(entry).n_exact_words()), *weight);
    weighed.sort_by(|left, right| {
        let ((left, of_left), (right, of_right)) = (rank(left), rank(right));
        right.cmp(&left).then(of_right.total_cmp(&of_left))
    });
    let mut taken: BTreeMap<u32, u32> = BTreeMap::new();
    weighed.retain(|(_, entry)| {
        let proposal = proposal(entry);
        let span = proposal.span;
        let Some((start, _)) = taken.range(..span.end).next_back().filter(|(_, end)| **end > span.start) else {
            if proposal.spans.len() == 1 {
                taken.insert(span.start, span.end);
            }
            return true;
        };
        proposal.spans.len() > 1 || proposal.is_cause() && *start == span.start
    });
    weighed.into_iter().map(|(_, entry)| entry).collect()
}

/// Dictionary matches below this probability do not choose the concept.
const MIN_CHOOSING: f32 = 0.2;

/// Minimum tagger probability for using the tagger's entity type.
const MIN_TYPED: f32 = 0.3;

impl SpanProposal {
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

    /// Whether the dictionary gives it only beside a longer match.
    fn is_nested(&self) -> bool {
        self.dictionary_match.as_ref().is_some_and(|matched| matched.is_nested)
    }

    /// Whether it is a cause within a longer name, as the drug in `lithium-induced tremor`.
    fn is_cause(&self) -> bool {
        self.dictionary_match.as_ref().is_some_and(|matched| matched.is_cause)
    }

    fn new(text: &str, spans: Vec<Span>, uses: &[(Span, Span)]) -> SpanProposal {
        let hull = Span { start: spans[0].start, end: spans[spans.len() - 1].end };
        let name = expanded(text, &spans, uses);
        SpanProposal {
            span: hull,
            spans,
            tagged: (0, 0.0),
            by_label_set: Vec::new(),
            any: 0.0,
            inside: 0.0,
            inside_name: 0.0,
            is_conjunct: follows_conjunction(text, hull.start),
            is_other_sense: false,
            stated: 0.0,
            research: 0.0,
            dictionary_match: None,
            name,
            link: Link::default(),
            features: [0.0; crate::models::decision::N_FEATURES],
        }
    }
}

/// Whether a token window starts and ends at word boundaries; a prefix such as `pre-` belongs to the following word.
fn is_whole(text: &str, tokens: &[Token], (first, last): (usize, usize)) -> bool {
    let is_joined = |at: usize| tokens.get(at).is_some_and(|token| token.before == Gap::Glued);
    let follows_prefix = tokens[first].before == Gap::Hyphen && first > 0 && is_prefix(tokens[first - 1].span.of(text));
    let within = &text[tokens[first].span.start as usize..tokens[last].span.end as usize];
    let begins_inside = first > 0 && is_joined(first);
    !(begins_inside || is_joined(last + 1) || follows_prefix || within.contains('\n'))
}

/// Whether the text before `start` ends with a conjunction or a comma.
fn follows_conjunction(text: &str, start: u32) -> bool {
    let before = text[..start as usize].trim_end_matches(' ');
    before.ends_with(',') || [" and", " or"].iter().any(|word| before.ends_with(word))
}

/// Extends a span by an unbalanced bracket next to it: `poly(ADP-ribose` gets its `)`.
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
        let analysis = Analysis::new(text);
        let uses = analysis.short_forms();
        let span = |of: &str, from: usize| {
            let start = from + text[from..].find(of).unwrap();
            Span::new(start, start + of.len())
        };
        assert_eq!(expanded(text, &[span("LD cirrhosis", 0)], uses), "Liver disease cirrhosis");
        assert_eq!(expanded(text, &[span("LD", 0)], uses), "Liver disease");
        assert_eq!(expanded(text, &[span("Liver disease (LD)", 0)], uses), "Liver disease (LD)");
        assert_eq!(closed(text, span("poly(ADP-ribose", 0)).of(text), "poly(ADP-ribose)");
        assert_eq!(closed(text, span("Liver", 0)).of(text), "Liver");
    }
}
