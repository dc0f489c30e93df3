//! Converts whole encoders between the names and layout of Hugging Face and those of [`crate::models::bert`].
//!
//! Linear layers of Hugging Face are `[out, in]`, ours are `[in, out]`, and ours combine queries, keys and values in one weight. Task heads
//! of a checkpoint, such as those for pre-training, are ignored.

use std::collections::HashMap;
use std::io::Write;
use std::path::Path;

use canonym_core::artifact::AtomicFile;
use canonym_core::error::Context;
use canonym_core::{Error, Result};
use safetensors::tensor::{Dtype, TensorView};
use serde::Deserialize;
use serde_json::json;

use super::{CONFIG, HINT, PREFIXES, WEIGHTS, is_counted, weights_in, wrong_shape};
use crate::models::bert::{BertConfig, Weight};
use crate::tensor::matrix::Matrix;
use crate::tensor::parameters::Parameters;
use crate::tokenizer::{BertRules, Tokenizer};

/// Block size of the transposition, so that each cache line is written once.
const BLOCK: usize = 16;

/// A tensor of a checkpoint, and the columns of our weight that hold it.
#[derive(Debug)]
pub(super) struct Tensor {
    pub(super) name: String,
    /// Its shape in the checkpoint.
    pub(super) shape: Vec<usize>,
    /// Its first column in our weight.
    pub(super) first: usize,
    pub(super) transposed: bool,
}

/// Fields of `config.json` that distinguish other kinds of models.
#[derive(Deserialize)]
struct Kind {
    model_type: Option<String>,
    position_embedding_type: Option<String>,
    #[serde(default)]
    is_decoder: bool,
}

/// Reads an encoder into `parameters` under `scope`; returns its configuration and vocabulary. The pooler is optional.
pub fn read_bert(folder: &Path, scope: &str, parameters: &mut Parameters) -> Result<(BertConfig, Tokenizer)> {
    let path = weights_in(folder)?;
    let config = read_config(&folder.join(CONFIG))?;
    let tokenizer = Tokenizer::read(folder)?;
    let refused = |message: String| Error::artifact(&path, message).with_hint(HINT);
    if tokenizer.len() > config.vocab_size {
        let message = format!(
            "it has embeddings for {} wordpieces, but the vocabulary has {}",
            config.vocab_size,
            tokenizer.len()
        );
        return Err(refused(message));
    }
    let is_wanted = |name: &str| {
        ["embeddings.", "encoder.layer.", "pooler.dense."].iter().any(|part| name.contains(part)) && !is_counted(name)
    };
    let all = Parameters::read_some(&path, is_wanted)?;
    let known = |prefix: &&str| all.find(&format!("{prefix}embeddings.word_embeddings.weight")).is_ok();
    let missing = || refused("it has no tensor `embeddings.word_embeddings.weight`".to_owned());
    let prefix = PREFIXES.into_iter().find(known).ok_or_else(missing)?;
    let beyond = format!("{prefix}encoder.layer.{}.", config.num_hidden_layers);
    if let Some((name, _)) = all.iter().find(|(name, _)| name.starts_with(&beyond)) {
        return Err(refused(format!(
            "it has `{name}`, but {} layers according to `{CONFIG}`",
            config.num_hidden_layers
        )));
    }
    let has_pooler = all.find(&format!("{prefix}pooler.dense.weight")).is_ok();
    for weight in config.weights() {
        if !has_pooler && weight.name.starts_with("pooler.") {
            continue;
        }
        let mut value = Matrix::zeros(weight.n_rows, weight.n_cols);
        for tensor in tensors(&weight) {
            let from = find(&all, prefix, &tensor.name)
                .ok_or_else(|| refused(format!("it has no tensor `{prefix}{}`", tensor.name)))?;
            let expected =
                (tensor.shape[..tensor.shape.len() - 1].iter().product(), tensor.shape[tensor.shape.len() - 1]);
            if let Some(message) = wrong_shape(&format!("{prefix}{}", tensor.name), from, expected) {
                return Err(refused(message));
            }
            tensor.put(from, &mut value);
        }
        parameters.add(format!("{scope}{}", weight.name), value);
    }
    config.check(parameters, scope).map_err(|error| refused(error.to_string()))?;
    Ok((config, tokenizer))
}

/// Writes the encoder under `scope` to a folder that Hugging Face and [`read_bert`] can read: `config.json`, `model.safetensors`,
/// `tokenizer_config.json`, and `vocab.txt` or `tokenizer.json`.
pub fn write_bert(
    folder: &Path,
    config: &BertConfig,
    tokenizer: &Tokenizer,
    scope: &str,
    parameters: &Parameters,
) -> Result<()> {
    config.check(parameters, scope)?;
    std::fs::create_dir_all(folder).map_err(|error| Error::io("create", folder, error))?;
    let mut settings = json!(config);
    settings["model_type"] = json!("bert");
    settings["architectures"] = json!(["BertModel"]);
    let (vocabulary, words) = match tokenizer.rules() {
        Some(BertRules { normalizer, .. }) => {
            let words = json!({
                "tokenizer_class": "BertTokenizer",
                "do_lower_case": normalizer.lowercase,
                "strip_accents": normalizer.strip_accents,
                "tokenize_chinese_chars": normalizer.handle_chinese_chars,
                "model_max_length": config.max_position_embeddings,
            });
            ("vocab.txt", words)
        }
        None => {
            let class = "PreTrainedTokenizerFast";
            let words = json!({"tokenizer_class": class, "model_max_length": config.max_position_embeddings});
            ("tokenizer.json", words)
        }
    };
    let weights = weights_to_bytes(config, scope, parameters)?;
    for (name, bytes) in [
        (CONFIG, settings.to_string().as_bytes()),
        ("tokenizer_config.json", words.to_string().as_bytes()),
        (vocabulary, tokenizer.to_text().as_bytes()),
        (WEIGHTS, &weights),
    ] {
        let path = folder.join(name);
        let mut file = AtomicFile::create(&path)?;
        file.write_all(bytes).map_err(|error| Error::io("write", &path, error))?;
        file.commit()?;
    }
    Ok(())
}

fn weights_to_bytes(config: &BertConfig, scope: &str, parameters: &Parameters) -> Result<Vec<u8>> {
    let mut tensors_and_bytes = Vec::new();
    for weight in config.weights() {
        let Ok(value) = parameters.get(&format!("{scope}{}", weight.name)) else { continue };
        for tensor in tensors(&weight) {
            let bytes: Vec<u8> = tensor.take(value).iter().flat_map(|value| value.to_le_bytes()).collect();
            tensors_and_bytes.push((tensor, bytes));
        }
    }
    let failed = "cannot write the weights";
    let mut views = Vec::with_capacity(tensors_and_bytes.len());
    for (tensor, bytes) in &tensors_and_bytes {
        let view = TensorView::new(Dtype::F32, tensor.shape.clone(), bytes).context(failed)?;
        views.push((tensor.name.as_str(), view));
    }
    // Older versions of transformers reject files without this entry.
    let metadata = HashMap::from([("format".to_owned(), "pt".to_owned())]);
    safetensors::serialize(views, Some(metadata)).context(failed)
}

/// Reads the configuration from `config.json`; other kinds of models are an error.
fn read_config(path: &Path) -> Result<BertConfig> {
    let refused = |message: String| {
        let hint = "use a BERT checkpoint folder, such as BERT, BioBERT, SciBERT, PubMedBERT, SapBERT or MiniLM";
        Error::artifact(path, message).with_hint(hint)
    };
    let text = std::fs::read_to_string(path).map_err(|error| Error::io("read", path, error))?;
    let wrong = |error: serde_json::Error| refused(format!("invalid BERT config: {error}"));
    // Checked first: configurations of other models lack fields.
    let kind: Kind = serde_json::from_str(&text).map_err(wrong)?;
    match (kind.model_type.as_deref(), kind.position_embedding_type.as_deref()) {
        (None | Some("bert"), None | Some("absolute")) => {}
        (None | Some("bert"), Some(positions)) => {
            return Err(refused(format!("its `position_embedding_type` is `{positions}`, not `absolute`")));
        }
        (Some(kind), _) => return Err(refused(format!("its `model_type` is `{kind}`, not `bert`"))),
    }
    if kind.is_decoder {
        return Err(refused("it is a decoder".to_owned()));
    }
    let config: BertConfig = serde_json::from_str(&text).map_err(wrong)?;
    config.check_sizes().map_err(|error| refused(error.to_string()))?;
    Ok(config)
}

/// Finds a tensor by its name, or by the name in older checkpoints.
fn find<'a>(all: &'a Parameters, prefix: &str, name: &str) -> Option<&'a Matrix> {
    let older = name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta");
    [name, &older].into_iter().find_map(|name| all.get(&format!("{prefix}{name}")).ok())
}

/// The checkpoint tensors that make up one of our weights.
fn tensors(weight: &Weight) -> Vec<Tensor> {
    let (of, end) = weight.name.rsplit_once('.').expect("every weight has a part");
    if of == "embedding" {
        let name = match end {
            "word" => "embeddings.word_embeddings.weight",
            "position" => "embeddings.position_embeddings.weight",
            _ => "embeddings.token_type_embeddings.weight",
        };
        return vec![Tensor::whole(name, weight)];
    }
    let (layer, part) = match of.strip_prefix("layer.").and_then(|rest| rest.split_once('.')) {
        Some((layer, part)) => (format!("encoder.layer.{layer}."), part),
        None => (String::new(), of),
    };
    let parts: &[&str] = match part {
        "attention.input" => &["attention.self.query", "attention.self.key", "attention.self.value"],
        "attention.output" => &["attention.output.dense"],
        "attention.norm" => &["attention.output.LayerNorm"],
        "feed_forward.inner" => &["intermediate.dense"],
        "feed_forward.outer" => &["output.dense"],
        "feed_forward.norm" => &["output.LayerNorm"],
        "embedding.norm" => &["embeddings.LayerNorm"],
        _ => &["pooler.dense"],
    };
    Tensor::parts(weight, &layer, parts, end)
}

impl Tensor {
    /// The tensor that is the whole of `weight`.
    pub(super) fn whole(name: &str, weight: &Weight) -> Self {
        let shape = vec![weight.n_rows, weight.n_cols];
        Self { name: name.to_owned(), shape, first: 0, transposed: false }
    }

    /// The tensors `{place}{part}.weight` or `.bias` that, beside each other, are `weight`; `end` is its own last name.
    pub(super) fn parts(weight: &Weight, place: &str, parts: &[&str], end: &str) -> Vec<Self> {
        let transposed = end == "weight";
        let end = if end == "gain" { "weight" } else { end };
        let width = weight.n_cols / parts.len();
        let shape = if transposed { vec![width, weight.n_rows] } else { vec![width] };
        let tensor = |(at, part): (usize, &&str)| Self {
            name: format!("{place}{part}.{end}"),
            shape: shape.clone(),
            first: at * width,
            transposed,
        };
        parts.iter().enumerate().map(tensor).collect()
    }

    /// Copies a checkpoint tensor into its columns of `to`.
    pub(super) fn put(&self, from: &Matrix, to: &mut Matrix) {
        if self.transposed {
            for block in (0..from.n_rows).step_by(BLOCK) {
                let outputs = block..from.n_rows.min(block + BLOCK);
                for input in 0..from.n_cols {
                    let to = &mut to.row_mut(input)[self.first..];
                    outputs.clone().for_each(|output| to[output] = from.row(output)[input]);
                }
            }
            return;
        }
        for row in 0..from.n_rows {
            to.row_mut(row)[self.first..][..from.n_cols].copy_from_slice(from.row(row));
        }
    }

    /// Extracts a checkpoint tensor from its columns of `from`.
    fn take(&self, from: &Matrix) -> Vec<f32> {
        let n_cols = if self.transposed { self.shape[0] } else { self.shape[self.shape.len() - 1] };
        let at = |row: usize, col: usize| from.row(row)[self.first + col];
        if self.transposed {
            return (0..n_cols).flat_map(|col| (0..from.n_rows).map(move |row| at(row, col))).collect();
        }
        (0..from.n_rows).flat_map(|row| &from.row(row)[self.first..][..n_cols]).copied().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::models::bert::Sequences;
    use crate::models::bert::infer::{BertEncoder, Pooling};
    use crate::models::bert::tests::drawn_model;
    use crate::tensor::elementwise::Activation;

    const WORDS: &str = "[PAD]\n[UNK]\n[CLS]\n[SEP]\nliver\nkidney\n##s\n";

    fn written() -> (tempfile::TempDir, BertConfig, Parameters) {
        let (config, parameters) = drawn_model(2, Activation::Gelu);
        let folder = tempfile::tempdir().unwrap();
        let tokenizer = Tokenizer::from_lines(WORDS).unwrap();
        write_bert(folder.path(), &config, &tokenizer, "", &parameters).unwrap();
        (folder, config, parameters)
    }

    /// Rewrites the tensors of a folder, renamed or removed by `rename`.
    fn rewrite(folder: &Path, rename: impl Fn(&str) -> Option<String>) {
        let bytes = std::fs::read(folder.join(WEIGHTS)).unwrap();
        let tensors = safetensors::SafeTensors::deserialize(&bytes).unwrap();
        let views: Vec<_> =
            tensors.tensors().into_iter().filter_map(|(name, view)| Some((rename(&name)?, view))).collect();
        std::fs::write(folder.join(WEIGHTS), safetensors::serialize(views, None).unwrap()).unwrap();
    }

    fn refused(folder: &Path) -> String {
        let error = read_bert(folder, "", &mut Parameters::default()).unwrap_err();
        assert!(error.hint().is_some(), "{error} has no hint");
        error.to_string()
    }

    #[test]
    fn what_is_written_is_read_again_in_the_layout_of_hugging_face() {
        let (folder, config, parameters) = written();
        let mut back = Parameters::default();
        let (config_back, tokenizer) = read_bert(folder.path(), "", &mut back).unwrap();
        assert_eq!((&config_back, &back), (&config, &parameters));
        assert_eq!(tokenizer.input_ids("Livers"), [4, 6]);
        let theirs = Parameters::read(&folder.path().join(WEIGHTS)).unwrap().0;
        let key = theirs.get("encoder.layer.1.attention.self.key.weight").unwrap();
        let ours = parameters.get("layer.1.attention.input.weight").unwrap();
        // Key weight of output 5 and input 2.
        assert_eq!(key.row(5)[2], ours.row(2)[12 + 5]);
        let inner = theirs.get("encoder.layer.0.intermediate.dense.weight").unwrap();
        assert_eq!((inner.n_rows, inner.n_cols), (10, 12));
    }

    #[test]
    fn a_tokenizer_of_another_kind_is_written_as_json() {
        let (config, parameters) = drawn_model(2, Activation::Gelu);
        let json = r#"{"version":"1.0","model":{"type":"Unigram","unk_id":0,"vocab":[["<unk>",0.0],["liver",-1.0]]}}"#;
        let tokenizer = Tokenizer::from_json(json).unwrap();
        let folder = tempfile::tempdir().unwrap();
        write_bert(folder.path(), &config, &tokenizer, "", &parameters).unwrap();
        assert_eq!(read_bert(folder.path(), "", &mut Parameters::default()).unwrap(), (config, tokenizer));
        assert!(!folder.path().join("vocab.txt").exists());
    }

    #[test]
    fn prefixes_older_names_and_heads_of_pretraining_do_not_matter() {
        let (folder, config, parameters) = written();
        let sequences = Sequences::pack([[2, 4, 6, 3].as_slice()]);
        let expected = BertEncoder::new(&config, &parameters, "").unwrap().encode(&sequences).unwrap();
        rewrite(folder.path(), |name| {
            let older = name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta");
            (!name.starts_with("pooler")).then(|| format!("bert.{older}"))
        });
        let mut back = Parameters::default();
        let (config, _) = read_bert(folder.path(), "mention.", &mut back).unwrap();
        let encoder = BertEncoder::new(&config, &back, "mention.").unwrap();
        assert_eq!(encoder.encode(&sequences).unwrap(), expected);
        assert!(encoder.encode_pooled(&sequences, Pooling::Pooler).is_err());
    }

    #[test]
    fn tensors_that_are_missing_too_many_or_of_another_shape_are_refused() {
        let (folder, config, _) = written();
        let path = folder.path();
        std::fs::write(path.join(CONFIG), json!(BertConfig { intermediate_size: 9, ..config.clone() }).to_string())
            .unwrap();
        assert!(
            refused(path)
                .contains("`encoder.layer.0.intermediate.dense.weight` is 10 x 12, expected 9 x 12 by `config.json`")
        );
        std::fs::write(path.join(CONFIG), json!(BertConfig { num_hidden_layers: 1, ..config.clone() }).to_string())
            .unwrap();
        assert!(refused(path).contains("but 1 layers according to `config.json`"));
        std::fs::write(path.join(CONFIG), json!(BertConfig { num_hidden_layers: 3, ..config.clone() }).to_string())
            .unwrap();
        assert!(refused(path).contains("no tensor `encoder.layer.2.attention.self.query.weight`"));
        std::fs::write(path.join(CONFIG), json!(BertConfig { vocab_size: 3, ..config }).to_string()).unwrap();
        assert!(refused(path).contains("embeddings for 3 wordpieces, but the vocabulary has 7"));
    }

    #[test]
    fn a_folder_that_is_no_bert_is_refused_with_what_it_is() {
        let (folder, config, _) = written();
        let path = folder.path();
        for (field, value, expected) in [
            ("model_type", json!("roberta"), "its `model_type` is `roberta`, not `bert`"),
            ("position_embedding_type", json!("relative_key"), "its `position_embedding_type` is `relative_key`"),
            ("is_decoder", json!(true), "it is a decoder"),
            ("hidden_act", json!("silu"), "invalid BERT config: unknown variant `silu`"),
            ("num_attention_heads", json!(7), "a hidden size of 12 is not divisible by 7 heads"),
        ] {
            let mut changed = json!(config);
            changed[field] = value;
            std::fs::write(path.join(CONFIG), changed.to_string()).unwrap();
            let message = refused(path);
            assert!(message.contains(expected), "{message}");
        }
        std::fs::remove_file(path.join(CONFIG)).unwrap();
        assert!(refused(path).contains("cannot read"));
        std::fs::rename(path.join(WEIGHTS), path.join("pytorch_model.bin")).unwrap();
        assert!(refused(path).contains("only `pytorch_model.bin`, a pickle file"));
        std::fs::remove_file(path.join("pytorch_model.bin")).unwrap();
        assert!(refused(path).contains("it has no `model.safetensors`"));
        assert!(refused(&path.join("nowhere")).contains("no such folder"));
    }
}
