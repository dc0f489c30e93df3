//! The report of an evaluation: subject, policy and scores.
//!
//! Written as JSON and as a [`table`](Report::table). Scores are shares from 0 to 1, not rounded.

use std::collections::{BTreeMap, HashSet};

use serde::{Deserialize, Serialize};

use super::bootstrap::{BootstrapConfig, Interval, SplitMix64, intervals};
use super::curves::{CurveConfig, Curves, Outcomes, curves, links};
use super::ids::IdPolicy;
use super::learned::Seen;
use super::matching::{Counts, MatchConfig, Measure, Score, count, macro_score, ratio};
use super::pairing::{Paired, pair};
use super::protocol::HeadlineScore;
use super::ranking::{
    Composite, RankUnit, RankedMention, Ranking, RankingConfig, first_right, from_documents, outcomes, rank,
};
use super::strata::{Background, RankedOutcome, Strata, add_accuracies, recalls};
use super::{DocumentPair, slices};
use crate::Result;
use crate::corpus::AnnotatedDocument;

/// Settings of an evaluation.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct EvalConfig {
    /// How annotations are matched.
    pub matching: MatchConfig,
    /// The measures to report; all if empty.
    pub measures: Vec<Measure>,
    /// What is ranked.
    pub unit: RankUnit,
    /// How composite mentions are ranked.
    pub composite: Composite,
    /// Whether to evaluate each semantic type separately as well.
    pub by_type: bool,
    /// Ids of the knowledge base, normalised by [`known_ids`](super::ids::known_ids).
    pub kb_ids: Option<HashSet<String>>,
    /// Ids of the training annotations, normalised likewise.
    pub training_ids: Option<HashSet<String>>,
    /// Bootstrap settings.
    pub bootstrap: BootstrapConfig,
    /// Settings of risk-coverage curves and calibration; `None` omits them.
    pub curves: Option<CurveConfig>,
    /// Data for the stratification of gold; `None` omits it.
    pub strata: Option<Background>,
}

/// The scores of a system.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// Name of the system.
    pub system: String,
    /// Commit of the code.
    pub commit: String,
    /// Name of the corpus.
    pub dataset: String,
    /// Split of the corpus.
    pub split: String,
    /// The terminology, if known.
    pub kb: Option<KbSummary>,
    /// The evaluation policy.
    pub policy: Policy,
    /// The headline scores of the protocol.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub headlines: Vec<HeadlineScore>,
    /// Number of gold documents; if only rankings are evaluated, of documents with mentions.
    pub n_documents: u64,
    /// Number of gold documents without a predicted document.
    pub n_missing_documents: u64,
    /// Number of documents whose predicted text differs from the gold text.
    pub n_different_texts: u64,
    /// Number of gold annotations, including duplicates and those without a concept.
    pub n_gold: u64,
    /// Number of gold annotations without a concept.
    pub n_gold_nil: u64,
    /// Number of predicted annotations, including duplicates and those without a concept.
    pub n_pred: u64,
    /// Counts by measure.
    #[serde(default)]
    pub counts: BTreeMap<Measure, Counts>,
    /// Micro-averaged scores by measure.
    #[serde(default)]
    pub metrics: BTreeMap<Measure, Score>,
    /// Macro-averaged scores (over documents) by measure.
    #[serde(default)]
    pub macro_metrics: BTreeMap<Measure, Score>,
    /// Confidence intervals of `metrics`.
    #[serde(default)]
    pub ci: BTreeMap<Measure, ScoreIntervals>,
    /// Scores by semantic type, if requested.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub by_type: BTreeMap<String, Slice>,
    /// Scores on concepts that do not occur in training, if the training annotations are known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zero_shot: Option<Slice>,
    /// Ranking scores, if predictions have candidates.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ranking: Option<Ranking>,
    /// Risk-coverage curves and calibration, if requested and if there are scores: for `links`, of predicted links,
    /// correct under [`Measure::Strict`]; for `mentions`, of the first candidates of gold mentions, including those
    /// without a concept.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub curves: BTreeMap<String, Curves>,
    /// Scores on parts of gold by property and value, if requested.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub slices: Strata,
    /// The same system with a dictionary that contains names from the corpus, if evaluated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub leaky: Option<Box<Report>>,
    /// Which documents the model was trained on, if it ran in this evaluation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seen: Option<SeenDocuments>,
    /// The published score to compare with, a share.
    pub paper_value: Option<f64>,
    /// Remarks for readers.
    pub note: String,
}

/// Documents of the evaluation that the model was trained on.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SeenDocuments {
    /// Their number, and how they were used.
    #[serde(flatten)]
    pub seen: Seen,
    /// Separate scores for seen and unseen documents, if there are both.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub apart: Option<SeenSplit>,
}

/// Separate scores for documents that the model was trained on and for others.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SeenSplit {
    /// Scores on seen documents.
    pub seen: Box<Report>,
    /// Scores on unseen documents.
    pub unseen: Box<Report>,
}

/// The terminology of an evaluation.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct KbSummary {
    /// Its name.
    pub name: String,
    /// Number of its ids.
    pub size: u64,
    /// Share of gold annotations with a concept that is in the terminology, an upper bound of recall.
    pub coverage: f64,
}

/// The policy of an evaluation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Policy {
    /// The protocol, if one was chosen; deviations from it are in the other fields.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protocol: Option<String>,
    /// When ids match.
    pub ids: IdPolicy,
    /// What is ranked.
    pub unit: RankUnit,
    /// How composite mentions are ranked.
    pub composite: Composite,
    /// The unit of `partial-maxmax`.
    pub partial: String,
    /// Whether the weak measure resolves overlapping predictions.
    pub bat: bool,
    /// Bootstrap settings.
    pub bootstrap: BootstrapConfig,
}

impl Default for Policy {
    fn default() -> Policy {
        Policy {
            protocol: None,
            ids: IdPolicy::default(),
            unit: RankUnit::default(),
            composite: Composite::default(),
            partial: "characters".into(),
            bat: false,
            bootstrap: BootstrapConfig::default(),
        }
    }
}

/// Confidence intervals of one measure.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct ScoreIntervals {
    /// Interval of the precision.
    pub precision: Interval,
    /// Interval of the recall.
    pub recall: Interval,
    /// Interval of F1.
    pub f1: Interval,
}

/// Scores of a part of the corpus.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Slice {
    /// Counts by measure.
    pub counts: BTreeMap<Measure, Counts>,
    /// Scores by measure.
    pub metrics: BTreeMap<Measure, Score>,
}

/// Evaluates `predicted` against `gold`; documents are paired by id.
pub fn evaluate(
    gold: &[AnnotatedDocument],
    predicted: &[AnnotatedDocument],
    config: &EvalConfig,
    rng: &mut SplitMix64,
) -> Result<Report> {
    Ok(evaluate_pairs(&pair(gold, predicted)?, config, rng))
}

/// Evaluates paired documents, in any unit of spans.
pub fn evaluate_pairs(paired: &Paired, config: &EvalConfig, rng: &mut SplitMix64) -> Report {
    let documents = &paired.documents;
    let gold = || documents.iter().flat_map(|document| &document.gold);
    let n_linked = gold().filter(|entry| !entry.ids.is_nil()).count();
    let has_types = gold().any(|entry| !entry.types.is_empty());
    let mut report = Report {
        policy: policy(config),
        n_documents: documents.len() as u64,
        n_missing_documents: paired.missing.len() as u64,
        n_different_texts: paired.different_texts.len() as u64,
        n_gold: gold().count() as u64,
        n_gold_nil: (gold().count() - n_linked) as u64,
        n_pred: documents.iter().map(|document| document.predicted.len() as u64).sum(),
        ..Report::default()
    };
    report.kb = config.kb_ids.as_ref().map(|known| {
        let n_known = gold().filter(|entry| entry.ids.any_in(known)).count();
        KbSummary { name: String::new(), size: known.len() as u64, coverage: ratio(n_known as f64, n_linked as f64) }
    });
    let has_nil = documents.iter().any(|pair| pair.gold.iter().chain(&pair.predicted).any(|entry| entry.ids.is_nil()));
    let chosen = |measure: &Measure| match measure {
        _ if !config.measures.is_empty() => config.measures.contains(measure),
        Measure::Type => has_types,
        Measure::Nil => has_nil,
        _ => true,
    };
    let measures: Vec<Measure> = Measure::ALL.into_iter().filter(chosen).collect();
    report.count(documents, &measures, config, rng);
    if config.by_type {
        let slice = |(kind, slice): (String, Vec<DocumentPair>)| (kind, judge_slice(&slice, &measures, config));
        report.by_type = slices::by_type(documents).into_iter().map(slice).collect();
    }
    if let Some(training_ids) = &config.training_ids {
        let link_measures: Vec<Measure> = measures.iter().copied().filter(|measure| measure.needs_ids()).collect();
        report.zero_shot = Some(judge_slice(&slices::zero_shot(documents, training_ids), &link_measures, config));
    }
    if documents.iter().flat_map(|document| &document.predicted).any(|entry| !entry.candidates.is_empty()) {
        let mentions = from_documents(documents);
        report.ranking = Some(rank(&mentions, &ranking_config(config), rng));
        report.add_mentions(&mentions, config);
    }
    if let Some(curve_config) = &config.curves {
        report.add_curves("links", &links(documents, config.matching.ids), curve_config);
    }
    if let Some(background) = &config.strata {
        let few = [Measure::Strict, Measure::PartialBinary];
        let is_selected =
            |measure: &Measure| measure.needs_ids() && (!config.measures.is_empty() || few.contains(measure));
        let link_measures: Vec<Measure> = measures.iter().copied().filter(is_selected).collect();
        report.slices = recalls(documents, &link_measures, background, config.matching, config.bootstrap, rng);
        if report.ranking.is_some() {
            report.add_accuracies(&from_documents(documents), config, background, rng);
        }
    }
    report
}

/// Evaluates ranked candidates only.
pub fn evaluate_ranking(mentions: &[RankedMention], config: &EvalConfig, rng: &mut SplitMix64) -> Report {
    let documents: HashSet<&str> = mentions.iter().map(|mention| mention.document.as_str()).collect();
    let ranking = rank(mentions, &ranking_config(config), rng);
    let mut report = Report {
        policy: policy(config),
        n_documents: documents.len() as u64,
        n_gold: mentions.len() as u64,
        n_gold_nil: ranking.n_nil,
        n_pred: mentions.len() as u64 - ranking.n_nil - ranking.n_dropped - ranking.n_unanswered,
        kb: config.kb_ids.as_ref().map(|known| KbSummary {
            name: String::new(),
            size: known.len() as u64,
            coverage: ranking.kb_coverage.unwrap_or_default(),
        }),
        ranking: Some(ranking),
        ..Report::default()
    };
    report.add_mentions(mentions, config);
    if let Some(background) = &config.strata {
        report.add_accuracies(mentions, config, background, rng);
    }
    report
}

fn policy(config: &EvalConfig) -> Policy {
    Policy {
        ids: config.matching.ids,
        unit: config.unit,
        composite: config.composite,
        bat: config.matching.resolve_overlaps,
        bootstrap: config.bootstrap,
        ..Policy::default()
    }
}

fn ranking_config(config: &EvalConfig) -> RankingConfig {
    RankingConfig {
        unit: config.unit,
        composite: config.composite,
        ids: config.matching.ids,
        kb_ids: config.kb_ids.clone(),
        training_ids: config.training_ids.clone(),
        bootstrap: config.bootstrap,
        ..RankingConfig::default()
    }
}

fn judge_slice(documents: &[DocumentPair], measures: &[Measure], config: &EvalConfig) -> Slice {
    let total = |measure| documents.iter().map(|document| count(measure, document, config.matching)).sum::<Counts>();
    let counts: BTreeMap<Measure, Counts> = measures.iter().map(|&measure| (measure, total(measure))).collect();
    let metrics = counts.iter().map(|(&measure, counts)| (measure, counts.score())).collect();
    Slice { counts, metrics }
}

impl Report {
    fn add_mentions(&mut self, mentions: &[RankedMention], config: &EvalConfig) {
        if let Some(curve_config) = &config.curves {
            self.add_curves("mentions", &outcomes(mentions, &ranking_config(config)), curve_config);
        }
    }

    /// Adds curves unless all scores are equal, for example because there are none.
    fn add_curves(&mut self, of: &str, outcomes: &Outcomes, config: &CurveConfig) {
        if outcomes.answered.windows(2).any(|two| two[0].score != two[1].score) {
            self.curves.insert(of.to_owned(), curves(outcomes, config));
        }
    }

    fn add_accuracies(
        &mut self,
        mentions: &[RankedMention],
        config: &EvalConfig,
        background: &Background,
        rng: &mut SplitMix64,
    ) {
        let judged = mentions.iter().zip(first_right(mentions, &ranking_config(config)));
        let ranked: Vec<RankedOutcome<'_>> = judged
            .filter_map(|(mention, right)| {
                let RankedMention { document, surface, gold: ids, .. } = mention;
                Some(RankedOutcome { document, surface, ids, right: right? })
            })
            .collect();
        add_accuracies(&mut self.slices, &ranked, background, config.bootstrap, rng);
    }

    fn count(&mut self, documents: &[DocumentPair], measures: &[Measure], config: &EvalConfig, rng: &mut SplitMix64) {
        let of_document = |measure: &Measure| -> Vec<Counts> {
            documents.iter().map(|document| count(*measure, document, config.matching)).collect()
        };
        let columns: Vec<Vec<Counts>> = measures.iter().map(of_document).collect();
        let resampled = |weights: &[u32]| -> Vec<f64> {
            let score = |column: &Vec<Counts>| {
                let score =
                    column.iter().zip(weights).map(|(counts, &weight)| counts.times(weight)).sum::<Counts>().score();
                [score.precision, score.recall, score.f1]
            };
            columns.iter().flat_map(score).collect()
        };
        let bounds = intervals(documents.len(), config.bootstrap, resampled, rng);
        for (row, (&measure, column)) in measures.iter().zip(&columns).enumerate() {
            let total: Counts = column.iter().copied().sum();
            self.counts.insert(measure, total);
            self.metrics.insert(measure, total.score());
            self.macro_metrics.insert(measure, macro_score(column));
            if let Some(&[precision, recall, f1]) = bounds.get(row * 3..row * 3 + 3) {
                self.ci.insert(measure, ScoreIntervals { precision, recall, f1 });
            }
        }
    }
}
