//! Tagger inference without gradients: word vectors are precomputed, which leaves a few matrix products per text.

use canonym_core::Result;

use super::features::{N_BITS, TokenFeatures, Words};
use crate::autograd::NORM_EPSILON;
use crate::autograd::ops::cpu::{Offsets, unfold};
use crate::layers::crf::bilou::{BilouCrf, N_LABELS, TaggedSpan, likeliest};
use crate::layers::linear::Linear;
use crate::layers::norm::LayerNorm;
use crate::models::tagger::{Packed, TaggerConfig, group_tokens};
use crate::tensor::matrix::{Matrix, Threads, WriteMode, multiply};
use crate::tensor::parameters::Parameters;
use crate::tensor::segments::Segments;

/// A tagger ready for inference.
#[derive(Debug, Clone)]
pub struct Tagger {
    config: TaggerConfig,
    n_label_sets: usize,
    parameters: Parameters,
    projection: Linear,
    blocks: Vec<(LayerNorm, Linear, Linear)>,
    share: (LayerNorm, Linear),
    norm: LayerNorm,
    labels: Linear,
}

/// Words whose vectors are computed together.
const WORDS: usize = 16;

/// Tokens per window, which bounds memory on long texts.
const WINDOW: usize = 4096;

/// Context tokens on either side of a window: more than the receptive field of the blocks, and more than a mention.
const MARGIN: usize = 64;

/// Tagger output of a text, which keeps the CRFs of all windows: for short texts.
#[derive(Debug, Clone, Default)]
pub struct Tagged {
    // Private: in text order; their own tokens are contiguous.
    windows: Vec<TaggedWindow>,
}

impl Tagged {
    /// Marginal probability of exactly this mention in a label set; 0 if the label set was not requested.
    pub fn mention(&self, label_set: usize, first: usize, last: usize) -> f32 {
        let at = self.windows.partition_point(|window| window.own.end <= first);
        self.windows.get(at).map_or(0.0, |window| window.mention(label_set, first, last))
    }

    /// Adds every mention of a label set with a probability of at least `min_probability`, ordered by first, then last token.
    pub fn mentions(&self, label_set: usize, min_probability: f32, found: &mut Vec<TaggedSpan>) {
        self.windows.iter().for_each(|window| window.mentions(label_set, min_probability, found));
    }

    /// Mentions of a label set with a probability of at least `min_probability`, overlaps suppressed, in text order.
    pub fn likeliest(&self, label_set: usize, min_probability: f32) -> Vec<TaggedSpan> {
        let mut found = Vec::new();
        self.mentions(label_set, min_probability, &mut found);
        likeliest(found)
    }
}

/// Tagger output of a window of a text, with its context.
#[derive(Debug, Clone)]
pub struct TaggedWindow {
    /// Tokens whose mentions belong to this window, by their first token.
    pub own: std::ops::Range<usize>,
    /// First token that was read.
    start: usize,
    /// The CRF of each requested label set.
    label_sets: Vec<Option<BilouCrf>>,
}

impl TaggedWindow {
    /// Marginal probability of exactly this mention, whose first token belongs to the window; 0 if the label set was not requested.
    pub fn mention(&self, label_set: usize, first: usize, last: usize) -> f32 {
        let crf = self.label_sets[label_set].as_ref().filter(|_| first <= last);
        crf.map_or(0.0, |crf| crf.mention(first - self.start, last - self.start))
    }

    /// Adds the mentions of the window of a label set with a probability of at least `min_probability`, ordered by first, then last token.
    pub fn mentions(&self, label_set: usize, min_probability: f32, found: &mut Vec<TaggedSpan>) {
        let Some(crf) = &self.label_sets[label_set] else { return };
        let mut here = Vec::new();
        crf.mentions(min_probability, &mut here);
        let placed = here.into_iter().map(|mark| TaggedSpan {
            first: mark.first + self.start,
            last: mark.last + self.start,
            ..mark
        });
        found.extend(placed.filter(|mark| self.own.contains(&mark.first)));
    }
}

/// Precomputed vectors of the words seen so far, as input to the first block.
#[derive(Debug, Clone, Default)]
pub struct WordRows {
    values: Vec<f32>,
}

impl Tagger {
    /// Builds a tagger; the weights must fit the config.
    pub fn new(config: &TaggerConfig, parameters: &Parameters, n_label_sets: usize) -> Result<Tagger> {
        let block = |block: usize| {
            let name = |part: &str| format!("block.{block}.{part}");
            let norm = LayerNorm::of(parameters, &name("norm"), NORM_EPSILON)?;
            Ok((norm, Linear::of(parameters, &name("convolution"))?, Linear::of(parameters, &name("output"))?))
        };
        let mut kept = Parameters::default();
        for name in ["word", "gram", "shape", "before", "after", "bit"] {
            let name = format!("embedding.{name}");
            kept.add(name.clone(), parameters.get(&name)?.clone());
        }
        Ok(Tagger {
            config: config.clone(),
            n_label_sets,
            parameters: kept,
            projection: Linear::of(parameters, "projection")?,
            blocks: (0..config.distances.len()).map(block).collect::<Result<_>>()?,
            share: (LayerNorm::of(parameters, "share.norm", NORM_EPSILON)?, Linear::of(parameters, "share")?),
            norm: LayerNorm::of(parameters, "norm", NORM_EPSILON)?,
            labels: Linear::of(parameters, "labels")?,
        })
    }

    /// Tags a text on one thread, for the `wanted` label sets. `words` are those of the features, `rows` those of [`Tagger::tabulate`].
    pub fn tag(
        &self,
        features: &TokenFeatures,
        words: &Words,
        rows: &WordRows,
        wanted: impl Fn(usize) -> bool,
    ) -> Tagged {
        Tagged { windows: self.windows(features, words, rows, wanted).collect() }
    }

    /// Like [`Tagger::tag`], one window after the other, in text order: the CRFs of a long text are never in memory together.
    pub fn windows<'a>(
        &'a self,
        features: &'a TokenFeatures,
        words: &'a Words,
        rows: &'a WordRows,
        wanted: impl Fn(usize) -> bool + 'a,
    ) -> impl Iterator<Item = TaggedWindow> + 'a {
        let n = features.tokens.len();
        (0..n).step_by(WINDOW).map(move |first| {
            let own = first..n.min(first + WINDOW);
            let read = own.start.saturating_sub(MARGIN)..n.min(own.end + MARGIN);
            let scores = match read.len() == n {
                true => self.scores(features, words, rows),
                false => self.scores(&features.part(read.clone()), words, rows),
            };
            let of_label_set = |label_set: usize| {
                let row = |row: usize| -> [f32; N_LABELS] {
                    let row = &scores.row(row)[label_set * N_LABELS..][..N_LABELS];
                    std::array::from_fn(|label| row[label])
                };
                wanted(label_set).then(|| BilouCrf::new((0..scores.n_rows).map(row)))
            };
            TaggedWindow { own, start: read.start, label_sets: (0..self.n_label_sets).map(of_label_set).collect() }
        })
    }

    /// Label scores, `[tokens, label sets * labels]`.
    pub fn scores(&self, features: &TokenFeatures, words: &Words, known: &WordRows) -> Matrix {
        let mut rows = self.embed(features, known);
        let segments = Segments::of_lengths([features.tokens.len()]);
        for (block, ((norm, convolution, output), distance)) in
            self.blocks.iter().zip(&self.config.distances).enumerate()
        {
            if block == self.config.share_after {
                self.share(&mut rows, features, words);
            }
            let distance = *distance as isize;
            let normal = norm.apply(&rows);
            let mut near = Matrix::zeros(rows.n_rows, 3 * rows.n_cols);
            let offsets = Offsets { all: &[-distance, 0, distance], seen: &[true; 3] };
            unfold(&normal.values, &mut near.values, offsets, &segments);
            let mut inner = convolution.apply(&near, Threads::One);
            inner.values.iter_mut().for_each(|value| *value = value.max(0.0));
            add_bias(&mut rows, &output.bias);
            multiply(rows.view_mut(), inner.view(), output.weight.view(), WriteMode::Add, Threads::One);
        }
        self.labels.apply(&self.norm.apply(&rows), Threads::One)
    }

    fn embed(&self, features: &TokenFeatures, known: &WordRows) -> Matrix {
        let width = self.config.width;
        let table = |name: &str| self.parameters.get(name).expect("`new` has taken it along");
        let (before, after, bit) = (table("embedding.before"), table("embedding.after"), table("embedding.bit"));
        let mut rows = Matrix::zeros(features.tokens.len(), width);
        for (at, to) in rows.values.chunks_exact_mut(width).enumerate() {
            to.copy_from_slice(&known.values[features.words[at] as usize * width..][..width]);
            add(to, before.row(features.separators[at] as usize));
            add(to, after.row(features.separators[at + 1] as usize));
            let bits = features.bits[at];
            (0..N_BITS).filter(|place| bits & (1 << place) != 0).for_each(|place| add(to, bit.row(place)));
        }
        rows
    }

    /// Computes the vectors of new words and appends them to `known`, which belongs to `words` and this tagger.
    pub fn tabulate(&self, words: &Words, known: &mut WordRows) {
        let n_known = known.values.len() / self.config.width;
        let table = |name: &str| self.parameters.get(name).expect("`new` has taken it along");
        let (own, gram, shape) = (table("embedding.word"), table("embedding.gram"), table("embedding.shape"));
        // Products of a fixed size round alike, so the vector of a word does not depend on the other new words.
        for first in (n_known..words.len()).step_by(WORDS) {
            let mut input = Matrix::zeros(WORDS, own.n_cols + gram.n_cols + shape.n_cols);
            let n = WORDS.min(words.len() - first);
            for place in 0..n {
                let word = words.get((first + place) as u32);
                let to = input.row_mut(place);
                to[..own.n_cols].copy_from_slice(own.row(word.row as usize));
                let weight = 1.0 / word.grams.len().max(1) as f32;
                let grams = &mut to[own.n_cols..][..gram.n_cols];
                for row in &word.grams {
                    grams.iter_mut().zip(gram.row(*row as usize)).for_each(|(to, from)| *to += weight * from);
                }
                to[own.n_cols + gram.n_cols..].copy_from_slice(shape.row(word.shape as usize));
            }
            let rows = self.projection.apply(&input, Threads::One);
            known.values.extend_from_slice(&rows.values[..n * rows.n_cols]);
        }
    }

    fn share(&self, rows: &mut Matrix, features: &TokenFeatures, words: &Words) {
        let normal = self.share.0.apply(rows);
        let mut packed = Packed::default();
        let mut segments = Segments::default();
        group_tokens(features, words, 0, &mut packed.by_group, &mut packed.group_of, &mut segments);
        let mut means = Matrix::zeros(segments.len(), rows.n_cols);
        for (group, uses) in segments.iter().enumerate() {
            let weight = 1.0 / uses.len() as f32;
            for at in uses {
                let from = normal.row(packed.by_group[at] as usize);
                means.row_mut(group).iter_mut().zip(from).for_each(|(to, from)| *to += weight * from);
            }
        }
        let shared = self.share.1.apply(&means, Threads::One);
        for (at, group) in packed.group_of.iter().enumerate() {
            add(rows.row_mut(at), shared.row(*group as usize));
        }
    }
}

fn add(to: &mut [f32], from: &[f32]) {
    to.iter_mut().zip(from).for_each(|(to, from)| *to += from);
}

fn add_bias(rows: &mut Matrix, bias: &[f32]) {
    let n_cols = bias.len();
    rows.values.chunks_exact_mut(n_cols).for_each(|row| add(row, bias));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::autograd::Tape;
    use crate::models::tagger::features::{FeatureExtractor, Vocabulary};
    use crate::models::tagger::gazetteer::Gazetteer;
    use crate::tensor::random::SplitMix64;
    use canonym_core::text::analysis::Analysis;

    const TEXTS: [&str; 3] = [
        "Liver disease (LD) after aspirin. Liver disease was seen; LD resolved.",
        "Aspirin",
        "IL-2 and TNFα in 12 patients, aspirin-induced asthma: liver.",
    ];

    fn extractor() -> FeatureExtractor {
        let gazetteer = Gazetteer::build([("liver disease", 1), ("aspirin", 2)]);
        FeatureExtractor { vocabulary: Vocabulary::count(TEXTS, 2, 100), gazetteer, n_grams: 50 }
    }

    #[test]
    fn inference_agrees_with_training_and_texts_are_independent() {
        let config = TaggerConfig {
            word_dim: 6,
            n_grams: 50,
            gram_dim: 5,
            shape_dim: 4,
            width: 12,
            distances: vec![1, 2, 1],
            share_after: 1,
            ..TaggerConfig::default()
        };
        let (extractor, mut words) = (extractor(), Words::default());
        let texts: Vec<TokenFeatures> =
            TEXTS.iter().map(|text| extractor.extract(&Analysis::of_text(text), &mut words)).collect();
        let mut parameters = Parameters::default();
        config.init(&mut parameters, extractor.vocabulary.n_rows(), 2, &mut SplitMix64::new(4));
        config.check(&parameters, extractor.vocabulary.n_rows(), 2).unwrap();
        let mut tape = Tape::new(&parameters);
        let output = config.forward(&mut tape, &Packed::new(&texts.iter().collect::<Vec<_>>(), &words), None).unwrap();
        let expected = tape.value(output);
        let tagger = Tagger::new(&config, &parameters, 2).unwrap();
        let mut rows = WordRows::default();
        tagger.tabulate(&words, &mut rows);
        let mut first = 0;
        for features in &texts {
            let scores = tagger.scores(features, &words, &rows);
            for (at, value) in scores.values.iter().enumerate() {
                let other = expected.values[first * 10 + at];
                assert!((value - other).abs() < 1e-5, "{value} {other}");
            }
            first += scores.n_rows;
            let tagged = tagger.tag(features, &words, &rows, |label_set| label_set == 1);
            assert!(tagged.mention(1, 0, 0) > 0.0 && tagged.mention(0, 0, 0) == 0.0);
        }
        assert_eq!(first, expected.n_rows);
        // Bit-identical, whatever was read before.
        let (mut alone, mut few) = (Words::default(), WordRows::default());
        let features = extractor.extract(&Analysis::of_text(TEXTS[2]), &mut alone);
        tagger.tabulate(&alone, &mut few);
        assert_eq!(tagger.scores(&features, &alone, &few), tagger.scores(&texts[2], &words, &rows));
        let empty = extractor.extract(&Analysis::of_text("…"), &mut words);
        assert!(tagger.tag(&empty, &words, &rows, |_| true).likeliest(0, 0.0).is_empty());
        assert_eq!(tagger.tag(&empty, &words, &rows, |_| true).mention(0, 0, 0), 0.0);
        assert!(config.check(&parameters, 3, 2).is_err() && config.check(&parameters, 5, 3).is_err());
    }

    #[test]
    fn long_texts_are_tagged_in_windows_and_mentions_come_once() {
        let config = TaggerConfig {
            word_dim: 6,
            n_grams: 50,
            gram_dim: 5,
            shape_dim: 4,
            width: 12,
            distances: vec![1, 2],
            // Word states are shared within a window; a text without repeated words gives the same as one window would.
            share_after: 9,
            ..TaggerConfig::default()
        };
        let (extractor, mut words) = (extractor(), Words::default());
        let mut parameters = Parameters::default();
        config.init(&mut parameters, extractor.vocabulary.n_rows(), 1, &mut SplitMix64::new(4));
        let tagger = Tagger::new(&config, &parameters, 1).unwrap();
        let features =
            extractor.extract(&Analysis::of_text(&"liver disease after aspirin in asthma ".repeat(1000)), &mut words);
        let mut rows = WordRows::default();
        tagger.tabulate(&words, &mut rows);
        let tagged = tagger.tag(&features, &words, &rows, |_| true);
        assert_eq!((features.tokens.len(), tagged.windows.len()), (6000, 2));
        let scores = tagger.scores(&features, &words, &rows);
        let whole = BilouCrf::new((0..scores.n_rows).map(|row| std::array::from_fn(|label| scores.row(row)[label])));
        for first in [0, 5, 4094, 4095, 4096, 4097, 5999] {
            for last in first..6000.min(first + 3) {
                let (windowed, whole) = (tagged.mention(0, first, last), whole.mention(first, last));
                assert!((windowed - whole).abs() < 1e-4, "{first} {last} {windowed} {whole}");
            }
        }
        let (mut found, mut expected) = (Vec::new(), Vec::new());
        tagged.mentions(0, 0.01, &mut found);
        whole.mentions(0.01, &mut expected);
        let spans = |marks: &[TaggedSpan]| marks.iter().map(|mark| (mark.first, mark.last)).collect::<Vec<_>>();
        assert_eq!(spans(&found), spans(&expected));
    }
}
