//! Indexes over names: exact lookup of token bags, character n-gram similarity, and BM25 over words.

pub mod bm25;
pub mod forms;
pub mod grams;
pub mod keys;
pub mod packed;
pub mod words;
