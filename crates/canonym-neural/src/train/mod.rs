//! Training: the loop with checkpoints, the optimiser, and losses. Knows an [`Objective`], never a model.

pub mod losses;
pub mod optimise;

mod run;

pub use run::{Objective, Progress, Run, RunConfig, Scored, Select};
