//! The folder of data: nobody else may read it, one server uses it, and its files are still those that were opened.

use std::fs::{File, Metadata, OpenOptions, TryLockError};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use canonym_core::{Error, Result};

use super::FILE;

/// The file that the one server has locked; it holds the number of its process.
const LOCK: &str = "canonym.lock";

/// What SQLite keeps beside its file while it is open.
const BESIDE: [&str; 2] = ["-wal", "-shm"];

/// Makes the folder and the file in it for nobody but their owner, or refuses those that others may read.
pub fn prepare(folder: &Path) -> Result<PathBuf> {
    if !folder.exists() {
        let mut builder = std::fs::DirBuilder::new();
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.recursive(true).create(folder).map_err(|error| Error::io("create", folder, error))?;
    }
    let path = folder.join(FILE);
    // An empty folder is made ours; one with files in it may be somebody's home.
    if std::fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_none()) {
        close(folder)?;
    }
    private(&path, OpenOptions::new().append(true).create(true))?;
    let beside = BESIDE.iter().map(|end| folder.join(format!("{FILE}{end}")));
    for path in [folder.to_owned(), path.clone()].into_iter().chain(beside) {
        refuse_open(&path)?;
    }
    Ok(path)
}

/// Opens a file that is made for its owner alone where it is missing.
pub fn private(path: &Path, options: &mut OpenOptions) -> Result<File> {
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(options, 0o600);
    options.open(path).map_err(|error| Error::io("open", path, error))
}

/// An error where others than the owner may read a file or folder.
fn refuse_open(path: &Path) -> Result<()> {
    if !is_open(path) {
        return Ok(());
    }
    let folder = if path.is_dir() { path } else { path.parent().unwrap_or(path) };
    let hint = format!("close it with `chmod -R go= {}`, or `canonym doctor --repair`", folder.display());
    Err(Error::artifact(path, "others than its owner may read it").with_hint(hint))
}

/// Whether others than the owner may do anything with a file or folder.
#[cfg(unix)]
pub fn is_open(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    std::fs::metadata(path).is_ok_and(|metadata| metadata.permissions().mode() & 0o077 != 0)
}

#[cfg(not(unix))]
pub fn is_open(_: &Path) -> bool {
    false
}

/// Takes from others than the owner what they may do with a file or folder.
#[cfg(unix)]
pub fn close(path: &Path) -> Result<()> {
    use std::os::unix::fs::PermissionsExt;
    let closed = std::fs::metadata(path).and_then(|metadata| {
        let mode = metadata.permissions().mode() & 0o700;
        std::fs::set_permissions(path, PermissionsExt::from_mode(mode))
    });
    closed.map_err(|error| Error::io("close", path, error))
}

#[cfg(not(unix))]
pub fn close(_: &Path) -> Result<()> {
    Ok(())
}

/// Locks the folder for one server until the file is dropped.
pub fn lock(folder: &Path) -> Result<File> {
    let path = folder.join(LOCK);
    let mut file = private(&path, OpenOptions::new().read(true).write(true).create(true))?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            let mut other = String::new();
            // Where it cannot be read the number is left out.
            file.read_to_string(&mut other).ok();
            let error = Error::artifact(folder, format!("another server uses it, process {}", other.trim()));
            return Err(error.with_hint("end that one first, or give another folder with `--data`"));
        }
        Err(TryLockError::Error(error)) => return Err(Error::io("lock", &path, error)),
    }
    let written = file.set_len(0).and_then(|()| writeln!(file, "{}", std::process::id()));
    written.map_err(|error| Error::io("write", &path, error))?;
    Ok(file)
}

/// What tells a file from another that has taken its place.
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

/// Files that were opened, and by which they are known again.
#[derive(Debug)]
pub struct Opened(Vec<(PathBuf, Identity)>);

impl Opened {
    /// The file of SQLite and its log, which both have to be there.
    pub fn of(path: &Path) -> Result<Opened> {
        let mut log = path.as_os_str().to_owned();
        log.push(BESIDE[0]);
        let known = |path: PathBuf| match std::fs::metadata(&path) {
            Ok(metadata) => Ok((path, identity(&metadata))),
            Err(error) => Err(Error::io("open", &path, error)),
        };
        Ok(Opened([path.to_owned(), PathBuf::from(log)].into_iter().map(known).collect::<Result<_>>()?))
    }

    /// The file that is gone, or that another has taken the place of.
    pub fn missing(&self) -> Option<&Path> {
        let is_there = |(path, known): &&(PathBuf, Identity)| {
            std::fs::metadata(path).is_ok_and(|metadata| identity(&metadata) == *known)
        };
        self.0.iter().find(|file| !is_there(file)).map(|(path, _)| path.as_path())
    }
}
