//! The web application: built files that are part of the program.

use axum::http::{StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use rust_embed::{EmbeddedFile, RustEmbed};

use crate::error::ApiError;

#[derive(RustEmbed)]
#[folder = "assets/app/"]
struct Files;

const INDEX: &str = "index.html";

/// A file of the application; where the path names none and has no dot, the page that knows what to show.
pub async fn serve(uri: Uri) -> Response {
    let path = uri.path().trim_start_matches('/');
    if path.starts_with("api/") {
        return ApiError::not_found("there is no such address").hint("/api/v1/openapi.json lists all").into_response();
    }
    let path = if path.is_empty() { INDEX } else { path };
    match Files::get(path) {
        Some(file) => answer(path, file),
        None if !path.contains('.') => match Files::get(INDEX) {
            Some(file) => answer(INDEX, file),
            None => ApiError::not_found("the application is not part of this build").into_response(),
        },
        None => ApiError::not_found("there is no such file").into_response(),
    }
}

fn answer(path: &str, file: EmbeddedFile) -> Response {
    // The builder puts a hash into the names of files below `assets/`, so they never change.
    let cache = if path.starts_with("assets/") { "public, max-age=31536000, immutable" } else { "no-cache" };
    let headers = [(header::CONTENT_TYPE, kind(path)), (header::CACHE_CONTROL, cache)];
    (StatusCode::OK, headers, file.data.into_owned()).into_response()
}

fn kind(path: &str) -> &'static str {
    match path.rsplit_once('.').map(|(_, ending)| ending) {
        Some("html") => "text/html; charset=utf-8",
        Some("js" | "mjs") => "text/javascript; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("json" | "map" | "webmanifest") => "application/json",
        Some("svg") => "image/svg+xml",
        Some("png") => "image/png",
        Some("ico") => "image/x-icon",
        Some("woff2") => "font/woff2",
        Some("txt") => "text/plain; charset=utf-8",
        _ => "application/octet-stream",
    }
}
