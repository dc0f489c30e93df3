//! Reads BART checkpoints (Lewis et al. 2020) in the layout of Hugging Face, such as `facebook/bart-base`, and those of GenBioEL, which are
//! the same.

use std::path::Path;

use canonym_core::{Error, Result};
use serde::Deserialize;

use super::bert::Tensor;
use super::{CONFIG, weights_in, wrong_shape};
use crate::models::bert::{BertConfig, Weight};
use crate::models::generative::{ENCODER, GenerativeConfig, OUTPUT_BIAS};
use crate::tensor::elementwise::Activation;
use crate::tensor::matrix::{Compute, Matrix};
use crate::tensor::parameters::Parameters;
use crate::tokenizer::Tokenizer;

/// Hint for checkpoints that cannot be used.
const HINT: &str = "use a BART checkpoint folder with `config.json`, `model.safetensors` and `tokenizer.json`";

/// Position embeddings before the first position, which are never used.
const OFFSET: usize = 2;

/// Prefixes of tensor names.
const PREFIXES: [&str; 2] = ["model.", ""];

/// Epsilon of layer norms: the default of PyTorch, which no configuration mentions.
const EPSILON: f32 = 1e-5;

/// Fields of `config.json`; others are ignored.
#[derive(Debug, Deserialize)]
struct BartConfig {
    model_type: Option<String>,
    vocab_size: usize,
    d_model: usize,
    encoder_layers: usize,
    decoder_layers: usize,
    encoder_attention_heads: usize,
    decoder_attention_heads: usize,
    encoder_ffn_dim: usize,
    decoder_ffn_dim: usize,
    activation_function: Activation,
    dropout: f32,
    attention_dropout: f32,
    max_position_embeddings: usize,
    #[serde(default)]
    scale_embedding: bool,
}

/// Reads an encoder-decoder into `parameters`; returns its configuration and vocabulary.
///
/// # Errors
/// If the folder is not a BART checkpoint with safetensors weights.
pub fn read_bart(folder: &Path, parameters: &mut Parameters) -> Result<(GenerativeConfig, Tokenizer)> {
    let path = weights_in(folder).map_err(|error| error.with_hint(HINT))?;
    let config = read_config(&folder.join(CONFIG))?;
    let tokenizer = Tokenizer::read(folder)?;
    let refused = |message: String| Error::artifact(&path, message).with_hint(HINT);
    let n_embedded = config.encoder.vocab_size;
    if tokenizer.len() > n_embedded {
        return Err(refused(format!(
            "it has embeddings for {n_embedded} tokens, but the vocabulary has {}",
            tokenizer.len()
        )));
    }
    let all = Parameters::read_some(&path, |_| true)?;
    let has = |prefix: &&str| all.find(&format!("{prefix}decoder.layers.0.self_attn.q_proj.weight")).is_ok();
    let missing = || refused("it has no tensor `decoder.layers.0.self_attn.q_proj.weight`".to_owned());
    let prefix = PREFIXES.into_iter().find(has).ok_or_else(missing)?;
    let of_encoder = config.encoder.weights().into_iter().filter(|weight| !weight.name.starts_with("pooler."));
    let scoped = of_encoder.map(|weight| Weight { name: format!("{ENCODER}{}", weight.name), ..weight });
    for weight in scoped.chain(config.decoder_weights()) {
        let mut value = Matrix::zeros(weight.n_rows, weight.n_cols);
        let tensors = tensors(&weight);
        for tensor in &tensors {
            let from = find(&all, prefix, &tensor.name);
            if from.is_none() && weight.name == OUTPUT_BIAS {
                break;
            }
            let from = from.ok_or_else(|| refused(format!("it has no tensor `{prefix}{}`", tensor.name)))?;
            let used;
            let from = match weight.name.ends_with("embedding.position") {
                true if from.n_rows > OFFSET => {
                    let n_cols = from.n_cols;
                    used = Matrix::new(from.n_rows - OFFSET, n_cols, from.values[OFFSET * n_cols..].to_vec());
                    &used
                }
                _ => from,
            };
            let expected = match tensor.transposed {
                true => (weight.n_cols / tensors.len(), weight.n_rows),
                false => (weight.n_rows, weight.n_cols / tensors.len()),
            };
            if let Some(message) = wrong_shape(&format!("{prefix}{}", tensor.name), from, expected) {
                return Err(refused(message));
            }
            tensor.put(from, &mut value);
        }
        parameters.add(weight.name, value);
    }
    config.check(parameters).map_err(|error| refused(error.to_string()))?;
    Ok((config, tokenizer))
}

/// A tensor under its name, which has no prefix if it belongs to the output.
fn find<'a>(all: &'a Parameters, prefix: &str, name: &str) -> Option<&'a Matrix> {
    [format!("{prefix}{name}"), name.to_owned()].iter().find_map(|name| all.get(name).ok())
}

fn read_config(path: &Path) -> Result<GenerativeConfig> {
    let refused = |message: String| Error::artifact(path, message).with_hint(HINT);
    let text = std::fs::read_to_string(path).map_err(|error| Error::io("read", path, error))?;
    #[derive(Deserialize)]
    struct Kind {
        model_type: Option<String>,
    }
    let wrong = |error: serde_json::Error| refused(format!("invalid BART config: {error}"));
    // Checked first: configurations of other models lack fields.
    match serde_json::from_str::<Kind>(&text).map_err(wrong)?.model_type.as_deref() {
        None | Some("bart") => {}
        Some(kind) => return Err(refused(format!("its `model_type` is `{kind}`, not `bart`"))),
    }
    let config: BartConfig = serde_json::from_str(&text).map_err(wrong)?;
    if config.scale_embedding {
        return Err(refused("its `scale_embedding` is true, which is not supported".to_owned()));
    }
    debug_assert!(config.model_type.as_deref().is_none_or(|kind| kind == "bart"));
    Ok(GenerativeConfig {
        encoder: BertConfig {
            vocab_size: config.vocab_size,
            hidden_size: config.d_model,
            num_hidden_layers: config.encoder_layers,
            num_attention_heads: config.encoder_attention_heads,
            intermediate_size: config.encoder_ffn_dim,
            hidden_act: config.activation_function,
            hidden_dropout_prob: config.dropout,
            attention_probs_dropout_prob: config.attention_dropout,
            max_position_embeddings: config.max_position_embeddings,
            type_vocab_size: 1,
            layer_norm_eps: EPSILON,
            compute: Compute::F32,
        },
        decoder_layers: config.decoder_layers,
        decoder_heads: config.decoder_attention_heads,
        decoder_inner: config.decoder_ffn_dim,
        decoder_positions: config.max_position_embeddings,
    })
}

/// The checkpoint tensors that make up one of our weights; none for token types, which BART lacks.
fn tensors(weight: &Weight) -> Vec<Tensor> {
    let Weight { name, .. } = weight;
    let table = |name: &str| vec![Tensor::whole(name, weight)];
    match name.as_str() {
        "encoder.embedding.word" => return table("shared.weight"),
        "encoder.embedding.type" => return Vec::new(),
        OUTPUT_BIAS => return table("final_logits_bias"),
        _ => {}
    }
    let (side, rest) = name.split_once('.').expect("a weight of the encoder or the decoder");
    if rest == "embedding.position" {
        return table(&format!("{side}.embed_positions.weight"));
    }
    let (of, end) = rest.rsplit_once('.').expect("every weight has a part");
    let (place, part) = match of.strip_prefix("layer.").and_then(|rest| rest.split_once('.')) {
        Some((layer, part)) => (format!("{side}.layers.{layer}."), part),
        None => (format!("{side}."), of),
    };
    let parts: &[&str] = match part {
        "attention.input" | "self.input" => &["self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"],
        "attention.output" | "self.output" => &["self_attn.out_proj"],
        "attention.norm" | "self.norm" => &["self_attn_layer_norm"],
        "cross.query" => &["encoder_attn.q_proj"],
        "cross.context" => &["encoder_attn.k_proj", "encoder_attn.v_proj"],
        "cross.output" => &["encoder_attn.out_proj"],
        "cross.norm" => &["encoder_attn_layer_norm"],
        "feed_forward.inner" => &["fc1"],
        "feed_forward.outer" => &["fc2"],
        "feed_forward.norm" => &["final_layer_norm"],
        _ => &["layernorm_embedding"],
    };
    Tensor::parts(weight, &place, parts, end)
}
