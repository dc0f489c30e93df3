//! Behaviour tests.

mod text_data;
