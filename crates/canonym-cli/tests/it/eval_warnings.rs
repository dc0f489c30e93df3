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
    let run = ["--model", "lexical", "--kb", "shapes.kb", "--match", "strict", "--mentions", "detect"];
    expect![[r#"
        warning: gold and predictions use different kinds of ids: gold has `S1`, predictions have `X:S1`
        hint: link with raw ids (option `--raw-ids`), or build the knowledge base without a prefix (option `--prefix`)
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
        error: `--raw-ids` does not apply to a prediction file
        hint: use it with `canonym link`, or omit `--pred` to run a model
    "#]],
    );
}

#[test]
fn texts_that_are_nothing_but_mentions_are_linked_as_they_are() {
    let place = Workplace::with_shapes();
    place.write(
        "gold.txt",
        "1|t|pie slice\n1\t0\t9\tpie slice\tCurve\tX:S3\n\n2|t|round.\n2\t0\t5\tround\tCurve\tX:S1\n",
    );
    let run = ["--model", "lexical", "--kb", "shapes.kb", "--match", "strict"];
    let given =
        "the texts contain only mentions, so they are linked as given; use `--mentions detect` to detect mentions\n";
    assert_eq!(told(&place, &run), given);
    let f1 = |more: &[&str]| {
        let output = place.run(&[&["eval", "--gold", "gold.txt", "--json"], &run[..], more].concat(), "");
        let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        report["metrics"]["strict"]["f1"].as_f64().unwrap()
    };
    assert_eq!((f1(&[]), f1(&["--mentions", "gold"])), (1.0, 1.0));
    assert_eq!(told(&place, &[&run[..], &["--mentions", "detect"]].concat()), "");
    // In a text with other words the model finds the mentions.
    place.write("gold.txt", GOLD.replace("S1", "X:S1").replace("S2", "X:S2"));
    assert_eq!(
        told(&place, &run),
        "mentions are detected by the model; use `--mentions gold` to link the gold mentions\n"
    );
    assert_eq!(told(&place, &[&run[..], &["--mentions", "gold"]].concat()), "");
}

#[test]
fn gold_ids_that_the_terminology_lacks_are_told() {
    let place = Workplace::with_shapes();
    place.write("gold.txt", GOLD.replace("S1", "X:S1").replace("S2", "X:S77"));
    let run = ["--model", "lexical", "--kb", "shapes.kb", "--match", "strict", "--mentions", "gold"];
    expect![[r#"
        warning: 1 of 2 gold mentions have ids missing from shapes (such as X:S77)
        hint: these cannot be linked correctly: use the release that the corpus was annotated with, or map one to the other with `canonym kb build --join`
    "#]]
    .assert_eq(&told(&place, &run));
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
        warning: predictions have no types, so `type` is 0
        warning: option `--curves` has no effect: predictions have no scores
        note: a prediction file does not record what its model was trained on, so overlap with these documents cannot be checked; `canonym eval --data GOLD --model MODEL` checks it
    "#]]
    .assert_eq(&told(&place, &["--pred", "bare.jsonl", "--curves"]));
    expect![[r#"
        warning: predictions have no ids; only spans and types can be scored
        warning: option `--want-precision` has no effect: predictions have no scores
        note: a prediction file does not record what its model was trained on, so overlap with these documents cannot be checked; `canonym eval --data GOLD --model MODEL` checks it
    "#]]
    .assert_eq(&told(&place, &["--pred", "none.jsonl", "--want-precision", "0.9", "--match", "strict"]));
    place.write("gold.txt", bare.replace("\"S1\"", ""));
    place.write("typed.txt", GOLD);
    expect![[r#"
        warning: gold has no ids; only spans and types can be scored
        warning: gold has no types, so `type` is 0
        note: a prediction file does not record what its model was trained on, so overlap with these documents cannot be checked; `canonym eval --data GOLD --model MODEL` checks it
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
