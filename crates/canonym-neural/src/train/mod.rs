//! Training: losses, the optimiser, and the loop. The loop knows an [`Objective`], never a model by name.

pub mod losses;
pub mod optimise;
pub mod synonyms;
pub mod tags;

mod run;

pub use run::{Objective, Progress, Run, RunConfig, Scored, Select};
