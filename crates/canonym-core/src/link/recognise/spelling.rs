//! Spelling correction: an unknown word is replaced by the word of the knowledge base that it misspells.

use std::collections::HashMap;

use super::scan::Word;
use crate::index::grams::GramScratch;
use crate::kb::KnowledgeBase;
use crate::kb::lexicon::{TokenHashes, hash_token};
use crate::link::lookalike::{is_known_word, is_misspelling};
use crate::link::slips::slips;
use crate::text::normalise::fold;

/// Minimum number of letters of a corrected word.
const MIN_LENGTH: usize = 6;

/// Number of names compared with a word.
const N_NAMES: usize = 12;

/// Maximum size of the word cache of a thread before it is cleared.
const MAX_CACHED: usize = 1 << 15;

/// Caches of a thread, kept between documents.
#[derive(Debug, Default)]
pub(super) struct SpellingScratch {
    // Allocated on first use because it is large.
    grams: Option<Box<GramScratch>>,
    cached: HashMap<Box<str>, Option<TokenHashes>>,
}

/// The words of a text with misspellings corrected, and which were; `None` if none was.
pub(super) fn corrected(
    kb: &KnowledgeBase,
    text: &str,
    words: &[Word],
    scratch: &mut SpellingScratch,
) -> Option<(Vec<Word>, Vec<bool>)> {
    if scratch.cached.len() > MAX_CACHED {
        scratch.cached.clear();
    }
    let mut corrected = Vec::new();
    for (at, word) in words.iter().enumerate() {
        let written = word.token.span.of(text);
        let is_word = written.len() >= MIN_LENGTH
            && word.frequency == 0
            && written.chars().all(char::is_alphabetic)
            && written.chars().skip(1).all(char::is_lowercase);
        if !is_word || is_joined(words, at) {
            continue;
        }
        let correction = match scratch.cached.get(written) {
            Some(known) => *known,
            None => {
                let correction = correction(kb, &fold(written), scratch.grams.get_or_insert_default());
                scratch.cached.insert(written.into(), correction);
                correction
            }
        };
        if let Some(hashes) = correction {
            corrected.push((at, hashes));
        }
    }
    if corrected.is_empty() {
        return None;
    }
    let mut all = words.to_vec();
    let mut is_corrected = vec![false; words.len()];
    for (at, hashes) in corrected {
        all[at] = Word { hashes, known: true, ..all[at] };
        is_corrected[at] = true;
    }
    Some((all, is_corrected))
}

/// Whether a word is joined to another without a gap, such as letters to digits.
fn is_joined(words: &[Word], at: usize) -> bool {
    let is_glued = |word: &Word| word.token.before == crate::text::tokens::Gap::Glued;
    is_glued(&words[at]) || words.get(at + 1).is_some_and(is_glued)
}

/// The word of the knowledge base that a folded word misspells.
fn correction(kb: &KnowledgeBase, word: &str, scratch: &mut GramScratch) -> Option<TokenHashes> {
    if is_known_word(kb, word) {
        return None;
    }
    let names = kb.grams().search(word, N_NAMES, scratch);
    let forms: Vec<_> = names.iter().map(|hit| kb.forms().get(hit.row as usize)).collect();
    let cost = |other: &&str| slips(word, other, f32::MAX);
    let near = forms.iter().flat_map(|form| form.split(' ')).filter(|other| is_misspelling(kb, word, other));
    let best = near.min_by(|one, other| cost(one).total_cmp(&cost(other)).then_with(|| one.cmp(other)))?;
    Some(hash_token(best))
}
