//! Passwords, keys, and how often one may fail to log in.

use std::collections::HashMap;
use std::sync::{Mutex, OnceLock, PoisonError, mpsc};

use argon2::password_hash::{PasswordHasher, PasswordVerifier};
use argon2::{Argon2, PasswordHash};
use sha2::{Digest, Sha256};

use crate::error::{ApiError, ApiResult};
use crate::store::people::Person;
use crate::times::Millis;

/// The shortest password, in characters.
const MIN_PASSWORD: usize = 8;

/// The longest password and the longest name, in bytes.
const MAX_PASSWORD: usize = 1024;
const MAX_NAME: usize = 64;

/// Logins that may fail before one has to wait.
const MAX_FAILURES: u32 = 5;

/// How long failures are remembered.
const WAIT: Millis = 60_000;

/// Names of which failures are remembered.
const MAX_NAMES: usize = 10_000;

/// The hash of a password, by Argon2id with a salt of its own.
pub fn hash(password: &str) -> ApiResult<String> {
    if password.chars().count() < MIN_PASSWORD || password.len() > MAX_PASSWORD {
        let message = format!("a password has at least {MIN_PASSWORD} characters and at most {MAX_PASSWORD} bytes");
        return Err(ApiError::bad(message));
    }
    let password = password.to_owned();
    let hash = on_one_thread(move || Argon2::default().hash_password(password.as_bytes()).map(|hash| hash.to_string()));
    let hash = hash.ok_or_else(|| ApiError::internal(&"the thread of hashes is gone"))?;
    hash.map_err(|error| ApiError::internal(&error))
}

/// Whether a password is the one of the hash. Where there is no hash as much time is taken, so that nobody learns which names exist.
pub fn verify(password: &str, hash: Option<&str>) -> bool {
    if password.len() > MAX_PASSWORD {
        return false;
    }
    let (password, hash) = (password.to_owned(), hash.map(str::to_owned));
    let verified = on_one_thread(move || {
        let Some(parsed) = hash.as_deref().and_then(|hash| PasswordHash::new(hash).ok()) else {
            let _ = Argon2::default().hash_password(password.as_bytes());
            return false;
        };
        Argon2::default().verify_password(password.as_bytes(), &parsed).is_ok()
    });
    verified == Some(true)
}

type Work = Box<dyn FnOnce() + Send>;

/// Runs what hashes passwords, one after the other on one thread. Each takes some 20 MB, which an allocator may keep for each thread that ever had them.
fn on_one_thread<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    static HASHER: OnceLock<mpsc::Sender<Work>> = OnceLock::new();
    let hasher = HASHER.get_or_init(|| {
        let (sender, waiting) = mpsc::channel::<Work>();
        std::thread::spawn(move || waiting.into_iter().for_each(|work| work()));
        sender
    });
    let (reply, answer) = mpsc::channel();
    // Nobody listens any more only where the one who asked is gone.
    hasher.send(Box::new(move || drop(reply.send(work())))).ok()?;
    answer.recv().ok()
}

/// A name as it is kept.
pub fn checked_name(name: &str) -> ApiResult<&str> {
    let name = name.trim();
    if name.is_empty() || name.len() > MAX_NAME || name.chars().any(char::is_control) {
        return Err(ApiError::bad(format!("a name is a line of 1 to {MAX_NAME} bytes")));
    }
    if name == crate::store::people::LOCAL {
        return Err(ApiError::bad("`local` is the one who works where there are no accounts").hint("take another name"));
    }
    Ok(name)
}

/// A key of 256 random bits, and the hash that is kept of it.
pub fn new_key() -> ApiResult<(String, String)> {
    let mut bytes = [0u8; 32];
    getrandom::fill(&mut bytes).map_err(|error| ApiError::internal(&error))?;
    let key = hex(&bytes);
    let hash = key_hash(&key);
    Ok((key, hash))
}

/// The hash of a key.
pub fn key_hash(key: &str) -> String {
    hex(&Sha256::digest(key.as_bytes()))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Failed logins by name.
#[derive(Debug, Default)]
pub struct Limiter(Mutex<HashMap<String, (u32, Millis)>>);

impl Limiter {
    fn names(&self) -> std::sync::MutexGuard<'_, HashMap<String, (u32, Millis)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An error where the name failed too often of late. An attempt counts as failed until [`Limiter::succeeded`] says otherwise, so that many
    /// at once do not pass together.
    pub fn attempt(&self, name: &str, now: Millis) -> ApiResult<()> {
        let mut names = self.names();
        names.retain(|_, (_, at)| now - *at < WAIT);
        if names.len() >= MAX_NAMES && !names.contains_key(name) {
            return Err(ApiError::busy("too many logins failed of late", 60));
        }
        let (n, at) = names.entry(name.to_owned()).or_insert((0, now));
        if *n >= MAX_FAILURES {
            let seconds = ((WAIT - (now - *at)) / 1000).max(1) as u64;
            return Err(ApiError::busy("too many logins of this name failed", seconds));
        }
        *n += 1;
        *at = now;
        Ok(())
    }

    /// Forgets the failures of a name.
    pub fn succeeded(&self, name: &str) {
        self.names().remove(name);
    }
}

/// How long a document is somebody's after they looked at it or decided on it.
const DESK: Millis = 10 * 60_000;

/// Who works on which document. It only tells others: nobody is kept from anything, and decisions that meet are seen by their versions.
#[derive(Debug, Default)]
pub struct Desks(Mutex<HashMap<i64, (Person, Millis)>>);

impl Desks {
    /// Somebody looks at a document, unless another does.
    pub fn take(&self, document: i64, person: &Person, now: Millis) {
        let mut desks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        desks.retain(|_, (_, at)| now - *at < DESK);
        let desk = desks.entry(document).or_insert_with(|| (person.clone(), now));
        if desk.0.id == person.id {
            desk.1 = now;
        }
    }

    /// The name of another who works on a document.
    pub fn other(&self, document: i64, person: &Person, now: Millis) -> Option<String> {
        let desks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (other, at) = desks.get(&document)?;
        (other.id != person.id && now - at < DESK).then(|| other.name.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_verified_by_their_hash() {
        let kept = hash("correct horse").unwrap();
        assert!(kept.starts_with("$argon2id$"));
        assert!(verify("correct horse", Some(&kept)));
        assert!(!verify("wrong horse", Some(&kept)));
        assert!(!verify("correct horse", None));
        assert!(hash("short").is_err());
    }

    #[test]
    fn the_sixth_login_in_a_minute_waits() {
        let limiter = Limiter::default();
        for _ in 0..5 {
            limiter.attempt("ada", 0).unwrap();
        }
        assert_eq!(limiter.attempt("ada", 1_000).unwrap_err().retry_after, Some(59));
        limiter.attempt("bob", 1_000).unwrap();
        limiter.attempt("ada", 60_000).unwrap();
        limiter.succeeded("ada");
        limiter.attempt("ada", 60_000).unwrap();
    }
}
