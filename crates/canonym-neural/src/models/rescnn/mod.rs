//! ResCNN: a name becomes one vector, by residual convolutions over the embeddings of its pieces.
//!
//! Lai, Ji and Zhai, "BERT might be Overkill: A Tiny but Effective Biomedical Entity Linker based on Residual Convolutional Neural
//! Networks", EMNLP Findings 2021; their code where the paper is silent. Shapes, for names of `rows` pieces together, packed:
//!
//! ```text
//! embeddings            [rows, dim]      frozen or trained; of BERT: word + position + type, then a layer norm
//! projection            [rows, 256]
//! n_blocks x            [rows, 3 * 100]  convolutions of 1, 3 and 5 pieces, each with a ReLU
//!                       [rows, 278]      with a ReLU
//!                       [rows, 256]      added to what came in
//! pooling               [names, 256]     greatest, mean, or by attention
//! ```
//!
//! Differences from the published code: batches are packed, so nothing is padded and a name's vector does not depend on the names beside
//! it (`pads` brings the published behaviour back); the layer norms that the code declares and never uses are not here.

pub mod infer;
pub mod names;

use std::sync::Arc;

use canonym_core::{Error, Result};
use serde::{Deserialize, Serialize};

use crate::autograd::{NORM_EPSILON, Tape, Var};
use crate::tensor::matrix::Matrix;
use crate::tensor::parameters::Parameters;
use crate::tensor::random::{self, SplitMix64};
use crate::tensor::segments::Segments;

/// The dropout inside blocks and attention (in the published code the one of the configuration is not used).
pub const DROPOUT: f32 = 0.2;

/// The dropout of embeddings.
pub const EMBEDDING_DROPOUT: f32 = 0.1;

/// The shape of the model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ResCnnConfig {
    /// The width of blocks and of the vector of a name.
    pub width: usize,
    /// Filters of each kernel.
    pub n_filters: usize,
    /// The widths of kernels; odd.
    pub kernels: Vec<usize>,
    /// The inner width of a block.
    pub hidden: usize,
    /// Blocks.
    pub n_blocks: usize,
    /// How the pieces of a name become one vector.
    pub pooling: Pooling,
    /// Pieces of a name that are read; the others are left out.
    pub max_length: usize,
    /// Whether names are filled up to the longest of their batch, as published: then the vector of a name depends on the batch.
    pub pads: bool,
}

impl Default for ResCnnConfig {
    fn default() -> ResCnnConfig {
        ResCnnConfig {
            width: 256,
            n_filters: 100,
            kernels: vec![1, 3, 5],
            hidden: 278,
            n_blocks: 4,
            pooling: Pooling::Max,
            max_length: 25,
            pads: false,
        }
    }
}

/// How the pieces of a name become one vector.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Pooling {
    /// The greatest value of each column.
    Max,
    /// The mean of each column.
    Mean,
    /// The mean by weights that a small network gives.
    Attention,
}

/// Names as pieces, one below the other.
#[derive(Debug, Clone, Default)]
pub struct Tokens {
    /// Rows of the vocabulary.
    pub pieces: Vec<u32>,
    /// Where each name begins.
    pub segments: Segments,
}

impl Tokens {
    /// Packs names, at most `max_length` pieces of each; `unknown` stands for a name without a piece.
    pub fn pack<'a>(names: impl IntoIterator<Item = &'a [u32]>, max_length: usize, unknown: u32) -> Tokens {
        let mut tokens = Tokens::default();
        for name in names {
            let name = &name[..name.len().min(max_length)];
            tokens.pieces.extend_from_slice(if name.is_empty() { std::slice::from_ref(&unknown) } else { name });
            tokens.segments.push(name.len());
        }
        tokens
    }
}

impl ResCnnConfig {
    /// Weights to start from; `n_pieces` embeddings `dim` wide are drawn where `parameters` has none.
    pub fn init(&self, parameters: &mut Parameters, n_pieces: usize, dim: usize, rng: &mut SplitMix64) {
        if parameters.find("embedding.word").is_err() {
            let values = (0..n_pieces * dim).map(|_| random::normal(rng)).collect();
            parameters.add("embedding.word", Matrix::new(n_pieces, dim, values));
        }
        parameters.add_linear("projection", dim, self.width, rng);
        for block in 0..self.n_blocks {
            for kernel in &self.kernels {
                parameters.add_linear(
                    &format!("block.{block}.convolution.{kernel}"),
                    kernel * self.width,
                    self.n_filters,
                    rng,
                );
            }
            parameters.add_linear(
                &format!("block.{block}.inner"),
                self.kernels.len() * self.n_filters,
                self.hidden,
                rng,
            );
            parameters.add_linear(&format!("block.{block}.outer"), self.hidden, self.width, rng);
        }
        if self.pooling == Pooling::Attention {
            parameters.add_linear("attention.inner", self.width, self.width / 2, rng);
            parameters.add_linear("attention.outer", self.width / 2, 1, rng);
        }
    }

    /// Checks that the sizes make a network.
    pub fn check_sizes(&self) -> Result<()> {
        let sizes = [
            ("width", self.width),
            ("n_filters", self.n_filters),
            ("hidden", self.hidden),
            ("max_length", self.max_length),
            ("kernels", self.kernels.len()),
        ];
        let empty = sizes.into_iter().find(|(_, size)| *size == 0).map(|(name, _)| format!("`{name}` is 0"));
        let even =
            self.kernels.iter().find(|kernel| *kernel % 2 == 0).map(|kernel| format!("a kernel is {kernel} wide"));
        let narrow = (self.pooling == Pooling::Attention && self.width < 2).then(|| "`width` is 1".to_owned());
        match empty.or(even).or(narrow) {
            Some(what) => {
                let hint = "sizes are at least 1, kernels odd, the width at least 2 with attention";
                Err(Error::invalid(format!("this is no ResCNN: {what}")).with_hint(hint))
            }
            None => Ok(()),
        }
    }

    /// Checks that the weights have the shapes that the config names.
    pub fn check(&self, parameters: &Parameters) -> Result<()> {
        self.check_sizes()?;
        let dim = parameters.get("embedding.word")?.n_cols;
        let linear = |name: &str, n_in: usize, n_out: usize| -> Result<()> {
            parameters.shaped(&format!("{name}.weight"), n_in, n_out)?;
            parameters.shaped(&format!("{name}.bias"), 1, n_out)?;
            Ok(())
        };
        linear("projection", dim, self.width)?;
        for block in 0..self.n_blocks {
            for kernel in &self.kernels {
                linear(&format!("block.{block}.convolution.{kernel}"), kernel * self.width, self.n_filters)?;
            }
            linear(&format!("block.{block}.inner"), self.kernels.len() * self.n_filters, self.hidden)?;
            linear(&format!("block.{block}.outer"), self.hidden, self.width)?;
        }
        if self.pooling == Pooling::Attention {
            linear("attention.inner", self.width, self.width / 2)?;
            linear("attention.outer", self.width / 2, 1)?;
        }
        Ok(())
    }

    /// The farthest neighbour that a kernel sees.
    pub fn radius(&self) -> usize {
        self.kernels.iter().max().map_or(0, |kernel| kernel / 2)
    }

    /// The vectors of names, `[names, width]`, not normalised; with dropout where there is a generator.
    pub fn forward(&self, tape: &mut Tape<'_>, tokens: &Tokens, mut rng: Option<&mut SplitMix64>) -> Result<Var> {
        let (embedded, segments) = self.embed(tape, tokens, rng.as_deref_mut())?;
        let mut rows = linear(tape, "projection", embedded)?;
        let radius = self.radius() as isize;
        let offsets: Vec<isize> = (-radius..=radius).collect();
        for block in 0..self.n_blocks {
            let near = tape.unfold(rows, &offsets, &segments);
            let mut parts = Vec::with_capacity(self.kernels.len());
            for kernel in &self.kernels {
                let name = format!("block.{block}.convolution.{kernel}");
                let weight = tape.parameter(&format!("{name}.weight"))?;
                let bias = tape.parameter(&format!("{name}.bias"))?;
                let first = (radius as usize - kernel / 2) * self.width;
                let part = tape.linear_of_columns(near, first, weight, Some(bias));
                parts.push(tape.relu(part));
            }
            let filtered = tape.concat(&parts);
            let inner = linear(tape, &format!("block.{block}.inner"), filtered)?;
            let inner = tape.relu(inner);
            let inner = tape.dropout(inner, DROPOUT, rng.as_deref_mut());
            let outer = linear(tape, &format!("block.{block}.outer"), inner)?;
            rows = tape.add(rows, outer);
        }
        if self.pads && self.pooling == Pooling::Attention {
            // The published attention masks what was filled up.
            let real = segments
                .iter()
                .zip(tokens.segments.iter())
                .flat_map(|(padded, real)| (padded.start..padded.start + real.len()).map(|row| row as u32));
            let real = real.collect();
            let rows = tape.gather(rows, real);
            return self.pool(tape, rows, &Arc::new(tokens.segments.clone()), rng);
        }
        self.pool(tape, rows, &segments, rng)
    }

    /// What the first block sees, without dropout or padding: `[rows, width]`.
    pub fn projected(&self, tape: &mut Tape<'_>, tokens: &Tokens) -> Result<Var> {
        let rows = embed(tape, tokens)?;
        linear(tape, "projection", rows)
    }

    /// The embeddings of pieces, and the sequences that convolutions see.
    fn embed(
        &self,
        tape: &mut Tape<'_>,
        tokens: &Tokens,
        rng: Option<&mut SplitMix64>,
    ) -> Result<(Var, Arc<Segments>)> {
        let mut rows = embed(tape, tokens)?;
        rows = tape.dropout(rows, EMBEDDING_DROPOUT, rng);
        if !self.pads {
            return Ok((rows, Arc::new(tokens.segments.clone())));
        }
        // Rows beyond the end of a name are zeros, in the input alone: biases make something of them.
        let longest = tokens.segments.iter().map(|rows| rows.len()).max().unwrap_or(1);
        let n_cols = tape.value(rows).n_cols;
        let zero = tape.input(Matrix::zeros(1, n_cols));
        let rows = tape.stack(rows, zero);
        let padding = tokens.segments.n_rows() as u32;
        let filled = tokens.segments.iter().flat_map(|rows| {
            let n_pads = longest - rows.len();
            rows.map(|row| row as u32).chain(std::iter::repeat_n(padding, n_pads))
        });
        let filled = filled.collect();
        let padded = tape.gather(rows, filled);
        Ok((padded, Arc::new(Segments::of_lengths(vec![longest; tokens.segments.len()]))))
    }

    fn pool(
        &self,
        tape: &mut Tape<'_>,
        rows: Var,
        segments: &Arc<Segments>,
        rng: Option<&mut SplitMix64>,
    ) -> Result<Var> {
        Ok(match self.pooling {
            Pooling::Max => tape.segment_max(rows, segments),
            Pooling::Mean => tape.segment_mean(rows, segments),
            Pooling::Attention => {
                let inner = linear(tape, "attention.inner", rows)?;
                let inner = tape.relu(inner);
                let inner = tape.dropout(inner, DROPOUT, rng);
                let scores = linear(tape, "attention.outer", inner)?;
                let probabilities = tape.segment_softmax(scores, segments);
                tape.segment_sum(rows, probabilities, segments)
            }
        })
    }
}

/// The embeddings of pieces, `[rows, dim]`; those of BERT are summed and normalised.
fn embed(tape: &mut Tape<'_>, tokens: &Tokens) -> Result<Var> {
    let table = tape.parameter("embedding.word")?;
    let mut rows = tape.gather(table, tokens.pieces.clone());
    if let Ok(table) = tape.parameter("embedding.position") {
        let places = tokens.segments.iter().flat_map(|rows| 0..rows.len() as u32).collect();
        let positions = tape.gather(table, places);
        let table = tape.parameter("embedding.type")?;
        let types = tape.gather(table, vec![0; tokens.pieces.len()]);
        rows = tape.add(rows, positions);
        rows = tape.add(rows, types);
        let (gain, bias) = (tape.parameter("embedding.norm.gain")?, tape.parameter("embedding.norm.bias")?);
        rows = tape.layer_norm(rows, gain, bias, NORM_EPSILON);
    }
    Ok(rows)
}

fn linear(tape: &mut Tape<'_>, name: &str, input: Var) -> Result<Var> {
    let weight = tape.parameter(&format!("{name}.weight"))?;
    let bias = tape.parameter(&format!("{name}.bias"))?;
    Ok(tape.linear(input, weight, Some(bias)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Weights of the published shape on embeddings that are not counted.
    fn n_trained(pooling: Pooling) -> usize {
        let mut parameters = Parameters::default();
        let config = ResCnnConfig { pooling, ..Default::default() };
        config.init(&mut parameters, 2, 768, &mut SplitMix64::new(1));
        parameters.freeze("embedding.word").unwrap();
        config.check(&parameters).unwrap();
        parameters.counts().0
    }

    #[test]
    fn sizes_that_make_no_network_are_refused() {
        let refused = |config: ResCnnConfig| config.check_sizes().unwrap_err().to_string();
        assert_eq!(
            refused(ResCnnConfig { max_length: 0, ..Default::default() }),
            "this is no ResCNN: `max_length` is 0"
        );
        assert_eq!(
            refused(ResCnnConfig { kernels: vec![1, 2], ..Default::default() }),
            "this is no ResCNN: a kernel is 2 wide"
        );
        assert!(ResCnnConfig::default().check_sizes().is_ok());
    }

    #[test]
    fn the_published_shape_has_the_published_number_of_weights() {
        // The published count holds four layer norms of 512 weights that are never used.
        assert_eq!(n_trained(Pooling::Max), 1_742_120 - 4 * 512);
        assert_eq!(n_trained(Pooling::Attention), 1_742_120 - 4 * 512 + 33_025);
    }
}
