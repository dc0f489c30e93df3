//! Systems that detect and link mentions, built from models, the dictionary and a knowledge base.

pub mod concept_rows;
pub mod consistency;
pub mod detect_then_link;
pub mod dual_encoder;
mod encoding;
pub mod hybrid;
pub mod linked;
pub mod name_scorer;
pub mod parts;
pub mod pipeline;
pub mod rerank;
pub mod terminology;
