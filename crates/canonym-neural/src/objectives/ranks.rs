//! How well the dual encoder links mentions that are given.

use canonym_core::Result;
use rayon::prelude::*;
use serde::Serialize;

use crate::models::dual_encoder::infer::DualEncoder;
use crate::objectives::Names;
use crate::objectives::linking::{Target, TrainingText, vectors};
use crate::tensor::matrix::{Into, Matrix, Threads, multiply};

/// Mentions that are compared with all names at a time.
const TOGETHER: usize = 256;

/// How well given mentions are linked, among all concepts that have a name.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Ranks {
    /// Mentions that mean a concept; those whose concept has no name are among them, and never right.
    pub n_mentions: usize,
    /// The share whose nearest concept is right: P@1.
    pub accuracy_at_1: f64,
    /// The share with a right concept among the ten nearest.
    pub recall_at_10: f64,
    /// The mean of one over the rank of the first right concept, which is MAP where one concept is right.
    pub mean_reciprocal_rank: f64,
}

impl Ranks {
    /// Of what [`ranks`] says of each mention.
    pub fn of(ranks: &[Option<usize>]) -> Ranks {
        let n = ranks.len().max(1) as f64;
        let share = |below: usize| ranks.iter().flatten().filter(|rank| **rank < below).count() as f64 / n;
        Ranks {
            n_mentions: ranks.len(),
            accuracy_at_1: share(1),
            recall_at_10: share(10),
            mean_reciprocal_rank: ranks
                .iter()
                .flatten()
                .map(|rank| 1.0 / (*rank as f64 + 1.0))
                .fold(0.0, |sum: f64, one| sum + one)
                / n,
        }
    }
}

/// Ranks all concepts for each mention that means one, and gives the number of concepts before the first right one, `None` where no right one
/// has a name. A concept is as near as its nearest name; of equal ones the first row comes first. `rows` are the vectors of the names.
pub fn ranks(
    encoder: &DualEncoder,
    rows: &Matrix,
    readings: &[TrainingText],
    names: &Names,
) -> Result<Vec<Option<usize>>> {
    let mentions = vectors(encoder, readings)?;
    let targets: Vec<&Target> = readings.iter().flat_map(|reading| &reading.mentions).collect();
    let n_concepts = names.concepts.iter().flatten().max().map_or(0, |most| *most as usize + 1);
    let rank = |best: &mut Vec<(f32, usize)>, (scores, target): (&[f32], &&Target)| {
        if !target.means_something {
            return None;
        }
        best.clear();
        best.resize(n_concepts, (f32::NEG_INFINITY, 0));
        for (row, (score, concepts)) in scores.iter().zip(&names.concepts).enumerate() {
            for concept in concepts {
                if *score > best[*concept as usize].0 {
                    best[*concept as usize] = (*score, row);
                }
            }
        }
        let before =
            |left: &(f32, usize), right: &(f32, usize)| left.0 > right.0 || (left.0 == right.0 && left.1 < right.1);
        let right = target.concepts.iter().map(|concept| best[*concept as usize]);
        let right = right.reduce(|left, right| if before(&right, &left) { right } else { left });
        Some(right.map(|right| best.iter().filter(|other| before(other, &right)).count()))
    };
    let mut ranks = Vec::new();
    for first in (0..mentions.n_rows).step_by(TOGETHER) {
        let n = TOGETHER.min(mentions.n_rows - first);
        let mut scores = Matrix::zeros(n, rows.n_rows);
        let these = mentions.view().rows(first, n);
        multiply(scores.view_mut(), these, rows.view().transposed(), Into::Replace, Threads::All);
        let each = scores.values.par_chunks(rows.n_rows.max(1)).zip(&targets[first..first + n]);
        ranks.extend(each.map_init(Vec::new, rank).collect::<Vec<_>>().into_iter().flatten());
    }
    Ok(ranks)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::models::dual_encoder::tests::drawn;
    use crate::models::dual_encoder::{MentionVector, NameVector};

    #[test]
    fn ranks_count_concepts_by_their_nearest_names() {
        let (model, parameters) = drawn(MentionVector::Ends, NameVector::Pooler, None);
        let encoder = DualEncoder::new(&model, &parameters).unwrap();
        let target = |concepts: &[u32], means_something: bool| Target {
            first: 1,
            last: 2,
            concepts: concepts.to_vec(),
            means_something,
        };
        // A mention, one without a concept, and one whose concept has no name.
        let mentions = vec![target(&[1], true), target(&[], false), target(&[], true)];
        let readings = [TrainingText { rows: vec![1, 2, 3, 4], mentions, ..TrainingText::default() }];
        let mention = vectors(&encoder, &readings).unwrap();
        let scaled = |factor: f32| mention.row(0).iter().map(|value| value * factor).collect::<Vec<f32>>();
        let ranked = |factors: [f32; 4]| {
            let rows = Matrix::new(4, 12, factors.iter().flat_map(|factor| scaled(*factor)).collect());
            let names = Names { pieces: vec![vec![1]; 4], concepts: vec![vec![0], vec![1], vec![1], vec![2]] };
            Ranks::of(&ranks(&encoder, &rows, &readings, &names).unwrap())
        };
        let first = ranked([0.5, 0.1, 0.9, 0.6]);
        assert_eq!((first.n_mentions, first.accuracy_at_1, first.mean_reciprocal_rank), (2, 0.5, 0.5));
        // Equal names: the first row comes first. Two names of one concept count once.
        let second = ranked([0.5, 0.1, 0.5, 0.2]);
        assert_eq!((second.accuracy_at_1, second.recall_at_10, second.mean_reciprocal_rank), (0.0, 0.5, 0.25));
    }
}
