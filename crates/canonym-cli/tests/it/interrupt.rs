//! Builds that are ended from outside leave the old file whole.
#![cfg(unix)]

use std::fmt::Write as _;
use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};

use crate::support::Workplace;

/// A table that takes a moment to compile.
fn many_shapes() -> String {
    let mut table = String::new();
    for row in 0..40_000 {
        writeln!(table, "S{row}\tshape number {row} of many\tfigure {row}|form {row} with {} corners", row % 97)
            .unwrap();
    }
    table
}

/// Starts a build over an old file and sends `signal` while the new one is being written.
///
/// Where the build is faster than the test, it ended well and nothing was interrupted.
fn end_build(place: &Workplace, signal: &str) -> Option<i32> {
    place.write("many.tsv", many_shapes());
    place.write("many.kb", "old");
    let mut command = place.command(&["kb", "build", "many.tsv", "--out", "many.kb"]);
    let mut child = command.stdin(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let unfinished = format!(".many.kb.{}-", child.id());
    while running(&mut child) && !place.names().iter().any(|name| name.starts_with(&unfinished)) {
        std::thread::yield_now();
    }
    Command::new("kill").args([signal, &child.id().to_string()]).stderr(Stdio::null()).status().unwrap();
    child.wait().unwrap().code()
}

fn running(child: &mut Child) -> bool {
    child.try_wait().unwrap().is_none()
}

/// Where the signal came late, the new file is there, and whole.
fn is_old_or_whole(place: &Workplace) -> bool {
    std::fs::read(place.path("many.kb")).unwrap() == b"old"
        || place.run(&["kb", "info", "many.kb", "--verify"], "").status.success()
}

#[test]
fn an_interrupted_build_tidies_up() {
    let place = Workplace::new();
    let code = end_build(&place, "-INT");
    assert!(matches!(code, Some(0 | 130)), "status {code:?}");
    assert_eq!(place.names(), ["many.kb", "many.tsv"]);
    assert!(is_old_or_whole(&place));
}

#[test]
fn a_terminated_build_tidies_up_and_says_by_its_status_what_ended_it() {
    let place = Workplace::new();
    let code = end_build(&place, "-TERM");
    assert!(matches!(code, Some(0 | 143)), "status {code:?}");
    assert_eq!(place.names(), ["many.kb", "many.tsv"]);
    assert!(is_old_or_whole(&place));
}

#[test]
fn what_was_written_at_the_end_are_whole_lines() {
    let place = Workplace::with_shapes();
    for (signal, status) in [("-INT", 130), ("-TERM", 143), ("-HUP", 129)] {
        let mut command = place.command(&["map", "--kb", "shapes.kb", "-"]);
        let mut child = command.stderr(Stdio::null()).spawn().unwrap();
        let (mut input, mut output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        // Names without end: the program is in the middle of its work whenever the signal comes.
        let feeder = std::thread::spawn(move || while input.write_all(b"round thing\n").is_ok() {});
        let mut said = vec![0; 100_000];
        output.read_exact(&mut said).unwrap();
        Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap();
        output.read_to_end(&mut said).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(status));
        feeder.join().unwrap();
        assert!(said.ends_with(b"}\n"), "{}", String::from_utf8_lossy(&said[said.len() - 80..]));
    }
}

#[test]
fn a_killed_build_leaves_the_old_file_and_the_next_one_tidies_up() {
    let place = Workplace::new();
    end_build(&place, "-KILL");
    assert!(is_old_or_whole(&place));
    assert!(place.run(&["kb", "build", "many.tsv", "--out", "many.kb"], "").status.success());
    assert_eq!(place.names(), ["many.kb", "many.tsv"]);
}
