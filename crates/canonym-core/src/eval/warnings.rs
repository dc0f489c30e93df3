//! Warnings about the input of an evaluation, such as reasons for scores of 0 that are not errors of the system.

use std::collections::HashMap;

use super::DocumentPair;
use super::ids::IdSet;
use super::matching::Measure;
use super::report::{EvalConfig, Report};

/// If a smaller fraction of the ids has a prefix that also occurs on the other side, the kinds of ids differ.
const MIN_SHARED: f64 = 0.05;

/// Maximum length of a prefix without a colon.
const MAX_LETTERS: usize = 10;

/// A warning and a hint if gold and predictions use different kinds of ids, or a warning if one side has none.
pub fn of_ids<'a>(gold: impl Iterator<Item = &'a IdSet>, predicted: impl Iterator<Item = &'a IdSet>) -> Vec<String> {
    lines(&Side::of(gold), &Side::of(predicted))
}

/// Warnings if the score of types is 0 because one side has none.
pub fn of_types(documents: &[DocumentPair], report: &Report) -> Vec<String> {
    if report.metrics.get(&Measure::Type).is_none_or(|score| score.f1 > 0.0) {
        return Vec::new();
    }
    let sides = [
        ("gold has", documents.iter().flat_map(|document| &document.gold).collect::<Vec<_>>()),
        ("predictions have", documents.iter().flat_map(|document| &document.predicted).collect()),
    ];
    let has_none = |(_, entries): &(&str, Vec<&_>)| {
        let untyped = |entry: &&super::Entry| entry.types.is_empty();
        !entries.is_empty() && entries.iter().all(untyped)
    };
    let warning = |(has, _)| format!("warning: {has} no types, so `type` is 0");
    sides.into_iter().filter(has_none).map(warning).collect()
}

/// A warning if curves were requested but cannot be computed.
pub fn of_curves(config: &EvalConfig, report: &Report, has_scores: bool) -> Option<String> {
    let curves = config.curves.filter(|_| report.curves.is_empty())?;
    let option = if curves.wanted_precision.is_some() { "--want-precision" } else { "--curves" };
    let why = if has_scores { "have the same score, or almost none" } else { "have no scores" };
    Some(format!("warning: option `{option}` has no effect: predictions {why}"))
}

/// The ids of gold or predictions.
#[derive(Default)]
struct Side<'a> {
    /// Count of each prefix, and the first id with it.
    prefixes: HashMap<&'a str, (u64, &'a str)>,
    n_ids: u64,
    n_entries: u64,
    /// The first id with the most frequent prefix; ties go to the prefix met first.
    example: Option<&'a str>,
}

impl<'a> Side<'a> {
    fn of(sets: impl Iterator<Item = &'a IdSet>) -> Side<'a> {
        let mut side = Side::default();
        let mut order = Vec::new();
        for set in sets {
            side.n_entries += 1;
            for id in set.iter() {
                side.n_ids += 1;
                let count = side.prefixes.entry(prefix(id)).or_insert_with(|| {
                    order.push(prefix(id));
                    (0, id)
                });
                count.0 += 1;
            }
        }
        let counts = order.iter().rev().filter_map(|prefix| side.prefixes.get(prefix));
        side.example = counts.max_by_key(|(n, _)| *n).map(|(_, id)| *id);
        side
    }

    /// Fraction of the ids whose prefix also occurs in `other`.
    fn share_in(&self, other: &Side<'_>) -> f64 {
        let known = self.prefixes.iter().filter(|(prefix, _)| other.prefixes.contains_key(*prefix));
        known.map(|(_, (n, _))| *n).sum::<u64>() as f64 / self.n_ids.max(1) as f64
    }
}

/// The part of an id up to and including the colon, or else its leading letters.
fn prefix(id: &str) -> &str {
    if let Some(colon) = id.find(':') {
        return &id[..=colon];
    }
    let n_letters = id.bytes().take_while(u8::is_ascii_alphabetic).count();
    if n_letters > MAX_LETTERS { "" } else { &id[..n_letters] }
}

fn lines(gold: &Side<'_>, predicted: &Side<'_>) -> Vec<String> {
    if gold.n_entries == 0 || predicted.n_entries == 0 {
        return Vec::new();
    }
    let (Some(gold_id), Some(predicted_id)) = (gold.example, predicted.example) else {
        let has = if gold.example.is_none() { "gold has" } else { "predictions have" };
        return vec![format!("warning: {has} no ids; only spans and types can be scored")];
    };
    if gold.share_in(predicted).max(predicted.share_in(gold)) >= MIN_SHARED {
        return Vec::new();
    }
    let prefix_of = |id: &str| id.split_once(':').map(|(before, _)| before.to_owned());
    let hint = match (prefix_of(gold_id), prefix_of(predicted_id)) {
        (None, Some(_)) => {
            "link with raw ids (option `--raw-ids`), or build the knowledge base without a prefix (option `--prefix`)"
                .to_owned()
        }
        (Some(prefix), None) => {
            format!(
                "build the knowledge base with the prefix `{prefix}` (option `--prefix`), and link without raw ids (option `--raw-ids`)"
            )
        }
        _ => {
            "link to the terminology of the gold ids, or map one to the other with `canonym kb build --join`".to_owned()
        }
    };
    let examples = format!("gold has `{gold_id}`, predictions have `{predicted_id}`");
    vec![format!("warning: gold and predictions use different kinds of ids: {examples}"), format!("hint: {hint}")]
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    fn check(gold: &[&str], predicted: &[&str], expected: Expect) {
        let sets = |ids: &[&str]| ids.iter().map(|id| IdSet::parse_one(id)).collect::<Vec<_>>();
        let (gold, predicted) = (sets(gold), sets(predicted));
        expected.assert_eq(&lines(&Side::of(gold.iter()), &Side::of(predicted.iter())).join("\n"));
    }

    #[test]
    fn different_kinds_of_ids_are_reported() {
        check(
            &["L1", "L2"],
            &["CLINIC:L2"],
            expect![[r#"
            warning: gold and predictions use different kinds of ids: gold has `L1`, predictions have `CLINIC:L2`
            hint: link with raw ids (option `--raw-ids`), or build the knowledge base without a prefix (option `--prefix`)"#]],
        );
        check(
            &["CLINIC:L1"],
            &["L2", "C1", "L3"],
            expect![[r#"
            warning: gold and predictions use different kinds of ids: gold has `CLINIC:L1`, predictions have `L2`
            hint: build the knowledge base with the prefix `CLINIC` (option `--prefix`), and link without raw ids (option `--raw-ids`)"#]],
        );
        check(
            &["DOID:1"],
            &["MONDO:1"],
            expect![[r#"
            warning: gold and predictions use different kinds of ids: gold has `DOID:1`, predictions have `MONDO:1`
            hint: link to the terminology of the gold ids, or map one to the other with `canonym kb build --join`"#]],
        );
        check(&["-1", "-1"], &["MONDO:1"], expect!["warning: gold has no ids; only spans and types can be scored"]);
        check(&["D1"], &["-1"], expect!["warning: predictions have no ids; only spans and types can be scored"]);
    }

    #[test]
    fn ids_that_can_match_give_no_warning() {
        check(&["MESH:D1", "D2"], &["D3"], expect![""]);
        check(&["123"], &["OMIM:456"], expect![""]);
        check(&["DOID:1", "MONDO:2"], &["MONDO:3"], expect![""]);
        check(&[], &["MONDO:3"], expect![""]);
    }
}
