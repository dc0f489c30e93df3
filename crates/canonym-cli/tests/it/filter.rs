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
    said += &map(&["--only-types", "Polygon"]);
    said += &map(&["--not-types", "Curve,Polygon"]);
    said += &map(&["--only-types", "Polygons"]);
    said += &map(&["--only-under", "X:S1"]);
    said += &map(&["--only-sources", "S"]);
    expect![[""]].assert_eq(&said);
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
    expect![[""]].assert_eq(&(found(&[]) + &found(&["--only-types", "Polygon"])));
    place.write("gold.pubtator", "7|t|A circle in a square.\n7\t2\t8\tcircle\tCurve\tX:S1\n");
    let run = |filter: &[&str]| {
        let mut arguments =
            vec!["eval", "--gold", "gold.pubtator", "--model", "default", "--kb", "shapes.kb", "--json"];
        arguments.extend(filter);
        place.run(&arguments, "")
    };
    assert_ne!(run(&[]).stdout, run(&["--only-types", "Curve"]).stdout);
    let with_file = ["eval", "--gold", "gold.pubtator", "--pred", "gold.pubtator", "--not-types", "Curve"];
    place.check(&with_file, expect![[""]]);
}
