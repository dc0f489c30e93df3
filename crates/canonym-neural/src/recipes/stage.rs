//! A training stage of an experiment, with log and checkpoints; an interrupted stage is resumed.

use std::path::{Path, PathBuf};

use crate::tensor::parameters::Parameters;
use crate::train::{Objective, Progress, Run, RunConfig};
use canonym_core::error::Context;

use super::log::Log;

/// Settings of a stage.
#[derive(Debug, Clone, Copy)]
pub struct Stage<'a> {
    /// Name in the log.
    pub name: &'static str,
    /// Settings of the run.
    pub config: RunConfig,
    /// Random seed.
    pub seed: u64,
    /// The run folder.
    pub out: &'a Path,
    /// Identity of config and data that a checkpoint must match.
    pub of: &'a str,
}

impl Stage<'_> {
    /// Trains to the end.
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
        log.begin(self.name, run.n_made, self.config.n_steps, n_examples)?;
        run.train(objective, &mut |run: &Run, progress: Progress<'_>| {
            // The log is written before the checkpoint: extra entries can be removed on resume, missing ones cannot be restored.
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

/// Checkpoint of a stage, kept until the experiment is complete.
pub fn kept_at(out: &Path, stage: &str) -> PathBuf {
    out.join(format!("checkpoint-{stage}.safetensors"))
}

/// Opens the log of an experiment, and continues it if one of these stages was interrupted.
pub fn open_log(out: &Path, stages: &[&str]) -> canonym_core::Result<Log> {
    match stages.iter().any(|stage| kept_at(out, stage).exists()) {
        true => Log::go_on(out),
        false => Log::create(out),
    }
}

/// Removes the checkpoints of these stages.
pub fn remove_kept(out: &Path, stages: &[&str]) -> canonym_core::Result<()> {
    for kept in stages.iter().map(|stage| kept_at(out, stage)).filter(|kept| kept.exists()) {
        std::fs::remove_file(&kept).map_err(|error| canonym_core::Error::io("remove", &kept, error))?;
    }
    Ok(())
}
