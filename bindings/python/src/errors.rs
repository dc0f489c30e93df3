//! Errors of the libraries as exceptions of `canonym.errors`, with path, line and hint.

use pyo3::prelude::*;
use pyo3::types::PyDict;

use canonym::Error;

/// Advice for missing texts.
pub const MISSING_HINT: &str = "drop such rows, or replace the value by an empty string";

/// Advice for values of another type.
pub const TYPE_HINT: &str = "pass texts, or the column that holds them";

/// The name of the exception class.
fn class(error: &Error) -> &'static str {
    match error.root() {
        Error::Io { .. } => "FileError",
        Error::Parse { .. } | Error::Artifact { .. } | Error::Damaged { .. } => "FormatError",
        Error::Limit { .. } => "LimitError",
        Error::Mismatch { .. } => "MismatchError",
        Error::Usage { .. }
        | Error::Invalid { .. }
        | Error::NotFound { .. }
        | Error::Unsupported { .. }
        | Error::Config { .. }
        | Error::NoData { .. }
        | Error::Exists { .. } => "UsageError",
        _ => "Error",
    }
}

/// The exception for an error.
pub fn exception(py: Python<'_>, error: &Error) -> PyErr {
    let raise = || -> PyResult<PyErr> {
        let fields = PyDict::new(py);
        fields.set_item("path", error.path())?;
        fields.set_item("line", error.line())?;
        fields.set_item("hint", error.hint().map(for_python))?;
        let class = py.import("canonym.errors")?.getattr(class(error))?;
        Ok(PyErr::from_value(class.call((error.with_causes(),), Some(&fields))?))
    };
    raise().unwrap_or_else(|failure| failure)
}

/// Options of the program, and the arguments that stand for them in Python.
const ARGUMENTS: [(&str, &str); 16] = [
    ("--abbreviations", "abbreviations"),
    ("--code-system", "code_systems"),
    ("--format", "format"),
    ("--join", "join"),
    ("--mappings", "mappings"),
    ("--min-score", "min_score"),
    ("--model", "model"),
    ("--nested", "nested"),
    ("--out", "out"),
    ("--prefix", "prefix"),
    ("--raw-ids", "raw_ids"),
    ("--rerank", "rerank"),
    ("--sources", "vocabularies"),
    ("--to-system", "to_system"),
    ("--top-k", "top_k"),
    ("--xrefs", "xrefs"),
];

/// A hint with the arguments of Python in place of the options of the program.
fn for_python(hint: &str) -> String {
    let hint = hint.replace("(option `--mentions gold`)", "(`System.link`)");
    ARGUMENTS.iter().fold(hint, |hint, (option, argument)| {
        let given = hint.replace(&format!("option `{option}`"), &format!("argument `{argument}`"));
        given.replace(&format!("`{option}`"), &format!("`{argument}`"))
    })
}

/// A wrong argument, with its fix.
pub fn usage(py: Python<'_>, message: impl Into<String>, hint: impl Into<String>) -> PyErr {
    exception(py, &Error::usage(message, hint))
}

/// Converts the error of a result to an exception.
pub trait OrRaise<T> {
    /// The value, or the exception.
    fn or_raise(self, py: Python<'_>) -> PyResult<T>;
}

impl<T> OrRaise<T> for canonym::Result<T> {
    fn or_raise(self, py: Python<'_>) -> PyResult<T> {
        self.map_err(|error| exception(py, &error))
    }
}
