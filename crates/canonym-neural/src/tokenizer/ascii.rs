//! The fast path of BERT tokenizers for ASCII, which is nearly all biomedical text.
//!
//! The normaliser of the library tracks the origin of every byte. ASCII does not need that: punctuation is split off, letters are
//! lower-cased, and each character is one byte.

use tokenizers::Model;
use tokenizers::models::wordpiece::WordPiece;

use super::{BertRules, INSIDE, Token};

/// Tokenises stretches of ASCII; appends to `tokens`.
pub struct Ascii<'a> {
    /// The vocabulary.
    pub model: &'a WordPiece,
    /// Settings of the tokenizer.
    pub rules: BertRules,
    /// Row of unknown words.
    pub unknown: u32,
    /// Wordpieces found so far.
    pub tokens: Vec<Token>,
    /// Buffer for the rest of a word, with the continuation prefix.
    pub key: String,
}

/// Whether all characters are visible ASCII characters.
pub fn is_visible_ascii(stretch: &str) -> bool {
    stretch.bytes().all(|letter| letter.is_ascii_graphic())
}

impl Ascii<'_> {
    /// Tokenises visible ASCII characters that start at byte `start` of the text.
    pub fn divide(&mut self, stretch: &str, start: usize) {
        let mut at = 0;
        while at < stretch.len() {
            let rest = &stretch[at..];
            // A punctuation character is a word of its own.
            let word =
                &rest[..rest.bytes().position(|letter| letter.is_ascii_punctuation()).unwrap_or(rest.len()).max(1)];
            self.word(word, start + at);
            at += word.len();
        }
    }

    /// Greedy longest match from the left; a word with an unmatched rest is unknown.
    fn word(&mut self, word: &str, start: usize) {
        let first = self.tokens.len();
        // Checked first, because a match of every length is tried.
        if word.len() > self.rules.longest_word {
            self.tokens.push(Token { row: self.unknown, start, end: start + word.len() });
            return;
        }
        let mut at = 0;
        while at < word.len() {
            self.key.clear();
            self.key.push_str(if at == 0 { "" } else { INSIDE });
            let n_prefix = self.key.len();
            self.key.push_str(&word[at..]);
            if self.rules.normalizer.lowercase {
                self.key.make_ascii_lowercase();
            }
            let find = |end| self.model.token_to_id(&self.key[..end]).map(|row| (row, end - n_prefix));
            let found = (n_prefix + 1..=self.key.len()).rev().find_map(find);
            let Some((row, n_bytes)) = found else {
                self.tokens.truncate(first);
                self.tokens.push(Token { row: self.unknown, start, end: start + word.len() });
                return;
            };
            self.tokens.push(Token { row, start: start + at, end: start + at + n_bytes });
            at += n_bytes;
        }
    }
}
