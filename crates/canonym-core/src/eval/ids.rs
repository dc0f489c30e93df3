//! Sets of concept ids, and when a predicted set matches a gold set.
//!
//! Corpora write concepts in different ways: `D001260|208900`, `MESH:D001260 | OMIM:208900`, `D1+D2`, `-1`. They are
//! parsed into sets without the three prefixes that are optional in practice. Other prefixes, such as `DOID:`, are part
//! of the id.

use std::collections::HashSet;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Prefixes that some files omit.
const OPTIONAL_PREFIXES: [&str; 3] = ["MESH:", "OMIM:", "UMLS:"];

/// The ids of an annotation: no optional prefix, no white space, no duplicates, in source order. Empty means NIL.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct IdSet {
    // Private, because ids must be normalised, distinct, and not NIL.
    ids: Vec<String>,
}

impl IdSet {
    /// Parses ids from `texts`, each of which may contain several, separated by `|` or `+`.
    pub fn parse(texts: &[String]) -> IdSet {
        IdSet::collect(texts.iter().flat_map(|text| text.split(['|', '+'])))
    }

    /// Parses ids from a text such as `MESH:D001260|OMIM:208900`.
    pub fn parse_one(text: &str) -> IdSet {
        IdSet::collect(text.split(['|', '+']))
    }

    /// Parses semantic types separated by `,` or `|`, such as `T047,T191` in MedMentions.
    pub fn parse_types(text: &str) -> IdSet {
        let mut ids: Vec<String> = Vec::new();
        for part in text.split([',', '|']).map(str::trim).filter(|part| !part.is_empty()) {
            if !ids.iter().any(|id| id == part) {
                ids.push(part.to_owned());
            }
        }
        IdSet { ids }
    }

    fn collect<'a>(parts: impl Iterator<Item = &'a str>) -> IdSet {
        let mut ids: Vec<String> = Vec::new();
        for id in parts.filter_map(normalise) {
            if !ids.iter().any(|known| known == id) {
                ids.push(id.to_owned());
            }
        }
        IdSet { ids }
    }

    /// Whether the set is empty, which means NIL.
    pub fn is_nil(&self) -> bool {
        self.ids.is_empty()
    }

    /// Number of ids.
    pub fn len(&self) -> usize {
        self.ids.len()
    }

    /// Same as [`IdSet::is_nil`].
    pub fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }

    /// The first id in the source.
    pub fn first(&self) -> Option<&str> {
        self.ids.first().map(String::as_str)
    }

    /// The ids in source order.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.ids.iter().map(String::as_str)
    }

    /// The ids, sorted.
    pub fn sorted(&self) -> Vec<&str> {
        let mut ids: Vec<&str> = self.iter().collect();
        ids.sort_unstable();
        ids
    }

    /// Whether the set contains `id`, which is normalised.
    pub fn contains(&self, id: &str) -> bool {
        self.ids.iter().any(|known| known == id)
    }

    /// Whether both sets have a common id.
    pub fn intersects(&self, other: &IdSet) -> bool {
        self.ids.iter().any(|id| other.contains(id))
    }

    /// Whether `known`, a set of normalised ids, contains one of the ids.
    pub fn any_in(&self, known: &HashSet<String>) -> bool {
        self.ids.iter().any(|id| known.contains(id))
    }
}

impl fmt::Display for IdSet {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(if self.is_nil() { "NIL" } else { "" })?;
        formatter.write_str(&self.ids.join("|"))
    }
}

/// Normalised ids of a knowledge base or of a training corpus, for [`IdSet::any_in`].
pub fn known_ids<'a>(texts: impl IntoIterator<Item = &'a str>) -> HashSet<String> {
    texts.into_iter().flat_map(|text| text.split(['|', '+'])).filter_map(normalise).map(str::to_owned).collect()
}

/// When a predicted set of ids matches a gold set.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum IdPolicy {
    /// Both have a common id.
    #[default]
    Any,
    /// The prediction contains the first gold id.
    First,
    /// Both contain the same ids, in any order.
    Exact,
}

impl IdPolicy {
    /// Whether `predicted` matches `gold`; NIL never matches.
    pub fn matches(self, gold: &IdSet, predicted: &IdSet) -> bool {
        match self {
            IdPolicy::Any => gold.intersects(predicted),
            IdPolicy::First => gold.first().is_some_and(|id| predicted.contains(id)),
            IdPolicy::Exact => !gold.is_nil() && gold.sorted() == predicted.sorted(),
        }
    }
}

impl FromStr for IdPolicy {
    type Err = crate::Error;

    fn from_str(text: &str) -> crate::Result<IdPolicy> {
        match text {
            "any" => Ok(IdPolicy::Any),
            "first" => Ok(IdPolicy::First),
            "exact" => Ok(IdPolicy::Exact),
            _ => {
                Err(crate::Error::not_found(format!("unknown id policy `{text}`")).with_hint("use any, first or exact"))
            }
        }
    }
}

/// The id without optional prefix and white space, or `None` for the notations of NIL.
fn normalise(text: &str) -> Option<&str> {
    let mut id = text.trim();
    for prefix in OPTIONAL_PREFIXES {
        if let (Some(head), Some(tail)) = (id.get(..prefix.len()), id.get(prefix.len()..))
            && head.eq_ignore_ascii_case(prefix)
        {
            id = tail.trim();
            break;
        }
    }
    let nil = id.is_empty() || id == "-1" || id.starts_with("NIL") || id.eq_ignore_ascii_case("CUI-less");
    (!nil).then_some(id)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &[&str]) {
        assert_eq!(IdSet::parse_one(text).iter().collect::<Vec<_>>(), expected, "{text}");
    }

    #[test]
    fn ids_are_split_and_lose_optional_prefixes() {
        check("D001260|208900", &["D001260", "208900"]);
        check(" MESH:D001260 | omim:208900 ", &["D001260", "208900"]);
        check("Umls:C0000001+C0000002", &["C0000001", "C0000002"]);
        check("D1|D1", &["D1"]);
        check("DOID:4", &["DOID:4"]);
        check("MESH: D1", &["D1"]);
    }

    #[test]
    fn notations_of_nil_are_empty_sets() {
        for text in ["", " ", "-1", "NIL", "NIL0042", "CUI-less", "MESH:-1", "|", "-1|-1"] {
            assert!(IdSet::parse_one(text).is_nil(), "{text}");
        }
        check("-1|D1", &["D1"]);
        assert_eq!(IdSet::parse_one("-1").to_string(), "NIL");
    }

    #[test]
    fn a_character_across_the_prefix_length_is_no_panic() {
        check("MESHé", &["MESHé"]);
        check("MES\u{1F600}", &["MES\u{1F600}"]);
    }

    #[test]
    fn v7_policies_differ_on_several_gold_ids() {
        let gold = IdSet::parse_one("D1|D2");
        let second = IdSet::parse_one("D2");
        assert!(IdPolicy::Any.matches(&gold, &second));
        assert!(!IdPolicy::First.matches(&gold, &second));
        assert!(!IdPolicy::Exact.matches(&gold, &second));
        assert!(IdPolicy::Exact.matches(&gold, &IdSet::parse_one("D2|D1")));
    }

    #[test]
    fn nil_answers_nothing() {
        let nil = IdSet::default();
        for policy in [IdPolicy::Any, IdPolicy::First, IdPolicy::Exact] {
            assert!(!policy.matches(&nil, &nil));
        }
    }
}
