//! Times ResCNN on the names of a terminology; `benches/peers/rescnn_speed.py` runs it in turns with PyTorch.
//!
//!     rescnn_speed BUNDLE KB THREADS pieces N     the wordpieces of each form, and the vectors of N of them, as JSON
//!     rescnn_speed BUNDLE KB THREADS encode       the seconds that encoding the wordpieces of all forms takes
//!     rescnn_speed BUNDLE KB THREADS map FILE     the milliseconds of linking each line, one by one
//!
//! Prints one JSON line.

use std::sync::Arc;
use std::time::Instant;

use canonym_core::kb::KnowledgeBase;
use canonym_core::link::lexical::LinkConfig;
use canonym_core::text::normalise::fold;
use canonym_neural::bundle::NameEncoderBundle;
use canonym_neural::index::FlatIndex;
use canonym_neural::index::forms::FormVectors;
use canonym_neural::system::hybrid::HybridLinker;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let [bundle, kb, threads, task @ ..] = arguments.as_slice() else { usage() };
    let threads = threads.parse().expect("a number of threads");
    rayon::ThreadPoolBuilder::new().num_threads(threads).build_global().expect("threads are made once");
    let bundle = NameEncoderBundle::open(bundle.as_ref()).expect("a model");
    let kb = Arc::new(KnowledgeBase::open(kb).expect("a knowledge base"));
    let said = match task {
        ["pieces", n] => pieces(&bundle, &kb, n.parse().expect("a number of names")),
        ["encode"] => encode(&bundle, &kb),
        ["map", file] => map(&bundle, kb, &std::fs::read_to_string(file).expect("a file of names")),
        _ => usage(),
    };
    println!("{said}");
}

fn usage() -> ! {
    eprintln!("usage: rescnn_speed BUNDLE KB THREADS pieces N | encode | map FILE");
    std::process::exit(2);
}

fn rows(bundle: &NameEncoderBundle, kb: &KnowledgeBase) -> Vec<Vec<u32>> {
    (0..kb.n_forms()).map(|form| bundle.tokenizer.input_ids(&kb.forms().get(form))).collect()
}

/// The vectors are those of forms that lie equally far apart.
fn pieces(bundle: &NameEncoderBundle, kb: &KnowledgeBase, n: usize) -> serde_json::Value {
    let rows = rows(bundle, kb);
    let step = (rows.len() / n.max(1)).max(1);
    let chosen: Vec<usize> = (0..rows.len()).step_by(step).collect();
    let names: Vec<&[u32]> = chosen.iter().map(|form| rows[*form].as_slice()).collect();
    let vectors = bundle.name_encoder().expect("weights that were checked").encoder.encode(&names);
    serde_json::json!({
        "config": bundle.manifest.rescnn, "unknown": bundle.tokenizer.unknown,
        "pieces": rows, "chosen": chosen, "vectors": vectors.values,
    })
}

fn encode(bundle: &NameEncoderBundle, kb: &KnowledgeBase) -> serde_json::Value {
    let rows = rows(bundle, kb);
    let names = bundle.name_encoder().expect("weights that were checked");
    names.encoder.encode(&rows[..rows.len().min(1000)]);
    let started = Instant::now();
    names.encoder.encode(&rows);
    serde_json::json!({ "seconds": started.elapsed().as_secs_f64() })
}

fn map(bundle: &NameEncoderBundle, kb: Arc<KnowledgeBase>, lines: &str) -> serde_json::Value {
    let encoder = Arc::new(bundle.name_encoder().expect("weights that were checked"));
    let vectors = Arc::new(FormVectors::Indexed(FlatIndex::new(encoder.encode_forms(&kb))));
    let lexical = bundle.lexical().expect("weights that were checked");
    let linker =
        HybridLinker::new(kb.clone(), encoder, vectors, lexical, bundle.manifest.fusion, LinkConfig::default());
    let lines: Vec<&str> = lines.lines().collect();
    let link = |name: &&str| {
        let started = Instant::now();
        linker.link_names(&[*name]);
        started.elapsed().as_secs_f64() * 1e3
    };
    lines.iter().for_each(|name| {
        link(name);
    });
    let milliseconds: Vec<f64> = lines.iter().map(link).collect();
    // A form of the terminology is its own nearest; no vector is made of it.
    let known: Vec<bool> = lines.iter().map(|name| kb.find_form(&fold(name)).is_some()).collect();
    serde_json::json!({ "milliseconds": milliseconds, "known": known })
}
