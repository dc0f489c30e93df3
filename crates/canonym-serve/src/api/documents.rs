//! Documents: lists, the queue, single documents, history and comments.

use canonym_core::active::{Ranked, Strategy, Unreviewed, farthest_first, rank, spread};
use std::sync::Arc;

use axum::extract::State;
use canonym_core::numbers::rounded;
use rusqlite::Connection;
use serde::Deserialize;

use super::kb::check_query;
use super::show::{document, row};
use super::{Json, PAGE_LIMIT, PathParam, QueryParams};
use crate::error::{ApiError, ApiResult};
use crate::guard::Curator;
use crate::marks::{Event, MarkState, spread};
use crate::queue::{measure, reason};
use crate::state::App;
use crate::store::documents::{self, StoredDocument, Unfinished};
use crate::store::listing::{self, DocumentState, Listing, Sort};
use crate::store::{events, jobs, people, projects};
use crate::times::rfc3339;
use crate::wire::{
    DocumentOut, DocumentPage, DocumentPatch, DocumentRow, History, HistoryRow, MetadataEntry, Person, Queue, QueueRow,
};

/// The maximum number of entries of the metadata.
const MAX_METADATA: usize = 100;

/// The maximum length of a name in the metadata, in bytes.
const MAX_NAME: usize = 100;

/// The maximum length of a value in the metadata, in bytes.
const MAX_VALUE: usize = 2000;

/// The maximum number of unfinished and of finished documents that are compared for diversity.
const MAX_COMPARED: usize = 1000;

/// Query parameters of a paged list.
#[derive(Debug, Default, Deserialize)]
pub struct PageQuery {
    pub(super) cursor: Option<String>,
    pub(super) limit: Option<usize>,
}

/// Query parameters of the list of documents.
#[derive(Debug, Default, Deserialize)]
pub struct DocumentsQuery {
    cursor: Option<String>,
    limit: Option<usize>,
    state: Option<String>,
    #[serde(default)]
    q: String,
    sort: Option<String>,
    order: Option<String>,
    meta: Option<String>,
}

impl DocumentsQuery {
    fn listing(&self) -> ApiResult<Listing> {
        check_query(&self.q)?;
        let state = match self.state.as_deref() {
            None | Some("all" | "") => DocumentState::All,
            Some("open") => DocumentState::Open,
            Some("finished") => DocumentState::Finished,
            Some("commented") => DocumentState::Commented,
            Some("held_out") => DocumentState::HeldOut,
            Some(_) => {
                return Err(
                    ApiError::bad("unknown document state").hint("use open, finished, commented, held_out or all")
                );
            }
        };
        let sort = match self.sort.as_deref() {
            None | Some("import" | "") => Sort::Import,
            Some("id") => Sort::Id,
            Some("open") => Sort::Open,
            Some("mentions") => Sort::Mentions,
            Some("changed") => Sort::Changed,
            Some("length") => Sort::Length,
            Some(other) => match other.strip_prefix("meta:") {
                Some(name) => Sort::Metadata(name.to_owned()),
                None => {
                    let hint = "use import, id, open, mentions, changed, length, or meta:NAME";
                    return Err(ApiError::bad("unknown order of documents").hint(hint));
                }
            },
        };
        let is_descending = match self.order.as_deref() {
            None | Some("asc" | "") => false,
            Some("desc") => true,
            Some(_) => return Err(ApiError::bad("unknown `order`").hint("use asc or desc")),
        };
        let entry = |meta: &String| match meta.split_once(':') {
            Some((name, value)) => Ok((name.to_owned(), value.to_owned())),
            None => Err(ApiError::bad("invalid `meta`").hint("use NAME:VALUE")),
        };
        let metadata = self.meta.as_ref().filter(|meta| !meta.is_empty()).map(entry).transpose()?;
        Ok(Listing { search: self.q.trim().to_owned(), state, metadata, sort, is_descending })
    }
}

/// `GET /projects/{p}/documents`: documents, by default all in import order.
pub async fn list(
    State(app): State<Arc<App>>,
    person: Person,
    PathParam(project): PathParam<i64>,
    QueryParams(query): QueryParams<DocumentsQuery>,
) -> ApiResult<axum::Json<DocumentPage>> {
    let limit = PAGE_LIMIT.check(query.limit, "limit")?;
    let listing = query.listing()?;
    let from: usize = match query.cursor.as_deref() {
        None | Some("") => 0,
        Some(cursor) => cursor
            .parse()
            .map_err(|_| ApiError::bad("invalid cursor").hint("use `next_cursor` of the previous page"))?,
    };
    let page = app.blocking(move |app| {
        app.store.read(|connection| {
            projects::check(connection, project)?;
            let mut page = listing::list(connection, project, &listing, from, limit + 1)?;
            let has_more = page.len() > limit;
            page.truncate(limit);
            let next_cursor = has_more.then(|| (from.saturating_add(limit)).to_string());
            let now = app.now();
            let row = |stored: &StoredDocument| {
                let locked_by = app.presence.other(stored.id, &person, now);
                Ok(DocumentRow { locked_by, ..row(app.engine.kb(), connection, stored)? })
            };
            Ok(DocumentPage { documents: page.iter().map(row).collect::<ApiResult<_>>()?, next_cursor })
        })
    });
    Ok(axum::Json(page.await?))
}

/// Query parameters of the queue.
#[derive(Debug, Default, Deserialize)]
pub struct QueueQuery {
    strategy: Option<String>,
    limit: Option<usize>,
    seed: Option<u64>,
}

/// `GET /projects/{p}/queue`: the documents to review next.
pub async fn queue(
    State(app): State<Arc<App>>,
    person: Person,
    PathParam(project): PathParam<i64>,
    QueryParams(query): QueryParams<QueueQuery>,
) -> ApiResult<axum::Json<Queue>> {
    let limit = PAGE_LIMIT.check(query.limit, "limit")?;
    let queue = app.blocking(move |app| {
        app.store.read(|connection| {
            let name = projects::get(connection, project)?.strategy;
            let strategy = Strategy::parse(query.strategy.as_deref().unwrap_or(&name))?;
            let waiting = documents::unfinished(connection, project, measure(strategy))?;
            let seed = query.seed.unwrap_or(project as u64);
            let ranked = match strategy {
                Strategy::Diversity => diverse(connection, project, &waiting, limit)?,
                _ => {
                    let unreviewed: Vec<Unreviewed> = waiting.iter().map(|unfinished| unfinished.waiting).collect();
                    rank(strategy, &unreviewed, limit, seed)
                }
            };
            let now = app.now();
            let queue_row = |ranked: Ranked| {
                let Unfinished { id, waiting: Unreviewed { is_annotated, .. } } = waiting[ranked.row];
                let stored = documents::get(connection, id)?;
                let open = documents::open_marks(connection, id)?;
                let (confidence, why) = reason(strategy, &open.iter().collect::<Vec<&MarkState>>(), is_annotated);
                let locked_by = app.presence.other(id, &person, now);
                Ok(QueueRow {
                    document: DocumentRow { locked_by, ..row(app.engine.kb(), connection, &stored)? },
                    confidence: confidence.map(rounded),
                    reason: ranked.why.unwrap_or(why),
                })
            };
            let rows = ranked.into_iter().map(queue_row).collect::<ApiResult<Vec<QueueRow>>>()?;
            Ok(Queue { strategy: strategy.name().to_owned(), documents: rows })
        })
    });
    Ok(axum::Json(queue.await?))
}

/// The documents that differ most from the annotated ones. Large projects are sampled.
fn diverse(connection: &Connection, project: i64, waiting: &[Unfinished], limit: usize) -> ApiResult<Vec<Ranked>> {
    let text = |id: i64| documents::text(connection, id);
    let rows = spread(&(0..waiting.len()).collect::<Vec<usize>>(), MAX_COMPARED);
    let texts = rows.iter().map(|row| text(waiting[*row].id)).collect::<ApiResult<Vec<String>>>()?;
    let done = spread(&documents::finished(connection, project)?, MAX_COMPARED);
    let done = done.into_iter().map(text).collect::<ApiResult<Vec<String>>>()?;
    let ranked = farthest_first(&texts, &done, limit).into_iter();
    Ok(ranked.map(|ranked| Ranked { row: rows[ranked.row], ..ranked }).collect())
}

/// Query parameters of a document.
#[derive(Debug, Default, Deserialize)]
pub struct ShowQuery {
    #[serde(default)]
    all: Option<String>,
}

/// `GET /documents/{d}`: a document with its annotations.
pub async fn get(
    State(app): State<Arc<App>>,
    person: Person,
    PathParam(id): PathParam<i64>,
    QueryParams(query): QueryParams<ShowQuery>,
) -> ApiResult<axum::Json<DocumentOut>> {
    let all = matches!(query.all.as_deref(), Some("1" | "true"));
    let shown = app.blocking(move |app| {
        let shown = app.store.read(|connection| document(connection, documents::get(connection, id)?, all))?;
        app.presence.enter(id, &person, app.now());
        Ok(shown)
    });
    Ok(axum::Json(shown.await?))
}

/// `PATCH /documents/{d}`: renames a document or replaces its metadata.
pub async fn rename(
    State(app): State<Arc<App>>,
    _: Curator,
    PathParam(id): PathParam<i64>,
    Json(patch): Json<DocumentPatch>,
) -> ApiResult<axum::Json<DocumentRow>> {
    let row = app.blocking(move |app| {
        let name =
            patch.external_id.as_deref().map(|name| super::projects::checked_line(name, "document ID")).transpose()?;
        if let Some(metadata) = &patch.metadata {
            check_metadata(metadata)?;
        }
        app.store.write(|transaction| {
            let stored = documents::get(transaction, id)?;
            if let Some(name) = name
                && !documents::rename(transaction, &stored, name)?
            {
                return Err(ApiError::conflict(format!("document “{name}” already exists in this project"))
                    .hint("choose another ID"));
            }
            if let Some(metadata) = &patch.metadata {
                listing::set_metadata(transaction, id, metadata)?;
            }
            row(app.engine.kb(), transaction, &documents::get(transaction, id)?)
        })
    });
    Ok(axum::Json(row.await?))
}

fn check_metadata(metadata: &[MetadataEntry]) -> ApiResult<()> {
    let is_line =
        |text: &str, max: usize| !text.trim().is_empty() && text.len() <= max && !text.contains(char::is_control);
    let is_good =
        |one: &MetadataEntry| is_line(&one.name, MAX_NAME) && !one.name.contains(':') && is_line(&one.value, MAX_VALUE);
    if metadata.len() > MAX_METADATA || !metadata.iter().all(is_good) {
        let message = format!("metadata are up to {MAX_METADATA} names without a colon, each with a value on one line");
        return Err(ApiError::bad(message).hint(format!("a name may have {MAX_NAME} bytes and a value {MAX_VALUE}")));
    }
    Ok(())
}

/// `DELETE /documents/{d}`: deletes a document and its history.
pub async fn delete(
    State(app): State<Arc<App>>,
    _: Curator,
    PathParam(id): PathParam<i64>,
) -> ApiResult<axum::Json<()>> {
    app.blocking(move |app| {
        let now = app.now();
        let project = app.store.write(|transaction| {
            let project = documents::get(transaction, id)?.project;
            jobs::check_idle(transaction, project, now)?;
            documents::delete(transaction, "id", id)?;
            events::rebuild_project(transaction, project)?;
            Ok(project)
        })?;
        app.bus.publish(project, "deleted", &serde_json::json!({ "document": id }));
        Ok(())
    })
    .await?;
    Ok(axum::Json(()))
}

/// `GET /documents/{d}/history`: the history of a document.
pub async fn history(
    State(app): State<Arc<App>>,
    _: Person,
    PathParam(id): PathParam<i64>,
) -> ApiResult<axum::Json<History>> {
    let history = app.blocking(move |app| {
        app.store.read(|connection| {
            documents::get(connection, id)?;
            let names = people::names(connection)?;
            let row = |event: &Event| HistoryRow {
                id: event.id,
                kind: event.kind.clone(),
                by: event.person.and_then(|person| names.get(&person).cloned()).or_else(|| event.model.clone()),
                at: rfc3339(event.at),
                what: sentence(event),
            };
            Ok(History { events: events::of_document(connection, id)?.iter().map(row).collect() })
        })
    });
    Ok(axum::Json(history.await?))
}

/// What happened, in words.
fn sentence(event: &Event) -> String {
    let n = event.changes.marks.len();
    let several = |n: usize| if n == 1 { "1 annotation".to_owned() } else { format!("{n} annotations") };
    let change = event.changes.marks.first();
    let mark = change.and_then(|change| change.after.as_ref().or(change.before.as_ref()));
    let text = mark.map(|mark| format!("“{}”", mark.text)).unwrap_or_default();
    let concept = match mark {
        Some(MarkState { concept: Some(concept), .. }) => format!("{} ({})", concept.name, concept.id),
        Some(MarkState { is_nil: true, .. }) => "no matching concept".to_owned(),
        _ => "not linked".to_owned(),
    };
    let is_linked = mark.is_some_and(|mark| mark.concept.is_some());
    let as_concept = if is_linked { format!("as {concept}") } else { format!("({concept})") };
    match event.kind.as_str() {
        "import" => format!("imported with {}", several(n)),
        "spread" => {
            match event.changes.marks.iter().filter(|change| spread::is_spread(change.after.as_ref())).count() {
                0 => format!("took back {} that had been spread", several(n)),
                1 => format!("spread to {text} {as_concept}"),
                n => format!("spread to {}", several(n)),
            }
        }
        "predict" if n == 1 => "1 prediction changed".to_owned(),
        "predict" => format!("{n} predictions changed"),
        "add" => format!("added {text} {as_concept}"),
        "accept" => format!("accepted {text} {as_concept}"),
        "reject" => format!("rejected {text}"),
        "concept" => format!("linked {text} to {concept}"),
        "nil" => format!("set {text} to no matching concept"),
        "unsure" if mark.is_some_and(|mark| mark.is_unsure) => format!("marked {text} as unsure"),
        "unsure" => format!("unmarked {text} as unsure"),
        "spans" => format!("changed the boundaries to {text}"),
        "type" => format!("changed the type of {text} to {}", mark.map(|mark| mark.kind.as_str()).unwrap_or_default()),
        "context" => match mark.map(|mark| mark.contexts.as_slice()).unwrap_or_default() {
            [] => format!("set {text} to a plain statement"),
            contexts => {
                let contexts: Vec<&str> = contexts.iter().map(|one| one.attribute().1).collect();
                format!("marked {text} as {}", contexts.join(", "))
            }
        },
        "delete" => format!("deleted {text}"),
        "settle" => {
            let resolved =
                event.changes.marks.iter().filter_map(|change| change.after.as_ref()).find(|mark| mark.is_listed());
            match resolved {
                Some(MarkState { text, concept: Some(concept), .. }) => {
                    format!("resolved “{text}” as {} ({})", concept.name, concept.id)
                }
                Some(MarkState { text, .. }) => format!("resolved “{text}” as no matching concept"),
                None => format!("resolved {text} as not a mention"),
            }
        }
        "finish" if event.changes.finished.is_some_and(|(_, after)| after) => match n {
            0 => "finished the document".to_owned(),
            n => format!("finished the document and accepted {}", several(n)),
        },
        "finish" => "reopened the document".to_owned(),
        "undo" => format!("undid a decision on {}", several(n)),
        "redo" => format!("redid a decision on {}", several(n)),
        "comment" => "commented".to_owned(),
        other => other.to_owned(),
    }
}
