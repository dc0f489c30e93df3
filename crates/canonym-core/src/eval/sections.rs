//! Optional sections of the text report: headlines, curves, strata.

use super::curves::Curves;
use super::matching::Measure;
use super::protocol::HeadlineScore;
use super::report::{Report, SeenDocuments};
use super::strata::{Estimate, Stratum};
use super::table::{cells, header, line, percent, range};

/// Coverages at which the risk is printed.
const SHOWN_COVERAGES: [f64; 5] = [0.2, 0.4, 0.6, 0.8, 1.0];

const STRATA_WIDTHS: [usize; 3] = [9, 9, 14];

/// The line of headline scores.
pub(super) fn headlines(scores: &[HeadlineScore], protocol: Option<&str>) -> String {
    let one = |score: &HeadlineScore| {
        let interval = score.ci.map_or_else(String::new, |ci| format!(" ({})", range(ci)));
        format!("{} {}{interval}", score.name, percent(score.value))
    };
    let shown: Vec<String> = scores.iter().map(one).collect();
    format!("headline of protocol `{}`: {}", protocol.unwrap_or_default(), shown.join("; "))
}

/// Number of documents that the model was trained on, and separate scores.
pub(super) fn seen(out: &mut String, known: &SeenDocuments) {
    if known.seen.n_seen > 0 {
        line(out, &format!("{}: {}", known.seen.sentence(), known.seen.details()));
    }
    let figures = |report: &Report| {
        let strict = report.metrics.get(&Measure::Strict).map(|score| format!("strict F1 {}", percent(score.f1)));
        let first = report.ranking.as_ref().and_then(|ranking| ranking.all.accuracy.get(&1));
        let first = first.map(|accuracy| format!("accuracy@1 {}", percent(*accuracy)));
        strict.into_iter().chain(first).collect::<Vec<_>>().join(", ")
    };
    if let Some(apart) = &known.apart {
        for (label, report) in [("seen", &apart.seen), ("unseen", &apart.unseen)] {
            line(out, &format!("  {} {label}: {}", report.n_documents, figures(report)));
        }
    }
}

/// Risk-coverage curve and calibration.
pub(super) fn curves(out: &mut String, of: &str, curves: &Curves) {
    line(out, "");
    line(
        out,
        &format!(
            "scores of {of}: {} predictions for {}, {} correct; AURC {:.4}, excess {:.4}",
            curves.n_answered, curves.n, curves.n_right, curves.aurc, curves.excess_aurc
        ),
    );
    let at = |coverage: f64| curves.points.iter().rfind(|point| point.coverage <= coverage + 1e-12);
    let points: Vec<_> = SHOWN_COVERAGES.into_iter().filter_map(at).collect();
    if !points.is_empty() {
        let row = |label: &str, values: Vec<String>| cells(label, &values, &[8]);
        line(out, &row("threshold", points.iter().map(|point| format!("{:.4}", point.threshold)).collect()));
        line(out, &row("coverage", points.iter().map(|point| percent(point.coverage)).collect()));
        line(out, &row("precision", points.iter().map(|point| percent(1.0 - point.risk)).collect()));
        line(out, &row("recall", points.iter().map(|point| percent(point.recall)).collect()));
    }
    if let Some(wanted) = &curves.wanted {
        let target = percent(wanted.precision);
        line(
            out,
            &match wanted.threshold {
                Some(threshold) => format!(
                    "precision {target}: threshold {threshold:.4} gives {}, with coverage {} and recall {}, on these data",
                    percent(wanted.reached),
                    percent(wanted.coverage),
                    percent(wanted.recall)
                ),
                None => format!("precision {target}: not reached by any threshold on these data"),
            },
        );
    }
    if let Some(calibration) = &curves.calibration {
        let (ece, mce, brier) = (calibration.ece, calibration.mce, calibration.brier);
        line(out, &format!("calibration: ECE {ece:.4}, MCE {mce:.4}, Brier {brier:.4}"));
        for bin in calibration.bins.iter().filter(|bin| bin.n > 0) {
            let label = format!("  {:.2}-{:.2}", bin.low, bin.high);
            let values = [bin.n.to_string(), percent(bin.mean_confidence), percent(bin.accuracy)];
            line(out, &cells(&label, &values, &[8]));
        }
    }
}

/// Scores on parts of gold.
pub(super) fn strata(out: &mut String, report: &Report) {
    if report.slices.is_empty() {
        return;
    }
    let parts = || report.slices.values().flat_map(|values| values.values());
    let mut measures: Vec<_> = parts().flat_map(|part| part.recall.keys().copied()).collect();
    measures.sort_unstable();
    measures.dedup();
    let mut titles: Vec<String> = vec!["gold".to_owned()];
    for measure in &measures {
        titles.extend([format!("R {}", short(measure.name())), "95%".to_owned()]);
    }
    if parts().any(|part| part.accuracy.is_some()) {
        titles.extend(["acc@1".to_owned(), "95%".to_owned()]);
    }
    line(out, "");
    line(
        out,
        &header(&label("gold stratum"), &titles.iter().map(String::as_str).collect::<Vec<_>>(), &widths(&titles)),
    );
    for (property, values) in &report.slices {
        for (value, part) in values {
            let row = row(part, &measures, part.accuracy.is_some());
            line(out, &cells(&label(&format!("{property}: {value}")), &row, &widths(&titles)));
        }
    }
}

fn widths(titles: &[String]) -> Vec<usize> {
    let [number, share, interval] = STRATA_WIDTHS;
    let width = |(row, _): (usize, &String)| match row {
        0 => number,
        row if row % 2 == 1 => share.max(titles[row].len()),
        _ => interval,
    };
    titles.iter().enumerate().map(width).collect()
}

/// Pads the first column, which is wider than that of measures.
fn label(text: &str) -> String {
    format!("{text:<28}")
}

/// Short name of a measure, to fit a column.
fn short(name: &str) -> &str {
    name.strip_prefix("partial-").unwrap_or(name)
}

fn row(part: &Stratum, measures: &[super::matching::Measure], ranked: bool) -> Vec<String> {
    let mut estimates: Vec<Option<&Estimate>> = measures.iter().map(|measure| part.recall.get(measure)).collect();
    if ranked {
        estimates.push(part.accuracy.as_ref());
    }
    let n = estimates.iter().flatten().map(|estimate| estimate.n).max().unwrap_or_default();
    let mut row = vec![n.to_string()];
    for estimate in estimates {
        let interval = estimate.and_then(|estimate| estimate.ci).map_or_else(String::new, range);
        row.extend([estimate.map_or_else(String::new, |estimate| percent(estimate.value)), interval]);
    }
    row
}
