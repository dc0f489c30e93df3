//! `canonym eval`.

use expect_test::expect;

use crate::support::Workplace;

const GOLD: &str = "7|t|A circle in a square.\n7\t2\t8\tcircle\tCurve\tS1\n7\t14\t20\tsquare\tPolygon\tS2\n";
const PREDICTED: &str = "7|t|A circle in a square.\n7\t2\t8\tcircle\tCurve\tS1\n7\t14\t20\tsquare\tPolygon\tS4\n";

#[test]
fn two_files_are_scored() {
    let place = Workplace::with_shapes();
    place.write("gold.txt", GOLD);
    place.write("pred.txt", PREDICTED);
    let files = ["eval", "--gold", "gold.txt", "--pred", "pred.txt"];
    place.check(
        &[&files[..], &["--match", "strict", "--resamples", "0"]].concat(),
        expect![[r#"
        status 0
        --- stdout
        1 documents, 2 gold, 2 predicted; ids agree by `any`

                                    P       R      F1      95% of F1  macro F1     right/pred     found/gold
        strict                  50.00   50.00   50.00                    50.00            1/2            1/2
    "#]],
    );
    let output = place.run(&[&files[..], &["--json", "--kb", "shapes.kb"]].concat(), "");
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["metrics"]["strict"]["f1"], 0.5);
    assert_eq!(report["kb"]["name"], "shapes");
}

#[test]
fn faults_of_the_files_and_of_the_call_differ() {
    let place = Workplace::new();
    place.write("gold.txt", GOLD);
    place.write("empty.txt", "");
    place.check(
        &["eval", "--gold", "gold.txt", "--pred", "missing.txt"],
        expect![[r#"
        status 1
        --- stderr
        error: cannot read predictions
          caused by: cannot open missing.txt
          caused by: No such file or directory (os error 2)
        hint: check the path; relative paths start at the current folder
    "#]],
    );
    place.check(
        &["eval", "--gold", "gold.txt", "--pred", "empty.txt"],
        expect![[r#"
        status 1
        --- stderr
        error: cannot pair gold and predictions
          caused by: predicted document `empty` is not among the 1 gold documents
        hint: give the gold file of the same documents, in the same split
    "#]],
    );
    place.check(
        &["eval", "--gold", "-", "--pred", "-"],
        expect![[r#"
        status 2
        --- stderr
        error: gold and predictions cannot both come from standard input
    "#]],
    );
    place.check(
        &["eval", "--gold", "gold.txt", "--pred", "gold.txt", "--composite", "first"],
        expect![[r#"
        status 2
        --- stderr
        error: `--composite` has no meaning for annotated documents, only for queries
        hint: give `--format biosyn`, or choose by `--ids`
    "#]],
    );
    place.check(
        &["eval", "--gold", "gold.txt", "--pred", "gold.txt", "--kb", "missing.kb"],
        expect![[r#"
        status 1
        --- stderr
        error: the knowledge base could not be opened
          caused by: cannot open missing.kb
          caused by: No such file or directory (os error 2)
        hint: check the path; relative paths start at the current folder
    "#]],
    );
    place.check(
        &["eval", "--pred", "gold.txt"],
        expect![[r#"
            status 2
            --- stderr
            error: the following required arguments were not provided:
              --gold <FILE>

            Usage: canonym eval --gold <FILE> --pred <FILE>

            For more information, try '--help'.
        "#]],
    );
}
