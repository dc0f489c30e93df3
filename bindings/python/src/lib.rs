//! The module `canonym._canonym` of the Python package: classes around the systems of the crate `canonym`, and the command line.
//!
//! Work runs without the interpreter lock, on all threads, in batches between which interrupts are handled. Offsets are code points, as
//! in Python strings.

mod arrow;
mod documents;
mod errors;
mod evaluation;
mod inputs;
mod kb;
mod names;
mod system;
mod threads;

use std::ffi::OsString;
use std::path::PathBuf;

use pyo3::prelude::*;

/// Runs the command line with `arguments` and returns the exit status.
#[pyfunction]
fn run_program(py: Python<'_>, arguments: Vec<OsString>) -> u8 {
    let arguments = std::iter::once(OsString::from("canonym")).chain(arguments);
    py.detach(|| canonym_cli::run(arguments))
}

/// Declares the file of this module, and the command that runs the command line.
#[pyfunction]
fn set_hosted(file: PathBuf, command: Vec<OsString>) {
    canonym::set_hosted(canonym::Program { file, command });
}

/// The native part of the package `canonym`.
#[pymodule]
fn _canonym(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<kb::KnowledgeBase>()?;
    module.add_class::<kb::Concept>()?;
    module.add_class::<kb::SearchHit>()?;
    module.add_class::<system::System>()?;
    module.add_class::<names::NameLink>()?;
    module.add_class::<documents::Documents>()?;
    module.add_class::<documents::Document>()?;
    module.add_class::<documents::Mention>()?;
    module.add_class::<documents::Candidate>()?;
    module.add_class::<evaluation::Report>()?;
    module.add_function(wrap_pyfunction!(evaluation::evaluate, module)?)?;
    module.add_function(wrap_pyfunction!(documents::read, module)?)?;
    module.add_function(wrap_pyfunction!(threads::set_threads, module)?)?;
    module.add_function(wrap_pyfunction!(run_program, module)?)?;
    module.add_function(wrap_pyfunction!(set_hosted, module)?)
}
