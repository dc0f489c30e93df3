//! Streaming linking: one text per line in, one result per line out.

use std::convert::Infallible;
use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use canonym_core::corpus::AnnotatedDocument;
use serde::Deserialize;
use serde_json::json;
use tokio::sync::mpsc;
use tokio_stream::StreamExt;
use tokio_stream::wrappers::ReceiverStream;

use super::QueryParams;
use super::link::{LinkParams, check_text, document, engine, link_mode};
use crate::batcher::LinkMode;
use crate::engine::{Engine, Mentions, Nil};
use crate::error::{ApiError, ApiResult};
use crate::guard::{Key, current_user};
use crate::state::App;
use crate::store::members::{self, Named};
use crate::wire::{Filters, LinkedOut, Person, TextIn};

/// Bytes of text per batch.
const BATCH_BYTES: usize = 128 << 10;

/// Query parameters of a stream.
#[derive(Debug, Default, Deserialize)]
pub struct StreamOptions {
    top_k: Option<usize>,
    min_score: Option<f32>,
    #[serde(default)]
    nested: Option<bool>,
    #[serde(default)]
    explain: bool,
    #[serde(default)]
    nil: Nil,
    #[serde(default)]
    context: bool,
    #[serde(default)]
    drop_context: String,
    /// Whether every line has its `mentions`.
    #[serde(default)]
    given: bool,
    #[serde(default)]
    only_sources: String,
    #[serde(default)]
    only_types: String,
    #[serde(default)]
    only_under: String,
    #[serde(default)]
    not_sources: String,
    #[serde(default)]
    not_types: String,
    #[serde(default)]
    not_under: String,
    model: Option<String>,
    project: Option<i64>,
}

impl StreamOptions {
    fn params(self) -> LinkParams {
        let list = |text: String| -> Vec<String> {
            text.split(',').map(str::trim).filter(|word| !word.is_empty()).map(str::to_owned).collect()
        };
        let filters = Filters {
            only_sources: list(self.only_sources),
            only_types: list(self.only_types),
            only_under: list(self.only_under),
            not_sources: list(self.not_sources),
            not_types: list(self.not_types),
            not_under: list(self.not_under),
        };
        LinkParams {
            top_k: self.top_k,
            min_score: self.min_score,
            nested: self.nested,
            nil: self.nil,
            explain: self.explain,
            context: self.context,
            drop_context: list(self.drop_context),
            filters: Some(filters),
            mentions: if self.given { Mentions::Given } else { Mentions::Detected },
        }
    }
}

/// The engine and options of a stream.
struct StreamContext {
    engine: Arc<dyn Engine>,
    mode: LinkMode,
    /// The user, and the key of the session.
    person: i64,
    key: Key,
    project: Option<i64>,
}

impl StreamContext {
    /// Fails if the user has signed out since, or does not see the project any more.
    async fn check(&self, app: &Arc<App>) -> ApiResult<()> {
        let (person, key, project) = (self.person, self.key.clone(), self.project);
        app.blocking(move |app| {
            let now = current_user(app, &key)?.filter(|now| now.id == person).ok_or_else(ApiError::unauthorized)?;
            let named = project.map(Named::Project);
            app.store.read(|connection| named.map_or(Ok(()), |named| members::check(connection, &now, named)))
        })
        .await
    }
}

type LineSender = mpsc::Sender<Result<Bytes, Infallible>>;

/// `POST /link/stream`: a line that cannot be linked gets an error, and the stream continues.
pub async fn stream(
    State(app): State<Arc<App>>,
    person: Person,
    axum::Extension(key): axum::Extension<Key>,
    QueryParams(options): QueryParams<StreamOptions>,
    request: Request<Body>,
) -> ApiResult<Response> {
    let mut options = options;
    let (project, model) = (options.project, options.model.take());
    let mode = link_mode(options.params())?;
    let engine = engine(&app, person.clone(), project, model).await?;
    let context = StreamContext { engine, mode, person: person.id, key, project };
    let (sender, receiver) = mpsc::channel(8);
    tokio::spawn(async move { read(&app, request.into_body(), &context, &sender).await });
    let headers = [(header::CONTENT_TYPE, "application/x-ndjson")];
    Ok((headers, Body::from_stream(ReceiverStream::new(receiver))).into_response())
}

async fn read(app: &Arc<App>, body: Body, context: &StreamContext, out: &LineSender) {
    let mut chunks = body.into_data_stream();
    let mut buffer: Vec<u8> = Vec::new();
    let mut row = 0;
    let mut keys = app.permissions();
    loop {
        let chunk = tokio::select! {
            chunk = chunks.next() => chunk,
            _ = keys.changed() => match context.check(app).await {
                Ok(()) => continue,
                Err(error) => {
                    let _ = out.send(Ok(error_line(row, &error))).await;
                    return;
                }
            },
        };
        let Some(Ok(chunk)) = chunk else { break };
        buffer.extend_from_slice(&chunk);
        if buffer.len() > app.config.max_link_bytes {
            let _ = out.send(Ok(error_line(row, &ApiError::too_large(app.config.max_link_bytes)))).await;
            return;
        }
        let Some(end) = buffer.iter().rposition(|byte| *byte == b'\n') else { continue };
        let rest = buffer.split_off(end + 1);
        let lines = std::mem::replace(&mut buffer, rest);
        if link_lines(app, &lines, context, &mut row, out).await.is_err() {
            return;
        }
    }
    let _ = link_lines(app, &buffer, context, &mut row, out).await;
}

/// Links complete lines and sends the results; fails if the client has disconnected.
async fn link_lines(
    app: &Arc<App>,
    lines: &[u8],
    context: &StreamContext,
    row: &mut usize,
    out: &LineSender,
) -> Result<(), ()> {
    let mut batch = Vec::new();
    let mut n_bytes = 0;
    for line in lines.split(|byte| *byte == b'\n').filter(|line| !line.trim_ascii().is_empty()) {
        *row += 1;
        let text = serde_json::from_slice::<TextIn>(line).map_err(|error| {
            // Each line is parsed alone, so the library would call each line 1.
            let place = format!(" at line {} column {}", error.line(), error.column());
            let reason = super::shortened(&error);
            let reason = reason.strip_suffix(&place).unwrap_or(&reason);
            let message = match error.is_data() {
                true => format!("invalid request in line {row}: {reason}"),
                false => format!("invalid JSON in line {row}, column {}: {reason}", error.column()),
            };
            ApiError::bad(message).hint("each line is one JSON object with `id` and `text`")
        });
        match text.and_then(|text| checked(app, context, text, *row)) {
            Ok(document) => {
                n_bytes += document.document.text.len();
                batch.push(document);
            }
            Err(error) => {
                send(app, std::mem::take(&mut batch), context, out).await?;
                n_bytes = 0;
                out.send(Ok(error_line(*row, &error))).await.map_err(|_| ())?;
            }
        }
        if n_bytes >= BATCH_BYTES {
            send(app, std::mem::take(&mut batch), context, out).await?;
            n_bytes = 0;
        }
    }
    send(app, batch, context, out).await
}

/// The document of a line.
fn checked(app: &App, context: &StreamContext, text: TextIn, row: usize) -> ApiResult<AnnotatedDocument> {
    check_text(app, &text.text)?;
    let is_given = context.mode.options.mentions == Mentions::Given;
    if is_given != text.mentions.is_some() {
        let is_missing = if is_given { "has no `mentions`" } else { "has `mentions`" };
        return Err(ApiError::bad(format!("line {row} {is_missing}"))
            .hint("with `given=true` all lines have mentions, without it none"));
    }
    document(text, row - 1)
}

async fn send(
    app: &Arc<App>,
    batch: Vec<AnnotatedDocument>,
    context: &StreamContext,
    out: &LineSender,
) -> Result<(), ()> {
    if batch.is_empty() {
        return Ok(());
    }
    let n_bytes = batch.iter().map(|one| one.document.text.len()).sum();
    let mut lines = Vec::new();
    if let Err(error) = context.check(app).await {
        let _ = out.send(Ok(error_line(0, &error))).await;
        return Err(());
    }
    match link_when_free(app, batch, context).await {
        Ok(linked) => {
            app.metrics.linked(linked.len(), n_bytes);
            for (document, reasons) in linked {
                let line = serde_json::to_vec(&LinkedOut::new(document, reasons)).map_err(|_| ())?;
                lines.extend_from_slice(&line);
                lines.push(b'\n');
            }
        }
        Err(error) => lines.extend_from_slice(&error_line(0, &error)),
    }
    out.send(Ok(Bytes::from(lines))).await.map_err(|_| ())
}

/// Retries while the queue is full: a streaming client is already waiting.
async fn link_when_free(
    app: &Arc<App>,
    batch: Vec<AnnotatedDocument>,
    context: &StreamContext,
) -> ApiResult<crate::batcher::Linked> {
    for _ in 0..600 {
        match app.batcher.link(context.engine.clone(), batch.clone(), context.mode.clone()).await {
            Err(error) if error.retry_after.is_some() => {
                tokio::time::sleep(std::time::Duration::from_millis(100)).await
            }
            result => return result,
        }
    }
    app.batcher.link(context.engine.clone(), batch, context.mode.clone()).await
}

fn error_line(row: usize, error: &ApiError) -> Bytes {
    let line = json!({"line": row, "error": {"code": error.code, "message": error.message, "hint": error.hint}});
    Bytes::from(format!("{line}\n"))
}
