//! Behaviour tests.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod architecture;
mod corpus;
mod eval;
mod import;
mod import_owl;
mod import_real;
mod import_rf2;
mod import_rrf;
mod join;
mod kb;
mod ranking;
mod recognise;
mod starter;
mod text_data;
