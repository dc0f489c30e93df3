//! Files that are cut off, wrong or made to do harm: each gets its message, and nothing is left behind.
//!
//! `tests/hostile/make.py` wrote them and `cases.tsv`; what has to be said stands in `tests/hostile/expected`.

use std::path::{Path, PathBuf};

use expect_test::expect_file;

use crate::support::Workplace;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/hostile")
}

/// Name of the file and arguments of the program.
fn cases() -> Vec<(String, String)> {
    let table = std::fs::read_to_string(folder().join("cases.tsv")).unwrap();
    let pair = |line: &str| line.split_once('\t').map(|(name, words)| (name.to_owned(), words.to_owned())).unwrap();
    table.lines().map(pair).collect()
}

#[test]
fn hostile_files_get_their_message() {
    let mut wrong = String::new();
    for (name, words) in cases() {
        let place = Workplace::new();
        place.write(&name, std::fs::read(folder().join("files").join(&name)).unwrap());
        let words: Vec<&str> = words.split(' ').map(|word| if word == "{}" { name.as_str() } else { word }).collect();
        let output = place.run(&words, "");
        let said = place.describe(&output);
        let failed = output.status.code() != Some(0);
        if !matches!(output.status.code(), Some(0..=2)) || said.contains("panicked") {
            wrong += &format!("{name} brings the program down: {said}\n");
        } else if failed && !said.contains("\nhint: ") {
            wrong += &format!("{name} has no hint: {said}\n");
        } else if failed && place.names() != [name.as_str()] {
            wrong += &format!("{name} leaves {:?} behind\n", place.names());
        }
        expect_file![folder().join("expected").join(format!("{name}.txt"))].assert_eq(&said);
    }
    assert_eq!(wrong, "");
}

#[test]
fn there_are_at_least_sixty_and_none_is_forgotten() {
    let mut named: Vec<String> = cases().into_iter().map(|(name, _)| name).collect();
    named.sort();
    assert!(named.len() >= 60);
    let files = std::fs::read_dir(folder().join("files")).unwrap();
    let mut present: Vec<String> =
        files.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
    present.sort();
    assert_eq!(named, present);
}
