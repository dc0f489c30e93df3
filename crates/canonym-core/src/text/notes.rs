//! Text that is never a mention: headings, doses, values with units, dates, times, ages, list numbers.
//!
//! Names are not covered: `iron 20 mg` yields `20 mg`, `Mg 1.8` yields `1.8`, `IV fluids` yields nothing. A number
//! without a unit is covered only if it is unambiguous: `type 2 diabetes`, `HPV 16/18` and `trisomy 21` yield nothing.
//! Runs in one pass with bounded lookahead.
//!
//! ```
//! use canonym_core::text::notes::{NonMentionKind, covers, non_mentions};
//! use canonym_core::text::Span;
//!
//! let text = "MEDS: iron 20 mg BID";
//! let found = non_mentions(text);
//! assert_eq!(found[0].span.of(text), "MEDS");
//! assert_eq!(found[1].kind, NonMentionKind::Dose);
//! assert!(covers(text, &found, Span::new(14, 20)) && !covers(text, &found, Span::new(6, 16)));
//! ```

mod headings;
mod quantities;
mod times;

use super::Span;

/// The kind of a non-mention.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum NonMentionKind {
    /// A known heading of a note or abstract, without colon: `PMH`.
    Heading,
    /// A number with a unit of dose, or a dosage form: `20 mg`, `10 mL/h`, `tabs`.
    Dose,
    /// A route of administration: `PO`.
    Route,
    /// A frequency of administration: `BID`, `q8h`, `PRN`.
    Frequency,
    /// A measured value with its unit, or only a unit: `142/88`, `7.2 %`, `mmol/L`.
    Value,
    /// A date: `3/4/2019`, `12 March`.
    Date,
    /// A time of day or a duration: `10:30`, `3 days`.
    Time,
    /// An age, with an optional letter for the sex: `67 y/o M`.
    Age,
    /// The number of a list item: `2.`.
    ListNumber,
}

/// A span that is never a mention.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NonMention {
    /// Its span.
    pub span: Span,
    /// Its kind.
    pub kind: NonMentionKind,
}

/// The non-mentions in `text`, in order, without overlaps.
pub fn non_mentions(text: &str) -> Vec<NonMention> {
    let mut found = Vec::new();
    find_within(text, Span::new(0, text.len()), &mut found);
    found
}

/// Like [`non_mentions`], only around `spans`, which are in text order.
pub fn non_mentions_near(text: &str, spans: impl Iterator<Item = Span>) -> Vec<NonMention> {
    let mut found = Vec::new();
    let mut end = 0;
    let mut window: Option<Span> = None;
    for span in spans {
        let until = text.ceil_char_boundary((span.end as usize + AHEAD).min(text.len())) as u32;
        match &mut window {
            Some(window) if span.start <= window.end + BEFORE as u32 => window.end = window.end.max(until),
            _ => {
                if let Some(window) = window {
                    end = find_within(text, window, &mut found);
                }
                let start = begin_before(text, span.start as usize).max(end);
                window = Some(Span { start: start as u32, end: until });
            }
        }
    }
    if let Some(window) = window {
        find_within(text, window, &mut found);
    }
    found
}

/// Where to start scanning for a non-mention at `at`: the start of its line, or of a word some bytes before it.
fn begin_before(text: &str, at: usize) -> usize {
    let from = text.floor_char_boundary(at.saturating_sub(BEFORE));
    let before = &text[from..at];
    match before.rfind('\n') {
        Some(line) => from + line + 1,
        None if from == 0 => 0,
        None => before.find(' ').map_or(from, |blank| from + blank + 1),
    }
}

/// Maximum distance in bytes to the start of the line.
const BEFORE: usize = 160;

/// Adds the non-mentions that start in `span`. Returns where scanning stopped.
fn find_within(text: &str, span: Span, found: &mut Vec<NonMention>) -> usize {
    let is_line = span.start == 0 || text.as_bytes()[span.start as usize - 1] == b'\n';
    let mut position = if is_line { Position::LineStart } else { Position::InSentence };
    let mut previous: Option<char> = None;
    // The character before the previous one, which distinguishes a hyphen in a name from a dash.
    let mut earlier: Option<char> = None;
    let mut at = span.start as usize;
    let mut word = Span::new(at, at);
    let title = if at == 0 { headings::title_end(text) } else { 0 };
    while at < span.end as usize
        && let Some(letter) = text[at..].chars().next()
    {
        let is_inside = previous.is_some_and(char::is_alphanumeric)
            || (matches!(previous, Some('-' | '.' | ',' | '*' | '/' | '^' | '\'' | '–' | '\u{2011}'))
                && earlier.is_some_and(char::is_alphanumeric))
            || (previous == Some(':') && earlier.is_some_and(|letter| letter.is_ascii_digit()));
        let is_start = letter.is_alphanumeric() || matches!(letter, '×' | '(' | '.');
        let step = if is_start
            && !is_inside
            && at < title
            && let Some(len) = headings::title_word(&text[at..])
        {
            found.push(NonMention { span: Span::new(at, at + len), kind: NonMentionKind::Heading });
            len
        } else if is_start && !is_inside {
            step_at(Cursor { text, at, position, word: word.of(text) }, found)
        } else if previous == Some('.') && letter.is_uppercase() {
            glued_heading(text, at, found)
        } else {
            0
        };
        // A word without a match is skipped as a whole.
        let end = if step > 0 { at + step } else { at + run_of(&text[at..]).max(letter.len_utf8()) };
        if letter.is_alphanumeric() {
            word = Span::new(at, end);
        } else if matches!(letter, '\n' | '.' | ';' | ',' | '(') {
            word = Span::new(end, end);
        }
        position = position.after(&text[at..end]);
        let mut letters = text[at..end].chars();
        let last = letters.next_back();
        earlier = letters.next_back().or(previous);
        previous = last;
        at = end;
    }
    at
}

/// Whether all letters and digits of `span` are covered by `found`, the result of [`non_mentions`] for `text`.
pub fn covers(text: &str, found: &[NonMention], span: Span) -> bool {
    let mut at = span.start;
    let first = found.partition_point(|one| one.span.end <= span.start);
    for one in &found[first..] {
        if one.span.start >= span.end
            || text[at as usize..one.span.start.max(at) as usize].contains(char::is_alphanumeric)
        {
            break;
        }
        at = one.span.end;
        if at >= span.end {
            return true;
        }
    }
    at > span.start && !text[at as usize..span.end as usize].contains(char::is_alphanumeric)
}

/// Kind of position in the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Position {
    LineStart,
    SentenceStart,
    InSentence,
}

impl Position {
    /// The kind of position after `passed`, which starts here.
    fn after(self, passed: &str) -> Position {
        let mut position = self;
        for letter in passed.chars() {
            position = match (letter, position) {
                ('\n' | '\r', _) => Position::LineStart,
                (' ' | '\t', _) => position,
                // Bullets and emphasis can precede headings.
                ('-' | '*' | '#' | '•' | '·' | '>', Position::LineStart) => position,
                ('.' | ';' | '!' | '?' | '|', Position::InSentence) => Position::SentenceStart,
                _ => Position::InSentence,
            };
        }
        position
    }
}

/// A position at which a word or number starts.
#[derive(Debug, Clone, Copy)]
struct Cursor<'a> {
    text: &'a str,
    at: usize,
    position: Position,
    /// The preceding word in the clause, or empty.
    word: &'a str,
}

impl<'a> Cursor<'a> {
    /// The following text, up to a maximum length.
    fn ahead(&self) -> &'a str {
        ahead(self.text, self.at)
    }
}

/// Maximum lookahead in bytes.
const AHEAD: usize = 96;

fn ahead(text: &str, at: usize) -> &str {
    let rest = &text[at..];
    &rest[..rest.floor_char_boundary(AHEAD)]
}

/// Matches a non-mention at `cursor`. Returns its length in bytes, 0 if there is none.
fn step_at(cursor: Cursor<'_>, found: &mut Vec<NonMention>) -> usize {
    let rest = cursor.ahead();
    let mut push = |len: usize, kind: NonMentionKind| {
        found.push(NonMention { span: Span::new(cursor.at, cursor.at + len), kind });
        len
    };
    if cursor.position == Position::LineStart
        && let Some(len) = headings::list_number(rest)
    {
        return push(len, NonMentionKind::ListNumber);
    }
    if rest.starts_with('(') {
        return 0;
    }
    if cursor.position != Position::InSentence
        && let Some(len) = headings::heading(rest, cursor.position == Position::LineStart)
    {
        return push(len, NonMentionKind::Heading);
    }
    if let Some((len, kind)) = times::time(rest, cursor.word) {
        return push(len, kind);
    }
    if let Some((len, kind)) = quantities::quantity(rest, cursor.word) {
        push(len, kind);
        if matches!(kind, NonMentionKind::Dose | NonMentionKind::Frequency | NonMentionKind::Route) {
            return len + quantities::follow(cursor.text, cursor.at + len, found);
        }
        return len;
    }
    0
}

/// A heading directly after a full stop: `We measured.RESULTS: It fell.`
fn glued_heading(text: &str, at: usize, found: &mut Vec<NonMention>) -> usize {
    let rest = ahead(text, at);
    let is_capital = |len: &usize| *len > 3 && !rest[..*len].contains(char::is_lowercase);
    let Some(len) = headings::heading(rest, false).filter(is_capital) else { return 0 };
    found.push(NonMention { span: Span::new(at, at + len), kind: NonMentionKind::Heading });
    len
}

/// Length in bytes of the letters and digits at the start of `text`.
fn run_of(text: &str) -> usize {
    text.find(|letter: char| !letter.is_alphanumeric()).unwrap_or(text.len())
}

/// Whether a word can end before `rest`.
fn is_boundary(rest: &str) -> bool {
    !rest.starts_with(char::is_alphanumeric)
}

/// Length in bytes of the spaces at the start of `rest`, at most two.
fn blanks(rest: &str) -> usize {
    rest.bytes().take(2).take_while(|byte| matches!(byte, b' ' | b'\t')).count()
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use proptest::prelude::*;

    use super::*;

    fn check(text: &str, expect: Expect) {
        let shown: Vec<String> =
            non_mentions(text).iter().map(|one| format!("{:?}:{}", one.kind, one.span.of(text))).collect();
        expect.assert_eq(&shown.join(" | "));
    }

    /// Asserts that none of the texts contains a non-mention.
    fn keeps(texts: &[&str]) {
        for text in texts {
            assert_eq!(non_mentions(text), [], "{text}");
        }
    }

    #[test]
    fn titles_of_notes_are_no_mentions() {
        check("UROLOGY CONSULT - inpatient\nSurgery planned.", expect!["Heading:UROLOGY | Heading:CONSULT"]);
        check("ED TRIAGE 02:14. Chest pain.", expect!["Heading:TRIAGE | Time:02:14"]);
        check("VASCULAR / PODIATRY LIMB SALVAGE CLINIC", expect!["Heading:PODIATRY | Heading:CLINIC"]);
        keeps(&[
            "Surgery went well.",
            "RADIOLOGY IS FUN",
            "NASAL DISCHARGE AND COUGH FOR THREE DAYS WITH FEVER",
            "Seen in clinic.\nUROLOGY CONSULT",
        ]);
    }

    #[test]
    fn headings_of_notes_are_no_mentions() {
        check(
            "OB: G2P1, healthy.\nID: afebrile. G3 P1021",
            expect!["Heading:OB | Value:G2P1 | Heading:ID | Value:G3 P1021"],
        );
        check(
            "PAST MEDICAL HISTORY\nHTN\n\nFAMILY HISTORY: DM. ROS: cough\nA/P:\nfever",
            expect!["Heading:PAST MEDICAL HISTORY | Heading:FAMILY HISTORY | Heading:ROS | Heading:A/P"],
        );
        check(
            "Hpi: fever\nAssessment & Plan: gout\nLABS (3/4): K 4.1\n1. Allergies: nuts\n**Plan:** rest",
            expect![
                "Heading:Hpi | Heading:Assessment & Plan | Heading:LABS | Value:3/4 | Value:4.1 | ListNumber:1. | Heading:Allergies | Heading:Plan"
            ],
        );
        check(
            "BACKGROUND: Asthma. METHODS: We.RESULTS: It. Materials and methods: mice",
            expect!["Heading:BACKGROUND | Heading:METHODS | Heading:RESULTS | Heading:Materials and methods"],
        );
        keeps(&[
            "Blood pressure: high",
            "diabetes: none",
            "He has allergies: nuts",
            "past medical history",
            "PLAN to treat asthma",
            "Results were good",
            "PE\n",
        ]);
    }

    #[test]
    fn doses_routes_and_frequencies_are_no_mentions() {
        check(
            "iron 20 mg, vitamin D 1000 IU, metformin 500mg BID, saline 10 mL/h",
            expect!["Dose:20 mg | Dose:1000 IU | Dose:500mg | Frequency:BID | Dose:10 mL/h"],
        );
        check(
            "amoxicillin 5-10 mg/kg/day PO q8h PRN pain, 2 tabs po q 6 hrs, ASPIRIN 81 MG DAILY",
            expect![
                "Dose:5-10 mg/kg/day | Route:PO | Frequency:q8h | Frequency:PRN | Dose:2 tabs | Route:po | Frequency:q 6 hrs | Dose:81 MG | Frequency:DAILY"
            ],
        );
        check(
            "heparin 5,000 units SC tid; 1 g IV q12h x 7 days; 500 mL IV fluids; 5-mg tablet by mouth twice daily",
            expect![
                "Dose:5,000 units | Route:SC | Frequency:tid | Dose:1 g | Route:IV | Frequency:q12h | Time:x 7 days | Dose:500 mL | Dose:5-mg | Dose:tablet | Route:by mouth | Frequency:twice daily"
            ],
        );
        check(
            "acetaminophen prn, Augmentin 875/125 mg, 1/2 tab, 0.5 mcg/kg/min, .5 mg, oxygen 2 L/min",
            expect!["Frequency:prn | Dose:875/125 mg | Dose:1/2 tab | Dose:0.5 mcg/kg/min | Dose:.5 mg | Dose:2 L/min"],
        );
        keeps(&["IV fluids", "PO intake", "tabs", "5-fluorouracil", "6-MP and 2,4-D", "2 L-arginine", "MG and MM"]);
    }

    #[test]
    fn values_and_units_are_no_mentions() {
        check(
            "BP 142/88, HR 92, T 37.2, K 4.1 Mg 1.8 Na 138 Cl 102, SpO2 98%, RR: 18",
            expect![
                "Value:142/88 | Value:92 | Value:37.2 | Value:4.1 | Value:1.8 | Value:138 | Value:102 | Value:98% | Value:18"
            ],
        );
        check(
            "glucose 5.5 mmol/L, WBC 12.3 x10^9/L, Plt 250 x 10^3/uL, Hgb 9 g/dL, ALT 45 U/L (mg/dL)",
            expect![
                "Value:5.5 mmol/L | Value:12.3 x10^9/L | Value:250 x 10^3/uL | Value:9 g/dL | Value:45 U/L | Value:mg/dL"
            ],
        );
        check(
            "BP 120/80 mmHg, nodule 3 cm, 3 x 4 mm, pain 8/10, CRP < 0.5, temp 101.2 F, CA 125 40 U/mL",
            expect![
                "Value:120/80 mmHg | Value:3 cm | Value:3 x 4 mm | Value:8/10 | Value:0.5 | Value:101.2 F | Value:40 U/mL"
            ],
        );
        keeps(&[
            "type 2 diabetes",
            "HPV 16/18",
            "trisomy 21",
            "COVID-19",
            "CA 125",
            "CA 19-9",
            "CK 7/20",
            "IL-6",
            "IL 6",
            "Kv 1.3",
            "free T 4",
            "EC 1.1.1.1",
            "Bid",
            "Q48H",
            "q24.1",
            "11q13",
            "1p36.3",
            "HLA-A*02:01",
            "factor 8",
            "C18:1",
            "stage 3",
            "H1N1",
            "B12",
        ]);
    }

    #[test]
    fn dates_times_and_ages_are_no_mentions() {
        check(
            "3/4/2019, 2020-01-31, 12 March 2020, Mar 2020, May 5, since 10/12, in 1998, 12-Mar-20, 31.12.2019",
            expect![
                "Date:3/4/2019 | Date:2020-01-31 | Date:12 March 2020 | Date:Mar 2020 | Date:May 5 | Date:10/12 | Date:1998 | Date:12-Mar-20 | Date:31.12.2019"
            ],
        );
        check(
            "at 10:30 am, 8pm, 3 days, x2 weeks, 7-day course, for 6 months",
            expect!["Time:10:30 am | Time:8pm | Time:3 days | Time:x2 weeks | Time:7-day | Time:6 months"],
        );
        check(
            "67 y/o M with, 45F with, F/45, a 67-year-old man, 3 mo old, 67yo female, 45 yo F, aged 50, 12 years of age",
            expect![
                "Age:67 y/o M | Age:45F | Age:F/45 | Age:67-year-old | Age:3 mo old | Age:67yo | Age:45 yo F | Age:50 | Age:12 years of age"
            ],
        );
        keeps(&["Oct 4", "SEPT 9", "may 20 patients", "18F-FDG", "[18F]", "HLA-B27:05"]);
    }

    #[test]
    fn numbers_of_lists_are_no_mentions() {
        check(
            "1. HTN\n 2) DM\n(3) gout\n#4 CKD\n10. 5 mg",
            expect!["ListNumber:1. | ListNumber:2) | ListNumber:(3) | ListNumber:10. | Dose:5 mg"],
        );
        keeps(&["see 2) above", "HLA 2) above"]);
    }

    #[test]
    fn covered_spans_contain_only_non_mentions() {
        let text = "HPI: iron 20 mg PO, Mg 1.8";
        let found = non_mentions(text);
        let at = |what: &str| text.find(what).map(|start| Span::new(start, start + what.len())).unwrap();
        for what in ["HPI", "HPI:", "mg", "PO", "20 mg PO", "PO,", "1.8"] {
            assert!(covers(text, &found, at(what)), "{what}");
        }
        for what in ["iron", "iron 20 mg", "mg PO, Mg", "Mg", "Mg 1.8", ":", ", "] {
            assert!(!covers(text, &found, at(what)), "{what}");
        }
    }

    #[test]
    fn local_search_agrees_with_the_whole_text() {
        let long = "She was well and had no complaints for a long time. ".repeat(20);
        let text = format!("{long}RESULTS: iron 20 mg PO. {long}\nPMH: gout. {long} BP 142/88");
        let whole = non_mentions(&text);
        let spans = whole.iter().map(|one| one.span);
        assert_eq!(non_mentions_near(&text, spans), whole);
        let last = whole[whole.len() - 1];
        assert_eq!(non_mentions_near(&text, [last.span].into_iter()), [last]);
        assert_eq!(non_mentions_near(&text, [].into_iter()), []);
    }

    #[test]
    fn hostile_texts_take_linear_time() {
        for part in [
            "1",
            "1 ",
            "1/",
            "1.",
            "q",
            "PO ",
            "20 mg ",
            "20 mg PO ",
            "A/",
            "past medical ",
            "\n",
            "\n1. ",
            "12 x ",
            "5, ",
            "((",
            "é",
            "mg/",
            "- ",
        ] {
            for n_blanks in [0, 10_000] {
                let text = part.repeat(10_000) + &" ".repeat(n_blanks) + &part.repeat(10_000);
                non_mentions(&text);
            }
        }
    }

    proptest! {
        #[test]
        fn spans_are_ordered_and_on_boundaries(
            text in "(\\PC|[0-9]{1,3}|[./:,() \n-]| mg|mL/h| PO| BID|q8h|PMH: |PLAN\n|y/o M|F/45|Mar |BP |x10\\^9/L|µg|% ){0,40}",
        ) {
            let found = non_mentions(&text);
            let all = Span::new(0, text.len());
            prop_assert_eq!(&non_mentions_near(&text, [all].into_iter()), &found);
            let mut end = 0;
            for one in &found {
                prop_assert!(one.span.start >= end && !one.span.is_empty());
                prop_assert_eq!(one.span.of(&text).trim(), one.span.of(&text));
                prop_assert!(covers(&text, &found, one.span));
                end = one.span.end;
            }
        }
    }
}
