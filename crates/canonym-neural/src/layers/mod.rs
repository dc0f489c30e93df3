//! Layers that several models share: each has its weights, its training graph and its inference in one place.

pub mod crf;
pub mod embedding;
pub mod linear;
pub mod lstm;
pub mod norm;
