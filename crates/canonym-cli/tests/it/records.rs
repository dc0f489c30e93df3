//! `canonym link` into tables and health records, and codes of other code systems.

use expect_test::expect;

use crate::support::Workplace;

/// Concepts with cross-references.
const WARD: &str = concat!(
    r#"{"id":"WARD:1","name":"gout","types":["Disease"],"xrefs":["ICD10CM:M10.9",{"id":"SNOMEDCT_US_2020_03_01:90560007","predicate":"skos:exactMatch"}]}"#,
    "\n",
    r#"{"id":"WARD:2","name":"dry cough","types":["Symptom"],"xrefs":["UMLS_CUI:C0850149"]}"#,
    "\n",
    r#"{"id":"WARD:3","name":"colchicine","types":["Drug"],"xrefs":[{"id":"RXNORM:2683","predicate":"skos:exactMatch"}]}"#,
    "\n",
);

const NOTES: &str = concat!(
    "note_id,note_text\n",
    "11,\"Dry cough, no gout.\nColchicine was stopped.\"\n",
    "12,Nothing.\n",
    "13,\"Family history: gout.\"\n",
);

/// Made-up rows in the shape of the vocabulary.
const CONCEPTS: &str = concat!(
    "concept_id\tconcept_name\tdomain_id\tvocabulary_id\tconcept_class_id\tstandard_concept\tconcept_code\tvalid_start_date\tvalid_end_date\tinvalid_reason\n",
    "440674\tGout\tCondition\tSNOMED\tDisorder\tS\t90560007\t20020131\t20991231\t\n",
    "35208800\tGout, unspecified\tCondition\tICD10CM\t5-char billing code\t\tM10.9\t20070101\t20991231\t\n",
    "1101554\tcolchicine\tDrug\tRxNorm\tIngredient\t\t2683\t19700101\t20991231\t\n",
    "999\tother\tDrug\tRxNorm\tIngredient\tS\t1\t19700101\t20991231\t\n",
);

const RELATIONSHIPS: &str = concat!(
    "concept_id_1\tconcept_id_2\trelationship_id\tvalid_start_date\tvalid_end_date\tinvalid_reason\n",
    "1101554\t1101555\tMaps to\t19700101\t20991231\t\n",
    "1101554\t1101556\tMapped from\t19700101\t20991231\t\n",
    "35208800\t440674\tMaps to\t19700101\t20991231\t\n",
);

fn place() -> Workplace {
    let place = Workplace::new();
    place.write("ward.jsonl", WARD);
    place.write("notes.csv", NOTES);
    place.write("CONCEPT.csv", CONCEPTS);
    place.write("CONCEPT_RELATIONSHIP.csv", RELATIONSHIPS);
    let arguments =
        ["kb", "build", "ward.jsonl", "--code-system", "WARD=https://ward.example/codes|2026", "--out", "ward.kb"];
    assert!(place.run(&arguments, "").status.success());
    place
}

const LINK: [&str; 9] = [
    "link",
    "--model",
    "lexical",
    "--kb",
    "ward.kb",
    "notes.csv",
    "--id-column=note_id",
    "--text-column=note_text",
    "--to",
];

fn link<'a>(others: &[&'a str]) -> Vec<&'a str> {
    [&LINK[..], others].concat()
}

#[test]
fn mentions_are_records_of_csv() {
    let place = place();
    place.check(&link(&["csv"]), expect![]);
    place.check(&link(&["csv", "--context", "--drop-context", "negated,family", "--to-system", "ICD10CM"]), expect![]);
}

#[test]
fn rows_of_note_nlp_have_concept_ids_and_modifiers() {
    let place = place();
    place.check(&link(&["omop-note-nlp", "--nlp-date", "2026-11-25"]), expect![]);
    let concepts = ["omop-note-nlp", "--nlp-date", "2026-11-25T08:00:00", "--omop-concepts", "CONCEPT.csv"];
    place.check(&link(&concepts), expect![]);
    let both = [&concepts[..], &["--omop-relationships", "CONCEPT_RELATIONSHIP.csv"]].concat();
    place.check(&link(&both), expect![]);
}

#[test]
fn damaged_vocabulary_tables_are_errors_with_their_line() {
    let place = place();
    let check = |concepts: &[u8], expected: expect_test::Expect| {
        place.write("bad.csv", concepts);
        place.check(&link(&["omop-note-nlp", "--nlp-date", "2026-11-25", "--omop-concepts", "bad.csv"]), expected);
    };
    check(b"", expect![]);
    check(b"concept_id,concept_name\n1,x\n", expect![]);
    check(CONCEPTS.replace("35208800", "three").as_bytes(), expect![]);
    check(CONCEPTS.replace("\t20991231\t\n35208800", "\n35208800").as_bytes(), expect![]);
    check(&[CONCEPTS.as_bytes(), b"1\t\xff\n"].concat(), expect![]);
    place.write("bad.tsv", "subject_id\tobject_id\nWARD:1\tICD10CM:M10\n");
    place.check(&link(&["jsonl", "--to-system", "ICD10CM", "--mappings", "bad.tsv"]), expect![]);
}

#[test]
fn wrong_options_of_records_say_what_to_do() {
    let place = place();
    place.check(&link(&["omop-note-nlp"]), expect![]);
    place.check(&link(&["omop-note-nlp", "--nlp-date", "yesterday"]), expect![]);
    place.check(&link(&["jsonl", "--nlp-date", "2026-11-25"]), expect![]);
    place.check(&link(&["fhir", "--fhir-types", "Drug=pill"]), expect![]);
    place.check(&link(&["parquet"]), expect![]);
    place.check(&link(&["jsonl", "--to-system", "LOINC"]), expect![]);
    place.write("text.txt", "Gout.");
    let named = [
        "link",
        "--model",
        "lexical",
        "--kb",
        "ward.kb",
        "text.txt",
        "--to",
        "omop-note-nlp",
        "--nlp-date",
        "2026-11-25",
    ];
    place.check(&named, expect![]);
}

#[test]
fn bundles_never_show_what_is_negated_or_of_relatives_as_present() {
    let place = place();
    let output = place.run(&link(&["fhir", "--to-system", "ICD10CM"]), "");
    let lines: Vec<serde_json::Value> =
        String::from_utf8(output.stdout).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 3);
    let mut shown = String::new();
    for entry in lines.iter().flat_map(|bundle| bundle["entry"].as_array().unwrap()) {
        let resource = &entry["resource"];
        let code = ["code", "medicationCodeableConcept"]
            .iter()
            .map(|field| &resource[*field]["text"])
            .find(|text| text.is_string());
        let status = &resource["verificationStatus"]["coding"][0]["code"];
        shown += &format!("{} {:?} {status} {}\n", resource["resourceType"], code, resource["valueBoolean"]);
    }
    expect![].assert_eq(&shown);
    let gout = &lines[0]["entry"][2]["resource"]["code"]["coding"];
    expect![].assert_eq(&gout.to_string());
    let lines = place.run(&link(&["fhir-ndjson"]), "").stdout;
    assert_eq!(String::from_utf8(lines).unwrap().lines().count(), 7);
}

#[test]
fn run_folders_hold_tables() {
    let place = place();
    std::fs::create_dir(place.path("in")).unwrap();
    place.write("in/1.txt", "Gout.");
    place.write("in/2.txt", "No gout, dry cough.");
    let arguments = ["link", "--model", "lexical", "--kb", "ward.kb", "in", "--to", "csv", "--output", "out/"];
    assert!(place.run(&arguments, "").status.success());
    let text = std::fs::read_to_string(place.path("out/2.txt.csv")).unwrap();
    assert_eq!(text.lines().map(|line| line.split(',').next().unwrap()).collect::<Vec<_>>(), ["row", "0", "0"]);
}

#[cfg(feature = "parquet")]
#[test]
fn parquet_is_a_file_of_its_own() {
    let place = place();
    place.check(&link(&["parquet", "--output", "links.parquet"]), expect![]);
    let bytes = std::fs::read(place.path("links.parquet")).unwrap();
    assert_eq!((&bytes[..4], &bytes[bytes.len() - 4..]), (&b"PAR1"[..], &b"PAR1"[..]));
    place.check(&link(&["parquet", "--output", "links.parquet.gz"]), expect![]);
}

#[test]
fn map_gives_codes_of_another_system_and_sssom() {
    let place = place();
    place.write("names.txt", "gout\ncough, dry\nnothing of the kind\n");
    let map = ["map", "--kb", "ward.kb", "names.txt", "--top-k", "1", "--min-score", "0.3"];
    place.check(&[&map[..], &["--to-system", "SNOMEDCT"]].concat(), expect![]);
    place.write("more.sssom.tsv", "#curie_map: {}\nsubject_id\tpredicate_id\tobject_id\nward:1\tskos:narrowMatch\tLOINC:1-8\nWARD:2\tx:y\tLOINC:2\n");
    place.check(&[&map[..], &["--to-system", "LOINC", "--mappings", "more.sssom.tsv"]].concat(), expect![]);
    place.write("ids.txt", "L:1\tgout\nL:2\trash\n");
    let ids = ["map", "--kb", "ward.kb", "ids.txt", "--to", "sssom", "--min-score", "0.3"];
    let output = place.describe(&place.run(&ids, ""));
    let (_, rows) = output.split_once("#object_source_version").unwrap();
    expect![].assert_eq(rows);
    place.check(&[&ids[..], &["--explain"]].concat(), expect![]);
}

#[test]
fn a_knowledge_base_keeps_cross_references_and_code_systems() {
    let place = place();
    place.check(&["kb", "show", "ward.kb", "WARD:1"], expect![]);
    place.write(
        "more.sssom.tsv",
        "subject_id\tpredicate_id\tobject_id\nward:2\tskos:exactMatch\tICD10CM:R05.8\nX:1\tskos:exactMatch\tX:2\n",
    );
    let build = ["kb", "build", "ward.jsonl", "--xrefs-from", "more.sssom.tsv", "--out", "more.kb"];
    place.check(&build, expect![]);
    place.check(&["kb", "show", "more.kb", "WARD:2"], expect![]);
    place.check(&["kb", "build", "ward.jsonl", "--code-system", "WARD", "--out", "more.kb"], expect![]);
    place.write("bad.jsonl", "{\"id\":\"W:1\",\"name\":\"a\",\"xrefs\":[{\"id\":\"X:1\",\"predicate\":\"same\"}]}\n");
    place.check(&["kb", "build", "bad.jsonl", "--out", "more.kb"], expect![]);
    let again = place.run(&["kb", "export", "ward.kb", "--to", "jsonl"], "");
    assert_eq!(String::from_utf8(again.stdout).unwrap().matches("SNOMEDCT_US_2020_03_01:90560007").count(), 1);
}
