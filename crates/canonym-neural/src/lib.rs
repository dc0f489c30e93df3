//! Neural models: matrices and gradients, the models, their training, and bundles that hold what was trained.
//!
//! Sequences are packed: the tokens of a batch stand one below the other without padding, and [`segments::Segments`] tells where each
//! sequence begins. A model is a function over a [`tape::Tape`] while it is trained; the encoders that links are made with have a second,
//! faster implementation without gradients, and tests hold the two together.

pub mod bert_encoder;
pub mod bundle;
pub mod checkpoint;
pub mod context;
pub mod cross_encoder;
pub mod dense;
pub mod dual;
pub mod elementwise;
pub mod encoder;
pub mod hybrid;
pub mod matrix;
pub mod models;
pub mod panels;
pub mod parameters;
pub mod pipeline;
pub mod random;
pub mod segments;
pub mod tagging;
pub mod tape;
pub mod tiles;
pub mod train;
pub mod usages;
pub mod vectors;
pub mod wordpiece;
