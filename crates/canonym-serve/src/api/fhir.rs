//! `/fhir`: the terminology service.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Path, Query, Request, State};
use axum::http::{HeaderMap, Method, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use serde_json::Value;

use super::{MAX_BODY, bytes, json};
use crate::error::{ApiError, ApiResult};
use crate::fhir::{Parameters, capabilities, operate, outcome, terminology_capabilities};
use crate::state::App;
use crate::times::rfc3339;

/// `GET /fhir/metadata`: the CapabilityStatement, or with `mode=terminology` the TerminologyCapabilities.
pub async fn metadata(State(app): State<Arc<App>>, request: Request<Body>) -> Response {
    let now = rfc3339(app.now());
    let pairs = query(request.uri()).and_then(|pairs| check_accepted(request.headers(), &pairs).map(|()| pairs));
    let work = async {
        let is_terminology = pairs?.iter().any(|(name, value)| name == "mode" && value == "terminology");
        app.blocking(move |app| {
            let kb = app.engine.kb();
            Ok(if is_terminology { terminology_capabilities(kb, &now) } else { capabilities(kb, &now) })
        })
        .await
    };
    respond(work.await)
}

/// `GET` or `POST /fhir/{resource}/${operation}`.
pub async fn operation(
    State(app): State<Arc<App>>,
    Path((resource, name)): Path<(String, String)>,
    request: Request<Body>,
) -> Response {
    respond(run(&app, resource, &name, request).await)
}

async fn run(app: &Arc<App>, resource: String, name: &str, request: Request<Body>) -> ApiResult<Value> {
    let pairs = query(request.uri())?;
    check_accepted(request.headers(), &pairs)?;
    let name = name.strip_prefix('$').unwrap_or_default().to_owned();
    let mut parameters = Parameters::from_query(pairs);
    match *request.method() {
        Method::GET => {}
        Method::POST => parameters.add_resource(&json(&bytes(request, MAX_BODY).await?)?)?,
        _ => {
            let error = ApiError::bad("method not allowed").hint("use GET or POST");
            return Err(ApiError { status: StatusCode::METHOD_NOT_ALLOWED, ..error });
        }
    }
    let now = rfc3339(app.now());
    app.blocking(move |app| operate(app.engine.kb(), &resource, &name, &parameters, &now)).await
}

/// Any other path below `/fhir`.
pub async fn unknown() -> Response {
    respond(Err(ApiError::not_found("this path is not supported").hint("see /fhir/metadata for supported operations")))
}

/// 406 unless the client accepts JSON. `_format` takes precedence over the header, as FHIR has it.
fn check_accepted(headers: &HeaderMap, pairs: &[(String, String)]) -> ApiResult<()> {
    let format = pairs.iter().find(|(name, _)| name == "_format").map(|(_, value)| value.as_str());
    let given = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    let accepted: Vec<&str> = match format {
        Some(format) => vec![format],
        None => given.flat_map(|value| value.split(',')).collect(),
    };
    if accepted.iter().all(|range| range.trim().is_empty()) || accepted.iter().any(|range| is_json(range)) {
        return Ok(());
    }
    let error = ApiError::bad("a format other than JSON is not supported").hint("accept `application/fhir+json`");
    Err(ApiError { status: StatusCode::NOT_ACCEPTABLE, code: "not_acceptable", ..error })
}

/// Whether a media range, such as `application/fhir+json;q=0.9`, has JSON.
fn is_json(range: &str) -> bool {
    let mut parts = range.split(';').map(|part| part.trim().to_ascii_lowercase());
    let kind = parts.next().unwrap_or_default();
    let is_refused = parts.any(|part| part.strip_prefix("q=").is_some_and(|q| q.parse() == Ok(0.0)));
    !is_refused && (kind.contains("json") || kind == "*/*" || kind == "application/*")
}

fn query(uri: &Uri) -> ApiResult<Vec<(String, String)>> {
    let query = Query::<Vec<(String, String)>>::try_from_uri(uri);
    Ok(query.map_err(|_| ApiError::bad("invalid query string"))?.0)
}

/// An error is an OperationOutcome.
pub fn respond(result: ApiResult<Value>) -> Response {
    let (status, resource) = match result {
        Ok(resource) => (StatusCode::OK, resource),
        Err(error) => (error.status, outcome(&error)),
    };
    (status, [(header::CONTENT_TYPE, "application/fhir+json")], resource.to_string()).into_response()
}
