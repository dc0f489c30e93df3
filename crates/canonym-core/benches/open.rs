//! How long a compiled knowledge base takes to open: `cargo bench -p canonym --bench open -- FILE.kb`.
//!
//! The file was read before, so the page cache is warm; checksums are verified as on every open. Prints one JSON
//! line a file with microseconds. Without a file there is nothing to measure, and it says so.

use std::error::Error;
use std::path::Path;
use std::time::Instant;

use canonym_core::kb::KnowledgeBase;

/// How often each file is opened; odd, so that the median is one of the times.
const N_RUNS: usize = 51;

fn main() -> Result<(), Box<dyn Error>> {
    // Cargo adds options such as `--bench`.
    let paths: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    if paths.is_empty() {
        eprintln!("no knowledge base was named; build one with `canonym kb build` and give its path");
    }
    for path in &paths {
        let mut micros = Vec::with_capacity(N_RUNS);
        for _ in 0..N_RUNS {
            let started = Instant::now();
            let kb = KnowledgeBase::open(Path::new(path))?;
            micros.push(started.elapsed().as_micros());
            drop(kb);
        }
        micros.sort_unstable();
        let line = serde_json::json!({
            "median": micros[N_RUNS / 2], "min": micros[0], "max": micros[N_RUNS - 1], "n": N_RUNS,
        });
        println!("{line}");
    }
    Ok(())
}
