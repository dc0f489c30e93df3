//! Review by concept: unreviewed predictions of one text and concept are accepted, rejected or relinked together, as one step that can be undone.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use axum::extract::State;
use canonym_core::text::offsets::OffsetMap;
use rusqlite::Transaction;
use serde::Deserialize;

use super::decisions::{apply_changes, document_state};
use super::disagreements::around;
use super::{Json, PAGE_LIMIT, PathParam, QueryParams};
use crate::abort;
use crate::error::{ApiError, ApiResult};
use crate::events::DocumentVersion;
use crate::marks::decide::Decision;
use crate::marks::{Changes, MarkState};
use crate::spans::to_pairs;
use crate::state::App;
use crate::store::events::{self, NewEvent, undo_stacks};
use crate::store::groups::{self, Member};
use crate::store::{documents, people, projects};
use crate::wire::{
    GroupAction, GroupDecided, GroupDecision, GroupMention, GroupMentions, GroupUndo, Person, PredictionGroups,
};

/// Characters of context on either side.
const CONTEXT: usize = 80;

/// The maximum number of annotations per request.
const MAX_MARKS: usize = 100_000;

/// Query parameters of the groups.
#[derive(Debug, Default, Deserialize)]
pub struct GroupsQuery {
    #[serde(default)]
    q: String,
    /// Whether only groups with predictions that were spread from decisions are listed.
    #[serde(default)]
    spread: Option<String>,
    cursor: Option<String>,
    limit: Option<usize>,
}

/// `GET /projects/{p}/groups`: unreviewed predictions by text and concept.
pub async fn list(
    State(app): State<Arc<App>>,
    _: Person,
    PathParam(project): PathParam<i64>,
    QueryParams(query): QueryParams<GroupsQuery>,
) -> ApiResult<axum::Json<PredictionGroups>> {
    let limit = PAGE_LIMIT.check(query.limit, "limit")?;
    let from = offset(query.cursor.as_deref())?;
    let page = app.blocking(move |app| {
        let mut groups = app.store.read(|connection| {
            projects::check(connection, project)?;
            groups::all(connection, project)
        })?;
        let wanted = query.q.trim().to_lowercase();
        groups.retain(|group| {
            let concept = group.concept.as_ref();
            let holds = |text: &str| text.to_lowercase().contains(&wanted);
            wanted.is_empty()
                || holds(&group.text)
                || concept.is_some_and(|concept| holds(&concept.id) || holds(&concept.name))
        });
        let n_spread = groups.iter().map(|group| group.n_spread).sum();
        if matches!(query.spread.as_deref(), Some("1" | "true")) {
            groups.retain(|group| group.n_spread > 0);
        }
        let (n_groups, n_mentions) = (groups.len(), groups.iter().map(|group| group.n_mentions).sum());
        let next_cursor = next(from, limit, n_groups);
        let groups = groups.into_iter().skip(from).take(limit).collect();
        Ok(PredictionGroups { groups, n_groups, n_mentions, n_spread, next_cursor })
    });
    Ok(axum::Json(page.await?))
}

/// Query parameters of the predictions of a group.
#[derive(Debug, Default, Deserialize)]
pub struct GroupQuery {
    #[serde(default)]
    text: String,
    concept: Option<String>,
    cursor: Option<String>,
    limit: Option<usize>,
}

/// `GET /projects/{p}/groups/mentions`: the predictions of a group with their contexts.
pub async fn mentions(
    State(app): State<Arc<App>>,
    _: Person,
    PathParam(project): PathParam<i64>,
    QueryParams(query): QueryParams<GroupQuery>,
) -> ApiResult<axum::Json<GroupMentions>> {
    let limit = PAGE_LIMIT.check(query.limit, "limit")?;
    let from = offset(query.cursor.as_deref())?;
    let concept = query.concept.filter(|concept| !concept.is_empty());
    let page = app.blocking(move |app| {
        app.store.read(|connection| {
            projects::check(connection, project)?;
            let members = groups::members(connection, project, &query.text, concept.as_deref())?;
            let next_cursor = next(from, limit, members.len());
            let shown: Vec<Member> = members.into_iter().skip(from).take(limit).collect();
            let mut mentions = Vec::with_capacity(shown.len());
            for in_document in shown.chunk_by(|a, b| a.document == b.document) {
                let stored = documents::get(connection, in_document[0].document)?;
                let held = documents::marks(connection, stored.id)?;
                let map = OffsetMap::new(&stored.text);
                for member in in_document {
                    let Some(held) = held.get(&member.mark) else { continue };
                    let spans = held.mark.spans();
                    let (Some(first), Some(last)) = (spans.first(), spans.last()) else { continue };
                    let (before, behind) = around(&stored.text, first.start as usize..last.end as usize, CONTEXT);
                    mentions.push(GroupMention {
                        document: stored.id,
                        external_id: stored.external_id.clone(),
                        mark: member.mark,
                        spans: to_pairs(&map, &spans),
                        text: held.mark.text.clone(),
                        before: before.to_owned(),
                        behind: behind.to_owned(),
                        score: member.score,
                        is_spread: held.mark.spread_from.is_some(),
                    });
                }
            }
            Ok(GroupMentions { mentions, next_cursor })
        })
    });
    Ok(axum::Json(page.await?))
}

/// `POST /projects/{p}/groups/decisions`: accepts, rejects or relinks predictions of a group.
pub async fn decide(
    State(app): State<Arc<App>>,
    person: Person,
    PathParam(project): PathParam<i64>,
    Json(request): Json<GroupDecision>,
) -> ApiResult<axum::Json<GroupDecided>> {
    if request.marks.as_ref().is_some_and(|marks| marks.len() > MAX_MARKS) {
        return Err(ApiError::bad(format!("more than {MAX_MARKS} annotations in one request")));
    }
    if (request.action == GroupAction::Relink) != request.to.is_some() {
        return Err(ApiError::bad("`to` must name the other concept exactly when `action` is `relink`"));
    }
    let decided = app.blocking(move |app| {
        let (decided, versions) = app.store.write(|transaction| {
            projects::check(transaction, project)?;
            decide_on_group(app, transaction, project, &request, &person)
        })?;
        versions.iter().for_each(|version| app.bus.publish(project, "document", version));
        Ok(decided)
    });
    Ok(axum::Json(decided.await?))
}

fn decide_on_group(
    app: &App,
    transaction: &Transaction<'_>,
    project: i64,
    request: &GroupDecision,
    person: &Person,
) -> ApiResult<(GroupDecided, Vec<DocumentVersion>)> {
    let concept = request.concept.as_deref().filter(|concept| !concept.is_empty());
    let mut members = groups::members(transaction, project, &request.text, concept)?;
    let mut decided = GroupDecided::default();
    if let Some(marks) = &request.marks {
        let wanted: HashSet<i64> = marks.iter().copied().collect();
        members.retain(|member| wanted.contains(&member.mark));
        decided.n_skipped = wanted.len() - members.len();
    }
    if let Some(least) = request.min_score {
        members.retain(|member| member.score.is_some_and(|score| score >= least));
    }
    let mut versions = Vec::new();
    for in_document in members.chunk_by(|a, b| a.document == b.document) {
        abort::check()?;
        let stored = documents::get(transaction, in_document[0].document)?;
        let held = documents::marks(transaction, stored.id)?;
        let mut state = document_state(app, transaction, &stored, &held, person)?;
        let mut version = stored.version;
        for Member { mark, .. } in in_document {
            // An earlier decision may have removed a prediction that repeats it.
            let Some(model) = state.marks.get(mark).map(|mark| mark.model.clone()) else { continue };
            let decision = match (request.action, &request.to) {
                (GroupAction::Reject, _) => Decision::Reject { mark: *mark },
                (GroupAction::Relink, Some(to)) => Decision::Concept { mark: *mark, concept: to.clone() },
                _ => Decision::Accept { mark: *mark },
            };
            let changes = state.decide(&decision)?;
            let event = NewEvent {
                document: stored.id,
                person: Some(person.id),
                at: app.now(),
                kind: decision.name(),
                model: model.as_deref(),
                ..NewEvent::default()
            };
            version = add_to_batch(transaction, event, &changes, &mut decided)?;
        }
        decided.n_documents += 1;
        versions.push(DocumentVersion { id: stored.id, version });
    }
    Ok((decided, versions))
}

/// Stores the decision on a mention as an event of the batch, which its first event starts; returns the version of the document.
pub(super) fn add_to_batch(
    transaction: &Transaction<'_>,
    event: NewEvent<'_>,
    changes: &Changes,
    decided: &mut GroupDecided,
) -> ApiResult<i64> {
    let version = events::add(transaction, &NewEvent { batch: decided.batch, ..event }, changes)?;
    decided.batch = decided.batch.or(Some(version));
    decided.n_mentions += 1;
    Ok(version)
}

/// `POST /projects/{p}/groups/undo`: undoes a decision on a group in all documents where its annotations have not changed since.
pub async fn undo(
    State(app): State<Arc<App>>,
    person: Person,
    PathParam(project): PathParam<i64>,
    Json(request): Json<GroupUndo>,
) -> ApiResult<axum::Json<GroupDecided>> {
    let undone = app.blocking(move |app| {
        let (undone, versions) = app.store.write(|transaction| {
            projects::check(transaction, project)?;
            undo_batch(app, transaction, project, request.batch, &person)
        })?;
        versions.iter().for_each(|version| app.bus.publish(project, "document", version));
        Ok(undone)
    });
    Ok(axum::Json(undone.await?))
}

fn undo_batch(
    app: &App,
    transaction: &Transaction<'_>,
    project: i64,
    batch: i64,
    person: &Person,
) -> ApiResult<(GroupDecided, Vec<DocumentVersion>)> {
    let names = people::names(transaction)?;
    let (mut undone, mut versions) = (GroupDecided::default(), Vec::new());
    for id in events::documents_of_batch(transaction, project, batch, person.id)? {
        let all = events::of_document(transaction, id)?;
        if !undo_stacks(&all, person.id).0.contains(&batch) {
            continue;
        }
        let of_batch = all.iter().filter(|event| event.batch == batch);
        let changes: Vec<Changes> = of_batch.rev().map(|event| event.changes.reversed()).collect();
        let mut now: BTreeMap<i64, MarkState> =
            documents::marks(transaction, id)?.into_iter().map(|(id, held)| (id, held.mark)).collect();
        if changes.iter().any(|changes| apply_changes(&mut now, changes, &names).is_err()) {
            undone.n_skipped += 1;
            continue;
        }
        let mut version = 0;
        for changes in &changes {
            let event = NewEvent {
                document: id,
                batch: undone.batch,
                person: Some(person.id),
                at: app.now(),
                kind: "undo",
                undoes: Some(batch),
                ..NewEvent::default()
            };
            version = events::add(transaction, &event, changes)?;
            undone.batch = undone.batch.or(Some(version));
            undone.n_mentions += 1;
        }
        undone.n_documents += 1;
        versions.push(DocumentVersion { id, version });
    }
    if undone == GroupDecided::default() {
        return Err(ApiError::conflict("nothing to undo"));
    }
    Ok((undone, versions))
}

/// The offset in a cursor.
pub(super) fn offset(cursor: Option<&str>) -> ApiResult<usize> {
    match cursor.unwrap_or_default() {
        "" => Ok(0),
        cursor => {
            cursor.parse().map_err(|_| ApiError::bad("invalid cursor").hint("use `next_cursor` of the previous page"))
        }
    }
}

/// The cursor of the next page.
pub(super) fn next(from: usize, limit: usize, n: usize) -> Option<String> {
    from.checked_add(limit).filter(|end| *end < n).map(|end| end.to_string())
}
