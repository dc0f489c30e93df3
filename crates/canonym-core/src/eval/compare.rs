//! Compares two systems on the same gold: changes mention by mention, and their significance.
//!
//! A gold mention is correct if a prediction with the same spans has a matching concept (strict), or, for queries, if
//! the first candidate of every part matches. Won: correct only in the second system; lost: correct only in the first.

use std::collections::{BTreeMap, HashMap};

use serde::{Deserialize, Serialize};

use super::bootstrap::SplitMix64;
use super::ids::{IdPolicy, IdSet};
use super::matching::{Counts, MatchConfig, Measure, count, ratio};
use super::overlap::shared;
use super::pairing::Paired;
use super::ranking::{RankedMention, RankingConfig, first_right};
use super::significance::{Difference, McNemar, SignificanceConfig, differences, mcnemar};
use super::{DocumentPair, Entry};
use crate::text::Span;
use crate::{Error, Result};

/// The kind of a change from the first system to the second.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ChangeKind {
    /// Only the second system is correct.
    Won,
    /// Only the first system is correct.
    Lost,
    /// Both are wrong, with different answers.
    BothWrong,
    /// A link only of the second system that overlaps no gold mention.
    Added,
    /// A link only of the first system that overlaps no gold mention.
    Removed,
}

impl ChangeKind {
    /// All kinds, in report order.
    pub const ALL: [ChangeKind; 5] =
        [ChangeKind::Won, ChangeKind::Lost, ChangeKind::BothWrong, ChangeKind::Added, ChangeKind::Removed];

    /// Name for people.
    pub fn name(self) -> &'static str {
        match self {
            ChangeKind::Won => "won",
            ChangeKind::Lost => "lost",
            ChangeKind::BothWrong => "both wrong, different errors",
            ChangeKind::Added => "new link without gold",
            ChangeKind::Removed => "removed link without gold",
        }
    }
}

/// The answer of a system for a mention.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SystemAnswer {
    /// The ids; `NIL` if not linked, parts of a composite joined by ` / `; empty without an answer.
    pub ids: String,
    /// Name of the concept, if the file contains it.
    pub name: String,
    /// Text of the prediction, if its spans differ from the gold mention.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub text: String,
}

/// A mention with different answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// The kind of the change.
    pub kind: ChangeKind,
    /// Its document.
    pub document: String,
    /// Its spans in code points; empty for queries.
    pub spans: Vec<(u32, u32)>,
    /// Its text.
    pub text: String,
    /// The gold ids; empty without a gold mention.
    pub gold: String,
    /// Answer of the first system.
    pub first: SystemAnswer,
    /// Answer of the second system.
    pub second: SystemAnswer,
}

/// The differences between two systems.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// Number of documents.
    pub n_documents: u64,
    /// Number of gold mentions with a concept.
    pub n_gold: u64,
    /// Number of mentions that both systems have correct.
    pub n_both_right: u64,
    /// Number of mentions with the same wrong answer in both.
    pub n_same_wrong: u64,
    /// Number of changes by kind.
    pub n_changes: BTreeMap<ChangeKind, u64>,
    /// Significance tests by measure, such as `strict F1`.
    pub measures: Vec<(String, Difference)>,
    /// McNemar test on correct mentions.
    pub mcnemar: McNemar,
    /// The changes, in gold order.
    pub changes: Vec<Change>,
}

impl Comparison {
    fn add(&mut self, change: Change) {
        *self.n_changes.entry(change.kind).or_default() += 1;
        self.changes.push(change);
    }

    /// Counts a gold mention; not a change if both are correct or give the same wrong answer.
    fn count_mention(&mut self, rights: (bool, bool), change: impl FnOnce(ChangeKind) -> Change, is_same: bool) {
        self.n_gold += 1;
        match rights {
            (true, true) => self.n_both_right += 1,
            (false, true) => self.add(change(ChangeKind::Won)),
            (true, false) => self.add(change(ChangeKind::Lost)),
            (false, false) if is_same => self.n_same_wrong += 1,
            (false, false) => self.add(change(ChangeKind::BothWrong)),
        }
    }

    fn test_mentions(&mut self) {
        let n_of = |kind| self.n_changes.get(&kind).copied().unwrap_or_default();
        self.mcnemar = mcnemar(n_of(ChangeKind::Won), n_of(ChangeKind::Lost));
    }
}

/// Compares two systems on annotated documents, both paired with the same gold.
pub fn compare_documents(
    first: &Paired,
    second: &Paired,
    measures: &[Measure],
    matching: MatchConfig,
    config: &SignificanceConfig,
    rng: &mut SplitMix64,
) -> Result<Comparison> {
    let same = |(left, right): (&DocumentPair, &DocumentPair)| left.id == right.id && left.gold == right.gold;
    let is_same = first.documents.len() == second.documents.len();
    if !is_same || !first.documents.iter().zip(&second.documents).all(same) {
        return Err(Error::mismatch("the two systems were scored on different gold annotations"));
    }
    let mut comparison = Comparison { n_documents: first.documents.len() as u64, ..Comparison::default() };
    for (left, right) in first.documents.iter().zip(&second.documents) {
        compare_document(&mut comparison, left, right, matching.ids);
    }
    comparison.test_mentions();
    let rows = |paired: &Paired| -> Vec<Vec<f64>> {
        let row = |document: &DocumentPair| {
            let columns = |&measure| {
                let Counts { n_gold, n_pred, tp_gold, tp_pred } = count(measure, document, matching);
                [n_gold as f64, n_pred as f64, tp_gold, tp_pred]
            };
            measures.iter().flat_map(columns).collect()
        };
        paired.documents.iter().map(row).collect()
    };
    let scores = |sums: &[f64]| -> Vec<f64> {
        let score = |one: &[f64]| {
            let (precision, recall) = (ratio(one[3], one[1]), ratio(one[2], one[0]));
            [precision, recall, ratio(2.0 * precision * recall, precision + recall)]
        };
        sums.chunks_exact(4).flat_map(score).collect()
    };
    let found = differences(&rows(first), &rows(second), scores, config, rng);
    let names = measures.iter().flat_map(|measure| ["precision", "recall", "F1"].map(|what| (measure.name(), what)));
    comparison.measures = names.map(|(measure, what)| format!("{measure} {what}")).zip(found).collect();
    Ok(comparison)
}

/// Compares two systems on the same queries.
pub fn compare_rankings(
    first: &[RankedMention],
    second: &[RankedMention],
    ranking: &RankingConfig,
    config: &SignificanceConfig,
    rng: &mut SplitMix64,
) -> Result<Comparison> {
    let same =
        |(left, right): (&RankedMention, &RankedMention)| left.gold == right.gold && left.surface == right.surface;
    if first.len() != second.len() || !first.iter().zip(second).all(same) {
        return Err(Error::mismatch("the two systems have different queries"));
    }
    let mut comparison = Comparison::default();
    let mut documents: HashMap<&str, usize> = HashMap::new();
    let mut rows: [Vec<Vec<f64>>; 2] = Default::default();
    let rights = first_right(first, ranking).into_iter().zip(first_right(second, ranking));
    for ((left, right), judged) in first.iter().zip(second).zip(rights) {
        let (Some(left_right), Some(right_right)) = judged else { continue };
        let n_documents = documents.len();
        let row = *documents.entry(&left.document).or_insert(n_documents);
        for (rows, is_right) in rows.iter_mut().zip([left_right, right_right]) {
            rows.resize_with(rows.len().max(row + 1), || vec![0.0, 0.0]);
            rows[row][0] += f64::from(u8::from(is_right));
            rows[row][1] += 1.0;
        }
        let (answer, other) = (answer_to_query(left), answer_to_query(right));
        let is_same = answer.ids == other.ids;
        let change = |kind| Change {
            kind,
            document: left.document.clone(),
            spans: Vec::new(),
            text: left.surface.text.clone(),
            gold: left.gold.to_string(),
            first: answer,
            second: other,
        };
        comparison.count_mention((left_right, right_right), change, is_same);
    }
    comparison.n_documents = documents.len() as u64;
    comparison.test_mentions();
    let accuracy = |sums: &[f64]| vec![if sums.is_empty() { 0.0 } else { ratio(sums[0], sums[1]) }];
    let found = differences(&rows[0], &rows[1], accuracy, config, rng);
    comparison.measures = ["accuracy@1".to_owned()].into_iter().zip(found).collect();
    Ok(comparison)
}

fn answer_to_query(mention: &RankedMention) -> SystemAnswer {
    let first = |part: &Vec<IdSet>| part.first().map_or_else(String::new, IdSet::to_string);
    let ids: Vec<String> = mention.parts.iter().map(first).collect();
    let is_empty = ids.iter().all(String::is_empty);
    SystemAnswer {
        ids: if is_empty { String::new() } else { ids.join(" / ") },
        name: mention.name.clone(),
        text: String::new(),
    }
}

fn compare_document(comparison: &mut Comparison, left: &DocumentPair, right: &DocumentPair, policy: IdPolicy) {
    for gold in left.gold.iter().filter(|gold| !gold.ids.is_nil()) {
        let (answer, is_right) = answer_of(gold, &left.predicted, policy);
        let (other, other_right) = answer_of(gold, &right.predicted, policy);
        let (first, second) = (to_answer(answer, Some(gold)), to_answer(other, Some(gold)));
        let is_same = first.ids == second.ids && answer.map(|one| &one.spans) == other.map(|one| &one.spans);
        let change = |kind| change(kind, &left.id, gold, gold.ids.to_string(), first, second);
        comparison.count_mention((is_right, other_right), change, is_same);
    }
    let elsewhere = |entries: &[Entry]| -> Vec<Entry> {
        let touches = |entry: &Entry| left.gold.iter().any(|gold| shared(&gold.spans, &entry.spans) > 0);
        entries.iter().filter(|entry| !entry.ids.is_nil() && !touches(entry)).cloned().collect()
    };
    let (old, new) = (elsewhere(&left.predicted), elsewhere(&right.predicted));
    let is_in = |entry: &Entry, list: &[Entry]| {
        list.iter().any(|other| other.spans == entry.spans && other.ids.sorted() == entry.ids.sorted())
    };
    for entry in old.iter().filter(|entry| !is_in(entry, &new)) {
        let first = to_answer(Some(entry), None);
        comparison.add(change(ChangeKind::Removed, &left.id, entry, String::new(), first, SystemAnswer::default()));
    }
    for entry in new.iter().filter(|entry| !is_in(entry, &old)) {
        let second = to_answer(Some(entry), None);
        comparison.add(change(ChangeKind::Added, &left.id, entry, String::new(), SystemAnswer::default(), second));
    }
}

/// The prediction with the spans of `gold`, preferring a matching one, else the one with the largest overlap.
fn answer_of<'a>(gold: &Entry, predicted: &'a [Entry], policy: IdPolicy) -> (Option<&'a Entry>, bool) {
    let on_spans = || predicted.iter().filter(|entry| entry.spans == gold.spans);
    if let Some(entry) = on_spans().find(|entry| policy.matches(&gold.ids, &entry.ids)) {
        return (Some(entry), true);
    }
    let n_shared = |entry: &&Entry| shared(&gold.spans, &entry.spans);
    let nearest = || predicted.iter().filter(|entry| n_shared(entry) > 0).max_by_key(n_shared);
    (on_spans().next().or_else(nearest), false)
}

fn to_answer(entry: Option<&Entry>, gold: Option<&Entry>) -> SystemAnswer {
    let Some(entry) = entry else { return SystemAnswer::default() };
    let elsewhere = gold.is_some_and(|gold| gold.spans != entry.spans);
    SystemAnswer {
        ids: entry.ids.to_string(),
        name: entry.name.clone(),
        text: if elsewhere { entry.text.clone() } else { String::new() },
    }
}

fn change(
    kind: ChangeKind,
    document: &str,
    entry: &Entry,
    gold: String,
    first: SystemAnswer,
    second: SystemAnswer,
) -> Change {
    let spans = entry.spans.iter().map(|&Span { start, end }| (start, end)).collect();
    Change { kind, document: document.to_owned(), spans, text: entry.text.clone(), gold, first, second }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(start: usize, end: usize, ids: &str, text: &str) -> Entry {
        let mut entry = Entry::new(vec![Span::new(start, end)], IdSet::parse_one(ids));
        entry.text = text.into();
        entry
    }

    fn paired(predicted: Vec<Entry>) -> Paired {
        let gold = vec![
            entry(0, 5, "A", "fever"),
            entry(10, 15, "B", "cough"),
            entry(20, 24, "C", "pain"),
            entry(30, 34, "-1", "cold"),
            entry(40, 44, "D", "rash"),
        ];
        let document = DocumentPair { id: "d".into(), gold, predicted };
        Paired { documents: vec![document], ..Paired::default() }
    }

    fn compared(first: Vec<Entry>, second: Vec<Entry>) -> Comparison {
        let config = SignificanceConfig { n_rounds: 20, ..SignificanceConfig::default() };
        let mut rng = SplitMix64::new(13);
        let matching = MatchConfig::default();
        compare_documents(&paired(first), &paired(second), &[Measure::Strict], matching, &config, &mut rng)
            .expect("same gold")
    }

    #[test]
    fn every_change_is_listed_once() {
        let first =
            vec![entry(0, 5, "A", ""), entry(10, 15, "X", ""), entry(20, 24, "X", ""), entry(60, 62, "E", "in")];
        let second = vec![
            entry(10, 15, "B", ""),
            entry(18, 24, "C", "a pain"),
            entry(30, 34, "E", "cold"),
            entry(70, 72, "E", "on"),
        ];
        let comparison = compared(first, second);
        let listed: Vec<String> = comparison
            .changes
            .iter()
            .map(|one| {
                let Change { text, gold, first, second, .. } = one;
                format!("{}: {text} {gold} {} > {}{}", one.kind.name(), first.ids, second.ids, second.text)
            })
            .collect();
        assert_eq!(
            listed,
            [
                "lost: fever A A > ",
                "won: cough B X > B",
                "both wrong, different errors: pain C X > Ca pain",
                "removed link without gold: in  E > ",
                "new link without gold: on   > E",
            ]
        );
        assert_eq!((comparison.n_gold, comparison.n_both_right, comparison.n_same_wrong), (4, 0, 1));
        assert_eq!((comparison.mcnemar.n_won, comparison.mcnemar.n_lost, comparison.mcnemar.p), (1, 1, 1.0));
        let names: Vec<&str> = comparison.measures.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["strict precision", "strict recall", "strict F1"]);
        assert_eq!(comparison.measures[2].1.difference, 0.0);
    }

    #[test]
    fn a_system_does_not_differ_from_itself() {
        let comparison = compared(vec![entry(0, 5, "A", "")], vec![entry(0, 5, "A", "")]);
        assert!(comparison.changes.is_empty());
        assert_eq!((comparison.n_both_right, comparison.n_same_wrong), (1, 3));
    }

    #[test]
    fn queries_are_compared_by_their_first_candidates() {
        let query = |gold: &str, answers: &[&str]| RankedMention {
            document: "d".into(),
            gold: IdSet::parse_one(gold),
            parts: answers.iter().map(|id| vec![IdSet::parse_one(id)]).collect(),
            ..RankedMention::default()
        };
        let first = [query("A|B", &["A", "X"]), query("C", &["C"]), query("-1", &["C"])];
        let second = [query("A|B", &["A", "B"]), query("C", &["Y"]), query("-1", &["Y"])];
        let (ranking, config) = (&RankingConfig::default(), &SignificanceConfig::default());
        let comparison =
            compare_rankings(&first, &second, ranking, config, &mut SplitMix64::new(1)).expect("same queries");
        let listed: Vec<(ChangeKind, &str, &str)> =
            comparison.changes.iter().map(|one| (one.kind, one.first.ids.as_str(), one.second.ids.as_str())).collect();
        assert_eq!(listed, [(ChangeKind::Won, "A / X", "A / B"), (ChangeKind::Lost, "C", "Y")]);
        assert_eq!((comparison.measures[0].1.first, comparison.measures[0].1.second), (0.5, 0.5));
        assert!(compare_rankings(&first, &second[1..], ranking, config, &mut SplitMix64::new(1)).is_err());
    }
}
