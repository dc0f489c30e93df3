//! Compares active-learning strategies by simulation: an annotated corpus takes the place of the annotators.
//!
//! As in the application, a model predicts on all documents, a strategy selects the next ones, predictions in them are accepted, corrected
//! or rejected, missing mentions are added, and the base model is adapted to all documents annotated so far. All runs of a seed start with
//! the same randomly chosen documents.

mod effort;
mod plot;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::bundle::{Bundle, DECISION_PART};
use crate::objectives::tags::TagsConfig;
use crate::tensor::random::shuffle;
use crate::train::RunConfig;
use canonym_core::active::{Strategy, Unreviewed, confidence, farthest_first, margin, rank};
use canonym_core::corpus::{AnnotatedDocument, Annotation};
use canonym_core::error::Context;
use canonym_core::eval::bootstrap::SplitMix64;
use canonym_core::eval::learned::{Role::Trained, Seen};
use canonym_core::kb::KnowledgeBase;
use canonym_core::link::recognise::Nested;
use serde::{Deserialize, Serialize};

use super::adapt::{self, TrainingSplit, learn};
use super::data::{Trees, compile_trees};
use super::learned::{check_known, of_documents, source};
use super::run_folder::{provenance, write_run, write_text};
use super::stage::remove_kept;
use super::{TrainOptions, settings};
use crate::status;
use crate::system::Models;
use crate::system::linked::{MentionSource, System, SystemConfig};
use crate::system::names::NameModel;
use effort::Effort;

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
    /// Test documents.
    #[serde(rename = "held_out")]
    test: Vec<PathBuf>,
    /// Use only the first so many test documents; 0 for all.
    #[serde(rename = "n_held_out", default)]
    n_test: usize,
    terminology: Terminology,
    /// Names of queue strategies.
    strategies: Vec<String>,
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
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
struct Point {
    n_documents: usize,
    /// Decisions of the annotator, including accepted predictions.
    decisions: usize,
    /// Decisions without accepted predictions.
    corrections: usize,
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

/// Effort of a strategy to reach a goal.
#[derive(Debug, Clone, PartialEq, Serialize)]
struct Saved {
    /// Medians over seeds, here and below; `None` unless more than half of the runs reach the goal.
    documents: Option<f64>,
    decisions: Option<f64>,
    corrections: Option<f64>,
    /// Ratio of decisions to those of random selection with the same seed: mean, minimum and maximum.
    beside_chance: Option<[f64; 3]>,
    /// Number of runs that reach the goal, and number of runs.
    reached: [usize; 2],
}

/// First goal, as a fraction of the score with all documents.
const SHARE: f64 = 0.95;

/// Second goal, as a fraction of the gain from the base model to all documents.
const GAIN: f64 = 0.8;

/// A goal: its name, and its value given the score of the base model and that with all documents.
type Goal = (&'static str, fn(f64, f64) -> f64);

/// The goals.
const GOALS: [Goal; 2] = [
    ("95 % of the figure", |_, full| SHARE * full),
    ("80 % of the gain", |before, full| before + GAIN * (full - before)),
];

/// A score: its name and its value at a point.
type Figure = (&'static str, fn(&Point) -> f64);

/// The reported scores.
const FIGURES: [Figure; 2] =
    [("mentions", |point| point.spans_f1), ("mentions with concepts", |point| point.strict_f1)];

/// The baseline strategy.
const CHANCE: &str = "random";

/// Runs an experiment. Completed runs are saved and not repeated.
pub fn run(arguments: &TrainOptions, table: toml::Table) -> canonym_core::Result<()> {
    let path = arguments.config.display();
    let experiment: Experiment =
        settings(&arguments.config, table).with_context(|| format!("{path} is not a valid sampling experiment"))?;
    let strategies = experiment.check()?;
    let (root, out) = (arguments.root(), arguments.out.as_path());
    std::fs::create_dir_all(out).map_err(|error| canonym_core::Error::io("create", out, error))?;
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
    let pool = adapt::read(&experiment.pool, root)?;
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
    write_text(out, "curves.svg", &plot::draw(&report.runs, &report.full, &report.before))?;
    write_run(out, &experiment, &report, &provenance(paths, root)?)?;
    status::say(&summary(&report));
    Ok(())
}

/// Strategy name of runs with all documents.
const ALL: &str = "all";

impl Experiment {
    /// Checks the settings and parses the strategies.
    fn check(&self) -> canonym_core::Result<Vec<Strategy>> {
        let invalid = |message: &str, hint: &str| canonym_core::Error::invalid(message).with_hint(hint.to_owned());
        if self.sizes.is_empty() || self.sizes[0] == 0 || !self.sizes.is_sorted() {
            let hint = "write numbers of documents such as `sizes = [10, 20, 40]`";
            return Err(invalid("`sizes` must be positive and ascending", hint));
        }
        if self.seeds.is_empty() {
            return Err(invalid("no seeds", "set some, such as `seeds = [1, 2, 3]`"));
        }
        let parse = |name: &String| {
            Strategy::parse(name)
                .map_err(|error| invalid(&error.to_string(), error.hint().unwrap_or("see the guide of annotation")))
        };
        self.strategies.iter().map(parse).collect::<canonym_core::Result<_>>()
    }

    fn adaptation(&self, seed: u64, n_documents: usize) -> adapt::Experiment {
        let wanted = self.steps_per_document * n_documents as u64;
        let n_steps = wanted.clamp(self.min_steps, self.max_steps);
        adapt::Experiment {
            system: adapt::SYSTEM.to_owned(),
            seed,
            from: self.from.clone(),
            documents: Vec::new(),
            incomplete: Vec::new(),
            hold_out: 0,
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
    base: Arc<Bundle>,
    pool: Vec<AnnotatedDocument>,
    test: Vec<AnnotatedDocument>,
    out: &'a Path,
}

/// Predictions for each document of the pool.
type Predictions = Vec<Vec<Annotation>>;

impl Simulation<'_> {
    /// Performs the runs of a seed that are not completed yet.
    fn run_seed(
        &self,
        seed: u64,
        strategies: &[Strategy],
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
            full = Some(Run { strategy: ALL.to_owned(), seed, points: vec![all.at(point)] });
            runs.extend(full.clone());
            save(kept, runs)?;
        }
        let aim = full.as_ref().and_then(|full| full.points.first()).copied();
        let aim = aim.ok_or_else(|| canonym_core::Error::invalid("no model of all documents"))?;
        let first = self.experiment.sizes[0].min(order.len());
        status::say(&format!("seed {seed}: the first {first} documents"));
        let (read, point) = self.learn(seed, &order[..first])?;
        let effort = self.effort(&order[..first], before);
        let point = effort.at(point);
        let start = Start { order: &order, read: &read, effort, point, before: base, full: aim };
        for strategy in strategies {
            if !is_done(runs, strategy.name()) {
                status::say(&format!("seed {seed}: {}", strategy.name()));
                runs.push(self.run_strategy(*strategy, seed, &start)?);
                save(kept, runs)?;
            }
        }
        Ok(())
    }

    fn run_strategy(&self, strategy: Strategy, seed: u64, start: &Start<'_>) -> canonym_core::Result<Run> {
        let Start { order, before, full, mut effort, .. } = *start;
        let mut run = Run { strategy: strategy.name().to_owned(), seed, points: vec![start.point] };
        let mut read = start.read.clone();
        let mut chosen: Vec<usize> = order[..start.point.n_documents].to_vec();
        for size in self.experiment.sizes.iter().map(|size| (*size).min(order.len())) {
            let Some(more) = size.checked_sub(chosen.len()).filter(|more| *more > 0) else { continue };
            let left: Vec<usize> = order.iter().copied().filter(|row| !chosen.contains(row)).collect();
            let next = self.next(strategy, &read, &left, &chosen, more);
            effort = effort + self.effort(&next, &read);
            chosen.extend(next);
            let (by_now, point) = self.learn(seed, &chosen)?;
            read = by_now;
            let point = effort.at(point);
            run.points.push(point);
            status::say(&format!(
                "  {} documents, {} decisions: mentions {:.2}, with concepts {:.2}",
                point.n_documents,
                point.decisions,
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
    fn next(&self, strategy: Strategy, read: &Predictions, left: &[usize], chosen: &[usize], n: usize) -> Vec<usize> {
        if strategy == Strategy::Diversity {
            let texts = |rows: &[usize]| rows.iter().map(|row| self.pool[*row].document.text.clone()).collect();
            let (waiting, done): (Vec<String>, Vec<String>) = (texts(left), texts(chosen));
            return farthest_first(&waiting, &done, n).into_iter().map(|ranked| left[ranked.row]).collect();
        }
        let min_confidence = |row: usize| {
            // Rounded as in stored predictions.
            let rounded = |score: f32| (f64::from(score) * 1e4).round() / 1e4;
            let sure = |one: &Annotation| {
                let scores: Vec<f64> = one.candidates.iter().map(|candidate| rounded(candidate.score)).collect();
                let p_mention = one.p_mention.or(one.score).map_or(0.0, rounded);
                confidence(strategy, p_mention, margin(&scores, one.p_link.map(rounded)))
            };
            read[row].iter().map(sure).reduce(f64::min)
        };
        let waiting: Vec<Unreviewed> =
            left.iter().map(|row| Unreviewed { min_confidence: min_confidence(*row), is_annotated: true }).collect();
        // The documents left are in random order already.
        let seed = chosen.len() as u64;
        rank(strategy, &waiting, n, seed).into_iter().map(|ranked| left[ranked.row]).collect()
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
    fn read(&self, bundle: &Arc<Bundle>) -> canonym_core::Result<(Predictions, Point)> {
        let config = SystemConfig {
            mentions: MentionSource::Detect,
            top_k: 5,
            min_score: None,
            nested: Nested::None,
            raw_ids: false,
            subset: None,
            leaky_tokenisation: false,
        };
        let system = System::new(&self.kb, Models::of(NameModel::new(bundle.clone())?), &config)?;
        let bare = |document: &AnnotatedDocument| AnnotatedDocument {
            document: document.document.clone(),
            ..AnnotatedDocument::default()
        };
        let texts = self.pool.iter().chain(&self.test).map(bare).collect();
        let mut found: Predictions = system.link(texts)?.into_iter().map(|document| document.annotations).collect();
        let test = found.split_off(self.pool.len());
        let sum = self.test.iter().zip(&test).map(|(gold, found)| Effort::of(gold, found));
        let sum = sum.fold(Effort::default(), |sum, one| sum + one);
        let (spans_f1, strict_f1) = sum.f1();
        Ok((found, Point { n_documents: 0, decisions: 0, corrections: 0, spans_f1, strict_f1 }))
    }

    fn effort(&self, rows: &[usize], read: &Predictions) -> Effort {
        rows.iter().map(|row| Effort::of(&self.pool[*row], &read[*row])).fold(Effort::default(), |sum, one| sum + one)
    }
}

/// Initial state of the runs of a seed.
struct Start<'a> {
    /// Rows of the pool in random order.
    order: &'a [usize],
    /// Predictions of the first model.
    read: &'a Predictions,
    effort: Effort,
    point: Point,
    /// Scores of the base model, and of the model trained on all documents.
    before: Point,
    full: Point,
}

impl Effort {
    fn at(self, point: Point) -> Point {
        Point { decisions: self.decisions(), corrections: self.corrections(), ..point }
    }
}

/// Effort of a strategy by score and goal.
fn saved(
    strategy: &str,
    runs: &[Run],
    before: &Point,
    full: &[Run],
) -> BTreeMap<&'static str, BTreeMap<&'static str, Saved>> {
    let of = |(name, figure): Figure| {
        let of_goal = |(name, goal): Goal| {
            let aim = |seed: u64| {
                let full = full.iter().find(|run| run.seed == seed)?.points.first()?;
                Some(goal(figure(before), figure(full)))
            };
            let places = |strategy: &str| -> BTreeMap<u64, Option<[f64; 3]>> {
                let runs = runs.iter().filter(|run| run.strategy == strategy);
                runs.map(|run| (run.seed, aim(run.seed).and_then(|aim| reached(&run.points, aim, figure)))).collect()
            };
            (name, Saved::of(&places(strategy), &places(CHANCE)))
        };
        (name, GOALS.into_iter().map(of_goal).collect())
    };
    FIGURES.into_iter().map(of).collect()
}

impl Saved {
    /// Aggregates over seeds: `own` and `by_chance` have documents, decisions and corrections, or `None` if the goal was not reached.
    fn of(own: &BTreeMap<u64, Option<[f64; 3]>>, by_chance: &BTreeMap<u64, Option<[f64; 3]>>) -> Saved {
        let got: Vec<[f64; 3]> = own.values().flatten().copied().collect();
        let enough = 2 * got.len() > own.len();
        let median_of = |part: usize| enough.then(|| median(got.iter().map(|place| place[part]).collect()));
        let ratio = |(seed, place): (&u64, &Option<[f64; 3]>)| {
            Some(place.as_ref()?[1] / by_chance.get(seed).copied().flatten()?[1])
        };
        let ratios: Vec<f64> = own.iter().filter_map(ratio).collect();
        let beside_chance = (!ratios.is_empty()).then(|| {
            let mean = ratios.iter().sum::<f64>() / ratios.len() as f64;
            [mean, ratios.iter().copied().fold(f64::MAX, f64::min), ratios.iter().copied().fold(0.0, f64::max)]
        });
        Saved {
            documents: median_of(0),
            decisions: median_of(1),
            corrections: median_of(2),
            beside_chance,
            reached: [got.len(), own.len()],
        }
    }
}

/// Documents, decisions and corrections at which linear interpolation of the points first reaches `aim`.
fn reached(points: &[Point], aim: f64, figure: impl Fn(&Point) -> f64) -> Option<[f64; 3]> {
    let costs = |point: &Point| [point.n_documents as f64, point.decisions as f64, point.corrections as f64];
    let first = points.first().filter(|point| figure(point) >= aim);
    if let Some(first) = first {
        return Some(costs(first));
    }
    let step = points.windows(2).find(|step| figure(&step[1]) >= aim)?;
    let (low, high) = (figure(&step[0]), figure(&step[1]));
    let fraction = (aim - low) / (high - low);
    let (from, to) = (costs(&step[0]), costs(&step[1]));
    Some([0, 1, 2].map(|part| from[part] + fraction * (to[part] - from[part])))
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    if values.len().is_multiple_of(2) { (values[middle - 1] + values[middle]) / 2.0 } else { values[middle] }
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
    parsed.collect()
}

fn save(path: &Path, runs: &[Run]) -> canonym_core::Result<()> {
    let mut text = String::new();
    for run in runs {
        text += &(serde_json::to_string(run).context("a run cannot be written as JSON")? + "\n");
    }
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    write_text(path.parent().unwrap_or(Path::new(".")), &name, &text)
}

fn summary(report: &Report) -> String {
    let mut text = String::from("annotation effort (medians over seeds):");
    for (strategy, figures) in &report.effort {
        for (figure, goals) in figures {
            for (goal, saved) in goals {
                let number = |value: Option<f64>| value.map_or("-".to_owned(), |value| format!("{value:.0}"));
                let ratio = saved.beside_chance.map_or("-".to_owned(), |[mean, ..]| format!("{mean:.2}"));
                text += &format!(
                    "\n{strategy}, {figure}, {goal}: {} documents, {} decisions, {} corrections; {ratio} relative to random; {} of {} runs",
                    number(saved.documents),
                    number(saved.decisions),
                    number(saved.corrections),
                    saved.reached[0],
                    saved.reached[1]
                );
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(n_documents: usize, decisions: usize, f1: f64) -> Point {
        Point { n_documents, decisions, corrections: decisions / 2, spans_f1: f1, strict_f1: f1 / 2.0 }
    }

    fn run(strategy: &str, seed: u64, points: &[Point]) -> Run {
        Run { strategy: strategy.to_owned(), seed, points: points.to_vec() }
    }

    #[test]
    fn effort_is_interpolated_between_points() {
        let points = [point(10, 100, 0.5), point(20, 300, 0.7), point(40, 400, 0.8)];
        let figure = |point: &Point| point.spans_f1;
        assert_eq!(reached(&points, 0.6, figure).map(|place| place.map(f64::round)), Some([15.0, 200.0, 100.0]));
        assert_eq!(reached(&points, 0.5, figure), Some([10.0, 100.0, 50.0]));
        assert_eq!(reached(&points, 0.9, figure), None);
    }

    #[test]
    fn strategies_are_compared_with_random_of_the_same_seed() {
        let full = [run(ALL, 1, &[point(100, 1000, 0.8)]), run(ALL, 2, &[point(100, 1000, 0.8)])];
        let runs = [
            run(CHANCE, 1, &[point(10, 100, 0.5), point(50, 500, 0.76)]),
            run(CHANCE, 2, &[point(10, 100, 0.5), point(40, 400, 0.76)]),
            run("margin", 1, &[point(10, 100, 0.5), point(30, 250, 0.76)]),
            run("margin", 2, &[point(10, 100, 0.5), point(30, 300, 0.70)]),
        ];
        let before = point(0, 0, 0.4);
        let margin = &saved("margin", &runs, &before, &full)["mentions"]["95 % of the figure"];
        assert_eq!(margin.reached, [1, 2]);
        assert_eq!(margin.decisions, None, "one of two runs is no more than half");
        let [mean, ..] = margin.beside_chance.expect("one run got there");
        assert!((mean - 0.5).abs() < 1e-9);
        let chance = &saved(CHANCE, &runs, &before, &full)["mentions with concepts"];
        let fraction = &chance["95 % of the figure"];
        assert_eq!((fraction.reached, fraction.decisions.map(f64::round)), ([2, 2], Some(450.0)));
        // Half of 0.4 + 0.8 * (0.8 - 0.4).
        let gain = &chance["80 % of the gain"];
        assert_eq!((gain.reached, gain.decisions.map(f64::round)), ([2, 2], Some(396.0)));
    }
}
