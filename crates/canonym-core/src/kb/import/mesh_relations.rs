//! What both MeSH formats need once all records were met: which record has a tree number or a heading.
//!
//! A record may stand before its parent, so parents are handed on at the end, as records that hold nothing else. Held
//! are one number for each relation, and each tree number and heading once.

use std::collections::{HashMap, HashSet};

use super::{Report, Sink, distinct};
use crate::Result;
use crate::kb::{ConceptRecord, Scope};

/// The prefix of ids where the user gives none.
pub(super) const PREFIX: &str = "MESH";

/// What a parent is named by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Named {
    /// A tree number, such as `C04.557`.
    Tree,
    /// A heading, possibly with a qualifier behind a `/`.
    Heading,
}

/// Records that were kept, and the parents that they wait for.
#[derive(Debug, Default)]
pub(super) struct Relations {
    ids: Vec<Box<str>>,
    trees: HashMap<Box<str>, u32>,
    headings: HashMap<Box<str>, u32>,
    wanted: HashMap<Box<str>, u32>,
    waiting: Vec<(u32, u32, Named)>,
}

impl Relations {
    /// Adds a record that was kept, with its tree numbers; returns its row.
    pub fn add(&mut self, id: &str, trees: &[String]) -> u32 {
        let row = self.ids.len() as u32;
        self.ids.push(id.into());
        for tree in trees {
            self.trees.entry(tree.as_str().into()).or_insert(row);
            if let Some((parent, _)) = tree.rsplit_once('.') {
                self.want(row, parent, Named::Tree);
            }
        }
        row
    }

    /// Says that a heading is the name of the record in `row`.
    pub fn add_heading(&mut self, row: u32, heading: &str) {
        self.headings.entry(heading.into()).or_insert(row);
    }

    /// Notes a parent for the end.
    pub fn want(&mut self, child: u32, parent: &str, named: Named) {
        let row = match self.wanted.get(parent) {
            Some(row) => *row,
            None => {
                let row = self.wanted.len() as u32;
                self.wanted.insert(parent.into(), row);
                row
            }
        };
        self.waiting.push((child, row, named));
    }

    /// Hands on the parents, each child once.
    pub fn finish(mut self, report: &mut Report, sink: &mut Sink<'_>) -> Result<()> {
        let mut keys: Vec<&str> = vec![""; self.wanted.len()];
        for (key, row) in &self.wanted {
            keys[*row as usize] = key;
        }
        let heading = |key: &str| {
            let whole = self.headings.get(key);
            whole.or_else(|| self.headings.get(key.split('/').next().unwrap_or_default().trim_end())).copied()
        };
        self.waiting.sort_by_key(|(child, ..)| *child);
        for group in self.waiting.chunk_by(|one, other| one.0 == other.0) {
            let child = group[0].0;
            let mut parents: Vec<u32> = Vec::new();
            let mut known: HashSet<&str> = HashSet::new();
            for (_, key, named) in group {
                let (found, what) = match named {
                    Named::Tree => (self.trees.get(keys[*key as usize]).copied(), "tree number not in the files"),
                    Named::Heading => (heading(keys[*key as usize]), "heading not in the files"),
                };
                match found {
                    None => report.drop_one("parent", what),
                    Some(row) if row == child => report.drop_one("parent", "self-reference"),
                    Some(row) if known.insert(&self.ids[row as usize]) => parents.push(row),
                    Some(_) => {}
                }
            }
            if !parents.is_empty() {
                let id = self.ids[child as usize].to_string();
                let parents = parents.into_iter().map(|row| self.ids[row as usize].to_string()).collect();
                sink(ConceptRecord { id, parents, ..ConceptRecord::default() })?;
            }
        }
        Ok(())
    }
}

/// The types of a record: its semantic types, else the first segments of its tree numbers (`C04`).
pub(super) fn types(semantic_types: Vec<String>, trees: &[String]) -> Vec<String> {
    let mut types = semantic_types;
    if types.is_empty() {
        types.extend(trees.iter().map(|tree| tree.split('.').next().unwrap_or_default().to_owned()));
    }
    distinct(types)
}

/// The scope of names of a concept that is `word` in relation to the preferred one.
pub(super) fn scope_of(word: &str) -> Option<Scope> {
    match word {
        "NRW" => Some(Scope::Narrow),
        "BRD" => Some(Scope::Broad),
        "REL" => Some(Scope::Related),
        _ => None,
    }
}

/// The word for the class of a supplementary record, as MeSH's own vocabulary has it.
pub(super) fn class_of(number: &str) -> Option<&'static str> {
    match number {
        "1" => Some("SCR_Chemical"),
        "2" => Some("SCR_Protocol"),
        "3" => Some("SCR_Disease"),
        "4" => Some("SCR_Organism"),
        "5" => Some("SCR_Population"),
        "6" => Some("SCR_Anatomy"),
        _ => None,
    }
}

/// A registry number as an id: `CAS:`, `EC:` or `UNII:`; `None` for the `0` that stands where there is none.
pub(super) fn registry_id(number: &str) -> Option<String> {
    // Related numbers carry the name of the substance: `52665-69-7 (…)`.
    let number = number.split(" (").next().unwrap_or_default().trim();
    if let Some(rest) = number.strip_prefix("EC ") {
        return Some(format!("EC:{}", rest.trim()));
    }
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    if number.split('-').count() == 3 && number.split('-').all(digits) {
        return Some(format!("CAS:{number}"));
    }
    let unii = number.len() == 10 && number.bytes().all(|byte| byte.is_ascii_alphanumeric());
    unii.then(|| format!("UNII:{number}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registry_numbers_are_told_apart() {
        let cases = [
            ("50-00-0", Some("CAS:50-00-0")),
            ("50-00-0 (formaldehyde)", Some("CAS:50-00-0")),
            ("EC 1.1.1.1", Some("EC:1.1.1.1")),
            ("37H9VM9WZL", Some("UNII:37H9VM9WZL")),
            ("0", None),
        ];
        for (written, expected) in cases {
            assert_eq!(registry_id(written).as_deref(), expected);
        }
    }
}
