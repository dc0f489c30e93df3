//! How names and mentions are written for the model (section 3.1 of the paper, published code).

use canonym_core::Result;
use canonym_core::text::Span;
use serde::{Deserialize, Serialize};

use crate::tokenizer::Tokenizer;

/// Marks the start and the end of the mention: plain words, unless the vocabulary has [`START_TOKEN`] and [`END_TOKEN`]. The text is in
/// lower case.
const START: &str = "START";
const END: &str = "END";

/// Tokens for the marks in vocabularies without capital letters, in which the marks would be ordinary words.
pub const START_TOKEN: &str = "[START]";
/// See [`START_TOKEN`].
pub const END_TOKEN: &str = "[END]";

/// The prompt of the decoder, behind the mention.
const PROMPT: &str = "is";

/// A name as the model writes it: in lower case, punctuation replaced by spaces.
pub fn plain_name(name: &str) -> String {
    const PUNCTUATION: &str = ",.;{}[]()+-_*/?!`\"'=%><";
    let replaced: String = name
        .chars()
        .map(|letter| if PUNCTUATION.contains(letter) { ' ' } else { letter })
        .collect::<String>()
        .to_lowercase();
    replaced.split_whitespace().collect::<Vec<&str>>().join(" ")
}

/// The source of a mention: its context, of at most `max_words` words of the text around it, with the mention marked. `mention` is written
/// in place of the text of `span`, for example a long form in place of its abbreviation.
pub fn source(text: &str, span: Span, mention: &str, max_words: usize) -> String {
    let (start, end) = (span.start as usize, span.end as usize);
    let (left, right) = (text[..start].to_lowercase(), text[end..].to_lowercase());
    let (left, right): (Vec<&str>, Vec<&str>) = (left.split_whitespace().collect(), right.split_whitespace().collect());
    let half = max_words / 2;
    // A short side leaves its words to the other one.
    let n_left = left.len().min(half.max(max_words.saturating_sub(right.len())));
    let n_right = right.len().min(max_words - n_left);
    let mention = mention.to_lowercase();
    let words = left[left.len() - n_left..].iter().copied().chain([START, mention.trim(), END]);
    words.chain(right[..n_right].iter().copied()).filter(|word| !word.is_empty()).collect::<Vec<&str>>().join(" ")
}

/// How mentions and names become tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TextConfig {
    /// Maximum number of words of context around a mention.
    pub max_words: usize,
    /// Whether the decoder is prompted with `mention is`.
    pub prompt: bool,
    /// Which names of a concept may be written.
    #[serde(skip_serializing_if = "WrittenNames::is_default")]
    pub names: WrittenNames,
}

/// Which names of a concept may be written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WrittenNames {
    /// All.
    #[default]
    All,
    /// The preferred name alone, a baseline of the paper.
    Preferred,
}

impl WrittenNames {
    /// Whether this is the default.
    pub fn is_default(&self) -> bool {
        *self == WrittenNames::All
    }
}

impl Default for TextConfig {
    fn default() -> TextConfig {
        TextConfig { max_words: 384, prompt: true, names: WrittenNames::All }
    }
}

/// Writes mentions and names as tokens.
#[derive(Debug, Clone)]
pub struct Coder {
    tokenizer: Tokenizer,
    config: TextConfig,
    /// Tokens before and after a sequence. The decoder begins with the latter, as in BART.
    first: u32,
    last: u32,
    max_source: usize,
    max_target: usize,
    /// The marks and their tokens, if the vocabulary has them.
    marks: Vec<(&'static str, u32)>,
}

impl Coder {
    /// A coder for a model with these lengths.
    ///
    /// # Errors
    /// If the vocabulary lacks tokens that begin and end a sequence.
    pub fn new(tokenizer: Tokenizer, config: TextConfig, max_source: usize, max_target: usize) -> Result<Coder> {
        let (first, last) = tokenizer.ends()?;
        let token = |(mark, token)| tokenizer.find(token).map(|row| (mark, row));
        let marks = [(START, START_TOKEN), (END, END_TOKEN)].into_iter().filter_map(token).collect();
        let (max_source, max_target) = (max_source.max(3), max_target.max(4));
        Ok(Coder { tokenizer, config, first, last, max_source, max_target, marks })
    }

    /// The tokenizer.
    pub fn tokenizer(&self) -> &Tokenizer {
        &self.tokenizer
    }

    /// Settings.
    pub fn config(&self) -> TextConfig {
        self.config
    }

    /// Tokens of a source whose words are separated by single spaces.
    fn rows(&self, text: &str) -> Vec<u32> {
        let is_mark = |word: &str| self.marks.iter().find(|(mark, _)| *mark == word);
        let (mut tokens, mut plain) = (Vec::new(), String::new());
        for word in text.split(' ') {
            match is_mark(word) {
                Some((_, row)) => {
                    tokens.append(&mut self.tokenizer.input_ids(&plain));
                    plain.clear();
                    tokens.push(*row);
                }
                None => {
                    plain.push(' ');
                    plain.push_str(word);
                }
            }
        }
        tokens.append(&mut self.tokenizer.input_ids(&plain));
        tokens
    }

    /// Tokens of a source. If there are too many, the first ones are kept, or with `keep_end` the last ones.
    pub fn source(&self, text: &str, keep_end: bool) -> Vec<u32> {
        let tokens = self.rows(text);
        let n = tokens.len().min(self.max_source - 2);
        let kept = if keep_end { &tokens[tokens.len() - n..] } else { &tokens[..n] };
        [&[self.first], kept, &[self.last]].concat()
    }

    /// Tokens of a mention in its context, which gets shorter until it fits.
    pub fn mention_source(&self, text: &str, span: Span, mention: &str) -> Vec<u32> {
        let mut max_words = self.config.max_words;
        loop {
            let tokens = self.rows(&source(text, span, mention, max_words));
            if tokens.len() + 2 <= self.max_source {
                return [&[self.first], tokens.as_slice(), &[self.last]].concat();
            }
            if max_words == 0 {
                // A mention that is too long loses its end, but not the mark there.
                let end = self.rows(END);
                let n = (self.max_source - 2).saturating_sub(end.len());
                return [&[self.first], &tokens[..n], &end, &[self.last]].concat();
            }
            max_words = max_words * 3 / 4;
        }
    }

    /// Decoder tokens before the name: the last token, and the prompt with the end of a mention that is too long.
    pub fn prompt(&self, mention: &str) -> Vec<u32> {
        let mut tokens = vec![self.last];
        if self.config.prompt {
            let prompt = self.tokenizer.input_ids(&format!(" {}", prompt(mention)));
            let n = prompt.len().min(self.max_target / 2 - 1);
            tokens.extend_from_slice(&prompt[prompt.len() - n..]);
        }
        tokens
    }

    /// Tokens of a plain name with the last token; `None` if there are none, or too many for the model.
    pub fn name(&self, plain: &str) -> Option<Vec<u32>> {
        let mut tokens = self.tokenizer.input_ids(&format!(" {plain}"));
        // A token that is unknown would stand for many names, and the last token ends a name.
        let is_written = |token: &u32| *token != self.tokenizer.unknown && *token != self.last;
        tokens.push(self.last);
        let n = tokens.len();
        (n > 1 && n <= self.max_target / 2 + 1 && tokens[..n - 1].iter().all(is_written)).then_some(tokens)
    }
}

/// A mention between its markers, without context.
pub fn marked(mention: &str) -> String {
    format!("{START} {mention} {END}")
}

/// The prompt of the decoder: `mention is`.
pub fn prompt(mention: &str) -> String {
    format!("{} {PROMPT}", mention.to_lowercase().trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lose_their_punctuation_and_capitals() {
        assert_eq!(
            plain_name(" Diabetes Mellitus, Non-Insulin-Dependent (NIDDM) "),
            "diabetes mellitus non insulin dependent niddm"
        );
        assert_eq!(plain_name("5'-AMP:β"), "5 amp:β");
        assert_eq!(plain_name("--"), "");
    }

    #[test]
    fn a_mention_is_marked_in_a_context_of_limited_length() {
        let text = "One two three gout five six seven";
        let span = Span { start: 14, end: 18 };
        assert_eq!(source(text, span, "gout", 384), "one two three START gout END five six seven");
        assert_eq!(source(text, span, "Gout", 4), "two three START gout END five six");
        assert_eq!(
            source("gout is old and known", Span { start: 0, end: 4 }, "gout", 4),
            "START gout END is old and known"
        );
        assert_eq!(source("all have gout", Span { start: 9, end: 13 }, "gout", 4), "all have START gout END");
        assert_eq!(source("gout", Span { start: 0, end: 4 }, "gout", 0), "START gout END");
        assert_eq!(prompt("Gout "), "gout is");
    }

    #[test]
    fn marks_are_words_unless_the_vocabulary_has_them() {
        let mut words = ["[UNK]", "[CLS]", "[SEP]", "gout", "start", "end", "is", "old"].map(str::to_owned).to_vec();
        let coder = |words: &[String]| {
            Coder::new(Tokenizer::of(words.to_vec()).unwrap(), TextConfig::default(), 20, 20).unwrap()
        };
        let source =
            |words: &[String]| coder(words).mention_source("Gout is OLD start", Span { start: 0, end: 4 }, "Gout");
        assert_eq!(source(&words), [1, 4, 3, 5, 6, 7, 4, 2]);
        words.extend([START_TOKEN, END_TOKEN].map(str::to_owned));
        assert_eq!(source(&words), [1, 8, 3, 9, 6, 7, 4, 2]);
        assert_eq!(coder(&words).prompt("Gout"), [2, 3, 6]);
        assert_eq!(
            (coder(&words).name("old gout"), coder(&words).name("new"), coder(&words).name("")),
            (Some(vec![7, 3, 2]), None, None)
        );
    }
}
