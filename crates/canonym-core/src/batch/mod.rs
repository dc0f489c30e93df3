//! Batch runs over many files: what was skipped and why, and run folders that an interrupted run continues in.
//!
//! This module knows which files are finished, and under which settings; it links no documents.
//!
//! ```
//! use std::path::Path;
//! use canonym_core::Error;
//! use canonym_core::batch::Skipped;
//!
//! let error = Error::parse(Path::new("notes.jsonl"), 9001, "expected a JSON object, found `%PDF`");
//! let skipped = Skipped::new(&error, Path::new("notes.jsonl"), None);
//! assert_eq!(skipped.to_line(), r#"{"file":"notes.jsonl","line":9001,"error":"expected a JSON object, found `%PDF`"}"#);
//! ```

mod checksum;
mod journal;
mod outputs;
mod reader;
mod run_folder;
mod skipped;
mod writer;

pub use checksum::{Checksum, checksum};
pub use journal::FinishedFile;
pub use outputs::{BatchFile, list};
pub use reader::{Batch, BatchConfig, Batches};
pub use run_folder::{RunFolder, RunSettings, State};
pub use skipped::Skipped;
pub use writer::{Ended, Outputs, RunOutputs, SkipList};
