//! ResCNN: encodes a name with residual convolutions over its wordpiece embeddings.
//!
//! Lai, Ji and Zhai, "BERT might be Overkill: A Tiny but Effective Biomedical Entity Linker based on Residual Convolutional Neural
//! Networks", EMNLP Findings 2021, and the published code for details that the paper leaves open. Shapes for packed names with `rows`
//! wordpieces in total:
//!
//! ```text
//! embeddings            [rows, dim]      frozen or trained; from BERT: word + position + type, layer norm
//! projection            [rows, 256]
//! n_blocks x            [rows, 3 * 100]  convolutions of width 1, 3 and 5, each with a ReLU
//!                       [rows, 278]      linear layer, ReLU
//!                       [rows, 256]      linear layer, residual connection
//! pooling               [names, 256]     max, mean or attention
//! ```
//!
//! Differences from the published code: batches are packed without padding, so a name's vector does not depend on the other names in the
//! batch (`pads` restores the published behaviour); the layer norms that the code declares but never uses are omitted.

pub mod infer;
pub mod names;

use std::sync::Arc;

use canonym_core::{Error, Result};
use serde::{Deserialize, Serialize};

use crate::autograd::{NORM_EPSILON, Tape, Var};
use crate::layers::embedding::{embedding, positions_of};
use crate::layers::linear::linear;
use crate::layers::norm::layer_norm;
use crate::tensor::matrix::Matrix;
use crate::tensor::parameters::Parameters;
use crate::tensor::random::{self, SplitMix64};
use crate::tensor::segments::Segments;

/// Dropout inside blocks and attention. The published code ignores the configured value.
pub const DROPOUT: f32 = 0.2;

/// Dropout of embeddings.
pub const EMBEDDING_DROPOUT: f32 = 0.1;

/// Model configuration.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ResCnnConfig {
    /// Dimension of blocks and of name vectors.
    pub width: usize,
    /// Filters per kernel width.
    pub n_filters: usize,
    /// Kernel widths; odd.
    pub kernels: Vec<usize>,
    /// Hidden dimension of a block.
    pub hidden: usize,
    /// Number of blocks.
    pub n_blocks: usize,
    /// How wordpiece vectors are pooled.
    pub pooling: Pooling,
    /// Maximum number of wordpieces of a name; the rest is truncated.
    pub max_length: usize,
    /// Whether names are padded to the longest of their batch, as published; a name's vector then depends on the batch.
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

/// How wordpiece vectors are pooled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Pooling {
    /// Maximum of each column.
    Max,
    /// Mean of each column.
    Mean,
    /// Attention-weighted mean.
    Attention,
}

/// Packed names as wordpieces.
#[derive(Debug, Clone, Default)]
pub struct Tokens {
    /// `input_ids`: vocabulary rows of all wordpieces.
    pub input_ids: Vec<u32>,
    /// Row range of each name.
    pub segments: Segments,
}

impl Tokens {
    /// Packs names, truncated to `max_length` wordpieces; `unknown` replaces a name without wordpieces.
    pub fn pack<'a>(names: impl IntoIterator<Item = &'a [u32]>, max_length: usize, unknown: u32) -> Tokens {
        let mut tokens = Tokens::default();
        for name in names {
            let name = &name[..name.len().min(max_length)];
            tokens.input_ids.extend_from_slice(if name.is_empty() { std::slice::from_ref(&unknown) } else { name });
            tokens.segments.push(name.len());
        }
        tokens
    }
}

impl ResCnnConfig {
    /// Initialises the weights; `n_wordpieces` embeddings of dimension `dim` are drawn if `parameters` has none.
    pub fn init(&self, parameters: &mut Parameters, n_wordpieces: usize, dim: usize, rng: &mut SplitMix64) {
        if parameters.find("embedding.word").is_err() {
            let values = (0..n_wordpieces * dim).map(|_| random::normal(rng)).collect();
            parameters.add("embedding.word", Matrix::new(n_wordpieces, dim, values));
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

    /// Checks that the sizes are consistent.
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
            self.kernels.iter().find(|kernel| *kernel % 2 == 0).map(|kernel| format!("kernel width {kernel} is even"));
        let narrow = (self.pooling == Pooling::Attention && self.width < 2).then(|| "`width` is 1".to_owned());
        match empty.or(even).or(narrow) {
            Some(what) => {
                let hint = "sizes must be at least 1, kernel widths odd, and `width` at least 2 with attention";
                Err(Error::config(format!("invalid ResCNN config: {what}")).with_hint(hint))
            }
            None => Ok(()),
        }
    }

    /// Checks the shapes of the weights.
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

    /// Radius of the widest kernel.
    pub fn radius(&self) -> usize {
        self.kernels.iter().max().map_or(0, |kernel| kernel / 2)
    }

    /// Name vectors, `[names, width]`, not normalised; dropout is applied if `rng` is given.
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
            // The published attention masks padding.
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

    /// Input of the first block, without dropout or padding: `[rows, width]`.
    pub fn projected(&self, tape: &mut Tape<'_>, tokens: &Tokens) -> Result<Var> {
        let rows = embed(tape, tokens)?;
        linear(tape, "projection", rows)
    }

    /// Embeddings of wordpieces, and the sequences that the convolutions run over.
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
        // Padding rows are zero only in the input: biases change them in later layers.
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

/// Wordpiece embeddings, `[rows, dim]`; those of BERT are summed and normalised.
fn embed(tape: &mut Tape<'_>, tokens: &Tokens) -> Result<Var> {
    let mut rows = embedding(tape, "embedding.word", tokens.input_ids.clone())?;
    if let Ok(positions) = embedding(tape, "embedding.position", positions_of(&tokens.segments)) {
        let types = embedding(tape, "embedding.type", vec![0; tokens.input_ids.len()])?;
        rows = tape.add(rows, positions);
        rows = tape.add(rows, types);
        rows = layer_norm(tape, "embedding.norm", rows, NORM_EPSILON)?;
    }
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Number of trained weights of the published configuration, without the frozen embeddings.
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
            "invalid ResCNN config: `max_length` is 0"
        );
        assert_eq!(
            refused(ResCnnConfig { kernels: vec![1, 2], ..Default::default() }),
            "invalid ResCNN config: kernel width 2 is even"
        );
        assert!(ResCnnConfig::default().check_sizes().is_ok());
    }

    #[test]
    fn the_published_shape_has_the_published_number_of_weights() {
        // The published count includes four unused layer norms of 512 weights.
        assert_eq!(n_trained(Pooling::Max), 1_742_120 - 4 * 512);
        assert_eq!(n_trained(Pooling::Attention), 1_742_120 - 4 * 512 + 33_025);
    }
}
