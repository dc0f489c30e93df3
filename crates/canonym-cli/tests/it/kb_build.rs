//! `canonym kb build`.

use expect_test::expect;

use crate::support::{SHAPES, Workplace};

#[test]
fn a_build_ends_with_a_report() {
    let place = Workplace::new();
    place.write("shapes.tsv", format!("{SHAPES}\nS5\t \n"));
    let arguments = ["kb", "build", "shapes.tsv", "--prefix", "X", "--out", "shapes.kb"];
    place.check(
        &arguments,
        expect![[r#"
            status 0
            --- stderr
            built    shapes.kb ([SIZE] KiB) in [TIME] s
            format   tsv
            read     5 records
            kept      4  concepts
                     11  names
                     10  distinct names, ignoring case and punctuation
                      2  semantic types
            dropped  1  concept: no name (first: shapes.tsv:6)
                     1  name: empty (first: shapes.tsv:6)
                     1  row: blank (first: shapes.tsv:5)
        "#]],
    );
    assert_eq!(place.names(), ["shapes.kb", "shapes.tsv"]);
    let quiet = [&arguments[..], &["--quiet"]].concat();
    place.check(
        &quiet,
        expect![[r#"
        status 0
    "#]],
    );
}

#[test]
fn standard_input_needs_a_format() {
    let place = Workplace::new();
    place.check_input(
        &["kb", "build", "-", "--out", "a.kb"],
        SHAPES,
        expect![[r#"
            status 1
            --- stderr
            error: cannot tell the format of -
            hint: specify the format (option `--format`): rrf, rf2, mesh-xml, mesh-ascii, obo, obographs, owl, ctd, gene-info, taxonomy, biosyn, tsv or jsonl
        "#]],
    );
    place.check_input(
        &["kb", "build", "-", "--out", "a.kb", "--format", "tsv"],
        SHAPES,
        expect![[r#"
            status 0
            --- stderr
            built    a.kb ([SIZE] KiB) in [TIME] s
            format   tsv
            read     4 records
            kept      4  concepts
                     11  names
                     10  distinct names, ignoring case and punctuation
                      2  semantic types
            dropped  nothing
        "#]],
    );
}

#[test]
fn formats_that_are_not_there_are_named() {
    let place = Workplace::new();
    place.write("a.dat", "nothing\n");
    place.check(
        &["kb", "build", "a.dat", "--out", "a.kb", "--format", "xls"],
        expect![[r#"
            status 2
            --- stderr
            error: unknown source format `xls`
            hint: use one of rrf, rf2, mesh-xml, mesh-ascii, obo, obographs, owl, ctd, gene-info, taxonomy, biosyn, tsv or jsonl
        "#]],
    );
    place.check(
        &["kb", "build", "a.dat", "--out", "a.kb"],
        expect![[r#"
            status 1
            --- stderr
            error: cannot tell the format of a.dat
            hint: specify the format (option `--format`): rrf, rf2, mesh-xml, mesh-ascii, obo, obographs, owl, ctd, gene-info, taxonomy, biosyn, tsv or jsonl
        "#]],
    );
}

#[test]
fn sources_that_cannot_be_read_are_named() {
    let place = Workplace::new();
    place.write("empty.tsv", "");
    place.write("latin.tsv", b"S1\tcaf\xe9\n");
    place.write("columns.tsv", "S1\tcircle\nS2\n");
    place.write("cut.tsv.gz", [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 0x4b, 0x36]);
    place.write("data.bin", [0; 64]);
    for (source, expected) in [
        (
            "missing.tsv",
            expect![[r#"
            status 1
            --- stderr
            error: cannot open missing.tsv
              caused by: No such file or directory (os error 2)
            hint: check the path; relative paths are resolved from the current folder
        "#]],
        ),
        (
            "empty.tsv",
            expect![[r#"
                status 1
                --- stderr
                error: empty.tsv:1: the file is empty
                hint: fix this line, or get a complete copy; see `canonym help formats` and `canonym help sources`
            "#]],
        ),
        (
            "latin.tsv",
            expect![[r#"
                status 1
                --- stderr
                error: latin.tsv:1: invalid UTF-8: byte 7 of the line (0xe9)
                hint: convert the file to UTF-8, for example with `iconv -f ISO-8859-1 -t UTF-8`
            "#]],
        ),
        (
            "columns.tsv",
            expect![[r#"
                status 1
                --- stderr
                error: columns.tsv:2: 1 column, expected 2 to 5
                hint: the columns are id, name, synonyms by |, types by |, definition, separated by tabs
            "#]],
        ),
        (
            "cut.tsv.gz",
            expect![[r#"
                status 1
                --- stderr
                error: cut.tsv.gz:1: the compressed data is damaged or truncated (incomplete deflate stream)
                hint: download or compress the file again
            "#]],
        ),
        (
            "data.bin",
            expect![[r#"
                status 1
                --- stderr
                error: cannot tell the format of data.bin
                hint: specify the format (option `--format`): rrf, rf2, mesh-xml, mesh-ascii, obo, obographs, owl, ctd, gene-info, taxonomy, biosyn, tsv or jsonl
            "#]],
        ),
        (
            ".",
            expect![[r#"
                status 1
                --- stderr
                error: . contains no MRCONSO.RRF, sct2_Concept file or names.dmp
                hint: give the folder of a UMLS, SNOMED CT or taxonomy release, or the files themselves
            "#]],
        ),
    ] {
        place.check(&["kb", "build", source, "--out", "a.kb"], expected);
    }
    place.check(
        &["kb", "build", "empty.tsv", "--format", "tsv", "--out", "a.kb"],
        expect![[r#"
            status 1
            --- stderr
            error: empty.tsv:1: no concepts in tsv format found
            hint: check the file and its format (option `--format`)
        "#]],
    );
    place.check(
        &["kb", "build", "cut.tsv.gz", "--format", "tsv", "--out", "a.kb"],
        expect![[r#"
            status 1
            --- stderr
            error: cut.tsv.gz:1: the compressed data is damaged or truncated (incomplete deflate stream)
            hint: download or compress the file again
        "#]],
    );
    assert!(!place.path("a.kb").exists());
}

#[test]
fn filters_that_leave_nothing_tell_what_was_dropped() {
    let place = Workplace::new();
    place.write("shapes.tsv", SHAPES);
    let filtered = ["kb", "build", "shapes.tsv", "--out", "a.kb", "--semantic-types", "Solid"];
    place.check(
        &filtered,
        expect![[r#"
            status 1
            --- stderr
            error: no concepts to compile: none has a name
            hint: check the source format and the filters; dropped: 4 × concept: semantic type (first: shapes.tsv:1)
        "#]],
    );
    let without_meaning = ["kb", "build", "shapes.tsv", "--out", "a.kb", "--languages", "de"];
    place.check(
        &without_meaning,
        expect![[r#"
        status 2
        --- stderr
        error: tsv has no languages to filter by
        hint: omit the filter
    "#]],
    );
}

#[test]
fn sources_of_several_formats_are_merged() {
    let place = Workplace::new();
    place.write("shapes.tsv", SHAPES);
    place.write("names.txt", "X:S1||disc|circle\nX:S9||cube\n");
    let arguments = ["kb", "build", "prefix=X,name=plane@shapes.tsv", "names.txt", "--out", "a.kb"];
    place.check(
        &arguments,
        expect![[r#"
            status 0
            --- stderr
            built    a.kb ([SIZE] KiB) in [TIME] s
            format   tsv, biosyn
            read     6 records
            kept      5  concepts
                     14  names
                     12  distinct names, ignoring case and punctuation
                      2  semantic types
                      2  source vocabularies
            dropped  nothing
        "#]],
    );
    place.check(
        &["kb", "show", "a.kb", "X:S1"],
        expect![[r#"
        status 0
        --- stdout
        id           X:S1
        raw id       S1
        name         Circle
        types        Curve
        definition   All points at one distance from a centre.
        other names  exact      round
                     exact      ring shape
                     exact      disc
                     exact      circle
        source       plane
    "#]],
    );
    let read = |name: &str| std::fs::read(place.path(name)).unwrap();
    let first = read("a.kb");
    assert!(place.run(&[&arguments[..5], &["b.kb"]].concat(), "").status.success());
    assert!(first == read("b.kb"));
    let filtered = [&arguments[..5], &["c.kb", "--semantic-types", "Curve"]].concat();
    place.check(
        &filtered,
        expect![[r#"
            status 0
            --- stderr
            built    c.kb ([SIZE] KiB) in [TIME] s
            format   tsv, biosyn
            read     6 records
            kept     3  concepts
                     8  names
                     7  distinct names, ignoring case and punctuation
                     1  semantic type
                     2  source vocabularies
            dropped  2  concept: semantic type (first: shapes.tsv:2)
        "#]],
    );
    place.check(
        &["kb", "build", "size=4@shapes.tsv", "--out", "a.kb"],
        expect![[r#"
            status 2
            --- stderr
            error: invalid source setting `size=4`
            hint: use format=…, prefix=…, name=… or version=…, as in prefix=MESH@mesh.tsv
        "#]],
    );
    place.check(
        &["kb", "build", "shapes.tsv", "names.txt", "--languages", "de", "--out", "a.kb"],
        expect![[r#"
        status 2
        --- stderr
        error: tsv has no languages to filter by
        hint: omit the filter
    "#]],
    );
}

#[test]
fn mappings_join_concepts_of_two_sources() {
    let place = Workplace::new();
    place.write("shapes.tsv", SHAPES);
    place.write("names.txt", "Y:1||disc\nY:2||box\n");
    place.write(
        "map.sssom.tsv",
        "subject_id\tpredicate_id\tobject_id\nx:S1\tskos:exactMatch\tY:1\nX:S2\tskos:closeMatch\tY:2\n",
    );
    let arguments =
        ["kb", "build", "shapes.tsv", "names.txt", "--prefix", "X", "--join", "map.sssom.tsv", "--out", "a.kb"];
    place.check(
        &arguments,
        expect![[r#"
            status 0
            --- stderr
            built    a.kb ([SIZE] KiB) in [TIME] s
            format   tsv, biosyn
            read     6 records
            kept      5  concepts
                     13  names
                     12  distinct names, ignoring case and punctuation
                      2  semantic types
                      2  source vocabularies
            joined   1 concept with an equivalent one
            dropped  1  mapping: another predicate
        "#]],
    );
    place.check(
        &["kb", "show", "a.kb", "Y:1"],
        expect![[r#"
        status 0
        --- stdout
        id             X:S1
        raw id         S1
        name           Circle
        types          Curve
        definition     All points at one distance from a centre.
        other names    exact      round
                       exact      ring shape
                       exact      disc
        also known as  Y:1
        source         shapes
    "#]],
    );
    let close = [&arguments[..], &["--join-predicates", "skos:exactMatch,skos:closeMatch"]].concat();
    place.check(
        &close,
        expect![[r#"
            status 0
            --- stderr
            built    a.kb ([SIZE] KiB) in [TIME] s
            format   tsv, biosyn
            read     6 records
            kept      4  concepts
                     13  names
                     12  distinct names, ignoring case and punctuation
                      2  semantic types
                      2  source vocabularies
            joined   2 concepts with an equivalent one
            dropped  nothing
        "#]],
    );
}

#[test]
fn destinations_that_cannot_be_written_are_refused_before_the_work() {
    let place = Workplace::new();
    place.write("shapes.tsv", SHAPES);
    std::fs::create_dir(place.path("folder")).unwrap();
    for (out, expected) in [
        (
            "folder",
            expect![[r#"
        status 2
        --- stderr
        error: folder exists and is not a regular file
        hint: choose another name for `--out`
    "#]],
        ),
        (
            "nowhere/a.kb",
            expect![[r#"
        status 2
        --- stderr
        error: no such folder: nowhere
        hint: create it, or choose another folder
    "#]],
        ),
        (
            "shapes.tsv",
            expect![[r#"
        status 2
        --- stderr
        error: output would overwrite the source shapes.tsv
        hint: choose another name for `--out`
    "#]],
        ),
    ] {
        place.check(&["kb", "build", "shapes.tsv", "--out", out], expected);
    }
    assert_eq!(std::fs::read_to_string(place.path("shapes.tsv")).unwrap(), SHAPES);
}

#[test]
fn wrong_usage_has_status_two() {
    let place = Workplace::new();
    place.check(
        &["kb", "build", "shapes.tsv"],
        expect![[r#"
        status 2
        --- stderr
        error: the following required arguments were not provided:
          --out <FILE.kb>

        Usage: canonym kb build --out <FILE.kb> <SOURCE>...

        For more information, try '--help'.
    "#]],
    );
    place.check(
        &["kb", "burn"],
        expect![[r#"
        status 2
        --- stderr
        error: unrecognized subcommand 'burn'

        Usage: canonym kb [OPTIONS] <COMMAND>

        For more information, try '--help'.
    "#]],
    );
    assert_eq!(place.run(&[], "").status.code(), Some(2));
    assert_eq!(place.run(&["--help"], "").status.code(), Some(0));
    assert_eq!(place.run(&["--version"], "").status.code(), Some(0));
}

#[test]
fn given_names_of_sources_win_and_files_are_told_apart() {
    let place = Workplace::new();
    place.write("clinic.obo", "[Term]\nid: W:1\nname: dizziness\nnamespace: ward\n\n[Term]\nid: W:2\nname: gait\n");
    place.write("clinic.tsv", "L:1\tdry cough\n");
    let sources = |arguments: &[&str]| {
        let output = place.run(&[&["kb", "build", "--out", "a.kb"], arguments].concat(), "");
        assert!(output.status.success(), "{}", place.describe(&output));
        let output = place.run(&["kb", "info", "a.kb", "--json"], "");
        let info: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        info["sources"].to_string()
    };
    assert_eq!(sources(&["clinic.obo", "clinic.tsv"]), r#"{"clinic.obo":1,"clinic.tsv":1,"ward":1}"#);
    assert_eq!(sources(&["name=all@clinic.obo", "clinic.tsv"]), r#"{"all":2,"clinic":1}"#);
    assert_eq!(sources(&["name=all@clinic.obo"]), r#"{"all":2}"#);
    sources(&["name=all@clinic.obo", "clinic.tsv"]);
    let map = |filter: &[&str]| {
        let output = place.run(&[&["map", "-", "--kb", "a.kb", "--top-k", "1"], filter].concat(), "dizziness\n");
        String::from_utf8(output.stderr).unwrap()
    };
    assert_eq!(map(&["--only-sources", "all"]), "2 of 3 concepts match the filters\n");
    assert_eq!(map(&["--not-sources", "all"]), "1 of 3 concepts match the filters\n");
}

#[test]
fn repeated_ids_and_rows_without_names_are_counted_with_the_first_place() {
    let place = Workplace::new();
    place.write("shapes.tsv", "S1\tCircle\nS2\t\nS1\tRing\nS3\t \nS1\tDisc\n");
    place.check(
        &["kb", "build", "shapes.tsv", "--out", "a.kb"],
        expect![[r#"
            status 0
            --- stderr
            built    a.kb ([SIZE] KiB) in [TIME] s
            format   tsv
            read     5 records
            kept     1  concept
                     3  names
                     3  distinct names, ignoring case and punctuation
            merged   2  row: duplicate id (first: shapes.tsv:3)
            dropped  2  concept: no name (first: shapes.tsv:2)
                     2  name: empty (first: shapes.tsv:2)
        "#]],
    );
    let terms = "[Term]\nid: S1\nname: Circle\n\n[Term]\nid: S2\n\n[Term]\nid: S1\nname: Ring\n";
    place.write("shapes.obo", format!("format-version: 1.2\n\n{terms}"));
    place.check(
        &["kb", "build", "shapes.obo", "--out", "b.kb"],
        expect![[r#"
            status 0
            --- stderr
            built    b.kb ([SIZE] KiB) in [TIME] s
            format   obo
            read     3 records
            kept     1  concept
                     2  names
                     2  distinct names, ignoring case and punctuation
            merged   1  term: duplicate id (first: shapes.obo:10)
            dropped  1  concept: no name (first: shapes.obo:7)
        "#]],
    );
    // Of two files the same ids are what is merged on purpose.
    place.write("more.tsv", "S1\tRound thing\n");
    let output = place.run(&["kb", "build", "shapes.obo", "more.tsv", "--out", "c.kb"], "");
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(told.contains("merged   1  term: duplicate id (first: shapes.obo:10)"), "{told}");
}

#[test]
fn web_pages_and_tables_with_commas_are_refused() {
    let place = Workplace::new();
    place.write("page.tsv", "\n<!DOCTYPE HTML>\n<html>\t<body>S1\tCircle</body></html>\n");
    place.write("shapes.csv", "id,name||synonym\nS1,Circle\n");
    place.write("shapes.txt", "S1;Circle\n");
    let build = |source: &str, format: &[&str]| {
        let output = place.run(&[&["kb", "build", source, "--out", "a.kb"], format].concat(), "");
        assert!(!place.path("a.kb").exists());
        place.describe(&output)
    };
    expect![[r#"
        status 1
        --- stderr
        error: page.tsv:1: this is a web page (HTML), not a terminology
        hint: download the file that the page offers; some sites need a login first
    "#]]
    .assert_eq(&build("page.tsv", &[]));
    for format in ["tsv", "obo", "jsonl", "biosyn", "owl", "mesh-xml", "ctd"] {
        let told = build("page.tsv", &["--format", format]);
        assert!(told.starts_with("status 1\n") && told.contains("page.tsv:"), "{format}: {told}");
    }
    assert!(build("page.tsv", &["--format", "tsv"]).contains("page.tsv:1: this is a web page"));
    expect![[r#"
        status 1
        --- stderr
        error: shapes.csv:1: CSV is not supported as a terminology format
        hint: save the table as TSV (separated by tabs): id, name, synonyms separated by |, types separated by |, definition
    "#]]
    .assert_eq(&build("shapes.csv", &[]));
    assert!(build("shapes.csv", &["--format", "tsv"]).contains("shapes.csv:1: CSV is not supported"));
    let told = build("shapes.txt", &["--format", "tsv"]);
    assert!(told.contains("shapes.txt:1: 1 column") && told.contains("hint: save the table as TSV"), "{told}");
    // Whatever the name, the reason is the same; running text is no table.
    place.write("shapes.tsv", "id,name\nS1,Circle\n");
    place.write("rows.txt", "S1;Circle;round thing\nS2;Square;\"box; crate\"\n");
    place.write("prose.txt", "A ring, a box.\nNo disc, no cone.\n");
    for source in ["shapes.tsv", "rows.txt", "shapes.txt"] {
        let told = build(source, &[]);
        assert!(told.contains(&format!("{source}:1: CSV is not supported as a terminology format")), "{told}");
        assert!(told.contains("hint: save the table as TSV (separated by tabs)"), "{told}");
    }
    assert!(build("prose.txt", &[]).contains("cannot tell the format of prose.txt"));
    let piped = |text: &str| {
        let output = place.run(&["kb", "build", "-", "--out", "a.kb"], text);
        String::from_utf8(output.stderr).unwrap()
    };
    let told = piped("id,name\nS1,Circle\n");
    assert!(told.contains("-:1: CSV is not supported") && told.contains("hint: save the table as TSV"), "{told}");
    assert!(piped("S1\tCircle\n").contains("cannot tell the format of -"));
}
