//! The generative linker as a model of a system: its bundle, the names of a terminology, and its linker.

mod names;

use std::sync::Arc;

use canonym_core::Result;
use canonym_core::eval::learned::Learned;
use canonym_core::kb::{ConceptId, KnowledgeBase, NameId};
use canonym_core::link::explain::{Contribution, Explanation, contribution, explained};
use canonym_core::link::lexical::LinkConfig;
use canonym_core::link::recognise::RecogniseConfig;
use canonym_core::link::{Annotator, Candidate, Link, LinkInput, Linker};
use canonym_core::text::Mention;
pub use names::NameTrie;
use rayon::prelude::*;

use super::detect_then_link::DetectThenLink;
use super::info::ModelInfo;
use super::lexical::{Lexical, lexical_learned};
use super::linked::MentionSource;
use super::names::PipelineModel;
use super::{LinkingModel, Target};
use crate::bundle::generative::{Calibration, Candidates, GenerativeBundle, GenerativeManifest, Ranking, SYSTEM};
use crate::models::bert::Sequences;
use crate::models::generative::beam::{BeamConfig, Found, Task, search};
use crate::models::generative::decoder::EncoderDecoder;
use crate::models::generative::text::Coder;
use crate::models::joint::log_odds;
use crate::tensor::elementwise::sigmoid;

/// Greatest number of mentions that are decoded together.
const MENTIONS: usize = 32;

/// Hypotheses that are decoded together, each with the probabilities of the whole vocabulary: this bounds memory.
const HYPOTHESES: usize = 160;

/// Mean log-probability of a candidate that was not written, if all that were are likelier.
const UNWRITTEN: f32 = -6.0;

impl GenerativeBundle {
    /// The linker of a knowledge base.
    ///
    /// # Errors
    /// If weights are missing.
    pub fn linker(&self, on: &Target, config: LinkConfig) -> Result<GenerativeLinker> {
        let names = match self.manifest.candidates {
            Some(Candidates { any_name: false, .. }) => NameTrie::default(),
            _ => NameTrie::new(&on.kb, on.subset.as_deref(), &self.coder()?),
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

/// A concept that was found for a mention.
#[derive(Debug, Clone, PartialEq)]
pub struct GeneratedConcept {
    /// The concept.
    pub concept: ConceptId,
    /// Its best name that was written; `None` if it is a candidate of which no name was.
    pub name: Option<NameId>,
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
        self.terms(one).iter().sum()
    }

    /// The terms of the log-odds: the score, the lexical linker, the constant.
    fn terms(&self, one: &GeneratedConcept) -> [f32; 3] {
        let Candidates { score, lexical, beyond, bias, .. } = self.config;
        [score * one.score, one.lexical.map_or(beyond, |p_link| lexical * log_odds(p_link)), bias]
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
                    name: None,
                    score: worst,
                    share: 0.0,
                    lexical,
                }),
            }
        }
        found.sort_by(|left, right| self.odds(right).total_cmp(&self.odds(left)));
    }
}

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
        if candidates.config.any_name {
            let tries = vec![&*self.names; tries.len()];
            let of_any_name = self.written(inputs, &tries, &self.beams)?;
            found
                .iter_mut()
                .flatten()
                .zip(of_any_name.into_iter().flatten())
                .for_each(|(found, more)| add(found, more));
        }
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
            let abbreviations = input.document.abbreviations();
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
        for some in order.chunks(n_together(beams)) {
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
            let share = weight(name) / total / tried.ending_at(name.leaf).count().max(1) as f32;
            for written in tried.ending_at(name.leaf) {
                let concept = self.kb.concept_of(written);
                match all.iter_mut().find(|known| known.concept == concept) {
                    Some(known) => known.share += share,
                    None => all.push(GeneratedConcept {
                        concept,
                        name: Some(written),
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
        let probability = |one: &GeneratedConcept| match &self.candidates {
            Some(candidates) => sigmoid(candidates.odds(one)),
            None => sigmoid(self.calibrated(one).iter().sum()),
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

    /// The terms of the log-odds without candidates: the share, the score, the constant.
    fn calibrated(&self, one: &GeneratedConcept) -> [f32; 3] {
        let Calibration { share, score, bias } = self.calibration;
        [share * log_odds(one.share), score * one.score, bias]
    }

    /// The terms of the log-odds of a concept for people.
    fn contributions(&self, one: &GeneratedConcept, p_link: f32) -> Vec<Contribution> {
        let part = |feature: &str, sentence: &str, value: f32, log_odds: f32| {
            contribution(feature, sentence, f64::from(value), f64::from(log_odds))
        };
        let written = match one.name {
            Some(_) => "mean log-probability of the name that the model wrote",
            None => "no name was written: assumed mean log-probability",
        };
        let mut all = match &self.candidates {
            Some(candidates) => {
                let [score, lexical, bias] = candidates.terms(one);
                let lexical = match one.lexical {
                    Some(p_link) => part("lexical", "probability by the lexical linker", p_link, lexical),
                    None => part("beyond", "no candidate of the lexical linker", 1.0, lexical),
                };
                vec![part("written", written, one.score, score), lexical, part("offset", "baseline", 1.0, bias)]
            }
            None => {
                let [share, score, bias] = self.calibrated(one);
                let sentence = "probability of its names among all names that were written";
                vec![
                    part("share", sentence, one.share, share),
                    part("written", written, one.score, score),
                    part("offset", "baseline", 1.0, bias),
                ]
            }
        };
        let sum: f64 = all.iter().map(|one| one.log_odds).sum();
        // A candidate is never more probable than its predecessor.
        if p_link < sigmoid(sum as f32) - 1e-3 {
            let limit = log_odds(p_link) - sum as f32;
            all.push(part("limit", "limited to the score of the candidate above", 1.0, limit));
        }
        all
    }
}

/// Adds the concepts of names from a second search. Of a concept that both found, the better name counts.
fn add(found: &mut Vec<GeneratedConcept>, more: Vec<GeneratedConcept>) {
    for one in more {
        match found.iter_mut().find(|known| known.concept == one.concept) {
            Some(known) if known.score < one.score => *known = one,
            Some(_) => {}
            None => found.push(one),
        }
    }
}

/// Number of mentions that are decoded together.
fn n_together(beams: &BeamConfig) -> usize {
    (HYPOTHESES / beams.n_beams.max(1)).clamp(1, MENTIONS)
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
                let name = one.name.or_else(|| self.kb.names(one.concept).next())?;
                let parts = self.contributions(one, candidate.p_link);
                Some(explained(&self.kb, &compared, name, candidate, parts))
            };
            let candidates = link.candidates.iter().zip(found).filter_map(explain).collect();
            (link, Explanation { compared: compared.clone(), candidates, ..Explanation::default() })
        };
        let of_document = |(input, found): (&LinkInput<'_>, Vec<Vec<GeneratedConcept>>)| {
            let each = input.mentions.iter().zip(&found);
            each.map(|(mention, found)| of_mention(mention.surface(input.document.text), found)).collect()
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
            all.join("mentions", Some(&PipelineModel::embedded()?.learned(mentions)?));
        }
        Ok(all)
    }

    fn linker(&self, on: &Target, config: LinkConfig) -> Result<Box<dyn Linker>> {
        Ok(Box::new(self.0.linker(on, config)?))
    }

    fn annotator(&self, on: &Target, config: RecogniseConfig) -> Result<Box<dyn Annotator>> {
        let link = LinkConfig { top_k: config.top_k, min_score: 0.0 };
        let linker = Box::new(self.0.linker(on, link)?);
        Ok(Box::new(DetectThenLink::new(on, &PipelineModel::embedded()?, linker, None, config)?))
    }

    fn uses_dictionary(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests;
