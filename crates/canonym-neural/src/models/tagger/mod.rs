//! Tagger: residual convolutions over words, with BILOU scores for each label set.
//!
//! The blocks follow ResCNN (Lai et al. 2021) without its wide kernels: layer norm, a dilated convolution over three tokens (Strubell et
//! al. 2017), ReLU, projection, residual connection. A word vector combines embeddings of the word, its character n-grams (Bojanowski et
//! al. 2017) and its shape, and can therefore be precomputed; embeddings of the text around it and of gazetteer matches are added. After
//! `share_after` blocks, states of equal words are mean-pooled over the text.

pub mod features;
pub mod gazetteer;
pub mod infer;
pub mod typed;

use std::collections::HashMap;
use std::sync::Arc;

use canonym_core::{Error, Result};
use serde::{Deserialize, Serialize};

use crate::autograd::{NORM_EPSILON, Tape, Var};
use crate::layers::crf::bilou::N_LABELS;
use crate::layers::embedding::embedding;
use crate::layers::linear::linear;
use crate::layers::norm::layer_norm;
use crate::models::tagger::features::{N_BITS, N_SEPARATORS, N_SHAPES, TokenFeatures, Words};
use crate::tensor::matrix::Matrix;
use crate::tensor::parameters::Parameters;
use crate::tensor::random::{self, SplitMix64};
use crate::tensor::segments::Segments;

/// Model configuration.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TaggerConfig {
    /// Dimension of word embeddings.
    pub word_dim: usize,
    /// Number of hash buckets for character n-grams.
    pub n_grams: usize,
    /// Dimension of n-gram embeddings.
    pub gram_dim: usize,
    /// Dimension of shape embeddings.
    pub shape_dim: usize,
    /// Dimension of the blocks.
    pub width: usize,
    /// Dilation of the convolution of each block.
    pub distances: Vec<usize>,
    /// Number of blocks before states of equal words are pooled.
    pub share_after: usize,
    /// Dropout of inputs and within blocks.
    pub dropout: f32,
    /// Fraction of words whose own embedding is dropped in training.
    pub word_dropout: f32,
    /// Fraction of texts whose binary features are dropped in training.
    pub bit_dropout: f32,
}

impl Default for TaggerConfig {
    fn default() -> TaggerConfig {
        TaggerConfig {
            word_dim: 96,
            n_grams: 16384,
            gram_dim: 96,
            shape_dim: 16,
            width: 192,
            distances: vec![1, 2, 4, 1, 2],
            share_after: 3,
            dropout: 0.2,
            word_dropout: 0.2,
            bit_dropout: 0.1,
        }
    }
}

/// A packed batch of texts, as gather indices.
#[derive(Debug, Clone, Default)]
pub struct Packed {
    /// Vocabulary row of each distinct word.
    pub rows: Vec<u32>,
    /// Shape of each distinct word.
    pub shapes: Vec<u32>,
    /// N-gram buckets of all distinct words.
    pub grams: Vec<u32>,
    /// Range of n-grams of each distinct word.
    pub gram_segments: Arc<Segments>,
    /// Distinct word of each token.
    pub word_of: Vec<u32>,
    /// Bucket of the text before each token.
    pub before: Vec<u32>,
    /// Bucket of the text after each token.
    pub after: Vec<u32>,
    /// Binary features of each token.
    pub bits: Vec<u64>,
    /// Tokens sorted so that equal words of a text are adjacent.
    pub by_group: Vec<u32>,
    /// Range of the tokens of each group of equal words.
    pub group_segments: Arc<Segments>,
    /// Group of each token.
    pub group_of: Vec<u32>,
    /// Token range of each text.
    pub segments: Arc<Segments>,
}

impl Packed {
    /// Packs texts whose features were extracted with `words`. Texts must have at least one token.
    pub fn new(texts: &[&TokenFeatures], words: &Words) -> Packed {
        let mut packed = Packed::default();
        let mut number_of: HashMap<u32, u32> = HashMap::new();
        let (mut gram_segments, mut segments, mut group_segments) =
            (Segments::default(), Segments::default(), Segments::default());
        for features in texts {
            let first = packed.word_of.len();
            for (at, number) in features.words.iter().enumerate() {
                let next = number_of.len() as u32;
                let row = *number_of.entry(*number).or_insert_with(|| {
                    let word = words.get(*number);
                    packed.rows.push(word.row);
                    packed.shapes.push(word.shape);
                    packed.grams.extend_from_slice(&word.grams);
                    gram_segments.push(word.grams.len());
                    next
                });
                packed.word_of.push(row);
                packed.before.push(features.separators[at]);
                packed.after.push(features.separators[at + 1]);
            }
            packed.bits.extend_from_slice(&features.bits);
            segments.push(features.words.len());
            group_tokens(features, words, first, &mut packed.by_group, &mut packed.group_of, &mut group_segments);
        }
        packed.gram_segments = Arc::new(gram_segments);
        packed.segments = Arc::new(segments);
        packed.group_segments = Arc::new(group_segments);
        packed
    }

    /// Number of tokens.
    pub fn n_tokens(&self) -> usize {
        self.word_of.len()
    }
}

/// Groups the tokens of a text by word.
pub fn group_tokens(
    features: &TokenFeatures,
    words: &Words,
    first: usize,
    by_group: &mut Vec<u32>,
    group_of: &mut Vec<u32>,
    segments: &mut Segments,
) {
    let groups: Vec<u32> = features.words.iter().map(|number| words.get(*number).group).collect();
    let mut order: Vec<u32> = (0..groups.len() as u32).collect();
    order.sort_by_key(|at| (groups[*at as usize], *at));
    group_of.resize(first + groups.len(), 0);
    for run in order.chunk_by(|left, right| groups[*left as usize] == groups[*right as usize]) {
        for at in run {
            group_of[first + *at as usize] = segments.len() as u32;
            by_group.push((first + *at as usize) as u32);
        }
        segments.push(run.len());
    }
}

impl TaggerConfig {
    /// Initialises the weights for `n_words` vocabulary rows and `n_layers` label sets.
    pub fn init(&self, parameters: &mut Parameters, n_words: usize, n_label_sets: usize, rng: &mut SplitMix64) {
        let mut drawn = |name: &str, n_rows: usize, n_cols: usize, deviation: f32| {
            let values = (0..n_rows * n_cols).map(|_| deviation * random::normal(rng)).collect();
            parameters.add(name, Matrix::new(n_rows, n_cols, values));
        };
        drawn("embedding.word", n_words, self.word_dim, 0.3);
        drawn("embedding.gram", self.n_grams, self.gram_dim, 0.6);
        drawn("embedding.shape", N_SHAPES, self.shape_dim, 0.3);
        drawn("embedding.before", N_SEPARATORS, self.width, 0.1);
        drawn("embedding.after", N_SEPARATORS, self.width, 0.1);
        drawn("embedding.bit", N_BITS, self.width, 0.1);
        parameters.add_linear("projection", self.word_dim + self.gram_dim + self.shape_dim, self.width, rng);
        for block in 0..self.distances.len() {
            self.init_norm(parameters, &format!("block.{block}.norm"));
            parameters.add_linear(&format!("block.{block}.convolution"), 3 * self.width, self.width, rng);
            parameters.add_linear(&format!("block.{block}.output"), self.width, self.width, rng);
        }
        self.init_norm(parameters, "share.norm");
        parameters.add_linear("share", self.width, self.width, rng);
        self.init_norm(parameters, "norm");
        parameters.add_linear("labels", self.width, n_label_sets * N_LABELS, rng);
    }

    fn init_norm(&self, parameters: &mut Parameters, name: &str) {
        parameters.add(format!("{name}.gain"), Matrix::new(1, self.width, vec![1.0; self.width]));
        parameters.add(format!("{name}.bias"), Matrix::zeros(1, self.width));
    }

    /// Adds label sets; each is initialised from an existing one or with zeros.
    pub fn widen(&self, parameters: &mut Parameters, like: &[Option<usize>]) {
        for name in ["labels.weight", "labels.bias"] {
            let Ok(narrow) = parameters.get(name) else { continue };
            let n_known = narrow.n_cols;
            let mut wide = Matrix::zeros(narrow.n_rows, n_known + like.len() * N_LABELS);
            for row in 0..narrow.n_rows {
                let (known, added) = wide.row_mut(row).split_at_mut(n_known);
                known.copy_from_slice(narrow.row(row));
                for (to, like) in added.chunks_exact_mut(N_LABELS).zip(like) {
                    if let Some(like) = like {
                        to.copy_from_slice(&known[like * N_LABELS..][..N_LABELS]);
                    }
                }
            }
            parameters.add(name, wide);
        }
    }

    /// Checks that the sizes are consistent.
    pub fn check_sizes(&self) -> Result<()> {
        let sizes = [self.word_dim, self.n_grams, self.gram_dim, self.shape_dim, self.width, self.distances.len()];
        if sizes.contains(&0) || self.distances.contains(&0) {
            return Err(
                Error::config("invalid tagger config: a size is 0").with_hint("sizes and distances must be at least 1")
            );
        }
        Ok(())
    }

    /// Checks the shapes of the weights, for `n_layers` label sets and `n_words` vocabulary rows.
    pub fn check(&self, parameters: &Parameters, n_words: usize, n_label_sets: usize) -> Result<()> {
        self.check_sizes()?;
        let mut expected = Parameters::default();
        let small = TaggerConfig { n_grams: 1, ..self.clone() };
        small.init(&mut expected, 1, n_label_sets, &mut SplitMix64::new(0));
        for (name, value) in expected.iter() {
            let n_rows = match name {
                "embedding.word" => n_words,
                "embedding.gram" => self.n_grams,
                _ => value.n_rows,
            };
            parameters.shaped(name, n_rows, value.n_cols)?;
        }
        Ok(())
    }

    /// Label scores, `[tokens, label sets * labels]`; dropout is applied if `rng` is given.
    pub fn forward(&self, tape: &mut Tape<'_>, packed: &Packed, mut rng: Option<&mut SplitMix64>) -> Result<Var> {
        let words = self.words(tape, packed, rng.as_deref_mut())?;
        let words = tape.gather(words, packed.word_of.clone());
        let before = embedding(tape, "embedding.before", packed.before.clone())?;
        let after = embedding(tape, "embedding.after", packed.after.clone())?;
        let bits = self.bits(packed, rng.as_deref_mut());
        let bits = tape.input(bits);
        let weight = tape.parameter("embedding.bit")?;
        let bits = tape.linear(bits, weight, None);
        let mut rows = [before, after, bits].into_iter().fold(words, |sum, part| tape.add(sum, part));
        rows = tape.dropout(rows, self.dropout, rng.as_deref_mut());
        for (block, distance) in self.distances.iter().enumerate() {
            if block == self.share_after {
                rows = share(tape, rows, packed)?;
            }
            let distance = *distance as isize;
            let normal = layer_norm(tape, &format!("block.{block}.norm"), rows, NORM_EPSILON)?;
            let near = tape.unfold(normal, &[-distance, 0, distance], &packed.segments);
            let inner = linear(tape, &format!("block.{block}.convolution"), near)?;
            let inner = tape.relu(inner);
            let inner = tape.dropout(inner, self.dropout, rng.as_deref_mut());
            let output = linear(tape, &format!("block.{block}.output"), inner)?;
            rows = tape.add(rows, output);
        }
        let rows = layer_norm(tape, "norm", rows, NORM_EPSILON)?;
        linear(tape, "labels", rows)
    }

    /// Vectors of the distinct words, `[words, width]`.
    fn words(&self, tape: &mut Tape<'_>, packed: &Packed, rng: Option<&mut SplitMix64>) -> Result<Var> {
        let mut rows = packed.rows.clone();
        if let Some(rng) = rng {
            rows.iter_mut().filter(|_| random::unit(rng) < self.word_dropout).for_each(|row| *row = 0);
        }
        let own = embedding(tape, "embedding.word", rows)?;
        let grams = embedding(tape, "embedding.gram", packed.grams.clone())?;
        let grams = tape.segment_mean(grams, &packed.gram_segments);
        let shapes = embedding(tape, "embedding.shape", packed.shapes.clone())?;
        let all = tape.concat(&[own, grams, shapes]);
        linear(tape, "projection", all)
    }

    /// Binary features as a matrix, `[tokens, N_BITS]`.
    fn bits(&self, packed: &Packed, rng: Option<&mut SplitMix64>) -> Matrix {
        let mut bits = Matrix::zeros(packed.n_tokens(), N_BITS);
        let blind: Vec<bool> = match rng {
            Some(rng) => packed.segments.iter().map(|_| random::unit(rng) < self.bit_dropout).collect(),
            None => vec![false; packed.segments.len()],
        };
        for (tokens, _) in packed.segments.iter().zip(blind).filter(|(_, blind)| !blind) {
            for token in tokens {
                let of_token = packed.bits[token];
                let row = bits.row_mut(token);
                (0..N_BITS).filter(|bit| of_token & (1 << bit) != 0).for_each(|bit| row[bit] = 1.0);
            }
        }
        bits
    }
}

/// Adds to each token the projected mean state of equal words in its text.
fn share(tape: &mut Tape<'_>, rows: Var, packed: &Packed) -> Result<Var> {
    let normal = layer_norm(tape, "share.norm", rows, NORM_EPSILON)?;
    let ordered = tape.gather(normal, packed.by_group.clone());
    let means = tape.segment_mean(ordered, &packed.group_segments);
    let shared = linear(tape, "share", means)?;
    let shared = tape.gather(shared, packed.group_of.clone());
    Ok(tape.add(rows, shared))
}
