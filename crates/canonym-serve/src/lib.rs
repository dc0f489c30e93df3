//! The HTTP server of canonym: linking, terminology search, and annotation projects.
//!
//! The crate knows no models. It calls an [`Engine`] for links and a [`Trainer`] for new models; the program that starts the server provides both.
//! Decisions are stored in one SQLite file in the data folder, as events from which the state of every annotation follows.
//!
//! Offsets are bytes internally and code points in the API; [`spans`] converts.

pub mod abort;
pub mod api;
pub mod assets;
pub mod audit;
pub mod auth;
pub mod batcher;
pub mod engine;
pub mod error;
mod evaluate;
pub mod events;
pub mod fhir;
pub mod guard;
pub mod health;
pub mod jobs;
pub mod maintenance;
pub mod marks;
pub mod mcp;
pub mod metrics;
pub mod queue;
pub mod server;
pub mod spans;
pub mod state;
pub mod store;
pub mod times;
pub mod tls;
pub mod wire;

pub use engine::{Engine, LinkOptions, Mentions, Nil, Trainer};
pub use error::ApiError;
pub use server::{open, run, run_mcp};
pub use state::{App, PublicUrl, ServeConfig};
