//! Resolves tree numbers and headings to parents after all records are read, for both MeSH formats.
//!
//! A record can come before its parent, so parents are emitted at the end, in records of their own. Memory: one number
//! per relation, and each tree number and heading once.

use std::collections::{HashMap, HashSet};

use super::{Report, Sink, distinct};
use crate::Result;
use crate::kb::{ConceptRecord, Scope};

/// Default prefix of ids.
pub(super) const PREFIX: &str = "MESH";

/// How a parent is referred to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Named {
    /// A tree number, such as `C04.557`.
    Tree,
    /// A heading, optionally with a qualifier after `/`.
    Heading,
}

/// Imported records and their unresolved parents.
#[derive(Debug, Default)]
pub(super) struct Relations {
    ids: Vec<Box<str>>,
    trees: HashMap<Box<str>, u32>,
    headings: HashMap<Box<str>, u32>,
    wanted: HashMap<Box<str>, u32>,
    waiting: Vec<(u32, u32, Named)>,
}

impl Relations {
    /// Adds an imported record with its tree numbers and returns its row.
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

    /// Registers a heading of the record in `row`.
    pub fn add_heading(&mut self, row: u32, heading: &str) {
        self.headings.entry(heading.into()).or_insert(row);
    }

    /// Adds an unresolved parent.
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

    /// Emits the parents, one record per child.
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

/// Types of a record: its semantic types, else the first segments of its tree numbers (`C04`).
pub(super) fn types(semantic_types: Vec<String>, trees: &[String]) -> Vec<String> {
    let mut types = semantic_types;
    if types.is_empty() {
        types.extend(trees.iter().map(|tree| tree.split('.').next().unwrap_or_default().to_owned()));
    }
    distinct(types)
}

/// Scope of the names of a concept with relation `word` to the preferred concept.
pub(super) fn scope_of(word: &str) -> Option<Scope> {
    match word {
        "NRW" => Some(Scope::Narrow),
        "BRD" => Some(Scope::Broad),
        "REL" => Some(Scope::Related),
        _ => None,
    }
}

/// The class of a supplementary record, in the terms of MeSH.
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

/// A registry number as an id with prefix `CAS:`, `EC:` or `UNII:`; `None` for `0`, which means none.
pub(super) fn registry_id(number: &str) -> Option<String> {
    // Related numbers include the name of the substance: `52665-69-7 (…)`.
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
    fn registry_numbers_are_distinguished() {
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
