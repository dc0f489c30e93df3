//! Adds names from a second list by concept id: short forms, brand names and lay terms.
//!
//! A concept gets the names of the record with its own id, else of one with one of its alternative ids. A name of
//! another concept is not added, so no homonyms arise. Records without a matching concept are ignored.

use std::collections::HashMap;

use rayon::prelude::*;

use super::import::Report;
use super::join::{Named, caseless};
use super::record::{ConceptRecord, Scope};
use crate::text::normalise::fold;

/// How the report calls a record of the second list, and its names.
const CONCEPT: &str = "starter concept";
const NAME: &str = "starter name";

/// The concept of each record, if any.
pub(super) fn concepts_of<'a>(
    records: &[ConceptRecord],
    ids: impl Iterator<Item = (u32, &'a str)>,
    alternatives: impl Iterator<Item = (u32, &'a str)>,
    report: &mut Report,
) -> Vec<Option<u32>> {
    let mut named: HashMap<String, Named> =
        records.iter().map(|record| (caseless(&record.id), Named::Nothing)).collect();
    for (concept, id) in ids {
        for part in id.split('|') {
            // If two concepts share one of several ids, the first concept has it.
            let Some(named) = named.get_mut(&caseless(part)) else { continue };
            if *named == Named::Nothing {
                *named = Named::Concept(concept);
            }
        }
    }
    for (concept, id) in alternatives {
        let Some(named) = named.get_mut(&caseless(id)) else { continue };
        *named = match *named {
            Named::Nothing => Named::Alternative(concept),
            Named::Alternative(other) if other != concept => Named::Several,
            already => already,
        };
    }
    let concept_of = |record: &ConceptRecord| match named[&caseless(&record.id)] {
        Named::Concept(concept) | Named::Alternative(concept) => Some(concept),
        Named::Nothing => {
            report.drop_one(CONCEPT, "not in the terminology");
            None
        }
        Named::Several => {
            report.drop_one(CONCEPT, "id of several concepts");
            None
        }
    };
    records.iter().map(concept_of).collect()
}

/// The names to add: `(concept, name)` in record order. `concepts` come from [`concepts_of`]; `name` returns the names
/// of the terminology.
pub(super) fn plan<'r, 'a>(
    records: &'r [ConceptRecord],
    concepts: &[Option<u32>],
    n_names: usize,
    name: impl Fn(usize) -> (u32, &'a str, Scope) + Sync,
    report: &mut Report,
) -> Vec<(u32, &'r str)> {
    let known = || records.iter().zip(concepts).filter_map(|(record, concept)| Some((record, (*concept)?)));
    // Concepts that have each of the names.
    let mut owners: HashMap<String, Vec<(u32, Scope)>> =
        known().flat_map(|(record, _)| &record.names).map(|name| (fold(&name.text), Vec::new())).collect();
    let owner = |row: usize| {
        let (concept, text, scope) = name(row);
        let folded = fold(text);
        owners.contains_key(&folded).then_some((folded, concept, scope))
    };
    let found: Vec<(String, u32, Scope)> = (0..n_names).into_par_iter().filter_map(owner).collect();
    for (folded, concept, scope) in found {
        owners.entry(folded).or_default().push((concept, scope));
    }
    let mut added = Vec::new();
    for (record, concept) in known() {
        for name in &record.names {
            let folded = fold(&name.text);
            let owners = owners.entry(folded.clone()).or_default();
            let refused = if folded.is_empty() {
                "a name without letters or digits"
            } else if owners.iter().any(|(owner, scope)| *owner == concept && *scope <= Scope::Exact) {
                "already a name of its concept"
            } else if owners.iter().any(|(owner, _)| *owner != concept) {
                "a name of another concept"
            } else {
                owners.push((concept, Scope::Exact));
                added.push((concept, name.text.as_str()));
                continue;
            };
            report.drop_one(NAME, refused);
        }
    }
    added
}
