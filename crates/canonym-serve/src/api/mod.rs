//! Request handlers, one file a subject. [`routes`] lists all routes.

mod assignments;
mod changes;
mod choices;
mod comments;
mod conflict_groups;
mod copies;
mod decisions;
mod disagreements;
mod documents;
mod events;
mod export;
mod fhir;
mod gilda;
mod groups;
mod health;
mod import;
mod inception;
mod jobs;
mod kb;
mod link;
mod lint;
mod members;
mod mentions;
mod models;
pub mod openapi;
mod people;
mod projects;
mod proposals;
mod routes;
mod sample;
mod show;
mod speed;
mod stats;
mod stream;

pub use routes::{Route, router, routes};

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::{FromRequest, FromRequestParts, Path, Query, Request};
use axum::http::header;
use axum::http::request::Parts;
use serde::de::DeserializeOwned;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_stream::StreamExt;

use crate::error::{ApiError, ApiResult};

/// The maximum body size of requests that neither link nor import, in bytes.
const MAX_BODY: usize = 1 << 20;

/// The timeout for the next chunk of a body.
const CHUNK_TIMEOUT: Duration = Duration::from_secs(15);

/// The maximum length of a quoted parse error, in characters.
const MAX_QUOTED: usize = 300;

/// Reads a body, or fails with 413. A client that stops sending times out.
async fn bytes(request: Request<Body>, limit: usize) -> ApiResult<Vec<u8>> {
    Ok(bytes_with_permit(request, limit, None).await?.0)
}

/// Reads a body; the KiB received count against `budget` until the permit is dropped.
async fn bytes_with_permit(
    request: Request<Body>,
    limit: usize,
    budget: Option<&Arc<Semaphore>>,
) -> ApiResult<(Vec<u8>, Option<OwnedSemaphorePermit>)> {
    let length =
        request.headers().get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse::<usize>().ok());
    if length.is_some_and(|length| length > limit) {
        return Err(ApiError::too_large(limit));
    }
    let mut chunks = request.into_body().into_data_stream();
    let mut bytes = Vec::new();
    let mut held: Option<OwnedSemaphorePermit> = None;
    loop {
        let chunk = tokio::time::timeout(CHUNK_TIMEOUT, chunks.next()).await;
        let chunk = chunk.map_err(|_| ApiError::bad("the request body is sent too slowly").hint("send it again"))?;
        let Some(chunk) = chunk else { return Ok((bytes, held)) };
        let chunk = chunk.map_err(|_| ApiError::bad("the request body ended early").hint("send it again"))?;
        if bytes.len() + chunk.len() > limit {
            return Err(ApiError::too_large(limit));
        }
        bytes.extend_from_slice(&chunk);
        if let Some(budget) = budget {
            let n_held = held.as_ref().map_or(0, OwnedSemaphorePermit::num_permits);
            let more = bytes.len().div_ceil(1024).saturating_sub(n_held) as u32;
            let more = budget.clone().try_acquire_many_owned(more);
            let more = more.map_err(|_| ApiError::busy("too many uploads at once", 2))?;
            match &mut held {
                Some(held) => held.merge(more),
                None => held = Some(more),
            }
        }
    }
}

/// Parses the JSON of a body.
fn json<T: DeserializeOwned>(bytes: &[u8]) -> ApiResult<T> {
    serde_json::from_slice(bytes).map_err(|error| {
        let message = match error.is_data() {
            true => format!("invalid request: {}", shortened(&error)),
            false => format!("invalid JSON in the request body: {}", shortened(&error)),
        };
        ApiError::bad(message).hint("see /api/v1/openapi.json for the schema of each request")
    })
}

/// The message of an error of JSON. The library quotes unexpected input in full, and names types of the program.
fn shortened(error: &serde_json::Error) -> String {
    let message = error.to_string();
    let message = match message.split_once(", expected struct ") {
        Some((start, end)) => {
            let end = end.find(" at line ").map_or("", |at| &end[at..]);
            format!("{start}, expected an object{end}")
        }
        None => message,
    };
    message.chars().take(MAX_QUOTED).collect()
}

/// A short JSON body.
struct Json<T>(T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for Json<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, _: &S) -> ApiResult<Json<T>> {
        Ok(Json(json(&bytes(request, MAX_BODY).await?)?))
    }
}

/// A short JSON body that may be empty.
struct OptionalJson<T>(T);

impl<S: Send + Sync, T: DeserializeOwned + Default> FromRequest<S> for OptionalJson<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, _: &S) -> ApiResult<OptionalJson<T>> {
        let bytes = bytes(request, MAX_BODY).await?;
        Ok(OptionalJson(if bytes.is_empty() { T::default() } else { json(&bytes)? }))
    }
}

/// The query parameters.
struct QueryParams<T>(T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequestParts<S> for QueryParams<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> ApiResult<QueryParams<T>> {
        let query = Query::<T>::from_request_parts(parts, state).await;
        let query = query.map_err(|error| {
            let error: String = error.body_text().chars().take(MAX_QUOTED).collect();
            ApiError::bad(format!("invalid query string: {error}"))
        })?;
        Ok(QueryParams(query.0))
    }
}

/// The path parameters.
struct PathParam<T>(T);

impl<S: Send + Sync, T: DeserializeOwned + Send> FromRequestParts<S> for PathParam<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> ApiResult<PathParam<T>> {
        let path = Path::<T>::from_request_parts(parts, state).await;
        let path = path.map_err(|_| ApiError::not_found("not found").hint("IDs in paths are integers"))?;
        Ok(PathParam(path.0))
    }
}

/// The values that a number in a request may have, and its default.
struct Bounds {
    min: usize,
    default: usize,
    max: usize,
}

/// Rows per page.
const PAGE_LIMIT: Bounds = Bounds { min: 1, default: 50, max: 500 };

impl Bounds {
    /// The number, or the default if it is missing; fails outside the bounds.
    fn check(&self, value: Option<usize>, name: &str) -> ApiResult<usize> {
        let Bounds { min, default, max } = *self;
        match value {
            None => Ok(default),
            Some(value) if (min..=max).contains(&value) => Ok(value),
            Some(value) => Err(ApiError::bad(format!("`{name}` must be between {min} and {max}, not {value}"))),
        }
    }
}
