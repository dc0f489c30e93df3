//! Behaviour tests.

mod corpus;
mod import;
mod text_data;
