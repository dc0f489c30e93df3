//! Mentions and their types in text: what the tagger sees, what it says, and how likely that is.

pub mod gazetteer;
pub mod lattice;
pub mod tagger;
pub mod views;
