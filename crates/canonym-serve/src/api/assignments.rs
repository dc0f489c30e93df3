//! Blind annotation: documents are assigned to annotators as copies, and their answers are taken over when all of them
//! have finished.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use axum::extract::State;
use rusqlite::{Connection, Transaction};

use super::documents::PageQuery;
use super::groups::{next, offset};
use super::stats::seconds;
use super::{Json, PAGE_LIMIT, PathParam, QueryParams};
use crate::abort;
use crate::error::{ApiError, ApiResult};
use crate::events::DocumentVersion;
use crate::guard::{Client, Curator};
use crate::marks::collect::{Answers, collect};
use crate::marks::disagree::conflicts;
use crate::marks::{Change, Changes, Source};
use crate::state::App;
use crate::store::assignments::{self, Assigned};
use crate::store::comments::{self, NewRow};
use crate::store::events::{self, NewEvent};
use crate::store::{documents, members, people, projects, time_spent};
use crate::wire::{
    AnnotatorProgress, AssignedDocument, Assignments, DocumentAnnotator, NewAssignments, NewProject, Person, Project,
    Role,
};

/// The maximum length of the name of a project, in bytes.
const MAX_NAME: usize = 200;

/// `GET /projects/{p}/assignments`: annotators, their progress, and the assigned documents.
pub async fn list(
    State(app): State<Arc<App>>,
    _: Person,
    PathParam(project): PathParam<i64>,
    QueryParams(query): QueryParams<PageQuery>,
) -> ApiResult<axum::Json<Assignments>> {
    let limit = PAGE_LIMIT.check(query.limit, "limit")?;
    let from = offset(query.cursor.as_deref())?;
    let page = app.blocking(move |app| {
        app.store.read(|connection| shown(app, connection, project, Page { offset: from, limit }))
    });
    Ok(axum::Json(page.await?))
}

/// Which assigned documents are listed.
#[derive(Debug, Clone, Copy)]
struct Page {
    offset: usize,
    limit: usize,
}

fn shown(app: &App, connection: &Connection, project: i64, page: Page) -> ApiResult<Assignments> {
    let Page { offset: from, limit } = page;
    projects::check(connection, project)?;
    let names = people::names(connection)?;
    let name = |person: i64| names.get(&person).cloned().unwrap_or_default();
    let mut annotators = Vec::new();
    for one in assignments::progress(connection, project)? {
        let measured = time_spent::measured(connection, one.project)?;
        annotators.push(AnnotatorProgress {
            id: one.person,
            name: name(one.person),
            project: one.project,
            n_documents: one.n_documents,
            n_finished: one.n_finished,
            n_decisions: one.n_decisions,
            seconds: seconds(measured.into_iter().map(|work| work.seconds).collect()).map(|found| found.median),
        });
    }
    let all = assignments::documents(connection, project)?;
    let mut rows = Vec::new();
    for id in all.iter().skip(from).take(limit) {
        let stored = documents::get(connection, *id)?;
        let assigned = assignments::of_document(connection, *id)?;
        let is_collected = assigned.iter().any(|one| one.is_collected);
        let annotator = |one: &Assigned| DocumentAnnotator { name: name(one.person), is_finished: one.is_finished };
        rows.push(AssignedDocument {
            document: *id,
            external_id: stored.external_id,
            annotators: assigned.iter().map(annotator).collect(),
            is_collected,
            n_conflicts: app.conflicts_of(connection, *id, stored.version)?.len(),
            is_finished: stored.is_finished,
        });
    }
    Ok(Assignments {
        people: annotators,
        documents: rows,
        next_cursor: next(from, limit, all.len()),
        n_assigned: all.len(),
        n_unassigned: assignments::unassigned(connection, project)?.len(),
    })
}

/// `POST /projects/{p}/assignments`: assigns documents that have no annotators yet.
pub async fn add(
    State(app): State<Arc<App>>,
    Curator(curator): Curator,
    axum::Extension(client): axum::Extension<Client>,
    PathParam(project): PathParam<i64>,
    Json(new): Json<NewAssignments>,
) -> ApiResult<axum::Json<Assignments>> {
    let page = app.blocking(move |app| {
        app.store.write(|transaction| {
            let of = projects::get(transaction, project)?;
            assign(app, transaction, &of, &new, &curator)
        })?;
        app.store.truncate_log();
        let page = app
            .store
            .read(|connection| shown(app, connection, project, Page { offset: 0, limit: PAGE_LIMIT.default }))?;
        let what = format!("project {project}: {} documents to {} people", page.n_assigned, page.people.len());
        app.audit.record(app.now(), &curator.name, Some(client.0), "assigned", &what);
        Ok(page)
    });
    let page = page.await?;
    // Event streams check their permissions again.
    app.permissions_changed();
    Ok(axum::Json(page))
}

fn assign(
    app: &App,
    transaction: &Transaction<'_>,
    of: &Project,
    new: &NewAssignments,
    curator: &Person,
) -> ApiResult<()> {
    if of.parent.is_some() {
        return Err(
            ApiError::bad("this project contains an annotator's copies").hint("assign documents in the parent project")
        );
    }
    let annotators = annotators(transaction, &new.people)?;
    let n_each = new.n_annotators.unwrap_or(annotators.len());
    if !(1..=annotators.len()).contains(&n_each) {
        let message = format!("`n_annotators` must be between 1 and the number of people, {}", annotators.len());
        return Err(ApiError::bad(message));
    }
    let mut wanted = assignments::unassigned(transaction, of.id)?;
    wanted.truncate(new.n_documents.unwrap_or(usize::MAX));
    if wanted.is_empty() {
        return Err(ApiError::bad("all unfinished documents are already assigned").hint("import more documents first"));
    }
    let mut places = HashMap::new();
    for person in &annotators {
        places.insert(person.id, project_of(app, transaction, of, person, n_each)?);
    }
    let mut loads: HashMap<i64, usize> =
        assignments::progress(transaction, of.id)?.into_iter().map(|one| (one.person, one.n_documents)).collect();
    let with_predictions = new.predictions.unwrap_or(true);
    let mut next = events::next_mark(transaction)?;
    for document in wanted {
        abort::check()?;
        let mut chosen: Vec<i64> = annotators.iter().map(|person| person.id).collect();
        // Whoever has the fewest documents comes first; the sort is stable.
        chosen.sort_by_key(|person| loads.get(person).copied().unwrap_or_default());
        for person in chosen.into_iter().take(n_each) {
            *loads.entry(person).or_default() += 1;
            let stored = documents::get(transaction, document)?;
            let Some(copy) = documents::add(transaction, places[&person], &stored.restore()?)? else { continue };
            let held = documents::marks(transaction, document)?.into_values().map(|held| held.mark);
            let is_kept = |mark: &crate::marks::MarkState| {
                mark.is_listed() && (mark.source == Source::Gold || (with_predictions && mark.is_open()))
            };
            let marks: Vec<Change> = (next..)
                .zip(held.filter(is_kept))
                .map(|(id, mark)| Change { id, before: None, after: Some(mark) })
                .collect();
            next += marks.len() as i64;
            let at = app.now();
            let event =
                NewEvent { document: copy, person: Some(curator.id), at, kind: "import", ..NewEvent::default() };
            events::add(transaction, &event, &Changes { marks, finished: None })?;
            assignments::add(transaction, document, person, copy)?;
        }
    }
    events::set_next_mark(transaction, next)
}

/// The people who are to annotate.
fn annotators(connection: &Connection, ids: &[i64]) -> ApiResult<Vec<Person>> {
    let mut people: Vec<Person> = Vec::new();
    for id in ids {
        let person = people::get(connection, *id)?;
        if !person.is_active {
            return Err(ApiError::bad(format!("account “{}” is deactivated", person.name)).hint("choose another one"));
        }
        if !people.contains(&person) {
            people.push(person);
        }
    }
    match people.is_empty() {
        true => Err(ApiError::bad("`people` is empty").hint("choose at least one annotator")),
        false => Ok(people),
    }
}

/// The project with the copies of an annotator, created if needed. Somebody who is to work blind no longer sees the originals.
fn project_of(
    app: &App,
    transaction: &Transaction<'_>,
    of: &Project,
    person: &Person,
    n_each: usize,
) -> ApiResult<i64> {
    if n_each > 1 && person.role == Role::Annotator {
        members::remove(transaction, of.id, person.id)?;
    }
    if let Some(project) = assignments::children(transaction, of.id)?.get(&person.id) {
        return Ok(*project);
    }
    let mut name = of.name.clone();
    while name.len() + person.name.len() + 3 > MAX_NAME && name.pop().is_some() {}
    let new = NewProject {
        name: format!("{name} – {}", person.name),
        description: Some(of.description.clone()),
        guideline: Some(of.guideline.clone()),
        scope: None,
    };
    let project = projects::add(transaction, &new, &of.kb_fingerprint, &of.strategy, app.now())?;
    projects::set_scope(transaction, project, &of.scope)?;
    assignments::set_parent(transaction, project, of.id, person.id)?;
    members::add(transaction, project, person.id)?;
    Ok(project)
}

/// `DELETE /projects/{p}/assignments/{id}`: withdraws the unfinished documents of an annotator.
pub async fn withdraw(
    State(app): State<Arc<App>>,
    Curator(curator): Curator,
    axum::Extension(client): axum::Extension<Client>,
    PathParam((project, person)): PathParam<(i64, i64)>,
) -> ApiResult<axum::Json<Assignments>> {
    let page = app.blocking(move |app| {
        app.store.write(|transaction| {
            let unfinished = assignments::unfinished(transaction, project, person)?;
            if unfinished.is_empty() {
                return Err(ApiError::not_found("this person has no unfinished documents here"));
            }
            for (_, copy) in &unfinished {
                documents::delete(transaction, "id", *copy)?;
            }
            if let Some(copies) = assignments::children(transaction, project)?.get(&person) {
                events::rebuild_project(transaction, *copies)?;
            }
            for (original, _) in &unfinished {
                collect_document(app, transaction, *original)?;
            }
            Ok(())
        })?;
        let page = app
            .store
            .read(|connection| shown(app, connection, project, Page { offset: 0, limit: PAGE_LIMIT.default }))?;
        let what = format!("project {project}: unfinished documents of person {person}");
        app.audit.record(app.now(), &curator.name, Some(client.0), "withdrawn", &what);
        Ok(page)
    });
    Ok(axum::Json(page.await?))
}

/// Takes the answers of all annotators over when the last of them finishes a copy; returns the project and version of the original.
pub(super) fn collect_copy(
    app: &App,
    transaction: &Transaction<'_>,
    copy: i64,
) -> ApiResult<Option<(i64, DocumentVersion)>> {
    match assignments::original_of(transaction, copy)? {
        Some(original) => collect_document(app, transaction, original),
        None => Ok(None),
    }
}

fn collect_document(
    app: &App,
    transaction: &Transaction<'_>,
    original: i64,
) -> ApiResult<Option<(i64, DocumentVersion)>> {
    let assigned = assignments::of_document(transaction, original)?;
    if assigned.is_empty() || assigned.iter().any(|one| one.is_collected || !one.is_finished) {
        return Ok(None);
    }
    let stored = documents::get(transaction, original)?;
    let now = documents::marks(transaction, original)?.into_iter().map(|(id, held)| (id, held.mark)).collect();
    let mut answers = Vec::new();
    for one in &assigned {
        let held = documents::marks(transaction, one.copy)?.into_iter().map(|(id, held)| (id, held.mark));
        answers.push(Answers { person: one.person, marks: held.filter(|(_, mark)| mark.is_human()).collect() });
    }
    let (at, mut next) = (app.now(), events::next_mark(transaction)?);
    let mut batches: HashMap<Option<i64>, i64> = HashMap::new();
    let mut taken: HashMap<i64, i64> = HashMap::new();
    let mut version = stored.version;
    for one in collect(&now, &answers, at, &mut next) {
        let model = one.change.before.as_ref().and_then(|mark| mark.model.clone());
        let event = NewEvent {
            document: original,
            batch: batches.get(&one.person).copied(),
            person: one.person,
            at,
            kind: one.kind,
            model: model.as_deref(),
            ..NewEvent::default()
        };
        taken.extend(one.from.map(|from| (from, one.change.id)));
        version = events::add(transaction, &event, &Changes { marks: vec![one.change], finished: None })?;
        batches.entry(one.person).or_insert(version);
    }
    events::set_next_mark(transaction, next)?;
    for one in &assigned {
        take_comments(transaction, one, original, &taken)?;
    }
    assignments::set_collected(transaction, original)?;
    if let Some(person) = assigned.last().map(|one| one.person) {
        version = finish_if_resolved(app, transaction, original, Finisher { person, batch: None })?.unwrap_or(version);
    }
    Ok(Some((stored.project, DocumentVersion { id: original, version })))
}

fn take_comments(
    transaction: &Transaction<'_>,
    from: &Assigned,
    original: i64,
    taken: &HashMap<i64, i64>,
) -> ApiResult<()> {
    let mut threads: BTreeMap<i64, i64> = BTreeMap::new();
    for row in comments::rows(transaction, from.copy)? {
        let new = NewRow {
            document: original,
            mark: row.mark.and_then(|mark| taken.get(&mark).copied()),
            parent: row.parent.and_then(|parent| threads.get(&parent).copied()),
            person: row.person,
            at: row.at,
            text: &row.text,
        };
        threads.insert(row.id, comments::add(transaction, &new)?);
    }
    Ok(())
}

/// Who finishes a document, and the batch that it belongs to.
#[derive(Debug, Clone, Copy)]
pub(super) struct Finisher {
    pub person: i64,
    pub batch: Option<i64>,
}

/// Finishes a document whose answers were taken over once no conflict is left; returns its version.
pub(super) fn finish_if_resolved(
    app: &App,
    transaction: &Transaction<'_>,
    document: i64,
    Finisher { person, batch }: Finisher,
) -> ApiResult<Option<i64>> {
    let is_collected = assignments::of_document(transaction, document)?.iter().any(|one| one.is_collected);
    if !is_collected
        || documents::is_finished(transaction, document)?
        || !conflicts(&events::of_document(transaction, document)?).is_empty()
    {
        return Ok(None);
    }
    let event =
        NewEvent { document, batch, person: Some(person), at: app.now(), kind: "finish", ..NewEvent::default() };
    let changes = Changes { marks: Vec::new(), finished: Some((false, true)) };
    events::add(transaction, &event, &changes).map(Some)
}
