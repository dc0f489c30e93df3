//! Files and folders that appear at their path only when they are complete.

use std::fs::File;
use std::hash::{BuildHasher, RandomState};
use std::io::{BufWriter, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use crate::{Error, Result};

static UNFINISHED: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

fn unfinished() -> std::sync::MutexGuard<'static, Vec<PathBuf>> {
    UNFINISHED.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Removes all unfinished files and folders, for a signal handler that is about to end the process.
///
/// Creating or committing a file afterwards blocks until the process ends.
pub fn remove_unfinished() {
    let mut paths = unfinished();
    for path in paths.drain(..) {
        if std::fs::remove_file(&path).is_err() {
            std::fs::remove_dir_all(path).ok();
        }
    }
    // Stays locked: otherwise a commit could find its file missing and report that instead of the interrupt.
    std::mem::forget(paths);
}

/// An unpredictable temporary name next to `path`.
fn temporary_beside(path: &Path, name: &std::ffi::OsStr) -> PathBuf {
    // `RandomState` is seeded by the operating system.
    let secret = RandomState::new().hash_one(std::process::id());
    path.with_file_name(format!(".{}.{}-{secret:016x}.tmp", name.to_string_lossy(), std::process::id()))
}

/// Syncs the folder of `path`, so that a rename is durable. Errors are ignored: some file systems cannot sync folders,
/// and the rename has taken effect.
#[cfg(unix)]
fn sync_folder(path: &Path) {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if let Ok(folder) = File::open(folder) {
        folder.sync_all().ok();
    }
}

#[cfg(not(unix))]
fn sync_folder(_: &Path) {}

/// Renames a temporary file or folder to its path.
fn rename_into_place(temporary: &Path, path: &Path) -> Result<()> {
    let mut paths = unfinished();
    std::fs::rename(temporary, path).map_err(|source| Error::io("rename", path, source))?;
    paths.retain(|other| *other != temporary);
    drop(paths);
    sync_folder(path);
    Ok(())
}

/// A file that appears at its path only when [`AtomicFile::commit`] is called.
#[derive(Debug)]
pub struct AtomicFile {
    path: PathBuf,
    pub(super) temporary: PathBuf,
    file: Option<BufWriter<File>>,
}

impl AtomicFile {
    /// Creates a temporary file for `path`.
    pub fn create(path: &Path) -> Result<AtomicFile> {
        let name =
            path.file_name().ok_or_else(|| Error::invalid(format!("{} does not name a file", path.display())))?;
        if std::fs::metadata(path).is_ok_and(|metadata| !metadata.is_file()) {
            let error = Error::invalid(format!("{} exists and is not a regular file", path.display()));
            return Err(error.with_hint("choose another file name"));
        }
        let temporary = temporary_beside(path, name);
        unfinished().push(temporary.clone());
        // Never writes to an existing file and never follows a link.
        match File::create_new(&temporary) {
            Ok(file) => Ok(AtomicFile {
                path: path.to_path_buf(),
                temporary,
                file: Some(BufWriter::with_capacity(1 << 18, file)),
            }),
            Err(source) => {
                unfinished().retain(|other| *other != temporary);
                Err(Error::io("create", path, source))
            }
        }
    }

    /// Flushes, syncs and renames the file to its path.
    pub fn commit(mut self) -> Result<()> {
        let writer = self.file.take().expect("the file is there until commit");
        let file = writer.into_inner().map_err(|error| Error::io("write", &self.path, error.into_error()))?;
        file.sync_all().map_err(|source| Error::io("write", &self.path, source))?;
        drop(file);
        rename_into_place(&self.temporary, &self.path)
    }

    fn writer(&mut self) -> &mut BufWriter<File> {
        self.file.as_mut().expect("the file is there until commit")
    }
}

impl Write for AtomicFile {
    fn write(&mut self, buffer: &[u8]) -> std::io::Result<usize> {
        self.writer().write(buffer)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.writer().flush()
    }
}

impl Seek for AtomicFile {
    fn seek(&mut self, position: SeekFrom) -> std::io::Result<u64> {
        self.writer().seek(position)
    }
}

impl Drop for AtomicFile {
    fn drop(&mut self) {
        // After a commit the temporary file no longer exists.
        self.file.take();
        std::fs::remove_file(&self.temporary).ok();
        unfinished().retain(|other| *other != self.temporary);
    }
}

/// A folder that appears at its path only when [`AtomicFolder::commit`] is called.
#[derive(Debug)]
pub struct AtomicFolder {
    path: PathBuf,
    temporary: PathBuf,
}

impl AtomicFolder {
    /// Creates a temporary folder for `path`, which must not exist or be empty.
    pub fn create(path: &Path) -> Result<AtomicFolder> {
        let name =
            path.file_name().ok_or_else(|| Error::invalid(format!("{} does not name a folder", path.display())))?;
        if std::fs::symlink_metadata(path).is_ok() {
            let is_empty = std::fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_none());
            if !is_empty {
                let error = Error::invalid(format!("{} exists and is not an empty folder", path.display()));
                return Err(error.with_hint("choose a new folder; existing files are never overwritten"));
            }
        }
        let temporary = temporary_beside(path, name);
        unfinished().push(temporary.clone());
        let folder = AtomicFolder { path: path.to_path_buf(), temporary };
        match std::fs::create_dir(&folder.temporary) {
            Ok(()) => Ok(folder),
            Err(source) => Err(Error::io("create", path, source)),
        }
    }

    /// The temporary folder, into which files are written.
    pub fn temporary(&self) -> &Path {
        &self.temporary
    }

    /// Renames the folder to its path.
    pub fn commit(self) -> Result<()> {
        rename_into_place(&self.temporary, &self.path)
    }
}

impl Drop for AtomicFolder {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.temporary).ok();
        unfinished().retain(|other| *other != self.temporary);
    }
}

/// Whether a name is that of an unfinished file: `.NAME.PID-HASH.tmp`. Returns `NAME`.
fn unfinished_name(name: &str) -> Option<&str> {
    let middle = name.strip_prefix('.')?.strip_suffix(".tmp")?;
    let (name, end) = middle.rsplit_once('.')?;
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let is_hash = |text: &str| text.len() == 16 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let (process, hash) = end.split_once('-')?;
    (is_number(process) && is_hash(hash)).then_some(name)
}

/// Whether a name is that of an unfinished file.
pub fn is_temporary(name: &str) -> bool {
    unfinished_name(name).is_some()
}

/// Removes what killed processes left unfinished of the file at `path`, which nobody else may be writing.
///
/// # Errors
/// If the folder cannot be read or a file cannot be removed.
pub fn remove_temporaries_of(path: &Path) -> Result<()> {
    let Some(name) = path.file_name() else { return Ok(()) };
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let entries = std::fs::read_dir(folder).map_err(|source| Error::io("read", folder, source))?;
    for entry in entries {
        let entry = entry.map_err(|source| Error::io("read", folder, source))?;
        if unfinished_name(&entry.file_name().to_string_lossy()).is_some_and(|other| *other == *name) {
            std::fs::remove_file(entry.path()).map_err(|source| Error::io("remove", &entry.path(), source))?;
        }
    }
    Ok(())
}
