//! Times three ways of linking given mentions, one window at a time: collective, one mention at a time, and one mention at a time with its
//! nearest names ordered by a cross-encoder (BLINK). Weights are those of a checkpoint and random heads: they decide no time.
//!
//!     dual_speed FOLDER THREADS CORPUS TERMINOLOGY N_DOCUMENTS [bf16]
//!
//! CORPUS is a corpus with mentions, TERMINOLOGY a table of ids and names; with `bf16` products are of 16 bits. Prints the mentions a second of each way, medians of three turns.

use std::path::Path;
use std::time::Instant;

use canonym_core::corpus::Reader;
use canonym_core::text::Span;
use canonym_core::text::analysis::Analysis;
use canonym_neural::checkpoint::read_bert;
use canonym_neural::index::FlatIndex;
use canonym_neural::models::bert::{BertConfig, Sequences};
use canonym_neural::models::cross_encoder::context::{add_marks, marked_window};
use canonym_neural::models::cross_encoder::infer::PairScorer;
use canonym_neural::models::cross_encoder::{CrossEncoderConfig, SCOPE};
use canonym_neural::models::dual_encoder::infer::DualEncoder;
use canonym_neural::models::dual_encoder::windows::{WindowConfig, Windower};
use canonym_neural::models::dual_encoder::{DualEncoderConfig, MentionVector, NAME, NameVector, TEXT};
use canonym_neural::tensor::matrix::Compute;
use canonym_neural::tensor::parameters::Parameters;
use canonym_neural::tensor::random::SplitMix64;

/// Mentions of a window, as in the paper.
const N_MENTIONS: usize = 8;

/// Names that the cross-encoder orders, as BLINK does.
const N_ORDERED: usize = 64;

/// Documents that the cross-encoder reads: it is slow.
const N_READ: usize = 3;

/// A text and its mentions.
type Read = (String, Vec<Span>);

/// A way of linking: its name, who reads, how texts are divided, which of them are read, and whether a cross-encoder orders.
type Way<'a> = (&'static str, &'a DualEncoder, &'a Windower, &'a [Read], bool);

fn main() -> canonym_core::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [folder, threads, corpus, terminology, n_documents, more @ ..] = arguments.as_slice() else {
        eprintln!("usage: dual_speed FOLDER THREADS CORPUS TERMINOLOGY N_DOCUMENTS [bf16]");
        std::process::exit(2);
    };
    let threads = threads.parse().expect("a number of threads");
    rayon::ThreadPoolBuilder::new().num_threads(threads).build_global().expect("threads are made once");
    let mut rng = SplitMix64::new(1);
    let mut parameters = Parameters::default();
    for scope in [TEXT, NAME, SCOPE] {
        read_bert(folder.as_ref(), scope, &mut parameters)?;
    }
    let (bert, mut tokenizer) = read_bert(folder.as_ref(), "unused.", &mut Parameters::default())?;
    let compute = if more == ["bf16"] { Compute::Bf16 } else { Compute::F32 };
    let mut marked_bert = BertConfig { compute, ..bert.clone() };
    for scope in [TEXT, NAME, SCOPE] {
        add_marks(&mut marked_bert, &mut tokenizer, scope, &mut parameters, &mut rng)?;
    }
    let config =
        |mention| DualEncoderConfig { bert: marked_bert.clone(), mention, name: NameVector::Mean, search: None };
    let cross = CrossEncoderConfig { bert: marked_bert.clone(), n_wordpieces: 128 };
    config(MentionVector::BoundaryTokens).init(&mut parameters, &mut rng);
    cross.init(&mut parameters, &mut rng);
    let collective = DualEncoder::new(&config(MentionVector::BoundaryTokens), &parameters)?;
    let single = DualEncoder::new(&config(MentionVector::First), &parameters)?;
    let scorer = PairScorer::new(&cross, &parameters, &tokenizer)?;
    let windows = |mentions, marked| WindowConfig {
        wordpieces: if marked { 128 } else { 512 },
        overlap: 0,
        mentions,
        marked,
        ..WindowConfig::default()
    };
    let together = Windower::new(tokenizer.clone(), windows(Some(N_MENTIONS), false))?;
    let alone = Windower::new(tokenizer.clone(), windows(None, true))?;

    let text = std::fs::read_to_string(terminology).expect("a terminology");
    let names: Vec<&str> = text.lines().filter_map(|line| line.split('\t').nth(1)).collect();
    let rows: Vec<Vec<u32>> = names.iter().map(|name| together.name(name, 128)).collect();
    let started = Instant::now();
    let index = FlatIndex::by_inner_product(collective.encode_names(&rows)?);
    println!("{} names encoded in {:.1} s", names.len(), started.elapsed().as_secs_f64());

    let mut documents: Vec<Read> = Vec::new();
    for document in Reader::open(Path::new(corpus), None)?.take(n_documents.parse().expect("a number of documents")) {
        let document = document?;
        let mut spans: Vec<Span> = document.annotations.iter().map(|annotation| annotation.spans[0]).collect();
        spans.sort_by_key(|span| span.start);
        documents.push((document.document.text, spans));
    }
    let find = |encoder: &DualEncoder, windower: &Windower, documents: &[Read], ordered: bool| {
        let mut n = 0;
        for (text, spans) in documents {
            let windows = windower.with_mentions(&Analysis::of_text(text), spans).expect("wordpieces are there");
            for (at, rows) in windows.rows.iter().enumerate() {
                let inside = windows.places.iter().flatten().filter(|place| place.window == at);
                let mentions: Vec<(usize, usize, usize)> = inside.map(|place| (0, place.first, place.last)).collect();
                let vectors = encoder.encode_mentions(std::slice::from_ref(rows), &mentions).expect("rows that fit");
                let hits = index.search(&vectors, if ordered { N_ORDERED } else { 10 });
                n += mentions.len();
                if !ordered {
                    continue;
                }
                let span = spans[at];
                let window =
                    marked_window(&tokenizer, text, span.start as usize..span.end as usize, 128).expect("marks");
                let mut pairs = Sequences::default();
                for hit in &hits[0] {
                    let name = cross.name_rows(&tokenizer, names[hit.row as usize]).expect("a piece behind");
                    pairs.push(&[&window.rows, &name]);
                }
                scorer.scores(&pairs).expect("pairs that fit");
            }
        }
        n
    };
    let few = &documents[..documents.len().min(N_READ)];
    let ways: [Way<'_>; 3] = [
        ("collective", &collective, &together, &documents, false),
        ("one mention", &single, &alone, &documents, false),
        ("one mention and a cross-encoder", &single, &alone, few, true),
    ];
    let mut rates = vec![Vec::new(); ways.len()];
    for _ in 0..3 {
        for ((_, encoder, windower, documents, ordered), rates) in ways.iter().zip(&mut rates) {
            let started = Instant::now();
            let n = find(encoder, windower, documents, *ordered);
            rates.push(n as f64 / started.elapsed().as_secs_f64());
        }
    }
    for ((name, ..), rates) in ways.iter().zip(&mut rates) {
        rates.sort_by(f64::total_cmp);
        println!("{name}: {:.1} mentions a second", rates[1]);
    }
    Ok(())
}
