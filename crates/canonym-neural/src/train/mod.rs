//! Training: the loop with checkpoints, the optimiser, and losses. Knows an [`Objective`], never a model.

pub mod losses;
pub mod objective;
pub mod optimise;

mod run;

pub use objective::{Losses, Objective, Outputs, Values};
pub use run::{Progress, Run, RunConfig, Scored, Select};
