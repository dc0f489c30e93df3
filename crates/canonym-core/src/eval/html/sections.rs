//! The sections of the page with figures.

use super::markup::{Markup, percent};
use super::plots::{self, Plot, share_ticks};
use super::{MAX_ROWS, Page};
use crate::eval::bootstrap::Interval;
use crate::eval::curves::{Calibration, Curves};
use crate::eval::errors::{ClassCount, ErrorAnalysis, ErrorClass, NOWHERE_IN_GOLD, SurfaceCount};
use crate::eval::ids::IdPolicy;
use crate::eval::matching::{Measure, ratio};
use crate::eval::ranking::{Composite, RankUnit, Ranking, RankingScores};
use crate::eval::report::{Policy, Report};
use crate::eval::thousands;

/// Maximum number of types listed with scores; others are only counted.
const MAX_TYPES: usize = 60;

/// The page header: what was evaluated.
pub(super) fn masthead(out: &mut Markup, page: &Page<'_>, title: &str) {
    out.leaf("p.eyebrow", &[], "Evaluation of concept linking");
    out.leaf("h1", &[], title);
    let report = page.report;
    out.element("dl", &[], |out| {
        let mut fact = |label: &str, value: &str| {
            out.element("div", &[], |out| {
                out.leaf("dt", &[], label);
                out.leaf("dd", &[], value);
            });
        };
        for (label, value) in page.facts {
            fact(label, value);
        }
        if let Some(kb) = &report.kb {
            let name = if kb.name.is_empty() { "unnamed" } else { kb.name.as_str() };
            fact("Knowledge base", &format!("{name}, {} ids", thousands(kb.size)));
        }
        fact("Documents", &thousands(report.n_documents));
        fact("Gold", &format!("{} mentions", thousands(report.n_gold)));
        fact("Predicted", &format!("{} mentions", thousands(report.n_pred)));
        fact("Ids match", policy_words(report.policy.ids));
    });
}

/// Headline scores with intervals, then the error classes.
pub(super) fn headline(out: &mut Markup, page: &Page<'_>) {
    let report = page.report;
    out.element("div.figures", &[], |out| {
        if let Some(score) = report.metrics.get(&Measure::Strict) {
            let bounds = report.ci.get(&Measure::Strict);
            figure(out, "figure first", "F1, strict", score.f1, bounds.map(|bounds| bounds.f1));
            figure(out, "figure", "Precision", score.precision, bounds.map(|bounds| bounds.precision));
            figure(out, "figure", "Recall", score.recall, bounds.map(|bounds| bounds.recall));
        }
        if let Some((score, interval)) = accuracy_at_1(report) {
            let class = if report.metrics.is_empty() { "figure first" } else { "figure" };
            figure(out, class, "Accuracy@1", score, interval);
        }
        if let Some(kb) = &report.kb {
            figure_with(out, "figure", "Gold concepts in the terminology", kb.coverage, None, "upper bound of recall");
        }
    });
    if let Some(errors) = page.errors.filter(|errors| errors.n_gold + errors.n_pred > 0) {
        out.leaf("p.verdict", &[], &verdict(errors));
        classes(out, errors);
    }
}

fn accuracy_at_1(report: &Report) -> Option<(f64, Option<Interval>)> {
    let all = &report.ranking.as_ref()?.all;
    Some((*all.accuracy.get(&1)?, all.accuracy_ci.get(&1).copied()))
}

fn figure(out: &mut Markup, class: &str, label: &str, value: f64, interval: Option<Interval>) {
    let note = interval.map_or_else(|| "no interval".to_owned(), |bounds| format!("95%: {}", range(bounds, 1)));
    figure_with(out, class, label, value, interval, &note);
}

fn figure_with(out: &mut Markup, class: &str, label: &str, value: f64, interval: Option<Interval>, note: &str) {
    out.element("div", &[("class", class)], |out| {
        out.leaf("p.label", &[], label);
        out.element("p.value", &[], |out| {
            out.text(&percent(value, 1));
            out.leaf("small", &[], " %");
        });
        plots::scale(out, value, interval.map(|Interval(low, high)| (low, high)));
        out.leaf("p.note", &[], note);
    });
}

fn range(Interval(low, high): Interval, digits: usize) -> String {
    format!("{}–{}", percent(low, digits), percent(high, digits))
}

/// The error classes that occur, most frequent first.
fn wrong_classes(errors: &ErrorAnalysis) -> Vec<&ClassCount> {
    let occurs = |count: &&ClassCount| count.class != ErrorClass::Correct && count.n_cases > 0;
    let mut wrong: Vec<&ClassCount> = errors.classes.iter().filter(occurs).collect();
    wrong.sort_by_key(|count| (u64::MAX - count.n_cases, count.class));
    wrong
}

/// A summary sentence: the share of gold that is correct, and the causes of the rest.
fn verdict(errors: &ErrorAnalysis) -> String {
    let n_of = |class| errors.classes.iter().find(|count| count.class == class).map_or(0, |count| count.n_gold);
    let n_right = n_of(ErrorClass::Correct);
    let mut text = format!(
        "{} of {} gold mentions are correct ({}\u{a0}%).",
        thousands(n_right),
        thousands(errors.n_gold),
        percent(ratio(n_right as f64, errors.n_gold as f64), 1)
    );
    let wrong = wrong_classes(errors);
    let n_wrong: u64 = wrong.iter().map(|count| count.n_cases).sum();
    let named: Vec<String> = wrong
        .iter()
        .take(3)
        .map(|count| {
            let share = percent(ratio(count.n_cases as f64, n_wrong as f64), 0);
            format!("{} ({share}\u{a0}%)", count.class.title().to_lowercase())
        })
        .collect();
    if let Some((last, rest)) = named.split_last() {
        let list = if rest.is_empty() { last.clone() } else { format!("{} and {last}", rest.join(", ")) };
        text += &format!(" Most of the {} errors are: {list}.", thousands(n_wrong));
    }
    let reasons = wrong.iter().flat_map(|count| &count.reasons);
    let n_nowhere: u64 = reasons.filter(|known| known.reason == NOWHERE_IN_GOLD).map(|known| known.n).sum();
    if n_nowhere * 20 > errors.n_pred {
        text += &format!(
            " {} of {} predictions link to concepts that gold never uses: the knowledge base is broader than the corpus.",
            thousands(n_nowhere),
            thousands(errors.n_pred)
        );
    }
    text
}

fn classes(out: &mut Markup, errors: &ErrorAnalysis) {
    let wrong = wrong_classes(errors);
    let most = wrong.first().map_or(0, |count| count.n_cases) as f64;
    let n_wrong: u64 = wrong.iter().map(|count| count.n_cases).sum();
    let caption = if errors.has_terminology {
        "Errors by class. A case is a pair of gold mention and prediction, or an unmatched one of either."
    } else {
        "Errors by class. Missing concepts and names are not reported without a knowledge base."
    };
    let heads = [("", "name"), ("", "bar"), ("Cases", "number"), ("Share", "number"), ("Gold", "number wide")];
    let heads: Vec<(&str, &str)> = heads.into_iter().chain([("Predicted", "number wide")]).collect();
    table(out, caption, &heads, |out| {
        for count in wrong {
            out.element("tr", &[], |out| {
                out.element("th", &[("scope", "row"), ("title", count.class.meaning())], |out| {
                    match errors.examples.is_empty() {
                        true => out.text(count.class.title()),
                        false => out.leaf("a", &[("href", &format!("#{}", count.class.name()))], count.class.title()),
                    }
                });
                out.element("td.bar", &[], |out| plots::bar(out, ratio(count.n_cases as f64, most)));
                number(out, &thousands(count.n_cases));
                number(out, &format!("{}\u{a0}%", percent(ratio(count.n_cases as f64, n_wrong as f64), 1)));
                out.leaf("td", &[("class", "number wide")], &thousands(count.n_gold));
                out.leaf("td", &[("class", "number wide")], &thousands(count.n_pred));
            });
        }
    });
}

/// A table with caption and head; `heads` are the labels and classes of the columns.
fn table(out: &mut Markup, caption: &str, heads: &[(&str, &str)], rows: impl FnOnce(&mut Markup)) {
    out.element("div.scroll", &[("tabindex", "0"), ("role", "region"), ("aria-label", caption)], |out| {
        out.element("table", &[], |out| {
            out.leaf("caption", &[], caption);
            out.element("thead", &[], |out| {
                out.element("tr", &[], |out| {
                    for (label, class) in heads {
                        match label.is_empty() {
                            true => out.leaf("td", &[("class", class)], ""),
                            false => out.leaf("th", &[("scope", "col"), ("class", class)], label),
                        }
                    }
                });
            });
            out.element("tbody", &[], rows);
        });
    });
}

fn number(out: &mut Markup, text: &str) {
    out.leaf("td.number", &[], text);
}

const NUMBER: &str = "number";

/// All measures with intervals.
pub(super) fn measures(out: &mut Markup, report: &Report) {
    out.leaf("h2", &[], "Measures");
    let bootstrap = report.policy.bootstrap;
    let caption = if report.ci.is_empty() {
        "Precision, recall and F1 in percent, summed over the corpus.".to_owned()
    } else {
        let (level, n) = (percent(bootstrap.level, 0), thousands(bootstrap.n_resamples as u64));
        format!(
            "Precision, recall and F1 in percent, summed over the corpus; {level} % intervals from {n} resamples of documents."
        )
    };
    let heads = [
        ("Measure", ""),
        ("P", NUMBER),
        ("R", NUMBER),
        ("F1", NUMBER),
        ("95% of F1", NUMBER),
        ("Macro F1", "number wide"),
        ("Correct / predicted", "number wide"),
        ("Found / gold", "number wide"),
    ];
    table(out, &caption, &heads, |out| {
        for (measure, score) in &report.metrics {
            out.element("tr", &[], |out| {
                out.leaf("th", &[("scope", "row"), ("title", measure_words(*measure))], measure.name());
                for value in [score.precision, score.recall, score.f1] {
                    number(out, &percent(value, 2));
                }
                number(out, &report.ci.get(measure).map_or_else(String::new, |bounds| range(bounds.f1, 2)));
                let wide = [("class", "number wide")];
                let macro_f1 = report.macro_metrics.get(measure).map(|score| percent(score.f1, 2));
                out.leaf("td", &wide, &macro_f1.unwrap_or_default());
                let counts = report.counts.get(measure).copied().unwrap_or_default();
                let part = |right: f64, all: u64| format!("{} / {}", credit(right), thousands(all));
                out.leaf("td", &wide, &part(counts.tp_pred, counts.n_pred));
                out.leaf("td", &wide, &part(counts.tp_gold, counts.n_gold));
            });
        }
    });
}

/// A sum of credits, without decimals if it is an integer.
fn credit(value: f64) -> String {
    if value.fract() == 0.0 { thousands(value as u64) } else { format!("{value:.1}") }
}

/// Scores by semantic type.
pub(super) fn types(out: &mut Markup, report: &Report) {
    out.leaf("h2", &[], "Types");
    let mut rows: Vec<_> = report.by_type.iter().collect();
    let n_gold =
        |slice: &crate::eval::report::Slice| slice.counts.get(&Measure::Strict).map_or(0, |counts| counts.n_gold);
    rows.sort_by_key(|(kind, slice)| (u64::MAX - n_gold(slice), kind.as_str()));
    let rest = rows.len().saturating_sub(MAX_TYPES);
    let more = if rest > 0 { format!(" {rest} rarer types are not shown.") } else { String::new() };
    let caption = format!(
        "Strict scores by type, in percent. A prediction without a type takes the type of an overlapping gold mention; \
         without one it is untyped.{more}"
    );
    let heads = [("Type", ""), ("F1", "bar"), ("", NUMBER), ("P", NUMBER), ("R", NUMBER), ("Gold", NUMBER)];
    let heads: Vec<(&str, &str)> = heads.into_iter().chain([("Predicted", "number wide")]).collect();
    table(out, &caption, &heads, |out| {
        for (kind, slice) in rows.into_iter().take(MAX_TYPES) {
            let score = slice.metrics.get(&Measure::Strict).copied().unwrap_or_default();
            let counts = slice.counts.get(&Measure::Strict).copied().unwrap_or_default();
            out.element("tr", &[], |out| {
                out.leaf("th", &[("scope", "row")], kind);
                out.element("td.bar", &[], |out| plots::bar(out, score.f1));
                let both = counts.n_gold.min(counts.n_pred);
                for (value, of) in [(score.f1, both), (score.precision, counts.n_pred), (score.recall, counts.n_gold)] {
                    number(out, &if of > 0 { percent(value, 1) } else { "–".to_owned() });
                }
                number(out, &thousands(counts.n_gold));
                out.leaf("td", &[("class", "number wide")], &thousands(counts.n_pred));
            });
        }
    });
}

/// Candidate ranking.
pub(super) fn ranking(out: &mut Markup, ranking: &Ranking, policy: &Policy) {
    out.leaf("h2", &[], "Ranking");
    let unit = if policy.unit == RankUnit::Names { "names" } else { "concepts" };
    let unanswered = thousands(ranking.n_unanswered);
    let text = format!(
        "How often the gold concept is among the first k {unit} on a gold span. {unanswered} of {} mentions have no \
         candidate on their span and count as wrong.",
        thousands(ranking.all.n_mentions)
    );
    out.leaf("p", &[], &text);
    out.element("div.plots", &[], |out| {
        out.element("figure", &[], |out| {
            accuracy_plot(&ranking.all).draw(out);
            out.leaf("figcaption", &[], "Accuracy@k over all mentions, with 95% intervals if available.");
        });
        out.element("div", &[], |out| ranking_table(out, ranking));
    });
}

fn accuracy_plot(scores: &RankingScores) -> Plot {
    let n = scores.accuracy.len();
    let position = |row: usize| if n > 1 { 0.04 + 0.92 * row as f64 / (n - 1) as f64 } else { 0.5 };
    let lowest = scores.accuracy_ci.values().map(|Interval(low, _)| *low).chain(scores.accuracy.values().copied());
    // The axis starts at a multiple of 0.2 below the lowest value, so that differences are visible.
    let y_min = (lowest.fold(1.0, f64::min) * 5.0 - 0.2).floor().clamp(0.0, 4.0) / 5.0;
    let values: Vec<String> =
        scores.accuracy.iter().map(|(depth, value)| format!("{} % at {depth}", percent(*value, 1))).collect();
    let whisker = |(row, depth): (usize, &usize)| {
        scores.accuracy_ci.get(depth).map(|Interval(low, high)| (position(row), *low, *high))
    };
    Plot {
        title: "Accuracy@k".to_owned(),
        description: format!("The share of mentions with the gold concept among the first k: {}.", values.join(", ")),
        x_label: "k".to_owned(),
        y_label: "accuracy@k, %".to_owned(),
        x_ticks: scores.accuracy.keys().enumerate().map(|(row, depth)| (position(row), depth.to_string())).collect(),
        y_min,
        y_max: 1.0,
        curve: scores.accuracy.values().enumerate().map(|(row, value)| (position(row), *value)).collect(),
        dots: true,
        whiskers: scores.accuracy.keys().enumerate().filter_map(whisker).collect(),
        ..Plot::default()
    }
}

fn ranking_table(out: &mut Markup, ranking: &Ranking) {
    let depths: Vec<String> = ranking.all.accuracy.keys().map(|depth| format!("@{depth}")).collect();
    let mut heads = vec![("Mentions", ""), ("n", NUMBER)];
    heads.extend(depths.iter().map(|depth| (depth.as_str(), NUMBER)));
    heads.push(("MRR", "number wide"));
    let rows = [
        ("all", Some(&ranking.all)),
        ("with gold among the candidates", Some(&ranking.normalised)),
        ("with gold in the knowledge base", ranking.linkable.as_ref()),
        ("unseen in training", ranking.zero_shot.as_ref()),
    ];
    table(out, "Accuracy@k in percent, by set of mentions.", &heads, |out| {
        for (label, scores) in rows.into_iter().filter_map(|(label, scores)| Some((label, scores?))) {
            out.element("tr", &[], |out| {
                out.leaf("th", &[("scope", "row")], label);
                number(out, &thousands(scores.n_mentions));
                for value in scores.accuracy.values() {
                    number(out, &percent(*value, 1));
                }
                out.leaf("td", &[("class", "number wide")], &percent(scores.mrr, 1));
            });
        }
    });
}

/// Risk-coverage curve and calibration.
pub(super) fn confidence(out: &mut Markup, curves: &Curves) {
    out.leaf("h2", &[], "Confidence");
    let text = format!(
        "How well the scores of {} links separate correct from wrong links. Coverage is the share of links kept above a \
         threshold; risk is the share of wrong links among them.",
        thousands(curves.n_answered)
    );
    out.leaf("p", &[], &text);
    out.element("div.plots", &[], |out| {
        out.element("figure", &[], |out| {
            risk_plot(curves).draw(out);
            out.element("figcaption", &[], |out| {
                out.text("Risk against coverage. Area under the curve ");
                out.leaf("b", &[], &format!("{:.4}", curves.aurc));
                out.text(&format!(", {:.4} above the optimum.", curves.excess_aurc));
                if let Some(wanted) = &curves.wanted {
                    out.text(&wanted_words(wanted));
                }
            });
        });
        if let Some(calibration) = &curves.calibration {
            out.element("figure", &[], |out| {
                reliability_plot(calibration).draw(out);
                out.element("figcaption", &[], |out| {
                    out.text(
                        "Reliability: share of correct links by score; the dashed line is perfect calibration. ECE ",
                    );
                    out.leaf("b", &[], &percent(calibration.ece, 1));
                    let (largest, brier) = (percent(calibration.mce, 1), calibration.brier);
                    out.text(&format!(" points, largest gap {largest} points, Brier score {brier:.4}."));
                });
            });
        }
    });
    if let Some(calibration) = &curves.calibration {
        bins(out, calibration);
    }
}

fn wanted_words(wanted: &crate::eval::curves::WantedPrecision) -> String {
    let target = percent(wanted.precision, 1);
    match wanted.threshold {
        Some(threshold) => format!(
            " A precision of {target} % needs a threshold of {threshold:.4}, with a coverage of {} %.",
            percent(wanted.coverage, 1)
        ),
        None => format!(" No threshold reaches a precision of {target} %."),
    }
}

fn risk_plot(curves: &Curves) -> Plot {
    let highest = curves.points.iter().map(|point| point.risk).fold(0.0, f64::max);
    let last = curves.points.last().copied().unwrap_or_default();
    Plot {
        title: "Risk against coverage".to_owned(),
        description: format!(
            "At full coverage of {} % the risk is {} %.",
            percent(last.coverage, 1),
            percent(last.risk, 1)
        ),
        x_label: "coverage, %".to_owned(),
        y_label: "risk, %".to_owned(),
        x_ticks: share_ticks(),
        y_max: ((highest * 5.0).ceil() / 5.0).clamp(0.2, 1.0),
        curve: curves.points.iter().map(|point| (point.coverage, point.risk)).collect(),
        ..Plot::default()
    }
}

fn reliability_plot(calibration: &Calibration) -> Plot {
    let filled: Vec<_> = calibration.bins.iter().filter(|bin| bin.n > 0).collect();
    Plot {
        title: "Reliability".to_owned(),
        description: format!("The expected calibration error is {} points.", percent(calibration.ece, 1)),
        x_label: "score, %".to_owned(),
        y_label: "correct, %".to_owned(),
        x_ticks: share_ticks(),
        y_max: 1.0,
        bars: filled.iter().map(|bin| (bin.low, bin.high, bin.accuracy)).collect(),
        curve: filled.iter().map(|bin| (bin.mean_confidence, bin.accuracy)).collect(),
        dots: true,
        diagonal: true,
        ..Plot::default()
    }
}

fn bins(out: &mut Markup, calibration: &Calibration) {
    out.element("details", &[], |out| {
        out.leaf("summary", &[], "Reliability in numbers");
        let heads = [("Score", ""), ("Links", NUMBER), ("Mean score", NUMBER), ("Correct, %", NUMBER)];
        table(out, "Links by score.", &heads, |out| {
            for bin in calibration.bins.iter().filter(|bin| bin.n > 0) {
                out.element("tr", &[], |out| {
                    out.leaf("th", &[("scope", "row")], &format!("{:.2}–{:.2}", bin.low, bin.high));
                    number(out, &thousands(bin.n));
                    number(out, &percent(bin.mean_confidence, 1));
                    number(out, &percent(bin.accuracy, 1));
                });
            }
        });
    });
}

/// Ids with their names; a name shared by consecutive ids is written once.
pub(super) fn concept(out: &mut Markup, ids: &[String], names: &[String]) {
    let mut last = "";
    for (row, id) in ids.iter().enumerate() {
        let name = names.get(row).map_or("", String::as_str);
        if row > 0 {
            out.text(if !name.is_empty() && name == last { " " } else { " + " });
        }
        if name != last && !name.is_empty() {
            out.text(name);
            out.text(" ");
        }
        last = name;
        out.leaf("span", &[("class", "id soft")], id);
    }
}

/// Confusions of concepts.
pub(super) fn confusions(out: &mut Markup, errors: &ErrorAnalysis) {
    out.leaf("h2", &[], "Confusions");
    let heads = [("Gold concept", ""), ("Predicted concept", ""), ("Text", "wide"), ("Times", NUMBER)];
    table(out, "Confused concepts on the same mention, most frequent first.", &heads, |out| {
        for row in errors.confusions.iter().take(MAX_ROWS) {
            out.element("tr", &[], |out| {
                out.element("td.name", &[], |out| concept(out, &row.gold_ids, &row.gold_names));
                out.element("td.name", &[], |out| concept(out, &row.predicted_ids, &row.predicted_names));
                out.leaf("td", &[("class", "name wide")], &row.text);
                number(out, &thousands(row.n));
            });
        }
    });
}

/// Missed and spurious texts.
pub(super) fn surfaces(out: &mut Markup, errors: &ErrorAnalysis) {
    out.leaf("h2", &[], "Texts");
    out.element("div.plots", &[], |out| {
        let missed = "Unlinked gold mentions: most frequent texts, and the share of their mentions.";
        surface_table(out, missed, &errors.missed_surfaces);
        let spurious = "Links without a gold mention: most frequent texts, and the share of their links.";
        surface_table(out, spurious, &errors.spurious_surfaces);
    });
}

fn surface_table(out: &mut Markup, caption: &str, rows: &[SurfaceCount]) {
    if rows.is_empty() {
        return;
    }
    out.element("div", &[], |out| {
        table(out, caption, &[("Text", ""), ("Concept", ""), ("Of all", NUMBER)], |out| {
            for row in rows.iter().take(MAX_ROWS) {
                out.element("tr", &[], |out| {
                    out.leaf("th", &[("class", "name"), ("scope", "row")], &row.text);
                    out.element("td.name", &[], |out| concept(out, &row.ids, &row.names));
                    number(out, &format!("{} / {}", thousands(row.n), thousands(row.n_all)));
                });
            }
        });
    });
}

fn policy_words(policy: IdPolicy) -> &'static str {
    match policy {
        IdPolicy::Any => "if any id is in common",
        IdPolicy::First => "if the first gold id matches",
        IdPolicy::Exact => "if the id sets are equal",
    }
}

fn measure_words(measure: Measure) -> &'static str {
    match measure {
        Measure::Strict => "Identical spans and a matching concept, one to one.",
        Measure::MentionRecognition => "Identical spans, any concept.",
        Measure::Type => "Identical spans and a matching type.",
        Measure::PartialBinary => "Overlapping spans and a matching concept; each side counted separately.",
        Measure::PartialOneToOne => "Overlapping spans and a matching concept, one to one.",
        Measure::PartialMaxMax => "The largest share of the span covered by a matching annotation.",
        Measure::Weak => "Weak annotation match: overlapping spans and a matching concept.",
        Measure::Nil => "Identical spans that both sides leave unlinked (NIL).",
    }
}

/// Explains the measures.
pub(super) fn rules(out: &mut Markup, page: &Page<'_>) {
    let policy = &page.report.policy;
    out.leaf("h2", &[], "Rules");
    out.leaf("p", &[], "Definitions and scoring rules of this page.");
    out.element("dl", &[("class", "rules")], |out| {
        let mut rule = |label: &str, text: &str| {
            out.leaf("dt", &[], label);
            out.leaf("dd", &[], text);
        };
        rule("Ids", policy_words(policy.ids));
        let n_resamples = policy.bootstrap.n_resamples;
        if n_resamples > 0 {
            let (level, n) = (percent(policy.bootstrap.level, 0), thousands(n_resamples as u64));
            rule("Intervals", &format!("{level} % intervals from {n} bootstrap resamples of documents"));
        }
        rule("Ranks", if policy.unit == RankUnit::Names { "of names" } else { "of concepts" });
        let composite = match policy.composite {
            Composite::All => "correct if all parts are correct",
            Composite::First => "scored by the first part",
            Composite::Drop => "excluded",
        };
        rule("Composite mentions", composite);
        for measure in page.report.metrics.keys() {
            rule(measure.name(), measure_words(*measure));
        }
        let classes = page.errors.iter().flat_map(|errors| &errors.classes).filter(|count| count.n_cases > 0);
        for count in classes {
            rule(count.class.title(), count.class.meaning());
        }
        for (label, n) in [
            ("Gold without a concept", page.report.n_gold_nil),
            ("Gold documents without predictions", page.report.n_missing_documents),
            ("Documents whose text differs from gold", page.report.n_different_texts),
        ] {
            if n > 0 {
                rule(label, &thousands(n));
            }
        }
        if !page.report.note.is_empty() {
            rule("Note", &page.report.note);
        }
    });
}
