//! Systems: what finds mentions and links them, made of models, the dictionary and a knowledge base.

pub mod concept_rows;
pub mod consistency;
pub mod dual_encoder;
pub mod hybrid;
pub mod name_scorer;
pub mod pipeline;
