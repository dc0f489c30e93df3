//! Learning curve of a run: loss and held-out score by step, drawn from its log.

use std::fmt::Write as _;

/// Size of the image and margins of the plot.
const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 360.0;
const LEFT: f64 = 60.0;
const RIGHT: f64 = 60.0;
const TOP: f64 = 34.0;
const BOTTOM: f64 = 46.0;

/// Maximum number of points of a line; losses in between are averaged.
const MAX_POINTS: usize = 300;

/// Intervals of an axis.
const N_TICKS: u32 = 4;

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

/// The range of an axis.
#[derive(Debug, Clone, Copy)]
struct Axis {
    low: f64,
    high: f64,
}

/// Draws the lines of `log.csv` and `log.jsonl` as SVG, stages side by side. Lines that cannot be parsed are ignored.
pub fn draw(steps: &str, rounds: &str) -> String {
    let stages = read(steps, rounds);
    let n_steps = stages.iter().map(Stage::n_steps).sum::<u64>().max(1);
    let losses = Axis { low: 0.0, high: above(values(&stages, |stage| &stage.losses).fold(0.0, f64::max)) };
    let lowest = values(&stages, |stage| &stage.scores).fold(f64::INFINITY, f64::min);
    let highest = values(&stages, |stage| &stage.scores).fold(f64::NEG_INFINITY, f64::max);
    let scores = Axis { low: (20.0 * lowest).floor() / 20.0, high: (20.0 * highest).floor() / 20.0 + 0.05 };
    let has_scores = lowest.is_finite();

    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <title>Loss{} over {n_steps} steps</title>\n<rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"#ffffff\"/>\n",
        if has_scores { " and held-out score" } else { "" }
    );
    let (right, bottom) = (WIDTH - RIGHT, HEIGHT - BOTTOM);
    for tick in 0..=N_TICKS {
        let fraction = f64::from(tick) / f64::from(N_TICKS);
        let y = bottom - fraction * (bottom - TOP);
        line(&mut svg, [LEFT, y, right, y], "#dddddd");
        text(&mut svg, (LEFT - 8.0, y + 4.0), "end", LOSS, &short(fraction * losses.high));
        if has_scores {
            let score = scores.low + fraction * (scores.high - scores.low);
            text(&mut svg, (right + 8.0, y + 4.0), "start", SCORE, &short(100.0 * score));
        }
        let step = (fraction * n_steps as f64).round();
        text(&mut svg, (LEFT + fraction * (right - LEFT), bottom + 18.0), "middle", "#333333", &step.to_string());
    }
    text(&mut svg, (LEFT, 16.0), "middle", LOSS, "loss");
    if has_scores {
        text(&mut svg, (right, 16.0), "middle", SCORE, "held out, %");
    }
    text(&mut svg, ((LEFT + right) / 2.0, HEIGHT - 8.0), "middle", "#333333", "steps");

    let mut n_before = 0;
    for stage in &stages {
        let x = |step: f64| LEFT + (n_before as f64 + step) / n_steps as f64 * (right - LEFT);
        let y = |value: f64, axis: Axis| bottom - (value - axis.low) / (axis.high - axis.low) * (bottom - TOP);
        if n_before > 0 {
            line(&mut svg, [x(0.0), TOP, x(0.0), bottom], "#999999");
        }
        text(&mut svg, (x(stage.n_steps() as f64 / 2.0), 30.0), "middle", "#333333", &stage.name);
        let fewer = averaged(&stage.losses);
        polyline(&mut svg, fewer.iter().map(|(step, loss)| (x(*step), y(*loss, losses))), LOSS);
        let held_out: Vec<(f64, f64)> =
            stage.scores.iter().map(|(step, score)| (x(*step as f64), y(*score, scores))).collect();
        polyline(&mut svg, held_out.iter().copied(), SCORE);
        for (x, y) in held_out {
            // Writing to a string cannot fail, here and below.
            let _ = writeln!(svg, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\" fill=\"{SCORE}\"/>");
        }
        n_before += stage.n_steps();
    }
    svg + "</svg>\n"
}

fn read(steps: &str, rounds: &str) -> Vec<Stage> {
    let mut stages: Vec<Stage> = Vec::new();
    for entry in steps.lines().filter_map(Entry::of_step) {
        stage_of(&mut stages, &entry.stage).losses.extend(entry.value.map(|loss| (entry.step, loss)));
    }
    for entry in rounds.lines().filter_map(Entry::of_round) {
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
    pub fn of_round(line: &str) -> Option<Entry> {
        let round: serde_json::Value = serde_json::from_str(line).ok()?;
        let stage = round["stage"].as_str()?.to_owned();
        let (step, value) = (round["step"].as_u64()?, round["score"].as_f64());
        Some(Entry { stage, step, value, seconds: round["seconds"].as_f64()? })
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

/// Rounds up to a round number.
pub(super) fn above(value: f64) -> f64 {
    if value <= 0.0 || !value.is_finite() {
        return 1.0;
    }
    let power = 10f64.powf(value.log10().floor());
    let steps = [1.0, 2.0, 4.0, 6.0, 8.0, 10.0];
    steps.into_iter().map(|step| step * power).find(|step| *step >= value).unwrap_or(10.0 * power)
}

/// Formats a number without trailing zeros.
pub(super) fn short(value: f64) -> String {
    let text = format!("{value:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Appends a line.
pub(super) fn line(svg: &mut String, [x1, y1, x2, y2]: [f64; 4], colour: &str) {
    let _ = writeln!(svg, "<line x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\" stroke=\"{colour}\"/>");
}

/// Appends a text. It is not escaped, so it must not contain user input.
pub(super) fn text(svg: &mut String, (x, y): (f64, f64), anchor: &str, colour: &str, text: &str) {
    let _ = writeln!(svg, "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\" fill=\"{colour}\">{text}</text>");
}

/// Appends a line through points.
pub(super) fn polyline(svg: &mut String, points: impl Iterator<Item = (f64, f64)>, colour: &str) {
    let points: Vec<String> = points.map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
    if !points.is_empty() {
        let points = points.join(" ");
        let _ = writeln!(
            svg,
            "<polyline points=\"{points}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.5\" stroke-linejoin=\"round\"/>"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn curve_has_a_line_per_stage_and_a_dot_per_score() {
        let steps = "stage,step,loss,rate,norm,seconds\n\
                     pretrain,1,0.5,1e-3,0.1,0.1\npretrain,2,0.4,1e-3,0.1,0.2\n\
                     train,1,0.3,1e-3,0.1,0.1\ntrain,2,0.2,1e-3,0.1,0.2\n";
        let rounds = "{\"stage\":\"pretrain\",\"step\":2,\"score\":0.81,\"seconds\":0.2}\n\
                      {\"stage\":\"train\",\"step\":2,\"score\":0.84,\"seconds\":0.2}\n";
        let svg = draw(steps, rounds);
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

    #[test]
    fn axes_end_at_round_numbers() {
        assert_eq!([0.0, 0.59, 1.0, 2.7, 11.8].map(above).map(short), ["1", "0.6", "1", "4", "20"]);
    }
}
