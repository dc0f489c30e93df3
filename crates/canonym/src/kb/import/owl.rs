//! OWL ontologies as RDF/XML or Turtle.

use super::{ImportConfig, Report, Sink};
use crate::input::Input;
use crate::{Error, Result};

/// Reads one file.
pub fn read(input: &mut Input, _config: &ImportConfig, _report: &mut Report, _sink: &mut Sink<'_>) -> Result<()> {
    Err(Error::invalid(format!("{}: this source format cannot be read yet", input.path().display())))
}
