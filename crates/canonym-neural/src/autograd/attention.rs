//! Multi-head attention (Vaswani et al. 2017): of each sequence to itself, to itself up to the present row (causal), or to another sequence
//! (cross-attention). [`cpu::attention`] computes it and its gradients.

use std::sync::Arc;

use super::ops::cpu::{self, attention::Dropout};
use super::{Operation, Tape, Var};
use crate::tensor::random::SplitMix64;
use crate::tensor::segments::Segments;

/// Attention settings.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AttentionConfig {
    /// Number of heads; divides the width.
    pub n_heads: usize,
    /// Dropout of attention probabilities, applied if a generator is given.
    pub dropout: f32,
}

/// A recorded attention.
#[derive(Debug)]
pub(super) struct Attention {
    /// Queries, in the first columns.
    pub(super) queries: Var,
    /// Keys and values, in adjacent columns.
    pub(super) context: Var,
    pub(super) computed: cpu::attention::Attention,
}

/// What attends to what, each with its sequences; the same on both sides in self-attention.
#[derive(Clone, Copy)]
struct Attending<'a> {
    queries: (Var, &'a Arc<Segments>),
    context: (Var, &'a Arc<Segments>),
    causal: bool,
}

impl Tape<'_> {
    /// Multi-head attention within each sequence: `softmax(queries · keysᵀ / √d) · values` per head, with `d = width / n_heads`. Queries,
    /// keys and values are in adjacent columns: `[rows, 3 * width]` to `[rows, width]`.
    ///
    /// # Panics
    /// If `n_heads` does not divide the width, or `segments` does not match the rows of the input.
    pub fn attention(
        &mut self,
        input: Var,
        config: AttentionConfig,
        segments: &Arc<Segments>,
        rng: Option<&mut SplitMix64>,
    ) -> Var {
        let side = (input, segments);
        self.attend(Attending { queries: side, context: side, causal: false }, config, rng)
    }

    /// As [`Tape::attention`], but no row attends to a later one, as in a decoder.
    ///
    /// # Panics
    /// Those of [`Tape::attention`].
    pub fn causal_attention(
        &mut self,
        input: Var,
        config: AttentionConfig,
        segments: &Arc<Segments>,
        rng: Option<&mut SplitMix64>,
    ) -> Var {
        let side = (input, segments);
        self.attend(Attending { queries: side, context: side, causal: true }, config, rng)
    }

    /// Attention of each sequence to the sequence of the same number in `context`, whose lengths may differ: queries `[rows, width]`, and
    /// keys and values in adjacent columns `[context rows, 2 * width]`, to `[rows, width]`.
    ///
    /// # Panics
    /// If `n_heads` does not divide the width, the numbers of sequences differ, or segments do not match the rows.
    pub fn cross_attention(
        &mut self,
        queries: (Var, &Arc<Segments>),
        context: (Var, &Arc<Segments>),
        config: AttentionConfig,
        rng: Option<&mut SplitMix64>,
    ) -> Var {
        self.attend(Attending { queries, context, causal: false }, config, rng)
    }

    fn attend(&mut self, of: Attending<'_>, config: AttentionConfig, rng: Option<&mut SplitMix64>) -> Var {
        let Attending { queries: (queries, query_segments), context: (context, key_segments), causal } = of;
        let (AttentionConfig { n_heads, dropout: rate }, compute) = (config, self.compute);
        let dropout = rng.filter(|_| rate > 0.0).map(|rng| Dropout { rate, seed: rng.next_u64() });
        let (x, seen) = (self.value(queries), self.value(context));
        let is_own = queries == context;
        let width = if is_own { x.n_cols / 3 } else { x.n_cols };
        let first_key = if is_own { width } else { 0 };
        assert_eq!((width % n_heads, first_key + 2 * width), (0, seen.n_cols), "columns of heads");
        assert_eq!((x.n_rows, seen.n_rows), (query_segments.n_rows(), key_segments.n_rows()), "rows of sequences");
        assert_eq!(query_segments.len(), key_segments.len(), "sequences that attend and are attended to");
        let mut computed = cpu::attention::Attention {
            first_key,
            width,
            n_heads,
            compute,
            query_segments: query_segments.clone(),
            key_segments: key_segments.clone(),
            causal,
            probabilities: Vec::new(),
            dropout,
        };
        let value = computed.forward(x, seen, self.threads);
        let attention = Attention { queries, context, computed };
        self.push(value, Operation::Attention(Box::new(attention)), &[queries, context])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::autograd::differences::{check, drawn};
    use crate::tensor::matrix::Matrix;
    use crate::tensor::parameters::Parameters;

    /// Attention of one head, computed from its definition.
    fn plain(x: &Matrix, rows: std::ops::Range<usize>, first: usize, depth: usize, width: usize) -> Vec<f32> {
        let at = |row: usize, part: usize| &x.row(row)[part * width + first..][..depth];
        let mut out = Vec::new();
        for query in rows.clone() {
            let score = |key| (crate::tensor::matrix::dot(at(query, 0), at(key, 1)) / (depth as f32).sqrt()).exp();
            let sum: f32 = rows.clone().map(score).sum();
            for col in 0..depth {
                out.push(rows.clone().map(|key| score(key) / sum * at(key, 2)[col]).sum());
            }
        }
        out
    }

    #[test]
    fn heads_see_their_columns_of_their_sequence_alone() {
        let mut rng = SplitMix64::new(5);
        let (parameters, x) = (Parameters::default(), drawn(9, 18, &mut rng));
        let segments = Arc::new(Segments::of_lengths([4, 1, 4]));
        let mut results = Vec::new();
        for mut tape in [Tape::new(&parameters), Tape::of_one_thread(&parameters, &Arc::default())] {
            let input = tape.input(x.clone());
            let output = tape.attention(input, AttentionConfig { n_heads: 2, dropout: 0.5 }, &segments, None);
            for rows in segments.iter() {
                for head in 0..2 {
                    let expected = plain(&x, rows.clone(), head * 3, 3, 6);
                    let made = rows.clone().flat_map(|row| &tape.value(output).row(row)[head * 3..][..3]);
                    made.zip(&expected).for_each(|(made, expected)| assert!((made - expected).abs() < 1e-5));
                }
            }
            results.push(tape.value(output).clone());
        }
        assert_eq!(results[0], results[1]);
    }

    #[test]
    fn the_gradient_is_that_of_differences_with_and_without_dropout() {
        let mut rng = SplitMix64::new(6);
        let mut parameters = Parameters::default();
        parameters.add("x", drawn(8, 12, &mut rng));
        let segments = Arc::new(Segments::of_lengths([5, 1, 2]));
        for seed in [None, Some(3)] {
            check(&parameters, |tape| {
                let x = tape.parameter("x").unwrap();
                let mut rng = seed.map(SplitMix64::new);
                tape.attention(x, AttentionConfig { n_heads: 2, dropout: 0.3 }, &segments, rng.as_mut())
            });
        }
    }

    #[test]
    fn a_causal_row_sees_only_rows_up_to_itself() {
        let mut rng = SplitMix64::new(7);
        let (parameters, x) = (Parameters::default(), drawn(4, 12, &mut rng));
        let config = AttentionConfig { n_heads: 2, dropout: 0.0 };
        let mut tape = Tape::new(&parameters);
        let input = tape.input(x.clone());
        let all = tape.causal_attention(input, config, &Arc::new(Segments::of_lengths([4])), None);
        for length in 1..=4 {
            let first = tape.input(Matrix::new(length, 12, x.values[..length * 12].to_vec()));
            let alone = tape.attention(first, config, &Arc::new(Segments::of_lengths([length])), None);
            let (all, alone) = (tape.value(all).row(length - 1), tape.value(alone).row(length - 1));
            all.iter().zip(alone).for_each(|(all, alone)| assert!((all - alone).abs() < 1e-5));
        }
    }

    #[test]
    fn sequences_attend_to_those_of_other_lengths() {
        let mut rng = SplitMix64::new(8);
        let (parameters, x) = (Parameters::default(), drawn(7, 12, &mut rng));
        let whole = Arc::new(Segments::of_lengths([5, 2]));
        let mut tape = Tape::new(&parameters);
        let input = tape.input(x.clone());
        let config = AttentionConfig { n_heads: 2, dropout: 0.0 };
        let all = tape.attention(input, config, &whole, None);
        // The queries of some rows alone, which attend to all rows of their sequence.
        let columns = |rows: &[usize], first: usize, n: usize| {
            let values = rows.iter().flat_map(|row| &x.row(*row)[first..][..n]).copied().collect();
            Matrix::new(rows.len(), n, values)
        };
        let queries = tape.input(columns(&[1, 4, 6], 0, 4));
        let context = tape.input(columns(&[0, 1, 2, 3, 4, 5, 6], 4, 8));
        let segments = Arc::new(Segments::of_lengths([2, 1]));
        let some = tape.cross_attention((queries, &segments), (context, &whole), config, None);
        for (row, of_all) in [1, 4, 6].into_iter().enumerate() {
            let pairs = tape.value(some).row(row).iter().zip(tape.value(all).row(of_all));
            pairs.for_each(|(some, all)| assert!((some - all).abs() < 1e-5));
        }
    }

    #[test]
    fn causal_and_cross_attention_have_the_gradient_of_differences() {
        let mut rng = SplitMix64::new(9);
        let mut parameters = Parameters::default();
        parameters.add("x", drawn(5, 12, &mut rng));
        parameters.add("context", drawn(6, 8, &mut rng));
        let segments = Arc::new(Segments::of_lengths([3, 2]));
        let of_context = Arc::new(Segments::of_lengths([2, 4]));
        for seed in [None, Some(3)] {
            check(&parameters, |tape| {
                let mut rng = seed.map(SplitMix64::new);
                let (x, context) = (tape.parameter("x").unwrap(), tape.parameter("context").unwrap());
                let config = AttentionConfig { n_heads: 2, dropout: 0.3 };
                let own = tape.causal_attention(x, config, &segments, rng.as_mut());
                tape.cross_attention((own, &segments), (context, &of_context), config, rng.as_mut())
            });
        }
    }

    #[test]
    fn dropout_leaves_shares_out_and_keeps_their_sum_on_average() {
        let parameters = Parameters::default();
        let segments = Arc::new(Segments::of_lengths([200]));
        let mut tape = Tape::new(&parameters);
        // Equal scores and values of 1: without dropout every output is 1.
        let mut x = Matrix::zeros(200, 3);
        (0..200).for_each(|row| x.row_mut(row)[2] = 1.0);
        let input = tape.input(x);
        let config = AttentionConfig { n_heads: 1, dropout: 0.25 };
        let output = tape.attention(input, config, &segments, Some(&mut SplitMix64::new(1)));
        let values = &tape.value(output).values;
        let mean = values.iter().sum::<f32>() / 200.0;
        assert!((mean - 1.0).abs() < 0.02 && values.iter().any(|value| (value - 1.0).abs() > 0.01), "{mean}");
    }
}
