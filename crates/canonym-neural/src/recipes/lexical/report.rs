//! Report of an experiment: accuracy with confidence intervals, the n-gram baseline, ablations and calibration.

use std::collections::BTreeMap;

use canonym_core::eval::bootstrap::{BootstrapConfig, Interval, SplitMix64, intervals};
use canonym_core::eval::learned::Seen;
use canonym_core::link::features::COSINE;
use canonym_core::link::fit::{
    Evaluation, Example, FitConfig, Point, calibration_error, evaluate, fit_calibration, fit_weights_without,
};
use canonym_core::link::model::{Features, LexicalModel, N, feature_name};
use serde::Serialize;

use super::Prepared;
use crate::recipes::data::Role;

/// Feature groups of the ablation.
const GROUPS: [(&str, &[usize]); 11] = [
    ("equality of the whole name", &[0, 1, 2, 3, 4]),
    ("n-grams", &[5, 6, 30, 43, 47, 51, 53]),
    ("tokens found", &[7, 8]),
    ("roots found", &[3, 4, 9, 10, 26, 27]),
    ("tokens resembled", &[11, 12, 32, 36, 42, 43]),
    ("weight missing", &[13, 14, 15, 16, 37, 38]),
    ("modifiers, trouble and parts", &[17, 18, 19, 20, 21, 22, 40, 41]),
    ("numbers", &[23, 24, 25]),
    ("order, length and shape", &[28, 29, 31, 33, 34, 35, 39]),
    ("scope and case", &[44, 45, 46, 47, 48]),
    ("other names of the concept", &[49, 50, 51, 52, 53]),
];

/// The report of an experiment.
#[derive(Debug, Serialize)]
pub struct Report {
    sets: Vec<SetReport>,
    /// Drop of accuracy@1 on each dev set, in points, when a feature group is removed and the model is fitted again.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub ablation: BTreeMap<&'static str, BTreeMap<String, f64>>,
    /// Dev documents that were used for training, if any.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub seen: BTreeMap<String, Seen>,
    calibration: CalibrationReport,
}

#[derive(Debug, Serialize)]
struct SetReport {
    name: String,
    role: Role,
    n_mentions: usize,
    /// Recall: fraction of mentions with a correct candidate for each part.
    recall_of_candidates: f64,
    model: Scores,
    n_gram_baseline: Scores,
}

#[derive(Debug, Serialize)]
struct Scores {
    accuracy_at_1: f64,
    accuracy_at_5: f64,
    mrr: f64,
    /// 95 % confidence interval, by bootstrap over documents.
    accuracy_at_1_interval: Option<Interval>,
}

/// Expected calibration error of the top candidates on the dev sets.
#[derive(Debug, Serialize)]
struct CalibrationReport {
    softmax: f64,
    cross_fitted: f64,
}

/// Weights of the baseline: n-gram cosine alone.
fn baseline() -> Features {
    let mut weights = [0.0; N];
    weights[COSINE] = 1.0;
    weights
}

/// Evaluates `weights` on every set.
pub fn report(sets: &[Prepared], weights: &Features, seed: u64) -> Report {
    let evaluations: Vec<Evaluation> = sets.iter().map(|set| evaluate(&set.examples, weights)).collect();
    let set_report = |(set, evaluations): (&Prepared, &Evaluation)| SetReport {
        name: set.config.name.clone(),
        role: set.config.role,
        n_mentions: set.mentions.len(),
        recall_of_candidates: mean(&set.per_mention(&evaluations.ranks, |rank| f64::from(u8::from(rank < usize::MAX)))),
        model: scores(set, &evaluations.ranks, seed),
        n_gram_baseline: scores(set, &evaluate(&set.examples, &baseline()).ranks, seed),
    };
    Report {
        sets: sets.iter().zip(&evaluations).map(set_report).collect(),
        ablation: BTreeMap::new(),
        seen: BTreeMap::new(),
        calibration: calibration(sets, &evaluations),
    }
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

/// Accuracy@1 of a set.
pub fn accuracy(set: &Prepared, ranks: &[Option<usize>]) -> f64 {
    mean(&set.per_mention(ranks, |rank| f64::from(u8::from(rank <= 1))))
}

fn scores(set: &Prepared, ranks: &[Option<usize>], seed: u64) -> Scores {
    let within = |k: usize| set.per_mention(ranks, move |rank| f64::from(u8::from(rank <= k)));
    let first = within(1);
    let mut row_of: BTreeMap<&str, usize> = BTreeMap::new();
    let mut documents: Vec<(f64, f64)> = Vec::new();
    for ((document, _), right) in set.mentions.iter().zip(&first) {
        let row = *row_of.entry(document).or_insert(documents.len());
        if row == documents.len() {
            documents.push((0.0, 0.0));
        }
        documents[row].0 += right;
        documents[row].1 += 1.0;
    }
    let statistic = |drawn: &[u32]| {
        let sum = |part: fn(&(f64, f64)) -> f64| -> f64 {
            drawn.iter().zip(&documents).map(|(times, document)| f64::from(*times) * part(document)).sum()
        };
        vec![sum(|document| document.0) / sum(|document| document.1).max(1.0)]
    };
    let found = intervals(documents.len(), BootstrapConfig::default(), statistic, &mut SplitMix64::new(seed));
    let reciprocal = set.per_mention(ranks, |rank| if rank == usize::MAX { 0.0 } else { 1.0 / rank as f64 });
    Scores {
        accuracy_at_1: mean(&first),
        accuracy_at_5: mean(&within(5)),
        mrr: mean(&reciprocal),
        accuracy_at_1_interval: found.first().copied(),
    }
}

/// Drop of accuracy@1 without each feature group.
pub fn ablation(
    sets: &[Prepared],
    fit: &[Example],
    config: &FitConfig,
    weights: &Features,
) -> BTreeMap<&'static str, BTreeMap<String, f64>> {
    let evaluations: Vec<Evaluation> = sets.iter().map(|set| evaluate(&set.examples, weights)).collect();
    let mut table = BTreeMap::new();
    for (group, rows) in GROUPS {
        let weights = fit_weights_without(fit, config, rows);
        let dev = sets.iter().zip(&evaluations).filter(|(set, _)| set.config.role == Role::Dev);
        let lost = dev.map(|(set, evaluations)| {
            let without = accuracy(set, &evaluate(&set.examples, &weights).ranks);
            (set.config.name.clone(), 100.0 * (accuracy(set, &evaluations.ranks) - without))
        });
        table.insert(group, lost.collect());
    }
    table
}

/// The calibration points of the dev sets, each with its set.
fn dev_points<'a>(
    sets: &'a [Prepared],
    evaluations: &'a [Evaluation],
) -> impl Iterator<Item = (&'a Prepared, &'a Point)> + Clone {
    let dev = sets.iter().zip(evaluations).filter(|(set, _)| set.config.role == Role::Dev);
    dev.flat_map(|(set, evaluations)| evaluations.points.iter().map(move |point| (set, point)))
}

/// Two-fold cross-validation of the calibration over dev documents.
fn calibration(sets: &[Prepared], evaluations: &[Evaluation]) -> CalibrationReport {
    let half = |set: &Prepared, point: &Point| set.document_of[point.example] % 2;
    let mut predictions = Vec::new();
    for here in 0..2 {
        let others =
            dev_points(sets, evaluations).filter(|(set, point)| half(set, point) != here).map(|(_, point)| point);
        let calibration = fit_calibration(others);
        let own = dev_points(sets, evaluations).filter(|(set, point)| half(set, point) == here && point.rank == 0);
        predictions.extend(own.map(|(_, point)| (calibration.probability(point.score, point.margin), point.right)));
    }
    let first = dev_points(sets, evaluations).filter(|(_, point)| point.rank == 0);
    CalibrationReport {
        softmax: calibration_error(first.map(|(_, point)| (point.probability, point.right))),
        cross_fitted: calibration_error(predictions.into_iter()),
    }
}

/// Fits the calibration on the dev sets.
pub fn calibrated(sets: &[Prepared], weights: Features) -> LexicalModel {
    let evaluations: Vec<Evaluation> = sets.iter().map(|set| evaluate(&set.examples, &weights)).collect();
    let calibration = fit_calibration(dev_points(sets, &evaluations).map(|(_, point)| point));
    LexicalModel { weights, calibration }
}

/// Linking errors on the dev sets, with explanations, one per line.
pub fn errors(sets: &[Prepared], model: &LexicalModel) -> String {
    let mut lines = String::from("set\tquery\tids\tscore\tfirst\tscore\tright\twhy\n");
    for set in sets.iter().filter(|set| set.config.role == Role::Dev) {
        for (row, example) in set.examples.iter().enumerate() {
            lines.extend(error_line(set, row, example, model));
        }
    }
    lines
}

fn error_line(set: &Prepared, row: usize, example: &Example, model: &LexicalModel) -> Option<String> {
    let best = |wanted: bool| {
        let some = example.candidates.iter().filter(|(_, right)| *right == wanted);
        some.map(|(one, _)| (model.score(&one.features), one)).max_by(|a, b| a.0.total_cmp(&b.0))
    };
    let (wrong_score, wrong) = best(false)?;
    let right = best(true);
    if right.is_some_and(|(score, _)| score > wrong_score) {
        return None;
    }
    let kb = set.kb_of(row);
    let show = |one: &canonym_core::link::lexical::Scored| format!("{}={}", kb.id(one.concept), kb.name(one.name));
    let mut why: Vec<(f32, &str)> = right.map_or(Vec::new(), |(_, other)| {
        let pull = |row: usize| model.weights[row] * (wrong.features[row] - other.features[row]);
        (0..N).map(|row| (pull(row), feature_name(row))).collect()
    });
    why.sort_by(|a, b| b.0.abs().total_cmp(&a.0.abs()).then(a.1.cmp(b.1)));
    let why: Vec<String> = why.iter().take(5).map(|(pull, name)| format!("{pull:+.2} {name}")).collect();
    let name = &set.names[row];
    let ids: Vec<&str> = name.ids.iter().map(String::as_str).collect();
    let (score, right) =
        right.map_or((String::new(), String::new()), |(score, one)| (format!("{score:.2}"), show(one)));
    Some(format!(
        "{}\t{}\t{}\t{wrong_score:.2}\t{}\t{score}\t{right}\t{}\n",
        set.config.name,
        name.query,
        ids.join("|"),
        show(wrong),
        why.join(", ")
    ))
}
