//! Links documents again after a change of the terminology, and keeps the links of those that the change cannot touch.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rayon::prelude::*;

use super::recognise::senses::SenseInventory;
use super::recognise::touched::ChangedNames;
use super::system::{System, shown_id};
use crate::Result;
use crate::corpus::AnnotatedDocument;
use crate::kb::KnowledgeBase;

/// The changes since the knowledge base that documents were linked with.
#[derive(Debug)]
pub struct Changed {
    names: ChangedNames,
    /// Ids of changed concepts, as written in documents.
    ids: HashSet<String>,
    kb: Arc<KnowledgeBase>,
    n_kept: AtomicU64,
}

impl Changed {
    /// Compares `kb` with the older knowledge base `old`; `raw_ids` says whether documents have ids as in the source.
    pub fn between(old: &KnowledgeBase, kb: &Arc<KnowledgeBase>, senses: &SenseInventory, raw_ids: bool) -> Changed {
        let names = ChangedNames::between(old, kb, senses);
        let ids = names.concepts().iter().map(|concept| shown_id(old, *concept, raw_ids)).collect();
        Changed { names, ids, kb: kb.clone(), n_kept: AtomicU64::new(0) }
    }

    /// The changed names.
    pub fn names(&self) -> &ChangedNames {
        &self.names
    }

    /// Number of documents that kept their links so far.
    pub fn n_kept(&self) -> u64 {
        self.n_kept.load(Ordering::Relaxed)
    }

    /// Whether a document is to be linked again: a change may touch its text, it has links to a changed concept, or
    /// annotations that no system made.
    pub fn may_touch(&self, document: &AnnotatedDocument) -> bool {
        let links = document.annotations.iter();
        let is_stale = links.clone().any(|link| !link.is_linked())
            || links.flat_map(|link| &link.candidates).any(|candidate| self.ids.contains(&candidate.id));
        is_stale || self.names.may_touch(&self.kb, &document.document.text)
    }

    /// Links the documents of a batch that the changes may touch, in order; tells which were linked.
    ///
    /// # Errors
    /// If the model fails on one of the documents.
    pub fn link(&self, system: &System, batch: Vec<AnnotatedDocument>) -> Result<Vec<(AnnotatedDocument, bool)>> {
        let is_touched: Vec<bool> = batch.par_iter().map(|document| self.may_touch(document)).collect();
        let mut touched = is_touched.iter();
        let (again, kept): (Vec<_>, Vec<_>) = batch.into_iter().partition(|_| touched.next().copied().unwrap_or(true));
        self.n_kept.fetch_add(kept.len() as u64, Ordering::Relaxed);
        let (mut again, mut kept) = (system.link(again)?.into_iter(), kept.into_iter());
        let next = |is_touched: bool| Some((if is_touched { again.next()? } else { kept.next()? }, is_touched));
        Ok(is_touched.into_iter().map_while(next).collect())
    }
}
