//! Selective prediction and calibration: how well scores separate correct from wrong answers.
//!
//! A system that can abstain keeps the answers whose score reaches a threshold. *Coverage* is the share of items with a
//! kept answer, *risk* the error rate among the kept answers. Answers with equal scores are kept or dropped together,
//! so a curve has one point per distinct score. The area under the risk-coverage curve (AURC) is the mean over answers
//! of the risk at the threshold that just keeps the answer; excess AURC subtracts that of the optimal ranking, with all
//! correct answers first, so it is 0 for perfect scores (Geifman et al. 2019).
//!
//! A threshold found here is tuned on the data it was computed on; it may not hold for other data.
//!
//! ```
//! use canonym_core::eval::curves::{CurveConfig, Outcome, Outcomes, curves};
//!
//! let answered = vec![Outcome { score: 0.9, right: true }, Outcome { score: 0.4, right: false }];
//! let outcomes = Outcomes { answered, n_unanswered: 0, n_gold: 2 };
//! let curves = curves(&outcomes, &CurveConfig::default());
//! assert_eq!((curves.points[0].coverage, curves.points[0].risk), (0.5, 0.0));
//! assert_eq!((curves.points[1].coverage, curves.points[1].risk), (1.0, 0.5));
//! ```

use std::collections::{HashMap, HashSet};

use serde::{Deserialize, Serialize};

use super::DocumentPair;
use super::ids::IdPolicy;
use super::matching::ratio;
use crate::text::Span;

/// An answer: its confidence, and whether it is correct.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Outcome {
    /// The confidence; a non-finite value counts as unanswered.
    pub score: f64,
    /// Whether the answer is correct.
    pub right: bool,
}

/// The answers of a system.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Outcomes {
    /// The answers, in any order.
    pub answered: Vec<Outcome>,
    /// Number of items without an answer at any threshold.
    pub n_unanswered: u64,
    /// Number of correct answers to find, the denominator of recall.
    pub n_gold: u64,
}

/// Settings of the curves.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CurveConfig {
    /// Number of bins of the reliability diagram.
    pub n_bins: usize,
    /// Maximum number of points kept, at least 2; areas and thresholds are computed on all points.
    pub max_points: usize,
    /// Target precision for which a threshold is selected.
    pub wanted_precision: Option<f64>,
}

impl Default for CurveConfig {
    fn default() -> CurveConfig {
        CurveConfig { n_bins: 10, max_points: 200, wanted_precision: None }
    }
}

/// Risk-coverage curve and calibration.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Curves {
    /// Number of items, answered or not.
    pub n: u64,
    /// Number of answers.
    pub n_answered: u64,
    /// Number of correct answers.
    pub n_right: u64,
    /// Number of correct answers to find.
    pub n_gold: u64,
    /// Risk-coverage curve, by descending threshold.
    pub points: Vec<CurvePoint>,
    /// Area under the risk-coverage curve, over the answers.
    pub aurc: f64,
    /// AURC minus that of the optimal ranking.
    pub excess_aurc: f64,
    /// The threshold for the target precision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wanted: Option<WantedPrecision>,
    /// Calibration; `None` without answers or if scores are not probabilities.
    pub calibration: Option<Calibration>,
}

/// A point of the risk-coverage curve.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct CurvePoint {
    /// Minimum score of the answers kept.
    pub threshold: f64,
    /// Share of all items kept.
    pub coverage: f64,
    /// Error rate among the answers kept, 1 - precision.
    pub risk: f64,
    /// Correct answers kept, divided by those to find.
    pub recall: f64,
}

/// The lowest threshold that reaches the target precision on these data.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct WantedPrecision {
    /// The target precision.
    pub precision: f64,
    /// The threshold; `None` if none reaches the target.
    pub threshold: Option<f64>,
    /// The precision there; 0 without a threshold.
    pub reached: f64,
    /// The coverage there.
    pub coverage: f64,
    /// The recall there.
    pub recall: f64,
}

/// Calibration of the scores.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Calibration {
    /// Bins of equal width from 0 to 1, including empty ones.
    pub bins: Vec<ReliabilityBin>,
    /// Expected calibration error (Guo et al. 2017): mean over answers of |confidence - accuracy| of their bin.
    pub ece: f64,
    /// Maximum calibration error: the largest |confidence - accuracy| of a bin.
    pub mce: f64,
    /// Brier score: mean squared difference between score and outcome (1 correct, 0 wrong).
    pub brier: f64,
}

/// The answers with `low <= score < high`; the last bin includes 1.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct ReliabilityBin {
    /// Lower bound.
    pub low: f64,
    /// Upper bound.
    pub high: f64,
    /// Number of answers.
    pub n: u64,
    /// Mean score; 0 without answers.
    pub mean_confidence: f64,
    /// Share of correct answers; 0 without answers.
    pub accuracy: f64,
}

/// Computes the curves of `outcomes`.
pub fn curves(outcomes: &Outcomes, config: &CurveConfig) -> Curves {
    let mut answers: Vec<Outcome> = outcomes.answered.iter().copied().filter(|one| one.score.is_finite()).collect();
    answers.sort_by(|a, b| b.score.total_cmp(&a.score));
    let n = outcomes.answered.len() as u64 + outcomes.n_unanswered;
    let n_right = answers.iter().filter(|one| one.right).count();
    let mut points = Vec::new();
    let (mut n_kept, mut n_kept_right, mut area) = (0, 0, 0.0);
    // `==` instead of `total_cmp`, so that 0 and -0 are equal.
    for block in answers.chunk_by(|a, b| a.score == b.score) {
        n_kept += block.len();
        n_kept_right += block.iter().filter(|one| one.right).count();
        let risk = (n_kept - n_kept_right) as f64 / n_kept as f64;
        area += risk * block.len() as f64;
        points.push(CurvePoint {
            threshold: block[0].score,
            coverage: ratio(n_kept as f64, n as f64),
            risk,
            recall: ratio(n_kept_right as f64, outcomes.n_gold as f64),
        });
    }
    let aurc = ratio(area, answers.len() as f64);
    Curves {
        n,
        n_answered: answers.len() as u64,
        n_right: n_right as u64,
        n_gold: outcomes.n_gold,
        aurc,
        // Different summation order can change the last bit.
        excess_aurc: (aurc - perfect_area(answers.len(), n_right)).max(0.0),
        wanted: config.wanted_precision.map(|precision| wanted(&points, precision)),
        calibration: calibrate(&answers, config.n_bins),
        points: thin(points, config.max_points),
    }
}

/// AURC of `n` answers with the `n_right` correct ones first.
fn perfect_area(n: usize, n_right: usize) -> f64 {
    let risks = (n_right + 1..=n).map(|n_kept| (n_kept - n_right) as f64 / n_kept as f64);
    ratio(risks.sum(), n as f64)
}

fn wanted(points: &[CurvePoint], precision: f64) -> WantedPrecision {
    // Fractions such as 19/20 are not exact in binary, hence the tolerance.
    let best = points.iter().rev().find(|point| 1.0 - point.risk >= precision - 1e-12);
    let none = WantedPrecision { precision, ..WantedPrecision::default() };
    best.map_or(none, |point| WantedPrecision {
        precision,
        threshold: Some(point.threshold),
        reached: 1.0 - point.risk,
        coverage: point.coverage,
        recall: point.recall,
    })
}

fn calibrate(answers: &[Outcome], n_bins: usize) -> Option<Calibration> {
    let are_probabilities = answers.iter().all(|one| (0.0..=1.0).contains(&one.score));
    if answers.is_empty() || n_bins == 0 || !are_probabilities {
        return None;
    }
    let mut bins: Vec<ReliabilityBin> = (0..n_bins)
        .map(|row| ReliabilityBin {
            low: row as f64 / n_bins as f64,
            high: (row + 1) as f64 / n_bins as f64,
            ..ReliabilityBin::default()
        })
        .collect();
    let mut squares = 0.0;
    for one in answers {
        let target = f64::from(u8::from(one.right));
        squares += (one.score - target).powi(2);
        let bin = &mut bins[((one.score * n_bins as f64) as usize).min(n_bins - 1)];
        bin.n += 1;
        bin.mean_confidence += one.score;
        bin.accuracy += target;
    }
    let (mut ece, mut mce) = (0.0, 0.0_f64);
    for bin in &mut bins {
        bin.mean_confidence = ratio(bin.mean_confidence, bin.n as f64);
        bin.accuracy = ratio(bin.accuracy, bin.n as f64);
        let distance = (bin.mean_confidence - bin.accuracy).abs();
        ece += distance * bin.n as f64 / answers.len() as f64;
        mce = mce.max(distance);
    }
    Some(Calibration { bins, ece, mce, brier: squares / answers.len() as f64 })
}

/// At most `max_points` of `points`, evenly spaced, including the first and the last.
fn thin(points: Vec<CurvePoint>, max_points: usize) -> Vec<CurvePoint> {
    let max_points = max_points.max(2);
    if points.len() <= max_points {
        return points;
    }
    (0..max_points).map(|row| points[row * (points.len() - 1) / (max_points - 1)]).collect()
}

/// The links of `documents` as answers; correct if a gold annotation has the same spans and a matching concept.
///
/// Duplicates count once, and unlinked mentions are not answers. Each gold annotation is matched greedily with the most
/// confident matching prediction; with several concepts on one span this can find fewer matches than the maximum
/// matching of [`Measure::Strict`](super::matching::Measure::Strict).
pub fn links(documents: &[DocumentPair], policy: IdPolicy) -> Outcomes {
    let mut outcomes = Outcomes::default();
    for document in documents {
        let mut golds: HashMap<&[Span], Vec<usize>> = HashMap::new();
        let mut known = HashSet::new();
        for (row, entry) in document.gold.iter().enumerate().filter(|(_, entry)| !entry.ids.is_nil()) {
            let labels =
                if policy == IdPolicy::First { entry.ids.iter().take(1).collect() } else { entry.ids.sorted() };
            if known.insert((&entry.spans, labels)) {
                golds.entry(&entry.spans).or_default().push(row);
            }
        }
        outcomes.n_gold += known.len() as u64;
        let mut predicted: Vec<_> = document.predicted.iter().filter(|entry| !entry.ids.is_nil()).collect();
        predicted.sort_by(|a, b| b.score.total_cmp(&a.score));
        let mut seen = HashSet::new();
        for entry in predicted {
            if !seen.insert((&entry.spans, entry.ids.sorted())) {
                continue;
            }
            let rows = golds.get_mut(entry.spans.as_slice());
            let answered = rows.and_then(|rows| {
                let index = rows.iter().position(|&row| policy.matches(&document.gold[row].ids, &entry.ids))?;
                Some(rows.remove(index))
            });
            outcomes.answered.push(Outcome { score: f64::from(entry.score), right: answered.is_some() });
        }
    }
    outcomes
}

#[cfg(test)]
mod tests {
    use super::super::Entry;
    use super::super::ids::IdSet;
    use super::*;
    use proptest::prelude::*;

    fn outcomes(pairs: &[(f64, u8)], n_unanswered: u64, n_gold: u64) -> Outcomes {
        let answered = pairs.iter().map(|&(score, right)| Outcome { score, right: right == 1 }).collect();
        Outcomes { answered, n_unanswered, n_gold }
    }

    fn of(pairs: &[(f64, u8)]) -> Curves {
        curves(&outcomes(pairs, 0, pairs.len() as u64), &CurveConfig::default())
    }

    fn near(actual: f64, expected: f64) {
        assert!((actual - expected).abs() < 1e-9, "{actual} is not {expected}");
    }

    fn points(curves: &Curves) -> Vec<(f64, f64, f64)> {
        curves.points.iter().map(|point| (point.threshold, point.coverage, point.risk)).collect()
    }

    #[test]
    fn the_area_is_the_mean_risk_over_answers() {
        // Risks at coverage 1/4 to 1: 0, 1/2, 1/3, 1/2.
        let curves = of(&[(0.9, 1), (0.8, 0), (0.7, 1), (0.6, 0)]);
        assert_eq!(points(&curves), [(0.9, 0.25, 0.0), (0.8, 0.5, 0.5), (0.7, 0.75, 1.0 / 3.0), (0.6, 1.0, 0.5)]);
        near(curves.aurc, (0.0 + 0.5 + 1.0 / 3.0 + 0.5) / 4.0);
        // Optimal ranking: risks 0, 0, 1/3, 1/2.
        near(curves.excess_aurc, (0.5 + 1.0 / 3.0 + 0.5) / 4.0 - (1.0 / 3.0 + 0.5) / 4.0);
    }

    #[test]
    fn answers_of_one_score_are_kept_together() {
        // A group of two, then a group of two: risks 1/2 and 1/4, each counted twice.
        let curves = of(&[(0.5, 1), (0.9, 1), (0.5, 1), (0.9, 0)]);
        assert_eq!(points(&curves), [(0.9, 0.5, 0.5), (0.5, 1.0, 0.25)]);
        near(curves.aurc, 0.375);
        assert_eq!(of(&[(0.0, 1), (-0.0, 1)]).points.len(), 1);
    }

    #[test]
    fn perfect_scores_have_no_excess_area() {
        near(of(&[(0.9, 1), (0.8, 1), (0.2, 0)]).excess_aurc, 0.0);
        near(of(&[(0.2, 1), (0.8, 1)]).aurc, 0.0);
        near(of(&[(0.2, 0), (0.8, 0)]).aurc, 1.0);
    }

    #[test]
    fn the_threshold_for_a_precision_is_the_smallest_one_that_reaches_it() {
        // Precisions 1, 1/2, 2/3, 3/4, 3/5: the target 0.7 is reached again at the fourth.
        let pairs = [(0.9, 1), (0.8, 0), (0.7, 1), (0.6, 1), (0.5, 0)];
        let wanted = |precision| {
            let config = CurveConfig { wanted_precision: Some(precision), ..CurveConfig::default() };
            curves(&outcomes(&pairs, 5, 6), &config).wanted.expect("it was asked for")
        };
        let found = wanted(0.7);
        assert_eq!((found.threshold, found.reached, found.coverage, found.recall), (Some(0.6), 0.75, 0.4, 0.5));
        assert_eq!((wanted(0.95).threshold, wanted(0.95).coverage), (Some(0.9), 0.1));
        assert_eq!(wanted(0.1).threshold, Some(0.5));
        let config = CurveConfig { wanted_precision: Some(0.9), ..CurveConfig::default() };
        let none = curves(&outcomes(&[(0.9, 0)], 0, 1), &config).wanted.expect("it was asked for");
        assert_eq!((none.threshold, none.coverage), (None, 0.0));
    }

    #[test]
    fn ties_at_the_threshold_count_as_a_block() {
        let config = CurveConfig { wanted_precision: Some(0.6), ..CurveConfig::default() };
        // Only the first of two equal scores would reach the target; both together do not.
        let found = curves(&outcomes(&[(0.8, 1), (0.5, 0), (0.5, 0)], 0, 1), &config).wanted.expect("asked for");
        assert_eq!(found.threshold, Some(0.8));
        // 19 of 20 is 0.95, although the fraction is not exact in binary.
        let config = CurveConfig { wanted_precision: Some(0.95), ..CurveConfig::default() };
        let mut pairs = vec![(0.5, 1); 19];
        pairs.push((0.5, 0));
        assert_eq!(curves(&outcomes(&pairs, 0, 19), &config).wanted.expect("asked for").threshold, Some(0.5));
    }

    #[test]
    fn calibration_compares_confidence_and_accuracy_of_bins() {
        // Bin 0.9–1: mean 0.95, accuracy 1/2. Bin 0.2–0.3: mean 0.25, accuracy 1/2. Differences 0.45 and 0.25.
        let calibration = of(&[(0.9, 1), (1.0, 0), (0.2, 0), (0.3 - 1e-9, 1)]).calibration.expect("probabilities");
        assert!((calibration.ece - 0.35).abs() < 1e-8 && (calibration.mce - 0.45).abs() < 1e-8);
        assert!((calibration.brier - (0.01 + 1.0 + 0.04 + 0.49) / 4.0).abs() < 1e-8);
        let filled: Vec<(f64, u64)> =
            calibration.bins.iter().filter(|bin| bin.n > 0).map(|bin| (bin.low, bin.n)).collect();
        assert_eq!(filled, [(0.2, 2), (0.9, 2)]);
        assert_eq!(calibration.bins.len(), 10);
        assert!(of(&[(1.5, 1)]).calibration.is_none());
    }

    #[test]
    fn empty_input_has_an_empty_curve() {
        let curves = of(&[]);
        assert_eq!((curves.points.len(), curves.aurc, curves.calibration), (0, 0.0, None));
        let curves = super::curves(&outcomes(&[(f64::NAN, 1)], 1, 1), &CurveConfig::default());
        assert_eq!((curves.n, curves.n_answered), (2, 0));
    }

    #[test]
    fn long_curves_keep_their_ends() {
        let pairs: Vec<(f64, u8)> = (0..1000).map(|row| (f64::from(row), 1)).collect();
        let curves = of(&pairs);
        assert_eq!(curves.points.len(), 200);
        assert_eq!((curves.points[0].threshold, curves.points[199].threshold), (999.0, 0.0));
    }

    #[test]
    fn links_are_right_on_identical_spans_and_each_gold_once() {
        let entry = |start, ids: &str, score: f32| {
            let mut entry = Entry::new(vec![Span::new(start, start + 3)], IdSet::parse_one(ids));
            entry.score = score;
            entry
        };
        let document = DocumentPair {
            id: "d".into(),
            gold: vec![entry(0, "A|B", 1.0), entry(9, "-1", 1.0), entry(20, "C", 1.0)],
            predicted: vec![entry(0, "A", 0.3), entry(0, "B", 0.6), entry(0, "B", 0.2), entry(9, "A", 0.5)],
        };
        let found = links(&[document], IdPolicy::Any);
        let pairs: Vec<(f32, bool)> = found.answered.iter().map(|one| (one.score as f32, one.right)).collect();
        assert_eq!(pairs, [(0.6, true), (0.5, false), (0.3, false)]);
        assert_eq!(found.n_gold, 2);
    }

    proptest! {
        #[test]
        fn areas_and_shares_stay_between_0_and_1(
            pairs in prop::collection::vec((0u8..6, 0u8..2), 0..40),
            n_unanswered in 0u64..4,
        ) {
            let pairs: Vec<(f64, u8)> = pairs.into_iter().map(|(score, right)| (f64::from(score) / 5.0, right)).collect();
            let n_right = pairs.iter().filter(|pair| pair.1 == 1).count() as u64;
            let curves = curves(&outcomes(&pairs, n_unanswered, n_right), &CurveConfig::default());
            prop_assert!((0.0..=1.0).contains(&curves.aurc) && curves.excess_aurc <= curves.aurc);
            for two in curves.points.windows(2) {
                prop_assert!(two[0].threshold > two[1].threshold && two[0].coverage < two[1].coverage);
                prop_assert!(two[0].recall <= two[1].recall);
            }
            if let Some(last) = curves.points.last() {
                prop_assert!((last.coverage - curves.n_answered as f64 / curves.n as f64).abs() < 1e-12);
                prop_assert_eq!(last.recall, if n_right > 0 { 1.0 } else { 0.0 });
            }
            if let Some(calibration) = curves.calibration {
                prop_assert!(calibration.ece <= calibration.mce + 1e-12);
                prop_assert_eq!(calibration.bins.iter().map(|bin| bin.n).sum::<u64>(), curves.n_answered);
            }
        }
    }
}
