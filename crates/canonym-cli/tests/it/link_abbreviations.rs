//! `canonym link --abbreviations`.

use expect_test::expect;

use crate::support::Workplace;

fn linked(place: &Workplace, arguments: &[&str]) -> Vec<String> {
    let output = place.run(&[&["link"], arguments].concat(), "");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    let value: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let said = |one: &serde_json::Value| {
        let id = if one["nil"] == true { "nil" } else { one["candidates"][0]["id"].as_str().unwrap() };
        format!("{} {id}", one["text"].as_str().unwrap())
    };
    value["annotations"].as_array().unwrap().iter().map(said).collect()
}

#[test]
fn short_forms_of_a_file_are_read_by_every_model_that_knows_names() {
    let place = Workplace::new();
    place.write("own.tsv", "# ward slang\nQZX\tasthma\n\nQZY\tno such disease|chronic kidney disease\n");
    place.write("more.tsv", "QZY\tfever\r\n");
    for model in ["default", "lexical"] {
        let with = |text, files: &[&str]| {
            let files = files.iter().flat_map(|file| ["--abbreviations", file]);
            let arguments: Vec<&str> = ["--model", model, "--text", text].into_iter().chain(files).collect();
            let mut found = linked(&place, &arguments);
            found.retain(|one| !one.ends_with(" nil"));
            found
        };
        assert_eq!(with("Seen for QZX.", &[]), [""; 0], "{model}");
        assert_eq!(with("Seen for QZX.", &["own.tsv"]), ["QZX MESH:D001249"], "{model}");
        assert_eq!(with("Seen for qzx.", &["own.tsv"]), [""; 0], "{model}");
        assert_eq!(with("Seen for QZY.", &["own.tsv"]), ["QZY MESH:D051436"], "{model}");
        assert_eq!(with("Seen for QZY.", &["own.tsv", "more.tsv"]), ["QZY MESH:D005334"], "{model}");
        let explained = ["--model", model, "--text", "Seen for QZX.", "--abbreviations", "own.tsv", "--explain"];
        assert_eq!(linked(&place, &explained), ["QZX MESH:D001249"], "{model}");
    }
}

#[test]
fn the_file_wins_over_the_short_forms_that_are_built_in() {
    let place = Workplace::new();
    place.write("own.tsv", "COPD\tasthma\n");
    place.write("none.tsv", "COPD\t-\nQZX\tasthma\t30\nQZX\tfever\t70\n");
    for model in ["default", "lexical"] {
        let with = |more: &[&str]| linked(&place, &[&["--model", model, "--text", "Seen for COPD."], more].concat());
        assert_eq!(with(&[]), ["COPD MESH:D029424"], "{model}");
        assert_eq!(with(&["--abbreviations", "own.tsv"]), ["COPD MESH:D001249"], "{model}");
    }
    // Of two senses the more usual one; a dash says that the form is no concept, even where the tagger sees a disease.
    let text = "He has COPD. Seen for QZX.";
    for model in ["default", "lexical"] {
        let said = linked(&place, &["--model", model, "--text", text, "--abbreviations", "none.tsv"]);
        assert_eq!(said, ["QZX MESH:D005334"], "{model}");
    }
}

#[test]
fn files_that_cannot_be_read_are_named() {
    let place = Workplace::new();
    place.write("long.tsv", "QZX\tasthma\nQZY\t\n");
    place.write("bars.tsv", "QZX\t | \n");
    place.write("spaces.tsv", "QZX asthma\n");
    place.write("short.tsv", "\tasthma\n");
    place.write("share.tsv", "QZX\tasthma\t110\n");
    place.write("word.tsv", "QZX\tasthma\toften\n");
    place.write("latin.tsv", b"QZX\tasthma\nQZY\tcaf\xe9\n");
    let check = |file: &str, expected: expect_test::Expect| {
        place.check(&["link", "--text", "QZX", "--abbreviations", file], expected);
    };
    check(
        "missing.tsv",
        expect![[r#"
        status 1
        --- stderr
        error: cannot open missing.tsv
          caused by: No such file or directory (os error 2)
        hint: check the path; relative paths are resolved from the current folder
    "#]],
    );
    check(
        "long.tsv",
        expect![[r#"
        status 1
        --- stderr
        error: long.tsv:2: short form without a long form
        hint: the format is `form<TAB>long form`, one short form per line
    "#]],
    );
    check(
        "bars.tsv",
        expect![[r#"
        status 1
        --- stderr
        error: bars.tsv:1: short form without a long form
        hint: the format is `form<TAB>long form`, one short form per line
    "#]],
    );
    check(
        "spaces.tsv",
        expect![[r#"
        status 1
        --- stderr
        error: spaces.tsv:1: short form without a long form
        hint: the format is `form<TAB>long form`, one short form per line
    "#]],
    );
    check(
        "short.tsv",
        expect![[r#"
        status 1
        --- stderr
        error: short.tsv:1: the short form is empty or too long
        hint: a short form has 1 to 60 bytes
    "#]],
    );
    check(
        "share.tsv",
        expect![[r#"
        status 1
        --- stderr
        error: share.tsv:1: the percentage of uses is not a number from 0 to 100
        hint: leave the third column empty if there is only one sense
    "#]],
    );
    check(
        "word.tsv",
        expect![[r#"
        status 1
        --- stderr
        error: word.tsv:1: the percentage of uses is not a number from 0 to 100
        hint: leave the third column empty if there is only one sense
    "#]],
    );
    check(
        "latin.tsv",
        expect![[r#"
        status 1
        --- stderr
        error: latin.tsv:2: invalid UTF-8: byte 8 of the line (0xe9)
        hint: convert the file to UTF-8, for example with `iconv -f ISO-8859-1 -t UTF-8`
    "#]],
    );
}

#[test]
fn models_that_read_no_short_forms_refuse_the_file() {
    let place = Workplace::with_shapes();
    place.write("own.tsv", "QZX\tasthma\n");
    place.write("gold.txt", "7|t|A ring.\n7\t2\t6\tring\tShape\t-1\n");
    place.check(
        &["link", "gold.txt", "--mentions", "gold", "--abbreviations", "own.tsv"],
        expect![[r#"
        status 2
        --- stderr
        error: this model does not support custom abbreviations
        hint: omit the abbreviations (option `--abbreviations`), or detect mentions with the model `default` or `lexical`
    "#]],
    );
    place.check(
        &["link", "own.tsv", "--abbreviations", "own.tsv", "--output", "own.tsv"],
        expect![[r#"
        status 2
        --- stderr
        error: output would overwrite the input own.tsv
        hint: choose another output name
    "#]],
    );
}
