//! The one error type of the crate: what failed, where, and with which value.
//!
//! Messages are lower-case phrases without a full stop and do not repeat their source. What to do about
//! an error stands in its hint, which the command line prints on a line of its own.

use std::path::{Path, PathBuf};

/// The result of every fallible function in this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// What can go wrong while reading, building, opening or linking.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The operating system refused to read or write a path.
    #[error("cannot {action} {}", path.display())]
    Io {
        /// What was tried: "open", "read", "write", "create", "rename".
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// What the operating system said.
        source: std::io::Error,
    },
    /// A record of a text format is malformed.
    #[error("{}:{line}: {message}", path.display())]
    Parse {
        /// The file, `-` for standard input, `archive.zip/member` for a member of an archive.
        path: PathBuf,
        /// The line, counted from 1.
        line: u64,
        /// What is wrong and which value.
        message: String,
        /// What the user can do about it.
        hint: Option<String>,
    },
    /// A compiled file is truncated, damaged, foreign, or of another format number.
    #[error("cannot use {}: {message}", path.display())]
    Artifact {
        /// The compiled file.
        path: PathBuf,
        /// What is wrong with it.
        message: String,
        /// What the user can do about it.
        hint: Option<String>,
    },
    /// An input is larger, deeper or more expanded than the stated limit.
    #[error("{}: {message}", path.display())]
    Limit {
        /// The input.
        path: PathBuf,
        /// The limit and the value that passed it.
        message: String,
    },
    /// Options or arguments that cannot be used, or not together: the fault is in the call, not in what was read.
    #[error("{message}")]
    Usage {
        /// Which option, and why.
        message: String,
        /// What the user can do about it.
        hint: Option<String>,
    },
    /// An error, and what could not be done because of it.
    #[error("{message}")]
    Context {
        /// What was being done.
        message: String,
        /// Why it failed.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A value that the caller gave cannot be used.
    #[error("{message}")]
    Invalid {
        /// Which value, and why.
        message: String,
        /// What the user can do about it.
        hint: Option<String>,
    },
}

impl Error {
    /// An [`Error::Io`] on `path`.
    pub fn io(action: &'static str, path: &Path, source: std::io::Error) -> Error {
        Error::Io { action, path: path.to_path_buf(), source }
    }

    /// An [`Error::Parse`] at `line` (from 1) of `path`, without a hint.
    pub fn parse(path: &Path, line: u64, message: impl Into<String>) -> Error {
        Error::Parse { path: path.to_path_buf(), line, message: message.into(), hint: None }
    }

    /// An [`Error::Artifact`] on `path`, without a hint.
    pub fn artifact(path: &Path, message: impl Into<String>) -> Error {
        Error::Artifact { path: path.to_path_buf(), message: message.into(), hint: None }
    }

    /// An [`Error::Limit`] on `path`.
    pub fn limit(path: &Path, message: impl Into<String>) -> Error {
        Error::Limit { path: path.to_path_buf(), message: message.into() }
    }

    /// An [`Error::Invalid`] without a hint.
    pub fn invalid(message: impl Into<String>) -> Error {
        Error::Invalid { message: message.into(), hint: None }
    }

    /// An [`Error::Usage`] with its hint.
    pub fn usage(message: impl Into<String>, hint: impl Into<String>) -> Error {
        Error::Usage { message: message.into(), hint: Some(hint.into()) }
    }

    /// The same error with what the user can do about it. I/O and limit errors are left as they are.
    #[must_use]
    pub fn with_hint(mut self, text: impl Into<String>) -> Error {
        if let Error::Parse { hint, .. }
        | Error::Artifact { hint, .. }
        | Error::Usage { hint, .. }
        | Error::Invalid { hint, .. } = &mut self
        {
            *hint = Some(text.into());
        }
        self
    }

    /// The message with those of its causes behind it.
    pub fn with_causes(&self) -> String {
        let causes = std::iter::successors(std::error::Error::source(self), |cause| cause.source());
        causes.fold(self.to_string(), |text, cause| format!("{text}: {cause}"))
    }

    /// What the user can do about it, where we know.
    pub fn hint(&self) -> Option<&str> {
        match self {
            Error::Parse { hint, .. }
            | Error::Artifact { hint, .. }
            | Error::Usage { hint, .. }
            | Error::Invalid { hint, .. } => hint.as_deref(),
            Error::Context { source, .. } => source.downcast_ref::<Error>().and_then(Error::hint),
            Error::Io { source, .. } => match source.kind() {
                std::io::ErrorKind::NotFound => {
                    Some("check the path; relative paths are resolved from the current folder")
                }
                std::io::ErrorKind::InvalidData => Some("expected UTF-8 text: check the path, or convert the file"),
                std::io::ErrorKind::IsADirectory => Some("expected a file, not a folder"),
                std::io::ErrorKind::NotADirectory => Some("part of the path is a file, not a folder"),
                std::io::ErrorKind::PermissionDenied => Some("check the permissions"),
                _ => None,
            },
            Error::Limit { .. } => Some("check that this is the right file; if it is, split it into smaller ones"),
        }
    }
}

/// Says what could not be done because of an error, as a line of its own above it.
pub trait Context<T> {
    /// The error as the cause of `message`.
    fn context(self, message: impl Into<String>) -> Result<T>;
    /// The same, where the message takes work.
    fn with_context<M: Into<String>>(self, message: impl FnOnce() -> M) -> Result<T>;
}

impl<T, E: std::error::Error + Send + Sync + 'static> Context<T> for std::result::Result<T, E> {
    fn context(self, message: impl Into<String>) -> Result<T> {
        self.with_context(|| message)
    }

    fn with_context<M: Into<String>>(self, message: impl FnOnce() -> M) -> Result<T> {
        self.map_err(|error| Error::Context { message: message().into(), source: Box::new(error) })
    }
}
