//! The network before training: new, from a checkpoint, or from a bundle.

use canonym_core::eval::learned::Learned;
use canonym_core::{Error, Result};

use super::terms::Terms;
use super::{Experiment, ModelConfig};
use crate::bundle::generative::{Calibration, GenerativeBundle};
use crate::checkpoint::{read_bart, read_bert};
use crate::models::bert::BertConfig;
use crate::models::generative::text::{END_TOKEN, START_TOKEN};
use crate::models::generative::{ENCODER, GenerativeConfig, WORDS};
use crate::recipes::TrainOptions;
use crate::recipes::checkpoints::{checkpoint_folder, existing};
use crate::status;
use crate::tensor::elementwise::Activation;
use crate::tensor::parameters::Parameters;
use crate::tensor::random::for_step;
use crate::tokenizer::{BEHIND, FIRST, Tokenizer};

/// The model before training, and the record of the model that it starts from.
pub fn begin(
    experiment: &Experiment,
    arguments: &TrainOptions,
    terms: Option<&Terms>,
) -> Result<(GenerativeBundle, Option<Learned>)> {
    let ModelConfig { start, encoder, compute, dropout, .. } = &experiment.model;
    if let Some(start) = start {
        let mut bundle = GenerativeBundle::open(&existing(start, arguments.root()))?;
        let learned = bundle.learned.take();
        let model = &mut bundle.manifest.model;
        model.encoder.compute = *compute;
        (model.encoder.hidden_dropout_prob, model.encoder.attention_probs_dropout_prob) = (*dropout, *dropout);
        bundle.manifest.text = experiment.text;
        bundle.manifest.beams = experiment.beams;
        bundle.manifest.ranking = experiment.ranking;
        (bundle.manifest.calibration, bundle.manifest.candidates) = (Calibration::default(), None);
        prepare(&mut bundle.parameters, experiment.model.decoder_lr_multiplier)?;
        return Ok((bundle, learned));
    }
    let mut rng = for_step(experiment.seed, u64::MAX);
    let mut parameters = Parameters::default();
    let config = &experiment.model;
    if let Some(bart) = &config.bart {
        let (mut model, tokenizer) = read_bart(&checkpoint_folder(bart, arguments)?, &mut parameters)?;
        model.encoder.compute = *compute;
        (model.encoder.hidden_dropout_prob, model.encoder.attention_probs_dropout_prob) = (*dropout, *dropout);
        prepare(&mut parameters, config.decoder_lr_multiplier)?;
        return Ok((GenerativeBundle::new(experiment.manifest(model, &tokenizer), parameters, tokenizer), None));
    }
    let (bert, tokenizer) = match encoder {
        Some(encoder) => {
            let (mut bert, tokenizer) = read_bert(&checkpoint_folder(encoder, arguments)?, ENCODER, &mut parameters)?;
            one_type(&mut bert, &mut parameters)?;
            (bert, tokenizer)
        }
        None => {
            let Some(terms) = terms else {
                let error = Error::config("a new model needs a vocabulary");
                return Err(error.with_hint("set `model.start` or `model.encoder`, or pre-train on `data.pretrain`"));
            };
            status::say("learning a vocabulary …");
            let mut tokenizer = Tokenizer::learn(terms.texts(), config.vocabulary.saturating_sub(4));
            for token in [FIRST, BEHIND, START_TOKEN, END_TOKEN] {
                tokenizer.add(token)?;
            }
            (new_encoder(config, tokenizer.len()), tokenizer)
        }
    };
    let width = bert.hidden_size;
    let model = GenerativeConfig {
        encoder: BertConfig {
            compute: *compute,
            hidden_dropout_prob: *dropout,
            attention_probs_dropout_prob: *dropout,
            ..bert
        },
        decoder_layers: config.decoder_layers,
        decoder_heads: config.heads,
        decoder_inner: 4 * width,
        decoder_positions: config.positions,
    };
    model.init(&mut parameters, &mut rng)?;
    prepare(&mut parameters, config.decoder_lr_multiplier)?;
    Ok((GenerativeBundle::new(experiment.manifest(model, &tokenizer), parameters, tokenizer), None))
}

/// Freezes the token types, which are not used, and sets the learning-rate multiplier of the decoder.
fn prepare(parameters: &mut Parameters, decoder_lr_multiplier: f32) -> Result<()> {
    parameters.freeze(&format!("{ENCODER}embedding.type"))?;
    let names: Vec<String> = parameters.iter().map(|(name, _)| name.to_owned()).collect();
    let of_decoder = names.iter().filter(|name| !name.starts_with(ENCODER));
    of_decoder.into_iter().try_for_each(|name| parameters.lr_multiplier(name, decoder_lr_multiplier))
}

fn new_encoder(config: &ModelConfig, n_tokens: usize) -> BertConfig {
    BertConfig {
        vocab_size: n_tokens,
        hidden_size: config.width,
        num_hidden_layers: config.encoder_layers,
        num_attention_heads: config.heads,
        intermediate_size: 4 * config.width,
        hidden_act: Activation::Gelu,
        hidden_dropout_prob: config.dropout,
        attention_probs_dropout_prob: config.dropout,
        max_position_embeddings: config.source_positions,
        type_vocab_size: 1,
        layer_norm_eps: 1e-5,
        compute: config.compute,
    }
}

/// Adds the first token type of a BERT encoder to its words, because the generative linker has no types.
fn one_type(bert: &mut BertConfig, parameters: &mut Parameters) -> Result<()> {
    let types = format!("{ENCODER}embedding.type");
    let first = parameters.get(&types)?.row(0).to_vec();
    let positions = parameters.find(&format!("{ENCODER}embedding.position"))?;
    let table = parameters.at_mut(positions);
    for row in table.values.chunks_exact_mut(first.len()) {
        row.iter_mut().zip(&first).for_each(|(to, x)| *to += x);
    }
    let mut kept = std::mem::take(parameters).without(&types);
    for pooler in ["pooler.weight", "pooler.bias"] {
        kept = kept.without(&format!("{ENCODER}{pooler}"));
    }
    *parameters = kept;
    bert.type_vocab_size = 1;
    debug_assert!(parameters.find(WORDS).is_ok());
    Ok(())
}
