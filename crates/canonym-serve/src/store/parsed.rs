//! Columns that hold JSON or one of several names, read as the other modules read them, so that faults are found before they are met.

use rusqlite::types::Type;
use rusqlite::{Connection, Row};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::documents::ImportedContent;
use super::{models, parse_json, parse_name};
use crate::engine::CurvePoint;
use crate::error::{ApiError, ApiResult};
use crate::marks::Changes;
use crate::wire::{JobState, ProjectScope, ProposalKind, Role, SynonymScope};

/// Parses a column of row `id` of a table.
type Parse = fn(&Row<'_>, usize, &str, i64) -> rusqlite::Result<()>;

/// Tables with their columns that are parsed, except derived ones, which are rebuilt from events.
const PARSED: [(&str, &str, Parse); 11] = [
    ("people", "role", |row, column, table, id| parse_name(row, column, table, id, Role::parse).map(drop)),
    ("projects", "scope", json::<ProjectScope>),
    ("documents", "beside", content),
    ("events", "changes", json::<Changes>),
    ("answers", "answer", json::<Value>),
    ("jobs", "state", |row, column, table, id| parse_name(row, column, table, id, JobState::parse).map(drop)),
    ("jobs", "settings", json::<Value>),
    ("jobs", "curve", json::<Vec<CurvePoint>>),
    ("models", "dev", json::<models::Figures>),
    ("proposals", "kind", |row, column, table, id| parse_name(row, column, table, id, ProposalKind::parse).map(drop)),
    ("proposals", "scope", |row, column, table, id| parse_name(row, column, table, id, SynonymScope::parse).map(drop)),
];

fn json<T: DeserializeOwned>(row: &Row<'_>, column: usize, table: &str, id: i64) -> rusqlite::Result<()> {
    parse_json::<T>(row, column, table, id).map(drop)
}

fn content(row: &Row<'_>, column: usize, table: &str, id: i64) -> rusqlite::Result<()> {
    let content: ImportedContent = parse_json(row, column, table, id)?;
    content.residue().map(drop).map_err(|error| {
        let message = format!("cannot read row {id} of table `{table}`: {error}");
        rusqlite::Error::FromSqlConversionFailure(column, Type::Text, message.into())
    })
}

/// Up to `limit` faults of each column: table and message. Columns that a database of an older version lacks are skipped.
pub fn faults(connection: &Connection, limit: usize) -> ApiResult<Vec<(&'static str, String)>> {
    let mut found = Vec::new();
    for (table, column, parse) in PARSED {
        let has_column = "SELECT EXISTS (SELECT 1 FROM pragma_table_info(?1) WHERE name = ?2)";
        if !connection.query_row(has_column, [table, column], |row| row.get(0))? {
            continue;
        }
        let sql = format!("SELECT rowid, {column} FROM {table} WHERE {column} IS NOT NULL ORDER BY rowid");
        let mut statement = connection.prepare(&sql)?;
        let mut rows = statement.query([])?;
        let mut n_found = 0;
        while let Some(row) = rows.next()? {
            if n_found == limit {
                break;
            }
            if let Err(error) = parse(row, 1, table, row.get(0)?) {
                found.push((table, message(error)));
                n_found += 1;
            }
        }
    }
    Ok(found)
}

/// The message of an error, without a word about types of the programming language.
fn message(error: rusqlite::Error) -> String {
    match error {
        rusqlite::Error::FromSqlConversionFailure(_, _, cause) => cause.to_string(),
        error => ApiError::from(error).message,
    }
}
