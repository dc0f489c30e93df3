//! Health, metrics and a description of the server.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use serde::Serialize;

use crate::error::{ApiError, ApiResult};
use crate::state::App;
use crate::wire::{About, AboutKb, AboutModel, Person};

/// The status.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub struct Status {
    status: &'static str,
}

/// `GET /health`: liveness.
pub async fn health() -> Json<Status> {
    Json(Status { status: "ok" })
}

/// `GET /ready`: readiness; requests are accepted and decisions can be stored.
pub async fn ready(State(app): State<Arc<App>>) -> ApiResult<Json<Status>> {
    if *app.stopping().borrow() {
        return Err(ApiError::unavailable("the server is stopping"));
    }
    app.blocking(|app| app.check_kb().and_then(|()| app.probe())).await?;
    Ok(Json(Status { status: "ready" }))
}

/// `GET /metrics`: metrics in the Prometheus text format.
pub async fn metrics(State(app): State<Arc<App>>) -> Response {
    let text = app.metrics.text(app.batcher.n_waiting());
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], text).into_response()
}

/// `GET /about`: version, terminology, model and current user.
pub async fn about(State(app): State<Arc<App>>, person: Option<axum::Extension<Person>>) -> Json<About> {
    let kb = app.engine.kb();
    let person = person.map(|person| person.0);
    Json(About {
        version: env!("CARGO_PKG_VERSION"),
        kb: AboutKb {
            name: kb.meta().name.clone(),
            n_concepts: kb.n_concepts(),
            n_names: kb.n_names(),
            fingerprint: app.kb_fingerprint(),
        },
        model: AboutModel { name: app.engine.name().to_owned() },
        needs_login: app.has_accounts() && person.is_none(),
        user: person,
        can_train: app.trainer.is_some(),
    })
}

/// `GET /openapi.json`: the OpenAPI document.
pub async fn openapi() -> Json<serde_json::Value> {
    Json(super::openapi::document())
}
