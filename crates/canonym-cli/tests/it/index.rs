//! `canonym index`: built, updated, interrupted, and used by `link` and `map`.

use std::fmt::Write as _;
use std::process::Stdio;
use std::time::{Duration, Instant};

use expect_test::expect;

use crate::support::Workplace;

const MAP: [&str; 7] = ["map", "--model", "default", "--kb", "shapes.kb", "--top-k", "3"];

/// What a command printed; it must succeed.
fn said(place: &Workplace, arguments: &[&str], input: &str) -> String {
    let output = place.run(arguments, input);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Messages of a successful build, without its time.
fn built(place: &Workplace, more: &[&str]) -> String {
    let output = place.run(&[&["index", "build", "--kb", "shapes.kb"], more].concat(), "");
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{text}");
    text.lines().skip(1).flat_map(|line| [line, "\n"]).collect()
}

#[test]
fn an_index_links_as_the_vectors_in_memory_do() {
    let place = Workplace::with_shapes();
    let queries = "circl\npie slise\nregular quad\ntrigon\n";
    let before = said(&place, &[&MAP[..], &["-"]].concat(), queries);
    let text = ["link", "--kb", "shapes.kb", "--text", "A ring shap and a trigons.", "--to", "jsonl"];
    let linked = said(&place, &text, "");
    expect![[r#"
        vectors  f16, 160 dimensions
        names    10  embedded
    "#]]
    .assert_eq(&built(&place, &[]));
    assert!(place.names().contains(&"shapes.index".to_owned()));
    // Found beside the knowledge base.
    assert_eq!(said(&place, &[&MAP[..], &["-"]].concat(), queries), before);
    assert_eq!(said(&place, &text, ""), linked);
    // Given; in 8 bits scores differ a little, but not the concepts.
    std::fs::remove_file(place.path("shapes.index")).unwrap();
    built(&place, &["--out", "small.index", "--precision", "int8"]);
    let ids = |lines: &str| -> Vec<String> {
        let first = |line: &str| {
            let value: serde_json::Value = serde_json::from_str(line).unwrap();
            value["candidates"][0]["id"].to_string()
        };
        lines.lines().map(first).collect()
    };
    let given = said(&place, &[&MAP[..], &["--index", "small.index", "-"]].concat(), queries);
    assert_eq!(ids(&given), ids(&before));
    let filtered = [&MAP[..], &["--index", "small.index", "--only-types", "Curve", "-"]].concat();
    assert_eq!(ids(&said(&place, &filtered, "circl\n")), [r#""X:S1""#]);
    let info: serde_json::Value =
        serde_json::from_str(&said(&place, &["index", "info", "small.index", "--json"], "")).unwrap();
    assert_eq!((&info["precision"], &info["n_rows"], &info["kb_name"]), (&"int8".into(), &10.into(), &"shapes".into()));
}

#[test]
fn an_update_embeds_only_names_that_are_new() {
    let place = Workplace::with_shapes();
    built(&place, &[]);
    let first = std::fs::read(place.path("shapes.index")).unwrap();
    expect![[r#"
        vectors  f16, 160 dimensions
        names    10  taken from the index that was there
    "#]]
    .assert_eq(&built(&place, &[]));
    assert_eq!(std::fs::read(place.path("shapes.index")).unwrap(), first);
    // One name is replaced, one is new.
    place
        .write("shapes.tsv", crate::support::SHAPES.replace("pie slice", "wedge").replace("quad\t", "quad|tetragon\t"));
    said(&place, &["kb", "build", "shapes.tsv", "--prefix", "X", "--out", "shapes.kb"], "");
    place.check_input(
        &[&MAP[..], &["-"]].concat(),
        "",
        expect![[r#"
            status 0
            --- stderr
            warning: shapes.index is not used: the index shapes.index was built with another knowledge base (shapes); update it with `canonym index build`, which embeds only names that are new
            no names in standard input
        "#]],
    );
    expect![[r#"
        vectors  f16, 160 dimensions
        names    2  embedded
                 9  taken from the index that was there
                 1  removed
    "#]]
    .assert_eq(&built(&place, &[]));
    let updated = std::fs::read(place.path("shapes.index")).unwrap();
    std::fs::remove_file(place.path("shapes.index")).unwrap();
    built(&place, &[]);
    assert_eq!(std::fs::read(place.path("shapes.index")).unwrap(), updated, "the same as a new one");
}

#[test]
fn what_cannot_be_used_says_why() {
    let place = Workplace::with_shapes();
    built(&place, &[]);
    let bytes = std::fs::read(place.path("shapes.index")).unwrap();
    let mut damaged = bytes.clone();
    damaged[bytes.len() / 2] ^= 1;
    place.write("damaged.index", damaged);
    place.write("cut.index", &bytes[..bytes.len() / 2]);
    place.write("other.tsv", "T1\tTorus\n");
    said(&place, &["kb", "build", "other.tsv", "--out", "other.kb"], "");
    let mut all = String::new();
    let cases: [&[&str]; 6] = [
        &["map", "-", "--model", "default", "--kb", "shapes.kb", "--index", "damaged.index"],
        &["map", "-", "--model", "default", "--kb", "shapes.kb", "--index", "cut.index"],
        &["map", "-", "--model", "default", "--kb", "shapes.kb", "--index", "shapes.kb"],
        &["map", "-", "--model", "default", "--kb", "other.kb", "--index", "shapes.index"],
        &["map", "-", "--model", "lexical", "--kb", "shapes.kb", "--index", "shapes.index"],
        &["index", "build", "--kb", "starter"],
    ];
    for arguments in cases {
        writeln!(all, "{}", place.describe(&place.run(arguments, "circle\n"))).unwrap();
    }
    expect![[r#"
        status 1
        --- stderr
        error: cannot open the index
          caused by: cannot use damaged.index: its section `values` is damaged
        hint: rebuild it with `canonym index build`

        status 1
        --- stderr
        error: cannot open the index
          caused by: cannot use cut.index: it is truncated: 2456 of 4912 bytes
        hint: rebuild it with `canonym index build`

        status 1
        --- stderr
        error: cannot open the index
          caused by: cannot use shapes.kb: it is not a compiled name index
        hint: build one with `canonym index build`

        status 1
        --- stderr
        error: the index shapes.index was built with another knowledge base (shapes)
        hint: update it with `canonym index build`, which embeds only names that are new

        status 2
        --- stderr
        error: this model does not search names by embedding
        hint: omit `--index`, or use `--model default`

        status 2
        --- stderr
        error: the embedded starter has no file beside which its index could be
        hint: add `--out`

    "#]]
    .assert_eq(&all);
}

#[test]
fn a_build_that_is_killed_goes_on_and_ends_with_the_same_file() {
    let place = Workplace::with_shapes();
    let mut table = String::new();
    for number in 0..12_000 {
        writeln!(table, "N{number}\tshape number {number} of many").unwrap();
    }
    place.write("many.tsv", table);
    said(&place, &["kb", "build", "many.tsv", "--out", "many.kb"], "");
    let build = ["index", "build", "--kb", "many.kb", "--out", "many.index", "--threads", "1"];
    let partial = place.path(".many.index.partial");
    let mut child = place.command(&build).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    // Killed when the first part, 8,192 vectors of 320 bytes, is on disk and the second one has begun.
    let started = Instant::now();
    while std::fs::metadata(&partial).map_or(0, |metadata| metadata.len()) < (8192 * 320) + (64 << 10) {
        if child.try_wait().unwrap().is_some() {
            break;
        }
        assert!(started.elapsed() < Duration::from_secs(300));
        std::thread::yield_now();
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let was_killed = partial.exists();
    place.write(".many.index.7-0123456789abcdef.tmp", "left behind");
    let output = place.run(&build, "");
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{text}");
    // All of the names where the machine was too busy to kill it in time.
    let kept = ["8,192", "12,000"].map(|count| format!("{count}  embedded by the interrupted build"));
    assert!(!was_killed || kept.iter().any(|line| text.contains(line)), "{text}");
    let resumed = std::fs::read(place.path("many.index")).unwrap();
    let left: Vec<String> = place.names().into_iter().filter(|name| name.starts_with('.')).collect();
    assert!(left.is_empty(), "{left:?}");
    std::fs::remove_file(place.path("many.index")).unwrap();
    assert!(place.run(&build[..6], "").status.success());
    assert_eq!(std::fs::read(place.path("many.index")).unwrap(), resumed, "on any number of threads");
}
