//! The JSON of requests and responses.

mod changes;
mod disagreements;
mod gilda;
mod inception;
mod jobs;
mod linking;
mod people;
mod projects;
mod speed;

pub use changes::*;
pub use disagreements::*;
pub use gilda::*;
pub use inception::*;
pub use jobs::*;
pub use linking::*;
pub use people::*;
pub use projects::*;
pub use speed::*;
