//! Training of cross-encoders: softmax cross entropy over the candidates of a mention in context.
//!
//! Candidates come from a linker and are fixed. Each is encoded together with the mention and gets a score; the loss is the cross entropy
//! `−ln P` of the correct one, averaged over the mentions of a batch. Mentions without a correct candidate are skipped. Bhowmik et al. 2021
//! also report a cross-encoder, marked †, whose candidates always include the correct one; this is up to the caller.

use canonym_core::Result;
use canonym_core::eval::ranking::Ranks;
use serde::{Deserialize, Serialize};

use crate::autograd::Tape;
use crate::models::bert::Sequences;
use crate::models::cross_encoder::CrossEncoderConfig;
use crate::models::cross_encoder::infer::PairScorer;
use crate::objectives::anchors::anchors_at;
use crate::tensor::elementwise::softmax;
use crate::tensor::matrix::Matrix;
use crate::tensor::parameters::Parameters;
use crate::tensor::random::SplitMix64;
use crate::tokenizer::Tokenizer;
use crate::train::losses::Loss;
use crate::train::{Losses, Objective, Outputs, Values};

/// Batch settings.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PairsConfig {
    /// Mentions per batch.
    pub batch: usize,
}

impl Default for PairsConfig {
    fn default() -> PairsConfig {
        PairsConfig { batch: 4 }
    }
}

/// A mention and its candidates.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Question {
    /// `input_ids` of the mention in its context.
    pub window: Vec<u32>,
    /// Rows of the name table, best first.
    pub candidates: Vec<u32>,
    /// Index of the correct candidate, if there is one.
    pub right: Option<usize>,
}

/// Mentions, and the names of their candidates.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Questions {
    /// The mentions.
    pub mentions: Vec<Question>,
    /// `input_ids` of each name, including `[SEP]`.
    pub names: Vec<Vec<u32>>,
}

impl Questions {
    /// Input pairs of a mention and its candidates.
    fn pairs(&self, mention: usize) -> Sequences {
        let Question { window, candidates, .. } = &self.mentions[mention];
        let mut pairs = Sequences::default();
        candidates.iter().for_each(|row| pairs.push(&[window, &self.names[*row as usize]]));
        pairs
    }

    /// Fraction of mentions whose correct candidate has the highest score; the first wins a tie. Mentions without a correct candidate count
    /// as errors.
    pub fn accuracy(&self, scorer: &PairScorer) -> Result<f64> {
        let rank = |(at, mention): (usize, &Question)| -> Result<Option<usize>> {
            let Some(right) = mention.right else { return Ok(None) };
            let scores = scorer.scores(&self.pairs(at))?;
            Ok((best(&scores) == Some(right)).then_some(0))
        };
        let ranks: Vec<Option<usize>> = self.mentions.iter().enumerate().map(rank).collect::<Result<_>>()?;
        Ok(Ranks::of(&ranks).accuracy_at(1))
    }
}

/// Index of the highest score; the first wins a tie.
fn best(scores: &[f32]) -> Option<usize> {
    (0..scores.len()).max_by(|left, right| scores[*left].total_cmp(&scores[*right]).then(right.cmp(left)))
}

/// The objective.
#[derive(Debug)]
pub struct Pairs<'a> {
    model: &'a CrossEncoderConfig,
    config: PairsConfig,
    questions: &'a Questions,
    /// Mentions that have a correct candidate.
    taught: Vec<usize>,
    seed: u64,
    held_out: Option<(&'a Questions, &'a Tokenizer)>,
}

/// Output: a score for each candidate.
const SCORES: &str = "scores";

/// The mentions of one batch.
#[derive(Debug)]
pub struct PairsBatch {
    /// Input pairs, one part per mention.
    parts: Vec<Sequences>,
    /// Index of the correct candidate of each mention.
    right: Vec<usize>,
}

impl<'a> Pairs<'a> {
    /// Creates the objective.
    pub fn new(model: &'a CrossEncoderConfig, config: PairsConfig, questions: &'a Questions, seed: u64) -> Pairs<'a> {
        let is_taught = |at: &usize| questions.mentions[*at].right.is_some();
        let taught: Vec<usize> = (0..questions.mentions.len()).filter(is_taught).collect();
        let config = PairsConfig { batch: config.batch.min(taught.len()).max(1) };
        Pairs { model, config, questions, taught, seed, held_out: None }
    }

    /// Evaluates [`Questions::accuracy`] on held-out mentions.
    pub fn with_held_out(self, held_out: Option<(&'a Questions, &'a Tokenizer)>) -> Pairs<'a> {
        Pairs { held_out, ..self }
    }

    /// Number of mentions used in training.
    pub fn n_taught(&self) -> usize {
        self.taught.len()
    }
}

impl Objective for Pairs<'_> {
    type Batch = PairsBatch;

    fn begin_interval(&mut self, _parameters: &Parameters, _interval: u64) -> Result<()> {
        Ok(())
    }

    fn batch(&self, step: u64, _rng: &mut SplitMix64) -> PairsBatch {
        if self.taught.is_empty() {
            return PairsBatch { parts: Vec::new(), right: Vec::new() };
        }
        let places = anchors_at(self.taught.len(), self.seed, step, self.config.batch);
        let mentions: Vec<usize> = places.into_iter().map(|place| self.taught[place]).collect();
        let right = |mention: &usize| self.questions.mentions[*mention].right.expect("others are not taught");
        PairsBatch {
            right: mentions.iter().map(right).collect(),
            parts: mentions.iter().map(|mention| self.questions.pairs(*mention)).collect(),
        }
    }

    fn n_parts(&self, batch: &PairsBatch) -> usize {
        batch.parts.len()
    }

    fn forward(&self, tape: &mut Tape<'_>, batch: &PairsBatch, part: usize, rng: &mut SplitMix64) -> Result<Outputs> {
        Ok(Outputs::of(SCORES, self.model.forward(tape, &batch.parts[part], Some(rng))?))
    }

    fn losses(&self, batch: &PairsBatch, values: &Values) -> Losses {
        let groups: Vec<(usize, usize)> =
            batch.parts.iter().zip(&batch.right).map(|(pairs, right)| (pairs.len(), *right)).collect();
        Losses::of("cross-entropy", SCORES, cross_entropy(&groups, values.get(SCORES)))
    }

    fn evaluate(&self, parameters: &Parameters) -> Result<Option<f64>> {
        let Some((questions, tokenizer)) = self.held_out else { return Ok(None) };
        let scorer = PairScorer::new(self.model, parameters, tokenizer)?;
        questions.accuracy(&scorer).map(Some)
    }
}

/// Mean cross entropy over concatenated groups of scores, `[scores, 1]`; each group is given by its length and the index of the correct
/// score.
fn cross_entropy(groups: &[(usize, usize)], scores: &Matrix) -> Loss {
    let n = groups.len().max(1);
    let mut gradient = Matrix::zeros(scores.n_rows, scores.n_cols);
    let mut value = 0.0;
    let mut at = 0;
    for (length, right) in groups {
        let to = &mut gradient.values[at..at + length];
        to.copy_from_slice(&scores.values[at..at + length]);
        softmax(to);
        value -= f64::from(to[*right].max(f32::MIN_POSITIVE)).ln();
        to[*right] -= 1.0;
        to.iter_mut().for_each(|slope| *slope /= n as f32);
        at += length;
    }
    Loss { value: value / n as f64, gradient }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::models::cross_encoder::context::marked_window;
    use crate::models::cross_encoder::tests::drawn_cross_encoder;
    use crate::tensor::random;
    use crate::train::optimise::{AdamConfig, Schedule};
    use crate::train::{Progress, Run, RunConfig};

    #[test]
    fn the_loss_is_that_of_the_formula_and_its_gradient_that_of_differences() {
        let scores = Matrix::new(3, 1, vec![2.0, 1.0, 0.0]);
        let loss = cross_entropy(&[(3, 1)], &scores);
        let expected = (1.0f64.exp() + 1.0 + (-1.0f64).exp()).ln();
        assert!((loss.value - expected).abs() < 1e-6, "{}", loss.value);
        let mut rng = SplitMix64::new(3);
        let scores = Matrix::new(7, 1, (0..7).map(|_| random::normal(&mut rng)).collect());
        let groups = [(3, 2), (1, 0), (3, 0)];
        let loss = cross_entropy(&groups, &scores);
        for at in 0..7 {
            let moved = |by: f32| {
                let mut moved = scores.clone();
                moved.values[at] += by;
                cross_entropy(&groups, &moved).value
            };
            let slope = (moved(1e-2) - moved(-1e-2)) / 2e-2;
            assert!((slope - f64::from(loss.gradient.values[at])).abs() < 1e-4, "{at}");
        }
        assert_eq!(cross_entropy(&[], &Matrix::default()).value, 0.0);
    }

    /// Mentions whose context tells which name is meant.
    fn made() -> (CrossEncoderConfig, Parameters, Tokenizer, Questions) {
        let (config, _, tokenizer) = drawn_cross_encoder();
        let mut parameters = Parameters::default();
        config.init(&mut parameters, &mut SplitMix64::new(6));
        let names = ["liver", "kidney", "cold"].map(|name| config.name_rows(&tokenizer, name).unwrap()).to_vec();
        let window = |text: &str| {
            let start = text.find("disease").unwrap();
            marked_window(&tokenizer, text, start..start + 7, config.n_wordpieces).unwrap().rows
        };
        let question = |text: &str, candidates: &[u32], right: Option<usize>| Question {
            window: window(text),
            candidates: candidates.to_vec(),
            right,
        };
        let mentions = vec![
            question("fatty disease", &[0, 1, 2], Some(0)),
            question("kidney kidney disease", &[2, 1], Some(1)),
            question("cold disease cold", &[1, 0, 2], Some(2)),
            question("disease", &[1, 2], None),
            question("fatty fatty disease", &[1, 0], Some(1)),
        ];
        (config, parameters, tokenizer, Questions { mentions, names })
    }

    fn begin(parameters: Parameters) -> Run {
        let adam = AdamConfig { learning_rate: 1e-2, schedule: Schedule::Constant, ..Default::default() };
        let config =
            RunConfig { n_steps: 60, mining_interval: 6, evaluate_every: 2, patience: 0, adam, ..RunConfig::default() };
        Run::new(config, 11, parameters)
    }

    const CONFIG: PairsConfig = PairsConfig { batch: 3 };

    #[test]
    fn mentions_without_a_right_candidate_teach_nothing_and_count_as_wrong() {
        let (config, parameters, tokenizer, questions) = made();
        let objective = Pairs::new(&config, CONFIG, &questions, 11);
        assert_eq!(objective.taught, [0, 1, 2, 4]);
        for step in 0..8 {
            let batch = objective.batch(step, &mut SplitMix64::new(1));
            assert_eq!((batch.parts.len(), batch.right.len()), (3, 3));
        }
        let scorer = PairScorer::new(&config, &parameters, &tokenizer).unwrap();
        assert!(questions.accuracy(&scorer).unwrap() <= 0.8);
        let mut nothing = questions.clone();
        nothing.mentions.iter_mut().for_each(|mention| mention.right = None);
        assert_eq!(nothing.accuracy(&scorer).unwrap(), 0.0);
        assert!(Pairs::new(&config, CONFIG, &nothing, 11).batch(0, &mut SplitMix64::new(1)).parts.is_empty());
        assert_eq!((best(&[1.0, 2.0, 2.0]), best(&[])), (Some(1), None));
    }

    #[test]
    fn training_finds_names_by_the_words_beside_a_mention() {
        let (config, parameters, tokenizer, questions) = made();
        let mut objective = Pairs::new(&config, CONFIG, &questions, 11).with_held_out(Some((&questions, &tokenizer)));
        let mut run = begin(parameters);
        let mut losses = Vec::new();
        run.train(&mut objective, &mut |_, progress| {
            losses.extend(match progress {
                Progress::Step { loss, .. } => Some(loss),
                Progress::Round { .. } => None,
            });
            Ok(())
        })
        .unwrap();
        let mean = |losses: &[f64]| losses.iter().sum::<f64>() / losses.len() as f64;
        assert!(mean(&losses[48..]) < 0.5 * mean(&losses[..12]), "{losses:?}");
        // Chance level is 0.33, and one of the five mentions has no correct candidate.
        assert!(objective.evaluate(&run.parameters).unwrap().unwrap() > 0.5);
    }

    #[test]
    fn a_run_that_was_killed_and_resumed_ends_with_the_same_weights_on_any_number_of_threads() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("checkpoint.safetensors");
        let (config, parameters, tokenizer, questions) = made();
        let new = || Pairs::new(&config, CONFIG, &questions, 11).with_held_out(Some((&questions, &tokenizer)));
        let mut whole = begin(parameters.clone());
        whole.train(&mut new(), &mut |_, _| Ok(())).unwrap();

        let mut killed = begin(parameters.clone());
        let stopped = killed.train(&mut new(), &mut |run, progress| match progress {
            Progress::Round { .. } => run.save(&path, "this"),
            // Inside a mining interval.
            Progress::Step { step: 33, .. } => Err(canonym_core::Error::cancelled("killed")),
            Progress::Step { .. } => Ok(()),
        });
        assert_eq!(stopped.unwrap_err().to_string(), "killed");
        let mut resumed = begin(parameters);
        resumed.resume(&path, "this").unwrap();
        assert_eq!(resumed.n_made, 30);
        let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
        pool.install(|| resumed.train(&mut new(), &mut |_, _| Ok(()))).unwrap();
        assert_eq!(resumed, whole);
    }
}
