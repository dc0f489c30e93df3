//! Models, and which one a project uses.

use std::collections::BTreeMap;
use std::io::Read;
use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use canonym_core::corpus::folder::safe_name;
use rusqlite::Connection;
use serde::Deserialize;
use tokio_stream::wrappers::ReceiverStream;

use super::{Json, PathParam, QueryParams};
use crate::engine::DevFigures;
use crate::error::{ApiError, ApiResult};
use crate::guard::Curator;
use crate::state::App;
use crate::store::models::{self, StoredModel};
use crate::store::{jobs, projects};
use crate::wire::{Model, ModelPatch, Models, Person};

/// The chunk size of downloads, in bytes.
const CHUNK: usize = 256 << 10;

/// Query parameters: the project.
#[derive(Debug, Default, Deserialize)]
pub struct ModelsQuery {
    project: Option<i64>,
}

/// `GET /models`: the models that a project may use.
pub async fn all(
    State(app): State<Arc<App>>,
    _: Person,
    QueryParams(query): QueryParams<ModelsQuery>,
) -> ApiResult<axum::Json<Models>> {
    let models = app.blocking(move |app| {
        app.store.read(|connection| {
            let current = query.project.map(|project| projects::model(connection, project)).transpose()?.flatten();
            let current = current.unwrap_or(app.base_model);
            let all = models::of_project(connection, query.project.unwrap_or(0))?;
            let scored = scores_on_last_test_set(&all);
            let shown = |stored: StoredModel| {
                let id = stored.model.id;
                let dev = scored.get(&id).cloned().or(stored.model.dev);
                Model { is_current: id == current, dev, ..stored.model }
            };
            // Base models of earlier starts are not available any more.
            let is_here = |stored: &StoredModel| stored.folder.is_some() || stored.model.id == app.base_model;
            Ok(all.into_iter().filter(is_here).map(shown).collect())
        })
    });
    Ok(axum::Json(Models { models: models.await? }))
}

/// The scores of models on the documents of the last comparison, also those from earlier comparisons on the same documents.
pub(super) fn scores_on_last_test_set(all: &[StoredModel]) -> BTreeMap<i64, DevFigures> {
    let last = all.iter().rev().find_map(|stored| stored.model.dev.as_ref()?.test_set.clone());
    let mut scores = BTreeMap::new();
    for stored in all {
        let own = stored.model.dev.iter().map(|dev| (stored.model.id, dev));
        let others = stored.others.iter().map(|(id, dev)| (*id, dev));
        // The latest scores of a model take precedence, but its own ones have the gain.
        for (id, dev) in others.chain(own).filter(|(_, dev)| dev.test_set == last) {
            let has_gain = scores.get(&id).is_some_and(|known: &DevFigures| known.gain.is_some());
            if !has_gain {
                scores.insert(id, dev.clone());
            }
        }
    }
    scores
}

/// `POST /projects/{p}/models/{m}/use`: switches the project to a model.
pub async fn choose(
    State(app): State<Arc<App>>,
    _: Curator,
    PathParam((project, model)): PathParam<(i64, i64)>,
) -> ApiResult<axum::Json<Model>> {
    let model = app.blocking(move |app| {
        app.store.write(|transaction| {
            projects::check(transaction, project)?;
            let stored = models::get(transaction, model)?;
            if stored.model.project_id.is_some_and(|other| other != project) {
                return Err(ApiError::not_found(format!("model {model} not found")));
            }
            projects::use_model(transaction, project, model)?;
            Ok(Model { is_current: true, ..stored.model })
        })
    });
    Ok(axum::Json(model.await?))
}

/// `PATCH /projects/{p}/models/{m}`: renames a trained model.
pub async fn rename(
    State(app): State<Arc<App>>,
    _: Curator,
    PathParam((project, model)): PathParam<(i64, i64)>,
    Json(patch): Json<ModelPatch>,
) -> ApiResult<axum::Json<Model>> {
    let model = app.blocking(move |app| {
        let name = super::projects::checked_line(&patch.name, "model name")?;
        app.store.write(|transaction| {
            trained(transaction, project, model)?;
            models::rename(transaction, model, name)?;
            let is_current = projects::model(transaction, project)? == Some(model);
            Ok(Model { is_current, ..models::get(transaction, model)?.model })
        })
    });
    Ok(axum::Json(model.await?))
}

/// `DELETE /projects/{p}/models/{m}`: deletes a trained model that is not in use.
pub async fn delete(
    State(app): State<Arc<App>>,
    _: Curator,
    PathParam((project, model)): PathParam<(i64, i64)>,
) -> ApiResult<axum::Json<()>> {
    app.blocking(move |app| {
        let now = app.now();
        let stored = app.store.write(|transaction| {
            let stored = trained(transaction, project, model)?;
            jobs::check_idle(transaction, project, now)?;
            if projects::model(transaction, project)? == Some(model) {
                return Err(ApiError::conflict(format!("model “{}” is in use", stored.model.name))
                    .hint("switch to another model first; nothing was deleted"));
            }
            models::delete(transaction, model)?;
            Ok(stored)
        })?;
        remove(app, &stored);
        Ok(())
    })
    .await?;
    Ok(axum::Json(()))
}

/// `GET /projects/{p}/models/{m}/file`: downloads a trained model as one file for `--model`.
pub async fn download(
    State(app): State<Arc<App>>,
    _: Curator,
    PathParam((project, model)): PathParam<(i64, i64)>,
) -> ApiResult<Response> {
    let (file, name) = app
        .blocking(move |app| {
            let stored = app.store.read(|connection| trained(connection, project, model))?;
            let (Some(folder), Some(trainer)) = (&stored.folder, &app.trainer) else {
                return Err(ApiError::unavailable("this server cannot open trained models"));
            };
            let path = trainer.file(folder);
            let file = std::fs::File::open(&path).map_err(|error| {
                tracing::error!("{}: {error}", path.display());
                ApiError::unavailable(format!("cannot read the file of model “{}”", stored.model.name))
                    .hint("see the server log")
            })?;
            let ending = path.extension().map(|ending| ending.to_string_lossy().into_owned()).unwrap_or_default();
            Ok((file, format!("{}.{ending}", safe_name(&stored.model.name).replace([' ', '"'], "-"))))
        })
        .await?;
    let length = file.metadata().map(|about| about.len()).map_err(|error| ApiError::internal(&error))?;
    let headers = [
        (header::CONTENT_TYPE, "application/octet-stream".to_owned()),
        (header::CONTENT_LENGTH, length.to_string()),
        (header::CONTENT_DISPOSITION, format!("attachment; filename=\"{name}\"")),
    ];
    Ok((headers, stream_file(file)).into_response())
}

/// Streams a file.
fn stream_file(mut file: std::fs::File) -> Body {
    let (sender, receiver) = tokio::sync::mpsc::channel(4);
    tokio::task::spawn_blocking(move || {
        loop {
            let mut chunk = vec![0; CHUNK];
            let read = file.read(&mut chunk).map(|n| {
                chunk.truncate(n);
                Bytes::from(chunk)
            });
            let is_over = read.as_ref().map_or(true, Bytes::is_empty);
            // Stop when the client has disconnected.
            if read.as_ref().is_ok_and(Bytes::is_empty) || sender.blocking_send(read).is_err() || is_over {
                return;
            }
        }
    });
    Body::from_stream(ReceiverStream::new(receiver))
}

/// A model trained in the project, or 404.
fn trained(connection: &Connection, project: i64, model: i64) -> ApiResult<StoredModel> {
    let stored = models::get(connection, model)?;
    match stored.model.project_id == Some(project) {
        true => Ok(stored),
        false => Err(ApiError::not_found(format!("model {model} not found"))),
    }
}

/// Removes the files of a deleted model.
pub fn remove(app: &App, stored: &StoredModel) {
    app.forget_model(stored.model.id);
    let Some(folder) = &stored.folder else { return };
    if let Err(error) = std::fs::remove_dir_all(folder) {
        tracing::warn!("cannot remove {}: {error}", folder.display());
    }
}
