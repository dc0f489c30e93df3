//! Counts of classes, confusions and surfaces.

use std::collections::HashMap;

use super::{Case, CaseSide, ClassCount, Confusion, ErrorAnalysis, ErrorClass, ErrorConfig, ReasonCount, SurfaceCount};
use crate::text::normalise::fold;

pub(super) fn count(analysis: &mut ErrorAnalysis, cases: &[Case], config: &ErrorConfig) {
    let none = |class| ClassCount { class, n_gold: 0, n_pred: 0, n_cases: 0, reasons: Vec::new() };
    let mut classes = ErrorClass::ALL.map(none);
    for case in cases {
        let row = ErrorClass::ALL.iter().position(|class| *class == case.class).expect("the list holds every class");
        classes[row].n_cases += 1;
        classes[row].n_gold += u64::from(case.gold.is_some());
        classes[row].n_pred += u64::from(case.linked().is_some());
        let reasons = &mut classes[row].reasons;
        match reasons.iter_mut().find(|known| known.reason == case.reason) {
            Some(known) => known.n += 1,
            None if case.reason.is_empty() => {}
            None => reasons.push(ReasonCount { reason: case.reason.clone(), n: 1 }),
        }
    }
    for class in &mut classes {
        class.reasons.sort_by_key(|known| u64::MAX - known.n);
    }
    analysis.n_gold = classes.iter().map(|class| class.n_gold).sum();
    analysis.n_pred = classes.iter().map(|class| class.n_pred).sum();
    analysis.classes = classes.to_vec();
    analysis.confusions = confusions(cases, config.n_rows);
    let missed = |case: &Case| case.linked().is_none();
    analysis.missed_surfaces = surfaces(cases, |case| case.gold.as_ref(), missed, config.n_rows);
    analysis.spurious_surfaces = surfaces(cases, Case::linked, |case| case.gold.is_none(), config.n_rows);
}

/// Rows by descending count, ties by first occurrence; at most `limit`.
fn most_frequent<K, V>(rows: HashMap<K, V>, n_of: impl Fn(&V) -> (u64, usize), limit: usize) -> Vec<V> {
    let mut rows: Vec<V> = rows.into_values().collect();
    rows.sort_by_key(|row| {
        let (n, first) = n_of(row);
        (u64::MAX - n, first)
    });
    rows.truncate(limit);
    rows
}

/// The key of equal texts: their folded form.
fn form_of(text: &str) -> String {
    let form = fold(text);
    // Punctuation folds to nothing and is kept as is.
    if form.is_empty() { text.to_owned() } else { form }
}

fn confusions(cases: &[Case], limit: usize) -> Vec<Confusion> {
    struct Row<'a> {
        n: u64,
        first: usize,
        texts: HashMap<String, (u64, usize)>,
        gold: &'a CaseSide,
        predicted: &'a CaseSide,
    }
    let mut rows: HashMap<(&[String], &[String]), Row<'_>> = HashMap::new();
    for (index, case) in cases.iter().enumerate() {
        let (Some(gold), Some(predicted)) = (&case.gold, case.linked()) else { continue };
        if matches!(case.class, ErrorClass::Correct | ErrorClass::Boundary | ErrorClass::Type) {
            continue;
        }
        let new = || Row { n: 0, first: index, texts: HashMap::new(), gold, predicted };
        let row = rows.entry((&gold.ids, &predicted.ids)).or_insert_with(new);
        row.n += 1;
        row.texts.entry(form_of(&gold.text)).or_insert((0, index)).0 += 1;
    }
    let confusion = |row: Row<'_>| {
        let commonest = row.texts.values().min_by_key(|(n, index)| (u64::MAX - n, *index));
        let text = commonest.and_then(|&(_, index)| cases[index].gold.as_ref()).map_or("", |side| &side.text);
        Confusion {
            n: row.n,
            gold_ids: row.gold.ids.clone(),
            gold_names: row.gold.names.clone(),
            predicted_ids: row.predicted.ids.clone(),
            predicted_names: row.predicted.names.clone(),
            text: text.to_owned(),
        }
    };
    most_frequent(rows, |row| (row.n, row.first), limit).into_iter().map(confusion).collect()
}

/// The texts of one side of the cases, with the number of `wanted` ones.
fn surfaces<'a>(
    cases: &'a [Case],
    side_of: impl Fn(&'a Case) -> Option<&'a CaseSide>,
    wanted: impl Fn(&Case) -> bool,
    limit: usize,
) -> Vec<SurfaceCount> {
    let mut rows: HashMap<String, (SurfaceCount, usize)> = HashMap::new();
    for (index, case) in cases.iter().enumerate() {
        let Some(side) = side_of(case) else { continue };
        let (row, first) = rows.entry(form_of(&side.text)).or_insert_with(|| (SurfaceCount::default(), index));
        row.n_all += 1;
        if wanted(case) {
            if row.n == 0 {
                *first = index;
                let (text, ids, names) = (side.text.clone(), side.ids.clone(), side.names.clone());
                *row = SurfaceCount { n: 0, n_all: row.n_all, text, ids, names, class: Some(case.class) };
            }
            row.n += 1;
        }
    }
    rows.retain(|_, (row, _)| row.n > 0);
    most_frequent(rows, |(row, first)| (row.n, *first), limit).into_iter().map(|(row, _)| row).collect()
}
