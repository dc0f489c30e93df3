//! Fits the acceptance model to corpora with gold mentions.
//!
//! After overlaps are resolved, a match is correct if a gold mention has its span and one of its ids. The weights are
//! fitted by L2-regularised logistic regression (Newton's method); every corpus has the same weight, whatever its size.
//! Discontinuous matches are excluded because most corpora annotate the whole coordination. The threshold maximises the
//! mean strict F1.

use std::collections::BTreeMap;

use rayon::prelude::*;

use super::accept::{AcceptModel, Features};
use super::scan::ScanScratch;
use super::{DictionaryAnnotator, DictionaryMatch};
use crate::corpus::AnnotatedDocument;
use crate::eval::ids::IdSet;
use crate::eval::matching::Counts;
use crate::kb::KnowledgeBase;
use crate::link::fit::{calibration_error as error_of, logistic};
use crate::text::Span;
use crate::text::analysis::Analysis;

/// The matches of one corpus with labels, and the number of gold mentions.
#[derive(Debug, Clone, Default)]
pub struct Examples {
    /// Features of the best sense of each match, and whether it is correct.
    pub matches: Vec<(Features, bool)>,
    /// Number of gold mentions with a concept.
    pub n_gold: usize,
    /// Weight of the corpus relative to the others.
    pub weight: usize,
}

/// The matches of `annotator` in a corpus.
pub fn examples(kb: &KnowledgeBase, annotator: &DictionaryAnnotator, corpus: &[AnnotatedDocument]) -> Examples {
    let parts: Vec<(Vec<(Features, bool)>, usize)> = corpus
        .par_iter()
        .map_init(ScanScratch::default, |scratch, document| {
            let mut gold: BTreeMap<Vec<Span>, Vec<IdSet>> = BTreeMap::new();
            let mut n_gold = 0;
            for annotation in &document.annotations {
                let ids = IdSet::parse(&annotation.ids);
                if !ids.is_nil() {
                    gold.entry(annotation.spans.clone()).or_default().push(ids);
                    n_gold += 1;
                }
            }
            let is_right = |matched: &DictionaryMatch| {
                let ids = IdSet::parse_one(kb.id(matched.senses[0].0.concept));
                gold.get(&matched.spans).is_some_and(|golds| golds.iter().any(|gold| gold.intersects(&ids)))
            };
            let matched = annotator.matches(&Analysis::new(&document.document), scratch);
            (
                matched
                    .iter()
                    // Matches scored by the sense inventory are not scored by the model.
                    .filter(|matched| matched.spans.len() == 1 && matched.best().0.sense.is_none())
                    .map(|matched| (*matched.features(), is_right(matched)))
                    .collect(),
                n_gold,
            )
        })
        .collect();
    let mut examples = Examples::default();
    for (matches, n_gold) in parts {
        examples.matches.extend(matches);
        examples.n_gold += n_gold;
    }
    examples
}

/// Logistic regression over all corpora, each with the same weight.
pub fn fit(corpora: &[Examples], penalty: f64) -> Features {
    let weighed = corpora.iter().flat_map(|corpus| vec![corpus.matches.as_slice(); corpus.weight.max(1)]);
    let matches: Vec<&[(Features, bool)]> = weighed.collect();
    logistic(&matches, penalty)
}

/// Precision, recall and F1 of the matches at or above a threshold.
pub fn score(corpus: &Examples, model: &AcceptModel, threshold: f32) -> (f64, f64, f64) {
    let kept = corpus.matches.iter().filter(|(features, _)| model.probability(features) >= threshold);
    let (n_kept, n_right) = kept.fold((0usize, 0usize), |(n, right), one| (n + 1, right + usize::from(one.1)));
    let score = Counts::one_to_one(corpus.n_gold, n_kept, n_right).score();
    (score.precision, score.recall, score.f1)
}

/// Expected calibration error of the accepted matches, ten bins.
pub fn calibration_error(corpus: &Examples, model: &AcceptModel) -> f64 {
    let scored = corpus.matches.iter().map(|(features, right)| (model.probability(features), *right));
    error_of(scored.filter(|(score, _)| *score >= model.threshold))
}

/// The threshold, in steps of 0.01, with the best mean F1 over corpora.
pub fn best_threshold(corpora: &[Examples], model: &AcceptModel) -> f32 {
    let f1 = |corpus: &Examples, threshold| corpus.weight.max(1) as f64 * score(corpus, model, threshold).2;
    let mean = |threshold: f32| corpora.iter().map(|corpus| f1(corpus, threshold)).sum::<f64>();
    let steps = (5..80).map(|step| step as f32 / 100.0);
    steps.map(|step| (mean(step), step)).max_by(|a, b| a.0.total_cmp(&b.0)).map_or(0.5, |(_, step)| step)
}
