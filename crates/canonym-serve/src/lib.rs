//! The HTTP interface of canonym: linking, a terminology to look things up in, and projects in which people correct what was found.
//!
//! The crate knows no model. It asks an [`Engine`] for links and a [`Trainer`] for new engines; who starts the server brings both. What people
//! decide is kept in one SQLite file in the folder of data, as events of which the state of every mark follows.
//!
//! Offsets are bytes inside and code points in the interface; [`spans`] converts.

pub mod api;
pub mod app;
pub mod assets;
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

/// Seconds that requests at hand have to end after the server was asked to stop.
const GRACE: Duration = Duration::from_secs(10);

/// Answers requests at `address` until [`App::stop`] is called; then the requests at hand are finished and jobs are stopped. `listening` hears where
/// the server is, which a port of 0 leaves open.
pub fn run(app: &Arc<App>, address: SocketAddr, listening: impl FnOnce(SocketAddr)) -> std::io::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let ended = runtime.block_on(async {
        let listener = TcpListener::bind(address).await?;
        listening(listener.local_addr()?);
        serve(listener, app.clone()).await
    });
    // What still runs on a thread of its own is a prediction or a training; the next start says that it was stopped.
    runtime.shutdown_timeout(Duration::from_millis(500));
    ended
}

/// Answers requests on `listener` until [`App::stop`] is called.
pub async fn serve(listener: TcpListener, app: Arc<App>) -> std::io::Result<()> {
    let router = api::router(&app);
    let stopped = |app: &Arc<App>| {
        let mut stopping = app.stopping();
        async move {
            // Where the sender is gone there is nothing left to wait for.
            let _ = stopping.wait_for(|stops| *stops).await;
        }
    };
    let (soon, at_last) = (stopped(&app), stopped(&app));
    let answers = axum::serve(listener, router).with_graceful_shutdown(soon);
    let too_long = async {
        at_last.await;
        tokio::time::sleep(GRACE).await;
    };
    tokio::select! {
        ended = answers => ended,
        () = too_long => Ok(()),
    }
}
