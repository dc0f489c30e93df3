//! Behaviour tests.
mod corpus;
