//! Units of a text, which limit the scope of triggers, and headings that apply to several units.

use std::collections::BTreeSet;

use super::signs::{is_answer, is_nothing};
use super::triggers::is_kin;
use super::{Context, Experiencer, Temporality};
use crate::text::Span;
use crate::text::analysis::Analysis;
use crate::text::sentences::is_abbreviation;

/// A sentence, a list item, or a part of one between semicolons.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Unit {
    /// Its span.
    pub(super) span: Span,
    /// Context set by a heading from here on; `None` if unchanged.
    pub(super) heading: Option<Context>,
}

/// Headings that set a context.
const SPEAKING: [(&str, Context); 24] = [
    ("family history", FAMILY),
    ("family medical history", FAMILY),
    ("fh", FAMILY),
    ("fhx", FAMILY),
    ("family hx", FAMILY),
    ("fam hx", FAMILY),
    ("past medical history", HISTORY),
    ("past medical hx", HISTORY),
    ("past surgical hx", HISTORY),
    ("medical hx", HISTORY),
    ("pshx", HISTORY),
    ("past medical and surgical history", HISTORY),
    ("medical history", HISTORY),
    ("past history", HISTORY),
    ("past surgical history", HISTORY),
    ("surgical history", HISTORY),
    ("previous illnesses", HISTORY),
    ("past illnesses", HISTORY),
    ("pmh", HISTORY),
    ("pmhx", HISTORY),
    ("psh", HISTORY),
    ("return precautions", FEARED),
    ("return instructions", FEARED),
    ("discharge instructions", FEARED),
];

const FAMILY: Context = Context { experiencer: Experiencer::Family, ..PLAIN };
const HISTORY: Context = Context { temporality: Temporality::Historical, ..PLAIN };
const FEARED: Context = Context { temporality: Temporality::Hypothetical, ..PLAIN };
const PLAIN: Context = Context {
    negation: super::Negation::Affirmed,
    temporality: Temporality::Recent,
    experiencer: Experiencer::Patient,
};

/// Headings that reset the context to the default.
#[rustfmt::skip]
const NEUTRAL: [&str; 40] = [
    "admission diagnosis", "allergies", "assessment", "assessment and plan", "chief complaint", "complaints",
    "course", "diagnoses", "diagnosis", "discharge diagnosis", "exam", "examination", "findings", "history",
    "history of present illness", "hospital course", "hpi", "impression", "indication", "laboratory", "labs",
    "medications", "meds", "objective", "pe", "physical exam", "physical examination", "plan", "present illness",
    "presenting complaint", "problem list", "problems", "procedure", "reason for admission", "results",
    "review of systems", "ros", "sh", "social history", "subjective",
];

/// Maximum length of a heading before its colon in bytes.
const MAX_HEADING: usize = 60;

/// Maximum number of words of an unknown heading before its colon.
const MAX_HEADING_WORDS: usize = 5;

/// A line shorter than this, in bytes, is not wrapped.
const SHORT_LINE: usize = 50;

/// Words after which a line continues.
#[rustfmt::skip]
const GOING_ON: [&str; 20] = [
    "a", "an", "and", "any", "as", "at", "by", "for", "from", "his", "her", "in", "no", "of", "on", "or", "the", "to",
    "with", "without",
];

/// The units of a document in text order.
pub(super) fn units(document: &Analysis<'_>) -> Vec<Unit> {
    let text = document.text;
    let cuts = cuts(document);
    let mut units: Vec<Unit> = Vec::new();
    let mut end = 0;
    let mut open = Open::Nothing;
    let mut doubt: Option<u32> = None;
    for &sentence in document.sentences() {
        // A question mark before a word is a sentence of its own only because of sentence splitting.
        if sentence.of(text) == "?" {
            doubt = Some(sentence.start);
            continue;
        }
        // An answer belongs to its question: `Fever? No.`
        let before = text[end..sentence.start as usize].trim_matches([' ', '\t']);
        let is_question = before.is_empty() && text[..end].ends_with('?');
        if is_question
            && is_answer(sentence.of(text))
            && let Some(question) = units.last_mut()
        {
            end = sentence.end as usize;
            question.span.end = sentence.end;
            continue;
        }
        let sentence = Span { start: doubt.take().unwrap_or(sentence.start), ..sentence };
        let inside = cuts.range(sentence.start + 1..sentence.end.max(sentence.start + 1));
        let bounds: Vec<u32> = [sentence.start].into_iter().chain(inside.copied()).chain([sentence.end]).collect();
        for pair in bounds.windows(2) {
            let span = trimmed(text, pair[0], pair[1]);
            let heading = heading(&text[span.start as usize..], position_of(text, span.start as usize));
            let is_apart = has_blank_line(&text[end..span.start as usize]);
            let change = match (heading, open) {
                (Some(heading), _) => {
                    open = match heading {
                        Heading { is_alone: true, .. } => Open::Section,
                        Heading { context: FAMILY, .. } => Open::Relatives,
                        _ => Open::Paragraph,
                    };
                    Some(heading.context)
                }
                (None, Open::Paragraph) if is_apart => {
                    open = Open::Nothing;
                    Some(PLAIN)
                }
                (None, Open::Relatives) if is_apart || is_about_patient(text, end, span) => {
                    open = Open::Nothing;
                    Some(PLAIN)
                }
                (None, _) => None,
            };
            units.push(Unit { span, heading: change });
            end = span.end as usize;
        }
    }
    units
}

/// A span without surrounding white space.
fn trimmed(text: &str, start: u32, end: u32) -> Span {
    let inside = &text[start as usize..end as usize];
    let words = inside.trim_start();
    let start = start + (inside.len() - words.len()) as u32;
    Span { start, end: start + words.trim_end().len() as u32 }
}

/// How far the last heading applies.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Open {
    /// There is no heading.
    Nothing,
    /// Up to the next blank line or heading, because text follows it on its line.
    Paragraph,
    /// Like a paragraph, but also up to the next line that is about the patient.
    Relatives,
    /// Up to the next heading.
    Section,
}

/// Starts of lines about the patient. Sorted.
#[rustfmt::skip]
const ABOUT_PATIENT: [&str; 22] = [
    "afebrile", "bp", "current", "currently", "denies", "exam", "h", "he", "history", "hr", "hx", "medications", "meds", "on", "patient",
    "presents", "pt", "reports", "she", "smokes", "vitals", "vs",
];

/// Whether a unit after a line of family history, which ends at `end`, is about the patient. At the start of a line, it names no relative
/// and starts with a word of [`ABOUT_PATIENT`], or with a capital after a short line; inside a line, only a few words tell.
fn is_about_patient(text: &str, end: usize, unit: Span) -> bool {
    let start = unit.start as usize;
    let words = || unit.of(text).split(|letter: char| !letter.is_alphanumeric()).filter(|word| !word.is_empty());
    let line = text[..end].rfind('\n').map_or(0, |at| at + 1);
    let first = words().next().unwrap_or_default().to_lowercase();
    if !text[end..start].contains('\n') {
        return matches!(first.as_str(), "currently" | "denies" | "on" | "patient" | "pt" | "takes");
    }
    let starts = || ABOUT_PATIENT.binary_search(&first.as_str()).is_ok();
    let is_new = || end - line < SHORT_LINE && !is_item(unit.of(text)) && unit.of(text).starts_with(char::is_uppercase);
    (starts() || is_new()) && !words().any(|word| is_kin(&word.to_lowercase()))
}

#[derive(Debug, Clone, Copy)]
struct Heading {
    context: Context,
    /// Whether nothing follows it on its line.
    is_alone: bool,
}

/// Position of a unit, which determines whether it can start with an unknown heading.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Position {
    LineStart,
    InLine,
}

fn position_of(text: &str, at: usize) -> Position {
    let before = text[..at].trim_end_matches([' ', '\t']);
    if before.is_empty() || before.ends_with(['\n', '\r']) { Position::LineStart } else { Position::InLine }
}

/// The heading at the start of `text`. Excludes list items (`- father: stroke`) and relatives (`Father: stroke`), which
/// continue a family history.
fn heading(text: &str, position: Position) -> Option<Heading> {
    // Only a short prefix is examined, because a text can be one long line of many units.
    let head = &text[..text.floor_char_boundary(MAX_HEADING + 2)];
    let end = head.find(['\n', '\r']).or((head.len() == text.len()).then_some(text.len()));
    let line = &head[..end.unwrap_or(head.len())];
    let colon = line.find(':');
    let words = match colon {
        Some(colon) => &line[..colon],
        None => line[..end?].trim_end(),
    };
    if words.len() > MAX_HEADING || !words.starts_with(char::is_alphabetic) {
        return None;
    }
    let after = colon.map_or("", |colon| text[colon + 1..].trim_start_matches([' ', '\t']));
    let is_alone = after.is_empty() || after.starts_with(['\n', '\r']);
    let lower = words.trim_end_matches(':').to_lowercase().replace(" & ", " and ");
    if let Some((_, context)) = SPEAKING.iter().find(|(name, _)| *name == lower) {
        let context = if !is_alone && is_nothing(after) { PLAIN } else { *context };
        return Some(Heading { context, is_alone });
    }
    let is_capital = words.len() > 1 && !words.chars().any(char::is_lowercase);
    let is_neutral = NEUTRAL.binary_search(&lower.as_str()).is_ok();
    let is_relative = || lower.split(|letter: char| !letter.is_alphanumeric()).any(is_kin);
    // Excludes times and ratios: `at 10:30`.
    let is_apart = || colon.is_some_and(|colon| text[colon + 1..].starts_with(char::is_whitespace));
    let is_short = || is_apart() && words.split_whitespace().count() <= MAX_HEADING_WORDS;
    let is_unknown = || is_alone || is_capital || (position == Position::LineStart && is_short());
    // A line without a colon is a heading only if it is a known one.
    let is_heading = is_neutral || (colon.is_some() && is_unknown() && !is_relative());
    is_heading.then_some(Heading { context: PLAIN, is_alone })
}

/// Starts of units inside sentences: after semicolons, at list items, at capitalised headings with a colon, after line
/// breaks that do not wrap a line, and at sections of the document.
fn cuts(document: &Analysis<'_>) -> BTreeSet<u32> {
    let text = document.text;
    let mut cuts: BTreeSet<u32> = text.match_indices(';').map(|(at, _)| at as u32 + 1).collect();
    cuts.extend(lower_case_starts(text));
    cuts.extend(document.sections.iter().map(|section| section.span.start));
    cuts.extend(text.match_indices(':').filter_map(|(colon, _)| known_heading_before(text, colon)));
    let mut start = 0;
    let mut before: Option<&str> = None;
    for line in text.split_inclusive('\n') {
        let words = line.trim();
        let at = start + line.len() - line.trim_start().len();
        let is_headed = || {
            words.starts_with(char::is_uppercase)
                && words.contains(':')
                && heading(&text[at..], Position::LineStart).is_some()
        };
        if before.is_some_and(|before| is_item(words) || ends_unit(before) || is_headed()) {
            cuts.insert(at as u32);
        }
        before = Some(words);
        start += line.len();
    }
    cuts
}

/// Words that start sentences where these are written in lower case. Sorted.
#[rustfmt::skip]
const STARTS: [&str; 57] = [
    "also", "am", "and", "any", "anyone", "are", "been", "but", "can", "could", "denies", "did", "do", "does", "feel", "feeling", "got", "had", "has",
    "have", "he", "help", "his", "how", "i", "im", "is", "it", "its", "ive", "just", "my", "now", "our", "please", "reports", "she", "should", "since",
    "so", "still", "thanks", "that", "the", "then", "there", "they", "this", "today", "was", "we", "what", "when", "where", "why", "will", "you",
];

/// Shortened words of four letters or more, whose full stop does not end a sentence before a word in lower case. Sorted.
#[rustfmt::skip]
const SHORTENED: [&str; 46] = [
    "admin", "approx", "appt", "assoc", "bact", "bilat", "campylob", "caps", "cardio", "clost", "cont", "dept", "diag", "entero", "esch", "excl",
    "gastro", "haem", "hist", "hosp", "immun", "klebs", "lact", "lymph", "myco", "neuro", "ortho", "palp", "poss", "presc", "prev", "prob", "prox",
    "pseud", "psych", "pulm", "resp", "salm", "shig", "spec", "staph", "strep", "susp", "syst", "temp", "tuberc",
];

/// Starts of sentences in lower case: `no symptoms. also do i have herpes`. Stops after abbreviations do not count.
fn lower_case_starts(text: &str) -> impl Iterator<Item = u32> {
    text.match_indices(". ").chain(text.match_indices("? ")).chain(text.match_indices("! ")).filter_map(
        |(stop, mark)| {
            let start = stop + mark.len();
            let letters = |text: &str| text.find(|letter: char| !letter.is_lowercase()).unwrap_or(text.len());
            let next = &text[start..text.floor_char_boundary(start + MAX_WORD)];
            let next = &next[..letters(next)];
            let before = &text[text.ceil_char_boundary(stop.saturating_sub(MAX_WORD))..stop];
            let before =
                before.rsplit(|letter: char| letter.is_whitespace() || matches!(letter, '(' | ',' | '/')).next()?;
            let is_word = before.len() > 2 && letters(before) == before.len() && !is_abbreviation(before);
            let is_whole = is_word && before.len() > 3 && SHORTENED.binary_search(&before).is_err();
            let is_start = STARTS.binary_search(&next).is_ok() && (is_word || !mark.starts_with('.'));
            (is_start || (is_whole && !next.is_empty() && mark.starts_with('.'))).then_some(start as u32)
        },
    )
}

/// Longest word that is looked at around a stop, in bytes.
const MAX_WORD: usize = 40;

/// Start of the known heading before a colon, if a sentence or clause ends before it: `mother breast ca. SH: smokes`.
fn known_heading_before(text: &str, colon: usize) -> Option<u32> {
    let line = &text[text.floor_char_boundary(colon.saturating_sub(MAX_HEADING))..colon];
    let starts = line.char_indices().rev().filter(|(_, letter)| *letter == ' ').take(MAX_HEADING_WORDS);
    starts.map(|(blank, _)| blank + 1).find_map(|start| {
        let words = &line[start..];
        let lower = words.to_lowercase();
        let is_known =
            NEUTRAL.binary_search(&lower.as_str()).is_ok() || SPEAKING.iter().any(|(name, _)| *name == lower);
        let is_apart = line[..start].trim_end().ends_with(['.', ';', ',', '|', ')', '?', '!']);
        let start = colon - words.len();
        (is_known && is_apart && words.starts_with(char::is_uppercase)).then_some(start as u32)
    })
}

fn ends_unit(line: &str) -> bool {
    let last = line.rsplit(' ').next().unwrap_or_default().to_lowercase();
    line.len() < SHORT_LINE && !line.ends_with([',', '-', '/']) && !GOING_ON.contains(&last.as_str())
}

/// Whether a line starts with a bullet or an item number.
fn is_item(line: &str) -> bool {
    if let Some(rest) = line.strip_prefix(['-', '*', '•', '·', '–', '+', '#']) {
        return rest.starts_with(char::is_whitespace);
    }
    let rest = line.trim_start_matches(|letter: char| letter.is_ascii_digit());
    rest.len() < line.len() && rest.strip_prefix(['.', ')']).is_some_and(|rest| rest.starts_with(char::is_whitespace))
}

fn has_blank_line(between: &str) -> bool {
    between.matches('\n').count() > 1
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    fn check(text: &str, expect: Expect) {
        let document = Analysis::of_text(text);
        let shown = units(&document).into_iter().map(|unit| {
            let mut labels: Vec<&str> = Vec::new();
            if let Some(context) = unit.heading {
                labels.push("heading");
                labels.extend(context.attributes().map(|(_, value)| value));
            }
            format!("{:?} {}\n", unit.span.of(text), labels.join(" "))
        });
        expect.assert_eq(&shown.collect::<String>());
    }

    #[test]
    fn lists_are_sorted() {
        assert!(NEUTRAL.is_sorted() && ABOUT_PATIENT.is_sorted() && STARTS.is_sorted() && SHORTENED.is_sorted());
    }

    #[test]
    fn headings_apply_up_to_the_next() {
        check(
            "Family History:\r\n- father: stroke\r\n\r\n- mother: gout\r\nExam: fever; cough.\r\n",
            expect![[r#"
                "Family History:" heading family
                "- father: stroke" 
                "- mother: gout" 
                "Exam: fever;" heading
                "cough." 
            "#]],
        );
    }

    #[test]
    fn family_history_on_a_line_ends_with_a_line_about_the_patient() {
        check(
            "FH: mother with diabetes.\nHx of CVA. BP 120/80.",
            expect![[r#"
            "FH: mother with diabetes." heading family
            "Hx of CVA." heading
            "BP 120/80." 
        "#]],
        );
        check(
            "FH: father MI at 50, mother breast ca. SH: smokes. PMH: gout",
            expect![[r#"
                "FH: father MI at 50, mother breast ca." heading family
                "SH: smokes." heading
                "PMH: gout" heading historical
            "#]],
        );
        check(
            "FH: gout in\nuncles.\nBrother: stroke.\nCough.",
            expect![[r#"
            "FH: gout in\nuncles." heading family
            "Brother: stroke." 
            "Cough." heading
        "#]],
        );
    }

    #[test]
    fn a_heading_with_content_ends_with_its_paragraph() {
        check(
            "PMH: gout.\nStroke.\n\nHe coughs.",
            expect![[r#"
                "PMH: gout." heading historical
                "Stroke." 
                "He coughs." heading
            "#]],
        );
    }

    #[test]
    fn any_words_with_a_colon_at_the_start_of_a_line_end_a_section() {
        check(
            "Family history: gout.\nMother: stroke.\nGait and posture: limps.\nFamily history: at 10:30 asthma in a brother who\nis well\nVitals: normal",
            expect![[r#"
                "Family history: gout." heading family
                "Mother: stroke." 
                "Gait and posture: limps." heading
                "Family history: at 10:30 asthma in a brother who" heading family
                "is well" 
                "Vitals: normal" heading
            "#]],
        );
        check(
            "Family history: gout. He says: cough.\nratio 2:1 of fever",
            expect![[r#"
            "Family history: gout." heading family
            "He says: cough." 
            "ratio 2:1 of fever" 
        "#]],
        );
    }

    #[test]
    fn sentences_in_lower_case_are_units() {
        check(
            "no symptoms. also a cough? is it flu! approx. five days of staph. aureus (resp. isolates).",
            expect![[r#"
                "no symptoms." 
                "also a cough?" 
                "is it flu! approx. five days of staph. aureus (resp. isolates)." 
            "#]],
        );
    }

    #[test]
    fn short_lines_end_units_and_wrapped_lines_do_not() {
        check(
            "no fever\ncough for days\nno history of\ngout",
            expect![[r#"
                "no fever" 
                "cough for days" 
                "no history of\ngout" 
            "#]],
        );
    }
}
