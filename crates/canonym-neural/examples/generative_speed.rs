//! Times the generative linker on random mentions; `benches/peers/generative_speed.py` runs it in turns with PyTorch.
//!
//!     generative_speed FOLDER THREADS SECONDS CASES.json [bf16]
//!
//! FOLDER is a BART checkpoint; CASES has `names` (token lists with their end), and `cases` with `source` and `prompt`. Prints one JSON line
//! with the milliseconds of each repetition over all cases, and the names that were found.

use std::time::Instant;

use canonym_neural::checkpoint::read_bart;
use canonym_neural::models::bert::Sequences;
use canonym_neural::models::generative::beam::{BeamConfig, Task, search};
use canonym_neural::models::generative::decoder::EncoderDecoder;
use canonym_neural::models::generative::trie::{TokenLists, Trie};
use canonym_neural::tensor::matrix::Compute;
use canonym_neural::tensor::parameters::Parameters;
use serde::Deserialize;

/// Mentions that are decoded together.
const BATCH: usize = 32;

#[derive(Deserialize)]
struct Cases {
    names: Vec<Vec<u32>>,
    cases: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    source: Vec<u32>,
    prompt: Vec<u32>,
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let [folder, threads, seconds, cases, precision @ ..] = arguments.as_slice() else {
        eprintln!("usage: generative_speed FOLDER THREADS SECONDS CASES.json [bf16]");
        std::process::exit(2);
    };
    let threads = threads.parse().expect("a number of threads");
    rayon::ThreadPoolBuilder::new().num_threads(threads).build_global().expect("threads are made once");
    let seconds: f64 = seconds.parse().expect("a number of seconds");
    let text = std::fs::read_to_string(cases).expect("a file of cases");
    let Cases { names, cases } = serde_json::from_str(&text).expect("cases as JSON");
    let mut parameters = Parameters::default();
    let (mut config, _) = read_bart(folder.as_ref(), &mut parameters).expect("a BART checkpoint");
    if precision == ["bf16"] {
        config.encoder.compute = Compute::Bf16;
    }
    let model = EncoderDecoder::new(&config, &parameters).expect("weights that were checked");
    let trie = Trie::new(&names.into_iter().collect::<TokenLists>());
    let beams = BeamConfig::default();
    let mut order: Vec<&Case> = cases.iter().collect();
    order.sort_by_key(|case| (case.prompt.len(), case.source.len()));
    let once = || {
        let started = Instant::now();
        let mut n_found = 0;
        for cases in order.chunks(BATCH) {
            let sources = Sequences::pack(cases.iter().map(|case| case.source.as_slice()));
            let tasks: Vec<Task<'_>> = cases.iter().map(|case| Task { prompt: &case.prompt, trie: &trie }).collect();
            let mut decoding = model.begin(&sources).expect("sources that are short enough");
            let found = search(&mut decoding, &tasks, &beams).expect("names that are short enough");
            n_found += found.iter().map(Vec::len).sum::<usize>();
        }
        (started.elapsed().as_secs_f64() * 1e3, n_found)
    };
    let (_, n_found) = once();
    let started = Instant::now();
    let mut milliseconds = Vec::new();
    while milliseconds.len() < 2 || started.elapsed().as_secs_f64() < seconds {
        milliseconds.push(once().0);
    }
    let n_bytes = trie.n_bytes();
    println!("{}", serde_json::json!({ "milliseconds": milliseconds, "n_found": n_found, "trie_bytes": n_bytes }));
}
