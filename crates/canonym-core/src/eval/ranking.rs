//! Evaluation of ranked candidates for given mentions.
//!
//! A mention has one or more parts: BioSyn splits `breast and ovarian cancer` and links each part separately, against
//! all gold ids. An unsplit mention has one list. Mentions without a gold concept are counted and excluded; all others
//! are evaluated, and unanswered ones are wrong. Lists are evaluated even if the system abstains.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::bootstrap::{BootstrapConfig, Interval, SplitMix64, intervals};
use super::curves::{Outcome as Answered, Outcomes};
use super::ids::{IdPolicy, IdSet};
use super::matching::ratio;
use super::{DocumentPair, Entry, Surface};
use crate::text::Span;
use crate::{Error, Result};

/// A gold mention with the ranked candidates of its parts.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RankedMention {
    /// Id of the document, the unit of resampling.
    pub document: String,
    /// The gold concepts.
    pub gold: IdSet,
    /// One list of candidates per part, best first; empty means unanswered.
    pub parts: Vec<Vec<IdSet>>,
    /// Properties of the mention.
    pub surface: Surface,
    /// Lowest confidence of the first candidates of all parts, if given.
    pub score: Option<f32>,
    /// Names of the first candidates, if given, joined by ` / `.
    pub name: String,
}

/// Measures over the ranks of the first right answers to queries, from 0; `None` for a query without a right answer. For figures of training
/// and selection; [`rank`] evaluates under a policy.
#[derive(Debug, Clone, Copy)]
pub struct Ranks<'a>(&'a [Option<usize>]);

impl<'a> Ranks<'a> {
    /// The measures of `ranks`.
    pub fn of(ranks: &'a [Option<usize>]) -> Ranks<'a> {
        Ranks(ranks)
    }

    /// Accuracy@k: share of queries with a right answer among the first `k`; recall@k if one answer is right. 0 without queries.
    pub fn accuracy_at(self, k: usize) -> f64 {
        self.share(self.0.iter().flatten().filter(|rank| **rank < k).count())
    }

    /// Share of queries with a right answer at any rank.
    pub fn recall(self) -> f64 {
        self.share(self.0.iter().flatten().count())
    }

    /// Mean reciprocal rank, 0 for a query without a right answer.
    pub fn mrr(self) -> f64 {
        let reciprocals = self.0.iter().flatten().map(|rank| 1.0 / (*rank as f64 + 1.0));
        // A sum of nothing would be -0.
        reciprocals.fold(0.0, |sum: f64, one| sum + one) / self.0.len().max(1) as f64
    }

    fn share(self, n: usize) -> f64 {
        n as f64 / self.0.len().max(1) as f64
    }
}

/// What is ranked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RankUnit {
    /// Candidates: several names of a concept have several ranks.
    #[default]
    Names,
    /// Concepts: each at the rank of its best name.
    Entities,
}

impl FromStr for RankUnit {
    type Err = Error;

    fn from_str(text: &str) -> Result<RankUnit> {
        match text {
            "names" => Ok(RankUnit::Names),
            "entities" => Ok(RankUnit::Entities),
            _ => Err(Error::not_found(format!("unknown rank unit `{text}`")).with_hint("use names or entities")),
        }
    }
}

/// How a composite mention is evaluated.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Composite {
    /// Correct if all parts are.
    #[default]
    All,
    /// Only the first part is evaluated.
    First,
    /// Excluded.
    Drop,
}

impl FromStr for Composite {
    type Err = Error;

    fn from_str(text: &str) -> Result<Composite> {
        match text {
            "all" => Ok(Composite::All),
            "first" => Ok(Composite::First),
            "drop" => Ok(Composite::Drop),
            _ => Err(Error::not_found(format!("unknown composite rule `{text}`")).with_hint("use all, first or drop")),
        }
    }
}

/// Settings of a ranking evaluation.
#[derive(Debug, Clone, PartialEq)]
pub struct RankingConfig {
    /// What is ranked.
    pub unit: RankUnit,
    /// How composite mentions are evaluated.
    pub composite: Composite,
    /// When a candidate matches a gold mention.
    pub ids: IdPolicy,
    /// The values of k for accuracy@k.
    pub depths: Vec<usize>,
    /// Ids of the knowledge base, normalised by [`known_ids`](super::ids::known_ids).
    pub kb_ids: Option<HashSet<String>>,
    /// Ids of the training annotations, normalised likewise.
    pub training_ids: Option<HashSet<String>>,
    /// Bootstrap settings.
    pub bootstrap: BootstrapConfig,
}

impl Default for RankingConfig {
    fn default() -> RankingConfig {
        RankingConfig {
            unit: RankUnit::Names,
            composite: Composite::All,
            ids: IdPolicy::Any,
            depths: vec![1, 5, 10, 20],
            kb_ids: None,
            training_ids: None,
            bootstrap: BootstrapConfig::default(),
        }
    }
}

/// Scores of a set of mentions.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct RankingScores {
    /// Number of mentions.
    pub n_mentions: u64,
    /// Accuracy@k: share of mentions with a correct candidate among the first k. Equals P@1 for k = 1, and recall@k
    /// with one relevant concept.
    pub accuracy: BTreeMap<usize, f64>,
    /// Mean reciprocal rank of the first correct candidate, 0 if there is none.
    pub mrr: f64,
    /// Mean average precision; all gold concepts in the knowledge base are relevant.
    pub map: f64,
    /// Confidence intervals of `accuracy`, if requested.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub accuracy_ci: BTreeMap<usize, Interval>,
    /// Confidence interval of `mrr`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mrr_ci: Option<Interval>,
    /// Confidence interval of `map`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub map_ci: Option<Interval>,
}

/// The result of a ranking evaluation.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Ranking {
    /// Number of mentions without a gold concept, which are excluded.
    pub n_nil: u64,
    /// Number of composite mentions excluded under [`Composite::Drop`].
    pub n_dropped: u64,
    /// Number of evaluated mentions with a part without candidates.
    pub n_unanswered: u64,
    /// Share of evaluated mentions with a gold concept in the knowledge base.
    pub kb_coverage: Option<f64>,
    /// All evaluated mentions.
    pub all: RankingScores,
    /// Mentions with a correct candidate anywhere in the list.
    pub normalised: RankingScores,
    /// Mentions with a gold concept in the knowledge base.
    pub linkable: Option<RankingScores>,
    /// Mentions without a gold concept in the training annotations.
    pub zero_shot: Option<RankingScores>,
}

/// Evaluates `mentions`.
pub fn rank(mentions: &[RankedMention], config: &RankingConfig, rng: &mut SplitMix64) -> Ranking {
    let mut documents: HashMap<&str, usize> = HashMap::new();
    let mut ranking = Ranking::default();
    let mut outcomes = Vec::with_capacity(mentions.len());
    for mention in mentions {
        if mention.gold.is_nil() {
            ranking.n_nil += 1;
            continue;
        }
        if config.composite == Composite::Drop && mention.parts.len() > 1 {
            ranking.n_dropped += 1;
            continue;
        }
        let n_documents = documents.len();
        let document = *documents.entry(&mention.document).or_insert(n_documents);
        let outcome = outcome_of(mention, document, config);
        ranking.n_unanswered += u64::from(outcome.unanswered);
        outcomes.push(outcome);
    }
    let n_documents = documents.len();
    let mut score = |chosen: fn(&Outcome) -> bool| {
        let chosen: Vec<&Outcome> = outcomes.iter().filter(|outcome| chosen(outcome)).collect();
        scores(&chosen, n_documents, config, rng)
    };
    ranking.all = score(|_| true);
    ranking.normalised = score(|outcome| outcome.rank.is_some());
    if config.kb_ids.is_some() {
        let linkable = score(|outcome| outcome.linkable);
        ranking.kb_coverage = Some(ratio(linkable.n_mentions as f64, outcomes.len() as f64));
        ranking.linkable = Some(linkable);
    }
    if config.training_ids.is_some() {
        ranking.zero_shot = Some(score(|outcome| outcome.unseen));
    }
    ranking
}

/// The gold mentions of `documents` with the candidates of the predictions on the same spans.
///
/// Several predictions on the same spans are assigned to different gold mentions, preferably of the same type.
pub fn from_documents(documents: &[DocumentPair]) -> Vec<RankedMention> {
    let mut mentions = Vec::new();
    for document in documents {
        let mut at: HashMap<&[Span], Vec<usize>> = HashMap::new();
        for (row, entry) in document.predicted.iter().enumerate() {
            at.entry(&entry.spans).or_default().push(row);
        }
        for gold in &document.gold {
            let answers = at.get_mut(gold.spans.as_slice()).filter(|rows| !rows.is_empty());
            let answer = answers.map(|rows| {
                let same_type = |row: &usize| document.predicted[*row].types.intersects(&gold.types);
                rows.remove(rows.iter().position(same_type).unwrap_or(0))
            });
            let answer = answer.map(|row| &document.predicted[row]);
            mentions.push(RankedMention {
                document: document.id.clone(),
                gold: gold.ids.clone(),
                parts: vec![answer.map_or_else(Vec::new, candidates_of)],
                surface: gold.surface(),
                score: answer.map(|answer| answer.score),
                name: answer.map_or_else(String::new, |answer| answer.name.clone()),
            });
        }
    }
    mentions
}

/// Whether the first candidates of each mention are correct; `None` for excluded mentions.
pub fn first_right(mentions: &[RankedMention], config: &RankingConfig) -> Vec<Option<bool>> {
    let judged = |mention: &RankedMention| !is_left_out(mention, config);
    let right = |mention: &RankedMention| outcome_of(mention, 0, config).rank == Some(1);
    mentions.iter().map(|mention| judged(mention).then(|| right(mention))).collect()
}

fn is_left_out(mention: &RankedMention, config: &RankingConfig) -> bool {
    mention.gold.is_nil() || config.composite == Composite::Drop && mention.parts.len() > 1
}

/// Outcomes of the first candidates, for risk-coverage curves. A link of a mention without a gold concept is wrong; a
/// mention without candidates is unanswered.
///
/// Nothing counts as answered if the mentions have no scores.
pub fn outcomes(mentions: &[RankedMention], config: &RankingConfig) -> Outcomes {
    let mut outcomes = Outcomes::default();
    for mention in mentions.iter().filter(|mention| mention.gold.is_nil() || !is_left_out(mention, config)) {
        outcomes.n_gold += u64::from(!mention.gold.is_nil());
        let n_evaluated = if config.composite == Composite::First { 1 } else { mention.parts.len() };
        let answered = mention.parts.iter().take(n_evaluated).any(|part| !part.is_empty());
        match mention.score.filter(|_| answered) {
            Some(score) => {
                let right = outcome_of(mention, 0, config).rank == Some(1);
                outcomes.answered.push(Answered { score: f64::from(score), right });
            }
            None => outcomes.n_unanswered += 1,
        }
    }
    outcomes
}

/// The candidates of an entry, or its concept if it has no candidate list.
fn candidates_of(entry: &Entry) -> Vec<IdSet> {
    if entry.candidates.is_empty() && !entry.ids.is_nil() {
        return vec![entry.ids.clone()];
    }
    entry.candidates.clone()
}

/// Evaluation of one mention.
struct Outcome {
    document: usize,
    /// Rank of the worst part, from 1.
    rank: Option<usize>,
    average_precision: f64,
    unanswered: bool,
    linkable: bool,
    unseen: bool,
}

fn outcome_of(mention: &RankedMention, document: usize, config: &RankingConfig) -> Outcome {
    let parts = match config.composite {
        Composite::First => &mention.parts[..mention.parts.len().min(1)],
        Composite::All | Composite::Drop => &mention.parts[..],
    };
    let slots: Vec<Vec<Slot>> = parts.iter().map(|part| relevant_slots(part, &mention.gold, config)).collect();
    let first_ranks: Option<Vec<usize>> = slots.iter().map(|part| part.first().map(|slot| slot.rank)).collect();
    // A mention without parts is wrong.
    let rank = first_ranks.and_then(|ranks| ranks.into_iter().max());
    let precision = |slots: &Vec<Slot>| average_precision(slots, &mention.gold, config);
    Outcome {
        document,
        rank,
        average_precision: ratio(slots.iter().map(precision).sum(), slots.len() as f64),
        unanswered: parts.is_empty() || parts.iter().any(Vec::is_empty),
        linkable: config.kb_ids.as_ref().is_some_and(|known| mention.gold.any_in(known)),
        unseen: config.training_ids.as_ref().is_some_and(|known| !mention.gold.any_in(known)),
    }
}

/// A correct candidate.
struct Slot {
    rank: usize,
    /// Whether its concept has no better rank.
    new: bool,
    ids: IdSet,
}

fn relevant_slots(candidates: &[IdSet], gold: &IdSet, config: &RankingConfig) -> Vec<Slot> {
    let mut seen: HashSet<Vec<&str>> = HashSet::new();
    let mut rank = 0;
    let mut slots = Vec::new();
    for ids in candidates {
        let new = seen.insert(ids.sorted());
        if config.unit == RankUnit::Entities && !new {
            continue;
        }
        rank += 1;
        if config.ids.matches(gold, ids) {
            slots.push(Slot { rank, new, ids: ids.clone() });
        }
    }
    slots
}

/// Average precision over concepts: a repeated concept takes a rank without credit.
///
/// Gold ids in no correct candidate count as one relevant concept each if the knowledge base has them.
fn average_precision(slots: &[Slot], gold: &IdSet, config: &RankingConfig) -> f64 {
    let found: Vec<&Slot> = slots.iter().filter(|slot| slot.new).collect();
    let precisions = found.iter().enumerate().map(|(n_before, slot)| (n_before + 1) as f64 / slot.rank as f64);
    let missed = gold.iter().filter(|id| {
        let in_kb = config.kb_ids.as_ref().is_none_or(|known| known.contains(*id));
        in_kb && config.ids == IdPolicy::Any && !found.iter().any(|slot| slot.ids.contains(id))
    });
    // Under `first` and `exact` there is one relevant concept.
    let n_relevant = match config.ids {
        IdPolicy::Any => found.len() + missed.count(),
        IdPolicy::First | IdPolicy::Exact => found.len().max(1),
    };
    ratio(precisions.sum(), n_relevant as f64)
}

fn scores(outcomes: &[&Outcome], n_documents: usize, config: &RankingConfig, rng: &mut SplitMix64) -> RankingScores {
    // Sums per document: mentions, hits at each k, reciprocal ranks, average precisions.
    let n_columns = config.depths.len() + 3;
    let mut sums = vec![vec![0.0; n_columns]; n_documents];
    for outcome in outcomes {
        let row = &mut sums[outcome.document];
        row[0] += 1.0;
        for (column, &depth) in config.depths.iter().enumerate() {
            row[column + 1] += f64::from(u8::from(outcome.rank.is_some_and(|rank| rank <= depth)));
        }
        row[n_columns - 2] += outcome.rank.map_or(0.0, |rank| 1.0 / rank as f64);
        row[n_columns - 1] += outcome.average_precision;
    }
    // Documents without mentions of this set are not resampled.
    sums.retain(|row| row[0] > 0.0);
    let means = |weights: &[u32]| -> Vec<f64> {
        let mut totals = vec![0.0; n_columns];
        for (row, &weight) in sums.iter().zip(weights) {
            for (total, value) in totals.iter_mut().zip(row) {
                *total += value * f64::from(weight);
            }
        }
        totals[1..].iter().map(|&total| ratio(total, totals[0])).collect()
    };
    let values = means(&vec![1; sums.len()]);
    let bounds = intervals(sums.len(), config.bootstrap, means, rng);
    let n_depths = config.depths.len();
    RankingScores {
        n_mentions: outcomes.len() as u64,
        accuracy: config.depths.iter().copied().zip(values.iter().copied()).collect(),
        mrr: values[n_depths],
        map: values[n_depths + 1],
        accuracy_ci: config.depths.iter().copied().zip(bounds.iter().copied()).collect(),
        mrr_ci: bounds.get(n_depths).copied(),
        map_ci: bounds.get(n_depths + 1).copied(),
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn ranks_of_queries_without_a_right_answer_count_as_wrong() {
        let ranks = super::Ranks::of(&[Some(0), Some(3), None, Some(1)]);
        assert_eq!((ranks.accuracy_at(1), ranks.accuracy_at(2), ranks.recall()), (0.25, 0.5, 0.75));
        assert_eq!(ranks.mrr(), (1.0 + 0.25 + 0.5) / 4.0);
        let none = super::Ranks::of(&[]);
        assert_eq!((none.accuracy_at(1), none.recall(), none.mrr()), (0.0, 0.0, 0.0));
    }

    use super::*;

    fn mention(gold: &str, parts: &[&[&str]]) -> RankedMention {
        let part = |ids: &&[&str]| ids.iter().map(|id| IdSet::parse_one(id)).collect();
        let parts = parts.iter().map(part).collect();
        RankedMention { document: "d".into(), gold: IdSet::parse_one(gold), parts, ..RankedMention::default() }
    }

    fn judged(mentions: &[RankedMention], change: impl Fn(&mut RankingConfig)) -> Ranking {
        let mut config = RankingConfig { depths: vec![1, 2, 3, 10], ..RankingConfig::default() };
        change(&mut config);
        rank(mentions, &config, &mut SplitMix64::new(13))
    }

    fn accuracy(ranking: &Ranking) -> Vec<f64> {
        ranking.all.accuracy.values().copied().collect()
    }

    #[test]
    fn v8_names_and_entities() {
        let mentions = [mention("D1", &[&["D2", "D2", "D1|208900"]])];
        let names = judged(&mentions, |_| ());
        assert_eq!(accuracy(&names), [0.0, 0.0, 1.0, 1.0]);
        assert_eq!(names.all.mrr, 1.0 / 3.0);
        let entities = judged(&mentions, |config| config.unit = RankUnit::Entities);
        assert_eq!(accuracy(&entities), [0.0, 1.0, 1.0, 1.0]);
        assert_eq!(entities.all.mrr, 0.5);
    }

    #[test]
    fn v9_normalised_scores_exclude_gold_that_was_not_retrieved() {
        let mentions = [
            mention("G", &[&["G"]]),
            mention("G", &[&["A", "G"]]),
            mention("G", &[&["A", "B", "C", "G"]]),
            mention("G", &[&["A", "B", "C", "D"]]),
        ];
        let ranking = judged(&mentions, |_| ());
        assert_eq!(ranking.all.accuracy[&1], 0.25);
        assert_eq!((ranking.all.mrr, ranking.all.map), (0.4375, 0.4375));
        assert_eq!(ranking.all.accuracy[&10], 0.75);
        assert_eq!(ranking.normalised.n_mentions, 3);
        assert_eq!(format!("{:.4}", ranking.normalised.accuracy[&1]), "0.3333");
        assert_eq!(format!("{:.4}", ranking.normalised.mrr), "0.5833");
        assert_eq!(format!("{:.4}", ranking.normalised.map), "0.5833");
    }

    #[test]
    fn v10_composites() {
        let composite = [mention("D1|D2", &[&["D1"], &["D9", "D2"]])];
        assert_eq!(accuracy(&judged(&composite, |_| ()))[..2], [0.0, 1.0]);
        let first = |config: &mut RankingConfig| config.composite = Composite::First;
        assert_eq!(accuracy(&judged(&composite, first))[0], 1.0);
        let [composite] = composite;
        let both = [composite, mention("D7", &[&["D7"]])];
        assert_eq!(accuracy(&judged(&both, |_| ()))[0], 0.5);
        assert_eq!(accuracy(&judged(&both, first))[0], 1.0);
        let dropped = judged(&both, |config| config.composite = Composite::Drop);
        assert_eq!((dropped.n_dropped, dropped.all.n_mentions, accuracy(&dropped)[0]), (1, 1, 1.0));
    }

    #[test]
    fn v11_unlinkable_gold_lowers_the_headline() {
        let mut mentions = vec![mention("K1", &[&["K1"]]); 6];
        mentions.extend(vec![mention("K1", &[&["K2"]]); 2]);
        mentions.extend(vec![mention("U1", &[&["K1"]]); 2]);
        let ranking = judged(&mentions, |config| config.kb_ids = Some(super::super::ids::known_ids(["MESH:K1", "K2"])));
        assert_eq!(ranking.all.accuracy[&1], 0.6);
        assert_eq!(ranking.linkable.as_ref().map(|scores| scores.accuracy[&1]), Some(0.75));
        assert_eq!(ranking.kb_coverage, Some(0.8));
    }

    #[test]
    fn average_precision_asks_for_every_gold_concept() {
        // Found at ranks 1 and 3; the third gold concept is not found.
        let mentions = [mention("A|B|C", &[&["A", "X", "B", "A"]])];
        assert_eq!(format!("{:.4}", judged(&mentions, |_| ()).all.map), "0.5556");
        let known = |config: &mut RankingConfig| config.kb_ids = Some(super::super::ids::known_ids(["A", "B", "X"]));
        assert_eq!(format!("{:.4}", judged(&mentions, known).all.map), "0.8333");
        // Alternative ids of a candidate are one concept.
        assert_eq!(judged(&[mention("A|B", &[&["A|B"]])], |_| ()).all.map, 1.0);
    }

    #[test]
    fn zero_shot_mentions_have_no_id_in_training() {
        let mentions = [mention("A", &[&["A"]]), mention("B|C", &[&["X"]]), mention("D", &[&["D"]])];
        let ranking = judged(&mentions, |config| config.training_ids = Some(super::super::ids::known_ids(["A", "C"])));
        let zero_shot = ranking.zero_shot.expect("training ids were given");
        assert_eq!((zero_shot.n_mentions, zero_shot.accuracy[&1]), (1, 1.0));
    }

    #[test]
    fn nil_gold_is_excluded_and_no_answer_is_wrong() {
        let mentions = [mention("-1", &[&["A"]]), mention("A", &[&[]]), mention("A", &[])];
        let ranking = judged(&mentions, |_| ());
        assert_eq!((ranking.n_nil, ranking.n_unanswered, ranking.all.n_mentions), (1, 2, 2));
        assert_eq!(ranking.all.accuracy[&10], 0.0);
        assert_eq!(judged(&[], |_| ()).all.mrr, 0.0);
    }

    #[test]
    fn candidates_come_from_the_same_spans_and_type() {
        let entry = |start, ids: &str, kind: &str| {
            let mut entry = Entry::new(vec![Span::new(start, start + 3)], IdSet::parse_one(ids));
            entry.types = IdSet::parse_types(kind);
            entry.candidates = vec![entry.ids.clone()];
            entry
        };
        let document = DocumentPair {
            id: "d".into(),
            gold: vec![entry(0, "A", "Disease"), entry(0, "B", "Gene"), entry(5, "C", "Gene")],
            predicted: vec![entry(0, "B", "Gene"), entry(0, "A", "Disease"), entry(6, "C", "Gene")],
        };
        let ranking = judged(&from_documents(&[document]), |_| ());
        assert_eq!(format!("{:.4}", ranking.all.accuracy[&1]), "0.6667");
        assert_eq!(ranking.n_unanswered, 1);
    }
}
