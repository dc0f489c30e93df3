//! Fits the acceptance model to corpora with gold mentions.
//!
//! A place that is left after overlaps are resolved is right where a gold mention has its span and one of its ids.
//! The weights are those of a logistic regression with a quadratic penalty, found by Newton's method; every corpus
//! counts alike, whatever its size. Discontinuous places are left out, as most corpora mark the whole coordination. The
//! threshold is the one with the best mean strict F1.

use std::collections::BTreeMap;

use rayon::prelude::*;

use super::accept::{AcceptModel, Features};
use super::scan::ScanScratch;
use super::{DictionaryAnnotator, DictionaryMatch};
use crate::corpus::AnnotatedDocument;
use crate::eval::ids::IdSet;
use crate::kb::KnowledgeBase;
use crate::link::fit::{calibration_error as error_of, logistic};
use crate::text::Span;

/// The places of one corpus, right or wrong, and how many gold mentions it has.
#[derive(Debug, Clone, Default)]
pub struct Examples {
    /// The features of the best reading of each place, and whether it is right.
    pub places: Vec<(Features, bool)>,
    /// Gold mentions with a concept.
    pub n_gold: usize,
    /// How often the corpus counts, against others.
    pub weight: usize,
}

/// The places that `annotator` spots in a corpus.
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
            let is_right = |spotted: &DictionaryMatch| {
                let ids = IdSet::parse_one(kb.id(spotted.readings[0].0.concept));
                gold.get(&spotted.spans).is_some_and(|golds| golds.iter().any(|gold| gold.intersects(&ids)))
            };
            let spotted = annotator.spot(&document.document, scratch);
            (
                spotted
                    .iter()
                    // What the inventory of senses says is not weighed by the model.
                    .filter(|spotted| spotted.spans.len() == 1 && spotted.best().0.sense.is_none())
                    .map(|spotted| (*spotted.features(), is_right(spotted)))
                    .collect(),
                n_gold,
            )
        })
        .collect();
    let mut examples = Examples::default();
    for (places, n_gold) in parts {
        examples.places.extend(places);
        examples.n_gold += n_gold;
    }
    examples
}

/// Logistic regression over all corpora, whatever their size.
pub fn fit(corpora: &[Examples], penalty: f64) -> Features {
    let weighed = corpora.iter().flat_map(|corpus| vec![corpus.places.as_slice(); corpus.weight.max(1)]);
    let places: Vec<&[(Features, bool)]> = weighed.collect();
    logistic(&places, penalty)
}

/// Precision, recall and F1 of the places at or above a threshold.
pub fn score(corpus: &Examples, model: &AcceptModel, threshold: f32) -> (f64, f64, f64) {
    let kept = corpus.places.iter().filter(|(features, _)| model.probability(features) >= threshold);
    let (n_kept, n_right) = kept.fold((0usize, 0usize), |(n, right), place| (n + 1, right + usize::from(place.1)));
    let precision = n_right as f64 / n_kept.max(1) as f64;
    let recall = n_right as f64 / corpus.n_gold.max(1) as f64;
    (precision, recall, 2.0 * precision * recall / (precision + recall).max(1e-9))
}

/// The expected calibration error of the scores that are given, in ten bins.
pub fn calibration_error(corpus: &Examples, model: &AcceptModel) -> f64 {
    let scored = corpus.places.iter().map(|(features, right)| (model.probability(features), *right));
    error_of(scored.filter(|(score, _)| *score >= model.threshold))
}

/// The threshold, in steps of a hundredth, with the best mean F1 over corpora.
pub fn best_threshold(corpora: &[Examples], model: &AcceptModel) -> f32 {
    let f1 = |corpus: &Examples, threshold| corpus.weight.max(1) as f64 * score(corpus, model, threshold).2;
    let mean = |threshold: f32| corpora.iter().map(|corpus| f1(corpus, threshold)).sum::<f64>();
    let steps = (5..80).map(|step| step as f32 / 100.0);
    steps.map(|step| (mean(step), step)).max_by(|a, b| a.0.total_cmp(&b.0)).map_or(0.5, |(_, step)| step)
}
