//! Care for a folder of data: a copy of it while it is used, and what is wrong with one that is not.

use std::fs::OpenOptions;
use std::path::{Path, PathBuf};

use canonym_core::artifact::AtomicFolder;
use canonym_core::{Error, Result};
use rusqlite::backup::{Backup, StepResult};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OpenFlags, Transaction, TransactionBehavior};
use sha2::{Digest, Sha256};

use crate::audit;
use crate::error::ApiResult;
use crate::store::{self, FILE, events, folder};

/// Where trained models lie in the folder of data.
pub const MODELS: &str = "models";

/// Faults of one kind that are told one by one.
const MAX_TOLD: usize = 20;

fn failed(path: &Path) -> impl Fn(rusqlite::Error) -> Error + '_ {
    |error| Error::artifact(path, error.to_string())
}

/// The database of a folder, as it lies there.
fn open(data: &Path) -> Result<(PathBuf, Connection)> {
    let path = data.join(FILE);
    if !path.is_file() {
        return Err(Error::artifact(data, format!("it has no {FILE}")).with_hint("name the folder with `--data`"));
    }
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(&path, flags).map_err(failed(&path))?;
    connection.busy_timeout(std::time::Duration::from_secs(10)).map_err(failed(&path))?;
    Ok((path, connection))
}

/// Copies a folder of data to `output`, which is a folder of data then; a server may use it meanwhile. The number of models that were copied.
pub fn backup(data: &Path, output: &Path) -> Result<usize> {
    let (path, connection) = open(data)?;
    let copy = AtomicFolder::create(output)?;
    let folder = copy.temporary();
    folder::close(folder)?;
    let target = folder.join(FILE);
    folder::private(&target, OpenOptions::new().append(true).create(true))?;
    let mut written = Connection::open(&target).map_err(failed(&target))?;
    // All at once: what is written meanwhile goes to the log, and the copy is of one time.
    let copied = Backup::new(&connection, &mut written).and_then(|pages| pages.step(-1)).map_err(failed(&path))?;
    if copied != StepResult::Done {
        return Err(Error::artifact(&path, "somebody else holds it").with_hint("try again later; nothing was written"));
    }
    let found = check(&written, "PRAGMA quick_check(1)").map_err(failed(&path))?;
    if let Some(fault) = found.first() {
        return Err(Error::artifact(&path, format!("it is damaged: {fault}")).with_hint("look with `canonym doctor`"));
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
    let record = data.join(audit::FILE);
    if record.is_file() {
        copy_file(&record, &folder.join(audit::FILE))?;
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

/// What lies in a folder, by name; nothing where it is missing.
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

/// Names and folders of the models that projects trained.
fn models(connection: &Connection) -> rusqlite::Result<Vec<(String, String)>> {
    let mut statement = connection.prepare("SELECT name, folder FROM models WHERE folder IS NOT NULL ORDER BY id")?;
    let name = |folder: String| Path::new(&folder).file_name().unwrap_or_default().to_string_lossy().into_owned();
    statement.query_map([], |row| Ok((row.get(0)?, name(row.get(1)?))))?.collect()
}

/// The lines of a check of SQLite that are faults.
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
    Ok(lines.into_iter().filter(|line| line != "ok").take(MAX_TOLD).collect())
}

/// Something that is wrong with a folder of data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// What.
    pub what: String,
    /// What can be done about it.
    pub help: Help,
}

/// What can be done about a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Help {
    /// It was repaired.
    Repaired,
    /// `--repair` does it.
    Repair,
    /// A copy has to be brought back.
    Restore,
    /// It tells something, and needs nothing.
    Nothing,
}

/// Looks whether a folder of data that no server uses is whole, and repairs what can be where that is asked for.
pub fn examine(data: &Path, repairs: bool) -> Result<Vec<Finding>> {
    let (path, mut connection) = open(data)?;
    let _lock = folder::lock(data)?;
    let mut findings = Vec::new();
    let help = if repairs { Help::Repaired } else { Help::Repair };
    for path in std::iter::once(data.to_owned()).chain(entries(data)?.into_iter().filter(|path| path.is_file())) {
        if folder::is_open(&path) {
            findings.push(Finding { what: format!("others may read {}", path.display()), help });
            if repairs {
                folder::close(&path)?;
            }
        }
    }
    let faults = check(&connection, "PRAGMA integrity_check").unwrap_or_else(|error| vec![error.to_string()]);
    let is_whole = faults.is_empty();
    findings.extend(faults.into_iter().map(|fault| Finding { what: format!("{FILE}: {fault}"), help: Help::Restore }));
    if is_whole {
        let strays = check(&connection, "PRAGMA foreign_key_check").map_err(failed(&path))?;
        let stray =
            |row| Finding { what: format!("{FILE}: a row refers to one that is missing: {row}"), help: Help::Restore };
        findings.extend(strays.into_iter().map(stray));
        findings.extend(examine_events(&mut connection, &path, repairs)?);
        findings.extend(examine_models(&connection, data, repairs)?);
    }
    for path in entries(data)?.into_iter().chain(entries(&data.join(MODELS))?) {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if name.starts_with('.') && name.ends_with(".tmp") {
            findings.push(Finding { what: format!("{} was never completed", path.display()), help });
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

/// Makes what follows from events anew and compares it with what is kept.
fn examine_events(connection: &mut Connection, path: &Path, repairs: bool) -> Result<Vec<Finding>> {
    let version: i64 = connection.pragma_query_value(None, "user_version", |row| row.get(0)).map_err(failed(path))?;
    if version != store::VERSION {
        let what =
            format!("{FILE} has version {version}, this program {}: a server brings it up to date", store::VERSION);
        return Ok(vec![Finding { what, help: Help::Nothing }]);
    }
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(failed(path))?;
    let compared: ApiResult<Vec<&'static str>> = (|| {
        let before = sums(&transaction)?;
        events::rebuild(&transaction)?;
        let after = sums(&transaction)?;
        Ok(before
            .into_iter()
            .zip(after)
            .filter(|(before, after)| before != after)
            .map(|(before, _)| before.0)
            .collect())
    })();
    match compared {
        Err(error) => Ok(vec![Finding { what: format!("{FILE}: {error}"), help: Help::Restore }]),
        Ok(tables) => {
            if repairs && !tables.is_empty() {
                transaction.commit().map_err(failed(path))?;
            }
            let help = if repairs { Help::Repaired } else { Help::Repair };
            let told = |table| Finding { what: format!("{FILE}: `{table}` is not what the events say"), help };
            Ok(tables.into_iter().map(told).collect())
        }
    }
}

/// A sum of every table that follows from events.
fn sums(transaction: &Transaction<'_>) -> ApiResult<Vec<(&'static str, String)>> {
    let mut sums = Vec::new();
    for (table, columns, order) in store::derived::FOLLOWS {
        let mut statement = transaction.prepare(&format!("SELECT {columns} FROM {table} ORDER BY {order}"))?;
        let n_columns = statement.column_count();
        let mut rows = statement.query([])?;
        let mut sum = Sha256::new();
        while let Some(row) = rows.next()? {
            for column in 0..n_columns {
                sum.update(format!("{:?}\0", row.get_ref(column)?));
            }
        }
        sums.push((table, format!("{:x?}", sum.finalize())));
    }
    Ok(sums)
}

/// Models that the database does not know, and those that it misses.
fn examine_models(connection: &Connection, data: &Path, repairs: bool) -> Result<Vec<Finding>> {
    let known = models(connection).map_err(failed(&data.join(FILE)))?;
    let mut findings = Vec::new();
    for (model, name) in &known {
        if !data.join(MODELS).join(name).is_dir() {
            let what = format!("the model `{model}` is missing: {}", data.join(MODELS).join(name).display());
            findings.push(Finding { what, help: Help::Restore });
        }
    }
    for path in entries(&data.join(MODELS))? {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if !name.starts_with('.') && known.iter().all(|(_, known)| *known != name) {
            let help = if repairs { Help::Repaired } else { Help::Repair };
            findings.push(Finding { what: format!("{} is of no model", path.display()), help });
            if repairs {
                remove(&path)?;
            }
        }
    }
    Ok(findings)
}
