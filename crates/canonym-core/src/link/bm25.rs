//! BM25 linker: ranks the names of the knowledge base by the words that they share with a mention.
//!
//! A baseline for neural rerankers, as in Logeswaran et al. (2019). The documents of the index are the forms of the
//! knowledge base, so a homonym is indexed once. Spelling variants and inflection are removed
//! ([`NormaliseConfig::LOOKUP`]), as the analysers of search engines do. A concept has the score of its best name; ties
//! are broken by concept row.
//!
//! BM25 scores are not probabilities. The score of a link is a softmax over the [`N_RANKED`] best concepts and NIL,
//! whose score is 0. It is between 0 and 1, comparable within a list, and not calibrated.

use std::collections::HashMap;
use std::sync::Arc;

use rayon::prelude::*;

use super::explain::{Explained, Explanation, add_differences, contribution, explained};
use super::lexical::{LinkConfig, each_once};
use super::{Candidate, Link, LinkInput, Linker, explain_by_name};
use crate::Result;
use crate::index::bm25::{Bm25Config, Bm25Index, Bm25Scratch, Hit, words};
use crate::kb::subset::{KbView, Subset};
use crate::kb::{ConceptId, FormId, KnowledgeBase, NameId};
use crate::text::normalise::{NormaliseConfig, normalise};

/// Number of concepts in the softmax, and maximum number of candidates.
pub const N_RANKED: usize = 100;

/// Links mentions by BM25 over names.
#[derive(Debug)]
pub struct Bm25Linker {
    kb: Arc<KnowledgeBase>,
    index: Bm25Index,
    config: LinkConfig,
    subset: Option<Arc<Subset>>,
}

/// A concept with its best name and the score of that name.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Ranked {
    concept: ConceptId,
    name: NameId,
    score: f32,
}

impl Bm25Linker {
    /// Builds the index over the forms of `kb`.
    pub fn new(kb: Arc<KnowledgeBase>, ranking: &Bm25Config, config: LinkConfig) -> Bm25Linker {
        let normal = |form| normalise(&kb.forms().get(form), &NormaliseConfig::LOOKUP);
        let forms: Vec<String> = (0..kb.n_forms()).into_par_iter().map(normal).collect();
        let index = Bm25Index::build(forms.iter().map(String::as_str), ranking);
        Bm25Linker { kb, index, config, subset: None }
    }

    /// The knowledge base.
    pub fn kb(&self) -> &Arc<KnowledgeBase> {
        &self.kb
    }

    /// Restricts candidates to `subset`; `None` lifts the restriction. Term weights are still computed over all names.
    #[must_use]
    pub fn within(self, subset: Option<Arc<Subset>>) -> Bm25Linker {
        Bm25Linker { subset, ..self }
    }

    /// Links names without context, in order. Each distinct name is looked up once.
    pub fn link_names<T: AsRef<str> + Sync>(&self, names: &[T]) -> Vec<Link> {
        each_once(names, |distinct| {
            let link = |scratch: &mut Bm25Scratch, name: &&str| self.link_ranked(&self.rank(name, scratch));
            distinct.par_iter().map_init(Bm25Scratch::default, link).collect()
        })
    }

    /// Links one name and explains the result.
    pub fn explain_name(&self, name: &str) -> (Link, Explanation) {
        let ranked = self.rank(name, &mut Bm25Scratch::default());
        let link = self.link_ranked(&ranked);
        let normal = normalise(name, &NormaliseConfig::LOOKUP);
        let explain = |(ranked_of, candidate): (&Ranked, &Candidate)| {
            let form = self.kb.form_of(ranked_of.name);
            let mut parts = Vec::new();
            for word in words(&normal) {
                let weight = f64::from(self.index.weight(word, form.0));
                parts.push(contribution(word, "BM25 weight of a shared word", weight, weight));
            }
            let top = ranked.first().map_or(0.0, |best| f64::from(best.score));
            let others = ranked.iter().filter(|one| one.concept != ranked_of.concept);
            let sum: f64 = others.map(|one| (f64::from(one.score) - top).exp()).sum::<f64>() + (-top).exp();
            parts.push(contribution("others", "other candidates (normalisation)", 1.0, -(sum.ln() + top)));
            explained(&self.kb, name, ranked_of.name, candidate, parts)
        };
        let mut candidates: Vec<Explained> = ranked.iter().zip(&link.candidates).map(explain).collect();
        add_differences(&mut candidates);
        (link, Explanation { compared: name.to_owned(), candidates, ..Explanation::default() })
    }

    /// The concepts with the best scores, at most [`N_RANKED`], best first.
    fn rank(&self, name: &str, scratch: &mut Bm25Scratch) -> Vec<Ranked> {
        let view = KbView { kb: &self.kb, subset: self.subset.as_deref() };
        let mut hits = self.index.search(&normalise(name, &NormaliseConfig::LOOKUP), scratch);
        hits.retain(|hit| view.has_form(FormId(hit.row)));
        let mut n_forms = N_RANKED;
        loop {
            let n_kept = best_first(&mut hits, n_forms);
            let mut ranked = self.concepts(&hits[..n_kept], view);
            if ranked.len() >= N_RANKED || n_kept == hits.len() {
                ranked.sort_unstable_by(|a, b| b.score.total_cmp(&a.score).then(a.concept.cmp(&b.concept)));
                ranked.truncate(N_RANKED);
                return ranked;
            }
            n_forms *= 4;
        }
    }

    /// The best name of each concept of the given forms, unordered; ties go to the first name.
    fn concepts(&self, hits: &[Hit], view: KbView<'_>) -> Vec<Ranked> {
        let mut best: HashMap<ConceptId, Ranked> = HashMap::with_capacity(hits.len());
        for hit in hits {
            for name in self.kb.names_of_form(FormId(hit.row)) {
                let concept = self.kb.concept_of(name);
                if !view.has(concept) {
                    continue;
                }
                let ranked = Ranked { concept, name, score: hit.score };
                let known = best.entry(concept).or_insert(ranked);
                if (ranked.score, known.name) > (known.score, ranked.name) {
                    *known = ranked;
                }
            }
        }
        best.into_values().collect()
    }

    fn link_ranked(&self, ranked: &[Ranked]) -> Link {
        let top = ranked.first().map_or(0.0, |best| best.score);
        let exp = |score: f32| (score - top).exp();
        let sum: f32 = ranked.iter().map(|one| exp(one.score)).sum::<f32>() + exp(0.0);
        let candidate =
            |one: &Ranked| Candidate { concept: one.concept, name: Some(one.name), p_link: exp(one.score) / sum };
        let candidates: Vec<Candidate> = ranked.iter().take(self.config.top_k.max(1)).map(candidate).collect();
        let nil = candidates.first().is_none_or(|best| best.p_link < self.config.min_score);
        Link { candidates, nil }
    }
}

/// Moves the `n` best hits and all ties of the last one to the front, and returns their number.
fn best_first(hits: &mut [Hit], n: usize) -> usize {
    if hits.len() <= n {
        return hits.len();
    }
    hits.select_nth_unstable_by(n - 1, |a, b| b.score.total_cmp(&a.score));
    let min_score = hits[n - 1].score;
    let mut n_kept = n;
    for index in n..hits.len() {
        if hits[index].score == min_score {
            hits.swap(index, n_kept);
            n_kept += 1;
        }
    }
    n_kept
}

impl Linker for Bm25Linker {
    fn kb(&self) -> &KnowledgeBase {
        &self.kb
    }

    fn link(&self, inputs: &[LinkInput<'_>]) -> Result<Vec<Vec<Link>>> {
        let names: Vec<Vec<String>> = inputs.par_iter().map(LinkInput::names).collect();
        let mut links = self.link_names(&names.concat()).into_iter();
        Ok(names.iter().map(|names| links.by_ref().take(names.len()).collect()).collect())
    }

    fn explain(&self, inputs: &[LinkInput<'_>]) -> Result<Vec<Vec<(Link, Explanation)>>> {
        explain_by_name(self, inputs)
    }

    fn link_names(&self, names: &[&str]) -> Result<Vec<Link>> {
        Ok(self.link_names(names))
    }

    fn explain_names(&self, names: &[&str]) -> Result<Vec<(Link, Explanation)>> {
        Ok(names.par_iter().map(|name| self.explain_name(name)).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::eval::bootstrap::SplitMix64;
    use crate::kb::format::Meta;
    use crate::kb::{ConceptRecord, KnowledgeBaseBuilder, NameRecord, Scope};
    use crate::text::analysis::Analysis;
    use crate::text::{Document, Mention, Span};

    fn kb(concepts: &[(&str, &[&str])]) -> Arc<KnowledgeBase> {
        let mut builder = KnowledgeBaseBuilder::new();
        for (id, names) in concepts {
            let name = |text: &&str| NameRecord { text: (*text).to_owned(), scope: Scope::Exact };
            let names = names.iter().map(name).collect();
            builder.add(ConceptRecord { id: (*id).to_owned(), names, ..ConceptRecord::default() }).unwrap();
        }
        Arc::new(KnowledgeBase::from_vec(builder.to_bytes(Meta::default()).unwrap(), "small.kb").unwrap())
    }

    fn small() -> Arc<KnowledgeBase> {
        kb(&[
            ("1", &["Liver disease", "Hepatopathy"]),
            ("2", &["Fatty liver", "Fatty liver disease"]),
            ("3", &["Cold"]),
            ("4", &["Cold", "Chronic obstructive lung disease"]),
        ])
    }

    fn linker(kb: &Arc<KnowledgeBase>, top_k: usize) -> Bm25Linker {
        let config = LinkConfig { top_k, min_score: 0.0 };
        Bm25Linker::new(kb.clone(), &Bm25Config::default(), config)
    }

    fn ids(kb: &KnowledgeBase, link: &Link) -> String {
        link.candidates.iter().map(|candidate| kb.id(candidate.concept)).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn a_concept_ranks_as_its_best_name_and_equal_ones_by_their_rows() {
        let kb = small();
        let links = linker(&kb, 5).link_names(&[
            "fatty LIVER diseases",
            "cold",
            "Hepatopathy",
            "",
            "fever",
            "disease of the liver",
        ]);
        let found: Vec<String> = links.iter().map(|link| ids(&kb, link)).collect();
        assert_eq!(found, ["2 1 4", "3 4", "1", "", "", "1 2 4"]);
        assert_eq!(links.iter().map(|link| link.nil).collect::<Vec<_>>(), [false, false, false, true, true, false]);
        assert_eq!(kb.name(links[0].candidates[0].name.unwrap()), "Fatty liver disease");
        let scores: Vec<f32> = links[1].candidates.iter().map(|candidate| candidate.p_link).collect();
        assert_eq!(scores[0], scores[1]);
        // The remaining third goes to NIL.
        assert!(scores[0] < 0.5 && scores[0] > 0.3, "{scores:?}");
    }

    #[test]
    fn names_of_a_batch_are_independent() {
        let words = ["liver", "fatty", "disease", "acute", "cold", "lung", "of", "the"];
        let mut rng = SplitMix64::new(5);
        let mut phrase = || (0..1 + rng.below(4)).map(|_| words[rng.below(words.len())]).collect::<Vec<_>>().join(" ");
        let concepts: Vec<(String, Vec<String>)> =
            (0..300).map(|row| (format!("{row:03}"), vec![phrase(), phrase()])).collect();
        let names: Vec<Vec<&str>> =
            concepts.iter().map(|(_, names)| names.iter().map(String::as_str).collect()).collect();
        let concepts: Vec<(&str, &[&str])> =
            concepts.iter().zip(&names).map(|((id, _), names)| (id.as_str(), names.as_slice())).collect();
        let kb = kb(&concepts);
        let queries: Vec<String> = (0..40).map(|_| phrase()).collect();
        let linker = linker(&kb, 7);
        let together = linker.link_names(&queries);
        let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
        assert_eq!(pool.install(|| linker.link_names(&queries)), together);
        for (query, link) in queries.iter().zip(&together) {
            assert_eq!(&linker.link_names(&[query])[0], link);
            // Reference: score every name on its own.
            let mut all: Vec<(ConceptId, f32)> = Vec::new();
            for concept in kb.concepts() {
                let score = |name: NameId| {
                    let form = kb.form_of(name);
                    words_of(query).map(|word| linker.index.weight(word, form.0)).sum::<f32>()
                };
                all.push((concept, kb.names(concept).map(score).fold(0.0, f32::max)));
            }
            all.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
            all.truncate(7);
            let expected: Vec<ConceptId> = all.iter().filter(|one| one.1 > 0.0).map(|one| one.0).collect();
            assert_eq!(link.candidates.iter().map(|candidate| candidate.concept).collect::<Vec<_>>(), expected);
        }
    }

    fn words_of(query: &str) -> impl Iterator<Item = &str> {
        words(query)
    }

    #[test]
    fn explanations_give_the_same_link_and_their_parts_sum_to_its_log_odds() {
        let kb = small();
        let linker = linker(&kb, 5);
        for name in ["fatty liver disease", "cold"] {
            let (link, explanation) = linker.explain_name(name);
            assert_eq!(linker.link_names(&[name])[0], link);
            for (candidate, explained) in link.candidates.iter().zip(&explanation.candidates) {
                let score = f64::from(candidate.p_link);
                assert!((explained.log_odds - (score / (1.0 - score)).ln()).abs() < 1e-2, "{explained:?}");
            }
        }
    }

    #[test]
    fn mentions_are_linked_by_their_long_forms_within_a_subset() {
        let kb = small();
        let text = "Fatty liver disease (FLD). FLD is common.";
        let document = Document { text: text.to_owned(), ..Document::default() };
        let mentions = [0..19, 27..30].map(|span| Mention::contiguous(Span::new(span.start, span.end)));
        let analysis = Analysis::new(&document);
        let inputs = [LinkInput { document: &analysis, mentions: &mentions }; 2];
        let links = linker(&kb, 1).link(&inputs).unwrap();
        assert_eq!(links[0].iter().map(|link| ids(&kb, link)).collect::<Vec<_>>(), ["2", "2"]);
        assert_eq!(links[0], links[1]);
        let subset = Subset::of(&kb, |concept| kb.id(concept) != "2");
        let links = linker(&kb, 5).within(Some(Arc::new(subset))).link(&inputs).unwrap();
        assert_eq!(ids(&kb, &links[0][0]), "1 4");
    }
}
