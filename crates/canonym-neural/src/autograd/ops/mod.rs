//! What the operations of a tape compute.

pub(crate) mod cpu;
