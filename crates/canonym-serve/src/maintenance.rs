//! Maintenance of a data folder: backup while a server uses it, and checks and repair while none does.

use std::fs::OpenOptions;
use std::path::{Path, PathBuf};

use canonym_core::artifact::AtomicFolder;
use canonym_core::{Error, Result};
use rusqlite::backup::{Backup, StepResult};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OpenFlags, Transaction, TransactionBehavior};
use sha2::{Digest, Sha256};

use crate::audit;
use crate::error::{ApiError, ApiResult};
pub use crate::store::folder::quoted;
use crate::store::folder::{self, MODELS};
use crate::store::{self, FILE, checksums, events, parsed};

/// The maximum number of reported faults of one kind.
const MAX_REPORTED: usize = 20;

fn failed(path: &Path) -> impl Fn(rusqlite::Error) -> Error + '_ {
    |error| Error::artifact(path, error.to_string())
}

/// Opens the database of a folder, without migration.
fn open(data: &Path) -> Result<(PathBuf, Connection)> {
    let path = data.join(FILE);
    if !path.is_file() {
        return Err(
            Error::artifact(data, format!("no {FILE} in this folder")).with_hint("choose the folder with `--data`")
        );
    }
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(&path, flags).map_err(failed(&path))?;
    connection.busy_timeout(std::time::Duration::from_secs(10)).map_err(failed(&path))?;
    Ok((path, connection))
}

/// Copies a data folder to `output`, even while a server uses it; returns the number of models copied.
pub fn backup(data: &Path, output: &Path) -> Result<usize> {
    let (path, connection) = open(data)?;
    let copy = AtomicFolder::create(output)?;
    let folder = copy.temporary();
    folder::make_private(folder)?;
    let target = folder.join(FILE);
    folder::open_private(&target, OpenOptions::new().append(true).create(true))?;
    let mut written = Connection::open(&target).map_err(failed(&target))?;
    // In a single step, so that the copy is a consistent snapshot.
    let copied = Backup::new(&connection, &mut written).and_then(|pages| pages.step(-1)).map_err(failed(&path))?;
    if copied != StepResult::Done {
        return Err(Error::artifact(&path, "the database is locked").with_hint("try again later; nothing was written"));
    }
    let found = check(&written, "PRAGMA quick_check(1)").map_err(failed(&path))?;
    if let Some(fault) = found.first() {
        return Err(Error::artifact(&path, format!("the database is damaged: {fault}"))
            .with_hint(format!("run `canonym doctor --data {}`", folder::quoted(data))));
    }
    let models = models(&written).map_err(failed(&target))?;
    drop(written);
    let mut n_models = 0;
    for (_, name) in models {
        let from = data.join(MODELS).join(&name);
        if from.is_dir() {
            copy_folder(&from, &folder.join(MODELS).join(&name))?;
            n_models += 1;
        }
    }
    let log = data.join(audit::FILE);
    if log.is_file() {
        copy_file(&log, &folder.join(audit::FILE))?;
    }
    copy.commit()?;
    Ok(n_models)
}

fn copy_folder(from: &Path, to: &Path) -> Result<()> {
    std::fs::create_dir_all(to).map_err(|error| Error::io("create", to, error))?;
    for entry in entries(from)? {
        let target = to.join(entry.file_name().unwrap_or_default());
        match entry.is_dir() {
            true => copy_folder(&entry, &target)?,
            false => copy_file(&entry, &target)?,
        }
    }
    Ok(())
}

fn copy_file(from: &Path, to: &Path) -> Result<()> {
    std::fs::copy(from, to).map_err(|error| Error::io("copy", from, error))?;
    let synced = std::fs::File::open(to).and_then(|file| file.sync_all());
    synced.map_err(|error| Error::io("write", to, error))
}

/// The entries of a folder, by name; none if it is missing.
fn entries(folder: &Path) -> Result<Vec<PathBuf>> {
    if !folder.is_dir() {
        return Ok(Vec::new());
    }
    let read = |error| Error::io("read", folder, error);
    let entries = std::fs::read_dir(folder).map_err(read)?;
    let mut paths =
        entries.map(|entry| entry.map(|entry| entry.path())).collect::<std::io::Result<Vec<_>>>().map_err(read)?;
    paths.sort();
    Ok(paths)
}

/// Names and folders of the trained models.
fn models(connection: &Connection) -> rusqlite::Result<Vec<(String, String)>> {
    let mut statement = connection.prepare("SELECT name, folder FROM models WHERE folder IS NOT NULL ORDER BY id")?;
    let name = |folder: String| Path::new(&folder).file_name().unwrap_or_default().to_string_lossy().into_owned();
    statement.query_map([], |row| Ok((row.get(0)?, name(row.get(1)?))))?.collect()
}

/// The faults that a check of SQLite reports.
fn check(connection: &Connection, pragma: &str) -> rusqlite::Result<Vec<String>> {
    let mut statement = connection.prepare(pragma)?;
    let n_columns = statement.column_count();
    let line = |row: &rusqlite::Row<'_>| {
        let cells = (0..n_columns).map(|column| match row.get_ref(column)? {
            ValueRef::Text(text) => Ok(String::from_utf8_lossy(text).into_owned()),
            ValueRef::Integer(number) => Ok(number.to_string()),
            _ => Ok(String::new()),
        });
        Ok(cells.collect::<rusqlite::Result<Vec<String>>>()?.join(" "))
    };
    let lines = statement.query_map([], line)?.collect::<rusqlite::Result<Vec<String>>>()?;
    Ok(lines.into_iter().filter(|line| line != "ok").take(MAX_REPORTED).collect())
}

/// A fault of a data folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The fault.
    pub what: String,
    /// How it can be fixed.
    pub help: Help,
}

/// How a fault can be fixed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Help {
    /// Repaired.
    Repaired,
    /// `--repair` fixes it.
    Repair,
    /// A backup has to be restored.
    Restore,
    /// None is needed: it tells of a check that was skipped, and why.
    Skipped,
}

/// Checks a data folder that no server uses, and with `repairs` fixes what can be fixed.
pub fn examine(data: &Path, repairs: bool) -> Result<Vec<Finding>> {
    let (path, mut connection) = open(data)?;
    let _lock = folder::lock(data)?;
    let mut findings = Vec::new();
    let help = if repairs { Help::Repaired } else { Help::Repair };
    for path in std::iter::once(data.to_owned()).chain(entries(data)?.into_iter().filter(|path| path.is_file())) {
        if folder::is_exposed(&path) {
            findings.push(Finding { what: format!("{} is readable by other users", path.display()), help });
            if repairs {
                folder::make_private(&path)?;
            }
        }
    }
    let faults = check(&connection, "PRAGMA integrity_check").unwrap_or_else(|error| vec![error.to_string()]);
    let is_whole = faults.is_empty();
    findings.extend(faults.into_iter().map(|fault| Finding { what: format!("{FILE}: {fault}"), help: Help::Restore }));
    if !is_whole {
        let what = format!("{FILE}: because of this damage, rows and models were not checked");
        findings.push(Finding { what, help: Help::Skipped });
    } else {
        let dangling = check(&connection, "PRAGMA foreign_key_check").map_err(failed(&path))?;
        let finding =
            |row| Finding { what: format!("{FILE}: a row refers to a missing one: {row}"), help: Help::Restore };
        findings.extend(dangling.into_iter().map(finding));
        findings.extend(examine_rows(&mut connection, &path, repairs)?);
        findings.extend(examine_models(&connection, data, repairs)?);
    }
    for path in entries(data)?.into_iter().chain(entries(&data.join(MODELS))?) {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if name.starts_with('.') && name.ends_with(".tmp") {
            findings.push(Finding { what: format!("{} is incomplete", path.display()), help });
            if repairs {
                remove(&path)?;
            }
        }
    }
    Ok(findings)
}

fn remove(path: &Path) -> Result<()> {
    let removed = if path.is_dir() { std::fs::remove_dir_all(path) } else { std::fs::remove_file(path) };
    removed.map_err(|error| Error::io("remove", path, error))
}

/// Parses what is parsed when it is read, compares texts and events with their checksums, and the derived tables with what follows from the events.
/// A database of an older version is migrated, without keeping the result.
fn examine_rows(connection: &mut Connection, path: &Path, repairs: bool) -> Result<Vec<Finding>> {
    let version = store::version(connection, path)?;
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(failed(path))?;
    let failed_check = |error: ApiError| Error::artifact(path, error.to_string());
    let damage = |what: String| Finding { what: format!("{FILE}: {what}"), help: Help::Restore };
    let skipped = |what: String| Finding { what: format!("{FILE}: {what}"), help: Help::Skipped };
    let unreadable = parsed::faults(&transaction, MAX_REPORTED).map_err(failed_check)?;
    let unlike = match version >= checksums::SINCE {
        true => checksums::mismatches(&transaction, MAX_REPORTED).map_err(failed_check)?,
        false => Vec::new(),
    };
    let mut findings: Vec<Finding> = unreadable.iter().map(|(_, message)| damage(message.clone())).collect();
    findings.extend(unlike.iter().map(|(table, column, id)| {
        damage(format!("`{column}` of row {id} of table `{table}` does not match its checksum"))
    }));
    if version < checksums::SINCE {
        findings.push(skipped(format!(
            "version {version} has no checksums, so texts and events were not compared with any"
        )));
    }
    let mut tables = unreadable.iter().map(|(table, _)| *table).chain(unlike.iter().map(|(table, ..)| *table));
    if tables.any(|table| table == "events") {
        // The derived tables may be right where the events are not: they are neither compared nor rebuilt.
        findings.push(skipped(
            "because of the damaged events, the tables that follow from them were not checked".to_owned(),
        ));
        return Ok(findings);
    }
    if version < store::VERSION {
        match store::migrate_within(&transaction, version) {
            Err(error) => findings.push(damage(format!("cannot be migrated to version {}: {error}", store::VERSION))),
            Ok(()) => findings.push(skipped(format!(
                "has version {version}, this program version {}; a server migrates it when it starts and rebuilds the tables \
                 that follow from events, so these were not checked",
                store::VERSION
            ))),
        }
        return Ok(findings);
    }
    let compared: ApiResult<Vec<&'static str>> = (|| {
        let before = checksums(&transaction)?;
        events::rebuild(&transaction)?;
        let after = checksums(&transaction)?;
        Ok(before
            .into_iter()
            .zip(after)
            .filter(|(before, after)| before != after)
            .map(|(before, _)| before.0)
            .collect())
    })();
    match compared {
        Err(error) => findings.push(damage(error.to_string())),
        Ok(tables) => {
            if repairs && !tables.is_empty() {
                transaction.commit().map_err(failed(path))?;
            }
            let help = if repairs { Help::Repaired } else { Help::Repair };
            let finding = |table| Finding { what: format!("{FILE}: table `{table}` does not match the events"), help };
            findings.extend(tables.into_iter().map(finding));
        }
    }
    Ok(findings)
}

/// A checksum of every derived table.
fn checksums(transaction: &Transaction<'_>) -> ApiResult<Vec<(&'static str, String)>> {
    let mut checksums = Vec::new();
    for (table, columns, order) in store::derived::DERIVED_TABLES {
        let mut statement = transaction.prepare(&format!("SELECT {columns} FROM {table} ORDER BY {order}"))?;
        let n_columns = statement.column_count();
        let mut rows = statement.query([])?;
        let mut sum = Sha256::new();
        while let Some(row) = rows.next()? {
            for column in 0..n_columns {
                sum.update(format!("{:?}\0", row.get_ref(column)?));
            }
        }
        checksums.push((table, format!("{:x?}", sum.finalize())));
    }
    Ok(checksums)
}

/// Model folders missing from the database, and models whose folder is missing.
fn examine_models(connection: &Connection, data: &Path, repairs: bool) -> Result<Vec<Finding>> {
    let known = models(connection).map_err(failed(&data.join(FILE)))?;
    let mut findings = Vec::new();
    for (model, name) in &known {
        if !data.join(MODELS).join(name).is_dir() {
            let what = format!("model “{model}” is missing: {}", data.join(MODELS).join(name).display());
            findings.push(Finding { what, help: Help::Restore });
        }
    }
    for path in entries(&data.join(MODELS))? {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if !name.starts_with('.') && known.iter().all(|(_, known)| *known != name) {
            let help = if repairs { Help::Repaired } else { Help::Repair };
            findings.push(Finding { what: format!("{} belongs to no model", path.display()), help });
            if repairs {
                remove(&path)?;
            }
        }
    }
    Ok(findings)
}
