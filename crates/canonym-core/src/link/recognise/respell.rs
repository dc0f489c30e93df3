//! Words that a text splits and the terminology joins, or the other way round: `pre-frontal`, `cross bite`, `fireblight`.

use std::collections::HashMap;

use xxhash_rust::xxh3::xxh3_64;

use super::scan::Word;
use super::senses::Hashed;
use crate::kb::KnowledgeBase;
use crate::kb::lexicon::hash_token;
use crate::link::lookalike::WordFilter;
use crate::text::Span;
use crate::text::normalise::fold_token_into;
use crate::text::tokens::{Gap, Token};
use crate::text::words::is_prefix;

/// Minimum number of letters of each part.
const MIN_PART: usize = 3;

/// Minimum number of letters of the whole word.
const MIN_WHOLE: usize = 7;

/// Maximum number of letters of a word that is split.
const MAX_WHOLE: usize = 30;

/// Words in more than this many of a thousand abstracts are not joined: `not able`.
const MAX_FREQUENCY: u16 = 150;

/// Maximum number of words of a name before a new word.
const MAX_BEFORE: usize = 8;

/// Terminologies with more names are large.
const MANY_NAMES: usize = 50_000;

/// Maximum size of the word cache of a thread before it is cleared.
const MAX_CACHED: usize = 1 << 16;

/// Buffers of a thread, kept between documents.
#[derive(Debug, Default)]
pub(super) struct RespellScratch {
    folded: String,
    /// Where words are split, by the hash of the word as written.
    divided: HashMap<u64, Option<usize>, Hashed>,
}

/// The words of a text, with pairs joined that are one word in the knowledge base, and unknown words split into two that it has.
/// Returns the words and which of them are new; `None` if none is.
pub(super) fn respelled(
    kb: &KnowledgeBase,
    text: &str,
    words: &[Word],
    scratch: &mut RespellScratch,
) -> Option<(Vec<Word>, Vec<bool>)> {
    let mut changes: Vec<(usize, usize, [Word; 2], usize)> = Vec::new();
    let mut at = 0;
    while at < words.len() {
        if let Some(joined) = words.get(at + 1).and_then(|next| join(kb, text, [&words[at], next], &mut scratch.folded))
        {
            changes.push((at, at + 2, [joined; 2], 1));
            at += 2;
            continue;
        }
        let is_alone = words.get(at + 1).is_none_or(|next| next.token.before != Gap::Glued);
        if let Some(parts) = divide(kb, text, &words[at], scratch).filter(|_| is_alone) {
            changes.push((at, at + 1, parts, 2));
        }
        at += 1;
    }
    if changes.is_empty() {
        return None;
    }
    let (mut all, mut is_new) = (Vec::with_capacity(words.len() + changes.len()), Vec::new());
    let mut next = 0;
    for (first, end, new, n_new) in changes {
        all.extend_from_slice(&words[next..first]);
        is_new.resize(all.len(), false);
        all.extend_from_slice(&new[..n_new]);
        is_new.resize(all.len(), true);
        next = end;
    }
    all.extend_from_slice(&words[next..]);
    is_new.resize(all.len(), false);
    Some((all, is_new))
}

/// The positions at which a name with a new word can begin.
pub(super) fn starts(is_new: &[bool]) -> Vec<usize> {
    let is_near = |at: &usize| is_new[*at..is_new.len().min(at + MAX_BEFORE + 1)].contains(&true);
    (0..is_new.len()).filter(is_near).collect()
}

/// A word of the knowledge base that the text writes as two.
fn join(kb: &KnowledgeBase, text: &str, [first, second]: [&Word; 2], folded: &mut String) -> Option<Word> {
    let gap = second.token.before;
    if first.token.before == Gap::Glued || !matches!(gap, Gap::Hyphen | Gap::Space) {
        return None;
    }
    let (one, other) = (first.token.span.of(text), second.token.span.of(text));
    let has_prefix = gap == Gap::Hyphen && is_prefix(one);
    let is_part = |word: &Word, written: &str| {
        !word.hashes.linking && word.frequency <= MAX_FREQUENCY && is_word(written) && written.len() >= MIN_PART
    };
    let are_parts = || is_part(first, one) && is_part(second, other) && one.len() + other.len() >= MIN_WHOLE;
    let span = Span { start: first.token.span.start, end: second.token.span.end };
    if !has_prefix && (!are_parts() || span.of(text).contains('\n')) {
        return None;
    }
    folded.clear();
    fold_token_into(one, folded);
    fold_token_into(other, folded);
    // The filter has the words of open terminologies, and is faster than a look-up.
    if !has_prefix && kb.n_names() > MANY_NAMES && !WordFilter::embedded().has(folded) {
        return None;
    }
    let hashes = hash_token(folded);
    let frequency = super::common::frequency(folded);
    let word = Word { token: Token { span, ..first.token }, hashes, known: true, frequency, expanded: false };
    kb.knows_root(hashes.root).then_some(word)
}

/// Two words of the knowledge base that the text writes as one.
fn divide(kb: &KnowledgeBase, text: &str, word: &Word, scratch: &mut RespellScratch) -> Option<[Word; 2]> {
    let written = word.token.span.of(text);
    let is_wanted = !word.known
        && word.frequency == 0
        && word.token.before != Gap::Glued
        && (MIN_WHOLE..=MAX_WHOLE).contains(&written.len())
        && written.bytes().all(|byte| byte.is_ascii_alphabetic())
        && is_word(written);
    if !is_wanted {
        return None;
    }
    let RespellScratch { folded, divided } = scratch;
    if divided.len() > MAX_CACHED {
        divided.clear();
    }
    let middle = *divided.entry(xxh3_64(written.as_bytes())).or_insert_with(|| {
        folded.clear();
        fold_token_into(written, folded);
        middle_of(kb, folded)
    });
    let start = word.token.span.start as usize;
    let part = |from: usize, to: usize, before: Gap| {
        let span = Span::new(start + from, start + to);
        let part = written[from..to].to_ascii_lowercase();
        let (hashes, frequency) = (hash_token(&part), super::common::frequency(&part));
        Word { token: Token { span, before }, hashes, known: true, frequency, expanded: false }
    };
    middle.map(|middle| [part(0, middle, word.token.before), part(middle, written.len(), Gap::Glued)])
}

/// Where to split a folded word into two of the knowledge base: preferably two that begin a name, then long ones.
fn middle_of(kb: &KnowledgeBase, folded: &str) -> Option<usize> {
    // Large terminologies know most short words, and a look-up in them takes longer.
    let is_large = kb.n_names() > MANY_NAMES;
    let is_common = |word: &str| super::common::frequency(word) > 0;
    let knows = |word: &str| {
        let hashes = hash_token(word);
        !hashes.linking && kb.knows_root(hashes.root)
    };
    let divided = (MIN_PART..=folded.len() - MIN_PART).filter_map(|middle| {
        let (one, other) = folded.split_at(middle);
        let are_known = (!is_large || is_common(one) && is_common(other)) && knows(one) && knows(other);
        are_known.then(|| (begins_name(kb, one, other), middle.min(folded.len() - middle), middle))
    });
    let (is_beginning, n_letters, middle) = divided.max_by_key(|(is_beginning, n, _)| (*is_beginning, *n))?;
    (is_beginning || n_letters > MIN_PART).then_some(middle)
}

/// Whether a name begins with two words.
fn begins_name(kb: &KnowledgeBase, one: &str, other: &str) -> bool {
    let both = format!("{one} {other}");
    let at = kb.forms().lower_bound(&both);
    at < kb.forms().len()
        && kb.forms().get(at).strip_prefix(&*both).is_some_and(|rest| !rest.starts_with(char::is_alphanumeric))
}

/// Whether a word is lower-case but for its first letter.
fn is_word(written: &str) -> bool {
    let mut letters = written.chars();
    letters.next().is_some_and(char::is_alphabetic) && letters.all(char::is_lowercase)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kb::KnowledgeBaseBuilder;
    use crate::kb::Scope;
    use crate::kb::format::Meta;
    use crate::kb::record::{ConceptRecord, NameRecord};
    use crate::link::recognise::scan::{ScanScratch, words};
    use crate::text::analysis::Analysis;

    #[test]
    fn words_are_joined_and_divided_as_the_names_write_them() {
        let mut builder = KnowledgeBaseBuilder::new();
        for (row, name) in ["Crossbite", "Open bite", "Prefrontal cortex", "Fire blight"].into_iter().enumerate() {
            let names = vec![NameRecord { text: name.to_owned(), scope: Scope::Preferred }];
            builder.add(ConceptRecord { id: format!("X:{row}"), names, ..ConceptRecord::default() }).unwrap();
        }
        let kb = KnowledgeBase::from_vec(builder.to_bytes(Meta::default()).unwrap(), "test").unwrap();
        let new = |text: &str| {
            let found = words(&kb, &Analysis::of_text(text), &mut ScanScratch::default());
            let (all, is_new) = respelled(&kb, text, &found, &mut RespellScratch::default())?;
            let new = all.iter().zip(is_new).filter(|(_, is_new)| *is_new);
            Some(new.map(|(word, _)| word.token.span.of(text).to_owned()).collect::<Vec<_>>())
        };
        let made = |words: &[&str]| Some(words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>());
        assert_eq!(new("a cross bite and a cross-bite"), made(&["cross bite", "cross-bite"]));
        assert_eq!(new("Cross bite"), made(&["Cross bite"]));
        assert_eq!(new("the pre-frontal cortex"), made(&["pre-frontal"]));
        assert_eq!(new("openbite, fireblight"), made(&["open", "bite", "fire", "blight"]));
        assert_eq!(new("cross\nbite, an open bite, crossbite"), None);
    }
}
