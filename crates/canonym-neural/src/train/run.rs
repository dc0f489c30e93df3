//! The training loop: batches, steps, mining intervals, checkpoints, early stopping.
//!
//! All randomness in a step depends only on the seed and the number of the step, and checkpoints are taken between mining intervals (intervals
//! in the code). A run that was interrupted and resumed therefore ends with the same weights.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, mpsc};

use canonym_core::error::Context;
use canonym_core::{Error, Result};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::autograd::{Gradients, Packs, Tape};
use crate::tensor::matrix::Matrix;
use crate::tensor::parameters::{Parameters, Precision};
use crate::tensor::random;
use crate::train::objective::{Losses, Objective, Outputs, Values};
use crate::train::optimise::{Adam, AdamConfig};

/// Key of the objective's state in a checkpoint.
const OBJECTIVE_STATE: &str = "memory";

/// Number of batches prepared ahead of the current step.
const AHEAD: usize = 2;

/// Settings of a run.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RunConfig {
    /// Total number of steps.
    pub n_steps: u64,
    /// Steps per mining interval; after each, hard negatives are mined and a checkpoint is taken.
    pub mining_interval: u64,
    /// Mining intervals between evaluations; 0 for no evaluation.
    pub evaluate_every: u64,
    /// Evaluations without improvement before the run stops early; 0 for no early stopping.
    pub patience: u64,
    /// Which weights are kept.
    pub select: Select,
    /// Gradient checkpointing: activations are recomputed in the backward pass, one part of the batch per thread. Memory is limited to a
    /// few parts whatever the batch size, at a third more time. Weights are the same.
    #[serde(skip_serializing_if = "is_off")]
    pub recompute: bool,
    /// Optimiser settings.
    pub adam: AdamConfig,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde hands references")]
fn is_off(value: &bool) -> bool {
    !value
}

impl Default for RunConfig {
    fn default() -> RunConfig {
        RunConfig {
            n_steps: 500,
            mining_interval: 50,
            evaluate_every: 0,
            patience: 0,
            select: Select::Last,
            recompute: false,
            adam: AdamConfig::default(),
        }
    }
}

/// Which weights a run ends with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Select {
    /// Those of the last step.
    Last,
    /// Those of the best evaluation.
    Best,
}

/// State of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    /// Settings.
    pub config: RunConfig,
    /// Random seed.
    pub seed: u64,
    /// Current weights.
    pub parameters: Parameters,
    /// The optimisers, one unless the objective has more.
    pub optimisers: Vec<Adam>,
    /// Number of steps made.
    pub n_made: u64,
    /// The best evaluation so far.
    pub best: Option<Scored>,
    /// Evaluations since the best one.
    pub n_worse: u64,
    /// State of the objective.
    pub state: Vec<u8>,
}

/// The output values of a part, and its tape unless activations are recomputed.
type Part<'a> = (Vec<(&'static str, Matrix)>, Option<(Tape<'a>, Outputs)>);

/// The gradients of the outputs of a part, and its tape unless activations are recomputed.
type PartGradients<'a> = (Vec<Option<Matrix>>, Option<(Tape<'a>, Outputs)>);

/// Weights and their score.
#[derive(Debug, Clone, PartialEq)]
pub struct Scored {
    /// Evaluation score.
    pub score: f64,
    /// The evaluated weights.
    pub parameters: Parameters,
}

/// Progress events of a run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Progress<'a> {
    /// A step was made.
    Step {
        /// Number of the step, from 1.
        step: u64,
        /// Loss of its batch.
        loss: f64,
        /// Names and values of the losses that add up to it.
        losses: &'a [(&'static str, f64)],
        /// Learning rate.
        rate: f32,
        /// Gradient norm before clipping.
        norm: f32,
    },
    /// A mining interval ended; the time to save a checkpoint.
    Round {
        /// Steps so far.
        step: u64,
        /// Evaluation score, if the run was evaluated.
        score: Option<f64>,
    },
}

impl Run {
    /// A new run.
    pub fn new(config: RunConfig, seed: u64, parameters: Parameters) -> Run {
        let optimisers = vec![Adam::new(config.adam, parameters.len())];
        Run { config, seed, parameters, optimisers, n_made: 0, best: None, n_worse: 0, state: Vec::new() }
    }

    /// Whether the run is complete or has stopped early.
    pub fn is_over(&self) -> bool {
        let patience = self.config.patience;
        self.n_made >= self.config.n_steps || (patience > 0 && self.n_worse >= patience)
    }

    /// Trains to the end. `observe` receives progress events and can stop the run by returning an error.
    pub fn train<O: Objective>(
        &mut self,
        objective: &mut O,
        observe: &mut dyn FnMut(&Run, Progress<'_>) -> Result<()>,
    ) -> Result<()> {
        let per_interval = self.config.mining_interval.max(1);
        if !self.state.is_empty() {
            objective.load_state(&self.state)?;
        }
        let fresh = Adam::new(self.config.adam, self.parameters.len());
        self.optimisers.resize(objective.n_optimisers(), fresh);
        while !self.is_over() {
            let interval = self.n_made / per_interval;
            objective.begin_interval(&self.parameters, interval)?;
            self.state = objective.save_state();
            let steps = self.n_made..((interval + 1) * per_interval).min(self.config.n_steps);
            self.interval(objective, steps, observe)?;
            let last = self.n_made >= self.config.n_steps;
            let every = self.config.evaluate_every;
            let score = if every > 0 && ((interval + 1).is_multiple_of(every) || last) {
                objective.evaluate(&self.parameters)?
            } else {
                None
            };
            if let Some(score) = score {
                let better = self.best.as_ref().is_none_or(|best| score > best.score);
                self.n_worse = if better { 0 } else { self.n_worse + 1 };
                if better {
                    self.best = Some(Scored { score, parameters: self.parameters.clone() });
                }
            }
            observe(self, Progress::Round { step: self.n_made, score })?;
        }
        Ok(())
    }

    fn interval<O: Objective>(
        &mut self,
        objective: &O,
        steps: std::ops::Range<u64>,
        observe: &mut dyn FnMut(&Run, Progress<'_>) -> Result<()>,
    ) -> Result<()> {
        let seed = self.seed;
        std::thread::scope(|scope| {
            let (sender, batches) = mpsc::sync_channel(AHEAD);
            scope.spawn(move || {
                for step in steps {
                    let mut rng = random::for_step(seed, step);
                    let batch = objective.batch(step, &mut rng);
                    if sender.send((batch, rng)).is_err() {
                        break;
                    }
                }
            });
            let mut packs = Arc::new(Packs::new(self.parameters.len()));
            for (batch, mut rng) in batches {
                let (losses, gradients) = self.gradients(objective, &batch, rng.next_u64(), &packs)?;
                let rate = self.config.adam.rate_at(self.n_made, self.config.n_steps);
                let optimiser = &mut self.optimisers[objective.optimiser(&batch)];
                let norm = optimiser.step(&mut self.parameters, &gradients, rate);
                match Arc::get_mut(&mut packs) {
                    Some(packs) => packs.clear(),
                    None => packs = Arc::new(Packs::new(self.parameters.len())),
                }
                self.n_made += 1;
                let (loss, losses) = (losses.total(), losses.terms.as_slice());
                observe(self, Progress::Step { step: self.n_made, loss, losses, rate, norm })?;
            }
            Ok(())
        })
    }

    /// Losses of a batch and gradients of the weights, summed over its parts.
    fn gradients<O: Objective>(
        &self,
        objective: &O,
        batch: &O::Batch,
        seed: u64,
        packs: &Arc<Packs>,
    ) -> Result<(Losses, Gradients)> {
        let forward = |part: usize| {
            let mut tape = Tape::of_one_thread(&self.parameters, packs);
            let outputs = objective.forward(&mut tape, batch, part, &mut random::for_step(seed, part as u64))?;
            Ok((tape, outputs))
        };
        let n_parts = objective.n_parts(batch);
        let first = |part: usize| {
            let (tape, outputs) = forward(part)?;
            let values = outputs.iter().map(|(name, output)| (name, tape.value(output).clone())).collect();
            Ok((values, (!self.config.recompute).then_some((tape, outputs))))
        };
        let parts: Vec<Part<'_>> = (0..n_parts).into_par_iter().with_max_len(1).map(first).collect::<Result<_>>()?;
        let mut values = Values::default();
        for (name, value) in parts.iter().flat_map(|(of_part, _)| of_part) {
            values.push(name, value);
        }
        let losses = objective.losses(batch, &values);
        if !losses.total().is_finite() {
            let message = format!("the loss at step {} is {}", self.n_made + 1, losses.total());
            return Err(Error::diverged(message).with_hint("try a smaller `learning_rate`"));
        }
        // The rows of each output go back to the parts that they came from.
        let mut next_row: BTreeMap<&str, usize> = BTreeMap::new();
        let mut gradients_of = |of_part: Vec<(&'static str, Matrix)>| -> Vec<Option<Matrix>> {
            let gradient = |(name, value): (&'static str, Matrix)| {
                let first = next_row.entry(name).or_default();
                let rows = *first..*first + value.n_rows;
                *first = rows.end;
                let all = losses.gradient(name)?;
                let values = all.values[rows.start * all.n_cols..rows.end * all.n_cols].to_vec();
                Some(Matrix::new(value.n_rows, all.n_cols, values))
            };
            of_part.into_iter().map(gradient).collect()
        };
        let gradients: Vec<PartGradients<'_>> =
            parts.into_iter().map(|(values, kept)| (gradients_of(values), kept)).collect();
        let backward = |(part, (gradients, kept)): (usize, PartGradients<'_>)| {
            let (tape, outputs) = kept.map_or_else(|| forward(part), Ok)?;
            let with_gradient = outputs.iter().zip(gradients).filter_map(|((_, output), one)| Some((output, one?)));
            Ok(tape.backward(with_gradient))
        };
        // Gradients are summed in the order of parts, so the result does not depend on how many run at once.
        let at_once = if self.config.recompute { rayon::current_num_threads() } else { n_parts.max(1) };
        let mut left = gradients.into_iter().enumerate();
        let mut sum = Gradients::default();
        loop {
            let some: Vec<_> = left.by_ref().take(at_once).collect();
            if some.is_empty() {
                return Ok((losses, sum));
            }
            let each: Vec<Gradients> = some.into_par_iter().with_max_len(1).map(backward).collect::<Result<_>>()?;
            each.into_iter().for_each(|gradients| sum.add(gradients));
        }
    }

    /// The resulting weights, according to [`RunConfig::select`].
    pub fn finish(self) -> Parameters {
        match (self.config.select, self.best) {
            (Select::Best, Some(best)) => best.parameters,
            _ => self.parameters,
        }
    }

    /// Writes a checkpoint; `of` identifies the run, for example by a fingerprint of its config and data.
    pub fn save(&self, path: &Path, of: &str) -> Result<()> {
        let mut all = Parameters::default();
        for (row, (name, value)) in self.parameters.iter().enumerate() {
            all.add(format!("weight.{name}"), value.clone());
            for (at, adam) in self.optimisers.iter().enumerate().filter(|(_, adam)| !adam.first[row].values.is_empty())
            {
                let [first, second] = moments(at);
                all.add(format!("{first}.{name}"), adam.first[row].clone());
                all.add(format!("{second}.{name}"), adam.second[row].clone());
            }
        }
        for (name, value) in self.best.iter().flat_map(|best| best.parameters.iter()) {
            all.add(format!("best.{name}"), value.clone());
        }
        let state = State {
            of: of.to_owned(),
            n_made: self.n_made,
            n_worse: self.n_worse,
            optimiser_steps: self.optimisers.iter().map(|adam| adam.n_made).collect(),
            // As bits, so that a checkpoint restores the exact value.
            best_score: self.best.as_ref().map(|best| best.score.to_bits()),
        };
        if !self.state.is_empty() {
            all.add_table(OBJECTIVE_STATE, self.state.clone());
        }
        let state = serde_json::to_string(&state).context("cannot write the training state")?;
        all.write(path, Precision::Single, &BTreeMap::from([("run".to_owned(), state)]))
    }

    /// Restores a checkpoint of a run with the same identity `of`.
    pub fn resume(&mut self, path: &Path, of: &str) -> Result<()> {
        let (all, metadata) = Parameters::read(path)?;
        let state = metadata.get("run").and_then(|state| serde_json::from_str::<State>(state).ok());
        let refused = |message: &str| {
            Error::artifact(path, message).with_hint("delete the checkpoint, or train into another folder")
        };
        let state = state.ok_or_else(|| refused("it is not a training checkpoint"))?;
        if state.of != of {
            return Err(refused("the checkpoint has a different config or different data"));
        }
        let mut best = self.parameters.clone();
        // A checkpoint of one optimiser may lack the numbers of their steps.
        let steps = if state.optimiser_steps.is_empty() { vec![state.n_made] } else { state.optimiser_steps };
        let adam = |n_made: &u64| Adam { n_made: *n_made, ..Adam::new(self.config.adam, self.parameters.len()) };
        self.optimisers = steps.iter().map(adam).collect();
        for row in 0..self.parameters.len() {
            let name = self.parameters.iter().nth(row).map(|(name, _)| name.to_owned()).unwrap_or_default();
            let (n_rows, n_cols) = (self.parameters.at(row).n_rows, self.parameters.at(row).n_cols);
            let value = |part: &str| all.shaped(&format!("{part}.{name}"), n_rows, n_cols).cloned();
            *self.parameters.at_mut(row) = value("weight")?;
            for (at, adam) in self.optimisers.iter_mut().enumerate() {
                let [first, second] = moments(at);
                if all.find(&format!("{first}.{name}")).is_ok() {
                    (adam.first[row], adam.second[row]) = (value(&first)?, value(&second)?);
                }
            }
            if state.best_score.is_some() {
                *best.at_mut(row) = value("best")?;
            }
        }
        self.state = all.table(OBJECTIVE_STATE).map(<[u8]>::to_vec).unwrap_or_default();
        self.n_made = state.n_made;
        self.n_worse = state.n_worse;
        self.best = state.best_score.map(|bits| Scored { score: f64::from_bits(bits), parameters: best });
        Ok(())
    }
}

#[derive(Serialize, Deserialize)]
struct State {
    of: String,
    n_made: u64,
    n_worse: u64,
    #[serde(default)]
    optimiser_steps: Vec<u64>,
    best_score: Option<u64>,
}

/// Names of the moments of an optimiser in checkpoints.
fn moments(optimiser: usize) -> [String; 2] {
    let number = if optimiser == 0 { String::new() } else { optimiser.to_string() };
    [format!("first{number}"), format!("second{number}")]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tensor::random::SplitMix64;
    use crate::train::losses::Loss;

    /// Linear regression on drawn points. The point with the greatest error at the start of a mining interval is in each of its batches.
    struct Regression {
        points: Vec<([f32; 2], f32)>,
        hardest: usize,
        /// Whether the score is the negated error, or always the same.
        improves: bool,
    }

    const OUTPUT: &str = "value";

    impl Regression {
        fn new(improves: bool) -> Regression {
            let mut rng = SplitMix64::new(8);
            let mut drawn = || 2.0 * random::unit(&mut rng) - 1.0;
            let points = (0..40).map(|_| [drawn(), drawn()]).map(|point| (point, 2.0 * point[0] - point[1] + 0.5));
            Regression { points: points.collect(), hardest: 0, improves }
        }

        fn errors(&self, parameters: &Parameters) -> Vec<f32> {
            let (weight, bias) = (parameters.get("weight").unwrap(), parameters.get("bias").unwrap());
            let value = |point: &[f32; 2]| point[0] * weight.values[0] + point[1] * weight.values[1] + bias.values[0];
            self.points.iter().map(|(point, target)| (value(point) - target).abs()).collect()
        }
    }

    impl Objective for Regression {
        type Batch = Vec<usize>;

        fn begin_interval(&mut self, parameters: &Parameters, _interval: u64) -> Result<()> {
            let errors = self.errors(parameters);
            self.hardest = (0..errors.len()).max_by(|left, right| errors[*left].total_cmp(&errors[*right])).unwrap();
            Ok(())
        }

        fn batch(&self, _step: u64, rng: &mut SplitMix64) -> Vec<usize> {
            (0..15).map(|_| rng.below(self.points.len())).chain([self.hardest]).collect()
        }

        fn n_parts(&self, batch: &Vec<usize>) -> usize {
            batch.len().div_ceil(4)
        }

        fn forward(
            &self,
            tape: &mut Tape<'_>,
            batch: &Vec<usize>,
            part: usize,
            rng: &mut SplitMix64,
        ) -> Result<Outputs> {
            let points: Vec<f32> =
                batch.chunks(4).nth(part).unwrap().iter().flat_map(|at| self.points[*at].0).collect();
            let input = tape.input(Matrix::new(points.len() / 2, 2, points));
            let input = tape.dropout(input, 0.1, Some(rng));
            let (weight, bias) = (tape.parameter("weight")?, tape.parameter("bias")?);
            Ok(Outputs::of(OUTPUT, tape.linear(input, weight, Some(bias))))
        }

        fn losses(&self, batch: &Vec<usize>, values: &Values) -> Losses {
            let values = &values.get(OUTPUT).values;
            let n = batch.len() as f32;
            let errors: Vec<f32> = values.iter().zip(batch).map(|(value, at)| value - self.points[*at].1).collect();
            let value = f64::from(errors.iter().map(|error| error * error).sum::<f32>() / n);
            let gradient = errors.iter().map(|error| 2.0 * error / n).collect();
            Losses::of("squared error", OUTPUT, Loss { value, gradient: Matrix::new(batch.len(), 1, gradient) })
        }

        fn evaluate(&self, parameters: &Parameters) -> Result<Option<f64>> {
            let error = f64::from(self.errors(parameters).iter().sum::<f32>());
            Ok(Some(if self.improves { -error } else { 0.0 }))
        }
    }

    const CONFIG: RunConfig = RunConfig {
        n_steps: 24,
        mining_interval: 6,
        evaluate_every: 2,
        patience: 0,
        select: Select::Best,
        recompute: false,
        adam: AdamConfig {
            learning_rate: 0.1,
            beta_1: 0.9,
            beta_2: 0.999,
            epsilon: 1e-8,
            weight_decay: 0.01,
            decay: crate::train::optimise::Decay::Decoupled,
            clip: 1.0,
            warm_up: 0.1,
            schedule: crate::train::optimise::Schedule::Linear,
            lazy: false,
        },
    };

    fn begin() -> Run {
        let mut parameters = Parameters::default();
        parameters.add("weight", Matrix::zeros(2, 1));
        parameters.add("bias", Matrix::zeros(1, 1));
        Run::new(CONFIG, 11, parameters)
    }

    fn train(run: &mut Run, observe: &mut dyn FnMut(&Run, Progress<'_>) -> Result<()>) -> Result<()> {
        run.train(&mut Regression::new(true), observe)
    }

    #[test]
    fn a_run_that_was_killed_and_resumed_ends_with_the_same_weights_as_one_that_was_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("checkpoint.safetensors");
        let mut whole = begin();
        train(&mut whole, &mut |_, _| Ok(())).unwrap();

        let mut killed = begin();
        let stopped = train(&mut killed, &mut |run, progress| match progress {
            Progress::Round { .. } => run.save(&path, "this"),
            // Inside a mining interval.
            Progress::Step { step: 15, .. } => Err(Error::cancelled("killed")),
            Progress::Step { .. } => Ok(()),
        });
        assert_eq!(stopped.unwrap_err().to_string(), "killed");
        let mut resumed = begin();
        resumed.resume(&path, "this").unwrap();
        assert_eq!(resumed.n_made, 12);
        train(&mut resumed, &mut |_, _| Ok(())).unwrap();
        assert_eq!(resumed, whole);
        assert_eq!(resumed.finish(), whole.finish());
        assert!(begin().resume(&path, "that").unwrap_err().to_string().contains("different config"));
    }

    #[test]
    fn a_run_that_makes_its_forward_passes_twice_ends_with_the_same_weights() {
        let mut kept = begin();
        train(&mut kept, &mut |_, _| Ok(())).unwrap();
        let mut again = begin();
        again.config.recompute = true;
        train(&mut again, &mut |_, _| Ok(())).unwrap();
        assert_eq!(again.finish(), kept.finish());
    }

    #[test]
    fn losses_fall_and_scores_grow_on_any_number_of_threads() {
        let mut run = begin();
        let (mut losses, mut scores) = (Vec::new(), Vec::new());
        train(&mut run, &mut |_, progress| {
            match progress {
                Progress::Step { loss, .. } => losses.push(loss),
                Progress::Round { score, .. } => scores.extend(score),
            }
            Ok(())
        })
        .unwrap();
        assert!(scores.len() == 2 && scores[0] < scores[1], "{scores:?}");
        let mean = |losses: &[f64]| losses.iter().sum::<f64>() / losses.len() as f64;
        assert!(mean(&losses[18..]) < 0.5 * mean(&losses[..6]), "{losses:?}");
        let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
        let mut alone = begin();
        pool.install(|| train(&mut alone, &mut |_, _| Ok(()))).unwrap();
        assert_eq!(alone, run);
    }

    #[test]
    fn a_run_ends_early_where_it_gets_no_better() {
        let mut run = begin();
        run.config.patience = 1;
        run.config.evaluate_every = 1;
        run.train(&mut Regression::new(false), &mut |_, _| Ok(())).unwrap();
        assert!(run.n_made < 24, "{}", run.n_made);
    }
}
