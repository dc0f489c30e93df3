//! Whether anybody still waits for the answer to a request.
//!
//! A request that ran out of time, or whose client left, is given up: what it reads is interrupted, what it wrote is rolled back. Once it commits
//! it cannot be given up any more, and its answer has to say so.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use crate::error::{ApiResult, abandoned};

const OPEN: u8 = 0;
const COMMITTED: u8 = 1;
const ABANDONED: u8 = 2;

/// A request that somebody waits for.
#[derive(Debug, Default)]
pub struct Waiting(AtomicU8);

impl Waiting {
    fn turn(&self, to: u8) -> bool {
        let turned = self.0.compare_exchange(OPEN, to, Ordering::AcqRel, Ordering::Acquire);
        turned.is_ok() || turned == Err(to)
    }

    /// Gives the request up; whether that was still possible.
    pub fn abandon(&self) -> bool {
        self.turn(ABANDONED)
    }

    fn commit(&self) -> bool {
        self.turn(COMMITTED)
    }

    fn is_abandoned(&self) -> bool {
        self.0.load(Ordering::Acquire) == ABANDONED
    }
}

/// Gives a request up when it is dropped.
#[derive(Debug)]
pub struct Client(pub Arc<Waiting>);

impl Drop for Client {
    fn drop(&mut self) {
        self.0.abandon();
    }
}

tokio::task_local! {
    /// The request that a task answers.
    pub static REQUEST: Arc<Waiting>;
}

thread_local! {
    static CURRENT: RefCell<Option<Arc<Waiting>>> = const { RefCell::new(None) };
}

/// Runs `work` on this thread for a request.
pub fn during<T>(request: Option<Arc<Waiting>>, work: impl FnOnce() -> T) -> T {
    /// Threads are used again for other requests, also after a panic.
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

/// Whether the request of this thread was given up.
pub fn is_abandoned() -> bool {
    CURRENT.with_borrow(|request| request.as_ref().is_some_and(|request| request.is_abandoned()))
}

/// An error where the request of this thread was given up.
pub fn check() -> ApiResult<()> {
    if is_abandoned() { Err(abandoned()) } else { Ok(()) }
}

/// From here on the request of this thread cannot be given up; an error where it already was.
pub fn commit() -> ApiResult<()> {
    match CURRENT.with_borrow(|request| request.as_ref().is_none_or(|request| request.commit())) {
        true => Ok(()),
        false => Err(abandoned()),
    }
}
