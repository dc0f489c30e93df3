//! The report of an evaluation: what was judged, by which rules, and the numbers.
//!
//! It is written as JSON and as a [`table`](Report::table). The numbers are shares from 0 to 1, never rounded.

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

/// The choices of an evaluation.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct EvalConfig {
    /// How annotations are matched.
    pub matching: MatchConfig,
    /// The measures to report; all of them where empty.
    pub measures: Vec<Measure>,
    /// What takes a place in a ranking.
    pub unit: RankUnit,
    /// How mentions of several parts are ranked.
    pub composite: Composite,
    /// Whether each type is judged on its own, too.
    pub by_type: bool,
    /// The ids of the knowledge base, as [`known_ids`](super::ids::known_ids) writes them.
    pub kb_ids: Option<HashSet<String>>,
    /// The ids of the training annotations, in the same form.
    pub training_ids: Option<HashSet<String>>,
    /// How intervals are made.
    pub bootstrap: BootstrapConfig,
    /// How risk and calibration are told; `None` for not at all.
    pub curves: Option<CurveConfig>,
    /// What parts of gold are made by; `None` for no parts.
    pub strata: Option<Background>,
}

/// What a system scored.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// The system that was judged.
    pub system: String,
    /// The version of the code.
    pub commit: String,
    /// The corpus.
    pub dataset: String,
    /// The part of the corpus.
    pub split: String,
    /// The terminology, where it is known.
    pub kb: Option<KbSummary>,
    /// The rules.
    pub policy: Policy,
    /// The numbers that the protocol leads with.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub headlines: Vec<HeadlineScore>,
    /// The number of gold documents; of mentions' documents where only rankings are judged.
    pub n_documents: u64,
    /// Gold documents without a predicted one.
    pub n_missing_documents: u64,
    /// Documents of which the predicted text is not the gold text.
    pub n_different_texts: u64,
    /// Gold annotations, repeats and those without a concept included.
    pub n_gold: u64,
    /// Those of them without a concept.
    pub n_gold_nil: u64,
    /// Predicted annotations, repeats and those without a concept included.
    pub n_pred: u64,
    /// What was found, by measure.
    #[serde(default)]
    pub counts: BTreeMap<Measure, Counts>,
    /// The scores over the corpus, by measure.
    #[serde(default)]
    pub metrics: BTreeMap<Measure, Score>,
    /// The means of the scores of documents, by measure.
    #[serde(default)]
    pub macro_metrics: BTreeMap<Measure, Score>,
    /// The intervals of `metrics`.
    #[serde(default)]
    pub ci: BTreeMap<Measure, ScoreIntervals>,
    /// The scores of each type, where asked for.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub by_type: BTreeMap<String, Slice>,
    /// The scores of annotations whose concepts training never saw, where it is known what it saw.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zero_shot: Option<Slice>,
    /// How well candidates are ranked, where predictions carry them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ranking: Option<Ranking>,
    /// What scores are worth, where asked for and where there are scores: of `links` the predicted links, right by
    /// [`Measure::Strict`]; of `mentions` the first candidates of gold mentions, those without a concept included.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub curves: BTreeMap<String, Curves>,
    /// What is found of parts of gold, by property and value, where asked for.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub slices: Strata,
    /// The same system with a dictionary that holds names of the corpus, where one is given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub leaky: Option<Box<Report>>,
    /// What the model knew of the documents, where it ran here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seen: Option<SeenDocuments>,
    /// The number to compare with, a share.
    pub paper_value: Option<f64>,
    /// What a reader should know.
    pub note: String,
}

/// What a model knew of the documents that it was judged on.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SeenDocuments {
    /// How many it had learned from, and what.
    #[serde(flatten)]
    pub seen: Seen,
    /// The figures of these, and those of the others, where there are both.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub apart: Option<Apart>,
}

/// Figures of documents that a model had learned from, and of the others.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Apart {
    /// Of those that it had learned from.
    pub seen: Box<Report>,
    /// Of the others.
    pub unseen: Box<Report>,
}

/// The terminology of an evaluation.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct KbSummary {
    /// What it is called.
    pub name: String,
    /// How many ids it has.
    pub size: u64,
    /// The share of gold annotations with a concept of which it has an id: no recall can be higher.
    pub coverage: f64,
}

/// The rules of an evaluation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Policy {
    /// The protocol that set them, where one did; what was chosen beside it stands below.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protocol: Option<String>,
    /// When ids agree.
    pub ids: IdPolicy,
    /// What takes a place in a ranking.
    pub unit: RankUnit,
    /// How mentions of several parts are ranked.
    pub composite: Composite,
    /// What `partial-maxmax` counts.
    pub partial: String,
    /// Whether the weak measure resolves overlapping predictions.
    pub bat: bool,
    /// How intervals are made.
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

/// The intervals of one measure.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct ScoreIntervals {
    /// That of the precision.
    pub precision: Interval,
    /// That of the recall.
    pub recall: Interval,
    /// That of F1.
    pub f1: Interval,
}

/// The scores of a part of the corpus.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Slice {
    /// What was found, by measure.
    pub counts: BTreeMap<Measure, Counts>,
    /// The scores, by measure.
    pub metrics: BTreeMap<Measure, Score>,
}

/// Judges `predicted` against `gold`; documents are paired by id.
pub fn evaluate(
    gold: &[AnnotatedDocument],
    predicted: &[AnnotatedDocument],
    config: &EvalConfig,
    rng: &mut SplitMix64,
) -> Result<Report> {
    Ok(evaluate_pairs(&pair(gold, predicted)?, config, rng))
}

/// Judges documents that are paired, in whatever unit their spans count.
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
        let of_links: Vec<Measure> = measures.iter().copied().filter(|measure| measure.needs_ids()).collect();
        report.zero_shot = Some(judge_slice(&slices::zero_shot(documents, training_ids), &of_links, config));
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
        let asked = |measure: &Measure| measure.needs_ids() && (!config.measures.is_empty() || few.contains(measure));
        let of_links: Vec<Measure> = measures.iter().copied().filter(asked).collect();
        report.slices = recalls(documents, &of_links, background, (config.matching, config.bootstrap), rng);
        if report.ranking.is_some() {
            report.add_accuracies(&from_documents(documents), config, background, rng);
        }
    }
    report
}

/// Judges ranked candidates alone.
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

    /// Adds curves, except where every answer has the same score, as where none has one.
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
