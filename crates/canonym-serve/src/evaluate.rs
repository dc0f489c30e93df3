//! Evaluation of models on held-out documents. All models of a project are evaluated here, on the same documents.

use canonym_core::Result;
use canonym_core::corpus::{AnnotatedDocument, Annotation};
use canonym_core::eval::bootstrap::{BootstrapConfig, Interval, SplitMix64, intervals};
use canonym_core::eval::ids::IdSet;
use canonym_core::eval::learned::{Fingerprints, Role};
use canonym_core::eval::matching::{Counts, MatchConfig, Measure, count};
use canonym_core::eval::pairing::pair;
use canonym_core::eval::ranking::{RankingConfig, from_documents, rank};
use canonym_core::link::recognise::Nested;

use crate::engine::{DevFigures, Engine, FigureRange, LinkOptions};

/// Documents per batch.
const BATCH: usize = 8;

/// Whether none of the models was trained on a document, for each.
pub fn unseen<'a>(
    engines: impl IntoIterator<Item = &'a dyn Engine>,
    documents: &[AnnotatedDocument],
) -> Result<Vec<bool>> {
    let prints: Vec<Fingerprints> = documents.iter().map(|one| Fingerprints::of(&one.document)).collect();
    let mut seen = vec![false; documents.len()];
    for engine in engines {
        let of_model = engine.learned()?.only(Role::Trained).has_seen(&prints);
        seen.iter_mut().zip(of_model).for_each(|(seen, of_model)| *seen |= of_model);
    }
    Ok(seen.into_iter().map(|seen| !seen).collect())
}

/// The scores of a model on completely annotated documents. `None` if `should_continue` returns false between batches.
pub fn evaluate(
    engine: &dyn Engine,
    documents: &[AnnotatedDocument],
    mut should_continue: impl FnMut() -> bool,
) -> Result<Option<Evaluation>> {
    let (mut mentions, mut links): (Vec<Counts>, Vec<Counts>) = Default::default();
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
            mentions.push(counts(Measure::MentionRecognition));
            links.push(counts(Measure::Strict));
        }
        let linked = engine.link_mentions(batch.iter().map(with_gold_mentions).collect(), 1)?;
        given.extend(from_documents(&pair(batch, &linked)?.documents));
    }
    let ranking = rank(&given, &RankingConfig::default(), &mut SplitMix64::new(SEED)).all;
    let figures = DevFigures {
        strict_f1: Some(f1(&links, None)),
        spans_f1: Some(f1(&mentions, None)),
        accuracy: Some(ranking.accuracy.get(&1).copied().unwrap_or_default()),
        strict_f1_ci: interval(links.len(), |weights| f1(&links, Some(weights))),
        spans_f1_ci: interval(mentions.len(), |weights| f1(&mentions, Some(weights))),
        accuracy_ci: ranking.accuracy_ci.get(&1).copied().map(range),
        n_documents: Some(documents.len()),
        ..DevFigures::default()
    };
    Ok(Some(Evaluation { figures, links }))
}

/// The seed of resamples: the same documents are drawn for every model.
const SEED: u64 = 0;

/// The scores of a model, and the counts of each document behind its linking F1.
pub struct Evaluation {
    /// The scores.
    pub figures: DevFigures,
    links: Vec<Counts>,
}

/// How much better the linking F1 of a model is than that of another one on the same documents, with an interval.
pub fn gain(model: &Evaluation, other: &Evaluation) -> (f64, Option<FigureRange>) {
    let difference = |weights: Option<&[u32]>| f1(&model.links, weights) - f1(&other.links, weights);
    (difference(None), interval(model.links.len(), |weights| difference(Some(weights))))
}

/// F1 over documents, each counted as often as `weights` says.
fn f1(counts: &[Counts], weights: Option<&[u32]>) -> f64 {
    let all = counts.iter().enumerate().flat_map(|(row, counts)| {
        let n = weights.map_or(1, |weights| weights[row]);
        std::iter::repeat_n(*counts, n as usize)
    });
    all.sum::<Counts>().score().f1
}

fn interval(n_documents: usize, statistic: impl Fn(&[u32]) -> f64) -> Option<FigureRange> {
    let rng = &mut SplitMix64::new(SEED);
    let found = intervals(n_documents, BootstrapConfig::default(), |weights| vec![statistic(weights)], rng);
    found.first().copied().map(range)
}

fn range(Interval(low, high): Interval) -> FigureRange {
    FigureRange { low, high }
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
