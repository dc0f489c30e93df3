//! Behaviour tests.

mod corpus;
mod import;
