//! Training of the multi-task tagger on sentences with their context.
//!
//! The softmax of a batch runs over the labels that occur in it (section 3.3 of Wiatrak and Iso-Sipila 2020); the loss of a task is the mean
//! over its words or spans, with a weight for Nil.

pub mod evaluate;

use std::collections::{BTreeMap, BTreeSet};

use canonym_core::{Error, Result};
use serde::{Deserialize, Serialize};

use self::evaluate::{HeldOut, evaluate, gold_spans};
use crate::autograd::{Tape, Var, softmax};
use crate::layers::crf::Crf;
use crate::models::multitask::infer::MultitaskTagger;
use crate::models::multitask::tokenized::{Splitter, TokenizedText};
use crate::models::multitask::{CONCEPTS, Framing, MultitaskConfig, PackedWindows, Task};
use crate::tensor::matrix::{Matrix, Threads, WriteMode, multiply};
use crate::tensor::parameters::Parameters;
use crate::tensor::random::SplitMix64;
use crate::train::{Losses, Objective, Outputs, Values};

/// Outputs: label scores of mentions and types, inputs of the concept head, rows of the present classes, transitions.
const MENTIONS: &str = "mentions";
const TYPES: &str = "types";
const INPUTS: &str = "concepts";
const CLASSES: &str = "classes";
const MENTION_TRANSITIONS: &str = "mention transitions";
const TYPE_TRANSITIONS: &str = "type transitions";

/// PackedWindows per part of a batch.
const PART: usize = 8;

/// Gold labels of a text. A label that is not known is `None` and not learned from.
#[derive(Debug, Clone, Default)]
pub struct TextLabels {
    /// BILOU label of each word.
    pub mentions: Vec<u8>,
    /// Type label of each word: Nil, and a type or a BILOU label of a type.
    pub types: Vec<Option<u32>>,
    /// Class of each word: Nil, and a concept from 1.
    pub concepts: Vec<Option<u32>>,
    /// Mentions.
    pub spans: Vec<GoldSpan>,
}

/// A gold mention.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GoldSpan {
    /// First word.
    pub first: usize,
    /// Last word.
    pub last: usize,
    /// Type from 1.
    pub class: Option<u32>,
    /// Concept from 1.
    pub concept: Option<u32>,
}

/// A text with its gold labels.
#[derive(Debug, Clone, Default)]
pub struct Example {
    /// The text; gold boundaries are word boundaries.
    pub text: TokenizedText,
    /// Its labels.
    pub labels: TextLabels,
}

/// Which tasks a step trains.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Schedule {
    /// One task, drawn uniformly (Sanh et al. 2019).
    #[default]
    Sampled,
    /// All tasks; their losses are added.
    Summed,
}

/// Which losses reach the encoder.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EncoderGradient {
    /// Only that of the highest task.
    #[default]
    Main,
    /// Those of all tasks.
    All,
}

/// Batch settings.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct MultitaskBatchConfig {
    /// Sentences per batch.
    pub batch: usize,
    /// Which tasks a step trains.
    pub schedule: Schedule,
    /// Which losses reach the encoder.
    pub encoder_gradient: EncoderGradient,
    /// Weight of Nil in the losses of types and concepts per token.
    pub nil_weight: f32,
}

impl MultitaskBatchConfig {
    /// Checks the ranges of the settings.
    ///
    /// # Errors
    /// If a value is out of range.
    pub fn check(&self) -> Result<()> {
        if self.batch == 0 {
            let error = Error::config("`batch.batch` must be at least 1");
            return Err(error.with_hint("it is the number of sentences per step; the paper uses 32"));
        }
        if !(self.nil_weight > 0.0 && self.nil_weight <= 1.0) {
            let error =
                Error::config(format!("`batch.nil_weight` must be above 0 and at most 1, not {}", self.nil_weight));
            return Err(error.with_hint("the paper uses 0.125, and 0.01 for MedMentions ST21pv"));
        }
        Ok(())
    }
}

impl Default for MultitaskBatchConfig {
    fn default() -> MultitaskBatchConfig {
        MultitaskBatchConfig {
            batch: 32,
            schedule: Schedule::Sampled,
            encoder_gradient: EncoderGradient::Main,
            nil_weight: 0.125,
        }
    }
}

/// The objective.
#[derive(Debug)]
pub struct Multitask<'a> {
    model: &'a MultitaskConfig,
    config: MultitaskBatchConfig,
    splitter: &'a Splitter,
    examples: &'a [Example],
    /// Text and window of each sentence.
    windows: Vec<(usize, usize)>,
    n_concepts: usize,
    held_out: &'a [HeldOut],
}

/// The sentences of a step.
#[derive(Debug)]
pub struct MultitaskBatch {
    tasks: Vec<Task>,
    parts: Vec<Part>,
    /// Classes that occur in the batch, in order; Nil is one of them per token.
    present: Vec<u32>,
}

#[derive(Debug, Default)]
struct Part {
    windows: PackedWindows,
    /// Number of words of each window.
    n_words: Vec<usize>,
    mentions: Vec<Option<u32>>,
    types: Vec<Option<u32>>,
    concepts: Vec<Option<u32>>,
}

impl<'a> Multitask<'a> {
    /// Creates the objective, with `n_concepts` classes besides Nil.
    pub fn new(
        model: &'a MultitaskConfig,
        config: MultitaskBatchConfig,
        splitter: &'a Splitter,
        examples: &'a [Example],
        n_concepts: usize,
    ) -> Multitask<'a> {
        let of_text = |(text, example): (usize, &Example)| {
            (0..example.text.windows.len()).map(move |window| (text, window)).collect::<Vec<_>>()
        };
        let windows = examples.iter().enumerate().flat_map(of_text).collect();
        Multitask { model, config, splitter, examples, windows, n_concepts, held_out: &[] }
    }

    /// Adds texts that the model is evaluated on.
    #[must_use]
    pub fn with_held_out(self, held_out: &'a [HeldOut]) -> Multitask<'a> {
        Multitask { held_out, ..self }
    }

    /// Number of training sentences.
    pub fn n_windows(&self) -> usize {
        self.windows.len()
    }

    fn part(&self, windows: &[(usize, usize)]) -> Part {
        let mut part = Part::default();
        let mut spans: Vec<Vec<(usize, usize)>> = Vec::with_capacity(windows.len());
        let by_span = self.model.framing == Framing::Entity;
        for (text, window) in windows {
            let Example { text, labels } = &self.examples[*text];
            let words = text.windows[*window].words.clone();
            part.n_words.push(words.len());
            part.mentions.extend(labels.mentions[words.clone()].iter().map(|label| Some(u32::from(*label))));
            let mut inside = Vec::new();
            if by_span {
                let overlaps = |span: &&GoldSpan| span.first < words.end && words.start <= span.last;
                for span in labels.spans.iter().filter(overlaps) {
                    // A mention across windows is learned from the window with most of its words.
                    if text.window_of(span.first, span.last) != Some(*window) {
                        continue;
                    }
                    inside.push((span.first.max(words.start), span.last.min(words.end - 1)));
                    part.types.push(span.class);
                    part.concepts.push(span.concept);
                }
            } else {
                part.types.extend_from_slice(&labels.types[words.clone()]);
                part.concepts.extend_from_slice(&labels.concepts[words]);
            }
            spans.push(inside);
        }
        let each = windows.iter().zip(&spans).map(|((text, window), spans)| {
            let text = &self.examples[*text].text;
            (text, &text.windows[*window], spans.as_slice())
        });
        part.windows = self.splitter.pack(each);
        part
    }

    fn is_detached(&self, task: Task) -> bool {
        self.config.encoder_gradient == EncoderGradient::Main && Some(&task) != self.model.tasks.last()
    }
}

impl Objective for Multitask<'_> {
    type Batch = MultitaskBatch;

    fn begin_interval(&mut self, _parameters: &Parameters, _interval: u64) -> Result<()> {
        Ok(())
    }

    fn batch(&self, _step: u64, rng: &mut SplitMix64) -> MultitaskBatch {
        let tasks = match self.config.schedule {
            Schedule::Sampled => vec![self.model.tasks[rng.below(self.model.tasks.len())]],
            Schedule::Summed => self.model.tasks.clone(),
        };
        let mut drawn: Vec<(usize, usize)> =
            (0..self.config.batch).map(|_| self.windows[rng.below(self.windows.len())]).collect();
        // Parts of similar size take similar time.
        drawn.sort_by_key(|(text, window)| self.examples[*text].text.windows[*window].context.len());
        let n_parts = drawn.len().div_ceil(PART);
        let mut dealt: Vec<Vec<(usize, usize)>> = vec![Vec::new(); n_parts];
        for (at, window) in drawn.into_iter().enumerate() {
            dealt[at % n_parts].push(window);
        }
        let parts: Vec<Part> = dealt.iter().map(|windows| self.part(windows)).collect();
        let mut present: BTreeSet<u32> =
            parts.iter().flat_map(|part| part.concepts.iter().flatten()).copied().collect();
        if self.model.framing == Framing::Token {
            present.insert(0);
        }
        MultitaskBatch { tasks, parts, present: present.into_iter().collect() }
    }

    fn n_parts(&self, batch: &MultitaskBatch) -> usize {
        batch.parts.len()
    }

    fn forward(
        &self,
        tape: &mut Tape<'_>,
        batch: &MultitaskBatch,
        part: usize,
        rng: &mut SplitMix64,
    ) -> Result<Outputs> {
        let (model, Part { windows, .. }) = (self.model, &batch.parts[part]);
        let encoded = model.encode(tape, windows, Some(rng))?;
        let (detached, attached): (Vec<Task>, Vec<Task>) =
            batch.tasks.iter().partition(|task| self.is_detached(**task));
        let mut rows: BTreeMap<Task, Var> = BTreeMap::new();
        if !detached.is_empty() {
            let constant = tape.value(encoded).clone();
            let constant = tape.input(constant);
            rows.extend(model.task_rows(tape, constant, &windows.segments, &detached, Some(rng))?);
        }
        if !attached.is_empty() {
            rows.extend(model.task_rows(tape, encoded, &windows.segments, &attached, Some(rng))?);
        }
        let mut outputs = Outputs::default();
        for (task, rows) in rows {
            let by_span = model.framing == Framing::Entity && task != Task::Mentions;
            if !by_span || !windows.spans.is_empty() {
                let units = model.units(tape, rows, windows, task);
                outputs = outputs.with(output_of(task), model.head(tape, task, units, Some(rng))?);
            }
            if part > 0 {
                continue;
            }
            if task == Task::Concepts {
                let table = tape.parameter(CONCEPTS)?;
                outputs = outputs.with(CLASSES, tape.gather(table, batch.present.clone()));
            } else if model.has_crf(task) {
                outputs = outputs.with(transitions_of(task), tape.parameter(&format!("{}.transitions", task.name()))?);
            }
        }
        Ok(outputs)
    }

    fn losses(&self, batch: &MultitaskBatch, values: &Values) -> Losses {
        let mut losses = Losses::default();
        let by_token = self.model.framing == Framing::Token;
        let nil_weight = if by_token { self.config.nil_weight } else { 1.0 };
        for task in &batch.tasks {
            let labels: Vec<Option<u32>> = batch.parts.iter().flat_map(|part| part.labels(*task)).copied().collect();
            let name = output_of(*task);
            let output = values.get(name);
            if output.n_rows == 0 {
                losses.add(task.name(), 0.0);
                continue;
            }
            if self.model.has_crf(*task) {
                let transitions = values.get(transitions_of(*task));
                let n_words: Vec<usize> = batch.parts.iter().flat_map(|part| &part.n_words).copied().collect();
                let (loss, of_scores, of_transitions) = sequence_loss(output, transitions, &labels, &n_words);
                losses.add(task.name(), loss);
                losses.gradient_of(name, values).values.copy_from_slice(&of_scores);
                losses.gradient_of(transitions_of(*task), values).values.copy_from_slice(&of_transitions);
                continue;
            }
            let nil_weight = if *task == Task::Mentions { 1.0 } else { nil_weight };
            if *task != Task::Concepts {
                let mut present: BTreeSet<u32> = labels.iter().flatten().copied().collect();
                // Nil, or outside of mentions, is always a label; a span always has a type.
                if by_token || *task == Task::Mentions {
                    present.insert(0);
                }
                let present: Vec<u32> = present.into_iter().collect();
                let (loss, gradient) = present_loss(output, &labels, &present, nil_weight);
                losses.add(task.name(), loss);
                losses.gradient_of(name, values).values.copy_from_slice(&gradient.values);
                continue;
            }
            let classes = values.get(CLASSES);
            let mut scores = Matrix::zeros(output.n_rows, classes.n_rows);
            multiply(scores.view_mut(), output.view(), classes.view().transposed(), WriteMode::Replace, Threads::All);
            let column = |class: u32| batch.present.binary_search(&class).expect("present in the batch") as u32;
            let columns: Vec<Option<u32>> = labels.iter().map(|label| label.map(column)).collect();
            let all: Vec<u32> = (0..classes.n_rows as u32).collect();
            // Per entity there is no Nil: the first present class is a concept.
            let (loss, gradient) = present_loss(&scores, &columns, &all, nil_weight);
            losses.add(task.name(), loss);
            let to = losses.gradient_of(name, values);
            multiply(to.view_mut(), gradient.view(), classes.view(), WriteMode::Replace, Threads::All);
            let to = losses.gradient_of(CLASSES, values);
            multiply(to.view_mut(), gradient.view().transposed(), output.view(), WriteMode::Replace, Threads::All);
        }
        losses
    }

    /// One for each task, if a step trains only one of them.
    fn n_optimisers(&self) -> usize {
        if self.config.schedule == Schedule::Sampled { self.model.tasks.len() } else { 1 }
    }

    fn optimiser(&self, batch: &MultitaskBatch) -> usize {
        if self.config.schedule == Schedule::Summed {
            return 0;
        }
        self.model.tasks.iter().position(|task| batch.tasks.first() == Some(task)).unwrap_or(0)
    }

    /// Strict F1 of the highest task on held-out texts; on gold spans for a model that does not detect mentions.
    fn evaluate(&self, parameters: &Parameters) -> Result<Option<f64>> {
        if self.held_out.is_empty() {
            return Ok(None);
        }
        let tagger = MultitaskTagger::new(self.model, parameters, self.n_concepts, self.splitter.clone())?;
        let given = (!self.model.detects()).then(|| gold_spans(self.held_out));
        let found = evaluate(&tagger, self.held_out, given.as_deref())?;
        let highest = self.model.tasks.last().expect("a model has a task");
        Ok(found.counts.get(highest).map(|counts| counts.score().f1))
    }
}

impl Part {
    fn labels(&self, task: Task) -> &[Option<u32>] {
        match task {
            Task::Mentions => &self.mentions,
            Task::Types => &self.types,
            Task::Concepts => &self.concepts,
        }
    }
}

fn output_of(task: Task) -> &'static str {
    match task {
        Task::Mentions => MENTIONS,
        Task::Types => TYPES,
        Task::Concepts => INPUTS,
    }
}

fn transitions_of(task: Task) -> &'static str {
    if task == Task::Mentions { MENTION_TRANSITIONS } else { TYPE_TRANSITIONS }
}

/// Cross-entropy over the `present` columns, as the mean over labelled rows; rows labelled 0 have the weight `nil_weight`.
pub fn present_loss(scores: &Matrix, labels: &[Option<u32>], present: &[u32], nil_weight: f32) -> (f64, Matrix) {
    let mut gradient = Matrix::zeros(scores.n_rows, scores.n_cols);
    let n_labelled = labels.iter().flatten().count().max(1) as f32;
    let mut sum = 0.0;
    let mut probabilities = vec![0.0; present.len()];
    for (row, label) in labels.iter().enumerate() {
        let Some(label) = *label else { continue };
        probabilities
            .iter_mut()
            .zip(present)
            .for_each(|(probability, column)| *probability = scores.row(row)[*column as usize]);
        softmax(&mut probabilities);
        let weight = if label == 0 { nil_weight } else { 1.0 } / n_labelled;
        for (probability, column) in probabilities.iter().zip(present) {
            gradient.row_mut(row)[*column as usize] = weight * (probability - f32::from(u8::from(*column == label)));
            if *column == label {
                sum -= f64::from(weight) * f64::from(probability.max(f32::MIN_POSITIVE).ln());
            }
        }
    }
    (sum, gradient)
}

/// Negative log-likelihood of the labels of each window, as the mean over words, with the gradients of scores and transitions. Windows with
/// an unknown label are left out.
fn sequence_loss(
    scores: &Matrix,
    transitions: &Matrix,
    labels: &[Option<u32>],
    n_words: &[usize],
) -> (f64, Vec<f32>, Vec<f32>) {
    let crf = Crf::new(transitions);
    let n_cols = scores.n_cols;
    let mut windows: Vec<(usize, Vec<usize>)> = Vec::with_capacity(n_words.len());
    let mut first = 0;
    for n in n_words.iter().copied() {
        let gold: Option<Vec<usize>> =
            labels[first..first + n].iter().map(|label| label.map(|label| label as usize)).collect();
        windows.extend(gold.filter(|gold| !gold.is_empty()).map(|gold| (first, gold)));
        first += n;
    }
    let weight = 1.0 / windows.iter().map(|(_, gold)| gold.len()).sum::<usize>().max(1) as f32;
    let (mut loss, mut of_scores) = (0.0, vec![0.0; scores.values.len()]);
    let mut of_transitions = vec![0.0; transitions.values.len()];
    for (first, gold) in &windows {
        let rows = first * n_cols..(first + gold.len()) * n_cols;
        let found = crf.likelihood(&scores.values[rows.clone()], gold);
        loss += found.loss * f64::from(weight);
        of_scores[rows].iter_mut().zip(&found.of_scores).for_each(|(to, slope)| *to = weight * slope);
        of_transitions.iter_mut().zip(&found.of_transitions).for_each(|(to, slope)| *to += weight * slope);
    }
    (loss, of_scores, of_transitions)
}

#[cfg(test)]
mod tests;
