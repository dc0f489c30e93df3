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

    fn begin_round(&mut self, parameters: &Parameters, _round: u64) -> Result<()> {
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
