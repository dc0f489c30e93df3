//! What was done in a project, by whom, how fast, and how far people agree.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use axum::extract::State;
use canonym::eval::agreement::{cohen_kappa, krippendorff_alpha, span_f1};
use canonym::text::Span;

use super::At;
use crate::app::App;
use crate::error::ApiResult;
use crate::marks::State as MarkDecision;
use crate::marks::disagree::SETTLE;
use crate::store::events::{self, Event};
use crate::store::people::Person;
use crate::store::{documents, models, projects};
use crate::times::{Millis, day};
use crate::wire::{Agreement, DayCount, ModelFigures, Seconds, Stats};

/// Who does nothing for so long does something else.
pub const PAUSE: Millis = 5 * 60 * 1000;

/// Events that are no decisions.
pub const OTHER: [&str; 5] = ["import", "predict", "comment", "undo", "redo"];

/// `GET /projects/{p}/stats`.
pub async fn stats(
    axum::extract::State(app): State<Arc<App>>,
    _: Person,
    At(project): At<i64>,
) -> ApiResult<axum::Json<Stats>> {
    let stats = app.blocking(move |app| {
        app.store.read(|connection| {
            let row = projects::get(connection, project)?;
            let marks = documents::marks_of_project(connection, project)?;
            let listed = || marks.values().flatten().map(|(_, mark)| mark).filter(|mark| mark.is_listed());
            let mut by_source: BTreeMap<&'static str, usize> = [("GOLD", 0), ("USER", 0), ("PRED", 0)].into();
            let mut by_type: BTreeMap<String, usize> = BTreeMap::new();
            for mark in listed() {
                *by_source.entry(mark.source.word()).or_default() += 1;
                *by_type.entry(mark.kind.clone()).or_default() += 1;
            }
            let all = events::of_project(connection, project)?;
            let decisions: Vec<&(i64, Event)> = all
                .iter()
                .filter(|(_, event)| event.person.is_some() && !OTHER.contains(&event.kind.as_str()))
                .collect();
            let mut by_decision: BTreeMap<String, usize> = BTreeMap::new();
            let mut by_day: BTreeMap<String, usize> = BTreeMap::new();
            for (_, event) in &decisions {
                *by_decision.entry(event.kind.clone()).or_default() += 1;
                *by_day.entry(day(event.at)).or_default() += 1;
            }
            let figures = models::of_project(connection, project)?;
            let figures = figures.into_iter().map(|kept| ModelFigures {
                id: kept.model.id,
                name: kept.model.name,
                at: kept.model.made_at,
                dev: kept.model.dev,
            });
            Ok(Stats {
                n_documents: row.n_documents as usize,
                n_finished: row.n_finished as usize,
                by_source,
                by_type,
                by_decision,
                decisions_per_day: by_day.into_iter().map(|(day, n)| DayCount { day, n }).collect(),
                seconds_per_document: seconds(&decisions),
                agreement: agreement(&decisions),
                models: figures.collect(),
            })
        })
    });
    Ok(axum::Json(stats.await?))
}

/// How long people worked on documents: the time between decisions of one person on one document, long pauses left out.
fn seconds(decisions: &[&(i64, Event)]) -> Option<Seconds> {
    let mut last: BTreeMap<(i64, i64), Millis> = BTreeMap::new();
    let mut spent: BTreeMap<(i64, i64), Millis> = BTreeMap::new();
    for (document, event) in decisions {
        let key = (*document, event.person.unwrap_or_default());
        if let Some(before) = last.insert(key, event.at) {
            let gap = event.at - before;
            if (0..=PAUSE).contains(&gap) {
                *spent.entry(key).or_default() += gap;
            }
        }
    }
    let mut spent: Vec<f64> = spent.into_values().map(|millis| millis as f64 / 1000.0).collect();
    spent.sort_by(f64::total_cmp);
    let n = spent.len();
    let median = match n {
        0 => return None,
        n if n % 2 == 1 => spent[n / 2],
        n => (spent[n / 2 - 1] + spent[n / 2]) / 2.0,
    };
    Some(Seconds { median, mean: spent.iter().sum::<f64>() / n as f64 })
}

/// What one person last said of one mark: what they think it means, and where it stands; nothing where they refused it.
type Said = (String, Option<(i64, Vec<Span>)>);

/// How far people agree on marks on which several decided.
fn agreement(decisions: &[&(i64, Event)]) -> Option<Agreement> {
    let mut said: BTreeMap<i64, BTreeMap<i64, Said>> = BTreeMap::new();
    // Who settles a disagreement has read what the others say.
    for (document, event) in decisions.iter().filter(|(_, event)| event.kind != SETTLE) {
        let person = event.person.unwrap_or_default();
        for change in &event.changes.marks {
            let said = said.entry(person).or_default();
            let Some(mark) = change.after.as_ref().filter(|mark| !mark.is_deleted) else {
                said.insert(change.id, ("no mark".to_owned(), None));
                continue;
            };
            let label = match (mark.state, mark.concept_id()) {
                (MarkDecision::Rejected, _) => "no mark",
                (_, Some(concept)) => concept,
                (_, None) => "no concept",
            };
            let place = (mark.state != MarkDecision::Rejected).then(|| (*document, mark.spans()));
            said.insert(change.id, (label.to_owned(), place));
        }
    }
    let people: Vec<&BTreeMap<i64, Said>> = said.values().collect();
    let common = |a: usize, b: usize| people[a].keys().filter(|mark| people[b].contains_key(mark)).count();
    let pairs = (0..people.len()).flat_map(|a| (a + 1..people.len()).map(move |b| (a, b)));
    let (a, b) =
        pairs.max_by_key(|&(a, b)| (common(a, b), std::cmp::Reverse((a, b)))).filter(|&(a, b)| common(a, b) > 0)?;
    let (a, b) = (people[a], people[b]);
    let both: Vec<(&str, &str)> =
        a.iter().filter_map(|(mark, (label, _))| Some((label.as_str(), b.get(mark)?.0.as_str()))).collect();
    let items: BTreeSet<i64> = people.iter().flat_map(|person| person.keys().copied()).collect();
    let ratings: Vec<Vec<Option<&str>>> = items
        .iter()
        .map(|item| people.iter().map(|person| person.get(item).map(|(label, _)| label.as_str())).collect())
        .collect();
    let places = |one: &BTreeMap<i64, Said>, other: &BTreeMap<i64, Said>| -> BTreeSet<(i64, Vec<Span>)> {
        let common = one.iter().filter(|(mark, _)| other.contains_key(mark));
        common.filter_map(|(_, (_, place))| place.clone()).collect()
    };
    Some(Agreement {
        cohen_kappa: cohen_kappa(&both),
        krippendorff_alpha: krippendorff_alpha(&ratings),
        span_f1: span_f1(&places(a, b), &places(b, a)),
        n_both: both.len(),
        n_several: ratings.iter().filter(|row| row.iter().flatten().count() > 1).count(),
        n_people: people.len(),
    })
}
