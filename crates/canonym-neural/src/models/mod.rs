//! The models. A model does not read files and does not know how it is trained.

pub mod bert;
pub mod cross_encoder;
pub mod decision;
pub mod dual_encoder;
pub mod fusion;
pub mod generative;
pub mod joint;
pub mod mention_prior;
pub mod multitask;
pub mod rescnn;
pub mod tagger;
pub mod taught;
