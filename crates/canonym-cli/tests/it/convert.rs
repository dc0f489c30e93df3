//! `canonym convert`, and the options for corpora that are not as they should be.

use expect_test::expect;

use crate::support::Workplace;

const GOLD: &str = concat!(
    "7|t|A rod and cone cell.\n7|a|It dies.\n",
    "7\t2\t5\trod\tCell\tCL:1|CL:2\n7\t10\t19\tcone cell\tCell\tCL:3\trod cell|cone cell\n7\t2\t19\trod and cone cell\tCell\t-1\n",
    "7\tCause\tCL:1\tCL:3\n\n",
);
const SHIFTED: &str = "7|t|A title.\n7|a|Fever and cough.\n7\t10\t15\tFever\tSign\tX\n7\t0\t7\tA tail!\tSign\tX\n\n";

#[test]
fn corpora_are_written_in_other_formats() {
    let place = Workplace::new();
    place.write("gold.txt", GOLD);
    place.check(&["convert", "--to", "jsonl", "gold.txt", "-"], expect![[r#"
        status 0
        --- stdout
        {"id":"7","text":"A rod and cone cell. It dies.","annotations":[{"spans":[[2,5]],"text":"rod","type":"Cell","ids":["CL:1|CL:2"]},{"spans":[[10,19]],"text":"cone cell","type":"Cell","ids":["CL:3"],"parts":["rod cell","cone cell"]},{"spans":[[2,19]],"text":"rod and cone cell","type":"Cell","ids":["-1"]}],"relations":[["Cause","CL:1","CL:3"]],"sections":[{"type":"title","span":[0,20]},{"type":"abstract","span":[21,29]}]}
    "#]]);
    place.check(
        &["convert", "--to", "biosyn", "gold.txt", "-"],
        expect![[r#"
        status 0
        --- stdout
        7||2|5||Cell||rod||CL:1|CL:2
        7||10|19||Cell||rod cell|cone cell||CL:3
        7||2|19||Cell||rod and cone cell||-1
        --- stderr
        1 text was dropped, except for the mentions (first in document `7`)
        2 text sections were dropped (first in document `7`)
        1 relation was dropped (first in document `7`)
    "#]],
    );
    place.check(
        &["convert", "--to", "conll", "--tags", "bioes", "gold.txt", "-"],
        expect![[r#"
        status 0
        --- stdout
        # id = 7
        A	0	1	O	_
        rod	2	5	B-Cell	-1
        and	6	9	I-Cell	-1
        cone	10	14	I-Cell	-1
        cell	15	19	E-Cell	-1
        .	19	20	O	_

        It	21	23	O	_
        dies	24	28	O	_
        .	28	29	O	_

        --- stderr
        1 line break was added between sentences (first in document `7`)
        2 text sections were dropped (first in document `7`)
        2 nested or overlapping mentions were dropped (first in document `7`)
        1 list of part names was dropped (first in document `7`)
        1 relation was dropped (first in document `7`)
    "#]],
    );
    place.check(
        &["convert", "--to", "brat", "gold.txt", "folder"],
        expect![[r#"
        status 0
        --- stderr
        2 text sections were dropped (first in document `7`)
        1 list of part names was dropped (first in document `7`)
        1 relation was dropped (first in document `7`)
    "#]],
    );
    assert_eq!(std::fs::read_to_string(place.path("folder/7.txt")).unwrap(), "A rod and cone cell. It dies.");
    expect![[r#"
        T1	Cell 2 5	rod
        N1	Reference T1 CL:1|CL:2	
        T2	Cell 10 19	cone cell
        N2	Reference T2 CL:3	
        T3	Cell 2 19	rod and cone cell
        N3	Reference T3 -1	
    "#]]
    .assert_eq(&std::fs::read_to_string(place.path("folder/7.ann")).unwrap());
    place.check(
        &["convert", "--to", "pubtator", "folder", "-"],
        expect![[r#"
        status 0
        --- stdout
        7|t|A rod and cone cell. It dies.
        7|a|
        7	2	5	rod	Cell	CL:1|CL:2
        7	10	19	cone cell	Cell	CL:3
        7	2	19	rod and cone cell	Cell	-1

        --- stderr
        3 annotation keys were dropped (first in document `7`)
    "#]],
    );
}

#[test]
fn outputs_appear_when_they_are_complete() {
    let place = Workplace::new();
    place.write("gold.txt", GOLD);
    place.write("shifted.txt", [GOLD, SHIFTED].concat());
    let output = place.run(&["convert", "--to", "jsonl", "gold.txt", "gold.jsonl"], "");
    assert!(output.status.success());
    let output = place.run(&["convert", "--to", "pubtator", "gold.jsonl", "-"], "");
    assert_eq!(String::from_utf8(output.stdout).unwrap(), GOLD);
    assert_eq!(place.run(&["convert", "--to", "jsonl", "shifted.txt", "out.jsonl"], "").status.code(), Some(1));
    assert_eq!(place.run(&["convert", "--to", "brat", "shifted.txt", "out"], "").status.code(), Some(1));
    assert_eq!(place.names(), ["gold.jsonl", "gold.txt", "shifted.txt"]);
}

#[test]
fn what_is_read_is_not_written_over() {
    let place = Workplace::new();
    place.write("gold.txt", GOLD);
    for arguments in
        [&["convert", "gold.txt", "./gold.txt", "--to", "jsonl"][..], &["link", "gold.txt", "-o", "gold.txt"]]
    {
        let output = place.run(arguments, "");
        assert_eq!(output.status.code(), Some(2));
        assert!(String::from_utf8_lossy(&output.stderr).contains("output would overwrite the input gold.txt"));
        assert_eq!(std::fs::read_to_string(place.path("gold.txt")).unwrap(), GOLD);
    }
}

#[test]
fn an_input_without_documents_is_reported() {
    let place = Workplace::with_shapes();
    for (name, text) in [("empty.pubtator", ""), ("empty.jsonl", ""), ("empty.csv", "id,text\n")] {
        place.write(name, text);
        let expected = format!("no documents in {name}\n");
        for command in [&["link", "--kb", "shapes.kb", "--model", "lexical"][..], &["convert", "--to", "jsonl"]] {
            let mut arguments = command.to_vec();
            arguments.push(name);
            if command[0] == "convert" {
                arguments.push("-");
            }
            let output = place.run(&arguments, "");
            assert_eq!(output.status.code(), Some(0), "{arguments:?}");
            assert_eq!(String::from_utf8_lossy(&output.stderr), expected, "{arguments:?}");
        }
    }
    let arguments = ["link", "--kb", "shapes.kb", "--model", "lexical", "--format", "jsonl", "-"];
    let output = place.run(&arguments, "");
    assert_eq!(String::from_utf8_lossy(&output.stderr), "no documents in standard input\n");
    place.check(
        &["link"],
        expect![[r#"
            status 2
            --- stderr
            error: no input
            hint: name files or folders, `-` for standard input, or give a text with `--text`
        "#]],
    );
}

#[test]
fn folders_are_new_or_empty() {
    let place = Workplace::new();
    place.write("gold.txt", GOLD);
    std::fs::create_dir(place.path("empty")).unwrap();
    let to = |folder: &str| place.run(&["convert", "--to", "brat", "gold.txt", folder], "");
    assert!(to("empty").status.success());
    expect![[r#"
        status 1
        --- stderr
        error: empty exists and is not an empty folder
        hint: choose a new folder; existing files are never overwritten
    "#]]
    .assert_eq(&place.describe(&to("empty")));
    place.check(
        &["convert", "--to", "brat", "gold.txt", "-"],
        expect![[r#"
            status 2
            --- stderr
            error: cannot write brat to standard output: each document has two files
            hint: specify a folder instead of `-`
        "#]],
    );
    place.check(
        &["link", "--text", "fever", "--to", "brat"],
        expect![[r#"
            status 2
            --- stderr
            error: cannot write brat to standard output: each document has two files
            hint: specify a folder with `--output`
        "#]],
    );
    place.check(
        &["convert", "--from", "brat", "--to", "jsonl", "-", "-"],
        expect![[r#"
        status 1
        --- stderr
        error: cannot read brat from standard input: each document has two files
        hint: specify the folder, or a `.txt` file next to its `.ann` file
    "#]],
    );
}

#[test]
fn links_are_written_as_brat() {
    let place = Workplace::with_shapes();
    place.write("note.txt", "A ring shape.\n");
    let arguments = ["link", "note.txt", "--kb", "shapes.kb", "--to", "brat", "--output", "links"];
    let output = place.run(&arguments, "");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    expect![[r#"
        T1	Curve 2 12	ring shape
        N1	Reference T1 X:S1	Circle
    "#]]
    .assert_eq(&std::fs::read_to_string(place.path("links/note.ann")).unwrap());
    expect![[r#"
        1 score was dropped (first in document `note`)
        1 list of candidates was reduced to the first id (first in document `note`)
    "#]]
    .assert_eq(&String::from_utf8(output.stderr).unwrap());
}

#[test]
fn wrong_offsets_are_repaired_and_listed() {
    let place = Workplace::new();
    place.write("shifted.txt", SHIFTED);
    place.check(
        &["convert", "--to", "pubtator", "--fix-offsets", "shifted.txt", "-"],
        expect![[r#"
        status 1
        --- stderr
        shifted.txt:3 document 7: "Fever" 10..15 -> 9..14 (shifted by one)
        error: shifted.txt:4: document `7`: the annotation is `A tail!` at 0..7, but the text there is `A title`
        hint: this repair is ambiguous; skip and count such annotations (option `--skip-bad-offsets`)
    "#]],
    );
    place.check(
        &["convert", "--to", "pubtator", "--fix-offsets", "--skip-bad-offsets", "shifted.txt", "-"],
        expect![[r#"
            status 0
            --- stdout
            7|t|A title.
            7|a|Fever and cough.
            7	9	14	Fever	Sign	X

            --- stderr
            shifted.txt:3 document 7: "Fever" 10..15 -> 9..14 (shifted by one)
            repaired 1 annotation with wrong offsets in shifted.txt
            skipped 1 annotation with wrong offsets in shifted.txt
        "#]],
    );
    let options = ["--fix-offsets", "--skip-bad-offsets", "--resamples", "0", "--match", "strict"];
    let output = place.run(&[&["eval", "--gold", "shifted.txt", "--pred", "shifted.txt"], &options[..]].concat(), "");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(String::from_utf8_lossy(&output.stderr).matches("shifted by one").count(), 2);
}

#[test]
fn wrong_usage_is_named() {
    let place = Workplace::new();
    let status = |arguments: &[&str]| place.run(arguments, "").status.code();
    assert_eq!(status(&["convert", "--to", "text", "a", "b"]), Some(2));
    assert_eq!(status(&["convert", "--to", "doc", "a", "b"]), Some(2));
    assert_eq!(status(&["convert", "--to", "conll", "--tags", "bmes", "a", "b"]), Some(2));
    assert_eq!(status(&["convert", "--to", "jsonl", "missing", "-"]), Some(1));
}

#[test]
fn repeated_ids_and_missing_titles_are_told_with_the_first_place() {
    let place = Workplace::new();
    place.write("gold.txt", "7|t|One.\n7|t|One.\n7|a|More.\n\n8|a|Two.\n\n7|t|One.\n");
    place.check(&["convert", "--to", "biosyn", "gold.txt", "-"], expect![[r#"
        status 0
        --- stderr
        warning: 2 documents in gold.txt have a repeated id; each is read as a separate document (first: `7` at gold.txt:2)
        warning: 1 document in gold.txt has no title (first: `8` at gold.txt:5)
        5 text sections were dropped (first in document `7`)
        4 documents without mentions were dropped (first in document `7`)
    "#]]);
    let lines: Vec<String> = ["1", "2", "1", "1"].map(|id| format!("{{\"id\":\"{id}\",\"text\":\"One.\"}}\n")).into();
    place.write("notes.jsonl", lines.concat());
    place.check(&["convert", "--to", "biosyn", "notes.jsonl", "-"], expect![[r#"
        status 0
        --- stderr
        warning: 2 documents in notes.jsonl have a repeated id; each is read as a separate document (first: `1` at notes.jsonl:3)
        4 documents without mentions were dropped (first in document `1`)
    "#]]);
}

#[test]
fn a_score_that_bioc_holds_is_not_called_lost() {
    let place = Workplace::new();
    let linked =
        r#"{"id":"7","text":"Fever.","annotations":[{"spans":[[0,5]],"text":"Fever","ids":["D1"],"score":0.75}]}"#;
    place.write("linked.jsonl", linked);
    for (format, file) in [("bioc-xml", "linked.xml"), ("bioc-json", "linked.json"), ("texoo", "linked.texoo.json")] {
        let output = place.run(&["convert", "--to", format, "linked.jsonl", file], "");
        assert_eq!(String::from_utf8(output.stderr).unwrap(), "", "{format}");
        let back = place.run(&["convert", "--from", format, "--to", "jsonl", file, "-"], "");
        assert!(String::from_utf8(back.stdout).unwrap().contains("\"score\":0.75"), "{format}");
    }
}
