//! Learning curve of a run: loss and held-out score by step, drawn from its log.

use canonym_core::eval::chart::{Axis, Chart, above, short, widened};

/// Size of the image and margins of the plot.
const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 360.0;
const LEFT: f64 = 60.0;
const RIGHT: f64 = 60.0;
const TOP: f64 = 34.0;
const BOTTOM: f64 = 46.0;

/// Maximum number of points of a line; losses in between are averaged.
const MAX_POINTS: usize = 300;

const GREY: &str = "#333333";
const LOSS: &str = "#3b6ea5";
const SCORE: &str = "#b4552d";

/// Log entries of one stage.
#[derive(Debug, Default)]
struct Stage {
    name: String,
    /// Steps with their losses.
    losses: Vec<(u64, f64)>,
    /// Steps with their held-out scores, between 0 and 1.
    scores: Vec<(u64, f64)>,
}

impl Stage {
    fn n_steps(&self) -> u64 {
        self.losses.iter().chain(&self.scores).map(|(step, _)| *step).max().unwrap_or(0)
    }
}

/// Draws the lines of `log.csv` and `log.jsonl` as SVG, stages side by side. Lines that cannot be parsed are ignored.
pub fn draw(steps: &str, intervals: &str) -> String {
    let stages = read(steps, intervals);
    let n_steps = stages.iter().map(Stage::n_steps).sum::<u64>().max(1);
    let lowest = values(&stages, |stage| &stage.scores).fold(f64::INFINITY, f64::min);
    let highest = values(&stages, |stage| &stage.scores).fold(f64::NEG_INFINITY, f64::max);
    let (low, high) = widened(lowest, highest);
    let has_scores = lowest.is_finite();
    let (right, bottom) = (WIDTH - RIGHT, HEIGHT - BOTTOM);
    let highest = values(&stages, |stage| &stage.losses).fold(0.0, f64::max);
    let loss_axis = Axis { low: 0.0, high: above(highest), from: bottom, to: TOP };
    let score_axis = Axis { low, high, from: bottom, to: TOP };
    let step_axis = Axis { low: 0.0, high: n_steps as f64, from: LEFT, to: right };

    let what = if has_scores { "Loss and held-out score" } else { "Loss" };
    let mut chart = Chart::new(WIDTH, HEIGHT, &format!("{what} over {n_steps} steps"));
    for loss in loss_axis.ticks() {
        let y = loss_axis.at(loss);
        chart.line([LEFT, y, right, y], "#dddddd");
        chart.text((LEFT - 8.0, y + 4.0), "end", LOSS, &short(loss));
    }
    for score in score_axis.ticks().filter(|_| has_scores) {
        chart.text((right + 8.0, score_axis.at(score) + 4.0), "start", SCORE, &short(100.0 * score));
    }
    for step in step_axis.ticks() {
        chart.text((step_axis.at(step), bottom + 18.0), "middle", GREY, &step.round().to_string());
    }
    chart.text((LEFT, 16.0), "middle", LOSS, "loss");
    if has_scores {
        chart.text((right, 16.0), "middle", SCORE, "held out, %");
    }
    chart.text(((LEFT + right) / 2.0, HEIGHT - 8.0), "middle", GREY, "steps");

    let mut n_before = 0;
    for stage in &stages {
        let x = |step: f64| step_axis.at(n_before as f64 + step);
        if n_before > 0 {
            chart.line([x(0.0), TOP, x(0.0), bottom], "#999999");
        }
        chart.text((x(stage.n_steps() as f64 / 2.0), 30.0), "middle", GREY, &stage.name);
        let losses = averaged(&stage.losses).into_iter().map(|(step, loss)| (x(step), loss_axis.at(loss)));
        chart.polyline(&losses.collect::<Vec<_>>(), LOSS, "");
        let scores = stage.scores.iter().map(|(step, score)| (x(*step as f64), score_axis.at(*score)));
        let scores: Vec<(f64, f64)> = scores.collect();
        chart.polyline(&scores, SCORE, "");
        scores.into_iter().for_each(|place| chart.dot(place, SCORE));
        n_before += stage.n_steps();
    }
    chart.finish()
}

fn read(steps: &str, intervals: &str) -> Vec<Stage> {
    let mut stages: Vec<Stage> = Vec::new();
    for entry in steps.lines().filter_map(Entry::of_step) {
        stage_of(&mut stages, &entry.stage).losses.extend(entry.value.map(|loss| (entry.step, loss)));
    }
    for entry in intervals.lines().filter_map(Entry::of_interval) {
        stage_of(&mut stages, &entry.stage).scores.extend(entry.value.map(|score| (entry.step, score)));
    }
    stages
}

fn stage_of<'a>(stages: &'a mut Vec<Stage>, name: &str) -> &'a mut Stage {
    let place = stages.iter().position(|stage| stage.name == name).unwrap_or(stages.len());
    if place == stages.len() {
        stages.push(Stage { name: name.to_owned(), ..Stage::default() });
    }
    &mut stages[place]
}

/// A log entry.
#[derive(Debug, PartialEq)]
pub struct Entry {
    /// Name of the stage.
    pub stage: String,
    /// Step within the stage.
    pub step: u64,
    /// Loss of a step, or score of an evaluation, if there is one.
    pub value: Option<f64>,
    /// Seconds since the start of the stage.
    pub seconds: f64,
}

impl Entry {
    /// Parses a line of `log.csv`.
    pub fn of_step(line: &str) -> Option<Entry> {
        let [stage, step, loss, _, _, seconds] = line.split(',').collect::<Vec<_>>().try_into().ok()?;
        let (step, value) = (step.parse().ok()?, loss.parse().ok());
        Some(Entry { stage: stage.to_owned(), step, value, seconds: seconds.parse().ok()? })
    }

    /// Parses a line of `log.jsonl`.
    pub fn of_interval(line: &str) -> Option<Entry> {
        let interval: serde_json::Value = serde_json::from_str(line).ok()?;
        let stage = interval["stage"].as_str()?.to_owned();
        let (step, value) = (interval["step"].as_u64()?, interval["score"].as_f64());
        Some(Entry { stage, step, value, seconds: interval["seconds"].as_f64()? })
    }
}

fn values<'a>(
    stages: &'a [Stage],
    of: impl Fn(&'a Stage) -> &'a Vec<(u64, f64)> + 'a,
) -> impl Iterator<Item = f64> + 'a {
    stages.iter().flat_map(of).map(|(_, value)| *value)
}

/// Averages adjacent steps, so that there are at most [`MAX_POINTS`].
fn averaged(points: &[(u64, f64)]) -> Vec<(f64, f64)> {
    let mean = |some: &[(u64, f64)]| {
        let n = some.len() as f64;
        let (steps, losses) = some.iter().fold((0.0, 0.0), |sum, (step, loss)| (sum.0 + *step as f64, sum.1 + loss));
        (steps / n, losses / n)
    };
    points.chunks(points.len().div_ceil(MAX_POINTS).max(1)).map(mean).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn curve_has_a_line_per_stage_and_a_dot_per_score() {
        let steps = "stage,step,loss,rate,norm,seconds\n\
                     pretrain,1,0.5,1e-3,0.1,0.1\npretrain,2,0.4,1e-3,0.1,0.2\n\
                     train,1,0.3,1e-3,0.1,0.1\ntrain,2,0.2,1e-3,0.1,0.2\n";
        let intervals = "{\"stage\":\"pretrain\",\"step\":2,\"score\":0.81,\"seconds\":0.2}\n\
                      {\"stage\":\"train\",\"step\":2,\"score\":0.84,\"seconds\":0.2}\n";
        let svg = draw(steps, intervals);
        let loss = format!("stroke=\"{LOSS}\"");
        assert_eq!((svg.matches(&loss).count(), svg.matches("<circle").count()), (2, 2));
        // The loss axis ends at 0.6, the score axis spans 80 to 85 percent, and the second stage starts in the middle.
        assert!(svg.contains(">0.6<") && svg.contains(">85<") && svg.contains(">80<"), "{svg}");
        assert!(svg.contains("<polyline points=\"210.0,80.7 360.0,127.3\""), "{svg}");
        assert!(svg.contains("<line x1=\"360.0\" y1=\"34.0\" x2=\"360.0\" y2=\"314.0\""), "{svg}");
        assert!(svg.contains(">Loss and held-out score over 4 steps<"), "{svg}");
        let without = draw(steps, "{\"stage\":\"train\",\"step\":2,\"score\":null,\"seconds\":0.2}\n");
        assert!(without.contains(">Loss over 4 steps<") && !without.contains("held out"), "{without}");
    }

    #[test]
    fn long_runs_are_averaged_and_empty_ones_drawn() {
        let points: Vec<(u64, f64)> = (1..=1000).map(|step| (step, 2.0)).collect();
        let fewer = averaged(&points);
        assert_eq!((fewer.len(), fewer[0]), (250, (2.5, 2.0)));
        assert!(draw("stage,step,loss,rate,norm,seconds\n", "").ends_with("</svg>\n"));
    }
}
