//! Fits the pipeline's decision weights on corpora that neither tagger nor name encoder was trained on.

use canonym_core::eval::matching::{Counts, Score};
use canonym_core::link::fit::{logistic, logistic_from};
use serde::Serialize;

use super::{SpanProposal, suppress_overlaps};
use crate::models::decision::{Decision, Features, probability};

/// Span proposals of a corpus with gold labels.
#[derive(Debug, Clone, Default)]
pub struct LabelledCorpus {
    /// Weight of the corpus relative to the others.
    pub weight: usize,
    /// Whether the corpus annotates all mentions of the target types, including unlinked ones.
    pub count_unlinked: bool,
    /// For each document the number of gold mentions, and of those with a concept.
    pub counts: Vec<(usize, usize)>,
    /// The proposals of each document: whether the span is a gold mention, and whether the concept is correct as well.
    pub documents: Vec<Vec<(SpanProposal, (bool, bool))>>,
}

impl LabelledCorpus {
    fn n_mentions(&self) -> usize {
        self.counts.iter().map(|(n_mentions, _)| n_mentions).sum()
    }

    fn n_links(&self) -> usize {
        self.counts.iter().map(|(_, n_links)| n_links).sum()
    }

    /// Every second document, starting with the first (0) or the second (1).
    fn half(&self, half: usize) -> LabelledCorpus {
        LabelledCorpus {
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

impl Figures {
    fn of(mentions: Counts, links: Counts) -> Figures {
        let figures = |counts: Counts| {
            let Score { precision, recall, f1 } = counts.score();
            [precision, recall, f1]
        };
        Figures {
            n_mentions: mentions.n_gold as usize,
            mentions: figures(mentions),
            n_links: links.n_gold as usize,
            links: figures(links),
        }
    }
}

/// Proposals of a corpus: whether the span is a gold mention, and whether the concept is correct as well.
type Left<'a> = Vec<(&'a SpanProposal, (bool, bool))>;

/// L2 regularisation strength.
const PENALTY: f64 = 1e-4;

/// Fits weights and thresholds. The link threshold maximises F-beta; that of texts in the style of research articles maximises F1. Returns
/// the figures of each corpus, in order.
pub fn fit_decision(corpora: &[LabelledCorpus], beta: f64) -> (Decision, Vec<Figures>) {
    let mut decision = Decision::BEGIN;
    // Fitted on all proposals first, then on those that survive overlap suppression.
    let mut left: Vec<Left<'_>> = corpora
        .iter()
        .map(|corpus| corpus.documents.iter().flatten().map(|(proposal, right)| (proposal, *right)).collect())
        .collect();
    for _ in 0..3 {
        let rows = |right: fn(&(bool, bool)) -> bool| -> Vec<Vec<(Features, bool)>> {
            left.iter()
                .map(|proposals| {
                    proposals.iter().map(|(proposal, is)| (proposal.factors.features(), right(is))).collect()
                })
                .collect()
        };
        let fitted = |rows: Vec<Vec<(Features, bool)>>| {
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
        let of = |(corpus, proposals): (&LabelledCorpus, &Left<'_>)| {
            corpus.weight as f64 * link_counts(corpus, proposals, decision).score().f_beta(beta)
        };
        corpora.iter().zip(&left).map(of).sum::<f64>()
    };
    let best =
        |score: &dyn Fn(f32) -> f64| steps().max_by(|one, other| score(*one).total_cmp(&score(*other))).unwrap_or(0.5);
    decision.min_link = best(&|threshold| {
        let mut decision = weights;
        decision.min_link = threshold;
        mean_link(&decision, beta)
    });
    let weights = decision;
    decision.min_link_research = Some(best(&|threshold| {
        let mut decision = weights;
        decision.min_link_research = Some(threshold);
        mean_link(&decision, 1.0)
    }));
    let linking = decision;
    let mean_mention = |threshold: f32| {
        let mut decision = linking;
        decision.min_mention = threshold;
        let with_unlinked = corpora.iter().zip(&left).filter(|(corpus, _)| corpus.count_unlinked);
        with_unlinked
            .map(|(corpus, proposals)| corpus.weight as f64 * mention_counts(corpus, proposals, &decision).score().f1)
            .sum::<f64>()
    };
    decision.min_mention = best(&mean_mention);
    let figures = |(corpus, proposals): (&LabelledCorpus, &Left<'_>)| {
        Figures::of(mention_counts(corpus, proposals, &decision), link_counts(corpus, proposals, &decision))
    };
    let figures = corpora.iter().zip(&left).map(figures).collect();
    (decision, figures)
}

/// Precision of the prior that weights stay as they are, in rows: its standard deviation is a half.
const PRIOR: f64 = 4.0;

/// Fits the weights of a decision anew to a small corpus, with a Gaussian prior at the weights that it has; thresholds stay. Also returns the
/// log loss of mention and link by proposal, before and after; the latter by two-fold cross-fitting over documents.
pub fn refit_decision(usual: &Decision, corpus: &LabelledCorpus) -> (Decision, [f64; 2]) {
    let fitted = |corpus: &LabelledCorpus| {
        let left = resolved(corpus, usual);
        let rows = |right: fn(&(bool, bool)) -> bool| -> Vec<(Features, bool)> {
            left.iter().map(|(proposal, is)| (proposal.factors.features(), right(is))).collect()
        };
        let penalty = PRIOR / left.len().max(1) as f64;
        Decision {
            mention: logistic_from(&usual.mention, &rows(|right| right.0), penalty),
            link: logistic_from(&usual.link, &rows(|right| right.1), penalty),
            ..*usual
        }
    };
    let halves = [corpus.half(0), corpus.half(1)];
    let loss = |decisions: [&Decision; 2]| {
        let each = halves.iter().zip(decisions).map(|(half, decision)| log_loss(&resolved(half, usual), decision));
        let (sum, n) = each.fold((0.0, 0), |(sum, n), (loss, more)| (sum + loss, n + more));
        sum / n.max(1) as f64
    };
    let (of_first, of_second) = (fitted(&halves[0]), fitted(&halves[1]));
    (fitted(corpus), [loss([usual, usual]), loss([&of_second, &of_first])])
}

/// Sum of the log loss of mention and link, and the number of proposals.
fn log_loss(proposals: &Left<'_>, decision: &Decision) -> (f64, usize) {
    let loss = |weights: &Features, proposal: &SpanProposal, is_right: bool| {
        let p = f64::from(probability(weights, &proposal.factors.features())).clamp(1e-6, 1.0 - 1e-6);
        -(if is_right { p } else { 1.0 - p }).ln()
    };
    let of = |(proposal, right): &(&SpanProposal, (bool, bool))| {
        loss(&decision.mention, proposal, right.0) + loss(&decision.link, proposal, right.1)
    };
    (proposals.iter().map(of).sum(), proposals.len())
}

/// Two-fold cross-validation: the figures of each half of the documents use weights and thresholds fitted on the other half.
pub fn figures_by_halves(corpora: &[LabelledCorpus], beta: f64) -> Vec<Figures> {
    let halves: [Vec<LabelledCorpus>; 2] = [0, 1].map(|half| corpora.iter().map(|corpus| corpus.half(half)).collect());
    let decisions = [1, 0].map(|other| fit_decision(&halves[other], beta).0);
    let of_corpus = |row: usize| {
        let (mut of_mentions, mut of_links) = (Counts::default(), Counts::default());
        for (half, decision) in halves.iter().zip(&decisions) {
            let proposals = resolved(&half[row], decision);
            of_mentions = of_mentions + mention_counts(&half[row], &proposals, decision);
            of_links = of_links + link_counts(&half[row], &proposals, decision);
        }
        Figures::of(of_mentions, of_links)
    };
    (0..corpora.len()).map(of_corpus).collect()
}

/// The proposals of a corpus after overlap suppression.
fn resolved<'a>(corpus: &'a LabelledCorpus, decision: &Decision) -> Left<'a> {
    let of_document = |document: &'a Vec<(SpanProposal, (bool, bool))>| {
        suppress_overlaps(
            document.iter().map(|(proposal, right)| (proposal, *right)).collect(),
            |entry: &(&SpanProposal, _)| entry.0,
            decision,
        )
    };
    corpus.documents.iter().flat_map(of_document).collect()
}

/// Counts of linked proposals.
fn link_counts(corpus: &LabelledCorpus, proposals: &Left<'_>, decision: &Decision) -> Counts {
    let given = proposals.iter().filter(|(proposal, _)| decision.link(proposal) >= decision.link_threshold(proposal));
    given.fold(Counts::one_to_one(corpus.n_links(), 0, 0), |counts, one| {
        counts + Counts::one_to_one(0, 1, one.1.1.into())
    })
}

/// Counts of output mentions.
fn mention_counts(corpus: &LabelledCorpus, proposals: &Left<'_>, decision: &Decision) -> Counts {
    let given = proposals.iter().filter(|(proposal, _)| decision.gives(proposal));
    given.fold(Counts::one_to_one(corpus.n_mentions(), 0, 0), |counts, one| {
        counts + Counts::one_to_one(0, 1, one.1.0.into())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::models::decision::N_FEATURES;

    #[test]
    fn weights_follow_the_labels() {
        let row = |value: f32| {
            let mut features = [0.0; N_FEATURES];
            (features[0], features[1]) = (1.0, value);
            features
        };
        let rows: Vec<(Features, bool)> = (-20..20).map(|at| (row(at as f32 / 10.0), at >= 4)).collect();
        let weights = logistic(&[rows.as_slice()], PENALTY);
        assert!(probability(&weights, &row(1.0)) > 0.9 && probability(&weights, &row(0.0)) < 0.1, "{weights:?}");
        assert_eq!(weights[2], 0.0);
    }

    #[test]
    fn few_rows_hardly_move_weights_and_many_do() {
        let mut start = [0.0; N_FEATURES];
        start[0] = 2.0;
        let mut features = [0.0; N_FEATURES];
        features[0] = 1.0;
        let of = |n: usize| logistic_from(&start, &vec![(features, false); n], PRIOR / n as f64)[0];
        assert!((1.5..2.0).contains(&of(2)) && of(400) < -1.0, "{} {}", of(2), of(400));
        // Features that no row has keep their weight.
        assert_eq!(logistic_from(&[1.0, 3.0], &[([1.0, 0.0], true)], 1.0)[1], 3.0);
    }
}
