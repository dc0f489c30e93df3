//! Fits how evidence is weighed to corpora that neither the tagger nor the encoder of names was trained on.

use canonym_core::link::fit::logistic;
use serde::Serialize;

use super::{SpanProposal, suppress_overlaps};
use crate::models::decision::{Decision, Evidence};

/// What was proposed in a corpus, and what of it is right.
#[derive(Debug, Clone, Default)]
pub struct Judged {
    /// How often it counts, against other corpora.
    pub weight: usize,
    /// Whether all mentions of the types that are looked for are annotated, those without a concept, too.
    pub judges_mentions: bool,
    /// Of each document the mentions that are there, and those of them that have a concept.
    pub counts: Vec<(usize, usize)>,
    /// The proposals of each document: whether there is a mention, and whether its concept is right, too.
    pub documents: Vec<Vec<(SpanProposal, (bool, bool))>>,
}

impl Judged {
    fn n_mentions(&self) -> usize {
        self.counts.iter().map(|(n_mentions, _)| n_mentions).sum()
    }

    fn n_links(&self) -> usize {
        self.counts.iter().map(|(_, n_links)| n_links).sum()
    }

    /// Every second document, from the first or the second on.
    fn half(&self, half: usize) -> Judged {
        Judged {
            counts: self.counts.iter().skip(half).step_by(2).copied().collect(),
            documents: self.documents.iter().skip(half).step_by(2).cloned().collect(),
            ..*self
        }
    }
}

/// Strict figures of one corpus under the fitted weights.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Figures {
    /// Mentions that are there.
    pub n_mentions: usize,
    /// Mentions: precision, recall and their harmonic mean.
    pub mentions: [f64; 3],
    /// Mentions with a concept that are there.
    pub n_links: usize,
    /// Mentions with their concepts: precision, recall and their harmonic mean.
    pub links: [f64; 3],
}

/// Places of a corpus: whether there is a mention, and whether its concept is right, too.
type Left<'a> = Vec<(&'a SpanProposal, (bool, bool))>;

/// The weight of the squared norm of the weights in the loss.
const PENALTY: f64 = 1e-4;

/// Fits weights and thresholds; recall counts `beta` times as much as precision where the threshold of links is chosen (F-beta), and as
/// much as precision where that of texts that read like research articles is. The figures are of the corpora in order.
pub fn fit_decision(corpora: &[Judged], beta: f64) -> (Decision, Vec<Figures>) {
    let mut decision = Decision::BEGIN;
    // Over all proposals first, and then over those that are left after overlaps are resolved.
    let mut left: Vec<Left<'_>> = corpora
        .iter()
        .map(|corpus| corpus.documents.iter().flatten().map(|(place, right)| (place, *right)).collect())
        .collect();
    for _ in 0..3 {
        let rows = |right: fn(&(bool, bool)) -> bool| -> Vec<Vec<(Evidence, bool)>> {
            left.iter()
                .map(|proposals| proposals.iter().map(|(place, is)| (place.evidence, right(is))).collect())
                .collect()
        };
        let fitted = |rows: Vec<Vec<(Evidence, bool)>>| {
            let weighed = rows.iter().zip(corpora).flat_map(|(rows, corpus)| vec![rows.as_slice(); corpus.weight]);
            logistic(&weighed.collect::<Vec<_>>(), PENALTY)
        };
        decision.mention = fitted(rows(|right| right.0));
        decision.link = fitted(rows(|right| right.1));
        left = corpora.iter().map(|corpus| resolved(corpus, &decision)).collect();
    }
    let steps = || (2..19).map(|step| step as f32 / 20.0);
    let weights = decision;
    let mean_link = |decision: &Decision, beta: f64| {
        let of = |(corpus, proposals): (&Judged, &Left<'_>)| {
            let [precision, recall, _] = measures(given_links(proposals, decision), corpus.n_links());
            let square = beta * beta;
            corpus.weight as f64 * (1.0 + square) * precision * recall / (square * precision + recall).max(1e-9)
        };
        corpora.iter().zip(&left).map(of).sum::<f64>()
    };
    let best =
        |score: &dyn Fn(f32) -> f64| steps().max_by(|one, other| score(*one).total_cmp(&score(*other))).unwrap_or(0.5);
    decision.min_link = best(&|least| {
        let mut decision = weights;
        decision.min_link = least;
        mean_link(&decision, beta)
    });
    let weights = decision;
    decision.min_link_research = Some(best(&|least| {
        let mut decision = weights;
        decision.min_link_research = Some(least);
        mean_link(&decision, 1.0)
    }));
    let linking = decision;
    let mean_mention = |least: f32| {
        let mut decision = linking;
        decision.min_mention = least;
        let judging = corpora.iter().zip(&left).filter(|(corpus, _)| corpus.judges_mentions);
        judging
            .map(|(corpus, proposals)| {
                let of_places = given_mentions(proposals, &decision);
                corpus.weight as f64 * measures(of_places, corpus.n_mentions())[2]
            })
            .sum::<f64>()
    };
    decision.min_mention = best(&mean_mention);
    let figures = |(corpus, proposals): (&Judged, &Left<'_>)| Figures {
        n_mentions: corpus.n_mentions(),
        mentions: measures(given_mentions(proposals, &decision), corpus.n_mentions()),
        n_links: corpus.n_links(),
        links: measures(given_links(proposals, &decision), corpus.n_links()),
    };
    let figures = corpora.iter().zip(&left).map(figures).collect();
    (decision, figures)
}

/// Figures of documents that nothing was fitted to: weights and thresholds are those of the other half of the documents.
pub fn figures_by_halves(corpora: &[Judged], beta: f64) -> Vec<Figures> {
    let halves: [Vec<Judged>; 2] = [0, 1].map(|half| corpora.iter().map(|corpus| corpus.half(half)).collect());
    let decisions = [1, 0].map(|other| fit_decision(&halves[other], beta).0);
    let of_corpus = |row: usize| {
        let (mut of_mentions, mut of_links) = ((0, 0), (0, 0));
        for (half, decision) in halves.iter().zip(&decisions) {
            let proposals = resolved(&half[row], decision);
            of_mentions = sum(of_mentions, given_mentions(&proposals, decision));
            of_links = sum(of_links, given_links(&proposals, decision));
        }
        let (n_mentions, n_links) = (corpora[row].n_mentions(), corpora[row].n_links());
        Figures { n_mentions, mentions: measures(of_mentions, n_mentions), n_links, links: measures(of_links, n_links) }
    };
    (0..corpora.len()).map(of_corpus).collect()
}

fn sum(left: (usize, usize), right: (usize, usize)) -> (usize, usize) {
    (left.0 + right.0, left.1 + right.1)
}

/// The proposals of a corpus that are left after overlaps are resolved, those in pieces left out.
fn resolved<'a>(corpus: &'a Judged, decision: &Decision) -> Left<'a> {
    let of_document = |document: &'a Vec<(SpanProposal, (bool, bool))>| {
        suppress_overlaps(
            document.iter().map(|(place, right)| (place, *right)).collect(),
            |entry: &(&SpanProposal, _)| entry.0,
            decision,
        )
    };
    corpus.documents.iter().flat_map(of_document).collect()
}

/// Links that are given, and the right ones among them.
fn given_links(proposals: &[(&SpanProposal, (bool, bool))], decision: &Decision) -> (usize, usize) {
    let given = proposals.iter().filter(|(place, _)| decision.link(place) >= decision.least(place));
    given.fold((0, 0), |(n, right), one| (n + 1, right + usize::from(one.1.1)))
}

/// Mentions that are given, and the right ones among them.
fn given_mentions(proposals: &[(&SpanProposal, (bool, bool))], decision: &Decision) -> (usize, usize) {
    let given = proposals.iter().filter(|(place, _)| decision.gives(place));
    given.fold((0, 0), |(n, right), one| (n + 1, right + usize::from(one.1.0)))
}

fn measures((n, n_right): (usize, usize), n_gold: usize) -> [f64; 3] {
    let (precision, recall) = (n_right as f64 / n.max(1) as f64, n_right as f64 / n_gold.max(1) as f64);
    [precision, recall, 2.0 * precision * recall / (precision + recall).max(1e-9)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::models::decision::N_FEATURES;
    use crate::models::decision::probability;

    #[test]
    fn weights_follow_what_is_right() {
        let row = |value: f32| {
            let mut evidence = [0.0; N_FEATURES];
            (evidence[0], evidence[1]) = (1.0, value);
            evidence
        };
        let rows: Vec<(Evidence, bool)> = (-20..20).map(|at| (row(at as f32 / 10.0), at >= 4)).collect();
        let weights = logistic(&[rows.as_slice()], PENALTY);
        assert!(probability(&weights, &row(1.0)) > 0.9 && probability(&weights, &row(0.0)) < 0.1, "{weights:?}");
        assert_eq!(weights[2], 0.0);
    }
}
