//! What happens when the user interrupts the program.

use std::sync::Mutex;

type Action = Box<dyn FnOnce() + Send>;

/// What is done in the place of ending at once.
static INSTEAD: Mutex<Option<Action>> = Mutex::new(None);

/// Does `action` on the next interrupt, and ends the program only on the one behind it.
pub fn instead(action: impl FnOnce() + Send + 'static) {
    if let Ok(mut instead) = INSTEAD.lock() {
        *instead = Some(Box::new(action));
    }
}

/// Ends the program without half-written files, or does what was asked for in the place of that. 130 is what shells expect after an interrupt.
pub fn handle() {
    let action = INSTEAD.lock().ok().and_then(|mut instead| instead.take());
    match action {
        Some(action) => action(),
        None => {
            canonym::artifact::remove_unfinished();
            std::process::exit(130);
        }
    }
}
