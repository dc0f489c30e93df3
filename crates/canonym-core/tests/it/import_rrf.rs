//! What the RRF importer reads and drops.

use std::io::Write;

use canonym_core::kb::import::{ImportConfig, Report, SourceFormat, import};
use expect_test::expect;

use crate::import::{check_with, words};

/// Rows in the layout that the release documentation gives, with made-up content.
pub const MRCONSO: &str = "\
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
            UMLS:C0000001 [Preferred "Circle"] [Exact "Ring"] xrefs=skos:exactMatch AAA:c1,skos:exactMatch BBB:c2 source=AAA
            UMLS:C0000002 [Preferred "Square"] xrefs=skos:exactMatch AAA:c5 source=AAA
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
            dropped 1 parent: self-reference
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
            UMLS:C0000001 [Preferred "Ring"] [Exact "Circle"] xrefs=skos:exactMatch AAA:c1,skos:exactMatch BBB:c2 source=BBB
            UMLS:C0000002 [Preferred "Square"] xrefs=skos:exactMatch AAA:c5 source=AAA
            read 6
            dropped 1 concept: no name
            dropped 2 name: language
            dropped 1 name: suppressible
        "#]],
    );
}

#[test]
fn rrf_filters_exclude_other_entries() {
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
            UMLS:C0000001 [Preferred "Circle"] [Exact "Old ring"] alternatives=AAA:c1 xrefs=skos:exactMatch AAA:c1,skos:exactMatch BBB:c2,skos:exactMatch CCC:c3 source=AAA
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
            dropped 1 parent: self-reference
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
            UMLS:C0000001 [Preferred "Cercle"] xrefs=skos:exactMatch CCC:c3 source=CCC
            UMLS:C0000003 [Preferred "Punto"] xrefs=skos:exactMatch DDD:c6 source=DDD
            UMLS:C0000001 types=T047,T033
            UMLS:C0000003 types=T047
            UMLS:C0000001 definition=Une courbe.
            read 6
            dropped 1 concept: no name
            dropped 2 definition: source without a kept name
            dropped 4 name: language
            dropped 2 parent: not kept
            dropped 1 parent: self-reference
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
            error: MRCONSO.RRF:1: 3 columns; expected 18, each followed by `|`
            hint: use unmodified RRF files from MetamorphoSys, without a header line
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
        error: MRCONSO.RRF is missing
        hint: use the META folder of a UMLS release, or its files
    "#]],
    );
    let twice = [("MRCONSO.RRF", MRCONSO), ("META/MRCONSO.RRF.gz", MRCONSO)];
    check_with(
        SourceFormat::Rrf,
        &twice,
        &config,
        expect![[r#"
        error: MRCONSO.RRF and META/MRCONSO.RRF.gz are the same table
        hint: specify each table once, compressed or not
    "#]],
    );
    let typed = ImportConfig { semantic_types: words(&["T047"]), ..config };
    check_with(
        SourceFormat::Rrf,
        &[("MRCONSO.RRF", MRCONSO)],
        &typed,
        expect![[r#"
        error: a filter on semantic types needs MRSTY.RRF
        hint: add MRSTY.RRF, or omit the filter
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
