//! Mentions as rows of a table, one per mention, and CSV. The columns of CSV, Parquet and Arrow are the same.
//!
//! | column | content |
//! | --- | --- |
//! | `row` | number of the document in the output, from 0 |
//! | `document` | id of the document |
//! | `start`, `end` | first code point, and the one after the last |
//! | `spans` | pairs of offsets; several for a discontinuous mention |
//! | `text`, `type` | the mention and its semantic type |
//! | `id`, `name` | of the linked concept; empty if not linked |
//! | `score`, `p_mention`, `p_link` | probabilities |
//! | `nil` | whether the mention was left unlinked |
//! | `negated`, `possible`, `historical`, `hypothetical`, `family` | contexts |
//! | `candidates` | ids, names and scores, best first |
//! | `codes` | codes in another code system, and how the concept relates to them |
//!
//! CSV follows RFC 4180: a header, commas, `true` and `false`, nothing for a missing value; `spans`, `candidates` and
//! `codes` are JSON. It is written, not read; text, sections, relations and other attributes are not in it.

use std::borrow::Cow;

use serde_json::{Value, json};

use crate::corpus::contexts::is_context;
use crate::corpus::{AnnotatedDocument, Annotation, CandidateRecord, CodeRecord, contexts};
use crate::numbers::rounded;
use crate::text::offsets::OffsetMap;

/// The columns, in order.
pub const COLUMNS: [&str; 20] = [
    "row",
    "document",
    "start",
    "end",
    "spans",
    "text",
    "type",
    "id",
    "name",
    "score",
    "p_mention",
    "p_link",
    "nil",
    contexts::VALUES[0],
    contexts::VALUES[1],
    contexts::VALUES[2],
    contexts::VALUES[3],
    contexts::VALUES[4],
    "candidates",
    "codes",
];

/// Spans of a mention in code points.
pub type CodePoints = Vec<(usize, usize)>;

/// The values of a mention, without the number of its document.
#[derive(Debug, Clone, PartialEq)]
pub struct MentionRow<'a> {
    /// Id of the document.
    pub document: &'a str,
    /// Spans in code points, never empty.
    pub spans: &'a [(usize, usize)],
    /// The mention.
    pub text: &'a str,
    /// Its semantic type; may be empty.
    pub kind: &'a str,
    /// Id of the linked concept, or the first id of a gold annotation.
    pub id: Option<&'a str>,
    /// Preferred name of the linked concept.
    pub name: Option<&'a str>,
    /// Probability of the prediction; 1 in gold.
    pub score: f64,
    /// Probability that the span is a mention.
    pub p_mention: Option<f64>,
    /// Probability of the best candidate.
    pub p_link: Option<f64>,
    /// Whether it was left unlinked.
    pub nil: bool,
    /// Which of [`contexts::VALUES`] it has.
    pub contexts: [bool; 5],
    /// Candidates, best first.
    pub candidates: &'a [CandidateRecord],
    /// Codes in another code system.
    pub codes: &'a [CodeRecord],
}

impl MentionRow<'_> {
    /// The first code point.
    pub fn start(&self) -> usize {
        self.spans.first().map_or(0, |span| span.0)
    }

    /// The code point after the last one.
    pub fn end(&self) -> usize {
        self.spans.last().map_or(0, |span| span.1)
    }
}

/// Spans of every annotation in code points.
pub fn code_points(document: &AnnotatedDocument) -> Vec<CodePoints> {
    let map = OffsetMap::new(&document.document.text);
    let point = |byte: u32| map.byte_to_char(byte as usize).expect("spans lie on character boundaries");
    let spans =
        |annotation: &Annotation| annotation.spans.iter().map(|span| (point(span.start), point(span.end))).collect();
    document.annotations.iter().map(spans).collect()
}

/// The rows of a document; `spans` are those of [`code_points`].
pub fn rows<'a>(
    document: &'a AnnotatedDocument,
    spans: &'a [CodePoints],
) -> impl ExactSizeIterator<Item = MentionRow<'a>> {
    document.annotations.iter().zip(spans).map(|(annotation, spans)| MentionRow {
        document: &document.document.id,
        spans,
        text: &annotation.text,
        kind: &annotation.semantic_type,
        id: annotation.concept_id().or(annotation.ids.first().map(String::as_str)),
        name: annotation.candidates.first().filter(|_| !annotation.nil).map(|best| best.name.as_str()),
        score: rounded(annotation.probability()),
        p_mention: annotation.p_mention.map(rounded),
        p_link: annotation.p_link.map(rounded),
        nil: annotation.nil,
        contexts: contexts::VALUES
            .map(|value| annotation.attributes.iter().any(|one| is_context(one) && one.value == value)),
        candidates: &annotation.candidates,
        codes: &annotation.codes,
    })
}

/// The header line of CSV.
pub fn csv_header() -> String {
    COLUMNS.join(",") + "\n"
}

/// The CSV records of a document behind the column `row`, which the caller puts before each.
pub fn csv_records(document: &AnnotatedDocument) -> Vec<String> {
    let spans = code_points(document);
    rows(document, &spans).map(|row| csv_record(&row)).collect()
}

fn csv_record(row: &MentionRow<'_>) -> String {
    let number = |value: Option<f64>| value.map(|value| value.to_string()).unwrap_or_default();
    let candidate = |one: &CandidateRecord| json!({"id": one.id, "name": one.name, "score": rounded(one.score())});
    let code = |one: &CodeRecord| json!({"id": one.id, "predicate": one.predicate});
    let list = |values: Vec<Value>| Value::Array(values).to_string();
    let mut record = String::new();
    push_csv(&mut record, row.document);
    for value in [
        row.start().to_string(),
        row.end().to_string(),
        json!(row.spans).to_string(),
        row.text.to_owned(),
        row.kind.to_owned(),
        row.id.unwrap_or_default().to_owned(),
        row.name.unwrap_or_default().to_owned(),
        number(Some(row.score)),
        number(row.p_mention),
        number(row.p_link),
        row.nil.to_string(),
    ] {
        record.push(',');
        push_csv(&mut record, &value);
    }
    for has in row.contexts {
        record.push(',');
        record.push_str(if has { "true" } else { "false" });
    }
    for values in [row.candidates.iter().map(candidate).collect(), row.codes.iter().map(code).collect()] {
        record.push(',');
        push_csv(&mut record, &list(values));
    }
    record
}

/// Appends a field, quoted if it has to be.
pub(crate) fn push_csv(record: &mut String, field: &str) {
    let quotes = field.contains([',', '"', '\n', '\r']) || field.starts_with(' ') || field.ends_with(' ');
    if !quotes {
        return record.push_str(field);
    }
    let inner = if field.contains('"') { Cow::Owned(field.replace('"', "\"\"")) } else { Cow::Borrowed(field) };
    record.push('"');
    record.push_str(&inner);
    record.push('"');
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use proptest::prelude::*;

    use super::*;
    use crate::corpus::Attribute;
    use crate::text::{Document, Span};

    fn document(text: &str) -> AnnotatedDocument {
        let document = Document { id: "7,a".into(), text: text.into(), ..Document::default() };
        AnnotatedDocument { document, ..AnnotatedDocument::default() }
    }

    fn check(document: &AnnotatedDocument, expected: Expect) {
        let lines = csv_records(document).into_iter().map(|record| record + "\n");
        expected.assert_eq(&lines.collect::<String>());
    }

    #[test]
    fn mentions_are_rows() {
        let mut all = document("β breast\tand ovarian\ncancer");
        let candidate =
            CandidateRecord { id: "X:1|Y:2".into(), name: "breast \"cancer\"".into(), p_link: 0.5, p_both: None };
        let linked = Annotation {
            spans: vec![Span::new(3, 9), Span::new(22, 28)],
            text: "breast cancer".into(),
            semantic_type: "Disease".into(),
            score: Some(0.76543),
            p_mention: Some(0.9),
            candidates: vec![candidate],
            codes: vec![CodeRecord { id: "Z:3".into(), predicate: "skos:exactMatch".into() }],
            attributes: vec![Attribute { name: "negation".into(), value: "negated".into() }],
            ..Annotation::default()
        };
        let abstained = Annotation { nil: true, codes: Vec::new(), attributes: Vec::new(), ..linked.clone() };
        let gold = Annotation {
            spans: vec![Span::new(0, 2)],
            text: "β".into(),
            ids: vec!["G:1".into()],
            ..Annotation::default()
        };
        all.annotations = vec![linked, abstained, gold];
        check(
            &all,
            expect![[r#"
                "7,a",2,27,"[[2,8],[21,27]]",breast cancer,Disease,X:1|Y:2,"breast ""cancer""",0.7654,0.9,,false,true,false,false,false,false,"[{""id"":""X:1|Y:2"",""name"":""breast \""cancer\"""",""score"":0.5}]","[{""id"":""Z:3"",""predicate"":""skos:exactMatch""}]"
                "7,a",2,27,"[[2,8],[21,27]]",breast cancer,Disease,,,0.7654,0.9,,true,false,false,false,false,false,"[{""id"":""X:1|Y:2"",""name"":""breast \""cancer\"""",""score"":0.5}]",[]
                "7,a",0,1,"[[0,1]]",β,,G:1,,1,,,false,false,false,false,false,false,[],[]
            "#]],
        );
        assert_eq!(csv_header().matches(',').count(), 19);
    }

    proptest! {
        #[test]
        fn fields_are_read_back(fields in proptest::collection::vec("[a ,\"\n\ré]{0,8}", 1..5)) {
            let mut record = String::new();
            for (at, field) in fields.iter().enumerate() {
                if at > 0 {
                    record.push(',');
                }
                push_csv(&mut record, field);
            }
            prop_assert_eq!(split(&record), fields);
        }
    }

    /// The fields of a record by RFC 4180.
    fn split(record: &str) -> Vec<String> {
        let (mut fields, mut field, mut is_quoted) = (Vec::new(), String::new(), false);
        let mut letters = record.chars().peekable();
        while let Some(letter) = letters.next() {
            match letter {
                '"' if is_quoted && letters.peek() == Some(&'"') => {
                    field.push('"');
                    letters.next();
                }
                '"' => is_quoted = !is_quoted,
                ',' if !is_quoted => fields.push(std::mem::take(&mut field)),
                letter => field.push(letter),
            }
        }
        fields.push(field);
        fields
    }
}
