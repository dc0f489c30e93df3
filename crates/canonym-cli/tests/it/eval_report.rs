//! The files that `canonym eval` writes for people.

use expect_test::expect;

use crate::support::Workplace;

const GOLD: &str = "7|t|A circle in a square.\n7\t2\t8\tcircle\tCurve\tS1\n7\t14\t20\tsquare\tPolygon\tS2\n";
const PREDICTED: &str = "7|t|A circle in a square.\n7\t2\t8\tcircle\tCurve\tS1\n7\t14\t20\tsquare\tPolygon\tS4\n";

#[test]
fn a_page_and_every_case_are_written() {
    let place = Workplace::with_shapes();
    // Gold may leave this prefix out.
    let built = place.run(&["kb", "build", "shapes.tsv", "--prefix", "MESH", "--out", "mesh.kb"], "");
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    place.write("gold.txt", GOLD);
    place.write("pred.txt", PREDICTED);
    let call = ["eval", "--gold", "gold.txt", "--pred", "pred.txt", "--match", "strict", "--resamples", "0"];
    let files = ["--kb", "mesh.kb", "--report", "report.html", "--errors", "errors.json"];
    place.check(
        &[&call[..], &files].concat(),
        expect![[r#"
            status 0
            --- stdout
            1 document, 2 gold, 2 predicted; ids match by `any`

                                        P       R      F1      95% of F1  macro F1     right/pred     found/gold
            strict                  50.00   50.00   50.00                    50.00            1/2            1/2

            shapes (4 ids) covers 100.00% of gold
            --- stderr
            note: a prediction file does not record what its model was trained on, so overlap with these documents cannot be checked; `canonym eval --data GOLD --model MODEL` checks it
            wrote report.html
            wrote errors.json
        "#]],
    );
    let page = std::fs::read_to_string(place.path("report.html")).unwrap();
    assert!(page.contains("Wrong sense") && page.contains("Triangle") && page.contains("gold.txt"));
    let errors: serde_json::Value = serde_json::from_slice(&std::fs::read(place.path("errors.json")).unwrap()).unwrap();
    assert_eq!(errors["cases"][1]["class"], "wrong-sense");
    assert_eq!(errors["cases"][1]["gold"]["names"][0], "Square");
    place.run(&[&call[..], &files].concat(), "");
    assert_eq!(std::fs::read_to_string(place.path("report.html")).unwrap(), page, "equal input gives equal bytes");
}

#[test]
fn queries_have_a_page_and_no_cases() {
    let place = Workplace::new();
    place.write("dev.concept", "7||0|5||Disease||fever||D1\n");
    place.write("map.jsonl", "{\"query\":\"fever\",\"candidates\":[{\"id\":\"D1\"}]}\n");
    let call = ["eval", "--gold", "dev.concept", "--pred", "map.jsonl", "--format", "biosyn"];
    let output = place.run(&[&call[..], &["--report", "report.html"]].concat(), "");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(std::fs::read_to_string(place.path("report.html")).unwrap().contains("Accuracy@1"));
    place.check(
        &[&call[..], &["--errors", "errors.json"]].concat(),
        expect![[r#"
            status 2
            --- stderr
            error: `--errors` does not apply to BioSyn queries, which have no spans
            hint: omit it
        "#]],
    );
}

#[test]
fn a_page_that_cannot_be_written_is_an_error() {
    let place = Workplace::new();
    place.write("gold.txt", GOLD);
    place.check(
        &["eval", "--gold", "gold.txt", "--pred", "gold.txt", "--report", "missing/report.html"],
        expect![[r#"
            status 1
            --- stderr
            note: a prediction file does not record what its model was trained on, so overlap with these documents cannot be checked; `canonym eval --data GOLD --model MODEL` checks it
            error: cannot write the report
              caused by: cannot create missing/report.html
              caused by: No such file or directory (os error 2)
            hint: check the path; relative paths are resolved from the current folder
        "#]],
    );
}
