//! The loop: mutate, run, keep what says something new, write down what fails.

use std::collections::HashSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use canonym_core::eval::bootstrap::SplitMix64;

use crate::mutate::mutate;
use crate::targets::Target;

/// A run that takes longer is a fault.
const MAX_RUN: Duration = Duration::from_secs(5);

/// Inputs that are kept because they said something new, at most.
const MAX_POOL: usize = 4000;

/// Different faults of one target after which it is left.
const MAX_FAULTS: usize = 20;

/// What the last panic said, and where.
static LAST_PANIC: Mutex<String> = Mutex::new(String::new());

/// How long a hunt goes on.
pub enum Budget {
    /// For this time.
    Time(Duration),
    /// For this number of inputs.
    #[cfg_attr(not(test), allow(dead_code))]
    Inputs(usize),
}

/// An input that made a target fail.
pub struct Fault {
    pub message: String,
    pub input: Vec<u8>,
}

/// What a hunt found.
pub struct Found {
    pub n_runs: usize,
    pub n_kinds: usize,
    pub faults: Vec<Fault>,
}

/// Keeps panics from being printed; the loop tells of each once.
pub fn quiet_panics() {
    std::panic::set_hook(Box::new(|info| {
        let place = info.location().map(|place| format!("{}:{}", place.file(), place.line())).unwrap_or_default();
        let payload = info.payload();
        let text = payload.downcast_ref::<String>().map(String::as_str).or(payload.downcast_ref::<&str>().copied());
        let said = text.unwrap_or("a panic").lines().next().unwrap_or_default().to_owned();
        *LAST_PANIC.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = format!("{place}: {said}");
    }));
}

/// Runs one input: what the target said of it, or how it failed.
pub fn try_input(target: &Target, input: &[u8]) -> Result<String, String> {
    let started = Instant::now();
    let said = catch_unwind(AssertUnwindSafe(|| (target.run)(input)));
    match said {
        Err(_) => Err(LAST_PANIC.lock().unwrap_or_else(std::sync::PoisonError::into_inner).clone()),
        Ok(_) if started.elapsed() > MAX_RUN => Err("too slow".to_owned()),
        Ok(said) => Ok(said),
    }
}

/// Hunts for faults of a target. Equal seeds give equal inputs, as far as both get.
pub fn hunt(target: &Target, seed: u64, budget: Budget) -> Found {
    let mut rng = SplitMix64::new(seed);
    let mut pool = target.seeds.clone();
    let mut kinds = HashSet::new();
    let mut places = HashSet::new();
    let mut found = Found { n_runs: 0, n_kinds: 0, faults: Vec::new() };
    let started = Instant::now();
    loop {
        let is_over = match budget {
            Budget::Time(time) => started.elapsed() >= time,
            Budget::Inputs(n) => found.n_runs >= n,
        };
        if is_over || found.faults.len() >= MAX_FAULTS {
            break;
        }
        let input = match pool.get(found.n_runs) {
            Some(seed) if found.n_runs < target.seeds.len() => seed.clone(),
            _ => mutate(&pool, &mut rng),
        };
        found.n_runs += 1;
        match try_input(target, &input) {
            Ok(said) => {
                if kinds.insert(without_values(&said)) && pool.len() < MAX_POOL {
                    pool.push(input);
                }
            }
            Err(message) => {
                if places.insert(without_values(&message)) {
                    found.faults.push(Fault { message, input });
                }
            }
        }
    }
    found.n_kinds = kinds.len();
    found
}

/// What was said without numbers and quotations, so that inputs of one kind are told from those of another.
pub fn without_values(said: &str) -> String {
    let mut kind = String::with_capacity(said.len());
    for (place, part) in said.split('`').enumerate() {
        if place % 2 == 0 {
            kind.extend(part.chars().filter(|letter| letter.is_ascii_alphabetic() || *letter == ' ').take(200));
        }
    }
    kind
}

/// Writes the input of a fault to `fuzz/findings`.
pub fn keep(target: &Target, place: usize, input: &[u8]) -> std::io::Result<PathBuf> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("findings");
    std::fs::create_dir_all(&folder)?;
    let path = folder.join(format!("{}-{place}.bin", target.name.replace('/', "-")));
    std::fs::write(&path, input)?;
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_target_fails_on_its_first_inputs() {
        quiet_panics();
        let mut faults = Vec::new();
        for target in crate::targets::all() {
            let found = hunt(&target, 7, Budget::Inputs(target.seeds.len() + 150));
            let shown = |fault: &Fault| {
                format!("{}: {} on {:?}", target.name, fault.message, String::from_utf8_lossy(&fault.input))
            };
            faults.extend(found.faults.iter().map(shown));
        }
        drop(std::panic::take_hook());
        assert!(faults.is_empty(), "{faults:#?}");
    }

    #[test]
    fn what_is_said_of_two_values_is_of_one_kind() {
        assert_eq!(without_values("line 7: `a` is no id"), without_values("line 12: `b` is no id"));
        assert_ne!(without_values("line 7: `a` is no id"), without_values("line 7: `a` is no name"));
    }
}
