//! BioC as XML and as JSON: what is read, what comes back, and what is refused.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use canonym_core::Result;
use canonym_core::corpus::format::encode;
use canonym_core::corpus::{AnnotatedDocument, Annotation, CorpusFormat, OnMismatch, Reader, Writer};
use canonym_core::input::Input;
use canonym_core::text::Span;
use expect_test::{Expect, expect};
use proptest::prelude::*;

use crate::corpus::{code_points, data, json_document, read, written};

const XML: CorpusFormat = CorpusFormat::BiocXml;
const JSON: CorpusFormat = CorpusFormat::BiocJson;

/// A collection of one document in one line.
fn collection(document: &str) -> String {
    format!(
        "<?xml version='1.0' encoding='UTF-8'?><!DOCTYPE collection SYSTEM 'BioC.dtd'><collection><source>made up</source>\
         <date>1999</date><key>a.key</key><infon key=\"who\">us</infon><document>{document}</document></collection>\n"
    )
}

/// What is read, one line an annotation or relation.
fn shown(items: Vec<Result<AnnotatedDocument>>) -> String {
    let mut shown = String::new();
    for item in items {
        let read = match item {
            Ok(read) => read,
            Err(error) => {
                shown.push_str(&format!("{error} (hint: {})\n", error.hint().unwrap_or("none")));
                continue;
            }
        };
        let sections: Vec<String> = read
            .document
            .sections
            .iter()
            .map(|section| format!("{}={:?}", section.kind, section.span.of(&read.document.text)))
            .collect();
        shown.push_str(&format!("{} {}\n", read.document.id, sections.join(" ")));
        for one in &read.annotations {
            let spans: Vec<&str> = one.spans.iter().map(|span| span.of(&read.document.text)).collect();
            let attributes: Vec<String> =
                one.attributes.iter().map(|one| format!("{}={}", one.name, one.value)).collect();
            shown.push_str(&format!("  {} {spans:?} {} {:?} {attributes:?}\n", one.key, one.semantic_type, one.ids));
        }
        for one in &read.relations {
            let arguments: Vec<String> =
                one.arguments.iter().map(|one| format!("{}:{}", one.role, one.target)).collect();
            shown.push_str(&format!("  {} {} {arguments:?} {}\n", one.key, one.kind, one.attributes.len()));
        }
    }
    shown
}

fn items(bytes: &[u8], format: Option<CorpusFormat>) -> Vec<Result<AnnotatedDocument>> {
    match Input::from_bytes("a.xml", bytes.to_vec()).and_then(|input| Reader::from_input(input, format)) {
        Ok(reader) => reader.collect(),
        Err(error) => vec![Err(error)],
    }
}

fn check(document: &str, expect: Expect) {
    let bytes = collection(document);
    expect.assert_eq(&shown(items(bytes.as_bytes(), None)));
    if items(bytes.as_bytes(), None).iter().all(Result::is_ok) {
        same_again(bytes.as_bytes());
    }
}

/// XML that was read is written byte by byte, and JSON in between loses nothing but the layout.
fn same_again(bytes: &[u8]) {
    let documents = read(bytes, Some(XML)).unwrap();
    assert_eq!(text(&written(&documents, XML).unwrap()), text(bytes));
    let json = written(&documents, JSON).unwrap();
    let back = read(&json, None).unwrap();
    assert_eq!(shown(back.iter().cloned().map(Ok).collect()), shown(documents.iter().cloned().map(Ok).collect()));
    let again = read(&written(&back, XML).unwrap(), None).unwrap();
    assert_eq!(text(&written(&again, JSON).unwrap()), text(&json));
}

#[test]
fn repaired_offsets_are_written_instead_of_the_wrong_ones() {
    let annotation = |end| {
        format!("<annotation id='0'><location offset='0' length='{end}'/><text>renal failure</text></annotation>")
    };
    let passage = |text, end| format!("<passage><offset>0</offset><text>{text}</text>{}</passage>", annotation(end));
    for (text, end) in [("renal failure", 99), ("Renal failure", 13)] {
        let bytes = collection(&format!("<id>7</id>{}", passage(text, end)));
        let input = Input::from_bytes("a.xml", bytes.into_bytes()).unwrap();
        let mut reader = Reader::from_input(input, Some(XML)).unwrap().with_repairs(true);
        let back = read_again(&reader.next().unwrap().unwrap());
        assert_eq!(back.annotations.len(), 1);
        assert_eq!(back.annotations[0].text, text);
    }
}

/// What is read of a document that was written as XML.
fn read_again(document: &AnnotatedDocument) -> AnnotatedDocument {
    let mut writer = Writer::new(Vec::new(), Path::new("out.xml"), XML).unwrap();
    writer.write(document).unwrap();
    items(&writer.finish().unwrap(), Some(XML)).pop().unwrap().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[test]
fn passages_infons_locations_and_relations_are_read_and_written_as_they_were() {
    check(
        "<id>1</id><infon key=\"year\">2001</infon>\
         <passage><infon key=\"type\">title</infon><offset>0</offset><text>β &amp; rod pain</text>\
         <annotation id='T1'><infon key=\"MESH\">D1</infon><infon key=\"type\">Sign</infon><infon key=\"by\">x</infon>\
         <location offset='8' length='4'/><text>pain</text></annotation></passage>\
         <passage><infon key=\"type\">abstract</infon><offset>14</offset><text>Rod and cone cells.</text>\
         <annotation id='T2'><infon key=\"type\">Cell</infon><infon key=\"identifier\">CL:1</infon><infon key=\"MESH\">D2</infon>\
         <location offset='14' length='3'/><location offset='27' length='5'/><text>Rod cells</text></annotation>\
         <relation id='R1'><infon key=\"type\">in</infon><infon key=\"note\">y</infon><node refid='T1' role='what'/>\
         <node refid='T2' role=''/></relation></passage>\
         <relation id='R0'><infon key=\"relation\">CID</infon><infon key=\"Chemical\">D1</infon></relation>",
        expect![[r#"
            1 title="β & rod pain" abstract="Rod and cone cells."
              T1 ["pain"] Sign ["D1"] ["by=x"]
              T2 ["Rod", "cells"] Cell ["CL:1"] ["MESH=D2"]
              R1 in ["what:T1", ":T2"] 1
              R0 CID ["Chemical:D1"] 0
        "#]],
    );
}

#[test]
fn sentences_hold_their_annotations() {
    check(
        "<id>1</id><passage><infon key=\"type\">p</infon><offset>10</offset>\
         <sentence><offset>10</offset><text>No pain.</text><annotation id='0'><location offset='13' length='4'/><text>pain</text>\
         </annotation></sentence><sentence><infon key=\"n\">2</infon><offset>20</offset><text>A fever.</text><annotation id='1'>\
         <location offset='22' length='5'/><text>fever</text></annotation></sentence></passage>",
        expect![[r#"
            1 p="No pain.  A fever."
              0 ["pain"]  [] []
              1 ["fever"]  [] []
        "#]],
    );
}

#[test]
fn impossible_offsets_of_passages_are_kept_and_annotations_follow_their_passage() {
    check(
        "<id>1</id><passage><offset>0</offset><text>No pain at all.</text></passage>\
         <passage><offset>5</offset><text>A fever.</text><annotation id='0'><location offset='7' length='5'/><text>fever</text>\
         </annotation></passage><passage><offset>99999999999</offset><text>An ache.</text><annotation id='1'>\
         <location offset='100000000002' length='4'/><text>ache</text></annotation></passage>",
        expect![[r#"
            1 ="No pain at all." ="A fever." ="An ache."
              0 ["fever"]  [] []
              1 ["ache"]  [] []
        "#]],
    );
}

#[test]
fn offsets_of_sentences_may_be_as_large_as_numbers_get() {
    let far = u64::MAX;
    let sentence = format!("<sentence><offset>{far}</offset><text>in</text></sentence>");
    let passage = |inner: &str| format!("<passage><offset>0</offset><text>Pain</text>{inner}</passage>");
    let bytes = collection(&format!("<id>7</id>{}{}", passage(""), passage(&sentence)));
    let read = items(bytes.as_bytes(), Some(XML)).pop().unwrap().unwrap();
    assert_eq!(read.document.text, "Pain Pain");
    let annotation = |start, end| Annotation { spans: vec![Span::new(start, end)], ..Annotation::default() };
    let linked = AnnotatedDocument { annotations: vec![annotation(0, 4), annotation(5, 9)], ..read };
    let back = read_again(&linked);
    assert_eq!((&back.annotations[0].text[..], &back.annotations[1].text[..]), ("Pain", "Pain"));
}

#[test]
fn gaps_do_not_make_a_text_larger_than_a_document() {
    let passages = (1..=70_000).map(|row| format!("{{\"offset\":{}}}", row * 1000)).collect::<Vec<String>>();
    let bytes = format!("{{\"id\":\"7\",\"passages\":[{}]}}", passages.join(","));
    let read = items(bytes.as_bytes(), Some(JSON)).pop().unwrap().unwrap();
    assert!(read.document.text.len() < (64 << 20) + 10_000);
}

#[test]
fn annotations_may_be_right_if_the_passage_offset_is_wrong() {
    check(
        "<id>1</id><passage><offset>0</offset><text>It's pain.</text></passage><passage><offset>16</offset><text>A fever.</text>\
         <annotation id='0'><location offset='13' length='5'/><text>fever</text></annotation></passage>",
        expect![[r#"
            1 ="It's pain." ="A fever."
              0 ["fever"]  [] []
        "#]],
    );
}

#[test]
fn annotations_without_location_are_labels_of_the_document() {
    check(
        "<id>1</id><passage><offset>0</offset><text>No pain.</text><annotation id='L'><infon key=\"identifier\">MESH:D1</infon>\
         </annotation><annotation id='0'><location offset='3' length='4'/><text>pain</text></annotation></passage>",
        expect![[r#"
            1 ="No pain."
              0 ["pain"]  [] []
        "#]],
    );
}

#[test]
fn files_with_one_element_per_line_round_trip() {
    let lines = "<?xml version='1.0' encoding='UTF-8'?>\n<!DOCTYPE collection SYSTEM 'BioC.dtd'>\n<collection>\n  <source></source>\n  <date></date>\n  <key></key>\n  \
                 <document>\n    <id>1</id>\n    <passage>\n      <offset>0</offset>\n      <text>It&apos;s pain.</text>\n      <annotation id=\"a\">\n        \
                 <location offset=\"5\" length=\"4\" />\n        <text>pain</text>\n      </annotation>\n    </passage>\n  </document>\n</collection>\n";
    same_again(lines.as_bytes());
}

#[test]
fn malformed_documents_are_named_and_the_next_one_is_read() {
    let good = "</document><document><id>2</id><passage><offset>0</offset><text>ok</text></passage>";
    let bad = |passage: &str| format!("<id>1</id><passage>{passage}</passage>{good}");
    check(
        &bad("<text>no offset</text>"),
        expect![[r#"
        a.xml:1: the passage has no offset (hint: none)
        2 ="ok"
    "#]],
    );
    check(
        &bad("<offset>-1</offset><text>a</text>"),
        expect![[r#"
        a.xml:1: invalid offset or length `-1` (hint: offsets and lengths must be integers)
        2 ="ok"
    "#]],
    );
    check(
        &bad(
            "<offset>0</offset><text>pain</text><annotation id='0'><location offset='1' length='4'/><text>pain</text></annotation>",
        ),
        expect![[r#"
            a.xml:1: document `1`: the span 1..5 of `pain` is outside the text of 4 code points (hint: repair unambiguous offsets (option `--fix-offsets`), or skip and count such annotations (option `--skip-bad-offsets`))
            2 ="ok"
        "#]],
    );
    check(
        &bad("<offset>0</offset>words<text>pain</text>"),
        expect![[r#"
        a.xml:1: unexpected text in the element `passage`: `words` (hint: none)
        2 ="ok"
    "#]],
    );
    check(
        &bad("<offset>0</offset><text>pain</text><annotation><location/></annotation>"),
        expect![[r#"
        a.xml:1: invalid offset or length `` (hint: offsets and lengths must be integers)
        2 ="ok"
    "#]],
    );
    check(
        &bad("<offset>0</offset><txt>pain</txt>"),
        expect![[r#"
        a.xml:1: unexpected element `txt` in `passage` (hint: none)
        2 ="ok"
    "#]],
    );
    check(
        "<id>1</id><passage><offset>0</offset><text>&lol;</text></passage>",
        expect![[r#"
        a.xml:1: unknown entity `&lol;` (hint: use the character itself, or a numeric reference such as `&#945;`)
    "#]],
    );
}

#[test]
fn files_that_are_no_bioc_are_refused() {
    let check = |bytes: &[u8], format, expect: Expect| expect.assert_eq(&shown(items(bytes, Some(format))));
    check(
        b"",
        XML,
        expect![[r#"
        a.xml:1: no XML element found (hint: none)
    "#]],
    );
    check(
        b"<html/>",
        XML,
        expect![[r#"
        a.xml:1: expected the BioC element `collection`, found `html` (hint: specify the format of the file)
    "#]],
    );
    check(
        b"<collection><source>x</source>",
        XML,
        expect![[r#"
        a.xml:1: the file is truncated: 1 elements are not closed (hint: none)
    "#]],
    );
    check(
        b"\xff\xfe<\0",
        XML,
        expect![[r#"
        a.xml:1: the text is UTF-16 (hint: convert the file to UTF-8)
    "#]],
    );
    check(
        b"",
        JSON,
        expect![[r#"
        a.xml:1: the file is empty (hint: none)
    "#]],
    );
    check(
        b"{\"a\": 1}",
        JSON,
        expect![[r#"
        a.xml:1: the object has neither `documents` nor `passages` (hint: specify the format of the file)
    "#]],
    );
    check(
        b"{\"documents\": [{\"id\": \"1\", \"passages\": [{\"offset\": 0}]}, 7]}",
        JSON,
        expect![[r#"
        1 =""
        a.xml:1: expected a document, found `7` (hint: none)
    "#]],
    );
    check(
        b"{\"documents\": [{\"id\": \"1\", \"passages\": [{\"text\": \"a\"}]},\n{\"id\": \"2\", \"passages\": []}]}",
        JSON,
        expect![[r#"
            a.xml:1: invalid document at column 38: missing field `offset` (hint: none)
            2 
        "#]],
    );
    check(
        b"{\"documents\": [{\"id\": \"1\", \"passages\": [",
        JSON,
        expect![[r#"
        a.xml:1: the JSON value that starts here is truncated (hint: download or export the file again)
    "#]],
    );
    let deep = format!("{{\"documents\": [{{\"passages\": {}", "[".repeat(100_000));
    assert!(read(deep.as_bytes(), Some(JSON)).is_err());
    let deep = format!("{{\"documents\": [{{\"passages\": {}{}}}]}}", "[".repeat(100_000), "]".repeat(100_000));
    assert!(read(deep.as_bytes(), Some(JSON)).is_err());
    assert!(read("<collection>".repeat(1_000_000).as_bytes(), Some(XML)).is_err());
}

#[test]
fn json_comes_in_several_shapes() {
    let one = r#"{"_id": "1|None", "id": 1, "infons": {}, "passages": [{"infons": {"type": "title", "n": 3}, "offset": 0, "text": "No pain.",
        "annotations": [{"id": "0", "infons": {"identifier": null, "type": "Sign", "valid": true}, "text": "pain", "locations": [{"offset": 3, "length": 4}]}]}]}"#;
    let flat = one.replace('\n', " ");
    for bytes in [
        format!("{{\"PubTator3\": [{one}]}}"),
        format!("[{one}, {one}]"),
        format!("{flat}\n{flat}\n"),
        format!("{{\"source\": \"s\", \"documents\": [{one}], \"more\": [1, {{}}]}}"),
    ] {
        let documents = read(bytes.as_bytes(), None).unwrap();
        assert!(!documents.is_empty() && documents.iter().all(|read| read.annotations.len() == 1));
        let back = text(&written(&documents, JSON).unwrap());
        assert!(back.contains(r#""infons":{"identifier":null,"type":"Sign","valid":true}"#), "{back}");
        assert!(back.contains(r#""_id":"1|None""#) && back.contains(r#""n":3"#), "{back}");
    }
}

#[test]
fn linked_mentions_are_written_in_their_passage() {
    let bytes = collection(
        "<id>1</id><passage><infon key=\"type\">title</infon><offset>0</offset><text>No pain.</text><annotation id='0'>\
         <infon key=\"type\">Sign</infon><location offset='3' length='4'/><text>pain</text></annotation></passage>\
         <passage><infon key=\"type\">abstract</infon><infon key=\"n\">2</infon><offset>9</offset><text>A fever.</text></passage>",
    );
    let mut read = read(bytes.as_bytes(), None).unwrap().remove(0);
    let start = read.document.text.find("fever").unwrap();
    read.annotations = vec![Annotation {
        spans: vec![canonym_core::text::Span::new(start, start + 5)],
        text: "fever".to_owned(),
        semantic_type: "Sign".to_owned(),
        ids: vec!["MESH:D005334".to_owned()],
        score: Some(0.5),
        ..Annotation::default()
    }];
    let mut out = Vec::new();
    encode(&read, XML, &mut out).unwrap();
    expect![[r#"<document><id>1</id><passage><infon key="type">title</infon><offset>0</offset><text>No pain.</text></passage><passage><infon key="type">abstract</infon><infon key="n">2</infon><offset>9</offset><text>A fever.</text><annotation id='0'><infon key="type">Sign</infon><infon key="identifier">MESH:D005334</infon><infon key="score">0.5</infon><infon key="nil">false</infon><location offset='11' length='5'/><text>fever</text></annotation></passage></document>"#]].assert_eq(&text(&out));
}

#[test]
fn annotations_with_wrong_offsets_are_not_written() {
    let bytes = collection(
        "<id>1</id><passage><offset>0</offset><text>No pain.</text><annotation id='0'><location offset='0' length='4'/>\
         <text>pain</text></annotation></passage>",
    );
    let input = Input::from_bytes("in", bytes.into_bytes()).unwrap();
    let mut reader = Reader::from_input(input, None).unwrap().with_on_mismatch(OnMismatch::Drop);
    let read = reader.next().unwrap().unwrap();
    assert_eq!(reader.counts().n_bad_offsets, 1);
    assert!(!text(&written(&[read], XML).unwrap()).contains("annotation"));
}

/// What both formats must keep of a document.
fn kept(documents: &[AnnotatedDocument]) -> Vec<String> {
    let one = |one: &Annotation| {
        let best = one.candidates.first().map(|best| best.id.clone());
        let ids: Option<String> = best.or_else(|| one.ids.first().cloned()).filter(|_| !one.nil);
        format!("{} {:?} {ids:?} {:?} {}", one.text, one.semantic_type, one.score, one.nil)
    };
    documents.iter().flat_map(|read| read.annotations.iter().map(one)).collect()
}

proptest! {
    #[test]
    fn json_written_and_read_is_the_same(documents in prop::collection::vec(json_document(), 0..3)) {
        let back = read(&written(&documents, JSON).unwrap(), Some(JSON)).unwrap();
        let texts = |documents: &[AnnotatedDocument]| -> Vec<String> {
            documents.iter().map(|read| format!("{} {}", read.document.id, read.document.text)).collect()
        };
        prop_assert_eq!(texts(&back), texts(&documents));
        prop_assert_eq!(code_points(&back), code_points(&documents));
        prop_assert_eq!(kept(&back), kept(&documents));
    }

    #[test]
    fn xml_written_and_read_is_the_same(documents in prop::collection::vec(json_document(), 0..3)) {
        let bytes = written(&documents, XML).unwrap();
        let back = read(&bytes, Some(XML)).unwrap();
        prop_assert_eq!(code_points(&back), code_points(&documents));
        let spaced = |kept: Vec<String>| kept.join("\n").replace(|c: char| c.is_control(), " ");
        prop_assert_eq!(spaced(kept(&back)), spaced(kept(&documents)));
        prop_assert_eq!(text(&written(&back, XML).unwrap()), text(&bytes));
        let through = read(&written(&back, JSON).unwrap(), Some(JSON)).unwrap();
        prop_assert_eq!(text(&written(&through, XML).unwrap()), text(&bytes));
    }
}

#[test]
fn real_collection_round_trips_and_agrees_with_pubtator() {
    let Some(path) = data("formats/bioc-xml/CDR_DevelopmentSet.BioC.xml") else { return };
    let mut reader = Reader::open(&path, None).unwrap().with_on_mismatch(OnMismatch::Drop);
    let documents: Vec<AnnotatedDocument> = (&mut reader).collect::<Result<_>>().unwrap();
    // One annotation of two pieces lies a character before its words; it is left out.
    assert_eq!(reader.counts().n_bad_offsets, 1);
    let original = fs::read_to_string(&path).unwrap();
    let wrong = original.find("<location offset='247' length='16' />").unwrap();
    let start = original[..wrong].rfind("<annotation").unwrap();
    let end = original[wrong..].find("</annotation>\n").unwrap() + wrong + "</annotation>\n".len();
    let expected = format!("{}{}", &original[..start], &original[end..]);
    assert!(text(&written(&documents, XML).unwrap()).trim_end() == expected.trim_end());
    let through = read(&written(&documents, JSON).unwrap(), None).unwrap();
    let again = read(&written(&through, XML).unwrap(), None).unwrap();
    assert!(written(&again, JSON).unwrap() == written(&documents, JSON).unwrap());
    let Some(path) = data("bc5cdr/dev.pubtator.txt") else { return };
    agree(&documents, &path);
}

fn agree(documents: &[AnnotatedDocument], path: &Path) {
    let others: Vec<AnnotatedDocument> = Reader::open(path, None).unwrap().collect::<Result<_>>().unwrap();
    assert_eq!(documents.len(), others.len());
    let (mut n_same, mut n_here, mut n_there, mut n_texts) = (0, 0, 0, 0);
    for (document, other) in documents.iter().zip(&others) {
        assert_eq!(document.document.id, other.document.id);
        n_texts += usize::from(document.document.text == other.document.text);
        let whole = |one: &&Annotation| !one.attributes.iter().any(|one| one.value == "IndividualMention");
        let key = |one: &Annotation| (one.spans.clone(), one.text.clone(), one.semantic_type.clone(), one.ids.clone());
        let here: BTreeSet<_> = document.annotations.iter().filter(whole).map(key).collect();
        let there: BTreeSet<_> = other.annotations.iter().map(key).collect();
        n_same += here.intersection(&there).count();
        n_here += here.difference(&there).count();
        n_there += there.difference(&here).count();
    }
    expect!["500 texts and 9591 annotations agree, 0 and 0 stand in one only"].assert_eq(&format!(
        "{n_texts} texts and {n_same} annotations agree, {n_here} and {n_there} stand in one only"
    ));
}
