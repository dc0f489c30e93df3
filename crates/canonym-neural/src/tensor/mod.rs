//! Row-major matrices and their products, elementwise functions, sums by lookups, packed sequences, and seeded random numbers.

pub mod elementwise;
pub mod lookups;
pub mod lstm_cell;
pub mod matrix;
pub mod panels;
pub mod parameters;
pub mod random;
pub mod segments;
pub mod tiles;
