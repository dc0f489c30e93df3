//! Every route with its request and response types. The router and the OpenAPI document are made from this one list.

use std::sync::Arc;

use axum::Router;
use axum::handler::Handler;
use axum::middleware::from_fn_with_state;
use axum::routing::{MethodFilter, MethodRouter, any, get, on, post};
use serde_json::Value;
use utoipa::ToSchema;

use super::openapi::{Schemas, schema};
use super::{
    assignments, changes, choices, comments, conflict_groups, copies, decisions, disagreements, documents, events,
    export, fhir, gilda, groups, health, import, inception, jobs, kb, link, lint, members, mentions, models, people,
    projects, proposals, sample, speed, stats, stream,
};
use crate::engine::TrainingPlan;
use crate::mcp::McpServer;
use crate::state::App;
use crate::wire;
use crate::wire::Person;
use crate::{assets, guard};

type SchemaOf = fn(&mut Schemas) -> Value;

/// A route.
pub struct Route {
    /// The method.
    pub method: &'static str,
    /// The path below `/api/v1`.
    pub path: &'static str,
    /// One line for the OpenAPI document.
    pub summary: &'static str,
    /// Names and types of the query parameters.
    pub query: &'static [(&'static str, &'static str)],
    /// The schema of the request body.
    pub body: Option<SchemaOf>,
    /// The media type of a request body that is not JSON.
    pub bytes: Option<&'static str>,
    /// The schema of the response.
    pub response: Option<SchemaOf>,
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
            response: None,
            status: 200,
            handler: on(filter, handler),
        }
    }

    fn query(self, query: &'static [(&'static str, &'static str)]) -> Route {
        Route { query, ..self }
    }

    fn request<T: ToSchema>(self) -> Route {
        Route { body: Some(schema::<T>), ..self }
    }

    fn request_bytes(self, kind: &'static str) -> Route {
        Route { bytes: Some(kind), ..self }
    }

    fn response<T: ToSchema>(self) -> Route {
        Route { response: Some(schema::<T>), ..self }
    }

    fn status(self, status: u16) -> Route {
        Route { status, ..self }
    }
}

/// Every route.
pub fn routes() -> Vec<Route> {
    let (get, post, patch, delete) = ("GET", "POST", "PATCH", "DELETE");
    vec![
        Route::new(get, "/health", "Liveness", health::health).response::<health::Status>(),
        Route::new(get, "/ready", "Readiness: requests are accepted and decisions can be stored", health::ready)
            .response::<health::Status>(),
        Route::new(get, "/metrics", "Metrics in the Prometheus text format", health::metrics),
        Route::new(get, "/openapi.json", "This OpenAPI document", health::openapi),
        Route::new(get, "/about", "Version, terminology, model and current user", health::about)
            .response::<wire::About>(),
        Route::new(post, "/link", "Find and link mentions in texts", link::link)
            .request::<wire::LinkRequest>()
            .response::<wire::Linked>(),
        Route::new(post, "/link/stream", "Find and link mentions, one JSON object per line", stream::stream)
            .query(&[
                ("top_k", "integer"),
                ("min_score", "number"),
                ("nested", "boolean"),
                ("explain", "boolean"),
                ("nil", "string"),
                ("context", "boolean"),
                ("drop_context", "string"),
                ("given", "boolean"),
                ("only_sources", "string"),
                ("only_types", "string"),
                ("only_under", "string"),
                ("not_sources", "string"),
                ("not_types", "string"),
                ("not_under", "string"),
                ("model", "string"),
                ("project", "integer"),
            ])
            .request_bytes("application/x-ndjson"),
        Route::new(post, "/map", "Link names without context", link::map)
            .request::<wire::MapRequest>()
            .response::<wire::MappedList>(),
        Route::new(post, "/ground", "Concepts of a name, as Gilda answers", gilda::ground)
            .request::<wire::GroundRequest>()
            .response::<wire::ScoredMatches>(),
        Route::new(post, "/ground_multi", "Concepts of several names, as Gilda answers", gilda::ground_multi)
            .request::<wire::GroundRequests>()
            .response::<wire::ScoredMatchLists>(),
        Route::new(post, "/annotate", "Linked mentions of a text, as Gilda answers", gilda::annotate)
            .request::<wire::AnnotateRequest>()
            .response::<wire::GildaAnnotations>(),
        Route::new(get, "/kb/search", "Search concepts by name or ID", kb::find)
            .query(&[("q", "string"), ("top_k", "integer"), ("type", "string"), ("under", "string")])
            .response::<wire::Hits>(),
        Route::new(get, "/kb/concepts/{id}", "Get a concept", kb::show).response::<wire::ConceptPage>(),
        Route::new(get, "/kb/concepts/{id}/near", "Similar concepts, by the model", kb::near)
            .query(&[("top_k", "integer")])
            .response::<wire::Near>(),
        Route::new(get, "/kb/tree", "A level of the hierarchy of the terminology", kb::tree)
            .query(&[("under", "string")])
            .response::<wire::TreeLevel>(),
        Route::new(get, "/kb/types", "The semantic types of the terminology", kb::types)
            .response::<wire::SemanticTypes>(),
        Route::new(get, "/kb/lint", "Quality checks of the terminology", lint::findings).response::<wire::LintOut>(),
        Route::new(post, "/login", "Sign in", people::login).request::<wire::Login>().response::<wire::LoggedIn>(),
        Route::new(post, "/logout", "Sign out", people::logout),
        Route::new(get, "/people", "List accounts", people::all).response::<wire::People>(),
        Route::new(post, "/people", "Add an account", people::add)
            .request::<wire::NewPerson>()
            .response::<Person>()
            .status(201),
        Route::new(
            patch,
            "/people/{id}",
            "Change the role or password of an account, or deactivate it",
            people::change,
        )
        .request::<wire::PersonPatch>()
        .response::<Person>(),
        Route::new(post, "/password", "Change your own password", people::password).request::<wire::NewPassword>(),
        Route::new(get, "/tokens", "List your own tokens", people::tokens).response::<wire::Tokens>(),
        Route::new("DELETE", "/tokens/{t}", "Revoke a token", people::revoke),
        Route::new(post, "/tokens", "Create a token for programs", people::token)
            .request::<wire::NewToken>()
            .response::<wire::Token>()
            .status(201),
        Route::new(get, "/projects", "List the projects that you are a member of", projects::all)
            .response::<wire::Projects>(),
        Route::new(post, "/projects", "Create a project", projects::add)
            .request::<wire::NewProject>()
            .response::<wire::Project>()
            .status(201),
        Route::new(post, "/projects/sample", "Create a sample project: ten documents with predictions", sample::add)
            .response::<wire::Project>()
            .status(201),
        Route::new(get, "/projects/{p}", "Get a project", projects::get).response::<wire::Project>(),
        Route::new(patch, "/projects/{p}", "Change a project", projects::patch)
            .request::<wire::ProjectPatch>()
            .response::<wire::Project>(),
        Route::new(delete, "/projects/{p}", "Delete a project and everything in it", projects::delete),
        Route::new(post, "/projects/{p}/copies", "Create a project as a copy of another one", copies::add)
            .request::<wire::ProjectCopy>()
            .response::<wire::Project>()
            .status(201),
        Route::new(get, "/projects/{p}/people", "List the members of a project", members::all)
            .response::<wire::People>(),
        Route::new(post, "/projects/{p}/people", "Add a member", members::add)
            .request::<wire::NewMember>()
            .response::<wire::People>(),
        Route::new(delete, "/projects/{p}/people/{id}", "Remove a member", members::remove).response::<wire::People>(),
        Route::new(get, "/projects/{p}/assignments", "Blind annotation: annotators and documents", assignments::list)
            .query(&[("cursor", "string"), ("limit", "integer")])
            .response::<wire::Assignments>(),
        Route::new(post, "/projects/{p}/assignments", "Assign documents to annotators, as copies", assignments::add)
            .request::<wire::NewAssignments>()
            .response::<wire::Assignments>(),
        Route::new(
            delete,
            "/projects/{p}/assignments/{id}",
            "Withdraw the unfinished documents of an annotator",
            assignments::withdraw,
        )
        .response::<wire::Assignments>(),
        Route::new(get, "/projects/{p}/proposals", "Proposed concepts and synonyms", proposals::list)
            .response::<wire::Proposals>(),
        Route::new(post, "/projects/{p}/proposals", "Propose a concept or synonym", proposals::add)
            .request::<wire::NewProposal>()
            .response::<wire::Proposed>()
            .status(201),
        Route::new(delete, "/projects/{p}/proposals/{id}", "Withdraw a proposal", proposals::delete),
        Route::new(get, "/projects/{p}/proposals/file", "Download the proposals as SSSOM or TSV", proposals::file)
            .query(&[("format", "string")]),
        Route::new(post, "/projects/{p}/import", "Import the documents of a file", import::import)
            .query(&[
                ("format", "string"),
                ("filename", "string"),
                ("annotations", "string"),
                ("offsets", "string"),
                ("existing", "string"),
                ("text_column", "string"),
                ("id_column", "string"),
            ])
            .request_bytes("application/octet-stream")
            .response::<wire::ImportReport>(),
        Route::new(get, "/projects/{p}/export", "Export all documents as one file", export::export)
            .query(&[("format", "string"), ("sources", "string")]),
        Route::new(get, "/projects/{p}/export/losses", "What an export to a format would lose", export::losses_of)
            .query(&[("format", "string"), ("sources", "string")])
            .response::<wire::ExportLosses>(),
        Route::new(get, "/projects/{p}/documents", "List documents: searched, filtered and sorted", documents::list)
            .query(&[
                ("cursor", "string"),
                ("limit", "integer"),
                ("state", "string"),
                ("q", "string"),
                ("sort", "string"),
                ("order", "string"),
                ("meta", "string"),
            ])
            .response::<wire::DocumentPage>(),
        Route::new(get, "/projects/{p}/queue", "The annotation queue: documents to review next", documents::queue)
            .query(&[("strategy", "string"), ("limit", "integer"), ("seed", "integer")])
            .response::<wire::Queue>(),
        Route::new(get, "/documents/{d}", "Get a document with its annotations", documents::get)
            .query(&[("all", "string")])
            .response::<wire::DocumentOut>(),
        Route::new(patch, "/documents/{d}", "Rename a document, or replace its metadata", documents::rename)
            .request::<wire::DocumentPatch>()
            .response::<wire::DocumentRow>(),
        Route::new(delete, "/documents/{d}", "Delete a document and its history", documents::delete),
        Route::new(get, "/documents/{d}/history", "The history of a document", documents::history)
            .response::<wire::History>(),
        Route::new(post, "/documents/{d}/comments", "Start a thread of comments, or reply to one", comments::add)
            .request::<wire::NewComment>()
            .response::<wire::Comment>()
            .status(201),
        Route::new(patch, "/documents/{d}/comments/{id}", "Resolve or reopen a thread of comments", comments::patch)
            .request::<wire::CommentPatch>()
            .response::<wire::Comment>(),
        Route::new(post, "/documents/{d}/decisions", "Review, add or change annotations", decisions::decide)
            .request::<wire::Decisions>()
            .response::<wire::Decided>(),
        Route::new(post, "/documents/{d}/undo", "Undo your last decision", decisions::undo)
            .request::<wire::UndoRequest>()
            .response::<wire::Decided>(),
        Route::new(post, "/documents/{d}/redo", "Redo it", decisions::redo)
            .request::<wire::UndoRequest>()
            .response::<wire::Decided>(),
        Route::new(get, "/documents/{d}/candidates", "Candidate concepts for a mention", choices::choices)
            .query(&[
                ("mark", "integer"),
                ("start", "integer"),
                ("end", "integer"),
                ("q", "string"),
                ("type", "string"),
                ("under", "string"),
            ])
            .response::<wire::Choices>(),
        Route::new(
            post,
            "/projects/{p}/identical-mentions",
            "Identical mentions: list them, or apply a decision to all",
            decisions::identical,
        )
        .request::<wire::IdenticalRequest>()
        .response::<wire::IdenticalMentions>(),
        Route::new(
            get,
            "/projects/{p}/groups",
            "Unreviewed predictions by text and concept, largest group first",
            groups::list,
        )
        .query(&[("q", "string"), ("spread", "string"), ("cursor", "string"), ("limit", "integer")])
        .response::<wire::PredictionGroups>(),
        Route::new(
            get,
            "/projects/{p}/groups/mentions",
            "The predictions of a group with their contexts",
            groups::mentions,
        )
        .query(&[("text", "string"), ("concept", "string"), ("cursor", "string"), ("limit", "integer")])
        .response::<wire::GroupMentions>(),
        Route::new(
            post,
            "/projects/{p}/groups/decisions",
            "Accept, reject or relink predictions of a group",
            groups::decide,
        )
        .request::<wire::GroupDecision>()
        .response::<wire::GroupDecided>(),
        Route::new(post, "/projects/{p}/groups/undo", "Undo a decision on a group", groups::undo)
            .request::<wire::GroupUndo>()
            .response::<wire::GroupDecided>(),
        Route::new(get, "/projects/{p}/disagreements", "Conflicts between annotators", disagreements::list)
            .query(&[("cursor", "string"), ("limit", "integer"), ("group", "string")])
            .response::<wire::Disagreements>(),
        Route::new(
            get,
            "/projects/{p}/disagreements/groups",
            "Conflicts with the same text and answers",
            conflict_groups::list,
        )
        .response::<wire::ConflictGroups>(),
        Route::new(
            post,
            "/projects/{p}/disagreements/decisions",
            "Resolve the conflicts of a group",
            conflict_groups::decide,
        )
        .request::<wire::ConflictDecision>()
        .response::<wire::GroupDecided>(),
        Route::new(get, "/projects/{p}/mentions", "Mentions of a concept", mentions::list)
            .query(&[("concept", "string"), ("cursor", "string"), ("limit", "integer")])
            .response::<wire::MentionPage>(),
        Route::new(get, "/projects/{p}/annotation-speed", "Annotation speed", speed::show)
            .response::<wire::AnnotationSpeed>(),
        Route::new(get, "/projects/{p}/training", "Preview a training: documents, mentions and steps", jobs::plan)
            .query(&[("steps", "integer"), ("hold_out", "integer")])
            .response::<TrainingPlan>(),
        Route::new(get, "/projects/{p}/stats", "Project statistics", stats::stats).response::<wire::Stats>(),
        Route::new(post, "/projects/{p}/jobs", "Start a prediction or training job", jobs::add)
            .request::<wire::NewJob>()
            .response::<wire::Job>()
            .status(202),
        Route::new(get, "/projects/{p}/jobs", "List the jobs of a project", jobs::of_project).response::<wire::Jobs>(),
        Route::new(get, "/jobs/{j}", "Get a job", jobs::get).response::<wire::Job>(),
        Route::new(post, "/jobs/{j}/cancel", "Cancel a job", jobs::cancel).response::<wire::Job>(),
        Route::new(get, "/events", "Server-sent events", events::stream).query(&[("project", "integer")]),
        Route::new(get, "/models", "List models", models::all)
            .query(&[("project", "integer")])
            .response::<wire::Models>(),
        Route::new(post, "/projects/{p}/models/{m}/use", "Switch a project to a model", models::choose)
            .response::<wire::Model>(),
        Route::new(patch, "/projects/{p}/models/{m}", "Rename a trained model", models::rename)
            .request::<wire::ModelPatch>()
            .response::<wire::Model>(),
        Route::new(delete, "/projects/{p}/models/{m}", "Delete a trained model that is not in use", models::delete),
        Route::new(get, "/projects/{p}/models/{m}/file", "Download a trained model as one file", models::download),
        Route::new(get, "/projects/{p}/changes", "Documents that a prediction changed", jobs::changes)
            .query(&[("from", "string")])
            .response::<wire::ChangedDocuments>(),
        Route::new(get, "/documents/{d}/changes", "What a prediction changed in one document", changes::of_document)
            .query(&[("from", "integer")])
            .response::<wire::DocumentChanges>(),
    ]
}

/// Serves the API, and the web application at all other paths.
pub fn router(app: &Arc<App>) -> Router {
    let mut api = Router::new();
    for route in routes() {
        api = api.route(route.path, route.handler);
    }
    let api = api.route_layer(from_fn_with_state(app.clone(), members::check));
    let fhir = Router::new()
        .route("/metadata", get(fhir::metadata))
        .route("/{resource}/{operation}", any(fhir::operation))
        .fallback(fhir::unknown);
    Router::new()
        .nest("/api/v1", api.method_not_allowed_fallback(method_not_allowed))
        .route("/health", get(health::health))
        .route("/ready", get(health::ready))
        .route("/metrics", get(health::metrics))
        // Gilda's own paths; a page of the application of this name is still served.
        .route("/ground", post(gilda::ground).fallback(assets::serve))
        .route("/ground_multi", post(gilda::ground_multi).fallback(assets::serve))
        .route("/annotate", post(gilda::annotate).fallback(assets::serve))
        .nest("/fhir", fhir)
        .route("/inception/{value}/predict", post(inception::predict))
        .route("/inception/{value}/train", post(inception::train))
        .route_service("/mcp", McpServer::new(app.engine.clone()).http(app.config.max_link_bytes))
        .fallback(assets::serve)
        .layer(from_fn_with_state(app.clone(), guard::check))
        // Handlers limit the bodies that they read.
        .layer(axum::extract::DefaultBodyLimit::disable())
        .with_state(app.clone())
}

async fn method_not_allowed() -> crate::error::ApiError {
    let error = crate::error::ApiError::bad("method not allowed");
    crate::error::ApiError { status: axum::http::StatusCode::METHOD_NOT_ALLOWED, ..error }
        .hint("see /api/v1/openapi.json for the methods of each route")
}
