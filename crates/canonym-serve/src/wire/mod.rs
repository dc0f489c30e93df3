//! The JSON of requests and responses.

mod assignments;
mod changes;
mod disagreements;
mod gilda;
mod groups;
mod inception;
mod jobs;
mod linking;
mod people;
mod projects;
mod proposals;
mod speed;

pub use assignments::*;
pub use changes::*;
pub use disagreements::*;
pub use gilda::*;
pub use groups::*;
pub use inception::*;
pub use jobs::*;
pub use linking::*;
pub use people::*;
pub use projects::*;
pub use proposals::*;
pub use speed::*;
