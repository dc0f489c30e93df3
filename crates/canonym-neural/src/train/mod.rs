//! Training: losses, the optimiser, and the loop. The loop knows an [`Objective`], never a model by name.

pub mod candidates;
pub mod linking;
pub mod losses;
pub mod optimise;
pub mod pairs;
pub mod ranks;
pub mod synonyms;
pub mod tags;

mod anchors;
mod run;
mod search;
mod sparse;

pub use anchors::Names;
pub use run::{Objective, Progress, Run, RunConfig, Scored, Select};
