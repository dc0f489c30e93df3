//! Decisions: made, undone, redone, and applied to identical mentions.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use axum::extract::State;
use rusqlite::{Connection, Transaction};

use super::assignments::{self, Finisher};
use super::show::{document, marks};
use super::{Json, OptionalJson, PathParam};
use crate::abort;
use crate::error::{ApiError, ApiResult};
use crate::events::DocumentVersion;
use crate::marks::decide::{Decision, DocumentState};
use crate::marks::identical::{self, Occurrence};
use crate::marks::spread::{IDENTICAL, Spread};
use crate::marks::{Change, Changes, MarkState, Named};
use crate::spans::to_pairs;
use crate::state::{App, SpreadTask};
use crate::store::documents::{self, StoredDocument, StoredMark};
use crate::store::events::{self, NewEvent, undo_stacks};
use crate::store::{people, proposals, time_spent};
use crate::wire::{
    Decided, Decisions, IdenticalMention, IdenticalMentions, IdenticalRequest, Person, ProposalKind, Role, Scope,
    UndoRequest,
};

/// The maximum number of decisions per request.
const MAX_DECISIONS: usize = 1000;

/// The maximum length of a client ID, in bytes.
const MAX_CLIENT_ID: usize = 100;

/// The maximum number of identical mentions listed or changed at once.
const MAX_IDENTICAL: usize = 5000;

type JsonResponse = ApiResult<axum::Json<serde_json::Value>>;

/// `POST /documents/{d}/decisions`.
pub async fn decide(
    State(app): State<Arc<App>>,
    person: Person,
    PathParam(id): PathParam<i64>,
    Json(request): Json<Decisions>,
) -> JsonResponse {
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
        once(app, id, &person, client_id.as_deref(), |transaction, stored| {
            let held = documents::marks(transaction, id)?;
            check_fresh(transaction, &stored, &held, request.version, &request.decisions, &person)?;
            let mut state = document_state(app, transaction, &stored, &held, &person)?;
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
                    kind: decision.name(),
                    model: model.as_deref(),
                    client_id: client_id.as_deref(),
                    ..NewEvent::default()
                };
                let event = events::add(transaction, &new, changes)?;
                if let Some(seconds) = decision.seconds() {
                    time_spent::add(transaction, event, &new, seconds)?;
                }
                batch = batch.or(Some(event));
                written.push(event);
            }
            events::set_next_mark(transaction, next)?;
            if request.decisions.iter().any(|decision| matches!(decision, Decision::Settle { .. })) {
                written.extend(assignments::finish_if_resolved(
                    app,
                    transaction,
                    id,
                    Finisher { person: person.id, batch },
                )?);
            }
            let spreads = made
                .iter()
                .filter_map(|(decision, _, changes)| spread_of(&stored, decision, changes, batch?))
                .collect();
            let changes = made.into_iter().map(|(.., changes)| changes).collect();
            Ok(AppliedDecisions { changes, written, spreads })
        })
    });
    Ok(axum::Json(answer.await?))
}

/// What a decision spreads to identical mentions: the concept that somebody linked a mention to.
fn spread_of(stored: &StoredDocument, decision: &Decision, changes: &Changes, batch: i64) -> Option<SpreadTask> {
    if !matches!(decision, Decision::Concept { .. } | Decision::Add { .. }) {
        return None;
    }
    let change = changes.marks.first()?;
    let mark = change.after.as_ref().filter(|mark| mark.spans.len() == 1)?;
    let spread = Spread {
        text: mark.text.clone(),
        concept: mark.concept.clone()?,
        kind: mark.kind.clone(),
        model: IDENTICAL,
        from: Some(change.id),
    };
    Some(SpreadTask::Decision { project: stored.project, document: stored.id, spread, batch })
}

/// The state of a document for the decisions of a person.
pub(super) fn document_state<'a>(
    app: &'a App,
    transaction: &Transaction<'_>,
    stored: &'a StoredDocument,
    held: &BTreeMap<i64, StoredMark>,
    person: &Person,
) -> ApiResult<DocumentState<'a>> {
    Ok(DocumentState {
        kb: app.engine.kb(),
        text: &stored.text,
        sections: stored.content.sections(),
        marks: held.iter().map(|(id, held)| (*id, held.mark.clone())).collect(),
        is_finished: stored.is_finished,
        last_finish_changes: if stored.is_finished {
            events::last_finish_changes(transaction, stored.id)?
        } else {
            Vec::new()
        },
        user: person.id,
        at: app.now(),
        proposed: proposed_concepts(transaction, stored.project)?,
        next_mark: events::next_mark(transaction)?,
    })
}

/// The concepts that people proposed for a project.
fn proposed_concepts(connection: &Connection, project: i64) -> ApiResult<Vec<(Named, String)>> {
    let all = proposals::of_project(connection, project)?.into_iter();
    let new = all.filter(|one| one.kind == ProposalKind::Concept);
    Ok(new.map(|one| (one.concept(), one.semantic_type)).collect())
}

/// 409 with the current document if someone else or a model changed one of the marks after the version that the client saw. Finishing a document
/// decides on all its unreviewed predictions.
fn check_fresh(
    transaction: &Transaction<'_>,
    stored: &StoredDocument,
    held: &BTreeMap<i64, StoredMark>,
    version: Option<i64>,
    decisions: &[Decision],
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
            None if stored.version > version => "this mention was removed in the meantime".to_owned(),
            _ => continue,
        };
        let now = document(transaction, stored.clone(), false)?;
        return Err(ApiError::conflict(message).hint(RELOAD_HINT).with_field("document", serde_json::to_value(now)?));
    }
    Ok(())
}

/// What to do about a conflict.
const RELOAD_HINT: &str = "reload the document; nothing was changed";

fn changed_by(name: &str) -> String {
    format!("this mention was changed by {name} in the meantime")
}

fn no_version() -> ApiError {
    ApiError::bad("the document `version` is missing")
        .hint("send the `version` from GET /api/v1/documents/{d}, so that no other decision is overwritten unseen")
}

/// Decisions that were stored.
struct AppliedDecisions {
    /// What changed.
    changes: Vec<Changes>,
    /// The numbers of the events.
    written: Vec<i64>,
    /// What is spread to identical mentions, or taken back.
    spreads: Vec<SpreadTask>,
}

/// Runs `work` once per client ID and returns what changed.
fn once(
    app: &App,
    id: i64,
    person: &Person,
    client_id: Option<&str>,
    work: impl FnOnce(&Transaction<'_>, StoredDocument) -> ApiResult<AppliedDecisions>,
) -> ApiResult<serde_json::Value> {
    if client_id.is_some_and(|client_id| client_id.is_empty() || client_id.len() > MAX_CLIENT_ID) {
        return Err(ApiError::bad(format!("a client ID must be 1 to {MAX_CLIENT_ID} bytes long")).hint("use a UUID"));
    }
    let (project, answer, is_new, effects) = app.store.write(|transaction| {
        let stored = documents::get(transaction, id)?;
        let (project, was_finished) = (stored.project, stored.is_finished);
        if let Some(client_id) = client_id
            && let Some(answer) = events::stored_response(transaction, person.id, client_id, id)?
        {
            return Ok((project, answer, false, (None, Vec::new())));
        }
        let AppliedDecisions { changes, written, spreads } = work(transaction, stored)?;
        let answer = serde_json::to_value(decided(transaction, id, &changes, written)?)?;
        if let Some(client_id) = client_id {
            events::store_response(transaction, person.id, client_id, id, &answer.to_string())?;
        }
        // The last annotator of a copy brings all answers into its original.
        let collected = match !was_finished && documents::is_finished(transaction, id)? {
            true => assignments::collect_copy(app, transaction, id)?,
            false => None,
        };
        Ok((project, answer, true, (collected, spreads)))
    })?;
    let (collected, spreads) = effects;
    spreads.into_iter().for_each(|task| app.jobs.spread(task));
    if let Some((project, version)) = collected {
        app.bus.publish(project, "document", &version);
    }
    if is_new {
        let version = answer["version"].as_i64().unwrap_or_default();
        app.bus.publish(project, "document", &DocumentVersion { id, version });
    }
    Ok(answer)
}

/// The annotations that changed, in their current state.
fn decided(transaction: &Transaction<'_>, id: i64, changes: &[Changes], written: Vec<i64>) -> ApiResult<Decided> {
    let stored = documents::get(transaction, id)?;
    let held = documents::marks(transaction, id)?;
    let names = people::names(transaction)?;
    let touched: BTreeSet<i64> = changes.iter().flat_map(|changes| &changes.marks).map(|change| change.id).collect();
    let is_listed = |id: &i64| held.get(id).is_some_and(|held| held.mark.is_listed());
    Ok(Decided {
        version: stored.version,
        marks: marks(&stored.text, &held, &names, |id, mark| touched.contains(&id) && mark.is_listed()),
        removed: touched.iter().filter(|id| !is_listed(id)).copied().collect(),
        events: written,
        is_finished: stored.is_finished,
    })
}

/// `POST /documents/{d}/undo`: undoes the user's last decisions.
pub async fn undo(
    State(app): State<Arc<App>>,
    person: Person,
    PathParam(id): PathParam<i64>,
    OptionalJson(request): OptionalJson<UndoRequest>,
) -> JsonResponse {
    Ok(axum::Json(
        app.blocking(move |app| undo_or_redo(app, id, &person, request.client_id.as_deref(), Direction::Undo)).await?,
    ))
}

/// `POST /documents/{d}/redo`: redoes the decisions undone last.
pub async fn redo(
    State(app): State<Arc<App>>,
    person: Person,
    PathParam(id): PathParam<i64>,
    OptionalJson(request): OptionalJson<UndoRequest>,
) -> JsonResponse {
    Ok(axum::Json(
        app.blocking(move |app| undo_or_redo(app, id, &person, request.client_id.as_deref(), Direction::Redo)).await?,
    ))
}

/// Whether decisions are undone or redone.
#[derive(Clone, Copy, PartialEq)]
enum Direction {
    Undo,
    Redo,
}

impl Direction {
    /// The kind of its events.
    fn name(self) -> &'static str {
        match self {
            Direction::Undo => "undo",
            Direction::Redo => "redo",
        }
    }
}

fn undo_or_redo(
    app: &App,
    id: i64,
    person: &Person,
    client_id: Option<&str>,
    direction: Direction,
) -> ApiResult<serde_json::Value> {
    once(app, id, person, client_id, |transaction, stored| {
        let all = events::of_document(transaction, id)?;
        let (done, undone) = undo_stacks(&all, person.id);
        let batch = match direction {
            Direction::Undo => done.last(),
            Direction::Redo => undone.last(),
        };
        let Some(&batch) = batch else {
            return Err(ApiError::conflict(format!("nothing to {}", direction.name())));
        };
        // What was spread from it is taken back apart from it.
        let of_batch = all.iter().filter(|event| event.batch == batch && event.person.is_some());
        let mut changes: Vec<Changes> = match direction {
            Direction::Undo => of_batch.rev().map(|event| event.changes.reversed()).collect(),
            Direction::Redo => of_batch.map(|event| event.changes.clone()).collect(),
        };
        let mut now = documents::marks(transaction, id)?.into_iter().map(|(id, held)| (id, held.mark)).collect();
        let names = people::names(transaction)?;
        for changes in &mut changes {
            apply_changes(&mut now, changes, &names)?;
            if let Some((before, _)) = &mut changes.finished {
                *before = stored.is_finished;
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
                kind: direction.name(),
                client_id,
                undoes: Some(batch),
                ..NewEvent::default()
            };
            let event = events::add(transaction, &event, changes)?;
            first = first.or(Some(event));
            written.push(event);
        }
        let spreads = match direction {
            Direction::Undo => vec![SpreadTask::Withdraw { project: stored.project, batch }],
            Direction::Redo => Vec::new(),
        };
        Ok(AppliedDecisions { changes, written, spreads })
    })
}

/// Applies changes to the current marks; 409 if a mark is not in the state that the change starts from.
pub(super) fn apply_changes(
    now: &mut BTreeMap<i64, MarkState>,
    changes: &Changes,
    names: &HashMap<i64, String>,
) -> ApiResult<()> {
    for Change { id, before, after } in &changes.marks {
        if now.get(id) != before.as_ref() {
            let by = now.get(id).and_then(|mark| mark.by).and_then(|by| names.get(&by));
            return Err(ApiError::conflict(changed_by(by.map_or("a prediction", String::as_str))).hint(RELOAD_HINT));
        }
        match after {
            Some(mark) => now.insert(*id, mark.clone()),
            None => now.remove(id),
        };
    }
    Ok(())
}

/// `POST /projects/{p}/identical-mentions`: lists the unreviewed identical mentions and, with `apply`, applies the same decision to them.
pub async fn identical(
    State(app): State<Arc<App>>,
    person: Person,
    PathParam(project): PathParam<i64>,
    Json(request): Json<IdenticalRequest>,
) -> ApiResult<axum::Json<IdenticalMentions>> {
    let identical = app.blocking(move |app| {
        // All texts are scanned in a read transaction; only those that match are read again for writing.
        let candidates = app.store.read(|connection| documents_with_text(connection, project, &request))?;
        if request.apply && request.version.is_none() {
            return Err(no_version());
        }
        let (identical, versions) = match request.apply {
            true => {
                app.store.write(|transaction| apply_to_identical(app, transaction, &request, &candidates, &person))?
            }
            false => {
                (app.store.read(|connection| find_identical(connection, &request, &candidates))?.identical, Vec::new())
            }
        };
        for version in &versions {
            app.bus.publish(project, "document", version);
        }
        Ok(identical)
    });
    Ok(axum::Json(identical.await?))
}

/// The response to a request, the mark that it names, and the occurrences by document.
struct Occurrences {
    identical: IdenticalMentions,
    mark: MarkState,
    by_document: Vec<(StoredDocument, Vec<Occurrence>)>,
}

/// The mark that a request names, and its document.
fn requested_mark(connection: &Connection, id: i64) -> ApiResult<(MarkState, StoredDocument)> {
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
fn documents_with_text(connection: &Connection, project: i64, request: &IdenticalRequest) -> ApiResult<Vec<i64>> {
    let (mark, home) = requested_mark(connection, request.mark)?;
    if home.project != project {
        return Err(no_mark(request.mark));
    }
    if request.scope == Scope::Document {
        return Ok(vec![home.id]);
    }
    let mut candidates = Vec::new();
    for number in documents::numbers(connection, project)? {
        abort::check()?;
        if !identical::find_words(&documents::text(connection, number)?, &mark.text).is_empty() {
            candidates.push(number);
        }
    }
    Ok(candidates)
}

fn find_identical(connection: &Connection, request: &IdenticalRequest, candidates: &[i64]) -> ApiResult<Occurrences> {
    let (mark, _) = requested_mark(connection, request.mark)?;
    let mut matches = Vec::new();
    let mut by_document = Vec::new();
    for &number in candidates {
        let stored = documents::get(connection, number)?;
        let held = documents::marks(connection, number)?;
        let marks: BTreeMap<i64, MarkState> = held.into_iter().map(|(id, held)| (id, held.mark)).collect();
        let mut found = identical::occurrences(&stored.text, &marks, &mark, request.mark);
        found.truncate(MAX_IDENTICAL.saturating_sub(matches.len()));
        let map = canonym_core::text::offsets::OffsetMap::new(&stored.text);
        matches.extend(found.iter().map(|one| IdenticalMention {
            document: stored.id,
            external_id: stored.external_id.clone(),
            spans: to_pairs(&map, &[one.span]),
            text: one.span.of(&stored.text).to_owned(),
            context: identical::context(&stored.text, one.span),
            mark: one.mark,
        }));
        if !found.is_empty() {
            by_document.push((stored, found));
        }
    }
    Ok(Occurrences { identical: IdenticalMentions { matches, applied: 0 }, mark, by_document })
}

fn apply_to_identical(
    app: &App,
    transaction: &Transaction<'_>,
    request: &IdenticalRequest,
    candidates: &[i64],
    person: &Person,
) -> ApiResult<(IdenticalMentions, Vec<DocumentVersion>)> {
    let home = documents::get(transaction, documents::of_mark(transaction, request.mark)?)?;
    let held = documents::marks(transaction, home.id)?;
    check_fresh(transaction, &home, &held, request.version, &[Decision::Accept { mark: request.mark }], person)?;
    let Occurrences { mut identical, mark, by_document } = find_identical(transaction, request, candidates)?;
    if mark.is_open() {
        return Err(ApiError::bad("review this mention first").hint("accept, correct or reject it"));
    }
    let mut versions = Vec::new();
    for (stored, found) in by_document {
        let held = documents::marks(transaction, stored.id)?;
        let mut state = document_state(app, transaction, &stored, &held, person)?;
        let (mut batch, mut version) = (None, stored.version);
        for occurrence in found {
            for decision in identical::decisions(&stored.text, &mark, &occurrence) {
                // An earlier decision may have removed a prediction that repeats it.
                if decision.marks().iter().any(|mark| !state.marks.contains_key(mark)) {
                    continue;
                }
                let changes = state.decide(&decision)?;
                let event = NewEvent {
                    document: stored.id,
                    batch,
                    person: Some(person.id),
                    at: app.now(),
                    kind: decision.name(),
                    ..NewEvent::default()
                };
                version = events::add(transaction, &event, &changes)?;
                batch = batch.or(Some(version));
            }
            identical.applied += 1;
        }
        events::set_next_mark(transaction, state.next_mark)?;
        versions.push(DocumentVersion { id: stored.id, version });
    }
    Ok((identical, versions))
}
