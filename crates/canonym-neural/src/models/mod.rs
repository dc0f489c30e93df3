//! The models, one file each. A model reads no files and does not know how it is trained.

pub mod bert;
pub mod cross_encoder;
pub mod dual_encoder;
pub mod rescnn;
pub mod tagger;
