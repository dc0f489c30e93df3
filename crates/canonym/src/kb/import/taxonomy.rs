//! NCBI taxonomy dumps.

use super::{ImportConfig, Report, Sink};
use crate::input::Source;
use crate::{Error, Result};

/// Reads the tables of `sources` together.
pub fn read(sources: &[Source], _config: &ImportConfig, _report: &mut Report, _sink: &mut Sink<'_>) -> Result<()> {
    let path = sources.first().map(|source| source.path().display().to_string()).unwrap_or_default();
    Err(Error::invalid(format!("{path}: this source format cannot be read yet")))
}
