//! A run folder: one output per input file, settings, and a journal of finished files.
//!
//! An output is renamed into place when it is complete, and then entered in the journal. A run that was killed in
//! between writes that output again, with the same content. A lock keeps two processes from using the same folder.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::journal::{FinishedFile, Journal};
use super::{BatchFile, checksum};
use crate::artifact::{AtomicFile, is_temporary};
use crate::corpus::files::{JOURNAL, RUN_FILE};
use crate::{Error, Result};

/// Name of the lock file.
const LOCK: &str = ".lock";

/// Number of the layout of a run folder.
const FORMAT: u32 = 1;

/// Everything that the outputs of a run depend on, except the input files.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunSettings {
    /// Version of canonym.
    pub version: String,
    /// Fingerprint of the knowledge base.
    pub kb: String,
    /// Fingerprint of the model.
    pub model: String,
    /// Options and their values.
    pub options: BTreeMap<String, String>,
    /// The command line, for resuming without repeating it.
    pub arguments: Vec<String>,
    /// The working folder of the command line; empty if unknown.
    #[serde(default)]
    pub folder: String,
}

impl RunSettings {
    /// The first setting in which `now` differs, with both values, except for the index of the model and the options `ignored`.
    pub fn difference(&self, now: &RunSettings, ignored: &[&str]) -> Option<String> {
        // The index belongs to the knowledge base, so another release has another one.
        let without_index = |model: &str| model.split(" + index").next().unwrap_or_default().to_owned();
        let parts = [
            ("knowledge base", self.kb.clone(), now.kb.clone()),
            ("model", without_index(&self.model), without_index(&now.model)),
            ("version of canonym", self.version.clone(), now.version.clone()),
        ];
        let options = self.options.keys().chain(now.options.keys()).filter(|name| !ignored.contains(&name.as_str()));
        let value =
            |run: &RunSettings, name: &String| run.options.get(name).map_or("not given", String::as_str).to_owned();
        let options = options.map(|name| (name.as_str(), value(self, name), value(now, name)));
        let mut all = parts.into_iter().chain(options);
        all.find(|(_, was, is)| was != is).map(|(what, was, is)| format!("{what}: {was}, not {is}"))
    }
}

/// Content of [`RUN_FILE`].
#[derive(Serialize, Deserialize)]
struct Stored {
    run_format: u32,
    #[serde(flatten)]
    settings: RunSettings,
}

/// What is known about an input file when a run starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// Not linked yet.
    New,
    /// Linked, and nothing changed since.
    Finished,
    /// Linked, but the input has changed since, or the output is missing or was changed.
    Stale,
}

/// A locked run folder.
#[derive(Debug)]
pub struct RunFolder {
    path: PathBuf,
    settings: RunSettings,
    journal: Journal,
    finished: BTreeMap<String, FinishedFile>,
    /// Locked as long as it is open.
    _lock: File,
}

impl RunFolder {
    /// Creates a run folder, or uses an empty one.
    ///
    /// # Errors
    /// If the folder contains files, is in use, or cannot be written.
    pub fn create(path: &Path, settings: RunSettings) -> Result<RunFolder> {
        if path.join(RUN_FILE).exists() {
            return Err(Error::exists(format!("{} already contains a run", path.display()))
                .with_hint(format!("continue it with `--resume {}`, or choose a new folder", path.display())));
        }
        std::fs::create_dir_all(path).map_err(|source| Error::io("create", path, source))?;
        let lock = lock(path)?;
        let entries = std::fs::read_dir(path).map_err(|source| Error::io("read", path, source))?;
        let is_foreign = |name: &str| name != LOCK && !is_temporary(name);
        if entries.filter_map(|entry| Some(entry.ok()?.file_name())).any(|name| is_foreign(&name.to_string_lossy())) {
            return Err(Error::exists(format!("{} exists and is not an empty folder", path.display()))
                .with_hint("choose a new folder; existing files are never overwritten"));
        }
        remove_temporaries(path)?;
        let run_file = path.join(RUN_FILE);
        let mut file = AtomicFile::create(&run_file)?;
        let stored = Stored { run_format: FORMAT, settings };
        let text = serde_json::to_string_pretty(&stored).expect("strings and numbers can be written as JSON") + "\n";
        file.write_all(text.as_bytes()).map_err(|source| Error::io("write", &run_file, source))?;
        file.commit()?;
        RunFolder::open(path, stored.settings, lock)
    }

    /// Opens a run folder to continue its run.
    ///
    /// # Errors
    /// If it is not a run folder, is in use, or belongs to a run with other settings.
    pub fn resume(path: &Path, settings: &RunSettings) -> Result<RunFolder> {
        let stored = RunFolder::settings_of(path)?;
        let lock = lock(path)?;
        check_equal(path, &stored, settings)?;
        remove_temporaries(path)?;
        RunFolder::open(path, stored, lock)
    }

    /// The settings of a run.
    ///
    /// # Errors
    /// If the folder contains no readable run.
    pub fn settings_of(path: &Path) -> Result<RunSettings> {
        let run_file = path.join(RUN_FILE);
        let bytes = match std::fs::read(&run_file) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                let message = format!("{} contains no run to resume", path.display());
                return Err(Error::not_found(message).with_hint("start a run with `--output FOLDER/`"));
            }
            Err(source) => return Err(Error::io("read", &run_file, source)),
        };
        let damaged = |message: String| {
            Error::artifact(&run_file, message).with_hint("start a new run with `--output` and a new folder")
        };
        let stored: Stored =
            serde_json::from_slice(&bytes).map_err(|error| damaged(format!("invalid run settings: {error}")))?;
        match stored.run_format {
            FORMAT => Ok(stored.settings),
            format => Err(damaged(format!("it has format {format}; this version reads {FORMAT}"))),
        }
    }

    fn open(path: &Path, settings: RunSettings, lock: File) -> Result<RunFolder> {
        let (journal, records) = Journal::open(&path.join(JOURNAL))?;
        let finished = records.into_iter().map(|record| (record.output.clone(), record)).collect();
        Ok(RunFolder { path: path.to_path_buf(), settings, journal, finished, _lock: lock })
    }

    /// Path of an output; its folder exists afterwards.
    ///
    /// # Errors
    /// If the folder cannot be created.
    pub fn output_path(&self, output: &str) -> Result<PathBuf> {
        let path = self.path.join(output);
        if let Some(folder) = path.parent().filter(|_| output.contains('/')) {
            std::fs::create_dir_all(folder).map_err(|source| Error::io("create", folder, source))?;
        }
        Ok(path)
    }

    /// The record of a finished file.
    pub fn finished(&self, output: &str) -> Option<&FinishedFile> {
        self.finished.get(output)
    }

    /// Names of all finished outputs.
    pub fn outputs(&self) -> impl Iterator<Item = &str> {
        self.finished.keys().map(String::as_str)
    }

    /// Compares a file with the journal: checksum of the input, size of the output. An input that cannot be read has
    /// changed.
    pub fn state(&self, file: &BatchFile) -> State {
        let Some(record) = self.finished.get(&file.output) else { return State::New };
        let n_written = std::fs::metadata(self.path.join(&file.output)).map(|metadata| metadata.len());
        let is_there = n_written.is_ok_and(|n| n == record.output_checksum.bytes);
        let is_same = || checksum(&file.input.parts()).is_ok_and(|checksum| checksum == record.input_checksum);
        if is_there && is_same() { State::Finished } else { State::Stale }
    }

    /// Enters a file in the journal; its output must be in place. Adds the checksum of the output, and the provenance.
    ///
    /// # Errors
    /// If the output cannot be read or the journal cannot be written.
    pub fn finish(&mut self, record: FinishedFile) -> Result<()> {
        let record = FinishedFile {
            output_checksum: checksum(&[&self.path.join(&record.output)])?,
            kb: self.settings.kb.clone(),
            model: self.settings.model.clone(),
            version: self.settings.version.clone(),
            ..record
        };
        self.journal.append(&record)?;
        self.finished.insert(record.output.clone(), record);
        Ok(())
    }
}

/// Fails unless a run may be continued with `settings`.
fn check_equal(path: &Path, stored: &RunSettings, settings: &RunSettings) -> Result<()> {
    let path = path.display();
    let none = String::new();
    let shown = |value: &str| if value.is_empty() { "not given".to_owned() } else { format!("`{value}`") };
    let names = stored.options.keys().chain(settings.options.keys());
    for name in names {
        let was = stored.options.get(name).unwrap_or(&none);
        let is = settings.options.get(name).unwrap_or(&none);
        if was != is {
            let message =
                format!("the run in {path} has other options: `{name}` was {}, now {}", shown(was), shown(is));
            let hint = format!("resume it with `canonym link --resume {path}` alone, or start a new run");
            return Err(Error::Usage { message, hint: Some(hint) });
        }
    }
    let parts = [
        ("knowledge base", &stored.kb, &settings.kb),
        ("model", &stored.model, &settings.model),
        ("version of canonym", &stored.version, &settings.version),
    ];
    for (what, was, is) in parts {
        if was != is {
            let message = format!("the run in {path} was started with another {what}: {was}, now {is}");
            return Err(Error::mismatch(message)
                .with_hint(format!("start a new run, or resume it with the {what} that it was started with")));
        }
    }
    Ok(())
}

fn lock(path: &Path) -> Result<File> {
    let at = path.join(LOCK);
    let opened = File::options().write(true).create(true).truncate(false).open(&at);
    let file = opened.map_err(|source| Error::io("create", &at, source))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(std::fs::TryLockError::WouldBlock) => {
            Err(Error::busy(format!("another process is using the run folder {}", path.display()))
                .with_hint("wait until it is finished"))
        }
        Err(std::fs::TryLockError::Error(source)) => Err(Error::io("create", &at, source)),
    }
}

/// Removes what a killed run left unfinished. The folder must be locked.
fn remove_temporaries(folder: &Path) -> Result<()> {
    let entries = std::fs::read_dir(folder).map_err(|source| Error::io("read", folder, source))?;
    for entry in entries {
        let entry = entry.map_err(|source| Error::io("read", folder, source))?;
        let kind = entry.file_type().map_err(|source| Error::io("read", &entry.path(), source))?;
        if kind.is_dir() {
            remove_temporaries(&entry.path())?;
        } else if is_temporary(&entry.file_name().to_string_lossy()) {
            std::fs::remove_file(entry.path()).map_err(|source| Error::io("remove", &entry.path(), source))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::list;
    use super::*;

    fn settings(kb: &str, top_k: &str) -> RunSettings {
        let options = BTreeMap::from([("--top-k".to_owned(), top_k.to_owned())]);
        RunSettings { kb: kb.to_owned(), options, ..RunSettings::default() }
    }

    #[test]
    fn a_finished_file_stays_finished_until_something_changes() {
        let folder = tempfile::tempdir().unwrap();
        let (input, run) = (folder.path().join("a.txt"), folder.path().join("run"));
        std::fs::write(&input, "No pain.").unwrap();
        let file = list(std::slice::from_ref(&input), None, "jsonl").unwrap().0.remove(0);
        let mut made = RunFolder::create(&run, settings("k", "5")).unwrap();
        assert_eq!(made.state(&file), State::New);
        let output = made.output_path(&file.output).unwrap();
        std::fs::write(&output, "{}").unwrap();
        let input_checksum = checksum(&file.input.parts()).unwrap();
        made.finish(FinishedFile { output: file.output.clone(), input_checksum, ..FinishedFile::default() }).unwrap();
        drop(made);
        std::fs::write(run.join(".a.txt.jsonl.77-0123456789abcdef.tmp"), "half").unwrap();
        let again = RunFolder::resume(&run, &settings("k", "5")).unwrap();
        assert!(!run.join(".a.txt.jsonl.77-0123456789abcdef.tmp").exists());
        assert_eq!(again.state(&file), State::Finished);
        assert_eq!(again.finished("a.txt.jsonl").unwrap().kb, "k");
        std::fs::write(&input, "No cough.").unwrap();
        assert_eq!(again.state(&file), State::Stale);
        std::fs::write(&input, "No pain.").unwrap();
        std::fs::remove_file(&output).unwrap();
        assert_eq!(again.state(&file), State::Stale);
    }

    #[test]
    fn other_settings_and_folders_in_use_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let run = folder.path().join("run");
        let message =
            |result: Result<RunFolder>| result.unwrap_err().to_string().replace(&run.display().to_string(), "run");
        assert_eq!(message(RunFolder::resume(&run, &settings("k", "5"))), "run contains no run to resume");
        let first = RunFolder::create(&run, settings("k", "5")).unwrap();
        assert_eq!(
            message(RunFolder::resume(&run, &settings("k", "5"))),
            "another process is using the run folder run"
        );
        drop(first);
        assert_eq!(
            message(RunFolder::resume(&run, &settings("k", "3"))),
            "the run in run has other options: `--top-k` was `5`, now `3`"
        );
        assert_eq!(
            message(RunFolder::resume(&run, &settings("l", "5"))),
            "the run in run was started with another knowledge base: k, now l"
        );
        assert_eq!(message(RunFolder::create(&run, settings("k", "5"))), "run already contains a run");
    }

    #[test]
    fn only_names_of_unfinished_files_are_removed() {
        assert!(is_temporary(".a.jsonl.7-0123456789abcdef.tmp"));
        for name in ["a.jsonl", ".a.tmp", ".a.7-xyz.tmp", "a.7-0123456789abcdef.tmp", ".lock"] {
            assert!(!is_temporary(name), "{name}");
        }
    }
}
