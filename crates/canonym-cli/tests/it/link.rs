//! `canonym link`.

use expect_test::expect;

use crate::support::Workplace;

/// Spans, texts and first ids of the jsonl output: scores move with every fit of the model.
fn linked(place: &Workplace, arguments: &[&str], input: &str) -> Vec<String> {
    let output = place.run(&[&["link"], arguments].concat(), input);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    let documents = text.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    let said = |document: serde_json::Value| {
        let annotations = document["annotations"].as_array().unwrap().clone();
        let one = |one: &serde_json::Value| format!(" {} {} {}", one["spans"], one["text"], one["candidates"][0]["id"]);
        format!("{}:{}", document["id"], annotations.iter().map(one).collect::<String>())
    };
    documents.map(said).collect()
}

#[test]
fn a_text_is_linked_without_any_file() {
    let place = Workplace::new();
    let said = linked(&place, &["--text", "😀 Asthma and pyrexia."], "");
    assert_eq!(said, [r#""text": [[2,8]] "Asthma" "MESH:D001249" [[13,20]] "pyrexia" "MESH:D005334""#]);
}

#[test]
fn texts_without_mentions_are_answered() {
    let place = Workplace::new();
    place.check(
        &["link", "--text", "😀"],
        expect![[r#"
        status 0
        --- stdout
        {"id":"text","text":"😀","annotations":[]}
    "#]],
    );
    place.check(
        &["link", "--text", "😀", "--to", "table"],
        expect![[r#"
        status 0
        --- stdout
        text  😀
          no mentions found

    "#]],
    );
    place.check(
        &["link", "--text", ""],
        expect![[r#"
        status 0
        --- stdout
        {"id":"text","text":"","annotations":[]}
    "#]],
    );
    place.check_input(
        &["link", "-"],
        "",
        expect![[r#"
        status 0
        --- stdout
        {"id":"stdin","text":"","annotations":[]}
    "#]],
    );
}

#[test]
fn gold_mentions_are_linked_to_a_knowledge_base() {
    let place = Workplace::with_shapes();
    place.write("gold.txt", "7|t|A ring shape.\n7\t2\t12\tring shape\tShape\t-1\n");
    let said = linked(&place, &["gold.txt", "--mentions", "gold", "--kb", "shapes.kb", "--raw-ids"], "");
    assert_eq!(said, [r#""7": [[2,12]] "ring shape" "S1""#]);
}

#[test]
fn files_that_cannot_be_linked_are_named() {
    let place = Workplace::new();
    place.write("latin.txt", b"fever\ncaf\xe9\n");
    place.write("broken.jsonl", "{\"id\":\"1\",\"text\":\"fever\"}\n{\"id\":\n");
    std::fs::create_dir(place.path("hollow")).unwrap();
    place.check(
        &["link", "missing.txt"],
        expect![[r#"
        status 1
        --- stderr
        error: cannot open missing.txt
          caused by: No such file or directory (os error 2)
        hint: check the path; relative paths are resolved from the current folder
    "#]],
    );
    place.check(
        &["link", "latin.txt"],
        expect![[r#"
        status 1
        --- stderr
        error: latin.txt:2: invalid UTF-8: byte 0xe9 at offset 9
        hint: convert the file to UTF-8
    "#]],
    );
    place.check(
        &["link", "hollow"],
        expect![[r#"
            status 1
            --- stderr
            error: the folder hollow contains no files
            hint: check the path; files that start with a dot are ignored
        "#]],
    );
    place.check(
        &["link", "--kb", "missing.kb", "--text", "fever"],
        expect![[r#"
        status 1
        --- stderr
        error: cannot open the knowledge base
          caused by: cannot open missing.kb
          caused by: No such file or directory (os error 2)
        hint: check the path; relative paths are resolved from the current folder
    "#]],
    );
    place.check(
        &["link", "broken.jsonl", "--output", "links.jsonl"],
        expect![[r#"
        status 1
        --- stderr
        error: broken.jsonl:2: invalid document at column 6: EOF while parsing a value
        hint: each line is one JSON object with `id`, `text` and `annotations`
    "#]],
    );
    assert!(!place.path("links.jsonl").exists());
}

#[test]
fn a_call_without_text_is_wrong_usage() {
    let place = Workplace::new();
    assert_eq!(place.run(&["link"], "").status.code(), Some(2));
    assert_eq!(place.run(&["link", "a.txt", "--text", "fever"], "").status.code(), Some(2));
    assert_eq!(place.run(&["link", "--text", "fever", "--top-k", "0"], "").status.code(), Some(2));
}

#[test]
fn bioc_keeps_what_stands_around_the_mentions() {
    let place = Workplace::new();
    let head = "<?xml version='1.0' encoding='UTF-8'?>\n<!DOCTYPE collection SYSTEM 'BioC.dtd'>\n<collection><source>made up</source>\
                <date>1999</date><key>a.key</key>";
    let input = format!(
        "{head}<document><id>7</id><infon key=\"year\">2001</infon><passage><infon key=\"type\">title</infon><offset>0</offset>\
         <text>Asthma.</text><annotation id='T1'><infon key=\"type\">Old</infon><location offset='0' length='6'/><text>Asthma</text>\
         </annotation></passage><passage><infon key=\"type\">abstract</infon><infon key=\"n\">2</infon><offset>8</offset><text>α pyrexia.\
         </text></passage></document></collection>\n"
    );
    let link = ["link", "--model", "lexical", "--format", "bioc-xml", "--to", "bioc-xml", "-"];
    let output = place.run(&link, &input);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.starts_with(head), "{text}");
    for part in [
        "<id>7</id><infon key=\"year\">2001</infon><passage>",
        "<infon key=\"n\">2</infon><offset>8</offset><text>α pyrexia.</text><annotation id='",
        "<infon key=\"identifier\">MESH:D001249</infon>",
        "<location offset='10' length='7'/><text>pyrexia</text>",
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
    assert!(!text.contains("Old"), "{text}");
    let output = place.run(&["link", "--format", "bioc-xml", "--mentions", "gold", "--to", "bioc-json", "-"], &input);
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let found = &json["documents"][0]["passages"][0]["annotations"][0];
    assert_eq!([&found["id"], &found["infons"]["type"], &found["infons"]["identifier"]], ["T1", "Old", "MESH:D001249"]);
}

#[test]
fn context_is_given_as_attributes_where_it_is_asked_for() {
    let place = Workplace::new();
    let text = "Denies asthma. Mother had pneumonia. Fever.";
    let attributes = |arguments: &[&str]| {
        let output = place.run(&[&["link", "--text", text, "--to", "jsonl"], arguments].concat(), "");
        let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        let annotations = document["annotations"].as_array().unwrap().clone();
        annotations.iter().map(|one| format!("{} {}", one["text"], one["attributes"])).collect::<Vec<_>>()
    };
    let none = ["\"asthma\" null", "\"pneumonia\" null", "\"Fever\" null"];
    assert_eq!(attributes(&[]), none);
    let some =
        ["\"asthma\" {\"negation\":\"negated\"}", "\"pneumonia\" {\"experiencer\":\"family\"}", "\"Fever\" null"];
    assert_eq!(attributes(&["--context"]), some);
    let table = place.run(&["link", "--text", text, "--context", "--to", "table"], "");
    assert!(String::from_utf8(table.stdout).unwrap().contains("score  context\n"));
    let refused = place.run(&["link", "--text", text, "--context", "--to", "pubtator"], "");
    assert_eq!(refused.status.code(), Some(2));
}

#[test]
fn explanations_add_up_to_the_log_odds_that_are_printed() {
    let place = Workplace::new();
    let text = "Familial Mediterranean fever (FMF) differs from asthma. FMF is rare.";
    for mentions in [&["--text", text][..], &["gold.txt", "--mentions", "gold"]] {
        place.write("gold.txt", format!("7|t|{text}\n7\t48\t54\tasthma\tDisease\t-1\n"));
        let output = place.run(&[&["link", "--explain", "--to", "jsonl"], mentions].concat(), "");
        let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        let annotations = document["annotations"].as_array().unwrap();
        assert!(!annotations.is_empty());
        for annotation in annotations {
            let explained = annotation["explanation"]["candidates"].as_array().unwrap();
            for (candidate, why) in annotation["candidates"].as_array().unwrap().iter().zip(explained) {
                assert_eq!((&candidate["id"], &candidate["score"]), (&why["id"], &why["score"]));
                let parts = why["contributions"].as_array().unwrap();
                let sum: f64 = parts.iter().map(|part| part["log_odds"].as_f64().unwrap()).sum();
                assert!((sum - why["log_odds"].as_f64().unwrap()).abs() < 1e-3, "{why}");
            }
        }
    }
}

#[test]
fn explanations_can_be_read_and_other_formats_refuse_them() {
    let place = Workplace::new();
    let text = "Acquired immunodeficiency syndrome (AIDS) is no asthma; AIDS.";
    let output = place.run(&["link", "--text", text, "--explain", "--to", "table"], "");
    let shown = String::from_utf8(output.stdout).unwrap();
    for part in
        ["    score ", " the threshold 0.", "1. MESH:D001249", "log-odds ", "(preferred): match except for case"]
    {
        assert!(shown.contains(part), "no {part:?} in {shown}");
    }
    assert_eq!(place.run(&["link", "--text", text, "--explain", "--to", "pubtator"], "").status.code(), Some(2));
    let output = place.run(&["map", "--explain", "--top-k", "1", "-"], "asthmas\nasthmas\n");
    let lines = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<serde_json::Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 2);
    assert_eq!(lines[0], lines[1]);
    assert_eq!(lines[0]["explanation"]["candidates"][0]["how"], "canonical");
    let plain = place.run(&["map", "--top-k", "1", "-"], "asthmas\n");
    assert!(!String::from_utf8(plain.stdout).unwrap().contains("explanation"));
}

#[test]
fn attributes_of_the_input_are_not_called_contexts() {
    let place = Workplace::new();
    place.write("note.txt", "Fever.");
    place.write("note.ann", "T1\tSymptom 0 5\tFever\nA1\tCertainty T1 doubtful\n");
    let output = place.run(&["link", "note.txt", "--format", "brat", "--mentions", "gold", "--to", "table"], "");
    let table = String::from_utf8(output.stdout).unwrap();
    assert!(table.contains("score  attributes\n") && table.contains("doubtful"), "{table}");
}

#[test]
fn an_input_without_mentions_to_link_is_told() {
    let place = Workplace::with_shapes();
    place.write("note.txt", "A circle.");
    let output = place.run(&["link", "--kb", "shapes.kb", "--model", "lexical", "--mentions", "gold", "note.txt"], "");
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success());
    assert_eq!(told, "warning: the input has no annotations to link; omit `--mentions gold` to detect mentions\n");
}
