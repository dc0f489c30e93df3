//! Precision, recall and F1 of predicted annotations with spans.
//!
//! [`count`] computes the [`Counts`] of a document under a [`Measure`]; counts are summed over documents. Strict
//! follows Mohan and Li (2019). `partial-maxmax` is `overlap-maxmax` of neleval, but compares all pairs, so nested
//! annotations do not lose credit as in its sweep. Weak is the weak annotation match for A2W of Cornolti et al. (2013).
//!
//! Annotations without a concept are excluded from link measures on both sides. A prediction on a gold annotation
//! without a concept is thus a false positive.

use std::iter::Sum;
use std::ops::Add;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::assignment::maximum_matching;
use super::ids::{IdPolicy, IdSet};
use super::overlap::{Overlap, length, overlaps, without_overlaps};
use super::{DocumentPair, Entry};
use crate::text::Span;

/// A matching criterion.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Measure {
    /// Identical spans and matching concepts, one to one.
    Strict,
    /// Identical spans, regardless of the concept.
    MentionRecognition,
    /// Identical spans and matching semantic types.
    Type,
    /// Overlapping spans and matching concepts; not one to one.
    PartialBinary,
    /// Overlapping spans and matching concepts, one to one.
    #[serde(rename = "partial-1to1")]
    PartialOneToOne,
    /// The largest share covered by a matching annotation; duplicates are counted.
    #[serde(rename = "partial-maxmax")]
    PartialMaxMax,
    /// Weak annotation match: `PartialBinary`, optionally after resolving overlapping predictions.
    Weak,
    /// Identical spans that are not linked on either side.
    Nil,
}

impl Measure {
    /// All measures, in report order.
    pub const ALL: [Measure; 8] = [
        Measure::Strict,
        Measure::MentionRecognition,
        Measure::Type,
        Measure::PartialBinary,
        Measure::PartialOneToOne,
        Measure::PartialMaxMax,
        Measure::Weak,
        Measure::Nil,
    ];

    /// Name in reports and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Measure::Strict => "strict",
            Measure::MentionRecognition => "mention-recognition",
            Measure::Type => "type",
            Measure::PartialBinary => "partial-binary",
            Measure::PartialOneToOne => "partial-1to1",
            Measure::PartialMaxMax => "partial-maxmax",
            Measure::Weak => "weak",
            Measure::Nil => "nil",
        }
    }

    /// Whether it compares concepts.
    pub fn needs_ids(self) -> bool {
        !matches!(self, Measure::MentionRecognition | Measure::Type | Measure::Nil)
    }
}

impl FromStr for Measure {
    type Err = crate::Error;

    fn from_str(text: &str) -> crate::Result<Measure> {
        Measure::ALL.into_iter().find(|measure| measure.name() == text).ok_or_else(|| {
            let names: Vec<&str> = Measure::ALL.iter().map(|measure| measure.name()).collect();
            crate::Error::not_found(format!("unknown measure `{text}`"))
                .with_hint(format!("use one of {}", names.join(", ")))
        })
    }
}

/// Settings of the span measures.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MatchConfig {
    /// When ids match.
    pub ids: IdPolicy,
    /// Whether overlapping predictions are resolved before [`Measure::Weak`], in favour of the longest, then the most
    /// confident.
    pub resolve_overlaps: bool,
}

/// Credits and sizes of both sides.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Counts {
    /// Number of gold annotations.
    pub n_gold: u64,
    /// Number of predicted annotations.
    pub n_pred: u64,
    /// Number of matched gold annotations; a sum of shares under [`Measure::PartialMaxMax`].
    pub tp_gold: f64,
    /// Number of matched predicted annotations; a sum of shares under [`Measure::PartialMaxMax`].
    pub tp_pred: f64,
}

impl Counts {
    /// Counts of a one-to-one measure: each gold annotation is matched by at most one prediction.
    pub fn one_to_one(n_gold: usize, n_pred: usize, n_right: usize) -> Counts {
        Counts { n_gold: n_gold as u64, n_pred: n_pred as u64, tp_gold: n_right as f64, tp_pred: n_right as f64 }
    }

    /// The counts multiplied by `weight`.
    pub(crate) fn times(self, weight: u32) -> Counts {
        Counts {
            n_gold: self.n_gold * u64::from(weight),
            n_pred: self.n_pred * u64::from(weight),
            tp_gold: self.tp_gold * f64::from(weight),
            tp_pred: self.tp_pred * f64::from(weight),
        }
    }

    /// Precision, recall and F1.
    pub fn score(&self) -> Score {
        let precision = ratio(self.tp_pred, self.n_pred as f64);
        let recall = ratio(self.tp_gold, self.n_gold as f64);
        Score { precision, recall, f1: ratio(2.0 * precision * recall, precision + recall) }
    }
}

impl Add for Counts {
    type Output = Counts;

    fn add(self, other: Counts) -> Counts {
        Counts {
            n_gold: self.n_gold + other.n_gold,
            n_pred: self.n_pred + other.n_pred,
            tp_gold: self.tp_gold + other.tp_gold,
            tp_pred: self.tp_pred + other.tp_pred,
        }
    }
}

impl Sum for Counts {
    fn sum<I: Iterator<Item = Counts>>(counts: I) -> Counts {
        counts.fold(Counts::default(), Add::add)
    }
}

/// Precision, recall and F1 from 0 to 1.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Score {
    /// Correct predictions / predictions.
    pub precision: f64,
    /// Found gold annotations / gold annotations.
    pub recall: f64,
    /// Harmonic mean of precision and recall.
    pub f1: f64,
}

impl Score {
    /// F-beta: recall weighs `beta` times as much as precision. 0 if both are 0.
    pub fn f_beta(&self, beta: f64) -> f64 {
        let square = beta * beta;
        ratio((1.0 + square) * self.precision * self.recall, square * self.precision + self.recall)
    }
}

/// Macro average over documents; documents without gold and predictions are excluded.
pub fn macro_score(documents: &[Counts]) -> Score {
    let judged = documents.iter().filter(|counts| counts.n_gold + counts.n_pred > 0);
    let scores: Vec<Score> = judged.map(Counts::score).collect();
    let mean = |value: fn(&Score) -> f64| ratio(scores.iter().map(value).sum(), scores.len() as f64);
    Score { precision: mean(|score| score.precision), recall: mean(|score| score.recall), f1: mean(|score| score.f1) }
}

/// `part / whole`, or 0 if `whole` is 0.
pub(crate) fn ratio(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 0.0 }
}

/// The counts of one document under a measure.
pub fn count(measure: Measure, document: &DocumentPair, config: MatchConfig) -> Counts {
    count_entries(measure, &document.gold, &document.predicted, config)
}

/// Like [`count`], for lists of annotations.
pub fn count_entries(measure: Measure, gold: &[Entry], predicted: &[Entry], config: MatchConfig) -> Counts {
    let gold = items(gold, measure, config, Side::Gold);
    let predicted = items(predicted, measure, config, Side::Predicted);
    match measure {
        Measure::Strict | Measure::MentionRecognition | Measure::Type | Measure::Nil => {
            count_identical(&unique(gold), &unique(predicted), config.ids)
        }
        Measure::PartialBinary => count_binary(&unique(gold), &unique(predicted), config.ids),
        Measure::Weak if config.resolve_overlaps => {
            count_binary(&unique(gold), &resolved(unique(predicted)), config.ids)
        }
        Measure::Weak => count_binary(&unique(gold), &unique(predicted), config.ids),
        Measure::PartialOneToOne => {
            let (gold, predicted) = (unique(gold), unique(predicted));
            let pairs = agreeing_overlaps(&gold, &predicted, config.ids);
            let edges: Vec<(usize, usize)> = pairs.iter().map(|pair| (pair.predicted, pair.gold)).collect();
            Counts::one_to_one(gold.len(), predicted.len(), maximum_matching(predicted.len(), gold.len(), &edges))
        }
        Measure::PartialMaxMax => count_maxmax(&gold, &predicted, config.ids),
    }
}

/// An annotation reduced to what a measure compares.
struct Compared<'a> {
    spans: &'a [Span],
    /// The labels to compare, sorted: ids, types, or empty.
    labels: Vec<&'a str>,
    score: f32,
}

#[derive(Clone, Copy, PartialEq)]
enum Side {
    Gold,
    Predicted,
}

fn items<'a>(entries: &'a [Entry], measure: Measure, config: MatchConfig, side: Side) -> Vec<Compared<'a>> {
    let labels_of = |set: &'a IdSet| match config.ids {
        IdPolicy::First if side == Side::Gold => set.first().into_iter().collect(),
        _ => set.sorted(),
    };
    let item = |entry: &'a Entry| {
        let labels = match measure {
            Measure::MentionRecognition => Vec::new(),
            Measure::Nil if entry.ids.is_nil() => Vec::new(),
            Measure::Type if !entry.types.is_empty() => labels_of(&entry.types),
            Measure::Nil | Measure::Type => return None,
            _ if entry.ids.is_nil() => return None,
            _ => labels_of(&entry.ids),
        };
        Some(Compared { spans: &entry.spans, labels, score: entry.score })
    };
    entries.iter().filter_map(item).collect()
}

/// Removes duplicates with the same spans and labels, keeping the most confident; sorted by spans.
fn unique(mut items: Vec<Compared<'_>>) -> Vec<Compared<'_>> {
    items.sort_by(|a, b| (a.spans, &a.labels).cmp(&(b.spans, &b.labels)).then(b.score.total_cmp(&a.score)));
    items.dedup_by(|a, b| a.spans == b.spans && a.labels == b.labels);
    items
}

/// Resolves overlapping predictions in favour of the longest, then the most confident.
fn resolved(items: Vec<Compared<'_>>) -> Vec<Compared<'_>> {
    let mut order: Vec<usize> = (0..items.len()).collect();
    order.sort_by(|&a, &b| {
        let by_length = length(items[b].spans).cmp(&length(items[a].spans));
        by_length.then(items[b].score.total_cmp(&items[a].score)).then(a.cmp(&b))
    });
    let spans: Vec<&[Span]> = items.iter().map(|item| item.spans).collect();
    let mut kept = vec![false; items.len()];
    for row in without_overlaps(&spans, &order) {
        kept[row] = true;
    }
    items.into_iter().zip(kept).filter_map(|(item, kept)| kept.then_some(item)).collect()
}

/// Whether labels match; without labels they do.
fn agree(gold: &[&str], predicted: &[&str], policy: IdPolicy) -> bool {
    if gold.is_empty() && predicted.is_empty() {
        return true;
    }
    match policy {
        // Under `first`, gold has only its first label.
        IdPolicy::Any | IdPolicy::First => gold.iter().any(|label| predicted.contains(label)),
        IdPolicy::Exact => gold == predicted,
    }
}

/// Counts one-to-one matches on identical spans; both sides are sorted by spans and without duplicates.
fn count_identical(gold: &[Compared<'_>], predicted: &[Compared<'_>], policy: IdPolicy) -> Counts {
    let mut n_right = 0;
    let mut gold_groups = gold.chunk_by(|a, b| a.spans == b.spans).peekable();
    for group in predicted.chunk_by(|a, b| a.spans == b.spans) {
        while gold_groups.next_if(|candidates| candidates[0].spans < group[0].spans).is_some() {}
        let Some(candidates) = gold_groups.next_if(|candidates| candidates[0].spans == group[0].spans) else {
            continue;
        };
        let mut edges = Vec::new();
        for (row, prediction) in group.iter().enumerate() {
            let agreeing =
                candidates.iter().enumerate().filter(|(_, item)| agree(&item.labels, &prediction.labels, policy));
            edges.extend(agreeing.map(|(column, _)| (row, column)));
        }
        n_right += maximum_matching(group.len(), candidates.len(), &edges);
    }
    Counts::one_to_one(gold.len(), predicted.len(), n_right)
}

fn agreeing_overlaps(gold: &[Compared<'_>], predicted: &[Compared<'_>], policy: IdPolicy) -> Vec<Overlap> {
    let gold_spans: Vec<&[Span]> = gold.iter().map(|item| item.spans).collect();
    let predicted_spans: Vec<&[Span]> = predicted.iter().map(|item| item.spans).collect();
    overlaps(&gold_spans, &predicted_spans, |row, column| agree(&gold[row].labels, &predicted[column].labels, policy))
}

fn count_binary(gold: &[Compared<'_>], predicted: &[Compared<'_>], policy: IdPolicy) -> Counts {
    let mut gold_found = vec![false; gold.len()];
    let mut predicted_right = vec![false; predicted.len()];
    for pair in agreeing_overlaps(gold, predicted, policy) {
        gold_found[pair.gold] = true;
        predicted_right[pair.predicted] = true;
    }
    let total = |found: &[bool]| found.iter().filter(|&&found| found).count() as f64;
    Counts {
        n_gold: gold.len() as u64,
        n_pred: predicted.len() as u64,
        tp_gold: total(&gold_found),
        tp_pred: total(&predicted_right),
    }
}

fn count_maxmax(gold: &[Compared<'_>], predicted: &[Compared<'_>], policy: IdPolicy) -> Counts {
    let mut gold_shared = vec![0; gold.len()];
    let mut predicted_shared = vec![0; predicted.len()];
    for pair in agreeing_overlaps(gold, predicted, policy) {
        gold_shared[pair.gold] = pair.shared.max(gold_shared[pair.gold]);
        predicted_shared[pair.predicted] = pair.shared.max(predicted_shared[pair.predicted]);
    }
    let credit = |items: &[Compared<'_>], shared: &[u64]| -> f64 {
        items.iter().zip(shared).map(|(item, &shared)| ratio(shared as f64, length(item.spans) as f64)).sum()
    };
    Counts {
        n_gold: gold.len() as u64,
        n_pred: predicted.len() as u64,
        tp_gold: credit(gold, &gold_shared),
        tp_pred: credit(predicted, &predicted_shared),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Entries from lines of `first last ids`, where `last` is inclusive.
    fn entries(text: &str) -> Vec<Entry> {
        let entry = |line: &str| {
            let fields: Vec<&str> = line.split_whitespace().collect();
            let number = |field: &str| field.parse::<usize>().expect("a number");
            Entry::new(vec![Span::new(number(fields[0]), number(fields[1]) + 1)], IdSet::parse_one(fields[2]))
        };
        text.split(',').filter(|line| !line.trim().is_empty()).map(entry).collect()
    }

    fn pair(gold: &str, predicted: &str) -> DocumentPair {
        DocumentPair { id: "d".into(), gold: entries(gold), predicted: entries(predicted) }
    }

    /// Checks `precision recall f1` with four decimals.
    fn check_with(config: MatchConfig, measure: Measure, documents: &[DocumentPair], expected: &str) {
        let score = documents.iter().map(|document| count(measure, document, config)).sum::<Counts>().score();
        let actual = format!("{:.4} {:.4} {:.4}", score.precision, score.recall, score.f1);
        assert_eq!(actual, expected, "{}", measure.name());
    }

    fn check(measure: Measure, documents: &[DocumentPair], expected: &str) {
        check_with(MatchConfig::default(), measure, documents, expected);
    }

    #[test]
    fn v1_two_documents() {
        let documents =
            [pair("5 8 D1, 12 12 D2, 20 22 D3", "5 8 D1, 11 12 D2, 20 22 D9"), pair("3 4 D4", "4 6 D4, 9 9 D5")];
        let config = MatchConfig::default();
        let strict = documents.iter().map(|document| count(Measure::Strict, document, config)).sum::<Counts>();
        assert_eq!(strict, Counts { n_gold: 4, n_pred: 5, tp_gold: 1.0, tp_pred: 1.0 });
        check(Measure::Strict, &documents, "0.2000 0.2500 0.2222");
        check(Measure::MentionRecognition, &documents, "0.4000 0.5000 0.4444");
        check(Measure::PartialMaxMax, &documents, "0.3667 0.6250 0.4622");
        check(Measure::PartialBinary, &documents, "0.6000 0.7500 0.6667");
        check(Measure::Weak, &documents, "0.6000 0.7500 0.6667");
        check(Measure::PartialOneToOne, &documents, "0.6000 0.7500 0.6667");
    }

    #[test]
    fn v2_nested_and_repeated_predictions() {
        let documents = [pair("0 5 X", "0 5 X, 1 2 X, 3 9 X, 0 5 X")];
        check(Measure::Strict, &documents, "0.3333 1.0000 0.5000");
        // neleval's sweep gives 0.6071, because it misses one of the two identical rows.
        check(Measure::PartialMaxMax, &documents, "0.8571 1.0000 0.9231");
    }

    #[test]
    fn v3_one_wide_prediction() {
        let documents = [pair("0 5 X, 8 9 X", "0 9 X")];
        check(Measure::Strict, &documents, "0.0000 0.0000 0.0000");
        check(Measure::PartialMaxMax, &documents, "0.6000 1.0000 0.7500");
        check(Measure::PartialBinary, &documents, "1.0000 1.0000 1.0000");
        check(Measure::PartialOneToOne, &documents, "1.0000 0.5000 0.6667");
    }

    #[test]
    fn v7_id_policies() {
        let second = [pair("0 4 D1|D2", "0 4 D2")];
        let both = [pair("0 4 D1|D2", "0 4 D2|D1")];
        let config = |ids| MatchConfig { ids, ..MatchConfig::default() };
        check_with(config(IdPolicy::Any), Measure::Strict, &second, "1.0000 1.0000 1.0000");
        check_with(config(IdPolicy::First), Measure::Strict, &second, "0.0000 0.0000 0.0000");
        check_with(config(IdPolicy::Exact), Measure::Strict, &second, "0.0000 0.0000 0.0000");
        check_with(config(IdPolicy::Exact), Measure::Strict, &both, "1.0000 1.0000 1.0000");
        check_with(config(IdPolicy::First), Measure::Strict, &both, "1.0000 1.0000 1.0000");
    }

    #[test]
    fn v12_a_link_where_gold_has_none_is_wrong() {
        let documents = [pair("0 3 C1, 10 13 NIL", "2 5 C1, 10 13 C7")];
        check(Measure::Weak, &documents, "0.5000 1.0000 0.6667");
        check(Measure::MentionRecognition, &documents, "0.5000 0.5000 0.5000");
        check(Measure::Nil, &documents, "0.0000 0.0000 0.0000");
        check(Measure::Nil, &[pair("10 13 -1", "10 13 NIL")], "1.0000 1.0000 1.0000");
    }

    #[test]
    fn two_predictions_for_one_composite_are_one_right_and_one_wrong() {
        check(Measure::Strict, &[pair("0 4 D1|D2", "0 4 D1, 0 4 D2")], "0.5000 1.0000 0.6667");
        // Both gold annotations are matched, although greedy matching could use the only option of the second for the
        // first.
        check(Measure::Strict, &[pair("0 4 D1|D2, 0 4 D1", "0 4 D1, 0 4 D2")], "1.0000 1.0000 1.0000");
    }

    #[test]
    fn overlapping_predictions_are_resolved_only_on_request() {
        let mut document = pair("0 4 X, 6 9 Y", "0 9 X, 6 9 Y, 20 22 Z, 21 23 Z");
        document.predicted[3].score = 2.0;
        check(Measure::Weak, &[document.clone()], "0.5000 1.0000 0.6667");
        let config = MatchConfig { resolve_overlaps: true, ..MatchConfig::default() };
        check_with(config, Measure::Weak, &[document], "0.5000 0.5000 0.5000");
    }

    #[test]
    fn discontinuous_mentions_need_the_same_spans() {
        let spans = |pairs: &[(usize, usize)]| pairs.iter().map(|&(start, end)| Span::new(start, end)).collect();
        let entry = |pairs: &[(usize, usize)]| Entry::new(spans(pairs), IdSet::parse_one("D1"));
        let document = |predicted| DocumentPair {
            id: "d".into(),
            gold: vec![entry(&[(0, 4), (10, 14)])],
            predicted: vec![predicted],
        };
        check(Measure::Strict, &[document(entry(&[(10, 14), (0, 4)]))], "1.0000 1.0000 1.0000");
        check(Measure::Strict, &[document(entry(&[(0, 14)]))], "0.0000 0.0000 0.0000");
        check(Measure::PartialBinary, &[document(entry(&[(5, 9)]))], "0.0000 0.0000 0.0000");
        check(Measure::PartialMaxMax, &[document(entry(&[(0, 14)]))], "0.5714 1.0000 0.7273");
    }

    #[test]
    fn types_are_compared_instead_of_ids() {
        let mut document = pair("0 4 D1, 6 9 D2", "0 4 D9, 6 9 D2");
        document.gold[0].types = IdSet::parse_types("T047,T191");
        document.predicted[0].types = IdSet::parse_types("T191");
        document.gold[1].types = IdSet::parse_types("T121");
        document.predicted[1].types = IdSet::parse_types("T047");
        check(Measure::Type, &[document], "0.5000 0.5000 0.5000");
    }

    #[test]
    fn macro_scores_leave_out_empty_documents() {
        let documents = [pair("0 1 A", "0 1 A"), pair("", ""), pair("0 1 A", "0 1 B")];
        let counts: Vec<Counts> =
            documents.iter().map(|document| count(Measure::Strict, document, MatchConfig::default())).collect();
        assert_eq!(macro_score(&counts).f1, 0.5);
        assert_eq!(macro_score(&[]).f1, 0.0);
    }
}
