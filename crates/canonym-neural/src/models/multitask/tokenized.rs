//! Documents as words, and as sentences with their context.
//!
//! Words are those of the basic tokenizer of BERT: runs of letters and digits, each other character, and each Chinese character.
//! Each wordpiece is the target of exactly one window, so no mention is lost at a cut: labels of words are joined to mentions over the
//! whole document.

use std::ops::Range;
use std::sync::Arc;

use canonym_core::Result;
use canonym_core::text::Span;
use canonym_core::text::analysis::Analysis;

use super::PackedWindows;
use crate::models::dual_encoder::windows::divide;
use crate::tensor::segments::Segments;
use crate::tokenizer::{Token, Tokenizer};

/// A text as wordpieces, words and windows.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TokenizedText {
    /// The wordpieces.
    pub tokens: Vec<Token>,
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
    /// Whether the window continues the sentence of the window before, which is longer than a window.
    pub continues: bool,
}

/// Splits texts into sentences with context.
#[derive(Debug, Clone)]
pub struct Splitter {
    tokenizer: Tokenizer,
    cls: u32,
    sep: u32,
    max_wordpieces: usize,
}

impl TokenizedText {
    /// The bytes of a range of words, both ends included.
    pub fn span(&self, first: usize, last: usize) -> Span {
        Span {
            start: self.tokens[self.words[first].start].start as u32,
            end: self.tokens[self.words[last].end - 1].end as u32,
        }
    }

    /// The first and last word of a span whose boundaries are word boundaries.
    pub fn words_of(&self, span: Span) -> Option<(usize, usize)> {
        let start = |word: &Range<usize>| self.tokens[word.start].start;
        let end = |word: &Range<usize>| self.tokens[word.end - 1].end;
        let first = self.words.partition_point(|word| start(word) < span.start as usize);
        let after = self.words.partition_point(|word| end(word) <= span.end as usize);
        let is_whole = first < after
            && start(&self.words[first]) == span.start as usize
            && end(&self.words[after - 1]) == span.end as usize;
        is_whole.then(|| (first, after - 1))
    }

    /// The first and last word that overlap a span; `None` if there are none.
    pub fn words_in(&self, span: Span) -> Option<(usize, usize)> {
        let end = |word: &Range<usize>| self.tokens[word.end - 1].end;
        let first = self.words.partition_point(|word| end(word) <= span.start as usize);
        let after = self.words.partition_point(|word| self.tokens[word.start].start < span.end as usize);
        (first < after && span.start < span.end).then(|| (first, after - 1))
    }

    /// The window with most words of a range of words, both ends included; the first one wins a tie.
    pub fn window_of(&self, first: usize, last: usize) -> Option<usize> {
        let n_inside = |window: &Window| window.words.end.min(last + 1).saturating_sub(window.words.start.max(first));
        let counts = self.windows.iter().map(n_inside).enumerate().filter(|(_, n)| *n > 0);
        counts.rev().max_by_key(|(_, n)| *n).map(|(window, _)| window)
    }

    /// Number of sentences.
    pub fn n_sentences(&self) -> usize {
        self.windows.iter().filter(|window| !window.continues).count()
    }

    /// Ranges of windows that have at most `max_wordpieces` wordpieces together, context included; at least one, which is empty for a text
    /// without words. They end between sentences, except within a sentence that is longer.
    pub fn parts(&self, max_wordpieces: usize) -> Vec<Range<usize>> {
        let mut parts = Vec::new();
        let (mut start, mut n_part) = (0, 0);
        let (mut sentence, mut n_sentence) = (0, 0);
        for (at, window) in self.windows.iter().enumerate() {
            if !window.continues {
                (sentence, n_sentence) = (at, 0);
            }
            while n_part + window.n_wordpieces() > max_wordpieces && at > start {
                let (cut, n_left) = if sentence > start { (sentence, n_sentence) } else { (at, 0) };
                parts.push(start..cut);
                (start, n_part) = (cut, n_left);
            }
            n_part += window.n_wordpieces();
            n_sentence += window.n_wordpieces();
        }
        parts.push(start..self.windows.len());
        parts
    }

    /// Number of sentences that were cut because they are longer than a window.
    pub fn n_cut(&self) -> usize {
        let is_cut = |sentence: &[Window]| {
            let truncated = |window: &Window| window.target.end < self.words[window.words.end - 1].end;
            sentence.len() > 1 || sentence.iter().any(truncated)
        };
        self.windows.chunk_by(|_, next| next.continues).filter(|sentence| is_cut(sentence)).count()
    }
}

impl Window {
    /// Number of wordpieces with context, including the special tokens.
    pub fn n_wordpieces(&self) -> usize {
        self.context.len() + 2
    }
}

/// Number of words of each sentence, in order; of a sentence that was cut, those of all these windows.
pub fn words_of_sentences(windows: &[Window]) -> Vec<usize> {
    let n_words = |sentence: &[Window]| sentence.iter().map(|window| window.words.len()).sum();
    windows.chunk_by(|_, next| next.continues).map(n_words).collect()
}

impl Splitter {
    /// A splitter into windows of at most `max_wordpieces` wordpieces, the special tokens included.
    ///
    /// # Errors
    /// If the tokenizer has no tokens for the ends of a sequence.
    pub fn new(tokenizer: Tokenizer, max_wordpieces: usize) -> Result<Splitter> {
        let (cls, sep) = tokenizer.ends()?;
        Ok(Splitter { tokenizer, cls, sep, max_wordpieces })
    }

    /// The tokenizer.
    pub fn tokenizer(&self) -> &Tokenizer {
        &self.tokenizer
    }

    /// Splits a text. `boundaries` become word boundaries: the gold mentions in training, nothing otherwise.
    pub fn read(&self, document: &Analysis<'_>, boundaries: &[Span]) -> TokenizedText {
        let text = document.text;
        let mut tokens = divide(&self.tokenizer, text, boundaries);
        for piece in &mut tokens {
            // The accents of the last letter, which the tokenizer of an uncased model leaves out.
            let accents = text[piece.end..].chars().take_while(|letter| is_accent(*letter));
            piece.end += accents.map(char::len_utf8).sum::<usize>();
        }
        let mut edges: Vec<usize> =
            boundaries.iter().flat_map(|span| [span.start as usize, span.end as usize]).collect();
        edges.sort_unstable();
        let mut words: Vec<Range<usize>> = Vec::new();
        for (at, piece) in tokens.iter().enumerate() {
            let around = (text[..piece.start].chars().next_back(), text[piece.start..].chars().next());
            let joins = matches!(around, (Some(before), Some(after)) if are_joined(before, after));
            // Several wordpieces of one character belong to one word.
            let overlaps = at > 0 && piece.start < tokens[at - 1].end;
            match words.last_mut() {
                Some(word) if overlaps || (joins && edges.binary_search(&piece.start).is_err()) => word.end = at + 1,
                _ => words.push(at..at + 1),
            }
        }
        let windows = self.windows(document.sentences(), &tokens, &words);
        TokenizedText { tokens, words, windows }
    }

    fn windows(&self, sentences: &[Span], tokens: &[Token], words: &[Range<usize>]) -> Vec<Window> {
        let room = self.max_wordpieces - 2;
        let mut targets: Vec<(Range<usize>, bool)> = Vec::new();
        let mut start = 0;
        // What follows the last sentence, such as a wordpiece of white space, is one of its own.
        for sentence_end in sentences.iter().map(|sentence| sentence.end as usize).chain([usize::MAX]) {
            let end = words.partition_point(|word| tokens[word.start].start < sentence_end);
            let mut continues = false;
            while start < end {
                // A sentence that is too long is cut between words.
                let most = words[start].start + room;
                let cut = words[..end].partition_point(|word| word.end <= most).max(start + 1);
                targets.push((start..cut, continues));
                (start, continues) = (cut, true);
            }
        }
        let rows = |(target, _): &(Range<usize>, bool)| words[target.start].start..words[target.end - 1].end;
        let window = |at: usize| {
            let mut target = rows(&targets[at]);
            // A word longer than a window is cut; its first wordpiece stands for it.
            target.end = target.end.min(target.start + room);
            let room = room - target.len();
            let before = at.checked_sub(1).map_or(0, |before| rows(&targets[before]).len());
            let after = targets.get(at + 1).map_or(0, |after| rows(after).len());
            // Context is cut evenly at its outer ends; what one side leaves goes to the other.
            let n_before = before.min((room / 2).max(room.saturating_sub(after)));
            let n_after = after.min(room - n_before).min(tokens.len() - target.end);
            Window {
                words: targets[at].0.clone(),
                context: target.start - n_before.min(target.start)..target.end + n_after,
                target,
                continues: targets[at].1,
            }
        };
        (0..targets.len()).map(window).collect()
    }

    /// Packs windows of texts; `spans` are pairs of words of each window's text.
    pub fn pack<'a>(
        &self,
        windows: impl IntoIterator<Item = (&'a TokenizedText, &'a Window, &'a [(usize, usize)])>,
    ) -> PackedWindows {
        let mut packed = PackedWindows::default();
        let mut segments = Segments::default();
        let mut n_rows = 0;
        for (text, window, spans) in windows {
            let inner: Vec<u32> = text.tokens[window.context.clone()].iter().map(|piece| piece.row).collect();
            packed.sequences.push(&[&[&[self.cls], inner.as_slice(), &[self.sep]].concat()]);
            let first = n_rows + 1 + (window.target.start - window.context.start) as u32;
            packed.targets.extend(first..first + window.target.len() as u32);
            n_rows += inner.len() as u32 + 2;
            let base = segments.n_rows() as u32;
            let row = |piece: usize| base + (piece.min(window.target.end - 1) - window.target.start) as u32;
            packed.words.extend(text.words[window.words.clone()].iter().map(|word| row(word.start)));
            let span = |(first, last): &(usize, usize)| (row(text.words[*first].start), row(text.words[*last].end - 1));
            packed.spans.extend(spans.iter().map(span));
            segments.push(window.target.len());
        }
        packed.segments = Arc::new(segments);
        packed
    }
}

/// Whether two adjacent characters are of one word.
fn are_joined(before: char, after: char) -> bool {
    let is_inside = |letter: char| (letter.is_alphanumeric() && !is_ideograph(letter)) || is_accent(letter);
    // An accent belongs to the letter before it.
    is_accent(after) || (is_inside(before) && is_inside(after))
}

/// Whether a character is a combining accent.
fn is_accent(letter: char) -> bool {
    matches!(letter, '\u{300}'..='\u{36f}')
}

/// Whether a character is a word of its own: the Chinese characters of the basic tokenizer of BERT.
fn is_ideograph(letter: char) -> bool {
    matches!(letter,
        '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{2ceaf}'
        | '\u{2f800}'..='\u{2fa1f}')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn splitter(max_wordpieces: usize) -> Splitter {
        let vocabulary = "[UNK] [CLS] [SEP] a fever ##ish cough . , ( ) of the knee";
        let tokenizer = Tokenizer::of(vocabulary.split(' ').map(str::to_owned).collect()).unwrap();
        Splitter::new(tokenizer, max_wordpieces).unwrap()
    }

    #[test]
    fn words_are_cut_at_white_space_punctuation_and_gold_boundaries() {
        let written = "Feverish, a (cough).";
        let text = splitter(32).read(&Analysis::of_text(written), &[]);
        assert_eq!(words(written), ["Feverish", ",", "a", "(", "cough", ")", "."]);
        assert_eq!(text.words_of(Span::new(10, 18)), Some((2, 4)));
        assert_eq!(text.words_of(Span::new(0, 5)), None);
        let cut = splitter(32).read(&Analysis::of_text(written), &[Span::new(0, 5)]);
        assert_eq!(cut.words_of(Span::new(0, 5)), Some((0, 0)));
    }

    fn words(written: &str) -> Vec<&str> {
        let text = splitter(32).read(&Analysis::of_text(written), &[]);
        (0..text.words.len()).map(|word| text.span(word, word).of(written)).collect()
    }

    #[test]
    fn chinese_characters_are_words_and_accents_are_not() {
        assert_eq!(words("患者发热 fever。"), ["患", "者", "发", "热", "fever", "。"]);
        assert_eq!(words("発熱した2日"), ["発", "熱", "した2", "日"]);
        let fever = Span::new(6, 12);
        assert_eq!(splitter(32).read(&Analysis::of_text("患者发热"), &[]).words_of(fever), Some((2, 3)));
        assert_eq!(words("Sjo\u{308}gren a\u{301}"), ["Sjo\u{308}gren", "a\u{301}"]);
    }

    #[test]
    fn texts_without_words_have_no_windows() {
        for written in ["", " \n ", "\u{200b}"] {
            let text = splitter(32).read(&Analysis::of_text(written), &[]);
            assert_eq!((text.windows.len(), text.n_sentences(), text.n_cut()), (text.words.len(), text.words.len(), 0));
            assert_eq!(text.words_of(Span::new(0, 0)), None);
        }
    }

    #[test]
    fn sentences_longer_than_a_window_are_counted() {
        let text = splitter(16).read(&Analysis::of_text(&format!("A fever. {}. A cough.", "Fever ".repeat(40))), &[]);
        assert_eq!((text.n_sentences(), text.n_cut()), (3, 1));
        assert!(text.windows.len() > 4);
        assert_eq!(text.window_of(0, 1), Some(0));
        // One word in the window before, two in the next.
        let next = text.windows[2].words.start;
        assert_eq!(text.window_of(next - 1, next + 1), Some(2));
        assert_eq!(text.window_of(next - 1, next), Some(1));
        let word = splitter(16).read(&Analysis::of_text(&"fever".repeat(40)), &[]);
        assert_eq!((word.words.len(), word.n_sentences()), (1, 1));
    }

    #[test]
    fn parts_end_between_sentences_unless_a_sentence_is_longer() {
        let (short, long) = ("A fever of the knee. ".repeat(3), "fever ".repeat(60));
        for text in [String::new(), short.clone(), long.clone(), format!("{short}{long}. {short}")] {
            let text = splitter(16).read(&Analysis::of_text(&text), &[]);
            for max_wordpieces in [1, 16, 40, 100, usize::MAX] {
                let parts = text.parts(max_wordpieces);
                let mut next = 0;
                for part in &parts {
                    assert_eq!(part.start, next);
                    next = part.end;
                    let n_wordpieces = |windows: &[Window]| windows.iter().map(Window::n_wordpieces).sum::<usize>();
                    let windows = &text.windows[part.clone()];
                    assert!(windows.len() <= 1 || n_wordpieces(windows) <= max_wordpieces, "{parts:?}");
                    if windows.first().is_some_and(|first| first.continues) {
                        let start = text.windows[..part.start].iter().rposition(|window| !window.continues).unwrap();
                        let end = text.windows[part.start..].iter().position(|window| !window.continues);
                        let sentence = start..end.map_or(text.windows.len(), |end| part.start + end);
                        assert!(n_wordpieces(&text.windows[sentence]) > max_wordpieces, "{parts:?}");
                    }
                }
                assert_eq!(next, text.windows.len());
                assert!(max_wordpieces < usize::MAX || parts.len() == 1);
            }
        }
    }

    #[test]
    fn each_piece_is_the_target_of_one_window_however_long_the_text() {
        let sentence = "A fever of the knee, a cough of the knee. ";
        let long = "fever ".repeat(200);
        for text in [sentence.repeat(6), long.clone(), format!("{sentence}{long}. {sentence}"), "x".repeat(500)] {
            for max_wordpieces in [16, 40, 128] {
                let text = splitter(max_wordpieces).read(&Analysis::of_text(&text), &[]);
                assert!(text.n_sentences() > 0 && text.n_cut() <= text.n_sentences());
                let mut next = 0;
                for window in &text.windows {
                    assert_eq!(window.words.start, next);
                    next = window.words.end;
                    assert!(window.context.len() <= max_wordpieces - 2 && !window.target.is_empty());
                    assert!(window.context.start <= window.target.start && window.target.end <= window.context.end);
                }
                assert_eq!(next, text.words.len());
                let each = text.windows.iter().map(|window| (&text, window, [].as_slice()));
                let packed = splitter(max_wordpieces).pack(each);
                assert_eq!(packed.words.len(), text.words.len());
                assert_eq!(packed.segments.n_rows(), packed.targets.len());
            }
        }
        let text = splitter(40).read(&Analysis::of_text(&sentence.repeat(3)), &[]);
        let middle = &text.windows[1];
        assert_eq!((middle.target.clone(), middle.context.clone()), (12..24, 0..36));
    }
}
