//! Text preprocessing of BioSyn (Sung et al. 2020), for figures comparable with published ones.
//!
//! A query is processed by abbreviation expansion, splitting of composite mentions, lower-casing, typo correction and
//! removal of punctuation; a dictionary name only by lower-casing and removal of punctuation. For evaluation only: the
//! linkers use [`normalise`](crate::text::normalise) and [`composite`](crate::text::composite).
//!
//! ```
//! use canonym_core::text::biosyn::normalise_name;
//! assert_eq!(normalise_name("Ataxia-Telangiectasia (A-T)"), "ataxia telangiectasia a t");
//! ```

use std::collections::{HashMap, HashSet};
use std::path::Path;

use crate::{Error, Result};

/// Maximum size of a typo file in bytes.
const MAX_TYPO_FILE: u64 = 16 << 20;

/// Maximum number of passes of abbreviation expansion, because expansions can contain abbreviations.
const MAX_PASSES: usize = 16;

/// Maximum size of an expanded text in bytes.
const MAX_EXPANDED: usize = 1 << 16;

/// Settings of query preprocessing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BiosynConfig {
    /// Tokens to replace, typo to correction; see [`read_typos`].
    pub typos: HashMap<String, String>,
    /// Whether to split composite mentions.
    pub resolve_composites: bool,
}

/// A preprocessed query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Query {
    /// The mention; the parts of a composite are joined by `|`.
    pub text: String,
    /// The ids without prefixes, joined as in the source.
    pub ids: String,
}

/// Reads lines `typo||correction`; empty lines are skipped.
pub fn read_typos(path: &Path) -> Result<HashMap<String, String>> {
    let size = std::fs::metadata(path).map_err(|source| Error::io("read", path, source))?.len();
    if size > MAX_TYPO_FILE {
        return Err(Error::limit(
            path,
            format!("the file of misspellings has {size} bytes; the limit is {MAX_TYPO_FILE}"),
        ));
    }
    let bytes = std::fs::read(path).map_err(|source| Error::io("read", path, source))?;
    let mut typos = HashMap::new();
    for (row, line) in bytes.split(|&byte| byte == b'\n').enumerate() {
        let n_line = row as u64 + 1;
        let line = std::str::from_utf8(line).map_err(|_| Error::parse(path, n_line, "invalid UTF-8"))?.trim();
        if line.is_empty() {
            continue;
        }
        let (wrong, right) = line.split_once("||").unwrap_or((line, ""));
        if wrong.is_empty() || right.is_empty() || right.contains("||") {
            let message = format!("expected `wrong||right`, found `{}`", line.chars().take(80).collect::<String>());
            return Err(Error::parse(path, n_line, message).with_hint("the format is one `wrong||right` per line"));
        }
        typos.insert(wrong.to_owned(), right.to_owned());
    }
    Ok(typos)
}

/// Normalises a dictionary name: lower case, runs of white space and ASCII punctuation replaced by one space.
pub fn normalise_name(name: &str) -> String {
    without_punctuation(&name.to_lowercase(), |c| c.is_ascii_punctuation())
}

/// Normalises a query: lower case, typos corrected, punctuation except `|` removed.
pub fn normalise_query(query: &str, typos: &HashMap<String, String>) -> String {
    let lower = query.to_lowercase();
    let tokens: Vec<&str> =
        lower.split_whitespace().map(|token| typos.get(token).map_or(token, String::as_str)).collect();
    without_punctuation(&tokens.join(" "), |c| c.is_ascii_punctuation() && c != '|')
}

/// All steps for a mention and its ids, with the abbreviations of its document.
pub fn preprocess_query(
    mention: &str,
    ids: &str,
    abbreviations: &HashMap<String, String>,
    config: &BiosynConfig,
) -> Query {
    let expanded = replace_abbreviations(mention, abbreviations);
    let kept = without_mixed_omim(ids);
    let n_ids = kept.split(['|', '+']).count();
    let parts = if config.resolve_composites && n_ids > 1 { split_composite_query(&expanded, n_ids) } else { None };
    let text = parts.map_or(expanded, |parts| parts.join("|"));
    Query { text: normalise_query(&text, &config.typos), ids: kept.replace("OMIM:", "").replace("MESH:", "") }
}

/// Expands short forms that are whole tokens, repeatedly until nothing changes; cycles and growth are limited.
///
/// Each part of a token with slashes is expanded; a trailing comma of other tokens is ignored.
pub fn replace_abbreviations(text: &str, abbreviations: &HashMap<String, String>) -> String {
    let mut current = text.to_owned();
    let mut seen = HashSet::new();
    for _ in 0..MAX_PASSES {
        let tokens: Vec<String> = current.split_whitespace().map(|token| replace_token(token, abbreviations)).collect();
        let next = tokens.join(" ");
        if next == current || next.len() > MAX_EXPANDED || !seen.insert(next.clone()) {
            break;
        }
        current = next;
    }
    current
}

fn replace_token(token: &str, abbreviations: &HashMap<String, String>) -> String {
    let long = |short: &str| {
        let long = abbreviations.get(short).map(String::as_str);
        // A long form that contains its short form would be expanded forever.
        long.filter(|long| !long.split(|c: char| c.is_whitespace() || c == '/' || c == ',').any(|word| word == short))
            .unwrap_or(short)
            .to_owned()
    };
    if token.contains('/') {
        let parts: Vec<String> = token.split('/').map(long).collect();
        return parts.join("/");
    }
    match token.strip_suffix(',') {
        Some(bare) => long(bare) + ",",
        None => long(token),
    }
}

/// Removes OMIM ids if there are others.
fn without_mixed_omim(ids: &str) -> String {
    let separator = if ids.contains('|') { "|" } else { "+" };
    let all: Vec<&str> = ids.split(['|', '+']).map(str::trim).collect();
    let others: Vec<&str> = all.iter().copied().filter(|id| !id.starts_with("OMIM:")).collect();
    if others.is_empty() || others.len() == all.len() { ids.trim().to_owned() } else { others.join(separator) }
}

/// The parts of a composite mention, if the first matching pattern yields as many as there are ids.
pub fn split_composite_query(mention: &str, n_ids: usize) -> Option<Vec<String>> {
    if n_ids < 2 {
        return None;
    }
    let one_a_word = || Some(mention.split_whitespace().map(str::to_owned).collect());
    let parts =
        left_headed(mention).or_else(|| right_headed(mention)).or_else(|| around_slash(mention)).or_else(one_a_word)?;
    (parts.len() == n_ids).then_some(parts)
}

/// "cancer of the breast and the ovary": a word, "of", and two conjuncts.
fn left_headed(mention: &str) -> Option<Vec<String>> {
    let (head, rest) = mention.split_once(" of ")?;
    let rest = rest.strip_prefix("both ").unwrap_or(rest);
    let rest = rest.strip_prefix("the ").unwrap_or(rest);
    let (at, length) = last_of(rest, &[" and ", " or "])?;
    let (left, right) = (&rest[..at], &rest[at + length..]);
    let right = right.strip_prefix("the ").unwrap_or(right);
    let fits = is_word(head) && is_words(left) && is_words(right);
    fits.then(|| vec![format!("{head} of {left}"), format!("{head} of {right}")])
}

/// "breast, ovarian and lung cancer": modifiers of one head.
fn right_headed(mention: &str) -> Option<Vec<String>> {
    let (at, length) = last_of(mention, &[" and/or ", " and ", " or "])?;
    let rest = &mention[at + length..];
    let article = if rest.starts_with("the ") { 4 } else { 0 };
    let space = article + rest[article..].find(' ')?;
    let (last, stem) = (&rest[..space], rest[space + 1..].trim());
    let prefixes = mention[..at].trim_end_matches(',');
    if stem.is_empty() || !is_word(&last[article..]) || !prefixes.split(',').all(is_words) {
        return None;
    }
    // "p1 or a and b HEAD": the word before the last conjunction is a modifier of its own.
    let inner =
        last_of(prefixes, &[" and/or ", " and ", " or "]).filter(|(at, length)| is_word(&prefixes[at + length..]));
    let (outer, middle) =
        inner.map_or((prefixes, None), |(at, length)| (&prefixes[..at], Some(&prefixes[at + length..])));
    let all = outer.split(',').chain(middle).map(str::trim).filter(|prefix| !prefix.is_empty()).chain([last]);
    Some(all.map(|prefix| format!("{prefix} {stem}")).collect())
}

/// "cleft lip/palate": the words before the slashed word belong to both sides.
fn around_slash(mention: &str) -> Option<Vec<String>> {
    let (left, right) = mention.split_once('/')?;
    let (before, first) = left.rsplit_once(' ').map_or(("", left), |(before, first)| (before, first));
    let fits = is_word(first) && is_words(right) && (before.is_empty() || is_words(before)) && first != "and";
    fits.then(|| [first, right].iter().map(|part| format!("{before} {part}").trim().to_owned()).collect())
}

/// Position and length of the last separator; of overlapping ones the first listed wins.
fn last_of(text: &str, separators: &[&str]) -> Option<(usize, usize)> {
    separators
        .iter()
        .filter_map(|separator| Some((text.rfind(separator)?, separator.len())))
        .max_by_key(|found| found.0)
}

/// A word of letters and hyphens: the published patterns do not match digits.
fn is_word(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphabetic() || c == '-')
}

fn is_words(text: &str) -> bool {
    !text.trim().is_empty() && text.split_whitespace().all(is_word)
}

fn without_punctuation(text: &str, is_punctuation: impl Fn(char) -> bool) -> String {
    let words = text.split(|c: char| c.is_whitespace() || is_punctuation(c)).filter(|word| !word.is_empty());
    words.collect::<Vec<&str>>().join(" ")
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use proptest::prelude::*;

    use super::*;

    fn map(pairs: &[(&str, &str)]) -> HashMap<String, String> {
        pairs.iter().map(|&(from, to)| (from.to_owned(), to.to_owned())).collect()
    }

    fn check_composite(mention: &str, n_ids: usize, expect: Expect) {
        expect.assert_eq(&split_composite_query(mention, n_ids).map_or("-".to_owned(), |parts| parts.join("|")));
    }

    #[test]
    fn names_lose_case_and_punctuation() {
        assert_eq!(normalise_name("Ataxia-Telangiectasia (A-T)"), "ataxia telangiectasia a t");
        assert_eq!(normalise_name("Parkinson's disease"), "parkinson s disease");
        assert_eq!(normalise_name("αβ T-cell"), "αβ t cell");
        assert_eq!(normalise_name("breast|ovarian cancers"), "breast ovarian cancers");
    }

    #[test]
    fn queries_keep_bars_and_correct_whole_tokens() {
        let typos = map(&[("tumour", "tumor")]);
        assert_eq!(normalise_query("Tumour, NOS", &typos), "tumour nos");
        assert_eq!(normalise_query("tumour nos", &typos), "tumor nos");
        assert_eq!(normalise_query("breast|ovarian cancers", &typos), "breast|ovarian cancers");
    }

    #[test]
    fn abbreviations_are_replaced_by_token() {
        let long = map(&[("A-T", "ataxia telangiectasia"), ("BRCA", "breast cancer")]);
        assert_eq!(replace_abbreviations("A-T patients", &long), "ataxia telangiectasia patients");
        assert_eq!(replace_abbreviations("BRCA/A-T,", &long), "breast cancer/A-T,");
        assert_eq!(replace_abbreviations("A-T, a-t", &long), "ataxia telangiectasia, a-t");
    }

    #[test]
    fn cycles_of_abbreviations_end() {
        let long = map(&[("A", "B"), ("B", "A"), ("C", "C C"), ("D", "E E"), ("E", "D D")]);
        assert_eq!(replace_abbreviations("C", &long), "C");
        assert!(replace_abbreviations("A", &long).len() == 1);
        assert!(replace_abbreviations("D", &long).len() <= MAX_EXPANDED);
    }

    #[test]
    fn composites_split_into_as_many_parts_as_ids() {
        check_composite("breast and ovarian cancer", 2, expect!["breast cancer|ovarian cancer"]);
        check_composite("breast and ovarian cancer", 1, expect!["-"]);
        check_composite("breast and ovarian cancer", 3, expect!["-"]);
        check_composite("cancer of the breast and the ovary", 2, expect!["cancer of breast|cancer of ovary"]);
        check_composite("skin, bone, and lung cancer", 3, expect!["skin cancer|bone cancer|lung cancer"]);
        check_composite("skin bone and lung cancer", 2, expect!["skin bone cancer|lung cancer"]);
        check_composite("skin or bone and lung cancer", 3, expect!["skin cancer|bone cancer|lung cancer"]);
        check_composite("skin and/or lung cancer", 2, expect!["skin cancer|lung cancer"]);
        check_composite("cleft lip/palate", 2, expect!["cleft lip|cleft palate"]);
        check_composite("renal hamartomas", 2, expect!["renal|hamartomas"]);
        check_composite("C6 and C7 deficiency", 2, expect!["-"]);
    }

    #[test]
    fn omim_ids_next_to_others_are_dropped() {
        let config = BiosynConfig { resolve_composites: true, ..BiosynConfig::default() };
        let query = |mention: &str, ids: &str| {
            let query = preprocess_query(mention, ids, &map(&[("BOC", "breast and ovarian cancer")]), &config);
            format!("{} # {}", query.text, query.ids)
        };
        expect!["cat eye syndrome # C1"].assert_eq(&query("Cat-eye syndrome", "C1|OMIM:115470"));
        expect!["breast cancer|ovarian cancer # D1|D2"].assert_eq(&query("BOC", "MESH:D1|MESH:D2"));
        expect!["breast cancer|ovarian cancer # D1+D2"].assert_eq(&query("BOC", "D1+D2"));
    }

    #[test]
    fn broken_typo_lines_are_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("typos.txt");
        std::fs::write(&path, "tumour||tumor\r\n\nabc\n").unwrap();
        let error = read_typos(&path).unwrap_err();
        assert!(error.to_string().ends_with("typos.txt:3: expected `wrong||right`, found `abc`"), "{error}");
        assert_eq!(error.hint(), Some("the format is one `wrong||right` per line"));
        std::fs::write(&path, b"tumour||tumor\n\xff||x").unwrap();
        assert!(read_typos(&path).unwrap_err().to_string().ends_with(":2: invalid UTF-8"));
        std::fs::write(&path, "tumour||tumor\r\n").unwrap();
        assert_eq!(read_typos(&path).unwrap(), map(&[("tumour", "tumor")]));
    }

    proptest! {
        #[test]
        fn normalising_twice_changes_nothing(text in "(.|[a-zA-Z ,/|-]){0,60}", n_ids in 0usize..4) {
            let once = normalise_name(&text);
            prop_assert_eq!(normalise_name(&once), once.clone());
            split_composite_query(&text, n_ids);
            replace_abbreviations(&text, &map(&[("a", "b c"), ("b", "a")]));
        }
    }
}
