//! Filters of concepts: `canonym link`, `map` and `eval` with `--only-types` and the like.

use expect_test::expect;

use crate::support::Workplace;

#[test]
fn filters_choose_the_concepts_that_are_given() {
    let place = Workplace::with_shapes();
    let map = |filter: &[&str]| {
        let mut arguments = vec!["map", "-", "--kb", "shapes.kb", "--top-k", "1"];
        arguments.extend(filter);
        place.describe(&place.run(&arguments, "circle\n"))
    };
    let mut said = map(&[]);
    // What is left only looks alike.
    said += &map(&["--only-types", "Polygon"]);
    said += &map(&["--not-types", "Curve,Polygon"]);
    said += &map(&["--only-types", "Polygons"]);
    said += &map(&["--only-under", "X:S1"]);
    said += &map(&["--only-sources", "S"]);
    expect![[r#"
        status 0
        --- stdout
        {"query":"circle","nil":false,"candidates":[{"id":"X:S1","name":"Circle","score":0.9945,"p_link":0.9945}]}
        status 0
        --- stdout
        {"query":"circle","nil":true,"candidates":[{"id":"X:S4","name":"Triangle","score":0.0895,"p_link":0.0895}]}
        --- stderr
        2 of 4 concepts match the filters
        status 1
        --- stderr
        error: cannot apply the concept filters
          caused by: no concept matches all filters
        hint: relax one of the filters; `canonym kb info` lists sources and types
        status 1
        --- stderr
        error: cannot apply the concept filters
          caused by: no semantic type `Polygons` in the knowledge base
        hint: similar: Polygon, Curve
        status 1
        --- stderr
        error: cannot apply the concept filters
          caused by: shapes has no hierarchy, so X:S1 has no descendants
        hint: filter by types or sources, or build from a source with a hierarchy
        status 1
        --- stderr
        error: cannot apply the concept filters
          caused by: no source `S` in the knowledge base
        hint: it has no sources; omit the filter
    "#]]
    .assert_eq(&said);
}

#[test]
fn text_and_evaluation_take_the_same_filters() {
    let place = Workplace::with_shapes();
    let text = "A circular sector in a square.";
    let found = |filter: &[&str]| {
        let mut arguments = vec!["link", "--kb", "shapes.kb", "--to", "pubtator", "--text", text];
        arguments.extend(filter);
        place.describe(&place.run(&arguments, ""))
    };
    expect![[r#"
        status 0
        --- stdout
        text|t|A circular sector in a square.
        text|a|
        text	2	17	circular sector	Curve	X:S3
        text	23	29	square	Polygon	X:S2

        --- stderr
        2 scores were dropped (first in document `text`)
        2 lists of candidates were reduced to the first id (first in document `text`)
        status 0
        --- stdout
        text|t|A circular sector in a square.
        text|a|
        text	23	29	square	Polygon	X:S2

        --- stderr
        2 of 4 concepts match the filters
        1 score was dropped (first in document `text`)
        1 list of candidates was reduced to the first id (first in document `text`)
    "#]]
    .assert_eq(&(found(&[]) + &found(&["--only-types", "Polygon"])));
    place.write("gold.pubtator", "7|t|A circle in a square.\n7\t2\t8\tcircle\tCurve\tX:S1\n");
    let run = |filter: &[&str]| {
        let mut arguments =
            vec!["eval", "--gold", "gold.pubtator", "--model", "lexical", "--kb", "shapes.kb", "--json"];
        arguments.extend(filter);
        place.run(&arguments, "")
    };
    assert_ne!(run(&[]).stdout, run(&["--only-types", "Curve"]).stdout);
    let with_file = ["eval", "--gold", "gold.pubtator", "--pred", "gold.pubtator", "--not-types", "Curve"];
    place.check(
        &with_file,
        expect![[r#"
        status 2
        --- stderr
        error: concept filters do not apply to a prediction file
        hint: use them with `canonym link`, or omit `--pred` to run a model
    "#]],
    );
}
