//! Rule-based sentence splitting for biomedical text.
//!
//! A full stop ends a sentence if it is followed by white space and a possible sentence start, and the word before it
//! is not an abbreviation. A blank line ends a sentence, and so does the end of a line that is not wrapped, such as a
//! title. Sections are not considered: split each section of a document separately.
//!
//! ```
//! use canonym_core::text::sentences::sentences;
//! let text = "E. coli was grown (Fig. 2). It died.";
//! let found: Vec<&str> = sentences(text).into_iter().map(|span| span.of(text)).collect();
//! assert_eq!(found, ["E. coli was grown (Fig. 2).", "It died."]);
//! ```

use crate::text::Span;

/// Words after which a full stop never ends a sentence. Sorted, lower case, without the last stop.
const ALWAYS_JOINED: [&str; 26] = [
    "approx", "cf", "dr", "drs", "e.g", "eg", "eq", "eqs", "fig", "figs", "gen", "i.e", "ie", "incl", "mr", "mrs",
    "ms", "prof", "ref", "refs", "st", "subsp", "suppl", "v", "viz", "vs",
];

/// Words after which a full stop does not end a sentence before a number. Sorted, lower case.
const JOINED_TO_NUMBERS: [&str; 14] =
    ["art", "ca", "chap", "ed", "ex", "no", "nos", "p", "pp", "sect", "tab", "tabs", "vol", "vols"];

/// Words after which a full stop ends a sentence only before a sentence opener. Sorted, lower case.
const OFTEN_JOINED: [&str; 15] =
    ["al", "co", "corp", "etc", "inc", "jr", "ltd", "m.d", "p.m", "ph.d", "sp", "spp", "sr", "u.k", "u.s"];

/// Capitalised words that start sentences and are not names. Sorted, lower case.
#[rustfmt::skip]
const OPENERS: [&str; 65] = [
    "a", "after", "all", "also", "although", "an", "analysis", "and", "as", "at", "background", "because", "both", "but",
    "by", "conclusion", "conclusions", "despite", "during", "each", "finally", "for", "from", "further",
    "furthermore", "he", "here", "however", "if", "in", "it", "its", "material", "methods", "moreover", "most", "no",
    "objective", "of", "on", "one", "only", "our", "patients", "results", "several", "she", "since", "some", "such",
    "that", "the", "their", "then", "there", "therefore", "these", "they", "this", "those", "thus", "to", "two",
    "we", "when",
];

/// Words after which a single capital is part of a name and not an initial: "hepatitis B.". Sorted, lower case.
const CLASSIFIERS: [&str; 18] = [
    "antigen",
    "class",
    "factor",
    "figure",
    "grade",
    "group",
    "hep",
    "hepatitis",
    "influenza",
    "panel",
    "protein",
    "stage",
    "strain",
    "subtype",
    "table",
    "type",
    "vit",
    "vitamin",
];

/// Brackets that close farther away than this, in bytes, count as unclosed.
const MAX_BRACKET: usize = 600;

/// Lines longer than this, in bytes, are never considered wrapped.
const MAX_WRAPPED_LINE: usize = 200;

/// The sentences of `text` in order, without surrounding white space; together they cover all other text.
pub fn sentences(text: &str) -> Vec<Span> {
    let mut found = Vec::new();
    for paragraph in paragraphs(text) {
        let block = paragraph.of(text);
        let offset = paragraph.start as usize;
        let closing = closing_brackets(block);
        let mut start = skip_blanks(block, 0);
        let mut resume = start;
        let mut enclosed_until = 0;
        for (at, c) in block.char_indices() {
            if at < resume {
                continue;
            }
            if let Some(close) = closing_of(&closing, at) {
                // A bracketed text that starts a sentence is split like any other.
                if at == start {
                    continue;
                }
                enclosed_until = enclosed_until.max(close);
            }
            if at < enclosed_until || !matches!(c, '.' | '?' | '!' | '…') {
                continue;
            }
            // A run of stops is handled once, so the scan is linear.
            resume = at + run_of_stops(&block[at..]);
            if let Some(end) = sentence_end(block, start, at) {
                push_trimmed(text, offset + start, offset + end, &mut found);
                start = skip_blanks(block, end);
                resume = start;
            }
        }
        push_trimmed(text, offset + start, offset + block.len(), &mut found);
    }
    found
}

/// Blocks that sentences do not cross: they end with a blank line or an unwrapped line.
fn paragraphs(text: &str) -> Vec<Span> {
    let mut blocks = Vec::new();
    let mut lines: Vec<Span> = Vec::new();
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        let span = Span::new(start, start + line.len());
        start += line.len();
        if line.trim().is_empty() {
            join_wrapped(text, &lines, &mut blocks);
            lines.clear();
        } else {
            lines.push(span);
        }
    }
    join_wrapped(text, &lines, &mut blocks);
    blocks
}

/// Joins adjacent lines if the break between them is due to wrapping.
fn join_wrapped(text: &str, lines: &[Span], blocks: &mut Vec<Span>) {
    let width = lines.iter().map(|line| line.of(text).trim_end().len()).max().unwrap_or(0);
    let mut block: Option<Span> = None;
    for (row, &line) in lines.iter().enumerate() {
        let joined = block.is_some() && row > 0 && is_wrapped(lines[row - 1].of(text), line.of(text), width);
        match &mut block {
            Some(block) if joined => block.end = line.end,
            _ => blocks.extend(block.replace(line)),
        }
    }
    blocks.extend(block);
}

/// Whether `line` is wrapped and continues in `next`; `width` is the longest line of the block in bytes.
fn is_wrapped(line: &str, next: &str, width: usize) -> bool {
    let line = line.trim_end();
    let next = next.trim_start();
    let starts_lower = next.chars().next().is_some_and(char::is_lowercase);
    if starts_lower || line.ends_with([',', ';', '-', '–']) {
        return true;
    }
    let first_word = next.split_whitespace().next().map_or(0, str::len);
    // The next word would not have fitted on the line.
    width <= MAX_WRAPPED_LINE && line.len() + 1 + first_word > width
}

/// Pairs (open, close) of brackets in a block, sorted, without those that close far away.
fn closing_brackets(block: &str) -> Vec<(usize, usize)> {
    let mut open = Vec::new();
    let mut pairs = Vec::new();
    for (at, byte) in block.bytes().enumerate() {
        match byte {
            b'(' | b'[' => open.push((at, byte)),
            b')' | b']' => {
                let partner = if byte == b')' { b'(' } else { b'[' };
                if let Some(&(start, kind)) = open.last()
                    && kind == partner
                {
                    open.pop();
                    if at - start <= MAX_BRACKET {
                        pairs.push((start, at));
                    }
                }
            }
            _ => {}
        }
    }
    pairs.sort_unstable();
    pairs
}

/// The first byte from `start` that is not white space.
fn skip_blanks(block: &str, start: usize) -> usize {
    block.len() - block[start..].trim_start().len()
}

fn run_of_stops(tail: &str) -> usize {
    tail.find(|c: char| !matches!(c, '.' | '?' | '!' | '…')).unwrap_or(tail.len())
}

fn closing_of(pairs: &[(usize, usize)], open: usize) -> Option<usize> {
    pairs.binary_search_by_key(&open, |pair| pair.0).ok().map(|row| pairs[row].1)
}

/// The end of the sentence that starts at `start`, if the stop at `at` ends it.
fn sentence_end(block: &str, start: usize, at: usize) -> Option<usize> {
    let tail = &block[at..];
    let stops = run_of_stops(tail);
    let closers = tail[stops..].find(|c: char| !matches!(c, ')' | ']' | '"' | '\'' | '”' | '’' | '»'));
    let end = at + closers.map_or(tail.len(), |closers| stops + closers);
    let rest = &block[end..];
    let next = rest.trim_start();
    if next.is_empty() {
        return Some(end);
    }
    let before = &block[start..at];
    if next.len() == rest.len() {
        return is_glued_heading(before, next).then_some(end);
    }
    if !starts_sentence(next) {
        return None;
    }
    let plain_stop = block[at..end].starts_with('.') && stops == 1;
    (!plain_stop || stop_ends_sentence(before, next)).then_some(end)
}

/// "…treatment.CONCLUSIONS: …": the space after the stop is missing.
fn is_glued_heading(before: &str, next: &str) -> bool {
    let heading = next.find(|c: char| !c.is_ascii_uppercase() && c != ' ').unwrap_or(next.len());
    heading >= 4 && next[heading..].starts_with(':') && before.ends_with(|c: char| c.is_alphanumeric() || c == ')')
}

/// Whether `next` can start a sentence: a capital, a digit, an opening quote or bracket, or a symbol like "p53".
fn starts_sentence(next: &str) -> bool {
    let bare = next.trim_start_matches(['(', '[', '"', '\'', '“', '‘', '«']);
    let Some(first) = bare.chars().next() else { return true };
    if !first.is_lowercase() {
        return first.is_alphanumeric() || matches!(first, '•' | '*' | '<' | '>' | '-' | '–' | '+' | '±' | '~');
    }
    let word = bare.split(|c: char| c.is_whitespace() || c == '(').next().unwrap_or_default();
    word.chars().any(|c| c.is_ascii_digit() || c.is_uppercase()) || (!first.is_ascii() && word.contains('-'))
}

/// Whether a single stop after `before` ends the sentence when `next` follows.
fn stop_ends_sentence(before: &str, next: &str) -> bool {
    let is_edge = |c: char| c.is_whitespace() || matches!(c, '(' | '[' | '"' | '“' | '‘' | '/' | ',' | ';');
    let head = before.trim_end_matches(|c: char| !is_edge(c));
    let word = &before[head.len()..];
    // A list or section number: "1. Introduction".
    if head.len() <= 2 && is_enumerator(word) {
        return false;
    }
    let lower = word.to_lowercase();
    let next_word: String = next.chars().take_while(|c| c.is_alphabetic()).flat_map(char::to_lowercase).collect();
    let opens = OPENERS.binary_search(&next_word.as_str()).is_ok();
    let before_number = next.starts_with(|c: char| c.is_ascii_digit() || c == '(' || c == '[');
    if ALWAYS_JOINED.binary_search(&lower.as_str()).is_ok() {
        return false;
    }
    // `Ca. Liberibacter`.
    if word == "Ca" {
        return opens;
    }
    if JOINED_TO_NUMBERS.binary_search(&lower.as_str()).is_ok() {
        return !before_number;
    }
    if OFTEN_JOINED.binary_search(&lower.as_str()).is_ok() {
        return opens;
    }
    let mut letters = word.chars();
    let is_initial = letters.next().is_some_and(char::is_uppercase) && letters.next().is_none();
    if is_initial && !opens {
        let previous = head.split_whitespace().next_back().unwrap_or_default().to_lowercase();
        // Litres: `reflux of 8 L. Rectal examination`.
        let is_unit = word == "L" && previous.ends_with(|letter: char| letter.is_ascii_digit());
        return is_unit || CLASSIFIERS.binary_search(&previous.as_str()).is_ok();
    }
    // "P = 0. 05": some corpora contain spaces inside numbers.
    if word.ends_with(|c: char| c.is_ascii_digit()) && next.starts_with(|c: char| c.is_ascii_digit()) {
        return false;
    }
    // "J.M. Smith", "5 mg i.v. Morphine".
    let is_dotted = word.contains('.') && word.split('.').all(|part| part.chars().count() <= 1);
    opens || !is_dotted
}

/// Whether a word in lower case is an abbreviation, whose full stop may be inside a sentence.
pub(crate) fn is_abbreviation(word: &str) -> bool {
    [&ALWAYS_JOINED[..], &JOINED_TO_NUMBERS, &OFTEN_JOINED].iter().any(|list| list.binary_search(&word).is_ok())
}

fn is_enumerator(word: &str) -> bool {
    let word = word.trim_matches(['(', ')', '[', ']']);
    !word.is_empty() && word.len() <= 3 && (word.chars().all(|c| c.is_ascii_digit()) || word.len() == 1)
}

fn push_trimmed(text: &str, start: usize, end: usize, found: &mut Vec<Span>) {
    let part = &text[start..end];
    let trimmed = part.trim();
    if !trimmed.is_empty() {
        let start = start + part.len() - part.trim_start().len();
        found.push(Span::new(start, start + trimmed.len()));
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use proptest::prelude::*;

    use super::*;

    fn check(text: &str, expect: Expect) {
        let found: Vec<&str> = sentences(text).into_iter().map(|span| span.of(text)).collect();
        expect.assert_eq(&found.join(" ¦ "));
    }

    #[test]
    fn word_lists_are_sorted() {
        for list in [&ALWAYS_JOINED[..], &JOINED_TO_NUMBERS, &OFTEN_JOINED, &OPENERS, &CLASSIFIERS] {
            assert!(list.is_sorted(), "{list:?}");
        }
    }

    #[test]
    fn stop_before_a_capital_ends_a_sentence() {
        check(
            "Fever was seen. Cough was not. 3 died! Why? Unknown",
            expect!["Fever was seen. ¦ Cough was not. ¦ 3 died! ¦ Why? ¦ Unknown"],
        );
    }

    #[test]
    fn abbreviations_do_not_end_a_sentence() {
        check(
            "As in Fig. 1, e.g. ATP vs. ADP, i.e. Dr. Who saw approx. 5 (No. 3).",
            expect!["As in Fig. 1, e.g. ATP vs. ADP, i.e. Dr. Who saw approx. 5 (No. 3)."],
        );
        check(
            "Sato et al. Nature 2004. Sato et al. The rest.",
            expect!["Sato et al. Nature 2004. ¦ Sato et al. ¦ The rest."],
        );
        check("The answer was no. However, no. 7 agreed.", expect!["The answer was no. ¦ However, no. 7 agreed."]);
    }

    #[test]
    fn initials_do_not_end_a_sentence() {
        check(
            "E. coli and S. Aureus by J.M. Smith. All had hepatitis B. Patients left.",
            expect!["E. coli and S. Aureus by J.M. Smith. ¦ All had hepatitis B. ¦ Patients left."],
        );
        check(
            "It was given i.v. The vial of vitamin D. Rose.",
            expect!["It was given i.v. ¦ The vial of vitamin D. ¦ Rose."],
        );
    }

    #[test]
    fn short_forms_and_units_end_a_sentence_before_a_new_one() {
        check(
            "No VTE or breast ca. Sister had DVT at ca. 50. Ca. Liberibacter infects trees.",
            expect!["No VTE or breast ca. ¦ Sister had DVT at ca. 50. ¦ Ca. Liberibacter infects trees."],
        );
        check(
            "Low vit D. Also reflux of 8 L. Rectal: empty. Has hep C. Jaundiced.",
            expect!["Low vit D. ¦ Also reflux of 8 L. ¦ Rectal: empty. ¦ Has hep C. ¦ Jaundiced."],
        );
        check("Two L. Monocytogenes strains by J. Smith.", expect!["Two L. Monocytogenes strains by J. Smith."]);
    }

    #[test]
    fn numbers_keep_their_points() {
        check("P = 0. 05 and 1.5 mg. p53 rose by .3 units.", expect!["P = 0. 05 and 1.5 mg. ¦ p53 rose by .3 units."]);
    }

    #[test]
    fn brackets_hold_together() {
        check(
            "It grew (see below. Then again) fast. (It was late. It rained.) End.",
            expect!["It grew (see below. Then again) fast. ¦ (It was late. ¦ It rained.) ¦ End."],
        );
        check("Open (bracket. Next one.", expect!["Open (bracket. ¦ Next one."]);
    }

    #[test]
    fn title_and_blank_lines_end_sentences() {
        check(
            "A study of asthma\nPatients with asthma were asked about their days and nights. They told us.",
            expect!["A study of asthma ¦ Patients with asthma were asked about their days and nights. ¦ They told us."],
        );
        check("One\r\n\r\ntwo", expect!["One ¦ two"]);
    }

    #[test]
    fn long_runs_take_linear_time() {
        let n = 200_000;
        assert_eq!(sentences(&".".repeat(n)).len(), 1);
        assert_eq!(sentences(&". a ".repeat(n)).len(), 1);
        assert_eq!(sentences(&format!("{}{}", " ".repeat(n), "()".repeat(n))).len(), 1);
        assert_eq!(sentences(&format!("{}{}", "(".repeat(n), "a. b. ".repeat(n))).len(), 1);
        assert_eq!(sentences(&"A\n".repeat(n)).len(), 1);
    }

    #[test]
    fn wrapped_lines_are_joined() {
        check(
            "The patients were treated with\nAspirin and then they went to\nsleep. They woke.",
            expect![[r#"
            The patients were treated with
            Aspirin and then they went to
            sleep. ¦ They woke."#]],
        );
    }

    #[test]
    fn headings_end_at_a_missing_blank() {
        check("We tested treatment.CONCLUSIONS: It works.", expect!["We tested treatment. ¦ CONCLUSIONS: It works."]);
        check("1. Introduction. Next.", expect!["1. Introduction. ¦ Next."]);
    }

    proptest! {
        #[test]
        fn sentences_are_ordered_and_lose_no_text(text in "([A-Za-z]{1,5}|[.?!…]|[ \n\t]|[()\\[\\]\"]|[0-9]|.){0,200}") {
            let found = sentences(&text);
            let mut end = 0;
            for span in found {
                prop_assert!(text[end..span.start as usize].trim().is_empty());
                prop_assert!(!span.of(&text).trim().is_empty());
                end = span.end as usize;
            }
            prop_assert!(text[end..].trim().is_empty());
        }
    }
}
