//! Comments on documents and mentions.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use rusqlite::Transaction;

use super::{Json, PathParam};
use crate::error::{ApiError, ApiResult};
use crate::events::DocumentVersion;
use crate::marks::Changes;
use crate::state::App;
use crate::store::comments::{self, NewRow};
use crate::store::events::{self, NewEvent};
use crate::store::{documents, people};
use crate::wire::{Comment, CommentPatch, NewComment, Person};

/// The maximum length of a comment, in bytes.
pub(super) const MAX_COMMENT: usize = 10_000;

/// `POST /documents/{d}/comments`: starts a thread, or replies to one.
pub async fn add(
    State(app): State<Arc<App>>,
    person: Person,
    PathParam(id): PathParam<i64>,
    Json(new): Json<NewComment>,
) -> ApiResult<(StatusCode, axum::Json<Comment>)> {
    let comment = app.blocking(move |app| {
        let text = new.text.trim();
        if text.is_empty() || text.len() > MAX_COMMENT {
            return Err(ApiError::bad(format!("a comment must be 1 to {MAX_COMMENT} bytes long")));
        }
        change(app, id, &person, |transaction| {
            let mark = match new.parent {
                Some(parent) => first_of_thread(transaction, id, parent)?.mark,
                None => new.mark,
            };
            if let Some(mark) = mark
                && documents::of_mark(transaction, mark)? != id
            {
                return Err(ApiError::not_found(format!("mention {mark} not found")));
            }
            let new = NewRow { document: id, mark, parent: new.parent, person: person.id, at: app.now(), text };
            comments::add(transaction, &new)
        })
    });
    Ok((StatusCode::CREATED, axum::Json(comment.await?)))
}

/// `PATCH /documents/{d}/comments/{id}`: resolves or reopens a thread.
pub async fn patch(
    State(app): State<Arc<App>>,
    person: Person,
    PathParam((id, comment)): PathParam<(i64, i64)>,
    Json(patch): Json<CommentPatch>,
) -> ApiResult<axum::Json<Comment>> {
    let comment = app.blocking(move |app| {
        change(app, id, &person, |transaction| {
            first_of_thread(transaction, id, comment)?;
            comments::resolve(transaction, comment, patch.is_resolved.then_some(person.id))?;
            Ok(comment)
        })
    });
    Ok(axum::Json(comment.await?))
}

/// The first comment of a thread; fails for a reply.
fn first_of_thread(transaction: &Transaction<'_>, document: i64, id: i64) -> ApiResult<Comment> {
    let comment = comments::get(transaction, document, id, &people::names(transaction)?)?;
    match comment.parent {
        Some(first) => Err(ApiError::bad(format!("comment {id} is a reply"))
            .hint(format!("use the first comment of its thread, {first}"))),
        None => Ok(comment),
    }
}

/// Changes the comments of a document and tells everyone who has it open; returns the comment that `work` names.
fn change(
    app: &App,
    id: i64,
    person: &Person,
    work: impl FnOnce(&Transaction<'_>) -> ApiResult<i64>,
) -> ApiResult<Comment> {
    let (project, version, comment) = app.store.write(|transaction| {
        let stored = documents::get(transaction, id)?;
        let comment = work(transaction)?;
        let event =
            NewEvent { document: id, person: Some(person.id), at: app.now(), kind: "comment", ..NewEvent::default() };
        let version = events::add(transaction, &event, &Changes::default())?;
        let comment = comments::get(transaction, id, comment, &people::names(transaction)?)?;
        Ok((stored.project, version, comment))
    })?;
    app.bus.publish(project, "document", &DocumentVersion { id, version });
    Ok(comment)
}
