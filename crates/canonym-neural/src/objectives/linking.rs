//! Mentions come near the names of their concepts: the objective of the dual encoder (Bhowmik et al. 2021, their code).
//!
//! The candidates of a mention are a name of its concept, names drawn at random, and hard ones: before each round all names and all mentions
//! are encoded, and the names that stand before the right one among the nearest join what the mention was hard_negatives with so far. The loss is
//! the cross entropy of the right candidate, the mean over mentions. Where mentions are searched for, too, that of every span or tag joins,
//! the mean over all.
//!
//! Beyond the paper, a mention can be compared with all names at once, as they were encoded before the round: the gradient goes through the
//! mention alone, so a step costs no more than reading the text. Where the encoder of names is kept as it is, this is exact.

mod parts;

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use canonym_core::{Error, Result};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::Xxh3;

use crate::autograd::{Tape, Var, softmax};
use crate::index::FlatIndex;
use crate::models::dual_encoder::infer::DualEncoder;
use crate::models::dual_encoder::{DualEncoderConfig, NAME};
use crate::objectives::anchors::{Names, anchors_at};
use crate::objectives::search::search_loss;
use crate::tensor::matrix::{Into, Matrix, Threads, dot, multiply};
use crate::tensor::parameters::Parameters;
use crate::tensor::random::{self, SplitMix64};
use crate::train::Objective;
use crate::train::losses::Loss;

use self::parts::{Part, name_parts, window_parts};

/// How candidates are chosen.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LinkingConfig {
    /// Windows of a batch.
    pub batch: usize,
    /// Random candidates of a mention, or of a batch where they are shared.
    pub n_random: usize,
    /// Hard candidates of a mention at most, or of a concept where they are shared.
    pub n_hard: usize,
    /// Names that are searched for hard candidates.
    pub n_searched: usize,
    /// Whether every mention of a batch is compared with the candidates of all.
    pub shared: bool,
    /// Whether every mention is compared with all names, too, as they were encoded before the round.
    pub all_names: bool,
    /// Names in each batch that are read as mentions of their concepts, without text around them. They keep concepts apart that no text
    /// mentions.
    #[serde(alias = "rehearsed")]
    pub name_replay: usize,
    /// What inner products are multiplied with.
    pub scale: f32,
    /// What the loss of the search for mentions counts beside that of linking.
    pub search_weight: f32,
}

impl Default for LinkingConfig {
    fn default() -> LinkingConfig {
        LinkingConfig {
            batch: 1,
            n_random: 9,
            n_hard: 10,
            n_searched: 10,
            shared: false,
            all_names: false,
            name_replay: 0,
            scale: 1.0,
            search_weight: 1.0,
        }
    }
}

/// A window with its mentions.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TrainingText {
    /// From `[CLS]` to `[SEP]`.
    pub rows: Vec<u32>,
    /// Its mentions.
    pub mentions: Vec<Target>,
    /// Whether a word begins at each place; needed for tags alone.
    pub begins_word: Vec<bool>,
    /// First and last pieces of mentions that are linked in another window and stand here whole, too: windows overlap. They are mentions to be found.
    pub elsewhere: Vec<(usize, usize)>,
}

/// A mention and what it means.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Target {
    /// The place of its first piece in the window.
    pub first: usize,
    /// The place of its last piece.
    pub last: usize,
    /// Its concepts; the first is trained for, none of the others is wrong. Empty where it has none with a name.
    pub concepts: Vec<u32>,
    /// Whether it means a concept at all, named or not.
    pub means_something: bool,
}

/// The objective.
#[derive(Debug)]
pub struct Linking<'a> {
    model: &'a DualEncoderConfig,
    config: LinkingConfig,
    seed: u64,
    readings: &'a [TrainingText],
    names: &'a Names,
    /// The rows of the names of each concept.
    names_of: BTreeMap<u32, Vec<u32>>,
    /// The number of the first mention of each reading.
    first_mention: Vec<usize>,
    /// The nearest name of the concept of each mention; empty before the first search.
    nearest: Vec<Option<u32>>,
    /// What each mention was hard_negatives with, in the order in which it was found.
    hard_negatives: Vec<Vec<u32>>,
    held_out: &'a [TrainingText],
    /// The names that are read as mentions.
    rehearsal: &'a Names,
    /// The vectors of all names, and a fingerprint of the weights that made them: an evaluation and the search after it need the same.
    encoded: Mutex<Option<(u64, Arc<Matrix>)>>,
}

/// What a step learns from.
#[derive(Debug)]
pub struct Batch {
    parts: Vec<Part>,
    /// Those of the corpus; windows of names come after them and are not searched.
    windows: Vec<BatchWindow>,
    n_mentions: usize,
    n_names: usize,
    /// Of mentions that have a concept: their row, and the rows of their candidates, the right one first.
    asked: Vec<(usize, Vec<usize>)>,
    /// The concepts of each of them, where it is compared with all names.
    concepts: Vec<Vec<u32>>,
}

/// The rows of a window among the scores of pieces, and what is right there.
#[derive(Debug)]
pub(super) struct BatchWindow {
    /// Pieces between `[CLS]` and `[SEP]`.
    pub n_pieces: usize,
    /// First and last piece of each mention, counted behind `[CLS]`.
    pub mentions: Vec<(usize, usize)>,
    /// Whether each piece begins a word.
    pub begins_word: Vec<bool>,
}

impl<'a> Linking<'a> {
    /// An objective over windows and names. Mentions of concepts that have no name are found, but not linked.
    pub fn new(
        model: &'a DualEncoderConfig,
        config: LinkingConfig,
        (readings, names): (&'a [TrainingText], &'a Names),
        seed: u64,
    ) -> Linking<'a> {
        let mut names_of: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for (row, concepts) in names.concepts.iter().enumerate() {
            concepts.iter().for_each(|concept| names_of.entry(*concept).or_default().push(row as u32));
        }
        let mut n_mentions = 0;
        let first = |reading: &TrainingText| {
            n_mentions += reading.mentions.len();
            n_mentions - reading.mentions.len()
        };
        let first_mention = readings.iter().map(first).collect();
        let config = LinkingConfig { batch: config.batch.min(readings.len()).max(1), ..config };
        Linking {
            model,
            config,
            seed,
            readings,
            names,
            names_of,
            first_mention,
            nearest: Vec::new(),
            hard_negatives: vec![Vec::new(); n_mentions],
            held_out: &[],
            rehearsal: names,
            encoded: Mutex::new(None),
        }
    }

    /// Measures the share of held-out mentions whose nearest name is right when the run is evaluated.
    #[must_use]
    pub fn with_held_out(self, held_out: &'a [TrainingText]) -> Linking<'a> {
        Linking { held_out, ..self }
    }

    /// Reads these names as mentions, and not those that mentions are compared with. They are in the pieces of the encoder of texts.
    #[must_use]
    pub fn with_rehearsal(self, rehearsal: &'a Names) -> Linking<'a> {
        Linking { rehearsal, ..self }
    }

    /// Takes over the vectors of all names as these weights make them, so that they are not computed before the encoder of names has learned.
    #[must_use]
    pub fn with_encoded(self, parameters: &Parameters, vectors: Matrix) -> Linking<'a> {
        Linking { encoded: Mutex::new(Some((of_names(parameters), Arc::new(vectors)))), ..self }
    }

    fn name_vectors(&self, encoder: &DualEncoder, parameters: &Parameters) -> Result<Arc<Matrix>> {
        let fingerprint = of_names(parameters);
        let mut encoded = self.encoded.lock().unwrap_or_else(PoisonError::into_inner);
        match &*encoded {
            Some((known, vectors)) if *known == fingerprint => Ok(vectors.clone()),
            _ => {
                let vectors = Arc::new(encoder.encode_names(&self.names.pieces)?);
                *encoded = Some((fingerprint, vectors.clone()));
                Ok(vectors)
            }
        }
    }

    /// Whether batches hold candidates that are encoded anew.
    fn compares(&self) -> bool {
        self.config.n_random + self.config.n_hard > 0
    }

    /// The cross entropy of the names of the right concept among all names, whose vectors are given, and its gradient for mentions.
    fn loss_among_all(
        &self,
        batch: &Batch,
        rows: &Rows,
        names: &Matrix,
        values: &Matrix,
        gradient: &mut Matrix,
    ) -> f64 {
        let n = batch.asked.len();
        if n == 0 {
            return 0.0;
        }
        let (dim, scale) = (names.n_cols, self.config.scale);
        let of_mention = |(mention, _): &(usize, Vec<usize>)| values.row(rows.mentions[*mention])[..dim].to_vec();
        let mentions = Matrix::new(n, dim, batch.asked.iter().flat_map(of_mention).collect());
        let mut scores = Matrix::zeros(n, names.n_rows);
        multiply(scores.view_mut(), mentions.view(), names.view().transposed(), Into::Replace, Threads::All);
        let share = 1.0 / n as f32;
        let one = |(scores, concepts): (&mut [f32], &Vec<u32>)| {
            scores.iter_mut().for_each(|score| *score *= scale);
            let own = &self.names_of[&concepts[0]];
            let others: Vec<u32> =
                concepts[1..].iter().filter_map(|concept| self.names_of.get(concept)).flatten().copied().collect();
            // Names of the other concepts of a composite mention are not wrong.
            others
                .iter()
                .filter(|name| !own.contains(name))
                .for_each(|name| scores[*name as usize] = f32::NEG_INFINITY);
            softmax(scores);
            let right: f32 = own.iter().map(|name| scores[*name as usize]).sum();
            let right = right.max(f32::MIN_POSITIVE);
            own.iter().for_each(|name| scores[*name as usize] -= scores[*name as usize] / right);
            scores.iter_mut().for_each(|slope| *slope *= share * scale);
            -f64::from(right).ln()
        };
        let losses: Vec<f64> = scores.values.par_chunks_mut(names.n_rows).zip(&batch.concepts).map(one).collect();
        let mut back = Matrix::zeros(n, dim);
        multiply(back.view_mut(), scores.view(), names.view(), Into::Replace, Threads::All);
        for ((mention, _), from) in batch.asked.iter().zip(back.values.chunks_exact(dim)) {
            let to = gradient.row_mut(rows.mentions[*mention]);
            to.iter_mut().zip(from).for_each(|(to, from)| *to += from);
        }
        losses.into_iter().sum::<f64>() * f64::from(share)
    }

    fn is_of(&self, name: u32, concepts: &[u32]) -> bool {
        self.names.concepts[name as usize].iter().any(|concept| concepts.contains(concept))
    }

    /// The name that a mention should come near, its nearest one where that is known; `None` where it has no concept with a name.
    fn right(&self, mention: usize, concepts: &[u32], rng: &mut SplitMix64) -> Option<u32> {
        let own = self.names_of.get(concepts.first()?)?;
        let nearest = self.nearest.get(mention).copied().flatten();
        Some(nearest.unwrap_or_else(|| own[rng.below(own.len())]))
    }

    /// Names drawn at random, as texts that are a mention from the first piece to the last.
    fn name_replay(&self, rng: &mut SplitMix64) -> Vec<TrainingText> {
        let n_names = self.rehearsal.pieces.len();
        let n = if n_names == 0 { 0 } else { self.config.name_replay };
        let one = |_| {
            let name = rng.below(n_names);
            let (rows, concepts) = (self.rehearsal.pieces[name].clone(), self.rehearsal.concepts[name].clone());
            let last = rows.len().saturating_sub(2).max(1);
            TrainingText {
                rows,
                mentions: vec![Target { first: 1, last, concepts, means_something: true }],
                ..TrainingText::default()
            }
        };
        // A name without pieces says nothing.
        let mut drawn: Vec<TrainingText> = (0..n).map(one).filter(|reading| reading.rows.len() > 2).collect();
        drawn.sort_by_key(|reading| reading.rows.len());
        drawn
    }

    /// Some of what mentions of one concept were hard_negatives with.
    fn hard(&self, mentions: &[usize], rng: &mut SplitMix64) -> Vec<u32> {
        let mut pool: Vec<u32> =
            mentions.iter().flat_map(|mention| self.hard_negatives[*mention].iter().copied()).collect();
        pool.sort_unstable();
        pool.dedup();
        if pool.len() > self.config.n_hard {
            random::shuffle(&mut pool, rng);
            pool.truncate(self.config.n_hard);
        }
        pool
    }

    /// Names drawn at random that are of none of these concepts.
    fn random(&self, concepts: &[u32], rng: &mut SplitMix64) -> Vec<u32> {
        let draw = |_| rng.below(self.names.pieces.len()) as u32;
        (0..self.config.n_random).map(draw).filter(|name| !self.is_of(*name, concepts)).collect()
    }
}

impl Objective for Linking<'_> {
    type Batch = Batch;

    fn begin_round(&mut self, parameters: &Parameters, _round: u64) -> Result<()> {
        if self.config.n_hard == 0 && !self.config.all_names {
            return Ok(());
        }
        let encoder = DualEncoder::new(self.model, parameters)?;
        let names = self.name_vectors(&encoder, parameters)?;
        if self.config.n_hard == 0 {
            return Ok(());
        }
        let mentions = vectors(&encoder, self.readings)?;
        let targets: Vec<&Target> = self.readings.iter().flat_map(|reading| &reading.mentions).collect();
        let nearest = |(row, target): (usize, &&Target)| {
            let own = self.names_of.get(target.concepts.first()?)?;
            let score = |name: &u32| dot(mentions.row(row), names.row(*name as usize));
            own.iter().copied().rev().max_by(|left, right| score(left).total_cmp(&score(right)))
        };
        self.nearest = targets.iter().enumerate().map(nearest).collect();
        let index = FlatIndex::by_inner_product(names.as_ref().clone());
        for (mention, hits) in index.search(&mentions, self.config.n_searched).into_iter().enumerate() {
            let concepts = &targets[mention].concepts;
            let before = hits.iter().map(|hit| hit.row).take_while(|name| !self.is_of(*name, concepts));
            let new: Vec<u32> = before.filter(|name| !self.hard_negatives[mention].contains(name)).collect();
            self.hard_negatives[mention].extend(new);
        }
        Ok(())
    }

    fn batch(&self, step: u64, rng: &mut SplitMix64) -> Batch {
        let chosen = anchors_at(self.readings.len(), self.seed, step, self.config.batch);
        // Of each mention with a concept: its row, the names for it alone, the right one first, and its concepts.
        let mut asked: Vec<(usize, Vec<u32>, &[u32])> = Vec::new();
        let mut mentions_of: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
        let mut n_mentions = 0;
        let mut concepts = Vec::new();
        let name_replay = self.name_replay(rng);
        for reading in &chosen {
            for (at, target) in self.readings[*reading].mentions.iter().enumerate() {
                let mention = self.first_mention[*reading] + at;
                if let Some(right) = self.right(mention, &target.concepts, rng) {
                    concepts.push(target.concepts.clone());
                    if !self.compares() {
                        n_mentions += 1;
                        asked.push((n_mentions - 1, Vec::new(), &target.concepts));
                        continue;
                    }
                    let mut names = vec![right];
                    match self.config.shared {
                        true => mentions_of.entry(target.concepts[0]).or_default().push(mention),
                        false => {
                            names.extend(self.hard(&[mention], rng));
                            names.extend(self.random(&target.concepts, rng));
                        }
                    }
                    asked.push((n_mentions, names, &target.concepts));
                }
                n_mentions += 1;
            }
        }
        for target in name_replay.iter().flat_map(|reading| &reading.mentions) {
            // Which of its names is nearest is known of mentions alone.
            if let Some(right) = self.right(usize::MAX, &target.concepts, rng) {
                let mut names = Vec::new();
                if self.compares() {
                    names.push(right);
                    names.extend(if self.config.shared { Vec::new() } else { self.random(&target.concepts, rng) });
                }
                concepts.push(target.concepts.clone());
                asked.push((n_mentions, names, &target.concepts));
            }
            n_mentions += 1;
        }
        let mut all: Vec<u32> = asked.iter().flat_map(|(_, names, _)| names.iter().copied()).collect();
        for mentions in mentions_of.values() {
            all.extend(self.hard(mentions, rng));
        }
        if !mentions_of.is_empty() {
            all.extend(self.random(&[], rng));
        }
        all.sort_unstable();
        all.dedup();
        // Names of like length stand together, so that parts are even.
        all.sort_by_key(|name| self.names.pieces[*name as usize].len());
        let row_of: BTreeMap<u32, usize> = all.iter().copied().zip(0..).collect();
        let rows = |(mention, names, concepts): &(usize, Vec<u32>, &[u32])| {
            if !self.config.shared || names.is_empty() {
                return (*mention, names.iter().map(|name| row_of[name]).collect());
            }
            let others = all.iter().filter(|name| !self.is_of(**name, concepts)).map(|name| row_of[name]);
            (*mention, std::iter::once(row_of[&names[0]]).chain(others).collect())
        };
        let mut parts = window_parts(chosen.iter().map(|reading| &self.readings[*reading]).chain(&name_replay));
        parts.extend(name_parts(all.iter().map(|name| self.names.pieces[*name as usize].as_slice())));
        let window = |reading: &usize| {
            let reading = &self.readings[*reading];
            let inner = 1..reading.rows.len() - 1;
            BatchWindow {
                n_pieces: inner.len(),
                mentions: spans_of(reading).map(|(first, last)| (first - 1, last - 1)).collect(),
                begins_word: reading.begins_word.get(inner).map(<[bool]>::to_vec).unwrap_or_default(),
            }
        };
        Batch {
            windows: chosen.iter().map(window).collect(),
            n_mentions,
            n_names: all.len(),
            asked: asked.iter().map(rows).collect(),
            concepts,
            parts,
        }
    }

    fn n_parts(&self, batch: &Batch) -> usize {
        batch.parts.len()
    }

    /// Vectors of mentions, then three scores of each piece where mentions are searched for; or vectors of names. Scores stand in the first
    /// of as many columns as vectors have.
    fn forward(&self, tape: &mut Tape<'_>, batch: &Batch, part: usize, rng: &mut SplitMix64) -> Result<Var> {
        let dim = self.model.bert.hidden_size;
        match &batch.parts[part] {
            Part::Names(names) => self.model.read_names(tape, names, Some(rng)),
            Part::Windows(windows, places) => {
                let seen = self.model.read_windows(tape, windows, places, Some(rng))?;
                let wide = seen.spans.map(|spans| {
                    let n_rows = tape.value(spans).n_rows;
                    let fill = tape.input(Matrix::zeros(n_rows, dim - 3));
                    tape.concat(&[spans, fill])
                });
                Ok(match (seen.mentions, wide) {
                    (Some(mentions), Some(wide)) => tape.stack(mentions, wide),
                    (Some(only), None) | (None, Some(only)) => only,
                    (None, None) => tape.input(Matrix::zeros(0, dim)),
                })
            }
        }
    }

    fn loss(&self, batch: &Batch, values: &Matrix) -> Loss {
        let places = batch.rows(self.model.search.is_some());
        let mut gradient = Matrix::zeros(values.n_rows, values.n_cols);
        let mut value = linking_loss(batch, &places, self.config.scale, values, &mut gradient);
        if self.config.all_names {
            let encoded = self.encoded.lock().unwrap_or_else(PoisonError::into_inner).clone();
            let names = encoded.expect("names are encoded before a round").1;
            value += self.loss_among_all(batch, &places, &names, values, &mut gradient);
        }
        let Some(search) = self.model.search else { return Loss { value, gradient } };
        let searched =
            search_loss(search, &batch.windows, &places.pieces, values, self.config.search_weight, &mut gradient);
        Loss { value: value + searched, gradient }
    }

    fn evaluate(&self, parameters: &Parameters) -> Result<Option<f64>> {
        if self.held_out.is_empty() {
            return Ok(None);
        }
        let encoder = DualEncoder::new(self.model, parameters)?;
        let index = FlatIndex::by_inner_product(self.name_vectors(&encoder, parameters)?.as_ref().clone());
        let found = index.search(&vectors(&encoder, self.held_out)?, 1);
        let targets = self.held_out.iter().flat_map(|reading| &reading.mentions);
        let is_right = |(hits, target): &(Vec<crate::index::Hit>, &Target)| {
            hits.first().is_some_and(|hit| self.is_of(hit.row, &target.concepts))
        };
        let n_asked = targets.clone().filter(|target| target.means_something).count();
        let n_right = found.into_iter().zip(targets).filter(is_right).count();
        Ok(Some(n_right as f64 / n_asked.max(1) as f64))
    }

    fn memory(&self) -> Vec<u8> {
        let lines = self.hard_negatives.iter().map(|names| {
            let names: Vec<String> = names.iter().map(u32::to_string).collect();
            names.join(" ") + "\n"
        });
        lines.collect::<String>().into_bytes()
    }

    fn recall(&mut self, memory: &[u8]) -> Result<()> {
        let damaged = || Error::invalid("what mentions were confused with cannot be read");
        let text = std::str::from_utf8(memory).map_err(|_| damaged())?;
        let line = |line: &str| line.split_ascii_whitespace().map(str::parse).collect::<std::result::Result<_, _>>();
        let hard_negatives: Vec<Vec<u32>> =
            text.lines().map(line).collect::<std::result::Result<_, _>>().map_err(|_| damaged())?;
        let n_names = self.names.pieces.len() as u32;
        if hard_negatives.len() != self.hard_negatives.len()
            || hard_negatives.iter().flatten().any(|name| *name >= n_names)
        {
            return Err(damaged());
        }
        self.hard_negatives = hard_negatives;
        Ok(())
    }
}

/// First and last piece of every mention that stands whole in a window.
fn spans_of(reading: &TrainingText) -> impl Iterator<Item = (usize, usize)> {
    reading.mentions.iter().map(|target| (target.first, target.last)).chain(reading.elsewhere.iter().copied())
}

/// A number that differs for different weights of the encoder of names.
fn of_names(parameters: &Parameters) -> u64 {
    let mut hash = Xxh3::new();
    let values = parameters.iter().filter(|(name, _)| name.starts_with(NAME)).flat_map(|(_, value)| &value.values);
    values.for_each(|value| hash.update(&value.to_le_bytes()));
    hash.digest()
}

/// The vectors of the mentions of readings, in order.
pub fn vectors(encoder: &DualEncoder, readings: &[TrainingText]) -> Result<Matrix> {
    let windows: Vec<&[u32]> = readings.iter().map(|reading| reading.rows.as_slice()).collect();
    let mentions = readings
        .iter()
        .enumerate()
        .flat_map(|(window, reading)| reading.mentions.iter().map(move |target| (window, target.first, target.last)));
    encoder.encode_mentions(&windows, &mentions.collect::<Vec<_>>())
}

/// The rows of a batch among the values of its parts.
struct Rows {
    mentions: Vec<usize>,
    /// The rows of the pieces of each window, `[CLS]` and `[SEP]` left out.
    pieces: Vec<Range<usize>>,
    names: Range<usize>,
}

impl Batch {
    fn rows(&self, has_scores: bool) -> Rows {
        let mut rows = Rows { mentions: Vec::with_capacity(self.n_mentions), pieces: Vec::new(), names: 0..0 };
        let mut at = 0;
        for part in &self.parts {
            let Part::Windows(windows, places) = part else { break };
            rows.mentions.extend(at..at + places.len());
            at += places.len();
            if has_scores {
                rows.pieces.extend(windows.segments().iter().map(|window| at + window.start + 1..at + window.end - 1));
                at += windows.segments().n_rows();
            }
        }
        rows.names = at..at + self.n_names;
        rows
    }
}

/// The cross entropy of the right candidate of each mention, and its gradient added to `gradient`.
fn linking_loss(batch: &Batch, rows: &Rows, scale: f32, values: &Matrix, gradient: &mut Matrix) -> f64 {
    let share = 1.0 / batch.asked.len().max(1) as f32;
    let mut sum = 0.0;
    for (mention, candidates) in batch.asked.iter().filter(|(_, candidates)| !candidates.is_empty()) {
        let mention = rows.mentions[*mention];
        let score = |name: &usize| scale * dot(values.row(mention), values.row(rows.names.start + name));
        let mut gradients: Vec<f32> = candidates.iter().map(score).collect();
        softmax(&mut gradients);
        sum -= f64::from(gradients[0].max(f32::MIN_POSITIVE)).ln();
        gradients[0] -= 1.0;
        for (name, slope) in candidates.iter().zip(gradients) {
            let name = rows.names.start + name;
            let slope = slope * share * scale;
            for (to, from) in [(mention, name), (name, mention)] {
                let from = values.row(from);
                gradient.row_mut(to).iter_mut().zip(from).for_each(|(to, from)| *to += slope * from);
            }
        }
    }
    sum * f64::from(share)
}

#[cfg(test)]
mod tests;
