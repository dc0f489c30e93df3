//! Numbers as they are written: probabilities with four decimals, counts with thousands separators and nouns, and sizes in bytes.

/// A number with thousands separators.
pub fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A count with its noun: `1 file`, `2 files`.
pub fn counted(number: u64, noun: &str) -> String {
    let end = if number == 1 { "" } else { "s" };
    format!("{} {noun}{end}", thousands(number))
}

/// A phrase for things that are counted, in the singular if there is one: `names changed` becomes `name changed`. The first word that ends in
/// an `s` is the noun.
pub fn singular_if_one(number: u64, plural: &str) -> String {
    let words = plural.split_inclusive([' ', ',']);
    let noun = words.clone().position(|word| word.trim_end_matches([' ', ',']).ends_with('s'));
    let word = |(row, word): (usize, &str)| {
        let stem = word.trim_end_matches([' ', ',']);
        let end = &word[stem.len()..];
        match stem.strip_suffix("ies") {
            _ if number != 1 || Some(row) != noun => word.to_owned(),
            Some(stem) => format!("{stem}y{end}"),
            None => format!("{}{end}", &stem[..stem.len() - 1]),
        }
    };
    words.enumerate().map(word).collect()
}

/// A probability or score with four decimals, as it is written everywhere: this hides floating-point noise.
pub fn rounded(value: impl Into<f64>) -> f64 {
    // The sum makes -0 a 0.
    (value.into() * 1e4).round() / 1e4 + 0.0
}

/// A size in bytes, KiB, MiB, GiB or TiB: `1.5 MiB`.
pub fn bytes(number: u64) -> String {
    const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
    if number < 1024 {
        return format!("{number} bytes");
    }
    let mut value = number as f64 / 1024.0;
    let mut unit = 0;
    while value >= 1023.95 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    format!("{value:.1} {}", UNITS[unit])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_separators_and_units() {
        assert_eq!([0, 999, 1000, 1_234_567].map(thousands), ["0", "999", "1,000", "1,234,567"]);
        assert_eq!(
            [0, 1023, 1024, 1_048_575, 3 << 30].map(bytes),
            ["0 bytes", "1023 bytes", "1.0 KiB", "1.0 MiB", "3.0 GiB"]
        );
    }

    #[test]
    fn the_noun_of_a_phrase_agrees_with_its_number() {
        let one = |plural| singular_if_one(1, plural);
        assert_eq!(one("concepts added"), "concept added");
        assert_eq!(one("preferred names changed"), "preferred name changed");
        assert_eq!(one("distinct names, ignoring case"), "distinct name, ignoring case");
        assert_eq!(one("source vocabularies"), "source vocabulary");
        assert_eq!(one("sheep"), "sheep");
        assert_eq!(singular_if_one(2, "names shared by several concepts"), "names shared by several concepts");
        assert_eq!(one("names shared by several concepts"), "name shared by several concepts");
    }

    #[test]
    fn scores_have_four_decimals() {
        assert_eq!([0.1_f32, 0.123_45, 1.0, -0.000_01].map(rounded), [0.1, 0.1235, 1.0, 0.0]);
        assert!(rounded(-1e-9_f64).is_sign_positive());
    }

    #[test]
    fn only_one_is_singular() {
        assert_eq!([0, 1, 2000].map(|n| counted(n, "file")), ["0 files", "1 file", "2,000 files"]);
    }
}
