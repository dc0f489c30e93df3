//! What is kept: one SQLite file in the folder of data.
//!
//! It is in WAL mode with `synchronous = FULL`: a commit waits for the disk, so that neither a kill of the process nor a loss of power takes back what
//! was answered. A decision is a commit of a few kilobytes; the wait is that of one flush.

pub mod derived;
pub mod documents;
pub mod events;
pub mod jobs;
pub mod models;
pub mod pace;
pub mod people;
pub mod projects;

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rusqlite::{Connection, OpenFlags, OptionalExtension, Transaction, TransactionBehavior};

use crate::error::{ApiError, ApiResult};

/// The file in the folder of data.
pub const FILE: &str = "canonym.sqlite";

/// What each version of the file adds to the one before. A row is never changed: a new one follows.
const MIGRATIONS: [&str; 3] = [include_str!("001.sql"), include_str!("002.sql"), include_str!("003.sql")];

/// Connections that read while one writes.
const MAX_READERS: usize = 8;

/// Statements that a connection keeps prepared.
const MAX_STATEMENTS: usize = 64;

/// What a connection holds of the file in memory, in KiB.
const CACHE: i64 = 8 << 10;

/// The opened file.
#[derive(Debug)]
pub struct Store {
    path: PathBuf,
    writer: Mutex<Connection>,
    readers: Mutex<Vec<Connection>>,
}

impl Store {
    /// Opens the file in `folder`, which is made where it is missing, and brings it to the newest version.
    pub fn open(folder: &Path) -> canonym::Result<Store> {
        std::fs::create_dir_all(folder).map_err(|error| canonym::Error::io("create", folder, error))?;
        let path = folder.join(FILE);
        let failed = |error: rusqlite::Error| {
            canonym::Error::artifact(&path, error.to_string()).with_hint("give another folder with `--data`")
        };
        let mut writer = Connection::open(&path).map_err(failed)?;
        configure(&writer).map_err(failed)?;
        migrate(&mut writer, &path)?;
        Ok(Store { path, writer: Mutex::new(writer), readers: Mutex::default() })
    }

    /// Runs `work` in a transaction that is committed where it succeeds and leaves nothing where it fails.
    pub fn write<T>(&self, work: impl FnOnce(&Transaction<'_>) -> ApiResult<T>) -> ApiResult<T> {
        let mut connection = lock(&self.writer);
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let value = work(&transaction)?;
        transaction.commit()?;
        Ok(value)
    }

    /// Runs `work` on one state of the file, whatever is written meanwhile.
    pub fn read<T>(&self, work: impl FnOnce(&Connection) -> ApiResult<T>) -> ApiResult<T> {
        let waiting = lock(&self.readers).pop();
        let mut reader = match waiting {
            Some(reader) => reader,
            None => {
                let reader = Connection::open_with_flags(
                    &self.path,
                    OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX,
                )?;
                configure(&reader)?;
                reader
            }
        };
        let value = {
            let transaction = reader.transaction()?;
            work(&transaction)
        };
        let mut readers = lock(&self.readers);
        if readers.len() < MAX_READERS {
            readers.push(reader);
        }
        value
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn configure(connection: &Connection) -> rusqlite::Result<()> {
    connection.busy_timeout(std::time::Duration::from_secs(10))?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update(None, "foreign_keys", "ON")?;
    // A negative number counts KiB.
    connection.pragma_update(None, "cache_size", -CACHE)?;
    connection.set_prepared_statement_cache_capacity(MAX_STATEMENTS);
    Ok(())
}

fn migrate(connection: &mut Connection, path: &Path) -> canonym::Result<()> {
    let failed =
        |error: rusqlite::Error| canonym::Error::artifact(path, format!("it cannot be brought up to date: {error}"));
    let version: i64 = connection.pragma_query_value(None, "user_version", |row| row.get(0)).map_err(failed)?;
    let version = version.max(0) as usize;
    if version > MIGRATIONS.len() {
        return Err(canonym::Error::artifact(
            path,
            format!("it has version {version}, this program knows {}", MIGRATIONS.len()),
        )
        .with_hint("a newer program wrote it; use that one"));
    }
    if version == MIGRATIONS.len() {
        return Ok(());
    }
    let transaction = connection.transaction().map_err(failed)?;
    for sql in &MIGRATIONS[version..] {
        transaction.execute_batch(sql).map_err(failed)?;
    }
    // What a new version keeps beside events is not in a file of an older one.
    events::rebuild(&transaction).map_err(|error| {
        canonym::Error::artifact(path, format!("what follows from its events cannot be made: {error}"))
    })?;
    transaction.pragma_update(None, "user_version", MIGRATIONS.len() as i64).map_err(failed)?;
    transaction.commit().map_err(failed)
}

/// Keeps the number of a row that is to go from being given again: who still has the number must not meet something else.
pub fn retire(connection: &Connection, table: &str) -> rusqlite::Result<()> {
    let sql = format!(
        "INSERT INTO counters (name, next) SELECT '{table}', coalesce(max(id), 0) + 1 FROM {table} WHERE true
            ON CONFLICT DO UPDATE SET next = max(next, excluded.next)"
    );
    connection.execute(&sql, [])?;
    Ok(())
}

/// The number of the next row of a table of which rows may have gone; `None` where none has.
pub fn next_number(connection: &Connection, table: &str) -> rusqlite::Result<Option<i64>> {
    let sql = format!(
        "SELECT max(next, (SELECT coalesce(max(id), 0) + 1 FROM {table})) FROM counters WHERE name = '{table}'"
    );
    connection.prepare_cached(&sql)?.query_row([], |row| row.get(0)).optional()
}

/// The value of the only row, or 404.
pub fn found<T>(result: rusqlite::Result<T>, what: &str) -> ApiResult<T> {
    result.map_err(|error| match error {
        rusqlite::Error::QueryReturnedNoRows => ApiError::not_found(format!("there is no {what}")),
        error => error.into(),
    })
}
