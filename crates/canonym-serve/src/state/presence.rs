//! Document presence: who is looking at which document.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use crate::times::Millis;
use crate::wire::Person;

/// How long a person is present after opening a document.
const TIMEOUT: Millis = 10 * 60_000;

/// Document presence. It is advisory, not a lock: conflicting decisions are detected by version.
#[derive(Debug, Default)]
pub struct Presence(Mutex<HashMap<i64, (Person, Millis)>>);

impl Presence {
    /// Records that a person opened a document, unless another person is present.
    pub fn enter(&self, document: i64, person: &Person, now: Millis) {
        let mut present = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        present.retain(|_, (_, at)| now - *at < TIMEOUT);
        let entry = present.entry(document).or_insert_with(|| (person.clone(), now));
        if entry.0.id == person.id {
            entry.1 = now;
        }
    }

    /// The name of another person who is present.
    pub fn other(&self, document: i64, person: &Person, now: Millis) -> Option<String> {
        let present = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (other, at) = present.get(&document)?;
        (other.id != person.id && now - at < TIMEOUT).then(|| other.name.clone())
    }
}
