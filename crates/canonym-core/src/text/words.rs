//! Word lists written for this project: function words, synonymous words, and roles of words in names.
//!
//! All words are canonical tokens (American spelling, singular). They come from general medical vocabulary, not from a
//! corpus.
//!
//! ```
//! use canonym_core::text::words::{noun_of, parts_of, same_as};
//! assert_eq!(same_as("renal"), Some("kidney"));
//! assert_eq!(noun_of("thrombotic").as_deref(), Some("thrombosis"));
//! assert_eq!(parts_of("nephropathy"), Some(["kidney", "disease"]));
//! ```

mod compounds;
mod endings;
mod groups;
mod kinds;

use std::collections::HashMap;
use std::sync::OnceLock;

pub use compounds::parts_of;
pub use endings::noun_of;
pub use kinds::{WordKind, kind_of, words_with_kinds};

/// Function words and the like, which are left out of lookup keys.
const LINKING_WORDS: [&str; 13] = ["a", "an", "by", "due", "for", "from", "in", "of", "on", "the", "to", "nos", "nec"];

/// Stop words in addition to [`LINKING_WORDS`]; folded.
const STOP_WORDS: [&str; 84] = [
    "about", "after", "all", "also", "am", "and", "any", "are", "as", "at", "be", "because", "been", "before", "being",
    "but", "can", "could", "did", "do", "does", "during", "each", "had", "has", "have", "he", "her", "him", "his",
    "how", "i", "if", "into", "is", "it", "its", "may", "me", "might", "more", "most", "must", "my", "no", "nor",
    "not", "or", "our", "s", "she", "should", "so", "some", "such", "than", "that", "their", "them", "then", "there",
    "these", "they", "this", "those", "us", "very", "was", "we", "were", "what", "when", "where", "which", "while",
    "who", "whom", "whose", "why", "will", "with", "would", "you", "your",
];

/// Whether `token` (folded) is a stop word, such as `of`, `and` and `the`.
pub fn is_stop_word(token: &str) -> bool {
    is_linking_word(token) || STOP_WORDS.contains(&token)
}

/// Whether `token` (folded) is a function word, left out of lookup keys.
pub fn is_linking_word(token: &str) -> bool {
    LINKING_WORDS.contains(&token)
}

/// Whether a word as written is a possessive pronoun, which names are written without: `blood in my stool`. Not `HER`, as in `HER 2`.
pub fn is_possessive(written: &str) -> bool {
    matches!(written, "my" | "your" | "his" | "her" | "its" | "our" | "their")
}

/// Prefixes that are joined with the word after their hyphen: `pre-eclampsia`, `non-diabetic`.
const PREFIXES: [&str; 24] = [
    "a", "ante", "anti", "co", "contra", "de", "dys", "extra", "hyper", "hypo", "inter", "intra", "micro", "multi",
    "non", "para", "peri", "post", "pre", "pro", "pseudo", "re", "sub", "un",
];

/// Whether `word` before a hyphen is a prefix of the word after it.
pub fn is_prefix(word: &str) -> bool {
    PREFIXES.iter().any(|prefix| word.eq_ignore_ascii_case(prefix))
}

/// The representative of the synonym group of `token`, if it is in one.
pub fn same_as(token: &str) -> Option<&'static str> {
    static GROUPS: OnceLock<HashMap<&'static str, &'static str>> = OnceLock::new();
    let groups = GROUPS.get_or_init(|| {
        let pairs = |group: &&'static str| {
            let first = group.split(' ').next().expect("a group has words");
            group.split(' ').map(move |word| (word, first)).collect::<Vec<_>>()
        };
        groups::all().flat_map(pairs).collect()
    });
    groups.get(token).copied()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::text::normalise::{canonical, root};

    #[test]
    fn groups_are_disjoint_and_canonical() {
        let mut seen = HashSet::new();
        let words = || groups::all().flat_map(|group| group.split(' '));
        let twice: Vec<&str> = words().filter(|word| !seen.insert(*word)).collect();
        assert!(twice.is_empty(), "these stand twice: {twice:?}");
        let other: Vec<&str> = words().filter(|word| canonical(word) != *word).collect();
        assert!(other.is_empty(), "these are not canonical: {other:?}");
    }

    #[test]
    fn words_for_the_same_thing_have_one_root() {
        for (one, other) in [
            ("renal", "kidney"),
            ("cutaneous", "dermal"),
            ("thrombotic", "thrombosis"),
            ("hemorrhagic", "bleeding"),
            ("ischemic", "ischemia"),
            ("carcinoma", "cancer"),
            ("hypertensive", "hypertension"),
            ("adenomatous", "adenoma"),
        ] {
            assert_eq!(root(one), root(other), "{one} {other}");
        }
        for (one, other) in [("renal", "adrenal"), ("gastric", "colonic"), ("systemic", "epidemic")] {
            assert_ne!(root(one), root(other), "{one} {other}");
        }
    }
}
