//! The HTTP interface of canonym: linking, a terminology to look things up in, and projects in which people correct what was found.
//!
//! The crate knows no model. It asks an [`Engine`] for links and a [`Trainer`] for new engines; who starts the server brings both. What people
//! decide is kept in one SQLite file in the folder of data, as events of which the state of every mark follows.
//!
//! Offsets are bytes inside and code points in the interface; [`spans`] converts.

pub mod abandon;
pub mod api;
pub mod app;
pub mod assets;
pub mod audit;
pub mod care;
pub mod connections;
pub mod engine;
pub mod error;
pub mod events;
pub mod guard;
pub mod jobs;
mod judge;
pub mod lane;
pub mod marks;
pub mod metrics;
pub mod openapi;
pub mod people;
pub mod queue;
pub mod spans;
pub mod store;
pub mod times;
pub mod wire;

pub use app::{App, ServeConfig};
pub use engine::{Engine, LinkOptions, Nil, Trainer};
pub use error::ApiError;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;

/// Answers requests at `address` until [`App::stop`] is called; then the requests at hand are finished and jobs are stopped. `listening` hears where
/// the server is, which a port of 0 leaves open.
pub fn run(app: &Arc<App>, address: SocketAddr, listening: impl FnOnce(SocketAddr)) -> std::io::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let ended = runtime.block_on(async {
        // A limit of the system on the size of files is an error of the write, as a full disk is, and no end of the program. SIGXFSZ is 25 there.
        #[cfg(target_os = "linux")]
        let _limit = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::from_raw(25))?;
        let listener = TcpListener::bind(address).await?;
        listening(listener.local_addr()?);
        connections::serve(listener, app.clone()).await
    });
    // What still runs on a thread of its own is a prediction or a training; the next start says that it was stopped.
    runtime.shutdown_timeout(Duration::from_millis(500));
    ended
}
