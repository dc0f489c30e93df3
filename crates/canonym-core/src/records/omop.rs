//! Rows of the table NOTE_NLP of the OMOP common data model 5.4, as CSV with a header line.
//!
//! One mention is one row, or one for each standard concept that its concept maps to. The id of a document is the
//! `note_id` and has to be an integer. `section_concept_id` is 0, because sections have no concepts here. `offset` is the
//! first code point; several, separated by `;`, for a discontinuous mention. Text is cut to the lengths of the model.
//!
//! | context | `term_exists` | `term_temporal` | `term_modifiers` |
//! | --- | --- | --- | --- |
//! | none | Y | present | |
//! | negated | N | present | Negation=true |
//! | possible | N | present | Uncertain=true |
//! | historical | Y | past | History=true |
//! | hypothetical | N | | Conditional=true |
//! | family | N | present | Subject=family |
//!
//! `Unmapped=…` in `term_modifiers` is the reason of a concept id 0.

use std::path::Path;

use super::Asserted;
use super::omop_concepts::{ConceptTable, Mapped};
use crate::corpus::losses::{Loss, Losses};
use crate::corpus::table::{code_points, push_csv};
use crate::corpus::{AnnotatedDocument, Annotation};
use crate::kb::KnowledgeBase;
use crate::kb::format::Meta;
use crate::{Error, Result};

/// The columns of NOTE_NLP.
pub const COLUMNS: [&str; 14] = [
    "note_nlp_id",
    "note_id",
    "section_concept_id",
    "snippet",
    "offset",
    "lexical_variant",
    "note_nlp_concept_id",
    "note_nlp_source_concept_id",
    "nlp_system",
    "nlp_date",
    "nlp_datetime",
    "term_exists",
    "term_temporal",
    "term_modifiers",
];

/// Lengths of text columns in the model, in characters.
const MAX_TEXT: usize = 250;
const MAX_OFFSET: usize = 50;
const MAX_MODIFIERS: usize = 2000;

/// Characters of a snippet before the mention.
const BEFORE: usize = 80;

/// Date and time of the processing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NlpDate {
    date: String,
    /// Empty if only the date is given.
    datetime: String,
}

impl NlpDate {
    /// Parses `2026-11-25`, or `2026-11-25T14:30:00`.
    ///
    /// # Errors
    /// [`Error::Usage`] if the text is something else, or no such day exists.
    pub fn parse(text: &str) -> Result<NlpDate> {
        let wrong = || {
            let shown: String = text.chars().take(40).collect();
            Error::usage(format!("`{shown}` is not a date"), "write it as 2026-11-25, or 2026-11-25T14:30:00")
        };
        let (date, time) = match text.split_once(['T', ' ']) {
            Some((date, time)) => (date, Some(time)),
            None => (text, None),
        };
        let [year, month, day] = numbers(date, '-', [4, 2, 2]).ok_or_else(wrong)?;
        let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
        let n_days = match month {
            2 => 28 + u32::from(is_leap),
            4 | 6 | 9 | 11 => 30,
            _ => 31,
        };
        if !(1..=12).contains(&month) || !(1..=n_days).contains(&day) {
            return Err(wrong());
        }
        let datetime = match time {
            None => String::new(),
            Some(time) => {
                let [hour, minute, second] = numbers(time, ':', [2, 2, 2]).ok_or_else(wrong)?;
                if hour > 23 || minute > 59 || second > 59 {
                    return Err(wrong());
                }
                format!("{date} {time}")
            }
        };
        Ok(NlpDate { date: date.to_owned(), datetime })
    }
}

/// Three numbers of these widths between signs.
fn numbers(text: &str, sign: char, widths: [usize; 3]) -> Option<[u32; 3]> {
    let parts: Vec<&str> = text.split(sign).collect();
    let is_right =
        |(part, width): (&&str, &usize)| part.len() == *width && part.bytes().all(|byte| byte.is_ascii_digit());
    if parts.len() != 3 || !parts.iter().zip(&widths).all(is_right) {
        return None;
    }
    let number = |at: usize| parts[at].parse().ok();
    Some([number(0)?, number(1)?, number(2)?])
}

/// What rows are made with.
#[derive(Debug)]
pub struct NoteNlp {
    /// Program, model and terminology, for `nlp_system`.
    pub system: String,
    /// When the texts are processed.
    pub date: NlpDate,
    /// The concepts of the vocabulary; without them all concept ids are 0.
    pub concepts: Option<ConceptTable>,
}

/// Program, model and terminology, as [`NoteNlp::system`]; `model` is a name or path.
pub fn system_label(kb: &KnowledgeBase, model: &str) -> String {
    let model = Path::new(model).file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
    let Meta { name, version, .. } = kb.meta();
    let version = if version.is_empty() { String::new() } else { format!(" {version}") };
    format!("canonym {}, model {model}, {name}{version}", env!("CARGO_PKG_VERSION"))
}

/// The header line.
pub fn header() -> String {
    COLUMNS.join(",") + "\n"
}

impl NoteNlp {
    /// The rows of a document behind the column `note_nlp_id`, which the caller puts before each, and what they lack.
    ///
    /// # Errors
    /// [`Error::Unsupported`] if the id of the document is not an integer.
    pub fn records(&self, kb: &KnowledgeBase, document: &AnnotatedDocument) -> Result<(Vec<String>, Losses)> {
        let id = document.document.id.trim();
        let note_id: i64 = id.parse().map_err(|_| {
            let shown: String = id.chars().take(80).collect();
            Error::unsupported(format!("the id of document `{shown}` is not an integer, as `note_id` has to be"))
                .with_hint("name the column with the ids of notes by `--id-column`, or give documents their `note_id`")
        })?;
        let letters: Vec<char> = document.document.text.chars().collect();
        let (mut records, mut n_unmapped) = (Vec::new(), 0);
        for (annotation, spans) in document.annotations.iter().zip(code_points(document)) {
            let mapped = self.mapped(kb, annotation);
            n_unmapped += usize::from(mapped.standard.is_empty());
            let starts: Vec<String> = spans.iter().map(|span| span.0.to_string()).collect();
            let standards = if mapped.standard.is_empty() { vec![0] } else { mapped.standard.clone() };
            for standard in standards {
                let (exists, temporal, modifiers) = terms(Asserted::of(annotation), mapped.reason.as_deref());
                let fields = [
                    note_id.to_string(),
                    "0".to_owned(),
                    snippet(&letters, spans.first().map_or(0, |span| span.0)),
                    cut(&starts.join(";"), MAX_OFFSET),
                    cut(&one_line(&annotation.text), MAX_TEXT),
                    standard.to_string(),
                    mapped.source.to_string(),
                    cut(&self.system, MAX_TEXT),
                    self.date.date.clone(),
                    self.date.datetime.clone(),
                    exists.to_owned(),
                    temporal.to_owned(),
                    cut(&modifiers, MAX_MODIFIERS),
                ];
                let mut record = String::new();
                for (at, field) in fields.iter().enumerate() {
                    if at > 0 {
                        record.push(',');
                    }
                    push_csv(&mut record, field);
                }
                records.push(record);
            }
        }
        let mut losses = Losses::default();
        losses.count(Loss::Unmapped, n_unmapped, document);
        Ok((records, losses))
    }

    fn mapped(&self, kb: &KnowledgeBase, annotation: &Annotation) -> Mapped {
        let Some(id) = annotation.concept_id() else { return Mapped::none("not linked") };
        match &self.concepts {
            Some(concepts) => concepts.map(kb, id, &annotation.codes),
            None => Mapped::none("no vocabulary table"),
        }
    }
}

/// `term_exists`, `term_temporal` and `term_modifiers`.
fn terms(asserted: Asserted, unmapped: Option<&str>) -> (&'static str, &'static str, String) {
    let Asserted { negated, possible, historical, hypothetical, family } = asserted;
    let exists = if negated || possible || hypothetical || family { "N" } else { "Y" };
    let temporal = match (hypothetical, historical) {
        (true, _) => "",
        (false, true) => "past",
        (false, false) => "present",
    };
    let flags = [
        (negated, "Negation=true"),
        (possible, "Uncertain=true"),
        (historical, "History=true"),
        (hypothetical, "Conditional=true"),
        (family, "Subject=family"),
    ];
    let mut modifiers: Vec<String> =
        flags.into_iter().filter(|(is_set, _)| *is_set).map(|(_, name)| name.to_owned()).collect();
    modifiers.extend(unmapped.map(|reason| format!("Unmapped={reason}")));
    (exists, temporal, modifiers.join(","))
}

/// The text around a mention on one line.
fn snippet(letters: &[char], start: usize) -> String {
    let first = start.saturating_sub(BEFORE);
    let last = (first + MAX_TEXT).min(letters.len());
    one_line(&letters[first..last].iter().collect::<String>())
}

/// Line breaks and tabs as blanks.
fn one_line(text: &str) -> String {
    text.replace(['\n', '\r', '\t'], " ").trim().to_owned()
}

/// At most `n` characters.
fn cut(text: &str, n: usize) -> String {
    text.chars().take(n).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_checked() {
        let parsed = NlpDate::parse("2024-02-29T09:05:00").unwrap();
        assert_eq!((parsed.date.as_str(), parsed.datetime.as_str()), ("2024-02-29", "2024-02-29 09:05:00"));
        assert_eq!(NlpDate::parse("2026-11-25").unwrap().datetime, "");
        let wrong = [
            "",
            "today",
            "2026-11-31",
            "2025-02-29",
            "2026-13-01",
            "26-11-25",
            "2026-11-25T25:00:00",
            "2026-11-25T9:00",
        ];
        for text in wrong {
            assert!(NlpDate::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn contexts_are_terms_of_the_model() {
        let plain = Asserted::default();
        let show = |asserted, unmapped| {
            let (exists, temporal, modifiers) = terms(asserted, unmapped);
            format!("{exists} {temporal} {modifiers}")
        };
        assert_eq!(show(plain, None), "Y present ");
        assert_eq!(
            show(Asserted { negated: true, historical: true, ..plain }, None),
            "N past Negation=true,History=true"
        );
        assert_eq!(
            show(Asserted { hypothetical: true, ..plain }, Some("not linked")),
            "N  Conditional=true,Unmapped=not linked"
        );
        assert_eq!(
            show(Asserted { family: true, possible: true, ..plain }, None),
            "N present Uncertain=true,Subject=family"
        );
    }

    #[test]
    fn snippets_hold_the_mention() {
        let letters: Vec<char> = ("x".repeat(300) + "cough" + &"y".repeat(300)).chars().collect();
        let found = snippet(&letters, 300);
        assert!(found.contains("xcoughy") && found.chars().count() == MAX_TEXT, "{found}");
        assert_eq!(snippet(&"a\ncough".chars().collect::<Vec<_>>(), 2), "a cough");
        assert_eq!(snippet(&[], 0), "");
    }
}
