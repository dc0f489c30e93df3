//! Behaviour tests.

mod starter;
