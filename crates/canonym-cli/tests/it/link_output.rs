//! What `canonym link` and `convert` write: rows, compressed files, mentions without those of some contexts, and what
//! they leave out on the way.

use std::io::Read;

use expect_test::expect;

use crate::support::{Workplace, bytes_of};

#[test]
fn mentions_are_written_as_tab_separated_values() {
    let place = Workplace::with_shapes();
    place.write("note.txt", "😀 A ring\tshape.\nA trigon.\n");
    let output = place.run(&["link", "note.txt", "--kb", "shapes.kb", "--to", "tsv"], "");
    assert!(output.status.success() && output.stderr.is_empty(), "{}", place.describe(&output));
    // Scores move with every fit of the model.
    let lines = String::from_utf8(output.stdout).unwrap();
    let columns: Vec<String> = lines.lines().map(|line| line.rsplit_once('\t').unwrap().0.to_owned()).collect();
    expect![[r#"
        note	4	14	ring shape	Curve	X:S1	Circle
        note	18	24	trigon	Polygon	X:S4	Triangle
    "#]]
    .assert_eq(&(columns.join("\n") + "\n"));
    assert!(lines.lines().all(|line| line.rsplit_once('\t').unwrap().1.parse::<f64>().is_ok()));
    let empty = place.run(&["link", "--text", "😀", "--to", "tsv"], "");
    assert!(empty.status.success() && empty.stdout.is_empty());
    let status = |option: &str| place.run(&["link", "--text", "x", "--to", "tsv", option], "").status.code();
    assert_eq!([status("--context"), status("--explain")], [Some(2), Some(2)]);
}

#[test]
fn endings_of_names_compress_and_archives_are_refused() {
    let place = Workplace::with_shapes();
    place.write("note.txt", "A ring shape.\n");
    let plain = place.run(&["link", "note.txt", "--kb", "shapes.kb"], "").stdout;
    for (name, magic) in [("links.jsonl.gz", &[0x1f, 0x8b][..]), ("links.jsonl.ZST", &[0x28, 0xb5, 0x2f, 0xfd])] {
        let output = place.run(&["link", "note.txt", "--kb", "shapes.kb", "-o", name], "");
        assert!(output.status.success(), "{}", place.describe(&output));
        assert!(bytes_of(&place.path(name)).starts_with(magic), "{name}");
        let mut read = String::new();
        canonym_core::input::Input::open(&place.path(name)).unwrap().read_to_string(&mut read).unwrap();
        assert_eq!(read.as_bytes(), plain);
        let back = format!("back-{name}");
        assert!(place.run(&["convert", name, &back, "--to", "pubtator"], "").status.success());
        assert!(bytes_of(&place.path(&back)).starts_with(magic), "{back}");
    }
    let export = ["kb", "export", "shapes.kb", "--to", "tsv", "--out", "shapes.tsv.gz"];
    assert!(place.run(&export, "").status.success());
    assert!(bytes_of(&place.path("shapes.tsv.gz")).starts_with(&[0x1f, 0x8b]));
    assert!(place.run(&["kb", "build", "shapes.tsv.gz", "--out", "again.kb"], "").status.success());
    place.check(
        &["link", "note.txt", "-o", "links.zip"],
        expect![[r#"
        status 2
        --- stderr
        error: cannot write links.zip: unsupported compression `.zip`
        hint: use `.gz` or `.zst`, or compress the file yourself
    "#]],
    );
    place.check(
        &["convert", "note.txt", "notes.gz", "--to", "brat"],
        expect![[r#"
        status 2
        --- stderr
        error: notes.gz is an output folder and cannot be compressed
        hint: remove the file extension, and compress the folder yourself
    "#]],
    );
    assert_eq!(place.run(&["convert", "note.txt", "x.zip", "--to", "jsonl"], "").status.code(), Some(2));
    assert!(!place.names().iter().any(|name| name.ends_with("zip") || name == "notes.gz"), "{:?}", place.names());
}

#[test]
fn wrong_offsets_do_not_matter_where_mentions_are_found() {
    let place = Workplace::with_shapes();
    place.write("shifted.txt", "7|t|A ring shape.\n7\t3\t13\tring shape\tShape\tX:S1\n7\t0\t1\tA\tShape\tX:S1\n");
    let link = ["link", "shifted.txt", "--kb", "shapes.kb", "--to", "pubtator"];
    place.check(
        &link,
        expect![[r#"
        status 0
        --- stdout
        7|t|A ring shape.
        7|a|
        7	2	12	ring shape	Curve	X:S1

        --- stderr
        ignored 1 annotation with wrong offsets in shifted.txt (`--mentions detect` does not use input annotations)
        1 score was dropped (first in document `7`)
        1 list of candidates was reduced to the first id (first in document `7`)
    "#]],
    );
    place.check(
        &[&link[..], &["--mentions", "gold"]].concat(),
        expect![[r#"
        status 1
        --- stderr
        error: shifted.txt:2: document `7`: the annotation is `ring shape` at 3..13, but the text there is `ing shape.`
        hint: repair unambiguous offsets (option `--fix-offsets`), or skip and count such annotations (option `--skip-bad-offsets`)
    "#]],
    );
}

#[test]
fn a_file_that_cannot_be_read_does_not_stop_a_folder() {
    let place = Workplace::with_shapes();
    std::fs::create_dir(place.path("notes")).unwrap();
    place.write("notes/1.txt", "A circle.");
    place.write("notes/2.xml", "<?xml version='1.0'?><feed/>");
    place.write("notes/3.jsonl", "{\"id\":\"3\",\"text\":\"A square.\"}\n{\"id\":\n{\"id\":\"4\",\"text\":\"\"}\n");
    place.write("notes/4.txt", "A trigon.");
    place.check(
        &["link", "notes", "--kb", "shapes.kb", "--to", "pubtator", "--output", "links.txt"],
        expect![[r#"
            status 1
            --- stderr
            error: notes/2.xml: unsupported XML (not BioC, PubMed or JATS)
            hint: specify the format; `text` reads any text file
            error: notes/3.jsonl:2: invalid document at column 6: EOF while parsing a value
            hint: each line is one JSON object with `id`, `text` and `annotations`
            3 scores were dropped (first in document `1`)
            3 lists of candidates were reduced to the first id (first in document `1`)
            error: 2 files were skipped or only partly read
            hint: all other files were processed; fix or remove the files named above
        "#]],
    );
    expect![[r#"
        1|t|A circle.
        1|a|
        1	2	8	circle	Curve	X:S1

        3|t|A square.
        3|a|
        3	2	8	square	Polygon	X:S2

        4|t|A trigon.
        4|a|
        4	2	8	trigon	Polygon	X:S4

    "#]]
    .assert_eq(&std::fs::read_to_string(place.path("links.txt")).unwrap());
    let converted = place.run(&["convert", "notes", "-", "--to", "jsonl"], "");
    assert_eq!(converted.status.code(), Some(1));
    assert_eq!(String::from_utf8(converted.stdout).unwrap().lines().count(), 3);
    std::fs::create_dir(place.path("bad")).unwrap();
    place.write("bad/2.xml", "<?xml version='1.0'?><feed/>");
    for arguments in [&["link", "bad", "-o", "none"][..], &["convert", "bad", "none", "--to", "jsonl"]] {
        assert_eq!(place.run(arguments, "").status.code(), Some(1));
        assert!(!place.path("none").exists());
    }
    place.check(
        &["link", "notes/2.xml"],
        expect![[r#"
        status 1
        --- stderr
        error: notes/2.xml: unsupported XML (not BioC, PubMed or JATS)
        hint: specify the format; `text` reads any text file
    "#]],
    );
}

#[test]
fn mentions_of_unwanted_contexts_are_left_out_and_counted() {
    let place = Workplace::new();
    let text = "Denies asthma. Mother had pneumonia. Possible stroke. Fever.";
    let link = |more: &[&str]| place.run(&[&["link", "--text", text], more].concat(), "");
    let said = link(&["--to", "jsonl", "--context", "--drop-context", "negated,family"]);
    let document: serde_json::Value = serde_json::from_slice(&said.stdout).unwrap();
    let texts: Vec<&str> =
        document["annotations"].as_array().unwrap().iter().map(|one| one["text"].as_str().unwrap()).collect();
    assert_eq!(texts, ["stroke", "Fever"]);
    assert_eq!(String::from_utf8(said.stderr).unwrap(), "dropped 2 mentions by `--drop-context`\n");
    let explained = link(&["--to", "jsonl", "--context", "--explain", "--drop-context", "negated,family,possible"]);
    let document: serde_json::Value = serde_json::from_slice(&explained.stdout).unwrap();
    let annotations = document["annotations"].as_array().unwrap();
    assert_eq!((annotations.len(), annotations[0]["explanation"]["compared"].as_str()), (1, Some("Fever")));
    let rows = link(&["--to", "tsv", "--context", "--drop-context", "negated,family"]);
    assert!(rows.status.success() && String::from_utf8(rows.stdout).unwrap().lines().count() == 2);
    assert_eq!(link(&["--drop-context", "negated"]).status.code(), Some(2));
    assert_eq!(link(&["--context", "--drop-context", "denied"]).status.code(), Some(2));
}

#[test]
fn any_heading_ends_the_history_of_the_family() {
    let place = Workplace::new();
    let text = "Family history: asthma in her mother.\nFather: stroke\nOvernight: fever\nPneumonia.";
    let said = place.run(&["link", "--text", text, "--to", "jsonl", "--context"], "");
    let document: serde_json::Value = serde_json::from_slice(&said.stdout).unwrap();
    let annotations = document["annotations"].as_array().unwrap().iter();
    let said: Vec<String> = annotations.map(|one| format!("{} {}", one["text"], one["attributes"])).collect();
    let family = "{\"experiencer\":\"family\"}";
    let expected = [
        format!("\"asthma\" {family}"),
        format!("\"stroke\" {family}"),
        "\"fever\" null".to_owned(),
        "\"Pneumonia\" null".to_owned(),
    ];
    assert_eq!(said, expected);
}

#[test]
fn formats_that_cannot_be_written_are_not_offered() {
    let place = Workplace::new();
    for arguments in [
        &["link", "--text", "x", "--to", "rtf"][..],
        &["link", "--text", "x", "--to", "text"],
        &["convert", "a", "b", "--to", "csv"],
        &["convert", "a", "b", "--to", "text"],
    ] {
        let said = place.describe(&place.run(arguments, ""));
        assert!(said.starts_with("status 2\n") && said.contains("\nhint: use one of "), "{said}");
        let offered = said.rsplit_once("use one of ").unwrap().1;
        assert!(!offered.contains("text") && offered.contains("bioc-json"), "{said}");
        assert_eq!(offered.contains("tsv, csv"), arguments[0] == "link", "{said}");
        assert_eq!(offered.contains("pubmed-xml"), arguments[0] == "convert", "{said}");
    }
}

#[test]
fn a_reading_by_another_word_is_called_so() {
    let place = Workplace::new();
    place.write("kidney.tsv", "K1\tkidney pain\nK2\tretinal ulcer\n");
    assert!(place.run(&["kb", "build", "kidney.tsv", "--out", "kidney.kb"], "").status.success());
    place.write(
        "gold.txt",
        "7|t|Renal pain.\n7\t0\t10\tRenal pain\tS\n\n8|t|Retina ulcer.\n8\t0\t12\tRetina ulcer\tS\n",
    );
    let arguments = ["link", "gold.txt", "--kb", "kidney.kb", "--mentions", "gold", "--explain", "--to", "table"];
    let said = String::from_utf8(place.run(&arguments, "").stdout).unwrap();
    let (other, derived) = said.split_once("Retina ulcer.").unwrap();
    assert!(other.contains("\"kidney pain\" (preferred): synonymous words"), "{other}");
    assert!(derived.contains("\"retinal ulcer\" (preferred): same word stems"), "{derived}");
}
