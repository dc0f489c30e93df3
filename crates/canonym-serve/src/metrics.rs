//! Metrics in the Prometheus text format.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Bucket bounds of the histogram of durations, in seconds.
const BUCKET_BOUNDS: [f64; 8] = [0.005, 0.02, 0.05, 0.1, 0.5, 1.0, 5.0, 30.0];

/// HTTP methods with counters of their own.
const METHODS: [&str; 6] = ["GET", "HEAD", "POST", "PATCH", "DELETE", "OPTIONS"];

#[derive(Debug, Default)]
struct Counts {
    by_status: BTreeMap<(String, u16), u64>,
    buckets: [u64; BUCKET_BOUNDS.len()],
    n: u64,
    seconds: f64,
    n_linked: u64,
    n_linked_bytes: u64,
}

/// Counters since the start.
#[derive(Debug, Default)]
pub struct Metrics(Mutex<Counts>);

impl Metrics {
    fn counts(&self) -> std::sync::MutexGuard<'_, Counts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a response.
    pub fn answered(&self, method: &str, status: u16, took: Duration) {
        let seconds = took.as_secs_f64();
        // Clients may send arbitrary methods.
        let method = if METHODS.contains(&method) { method } else { "OTHER" };
        let mut counts = self.counts();
        *counts.by_status.entry((method.to_owned(), status)).or_default() += 1;
        counts.n += 1;
        counts.seconds += seconds;
        for (bucket, bound) in counts.buckets.iter_mut().zip(BUCKET_BOUNDS) {
            *bucket += u64::from(seconds <= bound);
        }
    }

    /// Counts linked documents.
    pub fn linked(&self, n_documents: usize, n_bytes: usize) {
        let mut counts = self.counts();
        counts.n_linked += n_documents as u64;
        counts.n_linked_bytes += n_bytes as u64;
    }

    /// All metrics as text; `n_waiting` requests are in the batch queue.
    pub fn text(&self, n_waiting: usize) -> String {
        let counts = self.counts();
        let mut text = String::from("# TYPE canonym_requests_total counter\n");
        for ((method, status), n) in &counts.by_status {
            let _ = writeln!(text, "canonym_requests_total{{method=\"{method}\",status=\"{status}\"}} {n}");
        }
        text.push_str("# TYPE canonym_request_seconds histogram\n");
        for (n, bound) in counts.buckets.iter().zip(BUCKET_BOUNDS) {
            let _ = writeln!(text, "canonym_request_seconds_bucket{{le=\"{bound}\"}} {n}");
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
