//! Behaviour tests.

mod import;
