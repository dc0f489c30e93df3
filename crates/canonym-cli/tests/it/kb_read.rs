//! `canonym kb info`, `search` and `show`.

use expect_test::expect;

use crate::support::Workplace;

#[test]
fn info_tells_what_a_file_holds() {
    let place = Workplace::with_shapes();
    place.check(
        &["kb", "info", "shapes.kb", "--verify"],
        expect![[r#"
            status 0
            --- stdout
            name            shapes
            files           shapes.tsv (xxh3 [HASH])
            options         --format tsv --prefix X
            added prefixes  X
            counts           4  concepts
                            11  names
                            10  distinct names, ignoring case and punctuation
                             0  names shared by several concepts
                             1  concept with a definition
                             0  concepts with a parent
                             0  alternative ids
                             0  cross-references
            names           4  preferred
                            7  exact
            types           2  Curve
                            2  Polygon
            file            [SIZE] KiB, format 4
            fingerprint     [HASH]
            checksums       all 49 sections match
        "#]],
    );
    let with_sections = place.run(&["kb", "info", "shapes.kb", "--sections"], "");
    assert!(String::from_utf8(with_sections.stdout).unwrap().contains("\nsection bytes "));
    let output = place.run(&["kb", "info", "shapes.kb", "--json"], "");
    let info: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        (&info["n_concepts"], &info["types"]["Polygon"], &info["verified"]),
        (&4.into(), &2.into(), &false.into())
    );
    assert!(info["sections"]["id.text"].as_u64().unwrap() > 0);
}

#[test]
fn search_shows_exact_then_prefix_then_fuzzy() {
    let place = Workplace::with_shapes();
    place.check(
        &["kb", "search", "shapes.kb", "CIRC"],
        expect![[r#"
        status 0
        --- stdout
        prefix  0.59  X:S1  Circle
        prefix  0.38  X:S3  Circular sector
    "#]],
    );
    place.check(
        &["kb", "search", "shapes.kb", "round"],
        expect![[r#"
        status 0
        --- stdout
        exact   1.00  X:S1  Circle  [round]
    "#]],
    );
    place.check(
        &["kb", "search", "shapes.kb", "X:S2"],
        expect![[r#"
        status 0
        --- stdout
        id      1.00  X:S2  Square
    "#]],
    );
    place.check(
        &["kb", "search", "shapes.kb", "circel", "--top-k", "1", "--json"],
        expect![[r#"
        status 0
        --- stdout
        {
          "query": "circel",
          "hits": [
            {
              "id": "X:S1",
              "name": "Circle",
              "matched": "Circle",
              "found": "fuzzy",
              "similarity": 0.5076
            }
          ]
        }
    "#]],
    );
    place.check(
        &["kb", "search", "shapes.kb", "😀"],
        expect![[r#"
        status 0
        --- stderr
        no match for `😀` in shapes
    "#]],
    );
    place.check(
        &["kb", "search", "shapes.kb", "circle", "--top-k", "0"],
        expect![[r#"
        status 2
        --- stderr
        error: invalid value '0' for '--top-k <N>': 0 is not in 1..=1000

        For more information, try '--help'.
    "#]],
    );
    place.check(
        &["kb", "search", "missing.kb", "circle"],
        expect![[r#"
        status 1
        --- stderr
        error: cannot open the knowledge base
          caused by: cannot open missing.kb
          caused by: No such file or directory (os error 2)
        hint: check the path; relative paths are resolved from the current folder
    "#]],
    );
}

#[test]
fn show_lists_names_and_neighbours() {
    let place = Workplace::new();
    let rows = [
        r#"{"id":"T:1","name":"Tool","definition":"Something to work with.","source":"shed"}"#,
        r#"{"id":"T:2","name":"Saw","synonyms":["handsaw",{"text":"blade","scope":"related"}],"parents":["T:1"],"types":["Sharp"]}"#,
        r#"{"id":"T:30","name":"Hammer","parents":["T:1"],"alternative_ids":["OLD:9"],"source":"shed"}"#,
    ];
    place.write("tools.jsonl", rows.join("\n"));
    assert!(place.run(&["kb", "build", "tools.jsonl", "--out", "tools.kb"], "").status.success());
    place.check(
        &["kb", "show", "tools.kb", "T:1"],
        expect![[r#"
        status 0
        --- stdout
        id          T:1
        name        Tool
        definition  Something to work with.
        children    T:2   Saw
                    T:30  Hammer
        source      shed
    "#]],
    );
    place.check(
        &["kb", "show", "tools.kb", "T:2"],
        expect![[r#"
        status 0
        --- stdout
        id           T:2
        name         Saw
        types        Sharp
        other names  exact      handsaw
                     related    blade
        parents      T:1  Tool
    "#]],
    );
    place.check(
        &["kb", "show", "tools.kb", "OLD:9", "--json"],
        expect![[r#"
            status 0
            --- stdout
            {
              "id": "T:30",
              "raw_id": "T:30",
              "name": "Hammer",
              "names": [
                {
                  "text": "Hammer",
                  "scope": "preferred"
                }
              ],
              "types": [],
              "definition": null,
              "parents": [
                {
                  "id": "T:1",
                  "name": "Tool"
                }
              ],
              "children": [],
              "alternative_ids": [
                "OLD:9"
              ],
              "xrefs": [],
              "code_system": {
                "uri": "urn:canonym:T",
                "version": "",
                "code": "30"
              },
              "source": "shed"
            }
        "#]],
    );
    place.check(
        &["kb", "show", "tools.kb", "t:3O"],
        expect![[r#"
        status 1
        --- stderr
        error: tools has no concept with the id `t:3O`
        hint: did you mean T:30 (Hammer)?
    "#]],
    );
    place.check(
        &["kb", "show", "tools.kb", "hammers"],
        expect![[r#"
        status 1
        --- stderr
        error: tools has no concept with the id `hammers`
        hint: did you mean T:30 (Hammer)?
    "#]],
    );
    place.check(
        &["kb", "show", "tools.kb", "😀"],
        expect![[r#"
        status 1
        --- stderr
        error: tools has no concept with the id `😀`
        hint: search by name with `canonym kb search`
    "#]],
    );
}

#[test]
fn the_starter_is_at_hand_without_a_file() {
    let place = Workplace::new();
    place.check(
        &["kb", "search", "starter", "pyrexia", "--top-k", "1"],
        expect![[r#"
        status 0
        --- stdout
        exact   1.00  MESH:D005334  Fever  [pyrexia]
    "#]],
    );
    // The starter grows, so only some of its names are told.
    let shown = place.describe(&place.run(&["kb", "show", "starter", "D005334"], ""));
    let start = expect![[r#"
        status 0
        --- stdout
        id           MESH:D005334
        raw id       D005334
        name         Fever
        types        Symptom
        other names  exact      pyrexia
                     exact      febrile
    "#]];
    start.assert_eq(&shown.split_inclusive('\n').take(8).collect::<String>());
}
