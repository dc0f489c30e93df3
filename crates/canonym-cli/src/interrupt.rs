//! Signals that end the program: SIGINT, SIGTERM and SIGHUP.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

type Action = Box<dyn FnOnce() + Send>;

/// What the next signal does instead of ending the program.
static INSTEAD: Mutex<Option<Action>> = Mutex::new(None);

/// Held while lines are written to standard output.
static WRITING: Mutex<()> = Mutex::new(());

/// Attempts to wait for a complete line, and the pause between them; the limit is needed if nobody reads the output.
const LOCK_ATTEMPTS: (u32, Duration) = (100, Duration::from_millis(20));

/// Runs `action` on the next signal; the signal after that ends the program.
pub fn instead(action: impl FnOnce() + Send + 'static) {
    if let Ok(mut instead) = INSTEAD.lock() {
        *instead = Some(Box::new(action));
    }
}

/// Runs `write` to its end even if a signal arrives.
pub fn whole<T>(write: impl FnOnce() -> T) -> T {
    let _held = WRITING.lock().unwrap_or_else(PoisonError::into_inner);
    write()
}

/// Starts handling the signals.
#[cfg(unix)]
pub fn watch() -> std::io::Result<()> {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    let mut signals = signal_hook::iterator::Signals::new([SIGINT, SIGTERM, SIGHUP])?;
    let handle = move || signals.forever().for_each(|signal| end(128 + signal));
    std::thread::Builder::new().name("signals".to_owned()).spawn(handle)?;
    Ok(())
}

/// Starts handling interrupts.
#[cfg(not(unix))]
pub fn watch() -> std::io::Result<()> {
    ctrlc::set_handler(|| end(130)).map_err(std::io::Error::other)
}

/// Runs the action set by [`instead`], or else removes unfinished files and exits after the current line. `status` is
/// 128 plus the number of the signal, as shells expect.
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

/// Waits until no line is being written, within the limits of [`LOCK_ATTEMPTS`].
fn between_lines() -> Option<MutexGuard<'static, ()>> {
    let (n_times, pause) = LOCK_ATTEMPTS;
    (0..n_times).find_map(|_| {
        let held = WRITING.try_lock().ok();
        if held.is_none() {
            std::thread::sleep(pause);
        }
        held
    })
}
