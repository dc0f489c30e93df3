//! Reports side by side: folds of a corpus, or a system with two dictionaries.

use serde::{Deserialize, Serialize};

use super::matching::{Counts, ratio};
use super::ranking::RankingScores;
use super::report::Report;
use super::table::{LABEL, cells_beside, line, percent};
use crate::{Error, Result};

/// Scores of separately trained folds.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Folds {
    /// Number of folds.
    pub n_folds: u64,
    /// The common protocol, if there is one.
    pub protocol: Option<String>,
    /// The scores that all folds have.
    pub scores: Vec<FoldScore>,
}

/// A score over folds.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct FoldScore {
    /// Its name, such as `accuracy@1`.
    pub name: String,
    /// Whether it is the headline score.
    pub headline: bool,
    /// Its value in each fold.
    pub values: Vec<f64>,
    /// Unweighted mean.
    pub mean: f64,
    /// Sample standard deviation; 0 for a single fold.
    pub deviation: f64,
    /// Score over the mentions of all folds together (micro average).
    pub pooled: f64,
}

/// How a score is pooled.
#[derive(Clone, Copy)]
enum Basis {
    /// A mean over this many mentions.
    Mentions(u64),
    /// F1 of summed counts.
    Counts(Counts),
}

struct Number {
    name: String,
    value: f64,
    basis: Basis,
}

/// The scores of a report that are comparable with other reports.
fn numbers(report: &Report) -> Vec<Number> {
    let mut numbers: Vec<Number> = report
        .counts
        .iter()
        .map(|(measure, counts)| Number {
            name: format!("{} F1", measure.name()),
            value: counts.score().f1,
            basis: Basis::Counts(*counts),
        })
        .collect();
    let mut add = |scores: &RankingScores, part: &str, only_first: bool| {
        let basis = Basis::Mentions(scores.n_mentions);
        let depths = scores.accuracy.iter().filter(|(depth, _)| !only_first || **depth == 1);
        numbers.extend(depths.map(|(depth, &value)| Number { name: format!("accuracy@{depth}{part}"), value, basis }));
        if !only_first {
            numbers.push(Number { name: "MRR".to_owned(), value: scores.mrr, basis });
            numbers.push(Number { name: "MAP".to_owned(), value: scores.map, basis });
        }
    };
    if let Some(ranking) = &report.ranking {
        add(&ranking.all, "", false);
        for (scores, part) in [(&ranking.linkable, ", linkable"), (&ranking.zero_shot, ", zero-shot")] {
            if let Some(scores) = scores {
                add(scores, part, true);
            }
        }
    }
    numbers
}

/// Combines the reports of folds. It is an error if there are none or if their policies differ.
pub fn over_reports(reports: &[Report]) -> Result<Folds> {
    let Some(first) = reports.first() else { return Err(Error::no_data("no fold reports given")) };
    if let Some(row) = reports.iter().position(|report| report.policy != first.policy) {
        let message = format!("fold {} was scored with different options than fold 1", row + 1);
        return Err(Error::mismatch(message).with_hint("evaluate every fold with the same options"));
    }
    let all: Vec<Vec<Number>> = reports.iter().map(numbers).collect();
    let is_accuracy = |name: &str| name == "accuracy@1";
    let headline = all[0].iter().find(|number| is_accuracy(&number.name)).or(all[0].first());
    let headline = headline.map(|number| number.name.clone());
    let score = |number: &Number| {
        let same = |list: &Vec<Number>| list.iter().find(|other| other.name == number.name).map(|n| (n.value, n.basis));
        let found: Vec<(f64, Basis)> = all.iter().map(same).collect::<Option<_>>()?;
        let values: Vec<f64> = found.iter().map(|one| one.0).collect();
        let mean = ratio(values.iter().sum(), values.len() as f64);
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        Some(FoldScore {
            name: number.name.clone(),
            headline: headline.as_ref() == Some(&number.name),
            mean,
            deviation: ratio(squares, values.len() as f64 - 1.0).sqrt(),
            pooled: pooled(&found),
            values,
        })
    };
    let scores = all[0].iter().filter_map(score).collect();
    Ok(Folds { n_folds: reports.len() as u64, protocol: first.policy.protocol.clone(), scores })
}

fn pooled(folds: &[(f64, Basis)]) -> f64 {
    let (mut sum, mut n_mentions, mut counts) = (0.0, 0, None);
    for &(value, basis) in folds {
        match basis {
            Basis::Mentions(n) => {
                sum += value * n as f64;
                n_mentions += n;
            }
            Basis::Counts(one) => counts = Some(counts.map_or(one, |known: Counts| known + one)),
        }
    }
    counts.map_or_else(|| ratio(sum, n_mentions as f64), |counts| counts.score().f1)
}

impl Folds {
    /// The folds in columns, in percent; `*` marks the headline.
    pub fn table(&self) -> String {
        let mut out = String::new();
        let protocol = self.protocol.as_deref().map_or_else(String::new, |name| format!(", protocol `{name}`"));
        line(&mut out, &format!("{} folds{protocol}; * marks the headline (mean over folds)", self.n_folds));
        line(&mut out, "");
        let titles = ["mean", "sd", "pooled"].map(str::to_owned).into_iter();
        let titles: Vec<String> = titles.chain((1..=self.n_folds).map(|row| format!("fold {row}"))).collect();
        let label = |score: &FoldScore| format!("{}{}", score.name, if score.headline { " *" } else { "" });
        let width = width_of(self.scores.iter().map(label));
        let column = titles.iter().map(String::len).max().unwrap_or_default().max(7);
        line(&mut out, &cells_beside("", width, &titles, &[column]));
        for score in &self.scores {
            let values = [score.mean, score.deviation, score.pooled].into_iter().chain(score.values.iter().copied());
            let values: Vec<String> = values.map(percent).collect();
            line(&mut out, &cells_beside(&label(score), width, &values, &[column]));
        }
        out
    }
}

/// Width of a first column with these labels.
fn width_of(labels: impl Iterator<Item = String>) -> usize {
    labels.map(|label| label.chars().count()).max().unwrap_or_default().max(LABEL)
}

/// The scores that two reports share, in columns: clean dictionary, leaky dictionary, difference.
pub fn side_by_side(clean: &Report, leaky: &Report) -> String {
    let mut out = String::new();
    let titles = ["clean", "leaky", "difference"].map(str::to_owned);
    let width = width_of(numbers(clean).into_iter().map(|number| number.name));
    line(&mut out, &cells_beside("dictionary", width, &titles, &[9, 9, 10]));
    let others = numbers(leaky);
    for number in numbers(clean) {
        let Some(other) = others.iter().find(|other| other.name == number.name) else { continue };
        let difference = other.value - number.value;
        let sign = if difference < 0.0 { "-" } else { "+" };
        let values = [percent(number.value), percent(other.value), format!("{sign}{}", percent(difference.abs()))];
        line(&mut out, &cells_beside(&number.name, width, &values, &[9, 9, 10]));
    }
    for (label, value) in [
        ("ids", (|kb| kb.size.to_string()) as fn(&super::report::KbSummary) -> String),
        ("coverage", |kb| percent(kb.coverage)),
    ] {
        if let (Some(clean), Some(leaky)) = (&clean.kb, &leaky.kb) {
            line(&mut out, &cells_beside(label, width, &[value(clean), value(leaky)], &[9, 9]));
        }
    }
    debug_assert!(out.lines().all(|line| line.len() > LABEL));
    out
}

#[cfg(test)]
mod tests {
    use super::super::bootstrap::SplitMix64;
    use super::super::ids::IdSet;
    use super::super::ranking::RankedMention;
    use super::super::report::{EvalConfig, evaluate_ranking};
    use super::*;
    use expect_test::expect;

    fn fold(rights: &[bool]) -> Report {
        let mention = |&right: &bool| RankedMention {
            document: "d".into(),
            gold: IdSet::parse_one("A"),
            parts: vec![vec![IdSet::parse_one(if right { "A" } else { "B" })]],
            ..RankedMention::default()
        };
        let mentions: Vec<RankedMention> = rights.iter().map(mention).collect();
        evaluate_ranking(&mentions, &EvalConfig::default(), &mut SplitMix64::new(13))
    }

    #[test]
    fn v13_the_headline_of_folds_is_their_mean() {
        let folds = over_reports(&[fold(&[true, true, true, false]), fold(&[true, false])]).expect("same rules");
        let first = &folds.scores[0];
        assert_eq!((first.name.as_str(), first.headline, first.mean), ("accuracy@1", true, 0.625));
        assert!((first.pooled - 4.0 / 6.0).abs() < 1e-12);
        expect![[r#"
            2 folds; * marks the headline (mean over folds)

                                     mean      sd  pooled  fold 1  fold 2
            accuracy@1 *            62.50   17.68   66.67   75.00   50.00
            accuracy@5              62.50   17.68   66.67   75.00   50.00
            accuracy@10             62.50   17.68   66.67   75.00   50.00
            accuracy@20             62.50   17.68   66.67   75.00   50.00
            MRR                     62.50   17.68   66.67   75.00   50.00
            MAP                     62.50   17.68   66.67   75.00   50.00
        "#]]
        .assert_eq(&folds.table());
    }

    #[test]
    fn long_names_of_measures_leave_columns_in_line() {
        let score = |name: &str, headline: bool| FoldScore {
            name: name.to_owned(),
            headline,
            values: vec![1.0; 10],
            mean: 1.0,
            ..FoldScore::default()
        };
        let scores = vec![score("strict F1", true), score("mention-recognition F1", false)];
        let table = Folds { n_folds: 10, protocol: None, scores }.table();
        let ends: Vec<usize> = table.lines().skip(2).map(str::len).collect();
        assert!(ends.len() == 3 && ends.iter().all(|end| *end == ends[0]), "{table}");
    }

    #[test]
    fn folds_of_different_rules_are_refused() {
        let mut other = fold(&[true]);
        other.policy.bat = true;
        let error = over_reports(&[fold(&[true]), other]).expect_err("other rules");
        assert_eq!(error.to_string(), "fold 2 was scored with different options than fold 1");
        assert!(over_reports(&[]).is_err());
    }

    #[test]
    fn dictionaries_are_compared_side_by_side() {
        let text = side_by_side(&fold(&[true, false]), &fold(&[true, true]));
        assert!(text.contains("accuracy@1                50.00    100.00     +50.00"), "{text}");
    }
}
