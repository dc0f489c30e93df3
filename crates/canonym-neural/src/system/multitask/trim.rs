//! Emoji, bullets and other symbols beside a mention.
//!
//! Each symbol is a word, so a tagger may take one that it has never seen for the first word of a mention (`● fever`). Symbols within a
//! mention stay, and so does what is part of biomedical names: punctuation and brackets, mathematical signs and arrows, `°`, `△`, `®`.

use canonym_core::text::Span;

/// A span of `text` without the symbols and white space at its ends; `None` if it has nothing else.
pub fn trimmed(text: &str, span: Span) -> Option<Span> {
    let covered = span.of(text);
    let is_left_out = |letter: char| letter.is_whitespace() || is_symbol(letter);
    let kept = covered.trim_end_matches(is_left_out);
    let end = span.start + kept.len() as u32;
    let start = end - kept.trim_start_matches(is_left_out).len() as u32;
    (start < end).then_some(Span { start, end })
}

/// Whether a character is a symbol that is no part of a name: emoji, dingbats, shapes, bullets, and invisible characters.
fn is_symbol(letter: char) -> bool {
    let is_part_of_names = letter == '△' || letter.is_alphanumeric();
    !is_part_of_names
        && (letter.is_control()
            || matches!(letter,
                // Zero-width joiners and other format characters, variation selectors, the frame of keycaps.
                '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{20e3}'
                | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{e0000}'..='\u{e01ef}'
                // Bullets, and the replacement of characters that cannot be read.
                | '\u{2022}' | '\u{2023}' | '\u{2043}' | '\u{fff9}'..='\u{fffd}'
                // Technical symbols except ceilings, floors, angle brackets and integrals; pictures of control characters.
                | '\u{2300}'..='\u{2307}' | '\u{230c}'..='\u{231f}' | '\u{2322}'..='\u{2328}' | '\u{232b}'..='\u{237b}'
                | '\u{23b4}'..='\u{23db}' | '\u{23e2}'..='\u{2426}'
                // Lines, blocks, shapes, miscellaneous symbols, dingbats except brackets, braille, and stars.
                | '\u{2500}'..='\u{2767}' | '\u{2794}'..='\u{27bf}' | '\u{2800}'..='\u{28ff}' | '\u{2b00}'..='\u{2bff}'
                // Pictographs.
                | '\u{1f000}'..='\u{1faff}'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(covered: &str, expected: &str) {
        // Somewhere within a text.
        let text = format!("a {covered} b");
        let span = Span { start: 2, end: 2 + covered.len() as u32 };
        assert_eq!(trimmed(&text, span).map_or("", |span| span.of(&text)), expected, "{covered:?}");
    }

    #[test]
    fn symbols_at_the_ends_are_no_part_of_a_mention() {
        for (covered, expected) in [
            ("😀 fever", "fever"),
            ("fever😀", "fever"),
            ("• ❤\u{fe0f} fever of the knee 👩🏽\u{200d}⚕\u{fe0f} ■", "fever of the knee"),
            ("\u{feff}✔fever\u{fffd}", "fever"),
            ("fever 🤦\u{200d}♀\u{fe0f}", "fever"),
            ("fever 🤒 cough", "fever 🤒 cough"),
            ("😀", ""),
            ("● 🇩🇪 \u{200b}", ""),
        ] {
            check(covered, expected);
        }
    }

    #[test]
    fn signs_that_are_part_of_names_stay() {
        for name in [
            "(+)-catechin",
            "CD4+",
            "5′-AMP",
            "'wet' AMD",
            "40°",
            "Ca²⁺",
            "△F508",
            "~10 %",
            "[18F]FDG",
            "α",
            "患者",
            "→ IgE ↑",
            "①",
            "Humira®",
            "^13C",
            "…",
            "é",
        ] {
            check(name, name);
        }
    }
}
