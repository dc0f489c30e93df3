//! Training ResCNN, and linking with what was trained.

use crate::support::{SHAPES, Workplace};

const EXPERIMENT: &str = r#"
system = "rescnn"
seed = 3

[data]
terminology = { path = "shapes.tsv", format = "tsv" }
queries = "queries.tsv"
dev_queries = "queries.tsv"
refit = true

[vocabulary]
size = 60
dim = 8

[model]
width = 16
n_filters = 6
hidden = 12
n_blocks = 1

[pretrain]
batch = { batch = 8 }
run = { n_steps = 12, mining_interval = 6, evaluate_every = 1 }

[train]
batch = { batch = 4, n_hard = 2, n_searched = 5 }
run = { n_steps = 12, mining_interval = 6, evaluate_every = 1, select = "best" }
"#;

fn trained() -> Workplace {
    let place = Workplace::new();
    place.write("shapes.tsv", SHAPES);
    place.write("queries.tsv", "ring\tS1\nquadrangle\tS2\n\npie piece\tS3|S9\n");
    place.write("shapes.toml", EXPERIMENT);
    let output = place.run(&["train", "shapes.toml", "--allow-seen", "--data-root", ".", "--out", "model"], "");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    place
}

/// Status, standard output and standard error.
fn said(place: &Workplace, arguments: &[&str], input: &str) -> (bool, String, String) {
    let output = Workplace::finish(place.command(arguments).env("CANONYM_CACHE", place.path("cache")), input);
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    (output.status.success(), text(&output.stdout), text(&output.stderr))
}

#[test]
fn what_was_trained_links_with_its_own_terminology_and_with_another() {
    let place = trained();
    let mut made: Vec<String> = std::fs::read_dir(place.path("model"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    made.sort();
    let expected = [
        "config.toml",
        "curve.svg",
        "log.csv",
        "log.jsonl",
        "model.safetensors",
        "provenance.json",
        "report.json",
        "terminology.kb",
    ];
    assert_eq!(made, expected);
    let curve = std::fs::read_to_string(place.path("model/curve.svg")).unwrap();
    // Three stages; the last one is not judged.
    assert_eq!(["<polyline", "<circle", ">refit<"].map(|part| curve.matches(part).count()), [5, 4, 1]);

    let (ok, own, errors) = said(&place, &["map", "--model", "model", "-"], "circle\nregular quadrilateral\n");
    assert!(ok && errors.is_empty(), "{errors}");
    assert!(own.lines().next().unwrap().contains(r#""candidates":[{"id":"S1","name":"Circle""#), "{own}");
    let (ok, explained, _) = said(&place, &["map", "--model", "model", "--explain", "-"], "quad shape\n");
    let explained: serde_json::Value = serde_json::from_str(&explained).unwrap();
    let best = &explained["explanation"]["candidates"][0];
    let parts = best["contributions"].as_array().unwrap();
    let sum: f64 = parts.iter().map(|part| part["log_odds"].as_f64().unwrap()).sum();
    assert!(ok && (sum - best["log_odds"].as_f64().unwrap()).abs() < 1e-2, "{best}");
    assert!(parts.iter().any(|part| part["feature"] == "cosine"), "{best}");
    // The second time vectors are read from where the first kept them.
    let kept: Vec<_> = std::fs::read_dir(place.path("cache")).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(kept.len(), 1);
    assert_eq!(said(&place, &["map", "--model", "model", "-"], "circle\nregular quadrilateral\n").1, own);
    // A damaged file is made again.
    std::fs::write(&kept[0], b"damaged").unwrap();
    let (ok, again, _) = said(&place, &["map", "--model", "model", "-"], "circle\nregular quadrilateral\n");
    assert_eq!((ok, again), (true, own));

    place.write("more.tsv", "T1\tCircle\nT2\tCube\n");
    said(&place, &["kb", "build", "more.tsv", "--out", "more.kb"], "");
    let model = "model/model.safetensors";
    let (ok, other, errors) = said(&place, &["map", "--model", model, "--kb", "more.kb", "-"], "circles\n");
    assert!(ok && errors.is_empty() && other.contains(r#""id":"T1""#), "{other}{errors}");
    let gold = r#"{"id":"1","text":"A circle.","annotations":[{"spans":[[2,8]],"text":"circle"}]}"#;
    let arguments = ["link", "--model", "model", "--mentions", "gold", "--format", "jsonl", "-"];
    let (ok, linked, errors) = said(&place, &arguments, gold);
    assert!(ok && linked.contains(r#""id":"S1""#), "{linked}{errors}");
}

#[test]
fn data_lie_beside_the_experiment_where_nobody_says_where() {
    let place = trained();
    std::fs::create_dir(place.path("elsewhere")).unwrap();
    let train = ["train", "../shapes.toml", "--allow-seen", "--out", "model"];
    let mut command = place.command(&train);
    let output = Workplace::finish(command.current_dir(place.path("elsewhere")).env_remove("CANONYM_DATA"), "");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let model = |folder: &str| std::fs::read(place.path(folder).join("model.safetensors")).unwrap();
    assert_eq!(model("elsewhere/model"), model("model"));
}

#[test]
fn the_first_use_of_a_large_terminology_tells_that_its_names_are_encoded() {
    let place = trained();
    let rows: Vec<String> = (0..25_000).map(|row| format!("T{row}\tshape {row}\n")).collect();
    place.write("many.tsv", rows.concat());
    said(&place, &["kb", "build", "many.tsv", "--out", "many.kb"], "");
    let map = ["map", "--model", "model", "--kb", "many.kb", "-"];
    let (ok, _, quiet) = said(&place, &[&["-q"], &map[..]].concat(), "shape 7\n");
    assert!(ok && quiet.is_empty(), "{quiet}");
    std::fs::remove_dir_all(place.path("cache")).unwrap();
    let (ok, _, told) = said(&place, &map, "shape 7\n");
    let end = format!("once; the embeddings are cached in {}\n", place.path("cache").display());
    assert!(ok && told.starts_with("encoding 25,000 names of many (about ") && told.ends_with(&end), "{told}");
    assert_eq!(told.lines().count(), 1);
    // Now they are there.
    let (ok, _, told) = said(&place, &map, "shape 7\n");
    assert!(ok && told.is_empty(), "{told}");
}

#[test]
fn held_out_queries_that_the_terminology_lacks_are_told() {
    let place = trained();
    place.write("dev.tsv", "ring\tX:S1\nbox\tX:S2\n");
    let train = ["train", "shapes.toml", "--allow-seen", "--out", "other", "--set", "data.dev_queries=dev.tsv"];
    let (ok, _, errors) = said(&place, &train, "");
    assert!(ok, "{errors}");
    let warning = "warning: 2 of 2 held-out queries have ids missing from the terminology (such as X:S1, X:S2)\n\
                   hint: the terminology uses `S1`, the annotations `X:S1`: use the same prefix for both (`--prefix`, `prefix`)\n";
    assert!(errors.contains(warning), "{errors}");
}

#[test]
fn probes_tell_what_the_model_looks_at() {
    let place = trained();
    let arguments = ["probe", "--model", "model", "queries.tsv", "--plot", "probe.svg"];
    let (ok, table, errors) = said(&place, &arguments, "");
    assert!(ok && errors.is_empty(), "{errors}");
    let probes: Vec<&str> = table.lines().map(|line| line.split("  ").next().unwrap()).collect();
    let expected = [
        "probe",
        "unchanged",
        "word 1-grams shuffled",
        "word 2-grams shuffled",
        "word 3-grams shuffled",
        "receptive field of 3 wordpieces",
        "receptive field of one wordpiece",
    ];
    assert_eq!(probes, expected);
    assert!(std::fs::read_to_string(place.path("probe.svg")).unwrap().matches("fill=\"#3b6ea5\"").count() == 6);
    let (ok, _, errors) = said(&place, &["probe", "--model", "lexical", "queries.tsv"], "");
    assert!(!ok && errors.contains("has no name encoder to probe"), "{errors}");
}

#[test]
fn a_training_that_was_killed_goes_on_and_logs_each_step_once() {
    let place = trained();
    let arguments = [
        "train",
        "shapes.toml",
        "--allow-seen",
        "--data-root",
        ".",
        "--set",
        "train.run.n_steps=300",
        "--out",
        "killed",
    ];
    let mut child = place.command(&arguments).stderr(std::process::Stdio::null()).spawn().unwrap();
    // Where the training is faster than the test, it ended well and nothing was killed.
    while child.try_wait().unwrap().is_none() && !place.path("killed/checkpoint-train.safetensors").exists() {
        std::thread::yield_now();
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let (ok, _, errors) = said(&place, &arguments, "");
    assert!(ok, "{errors}");
    let log = std::fs::read_to_string(place.path("killed/log.csv")).unwrap();
    let steps: Vec<(&str, usize)> = log
        .lines()
        .skip(1)
        .map(|line| line.split_once(',').unwrap())
        .map(|(stage, rest)| (stage, rest.split(',').next().unwrap().parse().unwrap()))
        .collect();
    let stages = [("pretrain", 12), ("train", 300), ("refit", 300)];
    let expected: Vec<(&str, usize)> =
        stages.into_iter().flat_map(|(stage, n)| (1..=n).map(move |step| (stage, step))).collect();
    assert_eq!(steps, expected);
    let rounds = std::fs::read_to_string(place.path("killed/log.jsonl")).unwrap();
    assert_eq!(rounds.lines().count(), 2 + 50 + 50);
}

#[test]
fn training_again_gives_the_same_model_byte_for_byte() {
    let (first, second) = (trained(), trained());
    let model = |place: &Workplace| std::fs::read(place.path("model/model.safetensors")).unwrap();
    assert_eq!(model(&first), model(&second));
}

/// A place with an ontology as the code of ResCNN has it and two folds of made-up phrases, one line of them not UTF-8.
fn place_with_folds() -> Workplace {
    let place = Workplace::new();
    let ontology = r#"{"11": [["primary", "Circle"]], "12": [["primary", "Square"]], "13": [["primary", "Triangle"]]}"#;
    place.write("shapes.json", ontology);
    for fold in ["0", "1"] {
        let train = b"11\tCircle\tround th\xefng\n11\tCircle\tring\n12\tSquare\tfour even sides\n13\tTriangle\twedge\n99\tNone\tx\n";
        place.write(&format!("fold-{fold}.train.txt"), train);
        place.write(&format!("fold-{fold}.validation.txt"), "12\tSquare\teven sides\n11\tCircle\tring\n");
    }
    let data = concat!(
        "terminology = { path = \"shapes.json\", format = \"rescnn\" }\n",
        "queries = \"fold-{fold}.train.txt\"\ndev_queries = \"fold-{fold}.validation.txt\"\nquery_names = true\n",
    );
    let (head, rest) = EXPERIMENT.split_once("[data]\n").unwrap();
    let (_, tail) = rest.split_once("\n[vocabulary]").unwrap();
    place.write("folds.toml", format!("{head}\n[data]\n{data}\n[vocabulary]{tail}"));
    place
}

fn report(place: &Workplace, folder: &str) -> serde_json::Value {
    serde_json::from_slice(&std::fs::read(place.path(&format!("{folder}/report.json"))).unwrap()).unwrap()
}

#[test]
fn phrases_of_a_fold_are_names_and_the_report_tells_what_they_are_worth() {
    let place = place_with_folds();
    let train = ["train", "folds.toml", "--data-root", ".", "--set", "fold=1", "--out", "model"];
    let (ok, _, errors) = said(&place, &train, "");
    assert!(ok, "{errors}");
    assert!(errors.contains("fold-1.train.txt: 1 lines were not UTF-8 and were read as Windows-1252"), "{errors}");
    assert!(errors.contains("1 ids of queries are not in the terminology"), "{errors}");
    let report = report(&place, "model");
    assert_eq!(
        (&report["n_concepts"], &report["n_names"], &report["dev_coverage"]),
        (&3.into(), &7.into(), &1.0.into())
    );
    assert_eq!(report["n_decoded"]["fold-1.train.txt"], 1);
    // A phrase of the training part is found word by word where it is a name.
    assert!(report["dev"]["lexical"].as_f64().unwrap() > report["dev_clean"]["lexical"].as_f64().unwrap(), "{report}");
    assert!(!place.path("model/clean.kb").exists());
    let (ok, linked, errors) = said(&place, &["map", "--model", "model", "-"], "Round thïng\n");
    assert!(
        ok && errors.is_empty() && linked.contains(r#""candidates":[{"id":"11","name":"Circle""#),
        "{linked}{errors}"
    );
    let bare = [&train[..], &["--set", "data.query_names=false"]].concat();
    let (ok, _, errors) = said(&place, &bare, "");
    assert!(
        !ok && errors.contains("no concept has two names") && errors.contains("hint: leave `pretrain` out"),
        "{errors}"
    );
    let (ok, _, errors) = said(&place, &[&bare[..], &["--set", "pretrain.run.n_steps=0"]].concat(), "");
    assert!(ok, "{errors}");
    let (ok, _, errors) = said(&place, &["train", "folds.toml", "--data-root", ".", "--out", "other"], "");
    assert!(
        !ok && errors.contains("uses {fold}") && errors.contains("hint: choose one, for example `--set fold=0`"),
        "{errors}"
    );
}

#[test]
fn the_marginal_likelihood_of_candidates_can_be_trained_in_the_place_of_the_published_loss() {
    let place = trained();
    let objective = |more: &str| {
        let set = ["train.objective=marginal-likelihood", "train.candidates.n_candidates=4", more];
        let mut train = vec!["train", "shapes.toml", "--allow-seen", "--data-root", ".", "--out", "marginal"];
        set.iter().for_each(|set| train.extend(["--set", set]));
        said(&place, &train, "")
    };
    let (ok, _, errors) = objective("train.candidates.batch=2");
    assert!(ok, "{errors}");
    assert!(report(&place, "marginal")["sparse_weight"].as_f64().unwrap() != 0.0);
    assert!(report(&place, "model").get("sparse_weight").is_none());
    let config = std::fs::read_to_string(place.path("marginal/config.toml")).unwrap();
    assert!(config.contains("objective = \"marginal-likelihood\"") && config.contains("n_candidates = 4"), "{config}");
    let (ok, linked, errors) = said(&place, &["map", "--model", "marginal", "-"], "circle\n");
    assert!(
        ok && errors.is_empty() && linked.contains(r#""candidates":[{"id":"S1","name":"Circle""#),
        "{linked}{errors}"
    );
    let (ok, _, errors) = objective("train.objective=nearest");
    assert!(!ok && errors.contains("unknown variant `nearest`"), "{errors}");
}

#[test]
fn whole_documents_of_a_corpus_are_held_out_and_its_mentions_are_the_terminology() {
    let place = Workplace::new();
    let document = |id: u32, name: &str, concept: &str| {
        let end = 2 + name.len();
        format!("{id}|t|A {name}.\n{id}|a|\n{id}\t2\t{end}\t{name}\tUNK\t{concept}\n\n")
    };
    let rows =
        [("ring", "C1"), ("round ring", "C1"), ("box", "C2"), ("even box", "C2"), ("wedge", "C3"), ("cone", "C4")];
    let corpus: String = rows.iter().zip(1..).map(|((name, concept), id)| document(id, name, concept)).collect();
    place.write("corpus.pubtator.txt", corpus);
    let data = "queries = \"corpus.pubtator.txt\"\nhold_out = 3\nquery_names = true\n";
    let (head, rest) = EXPERIMENT.split_once("[data]\n").unwrap();
    let (_, tail) = rest.split_once("\n[vocabulary]").unwrap();
    place.write("corpus.toml", format!("{head}\n[data]\n{data}\n[vocabulary]{tail}"));
    let train = ["train", "corpus.toml", "--data-root", ".", "--out", "model"];
    let (ok, _, errors) = said(&place, &train, "");
    assert!(ok, "{errors}");
    let report = report(&place, "model");
    // The last document has a concept that no other has.
    assert_eq!((&report["n_queries"], &report["n_dev_mentions"]), (&4.into(), &2.into()));
    assert_eq!((&report["dev_coverage"], &report["n_concepts"]), (&0.5.into(), &3.into()));
    assert!(report["dev_clean"].is_null());
    for (set, expected) in [
        ("data.hold_out=1", "`hold_out` is less than 2"),
        ("data.dev_queries=corpus.pubtator.txt", "both `dev_queries` and `hold_out` are set"),
        ("data.query_names=false", "no terminology to link to"),
        ("data.hold_out=9", "too few documents"),
    ] {
        let (ok, _, errors) = said(&place, &[&train[..], &["--set", set]].concat(), "");
        assert!(!ok && errors.contains(expected) && errors.contains("hint: "), "{errors}");
    }
}

#[test]
fn what_cannot_be_trained_or_opened_is_refused_with_a_hint() {
    let place = trained();
    let refused = |arguments: &[&str]| {
        let (ok, _, errors) = said(&place, arguments, "");
        assert!(!ok && errors.contains("hint: "), "{errors}");
        errors
    };
    let train = |set: &str| {
        refused(&["train", "shapes.toml", "--allow-seen", "--data-root", ".", "--out", "other", "--set", set])
    };
    place.write("wrong.tsv", "ring S1\n");
    assert!(train("data.queries=wrong.tsv").contains("wrong.tsv:1: expected a name and its ids"));
    place.write("empty.tsv", "");
    assert!(train("data.dev_queries=empty.tsv").contains("empty.tsv:1: no queries found"));
    for (set, expected) in [
        ("model.width=0", "`width` is 0"),
        ("model.kernels=[2]", "kernel width 2 is even"),
        ("vocabulary.dim=0", "must be positive"),
        ("data.terminology.format=nope", "unknown source format `nope`"),
    ] {
        let errors = train(set);
        assert!(errors.contains(expected), "{errors}");
    }
    for (typo, line, expected) in [
        ("size = 60\ndimm = 8", 13, "unknown field `dimm`, expected one of `size`, `dim`, `bert`, `trained`"),
        ("size = 60", 11, "a vocabulary has `size` and `dim`, where it is learned, or `bert`"),
        ("size = \"many\"\ndim = 8", 12, "invalid type: string \"many\", expected usize in `vocabulary.size`"),
    ] {
        place.write("typo.toml", EXPERIMENT.replace("size = 60\ndim = 8", typo));
        let errors = refused(&["train", "typo.toml", "--out", "other"]);
        assert!(errors.contains(&format!("typo.toml:{line}: {expected}")), "{errors}");
    }
    let errors = refused(&["train", "typo.toml", "--out", "other", "--set", "vocabulary={sise=3}"]);
    assert!(errors.contains("hint: did you mean `size`?"), "{errors}");
    place.write("typo.toml", EXPERIMENT.replace("\"rescnn\"", "\"rescn\""));
    let errors = refused(&["train", "typo.toml", "--out", "other"]);
    assert!(
        errors.contains("unknown system `rescn` in typo.toml") && errors.contains("did you mean `rescnn`?"),
        "{errors}"
    );
    std::fs::write(place.path("typo.toml"), b"system = \"caf\xe9\"").unwrap();
    assert!(refused(&["train", "typo.toml", "--out", "other"]).contains("hint: expected UTF-8 text"));
    place.write("foreign.tsv", "ring\tZ1\n");
    assert!(train("data.queries=foreign.tsv").contains("no query has a concept of the terminology"));

    let bytes = std::fs::read(place.path("model/model.safetensors")).unwrap();
    place.write("short.safetensors", &bytes[..bytes.len() / 2]);
    assert!(refused(&["map", "--model", "short.safetensors", "-"]).contains("incomplete safetensors file"));
}
