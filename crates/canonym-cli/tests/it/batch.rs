//! `canonym link` over many files: skipped documents, run folders, and what a kill leaves behind.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::process::Stdio;

use expect_test::expect;

use crate::support::Workplace;

const LINK: [&str; 5] = ["link", "--model", "lexical", "--kb", "shapes.kb"];

fn link<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [&LINK, more].concat()
}

/// A folder of inputs in several formats; the second file is a damaged `.gz`, the third has three bad lines.
fn with_faulty_folder() -> Workplace {
    let place = Workplace::with_shapes();
    std::fs::create_dir_all(place.path("in/sub")).unwrap();
    place.write("in/a.txt", "A circle.");
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    std::io::Write::write_all(&mut packed, b"{\"id\":\"b\",\"text\":\"A square.\"}\n").unwrap();
    let mut packed = packed.finish().unwrap();
    packed.truncate(packed.len() - 9);
    place.write("in/b.jsonl.gz", packed);
    let mut lines = String::new();
    for number in 1..=10_000 {
        match number {
            9_001 => lines += "{\"id\":\n",
            9_002 => lines += "{\"id\":\"9000\",\"text\":\"A circle again.\"}\n",
            9_003 => lines += "{\"id\":\"empty\"}\n",
            _ => writeln!(lines, "{{\"id\":\"{number}\",\"text\":\"A ring shape.\"}}").unwrap(),
        }
    }
    let mut bytes = lines.into_bytes();
    bytes.extend(b"{\"id\":\"latin\",\"text\":\"caf\xe9\"}\n{\"id\":\"last\",\"text\":\"A trigon.\"}\n");
    place.write("in/c.jsonl", bytes);
    place.write("in/sub/d.txt", "A square.");
    place
}

/// All files below a folder of the workplace, except for the lock.
fn files(place: &Workplace, folder: &str) -> BTreeMap<String, Vec<u8>> {
    fn add(root: &Path, folder: &Path, all: &mut BTreeMap<String, Vec<u8>>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                add(root, &path, all);
            } else if !path.ends_with(".lock") {
                let name = path.strip_prefix(root).unwrap().to_string_lossy().into_owned();
                all.insert(name, std::fs::read(&path).unwrap());
            }
        }
    }
    let mut all = BTreeMap::new();
    add(&place.path(folder), &place.path(folder), &mut all);
    all
}

#[test]
fn a_bad_document_costs_only_that_document() {
    let place = with_faulty_folder();
    place.check(
        &link(&["in", "--skip-bad-documents", "bad.jsonl", "--output", "all.jsonl"]),
        expect![[r#"
            status 0
            --- stderr
            skipped 5 bad documents, listed in bad.jsonl
        "#]],
    );
    expect![[r#"
        {"file":"in/b.jsonl.gz","line":2,"error":"the compressed data is damaged or truncated (incomplete deflate stream)","hint":"download or compress the file again"}
        {"file":"in/c.jsonl","line":9001,"error":"invalid document at column 6: EOF while parsing a value","hint":"each line is one JSON object with `id`, `text` and `annotations`"}
        {"file":"in/c.jsonl","line":9002,"id":"9000","error":"document `9000` has the id of an earlier document","hint":"give each document an id of its own"}
        {"file":"in/c.jsonl","line":9003,"id":"empty","error":"document `empty` has no text","hint":"add a field `text`, or `title` and `abstract`"}
        {"file":"in/c.jsonl","line":10001,"error":"invalid UTF-8: byte 26 of the line (0xe9)","hint":"convert the file to UTF-8, for example with `iconv -f ISO-8859-1 -t UTF-8`"}
    "#]]
    .assert_eq(&std::fs::read_to_string(place.path("bad.jsonl")).unwrap());
    let written = std::fs::read_to_string(place.path("all.jsonl")).unwrap();
    // Nothing of the damaged file.
    assert_eq!(written.lines().count(), 1 + 9_997 + 1 + 1);
    assert!(written.lines().nth_back(1).unwrap().starts_with("{\"id\":\"last\""));
}

/// Two documents, compressed, with a checksum that is wrong.
fn with_a_wrong_checksum() -> Vec<u8> {
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    let lines = b"{\"id\":\"1\",\"text\":\"A square.\"}\n{\"id\":\"2\",\"text\":\"A circle.\"}\n";
    std::io::Write::write_all(&mut packed, lines).unwrap();
    let mut packed = packed.finish().unwrap();
    let n_bytes = packed.len();
    packed[n_bytes - 6] ^= 1;
    packed
}

#[test]
fn no_document_of_a_damaged_file_is_linked() {
    let place = Workplace::with_shapes();
    std::fs::create_dir(place.path("in")).unwrap();
    place.write("in/a.jsonl.gz", with_a_wrong_checksum());
    place.write("in/b.txt", "A circle.");
    let ids = |name: &str| -> Vec<String> {
        let written = std::fs::read_to_string(place.path(name)).unwrap();
        written.lines().map(|line| line[..line.find(",\"text\"").unwrap()].to_owned()).collect()
    };
    place.check(
        &link(&["in", "--skip-bad-documents", "bad.jsonl", "-o", "all.jsonl"]),
        expect![[r#"
            status 0
            --- stderr
            skipped 1 bad document, listed in bad.jsonl
        "#]],
    );
    expect![[r#"
        {"file":"in/a.jsonl.gz","line":3,"error":"the compressed data is damaged or truncated (corrupt gzip stream does not have a matching checksum)","hint":"download or compress the file again"}
    "#]]
    .assert_eq(&std::fs::read_to_string(place.path("bad.jsonl")).unwrap());
    assert_eq!(ids("all.jsonl"), ["{\"id\":\"b\""]);
    place.check(
        &link(&["in", "-o", "all.jsonl"]),
        expect![[r#"
            status 1
            --- stderr
            error: in/a.jsonl.gz:3: the compressed data is damaged or truncated (corrupt gzip stream does not have a matching checksum)
            hint: download or compress the file again
            error: 1 file was skipped or only partly read
            hint: all other files were processed; fix or remove the files named above
        "#]],
    );
    assert_eq!(ids("all.jsonl"), ["{\"id\":\"b\""]);
}

#[test]
fn a_damaged_stream_ends_the_command_whatever_is_skipped() {
    let place = Workplace::with_shapes();
    place.write("in.gz", with_a_wrong_checksum());
    for skips in [&[][..], &["--skip-bad-documents", "bad.jsonl"]] {
        let mut command = place.command(&link(&[&["-", "-o", "all.jsonl"], skips].concat()));
        command.stdin(std::fs::File::open(place.path("in.gz")).unwrap());
        let output = command.output().unwrap();
        expect![[r#"
            status 1
            --- stderr
            error: -:3: the compressed data is damaged or truncated (corrupt gzip stream does not have a matching checksum)
            hint: download or compress the file again
        "#]]
        .assert_eq(&place.describe(&output));
        assert!(!place.path("all.jsonl").exists());
    }
}

#[test]
fn a_document_that_the_output_cannot_hold_is_skipped() {
    let place = Workplace::with_shapes();
    place.write("in.jsonl", "{\"id\":\"1\",\"text\":\"A circle.\"}\n{\"id\":\"a\\tb\",\"text\":\"A square.\"}\n");
    let output = place.run(&link(&["in.jsonl", "--to", "pubtator", "--skip-bad-documents", "bad.jsonl"]), "");
    assert!(output.status.success(), "{}", place.describe(&output));
    assert!(String::from_utf8(output.stdout).unwrap().starts_with("1|t|A circle.\n"));
    let bad = std::fs::read_to_string(place.path("bad.jsonl")).unwrap();
    assert!(bad.starts_with("{\"file\":\"in.jsonl\",\"id\":\"a\\tb\",\"error\":\""), "{bad}");
}

#[test]
fn an_input_without_any_good_document_is_an_error() {
    let place = Workplace::with_shapes();
    place.write("in.jsonl", "{\n{\n");
    place.check(
        &link(&["in.jsonl", "--skip-bad-documents", "bad.jsonl"]),
        expect![[r#"
            status 1
            --- stderr
            error: no document could be linked: 2 bad documents skipped
            hint: see bad.jsonl for the reasons
        "#]],
    );
}

#[test]
fn a_run_folder_has_one_output_per_input_file() {
    let place = with_faulty_folder();
    place.check(
        &link(&["in", "--skip-bad-documents", "bad.jsonl", "--output", "run/"]),
        expect![[r#"
            status 0
            --- stderr
            linked 4 files with 10,000 documents into run/
            skipped 5 bad documents, listed in bad.jsonl
        "#]],
    );
    let names: Vec<String> = files(&place, "run").into_keys().collect();
    let expected = [
        "a.txt.jsonl",
        "b.jsonl.gz.jsonl",
        "b.jsonl.gz.jsonl.skipped",
        "c.jsonl.jsonl",
        "c.jsonl.jsonl.skipped",
        "run.journal",
        "run.json",
        "sub/d.txt.jsonl",
    ];
    assert_eq!(names, expected);
    // The outputs together are that of a run without a folder.
    assert!(place.run(&link(&["in", "--skip-bad-documents", "bad2.jsonl", "-o", "all.jsonl"]), "").status.success());
    let outputs = ["a.txt.jsonl", "b.jsonl.gz.jsonl", "c.jsonl.jsonl", "sub/d.txt.jsonl"];
    let joined: Vec<u8> =
        outputs.iter().flat_map(|name| std::fs::read(place.path("run").join(name)).unwrap()).collect();
    assert!(joined == std::fs::read(place.path("all.jsonl")).unwrap());
    assert_eq!(std::fs::read(place.path("bad.jsonl")).unwrap(), std::fs::read(place.path("bad2.jsonl")).unwrap());
    let journal = std::fs::read_to_string(place.path("run/run.journal")).unwrap();
    let first: serde_json::Value = serde_json::from_str(journal.lines().next().unwrap()).unwrap();
    assert_eq!(first["input"], "in/a.txt");
    assert_eq!(first["input_checksum"]["bytes"], 9);
    assert_eq!(first["input_checksum"]["xxh3"].as_str().unwrap().len(), 32);
    assert!(first["kb"].as_str().unwrap().starts_with("shapes "), "{first}");
    assert!(first["model"].as_str().unwrap().starts_with("lexical "), "{first}");
    // Nothing is done twice, and the list of skipped documents is complete again.
    std::fs::remove_file(place.path("bad.jsonl")).unwrap();
    place.check(
        &["link", "--resume", "run"],
        expect![[r#"
            status 0
            --- stderr
            4 of 4 files are finished
            linked 0 files with 0 documents into run
            skipped 5 bad documents, listed in bad.jsonl
        "#]],
    );
    assert_eq!(std::fs::read(place.path("bad.jsonl")).unwrap(), std::fs::read(place.path("bad2.jsonl")).unwrap());
}

#[test]
fn a_faulty_file_of_a_run_is_tried_again() {
    let place = Workplace::with_shapes();
    std::fs::create_dir(place.path("in")).unwrap();
    place.write("in/a.jsonl", "{\"id\":\"1\",\"text\":\"A circle.\"}\n{\n");
    place.write("in/b.txt", "A square.");
    let output = place.run(&link(&["in", "--output", "run/"]), "");
    assert_eq!(output.status.code(), Some(1));
    assert!(!place.path("run/a.jsonl.jsonl").exists() && place.path("run/b.txt.jsonl").exists());
    place.write("in/a.jsonl", "{\"id\":\"1\",\"text\":\"A circle.\"}\n");
    place.write("in/c.txt", "A trigon.");
    place.check(
        &["link", "--resume", "run", "--threads", "1"],
        expect![[r#"
            status 0
            --- stderr
            1 of 3 files are finished
            linked 2 files with 2 documents into run
        "#]],
    );
    // A changed input is linked again.
    place.write("in/b.txt", "A circle.");
    place.check(
        &link(&["in", "--resume", "run"]),
        expect![[r#"
            status 0
            --- stderr
            2 of 3 files are finished
            1 finished file changed since and will be linked again
            linked 1 file with 1 document into run
        "#]],
    );
    assert!(std::fs::read_to_string(place.path("run/b.txt.jsonl")).unwrap().contains("X:S1"));
}

#[test]
fn a_run_is_not_resumed_with_other_options() {
    let place = Workplace::with_shapes();
    place.write("a.txt", "A circle.");
    assert!(place.run(&link(&["a.txt", "--output", "run/"]), "").status.success());
    place.check(
        &link(&["a.txt", "--resume", "run", "--top-k", "3"]),
        expect![[r#"
            status 2
            --- stderr
            error: the run in run has other options: `--top-k` was not given, now `3`
            hint: resume it with `canonym link --resume run` alone, or start a new run
        "#]],
    );
    place.check(
        &["link", "--resume", "run", "--top-k", "3"],
        expect![[r#"
            status 2
            --- stderr
            error: `--resume run` without files takes all options from the run
            hint: omit the other options, or repeat the whole command of the run
        "#]],
    );
    place.write("shapes.tsv", "S1\tCircle\tdisc\tCurve\n");
    assert!(place.run(&["kb", "build", "shapes.tsv", "--prefix", "X", "--out", "shapes.kb"], "").status.success());
    let output = place.run(&["link", "--resume", "run"], "");
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.starts_with("error: the run in run was started with another knowledge base: shapes "), "{said}");
    assert_eq!(output.status.code(), Some(1));
    place.check(
        &link(&["a.txt", "--output", "run/"]),
        expect![[r#"
            status 1
            --- stderr
            error: run/ already contains a run
            hint: continue it with `--resume run/`, or choose a new folder
        "#]],
    );
    place.check(
        &["link", "-", "--output", "other/"],
        expect![[r#"
            status 2
            --- stderr
            error: a run folder needs input files; standard input cannot be read again after an interruption
            hint: save the input as a file
        "#]],
    );
}

#[test]
fn a_run_is_resumed_where_it_was_started() {
    let place = Workplace::with_shapes();
    for folder in ["in", "other", "other/in"] {
        std::fs::create_dir(place.path(folder)).unwrap();
    }
    place.write("in/a.txt", "A circle.");
    place.write("other/in/a.txt", "A square.");
    std::fs::copy(place.path("shapes.kb"), place.path("other/shapes.kb")).unwrap();
    assert!(place.run(&link(&["in", "--output", "run/"]), "").status.success());
    let linked = || std::fs::read_to_string(place.path("run/a.txt.jsonl")).unwrap();
    let before = linked();
    let elsewhere = |arguments: &[&str]| {
        let output = Workplace::finish(place.command(arguments).current_dir(place.path("other")), "");
        place.describe(&output)
    };
    expect![[r#"
        status 2
        --- stderr
        error: the run in ../run was started in [DIR], and its path `in` is relative to that folder
        hint: run the command in [DIR], or repeat the whole command of the run
    "#]]
    .assert_eq(&elsewhere(&["link", "--resume", "../run"]));
    assert_eq!(linked(), before);
    // With absolute paths any folder will do.
    let [kb, files, run] = ["shapes.kb", "in", "absolute/"].map(|name| place.path(name).display().to_string());
    let output = place.run(&["link", "--kb", &kb, "--model", "lexical", &files, "--output", &run], "");
    assert!(output.status.success(), "{}", place.describe(&output));
    assert!(elsewhere(&["link", "--resume", "../absolute"]).starts_with("status 0\n"));
}

#[test]
fn outputs_of_a_run_can_be_compressed_and_have_any_format() {
    let place = Workplace::with_shapes();
    place.write("a.txt", "A circle.");
    for (to, compress, name) in [("bioc-xml", "gz", "a.txt.bioc.xml.gz"), ("bioc-json", "zst", "a.txt.bioc.json.zst")] {
        let run = format!("{to}/");
        let output = place.run(&link(&["a.txt", "--output", &run, "--to", to, "--compress", compress]), "");
        assert!(output.status.success(), "{}", place.describe(&output));
        let read = place.run(&["convert", &format!("{run}{name}"), "-", "--to", "jsonl"], "");
        assert!(String::from_utf8(read.stdout).unwrap().contains("X:S1"));
    }
}

/// Starts a run, kills it after `n_files` outputs, and resumes it until it is finished. Returns the number of kills.
#[cfg(unix)]
fn killed_and_resumed(place: &Workplace, kill_after: &[usize]) -> usize {
    let mut n_kills = 0;
    let n_finished = || {
        let journal = std::fs::read_to_string(place.path("killed/run.journal")).unwrap_or_default();
        journal.lines().count()
    };
    for (place_in_list, n_files) in kill_after.iter().enumerate() {
        let arguments = match place_in_list {
            0 => link(&["in", "--output", "killed/"]),
            _ => vec!["link", "--resume", "killed"],
        };
        let mut child = place.command(&arguments).stdin(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        while child.try_wait().unwrap().is_none() && n_finished() < *n_files {
            std::thread::yield_now();
        }
        n_kills += usize::from(child.try_wait().unwrap().is_none());
        child.kill().ok();
        child.wait().unwrap();
        if !place.path("killed/run.json").exists() {
            // Killed before the first file of the run was there: an empty folder starts again.
            assert!(place.run(&link(&["in", "--output", "killed/"]), "").status.success());
        }
    }
    assert!(place.run(&["link", "--resume", "killed"], "").status.success());
    n_kills
}

#[cfg(unix)]
#[test]
fn a_killed_run_is_resumed_without_losing_or_repeating_a_document() {
    let place = Workplace::with_shapes();
    std::fs::create_dir(place.path("in")).unwrap();
    for file in 0..40 {
        let lines = (0..50).map(|line| format!("{{\"id\":\"{file}-{line}\",\"text\":\"A ring shape, a trigon.\"}}\n"));
        place.write(&format!("in/{file:02}.jsonl"), lines.collect::<String>());
    }
    assert!(place.run(&link(&["in", "--output", "whole/"]), "").status.success());
    let n_kills = killed_and_resumed(&place, &[0, 1, 7, 8, 21, 33]);
    assert!(n_kills > 0, "every run was faster than its kill");
    let (mut whole, mut killed) = (files(&place, "whole"), files(&place, "killed"));
    let finished = |journal: Vec<u8>| -> Vec<serde_json::Value> {
        String::from_utf8(journal).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    let records = finished(killed.remove("run.journal").unwrap());
    assert_eq!(records, finished(whole.remove("run.journal").unwrap()), "each file is finished once");
    whole.remove("run.json");
    killed.remove("run.json");
    assert!(whole == killed, "{:?}", killed.keys());
}

#[test]
fn full_texts_and_tables_of_notes_are_linked() {
    let place = Workplace::with_shapes();
    std::fs::create_dir(place.path("in")).unwrap();
    place.write(
        "in/1.nxml",
        "<?xml version='1.0'?><article><front><article-meta><article-id pub-id-type='pmc'>5</article-id></article-meta></front>\
         <body><sec><title>Results</title><p>A trigon.</p><fig><caption><p>A ring shape.</p></caption></fig></sec></body></article>",
    );
    place.write("in/2.csv", "note_id,note\nn1,\"A circle,\nand a square.\"\nn2\nn3,A trigon.\n");
    let columns = ["in", "--id-column", "note_id", "--text-column", "note", "--skip-bad-documents", "bad.jsonl"];
    let output = place.run(&link(&[&columns[..], &["--to", "tsv"]].concat()), "");
    let rows = String::from_utf8(output.stdout).unwrap();
    let columns: Vec<String> = rows.lines().map(|line| line.rsplit_once('\t').unwrap().0.to_owned()).collect();
    expect![[r#"
        PMC5	10	16	trigon	Polygon	X:S4	Triangle
        PMC5	20	30	ring shape	Curve	X:S1	Circle
        n1	2	8	circle	Curve	X:S1	Circle
        n1	16	22	square	Polygon	X:S2	Square
        n3	2	8	trigon	Polygon	X:S4	Triangle
    "#]]
    .assert_eq(&(columns.join("\n") + "\n"));
    expect![[r#"
        {"file":"in/2.csv","line":4,"id":"n2","error":"expected 2 fields as in the header, found 1","hint":"put fields that contain separators or line breaks in quotes"}
    "#]]
    .assert_eq(&std::fs::read_to_string(place.path("bad.jsonl")).unwrap());
}
