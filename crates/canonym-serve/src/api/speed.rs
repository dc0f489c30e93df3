//! Annotation speed, by annotator and by model used for pre-annotation.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::extract::State;

use super::PathParam;
use super::stats::seconds;
use crate::error::ApiResult;
use crate::state::App;
use crate::store::time_spent::{self, Work};
use crate::store::{people, projects};
use crate::times::rfc3339;
use crate::wire::{AnnotationSpeed, DocumentTime, Person, SpeedRow};

/// The maximum number of points.
const MAX_POINTS: usize = 500;

/// `GET /projects/{p}/annotation-speed`.
pub async fn show(
    State(app): State<Arc<App>>,
    _: Person,
    PathParam(project): PathParam<i64>,
) -> ApiResult<axum::Json<AnnotationSpeed>> {
    let speed = app.blocking(move |app| {
        app.store.read(|connection| {
            projects::check(connection, project)?;
            let names = people::names(connection)?;
            let lengths = time_spent::lengths(connection, project)?;
            let points =
                points(time_spent::measured(connection, project)?, time_spent::estimated(connection, project)?);
            let shown = points.into_iter().filter_map(|(point, is_measured)| {
                let (external_id, n_characters) = lengths.get(&point.document)?;
                Some(DocumentTime {
                    document: point.document,
                    external_id: external_id.clone(),
                    by: names.get(&point.person).cloned().unwrap_or_default(),
                    at: rfc3339(point.at),
                    seconds: point.seconds,
                    per_thousand: 1000.0 * point.seconds / (*n_characters).max(1) as f64,
                    model: point.model,
                    is_measured,
                })
            });
            Ok(speed_of(shown.collect()))
        })
    });
    Ok(axum::Json(speed.await?))
}

/// Time per document and annotator, oldest first, and whether it was measured rather than estimated.
fn points(measured: Vec<Work>, estimated: Vec<Work>) -> Vec<(Work, bool)> {
    let mut work: BTreeMap<(i64, i64), (Work, bool)> = BTreeMap::new();
    for one in measured {
        let seconds = work.get(&(one.document, one.person)).map_or(0.0, |(before, _)| before.seconds);
        work.insert((one.document, one.person), (Work { seconds: seconds + one.seconds, ..one }, true));
    }
    for one in estimated {
        work.entry((one.document, one.person)).or_insert((one, false));
    }
    let mut work: Vec<(Work, bool)> = work.into_values().collect();
    work.sort_by_key(|(work, _)| (work.at, work.document));
    work
}

/// The points of one annotator or model.
struct Group<'a> {
    name: Option<String>,
    points: Vec<&'a DocumentTime>,
}

fn speed_of(mut points: Vec<DocumentTime>) -> AnnotationSpeed {
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
    AnnotationSpeed { all, n_measured, n_estimated, people, models, points }
}

fn group<'a>(groups: &mut Vec<Group<'a>>, name: Option<String>, point: &'a DocumentTime) {
    match groups.iter_mut().find(|group| group.name == name) {
        Some(group) => group.points.push(point),
        None => groups.push(Group { name, points: vec![point] }),
    }
}

fn summary(group: Group<'_>) -> Option<SpeedRow> {
    let Group { name, points } = group;
    let of = |value: fn(&DocumentTime) -> f64| seconds(points.iter().map(|point| value(point)).collect());
    let per_thousand = of(|point| point.per_thousand)?.median;
    Some(SpeedRow { name, n: points.len(), seconds: of(|point| point.seconds)?, per_thousand })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn measured_time_replaces_the_estimate() {
        let work = |document, at, seconds, model: Option<&str>| Work {
            document,
            person: 1,
            at,
            seconds,
            model: model.map(str::to_owned),
        };
        let measured = vec![work(8, 50_000, 4.5, None), work(8, 60_000, 1.0, Some("m"))];
        let estimated = vec![work(8, 60_000, 20.0, None), work(7, 30_000, 30.0, None)];
        let shown: Vec<(i64, f64, Option<String>, bool)> = points(measured, estimated)
            .into_iter()
            .map(|(work, is_measured)| (work.document, work.seconds, work.model, is_measured))
            .collect();
        assert_eq!(shown, [(7, 30.0, None, false), (8, 5.5, Some("m".to_owned()), true)]);
    }
}
