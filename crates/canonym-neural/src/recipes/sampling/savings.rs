//! Effort of strategies to reach goals, relative to random selection.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{Point, Report, Run};

/// Effort of a strategy to reach a goal.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Saved {
    /// Medians over seeds, here and below; `None` unless more than half of the runs reach the goal.
    documents: Option<f64>,
    decisions: Option<f64>,
    corrections: Option<f64>,
    minutes: Option<f64>,
    /// Ratio of decisions to those of random selection with the same seed: mean, minimum and maximum.
    beside_chance: Option<[f64; 3]>,
    /// The same for minutes.
    minutes_beside_chance: Option<[f64; 3]>,
    /// Number of runs that reach the goal, and number of runs.
    reached: [usize; 2],
}

/// First goal, as a fraction of the score with all documents.
pub const SHARE: f64 = 0.95;

/// Second goal, as a fraction of the gain from the base model to all documents.
const GAIN: f64 = 0.8;

/// A goal: its name, and its value given the score of the base model and that with all documents.
pub type Goal = (&'static str, fn(f64, f64) -> f64);

/// The goals.
pub const GOALS: [Goal; 2] = [
    ("95 % of the figure", |_, full| SHARE * full),
    ("80 % of the gain", |before, full| before + GAIN * (full - before)),
];

/// A score: its name and its value at a point.
pub type Figure = (&'static str, fn(&Point) -> f64);

/// The reported scores.
pub const FIGURES: [Figure; 2] =
    [("mentions", |point| point.spans_f1), ("mentions with concepts", |point| point.strict_f1)];

/// The baseline strategy.
const CHANCE: &str = "random";

/// Effort of a strategy by score and goal.
pub fn saved(
    strategy: &str,
    runs: &[Run],
    before: &Point,
    full: &[Run],
) -> BTreeMap<&'static str, BTreeMap<&'static str, Saved>> {
    let of = |(name, figure): Figure| {
        let of_goal = |(name, goal): Goal| {
            let aim = |seed: u64| {
                let full = full.iter().find(|run| run.seed == seed)?.points.first()?;
                Some(goal(figure(before), figure(full)))
            };
            let places = |strategy: &str| -> BTreeMap<u64, Option<Costs>> {
                let runs = runs.iter().filter(|run| run.strategy == strategy);
                runs.map(|run| (run.seed, aim(run.seed).and_then(|aim| reached(&run.points, aim, figure)))).collect()
            };
            (name, Saved::of(&places(strategy), &places(CHANCE)))
        };
        (name, GOALS.into_iter().map(of_goal).collect())
    };
    FIGURES.into_iter().map(of).collect()
}

impl Saved {
    /// Aggregates over seeds; `None` for runs that do not reach the goal.
    fn of(own: &BTreeMap<u64, Option<Costs>>, by_chance: &BTreeMap<u64, Option<Costs>>) -> Saved {
        let got: Vec<Costs> = own.values().flatten().copied().collect();
        let enough = 2 * got.len() > own.len();
        let median_of = |part: usize| enough.then(|| median(got.iter().map(|place| place[part]).collect()));
        let beside_chance = |part: usize| {
            let ratio = |(seed, place): (&u64, &Option<Costs>)| {
                let by_chance = by_chance.get(seed).copied().flatten()?[part];
                // The base model may be at the goal already.
                (by_chance > 0.0).then_some(place.as_ref()?[part] / by_chance)
            };
            let ratios: Vec<f64> = own.iter().filter_map(ratio).collect();
            (!ratios.is_empty()).then(|| {
                let mean = ratios.iter().sum::<f64>() / ratios.len() as f64;
                [mean, ratios.iter().copied().fold(f64::MAX, f64::min), ratios.iter().copied().fold(0.0, f64::max)]
            })
        };
        Saved {
            documents: median_of(0),
            decisions: median_of(1),
            corrections: median_of(2),
            minutes: median_of(3),
            beside_chance: beside_chance(1),
            minutes_beside_chance: beside_chance(3),
            reached: [got.len(), own.len()],
        }
    }
}

/// Documents, decisions, corrections and minutes.
type Costs = [f64; 4];

/// The costs at which linear interpolation of the points first reaches `aim`.
fn reached(points: &[Point], aim: f64, figure: impl Fn(&Point) -> f64) -> Option<Costs> {
    let costs =
        |point: &Point| [point.n_documents as f64, point.decisions as f64, point.corrections as f64, point.minutes];
    let first = points.first().filter(|point| figure(point) >= aim);
    if let Some(first) = first {
        return Some(costs(first));
    }
    let step = points.windows(2).find(|step| figure(&step[1]) >= aim)?;
    let (low, high) = (figure(&step[0]), figure(&step[1]));
    let fraction = (aim - low) / (high - low);
    let (from, to) = (costs(&step[0]), costs(&step[1]));
    Some([0, 1, 2, 3].map(|part| from[part] + fraction * (to[part] - from[part])))
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    if values.len().is_multiple_of(2) { (values[middle - 1] + values[middle]) / 2.0 } else { values[middle] }
}

/// What each strategy takes to reach each goal, a line each.
pub fn summary(report: &Report) -> String {
    let mut text = String::from("annotation effort (medians over seeds):");
    for (strategy, figures) in &report.effort {
        for (figure, goals) in figures {
            for (goal, saved) in goals {
                let number = |value: Option<f64>| value.map_or("-".to_owned(), |value| format!("{value:.0}"));
                let mean = |ratio: Option<[f64; 3]>| ratio.map_or("-".to_owned(), |[mean, ..]| format!("{mean:.2}"));
                let (ratio, in_minutes) = (mean(saved.beside_chance), mean(saved.minutes_beside_chance));
                text += &format!(
                    "\n{strategy}, {figure}, {goal}: {} documents, {} decisions, {} corrections, {} minutes; relative to random {ratio} decisions, {in_minutes} minutes; {} of {} runs",
                    number(saved.documents),
                    number(saved.decisions),
                    number(saved.corrections),
                    number(saved.minutes),
                    saved.reached[0],
                    saved.reached[1]
                );
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::super::ALL;
    use super::*;

    fn point(n_documents: usize, decisions: usize, f1: f64) -> Point {
        let minutes = decisions as f64 / 10.0;
        Point { n_documents, decisions, corrections: decisions / 2, minutes, spans_f1: f1, strict_f1: f1 / 2.0 }
    }

    fn run(strategy: &str, seed: u64, points: &[Point]) -> Run {
        Run { strategy: strategy.to_owned(), seed, points: points.to_vec() }
    }

    #[test]
    fn effort_is_interpolated_between_points() {
        let points = [point(10, 100, 0.5), point(20, 300, 0.7), point(40, 400, 0.8)];
        let figure = |point: &Point| point.spans_f1;
        assert_eq!(reached(&points, 0.6, figure).map(|place| place.map(f64::round)), Some([15.0, 200.0, 100.0, 20.0]));
        assert_eq!(reached(&points, 0.5, figure), Some([10.0, 100.0, 50.0, 10.0]));
        assert_eq!(reached(&points, 0.9, figure), None);
    }

    #[test]
    fn strategies_are_compared_with_random_of_the_same_seed() {
        let full = [run(ALL, 1, &[point(100, 1000, 0.8)]), run(ALL, 2, &[point(100, 1000, 0.8)])];
        let runs = [
            run(CHANCE, 1, &[point(10, 100, 0.5), point(50, 500, 0.76)]),
            run(CHANCE, 2, &[point(10, 100, 0.5), point(40, 400, 0.76)]),
            run("margin", 1, &[point(10, 100, 0.5), point(30, 250, 0.76)]),
            run("margin", 2, &[point(10, 100, 0.5), point(30, 300, 0.70)]),
        ];
        let before = point(0, 0, 0.4);
        let margin = &saved("margin", &runs, &before, &full)["mentions"]["95 % of the figure"];
        assert_eq!(margin.reached, [1, 2]);
        assert_eq!(margin.decisions, None, "one of two runs is no more than half");
        let [mean, ..] = margin.beside_chance.expect("one run got there");
        assert!((mean - 0.5).abs() < 1e-9);
        assert_eq!(margin.beside_chance, margin.minutes_beside_chance);
        let chance = &saved(CHANCE, &runs, &before, &full)["mentions with concepts"];
        let fraction = &chance["95 % of the figure"];
        assert_eq!((fraction.reached, fraction.decisions.map(f64::round)), ([2, 2], Some(450.0)));
        // Half of 0.4 + 0.8 * (0.8 - 0.4).
        let gain = &chance["80 % of the gain"];
        assert_eq!((gain.reached, gain.decisions.map(f64::round)), ([2, 2], Some(396.0)));
    }
}
