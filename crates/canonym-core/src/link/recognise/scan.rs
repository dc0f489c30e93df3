//! Tokenises a text and finds every window whose words are a name of the knowledge base.
//!
//! The key of a window is the bag of the roots of its tokens without function words, so the lookup ignores word order and
//! inflection. The agreement of window and name is determined afterwards, as a [`Tier`].

use std::collections::HashMap;

use xxhash_rust::xxh3::xxh3_64;

use super::respell::RespellScratch;
use super::senses::Hashed;
use super::spelling::SpellingScratch;
use crate::index::packed::U32s;
use crate::kb::lexicon::{MAX_TOKENS, TokenHashes, bag_key, hash_token};
use crate::kb::subset::KbView;
use crate::kb::{FormId, KnowledgeBase};
use crate::text::Span;
use crate::text::analysis::Analysis;
use crate::text::normalise::fold_token_into;
use crate::text::tokens::{Gap, Token, tokenize};
use crate::text::words::{is_possessive, is_stop_word};

/// Maximum number of tokens of a window that matches a name literally.
const MAX_LITERAL: usize = 160;

/// Maximum size of the token cache of a thread before it is cleared.
const MAX_CACHED: usize = 1 << 18;

/// Agreement of the words of a window and a name, worst first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Tier {
    /// The same roots.
    Root,
    /// The same canonical tokens in another order, or with other function words.
    Permuted,
    /// The same canonical tokens in the same order, function words ignored.
    Ordered,
    /// The same folded text.
    Folded,
}

/// A token of a document.
#[derive(Debug, Clone, Copy)]
pub struct Word {
    /// Its position, and the gap before it.
    pub token: Token,
    /// Its hashes.
    pub hashes: TokenHashes,
    /// Whether some name has a token with its root.
    pub known: bool,
    /// Number of abstracts per thousand that contain it; 0 if it is rare.
    pub frequency: u16,
    /// Whether it comes from the long form that replaced a short form here.
    pub expanded: bool,
}

/// A dictionary match: a window whose words are a name.
#[derive(Debug, Clone, PartialEq)]
pub struct WindowMatch {
    /// Index of the first word.
    pub first: usize,
    /// Index of the last word.
    pub last: usize,
    /// Number of words without function words.
    pub n_counted: usize,
    /// The best forms with their tiers: those with the same words in order, or else those of the best lower tier.
    pub forms: Vec<(FormId, Tier)>,
    /// Whether a short form in the window was expanded.
    pub expanded: bool,
}

impl WindowMatch {
    /// Byte range from the first to the last word.
    pub fn span(&self, words: &[Word]) -> Span {
        Span { start: words[self.first].token.span.start, end: words[self.last].token.span.end }
    }
}

/// Caches of a thread, kept between documents.
#[derive(Debug, Default)]
pub struct ScanScratch {
    folded: String,
    /// Hashes of tokens by the hash of the token as written.
    cached: HashMap<u64, (TokenHashes, bool, u16), Hashed>,
    pub(super) spelling: SpellingScratch,
    pub(super) respell: RespellScratch,
}

/// The words of a text.
pub fn words(kb: &KnowledgeBase, analysis: &Analysis<'_>, scratch: &mut ScanScratch) -> Vec<Word> {
    let ScanScratch { folded, cached, .. } = scratch;
    let (text, tokens) = (analysis.text, analysis.tokens());
    if cached.len() > MAX_CACHED {
        cached.clear();
    }
    let mut words = Vec::with_capacity(tokens.len());
    for token in tokens {
        let written = token.span.of(text);
        let hash = xxh3_64(written.as_bytes());
        let (hashes, known, frequency) = match cached.get(&hash) {
            Some(entry) => *entry,
            None => {
                folded.clear();
                fold_token_into(written, folded);
                let mut hashes = hash_token(folded);
                hashes.linking |= is_possessive(written);
                let entry = (hashes, kb.knows_root(hashes.root), super::common::frequency(folded));
                cached.insert(hash, entry);
                entry
            }
        };
        words.push(Word { token: *token, hashes, known, frequency, expanded: false });
    }
    words
}

/// Replaces every short form by the words of its long form; `uses` are `(short form, long form)`.
///
/// All words of a long form get the position of the short form and are marked as joined, so that no window starts or
/// ends among them. `None` if nothing was replaced.
pub fn expand(words: &[Word], uses: &[(Span, Span)]) -> Option<Vec<Word>> {
    let mut expanded = Vec::with_capacity(words.len() + 4 * uses.len());
    let mut next = 0;
    let mut n_replaced = 0;
    for (short, long) in uses {
        let starts = |span: &Span| words.partition_point(|word| word.token.span.start < span.start);
        let ends = |span: &Span| words.partition_point(|word| word.token.span.end <= span.end);
        let (first, end) = (starts(short), ends(short));
        let long_words = &words[starts(long).min(ends(long))..ends(long)];
        if first < next || first >= end || long_words.is_empty() || long_words.len() > MAX_TOKENS {
            continue;
        }
        expanded.extend_from_slice(&words[next..first]);
        for (index, word) in long_words.iter().enumerate() {
            let before = if index == 0 { words[first].token.before } else { Gap::Glued };
            let token = Token { span: *short, before };
            expanded.push(Word { token, expanded: true, ..*word });
        }
        next = end;
        n_replaced += 1;
    }
    expanded.extend_from_slice(&words[next..]);
    (n_replaced > 0).then_some(expanded)
}

/// Whether a word is the letter A, alone or after a number, and not the article.
fn is_letter_a(text: &str, words: &[Word], at: usize) -> bool {
    let (written, is_glued) = (words[at].token.span.of(text), words[at].token.before == Gap::Glued);
    // In `DISEASE TYPE 1 A CASE REPORT` it is an article.
    let is_last = || words.get(at + 1).is_none_or(|next| next.token.before != Gap::Space);
    is_glued && written.eq_ignore_ascii_case("a") || written == "A" && is_last()
}

/// Whether a gap ends a window.
fn is_barrier(gap: Gap) -> bool {
    matches!(gap, Gap::Comma | Gap::Bracket | Gap::Stop)
}

/// All windows that are names, by start, shorter ones first.
///
/// Commas, brackets, full stops and the limit of [`MAX_TOKENS`] do not end a window that matches a name literally, such
/// as `Burn of leg, unspecified` or `Bacillus sp. A-12`.
pub fn scan(view: KbView<'_>, text: &str, words: &[Word]) -> Vec<WindowMatch> {
    scan_from(view, text, words, 0..words.len())
}

/// Like [`scan`], for windows that begin at the words in `starts`.
pub fn scan_from(
    view: KbView<'_>,
    text: &str,
    words: &[Word],
    starts: impl IntoIterator<Item = usize>,
) -> Vec<WindowMatch> {
    let table = view.kb.roots();
    let mut found = Vec::new();
    for first in starts {
        let start = &words[first];
        if start.hashes.linking || !start.known || start.token.before == Gap::Glued {
            continue;
        }
        let (mut key, mut n_counted) = (0u64, 0);
        let mut is_literal = false;
        let begins_literal = || {
            let second = words[first + 1..].iter().find(|word| !word.hashes.linking);
            second.is_some_and(|second| view.kb.has_literal_start(start.hashes.root, second.hashes.root))
        };
        let mut may_be_literal: Option<bool> = None;
        for (last, word) in words.iter().enumerate().skip(first) {
            is_literal |= last > first && is_barrier(word.token.before) || n_counted == MAX_TOKENS;
            if is_literal && !*may_be_literal.get_or_insert_with(begins_literal) {
                break;
            }
            // `Charcot-Marie-Tooth disease type 1A` ends with a letter, which elsewhere is an article.
            if last - first > MAX_LITERAL {
                break;
            }
            let may_end = || n_counted > 1 && !words[last - 1].hashes.linking && is_letter_a(text, words, last);
            if word.hashes.linking && !is_literal && !may_end() {
                continue;
            }
            if !word.known && !word.hashes.linking || n_counted == MAX_LITERAL || is_literal && word.expanded {
                break;
            }
            if !word.hashes.linking {
                key = key.wrapping_add(word.hashes.root);
                n_counted += 1;
            }
            if words.get(last + 1).is_some_and(|next| next.token.before == Gap::Glued) {
                continue;
            }
            let rows = table.get(key);
            if rows.is_empty() {
                continue;
            }
            let window = &words[first..=last];
            // Trailing signs of a name, such as the bracket of `Iron(2+)`, are part of it.
            let forms = match is_literal {
                true => literal(view, text, window, rows),
                false => agreeing(view, text, window, rows),
            };
            if !forms.is_empty() {
                let expanded = window.iter().any(|word| word.expanded);
                found.push(WindowMatch { first, last, n_counted, forms, expanded });
            }
        }
    }
    found
}

/// The forms of names that equal the window literally, ignoring case.
fn literal(view: KbView<'_>, text: &str, window: &[Word], rows: U32s<'_>) -> Vec<(FormId, Tier)> {
    let span = Span { start: window[0].token.span.start, end: window[window.len() - 1].token.span.end };
    let rest = &text[span.start as usize..];
    let is_name = |name: &str| {
        // Signs after the last word are part of the name and are compared too.
        rest.get(..name.len()).is_some_and(|written| written.eq_ignore_ascii_case(name))
            && name.len() >= span.len()
            && !name[span.len()..].contains(char::is_alphanumeric)
    };
    let forms = || rows.iter().map(FormId).filter(|form| view.has_form(*form));
    let mut literal: Vec<(FormId, Tier)> = forms()
        .filter(|form| view.kb.names_of_form(*form).any(|name| is_name(view.kb.name(name))))
        .map(|form| (form, Tier::Folded))
        .collect();
    // `stromal tumours (GIST` is not a match of `Stromal tumor (GIST)`.
    let is_parted = |word: &Word| matches!(word.token.before, Gap::Stop | Gap::Bracket);
    if literal.is_empty() && !window.iter().skip(1).any(is_parted) {
        // `…, stage III` for `…, stage 3`.
        let is_same = |form: &FormId| {
            let same = |(row, word): (u32, &Word)| view.kb.token_hash_at(row) == word.hashes.canonical;
            let rows = view.kb.tokens_of_form(*form);
            window.len() == rows.clone().count() && rows.zip(window).all(same)
        };
        let barriers = |tokens: &mut dyn Iterator<Item = Token>| -> Vec<usize> {
            tokens.enumerate().skip(1).filter(|(_, token)| is_barrier(token.before)).map(|(at, _)| at).collect()
        };
        let in_window = barriers(&mut window.iter().map(|word| word.token));
        let is_barred = |form: &FormId| {
            let names = view.kb.names_of_form(*form).map(|name| view.kb.name(name));
            names.into_iter().any(|name| barriers(&mut tokenize(name).into_iter()) == in_window)
        };
        literal = forms().filter(|form| is_same(form) && is_barred(form)).map(|form| (form, Tier::Ordered)).collect();
    }
    literal
}

/// Looks up all of `words` as one name.
pub fn lookup(view: KbView<'_>, text: &str, words: &[Word]) -> Option<WindowMatch> {
    let counted = || words.iter().filter(|word| !word.hashes.linking);
    let n_counted = counted().count();
    if n_counted == 0 || n_counted > MAX_TOKENS {
        return None;
    }
    let rows = view.kb.roots().get(bag_key(counted().map(|word| word.hashes.root)));
    let forms = agreeing(view, text, words, rows);
    let expanded = words.iter().any(|word| word.expanded);
    (!forms.is_empty()).then(|| WindowMatch { first: 0, last: words.len() - 1, n_counted, forms, expanded })
}

/// The forms that agree best with a window: those with the same words in order, or else those of the best lower tier.
/// Forms without a concept in the view are ignored.
fn agreeing(view: KbView<'_>, text: &str, window: &[Word], rows: U32s<'_>) -> Vec<(FormId, Tier)> {
    let visible = rows.iter().map(FormId).filter(|form| view.has_form(*form));
    let mut forms: Vec<(FormId, Tier)> =
        visible.filter_map(|form| compare(view.kb, text, window, form).map(|tier| (form, tier))).collect();
    if let Some(best) = forms.iter().map(|(_, tier)| *tier).max() {
        forms.retain(|(_, tier)| *tier >= best.min(Tier::Ordered));
    }
    forms
}

/// The tier of a window and a form with the same key; `None` on a hash collision.
fn compare(kb: &KnowledgeBase, text: &str, window: &[Word], form: FormId) -> Option<Tier> {
    let rows = kb.tokens_of_form(form);
    let same = |(row, word): (u32, &Word)| kb.token_hash_at(row) == word.hashes.canonical;
    if window.len() == rows.clone().count() && rows.clone().zip(window).all(same) {
        let expanded = window.iter().any(|word| word.expanded);
        let folded = !expanded && same_folded(text, window, &kb.forms().get(form.0 as usize));
        return Some(if folded { Tier::Folded } else { Tier::Ordered });
    }
    let form_text = kb.forms().get(form.0 as usize);
    let linking: Vec<bool> = form_text.split(' ').map(crate::text::words::is_linking_word).collect();
    let all_linking = linking.iter().all(|linking| *linking);
    let counted = |row: &usize| all_linking || !linking.get(*row).copied().unwrap_or(false);
    let form_rows: Vec<u32> = rows.enumerate().filter(|(at, _)| counted(at)).map(|(_, row)| row).collect();
    let window_hashes: Vec<TokenHashes> =
        window.iter().map(|word| word.hashes).filter(|hashes| !hashes.linking).collect();
    let is_lettered = is_letter_a(text, window, window.len() - 1);
    // `type 1` is not type 1A, but the growth factor may be factor A.
    let form_lettered = form_text.strip_suffix(" a");
    let is_subtype = form_lettered.is_some_and(|before| before.ends_with(|last: char| last.is_ascii_digit()));
    let is_other = if is_lettered { form_lettered.is_none() } else { is_subtype };
    if form_rows.len() != window_hashes.len() || form_rows.len() > 1 && is_other {
        return None;
    }
    let sorted = |hashes: &mut dyn Iterator<Item = u64>| {
        let mut hashes: Vec<u64> = hashes.collect();
        hashes.sort_unstable();
        hashes
    };
    let canonical: Vec<u64> = form_rows.iter().map(|row| kb.token_hash_at(*row)).collect();
    if canonical.iter().zip(&window_hashes).all(|(hash, word)| *hash == word.canonical) {
        // `liver to blood` is no `liver blood`.
        let adds = |link: &str| {
            !form_text.split(' ').any(|word| word == link) && window.iter().any(|word| word.token.span.of(text) == link)
        };
        return (!adds("to") && !adds("from")).then_some(Tier::Ordered);
    }
    // `Mother lost` is not `lost my mother`, `low mood was` is not `mood was low`, `cfs to me` is not ME/CFS, and letters in another order are another name: `c/d and` is not D and C.
    let is_verb = form_text.split(' ').next().is_some_and(|first| VERBS.contains(&first))
        || form_text.split(' ').any(|word| COPULAS.contains(&word))
        || window.last().is_some_and(|last| PRONOUNS.contains(&last.token.span.of(text)));
    let is_letter =
        |word: &Word| word.hashes.linking || word.token.span.len() < 2 || is_stop_word(word.token.span.of(text));
    if is_verb || window.iter().all(is_letter) {
        return None;
    }
    let in_window = sorted(&mut window_hashes.iter().map(|word| word.canonical));
    if sorted(&mut canonical.into_iter()) == in_window {
        return Some(Tier::Permuted);
    }
    let in_form = sorted(&mut form_rows.iter().map(|row| kb.token_root(*row)));
    (in_form == sorted(&mut window_hashes.iter().map(|word| word.root))).then_some(Tier::Root)
}

/// Verbs of names that are sentences, whose words keep their order.
const COPULAS: [&str; 4] = ["are", "is", "was", "were"];

/// Pronouns, which do not end a name in another order.
const PRONOUNS: [&str; 4] = ["it", "me", "us", "you"];

/// Verbs at the start of names, whose words keep their order.
const VERBS: [&str; 24] = [
    "broke", "came", "cut", "fell", "felt", "gained", "got", "had", "has", "have", "hit", "lost", "made", "passed",
    "popped", "pulled", "put", "ran", "snapped", "threw", "took", "tore", "twisted", "went",
];

/// Whether the folded words of a window equal the form, given that their tokens agree.
fn same_folded(text: &str, window: &[Word], form_text: &str) -> bool {
    let mut folded = String::with_capacity(32);
    let mut rest = form_text;
    for word in window {
        folded.clear();
        fold_token_into(word.token.span.of(text), &mut folded);
        match rest.strip_prefix(folded.as_str()) {
            Some(after) => rest = after.strip_prefix(' ').unwrap_or(after),
            None => return false,
        }
    }
    rest.is_empty()
}
