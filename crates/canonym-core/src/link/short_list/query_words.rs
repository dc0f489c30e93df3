//! The words of a query that count, with units joined to their numbers.

use super::NEGATING;
use crate::text::normalise::{canonical, fold, root};
use crate::text::tokens::tokenize;
use crate::text::words::{is_linking_word, is_stop_word};

/// Whether a word is a single letter or begins with a digit.
pub(super) fn is_subtype(word: &str) -> bool {
    word.chars().count() == 1 || word.starts_with(|letter: char| letter.is_ascii_digit())
}

/// The word for a number up to ten.
pub(super) fn number_word(word: &str) -> Option<&'static str> {
    const WORDS: [&str; 10] = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"];
    word.parse::<usize>().ok().and_then(|number| WORDS.get(number.checked_sub(1)?)).copied()
}

/// A unit of a strength or size, without its plural and abbreviations of micrograms.
pub(super) fn unit_of(word: &str) -> Option<&str> {
    match word {
        "mcg" | "ug" | "μg" | "microgram" | "micrograms" => Some("microgram"),
        "unit" | "units" | "iu" => Some("unit"),
        "cm" | "g" | "kg" | "l" | "mg" | "ml" | "mm" | "mmol" | "ng" | "nm" => Some(word),
        _ => None,
    }
}

/// What words of one stem have in common.
pub(super) fn key_of(word: &str) -> String {
    root(&canonical(word)).into_owned()
}

/// The folded words of a text in which a decimal is one word, as 2.5 is not 5; commas between thousands are left out.
fn numbers_joined(text: &str) -> Vec<String> {
    let mut folded: Vec<String> = Vec::new();
    let mut end = 0;
    for span in tokenize(text).iter().map(|token| token.span) {
        let (written, gap) = (span.of(text), &text[end..span.start as usize]);
        end = span.end as usize;
        let is_digit = |letter: char| letter.is_ascii_digit();
        let is_thousands = gap == "," && written.len() == 3;
        let is_number = |word: &&mut String| word.starts_with(is_digit) && word.ends_with(is_digit);
        let goes_on = written.starts_with(is_digit) && (gap == "." || is_thousands);
        match folded.last_mut().filter(is_number).filter(|_| goes_on) {
            Some(last) => {
                last.push_str(if gap == "." { "." } else { "" });
                last.push_str(&fold(written));
            }
            None => folded.extend(fold(written).split(' ').map(str::to_owned)),
        }
    }
    folded
}

/// The words of a text that count, with whether each is in brackets.
pub(super) fn words_of(text: &str) -> Vec<(String, bool)> {
    let mut found = Vec::new();
    for (number, part) in text.split(['(', '[']).enumerate() {
        let (inside, after) = part.split_once([')', ']']).unwrap_or(if number > 0 { (part, "") } else { ("", part) });
        for (part, in_brackets) in [(inside, true), (after, false)] {
            let folded = numbers_joined(part);
            let mut words = folded.iter().map(String::as_str).filter(|word| !word.is_empty()).peekable();
            while let Some(word) = words.next() {
                let is_number = word.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
                let unit = words.next_if(|next| is_number && unit_of(next).is_some()).and_then(unit_of);
                let glued = word.trim_start_matches(|letter: char| letter.is_ascii_digit() || letter == '.');
                let number = &word[..word.len() - glued.len()];
                let unit = unit.or_else(|| unit_of(glued).filter(|_| !number.is_empty()));
                match unit {
                    Some(unit) => {
                        found.push((format!("{}{unit}", if number.is_empty() { word } else { number }), in_brackets))
                    }
                    None if NEGATING.contains(&word) => found.push((word.to_owned(), in_brackets)),
                    None if is_linking_word(word) || is_stop_word(word) && word.len() > 1 => {}
                    None => found.push((word.to_owned(), in_brackets)),
                }
            }
        }
    }
    found
}
