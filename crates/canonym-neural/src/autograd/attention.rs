//! Multi-head attention (Vaswani et al. 2017): of each sequence to itself, to itself up to the present row (causal), or to another sequence
//! (cross-attention), and its backward pass.

use std::sync::Arc;

use rayon::prelude::*;

use super::ops::cpu::add_to;
use super::{Operation, Tape, Var};
use crate::tensor::elementwise::softmax_rows;
use crate::tensor::matrix::{Compute, Matrix, Threads, View, ViewMut, WriteMode, multiply_in};
use crate::tensor::random::{self, SplitMix64};
use crate::tensor::segments::Segments;

/// Attention settings.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AttentionConfig {
    /// Number of heads; divides the width.
    pub n_heads: usize,
    /// Dropout of attention probabilities, applied if a generator is given.
    pub dropout: f32,
}

/// What the backward pass needs.
#[derive(Debug)]
pub(super) struct Attention {
    /// Queries, in the first columns.
    pub(super) queries: Var,
    /// Keys and values, in adjacent columns from `first_key`.
    pub(super) context: Var,
    first_key: usize,
    width: usize,
    n_heads: usize,
    compute: Compute,
    query_segments: Arc<Segments>,
    key_segments: Arc<Segments>,
    causal: bool,
    /// Attention probabilities of each sequence and head before dropout, `[queries, keys]`, concatenated.
    probabilities: Vec<f32>,
    dropout: Option<Dropout>,
}

/// What attends to what, each with its sequences; the same on both sides in self-attention.
#[derive(Clone, Copy)]
struct Attending<'a> {
    queries: (Var, &'a Arc<Segments>),
    context: (Var, &'a Arc<Segments>),
    causal: bool,
}

/// The dropout mask is drawn again in the backward pass instead of being stored.
#[derive(Debug, Clone, Copy)]
struct Dropout {
    rate: f32,
    seed: u64,
}

/// One sequence of the batch.
struct Sequence<'a> {
    at: usize,
    /// `[n_queries, width]`.
    queries: View<'a>,
    /// Keys and values, `[n_keys, 2 * width]`.
    context: View<'a>,
    n_queries: usize,
    n_keys: usize,
    width: usize,
    n_heads: usize,
}

/// Gradients of one sequence: of its queries, and of its keys and values.
type SequenceGradients = (Vec<f32>, Vec<f32>);

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
        let pairs = query_segments.iter().zip(key_segments.iter());
        let n_probabilities = pairs.map(|(queries, keys)| n_heads * queries.len() * keys.len()).sum();
        let mut value = Matrix::zeros(x.n_rows, width);
        let mut attention = Attention {
            queries,
            context,
            first_key,
            width,
            n_heads,
            compute,
            query_segments: query_segments.clone(),
            key_segments: key_segments.clone(),
            causal,
            probabilities: vec![0.0; n_probabilities],
            dropout,
        };
        attention.forward(x, seen, &mut value, self.threads);
        self.push(value, Operation::Attention(Box::new(attention)), &[queries, context])
    }
}

impl Attention {
    fn forward(&mut self, x: &Matrix, seen: &Matrix, value: &mut Matrix, threads: Threads) {
        let mut probabilities = std::mem::take(&mut self.probabilities);
        let parts = self
            .sequences(x, seen)
            .zip(self.split(&mut value.values))
            .zip(self.split_probabilities(&mut probabilities));
        let each = |((sequence, out), probabilities): ((Sequence<'_>, &mut [f32]), &mut [f32])| {
            let Sequence { n_queries, n_keys, width, .. } = sequence;
            for (head, probabilities) in probabilities.chunks_exact_mut(n_queries * n_keys).enumerate() {
                multiply_in(
                    self.compute,
                    ViewMut::of(probabilities, n_queries, n_keys),
                    sequence.queries(head),
                    sequence.keys(head).transposed(),
                    WriteMode::Replace,
                    Threads::One,
                );
                if self.causal {
                    for (row, scores) in probabilities.chunks_exact_mut(n_keys).enumerate() {
                        scores[row + 1..].fill(f32::NEG_INFINITY);
                    }
                }
                softmax_rows(probabilities, n_keys, sequence.scale());
                let out = ViewMut::of(out, n_queries, width).columns(head * sequence.depth(), sequence.depth());
                let dropped = self.dropped(&sequence, head, probabilities);
                let probabilities = View::of(dropped.as_deref().unwrap_or(probabilities), n_queries, n_keys);
                multiply_in(self.compute, out, probabilities, sequence.values(head), WriteMode::Replace, Threads::One);
            }
        };
        run(parts.collect(), each, threads);
        self.probabilities = probabilities;
    }

    /// The gradients of each sequence, given the values of queries and context.
    pub(super) fn backward(
        &self,
        x: &Matrix,
        seen: &Matrix,
        gradient: &Matrix,
        threads: Threads,
    ) -> Vec<SequenceGradients> {
        let each = |(sequence, probabilities): (Sequence<'_>, &[f32])| {
            let gradient = gradient.view().rows(self.query_segments.rows(sequence.at).start, sequence.n_queries);
            self.sequence_back(&sequence, probabilities, gradient)
        };
        let parts: Vec<(Sequence<'_>, &[f32])> = self.sequences(x, seen).zip(self.probabilities_of()).collect();
        match threads {
            Threads::One => parts.into_iter().map(each).collect(),
            Threads::All => parts.into_par_iter().map(each).collect(),
        }
    }

    fn sequence_back(&self, sequence: &Sequence<'_>, probabilities: &[f32], gradient: View<'_>) -> SequenceGradients {
        let Sequence { n_queries, n_keys, width, .. } = *sequence;
        let depth = sequence.depth();
        let (mut of_queries, mut of_context) = (vec![0.0; n_queries * width], vec![0.0; n_keys * 2 * width]);
        let mut gradients = vec![0.0; n_queries * n_keys];
        let add = |to: &mut [f32], n_rows: usize, first: usize, left: View<'_>, right: View<'_>| {
            let n_cols = to.len() / n_rows;
            let to = ViewMut::of(to, n_rows, n_cols).columns(first, depth);
            multiply_in(self.compute, to, left, right, WriteMode::Add, Threads::One);
        };
        for (head, probabilities) in probabilities.chunks_exact(n_queries * n_keys).enumerate() {
            let gradient = gradient.columns(head * depth, depth);
            let mask = self.mask(sequence, head);
            let dropped = self.dropped(sequence, head, probabilities);
            let dropped_probabilities = View::of(dropped.as_deref().unwrap_or(probabilities), n_queries, n_keys);
            add(&mut of_context, n_keys, width + head * depth, dropped_probabilities.transposed(), gradient);
            multiply_in(
                self.compute,
                ViewMut::of(&mut gradients, n_queries, n_keys),
                gradient,
                sequence.values(head).transposed(),
                WriteMode::Replace,
                Threads::One,
            );
            if let Some(mask) = &mask {
                gradients.iter_mut().zip(mask).for_each(|(slope, factor)| *slope *= factor);
            }
            for (gradients, probabilities) in gradients.chunks_exact_mut(n_keys).zip(probabilities.chunks_exact(n_keys))
            {
                let mean = crate::tensor::matrix::dot(gradients, probabilities);
                let scaled = |(slope, p): (&mut f32, &f32)| *slope = p * (*slope - mean) * sequence.scale();
                gradients.iter_mut().zip(probabilities).for_each(scaled);
            }
            let gradients = View::of(&gradients, n_queries, n_keys);
            add(&mut of_queries, n_queries, head * depth, gradients, sequence.keys(head));
            add(&mut of_context, n_keys, head * depth, gradients.transposed(), sequence.queries(head));
        }
        (of_queries, of_context)
    }

    /// Adds the gradients of queries to `to`, in the shape of their matrix.
    pub(super) fn add_queries(&self, gradients: &[SequenceGradients], to: &mut Matrix) {
        let rows = gradients.iter().flat_map(|(queries, _)| queries.chunks_exact(self.width));
        to.values.chunks_exact_mut(to.n_cols).zip(rows).for_each(|(to, from)| add_to(&mut to[..self.width], from));
    }

    /// Adds the gradients of keys and values to `to`, in the shape of their matrix.
    pub(super) fn add_context(&self, gradients: &[SequenceGradients], to: &mut Matrix) {
        let rows = gradients.iter().flat_map(|(_, context)| context.chunks_exact(2 * self.width));
        to.values.chunks_exact_mut(to.n_cols).zip(rows).for_each(|(to, from)| add_to(&mut to[self.first_key..], from));
    }

    fn sequences<'a>(&'a self, x: &'a Matrix, seen: &'a Matrix) -> impl Iterator<Item = Sequence<'a>> {
        let part = |(at, (queries, keys)): (usize, (std::ops::Range<usize>, std::ops::Range<usize>))| Sequence {
            at,
            queries: x.view().rows(queries.start, queries.len()).columns(0, self.width),
            context: seen.view().rows(keys.start, keys.len()).columns(self.first_key, 2 * self.width),
            n_queries: queries.len(),
            n_keys: keys.len(),
            width: self.width,
            n_heads: self.n_heads,
        };
        self.query_segments.iter().zip(self.key_segments.iter()).enumerate().map(part)
    }

    /// Splits output values by sequence.
    fn split<'a>(&self, mut values: &'a mut [f32]) -> impl Iterator<Item = &'a mut [f32]> {
        self.query_segments
            .iter()
            .map(move |rows| values.split_off_mut(..rows.len() * self.width).expect("rows of all sequences"))
    }

    /// Number of attention probabilities of each sequence.
    fn n_probabilities(&self) -> impl Iterator<Item = usize> {
        let pairs = self.query_segments.iter().zip(self.key_segments.iter());
        pairs.map(|(queries, keys)| self.n_heads * queries.len() * keys.len())
    }

    /// Splits attention probabilities by sequence.
    fn split_probabilities<'a>(&self, mut probabilities: &'a mut [f32]) -> impl Iterator<Item = &'a mut [f32]> {
        self.n_probabilities().map(move |n| probabilities.split_off_mut(..n).expect("probabilities of all sequences"))
    }

    fn probabilities_of(&self) -> impl Iterator<Item = &[f32]> {
        let mut probabilities = self.probabilities.as_slice();
        self.n_probabilities().map(move |n| probabilities.split_off(..n).expect("probabilities of all sequences"))
    }

    /// Dropout mask of a head.
    fn mask(&self, sequence: &Sequence<'_>, head: usize) -> Option<Vec<f32>> {
        let Dropout { rate, seed } = self.dropout?;
        let mut rng = random::for_step(seed, (sequence.at * self.n_heads + head) as u64);
        Some(random::dropout_mask(sequence.n_queries * sequence.n_keys, rate, &mut rng))
    }

    fn dropped(&self, sequence: &Sequence<'_>, head: usize, probabilities: &[f32]) -> Option<Vec<f32>> {
        let mut mask = self.mask(sequence, head)?;
        mask.iter_mut().zip(probabilities).for_each(|(factor, p)| *factor *= p);
        Some(mask)
    }
}

impl<'a> Sequence<'a> {
    fn depth(&self) -> usize {
        self.width / self.n_heads
    }

    fn scale(&self) -> f32 {
        1.0 / (self.depth() as f32).sqrt()
    }

    fn queries(&self, head: usize) -> View<'a> {
        self.queries.columns(head * self.depth(), self.depth())
    }

    fn keys(&self, head: usize) -> View<'a> {
        self.context.columns(head * self.depth(), self.depth())
    }

    fn values(&self, head: usize) -> View<'a> {
        self.context.columns(self.width + head * self.depth(), self.depth())
    }
}

/// Runs `each` on all parts, in parallel if other threads may be used.
fn run<T: Send>(parts: Vec<T>, each: impl Fn(T) + Sync + Send, threads: Threads) {
    match threads {
        Threads::One => parts.into_iter().for_each(each),
        Threads::All => parts.into_par_iter().for_each(each),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::autograd::differences::{check, drawn};
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
