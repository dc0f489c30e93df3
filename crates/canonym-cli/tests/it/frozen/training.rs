//! A few steps of each recipe: losses, gradients, scores of rounds, the report, and what the model links.

use serde_json::{Map, Value};

use super::{check, json_lines, place};
use crate::support::Workplace;

/// Trains an experiment, then runs `commands`, which name the model `out`.
fn train(experiment: &str, commands: &[&str]) {
    let place = place();
    let file = format!("{experiment}.toml");
    json_lines(&place, &["train", &file, "--allow-seen", "--data-root", ".", "--out", "out"]);
    let mut made = Map::new();
    let logs = files(&place, "out", "log.csv");
    if !logs.is_empty() {
        made.insert("steps".to_owned(), logs.iter().flat_map(|log| steps(log)).collect());
        let rounds = files(&place, "out", "log.jsonl");
        let lines = rounds.iter().flat_map(|log| log.lines()).map(|line| serde_json::from_str::<Value>(line).unwrap());
        made.insert("rounds".to_owned(), lines.collect());
    }
    let reports = files(&place, "out", "report.json");
    made.insert(
        "report".to_owned(),
        reports.iter().map(|report| serde_json::from_str::<Value>(report).unwrap()).collect(),
    );
    for command in commands {
        let arguments: Vec<&str> = command.split(' ').collect();
        made.insert((*command).to_owned(), json_lines(&place, &arguments));
    }
    check(&format!("training-{experiment}"), Value::Object(made));
}

/// The texts of the files below a folder whose name ends so, in the order of their paths.
fn files(place: &Workplace, folder: &str, end: &str) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(place.path(folder))
        .unwrap()
        .map(|entry| format!("{folder}/{}", entry.unwrap().file_name().into_string().unwrap()))
        .collect();
    names.sort();
    let below = names.iter().flat_map(|name| match place.path(name).is_dir() {
        true => files(place, name, end),
        false if name.ends_with(end) => vec![std::fs::read_to_string(place.path(name)).unwrap()],
        false => Vec::new(),
    });
    below.collect()
}

/// The steps of a log, without seconds. Stage, step and rate are compared as they are written.
fn steps(log: &str) -> Vec<Value> {
    assert!(log.starts_with("stage,step,loss,rate,norm,seconds\n"), "{log}");
    let step = |line: &str| {
        let fields: Vec<&str> = line.split(',').collect();
        let number = |text: &str| text.parse::<f64>().unwrap();
        serde_json::json!([fields[0], fields[1], number(fields[2]), fields[3], number(fields[4])])
    };
    log.lines().skip(1).map(step).collect()
}

#[test]
fn rescnn() {
    train("rescnn", &["map --model out ailments.txt"]);
}

#[test]
fn dual_encoder_end_to_end() {
    train("dual-encoder", &["link --model out --to jsonl --mentions gold notes.jsonl"]);
}

#[test]
fn dual_encoder_for_given_mentions() {
    train("dual-encoder-given", &["link --model out --to jsonl --mentions gold notes.jsonl"]);
}

#[test]
fn cross_encoder() {
    train("cross-encoder", &["link --model bm25 --rerank out --kb ailments.kb --to jsonl --mentions gold notes.jsonl"]);
}

#[test]
fn multitask_per_token() {
    train(
        "multitask",
        &[
            "link --model out --kb ailments.kb --to jsonl notes.jsonl",
            "link --model out --kb ailments.kb --to jsonl --mentions gold --explain notes.jsonl",
            "model info out --json",
        ],
    );
}

#[test]
fn multitask_per_entity() {
    train("multitask-entity", &["link --model out --kb ailments.kb --to jsonl notes.jsonl"]);
}

#[test]
fn bilstm_crf() {
    train("bilstm-crf", &["link --model out --kb ailments.kb --to jsonl notes.jsonl"]);
}

#[test]
fn generative() {
    train(
        "generative",
        &[
            "link --model out --kb ailments.kb --to jsonl --mentions gold --top-k 2 notes.jsonl",
            "map --model out --kb ailments.kb --top-k 2 ailments.txt",
            "model info out --json",
        ],
    );
}

#[test]
fn tagger() {
    train("tagger", &[]);
}

/// The recipe of the default bundle.
#[test]
fn pipeline() {
    train("pipeline", &["link --model out --kb ailments.kb --to jsonl notes.jsonl"]);
}

#[test]
fn adaptation() {
    train("adaptation", &["link --model out --to jsonl --kb gadgets.kb gadgets-dev.jsonl"]);
}

#[test]
fn sampling() {
    train("sampling", &[]);
}

#[test]
fn lexical() {
    train("lexical", &["map --model out --kb ailments.kb ailments.txt"]);
}

#[test]
fn recognition() {
    train("recognition", &["link --model out --kb ailments.kb --to jsonl notes.jsonl"]);
}

#[test]
fn known_words() {
    let place = place();
    json_lines(&place, &["train", "known-words.toml", "--data-root", ".", "--out", "out"]);
    let bytes = std::fs::read(place.path("out/known-words.bin")).unwrap();
    let hexadecimal: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    check("training-known-words", hexadecimal.into());
}
