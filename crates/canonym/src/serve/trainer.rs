//! Training for the server: `canonym train` in a child process, so that pages stay fast, cancelling is a kill, and a
//! crash does not affect the server.

use std::io::Read;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::time::Duration;

use canonym_core::corpus::{AnnotatedDocument, CorpusFormat, Writer};
use canonym_core::error::Context;
use canonym_core::eval::learned::{Fingerprints, Learned, Role};
use canonym_core::numbers::counted;
use canonym_core::{Error, Result};
use canonym_neural::objectives::tags::TagsConfig;
use canonym_neural::program;
use canonym_neural::train::RunConfig;
use canonym_neural::train::optimise::{AdamConfig, Schedule};
use canonym_serve::engine::{CurvePoint, Progress, Trained, Training, TrainingDocument, TrainingPlan};
use canonym_serve::{Engine, Trainer};
use serde::Deserialize;

use super::engine;
use super::split::{Parts, held_out, parts};
use canonym_neural::bundle::dual_encoder::DualBundle;
use canonym_neural::recipes::adapt::linker::{LinkerReport, NamesConfig};
use canonym_neural::recipes::adapt::{Experiment, Report, SYSTEM};
use canonym_neural::recipes::dual_encoder::fine_tuning;
use canonym_neural::system::terminology::{STARTER, TERMINOLOGY};

/// Environment variable set by a parent process: training ends when standard input closes.
pub const ENDS_WITH_INPUT: &str = "CANONYM_ENDS_WITH_INPUT";

/// Polling interval of a running training.
const POLL_INTERVAL: Duration = Duration::from_millis(500);

/// Steps per document, and the limits of the total.
const STEPS_PER_DOCUMENT: u64 = 3;
const MIN_STEPS: u64 = 60;
/// Minimum number of steps if the user gives none; with fewer, mention detection hardly changes.
const USUAL_STEPS: u64 = 150;
const MAX_STEPS: u64 = 600;

/// One in this many complete documents is held out.
const HOLD_OUT: usize = 5;

/// One in this many of the others tunes the linker, if they are enough.
const TUNE: usize = 5;

/// Rounds of training; each ends with an evaluation on the held-out documents.
const ROUNDS: u64 = 6;

/// Trains by running this program as a child process.
pub struct ProcessTrainer {
    /// Compiled knowledge base; the embedded one if `None`.
    pub kb: Option<PathBuf>,
    /// Model that the server was started with.
    pub model: String,
    /// Set if the model is a dual encoder, which is then fine-tuned.
    pub context: Option<ContextModel>,
}

/// The facts about a dual encoder that training needs.
#[derive(Debug, Clone)]
pub struct ContextModel {
    /// Whether it detects mentions, and not only links them.
    pub finds: bool,
    /// Training record of its parts.
    pub learned: Learned,
}

/// Settings accepted by the API.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Settings {
    /// Number of training steps.
    steps: Option<u64>,
    /// One in this many documents is held out.
    hold_out: Option<usize>,
    /// The model to start from.
    from: StartFrom,
}

/// The model that a training starts from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum StartFrom {
    /// The model in use.
    #[default]
    Current,
    /// The model that the server was started with.
    Base,
}

impl Settings {
    fn parse(settings: &serde_json::Value) -> Result<Settings> {
        match settings.is_null() {
            true => Ok(Settings::default()),
            false => serde_json::from_value(settings.clone()).map_err(|error| {
                Error::config(format!("invalid settings: {error}"))
                    .with_hint("use `steps` and `hold_out`, both numbers, and `from`, which is `current` or `base`")
            }),
        }
    }

    fn n_steps(&self, n_documents: usize) -> u64 {
        let wanted = self.steps.unwrap_or((STEPS_PER_DOCUMENT * n_documents as u64).max(USUAL_STEPS));
        wanted.clamp(MIN_STEPS, MAX_STEPS).next_multiple_of(ROUNDS)
    }
}

/// A child process that is killed on drop.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl ProcessTrainer {
    /// The model that training starts from: lexical models have no weights to fine-tune.
    fn base_model(&self) -> &str {
        match self.model.as_str() {
            "lexical" | "bm25" => "default",
            other => other,
        }
    }

    /// The compiled knowledge base, or that in the folder of a dual encoder; `None` for the embedded one.
    fn kb(&self) -> Option<PathBuf> {
        let own = Path::new(&self.model).join(TERMINOLOGY);
        self.kb.clone().or_else(|| (self.context.is_some() && own.exists()).then_some(own))
    }

    /// Splits the usable documents. Incomplete ones are left out if the model detects mentions: it would learn to miss unannotated mentions.
    fn split<'a>(&self, documents: &'a [TrainingDocument], hold_out: usize) -> Parts<'a> {
        let needs_all = self.context.as_ref().is_some_and(|model| model.finds);
        parts(documents, hold_out, !needs_all)
    }

    /// Writes the training data and the experiment file. Returns the number of steps.
    fn prepare(&self, training: &Training) -> Result<u64> {
        let settings = Settings::parse(&training.settings)?;
        let folder = &training.output;
        std::fs::create_dir_all(folder).map_err(|error| Error::io("create", folder, error))?;
        let (n_steps, toml) = match &self.context {
            Some(model) => self.fine_tuning(training, settings, model)?,
            None => self.adaptation(training, settings)?,
        };
        let path = folder.join("training.toml");
        std::fs::write(&path, toml).map_err(|error| Error::io("write", &path, error))?;
        Ok(n_steps)
    }

    /// Number of steps and experiment file for a dual encoder. The name encoder is frozen, so the stored vectors of the
    /// terminology stay valid. Held-out documents that the model was trained on are left out of the dev set.
    fn fine_tuning(&self, training: &Training, settings: Settings, model: &ContextModel) -> Result<(u64, String)> {
        let hold_out = settings.hold_out.unwrap_or(HOLD_OUT);
        let Parts { complete, held_out, incomplete } = self.split(&training.documents, hold_out);
        let learned: Vec<&AnnotatedDocument> = complete.iter().chain(&incomplete).map(|one| &one.document).collect();
        let held_out: Vec<&AnnotatedDocument> = held_out.iter().map(|one| &one.document).collect();
        let fingerprints: Vec<Fingerprints> = held_out.iter().map(|one| Fingerprints::of(&one.document)).collect();
        let parent = training.parent.as_ref().filter(|_| settings.from == StartFrom::Current);
        let mut known = model.learned.only(Role::Trained);
        if let Some(parent) = parent {
            known.join("", DualBundle::open(parent)?.learned.as_ref());
        }
        let is_seen = known.only(Role::Trained).has_seen(&fingerprints);
        let dev_documents: Vec<&AnnotatedDocument> =
            held_out.into_iter().zip(is_seen).filter(|(_, is_seen)| !is_seen).map(|(one, _)| one).collect();
        let n_steps = settings.n_steps(learned.len());
        let mut paths = Vec::new();
        for (name, documents) in [("learned.jsonl", learned), ("held-out.jsonl", dev_documents)] {
            let path = training.output.join(name);
            write_documents(&path, documents.iter().copied())?;
            paths.push(if documents.is_empty() { Vec::new() } else { vec![PathBuf::from(name)] });
        }
        let dev = paths.pop().unwrap_or_default();
        let train = paths.pop().unwrap_or_default();
        let kb = self.kb().unwrap_or_else(|| Path::new(&self.model).join(TERMINOLOGY));
        let from = parent.map_or(Path::new(&self.model), PathBuf::as_path);
        let (model, kb) = (absolute(from)?, absolute(&kb)?);
        let adam =
            AdamConfig { learning_rate: 5e-5, warm_up: 0.1, schedule: Schedule::Linear, ..AdamConfig::default() };
        Ok((n_steps, fine_tuning(&model, &kb, train, dev, training.seed, run_of(n_steps, adam))?))
    }

    fn adaptation(&self, training: &Training, settings: Settings) -> Result<(u64, String)> {
        let folder = &training.output;
        let hold_out = settings.hold_out.unwrap_or(HOLD_OUT);
        let Parts { complete, held_out, incomplete } = self.split(&training.documents, hold_out);
        let parent = training.parent.as_ref().filter(|_| settings.from == StartFrom::Current);
        let from =
            parent.map(|folder| absolute(folder)).transpose()?.map(|folder| folder.to_string_lossy().into_owned());
        let mut experiment = Experiment {
            system: SYSTEM.to_owned(),
            seed: training.seed,
            // All documents are trained on each time, so earlier decisions are replayed. The counts of the prior are made anew.
            prior_of: from.as_ref().map(|_| self.base_model().to_owned()),
            from: from.unwrap_or_else(|| self.base_model().to_owned()),
            documents: Vec::new(),
            held_out: Vec::new(),
            incomplete: Vec::new(),
            hold_out: 0,
            tune: TUNE,
            names: Some(NamesConfig::default()),
            kb: Some(self.kb.clone().unwrap_or_else(|| STARTER.into())),
            use_counts: 3,
            batch: TagsConfig { batch: 8, ..TagsConfig::default() },
            run: RunConfig::default(),
        };
        for (name, documents, paths) in [
            ("complete.jsonl", &complete, &mut experiment.documents),
            ("held-out.jsonl", &held_out, &mut experiment.held_out),
            ("incomplete.jsonl", &incomplete, &mut experiment.incomplete),
        ] {
            if !documents.is_empty() {
                write_documents(&folder.join(name), documents.iter().map(|one| &one.document))?;
                paths.push(name.into());
            }
        }
        let n_steps = settings.n_steps(complete.len() + held_out.len());
        let adam = AdamConfig {
            learning_rate: 5e-4,
            beta_2: 0.98,
            weight_decay: 0.01,
            warm_up: 0.1,
            schedule: Schedule::Linear,
            ..AdamConfig::default()
        };
        experiment.run = run_of(n_steps, adam);
        let toml = toml::to_string(&experiment).context("cannot write the experiment file")?;
        Ok((n_steps, toml))
    }

    fn start(&self, folder: &Path) -> Result<Running> {
        let program = program::current().map_err(|error| Error::io("find", Path::new("this program"), error))?;
        let mut command = program.command();
        command.arg("--quiet").arg("train").arg(folder.join("training.toml"));
        // The server excludes seen documents from its scores.
        command.arg("--data-root").arg(folder).arg("--out").arg(folder).arg("--allow-seen");
        // The pipe closes when the server ends, even if it was killed.
        command.env(ENDS_WITH_INPUT, "1").stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
        command.spawn().map(Running).map_err(|error| Error::io("start", &program.file, error))
    }
}

impl Trainer for ProcessTrainer {
    fn train(&self, training: &Training, on_progress: &mut dyn FnMut(Progress) -> ControlFlow<()>) -> Result<Trained> {
        let n_steps = self.prepare(training)?;
        let mut running = self.start(&training.output)?;
        let mut log = LogTail { path: training.output.join("log.jsonl"), n_read: 0 };
        let mut progress = Progress { message: "reading documents".to_owned(), ..Progress::default() };
        let ended = loop {
            // Polled before the log is read, so no round is missed.
            let ended =
                running.0.try_wait().map_err(|error| Error::io("wait for", Path::new("the training"), error))?;
            let mut points = log.new_points();
            let last = points.pop();
            for point in points.into_iter().map(Some).chain([last]) {
                if let Some(point) = &point {
                    // The rest is evaluation.
                    progress.done = (0.85 * point.step as f64 / n_steps as f64).min(0.85);
                    progress.message = match point.step < n_steps {
                        true => format!("step {} of {n_steps}", point.step),
                        false => "evaluating and saving the model".to_owned(),
                    };
                }
                progress.point = point;
                if on_progress(progress.clone()).is_break() {
                    drop(running);
                    return Err(cancelled(&training.output));
                }
            }
            if let Some(ended) = ended {
                break ended;
            }
            std::thread::sleep(POLL_INTERVAL);
        };
        if !ended.success() {
            let mut message = String::new();
            if let Some(stderr) = running.0.stderr.take() {
                // An unreadable message is left out of the reason.
                let _ = stderr.take(1 << 16).read_to_string(&mut message);
            }
            let reason = message.trim().strip_prefix("error: ").unwrap_or(message.trim()).to_owned();
            let reason = if reason.is_empty() { format!("training ended with {ended}") } else { reason };
            remove(&training.output)?;
            return Err(Error::process(reason));
        }
        // The server evaluates all models of a project itself, on the same documents.
        let plan = self.plan(&training.documents, &training.settings)?;
        let mut card = described(&plan);
        let model = match self.context {
            Some(_) => short(&self.model),
            None => {
                card += &changes(&read_report(&training.output.join("report.json"))?);
                short(self.base_model())
            }
        };
        let n = plan.n_complete + plan.n_incomplete;
        let documents = if n == 1 { "document" } else { "documents" };
        Ok(Trained { name: format!("{model} + {n} {documents}"), card, dev: None })
    }

    fn plan(&self, documents: &[TrainingDocument], settings: &serde_json::Value) -> Result<TrainingPlan> {
        let settings = Settings::parse(settings)?;
        let hold_out = settings.hold_out.unwrap_or(HOLD_OUT);
        let Parts { complete, held_out, incomplete } = self.split(documents, hold_out);
        Ok(TrainingPlan {
            n_complete: complete.len(),
            n_held_out: held_out.len(),
            n_incomplete: incomplete.len(),
            n_unreviewed: documents.len() - complete.len() - held_out.len() - incomplete.len(),
            n_mentions: complete.iter().chain(&incomplete).map(|one| one.document.annotations.len()).sum(),
            steps: settings.n_steps(match &self.context {
                Some(_) => complete.len() + incomplete.len(),
                None => complete.len() + held_out.len(),
            }),
            min_steps: MIN_STEPS,
            max_steps: MAX_STEPS,
            hold_out,
        })
    }

    fn held_out(&self, documents: &[TrainingDocument], settings: &serde_json::Value) -> Result<Vec<bool>> {
        let hold_out = Settings::parse(settings)?.hold_out.unwrap_or(HOLD_OUT);
        Ok(held_out(documents, hold_out))
    }

    fn file(&self, folder: &Path) -> PathBuf {
        folder.join(canonym_neural::bundle::FILE)
    }

    fn open(&self, folder: &Path) -> Result<Arc<dyn Engine>> {
        let engine = engine::open(self.kb().as_deref(), &folder.to_string_lossy())?;
        Ok(Arc::new(engine))
    }
}

fn read_report(path: &Path) -> Result<Report> {
    let text = std::fs::read_to_string(path).map_err(|error| Error::io("read", path, error))?;
    serde_json::from_str(&text).map_err(|error| Error::parse(path, error.line() as u64, error.to_string()))
}

fn write_documents<'a>(path: &Path, documents: impl Iterator<Item = &'a AnnotatedDocument>) -> Result<()> {
    let failed = |error| Error::io("write", path, error);
    let mut writer = Writer::new(std::fs::File::create(path).map_err(failed)?, path, CorpusFormat::Jsonl)?;
    documents.into_iter().try_for_each(|document| writer.write(document))?;
    writer.finish()?;
    Ok(())
}

fn run_of(n_steps: u64, adam: AdamConfig) -> RunConfig {
    RunConfig { n_steps, mining_interval: n_steps / ROUNDS, evaluate_every: 1, adam, ..RunConfig::default() }
}

/// An absolute path, since the child process reads paths relative to another folder.
fn absolute(path: &Path) -> Result<PathBuf> {
    std::path::absolute(path).map_err(|error| Error::io("find", path, error))
}

/// The name of a model without its folders.
fn short(model: &str) -> String {
    Path::new(model).file_name().map_or(model.to_owned(), |name| name.to_string_lossy().into_owned())
}

/// The documents of a training, counted as on the page that starts it.
fn described(plan: &TrainingPlan) -> String {
    let TrainingPlan { n_complete, n_held_out, n_incomplete, n_mentions, .. } = plan;
    let mut text = counted((n_complete + n_held_out) as u64, "complete document");
    if *n_held_out > 0 {
        text += &format!(", {n_held_out} of them held out");
    }
    if *n_incomplete > 0 {
        text += &format!("; {n_incomplete} partly reviewed");
    }
    format!("{text}; trained on {}.", counted(*n_mentions as u64, "mention"))
}

/// What adapting a model changed, for its card; the server adds the scores.
fn changes(report: &Report) -> String {
    let mut card = String::new();
    if let Some(LinkerReport { n_documents, names, fusion, decision, .. }) = &report.linker {
        let parts = [("name encoder", names), ("calibration", fusion), ("evidence weights", decision)];
        let used: Vec<&str> = parts
            .iter()
            .filter(|(_, change)| change.is_some_and(|change| change.is_used))
            .map(|(part, _)| *part)
            .collect();
        let used = if used.is_empty() { "unchanged, since nothing was better".to_owned() } else { used.join(", ") };
        card += &format!(" Linker, tuned on {} of them: {used}.", counted(*n_documents as u64, "document"));
    }
    if !report.new_types.is_empty() {
        card += &format!(" New types: {}.", report.new_types.join(", "));
    }
    card
}

/// Removes the output of a cancelled training; returns the error to report.
fn cancelled(folder: &Path) -> Error {
    remove(folder).err().unwrap_or_else(|| Error::cancelled("training was cancelled"))
}

fn remove(folder: &Path) -> Result<()> {
    std::fs::remove_dir_all(folder).map_err(|error| Error::io("remove", folder, error))
}

/// Reads the log of a training as it grows.
struct LogTail {
    path: PathBuf,
    /// Bytes read so far, in whole lines.
    n_read: usize,
}

impl LogTail {
    /// The rounds that have ended since the last call.
    fn new_points(&mut self) -> Vec<CurvePoint> {
        let Ok(text) = std::fs::read_to_string(&self.path) else { return Vec::new() };
        let Some(new) = text.get(self.n_read..) else { return Vec::new() };
        let whole = &new[..new.rfind('\n').map_or(0, |end| end + 1)];
        self.n_read += whole.len();
        let point = |line: &str| {
            let Round { step, loss, score } = serde_json::from_str(line).ok()?;
            Some(CurvePoint { step, loss, dev: score })
        };
        whole.lines().filter_map(point).collect()
    }
}

/// A line of the log.
#[derive(Debug, Deserialize)]
struct Round {
    step: u64,
    loss: f64,
    score: Option<f64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn card_counts_documents_as_the_page_does() {
        let plan = TrainingPlan { n_complete: 14, n_held_out: 4, n_mentions: 1200, ..TrainingPlan::default() };
        assert_eq!(described(&plan), "18 complete documents, 4 of them held out; trained on 1,200 mentions.");
        let plan = TrainingPlan { n_complete: 1, n_incomplete: 3, n_mentions: 1, ..TrainingPlan::default() };
        assert_eq!(described(&plan), "1 complete document; 3 partly reviewed; trained on 1 mention.");
    }
}
