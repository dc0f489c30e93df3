//! Times searches in an index of names; `benches/scale/dense.py` runs it before other indexes on the same vectors.
//!
//!     index_speed [--usual] FILE.index QUERIES FOLDER [FILE.kb]
//!
//! QUERIES is a file with a name per line, which the default model encodes, or a file `.f32` with the vectors of another encoder. Writes
//! the vectors of the queries to `FOLDER/queries.f32`, and the time of every search and its hits to `FOLDER/ours.json`. Searches run on one
//! thread, one query at a time and in batches; with `--usual`, only the search with default settings and the exact one. With FILE.kb, the
//! knowledge base of the index, the ids of the concepts of each row are written to `FOLDER/concepts.txt`, alternative ids included.

use std::fmt::Write;
use std::path::Path;
use std::time::Instant;

use canonym_core::kb::{FormId, KnowledgeBase};
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
    let (only_usual, rest) = match arguments.split_first() {
        Some((first, rest)) if first == "--usual" => (true, rest),
        _ => (false, arguments.as_slice()),
    };
    let ([index, queries, folder], kb) = match rest {
        [index, queries, folder] => ([index, queries, folder], None),
        [index, queries, folder, kb] => ([index, queries, folder], Some(kb)),
        _ => {
            eprintln!("usage: index_speed [--usual] FILE.index QUERIES FOLDER [FILE.kb]");
            std::process::exit(2);
        }
    };
    rayon::ThreadPoolBuilder::new().num_threads(1).build_global().expect("threads are made once");
    let open = || NameIndex::open(index.as_ref(), None).expect("an index");
    let (n_rows, n_cols) = (open().meta().n_rows, open().meta().n_cols);
    let mut queries = read(queries.as_ref(), n_cols);
    queries.normalise_rows();
    let folder = Path::new(folder);
    let bytes: Vec<u8> = queries.values.iter().flat_map(|value| value.to_le_bytes()).collect();
    std::fs::write(folder.join("queries.f32"), bytes).expect("a folder that can be written");
    if let Some(kb) = kb {
        let kb = KnowledgeBase::open(kb).expect("a knowledge base");
        assert_eq!(kb.n_forms(), n_rows, "the index is of another knowledge base");
        std::fs::write(folder.join("concepts.txt"), concepts(&kb)).expect("a folder that can be written");
    }
    let tenth = RowFilter::new(n_rows, |row| row.wrapping_mul(0x9e37_79b9) % 10 == 0);
    let half = RowFilter::new(n_rows, |row| row.wrapping_mul(0x9e37_79b9) % 2 == 0);
    let mut results = Vec::new();
    let usual = n_compared(n_rows);
    let compared = if only_usual { vec![usual] } else { vec![usual / 16, usual / 4, usual, usual * 4] };
    for n in compared {
        results.push(measured(&open().comparing(Compared::Nearest(n)), &format!("{n} rows compared"), &queries, None));
    }
    let exact = open().comparing(Compared::All);
    let n_few = FEW.min(queries.n_rows);
    let few = Matrix::new(n_few, n_cols, queries.values[..n_few * n_cols].to_vec());
    results.push(measured(&exact, "exact", &few, None));
    let all = exact.search(&queries, K, None);
    let mut said = serde_json::json!({
        "n_rows": n_rows, "n_cols": n_cols, "n_queries": queries.n_rows, "usual": usual,
        "exact": rows_of(&all), "exact_scores": scores_of(&all),
    });
    if !only_usual {
        for (share, key, filter) in [("a tenth", "exact_tenth", &tenth), ("half", "exact_half", &half)] {
            results.push(measured(&open(), &format!("{share} of the names"), &queries, Some(filter)));
            results.push(measured(&exact, &format!("exact, {share} of the names"), &few, Some(filter)));
            said[key] = rows_of(&exact.search(&queries, K, Some(filter))).into();
        }
    }
    said["results"] = results.into();
    std::fs::write(folder.join("ours.json"), said.to_string()).expect("a folder that can be written");
}

/// Vectors in a file, or of the names in it.
fn read(path: &Path, n_cols: usize) -> Matrix {
    let bytes = std::fs::read(path).expect("a file of queries");
    if path.extension().is_some_and(|extension| extension == "f32") {
        let values: Vec<f32> = bytes.as_chunks::<4>().0.iter().map(|value| f32::from_le_bytes(*value)).collect();
        return Matrix::new(values.len() / n_cols, n_cols, values);
    }
    let text = String::from_utf8(bytes).expect("names in UTF-8");
    let names: Vec<&str> = text.lines().collect();
    let encoder = PipelineModel::embedded().and_then(|model| model.bundle.name_encoder()).expect("the default model");
    encoder.encode(&names)
}

/// A line for each form: the ids of its concepts.
fn concepts(kb: &KnowledgeBase) -> String {
    let mut lines = String::new();
    for form in 0..kb.n_forms() {
        for name in kb.names_of_form(FormId(form as u32)) {
            let concept = kb.concept_of(name);
            write!(lines, "{}\t", kb.id(concept)).expect("a string grows");
            kb.alternative_ids(concept).for_each(|id| write!(lines, "{id}\t").expect("a string grows"));
        }
        lines.push('\n');
    }
    lines
}

fn rows_of(hits: &[Vec<Hit>]) -> Vec<Vec<u32>> {
    hits.iter().map(|hits| hits.iter().map(|hit| hit.row).collect()).collect()
}

fn scores_of(hits: &[Vec<Hit>]) -> Vec<Vec<f32>> {
    hits.iter().map(|hits| hits.iter().map(|hit| hit.score).collect()).collect()
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
    let (rows, scores) = (rows_of(&hits), scores_of(&hits));
    serde_json::json!({ "title": title, "alone_ms": alone, "batch_ms": batch, "hits": rows, "scores": scores })
}
