//! Inference of the multi-task tagger: labels of words, mentions, and distributions over concepts.

use std::collections::BTreeMap;
use std::sync::Arc;

use canonym_core::Result;
use rayon::prelude::*;

use super::decode::{WordSpan, bilou, runs, tag_of, type_tag};
use super::tokenized::{Splitter, TokenizedText};
use super::{CONCEPTS, ENCODER, Framing, LinkedSpans, MultitaskConfig, PackedWindows, Task};
use crate::autograd::{Packs, Tape, Var, softmax};
use crate::layers::crf::Crf;
use crate::layers::crf::bilou::{BEGIN, INSIDE, LAST, N_LABELS, UNIT};
use crate::models::bert::infer::BertEncoder;
use crate::tensor::matrix::{Matrix, Threads, View, WriteMode, multiply};
use crate::tensor::parameters::Parameters;

/// Rows that are compared with all concepts at once, which bounds memory.
const ROWS: usize = 256;

/// Wordpieces that are encoded at once.
const PIECES: usize = 1 << 14;

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

/// A mention with its probability.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FoundSpan {
    /// Its words; the class is the type from 1, or 0 for the mention task.
    pub span: WordSpan,
    /// Probability that this is a mention: the mean over its words of the probability of the label that they have in this mention. In a
    /// model that does not detect mentions, 1.
    pub p_mention: f32,
}

/// A mention with a distribution over concepts.
#[derive(Debug, Clone, PartialEq)]
pub struct LinkedSpan {
    /// First word.
    pub first: usize,
    /// Last word.
    pub last: usize,
    /// Probability that this is a mention, as in [`FoundSpan`]; per token, the mean over its words of the probability of any concept.
    pub p_mention: f32,
    /// The best classes from 1, best first, each with its probability given a mention.
    pub classes: Vec<(usize, f32)>,
}

/// The best classes of a row, and the probability of Nil.
#[derive(Debug, Clone, Default)]
struct Distribution {
    nil: f32,
    best: Vec<(usize, f32)>,
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
        let mut all = Vec::with_capacity(texts.len());
        let mut start = 0;
        while start < texts.len() {
            let mut n_wordpieces = 0;
            let fits = |text: &&TokenizedText| {
                n_wordpieces += text.windows.iter().map(|window| window.context.len() + 2).sum::<usize>();
                n_wordpieces <= PIECES
            };
            let end = start + texts[start..].iter().take_while(fits).count().max(1);
            all.extend(self.label_some(&texts[start..end], given.map(|given| &given[start..end]))?);
            start = end;
        }
        Ok(all)
    }

    fn label_some(&self, texts: &[TokenizedText], given: Option<&[Vec<(usize, usize)>]>) -> Result<Vec<Labelled>> {
        let each =
            |text: &TokenizedText| self.splitter.pack(text.windows.iter().map(|window| (text, window, [].as_slice())));
        let packed: Vec<PackedWindows> = texts.par_iter().map(each).collect();
        let mut together = crate::models::bert::Sequences::default();
        packed.iter().for_each(|windows| together.append(&windows.sequences));
        if together.is_empty() {
            return Ok(vec![Labelled::default(); texts.len()]);
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
        (0..texts.len())
            .into_par_iter()
            .map(|at| {
                let targets = packed[at].targets.iter().flat_map(|row| rows.row(firsts[at] + *row as usize));
                let targets: Vec<f32> = targets.copied().collect();
                let encoded = Matrix::new(packed[at].targets.len(), rows.n_cols, targets);
                self.label_one(&texts[at], &packed[at], encoded, given.map(|given| given[at].as_slice()))
            })
            .collect()
    }

    fn label_one(
        &self,
        text: &TokenizedText,
        windows: &PackedWindows,
        encoded: Matrix,
        given: Option<&[(usize, usize)]>,
    ) -> Result<Labelled> {
        if text.words.is_empty() {
            return Ok(Labelled::default());
        }
        let config = &self.config;
        let mut tape = Tape::of_one_thread(&self.heads, &self.packs).without_gradients();
        let encoded = tape.input(encoded);
        let rows = config.task_rows(&mut tape, encoded, &windows.segments, &config.tasks, None)?;
        let mut labelled = Labelled::default();
        let mut p_mentions = Matrix::default();
        let n_words = text.words_of_sentences();
        if let Some(rows) = rows.get(&Task::Mentions) {
            let scores = self.scores(&mut tape, Task::Mentions, *rows, windows)?;
            let labels = self.labels(Task::Mentions, &scores, &n_words)?;
            p_mentions = self.probabilities(Task::Mentions, scores, &n_words)?;
            let tags: Vec<(usize, usize)> = labels.iter().map(|label| (*label, 0)).collect();
            labelled.mention_spans = found(bilou(&tags, config.lenient), &p_mentions);
            labelled.labels.insert(Task::Mentions, labels);
        }
        let spans: Vec<(usize, usize)> = match given {
            Some(given) => given.to_vec(),
            None => labelled.mention_spans.iter().map(|found| (found.span.first, found.span.last)).collect(),
        };
        if let Some(rows) = rows.get(&Task::Types) {
            labelled.type_spans = match config.framing {
                Framing::Entity => found(self.types_of_spans(&mut tape, *rows, text, &spans)?, &p_mentions),
                Framing::Token => {
                    let scores = self.scores(&mut tape, Task::Types, *rows, windows)?;
                    let labels = self.labels(Task::Types, &scores, &n_words)?;
                    let probabilities = self.probabilities(Task::Types, scores, &n_words)?;
                    let spans = typed_spans(config, &labels, &probabilities);
                    labelled.labels.insert(Task::Types, labels);
                    spans
                }
            };
        }
        if let Some(rows) = rows.get(&Task::Concepts) {
            labelled.concept_spans = match config.framing {
                Framing::Entity => self.concepts_of_spans(&mut tape, *rows, text, (&spans, &p_mentions))?,
                Framing::Token => {
                    let units = config.units(&mut tape, *rows, windows, Task::Concepts);
                    let inputs = config.head(&mut tape, Task::Concepts, units, None)?;
                    let words = self.distributions(tape.value(inputs))?;
                    let labels: Vec<usize> = words.iter().map(Distribution::label).collect();
                    let by_mentions = config.linked_spans == LinkedSpans::Mentions;
                    let known = (given.is_some() || by_mentions).then_some(spans.as_slice());
                    let mut linked = self.spans_of_words(&words, &labels, known);
                    if given.is_none() && by_mentions {
                        linked.iter_mut().zip(&labelled.mention_spans).for_each(|(span, found)| span.within(found));
                    }
                    labelled.labels.insert(Task::Concepts, labels);
                    linked
                }
            };
        }
        Ok(labelled)
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

    /// The mean of the rows of each span.
    fn pooled(&self, rows: &Matrix, text: &TokenizedText, spans: &[(usize, usize)]) -> Matrix {
        let mut pooled = Matrix::zeros(spans.len(), rows.n_cols);
        // Targets of windows follow each other; only wordpieces beyond the length of a window are left out.
        let mut row_of = BTreeMap::new();
        let mut next = 0;
        for window in &text.windows {
            for piece in window.target.clone() {
                row_of.insert(piece, next);
                next += 1;
            }
        }
        for (at, (first, last)) in spans.iter().enumerate() {
            let wordpieces = text.words[*first].start..text.words[*last].end;
            let known: Vec<usize> = wordpieces.filter_map(|piece| row_of.get(&piece).copied()).collect();
            let share = 1.0 / known.len().max(1) as f32;
            for row in known {
                pooled.row_mut(at).iter_mut().zip(rows.row(row)).for_each(|(to, value)| *to += share * value);
            }
        }
        pooled
    }

    fn types_of_spans(
        &self,
        tape: &mut Tape<'_>,
        rows: Var,
        text: &TokenizedText,
        spans: &[(usize, usize)],
    ) -> Result<Vec<WordSpan>> {
        let pooled = self.pooled(tape.value(rows), text, spans);
        let pooled = tape.input(pooled);
        let scores = self.config.head(tape, Task::Types, pooled, None)?;
        let scores = tape.value(scores);
        let class = |row: usize| 1 + argmax(&scores.row(row)[1..]);
        let span =
            |(row, (first, last)): (usize, &(usize, usize))| WordSpan { first: *first, last: *last, class: class(row) };
        Ok(spans.iter().enumerate().map(span).collect())
    }

    fn concepts_of_spans(
        &self,
        tape: &mut Tape<'_>,
        rows: Var,
        text: &TokenizedText,
        (spans, p_mentions): (&[(usize, usize)], &Matrix),
    ) -> Result<Vec<LinkedSpan>> {
        let pooled = self.pooled(tape.value(rows), text, spans);
        let pooled = tape.input(pooled);
        let inputs = self.config.head(tape, Task::Concepts, pooled, None)?;
        let distributions = self.distributions(tape.value(inputs))?;
        let link = |((first, last), distribution): (&(usize, usize), Distribution)| LinkedSpan {
            first: *first,
            last: *last,
            p_mention: probability_of_span(p_mentions, *first, *last),
            classes: distribution.best,
        };
        Ok(spans.iter().zip(distributions).map(link).collect())
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

    /// Mentions of words with the same best class, or the given ones; probabilities are means over their words.
    fn spans_of_words(
        &self,
        words: &[Distribution],
        labels: &[usize],
        given: Option<&[(usize, usize)]>,
    ) -> Vec<LinkedSpan> {
        let spans: Vec<(usize, usize)> = match given {
            Some(given) => given.to_vec(),
            None => runs(labels).into_iter().map(|run| (run.first, run.last)).collect(),
        };
        let link = |(first, last): (usize, usize)| {
            let inside = &words[first..=last];
            let n_words = inside.len() as f32;
            let p_mention = 1.0 - inside.iter().map(|word| word.nil).sum::<f32>() / n_words;
            let mut sums: BTreeMap<usize, f32> = BTreeMap::new();
            for (class, probability) in inside.iter().flat_map(|word| &word.best) {
                *sums.entry(*class).or_default() += probability / n_words;
            }
            let given_mention = |(class, sum): (usize, f32)| (class, (sum / p_mention.max(1e-6)).min(1.0));
            let mut classes: Vec<(usize, f32)> = sums.into_iter().map(given_mention).collect();
            classes.sort_by(|left, right| right.1.total_cmp(&left.1).then(left.0.cmp(&right.0)));
            classes.truncate(self.n_kept);
            LinkedSpan { first, last, p_mention, classes }
        };
        spans.into_iter().map(link).collect()
    }
}

impl LinkedSpan {
    /// Takes the probability of the mention from the mention task; those of the classes then allow for Nil.
    fn within(&mut self, found: &FoundSpan) {
        let p_any = self.p_mention;
        self.classes.iter_mut().for_each(|(_, probability)| *probability *= p_any);
        self.p_mention = found.p_mention;
    }
}

fn argmax(scores: &[f32]) -> usize {
    let best = scores
        .iter()
        .enumerate()
        .fold((0, f32::NEG_INFINITY), |best, (at, score)| if *score > best.1 { (at, *score) } else { best });
    best.0
}

impl Distribution {
    /// The best class; 0 for Nil.
    fn label(&self) -> usize {
        match self.best.first() {
            Some((class, probability)) if *probability > self.nil => *class,
            _ => 0,
        }
    }
}

/// Mean over the words of a mention of the probability of the BILOU label that they have in it; 1 without probabilities.
fn probability_of_span(p_labels: &Matrix, first: usize, last: usize) -> f32 {
    if p_labels.n_rows == 0 {
        return 1.0;
    }
    let label = |word: usize| match (word == first, word == last) {
        (true, true) => UNIT,
        (true, false) => BEGIN,
        (false, true) => LAST,
        (false, false) => INSIDE,
    };
    (first..=last).map(|word| p_labels.row(word)[label(word)]).sum::<f32>() / (last + 1 - first) as f32
}

/// Mentions with probabilities by those of BILOU labels.
fn found(spans: Vec<WordSpan>, p_labels: &Matrix) -> Vec<FoundSpan> {
    let one = |span: WordSpan| FoundSpan { span, p_mention: probability_of_span(p_labels, span.first, span.last) };
    spans.into_iter().map(one).collect()
}

/// Mentions of type labels of words, with probabilities.
fn typed_spans(config: &MultitaskConfig, labels: &[usize], p_labels: &Matrix) -> Vec<FoundSpan> {
    if config.has_type_tags() {
        let tags: Vec<(usize, usize)> = labels.iter().copied().map(type_tag).collect();
        // Of each BILOU label, whatever the type.
        let mut of_any = Matrix::zeros(p_labels.n_rows, N_LABELS);
        for row in 0..p_labels.n_rows {
            for class in 1..=config.types.len() {
                (1..N_LABELS).for_each(|label| of_any.row_mut(row)[label] += p_labels.row(row)[tag_of(label, class)]);
            }
        }
        return found(bilou(&tags, config.lenient), &of_any);
    }
    let p_nil = |span: &WordSpan| (span.first..=span.last).map(|word| p_labels.row(word)[0]).sum::<f32>();
    let one = |span: WordSpan| FoundSpan { span, p_mention: 1.0 - p_nil(&span) / (span.last + 1 - span.first) as f32 };
    runs(labels).into_iter().map(one).collect()
}

#[cfg(test)]
mod tests;
