//! How strongly a word suggests each topic, learned from the cues of the sense inventory and from texts with its forms.
//!
//! A word that is a cue of a sense, or stands in a text with a form in that sense (`experiments/everyday/sense-contexts.tsv`), counts for the
//! topics of that sense. The score of a word for a topic is the logarithm of the topic's
//! share of these counts over its share for all words, so words of any sense help with all others of the same topic. The scores are
//! computed when the inventory changes, by the test of this module, and stored in `assets/word-topics.bin`: records of the low 32 bits
//! of the hash of the canonical word and one signed byte for each topic, sorted by hash.

const SCORES: &[u8] = include_bytes!("../../../assets/word-topics.bin");

/// Maximum absolute score; stored as 127.
const MAX_SCORE: f32 = 2.0;

/// Size of the hash in a record, in bytes.
const KEY: usize = 4;

/// Number of leading bits of a hash that select a bucket of records.
const BUCKET_BITS: u32 = 16;

/// The scores of all words for `n_topics` topics.
#[derive(Debug, Clone, Default)]
pub(super) struct WordTopics<'a> {
    bytes: &'a [u8],
    n_topics: usize,
    /// First record of each bucket, and the number of records.
    starts: Vec<u32>,
}

impl WordTopics<'static> {
    /// The embedded scores.
    pub(super) fn embedded(n_topics: usize) -> WordTopics<'static> {
        let mut scores = WordTopics { bytes: SCORES, n_topics, starts: vec![0; (1 << BUCKET_BITS) + 1] };
        for row in 0..SCORES.len() / (KEY + n_topics) {
            let record = scores.record(row);
            let key = u32::from_le_bytes([record[0], record[1], record[2], record[3]]);
            scores.starts[(key >> (u32::BITS - BUCKET_BITS)) as usize + 1] += 1;
        }
        for bucket in 1..scores.starts.len() {
            scores.starts[bucket] += scores.starts[bucket - 1];
        }
        scores
    }
}

impl<'a> WordTopics<'a> {
    fn record(&self, row: usize) -> &'a [u8] {
        let width = KEY + self.n_topics;
        &self.bytes[row * width..(row + 1) * width]
    }

    /// Scores of a word by topic, for [`WordTopics::score`]; `None` for an unknown word.
    pub(super) fn of(&self, word_hash: u64) -> Option<&'a [u8]> {
        let key = word_hash as u32;
        let bucket = (key >> (u32::BITS - BUCKET_BITS)) as usize;
        let rows = *self.starts.get(bucket)? as usize..*self.starts.get(bucket + 1)? as usize;
        rows.map(|row| self.record(row))
            .find(|record| record.starts_with(&key.to_le_bytes()))
            .map(|record| &record[KEY..])
    }

    /// The score of a word for one topic.
    pub(super) fn score(scores: &[u8], topic: u8) -> f32 {
        f32::from(scores[usize::from(topic)].cast_signed()) * (MAX_SCORE / 127.0)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::super::senses::{Sense, SenseInventory};
    use super::*;
    use crate::kb::lexicon::hash_form;
    use crate::text::normalise::fold;
    use crate::text::words::is_linking_word;

    /// Pseudo-count of the shares of topics over all words.
    const PRIOR: f32 = 3.0;
    /// Minimum length of a word.
    const MIN_LENGTH: usize = 3;

    /// Hash of the canonical form of a text of one word.
    fn hash_of(word: &str) -> Option<u64> {
        match hash_form(&fold(word)).as_slice() {
            [one] => Some(one.canonical),
            _ => None,
        }
    }

    /// Form, first long form and text, one a line; not part of the package.
    const CONTEXTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../experiments/everyday/sense-contexts.tsv");

    /// The words of a text with a form, without the form.
    fn words_of(form: &str, text: &str) -> BTreeSet<u64> {
        let words = text.split(|letter: char| !letter.is_alphanumeric());
        let is_word = |word: &&str| word.len() >= MIN_LENGTH && !is_linking_word(word) && !form.contains(*word);
        words.filter(is_word).filter_map(hash_of).collect()
    }

    fn computed(inventory: &SenseInventory, contexts: &str) -> Vec<u8> {
        let n = inventory.n_topics;
        let mut counts: BTreeMap<u32, Vec<f32>> = BTreeMap::new();
        let mut total = vec![0.0; n];
        let mut add = |word: u64, topics: &[u8]| {
            let of = counts.entry(word as u32).or_insert_with(|| vec![0.0; n]);
            for topic in topics {
                of[usize::from(*topic)] += 1.0 / topics.len() as f32;
                total[usize::from(*topic)] += 1.0 / topics.len() as f32;
            }
        };
        for (form, sense) in inventory.all().filter(|(_, sense)| !sense.topics().is_empty()) {
            let is_word = |cue: &&str| {
                cue.len() >= MIN_LENGTH && !cue.contains(' ') && !is_linking_word(cue) && **cue != form.to_lowercase()
            };
            sense.cues().filter(is_word).filter_map(hash_of).for_each(|word| add(word, sense.topics()));
        }
        let key = |form: &str, sense: &str| (form.to_owned(), sense.to_owned());
        let first = |sense: &Sense| sense.long_forms().next().unwrap_or("-").to_owned();
        let senses: BTreeMap<(String, String), &Sense> =
            inventory.all().map(|(form, sense)| (key(form, &first(sense)), sense)).collect();
        for line in contexts.lines() {
            let [form, sense, text] = *line.split('\t').collect::<Vec<_>>() else { panic!("three columns: {line}") };
            let Some(sense) = senses.get(&key(form, sense)).filter(|sense| !sense.topics().is_empty()) else {
                continue;
            };
            words_of(form, text).into_iter().for_each(|word| add(word, sense.topics()));
        }
        let sum: f32 = total.iter().sum();
        let mut bytes = Vec::new();
        for (hash, of) in counts {
            let all: f32 = of.iter().sum();
            bytes.extend(hash.to_le_bytes());
            for (count, total) in of.iter().zip(&total) {
                let usual = (total / sum).max(1e-4);
                let score = ((count + PRIOR * usual) / (all + PRIOR) / usual).ln().clamp(-MAX_SCORE, MAX_SCORE);
                bytes.push(((score * 127.0 / MAX_SCORE).round() as i8).cast_unsigned());
            }
        }
        bytes
    }

    #[test]
    fn scores_are_those_of_the_inventory() {
        let Ok(contexts) = std::fs::read_to_string(CONTEXTS) else {
            eprintln!("skipped: {CONTEXTS} is missing");
            return;
        };
        let bytes = computed(&SenseInventory::embedded(), &contexts);
        if std::env::var_os("UPDATE_EXPECT").is_some() {
            std::fs::write(concat!(env!("CARGO_MANIFEST_DIR"), "/assets/word-topics.bin"), &bytes).unwrap();
            return;
        }
        assert!(bytes == SCORES, "the inventory has changed: run this test with UPDATE_EXPECT=1");
    }

    #[test]
    fn words_score_highest_for_their_topics() {
        let inventory = SenseInventory::embedded();
        let scores = &inventory.word_topics;
        let best = |word: &str| {
            let of = scores.of(hash_of(word)?)?;
            let topics = 0..inventory.n_topics as u8;
            topics.max_by(|one, other| WordTopics::score(of, *one).total_cmp(&WordTopics::score(of, *other)))
        };
        assert_eq!(best("election"), inventory.topic("everyday"));
        assert_eq!(best("biopsy").is_some(), best("xyzzy").is_none());
        assert_ne!(best("seizure"), inventory.topic("everyday"));
    }
}
