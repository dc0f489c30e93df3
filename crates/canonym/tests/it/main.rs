//! Behaviour tests.

mod architecture;
mod corpus;
mod import;
mod text_data;
mod import_real;
mod import_rrf;
mod ranking;
mod starter;
mod eval;
