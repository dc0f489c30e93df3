//! Fuzzy name search in large terminologies, through similar words.
//!
//! Names are sequences of words, and the n-grams of a name are those of its words. A search reads the posting lists of n-grams of words,
//! which are few even if names are many, to learn how much each word shares with the query. It then reads the lists of names with the most
//! similar words, the rarest first, ranks what it found by all words of each name, and compares the best names exactly.

use std::collections::HashMap;

use rayon::prelude::*;

use super::forms::{WordForms, put, take};
use super::grams::{
    Coverage, GramHit, GramIndex, GramIndexView, GramScratch, GramWeights, List, MIN_MASS, Postings, WeighedGram,
    keep_best, upper_bound,
};
use super::packed::{Offsets, U32s};

/// Maximum number of similar words whose posting lists are read.
const N_SIMILAR: usize = 256;

/// Maximum bytes of n-gram posting lists read per query.
const WORD_BUDGET: usize = 150_000;

/// Minimum cosine of a similar word and the query.
const MIN_COSINE: f32 = 0.1;

/// Postings after which no further list is read, provided the words read cover [`MIN_MASS`] of the query.
const BUDGET: usize = 300_000;

/// Minimum number of names re-ranked by all their words.
const N_COMPARED: usize = 1024;

/// Maximum number of words of a name that are counted. Names have at most 1,000 bytes; those of damaged files could have more words.
const MAX_WORDS: usize = 1024;

/// Squared query norm in fixed point. Small, because 16-bit sums count an n-gram once for each word that has it.
const SCALE: f32 = 6_000.0;

/// Names as sequences of words, ready to be written.
#[derive(Debug, Default)]
pub struct WordIndex {
    /// The distinct words, most frequent first, then in order.
    pub words: Vec<String>,
    /// Number of names that contain each word.
    pub df: Vec<u32>,
    /// Number of bytes of each list in `names`.
    pub lens: Vec<usize>,
    /// For each word the names that contain it: differences of consecutive rows less one, in bytes of seven bits.
    pub names: Vec<u8>,
    /// Number of bytes of each sequence in `rows`.
    pub row_lens: Vec<usize>,
    /// The words of each name, in bytes of seven bits.
    pub rows: Vec<u8>,
    /// Index of the words by n-grams, weighed by the number of names that contain each n-gram.
    pub grams: GramIndex,
    /// Inverse L2 norm of each name, as bits of an `f32`.
    pub inverse_norms: Vec<u32>,
}

impl WordIndex {
    /// Indexes sorted `folded` names.
    pub fn build(folded: &[&str]) -> WordIndex {
        let mut counted: HashMap<&str, (u32, u32)> = HashMap::new();
        for (row, name) in (1..).zip(folded) {
            for word in name.split(' ') {
                let (df, last) = counted.entry(word).or_default();
                *df += u32::from(*last != row);
                *last = row;
            }
        }
        let mut order: Vec<(&str, u32)> = counted.iter().map(|(word, (df, _))| (*word, *df)).collect();
        order.par_sort_unstable_by(|left, right| right.1.cmp(&left.1).then(left.0.cmp(right.0)));
        for (number, (word, _)) in (0..).zip(&order) {
            counted.insert(word, (number, 0));
        }
        let number_of = |word: &str| counted[word].0;
        let mut index = WordIndex::default();
        let (mut lists, mut lasts) = (vec![Vec::new(); order.len()], vec![u32::MAX; order.len()]);
        for (row, name) in (0..).zip(folded) {
            let before = index.rows.len();
            for number in name.split(' ').map(number_of) {
                put(number, &mut index.rows);
                let last = &mut lasts[number as usize];
                if *last != row {
                    put(row.wrapping_sub(*last) - 1, &mut lists[number as usize]);
                    *last = row;
                }
            }
            index.row_lens.push(index.rows.len() - before);
        }
        index.lens = lists.iter().map(Vec::len).collect();
        index.names = Vec::with_capacity(index.lens.iter().sum());
        for list in lists {
            index.names.extend_from_slice(&list);
        }
        let weights = GramWeights::of(folded);
        index.inverse_norms = weights.inverse_norms(folded);
        let words: Vec<&str> = order.iter().map(|(word, _)| *word).collect();
        index.grams = GramIndex::weighed(&words, &weights);
        index.df = order.iter().map(|(_, df)| *df).collect();
        index.words = words.into_iter().map(str::to_owned).collect();
        index
    }

    /// The rows of the words of each name, in order.
    pub fn sequences(&self) -> impl Iterator<Item = impl Iterator<Item = u32> + '_> {
        let mut start = 0;
        self.row_lens.iter().map(move |len| {
            let mut rest = &self.rows[start..start + len];
            start += len;
            std::iter::from_fn(move || take(&mut rest))
        })
    }
}

/// A view of an index in a mapped file.
#[derive(Debug, Clone, Copy)]
pub struct WordIndexView<'a> {
    /// The words by n-grams.
    pub words: GramIndexView<'a>,
    /// The names, with the document frequencies of n-grams.
    pub names: GramIndexView<'a>,
    /// The names as words.
    pub sequences: WordForms<'a>,
    /// See [`WordIndex::df`].
    pub df: U32s<'a>,
    /// See [`WordIndex::lens`].
    pub at: Offsets<'a>,
    /// See [`WordIndex::names`].
    pub lists: &'a [u8],
}

impl WordIndexView<'_> {
    /// The `k` names most similar to `folded` of those for which `is_wanted` holds, if given; best first, ties in row order.
    pub fn search_among(
        &self,
        folded: &str,
        k: usize,
        is_wanted: Option<&dyn Fn(u32) -> bool>,
        scratch: &mut GramScratch,
    ) -> Vec<GramHit> {
        let (folded, k) = (super::grams::clip(folded), k.min(self.names.names.len()));
        let (weighed, square) = self.words.weighed(folded, &mut scratch.grams);
        if square <= 0.0 || k == 0 {
            return Vec::new();
        }
        let touched = self.share(&weighed, SCALE / square, &mut scratch.shared);
        let similar = self.similar(&touched, square, &scratch.shared);
        let mut lists = self.lists_of(&similar, Coverage::new(&weighed), square, &scratch.shared);
        let rows = self.names.best_sums(&mut lists, N_COMPARED.max(8 * k), is_wanted, &mut scratch.sums);
        let rows = self.best_by_words(rows, 5 * k + 16, &scratch.shared);
        touched.into_iter().for_each(|word| scratch.shared[word as usize] = 0);
        self.names.ranked(folded, rows, k, scratch)
    }

    /// Adds up the squared norm that each word shares with the grams of the query, without those that many words have. Returns the words.
    fn share(&self, weighed: &[WeighedGram], scale: f32, shared: &mut Vec<u16>) -> Vec<u32> {
        shared.resize(self.sequences.words.len(), 0);
        let list = |gram: &WeighedGram| (gram.weight * gram.weight, self.words.lists.list(gram.gram));
        let mut lists: Vec<(f32, Postings<'_>)> = weighed.iter().map(list).collect();
        let cost = |(square, list): &(f32, Postings<'_>)| (1 + list.n_bytes()) as f32 / square;
        lists.sort_by(|left, right| cost(left).total_cmp(&cost(right)));
        let mut touched = Vec::with_capacity(WORD_BUDGET);
        let mut n_read = 0;
        for (square, list) in lists {
            n_read += list.n_bytes();
            if n_read > WORD_BUDGET && !touched.is_empty() {
                break;
            }
            let weight = ((square * scale) as u16).max(1);
            list.for_each(|word| {
                if let Some(shared) = shared.get_mut(word as usize) {
                    if *shared == 0 {
                        touched.push(word);
                    }
                    *shared = shared.saturating_add(weight);
                }
            });
        }
        touched
    }

    /// The words most similar to the query, the rarest first.
    fn similar(&self, touched: &[u32], square: f32, shared: &[u16]) -> Vec<u32> {
        let least = MIN_COSINE * square.sqrt() * SCALE / square;
        let score = |word: &u32| {
            let (row, shared) = (*word as usize, f32::from(shared[*word as usize]));
            let can_reach = |code: &u8| shared * upper_bound(*code) >= least;
            if !self.words.norm_bounds.get(row).is_none_or(can_reach) {
                return None;
            }
            let score = shared * f32::from_bits(self.words.inverse_norms.get(row));
            (score >= least).then_some((score, *word))
        };
        let mut scored: Vec<(f32, u32)> = touched.iter().filter_map(score).collect();
        keep_best(&mut scored, N_SIMILAR);
        let mut words: Vec<u32> = scored.into_iter().map(|(_, word)| word).collect();
        words.sort_unstable_by_key(|word| (self.df.get(*word as usize), *word));
        words
    }

    /// Posting lists to read, rarest word first.
    fn lists_of(&self, similar: &[u32], mut covered: Coverage, square: f32, shared: &[u16]) -> Vec<List<'_>> {
        let mut lists = Vec::new();
        let mut n_read = 0;
        for word in similar {
            let df = self.df.get(*word as usize) as usize;
            if n_read + df > BUDGET && covered.mass >= MIN_MASS * square {
                break;
            }
            n_read += df;
            covered.add(self.sequences.words.bytes(*word as usize));
            let list = self.lists.get(self.at.range(*word as usize)).unwrap_or_default();
            if !list.is_empty() {
                lists.push(List::new(Postings::Gaps(list), shared[*word as usize]));
            }
        }
        lists
    }

    /// The `k` rows whose words share most with the query.
    fn best_by_words(&self, rows: Vec<u32>, k: usize, shared: &[u16]) -> Vec<u32> {
        if rows.len() <= k {
            return rows;
        }
        let mut counted = Vec::new();
        let score = |row: u32| {
            counted.clear();
            let mut sum = 0;
            for word in self.sequences.words_of(row as usize).take(MAX_WORDS) {
                let shared = shared.get(word as usize).copied().unwrap_or_default();
                if shared > 0 && !counted.contains(&word) {
                    counted.push(word);
                    sum += u32::from(shared);
                }
            }
            (sum as f32 * f32::from_bits(self.names.inverse_norms.get(row as usize)), row)
        };
        let mut scored: Vec<(f32, u32)> = rows.into_iter().map(score).collect();
        keep_best(&mut scored, k);
        scored.into_iter().map(|(_, row)| row).collect()
    }
}

/// Search by n-grams in either kind of index.
#[derive(Debug, Clone, Copy)]
pub struct NameSearch<'a> {
    /// The names, with posting lists of their n-grams unless there is an index of words.
    pub(crate) names: GramIndexView<'a>,
    /// The names by their words.
    pub(crate) words: Option<WordIndexView<'a>>,
}

impl NameSearch<'_> {
    /// The `k` names most similar to `folded`, best first; ties in row order.
    pub fn search(&self, folded: &str, k: usize, scratch: &mut GramScratch) -> Vec<GramHit> {
        self.search_among(folded, k, None, scratch)
    }

    /// Like [`NameSearch::search`], restricted to rows for which `is_wanted` holds, if given.
    pub fn search_among(
        &self,
        folded: &str,
        k: usize,
        is_wanted: Option<&dyn Fn(u32) -> bool>,
        scratch: &mut GramScratch,
    ) -> Vec<GramHit> {
        match &self.words {
            Some(words) => words.search_among(folded, k, is_wanted, scratch),
            None => self.names.search_among(folded, k, is_wanted, scratch),
        }
    }

    /// Cosine of `folded` and each of `rows`.
    pub fn cosines(&self, folded: &str, rows: &[u32], scratch: &mut GramScratch) -> Vec<f32> {
        self.names.cosines(folded, rows, scratch)
    }
}
