//! Learns a wordpiece vocabulary by byte-pair encoding: repeatedly merges the most frequent pair of adjacent wordpieces.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap, HashMap, HashSet};

use tokenizers::pre_tokenizers::bert::BertPreTokenizer;
use tokenizers::{
    NormalizedString, Normalizer, OffsetReferential, OffsetType, PreTokenizedString, PreTokenizer, normalizers,
};

use super::{BertNormalizer, INSIDE, LONGEST_WORD};

/// Maximum number of distinct characters; rarer ones are unknown.
const MAX_CHARACTERS: usize = 1000;

type Pair = (u32, u32);

/// Words as wordpieces, and counts of adjacent pairs.
struct Text {
    words: Vec<(Vec<u32>, u64)>,
    counts: HashMap<Pair, u64>,
    /// Words in which a pair occurs or has occurred.
    words_of: HashMap<Pair, BTreeSet<u32>>,
}

/// Counts the words of texts, divided and normalised as for an uncased BERT.
pub fn count<'a>(texts: impl Iterator<Item = &'a str>) -> HashMap<String, u64> {
    let normalizer = normalizers::BertNormalizer::from(BertNormalizer::UNCASED);
    let mut counts: HashMap<String, u64> = HashMap::new();
    for text in texts {
        let mut text = NormalizedString::from(text);
        normalizer.normalize(&mut text).expect("BERT normalises any text");
        let mut words = PreTokenizedString::from(text);
        BertPreTokenizer.pre_tokenize(&mut words).expect("BERT splits any text");
        for (word, ..) in words.get_splits(OffsetReferential::Normalized, OffsetType::None) {
            *counts.entry(word.to_owned()).or_default() += 1;
        }
    }
    counts
}

/// Learns at most `size` wordpieces: `special` ones, then characters, then merges in order.
pub fn learn(counts: HashMap<String, u64>, special: &[&str], size: usize) -> Vec<String> {
    let mut counts: Vec<(String, u64)> =
        counts.into_iter().filter(|(word, _)| word.chars().count() <= LONGEST_WORD).collect();
    counts.sort_unstable();
    let mut wordpieces: Vec<String> = special.iter().map(|piece| (*piece).to_owned()).collect();
    let letters = letters_of(&counts, MAX_CHARACTERS.min(size.saturating_sub(wordpieces.len())));
    let row_of: HashMap<&str, u32> = letters.iter().map(String::as_str).zip(wordpieces.len() as u32..).collect();
    let mut text = Text { words: Vec::new(), counts: HashMap::new(), words_of: HashMap::new() };
    for (word, count) in &counts {
        let rows: Option<Vec<u32>> = spelled(word).map(|letter| row_of.get(letter.as_str()).copied()).collect();
        if let Some(rows) = rows {
            text.add(rows, *count);
        }
    }
    wordpieces.extend(letters);
    let mut known: HashSet<String> = wordpieces.iter().cloned().collect();
    let mut queue: BinaryHeap<(u64, Reverse<Pair>)> =
        text.counts.iter().map(|(pair, count)| (*count, Reverse(*pair))).collect();
    while let Some((count, Reverse(pair))) = queue.pop() {
        if wordpieces.len() >= size || count < 2 {
            break;
        }
        // The count may be outdated because of other merges.
        let now = text.counts.get(&pair).copied().unwrap_or(0);
        if now != count {
            if now > 0 {
                queue.push((now, Reverse(pair)));
            }
            continue;
        }
        let right = &wordpieces[pair.1 as usize];
        let joined = format!("{}{}", wordpieces[pair.0 as usize], right.strip_prefix(INSIDE).unwrap_or(right));
        let row = wordpieces.len() as u32;
        let changed = text.join(pair, row);
        if known.insert(joined.clone()) {
            wordpieces.push(joined);
        } else {
            // Two pairs may spell the same wordpiece; the second merge reuses its row.
            let first = wordpieces.iter().position(|piece| *piece == joined).unwrap_or(0) as u32;
            let moved = text.rename(row, first, &changed);
            queue.extend(moved.into_iter().map(|pair| (text.counts[&pair], Reverse(pair))));
            continue;
        }
        queue.extend(changed.iter().filter_map(|pair| text.counts.get(pair).map(|count| (*count, Reverse(*pair)))));
    }
    wordpieces
}

/// The characters of a word, with continuation markers.
fn spelled(word: &str) -> impl Iterator<Item = String> + '_ {
    word.char_indices().map(|(at, letter)| if at == 0 { letter.to_string() } else { format!("{INSIDE}{letter}") })
}

/// The most frequent characters, sorted.
fn letters_of(counts: &[(String, u64)], max: usize) -> Vec<String> {
    let mut letters: HashMap<String, u64> = HashMap::new();
    for (word, count) in counts {
        spelled(word).for_each(|letter| *letters.entry(letter).or_default() += count);
    }
    let mut letters: Vec<(Reverse<u64>, String)> =
        letters.into_iter().map(|(letter, count)| (Reverse(count), letter)).collect();
    letters.sort_unstable();
    letters.truncate(max);
    let mut letters: Vec<String> = letters.into_iter().map(|(_, letter)| letter).collect();
    letters.sort_unstable();
    letters
}

fn pairs(rows: &[u32]) -> impl Iterator<Item = Pair> + '_ {
    rows.windows(2).map(|pair| (pair[0], pair[1]))
}

impl Text {
    fn add(&mut self, rows: Vec<u32>, count: u64) {
        let word = self.words.len() as u32;
        for pair in pairs(&rows) {
            *self.counts.entry(pair).or_default() += count;
            self.words_of.entry(pair).or_default().insert(word);
        }
        self.words.push((rows, count));
    }

    /// Merges `pair` into `row` everywhere; returns the new pairs.
    fn join(&mut self, pair: Pair, row: u32) -> Vec<Pair> {
        let mut came = BTreeSet::new();
        for word in self.words_of.remove(&pair).unwrap_or_default() {
            let old = self.words[word as usize].0.clone();
            let mut new = Vec::with_capacity(old.len());
            let mut at = 0;
            while at < old.len() {
                let here = at + 1 < old.len() && (old[at], old[at + 1]) == pair;
                new.push(if here { row } else { old[at] });
                at += if here { 2 } else { 1 };
            }
            came.extend(pairs(&new).filter(|pair| pair.0 == row || pair.1 == row));
            self.replace(word, new);
        }
        self.counts.remove(&pair);
        came.into_iter().collect()
    }

    /// Replaces `from` by `to` in the words of these pairs; returns the new pairs.
    fn rename(&mut self, from: u32, to: u32, changed: &[Pair]) -> Vec<Pair> {
        let words: BTreeSet<u32> =
            changed.iter().filter_map(|pair| self.words_of.get(pair)).flatten().copied().collect();
        let mut came = BTreeSet::new();
        for word in words {
            let new: Vec<u32> =
                self.words[word as usize].0.iter().map(|row| if *row == from { to } else { *row }).collect();
            came.extend(pairs(&new).filter(|pair| pair.0 == to || pair.1 == to));
            self.replace(word, new);
        }
        came.into_iter().collect()
    }

    fn replace(&mut self, word: u32, new: Vec<u32>) {
        let (old, count) = (std::mem::take(&mut self.words[word as usize].0), self.words[word as usize].1);
        for pair in pairs(&old) {
            if let Some(known) = self.counts.get_mut(&pair) {
                *known = known.saturating_sub(count);
            }
        }
        for pair in pairs(&new) {
            *self.counts.entry(pair).or_default() += count;
            self.words_of.entry(pair).or_default().insert(word);
        }
        self.words[word as usize].0 = new;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frequent_neighbours_are_joined_first() {
        let counts = [("hug", 10), ("pug", 5), ("pun", 12), ("bun", 4), ("hugs", 5)];
        let counts: HashMap<String, u64> = counts.into_iter().map(|(word, count)| (word.to_owned(), count)).collect();
        let learned = learn(counts, &["[UNK]"], 14);
        // Characters: b h p ##g ##n ##s ##u; then the merges ug (20), hug (15), un (16) by their counts.
        assert_eq!(learned[..8], ["[UNK]", "##g", "##n", "##s", "##u", "b", "h", "p"]);
        assert_eq!(learned[8..], ["##ug", "##un", "hug", "pun", "pug", "hugs"]);
    }

    #[test]
    fn what_comes_once_is_not_joined_and_the_size_is_kept() {
        let once: HashMap<String, u64> = HashMap::from([("ab".to_owned(), 1)]);
        assert_eq!(learn(once.clone(), &["[UNK]"], 10), ["[UNK]", "##b", "a"]);
        assert_eq!(learn(once, &["[UNK]"], 2).len(), 2);
        assert_eq!(learn(HashMap::new(), &["[UNK]"], 5), ["[UNK]"]);
    }
}
