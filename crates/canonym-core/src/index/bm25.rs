//! BM25 ranking of texts (Robertson and Zaragoza 2009).
//!
//! A text is a list of words separated by spaces. For a word with frequency `tf` in a text of `length` words, and
//! document frequency `df` among `n` texts:
//!
//! ```text
//! weight = ln(1 + (n − df + 0.5) / (df + 0.5)) · tf · (k1 + 1) / (tf + k1 · (1 − b + b · length / mean length))
//! ```
//!
//! The 1 in the logarithm keeps the weights of frequent words positive. The score of a text is the sum over query
//! words, with repetitions. Weights are computed when the index is built, so a search only adds posting lists.

use std::collections::{BTreeMap, HashMap};

use serde::{Deserialize, Serialize};

use crate::{Error, Result};

/// The BM25 parameters.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Bm25Config {
    /// Term-frequency saturation.
    pub k1: f32,
    /// Length normalisation, 0 to 1.
    pub b: f32,
}

impl Default for Bm25Config {
    fn default() -> Bm25Config {
        Bm25Config { k1: 1.2, b: 0.75 }
    }
}

impl Bm25Config {
    /// Checks that weights are finite and positive.
    pub fn check(&self) -> Result<()> {
        if self.k1 >= 0.0 && self.k1.is_finite() && (0.0..=1.0).contains(&self.b) {
            return Ok(());
        }
        let error = Error::invalid(format!("invalid BM25 parameters k1 = {}, b = {}", self.k1, self.b));
        Err(error.with_hint("`k1` must be at least 0 and `b` from 0 to 1; 1.2 and 0.75 are typical"))
    }
}

/// An in-memory index.
#[derive(Debug)]
pub struct Bm25Index {
    word_rows: HashMap<String, u32>,
    /// Start of the postings of each word; one more for the end.
    at: Vec<usize>,
    /// Rows that contain a word, ascending, with its weight there.
    postings: Vec<(u32, f32)>,
    n_rows: usize,
}

/// A text with its score.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Hit {
    /// Row of the text.
    pub row: u32,
    /// Its score, positive.
    pub score: f32,
}

/// Accumulators, reused between searches.
#[derive(Debug, Default)]
pub struct Bm25Scratch {
    // Private, because all sums must be 0 between searches.
    sums: Vec<f32>,
}

impl Bm25Index {
    /// Indexes `texts`; rows are their positions.
    pub fn build<'a>(texts: impl IntoIterator<Item = &'a str>, config: &Bm25Config) -> Bm25Index {
        let mut word_rows: HashMap<String, u32> = HashMap::new();
        let mut n_uses: Vec<(u32, u32, u32)> = Vec::new();
        let mut lengths: Vec<u32> = Vec::new();
        let mut n_of_word = BTreeMap::new();
        for (row, text) in texts.into_iter().enumerate() {
            n_of_word.clear();
            for word in words(text) {
                let next = word_rows.len() as u32;
                let word = match word_rows.get(word) {
                    Some(word) => *word,
                    None => *word_rows.entry(word.to_owned()).or_insert(next),
                };
                *n_of_word.entry(word).or_insert(0) += 1;
            }
            lengths.push(n_of_word.values().sum());
            n_uses.extend(n_of_word.iter().map(|(word, n)| (*word, row as u32, *n)));
        }
        let mut at = vec![0; word_rows.len() + 1];
        n_uses.iter().for_each(|(word, ..)| at[*word as usize + 1] += 1);
        let n = lengths.len() as f32;
        let inverse: Vec<f32> =
            at[1..].iter().map(|df| (1.0 + (n - *df as f32 + 0.5) / (*df as f32 + 0.5)).ln()).collect();
        for word in 1..at.len() {
            at[word] += at[word - 1];
        }
        let mean = lengths.iter().map(|length| f64::from(*length)).sum::<f64>() as f32 / n.max(1.0);
        let Bm25Config { k1, b } = *config;
        let mut next = at.clone();
        let mut postings = vec![(0, 0.0); n_uses.len()];
        for (word, row, n) in n_uses {
            let (tf, length) = (n as f32, lengths[row as usize] as f32);
            let weight = inverse[word as usize] * tf * (k1 + 1.0) / (tf + k1 * (1.0 - b + b * length / mean));
            postings[next[word as usize]] = (row, weight);
            next[word as usize] += 1;
        }
        Bm25Index { word_rows, at, postings, n_rows: lengths.len() }
    }

    /// The texts that share a word with the query, unordered.
    pub fn search(&self, query: &str, scratch: &mut Bm25Scratch) -> Vec<Hit> {
        scratch.sums.resize(self.n_rows, 0.0);
        let mut hits: Vec<Hit> = Vec::new();
        for word in words(query) {
            for (row, weight) in self.postings_of(word) {
                let sum = &mut scratch.sums[*row as usize];
                if *sum == 0.0 {
                    hits.push(Hit { row: *row, score: 0.0 });
                }
                *sum += weight;
            }
        }
        hits.iter_mut().for_each(|hit| hit.score = std::mem::take(&mut scratch.sums[hit.row as usize]));
        hits
    }

    /// Weight of a word in a text; 0 if absent.
    pub fn weight(&self, word: &str, row: u32) -> f32 {
        let postings = self.postings_of(word);
        postings.binary_search_by_key(&row, |(row, _)| *row).map_or(0.0, |index| postings[index].1)
    }

    fn postings_of(&self, word: &str) -> &[(u32, f32)] {
        let word = self.word_rows.get(word).map(|word| *word as usize);
        word.map_or(&[], |word| &self.postings[self.at[word]..self.at[word + 1]])
    }
}

/// The words of a text.
pub fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(' ').filter(|word| !word.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXTS: [&str; 4] = ["liver disease", "fatty liver disease of the liver", "acute disease", ""];

    #[test]
    fn scores_are_those_of_the_formula() {
        let index = Bm25Index::build(TEXTS, &Bm25Config::default());
        let mut scratch = Bm25Scratch::default();
        let mut hits = index.search("liver disease fever", &mut scratch);
        hits.sort_by_key(|hit| hit.row);
        let mean = 10.0 / 4.0;
        let weight = |df: f64, tf: f64, length: f64| {
            let inverse = (1.0 + (4.0 - df + 0.5) / (df + 0.5)).ln();
            inverse * tf * 2.2 / (tf + 1.2 * (0.25 + 0.75 * length / mean))
        };
        let expected = [
            weight(2.0, 1.0, 2.0) + weight(3.0, 1.0, 2.0),
            weight(2.0, 2.0, 6.0) + weight(3.0, 1.0, 6.0),
            weight(3.0, 1.0, 2.0),
        ];
        assert_eq!(hits.iter().map(|hit| hit.row).collect::<Vec<_>>(), [0, 1, 2]);
        for (hit, expected) in hits.iter().zip(expected) {
            assert!((f64::from(hit.score) - expected).abs() < 1e-5, "{} {expected}", hit.score);
        }
        assert!((f64::from(index.weight("liver", 1)) - weight(2.0, 2.0, 6.0)).abs() < 1e-5);
        assert_eq!((index.weight("liver", 2), index.weight("fever", 0)), (0.0, 0.0));
    }

    #[test]
    fn earlier_searches_do_not_matter() {
        let index = Bm25Index::build(TEXTS, &Bm25Config { k1: 0.9, b: 0.4 });
        let mut scratch = Bm25Scratch::default();
        let first = index.search("acute liver liver", &mut scratch);
        index.search("fatty disease", &mut scratch);
        assert_eq!(index.search("acute liver liver", &mut scratch), first);
        let twice = index.search("liver", &mut scratch)[0].score * 2.0;
        assert_eq!(first.iter().find(|hit| hit.row == 0).unwrap().score, twice);
        assert!(index.search("", &mut scratch).is_empty());
        assert!(Bm25Index::build([], &Bm25Config::default()).search("liver", &mut scratch).is_empty());
    }
}
