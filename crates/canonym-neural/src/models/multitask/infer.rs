//! Inference of the multi-task tagger: labels of words, mentions, and distributions over concepts.

mod parts;
mod spans;

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use canonym_core::Result;
use rayon::prelude::*;

use self::parts::{LabelledParts, Part};
use self::spans::Distribution;
pub use self::spans::{FoundSpan, LinkedSpan};
use super::tokenized::{Splitter, TokenizedText, Window};
use super::{CONCEPTS, ENCODER, Framing, MultitaskConfig, PackedWindows, Task};
use crate::autograd::{Packs, Tape, Var, softmax};
use crate::layers::crf::Crf;
use crate::models::bert::Sequences;
use crate::models::bert::infer::BertEncoder;
use crate::tensor::matrix::{Matrix, Threads, View, WriteMode, multiply};
use crate::tensor::parameters::Parameters;

/// Rows that are compared with all concepts at once, which bounds memory.
const ROWS: usize = 256;

/// Wordpieces that are encoded at once.
const PIECES: usize = 1 << 14;

/// Wordpieces of a document that are labelled at once, which bounds memory: all activations of its task encoders are kept.
const PART: usize = 1 << 12;

/// Number of top classes kept per distribution, unless more are asked for.
const N_KEPT: usize = 16;

/// The model for inference.
#[derive(Debug)]
pub struct MultitaskTagger {
    /// Model configuration.
    pub config: MultitaskConfig,
    encoder: BertEncoder,
    /// The weights of task encoders and heads.
    heads: Parameters,
    packs: Arc<Packs>,
    splitter: Splitter,
    /// Number of top classes kept per distribution.
    n_kept: usize,
}

/// Model output for a text.
#[derive(Debug, Clone, Default)]
pub struct Labelled {
    /// The best label of each word, for each task that labels words.
    pub labels: BTreeMap<Task, Vec<usize>>,
    /// Mentions by the mention task.
    pub mention_spans: Vec<FoundSpan>,
    /// Mentions by the type task.
    pub type_spans: Vec<FoundSpan>,
    /// Mentions by the concept task, with the probabilities of the best concepts.
    pub concept_spans: Vec<LinkedSpan>,
}

impl MultitaskTagger {
    /// Builds the model from its weights, for `n_concepts` classes besides Nil.
    ///
    /// # Errors
    /// If weights are missing or do not fit the configuration.
    pub fn new(
        config: &MultitaskConfig,
        parameters: &Parameters,
        n_concepts: usize,
        splitter: Splitter,
    ) -> Result<MultitaskTagger> {
        config.check(parameters, n_concepts)?;
        let mut heads = Parameters::default();
        for (name, value) in parameters.iter().filter(|(name, _)| !name.starts_with(ENCODER)) {
            heads.add(name, value.clone());
        }
        Ok(MultitaskTagger {
            config: config.clone(),
            encoder: BertEncoder::new(&config.bert, parameters, ENCODER)?,
            packs: Arc::new(Packs::new(heads.len())),
            heads,
            splitter,
            n_kept: N_KEPT,
        })
    }

    /// Keeps at least `n` concepts of each mention.
    #[must_use]
    pub fn keeping(self, n: usize) -> MultitaskTagger {
        MultitaskTagger { n_kept: self.n_kept.max(n), ..self }
    }

    /// Splits texts into words and windows.
    pub fn splitter(&self) -> &Splitter {
        &self.splitter
    }

    /// Labels texts. In place of the mentions that the model finds, types and concepts are assigned to `given` pairs of first and last
    /// word, if there are any.
    ///
    /// # Errors
    /// If a weight is missing.
    pub fn label(&self, texts: &[TokenizedText], given: Option<&[Vec<(usize, usize)>]>) -> Result<Vec<Labelled>> {
        self.label_in_parts(texts, given, PART)
    }

    /// Labels texts in parts of at most `max_wordpieces` wordpieces, unless a window has more.
    fn label_in_parts(
        &self,
        texts: &[TokenizedText],
        given: Option<&[Vec<(usize, usize)>]>,
        max_wordpieces: usize,
    ) -> Result<Vec<Labelled>> {
        let given = |at: usize| given.map(|given| given[at].as_slice());
        let mut documents: Vec<LabelledParts<'_>> =
            texts.iter().enumerate().map(|(at, text)| LabelledParts::new(&self.config, text, given(at))).collect();
        let parts_of =
            |(at, text): (usize, &TokenizedText)| text.parts(max_wordpieces).into_iter().map(move |part| (at, part));
        let parts: Vec<(usize, Range<usize>)> = texts.iter().enumerate().flat_map(parts_of).collect();
        let mut start = 0;
        while start < parts.len() {
            let (mut n_wordpieces, mut last) = (0, None);
            // At most one part of a document, because its parts are labelled in order.
            let fits = |(at, part): &&(usize, Range<usize>)| {
                n_wordpieces += texts[*at].windows[part.clone()].iter().map(Window::n_wordpieces).sum::<usize>();
                last.replace(*at) != Some(*at) && n_wordpieces <= PIECES
            };
            let end = start + parts[start..].iter().take_while(fits).count().max(1);
            let parts = &parts[start..end];
            // Each text has a part.
            self.label_parts(&mut documents[parts[0].0..][..parts.len()], parts)?;
            start = end;
        }
        Ok(documents.into_par_iter().map(|document| document.finish(self.n_kept)).collect())
    }

    /// Labels a part of each document.
    fn label_parts(&self, documents: &mut [LabelledParts<'_>], parts: &[(usize, Range<usize>)]) -> Result<()> {
        let pack = |(document, (_, part)): (&LabelledParts<'_>, &(usize, Range<usize>))| {
            let text = document.text;
            self.splitter.pack(text.windows[part.clone()].iter().map(|window| (text, window, [].as_slice())))
        };
        let packed: Vec<PackedWindows> = documents.par_iter().zip(parts).map(pack).collect();
        let mut together = Sequences::default();
        packed.iter().for_each(|windows| together.append(&windows.sequences));
        if together.is_empty() {
            return Ok(());
        }
        let rows = self.encoder.encode(&together)?;
        let mut first = 0;
        let firsts: Vec<usize> = packed
            .iter()
            .map(|windows| {
                let at = first;
                first += windows.sequences.segments().n_rows();
                at
            })
            .collect();
        let each = documents.par_iter_mut().zip(parts).zip(packed.par_iter().zip(firsts));
        each.try_for_each(|((document, (_, part)), (windows, first))| {
            let targets = windows.targets.iter().flat_map(|row| rows.row(first + *row as usize));
            let targets: Vec<f32> = targets.copied().collect();
            let encoded = Matrix::new(windows.targets.len(), rows.n_cols, targets);
            self.label_part(document, part.clone(), windows, encoded)
        })
    }

    fn label_part(
        &self,
        document: &mut LabelledParts<'_>,
        part: Range<usize>,
        windows: &PackedWindows,
        encoded: Matrix,
    ) -> Result<()> {
        let part = Part::new(document.text, part);
        if part.words.is_empty() {
            return Ok(());
        }
        let config = &self.config;
        let mut tape = Tape::of_one_thread(&self.heads, &self.packs).without_gradients();
        let encoded = tape.input(encoded);
        let rows = config.task_rows(&mut tape, encoded, &windows.segments, &config.tasks, None)?;
        if let Some(rows) = rows.get(&Task::Mentions) {
            let scores = self.scores(&mut tape, Task::Mentions, *rows, windows)?;
            let labels = self.labels(Task::Mentions, &scores, &part.n_words)?;
            document.add_mentions(labels, self.probabilities(Task::Mentions, scores, &part.n_words)?);
        }
        if config.framing == Framing::Token {
            if let Some(rows) = rows.get(&Task::Types) {
                let scores = self.scores(&mut tape, Task::Types, *rows, windows)?;
                let labels = self.labels(Task::Types, &scores, &part.n_words)?;
                document.add_types(labels, &self.probabilities(Task::Types, scores, &part.n_words)?);
            }
            if let Some(rows) = rows.get(&Task::Concepts) {
                let units = config.units(&mut tape, *rows, windows, Task::Concepts);
                let inputs = config.head(&mut tape, Task::Concepts, units, None)?;
                document.add_concepts(self.distributions(tape.value(inputs))?);
            }
            return Ok(());
        }
        let ended = document.ended_spans(&part);
        for (task, rows) in rows.iter().filter(|(task, _)| **task != Task::Mentions) {
            let pooled = document.pooled(*task, tape.value(*rows), &part, &ended);
            if ended.is_empty() {
                continue;
            }
            let pooled = tape.input(pooled);
            let outputs = config.head(&mut tape, *task, pooled, None)?;
            let outputs = tape.value(outputs);
            if *task == Task::Types {
                document.set_types(&ended, (0..outputs.n_rows).map(|row| 1 + argmax(&outputs.row(row)[1..])));
            } else {
                document.set_concepts(&ended, self.distributions(outputs)?);
            }
        }
        Ok(())
    }

    /// Label scores of words, `[words, labels]`.
    fn scores(&self, tape: &mut Tape<'_>, task: Task, rows: Var, windows: &PackedWindows) -> Result<Matrix> {
        let units = self.config.units(tape, rows, windows, task);
        let scores = self.config.head(tape, task, units, None)?;
        Ok(tape.value(scores).clone())
    }

    /// Label probabilities of words from their scores: marginals of the CRF over the words of each sentence, or a softmax.
    fn probabilities(&self, task: Task, mut scores: Matrix, n_words: &[usize]) -> Result<Matrix> {
        let n_labels = scores.n_cols;
        if !self.config.has_crf(task) {
            scores.values.chunks_exact_mut(n_labels).for_each(softmax);
            return Ok(scores);
        }
        let crf = Crf::new(self.transitions(task)?);
        let mut first = 0;
        for n in n_words {
            let of_sentence = &mut scores.values[first..first + n * n_labels];
            let marginals = crf.marginals(of_sentence);
            of_sentence.copy_from_slice(&marginals);
            first += n * n_labels;
        }
        Ok(scores)
    }

    fn transitions(&self, task: Task) -> Result<&Matrix> {
        self.heads.get(&format!("{}.transitions", task.name()))
    }

    /// The best labels of words, sentence by sentence for a CRF.
    fn labels(&self, task: Task, scores: &Matrix, n_words: &[usize]) -> Result<Vec<usize>> {
        if !self.config.has_crf(task) {
            return Ok((0..scores.n_rows).map(|row| argmax(scores.row(row))).collect());
        }
        let crf = Crf::new(self.transitions(task)?);
        let mut labels = Vec::with_capacity(scores.n_rows);
        for n in n_words {
            let first = labels.len() * scores.n_cols;
            labels.extend(crf.best(&scores.values[first..first + n * scores.n_cols]));
        }
        Ok(labels)
    }

    /// Softmax over all classes for each row; without Nil per entity.
    fn distributions(&self, inputs: &Matrix) -> Result<Vec<Distribution>> {
        let table = self.heads.get(CONCEPTS)?;
        let mut all = Vec::with_capacity(inputs.n_rows);
        for chunk in inputs.values.chunks(ROWS * inputs.n_cols) {
            let n_rows = chunk.len() / inputs.n_cols;
            let mut scores = Matrix::zeros(n_rows, table.n_rows);
            let rows = View::of(chunk, n_rows, inputs.n_cols);
            multiply(scores.view_mut(), rows, table.view().transposed(), WriteMode::Replace, Threads::One);
            for scores in scores.values.chunks_exact_mut(table.n_rows) {
                if self.config.framing == Framing::Entity {
                    scores[0] = f32::NEG_INFINITY;
                }
                softmax(scores);
                let mut best: Vec<(usize, f32)> = scores.iter().copied().enumerate().skip(1).collect();
                let order =
                    |left: &(usize, f32), right: &(usize, f32)| right.1.total_cmp(&left.1).then(left.0.cmp(&right.0));
                if best.len() > self.n_kept {
                    best.select_nth_unstable_by(self.n_kept, order);
                    best.truncate(self.n_kept);
                }
                best.sort_unstable_by(order);
                best.shrink_to_fit();
                all.push(Distribution { nil: scores[0], best });
            }
        }
        Ok(all)
    }
}

fn argmax(scores: &[f32]) -> usize {
    let best = scores
        .iter()
        .enumerate()
        .fold((0, f32::NEG_INFINITY), |best, (at, score)| if *score > best.1 { (at, *score) } else { best });
    best.0
}

#[cfg(test)]
mod tests;
