//! `canonym kb diff` and `canonym kb export`.

use expect_test::expect;

use crate::support::Workplace;

/// The shapes of [`crate::support::SHAPES`], a release later.
const LATER: &str = concat!(
    "S1\tCircle\tround\tCurve\tAll points at one distance from a centre.\n",
    "S2\tRegular quadrilateral\tsquare|quad\tPolygon|Figure\n",
    "S4\tTriangle\ttrigon|Trigon\tPolygon\n",
    "S5\tPentagon\t\tPolygon\n",
);

fn two_releases() -> Workplace {
    let place = Workplace::with_shapes();
    place.write("later.tsv", LATER);
    place.run(&["kb", "build", "later.tsv", "--prefix", "X", "--out", "later.kb"], "");
    place
}

#[test]
fn diff_lists_what_came_went_and_changed() {
    let place = two_releases();
    place.check(
        &["kb", "diff", "shapes.kb", "later.kb"],
        expect![[r#"
        status 0
        --- stdout
        old     shapes, 4 concepts
        new     later, 4 concepts
        counts  1  concept unchanged
                1  concept added
                2  concepts changed
                1  concept removed
                2  names added
                3  names removed
                1  preferred name changed
                1  type added
        ~ X:S1  Circle
            - names: ring shape
        ~ X:S2  Regular quadrilateral
            preferred name was Square
            + names: Regular quadrilateral
            + names: square
            - names: Square
            - names: regular quadrilateral
            + types: Figure
        - X:S3  Circular sector
        + X:S5  Pentagon
    "#]],
    );
    place.check(
        &["kb", "diff", "shapes.kb", "later.kb", "--limit", "1"],
        expect![[r#"
        status 0
        --- stdout
        old     shapes, 4 concepts
        new     later, 4 concepts
        counts  1  concept unchanged
                1  concept added
                2  concepts changed
                1  concept removed
                2  names added
                3  names removed
                1  preferred name changed
                1  type added
        ~ X:S1  Circle
            - names: ring shape
        and 3 more (use `--limit` to show more)
    "#]],
    );
    place.check(
        &["kb", "diff", "shapes.kb", "shapes.kb", "--json"],
        expect![[r#"
        status 0
        --- stdout
        {
        "old": "shapes",
        "new": "shapes",
        "changes": [
        ],
        "n_changes": 0,
        "n_equal": 4,
        "counts": {}
        }
    "#]],
    );
    let output = place.run(&["kb", "diff", "shapes.kb", "later.kb", "--json"], "");
    let diff: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&diff["n_equal"], &diff["changes"][0]["fate"]), (&1.into(), &"changed".into()));
}

#[test]
fn what_is_exported_builds_again_without_a_difference() {
    let place = Workplace::with_shapes();
    for format in ["jsonl", "tsv"] {
        let file = format!("again.{format}");
        let output = place.run(&["kb", "export", "shapes.kb", "--to", format, "--out", &file], "");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        place.run(&["kb", "build", &file, "--out", "again.kb"], "");
        let output = place.run(&["kb", "diff", "shapes.kb", "again.kb"], "");
        assert!(String::from_utf8_lossy(&output.stdout).ends_with("counts  4  concepts unchanged\n"), "{output:?}");
    }
}

#[test]
fn export_tells_what_the_format_cannot_hold() {
    let place = Workplace::with_shapes();
    place.check(
        &["kb", "export", "shapes.kb", "--to", "biosyn"],
        expect![[r#"
            status 0
            --- stdout
            X:S1||Circle
            X:S1||round
            X:S1||ring shape
            X:S2||Square
            X:S2||regular quadrilateral
            X:S2||quad
            X:S3||Circular sector
            X:S3||pie slice
            X:S4||Triangle
            X:S4||trigon
            X:S4||Trigon
            --- stderr
            wrote           4 concepts as biosyn
            lost in export  1  definition: not supported by the format
                            4  type: not supported by the format
            raw ids         restored by `kb build --prefix X`
        "#]],
    );
    place.check(
        &["kb", "export", "shapes.kb", "--to", "owl"],
        expect![[r#"
        status 2
        --- stderr
        error: invalid value 'owl' for '--to <F>': use one of jsonl, tsv, biosyn, obo

        For more information, try '--help'.
    "#]],
    );
}
