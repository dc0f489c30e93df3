//! Standard error: what the user is told beside the results, and progress where it is a terminal.
//!
//! Nothing here fails: a program whose standard error is closed or full still does its work.

use std::io::{IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

static QUIET: AtomicBool = AtomicBool::new(false);

/// Whether only results and errors are shown.
pub fn set_quiet(quiet: bool) {
    QUIET.store(quiet, Ordering::Relaxed);
}

/// Writes a line for the user to standard error, unless quiet was asked for.
pub fn say(line: &str) {
    if !QUIET.load(Ordering::Relaxed) {
        write(&format!("{line}\n"));
    }
}

/// Writes to standard error, also where quiet was asked for: errors.
pub fn write(text: &str) {
    std::io::stderr().lock().write_all(text.as_bytes()).ok();
}

/// A count of `what` with its rate, and with the time left where the total is known.
pub fn counter(what: &str, total: Option<u64>) -> ProgressBar {
    if QUIET.load(Ordering::Relaxed) || !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = match total {
        Some(total) => {
            let template = format!("{{wide_bar}} {{human_pos}}/{{human_len}} {what}, {{per_sec}}, {{eta}} left");
            ProgressBar::new(total).with_style(ProgressStyle::with_template(&template).expect("the template is valid"))
        }
        None => {
            let template = format!("{{spinner}} {{human_pos}} {what}, {{per_sec}}, {{elapsed}}");
            ProgressBar::no_length().with_style(ProgressStyle::with_template(&template).expect("the template is valid"))
        }
    };
    bar.enable_steady_tick(Duration::from_millis(120));
    bar
}
