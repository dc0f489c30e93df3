//! Metric learning on synonyms: pulls names of one concept together and pushes others apart. The objective of ResCNN (Lai et al. 2021).
//!
//! A batch consists of anchors, a random name of each anchor's concept, and hard negatives once the first mining is done. With corpus
//! mentions as anchors this is the published training; with the names of a knowledge base as anchors it is synonym pre-training.

use std::collections::BTreeMap;

use canonym_core::Result;
use serde::{Deserialize, Serialize};

use crate::autograd::Tape;
use crate::index::FlatIndex;
use crate::models::rescnn::infer::ResCnnEncoder;
use crate::models::rescnn::{ResCnnConfig, Tokens};
use crate::objectives::anchors::{Names, PART, accuracy_at_1, anchors_at, intersect};
use crate::tensor::parameters::Parameters;
use crate::tensor::random::SplitMix64;
use crate::train::losses::{MultiSimilarityConfig, multi_similarity};
use crate::train::{Losses, Objective, Outputs, Values};

/// How batches are sampled.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SynonymConfig {
    /// Anchors per batch; each adds one positive name.
    pub batch: usize,
    /// Hard negatives per anchor: the highest-ranked wrong names of the last mining.
    pub n_hard: usize,
    /// Number of names retrieved for mining.
    pub n_searched: usize,
    /// The loss.
    pub loss: MultiSimilarityConfig,
}

impl Default for SynonymConfig {
    fn default() -> SynonymConfig {
        SynonymConfig { batch: 256, n_hard: 0, n_searched: 20, loss: MultiSimilarityConfig::default() }
    }
}

/// The objective.
#[derive(Debug)]
pub struct Synonyms<'a> {
    model: &'a ResCnnConfig,
    config: SynonymConfig,
    unknown: u32,
    seed: u64,
    /// Queries.
    anchors: &'a Names,
    /// Names that are searched.
    names: &'a Names,
    /// Names of each concept.
    names_of: BTreeMap<u32, Vec<u32>>,
    /// Hard negatives of each anchor.
    hard: Vec<Vec<u32>>,
    /// Held-out anchors, and the names in which they are searched.
    held_out: Option<(&'a Names, &'a Names)>,
}

/// Output: the embedding of each name.
const NAMES: &str = "names";

/// The rows of one batch.
#[derive(Debug)]
pub struct SynonymsBatch {
    parts: Vec<Tokens>,
    labels: Vec<Vec<u32>>,
}

impl<'a> Synonyms<'a> {
    /// Creates the objective. Anchors whose concepts have no name contribute nothing and should be removed before.
    pub fn new(
        model: &'a ResCnnConfig,
        config: SynonymConfig,
        (anchors, names): (&'a Names, &'a Names),
        unknown: u32,
        seed: u64,
    ) -> Synonyms<'a> {
        let mut names_of: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for (row, concepts) in names.concepts.iter().enumerate() {
            concepts.iter().for_each(|concept| names_of.entry(*concept).or_default().push(row as u32));
        }
        // A batch contains no anchor twice, which keeps steps on few anchors cheap.
        let config = SynonymConfig { batch: config.batch.min(anchors.input_ids.len()).max(1), ..config };
        Synonyms { model, config, unknown, seed, anchors, names, names_of, hard: Vec::new(), held_out: None }
    }

    /// Evaluates accuracy@1 on held-out anchors.
    pub fn with_held_out(self, held_out: Option<(&'a Names, &'a Names)>) -> Synonyms<'a> {
        Synonyms { held_out, ..self }
    }
}

impl Objective for Synonyms<'_> {
    type Batch = SynonymsBatch;

    fn begin_interval(&mut self, parameters: &Parameters, _interval: u64) -> Result<()> {
        if self.config.n_hard == 0 {
            return Ok(());
        }
        let encoder = ResCnnEncoder::new(self.model, parameters, self.unknown)?;
        let index = FlatIndex::new(encoder.encode(&self.names.input_ids));
        let queries = encoder.encode(&self.anchors.input_ids);
        let found = index.search(&queries, self.config.n_searched);
        let wrong = |(anchor, hits): (usize, Vec<crate::index::Hit>)| {
            let own = &self.anchors.concepts[anchor];
            let wrong =
                hits.into_iter().map(|hit| hit.row).filter(|row| !intersect(own, &self.names.concepts[*row as usize]));
            wrong.take(self.config.n_hard).collect()
        };
        self.hard = found.into_iter().enumerate().map(wrong).collect();
        Ok(())
    }

    fn batch(&self, step: u64, rng: &mut SplitMix64) -> SynonymsBatch {
        let anchors = anchors_at(self.anchors.input_ids.len(), self.seed, step, self.config.batch);
        let mut input_ids: Vec<&[u32]> = Vec::new();
        let mut labels = Vec::new();
        for anchor in &anchors {
            input_ids.push(&self.anchors.input_ids[*anchor]);
            labels.push(self.anchors.concepts[*anchor].clone());
        }
        for anchor in &anchors {
            let concepts = &self.anchors.concepts[*anchor];
            let names: Vec<u32> =
                concepts.iter().filter_map(|concept| self.names_of.get(concept)).flatten().copied().collect();
            if names.is_empty() {
                continue;
            }
            let name = names[rng.below(names.len())] as usize;
            input_ids.push(&self.names.input_ids[name]);
            labels.push(self.names.concepts[name].clone());
        }
        for name in anchors.iter().filter_map(|anchor| self.hard.get(*anchor)).flatten() {
            input_ids.push(&self.names.input_ids[*name as usize]);
            labels.push(self.names.concepts[*name as usize].clone());
        }
        let pack = |names: &[&[u32]]| Tokens::pack(names.iter().copied(), self.model.max_length, self.unknown);
        // Padding goes to the longest name of the whole batch.
        let part = if self.model.pads { input_ids.len().max(1) } else { PART };
        SynonymsBatch { parts: input_ids.chunks(part).map(pack).collect(), labels }
    }

    fn n_parts(&self, batch: &SynonymsBatch) -> usize {
        batch.parts.len()
    }

    fn forward(
        &self,
        tape: &mut Tape<'_>,
        batch: &SynonymsBatch,
        part: usize,
        rng: &mut SplitMix64,
    ) -> Result<Outputs> {
        Ok(Outputs::of(NAMES, self.model.forward(tape, &batch.parts[part], Some(rng))?))
    }

    fn losses(&self, batch: &SynonymsBatch, values: &Values) -> Losses {
        Losses::of("multi-similarity", NAMES, multi_similarity(values.get(NAMES), &batch.labels, &self.config.loss))
    }

    fn evaluate(&self, parameters: &Parameters) -> Result<Option<f64>> {
        let Some((queries, names)) = self.held_out else { return Ok(None) };
        Ok(Some(accuracy_at_1(&ResCnnEncoder::new(self.model, parameters, self.unknown)?, queries, names)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::train::optimise::AdamConfig;
    use crate::train::{Progress, Run, RunConfig, Select};

    fn names() -> Names {
        let mut rng = SplitMix64::new(8);
        let mut names = Names::default();
        for concept in 0..30u32 {
            // The names of a concept share a wordpiece.
            for _ in 0..3 {
                names.input_ids.push(vec![concept, 30 + rng.below(10) as u32, 30 + rng.below(10) as u32]);
                names.concepts.push(vec![concept]);
            }
        }
        names
    }

    fn begin() -> Run {
        let mut parameters = Parameters::default();
        model().init(&mut parameters, 40, 8, &mut SplitMix64::new(6));
        let adam = AdamConfig { learning_rate: 5e-3, ..AdamConfig::default() };
        let config = RunConfig { n_steps: 24, mining_interval: 6, evaluate_every: 2, adam, ..RunConfig::default() };
        Run::new(RunConfig { select: Select::Best, ..config }, 11, parameters)
    }

    fn model() -> ResCnnConfig {
        ResCnnConfig { width: 12, n_filters: 5, hidden: 9, n_blocks: 1, ..Default::default() }
    }

    /// The losses of all steps, and the scores of the mining intervals that have one.
    fn train(run: &mut Run, n_hard: usize) -> (Vec<f64>, Vec<f64>) {
        let (model, names) = (model(), names());
        let config = SynonymConfig { batch: 20, n_hard, n_searched: 5, ..Default::default() };
        let mut objective =
            Synonyms::new(&model, config, (&names, &names), 0, 11).with_held_out(Some((&names, &names)));
        let (mut losses, mut scores) = (Vec::new(), Vec::new());
        run.train(&mut objective, &mut |_, progress| {
            match progress {
                Progress::Step { loss, .. } => losses.push(loss),
                Progress::Round { score, .. } => scores.extend(score),
            }
            Ok(())
        })
        .unwrap();
        (losses, scores)
    }

    #[test]
    fn training_brings_synonyms_together_on_any_number_of_threads() {
        let mut run = begin();
        // Every name finds itself from the start, so only the loss can improve.
        assert_eq!(train(&mut run, 2).1.len(), 2);
        let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
        let mut alone = begin();
        pool.install(|| train(&mut alone, 2));
        assert_eq!(alone, run);
        let (losses, _) = train(&mut begin(), 0);
        let mean = |losses: &[f64]| losses.iter().sum::<f64>() / losses.len() as f64;
        assert!(mean(&losses[18..]) < 0.95 * mean(&losses[..6]), "{losses:?}");
    }
}
