//! `canonym map`.

use expect_test::expect;

use crate::support::Workplace;

/// The ids and names of the first candidates: scores move with every fit of the model.
fn mapped(place: &Workplace, arguments: &[&str], input: &str) -> Vec<String> {
    let output = place.run(arguments, input);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(output.stderr.is_empty());
    let line = |line: &str| {
        let value: serde_json::Value = serde_json::from_str(line).unwrap();
        let first = &value["candidates"][0];
        format!("{} {} {}", value["query"], first["id"], first["name"])
    };
    String::from_utf8(output.stdout).unwrap().lines().map(line).collect()
}

#[test]
fn every_line_in_gives_a_line_out() {
    let place = Workplace::with_shapes();
    let arguments = ["map", "--kb", "shapes.kb", "-"];
    let lines = mapped(&place, &arguments, "circles\n\n😀\nregular quadrilateral");
    assert_eq!(
        lines,
        [
            r#""circles" "X:S1" "Circle""#,
            r#""" null null"#,
            r#""😀" null null"#,
            r#""regular quadrilateral" "X:S2" "Square""#
        ]
    );
    let raw = mapped(&place, &["map", "--kb", "shapes.kb", "--raw-ids", "-"], "trigon\n");
    assert_eq!(raw, [r#""trigon" "S4" "Triangle""#]);
}

#[test]
fn lines_that_name_nothing_have_no_candidates() {
    let place = Workplace::new();
    place.write("own.tsv", "MESH:D020345\tEnterocolitis, Necrotizing\tNEC\nMESH:D005334\tFever\tthe\n");
    assert!(place.run(&["kb", "build", "own.tsv", "--out", "own.kb"], "").status.success());
    let nothing = "\n \n-\n???\n123\n3.5 %\n😀\nthe\nOf the\nTHE\nand with\nit is\nnec\n";
    for kb in ["starter", "own.kb"] {
        for model in ["lexical", "default", "bm25"] {
            for more in [&[][..], &["--explain"]] {
                let output = place.run(&[&["map", "-", "--kb", kb, "--model", model], more].concat(), nothing);
                let text = String::from_utf8(output.stdout).unwrap();
                assert_eq!(text.lines().count(), 13);
                for line in text.lines() {
                    assert!(line.contains(r#""nil":true,"candidates":[]"#), "{kb} {model}: {line}");
                }
            }
        }
    }
    // Capitals that stand so in the terminology are a short form.
    for model in ["lexical", "default", "bm25"] {
        let arguments = ["map", "-", "--kb", "own.kb", "--model", model, "--top-k", "1"];
        let expected = [
            r#""NEC" "MESH:D020345" "Enterocolitis, Necrotizing""#,
            r#""-" null null"#,
            r#""the fever" "MESH:D005334" "Fever""#,
        ];
        assert_eq!(mapped(&place, &arguments, "NEC\n-\nthe fever\n"), expected, "{model}");
    }
}

#[test]
fn nothing_in_gives_nothing_out() {
    let place = Workplace::new();
    place.write("empty.txt", "");
    place.check(
        &["map", "empty.txt"],
        expect![[r#"
        status 0
        --- stderr
        no names in empty.txt
    "#]],
    );
    place.check_input(
        &["map", "-"],
        "",
        expect![[r#"
        status 0
        --- stderr
        no names in standard input
    "#]],
    );
}

#[test]
fn the_starter_is_used_where_no_file_is_named() {
    let place = Workplace::new();
    assert_eq!(mapped(&place, &["map", "-"], "pyrexia\n"), [r#""pyrexia" "MESH:D005334" "Fever""#]);
}

#[test]
fn input_that_cannot_be_read_is_named() {
    let place = Workplace::new();
    place.write("latin.txt", b"fever\ncaf\xe9\n");
    place.write("cut.gz", [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 0x4b, 0x36]);
    place.check(
        &["map", "missing.txt"],
        expect![[r#"
        status 1
        --- stderr
        error: cannot open missing.txt
          caused by: No such file or directory (os error 2)
        hint: check the path; relative paths are resolved from the current folder
    "#]],
    );
    place.check(
        &["map", "latin.txt"],
        expect![[r#"
            status 1
            --- stderr
            error: latin.txt:2: invalid UTF-8: byte 4 of the line (0xe9)
            hint: convert the file to UTF-8, for example with `iconv -f ISO-8859-1 -t UTF-8`
        "#]],
    );
    place.check(
        &["map", "cut.gz"],
        expect![[r#"
        status 1
        --- stderr
        error: cut.gz:1: the compressed data is damaged or truncated (incomplete deflate stream)
        hint: download or compress the file again
    "#]],
    );
    place.check(
        &["map", "."],
        expect![[r#"
            status 1
            --- stderr
            error: cannot read .
              caused by: is a directory
            hint: expected a file, not a folder
        "#]],
    );
}

#[test]
fn options_that_cannot_be_used_have_status_two() {
    let place = Workplace::new();
    place.check(
        &["map", "-", "--threads", "0"],
        expect![[r#"
        status 2
        --- stderr
        error: `--threads` must be between 1 and 1024, not 0
        hint: omit `--threads` to use all cores
    "#]],
    );
    place.check(
        &["map", "-", "--min-score", "NaN"],
        expect![[r#"
        status 2
        --- stderr
        error: invalid value 'NaN' for '--min-score <P>': expected a probability from 0 to 1

        For more information, try '--help'.
    "#]],
    );
    place.check(
        &["map", "-", "--top-k", "0"],
        expect![[r#"
        status 2
        --- stderr
        error: invalid value '0' for '--top-k <N>': 0 is not in 1..=100

        For more information, try '--help'.
    "#]],
    );
    place.check(
        &["map", "-", "--top-k", "many"],
        expect![[r#"
        status 2
        --- stderr
        error: invalid value 'many' for '--top-k <N>': invalid digit found in string

        For more information, try '--help'.
    "#]],
    );
    place.check(
        &["map", "-", "--model", "nothing"],
        expect![[r#"
            status 1
            --- stderr
            error: no such model: `nothing`
            hint: use `default`, `lexical`, `bm25`, or a model trained with `canonym train`
        "#]],
    );
    place.check(
        &["map", "-", "--model", "defualt"],
        expect![[r#"
            status 1
            --- stderr
            error: no such model: `defualt`
            hint: did you mean `default`?
        "#]],
    );
    std::fs::create_dir(place.path("vacant")).unwrap();
    place.check(
        &["map", "-", "--model", "vacant"],
        expect![[r#"
            status 1
            --- stderr
            error: vacant does not contain a complete model: the folder is empty
            hint: use `default`, `lexical`, `bm25`, or a model trained with `canonym train`
        "#]],
    );
}
