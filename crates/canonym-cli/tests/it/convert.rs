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
    place.check(&["convert", "--to", "jsonl", "gold.txt", "-"], expect![[""]]);
    place.check(&["convert", "--to", "biosyn", "gold.txt", "-"], expect![[""]]);
    place.check(&["convert", "--to", "conll", "--tags", "bioes", "gold.txt", "-"], expect![[""]]);
    place.check(&["convert", "--to", "brat", "gold.txt", "folder"], expect![[""]]);
    assert_eq!(std::fs::read_to_string(place.path("folder/7.txt")).unwrap(), "A rod and cone cell. It dies.");
    expect![[""]].assert_eq(&std::fs::read_to_string(place.path("folder/7.ann")).unwrap());
    place.check(&["convert", "--to", "pubtator", "folder", "-"], expect![[""]]);
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
fn folders_are_new_or_empty() {
    let place = Workplace::new();
    place.write("gold.txt", GOLD);
    std::fs::create_dir(place.path("empty")).unwrap();
    let to = |folder: &str| place.run(&["convert", "--to", "brat", "gold.txt", folder], "");
    assert!(to("empty").status.success());
    expect![[""]].assert_eq(&place.describe(&to("empty")));
    place.check(&["convert", "--to", "brat", "gold.txt", "-"], expect![[""]]);
    place.check(&["link", "--text", "fever", "--to", "brat"], expect![[""]]);
    place.check(&["convert", "--from", "brat", "--to", "jsonl", "-", "-"], expect![[""]]);
}

#[test]
fn links_are_written_as_brat() {
    let place = Workplace::with_shapes();
    place.write("note.txt", "A ring shape.\n");
    let arguments = ["link", "note.txt", "--kb", "shapes.kb", "--to", "brat", "--output", "links"];
    let output = place.run(&arguments, "");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    expect![[""]].assert_eq(&std::fs::read_to_string(place.path("links/note.ann")).unwrap());
    expect![[""]].assert_eq(&String::from_utf8(output.stderr).unwrap());
}

#[test]
fn wrong_offsets_are_repaired_and_listed() {
    let place = Workplace::new();
    place.write("shifted.txt", SHIFTED);
    place.check(&["convert", "--to", "pubtator", "--fix-offsets", "shifted.txt", "-"], expect![[""]]);
    place.check(
        &["convert", "--to", "pubtator", "--fix-offsets", "--skip-bad-offsets", "shifted.txt", "-"],
        expect![[""]],
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
