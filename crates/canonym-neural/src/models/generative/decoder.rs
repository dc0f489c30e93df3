//! Inference of the decoder with a key-value cache.
//!
//! Keys and values of a token are computed once and stored under the number of its step; hypotheses that share their first tokens share
//! them as well, so a beam search copies no cache. Keys and values of the sources are computed once for all steps.

use canonym_core::Result;
use rayon::prelude::*;

use super::beam::{NextToken, Step};
use super::{ENCODER, GenerativeConfig, OUTPUT_BIAS, WORDS};
use crate::layers::linear::PanelLinear;
use crate::layers::norm::LayerNorm;
use crate::models::bert::Sequences;
use crate::models::bert::infer::{BertEncoder, activate};
use crate::tensor::elementwise::{log_sum_exp, softmax_rows};
use crate::tensor::matrix::{Matrix, Threads, View, ViewMut, WriteMode, dot, multiply_in};
use crate::tensor::panels::Panels;
use crate::tensor::parameters::Parameters;
use crate::tensor::segments::Segments;

/// An encoder-decoder for inference.
#[derive(Debug)]
pub struct EncoderDecoder {
    config: GenerativeConfig,
    encoder: BertEncoder,
    words: Matrix,
    positions: Matrix,
    norm: LayerNorm,
    layers: Vec<Layer>,
    output: Panels,
    output_bias: Vec<f32>,
}

#[derive(Debug)]
struct Layer {
    own_input: PanelLinear,
    own_output: PanelLinear,
    own_norm: LayerNorm,
    query: PanelLinear,
    context: PanelLinear,
    cross_output: PanelLinear,
    cross_norm: LayerNorm,
    inner: PanelLinear,
    outer: PanelLinear,
    norm: LayerNorm,
}

/// A decoding of several sources.
#[derive(Debug)]
pub struct Decoding<'a> {
    model: &'a EncoderDecoder,
    segments: Segments,
    /// Keys and values of the sources in each layer, `[source, 2 * width]`.
    sources: Vec<Vec<f32>>,
    /// Keys and values of each step in each layer, `[steps, 2 * width]`.
    steps: Vec<Vec<f32>>,
}

impl EncoderDecoder {
    /// Builds the model from its weights.
    ///
    /// # Errors
    /// If weights are missing or have other shapes.
    pub fn new(config: &GenerativeConfig, parameters: &Parameters) -> Result<EncoderDecoder> {
        config.check(parameters)?;
        let (epsilon, compute) = (config.encoder.layer_norm_eps, config.encoder.compute);
        let layer = |layer: usize| -> Result<Layer> {
            let linear = |name: &str| PanelLinear::of(parameters, &format!("decoder.layer.{layer}.{name}"), compute);
            let norm = |name: &str| LayerNorm::of(parameters, &format!("decoder.layer.{layer}.{name}.norm"), epsilon);
            Ok(Layer {
                own_input: linear("self.input")?,
                own_output: linear("self.output")?,
                own_norm: norm("self")?,
                query: linear("cross.query")?,
                context: linear("cross.context")?,
                cross_output: linear("cross.output")?,
                cross_norm: norm("cross")?,
                inner: linear("feed_forward.inner")?,
                outer: linear("feed_forward.outer")?,
                norm: norm("feed_forward")?,
            })
        };
        let words = parameters.get(WORDS)?.clone();
        let mut transposed = Matrix::zeros(words.n_cols, words.n_rows);
        for row in 0..words.n_rows {
            words.row(row).iter().enumerate().for_each(|(col, x)| transposed.values[col * words.n_rows + row] = *x);
        }
        Ok(EncoderDecoder {
            encoder: BertEncoder::new(&config.encoder, parameters, ENCODER)?,
            positions: parameters.get("decoder.embedding.position")?.clone(),
            norm: LayerNorm::of(parameters, "decoder.embedding.norm", epsilon)?,
            layers: (0..config.decoder_layers).map(layer).collect::<Result<_>>()?,
            output: Panels::of(&transposed, compute),
            output_bias: parameters.get(OUTPUT_BIAS)?.values.clone(),
            words,
            config: config.clone(),
        })
    }

    /// The configuration.
    pub fn config(&self) -> &GenerativeConfig {
        &self.config
    }

    /// Encodes sources, and begins to decode with them.
    ///
    /// # Errors
    /// If a source is too long for the model.
    pub fn begin(&self, sources: &Sequences) -> Result<Decoding<'_>> {
        let encoded = self.encoder.encode(sources)?;
        let keys_and_values = |layer: &Layer| {
            let mut to = Vec::new();
            layer.context.apply(&encoded.values, encoded.n_rows, &mut to, Threads::All);
            to
        };
        Ok(Decoding {
            model: self,
            segments: sources.segments().clone(),
            sources: self.layers.iter().map(keys_and_values).collect(),
            steps: vec![Vec::new(); self.layers.len()],
        })
    }
}

impl Decoding<'_> {
    fn width(&self) -> usize {
        self.model.config.encoder.hidden_size
    }

    fn embed(&self, steps: &[Step<'_>]) -> Vec<f32> {
        let EncoderDecoder { words, positions, norm, .. } = self.model;
        let mut rows = Vec::with_capacity(steps.len() * self.width());
        for step in steps {
            let (word, position) = (words.row(step.token as usize), positions.row(step.path.len()));
            rows.extend(word.iter().zip(position).map(|(word, position)| word + position));
        }
        norm.apply_to(&mut rows);
        rows
    }

    /// Attention of each step to those before it in its hypothesis and to itself; `input` holds queries, keys and values.
    fn attend_own(&self, layer: usize, first_step: usize, steps: &[Step<'_>], input: &[f32]) -> Vec<f32> {
        let (width, n_heads) = (self.width(), self.model.config.decoder_heads);
        let depth = width / n_heads;
        let cache = &self.steps[layer];
        let mut out = vec![0.0; steps.len() * width];
        let each = |scores: &mut Vec<f32>, (at, (step, out)): (usize, (&Step<'_>, &mut [f32]))| {
            let queries = &input[at * 3 * width..][..width];
            let rows = || step.path.iter().map(|step| *step as usize).chain([first_step + at]);
            for head in 0..n_heads {
                let columns = head * depth..(head + 1) * depth;
                let query = &queries[columns.clone()];
                scores.clear();
                scores.extend(rows().map(|row| dot(query, &cache[row * 2 * width..][columns.clone()])));
                let n = scores.len();
                softmax_rows(scores, n, 1.0 / (depth as f32).sqrt());
                let out = &mut out[columns.clone()];
                for (p, row) in scores.iter().zip(rows()) {
                    let values = &cache[row * 2 * width + width..][columns.clone()];
                    out.iter_mut().zip(values).for_each(|(to, x)| *to += p * x);
                }
            }
        };
        let parts = steps.par_iter().zip(out.par_chunks_mut(width)).enumerate();
        parts.with_min_len(8).for_each_init(Vec::new, each);
        out
    }

    /// Attention of each step to the source of its mention. Steps of a mention follow one another.
    fn attend_sources(&self, layer: usize, steps: &[Step<'_>], queries: &[f32]) -> Vec<f32> {
        let (width, n_heads) = (self.width(), self.model.config.decoder_heads);
        let (depth, compute) = (width / n_heads, self.model.config.encoder.compute);
        let cache = View::of(&self.sources[layer], self.segments.n_rows(), 2 * width);
        let mut out = vec![0.0; steps.len() * width];
        let mut jobs = Vec::new();
        let (mut rest, mut first) = (out.as_mut_slice(), 0);
        for of_mention in steps.chunk_by(|left, right| left.mention == right.mention) {
            let out = rest.split_off_mut(..of_mention.len() * width).expect("a row for each step");
            jobs.push((of_mention[0].mention, first, out));
            first += of_mention.len();
        }
        let each = |scores: &mut Vec<f32>, (mention, first, out): (usize, usize, &mut [f32])| {
            let (rows, n) = (self.segments.rows(mention), out.len() / width);
            let cache = cache.rows(rows.start, rows.len());
            for head in 0..n_heads {
                let queries = View::of(&queries[first * width..], n, width).columns(head * depth, depth);
                let (keys, values) = (cache.columns(head * depth, depth), cache.columns(width + head * depth, depth));
                scores.resize(n * rows.len(), 0.0);
                let to = ViewMut::of(scores, n, rows.len());
                multiply_in(compute, to, queries, keys.transposed(), WriteMode::Replace, Threads::One);
                softmax_rows(scores, rows.len(), 1.0 / (depth as f32).sqrt());
                let probabilities = View::of(scores, n, rows.len());
                let out = ViewMut::of(out, n, width).columns(head * depth, depth);
                multiply_in(compute, out, probabilities, values, WriteMode::Replace, Threads::One);
            }
        };
        jobs.into_par_iter().for_each_init(Vec::new, each);
        out
    }

    /// Decoder rows of steps, `[steps, width]`; their keys and values are stored.
    fn rows(&mut self, steps: &[Step<'_>]) -> Vec<f32> {
        let (model, width, n) = (self.model, self.width(), steps.len());
        let first_step = self.steps.first().map_or(0, |cache| cache.len() / (2 * width));
        let mut rows = self.embed(steps);
        let (mut wide, mut outer) = (Vec::new(), Vec::new());
        for (at, layer) in model.layers.iter().enumerate() {
            layer.own_input.apply(&rows, n, &mut wide, Threads::All);
            for input in wide.chunks_exact(3 * width) {
                self.steps[at].extend_from_slice(&input[width..]);
            }
            let seen = self.attend_own(at, first_step, steps, &wide);
            layer.own_output.multiply(&seen, n, &mut outer, Threads::All);
            layer.own_norm.add(&mut rows, &outer, &layer.own_output.bias, Threads::One);
            layer.query.apply(&rows, n, &mut wide, Threads::All);
            let seen = self.attend_sources(at, steps, &wide);
            layer.cross_output.multiply(&seen, n, &mut outer, Threads::All);
            layer.cross_norm.add(&mut rows, &outer, &layer.cross_output.bias, Threads::One);
            layer.inner.multiply(&rows, n, &mut wide, Threads::All);
            activate(model.config.encoder.hidden_act, &mut wide, &layer.inner.bias, Threads::All);
            layer.outer.multiply(&wide, n, &mut outer, Threads::All);
            layer.norm.add(&mut rows, &outer, &layer.outer.bias, Threads::One);
        }
        rows
    }
}

impl NextToken for Decoding<'_> {
    fn feed(&mut self, steps: &[Step<'_>]) -> Result<Matrix> {
        let model = self.model;
        if steps.iter().any(|step| step.path.len() >= model.config.decoder_positions) {
            let message = format!("a name with its prompt exceeds {} tokens", model.config.decoder_positions);
            return Err(canonym_core::Error::too_many(message).with_hint("shorten the mention or the name"));
        }
        let rows = self.rows(steps);
        let width = self.width();
        let scored = rows.chunks_exact(width).zip(steps).filter(|(_, step)| step.is_scored);
        let kept: Vec<f32> = scored.flat_map(|(row, _)| row).copied().collect();
        let (n, n_words) = (kept.len() / width, model.output_bias.len());
        let mut scores = vec![0.0; n * n_words];
        if n > 0 {
            model.output.multiply(View::of(&kept, n, width), &mut scores, Threads::All);
        }
        scores.par_chunks_mut(n_words.max(1)).for_each(|row| {
            row.iter_mut().zip(&model.output_bias).for_each(|(score, bias)| *score += bias);
            let sum = log_sum_exp(row);
            row.iter_mut().for_each(|score| *score -= sum);
        });
        Ok(Matrix::new(n, n_words, scores))
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::autograd::Tape;
    use crate::autograd::differences::{check, drawn};
    use crate::tensor::random::SplitMix64;

    /// A small model with weights far enough from 0.
    pub(crate) fn drawn_model() -> (GenerativeConfig, Parameters) {
        let json = r#"{"encoder": {"vocab_size": 13, "hidden_size": 12, "num_hidden_layers": 2, "num_attention_heads": 3,
            "intermediate_size": 10, "max_position_embeddings": 9, "type_vocab_size": 1}, "decoder_layers": 2,
            "decoder_heads": 2, "decoder_inner": 8, "decoder_positions": 7}"#;
        let config: GenerativeConfig = serde_json::from_str(json).unwrap();
        let mut parameters = Parameters::default();
        config.init(&mut parameters, &mut SplitMix64::new(1)).unwrap();
        let mut rng = SplitMix64::new(8);
        let names: Vec<String> = parameters.iter().map(|(name, _)| name.to_owned()).collect();
        for name in names {
            let row = parameters.find(&name).unwrap();
            let value = parameters.at_mut(row);
            let scale = if value.n_rows == 1 { 0.5 } else { 1.0 / (value.n_rows.min(12) as f32).sqrt() };
            let shift = if name.ends_with("gain") { 1.0 } else { 0.0 };
            let drawn = drawn(value.n_rows, value.n_cols, &mut rng);
            value.values.iter_mut().zip(drawn.values).for_each(|(to, x)| *to = x * scale + shift);
        }
        (config, parameters)
    }

    fn sequences() -> (Sequences, Sequences) {
        let sources = Sequences::pack([[1, 2, 3, 4].as_slice(), &[5, 6]]);
        (sources, Sequences::pack([[2, 7, 8].as_slice(), &[2, 9, 10, 11, 12]]))
    }

    fn scores(config: &GenerativeConfig, tape: &mut Tape<'_>) -> crate::autograd::Var {
        let (sources, targets) = sequences();
        let segments = Arc::new(sources.segments().clone());
        let memory = config.encode(tape, &sources, None).unwrap();
        let rows = config.decode(tape, &targets, (memory, &segments), None).unwrap();
        config.output(tape, rows).unwrap()
    }

    #[test]
    fn the_model_has_the_gradient_of_its_differences() {
        let (config, parameters) = drawn_model();
        check(&parameters, |tape| scores(&config, tape));
    }

    #[test]
    fn steps_from_the_cache_give_what_the_training_graph_gives() {
        let (config, parameters) = drawn_model();
        let mut tape = Tape::new(&parameters);
        let output = scores(&config, &mut tape);
        let mut expected = tape.value(output).clone();
        for row in 0..expected.n_rows {
            let sum = log_sum_exp(expected.row(row));
            expected.row_mut(row).iter_mut().for_each(|score| *score -= sum);
        }
        let model = EncoderDecoder::new(&config, &parameters).unwrap();
        let (sources, targets) = sequences();
        let mut decoding = model.begin(&sources).unwrap();
        // Tokens of both targets side by side, as far as there are any.
        let mut paths: Vec<Vec<u32>> = vec![Vec::new(); 2];
        let (mut n_steps, mut n_compared) = (0, 0);
        for place in 0..5 {
            let going: Vec<usize> = (0..2).filter(|at| targets.segments().rows(*at).len() > place).collect();
            let token = |at: usize| targets.input_ids()[targets.segments().rows(at).start + place];
            let steps: Vec<Step<'_>> = going
                .iter()
                .map(|at| Step { mention: *at, path: &paths[*at], token: token(*at), is_scored: true })
                .collect();
            let given = decoding.feed(&steps).unwrap();
            for (row, at) in going.iter().enumerate() {
                let expected = expected.row(targets.segments().rows(*at).start + place);
                given.row(row).iter().zip(expected).for_each(|(given, expected)| {
                    assert!((given - expected).abs() < 1e-4, "{given} {expected}");
                    n_compared += 1;
                });
                paths[*at].push(n_steps);
                n_steps += 1;
            }
        }
        assert_eq!(n_compared, 8 * 13);
    }
}
