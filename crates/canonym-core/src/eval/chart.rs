//! Charts as SVG files: lines, bars and texts, and axes that end at round numbers. The plots of the HTML report are inline and have the style
//! of its page instead.

use std::fmt::Write as _;

/// Intervals of an axis.
const N_TICKS: u32 = 4;

/// A chart that is being drawn. Coordinates are those of its view, from the upper left corner.
#[derive(Debug, Clone)]
pub struct Chart(String);

// Writing to a string cannot fail, so the results of `write!` are ignored.
impl Chart {
    /// An empty chart on a white background.
    pub fn new(width: f64, height: f64, title: &str) -> Chart {
        let head = "<svg xmlns=\"http://www.w3.org/2000/svg\"";
        Chart(format!(
            "{head} viewBox=\"0 0 {width} {height}\" font-family=\"sans-serif\" font-size=\"12\">\n<title>{}</title>\n\
             <rect width=\"{width}\" height=\"{height}\" fill=\"#ffffff\"/>\n",
            escaped(title)
        ))
    }

    /// A line between two points.
    pub fn line(&mut self, [x1, y1, x2, y2]: [f64; 4], colour: &str) {
        let _ =
            writeln!(self.0, "<line x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\" stroke=\"{colour}\"/>");
    }

    /// A line through points, dashed if `dashes` is not empty.
    pub fn polyline(&mut self, points: &[(f64, f64)], colour: &str, dashes: &str) {
        if points.is_empty() {
            return;
        }
        let points: Vec<String> = points.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
        let points = points.join(" ");
        let _ = write!(self.0, "<polyline points=\"{points}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.5\"");
        if !dashes.is_empty() {
            let _ = write!(self.0, " stroke-dasharray=\"{dashes}\"");
        }
        self.0 += " stroke-linejoin=\"round\"/>\n";
    }

    /// A dot.
    pub fn dot(&mut self, (x, y): (f64, f64), colour: &str) {
        let _ = writeln!(self.0, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\" fill=\"{colour}\"/>");
    }

    /// A bar: left, top, width and height.
    pub fn bar(&mut self, [x, y, width, height]: [f64; 4], colour: &str) {
        let _ = writeln!(
            self.0,
            "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" fill=\"{colour}\"/>"
        );
    }

    /// A text that starts at a point, ends there or has its middle there: `anchor` is `start`, `end` or `middle`.
    pub fn text(&mut self, (x, y): (f64, f64), anchor: &str, colour: &str, text: &str) {
        let text = escaped(text);
        let _ = writeln!(
            self.0,
            "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\" fill=\"{colour}\">{text}</text>"
        );
    }

    /// The file.
    pub fn finish(self) -> String {
        self.0 + "</svg>\n"
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;")
}

/// Values from `low` to `high` at coordinates from `from` to `to`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Axis {
    /// The first value.
    pub low: f64,
    /// The last value.
    pub high: f64,
    /// Coordinate of the first value.
    pub from: f64,
    /// Coordinate of the last value.
    pub to: f64,
}

impl Axis {
    /// The coordinate of a value.
    pub fn at(&self, value: f64) -> f64 {
        self.from + (value - self.low) / (self.high - self.low) * (self.to - self.from)
    }

    /// Values at equal distances, both ends included.
    pub fn ticks(self) -> impl Iterator<Item = f64> {
        (0..=N_TICKS).map(move |tick| self.low + f64::from(tick) / f64::from(N_TICKS) * (self.high - self.low))
    }
}

/// Rounds up to a round number.
pub fn above(value: f64) -> f64 {
    if value <= 0.0 || !value.is_finite() {
        return 1.0;
    }
    let power = 10f64.powf(value.log10().floor());
    let steps = [1.0, 2.0, 4.0, 6.0, 8.0, 10.0];
    steps.into_iter().map(|step| step * power).find(|step| *step >= value).unwrap_or(10.0 * power)
}

/// Shares from the lowest to the highest, widened to steps of 5 %.
pub fn widened(lowest: f64, highest: f64) -> (f64, f64) {
    ((20.0 * lowest).floor() / 20.0, (20.0 * highest).floor() / 20.0 + 0.05)
}

/// Formats a number without trailing zeros.
pub fn short(value: f64) -> String {
    let text = format!("{value:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_end_at_round_numbers() {
        assert_eq!([0.0, 0.59, 1.0, 2.7, 11.8].map(above).map(short), ["1", "0.6", "1", "4", "20"]);
        let (low, high) = widened(0.81, 0.84);
        let axis = Axis { low, high, from: 100.0, to: 0.0 };
        assert_eq!(
            axis.ticks().map(|value| short(100.0 * value)).collect::<Vec<_>>(),
            ["80", "81.25", "82.5", "83.75", "85"]
        );
        assert_eq!(short(axis.at(0.825)), "50");
    }

    #[test]
    fn labels_are_escaped_and_lines_may_be_dashed() {
        let mut chart = Chart::new(10.0, 5.0, "a < b & c");
        chart.polyline(&[(0.0, 1.0), (2.0, 3.0)], "#333333", "2 3");
        chart.polyline(&[], "#333333", "");
        let svg = chart.finish();
        assert!(svg.contains("<title>a &lt; b &amp; c</title>"), "{svg}");
        assert!(svg.contains("points=\"0.0,1.0 2.0,3.0\"") && svg.contains("stroke-dasharray=\"2 3\""), "{svg}");
        assert_eq!(svg.matches("<polyline").count(), 1);
    }
}
