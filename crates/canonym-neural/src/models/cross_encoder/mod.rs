//! A cross-encoder: mention in context and name of a concept are read together, and become one score.
//!
//! Logeswaran et al., "Zero-Shot Entity Linking by Reading Entity Descriptions", ACL 2019, with names in the place of descriptions, as
//! Bhowmik et al. 2021 compare with. Shapes for `n` pairs of a mention and a name:
//!
//! ```text
//! [CLS] left [Ms] mention [Me] right [SEP]    type 0, at most n_pieces
//! name [SEP]                                  type 1, at most a quarter of that
//! BERT, its pooler      [n, hidden]           dropout while it is trained
//! linear layer          [n, 1]
//! ```
//!
//! Differences: the paper does not say how long the two parts are together; here each has its own limit.

pub mod context;
pub mod infer;

use canonym_core::{Error, Result};
use serde::{Deserialize, Serialize};

use crate::autograd::{Tape, Var};
use crate::models::bert::{BertConfig, DEVIATION, Sequences};
use crate::models::cross_encoder::context::N_PIECES;
use crate::tensor::matrix::Matrix;
use crate::tensor::parameters::Parameters;
use crate::tensor::random::{self, SplitMix64};
use crate::tokenizer::{BEHIND, Pieces};

/// The scope of the encoder.
pub const SCOPE: &str = "bert.";

/// The weight and the bias of the last layer.
pub const HEAD: [&str; 2] = ["head.weight", "head.bias"];

/// The shape of the model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CrossEncoderConfig {
    /// The encoder.
    pub bert: BertConfig,
    /// Pieces of a mention and its context at most; of a name a quarter.
    #[serde(default = "n_pieces")]
    pub n_pieces: usize,
}

fn n_pieces() -> usize {
    N_PIECES
}

impl CrossEncoderConfig {
    /// Pieces of a name at most, its `[SEP]` included.
    pub fn n_name_pieces(&self) -> usize {
        (self.n_pieces / 4).max(2)
    }

    /// The second part of a pair: a name, cut where it is too long, and `[SEP]`.
    pub fn name_rows(&self, pieces: &Pieces, name: &str) -> Result<Vec<u32>> {
        let mut rows = pieces.rows(name);
        rows.truncate(self.n_name_pieces() - 1);
        rows.push(pieces.require(BEHIND)?);
        Ok(rows)
    }

    /// Adds weights to start from where `parameters` has none of that name: those of BERT, and a last layer.
    pub fn init(&self, parameters: &mut Parameters, rng: &mut SplitMix64) {
        self.bert.init(parameters, SCOPE, rng);
        let width = self.bert.hidden_size;
        let weight = Matrix::new(width, 1, (0..width).map(|_| DEVIATION * random::normal(rng)).collect());
        for (name, value) in HEAD.into_iter().zip([weight, Matrix::zeros(1, 1)]) {
            if parameters.find(name).is_err() {
                parameters.add(name, value);
            }
        }
    }

    /// Checks that there are places enough for both parts of a pair, and two types for them.
    pub fn check_sizes(&self) -> Result<()> {
        self.bert.check_sizes()?;
        let (longest, n_places) = (self.n_pieces + self.n_name_pieces(), self.bert.max_position_embeddings);
        if self.n_pieces < 5 || longest > n_places {
            let message =
                format!("a mention of {} wordpieces and a name exceed the maximum length {n_places}", self.n_pieces);
            return Err(Error::invalid(message).with_hint("`n_pieces` must be at least 5; 128 is typical"));
        }
        match self.bert.type_vocab_size {
            1 => Err(Error::invalid("the encoder has one token type; a cross-encoder needs two")),
            _ => Ok(()),
        }
    }

    /// Checks that the weights have the shapes that the config names.
    pub fn check(&self, parameters: &Parameters) -> Result<()> {
        self.check_sizes()?;
        self.bert.check(parameters, SCOPE)?;
        let width = self.bert.hidden_size;
        // Without a pooler the encoder is one of words alone.
        parameters.shaped(&format!("{SCOPE}pooler.weight"), width, width)?;
        parameters.shaped(HEAD[0], width, 1)?;
        parameters.shaped(HEAD[1], 1, 1)?;
        Ok(())
    }

    /// The score of each pair, `[pairs, 1]`; with dropout where there is a generator.
    pub fn forward(&self, tape: &mut Tape<'_>, pairs: &Sequences, mut rng: Option<&mut SplitMix64>) -> Result<Var> {
        let rows = self.bert.forward(tape, SCOPE, pairs, rng.as_deref_mut())?;
        let pooled = self.bert.pool(tape, SCOPE, rows, pairs.segments())?;
        let pooled = tape.dropout(pooled, self.bert.hidden_dropout_prob, rng);
        let (weight, bias) = (tape.parameter(HEAD[0])?, tape.parameter(HEAD[1])?);
        Ok(tape.linear(pooled, weight, Some(bias)))
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::autograd::differences::{check, drawn};
    use crate::models::bert::tests::drawn_model;
    use crate::models::cross_encoder::context::{BEGIN, END};
    use crate::tensor::elementwise::Activation;
    use crate::tokenizer::{FIRST, UNKNOWN};

    /// A vocabulary of eleven pieces, and a small model with weights that are not near 0.
    pub(crate) fn drawn_cross_encoder() -> (CrossEncoderConfig, Parameters, Pieces) {
        let (bert, drawn_bert) = drawn_model(1, Activation::Gelu);
        let mut parameters = Parameters::default();
        drawn_bert.iter().for_each(|(name, value)| parameters.add(format!("{SCOPE}{name}"), value.clone()));
        let mut rng = SplitMix64::new(2);
        parameters.add(HEAD[0], drawn(12, 1, &mut rng));
        parameters.add(HEAD[1], drawn(1, 1, &mut rng));
        let words = [UNKNOWN, FIRST, BEHIND, BEGIN, END, "liver", "kidney", "disease", "fatty", "cold", "##s"];
        let pieces = Pieces::of(words.map(str::to_owned).to_vec()).unwrap();
        let config = CrossEncoderConfig { bert, n_pieces: 16 };
        config.check(&parameters).unwrap();
        (config, parameters, pieces)
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
        let (config, _, pieces) = drawn_cross_encoder();
        assert_eq!(config.name_rows(&pieces, "Livers").unwrap(), [5, 10, 2]);
        assert_eq!(config.name_rows(&pieces, "fatty liver kidney disease cold").unwrap(), [8, 5, 6, 2]);
        assert_eq!(config.name_rows(&pieces, "").unwrap(), [2]);
    }

    #[test]
    fn weights_begin_as_published_and_stay_where_they_are_known() {
        let (config, drawn, _) = drawn_cross_encoder();
        let mut parameters = Parameters::default();
        parameters.add("bert.embedding.word", drawn.get("bert.embedding.word").unwrap().clone());
        config.init(&mut parameters, &mut SplitMix64::new(1));
        config.check(&parameters).unwrap();
        assert_eq!(parameters.get("bert.embedding.word").unwrap(), drawn.get("bert.embedding.word").unwrap());
        assert_eq!(parameters.get(HEAD[1]).unwrap().values, [0.0]);
        assert!(parameters.get(HEAD[0]).unwrap().values.iter().all(|value| value.abs() < 0.1));
    }

    #[test]
    fn sizes_and_weights_that_make_no_model_are_refused() {
        let (config, parameters, _) = drawn_cross_encoder();
        let refused = |config: CrossEncoderConfig| config.check(&parameters).unwrap_err().to_string();
        assert!(refused(CrossEncoderConfig { n_pieces: 33, ..config.clone() }).contains("do not fit 40 places"));
        assert!(refused(CrossEncoderConfig { n_pieces: 4, ..config.clone() }).contains("do not fit"));
        let bert = BertConfig { type_vocab_size: 1, ..config.bert.clone() };
        assert!(refused(CrossEncoderConfig { bert, ..config.clone() }).contains("one type of parts"));
        let without = parameters.clone().without("bert.pooler.weight");
        assert!(config.check(&without).unwrap_err().to_string().contains("bert.pooler.weight"));
        let mut wrong = parameters.clone();
        wrong.add(HEAD[0], Matrix::zeros(11, 1));
        assert!(config.check(&wrong).unwrap_err().to_string().contains("`head.weight` is 11 x 1"));
    }
}
