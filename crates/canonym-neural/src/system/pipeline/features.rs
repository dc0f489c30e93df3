//! Features of span proposals.

use canonym_core::link::recognise::DictionaryMatch;

use super::{MIN_RESEARCH, SpanProposal};
use crate::models::decision::{
    BLOCKS, Decision, Factors, MISSPELT, N_DISTINCT, OTHER, PROCESS, SENSE, SPECIES, UNNAMED, UNTYPED, block_of,
    probability,
};
use crate::models::joint::{log_odds, logistic};
use crate::models::tagger::typed::LabelSet;

/// Minimum tagger probability, by entity type, for linking a mention without a dictionary match. Each costs a search. Diseases and
/// chemicals are often written in words that are not names in the terminology; organs, organisms and genes mostly appear under their names.
pub(super) fn min_proposed(entity_type: &str) -> f32 {
    match block_of(entity_type) {
        0 | 1 | OTHER => 0.3,
        _ => 0.7,
    }
}

impl Decision {
    /// Whether a proposal is output, linked or not.
    pub(super) fn gives(&self, proposal: &SpanProposal) -> bool {
        let typed = proposal.tagged.1 >= MIN_UNLINKED;
        self.link(proposal) >= self.link_threshold(proposal)
            || (typed
                && !proposal.is_other_sense
                && probability(&self.mention, &proposal.factors.features()) >= self.min_mention)
    }

    /// Link threshold of a proposal: lower for exact names and other matches of the dictionary; unambiguous names of several words always
    /// reach it. Higher for terms that only resemble a name, except in research articles, for which it was fitted.
    pub fn link_threshold(&self, proposal: &SpanProposal) -> f32 {
        let in_research = self.min_link_research.unwrap_or(self.min_link);
        let threshold = self.min_link + proposal.research * (in_research - self.min_link);
        match &proposal.dictionary_match {
            Some(_) if proposal.is_name_of_words() => threshold.min(MIN_PHRASE),
            Some(_) if proposal.sense_score().is_some() => threshold.clamp(MIN_SENSE.0, MIN_SENSE.1),
            Some(matched) if matched.is_exact() || matched.is_symbol() => threshold.min(MIN_EXACT),
            Some(_) => threshold.min(MIN_NAME),
            None if is_term(&proposal.name) => threshold.max(MIN_UNNAMED * (1.0 - proposal.research)),
            None => threshold,
        }
    }

    /// Probability that span and concept are both correct.
    pub fn link(&self, proposal: &SpanProposal) -> f32 {
        soften(self.link_uncalibrated(proposal))
    }

    /// The same before high probabilities are lowered.
    pub(super) fn link_uncalibrated(&self, proposal: &SpanProposal) -> f32 {
        if proposal.link.candidates.is_empty() {
            return 0.0;
        }
        let weighed = probability(&self.link, &proposal.factors.features());
        let of_sense = proposal.sense_score();
        let weighed = of_sense.map_or(weighed, |score| average(weighed, score, proposal.research)).max(proposal.stated);
        // The context does not outweigh an exact match of several words, nor a name that the dictionary links; in research articles only
        // that of an organism, a process or another type that few corpora annotate.
        let is_kept = || {
            proposal.research < MIN_RESEARCH
                || KEPT.map(|block| proposal.factors.blocks[block]).iter().sum::<f32>() > 0.5
        };
        match proposal.is_phrase() {
            true => weighed.max(MIN_PHRASE),
            false if proposal.is_dictionary_name() && is_kept() => weighed.max(MIN_EXACT),
            false => weighed,
        }
    }
}

/// Lowers high probabilities: of links scored 0.9 to 0.95, one in ten is wrong in everyday text, of those above, one in thirty.
fn soften(probability: f32) -> f32 {
    let knots = [(0.85, 0.85), (0.95, 0.9), (1.0, 1.0)];
    let piece = knots.windows(2).find(|piece| probability > piece[0].0 && probability <= piece[1].0);
    piece.map_or(probability, |piece| {
        let [(from, low), (to, high)] = [piece[0], piece[1]];
        low + (probability - from) / (to - from) * (high - low)
    })
}

/// Average of the probability of the model with that of the sense inventory, in log-odds: in a short text the words near a
/// form tell its sense better than the tagger does. In research articles, for which the model was fitted, the inventory counts half.
fn average(of_model: f32, of_senses: f32, research: f32) -> f32 {
    let weight = 0.5 * (1.0 - 0.5 * research);
    let of_both = (1.0 - weight) * log_odds(of_model) + weight * log_odds(of_senses);
    logistic(of_both)
}

/// Blocks of the types whose names the context does not outweigh in research articles either.
const KEPT: [usize; 3] = [SPECIES, PROCESS, OTHER];

/// Minimum link probability of exact names of several words.
const MIN_PHRASE: f32 = 0.5;

/// Highest link threshold of exact names. Corpora leave out mentions of types that are not theirs, so their threshold would drop names that
/// readers expect.
const MIN_EXACT: f32 = 0.3;

/// Highest link threshold of other names that the dictionary matches.
const MIN_NAME: f32 = 0.4;

/// Lowest and highest link threshold of a sense of an ambiguous form.
const MIN_SENSE: (f32, f32) = (0.3, 0.35);

/// Minimum link probability of a term that is not a name: a wrong drug is worse than a missed one.
const MIN_UNNAMED: f32 = 0.45;

/// Whether a span is one word or has capitals or digits, like most names of drugs and genes, and unlike a paraphrase.
fn is_term(name: &str) -> bool {
    !name.contains(char::is_whitespace)
        || name.contains(|letter: char| letter.is_uppercase() || letter.is_ascii_digit())
}

/// Minimum tagger probability of an unlinked mention.
const MIN_UNLINKED: f32 = 0.3;

/// The features of a proposal; `marks` are the tagger's probabilities for the concept's own name, by label set.
pub(super) fn factors(proposal: &SpanProposal, marks: &[f32], label_sets: &[LabelSet]) -> Factors {
    let linked = proposal.link.candidates.first().map_or(0.0, |best| best.p_link);
    let read = proposal.dictionary_match.as_ref().map(DictionaryMatch::best);
    let exact = proposal.dictionary_match.as_ref().filter(|matched| matched.is_unambiguous());
    let sense = read.and_then(|(reading, _)| reading.sense);
    let total: f32 = marks.iter().sum();
    let gate = marks.iter().copied().fold(0.0, f32::max);
    let of_type: f32 = marks.iter().zip(&proposal.by_label_set).map(|(mark, p)| mark * p).sum();
    let flag = |yes: bool| f32::from(u8::from(yes));
    let values: [f32; N_DISTINCT] = [
        1.0,
        log_odds(of_type / total.max(1e-6)),
        log_odds(proposal.any),
        log_odds(linked),
        flag(read.is_some()),
        read.map_or(0.0, |(_, score)| log_odds(score)),
        flag(exact.is_some_and(|matched| matched.n_words > 1)),
        flag(exact.is_some_and(|matched| matched.n_words == 1)),
        sense.map_or(0.0, log_odds),
        proposal.inside,
        proposal.inside_name,
    ];
    let mut blocks = [0.0; BLOCKS.len()];
    match sense {
        Some(_) => blocks[SENSE] = 1.0,
        None => {
            blocks[UNTYPED] = 1.0 - gate;
            for (mark, label_set) in marks.iter().zip(label_sets) {
                if let Some(name) = &label_set.name {
                    blocks[block_of(name)] += gate * mark / total.max(1e-6);
                }
            }
        }
    }
    match &proposal.dictionary_match {
        None => blocks[UNNAMED] = 1.0,
        Some(matched) if matched.is_corrected => blocks[MISSPELT] = 1.0,
        Some(_) => {}
    }
    Factors { values, blocks, research: proposal.research }
}
