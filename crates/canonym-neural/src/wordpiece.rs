//! Pieces of words: the vocabulary that an uncased BERT checkpoint brings along, or one that is learned from names and text.
//!
//! Text is divided as BERT divides it (Devlin et al. 2019): lower case, no accents, punctuation apart, then the longest pieces that the
//! vocabulary holds, from the left. A vocabulary is learned by joining the most frequent pair of neighbours again and again (Sennrich et
//! al. 2016); of equally frequent pairs the one of earlier pieces is joined, so equal texts give equal vocabularies.
//!
//! ```
//! let pieces = canonym_neural::wordpiece::Pieces::of(["[UNK]", "liver", "##wort"].map(str::to_owned).to_vec()).unwrap();
//! assert_eq!(pieces.rows("Liverwort, liver"), [1, 2, 0, 1]);
//! ```

mod learn;

use std::collections::HashMap;
use std::path::Path;

use canonym::{Error, Result};
use serde::Deserialize;
use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

/// The piece that stands for what the vocabulary does not hold.
pub const UNKNOWN: &str = "[UNK]";

/// What the pieces inside a word begin with.
const INSIDE: &str = "##";

/// Longer words are unknown, as in BERT.
const LONGEST_WORD: usize = 100;

/// A vocabulary.
#[derive(Debug, Clone, PartialEq)]
pub struct Pieces {
    // Private: `row_of` holds each of them at its place.
    pieces: Vec<String>,
    row_of: HashMap<String, u32>,
    /// The row of [`UNKNOWN`].
    pub unknown: u32,
}

/// One piece of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Piece {
    /// Its row in the vocabulary.
    pub row: u32,
    /// Its first byte in the text.
    pub start: usize,
    /// The byte behind it.
    pub end: usize,
}

/// A word as the vocabulary sees it: its letters, and where each stands in the text.
#[derive(Debug, Default)]
struct Word {
    letters: String,
    /// For each letter its byte in `letters`, and the bytes in the text that it was made of.
    places: Vec<(usize, usize, usize)>,
}

impl Pieces {
    /// A vocabulary of these pieces, which has to hold [`UNKNOWN`].
    pub fn of(pieces: Vec<String>) -> Result<Pieces> {
        let row_of: HashMap<String, u32> = pieces.iter().cloned().zip(0..).collect();
        let missing = || Error::invalid(format!("the vocabulary lacks the piece {UNKNOWN}"));
        let unknown = *row_of.get(UNKNOWN).ok_or_else(missing)?;
        if row_of.len() < pieces.len() {
            return Err(Error::invalid("a piece of the vocabulary comes twice"));
        }
        Ok(Pieces { pieces, row_of, unknown })
    }

    /// Learns a vocabulary of at most `size` pieces; what comes only once is not joined.
    pub fn learn<'a>(texts: impl Iterator<Item = &'a str>, size: usize) -> Pieces {
        let mut counts: HashMap<String, u64> = HashMap::new();
        for text in texts {
            words(text).into_iter().for_each(|word| *counts.entry(word.letters).or_default() += 1);
        }
        let pieces = learn::learn(counts, &[UNKNOWN], size);
        Pieces::of(pieces).expect("the unknown piece was given and pieces differ")
    }

    /// The vocabulary of an uncased BERT: `vocab.txt`, else `tokenizer.json`.
    pub fn read(folder: &Path) -> Result<Pieces> {
        let read = |path: &Path| std::fs::read_to_string(path).map_err(|error| Error::io("read", path, error));
        let path = folder.join("vocab.txt");
        if path.exists() {
            return Pieces::from_lines(&read(&path)?);
        }
        let path = folder.join("tokenizer.json");
        let hint = "give the folder of an uncased BERT";
        let refused = |message: String| Error::artifact(&path, message).with_hint(hint);
        let tokenizer: Tokenizer =
            serde_json::from_str(&read(&path)?).map_err(|error| refused(format!("no WordPiece: {error}")))?;
        if !tokenizer.normalizer.is_some_and(|normalizer| normalizer.lowercase) {
            return Err(refused("it keeps capitals".to_owned()));
        }
        let mut pieces: Vec<(u32, String)> =
            tokenizer.model.vocab.into_iter().map(|(piece, row)| (row, piece)).collect();
        pieces.sort_unstable();
        if pieces.iter().zip(0..).any(|((row, _), place)| *row != place) {
            return Err(refused("rows of its vocabulary are missing".to_owned()));
        }
        Pieces::of(pieces.into_iter().map(|(_, piece)| piece).collect())
    }

    /// The vocabulary that stands in a text, one piece a line.
    pub fn from_lines(text: &str) -> Result<Pieces> {
        Pieces::of(text.lines().map(str::to_owned).collect())
    }

    /// The vocabulary as a text, one piece a line.
    pub fn to_lines(&self) -> String {
        self.pieces.iter().flat_map(|piece| [piece, "\n"]).collect()
    }

    /// The number of pieces.
    pub fn len(&self) -> usize {
        self.pieces.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// The rows of the pieces of a text.
    pub fn rows(&self, text: &str) -> Vec<u32> {
        self.pieces(text).into_iter().map(|piece| piece.row).collect()
    }

    /// The text that pieces make, words apart by blanks. A word that has no pieces is left out.
    pub fn text(&self, rows: &[u32]) -> String {
        let mut text = String::new();
        for row in rows.iter().filter(|row| **row != self.unknown) {
            let piece = &self.pieces[*row as usize];
            match piece.strip_prefix(INSIDE) {
                Some(inside) => text.push_str(inside),
                None => {
                    text.push_str(if text.is_empty() { "" } else { " " });
                    text.push_str(piece);
                }
            }
        }
        text
    }

    /// The pieces of a text and where they stand.
    pub fn pieces(&self, text: &str) -> Vec<Piece> {
        let mut pieces = Vec::new();
        let mut key = String::new();
        for word in words(text) {
            let first = pieces.len();
            if !self.divide(&word, &mut key, &mut pieces) {
                pieces.truncate(first);
                let (start, end) = (word.places[0].1, word.places[word.places.len() - 1].2);
                pieces.push(Piece { row: self.unknown, start, end });
            }
        }
        pieces
    }

    /// Adds the longest pieces from the left; false where there is none for what is left.
    fn divide(&self, word: &Word, key: &mut String, pieces: &mut Vec<Piece>) -> bool {
        let places = &word.places;
        if places.len() > LONGEST_WORD {
            return false;
        }
        let mut at = 0;
        while at < places.len() {
            let fitting = (at + 1..=places.len()).rev().find_map(|end| {
                let last = places.get(end).map_or(word.letters.len(), |place| place.0);
                key.clear();
                key.push_str(if at == 0 { "" } else { INSIDE });
                key.push_str(&word.letters[places[at].0..last]);
                self.row_of.get(key.as_str()).map(|row| (*row, end))
            });
            let Some((row, end)) = fitting else { return false };
            pieces.push(Piece { row, start: places[at].1, end: places[end - 1].2 });
            at = end;
        }
        true
    }
}

/// What is read of a `tokenizer.json`.
#[derive(Deserialize)]
struct Tokenizer {
    normalizer: Option<Normalizer>,
    model: WordPiece,
}

#[derive(Deserialize)]
struct Normalizer {
    #[serde(default)]
    lowercase: bool,
}

#[derive(Deserialize)]
struct WordPiece {
    vocab: HashMap<String, u32>,
}

/// The words of a text, lower case and without accents; a mark of punctuation or a Chinese sign is a word of its own.
fn words(text: &str) -> Vec<Word> {
    let mut words = Vec::new();
    let mut word = Word::default();
    for (start, letter) in text.char_indices() {
        let end = start + letter.len_utf8();
        if letter.is_whitespace() {
            finish(&mut word, &mut words);
            continue;
        }
        if letter.is_control() || letter == '\u{fffd}' {
            continue;
        }
        let apart = is_punctuation(letter) || is_chinese(letter);
        if apart {
            finish(&mut word, &mut words);
        }
        for plain in letter.to_lowercase().nfd().filter(|plain| !is_combining_mark(*plain)) {
            word.places.push((word.letters.len(), start, end));
            word.letters.push(plain);
        }
        if apart {
            finish(&mut word, &mut words);
        }
    }
    finish(&mut word, &mut words);
    words
}

fn finish(word: &mut Word, words: &mut Vec<Word>) {
    if !word.letters.is_empty() {
        words.push(std::mem::take(word));
    }
}

fn is_punctuation(letter: char) -> bool {
    letter.is_ascii_punctuation()
        || (!letter.is_alphanumeric()
            && matches!(letter, '\u{a1}'..='\u{bf}' | '\u{2010}'..='\u{205e}' | '\u{3001}'..='\u{303f}')
            && !is_symbol(letter))
}

/// Signs that Unicode counts as symbols, not as punctuation, and BERT leaves inside words.
fn is_symbol(letter: char) -> bool {
    matches!(letter, '\u{a2}'..='\u{a6}' | '\u{a8}' | '\u{a9}' | '\u{ac}'..='\u{b5}' | '\u{b8}'..='\u{ba}' | '\u{bc}'..='\u{be}' | '\u{2044}' | '\u{2052}')
}

fn is_chinese(letter: char) -> bool {
    matches!(letter, '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{2fa1f}')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn learned() -> Pieces {
        let texts = ["fatty acid", "fatty liver", "liver disease", "acid reflux disease"];
        Pieces::learn(texts.into_iter().cycle().take(40), 60)
    }

    #[test]
    fn a_learned_vocabulary_divides_what_it_was_learned_from_and_more() {
        let pieces = learned();
        assert!(pieces.len() <= 60);
        assert_eq!(pieces.rows("liver disease").len(), 2);
        let text = "Fatty Líverseed ☃";
        let shown: Vec<&str> = pieces.pieces(text).iter().map(|piece| &text[piece.start..piece.end]).collect();
        assert_eq!(shown.concat(), "FattyLíverseed☃");
        assert_eq!(pieces.rows("☃"), [pieces.unknown]);
        assert!(pieces.rows("  \u{0}").is_empty());
        assert_eq!(pieces.rows(&"a".repeat(101)), [pieces.unknown]);
    }

    #[test]
    fn the_same_texts_give_the_same_vocabulary_and_it_can_be_read_back() {
        assert_eq!(learned().to_lines(), learned().to_lines());
        assert_eq!(Pieces::from_lines(&learned().to_lines()).unwrap(), learned());
        assert!(Pieces::from_lines("liver\n").is_err());
        assert!(Pieces::from_lines("[UNK]\nliver\nliver\n").is_err());
    }

    #[test]
    fn a_tokenizer_of_a_checkpoint_is_read_in_both_forms() {
        let folder = tempfile::tempdir().unwrap();
        let json = r#"{"normalizer":{"lowercase":true},"model":{"type":"WordPiece","vocab":{"[UNK]":0,"liver":1}}}"#;
        std::fs::write(folder.path().join("tokenizer.json"), json).unwrap();
        assert_eq!(Pieces::read(folder.path()).unwrap().rows("liver"), [1]);
        std::fs::write(folder.path().join("vocab.txt"), "[PAD]\n[UNK]\nliver\n").unwrap();
        assert_eq!(Pieces::read(folder.path()).unwrap().rows("liver"), [2]);
    }

    #[test]
    fn punctuation_stands_apart_as_in_bert() {
        let shown = |text: &str| words(text).into_iter().map(|word| word.letters).collect::<Vec<String>>();
        assert_eq!(shown("L-DOPA–induced (20%)"), ["l", "-", "dopa", "–", "induced", "(", "20", "%", ")"]);
        assert_eq!(shown("5µg ±2 Sjögren’s 中文"), ["5µg", "±2", "sjogren", "’", "s", "中", "文"]);
    }
}
