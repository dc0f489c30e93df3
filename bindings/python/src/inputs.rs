//! What a caller passes: options by name, texts in any container, documents as objects, dictionaries or files.

use canonym::{AnnotatedDocument, Document as Text, Reader};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};

use crate::arrow;
use crate::documents::{Document, Documents, from_json};
use crate::errors::{MISSING_HINT, TYPE_HINT};
use crate::threads;

/// Options by name, each of which is taken once.
pub struct Options<'py> {
    function: &'static str,
    rest: Option<Bound<'py, PyDict>>,
}

impl<'py> Options<'py> {
    /// The options of a call of `function`.
    pub fn new(function: &'static str, options: Option<&Bound<'py, PyDict>>) -> PyResult<Options<'py>> {
        Ok(Options { function, rest: options.map(|options| options.copy()).transpose()? })
    }

    fn pop(&mut self, name: &str) -> PyResult<Option<Bound<'py, PyAny>>> {
        let Some(rest) = &self.rest else { return Ok(None) };
        let Some(value) = rest.get_item(name)? else { return Ok(None) };
        rest.del_item(name)?;
        Ok((!value.is_none()).then_some(value))
    }

    /// The value of an option; `None` if it is not given.
    pub fn take<T>(&mut self, name: &str) -> PyResult<Option<T>>
    where
        T: for<'a> FromPyObject<'a, 'py, Error: Into<PyErr>>,
    {
        let Some(value) = self.pop(name)? else { return Ok(None) };
        match value.extract::<T>() {
            Ok(taken) => Ok(Some(taken)),
            Err(error) => Err(wrong_value(value.py(), name, error.into())),
        }
    }

    /// The values of an option that takes one or several; empty if it is not given.
    pub fn take_list<T>(&mut self, name: &str) -> PyResult<Vec<T>>
    where
        T: for<'a> FromPyObject<'a, 'py, Error: Into<PyErr>>,
    {
        let Some(value) = self.pop(name)? else { return Ok(Vec::new()) };
        one_or_many(&value).map_err(|error| wrong_value(value.py(), name, error))
    }

    /// Fails if an option was not taken, because the function has none of this name.
    pub fn finish(self) -> PyResult<()> {
        match self.rest.as_ref().and_then(|rest| rest.keys().get_item(0).ok()) {
            None => Ok(()),
            Some(name) => {
                let message = format!("{}() got an unexpected keyword argument '{name}'", self.function);
                Err(PyTypeError::new_err(message))
            }
        }
    }
}

fn wrong_value(py: Python<'_>, name: &str, error: PyErr) -> PyErr {
    let wrong = PyTypeError::new_err(format!("argument '{name}': {}", error.value(py)));
    wrong.set_cause(py, Some(error));
    wrong
}

/// A value, or the values of an iterable.
pub fn one_or_many<'py, T>(value: &Bound<'py, PyAny>) -> PyResult<Vec<T>>
where
    T: for<'a> FromPyObject<'a, 'py, Error: Into<PyErr>>,
{
    if let Ok(one) = value.extract() {
        return Ok(vec![one]);
    }
    value.try_iter()?.map(|item| item?.extract().map_err(Into::into)).collect()
}

/// Texts with their ids.
pub struct Texts {
    /// The documents, in order.
    pub documents: Vec<Text>,
    /// Whether the caller passed one string and expects one document.
    pub is_one: bool,
}

impl Texts {
    /// The texts in `texts`: one string, an Arrow table with a column `text`, or any iterable of strings, documents or rows.
    pub fn new(texts: &Bound<'_, PyAny>, ids: Option<&Bound<'_, PyAny>>) -> PyResult<Texts> {
        let mut found = match texts.cast::<PyString>() {
            Ok(text) => Texts { documents: vec![text_of(text.as_any(), 0)?], is_one: true },
            Err(_) => Texts { documents: many(texts)?, is_one: false },
        };
        if let Some(ids) = ids {
            let ids: Vec<Bound<'_, PyAny>> = match ids.cast::<PyString>() {
                Ok(id) if found.is_one => vec![id.as_any().clone()],
                _ => ids.try_iter()?.collect::<PyResult<_>>()?,
            };
            if ids.len() != found.documents.len() {
                let message = format!("{} ids for {} texts", ids.len(), found.documents.len());
                return Err(crate::errors::usage(texts.py(), message, "give one id per text"));
            }
            for (document, id) in found.documents.iter_mut().zip(ids) {
                document.id = id.str()?.to_string();
            }
        }
        Ok(found)
    }
}

fn many(texts: &Bound<'_, PyAny>) -> PyResult<Vec<Text>> {
    if let Some(documents) = arrow::texts(texts)? {
        return Ok(documents);
    }
    if !texts.hasattr("__iter__")? || texts.is_instance_of::<PyDict>() || texts.is_instance_of::<pyo3::types::PyBytes>()
    {
        let kind = texts.get_type().name()?;
        return Err(PyTypeError::new_err(format!("expected a str or an iterable of str, not {kind}")));
    }
    texts.try_iter()?.enumerate().map(|(row, text)| text_of(&text?, row)).collect()
}

/// The text at `row`, with its number as id: a string, a document, or a dictionary with `text` and perhaps `id`.
fn text_of(text: &Bound<'_, PyAny>, row: usize) -> PyResult<Text> {
    if let Ok(document) = text.cast::<Document>() {
        return Ok(document.get().annotated().document.clone());
    }
    if let Ok(fields) = text.cast::<PyDict>()
        && let Some(text) = fields.get_item("text")?
        && text.is_instance_of::<PyString>()
    {
        let document = text_of(&text, row)?;
        let id = fields.get_item("id")?.filter(|id| !id.is_none());
        let id = id.map(|id| Ok::<_, PyErr>(id.str()?.to_string())).transpose()?;
        return Ok(Text { id: id.unwrap_or(document.id), ..document });
    }
    let scalar;
    let text = match text.cast::<PyString>() {
        Err(_) if text.hasattr("as_py")? => {
            // A value of a pyarrow array.
            scalar = text.call_method0("as_py")?;
            &scalar
        }
        _ => text,
    };
    let Ok(text) = text.cast::<PyString>() else {
        let kind = text.get_type().name()?;
        let message = match text.is_none() {
            true => format!("text {row} is missing; {MISSING_HINT}"),
            false => format!("text {row} is {kind}, not str; {TYPE_HINT}"),
        };
        return Err(PyTypeError::new_err(message));
    };
    let what = || format!("text {row}");
    Ok(Text { id: (row + 1).to_string(), text: utf8(text, what)?.to_owned(), ..Text::default() })
}

/// A string as UTF-8. Fails for lone surrogates, which are not text; `what` names the string in the error.
pub fn utf8<'a>(text: &'a Bound<'_, PyString>, what: impl FnOnce() -> String) -> PyResult<&'a str> {
    text.to_str().map_err(|_| {
        let hint = "replace them, for example with `text.encode('utf-8', 'replace').decode()`";
        crate::errors::usage(text.py(), format!("{} holds lone surrogates, which are not text", what()), hint)
    })
}

/// Annotated documents: a file, documents, or dictionaries of the shape of a JSON line.
pub fn annotated(documents: &Bound<'_, PyAny>, label: &str) -> PyResult<Vec<AnnotatedDocument>> {
    let py = documents.py();
    if let Ok(documents) = documents.cast::<Documents>() {
        return Ok(documents.get().annotated());
    }
    if let Ok(path) = documents.extract::<std::path::PathBuf>() {
        return threads::work(py, || Reader::open(&path, None)?.collect());
    }
    if let Ok(document) = documents.cast::<Document>() {
        return Ok(vec![document.get().annotated().clone()]);
    }
    let dumps = py.import("json")?.getattr("dumps")?;
    documents
        .try_iter()?
        .map(|document| {
            let document = document?;
            if let Ok(document) = document.cast::<Document>() {
                return Ok(document.get().annotated().clone());
            }
            let line: String = dumps.call1((document,))?.extract()?;
            from_json(py, line, label)
        })
        .collect()
}
