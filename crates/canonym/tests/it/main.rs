//! Behaviour tests.

mod import;
mod import_real;
mod import_rrf;
