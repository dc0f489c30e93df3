//! Project statistics: counts, decisions per day, time per document, agreement and models.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use axum::extract::State;
use canonym_core::eval::agreement::{cohen_kappa, krippendorff_alpha, span_f1};

use super::PathParam;
use super::models::scores_on_last_test_set;
use crate::error::ApiResult;
use crate::marks::Source;
use crate::state::App;
use crate::store::derived::{self, Rating};
use crate::store::{models, projects};
use crate::times::{DAY, day};
use crate::wire::{Agreement, DayCount, ModelFigures, Person, Seconds, Stats};

/// `GET /projects/{p}/stats`.
pub async fn stats(
    axum::extract::State(app): State<Arc<App>>,
    _: Person,
    PathParam(project): PathParam<i64>,
) -> ApiResult<axum::Json<Stats>> {
    let stats = app.blocking(move |app| {
        app.store.read(|connection| {
            let row = projects::get(connection, project)?;
            let (mut by_source, by_type) = derived::marks_by_source_and_type(connection, project)?;
            for source in [Source::Gold, Source::User, Source::Pred] {
                by_source.entry(source.name().to_owned()).or_default();
            }
            let mut by_decision: BTreeMap<String, usize> = BTreeMap::new();
            let mut by_day: BTreeMap<i64, usize> = BTreeMap::new();
            for (day, kind, n) in derived::decisions(connection, project)? {
                *by_decision.entry(kind).or_default() += n;
                *by_day.entry(day).or_default() += n;
            }
            let figures = models::of_project(connection, project)?;
            let mut scored = scores_on_last_test_set(&figures);
            let figures = figures.into_iter().map(|stored| ModelFigures {
                id: stored.model.id,
                name: stored.model.name,
                at: stored.model.made_at,
                dev: scored.remove(&stored.model.id).or(stored.model.dev),
            });
            Ok(Stats {
                n_documents: row.n_documents as usize,
                n_finished: row.n_finished as usize,
                by_source,
                by_type,
                by_decision,
                decisions_per_day: by_day.into_iter().map(|(at, n)| DayCount { day: day(at * DAY), n }).collect(),
                seconds_per_document: seconds(
                    derived::durations(connection, project)?.into_iter().map(|millis| millis as f64 / 1000.0).collect(),
                ),
                agreement: agreement(&derived::ratings_of_shared(connection, project)?),
                models: figures.collect(),
            })
        })
    });
    Ok(axum::Json(stats.await?))
}

/// Median and mean of the time spent on documents.
pub fn seconds(mut spent: Vec<f64>) -> Option<Seconds> {
    spent.sort_by(f64::total_cmp);
    let n = spent.len();
    let median = match n {
        0 => return None,
        n if n % 2 == 1 => spent[n / 2],
        n => (spent[n / 2 - 1] + spent[n / 2]) / 2.0,
    };
    Some(Seconds { median, mean: spent.iter().sum::<f64>() / n as f64 })
}

/// Inter-annotator agreement on marks that several annotators reviewed.
fn agreement(ratings: &[Rating]) -> Option<Agreement> {
    let by_mark: Vec<&[Rating]> = ratings.chunk_by(|one, next| one.mark == next.mark).collect();
    let mut common: BTreeMap<(i64, i64), usize> = BTreeMap::new();
    for mark_ratings in &by_mark {
        for (at, one) in mark_ratings.iter().enumerate() {
            for other in &mark_ratings[at + 1..] {
                *common.entry((one.person, other.person)).or_default() += 1;
            }
        }
    }
    let (a, b) = common.into_iter().max_by_key(|(pair, n)| (*n, std::cmp::Reverse(*pair)))?.0;
    let of = |mark_ratings: &[Rating], person: i64| mark_ratings.iter().position(|one| one.person == person);
    let both: Vec<(&Rating, &Rating)> = by_mark
        .iter()
        .filter_map(|mark_ratings| Some((&mark_ratings[of(mark_ratings, a)?], &mark_ratings[of(mark_ratings, b)?])))
        .collect();
    let labels: Vec<(&str, &str)> =
        both.iter().map(|(one, other)| (one.label.as_str(), other.label.as_str())).collect();
    let by_rater: Vec<Vec<Option<&str>>> =
        by_mark.iter().map(|mark_ratings| mark_ratings.iter().map(|one| Some(one.label.as_str())).collect()).collect();
    let locations =
        |ratings: Vec<&Rating>| ratings.into_iter().filter_map(|one| one.location.clone()).collect::<BTreeSet<_>>();
    let (ratings_of_a, ratings_of_b) = both.into_iter().unzip();
    Some(Agreement {
        cohen_kappa: cohen_kappa(&labels),
        krippendorff_alpha: krippendorff_alpha(&by_rater),
        span_f1: span_f1(&locations(ratings_of_a), &locations(ratings_of_b)),
        n_both: labels.len(),
        n_several: by_mark.len(),
        n_people: ratings.iter().map(|one| one.person).collect::<BTreeSet<_>>().len(),
    })
}
