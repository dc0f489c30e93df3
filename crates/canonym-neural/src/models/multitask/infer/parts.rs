//! A document that is labelled in parts: what is kept of each part, and spans that cross from one part into the next.
//!
//! Of the rows of a part, only labels, probabilities and the distributions that mentions need are kept, so memory does not grow with the
//! rows of a document. The mean of the rows of a span is accumulated over the parts that it crosses.

use std::collections::BTreeMap;
use std::ops::Range;

use super::Labelled;
use super::spans::{Distribution, LinkedSpan, found, linked_spans, p_any_type, probability_of_span, typed_spans};
use crate::layers::crf::bilou::OUTSIDE;
use crate::models::multitask::decode::{BilouDecoder, WordSpan, runs};
use crate::models::multitask::tokenized::{TokenizedText, words_of_sentences};
use crate::models::multitask::{Framing, LinkedSpans, MultitaskConfig, Task};
use crate::tensor::matrix::Matrix;

/// A part of a document: windows that follow each other.
#[derive(Debug)]
pub struct Part {
    /// Its words.
    pub words: Range<usize>,
    /// Number of words of each of its sentences.
    pub n_words: Vec<usize>,
    /// The wordpiece of each row, ascending. Wordpieces beyond the length of a window have none.
    wordpieces: Vec<usize>,
}

impl Part {
    /// The part with these windows of a text.
    pub fn new(text: &TokenizedText, windows: Range<usize>) -> Part {
        let windows = &text.windows[windows];
        let words = match windows {
            [first, .., last] => first.words.start..last.words.end,
            [window] => window.words.clone(),
            [] => 0..0,
        };
        Part {
            words,
            n_words: words_of_sentences(windows),
            wordpieces: windows.iter().flat_map(|window| window.target.clone()).collect(),
        }
    }

    /// The rows of the wordpieces of a range of words, both ends included, as far as they are in this part.
    fn rows(&self, text: &TokenizedText, first: usize, last: usize) -> Range<usize> {
        let row = |wordpiece: usize| self.wordpieces.partition_point(|other| *other < wordpiece);
        row(text.words[first].start)..row(text.words[last].end)
    }
}

/// The sum of the rows of a span.
#[derive(Debug, Clone)]
struct RowSum {
    n_rows: usize,
    sum: Vec<f32>,
}

impl RowSum {
    fn add(&mut self, rows: &Matrix, range: Range<usize>) {
        self.n_rows += range.len();
        range.for_each(|row| self.sum.iter_mut().zip(rows.row(row)).for_each(|(sum, value)| *sum += value));
    }
}

/// What is known of a document of which some parts are labelled.
#[derive(Debug)]
pub struct LabelledParts<'a> {
    /// The document.
    pub text: &'a TokenizedText,
    config: &'a MultitaskConfig,
    given: Option<&'a [(usize, usize)]>,
    /// The labels of words, for tasks that label words.
    labels: BTreeMap<Task, Vec<usize>>,
    /// Probabilities of the labels of mentions, `[words, 5]`.
    p_mentions: Matrix,
    /// Probabilities of [`p_any_type`].
    p_types: Matrix,
    /// Decodes the labels of mentions into `found`.
    decoder: BilouDecoder,
    found: Vec<WordSpan>,
    /// Number of found spans with types and concepts, per entity.
    n_classified: usize,
    /// Per entity, the types of spans.
    types: Vec<usize>,
    /// The concepts of words, or of spans per entity; those of words in no mention are empty.
    concepts: Vec<Distribution>,
    /// Of each task, the sums over the spans that continue in the next part, by first word.
    open: BTreeMap<Task, BTreeMap<usize, RowSum>>,
}

impl<'a> LabelledParts<'a> {
    /// A document of which nothing is labelled. Types and concepts are assigned to `given` spans, else to those that are found.
    pub fn new(
        config: &'a MultitaskConfig,
        text: &'a TokenizedText,
        given: Option<&'a [(usize, usize)]>,
    ) -> LabelledParts<'a> {
        LabelledParts {
            text,
            config,
            given,
            labels: BTreeMap::new(),
            p_mentions: Matrix::default(),
            p_types: Matrix::default(),
            decoder: BilouDecoder::new(config.lenient),
            found: Vec::new(),
            n_classified: 0,
            types: Vec::new(),
            concepts: Vec::new(),
            open: BTreeMap::new(),
        }
    }

    /// Adds the labels of mentions of the words of a part, with their probabilities.
    pub fn add_mentions(&mut self, labels: Vec<usize>, probabilities: Matrix) {
        for label in &labels {
            self.decoder.push(*label, 0, &mut self.found);
        }
        append(&mut self.p_mentions, probabilities);
        let labels_so_far = self.labels.entry(Task::Mentions).or_default();
        labels_so_far.extend(labels);
        if labels_so_far.len() == self.text.words.len() {
            self.decoder.finish(&mut self.found);
        }
    }

    /// Adds the type labels of the words of a part, with their probabilities.
    pub fn add_types(&mut self, labels: Vec<usize>, probabilities: &Matrix) {
        append(&mut self.p_types, p_any_type(self.config, probabilities));
        self.labels.entry(Task::Types).or_default().extend(labels);
    }

    /// Adds the concepts of the words of a part.
    pub fn add_concepts(&mut self, mut words: Vec<Distribution>) {
        let start = self.concepts.len();
        let labels = words.iter().map(Distribution::label);
        self.labels.entry(Task::Concepts).or_default().extend(labels);
        let is_in_mention = self.in_mentions(start..start + words.len());
        for (word, _) in words.iter_mut().zip(is_in_mention).filter(|(_, is_in_mention)| !is_in_mention) {
            word.best = Vec::new();
        }
        self.concepts.append(&mut words);
    }

    /// Whether each of these words may be in a mention that is linked.
    fn in_mentions(&self, words: Range<usize>) -> Vec<bool> {
        let Some(given) = self.given else {
            let task = if self.links_mentions() { Task::Mentions } else { Task::Concepts };
            // Outside of mentions, or Nil.
            return self.labels[&task][words].iter().map(|label| *label != OUTSIDE).collect();
        };
        let mut is_inside = vec![false; words.len()];
        for (first, last) in given {
            let range = (*first).max(words.start)..(last + 1).min(words.end);
            range.for_each(|word| is_inside[word - words.start] = true);
        }
        is_inside
    }

    /// Whether words are linked in the spans of the mention task.
    fn links_mentions(&self) -> bool {
        self.config.linked_spans == LinkedSpans::Mentions
    }

    /// Per entity, the spans that end in a part, as numbers among all spans.
    pub fn ended_spans(&mut self, part: &Part) -> Vec<usize> {
        let Some(given) = self.given else {
            let ended = (self.n_classified..self.found.len()).collect();
            self.n_classified = self.found.len();
            return ended;
        };
        (0..given.len()).filter(|span| part.words.contains(&given[*span].1)).collect()
    }

    fn span(&self, at: usize) -> (usize, usize) {
        self.given.map_or_else(|| (self.found[at].first, self.found[at].last), |given| given[at])
    }

    /// First words of the spans that continue after a part.
    fn open_spans(&self, part: &Part) -> Vec<usize> {
        let Some(given) = self.given else { return self.decoder.open().into_iter().map(|span| span.first).collect() };
        let continues = |(first, last): &&(usize, usize)| *first < part.words.end && *last >= part.words.end;
        given.iter().filter(continues).map(|(first, _)| *first).collect()
    }

    /// The mean over each of the spans that end in a part of its rows of a task, `[spans, inputs]`.
    pub fn pooled(&mut self, task: Task, rows: &Matrix, part: &Part, ended: &[usize]) -> Matrix {
        let open = self.open.remove(&task).unwrap_or_default();
        let sum = |first: usize, last: usize| {
            let mut sum = open.get(&first).cloned().unwrap_or(RowSum { n_rows: 0, sum: vec![0.0; rows.n_cols] });
            sum.add(rows, part.rows(self.text, first, last));
            sum
        };
        let mut pooled = Matrix::zeros(ended.len(), rows.n_cols);
        for (row, at) in ended.iter().enumerate() {
            let (first, last) = self.span(*at);
            let RowSum { n_rows, sum } = sum(first, last);
            let share = 1.0 / n_rows.max(1) as f32;
            pooled.row_mut(row).iter_mut().zip(sum).for_each(|(mean, sum)| *mean = share * sum);
        }
        let last = part.words.end - 1;
        let continued = self.open_spans(part).into_iter().map(|first| (first, sum(first, last))).collect();
        self.open.insert(task, continued);
        pooled
    }

    /// Sets the types of spans.
    pub fn set_types(&mut self, spans: &[usize], types: impl Iterator<Item = usize>) {
        set_each(&mut self.types, spans, types);
    }

    /// Sets the concepts of spans.
    pub fn set_concepts(&mut self, spans: &[usize], concepts: Vec<Distribution>) {
        set_each(&mut self.concepts, spans, concepts.into_iter());
    }

    /// The output for the whole document, with at most `n_kept` concepts of each mention.
    pub fn finish(self, n_kept: usize) -> Labelled {
        if self.text.words.is_empty() {
            return Labelled::default();
        }
        let (links_mentions, config) = (self.links_mentions(), self.config);
        let mention_spans = found(self.found, &self.p_mentions);
        let spans: Vec<(usize, usize)> = match self.given {
            Some(given) => given.to_vec(),
            None => mention_spans.iter().map(|found| (found.span.first, found.span.last)).collect(),
        };
        let (type_spans, concept_spans) = match config.framing {
            Framing::Entity => {
                let typed =
                    |((first, last), class): (&(usize, usize), usize)| WordSpan { first: *first, last: *last, class };
                let typed = spans.iter().zip(self.types).map(typed).collect();
                let linked = |((first, last), concepts): (&(usize, usize), Distribution)| LinkedSpan {
                    first: *first,
                    last: *last,
                    p_mention: probability_of_span(&self.p_mentions, *first, *last),
                    classes: concepts.best,
                };
                (found(typed, &self.p_mentions), spans.iter().zip(self.concepts).map(linked).collect())
            }
            Framing::Token => {
                let labels = |task| self.labels.get(&task).map_or(&[][..], Vec::as_slice);
                let typed = typed_spans(config, labels(Task::Types), &self.p_types);
                let known = self.given.is_some() || links_mentions;
                let runs = || runs(labels(Task::Concepts)).into_iter().map(|run| (run.first, run.last)).collect();
                let spans = if known { spans } else { runs() };
                let mut linked = match config.has(Task::Concepts) {
                    true => linked_spans(&spans, &self.concepts, n_kept),
                    false => Vec::new(),
                };
                if self.given.is_none() && links_mentions {
                    linked.iter_mut().zip(&mention_spans).for_each(|(span, found)| span.within(found));
                }
                (typed, linked)
            }
        };
        Labelled { labels: self.labels, mention_spans, type_spans, concept_spans }
    }
}

/// Sets the entries with these numbers.
fn set_each<T: Clone + Default>(all: &mut Vec<T>, numbers: &[usize], values: impl Iterator<Item = T>) {
    let n = numbers.iter().max().map_or(0, |last| last + 1);
    all.resize(all.len().max(n), T::default());
    numbers.iter().zip(values).for_each(|(at, value)| all[*at] = value);
}

/// Appends rows.
fn append(all: &mut Matrix, more: Matrix) {
    all.n_cols = more.n_cols;
    all.n_rows += more.n_rows;
    all.values.extend(more.values);
}
