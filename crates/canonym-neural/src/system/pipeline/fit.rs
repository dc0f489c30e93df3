//! Fits the pipeline's decision weights on corpora that neither tagger nor name encoder was trained on.

use canonym_core::eval::matching::Counts;
use canonym_core::link::fit::logistic;
use serde::Serialize;

use super::{SpanProposal, suppress_overlaps};
use crate::models::decision::{Decision, Evidence};

/// Span proposals of a corpus with gold labels.
#[derive(Debug, Clone, Default)]
pub struct Judged {
    /// Weight of the corpus relative to the others.
    pub weight: usize,
    /// Whether the corpus annotates all mentions of the target types, including unlinked ones.
    pub count_unlinked: bool,
    /// For each document the number of gold mentions, and of those with a concept.
    pub counts: Vec<(usize, usize)>,
    /// The proposals of each document: whether the span is a gold mention, and whether the concept is correct as well.
    pub documents: Vec<Vec<(SpanProposal, (bool, bool))>>,
}

impl Judged {
    fn n_mentions(&self) -> usize {
        self.counts.iter().map(|(n_mentions, _)| n_mentions).sum()
    }

    fn n_links(&self) -> usize {
        self.counts.iter().map(|(_, n_links)| n_links).sum()
    }

    /// Every second document, starting with the first (0) or the second (1).
    fn half(&self, half: usize) -> Judged {
        Judged {
            counts: self.counts.iter().skip(half).step_by(2).copied().collect(),
            documents: self.documents.iter().skip(half).step_by(2).cloned().collect(),
            ..*self
        }
    }
}

/// Strict precision, recall and F1 on one corpus under the fitted weights.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Figures {
    /// Gold mentions.
    pub n_mentions: usize,
    /// Mention detection: precision, recall and F1.
    pub mentions: [f64; 3],
    /// Gold mentions with a concept.
    pub n_links: usize,
    /// Detection and linking: precision, recall and F1.
    pub links: [f64; 3],
}

/// Proposals of a corpus: whether the span is a gold mention, and whether the concept is correct as well.
type Left<'a> = Vec<(&'a SpanProposal, (bool, bool))>;

/// L2 regularisation strength.
const PENALTY: f64 = 1e-4;

/// Fits weights and thresholds. The link threshold maximises F-beta; that of texts in the style of research articles maximises F1. Returns
/// the figures of each corpus, in order.
pub fn fit_decision(corpora: &[Judged], beta: f64) -> (Decision, Vec<Figures>) {
    let mut decision = Decision::BEGIN;
    // Fitted on all proposals first, then on those that survive overlap suppression.
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
        let judging = corpora.iter().zip(&left).filter(|(corpus, _)| corpus.count_unlinked);
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

/// Two-fold cross-validation: the figures of each half of the documents use weights and thresholds fitted on the other half.
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

/// The proposals of a corpus after overlap suppression.
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

/// Number of linked proposals, and of correct ones.
fn given_links(proposals: &[(&SpanProposal, (bool, bool))], decision: &Decision) -> (usize, usize) {
    let given = proposals.iter().filter(|(place, _)| decision.link(place) >= decision.least(place));
    given.fold((0, 0), |(n, right), one| (n + 1, right + usize::from(one.1.1)))
}

/// Number of output mentions, and of correct ones.
fn given_mentions(proposals: &[(&SpanProposal, (bool, bool))], decision: &Decision) -> (usize, usize) {
    let given = proposals.iter().filter(|(place, _)| decision.gives(place));
    given.fold((0, 0), |(n, right), one| (n + 1, right + usize::from(one.1.0)))
}

fn measures((n, n_right): (usize, usize), n_gold: usize) -> [f64; 3] {
    let score = Counts::one_to_one(n_gold, n, n_right).score();
    [score.precision, score.recall, score.f1]
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
