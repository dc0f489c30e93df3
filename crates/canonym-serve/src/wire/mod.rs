//! What the interface takes and gives, as JSON.

mod disagreements;
mod jobs;
mod linking;
mod projects;

pub use disagreements::*;
pub use jobs::*;
pub use linking::*;
pub use projects::*;
