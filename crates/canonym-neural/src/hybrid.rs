//! Lexical and dense evidence together: the candidates of both, one score, one calibrated probability.
//!
//! BioSyn (Sung et al. 2020) adds a sparse score to a dense one by a learned weight. Here the sparse side is the lexical linker, whose score is
//! a sum over features of words; the dense side adds the cosine of the nearest name of a concept and its lead over other concepts.

use std::collections::HashMap;
use std::sync::Arc;

use canonym::index::grams::GramScratch;
use canonym::kb::subset::{Subset, View};
use canonym::kb::{ConceptId, FormId, KnowledgeBase};
use canonym::link::lexical::{LinkConfig, Scored, best_of_each_concept, score_name_and};
use canonym::link::model::{Calibration, LexicalModel};
use canonym::link::{Candidate, Link, Linker, Marked};
use canonym::text::normalise::fold;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::dense::FlatIndex;
use crate::encoder::ResCnnEncoder;
use crate::matrix::{Matrix, dot};
use crate::train::losses::marginal_likelihood;
use crate::train::optimise::AdamConfig;
use crate::wordpiece::Pieces;

/// Forms that the dense search gives.
const N_DENSE: usize = 20;

/// Names that are linked together.
const BATCH: usize = 4096;

/// What the evidence weighs.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fusion {
    /// The weight of the lexical score.
    pub lexical: f32,
    /// The weight of the cosine of the best name of a concept.
    pub cosine: f32,
    /// The weight of how far that cosine is above or below the best of all other concepts.
    pub lead: f32,
    /// From scores to probabilities.
    pub calibration: Calibration,
}

impl Fusion {
    /// Dense evidence alone.
    pub const DENSE: Fusion = Fusion::of(0.0, 1.0, 0.0);
    /// Lexical evidence alone.
    pub const LEXICAL: Fusion = Fusion::of(1.0, 0.0, 0.0);

    const fn of(lexical: f32, cosine: f32, lead: f32) -> Fusion {
        Fusion { lexical, cosine, lead, calibration: Calibration { score: 1.0, lead: 0.0, offset: 0.0 } }
    }

    fn score(&self, evidence: &Evidence) -> f32 {
        self.lexical * evidence.scored.score + self.cosine * evidence.cosine + self.lead * evidence.lead
    }
}

/// A candidate concept and what speaks for it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Evidence {
    /// Its best name by the lexical score.
    pub scored: Scored,
    /// The greatest cosine of its compared names.
    pub cosine: f32,
    /// How far that is above or below the best of all other concepts.
    pub lead: f32,
}

/// The dense side: how names become vectors.
#[derive(Debug)]
pub struct NameEncoder {
    /// Divides names.
    pub pieces: Pieces,
    /// Makes vectors.
    pub encoder: ResCnnEncoder,
}

impl NameEncoder {
    /// The vectors of names, which are folded first.
    pub fn encode<T: AsRef<str> + Sync>(&self, names: &[T]) -> Matrix {
        let rows: Vec<Vec<u32>> = names.par_iter().map(|name| self.pieces.rows(&fold(name.as_ref()))).collect();
        self.encoder.encode(&rows)
    }

    /// The vectors of the forms of a knowledge base, in order.
    pub fn encode_forms(&self, kb: &KnowledgeBase) -> Matrix {
        let forms: Vec<&str> = (0..kb.n_forms()).map(|form| kb.forms().get(form)).collect();
        let rows: Vec<Vec<u32>> = forms.par_iter().map(|form| self.pieces.rows(form)).collect();
        self.encoder.encode(&rows)
    }
}

/// Links names by words and vectors.
#[derive(Debug)]
pub struct HybridLinker {
    kb: Arc<KnowledgeBase>,
    ranking: LexicalModel,
    names: Arc<NameEncoder>,
    index: Arc<FlatIndex>,
    fusion: Fusion,
    config: LinkConfig,
    subset: Option<Arc<Subset>>,
}

impl HybridLinker {
    /// A linker to the concepts of `kb`; the rows of `index` are the vectors of its forms.
    ///
    /// # Panics
    /// If the index has not as many rows as the knowledge base has forms.
    pub fn new(
        kb: Arc<KnowledgeBase>,
        (names, index): (Arc<NameEncoder>, Arc<FlatIndex>),
        (ranking, fusion): (LexicalModel, Fusion),
        config: LinkConfig,
    ) -> HybridLinker {
        assert_eq!(index.rows().n_rows, kb.n_forms(), "a vector for each form");
        HybridLinker { kb, ranking, names, index, fusion, config, subset: None }
    }

    /// The same linker, which gives no concept outside of `subset`; all where `None`.
    #[must_use]
    pub fn within(self, subset: Option<Arc<Subset>>) -> HybridLinker {
        HybridLinker { subset, ..self }
    }

    /// Links names without context, in order. A name that comes again is looked up once.
    pub fn link_names<T: AsRef<str> + Sync>(&self, names: &[T]) -> Vec<Link> {
        let mut row_of: HashMap<&str, usize> = HashMap::with_capacity(names.len());
        let mut distinct: Vec<&str> = Vec::with_capacity(names.len());
        for name in names.iter().map(AsRef::as_ref) {
            row_of.entry(name).or_insert_with(|| {
                distinct.push(name);
                distinct.len() - 1
            });
        }
        let links: Vec<Link> = self.evidence(&distinct).into_par_iter().map(|evidence| self.decide(evidence)).collect();
        names.iter().map(|name| links[row_of[name.as_ref()]].clone()).collect()
    }

    /// The candidates of each name, in the order of concepts.
    pub fn evidence<T: AsRef<str> + Sync>(&self, names: &[T]) -> Vec<Vec<Evidence>> {
        let mut all = Vec::with_capacity(names.len());
        for names in names.chunks(BATCH) {
            let mut vectors = self.names.encode(names);
            vectors.normalise_rows();
            let found = self.index.search(&vectors, N_DENSE);
            let one = |scratch: &mut GramScratch, row: usize| {
                let forms: Vec<FormId> = found[row].iter().map(|hit| FormId(hit.row)).collect();
                self.compare(names[row].as_ref(), vectors.row(row), &forms, scratch)
            };
            all.par_extend((0..names.len()).into_par_iter().map_init(GramScratch::default, one));
        }
        all
    }

    fn compare(&self, name: &str, vector: &[f32], forms: &[FormId], scratch: &mut GramScratch) -> Vec<Evidence> {
        let view = View { kb: &self.kb, subset: self.subset.as_deref() };
        let mut scored = score_name_and(view, &self.ranking, name, forms, scratch);
        let mut cosine_of: HashMap<FormId, f32> = HashMap::new();
        let mut best: HashMap<ConceptId, f32> = HashMap::new();
        for one in &scored {
            let form = self.kb.form_of(one.name);
            let cosine = *cosine_of.entry(form).or_insert_with(|| dot(vector, self.index.rows().row(form.0 as usize)));
            let best = best.entry(one.concept).or_insert(f32::NEG_INFINITY);
            *best = best.max(cosine);
        }
        best_of_each_concept(&mut scored);
        // The best of all, and the best of those that are not of its concept.
        let mut order: Vec<(f32, ConceptId)> = best.iter().map(|(concept, cosine)| (*cosine, *concept)).collect();
        order.sort_by(|left, right| right.0.total_cmp(&left.0).then(left.1.cmp(&right.1)));
        let lead = |concept: ConceptId, cosine: f32| {
            let other = order.iter().take(2).find(|(_, other)| *other != concept);
            other.map_or(0.0, |(other, _)| cosine - other)
        };
        let evidence = |scored: Scored| {
            let cosine = best[&scored.concept];
            Evidence { scored, cosine, lead: lead(scored.concept, cosine) }
        };
        scored.into_iter().map(evidence).collect()
    }

    /// The link that evidence makes.
    fn decide(&self, evidence: Vec<Evidence>) -> Link {
        let mut ranked: Vec<(f32, Scored)> =
            evidence.iter().map(|evidence| (self.fusion.score(evidence), evidence.scored)).collect();
        ranked.sort_by(|left, right| right.0.total_cmp(&left.0).then(left.1.concept.cmp(&right.1.concept)));
        let top = ranked.first().map_or(0.0, |first| first.0);
        let next = ranked.get(1).map_or(top - 10.0, |second| second.0);
        let candidate = |(rank, (score, scored)): (usize, &(f32, Scored))| {
            let lead = if rank == 0 { top - next } else { score - top };
            let probability = self.fusion.calibration.probability(*score, lead);
            Candidate { concept: scored.concept, name: Some(scored.name), score: probability }
        };
        let mut candidates: Vec<Candidate> =
            ranked.iter().take(self.config.top_k.max(1)).enumerate().map(candidate).collect();
        for rank in 1..candidates.len() {
            candidates[rank].score = candidates[rank].score.min(candidates[rank - 1].score);
        }
        let nil = candidates.first().is_none_or(|best| best.score < self.config.min_score);
        Link { candidates, nil }
    }
}

impl Linker for HybridLinker {
    fn link(&self, inputs: &[Marked<'_>]) -> canonym::Result<Vec<Vec<Link>>> {
        let surfaces = |marked: &Marked<'_>| -> Vec<String> {
            marked.mentions.iter().map(|mention| mention.surface(&marked.document.text)).collect()
        };
        Ok(inputs.iter().map(|marked| self.link_names(&surfaces(marked))).collect())
    }
}

/// The candidates of one query, right or wrong.
pub type Judged = Vec<(Evidence, bool)>;

/// Fits the weights of the dense evidence beside a lexical weight of 1, so that right candidates are likely among all.
pub fn fit_fusion(queries: &[Judged]) -> Fusion {
    let n_candidates = queries.iter().map(Vec::len).max().unwrap_or(0);
    let right: Vec<Vec<bool>> = queries
        .iter()
        .map(|query| (0..n_candidates).map(|row| query.get(row).is_some_and(|(_, right)| *right)).collect())
        .collect();
    let features = |evidence: &Evidence| [evidence.scored.score, evidence.cosine, evidence.lead];
    let mut weights = [1.0f32, 10.0, 0.0];
    let (mut first, mut second) = ([0.0f32; 3], [0.0f32; 3]);
    let config = AdamConfig { learning_rate: 0.3, ..Default::default() };
    let n_steps = 300;
    for step in 0..n_steps {
        let mut scores = Matrix::new(queries.len(), n_candidates, vec![-1e4; queries.len() * n_candidates]);
        for (row, query) in queries.iter().enumerate() {
            for (to, (evidence, _)) in scores.row_mut(row).iter_mut().zip(query) {
                *to = features(evidence).iter().zip(&weights).map(|(feature, weight)| feature * weight).sum();
            }
        }
        let loss = marginal_likelihood(&scores, &right);
        let mut slope = [0.0f32; 3];
        for (row, query) in queries.iter().enumerate() {
            for (gradient, (evidence, _)) in loss.gradient.row(row).iter().zip(query) {
                for (slope, feature) in slope.iter_mut().zip(features(evidence)) {
                    *slope += gradient * feature;
                }
            }
        }
        let rate = config.rate_at(step, n_steps);
        let correct = [1.0 - 0.9f32.powi(step as i32 + 1), 1.0 - 0.999f32.powi(step as i32 + 1)];
        for at in 0..3 {
            first[at] = 0.9 * first[at] + 0.1 * slope[at];
            second[at] = 0.999 * second[at] + 0.001 * slope[at] * slope[at];
            weights[at] -= rate * (first[at] / correct[0]) / ((second[at] / correct[1]).sqrt() + 1e-8);
        }
    }
    Fusion::of(weights[0], weights[1], weights[2])
}

/// The row of the best candidate of each query under `fusion`.
pub fn best_rows(queries: &[Judged], fusion: &Fusion) -> Vec<Option<usize>> {
    let best = |query: &Judged| {
        (0..query.len()).max_by(|left, right| {
            let score = |row: usize| fusion.score(&query[row].0);
            // Of equal ones the concept that comes first.
            score(*left)
                .total_cmp(&score(*right))
                .then(query[*right].0.scored.concept.cmp(&query[*left].0.scored.concept))
        })
    };
    queries.iter().map(best).collect()
}

/// Fits the calibration of a fusion.
pub fn calibrated(queries: &[Judged], fusion: Fusion) -> Fusion {
    let mut points = Vec::new();
    for (example, query) in queries.iter().enumerate() {
        let mut ranked: Vec<(f32, bool)> =
            query.iter().map(|(evidence, right)| (fusion.score(evidence), *right)).collect();
        ranked.sort_by(|left, right| right.0.total_cmp(&left.0));
        let top = ranked.first().map_or(0.0, |first| first.0);
        let next = ranked.get(1).map_or(top - 10.0, |second| second.0);
        for (rank, (score, right)) in ranked.iter().take(5).enumerate() {
            let lead = if rank == 0 { top - next } else { score - top };
            points.push(canonym::link::fit::Point { example, rank, score: *score, lead, share: 0.0, right: *right });
        }
    }
    Fusion { calibration: canonym::link::fit::fit_calibration(points.iter()), ..fusion }
}
