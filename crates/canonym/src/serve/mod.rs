//! The linking systems behind the server of `canonym-serve`, and training for it (feature `serve`).

mod engine;
mod split;
mod trainer;

pub use engine::{ServeEngine, open};
pub use trainer::{ContextModel, ENDS_WITH_INPUT, ProcessTrainer};
