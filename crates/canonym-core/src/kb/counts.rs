//! Counts of what a knowledge base contains: stored when it is built, counted in files of earlier versions.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::reader::{FormId, KnowledgeBase};

/// Name of the section.
pub(super) const SECTION: &str = "counts";

/// What a knowledge base contains.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Number of forms that several concepts share.
    pub n_shared_forms: u64,
    /// Number of concepts with a definition.
    pub n_definitions: u64,
    /// Number of concepts with a broader concept.
    pub n_with_parents: u64,
    /// Number of alternative ids.
    pub n_alternative_ids: u64,
    /// Number of names of each scope.
    pub scopes: BTreeMap<String, u64>,
    /// Number of concepts of each semantic type.
    pub types: BTreeMap<String, u64>,
    /// Number of concepts of each source.
    pub sources: BTreeMap<String, u64>,
}

/// Counts the values of each key.
pub(super) fn tally<'a>(keys: impl Iterator<Item = &'a str>) -> BTreeMap<String, u64> {
    let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
    keys.for_each(|key| *counts.entry(key).or_insert(0) += 1);
    counts.into_iter().map(|(key, n)| (key.to_owned(), n)).collect()
}

impl Counts {
    /// The counts of a knowledge base: as stored, else counted.
    pub fn of(kb: &KnowledgeBase) -> Counts {
        let stored = kb.container().range(SECTION).ok();
        let parsed = stored.and_then(|range| serde_json::from_slice(&kb.container().bytes()[range]).ok());
        parsed.unwrap_or_else(|| Counts::counted(kb))
    }

    /// Counts everything.
    pub fn counted(kb: &KnowledgeBase) -> Counts {
        let concepts = || kb.concepts();
        let is_shared = |form: &u32| {
            let mut concepts = kb.names_of_form(FormId(*form)).map(|name| kb.concept_of(name));
            let first = concepts.next();
            concepts.any(|concept| Some(concept) != first)
        };
        Counts {
            scopes: tally(concepts().flat_map(|concept| kb.names(concept)).map(|name| kb.scope(name).name())),
            types: tally(concepts().flat_map(|concept| kb.types(concept))),
            sources: tally(concepts().map(|concept| kb.source(concept)).filter(|source| !source.is_empty())),
            n_shared_forms: (0..kb.n_forms() as u32).filter(is_shared).count() as u64,
            n_definitions: concepts().filter(|concept| kb.definition(*concept).is_some()).count() as u64,
            n_with_parents: concepts().filter(|concept| kb.parents(*concept).next().is_some()).count() as u64,
            n_alternative_ids: concepts().map(|concept| kb.alternative_ids(concept).count() as u64).sum(),
        }
    }
}
