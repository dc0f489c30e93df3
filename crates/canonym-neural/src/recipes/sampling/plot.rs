//! Plots scores over decisions: one line per strategy, averaged over seeds, and the score with all documents.

use std::fmt::Write as _;

use super::super::curve::{above, line, polyline, short, text};
use super::{FIGURES, Point, Run, SHARE};

/// Size of a panel and its margins; two panels are drawn side by side.
const WIDTH: f64 = 480.0;
const HEIGHT: f64 = 380.0;
const LEFT: f64 = 48.0;
const RIGHT: f64 = 16.0;
const TOP: f64 = 34.0;
const BOTTOM: f64 = 66.0;

/// Intervals of an axis.
const N_TICKS: u32 = 4;

/// A palette safe for colour blindness, with dash patterns that also distinguish lines without colour.
const LINES: [(&str, &str); 6] = [
    ("#0072b2", ""),
    ("#d55e00", "7 3"),
    ("#009e73", "2 3"),
    ("#cc79a7", "9 3 2 3"),
    ("#333333", "4 2"),
    ("#e69f00", "1 2"),
];

const GREY: &str = "#333333";

/// Draws runs and those on all documents; `before` is the initial model of all runs.
pub fn draw(runs: &[Run], full: &[Run], before: &Point) -> String {
    let mut names: Vec<&str> = Vec::new();
    for run in runs {
        if !names.contains(&run.strategy.as_str()) {
            names.push(&run.strategy);
        }
    }
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {} {HEIGHT}\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <title>Strict F1 over decisions of an annotator, by strategy</title>\n<rect width=\"{}\" height=\"{HEIGHT}\" fill=\"#ffffff\"/>\n",
        2.0 * WIDTH,
        2.0 * WIDTH
    );
    for (place, (name, figure)) in FIGURES.into_iter().enumerate() {
        let panel = Panel::new(WIDTH * place as f64, runs, full, before, figure);
        panel.frame(&mut svg, &format!("{name}, strict F1 in %"));
        let goal = mean(full.iter().filter_map(|run| run.points.first()).map(figure)) * SHARE;
        let y = panel.y(goal);
        dashed(&mut svg, &[(panel.left + LEFT, y), (panel.left + WIDTH - RIGHT, y)], "#999999", "3 3");
        text(&mut svg, (panel.left + WIDTH - RIGHT, y - 4.0), "end", GREY, "95 % of the full-data score");
        for (name, (colour, dashes)) in names.iter().zip(LINES.iter().cycle()) {
            let points: Vec<(f64, f64)> = means(runs, name, figure).collect();
            let places: Vec<(f64, f64)> = points.iter().map(|(x, y)| (panel.x(*x), panel.y(*y))).collect();
            dashed(&mut svg, &places, colour, dashes);
        }
    }
    for (place, (name, (colour, dashes))) in names.iter().zip(LINES.iter().cycle()).enumerate() {
        let (x, y) = (LEFT + 150.0 * place as f64, HEIGHT - 12.0);
        dashed(&mut svg, &[(x, y - 4.0), (x + 28.0, y - 4.0)], colour, dashes);
        text(&mut svg, (x + 34.0, y), "start", GREY, name);
    }
    svg + "</svg>\n"
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
    left: f64,
    max_decisions: f64,
    low: f64,
    high: f64,
}

impl Panel {
    fn new(left: f64, runs: &[Run], full: &[Run], before: &Point, figure: impl Fn(&Point) -> f64 + Copy) -> Panel {
        let shown = runs.iter().flat_map(|run| &run.points);
        let max_decisions = above(shown.clone().map(|point| point.decisions as f64).fold(1.0, f64::max));
        let all = shown.chain(full.iter().flat_map(|run| &run.points)).chain([before]);
        let values: Vec<f64> = all.map(figure).collect();
        let (lowest, highest) = values.iter().fold((1.0f64, 0.0f64), |(low, high), v| (low.min(*v), high.max(*v)));
        Panel { left, max_decisions, low: (20.0 * lowest).floor() / 20.0, high: (20.0 * highest).floor() / 20.0 + 0.05 }
    }

    fn x(&self, decisions: f64) -> f64 {
        self.left + LEFT + decisions / self.max_decisions * (WIDTH - LEFT - RIGHT)
    }

    fn y(&self, value: f64) -> f64 {
        let bottom = HEIGHT - BOTTOM;
        bottom - (value - self.low) / (self.high - self.low) * (bottom - TOP)
    }

    fn frame(&self, svg: &mut String, title: &str) {
        let bottom = HEIGHT - BOTTOM;
        for tick in 0..=N_TICKS {
            let fraction = f64::from(tick) / f64::from(N_TICKS);
            let value = self.low + fraction * (self.high - self.low);
            line(svg, [self.left + LEFT, self.y(value), self.left + WIDTH - RIGHT, self.y(value)], "#dddddd");
            text(svg, (self.left + LEFT - 6.0, self.y(value) + 4.0), "end", GREY, &short(100.0 * value));
            let decisions = fraction * self.max_decisions;
            text(svg, (self.x(decisions), bottom + 18.0), "middle", GREY, &short(decisions));
        }
        text(svg, (self.left + LEFT, 18.0), "start", GREY, title);
        let middle = self.left + (LEFT + WIDTH - RIGHT) / 2.0;
        text(svg, (middle, bottom + 34.0), "middle", GREY, "decisions (including accepted predictions)");
    }
}

fn dashed(svg: &mut String, points: &[(f64, f64)], colour: &str, dashes: &str) {
    // Writing to a string cannot fail.
    let _ = writeln!(svg, "<g stroke-dasharray=\"{dashes}\">");
    polyline(svg, points.iter().copied(), colour);
    let _ = writeln!(svg, "</g>");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_strategy_has_a_line_in_both_panels() {
        let point = |decisions, f1| Point { n_documents: 1, decisions, corrections: 0, spans_f1: f1, strict_f1: f1 };
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
