//! The record of who came in, who may do what, and what was taken out: lines of JSON in a file of the folder of data.
//!
//! What people decide is not in it; that is in the history of each document.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use serde_json::json;

use crate::store::folder;
use crate::times::{Millis, rfc3339};

/// The file in the folder of data.
pub const FILE: &str = "audit.jsonl";

/// The longest file, in bytes; what is older stands in one beside it, and what is older than that is gone.
const MAX: u64 = 16 << 20;

/// The open file.
#[derive(Debug)]
pub struct Audit {
    path: PathBuf,
    file: Mutex<Option<File>>,
}

impl Audit {
    /// The record in `folder`; the file is made with its first line.
    pub fn new(folder: &Path) -> Audit {
        Audit { path: folder.join(FILE), file: Mutex::default() }
    }

    /// Writes a line: when, who, from where, and what they did to whom or what. One that cannot be written is told in the log, and ends nothing.
    pub fn note(&self, at: Millis, (who, from): (&str, Option<IpAddr>), did: &str, what: &str) {
        let line = json!({"at": rfc3339(at), "who": who, "from": from, "did": did, "what": what});
        if let Err(error) = self.write(&format!("{line}\n")) {
            tracing::error!("the record {} cannot be written: {error}", self.path.display());
        }
    }

    fn write(&self, line: &str) -> canonym_core::Result<()> {
        let failed = |error| canonym_core::Error::io("write", &self.path, error);
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        if file.as_ref().and_then(|file| file.metadata().ok()).is_some_and(|metadata| metadata.len() > MAX) {
            std::fs::rename(&self.path, self.path.with_extension("jsonl.old")).map_err(failed)?;
            *file = None;
        }
        if file.is_none() {
            *file = Some(folder::private(&self.path, OpenOptions::new().append(true).create(true))?);
        }
        match file.as_mut() {
            Some(file) => file.write_all(line.as_bytes()).map_err(failed),
            None => Ok(()),
        }
    }
}
