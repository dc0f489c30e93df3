//! Pre-tokenisation of BERT: normalised words, each character with its offsets in the text.

use serde::{Deserialize, Serialize};
use unicode_normalization::UnicodeNormalization;

use super::unicode::{is_chinese, is_mark, is_punctuation, is_removed};

/// Normalisation settings, with the field names of `tokenizer.json`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct BertNormalizer {
    /// Whether control characters are removed.
    #[serde(default = "yes")]
    pub clean_text: bool,
    /// Whether each CJK ideograph is a word of its own.
    #[serde(default = "yes")]
    pub handle_chinese_chars: bool,
    /// Whether accents are stripped; `None` means that they are if text is lower-cased.
    #[serde(default)]
    pub strip_accents: Option<bool>,
    /// Whether text is lower-cased.
    #[serde(default)]
    pub lowercase: bool,
}

fn yes() -> bool {
    true
}

impl BertNormalizer {
    /// Normalisation of uncased models.
    pub const UNCASED: BertNormalizer =
        BertNormalizer { clean_text: true, handle_chinese_chars: true, strip_accents: None, lowercase: true };

    /// Normalisation of cased models, such as BioBERT.
    pub const CASED: BertNormalizer = BertNormalizer { lowercase: false, ..BertNormalizer::UNCASED };

    /// Whether accents are stripped.
    pub fn strips_accents(&self) -> bool {
        self.strip_accents.unwrap_or(self.lowercase)
    }

    /// Whether it is equivalent to [`BertNormalizer::UNCASED`].
    pub fn is_uncased(&self) -> bool {
        BertNormalizer { strip_accents: None, ..*self } == BertNormalizer::UNCASED && self.strips_accents()
    }
}

/// A normalised word with the position of each character in the text.
#[derive(Debug, Default)]
pub struct Word {
    /// Normalised characters.
    pub letters: String,
    /// For each character its byte in `letters`, and the byte range in the text it comes from.
    pub places: Vec<(usize, usize, usize)>,
}

impl Word {
    fn push(&mut self, letter: char, start: usize, end: usize) {
        self.places.push((self.letters.len(), start, end));
        self.letters.push(letter);
    }

    fn push_lower(&mut self, letter: char, lowercase: bool, start: usize, end: usize) {
        if lowercase {
            letter.to_lowercase().for_each(|lower| self.push(lower, start, end));
        } else {
            self.push(letter, start, end);
        }
    }
}

/// The words of a text; punctuation characters are words of their own. No word is empty.
pub fn words(text: &str, normalizer: &BertNormalizer) -> Vec<Word> {
    let BertNormalizer { clean_text, handle_chinese_chars, lowercase, .. } = *normalizer;
    let strips = normalizer.strips_accents();
    let mut words = Vec::new();
    let mut word = Word::default();
    let mut plain = Vec::new();
    for (start, letter) in text.char_indices() {
        let end = start + letter.len_utf8();
        if letter.is_ascii_alphanumeric() {
            word.push(if lowercase { letter.to_ascii_lowercase() } else { letter }, start, end);
            continue;
        }
        if clean_text && is_removed(letter) {
            continue;
        }
        if letter.is_whitespace() {
            finish(&mut word, &mut words);
            continue;
        }
        let chinese = handle_chinese_chars && is_chinese(letter);
        if chinese {
            finish(&mut word, &mut words);
        }
        plain.clear();
        if strips {
            plain.extend(std::iter::once(letter).nfd().filter(|letter| !is_mark(*letter)));
        } else {
            plain.push(letter);
        }
        // Punctuation is detected after accents are stripped: `≮` becomes `<`, which is a word of its own.
        for letter in plain.drain(..) {
            let apart = is_punctuation(letter);
            if apart {
                finish(&mut word, &mut words);
            }
            word.push_lower(letter, lowercase, start, end);
            if apart {
                finish(&mut word, &mut words);
            }
        }
        if chinese {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str, normalizer: &BertNormalizer) -> Vec<String> {
        words(text, normalizer).into_iter().map(|word| word.letters).collect()
    }

    #[test]
    fn punctuation_stands_apart_as_in_bert() {
        let uncased = &BertNormalizer::UNCASED;
        assert_eq!(shown("L-DOPA–induced (20%)", uncased), ["l", "-", "dopa", "–", "induced", "(", "20", "%", ")"]);
        assert_eq!(shown("5µg ±2 Sjögren’s 中文", uncased), ["5µg", "±2", "sjogren", "’", "s", "中", "文"]);
        assert_eq!(shown("a≮b", uncased), ["a", "<", "b"]);
        assert_eq!(shown("a≮b", &BertNormalizer::CASED), ["a≮b"]);
        // A form feed counts as a control character, so the words around it are joined; a tab counts as white space.
        assert_eq!(shown("a\u{c}b\tc\u{200b}d\u{fffd}e", uncased), ["ab", "cde"]);
    }

    #[test]
    fn capitals_and_accents_stay_as_the_normalizer_says() {
        assert_eq!(shown("Sjögren İ", &BertNormalizer::UNCASED), ["sjogren", "i"]);
        assert_eq!(shown("Sjögren", &BertNormalizer::CASED), ["Sjögren"]);
        let accents = BertNormalizer { strip_accents: Some(false), ..BertNormalizer::UNCASED };
        assert_eq!(shown("Sjögren İ", &accents), ["sjögren", "i\u{307}"]);
        let stripped = BertNormalizer { strip_accents: Some(true), ..BertNormalizer::CASED };
        assert_eq!(shown("Sjo\u{308}gren Öl", &stripped), ["Sjogren", "Ol"]);
        let chinese = BertNormalizer { handle_chinese_chars: false, clean_text: false, ..BertNormalizer::CASED };
        assert_eq!(shown("中文 a\u{c}b", &chinese), ["中文", "a", "b"]);
        assert!(!accents.is_uncased() && !stripped.is_uncased() && BertNormalizer::UNCASED.is_uncased());
    }

    #[test]
    fn letters_know_the_bytes_that_they_were_made_of() {
        let text = "Öl e\u{301}x";
        let places: Vec<Vec<(usize, usize, usize)>> =
            words(text, &BertNormalizer::UNCASED).into_iter().map(|word| word.places).collect();
        assert_eq!(places, [vec![(0, 0, 2), (1, 2, 3)], vec![(0, 4, 5), (1, 7, 8)]]);
    }
}
