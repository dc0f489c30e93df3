//! What the interface takes and gives, as JSON.

mod jobs;
mod linking;
mod projects;

pub use jobs::*;
pub use linking::*;
pub use projects::*;
