//! Agreement with PyTorch and transformers on real weights; a message where they are not there. `benches/peers/bert_reference.py` makes the
//! folder.

use std::collections::BTreeMap;
use std::path::PathBuf;

use canonym_neural::autograd::Tape;
use canonym_neural::checkpoint::{read_bert, write_bert};
use canonym_neural::models::bert::infer::{BertEncoder, Pooling};
use canonym_neural::models::bert::{BertConfig, Sequences};
use canonym_neural::tensor::matrix::Matrix;
use canonym_neural::tensor::parameters::Parameters;
use canonym_neural::tokenizer::{BertNormalizer, BertRules, Tokenizer};
use serde::Deserialize;

#[derive(Deserialize)]
struct Reference {
    words: Vec<Words>,
    sequences: Vec<Sequence>,
    gradients: BTreeMap<String, f64>,
}

#[derive(Deserialize)]
struct Words {
    lowercase: bool,
    strip_accents: Option<bool>,
    texts: Vec<Divided>,
}

#[derive(Deserialize)]
struct Divided {
    text: String,
    rows: Vec<u32>,
    spans: Vec<usize>,
}

#[derive(Deserialize)]
struct Sequence {
    parts: Vec<Vec<u32>>,
    vectors: Vec<f32>,
    pooled: Vec<f32>,
}

struct Model {
    config: BertConfig,
    tokenizer: Tokenizer,
    parameters: Parameters,
    reference: Reference,
}

/// The model in the folder that CANONYM_MINILM names, and what PyTorch makes with it; a message where it is absent.
fn model() -> Option<Model> {
    let Some(folder) = std::env::var_os("CANONYM_MINILM").map(PathBuf::from) else {
        eprintln!("skipped: CANONYM_MINILM names no folder; benches/peers/bert_reference.py makes one");
        return None;
    };
    let path = folder.join("canonym-reference.json");
    if !path.exists() {
        eprintln!("skipped: {} is not there; benches/peers/bert_reference.py makes it", path.display());
        return None;
    }
    let reference = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let mut parameters = Parameters::default();
    let (config, tokenizer) = read_bert(&folder, "", &mut parameters).unwrap();
    Some(Model { config, tokenizer, parameters, reference })
}

fn packed(sequences: &[Sequence]) -> Sequences {
    let mut packed = Sequences::default();
    for sequence in sequences {
        let parts: Vec<&[u32]> = sequence.parts.iter().map(Vec::as_slice).collect();
        packed.push(&parts);
    }
    packed
}

/// The greatest difference.
fn difference(left: &[f32], right: &[f32]) -> f32 {
    assert_eq!(left.len(), right.len());
    left.iter().zip(right).fold(0.0, |most, (left, right)| most.max((left - right).abs()))
}

#[test]
fn pieces_and_their_bytes_are_those_of_hugging_face() {
    let Some(Model { tokenizer, reference, .. }) = model() else { return };
    assert_eq!(tokenizer.rules(), Some(BertRules::UNCASED));
    let mut wrong = Vec::new();
    for Words { lowercase, strip_accents, texts } in &reference.words {
        let normalizer =
            BertNormalizer { lowercase: *lowercase, strip_accents: *strip_accents, ..BertNormalizer::UNCASED };
        let tokenizer = tokenizer.with_rules(BertRules { normalizer, ..BertRules::UNCASED }).unwrap();
        for Divided { text, rows, spans } in texts {
            let made = tokenizer.tokens(text);
            let made_rows: Vec<u32> = made.iter().map(|piece| piece.row).collect();
            let made_spans: Vec<usize> = made.iter().flat_map(|piece| [piece.start, piece.end]).collect();
            if (&made_rows, &made_spans) != (rows, spans) {
                let at = made_spans.iter().zip(spans).position(|(made, span)| made != span).unwrap_or(0) / 2;
                wrong.push(format!("lower case {lowercase}, accents {strip_accents:?}, piece {at} of {text:?}"));
            }
        }
    }
    let n: usize = reference.words.iter().map(|words| words.texts.len()).sum();
    assert!(wrong.is_empty(), "{} of {n} texts\n{}", wrong.len(), wrong[..wrong.len().min(20)].join("\n"));
}

#[test]
fn vectors_are_those_of_pytorch() {
    let Some(Model { config, tokenizer, parameters, reference }) = model() else { return };
    let expected: Vec<f32> = reference.sequences.iter().flat_map(|sequence| sequence.vectors.iter().copied()).collect();
    let pooled: Vec<f32> = reference.sequences.iter().flat_map(|sequence| sequence.pooled.iter().copied()).collect();
    let sequences = packed(&reference.sequences);
    let encoder = BertEncoder::new(&config, &parameters, "").unwrap();
    let mut tape = Tape::new(&parameters);
    let rows = config.forward(&mut tape, "", &sequences, None).unwrap();
    let differences = [
        difference(&encoder.encode(&sequences).unwrap().values, &expected),
        difference(&encoder.encode_pooled(&sequences, Pooling::Pooler).unwrap().values, &pooled),
        difference(&tape.value(rows).values, &expected),
    ];
    eprintln!("greatest differences from PyTorch: vectors, pooled, vectors of the tape: {differences:?}");
    assert!(differences.iter().all(|difference| *difference < 1e-4), "{differences:?}");

    let folder = tempfile::tempdir().unwrap();
    write_bert(folder.path(), &config, &tokenizer, "", &parameters).unwrap();
    let mut back = Parameters::default();
    assert_eq!(read_bert(folder.path(), "", &mut back).unwrap(), (config, tokenizer));
    assert_eq!(back, parameters);
}

#[test]
fn gradients_are_as_long_as_those_of_pytorch() {
    let Some(Model { config, parameters, reference, .. }) = model() else { return };
    let sequences = packed(&reference.sequences);
    let mut tape = Tape::new(&parameters);
    let rows = config.forward(&mut tape, "", &sequences, None).unwrap();
    let pooled = config.pool(&mut tape, "", rows, sequences.segments()).unwrap();
    let output = tape.stack(rows, pooled);
    // Of half the squares of all values the gradient is the values.
    let gradient: Matrix = tape.value(output).clone();
    let gradients = tape.backward([(output, gradient)]);
    let ours = |name: &str| {
        let gradient = gradients.of(parameters.find(name).unwrap()).unwrap();
        gradient.matrix().values.iter().map(|x| f64::from(*x).powi(2)).sum::<f64>().sqrt()
    };
    let theirs = |names: &[String]| names.iter().map(|name| reference.gradients[name].powi(2)).sum::<f64>().sqrt();
    let mut greatest = 0.0f64;
    let mut compare = |name: &str, names: &[String]| {
        let (made, expected) = (ours(name), theirs(names));
        greatest = greatest.max((made - expected).abs() / expected);
        assert!((made - expected).abs() < 1e-3 * expected, "{name}: {made} {expected}");
    };
    for (name, of) in [
        ("embedding.word", "embeddings.word_embeddings.weight"),
        ("embedding.position", "embeddings.position_embeddings.weight"),
        ("embedding.type", "embeddings.token_type_embeddings.weight"),
        ("embedding.norm.gain", "embeddings.LayerNorm.weight"),
        ("pooler.weight", "pooler.dense.weight"),
    ] {
        compare(name, &[of.to_owned()]);
    }
    for layer in 0..config.num_hidden_layers {
        let of = |part: &str| format!("encoder.layer.{layer}.{part}");
        // A bias of keys shifts all scores of a query alike and has no gradient.
        let input = ["query", "key", "value"].map(|part| of(&format!("attention.self.{part}.weight")));
        compare(&format!("layer.{layer}.attention.input.weight"), &input);
        for (name, part) in [
            ("attention.output.weight", "attention.output.dense.weight"),
            ("attention.norm.bias", "attention.output.LayerNorm.bias"),
            ("feed_forward.inner.weight", "intermediate.dense.weight"),
            ("feed_forward.inner.bias", "intermediate.dense.bias"),
            ("feed_forward.outer.weight", "output.dense.weight"),
            ("feed_forward.norm.gain", "output.LayerNorm.weight"),
        ] {
            compare(&format!("layer.{layer}.{name}"), &[of(part)]);
        }
    }
    eprintln!("greatest difference of the length of a gradient from PyTorch, as a share: {greatest:e}");
}
