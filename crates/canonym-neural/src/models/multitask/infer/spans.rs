//! Mentions of labelled words, with their probabilities.

use std::collections::BTreeMap;

use crate::layers::crf::bilou::{BEGIN, INSIDE, LAST, N_LABELS, UNIT};
use crate::models::multitask::MultitaskConfig;
use crate::models::multitask::decode::{WordSpan, bilou, runs, tag_of, type_tag};
use crate::tensor::matrix::Matrix;

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
pub(super) struct Distribution {
    /// Probability of Nil.
    pub nil: f32,
    /// The best classes from 1, best first, each with its probability.
    pub best: Vec<(usize, f32)>,
}

impl LinkedSpan {
    /// Takes the probability of the mention from the mention task; those of the classes then allow for Nil.
    pub(super) fn within(&mut self, found: &FoundSpan) {
        let p_any = self.p_mention;
        self.classes.iter_mut().for_each(|(_, probability)| *probability *= p_any);
        self.p_mention = found.p_mention;
    }
}

impl Distribution {
    /// The best class; 0 for Nil.
    pub fn label(&self) -> usize {
        match self.best.first() {
            Some((class, probability)) if *probability > self.nil => *class,
            _ => 0,
        }
    }
}

/// Mean over the words of a mention of the probability of the BILOU label that they have in it; 1 without probabilities.
pub(super) fn probability_of_span(p_labels: &Matrix, first: usize, last: usize) -> f32 {
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
pub(super) fn found(spans: Vec<WordSpan>, p_labels: &Matrix) -> Vec<FoundSpan> {
    let one = |span: WordSpan| FoundSpan { span, p_mention: probability_of_span(p_labels, span.first, span.last) };
    spans.into_iter().map(one).collect()
}

/// What the probabilities of [`typed_spans`] need of those of all type labels: with type tags, the sum over all types of each BILOU label,
/// `[words, 5]`, else the probability of Nil, `[words, 1]`.
pub(super) fn p_any_type(config: &MultitaskConfig, p_labels: &Matrix) -> Matrix {
    if !config.has_type_tags() {
        let p_nil = (0..p_labels.n_rows).map(|row| p_labels.row(row)[0]).collect();
        return Matrix::new(p_labels.n_rows, 1, p_nil);
    }
    let mut of_any = Matrix::zeros(p_labels.n_rows, N_LABELS);
    for row in 0..p_labels.n_rows {
        for class in 1..=config.types.len() {
            (1..N_LABELS).for_each(|label| of_any.row_mut(row)[label] += p_labels.row(row)[tag_of(label, class)]);
        }
    }
    of_any
}

/// Mentions of type labels of words, with the probabilities of [`p_any_type`].
pub(super) fn typed_spans(config: &MultitaskConfig, labels: &[usize], p_any: &Matrix) -> Vec<FoundSpan> {
    if config.has_type_tags() {
        let tags: Vec<(usize, usize)> = labels.iter().copied().map(type_tag).collect();
        return found(bilou(&tags, config.lenient), p_any);
    }
    let p_nil = |span: &WordSpan| (span.first..=span.last).map(|word| p_any.row(word)[0]).sum::<f32>();
    let one = |span: WordSpan| FoundSpan { span, p_mention: 1.0 - p_nil(&span) / (span.last + 1 - span.first) as f32 };
    runs(labels).into_iter().map(one).collect()
}

/// Mentions with the classes that are most probable over their words, at most `n_kept` of them; probabilities are means over the words.
pub(super) fn linked_spans(spans: &[(usize, usize)], words: &[Distribution], n_kept: usize) -> Vec<LinkedSpan> {
    let link = |(first, last): &(usize, usize)| {
        let inside = &words[*first..=*last];
        let n_words = inside.len() as f32;
        let p_mention = 1.0 - inside.iter().map(|word| word.nil).sum::<f32>() / n_words;
        let mut sums: BTreeMap<usize, f32> = BTreeMap::new();
        for (class, probability) in inside.iter().flat_map(|word| &word.best) {
            *sums.entry(*class).or_default() += probability / n_words;
        }
        let given_mention = |(class, sum): (usize, f32)| (class, (sum / p_mention.max(1e-6)).min(1.0));
        let mut classes: Vec<(usize, f32)> = sums.into_iter().map(given_mention).collect();
        classes.sort_by(|left, right| right.1.total_cmp(&left.1).then(left.0.cmp(&right.0)));
        classes.truncate(n_kept);
        LinkedSpan { first: *first, last: *last, p_mention, classes }
    };
    spans.iter().map(link).collect()
}
