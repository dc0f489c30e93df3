//! Times two-layer bidirectional LSTMs; `benches/peers/lstm_speed.py` runs it in turns with PyTorch.
//!
//!     lstm_speed THREADS SECONDS [train-]SEQUENCESxLENGTHxINPUTS[xbf16]
//!
//! Prints one JSON line with the milliseconds of each repetition. Hidden units are 256 in each direction, without dropout.

use std::sync::Arc;
use std::time::Instant;

use canonym_neural::autograd::Tape;
use canonym_neural::layers::lstm::BiLstmConfig;
use canonym_neural::tensor::matrix::{Compute, Matrix};
use canonym_neural::tensor::parameters::Parameters;
use canonym_neural::tensor::random::{self, SplitMix64};
use canonym_neural::tensor::segments::Segments;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [threads, seconds, case] = arguments.as_slice() else {
        eprintln!("usage: lstm_speed THREADS SECONDS [train-]SEQUENCESxLENGTHxINPUTS[xbf16]");
        std::process::exit(2);
    };
    let threads = threads.parse().expect("a number of threads");
    rayon::ThreadPoolBuilder::new().num_threads(threads).build_global().expect("threads are made once");
    let seconds: f64 = seconds.parse().expect("a number of seconds");
    let trains = case.starts_with("train-");
    let sizes: Vec<&str> = case.trim_start_matches("train-").split('x').collect();
    let [n, length, n_inputs] = [0, 1, 2].map(|at| sizes[at].parse::<usize>().expect("a size"));
    let compute = if sizes.get(3) == Some(&"bf16") { Compute::Bf16 } else { Compute::F32 };

    let mut rng = SplitMix64::new(1);
    let mut parameters = Parameters::default();
    let config = BiLstmConfig { n_layers: 2, hidden: 256, dropout: 0.0 };
    config.init(&mut parameters, "", n_inputs, &mut rng);
    let input: Vec<f32> = (0..n * length * n_inputs).map(|_| random::normal(&mut rng)).collect();
    let input = Matrix::new(n * length, n_inputs, input);
    let segments = Arc::new(Segments::of_lengths(vec![length; n]));
    let once = || {
        let started = Instant::now();
        let tape = Tape::new(&parameters);
        let mut tape = if trains { tape } else { tape.without_gradients() };
        tape.compute_in(compute);
        let rows = tape.input(input.clone());
        let output = config.forward(&mut tape, "", rows, &segments, None).expect("weights that were made");
        if trains {
            let gradient = tape.value(output).clone();
            tape.backward([(output, gradient)]);
        }
        started.elapsed().as_secs_f64() * 1e3
    };
    once();
    let started = Instant::now();
    let mut milliseconds = Vec::new();
    while milliseconds.len() < 3 || started.elapsed().as_secs_f64() < seconds {
        milliseconds.push(once());
    }
    println!("{}", serde_json::json!({ "milliseconds": milliseconds }));
}
