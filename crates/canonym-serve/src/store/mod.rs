//! What is kept: one SQLite file in the folder of data.
//!
//! It is in WAL mode with `synchronous = FULL`: a commit waits for the disk, so that neither a kill of the process nor a loss of power takes back what
//! was answered. A decision is a commit of a few kilobytes; the wait is that of one flush.

pub mod derived;
pub mod documents;
pub mod events;
pub mod folder;
pub mod jobs;
pub mod members;
pub mod models;
pub mod pace;
pub mod people;
pub mod projects;

use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::Duration;

use rusqlite::types::Type;
use rusqlite::{Connection, OpenFlags, OptionalExtension, Row, Transaction, TransactionBehavior};
use serde::de::DeserializeOwned;

use self::folder::Opened;
use crate::abandon;
use crate::error::{ApiError, ApiResult, DATABASE_DAMAGED};

/// The file in the folder of data.
pub const FILE: &str = "canonym.sqlite";

/// What each version of the file adds to the one before. A row is never changed: a new one follows.
const MIGRATIONS: [&str; 4] =
    [include_str!("001.sql"), include_str!("002.sql"), include_str!("003.sql"), include_str!("004.sql")];

/// The version of the file that this program writes.
pub const VERSION: i64 = MIGRATIONS.len() as i64;

/// Connections that read while one writes.
const MAX_READERS: usize = 8;

/// Statements that a connection keeps prepared.
const MAX_STATEMENTS: usize = 64;

/// What a connection holds of the file in memory, in KiB.
const CACHE: i64 = 8 << 10;

/// What of the log of changes stays on the disk, in bytes.
const MAX_LOG: i64 = 64 << 20;

/// How long is waited for another process that writes.
const BUSY: Duration = Duration::from_secs(10);

/// Steps of SQLite between two looks whether anybody still waits for the answer.
const STEPS: std::ffi::c_int = 10_000;

/// The opened file.
#[derive(Debug)]
pub struct Store {
    path: PathBuf,
    opened: Opened,
    /// SQLite found the file damaged: nothing is written any more.
    is_damaged: AtomicBool,
    writer: Mutex<Connection>,
    readers: Mutex<Vec<Connection>>,
}

impl Store {
    /// Opens the file in `folder`, which is made where it is missing, checks it and brings it to the newest version.
    pub fn open(folder: &Path) -> canonym_core::Result<Store> {
        let path = folder::prepare(folder)?;
        let failed = |error: rusqlite::Error| {
            canonym_core::Error::artifact(&path, error.to_string())
                .with_hint("look with `canonym doctor --data FOLDER`, or give another folder with `--data`")
        };
        let mut writer = Connection::open(&path).map_err(failed)?;
        configure(&mut writer).map_err(failed)?;
        let found: String = writer.query_row("PRAGMA quick_check(1)", [], |row| row.get(0)).map_err(failed)?;
        if found != "ok" {
            return Err(canonym_core::Error::artifact(&path, format!("it is damaged: {found}"))
                .with_hint("bring back a copy made with `canonym backup`; `canonym doctor --data FOLDER` tells more"));
        }
        migrate(&mut writer, &path)?;
        let opened = Opened::of(&path)?;
        Ok(Store {
            path,
            opened,
            is_damaged: AtomicBool::new(false),
            writer: Mutex::new(writer),
            readers: Mutex::default(),
        })
    }

    /// Runs `work` in a transaction that is committed where it succeeds and leaves nothing where it fails.
    pub fn write<T>(&self, work: impl FnOnce(&Transaction<'_>) -> ApiResult<T>) -> ApiResult<T> {
        self.write_with(lock(&self.writer), work)
    }

    fn write_with<T>(
        &self,
        mut connection: MutexGuard<'_, Connection>,
        work: impl FnOnce(&Transaction<'_>) -> ApiResult<T>,
    ) -> ApiResult<T> {
        self.check()?;
        self.noted((|| {
            let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let value = work(&transaction)?;
            abandon::commit()?;
            transaction.commit()?;
            Ok(value)
        })())
    }

    /// Brings what the log of changes holds into the database and empties it, where nobody reads an older state just now; for after large changes.
    pub fn cut_log(&self) {
        let writer = lock(&self.writer);
        if self.check().is_err() {
            return;
        }
        let cut = writer
            .busy_timeout(Duration::ZERO)
            .and_then(|()| writer.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())))
            .and(writer.busy_timeout(BUSY));
        if let Err(error) = cut {
            // It is cut the next time.
            tracing::warn!("the log of the database cannot be emptied: {error}");
        }
    }

    /// Runs `work` on one state of the file, whatever is written meanwhile.
    pub fn read<T>(&self, work: impl FnOnce(&Connection) -> ApiResult<T>) -> ApiResult<T> {
        let waiting = lock(&self.readers).pop();
        let mut reader = match waiting {
            Some(reader) => reader,
            None => {
                self.check()?;
                let mut reader = Connection::open_with_flags(
                    &self.path,
                    OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX,
                )?;
                configure(&mut reader)?;
                reader
            }
        };
        let value = {
            let transaction = reader.transaction()?;
            self.noted(work(&transaction))
        };
        let mut readers = lock(&self.readers);
        if readers.len() < MAX_READERS {
            readers.push(reader);
        }
        value
    }

    /// Fails where what is written would be lost: SQLite keeps on writing into a file that was removed.
    fn check(&self) -> ApiResult<()> {
        if self.is_damaged.load(Ordering::Relaxed) {
            return Err(ApiError::unavailable("the database is damaged")
                .hint("nothing was changed; stop the server and look with `canonym doctor --data FOLDER`"));
        }
        match self.opened.missing() {
            None => Ok(()),
            Some(file) => {
                tracing::error!("{} was removed or replaced", file.display());
                Err(ApiError::unavailable("the database was removed or replaced while the server used it")
                    .hint("nothing was changed; stop the server, bring the file back, and start again"))
            }
        }
    }

    fn noted<T>(&self, result: ApiResult<T>) -> ApiResult<T> {
        if result.as_ref().is_err_and(|error| error.code == DATABASE_DAMAGED) {
            self.is_damaged.store(true, Ordering::Relaxed);
        }
        result
    }

    /// Whether what people decide can be kept: writes to the disk, unless somebody does so just now.
    pub fn probe(&self) -> ApiResult<()> {
        let writer = match self.writer.try_lock() {
            Ok(writer) => writer,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return self.check(),
        };
        self.check()?;
        let mut start = [0; 16];
        let read = std::fs::File::open(&self.path).and_then(|mut file| file.read_exact(&mut start));
        if read.is_err() || start != *b"SQLite format 3\0" {
            self.is_damaged.store(true, Ordering::Relaxed);
        }
        self.write_with(writer, |transaction| {
            transaction.execute("UPDATE counters SET next = next WHERE name = 'mark'", [])?;
            Ok(())
        })
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn configure(connection: &mut Connection) -> rusqlite::Result<()> {
    connection.busy_timeout(BUSY)?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update(None, "foreign_keys", "ON")?;
    // After a large import the log is cut back when it is next written over.
    connection.pragma_update(None, "journal_size_limit", MAX_LOG)?;
    // A negative number counts KiB.
    connection.pragma_update(None, "cache_size", -CACHE)?;
    connection.progress_handler(STEPS, Some(abandon::is_abandoned))?;
    connection.set_prepared_statement_cache_capacity(MAX_STATEMENTS);
    Ok(())
}

fn migrate(connection: &mut Connection, path: &Path) -> canonym_core::Result<()> {
    let failed = |error: rusqlite::Error| {
        canonym_core::Error::artifact(path, format!("it cannot be brought up to date: {error}"))
    };
    let version: i64 = connection.pragma_query_value(None, "user_version", |row| row.get(0)).map_err(failed)?;
    let version = version.max(0) as usize;
    if version > MIGRATIONS.len() {
        return Err(canonym_core::Error::artifact(
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
        canonym_core::Error::artifact(path, format!("what follows from its events cannot be made: {error}"))
    })?;
    transaction.pragma_update(None, "user_version", MIGRATIONS.len() as i64).map_err(failed)?;
    transaction.commit().map_err(failed)
}

/// JSON in a column of the row `id` of a table; an error where it is damaged.
pub fn stored<T: DeserializeOwned>(row: &Row<'_>, column: usize, (table, id): (&str, i64)) -> rusqlite::Result<T> {
    let text: String = row.get(column)?;
    serde_json::from_str(&text).map_err(|error| {
        let message = format!("row {id} of `{table}` cannot be read: {error}");
        rusqlite::Error::FromSqlConversionFailure(column, Type::Text, message.into())
    })
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
