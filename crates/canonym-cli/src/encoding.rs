//! What the user is told when the names of a knowledge base are encoded, which happens on its first use with a model and can take minutes.

use std::time::{Duration, Instant};

use canonym_core::kb::KnowledgeBase;
use canonym_neural::index::cache::VectorCache;
use indicatif::ProgressBar;

use crate::output::thousands;
use crate::progress;

/// Fewer names take a second or two.
const WORTH_TELLING: usize = 25_000;

/// Names whose encoding tells how long that of all will take.
const SAMPLE: usize = 512;

/// Tells how many names will be encoded, about how long that takes and where the vectors are kept, unless they are there already. What it gives
/// shows on a terminal that the work goes on, until it is dropped.
pub fn tell(kb: &KnowledgeBase, cache: &VectorCache, n_names: usize, encode: impl FnOnce(usize)) -> Option<Working> {
    let file = cache.file(kb);
    if n_names < WORTH_TELLING || file.as_ref().is_some_and(|file| file.exists()) || progress::is_quiet() {
        return None;
    }
    let started = Instant::now();
    encode(SAMPLE);
    let all = started.elapsed().mul_f64(n_names as f64 / SAMPLE as f64);
    let kept = match file.as_ref().and_then(|file| file.parent()) {
        Some(folder) => format!("once; their vectors are kept in {}", folder.display()),
        None => "; no folder keeps their vectors, which `CANONYM_CACHE` can name".to_owned(),
    };
    let (n_names, name) = (thousands(n_names as u64), &kb.meta().name);
    progress::say(&format!("encoding {n_names} names of {name} (about {}) {kept}", rounded(all)));
    Some(Working(progress::spinner("encoding names")))
}

/// What shows that the work goes on.
pub struct Working(ProgressBar);

impl Drop for Working {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

/// A time as people say it.
fn rounded(time: Duration) -> String {
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
    fn times_are_told_no_more_exactly_than_they_are_known() {
        let times = [0, 8, 9, 41, 99, 100, 3599].map(|seconds| rounded(Duration::from_secs(seconds)));
        assert_eq!(times, ["1 s", "9 s", "10 s", "50 s", "100 s", "2 min", "60 min"]);
    }
}
