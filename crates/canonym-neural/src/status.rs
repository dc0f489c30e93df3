//! What a user is told while something long goes on: events of `tracing` under one target. The program prints them; a library prints nothing.

use std::time::Duration;

use tracing::span::EnteredSpan;

/// The target of events and spans for the user.
pub const TARGET: &str = "canonym::status";

/// One line for the user.
pub fn say(line: &str) {
    tracing::info!(target: TARGET, "{line}");
}

/// Whether somebody listens.
pub fn is_heard() -> bool {
    tracing::enabled!(target: TARGET, tracing::Level::INFO)
}

/// Says that `what` goes on, until it is dropped.
pub fn working(what: &str) -> EnteredSpan {
    tracing::info_span!(target: TARGET, "working", what).entered()
}

/// A time as people say it.
pub fn rounded(time: Duration) -> String {
    match time.as_secs() {
        0..=9 => format!("{} s", time.as_secs() + 1),
        seconds @ 10..=99 => format!("{} s", seconds.div_ceil(10) * 10),
        seconds => format!("{} min", seconds.div_ceil(60)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_told_no_more_exactly_than_they_are_known() {
        let times = [0, 8, 9, 41, 99, 100, 3599].map(|seconds| rounded(Duration::from_secs(seconds)));
        assert_eq!(times, ["1 s", "9 s", "10 s", "50 s", "100 s", "2 min", "60 min"]);
    }
}
