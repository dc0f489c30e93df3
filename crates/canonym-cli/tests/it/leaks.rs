//! The guard of documents that a model has learned from: refused where it is judged, or told beside the figures, and shown on its card.

use serde_json::Value;

use crate::support::{Workplace, everyday};

/// Documents that name shapes, numbered from `first` on; the texts of no two numbers are the same.
fn documents(first: usize, n: usize) -> String {
    let names = [("circle", "X:S1"), ("square", "X:S2"), ("pie slice", "X:S3"), ("trigon", "X:S4")];
    let line = |at: usize| {
        let (name, id) = names[at % names.len()];
        let text = format!("Person {at} saw the {name} and left.");
        let start = text.find(name).unwrap();
        let span = format!("[[{start},{}]]", start + name.len());
        format!(
            r#"{{"id":"{at}","text":"{text}","annotations":[{{"spans":{span},"text":"{name}","type":"Shape","ids":["{id}"]}}]}}"#
        ) + "\n"
    };
    (first..first + n).map(line).collect()
}

const EXPERIMENT: &str = r#"
system = "recognition"
penalty = 1e-3
rounds = [1, 1]

[[corpus]]
name = "train"
role = "fit"
documents = "shapes/train.jsonl"
terminology = "shapes.tsv"
prefix = "X"

[[corpus]]
name = "dev"
role = "dev"
documents = "shapes/dev.jsonl"
terminology = "shapes.tsv"
prefix = "X"
"#;

/// A place with the model `model`, which was trained on documents 0 to 7 of the corpus `shapes`.
fn trained() -> Workplace {
    let place = Workplace::with_shapes();
    std::fs::create_dir(place.path("shapes")).unwrap();
    for (name, first, n) in [("train", 0, 8), ("dev", 100, 4), ("test", 200, 4), ("mixed", 6, 6)] {
        place.write(&format!("shapes/{name}.jsonl"), documents(first, n));
    }
    place.write("shapes.toml", EXPERIMENT);
    let output = place.run(&["train", "shapes.toml", "--data-root", ".", "--out", "model"], "");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    place
}

/// Whether it went well, standard output and standard error.
fn said(place: &Workplace, arguments: &[&str]) -> (bool, String, String) {
    let output = place.run(arguments, "");
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    (output.status.success(), text(&output.stdout), text(&output.stderr))
}

fn judge<'a>(data: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    [&["eval", "--model", "model", "--kb", "shapes.kb", "--resamples", "0", "--data", data], more].concat()
}

#[test]
fn documents_that_a_model_learned_from_are_refused_or_told_beside_the_figures() {
    let place = trained();
    let (ok, out, told) = said(&place, &judge("shapes/train.jsonl", &[]));
    assert!(!ok && out.is_empty(), "{out}{told}");
    assert!(told.contains("shapes/train.jsonl: 8 of 8 documents were seen in training by `model`"), "{told}");
    assert!(told.contains("recognition weights (trained on 8 of shapes/train.jsonl)"), "{told}");
    assert!(told.contains("hint: ") && told.contains("--allow-seen"), "{told}");
    // Another format and another place do not hide them.
    let (ok, _, told) = said(&place, &["convert", "shapes/train.jsonl", "copy.pubtator", "--to", "pubtator"]);
    assert!(ok, "{told}");
    let (ok, _, told) = said(&place, &judge("copy.pubtator", &[]));
    assert!(!ok && told.contains("8 of 8 documents were seen in training"), "{told}");
    // Two of six: told in the table and in JSON, the figures of both apart.
    let (ok, _, told) = said(&place, &judge("shapes/mixed.jsonl", &[]));
    assert!(!ok && told.contains("2 of 6 documents were seen in training"), "{told}");
    let (ok, table, told) = said(&place, &judge("shapes/mixed.jsonl", &["--allow-seen"]));
    assert!(ok && told.contains("warning: 2 of 6 documents were seen in training"), "{told}");
    assert!(table.contains("2 of 6 documents were seen in training"), "{table}");
    assert!(table.contains("2 seen: strict F1") && table.contains("4 unseen: strict F1"), "{table}");
    let (ok, json, told) = said(&place, &judge("shapes/mixed.jsonl", &["--allow-seen", "--json"]));
    assert!(ok, "{told}");
    let report: Value = serde_json::from_str(&json).unwrap();
    let seen = &report["seen"];
    assert_eq!((&seen["n_seen"], &seen["n_documents"]), (&2.into(), &6.into()), "{seen}");
    assert_eq!((&seen["seen_in"][0]["role"], &seen["seen_in"][0]["n_documents"]), (&"trained".into(), &2.into()));
    let apart = &seen["apart"];
    assert_eq!((&apart["seen"]["n_documents"], &apart["unseen"]["n_documents"]), (&2.into(), &4.into()), "{apart}");
    let gold = |report: &Value| report["counts"]["strict"]["n_gold"].as_u64().unwrap();
    assert_eq!(gold(&apart["seen"]) + gold(&apart["unseen"]), gold(&report));
}

#[test]
fn other_documents_are_judged_as_before_and_a_corpus_that_was_learned_from_is_told() {
    let place = trained();
    for data in ["shapes/test.jsonl", "shapes/dev.jsonl"] {
        let (ok, json, told) = said(&place, &judge(data, &["--json"]));
        assert!(ok, "{told}");
        // Recognition chooses nothing on its development part.
        assert!(
            told.contains("note: the model was trained on other documents of this corpus: shapes/train.jsonl"),
            "{told}"
        );
        let report: Value = serde_json::from_str(&json).unwrap();
        assert_eq!(report["seen"]["n_seen"], 0, "{report}");
        assert_eq!(report["seen"]["related"], serde_json::json!(["shapes/train.jsonl"]));
        assert!(report["seen"].get("apart").is_none(), "{report}");
    }
    std::fs::create_dir(place.path("other")).unwrap();
    place.write("other/test.jsonl", documents(300, 4));
    let (ok, _, told) = said(&place, &judge("other/test.jsonl", &[]));
    assert!(ok && !told.contains("note: "), "{told}");
    // A prediction file does not record what its model learned from, and a note says so.
    let of_files = ["--gold", "shapes/train.jsonl", "--pred", "shapes/train.jsonl"];
    let two = ["--gold", "shapes/train.jsonl", "shapes/train.jsonl", "shapes/train.jsonl"];
    for command in [[&["eval"], &of_files[..]].concat(), [&["compare"], &two[..]].concat()] {
        let (ok, _, told) = said(&place, &command);
        assert!(ok && told.contains("note: a prediction file does not record"), "{told}");
        assert!(
            !told.contains("seen") && told.contains("`canonym eval --data GOLD --model MODEL` checks it"),
            "{told}"
        );
        let (ok, _, told) = said(&place, &[&command[..], &["--quiet"]].concat());
        assert!(ok && told.is_empty(), "{told}");
    }
    // With mentions given, the weights that find some have no part.
    let (ok, _, told) = said(&place, &judge("shapes/train.jsonl", &["--mentions", "gold"]));
    assert!(ok, "{told}");
}

#[test]
fn a_training_refuses_documents_that_it_trains_on_or_says_it_in_its_report() {
    let place = trained();
    let set = "corpus.1.documents=shapes/mixed.jsonl";
    let train = ["train", "shapes.toml", "--data-root", ".", "--out", "other", "--set", set];
    let (ok, _, told) = said(&place, &train);
    assert!(!ok && told.contains("dev: 2 of 6 documents were seen in training"), "{told}");
    let (ok, _, told) = said(&place, &[&train[..], &["--allow-seen"]].concat());
    assert!(ok && told.contains("warning: dev: 2 of 6 documents were seen in training"), "{told}");
    let seen = |folder: &str| {
        let report = std::fs::read_to_string(place.path(&format!("{folder}/report.json"))).unwrap();
        serde_json::from_str::<Value>(&report).unwrap()["seen"].clone()
    };
    assert_eq!(seen("other")["dev"]["n_seen"], 2);
    assert_eq!(seen("model"), Value::Null);
    // Tables of queries have no ids of documents; the same names are the same file, whatever it is called.
    place.write("tr.tsv", "round thing\tX:S1\nquad\tX:S2\n");
    place.write("copy.tsv", "quad\tX:S2\nRound  thing\tX:S1\n");
    place.write("held-out.tsv", "pie piece\tX:S3\nbox\tX:S2\n");
    place.write("names.toml", NAMES);
    let train = |queries: &str, more: &[&str]| {
        let set = format!("data.dev_queries={queries}");
        let train = ["train", "names.toml", "--data-root", ".", "--out", "names", "--set", &set];
        let (ok, _, told) = said(&place, &[&train[..], more].concat());
        (ok, told)
    };
    for queries in ["tr.tsv", "copy.tsv"] {
        let (ok, told) = train(queries, &[]);
        assert!(!ok && told.contains("held-out queries: 1 of 1 documents was seen in training"), "{told}");
        assert!(told.contains("name encoder (trained on 1 of tr.tsv)") && told.contains("--allow-seen"), "{told}");
    }
    let (ok, told) = train("tr.tsv", &["--allow-seen"]);
    assert!(ok && seen("names")["n_seen"] == 1, "{told}");
    let (ok, told) = train("held-out.tsv", &[]);
    assert!(ok && seen("names").is_null(), "{told}");
}

const NAMES: &str = r#"
system = "rescnn"
seed = 1
data = { terminology = { path = "shapes.tsv", format = "tsv", prefix = "X" }, queries = "tr.tsv" }
vocabulary = { size = 60, dim = 8 }
model = { width = 8, n_filters = 4, hidden = 8, n_blocks = 1 }
train = { batch = { batch = 4 }, run = { n_steps = 4, mining_interval = 2 } }
"#;

/// Whatever is trained or simulated, the parts that come with the program take part.
#[test]
fn what_the_embedded_weights_learned_from_is_refused_where_models_are_trained() {
    let place = Workplace::new();
    let other = "{\"id\":\"1\",\"text\":\"A zorbomat.\",\"annotations\":[{\"spans\":[[2,10]],\"text\":\"zorbomat\",\"type\":\"Gadget\",\"ids\":[\"G:1\"]}]}\n";
    place.write("known.jsonl", everyday("0", 1));
    place.write("both.jsonl", everyday("0", 1) + other);
    place.write("pool.jsonl", other);
    place.write("gadgets.tsv", "G:1\tzorbomat\n");
    place.write("adapt.toml", "system = \"adaptation\"\nseed = 1\ndocuments = [\"both.jsonl\"]\nhold_out = 2\n");
    let sampling = "system = \"sampling\"\nseeds = [1]\nfrom = \"default\"\npool = [\"pool.jsonl\"]\nheld_out = [\"known.jsonl\"]\n\
                    terminology = { path = \"gadgets.tsv\" }\nstrategies = [\"random\"]\nsizes = [1]\nsteps_per_document = 1\n\
                    least_steps = 1\nmost_steps = 1\nuse_counts = 1\n";
    place.write("sampling.toml", sampling);
    for (name, told_of) in [("adapt", "held-out documents"), ("sampling", "test documents")] {
        let (ok, _, told) = said(&place, &["train", &format!("{name}.toml"), "--data-root", ".", "--out", "out"]);
        assert!(!ok && told.contains(&format!("{told_of}: 1 of 1 documents was seen in training")), "{told}");
        assert!(told.contains("recognition weights (trained on 1 of runs/everyday/texts-teach.jsonl)"), "{told}");
    }
}

#[test]
fn the_card_of_a_model_lists_what_it_learned_from() {
    let place = trained();
    let (ok, table, told) = said(&place, &["model", "info", "model"]);
    assert!(ok && table.contains("8  shapes/train.jsonl: trained by recognition weights"), "{table}{told}");
    let (ok, json, told) = said(&place, &["model", "info", "model", "--json"]);
    assert!(ok, "{told}");
    let info: Value = serde_json::from_str(&json).unwrap();
    let of_model = |one: &&Value| one["part"] == "recognition weights";
    let own: Vec<&Value> = info["learned"].as_array().unwrap().iter().filter(of_model).collect();
    assert_eq!(own.len(), 1, "{info}");
    assert_eq!((&own[0]["file"], &own[0]["n_documents"]), (&"shapes/train.jsonl".into(), &8.into()));
    let (ok, _, told) = said(&place, &["model", "info", "nothing"]);
    assert!(!ok && told.contains("no such model: `nothing`") && told.contains("hint: "), "{told}");
}

#[test]
fn a_model_without_a_record_opens_and_says_so_until_one_is_written() {
    let place = trained();
    let path = "model/model.json";
    let whole = std::fs::read_to_string(place.path(path)).unwrap();
    let mut old: serde_json::Map<String, Value> = serde_json::from_str(&whole).unwrap();
    assert!(old.remove("learned").is_some());
    place.write(path, serde_json::to_string_pretty(&old).unwrap() + "\n");
    let (ok, json, told) = said(&place, &judge("shapes/train.jsonl", &["--json"]));
    assert!(ok && told.contains("no training record for recognition weights"), "{told}");
    let report: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(report["seen"]["unrecorded"], serde_json::json!(["recognition weights"]), "{report}");
    let (_, table, _) = said(&place, &["model", "info", "model"]);
    assert!(table.contains("no training record  recognition weights"), "{table}");
    // The experiment writes it onto the model: the same that a training writes.
    let (ok, _, told) = said(&place, &["train", "shapes.toml", "--data-root", ".", "--record-onto", path]);
    assert!(ok && told.contains("8 documents recorded"), "{told}");
    assert_eq!(std::fs::read_to_string(place.path(path)).unwrap(), whole);
    assert!(!said(&place, &judge("shapes/train.jsonl", &[])).0);
    place.write(path, whole.replacen("\"document_prints\": \"", "\"document_prints\": \"-", 1));
    let (ok, _, told) = said(&place, &judge("shapes/test.jsonl", &[]));
    assert!(!ok && told.contains("Base64 of numbers of 8 bytes"), "{told}");
}

/// The embedded models have a record, whatever their last fit was; the documents of real corpora are not needed to see that.
#[test]
fn the_embedded_models_have_their_cards() {
    let place = Workplace::new();
    for (name, parts) in [
        ("default", &["tagger", "name encoder", "evidence weights", "lexical weights", "recognition weights"][..]),
        ("lexical", &["lexical weights", "recognition weights"]),
    ] {
        let (ok, json, told) = said(&place, &["model", "info", name, "--json"]);
        assert!(ok, "{told}");
        let info: Value = serde_json::from_str(&json).unwrap();
        assert_eq!(info["unrecorded"], serde_json::json!([]), "{name}");
        for part in parts {
            let learned = info["learned"].as_array().unwrap();
            assert!(learned.iter().any(|one| one["part"] == *part && one["n_documents"].as_u64() > Some(0)), "{part}");
        }
        assert!(info["n_bytes"].as_u64().unwrap() <= 12 << 20, "{name}");
    }
    let (ok, table, _) = said(&place, &["model", "info", "default"]);
    assert!(ok && table.contains("Licence: Apache-2.0 or MIT"), "{table}");
}

#[test]
fn an_abstract_alone_of_a_learned_document_is_refused_and_a_whole_document_of_a_learned_abstract() {
    let place = trained();
    let title = |at: usize| format!("Person {at} was asked about several shapes");
    let summary = |at: usize| format!("Then person {at} saw the circle and left the room.");
    let annotation = |at: usize, before: usize| {
        let start = before + summary(at).find("circle").unwrap();
        format!("{at}\t{start}\t{}\tcircle\tShape\tX:S1\n\n", start + 6)
    };
    let articles = (0..4)
        .map(|at| format!("{at}|t|{}\n{at}|a|{}\n{}", title(at), summary(at), annotation(at, title(at).len() + 1)));
    let abstracts = (0..4).map(|at| format!("{at}|t|{}\n{at}|a|\n{}", summary(at), annotation(at, 0)));
    place.write("shapes/articles.pubtator", articles.collect::<String>());
    place.write("shapes/abstracts.pubtator", abstracts.collect::<String>());
    for (learned, asked) in [("articles", "abstracts"), ("abstracts", "articles")] {
        let documents = format!("corpus.0.documents=shapes/{learned}.pubtator");
        let arguments = ["train", "shapes.toml", "--data-root", ".", "--out", "model", "--set", &documents];
        let (ok, _, told) = said(&place, &arguments);
        assert!(ok, "{told}");
        let (ok, _, told) = said(&place, &judge(&format!("shapes/{asked}.pubtator"), &[]));
        assert!(!ok && told.contains("4 of 4 documents were seen in training"), "{told}");
    }
}
