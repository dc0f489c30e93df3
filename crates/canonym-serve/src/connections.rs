//! Connections: how many there are, and how long a client may take to ask.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tower::ServiceExt;

use crate::api;
use crate::app::App;
use crate::guard::Peer;

/// How long the head of a request may take, and how long a connection may be idle.
const HEAD: Duration = Duration::from_secs(15);

/// Connections at a time; others wait until one ends.
const MAX_CONNECTIONS: usize = 512;

/// How long requests at hand have to end after the server was asked to stop.
const GRACE: Duration = Duration::from_secs(10);

/// How long is waited where no connection can be taken, for want of file handles.
const PAUSE: Duration = Duration::from_millis(200);

/// Answers requests on `listener` until [`App::stop`] is called; requests at hand are finished then.
pub async fn serve(listener: TcpListener, app: Arc<App>) -> std::io::Result<()> {
    let router = api::router(&app);
    let places = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    let connections = GracefulShutdown::new();
    let mut stopping = app.stopping();
    loop {
        let taken = async {
            let place = places.clone().acquire_owned().await;
            (place, listener.accept().await)
        };
        let (place, accepted) = tokio::select! {
            _ = stopping.wait_for(|stops| *stops) => break,
            taken = taken => taken,
        };
        let (stream, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!("a connection cannot be taken: {error}");
                tokio::time::sleep(PAUSE).await;
                continue;
            }
        };
        // Small answers go out at once; where that cannot be set they go out later.
        stream.set_nodelay(true).ok();
        let router = router.clone();
        let answer = service_fn(move |request: hyper::Request<Incoming>| answer(router.clone(), request, peer));
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEAD)
            .serve_connection(TokioIo::new(stream), answer);
        let connection = connections.watch(connection);
        tokio::spawn(async move {
            // The client left, or asked for something that is no request; it was answered as far as it can be.
            let _ = connection.await;
            drop(place);
        });
    }
    // What has not ended by then is cut off.
    let _ = tokio::time::timeout(GRACE, connections.shutdown()).await;
    // The process may end before everybody has closed the database.
    let _ = tokio::task::spawn_blocking(move || app.store.cut_log()).await;
    Ok(())
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
