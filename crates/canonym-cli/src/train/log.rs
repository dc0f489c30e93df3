//! The log of a training: a line a step as CSV, a line a round as JSON, and progress for people.

use std::fs::{File, OpenOptions};
use std::io::{BufWriter, Write};
use std::path::Path;
use std::time::Instant;

use canonym::Error;
use canonym_neural::train::Progress;
use serde_json::json;

use crate::progress;

/// An open log.
pub struct Log {
    steps: BufWriter<File>,
    rounds: BufWriter<File>,
    stage: &'static str,
    n_steps: u64,
    started: Instant,
    /// The mean loss since the last round.
    losses: (f64, u64),
}

impl Log {
    /// Begins `log.csv` and `log.jsonl` in a folder.
    pub fn create(folder: &Path) -> anyhow::Result<Log> {
        let mut log = Log::open(folder, OpenOptions::new().write(true).create(true).truncate(true))?;
        writeln!(log.steps, "stage,step,loss,rate,norm,seconds")?;
        Ok(log)
    }

    /// Goes on with the log of a training that was stopped. Steps after its last checkpoint come again.
    pub fn go_on(folder: &Path) -> anyhow::Result<Log> {
        Log::open(folder, OpenOptions::new().append(true).create(true))
    }

    fn open(folder: &Path, options: &OpenOptions) -> anyhow::Result<Log> {
        let open = |name: &str| {
            let path = folder.join(name);
            options.open(&path).map(BufWriter::new).map_err(|error| Error::io("open", &path, error))
        };
        let (steps, rounds) = (open("log.csv")?, open("log.jsonl")?);
        Ok(Log { steps, rounds, stage: "", n_steps: 0, started: Instant::now(), losses: (0.0, 0) })
    }

    /// Begins a stage.
    pub fn begin(&mut self, stage: &'static str, n_steps: u64, n_examples: usize) {
        self.stage = stage;
        self.n_steps = n_steps;
        self.started = Instant::now();
        self.losses = (0.0, 0);
        progress::say(&format!("{stage}: {n_steps} steps on {n_examples} examples"));
    }

    /// Notes what happened.
    pub fn observe(&mut self, progress: Progress) -> canonym::Result<()> {
        let seconds = self.started.elapsed().as_secs_f64();
        let failed = |error| Error::io("write", Path::new("log.csv"), error);
        match progress {
            Progress::Step { step, loss, rate, norm } => {
                self.losses = (self.losses.0 + loss, self.losses.1 + 1);
                writeln!(self.steps, "{},{step},{loss:.6},{rate:.3e},{norm:.4},{seconds:.2}", self.stage)
                    .map_err(failed)
            }
            Progress::Round { step, score } => {
                let loss = self.losses.0 / self.losses.1.max(1) as f64;
                self.losses = (0.0, 0);
                let left = seconds / step.max(1) as f64 * self.n_steps.saturating_sub(step) as f64;
                let shown = score.map_or(String::new(), |score| format!(", held out {:.2}", 100.0 * score));
                progress::say(&format!(
                    "{} {step}/{}: loss {loss:.4}{shown}; {:.2} steps a second, {left:.0} s left",
                    self.stage,
                    self.n_steps,
                    step as f64 / seconds.max(1e-9)
                ));
                let line = json!({"stage": self.stage, "step": step, "loss": loss, "score": score, "seconds": seconds});
                writeln!(self.rounds, "{line}").map_err(failed)?;
                self.steps.flush().and_then(|()| self.rounds.flush()).map_err(failed)
            }
        }
    }

    /// Ends a stage.
    pub fn end(&mut self) {
        progress::say(&format!("{}: done in {:.0} s", self.stage, self.started.elapsed().as_secs_f64()));
    }
}
