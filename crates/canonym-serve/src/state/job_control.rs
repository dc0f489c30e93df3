//! Communication between requests and the thread that runs jobs.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use crate::store::jobs::{End, STOPPED};

/// Wakes, cancels and stops the thread that runs jobs.
#[derive(Debug, Default)]
pub struct JobControl {
    /// Ends of jobs that are not stored yet.
    pub(crate) unstored_ends: Mutex<Vec<(i64, End)>>,
    pub(crate) cancelled: Mutex<HashSet<i64>>,
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
