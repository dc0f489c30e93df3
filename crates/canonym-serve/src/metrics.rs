//! Counts for those who watch over servers, in the text format of Prometheus.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Upper borders of the histogram of durations, in seconds.
const BORDERS: [f64; 8] = [0.005, 0.02, 0.05, 0.1, 0.5, 1.0, 5.0, 30.0];

/// Methods that are counted apart.
const METHODS: [&str; 6] = ["GET", "HEAD", "POST", "PATCH", "DELETE", "OPTIONS"];

#[derive(Debug, Default)]
struct Counts {
    by_status: BTreeMap<(String, u16), u64>,
    buckets: [u64; BORDERS.len()],
    n: u64,
    seconds: f64,
    n_linked: u64,
    n_linked_bytes: u64,
}

/// Counts since the start.
#[derive(Debug, Default)]
pub struct Metrics(Mutex<Counts>);

impl Metrics {
    fn counts(&self) -> std::sync::MutexGuard<'_, Counts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A request was answered.
    pub fn answered(&self, method: &str, status: u16, took: Duration) {
        let seconds = took.as_secs_f64();
        // Clients may make methods up.
        let method = if METHODS.contains(&method) { method } else { "OTHER" };
        let mut counts = self.counts();
        *counts.by_status.entry((method.to_owned(), status)).or_default() += 1;
        counts.n += 1;
        counts.seconds += seconds;
        for (bucket, border) in counts.buckets.iter_mut().zip(BORDERS) {
            *bucket += u64::from(seconds <= border);
        }
    }

    /// Documents were linked.
    pub fn linked(&self, n_documents: usize, n_bytes: usize) {
        let mut counts = self.counts();
        counts.n_linked += n_documents as u64;
        counts.n_linked_bytes += n_bytes as u64;
    }

    /// All counts as text; `n_waiting` requests are in front of the model.
    pub fn text(&self, n_waiting: usize) -> String {
        let counts = self.counts();
        let mut text = String::from("# TYPE canonym_requests_total counter\n");
        for ((method, status), n) in &counts.by_status {
            let _ = writeln!(text, "canonym_requests_total{{method=\"{method}\",status=\"{status}\"}} {n}");
        }
        text.push_str("# TYPE canonym_request_seconds histogram\n");
        for (n, border) in counts.buckets.iter().zip(BORDERS) {
            let _ = writeln!(text, "canonym_request_seconds_bucket{{le=\"{border}\"}} {n}");
        }
        let _ = writeln!(text, "canonym_request_seconds_bucket{{le=\"+Inf\"}} {}", counts.n);
        let _ = writeln!(text, "canonym_request_seconds_sum {}", counts.seconds);
        let _ = writeln!(text, "canonym_request_seconds_count {}", counts.n);
        let rows = [
            ("canonym_linked_documents_total", "counter", counts.n_linked),
            ("canonym_linked_bytes_total", "counter", counts.n_linked_bytes),
            ("canonym_waiting_requests", "gauge", n_waiting as u64),
        ];
        for (name, kind, value) in rows {
            let _ = writeln!(text, "# TYPE {name} {kind}\n{name} {value}");
        }
        text
    }
}
