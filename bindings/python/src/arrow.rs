//! Arrow data: linked mentions out as a stream of one batch, and texts in from any table.

use std::sync::Arc;

use arrow_array::builder::{BooleanBuilder, Float64Builder, Int64Builder, ListBuilder, StringBuilder, StructBuilder};
use arrow_array::cast::AsArray;
use arrow_array::ffi_stream::{ArrowArrayStreamReader, FFI_ArrowArrayStream};
use arrow_array::types::{Int32Type, Int64Type};
use arrow_array::{
    Array, ArrayRef, BinaryArray, LargeBinaryArray, RecordBatch, RecordBatchIterator, RecordBatchReader,
};
use arrow_schema::{ArrowError, DataType, Field, Fields, Schema};
use canonym::{AnnotatedDocument, Document as Text};
use canonym_core::corpus::contexts::VALUES as CONTEXTS;
use canonym_core::corpus::table::{COLUMNS, rows};
use canonym_core::numbers::rounded;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyList};

use crate::errors::{MISSING_HINT, TYPE_HINT, usage};

/// Name of the capsule of a stream, as the PyCapsule interface says.
const STREAM: &std::ffi::CStr = c"arrow_array_stream";

/// A document, and the spans of each annotation in code points.
pub type WithSpans<'a> = (&'a AnnotatedDocument, &'a [Vec<(usize, usize)>]);

/// The mentions of documents as a capsule with an Arrow stream, one row each.
pub fn stream<'py>(py: Python<'py>, documents: &[WithSpans<'_>]) -> PyResult<Bound<'py, PyAny>> {
    let batch = py.detach(|| mentions(documents)).map_err(wrong_arrow)?;
    let schema = batch.schema();
    let reader: Box<dyn RecordBatchReader + Send> = Box::new(RecordBatchIterator::new([Ok(batch)], schema));
    Ok(PyCapsule::new(py, FFI_ArrowArrayStream::new(reader), Some(STREAM.to_owned()))?.into_any())
}

fn wrong_arrow(error: ArrowError) -> PyErr {
    PyValueError::new_err(error.to_string())
}

fn span_fields() -> Fields {
    Fields::from(vec![Field::new("start", DataType::Int64, true), Field::new("end", DataType::Int64, true)])
}

fn candidate_fields() -> Fields {
    Fields::from(vec![
        Field::new("id", DataType::Utf8, true),
        Field::new("name", DataType::Utf8, true),
        Field::new("score", DataType::Float64, true),
    ])
}

fn code_fields() -> Fields {
    Fields::from(vec![Field::new("id", DataType::Utf8, true), Field::new("predicate", DataType::Utf8, true)])
}

/// The columns of `link --to parquet`.
fn mentions(documents: &[WithSpans<'_>]) -> Result<RecordBatch, ArrowError> {
    let (mut row, mut document_id) = (Int64Builder::new(), StringBuilder::new());
    let (mut start, mut end) = (Int64Builder::new(), Int64Builder::new());
    let mut spans = ListBuilder::new(StructBuilder::from_fields(span_fields(), 0));
    let (mut text, mut kind) = (StringBuilder::new(), StringBuilder::new());
    let (mut id, mut name) = (StringBuilder::new(), StringBuilder::new());
    let mut numbers: [Float64Builder; 3] = Default::default();
    let mut nil = BooleanBuilder::new();
    let mut contexts: [BooleanBuilder; CONTEXTS.len()] = Default::default();
    let mut candidates = ListBuilder::new(StructBuilder::from_fields(candidate_fields(), 0));
    let mut codes = ListBuilder::new(StructBuilder::from_fields(code_fields(), 0));
    for (at, (document, spans_of)) in documents.iter().enumerate() {
        for mention in rows(document, spans_of) {
            row.append_value(at as i64);
            document_id.append_value(mention.document);
            start.append_value(mention.start() as i64);
            end.append_value(mention.end() as i64);
            for (first, last) in mention.spans {
                push(spans.values(), &[*first as i64, *last as i64]);
            }
            spans.append(true);
            text.append_value(mention.text);
            kind.append_value(mention.kind);
            id.append_option(mention.id);
            name.append_option(mention.name);
            let values = [Some(mention.score), mention.p_mention, mention.p_link];
            numbers.iter_mut().zip(values).for_each(|(column, value)| column.append_option(value));
            nil.append_value(mention.nil);
            contexts.iter_mut().zip(mention.contexts).for_each(|(column, has)| column.append_value(has));
            for candidate in mention.candidates {
                let columns = candidates.values();
                push_texts(columns, [&candidate.id, &candidate.name]);
                let score = columns.field_builder::<Float64Builder>(2).expect("a number");
                score.append_value(rounded(candidate.score()));
                columns.append(true);
            }
            candidates.append(true);
            for code in mention.codes {
                push_texts(codes.values(), [&code.id, &code.predicate]);
                codes.values().append(true);
            }
            codes.append(true);
        }
    }
    let [mut score, mut p_mention, mut p_link] = numbers;
    let mut columns: Vec<ArrayRef> = vec![
        Arc::new(row.finish()),
        Arc::new(document_id.finish()),
        Arc::new(start.finish()),
        Arc::new(end.finish()),
        Arc::new(spans.finish()),
        Arc::new(text.finish()),
        Arc::new(kind.finish()),
        Arc::new(id.finish()),
        Arc::new(name.finish()),
        Arc::new(score.finish()),
        Arc::new(p_mention.finish()),
        Arc::new(p_link.finish()),
        Arc::new(nil.finish()),
    ];
    columns.extend(contexts.iter_mut().map(|column| Arc::new(column.finish()) as ArrayRef));
    columns.extend([Arc::new(candidates.finish()) as ArrayRef, Arc::new(codes.finish())]);
    let field = |(name, column): (&str, &ArrayRef)| Field::new(name, column.data_type().clone(), true);
    let schema = Schema::new(COLUMNS.into_iter().zip(&columns).map(field).collect::<Vec<_>>());
    RecordBatch::try_new(Arc::new(schema), columns)
}

/// Appends the first two fields of a struct.
fn push_texts(columns: &mut StructBuilder, values: [&String; 2]) {
    for (at, value) in values.into_iter().enumerate() {
        columns.field_builder::<StringBuilder>(at).expect("a text").append_value(value);
    }
}

/// Appends one row of integers.
fn push(columns: &mut StructBuilder, values: &[i64]) {
    for (at, value) in values.iter().enumerate() {
        columns.field_builder::<Int64Builder>(at).expect("an integer").append_value(*value);
    }
    columns.append(true);
}

/// The texts of an Arrow table with a column `text` and perhaps one `id`; `None` if `table` is no Arrow table.
pub fn texts(table: &Bound<'_, PyAny>) -> PyResult<Option<Vec<Text>>> {
    // Columns, which have no columns themselves, are read as other iterables are.
    let is_table = ["columns", "column_names", "schema"].iter().any(|name| table.hasattr(*name).unwrap_or(false));
    if table.is_instance_of::<PyList>() || !is_table || !table.hasattr("__arrow_c_stream__")? {
        return Ok(None);
    }
    let capsule = table.call_method0("__arrow_c_stream__")?;
    let capsule =
        capsule.cast::<PyCapsule>().map_err(|_| PyTypeError::new_err("__arrow_c_stream__ gave no capsule"))?;
    let pointer = capsule.pointer_checked(Some(STREAM))?;
    // SAFETY: the interface says that a capsule of this name holds a valid stream, which whoever asked for it may move out.
    let stream = unsafe { FFI_ArrowArrayStream::from_raw(pointer.as_ptr().cast()) };
    let reader = ArrowArrayStreamReader::try_new(stream).map_err(wrong_arrow)?;
    let schema = reader.schema();
    let Ok(column) = schema.index_of("text") else {
        let names: Vec<String> = schema.fields().iter().map(|field| format!("`{}`", field.name())).collect();
        let message = format!("the table has no column `text`, only {}", names.join(", "));
        return Err(usage(table.py(), message, "rename the column with the texts to `text`, or pass this column"));
    };
    let ids = schema.index_of("id").ok();
    let mut documents = Vec::new();
    for batch in reader {
        let batch = batch.map_err(wrong_arrow)?;
        let (texts, ids) = (batch.column(column), ids.map(|at| batch.column(at)));
        if let Some(row) = [Some(texts), ids].into_iter().flatten().find_map(wrong_utf8) {
            let message = format!("text {} is not valid UTF-8", documents.len() + row);
            return Err(usage(table.py(), message, "decode the bytes with the encoding of their source"));
        }
        for row in 0..batch.num_rows() {
            let at = documents.len();
            let Some(text) = string(texts, row) else {
                let message = match texts.is_null(row) {
                    true => format!("text {at} is missing; {MISSING_HINT}"),
                    false => format!("the column `text` holds {}, not strings; {TYPE_HINT}", texts.data_type()),
                };
                return Err(PyTypeError::new_err(message));
            };
            let id = ids.and_then(|ids| string(ids, row).map(str::to_owned).or_else(|| integer(ids, row)));
            let id = id.unwrap_or_else(|| (at + 1).to_string());
            documents.push(Text { id, text: text.to_owned(), ..Text::default() });
        }
    }
    Ok(Some(documents))
}

/// The first row of a column of strings that is not UTF-8. Streams are not checked when they are read.
fn wrong_utf8(column: &ArrayRef) -> Option<usize> {
    if let Some(strings) = column.as_string_opt::<i32>() {
        return first_wrong(BinaryArray::from(strings.clone()).iter());
    }
    if let Some(strings) = column.as_string_opt::<i64>() {
        return first_wrong(LargeBinaryArray::from(strings.clone()).iter());
    }
    first_wrong(column.as_string_view_opt()?.clone().to_binary_view().iter())
}

fn first_wrong<'a>(mut rows: impl Iterator<Item = Option<&'a [u8]>>) -> Option<usize> {
    rows.position(|bytes| bytes.is_some_and(|bytes| str::from_utf8(bytes).is_err()))
}

/// The value of a column of strings; `None` if it is missing or the column holds something else.
fn string(column: &ArrayRef, row: usize) -> Option<&str> {
    if column.is_null(row) {
        return None;
    }
    let short = column.as_string_opt::<i32>().map(|texts| texts.value(row));
    let long = || column.as_string_opt::<i64>().map(|texts| texts.value(row));
    short.or_else(long).or_else(|| column.as_string_view_opt().map(|texts| texts.value(row)))
}

fn integer(column: &ArrayRef, row: usize) -> Option<String> {
    if column.is_null(row) {
        return None;
    }
    let long = column.as_primitive_opt::<Int64Type>().map(|numbers| numbers.value(row).to_string());
    long.or_else(|| column.as_primitive_opt::<Int32Type>().map(|numbers| numbers.value(row).to_string()))
}
