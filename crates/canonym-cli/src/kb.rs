//! `canonym kb`: build, inspect and search knowledge bases.

mod build;
mod diff;
mod export;
mod fetch;
mod info;
mod lint;
mod search;
mod show;
mod sources;

/// The subcommands of `canonym kb`.
#[derive(Debug, clap::Subcommand)]
pub enum KbCommand {
    /// Compile a terminology into one file.
    Build(Box<build::BuildArguments>),
    /// Tell what differs between two compiled files.
    Diff(diff::DiffArguments),
    /// Write a compiled file as a text format that `build` reads.
    Export(export::ExportArguments),
    /// Download an open terminology from its publisher.
    Fetch(fetch::FetchArguments),
    /// Tell what a compiled file holds.
    Info(info::InfoArguments),
    /// Look for what may be wrong with a compiled file: homonyms, names too short, loops of parents.
    Lint(lint::LintArguments),
    /// Find concepts by id or name: exact, then prefix, then fuzzy.
    Search(search::SearchArguments),
    /// Show one concept with its names, types and neighbours.
    Show(show::ShowArguments),
}

/// Runs the command.
pub fn run(command: &KbCommand) -> anyhow::Result<()> {
    match command {
        KbCommand::Build(arguments) => build::run(arguments),
        KbCommand::Diff(arguments) => diff::run(arguments),
        KbCommand::Export(arguments) => export::run(arguments),
        KbCommand::Fetch(arguments) => fetch::run(arguments),
        KbCommand::Info(arguments) => info::run(arguments),
        KbCommand::Lint(arguments) => lint::run(arguments),
        KbCommand::Search(arguments) => search::run(arguments),
        KbCommand::Show(arguments) => show::run(arguments),
    }
}
