//! BioSyn queries: mentions without texts, one per line: `document||start|end||type||mention||ids`.
//!
//! Consecutive lines of a document form a document whose text consists of the mentions, one per line. The original
//! offsets refer to a text that is not available; they are kept as an attribute, [`OFFSETS`], so that the line can be
//! written again. A mention `a|b` has two parts. BioSyn stores one `.concept` file per document; a folder is read file
//! by file. Without that attribute the writer uses the offsets of the document. Texts, relations and scores are not
//! written. Evaluation of answers to queries is in `eval`.

use std::path::Path;

use crate::corpus::check::quote;
use crate::corpus::{AnnotatedDocument, Annotation, Attribute, MAX_DOCUMENT_BYTES};
use crate::input::Input;
use crate::text::offsets::OffsetMap;
use crate::text::{Document, Span};
use crate::{Error, Result};

/// Attribute with the original offsets of a query, such as `28|57`.
pub const OFFSETS: &str = "offsets";

const SHAPE: &str = "the format is `document||start|end||type||mention||ids`";

/// Written if there are no ids.
const NO_CONCEPT: &str = "-1";

/// Reader of documents.
pub(super) struct Documents {
    input: Input,
    /// The first query of the next document, or the error that ended the last one.
    lookahead: Option<Result<(String, Query)>>,
    /// Number of items read ahead.
    n_lookahead: u64,
}

/// A line.
struct Query {
    offsets: String,
    semantic_type: String,
    mention: String,
    ids: String,
}

impl Documents {
    pub fn new(input: Input) -> Documents {
        Documents { input, lookahead: None, n_lookahead: 0 }
    }

    /// A measure of progress that increases while reading.
    pub fn n_passed(&self) -> u64 {
        self.input.n_lines() + self.n_lookahead
    }

    /// The next document, `None` at the end. After a malformed line, the next call continues with the line after it.
    pub fn read_next(&mut self) -> Result<Option<AnnotatedDocument>> {
        let next = match self.lookahead.take() {
            Some(lookahead) => {
                self.n_lookahead += 1;
                Some(lookahead?)
            }
            None => self.next_query()?,
        };
        let Some((id, first)) = next else { return Ok(None) };
        let mut read = AnnotatedDocument { document: Document { id, ..Document::default() }, ..Default::default() };
        push(&mut read, first);
        while let Some(next) = self.next_query().transpose() {
            match next {
                Ok((id, query)) if id == read.document.id => push(&mut read, query),
                other => {
                    self.lookahead = Some(other);
                    break;
                }
            }
            if read.document.text.len() > MAX_DOCUMENT_BYTES {
                let id = quote(&read.document.id);
                let message = format!("document {id} has more than {MAX_DOCUMENT_BYTES} bytes");
                return Err(Error::limit(self.input.path(), message));
            }
        }
        Ok(Some(read))
    }

    fn next_query(&mut self) -> Result<Option<(String, Query)>> {
        let path = self.input.path().to_path_buf();
        while let Some((number, line)) = self.input.next_line()? {
            if !line.trim().is_empty() {
                return query(&path, number, line).map(Some);
            }
        }
        Ok(None)
    }
}

fn query(path: &Path, number: u64, line: &str) -> Result<(String, Query)> {
    let fields = parts(line).ok_or_else(|| {
        let message = format!("expected five fields separated by `||`, found {}", quote(line));
        Error::parse(path, number, message).with_hint(SHAPE)
    })?;
    let [id, offsets, semantic_type, mention, ids] = fields.map(str::to_owned);
    if id.is_empty() || mention.is_empty() {
        let what = if id.is_empty() { "document" } else { "mention" };
        return Err(Error::parse(path, number, format!("the query has no {what}")).with_hint(SHAPE));
    }
    Ok((id, Query { offsets, semantic_type, mention, ids }))
}

fn parts(line: &str) -> Option<[&str; 5]> {
    let mut fields = line.splitn(4, "||");
    let (id, offsets, semantic_type) = (fields.next()?, fields.next()?, fields.next()?);
    let (mention, ids) = fields.next()?.rsplit_once("||")?;
    Some([id, offsets, semantic_type, mention, ids])
}

/// Whether a file starts with a query.
pub(super) fn starts_query(head: &[u8]) -> bool {
    let line = head.split(|&byte| byte == b'\n').next().and_then(|line| std::str::from_utf8(line).ok());
    let Some([id, offsets, ..]) = line.and_then(parts) else { return false };
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    !id.is_empty() && offsets.split('|').all(digits)
}

fn push(read: &mut AnnotatedDocument, query: Query) {
    let text = &mut read.document.text;
    if !text.is_empty() {
        text.push('\n');
    }
    let start = text.len();
    text.push_str(&query.mention);
    let is_composite = query.mention.contains('|');
    read.annotations.push(Annotation {
        spans: vec![Span::new(start, text.len())],
        parts: query.mention.split('|').filter(|_| is_composite).map(str::to_owned).collect(),
        text: query.mention,
        semantic_type: query.semantic_type,
        ids: vec![query.ids],
        attributes: vec![Attribute { name: OFFSETS.to_owned(), value: query.offsets }],
        ..Annotation::default()
    });
}

/// Appends the mentions of one document to `out`.
pub(super) fn write(annotated: &AnnotatedDocument, out: &mut Vec<u8>) -> Result<()> {
    let document = &annotated.document;
    let map = OffsetMap::new(&document.text);
    let mut lines = String::new();
    if document.id.trim().is_empty() && !annotated.annotations.is_empty() {
        let message = format!("BioSyn cannot hold the document id {}", quote(&document.id));
        return Err(Error::unsupported(message).with_hint("change the document id, or use jsonl"));
    }
    for annotation in &annotated.annotations {
        let offsets = annotation.attributes.iter().find(|attribute| attribute.name == OFFSETS);
        let offsets = offsets.map_or_else(|| offsets_of(annotation, &map), |attribute| attribute.value.clone());
        let mention = if annotation.parts.is_empty() { annotation.text.clone() } else { annotation.parts.join("|") };
        let ids = written_ids(annotation);
        let mention = mention.replace(['\n', '\r'], " ");
        let fields =
            [("document id", document.id.as_str()), ("offsets", &offsets), ("type", &annotation.semantic_type)];
        for (what, value) in fields.into_iter().chain([("ids", ids.as_str())]) {
            if value.contains("||") || value.contains(['\n', '\r']) {
                let message =
                    format!("BioSyn cannot hold {} as {what} in document {}", quote(value), quote(&document.id));
                return Err(Error::unsupported(message).with_hint("remove `||` and line breaks from it, or use jsonl"));
            }
        }
        lines.push_str(&format!("{}||{offsets}||{}||{mention}||{ids}\n", document.id, annotation.semantic_type));
    }
    out.extend_from_slice(lines.as_bytes());
    Ok(())
}

fn offsets_of(annotation: &Annotation, map: &OffsetMap<'_>) -> String {
    let hull = annotation.hull();
    let code_point =
        |byte: u32| map.byte_to_char(byte as usize).expect("spans lie on character boundaries of the text");
    format!("{}|{}", code_point(hull.start), code_point(hull.end))
}

fn written_ids(annotation: &Annotation) -> String {
    match annotation.candidates.first() {
        _ if annotation.nil => NO_CONCEPT.to_owned(),
        Some(best) => best.id.clone(),
        None if annotation.ids.is_empty() => NO_CONCEPT.to_owned(),
        None => annotation.ids.join("|"),
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;
    use crate::corpus::{CorpusFormat, Reader, format, jsonl};

    /// The documents read, as JSON lines; asserts that writing reproduces the input.
    fn check(text: &str, expect: Expect) {
        let input = Input::from_bytes("in", text.as_bytes().to_vec()).unwrap();
        let (mut shown, mut back) = (Vec::new(), Vec::new());
        for item in Reader::from_input(input, Some(CorpusFormat::Biosyn)).unwrap() {
            match item {
                Ok(read) => {
                    jsonl::write(&read, &mut shown).unwrap();
                    write(&read, &mut back).unwrap();
                }
                Err(error) => shown.extend(format!("{error} (hint: {})\n", error.hint().unwrap_or("none")).bytes()),
            }
        }
        expect.assert_eq(&String::from_utf8(shown).unwrap());
        if !text.contains("no query") {
            assert_eq!(String::from_utf8(back).unwrap(), text);
        }
    }

    #[test]
    fn lines_of_one_document_make_a_document() {
        check(
            "7||28|57||Disease||fever|ague||D1|D2\n7||60|64||||gout||-1\n8||0|4||Disease||gout||D3 \n7||0|4||Disease||a||b||D4\n",
            expect![[r#"
                {"id":"7","text":"fever|ague\ngout","annotations":[{"spans":[[0,10]],"text":"fever|ague","type":"Disease","ids":["D1|D2"],"parts":["fever","ague"],"attributes":{"offsets":"28|57"}},{"spans":[[11,15]],"text":"gout","ids":["-1"],"attributes":{"offsets":"60|64"}}]}
                {"id":"8","text":"gout","annotations":[{"spans":[[0,4]],"text":"gout","type":"Disease","ids":["D3 "],"attributes":{"offsets":"0|4"}}]}
                {"id":"7","text":"a||b","annotations":[{"spans":[[0,4]],"text":"a||b","type":"Disease","ids":["D4"],"parts":["a","","b"],"attributes":{"offsets":"0|4"}}]}
            "#]],
        );
    }

    #[test]
    fn malformed_lines_are_named_and_passed_over() {
        check(
            "no query\n7||0|4||D||||D1\n8||0|4||D||gout||D1\n",
            expect![[r#"
            in:1: expected five fields separated by `||`, found `no query` (hint: the format is `document||start|end||type||mention||ids`)
            in:2: the query has no mention (hint: the format is `document||start|end||type||mention||ids`)
            {"id":"8","text":"gout","annotations":[{"spans":[[0,4]],"text":"gout","type":"D","ids":["D1"],"attributes":{"offsets":"0|4"}}]}
        "#]],
        );
    }

    #[test]
    fn documents_without_a_required_id_are_refused() {
        for id in ["", " ", "\u{a0}"] {
            let text = format!(
                "{{\"id\":\"{id}\",\"text\":\"gout\",\"annotations\":[{{\"spans\":[[0,4]],\"text\":\"gout\"}}]}}\n"
            );
            let input = Input::from_bytes("in", text.into_bytes()).unwrap();
            let read = Reader::from_input(input, Some(CorpusFormat::Jsonl)).unwrap().next().unwrap().unwrap();
            let refused = [write(&read, &mut Vec::new()), crate::corpus::pubmed::write(&read, &mut Vec::new())];
            for error in refused.map(Result::unwrap_err) {
                assert!(error.to_string().contains("cannot hold the document id"), "{error}");
            }
        }
    }

    #[test]
    fn query_files_are_detected_by_name_and_content() {
        let detected = |name: &str, head: &str| format::detect(Path::new(name), head.as_bytes()).unwrap();
        assert_eq!(detected("7.concept", ""), CorpusFormat::Biosyn);
        assert_eq!(detected("queries.txt", "7||0|4||D||gout||D1\n"), CorpusFormat::Biosyn);
        assert_eq!(detected("names.txt", "D1||gout\n"), CorpusFormat::Text);
    }

    #[test]
    fn mentions_of_a_text_are_written_with_their_own_offsets() {
        let text = "7|t|No β pain or gout.\n7\t5\t17\tpain or gout\tFinding\tD1|D2\tpain|gout\n7\t3\t4\tβ\tX\n";
        let input = Input::from_bytes("in", text.as_bytes().to_vec()).unwrap();
        let read = Reader::from_input(input, None).unwrap().next().unwrap().unwrap();
        let mut out = Vec::new();
        write(&read, &mut out).unwrap();
        expect![[r#"
            7||5|17||Finding||pain|gout||D1|D2
            7||3|4||X||β||-1
        "#]]
        .assert_eq(&String::from_utf8(out).unwrap());
    }
}
