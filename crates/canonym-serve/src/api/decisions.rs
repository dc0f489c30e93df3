//! Decisions: made, undone, redone, and applied to identical mentions.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use axum::extract::State;
use rusqlite::{Connection, Transaction};

use super::show::{document, marks};
use super::{At, Json, Maybe};
use crate::abort;
use crate::error::{ApiError, ApiResult};
use crate::events::DocumentVersion;
use crate::marks::alike::{self, Occurrence};
use crate::marks::decide::{Decision, DocumentState};
use crate::marks::{Change, Changes, MarkState};
use crate::spans::to_pairs;
use crate::state::App;
use crate::store::documents::{self, HeldMark, Kept};
use crate::store::events::{self, NewEvent, stacks};
use crate::store::{pace, people};
use crate::wire::{Alike, AlikeRequest, AlikeRow, Decided, Decisions, Person, Role, Scope, UndoRequest};

/// The maximum number of decisions per request.
const MAX_DECISIONS: usize = 1000;

/// The maximum length of a client ID, in bytes.
const MAX_CLIENT_ID: usize = 100;

/// The maximum number of identical mentions listed or changed at once.
const MAX_ALIKE: usize = 5000;

type Answer = ApiResult<axum::Json<serde_json::Value>>;

/// `POST /documents/{d}/decisions`.
pub async fn decide(
    State(app): State<Arc<App>>,
    person: Person,
    At(id): At<i64>,
    Json(request): Json<Decisions>,
) -> Answer {
    if request.decisions.len() > MAX_DECISIONS {
        return Err(ApiError::bad(format!("more than {MAX_DECISIONS} decisions in one request")));
    }
    if request.decisions.iter().any(|decision| matches!(decision, Decision::Settle { .. }))
        && person.role < Role::Curator
    {
        return Err(ApiError::forbidden("only curators and admins can resolve disagreements")
            .hint("change your own annotation in the document"));
    }
    let client_id = request.client_id.clone();
    let answer = app.blocking(move |app| {
        once(app, (id, &person), client_id.as_deref(), |transaction, kept| {
            let held = documents::marks(transaction, id)?;
            check_fresh(transaction, (&kept, &held), (request.version, &request.decisions), &person)?;
            let mut state = document_state(app, transaction, &kept, &held, &person)?;
            let made = request.decisions.iter().map(|decision| {
                let model = decision.marks().first().and_then(|mark| state.marks.get(mark)?.model.clone());
                Ok((decision, model, state.decide(decision)?))
            });
            let made = made.collect::<ApiResult<Vec<_>>>()?;
            let next = state.next_mark;
            let mut batch = None;
            let mut written = Vec::new();
            for (decision, model, changes) in &made {
                let new = NewEvent {
                    document: id,
                    batch,
                    person: Some(person.id),
                    at: app.now(),
                    kind: decision.word(),
                    model: model.as_deref(),
                    client_id: client_id.as_deref(),
                    ..NewEvent::default()
                };
                let event = events::add(transaction, &new, changes)?;
                if let Some(seconds) = decision.seconds() {
                    pace::add(transaction, event, &new, seconds)?;
                }
                batch = batch.or(Some(event));
                written.push(event);
            }
            events::set_next_mark(transaction, next)?;
            Ok((made.into_iter().map(|(.., changes)| changes).collect(), written))
        })
    });
    Ok(axum::Json(answer.await?))
}

/// The state of a document for the decisions of a person.
fn document_state<'a>(
    app: &'a App,
    transaction: &Transaction<'_>,
    kept: &'a Kept,
    held: &BTreeMap<i64, HeldMark>,
    person: &Person,
) -> ApiResult<DocumentState<'a>> {
    Ok(DocumentState {
        kb: app.engine.kb(),
        text: &kept.text,
        marks: held.iter().map(|(id, held)| (*id, held.mark.clone())).collect(),
        is_finished: kept.is_finished,
        finished_with: if kept.is_finished { events::finished_with(transaction, kept.id)? } else { Vec::new() },
        user: person.id,
        at: app.now(),
        next_mark: events::next_mark(transaction)?,
    })
}

/// 409 with the current document if someone else or a model changed one of the marks after the version that the client saw. Finishing a document
/// decides on all its unreviewed predictions.
fn check_fresh(
    transaction: &Transaction<'_>,
    (kept, held): (&Kept, &BTreeMap<i64, HeldMark>),
    (version, decisions): (Option<i64>, &[Decision]),
    person: &Person,
) -> ApiResult<()> {
    let finishes = decisions.iter().any(|decision| matches!(decision, Decision::Finish { value: true, .. }));
    let accepted = held.iter().filter(|(_, held)| finishes && held.mark.is_open()).map(|(id, _)| id);
    let mut decided = decisions.iter().flat_map(Decision::marks).chain(accepted).peekable();
    if decided.peek().is_none() {
        return Ok(());
    }
    let version = version.ok_or_else(no_version)?;
    for mark in decided {
        let message = match held.get(mark) {
            Some(held) if held.event > version => match events::person_of(transaction, held.event)? {
                Some(by) if by == person.id => continue,
                Some(by) => changed_by(&people::get(transaction, by)?.name),
                None => changed_by("a prediction"),
            },
            // A later prediction removed it.
            None if kept.version > version => "this mention was removed in the meantime".to_owned(),
            _ => continue,
        };
        let now = document(transaction, kept.clone(), false)?;
        return Err(ApiError::conflict(message).hint(RELOAD).beside("document", serde_json::to_value(now)?));
    }
    Ok(())
}

/// What to do about a conflict.
const RELOAD: &str = "reload the document; nothing was changed";

fn changed_by(name: &str) -> String {
    format!("this mention was changed by {name} in the meantime")
}

fn no_version() -> ApiError {
    ApiError::bad("the document `version` is missing")
        .hint("send the `version` from GET /api/v1/documents/{d}, so that no other decision is overwritten unseen")
}

type Made = (Vec<Changes>, Vec<i64>);

/// Runs `work` once per client ID and returns what changed.
fn once(
    app: &App,
    (id, person): (i64, &Person),
    client_id: Option<&str>,
    work: impl FnOnce(&Transaction<'_>, Kept) -> ApiResult<Made>,
) -> ApiResult<serde_json::Value> {
    if client_id.is_some_and(|client_id| client_id.is_empty() || client_id.len() > MAX_CLIENT_ID) {
        return Err(ApiError::bad(format!("a client ID must be 1 to {MAX_CLIENT_ID} bytes long")).hint("use a UUID"));
    }
    let (project, answer, is_new) = app.store.write(|transaction| {
        let kept = documents::get(transaction, id)?;
        let project = kept.project;
        if let Some(client_id) = client_id
            && let Some(answer) = events::answer(transaction, person.id, client_id, id)?
        {
            return Ok((project, answer, false));
        }
        let (changes, written) = work(transaction, kept)?;
        let answer = serde_json::to_value(decided(transaction, id, &changes, written)?)?;
        if let Some(client_id) = client_id {
            events::keep_answer(transaction, person.id, client_id, (id, &answer.to_string()))?;
        }
        Ok((project, answer, true))
    })?;
    if is_new {
        let version = answer["version"].as_i64().unwrap_or_default();
        app.bus.publish(project, "document", &DocumentVersion { id, version });
    }
    Ok(answer)
}

/// The annotations that changed, in their current state.
fn decided(transaction: &Transaction<'_>, id: i64, changes: &[Changes], written: Vec<i64>) -> ApiResult<Decided> {
    let kept = documents::get(transaction, id)?;
    let held = documents::marks(transaction, id)?;
    let names = people::names(transaction)?;
    let touched: BTreeSet<i64> = changes.iter().flat_map(|changes| &changes.marks).map(|change| change.id).collect();
    let is_listed = |id: &i64| held.get(id).is_some_and(|held| held.mark.is_listed());
    Ok(Decided {
        version: kept.version,
        marks: marks(&kept.text, &held, &names, |id, mark| touched.contains(&id) && mark.is_listed()),
        removed: touched.iter().filter(|id| !is_listed(id)).copied().collect(),
        events: written,
        is_finished: kept.is_finished,
    })
}

/// `POST /documents/{d}/undo`: undoes the user's last decisions.
pub async fn undo(
    State(app): State<Arc<App>>,
    person: Person,
    At(id): At<i64>,
    Maybe(request): Maybe<UndoRequest>,
) -> Answer {
    Ok(axum::Json(app.blocking(move |app| turn(app, (id, &person), request.client_id.as_deref(), true)).await?))
}

/// `POST /documents/{d}/redo`: redoes the decisions undone last.
pub async fn redo(
    State(app): State<Arc<App>>,
    person: Person,
    At(id): At<i64>,
    Maybe(request): Maybe<UndoRequest>,
) -> Answer {
    Ok(axum::Json(app.blocking(move |app| turn(app, (id, &person), request.client_id.as_deref(), false)).await?))
}

fn turn(app: &App, (id, person): (i64, &Person), client_id: Option<&str>, back: bool) -> ApiResult<serde_json::Value> {
    once(app, (id, person), client_id, |transaction, kept| {
        let all = events::of_document(transaction, id)?;
        let (done, undone) = stacks(&all, person.id);
        let batch = if back { done.last() } else { undone.last() };
        let Some(&batch) = batch else {
            let what = if back { "undo" } else { "redo" };
            return Err(ApiError::conflict(format!("nothing to {what}")));
        };
        let of_batch = all.iter().filter(|event| event.batch == batch);
        let mut changes: Vec<Changes> = match back {
            true => of_batch.rev().map(|event| event.changes.reversed()).collect(),
            false => of_batch.map(|event| event.changes.clone()).collect(),
        };
        let mut now = documents::marks(transaction, id)?.into_iter().map(|(id, held)| (id, held.mark)).collect();
        let names = people::names(transaction)?;
        for changes in &mut changes {
            follow(&mut now, changes, &names)?;
            if let Some((before, _)) = &mut changes.finished {
                *before = kept.is_finished;
            }
        }
        let mut first = None;
        let mut written = Vec::new();
        for changes in &changes {
            let event = NewEvent {
                document: id,
                batch: first,
                person: Some(person.id),
                at: app.now(),
                kind: if back { "undo" } else { "redo" },
                client_id,
                undoes: Some(batch),
                ..NewEvent::default()
            };
            let event = events::add(transaction, &event, changes)?;
            first = first.or(Some(event));
            written.push(event);
        }
        Ok((changes, written))
    })
}

/// Applies changes to the current marks; 409 if a mark is not in the state that the change starts from.
fn follow(now: &mut BTreeMap<i64, MarkState>, changes: &Changes, names: &HashMap<i64, String>) -> ApiResult<()> {
    for Change { id, before, after } in &changes.marks {
        if now.get(id) != before.as_ref() {
            let by = now.get(id).and_then(|mark| mark.by).and_then(|by| names.get(&by));
            return Err(ApiError::conflict(changed_by(by.map_or("a prediction", String::as_str))).hint(RELOAD));
        }
        match after {
            Some(mark) => now.insert(*id, mark.clone()),
            None => now.remove(id),
        };
    }
    Ok(())
}

/// `POST /projects/{p}/alike`: lists the unreviewed identical mentions and, with `apply`, applies the same decision to them.
pub async fn alike(
    State(app): State<Arc<App>>,
    person: Person,
    At(project): At<i64>,
    Json(request): Json<AlikeRequest>,
) -> ApiResult<axum::Json<Alike>> {
    let alike = app.blocking(move |app| {
        // All texts are scanned in a read transaction; only those that match are read again for writing.
        let among = app.store.read(|connection| places_alike(connection, project, &request))?;
        if request.apply && request.version.is_none() {
            return Err(no_version());
        }
        let (alike, versions) = match request.apply {
            true => app.store.write(|transaction| apply_alike(app, transaction, (&request, &among), &person))?,
            false => (app.store.read(|connection| find_alike(connection, (&request, &among)))?.0, Vec::new()),
        };
        for version in &versions {
            app.bus.publish(project, "document", version);
        }
        Ok(alike)
    });
    Ok(axum::Json(alike.await?))
}

type Found = (Alike, (MarkState, Vec<(Kept, Vec<Occurrence>)>));

/// The mark of the request, and its document.
fn asked_mark(connection: &Connection, id: i64) -> ApiResult<(MarkState, Kept)> {
    let of = documents::of_mark(connection, id)?;
    let mark = documents::marks(connection, of)?.remove(&id).map(|held| held.mark);
    let mark = mark.filter(|mark| !mark.is_deleted);
    Ok((mark.ok_or_else(|| no_mark(id))?, documents::get(connection, of)?))
}

/// The error for a mark that does not exist or belongs to another project.
fn no_mark(id: i64) -> ApiError {
    ApiError::not_found(format!("mention {id} not found"))
}

/// The documents that contain the text of a mark.
fn places_alike(connection: &Connection, project: i64, request: &AlikeRequest) -> ApiResult<Vec<i64>> {
    let (mark, home) = asked_mark(connection, request.mark)?;
    if home.project != project {
        return Err(no_mark(request.mark));
    }
    if request.scope == Scope::Document {
        return Ok(vec![home.id]);
    }
    let mut among = Vec::new();
    for number in documents::numbers(connection, project)? {
        abort::check()?;
        if !alike::places(&documents::text(connection, number)?, &mark.text).is_empty() {
            among.push(number);
        }
    }
    Ok(among)
}

fn find_alike(connection: &Connection, (request, among): (&AlikeRequest, &[i64])) -> ApiResult<Found> {
    let (mark, _) = asked_mark(connection, request.mark)?;
    let mut matches = Vec::new();
    let mut by_document = Vec::new();
    for &number in among {
        let kept = documents::get(connection, number)?;
        let held = documents::marks(connection, number)?;
        let marks: BTreeMap<i64, MarkState> = held.into_iter().map(|(id, held)| (id, held.mark)).collect();
        let mut found = alike::occurrences(&kept.text, &marks, (&mark, request.mark));
        found.truncate(MAX_ALIKE.saturating_sub(matches.len()));
        let map = canonym_core::text::offsets::OffsetMap::new(&kept.text);
        matches.extend(found.iter().map(|one| AlikeRow {
            document: kept.id,
            external_id: kept.external_id.clone(),
            spans: to_pairs(&map, &[one.span]),
            text: one.span.of(&kept.text).to_owned(),
            context: alike::context(&kept.text, one.span),
            mark: one.mark,
        }));
        if !found.is_empty() {
            by_document.push((kept, found));
        }
    }
    Ok((Alike { matches, applied: 0 }, (mark, by_document)))
}

fn apply_alike(
    app: &App,
    transaction: &Transaction<'_>,
    (request, among): (&AlikeRequest, &[i64]),
    person: &Person,
) -> ApiResult<(Alike, Vec<DocumentVersion>)> {
    let home = documents::get(transaction, documents::of_mark(transaction, request.mark)?)?;
    let held = documents::marks(transaction, home.id)?;
    check_fresh(transaction, (&home, &held), (request.version, &[Decision::Accept { mark: request.mark }]), person)?;
    let (mut alike, (mark, by_document)) = find_alike(transaction, (request, among))?;
    if mark.is_open() {
        return Err(ApiError::bad("review this mention first").hint("accept, correct or reject it"));
    }
    let mut versions = Vec::new();
    for (kept, found) in by_document {
        let held = documents::marks(transaction, kept.id)?;
        let mut state = document_state(app, transaction, &kept, &held, person)?;
        let (mut batch, mut version) = (None, kept.version);
        for occurrence in found {
            for decision in alike::decisions(&kept.text, &mark, &occurrence) {
                // An earlier decision may have removed a prediction that repeats it.
                if decision.marks().iter().any(|mark| !state.marks.contains_key(mark)) {
                    continue;
                }
                let changes = state.decide(&decision)?;
                let event = NewEvent {
                    document: kept.id,
                    batch,
                    person: Some(person.id),
                    at: app.now(),
                    kind: decision.word(),
                    ..NewEvent::default()
                };
                version = events::add(transaction, &event, &changes)?;
                batch = batch.or(Some(version));
            }
            alike.applied += 1;
        }
        events::set_next_mark(transaction, state.next_mark)?;
        versions.push(DocumentVersion { id: kept.id, version });
    }
    Ok((alike, versions))
}
