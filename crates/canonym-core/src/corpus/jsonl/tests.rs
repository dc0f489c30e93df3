use expect_test::{Expect, expect};

use super::*;
use crate::corpus::Reader;

fn read(text: &str) -> Vec<Result<AnnotatedDocument>> {
    let input = Input::from_bytes("in", text.as_bytes().to_vec()).unwrap();
    Reader::from_input(input, Some(CorpusFormat::Jsonl)).unwrap().collect()
}

/// The lines written for the documents read.
fn check(text: &str, expect: Expect) {
    let mut shown = String::new();
    for item in read(text) {
        match item {
            Ok(read) => {
                let mut out = Vec::new();
                write(&read, &mut out).unwrap();
                shown.push_str(&String::from_utf8(out).unwrap());
            }
            Err(error) => shown.push_str(&format!("{error} (hint: {})\n", error.hint().unwrap_or("none"))),
        }
    }
    expect.assert_eq(&shown);
}

#[test]
fn gold_annotations_keep_their_ids() {
    check(
        r#"{"id":7,"text":"β pain","annotations":[{"spans":[[2,6]],"text":"pain","ids":["D1","D2"]},{"id":"D3","spans":[[0,1]],"type":"Letter","other":[1]},{"spans":[[0,1]]}]}"#,
        expect![[r#"
                {"id":"7","text":"β pain","annotations":[{"spans":[[2,6]],"text":"pain","ids":["D1","D2"]},{"spans":[[0,1]],"text":"β","type":"Letter","ids":["D3"]},{"spans":[[0,1]],"text":"β","ids":[]}]}
            "#]],
    );
}

#[test]
fn linked_annotations_keep_the_contract() {
    let line = r#"{"id":"8","text":"No pain, ever.","annotations":[{"spans":[[3,7]],"text":"pain","type":"Finding","score":0.97,"nil":false,"candidates":[{"id":"MESH:D010146","name":"Pain","score":0.97},{"id":"X:1","name":"x","score":0.00004}]},{"spans":[[0,2],[9,13]],"text":"No ever","type":"","score":1.0,"nil":true,"candidates":[]}]}"#;
    check(
        line,
        expect![[r#"
            {"id":"8","text":"No pain, ever.","annotations":[{"spans":[[3,7]],"text":"pain","type":"Finding","score":0.97,"nil":false,"candidates":[{"id":"MESH:D010146","name":"Pain","score":0.97},{"id":"X:1","name":"x","score":0.0}]},{"spans":[[0,2],[9,13]],"text":"No ever","type":"","score":1.0,"nil":true,"candidates":[]}]}
        "#]],
    );
    let read = read(line).remove(0).unwrap();
    assert_eq!(read.annotations[0].ids, ["MESH:D010146"]);
    assert!(read.annotations[1].ids.is_empty());
}

#[test]
fn text_may_come_as_title_and_abstract() {
    check(
        "{\"title\":\"A.\",\"abstract\":\"B.\"}\n\n{\"pmid\":3,\"abstract\":\"B.\"}\n{\"id\":null,\"title\":\"\",\"abstract\":\"B.\",\"annotations\":null}",
        expect![[r#"
                {"id":"1","text":"A. B.","annotations":[],"sections":[{"type":"title","span":[0,2]},{"type":"abstract","span":[3,5]}]}
                {"id":"3","text":"B.","annotations":[],"sections":[{"type":"abstract","span":[0,2]}]}
                {"id":"4","text":" B.","annotations":[],"sections":[{"type":"title","span":[0,0]},{"type":"abstract","span":[1,3]}]}
            "#]],
    );
}

#[test]
fn malformed_lines_are_named_and_passed_over() {
    check(
        "{\n{\"text\":5}\n[]\n{\"id\":\"x\"}\n{\"id\":1.5,\"text\":\"\"}\n{\"text\":\"good\"}",
        expect![[r#"
            in:1: invalid document at column 1: EOF while parsing an object (hint: each line is one JSON object with `id`, `text` and `annotations`)
            in:2: invalid document at column 9: invalid type: integer `5`, expected a string (hint: each line is one JSON object with `id`, `text` and `annotations`)
            in:3: expected a JSON object, found `[]` (hint: each line is one JSON object with `id`, `text` and `annotations`)
            in:4: document `x` has no text (hint: add a field `text`, or `title` and `abstract`)
            in:5: invalid document at column 9: an id must be a string or an integer (hint: each line is one JSON object with `id`, `text` and `annotations`)
            {"id":"6","text":"good","annotations":[]}
        "#]],
    );
    check(
        r#"{"text":"pain","annotations":[{"text":"pain"}]}"#,
        expect![[r#"
            in:1: invalid document at column 45: missing field `spans` (hint: each line is one JSON object with `id`, `text` and `annotations`)
        "#]],
    );
    check(
        r#"{"text":"pain","annotations":[{"spans":[],"text":"pain"}]}"#,
        expect![[r#"
                in:1: document `1`: `pain` has no span (hint: repair unambiguous offsets (option `--fix-offsets`), or skip and count such annotations (option `--skip-bad-offsets`))
            "#]],
    );
    check(
        r#"{"text":"pain","annotations":[{"spans":[[0,-4]]}]}"#,
        expect![[r#"
            in:1: invalid document at column 45: invalid value: integer `-4`, expected u64 (hint: each line is one JSON object with `id`, `text` and `annotations`)
        "#]],
    );
    check(
        r#"{"text":"pain","annotations":[{"spans":[[0,4]],"text":"gain"}]}"#,
        expect![[r#"
                in:1: document `1`: the annotation is `gain` at 0..4, but the text there is `pain` (hint: repair unambiguous offsets (option `--fix-offsets`), or skip and count such annotations (option `--skip-bad-offsets`))
            "#]],
    );
    check(
        &"[".repeat(100_000),
        expect![[r#"
            in:1: expected a JSON object, found `[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[…` (hint: each line is one JSON object with `id`, `text` and `annotations`)
        "#]],
    );
    check(
        &format!("{{\"text\":\"\",\"x\":{}", "[".repeat(100_000)),
        expect![[r#"
            in:1: invalid document at column 100015: EOF while parsing a list (hint: each line is one JSON object with `id`, `text` and `annotations`)
        "#]],
    );
}

#[test]
fn state_of_the_review_is_kept_and_other_fields_of_its_name_are_not() {
    let line =
        r#"{"id":"1","text":"No pain.","annotations":[],"review":{"finished":true,"rejected":[{"spans":[[3,7]]}]}}"#;
    check(
        &format!("{line}\n{}", r#"{"text":"x","review":"two stars"}"#),
        expect![[r#"
            {"id":"1","text":"No pain.","annotations":[],"review":{"finished":true,"rejected":[{"spans":[[3,7]]}]}}
            {"id":"2","text":"x","annotations":[]}
        "#]],
    );
}
