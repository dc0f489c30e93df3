//! The right names among the candidates of each query become likely: the objective of BioSyn (Sung et al. 2020).
//!
//! The candidates of a query are the best of a sparse search by characters, which stay the same, and the best of a dense search, which is
//! made again before each round. A score is the inner product of both vectors plus a learned weight times the inner product of their
//! TF-IDF vectors; the loss is `−ln Σ P` over the candidates that are right, P the share of a candidate by softmax of scores. Gradients go
//! through queries and candidates. Queries without a right candidate teach nothing and are left out.

use canonym::Result;
use serde::{Deserialize, Serialize};

use crate::dense::FlatIndex;
use crate::encoder::ResCnnEncoder;
use crate::matrix::{Matrix, dot};
use crate::models::rescnn::{ResCnnConfig, Tokens};
use crate::parameters::Parameters;
use crate::random::SplitMix64;
use crate::tape::{Tape, Var};
use crate::train::Objective;
use crate::train::anchors::{Names, PART, accuracy_at_1, anchors_at};
use crate::train::losses::{Loss, marginal_likelihood, through_normalisation};
use crate::train::sparse::{Grams, SparseIndex};
use crate::wordpiece::Pieces;

/// The name of the learned weight of the sparse side; it is no part of the model.
pub const SPARSE_WEIGHT: &str = "sparse.weight";

/// How candidates are chosen and compared.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CandidateConfig {
    /// Queries of a batch.
    pub batch: usize,
    /// Candidates of a query.
    pub n_candidates: usize,
    /// The share of candidates that come from the dense search.
    pub dense_ratio: f32,
    /// What the sparse side weighs at first.
    pub sparse_weight: f32,
    /// The size of a step of that weight at its greatest.
    pub sparse_rate: f32,
    /// Where it is given, vectors are compared by their cosine times this, which is nearer to how they are searched afterwards; else by
    /// their inner product, as published.
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
struct Found {
    /// Rows of names.
    rows: Vec<u32>,
    /// The sparse score of each.
    sparse: Vec<f32>,
    /// Whether each means all that the query means.
    right: Vec<bool>,
}

/// The objective.
#[derive(Debug)]
pub struct Candidates<'a> {
    model: &'a ResCnnConfig,
    config: CandidateConfig,
    unknown: u32,
    seed: u64,
    /// What is searched for.
    anchors: &'a Names,
    /// What is found.
    names: &'a Names,
    index: SparseIndex,
    /// The sparse vector of each anchor, and the names that it is nearest to.
    sparse: Vec<(Grams, Vec<u32>)>,
    found: Vec<Found>,
    held_out: Option<(&'a Names, &'a Names)>,
}

/// The rows of one batch: queries, then the candidates of each.
#[derive(Debug)]
pub struct Batch {
    parts: Vec<Tokens>,
    sparse: Vec<Vec<f32>>,
    right: Vec<Vec<bool>>,
}

impl<'a> Candidates<'a> {
    /// An objective over anchors and names. The sparse side sees the text that `pieces` make; a word that the vocabulary cannot divide is
    /// nothing to it.
    pub fn new(
        model: &'a ResCnnConfig,
        config: CandidateConfig,
        (anchors, names): (&'a Names, &'a Names),
        pieces: &Pieces,
        seed: u64,
    ) -> Candidates<'a> {
        let text = |rows: &Vec<u32>| pieces.text(rows);
        let index = SparseIndex::new(&names.pieces.iter().map(text).collect::<Vec<_>>());
        let vectors: Vec<Grams> = anchors.pieces.iter().map(|rows| index.vector(&text(rows))).collect();
        let n_dense = (config.n_candidates as f32 * config.dense_ratio) as usize;
        let nearest = index.search(&vectors, config.n_candidates.saturating_sub(n_dense));
        let config = CandidateConfig { batch: config.batch.min(anchors.pieces.len()).max(1), ..config };
        let sparse = vectors.into_iter().zip(nearest).collect();
        let unknown = pieces.unknown;
        Candidates { model, config, unknown, seed, anchors, names, index, sparse, found: Vec::new(), held_out: None }
    }

    /// Measures accuracy@1 on held-out anchors when the run is evaluated, by cosine alone, as vectors are searched afterwards.
    pub fn with_held_out(self, held_out: Option<(&'a Names, &'a Names)>) -> Candidates<'a> {
        Candidates { held_out, ..self }
    }

    /// Adds the weight of the sparse side, whose steps have a size of their own beside those of `learning_rate`.
    pub fn add_weight(&self, parameters: &mut Parameters, learning_rate: f32) -> Result<()> {
        parameters.add(SPARSE_WEIGHT, Matrix::new(1, 1, vec![self.config.sparse_weight]));
        let factor = if learning_rate > 0.0 { self.config.sparse_rate / learning_rate } else { 0.0 };
        parameters.pace(SPARSE_WEIGHT, factor)
    }

    /// The candidates of an anchor: those of the sparse search first, then those of the dense one that are not among them.
    fn candidates(&self, anchor: usize, dense: impl Iterator<Item = u32>) -> Found {
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
        Found {
            sparse: rows.iter().map(|row| self.index.score(grams, *row)).collect(),
            right: rows.iter().map(right).collect(),
            rows,
        }
    }
}

impl Objective for Candidates<'_> {
    type Batch = Batch;

    fn begin_round(&mut self, parameters: &Parameters, _round: u64) -> Result<()> {
        let encoder = ResCnnEncoder::new(self.model, parameters, self.unknown)?;
        let names = encoder.encode(&self.names.pieces);
        let index = match self.config.cosine_scale {
            Some(_) => FlatIndex::new(names),
            None => FlatIndex::by_inner_product(names),
        };
        let dense = index.search(&encoder.encode(&self.anchors.pieces), self.config.n_candidates);
        let one = |(anchor, hits): (usize, Vec<crate::dense::Hit>)| {
            self.candidates(anchor, hits.into_iter().map(|hit| hit.row))
        };
        self.found = dense.into_iter().enumerate().map(one).collect();
        Ok(())
    }

    fn batch(&self, step: u64, _rng: &mut SplitMix64) -> Batch {
        let anchors = anchors_at(self.anchors.pieces.len(), self.seed, step, self.config.batch);
        let kept: Vec<usize> = anchors.into_iter().filter(|anchor| self.found[*anchor].right.contains(&true)).collect();
        let mut pieces: Vec<&[u32]> = kept.iter().map(|anchor| self.anchors.pieces[*anchor].as_slice()).collect();
        for anchor in &kept {
            pieces.extend(self.found[*anchor].rows.iter().map(|row| self.names.pieces[*row as usize].as_slice()));
        }
        let pack = |names: &[&[u32]]| Tokens::pack(names.iter().copied(), self.model.max_length, self.unknown);
        // What is filled up is filled up to the longest of the whole batch.
        let part = if self.model.pads { pieces.len().max(1) } else { PART };
        Batch {
            parts: pieces.chunks(part).map(pack).collect(),
            sparse: kept.iter().map(|anchor| self.found[*anchor].sparse.clone()).collect(),
            right: kept.iter().map(|anchor| self.found[*anchor].right.clone()).collect(),
        }
    }

    fn n_parts(&self, batch: &Batch) -> usize {
        batch.parts.len()
    }

    /// Vectors, and beside each the weight of the sparse side.
    fn forward(&self, tape: &mut Tape<'_>, batch: &Batch, part: usize, rng: &mut SplitMix64) -> Result<Var> {
        let tokens = &batch.parts[part];
        let vectors = self.model.forward(tape, tokens, Some(rng))?;
        let weight = tape.parameter(SPARSE_WEIGHT)?;
        let weights = tape.gather(weight, vec![0; tokens.segments.len()]);
        Ok(tape.concat(&[vectors, weights]))
    }

    fn loss(&self, batch: &Batch, values: &Matrix) -> Loss {
        score_and_judge(batch, values, self.config.cosine_scale)
    }

    fn evaluate(&self, parameters: &Parameters) -> Result<Option<f64>> {
        let Some((queries, names)) = self.held_out else { return Ok(None) };
        Ok(Some(accuracy_at_1(&ResCnnEncoder::new(self.model, parameters, self.unknown)?, queries, names)))
    }
}

/// The marginal likelihood of a batch, and the gradient of its vectors and of the weight in their last column.
fn score_and_judge(batch: &Batch, values: &Matrix, cosine_scale: Option<f32>) -> Loss {
    let (n_queries, n_candidates) = (batch.right.len(), batch.right.first().map_or(0, Vec::len));
    if n_queries == 0 {
        return Loss { value: 0.0, gradient: Matrix::zeros(values.n_rows, values.n_cols) };
    }
    let dim = values.n_cols - 1;
    let sparse_weight = values.row(0)[dim];
    let flat = values.values.chunks_exact(values.n_cols).flat_map(|row| row[..dim].iter().copied()).collect();
    let vectors = Matrix::new(values.n_rows, dim, flat);
    let mut compared = vectors.clone();
    if cosine_scale.is_some() {
        compared.normalise_rows();
    }
    let scale = cosine_scale.unwrap_or(1.0);
    let row_of = |query: usize, place: usize| n_queries + query * n_candidates + place;
    let mut scores = Matrix::zeros(n_queries, n_candidates);
    for query in 0..n_queries {
        for (place, score) in scores.row_mut(query).iter_mut().enumerate() {
            let dense = dot(compared.row(query), compared.row(row_of(query, place)));
            *score = scale * dense + sparse_weight * batch.sparse[query][place];
        }
    }
    let loss = marginal_likelihood(&scores, &batch.right);
    let mut gradient = Matrix::zeros(values.n_rows, dim);
    let mut of_weight = 0.0;
    for query in 0..n_queries {
        for (place, slope) in loss.gradient.row(query).iter().enumerate() {
            of_weight += slope * batch.sparse[query][place];
            for (to, from) in [(query, row_of(query, place)), (row_of(query, place), query)] {
                let add = |(to, from): (&mut f32, &f32)| *to += slope * from;
                gradient.row_mut(to).iter_mut().zip(compared.row(from)).for_each(add);
            }
        }
    }
    if let Some(scale) = cosine_scale {
        through_normalisation(&mut gradient, &vectors, &compared, scale);
    }
    let mut with_weight = Matrix::zeros(values.n_rows, values.n_cols);
    (0..values.n_rows).for_each(|row| with_weight.row_mut(row)[..dim].copy_from_slice(gradient.row(row)));
    // The weight stands beside every vector; its whole gradient goes through the first.
    with_weight.row_mut(0)[dim] = of_weight;
    Loss { value: loss.value, gradient: with_weight }
}
