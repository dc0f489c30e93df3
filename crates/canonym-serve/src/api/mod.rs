//! The addresses of the interface: one file a subject. [`routes`] lists all.

mod changes;
mod choices;
mod decisions;
mod disagreements;
mod documents;
mod export;
mod health;
mod import;
mod jobs;
mod kb;
mod link;
pub mod lint;
mod members;
mod mentions;
mod models;
mod pace;
mod people;
mod projects;
mod routes;
mod show;
mod stats;
mod stream;

pub use export::for_each_document;
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

/// The longest body of a request that neither links nor imports.
const MAX_BODY: usize = 1 << 20;

/// How long is waited for the next part of a body.
const IDLE: Duration = Duration::from_secs(15);

/// What is said of malformed input at most, in characters.
const MAX_QUOTED: usize = 300;

/// All bytes of a body, or 413. A client that sends nothing for a while is not waited for.
async fn bytes(request: Request<Body>, limit: usize) -> ApiResult<Vec<u8>> {
    Ok(held_bytes(request, limit, None).await?.0)
}

/// The same; what has come of it is taken of `budget`, in KiB, until the permit is dropped.
async fn held_bytes(
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
        let chunk = tokio::time::timeout(IDLE, chunks.next()).await;
        let chunk = chunk.map_err(|_| ApiError::bad("the body comes too slowly").hint("send it again"))?;
        let Some(chunk) = chunk else { return Ok((bytes, held)) };
        let chunk = chunk.map_err(|_| ApiError::bad("the body ended early").hint("send it again"))?;
        if bytes.len() + chunk.len() > limit {
            return Err(ApiError::too_large(limit));
        }
        bytes.extend_from_slice(&chunk);
        if let Some(budget) = budget {
            let n_held = held.as_ref().map_or(0, OwnedSemaphorePermit::num_permits);
            let more = bytes.len().div_ceil(1024).saturating_sub(n_held) as u32;
            let more = budget.clone().try_acquire_many_owned(more);
            let more = more.map_err(|_| ApiError::busy("other files are being sent", 2))?;
            match &mut held {
                Some(held) => held.merge(more),
                None => held = Some(more),
            }
        }
    }
}

/// JSON of a body.
fn json<T: DeserializeOwned>(bytes: &[u8]) -> ApiResult<T> {
    serde_json::from_slice(bytes).map_err(|error| {
        // The library quotes what it did not expect, however long.
        let error: String = error.to_string().chars().take(MAX_QUOTED).collect();
        ApiError::bad(format!("the body is not the JSON that is expected: {error}"))
            .hint("/api/v1/openapi.json has the shape of every request")
    })
}

/// A short body of JSON.
struct Json<T>(T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for Json<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, _: &S) -> ApiResult<Json<T>> {
        Ok(Json(json(&bytes(request, MAX_BODY).await?)?))
    }
}

/// A short body of JSON that may be empty.
struct Maybe<T>(T);

impl<S: Send + Sync, T: DeserializeOwned + Default> FromRequest<S> for Maybe<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, _: &S) -> ApiResult<Maybe<T>> {
        let bytes = bytes(request, MAX_BODY).await?;
        Ok(Maybe(if bytes.is_empty() { T::default() } else { json(&bytes)? }))
    }
}

/// What stands behind `?`.
struct Ask<T>(T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequestParts<S> for Ask<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> ApiResult<Ask<T>> {
        let query = Query::<T>::from_request_parts(parts, state).await;
        let query = query.map_err(|error| {
            let error: String = error.body_text().chars().take(MAX_QUOTED).collect();
            ApiError::bad(format!("what stands behind `?` cannot be read: {error}"))
        })?;
        Ok(Ask(query.0))
    }
}

/// What a path names.
struct At<T>(T);

impl<S: Send + Sync, T: DeserializeOwned + Send> FromRequestParts<S> for At<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> ApiResult<At<T>> {
        let path = Path::<T>::from_request_parts(parts, state).await;
        let path = path
            .map_err(|_| ApiError::not_found("there is no such address").hint("numbers of things are whole numbers"))?;
        Ok(At(path.0))
    }
}

/// A number within limits, or the usual one.
fn within(value: Option<usize>, (least, usual, most): (usize, usize, usize), name: &str) -> ApiResult<usize> {
    match value {
        None => Ok(usual),
        Some(value) if (least..=most).contains(&value) => Ok(value),
        Some(value) => Err(ApiError::bad(format!("`{name}` is {value}, which is not from {least} to {most}"))),
    }
}
