//! MeSH descriptors and supplementary records as XML.

use super::{ImportConfig, Report, Sink};
use crate::input::Source;
use crate::{Error, Result};

/// Reads one file.
pub fn read(sources: &[Source], _config: &ImportConfig, _report: &mut Report, _sink: &mut Sink<'_>) -> Result<()> {
    Err(Error::invalid(format!("{}: this source format cannot be read yet", sources.len())))
}
