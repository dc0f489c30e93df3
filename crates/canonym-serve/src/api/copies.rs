//! Copies of projects: settings alone as a template, or with documents and annotations.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use rusqlite::Transaction;

use super::projects::check_name;
use super::{Json, PathParam};
use crate::abort;
use crate::error::ApiResult;
use crate::guard::Curator;
use crate::marks::{Change, Changes};
use crate::state::App;
use crate::store::events::{self, NewEvent};
use crate::store::{documents, members, projects};
use crate::wire::{CopyContent, NewProject, Person, Project, ProjectCopy};

/// `POST /projects/{p}/copies`: creates a copy of a project.
pub async fn add(
    State(app): State<Arc<App>>,
    Curator(person): Curator,
    PathParam(from): PathParam<i64>,
    Json(request): Json<ProjectCopy>,
) -> ApiResult<(StatusCode, axum::Json<Project>)> {
    let project = app.blocking(move |app| {
        check_name(&request.name)?;
        let kb = app.kb_fingerprint();
        let project = app.store.write(|transaction| {
            let original = projects::get(transaction, from)?;
            let new = NewProject {
                name: request.name.clone(),
                description: Some(original.description),
                guideline: Some(original.guideline),
                scope: None,
            };
            let to = projects::add(transaction, &new, &kb, &original.strategy, app.now())?;
            projects::set_scope(transaction, to, &original.scope)?;
            members::copy(transaction, from, to)?;
            members::add(transaction, to, person.id)?;
            if request.content != CopyContent::Settings {
                copy_documents(app, transaction, Projects { from, to }, request.content, &person)?;
            }
            projects::get(transaction, to)
        })?;
        app.store.truncate_log();
        Ok(project)
    });
    let project = project.await?;
    // Event streams check their permissions again.
    app.permissions_changed();
    Ok((StatusCode::CREATED, axum::Json(project)))
}

/// The project that is copied, and its copy.
#[derive(Debug, Clone, Copy)]
struct Projects {
    from: i64,
    to: i64,
}

/// Copies documents as an import: histories and comments stay with the original.
fn copy_documents(
    app: &App,
    transaction: &Transaction<'_>,
    Projects { from, to }: Projects,
    content: CopyContent,
    person: &Person,
) -> ApiResult<()> {
    let mut next = events::next_mark(transaction)?;
    for number in documents::numbers(transaction, from)? {
        abort::check()?;
        let stored = documents::get(transaction, number)?;
        let Some(id) = documents::add(transaction, to, &stored.restore()?)? else { continue };
        let mut changes = Changes::default();
        if content == CopyContent::Annotations {
            let held = documents::marks(transaction, number)?.into_values().filter(|held| !held.mark.is_deleted);
            changes.marks =
                (next..).zip(held).map(|(id, held)| Change { id, before: None, after: Some(held.mark) }).collect();
            next += changes.marks.len() as i64;
            changes.finished = stored.is_finished.then_some((false, true));
        }
        let event =
            NewEvent { document: id, person: Some(person.id), at: app.now(), kind: "import", ..NewEvent::default() };
        events::add(transaction, &event, &changes)?;
    }
    events::set_next_mark(transaction, next)
}
