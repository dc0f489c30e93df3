//! Numbers with units, doses with routes and frequencies, and laboratory values.

use super::{NonMention, NonMentionKind, ahead, blanks, is_boundary, run_of};
use crate::text::Span;

/// Units of doses. Sorted.
#[rustfmt::skip]
const DOSES: [&str; 83] = [
    "CAPS", "GM", "Gy", "IU", "KG", "L", "MBq", "MCG", "MEQ", "MG", "ML", "MU", "PUFFS", "TAB", "TABS", "U",
    "UNIT", "UNITS", "amp", "ampule", "ampules", "cGy", "cap", "caps", "capsule", "capsules", "cc", "drop", "drops",
    "g", "gm", "gms", "gram", "grams", "gtt", "gtts", "iu", "kcal", "kg", "l", "mCi", "mEq", "mL", "mSv", "mU", "mcg",
    "meq", "mg", "micrograms", "milligram", "milligrams", "milliliters", "ml", "mmol", "mol", "ng", "nmol", "oz",
    "patch", "patches", "pg", "pmol", "puff", "puffs", "spray", "sprays", "tab", "tablet", "tablets", "tabs", "tbsp",
    "tsp", "u", "ug", "umol", "unit", "units", "vial", "vials", "µg", "µmol", "μg", "μmol",
];

/// Units of measurement. Sorted.
#[rustfmt::skip]
const MEASURES: [&str; 36] = [
    "%", "BPM", "C", "CM", "F", "Hz", "MMHG", "bpm", "cm", "cmH2O", "dB", "degrees", "fL", "fl", "ft", "inches", "kDa",
    "kHz", "kPa", "lb", "lbs", "m2", "mV", "mm", "mmHg", "mmhg", "ms", "msec", "nm", "percent", "pounds", "um", "°C",
    "°F", "µm", "μm",
];

/// Units after a slash. Sorted.
#[rustfmt::skip]
const PER: [&str; 46] = [
    "24h", "DL", "H", "HPF", "HR", "KG", "L", "L24h", "cell", "cells", "cumm", "d", "dL", "day", "dl", "dose", "fL",
    "g", "h", "hour", "hpf", "hr", "kg", "l", "lpf", "m2", "mL", "mg", "min", "minute", "ml", "mm3", "mmol", "mm³",
    "mo", "mol", "month", "m²", "s", "sec", "uL", "ul", "week", "wk", "µL", "μL",
];

/// Units that turn a dose into a value after a slash: `mg/dL`.
const CONCENTRATIONS: [&str; 10] = ["L", "cumm", "dL", "dl", "fL", "l", "mL", "ml", "uL", "µL"];

/// Routes of administration. Sorted.
#[rustfmt::skip]
const ROUTES: [&str; 40] = [
    "by mouth", "gt", "i.m", "i.m.", "i.v", "i.v.", "im", "inh", "inhaled", "intramuscularly", "intranasally",
    "intravenous", "intravenously", "iv", "iv push", "ivp", "ivpb", "neb", "nebs", "oral", "orally", "p.o",
    "p.o.", "p.r.", "per ng", "po", "pr", "pv", "rectally", "s.c.", "sc", "sl", "sq", "subcut", "subcutaneous",
    "subcutaneously", "sublingually", "subq", "topically", "via ng",
];

/// Frequencies that are never mentions. Sorted.
const FREQUENCIES: [&str; 16] = [
    "bid", "prn", "qac", "qam", "qd", "qdaily", "qday", "qhs", "qid", "qod", "qpm", "qshift", "qweek", "qwk", "tid",
    "tiw",
];

/// Maximum length in bytes of [`FREQUENCIES`].
const MAX_FREQUENCY: usize = 6;

/// Maximum length in bytes of the first word of a route without a dose.
const MAX_ROUTE: usize = 4;

/// Frequencies with full stops. Sorted.
const DOTTED: [&str; 7] = ["b.i.d", "b.i.d.", "p.r.n", "p.r.n.", "q.i.d.", "t.i.d", "t.i.d."];

/// Frequencies after a dose. Sorted.
#[rustfmt::skip]
const AFTER_DOSES: [&str; 50] = [
    "3 times a day", "3 times daily", "4 times a day", "a day", "a week", "ac", "after meals", "as needed",
    "at bedtime", "at night", "atc", "b.i.d", "before meals", "daily", "every day", "every evening", "every morning",
    "every night", "every other day", "hs", "in the evening", "in the morning", "monthly", "nightly", "od", "once",
    "once a day", "once daily", "once weekly", "p.r.n", "pc", "per day", "per week", "q.d", "q.h.s", "q.i.d", "stat",
    "t.i.d", "three times a day", "three times daily", "twice", "twice a day", "twice daily", "weekly", "with meals",
    "x 1", "x 2", "x1", "x2", "x3",
];

/// Dosage forms. Sorted.
#[rustfmt::skip]
const FORMS: [&str; 14] = [
    "cap", "caps", "capsule", "capsules", "inhaler", "injection", "patch", "suppository", "tab", "tablet",
    "tablets", "tabs", "vial", "vials",
];

/// Analytes reported as integers without a unit, with minimum and maximum value.
#[rustfmt::skip]
const ANALYTES: [(&str, u32, u32); 49] = [
    ("ALP", 10, 5000), ("ALT", 1, 20_000), ("AP", 10, 5000), ("AST", 1, 20_000), ("BMI", 8, 99), ("BNP", 1, 99_999),
    ("BP", 30, 300), ("BUN", 1, 300), ("CK", 25, 500_000), ("CO2", 5, 99), ("CPK", 25, 500_000), ("CRP", 1, 999),
    ("Ca", 5, 18), ("Cl", 70, 150), ("Cr", 1, 20), ("ESR", 1, 200), ("FiO2", 20, 100), ("GCS", 3, 15),
    ("HCO3", 3, 60), ("HR", 20, 300), ("Hb", 3, 25), ("Hct", 8, 75), ("Hgb", 3, 25), ("INR", 1, 20),
    ("K", 2, 9), ("LDH", 20, 20_000), ("Mg", 1, 9), ("Na", 100, 190), ("O2sat", 40, 100), ("P", 30, 250),
    ("PLT", 1, 3000), ("PT", 8, 150), ("PTT", 15, 200), ("Phos", 1, 15), ("Plt", 1, 3000), ("Plts", 1, 3000),
    ("Pulse", 20, 300), ("R", 6, 80), ("RR", 4, 80), ("SaO2", 40, 100), ("Sat", 40, 100), ("SpO2", 40, 100),
    ("T", 30, 110), ("Temp", 30, 110), ("WBC", 1, 500), ("glucose", 10, 2000), ("platelets", 1, 3000),
    ("pulse", 20, 300), ("temp", 30, 110),
];

/// Words before a decimal number that is part of a name: `Kv 1.3`.
const NAMES: [&str; 8] = ["Cav", "EC", "Kir", "Kv", "Nav", "TRPV", "chapter", "version"];

/// Length in bytes and kind of the quantity at the start of `rest`; `word` precedes it.
pub(super) fn quantity(rest: &str, word: &str) -> Option<(usize, NonMentionKind)> {
    if let Some(len) = power(rest).or_else(|| unit_alone(rest)).or_else(|| pregnancies(rest)) {
        return Some((len, NonMentionKind::Value));
    }
    if !rest.starts_with(|letter: char| letter.is_ascii_digit() || letter == '.') {
        let frequency = frequency(rest, Standing::Alone).map(|len| (len, NonMentionKind::Frequency));
        return frequency.or_else(|| route(rest).map(|len| (len, NonMentionKind::Route)));
    }
    let number = numbers(rest)?;
    if let Some((len, kind)) = united(rest, number.len) {
        return Some((len, kind));
    }
    is_value(&rest[..number.len], &rest[number.len..], &number, word).then_some((number.len, NonMentionKind::Value))
}

/// Length in bytes of numbers of pregnancies and births: `G2P1`, `G3 P1021`.
fn pregnancies(rest: &str) -> Option<usize> {
    let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
    let after = rest.strip_prefix(['G', 'g'])?;
    let n_pregnancies = digits(after);
    let births = after[n_pregnancies..].trim_start_matches([' ', ',']);
    let after = births.strip_prefix(['P', 'p'])?;
    let n_births = digits(after);
    let is_count = (1..=2).contains(&n_pregnancies) && (1..=4).contains(&n_births);
    (is_count && is_boundary(&after[n_births..])).then(|| rest.len() - after.len() + n_births)
}

/// Adds the dosage forms, routes and frequencies after a dose that ended at `start`. Returns their length in bytes.
pub(super) fn follow(text: &str, start: usize, found: &mut Vec<NonMention>) -> usize {
    let mut at = start;
    loop {
        let rest = ahead(text, at);
        let gap = blanks(rest.strip_prefix(',').unwrap_or(rest)) + usize::from(rest.starts_with(','));
        if gap == 0 || rest[gap..].starts_with([' ', '\t']) {
            return at - start;
        }
        let Some((len, kind)) = after_dose(&rest[gap..]) else {
            return at - start;
        };
        found.push(NonMention { span: Span::new(at + gap, at + gap + len), kind });
        at += gap + len;
    }
}

fn after_dose(rest: &str) -> Option<(usize, NonMentionKind)> {
    if let Some(len) = frequency(rest, Standing::AfterDose) {
        return Some((len, NonMentionKind::Frequency));
    }
    if let Some(len) = longest(rest, &AFTER_DOSES) {
        return Some((len, NonMentionKind::Frequency));
    }
    if let Some(len) = longest(rest, &FORMS) {
        return Some((len, NonMentionKind::Dose));
    }
    let len = longest(rest, &ROUTES)?;
    // In `IV fluids` and `PO intake` the word is not the route of a dose.
    #[rustfmt::skip]
    const GIVEN: [&str; 12] = [
        "access", "antibiotic", "antibiotics", "bolus", "catheter", "contrast", "drip", "drug", "fluid", "fluids", "intake",
        "line",
    ];
    let after = &rest[len..];
    let next = &after[blanks(after)..];
    let is_given = GIVEN.binary_search(&next[..run_of(next)].to_lowercase().as_str()).is_ok();
    (!is_given).then_some((len, NonMentionKind::Route))
}

/// Length in bytes of the longest phrase at the start of `rest`; `phrases` are in lower case and sorted.
fn longest(rest: &str, phrases: &[&str]) -> Option<usize> {
    const MAX_PHRASE: usize = 24;
    let head = &rest[..rest.floor_char_boundary(MAX_PHRASE)];
    let lower = head.to_ascii_lowercase();
    let mut best = None;
    for (at, _) in head.char_indices().skip(1).chain([(head.len(), ' ')]) {
        if is_boundary(&rest[at..]) && phrases.binary_search(&&lower[..at]).is_ok() {
            best = Some(at);
        }
    }
    best
}

/// Whether a word follows a dose, where weaker evidence suffices.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Standing {
    Alone,
    AfterDose,
}

/// `BID`, `p.r.n.`, `q8h`, `q 4-6 hrs`, `every 8 hours`. Without a dose, `Bid` is a gene, `q24.1` a band and `Q48H` a
/// variant.
fn frequency(rest: &str, standing: Standing) -> Option<usize> {
    let word = &rest[..run_of(rest)];
    let is_mixed = word.contains(char::is_lowercase) && word.contains(char::is_uppercase);
    // The length rejects most words without a lookup.
    let is_known = word.len() <= MAX_FREQUENCY && FREQUENCIES.binary_search(&word.to_lowercase().as_str()).is_ok();
    if is_known && (!is_mixed || standing == Standing::AfterDose || word.starts_with(['q', 'Q'])) {
        return Some(word.len());
    }
    let is_every = word.eq_ignore_ascii_case("every");
    if !is_every && !word.starts_with(['q', 'Q']) {
        return if rest[word.len()..].starts_with('.') { longest(rest, &DOTTED) } else { None };
    }
    let start = if is_every { word.len() } else { 1 };
    let gap = if start == word.len() { blanks(&rest[start..]) } else { 0 };
    if gap == 0 && is_every {
        return None;
    }
    let at = start + gap;
    let number = numbers(&rest[at..]).filter(|number| !number.has_point)?;
    let after = &rest[at + number.len..];
    let unit_gap = blanks(after);
    let unit = &after[unit_gap..][..run_of(&after[unit_gap..])];
    const UNITS: [&str; 14] =
        ["d", "day", "days", "h", "hour", "hours", "hr", "hrs", "min", "minutes", "month", "months", "week", "weeks"];
    if UNITS.binary_search(&unit.to_lowercase().as_str()).is_ok() {
        let is_usual = number.whole.is_none_or(|hours| matches!(hours, 1..=4 | 6 | 8 | 12 | 24));
        let is_certain = standing == Standing::AfterDose || !word.starts_with('Q') || is_usual;
        return is_certain.then_some(at + number.len + unit_gap + unit.len());
    }
    (standing == Standing::AfterDose && start == 1 && gap == 0 && is_boundary(after)).then_some(at + number.len)
}

/// The route at the start of `rest`, if a frequency follows: `PO BID`.
fn route(rest: &str) -> Option<usize> {
    if run_of(rest) > MAX_ROUTE {
        return None;
    }
    let len = longest(rest, &ROUTES)?;
    let after = &rest[len..];
    let gap = blanks(after);
    (gap > 0 && frequency(&after[gap..], Standing::Alone).is_some()).then_some(len)
}

/// Connected numbers: `5-10`, `142/88`, `3 x 4`, `5,000`.
struct Numbers {
    len: usize,
    /// Whether any has a decimal point.
    has_point: bool,
    /// The first number and the one after a slash, if any.
    ratio: Option<(u32, u32)>,
    /// The value of a single integer.
    whole: Option<u32>,
}

fn numbers(rest: &str) -> Option<Numbers> {
    let (mut len, mut has_point) = number(rest)?;
    let first: Option<u32> = rest[..len].replace(',', "").parse().ok();
    let mut found = Numbers { len, has_point, ratio: None, whole: first };
    for _ in 0..2 {
        let after = &rest[len..];
        let gap = blanks(after);
        let Some(sign) = after[gap..].chars().next().filter(|sign| matches!(sign, '-' | '–' | '/' | 'x' | '×'))
        else {
            break;
        };
        let next = &after[gap + sign.len_utf8()..];
        let next_gap = blanks(next);
        // Excludes `5- 10`.
        let Some((next_len, is_point)) = number(&next[next_gap..]).filter(|_| gap == next_gap) else {
            break;
        };
        // `10 x10^9/L` is a number and a power.
        if next[next_gap + next_len..].starts_with(['^', '*', 'e', 'E', '⁹']) {
            break;
        }
        let second = next[next_gap..][..next_len].parse().ok();
        found.ratio = first.zip(second).filter(|_| sign == '/' && gap == 0 && found.ratio.is_none());
        found.whole = None;
        has_point |= is_point;
        len += gap + sign.len_utf8() + next_gap + next_len;
    }
    found.len = len;
    found.has_point = has_point;
    Some(found)
}

/// Maximum number of digits.
const MAX_DIGITS: usize = 9;

/// Length in bytes of the number at the start of `rest`, and whether it has a decimal point.
fn number(rest: &str) -> Option<(usize, bool)> {
    let digits = |rest: &str| rest.bytes().take(MAX_DIGITS + 1).take_while(u8::is_ascii_digit).count();
    let mut len = digits(rest);
    if len > MAX_DIGITS {
        return None;
    }
    while len > 0 && len <= MAX_DIGITS && rest[len..].starts_with(',') && digits(&rest[len + 1..]) == 3 {
        len += 4;
    }
    let n_after = if rest[len..].starts_with('.') { digits(&rest[len + 1..]) } else { 0 };
    if n_after > MAX_DIGITS || (len == 0 && n_after == 0) {
        return None;
    }
    let has_point = n_after > 0;
    len += if has_point { n_after + 1 } else { 0 };
    // A number with two points is part of a name.
    let is_name = has_point && rest[len..].starts_with('.') && digits(&rest[len + 1..]) > 0;
    (!is_name).then_some((len, has_point))
}

/// A number with its unit; the number takes the first `len` bytes.
fn united(rest: &str, len: usize) -> Option<(usize, NonMentionKind)> {
    let after = &rest[len..];
    if let Some(power) = power(&after[blanks(after)..]) {
        return Some((len + blanks(after) + power, NonMentionKind::Value));
    }
    let is_hyphen = after.starts_with('-');
    let gap = if is_hyphen { 1 } else { blanks(after) };
    let (unit, kind) = unit(&after[gap..])?;
    // `5-h` and the like are more often parts of names than hours.
    let is_single = run_of(&after[gap..]) < 2 && unit < 2 && !after[gap..].starts_with('%');
    let is_temperature = |letter: &str| matches!(letter, "C" | "F");
    if is_temperature(&after[gap..gap + unit]) {
        let value: f32 = rest[..len].parse().ok()?;
        let is_near = (30.0..45.0).contains(&value) || (93.0..110.0).contains(&value);
        return is_near.then_some((len + gap + unit, kind));
    }
    (!(is_hyphen && is_single)).then_some((len + gap + unit, kind))
}

/// Length in bytes of the unit at the start of `rest`, including units after slashes.
fn unit(rest: &str) -> Option<(usize, NonMentionKind)> {
    let mut len = word_of_unit(rest);
    let name = &rest[..len];
    let mut kind = if is_one_of(name, &DOSES) {
        NonMentionKind::Dose
    } else if is_one_of(name, &MEASURES) {
        NonMentionKind::Value
    } else {
        // `K` is a unit (thousands) only with a slash: `K/uL`.
        let under = rest[len..].strip_prefix('/')?;
        let is_count =
            matches!(name, "K" | "k" | "cells" | "cell" | "copies" | "beats" | "breaths" | "hpf" | "CFU" | "cfu");
        if !is_count || !is_one_of(&under[..word_of_unit(under)], &PER) {
            return None;
        }
        NonMentionKind::Value
    };
    for _ in 0..3 {
        let Some(under) = rest[len..].strip_prefix(['/', '·']) else {
            break;
        };
        let sign = rest.len() - len - under.len();
        // `mL/min/1.73 m2`
        if let Some(len_number) = under.strip_prefix("1.73").map(|after| 4 + blanks(after)) {
            let area = &under[len_number..];
            if area.starts_with("m2") || area.starts_with("m²") {
                len += sign + len_number + word_of_unit(area);
            }
            break;
        }
        let name = &under[..word_of_unit(under)];
        if !is_one_of(name, &PER) {
            break;
        }
        if CONCENTRATIONS.contains(&name) {
            kind = NonMentionKind::Value;
        }
        len += sign + name.len();
    }
    if name == "mm" && rest[len..].starts_with(" Hg") && is_boundary(&rest[len + 3..]) {
        len += 3;
    }
    (is_boundary(&rest[len..]) && !is_compound(&rest[len..])).then_some((len, kind))
}

/// Whether a word continues after a hyphen: `2 L-arginine`.
fn is_compound(rest: &str) -> bool {
    rest.strip_prefix('-').is_some_and(|rest| rest.starts_with(char::is_alphabetic))
}

fn word_of_unit(rest: &str) -> usize {
    let is_sign = |letter: char| matches!(letter, '%' | '°');
    let is_letter = |letter: char| letter.is_alphanumeric() || is_sign(letter);
    if rest.starts_with('%') { 1 } else { rest.find(|letter| !is_letter(letter)).unwrap_or(rest.len()) }
}

fn is_one_of(name: &str, units: &[&str]) -> bool {
    !name.is_empty() && units.binary_search(&name).is_ok()
}

/// A unit without a number, recognised by its slash: `mmol/L`.
fn unit_alone(rest: &str) -> Option<usize> {
    let name = word_of_unit(rest);
    if !rest[name..].starts_with('/') || !rest.starts_with(char::is_alphabetic) {
        return None;
    }
    let (len, _) = unit(rest)?;
    (len > name + 1).then_some(len)
}

/// A power of ten with a unit: `x10^9/L`, `10*3/uL`, `×10⁹/L`.
fn power(rest: &str) -> Option<usize> {
    let times = rest.chars().next().filter(|sign| matches!(sign, 'x' | 'X' | '×')).map_or(0, char::len_utf8);
    let gap = if times > 0 { blanks(&rest[times..]) } else { 0 };
    let ten = rest[times + gap..].strip_prefix("10")?;
    let mut len = times + gap + 2;
    let after = ten.trim_start_matches(['^', '*', 'e', 'E']);
    let n_signs = ten.len() - after.len();
    let digits =
        after.find(|letter: char| !matches!(letter, '0'..='9' | '⁰'..='⁹' | '²' | '³' | '¹')).unwrap_or(after.len());
    if n_signs > 1
        || digits == 0
        || digits > 6
        || (n_signs == 0 && after.starts_with(|letter: char| letter.is_ascii_digit()) && times == 0)
    {
        return None;
    }
    len += n_signs + digits;
    let under = rest[len..].strip_prefix('/').unwrap_or_default();
    let name = &under[..word_of_unit(under)];
    if is_one_of(name, &PER) {
        len += 1 + name.len();
    } else if times == 0 {
        return None;
    }
    is_boundary(&rest[len..]).then_some(len)
}

/// Whether a number without a unit is a measured value.
fn is_value(number: &str, after: &str, numbers: &Numbers, word: &str) -> bool {
    if !is_boundary(after) || after.starts_with(['-', '^', '*', '\'']) || after.starts_with("/") {
        return false;
    }
    if let Some((first, second)) = numbers.ratio {
        let is_pressure = (60..=280).contains(&first) && (20..=160).contains(&second) && first > second;
        // A score, `8/10`, or a fraction, `1/2`; after a capitalised word it can be part of a name: `HPV 16/18`.
        let is_part = first <= second && second <= 100 && !word.starts_with(char::is_uppercase);
        return is_pressure || is_part;
    }
    let is_name = || NAMES.contains(&word);
    if numbers.has_point {
        return !is_name() && !number.starts_with('.') || word.is_empty();
    }
    let Some(whole) = numbers.whole else {
        return false;
    };
    // `K+ 4` matches as `K`.
    ANALYTES
        .binary_search_by_key(&word, |row| row.0)
        .is_ok_and(|row| (ANALYTES[row].1..=ANALYTES[row].2).contains(&whole))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_sorted() {
        for list in [&DOSES[..], &MEASURES, &PER, &ROUTES, &FREQUENCIES, &DOTTED, &AFTER_DOSES, &FORMS] {
            assert!(list.is_sorted(), "{list:?}");
        }
        assert!(FREQUENCIES.iter().all(|name| name.len() <= MAX_FREQUENCY));
        assert!(ANALYTES.is_sorted() && CONCENTRATIONS.is_sorted());
    }
}
