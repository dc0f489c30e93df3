//! Multi-head attention of packed sequences, forward and backward; its record is in [`crate::autograd::Tape`].

use std::sync::Arc;

use rayon::prelude::*;

use super::add_to;
use crate::tensor::elementwise::softmax_rows;
use crate::tensor::matrix::{Compute, Matrix, Threads, View, ViewMut, WriteMode, dot, multiply_in};
use crate::tensor::random;
use crate::tensor::segments::Segments;

/// What attends to what, and the attention probabilities that the backward pass needs.
#[derive(Debug)]
pub(crate) struct Attention {
    /// First column of keys and values, which are adjacent columns of the context; queries are the first columns of theirs.
    pub first_key: usize,
    pub width: usize,
    pub n_heads: usize,
    pub compute: Compute,
    pub query_segments: Arc<Segments>,
    pub key_segments: Arc<Segments>,
    /// Whether no row attends to a later one.
    pub causal: bool,
    /// Attention probabilities of each sequence and head before dropout, `[queries, keys]`, concatenated; empty before the forward pass.
    pub probabilities: Vec<f32>,
    pub dropout: Option<Dropout>,
}

/// The dropout mask is drawn again in the backward pass instead of being stored.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Dropout {
    pub rate: f32,
    pub seed: u64,
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
pub(crate) type SequenceGradients = (Vec<f32>, Vec<f32>);

impl Attention {
    /// The output, given the values of queries and context; keeps the probabilities.
    pub(crate) fn forward(&mut self, x: &Matrix, seen: &Matrix, threads: Threads) -> Matrix {
        let mut value = Matrix::zeros(x.n_rows, self.width);
        let mut probabilities = vec![0.0; self.n_probabilities().sum()];
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
        value
    }

    /// The gradients of each sequence, given the values of queries and context.
    pub(crate) fn backward(
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
                let mean = dot(gradients, probabilities);
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
    pub(crate) fn add_queries(&self, gradients: &[SequenceGradients], to: &mut Matrix) {
        let rows = gradients.iter().flat_map(|(queries, _)| queries.chunks_exact(self.width));
        to.values.chunks_exact_mut(to.n_cols).zip(rows).for_each(|(to, from)| add_to(&mut to[..self.width], from));
    }

    /// Adds the gradients of keys and values to `to`, in the shape of their matrix.
    pub(crate) fn add_context(&self, gradients: &[SequenceGradients], to: &mut Matrix) {
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
