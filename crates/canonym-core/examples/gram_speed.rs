//! Recall and time of searches by character n-grams; `benches/scale/bench.py` runs it.
//!
//!     gram_speed FILE.kb NAMES
//!
//! Searches the lines of NAMES in the knowledge base on one thread, and compares what was found with the nearest of all names, for every
//! fifth line. Prints JSON: recall at 20 (ties count as found), milliseconds of the searches, and microseconds to look up 10,000 names
//! that it has.

use std::path::Path;
use std::time::Instant;

use canonym_core::index::grams::GramScratch;
use canonym_core::kb::KnowledgeBase;
use canonym_core::text::normalise::fold;
use rayon::prelude::*;

/// Recall is measured at this rank.
const K: usize = 20;

/// Names that the linker asks for.
const WANTED: usize = 48;

/// One query in so many is compared with all names.
const EXHAUSTIVE: usize = 5;

/// Names of one piece of work of the exhaustive search.
const PIECE: u32 = 1 << 16;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [kb, names] = arguments.as_slice() else {
        eprintln!("usage: gram_speed FILE.kb NAMES");
        std::process::exit(2);
    };
    let kb = KnowledgeBase::open(Path::new(kb)).expect("a knowledge base");
    let text = std::fs::read_to_string(names).expect("a file of names");
    let queries: Vec<String> = text.lines().map(fold).collect();
    if queries.is_empty() || kb.n_forms() == 0 {
        eprintln!("error: no names in {names} or in the knowledge base");
        std::process::exit(1);
    }
    let mut scratch = GramScratch::default();
    // The first search reads the norms of all names.
    kb.grams().search(&queries[0], WANTED, &mut scratch);
    let (mut times, mut recall, mut n_compared) = (Vec::new(), 0.0, 0);
    let mut compared = Vec::new();
    for (turn, query) in queries.iter().enumerate() {
        let started = Instant::now();
        let found = kb.grams().search(query, WANTED, &mut scratch);
        times.push(started.elapsed().as_secs_f64() * 1e3);
        if turn % EXHAUSTIVE == 0 {
            compared.push((query, found));
        }
    }
    let n_nearest = K.min(kb.n_forms());
    // After the timed searches, as it empties the processor cache.
    for (query, found) in compared {
        let least = kth_cosine(&kb, query) - 1e-6;
        recall += found.iter().take(n_nearest).filter(|hit| hit.cosine >= least).count() as f64 / n_nearest as f64;
        n_compared += 1;
    }
    times.sort_unstable_by(f64::total_cmp);
    let names: Vec<String> =
        (0..kb.n_forms()).step_by(kb.n_forms() / 10_000 + 1).map(|row| kb.forms().get(row).into_owned()).collect();
    let started = Instant::now();
    let n_found = names.iter().filter(|name| kb.find_form(name).is_some()).count();
    let exact = started.elapsed().as_secs_f64() * 1e6 / n_found as f64;
    let quantile = |share: f64| times[((times.len() - 1) as f64 * share) as usize];
    let figures = serde_json::json!({
        "recall_at_20": recall / f64::from(n_compared), "n_compared": n_compared,
        "median_ms": quantile(0.5), "p99_ms": quantile(0.99), "exact_microseconds": exact,
    });
    println!("{figures}");
}

/// The cosine of the 20th nearest of all names, or of the last.
fn kth_cosine(kb: &KnowledgeBase, query: &str) -> f32 {
    let n_rows = kb.n_forms() as u32;
    let of_piece = |piece: u32| {
        let rows: Vec<u32> = (piece * PIECE..((piece + 1) * PIECE).min(n_rows)).collect();
        let mut cosines = kb.grams().cosines(query, &rows, &mut GramScratch::default());
        cosines.sort_unstable_by(|a, b| b.total_cmp(a));
        cosines.truncate(K);
        cosines
    };
    let mut nearest: Vec<f32> = (0..n_rows.div_ceil(PIECE)).into_par_iter().flat_map_iter(of_piece).collect();
    nearest.sort_unstable_by(|a, b| b.total_cmp(a));
    nearest.get(K - 1).or(nearest.last()).copied().unwrap_or_default()
}
