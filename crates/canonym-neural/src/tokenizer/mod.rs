//! WordPiece tokenizer, with the vocabulary of a BERT checkpoint or one learned from names and text.
//!
//! Tokenisation follows BERT (Devlin et al. 2019), in detail as implemented by Hugging Face `tokenizers`: punctuation is split off, text is
//! lower-cased and accents are stripped unless the model is cased, then the longest wordpieces are matched from the left. Special tokens
//! such as `[SEP]` are never recognised in text; there they are brackets around letters. A vocabulary is learned by merging the most
//! frequent adjacent pair (Sennrich et al. 2016); ties are broken by wordpiece order, so equal texts give equal vocabularies.
//!
//! ```
//! let pieces = canonym_neural::tokenizer::Pieces::of(["[UNK]", "liver", "##wort"].map(str::to_owned).to_vec()).unwrap();
//! assert_eq!(pieces.rows("Liverwort, liver"), [1, 2, 0, 1]);
//! ```

mod learn;
mod read;
mod unicode;
mod words;

use std::collections::HashMap;

use canonym_core::{Error, Result};

pub use words::BertNormalizer;
use words::{Word, words};

/// The token for unknown words.
pub const UNKNOWN: &str = "[UNK]";

/// The first token of each BERT sequence.
pub const FIRST: &str = "[CLS]";

/// The token after each part of a BERT sequence.
pub const BEHIND: &str = "[SEP]";

/// Prefix of continuation wordpieces.
const INSIDE: &str = "##";

/// Maximum word length in characters, as in BERT; longer words are unknown.
const LONGEST_WORD: usize = 100;

/// A wordpiece vocabulary with its normalisation.
#[derive(Debug, Clone, PartialEq)]
pub struct Pieces {
    // Private: `row_of` is the inverse of `pieces`.
    pieces: Vec<String>,
    row_of: HashMap<String, u32>,
    /// Row of [`UNKNOWN`].
    pub unknown: u32,
    /// Normalisation before tokenisation.
    pub normalizer: BertNormalizer,
    /// Maximum word length in characters; longer words are unknown.
    pub longest_word: usize,
}

/// A wordpiece of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Piece {
    /// Row in the vocabulary.
    pub row: u32,
    /// Start in the text, in bytes.
    pub start: usize,
    /// End in the text, in bytes, exclusive.
    pub end: usize,
}

impl Pieces {
    /// An uncased vocabulary, which must contain [`UNKNOWN`].
    pub fn of(pieces: Vec<String>) -> Result<Pieces> {
        let row_of: HashMap<String, u32> = pieces.iter().cloned().zip(0..).collect();
        let missing = || Error::invalid(format!("the vocabulary lacks the token {UNKNOWN}"));
        let unknown = *row_of.get(UNKNOWN).ok_or_else(missing)?;
        if row_of.len() < pieces.len() {
            return Err(Error::invalid("the vocabulary contains a duplicate token"));
        }
        Ok(Pieces { pieces, row_of, unknown, normalizer: BertNormalizer::UNCASED, longest_word: LONGEST_WORD })
    }

    /// Learns a vocabulary of at most `size` wordpieces; pairs that occur only once are not merged.
    pub fn learn<'a>(texts: impl Iterator<Item = &'a str>, size: usize) -> Pieces {
        let mut counts: HashMap<String, u64> = HashMap::new();
        for text in texts {
            let words = words(text, &BertNormalizer::UNCASED);
            words.into_iter().for_each(|word| *counts.entry(word.letters).or_default() += 1);
        }
        let pieces = learn::learn(counts, &[UNKNOWN], size);
        Pieces::of(pieces).expect("the unknown piece was given and pieces differ")
    }

    /// Reads one wordpiece per line.
    pub fn from_lines(text: &str) -> Result<Pieces> {
        Pieces::of(text.lines().map(str::to_owned).collect())
    }

    /// Writes one wordpiece per line.
    pub fn to_lines(&self) -> String {
        self.pieces.iter().flat_map(|piece| [piece, "\n"]).collect()
    }

    /// Number of wordpieces.
    pub fn len(&self) -> usize {
        self.pieces.len()
    }

    /// Whether there are no wordpieces.
    pub fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// The row of a wordpiece.
    pub fn find(&self, piece: &str) -> Option<u32> {
        self.row_of.get(piece).copied()
    }

    /// Appends a wordpiece, unless it exists, and returns its row.
    pub fn add(&mut self, piece: &str) -> u32 {
        let next = self.pieces.len() as u32;
        let row = *self.row_of.entry(piece.to_owned()).or_insert(next);
        if row == next {
            self.pieces.push(piece.to_owned());
        }
        row
    }

    /// The row of a token that the model requires, such as [`FIRST`].
    pub fn require(&self, piece: &str) -> Result<u32> {
        let missing = || Error::invalid(format!("the vocabulary lacks the token {piece}"));
        self.find(piece).ok_or_else(|| missing().with_hint("use the vocabulary that the model was trained with"))
    }

    /// `input_ids` of a text, without special tokens.
    pub fn rows(&self, text: &str) -> Vec<u32> {
        self.pieces(text).into_iter().map(|piece| piece.row).collect()
    }

    /// Decodes wordpieces to text, with spaces between words. Unknown words are left out.
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

    /// The wordpieces of a text with their byte offsets.
    pub fn pieces(&self, text: &str) -> Vec<Piece> {
        let mut pieces = Vec::new();
        let mut key = String::new();
        for word in words(text, &self.normalizer) {
            let first = pieces.len();
            if !self.divide(&word, &mut key, &mut pieces) {
                pieces.truncate(first);
                let (start, end) = (word.places[0].1, word.places[word.places.len() - 1].2);
                pieces.push(Piece { row: self.unknown, start, end });
            }
        }
        pieces
    }

    /// Greedy longest match from the left; false if a rest does not match.
    fn divide(&self, word: &Word, key: &mut String, pieces: &mut Vec<Piece>) -> bool {
        let places = &word.places;
        if places.len() > self.longest_word {
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
}
