//! What `canonym eval` tells of its input, and `--raw-ids`.

use expect_test::expect;

use crate::support::Workplace;

const GOLD: &str = "7|t|A circle in a square.\n7\t2\t8\tcircle\tCurve\tS1\n7\t14\t20\tsquare\tPolygon\tS2\n";

/// What goes to standard error.
fn told(place: &Workplace, arguments: &[&str]) -> String {
    let output = place.run(&[&["eval", "--gold", "gold.txt", "--resamples", "0"], arguments].concat(), "");
    assert!(output.status.success(), "{}", place.describe(&output));
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn ids_in_two_spellings_are_told_and_raw_ids_mend_them() {
    let place = Workplace::with_shapes();
    place.write("gold.txt", GOLD);
    let run = ["--model", "default", "--kb", "shapes.kb", "--match", "strict"];
    expect![[r#"
        warning: hardly any id of one side can be one of the other: gold has `S1`, predictions have `X:S1`
        hint: link with `--raw-ids`, or build the knowledge base without `--prefix`
    "#]]
    .assert_eq(&told(&place, &run));
    assert_eq!(told(&place, &[&run[..], &["--raw-ids"]].concat()), "");
    let output = place.run(&[&["eval", "--gold", "gold.txt", "--json", "--raw-ids"], &run[..]].concat(), "");
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&report["metrics"]["strict"]["f1"], &report["kb"]["coverage"]), (&1.0.into(), &1.0.into()));
    place.write("dev.concept", "7||2|8||Curve||round||S1\n");
    let queries = ["eval", "--format", "biosyn", "--gold", "dev.concept", "--kb", "shapes.kb", "--json"];
    let ranked = |more: &[&str]| {
        let output = place.run(&[&queries[..], more].concat(), "");
        let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        (report["ranking"]["all"]["accuracy"]["1"].clone(), String::from_utf8(output.stderr).unwrap().lines().count())
    };
    assert_eq!(ranked(&[]), (0.0.into(), 2));
    assert_eq!(ranked(&["--raw-ids"]), (1.0.into(), 0));
    place.check(
        &["eval", "--gold", "gold.txt", "--pred", "gold.txt", "--raw-ids"],
        expect![[r#"
        status 2
        --- stderr
        error: `--raw-ids` has no meaning for predictions of a file
        hint: give it where the predictions are made, or leave `--pred` out to run a model
    "#]],
    );
}

#[test]
fn sides_without_ids_types_or_scores_are_told() {
    let place = Workplace::new();
    place.write("gold.txt", GOLD);
    let bare =
        r#"{"id":"7","text":"A circle in a square.","annotations":[{"spans":[[2,8]],"text":"circle","ids":["S1"]}]}"#;
    place.write("bare.jsonl", bare);
    place.write("none.jsonl", bare.replace("\"S1\"", ""));
    expect![[r#"
        warning: predictions have no types, which is why `type` is 0
        warning: predictions have no scores: `--curves` has nothing to tell
    "#]]
    .assert_eq(&told(&place, &["--pred", "bare.jsonl", "--curves"]));
    expect![[r#"
        warning: predictions have no ids, so that no link can be judged, only places and types
        warning: predictions have no scores: `--want-precision` has nothing to tell
    "#]]
    .assert_eq(&told(&place, &["--pred", "none.jsonl", "--want-precision", "0.9", "--match", "strict"]));
    place.write("gold.txt", bare.replace("\"S1\"", ""));
    place.write("typed.txt", GOLD);
    expect![[r#"
        warning: gold has no ids, so that no link can be judged, only places and types
        warning: gold has no types, which is why `type` is 0
    "#]]
    .assert_eq(&told(&place, &["--pred", "typed.txt", "--match", "type"]));
}

#[test]
fn unknown_measures_and_rules_are_answered_with_a_list() {
    let place = Workplace::new();
    let said = |arguments: &[&str]| {
        let output = place.run(&[&["eval", "--gold", "a", "--pred", "b"], arguments].concat(), "");
        assert_eq!(output.status.code(), Some(2));
        String::from_utf8(output.stderr).unwrap()
    };
    let measures = said(&["--match", "nope"]);
    assert!(measures.contains("unknown measure `nope`; use one of strict, mention-recognition, type, "), "{measures}");
    assert!(said(&["--ids", "nope"]).contains("any, first or exact"));
    let compared = place.run(&["compare", "a", "b", "--gold", "c", "--match", "nope"], "");
    assert!(String::from_utf8(compared.stderr).unwrap().contains("use one of strict, "));
}
