//! The command line of canonym: one file per command, thin wrappers around the library.
//!
//! A library because the Python package runs it as well; `main.rs` is the program.

mod care;
mod codes;
mod compare;
mod convert;
mod download;
mod errors;
mod eval;
mod eval_report;
mod expect;
mod filter;
mod health;
mod help;
mod index;
mod interrupt;
mod kb;
mod link;
mod manual;
mod map;
mod mcp;
mod model;
mod options;
mod output;
mod probe;
mod progress;
mod reading;
mod serve;
mod system;
mod train;
#[cfg(unix)]
mod truncated;

use std::ffi::OsString;

use canonym_neural::status::{self, Stage};
use clap::{CommandFactory, Parser, Subcommand};
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::fmt::time::uptime;
use tracing_subscriber::prelude::*;

/// Link mentions in biomedical text to concepts of any terminology.
#[derive(Debug, Parser)]
#[command(name = "canonym", version, max_term_width = 120, disable_help_subcommand = true, after_help = help::topics_line())]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
    /// Print only results and errors.
    #[arg(long, short, global = true, conflicts_with = "verbose", help_heading = "Global options")]
    quiet: bool,
    /// Log stages with times, rates and cache hits to standard error; repeat for more detail.
    #[arg(long, short, global = true, action = clap::ArgAction::Count, help_heading = "Global options")]
    verbose: u8,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Find and link mentions in texts.
    Link(Box<link::LinkArguments>),
    /// Link names, one per line, without context.
    Map(map::MapArguments),
    /// Build, inspect and search knowledge bases.
    #[command(subcommand)]
    Kb(kb::KbCommand),
    /// Embed all names of a large knowledge base once.
    #[command(subcommand)]
    Index(index::IndexCommand),
    /// Score predictions against gold annotations.
    Eval(Box<eval::EvalArgs>),
    /// Test a release: check links that texts and names must have.
    Expect(expect::ExpectArguments),
    /// Convert a corpus to another format.
    Convert(convert::ConvertArguments),
    /// Compare two prediction files on the same gold annotations.
    Compare(compare::CompareArgs),
    /// Train a model from an experiment file.
    Train(train::TrainArguments),
    /// Inspect trained models.
    #[command(subcommand)]
    Model(model::ModelCommand),
    /// Probe what a name encoder attends to.
    Probe(probe::ProbeArguments),
    /// Serve the HTTP API and the web application.
    Serve(serve::ServeArguments),
    /// Ask a server on this machine whether it is ready.
    Health(health::HealthArguments),
    /// Serve tools to language models over the Model Context Protocol.
    Mcp(mcp::McpArguments),
    /// Back up a data folder, even while a server uses it.
    Backup(care::BackupArguments),
    /// Check, and optionally repair, a data folder that no server is using.
    Doctor(care::DoctorArguments),
    /// Print shell completions.
    Completions(manual::CompletionsArguments),
    /// Write manual pages for all commands.
    Man(manual::ManArguments),
    /// Show help for a command or topic.
    Help(help::HelpArguments),
}

/// Runs the command line `arguments`, the first of which is the name of the program, and returns the exit status.
///
/// Handles signals and exits the process for wrong arguments, so the process must be its own.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> u8 {
    let arguments = Arguments::parse_from(arguments);
    progress::set_quiet(arguments.quiet);
    start_tracing(arguments.verbose);
    if let Err(error) = interrupt::watch() {
        tracing::warn!("cannot install signal handlers; an interrupt may leave temporary files: {error}");
    }
    #[cfg(unix)]
    if let Err(error) = truncated::watch() {
        tracing::warn!("cannot install a signal handler; the loss of a mapped file would not be explained: {error}");
    }
    let stage = Stage::start();
    let result = match arguments.command {
        Command::Link(arguments) => link::run(&arguments),
        Command::Map(arguments) => map::run(&arguments),
        Command::Kb(command) => kb::run(&command),
        Command::Index(command) => index::run(&command),
        Command::Eval(arguments) => eval::run(&arguments),
        Command::Expect(arguments) => expect::run(&arguments),
        Command::Convert(arguments) => convert::run(&arguments),
        Command::Compare(arguments) => compare::run(&arguments),
        Command::Train(arguments) => train::run(&arguments),
        Command::Model(command) => model::run(&command),
        Command::Probe(arguments) => probe::run(&arguments),
        Command::Serve(arguments) => serve::run(&arguments),
        Command::Health(arguments) => health::run(&arguments),
        Command::Mcp(arguments) => mcp::run(&arguments),
        Command::Backup(arguments) => care::backup(&arguments),
        Command::Doctor(arguments) => care::examine(&arguments),
        Command::Completions(arguments) => manual::complete(&arguments, Arguments::command()),
        Command::Man(arguments) => manual::write_pages(&arguments, Arguments::command()),
        Command::Help(arguments) => help::run(&arguments, Arguments::command()),
    };
    stage.done("finished");
    match result {
        Ok(()) => 0,
        Err(error) => errors::report(&error),
    }
}

fn start_tracing(verbose: u8) {
    let level = match verbose {
        0 if progress::is_quiet() => tracing::Level::ERROR,
        0 => tracing::Level::WARN,
        1 => tracing::Level::INFO,
        2 => tracing::Level::DEBUG,
        _ => tracing::Level::TRACE,
    };
    let is_verbose = verbose > 0;
    let is_log = filter_fn(move |metadata| {
        // The library of the Model Context Protocol warns of every error that it answers.
        let is_shown = is_verbose || (metadata.target() != status::TARGET && !metadata.target().starts_with("rmcp"));
        is_shown && metadata.is_event() && *metadata.level() <= level
    });
    let log = tracing_subscriber::fmt::layer()
        .with_writer(std::io::stderr)
        .with_ansi(progress::has_colours())
        .with_target(false);
    // With `-v` each line tells the time since the start.
    let log_layer = match is_verbose {
        true => log.with_timer(uptime()).with_filter(is_log).boxed(),
        false => log.without_time().with_filter(is_log).boxed(),
    };
    let quiet = progress::is_quiet();
    let status = progress::Status { is_logged: is_verbose };
    let shown = status.with_filter(filter_fn(move |metadata| metadata.target() == status::TARGET && !quiet));
    tracing_subscriber::registry().with(log_layer).with(shown).init();
}
