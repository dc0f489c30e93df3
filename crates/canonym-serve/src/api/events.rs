//! Server-sent events of the projects that a person is a member of.

use std::collections::BTreeSet;
use std::sync::{Arc, Weak};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use tokio::sync::{broadcast, mpsc};
use tokio_stream::wrappers::ReceiverStream;

use super::QueryParams;
use crate::events::PublishedEvent;
use crate::guard::{Key, current_user};
use crate::state::App;
use crate::store::members;
use crate::wire::Person;

/// The interval of heartbeats.
const HEARTBEAT: Duration = Duration::from_secs(15);

/// Query parameters: the project; all that the person sees if not given.
#[derive(Debug, Default, Deserialize)]
pub struct EventsQuery {
    project: Option<i64>,
}

/// `GET /events`: server-sent events.
pub async fn stream(
    State(app): State<Arc<App>>,
    person: Person,
    axum::Extension(key): axum::Extension<Key>,
    QueryParams(query): QueryParams<EventsQuery>,
) -> Response {
    serve(&app, query.project, person.id, key)
}

/// Streams events until the client disconnects, its session ends, or the server stops.
fn serve(app: &Arc<App>, project: Option<i64>, person: i64, key: Key) -> Response {
    let mut events = app.bus.subscribe();
    let (mut stopping, mut keys) = (app.stopping(), app.permissions());
    let app = Arc::downgrade(app);
    let (sender, receiver) = mpsc::channel::<Result<Bytes, std::convert::Infallible>>(16);
    tokio::spawn(async move {
        let mut line = ": listening\n\n".to_owned();
        // Also sent while there are many events.
        let mut heartbeat = tokio::time::interval_at(tokio::time::Instant::now() + HEARTBEAT, HEARTBEAT);
        let Some(mut seen) = visible_projects(&app, person, &key, project).await else { return };
        loop {
            if sender.send(Ok(Bytes::from(std::mem::take(&mut line)))).await.is_err() {
                return;
            }
            let event = tokio::select! {
                // Check permissions before sending events.
                biased;
                _ = stopping.wait_for(|stops| *stops) => return,
                () = sender.closed() => return,
                _ = keys.changed() => None,
                // Sessions expire, and other processes may revoke them.
                _ = heartbeat.tick() => None,
                event = next(&mut events, project, &seen) => match event {
                    Some(line) => Some(line),
                    None => return,
                },
            };
            line = match event {
                Some(line) => line,
                None => match visible_projects(&app, person, &key, project).await {
                    Some(now) => {
                        seen = now;
                        ": alive\n\n".to_owned()
                    }
                    None => return,
                },
            };
        }
    });
    let headers = [(header::CONTENT_TYPE, "text/event-stream"), (header::CACHE_CONTROL, "no-store")];
    (headers, Body::from_stream(ReceiverStream::new(receiver))).into_response()
}

/// The visible projects, `Some(None)` for all; `None` if the person may not listen any more.
async fn visible_projects(app: &Weak<App>, person: i64, key: &Key, project: Option<i64>) -> Option<Seen> {
    let app = app.upgrade()?;
    let key = key.clone();
    let seen = app.blocking(move |app| {
        let Some(person) = current_user(app, &key)?.filter(|now| now.id == person) else { return Ok(None) };
        app.store.read(|connection| members::projects_of(connection, &person)).map(Some)
    });
    seen.await.ok()?.filter(|seen| project.is_none_or(|project| is_seen(seen, project)))
}

/// The projects that a person sees; all if `None`.
type Seen = Option<BTreeSet<i64>>;

fn is_seen(seen: &Seen, project: i64) -> bool {
    seen.as_ref().is_none_or(|seen| seen.contains(&project))
}

/// The next event of a project. A stream that has missed events ends; browsers reconnect and reload.
async fn next(events: &mut broadcast::Receiver<PublishedEvent>, project: Option<i64>, seen: &Seen) -> Option<String> {
    loop {
        match events.recv().await {
            Ok(event) if project.map_or(is_seen(seen, event.project), |project| project == event.project) => {
                // A stream of all projects has the project as the ID of each event.
                let of = if project.is_none() { format!("id: {}\n", event.project) } else { String::new() };
                return Some(format!("{of}event: {}\ndata: {}\n\n", event.event, event.data));
            }
            Ok(_) => {}
            Err(_) => return None,
        }
    }
}
