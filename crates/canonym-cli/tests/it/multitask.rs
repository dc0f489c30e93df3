//! Training the multi-task tagger on a tiny checkpoint, in each of its forms, and linking with what was trained.

use crate::dual::{place as place_of_dual_encoder, said};
use crate::support::Workplace;

const EXPERIMENT: &str = r#"
system = "multitask"
seed = 3

[data]
train = ["train.pubtator.txt"]
dev = ["train.pubtator.txt"]

[encoder]
bert = "tiny"
dropout = 0.0

[model]
tasks = ["mentions", "types", "concepts"]
max_wordpieces = 32

[batch]
batch = 8
schedule = "summed"
encoder_gradient = "all"
nil_weight = 1.0

[run]
n_steps = 500
mining_interval = 100
evaluate_every = 1

[run.adam]
learning_rate = 5e-3
"#;

fn place() -> Workplace {
    let place = place_of_dual_encoder();
    // Ids without a prefix, which the terminology has.
    let corpus = std::fs::read_to_string(place.path("train.pubtator.txt")).unwrap().replace("\tS:1", "\t1");
    place.write("train.pubtator.txt", corpus);
    place.write("tasks.toml", EXPERIMENT);
    place.write("kb.tsv", "S:1\tCircle\tring\tForm\nS:2\tSquare\tbox\tForm\nS:3\tCube\tdice\tForm\n");
    let (ok, _, errors) = said(&place, &["kb", "build", "kb.tsv", "--out", "shapes.kb"], "");
    assert!(ok, "{errors}");
    place
}

/// Trains with overrides, and returns the report.
fn train(place: &Workplace, out: &str, set: &[&str]) -> serde_json::Value {
    let mut arguments = vec!["train", "tasks.toml", "--allow-seen", "--data-root", ".", "--out", out];
    set.iter().for_each(|one| arguments.extend(["--set", one]));
    let (ok, _, errors) = said(place, &arguments, "");
    assert!(ok, "{errors}");
    let path = place.path(&format!("{out}/report.json"));
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

const LSTM: &str = "model.lstm={ n_layers = 1, hidden = 8, dropout = 0.0 }";

#[test]
fn every_form_of_the_model_learns_what_it_was_shown_and_links_text() {
    let place = place();
    for (out, set) in [
        ("flat", vec![]),
        ("hierarchical", vec![LSTM, "batch.schedule=sampled", "run.n_steps=3000", "run.mining_interval=600"]),
        ("detached", vec![LSTM, "batch.encoder_gradient=main"]),
        ("entity", vec!["model.framing=entity"]),
        ("token", vec!["model.tasks=[\"concepts\"]"]),
        ("tags", vec!["model.type_tags=true", "model.linked_spans=mentions"]),
        ("crf", vec!["model.type_tags=true", "model.crf=true", LSTM, "encoder.layers=0"]),
        (
            "deep",
            vec!["model.hidden_layer=true", "model.lenient=true", "run.adam.decay=l2", "run.adam.weight_decay=1e-4"],
        ),
    ] {
        let report = train(&place, out, &set);
        assert_eq!(report.get("selected_on"), None, "{report}");
        let n_labelling = report["token_accuracy"].as_object().unwrap().len();
        assert_eq!(n_labelling, if matches!(out, "entity" | "token") { 1 } else { 3 }, "{out}: {report}");
        let accuracy = report["token_accuracy"].as_object().unwrap().values().map(|share| share.as_f64().unwrap());
        assert!(accuracy.into_iter().all(|share| share > 0.9), "{report}");
        assert!(report["held_out"]["concepts"]["f1"].as_f64().unwrap() > 0.9, "{out}: {report}");
        assert_eq!(report["recall_ceiling"], 1.0, "{report}");
        let text = ["link", "--model", out, "--kb", "shapes.kb", "--to", "jsonl", "--text", "We saw the ring. A ring."];
        let (ok, found, errors) = said(&place, &text, "");
        assert!(ok && found.contains(r#""text":"ring""#) && found.contains(r#""id":"S:1""#), "{out}: {found}{errors}");
        let (ok, explained, errors) = said(&place, &[&text[..], &["--explain"]].concat(), "");
        assert!(ok && explained.contains("probability of the class in this context"), "{explained}{errors}");
        let gold = ["link", "--model", out, "--kb", "shapes.kb", "--mentions", "gold", "train.pubtator.txt"];
        let (ok, linked, errors) = said(&place, &gold, "");
        assert!(ok && linked.lines().count() == 5 && linked.contains("S:3"), "{out}: {linked}{errors}");
    }
}

#[test]
fn a_model_that_abstains_leaves_out_links_below_its_threshold() {
    let place = place();
    let corpus = std::fs::read_to_string(place.path("train.pubtator.txt")).unwrap();
    let mut thresholds = Vec::new();
    // In the documents for selection, another concept is correct in place of one. If links to it are the least probable, they are left out.
    for id in ["1", "2", "3"] {
        let other = corpus.replace(&format!("\t{id}\n"), "\tS:9\n");
        assert_ne!(other, corpus);
        place.write("tune.pubtator.txt", other);
        let out = format!("model{}", thresholds.len());
        let report = train(&place, &out, &["data.tune=[\"tune.pubtator.txt\"]", "model.abstain=true"]);
        let threshold = report["threshold"].as_f64().unwrap();
        let gold = ["link", "--model", &out, "--kb", "shapes.kb", "--to", "jsonl", "train.pubtator.txt"];
        let (ok, found, errors) = said(&place, &gold, "");
        assert!(ok, "{errors}");
        let (mut n_linked, mut n_all) = (0.0, 0.0);
        for line in found.lines() {
            let document: serde_json::Value = serde_json::from_str(line).unwrap();
            for annotation in document["annotations"].as_array().unwrap() {
                let score = annotation["candidates"][0]["score"].as_f64().unwrap();
                // Written with four digits.
                let is_above = score > threshold - 5e-5;
                assert_eq!(annotation["nil"] == false, is_above, "{threshold} {annotation}");
                n_all += 1.0;
                n_linked += f64::from(u8::from(is_above));
            }
        }
        // All links are correct, so the score is the share that is left.
        assert_eq!(report["held_out"]["concepts"]["f1"], 1.0, "{report}");
        let recall = report["above_threshold"]["recall"].as_f64().unwrap();
        assert!((recall - n_linked / n_all).abs() < 1e-9, "{report}");
        thresholds.push((threshold, recall));
    }
    assert!(thresholds.iter().any(|(threshold, recall)| *threshold > 0.0 && *recall < 1.0), "{thresholds:?}");
}

#[test]
fn a_model_of_spans_takes_a_model_of_mentions_along() {
    let place = place();
    // The detector has the same words under other numbers.
    let (tiny, other) = (place.path("models/tiny"), place.path("models/other"));
    std::fs::create_dir_all(&other).unwrap();
    for file in std::fs::read_dir(tiny).unwrap() {
        let file = file.unwrap();
        std::fs::copy(file.path(), other.join(file.file_name())).unwrap();
    }
    let vocabulary = std::fs::read_to_string(other.join("vocab.txt")).unwrap();
    let mut words: Vec<&str> = vocabulary.lines().collect();
    words[4..].reverse();
    std::fs::write(other.join("vocab.txt"), words.join("\n") + "\n").unwrap();
    let mentions = train(&place, "mentions", &["model.tasks=[\"mentions\"]", "encoder.bert=other"]);
    assert_eq!(mentions.get("recall_ceiling"), None, "{mentions}");
    assert!(mentions["held_out"]["mentions"]["f1"].as_f64().unwrap() > 0.9, "{mentions}");
    let set = ["model.tasks=[\"concepts\"]", "model.framing=entity", "model.detector=mentions"];
    let report = train(&place, "spans", &[&set[..], &["run.select=best"]].concat());
    assert_eq!((report.get("held_out"), report["selected_on"].as_str()), (None, Some("dev")), "{report}");
    assert!(report["on_gold_spans"]["concepts"]["f1"].as_f64().unwrap() > 0.9, "{report}");
    assert!(report["with_detector"]["concepts"]["f1"].as_f64().unwrap() > 0.9, "{report}");
    for (set, expected) in [
        (vec!["model.detector=mentions"], "`model.detector` has no effect"),
        (vec!["model.detector=mentions", "model.framing=entity"], "`model.detector` has no effect"),
        (vec![set[0], set[1], "model.detector=spans"], "`model.detector` does not detect mentions"),
    ] {
        refuse(&place, &set, expected);
    }
    std::fs::remove_dir_all(place.path("mentions")).unwrap();
    let text = ["link", "--model", "spans", "--kb", "shapes.kb", "--to", "jsonl", "--text", "We saw the dice."];
    let (ok, found, errors) = said(&place, &text, "");
    assert!(ok && found.contains(r#""id":"S:3""#), "{found}{errors}");
    let (ok, sheet, errors) = said(&place, &["model", "info", "spans"], "");
    assert!(ok && sheet.contains("multi-task tagger per entity: concepts"), "{sheet}{errors}");
}

#[test]
fn concepts_that_the_terminology_lacks_stay_unlinked() {
    let place = place();
    train(&place, "model", &[]);
    place.write("small.tsv", "S:2\tSquare\tbox\n");
    assert!(said(&place, &["kb", "build", "small.tsv", "--out", "small.kb"], "").0);
    let linked = |kb: &str, name: &str| {
        let text = format!("We saw the {name}. A {name}.");
        let arguments = ["link", "--model", "model", "--kb", kb, "--to", "jsonl", "--text", &text];
        let (ok, found, errors) = said(&place, &arguments, "");
        assert!(ok, "{errors}");
        let document: serde_json::Value = serde_json::from_str(&found).unwrap();
        document["annotations"].as_array().unwrap().iter().map(|one| one["nil"] == false).collect::<Vec<bool>>()
    };
    assert_eq!((linked("shapes.kb", "ring"), linked("shapes.kb", "box")), (vec![true; 2], vec![true; 2]));
    assert_eq!((linked("small.kb", "ring"), linked("small.kb", "box")), (vec![false; 2], vec![true; 2]));
}

#[test]
fn names_link_mentions_to_concepts_that_are_no_classes() {
    let place = place();
    place.write("names.tsv", "S:8\tRing\t\tForm\nS:2\tSquare\tbox\tForm\n");
    assert!(said(&place, &["kb", "build", "names.tsv", "--out", "names.kb"], "").0);
    train(&place, "detector", &["model.tasks=[\"mentions\"]"]);
    let by_entity = ["model.tasks=[\"concepts\"]", "model.framing=entity", "model.detector=detector"];
    // The weights of the lexical system and a name encoder, as those of a training.
    let crates = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    std::fs::create_dir_all(place.path("weights")).unwrap();
    place.write("weights/config.toml", "system = \"lexical\"\n");
    place.write("weights/model.json", std::fs::read(crates.join("canonym-core/assets/lexical.json")).unwrap());
    let encoder = crates.join("canonym-default/assets/default.safetensors");
    for name_linker in ["lexical", "default", "weights", encoder.to_str().unwrap()] {
        let name_linker = format!("model.name_linker={name_linker}");
        for (out, set) in [("token", [].as_slice()), ("entity", &by_entity)] {
            train(&place, out, &[set, &[name_linker.as_str()]].concat());
            let text = "We saw the ring. A box.";
            let arguments = ["link", "--model", out, "--kb", "names.kb", "--to", "jsonl"];
            let (ok, found, errors) = said(&place, &[&arguments[..], &["--text", text]].concat(), "");
            let document: serde_json::Value = serde_json::from_str(&found).unwrap();
            let annotations = document["annotations"].as_array().unwrap();
            let ids: Vec<&str> = annotations.iter().map(|one| one["candidates"][0]["id"].as_str().unwrap()).collect();
            assert!(ok && ids == ["S:8", "S:2"], "{set:?} {name_linker}: {found}{errors}");
            assert!(annotations.iter().all(|one| one["nil"] == false), "{found}");
            // Given mentions as well.
            place.write("found.jsonl", &found);
            let (ok, given, errors) =
                said(&place, &[&arguments[..], &["--mentions", "gold", "found.jsonl"]].concat(), "");
            assert!(ok && given.contains("S:8"), "{given}{errors}");
            let (ok, explained, errors) = said(&place, &[&arguments[..], &["--explain", "--text", text]].concat(), "");
            assert!(ok && explained.contains("joined with that of its names"), "{explained}{errors}");
        }
    }
    std::fs::remove_dir_all(place.path("weights")).unwrap();
    let (ok, sheet, errors) = said(&place, &["model", "info", "token"], "");
    assert!(ok && sheet.contains("name linker"), "{sheet}{errors}");
}

#[test]
fn concepts_are_added_to_a_trained_model() {
    let place = place();
    train(&place, "model", &[]);
    let more = "9|t|We saw the cube.\n9|a|\n9\t11\t15\tcube\tShape\tS:9\n\n";
    let known = std::fs::read_to_string(place.path("train.pubtator.txt")).unwrap();
    place.write("more.pubtator.txt", format!("{known}{more}"));
    place.write("more.tsv", "S:1\tCircle\tring\tForm\nS:9\tCube\t\tForm\n");
    assert!(said(&place, &["kb", "build", "more.tsv", "--out", "more.kb"], "").0);
    let experiment = std::fs::read_to_string(place.path("tasks.toml")).unwrap();
    let experiment = experiment.replace("bert = \"tiny\"\n", "").replace("train = [\"train.", "train = [\"more.");
    place.write("tasks.toml", &experiment);
    let report = train(&place, "further", &["model.start=model", "run.n_steps=200"]);
    let text = [
        "link",
        "--model",
        "further",
        "--kb",
        "more.kb",
        "--to",
        "jsonl",
        "--text",
        "We saw the ring. We saw the cube.",
    ];
    let (ok, found, errors) = said(&place, &text, "");
    assert!(ok && found.contains(r#""id":"S:1""#) && found.contains(r#""id":"S:9""#), "{found}{errors}{report}");
    let (ok, sheet, errors) = said(&place, &["model", "info", "further"], "");
    assert!(ok && sheet.contains("train.pubtator.txt") && sheet.contains("more.pubtator.txt"), "{sheet}{errors}");
    refuse(&place, &[], "one of `encoder.bert` and `model.start`");
    refuse(&place, &["model.start=model", "encoder.bert=tiny"], "one of `encoder.bert` and `model.start`");
    refuse(&place, &["model.start=model", "model.tasks=[\"concepts\"]"], "differs from the model in `model.start`");
    refuse(&place, &["model.start=nothing"], "nothing");
    // A type that the model lacks.
    place.write("more.pubtator.txt", format!("{known}{more}").replace("cube\tShape", "cube\tForm"));
    refuse(&place, &["model.start=model"], "differs from the model in `model.start`");
}

#[test]
fn a_server_takes_it_and_other_models_link_its_mentions() {
    let place = place();
    train(&place, "model", &["model.linked_spans=mentions"]);
    #[cfg(unix)]
    {
        let answer = crate::serve::linked_by_server(&place, "model", "We saw the ring. A ring.");
        assert!(answer.contains(r#""text":"ring""#) && answer.contains(r#""id":"S:1""#), "{answer}");
    }
    let text = ["link", "--model", "model", "--kb", "shapes.kb", "--to", "jsonl", "--text", "We saw the ring. A dice."];
    let (ok, found, errors) = said(&place, &text, "");
    assert!(ok && found.contains(r#""text":"ring""#), "{found}{errors}");
    place.write("mentions.jsonl", found);
    let gold = ["link", "--model", "lexical", "--kb", "shapes.kb", "--mentions", "gold", "mentions.jsonl"];
    let (ok, linked, errors) = said(&place, &gold, "");
    assert!(ok && linked.contains("S:1") && linked.contains("S:3"), "{linked}{errors}");
}

#[test]
fn what_does_not_belong_together_is_refused() {
    let place = place();
    // Recognition weights detect mentions and do not link them.
    let crates = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    std::fs::create_dir_all(place.path("recognition")).unwrap();
    place.write("recognition/config.toml", "system = \"recognition\"\n");
    place.write("recognition/model.json", std::fs::read(crates.join("canonym-core/assets/recognition.json")).unwrap());
    for (set, expected) in [
        (vec!["model.tasks=[\"types\", \"mentions\"]"], "in this order"),
        (vec!["model.max_wordpieces=500"], "`max_wordpieces` must be at least 16"),
        (vec!["model.tasks=[\"concepts\"]", "model.framing=entity", "model.detector=nothing"], "nothing"),
        (vec!["model.tasks=[\"linking\"]"], "linking"),
        (vec!["batch.batch=0"], "`batch.batch` must be at least 1"),
        (vec!["batch.nil_weight=-0.5"], "`batch.nil_weight` must be above 0 and at most 1"),
        (vec!["run.adam.decay=l3"], "l3"),
        (vec!["model.linked_spans=mentions", "model.framing=entity"], "`linked_spans = \"mentions\"` needs"),
        (vec!["model.abstain=true", "model.tasks=[\"mentions\"]"], "`model.abstain` needs the task `concepts`"),
        (
            vec!["model.name_linker=lexical", "model.tasks=[\"mentions\"]"],
            "`model.name_linker` needs the task `concepts`",
        ),
        (vec!["model.name_linker=nothing"], "no such model: `./nothing`"),
        (vec!["model.name_linker=models/tiny"], "cannot open `model.name_linker`"),
        (vec!["model.name_linker=recognition"], "contains recognition weights, which do not link names"),
        (vec!["model.abstain=true"], "`model.abstain` needs documents that the threshold is chosen on"),
    ] {
        refuse(&place, &set, expected);
    }
}

/// Checks that training with overrides is refused with a message and a hint.
fn refuse(place: &Workplace, set: &[&str], expected: &str) {
    let mut arguments = vec!["train", "tasks.toml", "--allow-seen", "--data-root", ".", "--out", "out"];
    set.iter().for_each(|one| arguments.extend(["--set", one]));
    let (ok, _, errors) = said(place, &arguments, "");
    assert!(!ok && errors.contains(expected) && errors.contains("hint: "), "{set:?}: {errors}");
}
