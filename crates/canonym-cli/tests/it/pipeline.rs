//! The tagger and the pipeline: trained on made-up texts, and as they are built in.

use std::fmt::Write as _;

use crate::support::{Workplace, everyday};

const CONCEPTS: &str =
    "S1\tcirclitis\tround ache\nS2\tsquare fever\tquad fever\nS3\ttrigonosis\tthree corner disease\n";

/// Documents that say of the concepts in turn that somebody has them.
fn documents(n: usize, shift: usize) -> String {
    let names = [("circlitis", "S1"), ("quad fever", "S2"), ("trigonosis", "S3"), ("three corner disease", "S3")];
    let who = ["A man", "The patient", "One woman", "Somebody"];
    let mut lines = String::new();
    for row in 0..n {
        let ((name, id), who) = (names[(row + shift) % names.len()], who[(row / 4 + shift) % who.len()]);
        let text = format!("{who} suffers from {name}. Others do not.");
        let start = text.find(name).unwrap();
        let span = format!("[[{start},{}]]", start + name.len());
        let mention = format!(r#"{{"spans":{span},"text":"{name}","type":"Ache","ids":["{id}"]}}"#);
        writeln!(lines, r#"{{"id":"{row}","text":"{text}","annotations":[{mention}]}}"#).unwrap();
    }
    lines
}

const TAGGER: &str = r#"
system = "tagger"
seed = 1
vocabulary = { least = 1, most = 50 }
model = { word_dim = 8, n_grams = 64, gram_dim = 8, shape_dim = 4, width = 16, distances = [1, 1], share_after = 1 }
batch = { batch = 8 }
run = { n_steps = 60, mining_interval = 30, evaluate_every = 1, adam = { learning_rate = 1e-2 } }
layer = [{ name = "Ache", of = { type = "Ache", covers = 0.05 } }]

[[corpus]]
name = "train"
role = "fit"
documents = "train.jsonl"
ids = "X"
teaches = { Ache = ["Ache"] }

[[corpus]]
name = "dev"
role = "dev"
documents = "dev.jsonl"
teaches = { Ache = ["*"] }

[[gazetteer]]
class = "ache"
terminology = "concepts.tsv"
"#;

const NAMES: &str = r#"
system = "rescnn"
seed = 1
data = { terminology = { path = "concepts.tsv", format = "tsv" }, queries = "queries.tsv", dev_queries = "queries.tsv" }
vocabulary = { size = 60, dim = 8 }
model = { width = 8, n_filters = 4, hidden = 8, n_blocks = 1 }
train = { batch = { batch = 4 }, run = { n_steps = 4, mining_interval = 2 } }
"#;

const PIPELINE: &str = r#"
system = "pipeline"
tagger = "tagger.toml"
names = "names.toml"
refit = true
card = "Made up."

[[held_out]]
name = "dev"
documents = "dev.jsonl"
terminology = "concepts.tsv"
count_unlinked = true
"#;

#[test]
fn a_pipeline_is_trained_and_links_what_it_was_trained_for() {
    let place = Workplace::new();
    place.write("concepts.tsv", CONCEPTS);
    place.write("train.jsonl", documents(24, 0));
    place.write("dev.jsonl", documents(12, 1));
    place.write("queries.tsv", "circlitis\tS1\nquad fever\tS2\n");
    for (name, text) in [("tagger.toml", TAGGER), ("names.toml", NAMES), ("pipeline.toml", PIPELINE)] {
        place.write(name, text);
    }
    let train = ["train", "pipeline.toml", "--allow-seen", "--data-root", ".", "--out", "model"];
    // The texts of the part that judges stand in the training part, too.
    let refused = place.run(&["train", "pipeline.toml", "--data-root", ".", "--out", "model"], "");
    let told = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success() && told.contains("dev: 12 of 12 documents were seen in training"), "{told}");
    assert!(!place.path("model/names").exists() && !place.path("model/tagger").exists(), "refused before any training");
    // What the embedded weights of recognition learned from counts, too.
    place.write("known.jsonl", everyday("0", 1));
    let known = ["--set", "held_out.0.documents=known.jsonl"];
    let refused =
        place.run(&[&["train", "pipeline.toml", "--data-root", ".", "--out", "model"], &known[..]].concat(), "");
    let told = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(told.contains("recognition weights (trained on 1 of runs/everyday/texts-teach.jsonl)"), "{told}");
    let trained = place.run(&train, "");
    assert!(trained.status.success(), "{}", String::from_utf8_lossy(&trained.stderr));
    let report = std::fs::read_to_string(place.path("model/report.json")).unwrap();
    let report: serde_json::Value = serde_json::from_str(&report).unwrap();
    assert!(report["scores"]["dev"]["links"][2].as_f64().unwrap() > 0.9, "{report}");
    assert_eq!((&report["seen"]["dev"]["n_seen"], &report["seen"]["dev"]["n_documents"]), (&12.into(), &12.into()));
    let of_tagger = std::fs::read_to_string(place.path("model/tagger/tagger-report.json")).unwrap();
    let of_tagger: serde_json::Value = serde_json::from_str(&of_tagger).unwrap();
    assert_eq!(of_tagger["seen"]["dev"]["n_seen"], 12, "{of_tagger}");
    let halves = &report["by_halves"]["dev"];
    assert_eq!(halves["n_links"], report["scores"]["dev"]["n_links"], "{report}");
    assert!((0.0..=1.0).contains(&halves["links"][2].as_f64().unwrap()), "{report}");
    // A training that is done is not done again, and ends with the same bytes.
    let first = std::fs::read(place.path("model/model.safetensors")).unwrap();
    assert!(place.run(&train, "").status.success());
    assert_eq!(std::fs::read(place.path("model/model.safetensors")).unwrap(), first);

    // The last training learns from the held-out part, too; the model from before it is kept to judge with.
    let card = |model: &str| {
        let said = place.run(&["model", "info", model], "");
        assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
        String::from_utf8(said.stdout).unwrap()
    };
    let (whole, held_out) = (card("model"), card("model/model-held-out.safetensors"));
    for shown in [&whole, &held_out] {
        assert!(shown.contains("train.jsonl: trained by tagger"), "{shown}");
        assert!(shown.contains("dev.jsonl: tuned by evidence weights"), "{shown}");
    }
    assert!(
        whole.contains("dev.jsonl: trained by tagger") && !held_out.contains("dev.jsonl: trained by tagger"),
        "{held_out}"
    );
    // The record can be written onto a model that is there; weights stay as they are.
    let onto = ["train", "pipeline.toml", "--data-root", ".", "--record-onto", "model"];
    assert!(place.run(&onto, "").status.success());
    assert_eq!(std::fs::read(place.path("model/model.safetensors")).unwrap(), first);

    // A simulation that takes its weights of evidence from another model asks what those were tuned on.
    place.write("tuned.jsonl", everyday("0", 8));
    place.write(
        "sampling.toml",
        "system = \"sampling\"\nseeds = [1]\nfrom = \"model\"\ndecision_of = \"default\"\npool = [\"train.jsonl\"]\nheld_out = [\"tuned.jsonl\"]\n\
         terminology = { path = \"concepts.tsv\" }\nstrategies = [\"random\"]\nsizes = [1]\nsteps_per_document = 1\nleast_steps = 1\n\
         most_steps = 1\nuse_counts = 1\n",
    );
    let refused = place.run(&["train", "sampling.toml", "--data-root", ".", "--out", "simulated"], "");
    let told = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(told.contains("evidence weights (tuned on 1 of runs/everyday/texts-fit.jsonl)"), "{told}");
    assert!(!told.contains("tagger ("), "{told}");

    place.run(&["kb", "build", "concepts.tsv", "--out", "concepts.kb"], "");
    let text = "Somebody suffers from trigonosis. Others do not.";
    let link = ["link", "--model", "model", "--kb", "concepts.kb", "--to", "jsonl", "--text", text];
    let linked = place.run(&link, "");
    let line: serde_json::Value = serde_json::from_slice(&linked.stdout).unwrap();
    let mention = &line["annotations"][0];
    assert_eq!((mention["text"].as_str(), mention["type"].as_str()), (Some("trigonosis"), Some("Ache")), "{line}");
    assert_eq!(mention["candidates"][0]["id"], "S3");
    let alone = place.run(&["train", "tagger.toml", "--allow-seen", "--data-root", ".", "--out", "tagger"], "");
    assert!(alone.status.success(), "{}", String::from_utf8_lossy(&alone.stderr));
    assert!(place.path("tagger/tagger-report.json").exists());
}

#[test]
fn the_model_that_is_built_in_gives_types_and_mentions_without_a_concept() {
    let place = Workplace::new();
    let text = "Zolbenaprine was given for anaemia. Anaemia improved in 3 patients with chronic kidney disease (CKD); CKD did not.";
    let said = place.run(&["link", "--to", "jsonl", "--text", text], "");
    let line: serde_json::Value = serde_json::from_slice(&said.stdout).unwrap();
    let found: Vec<(&str, bool, &str)> = line["annotations"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| {
            let best = if one["nil"] == true { "" } else { one["candidates"][0]["id"].as_str().unwrap() };
            (one["text"].as_str().unwrap(), one["nil"] == true, best)
        })
        .collect();
    let (anaemia, kidney) = ("MESH:D000740", "MESH:D051436");
    let expected = [
        ("Zolbenaprine", true, ""),
        ("anaemia", false, anaemia),
        ("Anaemia", false, anaemia),
        ("chronic kidney disease", false, kidney),
        ("CKD", false, kidney),
        ("CKD", false, kidney),
    ];
    assert_eq!(found, expected);
    assert_eq!(line["annotations"][0]["type"], "Chemical");
    // Links can be asked for that are surer than usual, or less sure.
    let n_linked = |least: &str| {
        let said = place.run(&["link", "--to", "jsonl", "--min-score", least, "--text", text], "");
        let line: serde_json::Value = serde_json::from_slice(&said.stdout).unwrap();
        let annotations = line["annotations"].as_array().unwrap().clone();
        (annotations.len(), annotations.iter().filter(|one| one["nil"] == false).count())
    };
    assert_eq!(n_linked("1"), (6, 0));
    assert!(n_linked("0.001").1 >= 5);
    // The same on any number of threads, and with reasons that add up.
    let one = place.run(&["link", "--to", "jsonl", "--threads", "1", "--text", text], "");
    assert_eq!(one.stdout, said.stdout);
    let explained = place.run(&["link", "--to", "jsonl", "--explain", "--text", text], "");
    let line: serde_json::Value = serde_json::from_slice(&explained.stdout).unwrap();
    let candidate = &line["annotations"][1]["explanation"]["candidates"][0];
    let parts = candidate["contributions"].as_array().unwrap();
    let sum: f64 = parts.iter().map(|part| part["log_odds"].as_f64().unwrap()).sum();
    let log_odds = candidate["log_odds"].as_f64().unwrap();
    assert!((sum - log_odds).abs() < 1e-2, "{candidate}");
    let score = line["annotations"][1]["score"].as_f64().unwrap();
    assert!((1.0 / (1.0 + (-log_odds).exp()) - score).abs() < 1e-2, "{score} {candidate}");
}

#[test]
fn words_alone_decide_where_the_tagger_knows_nothing_of_the_terminology() {
    let place = Workplace::with_shapes();
    let text = "A quad and a pie slice in gout.";
    let found = |model: &str| {
        let said = place.run(&["link", "--kb", "shapes.kb", "--to", "jsonl", "--model", model, "--text", text], "");
        let line: serde_json::Value = serde_json::from_slice(&said.stdout).unwrap();
        let annotations = line["annotations"].as_array().unwrap().clone();
        annotations
            .iter()
            .map(|one| format!("{} {} {}", one["text"], one["nil"], one["candidates"][0]["id"]))
            .collect::<Vec<_>>()
    };
    assert_eq!(found("lexical"), [r#""quad" false "X:S2""#, r#""pie slice" false "X:S3""#]);
    assert_eq!(found("default"), found("lexical"));
}

#[test]
fn what_no_tagger_can_be_trained_on_is_refused() {
    let place = Workplace::new();
    place.write("concepts.tsv", CONCEPTS);
    place.write("train.jsonl", documents(4, 0));
    place.write("dev.jsonl", documents(4, 1));
    let cases = [
        (TAGGER.replace("width = 16", "width = 0"), "a size is 0"),
        (TAGGER.replace("[\"*\"]", "\"*\""), "not a valid tagger experiment"),
        (TAGGER.replace("{ Ache = [\"Ache\"] }", "{ Pain = [\"Ache\"] }"), "unknown label set `Pain`"),
        (TAGGER.replace("train.jsonl", "missing.jsonl"), "missing.jsonl"),
        (TAGGER.replace("role = \"fit\"", "role = \"dev\""), "no training corpus"),
    ];
    for (config, expected) in cases {
        place.write("tagger.toml", config);
        let refused = place.run(&["train", "tagger.toml", "--allow-seen", "--data-root", ".", "--out", "model"], "");
        let said = String::from_utf8_lossy(&refused.stderr);
        assert!(refused.status.code() == Some(1) && said.contains(expected), "{said}");
    }
}
