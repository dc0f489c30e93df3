//! Dual encoder: embeds mentions in context and concept names separately; their inner product is the score.
//!
//! Bhowmik, Stratos and de Melo, "Fast and Effective Biomedical Entity Linking Using a Dual Encoder", LOUHI 2021. Texts and names have
//! separate BERT encoders. The collective model encodes a text once for all of its mentions:
//!
//! ```text
//! text      [rows, hidden]       wordpiece vectors of `[CLS] … [SEP]`
//! mention   [mentions, hidden]   linear layer over first and last wordpiece (equation 1), or mean of its wordpieces (section 3.4)
//! name      [names, hidden]      pooler output of `[CLS] … [SEP]`
//! score     [mentions, names]    inner product
//! spans     [rows, 3]            scores of begin, end and inside (equation 4), or of the tags O, B, I
//! ```
//!
//! The logit of a span is the begin score of its first wordpiece, plus the end score of its last, plus the inside scores of all its
//! wordpieces. The single-mention model encodes a window for each mention, marked by `[Ms]` and `[Me]`, and uses the `[CLS]` vector.
//!
//! Differences from the paper: the layer of equation 1 is initialised as the mean of both boundary tokens, so that pre-trained name
//! similarity is available from the first step; spans never contain `[CLS]` or `[SEP]`.

pub mod infer;
pub mod spans;
pub mod windows;

use std::sync::Arc;

use canonym_core::{Error, Result};
use serde::{Deserialize, Serialize};

use crate::autograd::{Tape, Var};
use crate::layers::linear::linear;
use crate::models::bert::{BertConfig, Sequences};
use crate::tensor::elementwise::Activation;
use crate::tensor::matrix::Matrix;
use crate::tensor::parameters::Parameters;
use crate::tensor::random::{self, SplitMix64};
use crate::tensor::segments::Segments;

/// Scope of the text encoder's weights.
pub const TEXT: &str = "text.";

/// Scope of the name encoder's weights.
pub const NAME: &str = "name.";

/// Linear layer over the boundary tokens of a mention.
pub const ENDS: &str = "mention";

/// Linear layer of the span scores or tags.
pub const SPANS: &str = "spans";

/// Norm of name vectors for [`NameVector::Normalised`]. Mention vectors have norms around 6, so the softmax can be sharp.
pub const NAME_LENGTH: f32 = 4.0;

/// Standard deviation of the initial weights of [`SPANS`].
const DEVIATION: f32 = 0.02;

/// Model configuration.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DualEncoderConfig {
    /// Configuration of both encoders.
    pub bert: BertConfig,
    /// How a mention is embedded.
    pub mention: MentionVector,
    /// How a name is embedded.
    pub name: NameVector,
    /// How mentions are detected; `None` if they have to be given.
    pub search: Option<SpanSearch>,
}

/// How a mention is embedded.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MentionVector {
    /// Linear layer over its first and last wordpiece.
    #[default]
    #[serde(rename = "boundary-tokens", alias = "ends")]
    BoundaryTokens,
    /// Mean of its wordpieces.
    Mean,
    /// `[CLS]` of a window with markers around the mention.
    First,
    /// Pooler output of such a window, as in the published code of TrainX.
    Pooler,
}

/// How a name is embedded.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NameVector {
    /// Pooler output, as in the published code.
    #[default]
    Pooler,
    /// `[CLS]`, as in the paper.
    First,
    /// Mean of its wordpieces, as in sentence encoders.
    Mean,
    /// Mean of its wordpieces, scaled to norm [`NAME_LENGTH`], so that the norm of a name does not affect its rank.
    #[serde(alias = "direction")]
    Normalised,
}

/// How mentions are detected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SpanSearch {
    /// Scores all spans up to a maximum length.
    Exhaustive {
        /// Maximum number of wordpieces of a span.
        longest: usize,
    },
    /// Tags each word as outside, begin or inside.
    Tags,
}

/// The rows of a mention in a packed batch, both ends included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WindowSpan {
    /// First row of its window.
    pub window: usize,
    /// Row of its first wordpiece.
    pub first: usize,
    /// Row of its last wordpiece.
    pub last: usize,
}

/// Outputs of the text encoder.
#[derive(Debug, Clone, Copy)]
pub struct TextOutputs {
    /// Mention embeddings, `[mentions, hidden]`.
    pub mentions: Option<Var>,
    /// Three scores per wordpiece, if the model has a span search.
    pub spans: Option<Var>,
}

impl DualEncoderConfig {
    /// Initialises the weights that `parameters` lacks, and removes unused poolers.
    pub fn init(&self, parameters: &mut Parameters, rng: &mut SplitMix64) {
        for (scope, pools) in [(TEXT, self.mention == MentionVector::Pooler), (NAME, self.name == NameVector::Pooler)] {
            self.bert.init(parameters, scope, rng);
            if !pools {
                *parameters = ["weight", "bias"]
                    .iter()
                    .fold(std::mem::take(parameters), |all, part| all.without(&format!("{scope}pooler.{part}")));
            }
        }
        let dim = self.bert.hidden_size;
        if self.mention == MentionVector::BoundaryTokens && parameters.find(&format!("{ENDS}.weight")).is_err() {
            let mut weight = Matrix::zeros(2 * dim, dim);
            (0..2 * dim).for_each(|row| weight.row_mut(row)[row % dim] = 0.5);
            parameters.add(format!("{ENDS}.weight"), weight);
            parameters.add(format!("{ENDS}.bias"), Matrix::zeros(1, dim));
        }
        if self.search.is_some() && parameters.find(&format!("{SPANS}.weight")).is_err() {
            let values = (0..3 * dim).map(|_| DEVIATION * random::normal(rng)).collect();
            parameters.add(format!("{SPANS}.weight"), Matrix::new(dim, 3, values));
            parameters.add(format!("{SPANS}.bias"), Matrix::zeros(1, 3));
        }
    }

    /// Checks the shapes of the weights.
    pub fn check(&self, parameters: &Parameters) -> Result<()> {
        let dim = self.bert.hidden_size;
        self.bert.check(parameters, TEXT)?;
        self.bert.check(parameters, NAME)?;
        if self.name == NameVector::Pooler {
            parameters.shaped(&format!("{NAME}pooler.weight"), dim, dim)?;
            parameters.shaped(&format!("{NAME}pooler.bias"), 1, dim)?;
        }
        if self.mention == MentionVector::Pooler {
            parameters.shaped(&format!("{TEXT}pooler.weight"), dim, dim)?;
            parameters.shaped(&format!("{TEXT}pooler.bias"), 1, dim)?;
        }
        if self.mention == MentionVector::BoundaryTokens {
            parameters.shaped(&format!("{ENDS}.weight"), 2 * dim, dim)?;
            parameters.shaped(&format!("{ENDS}.bias"), 1, dim)?;
        }
        if let Some(SpanSearch::Exhaustive { longest: 0 }) = self.search {
            let error = Error::config("the maximum span length must be at least 1");
            return Err(error.with_hint("set `longest` to 1 or more; the paper uses 10"));
        }
        if self.search.is_some() {
            parameters.shaped(&format!("{SPANS}.weight"), dim, 3)?;
            parameters.shaped(&format!("{SPANS}.bias"), 1, 3)?;
        }
        Ok(())
    }

    /// Mention embeddings and span scores of packed windows.
    pub fn read_windows(
        &self,
        tape: &mut Tape<'_>,
        windows: &Sequences,
        mention_spans: &[WindowSpan],
        rng: Option<&mut SplitMix64>,
    ) -> Result<TextOutputs> {
        let rows = self.bert.forward(tape, TEXT, windows, rng)?;
        let spans = match self.search {
            Some(_) => Some(linear(tape, SPANS, rows)?),
            None => None,
        };
        if mention_spans.is_empty() {
            return Ok(TextOutputs { mentions: None, spans });
        }
        let row = |row: usize| row as u32;
        let mentions = match self.mention {
            MentionVector::BoundaryTokens => {
                let first = tape.gather(rows, mention_spans.iter().map(|span| row(span.first)).collect());
                let last = tape.gather(rows, mention_spans.iter().map(|span| row(span.last)).collect());
                let ends = tape.concat(&[first, last]);
                linear(tape, ENDS, ends)?
            }
            MentionVector::Mean => {
                let each = mention_spans.iter().flat_map(|span| span.first..span.last + 1).map(row).collect();
                let wordpieces = tape.gather(rows, each);
                let segments = Segments::of_lengths(mention_spans.iter().map(|span| span.last + 1 - span.first));
                tape.segment_mean(wordpieces, &Arc::new(segments))
            }
            MentionVector::First => tape.gather(rows, mention_spans.iter().map(|span| row(span.window)).collect()),
            MentionVector::Pooler => {
                let first = tape.gather(rows, mention_spans.iter().map(|span| row(span.window)).collect());
                let pooled = linear(tape, &format!("{TEXT}pooler"), first)?;
                tape.activate(pooled, Activation::Tanh)
            }
        };
        Ok(TextOutputs { mentions: Some(mentions), spans })
    }

    /// Name embeddings, `[sequences, hidden]`.
    pub fn read_names(&self, tape: &mut Tape<'_>, names: &Sequences, rng: Option<&mut SplitMix64>) -> Result<Var> {
        let rows = self.bert.forward(tape, NAME, names, rng)?;
        match self.name {
            NameVector::Pooler => self.bert.pool(tape, NAME, rows, names.segments()),
            NameVector::First => Ok(tape.gather(rows, names.segments().iter().map(|rows| rows.start as u32).collect())),
            NameVector::Mean => Ok(tape.segment_mean(rows, &Arc::new(names.segments().clone()))),
            NameVector::Normalised => {
                let means = tape.segment_mean(rows, &Arc::new(names.segments().clone()));
                let l2_normalised = tape.l2_normalised(means);
                let n_values = tape.value(l2_normalised).values.len();
                Ok(tape.scale(l2_normalised, vec![NAME_LENGTH; n_values]))
            }
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::autograd::differences::check;
    use crate::models::bert::tests::drawn_model;

    /// A small model with weights far enough from 0.
    pub(crate) fn drawn(
        mention: MentionVector,
        name: NameVector,
        search: Option<SpanSearch>,
    ) -> (DualEncoderConfig, Parameters) {
        let (bert, weights) = drawn_model(1, Activation::Gelu);
        let mut parameters = Parameters::default();
        for (scope, sign) in [(TEXT, 1.0), (NAME, -1.0)] {
            for (name, value) in weights.iter() {
                let mut value = value.clone();
                if !name.ends_with("gain") {
                    value.values.iter_mut().for_each(|value| *value *= sign);
                }
                parameters.add(format!("{scope}{name}"), value);
            }
        }
        let config = DualEncoderConfig { bert, mention, name, search };
        config.init(&mut parameters, &mut SplitMix64::new(4));
        for name in [ENDS, SPANS].map(|name| format!("{name}.weight")) {
            if let Ok(row) = parameters.find(&name) {
                let mut rng = SplitMix64::new(3);
                parameters.at_mut(row).values.iter_mut().for_each(|value| *value += 0.3 * random::normal(&mut rng));
            }
        }
        config.check(&parameters).unwrap();
        (config, parameters)
    }

    pub(crate) const KINDS: [(MentionVector, NameVector, Option<SpanSearch>); 4] = [
        (MentionVector::BoundaryTokens, NameVector::Pooler, None),
        (MentionVector::Mean, NameVector::Mean, Some(SpanSearch::Exhaustive { longest: 4 })),
        (MentionVector::First, NameVector::First, Some(SpanSearch::Tags)),
        (MentionVector::Mean, NameVector::Normalised, None),
    ];

    #[test]
    fn the_model_has_the_gradient_of_its_differences() {
        let windows = Sequences::pack([[1, 2, 3, 4, 5].as_slice(), &[6, 7, 8]]);
        let mention_spans =
            [(0, 1, 2), (0, 2, 2), (5, 5, 7)].map(|(window, first, last)| WindowSpan { window, first, last });
        let names = Sequences::pack([[3, 4].as_slice(), &[9]]);
        for (mention, name, search) in KINDS.into_iter().chain([(MentionVector::Pooler, NameVector::Pooler, None)]) {
            let (config, parameters) = drawn(mention, name, search);
            check(&parameters, |tape| {
                let seen = config.read_windows(tape, &windows, &mention_spans, Some(&mut SplitMix64::new(2))).unwrap();
                let vectors = config.read_names(tape, &names, Some(&mut SplitMix64::new(5))).unwrap();
                let mut all = tape.stack(seen.mentions.unwrap(), vectors);
                if let Some(spans) = seen.spans {
                    let n_rows = tape.value(spans).n_rows;
                    let fill = tape.input(Matrix::zeros(n_rows, config.bert.hidden_size - 3));
                    let wide = tape.concat(&[spans, fill]);
                    all = tape.stack(all, wide);
                }
                all
            });
        }
    }

    #[test]
    fn a_mention_begins_as_the_mean_of_its_ends() {
        let (bert, _) = drawn_model(1, Activation::Gelu);
        let config =
            DualEncoderConfig { bert, mention: MentionVector::BoundaryTokens, name: NameVector::First, search: None };
        let mut parameters = Parameters::default();
        config.init(&mut parameters, &mut SplitMix64::new(1));
        let mut tape = Tape::new(&parameters);
        let windows = Sequences::pack([[1, 2, 3, 4].as_slice()]);
        let span = WindowSpan { window: 0, first: 1, last: 2 };
        let seen = config.read_windows(&mut tape, &windows, &[span], None).unwrap();
        let rows = config.bert.forward(&mut tape, TEXT, &windows, None).unwrap();
        let (first, last) = (tape.value(rows).row(1).to_vec(), tape.value(rows).row(2).to_vec());
        let mention = tape.value(seen.mentions.unwrap());
        for ((first, last), mention) in first.iter().zip(&last).zip(&mention.values) {
            assert!((0.5 * (first + last) - mention).abs() < 1e-6);
        }
    }

    #[test]
    fn what_does_not_belong_together_is_refused() {
        let (config, parameters) = drawn(MentionVector::BoundaryTokens, NameVector::Pooler, None);
        let refused = |config: DualEncoderConfig| config.check(&parameters).unwrap_err().to_string();
        let searching =
            |longest| DualEncoderConfig { search: Some(SpanSearch::Exhaustive { longest }), ..config.clone() };
        assert_eq!(refused(searching(3)), "the model has no weight `spans.weight`");
        assert_eq!(refused(searching(0)), "the maximum span length must be at least 1");
        let mut narrow = parameters.clone();
        narrow.add("mention.weight", Matrix::zeros(3, 12));
        assert_eq!(
            config.check(&narrow).unwrap_err().to_string(),
            "the weight `mention.weight` is 3 x 12, not 24 x 12"
        );
    }
}
