//! `canonym kb`: build, inspect and search knowledge bases.

mod build;
mod diff;
mod export;
mod fetch;
mod info;
mod lint;
mod search;
mod show;

/// The subcommands of `canonym kb`.
#[derive(Debug, clap::Subcommand)]
pub enum KbCommand {
    /// Compile a terminology into one file.
    Build(Box<build::BuildArguments>),
    /// Show the differences between two knowledge bases.
    Diff(diff::DiffArguments),
    /// Export a knowledge base to a text format that `build` reads.
    Export(export::ExportArguments),
    /// Download an open terminology from its publisher.
    Fetch(fetch::FetchArguments),
    /// Show the contents and statistics of a knowledge base.
    Info(info::InfoArguments),
    /// Check a knowledge base for likely problems: homonyms, very short names, cycles in the hierarchy.
    Lint(lint::LintArguments),
    /// Find concepts by id or name: exact, then prefix, then fuzzy.
    Search(search::SearchArguments),
    /// Show a concept with its names, types, parents and children.
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
