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
run = { n_steps = 12, steps_per_round = 6, evaluate_every = 1 }

[train]
batch = { batch = 4, n_hard = 2, n_searched = 5 }
run = { n_steps = 12, steps_per_round = 6, evaluate_every = 1, select = "best" }
"#;

fn trained() -> Workplace {
    let place = Workplace::new();
    place.write("shapes.tsv", SHAPES);
    place.write("queries.tsv", "ring\tS1\nquadrangle\tS2\n\npie piece\tS3|S9\n");
    place.write("shapes.toml", EXPERIMENT);
    let output = place.run(&["train", "shapes.toml", "--data-root", ".", "--out", "model"], "");
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
        "log.csv",
        "log.jsonl",
        "model.safetensors",
        "provenance.json",
        "report.json",
        "terminology.kb",
    ];
    assert_eq!(made, expected);

    let (ok, own, errors) = said(&place, &["map", "--model", "model", "-"], "circle\nregular quadrilateral\n");
    assert!(ok && errors.is_empty(), "{errors}");
    assert!(own.lines().next().unwrap().contains(r#""candidates":[{"id":"S1","name":"Circle""#), "{own}");
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
fn probes_tell_what_the_model_looks_at() {
    let place = trained();
    let arguments = ["probe", "--model", "model", "queries.tsv", "--plot", "probe.svg"];
    let (ok, table, errors) = said(&place, &arguments, "");
    assert!(ok && errors.is_empty(), "{errors}");
    let probes: Vec<&str> = table.lines().map(|line| line.split("  ").next().unwrap()).collect();
    let expected = [
        "probe",
        "as they are",
        "1-grams of words shuffled",
        "2-grams of words shuffled",
        "3-grams of words shuffled",
        "convolutions see 3 pieces",
        "convolutions see one piece",
    ];
    assert_eq!(probes, expected);
    assert!(std::fs::read_to_string(place.path("probe.svg")).unwrap().matches("<rect").count() == 6);
    let (ok, _, errors) = said(&place, &["probe", "--model", "lexical", "queries.tsv"], "");
    assert!(!ok && errors.contains("has no vectors to probe"), "{errors}");
}

#[test]
fn training_again_gives_the_same_model_byte_for_byte() {
    let (first, second) = (trained(), trained());
    let model = |place: &Workplace| std::fs::read(place.path("model/model.safetensors")).unwrap();
    assert_eq!(model(&first), model(&second));
}

#[test]
fn what_cannot_be_trained_or_opened_is_refused_with_a_hint() {
    let place = trained();
    let refused = |arguments: &[&str]| {
        let (ok, _, errors) = said(&place, arguments, "");
        assert!(!ok && errors.contains("hint: "), "{errors}");
        errors
    };
    assert!(refused(&["map", "--model", "model", "--explain", "-"]).contains("cannot explain"));
    let train = |set: &str| refused(&["train", "shapes.toml", "--data-root", ".", "--out", "other", "--set", set]);
    place.write("wrong.tsv", "ring S1\n");
    assert!(train("data.queries=wrong.tsv").contains("wrong.tsv:1: a query is a name and its ids"));
    place.write("empty.tsv", "");
    assert!(train("data.dev_queries=empty.tsv").contains("empty.tsv:1: no query was found"));
    for (set, expected) in [
        ("model.width=0", "`width` is 0"),
        ("model.kernels=[2]", "a kernel is 2 wide"),
        ("vocabulary.dim=0", "without pieces or embeddings"),
        ("data.terminology.format=nope", "no source format `nope`"),
    ] {
        let errors = train(set);
        assert!(errors.contains(expected), "{errors}");
    }
    place.write("foreign.tsv", "ring\tZ1\n");
    assert!(train("data.queries=foreign.tsv").contains("no query has a concept of the terminology"));

    let bytes = std::fs::read(place.path("model/model.safetensors")).unwrap();
    place.write("short.safetensors", &bytes[..bytes.len() / 2]);
    assert!(refused(&["map", "--model", "short.safetensors", "-"]).contains("no complete safetensors file"));
}
