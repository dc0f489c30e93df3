//! Times a BERT on texts of random wordpieces; `benches/peers/bert_speed.py` runs it in turns with PyTorch.
//!
//!     bert_speed FOLDER THREADS SECONDS CASE…
//!
//! A case is `BATCHxLENGTH`, or `train-BATCHxLENGTH` for a forward and a backward pass; with `bf16-` before it, products are of 16 bits. Prints
//! a JSON line for each: the milliseconds of every repetition within SECONDS, at least three, and the start of the mean of the first text.

use std::sync::Arc;
use std::time::Instant;

use canonym_neural::autograd::{Gradients, Packs, Tape};
use canonym_neural::checkpoint::read_bert;
use canonym_neural::models::bert::infer::{BertEncoder, Pooling};
use canonym_neural::models::bert::{BertConfig, Sequences};
use canonym_neural::tensor::matrix::Compute;
use canonym_neural::tensor::parameters::Parameters;
use canonym_neural::tensor::random::SplitMix64;
use rayon::prelude::*;

/// Sequences of one part of a training batch, as the loop of training computes them.
const PART: usize = 4;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [folder, threads, seconds, cases @ ..] = arguments.as_slice() else {
        eprintln!("usage: bert_speed FOLDER THREADS SECONDS CASE…");
        std::process::exit(2);
    };
    let threads = threads.parse().expect("a number of threads");
    let seconds: f64 = seconds.parse().expect("a number of seconds");
    rayon::ThreadPoolBuilder::new().num_threads(threads).build_global().expect("threads are made once");
    let mut parameters = Parameters::default();
    let (config, _) = read_bert(folder.as_ref(), "", &mut parameters).expect("the folder of a BERT");
    for case in cases {
        let (compute, what) = match case.strip_prefix("bf16-") {
            Some(what) => (Compute::Bf16, what),
            None => (Compute::F32, case.as_str()),
        };
        let config = BertConfig { compute, ..config.clone() };
        let encoder = BertEncoder::new(&config, &parameters, "").expect("weights that were checked");
        let (trains, size) = match what.strip_prefix("train-") {
            Some(size) => (true, size),
            None => (false, what),
        };
        let (n, length) = size.split_once('x').expect("a case of the form BATCHxLENGTH");
        let sequences = drawn(&config, n.parse().expect("a batch"), length.parse().expect("a length"));
        let once = || {
            if trains {
                train(&config, &parameters, &sequences);
            } else {
                encoder.encode_pooled(&sequences, Pooling::Mean).expect("sequences that fit");
            }
        };
        once();
        let started = Instant::now();
        let mut times = Vec::new();
        while times.len() < 3 || started.elapsed().as_secs_f64() < seconds {
            let before = Instant::now();
            once();
            times.push(before.elapsed().as_secs_f64() * 1e3);
        }
        let mut result = serde_json::json!({ "case": case, "milliseconds": times });
        if !trains {
            let pooled = encoder.encode_pooled(&sequences, Pooling::Mean).expect("sequences that fit");
            result["pooled"] = pooled.row(0).iter().copied().take(8).collect();
        }
        println!("{result}");
    }
}

fn drawn(config: &BertConfig, n: usize, length: usize) -> Sequences {
    let mut rng = SplitMix64::new(1);
    let rows: Vec<Vec<u32>> =
        (0..n).map(|_| (0..length).map(|_| rng.below(config.vocab_size) as u32).collect()).collect();
    Sequences::pack(rows.iter().map(Vec::as_slice))
}

/// One forward and one backward pass with dropout, part by part on all threads.
fn train(config: &BertConfig, parameters: &Parameters, sequences: &Sequences) -> Gradients {
    let parts: Vec<std::ops::Range<usize>> =
        (0..sequences.len()).step_by(PART).map(|first| first..sequences.len().min(first + PART)).collect();
    let packs = Arc::new(Packs::new(parameters.len()));
    let part = |range: std::ops::Range<usize>| {
        let mut tape = Tape::of_one_thread(parameters, &packs);
        let mut rng = SplitMix64::new(range.start as u64);
        let output =
            config.forward(&mut tape, "", &sequences.slice(range), Some(&mut rng)).expect("weights that were checked");
        let gradient = tape.value(output).clone();
        tape.backward([(output, gradient)])
    };
    let each: Vec<Gradients> = parts.into_par_iter().map(part).collect();
    let mut sum = Gradients::default();
    each.into_iter().for_each(|gradients| sum.add(gradients));
    sum
}
