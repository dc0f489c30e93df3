//! One training of an experiment: it logs, is kept after each round, and goes on where it was stopped.

use std::path::{Path, PathBuf};

use crate::tensor::parameters::Parameters;
use crate::train::{Objective, Progress, Run, RunConfig};
use canonym_core::error::Context;

use super::log::Log;

/// What a training is of and where it is kept.
#[derive(Debug, Clone, Copy)]
pub struct Stage<'a> {
    /// Its name in the log.
    pub name: &'static str,
    /// How it goes.
    pub config: RunConfig,
    /// What everything random begins with.
    pub seed: u64,
    /// The folder of the experiment.
    pub out: &'a Path,
    /// What a checkpoint has to be of: config and data.
    pub of: &'a str,
}

impl Stage<'_> {
    /// Trains weights to the end.
    pub fn train(
        &self,
        parameters: Parameters,
        objective: &mut impl Objective,
        n_examples: usize,
        log: &mut Log,
    ) -> canonym_core::Result<Parameters> {
        let mut run = Run::new(self.config, self.seed, parameters);
        let checkpoint = kept_at(self.out, self.name);
        if checkpoint.exists() {
            run.resume(&checkpoint, self.of).context("cannot resume the training")?;
        }
        log.begin(self.name, (run.n_made, self.config.n_steps), n_examples)?;
        run.train(objective, &mut |run: &Run, progress: Progress| {
            // First the log: what it has beyond a checkpoint is taken out, what it lacks would be lost.
            log.observe(progress)?;
            match progress {
                Progress::Round { .. } => run.save(&checkpoint, self.of),
                Progress::Step { .. } => Ok(()),
            }
        })?;
        log.end()?;
        Ok(run.finish())
    }
}

/// Where a stage is kept until the whole experiment is done.
pub fn kept_at(out: &Path, stage: &str) -> PathBuf {
    out.join(format!("checkpoint-{stage}.safetensors"))
}

/// The log of an experiment, which goes on where one of these stages was stopped.
pub fn open_log(out: &Path, stages: &[&str]) -> canonym_core::Result<Log> {
    match stages.iter().any(|stage| kept_at(out, stage).exists()) {
        true => Log::go_on(out),
        false => Log::create(out),
    }
}

/// Removes what was kept of these stages.
pub fn remove_kept(out: &Path, stages: &[&str]) -> canonym_core::Result<()> {
    for kept in stages.iter().map(|stage| kept_at(out, stage)).filter(|kept| kept.exists()) {
        std::fs::remove_file(&kept).map_err(|error| canonym_core::Error::io("remove", &kept, error))?;
    }
    Ok(())
}
