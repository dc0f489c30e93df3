//! Models made fit for documents of one's own.

use crate::support::Workplace;

const EXPERIMENT: &str = r#"
system = "adaptation"
seed = 1
documents = ["complete.pubtator.txt"]
incomplete = ["others.pubtator.txt"]
hold_out = 3

[batch]
batch = 4

[run]
n_steps = 30
steps_per_round = 15
evaluate_every = 1
adam = { learning_rate = 2e-3, warm_up = 0.1 }
"#;

/// Nine complete documents about gadgets that the default model knows nothing of, and one with a single mark.
fn place() -> Workplace {
    let place = Workplace::new();
    let mut corpus = String::new();
    for at in 0..9 {
        let title = format!("Patient {at} was given a zorbomat and felt well.");
        corpus += &format!("{at}|t|{title}\n{at}|a|\n{at}\t22\t30\tzorbomat\tGadget\tMESH:D000005\n\n");
    }
    place.write("complete.pubtator.txt", corpus);
    place.write("others.pubtator.txt", "x|t|The plonkitis of aspirin.\nx|a|\nx\t4\t13\tplonkitis\t\tMESH:D000038\n\n");
    place.write("adapt.toml", EXPERIMENT);
    place
}

fn said(place: &Workplace, arguments: &[&str]) -> (bool, String, String) {
    let output = place.run(arguments, "");
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    (output.status.success(), text(&output.stdout), text(&output.stderr))
}

fn train(place: &Workplace, out: &str, set: &[&str]) -> (bool, String) {
    let mut arguments = vec!["train", "adapt.toml", "--data-root", ".", "--out", out];
    set.iter().for_each(|one| arguments.extend(["--set", one]));
    let (ok, _, errors) = said(place, &arguments);
    (ok, errors)
}

#[test]
fn a_few_documents_teach_new_types_and_what_names_are_used_for() {
    let place = place();
    let (ok, errors) = train(&place, "model", &[]);
    assert!(ok, "{errors}");
    let report: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(place.path("model/report.json")).unwrap()).unwrap();
    assert_eq!(report["new_types"], serde_json::json!(["Gadget"]), "{report}");
    let (n_fit, n_held_out) = (report["n_documents"].as_u64().unwrap(), report["n_held_out"].as_u64().unwrap());
    assert!(n_fit + n_held_out == 9 && n_held_out > 0, "{report}");
    let text = "Patient 77 was given a zorbomat and felt well.";
    let link = |model: &str| said(&place, &["link", "--model", model, "--to", "jsonl", "--text", text]).1;
    assert!(!link("default").contains(r#""text":"zorbomat""#));
    let found = link("model");
    assert!(found.contains(r#""text":"zorbomat""#) && found.contains(r#"[{"id":"MESH:D000005""#), "{found}");
    // What a name was used for counts for given mentions, too.
    let gold = ["link", "--model", "model", "--mentions", "gold", "--to", "jsonl", "others.pubtator.txt"];
    let (ok, linked, errors) = said(&place, &gold);
    assert!(ok && linked.contains(r#""candidates":[{"id":"MESH:D000038""#), "{linked}{errors}");
    // An adapted model can be adapted again, and gives the same model each time.
    let again = ["from=\"model\"", "run.n_steps=2", "run.steps_per_round=1"];
    assert!(train(&place, "second", &again).0 && train(&place, "third", &again).0);
    let bytes = |name: &str| std::fs::read(place.path(&format!("{name}/model.safetensors"))).unwrap();
    assert_eq!(bytes("second"), bytes("third"));
}

#[test]
fn a_training_ends_with_the_program_that_started_it() {
    let place = place();
    let endless = ["--set", "run.n_steps=1000000", "--set", "run.steps_per_round=1000000"];
    let mut command =
        place.command(&[&["train", "adapt.toml", "--data-root", ".", "--out", "endless"], &endless[..]].concat());
    // Its standard input is closed at once.
    let output = Workplace::finish(command.env("CANONYM_ENDS_WITH_INPUT", "1"), "");
    assert_eq!(output.status.code(), Some(130));
    assert!(!place.path("endless/model.safetensors").exists());
}

#[test]
fn what_cannot_be_adapted_is_told() {
    let place = place();
    let cases = [
        ("from=\"lexical\"", "the model `lexical` finds no mentions", "start from `default`"),
        ("documents=[\"none.txt\"]", "none.txt", "hint: "),
        ("kb=\"none.kb\"", "none.kb", "hint: "),
    ];
    for (set, expected, hint) in cases {
        let (ok, errors) = train(&place, "model", &[set]);
        assert!(!ok && errors.contains(expected) && errors.contains(hint), "{set}: {errors}");
    }
    place.write("complete.pubtator.txt", "1|t|Gout \u{1f642} here.\n1|a|\n1\t5\t9\tgout\tDisease\tMESH:D006073\n\n");
    let (ok, errors) = train(&place, "model", &[]);
    assert!(!ok && errors.contains("complete.pubtator.txt:3") && errors.contains("hint: "), "{errors}");
    place.write("complete.pubtator.txt", "1|t|Nothing here.\n1|a|\n\n");
    place.write("others.pubtator.txt", "2|t|Nor here.\n2|a|\n\n");
    let (ok, errors) = train(&place, "model", &[]);
    assert!(!ok && errors.contains("no mention is marked") && errors.contains("hint: mark some"), "{errors}");
}
