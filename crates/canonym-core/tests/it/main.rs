//! Behaviour tests.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod architecture;
mod bioc;
mod citations;
mod context;
mod corpus;
mod damaged;
mod errors;
mod eval;
mod explain;
mod export;
mod formats;
mod import;
mod import_mesh_xml;
mod import_owl;
mod import_real;
mod import_rf2;
mod import_rrf;
mod import_tables;
mod join;
mod kb;
mod own_names;
mod ranking;
mod recognise;
mod starter;
mod subset;
mod supplement;
mod texoo;
mod text_data;
