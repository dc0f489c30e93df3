//! Generative linking: an encoder-decoder that writes a name of the concept, constrained to the names of a terminology.
//!
//! Yuan, Yuan and Yu, "Generative Biomedical Entity Linking via Knowledge Base-Guided Pre-training and Synonyms-Aware Fine-tuning", NAACL
//! 2022. The network is BART (Lewis et al. 2020). Its encoder is that of [`crate::models::bert`], whose token types it does not use. Shapes
//! for packed sequences with `rows` decoder tokens and `source` encoder tokens in total:
//!
//! ```text
//! encoder           [source, width]
//! embeddings        [rows, width]        word (tied to the encoder) + position, layer norm, dropout
//! n layers x        [rows, 3 * width]    queries, keys and values; causal attention, linear layer, residual connection, layer norm
//!                   [rows, width]        queries; attention to the encoder, whose keys and values are [source, 2 * width]
//!                   [rows, inner]        linear layer and activation, linear layer, residual connection, layer norm
//! output            [rows, vocabulary]   tied to the word embeddings, plus a bias
//! ```
//!
//! The source is the context with `START mention END`. The decoder begins with the end token and the prompt `mention is`, and continues with
//! the name and the end token (section 3.2 of the paper).

pub mod beam;
pub mod decoder;
pub mod text;
pub mod trie;

use std::sync::Arc;

use canonym_core::{Error, Result};
use serde::{Deserialize, Serialize};

use crate::autograd::{AttentionConfig, Tape, Var};
use crate::layers::embedding::{embedding, positions_of};
use crate::layers::linear::linear;
use crate::layers::norm::layer_norm;
use crate::models::bert::{BertConfig, DEVIATION, Sequences, Weight};
use crate::tensor::matrix::Matrix;
use crate::tensor::parameters::Parameters;
use crate::tensor::random::{self, SplitMix64};
use crate::tensor::segments::Segments;

/// Scope of the encoder.
pub const ENCODER: &str = "encoder.";

/// Word embeddings of encoder and decoder, tied to the output.
pub const WORDS: &str = "encoder.embedding.word";

/// Bias of the output.
pub const OUTPUT_BIAS: &str = "output.bias";

/// Model configuration.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GenerativeConfig {
    /// The encoder. Its width, dropout, activation and precision are those of the decoder as well.
    pub encoder: BertConfig,
    /// Number of decoder layers.
    pub decoder_layers: usize,
    /// Number of attention heads of the decoder; divides the width.
    pub decoder_heads: usize,
    /// Width of the feed-forward layers of the decoder.
    pub decoder_inner: usize,
    /// Maximum number of decoder tokens: prompt and name.
    pub decoder_positions: usize,
}

impl GenerativeConfig {
    /// The weights of the decoder and of the output; those of the encoder are [`BertConfig::weights`] under [`ENCODER`], without pooler.
    pub fn decoder_weights(&self) -> Vec<Weight> {
        let (width, inner) = (self.encoder.hidden_size, self.decoder_inner);
        let weight = |name: String, n_rows, n_cols| Weight { name, n_rows, n_cols };
        let norm = |name: &str| ["gain", "bias"].map(|part| weight(format!("{name}.norm.{part}"), 1, width));
        let linear = |name: &str, n_in, n_out| {
            [weight(format!("{name}.weight"), n_in, n_out), weight(format!("{name}.bias"), 1, n_out)]
        };
        let mut weights = vec![weight("decoder.embedding.position".to_owned(), self.decoder_positions, width)];
        weights.extend(norm("decoder.embedding"));
        for layer in 0..self.decoder_layers {
            let [own, cross, feed_forward] =
                ["self", "cross", "feed_forward"].map(|part| format!("decoder.layer.{layer}.{part}"));
            weights.extend(linear(&format!("{own}.input"), width, 3 * width));
            weights.extend(linear(&format!("{own}.output"), width, width));
            weights.extend(norm(&own));
            weights.extend(linear(&format!("{cross}.query"), width, width));
            weights.extend(linear(&format!("{cross}.context"), width, 2 * width));
            weights.extend(linear(&format!("{cross}.output"), width, width));
            weights.extend(norm(&cross));
            weights.extend(linear(&format!("{feed_forward}.inner"), width, inner));
            weights.extend(linear(&format!("{feed_forward}.outer"), inner, width));
            weights.extend(norm(&feed_forward));
        }
        weights.push(weight(OUTPUT_BIAS.to_owned(), 1, self.encoder.vocab_size));
        weights
    }

    /// Initialises the weights that `parameters` lacks, as in BERT; token types are zeros.
    pub fn init(&self, parameters: &mut Parameters, rng: &mut SplitMix64) -> Result<()> {
        let mut encoder = Parameters::default();
        self.encoder.init(&mut encoder, "", rng);
        for (name, value) in encoder.iter().filter(|(name, _)| !name.starts_with("pooler.")) {
            let scoped = format!("{ENCODER}{name}");
            if parameters.find(&scoped).is_err() {
                let zero = || Matrix::zeros(value.n_rows, value.n_cols);
                parameters.add(scoped, if name == "embedding.type" { zero() } else { value.clone() });
            }
        }
        for Weight { name, n_rows, n_cols } in self.decoder_weights() {
            if parameters.find(&name).is_ok() {
                continue;
            }
            let n = n_rows * n_cols;
            let values = match name.rsplit('.').next() {
                Some("gain") => vec![1.0; n],
                Some("bias") => vec![0.0; n],
                _ => (0..n).map(|_| DEVIATION * random::normal(rng)).collect(),
            };
            parameters.add(name, Matrix::new(n_rows, n_cols, values));
        }
        self.check(parameters)
    }

    /// Checks sizes, and the shapes of the weights.
    pub fn check(&self, parameters: &Parameters) -> Result<()> {
        let width = self.encoder.hidden_size;
        let sizes = [self.decoder_layers, self.decoder_heads, self.decoder_inner, self.decoder_positions];
        if sizes.contains(&0) || !width.is_multiple_of(self.decoder_heads.max(1)) {
            let error = Error::config("invalid decoder sizes");
            return Err(error.with_hint("sizes must be at least 1, and the number of heads must divide the width"));
        }
        self.encoder.check(parameters, ENCODER)?;
        for Weight { name, n_rows, n_cols } in self.decoder_weights() {
            parameters.shaped(&name, n_rows, n_cols)?;
        }
        Ok(())
    }

    fn attention(&self) -> AttentionConfig {
        AttentionConfig { n_heads: self.decoder_heads, dropout: self.encoder.attention_probs_dropout_prob }
    }

    /// Encoder rows of sources, `[source, width]`; dropout is applied if `rng` is given.
    pub fn encode(&self, tape: &mut Tape<'_>, sources: &Sequences, rng: Option<&mut SplitMix64>) -> Result<Var> {
        self.encoder.forward(tape, ENCODER, sources, rng)
    }

    /// Decoder rows of targets, `[rows, width]`, each of which attends to the source of its number.
    pub fn decode(
        &self,
        tape: &mut Tape<'_>,
        targets: &Sequences,
        (memory, source_segments): (Var, &Arc<Segments>),
        mut rng: Option<&mut SplitMix64>,
    ) -> Result<Var> {
        self.check_targets(targets)?;
        let segments = Arc::new(targets.segments().clone());
        let before = tape.compute_in(self.encoder.compute);
        let rate = self.encoder.hidden_dropout_prob;
        let words = embedding(tape, WORDS, targets.input_ids().to_vec())?;
        let positions = embedding(tape, "decoder.embedding.position", positions_of(&segments))?;
        let rows = tape.add(words, positions);
        let rows = self.norm(tape, "decoder.embedding", rows)?;
        let mut rows = tape.dropout(rows, rate, rng.as_deref_mut());
        for layer in 0..self.decoder_layers {
            let [own, cross, feed_forward] =
                ["self", "cross", "feed_forward"].map(|part| format!("decoder.layer.{layer}.{part}"));
            let input = linear(tape, &format!("{own}.input"), rows)?;
            let seen = tape.causal_attention(input, self.attention(), &segments, rng.as_deref_mut());
            let seen = linear(tape, &format!("{own}.output"), seen)?;
            rows = self.residual(tape, &own, (rows, seen), rng.as_deref_mut())?;
            let queries = linear(tape, &format!("{cross}.query"), rows)?;
            let context = linear(tape, &format!("{cross}.context"), memory)?;
            let (queries, context) = ((queries, &segments), (context, source_segments));
            let seen = tape.cross_attention(queries, context, self.attention(), rng.as_deref_mut());
            let seen = linear(tape, &format!("{cross}.output"), seen)?;
            rows = self.residual(tape, &cross, (rows, seen), rng.as_deref_mut())?;
            let inner = linear(tape, &format!("{feed_forward}.inner"), rows)?;
            let inner = tape.activate(inner, self.encoder.hidden_act);
            let outer = linear(tape, &format!("{feed_forward}.outer"), inner)?;
            rows = self.residual(tape, &feed_forward, (rows, outer), rng.as_deref_mut())?;
        }
        tape.compute_in(before);
        Ok(rows)
    }

    /// Scores of the next token over the vocabulary, `[rows, vocabulary]`.
    pub fn output(&self, tape: &mut Tape<'_>, rows: Var) -> Result<Var> {
        let (words, bias) = (tape.parameter(WORDS)?, tape.parameter(OUTPUT_BIAS)?);
        let before = tape.compute_in(self.encoder.compute);
        let scores = tape.linear_tied(rows, words, Some(bias));
        tape.compute_in(before);
        Ok(scores)
    }

    /// Checks that targets are not too long.
    pub fn check_targets(&self, targets: &Sequences) -> Result<()> {
        let longest = targets.segments().iter().map(|rows| rows.len()).max().unwrap_or(0);
        if longest > self.decoder_positions {
            let message =
                format!("{longest} decoder tokens exceed the maximum of the model, {}", self.decoder_positions);
            return Err(Error::too_many(message).with_hint("shorten the mention or the name"));
        }
        Ok(())
    }

    fn residual(
        &self,
        tape: &mut Tape<'_>,
        name: &str,
        (rows, made): (Var, Var),
        rng: Option<&mut SplitMix64>,
    ) -> Result<Var> {
        let made = tape.dropout(made, self.encoder.hidden_dropout_prob, rng);
        let sum = tape.add(rows, made);
        self.norm(tape, name, sum)
    }

    fn norm(&self, tape: &mut Tape<'_>, name: &str, rows: Var) -> Result<Var> {
        layer_norm(tape, &format!("{name}.norm"), rows, self.encoder.layer_norm_eps)
    }
}
