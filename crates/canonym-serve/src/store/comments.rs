//! Comments on documents and mentions, in threads that are resolved.

use std::collections::HashMap;

use rusqlite::{Connection, Row, params};

use super::or_not_found;
use crate::error::ApiResult;
use crate::times::{Millis, rfc3339};
use crate::wire::Comment;

const COLUMNS: &str = "SELECT id, mark_id, text, person_id, at, parent_id, resolved_by FROM comments";

fn comment(row: &Row<'_>, names: &HashMap<i64, String>) -> rusqlite::Result<Comment> {
    let resolved_by: Option<i64> = row.get(6)?;
    Ok(Comment {
        id: row.get(0)?,
        mark: row.get(1)?,
        text: row.get(2)?,
        by: names.get(&row.get(3)?).cloned().unwrap_or_default(),
        at: rfc3339(row.get(4)?),
        parent: row.get(5)?,
        resolved_by: resolved_by.map(|person| names.get(&person).cloned().unwrap_or_default()),
    })
}

/// The comments on a document, oldest first.
pub fn of_document(connection: &Connection, document: i64, names: &HashMap<i64, String>) -> ApiResult<Vec<Comment>> {
    let mut statement = connection.prepare_cached(&format!("{COLUMNS} WHERE document_id = ?1 ORDER BY id"))?;
    let rows = statement.query_map([document], |row| comment(row, names))?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

/// One comment on a document.
pub fn get(connection: &Connection, document: i64, id: i64, names: &HashMap<i64, String>) -> ApiResult<Comment> {
    let mut statement = connection.prepare_cached(&format!("{COLUMNS} WHERE document_id = ?1 AND id = ?2"))?;
    or_not_found(statement.query_row([document, id], |row| comment(row, names)), &format!("comment {id}"))
}

/// The number of unresolved threads of a document.
pub fn n_unresolved(connection: &Connection, document: i64) -> ApiResult<usize> {
    let sql = "SELECT count(*) FROM comments WHERE document_id = ?1 AND parent_id IS NULL AND resolved_by IS NULL";
    Ok(connection.prepare_cached(sql)?.query_row([document], |row| row.get::<_, i64>(0))? as usize)
}

/// A new comment.
#[derive(Debug, Clone, Copy)]
pub struct NewRow<'a> {
    /// The document.
    pub document: i64,
    /// The mark that it is about.
    pub mark: Option<i64>,
    /// The first comment of its thread, for a reply.
    pub parent: Option<i64>,
    /// The author.
    pub person: i64,
    /// When.
    pub at: Millis,
    /// The text.
    pub text: &'a str,
}

/// A stored comment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredComment {
    /// The number.
    pub id: i64,
    /// The mark that it is about.
    pub mark: Option<i64>,
    /// The first comment of its thread, for a reply.
    pub parent: Option<i64>,
    /// The author.
    pub person: i64,
    /// When.
    pub at: Millis,
    /// The text.
    pub text: String,
}

/// The comments on a document as stored, oldest first.
pub fn rows(connection: &Connection, document: i64) -> ApiResult<Vec<StoredComment>> {
    let mut statement = connection.prepare_cached(&format!("{COLUMNS} WHERE document_id = ?1 ORDER BY id"))?;
    let rows = statement.query_map([document], |row| {
        Ok(StoredComment {
            id: row.get(0)?,
            mark: row.get(1)?,
            text: row.get(2)?,
            person: row.get(3)?,
            at: row.get(4)?,
            parent: row.get(5)?,
        })
    })?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

/// Adds a comment; its number. A reply reopens its thread.
pub fn add(connection: &Connection, new: &NewRow<'_>) -> ApiResult<i64> {
    let NewRow { document, mark, parent, person, at, text } = *new;
    let sql =
        "INSERT INTO comments (document_id, mark_id, person_id, at, text, parent_id) VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
    connection.execute(sql, params![document, mark, person, at, text, parent])?;
    let id = connection.last_insert_rowid();
    if let Some(parent) = parent {
        resolve(connection, parent, None)?;
    }
    Ok(id)
}

/// Resolves a thread in the name of a person, or reopens it.
pub fn resolve(connection: &Connection, id: i64, person: Option<i64>) -> ApiResult<()> {
    connection.execute("UPDATE comments SET resolved_by = ?2 WHERE id = ?1", params![id, person])?;
    Ok(())
}
