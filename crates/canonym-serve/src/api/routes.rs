//! Every address of the interface, with what it takes and gives. The router and its description are made from this one list.

use std::sync::Arc;

use axum::Router;
use axum::handler::Handler;
use axum::middleware::from_fn_with_state;
use axum::routing::{MethodFilter, MethodRouter, get, on};
use serde_json::Value;
use utoipa::ToSchema;

use super::{
    changes, choices, decisions, disagreements, documents, export, health, import, jobs, kb, link, lint, members,
    mentions, models, pace, people, projects, stats, stream,
};
use crate::app::App;
use crate::engine::TrainingPlan;
use crate::openapi::{Schemas, schema};
use crate::store::people::Person;
use crate::wire;
use crate::{assets, guard};

type Shape = fn(&mut Schemas) -> Value;

/// An address.
pub struct Route {
    /// The method.
    pub method: &'static str,
    /// The path below `/api/v1`.
    pub path: &'static str,
    /// What it is for.
    pub summary: &'static str,
    /// Names and types of what may stand behind `?`.
    pub query: &'static [(&'static str, &'static str)],
    /// The JSON that it takes.
    pub body: Option<Shape>,
    /// The media type of a body that is no JSON.
    pub bytes: Option<&'static str>,
    /// The JSON that it gives.
    pub answer: Option<Shape>,
    /// The status of success.
    pub status: u16,
    handler: MethodRouter<Arc<App>>,
}

impl Route {
    fn new<H: Handler<T, Arc<App>>, T: 'static>(
        method: &'static str,
        path: &'static str,
        summary: &'static str,
        handler: H,
    ) -> Route {
        let filter = match method {
            "POST" => MethodFilter::POST,
            "PATCH" => MethodFilter::PATCH,
            "DELETE" => MethodFilter::DELETE,
            _ => MethodFilter::GET,
        };
        Route {
            method,
            path,
            summary,
            query: &[],
            body: None,
            bytes: None,
            answer: None,
            status: 200,
            handler: on(filter, handler),
        }
    }

    fn query(self, query: &'static [(&'static str, &'static str)]) -> Route {
        Route { query, ..self }
    }

    fn takes<T: ToSchema>(self) -> Route {
        Route { body: Some(schema::<T>), ..self }
    }

    fn takes_bytes(self, kind: &'static str) -> Route {
        Route { bytes: Some(kind), ..self }
    }

    fn gives<T: ToSchema>(self) -> Route {
        Route { answer: Some(schema::<T>), ..self }
    }

    fn status(self, status: u16) -> Route {
        Route { status, ..self }
    }
}

/// Every address.
pub fn routes() -> Vec<Route> {
    let (get, post, patch, delete) = ("GET", "POST", "PATCH", "DELETE");
    vec![
        Route::new(get, "/health", "Whether the process answers", health::health).gives::<health::Status>(),
        Route::new(get, "/ready", "Whether it takes requests", health::ready).gives::<health::Status>(),
        Route::new(get, "/metrics", "Counts, as text of Prometheus", health::metrics),
        Route::new(get, "/openapi.json", "This description", health::openapi),
        Route::new(get, "/about", "What the server is", health::about).gives::<wire::About>(),
        Route::new(post, "/link", "Find and link the mentions of texts", link::link)
            .takes::<wire::LinkRequest>()
            .gives::<wire::Linked>(),
        Route::new(post, "/link/stream", "The same, a text a line", stream::stream)
            .query(&[
                ("top_k", "integer"),
                ("min_score", "number"),
                ("nested", "boolean"),
                ("explain", "boolean"),
                ("nil", "string"),
                ("project", "integer"),
            ])
            .takes_bytes("application/x-ndjson"),
        Route::new(post, "/map", "Link names without context", link::map)
            .takes::<wire::MapRequest>()
            .gives::<wire::MappedList>(),
        Route::new(get, "/kb/search", "Find concepts by name or id", kb::find)
            .query(&[("q", "string"), ("top_k", "integer")])
            .gives::<wire::Hits>(),
        Route::new(get, "/kb/concepts/{id}", "One concept", kb::show).gives::<wire::ConceptPage>(),
        Route::new(get, "/kb/concepts/{id}/near", "Concepts that the model finds for its name", kb::near)
            .query(&[("top_k", "integer")])
            .gives::<wire::Near>(),
        Route::new(get, "/kb/lint", "What may be wrong with the terminology", lint::findings).gives::<wire::LintOut>(),
        Route::new(post, "/login", "Log in", people::login).takes::<wire::Login>().gives::<wire::LoggedIn>(),
        Route::new(post, "/logout", "Log out", people::logout),
        Route::new(get, "/people", "Everybody", people::all).gives::<wire::People>(),
        Route::new(post, "/people", "Add somebody", people::add)
            .takes::<wire::NewPerson>()
            .gives::<Person>()
            .status(201),
        Route::new(patch, "/people/{id}", "Change somebody's role or password, or deactivate them", people::change)
            .takes::<wire::PersonPatch>()
            .gives::<Person>(),
        Route::new(post, "/password", "Change one's own password", people::password).takes::<wire::NewPassword>(),
        Route::new(get, "/tokens", "One's own tokens", people::tokens).gives::<wire::Tokens>(),
        Route::new("DELETE", "/tokens/{t}", "Revoke one of them", people::revoke),
        Route::new(post, "/tokens", "Make a token for programs", people::token)
            .takes::<wire::NewToken>()
            .gives::<wire::Token>()
            .status(201),
        Route::new(get, "/projects", "Every project that one is a member of", projects::all).gives::<wire::Projects>(),
        Route::new(post, "/projects", "Make a project", projects::add)
            .takes::<wire::NewProject>()
            .gives::<wire::Project>()
            .status(201),
        Route::new(get, "/projects/{p}", "One project", projects::get).gives::<wire::Project>(),
        Route::new(patch, "/projects/{p}", "Change a project", projects::patch)
            .takes::<wire::ProjectPatch>()
            .gives::<wire::Project>(),
        Route::new(delete, "/projects/{p}", "Delete a project with all it has", projects::delete),
        Route::new(get, "/projects/{p}/people", "The members of a project", members::all).gives::<wire::People>(),
        Route::new(post, "/projects/{p}/people", "Make somebody a member", members::add)
            .takes::<wire::NewMember>()
            .gives::<wire::People>(),
        Route::new(delete, "/projects/{p}/people/{id}", "Take somebody out of a project", members::remove)
            .gives::<wire::People>(),
        Route::new(post, "/projects/{p}/import", "Add the documents of a file", import::import)
            .query(&[
                ("format", "string"),
                ("filename", "string"),
                ("annotations", "string"),
                ("offsets", "string"),
                ("existing", "string"),
            ])
            .takes_bytes("application/octet-stream")
            .gives::<wire::ImportReport>(),
        Route::new(get, "/projects/{p}/export", "All documents in one file", export::export)
            .query(&[("format", "string"), ("sources", "string")]),
        Route::new(get, "/projects/{p}/export/losses", "What a format would lose", export::lost)
            .query(&[("format", "string"), ("sources", "string")])
            .gives::<wire::ExportLosses>(),
        Route::new(get, "/projects/{p}/documents", "Documents in order", documents::list)
            .query(&[("cursor", "string"), ("limit", "integer"), ("state", "string")])
            .gives::<wire::DocumentPage>(),
        Route::new(get, "/projects/{p}/queue", "Which documents to look at next", documents::queue)
            .query(&[("strategy", "string"), ("limit", "integer"), ("seed", "integer")])
            .gives::<wire::Queue>(),
        Route::new(get, "/documents/{d}", "A document with its marks", documents::get)
            .query(&[("all", "string")])
            .gives::<wire::DocumentOut>(),
        Route::new(patch, "/documents/{d}", "Rename a document", documents::rename)
            .takes::<wire::DocumentPatch>()
            .gives::<wire::DocumentRow>(),
        Route::new(delete, "/documents/{d}", "Delete a document with its history", documents::delete),
        Route::new(get, "/documents/{d}/history", "What happened to a document", documents::history)
            .gives::<wire::History>(),
        Route::new(post, "/documents/{d}/comments", "Write a remark", documents::comment)
            .takes::<wire::NewComment>()
            .gives::<wire::Comment>()
            .status(201),
        Route::new(post, "/documents/{d}/decisions", "Decide on marks", decisions::decide)
            .takes::<wire::Decisions>()
            .gives::<wire::Decided>(),
        Route::new(post, "/documents/{d}/undo", "Take the last decision back", decisions::undo)
            .takes::<wire::UndoRequest>()
            .gives::<wire::Decided>(),
        Route::new(post, "/documents/{d}/redo", "Bring it back", decisions::redo)
            .takes::<wire::UndoRequest>()
            .gives::<wire::Decided>(),
        Route::new(get, "/documents/{d}/candidates", "Concepts that a mark may get", choices::choices)
            .query(&[("mark", "integer"), ("start", "integer"), ("end", "integer"), ("q", "string")])
            .gives::<wire::Choices>(),
        Route::new(post, "/projects/{p}/alike", "Mentions of the same words", decisions::alike)
            .takes::<wire::AlikeRequest>()
            .gives::<wire::Alike>(),
        Route::new(
            get,
            "/projects/{p}/disagreements",
            "Places of which people said different things",
            disagreements::list,
        )
        .query(&[("cursor", "string"), ("limit", "integer")])
        .gives::<wire::Disagreements>(),
        Route::new(get, "/projects/{p}/mentions", "Where a concept is mentioned", mentions::list)
            .query(&[("concept", "string"), ("cursor", "string"), ("limit", "integer")])
            .gives::<wire::MentionPage>(),
        Route::new(get, "/projects/{p}/pace", "How long people work on documents", pace::show).gives::<wire::Pace>(),
        Route::new(get, "/projects/{p}/training", "What a training would learn from", jobs::plan)
            .query(&[("steps", "integer"), ("hold_out", "integer")])
            .gives::<TrainingPlan>(),
        Route::new(get, "/projects/{p}/stats", "What was done", stats::stats).gives::<wire::Stats>(),
        Route::new(post, "/projects/{p}/jobs", "Start a prediction or a training", jobs::add)
            .takes::<wire::NewJob>()
            .gives::<wire::Job>()
            .status(202),
        Route::new(get, "/projects/{p}/jobs", "Jobs of a project", jobs::of_project).gives::<wire::Jobs>(),
        Route::new(get, "/jobs/{j}", "One job", jobs::get).gives::<wire::Job>(),
        Route::new(post, "/jobs/{j}/cancel", "End a job", jobs::cancel).gives::<wire::Job>(),
        Route::new(get, "/events", "What happens, as server-sent events", jobs::stream)
            .query(&[("project", "integer")]),
        Route::new(get, "/models", "Models", models::all).query(&[("project", "integer")]).gives::<wire::Models>(),
        Route::new(post, "/projects/{p}/models/{m}/use", "Use another model", models::choose).gives::<wire::Model>(),
        Route::new(patch, "/projects/{p}/models/{m}", "Rename a trained model", models::rename)
            .takes::<wire::ModelPatch>()
            .gives::<wire::Model>(),
        Route::new(delete, "/projects/{p}/models/{m}", "Delete a trained model that is not in use", models::delete),
        Route::new(get, "/projects/{p}/models/{m}/file", "A trained model as one file", models::download),
        Route::new(get, "/projects/{p}/changes", "What a prediction changed", jobs::changes)
            .query(&[("from", "string")])
            .gives::<wire::ChangedDocuments>(),
        Route::new(get, "/documents/{d}/changes", "The same in one document, mark by mark", changes::of_document)
            .query(&[("from", "integer")])
            .gives::<wire::DocumentChanges>(),
    ]
}

/// Answers every address of the interface, and the files of the application at all others.
pub fn router(app: &Arc<App>) -> Router {
    let mut below = Router::new();
    for route in routes() {
        below = below.route(route.path, route.handler);
    }
    let below = below.route_layer(from_fn_with_state(app.clone(), members::check));
    Router::new()
        .nest("/api/v1", below.method_not_allowed_fallback(no_method))
        .route("/health", get(health::health))
        .route("/ready", get(health::ready))
        .route("/metrics", get(health::metrics))
        .fallback(assets::serve)
        .layer(from_fn_with_state(app.clone(), guard::check))
        // Bodies are read with limits of their own.
        .layer(axum::extract::DefaultBodyLimit::disable())
        .with_state(app.clone())
}

async fn no_method() -> crate::error::ApiError {
    let error = crate::error::ApiError::bad("the address knows no such method");
    crate::error::ApiError { status: axum::http::StatusCode::METHOD_NOT_ALLOWED, ..error }
        .hint("/api/v1/openapi.json lists the methods of each")
}
