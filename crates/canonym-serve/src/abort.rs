//! Aborting requests.
//!
//! A request that timed out, or whose client disconnected, is aborted: its queries are interrupted and its writes rolled back. Once it has
//! committed it cannot be aborted any more, and its response has to say so.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use crate::error::{ApiResult, aborted};

const OPEN: u8 = 0;
const COMMITTED: u8 = 1;
const ABORTED: u8 = 2;

/// The state of a request: open, committed or aborted.
#[derive(Debug, Default)]
pub struct RequestState(AtomicU8);

impl RequestState {
    fn turn(&self, to: u8) -> bool {
        let turned = self.0.compare_exchange(OPEN, to, Ordering::AcqRel, Ordering::Acquire);
        turned.is_ok() || turned == Err(to)
    }

    /// Aborts the request; false if it was already committed.
    pub fn abort(&self) -> bool {
        self.turn(ABORTED)
    }

    fn commit(&self) -> bool {
        self.turn(COMMITTED)
    }

    fn is_aborted(&self) -> bool {
        self.0.load(Ordering::Acquire) == ABORTED
    }
}

/// Aborts a request when it is dropped.
#[derive(Debug)]
pub struct Client(pub Arc<RequestState>);

impl Drop for Client {
    fn drop(&mut self) {
        self.0.abort();
    }
}

tokio::task_local! {
    /// The request that a task handles.
    pub static REQUEST: Arc<RequestState>;
}

thread_local! {
    static CURRENT: RefCell<Option<Arc<RequestState>>> = const { RefCell::new(None) };
}

/// Runs `work` for a request on this thread.
pub fn during<T>(request: Option<Arc<RequestState>>, work: impl FnOnce() -> T) -> T {
    /// Threads are reused for other requests, even after a panic.
    struct Reset;
    impl Drop for Reset {
        fn drop(&mut self) {
            CURRENT.set(None);
        }
    }
    CURRENT.set(request);
    let _reset = Reset;
    work()
}

/// Whether the request of this thread was aborted.
pub fn is_aborted() -> bool {
    CURRENT.with_borrow(|request| request.as_ref().is_some_and(|request| request.is_aborted()))
}

/// Fails if the request of this thread was aborted.
pub fn check() -> ApiResult<()> {
    if is_aborted() { Err(aborted()) } else { Ok(()) }
}

/// Marks the request of this thread as committed, after which it cannot be aborted; fails if it already was aborted.
pub fn commit() -> ApiResult<()> {
    match CURRENT.with_borrow(|request| request.as_ref().is_none_or(|request| request.commit())) {
        true => Ok(()),
        false => Err(aborted()),
    }
}
