//! What importers read and drop, and that no bytes make them panic, on made-up files.

use canonym_core::Result;
use canonym_core::input::Source;
use canonym_core::kb::ConceptRecord;
use canonym_core::kb::import::{ImportConfig, Report, SourceFormat, import_sources};
use expect_test::{Expect, expect};
use proptest::prelude::*;

use crate::import_owl::{SMALL_XML, TURTLE};
use crate::import_rrf::MRCONSO;
use crate::{import_mesh_xml, import_tables};

fn run(format: SourceFormat, sources: &[Source], config: &ImportConfig) -> Result<(Vec<ConceptRecord>, Report)> {
    let mut report = Report::default();
    let mut records = Vec::new();
    import_sources(format, sources, config, &mut report, &mut |record| {
        records.push(record);
        Ok(())
    })?;
    Ok((records, report))
}

/// One line for what each record holds, then one for each kind of drop.
fn show(result: Result<(Vec<ConceptRecord>, Report)>) -> String {
    let (records, report) = match result {
        Ok(result) => result,
        Err(error) => return format!("error: {error}\nhint: {}\n", error.hint().unwrap_or("none")),
    };
    let mut text = String::new();
    for record in records {
        text.push_str(&record.id);
        for name in record.names {
            text.push_str(&format!(" [{:?} {:?}]", name.scope, name.text));
        }
        let mut list = |what: &str, items: &[String]| {
            if !items.is_empty() {
                text.push_str(&format!(" {what}={}", items.join(",")));
            }
        };
        list("types", &record.types);
        list("parents", &record.parents);
        list("alternatives", &record.alternative_ids);
        let xref = |xref: &canonym_core::kb::XrefRecord| match xref.predicate {
            canonym_core::kb::Predicate::Xref => xref.id.clone(),
            predicate => format!("{} {}", predicate.name(), xref.id),
        };
        list("xrefs", &record.xrefs.iter().map(xref).collect::<Vec<_>>());
        list("definition", record.definition.as_slice());
        list("source", &if record.source.is_empty() { Vec::new() } else { vec![record.source] });
        text.push('\n');
    }
    if let Some(release) = &report.release {
        text.push_str(&format!("release {release}\n"));
    }
    text.push_str(&format!("read {}\n", report.n_read));
    for ((kind, reason), n) in report.dropped {
        text.push_str(&format!("dropped {n} {kind}: {reason}\n"));
    }
    text
}

/// Imports files in memory and compares what came out.
pub fn check_with(format: SourceFormat, files: &[(&str, &str)], config: &ImportConfig, expect: Expect) {
    let sources: Vec<Source> =
        files.iter().map(|(name, text)| Source::from_bytes(name, text.as_bytes().to_vec())).collect();
    expect.assert_eq(&show(run(format, &sources, config)));
}

fn check(format: SourceFormat, text: &str, expect: Expect) {
    check_with(format, &[("input", text)], &ImportConfig::default(), expect);
}

/// Owned words.
pub fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|&word| word.to_owned()).collect()
}

const TSV: &str = "S1\tcircle\tround| ring ||O\tShape|Curve\tAll points at one distance.\nS2\tsquare\n\nS3\t \t \n";

#[test]
fn tables_give_names_types_and_definitions() {
    check(
        SourceFormat::Tsv,
        TSV,
        expect![[r#"
        S1 [Preferred "circle"] [Exact "round"] [Exact "ring"] [Exact "O"] types=Shape,Curve definition=All points at one distance.
        S2 [Preferred "square"]
        read 3
        dropped 1 concept: no name
        dropped 2 name: empty
        dropped 1 row: blank
    "#]],
    );
    let config =
        ImportConfig { prefix: Some("X".to_owned()), semantic_types: words(&["Curve"]), ..ImportConfig::default() };
    check_with(
        SourceFormat::Tsv,
        &[("input", TSV)],
        &config,
        expect![[r#"
        X:S1 [Preferred "circle"] [Exact "round"] [Exact "ring"] [Exact "O"] types=Shape,Curve definition=All points at one distance.
        read 3
        dropped 1 concept: no name
        dropped 1 concept: semantic type
        dropped 2 name: empty
        dropped 1 row: blank
    "#]],
    );
}

#[test]
fn broken_tables_are_errors_with_their_line() {
    check(
        SourceFormat::Tsv,
        "S1\tcircle\nS2\n",
        expect![[r#"
        error: input:2: 1 column, expected 2 to 5
        hint: the columns are id, name, synonyms by |, types by |, definition, separated by tabs
    "#]],
    );
    check(
        SourceFormat::Tsv,
        "\tcircle\n",
        expect![[r#"
        error: input:1: the id is empty
        hint: the columns are id, name, synonyms by |, types by |, definition, separated by tabs
    "#]],
    );
    check(
        SourceFormat::Tsv,
        "\n",
        expect![[r#"
        error: input:1: no concepts in tsv format found
        hint: check the file and its format (option `--format`)
    "#]],
    );
}

const JSONL: &str = concat!(
    r#"{"id":"S1","name":"circle","synonyms":["round",{"text":"oval","scope":"broad"}],"types":["Shape"],"#,
    r#""definition":"A curve.","parents":["S0"],"alternative_ids":["OLD:1"],"source":"own"}"#,
    "\n",
    r#"{"id":"S2","name":null,"synonyms":[" "]}"#,
    "\n"
);

#[test]
fn json_lines_give_every_field() {
    let config = ImportConfig { prefix: Some("X".to_owned()), ..ImportConfig::default() };
    check_with(
        SourceFormat::Jsonl,
        &[("input", JSONL)],
        &config,
        expect![[r#"
        X:S1 [Preferred "circle"] [Exact "round"] [Broad "oval"] types=Shape parents=X:S0 alternatives=OLD:1 definition=A curve. source=own
        read 2
        dropped 1 concept: no name
        dropped 1 name: empty
    "#]],
    );
    check(
        SourceFormat::Jsonl,
        "{\"id\":\"S1\",\n",
        expect![[r#"
        error: input:1: invalid JSON at column 11: EOF while parsing a value
        hint: none
    "#]],
    );
    check(
        SourceFormat::Jsonl,
        "{\"id\":\"S1\",\"synonym\":[]}\n",
        expect![[r#"
            error: input:1: invalid JSON at column 20: unknown field `synonym`, expected one of `id`, `name`, `synonyms`, `types`, `definition`, `parents`, `alternative_ids`, `xrefs`, `source`
            hint: none
        "#]],
    );
    check(
        SourceFormat::Jsonl,
        "{\"id\":\"S1\",\"synonyms\":[{\"text\":\"a\",\"scope\":\"odd\"}]}\n",
        expect![[r#"
        error: input:1: invalid JSON at column 50: a synonym must be a string, or an object with text and scope
        hint: none
    "#]],
    );
}

const BIOSYN: &str = "D001|208900 ||first sign|other sign\nD001|208900 ||third sign\nC2+D3||two signs\nD001|208900||late sign\nX:9|| ||\n";

#[test]
fn dictionaries_keep_joined_ids_as_one_concept() {
    check(
        SourceFormat::Biosyn,
        BIOSYN,
        expect![[r#"
        MESH:D001|OMIM:208900 [Preferred "first sign"] [Exact "other sign"] [Exact "third sign"]
        MESH:C2+MESH:D3 [Preferred "two signs"]
        MESH:D001|OMIM:208900 [Exact "late sign"]
        read 5
        dropped 1 concept: no name
        dropped 3 name: empty
    "#]],
    );
    check(
        SourceFormat::Biosyn,
        "D001|first sign\n",
        expect![[r#"
        error: input:1: `||` is missing
        hint: the format is `ids||name`, with ids separated by `|`
    "#]],
    );
}

const OBO: &str = r#"format-version: 1.2
default-namespace: shapes ! the default

[Term]
id: S:1 ! a comment
name: circle\, closed {source="x"} ! comment
alt_id: S:100
def: "A \"round\" curve\nof one \
piece." [url:http\://example.org] {a="b"}
synonym: "ring" EXACT abbreviation [] {a="! ]"}
synonym: "O" RELATED []
synonym: "oval" BROAD [X:1 "a \" b"]
synonym: "unit circle" NARROW []
exact_synonym: "loop" []
xref: Y:1 "circle"
is_a: S:0 {is_inferred="true"} ! shape
relationship: part_of S:9
intersection_of: S:7

[Term]
id: S:2
name: old circle
alt_id: S:200
is_obsolete: true
replaced_by: S:1

[Term]
id: S:3
namespace: other
name: point

[Term]
id: S:4

[Typedef]
id: part_of
name: part of
"#;

#[test]
fn obo_terms_are_read_with_their_scopes() {
    check(
        SourceFormat::Obo,
        OBO,
        expect![[r#"
            S:1 [Preferred "circle, closed"] [Exact "ring"] [Related "O"] [Broad "oval"] [Narrow "unit circle"] [Exact "loop"] parents=S:0 alternatives=S:100 xrefs=Y:1 definition=A "round" curve
            of one piece. source=shapes
            S:1 alternatives=S:2,S:200
            S:3 [Preferred "point"] source=other
            read 4
            dropped 1 concept: no name
            dropped 2 relation: not is_a
            dropped 1 stanza: Typedef
            dropped 1 term: obsolete
        "#]],
    );
    let config =
        ImportConfig { keep_obsolete: true, xrefs: true, sources: words(&["shapes"]), ..ImportConfig::default() };
    check_with(
        SourceFormat::Obo,
        &[("input", OBO)],
        &config,
        expect![[r#"
            S:1 [Preferred "circle, closed"] [Exact "ring"] [Related "O"] [Broad "oval"] [Narrow "unit circle"] [Exact "loop"] parents=S:0 alternatives=S:100,Y:1 xrefs=Y:1 definition=A "round" curve
            of one piece. source=shapes
            S:2 [Preferred "old circle"] alternatives=S:200 source=shapes
            read 4
            dropped 1 concept: no name
            dropped 1 concept: source
            dropped 2 relation: not is_a
            dropped 1 stanza: Typedef
        "#]],
    );
}

#[test]
fn broken_obo_is_an_error_with_its_line() {
    check(
        SourceFormat::Obo,
        "[Term]\nname: x\n",
        expect![[r#"
        error: input:1: the stanza has no id
        hint: none
    "#]],
    );
    check(
        SourceFormat::Obo,
        "[Term]\nid: S:1\nsynonym: ring EXACT []\n",
        expect![[r#"
        error: input:3: missing opening quotation mark in `ring EXACT []`
        hint: none
    "#]],
    );
    check(
        SourceFormat::Obo,
        "[Term]\nid: S:1\nsynonym: \"ring\" CLOSE []\n",
        expect![[r#"
        error: input:3: `CLOSE` is not a synonym scope (EXACT, NARROW, BROAD or RELATED)
        hint: none
    "#]],
    );
    check(
        SourceFormat::Obo,
        "[Term]\nid: S:1\ndef: \"no end\n",
        expect![[r#"
        error: input:3: missing closing quotation mark in `"no end`
        hint: none
    "#]],
    );
    check(
        SourceFormat::Obo,
        "[Term]\nid: S:1\nis_obsolete: maybe\n",
        expect![[r#"
        error: input:3: `maybe` is neither true nor false
        hint: none
    "#]],
    );
    check(
        SourceFormat::Obo,
        "[Term]\nid: S:1\nid: S:2\n",
        expect![[r#"
        error: input:3: a second id in one stanza
        hint: none
    "#]],
    );
    check(
        SourceFormat::Obo,
        "just some prose\n",
        expect![[r#"
        error: input:1: expected `tag: value`, found `just some prose`
        hint: none
    "#]],
    );
    check(
        SourceFormat::Obo,
        "format-version: 1.2\n",
        expect![[r#"
        error: input:1: no concepts in obo format found
        hint: check the file and its format (option `--format`)
    "#]],
    );
}

const GRAPH: &str = r#"{"@context": {"a": [1, {"b": null}]}, "graphs": [{"id": "g", "nodes": [
 {"id": "http://purl.obolibrary.org/obo/S_1", "type": "CLASS", "lbl": "circle", "meta": {
   "definition": {"val": "A curve.", "xrefs": []},
   "synonyms": [{"pred": "hasExactSynonym", "val": "ring"}, {"pred": "hasBroadSynonym", "val": "oval", "xrefs": []}],
   "xrefs": [{"val": "Y:1"}],
   "basicPropertyValues": [
     {"pred": "http://www.geneontology.org/formats/oboInOwl#hasAlternativeId", "val": "S:100"},
     {"pred": "http://www.geneontology.org/formats/oboInOwl#hasOBONamespace", "val": "shapes"}]}},
 {"id": "http://purl.obolibrary.org/obo/S_2", "type": "CLASS", "lbl": "old circle", "meta": {"deprecated": true,
   "basicPropertyValues": [{"pred": "http://purl.obolibrary.org/obo/IAO_0100001", "val": "http://purl.obolibrary.org/obo/S_1"}]}},
 {"id": "http://purl.obolibrary.org/obo/S_3", "type": "PROPERTY", "lbl": "part of"},
 {"id": "http://purl.obolibrary.org/obo/S_4", "type": "CLASS"}],
 "edges": [{"sub": "http://purl.obolibrary.org/obo/S_1", "pred": "is_a", "obj": "http://purl.obolibrary.org/obo/S_0"},
 {"sub": "http://purl.obolibrary.org/obo/S_1", "pred": "is_a", "obj": "http://purl.obolibrary.org/obo/S_9"},
 {"sub": "http://purl.obolibrary.org/obo/S_2", "pred": "is_a", "obj": "http://purl.obolibrary.org/obo/S_0"},
 {"sub": "http://purl.obolibrary.org/obo/S_1", "pred": "part_of", "obj": "http://purl.obolibrary.org/obo/S_0"}],
 "logicalDefinitionAxioms": [{"definedClassId": "x"}]}]}"#;

#[test]
fn graphs_give_nodes_and_parents() {
    check(
        SourceFormat::Obographs,
        GRAPH,
        expect![[r#"
            S:1 [Preferred "circle"] [Exact "ring"] [Broad "oval"] alternatives=S:100 xrefs=Y:1 definition=A curve. source=shapes
            S:1 alternatives=S:2
            S:1 parents=S:0,S:9
            read 4
            dropped 1 concept: no name
            dropped 1 node: property
            dropped 1 parent: of a dropped node
            dropped 1 relation: not is_a
            dropped 1 term: obsolete
        "#]],
    );
    let config = ImportConfig { keep_obsolete: true, xrefs: true, ..ImportConfig::default() };
    check_with(
        SourceFormat::Obographs,
        &[("input", GRAPH)],
        &config,
        expect![[r#"
            S:1 [Preferred "circle"] [Exact "ring"] [Broad "oval"] alternatives=S:100,Y:1 xrefs=Y:1 definition=A curve. source=shapes
            S:2 [Preferred "old circle"]
            S:1 parents=S:0,S:9
            S:2 parents=S:0
            read 4
            dropped 1 concept: no name
            dropped 1 node: property
            dropped 1 relation: not is_a
        "#]],
    );
    check(
        SourceFormat::Obographs,
        "{\"graphs\": [{\"nodes\": [\n{\"lbl\": \"x\"}]}]}",
        expect![[r#"
        error: input:2: invalid JSON at column 12: missing field `id`
        hint: none
    "#]],
    );
    check(
        SourceFormat::Obographs,
        "{\"graphs\": [{\"nodes\": [\n",
        expect![[r#"
        error: input:2: invalid JSON at column 0: EOF while parsing a list
        hint: none
    "#]],
    );
    check(
        SourceFormat::Obographs,
        "[]",
        expect![[r#"
        error: input:1: invalid JSON at column 1: invalid type: sequence, expected an object with graphs, or with nodes and edges
        hint: none
    "#]],
    );
}

#[test]
fn endless_node_is_refused() {
    let text = format!("{{\"graphs\": [{{\"nodes\": [{{\"lbl\": \"{}\"", "a".repeat(65 << 20));
    check(
        SourceFormat::Obographs,
        &text,
        expect![[r#"
            error: input: a node or edge is longer than 67108864 bytes, or another element is longer than 1073741824
            hint: check that this is the right file; if it is, split it into smaller ones
        "#]],
    );
}

#[test]
fn unsupported_filters_are_refused() {
    let config = ImportConfig { languages: words(&["fr"]), ..ImportConfig::default() };
    check_with(
        SourceFormat::Tsv,
        &[("input", TSV)],
        &config,
        expect![[r#"
        error: tsv has no languages to filter by
        hint: omit the filter
    "#]],
    );
}

#[test]
fn formats_are_detected_by_name_and_content() {
    let cases = [
        ("a.txt", TSV, Some(SourceFormat::Tsv)),
        ("a.json", JSONL, Some(SourceFormat::Jsonl)),
        ("a", BIOSYN, Some(SourceFormat::Biosyn)),
        ("a.txt", OBO, Some(SourceFormat::Obo)),
        ("a", GRAPH, Some(SourceFormat::Obographs)),
        ("MRCONSO.RRF", MRCONSO, Some(SourceFormat::Rrf)),
        ("a.txt", "prose", None),
    ];
    for (name, text, format) in cases {
        assert_eq!(SourceFormat::detect_content(name, text.as_bytes()), format, "{name}");
    }
}

#[test]
fn errors_of_the_sink_come_through() {
    for (format, text) in FIXTURES.iter().filter(|(format, _)| *format != SourceFormat::Rrf) {
        let source = Source::from_bytes("input", text.as_bytes().to_vec());
        let result =
            import_sources(*format, &[source], &ImportConfig::default(), &mut Report::default(), &mut |record| {
                Err(canonym_core::Error::invalid(format!("full at {}", record.id)))
            });
        assert!(result.unwrap_err().to_string().starts_with("full at "), "{format:?}");
    }
}

const FIXTURES: [(SourceFormat, &str); 13] = [
    (SourceFormat::Tsv, TSV),
    (SourceFormat::Jsonl, JSONL),
    (SourceFormat::Biosyn, BIOSYN),
    (SourceFormat::Obo, OBO),
    (SourceFormat::Obographs, GRAPH),
    (SourceFormat::Owl, TURTLE),
    (SourceFormat::Owl, SMALL_XML),
    (SourceFormat::Rrf, MRCONSO),
    (SourceFormat::MeshXml, import_mesh_xml::DESCRIPTORS),
    (SourceFormat::MeshAscii, import_tables::DESCRIPTORS),
    (SourceFormat::Ctd, import_tables::CHEMICALS),
    (SourceFormat::GeneInfo, import_tables::GENES),
    (SourceFormat::Taxonomy, import_tables::NAMES),
];

proptest! {
    #[test]
    fn changed_bytes_never_panic(
        which in 0..FIXTURES.len(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0..3_u8), 1..6),
    ) {
        let (format, text) = FIXTURES[which];
        let mut bytes = text.as_bytes().to_vec();
        for (at, byte, how) in changes {
            let at = at.index(bytes.len());
            match how {
                0 => bytes[at] = byte,
                1 => bytes.insert(at, byte),
                _ => bytes.truncate(at.max(1)),
            }
        }
        let config = ImportConfig { xrefs: true, keep_obsolete: true, ..ImportConfig::default() };
        let _ = run(format, &[Source::from_bytes("MRCONSO.RRF", bytes)], &config);
    }

    #[test]
    fn any_bytes_never_panic(which in 0..FIXTURES.len(), bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let _ = run(FIXTURES[which].0, &[Source::from_bytes("MRCONSO.RRF", bytes)], &ImportConfig::default());
    }

    #[test]
    fn table_rows_round_trip(
        cells in prop::collection::vec("[^\\s|+:\u{feff}]([^\\t\\r\\n|]{0,8}[^\\s|+])?", 3..6),
        synonyms in prop::collection::vec("[^\\s|]([^\\t\\r\\n|]{0,8}[^\\s|])?", 0..3),
    ) {
        let id = cells[0].replace('+', "-");
        let text = format!("{id}\t{}\t{}\t{}\t{}\n", cells[1], synonyms.join("|"), cells[2], cells.get(3).map_or("", |cell| cell));
        let (records, _) = run(SourceFormat::Tsv, &[Source::from_bytes("t", text.into_bytes())], &ImportConfig::default()).unwrap();
        prop_assert_eq!(&records[0].id, &id);
        let mut names = vec![cells[1].clone()];
        names.extend(synonyms);
        let read: Vec<String> = records[0].names.iter().map(|name| name.text.clone()).collect();
        prop_assert_eq!(read, names);
        prop_assert_eq!(&records[0].types, &vec![cells[2].clone()]);
        prop_assert_eq!(records[0].definition.as_deref(), cells.get(3).map(String::as_str));
    }
}

#[test]
fn cross_references_and_releases_are_kept() {
    let check = |format: SourceFormat, text: &str, expected: &[&str], release: Option<&str>| {
        let source = Source::from_bytes("input", text.as_bytes().to_vec());
        let (records, report) = run(format, &[source], &ImportConfig::default()).unwrap();
        let xrefs = records.iter().flat_map(|record| &record.xrefs);
        let xrefs: Vec<String> = xrefs.map(|xref| format!("{} {}", xref.predicate.name(), xref.id)).collect();
        assert_eq!(xrefs, expected, "{format:?}");
        assert_eq!(report.release.as_deref(), release, "{format:?}");
        assert!(records.iter().all(|record| record.alternative_ids.is_empty()), "{format:?}");
    };
    check(
        SourceFormat::Obo,
        "format-version: 1.4\ndata-version: x/releases/2026-05-01/x.obo\n\n[Term]\nid: X:1\nname: gout\nxref: ICD10CM:M10 \"Gout\"\n\
         xref: MESH:D006073 {source=\"MONDO:equivalentTo\"}\nproperty_value: skos:broadMatch http://identifiers.org/mesh/D001168\n\
         property_value: dc:title \"x\" xsd:string\n",
        &["oboInOwl:hasDbXref ICD10CM:M10", "skos:exactMatch MESH:D006073", "skos:broadMatch mesh:D001168"],
        Some("2026-05-01"),
    );
    check(
        SourceFormat::Obographs,
        r#"{"graphs":[{"meta":{"version":"http://x.org/releases/2026-05-01/x.owl"},"nodes":[{"id":"http://x.org/X_1","type":"CLASS","lbl":"gout","meta":{"xrefs":[{"val":"ICD10CM:M10"}],"basicPropertyValues":[{"pred":"http://www.w3.org/2004/02/skos/core#exactMatch","val":"http://identifiers.org/mesh/D006073"}]}}]}]}"#,
        &["skos:exactMatch mesh:D006073", "oboInOwl:hasDbXref ICD10CM:M10"],
        Some("2026-05-01"),
    );
    check(
        SourceFormat::Owl,
        "@prefix owl: <http://www.w3.org/2002/07/owl#> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .\n\
         @prefix skos: <http://www.w3.org/2004/02/skos/core#> . @prefix oio: <http://www.geneontology.org/formats/oboInOwl#> .\n\
         <http://x.org/x.owl> a owl:Ontology ; owl:versionInfo \"2026-05-01\" .\n\
         <http://x.org/X_1> a owl:Class ; rdfs:label \"gout\" ; oio:hasDbXref \"ICD10CM:M10\" ; skos:closeMatch <http://identifiers.org/mesh/D006073> .\n",
        &["oboInOwl:hasDbXref ICD10CM:M10", "skos:closeMatch mesh:D006073"],
        Some("2026-05-01"),
    );
    check(
        SourceFormat::Jsonl,
        r#"{"id":"X:1","name":"gout","xrefs":["ICD10CM:M10",{"id":"MESH:D006073","predicate":"exactMatch"},{"id":"Y:1"}," "]}"#,
        &["oboInOwl:hasDbXref ICD10CM:M10", "skos:exactMatch MESH:D006073", "oboInOwl:hasDbXref Y:1"],
        None,
    );
}
