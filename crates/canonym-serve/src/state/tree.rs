//! The hierarchy of the terminology, downwards.

use std::collections::HashMap;

use canonym_core::kb::{ConceptId, KnowledgeBase};

/// The narrower concepts of each concept, and where the hierarchy starts.
#[derive(Debug, Default)]
pub struct Tree {
    children: HashMap<ConceptId, Vec<ConceptId>>,
    roots: Vec<ConceptId>,
}

impl Tree {
    /// Reads the hierarchy of a terminology. Concepts without broader and narrower ones are not part of it.
    pub fn of(kb: &KnowledgeBase) -> Tree {
        let mut tree = Tree::default();
        for concept in kb.concepts() {
            for parent in kb.parents(concept) {
                tree.children.entry(parent).or_default().push(concept);
            }
        }
        for children in tree.children.values_mut() {
            children.sort_by_cached_key(|child| kb.preferred_name(*child).to_lowercase());
            children.dedup();
        }
        let is_root = |concept: &ConceptId| kb.parents(*concept).next().is_none();
        tree.roots = tree.children.keys().copied().filter(is_root).collect();
        tree.roots.sort_by_cached_key(|root| (kb.preferred_name(*root).to_lowercase(), kb.id(*root).to_owned()));
        tree
    }

    /// The concepts without broader ones, by name.
    pub fn roots(&self) -> &[ConceptId] {
        &self.roots
    }

    /// The narrower concepts of a concept, by name.
    pub fn children(&self, concept: ConceptId) -> &[ConceptId] {
        self.children.get(&concept).map(Vec::as_slice).unwrap_or_default()
    }
}
