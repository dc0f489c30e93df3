//! Opens the data folder, accepts connections, and stops everything.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, watch};
use tokio_rustls::TlsAcceptor;
use tower::ServiceExt;

use crate::engine::{Engine, Trainer};
use crate::guard::Peer;
use crate::mcp::McpServer;
use crate::state::{App, ServeConfig};
use crate::tls::Tls;
use crate::{api, jobs};

/// The timeout for request heads and idle connections.
const HEAD_TIMEOUT: Duration = Duration::from_secs(15);

/// The maximum number of connections; others wait until one ends.
const MAX_CONNECTIONS: usize = 512;

/// The maximum size of a message to [`run_mcp`], in bytes.
const MAX_MESSAGE: usize = 8 << 20;

/// How long running requests may take after the server is stopped.
const GRACE_PERIOD: Duration = Duration::from_secs(10);

/// The pause after a connection could not be accepted, for want of file descriptors.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(200);

/// Opens the data folder and starts the thread that runs jobs.
pub fn open(
    engine: Arc<dyn Engine>,
    trainer: Option<Arc<dyn Trainer>>,
    config: ServeConfig,
) -> canonym_core::Result<Arc<App>> {
    let runs_jobs = config.runs_jobs;
    let app = App::open(engine, trainer, config)?;
    if runs_jobs {
        jobs::start(&app);
    }
    Ok(app)
}

/// Serves requests at `address` until [`App::stop`] is called; then running requests are finished and jobs are stopped. `listening` is called with
/// the bound address, which a port of 0 leaves open.
pub fn run(app: &Arc<App>, address: SocketAddr, listening: impl FnOnce(SocketAddr)) -> std::io::Result<()> {
    block_on(address, listening, |listener| serve(listener, app.clone()))
}

/// Serves the tools of `mcp` at `address`, path `/mcp`, for this machine alone. `listening` is called with the bound address and with a function
/// that stops the server.
pub fn run_mcp(
    mcp: McpServer,
    address: SocketAddr,
    listening: impl FnOnce(SocketAddr, Box<dyn FnOnce() + Send>),
) -> std::io::Result<()> {
    let router = axum::Router::new().route_service("/mcp", mcp.http_of_this_machine(MAX_MESSAGE));
    let (stop, stopping) = watch::channel(false);
    let listening = |address| listening(address, Box::new(move || _ = stop.send(true)));
    block_on(address, listening, |listener| async move {
        accept(listener, router, None, stopping).await;
        Ok(())
    })
}

/// Runs `serve` on a listener at `address`.
fn block_on<F: Future<Output = std::io::Result<()>>>(
    address: SocketAddr,
    listening: impl FnOnce(SocketAddr),
    serve: impl FnOnce(TcpListener) -> F,
) -> std::io::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let ended = runtime.block_on(async {
        // A write beyond the file size limit is then an error, like a full disk, instead of SIGXFSZ (25) ending the process.
        #[cfg(target_os = "linux")]
        let _limit = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::from_raw(25))?;
        let listener = TcpListener::bind(address).await?;
        listening(listener.local_addr()?);
        serve(listener).await
    });
    // A job may still run on its thread; the next start marks it as stopped.
    runtime.shutdown_timeout(Duration::from_millis(500));
    ended
}

/// Serves requests on `listener` until [`App::stop`] is called; then running requests are finished.
pub async fn serve(listener: TcpListener, app: Arc<App>) -> std::io::Result<()> {
    accept(listener, api::router(&app), app.config.tls.clone(), app.stopping()).await;
    // The process may end before all connections to the database are closed.
    let _ = tokio::task::spawn_blocking(move || app.store.truncate_log()).await;
    Ok(())
}

/// Accepts connections until `stopping` becomes true; then running requests are finished.
async fn accept(
    listener: TcpListener,
    router: axum::Router,
    tls: Option<Arc<Tls>>,
    mut stopping: watch::Receiver<bool>,
) {
    let slots = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    let connections = GracefulShutdown::new();
    loop {
        let taken = async {
            let slot = slots.clone().acquire_owned().await;
            (slot, listener.accept().await)
        };
        let (slot, accepted) = tokio::select! {
            _ = stopping.wait_for(|stops| *stops) => break,
            taken = taken => taken,
        };
        let (stream, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!("cannot accept a connection: {error}");
                tokio::time::sleep(ACCEPT_RETRY_DELAY).await;
                continue;
            }
        };
        // Small responses are sent at once; without the option they are only delayed.
        stream.set_nodelay(true).ok();
        let (router, watcher) = (router.clone(), connections.watcher());
        let tls = tls.as_ref().map(|tls| TlsAcceptor::from(tls.config()));
        tokio::spawn(async move {
            match tls {
                None => converse(stream, peer, router, watcher).await,
                // A client that speaks no TLS, or too slowly, is disconnected.
                Some(tls) => {
                    if let Ok(Ok(stream)) = tokio::time::timeout(HEAD_TIMEOUT, tls.accept(stream)).await {
                        converse(stream, peer, router, watcher).await;
                    }
                }
            }
            drop(slot);
        });
    }
    // Remaining connections are closed.
    let _ = tokio::time::timeout(GRACE_PERIOD, connections.shutdown()).await;
}

/// Answers the requests of a connection until it ends.
async fn converse(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    peer: SocketAddr,
    router: axum::Router,
    watcher: Watcher,
) {
    let answer = service_fn(move |request: hyper::Request<Incoming>| answer(router.clone(), request, peer));
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .serve_connection(TokioIo::new(stream), answer);
    // The client disconnected or sent an invalid request; nothing is left to do.
    let _ = watcher.watch(connection).await;
}

async fn answer(
    router: axum::Router,
    request: hyper::Request<Incoming>,
    peer: SocketAddr,
) -> Result<axum::response::Response, std::convert::Infallible> {
    let mut request: Request = request.map(Body::new);
    request.extensions_mut().insert(Peer(peer));
    router.oneshot(request).await
}
