//! Rows of RRF tables: cells separated by `|`, concept ids (CUIs), sets of CUIs, languages.

use crate::input::Input;
use crate::numbers::counted;
use crate::{Error, Result};

/// Calls `take` with the line number and the `N` cells of every row; each row ends with `|`.
pub(super) fn each<const N: usize>(input: &mut Input, mut take: impl FnMut(Row<'_, N>) -> Result<()>) -> Result<()> {
    let path = input.path().to_path_buf();
    while let Some((number, line)) = input.next_line()? {
        if line.is_empty() {
            return Err(Error::parse(&path, number, "the row is empty"));
        }
        let mut cells = [""; N];
        let mut n_cells = 0;
        let row = line.strip_suffix('|').unwrap_or(line);
        for cell in row.split('|') {
            if n_cells < N {
                cells[n_cells] = cell;
            }
            n_cells += 1;
        }
        if n_cells != N || !line.ends_with('|') {
            let end = if line.ends_with('|') { "" } else { " and no `|` at the end" };
            let error = Error::parse(
                &path,
                number,
                format!("{}{end}; expected {N}, each followed by `|`", counted(n_cells as u64, "column")),
            );
            return Err(error.with_hint("use unmodified RRF files from MetamorphoSys, without a header line"));
        }
        take(Row { cells, path: &path, number })?;
    }
    Ok(())
}

/// A row and its location.
pub(super) struct Row<'a, const N: usize> {
    pub cells: [&'a str; N],
    path: &'a std::path::Path,
    number: u64,
}

impl<const N: usize> Row<'_, N> {
    /// The CUI in a column as a number: `C0000039` is 39.
    pub fn cui(&self, column: usize) -> Result<Cui> {
        let cell = self.cells[column];
        let digits = cell.strip_prefix('C').filter(|digits| (7..=8).contains(&digits.len()));
        match digits.filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit())).map(str::parse) {
            Some(Ok(number)) => Ok(Cui { number, n_digits: digits.map_or(7, str::len) }),
            _ => Err(self.error(format!("`{}` is not a concept id such as C0000039", cell.escape_debug()))),
        }
    }

    /// An error at this row.
    pub fn error(&self, message: String) -> Error {
        Error::parse(self.path, self.number, message)
    }
}

/// A CUI: its number and its number of digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Cui {
    pub number: u32,
    n_digits: usize,
}

impl Cui {
    /// The displayed id with prefix.
    pub fn id(self, prefix: &str) -> String {
        format!("{prefix}:C{:0width$}", self.number, width = self.n_digits)
    }
}

/// A bit set of CUIs: at most 12.5 MB for eight digits.
#[derive(Debug, Default)]
pub(super) struct CuiSet {
    words: Vec<u64>,
}

impl CuiSet {
    /// Adds a CUI. Returns whether it is new.
    pub fn insert(&mut self, cui: Cui) -> bool {
        let (word, bit) = (cui.number as usize / 64, 1 << (cui.number % 64));
        if word >= self.words.len() {
            self.words.resize(word + 1, 0);
        }
        let new = self.words[word] & bit == 0;
        self.words[word] |= bit;
        new
    }

    /// Whether the set contains a CUI.
    pub fn contains(&self, cui: Cui) -> bool {
        self.words.get(cui.number as usize / 64).is_some_and(|word| word & (1 << (cui.number % 64)) != 0)
    }
}

/// Languages in UMLS (ISO 639-2/B), with their ISO 639-1 and ISO 639-2/T codes.
const LANGUAGES: &[(&str, &[&str])] = &[
    ("ARA", &["AR"]),
    ("BAQ", &["EU", "EUS"]),
    ("BUL", &["BG"]),
    ("CHI", &["ZH", "ZHO"]),
    ("CZE", &["CS", "CES"]),
    ("DAN", &["DA"]),
    ("DUT", &["NL", "NLD"]),
    ("ENG", &["EN"]),
    ("EST", &["ET"]),
    ("FIN", &["FI"]),
    ("FRE", &["FR", "FRA"]),
    ("GER", &["DE", "DEU"]),
    ("GRE", &["EL", "ELL"]),
    ("HEB", &["HE"]),
    ("HUN", &["HU"]),
    ("ICE", &["IS", "ISL"]),
    ("ITA", &["IT"]),
    ("JPN", &["JA"]),
    ("KOR", &["KO"]),
    ("LAV", &["LV"]),
    ("LIT", &["LT"]),
    ("NOR", &["NO"]),
    ("POL", &["PL"]),
    ("POR", &["PT"]),
    ("RUM", &["RO", "RON"]),
    ("RUS", &["RU"]),
    ("SCR", &["HR", "HRV"]),
    ("SLO", &["SK", "SLK"]),
    ("SPA", &["ES"]),
    ("SWE", &["SV"]),
    ("TUR", &["TR"]),
    ("UKR", &["UK"]),
];

/// The requested languages as in the `LAT` column; English by default.
pub(super) fn languages(wanted: &[String]) -> Result<Vec<String>> {
    if wanted.is_empty() {
        return Ok(vec!["ENG".to_owned()]);
    }
    wanted.iter().map(|language| code(language)).collect()
}

/// Whether two language codes mean the same language: `de`, `GER` and `deu`.
pub(super) fn same_language(one: &str, other: &str) -> bool {
    one.eq_ignore_ascii_case(other) || matches!((code(one), code(other)), (Ok(one), Ok(other)) if one == other)
}

fn code(language: &str) -> Result<String> {
    let upper = language.to_ascii_uppercase();
    let known = LANGUAGES.iter().find(|(code, others)| *code == upper || others.contains(&upper.as_str()));
    match known {
        Some((code, _)) => Ok((*code).to_owned()),
        None if upper.len() == 3 => Ok(upper),
        None => {
            let error = Error::not_found(format!("unknown language `{language}`"));
            Err(error.with_hint("use three letters as in the LAT column of MRCONSO, such as ENG"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn languages_have_one_code() {
        let given = ["en", "ENG", "fra", "de", "xyz"].map(str::to_owned);
        assert_eq!(languages(&given).unwrap(), ["ENG", "ENG", "FRE", "GER", "XYZ"]);
        assert_eq!(languages(&[]).unwrap(), ["ENG"]);
        assert!(languages(&["q".to_owned()]).is_err());
    }

    #[test]
    fn sets_contain_inserted_ids() {
        let cui = |number| Cui { number, n_digits: 7 };
        let mut set = CuiSet::default();
        assert!(set.insert(cui(130)));
        assert!(!set.insert(cui(130)));
        assert!(set.contains(cui(130)) && !set.contains(cui(131)) && !set.contains(cui(9_999_999)));
        assert_eq!(cui(39).id("UMLS"), "UMLS:C0000039");
    }
}
