//! Cross-encoder: scores a mention in context and a concept name that are encoded together.
//!
//! Logeswaran et al., "Zero-Shot Entity Linking by Reading Entity Descriptions", ACL 2019, with names instead of descriptions, like the
//! cross-encoder baseline of Bhowmik et al. 2021. Shapes for `n` pairs of a mention and a name:
//!
//! ```text
//! [CLS] left [Ms] mention [Me] right [SEP]    type 0, at most n_wordpieces
//! name [SEP]                                  type 1, at most n_wordpieces / 4
//! BERT with pooler      [n, hidden]           dropout during training
//! linear layer          [n, 1]
//! ```
//!
//! Difference: the paper gives no length limits of the two parts; here each part has its own.

pub mod context;
pub mod infer;

use canonym_core::{Error, Result};
use serde::{Deserialize, Serialize};

use crate::autograd::{Tape, Var};
use crate::layers::linear::linear;
use crate::models::bert::{BertConfig, DEVIATION, Sequences};
use crate::models::cross_encoder::context::N_PIECES;
use crate::tensor::matrix::Matrix;
use crate::tensor::parameters::Parameters;
use crate::tensor::random::{self, SplitMix64};
use crate::tokenizer::Tokenizer;

/// Scope of the encoder weights.
pub const SCOPE: &str = "bert.";

/// Output layer.
pub const HEAD: &str = "head";

/// Model configuration.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CrossEncoderConfig {
    /// Configuration of the encoder.
    pub bert: BertConfig,
    /// Maximum number of wordpieces of a mention with its context; names get a quarter of that.
    #[serde(alias = "n_pieces", default = "n_wordpieces")]
    pub n_wordpieces: usize,
}

fn n_wordpieces() -> usize {
    N_PIECES
}

impl CrossEncoderConfig {
    /// Maximum number of wordpieces of a name, including `[SEP]`.
    pub fn n_name_wordpieces(&self) -> usize {
        (self.n_wordpieces / 4).max(2)
    }

    /// Second part of a pair: the name, truncated if it is too long, and `[SEP]`.
    pub fn name_rows(&self, tokenizer: &Tokenizer, name: &str) -> Result<Vec<u32>> {
        let mut rows = tokenizer.input_ids(name);
        rows.truncate(self.n_name_wordpieces() - 1);
        rows.push(tokenizer.ends()?.1);
        Ok(rows)
    }

    /// Initialises the weights that `parameters` lacks.
    pub fn init(&self, parameters: &mut Parameters, rng: &mut SplitMix64) {
        self.bert.init(parameters, SCOPE, rng);
        let width = self.bert.hidden_size;
        let weight = Matrix::new(width, 1, (0..width).map(|_| DEVIATION * random::normal(rng)).collect());
        for (part, value) in [("weight", weight), ("bias", Matrix::zeros(1, 1))] {
            let name = format!("{HEAD}.{part}");
            if parameters.find(&name).is_err() {
                parameters.add(name, value);
            }
        }
    }

    /// Checks that both parts of a pair fit the position embeddings, and that there are two token types.
    pub fn check_sizes(&self) -> Result<()> {
        self.bert.check_sizes()?;
        let (longest, n_places) = (self.n_wordpieces + self.n_name_wordpieces(), self.bert.max_position_embeddings);
        if self.n_wordpieces < 5 || longest > n_places {
            let message = format!(
                "a mention of {} wordpieces and a name exceed the maximum length {n_places}",
                self.n_wordpieces
            );
            return Err(Error::config(message).with_hint("`n_wordpieces` must be at least 5; 128 is typical"));
        }
        match self.bert.type_vocab_size {
            1 => Err(Error::unsupported("the encoder has one token type; a cross-encoder needs two")),
            _ => Ok(()),
        }
    }

    /// Checks the shapes of the weights.
    pub fn check(&self, parameters: &Parameters) -> Result<()> {
        self.check_sizes()?;
        self.bert.check(parameters, SCOPE)?;
        let width = self.bert.hidden_size;
        // The pooler is optional in BERT but required here.
        parameters.shaped(&format!("{SCOPE}pooler.weight"), width, width)?;
        parameters.shaped(&format!("{HEAD}.weight"), width, 1)?;
        parameters.shaped(&format!("{HEAD}.bias"), 1, 1)?;
        Ok(())
    }

    /// The score of each pair, `[pairs, 1]`; dropout is applied if `rng` is given.
    pub fn forward(&self, tape: &mut Tape<'_>, pairs: &Sequences, mut rng: Option<&mut SplitMix64>) -> Result<Var> {
        let rows = self.bert.forward(tape, SCOPE, pairs, rng.as_deref_mut())?;
        let pooled = self.bert.pool(tape, SCOPE, rows, pairs.segments())?;
        let pooled = tape.dropout(pooled, self.bert.hidden_dropout_prob, rng);
        linear(tape, HEAD, pooled)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::autograd::differences::{check, drawn};
    use crate::models::bert::tests::drawn_model;
    use crate::models::cross_encoder::context::{BEGIN, END};
    use crate::tensor::elementwise::Activation;
    use crate::tokenizer::{BEHIND, FIRST, UNKNOWN};

    /// A vocabulary of eleven wordpieces, and a small model with weights far enough from 0.
    pub(crate) fn drawn_cross_encoder() -> (CrossEncoderConfig, Parameters, Tokenizer) {
        let (bert, drawn_bert) = drawn_model(1, Activation::Gelu);
        let mut parameters = Parameters::default();
        drawn_bert.iter().for_each(|(name, value)| parameters.add(format!("{SCOPE}{name}"), value.clone()));
        let mut rng = SplitMix64::new(2);
        parameters.add("head.weight", drawn(12, 1, &mut rng));
        parameters.add("head.bias", drawn(1, 1, &mut rng));
        let words = [UNKNOWN, FIRST, BEHIND, BEGIN, END, "liver", "kidney", "disease", "fatty", "cold", "##s"];
        let tokenizer = Tokenizer::of(words.map(str::to_owned).to_vec()).unwrap();
        let config = CrossEncoderConfig { bert, n_wordpieces: 16 };
        config.check(&parameters).unwrap();
        (config, parameters, tokenizer)
    }

    #[test]
    fn scores_have_the_gradient_of_their_differences() {
        let (config, parameters, _) = drawn_cross_encoder();
        let mut pairs = Sequences::default();
        pairs.push(&[&[1, 3, 5, 4, 2], &[6, 2]]);
        pairs.push(&[&[1, 8, 3, 5, 10, 4, 2], &[7, 8, 2]]);
        check(&parameters, |tape| config.forward(tape, &pairs, Some(&mut SplitMix64::new(2))).unwrap());
    }

    #[test]
    fn names_are_cut_to_a_quarter_of_the_window() {
        let (config, _, tokenizer) = drawn_cross_encoder();
        assert_eq!(config.name_rows(&tokenizer, "Livers").unwrap(), [5, 10, 2]);
        assert_eq!(config.name_rows(&tokenizer, "fatty liver kidney disease cold").unwrap(), [8, 5, 6, 2]);
        assert_eq!(config.name_rows(&tokenizer, "").unwrap(), [2]);
    }

    #[test]
    fn weights_begin_as_published_and_stay_where_they_are_known() {
        let (config, drawn, _) = drawn_cross_encoder();
        let mut parameters = Parameters::default();
        parameters.add("bert.embedding.word", drawn.get("bert.embedding.word").unwrap().clone());
        config.init(&mut parameters, &mut SplitMix64::new(1));
        config.check(&parameters).unwrap();
        assert_eq!(parameters.get("bert.embedding.word").unwrap(), drawn.get("bert.embedding.word").unwrap());
        assert_eq!(parameters.get("head.bias").unwrap().values, [0.0]);
        assert!(parameters.get("head.weight").unwrap().values.iter().all(|value| value.abs() < 0.1));
    }

    #[test]
    fn sizes_and_weights_that_make_no_model_are_refused() {
        let (config, parameters, _) = drawn_cross_encoder();
        let refused = |config: CrossEncoderConfig| config.check(&parameters).unwrap_err().to_string();
        assert!(
            refused(CrossEncoderConfig { n_wordpieces: 33, ..config.clone() }).contains("exceed the maximum length 40")
        );
        assert!(
            refused(CrossEncoderConfig { n_wordpieces: 4, ..config.clone() }).contains("exceed the maximum length")
        );
        let bert = BertConfig { type_vocab_size: 1, ..config.bert.clone() };
        assert!(refused(CrossEncoderConfig { bert, ..config.clone() }).contains("one token type"));
        let without = parameters.clone().without("bert.pooler.weight");
        assert!(config.check(&without).unwrap_err().to_string().contains("bert.pooler.weight"));
        let mut wrong = parameters.clone();
        wrong.add("head.weight", Matrix::zeros(11, 1));
        assert!(config.check(&wrong).unwrap_err().to_string().contains("`head.weight` is 11 x 1"));
    }
}
