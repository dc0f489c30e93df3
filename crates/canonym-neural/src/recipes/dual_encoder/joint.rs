//! Fits the joint model of mention and link probability on held-out documents.

use crate::models::joint::Joint;
use canonym_core::corpus::{AnnotatedDocument, Annotation};
use canonym_core::eval::matching::Counts;
use canonym_core::link::Link;
use canonym_core::text::{Mention, Span};
use serde::Serialize;

use super::data::{Labels, concepts_of, hull, ids_of};
use super::evaluate::SPAN_THRESHOLDS;

/// Strict scores under the joint model, after overlap suppression; the same figures as those of `canonym eval`.
#[derive(Debug, Serialize)]
pub struct JointReport {
    pub weights: Joint,
    pub precision: f64,
    pub recall: f64,
    pub f1: f64,
    /// F1 by two-fold cross-validation: weights and threshold are fitted on the other half of the documents.
    pub f1_by_halves: f64,
    /// Expected calibration error in ten equal-width bins, cross-validated as well.
    pub calibration_error: f64,
}

/// Gold mentions of a document.
pub type Gold = Vec<GoldMention>;

/// A gold mention.
#[derive(Debug, Clone, PartialEq)]
pub struct GoldMention {
    pub span: Span,
    /// Its concepts that the terminology has.
    pub concepts: Vec<u32>,
    /// Whether it is linked. Detecting an unlinked mention is correct, linking it is an error.
    pub is_linked: bool,
}

/// Number of linked gold mentions.
pub fn n_linked(gold: &[GoldMention]) -> usize {
    gold.iter().filter(|mention| mention.is_linked).count()
}

/// Gold mentions of documents.
pub fn gold_of(documents: &[AnnotatedDocument], labels: &Labels) -> Vec<Gold> {
    let one = |annotation: &Annotation| GoldMention {
        span: hull(annotation),
        concepts: concepts_of(annotation, labels),
        is_linked: !ids_of(annotation).is_empty(),
    };
    documents.iter().map(|document| document.annotations.iter().map(one).collect()).collect()
}

/// Compares detected mentions, whose scores are mention probabilities, with gold.
pub fn compared(found: &[Vec<Mention>], links: &[Vec<Link>], gold: &[Gold]) -> Vec<Vec<DetectedSpan>> {
    let one = |mention: &Mention, link: &Link, gold: &Gold| {
        let span = mention.hull();
        let mut here = gold.iter().filter(|mention| mention.span == span).peekable();
        let is_mention = here.peek().is_some();
        let best = link.candidates.first();
        let is_right = best.is_some_and(|best| here.any(|mention| mention.concepts.contains(&best.concept.0)));
        let of_link = best.map_or(0.0, |best| best.p_link);
        DetectedSpan { span, of_span: mention.p_mention, of_link, is_mention, is_right }
    };
    let of_document = |((found, links), gold): ((&Vec<Mention>, &Vec<Link>), &Gold)| {
        found.iter().zip(links).map(|(mention, link)| one(mention, link, gold)).collect()
    };
    found.iter().zip(links).zip(gold).map(of_document).collect()
}

/// A detected span with its best concept.
#[derive(Debug, Clone, Copy)]
pub struct DetectedSpan {
    pub span: Span,
    pub of_span: f32,
    pub of_link: f32,
    pub is_mention: bool,
    pub is_right: bool,
}

impl DetectedSpan {
    fn probability(&self, joint: &Joint) -> f32 {
        joint.probability(self.of_span, self.of_link)
    }
}

/// Greedy non-maximum suppression within each document.
fn resolved<'a>(documents: impl Iterator<Item = &'a Vec<DetectedSpan>>, joint: &Joint) -> Vec<DetectedSpan> {
    let mut all = Vec::new();
    for found in documents {
        let mut order: Vec<&DetectedSpan> = found.iter().collect();
        order.sort_by(|left, right| right.probability(joint).total_cmp(&left.probability(joint)));
        let first = all.len();
        for one in order {
            let overlaps = |other: &DetectedSpan| one.span.start < other.span.end && other.span.start < one.span.end;
            if !all[first..].iter().any(overlaps) {
                all.push(*one);
            }
        }
    }
    all
}

/// Fits weights and threshold on these documents.
fn fit_joint<'a>(documents: impl Iterator<Item = &'a Vec<DetectedSpan>> + Clone, n_gold: usize) -> Joint {
    let all = documents.clone().flatten();
    let points: Vec<(f32, f32, bool)> = all.map(|one| (one.of_span, one.of_link, one.is_right)).collect();
    let mut joint = Joint::fit(&points);
    let left = resolved(documents, &joint);
    let f1 = |threshold: f32| link_counts(&left, &Joint { threshold, ..joint }, n_gold).score().f1;
    joint.threshold = SPAN_THRESHOLDS.into_iter().max_by(|one, other| f1(*one).total_cmp(&f1(*other))).unwrap_or(0.5);
    joint
}

/// Counts of the spans that the joint model links.
fn link_counts(found: &[DetectedSpan], joint: &Joint, n_gold: usize) -> Counts {
    let linked = found.iter().filter(|one| one.probability(joint) >= joint.threshold);
    let (n, n_right) = linked.fold((0, 0), |(n, right), one| (n + 1, right + usize::from(one.is_right)));
    Counts::one_to_one(n_gold, n, n_right)
}

/// Fits the joint model on detected mentions and evaluates it.
pub fn evaluate_joint(all: &[Vec<DetectedSpan>], gold: &[Gold]) -> JointReport {
    let n_gold_of: Vec<usize> = gold.iter().map(|gold| n_linked(gold)).collect();
    let n_gold: usize = n_gold_of.iter().sum();
    let half = |half: usize| all.iter().skip(half).step_by(2);
    let n_gold_half = |half: usize| -> usize { n_gold_of.iter().skip(half).step_by(2).sum() };
    let weights = fit_joint(all.iter(), n_gold);
    let score = link_counts(&resolved(all.iter(), &weights), &weights, n_gold).score();
    let (mut by_halves, mut bins) = (Counts::default(), [(0usize, 0.0f64, 0usize); 10]);
    for (own, other) in [(0, 1), (1, 0)] {
        let joint = fit_joint(half(other), n_gold_half(other));
        let left = resolved(half(own), &joint);
        by_halves = by_halves + link_counts(&left, &joint, n_gold_half(own));
        for one in &left {
            let probability = one.probability(&joint);
            let bin = &mut bins[((probability * 10.0) as usize).min(9)];
            *bin = (bin.0 + 1, bin.1 + f64::from(probability), bin.2 + usize::from(one.is_right));
        }
    }
    let n_all: usize = bins.iter().map(|bin| bin.0).sum();
    let error: f64 = bins.iter().map(|(_, sum, n_right)| (sum - *n_right as f64).abs()).sum();
    JointReport {
        weights,
        precision: score.precision,
        recall: score.recall,
        f1: score.f1,
        f1_by_halves: by_halves.score().f1,
        calibration_error: error / n_all.max(1) as f64,
    }
}

#[cfg(test)]
mod tests {
    use canonym_core::kb::ConceptId;
    use canonym_core::link::Candidate;

    use super::*;

    #[test]
    fn an_unlinked_mention_is_correct_to_detect_and_wrong_to_link() {
        let span = Span { start: 2, end: 6 };
        let gold = vec![vec![GoldMention { span, concepts: Vec::new(), is_linked: false }]];
        let found = [vec![Mention { p_mention: 0.9, ..Mention::contiguous(span) }]];
        let candidate = Candidate { concept: ConceptId(0), name: None, p_link: 0.9 };
        let links = [vec![Link { candidates: vec![candidate], nil: false }]];
        let compared = compared(&found, &links, &gold);
        assert!(compared[0][0].is_mention && !compared[0][0].is_right);
        assert_eq!(n_linked(&gold[0]), 0);
    }
}
