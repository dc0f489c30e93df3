//! Indexes over names: exact lookup of token bags and similarity of character n-grams.

pub mod grams;
pub mod keys;
pub mod packed;
