//! BERT and BART checkpoints in the folder layout of Hugging Face, with `model.safetensors`, `config.json` and a vocabulary.
//!
//! [`read_bert`] and [`write_bert`] read and write an encoder. [`read_embeddings`] reads only its embedding layer: word, position and type
//! embeddings with their layer norm.

mod bart;
mod bert;

use std::path::{Path, PathBuf};

use canonym_core::{Error, Result};

use crate::tensor::matrix::Matrix;
use crate::tensor::parameters::Parameters;
use crate::tokenizer::Tokenizer;

pub use bart::read_bart;
pub use bert::{read_bert, write_bert};

/// File name of the configuration.
const CONFIG: &str = "config.json";

/// File name of the weights.
const WEIGHTS: &str = "model.safetensors";

/// File name of PyTorch weights, which are not supported.
const PICKLE: &str = "pytorch_model.bin";

/// Prefixes of tensor names in checkpoints.
const PREFIXES: [&str; 3] = ["", "bert.", "model."];

/// Hint for checkpoints that cannot be used.
const HINT: &str =
    "use a BERT checkpoint folder with safetensors weights; `docs/formats.md` describes how to convert others";

/// Our name of each embedding tensor, its name in checkpoints, and its name in older checkpoints.
const TENSORS: [(&str, &str, &str); 5] = [
    ("embedding.word", "word_embeddings.weight", "word_embeddings.weight"),
    ("embedding.position", "position_embeddings.weight", "position_embeddings.weight"),
    ("embedding.type", "token_type_embeddings.weight", "token_type_embeddings.weight"),
    ("embedding.norm.gain", "LayerNorm.weight", "LayerNorm.gamma"),
    ("embedding.norm.bias", "LayerNorm.bias", "LayerNorm.beta"),
];

/// Reads the embeddings of a checkpoint into `parameters`, with the first `n_places` position embeddings; returns the vocabulary.
pub fn read_embeddings(folder: &Path, n_places: usize, parameters: &mut Parameters) -> Result<Tokenizer> {
    let tokenizer = Tokenizer::read(folder)?;
    if !tokenizer.is_uncased() {
        let hint = "use an uncased BERT checkpoint";
        return Err(Error::artifact(folder, "its vocabulary is cased or keeps accents").with_hint(hint));
    }
    let path = weights_in(folder)?;
    let all = Parameters::read_some(&path, |name| name.contains("embeddings.") && !is_counted(name))?;
    let refused = |message: String| Error::artifact(&path, message).with_hint(HINT);
    let find = |name: &str| PREFIXES.iter().find_map(|prefix| all.get(&format!("{prefix}embeddings.{name}")).ok());
    for (ours, theirs, older) in TENSORS {
        let missing = || refused(format!("it has no tensor `embeddings.{theirs}`"));
        let value = find(theirs).or_else(|| find(older)).ok_or_else(missing)?;
        let n_rows = if ours == "embedding.position" { n_places.min(value.n_rows) } else { value.n_rows };
        let kept = Matrix::new(n_rows, value.n_cols, value.values[..n_rows * value.n_cols].to_vec());
        parameters.add(ours, kept);
    }
    let (n_words, dim) = (parameters.get("embedding.word")?.n_rows, parameters.get("embedding.word")?.n_cols);
    if n_words < tokenizer.len() {
        return Err(refused(format!(
            "it has embeddings for {n_words} wordpieces, but the vocabulary has {}",
            tokenizer.len()
        )));
    }
    for (ours, theirs, _) in TENSORS {
        let n_cols = parameters.get(ours)?.n_cols;
        if n_cols != dim {
            return Err(refused(format!(
                "`embeddings.{theirs}` has dimension {n_cols}, but word embeddings have {dim}"
            )));
        }
    }
    let n_kept = parameters.get("embedding.position")?.n_rows;
    if n_kept < n_places {
        return Err(refused(format!("it has {n_kept} positions, but names have up to {n_places} wordpieces")));
    }
    Ok(tokenizer)
}

/// Names of the weights that [`read_embeddings`] adds.
pub fn names() -> impl Iterator<Item = &'static str> {
    TENSORS.into_iter().map(|(ours, _, _)| ours)
}

/// Whether a tensor holds the position ids 0, 1, 2, …, which some checkpoints contain and nothing uses.
fn is_counted(name: &str) -> bool {
    name.ends_with("position_ids")
}

/// What is wrong with a tensor that has not the `expected` rows and columns.
fn wrong_shape(name: &str, value: &Matrix, expected: (usize, usize)) -> Option<String> {
    let (n_rows, n_cols) = expected;
    ((value.n_rows, value.n_cols) != expected)
        .then(|| format!("`{name}` is {} x {}, expected {n_rows} x {n_cols} by `{CONFIG}`", value.n_rows, value.n_cols))
}

/// The weights file in a folder; if it is missing, the error says what was found instead.
fn weights_in(folder: &Path) -> Result<PathBuf> {
    let path = folder.join(WEIGHTS);
    if path.exists() {
        return Ok(path);
    }
    let message = if folder.join(PICKLE).exists() {
        format!("it has no `{WEIGHTS}`, only `{PICKLE}`, a pickle file, which is not supported")
    } else if folder.join(format!("{WEIGHTS}.index.json")).exists() {
        format!("it has no `{WEIGHTS}`: weights in several files are not supported")
    } else if folder.exists() {
        format!("it has no `{WEIGHTS}`")
    } else {
        "no such folder".to_owned()
    };
    Err(Error::artifact(folder, message).with_hint(HINT))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::tensor::parameters::Precision;

    fn folder(prefix: &str, gain: &str, n_words: usize) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        let mut weights = Parameters::default();
        for (name, n_rows) in [
            ("word_embeddings.weight", n_words),
            ("position_embeddings.weight", 6),
            ("token_type_embeddings.weight", 2),
        ] {
            let values = (0..n_rows * 2).map(|value| value as f32).collect();
            weights.add(format!("{prefix}embeddings.{name}"), Matrix::new(n_rows, 2, values));
        }
        weights.add(format!("{prefix}embeddings.{gain}"), Matrix::new(1, 2, vec![1.0, 1.0]));
        let bias = if gain.ends_with("gamma") { "LayerNorm.beta" } else { "LayerNorm.bias" };
        weights.add(format!("{prefix}embeddings.{bias}"), Matrix::zeros(1, 2));
        weights.add(format!("{prefix}encoder.layer.0.output.dense.weight"), Matrix::zeros(2, 2));
        weights.write(&folder.path().join(WEIGHTS), Precision::Single, &BTreeMap::new()).unwrap();
        std::fs::write(folder.path().join("vocab.txt"), "[PAD]\n[UNK]\nliver\n").unwrap();
        folder
    }

    #[test]
    fn embeddings_are_found_under_the_names_of_checkpoints() {
        for (prefix, gain) in [("", "LayerNorm.weight"), ("bert.", "LayerNorm.gamma")] {
            let folder = folder(prefix, gain, 3);
            let mut parameters = Parameters::default();
            let tokenizer = read_embeddings(folder.path(), 4, &mut parameters).unwrap();
            assert_eq!((tokenizer.input_ids("Liver"), parameters.len()), (vec![2], 5));
            assert_eq!(parameters.get("embedding.position").unwrap().n_rows, 4);
            assert_eq!(parameters.get("embedding.word").unwrap().row(2), [4.0, 5.0]);
        }
    }

    #[test]
    fn a_checkpoint_that_does_not_fit_is_refused() {
        let refused = |folder: &tempfile::TempDir, n_places| {
            read_embeddings(folder.path(), n_places, &mut Parameters::default()).unwrap_err().to_string()
        };
        assert!(
            refused(&folder("", "LayerNorm.weight", 2), 4)
                .contains("embeddings for 2 wordpieces, but the vocabulary has 3")
        );
        assert!(refused(&folder("", "LayerNorm.weight", 3), 9).contains("has 6 positions, but names have up to 9"));
        assert!(
            refused(&folder("distilled.", "LayerNorm.weight", 3), 4)
                .contains("no tensor `embeddings.word_embeddings.weight`")
        );
    }
}
