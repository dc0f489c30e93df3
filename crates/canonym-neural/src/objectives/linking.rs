//! Contrastive training of the dual encoder (Bhowmik et al. 2021 and their code).
//!
//! The candidates of a mention are a name of its concept, random names, and hard negatives: at each mining interval all names and mentions
//! are encoded, and names ranked above the correct one are added to the mention's hard negatives. The loss is the cross entropy of the
//! correct candidate, averaged over mentions. If the model has a span search, its loss over all spans or tags is added, averaged over
//! these.
//!
//! As an extension of the paper, a mention can be compared with all names, as encoded at the last mining interval. The gradient then flows
//! through the mention only, so a step costs no more than encoding the text. With a frozen name encoder this is exact.

mod parts;

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use canonym_core::eval::ranking::Ranks;
use canonym_core::{Error, Result};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::Xxh3;

use crate::autograd::{Tape, softmax};
use crate::index::FlatIndex;
use crate::models::dual_encoder::infer::DualEncoder;
use crate::models::dual_encoder::{DualEncoderConfig, NAME};
use crate::objectives::anchors::{Names, anchors_at};
use crate::objectives::search::search_loss;
use crate::tensor::matrix::{Matrix, Threads, WriteMode, dot, multiply};
use crate::tensor::parameters::Parameters;
use crate::tensor::random::{self, SplitMix64};
use crate::train::{Losses, Objective, Outputs, Values};

use self::parts::{Part, name_parts, window_parts};

/// How candidates are chosen.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LinkingConfig {
    /// Windows per batch.
    pub batch: usize,
    /// Random candidates per mention, or per batch if candidates are shared.
    pub n_random: usize,
    /// Maximum number of hard negatives per mention, or per concept if candidates are shared.
    pub n_hard: usize,
    /// Number of retrieved names among which hard negatives are mined.
    pub n_searched: usize,
    /// In-batch negatives: whether every mention is compared with the candidates of all.
    pub shared: bool,
    /// Whether names of the concepts of the batch are candidates although `n_random` and `n_hard` are 0; with `shared`.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub in_batch: bool,
    /// With `in_batch`: whether a concept that another mention of the batch has too counts as wrong there, as in published code.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub false_negatives: bool,
    /// Whether every mention is also compared with all names, as encoded at the last mining interval.
    pub all_names: bool,
    /// Name replay: number of names per batch that are read as mentions of their concepts, without context. This keeps concepts apart that
    /// no text mentions.
    #[serde(alias = "rehearsed")]
    pub name_replay: usize,
    /// Factor of the inner products before the softmax.
    pub scale: f32,
    /// Weight of the span loss relative to the linking loss.
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
            in_batch: false,
            false_negatives: false,
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
    /// `input_ids` from `[CLS]` to `[SEP]`.
    pub rows: Vec<u32>,
    /// Its mentions.
    pub mentions: Vec<Target>,
    /// Whether each wordpiece begins a word; used only for tags.
    pub begins_word: Vec<bool>,
    /// First and last wordpiece of mentions that lie in this window but are linked in an overlapping one. They are targets of detection
    /// only.
    pub elsewhere: Vec<(usize, usize)>,
}

/// A mention and its gold concepts.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Target {
    /// Index of its first wordpiece in the window.
    pub first: usize,
    /// Index of its last wordpiece.
    pub last: usize,
    /// Gold concepts: the first is the target, the others are not used as negatives. Empty if none of them has a name.
    pub concepts: Vec<u32>,
    /// Whether the mention has a concept at all, with or without a name.
    pub is_linked: bool,
}

/// Outputs: the embeddings of mentions and names, and three span scores per wordpiece.
const MENTIONS: &str = "mentions";
const NAMES: &str = "names";
const SPANS: &str = "spans";

/// The objective.
#[derive(Debug)]
pub struct Linking<'a> {
    model: &'a DualEncoderConfig,
    config: LinkingConfig,
    seed: u64,
    texts: &'a [TrainingText],
    names: &'a Names,
    /// Name rows of each concept.
    names_of: BTreeMap<u32, Vec<u32>>,
    /// Index of the first mention of each window.
    first_mention: Vec<usize>,
    /// Nearest correct name of each mention; empty before the first mining.
    nearest: Vec<Option<u32>>,
    /// Hard negatives of each mention, in the order in which they were mined.
    hard_negatives: Vec<Vec<u32>>,
    held_out: &'a [TrainingText],
    /// Names for replay.
    replayed_names: &'a Names,
    /// Embeddings of all names, and the fingerprint of the weights; shared by evaluation and the mining after it.
    encoded: Mutex<Option<(u64, Arc<Matrix>)>>,
}

/// The inputs and targets of a step.
#[derive(Debug)]
pub struct LinkingBatch {
    parts: Vec<Part>,
    /// Windows of the corpus; replayed names come after them and have no span loss.
    windows: Vec<BatchWindow>,
    /// For each mention with a concept, its row and the rows of its candidates, the correct one first.
    asked: Vec<(usize, Vec<usize>)>,
    /// Concepts of each of these mentions, for the comparison with all names.
    concepts: Vec<Vec<u32>>,
}

/// Targets of the span loss in a window.
#[derive(Debug)]
pub(super) struct BatchWindow {
    /// Number of wordpieces between `[CLS]` and `[SEP]`.
    pub n_wordpieces: usize,
    /// First and last wordpiece of each mention; 0 is the one after `[CLS]`.
    pub mentions: Vec<(usize, usize)>,
    /// Whether each wordpiece begins a word.
    pub begins_word: Vec<bool>,
}

impl<'a> Linking<'a> {
    /// Creates the objective. Mentions whose concepts have no name count for detection, not for linking.
    pub fn new(
        model: &'a DualEncoderConfig,
        config: LinkingConfig,
        texts: &'a [TrainingText],
        names: &'a Names,
        seed: u64,
    ) -> Linking<'a> {
        let mut names_of: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for (row, concepts) in names.concepts.iter().enumerate() {
            concepts.iter().for_each(|concept| names_of.entry(*concept).or_default().push(row as u32));
        }
        let mut n_mentions = 0;
        let first = |text: &TrainingText| {
            n_mentions += text.mentions.len();
            n_mentions - text.mentions.len()
        };
        let first_mention = texts.iter().map(first).collect();
        let config = LinkingConfig { batch: config.batch.min(texts.len()).max(1), ..config };
        Linking {
            model,
            config,
            seed,
            texts,
            names,
            names_of,
            first_mention,
            nearest: Vec::new(),
            hard_negatives: vec![Vec::new(); n_mentions],
            held_out: &[],
            replayed_names: names,
            encoded: Mutex::new(None),
        }
    }

    /// Evaluates the fraction of held-out mentions whose nearest name is correct.
    #[must_use]
    pub fn with_held_out(self, held_out: &'a [TrainingText]) -> Linking<'a> {
        Linking { held_out, ..self }
    }

    /// Replays these names instead of those that mentions are compared with. They are tokenised for the text encoder.
    #[must_use]
    pub fn with_name_replay(self, replayed_names: &'a Names) -> Linking<'a> {
        Linking { replayed_names, ..self }
    }

    /// Takes name embeddings computed with these weights, so that they are not computed again before the name encoder changes.
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
                let vectors = Arc::new(encoder.encode_names(&self.names.input_ids)?);
                *encoded = Some((fingerprint, vectors.clone()));
                Ok(vectors)
            }
        }
    }

    /// Whether batches contain candidates that are encoded in the step.
    fn compares(&self) -> bool {
        self.config.n_random + self.config.n_hard > 0 || self.config.in_batch && self.config.shared
    }

    /// Cross entropy of the correct concept's names among all names, whose embeddings are given, and its gradient for the mentions.
    fn loss_among_all(&self, batch: &LinkingBatch, names: &Matrix, values: &Values, losses: &mut Losses) {
        let n = batch.asked.len();
        if n == 0 {
            return;
        }
        let vectors = values.get(MENTIONS);
        let (dim, scale) = (names.n_cols, self.config.scale);
        let of_mention = |(mention, _): &(usize, Vec<usize>)| vectors.row(*mention).to_vec();
        let mentions = Matrix::new(n, dim, batch.asked.iter().flat_map(of_mention).collect());
        let mut scores = Matrix::zeros(n, names.n_rows);
        multiply(scores.view_mut(), mentions.view(), names.view().transposed(), WriteMode::Replace, Threads::All);
        let mean = 1.0 / n as f32;
        let one = |(scores, concepts): (&mut [f32], &Vec<u32>)| {
            scores.iter_mut().for_each(|score| *score *= scale);
            let own = &self.names_of[&concepts[0]];
            let others: Vec<u32> =
                concepts[1..].iter().filter_map(|concept| self.names_of.get(concept)).flatten().copied().collect();
            // Names of the other concepts of a composite mention are not negatives.
            others
                .iter()
                .filter(|name| !own.contains(name))
                .for_each(|name| scores[*name as usize] = f32::NEG_INFINITY);
            softmax(scores);
            let right: f32 = own.iter().map(|name| scores[*name as usize]).sum();
            let right = right.max(f32::MIN_POSITIVE);
            own.iter().for_each(|name| scores[*name as usize] -= scores[*name as usize] / right);
            scores.iter_mut().for_each(|slope| *slope *= mean * scale);
            -f64::from(right).ln()
        };
        let each: Vec<f64> = scores.values.par_chunks_mut(names.n_rows).zip(&batch.concepts).map(one).collect();
        let mut back = Matrix::zeros(n, dim);
        multiply(back.view_mut(), scores.view(), names.view(), WriteMode::Replace, Threads::All);
        let gradient = losses.gradient_of(MENTIONS, values);
        for ((mention, _), from) in batch.asked.iter().zip(back.values.chunks_exact(dim)) {
            gradient.row_mut(*mention).iter_mut().zip(from).for_each(|(to, from)| *to += from);
        }
        losses.add("all-names", each.into_iter().sum::<f64>() * f64::from(mean));
    }

    fn is_of(&self, name: u32, concepts: &[u32]) -> bool {
        self.names.concepts[name as usize].iter().any(|concept| concepts.contains(concept))
    }

    /// The target name of a mention: the nearest correct one if known, otherwise a random one; `None` if its concept has no name.
    fn right(&self, mention: usize, concepts: &[u32], rng: &mut SplitMix64) -> Option<u32> {
        let own = self.names_of.get(concepts.first()?)?;
        let nearest = self.nearest.get(mention).copied().flatten();
        Some(nearest.unwrap_or_else(|| own[rng.below(own.len())]))
    }

    /// Random names, as texts that consist of a single mention.
    fn name_replay(&self, rng: &mut SplitMix64) -> Vec<TrainingText> {
        let n_names = self.replayed_names.input_ids.len();
        let n = if n_names == 0 { 0 } else { self.config.name_replay };
        let one = |_| {
            let name = rng.below(n_names);
            let (rows, concepts) =
                (self.replayed_names.input_ids[name].clone(), self.replayed_names.concepts[name].clone());
            let last = rows.len().saturating_sub(2).max(1);
            TrainingText {
                rows,
                mentions: vec![Target { first: 1, last, concepts, is_linked: true }],
                ..TrainingText::default()
            }
        };
        // Names without wordpieces are skipped.
        let mut drawn: Vec<TrainingText> = (0..n).map(one).filter(|text| text.rows.len() > 2).collect();
        drawn.sort_by_key(|text| text.rows.len());
        drawn
    }

    /// A random sample of the hard negatives of mentions of one concept.
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

    /// Random names with none of these concepts.
    fn random(&self, concepts: &[u32], rng: &mut SplitMix64) -> Vec<u32> {
        let draw = |_| rng.below(self.names.input_ids.len()) as u32;
        (0..self.config.n_random).map(draw).filter(|name| !self.is_of(*name, concepts)).collect()
    }
}

impl Objective for Linking<'_> {
    type Batch = LinkingBatch;

    fn begin_interval(&mut self, parameters: &Parameters, _interval: u64) -> Result<()> {
        if self.config.n_hard == 0 && !self.config.all_names {
            return Ok(());
        }
        let encoder = DualEncoder::new(self.model, parameters)?;
        let names = self.name_vectors(&encoder, parameters)?;
        if self.config.n_hard == 0 {
            return Ok(());
        }
        let mentions = vectors(&encoder, self.texts)?;
        let targets: Vec<&Target> = self.texts.iter().flat_map(|text| &text.mentions).collect();
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

    fn batch(&self, step: u64, rng: &mut SplitMix64) -> LinkingBatch {
        let chosen = anchors_at(self.texts.len(), self.seed, step, self.config.batch);
        // For each mention with a concept: its row, its own candidates, the correct one first, and its concepts.
        let mut asked: Vec<(usize, Vec<u32>, &[u32])> = Vec::new();
        let mut mentions_of: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
        let mut n_mentions = 0;
        let mut concepts = Vec::new();
        let name_replay = self.name_replay(rng);
        for text in &chosen {
            for (at, target) in self.texts[*text].mentions.iter().enumerate() {
                let mention = self.first_mention[*text] + at;
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
        for target in name_replay.iter().flat_map(|text| &text.mentions) {
            // The nearest correct name is known only for mentions of the corpus.
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
        // Sorted by length, so that parts are of similar size.
        all.sort_by_key(|name| self.names.input_ids[*name as usize].len());
        let row_of: BTreeMap<u32, usize> = all.iter().copied().zip(0..).collect();
        let rows = |(mention, names, concepts): &(usize, Vec<u32>, &[u32])| {
            if !self.config.shared || names.is_empty() {
                return (*mention, names.iter().map(|name| row_of[name]).collect());
            }
            let own = std::iter::once(row_of[&names[0]]);
            if self.config.in_batch && self.config.false_negatives {
                let others = asked.iter().filter(|(other, ..)| other != mention);
                let others = others.filter_map(|(_, names, _)| names.first()).map(|name| row_of[name]);
                return (*mention, own.chain(others).collect());
            }
            let others = all.iter().filter(|name| !self.is_of(**name, concepts)).map(|name| row_of[name]);
            (*mention, own.chain(others).collect())
        };
        let mut parts = window_parts(chosen.iter().map(|text| &self.texts[*text]).chain(&name_replay));
        parts.extend(name_parts(all.iter().map(|name| self.names.input_ids[*name as usize].as_slice())));
        let window = |text: &usize| {
            let text = &self.texts[*text];
            let inner = 1..text.rows.len() - 1;
            BatchWindow {
                n_wordpieces: inner.len(),
                mentions: spans_of(text).map(|(first, last)| (first - 1, last - 1)).collect(),
                begins_word: text.begins_word.get(inner).map(<[bool]>::to_vec).unwrap_or_default(),
            }
        };
        LinkingBatch {
            windows: chosen.iter().map(window).collect(),
            asked: asked.iter().map(rows).collect(),
            concepts,
            parts,
        }
    }

    fn n_parts(&self, batch: &LinkingBatch) -> usize {
        batch.parts.len()
    }

    fn forward(&self, tape: &mut Tape<'_>, batch: &LinkingBatch, part: usize, rng: &mut SplitMix64) -> Result<Outputs> {
        match &batch.parts[part] {
            Part::Names(names) => Ok(Outputs::of(NAMES, self.model.read_names(tape, names, Some(rng))?)),
            Part::Windows(windows, mention_spans) => {
                let read = self.model.read_windows(tape, windows, mention_spans, Some(rng))?;
                let mentions = read.mentions.map_or_else(Outputs::default, |mentions| Outputs::of(MENTIONS, mentions));
                Ok(read.spans.map_or(mentions.clone(), |spans| mentions.with(SPANS, spans)))
            }
        }
    }

    fn losses(&self, batch: &LinkingBatch, values: &Values) -> Losses {
        let mut losses = Losses::default();
        if self.compares() {
            linking_loss(batch, self.config.scale, values, &mut losses);
        }
        if self.config.all_names {
            let encoded = self.encoded.lock().unwrap_or_else(PoisonError::into_inner).clone();
            let names = encoded.expect("names are encoded before a round").1;
            self.loss_among_all(batch, &names, values, &mut losses);
        }
        if let Some(search) = self.model.search {
            let gradient = losses.gradient_of(SPANS, values);
            let (rows, scores) = (batch.rows_of_windows(), values.get(SPANS));
            let value = search_loss(search, &batch.windows, &rows, scores, self.config.search_weight, gradient);
            losses.add("spans", value);
        }
        losses
    }

    fn evaluate(&self, parameters: &Parameters) -> Result<Option<f64>> {
        if self.held_out.is_empty() {
            return Ok(None);
        }
        let encoder = DualEncoder::new(self.model, parameters)?;
        let index = FlatIndex::by_inner_product(self.name_vectors(&encoder, parameters)?.as_ref().clone());
        let found = index.search(&vectors(&encoder, self.held_out)?, 1);
        let targets = self.held_out.iter().flat_map(|text| &text.mentions);
        let rank = |(hits, target): (&Vec<crate::index::Hit>, &Target)| {
            hits.iter().position(|hit| self.is_of(hit.row, &target.concepts))
        };
        let linked = found.iter().zip(targets).filter(|(_, target)| target.is_linked);
        let ranks: Vec<Option<usize>> = linked.map(rank).collect();
        Ok(Some(Ranks::of(&ranks).accuracy_at(1)))
    }

    fn save_state(&self) -> Vec<u8> {
        let lines = self.hard_negatives.iter().map(|names| {
            let names: Vec<String> = names.iter().map(u32::to_string).collect();
            names.join(" ") + "\n"
        });
        lines.collect::<String>().into_bytes()
    }

    fn load_state(&mut self, state: &[u8]) -> Result<()> {
        let damaged = || Error::damaged("invalid hard negatives");
        let text = std::str::from_utf8(state).map_err(|_| damaged())?;
        let line = |line: &str| line.split_ascii_whitespace().map(str::parse).collect::<std::result::Result<_, _>>();
        let hard_negatives: Vec<Vec<u32>> =
            text.lines().map(line).collect::<std::result::Result<_, _>>().map_err(|_| damaged())?;
        let n_names = self.names.input_ids.len() as u32;
        if hard_negatives.len() != self.hard_negatives.len()
            || hard_negatives.iter().flatten().any(|name| *name >= n_names)
        {
            return Err(damaged());
        }
        self.hard_negatives = hard_negatives;
        Ok(())
    }
}

/// First and last wordpiece of every mention that lies within a window.
fn spans_of(text: &TrainingText) -> impl Iterator<Item = (usize, usize)> {
    text.mentions.iter().map(|target| (target.first, target.last)).chain(text.elsewhere.iter().copied())
}

/// Hash of the name encoder's weights.
fn of_names(parameters: &Parameters) -> u64 {
    let mut hash = Xxh3::new();
    let values = parameters.iter().filter(|(name, _)| name.starts_with(NAME)).flat_map(|(_, value)| &value.values);
    values.for_each(|value| hash.update(&value.to_le_bytes()));
    hash.digest()
}

/// Embeddings of the mentions of all windows, in order.
pub fn vectors(encoder: &DualEncoder, texts: &[TrainingText]) -> Result<Matrix> {
    let windows: Vec<&[u32]> = texts.iter().map(|text| text.rows.as_slice()).collect();
    let mentions = texts
        .iter()
        .enumerate()
        .flat_map(|(window, text)| text.mentions.iter().map(move |target| (window, target.first, target.last)));
    encoder.encode_mentions(&windows, &mentions.collect::<Vec<_>>())
}

impl LinkingBatch {
    /// Rows of the wordpieces of each window among the span scores, without `[CLS]` and `[SEP]`.
    fn rows_of_windows(&self) -> Vec<Range<usize>> {
        let mut at = 0;
        let mut rows = Vec::with_capacity(self.windows.len());
        for part in &self.parts {
            let Part::Windows(windows, _) = part else { break };
            rows.extend(windows.segments().iter().map(|window| at + window.start + 1..at + window.end - 1));
            at += windows.segments().n_rows();
        }
        rows
    }
}

/// Cross entropy of the correct candidate of each mention.
fn linking_loss(batch: &LinkingBatch, scale: f32, values: &Values, losses: &mut Losses) {
    let (mentions, names) = (values.get(MENTIONS), values.get(NAMES));
    let mean = 1.0 / batch.asked.len().max(1) as f32;
    let mut sum = 0.0;
    let mut of_names = Matrix::zeros(names.n_rows, names.n_cols);
    let of_mentions = losses.gradient_of(MENTIONS, values);
    for (mention, candidates) in batch.asked.iter().filter(|(_, candidates)| !candidates.is_empty()) {
        let score = |name: &usize| scale * dot(mentions.row(*mention), names.row(*name));
        let mut gradients: Vec<f32> = candidates.iter().map(score).collect();
        softmax(&mut gradients);
        sum -= f64::from(gradients[0].max(f32::MIN_POSITIVE)).ln();
        gradients[0] -= 1.0;
        for (name, slope) in candidates.iter().zip(gradients) {
            let slope = slope * mean * scale;
            let add = |(to, from): (&mut f32, &f32)| *to += slope * from;
            of_mentions.row_mut(*mention).iter_mut().zip(names.row(*name)).for_each(add);
            of_names.row_mut(*name).iter_mut().zip(mentions.row(*mention)).for_each(add);
        }
    }
    *losses.gradient_of(NAMES, values) = of_names;
    losses.add("linking", sum * f64::from(mean));
}

#[cfg(test)]
mod tests;
