//! Evaluation of models on held-out documents. All models of a project are evaluated here, on the same documents.

use std::collections::BTreeMap;

use canonym_core::Result;
use canonym_core::corpus::{AnnotatedDocument, Annotation};
use canonym_core::eval::ids::IdSet;
use canonym_core::eval::learned::{Role, fingerprint};
use canonym_core::eval::matching;
use canonym_core::text::Span;

use crate::engine::{DevFigures, Engine, LinkOptions};

/// Documents per batch.
const BATCH: usize = 8;

/// Counts over documents.
#[derive(Default)]
struct Counts {
    n_gold: usize,
    n_found: usize,
    n_spans: usize,
    /// Gold mentions with a concept, found mentions with one, and those with the right span and concept.
    n_gold_linked: usize,
    n_found_linked: usize,
    n_correct: usize,
    /// Gold mentions with a concept that are linked correctly when given.
    n_linked_correctly: usize,
}

/// The documents that none of the models was trained on.
pub fn unseen<'a>(
    engines: impl IntoIterator<Item = &'a dyn Engine>,
    documents: &[AnnotatedDocument],
) -> Result<Vec<AnnotatedDocument>> {
    let prints: Vec<Option<u64>> = documents.iter().map(|one| fingerprint(&one.document.text)).collect();
    let mut seen = vec![false; documents.len()];
    for engine in engines {
        let of_model = engine.learned()?.only(Role::Trained).has_seen(&prints);
        seen.iter_mut().zip(of_model).for_each(|(seen, of_model)| *seen |= of_model);
    }
    Ok(documents.iter().zip(seen).filter(|(_, seen)| !seen).map(|(document, _)| document.clone()).collect())
}

/// The scores of a model on completely annotated documents. `None` if `should_continue` returns false between batches.
pub fn evaluate(
    engine: &dyn Engine,
    documents: &[AnnotatedDocument],
    mut should_continue: impl FnMut() -> bool,
) -> Result<Option<DevFigures>> {
    let mut counts = Counts::default();
    for batch in documents.chunks(BATCH) {
        if !should_continue() {
            return Ok(None);
        }
        let bare = |one: &AnnotatedDocument| AnnotatedDocument { annotations: Vec::new(), ..one.clone() };
        let found = engine.link(batch.iter().map(bare).collect(), &LinkOptions::default())?;
        let linked = engine.link_mentions(batch.iter().map(with_gold_mentions).collect(), 1)?;
        for ((gold, found), linked) in batch.iter().zip(&found).zip(&linked) {
            counts.add(gold, found, linked);
        }
    }
    let f1 = |n_gold: usize, n_found: usize, n_correct: usize| {
        matching::Counts::one_to_one(n_gold, n_found, n_correct).score().f1
    };
    Ok(Some(DevFigures {
        strict_f1: Some(f1(counts.n_gold_linked, counts.n_found_linked, counts.n_correct)),
        spans_f1: Some(f1(counts.n_gold, counts.n_found, counts.n_spans)),
        accuracy: Some(counts.n_linked_correctly as f64 / counts.n_gold_linked.max(1) as f64),
        n_documents: Some(documents.len()),
        n_seen: None,
    }))
}

/// Gold spans, each once, with their IDs.
fn gold_ids(document: &AnnotatedDocument) -> BTreeMap<&[Span], IdSet> {
    document.annotations.iter().map(|one| (one.spans.as_slice(), IdSet::parse(&one.ids))).collect()
}

/// The document with its linked mentions, without their concepts.
fn with_gold_mentions(document: &AnnotatedDocument) -> AnnotatedDocument {
    let mentions = gold_ids(document).into_iter().filter(|(_, ids)| !ids.is_nil());
    let mention = |spans: &[Span]| Annotation {
        spans: spans.to_vec(),
        text: crate::spans::surface(&document.document.text, spans),
        ..Annotation::default()
    };
    let annotations = mentions.map(|(spans, _)| mention(spans)).collect();
    AnnotatedDocument { annotations, ..document.clone() }
}

fn is_correct(gold: &IdSet, found: &Annotation) -> bool {
    let best = found.candidates.first().filter(|_| !found.nil);
    best.is_some_and(|best| gold.intersects(&IdSet::parse_one(&best.id)))
}

impl Counts {
    fn add(&mut self, gold: &AnnotatedDocument, found: &AnnotatedDocument, linked: &AnnotatedDocument) {
        let gold = gold_ids(gold);
        self.n_gold += gold.len();
        self.n_gold_linked += gold.values().filter(|ids| !ids.is_nil()).count();
        self.n_found += found.annotations.len();
        for one in &found.annotations {
            self.n_found_linked += usize::from(!one.nil && !one.candidates.is_empty());
            let Some(ids) = gold.get(one.spans.as_slice()) else { continue };
            self.n_spans += 1;
            self.n_correct += usize::from(is_correct(ids, one));
        }
        let is_linked = |one: &&Annotation| gold.get(one.spans.as_slice()).is_some_and(|ids| is_correct(ids, one));
        self.n_linked_correctly += linked.annotations.iter().filter(is_linked).count();
    }
}
