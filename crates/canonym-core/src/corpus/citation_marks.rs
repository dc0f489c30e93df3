//! Numbers of references that only markup sets off from the word before them, such as `asthma<sup>1,2</sup>`.
//!
//! Reduced to text they would change the word, so a space is inserted. Other superscripts stay where they are, as in
//! `Ca<sup>2+</sup>`, `10<sup>6</sup>` and `m<sup>2</sup>`.

/// Minimum number of letters of a word before a superscript that is the number of a reference: symbols of elements and
/// most units have fewer.
const MIN_LETTERS: usize = 4;

/// An element that may be the mark of a citation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mark {
    /// A reference to literature.
    Literature,
    /// A reference to something unspecified.
    Reference,
    /// A superscript.
    Superscript,
}

impl Mark {
    /// The mark of a JATS element with this name and `ref-type`, if it may be one.
    pub fn of(name: &str, ref_type: Option<&str>) -> Option<Mark> {
        match (name, ref_type) {
            ("xref", Some("bibr")) => Some(Mark::Literature),
            ("xref", None) => Some(Mark::Reference),
            ("sup", _) => Some(Mark::Superscript),
            _ => None,
        }
    }

    /// Inserts a space before `text[start..]`, the text of the element, if it is a citation glued to a word.
    pub fn set_off(self, text: &mut String, start: usize) {
        let (before, inside) = text.split_at(start);
        let follows_word = before.ends_with(char::is_alphanumeric);
        let is_citation = match self {
            Mark::Literature => follows_word && inside.starts_with(|c: char| !c.is_whitespace()),
            Mark::Reference => follows_word && is_numbers(inside),
            Mark::Superscript => ends_long_word(before) && is_numbers(inside),
        };
        if is_citation {
            text.insert(start, ' ');
        }
    }
}

/// Whether `text` is a list of numbers and ranges. Exponents, which start with a dash, are not.
fn is_numbers(text: &str) -> bool {
    let is_dash = |c: char| matches!(c, '-' | '\u{2010}'..='\u{2015}' | '\u{2212}');
    text.starts_with(|c: char| c.is_ascii_digit())
        && text.chars().all(|c| c.is_ascii_digit() || c == ',' || c.is_whitespace() || is_dash(c))
}

/// Whether `text` ends with a word of several letters, the last in lower case.
fn ends_long_word(text: &str) -> bool {
    let letters = text.chars().rev().take_while(|c| c.is_alphabetic());
    text.ends_with(char::is_lowercase) && letters.take(MIN_LETTERS).count() == MIN_LETTERS
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(mark: Mark, before: &str, inside: &str, expected: &str) {
        let mut text = format!("{before}{inside}");
        mark.set_off(&mut text, before.len());
        assert_eq!(text, expected);
    }

    #[test]
    fn superscript_numbers_after_words_are_set_off() {
        for numbers in ["1", "1,2", "1, 2", "3–5", "3-5,\n7"] {
            check(Mark::Superscript, "Asthma", numbers, &format!("Asthma {numbers}"));
        }
        check(Mark::Superscript, "ménière", "4", "ménière 4");
    }

    #[test]
    fn other_superscripts_stay() {
        for (before, inside) in [("Ca", "2+"), ("10", "6"), ("m", "2"), ("", "18"), ("mmol", "-1"), ("mmol", "−1")] {
            check(Mark::Superscript, before, inside, &format!("{before}{inside}"));
        }
        for (before, inside) in [("COPD", "2"), ("Asthma", "a"), ("Asthma", ""), ("Asthma", " 1"), ("asthma.", "1")] {
            check(Mark::Superscript, before, inside, &format!("{before}{inside}"));
        }
    }

    #[test]
    fn references_are_set_off_from_any_word() {
        check(Mark::Literature, "IL-6", "4", "IL-6 4");
        check(Mark::Literature, "COPD", "Smith 2000", "COPD Smith 2000");
        check(Mark::Literature, "asthma [", "4", "asthma [4");
        check(Mark::Reference, "flu", "4–6", "flu 4–6");
        check(Mark::Reference, "flu", "A", "fluA");
    }
}
