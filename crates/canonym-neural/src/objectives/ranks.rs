//! Ranking metrics of a dual encoder on given mentions.

use canonym_core::Result;
use canonym_core::eval::ranking::Ranks;
use rayon::prelude::*;
use serde::Serialize;

use crate::models::dual_encoder::infer::DualEncoder;
use crate::objectives::Names;
use crate::objectives::linking::{Target, TrainingText, vectors};
use crate::tensor::matrix::{Matrix, Threads, WriteMode, multiply};

/// Mentions per batch.
const TOGETHER: usize = 256;

/// Ranking metrics over all concepts that have a name.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct RankMetrics {
    /// Mentions with a gold concept, including those whose concept has no name; the latter are always wrong.
    pub n_mentions: usize,
    /// Accuracy@1: fraction with the nearest concept correct.
    pub accuracy_at_1: f64,
    /// Fraction with a correct concept among the ten nearest.
    pub recall_at_10: f64,
    /// Fraction with a correct concept among the twenty nearest.
    pub recall_at_20: f64,
    /// Mean reciprocal rank of the first correct concept; equals MAP with a single correct concept.
    pub mean_reciprocal_rank: f64,
}

impl RankMetrics {
    /// Metrics from the results of [`ranks`].
    pub fn of(ranks: &[Option<usize>]) -> RankMetrics {
        let measures = Ranks::of(ranks);
        RankMetrics {
            n_mentions: ranks.len(),
            accuracy_at_1: measures.accuracy_at(1),
            recall_at_10: measures.accuracy_at(10),
            recall_at_20: measures.accuracy_at(20),
            mean_reciprocal_rank: measures.mrr(),
        }
    }
}

/// For each mention with a gold concept, the number of concepts ranked before the first correct one; `None` if no correct concept has a
/// name. A concept is ranked by its nearest name, ties in row order. `rows` are the name embeddings.
pub fn ranks(
    encoder: &DualEncoder,
    rows: &Matrix,
    texts: &[TrainingText],
    names: &Names,
) -> Result<Vec<Option<usize>>> {
    let mentions = vectors(encoder, texts)?;
    let targets: Vec<&Target> = texts.iter().flat_map(|text| &text.mentions).collect();
    let n_concepts = names.concepts.iter().flatten().max().map_or(0, |max| *max as usize + 1);
    let rank = |best: &mut Vec<(f32, usize)>, (scores, target): (&[f32], &&Target)| {
        if !target.is_linked {
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
        multiply(scores.view_mut(), these, rows.view().transposed(), WriteMode::Replace, Threads::All);
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
        let (model, parameters) = drawn(MentionVector::BoundaryTokens, NameVector::Pooler, None);
        let encoder = DualEncoder::new(&model, &parameters).unwrap();
        let target =
            |concepts: &[u32], is_linked: bool| Target { first: 1, last: 2, concepts: concepts.to_vec(), is_linked };
        // A mention, an unlinked one, and one whose concept has no name.
        let mentions = vec![target(&[1], true), target(&[], false), target(&[], true)];
        let texts = [TrainingText { rows: vec![1, 2, 3, 4], mentions, ..TrainingText::default() }];
        let mention = vectors(&encoder, &texts).unwrap();
        let scaled = |factor: f32| mention.row(0).iter().map(|value| value * factor).collect::<Vec<f32>>();
        let ranked = |factors: [f32; 4]| {
            let rows = Matrix::new(4, 12, factors.iter().flat_map(|factor| scaled(*factor)).collect());
            let names = Names { input_ids: vec![vec![1]; 4], concepts: vec![vec![0], vec![1], vec![1], vec![2]] };
            RankMetrics::of(&ranks(&encoder, &rows, &texts, &names).unwrap())
        };
        let first = ranked([0.5, 0.1, 0.9, 0.6]);
        assert_eq!((first.n_mentions, first.accuracy_at_1, first.mean_reciprocal_rank), (2, 0.5, 0.5));
        // Ties are in row order, and two names of a concept count once.
        let second = ranked([0.5, 0.1, 0.5, 0.2]);
        assert_eq!((second.accuracy_at_1, second.recall_at_10, second.mean_reciprocal_rank), (0.0, 0.5, 0.25));
    }
}
