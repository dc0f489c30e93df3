//! Fits the joint model of mention and link probability on held-out documents.

use crate::models::joint::Joint;
use canonym_core::corpus::{AnnotatedDocument, Annotation};
use canonym_core::eval::Entry;
use canonym_core::eval::ids::IdSet;
use canonym_core::eval::matching::{Counts, MatchConfig, Measure, count_entries};
use canonym_core::link::Link;
use canonym_core::text::{Mention, Span};
use serde::Serialize;

use super::data::{Labels, concepts_of, ids_of};
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

/// Gold mentions of a document, with concepts as by [`concept_ids`].
pub type Gold = Vec<Entry>;

/// Concepts for matching, by number; those that the terminology lacks by their ids. Detecting an unlinked mention is correct, linking it is
/// an error.
fn concept_ids(annotation: &Annotation, labels: &Labels) -> IdSet {
    let known = concepts_of(annotation, labels).into_iter().map(concept_id);
    let unknown = ids_of(annotation).into_iter().filter(|id| !labels.contains_key(*id)).map(str::to_owned);
    IdSet::parse(&known.chain(unknown).collect::<Vec<String>>())
}

fn concept_id(concept: u32) -> String {
    format!("concept {concept}")
}

/// Gold mentions of documents.
pub fn gold_of(documents: &[AnnotatedDocument], labels: &Labels) -> Vec<Gold> {
    let one = |annotation: &Annotation| Entry::new(annotation.spans.clone(), concept_ids(annotation, labels));
    documents.iter().map(|document| document.annotations.iter().map(one).collect()).collect()
}

/// Compares detected mentions, whose scores are mention probabilities, with gold.
pub fn compared(found: &[Vec<Mention>], links: &[Vec<Link>], gold: &[Gold]) -> Vec<Vec<DetectedSpan>> {
    let one = |mention: &Mention, link: &Link, gold: &Gold| {
        let best = link.candidates.first();
        let ids = best.map_or_else(IdSet::default, |best| IdSet::parse_one(&concept_id(best.concept.0)));
        let entry = Entry::new(mention.spans.clone(), ids);
        let is_right = gold.iter().any(|gold| gold.spans == entry.spans && gold.ids.intersects(&entry.ids));
        let of_link = best.map_or(0.0, |best| best.p_link);
        DetectedSpan { span: mention.hull(), of_span: mention.p_mention, of_link, is_right, entry }
    };
    let of_document = |((found, links), gold): ((&Vec<Mention>, &Vec<Link>), &Gold)| {
        found.iter().zip(links).map(|(mention, link)| one(mention, link, gold)).collect()
    };
    found.iter().zip(links).zip(gold).map(of_document).collect()
}

/// A detected span with its best concept.
#[derive(Debug, Clone)]
pub struct DetectedSpan {
    pub span: Span,
    pub of_span: f32,
    pub of_link: f32,
    /// Whether it has the span and a concept of a gold mention.
    pub is_right: bool,
    /// Its spans and best concept, for matching.
    pub entry: Entry,
}

impl DetectedSpan {
    fn probability(&self, joint: &Joint) -> f32 {
        joint.probability(self.of_span, self.of_link)
    }
}

/// Counts of detected spans by a measure; both sides are in order of documents.
pub fn matched<'a>(
    measure: Measure,
    found: impl Iterator<Item = Vec<&'a DetectedSpan>>,
    gold: impl Iterator<Item = &'a Gold>,
) -> Counts {
    let of_document = |(found, gold): (Vec<&DetectedSpan>, &Gold)| {
        let found: Vec<Entry> = found.into_iter().map(|one| one.entry.clone()).collect();
        count_entries(measure, gold, &found, MatchConfig::default())
    };
    found.zip(gold).map(of_document).sum()
}

/// The detected spans of documents beside their gold mentions.
type Documents<'a> = Vec<(Vec<&'a DetectedSpan>, &'a Gold)>;

/// Greedy non-maximum suppression within each document.
fn resolved<'a>(documents: &Documents<'a>, joint: &Joint) -> Documents<'a> {
    let of_document = |(found, gold): &(Vec<&'a DetectedSpan>, &'a Gold)| {
        let mut order = found.clone();
        order.sort_by(|left, right| right.probability(joint).total_cmp(&left.probability(joint)));
        let mut kept: Vec<&DetectedSpan> = Vec::new();
        for one in order {
            if !kept.iter().any(|other| one.span.start < other.span.end && other.span.start < one.span.end) {
                kept.push(one);
            }
        }
        (kept, *gold)
    };
    documents.iter().map(of_document).collect()
}

/// Fits weights and threshold on these documents.
fn fit_joint(documents: &Documents<'_>) -> Joint {
    let all = documents.iter().flat_map(|(found, _)| found);
    let points: Vec<(f32, f32, bool)> = all.map(|one| (one.of_span, one.of_link, one.is_right)).collect();
    let mut joint = Joint::fit(&points);
    let left = resolved(documents, &joint);
    let f1 = |threshold: f32| link_counts(&left, &Joint { threshold, ..joint }).score().f1;
    joint.threshold = SPAN_THRESHOLDS.into_iter().max_by(|one, other| f1(*one).total_cmp(&f1(*other))).unwrap_or(0.5);
    joint
}

/// Counts of the spans that the joint model links.
fn link_counts(documents: &Documents<'_>, joint: &Joint) -> Counts {
    let is_linked = |one: &&DetectedSpan| one.probability(joint) >= joint.threshold;
    let found = documents.iter().map(|(found, _)| found.iter().copied().filter(is_linked).collect());
    matched(Measure::Strict, found, documents.iter().map(|(_, gold)| *gold))
}

/// Fits the joint model on detected mentions and evaluates it.
pub fn evaluate_joint(all: &[Vec<DetectedSpan>], gold: &[Gold]) -> JointReport {
    let documents: Documents<'_> = all.iter().map(|found| found.iter().collect()).zip(gold).collect();
    let half = |half: usize| -> Documents<'_> { documents.iter().skip(half).step_by(2).cloned().collect() };
    let weights = fit_joint(&documents);
    let score = link_counts(&resolved(&documents, &weights), &weights).score();
    let (mut by_halves, mut bins) = (Counts::default(), [(0usize, 0.0f64, 0usize); 10]);
    for (own, other) in [(half(0), half(1)), (half(1), half(0))] {
        let joint = fit_joint(&other);
        let left = resolved(&own, &joint);
        by_halves = by_halves + link_counts(&left, &joint);
        for one in left.iter().flat_map(|(found, _)| found) {
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

    /// Detected spans linked to concept 0, beside gold.
    fn detected(spans: &[Vec<Span>], gold: &[Gold]) -> Vec<Vec<DetectedSpan>> {
        let mention = |spans: &Vec<Span>| Mention { spans: spans.clone(), semantic_type: None, p_mention: 0.9 };
        let candidate = Candidate { concept: ConceptId(0), name: None, p_link: 0.9 };
        let link = Link { candidates: vec![candidate], nil: false };
        let found: Vec<Mention> = spans.iter().map(mention).collect();
        compared(&[found], &[vec![link; spans.len()]], gold)
    }

    fn check(found: &[Vec<DetectedSpan>], gold: &[Gold], expected: [Counts; 2]) {
        let counts = |measure| matched(measure, found.iter().map(|found| found.iter().collect()), gold.iter());
        assert_eq!([Measure::MentionRecognition, Measure::Strict].map(counts), expected);
    }

    fn gold(annotations: &[(&[Span], &str)]) -> Vec<Gold> {
        let labels = Labels::from([("A".to_owned(), vec![0])]);
        let annotation = |(spans, id): &(&[Span], &str)| Annotation {
            spans: spans.to_vec(),
            ids: vec![(*id).to_owned()],
            ..Annotation::default()
        };
        let annotations = annotations.iter().map(annotation).collect();
        gold_of(&[AnnotatedDocument { annotations, ..AnnotatedDocument::default() }], &labels)
    }

    #[test]
    fn an_unlinked_mention_is_correct_to_detect_and_wrong_to_link() {
        let span = Span { start: 2, end: 6 };
        let gold = gold(&[(&[span], "-1")]);
        let found = detected(&[vec![span]], &gold);
        check(&found, &gold, [Counts::one_to_one(1, 1, 1), Counts::one_to_one(0, 1, 0)]);
    }

    #[test]
    fn a_mention_in_two_parts_does_not_match_the_span_over_both() {
        let parts = [Span { start: 2, end: 6 }, Span { start: 9, end: 12 }];
        let gold = gold(&[(&parts, "A")]);
        let found = detected(&[vec![Span { start: 2, end: 12 }]], &gold);
        check(&found, &gold, [Counts::one_to_one(1, 1, 0); 2]);
        assert!(!found[0][0].is_right);
    }

    #[test]
    fn a_repeated_annotation_counts_once() {
        let span = Span { start: 2, end: 6 };
        let gold = gold(&[(&[span], "A"), (&[span], "A"), (&[span], "no concept")]);
        let found = detected(&[vec![span]], &gold);
        check(&found, &gold, [Counts::one_to_one(1, 1, 1), Counts::one_to_one(2, 1, 1)]);
    }
}
