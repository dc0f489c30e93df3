//! Models: which there are, and which a project uses.

use std::sync::Arc;

use axum::extract::State;
use serde::Deserialize;

use super::{Ask, At};
use crate::app::App;
use crate::error::{ApiError, ApiResult};
use crate::guard::Curator;
use crate::store::models::{self, KeptModel};
use crate::store::people::Person;
use crate::store::projects;
use crate::wire::{Model, Models};

/// Of which project.
#[derive(Debug, Default, Deserialize)]
pub struct ModelsQuery {
    project: Option<i64>,
}

/// `GET /models`: the models that a project may use.
pub async fn all(
    State(app): State<Arc<App>>,
    _: Person,
    Ask(query): Ask<ModelsQuery>,
) -> ApiResult<axum::Json<Models>> {
    let models = app.blocking(move |app| {
        app.store.read(|connection| {
            let current = query.project.map(|project| projects::model(connection, project)).transpose()?.flatten();
            let current = current.unwrap_or(app.base_model);
            let shown = |kept: KeptModel| Model { is_current: kept.model.id == current, ..kept.model };
            // Models that the server was started with before are not here any more.
            let is_here = |kept: &KeptModel| kept.folder.is_some() || kept.model.id == app.base_model;
            let all = models::of_project(connection, query.project.unwrap_or(0))?;
            Ok(all.into_iter().filter(is_here).map(shown).collect())
        })
    });
    Ok(axum::Json(Models { models: models.await? }))
}

/// `POST /projects/{p}/models/{m}/use`: predictions of the project are made by this model from now on.
pub async fn choose(
    State(app): State<Arc<App>>,
    _: Curator,
    At((project, model)): At<(i64, i64)>,
) -> ApiResult<axum::Json<Model>> {
    let model = app.blocking(move |app| {
        app.store.write(|transaction| {
            projects::check(transaction, project)?;
            let kept = models::get(transaction, model)?;
            if kept.model.project_id.is_some_and(|other| other != project) {
                return Err(ApiError::not_found(format!("this project has no model {model}")));
            }
            projects::use_model(transaction, project, model)?;
            Ok(Model { is_current: true, ..kept.model })
        })
    });
    Ok(axum::Json(model.await?))
}
