//! Standard error: messages, and progress bars on a terminal.
//!
//! Write errors are ignored, so the program works even if standard error is closed or full.

use std::io::{IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use canonym_core::eval::thousands;
use canonym_neural::status;
use indicatif::{ProgressBar, ProgressStyle};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id};
use tracing::{Event, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;
use tracing_subscriber::registry::LookupSpan;

static QUIET: AtomicBool = AtomicBool::new(false);

/// Sets quiet mode: only results and errors are shown.
pub fn set_quiet(quiet: bool) {
    QUIET.store(quiet, Ordering::Relaxed);
}

/// Whether quiet mode is on.
pub fn is_quiet() -> bool {
    QUIET.load(Ordering::Relaxed)
}

/// Writes a line to standard error, unless in quiet mode.
pub fn say(line: &str) {
    if !is_quiet() {
        write(&format!("{line}\n"));
    }
}

/// Writes to standard error, even in quiet mode.
pub fn write(text: &str) {
    std::io::stderr().lock().write_all(text.as_bytes()).ok();
}

/// Whether messages may have colours: on a terminal or if `CLICOLOR_FORCE` is set, unless `NO_COLOR` is set.
pub fn has_colours() -> bool {
    let is_set = |variable: &str| std::env::var_os(variable).is_some_and(|value| !value.is_empty() && value != "0");
    match (std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty()), is_set("CLICOLOR_FORCE")) {
        (true, _) => false,
        (false, forced) => forced || std::io::stderr().is_terminal(),
    }
}

/// A progress bar that counts `what`, with the rate, and the time left if the total is known.
pub fn counter(what: &str, total: Option<u64>) -> ProgressBar {
    if is_quiet() || !std::io::stderr().is_terminal() {
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

/// Removes a counter; `-v` tells the number, the time and the rate.
pub fn finish(bar: &ProgressBar, what: &str) {
    let (n, time) = (bar.position(), bar.elapsed());
    bar.finish_and_clear();
    let rate = n as f64 / time.as_secs_f64().max(1e-9);
    tracing::info!("{what}: {} in {}, {rate:.0} per second", thousands(n), status::exact(time));
}

/// A spinner with the message `what` and the elapsed time; hidden unless on a terminal.
pub fn spinner(what: &str) -> ProgressBar {
    if is_quiet() || !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("{spinner} {msg}, {elapsed}").expect("the template is valid");
    let bar = ProgressBar::new_spinner().with_style(style).with_message(what.to_owned());
    bar.enable_steady_tick(Duration::from_millis(120));
    bar
}

/// Prints status events of the libraries, and shows a spinner for each open status span.
pub struct Status {
    /// Whether the events are also part of the log, with their times.
    pub is_logged: bool,
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Status {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        if !self.is_logged {
            say(&Text::of(|text| event.record(text)));
        }
    }

    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        if let Some(span) = context.span(id) {
            span.extensions_mut().insert(spinner(&Text::of(|text| attributes.record(text))));
        }
    }

    fn on_close(&self, id: Id, context: Context<'_, S>) {
        let span = context.span(&id);
        if let Some(bar) = span.and_then(|span| span.extensions_mut().remove::<ProgressBar>()) {
            bar.finish_and_clear();
        }
    }
}

/// The text of an event or span.
#[derive(Default)]
struct Text(String);

impl Text {
    fn of(record: impl FnOnce(&mut Text)) -> String {
        let mut text = Text::default();
        record(&mut text);
        text.0
    }
}

impl Visit for Text {
    fn record_str(&mut self, _: &Field, value: &str) {
        value.clone_into(&mut self.0);
    }

    fn record_debug(&mut self, _: &Field, value: &dyn std::fmt::Debug) {
        self.0 = format!("{value:?}");
    }
}
