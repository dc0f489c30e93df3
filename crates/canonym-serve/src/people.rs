//! Passwords, keys, and how often one may fail to log in.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::net::IpAddr;
use std::sync::{Mutex, OnceLock, PoisonError, mpsc};

use argon2::password_hash::{PasswordHasher, PasswordVerifier};
use argon2::{Argon2, PasswordHash};
use sha2::{Digest, Sha256};

use crate::error::{ApiError, ApiResult};
use crate::store::people::Person;
use crate::times::Millis;

/// The shortest password, in characters.
const MIN_PASSWORD: usize = 8;

/// The longest password, in bytes.
pub const MAX_PASSWORD: usize = 1024;

/// The longest name, in bytes.
pub const MAX_NAME: usize = 64;

/// How long failures are remembered.
const WAIT: Millis = 60_000;

/// Logins that may fail in that time: of one name from one address or known browser, from one address, and of one name from all addresses.
const OF_ONE: Millis = 5;
const OF_ADDRESS: Millis = 20;
const OF_NAME: Millis = 40;

/// Slots in which failures are counted. Names and addresses that share one are not told apart; which do is a secret of the process.
const SLOTS: usize = 1 << 16;

/// Passwords that everybody tries first, without digits and signs behind them.
const COMMON: [&str; 24] = [
    "password",
    "passwort",
    "passw0rd",
    "letmein",
    "welcome",
    "qwerty",
    "qwertyui",
    "qwertyuiop",
    "qwertz",
    "qwertzui",
    "asdfghjk",
    "asdfghjkl",
    "iloveyou",
    "admin",
    "administrator",
    "changeme",
    "default",
    "secret",
    "master",
    "monkey",
    "dragon",
    "sunshine",
    "princess",
    "canonym",
];

/// Different characters that a password has at least.
const MIN_DIFFERENT: usize = 4;

/// A password that is not the first to be guessed.
pub fn checked_password<'a>(password: &'a str, name: &str) -> ApiResult<&'a str> {
    let different: std::collections::BTreeSet<char> =
        password.chars().filter(|letter| !letter.is_whitespace()).collect();
    let word = password.trim().to_lowercase();
    let word = word.trim_end_matches(|letter: char| !letter.is_alphabetic());
    let is_common = COMMON.contains(&word) || word == name.to_lowercase() || is_counted(password);
    if different.len() < MIN_DIFFERENT || is_common {
        return Err(
            ApiError::bad("this password is easily guessed").hint("take some words that do not belong together")
        );
    }
    Ok(password)
}

/// Whether each character is the one before it and one more, or one less, as in `12345678`.
fn is_counted(password: &str) -> bool {
    let letters: Vec<i64> = password.trim().chars().map(|letter| i64::from(u32::from(letter))).collect();
    let step = |step: i64| letters.windows(2).filter(|pair| pair[1] - pair[0] == step).count();
    step(1).max(step(-1)) + 2 >= letters.len()
}

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
    if name.is_empty() || name.len() > MAX_NAME || name.chars().any(is_unseen) || name.contains("  ") {
        return Err(ApiError::bad(format!("a name is a line of 1 to {MAX_NAME} bytes, all of which can be seen")));
    }
    let scripts = [0x41..0x250, 0x370..0x400, 0x400..0x530];
    let n_scripts = scripts
        .iter()
        .filter(|script| name.chars().any(|letter| letter.is_alphabetic() && script.contains(&u32::from(letter))));
    if n_scripts.count() > 1 {
        return Err(ApiError::bad("the name mixes Latin, Greek or Cyrillic letters, which look alike")
            .hint("use those of one alphabet"));
    }
    if name == crate::store::people::LOCAL {
        return Err(ApiError::bad("`local` is the one who works where there are no accounts").hint("take another name"));
    }
    Ok(name)
}

/// Whether a character shows nothing, or changes how others are shown.
fn is_unseen(letter: char) -> bool {
    let hidden = [
        0xad..=0xad,
        0x34f..=0x34f,
        0x61c..=0x61c,
        0x115f..=0x1160,
        0x17b4..=0x17b5,
        0x180b..=0x180f,
        0x200b..=0x200f,
        0x2028..=0x202e,
        0x2060..=0x206f,
        0x3164..=0x3164,
        0xfe00..=0xfe0f,
        0xfeff..=0xfeff,
        0xffa0..=0xffa0,
        0xfff0..=0xfffc,
        0x1d173..=0x1d17a,
        0xe0000..=0xe0fff,
    ];
    letter.is_control()
        || (letter.is_whitespace() && letter != ' ')
        || hidden.iter().any(|range| range.contains(&u32::from(letter)))
}

/// How a name looks: names that look alike are one. Letters of other alphabets that look like Latin ones are those.
pub fn looks(name: &str) -> String {
    const ALIKE: [(&str, char); 20] = [
        ("аα", 'a'),
        ("вβ", 'b'),
        ("сϲ", 'c'),
        ("ԁ", 'd'),
        ("еε", 'e'),
        ("һ", 'h'),
        ("іιı", 'i'),
        ("јϳ", 'j'),
        ("кκ", 'k'),
        ("ӏ1|", 'l'),
        ("м", 'm'),
        ("п", 'n'),
        ("оοσ0", 'o'),
        ("рρ", 'p'),
        ("ѕ", 's'),
        ("тτ", 't'),
        ("υ", 'u'),
        ("νѵ", 'v'),
        ("хχ", 'x'),
        ("уγ", 'y'),
    ];
    let plain = name.to_lowercase();
    let alike =
        |letter: char| ALIKE.iter().find(|(others, _)| others.contains(letter)).map_or(letter, |(_, latin)| *latin);
    plain.chars().map(alike).collect()
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

/// Who tries to log in.
#[derive(Debug, Clone, Copy)]
pub enum Visitor<'a> {
    /// A browser in which this person logged in before, or somebody who is logged in: nobody else can use up their attempts.
    Known(&'a str),
    /// Anybody, by address.
    Stranger(IpAddr),
}

/// Failed logins, counted in a table of fixed size whatever names and addresses are sent.
///
/// A slot holds the time at which all of its failures are forgotten; each failure moves it by a share of a minute. Nobody waits longer than that
/// share: a stranger can use up the attempts of an address or of a name, never those of a browser that is known.
#[derive(Debug)]
pub struct Limiter {
    keys: RandomState,
    slots: Mutex<Vec<Millis>>,
}

impl Default for Limiter {
    fn default() -> Limiter {
        Limiter { keys: RandomState::new(), slots: Mutex::new(vec![0; SLOTS]) }
    }
}

/// An attempt to log in that counts as failed until [`Limiter::succeeded`] says otherwise, so that many at once do not pass together.
#[derive(Debug)]
pub struct Attempt(Vec<(usize, Millis)>);

impl Limiter {
    fn slots(&self) -> std::sync::MutexGuard<'_, Vec<Millis>> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An error where too many failed of late; what is refused counts nothing.
    pub fn attempt(&self, name: &str, visitor: Visitor<'_>, now: Millis) -> ApiResult<Attempt> {
        let slot = |what: &dyn Fn() -> u64| (what() % SLOTS as u64) as usize;
        let counted: Vec<(usize, Millis)> = match visitor {
            Visitor::Known(key) => vec![(slot(&|| self.keys.hash_one((0, key))), OF_ONE)],
            Visitor::Stranger(address) => {
                let address = network(address);
                vec![
                    (slot(&|| self.keys.hash_one((1, address, name))), OF_ONE),
                    (slot(&|| self.keys.hash_one((2, address))), OF_ADDRESS),
                    (slot(&|| self.keys.hash_one((3, name))), OF_NAME),
                ]
            }
        };
        let mut slots = self.slots();
        for (slot, limit) in &counted {
            let wait = slots[*slot].max(now) + WAIT / limit - now - WAIT;
            if wait > 0 {
                let seconds = (wait as u64).div_ceil(1000);
                return Err(ApiError::busy("too many logins failed", seconds));
            }
        }
        for (slot, limit) in &counted {
            slots[*slot] = slots[*slot].max(now) + WAIT / limit;
        }
        Ok(Attempt(counted))
    }

    /// Takes an attempt back.
    pub fn succeeded(&self, attempt: Attempt) {
        let mut slots = self.slots();
        for (slot, limit) in attempt.0 {
            slots[slot] -= WAIT / limit;
        }
    }
}

/// What one household has of addresses: of the long ones all that begin alike.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => IpAddr::V6((address.to_bits() & !u128::from(u64::MAX)).into()),
        address => address,
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
    fn passwords_that_are_tried_first_are_refused() {
        for guessed in [
            "        ",
            "aaaaaaaa",
            "password",
            "Password1!",
            "12345678",
            "qwertyui",
            "ada12345",
            "abababab",
            "87654321",
        ] {
            assert!(checked_password(guessed, "ada").unwrap_err().hint.is_some(), "{guessed}");
        }
        checked_password("correct horse", "ada").unwrap();
    }

    #[test]
    fn names_that_cannot_be_told_apart_by_eye_are_refused_or_one() {
        for odd in ["a\u{200b}da", "a\u{202e}da", "\u{3164}", "ada\u{a0}x", "a\u{ad}da", "аda", "adα", "a  b", "a\nb"]
        {
            assert!(checked_name(odd).is_err(), "{odd:?}");
        }
        for name in ["ada", "Ada Lovelace", "Ада", "Ελένη", "李小龙", "José"] {
            checked_name(name).unwrap();
        }
        assert_eq!(looks("аԁа"), looks("ada"));
        assert_eq!(looks("ADA"), looks("ada"));
        assert_eq!(looks("bi11"), looks("bill"));
        assert_ne!(looks("ada"), looks("adam"));
    }

    #[test]
    fn the_sixth_login_in_a_minute_waits_for_a_share_of_it() {
        let limiter = Limiter::default();
        let here = Visitor::Stranger([192, 0, 2, 1].into());
        for _ in 0..5 {
            limiter.attempt("ada", here, 0).unwrap();
        }
        assert_eq!(limiter.attempt("ada", here, 1_000).unwrap_err().retry_after, Some(11));
        limiter.attempt("bob", here, 1_000).unwrap();
        let attempt = limiter.attempt("ada", here, 12_000).unwrap();
        limiter.attempt("ada", here, 12_000).unwrap_err();
        limiter.succeeded(attempt);
        limiter.attempt("ada", here, 12_000).unwrap();
    }

    #[test]
    fn strangers_use_up_their_own_attempts_and_no_memory() {
        let limiter = Limiter::default();
        let (here, home) = (Visitor::Stranger([192, 0, 2, 1].into()), Visitor::Stranger([198, 51, 100, 7].into()));
        let passed = (0..10_050).filter(|row| limiter.attempt(&format!("name {row}"), here, 0).is_ok()).count();
        assert!(passed <= OF_ADDRESS as usize, "{passed}");
        assert_eq!(limiter.slots().len(), SLOTS);
        limiter.attempt("ada", home, 0).unwrap();
        // Many addresses use up a name, and still not a browser that is known.
        let passed =
            (0..200u8).filter(|row| limiter.attempt("ada", Visitor::Stranger([203, 0, 113, *row].into()), 0).is_ok());
        assert!(passed.count() < OF_NAME as usize);
        limiter.attempt("ada", Visitor::Known("a browser"), 0).unwrap();
        // Addresses of one network are one.
        let of = |last: u16| Visitor::Stranger([0x2001, 0xdb8, 0, 0, 0, 0, 0, last].into());
        for last in 0..5 {
            limiter.attempt("cyd", of(last), 0).unwrap();
        }
        limiter.attempt("cyd", of(9), 0).unwrap_err();
    }
}
