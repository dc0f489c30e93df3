//! Times searches in an index of names; `benches/scale/dense.py` runs it before other indexes on the same vectors.
//!
//!     index_speed FILE.index NAMES FOLDER
//!
//! Encodes the lines of NAMES with the default model and writes the vectors to `FOLDER/queries.f32`, with the time of every search and what it
//! found to `FOLDER/ours.json`. Searches run on one thread, one name at a time and in batches.

use std::path::Path;
use std::time::Instant;

use canonym_neural::index::stored::{Compared, NameIndex, n_compared};
use canonym_neural::index::{Hit, Index, RowFilter};
use canonym_neural::system::names::PipelineModel;
use canonym_neural::tensor::matrix::Matrix;

/// Hits of each search.
const K: usize = 20;

/// Queries of an exact search one by one, which takes long.
const FEW: usize = 100;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [index, names, folder] = arguments.as_slice() else {
        eprintln!("usage: index_speed FILE.index NAMES FOLDER");
        std::process::exit(2);
    };
    rayon::ThreadPoolBuilder::new().num_threads(1).build_global().expect("threads are made once");
    let text = std::fs::read_to_string(names).expect("a file of names");
    let names: Vec<&str> = text.lines().collect();
    let encoder = PipelineModel::embedded().and_then(|model| model.bundle.name_encoder()).expect("the default model");
    let mut queries = encoder.encode(&names);
    queries.normalise_rows();
    let folder = Path::new(folder);
    let bytes: Vec<u8> = queries.values.iter().flat_map(|value| value.to_le_bytes()).collect();
    std::fs::write(folder.join("queries.f32"), bytes).expect("a folder that can be written");
    let open = || NameIndex::open(index.as_ref(), None).expect("an index");
    let n_rows = open().meta().n_rows;
    let tenth = RowFilter::new(n_rows, |row| row.wrapping_mul(0x9e37_79b9) % 10 == 0);
    let half = RowFilter::new(n_rows, |row| row.wrapping_mul(0x9e37_79b9) % 2 == 0);
    let mut results = Vec::new();
    let usual = n_compared(n_rows);
    for n in [usual / 16, usual / 4, usual, usual * 4] {
        results.push(measured(&open().comparing(Compared::Nearest(n)), &format!("{n} rows compared"), &queries, None));
    }
    let usual = open();
    results.push(measured(&usual, "a tenth of the names", &queries, Some(&tenth)));
    results.push(measured(&usual, "half of the names", &queries, Some(&half)));
    let exact = open().comparing(Compared::All);
    let few = Matrix::new(
        FEW.min(queries.n_rows),
        queries.n_cols,
        queries.values[..FEW.min(queries.n_rows) * queries.n_cols].to_vec(),
    );
    results.push(measured(&exact, "exact, a tenth of the names", &few, Some(&tenth)));
    results.push(measured(&exact, "exact, half of the names", &few, Some(&half)));
    results.push(measured(&exact, "exact", &few, None));
    let all = exact.search(&queries, K, None);
    let filtered = [&tenth, &half].map(|filter| rows_of(&exact.search(&queries, K, Some(filter))));
    let said = serde_json::json!({
        "n_rows": n_rows, "n_cols": queries.n_cols, "n_queries": queries.n_rows,
        "results": results, "exact": rows_of(&all), "exact_tenth": filtered[0], "exact_half": filtered[1],
    });
    std::fs::write(folder.join("ours.json"), said.to_string()).expect("a folder that can be written");
}

fn rows_of(hits: &[Vec<Hit>]) -> Vec<Vec<u32>> {
    hits.iter().map(|hits| hits.iter().map(|hit| hit.row).collect()).collect()
}

/// Milliseconds of each search alone, and of a name in a batch.
fn measured(index: &NameIndex, title: &str, queries: &Matrix, filter: Option<&RowFilter>) -> serde_json::Value {
    let one = |row: usize| Matrix::new(1, queries.n_cols, queries.row(row).to_vec());
    // The first searches read the file.
    index.search(&one(0), K, filter);
    let time = |row: usize| {
        let query = one(row);
        let started = Instant::now();
        index.search(&query, K, filter);
        started.elapsed().as_secs_f64() * 1e3
    };
    let alone: Vec<f64> = (0..queries.n_rows).map(time).collect();
    let started = Instant::now();
    let hits = index.search(queries, K, filter);
    let batch = started.elapsed().as_secs_f64() * 1e3 / queries.n_rows as f64;
    serde_json::json!({ "title": title, "alone_ms": alone, "batch_ms": batch, "hits": rows_of(&hits) })
}
