//! Mentions as Apache Parquet: the columns of [`super::table`], with lists of structs for `spans`, `candidates` and `codes`.
//!
//! Rows are collected and written in row groups of a bounded number of rows and bytes, compressed with Snappy. Only `id`,
//! `name`, `p_mention` and `p_link` can be null. Written, not read.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parquet::basic::Compression;
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;

use crate::corpus::table::{MentionRow, code_points, rows};
use crate::corpus::{AnnotatedDocument, contexts};
use crate::numbers::rounded;
use crate::{Error, Result};

/// Maximum rows of a row group.
const GROUP_ROWS: usize = 1 << 16;

/// Size of the strings of a row group from which on it is written.
const GROUP_BYTES: usize = 32 << 20;

/// A column before it is written. Levels are empty for columns whose values are all there.
#[derive(Debug)]
struct Column<T> {
    values: Vec<T>,
    /// Whether a value is there.
    definition: Vec<i16>,
    /// Whether a value continues the list of the one before.
    repetition: Vec<i16>,
}

impl<T> Default for Column<T> {
    fn default() -> Column<T> {
        Column { values: Vec::new(), definition: Vec::new(), repetition: Vec::new() }
    }
}

impl<T> Column<T> {
    fn push(&mut self, value: T) {
        self.values.push(value);
    }

    fn push_option(&mut self, value: Option<T>) {
        self.definition.push(i16::from(value.is_some()));
        self.values.extend(value);
    }

    fn push_list(&mut self, values: impl Iterator<Item = T>) {
        let n_before = self.values.len();
        self.values.extend(values);
        let n = self.values.len() - n_before;
        self.definition.extend(std::iter::repeat_n(i16::from(n > 0), n.max(1)));
        self.repetition.extend((0..n.max(1)).map(|at| i16::from(at > 0)));
    }

    fn clear(&mut self) {
        self.values.clear();
        self.definition.clear();
        self.repetition.clear();
    }
}

/// The columns of a row group, by type and in order.
#[derive(Debug, Default)]
struct Columns {
    n_rows: usize,
    n_bytes: usize,
    row: Column<i64>,
    document: Column<ByteArray>,
    ends: [Column<i64>; 2],
    spans: [Column<i64>; 2],
    mention: [Column<ByteArray>; 2],
    concept: [Column<ByteArray>; 2],
    score: Column<f64>,
    probabilities: [Column<f64>; 2],
    flags: [Column<bool>; 6],
    candidate: [Column<ByteArray>; 2],
    candidate_score: Column<f64>,
    codes: [Column<ByteArray>; 2],
}

impl Columns {
    fn push(&mut self, number: i64, row: &MentionRow<'_>) {
        let mut n_bytes = 0;
        let mut bytes = |text: &str| {
            n_bytes += text.len();
            ByteArray::from(text.as_bytes().to_vec())
        };
        self.row.push(number);
        self.document.push(bytes(row.document));
        self.ends[0].push(row.start() as i64);
        self.ends[1].push(row.end() as i64);
        self.spans[0].push_list(row.spans.iter().map(|span| span.0 as i64));
        self.spans[1].push_list(row.spans.iter().map(|span| span.1 as i64));
        self.mention[0].push(bytes(row.text));
        self.mention[1].push(bytes(row.kind));
        self.concept[0].push_option(row.id.map(&mut bytes));
        self.concept[1].push_option(row.name.map(&mut bytes));
        self.score.push(row.score);
        self.probabilities[0].push_option(row.p_mention);
        self.probabilities[1].push_option(row.p_link);
        self.flags[0].push(row.nil);
        self.flags[1..].iter_mut().zip(row.contexts).for_each(|(column, has)| column.push(has));
        self.candidate[0].push_list(row.candidates.iter().map(|one| bytes(&one.id)));
        self.candidate[1].push_list(row.candidates.iter().map(|one| bytes(&one.name)));
        self.candidate_score.push_list(row.candidates.iter().map(|one| rounded(one.score())));
        self.codes[0].push_list(row.codes.iter().map(|one| bytes(&one.id)));
        self.codes[1].push_list(row.codes.iter().map(|one| bytes(&one.predicate)));
        self.n_rows += 1;
        self.n_bytes += n_bytes;
    }

    /// Writes the columns in the order of the schema and empties them.
    fn write<W: Write + Send>(&mut self, group: &mut SerializedRowGroupWriter<'_, W>) -> parquet::errors::Result<()> {
        put::<Int64Type, W>(group, &mut self.row)?;
        put::<ByteArrayType, W>(group, &mut self.document)?;
        self.ends.iter_mut().chain(&mut self.spans).try_for_each(|column| put::<Int64Type, W>(group, column))?;
        let texts = self.mention.iter_mut().chain(&mut self.concept);
        texts.into_iter().try_for_each(|column| put::<ByteArrayType, W>(group, column))?;
        put::<DoubleType, W>(group, &mut self.score)?;
        self.probabilities.iter_mut().try_for_each(|column| put::<DoubleType, W>(group, column))?;
        self.flags.iter_mut().try_for_each(|column| put::<BoolType, W>(group, column))?;
        self.candidate.iter_mut().try_for_each(|column| put::<ByteArrayType, W>(group, column))?;
        put::<DoubleType, W>(group, &mut self.candidate_score)?;
        self.codes.iter_mut().try_for_each(|column| put::<ByteArrayType, W>(group, column))?;
        (self.n_rows, self.n_bytes) = (0, 0);
        Ok(())
    }
}

fn put<T: DataType, W: Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    column: &mut Column<T::T>,
) -> parquet::errors::Result<()> {
    let mut writer = group.next_column()?.expect("the schema has each column once");
    let levels = |levels: &Vec<i16>| if levels.is_empty() { None } else { Some(levels.clone()) };
    let (definition, repetition) = (levels(&column.definition), levels(&column.repetition));
    writer.typed::<T>().write_batch(&column.values, definition.as_deref(), repetition.as_deref())?;
    column.clear();
    writer.close()
}

/// The schema; the order of the fields is that of [`super::table::COLUMNS`].
fn schema() -> String {
    let list = |name: &str, fields: &str| {
        format!("required group {name} (LIST) {{ repeated group list {{ required group element {{ {fields} }} }} }}\n")
    };
    let text = |name: &str| format!("required binary {name} (STRING); ");
    let number = |name: &str| format!("required int64 {name}; ");
    let mut message = "message mentions {\n".to_owned();
    message += &(number("row") + &text("document") + &number("start") + &number("end"));
    message += &list("spans", &(number("start") + &number("end")));
    message += &(text("text") + &text("type"));
    message += "optional binary id (STRING); optional binary name (STRING); ";
    message += "required double score; optional double p_mention; optional double p_link; required boolean nil; ";
    contexts::VALUES.iter().for_each(|value| message += &format!("required boolean {value}; "));
    message += &list("candidates", &(text("id") + &text("name") + "required double score; "));
    message += &list("codes", &(text("id") + &text("predicate")));
    message + "}"
}

/// Writes the mentions of documents to a Parquet file.
///
/// [`ParquetWriter::finish`] must be called: a file without its last part cannot be read.
pub struct ParquetWriter<W: Write + Send> {
    writer: SerializedFileWriter<W>,
    columns: Columns,
    n_documents: i64,
    path: PathBuf,
}

impl<W: Write + Send> ParquetWriter<W> {
    /// Starts a file on `out`; `path` is used in messages.
    pub fn new(out: W, path: &Path) -> Result<ParquetWriter<W>> {
        let schema = Arc::new(parse_message_type(&schema()).expect("the schema is well-formed"));
        let properties = WriterProperties::builder()
            .set_compression(Compression::SNAPPY)
            .set_created_by(concat!("canonym ", env!("CARGO_PKG_VERSION")).to_owned())
            .build();
        let writer = SerializedFileWriter::new(out, schema, Arc::new(properties));
        let writer = writer.map_err(|error| failure(path, error))?;
        Ok(ParquetWriter { writer, columns: Columns::default(), n_documents: 0, path: path.to_path_buf() })
    }

    /// Writes the mentions of a document.
    pub fn write(&mut self, document: &AnnotatedDocument) -> Result<()> {
        let spans = code_points(document);
        for row in rows(document, &spans) {
            self.columns.push(self.n_documents, &row);
            if self.columns.n_rows >= GROUP_ROWS || self.columns.n_bytes >= GROUP_BYTES {
                self.flush()?;
            }
        }
        self.n_documents += 1;
        Ok(())
    }

    /// Writes the row group.
    fn flush(&mut self) -> Result<()> {
        let (writer, columns) = (&mut self.writer, &mut self.columns);
        let mut write = || {
            let mut group = writer.next_row_group()?;
            columns.write(&mut group)?;
            group.close().map(drop)
        };
        write().map_err(|error| failure(&self.path, error))
    }

    /// Writes what is left and the last part of the file; returns `out`.
    pub fn finish(mut self) -> Result<W> {
        if self.columns.n_rows > 0 {
            self.flush()?;
        }
        self.writer.into_inner().map_err(|error| failure(&self.path, error))
    }
}

fn failure(path: &Path, error: ParquetError) -> Error {
    Error::io("write", path, std::io::Error::other(error))
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use parquet::file::reader::{FileReader, SerializedFileReader};

    use super::*;
    use crate::corpus::{Annotation, CandidateRecord, CodeRecord};
    use crate::text::{Document, Span};

    fn document(id: &str, annotations: Vec<Annotation>) -> AnnotatedDocument {
        let document = Document { id: id.into(), text: "é dry cough".into(), ..Document::default() };
        AnnotatedDocument { document, annotations, ..AnnotatedDocument::default() }
    }

    fn mention() -> Annotation {
        let candidate =
            |id: &str, score| CandidateRecord { id: id.into(), name: "dry cough".into(), p_link: score, p_both: None };
        Annotation {
            spans: vec![Span::new(3, 6), Span::new(7, 12)],
            text: "dry cough".into(),
            semantic_type: "Symptom".into(),
            score: Some(0.75),
            p_link: Some(1.0),
            candidates: vec![candidate("X:1", 0.75), candidate("X:2", 0.25)],
            codes: vec![CodeRecord { id: "Z:3".into(), predicate: "skos:exactMatch".into() }],
            ..Annotation::default()
        }
    }

    fn written(documents: &[AnnotatedDocument]) -> SerializedFileReader<std::fs::File> {
        let mut writer = ParquetWriter::new(tempfile::tempfile().unwrap(), Path::new("out")).unwrap();
        documents.iter().for_each(|document| writer.write(document).unwrap());
        SerializedFileReader::new(writer.finish().unwrap()).unwrap()
    }

    #[test]
    fn rows_are_read_back() {
        let gold = Annotation { spans: vec![Span::new(0, 2)], text: "é".into(), nil: true, ..Annotation::default() };
        let file = written(&[document("a", vec![mention()]), document("b", vec![]), document("c", vec![gold])]);
        let rows = file.get_row_iter(None).unwrap().map(|row| format!("{}\n", row.unwrap()));
        expect![[r#"
            {row: 0, document: "a", start: 2, end: 11, spans: [{start: 2, end: 5}, {start: 6, end: 11}], text: "dry cough", type: "Symptom", id: "X:1", name: "dry cough", score: 0.75, p_mention: null, p_link: 1.0, nil: false, negated: false, possible: false, historical: false, hypothetical: false, family: false, candidates: [{id: "X:1", name: "dry cough", score: 0.75}, {id: "X:2", name: "dry cough", score: 0.25}], codes: [{id: "Z:3", predicate: "skos:exactMatch"}]}
            {row: 2, document: "c", start: 0, end: 1, spans: [{start: 0, end: 1}], text: "é", type: "", id: null, name: null, score: 1.0, p_mention: null, p_link: null, nil: true, negated: false, possible: false, historical: false, hypothetical: false, family: false, candidates: [], codes: []}
        "#]].assert_eq(&rows.collect::<String>());
        let names: Vec<&str> =
            file.metadata().file_metadata().schema().get_fields().iter().map(|field| field.name()).collect();
        assert_eq!(names, crate::corpus::table::COLUMNS);
    }

    #[test]
    fn many_rows_are_written_in_groups() {
        let documents: Vec<_> = (0..9).map(|number| document(&number.to_string(), vec![mention(); 10_000])).collect();
        let file = written(&documents);
        let groups = file.metadata().row_groups();
        assert_eq!(groups.iter().map(|group| group.num_rows()).collect::<Vec<_>>(), [1 << 16, 90_000 - (1 << 16)]);
        assert_eq!(written(&[]).metadata().file_metadata().num_rows(), 0);
    }
}
