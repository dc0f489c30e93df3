//! `canonym kb build --with-starter`. The starter grows, so only some of its names and no numbers are told.

use crate::support::Workplace;

/// Two concepts that the starter has, one of them under another id, and one that it has not. `Heart Attack` is a name of another concept here.
const OWN: &str = concat!(
    "{\"id\":\"MESH:D005334\",\"name\":\"Febrile state\"}\n",
    "{\"id\":\"OWN:1\",\"name\":\"Cardiac infarction\",\"alternative_ids\":[\"MESH:D009203\"]}\n",
    "{\"id\":\"OWN:2\",\"name\":\"Angina\",\"synonyms\":[\"Heart Attack\"]}\n",
    "{\"id\":\"OWN:3\",\"name\":\"Made-up disease\"}\n",
);

/// What the program says on standard output and standard error.
fn said(place: &Workplace, arguments: &[&str]) -> String {
    let output = place.run(arguments, "");
    let text = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
    assert!(output.status.success(), "{text}");
    text
}

fn has(text: &str, parts: &[&str]) {
    let missing: Vec<&&str> = parts.iter().filter(|part| !text.contains(**part)).collect();
    assert!(missing.is_empty(), "{missing:?} in {text}");
}

#[test]
fn concepts_of_the_starter_lend_their_names() {
    let place = Workplace::new();
    place.write("own.jsonl", OWN);
    let built = said(&place, &["kb", "build", "own.jsonl", "--with-starter", "--out", "own.kb"]);
    has(&built, &["  4  concepts\n", "names added to 2 concepts\n", "starter concept: not in the terminology\n"]);
    has(&built, &["1  starter name: a name of another concept\n", "2  starter name: already a name of its concept\n"]);
    let infarction = said(&place, &["kb", "show", "own.kb", "OWN:1"]);
    has(&infarction, &["name           Cardiac infarction\n", "exact      Myocardial Infarction\n", "exact      MI\n"]);
    assert!(!infarction.contains("exact      heart attack\n"), "{infarction}");
    let fever = said(&place, &["kb", "show", "own.kb", "MESH:D005334"]);
    has(&fever, &["name         Febrile state\n", "exact      Fever\n", "exact      pyrexia\n"]);
    has(&said(&place, &["kb", "info", "own.kb"]), &["--with-starter", "starter (xxh3 "]);
}

#[test]
fn a_terminology_without_such_ids_is_built_as_it_is() {
    let place = Workplace::new();
    place.write("own.tsv", "D005334\tFebrile state\n");
    let built = said(&place, &["kb", "build", "own.tsv", "--with-starter", "--out", "own.kb"]);
    has(
        &built,
        &[
            "starter  no names added; the starter uses ids such as MESH:D005334 (`--prefix MESH` adds the prefix)\n",
            "kept     1  concept\n",
        ],
    );
    let prefixed = ["kb", "build", "own.tsv", "--prefix", "MESH", "--out", "own.kb"];
    assert!(!said(&place, &prefixed).contains("starter"));
    has(&said(&place, &[&prefixed[..], &["--with-starter"]].concat()), &["names added to 1 concept\n"]);
}
