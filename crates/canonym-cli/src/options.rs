//! Options shared by several commands: threads and probabilities.

use anyhow::Context;

use crate::errors::usage;

/// Sets the number of threads for the whole process; must be called at most once.
pub fn use_threads(threads: Option<usize>) -> anyhow::Result<()> {
    let Some(threads) = threads else { return Ok(()) };
    if threads == 0 || threads > 1024 {
        let hint = "omit `--threads` to use all cores";
        return Err(usage(format!("`--threads` must be between 1 and 1024, not {threads}"), hint));
    }
    rayon::ThreadPoolBuilder::new().num_threads(threads).build_global().context("cannot start the threads")
}

/// Parses a probability from 0 to 1.
pub fn parse_probability(text: &str) -> Result<f32, String> {
    match text.parse::<f32>() {
        Ok(value) if (0.0..=1.0).contains(&value) => Ok(value),
        _ => Err("expected a probability from 0 to 1".to_owned()),
    }
}
