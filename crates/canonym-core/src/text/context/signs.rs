//! Words of a unit for rule matching, including signs and answers in notes: `(-) fever`, `+cough`, `Rash: no`.
//!
//! A minus is usually a bullet, a dash or a hyphen. It is read as a negation in brackets, after a comma or semicolon,
//! after the heading of an organ system, and if the same unit has a plus sign.

use super::classes::Class;
use super::lookup::{Triggers, Word};
use crate::text::Span;
use crate::text::tokens::{Gap, Token};

/// A word of a unit.
#[derive(Debug, Clone, Copy)]
pub(super) struct UnitWord {
    pub(super) word: Word,
    pub(super) span: Span,
    /// The gap before it.
    pub(super) before: Gap,
    /// Whether it starts an item of a list, after a comma or a dash between spaces.
    pub(super) is_item: bool,
}

/// Headings of organ systems, under which a minus negates a finding. Sorted.
#[rustfmt::skip]
const SYSTEMS: [&str; 50] = [
    "abd", "abdomen", "card", "cardiac", "cardiovascular", "chest", "const", "constitutional", "cv", "cvs", "derm", "endo",
    "endocrine", "ent", "exam", "ext", "extremities", "eyes", "gastrointestinal", "gen", "general", "genitourinary", "gi",
    "gu", "gyn", "heart", "heent", "heme", "integumentary", "lungs", "lymph", "msk", "musculoskeletal", "neck", "neuro",
    "neurologic", "neurological", "pe", "psych", "psychiatric", "pulm", "pulmonary", "renal", "resp", "respiratory",
    "review of systems", "ros", "skin", "symptoms", "urinary",
];

const NO: [&str; 10] = ["absent", "denied", "denies", "false", "n", "neg", "negative", "never", "no", "none"];
const YES: [&str; 6] = ["pos", "positive", "present", "true", "y", "yes"];

/// Words before `negative:` and `positive:` that introduce lists of findings.
const REVIEWS: [&str; 8] = ["exam", "examination", "findings", "pertinent", "review", "ros", "symptoms", "systems"];

/// Maximum distance in bytes to the next answer.
const MAX_ITEM: usize = 60;

/// The text with the inputs of the reader.
#[derive(Debug, Clone, Copy)]
pub(super) struct Source<'a> {
    pub(super) triggers: &'a Triggers,
    pub(super) text: &'a str,
    /// Result of [`signed_bullets`].
    pub(super) signed: &'a [u32],
}

/// Reads the words of a unit, between empty words for its start and its end.
pub(super) fn read_words(source: Source<'_>, unit: Span, tokens: &[Token], words: &mut Vec<UnitWord>) {
    let Source { triggers, text, signed } = source;
    words.clear();
    let start = Span { start: unit.start, end: unit.start };
    words.push(UnitWord { word: triggers.special("START"), span: start, before: Gap::Stop, is_item: false });
    let reader = Reader { triggers, text, unit, style: style(text, unit, tokens, signed) };
    let mut lower = String::new();
    let mut end = unit.start;
    for (row, token) in tokens.iter().enumerate() {
        let gap = Span { start: end, end: token.span.start.max(end) };
        let previous = row.checked_sub(1).map(|row| tokens[row]);
        let n_words = words.len();
        reader.push_signs(gap, previous, Some(*token), words);
        let is_letter = token.span.of(text).starts_with(char::is_alphabetic);
        let is_dash = is_letter && words.len() == n_words && matches!(gap.of(text), " - " | " – " | " — ");
        let is_item = row > 0 && (is_dash || token.before == Gap::Comma);
        lower.clear();
        lower.extend(token.span.of(text).chars().flat_map(char::to_lowercase));
        let answer = (row > 0).then(|| reader.answer(gap, token.span, &lower)).flatten();
        // Sodium azide is NaN3.
        let is_formula =
            lower == "nan" && text[token.span.end as usize..].starts_with(|letter: char| letter.is_ascii_digit());
        let word = answer.unwrap_or_else(|| if is_formula { 0 } else { triggers.word(&lower) });
        words.push(UnitWord { word, span: token.span, before: token.before, is_item });
        end = token.span.end;
        // Findings follow `Negative:`, but `Strep A negative:` has its finding before.
        let is_heading = row == 0
            || matches!(token.before, Gap::Comma | Gap::Bracket | Gap::Stop)
            || previous.is_some_and(|word| REVIEWS.contains(&word.span.of(text).to_lowercase().as_str()));
        let is_headed = is_heading && text[end as usize..unit.end.max(end) as usize].starts_with(':');
        if is_headed && matches!(lower.as_str(), "negative" | "neg" | "positive" | "pos") {
            words.push(reader.special("COLON", end, end + 1));
        }
    }
    let gap = Span { start: end, end: unit.end.max(end) };
    reader.push_signs(gap, tokens.last().copied(), None, words);
    words.push(reader.special("END", unit.end, unit.end));
}

/// Positions of lines that start with a plus or a minus sign, in lists that contain both; sorted.
pub(super) fn signed_bullets(text: &str) -> Vec<u32> {
    let mut found: Vec<u32> = Vec::new();
    let mut block: Vec<u32> = Vec::new();
    let (mut has_plus, mut has_minus, mut indent) = (false, false, 0);
    let mut start = 0;
    for line in text.split_inclusive('\n').chain(std::iter::once("")) {
        let words = line.trim_start();
        let width = line.len() - words.len();
        let is_bullet = words.starts_with(['+', '-']) && words[1..].trim_start().starts_with(char::is_alphabetic);
        if !is_bullet || (!block.is_empty() && width != indent) {
            if has_plus && has_minus {
                found.append(&mut block);
            }
            block.clear();
            (has_plus, has_minus) = (false, false);
        }
        if is_bullet {
            indent = width;
            has_plus |= words.starts_with('+');
            has_minus |= words.starts_with('-');
            block.push((start + width) as u32);
        }
        start += line.len();
    }
    found
}

/// How a unit uses signs.
#[derive(Debug, Clone, Copy, Default)]
struct Style {
    /// A plus indicates that minuses are signs too.
    has_plus: bool,
    /// Signs in brackets follow their words: `fever (+) rash (-)`.
    is_after: bool,
    /// The sign at the start of the unit is not a bullet.
    opens: bool,
    /// The unit is under the heading of an organ system.
    is_system: bool,
}

fn style(text: &str, unit: Span, tokens: &[Token], signed: &[u32]) -> Style {
    let mut style = Style { opens: signed.binary_search(&unit.start).is_ok(), ..Style::default() };
    let words = unit.of(text);
    let head = &words[..words.floor_char_boundary(MAX_ITEM)];
    if let Some((head, _)) = head.split_once(':') {
        style.is_system = SYSTEMS.binary_search(&head.trim().to_lowercase().as_str()).is_ok();
    }
    if !words.contains(['+', '-', '−', '–']) {
        return style;
    }
    let (mut n_commas, mut n_signs) = (0, 0);
    let mut end = unit.start;
    for (row, token) in tokens.iter().enumerate() {
        let gap = &text[end as usize..token.span.start.max(end) as usize];
        end = token.span.end;
        let is_glued = gap.ends_with('+') && gap[..gap.len() - 1].ends_with([' ', '\t', '\n']);
        let bare = gap.trim();
        let is_item = matches!(bare, ",+" | ", +" | ";+" | "; +" | ":+" | ": +" | "(+)") || (row == 0 && bare == "+");
        let is_letter = token.span.of(text).starts_with(char::is_alphabetic);
        let is_after = row > 0 && gap.starts_with(' ') && ["+,", "+;"].iter().any(|one| bare.starts_with(one));
        style.has_plus |= is_after || (is_letter && (is_glued || is_item));
        style.is_after |=
            row > 0 && ["(+),", "(-),", "(+).", "(-).", "(+);", "(-);"].iter().any(|one| bare.starts_with(one));
        n_commas += usize::from(bare.starts_with(','));
        n_signs += usize::from(bare.starts_with(',') && bare.ends_with(['+', '-', '−', '–']));
    }
    let tail = text[end as usize..unit.end.max(end) as usize].trim();
    style.is_after |= ["(+)", "(-)"].iter().any(|one| tail.starts_with(one));
    style.has_plus |= tail.starts_with('+') || (style.is_after && words.contains("(+)"));
    style.opens |= n_commas > 0 && n_commas == n_signs;
    style
}

struct Reader<'a> {
    triggers: &'a Triggers,
    text: &'a str,
    unit: Span,
    style: Style,
}

impl Reader<'_> {
    fn special(&self, name: &str, start: u32, end: u32) -> UnitWord {
        UnitWord { word: self.triggers.special(name), span: Span { start, end }, before: Gap::Space, is_item: false }
    }

    /// Adds the signs and the question mark in the gap between two words.
    fn push_signs(&self, gap: Span, previous: Option<Token>, next: Option<Token>, words: &mut Vec<UnitWord>) {
        let between = gap.of(self.text);
        let mut read = 0;
        for (at, letter) in between.char_indices() {
            let end = at + letter.len_utf8();
            let (start, stop) = (gap.start + at as u32, gap.start + end as u32);
            match letter {
                // A question mark before a word expresses doubt: `? pneumonia`, `?MI`.
                '?' if next.is_some_and(|next| !self.is_count(next)) && between[end..].trim_start().is_empty() => {
                    let before = self.text[..start as usize].chars().next_back();
                    if before.is_none_or(|letter| letter.is_whitespace() || matches!(letter, '(' | ',' | '/')) {
                        words.push(self.special("?", start, stop));
                    }
                }
                '+' | '-' | '−' | '–' if at >= read => {
                    // Only the first of a run of signs counts.
                    read = end + between[end..].bytes().take_while(|byte| matches!(byte, b'+' | b'-' | b'/')).count();
                    if let Some(name) = self.sign(between, at, read, previous, next) {
                        words.push(self.special(name, start, gap.start + read as u32));
                    }
                }
                _ => {}
            }
        }
    }

    /// Whether a token is a number of its own, which a question mark before it is about: `?32 x 500 mg`, but not `?2nd degree burn`.
    fn is_count(&self, token: Token) -> bool {
        let after = &self.text[token.span.end as usize..];
        token.span.of(self.text).starts_with(|letter: char| letter.is_ascii_digit())
            && !after.starts_with(char::is_alphabetic)
    }

    fn sign(
        &self,
        between: &str,
        at: usize,
        end: usize,
        previous: Option<Token>,
        next: Option<Token>,
    ) -> Option<&'static str> {
        let is_plus = match &between[at..end] {
            "+" => true,
            "-" | "−" | "–" => false,
            "+/-" | "+-" => {
                let is_number = |token: Token| token.span.of(self.text).starts_with(char::is_numeric);
                let word = next.filter(|_| between[end..].trim_start().is_empty())?.span.of(self.text);
                let is_spread = ["sd", "sem", "se", "ci"].contains(&word.to_lowercase().as_str());
                // A genotype: `Pten+/- mice`.
                let is_genotype = (previous.is_some() && at == 0)
                    || self.triggers.is(self.triggers.word(&word.to_lowercase()), Class::Carrier);
                let is_doubt = !is_genotype
                    && !is_spread
                    && !previous.is_some_and(is_number)
                    && word.starts_with(char::is_alphabetic);
                return is_doubt.then_some("PLUSMINUS");
            }
            _ => return None,
        };
        let (before, after) = (&between[..at], &between[end..]);
        let sign_before = Some(if is_plus { "PLUS" } else { "MINUS" });
        let sign_after = Some(if is_plus { "YES" } else { "NO" });
        let is_word = |token: Token| token.span.of(self.text).chars().any(char::is_alphabetic);
        let ends_item = |rest: &str| {
            let rest = rest.trim_start_matches([' ', '\t']);
            if rest.is_empty() { next.is_none() } else { rest.starts_with([',', ';', '.', ')', '\n', '\r']) }
        };
        let (open, close) = (before.trim_end(), after.trim_start());
        if open.ends_with(['(', '[']) && close.starts_with([')', ']']) {
            let follows_word = previous.is_some_and(is_word) && open[..open.len() - 1].trim_end().is_empty();
            let ends = ends_item(&close[1..]);
            return match follows_word && (ends || self.style.is_after) {
                true => sign_after,
                false => sign_before.filter(|_| !ends),
            };
        }
        if before.is_empty() && previous.is_some() {
            // `FH+ for cancer`; any other sign directly after a word is part of it: `HIV+`.
            let is_for = is_plus && after == " " && next.is_some_and(|next| next.span.of(self.text) == "for");
            return sign_before.filter(|_| is_for);
        }
        if previous.is_some_and(is_word) && before.trim_end().is_empty() && ends_item(after) {
            return sign_after.filter(|_| is_plus || self.style.has_plus);
        }
        let next = next.filter(|next| after.trim_start().is_empty() && is_word(*next))?;
        let is_sign = match before.trim_end().chars().next_back() {
            Some(',' | ';' | '(') => true,
            Some(':') => is_plus || self.style.has_plus || self.style.is_system,
            // A bullet, unless the list shows that it is a sign.
            None if previous.is_none() => {
                self.style.opens || matches!(next.span.of(self.text), "ve" | "for") || (is_plus && after.is_empty())
            }
            None | Some('.' | '?' | '!') => {
                let is_apart = before.chars().next_back().is_none_or(char::is_whitespace);
                is_apart
                    && (after.is_empty() || next.span.of(self.text) == "for")
                    && (is_plus || self.style.has_plus || self.style.is_system)
                    || next.span.of(self.text) == "ve"
            }
            Some(_) => false,
        };
        sign_before.filter(|_| is_sign)
    }

    /// The answer given by a word: `fever: no, cough - yes`, `Rash (no)`, `CXR neg`.
    fn answer(&self, gap: Span, span: Span, lower: &str) -> Option<Word> {
        let is_no = NO.binary_search(&lower).is_ok();
        if !is_no && YES.binary_search(&lower).is_err() {
            return None;
        }
        let between = gap.of(self.text);
        let letter = lower.len() == 1;
        let is_short = matches!(lower, "neg" | "pos" | "denied");
        let introduced = match between.trim() {
            ":" | "?" | "=" => true,
            "-" | "–" | "—" | "−" => between.len() > 2,
            "(" | "[" => !letter,
            "" => is_short,
            _ => false,
        };
        if !introduced || (letter && span.of(self.text) == lower) {
            return None;
        }
        let rest = &self.text[span.end as usize..self.unit.end.max(span.end) as usize];
        let rest = &rest[..rest.floor_char_boundary(MAX_ITEM)];
        let bare = rest.trim_start_matches(' ');
        let is_end = bare.is_empty() || bare.starts_with([',', ';', '.', ')', ']', '\n', '\r', '\t', '|', '/']);
        let is_wide = rest.len() - bare.len() > 1;
        let is_answer = is_end || (!is_short && (is_wide || holds_answer(bare)));
        is_answer.then(|| self.triggers.special(if is_no { "NO" } else { "YES" }))
    }
}

/// Whether the text continues with an item and its answer: `Cough: yes`.
fn holds_answer(text: &str) -> bool {
    let Some((item, rest)) = text.split_once([':', '?']) else { return false };
    let word: String = rest.trim_start().chars().take_while(|letter| letter.is_alphabetic()).collect();
    let word = word.to_lowercase();
    let is_answer = NO.binary_search(&word.as_str()).is_ok() || YES.binary_search(&word.as_str()).is_ok();
    is_answer && item.split_whitespace().count() <= 4 && !item.contains([',', ';', '.'])
}

/// Whether the text after a heading states that there is nothing: `PMH: none.`
pub(super) fn is_nothing(text: &str) -> bool {
    const NOTHING: [&str; 8] = [
        "negative",
        "neg",
        "non contributory",
        "non-contributory",
        "noncontributory",
        "none",
        "unknown",
        "unremarkable",
    ];
    let text = &text[..text.floor_char_boundary(MAX_ITEM)];
    let end = text.find(['.', '\n', '\r', ';']).unwrap_or(text.len());
    NOTHING.contains(&text[..end].trim().to_lowercase().as_str())
}

/// Whether a sentence consists of an answer to a question.
pub(super) fn is_answer(sentence: &str) -> bool {
    let word = sentence.trim_end_matches(['.', '!', ',', ';']);
    word.len() <= 8 && {
        let word = word.to_lowercase();
        NO.binary_search(&word.as_str()).is_ok() || YES.binary_search(&word.as_str()).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_sorted() {
        assert!(SYSTEMS.is_sorted() && NO.is_sorted() && YES.is_sorted());
    }

    #[test]
    fn bullets_are_signs_where_a_list_has_both() {
        assert_eq!(signed_bullets("- a\n- b\n\n+ c\n- d\n  - e\nf\n+ g\n-h"), [9, 13, 25, 29]);
    }
}
