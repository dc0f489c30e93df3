//! Behaviour tests.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod architecture;
mod context;
mod corpus;
mod eval;
mod explain;
mod import;
mod import_real;
mod import_rrf;
mod kb;
mod ranking;
mod recognise;
mod starter;
mod text_data;
