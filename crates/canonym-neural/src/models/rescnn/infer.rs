//! ResCNN inference: the same results as [`crate::models::rescnn`], without a tape.
//!
//! The projection of each wordpiece embedding is computed once. Names are packed into tiles whose activations stay in the cache through all
//! blocks, one tile per thread.

use canonym_core::Result;
use rayon::prelude::*;

use crate::autograd::ops::cpu::{Offsets, unfold};
use crate::autograd::{Tape, softmax};
use crate::layers::linear::Linear;
use crate::models::rescnn::{Pooling, ResCnnConfig, Tokens};
use crate::tensor::matrix::{Matrix, View, dot};
use crate::tensor::parameters::Parameters;
use crate::tensor::segments::Segments;

/// Wordpieces per tile: large enough to amortise loading the weights, small enough for the cache.
const TILE: usize = 512;

/// Encodes names.
#[derive(Debug)]
pub struct ResCnnEncoder {
    config: ResCnnConfig,
    unknown: u32,
    /// Projected embedding of each wordpiece, `[wordpieces, width]`; with position embeddings, of each wordpiece at each position,
    /// `[wordpieces * max_length, width]`, computed on first use.
    projected: Projected,
    blocks: Vec<Block>,
    /// Effective radius of the convolutions, if it is restricted below that of the kernels.
    scope: usize,
    attention: Option<(Linear, Linear)>,
}

#[derive(Debug)]
enum Projected {
    OfPiece(Matrix),
    OfPlace { parameters: Parameters },
}

#[derive(Debug)]
struct Block {
    convolutions: Vec<Linear>,
    inner: Linear,
    outer: Linear,
}

/// Work buffers of one tile.
#[derive(Debug, Default)]
struct Scratch {
    rows: Vec<f32>,
    near: Vec<f32>,
    filtered: Vec<f32>,
    inner: Vec<f32>,
    outer: Vec<f32>,
}

impl ResCnnEncoder {
    /// Builds an encoder; `unknown` replaces a name without wordpieces.
    pub fn new(config: &ResCnnConfig, parameters: &Parameters, unknown: u32) -> Result<ResCnnEncoder> {
        config.check(parameters)?;
        let block = |block: usize| -> Result<Block> {
            let name = |kernel: &usize| Linear::of(parameters, &format!("block.{block}.convolution.{kernel}"));
            Ok(Block {
                convolutions: config.kernels.iter().map(name).collect::<Result<_>>()?,
                inner: Linear::of(parameters, &format!("block.{block}.inner"))?,
                outer: Linear::of(parameters, &format!("block.{block}.outer"))?,
            })
        };
        let attention = match config.pooling {
            Pooling::Attention => {
                Some((Linear::of(parameters, "attention.inner")?, Linear::of(parameters, "attention.outer")?))
            }
            Pooling::Max | Pooling::Mean => None,
        };
        Ok(ResCnnEncoder {
            config: config.clone(),
            unknown,
            projected: project(parameters)?,
            blocks: (0..config.n_blocks).map(block).collect::<Result<_>>()?,
            scope: config.radius(),
            attention,
        })
    }

    /// Restricts the radius of the convolutions, to measure how much context they use: tokens farther away are masked. `None` lifts it.
    pub fn restrict(&mut self, scope: Option<usize>) {
        self.scope = scope.unwrap_or(self.config.radius());
    }

    /// Dimension of the vectors.
    pub fn dim(&self) -> usize {
        self.config.width
    }

    /// Name vectors, `[names, width]`, not normalised. Each is independent of the other names.
    pub fn encode<T: AsRef<[u32]> + Sync>(&self, names: &[T]) -> Matrix {
        let length = |name: &T| name.as_ref().len().clamp(1, self.config.max_length);
        let mut tiles = vec![0];
        let mut n_rows = 0;
        for (row, name) in names.iter().enumerate() {
            if n_rows + length(name) > TILE && n_rows > 0 {
                tiles.push(row);
                n_rows = 0;
            }
            n_rows += length(name);
        }
        tiles.push(names.len());
        let tile = |scratch: &mut Scratch, range: &[usize]| {
            let names = names[range[0]..range[1]].iter().map(AsRef::as_ref);
            self.encode_tile(&Tokens::pack(names, self.config.max_length, self.unknown), scratch)
        };
        let encoded: Vec<Vec<f32>> = tiles.par_windows(2).map_init(Scratch::default, tile).collect();
        Matrix::new(names.len(), self.config.width, encoded.concat())
    }

    fn encode_tile(&self, tokens: &Tokens, scratch: &mut Scratch) -> Vec<f32> {
        let ResCnnConfig { width, n_filters, hidden, ref kernels, .. } = self.config;
        let n_rows = tokens.input_ids.len();
        let radius = self.config.radius();
        let offsets: Vec<isize> = (-(radius as isize)..=radius as isize).collect();
        let n_filtered = kernels.len() * n_filters;
        let Scratch { rows, near, filtered, inner, outer } = scratch;
        self.project(tokens, rows);
        filtered.resize(n_rows * n_filtered, 0.0);
        inner.resize(n_rows * hidden, 0.0);
        outer.resize(n_rows * width, 0.0);
        for block in &self.blocks {
            near.clear();
            near.resize(n_rows * width * offsets.len(), 0.0);
            let seen: Vec<bool> = offsets.iter().map(|offset| offset.unsigned_abs() <= self.scope).collect();
            unfold(rows, near, Offsets { all: &offsets, seen: &seen }, &tokens.segments);
            for (place, (kernel, convolution)) in kernels.iter().zip(&block.convolutions).enumerate() {
                let seen = View::of(near, n_rows, width * offsets.len())
                    .columns((radius - kernel / 2) * width, kernel * width);
                convolution.apply_to_columns(seen, filtered, place * n_filters, n_filtered);
            }
            relu(filtered);
            block.inner.apply_to_columns(View::of(filtered, n_rows, n_filtered), inner, 0, hidden);
            relu(inner);
            block.outer.apply_to_columns(View::of(inner, n_rows, hidden), outer, 0, width);
            rows.iter_mut().zip(outer.iter()).for_each(|(row, outer)| *row += outer);
        }
        self.pool(rows, &tokens.segments)
    }

    /// Projected embeddings of a tile.
    fn project(&self, tokens: &Tokens, rows: &mut Vec<f32>) {
        rows.clear();
        match &self.projected {
            Projected::OfPiece(table) => {
                tokens.input_ids.iter().for_each(|piece| rows.extend_from_slice(table.row(*piece as usize)))
            }
            Projected::OfPlace { parameters } => {
                let mut tape = Tape::new(parameters);
                let made = self.config.projected(&mut tape, tokens).expect("the weights were checked");
                rows.extend_from_slice(&tape.value(made).values);
            }
        }
    }

    fn pool(&self, rows: &[f32], segments: &Segments) -> Vec<f32> {
        let width = self.config.width;
        let row = |row: usize| &rows[row * width..][..width];
        let mut pooled = vec![0.0; segments.len() * width];
        let probabilities = self.attention.as_ref().map(|attention| probabilities(attention, rows, segments));
        for (to, range) in pooled.chunks_exact_mut(width).zip(segments.iter()) {
            match &probabilities {
                Some(probabilities) => range.for_each(|at| add_scaled(to, row(at), probabilities[at])),
                None if self.config.pooling == Pooling::Mean => {
                    let weight = 1.0 / range.len() as f32;
                    range.for_each(|at| add_scaled(to, row(at), weight));
                }
                None => {
                    to.copy_from_slice(row(range.start));
                    range.skip(1).for_each(|at| to.iter_mut().zip(row(at)).for_each(|(to, x)| *to = to.max(*x)));
                }
            }
        }
        pooled
    }
}

fn project(parameters: &Parameters) -> Result<Projected> {
    if parameters.find("embedding.position").is_ok() {
        let mut kept = Parameters::default();
        let wanted = |name: &str| name.starts_with("embedding.") || name.starts_with("projection.");
        parameters.iter().filter(|(name, _)| wanted(name)).for_each(|(name, value)| kept.add(name, value.clone()));
        return Ok(Projected::OfPlace { parameters: kept });
    }
    let words = parameters.get("embedding.word")?;
    let projection = Linear::of(parameters, "projection")?;
    let width = projection.weight.n_cols;
    let mut table = Matrix::zeros(words.n_rows, width);
    projection.apply_to_columns(words.view(), &mut table.values, 0, width);
    Ok(Projected::OfPiece(table))
}

fn probabilities((inner, outer): &(Linear, Linear), rows: &[f32], segments: &Segments) -> Vec<f32> {
    let n_rows = segments.n_rows();
    let mut hidden = vec![0.0; n_rows * inner.bias.len()];
    inner.apply_to_columns(View::of(rows, n_rows, inner.weight.n_rows), &mut hidden, 0, inner.bias.len());
    relu(&mut hidden);
    let score = |hidden: &[f32]| dot(hidden, &outer.weight.values) + outer.bias[0];
    let mut probabilities: Vec<f32> = hidden.chunks_exact(inner.bias.len()).map(score).collect();
    segments.iter().for_each(|rows| softmax(&mut probabilities[rows]));
    probabilities
}

fn relu(values: &mut [f32]) {
    values.iter_mut().for_each(|value| *value = value.max(0.0));
}

fn add_scaled(to: &mut [f32], from: &[f32], factor: f32) {
    to.iter_mut().zip(from).for_each(|(to, from)| *to += from * factor);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tensor::random::SplitMix64;

    fn names() -> Vec<Vec<u32>> {
        let mut rng = SplitMix64::new(9);
        (0..200).map(|_| (0..rng.below(30)).map(|_| rng.below(50) as u32).collect()).collect()
    }

    fn model(pooling: Pooling, places: bool) -> (ResCnnConfig, Parameters) {
        let config = ResCnnConfig { width: 24, n_filters: 7, hidden: 11, n_blocks: 2, pooling, ..Default::default() };
        let mut parameters = Parameters::default();
        let mut rng = SplitMix64::new(4);
        config.init(&mut parameters, 50, 16, &mut rng);
        if places {
            let mut drawn = |n_rows| {
                Matrix::new(n_rows, 16, (0..n_rows * 16).map(|_| crate::tensor::random::normal(&mut rng)).collect())
            };
            for (name, n_rows) in [("position", 30), ("type", 2), ("norm.gain", 1), ("norm.bias", 1)] {
                parameters.add(format!("embedding.{name}"), drawn(n_rows));
            }
        }
        (config, parameters)
    }

    #[test]
    fn the_encoder_gives_what_the_training_graph_gives() {
        for pooling in [Pooling::Max, Pooling::Mean, Pooling::Attention] {
            for places in [false, true] {
                let (config, parameters) = model(pooling, places);
                let names = names();
                let tokens = Tokens::pack(names.iter().map(Vec::as_slice), config.max_length, 1);
                let mut tape = Tape::new(&parameters);
                let output = config.forward(&mut tape, &tokens, None).unwrap();
                let encoded = ResCnnEncoder::new(&config, &parameters, 1).unwrap().encode(&names);
                for (left, right) in tape.value(output).values.iter().zip(&encoded.values) {
                    assert!((left - right).abs() < 1e-5, "{pooling:?} {places}: {left} {right}");
                }
            }
        }
    }

    #[test]
    fn a_name_has_the_same_vector_alone_and_among_others_on_any_number_of_threads() {
        let (config, parameters) = model(Pooling::Max, false);
        let encoder = ResCnnEncoder::new(&config, &parameters, 1).unwrap();
        let names = names();
        let together = encoder.encode(&names);
        for (row, name) in names.iter().enumerate() {
            let alone = encoder.encode(std::slice::from_ref(name));
            for (left, right) in alone.values.iter().zip(together.row(row)) {
                assert!((left - right).abs() < 1e-5, "{row}: {left} {right}");
            }
        }
        let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
        assert_eq!(pool.install(|| encoder.encode(&names)), together);
    }
}
