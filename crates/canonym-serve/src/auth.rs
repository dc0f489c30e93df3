//! Passwords, keys, and the limit on failed logins.

use std::hash::{BuildHasher, RandomState};
use std::net::IpAddr;
use std::sync::{Mutex, OnceLock, PoisonError, mpsc};

use argon2::password_hash::{PasswordHasher, PasswordVerifier};
use argon2::{Argon2, PasswordHash};
use sha2::{Digest, Sha256};

use crate::error::{ApiError, ApiResult};
use crate::times::Millis;
use crate::wire::LOCAL;

/// The minimum length of a password, in characters.
const MIN_PASSWORD: usize = 8;

/// The maximum length of a password, in bytes.
pub const MAX_PASSWORD: usize = 1024;

/// The maximum length of a name, in bytes.
pub const MAX_NAME: usize = 64;

/// How long failures count.
const WINDOW: Millis = 60_000;

/// Failures allowed in that time: per name and address (or known browser), per address, and per name.
const MAX_PER_CLIENT: Millis = 5;
const MAX_PER_ADDRESS: Millis = 20;
const MAX_PER_NAME: Millis = 40;

/// Slots for counting failures. Names and addresses are hashed to slots with a random key, so collisions cannot be planned.
const SLOTS: usize = 1 << 16;

/// Common passwords, without trailing digits and punctuation.
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

/// The minimum number of distinct characters in a password.
const MIN_DISTINCT: usize = 4;

/// Rejects passwords that are easy to guess.
pub fn checked_password<'a>(password: &'a str, name: &str) -> ApiResult<&'a str> {
    let distinct: std::collections::BTreeSet<char> =
        password.chars().filter(|letter| !letter.is_whitespace()).collect();
    let word = password.trim().to_lowercase();
    let word = word.trim_end_matches(|letter: char| !letter.is_alphabetic());
    let is_common = COMMON.contains(&word) || word == name.to_lowercase() || is_sequence(password);
    if distinct.len() < MIN_DISTINCT || is_common {
        return Err(ApiError::bad("this password is easy to guess").hint("use several unrelated words"));
    }
    Ok(password)
}

/// Whether the characters count up or down, as in `12345678`.
fn is_sequence(password: &str) -> bool {
    let letters: Vec<i64> = password.trim().chars().map(|letter| i64::from(u32::from(letter))).collect();
    let step = |step: i64| letters.windows(2).filter(|pair| pair[1] - pair[0] == step).count();
    step(1).max(step(-1)) + 2 >= letters.len()
}

/// Hashes a password with Argon2id and a random salt.
pub fn hash(password: &str) -> ApiResult<String> {
    if password.chars().count() < MIN_PASSWORD || password.len() > MAX_PASSWORD {
        let message =
            format!("a password must have at least {MIN_PASSWORD} characters and at most {MAX_PASSWORD} bytes");
        return Err(ApiError::bad(message));
    }
    let password = password.to_owned();
    let hash = on_one_thread(move || Argon2::default().hash_password(password.as_bytes()).map(|hash| hash.to_string()));
    let hash = hash.ok_or_else(|| ApiError::internal(&"the hashing thread has ended"))?;
    hash.map_err(|error| ApiError::internal(&error))
}

/// Verifies a password. Without a hash it takes the same time, so that timing does not reveal which names exist.
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

type Task = Box<dyn FnOnce() + Send>;

/// Runs password hashing on a single thread. Each hash takes some 20 MB, which an allocator may keep for every thread that computed one.
fn on_one_thread<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    static HASHER: OnceLock<mpsc::Sender<Task>> = OnceLock::new();
    let hasher = HASHER.get_or_init(|| {
        let (sender, waiting) = mpsc::channel::<Task>();
        std::thread::spawn(move || waiting.into_iter().for_each(|work| work()));
        sender
    });
    let (reply, answer) = mpsc::channel();
    // Sending fails only if the caller is gone.
    hasher.send(Box::new(move || drop(reply.send(work())))).ok()?;
    answer.recv().ok()
}

/// Trims and checks a name.
pub fn checked_name(name: &str) -> ApiResult<&str> {
    let name = name.trim();
    if name.is_empty() || name.len() > MAX_NAME || name.chars().any(is_invisible) || name.contains("  ") {
        return Err(ApiError::bad(format!("a name must be 1 to {MAX_NAME} bytes of visible characters")));
    }
    let scripts = [0x41..0x250, 0x370..0x400, 0x400..0x530];
    let n_scripts = scripts
        .iter()
        .filter(|script| name.chars().any(|letter| letter.is_alphabetic() && script.contains(&u32::from(letter))));
    if n_scripts.count() > 1 {
        return Err(ApiError::bad("the name mixes similar-looking Latin, Greek or Cyrillic letters")
            .hint("use letters of one alphabet"));
    }
    if name == LOCAL {
        return Err(ApiError::bad("“local” is the user of a server without accounts").hint("choose another name"));
    }
    Ok(name)
}

/// Whether a character is invisible, or changes how others are displayed.
fn is_invisible(letter: char) -> bool {
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

/// A key for names that look alike: similar letters of other alphabets are mapped to Latin ones.
pub fn lookalike_key(name: &str) -> String {
    const LOOKALIKES: [(&str, char); 20] = [
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
    let alike = |letter: char| {
        LOOKALIKES.iter().find(|(others, _)| others.contains(letter)).map_or(letter, |(_, latin)| *latin)
    };
    plain.chars().map(alike).collect()
}

/// A key of 256 random bits, and the hash of it that is stored.
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

/// Who attempts to log in.
#[derive(Debug, Clone, Copy)]
pub enum LoginSource<'a> {
    /// A known browser or a signed-in user, with attempts of its own.
    Known(&'a str),
    /// Anyone else, by address.
    Unknown(IpAddr),
}

/// A rate limiter for failed logins, of fixed size.
///
/// A slot holds the time at which its failures expire; each failure moves it by a fraction of a minute, which is also the longest wait. Strangers
/// can use up the attempts of an address or of a name, never those of a known browser.
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

/// A login attempt. It counts as failed until [`Limiter::succeeded`], so that concurrent attempts cannot pass together.
#[derive(Debug)]
pub struct Attempt(Vec<(usize, Millis)>);

impl Limiter {
    fn slots(&self) -> std::sync::MutexGuard<'_, Vec<Millis>> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Fails after too many recent failures; refused attempts do not count.
    pub fn attempt(&self, name: &str, visitor: LoginSource<'_>, now: Millis) -> ApiResult<Attempt> {
        let slot = |what: &dyn Fn() -> u64| (what() % SLOTS as u64) as usize;
        let counted: Vec<(usize, Millis)> = match visitor {
            LoginSource::Known(key) => vec![(slot(&|| self.keys.hash_one((0, key))), MAX_PER_CLIENT)],
            LoginSource::Unknown(address) => {
                let address = network(address);
                vec![
                    (slot(&|| self.keys.hash_one((1, address, name))), MAX_PER_CLIENT),
                    (slot(&|| self.keys.hash_one((2, address))), MAX_PER_ADDRESS),
                    (slot(&|| self.keys.hash_one((3, name))), MAX_PER_NAME),
                ]
            }
        };
        let mut slots = self.slots();
        for (slot, limit) in &counted {
            let wait = slots[*slot].max(now) + WINDOW / limit - now - WINDOW;
            if wait > 0 {
                let seconds = (wait as u64).div_ceil(1000);
                return Err(ApiError::busy("too many failed logins", seconds));
            }
        }
        for (slot, limit) in &counted {
            slots[*slot] = slots[*slot].max(now) + WINDOW / limit;
        }
        Ok(Attempt(counted))
    }

    /// Removes a successful attempt from the failures.
    pub fn succeeded(&self, attempt: Attempt) {
        let mut slots = self.slots();
        for (slot, limit) in attempt.0 {
            slots[slot] -= WINDOW / limit;
        }
    }
}

/// The network of an address: the /64 prefix of an IPv6 address.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => IpAddr::V6((address.to_bits() & !u128::from(u64::MAX)).into()),
        address => address,
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
    fn common_passwords_are_rejected() {
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
    fn invisible_characters_are_rejected_and_lookalike_names_are_equal() {
        for odd in ["a\u{200b}da", "a\u{202e}da", "\u{3164}", "ada\u{a0}x", "a\u{ad}da", "аda", "adα", "a  b", "a\nb"]
        {
            assert!(checked_name(odd).is_err(), "{odd:?}");
        }
        for name in ["ada", "Ada Lovelace", "Ада", "Ελένη", "李小龙", "José"] {
            checked_name(name).unwrap();
        }
        assert_eq!(lookalike_key("аԁа"), lookalike_key("ada"));
        assert_eq!(lookalike_key("ADA"), lookalike_key("ada"));
        assert_eq!(lookalike_key("bi11"), lookalike_key("bill"));
        assert_ne!(lookalike_key("ada"), lookalike_key("adam"));
    }

    #[test]
    fn sixth_failed_login_in_a_minute_has_to_wait() {
        let limiter = Limiter::default();
        let here = LoginSource::Unknown([192, 0, 2, 1].into());
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
    fn failed_logins_do_not_block_other_addresses_or_grow_memory() {
        let limiter = Limiter::default();
        let (here, home) =
            (LoginSource::Unknown([192, 0, 2, 1].into()), LoginSource::Unknown([198, 51, 100, 7].into()));
        let passed = (0..10_050).filter(|row| limiter.attempt(&format!("name {row}"), here, 0).is_ok()).count();
        assert!(passed <= MAX_PER_ADDRESS as usize, "{passed}");
        assert_eq!(limiter.slots().len(), SLOTS);
        limiter.attempt("ada", home, 0).unwrap();
        // Many addresses can use up a name, but not a known browser.
        let passed = (0..200u8)
            .filter(|row| limiter.attempt("ada", LoginSource::Unknown([203, 0, 113, *row].into()), 0).is_ok());
        assert!(passed.count() < MAX_PER_NAME as usize);
        limiter.attempt("ada", LoginSource::Known("a browser"), 0).unwrap();
        // Addresses of one network count together.
        let of = |last: u16| LoginSource::Unknown([0x2001, 0xdb8, 0, 0, 0, 0, 0, last].into());
        for last in 0..5 {
            limiter.attempt("cyd", of(last), 0).unwrap();
        }
        limiter.attempt("cyd", of(9), 0).unwrap_err();
    }
}
