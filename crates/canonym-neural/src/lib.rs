//! Neural models: tensors and gradients, the models, their training, bundles that hold what was trained, and the systems made of them.
//!
//! Sequences are packed: the tokens of a batch stand one below the other without padding, and [`tensor::segments::Segments`] tells where
//! each sequence begins. A model records its forward pass on an [`autograd::Tape`] while it is trained; `infer` beside it is a second,
//! faster implementation without gradients, and tests hold the two together.

pub mod autograd;
pub mod bundle;
pub mod checkpoint;
pub mod index;
pub mod models;
pub mod objectives;
pub mod recipes;
pub mod status;
pub mod system;
pub mod tensor;
pub mod tokenizer;
pub mod train;
