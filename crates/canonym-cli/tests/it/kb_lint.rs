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
    place.check(
        &["kb", "lint", "doubtful.kb", "--only", checks],
        expect![[r#"
        status 0
        --- stdout
        1  duplicate-labels  preferred names shared within a source
             X:1, X:2  Fever
        1  variant-names     names duplicated except for case or punctuation
             X:1  Fever  [and fever]
        1  dangling-parents  missing parents
             X:2  Fever  [parent X:9]
        0  no-type           concepts without a semantic type
    "#]],
    );
    place.check(
        &["kb", "lint", "doubtful.kb", "--only", "variant-names", "--strict", "--json"],
        expect![[r#"
            status 1
            --- stdout
            {
              "name": "doubtful",
              "n_concepts": 2,
              "n_names": 3,
              "checks": [
                {
                  "check": "variant-names",
                  "about": "names duplicated except for case or punctuation",
                  "note": false,
                  "n": 1,
                  "examples": [
                    {
                      "ids": [
                        "X:1"
                      ],
                      "name": "Fever",
                      "note": "and fever"
                    }
                  ]
                }
              ]
            }
            --- stderr
            error: doubtful.kb has findings: 1
            hint: select checks with `--only`, or omit `--strict`
        "#]],
    );
    place.check(
        &["kb", "lint", "doubtful.kb", "--only", "no-type", "--strict"],
        expect![[r#"
        status 0
        --- stdout
        0  no-type  concepts without a semantic type
    "#]],
    );
    place.check(&["kb", "lint", "doubtful.kb", "--only", "variants"], expect![[r#"
        status 2
        --- stderr
        error: unknown check `variants`
        hint: use one of duplicate-labels, homonyms, one-letter, stop-words, digits-only, no-letters, long-names, variant-names, dangling-parents, cyclic-parents, obsolete, obsolete-parents, no-definition, no-type
    "#]]);
}
