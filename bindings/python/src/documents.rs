//! Linked documents, their mentions and candidates. Values are made when they are asked for.

use std::path::Path;
use std::sync::{Arc, OnceLock};

use canonym::{AnnotatedDocument, Annotation, CorpusFormat, Explanation, Reader};
use canonym_core::corpus::contexts::is_context;
use canonym_core::corpus::format::encode;
use canonym_core::corpus::table::code_points;
use canonym_core::input::Source;
use canonym_core::numbers::rounded;
use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use pyo3::types::{PyList, PySlice, PyTuple};

use crate::arrow;
use crate::errors::OrRaise;
use crate::threads;

/// A document with what was asked about it so far.
pub struct Linked {
    document: AnnotatedDocument,
    /// One for each annotation, or none.
    explanations: Vec<Explanation>,
    /// Spans of each annotation in code points.
    spans: OnceLock<Vec<Vec<(usize, usize)>>>,
}

impl Linked {
    fn spans(&self) -> &[Vec<(usize, usize)>] {
        self.spans.get_or_init(|| code_points(&self.document))
    }

    /// The line that `canonym link` writes, without a line break.
    fn json(&self) -> canonym::Result<String> {
        let mut line = Vec::new();
        match self.explanations.is_empty() {
            true => encode(&self.document, CorpusFormat::Jsonl, &mut line)?,
            false => canonym_core::corpus::jsonl::write_explained(&self.document, &self.explanations, &mut line)?,
        }
        Ok(String::from_utf8(line).expect("JSON is UTF-8").trim_end().to_owned())
    }
}

/// The document of a JSON line; `label` replaces its path in errors.
pub fn from_json(py: Python<'_>, line: String, label: &str) -> PyResult<AnnotatedDocument> {
    threads::work(py, || {
        let source = Source::from_bytes(label, line.into_bytes());
        let document = Reader::from_source(&source, Some(CorpusFormat::Jsonl))?.next();
        document.unwrap_or_else(|| Err(canonym::Error::parse(Path::new(label), 1, "an empty line is not a document")))
    })
}

/// The document of a JSON line.
#[pyfunction]
pub fn read(py: Python<'_>, line: String) -> PyResult<Document> {
    Ok(Document::new(from_json(py, line, "document")?, Vec::new()))
}

/// A text with linked mentions: a sequence of `Mention`, and an Arrow stream of one row per mention.
#[pyclass(frozen, module = "canonym")]
pub struct Document(Arc<Linked>);

impl Document {
    /// A document with one explanation for each annotation, or none.
    pub fn new(document: AnnotatedDocument, explanations: Vec<Explanation>) -> Document {
        Document(Arc::new(Linked { document, explanations, spans: OnceLock::new() }))
    }

    /// The document as the libraries know it.
    pub fn annotated(&self) -> &AnnotatedDocument {
        &self.0.document
    }

    fn with_spans(&self) -> arrow::WithSpans<'_> {
        (&self.0.document, self.0.spans())
    }

    fn mention(&self, row: usize) -> Mention {
        Mention { document: self.0.clone(), row }
    }
}

#[pymethods]
impl Document {
    /// Its id; its number, from 1, if none was given.
    #[getter]
    fn id(&self) -> &str {
        &self.0.document.document.id
    }

    /// The text.
    #[getter]
    fn text(&self) -> &str {
        &self.0.document.document.text
    }

    /// The mentions, in text order.
    #[getter]
    fn mentions(&self) -> Vec<Mention> {
        (0..self.__len__()).map(|row| self.mention(row)).collect()
    }

    fn __len__(&self) -> usize {
        self.0.document.annotations.len()
    }

    fn __getitem__<'py>(&self, py: Python<'py>, index: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        match rows(index, self.__len__())? {
            Rows::One(row) => Ok(Bound::new(py, self.mention(row))?.into_any()),
            Rows::Many(rows) => {
                Ok(rows.into_iter().map(|row| self.mention(row)).collect::<Vec<_>>().into_pyobject(py)?)
            }
        }
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        Ok(self.mentions().into_pyobject(py)?.try_iter()?.into_any())
    }

    /// Whether both have the same text, id, mentions and explanations.
    fn __eq__(&self, py: Python<'_>, other: &Bound<'_, PyAny>) -> PyResult<bool> {
        let Ok(other) = other.cast::<Document>() else { return Ok(false) };
        Ok(self.to_json(py)? == other.get().to_json(py)?)
    }

    /// The line of JSON that `canonym link` writes.
    fn to_json(&self, py: Python<'_>) -> PyResult<String> {
        self.0.json().or_raise(py)
    }

    /// The fields of the line of JSON.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        from_json_text(py, &self.to_json(py)?)
    }

    fn __repr__(&self) -> String {
        format!("<Document {}: {}>", self.id(), counted(self.__len__(), "mention"))
    }

    fn _repr_html_(slf: &Bound<'_, Self>) -> PyResult<String> {
        slf.py().import("canonym._html")?.call_method1("document", (slf,))?.extract()
    }

    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        slf: &Bound<'py, Self>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        drop(requested_schema);
        arrow::stream(slf.py(), &[slf.get().with_spans()])
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, (String,))> {
        Ok((py.import("canonym._canonym")?.getattr("read")?, (self.to_json(py)?,)))
    }
}

/// Linked documents, in order: a sequence of `Document`, and an Arrow stream of one row per mention.
#[pyclass(frozen, module = "canonym")]
pub struct Documents(pub Vec<Py<Document>>);

impl Documents {
    /// The documents as the libraries know them.
    pub fn annotated(&self) -> Vec<AnnotatedDocument> {
        self.0.iter().map(|document| document.get().annotated().clone()).collect()
    }

    fn list<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        PyList::new(py, &self.0)
    }
}

#[pymethods]
impl Documents {
    #[new]
    fn from_documents(documents: Vec<Py<Document>>) -> Documents {
        Documents(documents)
    }

    fn __len__(&self) -> usize {
        self.0.len()
    }

    fn __getitem__<'py>(&self, py: Python<'py>, index: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        match rows(index, self.0.len())? {
            Rows::One(row) => Ok(self.0[row].bind(py).clone().into_any()),
            Rows::Many(rows) => {
                let chosen = rows.into_iter().map(|row| self.0[row].clone_ref(py)).collect();
                Ok(Bound::new(py, Documents(chosen))?.into_any())
            }
        }
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        Ok(self.list(py)?.try_iter()?.into_any())
    }

    fn __eq__(&self, py: Python<'_>, other: &Bound<'_, PyAny>) -> PyResult<bool> {
        let Ok(other) = other.cast::<Documents>() else { return Ok(false) };
        self.list(py)?.eq(other.get().list(py)?)
    }

    /// The lines of JSON that `canonym link` writes.
    fn to_jsonl(&self, py: Python<'_>) -> PyResult<String> {
        let mut lines = String::new();
        for document in &self.0 {
            lines.push_str(&document.get().to_json(py)?);
            lines.push('\n');
        }
        Ok(lines)
    }

    fn __repr__(&self) -> String {
        let n_mentions: usize = self.0.iter().map(|document| document.get().__len__()).sum();
        format!("<Documents: {}, {}>", counted(self.0.len(), "document"), counted(n_mentions, "mention"))
    }

    fn _repr_html_(slf: &Bound<'_, Self>) -> PyResult<String> {
        slf.py().import("canonym._html")?.call_method1("documents", (slf,))?.extract()
    }

    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        slf: &Bound<'py, Self>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        drop(requested_schema);
        let documents: Vec<arrow::WithSpans<'_>> = slf.get().0.iter().map(|one| one.get().with_spans()).collect();
        arrow::stream(slf.py(), &documents)
    }

    fn __getnewargs__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyList>,)> {
        Ok((self.list(py)?,))
    }
}

/// A linked mention. Offsets count characters, as in Python strings.
#[pyclass(frozen, module = "canonym")]
pub struct Mention {
    document: Arc<Linked>,
    row: usize,
}

impl Mention {
    fn annotation(&self) -> &Annotation {
        &self.document.document.annotations[self.row]
    }

    fn has_context(&self, value: &str) -> bool {
        self.contexts().any(|context| context == value)
    }

    fn contexts(&self) -> impl Iterator<Item = &str> {
        self.annotation().attributes.iter().filter(|one| is_context(one)).map(|one| one.value.as_str())
    }
}

#[pymethods]
impl Mention {
    /// The text of the mention.
    #[getter]
    fn text(&self) -> &str {
        &self.annotation().text
    }

    /// Start and end in characters; several pairs if it is discontinuous.
    #[getter]
    fn spans(&self) -> Vec<(usize, usize)> {
        self.document.spans()[self.row].clone()
    }

    /// The first character.
    #[getter]
    fn start(&self) -> usize {
        self.document.spans()[self.row].first().map_or(0, |span| span.0)
    }

    /// The end, exclusive.
    #[getter]
    fn end(&self) -> usize {
        self.document.spans()[self.row].last().map_or(0, |span| span.1)
    }

    /// Semantic type; may be empty.
    #[getter]
    fn r#type(&self) -> &str {
        &self.annotation().semantic_type
    }

    /// Id of the linked concept; `None` if the mention is not linked.
    #[getter]
    fn id(&self) -> Option<&str> {
        let annotation = self.annotation();
        annotation.concept_id().or_else(|| annotation.ids.first().map(String::as_str))
    }

    /// Preferred name of the linked concept; `None` if the mention is not linked.
    #[getter]
    fn name(&self) -> Option<&str> {
        let annotation = self.annotation();
        annotation.candidates.first().filter(|_| !annotation.nil).map(|best| best.name.as_str())
    }

    /// Whether the mention was left unlinked.
    #[getter]
    fn nil(&self) -> bool {
        self.annotation().nil
    }

    /// Calibrated probability that mention and concept are correct.
    #[getter]
    fn score(&self) -> f64 {
        rounded(self.annotation().probability())
    }

    /// Probability that this is a mention; `None` if it was given.
    #[getter]
    fn p_mention(&self) -> Option<f64> {
        self.annotation().p_mention.map(rounded)
    }

    /// Probability of the concept if this is a mention; `None` without candidates.
    #[getter]
    fn p_link(&self) -> Option<f64> {
        self.annotation().p_link.map(rounded)
    }

    /// The candidate concepts, best first.
    #[getter]
    fn candidates(&self) -> Vec<Candidate> {
        let candidate = |one: &canonym::CandidateRecord| Candidate {
            id: one.id.clone(),
            name: one.name.clone(),
            score: rounded(one.score()),
            p_link: rounded(one.p_link),
        };
        self.annotation().candidates.iter().map(candidate).collect()
    }

    /// Codes of the linked concept in the code system `to_system` of the system, each with its predicate, the strongest first.
    #[getter]
    fn codes(&self) -> Vec<(String, String)> {
        self.annotation().codes.iter().map(|code| (code.id.clone(), code.predicate.clone())).collect()
    }

    /// Its contexts, such as `("negated",)`; empty for a present finding of the patient.
    #[getter]
    fn context<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.contexts().collect::<Vec<_>>())
    }

    /// Whether it is negated.
    #[getter]
    fn negated(&self) -> bool {
        self.has_context("negated")
    }

    /// Whether it is uncertain.
    #[getter]
    fn possible(&self) -> bool {
        self.has_context("possible")
    }

    /// Whether it is part of the past history.
    #[getter]
    fn historical(&self) -> bool {
        self.has_context("historical")
    }

    /// Whether it lies in a possible future.
    #[getter]
    fn hypothetical(&self) -> bool {
        self.has_context("hypothetical")
    }

    /// Whether a relative has it.
    #[getter]
    fn family(&self) -> bool {
        self.has_context("family")
    }

    /// Why it was linked so; `None` unless `System.explain` made it.
    #[getter]
    fn explanation<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let Some(explanation) = self.document.explanations.get(self.row) else { return Ok(None) };
        let text = serde_json::to_string(explanation).expect("explanations hold strings and numbers");
        from_json_text(py, &text).map(Some)
    }

    /// Whether both are the same mention of equal documents.
    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        let Ok(other) = other.cast::<Mention>() else { return false };
        let other = other.get();
        let is_same = self.row == other.row && Arc::ptr_eq(&self.document, &other.document);
        is_same || (self.row == other.row && self.document.json().ok() == other.document.json().ok())
    }

    fn __repr__(&self) -> String {
        let (start, end) = (self.start(), self.end());
        match (self.id(), self.name()) {
            (Some(id), Some(name)) => {
                format!("<Mention {} {start}..{end} {id} {name} ({:.2})>", self.text(), self.score())
            }
            (Some(id), None) => format!("<Mention {} {start}..{end} {id}>", self.text()),
            (None, _) => format!("<Mention {} {start}..{end} unlinked ({:.2})>", self.text(), self.score()),
        }
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, (Document, usize))> {
        let get = py.import("operator")?.getattr("getitem")?;
        Ok((get, (Document(self.document.clone()), self.row)))
    }
}

/// A concept that a mention or name may mean.
#[pyclass(frozen, get_all, eq, module = "canonym")]
#[derive(Clone)]
pub struct Candidate {
    /// Id of the concept.
    pub id: String,
    /// Its preferred name.
    pub name: String,
    /// Probability that the concept is meant; of a detected mention, that it is a mention as well.
    pub score: f64,
    /// Probability that the concept is meant if this is a mention.
    pub p_link: f64,
}

/// `p_link` is not compared: rows of Arrow tables hold only the score, to which it is proportional.
impl PartialEq for Candidate {
    fn eq(&self, other: &Candidate) -> bool {
        (&self.id, &self.name, self.score) == (&other.id, &other.name, other.score)
    }
}

#[pymethods]
impl Candidate {
    #[new]
    #[pyo3(signature = (id, name, score, p_link=None))]
    fn new(id: String, name: String, score: f64, p_link: Option<f64>) -> Candidate {
        Candidate { id, name, score, p_link: p_link.unwrap_or(score) }
    }

    fn __repr__(&self) -> String {
        format!("<Candidate {} {} ({:.2})>", self.id, self.name, self.score)
    }

    fn __getnewargs__(&self) -> (&str, &str, f64, f64) {
        (&self.id, &self.name, self.score, self.p_link)
    }
}

/// Python values of a JSON text.
pub fn from_json_text<'py>(py: Python<'py>, text: &str) -> PyResult<Bound<'py, PyAny>> {
    py.import("json")?.call_method1("loads", (text,))
}

/// A number with its noun.
pub fn counted(n: usize, noun: &str) -> String {
    format!("{n} {noun}{}", if n == 1 { "" } else { "s" })
}

/// What an index selects.
enum Rows {
    One(usize),
    Many(Vec<usize>),
}

/// The rows of a sequence of `n` items that `index` selects, an integer or a slice.
fn rows(index: &Bound<'_, PyAny>, n: usize) -> PyResult<Rows> {
    if let Ok(slice) = index.cast::<PySlice>() {
        let slice = slice.indices(n as isize)?;
        let rows = (0..slice.slicelength as isize).map(|at| (slice.start + at * slice.step) as usize);
        return Ok(Rows::Many(rows.collect()));
    }
    let at: isize = index.extract()?;
    let row = if at < 0 { at + n as isize } else { at };
    match usize::try_from(row).ok().filter(|row| *row < n) {
        Some(row) => Ok(Rows::One(row)),
        None => Err(PyIndexError::new_err(format!("index {at} out of range for {n} items"))),
    }
}
