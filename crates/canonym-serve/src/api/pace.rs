//! How long people work on documents, and whether models make them faster.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use axum::extract::State;

use super::At;
use super::show::names;
use crate::app::App;
use crate::error::ApiResult;
use crate::store::derived::{OTHER, PAUSE};
use crate::store::pace::{self, Step};
use crate::store::people::Person;
use crate::store::projects;
use crate::times::{Millis, rfc3339};
use crate::wire::{Pace, PaceOf, PacePoint, Seconds};

/// Points that are given.
const MAX_POINTS: usize = 500;

/// `GET /projects/{p}/pace`.
pub async fn show(State(app): State<Arc<App>>, _: Person, At(project): At<i64>) -> ApiResult<axum::Json<Pace>> {
    let pace = app.blocking(move |app| {
        app.store.read(|connection| {
            projects::check(connection, project)?;
            let names = names(connection)?;
            let lengths = pace::lengths(connection, project)?;
            let points = points(&pace::steps(connection, project)?, &pace::of_project(connection, project)?);
            let shown = points.into_iter().filter_map(|point| {
                let (external_id, n_characters) = lengths.get(&point.document)?;
                Some(PacePoint {
                    document: point.document,
                    external_id: external_id.clone(),
                    by: names.get(&point.person).cloned().unwrap_or_default(),
                    at: rfc3339(point.at),
                    seconds: point.seconds,
                    per_thousand: 1000.0 * point.seconds / (*n_characters).max(1) as f64,
                    model: point.model,
                    is_measured: point.is_measured,
                })
            });
            Ok(pace_of(shown.collect()))
        })
    });
    Ok(axum::Json(pace.await?))
}

/// The work of somebody on a document.
#[derive(Debug, Clone, PartialEq)]
struct Work {
    document: i64,
    person: i64,
    at: Millis,
    seconds: f64,
    model: Option<String>,
    is_measured: bool,
}

/// What people worked: as it was measured; where it was not, the time between the decisions of one person on one document.
fn points(steps: &[Step], measured: &HashMap<i64, f64>) -> Vec<Work> {
    let mut model: HashMap<i64, Option<String>> = HashMap::new();
    let mut last: HashMap<(i64, i64), Millis> = HashMap::new();
    let mut work: BTreeMap<(i64, i64), Work> = BTreeMap::new();
    for step in steps {
        let Some(person) = step.person else {
            if step.kind == "predict" {
                model.insert(step.document, step.model.clone());
            }
            continue;
        };
        if OTHER.contains(&step.kind.as_str()) {
            continue;
        }
        let key = (step.document, person);
        let of = work.entry(key).or_insert_with(|| Work {
            document: step.document,
            person,
            at: step.at,
            seconds: 0.0,
            model: None,
            is_measured: false,
        });
        let gap = last.insert(key, step.at).map_or(0, |before| step.at - before);
        if let Some(seconds) = measured.get(&step.id) {
            of.seconds = if of.is_measured { of.seconds + seconds } else { *seconds };
            of.is_measured = true;
        } else if !of.is_measured && (0..=PAUSE).contains(&gap) {
            of.seconds += gap as f64 / 1000.0;
        }
        of.at = step.at;
        of.model = model.get(&step.document).cloned().flatten();
    }
    // A single decision says nothing of how long it took.
    let mut work: Vec<Work> = work.into_values().filter(|work| work.is_measured || work.seconds > 0.0).collect();
    work.sort_by_key(|work| (work.at, work.document));
    work
}

/// Points of one person, or of one model.
type Group<'a> = (Option<String>, Vec<&'a PacePoint>);

fn pace_of(mut points: Vec<PacePoint>) -> Pace {
    let all = seconds(points.iter().map(|point| point.seconds).collect());
    let (mut people, mut models): (Vec<Group<'_>>, Vec<Group<'_>>) = Default::default();
    for point in &points {
        group(&mut people, Some(point.by.clone()), point);
        if point.is_measured {
            group(&mut models, point.model.clone(), point);
        }
    }
    let (people, models) =
        (people.into_iter().filter_map(summary).collect(), models.into_iter().filter_map(summary).collect());
    let n_measured = points.iter().filter(|point| point.is_measured).count();
    let n_estimated = points.len() - n_measured;
    points.retain(|point| point.is_measured);
    points.drain(..points.len().saturating_sub(MAX_POINTS));
    Pace { all, n_measured, n_estimated, people, models, points }
}

fn group<'a>(groups: &mut Vec<Group<'a>>, name: Option<String>, point: &'a PacePoint) {
    match groups.iter_mut().find(|(of, _)| *of == name) {
        Some((_, points)) => points.push(point),
        None => groups.push((name, vec![point])),
    }
}

fn summary((name, points): Group<'_>) -> Option<PaceOf> {
    let of = |value: fn(&PacePoint) -> f64| seconds(points.iter().map(|point| value(point)).collect());
    let per_thousand = of(|point| point.per_thousand)?.median;
    Some(PaceOf { name, n: points.len(), seconds: of(|point| point.seconds)?, per_thousand })
}

fn seconds(mut values: Vec<f64>) -> Option<Seconds> {
    values.sort_by(f64::total_cmp);
    let n = values.len();
    let median = match n {
        0 => return None,
        n if n % 2 == 1 => values[n / 2],
        n => (values[n / 2 - 1] + values[n / 2]) / 2.0,
    };
    Some(Seconds { median, mean: values.iter().sum::<f64>() / n as f64 })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(id: i64, document: i64, person: Option<i64>, at: Millis, kind: &str) -> Step {
        let model = (kind == "predict").then(|| "m".to_owned());
        Step { id, document, person, at, kind: kind.to_owned(), model }
    }

    #[test]
    fn measured_time_takes_the_place_of_the_estimate() {
        let steps = [
            step(1, 7, Some(1), 0, "accept"),
            step(2, 7, Some(1), 20_000, "accept"),
            step(3, 7, Some(1), 30_000, "finish"),
            step(4, 8, None, 30_000, "predict"),
            step(5, 8, Some(1), 40_000, "accept"),
            step(6, 8, Some(1), 50_000, "finish"),
            step(7, 8, Some(1), 60_000, "finish"),
            step(8, 9, Some(1), 70_000, "accept"),
            step(9, 7, Some(2), 0, "comment"),
        ];
        let measured = HashMap::from([(6, 4.5), (7, 1.0)]);
        let shown: Vec<(i64, f64, Option<String>, bool)> = points(&steps, &measured)
            .into_iter()
            .map(|work| (work.document, work.seconds, work.model, work.is_measured))
            .collect();
        assert_eq!(shown, [(7, 30.0, None, false), (8, 5.5, Some("m".to_owned()), true)]);
    }
}
