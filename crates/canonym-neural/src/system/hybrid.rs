//! Hybrid linking: candidates of lexical and dense retrieval, one fused score, one calibrated probability.
//!
//! BioSyn (Sung et al. 2020) adds a sparse score to a dense one with a learned weight. Here the sparse score is that of the lexical linker,
//! a weighted sum of string features; the dense score is the cosine of the nearest name of a concept.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

use canonym_core::eval::ranking::Ranks;
use canonym_core::index::grams::GramScratch;
use canonym_core::kb::subset::{KbView, Subset};
use canonym_core::kb::{ConceptId, FormId, KnowledgeBase};
use canonym_core::link::explain::{Explained, Explanation, add_differences, contribution, contributions, explained};
use canonym_core::link::lexical::{LinkConfig, Scored, best_of_each_concept, each_once, link_ranked, score_name_and};
use canonym_core::link::model::LexicalModel;
use canonym_core::link::{Candidate, Link, LinkInput, Linker, explain_by_name};
use canonym_core::text::normalise::fold;
use rayon::prelude::*;

use crate::index::forms::{FormVectors, KeptVectors};
use crate::index::{Index, RowFilter};
use crate::models::fusion::{Evidence, Fusion};
use crate::models::mention_prior::KbMentionPrior;
use crate::models::rescnn::names::NameEncoder;
use crate::tensor::matrix::dot;

/// Number of forms from dense retrieval.
const N_DENSE: usize = 20;

/// Number of concepts that are compared by embeddings computed on demand: the best by lexical score.
const N_COMPARED: usize = 24;

/// Description of the dense score in explanations.
const OF_NAMES: &str = "name embedding similarity";

/// Names per batch.
const BATCH: usize = 4096;

/// Number of names whose links are kept; when it is reached, all are dropped.
const MAX_KEPT: usize = 1 << 16;

/// Maximum length in bytes of a name whose link is kept.
const MAX_KEPT_BYTES: usize = 120;

/// Links names by lexical and dense similarity.
#[derive(Debug)]
pub struct HybridLinker {
    kb: Arc<KnowledgeBase>,
    ranking: LexicalModel,
    names: Arc<NameEncoder>,
    vectors: Arc<FormVectors>,
    fusion: Fusion,
    config: LinkConfig,
    subset: Option<Arc<Subset>>,
    /// The forms in `subset`, for searches in an index file.
    filter: Option<RowFilter>,
    prior: KbMentionPrior,
    kept: KeptLinks,
}

/// Links of names that were met before. Names repeat: of those in a thousand abstracts, two in three are in the next thousand as well.
#[derive(Debug, Default)]
struct KeptLinks(Mutex<HashMap<Box<str>, Link>>);

impl KeptLinks {
    /// The links of names, from `link` if they are new; it gets the new names and returns their links in order.
    fn links(&self, names: &[&str], link: impl FnOnce(&[&str]) -> Vec<Link>) -> Vec<Link> {
        let lock = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut links: Vec<Option<Link>> = {
            let kept = lock();
            names.iter().map(|name| kept.get(*name).cloned()).collect()
        };
        let of = |links: &[Option<Link>]| {
            let missing = names.iter().zip(links).filter(|(_, link)| link.is_none());
            missing.map(|(name, _)| *name).collect::<Vec<&str>>()
        };
        let new = of(&links);
        if !new.is_empty() {
            let found = link(&new);
            let mut kept = lock();
            if kept.len() + new.len() > MAX_KEPT {
                kept.clear();
            }
            let short = new.iter().zip(&found).filter(|(name, _)| name.len() <= MAX_KEPT_BYTES).take(MAX_KEPT);
            kept.extend(short.map(|(name, link)| (Box::from(*name), link.clone())));
            let mut found = found.into_iter();
            links.iter_mut().filter(|link| link.is_none()).for_each(|link| *link = found.next());
        }
        links.into_iter().map(Option::unwrap_or_default).collect()
    }
}

impl HybridLinker {
    /// A linker to the concepts of `kb`; row i of an index is the embedding of form i.
    ///
    /// # Panics
    /// If the number of rows of an index differs from the number of forms in `kb`.
    pub fn new(
        kb: Arc<KnowledgeBase>,
        names: Arc<NameEncoder>,
        vectors: Arc<FormVectors>,
        ranking: LexicalModel,
        fusion: Fusion,
        config: LinkConfig,
    ) -> HybridLinker {
        if let Some(index) = vectors.index() {
            assert_eq!(index.n_rows(), kb.n_forms(), "a vector for each form");
        }
        let prior = KbMentionPrior::default();
        let kept = KeptLinks::default();
        HybridLinker { kb, ranking, names, vectors, fusion, config, subset: None, filter: None, prior, kept }
    }

    /// The knowledge base.
    pub fn kb(&self) -> &Arc<KnowledgeBase> {
        &self.kb
    }

    /// Concept filter; `None` for all concepts.
    pub fn subset(&self) -> Option<&Subset> {
        self.subset.as_deref()
    }

    /// Restricts the linker to the concepts in `subset`; `None` for all.
    #[must_use]
    pub fn within(self, subset: Option<Arc<Subset>>) -> HybridLinker {
        let filter = match (&*self.vectors, &subset) {
            (FormVectors::Stored(index), Some(subset)) => {
                Some(RowFilter::new(index.n_rows(), |row| subset.has_form(FormId(row))))
            }
            _ => None,
        };
        HybridLinker { subset, filter, kept: KeptLinks::default(), ..self }
    }

    /// Adds a mention prior, which ranks the candidates of mentions in text.
    #[must_use]
    pub fn with_prior(self, prior: KbMentionPrior) -> HybridLinker {
        HybridLinker { prior, ..self }
    }

    /// Fails if the file with the embeddings of names has changed since it was opened.
    ///
    /// # Errors
    /// That of [`FormVectors::check_unchanged`].
    pub fn check_unchanged(&self) -> canonym_core::Result<()> {
        self.vectors.check_unchanged()
    }

    fn weigh(&self, name: &str, link: &mut Link) {
        self.prior.weigh(name, &mut link.candidates);
        link.candidates.truncate(self.config.top_k.max(1));
        link.nil = link.candidates.first().is_none_or(|best| best.p_link < self.config.min_score);
    }

    /// Links names without context, in order. Repeated names are linked once, also those of earlier calls.
    pub fn link_names<T: AsRef<str> + Sync>(&self, names: &[T]) -> Vec<Link> {
        let link = |new: &[&str]| self.evidence(new).into_par_iter().map(|evidence| self.decide(evidence)).collect();
        each_once(names, |distinct| self.kept.links(distinct, link))
    }

    /// The candidates of each name, ordered by concept.
    pub fn evidence<T: AsRef<str> + Sync>(&self, names: &[T]) -> Vec<Vec<Evidence>> {
        let mut all = Vec::with_capacity(names.len());
        for names in names.chunks(BATCH) {
            let folded: Vec<String> = names.par_iter().map(|name| fold(name.as_ref())).collect();
            all.extend(match &*self.vectors {
                FormVectors::Indexed(index) => self.evidence_of_index(names, &folded, index),
                FormVectors::Stored(index) => self.evidence_of_index(names, &folded, &**index),
                FormVectors::OnDemand(kept) => self.evidence_on_demand(names, &folded, kept),
            });
        }
        all
    }

    /// Cosines of the two nearest concepts of each name by embeddings alone, 0 for those there are not. Without an index of all names, the
    /// nearest are those among the lexical candidates.
    pub fn two_nearest<T: AsRef<str> + Sync>(&self, names: &[T]) -> Vec<[f32; 2]> {
        let Some(index) = self.vectors.index() else {
            let cosines = |of_name: Vec<Evidence>| of_name.into_iter().map(|one| (one.scored.concept, one.dense_score));
            return self.evidence(names).into_iter().map(|of_name| two_best(cosines(of_name))).collect();
        };
        let mut all = Vec::with_capacity(names.len());
        for names in names.chunks(BATCH) {
            let folded: Vec<String> = names.par_iter().map(|name| fold(name.as_ref())).collect();
            let mut vectors = self.names.encode(&folded);
            vectors.normalise_rows();
            let concepts = |hit: &crate::index::Hit| {
                let (view, score) = (self.view(), hit.score);
                let of_form = self.kb.names_of_form(FormId(hit.row)).map(|name| self.kb.concept_of(name));
                of_form.filter(move |concept| view.has(*concept)).map(move |concept| (concept, score))
            };
            let found = index.search(&vectors, N_DENSE, self.filter.as_ref());
            all.extend(found.iter().map(|hits| two_best(hits.iter().flat_map(concepts))));
        }
        all
    }

    /// Candidates of lexical and dense retrieval.
    fn evidence_of_index<T: AsRef<str> + Sync>(
        &self,
        names: &[T],
        folded: &[String],
        index: &dyn Index,
    ) -> Vec<Vec<Evidence>> {
        let known: Vec<Option<FormId>> = folded.par_iter().map(|name| self.known(name)).collect();
        // A known name is its own nearest neighbour; only other names are searched.
        let new: Vec<&str> =
            folded.iter().zip(&known).filter(|(_, known)| known.is_none()).map(|(name, _)| name.as_str()).collect();
        let mut vectors = self.names.encode(&new);
        vectors.normalise_rows();
        let found = index.search(&vectors, N_DENSE, self.filter.as_ref());
        let mut place = 0;
        let places: Vec<usize> = known
            .iter()
            .map(|known| {
                place += usize::from(known.is_none());
                place.wrapping_sub(1)
            })
            .collect();
        let one = |scratch: &mut GramScratch, row: usize| {
            let (vector, forms) = match known[row] {
                Some(form) => (Cow::Owned(index.vector(form.0)), Vec::new()),
                None => {
                    let near = found[places[row]].iter().map(|hit| FormId(hit.row)).collect();
                    (Cow::Borrowed(vectors.row(places[row])), near)
                }
            };
            let scored = score_name_and(self.view(), &self.ranking, names[row].as_ref(), &forms, scratch);
            self.compare(scored, |form| index.score(&vector, form.0))
        };
        (0..names.len()).into_par_iter().map_init(GramScratch::default, one).collect()
    }

    /// The best candidates of lexical retrieval, compared by embeddings that are computed when needed.
    fn evidence_on_demand<T: AsRef<str> + Sync>(
        &self,
        names: &[T],
        folded: &[String],
        kept: &KeptVectors,
    ) -> Vec<Vec<Evidence>> {
        let retrieve = |scratch: &mut GramScratch, name: &T| {
            let scored = score_name_and(self.view(), &self.ranking, name.as_ref(), &[], scratch);
            let mut best = scored.clone();
            best_of_each_concept(&mut best);
            let concepts: HashSet<ConceptId> = best.iter().take(N_COMPARED).map(|one| one.concept).collect();
            scored.into_iter().filter(|one| concepts.contains(&one.concept)).collect()
        };
        let scored: Vec<Vec<Scored>> = names.par_iter().map_init(GramScratch::default, retrieve).collect();
        let forms: Vec<FormId> = scored.iter().flatten().map(|one| self.kb.form_of(one.name)).collect();
        let vectors = kept.of(&forms, &self.kb, &self.names);
        let mut queries = self.names.encode(folded);
        queries.normalise_rows();
        let compare = |(row, scored): (usize, Vec<Scored>)| {
            self.compare(scored, |form| vectors.get(&form).map_or(0.0, |vector| dot(queries.row(row), vector)))
        };
        scored.into_par_iter().enumerate().map(compare).collect()
    }

    /// The form equal to a folded name, if one of its concepts passes the filter.
    fn known(&self, folded: &str) -> Option<FormId> {
        let view = self.view();
        let form = self.kb.find_form(folded)?;
        self.kb.names_of_form(form).any(|name| view.has(self.kb.concept_of(name))).then_some(form)
    }

    fn view(&self) -> KbView<'_> {
        KbView { kb: &self.kb, subset: self.subset.as_deref() }
    }

    /// The evidence for each concept, given the cosine between the query and a form.
    fn compare(&self, mut scored: Vec<Scored>, cosine: impl Fn(FormId) -> f32) -> Vec<Evidence> {
        let mut cosine_of: HashMap<FormId, f32> = HashMap::new();
        let mut best: HashMap<ConceptId, f32> = HashMap::new();
        for one in &scored {
            let form = self.kb.form_of(one.name);
            let cosine = *cosine_of.entry(form).or_insert_with(|| cosine(form));
            let best = best.entry(one.concept).or_insert(f32::NEG_INFINITY);
            *best = best.max(cosine);
        }
        best_of_each_concept(&mut scored);
        let evidence = |scored: Scored| Evidence { scored, dense_score: best[&scored.concept], name_score: 0.0 };
        scored.into_iter().map(evidence).collect()
    }

    /// Ranks candidates and returns the link.
    fn decide(&self, mut evidence: Vec<Evidence>) -> Link {
        self.rank(&mut evidence)
    }

    /// Sorts candidates, best first, and returns the link.
    fn rank(&self, evidence: &mut [Evidence]) -> Link {
        let score = |evidence: &Evidence| self.fusion.score(evidence);
        evidence.sort_by(|left, right| {
            score(right).total_cmp(&score(left)).then(left.scored.concept.cmp(&right.scored.concept))
        });
        let ranked: Vec<Scored> = evidence.iter().map(|one| Scored { score: score(one), ..one.scored }).collect();
        link_ranked(&ranked, &self.fusion.calibration, &self.config)
    }

    /// Links one name and explains the result.
    pub fn explain_name(&self, name: &str) -> (Link, Explanation) {
        let mut evidence = self.evidence(&[name]).pop().unwrap_or_default();
        let link = self.rank(&mut evidence);
        let of_vectors = ("cosine", OF_NAMES);
        let explanation = explain_ranked(&self.kb, &self.ranking, &self.fusion, name, of_vectors, &evidence, &link);
        (link, explanation)
    }
}

/// The cosines of the two best of different concepts; 0 for those there are not.
fn two_best(cosines: impl Iterator<Item = (ConceptId, f32)>) -> [f32; 2] {
    let mut best: HashMap<ConceptId, f32> = HashMap::new();
    for (concept, cosine) in cosines {
        let best = best.entry(concept).or_insert(f32::NEG_INFINITY);
        *best = best.max(cosine);
    }
    let mut sorted: Vec<f32> = best.into_values().collect();
    sorted.sort_by(|left, right| right.total_cmp(left));
    [0, 1].map(|rank| sorted.get(rank).copied().unwrap_or(0.0))
}

/// Explains a link from its sorted candidates; `of_vectors` is the name and the description of the dense score.
pub(crate) fn explain_ranked(
    kb: &KnowledgeBase,
    ranking: &LexicalModel,
    fusion: &Fusion,
    name: &str,
    of_vectors: (&str, &str),
    evidence: &[Evidence],
    link: &Link,
) -> Explanation {
    let score = |rank: usize| evidence.get(rank).map(|one| fusion.score(one));
    let top = score(0).unwrap_or(0.0);
    let explain = |(rank, (one, candidate)): (usize, (&Evidence, &Candidate))| {
        let margin = match rank {
            0 => top - score(1).unwrap_or(top - 10.0),
            _ => fusion.score(one) - top,
        };
        let dense = (of_vectors.0, of_vectors.1, one.dense_score, fusion.cosine);
        let by_name = ("name", OF_NAMES, one.name_score, fusion.name);
        let others = if fusion.name == 0.0 { &[dense][..] } else { &[dense, by_name] };
        let (calibration, p_link) = (&fusion.calibration, candidate.p_link);
        let parts = contributions(ranking, fusion.lexical, calibration, &one.scored, margin, p_link, others);
        explained(kb, name, one.scored.name, candidate, parts)
    };
    let mut candidates: Vec<Explained> = evidence.iter().zip(&link.candidates).enumerate().map(explain).collect();
    add_differences(&mut candidates);
    Explanation { compared: name.to_owned(), candidates, ..Explanation::default() }
}

/// Updates an explanation after the mention prior has changed a link: each candidate gets one more contribution.
pub fn explain_prior(kb: &KnowledgeBase, name: &str, link: &Link, explanation: &mut Explanation) {
    let log_odds = |score: f32| {
        let score = f64::from(score).clamp(1e-6, 1.0 - 1e-6);
        (score / (1.0 - score)).ln()
    };
    let before = std::mem::take(&mut explanation.candidates);
    let explain = |candidate: &Candidate| {
        let id = kb.id(candidate.concept);
        let mut parts = Vec::new();
        let mut known = 0.0;
        if let Some(one) = before.iter().find(|one| one.id == id) {
            parts.clone_from(&one.contributions);
            known = one.log_odds;
        }
        let more = log_odds(candidate.p_link) - known;
        if more.abs() > 1e-3 {
            let sentence = "mention-entity prior (annotated texts)";
            parts.push(contribution("mention_prior", sentence, f64::from(candidate.p_link), more));
        }
        let best = candidate.name.or_else(|| kb.names(candidate.concept).next())?;
        Some(explained(kb, name, best, candidate, parts))
    };
    explanation.candidates = link.candidates.iter().filter_map(explain).collect();
    add_differences(&mut explanation.candidates);
}

impl Linker for HybridLinker {
    fn kb(&self) -> &KnowledgeBase {
        &self.kb
    }

    /// Links mentions by their names and the mention prior.
    fn link(&self, inputs: &[LinkInput<'_>]) -> canonym_core::Result<Vec<Vec<Link>>> {
        let link = |marked: &LinkInput<'_>| {
            let names = marked.names();
            let mut links = self.link_names(&names);
            if !self.prior.is_empty() {
                names.iter().zip(&mut links).for_each(|(name, link)| self.weigh(name, link));
            }
            links
        };
        let links = inputs.iter().map(link).collect();
        self.check_unchanged()?;
        Ok(links)
    }

    fn explain(&self, inputs: &[LinkInput<'_>]) -> canonym_core::Result<Vec<Vec<(Link, Explanation)>>> {
        let mut explained = explain_by_name(self, inputs)?;
        if !self.prior.is_empty() {
            for (marked, of_document) in inputs.iter().zip(&mut explained) {
                for (name, (link, explanation)) in marked.names().iter().zip(of_document) {
                    explain_prior(&self.kb, name, link, explanation);
                }
            }
        }
        Ok(explained)
    }

    fn link_names(&self, names: &[&str]) -> canonym_core::Result<Vec<Link>> {
        let links = self.link_names(names);
        self.check_unchanged()?;
        Ok(links)
    }

    fn explain_names(&self, names: &[&str]) -> canonym_core::Result<Vec<(Link, Explanation)>> {
        let explained = names.par_iter().map(|name| self.explain_name(name)).collect();
        self.check_unchanged()?;
        Ok(explained)
    }
}

/// The candidates of one query, each with whether it is correct.
pub type LabelledQuery = Vec<(Evidence, bool)>;

/// Candidate values of the cosine weight; the lexical weight is 1.
pub const COSINE_WEIGHTS: [f32; 14] = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0, 13.0, 17.0, 22.0];

/// Default cosine weight, as selected on disease corpora.
pub const DEFAULT_COSINE_WEIGHT: f32 = 3.0;

/// Accuracy at 1: fraction of queries whose best candidate is correct.
pub fn accuracy(queries: &[LabelledQuery], fusion: &Fusion) -> f64 {
    let best = best_rows(queries, fusion);
    let rank = |(query, best): (&LabelledQuery, Option<usize>)| best.filter(|row| query[*row].1).map(|_| 0);
    let ranks: Vec<Option<usize>> = queries.iter().zip(best).map(rank).collect();
    Ranks::of(&ranks).accuracy_at(1)
}

/// [`accuracy`] for each cosine weight, such as [`COSINE_WEIGHTS`].
pub fn accuracies(queries: &[LabelledQuery], weights: &[f32]) -> Vec<f64> {
    weights.par_iter().map(|weight| accuracy(queries, &Fusion::of(1.0, *weight))).collect()
}

/// Selects the cosine weight: of those whose accuracy is within one standard error of the best (Breiman et al. 1984), the one closest to
/// `usual`, so that a small sample does not decide. A weight below the lexical accuracy is never chosen; if all are, the result is 0.
pub fn fit_fusion(queries: &[LabelledQuery], weights: &[f32], usual: f32) -> Fusion {
    let accuracies = accuracies(queries, weights);
    let best = accuracies.iter().copied().fold(0.0, f64::max);
    let error = (best * (1.0 - best) / queries.len().max(1) as f64).sqrt();
    let threshold = accuracy(queries, &Fusion::LEXICAL).max(best - error);
    let good = weights.iter().copied().zip(&accuracies).filter(|(_, accuracy)| **accuracy >= threshold);
    let unusual = |weight: f32| (weight - usual).abs();
    let chosen = good.map(|(weight, _)| weight).min_by(|left, right| unusual(*left).total_cmp(&unusual(*right)));
    Fusion::of(1.0, chosen.unwrap_or(0.0))
}

/// Selects the weight of the name scorer with the highest accuracy, the smallest of [`COSINE_WEIGHTS`] on ties; also returns the accuracy
/// of each.
pub fn fit_name_weight(queries: &[LabelledQuery], fusion: Fusion) -> (Fusion, Vec<(f32, f64)>) {
    let of = |name: &f32| (*name, accuracy(queries, &Fusion { name: *name, ..fusion }));
    let tried: Vec<(f32, f64)> = COSINE_WEIGHTS.par_iter().map(of).collect();
    let best = tried.iter().fold((0.0, f64::NEG_INFINITY), |best, one| if one.1 > best.1 { *one } else { best });
    (Fusion { name: best.0, ..fusion }, tried)
}

/// Row of the best candidate of each query under `fusion`.
pub fn best_rows(queries: &[LabelledQuery], fusion: &Fusion) -> Vec<Option<usize>> {
    let best = |query: &LabelledQuery| {
        (0..query.len()).max_by(|left, right| {
            let score = |row: usize| fusion.score(&query[row].0);
            // Ties go to the lower concept id.
            score(*left)
                .total_cmp(&score(*right))
                .then(query[*right].0.scored.concept.cmp(&query[*left].0.scored.concept))
        })
    };
    queries.iter().map(best).collect()
}

/// Fits the calibration of the fused score.
pub fn calibrated(queries: &[LabelledQuery], fusion: Fusion) -> Fusion {
    let mut points = Vec::new();
    for (example, query) in queries.iter().enumerate() {
        let mut ranked: Vec<(f32, bool)> =
            query.iter().map(|(evidence, right)| (fusion.score(evidence), *right)).collect();
        ranked.sort_by(|left, right| right.0.total_cmp(&left.0));
        let top = ranked.first().map_or(0.0, |first| first.0);
        let next = ranked.get(1).map_or(top - 10.0, |second| second.0);
        for (rank, (score, right)) in ranked.iter().take(5).enumerate() {
            let margin = if rank == 0 { top - next } else { score - top };
            points.push(canonym_core::link::fit::Point {
                example,
                rank,
                score: *score,
                margin,
                probability: 0.0,
                right: *right,
            });
        }
    }
    Fusion { calibration: canonym_core::link::fit::fit_calibration(points.iter()), ..fusion }
}

#[cfg(test)]
mod tests {
    use canonym_core::kb::NameId;

    use super::*;

    /// Two candidates, the correct one first, that differ by `lexical` in the lexical score and by `cosine` in the cosine.
    fn query(lexical: f32, cosine: f32) -> LabelledQuery {
        let candidate = |concept: u32, score: f32, cosine: f32| {
            let features = LexicalModel::zero().weights;
            let scored = Scored { concept: ConceptId(concept), name: NameId(concept), features, score };
            Evidence { scored, dense_score: cosine, name_score: 0.0 }
        };
        vec![(candidate(0, lexical, cosine), true), (candidate(1, 0.0, 0.0), false)]
    }

    #[test]
    fn the_second_nearest_is_another_concept() {
        let of =
            |cosines: &[(u32, f32)]| two_best(cosines.iter().map(|(concept, cosine)| (ConceptId(*concept), *cosine)));
        assert_eq!(of(&[(1, 0.7), (1, 0.9), (2, 0.8)]), [0.9, 0.8]);
        // A homonym: one name, two concepts.
        assert_eq!(of(&[(1, 0.9), (2, 0.9)]), [0.9, 0.9]);
        assert_eq!((of(&[(1, 0.9)]), of(&[])), ([0.9, 0.0], [0.0, 0.0]));
    }

    #[test]
    fn no_weight_is_chosen_that_is_worse_than_words_alone() {
        // Lexical accuracy is 90 %; the dense score flips two of these queries, which is less than one standard error.
        let mut queries = vec![query(1.0, 0.0); 88];
        queries.extend(vec![query(1.0, -0.6); 2]);
        queries.extend(vec![query(-1.0, 0.0); 10]);
        assert_eq!(accuracy(&queries, &Fusion::LEXICAL), 0.9);
        assert_eq!(accuracies(&queries, &[1.5, 3.0]), [0.9, 0.88]);
        assert_eq!(fit_fusion(&queries, &COSINE_WEIGHTS, DEFAULT_COSINE_WEIGHT).cosine, 1.5);
        // No weight reaches the lexical accuracy: the dense score is turned off.
        assert_eq!(fit_fusion(&queries, &[3.0, 5.0], DEFAULT_COSINE_WEIGHT).cosine, 0.0);
        // If the dense score helps, the usual weight is selected.
        let helped = [vec![query(1.0, 0.0); 8], vec![query(-1.0, 1.0); 8]].concat();
        assert_eq!(fit_fusion(&helped, &COSINE_WEIGHTS, DEFAULT_COSINE_WEIGHT).cosine, DEFAULT_COSINE_WEIGHT);
    }
}
