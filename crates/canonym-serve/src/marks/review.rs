//! The state of a review in JSONL files: whether a document is finished, and the mentions that people rejected.
//!
//! It stands in the field `review` of a line, apart from the annotations, so that no other program takes a rejected mention for an annotation:
//! `"review": {"finished": true, "rejected": [{"spans": [[3, 7]], …}]}`, with annotations as on the line itself.

use canonym_core::Result;
use canonym_core::corpus::format::encode;
use canonym_core::corpus::{AnnotatedDocument, Annotation, CorpusFormat, OnMismatch, Reader, Residue};
use canonym_core::input::Source as Bytes;
use canonym_core::text::Document;
use serde_json::{Map, Value, json};

/// Field: whether the document is finished.
const FINISHED: &str = "finished";

/// Field: the rejected mentions.
const REJECTED: &str = "rejected";

/// The state of the review of a document.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Review {
    /// Whether the document is finished.
    pub is_finished: bool,
    /// The rejected mentions, with their origin as attributes.
    pub rejected: Vec<Annotation>,
}

/// Adds the state to a document that is written as JSONL; nothing if nobody reviewed it.
pub fn attach(document: &mut AnnotatedDocument, review: Review) -> Result<()> {
    let mut content = Map::new();
    if review.is_finished {
        content.insert(FINISHED.to_owned(), true.into());
    }
    if !review.rejected.is_empty() {
        let text = Document { sections: Vec::new(), ..document.document.clone() };
        let alone = AnnotatedDocument { document: text, annotations: review.rejected, ..AnnotatedDocument::default() };
        let mut line = Vec::new();
        encode(&alone, CorpusFormat::Jsonl, &mut line)?;
        let mut line: Value = serde_json::from_slice(&line).expect("a written line is JSON");
        content.insert(REJECTED.to_owned(), line["annotations"].take());
    }
    document.residue = (!content.is_empty())
        .then(|| Box::new(Residue { format: CorpusFormat::Jsonl, content: Value::Object(content) }));
    Ok(())
}

/// Removes the state from a document read from JSONL. Rejected mentions whose text is not at their offsets are left out.
pub fn detach(document: &mut AnnotatedDocument) -> Result<Review> {
    let Some(residue) = document.residue.take_if(|residue| residue.format == CorpusFormat::Jsonl) else {
        return Ok(Review::default());
    };
    let mut content = residue.content;
    let mut review = Review { is_finished: content[FINISHED] == true, rejected: Vec::new() };
    if content[REJECTED].is_array() {
        let Document { id, text, .. } = &document.document;
        let line = json!({"id": id, "text": text, "annotations": content[REJECTED].take()});
        let source = Bytes::from_bytes("review.jsonl", line.to_string().into_bytes());
        for read in Reader::from_source(&source, Some(CorpusFormat::Jsonl))?.with_on_mismatch(OnMismatch::Drop) {
            review.rejected.extend(read?.annotations);
        }
    }
    Ok(review)
}

#[cfg(test)]
mod tests {
    use canonym_core::text::Span;

    use super::*;

    fn document() -> AnnotatedDocument {
        let document = Document { id: "1".to_owned(), text: "β pain.".to_owned(), sections: Vec::new() };
        AnnotatedDocument { document, ..AnnotatedDocument::default() }
    }

    #[test]
    fn state_is_detached_as_it_was_attached() {
        let spans = vec![Span { start: 3, end: 7 }];
        let pain = Annotation { spans, text: "pain".to_owned(), ids: vec!["T:1".to_owned()], ..Annotation::default() };
        for review in [
            Review::default(),
            Review { is_finished: true, rejected: Vec::new() },
            Review { is_finished: false, rejected: vec![pain] },
        ] {
            let mut written = document();
            attach(&mut written, review.clone()).unwrap();
            assert_eq!(detach(&mut written).unwrap(), review);
            assert_eq!(written, document());
        }
    }

    #[test]
    fn rejected_mentions_of_another_shape_are_an_error() {
        let mut read = document();
        let content = json!({REJECTED: ["pain"]});
        read.residue = Some(Box::new(Residue { format: CorpusFormat::Jsonl, content }));
        assert!(detach(&mut read).is_err());
    }
}
