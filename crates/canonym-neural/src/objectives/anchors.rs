//! Shared by objectives over names: name tables, sampling of anchors, evaluation.

use crate::index::FlatIndex;
use crate::models::rescnn::infer::ResCnnEncoder;
use crate::tensor::random;
use canonym_core::eval::ranking::Ranks;

/// Names per part of a batch.
pub(super) const PART: usize = 128;

/// Tokenised names, with the concepts that each may mean.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Names {
    /// `input_ids` of each name.
    pub input_ids: Vec<Vec<u32>>,
    /// Concepts of each name, as numbers used in all tables of a run.
    pub concepts: Vec<Vec<u32>>,
}

/// The `batch` anchors of a step, from an infinite sequence of epochs that are shuffled separately.
pub(super) fn anchors_at(n_anchors: usize, seed: u64, step: u64, batch: usize) -> Vec<usize> {
    let mut chosen = Vec::with_capacity(batch);
    let mut order = Vec::new();
    let mut of_epoch = None;
    let first = step * batch as u64;
    for place in first..first + batch as u64 {
        let epoch = place / n_anchors as u64;
        if of_epoch != Some(epoch) {
            order = (0..n_anchors).collect();
            random::shuffle(&mut order, &mut random::for_step(!seed, epoch));
            of_epoch = Some(epoch);
        }
        chosen.push(order[(place % n_anchors as u64) as usize]);
    }
    chosen
}

/// Whether two label sets share a concept; they need not be sorted.
pub(super) fn intersect(left: &[u32], right: &[u32]) -> bool {
    left.iter().any(|label| right.contains(label))
}

/// Fraction of queries whose nearest name by cosine has a correct concept.
pub(super) fn accuracy_at_1(encoder: &ResCnnEncoder, queries: &Names, names: &Names) -> f64 {
    let index = FlatIndex::new(encoder.encode(&names.input_ids));
    let found = index.search(&encoder.encode(&queries.input_ids), 1);
    let rank = |(hits, gold): (&Vec<crate::index::Hit>, &Vec<u32>)| {
        hits.iter().position(|hit| intersect(gold, &names.concepts[hit.row as usize]))
    };
    let ranks: Vec<Option<usize>> = found.iter().zip(&queries.concepts).map(rank).collect();
    Ranks::of(&ranks).accuracy_at(1)
}
