//! What importers read and drop, on made-up files and on real ones where they are there.

use std::io::Write;
use std::path::PathBuf;

use canonym::Result;
use canonym::input::Source;
use canonym::kb::import::{ImportConfig, Report, SourceFormat, import, import_sources};
use canonym::kb::{ConceptRecord, Scope};
use expect_test::{Expect, expect};
use proptest::prelude::*;

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
        list("definition", record.definition.as_slice());
        list("source", &if record.source.is_empty() { Vec::new() } else { vec![record.source] });
        text.push('\n');
    }
    text.push_str(&format!("read {}\n", report.n_read));
    for ((kind, reason), n) in report.dropped {
        text.push_str(&format!("dropped {n} {kind}: {reason}\n"));
    }
    text
}

fn check_with(format: SourceFormat, files: &[(&str, &str)], config: &ImportConfig, expect: Expect) {
    let sources: Vec<Source> =
        files.iter().map(|(name, text)| Source::from_bytes(name, text.as_bytes().to_vec())).collect();
    expect.assert_eq(&show(run(format, &sources, config)));
}

fn check(format: SourceFormat, text: &str, expect: Expect) {
    check_with(format, &[("input", text)], &ImportConfig::default(), expect);
}

fn words(words: &[&str]) -> Vec<String> {
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
        error: input:2: 1 columns, 2 to 5 are expected
        hint: the columns are id, name, synonyms by |, types by |, definition, divided by tabs
    "#]],
    );
    check(
        SourceFormat::Tsv,
        "\tcircle\n",
        expect![[r#"
        error: input:1: the id is empty
        hint: the columns are id, name, synonyms by |, types by |, definition, divided by tabs
    "#]],
    );
    check(
        SourceFormat::Tsv,
        "\n",
        expect![[r#"
        error: input:1: no concept in tsv format was found
        hint: check the file and the format that was asked for
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
        error: input:1: invalid JSON at column 20: unknown field `synonym`, expected one of `id`, `name`, `synonyms`, `types`, `definition`, `parents`, `alternative_ids`, `source`
        hint: none
    "#]],
    );
    check(
        SourceFormat::Jsonl,
        "{\"id\":\"S1\",\"synonyms\":[{\"text\":\"a\",\"scope\":\"odd\"}]}\n",
        expect![[r#"
        error: input:1: invalid JSON at column 50: a synonym is a text, or an object with text and scope
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
        hint: a line is `ids||name`, with `|` between several ids
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
        S:1 [Preferred "circle, closed"] [Exact "ring"] [Related "O"] [Broad "oval"] [Narrow "unit circle"] [Exact "loop"] parents=S:0 alternatives=S:100 definition=A "round" curve
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
        S:1 [Preferred "circle, closed"] [Exact "ring"] [Related "O"] [Broad "oval"] [Narrow "unit circle"] [Exact "loop"] parents=S:0 alternatives=S:100,Y:1 definition=A "round" curve
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
        error: input:3: `ring EXACT []` does not begin with a quotation mark
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
        error: input:3: `"no end` has no closing quotation mark
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
        error: input:1: `just some prose` is not `tag: value`
        hint: none
    "#]],
    );
    check(
        SourceFormat::Obo,
        "format-version: 1.2\n",
        expect![[r#"
        error: input:1: no concept in obo format was found
        hint: check the file and the format that was asked for
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
        S:1 [Preferred "circle"] [Exact "ring"] [Broad "oval"] alternatives=S:100 definition=A curve. source=shapes
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
        S:1 [Preferred "circle"] [Exact "ring"] [Broad "oval"] alternatives=S:100,Y:1 definition=A curve. source=shapes
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
    check(SourceFormat::Obographs, &text, expect![[r#"
        error: input: a node or an edge is longer than 67108864 bytes, or another part than 1073741824
        hint: split the input into smaller files
    "#]]);
}

/// Rows in the layout that the release documentation gives, with made-up content.
const MRCONSO: &str = "\
C0000001|ENG|P|L1|PF|S1|Y|A1||M1|D1|AAA|PT|c1|Circle|0|N|256|
C0000001|ENG|S|L2|PF|S2|Y|A2||M1|D1|BBB|SY|c2|Ring|0|N||
C0000001|FRE|P|L3|PF|S3|Y|A3||M1|D1|CCC|PT|c3|Cercle|0|N||
C0000001|ENG|S|L4|VO|S4|N|A4||M1|D1|AAA|OP|c1|Old ring|0|O||
C0000002|ENG|P|L5|PF|S5|Y|A5||M2|D2|AAA|PT|c5|Square|0|N||
C0000003|SPA|P|L6|PF|S6|Y|A6||M3|D3|DDD|PT|c6|Punto|0|N||
";
const MRSTY: &str = "\
C0000001|T047|B2.2|Round thing|AT1|256|
C0000001|T033|A2.2|Other thing|AT2||
C0000002|T999|B2.3|Cornered thing|AT3||
C0000003|T047|B2.2|Round thing|AT4||
";
const MRDEF: &str = "\
C0000001|A3|AT5||CCC|Une courbe.|N||
C0000001|A1|AT6||AAA|A curve.|N||
C0000001|A2|AT7||BBB|A closed curve.|N||
C0000002|A5|AT8||AAA|Four sides.|O||
";
const MRRANK: &str = "0400|BBB|SY|N|\n0300|AAA|PT|N|\n";
const MRREL: &str = "\
C0000001|A1|AUI|PAR|C0000002|A5|AUI|isa|R1||AAA|AAA|||N||
C0000001|A2|AUI|PAR|C0000002|A5|AUI||R2||BBB|BBB|||N||
C0000001|A1|AUI|PAR|C0000001|A1|AUI||R3||AAA|AAA|||N||
C0000001|A1|AUI|RB|C0000002|A5|AUI||R4||AAA|AAA|||N||
C0000002|A5|AUI|PAR|C0000003|A6|AUI||R5||AAA|AAA|||N||
";

fn rrf(conso: &str) -> Vec<(&str, &str)> {
    vec![("META/MRCONSO.RRF", conso), ("META/MRSTY.RRF", MRSTY), ("META/MRDEF.RRF", MRDEF), ("META/MRREL.RRF", MRREL)]
}

#[test]
fn rrf_gives_names_types_definitions_and_parents() {
    check_with(
        SourceFormat::Rrf,
        &rrf(MRCONSO),
        &ImportConfig::default(),
        expect![[r#"
        UMLS:C0000001 [Preferred "Circle"] [Exact "Ring"] source=AAA
        UMLS:C0000002 [Preferred "Square"] source=AAA
        UMLS:C0000001 types=T047,T033
        UMLS:C0000002 types=T999
        UMLS:C0000001 definition=A curve.
        UMLS:C0000001 parents=UMLS:C0000002
        read 6
        dropped 1 concept: no name
        dropped 1 definition: repeated
        dropped 1 definition: source without a kept name
        dropped 1 definition: suppressible
        dropped 2 name: language
        dropped 1 name: suppressible
        dropped 1 parent: not kept
        dropped 1 parent: of itself
        dropped 1 relation: not a parent
    "#]],
    );
}

#[test]
fn rrf_ranks_choose_the_preferred_name() {
    let files = [("MRRANK.RRF", MRRANK), ("MRCONSO.RRF", MRCONSO)];
    check_with(
        SourceFormat::Rrf,
        &files,
        &ImportConfig::default(),
        expect![[r#"
        UMLS:C0000001 [Preferred "Ring"] [Exact "Circle"] source=BBB
        UMLS:C0000002 [Preferred "Square"] source=AAA
        read 6
        dropped 1 concept: no name
        dropped 2 name: language
        dropped 1 name: suppressible
    "#]],
    );
}

#[test]
fn rrf_filters_leave_out_what_is_not_wanted() {
    let config = ImportConfig {
        semantic_types: words(&["T047"]),
        sources: words(&["AAA"]),
        languages: words(&["fr", "en"]),
        keep_obsolete: true,
        xrefs: true,
        ..ImportConfig::default()
    };
    check_with(
        SourceFormat::Rrf,
        &rrf(MRCONSO),
        &config,
        expect![[r#"
        UMLS:C0000001 [Preferred "Circle"] [Exact "Old ring"] alternatives=AAA:c1 source=AAA
        UMLS:C0000001 types=T047,T033
        UMLS:C0000001 definition=A curve.
        read 6
        dropped 1 concept: no name
        dropped 1 concept: semantic type
        dropped 2 definition: source without a kept name
        dropped 1 name: language
        dropped 1 name: semantic type
        dropped 2 name: source
        dropped 2 parent: not kept
        dropped 1 parent: of itself
        dropped 1 relation: not a parent
    "#]],
    );
    let config =
        ImportConfig { languages: words(&["es", "fra"]), term_types: words(&["PT"]), ..ImportConfig::default() };
    check_with(
        SourceFormat::Rrf,
        &rrf(MRCONSO),
        &config,
        expect![[r#"
        UMLS:C0000001 [Preferred "Cercle"] source=CCC
        UMLS:C0000003 [Preferred "Punto"] source=DDD
        UMLS:C0000001 types=T047,T033
        UMLS:C0000003 types=T047
        UMLS:C0000001 definition=Une courbe.
        read 6
        dropped 1 concept: no name
        dropped 2 definition: source without a kept name
        dropped 4 name: language
        dropped 2 parent: not kept
        dropped 1 parent: of itself
        dropped 1 relation: not a parent
    "#]],
    );
}

#[test]
fn broken_rrf_is_an_error_with_its_line() {
    let config = ImportConfig::default();
    let short = [("MRCONSO.RRF", "C0000001|ENG|P|\n")];
    check_with(
        SourceFormat::Rrf,
        &short,
        &config,
        expect![[r#"
        error: MRCONSO.RRF:1: 3 columns, 18 with a `|` after each are expected
        hint: take the RRF files as MetamorphoSys wrote them, without a header line
    "#]],
    );
    let odd = MRCONSO.replace("C0000002", "X2");
    check_with(
        SourceFormat::Rrf,
        &[("MRCONSO.RRF", &odd)],
        &config,
        expect![[r#"
        error: MRCONSO.RRF:5: `X2` is not a concept id such as C0000039
        hint: none
    "#]],
    );
    check_with(
        SourceFormat::Rrf,
        &[("MRSTY.RRF", MRSTY)],
        &config,
        expect![[r#"
        error: MRCONSO.RRF is not among the files
        hint: give the folder META of a UMLS release, or the files themselves
    "#]],
    );
    let typed = ImportConfig { semantic_types: words(&["T047"]), ..config };
    check_with(
        SourceFormat::Rrf,
        &[("MRCONSO.RRF", MRCONSO)],
        &typed,
        expect![[r#"
        error: a filter on semantic types needs MRSTY.RRF
        hint: add MRSTY.RRF, or leave the filter out
    "#]],
    );
}

#[test]
fn filters_on_what_a_format_has_not_are_refused() {
    let config = ImportConfig { languages: words(&["fr"]), ..ImportConfig::default() };
    check_with(
        SourceFormat::Tsv,
        &[("input", TSV)],
        &config,
        expect![[r#"
        error: a filter on languages was given, but tsv has none
        hint: leave the filter out
    "#]],
    );
}

#[test]
fn rrf_is_read_from_folders_and_archives() {
    let folder = tempfile::tempdir().unwrap();
    let meta = folder.path().join("META");
    std::fs::create_dir(&meta).unwrap();
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(MRCONSO.as_bytes()).unwrap();
    std::fs::write(meta.join("MRCONSO.RRF.gz"), encoder.finish().unwrap()).unwrap();
    std::fs::write(meta.join("MRSTY.RRF"), MRSTY).unwrap();
    std::fs::write(meta.join("MRFILES.RRF"), "not read").unwrap();
    let mut writer = zip::ZipWriter::new(std::fs::File::create(folder.path().join("release.zip")).unwrap());
    for (name, text) in rrf(MRCONSO) {
        writer.start_file(format!("2099AA/{name}"), zip::write::SimpleFileOptions::default()).unwrap();
        writer.write_all(text.as_bytes()).unwrap();
    }
    writer.start_file("2099AA/README.txt", zip::write::SimpleFileOptions::default()).unwrap();
    writer.finish().unwrap();
    for (path, expected) in [(folder.path().to_path_buf(), 4), (folder.path().join("release.zip"), 6)] {
        assert_eq!(SourceFormat::detect(&path).unwrap(), SourceFormat::Rrf);
        let mut report = Report::default();
        let mut n_records = 0;
        import(SourceFormat::Rrf, &[path], &ImportConfig::default(), &mut report, &mut |_| {
            n_records += 1;
            Ok(())
        })
        .unwrap();
        assert_eq!((n_records, report.n_read), (expected, 6));
    }
}

#[test]
fn formats_are_told_by_name_and_content() {
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
                Err(canonym::Error::invalid(format!("full at {}", record.id)))
            });
        assert!(result.unwrap_err().to_string().starts_with("full at "), "{format:?}");
    }
}

const FIXTURES: [(SourceFormat, &str); 6] = [
    (SourceFormat::Tsv, TSV),
    (SourceFormat::Jsonl, JSONL),
    (SourceFormat::Biosyn, BIOSYN),
    (SourceFormat::Obo, OBO),
    (SourceFormat::Obographs, GRAPH),
    (SourceFormat::Rrf, MRCONSO),
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
    fn table_rows_come_back(
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

/// The folder of real terminologies; a message where it is absent.
fn data(path: &str) -> Option<PathBuf> {
    let root = std::env::var_os("CANONYM_DATA").map(PathBuf::from);
    let root = root.unwrap_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data"));
    let path = root.join(path);
    if !path.exists() {
        eprintln!("skipped: {} is not there", path.display());
        return None;
    }
    Some(path)
}

/// Detects the format, imports, and sums up: concepts and names, then what was dropped.
fn summary(path: PathBuf) -> String {
    let format = SourceFormat::detect(&path).unwrap();
    let mut report = Report::default();
    let (mut n_concepts, mut n_parts, mut n_names, mut n_parents, mut n_alternative) = (0, 0, 0, 0, 0);
    import(format, &[path], &ImportConfig::default(), &mut report, &mut |record| {
        if record.names.is_empty() {
            n_parts += 1;
        } else {
            n_concepts += 1;
            assert!(record.names.iter().filter(|name| name.scope == Scope::Preferred).count() <= 1, "{record:?}");
        }
        assert!(record.names.iter().all(|name| name.text.trim() == name.text));
        n_names += record.names.len();
        n_parents += record.parents.len();
        n_alternative += record.alternative_ids.len();
        Ok(())
    })
    .unwrap();
    let mut text = format!(
        "{} read {}: concepts {n_concepts}, parts {n_parts}, names {n_names}, parents {n_parents}, alternatives {n_alternative}\n",
        format.name(),
        report.n_read
    );
    for ((kind, reason), n) in report.dropped {
        text.push_str(&format!("dropped {n} {kind}: {reason}\n"));
    }
    text
}

fn check_real(path: &str, expect: Expect) {
    if let Some(path) = data(path) {
        expect.assert_eq(&summary(path));
    }
}

/// Counts lines with these beginnings, as grep does.
fn grep(text: &str, beginning: &str) -> u64 {
    text.lines().filter(|line| line.starts_with(beginning)).count() as u64
}

#[test]
fn real_obo_files_hold_what_grep_counts() {
    let files = [
        "terminologies/cl-basic-2022-12-15.obo",
        "terminologies/doid-2016-09-01.obo",
        "terminologies/hp-2014-11-26.obo",
        "terminologies/symp.obo",
        "craft/CL.obo.zip",
        "craft/UBERON.obo.zip",
    ];
    for path in files.into_iter().filter_map(data) {
        let mut input = canonym::input::Input::open(&path).unwrap();
        let mut text = String::new();
        std::io::Read::read_to_string(&mut input, &mut text).unwrap();
        let stanzas: Vec<&str> = text.split("\n[").filter(|stanza| stanza.starts_with("Term]")).collect();
        let terms = stanzas.join("\n");
        let config = ImportConfig { keep_obsolete: true, ..ImportConfig::default() };
        let mut report = Report::default();
        let (mut n_synonyms, mut n_preferred, mut n_parents) = (0, 0, 0);
        import(SourceFormat::Obo, &[path.clone()], &config, &mut report, &mut |record| {
            let preferred = record.names.iter().filter(|name| name.scope == Scope::Preferred).count() as u64;
            n_preferred += preferred;
            n_synonyms += record.names.len() as u64 - preferred;
            n_parents += record.parents.len() as u64;
            Ok(())
        })
        .unwrap();
        let shown = path.display();
        assert_eq!(report.n_read, grep(&text, "[Term]"), "{shown}");
        let dropped = report.n_dropped("name", "empty");
        assert_eq!(n_preferred, grep(&terms, "name:"), "{shown}");
        assert_eq!(n_synonyms + dropped, grep(&terms, "synonym:"), "{shown}");
        let nameless: u64 = stanzas
            .iter()
            .filter(|stanza| grep(stanza, "name:") + grep(stanza, "synonym:") == 0)
            .map(|stanza| grep(stanza, "is_a:"))
            .sum();
        assert_eq!(n_parents + nameless, grep(&terms, "is_a:"), "{shown}");
        let mut report = Report::default();
        import(SourceFormat::Obo, &[path.clone()], &ImportConfig::default(), &mut report, &mut |_| Ok(())).unwrap();
        assert_eq!(report.n_dropped("term", "obsolete"), grep(&terms, "is_obsolete: true"), "{shown}");
    }
}

#[test]
fn real_terminologies_are_imported() {
    check_real(
        "terminologies/cl-basic-2022-12-15.obo",
        expect![[r#"
        obo read 2804: concepts 2644, parts 101, names 5317, parents 3705, alternatives 178
        dropped 1896 relation: not is_a
        dropped 13 stanza: Typedef
        dropped 160 term: obsolete
    "#]],
    );
    check_real(
        "terminologies/doid-2016-09-01.obo",
        expect![[r#"
        obo read 9344: concepts 6971, parts 0, names 18991, parents 8155, alternatives 1335
        dropped 15 stanza: Typedef
        dropped 2373 term: obsolete
    "#]],
    );
    check_real(
        "terminologies/hp-2014-11-26.obo",
        expect![[r#"
        obo read 10838: concepts 10783, parts 24, names 17749, parents 14398, alternatives 3463
        dropped 55 term: obsolete
    "#]],
    );
    check_real(
        "terminologies/symp.obo",
        expect![[r#"
        obo read 1020: concepts 895, parts 19, names 1142, parents 898, alternatives 30
        dropped 1 stanza: Typedef
        dropped 125 term: obsolete
    "#]],
    );
    check_real(
        "craft/CL.obo.zip",
        expect![[r#"
        obo read 2164: concepts 2068, parts 7, names 4142, parents 2869, alternatives 79
        dropped 412 relation: not is_a
        dropped 29 stanza: Typedef
        dropped 96 term: obsolete
    "#]],
    );
    check_real(
        "craft/UBERON.obo.zip",
        expect![[r#"
        obo read 14074: concepts 13080, parts 201, names 50454, parents 20370, alternatives 535
        dropped 18927 relation: not is_a
        dropped 62 stanza: Typedef
        dropped 994 term: obsolete
    "#]],
    );
    check_real(
        "terminologies/doid-2018.obographs.json.gz",
        expect![[r#"
        obographs read 17453: concepts 14943, parts 17105, names 29339, parents 17112, alternatives 1361
        dropped 109 node: property
        dropped 2 node: without a type
        dropped 2 parent: of a dropped node
        dropped 1935 relation: not is_a
        dropped 2399 term: obsolete
    "#]],
    );
    check_real(
        "terminologies/ncit-disease-2018.obographs.json.gz",
        expect![[r#"
        obographs read 20385: concepts 20324, parts 29057, names 82065, parents 29060, alternatives 0
        dropped 61 node: property
        dropped 21144 relation: not is_a
    "#]],
    );
    check_real(
        "terminologies/ordo-2018.obographs.json.gz",
        expect![[r#"
        obographs read 13894: concepts 13871, parts 30516, names 35992, parents 30526, alternatives 0
        dropped 23 node: property
        dropped 33559 relation: not is_a
    "#]],
    );
    check_real(
        "terminologies/mesh-descriptors-2019.tsv",
        expect![[r#"
        tsv read 29351: concepts 29351, parts 0, names 153253, parents 0, alternatives 0
    "#]],
    );
    check_real(
        "bc5cdr/mesh-names.tsv",
        expect![[r#"
        tsv read 29054: concepts 29054, parts 0, names 29054, parents 0, alternatives 0
    "#]],
    );
    check_real(
        "terminologies/medic-2012-07-06.txt",
        expect![[r#"
        biosyn read 11915: concepts 11915, parts 0, names 76237, parents 0, alternatives 0
    "#]],
    );
    check_real(
        "biosyn-ncbi-disease/dev_dictionary.txt",
        expect![[r#"
        biosyn read 72887: concepts 13782, parts 0, names 72887, parents 0, alternatives 0
    "#]],
    );
    check_real(
        "biosyn-bc5cdr-disease/train_dictionary.txt",
        expect![[r#"
        biosyn read 71924: concepts 12883, parts 0, names 71924, parents 0, alternatives 0
    "#]],
    );
}
