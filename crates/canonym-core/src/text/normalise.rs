//! Normal forms of names and tokens, on which lookup and similarity work.
//!
//! Three steps, each coarser than the last: [`fold`] takes away case, accents, punctuation and possessives;
//! [`canonical`] of a folded token also takes away British spelling, plurals and Roman numerals;
//! [`root`] of a canonical token also takes away derivation (`retinal`, `retina`) and maps words that name
//! the same thing (`renal`, `kidney`) to one.
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

/// Case, accents, punctuation and possessives taken away; tokens joined by one space.
pub fn fold(text: &str) -> String {
    let mut tokens = Vec::new();
    let mut folded = String::with_capacity(text.len() + 8);
    fold_into(text, &mut tokens, &mut folded);
    folded
}

/// [`fold`] into a buffer that is reused; `tokens` afterwards holds the tokens of `text`.
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

/// Appends one token in lower case, without accents, Greek letters spelled out.
pub fn fold_token_into(token: &str, folded: &mut String) {
    if token.is_ascii() {
        folded.extend(token.chars().map(|letter| letter.to_ascii_lowercase()));
        return;
    }
    // Also signs such as `ᵦ`, which are Greek letters once they are decomposed.
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

/// Greek letters as their names, such as `alpha`; `false` where the token is more than two of them, a Greek word.
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

/// What [`normalise`] takes away beyond case, accents and punctuation.
///
/// The protocol of BioSyn, which keeps spelling, number and Greek letters as they are and has rules of its own for
/// punctuation, is [`biosyn::normalise_name`](super::biosyn::normalise_name).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NormaliseConfig {
    /// British spelling becomes American: `tumour`, `tumor`.
    pub spelling: bool,
    /// Plurals become singular: `biopsies`, `biopsy`.
    pub inflection: bool,
    /// Greek letters become their names: `α`, `alpha`.
    pub greek_letters: bool,
    /// Roman numerals become digits: `type II`, `type 2`.
    pub roman_numerals: bool,
}

impl NormaliseConfig {
    /// What knowledge bases are compiled and searched with.
    pub const LOOKUP: NormaliseConfig =
        NormaliseConfig { spelling: true, inflection: true, greek_letters: true, roman_numerals: true };
    /// Case, accents, punctuation and possessives only.
    pub const PLAIN: NormaliseConfig =
        NormaliseConfig { spelling: false, inflection: false, greek_letters: false, roman_numerals: false };
}

/// The normal form of a name under `config`, tokens joined by one space.
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

/// A folded token in American spelling, singular, Roman numerals as digits.
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

/// A canonical token without derivation, words for the same thing mapped to one.
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
    // An aldehyde is not its alkane: `methanal`, `methane`.
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
    fn folding_takes_away_what_typing_adds() {
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
            // A lone S that stood by itself reads as a possessive once its case is gone.
            prop_assume!(!once.ends_with(" s") && !once.contains(" s "));
            // A sign such as `ᵦ` glued to a word is one token with it until it is decomposed.
            let parts = |token: &Token| tokenize(&token.span.of(&text).nfkd().collect::<String>()).len();
            if tokenize(&text).iter().any(|token| parts(token) > 1) {
                return Ok(());
            }
            prop_assert_eq!(fold(&once), once);
        }
    }
}
