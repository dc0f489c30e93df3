//! What happens when the program is ended from outside: by an interrupt, by SIGTERM or because its terminal is gone.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

type Action = Box<dyn FnOnce() + Send>;

/// What is done in the place of ending at once.
static INSTEAD: Mutex<Option<Action>> = Mutex::new(None);

/// Held while lines are written to standard output.
static WRITING: Mutex<()> = Mutex::new(());

/// How often, and how long apart, the end asks whether the line being written is complete: nobody may read any more.
const PATIENCE: (u32, Duration) = (100, Duration::from_millis(20));

/// Does `action` on the next signal, and ends the program only on the one behind it.
pub fn instead(action: impl FnOnce() + Send + 'static) {
    if let Ok(mut instead) = INSTEAD.lock() {
        *instead = Some(Box::new(action));
    }
}

/// Does `write` as a whole: a signal waits for its end.
pub fn whole<T>(write: impl FnOnce() -> T) -> T {
    let _held = WRITING.lock().unwrap_or_else(PoisonError::into_inner);
    write()
}

/// Takes the signals that end programs from now on.
#[cfg(unix)]
pub fn watch() -> std::io::Result<()> {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    let mut signals = signal_hook::iterator::Signals::new([SIGINT, SIGTERM, SIGHUP])?;
    let handle = move || signals.forever().for_each(|signal| end(128 + signal));
    std::thread::Builder::new().name("signals".to_owned()).spawn(handle)?;
    Ok(())
}

/// Takes interrupts from now on.
#[cfg(not(unix))]
pub fn watch() -> std::io::Result<()> {
    ctrlc::set_handler(|| end(130)).map_err(std::io::Error::other)
}

/// Ends the program without half-written files and lines, or does what was asked for in the place of that. `status` is what shells expect: 128 and
/// the number of the signal.
fn end(status: i32) {
    let action = INSTEAD.lock().ok().and_then(|mut instead| instead.take());
    match action {
        Some(action) => action(),
        None => {
            let _held = between_lines();
            canonym_core::artifact::remove_unfinished();
            std::process::exit(status);
        }
    }
}

/// Waits until no line is being written, for a while.
fn between_lines() -> Option<MutexGuard<'static, ()>> {
    let (n_times, pause) = PATIENCE;
    (0..n_times).find_map(|_| {
        let held = WRITING.try_lock().ok();
        if held.is_none() {
            std::thread::sleep(pause);
        }
        held
    })
}
