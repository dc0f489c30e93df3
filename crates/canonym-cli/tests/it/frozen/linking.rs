//! Fixed texts and names, linked by each kind of model.

use serde_json::{Map, Value};

use super::{check, json_lines, place};

/// Runs commands and compares what they print, under the command line of each.
pub fn commands(name: &str, all: &[&str]) {
    let place = place();
    let mut outputs = Map::new();
    for command in all {
        let arguments: Vec<&str> = command.split(' ').collect();
        let lines = json_lines(&place, &arguments);
        assert!(!lines.as_array().unwrap().is_empty(), "{command} prints nothing");
        outputs.insert((*command).to_owned(), lines);
    }
    check(name, Value::Object(outputs));
}

#[test]
fn lexical_model() {
    commands(
        "lexical",
        &[
            "link --model lexical --to jsonl texts.jsonl",
            "link --model lexical --to jsonl --nested --min-score 0.2 --top-k 2 texts.jsonl",
            "link --model lexical --to jsonl --explain --top-k 2 texts.jsonl",
            "link --model lexical --to jsonl --mentions gold texts.jsonl",
            "link --model lexical --to jsonl --kb ailments.kb --mentions gold --explain --top-k 1 notes.jsonl",
            "link --model lexical --to jsonl --kb ailments.kb --abbreviations short-forms.tsv notes.jsonl",
            "map --model lexical names.txt",
            "map --model lexical --explain --top-k 1 names.txt",
        ],
    );
}

#[test]
fn default_model() {
    commands(
        "default",
        &[
            "link --to jsonl texts.jsonl",
            "link --to jsonl --context --nil drop --raw-ids --top-k 1 texts.jsonl",
            "link --to jsonl --nested --min-score 0.2 --top-k 2 texts.jsonl",
            "link --to jsonl --abbreviations short-forms.tsv --top-k 2 texts.jsonl",
            "link --to jsonl --explain --top-k 2 texts.jsonl",
            "link --to jsonl --mentions gold texts.jsonl",
            "link --to jsonl --kb ailments.kb --mentions gold --explain --top-k 1 notes.jsonl",
            "link --to jsonl --kb ailments.kb notes.jsonl",
            "map names.txt",
        ],
    );
}

#[test]
fn bm25() {
    commands(
        "bm25",
        &[
            "link --model bm25 --to jsonl --mentions gold texts.jsonl",
            "map --model bm25 names.txt",
            "map --model bm25 --explain --kb ailments.kb ailments.txt",
        ],
    );
}

#[test]
fn rescnn() {
    commands(
        "rescnn",
        &[
            "link --model rescnn-1 --kb ailments.kb --to jsonl --mentions gold notes.jsonl",
            "link --model rescnn-1 --kb ailments.kb --to jsonl --mentions gold --explain --top-k 1 notes.jsonl",
            "link --model rescnn-1 --kb ailments.kb --to jsonl notes.jsonl",
            "map --model rescnn-1 --kb ailments.kb ailments.txt",
            "map --model rescnn-1 --kb ailments.kb --explain --top-k 1 ailments.txt",
        ],
    );
}

#[test]
fn pipeline() {
    commands(
        "pipeline",
        &[
            "link --model pipeline-1 --kb ailments.kb --to jsonl notes.jsonl",
            "link --model pipeline-1 --kb ailments.kb --to jsonl --explain --top-k 2 notes.jsonl",
            "link --model pipeline-1 --kb ailments.kb --to jsonl --nested --context notes.jsonl",
            "link --model pipeline-1 --kb ailments.kb --to jsonl --mentions gold notes.jsonl",
            "map --model pipeline-1 --kb ailments.kb ailments.txt",
        ],
    );
}

#[test]
fn dual_encoder_end_to_end() {
    commands(
        "dual-encoder",
        &[
            "link --model dual-encoder-1 --kb ailments.kb --to jsonl notes.jsonl",
            "link --model dual-encoder-1 --kb ailments.kb --to jsonl --explain --top-k 2 notes.jsonl",
            "link --model dual-encoder-1 --kb ailments.kb --to jsonl --nested notes.jsonl",
            "link --model dual-encoder-1 --kb ailments.kb --to jsonl --mentions gold notes.jsonl",
            "link --model dual-encoder-1 --kb ailments.kb --to jsonl --mentions gold --explain --top-k 1 notes.jsonl",
            "map --model dual-encoder-1 --kb ailments.kb ailments.txt",
            "map --model dual-encoder-1 --kb ailments.kb --explain --top-k 1 ailments.txt",
        ],
    );
}

/// A dual encoder that finds no mentions links those of the default model.
#[test]
fn dual_encoder_for_given_mentions() {
    commands(
        "dual-encoder-given",
        &[
            "link --model dual-encoder-given-1 --kb ailments.kb --to jsonl notes.jsonl",
            "link --model dual-encoder-given-1 --kb ailments.kb --to jsonl --explain --top-k 2 notes.jsonl",
            "link --model dual-encoder-given-1 --kb ailments.kb --to jsonl --mentions gold notes.jsonl",
            "map --model dual-encoder-given-1 --kb ailments.kb ailments.txt",
        ],
    );
}

#[test]
fn cross_encoder_behind_other_models() {
    commands(
        "cross-encoder",
        &[
            "link --model lexical --rerank cross-encoder-1 --kb ailments.kb --to jsonl --mentions gold notes.jsonl",
            "link --model bm25 --rerank cross-encoder-1 --kb ailments.kb --to jsonl --mentions gold notes.jsonl",
            "link --model dual-encoder-1 --rerank cross-encoder-1 --kb ailments.kb --to jsonl --mentions gold notes.jsonl",
            "link --model default --rerank cross-encoder-1 --to jsonl --mentions gold texts.jsonl",
        ],
    );
}
