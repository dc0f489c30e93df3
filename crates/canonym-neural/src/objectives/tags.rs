//! Training of the tagger on texts with typed mentions.
//!
//! A corpus trains only the label sets that its annotators covered: if it does not annotate genes, an unmarked gene is not a negative
//! example.

use std::ops::Add;

use canonym_core::Result;
use canonym_core::eval::matching::Counts;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::autograd::Tape;
use crate::layers::crf::bilou::{BilouCrf, N_LABELS};
use crate::models::tagger::features::{TokenFeatures, Words};
use crate::models::tagger::infer::{Tagger, WordRows};
use crate::models::tagger::{Packed, TaggerConfig};
use crate::tensor::matrix::Matrix;
use crate::tensor::parameters::Parameters;
use crate::tensor::random::SplitMix64;
use crate::train::losses::Loss;
use crate::train::{Losses, Objective, Outputs, Values};

/// Output: the scores of all labels of each token.
const LABELS: &str = "labels";

/// Texts per part of a batch.
const PART: usize = 8;

/// A text with its gold labels.
#[derive(Debug, Clone, Default)]
pub struct Example {
    /// Token features.
    pub features: TokenFeatures,
    /// Gold labels of all tokens by label set; `None` if the corpus does not cover it.
    pub labels: Vec<Option<Vec<u8>>>,
}

/// The texts of one corpus.
#[derive(Debug, Clone, Default)]
pub struct Corpus {
    /// Relative sampling weight of its texts.
    pub weight: f32,
    /// Its texts, all non-empty.
    pub examples: Vec<Example>,
}

/// Batch settings.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TagsConfig {
    /// Texts per batch.
    pub batch: usize,
    /// Maximum number of tokens of a text; longer ones are cropped at random.
    pub max_tokens: usize,
}

impl Default for TagsConfig {
    fn default() -> TagsConfig {
        TagsConfig { batch: 16, max_tokens: 400 }
    }
}

/// A held-out text with its gold mentions, as first and last token.
#[derive(Debug, Clone, Default)]
pub struct HeldOut {
    /// Token features.
    pub features: TokenFeatures,
    /// Gold mentions by label set; `None` if unknown.
    pub mentions: Vec<Option<Vec<(usize, usize)>>>,
}

/// The objective.
#[derive(Debug)]
pub struct Tags<'a> {
    model: &'a TaggerConfig,
    config: TagsConfig,
    words: &'a Words,
    corpora: &'a [Corpus],
    /// Cumulative sums of weight times number of texts.
    cumulative_weights: Vec<f64>,
    n_label_sets: usize,
    held_out: &'a [HeldOut],
}

/// The texts of a step.
#[derive(Debug)]
pub struct TagsBatch {
    parts: Vec<Packed>,
    /// Gold labels of each text, in order.
    labels: Vec<Vec<Option<Vec<u8>>>>,
    /// Number of tokens of each text.
    lengths: Vec<usize>,
}

impl<'a> Tags<'a> {
    /// Creates the objective; the features of all texts were extracted with `words`.
    pub fn new(
        model: &'a TaggerConfig,
        config: TagsConfig,
        words: &'a Words,
        corpora: &'a [Corpus],
        n_label_sets: usize,
        held_out: &'a [HeldOut],
    ) -> Tags<'a> {
        let mut sum = 0.0;
        let cumulative_weights = corpora.iter().map(|corpus| {
            sum += f64::from(corpus.weight) * corpus.examples.len() as f64;
            sum
        });
        let cumulative_weights = cumulative_weights.collect();
        Tags { model, config, words, corpora, cumulative_weights, n_label_sets, held_out }
    }

    fn draw(&self, rng: &mut SplitMix64) -> &'a Example {
        let total = self.cumulative_weights.last().copied().unwrap_or(0.0);
        let at = (rng.next_u64() >> 11) as f64 / (1u64 << 53) as f64 * total;
        let corpus =
            &self.corpora[self.cumulative_weights.partition_point(|sum| *sum <= at).min(self.corpora.len() - 1)];
        &corpus.examples[rng.below(corpus.examples.len())]
    }
}

/// A random crop of at most `max` tokens.
fn cropped(example: &Example, max: usize, rng: &mut SplitMix64) -> Example {
    let n = example.features.tokens.len();
    if n <= max {
        return example.clone();
    }
    let first = rng.below(n - max + 1);
    let tokens = first..first + max;
    let cut = |labels: &Vec<u8>| {
        let mut labels = labels[tokens.clone()].to_vec();
        mend(&mut labels);
        labels
    };
    Example {
        features: example.features.part(tokens.clone()),
        labels: example.labels.iter().map(|labels| labels.as_ref().map(cut)).collect(),
    }
}

/// Shortens mentions that were cut at a boundary.
fn mend(labels: &mut [u8]) {
    use crate::layers::crf::bilou::{BEGIN, INSIDE, LAST, UNIT};
    let n = labels.len();
    if let Some(first) = labels.first_mut() {
        *first = match usize::from(*first) {
            INSIDE => BEGIN as u8,
            LAST => UNIT as u8,
            _ => *first,
        };
    }
    if n > 0 {
        let last = &mut labels[n - 1];
        *last = match usize::from(*last) {
            INSIDE => LAST as u8,
            BEGIN => UNIT as u8,
            _ => *last,
        };
    }
}

impl Objective for Tags<'_> {
    type Batch = TagsBatch;

    fn begin_interval(&mut self, _parameters: &Parameters, _interval: u64) -> Result<()> {
        Ok(())
    }

    fn batch(&self, _step: u64, rng: &mut SplitMix64) -> TagsBatch {
        let mut examples: Vec<Example> =
            (0..self.config.batch).map(|_| cropped(self.draw(rng), self.config.max_tokens, rng)).collect();
        // Parts of similar size take similar time.
        examples.sort_by_key(|example| example.features.tokens.len());
        let n_parts = examples.len().div_ceil(PART);
        let mut dealt: Vec<Vec<Example>> = vec![Vec::new(); n_parts];
        for (at, example) in examples.into_iter().enumerate() {
            dealt[at % n_parts].push(example);
        }
        let pack = |part: &Vec<Example>| {
            Packed::new(&part.iter().map(|example| &example.features).collect::<Vec<_>>(), self.words)
        };
        TagsBatch {
            parts: dealt.iter().map(pack).collect(),
            lengths: dealt.iter().flatten().map(|example| example.features.tokens.len()).collect(),
            labels: dealt.into_iter().flatten().map(|example| example.labels).collect(),
        }
    }

    fn n_parts(&self, batch: &TagsBatch) -> usize {
        batch.parts.len()
    }

    fn forward(&self, tape: &mut Tape<'_>, batch: &TagsBatch, part: usize, rng: &mut SplitMix64) -> Result<Outputs> {
        Ok(Outputs::of(LABELS, self.model.forward(tape, &batch.parts[part], Some(rng))?))
    }

    fn losses(&self, batch: &TagsBatch, values: &Values) -> Losses {
        Losses::of("labels", LABELS, label_loss(batch, values.get(LABELS)))
    }

    fn evaluate(&self, parameters: &Parameters) -> Result<Option<f64>> {
        if self.held_out.is_empty() {
            return Ok(None);
        }
        let counts = count(self.model, parameters, self.n_label_sets, self.words, self.held_out)?;
        Ok(Some(counts.into_iter().fold(Counts::default(), Add::add).score().f1))
    }
}

/// Negative log-likelihood of the gold labels, `[tokens, label sets × labels]`; the mean over tokens.
fn label_loss(batch: &TagsBatch, values: &Matrix) -> Loss {
    let mut gradient = Matrix::zeros(values.n_rows, values.n_cols);
    let scale = 1.0 / values.n_rows.max(1) as f32;
    let mut rest = gradient.values.as_mut_slice();
    let mut first = 0;
    let mut texts = Vec::with_capacity(batch.lengths.len());
    for (n, labels) in batch.lengths.iter().zip(&batch.labels) {
        let (of_text, behind) = rest.split_at_mut(n * values.n_cols);
        texts.push((first, *n, labels, of_text));
        rest = behind;
        first += n;
    }
    let losses: Vec<f64> = texts
        .into_par_iter()
        .map(|(first, n, labels, gradient)| {
            let taught =
                labels.iter().enumerate().filter_map(|(label_set, labels)| Some((label_set, labels.as_ref()?)));
            taught.map(|(label_set, labels)| text_loss(values, first, n, label_set, labels, gradient, scale)).sum()
        })
        .collect();
    Loss { value: losses.iter().sum::<f64>() * f64::from(scale), gradient }
}

/// Negative log-likelihood of the gold labels of a text in one label set; accumulates the gradient.
fn text_loss(
    values: &Matrix,
    first: usize,
    n: usize,
    label_set: usize,
    labels: &[u8],
    gradient: &mut [f32],
    scale: f32,
) -> f64 {
    let scores = |at: usize| -> [f32; N_LABELS] {
        let row = values.row(first + at);
        std::array::from_fn(|label| row[label_set * N_LABELS + label])
    };
    let crf = BilouCrf::new((0..n).map(scores));
    let mut of_labels = 0.0;
    for (at, label) in labels.iter().enumerate() {
        of_labels += f64::from(scores(at)[usize::from(*label)]);
        let to = &mut gradient[at * values.n_cols + label_set * N_LABELS..][..N_LABELS];
        for (place, (to, probability)) in to.iter_mut().zip(crf.labels(at)).enumerate() {
            *to = scale * (probability - f32::from(u8::from(place == usize::from(*label))));
        }
    }
    crf.log_sum() - of_labels
}

/// Strict counts on held-out texts, by label set.
pub fn count(
    model: &TaggerConfig,
    parameters: &Parameters,
    n_label_sets: usize,
    words: &Words,
    held_out: &[HeldOut],
) -> Result<Vec<Counts>> {
    let tagger = Tagger::new(model, parameters, n_label_sets)?;
    let mut rows = WordRows::default();
    tagger.tabulate(words, &mut rows);
    let each: Vec<Vec<Counts>> = held_out
        .par_iter()
        .map(|text| {
            let found = tagger.tag(&text.features, words, &rows, |_| true);
            let of_label_set = |(label_set, gold): (usize, &Option<Vec<(usize, usize)>>)| {
                let Some(gold) = gold else { return Counts::default() };
                let found = found.likeliest(label_set, 0.5);
                let right = found.iter().filter(|one| gold.contains(&(one.first, one.last)));
                Counts::one_to_one(gold.len(), found.len(), right.count())
            };
            text.mentions.iter().enumerate().map(of_label_set).collect()
        })
        .collect();
    let mut sums = vec![Counts::default(); n_label_sets];
    for scores in each {
        sums.iter_mut().zip(scores).for_each(|(sum, score)| *sum = *sum + score);
    }
    Ok(sums)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layers::crf::bilou::labels_of;
    use crate::models::tagger::features::{FeatureExtractor, Vocabulary};
    use crate::tensor::random::for_step;
    use crate::train::objective::tests::check_gradients;
    use crate::train::optimise::AdamConfig;
    use crate::train::{Run, RunConfig};
    use canonym_core::text::analysis::Analysis;

    const CONFIG: TagsConfig = TagsConfig { batch: 4, max_tokens: 6 };

    fn model() -> TaggerConfig {
        TaggerConfig {
            word_dim: 8,
            n_grams: 40,
            gram_dim: 6,
            shape_dim: 4,
            width: 16,
            distances: vec![1, 1],
            share_after: 1,
            ..TaggerConfig::default()
        }
    }

    /// Texts in which what follows "with" is a mention of the first label set; the second is never trained.
    fn corpus() -> (Words, Vec<Corpus>, Vec<HeldOut>, usize) {
        let texts =
            ["a man with gout was seen", "women with bone pain came", "pain came with gout", "he was seen with pain"];
        let mentions = [(3, 3), (2, 3), (3, 3), (4, 4)];
        let vocabulary = Vocabulary::count(texts, 1, 100);
        let extractor = FeatureExtractor { vocabulary, n_grams: 40, ..FeatureExtractor::default() };
        let mut words = Words::default();
        let (mut examples, mut held_out) = (Vec::new(), Vec::new());
        for (text, mention) in texts.iter().zip(mentions) {
            let features = extractor.extract(&Analysis::of_text(text), &mut words);
            let labels = vec![Some(labels_of(features.tokens.len(), &[mention])), None];
            held_out.push(HeldOut { features: features.clone(), mentions: vec![Some(vec![mention]), None] });
            examples.push(Example { features, labels });
        }
        (words, vec![Corpus { weight: 1.0, examples }], held_out, extractor.vocabulary.n_rows())
    }

    #[test]
    fn trained_label_sets_are_learned_and_others_get_no_gradient() {
        let (words, corpora, held_out, n_words) = corpus();
        let model = model();
        let mut objective = Tags::new(&model, CONFIG, &words, &corpora, 2, &held_out);
        let mut parameters = Parameters::default();
        model.init(&mut parameters, n_words, 2, &mut for_step(1, 1));
        let batch = objective.batch(0, &mut for_step(1, 0));
        let n_rows = batch.lengths.iter().sum();
        let loss = label_loss(&batch, &Matrix::zeros(n_rows, 2 * N_LABELS));
        assert!(loss.value > 0.5);
        for row in loss.gradient.values.chunks_exact(2 * N_LABELS) {
            assert!(row[..N_LABELS].iter().any(|value| *value != 0.0));
            assert!(row[N_LABELS..].iter().all(|value| *value == 0.0));
        }
        let adam = AdamConfig { learning_rate: 1e-2, ..AdamConfig::default() };
        let config = RunConfig { n_steps: 80, mining_interval: 40, evaluate_every: 1, adam, ..RunConfig::default() };
        let before = objective.evaluate(&parameters).unwrap().unwrap();
        let mut run = Run::new(config, 3, parameters);
        run.train(&mut objective, &mut |_, _| Ok(())).unwrap();
        let after = objective.evaluate(&run.finish()).unwrap().unwrap();
        assert!(before < 0.5 && after == 1.0, "{before} {after}");
    }

    #[test]
    fn the_gradient_agrees_with_finite_differences() {
        let (words, corpora, _, _) = corpus();
        let model = model();
        let objective = Tags::new(&model, CONFIG, &words, &corpora, 1, &[]);
        let batch = objective.batch(7, &mut for_step(1, 7));
        let n_rows: usize = batch.lengths.iter().sum();
        let mut rng = SplitMix64::new(2);
        let drawn = (0..n_rows * N_LABELS).map(|_| crate::tensor::random::normal(&mut rng)).collect();
        let values = Values::of([(LABELS, Matrix::new(n_rows, N_LABELS, drawn))]);
        check_gradients(|values| objective.losses(&batch, values), &values, 1, (1e-2, 1e-3));
    }

    #[test]
    fn long_texts_give_parts_whose_labels_are_possible() {
        let features =
            TokenFeatures { tokens: Vec::new(), words: vec![0; 9], separators: vec![0; 10], bits: vec![0; 9] };
        let text = "a b c d e f g h i";
        let tokens = canonym_core::text::tokens::tokenize(text);
        let example = Example {
            features: TokenFeatures { tokens, ..features },
            labels: vec![Some(labels_of(9, &[(0, 8)])), None],
        };
        for step in 0..20 {
            let part = cropped(&example, 4, &mut for_step(5, step));
            assert_eq!(part.labels, [Some(vec![1, 2, 2, 3]), None]);
            assert_eq!((part.features.tokens.len(), part.features.separators.len()), (4, 5));
        }
    }
}
