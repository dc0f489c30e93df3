//! Biomedical entity linking: finds mentions in text and links them to the concepts of any terminology.
//!
//! Contains text processing, knowledge bases, corpus formats, lexical indexes, lexical linking and evaluation.
//! Uses no tensors, opens no sockets, prints nothing and has no `async fn`.

pub mod active;
pub mod artifact;
pub mod batch;
pub mod corpus;
pub mod error;
pub mod eval;
pub mod index;
pub mod input;
pub mod kb;
pub mod link;
pub mod numbers;
pub mod records;
pub mod text;

pub use error::{Error, Result};
