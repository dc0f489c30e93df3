//! From labels of words to mentions.

use crate::layers::crf::bilou::{BEGIN, INSIDE, LAST, OUTSIDE, UNIT};

/// A mention as a range of words, both ends included, with the class that its labels name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct WordSpan {
    /// First word.
    pub first: usize,
    /// Last word.
    pub last: usize,
    /// Class of its words; 0 for labels without classes.
    pub class: usize,
}

/// Maximal runs of words with the same class other than Nil, which is 0.
pub fn runs(classes: &[usize]) -> Vec<WordSpan> {
    let mut found: Vec<WordSpan> = Vec::new();
    for (word, class) in classes.iter().copied().enumerate().filter(|(_, class)| *class != 0) {
        match found.last_mut().filter(|last| last.class == class && last.last + 1 == word) {
            Some(last) => last.last = word,
            None => found.push(WordSpan { first: word, last: word, class }),
        }
    }
    found
}

/// BILOU label and class of a type label: 0 is Nil, then four labels of each class.
pub fn type_tag(label: usize) -> (usize, usize) {
    if label == 0 { (OUTSIDE, 0) } else { (1 + (label - 1) % 4, 1 + (label - 1) / 4) }
}

/// The type label of a BILOU label and a class from 1.
pub fn tag_of(label: usize, class: usize) -> usize {
    if label == OUTSIDE { 0 } else { 1 + 4 * (class - 1) + label - 1 }
}

/// Mentions of BILOU labels, each with a class. Strictly, only `U` and `B I* L` of one class are mentions; if `lenient`, a mention that is
/// not closed ends where its labels end, and one that is not opened begins where they begin.
pub fn bilou(labels: &[(usize, usize)], lenient: bool) -> Vec<WordSpan> {
    let (mut decoder, mut found) = (BilouDecoder::new(lenient), Vec::new());
    labels.iter().for_each(|(label, class)| decoder.push(*label, *class, &mut found));
    decoder.finish(&mut found);
    found
}

/// Decodes labels word by word, as [`bilou`] does.
#[derive(Debug)]
pub struct BilouDecoder {
    lenient: bool,
    /// Number of words so far.
    n_words: usize,
    open: Option<WordSpan>,
}

impl BilouDecoder {
    /// A decoder before the first word.
    pub fn new(lenient: bool) -> BilouDecoder {
        BilouDecoder { lenient, n_words: 0, open: None }
    }

    /// The mention that the last word belongs to, if it may continue.
    pub fn open(&self) -> Option<WordSpan> {
        self.open
    }

    /// Decodes the next word, and adds the mentions that end with it or before it.
    pub fn push(&mut self, label: usize, class: usize, found: &mut Vec<WordSpan>) {
        let (word, lenient) = (self.n_words, self.lenient);
        self.n_words += 1;
        let continues = matches!(label, INSIDE | LAST) && self.open.is_some_and(|open| open.class == class);
        if !continues && let Some(unclosed) = self.open.take().filter(|_| lenient) {
            found.push(unclosed);
        }
        let here = WordSpan { first: word, last: word, class };
        match label {
            UNIT => found.push(here),
            BEGIN => self.open = Some(here),
            INSIDE | LAST => {
                let open = self.open.take();
                let whole = open.map(|open| WordSpan { last: word, ..open }).or_else(|| lenient.then_some(here));
                match whole {
                    Some(whole) if label == LAST => found.push(whole),
                    other => self.open = other,
                }
            }
            _ => {}
        }
    }

    /// Adds the mention that is not closed after the last word, if it is one.
    pub fn finish(&mut self, found: &mut Vec<WordSpan>) {
        found.extend(self.open.take().filter(|_| self.lenient));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(first: usize, last: usize, class: usize) -> WordSpan {
        WordSpan { first, last, class }
    }

    #[test]
    fn runs_of_one_class_are_mentions() {
        assert_eq!(runs(&[0, 3, 3, 2, 0, 2]), [span(1, 2, 3), span(3, 3, 2), span(5, 5, 2)]);
        assert_eq!(runs(&[0, 0]), []);
    }

    #[test]
    fn incomplete_sequences_are_mentions_only_if_lenient() {
        let plain = |labels: &[usize], lenient| {
            let labels: Vec<(usize, usize)> = labels.iter().map(|label| (*label, 0)).collect();
            bilou(&labels, lenient).into_iter().map(|span| (span.first, span.last)).collect::<Vec<_>>()
        };
        assert_eq!(plain(&[UNIT, OUTSIDE, BEGIN, INSIDE, LAST], false), [(0, 0), (2, 4)]);
        for (labels, repaired) in [
            ([BEGIN, INSIDE, OUTSIDE], vec![(0, 1)]),
            ([OUTSIDE, INSIDE, LAST], vec![(1, 2)]),
            ([LAST, OUTSIDE, BEGIN], vec![(0, 0), (2, 2)]),
            ([BEGIN, BEGIN, LAST], vec![(0, 0), (1, 2)]),
        ] {
            let strict = if labels == [BEGIN, BEGIN, LAST] { vec![(1, 2)] } else { Vec::new() };
            assert_eq!((plain(&labels, false), plain(&labels, true)), (strict, repaired), "{labels:?}");
        }
        // A mention has one class.
        assert_eq!(bilou(&[(BEGIN, 1), (LAST, 2)], false), []);
    }

    #[test]
    fn type_labels_are_those_of_bilou_for_each_type() {
        assert_eq!(type_tag(0), (OUTSIDE, 0));
        for class in [1, 2, 5] {
            for label in [BEGIN, INSIDE, LAST, UNIT] {
                assert_eq!(type_tag(tag_of(label, class)), (label, class));
            }
        }
    }
}
