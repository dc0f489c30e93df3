//! Events. They are written once and never changed; marks are derived from them.

use rusqlite::{Connection, OptionalExtension, Row, params};
use serde_json::Value;

use super::checksums::checksum;
use super::{derived, parse_json};
use crate::error::{ApiError, ApiResult};
use crate::marks::{Change, Changes, Event};
use crate::times::Millis;

/// A new event.
#[derive(Debug, Clone, Default)]
pub struct NewEvent<'a> {
    /// The document.
    pub document: i64,
    /// The first event of its batch; itself if `None`.
    pub batch: Option<i64>,
    /// The person; `None` for a model.
    pub person: Option<i64>,
    /// When.
    pub at: Millis,
    /// The kind: that of a decision, `import`, `predict`, `undo`, `redo` or `comment`.
    pub kind: &'a str,
    /// The model that predicted the marks.
    pub model: Option<&'a str>,
    /// The client ID of the request.
    pub client_id: Option<&'a str>,
    /// The job.
    pub job: Option<i64>,
    /// The batch that it undoes or redoes.
    pub undoes: Option<i64>,
}

fn event(row: &Row<'_>) -> rusqlite::Result<Event> {
    let id = row.get(0)?;
    Ok(Event {
        id,
        batch: row.get(1)?,
        person: row.get(2)?,
        at: row.get(3)?,
        kind: row.get(4)?,
        model: row.get(5)?,
        undoes: row.get(6)?,
        changes: parse_json(row, 7, "events", id)?,
    })
}

/// Stores an event and applies its changes; returns its number.
pub fn add(connection: &Connection, new: &NewEvent<'_>, changes: &Changes) -> ApiResult<i64> {
    let body = serde_json::to_string(changes)?;
    let sql = "INSERT INTO events (document_id, batch, person_id, at, kind, model, client_id, job_id, undoes, changes,
        changes_checksum) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)";
    connection.prepare_cached(sql)?.execute(params![
        new.document,
        new.batch.unwrap_or(0),
        new.person,
        new.at,
        new.kind,
        new.model,
        new.client_id,
        new.job,
        new.undoes,
        body,
        checksum(&body)
    ])?;
    let id = connection.last_insert_rowid();
    if new.batch.is_none() {
        connection.prepare_cached("UPDATE events SET batch = id WHERE id = ?1")?.execute([id])?;
    }
    update_derived(connection, id, new, changes)?;
    Ok(id)
}

/// Updates everything that is derived from events.
fn update_derived(connection: &Connection, id: i64, event: &NewEvent<'_>, changes: &Changes) -> ApiResult<()> {
    let project = derived::project_of(connection, event.document)?;
    apply(connection, project, event.document, id, changes)?;
    let sql = "UPDATE documents SET version = ?2 WHERE id = ?1";
    connection.prepare_cached(sql)?.execute([event.document, id])?;
    derived::record_event(connection, project, id, event, changes)
}

/// Applies the changes of an event to the marks.
fn apply(connection: &Connection, project: i64, document: i64, event: i64, changes: &Changes) -> ApiResult<()> {
    for change in &changes.marks {
        derived::count_mark(connection, project, change.id, -1)?;
        let Some(mark) = &change.after else {
            connection.prepare_cached("DELETE FROM marks WHERE id = ?1")?.execute([change.id])?;
            continue;
        };
        let body = serde_json::to_string(mark)?;
        let sql = "INSERT OR REPLACE INTO marks
            (id, document_id, source, state, is_deleted, event_id, body, kind, p_mention, margin, was_read)
            VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)";
        connection.prepare_cached(sql)?.execute(params![
            change.id,
            document,
            mark.source.name(),
            mark.state.name(),
            mark.is_deleted,
            event,
            body,
            mark.kind,
            mark.p_mention.filter(|value| value.is_finite()),
            mark.margin().filter(|value| value.is_finite()).unwrap_or(0.0),
            mark.was_read()
        ])?;
        derived::count_mark(connection, project, change.id, 1)?;
    }
    if let Some((_, after)) = changes.finished {
        connection
            .prepare_cached("UPDATE documents SET is_finished = ?2 WHERE id = ?1")?
            .execute(params![document, after])?;
    }
    Ok(())
}

/// Rebuilds the marks and everything else that is derived from events.
pub fn rebuild(connection: &Connection) -> ApiResult<()> {
    rebuild_of(connection, "true")
}

/// Rebuilds what is derived from the events of one project.
pub fn rebuild_project(connection: &Connection, project: i64) -> ApiResult<()> {
    rebuild_of(connection, &format!("project_id = {project}"))
}

fn rebuild_of(connection: &Connection, wanted: &str) -> ApiResult<()> {
    let of = format!("document_id IN (SELECT id FROM documents WHERE {wanted})");
    connection.execute(&format!("DELETE FROM marks WHERE {of}"), [])?;
    connection.execute(&format!("UPDATE documents SET is_finished = 0, version = 0 WHERE {wanted}"), [])?;
    derived::clear(connection, wanted)?;
    let sql = format!("SELECT id, document_id, changes, person_id, at, kind FROM events WHERE {of} ORDER BY id");
    let mut statement = connection.prepare(&sql)?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let (id, kind): (i64, String) = (row.get(0)?, row.get(5)?);
        let event = NewEvent {
            document: row.get(1)?,
            person: row.get(3)?,
            at: row.get(4)?,
            kind: &kind,
            ..NewEvent::default()
        };
        update_derived(connection, id, &event, &parse_json(row, 2, "events", id)?)?;
    }
    Ok(())
}

/// The events of a document, oldest first.
pub fn of_document(connection: &Connection, document: i64) -> ApiResult<Vec<Event>> {
    let sql =
        "SELECT id, batch, person_id, at, kind, model, undoes, changes FROM events WHERE document_id = ?1 ORDER BY id";
    let mut statement = connection.prepare_cached(sql)?;
    let rows = statement.query_map([document], event)?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

/// The documents of a project that two or more people reviewed, with their versions, in order.
pub fn shared(connection: &Connection, project: i64) -> ApiResult<Vec<(i64, i64)>> {
    let sql = "SELECT d.id, d.version FROM work w JOIN documents d ON d.id = w.document_id
        WHERE w.project_id = ?1 GROUP BY w.document_id HAVING count(*) > 1 ORDER BY w.document_id";
    let mut statement = connection.prepare_cached(sql)?;
    let rows = statement.query_map([project], |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

/// The events of a job, with their documents.
pub fn of_job(connection: &Connection, job: i64) -> ApiResult<Vec<(i64, Event)>> {
    let sql = "SELECT id, batch, person_id, at, kind, model, undoes, changes, document_id FROM events
        WHERE job_id = ?1 ORDER BY id";
    let mut statement = connection.prepare_cached(sql)?;
    let rows = statement.query_map([job], |row| Ok((row.get(8)?, event(row)?)))?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

/// The events of a job in one document.
pub fn of_job_in(connection: &Connection, job: i64, document: i64) -> ApiResult<Vec<Event>> {
    let sql = "SELECT id, batch, person_id, at, kind, model, undoes, changes FROM events
        WHERE job_id = ?1 AND document_id = ?2 ORDER BY id";
    let mut statement = connection.prepare_cached(sql)?;
    let rows = statement.query_map([job, document], event)?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

/// The documents of a project with events of a batch that a person made, in order.
pub fn documents_of_batch(connection: &Connection, project: i64, batch: i64, person: i64) -> ApiResult<Vec<i64>> {
    let sql = "SELECT DISTINCT e.document_id FROM events e JOIN documents d ON d.id = e.document_id
        WHERE e.batch = ?2 AND d.project_id = ?1 AND e.person_id = ?3 ORDER BY 1";
    let mut statement = connection.prepare_cached(sql)?;
    let rows = statement.query_map([project, batch, person], |row| row.get(0))?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

/// What was spread from the decisions of a batch, by document.
pub fn spread_of_batch(connection: &Connection, project: i64, batch: i64) -> ApiResult<Vec<(i64, Changes)>> {
    let sql = "SELECT e.document_id, e.changes, e.id FROM events e JOIN documents d ON d.id = e.document_id
        WHERE e.batch = ?2 AND d.project_id = ?1 AND e.person_id IS NULL ORDER BY e.id";
    let mut statement = connection.prepare_cached(sql)?;
    let rows =
        statement.query_map([project, batch], |row| Ok((row.get(0)?, parse_json(row, 1, "events", row.get(2)?)?)))?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

/// The person who made an event; `None` for a model.
pub fn person_of(connection: &Connection, event: i64) -> ApiResult<Option<i64>> {
    let sql = "SELECT person_id FROM events WHERE id = ?1";
    Ok(connection.query_row(sql, [event], |row| row.get(0)).optional()?.flatten())
}

/// The number of the next mark.
pub fn next_mark(connection: &Connection) -> ApiResult<i64> {
    Ok(connection.query_row("SELECT next FROM counters WHERE name = 'mark'", [], |row| row.get(0))?)
}

/// Stores the number of the next mark.
pub fn set_next_mark(connection: &Connection, next: i64) -> ApiResult<()> {
    connection.execute("UPDATE counters SET next = ?1 WHERE name = 'mark'", [next])?;
    Ok(())
}

/// The stored response to an earlier request with the same client ID.
pub fn stored_response(
    connection: &Connection,
    person: i64,
    client_id: &str,
    document: i64,
) -> ApiResult<Option<Value>> {
    let sql = "SELECT document_id, answer, rowid FROM answers WHERE person_id = ?1 AND client_id = ?2";
    let answer = |row: &Row<'_>| Ok((row.get(0)?, parse_json(row, 1, "answers", row.get(2)?)?));
    let row: Option<(i64, Value)> = connection.query_row(sql, params![person, client_id], answer).optional()?;
    match row {
        Some((of, _)) if of != document => {
            Err(ApiError::conflict("this client ID was already used for another document")
                .hint("use a new one for each request"))
        }
        Some((_, answer)) => Ok(Some(answer)),
        None => Ok(None),
    }
}

/// Stores the response to a request.
pub fn store_response(
    connection: &Connection,
    person: i64,
    client_id: &str,
    document: i64,
    answer: &str,
) -> ApiResult<()> {
    let sql = "INSERT INTO answers (person_id, client_id, document_id, answer) VALUES (?1, ?2, ?3, ?4)";
    connection.execute(sql, params![person, client_id, document, answer])?;
    Ok(())
}

/// The changes of the event that last finished a document, without marks that it added: a document can be imported as finished.
pub fn last_finish_changes(connection: &Connection, document: i64) -> ApiResult<Vec<Change>> {
    let finished = |event: &&Event| matches!(event.changes.finished, Some((_, true)));
    let all = of_document(connection, document)?;
    let marks = all.iter().rev().find(finished).map(|event| event.changes.marks.clone()).unwrap_or_default();
    Ok(marks.into_iter().filter(|change| change.before.is_some()).collect())
}

/// The batches of a person on a document that can be undone and redone, latest last.
pub fn undo_stacks(events: &[Event], person: i64) -> (Vec<i64>, Vec<i64>) {
    let (mut done, mut undone): (Vec<i64>, Vec<i64>) = Default::default();
    for event in events.iter().filter(|event| event.person == Some(person)) {
        match (event.kind.as_str(), event.undoes) {
            ("import" | "comment", _) => {}
            ("undo", Some(batch)) => {
                done.retain(|other| *other != batch);
                undone.push(batch);
            }
            ("redo", Some(batch)) => {
                undone.retain(|other| *other != batch);
                done.push(batch);
            }
            _ if done.last() != Some(&event.batch) => {
                done.push(event.batch);
                undone.clear();
            }
            _ => {}
        }
    }
    (done, undone)
}
