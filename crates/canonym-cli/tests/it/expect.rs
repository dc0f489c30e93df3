//! `canonym expect`.

use expect_test::expect;

use crate::support::Workplace;

#[test]
fn expectations_pass_or_are_listed() {
    let place = Workplace::with_shapes();
    place.write(
        "good.toml",
        r#"
        [[text]]
        id = "shapes"
        text = "A ring shape and a trigon."
        require = [{ mention = "ring shape", id = "X:S1" }, { mention = "Trigon", id = ["X:S4", "X:S9"] }]
        forbid = [{ mention = "shape" }, { id = "X:S2" }]
        complete = true

        [[names]]
        terminology = "shapes"
        override = { "pie slice" = "X:S3" }
        deny = { "quad" = "X:S1" }

        [[names]]
        terminology = "colours"
        deny = { "red" = "*" }
        "#,
    );
    let expect = ["expect", "--kb", "shapes.kb", "--model", "lexical"];
    place.check(
        &[&expect[..], &["good.toml"]].concat(),
        expect![[r#"
            status 0
            --- stderr
            skipped 1 text or list for other terminologies than shapes
            7 expectations passed on shapes
        "#]],
    );
    place.write(
        "bad.toml",
        r#"
        [[text]]
        text = "A ring shape and a trigon."
        require = [{ mention = "ring shape", id = "X:S2" }, { mention = "shape and" }]
        open = [{ id = "X:S1" }]
        complete = true

        [[names]]
        override = { "pie slice" = "X:S1" }
        deny = { "trigon" = "*" }
        "#,
    );
    place.check(
        &[&expect[..], &["good.toml", "bad.toml"]].concat(),
        expect![[r#"
            status 1
            --- stdout
            bad.toml: text 1: “ring shape” should be linked to X:S2, but is linked to X:S1 (Circle)
            bad.toml: text 1: “shape and” should be linked to a concept, but was not found
            bad.toml: text 1: “trigon” is linked to X:S4 (Triangle), which is not expected
            bad.toml: text 1: “trigon” should not be linked, but is linked to X:S4 (Triangle)
            bad.toml: names: “pie slice” should be linked to X:S1, but is linked to X:S3 (Circular sector)
            bad.toml: names: “trigon” should not be linked, but is linked to X:S4 (Triangle)
            --- stderr
            skipped 1 text or list for other terminologies than shapes
            error: 6 failures in 12 expectations on shapes
            hint: see what came close with `canonym link --explain`, or correct the expectations
        "#]],
    );
    let output = place.run(&[&expect[..], &["bad.toml", "--json", "--quiet"]].concat(), "");
    assert_eq!(output.status.code(), Some(1));
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        (&report["terminology"], &report["n_expectations"], &report["n_failed"]),
        (&"shapes".into(), &5.into(), &6.into())
    );
    assert_eq!(report["failures"][0]["kind"], "required");
    assert_eq!(report["failures"][0]["found"], "X:S1");
}

#[test]
fn files_that_are_no_expectations_are_named_with_their_line() {
    let place = Workplace::with_shapes();
    place.write("typo.toml", "[[text]]\ntext = \"x\"\nrequires = []\n");
    place.write("other.toml", "[[text]]\ntext = \"x\"\nterminology = \"colours\"\ncomplete = true\n");
    let check =
        |file: &str, expected| place.check(&["expect", "--kb", "shapes.kb", "--model", "lexical", file], expected);
    check(
        "typo.toml",
        expect![[r#"
            status 1
            --- stderr
            error: typo.toml:3: unknown field `requires`, expected one of `id`, `text`, `terminology`, `require`, `forbid`, `open`, `complete`
            hint: a file has tables `[[text]]` and `[[names]]`; see `docs/guide/expect.md`
        "#]],
    );
    check(
        "other.toml",
        expect![[r#"
            status 1
            --- stderr
            error: no expectations for the terminology `shapes`
            hint: add texts or names, or correct their `terminology`; `canonym kb info` prints the name
        "#]],
    );
}

#[test]
fn a_file_that_is_not_utf8_is_an_error_with_its_line() {
    let place = Workplace::new();
    place.write("bad.toml", b"# A comment.\n[[text]]\ntext = \"caf\xe9\"\n");
    place.check(
        &["expect", "bad.toml"],
        expect![[r#"
            status 1
            --- stderr
            error: bad.toml:3: invalid UTF-8
            hint: convert the file to UTF-8
        "#]],
    );
}

#[test]
fn expectations_that_can_never_fail_are_errors_with_their_line() {
    let place = Workplace::with_shapes();
    let cases = [
        (
            "name.toml",
            "[[names]]\noverride = { \"quad\" = \"X:S2\" }\n\n[names.deny]\n\"square\" = \"X:S1\"\nlead = \"\"\n",
        ),
        (
            "text.toml",
            "[[text]]\ntext = \"A circle.\"\ncomplete = true\n\n[[text]]\ntext = \"A circle.\"\nforbid = [\n    { id = \"X:S2\" },\n    { mention = \"cirlce\", id = \"X:S1\" },\n]\n",
        ),
        (
            "id.toml",
            "[[names]]\ndeny = { lead = \"*\" }\n\n[[names]]\nterminology = \"other\"\ndeny = { a = \"Y:1\" }\n\n[[names]]\ndeny = { b = \"Y:1\" }\n",
        ),
        ("prefix.toml", "[[text]]\ntext = \"A circle.\"\nforbid = [{ id = \"S1\" }]\n"),
    ];
    let mut all = String::new();
    for (name, text) in cases {
        place.write(name, text);
        all += &place.describe(&place.run(&["expect", "--kb", "shapes.kb", "--model", "lexical", name], ""));
    }
    expect![[r#"
        status 1
        --- stderr
        error: name.toml:6: an id of the name “lead” is empty
        hint: add an id; in `deny`, `"*"` is any concept
        status 1
        --- stderr
        error: text.toml:9: text 2: the text does not contain “cirlce”
        hint: correct the mention or the text
        status 1
        --- stderr
        error: id.toml:9: the denial of “b” can never fail: shapes links nothing to Y:1
        hint: correct the id, or say with `terminology` for which terminology it is
        status 1
        --- stderr
        error: prefix.toml:3: text 1: a forbidden link can never fail: shapes links nothing to S1
        hint: links to the concept with the id S1 have the id X:S1
    "#]]
    .assert_eq(&all);
}
