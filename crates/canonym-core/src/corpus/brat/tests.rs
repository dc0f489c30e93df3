//! Minimal brat files.

use std::fs;

use expect_test::{Expect, expect};

use super::*;
use crate::corpus::folder::FolderWriter;
use crate::corpus::{CandidateRecord, Reader, jsonl};
use crate::text::Span;

fn read(text: &str, annotations: &str) -> Result<AnnotatedDocument> {
    let text = Input::from_bytes("notes/7.txt", text.as_bytes().to_vec())?;
    let annotations = Input::from_bytes("notes/7.ann", annotations.as_bytes().to_vec())?;
    let read = Documents::new(text, Some(annotations)).read_next(&mut Checker::default())?;
    Ok(read.expect("there is one document"))
}

fn written(document: &AnnotatedDocument) -> String {
    let mut out = Vec::new();
    match write(document, &mut out) {
        Ok(()) => String::from_utf8(out).unwrap(),
        Err(error) => error.to_string(),
    }
}

/// The document read, as a JSON line.
fn check(text: &str, annotations: &str, expect: Expect) {
    let mut shown = Vec::new();
    match read(text, annotations) {
        Ok(read) => {
            assert_eq!(written(&read), annotations, "unchanged lines are written as they were");
            jsonl::write(&read, &mut shown).unwrap();
        }
        Err(error) => shown = format!("{error} (hint: {})\n", error.hint().unwrap_or("none")).into_bytes(),
    }
    expect.assert_eq(&String::from_utf8(shown).unwrap());
}

#[test]
fn every_kind_of_line_is_read() {
    check(
        "β rod and cone cells die.\n",
        concat!(
            "A1\tCategory T1 Modifier\n",
            "T1\tCell 2 5;15 20\trod cells\n",
            "\n",
            "N1\tReference T1 CL:0000604\tretinal rod cell\n",
            "N2\tReference T1 CL:1\t\n",
            "T2\tProcess 21 24\tdie\n",
            "M1\tNegation E1\n",
            "E1\tDeath:T2 Theme:T1\n",
            "R7\tCause Arg1:T1 Arg2:E1\t\n",
            "*\tEquiv T1 T2\n",
            "#1\tAnnotatorNotes T1\tnot sure, ask\n",
        ),
        expect![[r##"
            {"id":"7","text":"β rod and cone cells die.\n","annotations":[{"spans":[[2,5],[15,20]],"text":"rod cells","type":"Cell","ids":["CL:0000604","CL:1"],"key":"T1","attributes":[["Category","Modifier"],["AnnotatorNotes","not sure, ask"]]},{"spans":[[21,24]],"text":"die","type":"Process","ids":[],"key":"T2"}],"relations":[{"key":"E1","kind":"Death","arguments":[["Death","T2"],["Theme","T1"]],"attributes":{"Negation":""}},{"key":"R7","kind":"Cause","arguments":[["Arg1","T1"],["Arg2","E1"]]},{"key":"*","kind":"Equiv","arguments":[["","T1"],["","T2"]]}]}
        "##]],
    );
}

#[test]
fn malformed_lines_are_named() {
    check(
        "pain",
        "T1 Finding 0 4 pain\n",
        expect![[r#"
        notes/7.ann:1: expected tab-separated columns, found `T1 Finding 0 4 pain` (hint: none)
    "#]],
    );
    check(
        "pain",
        "T1\tFinding 0\tpain\n",
        expect![[r#"
        notes/7.ann:1: invalid offsets `0` (hint: an annotation is `T1`, its type with start and end, and its text, separated by tabs)
    "#]],
    );
    check(
        "pain",
        "T1\tFinding 0 4\tpain\nT1\tFinding 0 4\tpain\n",
        expect![[r#"
        notes/7.ann:2: duplicate key `T1` (hint: none)
    "#]],
    );
    check(
        "pain",
        "T1\tFinding 0 4\tgain\n",
        expect![[r#"
        notes/7.ann:1: document `7`: the annotation is `gain` at 0..4, but the text there is `pain` (hint: repair unambiguous offsets (option `--fix-offsets`), or skip and count such annotations (option `--skip-bad-offsets`))
    "#]],
    );
    check(
        "pain",
        "A1\tNegation T9\n",
        expect![[r#"
        notes/7.ann:1: an attribute or note refers to `T9`, which does not exist (hint: remove the line, or refer to another key)
    "#]],
    );
    check(
        "pain",
        "Q1\tNegation T9\n",
        expect![[r#"
        notes/7.ann:1: unknown brat annotation `Q1` (hint: lines start with T, N, A, M, R, E, * or #, and a number)
    "#]],
    );
}

#[test]
fn changed_documents_are_regenerated() {
    let mut document = read(
        "Pain\nin the chest, gout.\n",
        "A1\tCategory T4 Modifier\nT4\tFinding 0 17\tPain in the chest\nT5\tFinding 19 23\tgout\nE1\tHurts:T4 Theme:T5\n",
    )
    .unwrap();
    let found = Annotation {
        spans: vec![Span::new(19, 23)],
        text: "gout".to_owned(),
        semantic_type: "Rheumatic disease".to_owned(),
        score: Some(0.5),
        candidates: vec![CandidateRecord {
            id: "MESH:D006073".to_owned(),
            name: "Gout".to_owned(),
            p_link: 0.5,
            p_both: None,
        }],
        attributes: vec![
            Attribute { name: "seen".to_owned(), value: String::new() },
            Attribute { name: "side".to_owned(), value: "left foot".to_owned() },
        ],
        ..Annotation::default()
    };
    document.annotations.push(Annotation { nil: true, ..found.clone() });
    document.annotations.push(found);
    document.relations.push(Relation::plain("Cause", &["T4", "T5"]));
    document.relations.push(Relation::plain("CID", &["D1", "D2"]));
    expect![[r#"
        T4	Finding 0 4;5 17	Pain in the chest
        A1	Category T4 Modifier
        T5	Finding 19 23	gout
        T1	Rheumatic_disease 19 23	gout
        N1	Reference T1 -1	
        A2	seen T1
        #1	side T1	left foot
        T2	Rheumatic_disease 19 23	gout
        N2	Reference T2 MESH:D006073	Gout
        A3	seen T2
        #2	side T2	left foot
        E1	Hurts:T4 Theme:T5
        R1	Cause Arg1:T4 Arg2:T5
    "#]]
    .assert_eq(&written(&document));
}

#[test]
fn values_with_separators_are_refused() {
    let mut document = read("pain", "T1\tFinding 0 4\tpain\n").unwrap();
    document.annotations[0].ids = vec!["a\tb".to_owned()];
    expect![[r#"brat cannot hold `a\tb` as id in document `7`"#]].assert_eq(&written(&document));
}

#[test]
fn folders_hold_pairs_of_files() {
    let folder = tempfile::tempdir().unwrap();
    let put = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    put("a.txt", "1|t|pain");
    put("a.ann", "T1\tFinding 4 8\tpain\n");
    put("b.txt", "gout");
    put("c.ann", "");
    put("annotation.conf", "[entities]\nFinding\n");
    put("README", "About this corpus.");
    let shown = |format| {
        let mut reader = Reader::open(folder.path(), format).unwrap();
        let items: Vec<String> = reader
            .by_ref()
            .map(|item| match item {
                Ok(read) => format!("{} {} {}", read.document.id, read.document.text, read.annotations.len()),
                Err(error) => error.to_string().rsplit_once('/').unwrap().1.to_owned(),
            })
            .collect();
        (items.join("\n"), reader.counts().n_other_files)
    };
    let expected = "a 1|t|pain 1\nb gout 0\nc.ann has no `.txt` file of the same name";
    assert_eq!(shown(None), (expected.to_owned(), 1));
    assert_eq!(shown(Some(CorpusFormat::Brat)), (expected.to_owned(), 1));
    let single = |name: &str| Reader::open(&folder.path().join(name), None).unwrap().next().unwrap();
    assert_eq!(single("a.txt").unwrap().annotations.len(), 1);
    assert_eq!(single("a.ann").unwrap().annotations.len(), 1);
    assert!(single("c.ann").is_err());
    assert_eq!(single("b.txt").unwrap().document.text, "gout");
}

#[test]
fn archives_hold_pairs_of_members() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("corpus.zip");
    let mut archive = zip::ZipWriter::new(fs::File::create(&path).unwrap());
    for (name, text) in [("x/a.ann", "T1\tFinding 0 4\tpain\n"), ("x/a.txt", "pain"), ("x/b.txt", "gout")] {
        archive.start_file(name, zip::write::SimpleFileOptions::default()).unwrap();
        std::io::Write::write_all(&mut archive, text.as_bytes()).unwrap();
    }
    archive.finish().unwrap();
    let read: Vec<AnnotatedDocument> = Reader::open(&path, None).unwrap().collect::<Result<_>>().unwrap();
    let shown: Vec<_> = read.iter().map(|read| (read.document.id.as_str(), read.annotations.len())).collect();
    assert_eq!(shown, [("a", 1), ("b", 0)]);
}

#[test]
fn written_folders_are_read_back() {
    let folder = tempfile::tempdir().unwrap();
    let mut document = read("β pain\n", "T1\tFinding 2 6\tpain\nA1\tSeen T1\n").unwrap();
    document.document.id = "x/7".to_owned();
    let mut writer = FolderWriter::new(folder.path());
    writer.write(&document).unwrap();
    assert_eq!(writer.renamed(), [("x/7".to_owned(), "x_7".to_owned())]);
    let back = Reader::open(folder.path(), None).unwrap().next().unwrap().unwrap();
    assert_eq!((back.document.id.as_str(), &back.annotations), ("x_7", &document.annotations));
}
