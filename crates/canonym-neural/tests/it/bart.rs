//! Agreement of the encoder-decoder with PyTorch and transformers on a tiny random checkpoint, which `benches/peers/bart_reference.py` made.

use std::path::Path;

use canonym_neural::checkpoint::read_bart;
use canonym_neural::models::bert::Sequences;
use canonym_neural::models::generative::beam::{BeamConfig, NextToken, Step, Task, search};
use canonym_neural::models::generative::decoder::EncoderDecoder;
use canonym_neural::models::generative::text::{Coder, TextConfig};
use canonym_neural::models::generative::trie::{TokenLists, Trie};
use canonym_neural::tensor::parameters::Parameters;
use serde::Deserialize;

#[derive(Deserialize)]
struct Expected {
    names: Vec<String>,
    cases: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    source: Vec<u32>,
    prompt: Vec<u32>,
    target: Vec<u32>,
    last_log_probabilities: Vec<f32>,
    found: Vec<(String, f32)>,
}

#[test]
fn logits_and_beams_are_those_of_pytorch() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/bart");
    let expected: Expected = serde_json::from_slice(&std::fs::read(folder.join("expected.json")).unwrap()).unwrap();
    let mut parameters = Parameters::default();
    let (config, tokenizer) = read_bart(&folder, &mut parameters).unwrap();
    let model = EncoderDecoder::new(&config, &parameters).unwrap();
    let lengths = (config.encoder.max_position_embeddings, config.decoder_positions);
    let coder = Coder::new(tokenizer, TextConfig::default(), lengths.0, lengths.1).unwrap();

    // All sources at once: what is beside a sequence does not matter.
    let sources = Sequences::pack(expected.cases.iter().map(|case| case.source.as_slice()));
    for (mention, case) in expected.cases.iter().enumerate() {
        let mut decoding = model.begin(&sources).unwrap();
        let mut path = Vec::new();
        for (at, token) in case.target.iter().enumerate() {
            let is_scored = at + 1 == case.target.len();
            let given = decoding.feed(&[Step { mention, path: &path, token: *token, is_scored }]).unwrap();
            path.push(at as u32);
            if is_scored {
                for (given, expected) in given.row(0).iter().zip(&case.last_log_probabilities) {
                    assert!((given - expected).abs() < 1e-4, "{given} {expected}");
                }
            }
        }
    }

    let names: TokenLists = expected.names.iter().map(|name| coder.name(name).unwrap()).collect();
    let trie = Trie::new(&names);
    let tasks: Vec<Task<'_>> = expected.cases.iter().map(|case| Task { prompt: &case.prompt, trie: &trie }).collect();
    let config = BeamConfig { n_beams: 4, ..BeamConfig::default() };
    let found = search(&mut model.begin(&sources).unwrap(), &tasks, &config).unwrap();
    for (found, case) in found.iter().zip(&expected.cases) {
        let name = |leaf: u32| &expected.names[trie.ending_at(leaf).next().unwrap() as usize];
        let given: Vec<(&String, f32)> = found.iter().map(|found| (name(found.leaf), found.score)).collect();
        assert_eq!(given.len(), case.found.len());
        for ((name, score), (expected, expected_score)) in given.iter().zip(&case.found) {
            assert!(*name == expected && (score - expected_score).abs() < 1e-4, "{given:?} {:?}", case.found);
        }
    }
    // Prompts and sources are written as the script wrote them.
    assert_eq!(coder.prompt("gout"), expected.cases[0].prompt);
    assert_eq!(coder.source("the patient had START gout END of the big toe", false), expected.cases[0].source);
}
