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
    place.check(&["kb", "diff", "shapes.kb", "later.kb"], expect![[""]]);
    place.check(&["kb", "diff", "shapes.kb", "later.kb", "--limit", "1"], expect![[""]]);
    place.check(&["kb", "diff", "shapes.kb", "shapes.kb", "--json"], expect![[""]]);
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
        assert!(String::from_utf8_lossy(&output.stdout).ends_with("counts  4  concepts equal\n"), "{output:?}");
    }
}

#[test]
fn export_tells_what_the_format_cannot_hold() {
    let place = Workplace::with_shapes();
    place.check(&["kb", "export", "shapes.kb", "--to", "biosyn"], expect![[""]]);
    place.check(&["kb", "export", "shapes.kb", "--to", "owl"], expect![[""]]);
}
