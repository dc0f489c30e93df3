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
            1 document, 2 gold, 2 predicted; ids match by `any`

                                        P       R      F1      95% of F1  macro F1     right/pred     found/gold
            strict                  50.00   50.00   50.00                    50.00            1/2            1/2
            --- stderr
            note: a prediction file does not record what its model was trained on, so overlap with these documents cannot be checked; `canonym eval --data GOLD --model MODEL` checks it
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
        hint: check the path; relative paths are resolved from the current folder
    "#]],
    );
    place.check(
        &["eval", "--gold", "gold.txt", "--pred", "empty.txt"],
        expect![[r#"
        status 1
        --- stderr
        error: cannot match predictions to gold
          caused by: predicted document `empty` is not one of the 1 gold documents
        hint: use the gold file of the same documents and split
    "#]],
    );
    place.check(
        &["eval", "--gold", "-", "--pred", "-"],
        expect![[r#"
        status 2
        --- stderr
        error: gold annotations and predictions cannot both be read from standard input
    "#]],
    );
    place.check(
        &["eval", "--gold", "gold.txt", "--pred", "gold.txt", "--composite", "first"],
        expect![[r#"
        status 2
        --- stderr
        error: `--composite` does not apply to annotated documents, only to queries
        hint: use `--format biosyn`, or `--ids`
    "#]],
    );
    place.check(
        &["eval", "--gold", "gold.txt", "--pred", "gold.txt", "--kb", "missing.kb"],
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
        &["eval", "--pred", "gold.txt"],
        expect![[r#"
            status 2
            --- stderr
            error: the following required arguments were not provided:
              --gold <FILE>

            Usage: canonym eval --pred <FILE> --gold <FILE>

            For more information, try '--help'.
        "#]],
    );
}

/// Queries of the shapes: one exact name, one name that no knowledge base has, one concept that none has.
const QUERIES: &str = "7||0|5||Curve||round||X:S1\n7||6|9||Polygon||three sides||X:S4\n8||0|4||Curve||orb||X:S9\n";

/// A folder with the shapes, the queries, and a knowledge base that holds a name of the queries.
fn with_queries() -> Workplace {
    let place = Workplace::with_shapes();
    place.write("dev.concept", QUERIES);
    place.write("leaky.tsv", "S1\tCircle\tround\nS4\tTriangle\tthree sides\nS9\tOrb\n");
    let output = place.run(&["kb", "build", "leaky.tsv", "--prefix", "X", "--out", "leaky.kb"], "");
    assert!(output.status.success());
    place
}

#[test]
fn protocols_choose_the_headline() {
    let place = with_queries();
    let judge = ["eval", "--format", "biosyn", "--gold", "dev.concept", "--kb", "shapes.kb", "--resamples", "0"];
    place.check(&[&judge[..], &["--protocol", "genbioel"]].concat(), expect![[r#"
        status 0
        --- stdout
        2 documents, 3 gold, 3 answered; ids match by `any`
        headline of protocol `genbioel`: accuracy@1, linkable 100.00; accuracy@5, linkable 100.00

        ranking of names       mentions          acc@1          acc@5         acc@10         acc@20            MRR            MAP
        all                           3          66.67          66.67          66.67          66.67          66.67          66.67
        normalised                    2         100.00         100.00         100.00         100.00         100.00         100.00
        linkable *                    2         100.00         100.00         100.00         100.00         100.00         100.00

        shapes (4 ids) covers 66.67% of gold
        only the first part of composite mentions is scored
        --- stderr
        warning: 1 of 3 gold mentions have ids missing from shapes (such as X:S9)
        hint: these cannot be linked correctly: use the release that the corpus was annotated with, or map one to the other with `canonym kb build --join`
    "#]]);
    place.check(
        &[&judge[..], &["--protocol", "mohan-strict"]].concat(),
        expect![[r#"
            status 2
            --- stderr
            warning: 1 of 3 gold mentions have ids missing from shapes (such as X:S9)
            hint: these cannot be linked correctly: use the release that the corpus was annotated with, or map one to the other with `canonym kb build --join`
            error: protocol `mohan-strict` needs strict F1, which this run does not report
            hint: option `--protocol list` explains the protocols
        "#]],
    );
    let output = place.run(&["eval", "--protocol", "list"], "");
    assert!(String::from_utf8_lossy(&output.stdout).starts_with("biosyn\n  paper    BioSyn"));
}

#[test]
fn clean_and_leaky_dictionaries_stand_side_by_side() {
    let place = with_queries();
    let judge = ["eval", "--format", "biosyn", "--data", "dev.concept", "--resamples", "0", "--protocol", "biosyn"];
    place.check(
        &[&judge[..], &["--kb", "shapes.kb", "--leaky-kb", "leaky.kb", "--model", "lexical"]].concat(),
        expect![[r#"
            status 0
            --- stdout
            2 documents, 3 gold, 3 answered; ids match by `any`
            headline of protocol `biosyn`: accuracy@1 66.67

            ranking of names       mentions          acc@1          acc@5         acc@10         acc@20            MRR            MAP
            all *                         3          66.67          66.67          66.67          66.67          66.67          66.67
            normalised                    2         100.00         100.00         100.00         100.00         100.00         100.00
            linkable                      2         100.00         100.00         100.00         100.00         100.00         100.00

            dictionary                clean     leaky difference
            accuracy@1                66.67    100.00     +33.33
            accuracy@5                66.67    100.00     +33.33
            accuracy@10               66.67    100.00     +33.33
            accuracy@20               66.67    100.00     +33.33
            MRR                       66.67    100.00     +33.33
            MAP                       66.67    100.00     +33.33
            accuracy@1, linkable     100.00    100.00      +0.00
            ids                           4         3
            coverage                  66.67    100.00

            shapes (4 ids) covers 66.67% of gold
            --- stderr
            warning: 1 of 3 gold mentions have ids missing from shapes (such as X:S9)
            hint: these cannot be linked correctly: use the release that the corpus was annotated with, or map one to the other with `canonym kb build --join`
        "#]],
    );
    place.check(&[&judge[..], &["--leaky-kb", "leaky.kb"]].concat(), expect![[r#"
        status 2
        --- stderr
        error: the following required arguments were not provided:
          --kb <FILE.kb>

        Usage: canonym eval --kb <FILE.kb> --format <F> --gold <FILE> --resamples <N> --protocol <NAME|list> --leaky-kb <FILE.kb>

        For more information, try '--help'.
    "#]]);
}

#[test]
fn parts_and_curves_are_told_when_asked_for() {
    let place = with_queries();
    place.write("train.concept", "1||0|5||Curve||round||X:S1\n");
    let judge = ["eval", "--format", "biosyn", "--gold", "dev.concept", "--kb", "shapes.kb", "--resamples", "0"];
    let asked = ["--slices", "--train-gold", "train.concept", "--want-precision", "0.95", "--json"];
    let output = place.run(&[&judge[..], &asked].concat(), "");
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["slices"]["dictionary"]["exact name"]["accuracy"]["n"], 1);
    assert_eq!(report["slices"]["dictionary"]["no name"]["accuracy"]["n"], 2);
    assert_eq!(report["slices"]["name"]["seen"]["accuracy"]["value"], 1.0);
    assert_eq!(report["slices"]["concept"]["unseen"]["accuracy"]["n"], 2);
    let curves = &report["curves"]["mentions"];
    assert_eq!(curves["wanted"]["precision"], 0.95);
    assert!(curves["points"].as_array().is_some_and(|points| !points.is_empty()));
    assert_eq!(curves["calibration"]["bins"].as_array().unwrap().len(), 10);
}

#[test]
fn folds_are_laid_beside_each_other() {
    let place = with_queries();
    for (row, queries) in QUERIES.lines().take(2).enumerate() {
        place.write("fold.concept", format!("{queries}\n"));
        let judge = ["eval", "--format", "biosyn", "--gold", "fold.concept", "--kb", "shapes.kb", "--resamples", "0"];
        let output = place.run(&[&judge[..], &["--protocol", "askapatient", "--json"]].concat(), "");
        place.write(&format!("fold{row}.json"), output.stdout);
    }
    place.check(
        &["eval", "--folds", "fold0.json", "fold1.json"],
        expect![[r#"
            status 0
            --- stdout
            2 folds, protocol `askapatient`; * marks the headline (mean over folds)

                                     mean      sd  pooled  fold 1  fold 2
            accuracy@1 *           100.00    0.00  100.00  100.00  100.00
            accuracy@5             100.00    0.00  100.00  100.00  100.00
            accuracy@10            100.00    0.00  100.00  100.00  100.00
            accuracy@20            100.00    0.00  100.00  100.00  100.00
            MRR                    100.00    0.00  100.00  100.00  100.00
            MAP                    100.00    0.00  100.00  100.00  100.00
            accuracy@1, linkable   100.00    0.00  100.00  100.00  100.00
        "#]],
    );
    place.check(&["eval", "--folds", "fold0.json", "dev.concept"], expect![[r#"
        status 1
        --- stderr
        error: dev.concept:1: not a report of `canonym eval --json`: invalid type: integer `7`, expected struct Report at line 1 column 1
        hint: evaluate each fold with `--json` first
    "#]]);
}
