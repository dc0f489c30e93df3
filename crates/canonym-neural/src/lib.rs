//! Neural models: tensors and automatic differentiation, models, training, bundles of trained models, and the linking systems built from
//! them.
//!
//! Sequences are packed: the tokens of a batch are concatenated without padding, and [`tensor::segments::Segments`] holds the offset of
//! each sequence. During training a model records its forward pass on an [`autograd::Tape`]. Its `infer` module is a second, faster
//! implementation without gradients; tests check that the two agree.

pub mod autograd;
pub mod bundle;
pub mod checkpoint;
pub mod index;
pub mod layers;
pub mod models;
pub mod objectives;
pub mod program;
pub mod recipes;
pub mod status;
pub mod system;
pub mod tensor;
pub mod tokenizer;
pub mod train;
