//! What objectives over names share: the names themselves, the order in which they are learned from, and how they are judged.

use crate::index::FlatIndex;
use crate::models::rescnn::infer::ResCnnEncoder;
use crate::tensor::random;

/// Names that one thread takes at a time.
pub(super) const PART: usize = 128;

/// Names as pieces, with the concepts that each may mean.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Names {
    /// Rows of the vocabulary.
    pub pieces: Vec<Vec<u32>>,
    /// Concepts by number, the same numbers in every table of a run.
    pub concepts: Vec<Vec<u32>>,
}

/// The anchors of a step, `batch` of them: a stretch of the endless sequence of epochs, each of which has its own order.
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

/// Whether two sorted or unsorted label sets share a concept.
pub(super) fn intersect(left: &[u32], right: &[u32]) -> bool {
    left.iter().any(|label| right.contains(label))
}

/// The share of queries whose nearest name by cosine is one of a right concept.
pub(super) fn accuracy_at_1(encoder: &ResCnnEncoder, queries: &Names, names: &Names) -> f64 {
    let index = FlatIndex::new(encoder.encode(&names.pieces));
    let found = index.search(&encoder.encode(&queries.pieces), 1);
    let right = |(hits, gold): &(&Vec<crate::index::Hit>, &Vec<u32>)| {
        hits.first().is_some_and(|hit| intersect(gold, &names.concepts[hit.row as usize]))
    };
    let n_right = found.iter().zip(&queries.concepts).filter(right).count();
    n_right as f64 / queries.pieces.len().max(1) as f64
}
