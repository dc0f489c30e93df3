//! `--changed-only`: keeps the links of documents that a change of the terminology cannot touch.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use canonym_core::corpus::{AnnotatedDocument, CorpusFormat};
use canonym_core::kb::KnowledgeBase;
use canonym_core::link::recognise::senses::SenseInventory;
use canonym_core::link::recognise::touched::ChangedNames;
use canonym_neural::system::terminology;

use super::LinkArguments;
use crate::output::counted;
use crate::result_format::ResultFormat;
use crate::system::Mentions;
use crate::{errors, progress};

/// The changes since the knowledge base that the input was linked with.
pub struct Changed {
    names: ChangedNames,
    /// Ids of changed concepts, as printed.
    ids: HashSet<String>,
    kb: Arc<KnowledgeBase>,
    n_kept: AtomicU64,
}

impl Changed {
    /// Compares `kb` with the older knowledge base at `old`.
    pub fn open(
        arguments: &LinkArguments,
        old: &Path,
        kb: &Arc<KnowledgeBase>,
        senses: Option<Arc<SenseInventory>>,
    ) -> anyhow::Result<Changed> {
        let old = terminology::open(Some(old))?;
        let names = ChangedNames::between(&old, kb, &senses.unwrap_or_else(SenseInventory::embedded));
        if let Some(reason) = names.everything() {
            progress::say(&format!("all documents will be linked again: {reason}"));
        }
        progress::say(&counted(names.n_changed() as u64, "new, changed or removed concept"));
        let shown = |concept| terminology::shown_id(&old, concept, arguments.raw_ids);
        let ids = names.concepts().iter().map(|concept| shown(*concept)).collect();
        Ok(Changed { names, ids, kb: kb.clone(), n_kept: AtomicU64::new(0) })
    }

    /// Whether a document is to be linked again: a change may touch its text, it has links to a changed concept, or
    /// annotations that no system made.
    pub fn may_touch(&self, document: &AnnotatedDocument) -> bool {
        let links = document.annotations.iter();
        let is_stale = links.clone().any(|link| !link.is_linked())
            || links.flat_map(|link| &link.candidates).any(|candidate| self.ids.contains(&candidate.id));
        let is_touched = is_stale || self.names.may_touch(&self.kb, &document.document.text);
        self.n_kept.fetch_add(u64::from(!is_touched), Ordering::Relaxed);
        is_touched
    }

    /// Reports how many of `n_documents` kept their links.
    pub fn report(&self, n_documents: u64) {
        let n_kept = self.n_kept.load(Ordering::Relaxed).min(n_documents);
        let linked = counted(n_documents - n_kept, "document");
        progress::say(&format!("linked {linked} again; {} kept", counted(n_kept, "document")));
    }
}

/// Refuses options under which documents cannot keep their links.
pub fn check(arguments: &LinkArguments, to: ResultFormat) -> anyhow::Result<()> {
    let wrong = |message: &str, hint: &str| Err(errors::usage(message, hint));
    if arguments.mentions == Mentions::Gold {
        return wrong("`--changed-only` needs detected mentions", "omit `--mentions gold`");
    }
    if arguments.filter.is_given() {
        return wrong("`--changed-only` does not support concept filters", "omit the filters, or link all documents");
    }
    if to != ResultFormat::Corpus(CorpusFormat::Jsonl) {
        return wrong("`--changed-only` writes jsonl", "use `--to jsonl`, and `canonym convert` for other formats");
    }
    Ok(())
}
