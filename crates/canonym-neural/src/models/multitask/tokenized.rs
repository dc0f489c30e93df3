//! Documents as words, and as sentences with their context.
//!
//! Each wordpiece is the target of exactly one window, so no mention is lost at a cut: labels of words are joined to mentions over the
//! whole document.

use std::ops::Range;
use std::sync::Arc;

use canonym_core::Result;
use canonym_core::text::Span;
use canonym_core::text::sentences::sentences;

use crate::models::dual_encoder::windows::divide;
use crate::models::multitask::Windows;
use crate::tensor::segments::Segments;
use crate::tokenizer::{Token, Tokenizer};

/// A text as wordpieces, words and windows.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Reading {
    /// The wordpieces.
    pub pieces: Vec<Token>,
    /// The wordpieces of each word.
    pub words: Vec<Range<usize>>,
    /// The windows, whose targets follow each other.
    pub windows: Vec<Window>,
}

/// A sentence with its context.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Window {
    /// The words of the sentence.
    pub words: Range<usize>,
    /// The wordpieces of the sentence.
    pub target: Range<usize>,
    /// The wordpieces of the sentence and of its context.
    pub context: Range<usize>,
}

/// Splits texts into sentences with context.
#[derive(Debug, Clone)]
pub struct Splitter {
    pieces: Tokenizer,
    first: u32,
    behind: u32,
    max_pieces: usize,
}

impl Reading {
    /// The bytes of a range of words, both ends included.
    pub fn span(&self, first: usize, last: usize) -> Span {
        Span {
            start: self.pieces[self.words[first].start].start as u32,
            end: self.pieces[self.words[last].end - 1].end as u32,
        }
    }

    /// The first and last word of a span whose boundaries are word boundaries.
    pub fn words_of(&self, span: Span) -> Option<(usize, usize)> {
        let start = |word: &Range<usize>| self.pieces[word.start].start;
        let end = |word: &Range<usize>| self.pieces[word.end - 1].end;
        let first = self.words.partition_point(|word| start(word) < span.start as usize);
        let behind = self.words.partition_point(|word| end(word) <= span.end as usize);
        let is_whole = first < behind
            && start(&self.words[first]) == span.start as usize
            && end(&self.words[behind - 1]) == span.end as usize;
        is_whole.then(|| (first, behind - 1))
    }
}

impl Splitter {
    /// A splitter into windows of at most `max_pieces` wordpieces, the special tokens included.
    ///
    /// # Errors
    /// If the tokenizer has no tokens for the ends of a sequence.
    pub fn new(pieces: Tokenizer, max_pieces: usize) -> Result<Splitter> {
        let (first, behind) = pieces.ends()?;
        Ok(Splitter { pieces, first, behind, max_pieces })
    }

    /// The tokenizer.
    pub fn pieces(&self) -> &Tokenizer {
        &self.pieces
    }

    /// Splits a text. `borders` become word boundaries: the gold mentions in training, nothing otherwise.
    pub fn read(&self, text: &str, borders: &[Span]) -> Reading {
        let pieces = divide(&self.pieces, text, borders);
        let mut edges: Vec<usize> = borders.iter().flat_map(|span| [span.start as usize, span.end as usize]).collect();
        edges.sort_unstable();
        let is_inside = |letter: Option<char>| letter.is_some_and(char::is_alphanumeric);
        let mut words: Vec<Range<usize>> = Vec::new();
        for (at, piece) in pieces.iter().enumerate() {
            let joins =
                is_inside(text[..piece.start].chars().next_back()) && is_inside(text[piece.start..].chars().next());
            match words.last_mut() {
                Some(word) if joins && edges.binary_search(&piece.start).is_err() => word.end = at + 1,
                _ => words.push(at..at + 1),
            }
        }
        let windows = self.windows(text, &pieces, &words);
        Reading { pieces, words, windows }
    }

    fn windows(&self, text: &str, pieces: &[Token], words: &[Range<usize>]) -> Vec<Window> {
        let room = self.max_pieces - 2;
        let mut targets: Vec<Range<usize>> = Vec::new();
        let mut start = 0;
        for sentence in sentences(text) {
            let end = words.partition_point(|word| pieces[word.start].start < sentence.end as usize);
            while start < end {
                // A sentence that is too long is cut between words.
                let most = words[start].start + room;
                let cut = words[..end].partition_point(|word| word.end <= most).max(start + 1);
                targets.push(start..cut);
                start = cut;
            }
        }
        if start < words.len() {
            targets.push(start..words.len());
        }
        let rows = |target: &Range<usize>| words[target.start].start..words[target.end - 1].end;
        let window = |at: usize| {
            let mut target = rows(&targets[at]);
            // A word longer than a window is cut; its first wordpiece stands for it.
            target.end = target.end.min(target.start + room);
            let room = room - target.len();
            let before = at.checked_sub(1).map_or(0, |before| rows(&targets[before]).len());
            let after = targets.get(at + 1).map_or(0, |after| rows(after).len());
            // Context is cut evenly at its outer ends; what one side leaves goes to the other.
            let n_before = before.min((room / 2).max(room.saturating_sub(after)));
            let n_after = after.min(room - n_before).min(pieces.len() - target.end);
            Window {
                words: targets[at].clone(),
                context: target.start - n_before.min(target.start)..target.end + n_after,
                target,
            }
        };
        (0..targets.len()).map(window).collect()
    }

    /// Packs windows of texts; `spans` are pairs of words of each window's text.
    pub fn pack<'a>(
        &self,
        windows: impl IntoIterator<Item = (&'a Reading, &'a Window, &'a [(usize, usize)])>,
    ) -> Windows {
        let mut packed = Windows::default();
        let mut segments = Segments::default();
        let mut n_rows = 0;
        for (reading, window, spans) in windows {
            let inner: Vec<u32> = reading.pieces[window.context.clone()].iter().map(|piece| piece.row).collect();
            packed.sequences.push(&[&[&[self.first], inner.as_slice(), &[self.behind]].concat()]);
            let first = n_rows + 1 + (window.target.start - window.context.start) as u32;
            packed.targets.extend(first..first + window.target.len() as u32);
            n_rows += inner.len() as u32 + 2;
            let base = segments.n_rows() as u32;
            let row = |piece: usize| base + (piece.min(window.target.end - 1) - window.target.start) as u32;
            packed.words.extend(reading.words[window.words.clone()].iter().map(|word| row(word.start)));
            let span =
                |(first, last): &(usize, usize)| (row(reading.words[*first].start), row(reading.words[*last].end - 1));
            packed.spans.extend(spans.iter().map(span));
            segments.push(window.target.len());
        }
        packed.segments = Arc::new(segments);
        packed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn splitter(max_pieces: usize) -> Splitter {
        let vocabulary = "[UNK] [CLS] [SEP] a fever ##ish cough . , ( ) of the knee";
        let pieces = Tokenizer::of(vocabulary.split(' ').map(str::to_owned).collect()).unwrap();
        Splitter::new(pieces, max_pieces).unwrap()
    }

    #[test]
    fn words_are_cut_at_white_space_punctuation_and_gold_boundaries() {
        let text = "Feverish, a (cough).";
        let reading = splitter(32).read(text, &[]);
        let words: Vec<&str> = (0..reading.words.len()).map(|word| reading.span(word, word).of(text)).collect();
        assert_eq!(words, ["Feverish", ",", "a", "(", "cough", ")", "."]);
        assert_eq!(reading.words_of(Span::new(10, 18)), Some((2, 4)));
        assert_eq!(reading.words_of(Span::new(0, 5)), None);
        let cut = splitter(32).read(text, &[Span::new(0, 5)]);
        assert_eq!(cut.words_of(Span::new(0, 5)), Some((0, 0)));
    }

    #[test]
    fn each_piece_is_the_target_of_one_window_however_long_the_text() {
        let sentence = "A fever of the knee, a cough of the knee. ";
        let long = "fever ".repeat(200);
        for text in [sentence.repeat(6), long.clone(), format!("{sentence}{long}. {sentence}"), "x".repeat(500)] {
            for max_pieces in [16, 40, 128] {
                let reading = splitter(max_pieces).read(&text, &[]);
                let mut next = 0;
                for window in &reading.windows {
                    assert_eq!(window.words.start, next);
                    next = window.words.end;
                    assert!(window.context.len() <= max_pieces - 2 && !window.target.is_empty());
                    assert!(window.context.start <= window.target.start && window.target.end <= window.context.end);
                }
                assert_eq!(next, reading.words.len());
                let each = reading.windows.iter().map(|window| (&reading, window, [].as_slice()));
                let packed = splitter(max_pieces).pack(each);
                assert_eq!(packed.words.len(), reading.words.len());
                assert_eq!(packed.segments.n_rows(), packed.targets.len());
            }
        }
        let reading = splitter(40).read(&sentence.repeat(3), &[]);
        let middle = &reading.windows[1];
        assert_eq!((middle.target.clone(), middle.context.clone()), (12..24, 0..36));
    }
}
