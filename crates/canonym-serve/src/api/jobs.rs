//! Jobs, and what they changed.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use serde::Deserialize;

use super::changes::compared_models;
use super::{Json, PathParam, QueryParams};
use crate::engine::TrainingPlan;
use crate::error::{ApiError, ApiResult};
use crate::guard::Curator;
use crate::jobs::train::training_documents;
use crate::state::App;
use crate::store::jobs::{self, End};
use crate::store::{documents, events, projects};
use crate::wire::{ChangedDocument, ChangedDocuments, Job, JobKind, JobState, Jobs, NewJob, Person};

/// `POST /projects/{p}/jobs`: starts a prediction or training job.
pub async fn add(
    State(app): State<Arc<App>>,
    _: Curator,
    PathParam(project): PathParam<i64>,
    Json(new): Json<NewJob>,
) -> ApiResult<(StatusCode, axum::Json<Job>)> {
    let job = app.blocking(move |app| {
        let now = app.now();
        let kind = match new.kind {
            JobKind::Predict => "predict",
            JobKind::Train if app.trainer.is_some() => "train",
            JobKind::Train => return Err(no_trainer()),
        };
        let settings = new.settings.unwrap_or_default();
        if let ("train", Some(trainer)) = (kind, &app.trainer) {
            // Invalid settings are reported before the job starts.
            trainer.plan(&[], &settings)?;
        }
        let job = app.store.write(|transaction| {
            let project = projects::get(transaction, project)?;
            if project.n_documents == 0 {
                return Err(ApiError::conflict("the project has no documents").hint("import documents first"));
            }
            let all = jobs::of_project(transaction, project.id, now)?;
            if let Some(other) = all.iter().find(|job| job.kind == kind && !job.state.is_over()) {
                return Err(
                    ApiError::conflict(format!("job {} is still running", other.id)).hint("wait for it or cancel it")
                );
            }
            let id = jobs::add(transaction, project.id, kind, &settings, now)?;
            jobs::get(transaction, id, now)
        })?;
        app.bus.publish(project, "job", &job);
        app.jobs.wake();
        Ok(job)
    });
    Ok((StatusCode::ACCEPTED, axum::Json(job.await?)))
}

fn no_trainer() -> ApiError {
    ApiError::bad("training is disabled on this server")
        .hint("export the project, run `canonym train`, and start the server with `--model FOLDER`")
}

/// Query parameters of a training preview.
#[derive(Debug, Default, Deserialize)]
pub struct PlanQuery {
    steps: Option<u64>,
    hold_out: Option<u64>,
}

/// `GET /projects/{p}/training`: a preview of a training.
pub async fn plan(
    State(app): State<Arc<App>>,
    _: Person,
    PathParam(project): PathParam<i64>,
    QueryParams(query): QueryParams<PlanQuery>,
) -> ApiResult<axum::Json<TrainingPlan>> {
    let plan = app.blocking(move |app| {
        let trainer = app.trainer.as_ref().ok_or_else(no_trainer)?;
        let settings: serde_json::Map<String, serde_json::Value> =
            [("steps", query.steps), ("hold_out", query.hold_out)]
                .into_iter()
                .filter_map(|(name, value)| Some((name.to_owned(), value?.into())))
                .collect();
        let documents = app.store.read(|connection| {
            projects::check(connection, project)?;
            training_documents(app, connection, project)
        })?;
        Ok(trainer.plan(&documents, &settings.into())?)
    });
    Ok(axum::Json(plan.await?))
}

/// `GET /projects/{p}/jobs`: the jobs of a project.
pub async fn of_project(
    State(app): State<Arc<App>>,
    _: Person,
    PathParam(project): PathParam<i64>,
) -> ApiResult<axum::Json<Jobs>> {
    let jobs = app.blocking(move |app| {
        let now = app.now();
        app.store.read(|connection| {
            projects::check(connection, project)?;
            jobs::of_project(connection, project, now)
        })
    });
    Ok(axum::Json(Jobs { jobs: jobs.await? }))
}

/// `GET /jobs/{j}`: one job.
pub async fn get(State(app): State<Arc<App>>, _: Person, PathParam(id): PathParam<i64>) -> ApiResult<axum::Json<Job>> {
    let job = app.blocking(move |app| {
        let now = app.now();
        app.store.read(|connection| jobs::get(connection, id, now))
    });
    Ok(axum::Json(job.await?))
}

/// `POST /jobs/{j}/cancel`: cancels a queued job at once, a running one as soon as possible.
pub async fn cancel(
    State(app): State<Arc<App>>,
    _: Curator,
    PathParam(id): PathParam<i64>,
) -> ApiResult<axum::Json<Job>> {
    let job = app.blocking(move |app| {
        let now = app.now();
        let job = app.store.write(|transaction| {
            let job = jobs::get(transaction, id, now)?;
            match job.state {
                JobState::New | JobState::Queued => jobs::end(transaction, id, &End::Cancelled, now)?,
                JobState::Running => app.jobs.cancel(id),
                JobState::Succeeded | JobState::Failed | JobState::Cancelled => {
                    return Err(ApiError::conflict(format!("job {id} has already finished")));
                }
            }
            jobs::get(transaction, id, now)
        })?;
        app.bus.publish(job.project_id, "job", &job);
        Ok(job)
    });
    Ok(axum::Json(job.await?))
}

/// Query parameters: the job.
#[derive(Debug, Default, Deserialize)]
pub struct ChangesQuery {
    from: Option<String>,
}

/// `GET /projects/{p}/changes`: documents that a prediction changed; the last prediction by default.
pub async fn changes(
    State(app): State<Arc<App>>,
    _: Person,
    PathParam(project): PathParam<i64>,
    QueryParams(query): QueryParams<ChangesQuery>,
) -> ApiResult<axum::Json<ChangedDocuments>> {
    let changed = app.blocking(move |app| {
        let now = app.now();
        app.store.read(|connection| {
            projects::check(connection, project)?;
            let all = jobs::of_project(connection, project, now)?;
            let wanted = query.from.as_deref().and_then(|from| from.parse::<i64>().ok());
            let of = |job: &&Job| wanted.is_none_or(|wanted| wanted == job.id);
            let Some(job) = all.iter().find(of) else {
                return match wanted {
                    None => Ok(ChangedDocuments::default()),
                    Some(id) => Err(ApiError::not_found(format!("job {id} not found"))),
                };
            };
            let events = events::of_job(connection, job.id)?;
            let (model_before, model_after) = compared_models(events.iter().map(|(_, event)| event));
            let mut counts: BTreeMap<i64, (usize, usize, usize)> = BTreeMap::new();
            for (document, event) in events {
                let (added, removed, changed) = counts.entry(document).or_default();
                for change in &event.changes.marks {
                    match (&change.before, &change.after) {
                        (None, Some(_)) => *added += 1,
                        (Some(_), None) => *removed += 1,
                        (Some(before), Some(after)) if before.concept != after.concept => *changed += 1,
                        _ => {}
                    }
                }
            }
            let differ = counts.into_iter().filter(|(_, counts)| *counts != (0, 0, 0));
            let row = |(id, (added, removed, changed))| {
                let external_id = documents::get(connection, id)?.external_id;
                Ok(ChangedDocument { id, external_id, added, removed, changed })
            };
            let documents = differ.map(row).collect::<ApiResult<_>>()?;
            Ok(ChangedDocuments { model_before, model_after, documents })
        })
    });
    Ok(axum::Json(changed.await?))
}
