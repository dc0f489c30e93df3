//! The threads that link, and interrupts between batches.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::errors::{OrRaise, usage};

/// The threads of one process.
struct Pool {
    process: u32,
    n_threads: usize,
    threads: Option<Arc<ThreadPool>>,
}

static POOL: Mutex<Pool> = Mutex::new(Pool { process: 0, n_threads: 0, threads: None });

const MAX_THREADS: usize = 1024;

/// Time after which a signal is noticed.
const SIGNAL_INTERVAL: Duration = Duration::from_millis(50);

/// The threads of this process. A forked process has none of those of its parent and gets its own.
fn pool() -> PyResult<Arc<ThreadPool>> {
    let mut pool = POOL.lock().unwrap_or_else(PoisonError::into_inner);
    let process = std::process::id();
    if pool.process != process {
        // Dropping it would wait for threads that do not exist here.
        std::mem::forget(pool.threads.take());
        pool.process = process;
    }
    if let Some(threads) = &pool.threads {
        return Ok(threads.clone());
    }
    // 0 means all cores.
    let built = ThreadPoolBuilder::new().num_threads(pool.n_threads).build();
    let threads = Arc::new(built.map_err(|error| PyRuntimeError::new_err(format!("cannot start threads: {error}")))?);
    pool.threads = Some(threads.clone());
    Ok(threads)
}

/// Sets the number of threads, 0 for all cores; work that is running keeps its threads.
#[pyfunction]
#[pyo3(signature = (n_threads, /))]
pub fn set_threads(py: Python<'_>, n_threads: usize) -> PyResult<()> {
    if n_threads > MAX_THREADS {
        let message = format!("invalid number of threads: {n_threads}");
        return Err(usage(py, message, format!("use a number between 1 and {MAX_THREADS}, or 0 for all cores")));
    }
    let mut pool = POOL.lock().unwrap_or_else(PoisonError::into_inner);
    pool.n_threads = n_threads;
    if pool.process == std::process::id() {
        drop(pool.threads.take());
    }
    Ok(())
}

/// Runs `work` on all threads, without the interpreter lock.
pub fn work<T: Send>(py: Python<'_>, work: impl FnOnce() -> canonym::Result<T> + Send) -> PyResult<T> {
    let pool = pool()?;
    py.detach(|| pool.install(work)).or_raise(py)
}

/// Like [`work`] for work that takes long; signals set the flag that it gets, and it has to look.
pub fn cancellable<T: Send>(
    py: Python<'_>,
    work: impl FnOnce(&AtomicBool) -> canonym::Result<T> + Send,
) -> PyResult<T> {
    let pool = pool()?;
    let is_cancelled = AtomicBool::new(false);
    let interrupt = Mutex::new(None);
    let (done, result) = channel();
    let result = py.detach(|| {
        let result = result;
        pool.in_place_scope(|scope| {
            // The receiver waits until the end.
            scope.spawn(|_| drop(done.send(work(&is_cancelled))));
            loop {
                match result.recv_timeout(SIGNAL_INTERVAL) {
                    Ok(result) => return Some(result),
                    Err(RecvTimeoutError::Disconnected) => return None,
                    Err(RecvTimeoutError::Timeout) if is_cancelled.load(Ordering::Relaxed) => {}
                    // Signals are handled on the main thread only, which may be this one.
                    Err(RecvTimeoutError::Timeout) => {
                        if let Err(raised) = Python::attach(|py| py.check_signals()) {
                            is_cancelled.store(true, Ordering::Relaxed);
                            *interrupt.lock().unwrap_or_else(PoisonError::into_inner) = Some(raised);
                        }
                    }
                }
            }
        })
    });
    if let Some(interrupt) = interrupt.into_inner().unwrap_or_else(PoisonError::into_inner) {
        return Err(interrupt);
    }
    result.ok_or_else(|| PyRuntimeError::new_err("the work ended without a result"))?.or_raise(py)
}

/// Runs `link` on batches of at most `n_items` items or `n_bytes` bytes, in order, and handles signals after each.
pub fn in_batches<T: Send, U: Send>(
    py: Python<'_>,
    items: Vec<T>,
    size: BatchSize<T>,
    link: impl Fn(Vec<T>) -> canonym::Result<Vec<U>> + Sync,
) -> PyResult<Vec<U>> {
    let mut done = Vec::with_capacity(items.len());
    let mut items = items.into_iter().peekable();
    while items.peek().is_some() {
        let (mut batch, mut n_bytes) = (Vec::new(), 0);
        while batch.len() < size.n_items
            && n_bytes < size.n_bytes
            && let Some(item) = items.next()
        {
            n_bytes += (size.bytes_of)(&item);
            batch.push(item);
        }
        done.extend(work(py, || link(batch))?);
        py.check_signals()?;
    }
    Ok(done)
}

/// Limits of a batch.
pub struct BatchSize<T> {
    /// Maximum number of items.
    pub n_items: usize,
    /// Number of bytes after which a batch is complete.
    pub n_bytes: usize,
    /// Size of an item.
    pub bytes_of: fn(&T) -> usize,
}
