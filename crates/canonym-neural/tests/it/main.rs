//! Behaviour that needs more than one module, and files from outside.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod bart;
mod reference;
mod tokenizers;
