//! Reads a text token by token and finds every window whose words are a name of the knowledge base.
//!
//! A window is keyed by the bag of the roots of its tokens, linking words left out, so word order and inflection do
//! not matter for the lookup; how far window and name agree is measured afterwards as a [`Tier`].

use std::collections::HashMap;

use crate::kb::lexicon::{TokenHashes, hash_token};
use crate::kb::{FormId, KnowledgeBase};
use crate::text::Span;
use crate::text::normalise::fold_token_into;
use crate::text::tokens::{Gap, Token, tokenize_into};

/// The most tokens a window has, linking words left out.
pub const MAX_TOKENS: usize = 12;

/// Tokens that a thread remembers before it starts afresh.
const MAX_REMEMBERED: usize = 1 << 18;

/// How far the words of a window and of a name agree, worst first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Tier {
    /// The same roots.
    Root,
    /// The same canonical tokens in another order, with or without linking words.
    Permuted,
    /// The same canonical tokens in the same order, linking words apart.
    Ordered,
    /// The same folded text.
    Folded,
}

/// A token of a document.
#[derive(Debug, Clone, Copy)]
pub struct Word {
    /// Where it stands, and what is before it.
    pub token: Token,
    /// Its hashes.
    pub hashes: TokenHashes,
    /// Whether some name has a token with its root.
    pub known: bool,
    /// In how many of a thousand abstracts it stands, where it is frequent.
    pub frequency: u16,
}

/// A window whose words are a name.
#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    /// The first word.
    pub first: usize,
    /// The last word.
    pub last: usize,
    /// How many of its words are no linking words.
    pub n_counted: usize,
    /// The forms that agree best, all of one tier.
    pub forms: Vec<FormId>,
    /// How far they agree.
    pub tier: Tier,
}

impl Found {
    /// The bytes from the first to the last word.
    pub fn span(&self, words: &[Word]) -> Span {
        Span { start: words[self.first].token.span.start, end: words[self.last].token.span.end }
    }
}

/// What a thread keeps from document to document.
#[derive(Debug, Default)]
pub struct ScanScratch {
    tokens: Vec<Token>,
    folded: String,
    remembered: HashMap<Box<str>, (TokenHashes, bool, u16)>,
}

/// The words of a text.
pub fn words(kb: &KnowledgeBase, text: &str, scratch: &mut ScanScratch) -> Vec<Word> {
    let ScanScratch { tokens, folded, remembered } = scratch;
    tokenize_into(text, tokens);
    if remembered.len() > MAX_REMEMBERED {
        remembered.clear();
    }
    let mut words = Vec::with_capacity(tokens.len());
    for token in tokens.iter() {
        let written = token.span.of(text);
        let (hashes, known, frequency) = match remembered.get(written) {
            Some(entry) => *entry,
            None => {
                folded.clear();
                fold_token_into(written, folded);
                let hashes = hash_token(folded);
                let entry = (hashes, kb.knows_root(hashes.root), super::common::frequency(folded));
                remembered.insert(written.into(), entry);
                entry
            }
        };
        words.push(Word { token: *token, hashes, known, frequency });
    }
    words
}

/// Whether a window may go on across this gap.
fn is_barrier(gap: Gap) -> bool {
    matches!(gap, Gap::Comma | Gap::Bracket | Gap::Stop)
}

/// Every window that is a name, shorter windows of one start first.
pub fn scan(kb: &KnowledgeBase, text: &str, words: &[Word]) -> Vec<Found> {
    let table = kb.roots();
    let mut found = Vec::new();
    for first in 0..words.len() {
        let start = &words[first];
        if start.hashes.linking || !start.known || start.token.before == Gap::Glued {
            continue;
        }
        let (mut key, mut n_counted) = (0u64, 0);
        for (last, word) in words.iter().enumerate().skip(first) {
            if last > first && is_barrier(word.token.before) {
                break;
            }
            if word.hashes.linking {
                continue;
            }
            if !word.known || n_counted == MAX_TOKENS {
                break;
            }
            key = key.wrapping_add(word.hashes.root);
            n_counted += 1;
            if words.get(last + 1).is_some_and(|next| next.token.before == Gap::Glued) {
                continue;
            }
            let rows = table.get(key);
            if rows.is_empty() {
                continue;
            }
            let window = &words[first..=last];
            let mut forms: Vec<(Tier, FormId)> = rows
                .iter()
                .filter_map(|row| compare(kb, text, window, FormId(row)).map(|tier| (tier, FormId(row))))
                .collect();
            if let Some(tier) = forms.iter().map(|(tier, _)| *tier).max() {
                forms.retain(|(other, _)| *other == tier);
                let forms = forms.into_iter().map(|(_, form)| form).collect();
                found.push(Found { first, last, n_counted, forms, tier });
            }
        }
    }
    found
}

/// How far a window and a form with the same key agree; `None` where only the keys do.
fn compare(kb: &KnowledgeBase, text: &str, window: &[Word], form: FormId) -> Option<Tier> {
    let rows = kb.tokens_of_form(form);
    let form_text = kb.forms().get(form.0 as usize);
    if window.len() == rows.len() && same_folded(text, window, form_text) {
        return Some(Tier::Folded);
    }
    let linking: Vec<bool> = form_text.split(' ').map(crate::text::words::is_linking_word).collect();
    let all_linking = linking.iter().all(|linking| *linking);
    let counted = |row: &usize| all_linking || !linking.get(*row).copied().unwrap_or(false);
    let of_form: Vec<u32> = (0..rows.len()).filter(counted).map(|row| rows.get(row)).collect();
    let of_window: Vec<TokenHashes> =
        window.iter().map(|word| word.hashes).filter(|hashes| !hashes.linking).collect();
    if of_form.len() != of_window.len() {
        return None;
    }
    let same = |row: &u32, hashes: &TokenHashes| kb.token_hash_at(*row) == hashes.canonical;
    if of_form.iter().zip(&of_window).all(|(row, hashes)| same(row, hashes)) {
        return Some(Tier::Ordered);
    }
    let sorted = |mut hashes: Vec<u64>| {
        hashes.sort_unstable();
        hashes
    };
    let canonical_form = sorted(of_form.iter().map(|row| kb.token_hash_at(*row)).collect());
    if canonical_form == sorted(of_window.iter().map(|hashes| hashes.canonical).collect()) {
        return Some(Tier::Permuted);
    }
    let root_form = sorted(of_form.iter().map(|row| kb.token_root(*row)).collect());
    (root_form == sorted(of_window.iter().map(|hashes| hashes.root).collect())).then_some(Tier::Root)
}

fn same_folded(text: &str, window: &[Word], form_text: &str) -> bool {
    let mut folded = String::new();
    for word in window {
        if !folded.is_empty() {
            folded.push(' ');
        }
        fold_token_into(word.token.span.of(text), &mut folded);
    }
    folded == form_text
}
