//! The state of the review in JSONL files: whether a document is finished, the mentions that people rejected, and the threads of comments.
//!
//! It stands in the field `review` of a line, apart from the annotations, so that no other program takes a rejected mention for an annotation:
//!
//! ```json
//! {"finished": true, "rejected": [{"spans": [[3, 7]]}], "threads": [
//!     {"spans": [[3, 7]], "ids": ["T:1"], "is_rejected": true, "resolved_by": "ben", "comments": [
//!         {"by": "anna", "at": "2026-11-30T09:00:00Z", "text": "A verb?"}, {"by": "ben", "at": "2026-11-30T09:05:00Z", "text": "Yes."}]}]}
//! ```
//!
//! Rejected mentions are written like annotations. A thread names its mention by spans and ids, and by `is_rejected` if it is a rejected
//! one; without spans it is about the document.

use canonym_core::corpus::format::encode;
use canonym_core::corpus::{AnnotatedDocument, Annotation, CorpusFormat, OnMismatch, Reader, Residue};
use canonym_core::input::Source as Bytes;
use canonym_core::text::Document;
use canonym_core::text::offsets::OffsetMap;
use canonym_core::{Error, Result};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::spans::{Pairs, to_pairs};

/// Field: whether the document is finished.
const FINISHED: &str = "finished";

/// Field: the rejected mentions.
const REJECTED: &str = "rejected";

/// Field: the threads of comments.
const THREADS: &str = "threads";

/// The state of the review of a document.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Review {
    /// Whether the document is finished.
    pub is_finished: bool,
    /// The rejected mentions, with their origin as attributes.
    pub rejected: Vec<Annotation>,
    /// The threads of comments, oldest first.
    pub threads: Vec<Thread>,
}

/// A thread of comments.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Thread {
    /// What it is about.
    pub about: About,
    /// Who resolved it.
    pub resolved_by: Option<String>,
    /// The comments, oldest first; at least one.
    pub comments: Vec<Remark>,
}

/// What a thread is about.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum About {
    /// The document.
    #[default]
    Document,
    /// The annotation in this row.
    Annotation(usize),
    /// The rejected mention in this row.
    Rejected(usize),
}

/// A comment in a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Remark {
    /// The author.
    #[serde(default)]
    pub by: String,
    /// When, in RFC 3339.
    #[serde(default)]
    pub at: String,
    /// The text.
    pub text: String,
}

/// A thread as written.
#[derive(Serialize, Deserialize)]
struct ThreadLine {
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    spans: Pairs,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    ids: Vec<String>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    is_rejected: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    resolved_by: Option<String>,
    comments: Vec<Remark>,
}

/// What was read of a state, and what of it was not taken.
#[derive(Debug, Default)]
pub struct Detached {
    /// The state.
    pub review: Review,
    /// Rejected mentions that were left out because the text at their offsets differs.
    pub n_dropped: usize,
    /// Rejected mentions whose offsets were repaired.
    pub n_fixed: usize,
    /// The reasons, at most a thousand.
    pub problems: Vec<String>,
}

/// Adds the state to a document that is written as JSONL; nothing if nobody reviewed it.
pub fn attach(document: &mut AnnotatedDocument, review: Review) -> Result<()> {
    let mut content = Map::new();
    if review.is_finished {
        content.insert(FINISHED.to_owned(), true.into());
    }
    let threads: Vec<Value> = review.threads.iter().map(|thread| written(document, &review.rejected, thread)).collect();
    if !review.rejected.is_empty() {
        let text = Document { sections: Vec::new(), ..document.document.clone() };
        let alone = AnnotatedDocument { document: text, annotations: review.rejected, ..AnnotatedDocument::default() };
        let mut line = Vec::new();
        encode(&alone, CorpusFormat::Jsonl, &mut line)?;
        let mut line: Value = serde_json::from_slice(&line).expect("a written line is JSON");
        content.insert(REJECTED.to_owned(), line["annotations"].take());
    }
    if !threads.is_empty() {
        content.insert(THREADS.to_owned(), threads.into());
    }
    document.residue = (!content.is_empty())
        .then(|| Box::new(Residue { format: CorpusFormat::Jsonl, content: Value::Object(content) }));
    Ok(())
}

fn written(document: &AnnotatedDocument, rejected: &[Annotation], thread: &Thread) -> Value {
    let mention = match thread.about {
        About::Document => None,
        About::Annotation(row) => document.annotations.get(row),
        About::Rejected(row) => rejected.get(row),
    };
    let map = OffsetMap::new(&document.document.text);
    let line = ThreadLine {
        spans: mention.map(|mention| to_pairs(&map, &mention.spans)).unwrap_or_default(),
        ids: mention.map(|mention| mention.ids.clone()).unwrap_or_default(),
        is_rejected: matches!(thread.about, About::Rejected(_)),
        resolved_by: thread.resolved_by.clone(),
        comments: thread.comments.clone(),
    };
    json!(line)
}

/// Removes the state from a document read from JSONL. Rejected mentions whose text is not at their offsets are repaired if that is asked
/// for, or left out and counted. A thread whose mention is not there becomes one about the document.
pub fn detach(document: &mut AnnotatedDocument, repairs: bool) -> Result<Detached> {
    let mut detached = Detached::default();
    let Some(residue) = document.residue.take_if(|residue| residue.format == CorpusFormat::Jsonl) else {
        return Ok(detached);
    };
    let mut content = residue.content;
    let review = &mut detached.review;
    review.is_finished = content[FINISHED] == true;
    if content[REJECTED].is_array() {
        let Document { id, text, .. } = &document.document;
        let line = json!({"id": id, "text": text, "annotations": content[REJECTED].take()});
        let source = Bytes::from_bytes("review.jsonl", line.to_string().into_bytes());
        let reader = Reader::from_source(&source, Some(CorpusFormat::Jsonl))?;
        let mut reader = reader.with_on_mismatch(OnMismatch::Drop).with_repairs(repairs);
        while let Some(read) = reader.next() {
            review.rejected.extend(read?.annotations);
            detached.problems.extend(reader.dropped().iter().map(|error| match error {
                Error::Parse { message, .. } => message.clone(),
                other => other.to_string(),
            }));
        }
        let counts = reader.counts();
        (detached.n_dropped, detached.n_fixed) = (counts.n_bad_offsets as usize, counts.n_fixed as usize);
    }
    if content[THREADS].is_array() {
        let lines: Vec<ThreadLine> = serde_json::from_value(content[THREADS].take())
            .map_err(|error| Error::mismatch(format!("invalid threads of comments: {error}")))?;
        let map = OffsetMap::new(&document.document.text);
        let lines = lines.into_iter().filter(|line| !line.comments.is_empty());
        review.threads = lines.map(|line| read(&map, document, &review.rejected, line)).collect();
    }
    Ok(detached)
}

fn read(map: &OffsetMap<'_>, document: &AnnotatedDocument, rejected: &[Annotation], line: ThreadLine) -> Thread {
    let mentions = if line.is_rejected { rejected } else { document.annotations.as_slice() };
    let has_spans = |one: &Annotation| !line.spans.is_empty() && to_pairs(map, &one.spans) == line.spans;
    // Several mentions may have the same spans.
    let exact = mentions.iter().position(|one| has_spans(one) && one.ids == line.ids);
    let about = match exact.or_else(|| mentions.iter().position(has_spans)) {
        None => About::Document,
        Some(row) if line.is_rejected => About::Rejected(row),
        Some(row) => About::Annotation(row),
    };
    Thread { about, resolved_by: line.resolved_by, comments: line.comments }
}

#[cfg(test)]
mod tests {
    use canonym_core::text::Span;

    use super::*;

    fn document() -> AnnotatedDocument {
        let document = Document { id: "1".to_owned(), text: "β pain.".to_owned(), sections: Vec::new() };
        AnnotatedDocument { document, ..AnnotatedDocument::default() }
    }

    fn pain(id: &str) -> Annotation {
        let spans = vec![Span { start: 3, end: 7 }];
        Annotation { spans, text: "pain".to_owned(), ids: vec![id.to_owned()], ..Annotation::default() }
    }

    fn thread(about: About, texts: &[&str]) -> Thread {
        let remark = |text: &&str| Remark {
            by: "anna".to_owned(),
            at: "2026-11-30T09:00:00Z".to_owned(),
            text: (*text).to_owned(),
        };
        Thread { about, resolved_by: None, comments: texts.iter().map(remark).collect() }
    }

    #[test]
    fn state_is_detached_as_it_was_attached() {
        let resolved = Thread {
            resolved_by: Some("ben".to_owned()),
            ..thread(About::Rejected(0), &["A verb?\nOr not?", "Not here."])
        };
        let threads =
            vec![resolved, thread(About::Annotation(1), &["Which pain?"]), thread(About::Document, &["Short."])];
        for review in [
            Review::default(),
            Review { is_finished: true, ..Review::default() },
            Review { rejected: vec![pain("T:1")], threads, ..Review::default() },
        ] {
            let made = AnnotatedDocument { annotations: vec![pain("T:1"), pain("T:2")], ..document() };
            let mut written = made.clone();
            attach(&mut written, review.clone()).unwrap();
            assert_eq!(detach(&mut written, false).unwrap().review, review);
            assert_eq!(written, made);
        }
    }

    #[test]
    fn rejected_mention_at_wrong_offsets_is_counted_or_repaired() {
        let content = json!({REJECTED: [{"spans": [[3, 7]], "text": "pain"}],
            THREADS: [{"spans": [[3, 7]], "is_rejected": true, "comments": [{"text": "Where?"}]}]});
        let mut read = document();
        read.residue = Some(Box::new(Residue { format: CorpusFormat::Jsonl, content }));
        let dropped = detach(&mut read.clone(), false).unwrap();
        assert_eq!((dropped.review.rejected.len(), dropped.n_dropped, dropped.n_fixed), (0, 1, 0));
        assert_eq!(dropped.problems.len(), 1);
        // The comment outlives its mention.
        assert_eq!(dropped.review.threads[0].about, About::Document);
        let fixed = detach(&mut read, true).unwrap();
        assert_eq!((fixed.review.rejected.len(), fixed.n_dropped, fixed.n_fixed), (1, 0, 1));
    }

    #[test]
    fn mentions_and_threads_of_another_shape_are_an_error() {
        for content in [json!({REJECTED: ["pain"]}), json!({THREADS: [{"comments": "Which?"}]})] {
            let mut read = document();
            read.residue = Some(Box::new(Residue { format: CorpusFormat::Jsonl, content }));
            assert!(detach(&mut read, false).is_err());
        }
    }
}
