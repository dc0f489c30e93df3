//! BERT inference: the same results as [`crate::models::bert`], without a tape.
//!
//! Sequences are packed into tiles whose activations stay in the cache through all layers, one tile per thread. If there is only one tile,
//! its matrix products, attention heads and rows are split across threads instead, which keeps the latency of a single short text low.
//!
//! Attention is computed per head and per block of queries; the attention probabilities of a block are not kept.

use canonym_core::Result;
use rayon::prelude::*;

use crate::layers::linear::PanelLinear;
use crate::layers::norm::LayerNorm;
use crate::models::bert::{BertConfig, Sequences};
use crate::tensor::elementwise::{Activation, softmax_rows};
use crate::tensor::matrix::{Matrix, Threads, View, ViewMut, WriteMode, multiply_in};
use crate::tensor::parameters::Parameters;
use crate::tensor::segments::Segments;

/// Maximum rows of a tile: large enough to amortise loading the weights, small enough for the cache.
const TILE: usize = 256;

/// Minimum rows of a tile, given that many rows in the batch.
const MIN_TILE: usize = 128;

/// Number of tiles that a batch is split into before tiles grow.
const MANY_TILES: usize = 4;

/// Queries per attention block.
const QUERIES: usize = 128;

/// Rows per thread of the activation when a tile is split across threads.
const ROWS: usize = 32;

/// Encodes wordpieces and whole sequences.
#[derive(Debug)]
pub struct BertEncoder {
    config: BertConfig,
    words: Matrix,
    positions: Matrix,
    types: Matrix,
    norm: LayerNorm,
    layers: Vec<Layer>,
    pooler: Option<PanelLinear>,
}

/// How the wordpiece vectors of a sequence are pooled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pooling {
    /// The vector of the first wordpiece, `[CLS]`.
    First,
    /// The mean over all wordpieces.
    Mean,
    /// The pooler applied to `[CLS]`.
    Pooler,
}

#[derive(Debug)]
struct Layer {
    attention_input: PanelLinear,
    attention_output: PanelLinear,
    attention_norm: LayerNorm,
    inner: PanelLinear,
    outer: PanelLinear,
    norm: LayerNorm,
}

/// Work buffers of one tile.
#[derive(Debug, Default)]
struct Scratch {
    rows: Vec<f32>,
    /// Queries, keys and values; later the intermediate layer.
    wide: Vec<f32>,
    /// Outputs of the attention heads, head by head within each sequence.
    heads: Vec<f32>,
    context: Vec<f32>,
    outer: Vec<f32>,
}

impl BertEncoder {
    /// Builds an encoder from the weights under `scope`.
    pub fn new(config: &BertConfig, parameters: &Parameters, scope: &str) -> Result<BertEncoder> {
        config.check(parameters, scope)?;
        let epsilon = config.layer_norm_eps;
        let layer = |layer: usize| -> Result<Layer> {
            let linear =
                |name: &str| PanelLinear::of(parameters, &format!("{scope}layer.{layer}.{name}"), config.compute);
            let norm = |name: &str| LayerNorm::of(parameters, &format!("{scope}layer.{layer}.{name}"), epsilon);
            Ok(Layer {
                attention_input: linear("attention.input")?,
                attention_output: linear("attention.output")?,
                attention_norm: norm("attention.norm")?,
                inner: linear("feed_forward.inner")?,
                outer: linear("feed_forward.outer")?,
                norm: norm("feed_forward.norm")?,
            })
        };
        let table = |name: &str| parameters.get(&format!("{scope}embedding.{name}")).cloned();
        Ok(BertEncoder {
            config: config.clone(),
            words: table("word")?,
            positions: table("position")?,
            types: table("type")?,
            norm: LayerNorm::of(parameters, &format!("{scope}embedding.norm"), epsilon)?,
            layers: (0..config.num_hidden_layers).map(layer).collect::<Result<_>>()?,
            pooler: PanelLinear::of(parameters, &format!("{scope}pooler"), config.compute).ok(),
        })
    }

    /// Dimension of the vectors.
    pub fn dim(&self) -> usize {
        self.config.hidden_size
    }

    /// Wordpiece vectors, `[rows, hidden]`. Each depends only on its own sequence.
    pub fn encode(&self, sequences: &Sequences) -> Result<Matrix> {
        self.config.check_sequences(sequences)?;
        Ok(self.encode_tiles(sequences, sequences.segments().n_rows(), None))
    }

    /// Pooled vector of each sequence, `[sequences, hidden]`, not normalised. It does not depend on the other sequences.
    pub fn encode_pooled(&self, sequences: &Sequences, pooling: Pooling) -> Result<Matrix> {
        self.config.check_sequences(sequences)?;
        if pooling == Pooling::Pooler && self.pooler.is_none() {
            let hint = "use mean or first-token pooling, or a checkpoint with a pooler";
            return Err(canonym_core::Error::unsupported("the model has no pooler").with_hint(hint));
        }
        Ok(self.encode_tiles(sequences, sequences.len(), Some(pooling)))
    }

    fn encode_tiles(&self, sequences: &Sequences, n_rows: usize, pooling: Option<Pooling>) -> Matrix {
        let borders = tiles(sequences.segments());
        let threads = if borders.len() > 2 { Threads::One } else { Threads::All };
        let tile = |scratch: &mut Scratch, range: &[usize]| {
            self.encode_tile(&sequences.slice(range[0]..range[1]), pooling, scratch, threads)
        };
        let encoded: Vec<Vec<f32>> = match threads {
            Threads::One => borders.par_windows(2).map_init(Scratch::default, tile).collect(),
            Threads::All => borders.windows(2).map(|range| tile(&mut Scratch::default(), range)).collect(),
        };
        Matrix::new(n_rows, self.dim(), encoded.concat())
    }

    fn encode_tile(
        &self,
        sequences: &Sequences,
        pooling: Option<Pooling>,
        scratch: &mut Scratch,
        threads: Threads,
    ) -> Vec<f32> {
        let Scratch { rows, wide, heads, context, outer } = scratch;
        let (width, segments) = (self.dim(), sequences.segments());
        let mut n_rows = segments.n_rows();
        self.embed(sequences, rows);
        // If only `[CLS]` is used, the last layer is computed for that row alone.
        let first = matches!(pooling, Some(Pooling::First | Pooling::Pooler));
        for (at, layer) in self.layers.iter().enumerate() {
            layer.attention_input.apply(rows, n_rows, wide, threads);
            if first && at + 1 == self.layers.len() {
                keep_first(rows, width, segments);
                n_rows = segments.len();
            }
            self.attend(wide, segments, n_rows, heads, context, threads);
            layer.attention_output.multiply(context, n_rows, outer, threads);
            layer.attention_norm.add(rows, outer, &layer.attention_output.bias, threads);
            layer.inner.multiply(rows, n_rows, wide, threads);
            activate(self.config.hidden_act, wide, &layer.inner.bias, threads);
            layer.outer.multiply(wide, n_rows, outer, threads);
            layer.norm.add(rows, outer, &layer.outer.bias, threads);
        }
        if first && n_rows > segments.len() {
            keep_first(rows, width, segments);
        }
        match pooling {
            None | Some(Pooling::First) => rows.clone(),
            Some(Pooling::Mean) => means(rows, width, segments),
            Some(Pooling::Pooler) => {
                let pooler = self.pooler.as_ref().expect("it was asked for before");
                let mut pooled = Vec::new();
                pooler.multiply(rows, segments.len(), &mut pooled, threads);
                Activation::Tanh.apply_with_bias(&mut pooled, &pooler.bias);
                pooled
            }
        }
    }

    fn embed(&self, sequences: &Sequences, rows: &mut Vec<f32>) {
        rows.clear();
        let places = sequences.segments().iter().flat_map(|rows| 0..rows.len());
        for ((piece, of_type), place) in sequences.input_ids().iter().zip(sequences.types()).zip(places) {
            let (word, position) = (self.words.row(*piece as usize), self.positions.row(place));
            let sums = word.iter().zip(position).zip(self.types.row(*of_type as usize));
            rows.extend(sums.map(|((word, position), of_type)| word + position + of_type));
        }
        self.norm.apply_to(rows);
    }

    /// Multi-head attention from queries, keys and values into `context`, for all rows or for the first row of each sequence.
    fn attend(
        &self,
        wide: &[f32],
        segments: &Segments,
        n_rows: usize,
        heads: &mut Vec<f32>,
        context: &mut Vec<f32>,
        threads: Threads,
    ) {
        let (width, n_heads, compute) = (self.dim(), self.config.num_attention_heads, self.config.compute);
        let depth = width / n_heads;
        let n_queries = |rows: usize| if n_rows == segments.n_rows() { rows } else { 1 };
        heads.resize(n_rows * width, 0.0);
        let mut rest = heads.as_mut_slice();
        let mut jobs = Vec::with_capacity(segments.len() * n_heads);
        for rows in segments.iter() {
            for head in 0..n_heads {
                let out = rest.split_off_mut(..n_queries(rows.len()) * depth).expect("rows of all heads");
                jobs.push((rows.clone(), head, out));
            }
        }
        let each = |scores: &mut Vec<f32>, (rows, head, out): (std::ops::Range<usize>, usize, &mut [f32])| {
            let part = |part| {
                View::of(&wide[rows.start * 3 * width..], rows.len(), 3 * width)
                    .columns(part * width + head * depth, depth)
            };
            let (queries, keys, values) = (part(0), part(1).transposed(), part(2));
            for (block, out) in out.chunks_mut(QUERIES * depth).enumerate() {
                let n = out.len() / depth;
                scores.resize(n * rows.len(), 0.0);
                let to = ViewMut::of(scores, n, rows.len());
                multiply_in(compute, to, queries.rows(block * QUERIES, n), keys, WriteMode::Replace, Threads::One);
                softmax_rows(scores, rows.len(), 1.0 / (depth as f32).sqrt());
                let probabilities = View::of(scores, n, rows.len());
                multiply_in(
                    compute,
                    ViewMut::of(out, n, depth),
                    probabilities,
                    values,
                    WriteMode::Replace,
                    Threads::One,
                );
            }
        };
        match threads {
            Threads::One => {
                let mut scores = Vec::new();
                jobs.into_iter().for_each(|job| each(&mut scores, job));
            }
            Threads::All => jobs.into_par_iter().for_each_init(Vec::new, each),
        }
        context.resize(n_rows * width, 0.0);
        let mut from = heads.as_slice();
        let mut first = 0;
        for rows in segments.iter() {
            let n = n_queries(rows.len());
            for head in 0..n_heads {
                let made = from.split_off(..n * depth).expect("rows of all heads");
                for (row, made) in made.chunks_exact(depth).enumerate() {
                    context[(first + row) * width + head * depth..][..depth].copy_from_slice(made);
                }
            }
            first += n;
        }
    }
}

/// Tile boundaries, as sequence indices; they depend only on the lengths of the sequences.
fn tiles(segments: &Segments) -> Vec<usize> {
    let size = segments.n_rows().div_ceil(MANY_TILES).clamp(MIN_TILE, TILE);
    let mut borders = vec![0];
    let mut n_rows = 0;
    for (at, rows) in segments.iter().enumerate() {
        if n_rows + rows.len() > size && n_rows > 0 {
            borders.push(at);
            n_rows = 0;
        }
        n_rows += rows.len();
    }
    borders.push(segments.len());
    borders
}

/// Keeps the first row of each sequence.
fn keep_first(rows: &mut Vec<f32>, width: usize, segments: &Segments) {
    for (at, from) in segments.iter().enumerate() {
        rows.copy_within(from.start * width..(from.start + 1) * width, at * width);
    }
    rows.truncate(segments.len() * width);
}

fn means(rows: &[f32], width: usize, segments: &Segments) -> Vec<f32> {
    let mut means = vec![0.0; segments.len() * width];
    for (to, range) in means.chunks_exact_mut(width).zip(segments.iter()) {
        let weight = 1.0 / range.len() as f32;
        for row in range {
            to.iter_mut().zip(&rows[row * width..][..width]).for_each(|(to, x)| *to += x * weight);
        }
    }
    means
}

/// Adds a bias to each row, then applies the activation.
pub(in crate::models) fn activate(activation: Activation, values: &mut [f32], bias: &[f32], threads: Threads) {
    match threads {
        Threads::One => activation.apply_with_bias(values, bias),
        Threads::All => {
            values.par_chunks_mut(ROWS * bias.len()).for_each(|part| activation.apply_with_bias(part, bias));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::autograd::Tape;
    use crate::models::bert::tests::drawn_model;
    use crate::tensor::random::SplitMix64;

    fn sequences(n: usize) -> Sequences {
        let mut rng = SplitMix64::new(9);
        let mut sequences = Sequences::default();
        for _ in 0..n {
            let mut part =
                |min: usize| -> Vec<u32> { (0..min + rng.below(20)).map(|_| rng.below(11) as u32).collect() };
            sequences.push(&[&part(1), &part(0)]);
        }
        sequences
    }

    fn assert_near(left: &Matrix, right: &Matrix, what: &str) {
        assert_eq!((left.n_rows, left.n_cols), (right.n_rows, right.n_cols), "{what}");
        for (left, right) in left.values.iter().zip(&right.values) {
            assert!((left - right).abs() < 1e-5, "{what}: {left} {right}");
        }
    }

    #[test]
    fn the_encoder_gives_what_the_training_graph_gives() {
        for activation in [Activation::Gelu, Activation::GeluTanh, Activation::Relu] {
            for n_layers in [0, 1, 3] {
                let (config, parameters) = drawn_model(n_layers, activation);
                let encoder = BertEncoder::new(&config, &parameters, "").unwrap();
                for n in [1, 100] {
                    let sequences = sequences(n);
                    let what = format!("{activation:?} {n_layers} {n}");
                    let mut tape = Tape::new(&parameters);
                    let rows = config.forward(&mut tape, "", &sequences, None).unwrap();
                    assert_near(&encoder.encode(&sequences).unwrap(), tape.value(rows), &what);
                    let pooled = config.pool(&mut tape, "", rows, sequences.segments()).unwrap();
                    let made = encoder.encode_pooled(&sequences, Pooling::Pooler).unwrap();
                    assert_near(&made, tape.value(pooled), &what);
                    let mean = tape.segment_mean(rows, &std::sync::Arc::new(sequences.segments().clone()));
                    let made = encoder.encode_pooled(&sequences, Pooling::Mean).unwrap();
                    assert_near(&made, tape.value(mean), &what);
                    let starts = sequences.segments().iter().map(|rows| rows.start as u32).collect();
                    let first = tape.gather(rows, starts);
                    let made = encoder.encode_pooled(&sequences, Pooling::First).unwrap();
                    assert_near(&made, tape.value(first), &what);
                }
            }
        }
    }

    #[test]
    fn a_sequence_has_the_same_vector_alone_and_among_others_on_any_number_of_threads() {
        let (config, parameters) = drawn_model(2, Activation::Gelu);
        let encoder = BertEncoder::new(&config, &parameters, "").unwrap();
        let sequences = sequences(200);
        for pooling in [Pooling::First, Pooling::Mean, Pooling::Pooler] {
            let together = encoder.encode_pooled(&sequences, pooling).unwrap();
            for at in 0..sequences.len() {
                let alone = encoder.encode_pooled(&sequences.slice(at..at + 1), pooling).unwrap();
                let expected = Matrix::new(1, together.n_cols, together.row(at).to_vec());
                assert_near(&alone, &expected, &format!("{pooling:?} {at}"));
            }
            for n_threads in [1, 3] {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(n_threads).build().unwrap();
                let alone = |at: usize| encoder.encode_pooled(&sequences.slice(at..at + 1), pooling).unwrap();
                assert_eq!(pool.install(|| encoder.encode_pooled(&sequences, pooling).unwrap()), together);
                assert_eq!(pool.install(|| alone(0)), alone(0));
            }
        }
    }

    #[test]
    fn no_sequence_gives_no_vector_and_a_missing_pooler_is_an_error() {
        let (config, parameters) = drawn_model(1, Activation::Gelu);
        let encoder = BertEncoder::new(&config, &parameters, "").unwrap();
        assert_eq!(encoder.encode(&Sequences::default()).unwrap().n_rows, 0);
        let mut without = Parameters::default();
        parameters
            .iter()
            .filter(|(name, _)| !name.starts_with("pooler"))
            .for_each(|(name, value)| without.add(name, value.clone()));
        let encoder = BertEncoder::new(&config, &without, "").unwrap();
        assert_eq!(encoder.encode_pooled(&sequences(2), Pooling::Mean).unwrap().n_rows, 2);
        let error = encoder.encode_pooled(&sequences(2), Pooling::Pooler).unwrap_err();
        assert_eq!(error.to_string(), "the model has no pooler");
    }
}
