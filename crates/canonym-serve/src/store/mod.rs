//! The database: one SQLite file in the data folder.
//!
//! It uses WAL mode with `synchronous = FULL`: a commit waits for the disk, so that an acknowledged change survives a killed process and a power failure.
//! A decision is a commit of a few kilobytes and waits for one flush.

pub mod assignments;
pub mod checksums;
pub mod comments;
pub mod corpus;
pub mod derived;
pub mod documents;
pub mod events;
pub mod folder;
pub mod groups;
pub mod jobs;
pub mod listing;
pub mod members;
pub mod models;
pub mod parsed;
pub mod people;
pub mod projects;
pub mod proposals;
pub mod time_spent;

use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::Duration;

use rusqlite::types::{Type, ValueRef};
use rusqlite::{Connection, OpenFlags, OptionalExtension, Row, Transaction, TransactionBehavior};
use serde::de::DeserializeOwned;

use self::folder::OpenFiles;
use crate::abort;
use crate::error::{ApiError, ApiResult, DATABASE_DAMAGED};

/// The database file in the data folder.
pub const FILE: &str = "canonym.sqlite";

/// Migrations, one for each version. A released migration is never changed.
const MIGRATIONS: [&str; 14] = [
    include_str!("001.sql"),
    include_str!("002.sql"),
    include_str!("003.sql"),
    include_str!("004.sql"),
    include_str!("005.sql"),
    include_str!("006.sql"),
    include_str!("007.sql"),
    include_str!("008.sql"),
    include_str!("009.sql"),
    include_str!("010.sql"),
    include_str!("011.sql"),
    include_str!("012.sql"),
    include_str!("013.sql"),
    include_str!("014.sql"),
];

/// The current version.
pub const VERSION: i64 = MIGRATIONS.len() as i64;

/// The maximum number of pooled readers.
const MAX_READERS: usize = 8;

/// Prepared statements cached per connection.
const MAX_STATEMENTS: usize = 64;

/// The page cache of a connection, in KiB.
const CACHE_KIB: i64 = 8 << 10;

/// The size that the write-ahead log is truncated to, in bytes.
const MAX_LOG: i64 = 64 << 20;

/// The timeout for locks of other processes.
const BUSY_TIMEOUT: Duration = Duration::from_secs(10);

/// SQLite instructions between two checks for an aborted request.
const INSTRUCTIONS_PER_CHECK: std::ffi::c_int = 10_000;

/// The open database.
#[derive(Debug)]
pub struct Store {
    path: PathBuf,
    opened: OpenFiles,
    /// Set when SQLite finds the file damaged: writes are refused from then on.
    is_damaged: AtomicBool,
    writer: Mutex<Connection>,
    readers: Mutex<Vec<Connection>>,
}

impl Store {
    /// Opens the database in `folder`, creates it if missing, checks it and migrates it.
    pub fn open(folder: &Path) -> canonym_core::Result<Store> {
        let path = folder::prepare(folder)?;
        let data = folder::quoted(folder);
        let failed = |error: rusqlite::Error| {
            canonym_core::Error::artifact(&path, error.to_string())
                .with_hint(format!("run `canonym doctor --data {data}`, or choose another folder with `--data`"))
        };
        let mut writer = Connection::open(&path).map_err(failed)?;
        configure(&mut writer).map_err(failed)?;
        let found: String = writer.query_row("PRAGMA quick_check(1)", [], |row| row.get(0)).map_err(failed)?;
        if found != "ok" {
            return Err(canonym_core::Error::artifact(&path, format!("the database is damaged: {found}")).with_hint(
                format!("restore a backup made with `canonym backup`; `canonym doctor --data {data}` shows details"),
            ));
        }
        migrate(&mut writer, &path)?;
        let opened = OpenFiles::of_database(&path)?;
        Ok(Store {
            path,
            opened,
            is_damaged: AtomicBool::new(false),
            writer: Mutex::new(writer),
            readers: Mutex::default(),
        })
    }

    /// Runs `work` in a transaction that is committed on success and rolled back on failure.
    pub fn write<T>(&self, work: impl FnOnce(&Transaction<'_>) -> ApiResult<T>) -> ApiResult<T> {
        self.write_with(lock(&self.writer), work)
    }

    fn write_with<T>(
        &self,
        mut connection: MutexGuard<'_, Connection>,
        work: impl FnOnce(&Transaction<'_>) -> ApiResult<T>,
    ) -> ApiResult<T> {
        self.check()?;
        self.note_damage((|| {
            let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let value = work(&transaction)?;
            abort::commit()?;
            transaction.commit()?;
            Ok(value)
        })())
    }

    /// Checkpoints and truncates the write-ahead log, unless a reader needs it; for use after large changes.
    pub fn truncate_log(&self) {
        let writer = lock(&self.writer);
        if self.check().is_err() {
            return;
        }
        let truncated = writer
            .busy_timeout(Duration::ZERO)
            .and_then(|()| writer.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())))
            .and(writer.busy_timeout(BUSY_TIMEOUT));
        if let Err(error) = truncated {
            // It is truncated the next time.
            tracing::warn!("cannot truncate the write-ahead log of the database: {error}");
        }
    }

    /// Runs `work` on a snapshot of the database.
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
            self.note_damage(work(&transaction))
        };
        let mut readers = lock(&self.readers);
        if readers.len() < MAX_READERS {
            readers.push(reader);
        }
        value
    }

    /// Fails if writes would be lost: SQLite keeps writing to a removed file.
    fn check(&self) -> ApiResult<()> {
        if self.is_damaged.load(Ordering::Relaxed) {
            return Err(ApiError::unavailable("the database is damaged")
                .hint("nothing was changed; stop the server and run `canonym doctor --data FOLDER`"));
        }
        match self.opened.missing() {
            None => Ok(()),
            Some(file) => {
                tracing::error!("{} was removed or replaced", file.display());
                Err(ApiError::unavailable("the database file was removed or replaced while the server was running")
                    .hint("nothing was changed; stop the server, restore the file, and start again"))
            }
        }
    }

    fn note_damage<T>(&self, result: ApiResult<T>) -> ApiResult<T> {
        if result.as_ref().is_err_and(|error| error.code == DATABASE_DAMAGED) {
            self.is_damaged.store(true, Ordering::Relaxed);
        }
        result
    }

    /// Checks that decisions can be stored, by writing to the disk unless another write is in progress.
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
    connection.busy_timeout(BUSY_TIMEOUT)?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update(None, "foreign_keys", "ON")?;
    // After a large import the log is truncated when it is next reset.
    connection.pragma_update(None, "journal_size_limit", MAX_LOG)?;
    // A negative number means KiB.
    connection.pragma_update(None, "cache_size", -CACHE_KIB)?;
    connection.progress_handler(INSTRUCTIONS_PER_CHECK, Some(abort::is_aborted))?;
    connection.set_prepared_statement_cache_capacity(MAX_STATEMENTS);
    Ok(())
}

/// The version of a database; fails if it is newer than this program.
pub fn version(connection: &Connection, path: &Path) -> canonym_core::Result<i64> {
    let version = connection.pragma_query_value(None, "user_version", |row| row.get::<_, i64>(0));
    let version = version.map_err(|error| canonym_core::Error::artifact(path, error.to_string()))?.max(0);
    if version > VERSION {
        let message =
            format!("database version {version} is newer than {VERSION}, the latest that this program supports");
        return Err(canonym_core::Error::artifact(path, message).with_hint("use the newer canonym that wrote it"));
    }
    Ok(version)
}

fn migrate(connection: &mut Connection, path: &Path) -> canonym_core::Result<()> {
    let version = version(connection, path)?;
    if version == VERSION {
        return Ok(());
    }
    let failed = |error: String| {
        let data = folder::quoted(path.parent().unwrap_or(path));
        canonym_core::Error::artifact(path, format!("cannot migrate the database: {error}")).with_hint(format!(
            "nothing was changed; run `canonym doctor --data {data}` for details, or restore a backup made with `canonym backup`"
        ))
    };
    let transaction = connection.transaction().map_err(|error| failed(error.to_string()))?;
    migrate_within(&transaction, version).map_err(failed)?;
    transaction.commit().map_err(|error| failed(error.to_string()))
}

/// Migrates a database of an older version; fails with a message.
pub fn migrate_within(transaction: &Transaction<'_>, version: i64) -> Result<(), String> {
    for sql in &MIGRATIONS[version as usize..] {
        transaction.execute_batch(sql).map_err(|error| error.to_string())?;
    }
    // Tables derived from events that a new version adds are filled here.
    events::rebuild(transaction)
        .map_err(|error| format!("cannot rebuild the tables that follow from events: {error}"))?;
    checksums::fill(transaction).map_err(|error| format!("cannot compute the checksums of stored texts: {error}"))?;
    transaction.pragma_update(None, "user_version", VERSION).map_err(|error| error.to_string())
}

/// Parses the JSON in a column of row `id` of a table; an error names table and row.
pub fn parse_json<T: DeserializeOwned>(row: &Row<'_>, column: usize, table: &str, id: i64) -> rusqlite::Result<T> {
    let parsed = match row.get_ref(column)? {
        ValueRef::Text(bytes) => serde_json::from_slice(bytes).map_err(|error| error.to_string()),
        _ => Err("no text".to_owned()),
    };
    parsed.map_err(|error| {
        let message = format!("cannot read row {id} of table `{table}`: {error}");
        rusqlite::Error::FromSqlConversionFailure(column, Type::Text, message.into())
    })
}

/// Parses a name in a column of row `id` of a table; an error names table and row.
pub fn parse_name<T>(
    row: &Row<'_>,
    column: usize,
    table: &str,
    id: i64,
    parse: impl FnOnce(&str) -> Option<T>,
) -> rusqlite::Result<T> {
    let name: String = row.get(column)?;
    parse(&name).ok_or_else(|| {
        let message = format!("cannot read row {id} of table `{table}`: unknown value `{name}`");
        rusqlite::Error::FromSqlConversionFailure(column, Type::Text, message.into())
    })
}

/// Keeps the numbers of deleted rows from being reused: a stale number must not refer to something else.
pub fn reserve_numbers(connection: &Connection, table: &str) -> rusqlite::Result<()> {
    let sql = format!(
        "INSERT INTO counters (name, next) SELECT '{table}', coalesce(max(id), 0) + 1 FROM {table} WHERE true
            ON CONFLICT DO UPDATE SET next = max(next, excluded.next)"
    );
    connection.execute(&sql, [])?;
    Ok(())
}

/// The number of the next row of a table; `None` if no row was ever deleted.
pub fn next_number(connection: &Connection, table: &str) -> rusqlite::Result<Option<i64>> {
    let sql = format!(
        "SELECT max(next, (SELECT coalesce(max(id), 0) + 1 FROM {table})) FROM counters WHERE name = '{table}'"
    );
    connection.prepare_cached(&sql)?.query_row([], |row| row.get(0)).optional()
}

/// The value of a single row, or 404.
pub fn or_not_found<T>(result: rusqlite::Result<T>, what: &str) -> ApiResult<T> {
    result.map_err(|error| match error {
        rusqlite::Error::QueryReturnedNoRows => ApiError::not_found(format!("{what} not found")),
        error => error.into(),
    })
}

#[cfg(unix)]
#[cfg(test)]
mod tests;
