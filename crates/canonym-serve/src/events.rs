//! The event bus: changes published to connected clients.

use serde::Serialize;
use tokio::sync::broadcast;

/// Events that a slow listener may lag behind before it misses some.
const CAPACITY: usize = 256;

/// A published event.
#[derive(Debug, Clone)]
pub struct PublishedEvent {
    /// The project.
    pub project: i64,
    /// The kind: `job`, `document`, `import` or `deleted`.
    pub event: &'static str,
    /// The payload, as JSON.
    pub data: String,
}

/// The event bus.
#[derive(Debug)]
pub struct EventBus(broadcast::Sender<PublishedEvent>);

impl Default for EventBus {
    fn default() -> EventBus {
        EventBus(broadcast::Sender::new(CAPACITY))
    }
}

impl EventBus {
    /// Publishes an event.
    pub fn publish(&self, project: i64, event: &'static str, data: &impl Serialize) {
        let data = serde_json::to_string(data).unwrap_or_default();
        // Sending fails if nobody listens.
        let _ = self.0.send(PublishedEvent { project, event, data });
    }

    /// Subscribes to events.
    pub fn subscribe(&self) -> broadcast::Receiver<PublishedEvent> {
        self.0.subscribe()
    }
}

/// A version of a document.
#[derive(Debug, Clone, Serialize)]
pub struct DocumentVersion {
    /// The document.
    pub id: i64,
    /// The number of its last event.
    pub version: i64,
}
