//! Tokenizers of each kind, with their tokens and bytes.

use canonym_neural::tokenizer::{Token, Tokenizer};
use expect_test::{Expect, expect};
use serde_json::{Value, json};

/// A `tokenizer.json`; truncation and padding must not matter.
fn tokenizer(normalizer: Value, pre_tokenizer: Value, model: Value) -> Value {
    json!({
        "version": "1.0",
        "truncation": {"direction": "Right", "max_length": 2, "strategy": "LongestFirst", "stride": 0},
        "padding": {
            "strategy": {"Fixed": 4}, "direction": "Right", "pad_to_multiple_of": null, "pad_id": 0, "pad_type_id": 0, "pad_token": "<pad>",
        },
        "added_tokens": [special(0, "<s>"), special(1, "</s>"), special(2, "<unk>")],
        "normalizer": normalizer,
        "pre_tokenizer": pre_tokenizer,
        "post_processor": {"type": "RobertaProcessing", "sep": ["</s>", 1], "cls": ["<s>", 0], "trim_offsets": false, "add_prefix_space": false},
        "decoder": null,
        "model": model,
    })
}

fn special(id: u32, content: &str) -> Value {
    json!({
        "id": id, "content": content, "single_word": false, "lstrip": false, "rstrip": false, "normalized": false, "special": true,
    })
}

/// Tokens by id.
fn rows(tokens: &[&str]) -> Value {
    tokens
        .iter()
        .zip(0..)
        .map(|(token, id): (_, u32)| ((*token).to_owned(), json!(id)))
        .collect::<serde_json::Map<_, _>>()
        .into()
}

fn opened(json: &Value) -> Tokenizer {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("tokenizer.json"), json.to_string()).unwrap();
    Tokenizer::read(folder.path()).unwrap()
}

fn check(json: &Value, text: &str, expected: Expect) {
    let tokenizer = opened(json);
    let shown = |tokenizer: &Tokenizer| {
        let line = |piece: Token| {
            format!("{} {}..{} {:?}\n", piece.row, piece.start, piece.end, &text[piece.start..piece.end])
        };
        tokenizer.tokens(text).into_iter().map(line).collect::<String>()
    };
    expected.assert_eq(&shown(&tokenizer));
    // A bundle stores it.
    assert_eq!(shown(&Tokenizer::from_json(&tokenizer.to_text()).unwrap()), shown(&tokenizer));
    assert!(tokenizer.input_ids("").is_empty());
}

fn word_piece() -> Value {
    let model = json!({
        "type": "WordPiece", "unk_token": "<unk>", "continuing_subword_prefix": "##", "max_input_chars_per_word": 20,
        "vocab": rows(&["<s>", "</s>", "<unk>", "liver", "##wort", "ol", "β"]),
    });
    let normalizer = json!({
        "type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true, "strip_accents": null, "lowercase": true,
    });
    tokenizer(normalizer, json!({"type": "BertPreTokenizer"}), model)
}

/// `Ã` and `ĸ` stand for the bytes of `Ö`, `Ġ` for a blank.
fn byte_level() -> Value {
    let model = json!({
        "type": "BPE", "dropout": 0.5, "unk_token": null, "continuing_subword_prefix": null, "end_of_word_suffix": null,
        "fuse_unk": false, "byte_fallback": false, "ignore_merges": false,
        "vocab": rows(&["<s>", "</s>", "<unk>", "l", "i", "v", "e", "r", "Ġ", "Ã", "ĸ", "li", "ver", "ve", "liver", "Ġliver", "Î", "²"]),
        "merges": [["l", "i"], ["v", "e"], ["ve", "r"], ["li", "ver"], ["Ġ", "liver"]],
    });
    let pre_tokenizer =
        json!({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": false, "use_regex": true});
    tokenizer(Value::Null, pre_tokenizer, model)
}

fn unigram() -> Value {
    let scores = [
        ("<s>", 0.0),
        ("</s>", 0.0),
        ("<unk>", 0.0),
        ("▁", -3.0),
        ("▁liver", -2.0),
        ("▁li", -3.0),
        ("ver", -3.0),
        ("wort", -2.0),
        ("öl", -2.0),
        ("β", -4.0),
        ("▁β", -5.0),
    ];
    let model = json!({"type": "Unigram", "unk_id": 2, "byte_fallback": false, "vocab": scores});
    let pre_tokenizer = json!({"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": true});
    tokenizer(json!({"type": "NFKC"}), pre_tokenizer, model)
}

#[test]
fn word_piece_tokens_have_the_bytes_of_the_text() {
    check(
        &word_piece(),
        "Liverwort, <unk> Öl β中",
        expect![[r#"
            3 0..5 "Liver"
            4 5..9 "wort"
            2 9..10 ","
            2 11..12 "<"
            2 12..15 "unk"
            2 15..16 ">"
            5 17..20 "Öl"
            6 21..23 "β"
            2 23..26 "中"
        "#]],
    );
    check(
        &word_piece(),
        &"liver".repeat(5),
        expect![[r#"
            2 0..25 "liverliverliverliverliver"
        "#]],
    );
}

#[test]
fn byte_level_tokens_are_whole_characters_without_blanks() {
    check(
        &byte_level(),
        "liver Ölliver  liver β",
        expect![[r#"
            14 0..5 "liver"
            8 5..6 " "
            9 6..8 "Ö"
            10 6..8 "Ö"
            3 8..9 "l"
            14 9..14 "liver"
            8 14..15 " "
            15 16..21 "liver"
            8 21..22 " "
            16 22..24 "β"
            17 22..24 "β"
        "#]],
    );
}

#[test]
fn unigram_tokens_have_the_bytes_of_the_text() {
    check(
        &unigram(),
        "liver  liverwort Öl öl ﬁβ",
        expect![[r#"
            4 0..5 "liver"
            3 5..6 " "
            4 7..12 "liver"
            7 12..16 "wort"
            3 16..17 " "
            2 17..20 "Öl"
            3 20..21 " "
            8 21..24 "öl"
            3 24..25 " "
            2 25..28 "ﬁ"
            9 28..30 "β"
        "#]],
    );
}

#[test]
fn sequences_begin_and_end_with_the_tokens_of_the_tokenizer() {
    for json in [word_piece(), byte_level(), unigram()] {
        let mut tokenizer = opened(&json);
        assert_eq!((tokenizer.ends().unwrap(), tokenizer.unknown, tokenizer.rules()), ((0, 1), 2, None));
        let n = tokenizer.len();
        assert_eq!((tokenizer.add("[Ms]").unwrap(), tokenizer.len()), (n as u32, n + 1));
        assert_eq!(tokenizer.input_ids("liver [Ms]"), opened(&json).input_ids("liver [Ms]"));
        assert_eq!(Tokenizer::from_json(&tokenizer.to_text()).unwrap(), tokenizer);
    }
}

#[test]
fn a_tokenizer_without_a_token_for_unknown_words_is_refused() {
    for (json, expected) in [
        (word_piece(), "the vocabulary lacks the token <unk>"),
        (byte_level(), "the vocabulary lacks a token for unknown words, such as [UNK]"),
    ] {
        let json = json
            .to_string()
            .replace(r#""<unk>":2"#, r#""<pad>":2"#)
            .replace(r#""content":"<unk>""#, r#""content":"<pad>""#);
        let error = Tokenizer::from_json(&json).unwrap_err();
        assert!(error.hint().is_some());
        assert_eq!(error.to_string(), expected);
    }
}
