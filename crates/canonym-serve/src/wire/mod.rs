//! What the interface takes and gives, as JSON.

mod changes;
mod disagreements;
mod jobs;
mod linking;
mod pace;
mod projects;

pub use changes::*;
pub use disagreements::*;
pub use jobs::*;
pub use linking::*;
pub use pace::*;
pub use projects::*;
