//! The rest of a compressed stream: read to its end, it tells whether the compressed data is damaged.
//!
//! A damaged byte often shows as malformed content long before the checksum at the end of the stream. A [`Tail`] shares
//! the stream with its [`super::Input`], so it can be read on after a reader of the content has failed.

use std::io::{self, Read};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use super::stream::LimitPassed;
use super::{BUFFER, translate};
use crate::{Error, Result};

/// A decompressed stream whose first error is final.
struct Stream {
    rest: Box<dyn Read + Send>,
    failure: Option<Failure>,
}

/// What is needed to repeat an error.
enum Failure {
    Os(i32),
    Limit(String),
    Data(io::ErrorKind, String),
}

impl Failure {
    fn of(error: &io::Error) -> Failure {
        match (error.raw_os_error(), error.get_ref().and_then(|inner| inner.downcast_ref::<LimitPassed>())) {
            (Some(code), _) => Failure::Os(code),
            (None, Some(passed)) => Failure::Limit(passed.0.clone()),
            (None, None) => Failure::Data(error.kind(), error.to_string()),
        }
    }

    fn error(&self) -> io::Error {
        match self {
            Failure::Os(code) => io::Error::from_raw_os_error(*code),
            Failure::Limit(message) => io::Error::other(LimitPassed(message.clone())),
            Failure::Data(kind, message) => io::Error::new(*kind, message.clone()),
        }
    }
}

/// A reader of a stream that others can read on.
#[derive(Clone)]
pub(super) struct Shared(Arc<Mutex<Stream>>);

impl Shared {
    pub fn new(rest: Box<dyn Read + Send>) -> Shared {
        Shared(Arc::new(Mutex::new(Stream { rest, failure: None })))
    }
}

impl Read for Shared {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut stream = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(failure) = &stream.failure {
            return Err(failure.error());
        }
        let result = stream.rest.read(buffer);
        if let Err(error) = &result
            && error.kind() != io::ErrorKind::Interrupted
        {
            stream.failure = Some(Failure::of(error));
        }
        result
    }
}

/// The part of an input that is not read yet. Empty for an input that is not compressed.
pub struct Tail {
    pub(super) stream: Option<Shared>,
    pub(super) path: PathBuf,
}

impl Tail {
    /// Reads to the end; whatever was read before must be used up or given up.
    ///
    /// # Errors
    /// If the compressed data is damaged or truncated, or exceeds a limit. The error is at `line`.
    pub fn check(&mut self, line: u64) -> Result<()> {
        let Some(mut stream) = self.stream.take() else { return Ok(()) };
        let mut piece = vec![0; BUFFER];
        loop {
            match stream.read(&mut piece) {
                Ok(0) => return Ok(()),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(translate(&self.path, line, true, error)),
            }
        }
    }

    /// The cause of `error`: damage of the compressed data if there is any, else malformed content.
    pub fn cause_of(&mut self, error: Error) -> Error {
        match &error {
            Error::Io { .. } | Error::Limit { .. } => error,
            _ => self.check(error.line().unwrap_or(1)).err().unwrap_or(error),
        }
    }
}
