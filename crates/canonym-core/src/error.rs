//! The error type of the crate: what failed, where, and with which value.
//!
//! Messages are lower-case phrases without a full stop and do not repeat their source. Advice goes into the hint, which
//! the command line prints on a separate line.

use std::path::{Path, PathBuf};

/// Result type of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// An error while reading, building, opening or linking.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An I/O operation on a path failed.
    #[error("cannot {action} {}", path.display())]
    Io {
        /// The operation: "open", "read", "write", "create" or "rename".
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// A record of a text format is malformed.
    #[error("{}:{line}: {message}", path.display())]
    Parse {
        /// The file, `-` for standard input, `archive.zip/member` for a member of an archive.
        path: PathBuf,
        /// Line number, from 1.
        line: u64,
        /// What is wrong, with the value.
        message: String,
        /// How to fix it.
        hint: Option<String>,
    },
    /// A compiled file is truncated, damaged, of another kind, or of an unsupported format number.
    #[error("cannot use {}: {message}", path.display())]
    Artifact {
        /// The compiled file.
        path: PathBuf,
        /// What is wrong with it.
        message: String,
        /// How to fix it.
        hint: Option<String>,
    },
    /// An input exceeds a limit on size, depth, number or expansion.
    #[error("{}{message}", path.as_ref().map(|path| format!("{}: ", path.display())).unwrap_or_default())]
    Limit {
        /// Path of the input; `None` for inputs of several files or in memory.
        path: Option<PathBuf>,
        /// The limit, and the value that exceeds it if known.
        message: String,
        /// How to fix it.
        hint: Option<String>,
    },
    /// Inputs do not belong together, such as predictions of other documents, or a model and another knowledge base.
    #[error("{message}")]
    Mismatch {
        /// The inputs, and how they differ.
        message: String,
        /// How to fix it.
        hint: Option<String>,
    },
    /// Invalid options or arguments, alone or in combination.
    #[error("{message}")]
    Usage {
        /// Which option, and why it is invalid.
        message: String,
        /// How to fix it.
        hint: Option<String>,
    },
    /// A name is unknown: of a concept, format, measure, model or checkpoint.
    #[error("{message}")]
    NotFound {
        /// What was looked up, and where.
        message: String,
        /// How to fix it.
        hint: Option<String>,
    },
    /// A format, release or model cannot do what is asked of it.
    #[error("{message}")]
    Unsupported {
        /// What is not supported, and by what.
        message: String,
        /// How to fix it.
        hint: Option<String>,
    },
    /// The settings of an experiment or a model are invalid.
    #[error("{message}")]
    Config {
        /// Which setting, and why it is invalid.
        message: String,
        /// How to fix it.
        hint: Option<String>,
    },
    /// The inputs hold nothing that can be used, or lack a part that is needed.
    #[error("{message}")]
    NoData {
        /// What is missing, and where.
        message: String,
        /// How to fix it.
        hint: Option<String>,
    },
    /// A part of a model is unreadable or contradicts another; the file is named by the context.
    #[error("{message}")]
    Damaged {
        /// Which part.
        message: String,
        /// How to fix it.
        hint: Option<String>,
    },
    /// A model was trained on documents that it would be evaluated on.
    #[error("{message}")]
    Seen {
        /// How many documents, and which part of the model was trained on them.
        message: String,
        /// How to fix it.
        hint: Option<String>,
    },
    /// An output would replace something that is no earlier version of it.
    #[error("{message}")]
    Exists {
        /// What is there.
        message: String,
        /// How to fix it.
        hint: Option<String>,
    },
    /// Another process uses the file or folder.
    #[error("{message}")]
    Busy {
        /// Which one.
        message: String,
        /// How to fix it.
        hint: Option<String>,
    },
    /// A server or a network service cannot be used.
    #[error("{message}")]
    Unavailable {
        /// Its address, and its answer if there was one.
        message: String,
        /// How to fix it.
        hint: Option<String>,
    },
    /// The caller stopped a long operation.
    #[error("{message}")]
    Cancelled {
        /// The operation.
        message: String,
        /// How to fix it.
        hint: Option<String>,
    },
    /// A process that was started for a part of the work failed, such as a training by the server.
    #[error("{message}")]
    Process {
        /// What it wrote to standard error, or how it ended.
        message: String,
        /// How to fix it.
        hint: Option<String>,
    },
    /// The loss of a training is not finite any more.
    #[error("{message}")]
    Diverged {
        /// The step, and the loss.
        message: String,
        /// How to fix it.
        hint: Option<String>,
    },
    /// An error with a description of the operation that failed.
    #[error("{message}")]
    Context {
        /// The operation.
        message: String,
        /// The cause.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The caller passed an invalid argument to a function.
    #[error("{message}")]
    Invalid {
        /// Which value, and why it is invalid.
        message: String,
        /// How to fix it.
        hint: Option<String>,
    },
}

/// The pattern of the errors whose hint can be set.
macro_rules! hinted {
    ($hint:ident) => {
        Error::Parse { $hint, .. }
            | Error::Artifact { $hint, .. }
            | Error::Mismatch { $hint, .. }
            | Error::Usage { $hint, .. }
            | Error::NotFound { $hint, .. }
            | Error::Unsupported { $hint, .. }
            | Error::Config { $hint, .. }
            | Error::NoData { $hint, .. }
            | Error::Damaged { $hint, .. }
            | Error::Seen { $hint, .. }
            | Error::Exists { $hint, .. }
            | Error::Busy { $hint, .. }
            | Error::Unavailable { $hint, .. }
            | Error::Cancelled { $hint, .. }
            | Error::Process { $hint, .. }
            | Error::Diverged { $hint, .. }
            | Error::Invalid { $hint, .. }
    };
}

impl Error {
    /// An [`Error::Io`] on `path`.
    pub fn io(action: &'static str, path: &Path, source: std::io::Error) -> Error {
        Error::Io { action, path: path.to_path_buf(), source }
    }

    /// An [`Error::Parse`] at `line` (from 1) of `path`, without hint.
    pub fn parse(path: &Path, line: u64, message: impl Into<String>) -> Error {
        Error::Parse { path: path.to_path_buf(), line, message: message.into(), hint: None }
    }

    /// An [`Error::Artifact`] on `path`, without hint.
    pub fn artifact(path: &Path, message: impl Into<String>) -> Error {
        Error::Artifact { path: path.to_path_buf(), message: message.into(), hint: None }
    }

    /// An [`Error::Limit`] on `path`, with the general hint.
    pub fn limit(path: &Path, message: impl Into<String>) -> Error {
        let hint = "check that this is the right file; if it is, split it into smaller ones";
        Error::Limit { path: Some(path.to_path_buf()), message: message.into(), hint: Some(hint.to_owned()) }
    }

    /// An [`Error::Limit`] without path and hint.
    pub fn too_many(message: impl Into<String>) -> Error {
        Error::Limit { path: None, message: message.into(), hint: None }
    }

    /// An [`Error::Mismatch`] without hint.
    pub fn mismatch(message: impl Into<String>) -> Error {
        Error::Mismatch { message: message.into(), hint: None }
    }

    /// An [`Error::NotFound`] without hint.
    pub fn not_found(message: impl Into<String>) -> Error {
        Error::NotFound { message: message.into(), hint: None }
    }

    /// An [`Error::Unsupported`] without hint.
    pub fn unsupported(message: impl Into<String>) -> Error {
        Error::Unsupported { message: message.into(), hint: None }
    }

    /// An [`Error::Config`] without hint.
    pub fn config(message: impl Into<String>) -> Error {
        Error::Config { message: message.into(), hint: None }
    }

    /// An [`Error::NoData`] without hint.
    pub fn no_data(message: impl Into<String>) -> Error {
        Error::NoData { message: message.into(), hint: None }
    }

    /// An [`Error::Damaged`] without hint.
    pub fn damaged(message: impl Into<String>) -> Error {
        Error::Damaged { message: message.into(), hint: None }
    }

    /// An [`Error::Seen`] without hint.
    pub fn seen(message: impl Into<String>) -> Error {
        Error::Seen { message: message.into(), hint: None }
    }

    /// An [`Error::Exists`] without hint.
    pub fn exists(message: impl Into<String>) -> Error {
        Error::Exists { message: message.into(), hint: None }
    }

    /// An [`Error::Busy`] without hint.
    pub fn busy(message: impl Into<String>) -> Error {
        Error::Busy { message: message.into(), hint: None }
    }

    /// An [`Error::Unavailable`] without hint.
    pub fn unavailable(message: impl Into<String>) -> Error {
        Error::Unavailable { message: message.into(), hint: None }
    }

    /// An [`Error::Cancelled`] without hint.
    pub fn cancelled(message: impl Into<String>) -> Error {
        Error::Cancelled { message: message.into(), hint: None }
    }

    /// An [`Error::Process`] without hint.
    pub fn process(message: impl Into<String>) -> Error {
        Error::Process { message: message.into(), hint: None }
    }

    /// An [`Error::Diverged`] without hint.
    pub fn diverged(message: impl Into<String>) -> Error {
        Error::Diverged { message: message.into(), hint: None }
    }

    /// An [`Error::Invalid`] without hint.
    pub fn invalid(message: impl Into<String>) -> Error {
        Error::Invalid { message: message.into(), hint: None }
    }

    /// An [`Error::Usage`] with hint.
    pub fn usage(message: impl Into<String>, hint: impl Into<String>) -> Error {
        Error::Usage { message: message.into(), hint: Some(hint.into()) }
    }

    /// Sets the hint. I/O errors, and limits of a file, are returned unchanged.
    #[must_use]
    pub fn with_hint(mut self, text: impl Into<String>) -> Error {
        if let hinted!(hint) | Error::Limit { path: None, hint, .. } = &mut self {
            *hint = Some(text.into());
        }
        self
    }

    /// The innermost error of this crate, inside all [`Error::Context`]: the one whose variant is the kind of the error. An [`Error::Context`]
    /// around an error of another crate is returned as it is.
    pub fn root(&self) -> &Error {
        match self {
            Error::Context { source, .. } => source.downcast_ref::<Error>().map_or(self, Error::root),
            _ => self,
        }
    }

    /// The message, followed by the messages of its sources.
    pub fn with_causes(&self) -> String {
        let causes = std::iter::successors(std::error::Error::source(self), |cause| cause.source());
        causes.fold(self.to_string(), |text, cause| format!("{text}: {cause}"))
    }

    /// The file that the error is about, if it is about one.
    pub fn path(&self) -> Option<&Path> {
        match self.root() {
            Error::Io { path, .. } | Error::Parse { path, .. } | Error::Artifact { path, .. } => Some(path),
            Error::Limit { path, .. } => path.as_deref(),
            _ => None,
        }
    }

    /// The line of the file, from 1, if known.
    pub fn line(&self) -> Option<u64> {
        match self.root() {
            Error::Parse { line, .. } => Some(*line),
            _ => None,
        }
    }

    /// How to fix the error, if known.
    pub fn hint(&self) -> Option<&str> {
        match self.root() {
            hinted!(hint) | Error::Limit { hint, .. } => hint.as_deref(),
            Error::Context { .. } => None,
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
        }
    }
}

/// Adds a description of the failed operation to an error.
pub trait Context<T> {
    /// Wraps the error in an [`Error::Context`] with `message`.
    fn context(self, message: impl Into<String>) -> Result<T>;
    /// Like [`Context::context`], with a lazily built message.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kind_path_line_and_hint_are_those_of_the_innermost_error() {
        let error = Error::parse(Path::new("a.tsv"), 3, "no id").with_hint("add one");
        let wrapped = Err::<(), _>(error).context("cannot read names").context("cannot build").unwrap_err();
        assert!(matches!(wrapped.root(), Error::Parse { .. }));
        assert_eq!((wrapped.path(), wrapped.line()), (Some(Path::new("a.tsv")), Some(3)));
        assert_eq!(wrapped.hint(), Some("add one"));
        assert_eq!(wrapped.with_causes(), "cannot build: cannot read names: a.tsv:3: no id");
    }

    #[test]
    fn context_around_an_error_of_another_crate_is_its_own_root() {
        let wrapped = Err::<(), _>(std::fmt::Error).context("cannot write").unwrap_err();
        assert!(matches!(wrapped.root(), Error::Context { message, .. } if message == "cannot write"));
        assert_eq!((wrapped.path(), wrapped.hint()), (None, None));
    }
}
