//! Training of the generative linker: the likelihood of target names after their prompts, with label smoothing.

use canonym_core::Result;
use serde::{Deserialize, Serialize};

use crate::autograd::Tape;
use crate::models::bert::Sequences;
use crate::models::generative::GenerativeConfig;
use crate::tensor::elementwise::log_sum_exp;
use crate::tensor::matrix::Matrix;
use crate::tensor::parameters::Parameters;
use crate::tensor::random::{self, SplitMix64};
use crate::train::losses::Loss;
use crate::train::{Losses, Objective, Outputs, Values};
use rayon::prelude::*;

const SCORES: &str = "scores";
const LOSS: &str = "names";

/// Parts of a batch: few, because each has a gradient of the whole output.
const PARTS: usize = 4;

/// A training example, in tokens.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GenerativeExample {
    /// The source, with its first and last token.
    pub source: Vec<u32>,
    /// Decoder tokens before the name, from which nothing is learned.
    pub prompt: Vec<u32>,
    /// The name with the end token.
    pub target: Vec<u32>,
}

/// Where examples come from.
pub trait Examples: Sync {
    /// Number of examples of an epoch.
    fn n_examples(&self) -> usize;

    /// An example, which may be made anew each time.
    fn example(&self, at: usize, rng: &mut SplitMix64) -> GenerativeExample;
}

/// Batch settings.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct GenerativeBatchConfig {
    /// Examples per batch.
    pub batch: usize,
    /// Share of the target probability that is spread over the vocabulary.
    pub label_smoothing: f32,
    /// How it is spread: as in Hugging Face, evenly over all tokens, or as in fairseq, over all tokens but the right one.
    pub smoothing: Smoothing,
}

impl Default for GenerativeBatchConfig {
    fn default() -> GenerativeBatchConfig {
        GenerativeBatchConfig { batch: 8, label_smoothing: 0.1, smoothing: Smoothing::HuggingFace }
    }
}

/// Forms of label smoothing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Smoothing {
    /// `(1 - ε) nll + ε mean over the vocabulary`.
    #[default]
    HuggingFace,
    /// `(1 - ε - ε/(V-1)) nll + ε/(V-1) sum over the vocabulary`.
    Fairseq,
}

/// A measure of a model on held-out data; higher is better.
pub type HeldOut<'a> = Box<dyn Fn(&Parameters) -> Result<f64> + Sync + 'a>;

/// The objective.
pub struct Generative<'a> {
    model: &'a GenerativeConfig,
    config: GenerativeBatchConfig,
    examples: &'a dyn Examples,
    seed: u64,
    held_out: Option<HeldOut<'a>>,
}

/// A part of the examples of a step.
#[derive(Debug, Default)]
pub struct Part {
    sources: Sequences,
    targets: Sequences,
    /// Decoder rows that are followed by a token of a name.
    rows: Vec<u32>,
    /// That token.
    labels: Vec<u32>,
}

impl<'a> Generative<'a> {
    /// Creates the objective.
    pub fn new(
        model: &'a GenerativeConfig,
        config: GenerativeBatchConfig,
        examples: &'a dyn Examples,
        seed: u64,
    ) -> Generative<'a> {
        Generative { model, config, examples, seed, held_out: None }
    }

    /// Adds held-out data.
    #[must_use]
    pub fn with_held_out(self, held_out: HeldOut<'a>) -> Generative<'a> {
        Generative { held_out: Some(held_out), ..self }
    }

    /// The example at a place of the training: each epoch has all of them, in another order.
    fn number_at(&self, place: u64) -> usize {
        let n = self.examples.n_examples() as u64;
        let mut rng = random::for_step(self.seed, !(place / n));
        // An affine permutation: its factor has no divisor in common with `n`.
        let shift = rng.below(n as usize) as u64;
        let factor = loop {
            // From the middle third, so that neighbours, which are names of one concept, come far apart.
            let factor = 1 + n / 3 + rng.below(1 + n as usize / 3) as u64;
            if greatest_common_divisor(factor, n) == 1 {
                break factor;
            }
        };
        ((u128::from(place % n) * u128::from(factor) + u128::from(shift)) % u128::from(n)) as usize
    }
}

fn greatest_common_divisor(mut one: u64, mut other: u64) -> u64 {
    while other > 0 {
        (one, other) = (other, one % other);
    }
    one
}

impl Part {
    fn push(&mut self, example: &GenerativeExample) {
        let GenerativeExample { source, prompt, target } = example;
        let first = self.targets.segments().n_rows() + prompt.len() - 1;
        self.sources.push(&[source]);
        self.targets.push(&[&[prompt.as_slice(), &target[..target.len() - 1]].concat()]);
        self.rows.extend((first as u32)..(first + target.len()) as u32);
        self.labels.extend_from_slice(target);
    }
}

impl Objective for Generative<'_> {
    type Batch = Vec<Part>;

    fn begin_interval(&mut self, _parameters: &Parameters, _interval: u64) -> Result<()> {
        Ok(())
    }

    fn batch(&self, step: u64, rng: &mut SplitMix64) -> Vec<Part> {
        let n = self.config.batch as u64;
        let mut drawn: Vec<GenerativeExample> =
            (0..n).map(|at| self.examples.example(self.number_at(step * n + at), rng)).collect();
        // Parts of similar size take similar time.
        drawn.sort_by_key(|example| example.source.len());
        let mut parts: Vec<Part> = (0..PARTS.min(drawn.len())).map(|_| Part::default()).collect();
        let n_parts = parts.len();
        drawn.iter().enumerate().for_each(|(at, example)| parts[at % n_parts].push(example));
        parts
    }

    fn n_parts(&self, batch: &Vec<Part>) -> usize {
        batch.len()
    }

    fn forward(&self, tape: &mut Tape<'_>, batch: &Vec<Part>, part: usize, rng: &mut SplitMix64) -> Result<Outputs> {
        let Part { sources, targets, rows, .. } = &batch[part];
        let segments = std::sync::Arc::new(sources.segments().clone());
        let memory = self.model.encode(tape, sources, Some(rng))?;
        let all = self.model.decode(tape, targets, (memory, &segments), Some(rng))?;
        let kept = tape.gather(all, rows.clone());
        Ok(Outputs::of(SCORES, self.model.output(tape, kept)?))
    }

    fn losses(&self, batch: &Vec<Part>, values: &Values) -> Losses {
        let labels: Vec<u32> = batch.iter().flat_map(|part| part.labels.iter().copied()).collect();
        Losses::of(LOSS, SCORES, smoothed_likelihood(values.get(SCORES), &labels, &self.config))
    }

    fn evaluate(&self, parameters: &Parameters) -> Result<Option<f64>> {
        self.held_out.as_ref().map(|held_out| held_out(parameters)).transpose()
    }
}

/// Negative log-likelihood of a label for each row, with label smoothing; the mean over the rows.
pub fn smoothed_likelihood(scores: &Matrix, labels: &[u32], config: &GenerativeBatchConfig) -> Loss {
    let (n, n_words) = (labels.len().max(1) as f32, scores.n_cols as f32);
    // Weight of the right token, and of every token.
    let (of_label, of_each) = match config.smoothing {
        Smoothing::HuggingFace => (1.0 - config.label_smoothing, config.label_smoothing / n_words),
        Smoothing::Fairseq => {
            let of_each = config.label_smoothing / (n_words - 1.0);
            (1.0 - config.label_smoothing - of_each, of_each)
        }
    };
    let total = of_label + of_each * n_words;
    let mut gradient = scores.clone();
    let row = |(row, label): (&mut [f32], &u32)| {
        let sum = log_sum_exp(row);
        let right = row[*label as usize];
        let mean: f32 = row.iter().sum();
        let loss = of_label * (sum - right) + of_each * (n_words * sum - mean);
        // The softmax, in place.
        let last = row.len();
        crate::tensor::elementwise::softmax_rows(row, last, 1.0);
        row.iter_mut().for_each(|to| *to = (total * *to - of_each) / n);
        row[*label as usize] -= of_label / n;
        f64::from(loss)
    };
    let losses: Vec<f64> =
        gradient.values.par_chunks_mut(scores.n_cols.max(1)).zip(labels.par_iter()).map(row).collect();
    Loss { value: losses.iter().sum::<f64>() / f64::from(n), gradient }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::models::generative::decoder::tests::drawn_model;
    use crate::train::optimise::AdamConfig;
    use crate::train::{Run, RunConfig};

    #[test]
    fn the_loss_is_that_of_the_specification_and_its_gradient_that_of_differences() {
        let scores = Matrix::new(1, 3, vec![-0.1054, -2.9957, -2.9957]);
        let loss = smoothed_likelihood(&scores, &[0], &GenerativeBatchConfig::default());
        assert!((loss.value - 0.2981).abs() < 1e-3, "{}", loss.value);
        let scores = Matrix::new(2, 4, vec![0.3, -1.0, 2.0, 0.1, 1.0, 0.0, -0.5, 0.7]);
        for smoothing in [Smoothing::HuggingFace, Smoothing::Fairseq] {
            let config = GenerativeBatchConfig { smoothing, ..GenerativeBatchConfig::default() };
            let loss = smoothed_likelihood(&scores, &[2, 0], &config);
            for at in 0..8 {
                let moved = |by: f32| {
                    let mut moved = scores.clone();
                    moved.values[at] += by;
                    smoothed_likelihood(&moved, &[2, 0], &config).value
                };
                let slope = (moved(1e-2) - moved(-1e-2)) / 2e-2;
                assert!((slope - f64::from(loss.gradient.values[at])).abs() < 1e-3, "{smoothing:?} {at}");
            }
        }
    }

    struct Fixed(Vec<GenerativeExample>);

    impl Examples for Fixed {
        fn n_examples(&self) -> usize {
            self.0.len()
        }

        fn example(&self, at: usize, _: &mut SplitMix64) -> GenerativeExample {
            self.0[at].clone()
        }
    }

    fn examples() -> Fixed {
        let example = |source: &[u32], target: &[u32]| GenerativeExample {
            source: source.to_vec(),
            prompt: vec![2, 3],
            target: target.to_vec(),
        };
        Fixed(vec![example(&[1, 4, 2], &[5, 6, 2]), example(&[1, 7, 2], &[8, 2]), example(&[1, 9, 10, 2], &[11, 2])])
    }

    #[test]
    fn an_epoch_has_every_example_once() {
        let (model, _) = drawn_model();
        let examples = examples();
        let objective = Generative::new(&model, GenerativeBatchConfig::default(), &examples, 3);
        for epoch in 0..5 {
            let mut numbers: Vec<usize> = (0..3).map(|at| objective.number_at(3 * epoch + at)).collect();
            numbers.sort_unstable();
            assert_eq!(numbers, [0, 1, 2]);
        }
    }

    #[test]
    fn the_model_learns_what_it_is_shown() {
        let (model, parameters) = drawn_model();
        let examples = examples();
        let config = GenerativeBatchConfig { batch: 3, label_smoothing: 0.0, ..GenerativeBatchConfig::default() };
        let mut objective = Generative::new(&model, config, &examples, 3);
        let adam = AdamConfig { learning_rate: 1e-2, ..AdamConfig::default() };
        let mut run = Run::new(RunConfig { n_steps: 150, adam, ..RunConfig::default() }, 1, parameters);
        let mut losses = Vec::new();
        let observe = &mut |_: &Run, progress: crate::train::Progress<'_>| {
            if let crate::train::Progress::Step { loss, .. } = progress {
                losses.push(loss);
            }
            Ok(())
        };
        run.train(&mut objective, observe).unwrap();
        // Single losses vary with the dropout.
        let last = losses[130..].iter().sum::<f64>() / 20.0;
        assert!(losses[0] > 1.0 && last < 0.5, "{losses:?}");
    }
}
