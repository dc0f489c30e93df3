//! The data folder: readable by its owner only, locked by one server, with files that are still the opened ones.

use std::fs::{File, Metadata, OpenOptions, TryLockError};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use canonym_core::{Error, Result};

use super::FILE;

/// The lock file; it holds the process ID of the server.
const LOCK: &str = "canonym.lock";

/// A path as an argument of a command, for hints; quoted for the shell where it has to be.
pub fn quoted(path: &Path) -> String {
    let name = path.display().to_string();
    let is_plain = |character: char| character.is_alphanumeric() || "/._-+,:@%".contains(character);
    match !name.is_empty() && name.chars().all(is_plain) {
        true => name,
        false => format!("'{}'", name.replace('\'', "'\\''")),
    }
}

/// The subfolder of trained models.
pub const MODELS: &str = "models";

/// Suffixes of the files that SQLite keeps beside an open database.
const WAL_SUFFIXES: [&str; 2] = ["-wal", "-shm"];

/// Creates the folder and the database file with access for the owner only; fails if existing ones are readable by others.
pub fn prepare(folder: &Path) -> Result<PathBuf> {
    if !folder.exists() {
        let mut builder = std::fs::DirBuilder::new();
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.recursive(true).create(folder).map_err(|error| Error::io("create", folder, error))?;
    }
    let path = folder.join(FILE);
    // Permissions of an empty folder are restricted; one with files may be a home folder.
    if std::fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_none()) {
        make_private(folder)?;
    }
    open_private(&path, OpenOptions::new().append(true).create(true))?;
    let logs = WAL_SUFFIXES.iter().map(|end| folder.join(format!("{FILE}{end}")));
    for path in [folder.to_owned(), path.clone()].into_iter().chain(logs) {
        check_private(&path)?;
    }
    Ok(path)
}

/// Opens a file; a new one is accessible to its owner only.
pub fn open_private(path: &Path, options: &mut OpenOptions) -> Result<File> {
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(options, 0o600);
    options.open(path).map_err(|error| Error::io("open", path, error))
}

/// Fails if other users can access a file or folder.
fn check_private(path: &Path) -> Result<()> {
    if !is_exposed(path) {
        return Ok(());
    }
    let folder = if path.is_dir() { path } else { path.parent().unwrap_or(path) };
    let data = quoted(folder);
    let hint = format!("run `chmod -R go= {data}` or `canonym doctor --data {data} --repair`");
    Err(Error::artifact(path, "readable by other users").with_hint(hint))
}

/// Whether other users can access a file or folder.
#[cfg(unix)]
pub fn is_exposed(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    std::fs::metadata(path).is_ok_and(|metadata| metadata.permissions().mode() & 0o077 != 0)
}

#[cfg(not(unix))]
pub fn is_exposed(_: &Path) -> bool {
    false
}

/// Removes the permissions of other users.
#[cfg(unix)]
pub fn make_private(path: &Path) -> Result<()> {
    use std::os::unix::fs::PermissionsExt;
    let closed = std::fs::metadata(path).and_then(|metadata| {
        let mode = metadata.permissions().mode() & 0o700;
        std::fs::set_permissions(path, PermissionsExt::from_mode(mode))
    });
    closed.map_err(|error| Error::io("close", path, error))
}

#[cfg(not(unix))]
pub fn make_private(_: &Path) -> Result<()> {
    Ok(())
}

/// Locks the folder for one server until the file is dropped.
pub fn lock(folder: &Path) -> Result<File> {
    let path = folder.join(LOCK);
    let mut file = open_private(&path, OpenOptions::new().read(true).write(true).create(true))?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            let mut other = String::new();
            // The process ID is omitted if it cannot be read.
            file.read_to_string(&mut other).ok();
            let error = Error::artifact(folder, format!("in use by another server, process {}", other.trim()));
            return Err(error.with_hint("stop that server first, or choose another folder with `--data`"));
        }
        Err(TryLockError::Error(error)) => return Err(Error::io("lock", &path, error)),
    }
    let written = file.set_len(0).and_then(|()| writeln!(file, "{}", std::process::id()));
    written.map_err(|error| Error::io("write", &path, error))?;
    Ok(file)
}

/// The identity of a file: device and inode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Identity(u64, u64);

#[cfg(unix)]
fn identity(metadata: &Metadata) -> Identity {
    use std::os::unix::fs::MetadataExt;
    Identity(metadata.dev(), metadata.ino())
}

#[cfg(not(unix))]
fn identity(_: &Metadata) -> Identity {
    Identity(0, 0)
}

/// Opened files with their identities.
#[derive(Debug)]
pub struct OpenFiles(Vec<(PathBuf, Identity)>);

impl OpenFiles {
    /// The database and its write-ahead log, which both must exist.
    pub fn of_database(path: &Path) -> Result<OpenFiles> {
        let mut log = path.as_os_str().to_owned();
        log.push(WAL_SUFFIXES[0]);
        let known = |path: PathBuf| match std::fs::metadata(&path) {
            Ok(metadata) => Ok((path, identity(&metadata))),
            Err(error) => Err(Error::io("open", &path, error)),
        };
        Ok(OpenFiles([path.to_owned(), PathBuf::from(log)].into_iter().map(known).collect::<Result<_>>()?))
    }

    /// The file that was removed or replaced, if any.
    pub fn missing(&self) -> Option<&Path> {
        let is_there = |(path, known): &&(PathBuf, Identity)| {
            std::fs::metadata(path).is_ok_and(|metadata| identity(&metadata) == *known)
        };
        self.0.iter().find(|file| !is_there(file)).map(|(path, _)| path.as_path())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_quoted_for_the_shell_where_they_have_to_be() {
        let quoted = |name: &str| quoted(Path::new(name));
        assert_eq!(quoted("a/sd12"), "a/sd12");
        assert_eq!(quoted("my projects"), "'my projects'");
        assert_eq!(quoted("it's"), r"'it'\''s'");
    }
}
