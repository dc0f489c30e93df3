//! `canonym link --changed-only` and `canonym kb diff --exit-code`.

use std::fmt::Write as _;

use expect_test::expect;

use crate::support::Workplace;

/// Two releases of a terminology, and texts that mention some of it.
fn releases() -> Workplace {
    let place = Workplace::new();
    let parts = ["liver", "kidney", "heart", "lung", "skin", "bone", "colon", "brain", "breast", "ovarian"];
    let kinds = ["cancer", "failure", "inflammation", "pain", "cyst", "fibrosis"];
    let (mut old, mut new, mut texts) = (String::new(), String::new(), String::new());
    for (row, part) in parts.iter().enumerate() {
        for (column, kind) in kinds.iter().enumerate() {
            let line = format!("D{row}{column}\t{part} {kind}\t{kind} of the {part}\tDisease\n");
            match (row, column) {
                (0, 0) => old += &line,
                (1, 1) => new += &line,
                (2, 2) => {
                    old += &line;
                    writeln!(new, "D22\t{part} {kind}\tcarditis\tDisease").unwrap();
                }
                _ => {
                    old += &line;
                    new += &line;
                }
            }
            let other = parts[(row + 3) % parts.len()];
            let text = format!(
                "A case of {part} {kind} and {other} pain. No {kind}s of the {other}, but MS and carditis {row}."
            );
            let short = format!("{part} {kind}");
            writeln!(texts, "{{\"id\":\"{row}-{column}\",\"text\":\"{text}\"}}").unwrap();
            writeln!(texts, "{{\"id\":\"{row}-{column}-short\",\"text\":\"{short}\"}}").unwrap();
        }
    }
    for table in [&mut old, &mut new] {
        *table += "M1\tMultiple sclerosis\t\tDisease\n";
    }
    place.write("old.tsv", old);
    place.write("new.tsv", new);
    place.write("texts.jsonl", texts);
    for name in ["old", "new"] {
        let (table, file) = (format!("{name}.tsv"), format!("{name}.kb"));
        let output = place.run(&["kb", "build", &table, "--prefix", "X", "--out", &file], "");
        assert!(output.status.success(), "{}", place.describe(&output));
    }
    place
}

fn link(place: &Workplace, arguments: &[&str]) -> String {
    let output = place.run(&[&["link"], arguments].concat(), "");
    assert!(output.status.success(), "{}", place.describe(&output));
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn linking_what_changed_equals_linking_everything() {
    let place = releases();
    let lexical = ["--model", "lexical", "--kb"];
    link(&place, &[&lexical[..], &["old.kb", "texts.jsonl", "-o", "before.jsonl"]].concat());
    link(&place, &[&lexical[..], &["new.kb", "texts.jsonl", "-o", "full.jsonl"]].concat());
    let said = link(
        &place,
        &[&lexical[..], &["new.kb", "before.jsonl", "--changed-only", "old.kb", "-o", "after.jsonl"]].concat(),
    );
    let read = |name: &str| std::fs::read_to_string(place.path(name)).unwrap();
    assert_eq!(read("after.jsonl"), read("full.jsonl"));
    assert_ne!(read("before.jsonl"), read("full.jsonl"));
    assert!(said.starts_with("3 new, changed or removed concepts\nlinked "), "{said}");
    assert!(!said.contains("; 0 documents kept"), "{said}");
    // With the terminology that was used before, nothing is linked again.
    let same = [&lexical[..], &["new.kb", "full.jsonl", "--changed-only", "new.kb", "-o", "same.jsonl"]].concat();
    assert_eq!(
        link(&place, &same),
        "0 new, changed or removed concepts\nlinked 0 documents again; 120 documents kept\n"
    );
    assert_eq!(read("same.jsonl"), read("full.jsonl"));
}

#[test]
fn a_run_folder_is_input_of_the_next_run() {
    let place = releases();
    link(&place, &["--model", "lexical", "--kb", "old.kb", "texts.jsonl", "--output", "run1/"]);
    link(&place, &["--model", "lexical", "--kb", "new.kb", "run1", "--changed-only", "old.kb", "--output", "run2/"]);
    link(&place, &["--model", "lexical", "--kb", "new.kb", "texts.jsonl", "-o", "full.jsonl"]);
    let linked = std::fs::read(place.path("run2/texts.jsonl.jsonl.jsonl")).unwrap();
    assert!(linked == std::fs::read(place.path("full.jsonl")).unwrap());
}

#[test]
fn a_run_folder_that_was_linked_otherwise_is_refused() {
    let place = releases();
    place.write("texts.jsonl", "{\"id\":\"1\",\"text\":\"No liver cancer.\"}\n");
    link(&place, &["--model", "lexical", "--kb", "old.kb", "texts.jsonl", "--output", "run1/", "--compress", "gz"]);
    let again = |new: &str, old: &str, more: &[&str]| {
        let arguments = ["link", "--kb", new, "run1", "--changed-only", old, "--output", "run2/"];
        let output = place.run(&[&arguments[..], more].concat(), "");
        std::fs::remove_dir_all(place.path("run2")).ok();
        place.describe(&output)
    };
    let lexical = ["--model", "lexical"];
    let mut all = again("old.kb", "new.kb", &lexical);
    all += &again("new.kb", "old.kb", &[&lexical[..], &["--top-k", "3"]].concat());
    expect![[r#"
        status 1
        --- stderr
        error: run1 was linked with another knowledge base: old 4c275b9f3b15cb0da7f79db24d1b3a85, not new [HASH]
        hint: pass the knowledge base that it was linked with, and the same model and options; or link everything again
        status 1
        --- stderr
        error: run1 was linked with another --top-k: not given, not 3
        hint: pass the knowledge base that it was linked with, and the same model and options; or link everything again
    "#]]
    .assert_eq(&all);
    let said = again("new.kb", "old.kb", &["--model", "default"]);
    assert!(said.contains("error: run1 was linked with another model: lexical "), "{said}");
    // Also if one of its files is given.
    let output = place.run(&["link", "--kb", "old.kb", "run1/texts.jsonl.jsonl.gz", "--changed-only", "new.kb"], "");
    assert_eq!(output.status.code(), Some(1));
    assert!(again("new.kb", "old.kb", &lexical).starts_with("status 0\n"));
}

#[test]
fn an_approximation_is_announced() {
    let place = releases();
    place.write("texts.jsonl", "{\"id\":\"1\",\"text\":\"No liver cancer.\"}\n");
    link(&place, &["--kb", "old.kb", "texts.jsonl", "--output", "run1/"]);
    let said = link(&place, &["--kb", "new.kb", "run1", "--changed-only", "old.kb", "--output", "run2/"]);
    assert!(said.starts_with("the result is approximate: "), "{said}");
}

#[test]
fn options_that_do_not_fit_are_refused() {
    let place = Workplace::with_shapes();
    place.write("a.jsonl", "");
    let link = ["link", "--kb", "shapes.kb", "a.jsonl", "--changed-only", "shapes.kb"];
    for more in [&["--mentions", "gold"][..], &["--only-types", "Curve"], &["--to", "tsv"], &["--explain"]] {
        assert_eq!(place.run(&[&link[..], more].concat(), "").status.code(), Some(2), "{more:?}");
    }
}

#[test]
fn changes_of_a_terminology_have_a_status() {
    let place = releases();
    assert_eq!(place.run(&["kb", "diff", "old.kb", "new.kb"], "").status.code(), Some(0));
    place.check(
        &["kb", "diff", "old.kb", "old.kb", "--exit-code", "--limit", "0"],
        expect![[r#"
        status 0
        --- stdout
        old     old, 60 concepts
        new     old, 60 concepts
        counts  60  concepts unchanged
    "#]],
    );
    let output = place.run(&["kb", "diff", "old.kb", "new.kb", "--json", "--exit-code"], "");
    assert_eq!(output.status.code(), Some(1));
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["n_changes"], 3);
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(said, "error: 3 changed concepts in new.kb\nhint: omit `--exit-code` if changes are expected\n");
    // Failures are told apart from changes.
    place.write("damaged.kb", "no knowledge base");
    place.check(
        &["kb", "diff", "old.kb", "missing.kb", "--exit-code"],
        expect![[r#"
        status 2
        --- stderr
        error: cannot compare
          caused by: cannot open the knowledge base
          caused by: cannot open missing.kb
          caused by: No such file or directory (os error 2)
        hint: check the path; relative paths are resolved from the current folder
    "#]],
    );
    assert_eq!(place.run(&["kb", "diff", "old.kb", "damaged.kb", "--exit-code"], "").status.code(), Some(2));
    assert_eq!(place.run(&["kb", "diff", "old.kb", "damaged.kb"], "").status.code(), Some(1));
}
