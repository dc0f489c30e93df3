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
    place.check(&link(&["csv"]), expect![[r#"
        status 0
        --- stdout
        row,document,start,end,spans,text,type,id,name,score,p_mention,p_link,nil,negated,possible,historical,hypothetical,family,candidates,codes
        0,11,0,9,"[[0,9]]",Dry cough,Symptom,WARD:2,dry cough,0.9317,0.9317,1,false,false,false,false,false,false,"[{""id"":""WARD:2"",""name"":""dry cough"",""score"":0.9317}]",[]
        0,11,14,18,"[[14,18]]",gout,Disease,WARD:1,gout,0.8011,0.8011,1,false,true,false,false,false,false,"[{""id"":""WARD:1"",""name"":""gout"",""score"":0.8011}]",[]
        0,11,20,30,"[[20,30]]",Colchicine,Drug,WARD:3,colchicine,0.8686,0.8686,1,false,true,false,false,false,false,"[{""id"":""WARD:3"",""name"":""colchicine"",""score"":0.8686}]",[]
        2,13,16,20,"[[16,20]]",gout,Disease,WARD:1,gout,0.8011,0.8011,1,false,false,false,false,false,true,"[{""id"":""WARD:1"",""name"":""gout"",""score"":0.8011}]",[]
    "#]]);
    place.check(&link(&["csv", "--context", "--drop-context", "negated,family", "--to-system", "ICD10CM"]), expect![[r#"
        status 0
        --- stdout
        row,document,start,end,spans,text,type,id,name,score,p_mention,p_link,nil,negated,possible,historical,hypothetical,family,candidates,codes
        0,11,0,9,"[[0,9]]",Dry cough,Symptom,WARD:2,dry cough,0.9317,0.9317,1,false,false,false,false,false,false,"[{""id"":""WARD:2"",""name"":""dry cough"",""score"":0.9317}]",[]
        --- stderr
        dropped 3 mentions by `--drop-context`
    "#]]);
}

#[test]
fn rows_of_note_nlp_have_concept_ids_and_modifiers() {
    let place = place();
    place.check(&link(&["omop-note-nlp", "--nlp-date", "2026-11-25"]), expect![[r#"
        status 0
        --- stdout
        note_nlp_id,note_id,section_concept_id,snippet,offset,lexical_variant,note_nlp_concept_id,note_nlp_source_concept_id,nlp_system,nlp_date,nlp_datetime,term_exists,term_temporal,term_modifiers
        1,11,0,"Dry cough, no gout. Colchicine was stopped.",0,Dry cough,0,0,"canonym 0.1.0, model lexical, ward",2026-11-25,,Y,present,Unmapped=no vocabulary table
        2,11,0,"Dry cough, no gout. Colchicine was stopped.",14,gout,0,0,"canonym 0.1.0, model lexical, ward",2026-11-25,,N,present,"Negation=true,Unmapped=no vocabulary table"
        3,11,0,"Dry cough, no gout. Colchicine was stopped.",20,Colchicine,0,0,"canonym 0.1.0, model lexical, ward",2026-11-25,,N,present,"Negation=true,Unmapped=no vocabulary table"
        4,13,0,Family history: gout.,16,gout,0,0,"canonym 0.1.0, model lexical, ward",2026-11-25,,N,present,"Subject=family,Unmapped=no vocabulary table"
        --- stderr
        4 mentions were written with the concept id 0 (first in document `11`)
    "#]]);
    let concepts = ["omop-note-nlp", "--nlp-date", "2026-11-25T08:00:00", "--omop-concepts", "CONCEPT.csv"];
    place.check(&link(&concepts), expect![[r#"
        status 0
        --- stdout
        note_nlp_id,note_id,section_concept_id,snippet,offset,lexical_variant,note_nlp_concept_id,note_nlp_source_concept_id,nlp_system,nlp_date,nlp_datetime,term_exists,term_temporal,term_modifiers
        1,11,0,"Dry cough, no gout. Colchicine was stopped.",0,Dry cough,0,0,"canonym 0.1.0, model lexical, ward",2026-11-25,2026-11-25 08:00:00,Y,present,Unmapped=not in the vocabulary table
        2,11,0,"Dry cough, no gout. Colchicine was stopped.",14,gout,440674,440674,"canonym 0.1.0, model lexical, ward",2026-11-25,2026-11-25 08:00:00,N,present,Negation=true
        3,11,0,"Dry cough, no gout. Colchicine was stopped.",20,Colchicine,0,1101554,"canonym 0.1.0, model lexical, ward",2026-11-25,2026-11-25 08:00:00,N,present,"Negation=true,Unmapped=no standard concept without CONCEPT_RELATIONSHIP"
        4,13,0,Family history: gout.,16,gout,440674,440674,"canonym 0.1.0, model lexical, ward",2026-11-25,2026-11-25 08:00:00,N,present,Subject=family
        --- stderr
        the vocabulary has 3 codes of ward
        2 mentions were written with the concept id 0 (first in document `11`)
    "#]]);
    let both = [&concepts[..], &["--omop-relationships", "CONCEPT_RELATIONSHIP.csv"]].concat();
    place.check(&link(&both), expect![[r#"
        status 0
        --- stdout
        note_nlp_id,note_id,section_concept_id,snippet,offset,lexical_variant,note_nlp_concept_id,note_nlp_source_concept_id,nlp_system,nlp_date,nlp_datetime,term_exists,term_temporal,term_modifiers
        1,11,0,"Dry cough, no gout. Colchicine was stopped.",0,Dry cough,0,0,"canonym 0.1.0, model lexical, ward",2026-11-25,2026-11-25 08:00:00,Y,present,Unmapped=not in the vocabulary table
        2,11,0,"Dry cough, no gout. Colchicine was stopped.",14,gout,440674,440674,"canonym 0.1.0, model lexical, ward",2026-11-25,2026-11-25 08:00:00,N,present,Negation=true
        3,11,0,"Dry cough, no gout. Colchicine was stopped.",20,Colchicine,1101555,1101554,"canonym 0.1.0, model lexical, ward",2026-11-25,2026-11-25 08:00:00,N,present,Negation=true
        4,13,0,Family history: gout.,16,gout,440674,440674,"canonym 0.1.0, model lexical, ward",2026-11-25,2026-11-25 08:00:00,N,present,Subject=family
        --- stderr
        the vocabulary has 3 codes of ward
        1 mention was written with the concept id 0 (first in document `11`)
    "#]]);
}

#[test]
fn damaged_vocabulary_tables_are_errors_with_their_line() {
    let place = place();
    let check = |concepts: &[u8], expected: expect_test::Expect| {
        place.write("bad.csv", concepts);
        place.check(&link(&["omop-note-nlp", "--nlp-date", "2026-11-25", "--omop-concepts", "bad.csv"]), expected);
    };
    check(
        b"",
        expect![[r#"
        status 1
        --- stderr
        error: bad.csv:1: the file is empty
        hint: use CONCEPT.csv of a download from Athena: tab-separated, with its header line
    "#]],
    );
    check(
        b"concept_id,concept_name\n1,x\n",
        expect![[r#"
        status 1
        --- stderr
        error: bad.csv:1: the header line has no column concept_id
        hint: use CONCEPT.csv of a download from Athena: tab-separated, with its header line
    "#]],
    );
    check(
        CONCEPTS.replace("35208800", "three").as_bytes(),
        expect![[r#"
        status 1
        --- stderr
        error: bad.csv:3: `three` is not a concept id
        hint: use CONCEPT.csv of a download from Athena: tab-separated, with its header line
    "#]],
    );
    check(
        CONCEPTS.replace("\t20991231\t\n35208800", "\n35208800").as_bytes(),
        expect![[r#"
        status 1
        --- stderr
        error: bad.csv:2: 8 columns, expected 10
        hint: use CONCEPT.csv of a download from Athena: tab-separated, with its header line
    "#]],
    );
    check(
        &[CONCEPTS.as_bytes(), b"1\t\xff\n"].concat(),
        expect![[r#"
        status 1
        --- stderr
        error: bad.csv:6: invalid UTF-8: byte 3 of the line (0xff)
        hint: convert the file to UTF-8, for example with `iconv -f ISO-8859-1 -t UTF-8`
    "#]],
    );
    place.write("bad.tsv", "subject_id\tobject_id\nWARD:1\tICD10CM:M10\n");
    place.check(
        &link(&["jsonl", "--to-system", "ICD10CM", "--mappings", "bad.tsv"]),
        expect![[r#"
        status 1
        --- stderr
        error: bad.tsv:1: the header line lacks the columns subject_id, predicate_id and object_id
        hint: use SSSOM mappings in TSV format
    "#]],
    );
}

#[test]
fn wrong_options_of_records_say_what_to_do() {
    let place = place();
    place.check(
        &link(&["omop-note-nlp"]),
        expect![[r#"
        status 2
        --- stderr
        error: `--to omop-note-nlp` needs the date of the processing
        hint: add `--nlp-date`, such as `--nlp-date 2026-11-25`
    "#]],
    );
    place.check(
        &link(&["omop-note-nlp", "--nlp-date", "yesterday"]),
        expect![[r#"
        status 2
        --- stderr
        error: `yesterday` is not a date
        hint: write it as 2026-11-25, or 2026-11-25T14:30:00
    "#]],
    );
    place.check(
        &link(&["jsonl", "--nlp-date", "2026-11-25"]),
        expect![[r#"
        status 2
        --- stderr
        error: `--nlp-date` is for `--to omop-note-nlp`
        hint: omit it, or change `--to`
    "#]],
    );
    place.check(
        &link(&["fhir", "--fhir-types", "Drug=pill"]),
        expect![[r#"
        status 2
        --- stderr
        error: invalid setting `Drug=pill`
        hint: write TYPE=condition, TYPE=observation, TYPE=medication or TYPE=none; `*` is every other type
    "#]],
    );
    place.check(
        &link(&["parquet"]),
        expect![[r#"
        status 2
        --- stderr
        error: Parquet is written to a file and has its own compression
        hint: name a file with `--output`, such as links.parquet
    "#]],
    );
    place.check(
        &link(&["jsonl", "--to-system", "LOINC"]),
        expect![[r#"
        status 2
        --- stderr
        error: ward has no codes of `LOINC`
        hint: it has ICD10CM, RXNORM, SNOMEDCT, UMLS, WARD; name an SSSOM file with `--mappings` for others
    "#]],
    );
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
    place.check(&named, expect![[r#"
        status 1
        --- stdout
        note_nlp_id,note_id,section_concept_id,snippet,offset,lexical_variant,note_nlp_concept_id,note_nlp_source_concept_id,nlp_system,nlp_date,nlp_datetime,term_exists,term_temporal,term_modifiers
        --- stderr
        error: the id of document `text` is not an integer, as `note_id` has to be
        hint: name the column with the ids of notes by `--id-column`, or give documents their `note_id`
    "#]]);
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
    expect![[r#"
        "DocumentReference" None null null
        "Observation" Some(String("Dry cough")) null true
        "Condition" Some(String("gout")) "refuted" null
        "MedicationStatement" Some(String("Colchicine")) null null
        "DocumentReference" None null null
        "DocumentReference" None null null
        "FamilyMemberHistory" None null null
    "#]]
    .assert_eq(&shown);
    let gout = &lines[0]["entry"][2]["resource"]["code"]["coding"];
    expect![[r#"[{"code":"1","display":"gout","system":"https://ward.example/codes","version":"2026"},{"code":"M10.9","system":"http://hl7.org/fhir/sid/icd-10-cm"}]"#]].assert_eq(&gout.to_string());
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
    place.check(
        &link(&["parquet", "--output", "links.parquet"]),
        expect![[r#"
        status 0
    "#]],
    );
    let bytes = std::fs::read(place.path("links.parquet")).unwrap();
    assert_eq!((&bytes[..4], &bytes[bytes.len() - 4..]), (&b"PAR1"[..], &b"PAR1"[..]));
    place.check(
        &link(&["parquet", "--output", "links.parquet.gz"]),
        expect![[r#"
        status 2
        --- stderr
        error: Parquet is written to a file and has its own compression
        hint: name a file with `--output`, such as links.parquet
    "#]],
    );
}

#[test]
fn map_gives_codes_of_another_system_and_sssom() {
    let place = place();
    place.write("names.txt", "gout\ncough, dry\nnothing of the kind\n");
    let map = ["map", "--kb", "ward.kb", "names.txt", "--top-k", "1", "--min-score", "0.3"];
    place.check(&[&map[..], &["--to-system", "SNOMEDCT"]].concat(), expect![[r#"
        status 0
        --- stdout
        {"query":"gout","nil":false,"candidates":[{"id":"WARD:1","name":"gout","score":0.9951,"p_link":0.9951,"codes":[{"id":"SNOMEDCT:90560007","predicate":"skos:exactMatch"}]}]}
        {"query":"cough, dry","nil":false,"candidates":[{"id":"WARD:2","name":"dry cough","score":0.9923,"p_link":0.9923,"codes":[]}]}
        {"query":"nothing of the kind","nil":true,"candidates":[{"id":"WARD:3","name":"colchicine","score":0.013,"p_link":0.013,"codes":[]}]}
    "#]]);
    place.write("more.sssom.tsv", "#curie_map: {}\nsubject_id\tpredicate_id\tobject_id\nward:1\tskos:narrowMatch\tLOINC:1-8\nWARD:2\tx:y\tLOINC:2\n");
    place.check(&[&map[..], &["--to-system", "LOINC", "--mappings", "more.sssom.tsv"]].concat(), expect![[r#"
        status 0
        --- stdout
        {"query":"gout","nil":false,"candidates":[{"id":"WARD:1","name":"gout","score":0.9951,"p_link":0.9951,"codes":[{"id":"LOINC:1-8","predicate":"skos:narrowMatch"}]}]}
        {"query":"cough, dry","nil":false,"candidates":[{"id":"WARD:2","name":"dry cough","score":0.9923,"p_link":0.9923,"codes":[]}]}
        {"query":"nothing of the kind","nil":true,"candidates":[{"id":"WARD:3","name":"colchicine","score":0.013,"p_link":0.013,"codes":[]}]}
        --- stderr
        skipped 1 mapping: another predicate
    "#]]);
    place.write("ids.txt", "L:1\tgout\nL:2\trash\n");
    let ids = ["map", "--kb", "ward.kb", "ids.txt", "--to", "sssom", "--min-score", "0.3"];
    let output = place.describe(&place.run(&ids, ""));
    let (_, rows) = output.split_once("#object_source_version").unwrap();
    expect![[r#"
        : "2026"
        subject_id	subject_label	subject_type	predicate_id	object_id	object_label	mapping_justification	object_match_field	match_string	confidence
        L:1	gout		skos:exactMatch	WARD:1	gout	semapv:LexicalMatching	rdfs:label	gout	0.9951
        L:2	rash		skos:exactMatch	sssom:NoTermFound		semapv:LexicalMatching			
    "#]].assert_eq(rows);
    place.check(
        &[&ids[..], &["--explain"]].concat(),
        expect![[r#"
        status 2
        --- stderr
        error: `--to sssom` cannot hold `--explain`, `--raw-ids` and `--to-system`
        hint: omit the option, or use jsonl
    "#]],
    );
}

#[test]
fn a_knowledge_base_keeps_cross_references_and_code_systems() {
    let place = place();
    place.check(
        &["kb", "show", "ward.kb", "WARD:1"],
        expect![[r#"
        status 0
        --- stdout
        id                WARD:1
        name              gout
        types             Disease
        cross-references  oboInOwl:hasDbXref  ICD10CM:M10.9
                          skos:exactMatch     SNOMEDCT_US_2020_03_01:90560007
        code system       https://ward.example/codes 2026
    "#]],
    );
    place.write(
        "more.sssom.tsv",
        "subject_id\tpredicate_id\tobject_id\nward:2\tskos:exactMatch\tICD10CM:R05.8\nX:1\tskos:exactMatch\tX:2\n",
    );
    let build = ["kb", "build", "ward.jsonl", "--xrefs-from", "more.sssom.tsv", "--out", "more.kb"];
    place.check(
        &build,
        expect![[r#"
        status 0
        --- stderr
        built    more.kb ([SIZE] KiB) in [TIME] s
        format   jsonl
        read     3 records
        kept     3  concepts
                 3  names
                 3  distinct names, ignoring case and punctuation
                 3  semantic types
        dropped  1  mapping: of no concept
    "#]],
    );
    place.check(
        &["kb", "show", "more.kb", "WARD:2"],
        expect![[r#"
        status 0
        --- stdout
        id                WARD:2
        name              dry cough
        types             Symptom
        cross-references  skos:exactMatch     ICD10CM:R05.8
                          oboInOwl:hasDbXref  UMLS_CUI:C0850149
    "#]],
    );
    place.check(
        &["kb", "build", "ward.jsonl", "--code-system", "WARD", "--out", "more.kb"],
        expect![[r#"
        status 2
        --- stderr
        error: `WARD`: there is no `=`
        hint: write it as CLINIC=https://clinic.example/codes|2026
    "#]],
    );
    place.write("bad.jsonl", "{\"id\":\"W:1\",\"name\":\"a\",\"xrefs\":[{\"id\":\"X:1\",\"predicate\":\"same\"}]}\n");
    place.check(
        &["kb", "build", "bad.jsonl", "--out", "more.kb"],
        expect![[r#"
        status 1
        --- stderr
        error: bad.jsonl:1: unknown predicate `same`
        hint: fix this line, or get a complete copy; see `canonym help formats` and `canonym help sources`
    "#]],
    );
    let again = place.run(&["kb", "export", "ward.kb", "--to", "jsonl"], "");
    assert_eq!(String::from_utf8(again.stdout).unwrap().matches("SNOMEDCT_US_2020_03_01:90560007").count(), 1);
}
