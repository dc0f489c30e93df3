//! The text report.

use std::fmt::Write;

use super::bootstrap::Interval;
use super::matching::{Counts, Measure, Score};
use super::ranking::{Composite, RankUnit, Ranking, RankingScores};
use super::report::{Report, Slice};
use super::{folds, sections};

/// Width of the first column.
pub(super) const LABEL: usize = 21;

/// Widths of the other columns: span scores, slices, rankings.
const SPAN_WIDTHS: [usize; 7] = [7, 7, 7, 14, 9, 14, 14];
const SLICE_WIDTHS: [usize; 5] = [7, 7, 7, 14, 14];
const RANKING_WIDTHS: [usize; 7] = [9, 14, 14, 14, 14, 14, 14];

impl Report {
    /// The report as a text table with fixed-width columns, in percent.
    pub fn table(&self) -> String {
        let mut out = String::new();
        let titles = [&self.system, &self.dataset, &self.split].map(String::as_str);
        let title: Vec<&str> = titles.into_iter().filter(|part| !part.is_empty()).collect();
        if !title.is_empty() {
            line(&mut out, &title.join(", "));
        }
        line(&mut out, &self.summary());
        if let Some(known) = &self.seen {
            sections::seen(&mut out, known);
        }
        if !self.headlines.is_empty() {
            line(&mut out, &sections::headlines(&self.headlines, self.policy.protocol.as_deref()));
        }
        if !self.metrics.is_empty() {
            line(&mut out, "");
            line(
                &mut out,
                &header("", &["P", "R", "F1", "95% of F1", "macro F1", "right/pred", "found/gold"], &SPAN_WIDTHS),
            );
            for (&measure, score) in &self.metrics {
                line(&mut out, &self.row(measure, score));
            }
        }
        for (kind, slice) in &self.by_type {
            write_slice(&mut out, &format!("type {kind}"), slice);
        }
        if let Some(slice) = &self.zero_shot {
            write_slice(&mut out, "zero-shot", slice);
        }
        if let Some(ranking) = &self.ranking {
            self.write_ranking(&mut out, ranking);
        }
        sections::strata(&mut out, self);
        for (of, curves) in &self.curves {
            sections::curves(&mut out, of, curves);
        }
        if let Some(leaky) = &self.leaky {
            line(&mut out, "");
            out.push_str(&folds::side_by_side(self, leaky));
        }
        for remark in self.remarks() {
            line(&mut out, &remark);
        }
        out
    }

    fn summary(&self) -> String {
        let ids = serde_name(&self.policy.ids);
        let nil = if self.n_gold_nil > 0 { format!(" ({} without a concept)", self.n_gold_nil) } else { String::new() };
        let judged = if self.metrics.is_empty() { "answered" } else { "predicted" };
        let (n_documents, n_gold, n_pred) = (self.n_documents, self.n_gold, self.n_pred);
        let documents = if n_documents == 1 { "document" } else { "documents" };
        format!("{n_documents} {documents}, {n_gold} gold{nil}, {n_pred} {judged}; ids match by `{ids}`")
    }

    fn row(&self, measure: Measure, score: &Score) -> String {
        let interval = self.ci.get(&measure).map_or_else(String::new, |bounds| range(bounds.f1));
        let macro_f1 = self.macro_metrics.get(&measure).map_or_else(String::new, |score| percent(score.f1));
        let (right, found) = self.counts.get(&measure).map_or_else(Default::default, shares);
        let scores = [percent(score.precision), percent(score.recall), percent(score.f1)];
        let [precision, recall, f1] = scores;
        cells(
            &self.starred(measure.name(), "F1"),
            &[precision, recall, f1, interval, macro_f1, right, found],
            &SPAN_WIDTHS,
        )
    }

    /// The label, with `*` if `label what` is a headline.
    fn starred(&self, label: &str, what: &str) -> String {
        let is_headline = self.headlines.iter().any(|score| score.name == format!("{label} {what}"));
        if is_headline { format!("{label} *") } else { label.to_owned() }
    }

    /// The label, with `*` if an accuracy of these mentions is a headline.
    fn starred_ranking(&self, label: &str, part: &str) -> String {
        let is_fold_headline = |name: &str| part.is_empty() && (name == "MAP" || name.ends_with(" of this fold"));
        let is_accuracy = |name: &str| {
            name.strip_prefix("accuracy@").is_some_and(|rest| rest.trim_start_matches(char::is_numeric) == part)
        };
        let is_headline = self.headlines.iter().any(|score| is_accuracy(&score.name) || is_fold_headline(&score.name));
        if is_headline { format!("{label} *") } else { label.to_owned() }
    }

    fn write_ranking(&self, out: &mut String, ranking: &Ranking) {
        let depths: Vec<String> = ranking.all.accuracy.keys().map(|depth| format!("acc@{depth}")).collect();
        let mut names = vec!["mentions"];
        names.extend(depths.iter().map(String::as_str));
        names.extend(["MRR", "MAP"]);
        let unit = if self.policy.unit == RankUnit::Names { "names" } else { "entities" };
        line(out, "");
        line(out, &header(&format!("ranking of {unit}"), &names, &RANKING_WIDTHS));
        write_scores(out, &self.starred_ranking("all", ""), &ranking.all);
        write_intervals(out, &ranking.all);
        write_scores(out, "normalised", &ranking.normalised);
        if let Some(scores) = &ranking.linkable {
            write_scores(out, &self.starred_ranking("linkable", ", linkable"), scores);
        }
        if let Some(scores) = &ranking.zero_shot {
            write_scores(out, "zero-shot", scores);
        }
    }

    fn remarks(&self) -> Vec<String> {
        let mut remarks = vec![String::new()];
        if let Some(kb) = &self.kb {
            let name = if kb.name.is_empty() { "the knowledge base" } else { &kb.name };
            remarks.push(format!("{name} ({} ids) covers {}% of gold", kb.size, percent(kb.coverage)));
        }
        if let Some(ranking) = &self.ranking {
            match self.policy.composite {
                Composite::All => {}
                Composite::First => remarks.push("only the first part of composite mentions is scored".into()),
                Composite::Drop => remarks.push(format!("composite mentions excluded: {}", ranking.n_dropped)),
            }
            if ranking.n_unanswered > 0 {
                remarks.push(format!("mentions without candidates, counted as wrong: {}", ranking.n_unanswered));
            }
        }
        if self.n_missing_documents > 0 {
            remarks.push(format!("gold documents without predictions: {}", self.n_missing_documents));
        }
        if self.n_different_texts > 0 {
            remarks.push(format!(
                "predicted documents whose text differs from gold (offsets may not match): {}",
                self.n_different_texts
            ));
        }
        if let Some(value) = self.paper_value {
            remarks.push(format!("published: {}", percent(value)));
        }
        if !self.note.is_empty() {
            remarks.push(self.note.clone());
        }
        if remarks.len() == 1 { Vec::new() } else { remarks }
    }
}

/// A share in percent with two decimals; ties are rounded to even.
pub fn percent(share: f64) -> String {
    let scaled = share * 10_000.0;
    // A tie such as 12.345 % is rarely exact in binary, hence the tolerance.
    let tie = scaled.floor() + 0.5;
    let rounded = if (scaled - tie).abs() < 1e-7 { tie.round_ties_even() } else { scaled.round() };
    format!("{:.2}", rounded / 100.0)
}

pub(super) fn range(interval: Interval) -> String {
    format!("{}-{}", percent(interval.0), percent(interval.1))
}

/// `correct/predicted` and `found/gold`; two decimals under `partial-maxmax`.
fn shares(counts: &Counts) -> (String, String) {
    let amount = |sum: f64| if sum.fract() == 0.0 { format!("{sum:.0}") } else { format!("{sum:.2}") };
    (format!("{}/{}", amount(counts.tp_pred), counts.n_pred), format!("{}/{}", amount(counts.tp_gold), counts.n_gold))
}

fn write_slice(out: &mut String, label: &str, slice: &Slice) {
    line(out, "");
    line(out, &header(label, &["P", "R", "F1", "right/pred", "found/gold"], &SLICE_WIDTHS));
    for (measure, score) in &slice.metrics {
        let (right, found) = slice.counts.get(measure).map_or_else(Default::default, shares);
        let scores = [percent(score.precision), percent(score.recall), percent(score.f1), right, found];
        line(out, &cells(measure.name(), &scores, &SLICE_WIDTHS));
    }
}

fn write_scores(out: &mut String, label: &str, scores: &RankingScores) {
    let mut row = vec![scores.n_mentions.to_string()];
    row.extend(scores.accuracy.values().map(|&value| percent(value)));
    row.extend([percent(scores.mrr), percent(scores.map)]);
    line(out, &cells(label, &row, &RANKING_WIDTHS));
}

fn write_intervals(out: &mut String, scores: &RankingScores) {
    if let (Some(mrr), Some(map)) = (scores.mrr_ci, scores.map_ci) {
        let mut row = vec![String::new()];
        row.extend(scores.accuracy_ci.values().map(|&interval| range(interval)));
        row.extend([range(mrr), range(map)]);
        line(out, &cells("  95%", &row, &RANKING_WIDTHS));
    }
}

pub(super) fn header(label: &str, names: &[&str], widths: &[usize]) -> String {
    cells(label, &names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>(), widths)
}

/// A row with a left-aligned label and right-aligned cells; columns beyond `widths` have the last width.
pub(super) fn cells(label: &str, values: &[String], widths: &[usize]) -> String {
    cells_beside(label, LABEL, values, widths)
}

/// Like [`cells`], with another width of the first column.
pub(super) fn cells_beside(label: &str, first: usize, values: &[String], widths: &[usize]) -> String {
    let mut row = format!("{label:<first$}");
    let mut widths = widths.iter();
    let mut width = 0;
    for value in values {
        width = widths.next().copied().unwrap_or(width);
        write!(row, " {value:>width$}").expect("a string takes every write");
    }
    row
}

pub(super) fn line(out: &mut String, text: &str) {
    out.push_str(text.trim_end());
    out.push('\n');
}

/// The serialised name of an enum value.
pub(super) fn serde_name(value: &impl serde::Serialize) -> String {
    serde_json::to_value(value).ok().and_then(|value| value.as_str().map(str::to_owned)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ties_go_to_the_even_neighbour() {
        assert_eq!(percent(1.0 / 800.0), "0.12");
        assert_eq!(percent(3.0 / 800.0), "0.38");
        assert_eq!(percent(0.12345), "12.34");
        assert_eq!(percent(0.12355), "12.36");
        assert_eq!(percent(2.0 / 3.0), "66.67");
        assert_eq!(percent(1.0), "100.00");
        assert_eq!(percent(0.0), "0.00");
    }
}
