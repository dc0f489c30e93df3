//! Ranking by BM25, and a cross-encoder behind it: training, linking, judging.

use std::path::Path;

use canonym_neural::checkpoint::write_bert;
use canonym_neural::models::bert::BertConfig;
use canonym_neural::tensor::parameters::Parameters;
use canonym_neural::tensor::random::SplitMix64;
use canonym_neural::tokenizer::Tokenizer;

use crate::support::{SHAPES, Workplace};

const EXPERIMENT: &str = r#"
system = "cross-encoder"
seed = 3

[data]
terminology = { path = "shapes.tsv", format = "tsv" }
documents = "train.pubtator"
dev_documents = "train.pubtator"

[retrieval]
n_candidates = 3

[model]
bert = "tiny"
n_wordpieces = 16

[batch]
batch = 2

[run]
n_steps = 12
mining_interval = 6
evaluate_every = 1
adam = { learning_rate = 1e-3 }
"#;

/// The second mention has no id, the third one that no name leads to, the fourth two parts.
const DOCUMENTS: &str = concat!(
    "7|t|A circle, a shape, a ball and squares.\n",
    "7\t2\t8\tcircle\tShape\tS1\n",
    "7\t12\t17\tshape\tShape\t-1\n",
    "7\t21\t25\tball\tShape\tS1\n",
    "\n8|t|Circular sector or triangle.\n",
    "8\t0\t15\tCircular sector\tShape\tS3|S4\n",
    "8\t0\t27\tCircular sector or triangle\tShape\tS3|S4\tCircular sector|triangle\n",
    "8\t19\t27\ttriangle\tShape\tS4\n\n",
);

/// A small encoder that nobody trained, as a folder.
fn write_tiny(folder: &Path) {
    let json = r#"{"vocab_size": 14, "hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2,
        "intermediate_size": 8, "max_position_embeddings": 32}"#;
    let config: BertConfig = serde_json::from_str(json).unwrap();
    let words = "[UNK] [CLS] [SEP] a circle , shape and or circular sector triangle square ##s";
    let tokenizer = Tokenizer::of(words.split(' ').map(str::to_owned).collect()).unwrap();
    let mut parameters = Parameters::default();
    config.init(&mut parameters, "", &mut SplitMix64::new(1));
    write_bert(folder, &config, &tokenizer, "", &parameters).unwrap();
}

fn said(place: &Workplace, arguments: &[&str]) -> (bool, String, String) {
    let output = place.run(arguments, "");
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    (output.status.success(), text(&output.stdout), text(&output.stderr))
}

fn trained() -> Workplace {
    let place = Workplace::with_shapes();
    place.write("train.pubtator", DOCUMENTS);
    place.write("shapes.toml", EXPERIMENT);
    write_tiny(&place.path("tiny"));
    let (success, _, told) =
        said(&place, &["train", "shapes.toml", "--allow-seen", "--data-root", ".", "--out", "model"]);
    assert!(success, "{told}");
    place
}

#[test]
fn bm25_ranks_names_and_given_mentions_and_finds_none() {
    let place = Workplace::with_shapes();
    place.write("names.txt", "shape of a ring\nquad\nfog\n");
    let (success, out, told) = said(&place, &["map", "--model", "bm25", "--kb", "shapes.kb", "names.txt"]);
    assert!(success, "{told}");
    let ids: Vec<String> = out
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap()["candidates"][0]["id"].to_string())
        .collect();
    assert_eq!(ids, [r#""X:S1""#, r#""X:S2""#, "null"]);
    place.write("train.pubtator", DOCUMENTS);
    let gold =
        ["eval", "--model", "bm25", "--kb", "shapes.kb", "--gold", "train.pubtator", "--mentions", "gold", "--raw-ids"];
    let (success, out, told) = said(&place, &gold);
    assert!(success && out.contains("acc@1"), "{out}{told}");
    let (_, out, told) = said(&place, &["map", "--explain", "--model", "bm25", "--kb", "shapes.kb", "names.txt"]);
    assert!(out.contains("BM25 weight of a shared word"), "{out}{told}");
    let (success, _, told) = said(&place, &["link", "--model", "bm25", "--kb", "shapes.kb", "train.pubtator"]);
    assert!(!success && told.contains("option `--mentions gold`"), "{told}");
}

#[test]
fn a_cross_encoder_is_trained_and_orders_candidates() {
    let place = trained();
    let report = std::fs::read_to_string(place.path("model/report.json")).unwrap();
    let report: serde_json::Value = serde_json::from_str(&report).unwrap();
    let train = &report["train"];
    assert_eq!((&train["n_mentions"], &train["n_left_out"], &train["recall"]), (&4.into(), &2.into(), &0.75.into()));
    assert_eq!(report["evaluated"]["first_linker"], 0.75);
    assert!(!place.path("model/checkpoint-train.safetensors").exists());
    let link = ["link", "--kb", "shapes.kb", "--model", "bm25", "--mentions", "gold", "train.pubtator"];
    let scores = |more: &[&str]| {
        let (success, out, told) = said(&place, &[&link, more].concat());
        assert!(success, "{told}");
        let document: serde_json::Value = serde_json::from_str(out.lines().nth(1).unwrap()).unwrap();
        let candidates = document["annotations"][0]["candidates"].as_array().unwrap().clone();
        let mut ids: Vec<String> = candidates.iter().map(|one| one["id"].to_string()).collect();
        ids.sort();
        (ids, candidates.iter().map(|one| one["score"].as_f64().unwrap()).sum::<f64>())
    };
    let (before, after) = (scores(&[]), scores(&["--rerank", "model"]));
    // Of the same candidates all stay, and their scores are shares.
    assert_eq!(before.0, after.0);
    assert!((after.1 - 1.0).abs() < 1e-3, "{after:?}");
    let (success, out, told) = said(
        &place,
        &[
            "eval",
            "--allow-seen",
            "--kb",
            "shapes.kb",
            "--model",
            "bm25",
            "--rerank",
            "model",
            "--mentions",
            "gold",
            "--raw-ids",
            "--gold",
            "train.pubtator",
        ],
    );
    assert!(success && out.contains("acc@1"), "{out}{told}");
}

#[test]
fn what_a_cross_encoder_cannot_do_is_told() {
    let place = trained();
    let refused = |arguments: &[&str], expected: &str| {
        let (success, _, told) = said(&place, arguments);
        assert!(!success && told.contains(expected), "{told}");
    };
    refused(&["link", "--kb", "shapes.kb", "--rerank", "model", "train.pubtator"], "requires given mentions");
    refused(&["map", "--model", "model", "shapes.tsv"], "of the system `cross-encoder`");
    place.write("empty.safetensors", "");
    let link = ["link", "--kb", "shapes.kb", "--mentions", "gold", "--rerank", "empty.safetensors", "train.pubtator"];
    refused(&link, "incomplete safetensors file");
    let train = ["train", "shapes.toml", "--allow-seen", "--data-root", ".", "--out", "other", "--set"];
    refused(&[&train[..], &["model.bert=elsewhere"]].concat(), "no checkpoint found");
    refused(&[&train[..], &["model.n_wordpieces=30"]].concat(), "exceed the maximum length 32");
    refused(&[&train[..], &["retrieval.n_candidates=1"]].concat(), "needs at least 2 candidates");
    place.write("shapes.tsv", SHAPES.replace('S', "T"));
    refused(&train[..7], "no mention has the gold concept among its candidates");
}

#[test]
fn a_concept_that_was_not_found_can_be_put_among_the_candidates() {
    let place = trained();
    let train = [
        "train",
        "shapes.toml",
        "--allow-seen",
        "--data-root",
        ".",
        "--out",
        "leaky",
        "--set",
        "data.insert_gold=true",
    ];
    let (success, _, told) = said(&place, &train);
    assert!(success, "{told}");
    let report = std::fs::read_to_string(place.path("leaky/report.json")).unwrap();
    let report: serde_json::Value = serde_json::from_str(&report).unwrap();
    assert_eq!((&report["insert_gold"], &report["train"]["recall"]), (&true.into(), &1.0.into()));
}

/// Retrieve and rerank: candidates of a dual encoder.
#[test]
fn a_cross_encoder_orders_the_candidates_of_a_dual_encoder() {
    let place = trained();
    let experiment = concat!(
        "system = \"dual-encoder\"\nseed = 3\n[data]\nterminology = { path = \"shapes.tsv\", format = \"tsv\" }\n",
        "train = [\"train.pubtator\"]\ndev = []\n[encoder]\nbert = \"tiny\"\n[windows]\npieces = 24\noverlap = 4\n",
        "[batch]\nbatch = 1\nn_random = 1\nn_hard = 1\n[run]\nn_steps = 2\nsteps_per_round = 2\n",
    );
    place.write("dual.toml", experiment);
    let dual = ["train", "dual.toml", "--allow-seen", "--data-root", ".", "--out", "dual"];
    let cache = place.path("cache");
    let run = |arguments: &[&str]| {
        let mut command = place.command(arguments);
        let output = Workplace::finish(command.env("CANONYM_CACHE", &cache), "");
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        (output.status.success(), text(&output.stdout) + &text(&output.stderr))
    };
    let (success, told) = run(&dual);
    assert!(success, "{told}");
    let blink = [
        "train",
        "shapes.toml",
        "--allow-seen",
        "--data-root",
        ".",
        "--out",
        "blink",
        "--set",
        "retrieval.linker=dual-encoder",
    ];
    let (success, told) = run(&blink);
    assert!(!success && told.contains("`retrieval.linker` and `data.linker` do not match"), "{told}");
    let (success, told) =
        run(&[&blink[..], &["--set", "data.linker=dual", "--set", "retrieval.n_candidates=4"]].concat());
    assert!(success, "{told}");
    let read = |path: &str| -> serde_json::Value {
        serde_json::from_str(&std::fs::read_to_string(place.path(path)).unwrap()).unwrap()
    };
    // All four concepts are candidates of each mention.
    assert_eq!(read("blink/report.json")["train"]["recall"], 1.0);
    assert!(read("blink/provenance.json")["data_xxh3"]["dual/model.safetensors"].is_string());
    let eval = [
        "eval",
        "--allow-seen",
        "--model",
        "dual",
        "--rerank",
        "blink",
        "--mentions",
        "gold",
        "--raw-ids",
        "--gold",
        "train.pubtator",
    ];
    let (success, told) = run(&eval);
    assert!(success && told.contains("acc@1"), "{told}");
}
