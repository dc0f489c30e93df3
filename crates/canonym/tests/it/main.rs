//! Behaviour tests.
mod corpus;
mod eval;
