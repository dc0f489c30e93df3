//! The audit log of sign-ins, changes of accounts, and exports: JSON lines in a file of the data folder.
//!
//! Decisions are not in it; they are in the history of each document.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use serde_json::json;

use crate::store::folder;
use crate::times::{Millis, rfc3339};

/// The file in the data folder.
pub const FILE: &str = "audit.jsonl";

/// The maximum size of the file, in bytes; one older file is kept.
const MAX_BYTES: u64 = 16 << 20;

/// The audit log.
#[derive(Debug)]
pub struct Audit {
    path: PathBuf,
    file: Mutex<Option<File>>,
}

impl Audit {
    /// The audit log in `folder`; the file is created with the first entry.
    pub fn new(folder: &Path) -> Audit {
        Audit { path: folder.join(FILE), file: Mutex::default() }
    }

    /// Writes an entry. A failure is logged and otherwise ignored.
    pub fn record(&self, at: Millis, who: &str, from: Option<IpAddr>, did: &str, what: &str) {
        let line = json!({"at": rfc3339(at), "who": who, "from": from, "did": did, "what": what});
        if let Err(error) = self.write(&format!("{line}\n")) {
            tracing::error!("cannot write the audit log {}: {error}", self.path.display());
        }
    }

    fn write(&self, line: &str) -> canonym_core::Result<()> {
        let failed = |error| canonym_core::Error::io("write", &self.path, error);
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        if file.as_ref().and_then(|file| file.metadata().ok()).is_some_and(|metadata| metadata.len() > MAX_BYTES) {
            std::fs::rename(&self.path, self.path.with_extension("jsonl.old")).map_err(failed)?;
            *file = None;
        }
        if file.is_none() {
            *file = Some(folder::open_private(&self.path, OpenOptions::new().append(true).create(true))?);
        }
        match file.as_mut() {
            Some(file) => file.write_all(line.as_bytes()).map_err(failed),
            None => Ok(()),
        }
    }
}
