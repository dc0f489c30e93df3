//! The embedded files of the web application.

use std::collections::HashMap;
use std::io::Write;
use std::sync::{Mutex, PoisonError};

use axum::body::Bytes;
use axum::http::{HeaderMap, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use flate2::Compression;
use flate2::write::GzEncoder;
use rust_embed::{EmbeddedFile, RustEmbed};

use crate::error::ApiError;

#[derive(RustEmbed)]
#[folder = "assets/app/"]
struct Files;

const INDEX: &str = "index.html";

/// Shorter files are not compressed.
const MIN_COMPRESSED_BYTES: usize = 1 << 10;

/// Compressed files by name; each is compressed once.
static COMPRESSED: Mutex<Option<HashMap<String, Bytes>>> = Mutex::new(None);

/// Serves a file of the application; a path without a dot that names no file gets the start page.
pub async fn serve(uri: Uri, headers: HeaderMap) -> Response {
    let path = uri.path().trim_start_matches('/');
    if path.starts_with("api/") {
        return ApiError::not_found("not found").hint("see /api/v1/openapi.json for all routes").into_response();
    }
    let path = if path.is_empty() { INDEX } else { path };
    match Files::get(path) {
        Some(file) => response(path, file, &headers),
        None if !path.contains('.') => match Files::get(INDEX) {
            Some(file) => response(INDEX, file, &headers),
            None => ApiError::not_found("this build does not include the web application").into_response(),
        },
        None => ApiError::not_found("file not found").into_response(),
    }
}

/// Whether the browser accepts gzip, and does not exclude it with `q=0`.
fn accepts_gzip(headers: &HeaderMap) -> bool {
    let accepted = headers.get(header::ACCEPT_ENCODING).and_then(|value| value.to_str().ok()).unwrap_or_default();
    accepted.split(',').any(|one| {
        let (name, weight) = one.split_once(';').unwrap_or((one, ""));
        let weight = weight.trim();
        name.trim() == "gzip" && weight.strip_prefix("q=").is_none_or(|q| q.parse::<f32>().is_ok_and(|q| q > 0.0))
    })
}

/// The compressed text; `None` for short or already compressed files.
fn compressed(path: &str, bytes: &[u8]) -> Option<Bytes> {
    if bytes.len() < MIN_COMPRESSED_BYTES || content_type(path).starts_with("image/png") || path.ends_with(".woff2") {
        return None;
    }
    let mut all = COMPRESSED.lock().unwrap_or_else(PoisonError::into_inner);
    let all = all.get_or_insert_with(HashMap::new);
    if let Some(known) = all.get(path) {
        return Some(known.clone());
    }
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes).ok()?;
    let made = Bytes::from(encoder.finish().ok()?);
    all.insert(path.to_owned(), made.clone());
    Some(made)
}

fn response(path: &str, file: EmbeddedFile, request_headers: &HeaderMap) -> Response {
    // Names of files below `assets/` contain a hash, so the files never change.
    let cache = if path.starts_with("assets/") { "public, max-age=31536000, immutable" } else { "no-cache" };
    let headers =
        [(header::CONTENT_TYPE, content_type(path)), (header::CACHE_CONTROL, cache), (header::VARY, "accept-encoding")];
    if let Some(bytes) = accepts_gzip(request_headers).then(|| compressed(path, &file.data)).flatten() {
        return (StatusCode::OK, headers, [(header::CONTENT_ENCODING, "gzip")], bytes).into_response();
    }
    (StatusCode::OK, headers, file.data.into_owned()).into_response()
}

fn content_type(path: &str) -> &'static str {
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
