//! `canonym link` into tables and health records, and codes of other code systems.

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

/// What the program writes to standard output.
fn written(place: &Workplace, arguments: &[&str]) -> String {
    let output = place.run(arguments, "");
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Runs a command that has to fail with this status, and say this.
fn refused(place: &Workplace, arguments: &[&str], status: i32, expected: &str) {
    let output = place.run(arguments, "");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        output.status.code() == Some(status) && said.contains(expected),
        "{arguments:?}: {:?} {said}",
        output.status
    );
    assert!(said.contains("hint: "), "{said}");
}

/// The cells of a record; a comma in quotes is part of its cell.
fn cells(record: &str) -> Vec<String> {
    let mut is_quoted = false;
    let split = record.split(|letter: char| {
        is_quoted ^= letter == '"';
        letter == ',' && !is_quoted
    });
    split.map(|cell| cell.trim_matches('"').replace("\"\"", "\"")).collect()
}

/// The named cells of each record behind the header.
fn columns(table: &str, names: &[&str]) -> Vec<String> {
    let mut records = table.lines().map(cells);
    let header = records.next().unwrap();
    let at: Vec<usize> = names.iter().map(|name| header.iter().position(|cell| cell == name).unwrap()).collect();
    records.map(|record| at.iter().map(|at| record[*at].as_str()).collect::<Vec<_>>().join(" ")).collect()
}

#[test]
fn mentions_are_records_of_csv() {
    let place = place();
    let table = written(&place, &link(&["csv"]));
    assert!(table.starts_with("row,document,start,end,spans,text,type,id,name,score,p_mention,p_link,nil,negated,"));
    assert_eq!(
        columns(&table, &["row", "document", "start", "end", "id", "negated", "family"]),
        [
            "0 11 0 9 WARD:2 false false",
            "0 11 14 18 WARD:1 true false",
            "0 11 20 30 WARD:3 false false",
            "2 13 16 20 WARD:1 false true",
        ]
    );
    let others = ["csv", "--context", "--drop-context", "negated", "--to-system", "ICD10CM"];
    let table = written(&place, &link(&others));
    let codes = r#"[{"id":"ICD10CM:M10.9","predicate":"oboInOwl:hasDbXref"}]"#;
    assert_eq!(columns(&table, &["id", "codes"]), ["WARD:2 []", "WARD:3 []", &format!("WARD:1 {codes}")]);
}

#[test]
fn rows_of_note_nlp_have_concept_ids_and_modifiers() {
    let place = place();
    let wanted = [
        "note_nlp_id",
        "note_id",
        "note_nlp_concept_id",
        "note_nlp_source_concept_id",
        "term_exists",
        "term_modifiers",
    ];
    let table = written(&place, &link(&["omop-note-nlp", "--nlp-date", "2026-11-25"]));
    assert_eq!(
        columns(&table, &wanted),
        [
            "1 11 0 0 Y Unmapped=no vocabulary table",
            "2 11 0 0 N Negation=true,Unmapped=no vocabulary table",
            "3 11 0 0 Y Unmapped=no vocabulary table",
            "4 13 0 0 N Subject=family,Unmapped=no vocabulary table",
        ]
    );
    let concepts = ["omop-note-nlp", "--nlp-date", "2026-11-25T08:00:00", "--omop-concepts", "CONCEPT.csv"];
    let table = written(&place, &link(&concepts));
    assert_eq!(
        columns(&table, &wanted),
        [
            "1 11 0 0 Y Unmapped=not in the vocabulary table",
            "2 11 440674 440674 N Negation=true",
            "3 11 0 1101554 Y Unmapped=no standard concept without CONCEPT_RELATIONSHIP",
            "4 13 440674 440674 N Subject=family",
        ]
    );
    assert_eq!(columns(&table, &["nlp_date", "nlp_datetime"])[0], "2026-11-25 2026-11-25 08:00:00");
    let both = [&concepts[..], &["--omop-relationships", "CONCEPT_RELATIONSHIP.csv"]].concat();
    assert_eq!(columns(&written(&place, &link(&both)), &wanted)[2], "3 11 1101555 1101554 Y ");
}

#[test]
fn damaged_vocabulary_tables_are_errors_with_their_line() {
    let place = place();
    let check = |concepts: &[u8], expected: &str| {
        place.write("bad.csv", concepts);
        let arguments = link(&["omop-note-nlp", "--nlp-date", "2026-11-25", "--omop-concepts", "bad.csv"]);
        refused(&place, &arguments, 1, expected);
    };
    check(b"", "bad.csv:1: the file is empty");
    check(b"concept_id,concept_name\n1,x\n", "bad.csv:1: the header line has no column");
    check(CONCEPTS.replace("35208800", "three").as_bytes(), "bad.csv:3: `three` is not a concept id");
    check(
        CONCEPTS.replace("20991231\t\n35208800", "20991231\n35208800").as_bytes(),
        "bad.csv:2: 9 columns, expected 10",
    );
    check(&[CONCEPTS.as_bytes(), b"1\t\xff\n"].concat(), "bad.csv:6");
    place.write("bad.tsv", "subject_id\tobject_id\nWARD:1\tICD10CM:M10\n");
    let arguments = link(&["jsonl", "--to-system", "ICD10CM", "--mappings", "bad.tsv"]);
    refused(&place, &arguments, 1, "bad.tsv:1: the header line lacks");
}

#[test]
fn wrong_options_of_records_say_what_to_do() {
    let place = place();
    refused(&place, &link(&["omop-note-nlp"]), 2, "needs the date of the processing");
    refused(&place, &link(&["omop-note-nlp", "--nlp-date", "yesterday"]), 2, "`yesterday` is not a date");
    refused(&place, &link(&["jsonl", "--nlp-date", "2026-11-25"]), 2, "`--nlp-date` is for `--to omop-note-nlp`");
    refused(&place, &link(&["fhir", "--fhir-types", "Drug=pill"]), 2, "invalid setting `Drug=pill`");
    refused(&place, &link(&["parquet"]), 2, "");
    refused(&place, &link(&["jsonl", "--to-system", "LOINC"]), 2, "has no codes of `LOINC`");
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
    refused(&place, &named, 1, "the id of document `text` is not an integer");
}

#[test]
fn bundles_never_show_what_is_negated_or_of_relatives_as_present() {
    let place = place();
    let lines = written(&place, &link(&["fhir", "--to-system", "ICD10CM"]));
    let bundles: Vec<serde_json::Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(bundles.len(), 3);
    let mut shown = Vec::new();
    for entry in bundles.iter().flat_map(|bundle| bundle["entry"].as_array().unwrap()) {
        let resource = &entry["resource"];
        let status = resource["verificationStatus"]["coding"][0]["code"].as_str().or(resource["status"].as_str());
        shown.push(format!("{} {}", resource["resourceType"].as_str().unwrap(), status.unwrap()));
    }
    assert_eq!(
        shown,
        [
            "DocumentReference current",
            "Observation preliminary",
            "Condition refuted",
            "MedicationStatement active",
            "DocumentReference current",
            "DocumentReference current",
            "FamilyMemberHistory partial",
        ]
    );
    let gout = &bundles[0]["entry"][2]["resource"]["code"]["coding"];
    let own =
        serde_json::json!({"system": "https://ward.example/codes", "version": "2026", "code": "1", "display": "gout"});
    let other = serde_json::json!({"system": "http://hl7.org/fhir/sid/icd-10-cm", "code": "M10.9"});
    assert_eq!(gout, &serde_json::json!([own, other]));
    assert_eq!(written(&place, &link(&["fhir-ndjson"])).lines().count(), 7);
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
    written(&place, &link(&["parquet", "--output", "links.parquet"]));
    let bytes = std::fs::read(place.path("links.parquet")).unwrap();
    assert_eq!((&bytes[..4], &bytes[bytes.len() - 4..]), (&b"PAR1"[..], &b"PAR1"[..]));
    refused(&place, &link(&["parquet", "--output", "links.parquet.gz"]), 2, "has its own compression");
}

#[test]
fn map_gives_codes_of_another_system_and_sssom() {
    let place = place();
    place.write("names.txt", "gout\n");
    let map = ["map", "--kb", "ward.kb", "names.txt", "--top-k", "1"];
    let codes = |others: &[&str]| {
        let line: serde_json::Value = serde_json::from_str(&written(&place, &[&map[..], others].concat())).unwrap();
        line["candidates"][0]["codes"].to_string()
    };
    let exact = r#"[{"id":"SNOMEDCT:90560007","predicate":"skos:exactMatch"}]"#;
    assert_eq!(codes(&["--to-system", "SNOMEDCT"]), exact);
    assert_eq!(codes(&["--to-system", "http://snomed.info/sct"]), exact);
    let mappings =
        "#x\nsubject_id\tpredicate_id\tobject_id\nward:1\tskos:narrowMatch\tLOINC:1-8\nWARD:2\tx:y\tLOINC:2\n";
    place.write("more.sssom.tsv", mappings);
    let narrower = r#"[{"id":"LOINC:1-8","predicate":"skos:narrowMatch"}]"#;
    assert_eq!(codes(&["--to-system", "LOINC", "--mappings", "more.sssom.tsv"]), narrower);
    place.write("ids.txt", "L:1\tgout\nL:2\txyzzy\n");
    let ids = ["map", "--kb", "ward.kb", "ids.txt", "--to", "sssom", "--min-score", "0.3"];
    let table = written(&place, &ids);
    let rows: Vec<&str> = table.lines().filter(|line| !line.starts_with('#')).collect();
    assert!(rows[0].starts_with("subject_id\tsubject_label\t"));
    assert!(
        rows[1].starts_with("L:1\tgout\t\tskos:exactMatch\tWARD:1\tgout\tsemapv:LexicalMatching\trdfs:label\tgout\t"),
        "{}",
        rows[1]
    );
    assert!(rows[2].starts_with("L:2\txyzzy\t\tskos:exactMatch\tsssom:NoTermFound\t"), "{}", rows[2]);
    assert!(
        table.contains("#object_source_version: \"2026\"\n")
            && table.contains("#  WARD: https://ward.example/codes/\n")
    );
    refused(&place, &[&ids[..], &["--explain"]].concat(), 2, "cannot hold `--explain`");
}

#[test]
fn a_knowledge_base_keeps_cross_references_and_code_systems() {
    let place = place();
    let shown = written(&place, &["kb", "show", "ward.kb", "WARD:1"]);
    for line in [
        "cross-references  oboInOwl:hasDbXref  ICD10CM:M10.9\n",
        "                  skos:exactMatch     SNOMEDCT_US_2020_03_01:90560007\n",
        "code system       https://ward.example/codes 2026\n",
    ] {
        assert!(shown.contains(line), "{shown}");
    }
    let mappings =
        "subject_id\tpredicate_id\tobject_id\nward:2\tskos:exactMatch\tICD10CM:R05.8\nX:1\tskos:exactMatch\tX:2\n";
    place.write("more.sssom.tsv", mappings);
    let output = place.run(&["kb", "build", "ward.jsonl", "--xrefs-from", "more.sssom.tsv", "--out", "more.kb"], "");
    assert!(String::from_utf8_lossy(&output.stderr).contains("1  mapping: of no concept"), "{output:?}");
    assert!(written(&place, &["kb", "show", "more.kb", "WARD:2"]).contains("skos:exactMatch     ICD10CM:R05.8\n"));
    refused(&place, &["kb", "build", "ward.jsonl", "--code-system", "WARD", "--out", "more.kb"], 2, "there is no `=`");
    place.write("bad.jsonl", "{\"id\":\"W:1\",\"name\":\"a\",\"xrefs\":[{\"id\":\"X:1\",\"predicate\":\"same\"}]}\n");
    let output = place.run(&["kb", "build", "bad.jsonl", "--out", "more.kb"], "");
    assert!(String::from_utf8_lossy(&output.stderr).contains("bad.jsonl:1: unknown predicate `same`"), "{output:?}");
    let again = written(&place, &["kb", "export", "ward.kb", "--to", "jsonl"]);
    assert_eq!(again.matches("SNOMEDCT_US_2020_03_01:90560007").count(), 1);
}
