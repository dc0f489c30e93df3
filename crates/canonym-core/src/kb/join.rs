//! Plans the merging of concepts by mappings: connected components of the graph of equivalent ids, including ids
//! without a concept.
//!
//! The concepts of a component are merged, unless two of them are from the same source, which lists them as distinct;
//! such a component is left unchanged. The concept of the first source keeps its id; the ids of the others become
//! alternative ids.

use std::collections::HashMap;

use super::import::Report;
use crate::{Error, Result};

/// Maximum number of ids in mappings.
const MAX_IDS: usize = 1 << 28;

/// Pairs of equivalent ids.
#[derive(Debug, Clone, Default)]
pub struct Mappings {
    nodes: HashMap<String, u32>,
    pairs: Vec<(u32, u32)>,
}

impl Mappings {
    /// Adds a pair. Returns false if both ids are equal.
    pub fn add(&mut self, one: &str, other: &str) -> Result<bool> {
        if self.nodes.len() >= MAX_IDS {
            return Err(Error::too_many(format!("the mappings contain more than {MAX_IDS} ids")));
        }
        let (one, other) = (self.node(one), self.node(other));
        if one == other {
            return Ok(false);
        }
        self.pairs.push((one, other));
        Ok(true)
    }

    fn node(&mut self, id: &str) -> u32 {
        let next = self.nodes.len() as u32;
        *self.nodes.entry(caseless(id)).or_insert(next)
    }

    fn find(&self, id: &str) -> Option<usize> {
        self.nodes.get(&caseless(id)).map(|node| *node as usize)
    }
}

/// An id with lower-case prefix, so that `mesh:D004194` equals `MESH:D004194`.
pub(super) fn caseless(id: &str) -> String {
    let id = id.trim();
    match id.split_once(':') {
        Some((prefix, local)) => format!("{}:{local}", prefix.to_ascii_lowercase()),
        None => id.to_owned(),
    }
}

/// How an id refers to a concept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Named {
    Nothing,
    /// By its own id.
    Concept(u32),
    /// By an alternative id.
    Alternative(u32),
    /// Alternative ids of several concepts.
    Several,
}

/// The merges `(concept, target)`, sorted.
///
/// `ids` are the ids of the concepts, `alternatives` their alternative ids; `source_of` returns the source index of a
/// concept, lower means higher priority. Components that are not merged are counted in `report`.
pub(super) fn plan<'a>(
    mappings: &Mappings,
    ids: impl Iterator<Item = (u32, &'a str)>,
    alternatives: impl Iterator<Item = (u32, &'a str)>,
    source_of: impl Fn(u32) -> u16,
    report: &mut Report,
) -> Vec<(u32, u32)> {
    let mut named = vec![Named::Nothing; mappings.nodes.len()];
    for (concept, id) in ids {
        for node in id.split('|').filter_map(|part| mappings.find(part)) {
            // If two concepts share one of several ids, the first concept has it.
            if named[node] == Named::Nothing {
                named[node] = Named::Concept(concept);
            }
        }
    }
    for (concept, id) in alternatives {
        let Some(node) = mappings.find(id) else { continue };
        named[node] = match named[node] {
            Named::Nothing => Named::Alternative(concept),
            Named::Alternative(other) if other != concept => Named::Several,
            already => already,
        };
    }
    let n_unknown = named.iter().filter(|named| matches!(named, Named::Nothing | Named::Several)).count();
    report.drop_many("mapped id", "not in the knowledge base", n_unknown as u64);

    let mut groups = Groups::new(named.len());
    for (one, other) in &mappings.pairs {
        groups.unite(*one, *other);
    }
    let mut concepts: Vec<(u32, u32)> = Vec::new();
    for (node, named) in named.iter().enumerate() {
        if let Named::Concept(concept) | Named::Alternative(concept) = named {
            concepts.push((*concept, node as u32));
        }
    }
    concepts.sort_unstable();
    // A concept with several ids connects the components of all of them.
    for pair in concepts.windows(2).filter(|pair| pair[0].0 == pair[1].0) {
        groups.unite(pair[0].1, pair[1].1);
    }
    concepts.dedup_by_key(|(concept, _)| *concept);
    let with_group = |(concept, node): &(u32, u32)| (groups.root(*node), source_of(*concept), *concept);
    let mut members: Vec<(u32, u16, u32)> = concepts.iter().map(with_group).collect();
    members.sort_unstable();
    let mut fates = vec![Outcome::Dangling; named.len()];
    let mut joined = Vec::new();
    for group in members.chunk_by(|one, other| one.0 == other.0) {
        if group.len() < 2 {
            continue;
        }
        if group.windows(2).any(|pair| pair[0].1 == pair[1].1) {
            fates[group[0].0 as usize] = Outcome::Refused;
            continue;
        }
        fates[group[0].0 as usize] = Outcome::Joined;
        joined.extend(group[1..].iter().map(|(_, _, concept)| (*concept, group[0].2)));
    }
    for (one, _) in &mappings.pairs {
        match fates[groups.root(*one) as usize] {
            Outcome::Joined => {}
            Outcome::Dangling => report.drop_one("mapping", "fewer than two of its concepts are in the knowledge base"),
            Outcome::Refused => report.drop_one("mapping", "would merge two concepts of one source"),
        }
    }
    joined.sort_unstable();
    joined
}

/// The outcome for a component.
#[derive(Debug, Clone, Copy)]
enum Outcome {
    Joined,
    Dangling,
    Refused,
}

/// Disjoint-set forest (union-find) of nodes.
struct Groups {
    parents: Vec<u32>,
}

impl Groups {
    fn new(n_nodes: usize) -> Groups {
        Groups { parents: (0..n_nodes as u32).collect() }
    }

    fn root(&mut self, node: u32) -> u32 {
        let mut node = node;
        while self.parents[node as usize] != node {
            let above = self.parents[self.parents[node as usize] as usize];
            self.parents[node as usize] = above;
            node = above;
        }
        node
    }

    fn unite(&mut self, one: u32, other: u32) {
        let (one, other) = (self.root(one), self.root(other));
        // The lower node stays the root, so the result does not depend on the order of the pairs.
        self.parents[one.max(other) as usize] = one.min(other);
    }
}
