//! How long people worked on documents, as their browsers measured it.

use std::collections::HashMap;

use rusqlite::{Connection, params};

use super::events::NewEvent;
use crate::error::ApiResult;
use crate::times::Millis;

/// Keeps the time of an event that finished a document.
pub fn add(connection: &Connection, event: i64, of: &NewEvent<'_>, seconds: f64) -> ApiResult<()> {
    let sql = "INSERT INTO times (event_id, document_id, person_id, at, seconds) VALUES (?1, ?2, ?3, ?4, ?5)";
    connection.execute(sql, params![event, of.document, of.person, of.at, seconds])?;
    Ok(())
}

/// The times of a project by event.
pub fn of_project(connection: &Connection, project: i64) -> ApiResult<HashMap<i64, f64>> {
    let sql =
        "SELECT t.event_id, t.seconds FROM times t JOIN documents d ON d.id = t.document_id WHERE d.project_id = ?1";
    let mut statement = connection.prepare_cached(sql)?;
    let rows = statement.query_map([project], |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

/// An event without what it changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// The event.
    pub id: i64,
    /// The document.
    pub document: i64,
    /// Who made it; nobody where a model did.
    pub person: Option<i64>,
    /// When.
    pub at: Millis,
    /// What it is.
    pub kind: String,
    /// The model behind it.
    pub model: Option<String>,
}

/// The events of a project without what they changed, oldest first.
pub fn steps(connection: &Connection, project: i64) -> ApiResult<Vec<Step>> {
    let sql = "SELECT e.id, e.document_id, e.person_id, e.at, e.kind, e.model FROM events e
        JOIN documents d ON d.id = e.document_id WHERE d.project_id = ?1 ORDER BY e.id";
    let mut statement = connection.prepare_cached(sql)?;
    let rows = statement.query_map([project], |row| {
        Ok(Step {
            id: row.get(0)?,
            document: row.get(1)?,
            person: row.get(2)?,
            at: row.get(3)?,
            kind: row.get(4)?,
            model: row.get(5)?,
        })
    })?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

/// The number and the characters of each document of a project.
pub fn lengths(connection: &Connection, project: i64) -> ApiResult<HashMap<i64, (String, i64)>> {
    let sql = "SELECT id, external_id, length(text) FROM documents WHERE project_id = ?1";
    let mut statement = connection.prepare_cached(sql)?;
    let rows = statement.query_map([project], |row| Ok((row.get(0)?, (row.get(1)?, row.get(2)?))))?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}
