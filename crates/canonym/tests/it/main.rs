//! Behaviour tests.

mod corpus;
mod eval;
mod import;
mod import_real;
mod import_rrf;
mod kb;
mod starter;
mod text_data;
