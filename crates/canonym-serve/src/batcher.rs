//! The batch queue in front of the engines. It is bounded, so that an overloaded server responds at once, and waiting requests are linked together.

use std::collections::VecDeque;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use canonym_core::corpus::{AnnotatedDocument, contexts};
use canonym_core::link::explain::Explanation;
use tokio::sync::oneshot;

use crate::engine::{Engine, LinkOptions, check_kb};
use crate::error::{ApiError, ApiResult};

/// Limits of the batch queue.
#[derive(Debug, Clone, Copy)]
pub struct BatcherConfig {
    /// The maximum number of waiting requests.
    pub max_requests: usize,
    /// The maximum bytes of waiting text; a single request may be longer if nothing else waits.
    pub max_bytes: usize,
    /// The maximum bytes of text per batch.
    pub batch_bytes: usize,
}

impl Default for BatcherConfig {
    fn default() -> BatcherConfig {
        BatcherConfig { max_requests: 64, max_bytes: 32 << 20, batch_bytes: 256 << 10 }
    }
}

/// Linked documents, with the evidence for each annotation if requested.
pub type Linked = Vec<(AnnotatedDocument, Vec<Explanation>)>;

/// How a request is linked; equal ones can share a batch.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LinkMode {
    /// Linking options.
    pub options: LinkOptions,
    /// Whether evidence is requested.
    pub explain: bool,
    /// Whether mentions get the context that the text gives them: negation, time, experiencer.
    pub context: bool,
    /// Contexts of mentions to drop, such as `negated`.
    pub drop_context: Vec<String>,
}

struct Request {
    documents: Vec<AnnotatedDocument>,
    mode: LinkMode,
    engine: Arc<dyn Engine>,
    n_bytes: usize,
    reply: oneshot::Sender<ApiResult<Linked>>,
}

#[derive(Default)]
struct QueueState {
    requests: VecDeque<Request>,
    n_bytes: usize,
    is_closed: bool,
}

struct Shared {
    waiting: Mutex<QueueState>,
    changed: Condvar,
    config: BatcherConfig,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, QueueState> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next batch; `None` when the queue is closed. Aborted requests are dropped.
    fn next(&self) -> Option<Vec<Request>> {
        let mut waiting = self.lock();
        loop {
            if waiting.is_closed {
                return None;
            }
            if let Some(first) = waiting.requests.pop_front() {
                waiting.n_bytes -= first.n_bytes;
                if first.reply.is_closed() {
                    continue;
                }
                return Some(self.fill_batch(first, &mut waiting));
            }
            waiting = self.changed.wait(waiting).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn fill_batch(&self, first: Request, waiting: &mut QueueState) -> Vec<Request> {
        let (mode, mut n_bytes) = (first.mode.clone(), first.n_bytes);
        let mut batch = vec![first];
        while let Some(next) = waiting.requests.front()
            && next.mode == mode
            && Arc::ptr_eq(&next.engine, &batch[0].engine)
            && n_bytes + next.n_bytes <= self.config.batch_bytes
        {
            n_bytes += next.n_bytes;
            waiting.n_bytes -= next.n_bytes;
            batch.extend(waiting.requests.pop_front());
        }
        batch
    }
}

/// The batch queue. Its thread ends when it is dropped.
pub struct Batcher {
    shared: Arc<Shared>,
}

impl Batcher {
    /// Starts the thread of a new queue.
    pub fn new(config: BatcherConfig) -> Batcher {
        let shared = Arc::new(Shared { waiting: Mutex::default(), changed: Condvar::new(), config });
        let worker = shared.clone();
        std::thread::spawn(move || {
            while let Some(batch) = worker.next() {
                answer(batch);
            }
        });
        Batcher { shared }
    }

    /// Links documents when it is their turn; fails at once if the queue is full.
    pub async fn link(
        &self,
        engine: Arc<dyn Engine>,
        documents: Vec<AnnotatedDocument>,
        mode: LinkMode,
    ) -> ApiResult<Linked> {
        let n_bytes = documents.iter().map(|document| document.document.text.len()).sum();
        let (reply, answer) = oneshot::channel();
        {
            let mut waiting = self.shared.lock();
            let BatcherConfig { max_requests, max_bytes, .. } = self.shared.config;
            let is_full = waiting.requests.len() >= max_requests
                || (!waiting.requests.is_empty() && waiting.n_bytes + n_bytes > max_bytes);
            if is_full {
                return Err(ApiError::busy("too many texts are waiting to be linked", 1));
            }
            waiting.n_bytes += n_bytes;
            waiting.requests.push_back(Request { documents, mode, engine, n_bytes, reply });
        }
        self.shared.changed.notify_one();
        answer.await.unwrap_or_else(|_| Err(ApiError::unavailable("the server is stopping")))
    }

    /// The number of waiting requests.
    pub fn n_waiting(&self) -> usize {
        self.shared.lock().requests.len()
    }
}

impl Drop for Batcher {
    fn drop(&mut self) {
        let mut waiting = self.shared.lock();
        waiting.is_closed = true;
        waiting.requests.clear();
        drop(waiting);
        self.shared.changed.notify_all();
    }
}

/// Links a batch and replies to each request. If the batch fails, each request is linked alone, so that one does not fail the others.
fn answer(mut batch: Vec<Request>) {
    let (mode, engine) = (batch[0].mode.clone(), batch[0].engine.clone());
    let engine = engine.as_ref();
    if batch.len() > 1 {
        let counts: Vec<usize> = batch.iter().map(|request| request.documents.len()).collect();
        let all = batch.iter().flat_map(|request| request.documents.iter().cloned()).collect();
        if let Ok(linked) = link(engine, all, &mode) {
            let mut linked = linked.into_iter();
            for (request, n) in batch.into_iter().zip(counts) {
                // Sending fails if the request was aborted.
                let _ = request.reply.send(Ok(linked.by_ref().take(n).collect()));
            }
            return;
        }
    }
    for request in batch.drain(..) {
        let _ = request.reply.send(link(engine, request.documents, &mode));
    }
}

fn link(engine: &dyn Engine, documents: Vec<AnnotatedDocument>, mode: &LinkMode) -> ApiResult<Linked> {
    let n_documents = documents.len();
    let work = || -> canonym_core::Result<Linked> {
        match mode.explain {
            true => engine.explain(documents, &mode.options),
            false => Ok(engine.link(documents, &mode.options)?.into_iter().map(|one| (one, Vec::new())).collect()),
        }
    };
    let linked = std::panic::catch_unwind(AssertUnwindSafe(work));
    check_kb(engine)?;
    let mut linked = linked.map_err(|_| ApiError::internal(&"the model panicked"))??;
    if mode.context {
        linked.iter_mut().for_each(|(document, reasons)| add_contexts(document, reasons, &mode.drop_context));
    }
    match linked.len() == n_documents {
        true => Ok(linked),
        false => Err(ApiError::internal(&"the model returned a different number of documents")),
    }
}

/// Adds contexts, and drops mentions with one of the contexts `unwanted` and their evidence.
fn add_contexts(document: &mut AnnotatedDocument, reasons: &mut Vec<Explanation>, unwanted: &[String]) {
    contexts::add(document);
    let is_kept: Vec<bool> =
        document.annotations.iter().map(|annotation| !contexts::has_any(annotation, unwanted)).collect();
    let mut kept = is_kept.iter();
    document.annotations.retain(|_| kept.next().copied().unwrap_or(true));
    let mut kept = is_kept.iter();
    reasons.retain(|_| kept.next().copied().unwrap_or(true));
}
