//! Biomedical concept linking: text in, concepts of any terminology out.
//!
//! This crate holds text, knowledge bases, corpus formats, lexical indexes, linking and evaluation.
//! It knows no tensors, opens no sockets, prints nothing and has no `async fn`.

pub mod active;
pub mod artifact;
pub mod corpus;
pub mod error;
pub mod eval;
pub mod index;
pub mod input;
pub mod kb;
pub mod link;
pub mod text;

pub use error::{Error, Result};
