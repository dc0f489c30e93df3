//! Annotated documents of TeXoo.

use std::fs;

use canonym_core::Result;
use canonym_core::corpus::{AnnotatedDocument, Annotation, CorpusFormat, Reader};
use canonym_core::text::Span;
use expect_test::expect;
use proptest::prelude::*;

use crate::corpus::{code_points, data, json_document, read, written};

const TEXOO: CorpusFormat = CorpusFormat::Texoo;

const CORPUS: &str = r#"{
  "name": "made up",
  "language": "en",
  "documents": [
    {
      "begin": 0,
      "length": 11,
      "text": "😀 no pain.",
      "id": "7",
      "title": null,
      "language": "en",
      "type": null,
      "annotations": [
        {
          "begin": 6,
          "length": 4,
          "text": "pain",
          "source": "GOLD",
          "confidence": 1.0,
          "refId": "C1",
          "class": "NamedEntityAnnotation",
          "candidates": [],
          "only": "here"
        }
      ],
      "class": "Document"
    }
  ],
  "queries": []
}"#;

#[test]
fn offsets_count_utf16_units() {
    let documents = read(CORPUS.as_bytes(), None).unwrap();
    assert_eq!(documents[0].annotations[0].spans[0].of(&documents[0].document.text), "pain");
    assert_eq!(documents[0].annotations[0].ids, ["C1"]);
    assert_eq!(String::from_utf8(written(&documents, TEXOO).unwrap()).unwrap(), CORPUS);
    let split = CORPUS.replace("\"begin\": 6", "\"begin\": 1");
    let error = read(split.as_bytes(), None).unwrap_err();
    expect!["in:5: document `7`: the span 12..16 of `pain` is outside the text of 10 code points"]
        .assert_eq(&error.to_string());
}

#[test]
fn changed_documents_keep_unchanged_parts() {
    let mut documents = read(CORPUS.as_bytes(), None).unwrap();
    let found = Annotation {
        spans: vec![Span::new(5, 7)],
        text: "no".to_owned(),
        score: Some(0.25),
        nil: true,
        ..Annotation::default()
    };
    documents[0].annotations.push(found);
    let bytes = String::from_utf8(written(&documents, TEXOO).unwrap()).unwrap();
    assert!(bytes.contains("\"only\": \"here\""), "{bytes}");
    let back = read(bytes.as_bytes(), None).unwrap();
    assert_eq!(back[0].annotations, documents[0].annotations);
}

#[test]
fn malformed_documents_are_named() {
    let message = |bytes: &str| read(bytes.as_bytes(), Some(TEXOO)).unwrap_err().to_string();
    assert_eq!(message(""), "in:1: the file is empty");
    assert_eq!(message("{\"name\": 1}"), "in:1: the object has neither `documents` nor `text`");
    expect!["in:2: invalid document at column 10: invalid type: integer `7`, expected a string"]
        .assert_eq(&message("{\"documents\": [\n{\"text\": 7}]}"));
}

proptest! {
    #[test]
    fn written_and_read_is_the_same(documents in prop::collection::vec(json_document(), 1..3)) {
        let back = read(&written(&documents, TEXOO).unwrap(), Some(TEXOO)).unwrap();
        prop_assert_eq!(code_points(&back), code_points(&documents));
        for (back, document) in back.iter().zip(&documents) {
            prop_assert_eq!(&back.document.text, &document.document.text);
        }
    }
}

#[test]
fn real_corpus_round_trips() {
    let Some(path) = data("formats/texoo-medmentions-10docs.json") else { return };
    let documents: Vec<AnnotatedDocument> = Reader::open(&path, None).unwrap().collect::<Result<_>>().unwrap();
    assert_eq!(documents.iter().map(|read| read.annotations.len()).sum::<usize>(), 521);
    assert!(written(&documents, TEXOO).unwrap() == fs::read(&path).unwrap());
}
