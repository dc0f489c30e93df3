//! Tokenisation into words, numbers and Greek letters, with the kind of gap between tokens.
//!
//! A token is a run of letters, of digits, or of Greek letters, with following combining marks; `IL-2`, `IL2` and
//! `IL 2` have the same two tokens. A possessive `s` and punctuation are not tokens; punctuation determines the [`Gap`]
//! before the next token.
//!
//! ```
//! use canonym_core::text::tokens::{Gap, tokenize};
//! let tokens = tokenize("TNF-α, Parkinson's");
//! assert_eq!(tokens.len(), 3);
//! assert_eq!(tokens[1].before, Gap::Hyphen);
//! assert_eq!(tokens[2].before, Gap::Comma);
//! ```

use unicode_normalization::char::is_combining_mark;

use super::Span;

/// The separator between a token and the previous one; the strongest if there are several.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Gap {
    /// Nothing: `IL2`.
    Glued,
    /// An apostrophe, a hyphen, or a full stop or colon without white space.
    Hyphen,
    /// White space, or a symbol that does not separate clauses.
    Space,
    /// A slash.
    Slash,
    /// A comma.
    Comma,
    /// A bracket.
    Bracket,
    /// The end of a clause, sentence or line, or the start of the text.
    Stop,
}

/// A word, a number or a run of Greek letters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Token {
    /// Its span.
    pub span: Span,
    /// The gap before it.
    pub before: Gap,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    Letter,
    Digit,
    Greek,
    Other,
}

/// Whether `letter` is Greek (or the micro sign).
pub fn is_greek(letter: char) -> bool {
    matches!(letter, '\u{370}'..='\u{3ff}' | '\u{1f00}'..='\u{1fff}' | '\u{b5}')
}

fn class(letter: char) -> Class {
    if letter.is_ascii() {
        return match letter {
            'a'..='z' | 'A'..='Z' => Class::Letter,
            '0'..='9' => Class::Digit,
            _ => Class::Other,
        };
    }
    if is_greek(letter) && letter.is_alphabetic() {
        Class::Greek
    } else if letter.is_alphabetic() {
        Class::Letter
    } else if letter.is_numeric() {
        Class::Digit
    } else {
        Class::Other
    }
}

fn gap_of(previous: Option<char>, letter: char, next: Option<char>) -> Gap {
    // Inside chemical names such as `2,4-D` or `poly(A)`, brackets and commas do not separate.
    let glued_before = previous.is_some_and(|previous| !previous.is_whitespace());
    let glued_after = next.is_some_and(|next| next.is_alphanumeric() || next == '-');
    match letter {
        ',' if next.is_some_and(|next| next.is_ascii_digit()) => Gap::Hyphen,
        '(' | '[' if glued_before && glued_after => Gap::Hyphen,
        ')' | ']' if glued_after => Gap::Hyphen,
        '\'' | '\u{2019}' | '\u{2bc}' | '`' | '-' | '\u{2010}'..='\u{2015}' | '\u{2212}' | '\u{ad}' | '_' => {
            Gap::Hyphen
        }
        '.' | ':' if next.is_some_and(|next| !next.is_whitespace()) => Gap::Hyphen,
        '.' | ':' | ';' | '?' | '!' | '\n' | '\r' | '\u{2028}' | '\u{2029}' => Gap::Stop,
        '/' | '\\' | '|' => Gap::Slash,
        ',' => Gap::Comma,
        '(' | ')' | '[' | ']' | '{' | '}' | '<' | '>' | '"' | '\u{201c}' | '\u{201d}' => Gap::Bracket,
        _ => Gap::Space,
    }
}

/// The tokens of `text`, in order.
pub fn tokenize(text: &str) -> Vec<Token> {
    let mut tokens = Vec::with_capacity(text.len() / 5 + 1);
    tokenize_into(text, &mut tokens);
    tokens
}

/// Replaces the content of `tokens` by the tokens of `text`.
pub fn tokenize_into(text: &str, tokens: &mut Vec<Token>) {
    tokens.clear();
    let mut gap = Gap::Stop;
    let mut letters = text.char_indices().peekable();
    let mut previous = None;
    while let Some((start, letter)) = letters.next() {
        let kind = class(letter);
        if kind == Class::Other {
            let next = letters.peek().map(|(_, next)| *next);
            gap = gap.max(gap_of(previous, letter, next));
            previous = Some(letter);
            continue;
        }
        let mut end = start + letter.len_utf8();
        previous = Some(letter);
        while let Some((at, next)) = letters.peek().copied() {
            if class(next) != kind && (next.is_ascii() || !is_combining_mark(next)) {
                break;
            }
            end = at + next.len_utf8();
            letters.next();
        }
        let span = Span::new(start, end);
        if is_possessive(text, span, tokens.last()) {
            gap = Gap::Glued;
            continue;
        }
        tokens.push(Token { span, before: gap });
        gap = Gap::Glued;
    }
}

/// A single `s` after a word: `Parkinson's`, or `parkinson s` after removal of punctuation.
fn is_possessive(text: &str, span: Span, previous: Option<&Token>) -> bool {
    let Some(previous) = previous else { return false };
    if span.len() != 1 || previous.span.len() < 3 {
        return false;
    }
    let between = &text[previous.span.end as usize..span.start as usize];
    let after_letter = previous.span.of(text).ends_with(|letter: char| letter.is_alphabetic());
    let ends_word = !text[span.end as usize..].starts_with(|letter: char| letter.is_alphanumeric() || letter == '-');
    let by_apostrophe = matches!(between, "'" | "\u{2019}" | "`" | "\u{2bc}");
    let one = span.of(text);
    let lost_apostrophe = between == " " && one == "s" && !BEFORE_LETTER.contains(&previous.span.of(text));
    after_letter && ends_word && ((by_apostrophe && matches!(one, "s" | "S")) || lost_apostrophe)
}

/// Words after which a single `s` is the letter S.
const BEFORE_LETTER: [&str; 5] = ["protein", "vitamin", "hemoglobin", "haemoglobin", "sulfur"];

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use proptest::prelude::*;

    use super::*;

    fn check(text: &str, expect: Expect) {
        let tokens = tokenize(text);
        let shown: Vec<String> =
            tokens.iter().map(|token| format!("{:?}:{}", token.before, token.span.of(text))).collect();
        expect.assert_eq(&shown.join(" "));
    }

    #[test]
    fn letters_digits_and_greek_are_apart() {
        check("IL2 IL-2, TNFα/β", expect!["Stop:IL Glued:2 Space:IL Hyphen:2 Comma:TNF Glued:α Slash:β"]);
    }

    #[test]
    fn possessive_s_is_no_token() {
        check("Parkinson's disease", expect!["Stop:Parkinson Space:disease"]);
        check("parkinson s disease", expect!["Stop:parkinson Space:disease"]);
        check("vitamin S, S's", expect!["Stop:vitamin Space:S Comma:S Hyphen:s"]);
    }

    #[test]
    fn stops_need_white_space() {
        check("was 1.5. Then", expect!["Stop:was Space:1 Hyphen:5 Stop:Then"]);
        check("a\r\nb\u{a0}c 😀 d", expect!["Stop:a Stop:b Space:c Space:d"]);
    }

    #[test]
    fn combining_marks_stay_with_their_letter() {
        check("Sjo\u{308}gren ﬁbrosis", expect!["Stop:Sjo\u{308}gren Space:ﬁbrosis"]);
    }

    proptest! {
        #[test]
        fn tokens_are_ordered_and_on_boundaries(text in "\\PC{0,60}") {
            let mut last = 0;
            for token in tokenize(&text) {
                prop_assert!(token.span.start as usize >= last);
                prop_assert!(!token.span.of(&text).is_empty());
                last = token.span.end as usize;
            }
        }
    }
}
