//! Vectors of names by a BERT, and an index of them; `benches/scale/dense.py --bert` compares indexes on such vectors.
//!
//!     bert_index encode BERT NAMES VECTORS
//!     bert_index build f16|int8 NAMES VECTORS FILE.index
//!
//! BERT is the folder of a checkpoint, NAMES a file with a name per line. VECTORS holds the mean-pooled and L2-normalised vector of each
//! name in single precision. An interrupted `encode` goes on where it stopped.

use std::io::Write;
use std::path::Path;

use canonym_core::Result;
use canonym_neural::checkpoint::read_bert;
use canonym_neural::index::build::write_vectors;
use canonym_neural::index::stored::IndexMeta;
use canonym_neural::index::vectors::Precision;
use canonym_neural::models::bert::Sequences;
use canonym_neural::models::bert::infer::{BertEncoder, Pooling};
use canonym_neural::tensor::matrix::Matrix;
use canonym_neural::tensor::parameters::Parameters;

/// Names that are encoded at a time.
const CHUNK: usize = 1 << 12;

/// Longest name in wordpieces; the rest is cut off.
const LONGEST: usize = 64;

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments.as_slice() {
        ["encode", bert, names, vectors] => encode(bert.as_ref(), &read(names), vectors),
        ["build", "f16", names, vectors, out] => build(Precision::F16, &read(names), vectors, out),
        ["build", "int8", names, vectors, out] => build(Precision::Int8, &read(names), vectors, out),
        _ => {
            eprintln!("usage: bert_index encode BERT NAMES VECTORS | build f16|int8 NAMES VECTORS FILE.index");
            std::process::exit(2);
        }
    }
}

fn read(names: &str) -> String {
    std::fs::read_to_string(names).expect("a file of names")
}

fn encode(bert: &Path, names: &str, vectors: &str) -> Result<()> {
    let mut parameters = Parameters::default();
    let (config, tokenizer) = read_bert(bert, "", &mut parameters)?;
    let encoder = BertEncoder::new(&config, &parameters, "")?;
    let (first, behind) = tokenizer.ends()?;
    let names: Vec<&str> = names.lines().collect();
    let file = std::fs::File::options().create(true).append(true).open(vectors);
    let mut file = file.expect("a file that can be written");
    let width = 4 * encoder.dim() as u64;
    let mut n_done = file.metadata().expect("an open file").len() / width;
    file.set_len(n_done * width).expect("a file that can be written");
    for chunk in names[n_done as usize..].chunks(CHUNK) {
        let input_ids = |name: &&str| {
            let inside = tokenizer.input_ids(name);
            let inside = &inside[..inside.len().min(LONGEST - 2)];
            [&[first], inside, &[behind]].concat()
        };
        let mut sequences: Vec<(usize, Vec<u32>)> = chunk.iter().map(input_ids).enumerate().collect();
        // Sequences of similar length fill tiles evenly.
        sequences.sort_by_key(|(_, input_ids)| input_ids.len());
        let packed = Sequences::pack(sequences.iter().map(|(_, input_ids)| input_ids.as_slice()));
        let mut pooled = encoder.encode_pooled(&packed, Pooling::Mean)?;
        pooled.normalise_rows();
        let mut ordered = Matrix::zeros(chunk.len(), encoder.dim());
        for (from, (to, _)) in sequences.iter().enumerate() {
            ordered.row_mut(*to).copy_from_slice(pooled.row(from));
        }
        let bytes: Vec<u8> = ordered.values.iter().flat_map(|value| value.to_le_bytes()).collect();
        file.write_all(&bytes).expect("a file that can be written");
        n_done += chunk.len() as u64;
        eprintln!("{n_done} of {} names", names.len());
    }
    Ok(())
}

fn build(precision: Precision, names: &str, vectors: &str, out: &str) -> Result<()> {
    let names: Vec<&str> = names.lines().collect();
    let bytes = std::fs::read(vectors).expect("a file of vectors");
    let values: Vec<f32> = bytes.as_chunks::<4>().0.iter().map(|value| f32::from_le_bytes(*value)).collect();
    let vectors = Matrix::new(names.len(), values.len() / names.len().max(1), values);
    let none = || "0".repeat(32);
    let meta = IndexMeta { precision, n_rows: 0, n_cols: 0, kb_name: "names".to_owned(), kb: none(), model: none() };
    write_vectors(out.as_ref(), &meta, &names, vectors)
}
