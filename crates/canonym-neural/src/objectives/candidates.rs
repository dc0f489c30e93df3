//! Marginal likelihood over retrieved candidates: the objective of BioSyn (Sung et al. 2020).
//!
//! The candidates of a query are the top results of a fixed sparse retrieval over character n-grams and of a dense retrieval that is
//! refreshed in each mining interval. A score is the inner product of the embeddings plus a learned weight times the inner product of the
//! TF-IDF vectors; the loss is `−ln Σ P` over the correct candidates, with P the softmax of the scores. Gradients flow through queries and
//! candidates. Queries without a correct candidate are skipped.

use canonym_core::Result;
use serde::{Deserialize, Serialize};

use crate::autograd::Tape;
use crate::index::FlatIndex;
use crate::models::rescnn::infer::ResCnnEncoder;
use crate::models::rescnn::{ResCnnConfig, Tokens};
use crate::objectives::anchors::{Names, PART, accuracy_at_1, anchors_at};
use crate::objectives::sparse::{Grams, SparseIndex};
use crate::tensor::matrix::{Matrix, dot};
use crate::tensor::parameters::Parameters;
use crate::tensor::random::SplitMix64;
use crate::tokenizer::Tokenizer;
use crate::train::losses::{marginal_likelihood, through_normalisation};
use crate::train::{Losses, Objective, Outputs, Values};

/// Name of the learned weight of the sparse score; not part of the model.
pub const SPARSE_WEIGHT: &str = "sparse.weight";

/// How candidates are retrieved and scored.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CandidateConfig {
    /// Queries per batch.
    pub batch: usize,
    /// Candidates per query.
    pub n_candidates: usize,
    /// Fraction of candidates from dense retrieval.
    pub dense_ratio: f32,
    /// Initial weight of the sparse score.
    pub sparse_weight: f32,
    /// Peak learning rate of that weight.
    pub sparse_rate: f32,
    /// If set, scores are cosines times this factor, which is closer to the search at inference; otherwise inner products, as published.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cosine_scale: Option<f32>,
}

impl Default for CandidateConfig {
    fn default() -> CandidateConfig {
        CandidateConfig {
            batch: 16,
            n_candidates: 20,
            dense_ratio: 0.5,
            sparse_weight: 0.0,
            sparse_rate: 0.01,
            cosine_scale: None,
        }
    }
}

/// The candidates of one query.
#[derive(Debug, Clone, Default, PartialEq)]
struct CandidateSet {
    /// Rows of the name table.
    rows: Vec<u32>,
    /// Sparse score of each candidate.
    sparse: Vec<f32>,
    /// Whether each candidate has all concepts of the query.
    right: Vec<bool>,
}

/// The objective.
#[derive(Debug)]
pub struct Candidates<'a> {
    model: &'a ResCnnConfig,
    config: CandidateConfig,
    unknown: u32,
    seed: u64,
    /// Queries.
    anchors: &'a Names,
    /// Names that are searched.
    names: &'a Names,
    index: SparseIndex,
    /// Sparse vector and nearest names of each anchor.
    sparse: Vec<(Grams, Vec<u32>)>,
    candidates: Vec<CandidateSet>,
    held_out: Option<(&'a Names, &'a Names)>,
}

/// Output: the embeddings of queries and candidates.
const EMBEDDINGS: &str = "embeddings";

/// Output: the weight of the sparse score.
const SPARSE: &str = "sparse-weight";

/// A batch: queries, followed by the candidates of each.
#[derive(Debug)]
pub struct CandidatesBatch {
    parts: Vec<Tokens>,
    sparse: Vec<Vec<f32>>,
    right: Vec<Vec<bool>>,
}

impl<'a> Candidates<'a> {
    /// Creates the objective. Sparse vectors are computed from the text reconstructed from wordpieces, so unknown words do not count.
    pub fn new(
        model: &'a ResCnnConfig,
        config: CandidateConfig,
        anchors: &'a Names,
        names: &'a Names,
        tokenizer: &Tokenizer,
        seed: u64,
    ) -> Candidates<'a> {
        let text = |rows: &Vec<u32>| tokenizer.text(rows);
        let index = SparseIndex::new(&names.input_ids.iter().map(text).collect::<Vec<_>>());
        let vectors: Vec<Grams> = anchors.input_ids.iter().map(|rows| index.vector(&text(rows))).collect();
        let n_dense = (config.n_candidates as f32 * config.dense_ratio) as usize;
        let nearest = index.search(&vectors, config.n_candidates.saturating_sub(n_dense));
        let config = CandidateConfig { batch: config.batch.min(anchors.input_ids.len()).max(1), ..config };
        let sparse = vectors.into_iter().zip(nearest).collect();
        let unknown = tokenizer.unknown;
        Candidates {
            model,
            config,
            unknown,
            seed,
            anchors,
            names,
            index,
            sparse,
            candidates: Vec::new(),
            held_out: None,
        }
    }

    /// Evaluates accuracy@1 on held-out anchors, by cosine alone as in inference.
    pub fn with_held_out(self, held_out: Option<(&'a Names, &'a Names)>) -> Candidates<'a> {
        Candidates { held_out, ..self }
    }

    /// Adds the weight of the sparse score, with its own learning rate relative to `learning_rate`.
    pub fn add_weight(&self, parameters: &mut Parameters, learning_rate: f32) -> Result<()> {
        parameters.add(SPARSE_WEIGHT, Matrix::new(1, 1, vec![self.config.sparse_weight]));
        let factor = if learning_rate > 0.0 { self.config.sparse_rate / learning_rate } else { 0.0 };
        parameters.lr_multiplier(SPARSE_WEIGHT, factor)
    }

    /// Candidates of an anchor: the sparse ones first, then dense ones that are not among them.
    fn candidates(&self, anchor: usize, dense: impl Iterator<Item = u32>) -> CandidateSet {
        let (grams, sparse) = &self.sparse[anchor];
        let mut rows = sparse.clone();
        for row in dense {
            if rows.len() == self.config.n_candidates {
                break;
            }
            if !sparse.contains(&row) {
                rows.push(row);
            }
        }
        let gold = &self.anchors.concepts[anchor];
        let right = |row: &u32| gold.iter().all(|concept| self.names.concepts[*row as usize].contains(concept));
        CandidateSet {
            sparse: rows.iter().map(|row| self.index.score(grams, *row)).collect(),
            right: rows.iter().map(right).collect(),
            rows,
        }
    }
}

impl Objective for Candidates<'_> {
    type Batch = CandidatesBatch;

    fn begin_interval(&mut self, parameters: &Parameters, _interval: u64) -> Result<()> {
        let encoder = ResCnnEncoder::new(self.model, parameters, self.unknown)?;
        let names = encoder.encode(&self.names.input_ids);
        let index = match self.config.cosine_scale {
            Some(_) => FlatIndex::new(names),
            None => FlatIndex::by_inner_product(names),
        };
        let dense = index.search(&encoder.encode(&self.anchors.input_ids), self.config.n_candidates);
        let one = |(anchor, hits): (usize, Vec<crate::index::Hit>)| {
            self.candidates(anchor, hits.into_iter().map(|hit| hit.row))
        };
        self.candidates = dense.into_iter().enumerate().map(one).collect();
        Ok(())
    }

    fn batch(&self, step: u64, _rng: &mut SplitMix64) -> CandidatesBatch {
        let anchors = anchors_at(self.anchors.input_ids.len(), self.seed, step, self.config.batch);
        let kept: Vec<usize> =
            anchors.into_iter().filter(|anchor| self.candidates[*anchor].right.contains(&true)).collect();
        let mut input_ids: Vec<&[u32]> = kept.iter().map(|anchor| self.anchors.input_ids[*anchor].as_slice()).collect();
        for anchor in &kept {
            input_ids
                .extend(self.candidates[*anchor].rows.iter().map(|row| self.names.input_ids[*row as usize].as_slice()));
        }
        let pack = |names: &[&[u32]]| Tokens::pack(names.iter().copied(), self.model.max_length, self.unknown);
        // Padding goes to the longest name of the whole batch.
        let part = if self.model.pads { input_ids.len().max(1) } else { PART };
        CandidatesBatch {
            parts: input_ids.chunks(part).map(pack).collect(),
            sparse: kept.iter().map(|anchor| self.candidates[*anchor].sparse.clone()).collect(),
            right: kept.iter().map(|anchor| self.candidates[*anchor].right.clone()).collect(),
        }
    }

    fn n_parts(&self, batch: &CandidatesBatch) -> usize {
        batch.parts.len()
    }

    fn forward(
        &self,
        tape: &mut Tape<'_>,
        batch: &CandidatesBatch,
        part: usize,
        rng: &mut SplitMix64,
    ) -> Result<Outputs> {
        let embeddings = self.model.forward(tape, &batch.parts[part], Some(rng))?;
        let outputs = Outputs::of(EMBEDDINGS, embeddings);
        // The weight is the same in all parts; its gradient goes through the first.
        Ok(if part == 0 { outputs.with(SPARSE, tape.parameter(SPARSE_WEIGHT)?) } else { outputs })
    }

    fn losses(&self, batch: &CandidatesBatch, values: &Values) -> Losses {
        ranking_loss(batch, values, self.config.cosine_scale)
    }

    fn evaluate(&self, parameters: &Parameters) -> Result<Option<f64>> {
        let Some((queries, names)) = self.held_out else { return Ok(None) };
        Ok(Some(accuracy_at_1(&ResCnnEncoder::new(self.model, parameters, self.unknown)?, queries, names)))
    }
}

/// Marginal likelihood of a batch, with the gradients of the embeddings and of the sparse weight.
fn ranking_loss(batch: &CandidatesBatch, values: &Values, cosine_scale: Option<f32>) -> Losses {
    let (n_queries, n_candidates) = (batch.right.len(), batch.right.first().map_or(0, Vec::len));
    let mut losses = Losses::default();
    if n_queries == 0 {
        return losses;
    }
    let embeddings = values.get(EMBEDDINGS);
    let sparse_weight = values.get(SPARSE).values[0];
    let mut compared = embeddings.clone();
    if cosine_scale.is_some() {
        compared.normalise_rows();
    }
    let scale = cosine_scale.unwrap_or(1.0);
    let row_of = |query: usize, candidate: usize| n_queries + query * n_candidates + candidate;
    let mut scores = Matrix::zeros(n_queries, n_candidates);
    for query in 0..n_queries {
        for (candidate, score) in scores.row_mut(query).iter_mut().enumerate() {
            let dense = dot(compared.row(query), compared.row(row_of(query, candidate)));
            *score = scale * dense + sparse_weight * batch.sparse[query][candidate];
        }
    }
    let loss = marginal_likelihood(&scores, &batch.right);
    losses.add("marginal-likelihood", loss.value);
    let gradient = losses.gradient_of(EMBEDDINGS, values);
    let mut of_weight = 0.0;
    for query in 0..n_queries {
        for (candidate, slope) in loss.gradient.row(query).iter().enumerate() {
            of_weight += slope * batch.sparse[query][candidate];
            for (to, from) in [(query, row_of(query, candidate)), (row_of(query, candidate), query)] {
                let add = |(to, from): (&mut f32, &f32)| *to += slope * from;
                gradient.row_mut(to).iter_mut().zip(compared.row(from)).for_each(add);
            }
        }
    }
    if let Some(scale) = cosine_scale {
        through_normalisation(gradient, embeddings, &compared, scale);
    }
    losses.gradient_of(SPARSE, values).values[0] = of_weight;
    losses
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tensor::random;
    use crate::train::objective::tests::check_gradients;
    use crate::train::optimise::{AdamConfig, Schedule};
    use crate::train::{Progress, Run, RunConfig};

    /// Shapes and their synonyms, which share no word with the shape's name.
    const SHAPES: [(&str, [&str; 3]); 6] = [
        ("circle", ["ring thing", "wheel", "round ring"]),
        ("square", ["box face", "tile", "even box"]),
        ("triangle", ["wedge roof", "tent side", "pointed wedge"]),
        ("cube", ["dice", "block", "sugar block"]),
        ("sphere", ["ball", "globe", "marble ball"]),
        ("cone", ["funnel", "party hat", "hat of sand"]),
    ];

    struct Made {
        tokenizer: Tokenizer,
        anchors: Names,
        names: Names,
    }

    fn made() -> Made {
        let texts: Vec<&str> =
            SHAPES.iter().flat_map(|(name, phrases)| std::iter::once(*name).chain(*phrases)).collect();
        let tokenizer = Tokenizer::learn(texts.iter().copied().cycle().take(2 * texts.len()), 90);
        let mut made = Made { anchors: Names::default(), names: Names::default(), tokenizer };
        for (concept, (name, phrases)) in SHAPES.iter().enumerate() {
            made.names.input_ids.push(made.tokenizer.input_ids(name));
            made.names.concepts.push(vec![concept as u32]);
            for phrase in phrases {
                made.anchors.input_ids.push(made.tokenizer.input_ids(phrase));
                made.anchors.concepts.push(vec![concept as u32]);
            }
        }
        made
    }

    fn model() -> ResCnnConfig {
        ResCnnConfig { width: 12, n_filters: 5, hidden: 9, n_blocks: 1, ..Default::default() }
    }

    const CONFIG: CandidateConfig = CandidateConfig {
        batch: 6,
        n_candidates: 4,
        dense_ratio: 0.5,
        sparse_weight: 0.0,
        sparse_rate: 0.01,
        cosine_scale: None,
    };

    fn begin(objective: &Candidates<'_>, tokenizer: &Tokenizer) -> Run {
        let adam = AdamConfig { learning_rate: 5e-3, schedule: Schedule::Constant, ..Default::default() };
        let config =
            RunConfig { n_steps: 60, mining_interval: 6, evaluate_every: 2, patience: 0, adam, ..RunConfig::default() };
        let mut parameters = Parameters::default();
        model().init(&mut parameters, tokenizer.len(), 8, &mut SplitMix64::new(6));
        objective.add_weight(&mut parameters, adam.learning_rate).unwrap();
        Run::new(config, 11, parameters)
    }

    #[test]
    fn candidates_are_the_sparse_ones_and_then_new_ones_of_the_dense_search() {
        let made = made();
        let model = model();
        let objective = Candidates::new(&model, CONFIG, &made.anchors, &made.names, &made.tokenizer, 11);
        for anchor in 0..made.anchors.input_ids.len() {
            let sparse = &objective.sparse[anchor].1;
            assert!(sparse.len() <= 2);
            let found = objective.candidates(anchor, [0, 1, 2, 3, 4, 5].into_iter());
            assert_eq!((found.rows.len(), &found.rows[..sparse.len()]), (4, sparse.as_slice()));
            let mut rows = found.rows.clone();
            rows.sort_unstable();
            rows.dedup();
            assert_eq!(rows.len(), 4);
            for (row, right) in found.rows.iter().zip(&found.right) {
                assert_eq!(*right, made.names.concepts[*row as usize] == made.anchors.concepts[anchor]);
            }
        }
        // A query with two concepts is answered only by names that have both.
        let anchors = Names { input_ids: vec![made.tokenizer.input_ids("ball")], concepts: vec![vec![4, 5]] };
        let names = Names { concepts: vec![vec![4], vec![4, 5], vec![4, 5, 1], vec![1]], ..made.names.clone() };
        let names = Names { input_ids: names.input_ids[..4].to_vec(), ..names };
        let objective = Candidates::new(&model, CONFIG, &anchors, &names, &made.tokenizer, 11);
        let found = objective.candidates(0, 0..4);
        let right: Vec<u32> =
            found.rows.iter().zip(&found.right).filter(|(_, right)| **right).map(|(row, _)| *row).collect();
        assert_eq!(right.iter().copied().collect::<std::collections::BTreeSet<_>>(), [1, 2].into());
    }

    #[test]
    fn the_gradient_of_vectors_and_of_the_sparse_weight_is_that_of_differences() {
        let mut rng = SplitMix64::new(3);
        let batch = CandidatesBatch {
            parts: Vec::new(),
            sparse: vec![vec![0.9, 0.1, 0.4], vec![0.2, 0.8, 0.0]],
            right: vec![vec![true, false, true], vec![false, true, false]],
        };
        // Two queries with three candidates each.
        let embeddings = Matrix::new(8, 4, (0..32).map(|_| random::normal(&mut rng)).collect());
        let values = Values::of([(EMBEDDINGS, embeddings), (SPARSE, Matrix::new(1, 1, vec![0.7]))]);
        for cosine_scale in [None, Some(3.0)] {
            let losses = |values: &Values| ranking_loss(&batch, values, cosine_scale);
            assert!(losses(&values).total() > 0.0);
            check_gradients(losses, &values, 1, (1e-2, 2e-3));
        }
        let nothing = CandidatesBatch { parts: Vec::new(), sparse: Vec::new(), right: Vec::new() };
        assert_eq!(ranking_loss(&nothing, &Values::default(), None).total(), 0.0);
    }

    #[test]
    fn training_finds_the_names_of_phrases_and_learns_what_the_sparse_side_is_worth() {
        let made = made();
        let model = model();
        for cosine_scale in [None, Some(10.0)] {
            let config = CandidateConfig { n_candidates: 6, cosine_scale, ..CONFIG };
            let both = (&made.anchors, &made.names);
            let mut objective = Candidates::new(&model, config, &made.anchors, &made.names, &made.tokenizer, 11)
                .with_held_out(Some(both));
            let mut run = begin(&objective, &made.tokenizer);
            let before = objective.evaluate(&run.parameters).unwrap().unwrap();
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
            assert!(mean(&losses[48..]) < 0.7 * mean(&losses[..12]), "{losses:?}");
            let after = objective.evaluate(&run.parameters).unwrap().unwrap();
            assert!(after > before && after > 0.6, "{before} {after}");
            let weight = run.parameters.get(SPARSE_WEIGHT).unwrap().values[0];
            assert!(weight != 0.0 && weight.abs() <= 0.6, "{weight}");
        }
    }

    #[test]
    fn a_run_that_was_killed_and_resumed_ends_with_the_same_weights_on_any_number_of_threads() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("checkpoint.safetensors");
        let made = made();
        let model = model();
        let new = || Candidates::new(&model, CONFIG, &made.anchors, &made.names, &made.tokenizer, 11);
        let mut whole = begin(&new(), &made.tokenizer);
        whole.train(&mut new(), &mut |_, _| Ok(())).unwrap();

        let mut killed = begin(&new(), &made.tokenizer);
        let stopped = killed.train(&mut new(), &mut |run, progress| match progress {
            Progress::Round { .. } => run.save(&path, "this"),
            // Inside a mining interval.
            Progress::Step { step: 33, .. } => Err(canonym_core::Error::cancelled("killed")),
            Progress::Step { .. } => Ok(()),
        });
        assert_eq!(stopped.unwrap_err().to_string(), "killed");
        let mut resumed = begin(&new(), &made.tokenizer);
        resumed.resume(&path, "this").unwrap();
        assert_eq!(resumed.n_made, 30);
        let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
        pool.install(|| resumed.train(&mut new(), &mut |_, _| Ok(()))).unwrap();
        assert_eq!(resumed, whole);
    }
}
