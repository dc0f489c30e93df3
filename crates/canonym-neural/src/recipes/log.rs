//! Training log: CSV lines by step, JSON lines by mining interval, the learning curve, and progress messages.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;

use crate::train::Progress;
use canonym_core::Error;
use serde_json::json;

use super::curve::{self, Entry};
use super::run_folder::write_text;
use crate::status;

const STEPS: &str = "log.csv";
const INTERVALS: &str = "log.jsonl";
const CURVE: &str = "curve.svg";

/// An open log.
pub struct Log {
    folder: PathBuf,
    steps: BufWriter<File>,
    intervals: BufWriter<File>,
    stage: &'static str,
    n_steps: u64,
    /// Steps and seconds of the stage before it was interrupted.
    before: (u64, f64),
    started: Instant,
    /// Sums of the total and of each named loss since the last mining interval, and the number of steps.
    losses: Sums,
}

/// Sums of losses over steps.
#[derive(Default)]
struct Sums {
    total: f64,
    terms: BTreeMap<&'static str, f64>,
    n_steps: u64,
}

impl Sums {
    fn add(&mut self, total: f64, terms: &[(&'static str, f64)]) {
        self.total += total;
        self.n_steps += 1;
        terms.iter().for_each(|(name, value)| *self.terms.entry(name).or_default() += value);
    }

    /// Means of the total and of each named loss.
    fn means(self) -> (f64, BTreeMap<&'static str, f64>) {
        let n = self.n_steps.max(1) as f64;
        (self.total / n, self.terms.into_iter().map(|(name, sum)| (name, sum / n)).collect())
    }
}

impl Log {
    /// Creates `log.csv` and `log.jsonl` in a folder.
    pub fn create(folder: &Path) -> canonym_core::Result<Log> {
        write_text(folder, STEPS, "stage,step,loss,rate,norm,seconds\n")?;
        write_text(folder, INTERVALS, "")?;
        Log::go_on(folder)
    }

    /// Reopens the log of an interrupted training.
    pub fn go_on(folder: &Path) -> canonym_core::Result<Log> {
        Ok(Log {
            folder: folder.to_path_buf(),
            steps: append(folder, STEPS)?,
            intervals: append(folder, INTERVALS)?,
            stage: "",
            n_steps: 0,
            before: (0, 0.0),
            started: Instant::now(),
            losses: Sums::default(),
        })
    }

    /// Starts a stage that resumes after `n_made` steps. Entries of later steps are removed, since these are repeated.
    pub fn begin(
        &mut self,
        stage: &'static str,
        n_made: u64,
        n_steps: u64,
        n_examples: usize,
    ) -> canonym_core::Result<()> {
        self.stage = stage;
        self.n_steps = n_steps;
        let is_kept = |entry: &Entry| entry.stage != stage || entry.step <= n_made;
        let kept = keep(&self.folder, STEPS, |line| Entry::of_step(line).as_ref().is_none_or(is_kept))?;
        keep(&self.folder, INTERVALS, |line| Entry::of_interval(line).as_ref().is_none_or(is_kept))?;
        (self.steps, self.intervals) = (append(&self.folder, STEPS)?, append(&self.folder, INTERVALS)?);
        let own = kept.lines().filter_map(Entry::of_step).rfind(|entry| entry.stage == stage);
        self.before = (n_made, own.map_or(0.0, |entry| entry.seconds));
        self.started = Instant::now();
        self.losses = Sums::default();
        status::say(&format!("{stage}: {n_steps} steps on {n_examples} examples"));
        if n_made > 0 {
            status::say(&format!("{stage}: resuming after step {n_made}"));
        }
        Ok(())
    }

    /// Logs a progress event.
    pub fn observe(&mut self, progress: Progress<'_>) -> canonym_core::Result<()> {
        let now = self.started.elapsed().as_secs_f64();
        let seconds = self.before.1 + now;
        let failed = |error| Error::io("write", Path::new(STEPS), error);
        match progress {
            Progress::Step { step, loss, losses, rate, norm } => {
                self.losses.add(loss, losses);
                writeln!(self.steps, "{},{step},{loss:.6},{rate:.3e},{norm:.4},{seconds:.2}", self.stage)
                    .map_err(failed)
            }
            Progress::Round { step, score } => {
                let (loss, losses) = std::mem::take(&mut self.losses).means();
                let rate = step.saturating_sub(self.before.0) as f64 / now.max(1e-9);
                let left = self.n_steps.saturating_sub(step) as f64 / rate.max(1e-9);
                let shown = score.map_or(String::new(), |score| format!(", held out {:.2}", 100.0 * score));
                status::say(&format!(
                    "{} {step}/{}: loss {loss:.4}{shown}; {rate:.2} steps/s, {left:.0} s left",
                    self.stage, self.n_steps,
                ));
                let mut line =
                    json!({"stage": self.stage, "step": step, "loss": loss, "score": score, "seconds": seconds});
                if losses.len() > 1 {
                    line["losses"] = json!(losses);
                }
                writeln!(self.intervals, "{line}").map_err(failed)?;
                self.steps.flush().and_then(|()| self.intervals.flush()).map_err(failed)
            }
        }
    }

    /// Ends a stage and draws the learning curve so far.
    pub fn end(&mut self) -> canonym_core::Result<()> {
        status::say(&format!("{}: done in {:.0} s", self.stage, self.started.elapsed().as_secs_f64()));
        let drawn = curve::draw(&read(&self.folder, STEPS)?, &read(&self.folder, INTERVALS)?);
        write_text(&self.folder, CURVE, &drawn)
    }
}

fn append(folder: &Path, name: &str) -> canonym_core::Result<BufWriter<File>> {
    let path = folder.join(name);
    let file = OpenOptions::new().append(true).create(true).open(&path);
    Ok(BufWriter::new(file.map_err(|error| Error::io("open", &path, error))?))
}

fn read(folder: &Path, name: &str) -> canonym_core::Result<String> {
    let path = folder.join(name);
    std::fs::read_to_string(&path).map_err(|error| Error::io("read", &path, error))
}

/// Removes lines from a log, including an incomplete last line; returns the rest.
fn keep(folder: &Path, name: &str, is_kept: impl Fn(&str) -> bool) -> canonym_core::Result<String> {
    let text = read(folder, name)?;
    let is_kept = |line: &&str| line.ends_with('\n') && is_kept(line.trim_end());
    let kept: String = text.split_inclusive('\n').filter(is_kept).collect();
    if kept.len() < text.len() {
        write_text(folder, name, &kept)?;
    }
    Ok(kept)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Logs steps, with the end of a mining interval after every second one.
    fn train(log: &mut Log, steps: std::ops::RangeInclusive<u64>) {
        for step in steps {
            log.observe(Progress::Step { step, loss: 0.5 / step as f64, losses: &[], rate: 1e-3, norm: 1.0 }).unwrap();
            if step % 2 == 0 {
                log.observe(Progress::Round { step, score: Some(0.5) }).unwrap();
            }
        }
    }

    fn entries(folder: &Path) -> Vec<(String, u64)> {
        let (steps, intervals) = (read(folder, STEPS).unwrap(), read(folder, INTERVALS).unwrap());
        let all = steps.lines().filter_map(Entry::of_step).chain(intervals.lines().filter_map(Entry::of_interval));
        all.map(|entry| (entry.stage, entry.step)).collect()
    }

    #[test]
    fn steps_after_the_last_checkpoint_are_logged_once() {
        let (whole, stopped) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        for folder in [&whole, &stopped] {
            let mut log = Log::create(folder.path()).unwrap();
            log.begin("pretrain", 0, 2, 1).unwrap();
            train(&mut log, 1..=2);
            log.end().unwrap();
            log.begin("train", 0, 6, 1).unwrap();
            train(&mut log, 1..=if folder.path() == whole.path() { 6 } else { 5 });
        }
        let mut steps = append(stopped.path(), STEPS).unwrap();
        steps.write_all(b"train,2").unwrap();
        drop(steps);
        // The checkpoint was taken at step 2, though later steps were logged.
        let mut log = Log::go_on(stopped.path()).unwrap();
        log.begin("train", 2, 6, 1).unwrap();
        assert_eq!(read(stopped.path(), STEPS).unwrap().lines().count(), 1 + 2 + 2);
        train(&mut log, 3..=6);
        log.end().unwrap();
        drop(log);
        assert_eq!(entries(stopped.path()), entries(whole.path()));
        assert!(read(stopped.path(), CURVE).unwrap().contains("over 8 steps"));
    }
}
