//! Minimal PubTator files.

use expect_test::{Expect, expect};

use super::*;
use crate::corpus::{CandidateRecord, CorpusFormat, Reader};

fn read(bytes: &[u8]) -> Vec<Result<AnnotatedDocument>> {
    let input = Input::from_bytes("in", bytes.to_vec()).unwrap();
    Reader::from_input(input, Some(CorpusFormat::Pubtator)).unwrap().collect()
}

fn check(text: &str, expect: Expect) {
    let mut shown = String::new();
    for item in read(text.as_bytes()) {
        match item {
            Ok(read) => {
                shown.push_str(&format!("{} {:?}\n", read.document.id, read.document.text));
                for annotation in read.annotations {
                    let span = annotation.spans[0];
                    let (ids, parts) = (annotation.ids, annotation.parts);
                    let kind = annotation.semantic_type;
                    shown.push_str(&format!(
                        "  {}..{} {} {kind} {ids:?} {parts:?}\n",
                        span.start, span.end, annotation.text
                    ));
                }
                for relation in read.relations {
                    let targets: Vec<&str> = relation.arguments.iter().map(|one| one.target.as_str()).collect();
                    shown.push_str(&format!("  {} {}\n", relation.kind, targets.join(" ")));
                }
            }
            Err(error) => shown.push_str(&format!("{error} (hint: {})\n", error.hint().unwrap_or("none"))),
        }
    }
    expect.assert_eq(&shown);
}

fn written(document: &AnnotatedDocument) -> String {
    let mut out = Vec::new();
    match write(document, &mut out) {
        Ok(()) => String::from_utf8(out).unwrap(),
        Err(error) => error.to_string(),
    }
}

#[test]
fn columns_are_kept_as_written() {
    check(
        "\n7|t|Rat α-pain.\n7|a|A|b and c d.\n7\t4\t10\tα-pain\tDisease\tD1|D2\tα|pain\n7\t20\t21\tc\tGene\n7\tCID\tD1\tD2\n\n",
        expect![[r#"
            7 "Rat α-pain. A|b and c d."
              4..11 α-pain Disease ["D1|D2"] ["α", "pain"]
              21..22 c Gene [] []
              CID D1 D2
        "#]],
    );
}

#[test]
fn empty_titles_and_abstracts_keep_the_offsets() {
    check(
        "1|t|\n1|a|Pain.\n1\t1\t5\tPain\tD\t-1\n\n2|t|Pain.\n2|a|\n2\t0\t4\tPain\tD\t\n\n3|a|Pain.\n3\t0\t4\tPain\tD\tX\n",
        expect![[r#"
            1 " Pain."
              1..5 Pain D ["-1"] []
            2 "Pain."
              0..4 Pain D [""] []
            3 "Pain."
              0..4 Pain D ["X"] []
        "#]],
    );
}

#[test]
fn line_ends_and_blank_lines_do_not_matter() {
    check(
        "1|t|A.\r\n1|a|B.\r\n1\t0\t1\tA\tD\tX\r\n \r\n\r\n2|t|C.\n1|t|D.\n1|a|E.",
        expect![[r#"
        1 "A. B."
          0..1 A D ["X"] []
        2 "C."
        1 "D. E."
    "#]],
    );
}

#[test]
fn malformed_blocks_are_named_and_passed_over() {
    check(
        "A line of prose.\n\n1|t|A.\n",
        expect![[r#"
        in:1: expected `id|t|title`, found `A line of prose.` (hint: a document starts with its title; if this is not a PubTator file, specify the format)
        1 "A."
    "#]],
    );
    check(
        "1|t|A.\n1|a|B.\n1|a|C.\n\n1|t|A.\n",
        expect![[r#"
        in:3: document `1` has a second abstract (hint: separate documents by a blank line)
        1 "A."
    "#]],
    );
    check(
        "1|t|A.\n2|a|B.\n",
        expect![[r#"
        in:2: line of document `2` inside document `1` (hint: separate documents by a blank line)
    "#]],
    );
    check(
        "1|t|A.\n2\t0\t1\tA\tD\tX\n",
        expect![[r#"
        in:2: line of document `2` inside document `1` (hint: separate documents by a blank line)
    "#]],
    );
    check(
        "1|t|A.\n1\t0\t1\tA\n",
        expect![[r#"
        in:2: 4 columns, expected 5 to 7 (hint: the columns of an annotation are id, start, end, text, type, ids and part names, separated by tabs)
    "#]],
    );
    check(
        "1|t|A.\n1\t0\t-1\tA\tD\tX\n",
        expect![[r#"
        in:2: the offset `-1` is not an integer (hint: none)
    "#]],
    );
    check(
        "1|t|A.\n1\t0\t99999999999999999999\tA\tD\tX\n",
        expect![[r#"
        in:2: the offset `99999999999999999999` is not an integer (hint: none)
    "#]],
    );
    check(
        "1|t|A.\nno columns\n",
        expect![[r#"
        in:2: not a title, abstract, annotation or relation: `no columns` (hint: columns are separated by tabs)
    "#]],
    );
    check(
        "|t|A.\n",
        expect![[r#"
        in:1: the document has no id before the first `|` (hint: none)
    "#]],
    );
    check(
        "1|t|A pain.\n1\t0\t1\tB\tD\tX\n\n2|t|B.\n",
        expect![[r#"
            in:2: document `1`: the annotation is `B` at 0..1, but the text there is `A` (hint: repair unambiguous offsets (option `--fix-offsets`), or skip and count such annotations (option `--skip-bad-offsets`))
            2 "B."
        "#]],
    );
}

#[test]
fn line_that_is_not_utf8_costs_its_document_only() {
    let items = read(b"1|t|A.\n1|a|\xff\n1\t0\t1\tA\tD\tX\n2|t|B.\n");
    assert_eq!(items.len(), 2);
    assert_eq!(items[0].as_ref().unwrap_err().to_string(), "in:2: invalid UTF-8: byte 5 of the line (0xff)");
    assert_eq!(items[1].as_ref().unwrap().document.id, "2");
}

#[test]
fn title_ends_at_its_section_or_at_the_first_line_break() {
    let document = join_passages("1".to_owned(), Some("A. B\nC."), Some("D\r\nE."));
    let mut annotated = AnnotatedDocument { document, ..AnnotatedDocument::default() };
    expect![[r#"
        1|t|A. B C.
        1|a|D  E.

    "#]]
    .assert_eq(&written(&annotated));
    annotated.document.sections.clear();
    expect![[r#"
        1|t|A. B
        1|a|C. D  E.

    "#]]
    .assert_eq(&written(&annotated));
    annotated.document.text = "All of it.\n".to_owned();
    expect![[r#"
        1|t|All of it. 
        1|a|

    "#]]
    .assert_eq(&written(&annotated));
}

#[test]
fn linked_mentions_are_written_as_hull_and_first_candidate() {
    let document = join_passages("1".to_owned(), Some("rod and\tcone cells"), None);
    let mut annotated = AnnotatedDocument { document, ..AnnotatedDocument::default() };
    let candidate = CandidateRecord { id: "CL:1|CL:2".to_owned(), name: "rod".to_owned(), p_link: 0.5, p_both: None };
    let found = Annotation {
        spans: vec![Span::new(0, 3), Span::new(13, 18)],
        text: "rod cells".to_owned(),
        score: Some(0.5),
        candidates: vec![candidate],
        ..Annotation::default()
    };
    annotated.annotations = vec![Annotation { nil: true, ..found.clone() }, found];
    expect![[r#"
        1|t|rod and	cone cells
        1|a|
        1	0	18	rod and cone cells		-1
        1	0	18	rod and cone cells		CL:1|CL:2

    "#]]
    .assert_eq(&written(&annotated));
}

#[test]
fn values_with_separators_are_refused() {
    let mut annotated = AnnotatedDocument::default();
    annotated.document.id = "a|b".to_owned();
    expect!["PubTator cannot hold the document id `a|b`"].assert_eq(&written(&annotated));
    annotated.document.id = "\u{feff}a".to_owned();
    expect!["PubTator cannot hold the document id `\u{feff}a`"].assert_eq(&written(&annotated));
    annotated.document.id = "a\tb".to_owned();
    expect![[r#"PubTator cannot hold `a\tb` as id in document `a\tb`"#]].assert_eq(&written(&annotated));
    annotated.document.id = "1".to_owned();
    annotated.relations = vec![Relation::plain("12", &[])];
    expect!["a relation of document `1` does not start with its kind"].assert_eq(&written(&annotated));
}
