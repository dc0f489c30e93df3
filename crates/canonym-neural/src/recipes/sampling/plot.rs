//! Plots scores over decisions: one line per strategy, averaged over seeds, and the score with all documents.

use canonym_core::eval::chart::{Axis, Chart, above, short, widened};

use super::savings::{FIGURES, SHARE};
use super::{Point, Run};

/// Size of a panel and its margins; two panels are drawn side by side.
const WIDTH: f64 = 480.0;
const HEIGHT: f64 = 380.0;
const LEFT: f64 = 48.0;
const RIGHT: f64 = 16.0;
const TOP: f64 = 34.0;
const BOTTOM: f64 = 66.0;

/// A palette safe for colour blindness, with dash patterns that also distinguish lines without colour.
const LINES: [(&str, &str); 6] = [
    ("#0072b2", ""),
    ("#d55e00", "7 3"),
    ("#009e73", "2 3"),
    ("#cc79a7", "9 3 2 3"),
    ("#333333", "4 2"),
    ("#e69f00", "1 2"),
];

/// Height of a row of the legend.
const LEGEND: f64 = 18.0;

/// Colour and dashes of a line; from the seventh on, colours come with other dashes.
fn style(place: usize) -> (&'static str, &'static str) {
    let n = LINES.len();
    (LINES[place % n].0, LINES[(place + place / n) % n].1)
}

const GREY: &str = "#333333";

/// Draws runs and those on all documents; `before` is the initial model of all runs.
pub fn draw(runs: &[Run], full: &[Run], before: &Point) -> String {
    let mut names: Vec<&str> = Vec::new();
    for run in runs {
        if !names.contains(&run.strategy.as_str()) {
            names.push(&run.strategy);
        }
    }
    let legend_rows = names.len().div_ceil(LINES.len());
    let height = HEIGHT + LEGEND * legend_rows.saturating_sub(1) as f64;
    let mut chart = Chart::new(2.0 * WIDTH, height, "Strict F1 over decisions of an annotator, by strategy");
    for (place, (name, figure)) in FIGURES.into_iter().enumerate() {
        let panel = Panel::new(WIDTH * place as f64, runs, full, before, figure);
        panel.frame(&mut chart, &format!("{name}, strict F1 in %"));
        let goal = mean(full.iter().filter_map(|run| run.points.first()).map(figure)) * SHARE;
        let y = panel.score.at(goal);
        chart.polyline(&[(panel.decisions.from, y), (panel.decisions.to, y)], "#999999", "3 3");
        chart.text((panel.decisions.to, y - 4.0), "end", GREY, "95 % of the full-data score");
        for (place, name) in names.iter().enumerate() {
            let (colour, dashes) = style(place);
            let places = means(runs, name, figure).map(|(x, y)| (panel.decisions.at(x), panel.score.at(y)));
            chart.polyline(&places.collect::<Vec<_>>(), colour, dashes);
        }
    }
    for (place, name) in names.iter().enumerate() {
        let (colour, dashes) = style(place);
        let (column, row) = (place % LINES.len(), place / LINES.len());
        let (x, y) = (LEFT + 150.0 * column as f64, HEIGHT - 12.0 + LEGEND * row as f64);
        chart.polyline(&[(x, y - 4.0), (x + 28.0, y - 4.0)], colour, dashes);
        chart.text((x + 34.0, y), "start", GREY, name);
    }
    chart.finish()
}

/// Mean decisions and scores of a strategy, at numbers of documents for which every seed has a model.
fn means<'a>(
    runs: &'a [Run],
    name: &'a str,
    figure: impl Fn(&Point) -> f64 + Copy + 'a,
) -> impl Iterator<Item = (f64, f64)> + 'a {
    let own: Vec<&Run> = runs.iter().filter(|run| run.strategy == name).collect();
    let n_points = own.iter().map(|run| run.points.len()).min().unwrap_or(0);
    (0..n_points).map(move |at| {
        let points = || own.iter().map(|run| &run.points[at]);
        (mean(points().map(|point| point.decisions as f64)), mean(points().map(figure)))
    })
}

fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (sum, n) = values.fold((0.0, 0usize), |(sum, n), value| (sum + value, n + 1));
    sum / n.max(1) as f64
}

/// A panel with its axes.
struct Panel {
    decisions: Axis,
    score: Axis,
}

impl Panel {
    fn new(left: f64, runs: &[Run], full: &[Run], before: &Point, figure: impl Fn(&Point) -> f64 + Copy) -> Panel {
        let shown = runs.iter().flat_map(|run| &run.points);
        let max_decisions = above(shown.clone().map(|point| point.decisions as f64).fold(1.0, f64::max));
        let all = shown.chain(full.iter().flat_map(|run| &run.points)).chain([before]);
        let values: Vec<f64> = all.map(figure).collect();
        let (lowest, highest) = values.iter().fold((1.0f64, 0.0f64), |(low, high), v| (low.min(*v), high.max(*v)));
        let (low, high) = widened(lowest, highest);
        Panel {
            decisions: Axis { low: 0.0, high: max_decisions, from: left + LEFT, to: left + WIDTH - RIGHT },
            score: Axis { low, high, from: HEIGHT - BOTTOM, to: TOP },
        }
    }

    fn frame(&self, chart: &mut Chart, title: &str) {
        let (left, right) = (self.decisions.from, self.decisions.to);
        for value in self.score.ticks() {
            let y = self.score.at(value);
            chart.line([left, y, right, y], "#dddddd");
            chart.text((left - 6.0, y + 4.0), "end", GREY, &short(100.0 * value));
        }
        for decisions in self.decisions.ticks() {
            chart.text((self.decisions.at(decisions), self.score.from + 18.0), "middle", GREY, &short(decisions));
        }
        chart.text((left, 18.0), "start", GREY, title);
        let below = ((left + right) / 2.0, self.score.from + 34.0);
        chart.text(below, "middle", GREY, "decisions (including accepted predictions)");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_strategy_has_a_line_in_both_panels() {
        let point =
            |decisions, f1| Point { n_documents: 1, decisions, spans_f1: f1, strict_f1: f1, ..Point::default() };
        let run = |strategy: &str, seed, points: &[Point]| Run {
            strategy: strategy.to_owned(),
            seed,
            points: points.to_vec(),
        };
        let runs = [
            run("random", 1, &[point(100, 0.5), point(200, 0.6), point(400, 0.7)]),
            run("random", 2, &[point(100, 0.5), point(300, 0.7)]),
            run("margin", 1, &[point(100, 0.5), point(150, 0.7)]),
        ];
        let svg = draw(&runs, &[run("all", 1, &[point(900, 0.8)])], &point(0, 0.4));
        assert_eq!(svg.matches(&format!("stroke=\"{}\"", LINES[0].0)).count(), 3, "two lines and one of the legend");
        assert!(svg.contains(">random<") && svg.contains(">margin<") && svg.contains("95 % of the full-data score"));
        // Averaged only where both seeds have a point.
        let places = means(&runs, "random", |point| point.decisions as f64 / 1e3);
        assert_eq!(places.collect::<Vec<_>>(), [(100.0, 0.1), (250.0, 0.25)]);
    }
}
