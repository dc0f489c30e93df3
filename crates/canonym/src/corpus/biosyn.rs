//! BioSyn queries, which are mentions without texts.

use crate::corpus::AnnotatedDocument;
use crate::corpus::check::Checker;

use crate::input::Input;
use crate::{Error, Result};

/// The documents of an input.
pub(super) struct Documents {
    input: Input,
}

impl Documents {
    pub fn new(input: Input) -> Result<Documents> {
        Ok(Documents { input })
    }

    /// A number that grows while the input is read.
    pub fn n_passed(&self) -> u64 {
        self.input.n_lines()
    }

    /// The next document, `None` after the last one. After a malformed one the next call reads the one after it.
    pub fn read_next(&mut self, _checker: &mut Checker) -> Result<Option<AnnotatedDocument>> {
        Err(Error::invalid(format!("{}: this format cannot be read yet", self.input.path().display())))
    }
}

/// Appends one document to `out`.
pub(super) fn write(_annotated: &AnnotatedDocument, _out: &mut Vec<u8>) -> Result<()> {
    Err(Error::invalid("this format cannot be written yet"))
}
