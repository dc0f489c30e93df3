//! Decisions on marks: made, taken back, brought back, and given to all that are alike.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use axum::extract::State;
use rusqlite::{Connection, Transaction};

use super::show::{document, marks, names};
use super::{At, Json, Maybe};
use crate::abandon;
use crate::app::App;
use crate::error::{ApiError, ApiResult};
use crate::events::DocumentVersion;
use crate::marks::alike::{self, Occurrence};
use crate::marks::decide::{Decision, Desk};
use crate::marks::{Change, Changes, MarkState};
use crate::spans::to_pairs;
use crate::store::documents::{self, HeldMark, Kept};
use crate::store::events::{self, NewEvent, stacks};
use crate::store::pace;
use crate::store::people::{Person, Role};
use crate::wire::{Alike, AlikeRequest, AlikeRow, Decided, Decisions, Scope, UndoRequest};

/// Decisions in one request.
const MAX_DECISIONS: usize = 1000;

/// The longest id of a client, in bytes.
const MAX_CLIENT_ID: usize = 100;

/// Mentions that are shown or decided together.
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
        return Err(ApiError::bad(format!("a request may have {MAX_DECISIONS} decisions")));
    }
    if request.decisions.iter().any(|decision| matches!(decision, Decision::Settle { .. }))
        && person.role < Role::Curator
    {
        return Err(ApiError::forbidden("disagreements are settled by curators and admins")
            .hint("say what you think is right of the mark itself"));
    }
    let client_id = request.client_id.clone();
    let answer = app.blocking(move |app| {
        once(app, (id, &person), client_id.as_deref(), |transaction, kept| {
            let held = documents::marks(transaction, id)?;
            check_fresh(transaction, (&kept, &held), (request.version, &request.decisions), &person)?;
            let mut desk = desk(app, transaction, &kept, &held, &person)?;
            let made = request.decisions.iter().map(|decision| {
                let model = decision.marks().first().and_then(|mark| desk.marks.get(mark)?.model.clone());
                Ok((decision, model, desk.decide(decision)?))
            });
            let made = made.collect::<ApiResult<Vec<_>>>()?;
            let next = desk.next_mark;
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

/// A document with its marks on the desk of somebody.
fn desk<'a>(
    app: &'a App,
    transaction: &Transaction<'_>,
    kept: &'a Kept,
    held: &BTreeMap<i64, HeldMark>,
    person: &Person,
) -> ApiResult<Desk<'a>> {
    Ok(Desk {
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

/// 409 with the document where a mark that is decided on was changed by somebody else, or a model, after the version that the client saw. Finishing
/// a document decides on all its open predictions.
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
        let changed = match held.get(mark) {
            Some(held) if held.event > version => events::person_of(transaction, held.event)? != Some(person.id),
            Some(_) => false,
            // It was there once: a model took it away.
            None => kept.version > version,
        };
        if changed {
            let now = document(transaction, kept.clone(), false)?;
            return Err(ApiError::conflict(format!("mark {mark} was changed meanwhile"))
                .hint("look at the document again and decide anew; nothing was changed")
                .beside("document", serde_json::to_value(now)?));
        }
    }
    Ok(())
}

fn no_version() -> ApiError {
    ApiError::bad("no `version` of the document is given")
        .hint("send the `version` that GET /api/v1/documents/{d} gave, so that nobody's decision is overwritten unseen")
}

type Made = (Vec<Changes>, Vec<i64>);

/// Does something once for each id of a client, and answers what changed.
fn once(
    app: &App,
    (id, person): (i64, &Person),
    client_id: Option<&str>,
    work: impl FnOnce(&Transaction<'_>, Kept) -> ApiResult<Made>,
) -> ApiResult<serde_json::Value> {
    if client_id.is_some_and(|client_id| client_id.is_empty() || client_id.len() > MAX_CLIENT_ID) {
        return Err(ApiError::bad(format!("a client id has from 1 to {MAX_CLIENT_ID} bytes")).hint("make a UUID"));
    }
    let (project, answer, is_new) = app.store.write(|transaction| {
        let kept = documents::get(transaction, id)?;
        let project = kept.project;
        if let Some(client_id) = client_id
            && let Some(answer) = events::answer(transaction, person.id, client_id, id)?
        {
            return Ok((project, serde_json::from_str(&answer)?, false));
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
        app.hub.tell(project, "document", &DocumentVersion { id, version });
    }
    Ok(answer)
}

/// What changed, as it is now.
fn decided(transaction: &Transaction<'_>, id: i64, changes: &[Changes], written: Vec<i64>) -> ApiResult<Decided> {
    let kept = documents::get(transaction, id)?;
    let held = documents::marks(transaction, id)?;
    let names = names(transaction)?;
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

/// `POST /documents/{d}/undo`: takes the last decisions of the one who asks back.
pub async fn undo(
    State(app): State<Arc<App>>,
    person: Person,
    At(id): At<i64>,
    Maybe(request): Maybe<UndoRequest>,
) -> Answer {
    Ok(axum::Json(app.blocking(move |app| turn(app, (id, &person), request.client_id.as_deref(), true)).await?))
}

/// `POST /documents/{d}/redo`: brings back what was taken back last.
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
            return Err(ApiError::conflict(format!("there is nothing to {what} in this document")));
        };
        let of_batch = all.iter().filter(|event| event.batch == batch);
        let mut changes: Vec<Changes> = match back {
            true => of_batch.rev().map(|event| event.changes.reversed()).collect(),
            false => of_batch.map(|event| event.changes.clone()).collect(),
        };
        let mut now = documents::marks(transaction, id)?.into_iter().map(|(id, held)| (id, held.mark)).collect();
        for changes in &mut changes {
            follow(&mut now, changes)?;
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

/// Makes changes on the marks at hand; an error where a mark is not what the change begins with.
fn follow(now: &mut BTreeMap<i64, MarkState>, changes: &Changes) -> ApiResult<()> {
    for Change { id, before, after } in &changes.marks {
        if now.get(id) != before.as_ref() {
            return Err(ApiError::conflict(format!("mark {id} was changed by somebody else since"))
                .hint("nothing was changed; read the document again and correct the mark itself"));
        }
        match after {
            Some(mark) => now.insert(*id, mark.clone()),
            None => now.remove(id),
        };
    }
    Ok(())
}

/// `POST /projects/{p}/alike`: every mention of the same words on which nobody decided, and where it is asked for the same decision for them.
pub async fn alike(
    State(app): State<Arc<App>>,
    person: Person,
    At(project): At<i64>,
    Json(request): Json<AlikeRequest>,
) -> ApiResult<axum::Json<Alike>> {
    let alike = app.blocking(move |app| {
        // All texts are read while others go on; then only those that have the words are looked at again.
        let among = app.store.read(|connection| places_alike(connection, project, &request))?;
        if request.apply && request.version.is_none() {
            return Err(no_version());
        }
        let (alike, versions) = match request.apply {
            true => app.store.write(|transaction| apply_alike(app, transaction, (&request, &among), &person))?,
            false => (app.store.read(|connection| find_alike(connection, (&request, &among)))?.0, Vec::new()),
        };
        for version in &versions {
            app.hub.tell(project, "document", version);
        }
        Ok(alike)
    });
    Ok(axum::Json(alike.await?))
}

type Found = (Alike, (MarkState, Vec<(Kept, Vec<Occurrence>)>));

/// The mark that is asked for, and its document.
fn asked_mark(connection: &Connection, id: i64) -> ApiResult<(MarkState, Kept)> {
    let of = documents::of_mark(connection, id)?;
    let mark = documents::marks(connection, of)?.remove(&id).map(|held| held.mark);
    let mark = mark.filter(|mark| !mark.is_deleted);
    Ok((mark.ok_or_else(|| no_mark(id))?, documents::get(connection, of)?))
}

/// What is said of a mark that is not there, and of one of another project.
fn no_mark(id: i64) -> ApiError {
    ApiError::not_found(format!("there is no mark {id}"))
}

/// The numbers of the documents that have the words of a mark, whoever decided on them.
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
        abandon::check()?;
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
        return Err(ApiError::bad(format!("nobody has decided on mark {} yet", request.mark))
            .hint("accept, correct or reject it first"));
    }
    let mut versions = Vec::new();
    for (kept, found) in by_document {
        let held = documents::marks(transaction, kept.id)?;
        let mut desk = desk(app, transaction, &kept, &held, person)?;
        let (mut batch, mut version) = (None, kept.version);
        for occurrence in found {
            for decision in alike::decisions(&kept.text, &mark, &occurrence) {
                // A decision before may have taken a prediction away that said the same.
                if decision.marks().iter().any(|mark| !desk.marks.contains_key(mark)) {
                    continue;
                }
                let changes = desk.decide(&decision)?;
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
        events::set_next_mark(transaction, desk.next_mark)?;
        versions.push(DocumentVersion { id: kept.id, version });
    }
    Ok((alike, versions))
}
