//! Time spent on documents, as measured in the browser.

use std::collections::HashMap;

use rusqlite::{Connection, params};

use super::events::NewEvent;
use crate::error::ApiResult;
use crate::times::Millis;

/// Stores the time of an event that finished a document.
pub fn add(connection: &Connection, event: i64, of: &NewEvent<'_>, seconds: f64) -> ApiResult<()> {
    let sql = "INSERT INTO times (event_id, document_id, person_id, at, seconds) VALUES (?1, ?2, ?3, ?4, ?5)";
    connection.execute(sql, params![event, of.document, of.person, of.at, seconds])?;
    Ok(())
}

/// The time that a person spent on a document.
#[derive(Debug, Clone, PartialEq)]
pub struct Work {
    /// The document.
    pub document: i64,
    /// The person.
    pub person: i64,
    /// When they finished it.
    pub at: Millis,
    /// Seconds.
    pub seconds: f64,
    /// The model used for pre-annotation, if queried.
    pub model: Option<String>,
}

/// The measured times of a project, oldest first.
pub fn measured(connection: &Connection, project: i64) -> ApiResult<Vec<Work>> {
    let sql = "SELECT t.document_id, t.person_id, t.at, t.seconds,
            (SELECT e.model FROM events e WHERE e.document_id = t.document_id AND e.kind = 'predict' AND e.id < t.event_id
                ORDER BY e.id DESC LIMIT 1)
        FROM times t JOIN documents d ON d.id = t.document_id WHERE d.project_id = ?1 ORDER BY t.event_id";
    query(connection, sql, project)
}

/// Times estimated from the decisions of a project.
pub fn estimated(connection: &Connection, project: i64) -> ApiResult<Vec<Work>> {
    let sql = "SELECT document_id, person_id, last_at, spent / 1000.0, NULL FROM work
        WHERE project_id = ?1 AND spent > 0";
    query(connection, sql, project)
}

fn query(connection: &Connection, sql: &str, project: i64) -> ApiResult<Vec<Work>> {
    let mut statement = connection.prepare_cached(sql)?;
    let rows = statement.query_map([project], |row| {
        Ok(Work {
            document: row.get(0)?,
            person: row.get(1)?,
            at: row.get(2)?,
            seconds: row.get(3)?,
            model: row.get(4)?,
        })
    })?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

/// The ID and the number of characters of each document of a project.
pub fn lengths(connection: &Connection, project: i64) -> ApiResult<HashMap<i64, (String, i64)>> {
    let sql = "SELECT id, external_id, length(text) FROM documents WHERE project_id = ?1";
    let mut statement = connection.prepare_cached(sql)?;
    let rows = statement.query_map([project], |row| Ok((row.get(0)?, (row.get(1)?, row.get(2)?))))?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}
