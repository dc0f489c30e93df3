//! Reads vocabularies from checkpoint folders: `vocab.txt` or `tokenizer.json`, and `tokenizer_config.json`.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use canonym_core::{Error, Result};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::{BertNormalizer, INSIDE, LONGEST_WORD, Pieces, UNKNOWN};

const LINES: &str = "vocab.txt";
const TOKENIZER: &str = "tokenizer.json";
const SETTINGS: &str = "tokenizer_config.json";

/// The fields read from `tokenizer.json`.
#[derive(Deserialize)]
struct Tokenizer {
    normalizer: Option<Normalizer>,
    pre_tokenizer: Option<Kind>,
    model: WordPiece,
    #[serde(default)]
    added_tokens: Vec<Added>,
}

#[derive(Deserialize)]
struct Normalizer {
    #[serde(rename = "type", default = "bert_normalizer")]
    kind: String,
    #[serde(flatten)]
    settings: BertNormalizer,
}

#[derive(Deserialize)]
struct Kind {
    #[serde(rename = "type")]
    kind: String,
}

#[derive(Deserialize)]
struct WordPiece {
    #[serde(rename = "type", default = "word_piece")]
    kind: String,
    vocab: HashMap<String, u32>,
    #[serde(default = "unknown")]
    unk_token: String,
    #[serde(default = "inside")]
    continuing_subword_prefix: String,
    #[serde(default = "longest_word")]
    max_input_chars_per_word: usize,
}

#[derive(Deserialize)]
struct Added {
    id: u32,
    content: String,
}

fn bert_normalizer() -> String {
    "BertNormalizer".to_owned()
}

fn word_piece() -> String {
    "WordPiece".to_owned()
}

fn unknown() -> String {
    UNKNOWN.to_owned()
}

fn inside() -> String {
    INSIDE.to_owned()
}

fn longest_word() -> usize {
    LONGEST_WORD
}

/// The fields read from `tokenizer_config.json`.
#[derive(Default, Deserialize)]
struct Settings {
    do_lower_case: Option<bool>,
    strip_accents: Option<bool>,
    tokenize_chinese_chars: Option<bool>,
}

impl Pieces {
    /// Reads a BERT vocabulary from `vocab.txt`, or else from `tokenizer.json`. Normalisation is read from `tokenizer_config.json`, or else
    /// from `tokenizer.json`; without either, a vocabulary with capitals is taken as cased.
    pub fn read(folder: &Path) -> Result<Pieces> {
        let lines = folder.join(LINES);
        let path = folder.join(TOKENIZER);
        let tokenizer: Option<Tokenizer> = read_json(&path, "not a WordPiece tokenizer")?;
        if let Some(tokenizer) = &tokenizer {
            tokenizer.check().map_err(|message| refused(&path, message))?;
        }
        let settings: Settings = read_json(&folder.join(SETTINGS), "invalid tokenizer settings")?.unwrap_or_default();
        let known = tokenizer.as_ref().and_then(|tokenizer| tokenizer.normalizer.as_ref()).map(|known| known.settings);
        let longest_word =
            tokenizer.as_ref().map_or(LONGEST_WORD, |tokenizer| tokenizer.model.max_input_chars_per_word);
        let mut pieces = match tokenizer {
            _ if lines.exists() => {
                let text = std::fs::read_to_string(&lines).map_err(|error| Error::io("read", &lines, error))?;
                Pieces::from_lines(&text).map_err(|error| refused(&lines, error.to_string()))?
            }
            Some(tokenizer) => {
                let pieces = tokenizer.pieces().map_err(|message| refused(&path, message))?;
                Pieces::of(pieces).map_err(|error| refused(&path, error.to_string()))?
            }
            None => return Err(refused(folder, format!("it has neither `{LINES}` nor `{TOKENIZER}`"))),
        };
        let plain =
            known.unwrap_or(if has_capitals(&pieces) { BertNormalizer::CASED } else { BertNormalizer::UNCASED });
        pieces.normalizer = BertNormalizer {
            lowercase: settings.do_lower_case.unwrap_or(plain.lowercase),
            strip_accents: settings.strip_accents.or(plain.strip_accents),
            handle_chinese_chars: settings.tokenize_chinese_chars.unwrap_or(plain.handle_chinese_chars),
            ..plain
        };
        pieces.longest_word = longest_word;
        Ok(pieces)
    }
}

impl Tokenizer {
    /// Rejects tokenizers that would split texts differently.
    fn check(&self) -> std::result::Result<(), String> {
        let normalizer = self.normalizer.as_ref().map_or("BertNormalizer", |normalizer| &normalizer.kind);
        let before = self.pre_tokenizer.as_ref().map_or("BertPreTokenizer", |before| &before.kind);
        let expected = [
            ("model", self.model.kind.as_str(), "WordPiece"),
            ("normalizer", normalizer, "BertNormalizer"),
            ("pre_tokenizer", before, "BertPreTokenizer"),
            ("unk_token", &self.model.unk_token, UNKNOWN),
            ("continuing_subword_prefix", &self.model.continuing_subword_prefix, INSIDE),
        ];
        match expected.into_iter().find(|(_, found, expected)| found != expected) {
            Some((what, found, expected)) => Err(format!("its `{what}` is `{found}`, not `{expected}`")),
            None => Ok(()),
        }
    }

    /// All wordpieces in order, including added tokens.
    fn pieces(self) -> std::result::Result<Vec<String>, String> {
        let mut vocab = self.model.vocab;
        for Added { id, content } in self.added_tokens {
            vocab.entry(content).or_insert(id);
        }
        let mut pieces: Vec<(u32, String)> = vocab.into_iter().map(|(piece, row)| (row, piece)).collect();
        pieces.sort_unstable();
        match pieces.iter().zip(0..).find(|((row, _), place)| row != place) {
            Some(((row, piece), place)) => {
                Err(format!("the id of `{piece}` is {row}, expected {place}: ids are missing or duplicated"))
            }
            None => Ok(pieces.into_iter().map(|(_, piece)| piece).collect()),
        }
    }
}

fn has_capitals(pieces: &Pieces) -> bool {
    let special = |piece: &str| piece.starts_with('[') && piece.ends_with(']');
    pieces.pieces.iter().any(|piece| !special(piece) && piece.chars().any(char::is_uppercase))
}

/// Parses a JSON file; `None` if it does not exist.
fn read_json<T: DeserializeOwned>(path: &PathBuf, wrong: &str) -> Result<Option<T>> {
    match std::fs::read_to_string(path) {
        Ok(text) => serde_json::from_str(&text).map(Some).map_err(|error| refused(path, format!("{wrong}: {error}"))),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Error::io("read", path, error)),
    }
}

fn refused(path: &Path, message: String) -> Error {
    let hint = "use a BERT checkpoint folder with a WordPiece vocabulary, `vocab.txt` or `tokenizer.json`";
    Error::artifact(path, message).with_hint(hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        files.iter().for_each(|(name, text)| std::fs::write(folder.path().join(name), text).unwrap());
        folder
    }

    fn read(files: &[(&str, &str)]) -> Result<Pieces> {
        Pieces::read(folder(files).path())
    }

    #[test]
    fn a_tokenizer_of_a_checkpoint_is_read_in_both_forms() {
        let json = r#"{"normalizer":{"lowercase":true},"model":{"type":"WordPiece","vocab":{"[UNK]":0,"liver":1}},
            "added_tokens":[{"id":0,"content":"[UNK]"},{"id":2,"content":"[Ms]"}]}"#;
        let pieces = read(&[(TOKENIZER, json)]).unwrap();
        assert_eq!((pieces.rows("Liver"), pieces.find("[Ms]"), pieces.len()), (vec![1], Some(2), 3));
        let pieces = read(&[(TOKENIZER, json), (LINES, "[PAD]\n[UNK]\nliver\n")]).unwrap();
        assert_eq!(pieces.rows("liver"), [2]);
    }

    #[test]
    fn capitals_stay_where_settings_or_the_vocabulary_say_so() {
        let (cased, uncased) = ("[UNK]\nLiver\nliver\n", "[UNK]\n[CLS]\nliver\n");
        let lower = |files: &[(&str, &str)]| read(files).unwrap().normalizer.lowercase;
        assert!(!lower(&[(LINES, cased)]) && lower(&[(LINES, uncased)]));
        assert!(lower(&[(LINES, cased), (SETTINGS, r#"{"do_lower_case": true}"#)]));
        assert!(!lower(&[(LINES, uncased), (SETTINGS, r#"{"do_lower_case": false}"#)]));
        let json = r#"{"normalizer":{"type":"BertNormalizer","lowercase":false,"strip_accents":true},
            "model":{"vocab":{"[UNK]":0}}}"#;
        let pieces = read(&[(LINES, uncased), (TOKENIZER, json)]).unwrap();
        assert_eq!(pieces.normalizer, BertNormalizer { strip_accents: Some(true), ..BertNormalizer::CASED });
        assert!(lower(&[(LINES, cased), (TOKENIZER, json), (SETTINGS, r#"{"do_lower_case": true}"#)]));
    }

    #[test]
    fn what_would_divide_texts_in_another_way_is_refused() {
        let refused = |files: &[(&str, &str)]| {
            let error = read(files).unwrap_err();
            assert!(error.hint().is_some());
            error.to_string()
        };
        assert!(refused(&[]).contains("neither `vocab.txt` nor `tokenizer.json`"));
        assert!(refused(&[(LINES, "liver\n")]).contains("vocab.txt: the vocabulary lacks the token [UNK]"));
        for (json, expected) in [
            (r#"{"model":{"type":"BPE","vocab":{}}}"#, "its `model` is `BPE`, not `WordPiece`"),
            (r#"{"model":{"vocab":{"[UNK]":1}}}"#, "the id of `[UNK]` is 1, expected 0"),
            (r#"{"model":{"vocab":{}},"normalizer":{"type":"NFC"}}"#, "its `normalizer` is `NFC`"),
            (r#"{"model":{"vocab":{}},"pre_tokenizer":{"type":"Metaspace"}}"#, "its `pre_tokenizer` is `Metaspace`"),
            (r#"{"model":{"vocab":{},"unk_token":"<unk>"}}"#, "its `unk_token` is `<unk>`"),
            (r#"{"model":"#, "not a WordPiece tokenizer"),
        ] {
            let message = refused(&[(TOKENIZER, json)]);
            assert!(message.contains(expected), "{message}");
        }
    }
}
