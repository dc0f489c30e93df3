//! Training objectives, one per file: each samples batches, runs its model and computes the loss.

pub mod candidates;
pub mod generative;
pub mod linking;
pub mod multitask;
pub mod pairs;
pub mod ranks;
pub mod synonyms;
pub mod tags;

mod anchors;
mod search;
mod sparse;

pub use anchors::Names;
