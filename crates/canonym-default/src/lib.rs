//! The default model and the starter terminology of canonym, as bytes.
//!
//! They stand in a crate of their own because a registry limits the size of a crate. `assets/README.md` says how they were made and how to
//! make them again; the crate `canonym` opens them.

/// The bundle of the default model: mention detector, name encoder, mention-entity prior and weights of the evidence.
pub const MODEL: &[u8] = include_bytes!("../assets/default.safetensors");

/// About 15,000 common concepts: lines of id, name, synonyms separated by `|`, and type, separated by tabs.
pub const STARTER: &str = include_str!("../assets/starter.tsv");
