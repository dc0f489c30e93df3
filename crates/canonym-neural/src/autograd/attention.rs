//! Multi-head self-attention within each sequence (Vaswani et al. 2017), and its backward pass.

use std::sync::Arc;

use rayon::prelude::*;

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
    pub(super) input: Var,
    n_heads: usize,
    compute: Compute,
    segments: Arc<Segments>,
    /// Attention probabilities of each sequence and head before dropout, `[length, length]`, concatenated.
    probabilities: Vec<f32>,
    dropout: Option<Dropout>,
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
    /// Queries, keys and values in adjacent columns, `[length, 3 * width]`.
    input: &'a [f32],
    length: usize,
    width: usize,
    n_heads: usize,
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
        let (AttentionConfig { n_heads, dropout: rate }, compute) = (config, self.compute);
        let dropout = rng.filter(|_| rate > 0.0).map(|rng| Dropout { rate, seed: rng.next_u64() });
        let x = self.value(input);
        assert_eq!((x.n_cols % (3 * n_heads), x.n_rows), (0, segments.n_rows()), "columns of heads, rows of sequences");
        let mut value = Matrix::zeros(x.n_rows, x.n_cols / 3);
        let n_shares = segments.iter().map(|rows| n_heads * rows.len() * rows.len()).sum();
        let mut attention = Attention {
            input,
            n_heads,
            compute,
            segments: segments.clone(),
            probabilities: vec![0.0; n_shares],
            dropout,
        };
        attention.forward(x, &mut value, self.threads);
        self.push(value, Operation::Attention(Box::new(attention)), &[input])
    }
}

impl Attention {
    fn forward(&mut self, x: &Matrix, value: &mut Matrix, threads: Threads) {
        let mut probabilities = std::mem::take(&mut self.probabilities);
        let parts = self
            .sequences(x)
            .zip(self.split(&mut value.values, value.n_cols))
            .zip(self.split_shares(&mut probabilities));
        let each = |((sequence, out), probabilities): ((Sequence<'_>, &mut [f32]), &mut [f32])| {
            let Sequence { length, width, .. } = sequence;
            for (head, probabilities) in probabilities.chunks_exact_mut(length * length).enumerate() {
                let scores = ViewMut::of(probabilities, length, length);
                multiply_in(
                    self.compute,
                    scores,
                    sequence.queries(head),
                    sequence.keys(head).transposed(),
                    WriteMode::Replace,
                    Threads::One,
                );
                softmax_rows(probabilities, length, sequence.scale());
                let out = ViewMut::of(out, length, width).columns(head * sequence.depth(), sequence.depth());
                let dropped = self.dropped(&sequence, head, probabilities);
                let probabilities = View::of(dropped.as_deref().unwrap_or(probabilities), length, length);
                multiply_in(self.compute, out, probabilities, sequence.values(head), WriteMode::Replace, Threads::One);
            }
        };
        run(parts.collect(), each, threads);
        self.probabilities = probabilities;
    }

    /// Adds the gradient with respect to queries, keys and values `x` to `to`.
    pub(super) fn backward(&self, x: &Matrix, gradient: &Matrix, to: &mut Matrix, threads: Threads) {
        let parts = self.sequences(x).zip(self.split(&mut to.values, to.n_cols)).zip(self.cut_shares());
        let each = |((sequence, to), probabilities): ((Sequence<'_>, &mut [f32]), &[f32])| {
            let Sequence { at, length, width, .. } = sequence;
            let depth = sequence.depth();
            let first = self.segments.rows(at).start;
            let gradient = gradient.view().rows(first, length);
            let mut gradients = vec![0.0; length * length];
            for (head, probabilities) in probabilities.chunks_exact(length * length).enumerate() {
                let gradient = gradient.columns(head * depth, depth);
                let mask = self.mask(&sequence, head);
                let dropped = self.dropped(&sequence, head, probabilities);
                let mut add = |part: usize, left: View<'_>, right: View<'_>| {
                    let to = ViewMut::of(to, length, 3 * width).columns(part * width + head * depth, depth);
                    multiply_in(self.compute, to, left, right, WriteMode::Add, Threads::One);
                };
                add(2, View::of(dropped.as_deref().unwrap_or(probabilities), length, length).transposed(), gradient);
                let out = ViewMut::of(&mut gradients, length, length);
                multiply_in(
                    self.compute,
                    out,
                    gradient,
                    sequence.values(head).transposed(),
                    WriteMode::Replace,
                    Threads::One,
                );
                if let Some(mask) = &mask {
                    gradients.iter_mut().zip(mask).for_each(|(slope, factor)| *slope *= factor);
                }
                for (gradients, probabilities) in
                    gradients.chunks_exact_mut(length).zip(probabilities.chunks_exact(length))
                {
                    let mean = crate::tensor::matrix::dot(gradients, probabilities);
                    let scaled = |(slope, p): (&mut f32, &f32)| *slope = p * (*slope - mean) * sequence.scale();
                    gradients.iter_mut().zip(probabilities).for_each(scaled);
                }
                let gradients = View::of(&gradients, length, length);
                add(0, gradients, sequence.keys(head));
                add(1, gradients.transposed(), sequence.queries(head));
            }
        };
        run(parts.collect(), each, threads);
    }

    fn sequences<'a>(&'a self, x: &'a Matrix) -> impl Iterator<Item = Sequence<'a>> {
        let part = |(at, rows): (usize, std::ops::Range<usize>)| Sequence {
            at,
            length: rows.len(),
            input: &x.values[rows.start * x.n_cols..rows.end * x.n_cols],
            width: x.n_cols / 3,
            n_heads: self.n_heads,
        };
        self.segments.iter().enumerate().map(part)
    }

    /// Splits values by the rows of each sequence.
    fn split<'a>(&self, mut values: &'a mut [f32], n_cols: usize) -> impl Iterator<Item = &'a mut [f32]> {
        self.segments
            .iter()
            .map(move |rows| values.split_off_mut(..rows.len() * n_cols).expect("rows of all sequences"))
    }

    /// Splits attention probabilities by sequence.
    fn split_shares<'a>(&self, mut probabilities: &'a mut [f32]) -> impl Iterator<Item = &'a mut [f32]> {
        let n = |rows: std::ops::Range<usize>| self.n_heads * rows.len() * rows.len();
        self.segments
            .iter()
            .map(move |rows| probabilities.split_off_mut(..n(rows)).expect("probabilities of all sequences"))
    }

    fn cut_shares(&self) -> impl Iterator<Item = &[f32]> {
        let mut probabilities = self.probabilities.as_slice();
        let n = |rows: std::ops::Range<usize>| self.n_heads * rows.len() * rows.len();
        self.segments
            .iter()
            .map(move |rows| probabilities.split_off(..n(rows)).expect("probabilities of all sequences"))
    }

    /// Dropout mask of a head.
    fn mask(&self, sequence: &Sequence<'_>, head: usize) -> Option<Vec<f32>> {
        let Dropout { rate, seed } = self.dropout?;
        let mut rng = random::for_step(seed, (sequence.at * self.n_heads + head) as u64);
        Some(random::dropout_mask(sequence.length * sequence.length, rate, &mut rng))
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

    fn part(&self, part: usize, head: usize) -> View<'a> {
        let view = View::of(self.input, self.length, 3 * self.width);
        view.columns(part * self.width + head * self.depth(), self.depth())
    }

    fn queries(&self, head: usize) -> View<'a> {
        self.part(0, head)
    }

    fn keys(&self, head: usize) -> View<'a> {
        self.part(1, head)
    }

    fn values(&self, head: usize) -> View<'a> {
        self.part(2, head)
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
