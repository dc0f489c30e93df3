//! Expands coordinated mentions such as "breast and ovarian cancer" into several, often discontinuous mentions.
//!
//! A coordination is split at its conjunctions into conjuncts. Words at the start of the first conjunct, and at the end
//! of the last, can be shared by all; each choice is a reading. Readings are ranked by form, without a terminology;
//! callers take the first reading whose parts they find in theirs.
//!
//! ```
//! use canonym_core::text::{Span, composite::split_composite};
//! let text = "breast and ovarian cancer";
//! let readings = split_composite(text, Span::new(0, text.len()));
//! let parts: Vec<Vec<&str>> = readings[0].iter().map(|part| part.spans.iter().map(|span| span.of(text)).collect()).collect();
//! assert_eq!(parts, [vec!["breast", "cancer"], vec!["ovarian cancer"]]);
//! ```

mod ellipsis;

use self::ellipsis::{number_ellipsis, prefix_ellipsis};
use crate::text::Span;

/// One of the mentions in a coordination.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Part {
    /// Its spans in text order. With prefix ellipsis they are parts of words: `hypo` and `thyroidism`.
    pub spans: Vec<Span>,
}

/// Maximum number of conjuncts; longer lists are not split.
const MAX_CONJUNCTS: usize = 10;

/// Maximum number of words of a coordination.
const MAX_WORDS: usize = 24;

/// Maximum number of readings.
const MAX_READINGS: usize = 12;

/// Maximum number of words of a window from [`coordinations`], without conjunctions and commas.
const MAX_WINDOW_WORDS: usize = 8;

/// Maximum number of start or end positions of a window on each side of a conjunction.
const MAX_SIDES: usize = 4;

/// Words between conjuncts.
const CONJUNCTIONS: [&str; 4] = ["and", "or", "nor", "&"];

/// Words that end a window. Sorted, lower case.
#[rustfmt::skip]
const BARRIERS: [&str; 90] = [
    "a", "after", "also", "although", "an", "are", "as", "at", "be", "because", "been", "before", "being",
    "between", "but", "by", "can", "cause", "caused", "causes", "causing", "compared", "could", "did", "do", "does",
    "during", "either", "for", "from", "had", "has", "have", "he", "how", "if", "in", "include", "includes",
    "including", "increased", "induced", "into", "is", "it", "its", "may", "might", "more", "most", "no", "not",
    "on", "our", "she", "should", "show", "showed", "shown", "since", "such", "than", "that", "their", "then",
    "there", "therefore", "these", "they", "this", "those", "through", "thus", "to", "under", "until", "using",
    "was", "we", "were", "when", "where", "whether", "which", "while", "who", "with", "within", "without", "would",
];

/// Words that can be inside a window but not at its edges. Sorted, lower case.
const INNER: [&str; 4] = ["both", "of", "other", "the"];

/// Suffixes of nouns, which need no head after them.
const NOUN_ENDS: [&str; 19] = [
    "cancer",
    "carcinoma",
    "disease",
    "disorder",
    "emia",
    "failure",
    "infarction",
    "injury",
    "itis",
    "ness",
    "oma",
    "osis",
    "pain",
    "pathy",
    "syndrome",
    "tension",
    "tumor",
    "tumour",
    "uria",
];

/// Suffixes of adjectives, which need a head after them.
const ADJECTIVE_ENDS: [&str; 9] = ["ac", "al", "ar", "ary", "ian", "ic", "ive", "oid", "ous"];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Word,
    /// "and", "or", a slash.
    Conjunction,
    Comma,
    /// Brackets and full stops, which end a coordination.
    Barrier,
}

#[derive(Debug, Clone, Copy)]
struct Token {
    span: Span,
    kind: Kind,
}

/// Readings of the text in `span`, best first, each a list of parts in order; empty if it is not a coordination.
pub fn split_composite(text: &str, span: Span) -> Vec<Vec<Part>> {
    split_composite_where(text, span, |_| true)
}

/// Like [`split_composite`], without readings of which a part is a whole conjunct that `may_be_name` rejects; it gets the words.
pub fn split_composite_where(text: &str, span: Span, may_be_name: impl Fn(&[Span]) -> bool) -> Vec<Vec<Part>> {
    let tokens = tokens(text, span);
    if tokens.len() > 2 * MAX_WORDS || tokens.iter().any(|token| token.kind == Kind::Barrier) {
        return Vec::new();
    }
    let Some((conjuncts, begins_anew)) = conjuncts(text, &tokens) else { return Vec::new() };
    if let Some(reading) = prefix_ellipsis(text, &conjuncts).or_else(|| number_ellipsis(text, &conjuncts)) {
        return vec![reading];
    }
    let (first, last) = (&conjuncts[0], &conjuncts[conjuncts.len() - 1]);
    // Without shared words behind it, the first conjunct is a part; without shared words before it, the last one is.
    let (is_first, is_last) = (may_be_name(first), may_be_name(last));
    // `left kidney and both lungs`: `both` starts a new conjunct, so words of the first conjunct are not shared.
    let n_left = if begins_anew { 1 } else { first.len() };
    if !is_first && last.len() == 1 || !is_last && n_left == 1 {
        return Vec::new();
    }
    let form = Form::of(text, &conjuncts);
    let shared = (0..n_left).flat_map(|n_left| (0..last.len()).map(move |n_right| (n_left, n_right)));
    let mut ranked: Vec<_> = shared.map(|(n_left, n_right)| (form.penalty(n_left, n_right), n_left, n_right)).collect();
    ranked.sort_unstable();
    ranked.truncate(MAX_READINGS);
    let may_be = |(_, n_left, n_right): &(usize, usize, usize)| (*n_right > 0 || is_first) && (*n_left > 0 || is_last);
    let readings = ranked.into_iter().filter(may_be);
    readings.map(|(_, n_left, n_right)| read_parts(text, &conjuncts, n_left, n_right)).collect()
}

/// Candidate windows around the conjunctions of a sentence; the widest first for each conjunction.
///
/// Windows have words on both sides of a conjunction, at most eight in total, and no function word at the edges.
pub fn coordinations(text: &str, sentence: Span) -> Vec<Span> {
    let tokens = tokens(text, sentence);
    let mut found: Vec<Span> = Vec::new();
    for (row, token) in tokens.iter().enumerate() {
        if token.kind == Kind::Conjunction {
            let mut windows = windows_around(text, &tokens, row);
            windows.sort_by_key(|window| (usize::MAX - window.len(), window.start));
            found.extend(windows);
        }
    }
    // Conjunctions of the same list propose the same windows.
    let mut seen = std::collections::HashSet::new();
    found.retain(|window| seen.insert(*window));
    found
}

fn windows_around(text: &str, tokens: &[Token], row: usize) -> Vec<Span> {
    let is_open = |at: usize| match tokens[at].kind {
        Kind::Word => !is_listed(&BARRIERS, tokens[at].span.of(text)) || is_letter_a(text, tokens, at),
        Kind::Conjunction | Kind::Comma => true,
        Kind::Barrier => false,
    };
    let is_edge = |token: &Token| token.kind == Kind::Word && !is_listed(&INNER, token.span.of(text));
    let reach = 2 * MAX_WINDOW_WORDS;
    let left: Vec<usize> = (0..row).rev().take(reach).take_while(|&at| is_open(at)).collect();
    let right: Vec<usize> = (row + 1..tokens.len()).take(reach).take_while(|&at| is_open(at)).collect();
    let starts: Vec<usize> = left.into_iter().filter(|&at| is_edge(&tokens[at])).take(MAX_WINDOW_WORDS - 1).collect();
    let ends: Vec<usize> = right.into_iter().filter(|&at| is_edge(&tokens[at])).take(MAX_SIDES).collect();
    let mut windows = Vec::new();
    for &start in &starts {
        for &end in &ends {
            let n_words = tokens[start..=end].iter().filter(|token| token.kind == Kind::Word).count();
            // Near starts, and starts of lists whose first item would be cut off otherwise.
            let is_near = starts.iter().position(|&other| other == start).is_some_and(|n| n < MAX_SIDES);
            let starts_item = start == 0 || tokens[start - 1].kind != Kind::Word;
            if n_words <= MAX_WINDOW_WORDS && (is_near || starts_item) {
                windows.push(Span { start: tokens[start].span.start, end: tokens[end].span.end });
            }
        }
    }
    windows
}

/// Words, conjunctions and commas of the text in `span`.
fn tokens(text: &str, span: Span) -> Vec<Token> {
    let mut tokens: Vec<Token> = Vec::new();
    let base = span.start as usize;
    let part = span.of(text);
    let mut start = 0;
    while start < part.len() {
        let rest = &part[start..];
        let blank = rest.len() - rest.trim_start().len();
        if blank > 0 {
            start += blank;
            continue;
        }
        let length = rest.find(char::is_whitespace).unwrap_or(rest.len());
        push_word(text, Span::new(base + start, base + start + length), &mut tokens);
        start += length;
    }
    tokens
}

/// Splits a word (separated by white space) at slashes, brackets and trailing punctuation.
fn push_word(text: &str, span: Span, tokens: &mut Vec<Token>) {
    let word = span.of(text);
    let base = span.start as usize;
    let is_conjunction = |word: &str| CONJUNCTIONS.iter().any(|known| word.eq_ignore_ascii_case(known));
    let kind_of = |word: &str| if is_conjunction(word) { Kind::Conjunction } else { Kind::Word };
    if word.eq_ignore_ascii_case("and/or") {
        tokens.push(Token { span, kind: Kind::Conjunction });
        return;
    }
    let mut start = 0;
    let mut previous = None;
    let mut rest = word.char_indices().peekable();
    while let Some((at, c)) = rest.next() {
        let next = rest.peek().map(|&(_, c)| c);
        let kind = match c {
            // A slash between digits is a ratio or a date.
            '/' if previous.is_some_and(|c: char| c.is_alphabetic() || c == '-')
                && next.is_some_and(char::is_alphabetic) =>
            {
                Kind::Conjunction
            }
            ',' if next.is_none() => Kind::Comma,
            '(' | ')' | '[' | ']' | ';' | ':' | '"' | '“' | '”' => Kind::Barrier,
            '.' | '?' | '!' if next.is_none() => Kind::Barrier,
            _ => {
                previous = Some(c);
                continue;
            }
        };
        if start < at {
            tokens.push(Token { span: Span::new(base + start, base + at), kind: kind_of(&word[start..at]) });
        }
        tokens.push(Token { span: Span::new(base + at, base + at + c.len_utf8()), kind });
        start = at + c.len_utf8();
        previous = Some(c);
    }
    if start < word.len() {
        tokens.push(Token { span: Span::new(base + start, base + word.len()), kind: kind_of(&word[start..]) });
    }
}

/// The words of each conjunct, and whether one after the first starts with `both`; `None` with fewer than two conjuncts
/// or an empty one.
fn conjuncts(text: &str, tokens: &[Token]) -> Option<(Vec<Vec<Span>>, bool)> {
    if !tokens.iter().any(|token| token.kind == Kind::Conjunction) {
        return None;
    }
    let mut conjuncts: Vec<Vec<Span>> = vec![Vec::new()];
    let mut after_comma = false;
    let mut begins_anew = false;
    for (at, token) in tokens.iter().enumerate() {
        let row = conjuncts.len() - 1;
        match token.kind {
            Kind::Word => {
                let word = lower(text, token.span);
                let is_article = row > 0
                    && conjuncts[row].is_empty()
                    && matches!(word.as_str(), "the" | "a" | "an" | "of")
                    && !is_letter_a(text, tokens, at);
                let is_both = matches!(word.as_str(), "both" | "either");
                begins_anew |= is_both && row > 0;
                if !is_article && !is_both {
                    conjuncts[row].push(token.span);
                }
                after_comma = false;
            }
            // A comma and a conjunction are one separator.
            Kind::Conjunction if after_comma && conjuncts[row].is_empty() => after_comma = false,
            Kind::Conjunction | Kind::Comma => {
                if conjuncts[row].is_empty() {
                    return None;
                }
                conjuncts.push(Vec::new());
                after_comma = token.kind == Kind::Comma;
            }
            Kind::Barrier => return None,
        }
    }
    let n_words: usize = conjuncts.iter().map(Vec::len).sum();
    let fits =
        conjuncts.len() <= MAX_CONJUNCTS && n_words <= MAX_WORDS && conjuncts.iter().all(|words| !words.is_empty());
    fits.then_some((conjuncts, begins_anew))
}

/// Whether a word is the letter A, not an article: `hepatitis A, B and C`.
fn is_letter_a(text: &str, tokens: &[Token], at: usize) -> bool {
    tokens[at].span.of(text) == "A" && tokens.get(at + 1).is_none_or(|next| next.kind != Kind::Word)
}

/// The parts if the first `n_left` words and the last `n_right` words are shared by all conjuncts.
fn read_parts(text: &str, conjuncts: &[Vec<Span>], n_left: usize, n_right: usize) -> Vec<Part> {
    let last = conjuncts.len() - 1;
    let left = &conjuncts[0][..n_left];
    let right = &conjuncts[last][conjuncts[last].len() - n_right..];
    let part = |row: usize| {
        let body = body(conjuncts, row, n_left, n_right);
        joined(text, left.iter().chain(body).chain(right).copied())
    };
    (0..=last).map(part).collect()
}

/// The words of a conjunct that are not shared.
fn body(conjuncts: &[Vec<Span>], row: usize, n_left: usize, n_right: usize) -> &[Span] {
    let words = &conjuncts[row];
    let start = if row == 0 { n_left } else { 0 };
    let end = if row == conjuncts.len() - 1 { words.len() - n_right } else { words.len() };
    &words[start..end]
}

/// A part made of words; adjacent words are joined into one span.
fn joined(text: &str, words: impl Iterator<Item = Span>) -> Part {
    let mut spans: Vec<Span> = Vec::new();
    for word in words {
        match spans.last_mut() {
            Some(last) if text[last.end as usize..word.start as usize].trim().is_empty() => last.end = word.end,
            _ => spans.push(word),
        }
    }
    Part { spans }
}

/// What the penalties of all readings of a coordination have in common.
struct Form {
    /// The words of the first and the last conjunct in lower case.
    first: Vec<String>,
    last: Vec<String>,
    /// Whether each of them is a number or letter.
    first_labels: Vec<bool>,
    last_labels: Vec<bool>,
    /// Numbers of words of the conjuncts between.
    between: Vec<usize>,
    /// Whether the first conjunct ends like a noun, or else like an adjective.
    is_noun: bool,
    is_adjective: bool,
}

impl Form {
    fn of(text: &str, conjuncts: &[Vec<Span>]) -> Form {
        let last_row = conjuncts.len() - 1;
        let lowered = |row: usize| conjuncts[row].iter().map(|span| lower(text, *span)).collect::<Vec<String>>();
        let labels = |row: usize| conjuncts[row].iter().map(|span| is_label(span.of(text))).collect();
        let first = lowered(0);
        let word = first.last().map(String::as_str).unwrap_or_default();
        let stem = word.strip_suffix('s').unwrap_or(word);
        let ends_with = |ends: &[&str]| ends.iter().any(|end| word.ends_with(end) || stem.ends_with(end));
        let (is_noun, is_adjective) = (ends_with(&NOUN_ENDS), ends_with(&ADJECTIVE_ENDS));
        let between = conjuncts[1..last_row].iter().map(Vec::len).collect();
        let (first_labels, last_labels) = (labels(0), labels(last_row));
        Form { last: lowered(last_row), first, first_labels, last_labels, between, is_noun, is_adjective }
    }

    /// Penalty of the reading in which the first `n_left` and the last `n_right` words are shared; lower is better.
    fn penalty(&self, n_left: usize, n_right: usize) -> usize {
        let (first, n_last) = (&self.first[n_left..], self.last.len() - n_right);
        // Conjuncts tend to have equal length and form.
        let lengths = std::iter::once(first.len()).chain(self.between.iter().copied());
        let unequal: usize = lengths.map(|length| length.abs_diff(n_last)).sum();
        let mut penalty = 10 + 2 * unequal + usize::from(n_left > 0 && n_right > 0) + usize::from(n_left > 0);
        let is_first_label = first.len() == 1 && self.first_labels[n_left];
        let is_last_label = n_last == 1 && self.last_labels[0];
        penalty = match (is_first_label, is_last_label) {
            (true, true) => penalty - 6,
            (true, false) | (false, true) => penalty + 3,
            (false, false) => penalty,
        };
        if first.len() > 1 && first.len() == n_last && first[0] == self.last[0] {
            penalty -= 3;
        }
        // "cancer of the breast": shared words end with a preposition and article.
        let is_joint = |word: &str| matches!(word, "of" | "the" | "in" | "to" | "type");
        if self.first[..n_left].last().is_some_and(|word| is_joint(word)) {
            penalty -= 3;
        }
        penalty += 3 * first.iter().filter(|word| is_joint(word) && *word != "type").count();
        match (self.is_noun, self.is_adjective) {
            (true, _) => penalty + if n_right > 0 { 3 } else { 0 },
            (false, true) => penalty + if n_right > 0 { 0 } else { 3 },
            (false, false) => penalty,
        }
    }
}

/// A number, a Roman numeral or a single letter: "type 1", "factor VIII", "hepatitis B".
fn is_label(word: &str) -> bool {
    let n_chars = word.chars().count();
    let is_roman = word.chars().all(|c| matches!(c, 'I' | 'V' | 'X'));
    n_chars <= 5
        && (n_chars == 1 || is_roman || word.starts_with(|c: char| c.is_ascii_digit()) || is_letter_and_digits(word))
}

/// A letter followed by digits: "C6", "B12".
fn is_letter_and_digits(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_uppercase()) && word[1..].chars().all(|c| c.is_ascii_digit())
}

/// Whether a sorted list in lower case has a word, ignoring ASCII case.
fn is_listed(list: &[&str], word: &str) -> bool {
    let lower = || word.bytes().map(|byte| byte.to_ascii_lowercase());
    list.binary_search_by(|known| known.bytes().cmp(lower())).is_ok()
}

fn lower(text: &str, span: Span) -> String {
    span.of(text).to_lowercase()
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use proptest::prelude::*;

    use super::*;

    fn show(text: &str, reading: &[Part]) -> String {
        let part = |part: &Part| part.spans.iter().map(|span| span.of(text)).collect::<Vec<_>>().join(" … ");
        reading.iter().map(part).collect::<Vec<_>>().join(" | ")
    }

    fn check(text: &str, expect: Expect) {
        let readings = split_composite(text, Span::new(0, text.len()));
        expect.assert_eq(&readings.first().map(|reading| show(text, reading)).unwrap_or_default());
    }

    #[test]
    fn word_lists_are_sorted() {
        assert!(BARRIERS.is_sorted() && INNER.is_sorted());
    }

    #[test]
    fn last_conjunct_gives_the_head() {
        check("breast and ovarian cancer", expect!["breast … cancer | ovarian cancer"]);
        check("breast, ovarian and colon cancer", expect!["breast … cancer | ovarian … cancer | colon cancer"]);
        check("breast, ovarian, and/or colon cancer", expect!["breast … cancer | ovarian … cancer | colon cancer"]);
        check("breast/ovarian cancer", expect!["breast … cancer | ovarian cancer"]);
        check("dental and vaginal abnormalities", expect!["dental … abnormalities | vaginal abnormalities"]);
        check(
            "Duchenne and Becker muscular dystrophy",
            expect!["Duchenne … muscular dystrophy | Becker muscular dystrophy"],
        );
        check("type 1 and type 2 diabetes", expect!["type 1 … diabetes | type 2 diabetes"]);
    }

    #[test]
    fn first_conjunct_gives_the_head() {
        check("hepatitis B and C", expect!["hepatitis B | hepatitis … C"]);
        check("cancer of the breast and ovary", expect!["cancer of the breast | cancer of the … ovary"]);
        check("cancer of both the breast and the ovary", expect!["cancer of … the breast | cancer of … the … ovary"]);
        check("cleft lip/palate", expect!["cleft lip | cleft … palate"]);
    }

    #[test]
    fn both_ends_can_be_shared() {
        check("type 1 and 2 diabetes", expect!["type 1 … diabetes | type … 2 diabetes"]);
        check("factor VIII or IX deficiency", expect!["factor VIII … deficiency | factor … IX deficiency"]);
    }

    #[test]
    fn whole_mentions_stay_whole() {
        check("fever and cough", expect!["fever | cough"]);
        check("hepatitis and renal failure", expect!["hepatitis | renal failure"]);
        check("left kidney and both lungs", expect!["left kidney | lungs"]);
    }

    #[test]
    fn prefixes_share_a_piece_of_a_word() {
        check("hypo- and hyperthyroidism", expect!["hypo … thyroidism | hyperthyroidism"]);
        check("pre- and post-operative pain", expect!["pre … operative pain | post-operative pain"]);
        check("hypo-/hypertension", expect!["hypo … tension | hypertension"]);
        check("nephro- or cardiotoxicity", expect!["nephro … toxicity | cardiotoxicity"]);
    }

    #[test]
    fn labels_share_the_word_before_their_hyphen() {
        check("interleukin-1, -6 and -8", expect!["interleukin-1 | interleukin … 6 | interleukin … 8"]);
        check("HSV-1 and 2", expect!["HSV-1 | HSV … 2"]);
        check("serum IL-6 and -10", expect!["serum IL-6 | serum IL … 10"]);
        check("hepatitis A, B and C", expect!["hepatitis A | hepatitis … B | hepatitis … C"]);
        check("vitamins D and A", expect!["vitamins D | vitamins … A"]);
        let text = "given vitamins A, D and E in a capsule";
        let windows = coordinations(text, Span::new(0, text.len()));
        assert!(windows.iter().any(|window| window.of(text) == "vitamins A, D and E"));
    }

    #[test]
    fn other_readings_follow() {
        let text = "inherited breast and ovarian cancer";
        let readings = split_composite(text, Span::new(0, text.len()));
        let shown: Vec<String> = readings.iter().map(|reading| show(text, reading)).collect();
        expect![[r#"
            inherited breast | ovarian cancer
            inherited breast … cancer | ovarian cancer
            inherited breast … cancer | inherited … ovarian cancer
            inherited breast | inherited … ovarian cancer"#]]
        .assert_eq(&shown.join("\n"));
    }

    #[test]
    fn other_texts_have_no_reading() {
        for text in
            ["", "and", "breast cancer", "and cancer", "breast and", "breast, ovarian cancer", "a (b) and c", "1/2"]
        {
            check(text, expect![""]);
        }
    }

    #[test]
    fn windows_end_at_function_words() {
        let text = "The gene is linked to breast and ovarian cancer in women.";
        let found = coordinations(text, Span::new(0, text.len()));
        let shown: Vec<&str> = found.iter().map(|window| window.of(text)).collect();
        expect!["breast and ovarian cancer | breast and ovarian"].assert_eq(&shown.join(" | "));
    }

    #[test]
    fn windows_keep_lists_whole() {
        let text = "risk of skin, bone or lung cancer";
        let shown: Vec<&str> =
            coordinations(text, Span::new(0, text.len())).iter().map(|window| window.of(text)).collect();
        assert!(shown.contains(&"skin, bone or lung cancer"), "{shown:?}");
    }

    #[test]
    fn long_lists_take_bounded_time() {
        let text = "a1 and ".repeat(50_000);
        assert!(split_composite(&text, Span::new(0, text.len())).is_empty());
        assert!(coordinations(&text, Span::new(0, text.len())).len() <= 50_000 * 32);
    }

    proptest! {
        #[test]
        fn spans_lie_in_order_under_the_mention(text in "([a-zé]{1,6}|[ ,/-]| and | or |- and hypo|[A-Zα0-9(]|.){0,30}") {
            let whole = Span::new(0, text.len());
            for window in coordinations(&text, whole).into_iter().chain([whole]) {
                for reading in split_composite(&text, window) {
                    prop_assert!(reading.len() >= 2);
                    for part in reading {
                        prop_assert!(!part.spans.is_empty());
                        prop_assert!(part.spans.iter().all(|span| !span.of(&text).is_empty()));
                        prop_assert!(part.spans.is_sorted_by(|left, right| left.end <= right.start));
                        prop_assert!(part.spans[0].start >= window.start);
                    }
                }
            }
        }
    }
}
