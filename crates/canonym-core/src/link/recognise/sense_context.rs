//! Context of a short form or word of the sense inventory: cues around it, topics of the words near it and of the document.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ops::Range;

use xxhash_rust::xxh3::xxh3_64;

use super::scan::Word;
use super::senses::{Phrase, Sense, SenseInventory};
use super::word_topics::WordTopics;

/// Number of bits of the filter of words in a text.
const N_BITS: usize = 1 << 14;

fn bit(hash: u64) -> usize {
    hash as usize % N_BITS
}

/// Window of near cues: words on either side.
const NEAR_WINDOW: usize = 20;
/// Maximum number of uses per form that are examined, so that time is linear in the length of the text.
const MAX_USES: usize = 64;
/// Weights of a near cue and of a cue elsewhere in the document.
const CUE_WEIGHTS: (f32, f32) = (4.0, 0.6);
/// Weight of the logarithm of the prior of a sense.
const PRIOR_WEIGHT: f32 = 0.7;
/// Weight of the topics of the words near the form.
const NEAR_TOPIC_WEIGHT: f32 = 0.6;
/// Maximum of their weighted score, for a sense with topics and for one of general language.
const MAX_NEAR_TOPICS: (f32, f32) = (1.5, 1.0);
/// Maximum of the weighted score against a sense, if the document has no words of a specific topic.
const MAX_OFF_TOPIC: f32 = 4.0;
/// Number of topic words in the document that reduces this maximum to 1/e, except for a sense of general language: in a
/// post on an illness, ordinary words near an organ say little.
const OFF_TOPIC_DECAY: f32 = 4.0;
/// Upper bound of the cue score.
const MAX_CUE_SCORE: f32 = 7.0;
/// Weight of a cue that contains the form.
const COLLOCATION_WEIGHT: f32 = 5.0;
/// Weight of the document topic.
const TOPIC_WEIGHT: f32 = 0.9;
/// Weight of an occurrence of the long form in the document.
const LONG_FORM_WEIGHT: f32 = 4.0;
/// Number of words of a topic at which a document counts as being on that topic.
const ENOUGH_TOPIC_WORDS: f32 = 4.0;
/// Document lengths in words between which this weight rises linearly from zero to its full value.
const ENOUGH_WORDS: (f32, f32) = (6.0, 14.0);
/// Number of topic words that reduces this weight to 1/e.
const SPECIFIC_DECAY: f32 = 1.0;

/// Context of the forms in a document.
pub(super) struct DocumentContext<'a> {
    inventory: &'a SenseInventory,
    /// Hashes of the roots of the words, in order.
    roots: Vec<u64>,
    /// Topic scores of the known words, in order.
    word_topics: Vec<Option<&'static [u8]>>,
    /// Whether each word starts with a digit.
    is_number: Vec<bool>,
    /// Hashes of the roots with their positions, sorted.
    positions: Vec<(u64, u32)>,
    /// The first and last positions of each phrase that was looked up in the whole document.
    ends: RefCell<HashMap<*const Phrase, Option<(usize, usize)>>>,
    /// Bit set of root hashes, a pre-filter; most cues do not occur in a text.
    has: [u64; N_BITS / 64],
    /// For each topic, the score of the document relative to the mean topic.
    topics: Vec<f32>,
    /// Probability that the document is outside medicine and biology: long enough, with few words of any specific
    /// topic.
    pub(super) general: f32,
    /// Maximum score of the words near a form against one of its senses.
    max_off_topic: f32,
}

impl<'a> DocumentContext<'a> {
    pub(super) fn new(text: &str, words: &[Word], inventory: &'a SenseInventory) -> DocumentContext<'a> {
        let mut small = String::new();
        let mut counts = vec![0.0f32; inventory.n_topics];
        let mut n_specific = 0;
        for word in words {
            small.clear();
            let written = word.token.span.of(text);
            match written.is_ascii() {
                true => small.extend(written.bytes().map(|byte| char::from(byte.to_ascii_lowercase()))),
                false => small.extend(written.chars().flat_map(char::to_lowercase)),
            }
            if let Some(topics) = inventory.topics_of.get(&xxh3_64(small.as_bytes())) {
                let weight = 1.0 / topics.len() as f32;
                topics.iter().for_each(|topic| counts[usize::from(*topic)] += weight);
                n_specific += usize::from(topics.iter().all(|topic| Some(*topic) != inventory.everyday));
            }
        }
        let is_number = words.iter().map(|word| word.token.span.of(text).starts_with(|of: char| of.is_ascii_digit()));
        let is_number = is_number.collect();
        let roots: Vec<u64> = words.iter().map(|word| word.hashes.root).collect();
        let word_topics = words.iter().map(|word| inventory.word_topics.of(word.hashes.canonical)).collect();
        let mut positions: Vec<(u64, u32)> = roots.iter().copied().zip(0..).collect();
        positions.sort_unstable();
        let mut has = [0; N_BITS / 64];
        positions.iter().for_each(|(hash, _)| has[bit(*hash) / 64] |= 1 << (bit(*hash) % 64));
        let total: f32 = counts.iter().sum();
        let mean = (total + 1.0) / inventory.n_topics.max(1) as f32;
        let trust = (total / ENOUGH_TOPIC_WORDS).min(1.0);
        let topics = counts.iter().map(|count| trust * ((count + 0.5) / (mean + 0.5)).ln()).collect();
        let (few, enough) = ENOUGH_WORDS;
        let length_weight = ((words.len() as f32 - few) / (enough - few)).clamp(0.0, 1.0);
        let general = length_weight * (-(n_specific as f32) / SPECIFIC_DECAY).exp();
        let max_off_topic = MAX_OFF_TOPIC * (-(n_specific as f32) / OFF_TOPIC_DECAY).exp();
        let ends = RefCell::default();
        DocumentContext {
            inventory,
            roots,
            word_topics,
            is_number,
            positions,
            ends,
            has,
            topics,
            general,
            max_off_topic,
        }
    }

    /// Whether a word with this root may occur.
    fn may_have(&self, hash: u64) -> bool {
        self.has[bit(hash) / 64] & 1 << (bit(hash) % 64) != 0
    }

    /// The occurrences of the words with this root, sorted by position.
    fn uses(&self, hash: u64) -> &[(u64, u32)] {
        if !self.may_have(hash) {
            return &[];
        }
        let start = self.positions.partition_point(|(one, _)| *one < hash);
        let n = self.positions[start..].partition_point(|(one, _)| *one == hash);
        &self.positions[start..start + n]
    }

    /// The positions at which all words of a phrase occur, with its anchor at one of `uses`.
    fn positions<'b>(&'b self, phrase: &'b Phrase, uses: &'b [(u64, u32)]) -> impl Iterator<Item = usize> + 'b {
        let positions = uses.iter().take(MAX_USES).filter_map(|(_, at)| (*at as usize).checked_sub(phrase.anchor));
        positions.filter(|position| self.roots[*position..].starts_with(&phrase.roots))
    }

    /// The first and the last position of a phrase with its anchor at one of `uses`, looked up once a document.
    fn ends(&self, phrase: &'a Phrase, uses: &[(u64, u32)]) -> Option<(usize, usize)> {
        *self.ends.borrow_mut().entry(std::ptr::from_ref(phrase)).or_insert_with(|| {
            let mut positions = self.positions(phrase, uses);
            let first = positions.next()?;
            Some((first, positions.last().unwrap_or(first)))
        })
    }

    /// Log-linear score of a sense for the form at some words, an unnormalised log-probability.
    pub(super) fn score(&self, sense: &'a Sense, at: &Range<usize>, near_words: &[&[u8]]) -> f32 {
        let (near, far) = CUE_WEIGHTS;
        let mut cues = 0.0;
        let mut collocation = 0.0;
        let prepared = sense.prepared();
        let form = &self.roots[at.clone()];
        cues += if prepared.has_number && self.is_number_after(at.end) { near } else { 0.0 };
        for (cue, anchor) in prepared.anchors.iter().enumerate().filter(|(_, anchor)| self.may_have(**anchor)) {
            let (cue, uses) = (&prepared.cues[cue], self.uses(*anchor));
            if uses.is_empty() {
                continue;
            }
            // The form itself is not a cue, but a cue may extend beyond it.
            let is_other = |position: &usize| !at.contains(position) || !at.contains(&(position + cue.roots.len() - 1));
            let (start, end) = (at.start + cue.anchor, at.end + cue.anchor);
            let from = uses.partition_point(|(_, position)| (*position as usize) + NEAR_WINDOW < start);
            let until = uses[from..].iter().take(MAX_USES);
            let n_near = until.take_while(|(_, position)| (*position as usize) < end + NEAR_WINDOW).count();
            // Cues that contain the form, such as `a stroke of luck`.
            let holds = |position: &usize| *position < at.end && at.start < position + cue.roots.len();
            let around: Vec<usize> = self.positions(cue, &uses[from..from + n_near]).filter(is_other).collect();
            // `hearing aids` elsewhere says nothing about `AIDS` here.
            let has_form = || cue.roots.windows(form.len()).any(|words| words == form);
            if around.iter().any(holds) {
                collocation = COLLOCATION_WEIGHT;
            } else if !has_form() {
                let elsewhere =
                    || self.ends(cue, uses).is_some_and(|(first, last)| is_other(&first) || is_other(&last));
                cues += if !around.is_empty() {
                    near
                } else if elsewhere() {
                    far
                } else {
                    0.0
                };
            }
        }
        let topic =
            sense.topics().iter().map(|topic| self.topics[usize::from(*topic)]).fold(f32::NEG_INFINITY, f32::max);
        let topic = if topic.is_finite() { TOPIC_WEIGHT * topic } else { 0.0 };
        let is_spelled = prepared.long_forms.iter().any(|long| {
            // A form that is its own long form does not count as an occurrence of it.
            let is_form = self.roots[at.start..].starts_with(&long.roots);
            !is_form && self.ends(long, self.uses(long.anchor_root())).is_some()
        });
        let spelled = if is_spelled { LONG_FORM_WEIGHT } else { 0.0 };
        PRIOR_WEIGHT * sense.prior.max(0.005).ln()
            + cues.min(MAX_CUE_SCORE)
            + collocation
            + topic
            + self.near_topics(sense, near_words)
            + spelled
    }

    /// Topic scores of the known words near a form.
    pub(super) fn words_near(&self, at: &Range<usize>) -> Vec<&'static [u8]> {
        let near = at.start.saturating_sub(NEAR_WINDOW)..(at.end + NEAR_WINDOW).min(self.roots.len());
        let others = near.filter(|position| !at.contains(position));
        others.filter_map(|position| self.word_topics[position]).collect()
    }

    /// Score of the topics of a sense in the words near the form.
    fn near_topics(&self, sense: &Sense, words: &[&[u8]]) -> f32 {
        let sum = |topic: &u8| words.iter().map(|of| WordTopics::score(of, *topic)).sum::<f32>();
        let (of_topic, of_general) = MAX_NEAR_TOPICS;
        let weighted = |topic: &u8| match Some(*topic) == self.inventory.everyday {
            true => (NEAR_TOPIC_WEIGHT * sum(topic)).clamp(-MAX_OFF_TOPIC, of_general),
            false => (NEAR_TOPIC_WEIGHT * sum(topic)).clamp(-self.max_off_topic, of_topic),
        };
        sense.topics().iter().map(weighted).reduce(f32::max).unwrap_or(0.0)
    }

    /// Whether a number follows the word, as in a list of laboratory values.
    fn is_number_after(&self, at: usize) -> bool {
        self.is_number.get(at).copied().unwrap_or(false)
    }
}
