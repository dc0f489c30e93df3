//! Dates, times of day, durations and ages.

use super::{NonMentionKind, blanks, is_boundary, run_of};

/// Month names and abbreviations in lower case. Sorted.
#[rustfmt::skip]
const MONTHS: [&str; 24] = [
    "apr", "april", "aug", "august", "dec", "december", "feb", "february", "jan", "january", "jul", "july", "jun", "june",
    "mar", "march", "may", "nov", "november", "oct", "october", "sep", "sept", "september",
];

/// Units of duration in lower case. Sorted.
#[rustfmt::skip]
const DURATIONS: [&str; 24] = [
    "day", "days", "hour", "hours", "hr", "hrs", "min", "mins", "minute", "minutes", "mo", "month", "months", "mos", "sec",
    "second", "seconds", "secs", "week", "weeks", "wk", "wks", "year", "years",
];

/// Words before two numbers with a slash that are a date.
#[rustfmt::skip]
const BEFORE_DATES: [&str; 14] = [
    "after", "before", "by", "dated", "from", "of", "on", "since", "starting", "thru", "till", "to", "until", "through",
];

/// Words before a number that is a year.
const BEFORE_YEARS: [&str; 10] = ["in", "since", "of", "from", "until", "to", "circa", "around", "during", "before"];

/// Length in bytes and kind of the date, time, duration or age at the start of `rest`; `word` precedes it.
pub(super) fn time(rest: &str, word: &str) -> Option<(usize, NonMentionKind)> {
    if rest.starts_with(char::is_alphabetic) {
        return named_date(rest)
            .map(|len| (len, NonMentionKind::Date))
            .or_else(|| named_age(rest).map(|len| (len, NonMentionKind::Age)))
            .or_else(|| repeated(rest).map(|len| (len, NonMentionKind::Time)));
    }
    let digits = n_digits(rest);
    if digits == 0 || digits > 4 {
        return None;
    }
    let age = age(rest, digits, word).map(|len| (len, NonMentionKind::Age));
    age.or_else(|| date(rest, digits, word).map(|len| (len, NonMentionKind::Date)))
        .or_else(|| clock(rest, digits).or_else(|| duration(rest, digits)).map(|len| (len, NonMentionKind::Time)))
}

fn n_digits(rest: &str) -> usize {
    rest.bytes().take(5).take_while(u8::is_ascii_digit).count()
}

fn value(digits: &str) -> u32 {
    digits.parse().unwrap_or(0)
}

/// `67 y/o M`, `67-year-old`, `45F`, `12 years of age`, and `50` after `aged`.
fn age(rest: &str, digits: usize, word: &str) -> Option<usize> {
    if digits > 3 || value(&rest[..digits]) > 120 {
        return None;
    }
    let after = &rest[digits..];
    let is_aged =
        matches!(word.to_ascii_lowercase().as_str(), "aged" | "age") && !after.starts_with(['.', '/', '-', '%']);
    if let Some(sex) = sex(after).filter(|_| is_sex(after)) {
        return Some(digits + sex);
    }
    let gap = if after.starts_with('-') { 1 } else { blanks(after) };
    let unit = unit_of_age(&after[gap..]);
    match unit {
        Some(unit) => {
            let end = digits + gap + unit;
            let after = &rest[end..];
            let sex = sex(&after[blanks(after)..]).filter(|_| blanks(after) > 0 || after.starts_with('/'));
            Some(end + sex.map_or(0, |len| blanks(after) + len))
        }
        None => (is_aged && is_boundary(after)).then_some(digits),
    }
}

/// Length in bytes of a letter for the sex at the start of `rest`.
fn sex(rest: &str) -> Option<usize> {
    let is_sex = rest.starts_with(['M', 'F', 'm', 'f']) && is_boundary(&rest[1..]);
    (is_sex && !rest[1..].starts_with(['-', '/', '\'', '.']) || rest == "M." || rest == "F.").then_some(1)
}

/// Whether a letter after a number means the sex: `45F with`, `45M, here`. `18F` can be fluorine, `40M` a number.
fn is_sex(after: &str) -> bool {
    const NEXT: [&str; 22] = [
        "a",
        "admitted",
        "and",
        "brought",
        "c",
        "comes",
        "complaining",
        "found",
        "h",
        "here",
        "hx",
        "in",
        "is",
        "p",
        "pmh",
        "presented",
        "presenting",
        "presents",
        "s",
        "w",
        "who",
        "with",
    ];
    if !after.starts_with(['M', 'F']) {
        return false;
    }
    let rest = &after[1..];
    let next = rest.strip_prefix(',').unwrap_or(rest);
    let next = &next[blanks(next)..];
    rest.is_empty() || rest.starts_with(['\n', '\r', ',']) || NEXT.binary_search(&&next[..run_of(next)]).is_ok()
}

/// `y/o`, `yo`, `y.o.`, `year-old`, `years old`, `month old`, `years of age`.
fn unit_of_age(rest: &str) -> Option<usize> {
    #[rustfmt::skip]
    const UNITS: [&str; 13] =
        ["y/o", "y.o.", "y.o", "yo", "yoa", "yrs old", "yr old", "yr-old", "yof", "yom", "m/o", "mo old", "d/o"];
    const WORDS: [&str; 9] = ["years", "year", "months", "month", "weeks", "week", "days", "day", "yrs"];
    let head = &rest[..rest.floor_char_boundary(16)];
    let lower = head.to_ascii_lowercase();
    let unit = UNITS.iter().filter(|unit| lower.starts_with(**unit) && is_boundary(&rest[unit.len()..]));
    if let Some(unit) = unit.max_by_key(|unit| unit.len()) {
        return Some(unit.len());
    }
    let word = WORDS.iter().find(|word| lower.starts_with(**word))?;
    let ends = ["-old", " old", " of age", "-of-age"];
    let end = ends.iter().find(|end| lower[word.len()..].starts_with(**end))?;
    let len = word.len() + end.len();
    is_boundary(&rest[len..]).then_some(len)
}

/// `F/45`.
fn named_age(rest: &str) -> Option<usize> {
    let digits = n_digits(rest.strip_prefix(['M', 'F'])?.strip_prefix('/')?);
    let after = rest.get(2 + digits..)?;
    let is_age = (1..=3).contains(&digits) && value(&rest[2..2 + digits]) <= 120;
    (is_age && is_boundary(after) && !after.starts_with(['/', '-', '.'])).then_some(2 + digits)
}

/// `3/4/2019`, `2020-01-31`, `31.12.2019`, `12 March 2020`, `10/12` after `on`, `1998` after `in`.
fn date(rest: &str, digits: usize, word: &str) -> Option<usize> {
    let after = &rest[digits..];
    let first = value(&rest[..digits]);
    let is_year = |text: &str| matches!(text.len(), 4) && (text.starts_with("19") || text.starts_with("20"));
    if let Some(sign) = after.chars().next().filter(|sign| matches!(sign, '/' | '-' | '.')) {
        let second = n_digits(&after[1..]);
        let end = digits + 1 + second;
        let last = rest[end..].strip_prefix(sign).map_or(0, n_digits);
        let ends = |end: usize| is_boundary(&rest[end..]) && !rest[end..].starts_with(['-', '/']);
        let (a, b) = (&rest[..digits], &rest[digits + 1..end]);
        let is_day = |text: &str| (1..=2).contains(&text.len()) && (1..=31).contains(&value(text));
        let end_all = end + 1 + last;
        if last > 0 && ends(end_all) {
            let c = &rest[end + 1..end_all];
            let is_whole = is_day(a) && is_day(b) && (is_year(c) || (c.len() == 2 && sign != '.'));
            return (is_whole || (is_year(a) && is_day(b) && is_day(c))).then_some(end_all);
        }
        let is_short = sign == '/' && last == 0 && ends(end) && is_day(a) && (is_day(b) || is_year(b));
        let is_introduced = BEFORE_DATES.contains(&word.to_ascii_lowercase().as_str()) || is_year(b);
        if is_short && is_introduced && (value(a) <= 12 || value(b) <= 12) {
            return Some(end);
        }
    }
    let gap = if after.starts_with('-') { 1 } else { ordinal(after) };
    let gap = gap + blanks(&after[gap..]);
    if (1..=31).contains(&first) && gap > 0 && month(&after[gap..]).is_some() {
        let end = digits + gap + month(&after[gap..])?;
        let next = &rest[end..];
        let gap = next.bytes().take(2).take_while(|byte| matches!(byte, b' ' | b'-' | b',')).count();
        let year = n_digits(&next[gap..]);
        let with_year = end + gap + year;
        let is_dated = gap > 0 && (is_year(&next[gap..gap + year]) || (year == 2 && next.starts_with('-')));
        return Some(if is_dated && is_boundary(&rest[with_year..]) { with_year } else { end });
    }
    let is_introduced = is_year(&rest[..digits]) && BEFORE_YEARS.contains(&word.to_ascii_lowercase().as_str());
    (is_introduced && is_boundary(after) && !after.starts_with(['-', '/', '.'])
        || is_introduced && after.starts_with(". "))
    .then_some(digits)
}

/// Length in bytes of `st`, `nd`, `rd` or `th`.
fn ordinal(rest: &str) -> usize {
    let is_ordinal = ["st", "nd", "rd", "th"].iter().any(|end| rest.starts_with(end)) && is_boundary(&rest[2..]);
    if is_ordinal { 2 } else { 0 }
}

/// Length in bytes of a capitalised month name.
fn month(rest: &str) -> Option<usize> {
    let word = &rest[..run_of(rest)];
    let is_name = word.starts_with(char::is_uppercase) && word.chars().skip(1).all(char::is_lowercase);
    (is_name && MONTHS.binary_search(&word.to_ascii_lowercase().as_str()).is_ok()).then_some(word.len())
}

/// `March 12, 2020`, `Mar 2020`, `May 5`. `Oct 4` can be a transcription factor.
fn named_date(rest: &str) -> Option<usize> {
    let name = month(rest)?;
    let mut at = name + usize::from(rest[name..].starts_with('.'));
    at += blanks(&rest[at..]);
    let digits = n_digits(&rest[at..]);
    let number = &rest[at..at + digits];
    if at == name || digits == 0 {
        return None;
    }
    let is_year = |text: &str| text.len() == 4 && (text.starts_with("19") || text.starts_with("20"));
    let end = at + digits;
    if is_year(number) {
        return is_boundary(&rest[end..]).then_some(end);
    }
    let end = end + ordinal(&rest[end..]);
    if digits > 2 || !(1..=31).contains(&value(number)) || !is_boundary(&rest[end..]) {
        return None;
    }
    let gap = rest[end..].bytes().take(2).take_while(|byte| matches!(byte, b',' | b' ')).count();
    let year = n_digits(&rest[end + gap..]);
    if gap > 0 && is_year(&rest[end + gap..end + gap + year]) && is_boundary(&rest[end + gap + year..]) {
        return Some(end + gap + year);
    }
    let is_factor = rest.starts_with("Oct ") && value(number) <= 11;
    (!is_factor && !rest[end..].starts_with(['-', '/', '.']) || rest[end..].starts_with(". ")).then_some(end)
}

/// `10:30`, `10:30 am`, `8pm`.
fn clock(rest: &str, digits: usize) -> Option<usize> {
    if digits > 2 || value(&rest[..digits]) > 23 {
        return None;
    }
    let mut end = digits;
    let mut has_minutes = false;
    if let Some(minutes) = rest[end..].strip_prefix(':') {
        has_minutes = n_digits(minutes) == 2 && value(&minutes[..2]) < 60;
        if !has_minutes {
            return None;
        }
        end += 3;
        if rest[end..].strip_prefix(':').is_some_and(|seconds| n_digits(seconds) == 2) {
            end += 3;
        }
    }
    let after = &rest[end..];
    let half = &after[blanks(after)..];
    let len =
        ["a.m.", "p.m.", "am", "pm", "AM", "PM"].iter().find(|name| half.starts_with(**name)).map(|name| name.len());
    match len.filter(|len| is_boundary(&half[*len..])) {
        Some(len) => Some(end + blanks(after) + len),
        None => (has_minutes && is_boundary(after) && !after.starts_with([':', '-'])).then_some(end),
    }
}

/// `3 days`, `7-day`, `5-10 min`, `2 weeks`.
fn duration(rest: &str, digits: usize) -> Option<usize> {
    let mut end = digits;
    if rest[end..].starts_with(['-', '–', '.']) {
        let sign = rest[end..].chars().next().map_or(0, char::len_utf8);
        let more = n_digits(&rest[end + sign..]);
        end += if more > 0 { sign + more } else { 0 };
    }
    let after = &rest[end..];
    let gap = if after.starts_with('-') { 1 } else { blanks(after) };
    let unit = &after[gap..][..run_of(&after[gap..])];
    let is_hour = unit == "h" && gap < 2 && !after.starts_with('-');
    let is_unit = is_hour || DURATIONS.binary_search(&unit.to_ascii_lowercase().as_str()).is_ok();
    (is_unit && !after[gap + unit.len()..].starts_with('/')).then_some(end + gap + unit.len())
}

/// `x2 weeks`, `x 3 days`.
fn repeated(rest: &str) -> Option<usize> {
    let after = rest.strip_prefix(['x', 'X'])?;
    let gap = blanks(after);
    let digits = n_digits(&after[gap..]);
    if digits == 0 || digits > 3 {
        return None;
    }
    duration(&after[gap..], digits).map(|len| 1 + gap + len)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_sorted() {
        assert!(MONTHS.is_sorted() && DURATIONS.is_sorted());
    }
}
