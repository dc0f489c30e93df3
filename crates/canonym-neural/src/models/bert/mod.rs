//! BERT: contextual vectors of wordpieces.
//!
//! Devlin, Chang, Lee and Toutanova, "BERT: Pre-training of Deep Bidirectional Transformers for Language Understanding", NAACL 2019, with
//! the encoder of Vaswani et al. 2017. BioBERT, SciBERT, PubMedBERT, SapBERT and MiniLM have the same architecture. Shapes for packed
//! sequences with `rows` wordpieces in total:
//!
//! ```text
//! embeddings        [rows, hidden]        word + position + type, layer norm, dropout
//! n layers x        [rows, 3 * hidden]    queries, keys and values
//!                   [rows, hidden]        multi-head attention within each sequence, linear layer, dropout,
//!                                         residual connection, layer norm
//!                   [rows, intermediate]  linear layer and activation
//!                   [rows, hidden]        linear layer, dropout, residual connection, layer norm
//! pooler            [sequences, hidden]   first row of each sequence, linear layer, tanh
//! ```
//!
//! There is no padding. Weights are listed in [`BertConfig::weights`]; several encoders share one [`Parameters`] under different scopes,
//! such as `mention.`. `checkpoint` converts from and to the names of Hugging Face.

pub mod infer;

use std::sync::Arc;

use canonym_core::{Error, Result};
use serde::{Deserialize, Serialize};

use crate::autograd::{AttentionConfig, Tape, Var};
use crate::layers::embedding::{embedding, positions_of};
use crate::layers::linear::linear;
use crate::layers::norm::layer_norm;
use crate::tensor::elementwise::Activation;
use crate::tensor::matrix::{Compute, Matrix};
use crate::tensor::parameters::Parameters;
use crate::tensor::random::{self, SplitMix64};
use crate::tensor::segments::Segments;

/// Standard deviation of initial weights, as in BERT.
pub const DEVIATION: f32 = 0.02;

/// Model configuration, with the field names of `config.json` in a checkpoint; other fields are ignored.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BertConfig {
    /// Size of the vocabulary.
    pub vocab_size: usize,
    /// Dimension of wordpiece vectors.
    pub hidden_size: usize,
    /// Number of layers.
    pub num_hidden_layers: usize,
    /// Number of attention heads; divides `hidden_size`.
    pub num_attention_heads: usize,
    /// Dimension of the feed-forward layers.
    pub intermediate_size: usize,
    /// Activation of the feed-forward layers.
    #[serde(default = "gelu")]
    pub hidden_act: Activation,
    /// Dropout of embeddings and of the output of each sublayer.
    #[serde(default = "tenth")]
    pub hidden_dropout_prob: f32,
    /// Dropout of attention probabilities.
    #[serde(default = "tenth")]
    pub attention_probs_dropout_prob: f32,
    /// Maximum length of a sequence.
    #[serde(default = "positions")]
    pub max_position_embeddings: usize,
    /// Number of token types.
    #[serde(default = "types")]
    pub type_vocab_size: usize,
    /// Epsilon of layer norms.
    #[serde(default = "epsilon")]
    pub layer_norm_eps: f32,
    /// Precision of matrix products.
    #[serde(default, skip_serializing_if = "Compute::is_f32")]
    pub compute: Compute,
}

fn gelu() -> Activation {
    Activation::Gelu
}

fn tenth() -> f32 {
    0.1
}

fn positions() -> usize {
    512
}

fn types() -> usize {
    2
}

fn epsilon() -> f32 {
    crate::autograd::NORM_EPSILON
}

/// A packed batch of wordpiece sequences. The caller adds `[CLS]` and `[SEP]`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Sequences {
    // Private: input_ids and types have one entry for each row of the segments.
    input_ids: Vec<u32>,
    types: Vec<u32>,
    segments: Segments,
}

impl Sequences {
    /// Packs sequences with a single part each.
    ///
    /// # Panics
    /// If a sequence is empty.
    pub fn pack<'a>(sequences: impl IntoIterator<Item = &'a [u32]>) -> Sequences {
        let mut packed = Sequences::default();
        sequences.into_iter().for_each(|sequence| packed.push(&[sequence]));
        packed
    }

    /// Appends a sequence made of parts; wordpieces of part i get token type i.
    ///
    /// # Panics
    /// If all parts are empty: a sequence has at least `[CLS]`.
    pub fn push(&mut self, parts: &[&[u32]]) {
        let length: usize = parts.iter().map(|part| part.len()).sum();
        assert!(length > 0, "a sequence of one piece or more");
        for (of_type, part) in parts.iter().enumerate() {
            self.input_ids.extend_from_slice(part);
            self.types.extend(std::iter::repeat_n(of_type as u32, part.len()));
        }
        self.segments.push(length);
    }

    /// Appends the sequences of another batch.
    pub fn append(&mut self, other: &Sequences) {
        self.input_ids.extend_from_slice(&other.input_ids);
        self.types.extend_from_slice(&other.types);
        other.segments.iter().for_each(|rows| self.segments.push(rows.len()));
    }

    /// A range of sequences as a new batch.
    pub fn slice(&self, sequences: std::ops::Range<usize>) -> Sequences {
        let mut slice = Sequences::default();
        for sequence in sequences {
            let rows = self.segments.rows(sequence);
            slice.input_ids.extend_from_slice(&self.input_ids[rows.clone()]);
            slice.types.extend_from_slice(&self.types[rows.clone()]);
            slice.segments.push(rows.len());
        }
        slice
    }

    /// `input_ids`: vocabulary rows of all wordpieces.
    pub fn input_ids(&self) -> &[u32] {
        &self.input_ids
    }

    /// Token type of each wordpiece.
    pub fn types(&self) -> &[u32] {
        &self.types
    }

    /// Row range of each sequence.
    pub fn segments(&self) -> &Segments {
        &self.segments
    }

    /// Number of sequences.
    pub fn len(&self) -> usize {
        self.segments.len()
    }

    /// Whether there are no sequences.
    pub fn is_empty(&self) -> bool {
        self.segments.is_empty()
    }
}

/// Name and shape of a weight.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Weight {
    /// Name without the scope.
    pub name: String,
    /// Number of rows.
    pub n_rows: usize,
    /// Number of columns.
    pub n_cols: usize,
}

impl BertConfig {
    /// All weights, in order; the pooler is last and optional.
    pub fn weights(&self) -> Vec<Weight> {
        let (width, inner) = (self.hidden_size, self.intermediate_size);
        let weight = |name: &str, n_rows, n_cols| Weight { name: name.to_owned(), n_rows, n_cols };
        let norm = |name: &str| ["gain", "bias"].map(|part| weight(&format!("{name}.norm.{part}"), 1, width));
        let linear = |name: &str, n_in, n_out| {
            [weight(&format!("{name}.weight"), n_in, n_out), weight(&format!("{name}.bias"), 1, n_out)]
        };
        let mut weights = vec![
            weight("embedding.word", self.vocab_size, width),
            weight("embedding.position", self.max_position_embeddings, width),
            weight("embedding.type", self.type_vocab_size, width),
        ];
        weights.extend(norm("embedding"));
        for layer in 0..self.num_hidden_layers {
            let (attention, feed_forward) = (format!("layer.{layer}.attention"), format!("layer.{layer}.feed_forward"));
            weights.extend(linear(&format!("{attention}.input"), width, 3 * width));
            weights.extend(linear(&format!("{attention}.output"), width, width));
            weights.extend(norm(&attention));
            weights.extend(linear(&format!("{feed_forward}.inner"), width, inner));
            weights.extend(linear(&format!("{feed_forward}.outer"), inner, width));
            weights.extend(norm(&feed_forward));
        }
        weights.extend(linear("pooler", width, width));
        weights
    }

    /// Initialises the weights that `parameters` lacks, as in BERT.
    pub fn init(&self, parameters: &mut Parameters, scope: &str, rng: &mut SplitMix64) {
        for Weight { name, n_rows, n_cols } in self.weights() {
            let n = n_rows * n_cols;
            let values = match name.rsplit('.').next() {
                Some("gain") => vec![1.0; n],
                Some("bias") => vec![0.0; n],
                _ => (0..n).map(|_| DEVIATION * random::normal(rng)).collect(),
            };
            let name = format!("{scope}{name}");
            if parameters.find(&name).is_err() {
                parameters.add(name, Matrix::new(n_rows, n_cols, values));
            }
        }
    }

    /// Checks that the sizes are consistent.
    pub fn check_sizes(&self) -> Result<()> {
        let sizes = [
            ("vocab_size", self.vocab_size),
            ("hidden_size", self.hidden_size),
            ("num_attention_heads", self.num_attention_heads),
            ("intermediate_size", self.intermediate_size),
            ("max_position_embeddings", self.max_position_embeddings),
            ("type_vocab_size", self.type_vocab_size),
        ];
        let empty = sizes.into_iter().find(|(_, size)| *size == 0).map(|(name, _)| format!("`{name}` is 0"));
        let uneven = || {
            let (width, n_heads) = (self.hidden_size, self.num_attention_heads);
            (width % n_heads != 0).then(|| format!("a hidden size of {width} is not divisible by {n_heads} heads"))
        };
        let rates = [
            ("hidden_dropout_prob", self.hidden_dropout_prob),
            ("attention_probs_dropout_prob", self.attention_probs_dropout_prob),
        ];
        let rate = || {
            let wrong = rates.into_iter().find(|(_, rate)| !(0.0..1.0).contains(rate));
            wrong.map(|(name, rate)| format!("`{name}` is {rate}"))
        };
        match empty.or_else(uneven).or_else(rate) {
            Some(what) => {
                let hint = "sizes must be at least 1, `hidden_size` a multiple of `num_attention_heads`, dropout at least 0 and below 1";
                Err(Error::config(format!("invalid BERT config: {what}")).with_hint(hint))
            }
            None => Ok(()),
        }
    }

    /// Checks the shapes of the weights under `scope`; the pooler may be missing.
    pub fn check(&self, parameters: &Parameters, scope: &str) -> Result<()> {
        self.check_sizes()?;
        let has_pooler = parameters.find(&format!("{scope}pooler.weight")).is_ok();
        for Weight { name, n_rows, n_cols } in self.weights() {
            if has_pooler || !name.starts_with("pooler.") {
                parameters.shaped(&format!("{scope}{name}"), n_rows, n_cols)?;
            }
        }
        Ok(())
    }

    /// Checks that wordpieces, token types and lengths of sequences are within the limits of the model.
    pub fn check_sequences(&self, sequences: &Sequences) -> Result<()> {
        let max_of = |rows: &[u32]| rows.iter().copied().max().unwrap_or(0) as usize;
        let longest = sequences.segments.iter().map(|rows| rows.len()).max().unwrap_or(0);
        let limits = [
            (
                "wordpiece id",
                max_of(&sequences.input_ids) + 1,
                self.vocab_size,
                "the vocabulary belongs to another model",
            ),
            ("token type", max_of(&sequences.types) + 1, self.type_vocab_size, "use fewer segments"),
            ("sequence length", longest + 1, self.max_position_embeddings + 1, "split longer texts"),
        ];
        match limits.into_iter().find(|(_, size, limit, _)| size > limit) {
            Some((what, size, limit, hint)) => {
                let message = format!("{what} {} exceeds the maximum of the model, {}", size - 1, limit - 1);
                Err(Error::too_many(message).with_hint(hint))
            }
            None => Ok(()),
        }
    }

    /// Wordpiece vectors, `[rows, hidden]`; dropout is applied if `rng` is given.
    pub fn forward(
        &self,
        tape: &mut Tape<'_>,
        scope: &str,
        sequences: &Sequences,
        mut rng: Option<&mut SplitMix64>,
    ) -> Result<Var> {
        self.check_sequences(sequences)?;
        let segments = Arc::new(sequences.segments.clone());
        let attention =
            AttentionConfig { n_heads: self.num_attention_heads, dropout: self.attention_probs_dropout_prob };
        let rate = self.hidden_dropout_prob;
        let before = tape.compute_in(self.compute);
        let rows = self.embed(tape, scope, sequences)?;
        let mut rows = tape.dropout(rows, rate, rng.as_deref_mut());
        for layer in 0..self.num_hidden_layers {
            let scope = format!("{scope}layer.{layer}.");
            let input = linear(tape, &format!("{scope}attention.input"), rows)?;
            let seen = tape.attention(input, attention, &segments, rng.as_deref_mut());
            let seen = linear(tape, &format!("{scope}attention.output"), seen)?;
            let seen = tape.dropout(seen, rate, rng.as_deref_mut());
            rows = tape.add(rows, seen);
            rows = layer_norm(tape, &format!("{scope}attention.norm"), rows, self.layer_norm_eps)?;
            let inner = linear(tape, &format!("{scope}feed_forward.inner"), rows)?;
            let inner = tape.activate(inner, self.hidden_act);
            let outer = linear(tape, &format!("{scope}feed_forward.outer"), inner)?;
            let outer = tape.dropout(outer, rate, rng.as_deref_mut());
            rows = tape.add(rows, outer);
            rows = layer_norm(tape, &format!("{scope}feed_forward.norm"), rows, self.layer_norm_eps)?;
        }
        tape.compute_in(before);
        Ok(rows)
    }

    /// Pooler: from wordpiece vectors `[rows, hidden]` to one vector per sequence, `[sequences, hidden]`.
    pub fn pool(&self, tape: &mut Tape<'_>, scope: &str, rows: Var, segments: &Segments) -> Result<Var> {
        let first = tape.gather(rows, segments.iter().map(|rows| rows.start as u32).collect());
        let pooled = linear(tape, &format!("{scope}pooler"), first)?;
        Ok(tape.activate(pooled, Activation::Tanh))
    }

    fn embed(&self, tape: &mut Tape<'_>, scope: &str, sequences: &Sequences) -> Result<Var> {
        let mut rows = embedding(tape, &format!("{scope}embedding.word"), sequences.input_ids.clone())?;
        for (name, ids) in [("position", positions_of(&sequences.segments)), ("type", sequences.types.clone())] {
            let added = embedding(tape, &format!("{scope}embedding.{name}"), ids)?;
            rows = tape.add(rows, added);
        }
        layer_norm(tape, &format!("{scope}embedding.norm"), rows, self.layer_norm_eps)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::autograd::differences::{check, drawn};
    use crate::models::bert::infer::{BertEncoder, Pooling};

    /// A small model with weights far enough from 0.
    pub(crate) fn drawn_model(n_layers: usize, activation: Activation) -> (BertConfig, Parameters) {
        let json = format!(
            r#"{{"vocab_size": 11, "hidden_size": 12, "num_hidden_layers": {n_layers}, "num_attention_heads": 3,
                "intermediate_size": 10, "max_position_embeddings": 40, "model_type": "bert"}}"#
        );
        let config = BertConfig { hidden_act: activation, ..serde_json::from_str(&json).unwrap() };
        let mut parameters = Parameters::default();
        let mut rng = SplitMix64::new(8);
        for Weight { name, n_rows, n_cols } in config.weights() {
            let mut value = drawn(n_rows, n_cols, &mut rng);
            let scale = if n_rows == 1 { 0.5 } else { 1.0 / (n_rows.min(12) as f32).sqrt() };
            let shift = if name.ends_with("gain") { 1.0 } else { 0.0 };
            value.values.iter_mut().for_each(|value| *value = *value * scale + shift);
            parameters.add(name, value);
        }
        config.check(&parameters, "").unwrap();
        (config, parameters)
    }

    #[test]
    fn products_of_16_bits_change_vectors_and_gradients_little() {
        let json = r#"{"vocab_size": 50, "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
            "intermediate_size": 96, "max_position_embeddings": 80}"#;
        let single: BertConfig = serde_json::from_str(json).unwrap();
        let brain = BertConfig { compute: Compute::Bf16, ..single.clone() };
        let mut parameters = Parameters::default();
        single.init(&mut parameters, "", &mut SplitMix64::new(1));
        let rows: Vec<Vec<u32>> = [70, 3, 40].map(|n| (0..n).map(|at| at * 7 % 50).collect()).into();
        let sequences = Sequences::pack(rows.iter().map(Vec::as_slice));
        let far = |left: &Matrix, right: &Matrix| {
            let length = |values: &mut dyn Iterator<Item = f32>| values.map(|x| x * x).sum::<f32>().sqrt();
            length(&mut left.values.iter().zip(&right.values).map(|(left, right)| left - right))
                / length(&mut left.values.iter().copied())
        };
        let run = |config: &BertConfig| {
            let mut tape = Tape::new(&parameters);
            let output = config.forward(&mut tape, "", &sequences, Some(&mut SplitMix64::new(2))).unwrap();
            let value = tape.value(output).clone();
            let gradients = drawn(value.n_rows, value.n_cols, &mut SplitMix64::new(3));
            (value, tape.backward([(output, gradients)]))
        };
        let ((value, gradients), (near, near_gradients)) = (run(&single), run(&brain));
        assert!(far(&value, &near) < 0.02, "{}", far(&value, &near));
        for (row, (name, _)) in parameters.iter().enumerate() {
            let Some((gradient, near)) = gradients.of(row).zip(near_gradients.of(row)) else { continue };
            let n_rows = parameters.at(row).n_rows;
            let (gradient, near) = (&gradient.to_matrix(n_rows), &near.to_matrix(n_rows));
            // A constant added to all keys cancels in the softmax, so a third of this gradient is rounding error.
            let limit = if name.ends_with("attention.input.bias") { 0.5 } else { 0.1 };
            assert!(far(gradient, near) < limit, "{name}: {}", far(gradient, near));
        }
        let encoded = |config| {
            BertEncoder::new(config, &parameters, "").unwrap().encode_pooled(&sequences, Pooling::Mean).unwrap()
        };
        assert!(far(&encoded(&single), &encoded(&brain)) < 0.02);
        // The vector of a sequence is the same when it is encoded alone.
        let encoder = BertEncoder::new(&brain, &parameters, "").unwrap();
        let alone = encoder.encode_pooled(&sequences.slice(1..2), Pooling::Mean).unwrap();
        assert_eq!(alone.values, encoded(&brain).row(1));
        // Default values are not written.
        assert!(!serde_json::to_string(&single).unwrap().contains("compute"));
        assert!(serde_json::to_string(&brain).unwrap().contains(r#""compute":"bf16""#));
    }

    fn sequences() -> Sequences {
        let mut sequences = Sequences::pack([[1, 2, 3].as_slice(), &[4]]);
        sequences.push(&[&[5, 6], &[7, 8, 0]]);
        sequences
    }

    #[test]
    fn the_model_has_the_gradient_of_its_differences() {
        for activation in [Activation::Gelu, Activation::GeluTanh] {
            let (config, parameters) = drawn_model(2, activation);
            check(&parameters, |tape| {
                let rows = config.forward(tape, "", &sequences(), Some(&mut SplitMix64::new(2))).unwrap();
                let pooled = config.pool(tape, "", rows, sequences().segments()).unwrap();
                tape.stack(rows, pooled)
            });
        }
    }

    #[test]
    fn dropout_changes_what_is_trained_and_nothing_else() {
        let (config, parameters) = drawn_model(1, Activation::Gelu);
        let value = |config: &BertConfig, seed: Option<u64>| {
            let mut tape = Tape::new(&parameters);
            let mut rng = seed.map(SplitMix64::new);
            let rows = config.forward(&mut tape, "", &sequences(), rng.as_mut()).unwrap();
            tape.value(rows).clone()
        };
        let without = BertConfig { hidden_dropout_prob: 0.0, attention_probs_dropout_prob: 0.0, ..config.clone() };
        assert_eq!(value(&config, None), value(&without, Some(1)));
        let hidden = BertConfig { attention_probs_dropout_prob: 0.0, ..config.clone() };
        let attention = BertConfig { hidden_dropout_prob: 0.0, ..config.clone() };
        for config in [hidden, attention] {
            assert_ne!(value(&config, Some(1)), value(&config, None));
            assert_eq!(value(&config, Some(1)), value(&config, Some(1)));
        }
    }

    #[test]
    fn two_encoders_share_parameters_under_their_scopes() {
        let (config, _) = drawn_model(1, Activation::Gelu);
        let mut parameters = Parameters::default();
        for scope in ["mention.", "entity."] {
            config.init(&mut parameters, scope, &mut SplitMix64::new(1));
            config.check(&parameters, scope).unwrap();
        }
        assert_eq!(parameters.len(), 2 * config.weights().len());
        assert_eq!(parameters.get("mention.pooler.weight").unwrap(), parameters.get("entity.pooler.weight").unwrap());
        let message = config.check(&parameters, "").unwrap_err().to_string();
        assert_eq!(message, "the model has no weight `embedding.word`");
    }

    #[test]
    fn bert_base_has_the_published_number_of_weights() {
        let json = r#"{"vocab_size": 30522, "hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12,
            "intermediate_size": 3072}"#;
        let config: BertConfig = serde_json::from_str(json).unwrap();
        let n: usize = config.weights().iter().map(|weight| weight.n_rows * weight.n_cols).sum();
        assert_eq!(n, 109_482_240);
    }

    #[test]
    fn what_the_model_cannot_take_is_refused() {
        let (config, parameters) = drawn_model(1, Activation::Gelu);
        let refused = |sequences: &Sequences| {
            config.forward(&mut Tape::new(&parameters), "", sequences, None).unwrap_err().to_string()
        };
        let mut parts = Sequences::default();
        parts.push(&[&[1], &[1], &[1]]);
        assert_eq!(refused(&parts), "token type 2 exceeds the maximum of the model, 1");
        assert_eq!(
            refused(&Sequences::pack([[11].as_slice()])),
            "wordpiece id 11 exceeds the maximum of the model, 10"
        );
        assert_eq!(
            refused(&Sequences::pack([[1; 41].as_slice()])),
            "sequence length 41 exceeds the maximum of the model, 40"
        );
        let wrong = |config: BertConfig| config.check_sizes().unwrap_err().to_string();
        assert_eq!(
            wrong(BertConfig { num_attention_heads: 5, ..config.clone() }),
            "invalid BERT config: a hidden size of 12 is not divisible by 5 heads"
        );
        assert_eq!(
            wrong(BertConfig { hidden_dropout_prob: 1.0, ..config.clone() }),
            "invalid BERT config: `hidden_dropout_prob` is 1"
        );
    }
}
