//! Compares active-learning strategies by simulation: an annotated corpus takes the place of the annotators.
//!
//! As in the application, a model predicts on all documents, a strategy selects the next ones, predictions in them are accepted, corrected
//! or rejected, missing mentions are added, and the base model is adapted to all documents annotated so far. Runs begin with the documents
//! that their strategy selects by the predictions of the base model, or with the same random ones.

mod choice;
mod effort;
mod plot;
mod savings;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::bundle::{DECISION_PART, NameEncoderBundle};
use crate::objectives::tags::TagsConfig;
use crate::tensor::random::shuffle;
use crate::train::RunConfig;
use canonym_core::corpus::{AnnotatedDocument, Annotation};
use canonym_core::error::Context;
use canonym_core::eval::bootstrap::SplitMix64;
use canonym_core::eval::learned::{Role::Trained, Seen};
use canonym_core::kb::KnowledgeBase;
use canonym_core::link::LinkedMention;
use canonym_core::link::system::annotation;
use canonym_core::text::analysis::Analysis;
use canonym_core::text::{Document, Span};
use serde::{Deserialize, Serialize};

use super::TrainOptions;
use super::adapt::{self, TrainingSplit, learn};
use super::data::{Trees, compile_trees};
use super::learned::{check_known, of_documents, source};
use super::pipeline::pipeline_on;
use super::run_folder::{REPORT, provenance, to_json, write_run, write_text};
use super::settings::experiment_of;
use super::stage::remove_kept;
use crate::status;
use crate::system::Models;
use crate::system::linked::MentionSource;
use crate::system::pipeline::{Pipeline, SpanProposal};
use choice::{Candidate, Choice, Predicted, Prediction};
use effort::{Costs, Effort};
use savings::{FIGURES, Figure, GOALS, Saved, saved, summary};

/// Value of `system` in an experiment.
pub const SYSTEM: &str = "sampling";

/// An experiment.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Experiment {
    system: String,
    seeds: Vec<u64>,
    /// Base model: a bundle that detects mentions and was not trained on the documents.
    from: String,
    /// Model that provides the evidence weights, if not the base model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    decision_of: Option<String>,
    /// Documents to annotate, relative to the data root.
    pool: Vec<PathBuf>,
    /// Use only the first so many of these documents; 0 for all.
    #[serde(default)]
    n_pool: usize,
    /// Test documents.
    #[serde(rename = "held_out")]
    test: Vec<PathBuf>,
    /// Use only the first so many test documents; 0 for all.
    #[serde(rename = "n_held_out", default)]
    n_test: usize,
    terminology: Terminology,
    /// Names of strategies.
    strategies: Vec<String>,
    /// The documents that a run begins with.
    #[serde(default)]
    start: Start,
    /// Seconds of an annotator for each kind of decision.
    #[serde(default)]
    costs: Costs,
    /// Numbers of annotated documents at which a model is trained, ascending.
    sizes: Vec<usize>,
    /// Training steps per document; the total is limited by `min_steps` and `max_steps`.
    steps_per_document: u64,
    #[serde(alias = "least_steps")]
    min_steps: u64,
    #[serde(alias = "most_steps")]
    max_steps: u64,
    /// Count added to the mention-entity prior for each use of a name.
    use_counts: u32,
    #[serde(default)]
    batch: TagsConfig,
    /// Training settings; the number of steps is computed.
    #[serde(default)]
    run: RunConfig,
}

/// The first documents of a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Start {
    /// Those that the strategy selects by the predictions of the base model, as in the application.
    #[default]
    Queue,
    /// Random ones, the same for all strategies.
    Random,
}

/// Target terminology.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Terminology {
    path: PathBuf,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    prefix: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    trees: Option<Trees>,
}

/// Annotation effort and scores of a model.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
struct Point {
    n_documents: usize,
    /// Decisions of the annotator, including accepted predictions.
    decisions: usize,
    /// Decisions without accepted predictions.
    corrections: usize,
    /// Minutes of the annotator.
    #[serde(default)]
    minutes: f64,
    spans_f1: f64,
    strict_f1: f64,
}

/// The models trained by one strategy with one seed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Run {
    strategy: String,
    seed: u64,
    points: Vec<Point>,
}

/// Report of an experiment.
#[derive(Debug, Serialize)]
struct Report {
    n_documents: usize,
    #[serde(rename = "n_held_out")]
    n_test: usize,
    /// Test documents that a part was trained or tuned on, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    seen: Option<Seen>,
    /// Base model.
    before: Point,
    /// Runs on all documents, one per seed.
    full: Vec<Run>,
    runs: Vec<Run>,
    /// Effort to reach each goal, by strategy, score and goal.
    effort: BTreeMap<String, BTreeMap<&'static str, BTreeMap<&'static str, Saved>>>,
}

/// Runs an experiment. Completed runs are saved in `runs.jsonl` and not repeated. Lines of that file from runs of single seeds or strategies can
/// be put together; repeated ones count once.
pub fn run(arguments: &TrainOptions, table: toml::Table) -> canonym_core::Result<()> {
    let experiment: Experiment = experiment_of(arguments, table, "sampling")?;
    let strategies = experiment.check()?;
    let (root, out) = (arguments.root(), arguments.out.as_path());
    let terminology = &experiment.terminology;
    let (prefix, trees) = (terminology.prefix.as_deref(), terminology.trees.as_ref());
    let kb = compile_trees("terminology", &root.join(&terminology.path), prefix, trees, root)?;
    let models = Models::named(&experiment.from)?;
    let mut known = models.learned(MentionSource::Detect)?;
    let bundle = |models: &Models, name: &str| {
        models.names().map(|model| model.bundle.clone()).ok_or_else(|| adapt::no_tagger(name))
    };
    let mut base = bundle(&models, &experiment.from)?;
    if let Some(other) = &experiment.decision_of {
        let other = bundle(&Models::named(other)?, other)?;
        // Only the evidence weights of that model are used.
        let mut of_decision = other.learned.clone();
        if let Some(learned) = &mut of_decision {
            learned.sources.retain(|source| source.part == DECISION_PART);
            learned.unrecorded.retain(|part| part == DECISION_PART);
        }
        known.join(DECISION_PART, of_decision.as_ref());
        let decision = other.manifest.tagger.as_ref().map(|tagger| tagger.decision);
        let own = Arc::make_mut(&mut base).manifest.tagger.as_mut();
        if let (Some(own), Some(decision)) = (own, decision) {
            own.decision = decision;
        }
    }
    let mut pool = adapt::read(&experiment.pool, root)?;
    if experiment.n_pool > 0 {
        pool.truncate(experiment.n_pool);
    }
    let mut test = adapt::read(&experiment.test, root)?;
    if experiment.n_test > 0 {
        test.truncate(experiment.n_test);
    }
    known.add(source("pool", Trained, Path::new("pool"), of_documents(&pool)));
    let seen = check_known(&known, &test, ("test documents", arguments.allow_seen))?;
    let simulation = Simulation { experiment: &experiment, kb: Arc::new(kb), base, pool, test, out };
    let (read, before) = simulation.read(&simulation.base)?;
    let kept = out.join("runs.jsonl");
    let mut runs = load(&kept)?;
    for seed in &experiment.seeds {
        simulation.run_seed(*seed, &strategies, &read, before, &mut runs, &kept)?;
    }
    let (full, runs): (Vec<Run>, Vec<Run>) = runs.into_iter().partition(|run| run.strategy == ALL);
    let effort = experiment.strategies.iter().map(|name| (name.clone(), saved(name, &runs, &before, &full))).collect();
    let (n_documents, n_test) = (simulation.pool.len(), simulation.test.len());
    let report = Report { n_documents, n_test, seen, before, full, runs, effort };
    let paths = experiment.pool.iter().chain(&experiment.test).chain([&terminology.path]).collect();
    let (curves, json) = (plot::draw(&report.runs, &report.full, &report.before), to_json(&report)?);
    let files = [("curves.svg", curves.as_bytes()), (REPORT, json.as_bytes())];
    write_run(out, &experiment, &provenance(paths, root)?, &files)?;
    status::say(&summary(&report));
    Ok(())
}

/// Strategy name of runs with all documents.
const ALL: &str = "all";

impl Experiment {
    /// Checks the settings and parses the strategies.
    fn check(&self) -> canonym_core::Result<Vec<Choice>> {
        let invalid = |message: &str, hint: &str| canonym_core::Error::config(message).with_hint(hint.to_owned());
        if self.sizes.is_empty() || self.sizes[0] == 0 || !self.sizes.is_sorted() {
            let hint = "write numbers of documents such as `sizes = [10, 20, 40]`";
            return Err(invalid("`sizes` must be positive and ascending", hint));
        }
        if self.seeds.is_empty() {
            return Err(invalid("no seeds", "set some, such as `seeds = [1, 2, 3]`"));
        }
        let Costs { accept, correct, add, reject, read } = self.costs;
        if [accept, correct, add, reject, read].iter().any(|cost| !cost.is_finite() || *cost < 0.0) {
            let hint = "write seconds such as `costs = { accept = 2, correct = 6 }`";
            return Err(invalid("`costs` must not be negative", hint));
        }
        self.strategies.iter().map(|name| Choice::parse(name)).collect()
    }

    fn adaptation(&self, seed: u64, n_documents: usize) -> adapt::Experiment {
        let wanted = self.steps_per_document * n_documents as u64;
        let n_steps = wanted.clamp(self.min_steps, self.max_steps);
        adapt::Experiment {
            held_out: Vec::new(),
            system: adapt::SYSTEM.to_owned(),
            seed,
            from: self.from.clone(),
            prior_of: None,
            documents: Vec::new(),
            incomplete: Vec::new(),
            hold_out: 0,
            tune: 0,
            names: None,
            kb: None,
            use_counts: self.use_counts,
            batch: self.batch,
            run: RunConfig { n_steps, mining_interval: n_steps, ..self.run },
        }
    }
}

/// The state shared by all runs.
struct Simulation<'a> {
    experiment: &'a Experiment,
    kb: Arc<KnowledgeBase>,
    base: Arc<NameEncoderBundle>,
    pool: Vec<AnnotatedDocument>,
    test: Vec<AnnotatedDocument>,
    out: &'a Path,
}

/// Predictions for each document of the pool.
type Predictions = Vec<Predicted>;

/// Documents per batch of predictions.
const BATCH: usize = 32;

impl Simulation<'_> {
    /// Performs the runs of a seed that are not completed yet.
    fn run_seed(
        &self,
        seed: u64,
        strategies: &[Choice],
        before: &Predictions,
        base: Point,
        runs: &mut Vec<Run>,
        kept: &Path,
    ) -> canonym_core::Result<()> {
        let mut order: Vec<usize> = (0..self.pool.len()).collect();
        shuffle(&mut order, &mut SplitMix64::new(seed));
        let is_done = |runs: &[Run], name: &str| runs.iter().any(|run| run.strategy == name && run.seed == seed);
        let names = strategies.iter().map(|strategy| strategy.name());
        if names.chain([ALL]).all(|name| is_done(runs, name)) {
            return Ok(());
        }
        let mut full = runs.iter().find(|run| run.strategy == ALL && run.seed == seed).cloned();
        if full.is_none() {
            status::say(&format!("seed {seed}: all documents"));
            let (_, point) = self.learn(seed, &order)?;
            let all = self.effort(&order, before);
            full = Some(Run { strategy: ALL.to_owned(), seed, points: vec![self.at(all, point)] });
            runs.extend(full.clone());
            save(kept, runs)?;
        }
        let aim = full.as_ref().and_then(|full| full.points.first()).copied();
        let aim = aim.ok_or_else(|| canonym_core::Error::config("no run was trained on all documents"))?;
        let mut start = Beginning {
            order: &order,
            read: before.clone(),
            effort: Effort::default(),
            point: base,
            before: base,
            full: aim,
        };
        if self.experiment.start == Start::Random {
            let first = self.experiment.sizes[0].min(order.len());
            status::say(&format!("seed {seed}: the first {first} documents"));
            let (read, point) = self.learn(seed, &order[..first])?;
            let effort = self.effort(&order[..first], before);
            start = Beginning { read, effort, point: self.at(effort, point), ..start };
        }
        for strategy in strategies {
            if !is_done(runs, strategy.name()) {
                status::say(&format!("seed {seed}: {}", strategy.name()));
                runs.push(self.run_strategy(*strategy, seed, &start)?);
                save(kept, runs)?;
            }
        }
        Ok(())
    }

    fn run_strategy(&self, strategy: Choice, seed: u64, start: &Beginning<'_>) -> canonym_core::Result<Run> {
        let Beginning { order, before, full, mut effort, point, .. } = *start;
        let mut run = Run { strategy: strategy.name().to_owned(), seed, points: vec![point] };
        let mut read = start.read.clone();
        let mut chosen: Vec<usize> = order[..point.n_documents].to_vec();
        for size in self.experiment.sizes.iter().map(|size| (*size).min(order.len())) {
            let Some(more) = size.checked_sub(chosen.len()).filter(|more| *more > 0) else { continue };
            let left: Vec<usize> = order.iter().copied().filter(|row| !chosen.contains(row)).collect();
            let next = self.next(strategy, &read, &left, &chosen, more);
            effort = effort + self.effort(&next, &read);
            chosen.extend(next);
            let (by_now, point) = self.learn(seed, &chosen)?;
            read = by_now;
            let point = self.at(effort, point);
            run.points.push(point);
            status::say(&format!(
                "  {} documents, {} decisions, {:.0} minutes: mentions {:.2}, with concepts {:.2}",
                point.n_documents,
                point.decisions,
                point.minutes,
                100.0 * point.spans_f1,
                100.0 * point.strict_f1
            ));
            let has = |(_, figure): &Figure| {
                GOALS.iter().all(|(_, goal)| {
                    run.points.iter().any(|point| figure(point) >= goal(figure(&before), figure(&full)))
                })
            };
            if FIGURES.iter().all(has) {
                break;
            }
        }
        Ok(run)
    }

    /// Rows of the `n` documents that a strategy selects from those left.
    fn next(&self, strategy: Choice, read: &Predictions, left: &[usize], chosen: &[usize], n: usize) -> Vec<usize> {
        let text = |row: usize| self.pool[row].document.text.as_str();
        let waiting: Vec<Candidate<'_>> =
            left.iter().map(|row| Candidate { text: text(*row), predicted: &read[*row] }).collect();
        let done: Vec<String> = chosen.iter().map(|row| text(*row).to_owned()).collect();
        // The documents left are in random order already.
        let seed = chosen.len() as u64;
        strategy.next(&waiting, &done, n, seed).into_iter().map(|row| left[row]).collect()
    }

    /// Trains on documents of the pool. Returns the predictions and scores of the model.
    fn learn(&self, seed: u64, chosen: &[usize]) -> canonym_core::Result<(Predictions, Point)> {
        let complete: Vec<AnnotatedDocument> = chosen.iter().map(|row| self.pool[*row].clone()).collect();
        let split = TrainingSplit { complete: &complete, incomplete: &[], held_out: &[] };
        let work = self.out.join("work");
        std::fs::create_dir_all(&work).map_err(|error| canonym_core::Error::io("create", &work, error))?;
        remove_kept(&work, &[adapt::STAGE])?;
        let learned = learn(&self.experiment.adaptation(seed, chosen.len()), &self.base, split, &work)?;
        let (read, mut point) = self.read(&Arc::new(learned.bundle))?;
        point.n_documents = chosen.len();
        Ok((read, point))
    }

    /// Predictions of a model for the pool, and its scores on the test documents.
    fn read(&self, bundle: &Arc<NameEncoderBundle>) -> canonym_core::Result<(Predictions, Point)> {
        let pipeline = pipeline_on(&self.kb, bundle)?;
        let texts: Vec<&Document> = self.pool.iter().chain(&self.test).map(|document| &document.document).collect();
        let mut found: Predictions = Vec::with_capacity(texts.len());
        for texts in texts.chunks(BATCH) {
            let proposals = pipeline.proposals(&Analysis::all(texts.iter().copied()));
            found.extend(texts.iter().zip(&proposals).map(|(text, proposals)| predicted(&pipeline, text, proposals)));
        }
        let test = found.split_off(self.pool.len());
        let sum = self.test.iter().zip(&test).map(|(gold, found)| Effort::of(gold, &annotations(found)));
        let sum = sum.fold(Effort::default(), |sum, one| sum + one);
        let (spans_f1, strict_f1) = sum.f1();
        Ok((found, Point { spans_f1, strict_f1, ..Point::default() }))
    }

    fn effort(&self, rows: &[usize], read: &Predictions) -> Effort {
        let each = rows.iter().map(|row| Effort::of(&self.pool[*row], &annotations(&read[*row])));
        each.fold(Effort::default(), |sum, one| sum + one)
    }

    fn at(&self, effort: Effort, point: Point) -> Point {
        Point {
            decisions: effort.decisions(),
            corrections: effort.corrections(),
            minutes: effort.minutes(&self.experiment.costs),
            ..point
        }
    }
}

fn annotations(predicted: &Predicted) -> Vec<Annotation> {
    predicted.mentions.iter().map(|one| one.annotation.clone()).collect()
}

/// The predictions in a document.
fn predicted(pipeline: &Pipeline, text: &Document, proposals: &[SpanProposal]) -> Predicted {
    let decided = pipeline.decide_with(&text.text, proposals);
    let names: Vec<&str> = decided.iter().map(|(proposal, _)| proposal.name.as_str()).collect();
    let cosines = pipeline.linker().two_nearest(&names);
    let mention = |((proposal, linked), cosines): (&(&SpanProposal, LinkedMention), [f32; 2])| Prediction {
        annotation: annotation(pipeline.linker().kb(), text, linked, false),
        recognition: f64::from(proposal.recognition()),
        cosines: cosines.map(f64::from),
    };
    let mentions = decided.iter().zip(cosines).map(mention).collect();
    let mut taken: Vec<Span> = decided.iter().map(|(proposal, _)| proposal.span).collect();
    let mut others: Vec<(f32, Span)> = proposals.iter().map(|one| (pipeline.p_mention(one), one.span)).collect();
    others.sort_by(|left, right| right.0.total_cmp(&left.0));
    let mut missed = 0.0;
    for (p_mention, span) in others {
        if taken.iter().all(|other| other.end <= span.start || span.end <= other.start) {
            missed += f64::from(p_mention);
            taken.push(span);
        }
    }
    Predicted { mentions, missed }
}

/// Initial state of the runs of a seed.
struct Beginning<'a> {
    /// Rows of the pool in random order.
    order: &'a [usize],
    /// Predictions of the first model.
    read: Predictions,
    effort: Effort,
    point: Point,
    /// Scores of the base model, and of the model trained on all documents.
    before: Point,
    full: Point,
}

/// Loads the completed runs.
fn load(path: &Path) -> canonym_core::Result<Vec<Run>> {
    if !path.exists() {
        return Ok(Vec::new());
    }
    let text = std::fs::read_to_string(path).map_err(|error| canonym_core::Error::io("read", path, error))?;
    let parsed = text.lines().enumerate().map(|(row, line)| {
        serde_json::from_str(line).map_err(|error| canonym_core::Error::parse(path, row as u64 + 1, error.to_string()))
    });
    let mut runs: Vec<Run> = Vec::new();
    for run in parsed {
        let run: Run = run?;
        if runs.iter().all(|known| known.strategy != run.strategy || known.seed != run.seed) {
            runs.push(run);
        }
    }
    Ok(runs)
}

fn save(path: &Path, runs: &[Run]) -> canonym_core::Result<()> {
    let mut text = String::new();
    for run in runs {
        text += &(serde_json::to_string(run).context("a run cannot be written as JSON")? + "\n");
    }
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    write_text(path.parent().unwrap_or(Path::new(".")), &name, &text)
}
