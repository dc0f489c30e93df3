//! `canonym kb lint`.

use expect_test::expect;

use crate::support::Workplace;

/// Two concepts with one name, and one below a concept that is not there.
const DOUBTFUL: &str = concat!(
    "{\"id\":\"X:1\",\"name\":\"Fever\",\"synonyms\":[\"fever\"],\"types\":[\"T\"],\"definition\":\"d\"}\n",
    "{\"id\":\"X:2\",\"name\":\"Fever\",\"types\":[\"T\"],\"parents\":[\"X:9\"],\"definition\":\"d\"}\n",
);

#[test]
fn lint_counts_what_it_finds_and_names_the_first() {
    let place = Workplace::new();
    place.write("doubtful.jsonl", DOUBTFUL);
    place.run(&["kb", "build", "doubtful.jsonl", "--out", "doubtful.kb"], "");
    let checks = "duplicate-labels,variant-names,dangling-parents,no-type";
    place.check(&["kb", "lint", "doubtful.kb", "--only", checks], expect![[""]]);
    place.check(&["kb", "lint", "doubtful.kb", "--only", "variant-names", "--strict", "--json"], expect![[""]]);
    place.check(&["kb", "lint", "doubtful.kb", "--only", "no-type", "--strict"], expect![[""]]);
    place.check(&["kb", "lint", "doubtful.kb", "--only", "variants"], expect![[""]]);
}
