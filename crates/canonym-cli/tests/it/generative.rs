//! Training the generative linker on a tiny terminology and corpus, and linking with what was trained.

use crate::dual::said;
use crate::support::Workplace;

const PRETRAINING: &str = r#"
system = "generative"
seed = 3

[data]
pretrain = [{ path = "shapes.tsv", format = "tsv" }]

[model]
vocabulary = 80
width = 16
encoder_layers = 1
decoder_layers = 1
heads = 2
source_positions = 24
positions = 24
dropout = 0.0

[pretrain]
batch = { batch = 8, label_smoothing = 0.0 }
run = { n_steps = 60, mining_interval = 30, adam = { learning_rate = 5e-3 } }
"#;

const FINE_TUNING: &str = r#"
[train]
batch = { batch = 8, label_smoothing = 0.0 }
run = { n_steps = 150, mining_interval = 50, adam = { learning_rate = 5e-3 } }
"#;

/// Overrides that add corpora to an experiment.
const CORPORA: [&str; 3] = [
    "data.terminology={ path = \"shapes.tsv\", format = \"tsv\" }",
    "data.train=[\"train.pubtator.txt\"]",
    "data.dev=[\"train.pubtator.txt\"]",
];

fn run(place: &Workplace, arguments: &[&str], input: &str) -> String {
    let (ok, output, errors) = said(place, arguments, input);
    assert!(ok, "{arguments:?}: {errors}");
    output
}

fn fail(place: &Workplace, arguments: &[&str], input: &str) -> String {
    let (ok, output, errors) = said(place, arguments, input);
    assert!(!ok, "{arguments:?}: {output}");
    errors
}

fn place() -> Workplace {
    let place = Workplace::new();
    place.write("shapes.tsv", "S:1\tCircle\tround ring|Ring\nS:2\tSquare\tbox\nS:3\tCube\tsmall dice|dice\n");
    let document = |id: usize, text: &str, mention: &str, concept: &str| {
        let start = text.find(mention).unwrap();
        let end = start + mention.len();
        format!("{id}|t|{text}\n{id}|a|\n{id}\t{start}\t{end}\t{mention}\tForm\t{concept}\n\n")
    };
    let texts = [
        document(1, "We saw the ring.", "ring", "S:1"),
        document(2, "A box was there.", "box", "S:2"),
        document(3, "The dice fell.", "dice", "S:3"),
        document(4, "Then a circle was drawn.", "circle", "S:1"),
        document(5, "An odd small die.", "small die", "S:3"),
    ];
    place.write("train.pubtator.txt", texts.concat());
    place.write("pretraining.toml", PRETRAINING);
    place.write("generative.toml", format!("{PRETRAINING}{FINE_TUNING}"));
    let tuning = "system = \"generative\"\nseed = 3\n[data]\n[model]\nstart = \"pretrained\"\n";
    place.write("tuning.toml", format!("{tuning}{FINE_TUNING}"));
    run(&place, &["kb", "build", "shapes.tsv", "--out", "shapes.kb"], "");
    place
}

fn train(place: &Workplace, experiment: &str, out: &str, set: &[&str]) -> serde_json::Value {
    run(place, &arguments(experiment, out, &[&CORPORA, set].concat()), "");
    serde_json::from_str(&std::fs::read_to_string(place.path(&format!("{out}/report.json"))).unwrap()).unwrap()
}

fn arguments<'a>(experiment: &'a str, out: &'a str, set: &[&'a str]) -> Vec<&'a str> {
    let mut arguments = vec!["train", experiment, "--allow-seen", "--data-root", ".", "--out", out];
    set.iter().for_each(|one| arguments.extend(["--set", one]));
    arguments
}

#[test]
fn it_writes_the_names_that_it_was_shown_and_those_of_another_terminology() {
    let place = place();
    let report = train(&place, "generative.toml", "model", &["data.n_dev_before=100"]);
    assert_eq!(report["pretrain"]["n_concepts"], 3, "{report}");
    assert_eq!(report["train"]["n_examples"], 5, "{report}");
    assert!(report["dev"]["all"]["accuracy"]["1"].as_f64().unwrap() > 0.9, "{report}");
    assert_eq!(report["before"]["all"]["n_mentions"], 5, "{report}");
    let gold = ["link", "--model", "model", "--kb", "shapes.kb", "--mentions", "gold", "train.pubtator.txt"];
    let linked = run(&place, &gold, "");
    assert!(linked.lines().count() == 5 && linked.contains("S:3"), "{linked}");
    let explained = run(&place, &[&gold[..], &["--explain", "--to", "jsonl"]].concat(), "");
    assert!(explained.contains("probability of its names among all names that were written"), "{explained}");
    let sheet = run(&place, &["model", "info", "model"], "");
    assert!(sheet.contains("generative linker: 1 + 1 layers of 16"), "{sheet}");
    // Mentions in text are found by the default model.
    let text = ["link", "--model", "model", "--kb", "shapes.kb", "--to", "jsonl", "--text", "Then a circle was drawn."];
    assert!(run(&place, &text, "").contains(r#""id":"S:1""#));
    #[cfg(unix)]
    {
        let answer = crate::serve::linked_by_server(&place, "model", "Then a circle was drawn.");
        assert!(answer.contains(r#""id":"S:1""#), "{answer}");
    }
    let empty = run(&place, &["link", "--model", "model", "--kb", "shapes.kb", "--to", "jsonl", "--text", ""], "");
    assert!(!empty.contains("S:"), "{empty}");
    // Names without context.
    let mapped = run(&place, &["map", "--model", "model", "--kb", "shapes.kb", "-"], "box\n\ndice\n");
    assert!(mapped.contains("S:2") && mapped.contains("S:3"), "{mapped}");
    // Only names of the terminology at hand are written.
    place.write("other.tsv", "T:1\tdice\n");
    run(&place, &["kb", "build", "other.tsv", "--out", "other.kb"], "");
    let gold = ["link", "--model", "model", "--kb", "other.kb", "--mentions", "gold", "train.pubtator.txt"];
    let linked = run(&place, &gold, "");
    assert!(linked.contains("T:1") && !linked.contains("S:"), "{linked}");
}

#[test]
fn each_stage_stands_alone_and_candidates_are_reranked() {
    let place = place();
    run(&place, &arguments("pretraining.toml", "pretrained", &[]), "");
    let report = train(&place, "tuning.toml", "tuned", &["n_candidates=3", "data.target=sampled"]);
    assert!(report["dev_candidates"]["all"]["accuracy"]["1"].as_f64().unwrap() >= 0.8, "{report}");
    let gold = ["link", "--model", "tuned", "--kb", "shapes.kb", "--mentions", "gold", "train.pubtator.txt"];
    assert!(run(&place, &gold, "").contains("S:1"));
    let explained = run(&place, &[&gold[..], &["--explain", "--to", "jsonl"]].concat(), "");
    for sentence in ["mean log-probability of the name that the model wrote", "probability by the lexical linker"] {
        assert!(explained.contains(sentence), "{explained}");
    }
    // Beside the candidates, any name.
    let set = ["n_candidates=1", "any_name=true", "data.tune_share=3"];
    let report = train(&place, "tuning.toml", "any", &set);
    assert_eq!(report["candidates"]["any_name"], true, "{report}");
    assert!(report["dev_candidates"]["all"]["accuracy"]["5"].as_f64().unwrap() >= 0.8, "{report}");
    let linked =
        ["link", "--model", "any", "--kb", "shapes.kb", "--mentions", "gold", "--to", "jsonl", "train.pubtator.txt"];
    assert!(run(&place, &linked, "").contains("S:1"));
    // The preferred name of each concept alone.
    let set = ["text.names=preferred", "train.run.n_steps=2", "train.run.mining_interval=2"];
    let all = report["names"]["n_nodes"].as_u64().unwrap();
    let report = train(&place, "tuning.toml", "preferred", &set);
    assert!(report["names"]["n_nodes"].as_u64().unwrap() < all, "{report}");
    // What was read is recorded, and a model that learned from no document says so.
    let sheet = run(&place, &["model", "info", "tuned"], "");
    assert!(sheet.contains("  train.pubtator.txt"), "{sheet}");
    let sheet = run(&place, &["model", "info", "pretrained"], "");
    assert!(!sheet.contains("  train.pubtator.txt"), "{sheet}");
    for (set, expected) in [
        ("model.encoder=tiny", "`model` has several checkpoints"),
        ("train.batch.batch=0", "invalid `batch`"),
        ("beams.n_beams=0", "invalid `beams`"),
        ("beams.n_beams=100000000000", "invalid `beams`"),
        ("beams.length_penalty=nan", "invalid `beams`"),
        ("n_candidates=0", "invalid `n_candidates`"),
        ("any_name=true", "`any_name` has no effect"),
        ("text.names=some", "unknown variant `some`"),
        ("data.train=[]", "there is nothing to fine-tune on"),
        ("data.target=longest", "unknown variant `longest`"),
        ("model.start=shapes.tsv", "shapes.tsv"),
    ] {
        let errors = fail(&place, &arguments("tuning.toml", "none", &[&CORPORA[..], &[set]].concat()), "");
        assert!(errors.contains(expected) && errors.contains("hint:"), "{set}: {errors}");
    }
}

#[test]
fn names_that_the_vocabulary_does_not_tell_apart_keep_their_concepts() {
    let place = place();
    train(&place, "generative.toml", "model", &[]);
    place.write("accents.tsv", "T:1\tcírcle\nT:2\tcircle\n");
    run(&place, &["kb", "build", "accents.tsv", "--out", "accents.kb"], "");
    let mapped = run(&place, &["map", "--model", "model", "--kb", "accents.kb", "-"], "circle\n");
    assert!(mapped.contains("T:1") && mapped.contains("T:2"), "{mapped}");
}

#[test]
fn without_anything_to_learn_from_training_is_refused() {
    let place = place();
    place.write("shapes.tsv", "S:1\tCircle\nS:2\tSquare\n");
    let errors = fail(&place, &arguments("pretraining.toml", "none", &[]), "");
    assert!(errors.contains("has a definition or several names") && errors.contains("hint:"), "{errors}");
}

#[test]
fn queries_are_recorded_as_the_documents_that_they_are_from() {
    let place = place();
    run(&place, &arguments("pretraining.toml", "pretrained", &[]), "");
    let queries = [&CORPORA[..], &["data.queries=true"]].concat();
    let once = |out: &'static str, set: &[&'static str]| {
        let mut words = vec!["train", "tuning.toml", "--data-root", ".", "--out", out];
        queries.iter().chain(set).for_each(|one| words.extend(["--set", one]));
        said(&place, &words, "")
    };
    let (ok, _, errors) = once("seen", &[]);
    assert!(!ok && errors.contains("5 of 5"), "{errors}");
    place.write("one.tsv", "ring\tS:1\nbox\tS:2\ndice\tS:3\n");
    place.write("two.tsv", "ring\tS:1\nround ring\tS:1\n");
    let set = ["data.train=[\"one.tsv\"]", "data.dev=[\"two.tsv\"]", "data.tune_share=2"];
    let (ok, _, errors) = once("model", &set);
    assert!(ok, "{errors}");
}

#[test]
fn a_damaged_bundle_is_refused() {
    let place = place();
    train(&place, "generative.toml", "model", &["pretrain.run.n_steps=2", "train.run.n_steps=2"]);
    let path = place.path("model/model.safetensors");
    let bytes = std::fs::read(&path).unwrap();
    let link = ["link", "--model", "model", "--kb", "shapes.kb", "--mentions", "gold", "train.pubtator.txt"];
    for length in [0, 7, 200, bytes.len() / 2, bytes.len() - 1] {
        std::fs::write(&path, &bytes[..length]).unwrap();
        let errors = fail(&place, &link, "");
        assert!(errors.contains("model.safetensors"), "{length}: {errors}");
    }
    for at in [100, bytes.len() / 3, bytes.len() - 9] {
        let mut damaged = bytes.clone();
        damaged[at] ^= 1;
        std::fs::write(&path, damaged).unwrap();
        let errors = fail(&place, &link, "");
        assert!(errors.contains("model.safetensors") && errors.contains("hint:"), "{at}: {errors}");
    }
}
