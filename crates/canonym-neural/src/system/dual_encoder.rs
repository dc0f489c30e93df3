//! Dual-encoder linker: embeds mentions in context and concepts separately, and compares every mention of a document with every concept.
//! Models with a span search also detect the mentions.
//!
//! The dense score of a concept is its log-probability in a softmax of inner products over the nearest names; with fusion, the score of the
//! lexical linker is added. Candidates are the nearest concepts and, with fusion, those of the lexical linker.

pub mod model;

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use canonym_core::index::grams::GramScratch;
use canonym_core::kb::subset::{KbView, Subset};
use canonym_core::kb::{ConceptId, FormId, KnowledgeBase, NameId};
use canonym_core::link::explain::Explanation;
use canonym_core::link::lexical::{LinkConfig, Scored, best_of_each_concept, link_ranked, score_name_and};
use canonym_core::link::model::{Features, LexicalModel, N};
use canonym_core::link::{Annotator, LeakyAnnotator, Link, LinkInput, LinkedMention, Linker};
use canonym_core::text::analysis::Analysis;
use canonym_core::text::{Mention, Span};
use canonym_core::{Error, Result};
use rayon::prelude::*;

use super::concept_rows::ConceptRows;
use super::consistency::one_sense_per_discourse;
use super::detect_then_link::explain_mention;
use super::name_scorer::{NameEvidence, NameScores};
use crate::bundle::dual_encoder::DualBundle;
use crate::index::FlatIndex;
use crate::models::dual_encoder::SpanSearch;
use crate::models::dual_encoder::infer::{DualEncoder, groups};
use crate::models::dual_encoder::spans::{TokenSpan, flat, likely_spans, tagged_spans};
use crate::models::dual_encoder::windows::{Windower, Windows, home};
use crate::models::fusion::Evidence;
use crate::models::fusion::Fusion;
use crate::models::joint::{self, Joint};
use crate::system::hybrid::{explain_prior, explain_ranked};
use crate::tensor::matrix::{Matrix, dot};

/// Number of nearest names per mention; the softmax is taken over these.
const N_NEAREST: usize = 64;

/// Number of nearest concepts that are candidates in the fusion, beside the lexical ones.
const N_DENSE: usize = 20;

/// Lexical features when there is no fusion.
const NO_FEATURES: Features = [0.0; N];

/// Documents per batch.
const DOCUMENTS: usize = 64;

/// Output settings.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DualConfig {
    /// Number of candidates, and the threshold for abstaining.
    pub link: LinkConfig,
    /// Minimum span probability; the tuned value of the model if `None`.
    pub min_span: Option<f32>,
    /// Whether overlapping mentions are kept, as in the published model.
    pub nested: bool,
}

/// A dual encoder with the concept embeddings of one knowledge base.
#[derive(Debug)]
pub struct DualLinker {
    kb: Arc<KnowledgeBase>,
    encoder: DualEncoder,
    windower: Windower,
    rows: ConceptRows,
    index: FlatIndex,
    rows_of: HashMap<ConceptId, Range<usize>>,
    ranking: LexicalModel,
    fusion: Fusion,
    min_span: f32,
    joint: Option<Joint>,
    one_sense_weight: f32,
    name_evidence: Arc<NameEvidence>,
    config: DualConfig,
    subset: Option<Arc<Subset>>,
}

impl DualLinker {
    /// A linker to the concepts of `kb`, or to those in `subset`; `vectors` has one row for each row of the full [`ConceptRows`].
    ///
    /// # Panics
    /// If the number of vectors differs from the number of rows.
    pub fn new(
        kb: Arc<KnowledgeBase>,
        bundle: &DualBundle,
        vectors: Matrix,
        config: DualConfig,
        subset: Option<Arc<Subset>>,
    ) -> Result<DualLinker> {
        let manifest = &bundle.manifest;
        let mut rows = ConceptRows::of(&kb, manifest.concepts);
        assert_eq!(vectors.n_rows, rows.concepts.len(), "a vector for each row");
        let mut vectors = vectors;
        if let Some(subset) = &subset {
            let kept: Vec<usize> = (0..vectors.n_rows).filter(|row| subset.has(rows.concepts[*row])).collect();
            let values = kept.iter().flat_map(|row| vectors.row(*row).iter().copied()).collect();
            vectors = Matrix::new(kept.len(), vectors.n_cols, values);
            rows.concepts = kept.iter().map(|row| rows.concepts[*row]).collect();
            rows.names = kept.iter().map(|row| rows.names[*row]).collect();
        }
        let mut rows_of: HashMap<ConceptId, Range<usize>> = HashMap::new();
        for (row, concept) in rows.concepts.iter().enumerate() {
            rows_of.entry(*concept).or_insert(row..row).end = row + 1;
        }
        Ok(DualLinker {
            kb,
            encoder: bundle.encoder()?,
            windower: bundle.windower()?,
            rows,
            index: FlatIndex::by_inner_product(vectors),
            rows_of,
            ranking: bundle.lexical()?,
            fusion: manifest.fusion,
            min_span: config.min_span.unwrap_or(manifest.min_span),
            joint: manifest.joint,
            one_sense_weight: manifest.one_sense_weight,
            name_evidence: Arc::default(),
            config,
            subset,
        })
    }

    /// Adds the name scorer and the mention prior.
    #[must_use]
    pub fn with_name_evidence(self, name_evidence: Arc<NameEvidence>) -> DualLinker {
        DualLinker { name_evidence, ..self }
    }

    /// The knowledge base.
    pub fn kb(&self) -> &Arc<KnowledgeBase> {
        &self.kb
    }

    /// The candidates of each mention of each document, unordered.
    pub fn evidence(&self, inputs: &[LinkInput<'_>]) -> Result<Vec<Vec<Vec<Evidence>>>> {
        let mut all = Vec::with_capacity(inputs.len());
        for inputs in inputs.chunks(DOCUMENTS) {
            let windows: Vec<Windows> =
                inputs.par_iter().map(|marked| self.windows_of(marked)).collect::<Result<_>>()?;
            let (rows, places) = together(&windows);
            let known: Vec<(usize, usize, usize)> = places.iter().copied().flatten().collect();
            let vectors = self.encoder.encode_mentions(&rows, &known)?;
            let names: Vec<String> = inputs.iter().flat_map(|marked| self.names_of(marked)).collect();
            let mut compared = self.compare(&vectors, places.iter().map(Option::is_some), &names).into_iter();
            all.extend(inputs.iter().map(|marked| compared.by_ref().take(marked.mentions.len()).collect::<Vec<_>>()));
        }
        Ok(all)
    }

    /// Names of the mentions; empty strings if neither lexical fusion nor mention prior uses them.
    fn names_of(&self, marked: &LinkInput<'_>) -> Vec<String> {
        match self.is_fused() || !self.name_evidence.prior.is_empty() {
            true => marked.names(),
            false => vec![String::new(); marked.mentions.len()],
        }
    }

    fn is_fused(&self) -> bool {
        self.fusion.lexical != 0.0
    }

    fn windows_of(&self, marked: &LinkInput<'_>) -> Result<Windows> {
        let spans: Vec<Span> = marked.mentions.iter().map(Mention::hull).collect();
        self.windower.with_mentions(marked.document, &spans)
    }

    /// The candidates of each mention. `vectors` has a row only for mentions with `has_vector`; the others get no candidates.
    fn compare(
        &self,
        vectors: &Matrix,
        has_vector: impl Iterator<Item = bool>,
        names: &[String],
    ) -> Vec<Vec<Evidence>> {
        let mut next = 0;
        let row_of: Vec<Option<usize>> = has_vector
            .map(|has| {
                next += usize::from(has);
                has.then(|| next - 1)
            })
            .collect();
        let nearest = self.index.search(vectors, N_NEAREST);
        let name_scores =
            self.name_evidence.names.as_ref().filter(|_| self.is_fused()).map(|scorer| scorer.score(names));
        let one = |scratch: &mut GramScratch, mention: usize| match row_of[mention] {
            Some(row) => {
                let scores = name_scores.as_ref().map(|scores| (scores, mention));
                self.compare_one(vectors.row(row), &nearest[row], &names[mention], scores, scratch)
            }
            None => Vec::new(),
        };
        (0..row_of.len()).into_par_iter().map_init(GramScratch::default, one).collect()
    }

    fn compare_one(
        &self,
        vector: &[f32],
        nearest: &[crate::index::Hit],
        name: &str,
        name_scores: Option<(&NameScores<'_>, usize)>,
        scratch: &mut GramScratch,
    ) -> Vec<Evidence> {
        let product = |row: usize| dot(vector, &self.index.row(row));
        let products: Vec<f32> = nearest.iter().map(|hit| product(hit.row as usize)).collect();
        let log_sum = log_sum(&products);
        let mut best: Vec<(ConceptId, NameId, f32)> = Vec::with_capacity(nearest.len());
        for (hit, product) in nearest.iter().zip(&products) {
            let (concept, name) = (self.rows.concepts[hit.row as usize], self.rows.names[hit.row as usize]);
            // Hits are sorted by score, so the first of a concept is its best.
            if !best.iter().any(|(known, ..)| *known == concept) {
                best.push((concept, name, product - log_sum));
            }
        }
        if !self.is_fused() {
            let dense = |(concept, name, score): (ConceptId, NameId, f32)| Evidence {
                scored: Scored { concept, name, features: NO_FEATURES, score: 0.0 },
                dense_score: score,
                name_score: 0.0,
            };
            return best.into_iter().map(dense).collect();
        }
        best.truncate(N_DENSE);
        let view = KbView { kb: &self.kb, subset: self.subset.as_deref() };
        let near = name_scores.into_iter().flat_map(|(scores, at)| scores.forms(at));
        let forms: Vec<FormId> = best.iter().map(|(_, name, _)| self.kb.form_of(*name)).chain(near).collect();
        let mut scored = score_name_and(view, &self.ranking, name, &forms, scratch);
        best_of_each_concept(&mut scored);
        let evidence = |scored: Scored| {
            let known = best.iter().find(|(concept, ..)| *concept == scored.concept).map(|(.., score)| *score);
            let score = known.or_else(|| {
                let rows = self.rows_of.get(&scored.concept)?.clone();
                rows.map(product).max_by(f32::total_cmp).map(|product| product - log_sum)
            });
            let name_score = name_scores.map_or(0.0, |(scores, at)| scores.cosine(at, &self.kb, scored.concept));
            score.map(|score| Evidence { scored, dense_score: score, name_score })
        };
        scored.into_iter().filter_map(evidence).collect()
    }

    /// The link of each mention of a document and its candidates, best first.
    fn decide_all(
        &self,
        marked: &LinkInput<'_>,
        names: &[String],
        mut evidence: Vec<Vec<Evidence>>,
    ) -> Vec<(Link, Vec<Evidence>)> {
        if self.one_sense_weight > 0.0 {
            let word = |mention: &Mention| mention.surface(marked.document.text);
            let words: Vec<String> = marked.mentions.iter().map(word).collect();
            one_sense_per_discourse(&words, &mut evidence, self.one_sense_weight);
        }
        evidence.into_iter().zip(names).map(|(one, name)| self.decide(one, name)).collect()
    }

    /// Ranks candidates; returns the link, including the mention prior, and the candidates, best first.
    fn decide(&self, mut evidence: Vec<Evidence>, name: &str) -> (Link, Vec<Evidence>) {
        let score = |evidence: &Evidence| self.fusion.score(evidence);
        evidence.sort_by(|left, right| {
            score(right).total_cmp(&score(left)).then(left.scored.concept.cmp(&right.scored.concept))
        });
        let mut link = self.ranked(&evidence);
        if !self.name_evidence.prior.is_empty() {
            self.name_evidence.prior.weigh(name, &mut link.candidates);
            link.candidates.truncate(self.config.link.top_k.max(1));
            link.nil = link.candidates.first().is_none_or(|best| best.p_link < self.config.link.min_score);
        }
        (link, evidence)
    }

    /// The link from sorted candidates, without the mention prior.
    fn ranked(&self, evidence: &[Evidence]) -> Link {
        let ranked = evidence.iter().map(|one| Scored { score: self.fusion.score(one), ..one.scored });
        link_ranked(&ranked.collect::<Vec<_>>(), &self.fusion.calibration, &self.config.link)
    }

    /// Spans of each document with a mention probability of at least `min_probability`. `borders` are gold mention boundaries that leak into the
    /// tokenisation, as in the published evaluation.
    pub fn find(
        &self,
        documents: &[Analysis<'_>],
        borders: &[Vec<Span>],
        min_probability: f32,
    ) -> Result<Vec<Vec<(Span, f32)>>> {
        let mut all = Vec::with_capacity(documents.len());
        for (at, documents) in documents.chunks(DOCUMENTS).enumerate() {
            let borders = borders.get(at * DOCUMENTS..).unwrap_or_default();
            all.extend(self.search(documents, borders, min_probability)?.into_iter().map(|searched| {
                let span = |one: &TokenSpan| (span_of(&searched.windows, one), one.probability);
                searched.found.iter().map(span).collect()
            }));
        }
        Ok(all)
    }

    fn search(&self, documents: &[Analysis<'_>], borders: &[Vec<Span>], min_probability: f32) -> Result<Vec<Searched>> {
        let Some(search) = self.encoder.config.search else {
            let error = Error::unsupported("the model links given mentions; it cannot detect mentions");
            return Err(error.with_hint(
                "link given mentions (option `--mentions gold`), or use a model trained with `model.search`",
            ));
        };
        let divide = |at: usize| {
            let borders = borders.get(at).map_or(&[][..], Vec::as_slice);
            let windows = self.windower.without_mentions(&documents[at], borders);
            Searched { windows, found: Vec::new(), vectors: Matrix::zeros(0, self.encoder.dim()) }
        };
        let mut all: Vec<Searched> = (0..documents.len()).into_par_iter().map(divide).collect();
        let number = |(document, searched): (usize, &Searched)| {
            (0..searched.windows.rows.len()).map(move |window| (document, window)).collect::<Vec<_>>()
        };
        let windows: Vec<(usize, usize)> = all.iter().enumerate().flat_map(number).collect();
        let rows = |(document, window): &(usize, usize)| all[*document].windows.rows[*window].clone();
        let rows: Vec<Vec<u32>> = windows.iter().map(rows).collect();
        for group in groups(&rows) {
            let read = self.encoder.read(&rows[group.clone()])?;
            let scores = self.encoder.span_scores(&read);
            for (place, scores) in scores.iter().enumerate() {
                let (document, window) = windows[group.start + place];
                let Searched { windows, found, vectors } = &mut all[document];
                let range = windows.ranges[window].clone();
                let spans = match search {
                    SpanSearch::Exhaustive { longest } => likely_spans(scores, longest, min_probability),
                    SpanSearch::Tags => {
                        tagged_spans(scores, &begins_word(documents[document].text, &windows.tokens[range.clone()]))
                    }
                };
                let mut places = Vec::new();
                for span in spans.into_iter().filter(|span| span.probability >= min_probability) {
                    let (first, last) = (range.start + span.first, range.start + span.last);
                    // A span in several windows is taken from the window with the most context around it.
                    let here = home(&(first..last + 1), &windows.ranges, windows.tokens.len());
                    if here.is_some_and(|here| here.window == window) {
                        places.push((place, span.first + 1, span.last + 1));
                        found.push(TokenSpan { first, last, ..span });
                    }
                }
                let made = self.encoder.mention_vectors(&read, &places);
                vectors.values.extend(made.values);
                vectors.n_rows += made.n_rows;
            }
        }
        Ok(all)
    }
}

/// Spans found in a document.
struct Searched {
    windows: Windows,
    /// Spans, in wordpieces of the document.
    found: Vec<TokenSpan>,
    /// Embedding of each span.
    vectors: Matrix,
}

/// Byte offsets of a found span.
fn span_of(windows: &Windows, found: &TokenSpan) -> Span {
    Span { start: windows.tokens[found.first].start as u32, end: windows.tokens[found.last].end as u32 }
}

/// Whether each wordpiece begins a word: the character before it or its own first character is not alphanumeric.
pub fn begins_word(text: &str, tokens: &[crate::tokenizer::Token]) -> Vec<bool> {
    let is_inside = |c: char| c.is_alphanumeric();
    let begins = |piece: &crate::tokenizer::Token| {
        let before = text[..piece.start].chars().next_back();
        let first = text[piece.start..].chars().next();
        !(before.is_some_and(is_inside) && first.is_some_and(is_inside))
    };
    tokens.iter().map(begins).collect()
}

/// Concatenates the windows of several documents; returns them with the window, first and last wordpiece of each mention.
#[allow(clippy::type_complexity, reason = "one use")]
fn together(documents: &[Windows]) -> (Vec<&[u32]>, Vec<Option<(usize, usize, usize)>>) {
    let (mut rows, mut places) = (Vec::new(), Vec::new());
    for windows in documents {
        let first = rows.len();
        rows.extend(windows.rows.iter().map(Vec::as_slice));
        let place =
            |place: &crate::models::dual_encoder::windows::InWindow| (first + place.window, place.first, place.last);
        places.extend(windows.places.iter().map(|one| one.as_ref().map(place)));
    }
    (rows, places)
}

fn log_sum(values: &[f32]) -> f32 {
    let max = values.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    if max == f32::NEG_INFINITY {
        return 0.0;
    }
    max + values.iter().map(|value| (value - max).exp()).sum::<f32>().ln()
}

/// A detected mention with its link and candidates.
struct Decided {
    linked: LinkedMention,
    evidence: Vec<Evidence>,
    /// The name used for lexical fusion and mention prior.
    name: String,
}

impl DualLinker {
    /// Detected and linked mentions of each document, in text order; `borders` as in [`DualLinker::find`].
    fn decided(&self, documents: &[Analysis<'_>], borders: &[Vec<Span>]) -> Result<Vec<Vec<Decided>>> {
        // The joint model can keep spans below `min_span`.
        let min_probability = if self.joint.is_some() { self.min_span.min(joint::MIN_SPAN) } else { self.min_span };
        let searched = self.search(documents, borders, min_probability)?;
        let of_document = |(document, searched): (&Analysis<'_>, Searched)| {
            let Searched { windows, found, vectors } = searched;
            let mentions: Vec<Mention> = found.iter().map(|one| Mention::contiguous(span_of(&windows, one))).collect();
            let marked = LinkInput { document, mentions: &mentions };
            let names = self.names_of(&marked);
            let compared = self.compare(&vectors, found.iter().map(|_| true), &names);
            let links = self.decide_all(&marked, &names, compared);
            let all = found.iter().zip(mentions).zip(links).zip(names);
            let decide = |(((found, mention), link), name)| self.decided_one(found, mention, link, name);
            let decided: Vec<Option<Decided>> = all.map(decide).collect();
            let given: Vec<TokenSpan> = found
                .iter()
                .zip(&decided)
                .filter_map(|(found, decided)| Some((found, decided.as_ref()?)))
                .map(|(found, decided)| {
                    let probability = if self.joint.is_some() { decided.linked.p_both } else { found.probability };
                    TokenSpan { probability, ..*found }
                })
                .collect();
            let mut decided: Vec<Option<Decided>> = decided.into_iter().flatten().map(Some).collect();
            let kept = if self.config.nested { (0..given.len()).collect() } else { flat(&given) };
            let mut kept: Vec<Decided> = kept.into_iter().filter_map(|row| decided[row].take()).collect();
            kept.sort_by_key(|one| {
                let span = one.linked.mention.spans[0];
                (span.start, std::cmp::Reverse(span.end))
            });
            kept
        };
        Ok(documents.iter().zip(searched).map(of_document).collect())
    }

    /// A found span with its link; `None` if neither the span nor the joint probability reaches its threshold.
    fn decided_one(
        &self,
        found: &TokenSpan,
        mention: Mention,
        (mut link, evidence): (Link, Vec<Evidence>),
        name: String,
    ) -> Option<Decided> {
        let p_mention = found.probability;
        let p_link = link.candidates.first().map_or(0.0, |best| best.p_link);
        let p_both = match self.joint {
            Some(joint) => {
                let p_both = joint.probability(p_mention, p_link);
                if p_mention < self.min_span && p_both < joint.threshold {
                    return None;
                }
                link.nil |= p_both < joint.threshold.max(self.config.link.min_score);
                p_both
            }
            None => p_mention * p_link,
        };
        let semantic_type = link.candidates.first().and_then(|best| self.kb.types(best.concept).next());
        let semantic_type = semantic_type.map(str::to_owned);
        let linked = LinkedMention { mention: Mention { p_mention, semantic_type, ..mention }, link, p_both };
        Some(Decided { linked, evidence, name })
    }

    fn explanation(&self, name: &str, link: &Link, evidence: &[Evidence]) -> Explanation {
        let of_vectors = ("context", "mention-in-context embedding similarity (softmax over names)");
        if self.name_evidence.prior.is_empty() {
            return explain_ranked(&self.kb, &self.ranking, &self.fusion, name, of_vectors, evidence, link);
        }
        let before = self.ranked(evidence);
        let mut explanation =
            explain_ranked(&self.kb, &self.ranking, &self.fusion, name, of_vectors, evidence, &before);
        explain_prior(&self.kb, name, link, &mut explanation);
        explanation
    }
}

impl Linker for DualLinker {
    fn kb(&self) -> &KnowledgeBase {
        &self.kb
    }

    fn link(&self, inputs: &[LinkInput<'_>]) -> Result<Vec<Vec<Link>>> {
        let decide = |(evidence, marked): (Vec<Vec<Evidence>>, &LinkInput<'_>)| {
            let links = self.decide_all(marked, &self.names_of(marked), evidence);
            links.into_iter().map(|(link, _)| link).collect()
        };
        Ok(self.evidence(inputs)?.into_par_iter().zip(inputs).map(decide).collect())
    }

    fn explain(&self, inputs: &[LinkInput<'_>]) -> Result<Vec<Vec<(Link, Explanation)>>> {
        let explain = |(evidence, marked): (Vec<Vec<Evidence>>, &LinkInput<'_>)| {
            let links = self.decide_all(marked, &self.names_of(marked), evidence);
            let one = |((link, evidence), name): ((Link, Vec<Evidence>), String)| {
                let explanation = self.explanation(&name, &link, &evidence);
                (link, explanation)
            };
            links.into_iter().zip(marked.names()).map(one).collect()
        };
        Ok(self.evidence(inputs)?.into_par_iter().zip(inputs).map(explain).collect())
    }
}

impl Annotator for DualLinker {
    fn kb(&self) -> &KnowledgeBase {
        &self.kb
    }

    fn annotate(&self, documents: &[Analysis<'_>]) -> Result<Vec<Vec<LinkedMention>>> {
        self.annotate_leaky(documents, &[])
    }

    fn explain(&self, documents: &[Analysis<'_>]) -> Result<Vec<Vec<(LinkedMention, Explanation)>>> {
        let explain = |document: &Analysis<'_>, one: Decided| {
            let Decided { linked, evidence, name } = one;
            let name = if name.is_empty() { linked.mention.surface(document.text) } else { name };
            let mut explanation = self.explanation(&name, &linked.link, &evidence);
            explain_mention(&self.kb, &mut explanation, &linked);
            (linked, explanation)
        };
        let mut all = Vec::with_capacity(documents.len());
        for documents in documents.chunks(DOCUMENTS) {
            let decided = self.decided(documents, &[])?.into_iter().zip(documents);
            all.extend(decided.map(|(found, document)| found.into_iter().map(|one| explain(document, one)).collect()));
        }
        Ok(all)
    }
}

impl LeakyAnnotator for DualLinker {
    fn annotate_leaky(&self, documents: &[Analysis<'_>], borders: &[Vec<Span>]) -> Result<Vec<Vec<LinkedMention>>> {
        let mut all = Vec::with_capacity(documents.len());
        for (at, documents) in documents.chunks(DOCUMENTS).enumerate() {
            let decided = self.decided(documents, borders.get(at * DOCUMENTS..).unwrap_or_default())?;
            all.extend(decided.into_iter().map(|found| found.into_iter().map(|one| one.linked).collect()));
        }
        Ok(all)
    }
}

#[cfg(test)]
mod tests;
