//! Members of projects. Routes that name a project, a document or a job are restricted to members here.

use std::sync::Arc;

use axum::extract::{Query, RawPathParams, Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::{Json, PathParam};
use crate::error::{ApiError, ApiResult};
use crate::guard::{Client, Curator};
use crate::state::App;
use crate::store::members::{self, Named};
use crate::store::people;
use crate::store::projects;
use crate::wire::{NewMember, People, Person};

/// Middleware: 404 unless the user is a member of every project that the request names. The path parameters are those of the routes:
/// `p` is a project, `d` a document, `j` a job.
pub async fn check(
    State(app): State<Arc<App>>,
    params: Result<RawPathParams, axum::extract::rejection::RawPathParamsRejection>,
    request: Request,
    next: Next,
) -> Response {
    let mut named = Vec::new();
    // Handlers reject parameters that are not numbers.
    for (name, value) in params.iter().flat_map(RawPathParams::iter) {
        named.extend(match (name, value.parse()) {
            ("p", Ok(id)) => Some(Named::Project(id)),
            ("d", Ok(id)) => Some(Named::Document(id)),
            ("j", Ok(id)) => Some(Named::Job(id)),
            _ => None,
        });
    }
    if let Ok(Query(pairs)) = Query::<Vec<(String, String)>>::try_from_uri(request.uri()) {
        let projects = pairs.iter().filter(|(name, _)| name == "project");
        named.extend(projects.filter_map(|(_, value)| value.parse().ok().map(Named::Project)));
    }
    if named.is_empty() {
        return next.run(request).await;
    }
    let Some(person) = request.extensions().get::<Person>().cloned() else {
        return ApiError::unauthorized().into_response();
    };
    let checked = app.blocking(move |app| {
        app.store.read(|connection| named.iter().try_for_each(|named| members::check(connection, &person, *named)))
    });
    match checked.await {
        Ok(()) => next.run(request).await,
        Err(error) => error.into_response(),
    }
}

/// `GET /projects/{p}/people`: the members of a project.
pub async fn all(
    State(app): State<Arc<App>>,
    _: Person,
    PathParam(project): PathParam<i64>,
) -> ApiResult<axum::Json<People>> {
    let people = app.blocking(move |app| app.store.read(|connection| members::all(connection, project))).await?;
    Ok(axum::Json(People { people }))
}

/// `POST /projects/{p}/people`: adds a member; returns all members.
pub async fn add(
    State(app): State<Arc<App>>,
    Curator(curator): Curator,
    axum::Extension(client): axum::Extension<Client>,
    PathParam(project): PathParam<i64>,
    Json(new): Json<NewMember>,
) -> ApiResult<axum::Json<People>> {
    change(app, curator, client, project, new.id, Change::Add).await
}

/// `DELETE /projects/{p}/people/{id}`: removes a member; returns the remaining ones. Their annotations stay.
pub async fn remove(
    State(app): State<Arc<App>>,
    Curator(curator): Curator,
    axum::Extension(client): axum::Extension<Client>,
    PathParam((project, person)): PathParam<(i64, i64)>,
) -> ApiResult<axum::Json<People>> {
    change(app, curator, client, project, person, Change::Remove).await
}

/// A change of the members of a project.
#[derive(Clone, Copy)]
enum Change {
    Add,
    Remove,
}

async fn change(
    app: Arc<App>,
    curator: Person,
    client: Client,
    project: i64,
    person: i64,
    change: Change,
) -> ApiResult<axum::Json<People>> {
    let people = app.blocking(move |app| {
        let (name, of, people) = app.store.write(|transaction| {
            let of = projects::get(transaction, project)?.name;
            let name = people::get(transaction, person)?.name;
            match change {
                Change::Add => members::add(transaction, project, person)?,
                Change::Remove if members::remove(transaction, project, person)? => {}
                Change::Remove => {
                    return Err(ApiError::not_found(format!("“{name}” is not a member of this project")));
                }
            }
            Ok((name, of, members::all(transaction, project)?))
        })?;
        let what = format!("{name} in project {project} ({of})");
        let action = match change {
            Change::Add => "member added",
            Change::Remove => "member removed",
        };
        app.audit.record(app.now(), &curator.name, Some(client.0), action, &what);
        Ok(people)
    });
    let people = people.await?;
    // Event streams check their permissions again.
    app.permissions_changed();
    Ok(axum::Json(People { people }))
}
