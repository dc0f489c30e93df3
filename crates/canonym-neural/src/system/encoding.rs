//! Status message while the names of a knowledge base are encoded. This happens on the first use with a model and can take minutes.

use std::time::Instant;

use canonym_core::eval::thousands;
use canonym_core::kb::KnowledgeBase;
use tracing::span::EnteredSpan;

use crate::index::cache::VectorCache;
use crate::status;

/// With fewer names, encoding takes a second or two and no message is shown.
const WORTH_TELLING: usize = 25_000;

/// Number of names encoded to estimate the total time.
const SAMPLE: usize = 512;

/// Reports how many names will be encoded, the estimated time and where the vectors are cached; does nothing if they are cached already.
/// The returned span shows the work as in progress until it is dropped.
pub fn tell(
    kb: &KnowledgeBase,
    cache: &VectorCache,
    n_names: usize,
    encode: impl FnOnce(usize),
) -> Option<EnteredSpan> {
    let file = cache.file(kb);
    if n_names < WORTH_TELLING || file.as_ref().is_some_and(|file| file.exists()) || !status::is_enabled() {
        return None;
    }
    let started = Instant::now();
    encode(SAMPLE);
    let all = started.elapsed().mul_f64(n_names as f64 / SAMPLE as f64);
    let kept = match file.as_ref().and_then(|file| file.parent()) {
        Some(folder) => format!("once; the embeddings are cached in {}", folder.display()),
        None => "; not cached: set `CANONYM_CACHE` to a folder to cache the embeddings".to_owned(),
    };
    let (n_names, name) = (thousands(n_names as u64), &kb.meta().name);
    status::say(&format!("encoding {n_names} names of {name} (about {}) {kept}", status::rounded(all)));
    Some(status::working("encoding names"))
}
