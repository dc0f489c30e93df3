//! Communication between requests and the thread that runs jobs.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use crate::marks::spread::Spread;
use crate::store::jobs::{End, STOPPED};

/// A decision to spread to identical mentions, or to take back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SpreadTask {
    /// A reviewed mention of a document.
    Decision {
        /// The project.
        project: i64,
        /// The document, which stays as it is.
        document: i64,
        /// What is spread.
        spread: Spread,
        /// The batch of the decision.
        batch: i64,
    },
    /// A decision that was undone.
    Withdraw {
        /// The project.
        project: i64,
        /// The batch of the decision.
        batch: i64,
    },
}

/// The maximum number of waiting tasks; further decisions are not spread.
const MAX_SPREADS: usize = 1000;

/// Wakes, cancels and stops the thread that runs jobs.
#[derive(Debug, Default)]
pub struct JobControl {
    /// Ends of jobs that are not stored yet.
    pub(crate) unstored_ends: Mutex<Vec<(i64, End)>>,
    pub(crate) cancelled: Mutex<HashSet<i64>>,
    spreads: Mutex<Vec<SpreadTask>>,
    spread_wakes: Condvar,
    woken: Mutex<bool>,
    wakes: Condvar,
    stops: AtomicBool,
}

impl JobControl {
    /// Waits for work; returns every few seconds to check whether the app still exists.
    pub(crate) fn wait(&self) {
        let woken = lock(&self.woken);
        let waited = self.wakes.wait_timeout_while(woken, std::time::Duration::from_secs(2), |woken| !*woken);
        let (mut woken, _) = waited.unwrap_or_else(PoisonError::into_inner);
        *woken = false;
    }

    /// Queues a decision to spread.
    pub fn spread(&self, task: SpreadTask) {
        let mut waiting = lock(&self.spreads);
        if waiting.len() < MAX_SPREADS {
            waiting.push(task);
        }
        self.spread_wakes.notify_all();
    }

    /// The waiting decisions, in order.
    pub(crate) fn take_spreads(&self) -> Vec<SpreadTask> {
        std::mem::take(&mut *lock(&self.spreads))
    }

    /// Waits for decisions; returns every few seconds to check whether the app still exists.
    pub(crate) fn wait_for_spreads(&self) {
        let waiting = lock(&self.spreads);
        let timeout = std::time::Duration::from_secs(2);
        let waited = self.spread_wakes.wait_timeout_while(waiting, timeout, |waiting| waiting.is_empty());
        drop(waited.unwrap_or_else(PoisonError::into_inner));
    }

    /// Wakes the thread.
    pub fn wake(&self) {
        *lock(&self.woken) = true;
        self.wakes.notify_all();
    }

    /// Cancels a running job.
    pub fn cancel(&self, id: i64) {
        lock(&self.cancelled).insert(id);
    }

    /// Stops the running job and the thread.
    pub fn stop(&self) {
        self.stops.store(true, Ordering::Relaxed);
        self.spread_wakes.notify_all();
        self.wake();
    }

    /// Whether the server is stopping.
    pub(crate) fn is_stopping(&self) -> bool {
        self.stops.load(Ordering::Relaxed)
    }

    /// How a job has to end early: it was cancelled, or the server is stopping.
    pub(crate) fn interruption(&self, id: i64) -> Option<End> {
        if lock(&self.cancelled).contains(&id) {
            return Some(End::Cancelled);
        }
        self.is_stopping().then(|| End::Failed(STOPPED.to_owned()))
    }
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
