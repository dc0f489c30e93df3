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

use axum::body::{Body, to_bytes};
use axum::extract::{FromRequest, FromRequestParts, Path, Query, Request};
use axum::http::header;
use axum::http::request::Parts;
use serde::de::DeserializeOwned;

use crate::error::{ApiError, ApiResult};

/// The longest body of a request that neither links nor imports.
const MAX_BODY: usize = 1 << 20;

/// What is said of malformed input at most, in characters.
const MAX_QUOTED: usize = 300;

/// All bytes of a body, or 413.
async fn bytes(request: Request<Body>, limit: usize) -> ApiResult<axum::body::Bytes> {
    let length =
        request.headers().get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse::<usize>().ok());
    if length.is_some_and(|length| length > limit) {
        return Err(ApiError::too_large(limit));
    }
    to_bytes(request.into_body(), limit).await.map_err(|error| match std::error::Error::source(&error) {
        Some(cause) if cause.to_string().contains("length limit") => ApiError::too_large(limit),
        _ => ApiError::bad("the body ended early").hint("send it again"),
    })
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
