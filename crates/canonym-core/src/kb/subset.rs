//! Subsets of the concepts that a linker may return, by source, semantic type or position in the hierarchy.
//!
//! A subset is two bit sets, of concepts and of forms, valid for the opened knowledge base that it was made from. Word
//! weights are still computed over the whole file.

use std::collections::BTreeSet;

use super::reader::{ConceptId, FormId, KnowledgeBase};
use super::search::nearest_ids;
use crate::{Error, Result};

/// Filters on concepts; an empty list does not filter.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SubsetConfig {
    /// Keep concepts from one of these sources.
    pub only_sources: Vec<String>,
    /// Keep concepts with one of these types.
    pub only_types: Vec<String>,
    /// Keep these concepts and their descendants.
    pub only_under: Vec<String>,
    /// Exclude concepts from these sources.
    pub not_sources: Vec<String>,
    /// Exclude concepts with one of these types.
    pub not_types: Vec<String>,
    /// Exclude these concepts and their descendants.
    pub not_under: Vec<String>,
}

impl SubsetConfig {
    /// Whether no filter is set.
    pub fn is_all(&self) -> bool {
        *self == SubsetConfig::default()
    }
}

/// A subset of the concepts of one opened knowledge base.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subset {
    concepts: Bits,
    forms: Bits,
    /// The selected and the excluded types.
    types: [Vec<String>; 2],
}

/// A knowledge base with an optional concept filter.
#[derive(Debug, Clone, Copy)]
pub struct KbView<'a> {
    /// The knowledge base.
    pub kb: &'a KnowledgeBase,
    /// The filter; `None` allows all concepts.
    pub subset: Option<&'a Subset>,
}

impl<'a> From<&'a KnowledgeBase> for KbView<'a> {
    fn from(kb: &'a KnowledgeBase) -> KbView<'a> {
        KbView { kb, subset: None }
    }
}

impl KbView<'_> {
    /// Whether a concept passes the filter.
    #[inline]
    pub fn has(&self, concept: ConceptId) -> bool {
        self.subset.is_none_or(|subset| subset.has(concept))
    }

    /// Whether a form is a name of a concept that passes the filter.
    #[inline]
    pub fn has_form(&self, form: FormId) -> bool {
        self.subset.is_none_or(|subset| subset.has_form(form))
    }
}

impl Subset {
    /// The concepts of `kb` that `config` selects. An unknown source, type or id is an error, and so is an empty
    /// subset.
    pub fn choose(kb: &KnowledgeBase, config: &SubsetConfig) -> Result<Subset> {
        let sources = known("source", &kb.meta().sources, &config.only_sources)?;
        let unwanted_sources = known("source", &kb.meta().sources, &config.not_sources)?;
        let types = known("semantic type", &kb.meta().types, &config.only_types)?;
        let unwanted_types = known("semantic type", &kb.meta().types, &config.not_types)?;
        let children = match config.only_under.is_empty() && config.not_under.is_empty() {
            true => Children::default(),
            false => Children::of(kb),
        };
        let under = children.under(kb, &config.only_under)?;
        let not_under = children.under(kb, &config.not_under)?;
        let is_wanted = |concept: ConceptId| {
            (sources.is_empty() || sources.contains(kb.source(concept)))
                && !unwanted_sources.contains(kb.source(concept))
                && (types.is_empty() || kb.types(concept).any(|name| types.contains(name)))
                && !kb.types(concept).any(|name| unwanted_types.contains(name))
                && (config.only_under.is_empty() || under.get(concept.0))
                && !not_under.get(concept.0)
        };
        let types = [config.only_types.clone(), config.not_types.clone()];
        let subset = Subset { types, ..Subset::of(kb, is_wanted) };
        if subset.concepts.0.iter().all(|word| *word == 0) {
            let hint = "relax one of the filters; `canonym kb info` lists sources and types";
            return Err(Error::no_data("no concept matches all filters").with_hint(hint));
        }
        Ok(subset)
    }

    /// The concepts for which `is_wanted` holds.
    pub fn of(kb: &KnowledgeBase, is_wanted: impl Fn(ConceptId) -> bool) -> Subset {
        let mut concepts = Bits::new(kb.n_concepts());
        let mut forms = Bits::new(kb.n_forms());
        for concept in kb.concepts().filter(|concept| is_wanted(*concept)) {
            concepts.set(concept.0);
            kb.names(concept).for_each(|name| forms.set(kb.form_of(name).0));
        }
        Subset { concepts, forms, types: Default::default() }
    }

    /// Whether it contains a concept.
    #[inline]
    pub fn has(&self, concept: ConceptId) -> bool {
        self.concepts.get(concept.0)
    }

    /// Whether a form is a name of a concept that it contains.
    #[inline]
    pub fn has_form(&self, form: FormId) -> bool {
        self.forms.get(form.0)
    }

    /// Whether an unlinked mention of this type passes the filters on types.
    pub fn has_type(&self, semantic_type: &str) -> bool {
        let [only, not] = &self.types;
        let is_one = |names: &[String]| names.iter().any(|name| name == semantic_type);
        (only.is_empty() || is_one(only)) && !is_one(not)
    }

    /// Number of concepts.
    pub fn n_concepts(&self) -> usize {
        self.concepts.0.iter().map(|word| word.count_ones() as usize).sum()
    }
}

/// One bit per row; rows out of range are not set.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Bits(Vec<u64>);

impl Bits {
    fn new(n_rows: usize) -> Bits {
        Bits(vec![0; n_rows.div_ceil(64)])
    }

    #[inline]
    fn get(&self, row: u32) -> bool {
        self.0.get(row as usize / 64).is_some_and(|word| word >> (row % 64) & 1 == 1)
    }

    fn set(&mut self, row: u32) {
        if let Some(word) = self.0.get_mut(row as usize / 64) {
            *word |= 1 << (row % 64);
        }
    }
}

/// The children of each concept: `rows[at[parent]..at[parent + 1]]`.
#[derive(Default)]
struct Children {
    at: Vec<u32>,
    rows: Vec<u32>,
}

impl Children {
    fn of(kb: &KnowledgeBase) -> Children {
        let mut at = vec![0u32; kb.n_concepts() + 2];
        let pairs = || {
            let parents = |child| kb.parents(child).map(move |parent| (parent.0 as usize, child));
            kb.concepts().flat_map(parents).filter(|(parent, _)| *parent < kb.n_concepts())
        };
        pairs().for_each(|(parent, _)| at[parent + 2] += 1);
        for row in 2..at.len() {
            at[row] += at[row - 1];
        }
        let mut rows = vec![0; at.last().copied().unwrap_or_default() as usize];
        for (parent, child) in pairs() {
            rows[at[parent + 1] as usize] = child.0;
            at[parent + 1] += 1;
        }
        Children { at, rows }
    }

    /// The concepts with these ids and their descendants.
    fn under(&self, kb: &KnowledgeBase, ids: &[String]) -> Result<Bits> {
        let mut found = Bits::new(kb.n_concepts());
        let mut waiting = Vec::new();
        for id in ids {
            waiting.push(kb.find(id).ok_or_else(|| unknown_id(kb, id))?.0);
        }
        if !ids.is_empty() && !kb.has_parents() {
            let message = format!("{} has no hierarchy, so {} has no descendants", kb.meta().name, ids.join(", "));
            return Err(Error::unsupported(message)
                .with_hint("filter by types or sources, or build from a source with a hierarchy"));
        }
        while let Some(concept) = waiting.pop() {
            if !found.get(concept) {
                found.set(concept);
                let range = self.at[concept as usize] as usize..self.at[concept as usize + 1] as usize;
                waiting.extend(&self.rows[range]);
            }
        }
        Ok(found)
    }
}

fn unknown_id(kb: &KnowledgeBase, id: &str) -> Error {
    let near: Vec<String> = nearest_ids(kb, id, 3)
        .into_iter()
        .map(|concept| format!("{} ({})", kb.id(concept), kb.preferred_name(concept)))
        .collect();
    let hint = match near.is_empty() {
        true => "search for ids with `canonym kb search`".to_owned(),
        false => format!("similar ids: {}", near.join(", ")),
    };
    Error::not_found(format!("no concept `{id}` in {}", kb.meta().name)).with_hint(hint)
}

/// The entries of `wanted`, each of which must be in `all`.
fn known<'a>(what: &str, all: &[String], wanted: &'a [String]) -> Result<BTreeSet<&'a str>> {
    match wanted.iter().find(|word| !all.contains(word)) {
        None => Ok(wanted.iter().map(String::as_str).collect()),
        Some(word) => Err(unknown_word(what, all, word)),
    }
}

fn unknown_word(what: &str, all: &[String], word: &str) -> Error {
    const SHOWN: usize = 8;
    let error = Error::not_found(format!("no {what} `{word}` in the knowledge base"));
    if all.is_empty() {
        return error.with_hint(format!("it has no {what}s; omit the filter"));
    }
    let distance = |other: &String| {
        let lower = other.to_lowercase();
        rapidfuzz::distance::osa::distance(word.to_lowercase().chars(), lower.chars())
    };
    let mut near: Vec<(usize, &String)> = all.iter().map(|other| (distance(other), other)).collect();
    near.sort_unstable();
    let names: Vec<&str> = near.iter().take(SHOWN).map(|(_, name)| name.as_str()).collect();
    let more = if near.len() > SHOWN { format!(", and {} more", near.len() - SHOWN) } else { String::new() };
    // Names are similar if at most half of their letters differ.
    let is_similar = near.first().is_some_and(|(distance, _)| 2 * distance <= word.chars().count());
    let title = if is_similar { "similar".to_owned() } else { format!("{what}s") };
    error.with_hint(format!("{title}: {}{more}", names.join(", ")))
}
