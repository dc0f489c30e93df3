//! Names as annotated documents write them: which mentions teach a name, and where a text can have one.
//!
//! Used by trained models and by annotation projects, so that both find the same names. It does not decide what a name means.
//!
//! ```
//! use canonym_core::text::taught::{can_begin, can_end, name_of};
//!
//! assert_eq!(name_of("V+").as_deref(), Some("V+"));
//! assert_eq!(name_of("of"), None);
//! assert!(can_begin(Some('5'), '+') && !can_begin(Some('5'), 'm'));
//! assert!(can_end('+', Some(' ')) && !can_end('+', Some('v')));
//! ```

/// Minimum number of characters of a name, and of a name in lower case, which may be an ordinary word.
const MIN_LENGTH: usize = 2;
const MIN_LOWER: usize = 3;

/// Maximum length of a name in bytes.
pub const MAX_LENGTH: usize = 60;

/// The name that a mention teaches; `None` if it is too short or too long. Words that begin a sentence are in lower case.
pub fn name_of(mention: &str) -> Option<String> {
    let name = mention.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut letters = name.chars();
    let first = letters.next()?;
    let name = if is_lower(letters.as_str()) && name.chars().count() >= MIN_LOWER {
        lower(first).to_string() + letters.as_str()
    } else {
        name
    };
    let min = if is_lower(&name) && name.chars().all(char::is_alphabetic) { MIN_LOWER } else { MIN_LENGTH };
    (name.chars().count() >= min && name.len() <= MAX_LENGTH && name.contains(char::is_alphanumeric)).then_some(name)
}

/// Whether a name that begins with `first` can follow `before`. No name begins inside of a word; one that begins with a sign may follow a
/// word, as in `5+/-1`, but not the same sign.
pub fn can_begin(before: Option<char>, first: char) -> bool {
    before.is_none_or(|before| if first.is_alphanumeric() { !before.is_alphanumeric() } else { before != first })
}

/// Whether a name that ends with `last` can precede `next`: neither `V+ve` nor `V++` has `V+`.
pub fn can_end(last: char, next: Option<char>) -> bool {
    next.is_none_or(|next| !next.is_alphanumeric() && next != last)
}

/// A letter in lower case.
pub fn lower(letter: char) -> char {
    letter.to_lowercase().next().unwrap_or(letter)
}

/// Whether a name has no capitals.
pub fn is_lower(name: &str) -> bool {
    !name.chars().any(char::is_uppercase)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_forms_are_names_and_short_words_are_not() {
        let named = |mention: &str| name_of(mention).unwrap_or_default();
        assert_eq!(
            ["CT", "Lame", "V+", "β-Blocker", "+/-  symptom"].map(named),
            ["CT", "lame", "V+", "β-Blocker", "+/- symptom"]
        );
        assert_eq!(["C", "of", "+/-", "", &"x".repeat(61)].map(named), [""; 5]);
    }

    #[test]
    fn names_begin_and_end_at_words_and_signs() {
        assert!(can_begin(None, 'm') && can_begin(Some('('), 'm') && can_begin(Some('x'), '-'));
        assert!(!can_begin(Some('x'), 'm') && !can_begin(Some('+'), '+'));
        assert!(can_end('m', None) && can_end('m', Some('-')) && can_end(')', Some('-')));
        assert!(!can_end('m', Some('s')) && !can_end('+', Some('+')) && !can_end('+', Some('v')));
    }
}
