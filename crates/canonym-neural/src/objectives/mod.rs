//! What models are trained for: one file an objective, which draws batches, calls its model and computes the loss.

pub mod candidates;
pub mod linking;
pub mod pairs;
pub mod ranks;
pub mod synonyms;
pub mod tags;

mod anchors;
mod search;
mod sparse;

pub use anchors::Names;
