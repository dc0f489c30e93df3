//! `canonym kb build --with-starter`.

use expect_test::expect;

use crate::support::Workplace;

/// Two concepts that the starter has, one of them under another id, and one that it has not. `Heart Attack` is a name of another concept here.
const JSONL: &str = concat!(
    "{\"id\":\"MESH:D005334\",\"name\":\"Febrile state\"}\n",
    "{\"id\":\"OWN:1\",\"name\":\"Cardiac infarction\",\"alternative_ids\":[\"MESH:D009203\"]}\n",
    "{\"id\":\"OWN:2\",\"name\":\"Angina\",\"synonyms\":[\"Heart Attack\"]}\n",
    "{\"id\":\"OWN:3\",\"name\":\"Made-up disease\"}\n",
);

#[test]
fn concepts_of_the_starter_lend_their_names() {
    let place = Workplace::new();
    place.write("own.jsonl", JSONL);
    place.check(&["kb", "build", "own.jsonl", "--with-starter", "--out", "own.kb"], expect![[r#""#]]);
    place.check(&["kb", "show", "own.kb", "OWN:1"], expect![[r#""#]]);
    place.check(&["kb", "show", "own.kb", "MESH:D005334"], expect![[r#""#]]);
    let info = place.run(&["kb", "info", "own.kb"], "");
    let info = String::from_utf8(info.stdout).unwrap();
    assert!(info.contains("--with-starter") && info.contains("starter (xxh3 "), "{info}");
}

#[test]
fn a_terminology_without_such_ids_is_built_as_it_is() {
    let place = Workplace::new();
    place.write("own.tsv", "D005334\tFebrile state\n");
    place.check(
        &["kb", "build", "own.tsv", "--with-starter", "--out", "own.kb"],
        expect![[r#"
        status 0
        --- stderr
        built    own.kb ([SIZE] MiB) in [TIME] s
        format   tsv
        read     4 records
        kept     4  concepts
                 5  names
                 5  distinct names, case and punctuation aside
        starter  no names added; ids of the starter are `MESH:D…`
        dropped  2,319  starter concept: not in the terminology
    "#]],
    );
    let plain = place.run(&["kb", "build", "own.tsv", "--prefix", "MESH", "--out", "plain.kb"], "");
    assert!(!String::from_utf8(plain.stderr).unwrap().contains("starter"));
}
