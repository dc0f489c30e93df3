//! `canonym compare`.

use expect_test::expect;

use crate::support::Workplace;

const GOLD: &str = concat!(
    "7|t|A circle in a square near a trigon.\n",
    "7\t2\t8\tcircle\tCurve\tS1\n",
    "7\t14\t20\tsquare\tPolygon\tS2\n",
    "7\t28\t34\ttrigon\tPolygon\tS4\n",
);

/// A document with links on the given places: start, end, words, id and name.
fn links(places: &[(u32, u32, &str, &str, &str)]) -> String {
    let one = |&(start, end, text, id, name): &(u32, u32, &str, &str, &str)| {
        format!(
            r#"{{"spans":[[{start},{end}]],"text":"{text}","score":0.5,"nil":false,"candidates":[{{"id":"{id}","name":"{name}","score":0.5}}]}}"#
        )
    };
    let annotations: Vec<String> = places.iter().map(one).collect();
    let text = "A circle in a square near a trigon.";
    format!("{{\"id\":\"7\",\"text\":\"{text}\",\"annotations\":[{}]}}\n", annotations.join(","))
}

fn place() -> Workplace {
    let place = Workplace::new();
    place.write("gold.txt", GOLD);
    place.write("a.jsonl", links(&[(2, 8, "circle", "S1", "Circle"), (14, 20, "square", "S4", "Triangle")]));
    let better =
        [(2, 8, "circle", "S1", "Circle"), (14, 20, "square", "S2", "Square"), (21, 25, "near", "S9", "Nearness")];
    place.write("b.jsonl", links(&better));
    place
}

#[test]
fn changes_are_shown_with_their_text() {
    place().check(
        &["compare", "a.jsonl", "b.jsonl", "--gold", "gold.txt", "--match", "strict", "--rounds", "100"],
        expect![[r#"
            status 0
            --- stdout
            1 document, 3 gold mentions with a concept

                                                 A       B      B - A     95% of B - A bootstrap p   random. p
            strict precision                 50.00   66.67     +16.67    +16.67 +16.67      0.0020      1.0000
            strict recall                    33.33   66.67     +33.33    +33.33 +33.33      0.0020      1.0000
            strict F1                        40.00   66.67     +26.67    +26.67 +26.67      0.0020      1.0000

            McNemar test on correct mentions: 1 won, 0 lost, p = 1.0000
            both correct: 1; same error: 1

            won: 1
              7  A circle in a [square] near a trigon.
                  gold: S2   A: S4 (Triangle)   B: S2 (Square)

            new link without gold: 1
              7  A circle in a square [near] a trigon.
                  A: no link   B: S9 (Nearness)
            --- stderr
            note: a prediction file does not record what its model was trained on, so overlap with these documents cannot be checked; `canonym eval --data GOLD --model MODEL` checks it
        "#]],
    );
}

#[test]
fn changes_are_json_for_programs() {
    let output = place().run(&["compare", "a.jsonl", "b.jsonl", "--gold", "gold.txt", "--json", "--limit", "0"], "");
    let comparison: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(comparison["n_changes"]["won"], 1);
    assert_eq!(comparison["changes"][0]["text"], "square");
    assert_eq!(comparison["changes"][0]["second"]["name"], "Square");
    assert_eq!(comparison["changes"].as_array().unwrap().len(), 2);
}

#[test]
fn answers_to_queries_are_compared() {
    let place = Workplace::new();
    place.write("dev.concept", "7||0|5||Curve||round||S1\n7||6|9||Polygon||trigon||S4\n");
    let answer = |query: &str, id: &str| format!("{{\"query\":\"{query}\",\"candidates\":[{{\"id\":\"{id}\"}}]}}\n");
    place.write("a.jsonl", answer("round", "S1") + &answer("trigon", "S1"));
    place.write("b.jsonl", answer("round", "S1") + &answer("trigon", "S4"));
    let files = ["compare", "a.jsonl", "b.jsonl", "--gold", "dev.concept", "--format", "biosyn", "--rounds", "100"];
    place.check(
        &files,
        expect![[r#"
            status 0
            --- stdout
            1 document, 2 gold mentions with a concept

                                                 A       B      B - A     95% of B - A bootstrap p   random. p
            accuracy@1                       50.00  100.00     +50.00    +50.00 +50.00      0.0020      1.0000

            McNemar test on correct mentions: 1 won, 0 lost, p = 1.0000
            both correct: 1; same error: 0

            won: 1
              7  [trigon]
                  gold: S4   A: S1   B: S4
            --- stderr
            note: a prediction file does not record what its model was trained on, so overlap with these documents cannot be checked; `canonym eval --data GOLD --model MODEL` checks it
        "#]],
    );
}

#[test]
fn answers_to_other_queries_are_refused() {
    let place = Workplace::new();
    place.write("dev.concept", "7||0|5||Curve||round||S1\n");
    place.write("a.jsonl", "{\"query\":\"round\",\"candidates\":[]}\n");
    place.write("b.jsonl", "{\"query\":\"square\",\"candidates\":[]}\n");
    let files = ["compare", "a.jsonl", "b.jsonl", "--gold", "dev.concept", "--format", "biosyn"];
    place.check(
        &files,
        expect![[r#"
        status 1
        --- stderr
        error: cannot match predictions to queries
          caused by: b.jsonl:1: the prediction is for `square`, but the query is `round`
        hint: run `canonym map` on one line per query, in order, with one line for each part of a mention `a|b`
    "#]],
    );
}
