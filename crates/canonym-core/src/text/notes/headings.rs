//! Known headings of notes and abstracts, and numbers of list items.

use crate::text::tokens::tokenize;

/// Headings in lower case, without names of findings, drugs and organs. Sorted.
#[rustfmt::skip]
const HEADINGS: [&str; 237] = [
    "a", "a p", "abd", "access", "admission note", "aims", "allergies", "allergies and adverse reactions",
    "anaesthetic chart", "anesthesia", "assessment", "assessment and plan", "assessment plan", "attending",
    "background", "background and aims", "background and objective", "background and objectives",
    "background and purpose", "brief hospital course", "case presentation", "case report", "cc", "chief complaint",
    "chief complaints", "clinic letter", "clinic note", "clinical course", "code status", "complaint", "complaints",
    "conclusion", "conclusions", "condition at discharge", "condition on discharge", "const", "constitutional",
    "course", "current medications", "current meds", "cv", "ddx", "derm", "design", "diagnoses", "diagnosis",
    "diagnostic studies", "diet", "differential", "differential diagnosis", "discharge condition",
    "discharge diagnoses", "discharge diagnosis", "discharge disposition", "discharge instructions", "discharge letter",
    "discharge medications", "discharge meds", "discharge plan", "discharge summary", "discussion", "dispo",
    "disposition", "drug allergies", "dx", "ed course", "ed triage", "endo", "ent", "er course", "events", "exam",
    "examination", "ext", "fam hx", "family history", "family hx", "family medical history", "fen", "fen gi", "fh",
    "fh sh", "fhx", "findings", "follow up", "followup", "gen", "general", "gi", "gu", "gyn", "gyn hx", "heent", "heme",
    "history", "history and physical", "history of present illness", "history of the present illness",
    "home medications", "home meds", "hospital course", "hpi", "hx", "icu course", "id", "imaging", "imaging studies",
    "immunizations", "impression", "impression and plan", "impression plan", "indication", "indications",
    "interim events", "interpretation", "interval history", "interventions", "introduction", "investigations",
    "keywords", "lab", "lab data", "lab results", "laboratory", "laboratory data", "laboratory results",
    "laboratory studies", "labs", "main outcome measures", "major surgical or invasive procedure",
    "material and methods", "materials and methods", "measurements and main results", "medical history", "medical hx",
    "medication", "medication list", "medications", "medications on admission", "meds", "method", "methods", "msk",
    "neuro", "nursing note", "o", "ob", "ob history", "ob hx", "obgyn", "objective", "objectives", "observations",
    "onc", "onc hx", "oncologic history", "operation", "operation note", "operative note", "outcome", "outcomes",
    "overnight events", "p", "past history", "past hx", "past medical and surgical history", "past medical history",
    "past medical hx", "past surgical history", "past surgical hx", "patients and methods", "pcp", "pe",
    "pertinent results", "physical exam", "physical examination", "plan", "pmh", "pmhx", "postoperative diagnosis",
    "ppx", "preoperative diagnosis", "present illness", "presenting complaint", "prior to admission medications",
    "problem list", "problems", "procedure", "procedures", "prognosis", "progress note", "psh", "pshx", "psych", "pulm",
    "purpose", "radiology", "reason for admission", "reason for consultation", "reason for visit", "recent events",
    "recommendation", "recommendations", "referral letter", "resp", "result", "results", "results and discussion",
    "review of systems", "ros", "rx", "s", "setting", "sh", "shx", "soc hx", "social", "social and family history",
    "social history", "social hx", "speciality", "specimen", "studies", "study design", "subjective", "summary",
    "surgical history", "surgical hx", "systems review", "technique", "transfer summary", "treatment plan",
    "triage note", "vital signs", "vitals", "vs", "ward round",
];

/// Maximum number of words of a heading.
const MAX_WORDS: usize = 6;

/// Maximum length in bytes of a remark between a heading and its colon: `Labs (3/4):`.
const MAX_REMARK: usize = 30;

/// Length in bytes of the heading at the start of `rest`: known words with a colon, or known words in upper case alone
/// on their line.
pub(super) fn heading(rest: &str, is_line_start: bool) -> Option<usize> {
    if !rest.starts_with(char::is_alphabetic) {
        return None;
    }
    let mut words = String::new();
    let mut best = None;
    let mut end = 0;
    for token in tokenize(rest).iter().take(MAX_WORDS) {
        let gap = &rest[end..token.span.start as usize];
        if gap.len() > 3 || gap.contains(|letter| !matches!(letter, ' ' | '/' | '&' | '-')) {
            break;
        }
        if !words.is_empty() {
            words.push(' ');
        }
        words.extend(token.span.of(rest).chars().flat_map(char::to_lowercase));
        end = token.span.end as usize;
        if HEADINGS.binary_search(&words.as_str()).is_ok() && ends_heading(rest, end, is_line_start) {
            best = Some(end);
        }
    }
    best
}

fn ends_heading(rest: &str, end: usize, is_line_start: bool) -> bool {
    let words = &rest[..end];
    let after = rest[end..].trim_start_matches([' ', '\t', '*']);
    let remark = after.strip_prefix('(').and_then(|inside| inside.split_once(')'));
    let after = match remark {
        Some((remark, after)) if remark.len() <= MAX_REMARK && !remark.contains('\n') => after.trim_start(),
        _ => after,
    };
    if let Some(content) = after.strip_prefix(':') {
        // A letter such as `S:` is a heading only at the start of a line and not before a number.
        let is_letter = words.len() == 1;
        let content = content.trim_start();
        return !is_letter
            || (is_line_start && words != words.to_lowercase() && content.starts_with(char::is_alphabetic));
    }
    let is_capital = words.len() > 2 && !words.contains(char::is_lowercase);
    is_line_start && is_capital && (after.is_empty() || after.starts_with(['\n', '\r']))
}

/// Words of document kinds in titles of notes, in upper case. Sorted.
#[rustfmt::skip]
const KINDS: [&str; 22] = [
    "ADMISSION", "ASSESSMENT", "CLERKING", "CLINIC", "CONSULT", "CONSULTATION", "DISCHARGE", "FOLLOW", "HANDOVER", "LETTER",
    "NOTE", "NOTES", "OPERATIVE", "PROGRESS", "REFERRAL", "REPORT", "REVIEW", "ROUND", "SUMMARY", "TRIAGE", "VISIT", "WARD",
];

/// Departments and other words in titles of notes, in upper case. Sorted.
#[rustfmt::skip]
const DEPARTMENTS: [&str; 48] = [
    "ANAESTHESIA", "ANAESTHETIC", "ANESTHESIA", "AUDIOLOGY", "CARDIOLOGY", "DENTAL", "DENTISTRY", "DERMATOLOGY", "DIETETICS",
    "EMERGENCY", "ENDOCRINE", "ENDOCRINOLOGY", "GASTROENTEROLOGY", "GENERAL", "GENETICS", "GERIATRIC", "GERIATRICS",
    "GYNAECOLOGY", "GYNECOLOGY", "HAEMATOLOGY", "HEMATOLOGY", "HOSPICE", "HOSPITAL", "INFECTIOUS", "INPATIENT", "MEDICINE", "NEONATAL",
    "NEPHROLOGY", "NEUROLOGY", "NEUROSURGERY", "NURSING", "OBSTETRICS", "ONCOLOGY", "OPHTHALMOLOGY", "ORTHOPAEDICS",
    "ORTHOPEDICS", "OUTPATIENT", "PAEDIATRICS", "PALLIATIVE", "PATHOLOGY", "PEDIATRICS", "PHYSIOTHERAPY", "PODIATRY",
    "PSYCHIATRY", "RADIOLOGY", "RHEUMATOLOGY", "SURGERY", "UROLOGY",
];

/// End in bytes of the title at the start of a document: words in upper case of which one is a kind of document, as in
/// `UROLOGY CONSULT - inpatient`; 0 if there is none.
pub(super) fn title_end(text: &str) -> usize {
    let line = &text[..text.find(['\n', '\r']).unwrap_or(text.len())];
    let line = &line[..line.floor_char_boundary(MAX_TITLE)];
    let end = line.find(char::is_lowercase).unwrap_or(line.len());
    let is_kind = |word: &str| KINDS.binary_search(&word).is_ok();
    let is_short = words_of(&line[..end]).nth(MAX_WORDS).is_none();
    if is_short && words_of(&line[..end]).any(is_kind) { end } else { 0 }
}

/// Length in bytes of the word at the start of `rest` if it only says what a document is, as those of titles do.
pub(super) fn title_word(rest: &str) -> Option<usize> {
    let word = words_of(rest).next().filter(|word| rest.starts_with(*word))?;
    (KINDS.binary_search(&word).is_ok() || DEPARTMENTS.binary_search(&word).is_ok()).then_some(word.len())
}

fn words_of(text: &str) -> impl Iterator<Item = &str> {
    text.split(|letter: char| !letter.is_alphanumeric()).filter(|word| !word.is_empty())
}

/// Maximum length of a title in bytes.
const MAX_TITLE: usize = 80;

/// Length in bytes of the list number at the start of `rest`: `2.`, `(3)`.
pub(super) fn list_number(rest: &str) -> Option<usize> {
    let open = usize::from(rest.starts_with('('));
    let digits = rest[open..].bytes().take_while(u8::is_ascii_digit).count();
    if digits == 0 || digits > 3 {
        return None;
    }
    let after = &rest[open + digits..];
    let is_number = if open > 0 { after.starts_with(") ") } else { after.starts_with([')', '.']) };
    let end = open + digits + 1;
    let is_apart = rest.get(end..).is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', '\t']));
    (is_number && is_apart).then_some(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headings_are_sorted_words() {
        assert!(HEADINGS.is_sorted() && KINDS.is_sorted() && DEPARTMENTS.is_sorted());
        for heading in HEADINGS {
            let words: Vec<&str> = tokenize(heading).iter().map(|token| token.span.of(heading)).collect();
            assert_eq!(words.join(" "), heading);
            assert!(words.len() <= MAX_WORDS);
        }
    }
}
