//! Plots as inline SVG: bars in tables, and curves on the unit square.

use super::markup::{Markup, percent};

/// Size of a plot and of its frame.
const WIDTH: f64 = 460.0;
const HEIGHT: f64 = 300.0;
const LEFT: f64 = 56.0;
const RIGHT: f64 = 14.0;
const TOP: f64 = 14.0;
const BOTTOM: f64 = 46.0;

/// A plot of shares over x values from 0 to 1.
#[derive(Debug, Clone, Default)]
pub(super) struct Plot {
    /// Title for screen readers.
    pub title: String,
    /// Description with figures for screen readers.
    pub description: String,
    /// Label of the x axis.
    pub x_label: String,
    /// Label of the y axis.
    pub y_label: String,
    /// Ticks of the x axis: position and label.
    pub x_ticks: Vec<(f64, String)>,
    /// Maximum of the y axis.
    pub y_max: f64,
    /// Minimum of the y axis.
    pub y_min: f64,
    /// The curve.
    pub curve: Vec<(f64, f64)>,
    /// Whether to draw the points of the curve.
    pub dots: bool,
    /// Error bars: position, lower and upper bound.
    pub whiskers: Vec<(f64, f64, f64)>,
    /// Histogram bars: left, right, height.
    pub bars: Vec<(f64, f64, f64)>,
    /// Whether to draw the diagonal, which is perfect calibration.
    pub diagonal: bool,
}

/// Ticks of an axis of shares.
pub(super) fn share_ticks() -> Vec<(f64, String)> {
    (0..=4).map(|step| f64::from(step) / 4.0).map(|position| (position, percent(position, 0))).collect()
}

impl Plot {
    fn x(&self, position: f64) -> String {
        coordinate(LEFT + position.clamp(0.0, 1.0) * (WIDTH - LEFT - RIGHT))
    }

    fn y(&self, value: f64) -> String {
        let range = (self.y_max - self.y_min).max(f64::EPSILON);
        let share = ((value - self.y_min) / range).clamp(0.0, 1.0);
        coordinate(HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM))
    }

    /// Draws the plot.
    pub(super) fn draw(&self, out: &mut Markup) {
        let view = format!("0 0 {WIDTH} {HEIGHT}");
        let label = format!("{}. {}", self.title, self.description);
        out.element("svg.plot", &[("viewBox", &view), ("role", "img"), ("aria-label", &label)], |out| {
            out.leaf("title", &[], &self.title);
            out.leaf("desc", &[], &self.description);
            self.draw_frame(out);
            for &(left, right, height) in &self.bars {
                let points = [(left, self.y_min), (left, height), (right, height), (right, self.y_min)];
                out.void("polygon.area", &[("points", &self.points(&points))]);
                let top = self.y(height);
                line(out, "whisker", [&self.x(left), &top, &self.x(right), &top]);
            }
            if self.diagonal {
                out.void("polyline.ideal", &[("points", &self.points(&[(0.0, 0.0), (1.0, 1.0)]))]);
            }
            for &(position, low, high) in &self.whiskers {
                let x = self.x(position);
                line(out, "whisker", [&x, &self.y(low), &x, &self.y(high)]);
            }
            if self.curve.len() > 1 {
                out.void("polyline.curve", &[("points", &self.points(&self.curve))]);
            }
            for &(position, value) in self.curve.iter().filter(|_| self.dots || self.curve.len() == 1) {
                out.void("circle.dot", &[("cx", &self.x(position)), ("cy", &self.y(value)), ("r", "3.5")]);
            }
        });
    }

    fn draw_frame(&self, out: &mut Markup) {
        let (left, right, bottom) = (coordinate(LEFT), coordinate(WIDTH - RIGHT), coordinate(HEIGHT - BOTTOM));
        for step in 0..=4 {
            let value = self.y_min + f64::from(step) / 4.0 * (self.y_max - self.y_min);
            let y = self.y(value);
            line(out, if step == 0 { "axis" } else { "grid" }, [&left, &y, &right, &y]);
            let digits = usize::from((self.y_max - self.y_min) * 25.0 % 1.0 > 1e-6);
            let position = [("x", coordinate(LEFT - 7.0)), ("y", y)];
            write(out, "text", &position, &[("text-anchor", "end"), ("dy", "0.32em")], &percent(value, digits));
        }
        for (position, label) in &self.x_ticks {
            let (x, below) = (self.x(*position), coordinate(HEIGHT - BOTTOM + 4.0));
            line(out, "axis", [&x, &bottom, &x, &below]);
            let position = [("x", x), ("y", coordinate(HEIGHT - BOTTOM + 18.0))];
            write(out, "text", &position, &[("text-anchor", "middle")], label);
        }
        let position = [("x", coordinate((LEFT + WIDTH - RIGHT) / 2.0)), ("y", coordinate(HEIGHT - 6.0))];
        write(out, "text.label", &position, &[("text-anchor", "middle")], &self.x_label);
        let middle = (TOP + HEIGHT - BOTTOM) / 2.0;
        let turn = format!("translate(11 {}) rotate(-90)", coordinate(middle));
        write(out, "text.label", &[], &[("transform", &turn), ("text-anchor", "middle")], &self.y_label);
    }

    fn points(&self, points: &[(f64, f64)]) -> String {
        let point = |&(position, value): &(f64, f64)| format!("{},{}", self.x(position), self.y(value));
        points.iter().map(point).collect::<Vec<String>>().join(" ")
    }
}

/// A bar in a table cell; `share` of its width is filled.
pub(super) fn bar(out: &mut Markup, share: f64) {
    let width = coordinate(share.clamp(0.0, 1.0) * 100.0);
    let frame = [("viewBox", "0 0 100 10"), ("preserveAspectRatio", "none"), ("aria-hidden", "true")];
    out.element("svg", &frame, |out| {
        out.void("rect.fill", &[("width", &width), ("height", "10")]);
    });
}

/// A value on a scale from 0 to 1, with its interval if there is one.
pub(super) fn scale(out: &mut Markup, value: f64, interval: Option<(f64, f64)>) {
    let frame = [("viewBox", "0 0 100 10"), ("preserveAspectRatio", "none"), ("aria-hidden", "true")];
    let position = |share: f64| share.clamp(0.0, 1.0) * 100.0;
    out.element("svg", &frame, |out| {
        out.void("rect.track", &[("y", "3"), ("width", "100"), ("height", "4")]);
        out.void("rect.tint", &[("y", "3"), ("width", &coordinate(position(value))), ("height", "4")]);
        if let Some((low, high)) = interval {
            let width = coordinate((position(high) - position(low)).max(0.6));
            out.void("rect.fill", &[("x", &coordinate(position(low))), ("y", "3"), ("width", &width), ("height", "4")]);
        }
        out.void("rect.fill", &[("x", &coordinate(position(value) - 0.4)), ("width", "0.8"), ("height", "10")]);
    });
}

fn line(out: &mut Markup, class: &str, [x1, y1, x2, y2]: [&str; 4]) {
    out.void(&format!("line.{class}"), &[("x1", x1), ("y1", y1), ("x2", x2), ("y2", y2)]);
}

fn write(out: &mut Markup, tag: &str, position: &[(&str, String)], attributes: &[(&str, &str)], text: &str) {
    let mut all: Vec<(&str, &str)> = position.iter().map(|(key, value)| (*key, value.as_str())).collect();
    all.extend(attributes);
    out.leaf(tag, &all, text);
}

/// A coordinate with one decimal, enough for display.
fn coordinate(value: f64) -> String {
    let text = format!("{value:.1}");
    text.strip_suffix(".0").map_or(text.clone(), str::to_owned)
}
