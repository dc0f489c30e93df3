//! Output that cannot be written.
#![cfg(unix)]

use std::fs::File;
use std::process::{Output, Stdio};

use expect_test::expect;

use crate::support::{SHAPES, Workplace};

#[test]
fn a_reader_that_goes_away_is_no_fault() {
    let place = Workplace::with_shapes();
    place.write("names.txt", "circle\n".repeat(5000));
    for arguments in [&["kb", "info", "starter"][..], &["map", "names.txt", "--kb", "shapes.kb"][..]] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output = place.command(arguments).stdin(Stdio::null()).stdout(writer).output().unwrap();
        assert_eq!(place.describe(&output), "status 0\n");
    }
}

#[test]
fn a_full_disk_is_an_error() {
    let full = std::path::Path::new("/dev/full");
    if !full.exists() {
        eprintln!("skipped: {} is not there", full.display());
        return;
    }
    let place = Workplace::with_shapes();
    place.write("names.txt", "circle\n");
    let run = |arguments: &[&str]| {
        let out = File::options().write(true).open(full).unwrap();
        place.describe(&place.command(arguments).stdin(Stdio::null()).stdout(out).output().unwrap())
    };
    expect![[r#"
        status 1
        --- stderr
        error: cannot write to standard output
          caused by: No space left on device (os error 28)
    "#]]
    .assert_eq(&run(&["kb", "show", "shapes.kb", "X:S1"]));
    expect![[r#"
        status 1
        --- stderr
        error: cannot write the result
          caused by: No space left on device (os error 28)
    "#]]
    .assert_eq(&run(&["map", "names.txt", "--kb", "shapes.kb"]));
    let lost = File::options().write(true).open(full).unwrap();
    let output = place.command(&["kb", "show", "shapes.kb", "nothing"]).stderr(lost).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
}

/// Runs the program where no file may grow beyond some KiB, which fails as a full disk does.
fn run_limited(place: &Workplace, arguments: &str) -> Output {
    let script = format!("trap '' XFSZ; ulimit -f 8; exec \"$0\" {arguments}");
    let mut shell = std::process::Command::new("sh");
    shell.args(["-c", &script, env!("CARGO_BIN_EXE_canonym")]).current_dir(place.path(""));
    shell.output().unwrap()
}

#[test]
fn a_file_that_may_not_grow_leaves_the_old_one_in_place() {
    let place = Workplace::new();
    place.write("shapes.tsv", SHAPES);
    place.write("shapes.kb", "old");
    let output = run_limited(&place, "kb build shapes.tsv --out shapes.kb");
    expect![[r#"
        status 1
        --- stderr
        error: cannot write shapes.kb
          caused by: File too large (os error 27)
    "#]]
    .assert_eq(&place.describe(&output));
    assert_eq!(std::fs::read_to_string(place.path("shapes.kb")).unwrap(), "old");
    assert_eq!(place.names(), ["shapes.kb", "shapes.tsv"]);
}

#[test]
fn an_index_goes_on_when_there_is_space_again() {
    let place = Workplace::new();
    let table: String = (0..200).map(|row| format!("N{row}\tshape number {row} of many\n")).collect();
    place.write("many.tsv", table);
    assert!(place.run(&["kb", "build", "many.tsv", "--out", "many.kb"], "").status.success());
    let output = run_limited(&place, "index build --kb many.kb");
    expect![[r#"
        status 1
        --- stderr
        error: cannot build the index
          caused by: cannot write .many.index.partial
          caused by: File too large (os error 27)
    "#]]
    .assert_eq(&place.describe(&output));
    assert_eq!(place.names(), [".many.index.partial", "many.kb", "many.tsv"]);
    let build = |out: &str| {
        let output = place.run(&["index", "build", "--kb", "many.kb", "--out", out], "");
        assert!(output.status.success(), "{}", place.describe(&output));
        std::fs::read(place.path(out)).unwrap()
    };
    assert!(build("many.index") == build("whole.index"));
    assert_eq!(place.names(), ["many.index", "many.kb", "many.tsv", "whole.index"]);
}

#[test]
fn a_run_is_resumed_when_there_is_space_again() {
    let place = Workplace::with_shapes();
    std::fs::create_dir(place.path("in")).unwrap();
    place.write("in/a.txt", "A circle.");
    let lines = (0..200).map(|row| format!("{{\"id\":\"{row}\",\"text\":\"A ring shape, a trigon.\"}}\n"));
    place.write("in/b.jsonl", lines.collect::<String>());
    let link = ["link", "--model", "lexical", "--kb", "shapes.kb", "in", "--output"];
    let output = run_limited(&place, &[&link[..], &["run/"]].concat().join(" "));
    expect![[r#"
        status 1
        --- stderr
        error: cannot write run/b.jsonl.jsonl
          caused by: File too large (os error 27)
    "#]]
    .assert_eq(&place.describe(&output));
    let names = |folder: &str| -> Vec<String> {
        let entries = std::fs::read_dir(place.path(folder)).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    };
    assert_eq!(names("run"), [".lock", "a.txt.jsonl", "run.journal", "run.json"]);
    place.check(
        &["link", "--resume", "run"],
        expect![[r#"
            status 0
            --- stderr
            1 of 2 files are finished
            linked 1 file with 200 documents into run
        "#]],
    );
    assert!(place.run(&[&link[..], &["whole/"]].concat(), "").status.success());
    let read = |folder: &str| std::fs::read(place.path(folder).join("b.jsonl.jsonl")).unwrap();
    assert!(read("run") == read("whole"));
}

#[test]
fn messages_have_colours_on_a_terminal_or_where_they_are_forced() {
    let place = Workplace::with_shapes();
    // A cache that is no folder cannot keep vectors, which is told.
    let coloured = |set: &[(&str, &str)]| {
        let mut command = place.command(&["map", "--model", "default", "--kb", "shapes.kb", "-"]);
        command.env("CANONYM_CACHE", place.path("shapes.kb")).env_remove("NO_COLOR").env_remove("CLICOLOR_FORCE");
        let told = String::from_utf8(Workplace::finish(command.envs(set.iter().copied()), "").stderr).unwrap();
        assert!(told.contains("cannot cache the name embeddings"), "{told}");
        told.contains('\u{1b}')
    };
    assert!(!coloured(&[]));
    assert!(!coloured(&[("CLICOLOR_FORCE", "0")]));
    assert!(!coloured(&[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")]));
    assert!(coloured(&[("CLICOLOR_FORCE", "1")]));
}
