//! Status messages for the user during long operations, as `tracing` events under one target. The program prints them; libraries print
//! nothing.

use std::time::Duration;

use tracing::span::EnteredSpan;

/// Target of status events and spans.
pub const TARGET: &str = "canonym::status";

/// Emits one status line.
pub fn say(line: &str) {
    tracing::info!(target: TARGET, "{line}");
}

/// Whether a subscriber is interested in status events.
pub fn is_heard() -> bool {
    tracing::enabled!(target: TARGET, tracing::Level::INFO)
}

/// Opens a span that shows `what` as in progress until the returned guard is dropped.
pub fn working(what: &str) -> EnteredSpan {
    tracing::info_span!(target: TARGET, "working", what).entered()
}

/// Rounds a duration up for display, such as `20 s` or `3 min`.
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
