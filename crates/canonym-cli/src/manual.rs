//! `canonym completions` and `canonym man`: shell completions and manual pages, generated from the command definitions.

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::Context;
use canonym_core::artifact::AtomicFile;
use clap::Command;
use clap_complete::Shell;

use crate::progress;

/// Arguments of `canonym completions`.
#[derive(Debug, clap::Args)]
pub struct CompletionsArguments {
    /// Shell to generate completions for.
    #[arg(value_enum)]
    shell: Shell,
}

/// Arguments of `canonym man`.
#[derive(Debug, clap::Args)]
pub struct ManArguments {
    /// Output folder; created if missing.
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
}

/// Prints the completions.
pub fn complete(arguments: &CompletionsArguments, mut command: Command) -> anyhow::Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut command, "canonym", &mut script);
    std::io::stdout().write_all(&script).context("cannot write the completions")
}

/// Writes a page for the program and for each command.
pub fn write_pages(arguments: &ManArguments, mut command: Command) -> anyhow::Result<()> {
    let folder = &arguments.out;
    std::fs::create_dir_all(folder).map_err(|error| canonym_core::Error::io("create", folder, error))?;
    command.build();
    let n_pages = write_page(folder, "canonym", &command)?;
    progress::say(&format!("wrote {n_pages} pages to {}", folder.display()));
    Ok(())
}

/// Writes the pages of a command and its subcommands. Returns their number.
fn write_page(folder: &Path, name: &str, command: &Command) -> anyhow::Result<usize> {
    let mut page = Vec::new();
    clap_mangen::Man::new(command.clone()).render(&mut page).context("cannot render a manual page")?;
    let mut file = AtomicFile::create(&folder.join(format!("{name}.1")))?;
    file.write_all(&page).context("cannot write a manual page")?;
    file.commit()?;
    let mut n_pages = 1;
    for child in command.get_subcommands().filter(|child| child.get_name() != "help" || name == "canonym") {
        n_pages += write_page(folder, &format!("{name}-{}", child.get_name()), child)?;
    }
    Ok(n_pages)
}
