//! Abbreviation definitions in a text, "long form (SF)" or "SF (long form)", and the uses of the short forms.
//!
//! Letters of the short form are aligned with the words of the long form, similar to Schwartz and Hearst (2003): the
//! first letter must start a word, the others follow in order. The cheapest alignment wins, where letters that start
//! words are free; ties go to the shortest long form. There is no list of common abbreviations, so undefined ones are
//! not found.
//!
//! ```
//! use canonym_core::text::abbreviations::{find_abbreviations, occurrences};
//! let text = "Familial Mediterranean fever (FMF) is rare. FMF runs in families.";
//! let found = find_abbreviations(text);
//! assert_eq!(found[0].long.of(text), "Familial Mediterranean fever");
//! assert_eq!(occurrences(text, &found)[0].0.start, 44);
//! ```

use std::collections::HashMap;

use crate::text::Span;

/// A short form with the long form that the text defines for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Abbreviation {
    /// The short form at its definition, without brackets and plural `s`.
    pub short: Span,
    /// The long form.
    pub long: Span,
}

/// Maximum length of a short form in characters.
const MAX_SHORT: usize = 10;

/// Maximum length of a long form in bytes.
const MAX_LONG: usize = 200;

/// Maximum length of the text in brackets in bytes.
const MAX_INSIDE: usize = 250;

/// Words that an alignment skips at no cost. Sorted, lower case.
const PASSED_OVER: [&str; 24] = [
    "a", "an", "and", "as", "at", "by", "de", "due", "for", "from", "in", "into", "la", "of", "on", "or", "per", "the",
    "to", "type", "van", "via", "von", "with",
];

/// Words that cannot start a long form. Sorted, lower case; "in" is not listed because of "in vitro fertilization
/// (IVF)".
const NEVER_FIRST: [&str; 30] = [
    "a", "also", "an", "and", "are", "as", "at", "be", "by", "called", "for", "from", "had", "has", "is", "named",
    "of", "on", "or", "our", "than", "that", "the", "these", "this", "to", "was", "were", "with", "within",
];

/// Remarks in brackets that are not short forms. Sorted, lower case, without full stops.
const REMARKS: [&str; 50] = [
    "also", "and", "both", "ca", "cf", "chr", "data", "day", "days", "dr", "eg", "eq", "etc", "exon", "f", "female",
    "fig", "figs", "figure", "for", "group", "groups", "he", "her", "here", "his", "ie", "in", "intron", "male",
    "mean", "mim", "n", "no", "not", "of", "omim", "or", "ref", "refs", "sd", "see", "table", "tables", "the", "type",
    "vs", "with", "year", "years",
];

/// Words that introduce a short form: "(termed ABC)". Sorted, lower case.
const LEAD_INS: [&str; 9] = ["abbreviated", "called", "designated", "i.e.", "i.e.,", "named", "or", "symbol", "termed"];

/// Words that can follow the long form: "choroideremia gene (CHM)". Sorted, lower case.
const GENERIC: [&str; 9] =
    ["deficiency", "disease", "disorder", "gene", "genes", "locus", "protein", "proteins", "syndrome"];

/// The definitions in `text`, in text order.
pub fn find_abbreviations(text: &str) -> Vec<Abbreviation> {
    let mut found: Vec<Abbreviation> = Vec::new();
    for (open, close) in brackets(text) {
        let inside = trimmed(text, open + 1, close);
        let before = long_window(text, open);
        let definition =
            short_form(text, inside).and_then(|short| define(text, short, before, Start::Anywhere)).or_else(|| {
                short_before(text, open).and_then(|short| define(text, short, first_clause(text, inside), Start::First))
            });
        found.extend(definition);
    }
    found.sort_by_key(|abbreviation| abbreviation.short);
    found
}

/// Every use of a short form outside of definitions, with the index of its definition, in text order. Plurals in `s`
/// are included.
///
/// A use refers to the last definition of its short form before it; a use before the first definition, as in a title,
/// refers to the first.
pub fn occurrences(text: &str, abbreviations: &[Abbreviation]) -> Vec<(Span, usize)> {
    uses(text, abbreviations, |definitions, at| {
        let n_before = definitions.partition_point(|&row| abbreviations[row].short.end <= at.start);
        let first = || definitions.first().copied().filter(|&row| at.end <= abbreviations[row].short.start);
        n_before.checked_sub(1).map(|last| definitions[last]).or_else(first)
    })
}

/// Every use of a short form outside of definitions, with the row that `pick` selects from its sorted definitions.
fn uses(
    text: &str,
    abbreviations: &[Abbreviation],
    pick: impl Fn(&[usize], Span) -> Option<usize>,
) -> Vec<(Span, usize)> {
    let mut definitions: HashMap<&str, Vec<usize>> = HashMap::new();
    for (row, abbreviation) in abbreviations.iter().enumerate() {
        definitions.entry(abbreviation.short.of(text)).or_default().push(row);
    }
    for rows in definitions.values_mut() {
        rows.sort_by_key(|&row| abbreviations[row].short);
    }
    let mut begins = [false; 256];
    definitions.keys().filter_map(|short| short.bytes().next()).for_each(|byte| begins[usize::from(byte)] = true);
    let longest = definitions.keys().map(|short| short.chars().count()).max().unwrap_or(0);
    let mut found = Vec::new();
    let mut previous = None;
    let mut resume = 0;
    for (start, c) in text.char_indices() {
        let starts_word = c.is_alphanumeric() && !previous.is_some_and(char::is_alphanumeric);
        previous = Some(c);
        if start < resume
            || !starts_word
            || !begins[usize::from(text.as_bytes()[start])]
            || is_suffix_of_symbol(&text[..start])
        {
            continue;
        }
        let ends = text[start..].char_indices().take(longest).map(|(at, c)| start + at + c.len_utf8());
        let used =
            ends.filter_map(|end| Some((end, definitions.get(&text[start..end])?, word_end(&text[end..])?))).last();
        let Some((end, rows, n_plural)) = used else { continue };
        let span = Span::new(start, end + n_plural);
        resume = end;
        let is_definition = rows.iter().any(|&row| abbreviations[row].short.start as usize == start);
        if !is_definition && let Some(row) = pick(rows, span) {
            found.push((span, row));
        }
    }
    found
}

/// Whether a word after `text` is the rest of a longer symbol, such as "HT" in "5-HT" or "MYC" in "c-MYC".
fn is_suffix_of_symbol(text: &str) -> bool {
    let Some(head) = text.strip_suffix('-') else { return false };
    let mut last = head.chars().rev();
    last.next().is_some_and(char::is_alphanumeric) && !last.next().is_some_and(char::is_alphanumeric)
}

/// Number of bytes of a plural ending between a short form and `rest`; `None` if the word continues.
fn word_end(rest: &str) -> Option<usize> {
    let mut next = rest.chars();
    match next.next() {
        Some('s') if !next.next().is_some_and(char::is_alphanumeric) => Some(1),
        Some('-') if next.next().is_some_and(|c| c.is_ascii_digit()) => None,
        Some(c) if c.is_alphanumeric() => None,
        _ => Some(0),
    }
}

/// Pairs of brackets with at most `MAX_INSIDE` bytes and no other bracket between them.
fn brackets(text: &str) -> Vec<(usize, usize)> {
    let mut open = None;
    let mut pairs = Vec::new();
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'(' | b'[' => open = Some((at, byte)),
            b')' | b']' => {
                let partner = if byte == b')' { b'(' } else { b'[' };
                if let Some((start, kind)) = open.take()
                    && kind == partner
                    && at - start <= MAX_INSIDE
                {
                    pairs.push((start, at));
                }
            }
            _ => {}
        }
    }
    pairs
}

fn trimmed(text: &str, start: usize, end: usize) -> Span {
    let part = &text[start..end];
    let lead = part.len() - part.trim_start().len();
    Span::new(start + lead, start + lead + part.trim().len())
}

/// The text before a bracket in the same clause, at most `MAX_LONG` bytes.
fn long_window(text: &str, open: usize) -> Span {
    let mut start = open.saturating_sub(MAX_LONG);
    while !text.is_char_boundary(start) {
        start += 1;
    }
    let window = &text[start..open];
    let barrier = window.rfind(['(', ')', '[', ']', ';', ':', '\n']).map_or(0, |at| at + 1);
    let stop = [". ", "? ", "! "].iter().filter_map(|stop| window.rfind(stop)).max().map_or(0, |at| at + 2);
    trimmed(text, start + barrier.max(stop), open)
}

/// The text in brackets up to the first `;` or comma followed by a space.
fn first_clause(text: &str, inside: Span) -> Span {
    let part = inside.of(text);
    let end = [part.find(';'), part.find(", ")].into_iter().flatten().min().unwrap_or(part.len());
    trimmed(text, inside.start as usize, inside.start as usize + end)
}

/// The short form in brackets, if the text there can be one.
fn short_form(text: &str, inside: Span) -> Option<Span> {
    let clause = first_clause(text, inside);
    let mut start = clause.start as usize;
    let end = clause.end as usize;
    while let Some(lead) = text[start..end].split_whitespace().next()
        && lead.len() < end - start
        && LEAD_INS.binary_search(&lead.to_lowercase().as_str()).is_ok()
    {
        start = trimmed(text, start + lead.len(), end).start as usize;
    }
    let quoted = |c: char| matches!(c, '"' | '\'' | '“' | '”' | '‘' | '’');
    let bare = &text[start..end];
    let lead = bare.len() - bare.trim_start_matches(quoted).len();
    let bare = bare.trim_matches(quoted);
    let span = Span::new(start + lead, start + lead + bare.len());
    let n_words = bare.split_whitespace().count();
    let first_word = bare.split([' ', '.']).next().unwrap_or_default().to_lowercase();
    let has_case = bare.chars().any(char::is_uppercase);
    let is_remark = REMARKS.binary_search(&first_word.as_str()).is_ok() && (n_words > 1 || !has_case);
    (can_be_short(bare) && n_words <= if has_case { 2 } else { 1 } && !is_remark).then_some(without_plural(text, span))
}

/// The word before a bracket, if it can be a short form.
fn short_before(text: &str, open: usize) -> Option<Span> {
    let head = text[..open].trim_end();
    let word = head.char_indices().rev().take(MAX_SHORT + 1).take_while(|(_, c)| !c.is_whitespace()).last()?;
    let start = word.0;
    let is_whole = text[..start].chars().next_back().is_none_or(char::is_whitespace);
    let word = &head[start..];
    let n_capitals = word.chars().filter(|c| c.is_uppercase() || c.is_ascii_digit()).count();
    let fits = is_whole && n_capitals >= 2 && can_be_short(word);
    fits.then(|| without_plural(text, Span::new(start, head.len())))
}

/// Checks length, letters and punctuation of a short form.
fn can_be_short(word: &str) -> bool {
    let n_chars = word.chars().count();
    (1..=MAX_SHORT).contains(&n_chars)
        && word.starts_with(char::is_alphanumeric)
        && word.chars().any(char::is_alphabetic)
        && !word.contains(['=', '<', '>', '±', '%', ',', '≥', '≤', '~', ':', '*'])
}

/// "DVTs" without its `s`.
fn without_plural(text: &str, short: Span) -> Span {
    let stem = short.of(text).strip_suffix('s').unwrap_or_default();
    let is_plural = stem.chars().count() >= 2 && stem.ends_with(|c: char| c.is_uppercase() || c.is_ascii_digit());
    if is_plural { Span { end: short.end - 1, ..short } } else { short }
}

/// Positions in the window at which a long form can start.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Start {
    Anywhere,
    First,
}

/// A letter or digit in the window.
struct Letter {
    at: usize,
    folded: char,
    /// Index of its word (separated by white space).
    word: usize,
    starts_word: bool,
    /// Whether it starts a part of a word, for example after a hyphen.
    starts_part: bool,
}

/// The long form of `short` in `window`, if the alignment is good enough.
fn define(text: &str, short: Span, window: Span, start: Start) -> Option<Abbreviation> {
    let symbol = short.of(text);
    let symbols: Vec<char> = symbol.chars().filter(|c| c.is_alphanumeric()).map(fold).collect();
    let n_words = (symbols.len() + 5).min(2 * symbols.len());
    let words = words(text, window, n_words, start);
    let letters = letters(text, &words);
    let first_allowed = |letter: &Letter| start == Start::Anywhere || letter.word == 0;
    let (cost, first) = align(text, &symbols, &letters, &words, first_allowed)?;
    let end = words.last()?.end as usize;
    let long = Span::new(first, end);
    let long_text = long.of(text).trim_end_matches([',', '-', '"', '”']);
    let long = Span::new(first, first + long_text.len());
    let is_lower = !symbol.chars().any(|c| c.is_uppercase() || c.is_ascii_digit());
    let limit = match (is_lower, symbols.len()) {
        // A lower-case word in brackets is usually not a short form.
        (true, 2..=5) => 1,
        (true, _) => return None,
        (false, n) => 2 * n,
    };
    let n_letters = long_text.chars().filter(|c| c.is_alphanumeric()).count();
    let repeats = long_text.split(|c: char| !c.is_alphanumeric() && c != '-').any(|word| word == symbol);
    let is_list = symbols.len() <= 2 && long_text.contains(',');
    (cost <= limit && !is_list && n_letters >= (symbols.len() + 2).max(4) && !repeats)
        .then_some(Abbreviation { short, long })
}

/// The last (or first) `n_words` words of a window, separated by white space.
fn words(text: &str, window: Span, n_words: usize, start: Start) -> Vec<Span> {
    let base = text.as_ptr() as usize;
    let span_of = |word: &str| {
        let at = word.as_ptr() as usize - base;
        Span::new(at, at + word.len())
    };
    let all = window.of(text).split_whitespace();
    if start == Start::First {
        // The long form must cover all words in the brackets, so too many words mean that there is none.
        let words: Vec<Span> = all.map(span_of).collect();
        return if words.len() <= n_words { words } else { Vec::new() };
    }
    let mut words: Vec<Span> = all.rev().take(n_words).map(span_of).collect();
    words.reverse();
    words
}

fn letters(text: &str, words: &[Span]) -> Vec<Letter> {
    let mut letters = Vec::new();
    for (row, word) in words.iter().enumerate() {
        let mut previous: Option<char> = None;
        let mut is_first = true;
        for (at, c) in word.of(text).char_indices() {
            if c.is_alphanumeric() {
                let starts_part = previous.is_none_or(|p| !p.is_alphanumeric() && p != '\'' && p != '’')
                    || previous.is_some_and(|p| p.is_ascii_digit() != c.is_ascii_digit());
                letters.push(Letter {
                    at: word.start as usize + at,
                    folded: fold(c),
                    word: row,
                    starts_word: is_first,
                    starts_part,
                });
                is_first = false;
            }
            previous = Some(c);
        }
    }
    letters
}

/// Lower case; a Greek letter becomes the first letter of its name.
fn fold(c: char) -> char {
    let lower = c.to_lowercase().next().unwrap_or(c);
    let greek = "αa βb γg δd εe ζz ηe θt ιi κk λl μm µm νn ξx οo πp ρr σs ςs τt υu φp χc ψp ωo";
    let mut pair = greek.split(' ').filter(|pair| pair.starts_with(lower));
    if lower.is_ascii() { lower } else { pair.next().and_then(|pair| pair.chars().nth(1)).unwrap_or(lower) }
}

/// Minimum-cost alignment of the symbols with letters in order: its cost, and its start byte.
fn align(
    text: &str,
    symbols: &[char],
    letters: &[Letter],
    words: &[Span],
    first_allowed: impl Fn(&Letter) -> bool,
) -> Option<(usize, usize)> {
    // Cumulative cost of skipping words.
    let mut passed = vec![0];
    for word in words {
        let word = word.of(text);
        let bare = word.trim_matches(|c: char| !c.is_alphanumeric()).to_lowercase();
        let is_free = PASSED_OVER.binary_search(&bare.as_str()).is_ok() || bare.is_empty();
        passed
            .push(passed.last().copied().unwrap_or(0) + if is_free { 0 } else { 4 } + usize::from(word.ends_with(',')));
    }
    let between = |left: usize, right: usize| passed[right] - passed[left + 1];
    let n_words = words.len();
    // Cost and start of the best alignment that ends at each letter.
    let mut ends: Vec<(usize, usize, usize)> = Vec::new();
    for (n_done, symbol) in symbols.iter().enumerate() {
        let matching = letters.iter().enumerate().filter(|(_, letter)| letter.folded == *symbol);
        let mut next = Vec::new();
        for (row, letter) in matching {
            if n_done == 0 {
                if (letter.starts_word || letter.starts_part) && first_allowed(letter) {
                    let word = words[letter.word].of(text).to_lowercase();
                    let penalty = if NEVER_FIRST.binary_search(&word.as_str()).is_ok() { 20 } else { 0 };
                    next.push((row, penalty + if letter.starts_word { 0 } else { 2 }, letter.at));
                }
                continue;
            }
            let steps = ends.iter().filter(|(last, ..)| *last < row).map(|&(last, cost, start)| {
                let previous = &letters[last];
                let skipped = if previous.word == letter.word { 0 } else { between(previous.word, letter.word) };
                let step = if letter.starts_word || letter.starts_part {
                    0
                } else if last + 1 == row {
                    1
                } else if previous.word == letter.word {
                    2
                } else {
                    5
                };
                (cost + step + skipped, start)
            });
            // Ties go to the latest start, the shortest long form.
            if let Some((cost, start)) = steps.min_by_key(|&(cost, start)| (cost, usize::MAX - start)) {
                next.push((row, cost, start));
            }
        }
        ends = next;
    }
    ends.into_iter()
        .map(|(row, cost, start)| {
            let is_generic = |word: &Span| GENERIC.binary_search(&word.of(text).to_lowercase().as_str()).is_ok();
            let last = letters[row].word;
            let trailing =
                if last + 2 == n_words && words.last().is_some_and(is_generic) { 1 } else { between(last, n_words) };
            (cost + trailing, start)
        })
        .min_by_key(|&(cost, start)| (cost, usize::MAX - start))
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use proptest::prelude::*;

    use super::*;

    fn check(text: &str, expect: Expect) {
        let found = find_abbreviations(text);
        let rows: Vec<String> = found.iter().map(|a| format!("{} = {}", a.short.of(text), a.long.of(text))).collect();
        expect.assert_eq(&rows.join("; "));
    }

    fn check_uses(text: &str, expect: Expect) {
        let found = find_abbreviations(text);
        let row =
            |(span, row): &(Span, usize)| format!("{} {} -> {}", span.start, span.of(text), found[*row].long.of(text));
        let rows: Vec<String> = occurrences(text, &found).iter().map(row).collect();
        expect.assert_eq(&rows.join("; "));
    }

    #[test]
    fn word_lists_are_sorted() {
        for list in [&PASSED_OVER[..], &NEVER_FIRST, &REMARKS, &LEAD_INS, &GENERIC] {
            assert!(list.is_sorted(), "{list:?}");
        }
    }

    #[test]
    fn initials_define_a_short_form() {
        check("We saw familial Mediterranean fever (FMF) often.", expect!["FMF = familial Mediterranean fever"]);
        check("in children with ataxia-telangiectasia [A-T].", expect!["A-T = ataxia-telangiectasia"]);
        check("loss of growth of growth hormone (GH)", expect!["GH = growth hormone"]);
    }

    #[test]
    fn inner_letters_and_small_words_are_allowed() {
        check(
            "tuberculosis (TB), carcinoma of the breast (CB)",
            expect!["TB = tuberculosis; CB = carcinoma of the breast"],
        );
        check(
            "in vitro fertilization (IVF) and the electrocardiogram (ECG)",
            expect!["IVF = in vitro fertilization; ECG = electrocardiogram"],
        );
        check("6-mercaptopurine (6-MP), β-blocker (BB)", expect!["6-MP = 6-mercaptopurine; BB = β-blocker"]);
    }

    #[test]
    fn plural_short_form_loses_its_s() {
        check("deep vein thromboses (DVTs)", expect!["DVT = deep vein thromboses"]);
    }

    #[test]
    fn long_form_may_be_in_the_brackets() {
        check("Mutations of APC (adenomatous polyposis coli) and more", expect!["APC = adenomatous polyposis coli"]);
        check("Both IBD (see the part on inflammatory bowel disease) and", expect![""]);
    }

    #[test]
    fn remarks_are_no_definitions() {
        check(
            "people (P < 0.05), nine (n = 5), figures (Fig. 1), sites (see above), years (2001), type two (II)",
            expect![""],
        );
        check("the mean (mean) value and a new test (the test) of pain (or not)", expect![""]);
        check("First. Familial fever was seen. A case (FF)", expect![""]);
    }

    #[test]
    fn extra_words_in_the_brackets_are_cut() {
        check(
            "Becker muscular dystrophy (BMD; MIM 300376), Fanconi anemia (termed FA)",
            expect!["BMD = Becker muscular dystrophy; FA = Fanconi anemia"],
        );
    }

    #[test]
    fn uses_are_found_at_word_ends() {
        check_uses(
            "AD first. Atopic dermatitis (AD) is AD, not ADH. ADs, AD-like, c-AD, AD-2.",
            expect![
                "0 AD -> Atopic dermatitis; 36 AD -> Atopic dermatitis; 49 ADs -> Atopic dermatitis; 54 AD -> Atopic dermatitis"
            ],
        );
    }

    #[test]
    fn use_belongs_to_the_last_definition_before_it() {
        check_uses(
            "Atopic dermatitis (AD) is AD. Alzheimer disease (AD) is AD.",
            expect!["26 AD -> Atopic dermatitis; 56 AD -> Alzheimer disease"],
        );
    }

    #[test]
    fn uses_before_all_definitions_have_the_first() {
        let text = "AD in Peru. Atopic dermatitis (AD) is AD.";
        assert_eq!(occurrences(text, &find_abbreviations(text)), [(Span::new(0, 2), 0), (Span::new(38, 40), 0)]);
    }

    #[test]
    fn hostile_text_takes_linear_time() {
        find_abbreviations(&"(A".repeat(100_000));
        find_abbreviations(&"a a a a a a (AAAAAAAAAA) ".repeat(4_000));
        find_abbreviations(&format!("{} (AAAAAAAAAA)", "a".repeat(1_000_000)));
    }

    proptest! {
        #[test]
        fn spans_lie_on_boundaries(text in "([a-zA-Zαβé]{1,8}|[ ,.;-]|\\([A-Zβ0-9-]{1,6}s?\\)|[()\\[\\]]|.){0,60}") {
            let found = find_abbreviations(&text);
            for abbreviation in &found {
                prop_assert!(!abbreviation.short.of(&text).is_empty());
                let n_letters = |span: Span| span.of(&text).chars().count();
                prop_assert!(n_letters(abbreviation.long) > n_letters(abbreviation.short));
                prop_assert!(!abbreviation.long.overlaps(abbreviation.short));
            }
            for (span, row) in occurrences(&text, &found) {
                prop_assert!(span.of(&text).starts_with(found[row].short.of(&text)));
                prop_assert!(!span.overlaps(found[row].short));
            }
        }
    }
}
