//! Evaluation of models on held-out documents. All models of a project are evaluated here, on the same documents.

use canonym_core::Result;
use canonym_core::corpus::{AnnotatedDocument, Annotation};
use canonym_core::eval::bootstrap::{BootstrapConfig, SplitMix64};
use canonym_core::eval::ids::IdSet;
use canonym_core::eval::learned::{Fingerprints, Role};
use canonym_core::eval::matching::{Counts, MatchConfig, Measure, count};
use canonym_core::eval::pairing::pair;
use canonym_core::eval::ranking::{RankingConfig, from_documents, rank};
use canonym_core::link::recognise::Nested;

use crate::engine::{DevFigures, Engine, LinkOptions};

/// Documents per batch.
const BATCH: usize = 8;

/// The documents that none of the models was trained on.
pub fn unseen<'a>(
    engines: impl IntoIterator<Item = &'a dyn Engine>,
    documents: &[AnnotatedDocument],
) -> Result<Vec<AnnotatedDocument>> {
    let prints: Vec<Fingerprints> = documents.iter().map(|one| Fingerprints::of(&one.document)).collect();
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
    let (mut mentions, mut links) = (Counts::default(), Counts::default());
    let mut given = Vec::new();
    for batch in documents.chunks(BATCH) {
        if !should_continue() {
            return Ok(None);
        }
        let bare = |one: &AnnotatedDocument| AnnotatedDocument { annotations: Vec::new(), ..one.clone() };
        let found = engine
            .link(batch.iter().map(bare).collect(), &LinkOptions { nested: Nested::None, ..LinkOptions::default() })?;
        for document in &pair(batch, &found)?.documents {
            let counts = |measure: Measure| count(measure, document, MatchConfig::default());
            mentions = mentions + counts(Measure::MentionRecognition);
            links = links + counts(Measure::Strict);
        }
        let linked = engine.link_mentions(batch.iter().map(with_gold_mentions).collect(), 1)?;
        given.extend(from_documents(&pair(batch, &linked)?.documents));
    }
    let bootstrap = BootstrapConfig { n_resamples: 0, ..BootstrapConfig::default() };
    let config = RankingConfig { bootstrap, ..RankingConfig::default() };
    let accuracy = rank(&given, &config, &mut SplitMix64::new(0)).all.accuracy;
    Ok(Some(DevFigures {
        strict_f1: Some(links.score().f1),
        spans_f1: Some(mentions.score().f1),
        accuracy: Some(accuracy.get(&1).copied().unwrap_or_default()),
        n_documents: Some(documents.len()),
        n_seen: None,
    }))
}

/// The document with its linked mentions, without their concepts.
fn with_gold_mentions(document: &AnnotatedDocument) -> AnnotatedDocument {
    let linked = document.annotations.iter().filter(|one| !IdSet::parse(&one.ids).is_nil());
    let mention = |one: &Annotation| Annotation {
        spans: one.spans.clone(),
        text: crate::spans::surface(&document.document.text, &one.spans),
        semantic_type: one.semantic_type.clone(),
        ..Annotation::default()
    };
    let annotations = linked.map(mention).collect();
    AnnotatedDocument { annotations, ..document.clone() }
}
