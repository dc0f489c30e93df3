//! The edges of matches: brackets and letters of their names, prefixes, and what follows.

use super::scan::Word;
use crate::text::Span;
use crate::text::tokens::Gap;
use crate::text::words::is_prefix;

/// Whether a match is a prefix whose word follows later: `hypo- and hyperthyroidism`.
pub(super) fn is_hanging_prefix(text: &str, span: Span) -> bool {
    let after = &text[span.end as usize..];
    after.strip_prefix('-').is_some_and(|rest| rest.starts_with([' ', '/', ','])) && is_prefix(span.of(text))
}

/// Whether a match is cut out of a token or of an abbreviated name: `1 receptor` in `GLP-1 receptor`, `CTA b` in `CTA b/l`, `K` in
/// `K. pneumoniae`, `r` in `r/o`.
pub(super) fn is_cut(text: &str, span: Span) -> bool {
    let (before, inside, after) = (&text[..span.start as usize], span.of(text), &text[span.end as usize..]);
    let starts_inside = || {
        let part = inside.split([' ', '-']).next().unwrap_or_default();
        let number = part.trim_start_matches(|letter: char| letter.is_ascii_uppercase());
        part.len() < inside.len()
            && part.len() - number.len() <= 1
            && !number.is_empty()
            && number.bytes().all(|byte| byte.is_ascii_digit())
            && before.strip_suffix('-').is_some_and(|before| before.ends_with(char::is_alphabetic))
    };
    let ends_inside = || {
        let has_letter = inside.rsplit(' ').next().is_some_and(|last| last.len() == 1 && last.len() < inside.len());
        has_letter && after.strip_prefix('/').is_some_and(|after| after.starts_with(char::is_alphabetic))
    };
    let is_genus = || {
        let species = after.strip_prefix(". ").unwrap_or_default();
        let species = &species[..species.find(|letter: char| !letter.is_alphabetic()).unwrap_or(species.len())];
        inside.len() == 1
            && inside.starts_with(char::is_uppercase)
            && species.starts_with(char::is_lowercase)
            && SPECIES_ENDINGS.iter().any(|ending| species.len() > 4 && species.ends_with(ending))
    };
    // Clinical shorthand of two small letters.
    let is_shorthand = || {
        let is_small = |text: &str| text.starts_with(|letter: char| letter.is_ascii_lowercase());
        let ends_word = |text: &str| !text.starts_with(char::is_alphanumeric);
        let is_first = || after.strip_prefix('/').is_some_and(|next| is_small(next) && ends_word(&next[1..]));
        let is_second = || {
            let first = before.strip_suffix('/').and_then(|before| before.split([' ', '\n', '(', ',']).next_back());
            first.is_some_and(|first| first.len() == 1 && is_small(first))
        };
        inside.len() == 1 && is_small(inside) && (is_first() || is_second())
    };
    starts_inside() || ends_inside() || is_genus() || is_shorthand()
}

/// Endings of names of species.
const SPECIES_ENDINGS: [&str; 9] = ["ae", "us", "is", "um", "coli", "ans", "ens", "ii", "es"];

/// Words after the hyphen that mark a cause.
const CAUSED: [&str; 5] = ["associated", "dependent", "induced", "mediated", "related"];

/// Extends a match by characters of its name that the lookup ignores: the brackets of `(Z)-ligustilide` and
/// `nickel(3+)`, the letter of `Budlein A`.
pub(super) fn whole_name(text: &str, span: Span, name: &str) -> Span {
    let written = span.of(text);
    if name.len() <= written.len() {
        return span;
    }
    let Some(at) = name.to_ascii_lowercase().find(&written.to_ascii_lowercase()) else { return span };
    let (lead, trail) = (&name[..at], &name[at + written.len()..]);
    let (before, after) = (&text[..span.start as usize], &text[span.end as usize..]);
    let (Some(before), Some(after)) = (before.strip_suffix(lead), after.strip_prefix(trail)) else { return span };
    // An article at the beginning of a name is not part of the mention.
    let is_other = lead.contains(char::is_alphabetic)
        || before.ends_with(char::is_alphanumeric)
        || after.starts_with(char::is_alphanumeric);
    if is_other { span } else { Span::new(before.len(), text.len() - after.len()) }
}

/// Extends a span to the bracket before it that is closed inside: `[18F]FDG`.
pub(super) fn with_bracket(text: &str, span: Span) -> Span {
    let inside = span.of(text);
    let opens = |open: char, close: char| {
        let is_before = text[..span.start as usize].ends_with(open);
        is_before && inside.find(close).is_some_and(|at| !inside[..at].contains(open) && at + 1 < inside.len())
    };
    let start = span.start - u32::from(opens('[', ']') || opens('(', ')'));
    Span { start, ..span }
}

/// Whether a match that ends with word `last` is the cause of what follows.
pub(super) fn is_cause(text: &str, words: &[Word], last: usize) -> bool {
    let next = words.get(last + 1).filter(|next| next.token.before == Gap::Hyphen);
    next.is_some_and(|next| CAUSED.contains(&next.token.span.of(text)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_take_their_brackets_and_last_letters_along() {
        let check = |text: &str, found: &str, name: &str, expected: &str| {
            let start = text.find(found).unwrap();
            assert_eq!(whole_name(text, Span::new(start, start + found.len()), name).of(text), expected);
        };
        check("of (z)-ligustilide", "z)-ligustilide", "(Z)-ligustilide", "(z)-ligustilide");
        check("with nickel(3+) and", "nickel(3", "nickel(3+)", "nickel(3+)");
        check("Budlein A is", "Budlein", "Budlein A", "Budlein A");
        check("Budlein and", "Budlein", "Budlein A", "Budlein");
        check("got the bends", "bends", "The Bends", "bends");
        check("Budlein AB", "Budlein", "Budlein A", "Budlein");
        check("éa Fever", "Fever", "Fever of éa", "Fever");
        for (text, found) in [
            ("the GLP-1 receptor", "1 receptor"),
            ("HLA-B27 positive", "B27 positive"),
            ("CTA b/l", "CTA b"),
            ("K. pneumoniae", "K"),
            ("CT to r/o PE", "r"),
            ("c/o pain", "o"),
        ] {
            let start = text.find(found).unwrap();
            assert!(is_cut(text, Span::new(start, start + found.len())), "{text}");
        }
        assert!(!is_cut("Na/K ratio", Span::new(3, 4)) && !is_cut("the C/N ratio", Span::new(4, 5)));
        assert!(!is_cut("low K. Repleted", Span::new(4, 5)) && !is_cut("type 1 receptor", Span::new(5, 15)));
        assert_eq!(with_bracket("an [18F]FDG scan", Span::new(4, 11)), Span::new(3, 11));
        assert_eq!(with_bracket("(fever) and", Span::new(1, 6)), Span::new(1, 6));
    }
}
