//! The generative linker as a model of a system: its bundle, the names of a terminology, and its linker.

use std::collections::BTreeMap;
use std::sync::Arc;

use canonym_core::Result;
use canonym_core::eval::learned::Learned;
use canonym_core::kb::subset::Subset;
use canonym_core::kb::{ConceptId, KnowledgeBase};
use canonym_core::link::explain::{Explanation, contribution, explained};
use canonym_core::link::lexical::LinkConfig;
use canonym_core::link::recognise::RecogniseConfig;
use canonym_core::link::{Annotator, Candidate, Link, LinkInput, Linker};
use canonym_core::text::Mention;
use canonym_core::text::abbreviations::find_abbreviations;
use rayon::prelude::*;

use super::detect_then_link::DetectThenLink;
use super::info::ModelInfo;
use super::linked::MentionSource;
use super::names::NameModel;
use super::{LinkingModel, Target};
use crate::bundle::generative::{Calibration, GenerativeBundle, GenerativeManifest, Ranking, SYSTEM};
use crate::models::bert::Sequences;
use crate::models::generative::beam::{BeamConfig, Found, Task, search};
use crate::models::generative::decoder::EncoderDecoder;
use crate::models::generative::text::{Coder, plain_name};
use crate::models::generative::trie::{TokenLists, Trie};
use crate::models::joint::log_odds;
use crate::status::Stage;
use crate::tensor::elementwise::sigmoid;

/// Mentions that are decoded together.
const MENTIONS: usize = 32;

impl GenerativeBundle {
    /// The linker of a knowledge base.
    ///
    /// # Errors
    /// If weights are missing.
    pub fn linker(&self, on: &Target, config: LinkConfig) -> Result<GenerativeLinker> {
        let names = Arc::new(NameTrie::new(&on.kb, on.subset.as_deref(), &self.coder()?));
        Ok(GenerativeLinker { config, ..self.linker_of(on, names)? })
    }

    /// The linker of a knowledge base whose names are known.
    ///
    /// # Errors
    /// If weights are missing.
    pub fn linker_of(&self, on: &Target, names: Arc<NameTrie>) -> Result<GenerativeLinker> {
        let model = EncoderDecoder::new(&self.manifest.model, &self.parameters)?;
        let GenerativeManifest { beams, ranking, calibration, .. } = self.manifest;
        let (coder, config) = (self.coder()?, LinkConfig::default());
        Ok(GenerativeLinker { kb: on.kb.clone(), model, coder, names, beams, ranking, calibration, config })
    }
}

/// The names of a knowledge base as a trie.
#[derive(Debug)]
pub struct NameTrie {
    trie: Trie,
    /// Concepts of each name, the most specific first.
    concepts: Vec<Vec<ConceptId>>,
    /// Plain names.
    names: Vec<String>,
    /// Number of names that the model cannot write.
    n_unwritten: usize,
}

impl NameTrie {
    /// Builds the trie of the names of all concepts, or those of a subset. A name of several concepts stands first for the one that has it as
    /// its preferred name, then for the one with the fewest names (published code), in the order of the knowledge base.
    pub fn new(kb: &KnowledgeBase, subset: Option<&Subset>, coder: &Coder) -> NameTrie {
        let stage = Stage::start();
        let mut concepts_of: BTreeMap<String, Vec<(bool, usize, ConceptId)>> = BTreeMap::new();
        for concept in kb.concepts().filter(|concept| subset.is_none_or(|subset| subset.has(*concept))) {
            let n_names = kb.names(concept).count();
            for (at, name) in kb.names(concept).enumerate() {
                let known = concepts_of.entry(plain_name(kb.name(name))).or_default();
                if known.iter().all(|(.., other)| *other != concept) {
                    known.push((at > 0, n_names, concept));
                }
            }
        }
        let mut all: Vec<(String, Vec<(bool, usize, ConceptId)>)> = concepts_of.into_iter().collect();
        let n = all.len();
        let tokens: Vec<Option<Vec<u32>>> = all.par_iter().map(|(name, _)| coder.name(name)).collect();
        let mut written = tokens.iter().map(Option::is_some);
        all.retain(|_| written.next().unwrap_or(false));
        let lists: TokenLists = tokens.into_iter().flatten().collect();
        let trie = Trie::new(&lists);
        let sorted = |mut concepts: Vec<(bool, usize, ConceptId)>| {
            concepts.sort_unstable();
            concepts.into_iter().map(|(.., concept)| concept).collect()
        };
        let n_unwritten = n - all.len();
        let (names, concepts) = all.into_iter().map(|(name, concepts)| (name, sorted(concepts))).unzip();
        let (n_nodes, n_bytes) = (trie.len(), trie.n_bytes());
        stage
            .done(format_args!("trie of {n} names: {n_nodes} nodes, {n_bytes} bytes; {n_unwritten} cannot be written"));
        NameTrie { trie, concepts, names, n_unwritten }
    }

    /// The trie.
    pub fn trie(&self) -> &Trie {
        &self.trie
    }

    /// Number of names that the model cannot write: too long, or with unknown characters.
    pub fn n_unwritten(&self) -> usize {
        self.n_unwritten
    }
}

/// A concept that was found for a mention.
#[derive(Debug, Clone, PartialEq)]
pub struct GeneratedConcept {
    /// The concept.
    pub concept: ConceptId,
    /// Its best name, as it was written.
    pub name: String,
    /// Mean log-probability of its best name.
    pub score: f32,
    /// Its share of the probability of all names that were found.
    pub share: f32,
}

/// Links by writing names.
#[derive(Debug)]
pub struct GenerativeLinker {
    kb: Arc<KnowledgeBase>,
    model: EncoderDecoder,
    coder: Coder,
    names: Arc<NameTrie>,
    beams: BeamConfig,
    ranking: Ranking,
    calibration: Calibration,
    config: LinkConfig,
}

impl GenerativeLinker {
    /// The names of the knowledge base.
    pub fn names(&self) -> &NameTrie {
        &self.names
    }

    /// The concepts found for each mention, best first.
    ///
    /// # Errors
    /// If the model cannot take a text.
    pub fn generate(&self, inputs: &[LinkInput<'_>]) -> Result<Vec<Vec<Vec<GeneratedConcept>>>> {
        let written = |input: &LinkInput<'_>| {
            let text = &input.document.text;
            let abbreviations = find_abbreviations(text);
            let one = |mention: &Mention| {
                let surface = mention.surface(text);
                // A short form is replaced by its long form, exactly as written (published code).
                let defined = abbreviations.iter().find(|one| one.short.of(text) == surface);
                let surface = defined.map_or(surface, |one| one.long.of(text).to_owned());
                (self.coder.mention_source(text, mention.hull(), &surface), self.coder.prompt(&surface))
            };
            input.mentions.iter().map(one).collect::<Vec<_>>()
        };
        let written: Vec<Vec<(Vec<u32>, Vec<u32>)>> = inputs.par_iter().map(written).collect();
        // Mentions of similar length are decoded together.
        let flat: Vec<&(Vec<u32>, Vec<u32>)> = written.iter().flatten().collect();
        let mut order: Vec<usize> = (0..flat.len()).collect();
        order.sort_by_key(|at| (flat[*at].1.len(), flat[*at].0.len()));
        let mut found: Vec<Vec<GeneratedConcept>> = vec![Vec::new(); flat.len()];
        for some in order.chunks(MENTIONS) {
            let sources = Sequences::pack(some.iter().map(|at| flat[*at].0.as_slice()));
            let tasks: Vec<Task<'_>> =
                some.iter().map(|at| Task { prompt: &flat[*at].1, trie: self.names.trie() }).collect();
            let names = search(&mut self.model.begin(&sources)?, &tasks, &self.beams)?;
            some.iter().zip(names).for_each(|(at, names)| found[*at] = self.concepts(&names));
        }
        let mut found = found.into_iter();
        Ok(written.iter().map(|mentions| found.by_ref().take(mentions.len()).collect()).collect())
    }

    fn concepts(&self, names: &[Found]) -> Vec<GeneratedConcept> {
        let greatest = names.iter().map(|name| name.log_probability).fold(f32::NEG_INFINITY, f32::max);
        let weight = |name: &Found| (name.log_probability - greatest).exp();
        let total: f32 = names.iter().map(weight).sum();
        let mut all: Vec<GeneratedConcept> = Vec::new();
        for name in names {
            let Some(row) = self.names.trie.ending_at(name.leaf).next() else { continue };
            for concept in &self.names.concepts[row as usize] {
                let share = weight(name) / total;
                match all.iter_mut().find(|known| known.concept == *concept) {
                    Some(known) => known.share += share,
                    None => all.push(GeneratedConcept {
                        concept: *concept,
                        name: self.names.names[row as usize].clone(),
                        score: name.score,
                        share,
                    }),
                }
            }
        }
        if self.ranking == Ranking::Sum {
            all.sort_by(|left, right| right.share.total_cmp(&left.share));
        }
        all
    }

    fn link_of(&self, concepts: &[GeneratedConcept]) -> Link {
        let Calibration { share, score, bias } = self.calibration;
        let probability = |one: &GeneratedConcept| sigmoid(share * log_odds(one.share) + score * one.score + bias);
        let candidate =
            |one: &GeneratedConcept| Candidate { concept: one.concept, name: None, p_link: probability(one) };
        let mut candidates: Vec<Candidate> = concepts.iter().take(self.config.top_k.max(1)).map(candidate).collect();
        // Calibration keeps the order of the ranking.
        for at in 1..candidates.len() {
            candidates[at].p_link = candidates[at].p_link.min(candidates[at - 1].p_link);
        }
        let nil = candidates.first().is_none_or(|best| best.p_link < self.config.min_score);
        Link { nil, candidates }
    }
}

impl Linker for GenerativeLinker {
    fn kb(&self) -> &KnowledgeBase {
        &self.kb
    }

    fn link(&self, inputs: &[LinkInput<'_>]) -> Result<Vec<Vec<Link>>> {
        let links = |found: Vec<Vec<GeneratedConcept>>| found.iter().map(|concepts| self.link_of(concepts)).collect();
        Ok(self.generate(inputs)?.into_iter().map(links).collect())
    }

    fn explain(&self, inputs: &[LinkInput<'_>]) -> Result<Vec<Vec<(Link, Explanation)>>> {
        let of_mention = |compared: String, found: &Vec<GeneratedConcept>| {
            let link = self.link_of(found);
            let explain = |(candidate, one): (&Candidate, &GeneratedConcept)| {
                let name = self.kb.names(one.concept).find(|name| plain_name(self.kb.name(*name)) == one.name)?;
                let odds = f64::from(log_odds(candidate.p_link));
                let what = "mean log-probability of the name that the model wrote";
                let part = contribution("written", what, f64::from(one.score), odds);
                Some(explained(&self.kb, &compared, name, one.concept, candidate.p_link, vec![part]))
            };
            let candidates = link.candidates.iter().zip(found).filter_map(explain).collect();
            (link, Explanation { compared: compared.clone(), candidates, ..Explanation::default() })
        };
        let of_document = |(input, found): (&LinkInput<'_>, Vec<Vec<GeneratedConcept>>)| {
            let each = input.mentions.iter().zip(&found);
            each.map(|(mention, found)| of_mention(mention.surface(&input.document.text), found)).collect()
        };
        Ok(inputs.iter().zip(self.generate(inputs)?).map(of_document).collect())
    }
}

/// The model of a bundle.
#[derive(Debug)]
pub struct GenerativeModel(pub Arc<GenerativeBundle>);

impl LinkingModel for GenerativeModel {
    fn info(&self) -> ModelInfo {
        ModelInfo::of_file(&*self.0)
    }

    fn learned(&self, mentions: MentionSource) -> Result<Learned> {
        let mut all = Learned::default();
        all.join_whole(SYSTEM, self.0.learned.as_ref());
        if mentions == MentionSource::Detect {
            all.join("mentions", Some(&NameModel::embedded()?.learned(mentions)?));
        }
        Ok(all)
    }

    fn linker(&self, on: &Target, config: LinkConfig) -> Result<Box<dyn Linker>> {
        Ok(Box::new(self.0.linker(on, config)?))
    }

    fn annotator(&self, on: &Target, config: RecogniseConfig) -> Result<Box<dyn Annotator>> {
        let link = LinkConfig { top_k: config.top_k, min_score: 0.0 };
        let linker = Box::new(self.0.linker(on, link)?);
        Ok(Box::new(DetectThenLink::new(on, &NameModel::embedded()?, linker, None, config)?))
    }

    fn uses_dictionary(&self) -> bool {
        true
    }
}
