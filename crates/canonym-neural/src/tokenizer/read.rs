//! Reads tokenizers: `tokenizer.json` of any kind, and for BERT `vocab.txt` and `tokenizer_config.json`.

use std::panic::{UnwindSafe, catch_unwind};
use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;

use canonym_core::{Error, Result};
use serde::Deserialize;
use tokenizers::{ModelWrapper, NormalizerWrapper, PreTokenizerWrapper, Tokenizer as Library};

use super::{BertNormalizer, BertRules, HINT, INSIDE, LONGEST_WORD, Tokenizer, UNKNOWN, character_map};

const LINES: &str = "vocab.txt";
const TOKENIZER: &str = "tokenizer.json";
const SETTINGS: &str = "tokenizer_config.json";

/// Tokens for unknown words of models that name none, because they have a token for each byte.
const UNKNOWNS: [&str; 3] = [UNKNOWN, "<unk>", "<|endoftext|>"];

/// Characters that few vocabularies contain, to try out a tokenizer.
const SAMPLE: &str = "Aé\u{301} β 中文 ﬁ\u{a0}\u{200b}\u{1f9ec}\u{10fffd}\u{0}\n";

/// The fields of `tokenizer.json` that the library does not return.
#[derive(Deserialize)]
struct Fields {
    #[serde(default)]
    added_tokens: Vec<Added>,
    #[serde(default)]
    normalizer: serde_json::Value,
    model: Unknown,
}

#[derive(Deserialize)]
struct Added {
    id: u32,
    content: String,
}

#[derive(Deserialize)]
struct Unknown {
    unk_token: Option<String>,
    unk_id: Option<u32>,
}

/// The fields read from `tokenizer_config.json`.
#[derive(Deserialize)]
struct Settings {
    do_lower_case: Option<bool>,
    strip_accents: Option<bool>,
    tokenize_chinese_chars: Option<bool>,
}

impl Tokenizer {
    /// Reads the tokenizer of a checkpoint folder. For BERT, `vocab.txt` takes precedence over the vocabulary in `tokenizer.json`, and
    /// `tokenizer_config.json` over its normalisation; without either, a vocabulary with capitals is taken as cased.
    pub fn read(folder: &Path) -> Result<Tokenizer> {
        let (lines, json) = (folder.join(LINES), folder.join(TOKENIZER));
        let opened = match read_text(&json)? {
            Some(text) => Some(Tokenizer::from_json(&text).map_err(|error| refused(&json, error.to_string()))?),
            None => None,
        };
        let mut known = (None, LONGEST_WORD);
        if let Some(tokenizer) = &opened {
            let Some(settings) = bert_settings(&tokenizer.library) else { return Ok(tokenizer.clone()) };
            known = settings;
        }
        let (vocabulary, path) = match (read_text(&lines)?, opened) {
            (Some(text), _) => (text.lines().map(str::to_owned).collect(), lines),
            (None, Some(tokenizer)) => (in_order(&tokenizer.library).map_err(|message| refused(&json, message))?, json),
            (None, None) => return Err(refused(folder, format!("it has neither `{LINES}` nor `{TOKENIZER}`"))),
        };
        let guessed = if has_capitals(&vocabulary) { BertNormalizer::CASED } else { BertNormalizer::UNCASED };
        let (normalizer, longest_word) = (known.0.unwrap_or(guessed), known.1);
        let normalizer = with_settings(normalizer, &folder.join(SETTINGS))?;
        let tokenizer = Tokenizer::bert(vocabulary, BertRules { normalizer, longest_word });
        tokenizer.map_err(|error| refused(&path, error.to_string()))
    }

    /// Reads the content of a `tokenizer.json`. Its truncation, padding and random merges are not applied.
    pub fn from_json(text: &str) -> Result<Tokenizer> {
        let invalid = |message: String| Error::damaged(message).with_hint(HINT);
        let unreadable = |message: String| invalid(format!("invalid tokenizer: {message}"));
        let fields: Fields = serde_json::from_str(text).map_err(|error| unreadable(error.to_string()))?;
        character_map::check(&fields.normalizer).map_err(unreadable)?;
        let mut library = guarded(|| Library::from_str(text)).map_err(unreadable)?;
        library.with_truncation(None).map_err(|error| unreadable(error.to_string()))?;
        library.with_padding(None);
        library.set_encode_special_tokens(true);
        if let ModelWrapper::BPE(model) = library.get_model()
            && model.dropout.is_some()
        {
            let mut model = model.clone();
            model.dropout = None;
            library.with_model(model);
        }
        for Added { id, content } in &fields.added_tokens {
            if let Some(row) = library.token_to_id(content).filter(|row| row != id) {
                return Err(invalid(misplaced(content, *id, row)));
            }
        }
        let unknown = fields.unknown(&library).map_err(invalid)?;
        // Later texts are tokenised without a check.
        let library = guarded(|| library.encode(SAMPLE, true).map(|_| library)).map_err(unreadable)?;
        let last = library.get_vocab(true).into_values().max();
        Ok(Tokenizer {
            library: Arc::new(library),
            rules: None,
            unknown,
            n_rows: last.map_or(0, |last| last as usize + 1),
        })
    }
}

impl Fields {
    /// The id of the token for unknown words.
    fn unknown(&self, library: &Library) -> std::result::Result<u32, String> {
        if let Some(id) = self.model.unk_id {
            return Ok(id);
        }
        if let Some(name) = &self.model.unk_token {
            return library.token_to_id(name).ok_or_else(|| format!("the vocabulary lacks the token {name}"));
        }
        let known = UNKNOWNS.into_iter().find_map(|name| library.token_to_id(name));
        known.ok_or_else(|| format!("the vocabulary lacks a token for unknown words, such as {UNKNOWN}"))
    }
}

/// Turns panics of the library, which damaged files can cause, into messages.
fn guarded<T>(work: impl FnOnce() -> tokenizers::Result<T> + UnwindSafe) -> std::result::Result<T, String> {
    match catch_unwind(work) {
        Ok(result) => result.map_err(|error| error.to_string()),
        Err(_) => Err("the library `tokenizers` cannot process it".to_owned()),
    }
}

/// The normalisation, if given, and the longest word of a BERT tokenizer; `None` for any other.
fn bert_settings(library: &Library) -> Option<(Option<BertNormalizer>, usize)> {
    let ModelWrapper::WordPiece(model) = library.get_model() else { return None };
    let normalizer = match library.get_normalizer() {
        Some(NormalizerWrapper::BertNormalizer(settings)) => Some(settings.into()),
        Some(_) => return None,
        None => None,
    };
    let splits = matches!(library.get_pre_tokenizer(), None | Some(PreTokenizerWrapper::BertPreTokenizer(_)));
    let is_bert = splits && model.unk_token == UNKNOWN && model.continuing_subword_prefix == INSIDE;
    is_bert.then_some((normalizer, model.max_input_chars_per_word))
}

/// The normalisation that `tokenizer_config.json` changes, if there is one.
fn with_settings(plain: BertNormalizer, path: &Path) -> Result<BertNormalizer> {
    let Some(text) = read_text(path)? else { return Ok(plain) };
    let invalid = |error| refused(path, format!("invalid tokenizer settings: {error}"));
    let settings: Settings = serde_json::from_str(&text).map_err(invalid)?;
    Ok(BertNormalizer {
        lowercase: settings.do_lower_case.unwrap_or(plain.lowercase),
        strip_accents: settings.strip_accents.or(plain.strip_accents),
        handle_chinese_chars: settings.tokenize_chinese_chars.unwrap_or(plain.handle_chinese_chars),
        ..plain
    })
}

/// All tokens, whose ids must be 0, 1, 2, ….
fn in_order(library: &Library) -> std::result::Result<Vec<String>, String> {
    let mut vocabulary: Vec<(u32, String)> =
        library.get_vocab(true).into_iter().map(|(piece, id)| (id, piece)).collect();
    vocabulary.sort_unstable();
    match vocabulary.iter().zip(0..).find(|((id, _), place)| id != place) {
        Some(((id, piece), place)) => Err(misplaced(piece, *id, place)),
        None => Ok(vocabulary.into_iter().map(|(_, piece)| piece).collect()),
    }
}

fn misplaced(piece: &str, id: u32, expected: u32) -> String {
    format!("the id of `{piece}` is {id}, expected {expected}: ids are missing or duplicated")
}

fn has_capitals(vocabulary: &[String]) -> bool {
    let special = |piece: &str| piece.starts_with('[') && piece.ends_with(']');
    vocabulary.iter().any(|piece| !special(piece) && piece.chars().any(char::is_uppercase))
}

/// The text of a file; `None` if it does not exist.
fn read_text(path: &Path) -> Result<Option<String>> {
    match std::fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Error::io("read", path, error)),
    }
}

fn refused(path: &Path, message: String) -> Error {
    Error::artifact(path, message).with_hint(HINT)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        files.iter().for_each(|(name, text)| std::fs::write(folder.path().join(name), text).unwrap());
        folder
    }

    fn read(files: &[(&str, &str)]) -> Result<Tokenizer> {
        Tokenizer::read(folder(files).path())
    }

    /// A `tokenizer.json` of a BERT, with `changes` to its fields.
    fn bert(vocabulary: Value, changes: &[(&str, Value)]) -> String {
        let mut json = json!({
            "version": "1.0", "truncation": null, "padding": null, "added_tokens": [], "post_processor": null, "decoder": null,
            "normalizer": {
                "type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true, "strip_accents": null, "lowercase": true,
            },
            "pre_tokenizer": {"type": "BertPreTokenizer"},
            "model": {
                "type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##", "max_input_chars_per_word": 100,
                "vocab": vocabulary,
            },
        });
        for (pointer, value) in changes {
            *json.pointer_mut(pointer).unwrap() = value.clone();
        }
        json.to_string()
    }

    fn added(id: u32, content: &str) -> Value {
        json!({
            "id": id, "content": content, "single_word": false, "lstrip": false, "rstrip": false, "normalized": false, "special": true,
        })
    }

    #[test]
    fn a_tokenizer_of_a_checkpoint_is_read_in_both_forms() {
        let tokens = json!([added(0, "[UNK]"), added(2, "[Ms]")]);
        let json = bert(json!({"[UNK]": 0, "liver": 1}), &[("/added_tokens", tokens)]);
        let tokenizer = read(&[(TOKENIZER, &json)]).unwrap();
        assert_eq!((tokenizer.input_ids("Liver"), tokenizer.find("[Ms]"), tokenizer.len()), (vec![1], Some(2), 3));
        assert_eq!(tokenizer.rules(), Some(BertRules::UNCASED));
        let tokenizer = read(&[(TOKENIZER, &json), (LINES, "[PAD]\n[UNK]\nliver\n")]).unwrap();
        assert_eq!(tokenizer.input_ids("liver"), [2]);
    }

    #[test]
    fn capitals_stay_where_settings_or_the_vocabulary_say_so() {
        let (cased, uncased) = ("[UNK]\nLiver\nliver\n", "[UNK]\n[CLS]\nliver\n");
        let normalizer = |files: &[(&str, &str)]| read(files).unwrap().rules().unwrap().normalizer;
        let lower = |files: &[(&str, &str)]| normalizer(files).lowercase;
        assert!(!lower(&[(LINES, cased)]) && lower(&[(LINES, uncased)]));
        assert!(lower(&[(LINES, cased), (SETTINGS, r#"{"do_lower_case": true}"#)]));
        assert!(!lower(&[(LINES, uncased), (SETTINGS, r#"{"do_lower_case": false}"#)]));
        let changes = [("/normalizer/lowercase", json!(false)), ("/normalizer/strip_accents", json!(true))];
        let json = bert(json!({"[UNK]": 0}), &changes);
        let strips = BertNormalizer { strip_accents: Some(true), ..BertNormalizer::CASED };
        assert_eq!(normalizer(&[(LINES, uncased), (TOKENIZER, &json)]), strips);
        assert!(lower(&[(LINES, cased), (TOKENIZER, &json), (SETTINGS, r#"{"do_lower_case": true}"#)]));
        let json = bert(json!({"[UNK]": 0, "Liver": 1}), &[("/normalizer", Value::Null)]);
        assert_eq!(read(&[(TOKENIZER, &json)]).unwrap().input_ids("Liver liver"), [1, 0]);
    }

    #[test]
    fn a_wordpiece_tokenizer_with_other_rules_is_not_taken_for_that_of_a_bert() {
        let vocabulary = json!({"[UNK]": 0, "liver": 1, "-wort": 2, "@@wort": 3, "β": 4});
        for (changes, text, rows) in [
            (vec![("/pre_tokenizer", json!({"type": "WhitespaceSplit"}))], "Liver -wort", vec![1, 2]),
            (vec![("/model/continuing_subword_prefix", json!("@@"))], "Liverwort", vec![1, 3]),
            (vec![("/normalizer", json!({"type": "NFKD"}))], "Liver ᵦ", vec![0, 4]),
            (vec![("/model/unk_token", json!("liver"))], "kidney", vec![1]),
        ] {
            let json = bert(vocabulary.clone(), &changes);
            // `vocab.txt` cannot say this.
            let tokenizer = read(&[(TOKENIZER, &json), (LINES, "[UNK]\n")]).unwrap();
            assert_eq!((tokenizer.input_ids(text), tokenizer.rules()), (rows, None), "{changes:?}");
            assert_eq!(Tokenizer::from_json(&tokenizer.to_text()).unwrap(), tokenizer);
        }
    }

    #[test]
    fn a_damaged_tokenizer_is_refused_with_path_and_hint() {
        let refused = |files: &[(&str, &str)]| {
            let error = read(files).unwrap_err();
            assert!(error.hint().is_some(), "{error}");
            error.to_string()
        };
        assert!(refused(&[]).contains("neither `vocab.txt` nor `tokenizer.json`"));
        assert!(refused(&[(LINES, "")]).contains("vocab.txt: the vocabulary lacks the token [UNK]"));
        assert!(refused(&[(LINES, "liver\n")]).contains("vocab.txt: the vocabulary lacks the token [UNK]"));
        assert!(refused(&[(LINES, "[UNK]\na\na\n")]).contains("vocab.txt: the vocabulary contains a duplicate token"));
        assert!(
            refused(&[(LINES, "[UNK]\n"), (SETTINGS, "{")])
                .contains("tokenizer_config.json: invalid tokenizer settings")
        );
        let vocabulary = json!({"[UNK]": 0, "liver": 1});
        let charsmap = json!({"type": "Precompiled", "precompiled_charsmap": "damaged"});
        for (json, expected) in [
            (String::new(), "invalid tokenizer: EOF while parsing"),
            (r#"{"model":"#.to_owned(), "invalid tokenizer: EOF while parsing"),
            ("{}".to_owned(), "invalid tokenizer: missing field `model`"),
            (bert(json!({"liver": 0}), &[]), "the vocabulary lacks the token [UNK]"),
            (bert(json!({"[UNK]": 1}), &[]), "the id of `[UNK]` is 1, expected 0: ids are missing or duplicated"),
            (bert(json!({"[UNK]": 0, "liver": 0}), &[]), "the id of `liver` is 0, expected 1"),
            (
                bert(vocabulary.clone(), &[("/added_tokens", json!([added(7, "[Ms]")]))]),
                "the id of `[Ms]` is 7, expected 2",
            ),
            (bert(vocabulary.clone(), &[("/model/type", json!("Morphemes"))]), "invalid tokenizer: "),
            (bert(vocabulary.clone(), &[("/version", json!("9.0"))]), "Unknown tokenizer version '9.0'"),
            (
                bert(vocabulary, &[("/normalizer", charsmap)]),
                "invalid tokenizer: the character map of the normaliser is damaged",
            ),
        ] {
            let message = refused(&[(TOKENIZER, &json)]);
            assert!(message.contains(expected) && message.contains(TOKENIZER), "{message}");
        }
    }

    #[test]
    fn a_file_that_is_not_utf_8_is_refused_with_path_and_hint() {
        for name in [LINES, TOKENIZER, SETTINGS] {
            let folder = folder(&[(LINES, "[UNK]\n")]);
            std::fs::write(folder.path().join(name), b"[UNK]\nl\xedver\n").unwrap();
            let error = Tokenizer::read(folder.path()).unwrap_err();
            assert!(error.to_string().contains(name), "{error}");
            assert_eq!(error.hint(), Some("expected UTF-8 text: check the path, or convert the file"));
        }
    }
}
