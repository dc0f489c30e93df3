//! Checksums of what is written once: the texts of documents and the changes of events. SQLite does not notice a changed bit in them.

use rusqlite::{Connection, params};
use sha2::{Digest, Sha256};

use crate::error::ApiResult;

/// Tables with the column that is written once, and the column of its checksum.
pub const CHECKED: [(&str, &str, &str); 2] =
    [("documents", "text", "text_checksum"), ("events", "changes", "changes_checksum")];

/// The first 64 bits of the SHA-256 of a text.
pub fn checksum(text: &str) -> i64 {
    of_bytes(text.as_bytes())
}

fn of_bytes(bytes: &[u8]) -> i64 {
    let mut first = [0; 8];
    first.copy_from_slice(&Sha256::digest(bytes)[..8]);
    i64::from_be_bytes(first)
}

/// Fills in the checksums of rows that an older version wrote.
pub fn fill(connection: &Connection) -> ApiResult<()> {
    for (table, column, sum) in CHECKED {
        let mut missing = connection.prepare(&format!("SELECT id, {column} FROM {table} WHERE {sum} IS NULL"))?;
        let mut rows = missing.query([])?;
        let mut update = connection.prepare(&format!("UPDATE {table} SET {sum} = ?2 WHERE id = ?1"))?;
        while let Some(row) = rows.next()? {
            update.execute(params![row.get::<_, i64>(0)?, of_bytes(row.get_ref(1)?.as_bytes().unwrap_or_default())])?;
        }
    }
    Ok(())
}

/// Up to `limit` rows whose content does not match its checksum: table, column and number.
pub fn mismatches(connection: &Connection, limit: usize) -> ApiResult<Vec<(&'static str, &'static str, i64)>> {
    let mut found = Vec::new();
    for (table, column, sum) in CHECKED {
        let mut statement = connection.prepare(&format!("SELECT id, {column}, {sum} FROM {table} ORDER BY id"))?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let stored: Option<i64> = row.get(2)?;
            if stored != Some(of_bytes(row.get_ref(1)?.as_bytes().unwrap_or_default())) && found.len() < limit {
                found.push((table, column, row.get(0)?));
            }
        }
    }
    Ok(found)
}
