//! Behaviour that needs more than one module, and files from outside.

mod reference;
