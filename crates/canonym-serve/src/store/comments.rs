//! Comments on documents and mentions.

use std::collections::HashMap;

use rusqlite::{Connection, params};

use crate::error::ApiResult;
use crate::times::{Millis, rfc3339};
use crate::wire::Comment;

/// The comments on a document, oldest first.
pub fn of_document(connection: &Connection, document: i64, names: &HashMap<i64, String>) -> ApiResult<Vec<Comment>> {
    let sql = "SELECT id, mark_id, text, person_id, at FROM comments WHERE document_id = ?1 ORDER BY id";
    let mut statement = connection.prepare_cached(sql)?;
    let rows = statement.query_map(params![document], |row| {
        Ok(Comment {
            id: row.get(0)?,
            mark: row.get(1)?,
            text: row.get(2)?,
            by: names.get(&row.get(3)?).cloned().unwrap_or_default(),
            at: rfc3339(row.get(4)?),
        })
    })?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

/// Adds a comment; its number.
pub fn add(
    connection: &Connection,
    document: i64,
    mark: Option<i64>,
    person: i64,
    at: Millis,
    text: &str,
) -> ApiResult<i64> {
    let sql = "INSERT INTO comments (document_id, mark_id, person_id, at, text) VALUES (?1, ?2, ?3, ?4, ?5)";
    connection.execute(sql, params![document, mark, person, at, text])?;
    Ok(connection.last_insert_rowid())
}
