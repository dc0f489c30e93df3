//! `/fhir`: the terminology service.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Path, Query, Request, State};
use axum::http::{Method, StatusCode, Uri, header};
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
    let pairs = query(request.uri());
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
    let name = name.strip_prefix('$').unwrap_or_default().to_owned();
    let mut parameters = Parameters::from_query(query(request.uri())?);
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
    respond(Err(ApiError::not_found("this path is not supported").hint("see /fhir/metadata for what is")))
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
