//! Token features of the tagger: words, the text between them, and gazetteer matches.

use std::collections::HashMap;

use canonym_core::kb::lexicon::{TokenHashes, hash_token};
use canonym_core::text::analysis::Analysis;
use canonym_core::text::normalise::fold_token_into;
use canonym_core::text::tokens::{Token, is_greek, tokenize};
use xxhash_rust::xxh3::xxh3_64;

use super::gazetteer::{Gazetteer, MAX_CLASSES, mark_window};

/// Hash buckets for the text between words.
pub const N_SEPARATORS: usize = 64;

/// Number of word shapes: letter case and character classes, times length.
pub const N_SHAPES: usize = 13 * 8;

/// Binary features per token: four for each gazetteer class, and whether it is part of an abbreviation defined in the text or of its long
/// form.
pub const N_BITS: usize = 4 * MAX_CLASSES + 2;

const SHORT_FORM: usize = 4 * MAX_CLASSES;
const LONG_FORM: usize = SHORT_FORM + 1;

/// Words with their own embedding; row 0 is for all other words.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Vocabulary {
    // Private: `row_of` is the inverse of `words`.
    words: Vec<Box<str>>,
    row_of: HashMap<Box<str>, u32>,
}

impl Vocabulary {
    /// Builds a vocabulary of the most frequent words: those with at least `min_count` occurrences, and at most `max_words` words.
    pub fn count<'a>(texts: impl IntoIterator<Item = &'a str>, min_count: usize, max_words: usize) -> Vocabulary {
        let mut counts: HashMap<Box<str>, usize> = HashMap::new();
        for text in texts {
            for token in tokenize(text) {
                *counts.entry(plain(token.span.of(text)).into()).or_default() += 1;
            }
        }
        let mut counts: Vec<(Box<str>, usize)> = counts.into_iter().filter(|(_, n)| *n >= min_count).collect();
        counts.sort_by(|left, right| right.1.cmp(&left.1).then_with(|| left.0.cmp(&right.0)));
        counts.truncate(max_words);
        Vocabulary::of(counts.into_iter().map(|(word, _)| word))
    }

    fn of(words: impl Iterator<Item = Box<str>>) -> Vocabulary {
        let words: Vec<Box<str>> = words.collect();
        let row_of = words.iter().enumerate().map(|(row, word)| (word.clone(), row as u32 + 1)).collect();
        Vocabulary { words, row_of }
    }

    /// Number of embedding rows, including that of unknown words.
    pub fn n_rows(&self) -> usize {
        self.words.len() + 1
    }

    /// One word per line.
    pub fn to_lines(&self) -> String {
        self.words.iter().fold(String::new(), |lines, word| lines + word + "\n")
    }

    /// Reads one word per line.
    pub fn from_lines(lines: &str) -> Vocabulary {
        Vocabulary::of(lines.lines().map(Into::into))
    }
}

/// A word in lower case with digits replaced by 0.
fn plain(word: &str) -> String {
    word.chars().flat_map(char::to_lowercase).map(|letter| if letter.is_ascii_digit() { '0' } else { letter }).collect()
}

/// Features of a word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Word {
    /// Its row in the vocabulary.
    pub row: u32,
    /// Hash buckets of its character n-grams of length 3 to 5.
    pub grams: Vec<u32>,
    /// Its shape.
    pub shape: u32,
    /// Group of words that are equal except for case.
    pub group: u32,
    hashes: TokenHashes,
}

/// Token features of a text.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TokenFeatures {
    /// The tokens.
    pub tokens: Vec<Token>,
    /// Index of each token's word in the [`Words`] used.
    pub words: Vec<u32>,
    /// Bucket of the text before each token and after the last; one more than tokens.
    pub separators: Vec<u32>,
    /// Binary features of each token.
    pub bits: Vec<u64>,
}

impl TokenFeatures {
    /// The features of a range of tokens.
    #[must_use]
    pub fn part(&self, tokens: std::ops::Range<usize>) -> TokenFeatures {
        TokenFeatures {
            separators: self.separators[tokens.start..=tokens.end].to_vec(),
            tokens: self.tokens[tokens.clone()].to_vec(),
            words: self.words[tokens.clone()].to_vec(),
            bits: self.bits[tokens].to_vec(),
        }
    }
}

/// Distinct words seen so far, with their features.
#[derive(Debug, Clone, Default)]
pub struct Words {
    number_of: HashMap<Box<str>, u32>,
    group_of: HashMap<Box<str>, u32>,
    words: Vec<Word>,
}

impl Words {
    /// Number of words.
    pub fn len(&self) -> usize {
        self.words.len()
    }

    /// Whether there are no words.
    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// A word by its index.
    pub fn get(&self, number: u32) -> &Word {
        &self.words[number as usize]
    }
}

/// Computes token features.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FeatureExtractor {
    /// Words with an embedding.
    pub vocabulary: Vocabulary,
    /// Known names.
    pub gazetteer: Gazetteer,
    /// Number of hash buckets for character n-grams.
    pub n_grams: usize,
}

impl FeatureExtractor {
    /// Token features of a text; new words are added to `words`.
    pub fn extract(&self, analysis: &Analysis<'_>, words: &mut Words) -> TokenFeatures {
        let (text, tokens) = (analysis.text, analysis.tokens().to_vec());
        let numbers: Vec<u32> = tokens.iter().map(|token| self.word(token.span.of(text), words)).collect();
        let mut separators = Vec::with_capacity(tokens.len() + 1);
        let mut end = 0;
        for token in &tokens {
            separators.push(separator_bucket(&text[end..token.span.start as usize], end == 0));
            end = token.span.end as usize;
        }
        separators.push(separator_bucket(&text[end..], true));
        let hashes: Vec<TokenHashes> = numbers.iter().map(|number| words.get(*number).hashes).collect();
        let mut bits = vec![0; tokens.len()];
        self.gazetteer.mark(&tokens, &hashes, &mut bits);
        self.mark_abbreviations(analysis, &hashes, &mut bits);
        TokenFeatures { tokens, words: numbers, separators, bits }
    }

    /// Copies the gazetteer classes of a long form to its abbreviation.
    fn mark_abbreviations(&self, analysis: &Analysis<'_>, hashes: &[TokenHashes], bits: &mut [u64]) {
        let tokens = analysis.tokens();
        for (short, long) in analysis.short_forms() {
            let within = |span: canonym_core::text::Span| {
                let first = tokens.partition_point(|token| token.span.start < span.start);
                first..tokens.partition_point(|token| token.span.end <= span.end).max(first)
            };
            let (short, long) = (within(*short), within(*long));
            for class in
                (0..MAX_CLASSES).filter(|class| self.gazetteer.classes(&hashes[long.clone()]) & (1 << class) != 0)
            {
                mark_window(&mut bits[short.clone()], class);
            }
            bits[short].iter_mut().for_each(|bits| *bits |= 1 << SHORT_FORM);
            bits[long].iter_mut().for_each(|bits| *bits |= 1 << LONG_FORM);
        }
    }

    fn word(&self, written: &str, words: &mut Words) -> u32 {
        if let Some(number) = words.number_of.get(written) {
            return *number;
        }
        let plain = plain(written);
        let next = words.group_of.len() as u32;
        let small: Box<str> = written.to_lowercase().into();
        let group = *words.group_of.entry(small).or_insert(next);
        let mut folded = String::new();
        fold_token_into(written, &mut folded);
        let row = self.vocabulary.row_of.get(plain.as_str()).copied().unwrap_or(0);
        let word = Word { row, grams: self.grams(&plain), shape: shape(written), group, hashes: hash_token(&folded) };
        let number = words.words.len() as u32;
        words.words.push(word);
        words.number_of.insert(written.into(), number);
        number
    }

    fn grams(&self, plain: &str) -> Vec<u32> {
        let letters: Vec<char> = std::iter::once('<').chain(plain.chars().take(MAX_CHARACTERS)).chain(['>']).collect();
        let mut grams = Vec::new();
        for n in 3..=5 {
            for run in letters.windows(n) {
                let run: String = run.iter().collect();
                grams.push((xxh3_64(run.as_bytes()) % self.n_grams.max(1) as u64) as u32);
            }
        }
        grams
    }
}

/// Maximum number of characters of a word that are used.
const MAX_CHARACTERS: usize = 40;

/// Hash bucket of the first characters between two words; runs of white space count as one space.
fn separator_bucket(between: &str, at_border: bool) -> u32 {
    let mut signs = String::new();
    if at_border {
        signs.push('^');
    }
    for sign in between.chars() {
        let sign = if sign.is_whitespace() { ' ' } else { sign };
        if !(sign == ' ' && signs.ends_with(' ')) {
            signs.push(sign);
        }
        if signs.len() >= 4 {
            break;
        }
    }
    match signs.as_str() {
        "" => 0,
        " " => 1,
        "-" => 2,
        _ => 3 + (xxh3_64(signs.as_bytes()) % (N_SEPARATORS as u64 - 3)) as u32,
    }
}

fn shape(word: &str) -> u32 {
    let letters: Vec<char> = word.chars().collect();
    let n_capitals = letters.iter().filter(|letter| letter.is_uppercase()).count();
    let first = letters.first().is_some_and(|letter| letter.is_uppercase());
    let n = letters.len();
    let written = if letters.iter().all(char::is_ascii_digit) {
        n.min(4) - 1
    } else if letters.iter().any(|letter| is_greek(*letter)) {
        4
    } else {
        match (n, n_capitals) {
            (1, 0) => 5,
            (1, _) => 6,
            (_, 0) => 7,
            (_, 1) if first => 8,
            (n, m) if n == m => 9,
            (n, m) if first && letters[n - 1] == 's' && m + 1 == n => 10,
            _ if first => 11,
            _ => 12,
        }
    };
    let length = match n {
        0..=3 => n.max(1) - 1,
        4 => 3,
        5..=6 => 4,
        7..=9 => 5,
        10..=13 => 6,
        _ => 7,
    };
    (written * 8 + length) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn extractor() -> FeatureExtractor {
        let vocabulary = Vocabulary::count(["liver disease and Liver failure", "liver"], 2, 10);
        let gazetteer = Gazetteer::build([("liver disease", 1)]);
        FeatureExtractor { vocabulary, gazetteer, n_grams: 100 }
    }

    #[test]
    fn words_without_capitals_are_one_group_and_short_forms_have_the_classes_of_their_long_forms() {
        let mut words = Words::default();
        let features = extractor().extract(&Analysis::of_text("Liver disease (LD); LD of liver."), &mut words);
        let rows: Vec<u32> = features.words.iter().map(|word| words.get(*word).row).collect();
        assert_eq!(rows, [1, 0, 0, 0, 0, 1]);
        let groups: Vec<u32> = features.words.iter().map(|word| words.get(*word).group).collect();
        assert_eq!(groups, [0, 1, 2, 2, 3, 0]);
        let long = 1 << LONG_FORM;
        let short = 1 << SHORT_FORM | 1 << 3;
        assert_eq!(features.bits, [1 | long, 4 | long, short, short, 0, 0]);
        assert_eq!(features.separators.len(), 7);
        assert_eq!(features.separators[1], 1);
    }

    #[test]
    fn a_vocabulary_comes_back_from_its_lines() {
        let vocabulary = extractor().vocabulary;
        assert_eq!(vocabulary.to_lines(), "liver\n");
        assert_eq!(Vocabulary::from_lines(&vocabulary.to_lines()), vocabulary);
    }

    #[test]
    fn every_shape_has_a_row() {
        for word in
            ["1", "12345", "α", "a", "A", "liver", "Liver", "DNA", "PCRs", "McArdle", "mRNA", "x".repeat(99).as_str()]
        {
            assert!((shape(word) as usize) < N_SHAPES, "{word}");
        }
    }
}
