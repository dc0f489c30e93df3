//! Evaluates a generative linker on given mentions, by sub-population, and calibrates it.

use std::collections::{BTreeMap, HashMap, HashSet};

use canonym_core::corpus::{AnnotatedDocument, Annotation};
use canonym_core::eval::Surface;
use canonym_core::eval::bootstrap::SplitMix64;
use canonym_core::eval::ids::IdSet;
use canonym_core::eval::ranking::{RankedMention, RankingConfig, RankingScores, rank};
use canonym_core::kb::KnowledgeBase;
use canonym_core::link::LinkInput;
use canonym_core::link::fit::logistic;
use canonym_core::text::Mention;
use canonym_core::text::analysis::Analysis;
use serde::Serialize;

use crate::bundle::generative::{Calibration, Candidates};
use crate::models::generative::text::plain_name;
use crate::models::joint::log_odds;
use crate::system::generative::{GeneratedConcept, GenerativeLinker};
use crate::system::terminology::{all_ids, bare};

/// Seed of the confidence intervals.
const SEED: u64 = 13;

/// Penalty of the calibration.
const PENALTY: f64 = 1e-3;

/// Number of training mentions from which a concept is popular.
const POPULAR: usize = 50;

/// Gold mentions, and the concepts that were found for them.
pub struct Answers {
    mentions: Vec<RankedMention>,
    best: Vec<Option<GeneratedConcept>>,
}

/// Scores on the linked mentions of documents.
#[derive(Debug, Serialize)]
pub struct LinkingReport {
    /// All mentions; those without a concept in the terminology are wrong.
    pub all: RankingScores,
    /// Mentions whose concept the terminology has.
    pub linkable: RankingScores,
    /// Accuracy@1 by kind of mention.
    pub by_kind: BTreeMap<&'static str, RankingScores>,
    /// Number of unlinked gold mentions, which are left out.
    pub n_nil: u64,
}

/// What was seen in training.
#[derive(Debug, Default)]
pub struct Known {
    names: HashSet<String>,
    concepts: HashMap<String, usize>,
}

impl Known {
    /// The mentions and concepts of training documents.
    pub fn of(documents: &[AnnotatedDocument]) -> Known {
        let mut known = Known::default();
        for annotation in documents.iter().flat_map(|document| &document.annotations) {
            known.names.insert(plain_name(&annotation.text));
            for id in IdSet::parse(&annotation.ids).iter() {
                *known.concepts.entry(bare(id).to_owned()).or_default() += 1;
            }
        }
        known
    }

    /// Kinds of a mention, which may have several.
    fn kinds(&self, mention: &RankedMention) -> Vec<&'static str> {
        let name = plain_name(&mention.surface.text);
        let n_seen = mention.gold.iter().filter_map(|id| self.concepts.get(bare(id))).max().copied().unwrap_or(0);
        let mut kinds = vec![if name.contains(' ') { "several words" } else { "one word" }];
        kinds.push(if self.names.contains(&name) { "seen mention" } else { "unseen mention" });
        kinds.push(if n_seen > 0 { "seen concept" } else { "unseen concept" });
        if n_seen >= POPULAR {
            kinds.push("popular concept");
        }
        kinds
    }
}

/// Links the mentions of documents.
pub fn answer(
    linker: &GenerativeLinker,
    kb: &KnowledgeBase,
    documents: &[AnnotatedDocument],
) -> canonym_core::Result<Answers> {
    let mentions: Vec<Vec<Mention>> = documents.iter().map(mentions_of).collect();
    let analysed = Analysis::all(documents.iter().map(|document| &document.document));
    let inputs = LinkInput::all(&analysed, &mentions);
    let mut answers = Answers { mentions: Vec::new(), best: Vec::new() };
    for (document, found) in documents.iter().zip(linker.generate(&inputs)?) {
        for (annotation, found) in document.annotations.iter().zip(found) {
            let ids = |one: &GeneratedConcept| IdSet::parse(&all_ids(kb, one.concept, false));
            answers.mentions.push(RankedMention {
                document: document.document.id.clone(),
                gold: IdSet::parse(&annotation.ids),
                parts: vec![found.iter().map(ids).collect()],
                surface: Surface { text: annotation.text.clone(), ..Surface::default() },
                ..RankedMention::default()
            });
            answers.best.push(found.into_iter().next());
        }
    }
    Ok(answers)
}

/// Fits the weights of reranking on documents: how likely each candidate is right, given what was written and the lexical linker.
pub fn fit_candidates(
    linker: &GenerativeLinker,
    kb: &KnowledgeBase,
    documents: &[AnnotatedDocument],
    before: Candidates,
) -> canonym_core::Result<Candidates> {
    let mentions: Vec<Vec<Mention>> = documents.iter().map(mentions_of).collect();
    let analysed = Analysis::all(documents.iter().map(|document| &document.document));
    let found = linker.generate(&LinkInput::all(&analysed, &mentions))?;
    let mut points = Vec::new();
    for (document, found) in documents.iter().zip(found) {
        for (annotation, found) in document.annotations.iter().zip(found) {
            let gold = IdSet::parse(&annotation.ids);
            points.extend(found.iter().map(|one| {
                let right = IdSet::parse(&all_ids(kb, one.concept, false)).intersects(&gold);
                (features(one), right)
            }));
        }
    }
    if points.iter().all(|(_, right)| !*right) {
        return Ok(before);
    }
    let [score, lexical, beyond, bias] = logistic(&[&points], PENALTY);
    Ok(Candidates { score, lexical, beyond, bias, ..before })
}

/// What the probability of a concept depends on: score, log-odds of the lexical linker, whether it is none of its candidates, constant.
fn features(one: &GeneratedConcept) -> [f32; 4] {
    let (lexical, beyond) = one.lexical.map_or((0.0, 1.0), |p_link| (log_odds(p_link), 0.0));
    [one.score, lexical, beyond, 1.0]
}

fn mentions_of(document: &AnnotatedDocument) -> Vec<Mention> {
    document.annotations.iter().map(Annotation::mention).collect()
}

impl Answers {
    /// Accuracy and confidence intervals.
    pub fn report(&self, kb: &KnowledgeBase, known: &Known) -> LinkingReport {
        let ids: Vec<String> = kb.concepts().flat_map(|concept| all_ids(kb, concept, false)).collect();
        let kb_ids = canonym_core::eval::ids::known_ids(ids.iter().map(String::as_str));
        let config = RankingConfig { kb_ids: Some(kb_ids), depths: vec![1, 5], ..RankingConfig::default() };
        let scored = |mentions: &[RankedMention]| rank(mentions, &config, &mut SplitMix64::new(SEED));
        let mut by_kind: BTreeMap<&'static str, Vec<RankedMention>> = BTreeMap::new();
        for mention in self.mentions.iter().filter(|mention| !mention.gold.is_nil()) {
            known.kinds(mention).into_iter().for_each(|kind| by_kind.entry(kind).or_default().push(mention.clone()));
        }
        let all = scored(&self.mentions);
        LinkingReport {
            linkable: all.linkable.unwrap_or_default(),
            all: all.all,
            by_kind: by_kind.into_iter().map(|(kind, mentions)| (kind, scored(&mentions).all)).collect(),
            n_nil: all.n_nil,
        }
    }

    /// Accuracy@1 of linked gold mentions.
    pub fn accuracy(&self) -> f64 {
        let config = RankingConfig { depths: vec![1], ..RankingConfig::default() };
        let right = canonym_core::eval::ranking::first_right(&self.mentions, &config);
        let n = right.iter().flatten().count();
        right.iter().flatten().filter(|right| **right).count() as f64 / n.max(1) as f64
    }

    /// Probabilities that the best concept is right, from its share and score; mentions without a gold concept are wrong.
    pub fn calibration(&self) -> Calibration {
        let right = canonym_core::eval::ranking::first_right(&self.mentions, &RankingConfig::default());
        let point = |(best, right): (&Option<GeneratedConcept>, &Option<bool>)| {
            let best = best.as_ref()?;
            Some(([log_odds(best.share), best.score, 1.0], right.unwrap_or(false)))
        };
        let points: Vec<([f32; 3], bool)> = self.best.iter().zip(&right).filter_map(point).collect();
        if points.iter().all(|(_, right)| *right) || points.iter().all(|(_, right)| !*right) {
            return Calibration::default();
        }
        let [share, score, bias] = logistic(&[&points], PENALTY);
        Calibration { share, score, bias }
    }
}
