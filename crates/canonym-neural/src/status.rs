//! Status messages for the user during long operations, as `tracing` events under one target, and stages with their times as ordinary
//! events. The program prints them; libraries print nothing.

use std::fmt::Display;
use std::time::{Duration, Instant};

use canonym_core::numbers::counted;
use tracing::span::EnteredSpan;

/// Target of status events and spans.
pub const TARGET: &str = "canonym::status";

/// Emits one status line.
pub fn say(line: &str) {
    tracing::info!(target: TARGET, "{line}");
}

/// Whether a subscriber is interested in status events.
pub fn is_enabled() -> bool {
    tracing::enabled!(target: TARGET, tracing::Level::INFO)
}

/// Opens a span that shows `what` as in progress until the returned guard is dropped.
pub fn working(what: &str) -> EnteredSpan {
    tracing::info_span!(target: TARGET, "working", what).entered()
}

/// A stage of the work, for those who want to know where the time goes.
#[derive(Debug)]
pub struct Stage(Instant);

impl Stage {
    /// Starts the clock.
    pub fn start() -> Stage {
        Stage(Instant::now())
    }

    /// Ends the stage with an event that says what was done and how long it took.
    pub fn done(self, what: impl Display) {
        tracing::info!("{what} in {}", exact(self.0.elapsed()));
    }
}

/// Time of a kind of work that alternates with other kinds, and what was done in it.
#[derive(Debug, Default)]
pub struct Meter {
    time: Duration,
    n: u64,
}

impl Meter {
    /// Does a part of the work.
    pub fn time<T>(&mut self, work: impl FnOnce() -> T) -> T {
        let start = Instant::now();
        let result = work();
        self.time += start.elapsed();
        result
    }

    /// Adds `n` things to what was done.
    pub fn count(&mut self, n: usize) {
        self.n += n as u64;
    }

    /// Ends the work with an event such as `linked 12 documents in 0.100 s, 120 per second`; `thing` is a singular noun.
    pub fn done(self, verb: &str, thing: &str) {
        let rate = self.n as f64 / self.time.as_secs_f64().max(1e-9);
        tracing::info!("{verb} {} in {}, {rate:.0} per second", counted(self.n, thing), exact(self.time));
    }
}

/// A duration in seconds, with three digits below 10 s.
pub fn exact(time: Duration) -> String {
    let seconds = time.as_secs_f64();
    if seconds < 10.0 { format!("{seconds:.3} s") } else { format!("{seconds:.1} s") }
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
    fn times_are_rounded_to_their_precision() {
        let times = [0, 8, 9, 41, 99, 100, 3599].map(|seconds| rounded(Duration::from_secs(seconds)));
        assert_eq!(times, ["1 s", "9 s", "10 s", "50 s", "100 s", "2 min", "60 min"]);
    }
}
