//! The JSON of requests and responses.

mod changes;
mod disagreements;
mod jobs;
mod linking;
mod pace;
mod people;
mod projects;

pub use changes::*;
pub use disagreements::*;
pub use jobs::*;
pub use linking::*;
pub use pace::*;
pub use people::*;
pub use projects::*;
