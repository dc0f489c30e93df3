//! Checksums of what is written once: the texts of documents and the changes of events. SQLite does not notice a changed bit in them.

use rusqlite::types::ValueRef;
use rusqlite::{Connection, params};
use sha2::{Digest, Sha256};

use crate::error::{ApiError, ApiResult};

/// Tables with the column that is written once, and the column of its checksum.
pub const CHECKED: [(&str, &str, &str); 2] =
    [("documents", "text", "text_checksum"), ("events", "changes", "changes_checksum")];

/// The first version of a database with checksums.
pub const SINCE: i64 = 12;

/// The first 64 bits of the SHA-256 of a text.
pub fn checksum(text: &str) -> i64 {
    of_bytes(text.as_bytes())
}

fn of_bytes(bytes: &[u8]) -> i64 {
    let mut first = [0; 8];
    first.copy_from_slice(&Sha256::digest(bytes)[..8]);
    i64::from_be_bytes(first)
}

/// The checksum of a stored text; `None` for a value of another type.
fn of_value(value: ValueRef<'_>) -> Option<i64> {
    match value {
        ValueRef::Text(bytes) => Some(of_bytes(bytes)),
        _ => None,
    }
}

/// Fills in the checksums of rows that an older version wrote.
///
/// # Errors
/// If a row holds no text.
pub fn fill(connection: &Connection) -> ApiResult<()> {
    for (table, column, sum) in CHECKED {
        let mut missing = connection.prepare(&format!("SELECT id, {column} FROM {table} WHERE {sum} IS NULL"))?;
        let mut rows = missing.query([])?;
        let mut update = connection.prepare(&format!("UPDATE {table} SET {sum} = ?2 WHERE id = ?1"))?;
        while let Some(row) = rows.next()? {
            let id: i64 = row.get(0)?;
            let sum = of_value(row.get_ref(1)?).ok_or_else(|| {
                ApiError::damaged(&format!("column `{column}` of row {id} of table `{table}` holds no text"))
            })?;
            update.execute(params![id, sum])?;
        }
    }
    Ok(())
}

/// Up to `limit` rows whose content is no text or does not match its checksum: table, column and number.
pub fn mismatches(connection: &Connection, limit: usize) -> ApiResult<Vec<(&'static str, &'static str, i64)>> {
    let mut found = Vec::new();
    for (table, column, sum) in CHECKED {
        let mut statement = connection.prepare(&format!("SELECT id, {column}, {sum} FROM {table} ORDER BY id"))?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let stored: Option<i64> = row.get(2)?;
            let sum = of_value(row.get_ref(1)?);
            if (sum.is_none() || stored != sum) && found.len() < limit {
                found.push((table, column, row.get(0)?));
            }
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_without_a_text_are_errors_with_table_and_row() {
        let connection = Connection::open_in_memory().unwrap();
        let tables = "CREATE TABLE documents (id INTEGER, text, text_checksum INTEGER);
            CREATE TABLE events (id INTEGER, changes, changes_checksum INTEGER);
            INSERT INTO documents VALUES (1, '', NULL), (2, 'dry cough', NULL)";
        connection.execute_batch(tables).unwrap();
        fill(&connection).unwrap();
        assert!(mismatches(&connection, 9).unwrap().is_empty());
        for value in ["NULL", "7", "x'00'"] {
            let sql = format!("DELETE FROM events; INSERT INTO events VALUES (5, {value}, NULL)");
            connection.execute_batch(&sql).unwrap();
            let error = fill(&connection).unwrap_err().to_string();
            assert!(error.ends_with("column `changes` of row 5 of table `events` holds no text"), "{error}");
            assert_eq!(mismatches(&connection, 9).unwrap(), [("events", "changes", 5)]);
        }
    }
}
