//! Projects.

use canonym_core::active::Strategy;
use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use rusqlite::Transaction;

use super::{Json, PathParam};
use crate::abort;
use crate::error::{ApiError, ApiResult};
use crate::events::DocumentVersion;
use crate::guard::{Admin, Curator};
use crate::marks::scope::ScopeFilter;
use crate::marks::{Change, Changes};
use crate::state::App;
use crate::store::events::{self, NewEvent};
use crate::store::{assignments, documents, jobs, members, models, projects};
use crate::wire::{NewProject, Person, Project, ProjectPatch, ProjectScope, Projects};

/// The maximum length of a name, in bytes.
const MAX_NAME: usize = 200;

/// `GET /projects`: the user's projects.
pub async fn all(State(app): State<Arc<App>>, person: Person) -> ApiResult<axum::Json<Projects>> {
    let projects = app.blocking(move |app| app.store.read(|connection| projects::all(connection, &person))).await?;
    Ok(axum::Json(Projects { projects }))
}

/// `GET /projects/{p}`: one project.
pub async fn get(
    State(app): State<Arc<App>>,
    _: Person,
    PathParam(id): PathParam<i64>,
) -> ApiResult<axum::Json<Project>> {
    Ok(axum::Json(app.blocking(move |app| app.store.read(|connection| projects::get(connection, id))).await?))
}

/// `POST /projects`: creates a project with the user as a member.
pub async fn add(
    State(app): State<Arc<App>>,
    Curator(person): Curator,
    Json(new): Json<NewProject>,
) -> ApiResult<(StatusCode, axum::Json<Project>)> {
    let project = app.blocking(move |app| {
        check_name(&new.name)?;
        let scope = new.scope.as_ref().map(|scope| app.checked_scope(scope)).transpose()?;
        let (kb, now) = (app.kb_fingerprint(), app.now());
        app.store.write(|transaction| {
            let id = projects::add(transaction, &new, &kb, Strategy::LeastConfident.name(), now)?;
            members::add(transaction, id, person.id)?;
            if let Some(scope) = &scope {
                projects::set_scope(transaction, id, scope)?;
            }
            projects::get(transaction, id)
        })
    });
    let project = project.await?;
    // Event streams check their permissions again.
    app.permissions_changed();
    Ok((StatusCode::CREATED, axum::Json(project)))
}

/// `PATCH /projects/{p}`: changes the given fields.
pub async fn patch(
    State(app): State<Arc<App>>,
    _: Curator,
    PathParam(id): PathParam<i64>,
    Json(patch): Json<ProjectPatch>,
) -> ApiResult<axum::Json<Project>> {
    let project = app.blocking(move |app| {
        if let Some(name) = &patch.name {
            check_name(name)?;
        }
        if let Some(strategy) = &patch.strategy {
            Strategy::parse(strategy)?;
        }
        let scope = patch.scope.as_ref().map(|scope| app.checked_scope(scope)).transpose()?;
        let (project, versions) = app.store.write(|transaction| {
            projects::check(transaction, id)?;
            projects::patch(transaction, id, &patch)?;
            assignments::update_children(transaction, id)?;
            let mut versions = Vec::new();
            if let Some(scope) = &scope {
                let children = assignments::children(transaction, id)?.into_values();
                for project in children.chain([id]) {
                    let changed = change_scope(app, transaction, project, scope)?;
                    versions.extend(changed.into_iter().map(|version| (project, version)));
                }
            }
            Ok((projects::get(transaction, id)?, versions))
        })?;
        versions.iter().for_each(|(project, version)| app.bus.publish(*project, "document", version));
        Ok(project)
    });
    Ok(axum::Json(project.await?))
}

/// Sets the scope of a project and removes unreviewed predictions outside of it; returns the documents that changed.
fn change_scope(
    app: &App,
    transaction: &Transaction<'_>,
    id: i64,
    scope: &ProjectScope,
) -> ApiResult<Vec<DocumentVersion>> {
    projects::set_scope(transaction, id, scope)?;
    let Some(subset) = app.subset_of(scope)? else { return Ok(Vec::new()) };
    let filter = ScopeFilter { kb: app.engine.kb(), subset: &subset, types: &scope.types };
    let mut versions = Vec::new();
    for document in documents::numbers(transaction, id)? {
        abort::check()?;
        let held = documents::marks(transaction, document)?;
        let outside = held.into_iter().filter(|(_, held)| filter.excludes(&held.mark));
        let marks: Vec<Change> =
            outside.map(|(id, held)| Change { id, before: Some(held.mark), after: None }).collect();
        if !marks.is_empty() {
            let event = NewEvent { document, at: app.now(), kind: "predict", ..NewEvent::default() };
            let version = events::add(transaction, &event, &Changes { marks, finished: None })?;
            versions.push(DocumentVersion { id: document, version });
        }
    }
    Ok(versions)
}

/// `DELETE /projects/{p}`: deletes a project with its documents, decisions, jobs and models.
pub async fn delete(State(app): State<Arc<App>>, _: Admin, PathParam(id): PathParam<i64>) -> ApiResult<axum::Json<()>> {
    app.blocking(move |app| {
        let now = app.now();
        let trained = app.store.write(|transaction| {
            projects::check(transaction, id)?;
            let mut trained = Vec::new();
            for project in assignments::children(transaction, id)?.into_values().chain([id]) {
                jobs::check_idle(transaction, project, now)?;
                let models = models::of_project(transaction, project)?.into_iter();
                trained.extend(models.filter(|stored| stored.model.project_id == Some(project)));
            }
            projects::delete(transaction, id)?;
            Ok(trained)
        })?;
        trained.iter().for_each(|stored| super::models::remove(app, stored));
        app.store.truncate_log();
        app.bus.publish(id, "deleted", &serde_json::json!({ "project": id }));
        Ok(())
    })
    .await?;
    Ok(axum::Json(()))
}

pub(super) fn check_name(name: &str) -> ApiResult<()> {
    checked_line(name, "project name").map(|_| ())
}

/// Trims and checks a name.
pub fn checked_line<'a>(name: &'a str, what: &str) -> ApiResult<&'a str> {
    let name = name.trim();
    if name.is_empty() || name.len() > MAX_NAME || name.chars().any(char::is_control) {
        return Err(ApiError::bad(format!("the {what} must be 1 to {MAX_NAME} bytes on one line")));
    }
    Ok(name)
}
