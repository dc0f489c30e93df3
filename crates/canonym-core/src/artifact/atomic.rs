//! Files and folders that appear at their path only when they are complete.
//!
//! Until then they have a hidden temporary name and are locked. What a killed process left behind is not locked, and is removed when the same
//! file is written again.

use std::collections::BTreeMap;
use std::fs::File;
use std::hash::{BuildHasher, RandomState};
use std::io::{BufWriter, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use crate::{Error, Result};

static UNFINISHED: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// Temporary files by folder, as they were when this process first wrote to the folder: a folder with many outputs is listed once.
static LEFT_BEHIND: Mutex<BTreeMap<PathBuf, Vec<PathBuf>>> = Mutex::new(BTreeMap::new());

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
    if let Ok(folder) = File::open(folder_of(path)) {
        folder.sync_all().ok();
    }
}

#[cfg(not(unix))]
fn sync_folder(_: &Path) {}

/// The folder that contains `path`.
fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

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
    // Locked as long as it is open.
    file: Option<BufWriter<File>>,
}

impl AtomicFile {
    /// Creates a temporary file for `path`, and removes those that killed processes left.
    pub fn create(path: &Path) -> Result<AtomicFile> {
        let name =
            path.file_name().ok_or_else(|| Error::invalid(format!("{} does not name a file", path.display())))?;
        if std::fs::metadata(path).is_ok_and(|metadata| !metadata.is_file()) {
            let error = Error::exists(format!("{} exists and is not a regular file", path.display()));
            return Err(error.with_hint("choose another file name"));
        }
        remove_left_behind(path);
        // Never writes to an existing file and never follows a link.
        let (temporary, file) = create_locked(path, name, |temporary| File::create_new(temporary).map(Some))?;
        let file = file.map(|file| BufWriter::with_capacity(1 << 18, file));
        Ok(AtomicFile { path: path.to_path_buf(), temporary, file })
    }

    /// Flushes, syncs and renames the file to its path.
    pub fn commit(mut self) -> Result<()> {
        let writer = self.file.take().expect("the file is there until commit");
        let file = writer.into_inner().map_err(|error| Error::io("write", &self.path, error.into_error()))?;
        file.sync_all().map_err(|source| Error::io("write", &self.path, source))?;
        // `file` stays open, and with it locked, until it has its name.
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
    /// Locked as long as it is open; `None` on systems that cannot open folders.
    _lock: Option<File>,
}

impl AtomicFolder {
    /// Creates a temporary folder for `path`, which must not exist or be empty, and removes those that killed processes left.
    pub fn create(path: &Path) -> Result<AtomicFolder> {
        let name =
            path.file_name().ok_or_else(|| Error::invalid(format!("{} does not name a folder", path.display())))?;
        if std::fs::symlink_metadata(path).is_ok() {
            let is_empty = std::fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_none());
            if !is_empty {
                let error = Error::exists(format!("{} exists and is not an empty folder", path.display()));
                return Err(error.with_hint("choose a new folder; existing files are never overwritten"));
            }
        }
        remove_left_behind(path);
        let create = |temporary: &Path| std::fs::create_dir(temporary).map(|()| File::open(temporary).ok());
        let (temporary, lock) = create_locked(path, name, create)?;
        Ok(AtomicFolder { path: path.to_path_buf(), temporary, _lock: lock })
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

/// Creates a temporary file or folder for `path` and locks what `create` opens. Where there are no locks, it is not locked.
fn create_locked(
    path: &Path,
    name: &std::ffi::OsStr,
    create: impl Fn(&Path) -> std::io::Result<Option<File>>,
) -> Result<(PathBuf, Option<File>)> {
    loop {
        let temporary = temporary_beside(path, name);
        unfinished().push(temporary.clone());
        match create(&temporary) {
            Ok(file) => {
                file.iter().for_each(|file| drop(file.lock()));
                // Before it was locked, another process may have taken it for one that was left behind.
                if temporary.exists() {
                    return Ok((temporary, file));
                }
                unfinished().retain(|other| *other != temporary);
            }
            Err(source) => {
                unfinished().retain(|other| *other != temporary);
                return Err(Error::io("create", path, source));
            }
        }
    }
}

/// The temporary files and folders in `folder`.
fn temporaries_in(folder: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut temporaries = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let is_written = entry.file_type().is_ok_and(|kind| kind.is_file() || kind.is_dir());
        if is_written && is_temporary(&entry.file_name().to_string_lossy()) {
            temporaries.push(entry.path());
        }
    }
    Ok(temporaries)
}

/// Whether `temporary` is that of the file at `path`.
fn is_temporary_of(temporary: &Path, path: &Path) -> bool {
    let name = |path: &Path| path.file_name().map(|name| name.to_string_lossy().into_owned());
    name(temporary).is_some_and(|temporary| unfinished_name(&temporary) == name(path).as_deref())
}

/// Removes a temporary file or folder unless a process that is writing it, or may be, has it locked.
fn remove_unlocked(temporary: &Path) -> Result<()> {
    let Ok(file) = File::open(temporary) else { return Ok(()) };
    if file.try_lock().is_err() {
        return Ok(());
    }
    let is_folder = file.metadata().is_ok_and(|metadata| metadata.is_dir());
    let removed = if is_folder { std::fs::remove_dir_all(temporary) } else { std::fs::remove_file(temporary) };
    match removed {
        // It has got its name in between.
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        removed => removed.map_err(|source| Error::io("remove", temporary, source)),
    }
}

/// Removes what killed processes had left of the file at `path` when this process first wrote to its folder. Errors are ignored: the file
/// can be written all the same, or its own error says more.
fn remove_left_behind(path: &Path) {
    let folder = folder_of(path);
    let mut folders = LEFT_BEHIND.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let left = folders.entry(folder.to_path_buf()).or_insert_with(|| temporaries_in(folder).unwrap_or_default());
    for temporary in left.extract_if(.., |temporary| is_temporary_of(temporary, path)) {
        remove_unlocked(&temporary).ok();
    }
}

/// Removes what killed processes left of the file at `path`: temporary files that no process has locked.
///
/// # Errors
/// If the folder cannot be read or a file cannot be removed.
pub fn remove_temporaries_of(path: &Path) -> Result<()> {
    let folder = folder_of(path);
    let all = temporaries_in(folder).map_err(|source| Error::io("read", folder, source))?;
    all.iter().filter(|temporary| is_temporary_of(temporary, path)).try_for_each(|temporary| remove_unlocked(temporary))
}
