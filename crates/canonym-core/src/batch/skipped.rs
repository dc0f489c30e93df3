//! Documents and files that a batch run skipped.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::Error;

/// A document, or the rest of a file, that was skipped. Written as a line of JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Skipped {
    /// The file: a path, `-`, or `archive.zip/member`.
    pub file: String,
    /// The line, from 1, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u64>,
    /// Id of the document, if it could be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Why it was skipped.
    pub error: String,
    /// How to fix it, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

impl Skipped {
    /// What was skipped because of `error` in `file`.
    pub fn new(error: &Error, file: &Path, id: Option<&str>) -> Skipped {
        let (file, line, message) = match error {
            Error::Parse { path, line, message, .. } => (path.as_path(), Some(*line), message.clone()),
            error => (file, None, error.with_causes()),
        };
        let file = file.display().to_string();
        // Messages about a file name it; here the file has a field of its own.
        let message = message.strip_prefix(&format!("{file}: ")).map_or(message.clone(), str::to_owned);
        let hint = error.hint().map(str::to_owned);
        Skipped { file, line, id: id.map(str::to_owned), error: message, hint }
    }

    /// The record as JSON, without a line end.
    pub fn to_line(&self) -> String {
        serde_json::to_string(self).expect("strings and numbers can be written as JSON")
    }
}
