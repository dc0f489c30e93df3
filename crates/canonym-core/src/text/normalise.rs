//! Normal forms of names and tokens, for lookup and similarity.
//!
//! Three levels, each coarser than the previous one: [`fold`] removes case, accents, punctuation and possessives;
//! [`canonical`] of a folded token removes British spelling, plurals and Roman numerals; [`root`] of a canonical token
//! removes derivation (`retinal`, `retina`) and maps synonymous words (`renal`, `kidney`) to one.
//!
//! ```
//! use canonym_core::text::normalise::{canonical, fold};
//! assert_eq!(fold("Parkinson's  Disease (PD)"), "parkinson disease pd");
//! assert_eq!(canonical("tumours"), "tumor");
//! ```

use std::borrow::Cow;

use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

use super::tokens::{Token, is_greek, tokenize_into};
use super::{variants, words};

/// Removes case, accents, punctuation and possessives, and joins tokens by a space.
pub fn fold(text: &str) -> String {
    let mut tokens = Vec::new();
    let mut folded = String::with_capacity(text.len() + 8);
    fold_into(text, &mut tokens, &mut folded);
    folded
}

/// Like [`fold`], into reusable buffers; `tokens` then contains the tokens of `text`.
pub fn fold_into(text: &str, tokens: &mut Vec<Token>, folded: &mut String) {
    folded.clear();
    tokenize_into(text, tokens);
    for token in tokens.iter() {
        if !folded.is_empty() {
            folded.push(' ');
        }
        fold_token_into(token.span.of(text), folded);
    }
}

/// Appends a token in lower case, without accents, with Greek letters spelled out.
pub fn fold_token_into(token: &str, folded: &mut String) {
    if token.is_ascii() {
        folded.extend(token.chars().map(|letter| letter.to_ascii_lowercase()));
        return;
    }
    // Includes characters such as `ᵦ`, which decompose to Greek letters.
    let greek = || token.nfkd().all(|letter| is_greek(letter) || is_combining_mark(letter));
    if greek() && fold_greek_into(token, folded) {
        return;
    }
    let before = folded.len();
    for letter in token.nfkd().filter(|letter| !is_combining_mark(*letter)) {
        match letter {
            'ß' | 'ẞ' => folded.push_str("ss"),
            'æ' | 'Æ' => folded.push_str("ae"),
            'œ' | 'Œ' => folded.push_str("oe"),
            'ø' | 'Ø' => folded.push('o'),
            'ł' | 'Ł' => folded.push('l'),
            'đ' | 'Đ' => folded.push('d'),
            _ if !letter.is_alphanumeric() => {}
            _ => folded.extend(letter.to_lowercase().filter(|lower| !is_combining_mark(*lower))),
        }
    }
    if folded.len() == before {
        folded.push_str(token);
    }
}

/// Spells out Greek letters, such as `alpha`. Returns `false` for a token of more than two, which is a Greek word.
fn fold_greek_into(token: &str, folded: &mut String) -> bool {
    let letters = || token.nfkd().filter(|letter| !is_combining_mark(*letter));
    if !(1..=2).contains(&letters().count()) {
        return false;
    }
    let before = folded.len();
    let mut buffer = [0; 4];
    for letter in letters() {
        match variants::greek_letter(letter.encode_utf8(&mut buffer)) {
            Some(name) => folded.push_str(name),
            None => {
                folded.truncate(before);
                return false;
            }
        }
    }
    true
}

/// What [`normalise`] removes in addition to case, accents and punctuation.
///
/// The protocol of BioSyn keeps spelling, number and Greek letters, and has its own rules for punctuation: see
/// [`biosyn::normalise_name`](super::biosyn::normalise_name).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NormaliseConfig {
    /// Convert British to American spelling: `tumour`, `tumor`.
    pub spelling: bool,
    /// Convert plurals to singular: `biopsies`, `biopsy`.
    pub inflection: bool,
    /// Spell out Greek letters: `α`, `alpha`.
    pub greek_letters: bool,
    /// Convert Roman numerals to digits: `type II`, `type 2`.
    pub roman_numerals: bool,
}

impl NormaliseConfig {
    /// The setting with which knowledge bases are compiled and searched.
    pub const LOOKUP: NormaliseConfig =
        NormaliseConfig { spelling: true, inflection: true, greek_letters: true, roman_numerals: true };
    /// Removes case, accents, punctuation and possessives only.
    pub const PLAIN: NormaliseConfig =
        NormaliseConfig { spelling: false, inflection: false, greek_letters: false, roman_numerals: false };
}

/// The normal form of a name under `config`, tokens joined by a space.
///
/// ```
/// use canonym_core::text::normalise::{NormaliseConfig, normalise};
/// assert_eq!(normalise("Type II Tumours (TNF-α)", &NormaliseConfig::LOOKUP), "type 2 tumor tnf alpha");
/// assert_eq!(normalise("Type II Tumours (TNF-α)", &NormaliseConfig::PLAIN), "type ii tumours tnf α");
/// ```
pub fn normalise(text: &str, config: &NormaliseConfig) -> String {
    let mut tokens = Vec::new();
    tokenize_into(text, &mut tokens);
    let mut folded = String::new();
    let normal = |token: &Token| {
        let written = token.span.of(text);
        folded.clear();
        if config.greek_letters || !written.contains(is_greek) {
            fold_token_into(written, &mut folded);
        } else {
            folded.push_str(&written.to_lowercase());
        }
        normalise_token(&folded, config).into_owned()
    };
    tokens.iter().map(normal).collect::<Vec<String>>().join(" ")
}

/// The canonical form of a folded token: American spelling, singular, Roman numerals as digits.
pub fn canonical(token: &str) -> Cow<'_, str> {
    normalise_token(token, &NormaliseConfig::LOOKUP)
}

fn normalise_token<'a>(token: &'a str, config: &NormaliseConfig) -> Cow<'a, str> {
    if let Some(number) = variants::roman_numeral(token).filter(|_| config.roman_numerals) {
        return Cow::Owned(number.to_string());
    }
    if token.len() < 3 {
        return Cow::Borrowed(token);
    }
    let american = if config.spelling { variants::american_spelling(token) } else { Cow::Borrowed(token) };
    match american {
        american if !config.inflection => american,
        Cow::Borrowed(american) => variants::singular(american),
        Cow::Owned(american) => Cow::Owned(variants::singular(&american).into_owned()),
    }
}

/// The root of a canonical token: derivation removed, synonymous words mapped to one.
pub fn root(token: &str) -> Cow<'_, str> {
    if let Some(same) = words::same_as(token) {
        return Cow::Borrowed(same);
    }
    match words::noun_of(token) {
        Some(noun) => match words::same_as(&noun) {
            Some(same) => Cow::Borrowed(same),
            None => Cow::Owned(stem(&noun).into_owned()),
        },
        None => stem(token),
    }
}

fn stem(token: &str) -> Cow<'_, str> {
    // An aldehyde differs from its alkane: `methanal`, `methane`.
    if token.len() < 5
        || token.ends_with("anal")
        || !token.is_ascii()
        || !token.bytes().all(|letter| letter.is_ascii_lowercase())
    {
        return Cow::Borrowed(token);
    }
    thread_local! {
        static STEMMER: rust_stemmers::Stemmer = rust_stemmers::Stemmer::create(rust_stemmers::Algorithm::English);
    }
    STEMMER.with(|stemmer| Cow::Owned(stemmer.stem(token).into_owned()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::text::tokens::tokenize;

    #[test]
    fn folding_removes_case_accents_and_punctuation() {
        assert_eq!(fold("Sjögren’s  syndrome"), "sjogren syndrome");
        assert_eq!(fold("TNF-α"), "tnf alpha");
        assert_eq!(fold("β2‑microglobulin"), "beta 2 microglobulin");
        assert_eq!(fold("ﬁbrosis\r\nof\u{a0}skin"), "fibrosis of skin");
        assert_eq!(fold("Ὗ ά ᵦ"), "upsilon alpha beta");
        assert_eq!(fold("😀"), "");
        assert_eq!(fold("5 µm"), "5 mu m");
    }

    proptest! {
        #[test]
        fn folding_twice_is_folding_once(text in "\\PC{0,40}") {
            let once = fold(&text);
            // After folding, a single capital S looks like a possessive.
            prop_assume!(!once.ends_with(" s") && !once.contains(" s "));
            // A character such as `ᵦ` next to a word is part of its token until decomposed.
            let parts = |token: &Token| tokenize(&token.span.of(&text).nfkd().collect::<String>()).len();
            if tokenize(&text).iter().any(|token| parts(token) > 1) {
                return Ok(());
            }
            prop_assert_eq!(fold(&once), once);
        }
    }
}
