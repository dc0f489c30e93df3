//! Jobs, what they changed, and the stream of what happens.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use serde::Deserialize;

use super::{Ask, At, Json};
use crate::app::App;
use crate::engine::TrainingPlan;
use crate::error::{ApiError, ApiResult};
use crate::events;
use crate::guard::{Curator, Key};
use crate::jobs::training_documents;
use crate::store::jobs::{self, End};
use crate::store::people::Person;
use crate::store::{documents, events as kept_events, projects};
use crate::wire::{ChangedDocument, ChangedDocuments, Job, JobKind, JobState, Jobs, NewJob};

/// `POST /projects/{p}/jobs`: starts a prediction or a training.
pub async fn add(
    State(app): State<Arc<App>>,
    _: Curator,
    At(project): At<i64>,
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
            // Settings that are not known are told at once.
            trainer.plan(&[], &settings)?;
        }
        let job = app.store.write(|transaction| {
            let project = projects::get(transaction, project)?;
            if project.n_documents == 0 {
                return Err(ApiError::conflict("the project has no documents").hint("import some first"));
            }
            let all = jobs::of_project(transaction, project.id, now)?;
            if let Some(other) = all.iter().find(|job| job.kind == kind && !job.state.is_over()) {
                return Err(ApiError::conflict(format!("job {} of this kind is not over yet", other.id))
                    .hint("wait for it, or cancel it"));
            }
            let id = jobs::add(transaction, project.id, (kind, &settings), now)?;
            jobs::get(transaction, id, now)
        })?;
        app.hub.tell(project, "job", &job);
        app.runner.wake();
        Ok(job)
    });
    Ok((StatusCode::ACCEPTED, axum::Json(job.await?)))
}

fn no_trainer() -> ApiError {
    ApiError::bad("this server cannot train models")
        .hint("export the project, train with `canonym train`, and start the server with `--model FOLDER`")
}

/// How a training is to be done.
#[derive(Debug, Default, Deserialize)]
pub struct PlanQuery {
    steps: Option<u64>,
    hold_out: Option<u64>,
}

/// `GET /projects/{p}/training`: what a training would learn from.
pub async fn plan(
    State(app): State<Arc<App>>,
    _: Person,
    At(project): At<i64>,
    Ask(query): Ask<PlanQuery>,
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
pub async fn of_project(State(app): State<Arc<App>>, _: Person, At(project): At<i64>) -> ApiResult<axum::Json<Jobs>> {
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
pub async fn get(State(app): State<Arc<App>>, _: Person, At(id): At<i64>) -> ApiResult<axum::Json<Job>> {
    let job = app.blocking(move |app| {
        let now = app.now();
        app.store.read(|connection| jobs::get(connection, id, now))
    });
    Ok(axum::Json(job.await?))
}

/// `POST /jobs/{j}/cancel`: a job that waits is cancelled at once, one that runs as soon as it can.
pub async fn cancel(State(app): State<Arc<App>>, _: Curator, At(id): At<i64>) -> ApiResult<axum::Json<Job>> {
    let job = app.blocking(move |app| {
        let now = app.now();
        let job = app.store.write(|transaction| {
            let job = jobs::get(transaction, id, now)?;
            match job.state {
                JobState::New | JobState::Queued => jobs::end(transaction, id, &End::Cancelled, now)?,
                JobState::Running => app.runner.cancel(id),
                JobState::Succeeded | JobState::Failed | JobState::Cancelled => {
                    return Err(ApiError::conflict(format!("job {id} is over already")));
                }
            }
            jobs::get(transaction, id, now)
        })?;
        app.hub.tell(job.project_id, "job", &job);
        Ok(job)
    });
    Ok(axum::Json(job.await?))
}

/// Which job.
#[derive(Debug, Default, Deserialize)]
pub struct ChangesQuery {
    from: Option<String>,
}

/// `GET /projects/{p}/changes`: what a prediction changed; the last one where no number is given.
pub async fn changes(
    State(app): State<Arc<App>>,
    _: Person,
    At(project): At<i64>,
    Ask(query): Ask<ChangesQuery>,
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
                    None => Ok(Vec::new()),
                    Some(id) => Err(ApiError::not_found(format!("this project has no job {id}"))),
                };
            };
            let mut counts: BTreeMap<i64, (usize, usize, usize)> = BTreeMap::new();
            for (document, event) in kept_events::of_job(connection, job.id)? {
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
            differ.map(row).collect()
        })
    });
    Ok(axum::Json(ChangedDocuments { documents: changed.await? }))
}

/// Of which project.
#[derive(Debug, Default, Deserialize)]
pub struct EventsQuery {
    project: Option<i64>,
}

/// `GET /events`: what happens, as server-sent events.
pub async fn stream(
    State(app): State<Arc<App>>,
    person: Person,
    axum::Extension(key): axum::Extension<Key>,
    Ask(query): Ask<EventsQuery>,
) -> Response {
    events::stream(&app, query.project, (person.id, key))
}
