//! The generative linker as a model of a system: its bundle, the names of a terminology, and its linker.

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
use super::lexical::{Lexical, lexical_learned};
use super::linked::MentionSource;
use super::names::NameModel;
use super::{LinkingModel, Target};
use crate::bundle::generative::{Calibration, Candidates, GenerativeBundle, GenerativeManifest, Ranking, SYSTEM};
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
        let names = match self.manifest.candidates {
            Some(_) => NameTrie::of(&on.kb, [], &self.coder()?),
            None => NameTrie::new(&on.kb, on.subset.as_deref(), &self.coder()?),
        };
        let names = Arc::new(names);
        Ok(GenerativeLinker { config, ..self.linker_of(on, names)? })
    }

    /// The linker of a knowledge base whose names are known.
    ///
    /// # Errors
    /// If weights are missing.
    pub fn linker_of(&self, on: &Target, names: Arc<NameTrie>) -> Result<GenerativeLinker> {
        let model = EncoderDecoder::new(&self.manifest.model, &self.parameters)?;
        let GenerativeManifest { beams, ranking, calibration, candidates, .. } = self.manifest;
        let (coder, config) = (self.coder()?, LinkConfig::default());
        let first_stage = |config: Candidates| {
            let link = LinkConfig { top_k: config.n, min_score: 0.0 };
            Ok::<_, canonym_core::Error>(FirstStage { linker: Lexical::embedded().linker(on, link)?, config })
        };
        let candidates = candidates.map(first_stage).transpose()?;
        let kb = on.kb.clone();
        Ok(GenerativeLinker { kb, model, coder, names, beams, ranking, calibration, candidates, config })
    }
}

/// The names of a knowledge base as a trie.
#[derive(Debug, Default)]
pub struct NameTrie {
    trie: Trie,
    /// Concepts of each name, the most specific first.
    concepts: Vec<Vec<ConceptId>>,
    /// Plain names.
    names: Vec<String>,
    /// Number of names that the model cannot write.
    n_unwritten: usize,
}

/// A plain name of a concept, ordered as concepts of the same name are.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct NameOfConcept {
    name: String,
    is_synonym: bool,
    n_names: usize,
    concept: ConceptId,
}

impl NameTrie {
    /// Builds the trie of the names of all concepts, or those of a subset.
    pub fn new(kb: &KnowledgeBase, subset: Option<&Subset>, coder: &Coder) -> NameTrie {
        let stage = Stage::start();
        let kept = kb.concepts().filter(|concept| subset.is_none_or(|subset| subset.has(*concept)));
        let names = NameTrie::of(kb, kept, coder);
        let (n, n_nodes, n_bytes) = (names.names.len(), names.trie.len(), names.trie.n_bytes());
        let n_unwritten = names.n_unwritten;
        stage
            .done(format_args!("trie of {n} names: {n_nodes} nodes, {n_bytes} bytes; {n_unwritten} cannot be written"));
        names
    }

    /// Builds the trie of the names of concepts. A name of several concepts stands first for the one that has it as its preferred name, then
    /// for the one with the fewest names (published code), in the order of the knowledge base.
    pub fn of(kb: &KnowledgeBase, concepts: impl IntoIterator<Item = ConceptId>, coder: &Coder) -> NameTrie {
        let mut all: Vec<NameOfConcept> = Vec::new();
        for concept in concepts {
            let n_names = kb.names(concept).count();
            all.extend(kb.names(concept).enumerate().map(|(at, name)| NameOfConcept {
                name: plain_name(kb.name(name)),
                is_synonym: at > 0,
                n_names,
                concept,
            }));
        }
        all.par_sort_unstable();
        let groups: Vec<&[NameOfConcept]> = all.chunk_by(|left, right| left.name == right.name).collect();
        let tokens: Vec<Option<Vec<u32>>> = groups.par_iter().map(|group| coder.name(&group[0].name)).collect();
        let mut written =
            NameTrie { n_unwritten: tokens.iter().filter(|tokens| tokens.is_none()).count(), ..NameTrie::default() };
        let mut lists = TokenLists::default();
        for (group, tokens) in groups.iter().zip(tokens) {
            let Some(tokens) = tokens else { continue };
            lists.push(tokens);
            written.names.push(group[0].name.clone());
            let mut concepts: Vec<ConceptId> = Vec::with_capacity(group.len());
            for one in *group {
                if !concepts.contains(&one.concept) {
                    concepts.push(one.concept);
                }
            }
            written.concepts.push(concepts);
        }
        written.trie = Trie::new(&lists);
        written
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
    /// Probability of the lexical linker, if the concept is one of its candidates.
    pub lexical: Option<f32>,
}

/// Candidates to choose from.
struct FirstStage {
    linker: Box<dyn Linker>,
    config: Candidates,
}

impl FirstStage {
    /// Log-odds that a concept is right.
    fn odds(&self, one: &GeneratedConcept) -> f32 {
        let Candidates { score, lexical, bias, .. } = self.config;
        score * one.score + lexical * log_odds(one.lexical.unwrap_or(0.0)) + bias
    }

    /// Adds the evidence of the first stage, and the candidates that were not written; ranks by both.
    fn join(&self, found: &mut Vec<GeneratedConcept>, link: &Link) {
        let worst = found.iter().map(|one| one.score).fold(f32::INFINITY, f32::min).min(UNWRITTEN);
        for candidate in &link.candidates {
            let lexical = Some(candidate.p_link);
            match found.iter_mut().find(|one| one.concept == candidate.concept) {
                Some(one) => one.lexical = lexical,
                None => found.push(GeneratedConcept {
                    concept: candidate.concept,
                    name: String::new(),
                    score: worst,
                    share: 0.0,
                    lexical,
                }),
            }
        }
        found.sort_by(|left, right| self.odds(right).total_cmp(&self.odds(left)));
    }
}

/// Mean log-probability of a candidate that was not written, if all that were are likelier.
const UNWRITTEN: f32 = -6.0;

/// Links by writing names.
pub struct GenerativeLinker {
    kb: Arc<KnowledgeBase>,
    model: EncoderDecoder,
    coder: Coder,
    names: Arc<NameTrie>,
    beams: BeamConfig,
    ranking: Ranking,
    calibration: Calibration,
    candidates: Option<FirstStage>,
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
        let Some(candidates) = &self.candidates else {
            let tries = vec![&*self.names; inputs.iter().map(|input| input.mentions.len()).sum()];
            return self.written(inputs, &tries, &self.beams);
        };
        let links = candidates.linker.link(inputs)?;
        let links: Vec<&Link> = links.iter().flatten().collect();
        let names = |link: &&Link| {
            let concepts = link.candidates.iter().map(|candidate| candidate.concept);
            NameTrie::of(&self.kb, concepts, &self.coder)
        };
        let tries: Vec<NameTrie> = links.par_iter().map(names).collect();
        let tries: Vec<&NameTrie> = tries.iter().collect();
        // So many that hardly any candidate is lost.
        let beams = BeamConfig { n_beams: self.beams.n_beams.max(2 * candidates.config.n), double: true, ..self.beams };
        let mut found = self.written(inputs, &tries, &beams)?;
        for (found, link) in found.iter_mut().flatten().zip(links) {
            candidates.join(found, link);
        }
        Ok(found)
    }

    /// The concepts of the names that are written for each mention, given the names that it may become.
    fn written(
        &self,
        inputs: &[LinkInput<'_>],
        tries: &[&NameTrie],
        beams: &BeamConfig,
    ) -> Result<Vec<Vec<Vec<GeneratedConcept>>>> {
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
                some.iter().map(|at| Task { prompt: &flat[*at].1, trie: tries[*at].trie() }).collect();
            let names = search(&mut self.model.begin(&sources)?, &tasks, beams)?;
            some.iter().zip(names).for_each(|(at, names)| found[*at] = self.concepts(tries[*at], &names));
        }
        let mut found = found.into_iter();
        Ok(written.iter().map(|mentions| found.by_ref().take(mentions.len()).collect()).collect())
    }

    fn concepts(&self, tried: &NameTrie, names: &[Found]) -> Vec<GeneratedConcept> {
        let max = names.iter().map(|name| name.log_probability).fold(f32::NEG_INFINITY, f32::max);
        let weight = |name: &Found| (name.log_probability - max).exp();
        let total: f32 = names.iter().map(weight).sum();
        let mut all: Vec<GeneratedConcept> = Vec::new();
        for name in names {
            // Names that differ in letters that the vocabulary does not tell apart end at the same leaf.
            let rows: Vec<usize> = tried.trie.ending_at(name.leaf).map(|row| row as usize).collect();
            let n_concepts: usize = rows.iter().map(|row| tried.concepts[*row].len()).sum();
            let share = weight(name) / total / n_concepts.max(1) as f32;
            for (row, concept) in rows.iter().flat_map(|row| tried.concepts[*row].iter().map(move |one| (*row, one))) {
                match all.iter_mut().find(|known| known.concept == *concept) {
                    Some(known) => known.share += share,
                    None => all.push(GeneratedConcept {
                        concept: *concept,
                        name: tried.names[row].clone(),
                        score: name.score,
                        share,
                        lexical: None,
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
        let probability = |one: &GeneratedConcept| match &self.candidates {
            Some(candidates) => sigmoid(candidates.odds(one)),
            None => sigmoid(share * log_odds(one.share) + score * one.score + bias),
        };
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
                let first = self.kb.names(one.concept).next();
                let name =
                    self.kb.names(one.concept).find(|name| plain_name(self.kb.name(*name)) == one.name).or(first)?;
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
        if self.0.manifest.candidates.is_some() {
            all.join("candidates", lexical_learned()?.as_ref());
        }
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
