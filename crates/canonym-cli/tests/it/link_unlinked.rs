//! `canonym link --nil`, and filters of types where mentions have no concept.

use expect_test::expect;

use crate::support::Workplace;

/// A disease and a drug that the starter does not have.
const TEXT: &str = "Patients with Fanconi-Bickel syndrome received metformin and plitidepsin.";

/// The mentions with their types and whether they are linked.
fn mentions(place: &Workplace, arguments: &[&str], input: &str) -> Vec<String> {
    let output = place.run(&[&["link"], arguments].concat(), input);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let value: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let said = |one: &serde_json::Value| {
        let state = if one["nil"] == true { "nil" } else { "linked" };
        assert_eq!(one["explanation"].is_object(), arguments.contains(&"--explain"));
        format!("{} {} {state}", one["text"].as_str().unwrap(), one["type"].as_str().unwrap())
    };
    value["annotations"].as_array().unwrap().iter().map(said).collect()
}

#[test]
fn mentions_without_a_concept_are_given_or_dropped() {
    let place = Workplace::new();
    let all = ["Fanconi-Bickel syndrome Disease nil", "metformin Drug linked", "plitidepsin Chemical nil"];
    assert_eq!(mentions(&place, &["--text", TEXT], ""), all);
    assert_eq!(mentions(&place, &["--text", TEXT, "--nil", "keep"], ""), all);
    assert_eq!(mentions(&place, &["--text", TEXT, "--nil", "drop"], ""), all[1..2]);
    assert_eq!(mentions(&place, &["--text", TEXT, "--nil", "drop", "--explain"], ""), all[1..2]);
    place.check(
        &["link", "--text", TEXT, "--nil", "drop", "--to", "table", "--min-score", "1"],
        expect![[r#"
        status 0
        --- stdout
        text  Patients with Fanconi-Bickel syndrome received metformin and plitidepsin.
          no mentions found

        --- stderr
        dropped 3 mentions by `--nil drop`
    "#]],
    );
    place.check(
        &["link", "--text", TEXT, "--nil", "never"],
        expect![[r#"
        status 2
        --- stderr
        error: invalid value 'never' for '--nil <drop|keep>'
          [possible values: drop, keep]

        For more information, try '--help'.
    "#]],
    );
}

#[test]
fn given_mentions_without_a_concept_are_dropped_where_that_is_asked_for() {
    let place = Workplace::with_shapes();
    place.write("gold.txt", "7|t|A ring shape, a zzz.\n7\t2\t12\tring shape\tShape\t-1\n7\t16\t19\tzzz\tShape\t-1\n");
    let arguments = ["gold.txt", "--mentions", "gold", "--kb", "shapes.kb", "--model", "lexical", "--min-score", "0.5"];
    assert_eq!(mentions(&place, &arguments, ""), ["ring shape Shape linked", "zzz Shape nil"]);
    let dropped = [&arguments[..], &["--nil", "drop"]].concat();
    assert_eq!(mentions(&place, &dropped, ""), ["ring shape Shape linked"]);
}

#[test]
fn filters_of_types_hold_for_mentions_without_a_concept() {
    let place = Workplace::new();
    let with = |filter: &[&str]| mentions(&place, &[&["--text", TEXT], filter].concat(), "");
    assert_eq!(with(&["--only-types", "Drug"]), ["metformin Drug linked"]);
    assert_eq!(with(&["--only-types", "Drug", "--explain"]), ["metformin Drug linked"]);
    assert_eq!(
        with(&["--only-types", "Drug,Disease"]),
        ["Fanconi-Bickel syndrome Disease nil", "metformin Drug linked"]
    );
    let others = with(&["--not-types", "Chemical"]);
    assert_eq!(others, ["Fanconi-Bickel syndrome Disease nil", "metformin Drug linked"]);
    // Dictionaries type what they find by its concept, linked or not.
    let sure = ["--model", "lexical", "--min-score", "1", "--only-types", "Drug"];
    assert_eq!(with(&sure), ["metformin Drug nil"]);
}
