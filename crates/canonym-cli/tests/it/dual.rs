//! Training the dual encoder on a tiny checkpoint, and linking with what was trained.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;

use canonym_neural::checkpoint::write_bert;
use canonym_neural::models::bert::BertConfig;
use canonym_neural::tensor::parameters::Parameters;
use canonym_neural::tensor::random::SplitMix64;
use canonym_neural::tokenizer::Tokenizer;

use crate::support::Workplace;

const EXPERIMENT: &str = r#"
system = "dual-encoder"
seed = 3

[data]
terminology = { path = "shapes.tsv", format = "tsv", prefix = "S" }
train = ["train.pubtator.txt"]
dev = ["train.pubtator.txt"]

[encoder]
bert = "tiny"
dropout = 0.0
head_pace = 2.0
layer_decay = 0.9

[model]
mention = "mean"
name = "mean"
search = { exhaustive = { longest = 3 } }

[windows]
wordpieces = 32
overlap = 8

[batch]
batch = 2
n_random = 2
n_hard = 2
shared = true

[run]
n_steps = 120
mining_interval = 20
evaluate_every = 2

[run.adam]
learning_rate = 2e-2
"#;

const SHAPES: &str = "1\tCircle\tring\n2\tSquare\tbox\n3\tCube\tdice\n";

const WORDS: [&str; 16] = [
    "[PAD]", "[UNK]", "[CLS]", "[SEP]", "circle", "ring", "square", "box", "cube", "dice", "a", "the", "saw", "we",
    ".", "##s",
];

/// A place with a terminology, a corpus and a checkpoint of two layers drawn at random.
pub fn place() -> Workplace {
    let place = Workplace::new();
    let json = format!(
        r#"{{"vocab_size": {}, "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 24,
            "max_position_embeddings": 40}}"#,
        WORDS.len()
    );
    let config: BertConfig = serde_json::from_str(&json).unwrap();
    let mut parameters = Parameters::default();
    config.init(&mut parameters, "", &mut SplitMix64::new(2));
    for row in 0..parameters.len() {
        parameters
            .at_mut(row)
            .values
            .iter_mut()
            .for_each(|value| *value = if *value == 1.0 { 1.0 } else { *value * 12.0 });
    }
    let tokenizer = Tokenizer::of(WORDS.map(str::to_owned).to_vec()).unwrap();
    write_bert(&place.path("models/tiny"), &config, &tokenizer, "", &parameters).unwrap();
    place.write("shapes.tsv", SHAPES);
    let mut corpus = String::new();
    for (at, (name, id)) in
        [("circle", "1"), ("square", "2"), ("dice", "3"), ("box", "2"), ("ring", "S:1")].iter().enumerate()
    {
        let title = format!("We saw the {name}.");
        corpus += &format!("{at}|t|{title}\n{at}|a|A {name}\n{at}\t11\t{}\t{name}\tShape\t{id}\n", 11 + name.len());
        let start = title.len() + 3;
        corpus += &format!("{at}\t{start}\t{}\t{name}\tShape\t{id}\n\n", start + name.len());
    }
    place.write("train.pubtator.txt", &corpus);
    place.write("shapes.toml", EXPERIMENT);
    place
}

/// Status, standard output and standard error.
pub fn said(place: &Workplace, arguments: &[&str], input: &str) -> (bool, String, String) {
    let mut command = place.command(arguments);
    command.env("CANONYM_CACHE", place.path("cache")).env("CANONYM_MODELS", place.path("models"));
    let output = Workplace::finish(&mut command, input);
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    (output.status.success(), text(&output.stdout), text(&output.stderr))
}

fn train(place: &Workplace, out: &str, set: &[&str]) -> (bool, String) {
    let mut arguments = vec!["train", "shapes.toml", "--allow-seen", "--data-root", ".", "--out", out];
    set.iter().for_each(|one| arguments.extend(["--set", one]));
    let (ok, _, errors) = said(place, &arguments, "");
    (ok, errors)
}

#[test]
fn what_was_trained_finds_and_links_mentions() {
    let place = place();
    let (ok, errors) = train(&place, "model", &[]);
    assert!(ok, "{errors}");
    let report: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(place.path("model/report.json")).unwrap()).unwrap();
    assert_eq!(report["train"]["n_mentions"], 10, "{report}");
    assert!(report["linking"]["accuracy_at_1"].as_f64().unwrap() > 0.9, "{report}");
    assert!(report["search"]["f1"].as_f64().unwrap() > 0.9, "{report}");
    let gold = ["link", "--model", "model", "--mentions", "gold", "--to", "jsonl", "train.pubtator.txt"];
    let (ok, linked, errors) = said(&place, &gold, "");
    assert!(ok && linked.lines().count() == 5, "{linked}{errors}");
    assert!(linked.lines().nth(2).unwrap().contains(r#""candidates":[{"id":"S:3","name":"Cube""#), "{linked}");
    let (ok, found, errors) =
        said(&place, &["link", "--model", "model", "--to", "jsonl", "--text", "We saw the ring."], "");
    assert!(ok && found.contains(r#""text":"ring""#) && found.contains(r#""id":"S:1""#), "{found}{errors}");
    // The same from the vectors that were kept.
    assert_eq!(said(&place, &["link", "--model", "model", "--to", "jsonl", "--text", "We saw the ring."], "").1, found);
    let (ok, mapped, errors) = said(&place, &["map", "--model", "model", "-"], "boxs\n");
    assert!(ok && mapped.contains(r#""id":"S:2""#), "{mapped}{errors}");
    let evaluate =
        ["eval", "--allow-seen", "--model", "model", "--kb", "model/terminology.kb", "--data", "train.pubtator.txt"];
    let (ok, scores, errors) = said(&place, &evaluate, "");
    assert!(ok && scores.contains("strict"), "{scores}{errors}");
    // Without `--kb` it is judged as it links: with the terminology that it was trained with.
    let (ok, same, errors) =
        said(&place, &["eval", "--allow-seen", "--model", "model", "--data", "train.pubtator.txt"], "");
    assert!(ok && same == scores, "{same}{errors}");
    let (ok, leaky, errors) = said(&place, &[&evaluate[..], &["--leaky-tokenisation"]].concat(), "");
    assert!(ok && leaky.contains("strict"), "{leaky}{errors}");
    let lexical = ["eval", "--model", "lexical", "--data", "train.pubtator.txt", "--leaky-tokenisation"];
    let (ok, _, errors) = said(&place, &lexical, "");
    assert!(
        !ok && errors.contains("leaky tokenisation does not apply to this model") && errors.contains("hint:"),
        "{errors}"
    );
    for given in ["detect", "gold"] {
        let arguments =
            ["link", "--model", "model", "--explain", "--mentions", given, "--to", "jsonl", "train.pubtator.txt"];
        let (ok, found, errors) = said(&place, &arguments, "");
        assert!(ok && found.contains(r#""feature":"context""#), "{found}{errors}");
    }
    let (ok, mapped, errors) = said(&place, &["map", "--model", "model", "--explain", "-"], "boxs\n");
    assert!(ok && mapped.contains(r#""feature":"context""#), "{mapped}{errors}");
}

#[test]
fn a_model_that_finds_nothing_links_what_the_default_model_finds() {
    let place = place();
    let table = EXPERIMENT.replace("search = { exhaustive = { longest = 3 } }\n", "");
    place.write("shapes.toml", &table);
    let (ok, errors) = train(&place, "model", &["run.n_steps=30", "encoder.compute=bf16"]);
    assert!(ok, "{errors}");
    let written = std::fs::read(place.path("model/model.safetensors")).unwrap();
    assert!(String::from_utf8_lossy(&written).contains("bf16"), "the model keeps what it was made with");
    // The default model finds few of these names, because they are everyday words.
    let search = &report(&place, "model")["search_by_default_model"];
    assert!(search["f1"].as_f64().unwrap() > 0.2 && search["weights"]["least"].as_f64().is_some(), "{search}");
    for more in [&[][..], &["--explain"]] {
        let arguments = [&["link", "--model", "model", "--to", "jsonl", "--text", "We saw the circle."], more].concat();
        let (ok, found, errors) = said(&place, &arguments, "");
        assert!(ok && found.contains(r#""text":"circle""#) && found.contains(r#""id":"S:1""#), "{found}{errors}");
    }
}

#[test]
fn a_model_is_judged_on_documents_that_no_part_was_trained_on() {
    let place = place();
    let bare = ["train", "shapes.toml", "--data-root", ".", "--out", "model"];
    let (ok, _, errors) = said(&place, &bare, "");
    let expected =
        "held-out documents: 5 of 5 documents were seen in training: dual-encoder (trained on 5 of train.pubtator.txt)";
    assert!(!ok && errors.contains(expected) && errors.contains("hint: "), "{errors}");
    assert!(!place.path("model/model.safetensors").exists());
    let part = |numbers: std::ops::Range<usize>, word: &str| -> String {
        let one = |at: usize| {
            let title = format!("We saw {word} the ring.");
            let start = title.find("ring").unwrap();
            format!("{at}|t|{title}\n{at}|a|Box {at}.\n{at}\t{start}\t{}\tring\tShape\t1\n\n", start + 4)
        };
        numbers.map(one).collect()
    };
    place.write("tune.pubtator.txt", part(10..13, "a"));
    place.write("dev.pubtator.txt", part(20..24, "we"));
    let apart = EXPERIMENT
        .replace("dev = [\"train.pubtator.txt\"]", "dev = [\"dev.pubtator.txt\"]\ntune = [\"tune.pubtator.txt\"]");
    place.write("shapes.toml", &apart);
    let (ok, _, errors) = said(&place, &[&bare[..], &["--set", "run.n_steps=40"]].concat(), "");
    assert!(ok, "{errors}");
    let report = report(&place, "model");
    assert_eq!(report["chosen_on"], "tune", "{report}");
    assert_eq!(report["held_out"]["n_documents"], 4, "{report}");
    assert!(report["held_out"]["found"]["f1"].as_f64().is_some() && report.get("seen").is_none(), "{report}");
    let (ok, card, errors) = said(&place, &["model", "info", "model"], "");
    assert!(ok, "{errors}");
    for line in ["5  train.pubtator.txt: trained by dual-encoder", "3  tune.pubtator.txt: tuned by dual-encoder"] {
        assert!(card.contains(line), "{card}");
    }
    assert!(!card.contains("  dev.pubtator.txt"), "{card}");
    // Nothing was chosen on the development part, so it is measured freely, and as the report says.
    let judge = |data: &str| said(&place, &["eval", "--model", "model", "--data", data, "--json"], "");
    let (ok, json, errors) = judge("dev.pubtator.txt");
    assert!(ok, "{errors}");
    let judged: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(judged["metrics"]["strict"]["f1"], report["held_out"]["found"]["f1"]);
    for (data, told) in [("train.pubtator.txt", "seen in training"), ("tune.pubtator.txt", "used to tune or calibrate")]
    {
        let (ok, _, errors) = judge(data);
        assert!(!ok && errors.contains(told), "{errors}");
    }
}

#[test]
fn what_finds_mentions_for_judging_can_be_named_or_left_out() {
    let place = place();
    let table = EXPERIMENT.replace("search = { exhaustive = { longest = 3 } }\n", "");
    place.write("shapes.toml", &table);
    let (ok, errors) = train(&place, "given", &["run.n_steps=10", "held_out.mentions=none"]);
    assert!(ok, "{errors}");
    let report = report(&place, "given");
    assert!(report["search_by_default_model"].is_null() && report["linking"]["accuracy_at_1"].is_f64(), "{report}");
    let (ok, errors) = train(&place, "other", &["run.n_steps=10", "held_out.mentions=nothing.safetensors"]);
    assert!(
        !ok && errors.contains("`held_out.mentions` must be a bundle that detects mentions, or `none`"),
        "{errors}"
    );
}

#[test]
fn training_again_gives_the_same_model_and_kinds_of_models_can_be_set() {
    let place = place();
    let short = "run.n_steps=10";
    let model = |name: &str| std::fs::read(place.path(&format!("{name}/model.safetensors"))).unwrap();
    assert!(train(&place, "first", &[short]).0 && train(&place, "second", &[short]).0);
    assert_eq!(model("first"), model("second"));
    let single = [short, "model.mention=first", "model.name=pooler", "windows.marked=true", "windows.wordpieces=12"];
    let table = EXPERIMENT.replace("search = { exhaustive = { longest = 3 } }\n", "");
    place.write("shapes.toml", &table);
    let (ok, errors) = train(&place, "single", &single);
    assert!(ok, "{errors}");
    let gold = ["link", "--model", "single", "--mentions", "gold", "--to", "jsonl", "train.pubtator.txt"];
    let (ok, linked, errors) = said(&place, &gold, "");
    assert!(ok && linked.lines().count() == 5, "{errors}");
    let published = [short, "windows.mentions=8", "model.mention=ends", "batch.shared=false", "data.concepts=all"];
    let (ok, errors) = train(&place, "published", &published);
    assert!(ok, "{errors}");
    place.write("shapes.toml", EXPERIMENT.replace("search = { exhaustive = { longest = 3 } }", "search = \"tags\""));
    let (ok, errors) = train(&place, "tags", &[short, "encoder.train_embeddings=false", "data.lexical_fusion=true"]);
    assert!(ok, "{errors}");
    let (ok, linked, errors) = said(&place, &["map", "--model", "tags", "-"], "ring\n");
    assert!(ok && linked.contains(r#"{"id":"S:1","name":"Circle""#), "{linked}{errors}");
}

#[test]
fn mentions_can_be_the_names_and_names_can_be_rehearsed() {
    let place = place();
    let alone = ["run.n_steps=60", "data.mention_names=true", "data.concepts=all", "model.name=direction"];
    place.write(
        "shapes.toml",
        EXPERIMENT.replace("terminology = { path = \"shapes.tsv\", format = \"tsv\", prefix = \"S\" }\n", ""),
    );
    let (ok, errors) = train(&place, "alone", &alone);
    assert!(ok, "{errors}");
    let (ok, shown, errors) = said(&place, &["kb", "show", "alone/terminology.kb", "2"], "");
    assert!(ok && shown.contains("square") && shown.contains("box"), "{shown}{errors}");
    place.write("open.tsv", "2\tquadrangle\n7\tblob\n");
    let open = "data.more=[{path=\"open.tsv\",format=\"tsv\"}]";
    let (ok, errors) = train(&place, "open", &[&alone[..], &[open, "run.n_steps=2"]].concat());
    assert!(ok && report(&place, "open")["n_concepts"] == 5, "{errors}");
    let (ok, shown, errors) = said(&place, &["kb", "show", "open/terminology.kb", "2"], "");
    assert!(ok && shown.contains("quadrangle") && shown.contains("box"), "{shown}{errors}");
    std::fs::write(place.path("open.tsv"), b"2\tquadrangle\n7\t\xff\n").unwrap();
    let (ok, errors) = train(&place, "broken", &[&alone[..], &[open]].concat());
    assert!(!ok && errors.contains("open.tsv:2: ") && errors.contains("hint:"), "{errors}");
    assert!(!place.path("broken/names.jsonl").exists(), "nothing half-made is left");
    let alone = report(&place, "alone");
    assert_eq!(alone["linking_unseen"]["n_mentions"], 0, "{alone}");
    assert_eq!(alone["linking_seen"], alone["linking"], "{alone}");
    place.write("shapes.toml", EXPERIMENT);
    place.write("more.tsv", "S:1\thoop\nS:9\tblob\n");
    let rehearsed = ["run.n_steps=10", "batch.rehearsed=3", "data.synonyms=[{path=\"more.tsv\",format=\"tsv\"}]"];
    let (ok, errors) = train(&place, "rehearsed", &rehearsed);
    assert!(ok && !place.path("rehearsed/synonyms.kb").exists(), "{errors}");
    // Merged: a concept of its own, a further name, and one whose second id is that of another concept.
    place.write("more.tsv", "S:1\thoop\nS:9\tblob\n");
    place.write("shared.txt", "S:8|S:3||die\n");
    place.write("last.pubtator.txt", "5|t|A die, a hoop, a blob.\n5|a|\n5\t2\t5\tdie\tShape\t3\n5\t9\t13\thoop\tShape\t1\n5\t17\t21\tblob\tShape\t9\n\n");
    let dev = "data.dev=[\"last.pubtator.txt\"]";
    let more = "data.more=[{path=\"more.tsv\",format=\"tsv\"},{path=\"shared.txt\",format=\"biosyn\"}]";
    let (ok, errors) =
        train(&place, "merged", &["run.n_steps=2", "data.lexical_fusion=true", "data.concepts=all", dev, more]);
    assert!(ok, "{errors}");
    let merged = report(&place, "merged");
    assert_eq!((&merged["n_concepts"], &merged["dev"]["n_unknown"]), (&5.into(), &0.into()), "{merged}");
    assert_eq!(merged["fused"]["lexical"], 1.0, "either concept of a shared id is right: {merged}");
    let (ok, errors) = train(&place, "alone", &["data.terminology={path=\"none.tsv\",format=\"tsv\"}", more]);
    assert!(!ok && errors.contains("none.tsv"), "{errors}");
}

#[test]
fn a_trained_name_encoder_can_be_an_additional_scorer() {
    let place = place();
    let experiment = concat!(
        "system = \"rescnn\"\nseed = 1\n[data]\nqueries = \"train.pubtator.txt\"\ndev_queries = \"train.pubtator.txt\"\n",
        "terminology = { path = \"shapes.tsv\", format = \"tsv\", prefix = \"S\" }\n[vocabulary]\nsize = 30\ndim = 8\n",
        "[model]\nwidth = 8\nn_filters = 4\nhidden = 8\nn_blocks = 1\n[train.batch]\nbatch = 4\n[train.run]\nn_steps = 5\n",
    );
    place.write("names.toml", experiment);
    let (ok, _, errors) =
        said(&place, &["train", "names.toml", "--allow-seen", "--data-root", ".", "--out", "names"], "");
    assert!(ok, "{errors}");
    let set = ["run.n_steps=30", "encoder.name_encoder=names", "data.lexical_fusion=true"];
    let (ok, errors) = train(&place, "model", &set);
    assert!(ok, "{errors}");
    let report = report(&place, "model");
    assert_eq!(report["by_name_weight"].as_array().unwrap().len(), 14, "{report}");
    let fused = &report["fused"];
    assert!(fused["all"].as_f64() >= fused["hybrid"].as_f64() && fused["names"].is_f64(), "{fused}");
    // It travels with the model.
    std::fs::remove_dir_all(place.path("names")).unwrap();
    let (ok, linked, errors) = said(&place, &["map", "--model", "model", "-"], "ring\n");
    assert!(ok && linked.contains(r#"{"id":"S:1","name":"Circle""#), "{linked}{errors}");
    let (ok, errors) = train(&place, "other", &set);
    assert!(!ok && errors.contains("names") && errors.contains("cannot"), "{errors}");
    for (set, expected) in [
        ("data.concepts=[1]", "expected a string in `data.concepts`"),
        ("run.n_steps=\"x\"", "expected u64 in `run.n_steps`"),
        ("batch.n_rnd=1", "hint: did you mean `n_random`?"),
    ] {
        let (ok, errors) = train(&place, "other", &[set]);
        assert!(!ok && errors.contains(expected) && errors.contains("see `experiments/`"), "{errors}");
    }
}

fn report(place: &Workplace, out: &str) -> serde_json::Value {
    serde_json::from_str(&std::fs::read_to_string(place.path(&format!("{out}/report.json"))).unwrap()).unwrap()
}

#[test]
fn a_trained_model_is_judged_again_or_learned_on_from() {
    let place = place();
    let (ok, errors) = train(&place, "first", &["run.n_steps=20"]);
    assert!(ok, "{errors}");
    let of_first = EXPERIMENT.replace("bert = \"tiny\"", "from = \"first\"");
    place.write("shapes.toml", &of_first);
    let (ok, errors) = train(&place, "judged", &["run.n_steps=0", "data.same_sense=0.5"]);
    assert!(ok, "{errors}");
    // Weights were written in 16 bits before they were judged, so nothing differs.
    let (first, judged) = (report(&place, "first"), report(&place, "judged"));
    let of_search = |report: &serde_json::Value| (report["linking"].clone(), report["search"]["by_min_span"].clone());
    assert_eq!(of_search(&first), of_search(&judged));
    assert!(judged["search"]["joint"]["calibration_error"].as_f64().is_some(), "{judged}");
    let weights = judged["by_one_sense_weight"].as_array().unwrap();
    assert_eq!((weights.len(), &weights[0][0]), (4, &serde_json::json!(0.0)), "{judged}");
    let (ok, linked, errors) =
        said(&place, &["link", "--model", "judged", "--to", "jsonl", "--text", "A ring, a ring."], "");
    assert!(ok && linked.lines().count() == 1, "{errors}");
    // What is recomputed is the same.
    let more = ["run.n_steps=4", "data.concepts=types"];
    assert!(
        train(&place, "second", &more).0 && train(&place, "third", &[&more[..], &["run.recompute=true"]].concat()).0
    );
    let bytes = |name: &str| std::fs::read(place.path(&format!("{name}/model.safetensors"))).unwrap();
    assert_eq!(bytes("second"), bytes("third"));
    // A compiled knowledge base takes the place of the terminology.
    place.write(
        "shapes.toml",
        of_first.replace(
            "terminology = { path = \"shapes.tsv\", format = \"tsv\", prefix = \"S\" }",
            "kb = \"first/terminology.kb\"",
        ),
    );
    let (ok, errors) = train(&place, "compiled", &["run.n_steps=0"]);
    assert!(ok && report(&place, "compiled")["linking"] == first["linking"], "{errors}");
    let (ok, errors) = train(&place, "compiled", &["data.mention_names=true"]);
    assert!(!ok && errors.contains("more than one terminology"), "{errors}");
    assert!(errors.contains("compiled already holds a model; it will be replaced when training finishes"), "{errors}");
    place.write("shapes.toml", &of_first);
    let (ok, errors) = train(&place, "alone", &["run.n_steps=0", "data.train=[]"]);
    assert!(ok, "{errors}");
    for (set, expected) in [
        ("model.mention=ends", "omit both tables"),
        ("encoder.bert=tiny", "must name exactly one initial model"),
        ("encoder.from=none", "none"),
    ] {
        let (ok, errors) = train(&place, "model", &[set]);
        assert!(!ok && errors.contains(expected), "{set}: {errors}");
    }
}

#[cfg(unix)]
#[test]
fn a_server_that_was_started_with_a_dual_encoder_trains_it() {
    use crate::serve::ask;

    let place = place();
    let (ok, errors) = train(&place, "model", &["run.n_steps=20"]);
    assert!(ok, "{errors}");
    let mut command = place.command(&["serve", "--model", "model", "--bind", "127.0.0.1:0", "--data", "kept"]);
    command.env("CANONYM_CACHE", place.path("cache")).stdin(std::process::Stdio::null());
    let mut child = command.stderr(std::process::Stdio::piped()).spawn().unwrap();
    let mut told = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    while !line.contains("http://") {
        line.clear();
        assert!(told.read_line(&mut line).unwrap() > 0, "the server ended");
    }
    let address = line.split("http://").nth(1).and_then(|rest| rest.split('/').next()).expect(&line).to_owned();
    let linked = ask(&address, "POST", "/api/v1/link", "{\"text\": \"We saw the ring.\", \"explain\": true}");
    assert!(linked.contains("\"candidates\":[{\"id\":\"S:") && linked.contains("\"feature\":\"context\""), "{linked}");
    ask(&address, "POST", "/api/v1/projects", "{\"name\": \"Shapes\"}");
    let corpus = std::fs::read_to_string(place.path("train.pubtator.txt")).unwrap();
    let corpus = format!("{}\nnew|t|We saw the ring.\nnew|a|\n\n", corpus.trim_end());
    let report = ask(
        &address,
        "POST",
        "/api/v1/projects/1/import?format=pubtator&annotations=gold&filename=shapes.txt",
        &corpus,
    );
    assert!(report.contains("\"n_documents\":6"), "{report}");
    let job = ask(&address, "POST", "/api/v1/projects/1/jobs", "{\"kind\": \"train\", \"settings\": {\"steps\": 60}}");
    assert!(job.starts_with("HTTP/1.1 202"), "{job}");
    let is_over = |job: &String| ["SUCCEEDED", "FAILED", "CANCELLED"].iter().any(|state| job.contains(state));
    let ended = |number: u32| {
        let asked = (0..600).map(|_| {
            std::thread::sleep(std::time::Duration::from_millis(200));
            ask(&address, "GET", &format!("/api/v1/jobs/{number}"), "")
        });
        asked.into_iter().find(is_over).expect("it ends")
    };
    let job = ended(1);
    assert!(job.contains("SUCCEEDED") && job.contains("\"curve\":[{"), "{job}");
    let models = ask(&address, "GET", "/api/v1/models?project=1", "");
    assert!(models.contains("model + 5 documents") || models.contains("model + 4 documents"), "{models}");
    // With so few held-out documents, it is offered.
    assert!(job.contains("offered, not used"), "{job}");
    let used = ask(&address, "POST", "/api/v1/projects/1/models/2/use", "{}");
    assert!(used.starts_with("HTTP/1.1 200"), "{used}");
    ask(&address, "POST", "/api/v1/projects/1/jobs", "{\"kind\": \"predict\"}");
    ended(2);
    let document = ask(&address, "GET", "/api/v1/documents/6", "");
    assert!(document.contains("\"source\":\"PRED\""), "{document}");
    child.kill().unwrap();
    child.wait().unwrap();
}

/// A hub on this machine with the files of a folder; it answers as long as the test runs.
fn hub(folder: std::path::PathBuf) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut lines = BufReader::new(stream.try_clone().unwrap()).lines().map_while(Result::ok);
            let asked = lines.next().unwrap_or_default();
            lines.take_while(|line| !line.is_empty()).for_each(drop);
            let file = asked.split(' ').nth(1).and_then(|path| path.strip_prefix("/lab/tiny/resolve/main/"));
            let body = file.and_then(|file| std::fs::read(folder.join(file)).ok());
            let status = if body.is_some() { "200 OK" } else { "404 Not Found" };
            let body = body.unwrap_or_default();
            let head = format!("HTTP/1.1 {status}\r\nconnection: close\r\ncontent-length: {}\r\n\r\n", body.len());
            // A client that has read enough may be gone.
            stream.write_all(&[head.into_bytes(), body].concat()).ok();
        }
    });
    address
}

#[test]
fn a_checkpoint_is_fetched_by_its_name_once() {
    let place = place();
    let hub = hub(place.path("models/tiny"));
    let train = |out: &str, variables: &[(&str, &str)]| {
        let set = ["--set", "encoder.bert=lab/tiny", "--set", "run.n_steps=2"];
        let mut command = place
            .command(&[&["train", "shapes.toml", "--allow-seen", "--data-root", ".", "--out", out], &set[..]].concat());
        for variable in ["http_proxy", "all_proxy", "HTTP_PROXY", "ALL_PROXY", "CANONYM_OFFLINE", "HF_HUB_OFFLINE"] {
            command.env_remove(variable);
        }
        command.env("CANONYM_MODELS", place.path("fetched")).env("HF_ENDPOINT", &hub);
        command.envs(variables.iter().copied());
        let output = Workplace::finish(&mut command, "");
        (output.status.success(), String::from_utf8(output.stderr).unwrap())
    };
    let (ok, errors) = train("offline", &[("CANONYM_OFFLINE", "1")]);
    assert!(!ok && errors.contains("CANONYM_OFFLINE is set, so nothing was downloaded"), "{errors}");
    let (ok, errors) = train("away", &[("HF_ENDPOINT", "http://127.0.0.1:1")]);
    assert!(!ok && errors.contains("hint: without network access, copy the files of lab/tiny"), "{errors}");
    let (ok, errors) = train("first", &[]);
    assert!(ok && errors.contains("downloading lab/tiny"), "{errors}");
    let (ok, errors) = train("second", &[("CANONYM_OFFLINE", "1")]);
    assert!(ok, "{errors}");
}

#[test]
fn what_cannot_be_trained_is_told() {
    let place = place();
    let cases = [
        ("encoder.bert=big", "no checkpoint found at ./big or "),
        ("windows.wordpieces=64", "exceed the 40 positions of the checkpoint"),
        ("windows.marked=true", "`windows.marked` and `model.mention` do not match"),
        ("data.hold_out=1", "invalid held-out documents"),
        ("data.train=[]", "have no mentions"),
        ("data.synonyms=[{path=\"none.tsv\",format=\"tsv\"}]", "none.tsv"),
        ("data.train=[\"none.txt\"]", "none.txt"),
        ("windows.wordpieces=2", "invalid windows: 2 wordpieces"),
    ];
    // A model that is there already outlives a training that fails.
    assert!(train(&place, "model", &["run.n_steps=4"]).0);
    let link = ["link", "--model", "model", "--mentions", "gold", "--to", "jsonl", "train.pubtator.txt"];
    let before = said(&place, &link, "");
    for (set, expected) in cases {
        let (ok, errors) = train(&place, "model", &[set]);
        assert!(!ok && errors.contains(expected), "{set}: {errors}");
    }
    place.write("other.tsv", "9\tSphere\tball\n");
    let (ok, errors) = train(&place, "model", &["data.terminology.path=other.tsv"]);
    assert!(!ok && errors.contains("corpora have ids such as `") && errors.contains("such as `S:9`"), "{errors}");
    assert_eq!(said(&place, &link, ""), before);
    // A folder whose training did not end is no model.
    assert!(!train(&place, "half", &["data.terminology.path=other.tsv"]).0);
    let (ok, _, errors) = said(&place, &["link", "--model", "half", "--text", "ring"], "");
    assert!(!ok && errors.contains("half does not contain a complete model"), "{errors}");
    std::fs::create_dir(place.path("big")).unwrap();
    place.write("big/config.json", "{}");
    let (ok, errors) = train(&place, "half", &["encoder.bert=big"]);
    assert!(!ok && errors.contains("has no model.safetensors"), "{errors}");
    let (ok, errors) = train(&place, "half", &["encoder.bert=big/none"]);
    assert!(!ok && errors.contains("no checkpoint found at ./big/none"), "{errors}");
    place.write("model/model.safetensors", "no model");
    let (ok, _, errors) = said(&place, &["map", "--model", "model", "-"], "ring\n");
    assert!(!ok && errors.contains("incomplete safetensors file"), "{errors}");
}
