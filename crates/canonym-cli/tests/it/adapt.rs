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
mining_interval = 15
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
    let others = "x|t|The plonkitis of aspirin, FIV neg.\nx|a|\nx\t4\t13\tplonkitis\t\tMESH:D000038\nx\t26\t29\tFIV\t\tMESH:D000038\n\n";
    place.write("others.pubtator.txt", others);
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
    // Shorthand that was linked once is found wherever it is written like that.
    let shorthand = |model: &str| said(&place, &["link", "--model", model, "--to", "jsonl", "--text", "Tom: FIV."]).1;
    assert!(!shorthand("default").contains("MESH:D000038"));
    assert!(shorthand("model").contains(r#"[{"id":"MESH:D000038""#), "{}", shorthand("model"));
    // What a name was used for counts for given mentions, too.
    let gold = ["link", "--model", "model", "--mentions", "gold", "--to", "jsonl", "others.pubtator.txt"];
    let (ok, linked, errors) = said(&place, &gold);
    assert!(ok && linked.contains(r#""candidates":[{"id":"MESH:D000038""#), "{linked}{errors}");
    // An adapted model can be adapted again, and gives the same model each time.
    let again = ["from=\"model\"", "run.n_steps=2", "run.mining_interval=1"];
    assert!(train(&place, "second", &again).0 && train(&place, "third", &again).0);
    let bytes = |name: &str| std::fs::read(place.path(&format!("{name}/model.safetensors"))).unwrap();
    assert_eq!(bytes("second"), bytes("third"));
}

#[test]
fn held_out_documents_that_were_trained_on_are_neither_watched_nor_judged_on() {
    let place = place();
    let (ok, errors) = train(&place, "model", &[]);
    assert!(ok, "{errors}");
    place.write("gadgets.tsv", "MESH:D000005\tzorbomat\n");
    assert!(said(&place, &["kb", "build", "gadgets.tsv", "--out", "gadgets.kb"]).0);
    // Of documents 0, 2, 4 and 7, which are held out now, the first was held out before, too; here it has a mention that nothing finds.
    let corpus = std::fs::read_to_string(place.path("complete.pubtator.txt")).unwrap();
    let more = "0\t22\t30\tzorbomat\tGadget\tMESH:D000005\n0\t40\t44\twell\tGadget\tMESH:D000005\n";
    let changed = corpus.replace("0\t22\t30\tzorbomat\tGadget\tMESH:D000005\n", more);
    assert_ne!(changed, corpus);
    place.write("again.pubtator.txt", changed);
    let blocks: Vec<&str> = corpus.split_inclusive("\n\n").collect();
    place.write("seen.pubtator.txt", [2, 3, 4, 5].map(|at| blocks[at]).concat());
    let few = ["from=\"model\"", "kb=\"gadgets.kb\"", "hold_out=2", "run.n_steps=2", "run.mining_interval=1"];
    let again = |documents: &str, more: &[&str]| {
        let documents = format!("documents=[\"{documents}\"]");
        let mut arguments = vec!["train", "adapt.toml", "--data-root", ".", "--out", "again", "--set", &documents];
        few.iter().for_each(|one| arguments.extend(["--set", one]));
        arguments.extend(more);
        let (ok, _, errors) = said(&place, &arguments);
        (ok, errors)
    };
    let (ok, errors) = again("again.pubtator.txt", &[]);
    let refused =
        "held-out documents: 3 of 4 documents were seen in training: tagger (trained on 3 of complete.pubtator.txt)";
    assert!(!ok && errors.contains(refused) && errors.contains("--allow-seen"), "{errors}");
    assert!(!place.path("again/log.jsonl").exists(), "it is refused before anything is trained");
    let made = || {
        let read = |name: &str| std::fs::read_to_string(place.path(&format!("again/{name}"))).unwrap();
        let rounds: Vec<serde_json::Value> =
            read("log.jsonl").lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let report: serde_json::Value = serde_json::from_str(&read("report.json")).unwrap();
        (report, rounds, said(&place, &["model", "info", "again"]).1)
    };
    let (ok, errors) = again("again.pubtator.txt", &["--allow-seen"]);
    assert!(ok, "{errors}");
    let (report, rounds, card) = made();
    let told = "3 of 4 held-out documents were seen in training and are left out";
    assert_eq!((&report["left_out"], &report["seen"]["n_seen"]), (&told.into(), &3.into()), "{report}");
    assert!(card.contains(&format!("{told}.")), "{card}");
    // One of two mentions is found in the document that is left; in all four it would be four of five.
    assert!((report["before"]["spans_f1"].as_f64().unwrap() - 2.0 / 3.0).abs() < 1e-9, "{report}");
    assert!(rounds.iter().all(|round| round["score"].is_number()), "{rounds:?}");
    std::fs::remove_dir_all(place.path("again")).unwrap();
    let (ok, errors) = again("seen.pubtator.txt", &["--allow-seen"]);
    assert!(ok, "{errors}");
    let (report, rounds, card) = made();
    let told = "2 of 2 held-out documents were seen in training and are left out; there are no figures";
    assert_eq!(report["left_out"], told, "{report}");
    assert!(report["before"].is_null() && report["after"].is_null(), "{report}");
    assert!(card.contains(told) && !card.contains(" before, "), "{card}");
    assert!(rounds.iter().all(|round| round["score"].is_null()), "{rounds:?}");
}

#[test]
fn documents_set_aside_decide_what_of_the_linker_is_used() {
    let place = place();
    let names = ["zorbomat", "plonkitis", "quibblenose", "dronfever"];
    let mut corpus = String::new();
    for at in 0..80 {
        let (one, other) = (names[at % 4], names[(at + 1) % 4]);
        let title = format!("Patient {at} with {one} had a {other} before.");
        let mark = |name: &str| {
            let start = title.find(name).unwrap();
            let concept = names.iter().position(|one| *one == name).unwrap();
            format!("{at}\t{start}\t{}\t{name}\tGadget\tMESH:D00000{concept}\n", start + name.len())
        };
        corpus += &format!("{at}|t|{title}\n{at}|a|\n{}{}\n", mark(one), mark(other));
    }
    place.write("complete.pubtator.txt", corpus);
    let terms = "MESH:D000000\tzorb machine|the zorbomat\nMESH:D000001\tplonk disease|plonkitis\n\
        MESH:D000002\tquibbling nose|quibble nose\nMESH:D000003\tdron fever|fever of Dron\nMESH:D000004\tfever|pyrexia\n";
    place.write("gadgets.tsv", terms);
    assert!(said(&place, &["kb", "build", "gadgets.tsv", "--out", "gadgets.kb"]).0);
    let report = |out: &str| -> serde_json::Value {
        serde_json::from_str(&std::fs::read_to_string(place.path(&format!("{out}/report.json"))).unwrap()).unwrap()
    };
    let few = [
        "kb=\"gadgets.kb\"",
        "tune=2",
        "names={run={n_steps=4,mining_interval=2}}",
        "run.n_steps=4",
        "run.mining_interval=2",
    ];
    let (ok, errors) = train(&place, "model", &few);
    assert!(ok, "{errors}");
    let first = report("model");
    let linker = &first["linker"];
    let n = |value: &serde_json::Value| value.as_u64().unwrap();
    assert!(n(&linker["n_documents"]) > 5 && linker["n_queries"] == 4, "{first}");
    assert_eq!(n(&linker["n_documents"]) + n(&first["n_documents"]) + n(&first["n_held_out"]), 80, "{first}");
    assert!(linker["names"]["before"].is_number() && linker["decision"]["after"].is_number(), "{first}");
    // Four names are too few for a fusion.
    assert!(linker["fusion"].is_null() && first["left_out"].is_null(), "{first}");
    let info = said(&place, &["model", "info", "model"]).1;
    assert!(info.contains("more documents tuned the linker"), "{info}");
    // The next model goes on from this one. What was trained on decides nothing, what is held out stays so, and no use of a name counts twice.
    let again = [&few[..], &["from=\"model\"", "prior_of=\"default\""]].concat();
    let (ok, errors) = train(&place, "again", &again);
    assert!(ok, "{errors}");
    let second = report("again");
    assert_eq!(
        (&second["n_documents"], &second["n_held_out"]),
        (&first["n_documents"], &first["n_held_out"]),
        "{second}"
    );
    let (ok, errors) = train(&place, "all", &[&few[..], &["tune=0"]].concat());
    assert!(ok && report("all")["linker"].is_null(), "{errors}");
    let (ok, errors) = train(&place, "later", &[&few[..], &["from=\"all\"", "prior_of=\"default\""]].concat());
    assert!(ok && report("later")["linker"].is_null(), "{errors}");
}

#[test]
fn a_training_ends_with_the_program_that_started_it() {
    let place = place();
    let endless = ["--set", "run.n_steps=1000000", "--set", "run.mining_interval=1000000"];
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
        ("from=\"lexical\"", "the model `lexical` does not detect mentions", "start from `default`"),
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
    assert!(!ok && errors.contains("no annotated mentions") && errors.contains("hint: annotate some"), "{errors}");
}
