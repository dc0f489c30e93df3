//! The JSON of requests and responses.

mod changes;
mod disagreements;
<<<<<<< HEAD
mod gilda;
=======
mod groups;
>>>>>>> app
mod jobs;
mod linking;
mod people;
mod projects;
mod speed;

pub use changes::*;
pub use disagreements::*;
<<<<<<< HEAD
pub use gilda::*;
=======
pub use groups::*;
>>>>>>> app
pub use jobs::*;
pub use linking::*;
pub use people::*;
pub use projects::*;
pub use speed::*;
