//! What happens, told to those who listen: server-sent events.

use std::collections::BTreeSet;
use std::sync::{Arc, Weak};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use tokio::sync::{broadcast, mpsc};
use tokio_stream::wrappers::ReceiverStream;

use crate::app::App;
use crate::guard::{Key, who};
use crate::store::members;

/// Events that a slow listener may be behind before it misses some.
const CAPACITY: usize = 256;

/// How often a silent stream says that it is alive.
const HEARTBEAT: Duration = Duration::from_secs(15);

/// Something that happened.
#[derive(Debug, Clone)]
pub struct Told {
    /// The project.
    pub project: i64,
    /// `job`, `document` or `import`.
    pub event: &'static str,
    /// What, as JSON.
    pub data: String,
}

/// Who listens.
#[derive(Debug)]
pub struct Hub(broadcast::Sender<Told>);

impl Default for Hub {
    fn default() -> Hub {
        Hub(broadcast::Sender::new(CAPACITY))
    }
}

impl Hub {
    /// Tells everybody who listens.
    pub fn tell(&self, project: i64, event: &'static str, data: &impl Serialize) {
        let data = serde_json::to_string(data).unwrap_or_default();
        // Nobody may be listening.
        let _ = self.0.send(Told { project, event, data });
    }

    /// Listens from now on.
    pub fn listen(&self) -> broadcast::Receiver<Told> {
        self.0.subscribe()
    }
}

/// A version of a document.
#[derive(Debug, Clone, Serialize)]
pub struct DocumentVersion {
    /// The document.
    pub id: i64,
    /// Its last event.
    pub version: i64,
}

/// A stream of what happens in a project, or in all that the listener sees, until the client leaves, has to log in again, or the server stops.
pub fn stream(app: &Arc<App>, project: Option<i64>, (person, key): (i64, Key)) -> Response {
    let mut told = app.hub.listen();
    let (mut stopping, mut keys) = (app.stopping(), app.keys());
    let app = Arc::downgrade(app);
    let (sender, receiver) = mpsc::channel::<Result<Bytes, std::convert::Infallible>>(16);
    tokio::spawn(async move {
        let mut line = ": listening\n\n".to_owned();
        // It goes on while much is heard.
        let mut heartbeat = tokio::time::interval_at(tokio::time::Instant::now() + HEARTBEAT, HEARTBEAT);
        let Some(mut seen) = may_hear(&app, (person, &key), project).await else { return };
        loop {
            if sender.send(Ok(Bytes::from(std::mem::take(&mut line)))).await.is_err() {
                return;
            }
            let heard = tokio::select! {
                // Who may no longer hear something looks first.
                biased;
                _ = stopping.wait_for(|stops| *stops) => return,
                () = sender.closed() => return,
                _ = keys.changed() => None,
                // Keys end in time, and other processes take them away.
                _ = heartbeat.tick() => None,
                heard = next(&mut told, project, &seen) => match heard {
                    Some(line) => Some(line),
                    None => return,
                },
            };
            line = match heard {
                Some(line) => line,
                None => match may_hear(&app, (person, &key), project).await {
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

/// The projects of which somebody may hear, all where it is `Some(None)`; `None` where they may not listen any more.
async fn may_hear(app: &Weak<App>, (person, key): (i64, &Key), project: Option<i64>) -> Option<Seen> {
    let app = app.upgrade()?;
    let key = key.clone();
    let seen = app.blocking(move |app| {
        let Some(person) = who(app, &key)?.filter(|now| now.id == person) else { return Ok(None) };
        app.store.read(|connection| members::projects_of(connection, &person)).map(Some)
    });
    seen.await.ok()?.filter(|seen| project.is_none_or(|project| is_seen(seen, project)))
}

/// The projects that somebody sees; all where it is `None`.
type Seen = Option<BTreeSet<i64>>;

fn is_seen(seen: &Seen, project: i64) -> bool {
    seen.as_ref().is_none_or(|seen| seen.contains(&project))
}

/// The next event of a project. The stream of who missed some ends: browsers connect again, and then read what they show anew.
async fn next(told: &mut broadcast::Receiver<Told>, project: Option<i64>, seen: &Seen) -> Option<String> {
    loop {
        match told.recv().await {
            Ok(told) if project.map_or(is_seen(seen, told.project), |project| project == told.project) => {
                // Who listens to all projects is told of which one each is.
                let of = if project.is_none() { format!("id: {}\n", told.project) } else { String::new() };
                return Some(format!("{of}event: {}\ndata: {}\n\n", told.event, told.data));
            }
            Ok(_) => {}
            Err(_) => return None,
        }
    }
}
